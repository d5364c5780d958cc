/* test_deadline_small.c - test_deadline.c with CCI_SMALL.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define CCI_SMALL
#include "test_deadline.c"
