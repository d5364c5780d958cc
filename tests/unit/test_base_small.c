/* test_base_small.c - test_base.c with CCI_SMALL.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define CCI_SMALL
#include "test_base.c"
