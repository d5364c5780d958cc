/* msvc.h - makes clang look like Microsoft's compiler to the headers of CCI, with the system headers of mingw-w64,
 * which want a compiler like gcc and so come first. This shows that nothing of gcc is needed; it isn't that compiler.
 * SPDX-License-Identifier: MIT OR Unlicense */
#define __declspec(attribute) __declspec(attribute)

#include <winsock2.h>
#include <ws2tcpip.h>
#include <iphlpapi.h>
#include <windows.h>
#include <mswsock.h>

#include <assert.h>
#include <bcrypt.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef __GNUC__
#undef __clang__
#define _MSC_VER 1930
