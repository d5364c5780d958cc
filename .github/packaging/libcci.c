/* SPDX-License-Identifier: MIT OR Unlicense */
/* libcci.c - the shared library of `make lib`: all transports, and the public API as its only symbols.
 *
 * The file is compiled with -fvisibility=hidden. The first inclusion declares what stands above the line "end of header"
 * of cci.h as exported; the second emits the code, in which everything else stays hidden. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#if defined(__GNUC__) || defined(__clang__)
#define CCI_API extern __attribute__((visibility("default")))
#else
#error "libcci.c needs a compiler that has __attribute__((visibility))"
#endif
#include "cci.h"

#undef CCI_API
#define CCI_API extern
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"
