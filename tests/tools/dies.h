/* dies.h - put before an example: the process kills itself when it gets its eleventh message.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     cc -include tests/tools/dies.h -I. -o transfer examples/transfer.c -pthread
 */
#ifndef TESTS_DIES_H
#define TESTS_DIES_H

#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

#include <signal.h>

static int get_or_die(cci_endpoint_t *endpoint, cci_event_t **event) {
    static int messages;
    int status = cci_get_event(endpoint, event);
    if (status == CCI_SUCCESS && (*event)->type == CCI_EVENT_RECV && ++messages > 10) raise(SIGKILL);
    return status;
}
#define cci_get_event get_or_die

#endif
