/* field.c - what programs in the field do and rely on, though the manual doesn't say it.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     field [PART]      all tests, or those whose sentence contains PART, on the simulated network and over UDP
 *
 * This file is such a program: it has globals with names that others think of as the C library's or as their own, and
 * they are there before the headers are.
 */
#define _GNU_SOURCE 1

/* The implementation needs the system's socket header in this file, and the program owns some of the names that it
 * declares: here they get others. Should the implementation ever call one of them, it finds a number instead. */
#define send system_send
#define recv system_recv
#define accept system_accept
#define listen system_listen
#define shutdown system_shutdown
#include <sys/socket.h>
#undef send
#undef recv
#undef accept
#undef listen
#undef shutdown

int send = 1, recv = 2, accept = 3, listen = 4, shutdown = 5;
int poll_count = 6, event = 7, endpoint = 8, connection = 9, device = 10, status = 11, buffer = 12, timer = 13;
int link_count = 14, transport = 15, list = 16, queue = 17, wheel = 18, rel = 19, evq = 20, rma = 21, conn = 22;
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))

/* Such a program can't ask for this warning: any local variable of any header would give one. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wshadow"
#endif

#define CCI_IMPLEMENTATION
#ifdef __linux__
#include "cci_sisci.h"
#endif
#include "cci_udp.h"

#include "cci.h"

#include "cci.h" /* twice, as it happens */

#include "tests/support/harness.h"

static int is_kept(void) {
    return send == 1 && recv == 2 && accept == 3 && listen == 4 && shutdown == 5 && poll_count == 6 && event == 7 &&
           endpoint == 8 && connection == 9 && device == 10 && status == 11 && buffer == 12 && timer == 13 &&
           link_count == 14 && transport == 15 && list == 16 && queue == 17 && wheel == 18 && rel == 19 && evq == 20 &&
           rma == 21 && conn == 22 && min(1, 2) == 1 && max(1, 2) == 2;
}

static void round_trip(const pair_t *pair) {
    cci_event_t *got;
    send_patiently(pair->ac, "ping", 4, 77, 0);
    got = await(pair->b, CCI_EVENT_RECV);
    assert_ptr_equal(got->recv.connection, pair->bc);
    assert_int_equal(got->recv.len, 4);
    assert_memory_equal(got->recv.ptr, "ping", 4);
    drop(got);
    await_send(pair->a, pair->ac, as_context(77), CCI_SUCCESS);
}

/* ---- names and values ----------------------------------------------------------------------------------------------- */

TEST(names, ANYWHERE, "a program's globals called send, recv, accept and the like stay its own") {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    (void)state;
    round_trip(&pair);
    assert_true(is_kept());
}

TEST(values, ON_SIM, "enumerations count from 0 in the manual's order, flags are single bits") {
    (void)state;
    assert_int_equal(CCI_SUCCESS, 0);
    assert_int_equal(CCI_ERROR, 1);
    assert_int_equal(CCI_ERR_NOT_FOUND, 8);
    assert_int_equal(CCI_EINVAL, EINVAL);
    assert_int_equal(CCI_EMMSGSIZE, EMSGSIZE);
    assert_int_equal(CCI_EMSGSIZE, EMSGSIZE);
    assert_int_equal(CCI_ECONNREFUSED, ECONNREFUSED);
    assert_int_equal(CCI_EVENT_NONE, 0);
    assert_int_equal(CCI_EVENT_SEND, 1);
    assert_int_equal(CCI_EVENT_ENDPOINT_DEVICE_FAILED, 7);
    assert_int_equal(CCI_CONN_ATTR_RO, 0);
    assert_int_equal(CCI_CONN_ATTR_UU_MC_RX, 4);
    assert_int_equal(CCI_OPT_ENDPT_SEND_TIMEOUT, 0);
    assert_int_equal(CCI_OPT_CONN_KEEPALIVE_TIMEOUT, 7);
    assert_int_equal(CCI_FLAG_BLOCKING, 1);
    assert_int_equal(CCI_FLAG_NO_COPY, 2);
    assert_int_equal(CCI_FLAG_SILENT, 8);
    assert_int_equal(CCI_FLAG_READ, 16);
    assert_int_equal(CCI_FLAG_WRITE, 32);
    assert_int_equal(CCI_FLAG_FENCE, 64);
    assert_int_equal(CCI_CONN_REQ_LEN, 1024);
}

TEST(versions, ANYWHERE, "a program that was written for ABI version 1 runs") {
    uint32_t caps = 0;
    pair_t pair;
    (void)state;
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    assert_int_equal(cci_setup(&test_setup), CCI_SUCCESS);
    assert_int_equal(cci_init(1, 0, &caps), CCI_SUCCESS);
    pair = open_pair(CCI_CONN_ATTR_RO);
    round_trip(&pair);
}

/* As in the manual's examples: int for a status, a cast of conf_argv, no care about const. */
TEST(manual_style, ANYWHERE, "programs in the style of the manual's examples compile and work") {
    int ret;
    cci_device_t *const *devices, *const *d;
    (void)state;
    ret = cci_get_devices(&devices);
    assert_non_null(cci_strerror(NULL, (cci_status_t)ret));
    for (d = devices; *d != NULL; d++) {
        char **keyval;
        for (keyval = (char **)(uintptr_t)(*d)->conf_argv; *keyval != NULL; keyval++) {
            assert_non_null(strchr(*keyval, '='));
        }
    }
}

TEST(context_changes, ANYWHERE, "a program may change the context of a connection itself") {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    cci_event_t *got;
    static int mine;
    (void)state;
    pair.bc->context = &mine;
    send_patiently(pair.ac, "whose?", 6, 0, CCI_FLAG_SILENT);
    got = await(pair.b, CCI_EVENT_RECV);
    assert_ptr_equal(got->recv.connection->context, &mine);
    drop(got);
    round_trip(&pair);
    assert_ptr_equal(pair.bc->context, &mine);
}

/* ---- endpoints ---------------------------------------------------------------------------------------------------------- */

TEST(fd_null, ANYWHERE, "fd may be NULL for a program that only polls") {
    cci_endpoint_t *one = NULL, *other = NULL;
    (void)state;
    assert_int_equal(cci_create_endpoint(NULL, 0, &one, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint_at(NULL, NULL, 0, &other, NULL), CCI_SUCCESS);
    assert_int_equal(cci_destroy_endpoint(one), CCI_SUCCESS);
    assert_int_equal(cci_destroy_endpoint(other), CCI_SUCCESS);
}

TEST(event_null, ANYWHERE, "cci_get_event() sets the event to NULL when there is none") {
    side_t *a = side_open();
    int i;
    (void)state;
    for (i = 0; i < 100; i++) {
        cci_event_t *got = (cci_event_t *)&context_a;
        assert_int_equal(cci_get_event(a->ep, &got), CCI_EAGAIN);
        assert_null(got);
    }
}

TEST(device_down, ON_SIM, "an endpoint on a device that is down: CCI_ENODEV") {
    cci_device_t *const *devices;
    cci_endpoint_t *one = NULL;
    (void)state;
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    sim_set_up(0, 0);
    sim_set_up(1, 0);
    assert_int_equal(cci_create_endpoint(devices[0], 0, &one, NULL), CCI_ENODEV);
    assert_int_equal(cci_create_endpoint(NULL, 0, &one, NULL), CCI_ENODEV);
    assert_int_equal(cci_create_endpoint_at(devices[0], "7", 0, &one, NULL), CCI_ENODEV);
}

TEST(uri, ANYWHERE, "URIs begin with the transport's name and are given back with free()") {
    side_t *a = side_open();
    int i;
    (void)state;
    for (i = 0; i < 10; i++) {
        char *text = NULL;
        assert_int_equal(cci_get_opt(a->ep, CCI_OPT_ENDPT_URI, &text), CCI_SUCCESS);
        assert_memory_equal(text, on_sim ? "sim://" : on_sisci ? "sisci:" : "udp://", 6);
        assert_int_equal(strncmp(text, a->ep->device->transport, 3), 0);
        free(text);
    }
}

TEST(meaningless_flags, ANYWHERE, "flags that mean nothing to a call are ignored") {
    const int strange = CCI_FLAG_BLOCKING | CCI_FLAG_SILENT | CCI_FLAG_FENCE; /* to calls that know none of them */
    side_t *b = side_open(), *a = &sides[side_count++];
    cci_event_t *got;
    pair_t pair;
    cci_rma_handle_t *here, *there;
    static uint8_t from[100], to[100];
    (void)state;
    memset(a, 0, sizeof *a);
    assert_int_equal(cci_create_endpoint(NULL, 0, &a->ep, NULL), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(a->ep, CCI_OPT_ENDPT_URI, &a->uri), CCI_SUCCESS);
    assert_int_equal(cci_connect(a->ep, b->uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, strange, NULL),
                     CCI_SUCCESS);
    got = await(b, CCI_EVENT_CONNECT_REQUEST);
    assert_int_equal(cci_accept(got, NULL), CCI_SUCCESS);
    drop(got);
    got = await(a, CCI_EVENT_CONNECT);
    pair.ac = got->connect.connection;
    drop(got);
    assert_int_equal(cci_send(pair.ac, "x", 1, NULL, CCI_FLAG_READ | CCI_FLAG_WRITE), CCI_SUCCESS);
    drop(await(b, CCI_EVENT_RECV));
    await_send(a, pair.ac, NULL, CCI_SUCCESS);
    fill(from, sizeof from, 1);
    assert_int_equal(cci_rma_register(a->ep, from, sizeof from, strange, &here), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(b->ep, to, sizeof to, strange | CCI_FLAG_WRITE, &there),
                     CCI_SUCCESS);
    assert_int_equal(cci_rma(pair.ac, NULL, 0, here, 0, there, 0, 100, NULL, CCI_FLAG_NO_COPY | CCI_FLAG_WRITE),
                     CCI_SUCCESS);
    await_send(a, pair.ac, NULL, CCI_SUCCESS);
    assert_true(holds_pattern(to, sizeof to, 1));
}

TEST(finalize_only, ANYWHERE, "cci_finalize() destroys what is left; init, finalize, init works") {
    int i;
    (void)state;
    for (i = 0; i < 5; i++) {
        uint32_t caps;
        pair_t pair = open_pair(CCI_CONN_ATTR_RO);
        round_trip(&pair);
        send_patiently(pair.ac, "left", 4, 0, 0);
        poll_all(); /* leaves events that nobody returns */
        assert_int_equal(cci_finalize(), CCI_SUCCESS);
        assert_int_equal(live_blocks, 0);
        side_forget(pair.a);
        side_forget(pair.b);
        side_count = 0;
        assert_int_equal(cci_setup(&test_setup), CCI_SUCCESS);
        assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
    }
}

TEST(last_words, ANYWHERE, "a server that gets the last message and destroys its endpoint at once: the send completes") {
    int i;
    (void)state;
    for (i = 0; i < 5; i++) {
        pair_t pair = open_pair(i % 2 == 0 ? CCI_CONN_ATTR_RO : CCI_CONN_ATTR_RU);
        send_patiently(pair.ac, "bye", 3, 5, 0);
        drop(await(pair.b, CCI_EVENT_RECV));
        side_close(pair.b);
        await_send(pair.a, pair.ac, as_context(5), CCI_SUCCESS);
        side_close(pair.a);
        side_count = 0;
    }
}

/* ---- connections ----------------------------------------------------------------------------------------------------------- */

TEST(forgetful_caller, ANYWHERE, "what cci_connect() is given need not outlive the call") {
    side_t *a = side_open(), *b = side_open();
    char *where = (char *)need(strlen(b->uri) + 1);
    struct timeval *limit = (struct timeval *)need(sizeof *limit);
    uint8_t *data = (uint8_t *)need(500);
    cci_event_t *got;
    (void)state;
    strcpy(where, b->uri);
    limit->tv_sec = 60;
    fill(data, 500, 2);
    assert_int_equal(cci_connect(a->ep, where, data, 500, CCI_CONN_ATTR_RO, NULL, 0, limit), CCI_SUCCESS);
    memset(where, 'x', strlen(where));
    memset(data, 0, 500);
    memset(limit, 0, sizeof *limit);
    free(where);
    free(data);
    free(limit);
    got = await(b, CCI_EVENT_CONNECT_REQUEST);
    assert_int_equal(got->request.data_len, 500);
    assert_true(holds_pattern(got->request.data_ptr, 500, 2));
    assert_int_equal(cci_accept(got, NULL), CCI_SUCCESS);
    drop(got);
    got = await(a, CCI_EVENT_CONNECT);
    assert_int_equal(got->connect.status, CCI_SUCCESS);
    drop(got);
}

TEST(failed_contexts, ANYWHERE, "contexts are there also when the status is a failure") {
    side_t *a = side_open(), *b = side_open();
    struct timeval soon = {0, 200000};
    cci_event_t *got;
    (void)state;
    assert_int_equal(cci_connect(a->ep, b->uri, NULL, 0, CCI_CONN_ATTR_RO, &context_a, 0, NULL), CCI_SUCCESS);
    got = await(b, CCI_EVENT_CONNECT_REQUEST);
    assert_int_equal(cci_reject(got), CCI_SUCCESS);
    drop(got);
    got = await(a, CCI_EVENT_CONNECT);
    assert_int_equal(got->connect.status, CCI_ECONNREFUSED);
    assert_ptr_equal(got->connect.context, &context_a);
    assert_null(got->connect.connection);
    drop(got);
    b->deaf = 1;
    assert_int_equal(cci_connect(a->ep, b->uri, NULL, 0, CCI_CONN_ATTR_RO, &context_b, 0, &soon), CCI_SUCCESS);
    got = await(a, CCI_EVENT_CONNECT);
    assert_int_equal(got->connect.status, CCI_ETIMEDOUT);
    assert_ptr_equal(got->connect.context, &context_b);
    assert_null(got->connect.connection);
    drop(got);
}

TEST(late_decision, ANYWHERE, "a server may decide later, and keep the request event beyond the ACCEPT event") {
    side_t *a = side_open(), *b = side_open();
    cci_event_t *requests[8], *got;
    int i;
    (void)state;
    for (i = 0; i < 8; i++) {
        assert_int_equal(cci_connect(a->ep, b->uri, &i, sizeof i, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
        requests[i] = await(b, CCI_EVENT_CONNECT_REQUEST);
    }
    for (i = 7; i >= 0; i--) {
        assert_int_equal(cci_accept(requests[i], as_context((uintptr_t)i)), CCI_SUCCESS);
        got = await(b, CCI_EVENT_ACCEPT);
        assert_int_equal(got->accept.status, CCI_SUCCESS);
        assert_ptr_equal(got->accept.context, as_context((uintptr_t)i));
        drop(got);
        got = await(a, CCI_EVENT_CONNECT);
        assert_int_equal(got->connect.status, CCI_SUCCESS);
        drop(got);
    }
    for (i = 0; i < 8; i++) {
        assert_int_equal(requests[i]->request.data_len, sizeof i);
        assert_memory_equal(requests[i]->request.data_ptr, &i, sizeof i);
        drop(requests[i]);
    }
}

TEST(disconnect_in_event, ANYWHERE, "a program may disconnect while it handles an event of the connection") {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    cci_event_t *got;
    (void)state;
    send_patiently(pair.ac, "quit", 4, 0, CCI_FLAG_SILENT);
    got = await(pair.b, CCI_EVENT_RECV);
    assert_int_equal(cci_disconnect(got->recv.connection), CCI_SUCCESS);
    assert_memory_equal(got->recv.ptr, "quit", 4);
    drop(got);
    assert_int_equal(cci_disconnect(pair.ac), CCI_SUCCESS);
    elapse(5 * MILLISECOND_NS);
    pair = connect_sides(pair.a, pair.b, CCI_CONN_ATTR_RO);
    round_trip(&pair);
}

static size_t greetings;
static int greeted_too_early;
static cci_connection_t *known[2];

static int greet(side_t *side, cci_event_t *got) {
    cci_connection_t *fresh = NULL;
    if (got->type == CCI_EVENT_CONNECT_REQUEST) {
        assert_int_equal(cci_accept(got, NULL), CCI_SUCCESS);
    } else if (got->type == CCI_EVENT_ACCEPT) {
        fresh = got->accept.connection;
    } else if (got->type == CCI_EVENT_CONNECT) {
        fresh = got->connect.connection;
    } else if (got->type == CCI_EVENT_RECV) {
        greeted_too_early += got->recv.connection != known[side == &sides[1]];
        greetings++;
    }
    drop(got);
    if (fresh != NULL) {
        known[side == &sides[1]] = fresh;
        assert_int_equal(cci_send(fresh, "welcome", 7, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    }
    return 1;
}

TEST(greeting, ANYWHERE, "a server that sends as soon as it has accepted: the message comes after CONNECT") {
    int i;
    (void)state;
    for (i = 0; i < 20; i++) {
        side_t *a = side_open(), *b = side_open();
        greetings = 0;
        greeted_too_early = 0;
        known[0] = known[1] = NULL;
        a->handler = b->handler = greet;
        assert_int_equal(cci_connect(a->ep, b->uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
        AWAIT(greetings == 2);
        assert_int_equal(greeted_too_early, 0);
        side_close(a);
        side_close(b);
        side_count = 0;
    }
}

/* ---- messages ------------------------------------------------------------------------------------------------------------------ */

TEST(deep_queue, ANYWHERE, "hundreds of messages can be sent without getting events in between") {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    uintptr_t i;
    (void)state;
    for (i = 0; i < 400; i++) {
        assert_int_equal(cci_send(pair.ac, &i, sizeof i, as_context(i), 0), CCI_SUCCESS);
    }
    for (i = 0; i < 400; i++) {
        cci_event_t *got = await(pair.b, CCI_EVENT_RECV);
        assert_memory_equal(got->recv.ptr, &i, sizeof i);
        drop(got);
    }
    for (i = 0; i < 400; i++) {
        await_send(pair.a, pair.ac, as_context(i), CCI_SUCCESS);
    }
}

TEST(deep_queue_large, ANYWHERE, "hundreds of the largest messages can be sent without getting events in between") {
    pair_t pair = open_pair(CCI_CONN_ATTR_RU);
    uint32_t size = pair.ac->max_send_size;
    uint8_t *bytes = (uint8_t *)need(size);
    uintptr_t i;
    (void)state;
    for (i = 0; i < 300; i++) {
        fill(bytes, size, 1);
        assert_int_equal(cci_send(pair.ac, bytes, size, as_context(i), 0), CCI_SUCCESS);
        memset(bytes, 0, size);
    }
    for (i = 0; i < 300; i++) {
        cci_event_t *got = await(pair.b, CCI_EVENT_RECV);
        assert_true(holds_pattern(got->recv.ptr, size, 1));
        drop(got);
    }
    free(bytes);
}

TEST(buffers_come_back, ANYWHERE, "a program with 200 messages under way that takes CCI_ENOBUFS for an error never sees it") {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    uint32_t sent = 0, completed = 0;
    patience_t patience = be_patient();
    (void)state;
    while (completed < 5000) {
        cci_event_t *got;
        while (sent < 5000 && sent - completed < 200) {
            assert_int_equal(cci_send(pair.ac, "no error", 8, NULL, 0), CCI_SUCCESS);
            sent++;
        }
        poll_all();
        while ((got = take(pair.a, CCI_EVENT_SEND)) != NULL) {
            assert_int_equal(got->send.status, CCI_SUCCESS);
            drop(got);
            completed++;
        }
        while ((got = take(pair.b, CCI_EVENT_RECV)) != NULL) {
            drop(got);
        }
        still_patient(&patience, "5,000 messages");
    }
}

TEST(hoarder, ANYWHERE, "a program that returns its SEND events late does no harm") {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    cci_event_t *kept[150];
    int i;
    (void)state;
    for (i = 0; i < 150; i++) {
        send_patiently(pair.ac, "kept", 4, 1, 0);
        drop(await(pair.b, CCI_EVENT_RECV));
        kept[i] = await(pair.a, CCI_EVENT_SEND);
        assert_int_equal(kept[i]->send.status, CCI_SUCCESS);
    }
    for (i = 149; i >= 0; i--) {
        assert_ptr_equal(kept[i]->send.connection, pair.ac);
        drop(kept[i]);
    }
    round_trip(&pair);
}

TEST(echo, ANYWHERE, "a server that changes a message in place and sends it from there, then returns the event") {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    int i;
    (void)state;
    for (i = 0; i < 200; i++) {
        cci_event_t *got;
        send_patiently(pair.ac, "echo?", 5, 0, CCI_FLAG_SILENT);
        got = await(pair.b, CCI_EVENT_RECV);
        ((char *)(uintptr_t)got->recv.ptr)[4] = '!';
        send_patiently(pair.bc, got->recv.ptr, got->recv.len, 0, CCI_FLAG_SILENT);
        drop(got); /* the message was copied */
        got = await(pair.a, CCI_EVENT_RECV);
        assert_int_equal(got->recv.len, 5);
        assert_memory_equal(got->recv.ptr, "echo!", 5);
        drop(got);
    }
}

/* ---- remote memory ---------------------------------------------------------------------------------------------------------------- */

/* What programs send to each other: the handle's bytes somewhere in a structure, here at an odd place. */
typedef struct offer {
    char kind;
    char handle[sizeof(struct cci_rma_handle)];
    char length[8];
} offer_t;

TEST(copied_handles, ANYWHERE, "RMA handles are copied, sent about, kept in odd places, and deregistered with a copy") {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    static uint8_t from[3000], to[3000];
    cci_rma_handle_t *original;
    struct cci_rma_handle here, there;
    offer_t offer;
    cci_event_t *got;
    (void)state;
    assert_int_equal(sizeof here, 32);
    fill(from, sizeof from, 3);
    memset(to, 0, sizeof to);
    assert_int_equal(cci_rma_register(pair.b->ep, to, sizeof to, CCI_FLAG_WRITE, &original), CCI_SUCCESS);
    memset(&offer, 0, sizeof offer);
    memcpy(offer.handle, original, sizeof offer.handle);
    there = *original;
    send_patiently(pair.bc, &offer, sizeof offer, 0, CCI_FLAG_SILENT);
    assert_int_equal(cci_rma_register(pair.a->ep, from, sizeof from, 0, &original), CCI_SUCCESS);
    here = *original;
    got = await(pair.a, CCI_EVENT_RECV);
    /* used where it lies in the receive buffer, which begins 8-byte aligned: one byte after that */
    memmove((char *)(uintptr_t)got->recv.ptr, ((const offer_t *)got->recv.ptr)->handle, sizeof offer.handle);
    assert_int_equal(cci_rma(pair.ac, NULL, 0, &here, 0, (cci_rma_handle_t *)(uintptr_t)got->recv.ptr, 0, sizeof from,
                             as_context(1), CCI_FLAG_WRITE),
                     CCI_SUCCESS);
    drop(got);
    await_send(pair.a, pair.ac, as_context(1), CCI_SUCCESS);
    assert_true(holds_pattern(to, sizeof to, 3));
    assert_int_equal(cci_rma_deregister(pair.a->ep, &here), CCI_SUCCESS);
    assert_int_equal(cci_rma_deregister(pair.b->ep, &there), CCI_SUCCESS);
    assert_int_equal(cci_rma_deregister(pair.b->ep, &there), CCI_ERR_RMA_HANDLE);
}

TEST(many_registrations, ANYWHERE, "a program registers and deregisters for each transfer") {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    static uint8_t from[2000], to[2000];
    int i;
    (void)state;
    for (i = 0; i < 300; i++) {
        cci_rma_handle_t *here, *there;
        fill(from, sizeof from, (uint64_t)i);
        assert_int_equal(cci_rma_register(pair.a->ep, from, sizeof from, 0, &here), CCI_SUCCESS);
        assert_int_equal(cci_rma_register(pair.b->ep, to, sizeof to, CCI_FLAG_READ | CCI_FLAG_WRITE, &there), CCI_SUCCESS);
        assert_int_equal(cci_rma(pair.ac, NULL, 0, here, 0, there, 0, sizeof from, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
        await_send(pair.a, pair.ac, NULL, CCI_SUCCESS);
        assert_true(holds_pattern(to, sizeof to, (uint64_t)i));
        assert_int_equal(cci_rma_deregister(pair.b->ep, there), CCI_SUCCESS);
        assert_int_equal(cci_rma_deregister(pair.a->ep, here), CCI_SUCCESS);
    }
}

TEST(registered_together, ANYWHERE, "a program keeps hundreds of registrations at once") {
    side_t *a = side_open();
    static uint8_t memory[400][64];
    cci_rma_handle_t *handles[400];
    int i;
    (void)state;
    for (i = 0; i < 400; i++) {
        assert_int_equal(cci_rma_register(a->ep, memory[i], sizeof memory[i], 0, &handles[i]), CCI_SUCCESS);
    }
    for (i = 0; i < 400; i++) {
        assert_int_equal(cci_rma_deregister(a->ep, handles[i]), CCI_SUCCESS);
    }
}

static const char *place_config;

static void configure(void) {
    snprintf(config_text, sizeof config_text, "%s", place_config);
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : NULL;
    int failures;
    worsen_network = configure;
    on_sim = 1;
    place_config = "[one]\ntransport=sim\ndevice=0\ndefault=1\n[two]\ntransport=sim\ndevice=1\n";
    failures = run_listed_tests("field, simulated", ON_SIM | WHEN_CLEAN, part);
    on_sim = 0;
    place_config = "[lo]\ntransport=udp\ninterface=lo\n";
    failures += run_listed_tests("field, udp", ON_UDP | WHEN_CLEAN, part);
#ifdef __linux__
    on_sisci = 1;
    place_config = "[shm]\ntransport=sisci\n";
    failures += run_listed_tests("field, sisci", ON_SISCI | WHEN_CLEAN, part);
#endif
    return failures != 0;
}
