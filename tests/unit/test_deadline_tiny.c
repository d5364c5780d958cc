/* test_deadline_tiny.c - test_deadline.c with CCI_TINY.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define CCI_TINY
#include "test_deadline.c"
