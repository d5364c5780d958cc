/* posix.h - what the tests use of POSIX, on Windows: each program of tests is compiled with `-include` of this file, and
 * finds the headers beside it by the names that POSIX has for them.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * What is here does what the tests need of it, and no more: an alarm never comes, since the runner ends what takes too
 * long. Descriptors are sockets.
 */
#ifndef CCI_TEST_POSIX_H
#define CCI_TEST_POSIX_H

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <winsock2.h>
#include <ws2tcpip.h>

#include <fcntl.h>
#include <io.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define POSIX_FN static __attribute__((unused))

typedef long suseconds_t;

/* ---- signals -------------------------------------------------------------------------------------------------------- */

#define SIGALRM 14
#define sigjmp_buf jmp_buf
#define sigsetjmp(buffer, save) setjmp(buffer)
#define siglongjmp longjmp
#define alarm(seconds) (void)(seconds)

/* ---- files ---------------------------------------------------------------------------------------------------------- */

#define pipe(ends) _pipe(ends, 65536, _O_TEXT)

POSIX_FN int posix_dup2(int from, int to) {
    return _dup2(from, to) == 0 ? to : -1;
}
#define dup2 posix_dup2

/* ---- memory and the environment ------------------------------------------------------------------------------------- */

POSIX_FN void *memmem(const void *where, size_t where_size, const void *what, size_t what_size) {
    const char *at = (const char *)where;
    for (; where_size >= what_size; at++, where_size--)
        if (memcmp(at, what, what_size) == 0) return (void *)(uintptr_t)at;
    return NULL;
}

POSIX_FN int setenv(const char *name, const char *value, int overwrite) {
    (void)overwrite;
    return _putenv_s(name, value);
}

POSIX_FN int unsetenv(const char *name) {
    return _putenv_s(name, "");
}

#endif
