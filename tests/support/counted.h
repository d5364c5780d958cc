/* counted.h - for programs that count the library's steps: pieces of code without a branch, at each of which gcc and clang call a
 * function with -fsanitize-coverage=trace-pc. The program defines it: UNCOUNTED, so that its own steps don't count.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#ifndef CCI_COUNTED_H
#define CCI_COUNTED_H

#ifdef __clang__
#define UNCOUNTED __attribute__((no_sanitize("coverage")))
#else
#define UNCOUNTED __attribute__((no_sanitize_coverage))
#endif
UNCOUNTED void __sanitizer_cov_trace_pc(void);

#endif
