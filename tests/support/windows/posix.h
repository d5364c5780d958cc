/* posix.h - what the tests use of POSIX, on Windows: each program of tests is compiled with `-include` of this file,
 * and finds the headers beside it by the names that POSIX has for them.
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

/* ---- sockets -------------------------------------------------------------------------------------------------------- */

#define poll(set, count, timeout_ms) WSAPoll(set, count, timeout_ms)

/* What is no socket is a file. */
POSIX_FN int posix_close(int fd) {
    return closesocket((SOCKET)fd) == 0 ? 0 : _close(fd);
}
#define close posix_close

/* ---- files ---------------------------------------------------------------------------------------------------------- */

#define pipe(ends) _pipe(ends, 65536, _O_TEXT)

POSIX_FN int posix_dup2(int from, int to) {
    return _dup2(from, to) == 0 ? to : -1;
}
#define dup2 posix_dup2

#define _SC_PAGESIZE 0
POSIX_FN long sysconf(int name) {
    SYSTEM_INFO info;
    (void)name;
    GetSystemInfo(&info);
    return (long)info.dwPageSize;
}

/* No memory is mapped: what wants more than there is of it is left out. */
enum { PROT_NONE, PROT_READ, PROT_WRITE };
enum { MAP_PRIVATE = 1, MAP_SHARED = 2, MAP_FIXED = 4, MAP_ANONYMOUS = 8, MAP_NORESERVE = 16 };
#define MAP_FAILED ((void *)~(uintptr_t)0)
#define mmap(start, size, protection, flags, fd, offset)                                                              \
    ((void)(start), (void)(size), (void)(flags), (void)(fd), (void)(offset), MAP_FAILED)
#define munmap(start, size) ((void)(start), (void)(size))

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
