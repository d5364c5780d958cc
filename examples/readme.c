#define CCI_IMPLEMENTATION /* SPDX-License-Identifier: MIT OR Unlicense */
#include "cci_udp.h"
#include "cci.h"
#include <stdio.h>

int main(int argc, char **argv) {
    uint32_t caps, events = 1u << CCI_EVENT_DISCONNECT;
    cci_endpoint_t *endpoint;
    cci_event_t *event;
    char *uri;
    int status = CCI_EAGAIN;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (cci_init(CCI_ABI_VERSION, 0, &caps) || cci_create_endpoint(NULL, 0, &endpoint, NULL)) return 1;
    if (argc < 2 && cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri) == CCI_SUCCESS) puts(uri);
    if (argc > 1 && cci_connect(endpoint, argv[1], NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL)) return 1;
    for (cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events); status == CCI_EAGAIN; cci_return_event(event)) {
        while (cci_get_event(endpoint, &event) != CCI_SUCCESS) {}
        if (event->type == CCI_EVENT_CONNECT_REQUEST) cci_accept(event, NULL);
        if (event->type == CCI_EVENT_DISCONNECT) cci_disconnect(event->disconnect.connection); /* the client has left */
        if (event->type == CCI_EVENT_RECV) printf("%.*s\n", (int)event->recv.len, (const char *)event->recv.ptr);
        if (event->type == CCI_EVENT_CONNECT)
            status = cci_send(event->connect.connection, "hello, world", 12, NULL, CCI_FLAG_BLOCKING);
    }
    return cci_finalize() || status;
}
