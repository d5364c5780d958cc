/* refuses.h - put before an example: two of three sends are refused at first, as when no send buffer is free.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     cc -include tests/tools/refuses.h -I. -o pingpong examples/pingpong.c -pthread
 */
#ifndef TESTS_REFUSES_H
#define TESTS_REFUSES_H

#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

static int send_or_refuse(cci_connection_t *connection, const void *bytes, uint32_t length, const void *context, int flags) {
    static unsigned calls;
    return ++calls % 3 != 0 ? CCI_ENOBUFS : cci_send(connection, bytes, length, context, flags);
}
#define cci_send send_or_refuse

#endif
