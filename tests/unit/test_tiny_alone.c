/* test_tiny_alone.c - test_tiny.c without handshakes: the reliability protocol of CCI_TINY alone.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define CCI_NO_CLIENT
#define CCI_NO_SERVER
#include "test_tiny.c"
