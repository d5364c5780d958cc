/* test_tiny_sealed.c - test_tiny.c with packets that are sealed.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define CCI_TINY_SEAL
#include "test_tiny.c"
