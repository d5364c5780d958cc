/* setjmp.h - for WebAssembly, which has none: what jumps ends the program, so that the first test that fails is the last.
 * SPDX-License-Identifier: MIT OR Unlicense */
#ifndef CCI_TEST_SETJMP_H
#define CCI_TEST_SETJMP_H

#include <stdio.h>
#include <stdlib.h>

typedef int jmp_buf[1];
#define setjmp(buffer) ((void)(buffer), 0)
#define longjmp(buffer, value) \
    ((void)(buffer), (void)(value), (void)printf("[  FAILED  ] 1 test(s), and those after it did not run\n"), exit(1))

#endif /* CCI_TEST_SETJMP_H */
