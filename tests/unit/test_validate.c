/* test_validate.c - CCI_VALIDATE: each mistake is told with the name of the function, and nothing is touched.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define _GNU_SOURCE 1
#define CCI_VALIDATE
#define CCI_IMPLEMENTATION
#include "cci.h"

#include "tests/support/harness.h"

#define GONE "no handle: it has ended, or never was one"

/* The log of what has just been done is this text, and nothing else. */
static void told(const char *text) {
    char line[600];
    snprintf(line, sizeof line, "%s%s", text, text[0] != '\0' ? "\n" : "");
    assert_string_equal(log_text, line);
    log_text[0] = '\0';
}

#define REFUSED(call, text)                                                                                           \
    do {                                                                                                              \
        assert_int_equal(call, CCI_EINVAL);                                                                           \
        told(text);                                                                                                   \
    } while (0)

static void a_program_without_mistakes_is_told_nothing(void **state) {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    static char bytes[4096];
    struct iovec pieces[2] = {{bytes, 10}, {bytes + 100, 20}};
    int i;
    (void)state;
    send_patiently(pair.ac, "hello", 5, 1, 0);
    send_patiently(pair.ac, bytes, 1000, 2, CCI_FLAG_NO_COPY);
    assert_int_equal(cci_sendv(pair.ac, pieces, 2, as_context(3), CCI_FLAG_NO_COPY), CCI_SUCCESS);
    assert_int_equal(cci_send(pair.ac, bytes, 10, NULL, CCI_FLAG_NO_COPY | CCI_FLAG_BLOCKING), CCI_SUCCESS);
    await_send(pair.a, pair.ac, as_context(1), CCI_SUCCESS);
    await_send(pair.a, pair.ac, as_context(2), CCI_SUCCESS);
    await_send(pair.a, pair.ac, as_context(3), CCI_SUCCESS);
    memset(bytes, 1, sizeof bytes);
    for (i = 0; i < 4; i++) drop(await(pair.b, CCI_EVENT_RECV));
    assert_int_equal(cci_disconnect(pair.ac), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(pair.bc), CCI_SUCCESS);
    side_close(pair.a);
    side_close(pair.b);
    told("");
    side_count = 0;
}

static void an_event_is_returned_once(void **state) {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    cci_event_t *event, made_up;
    (void)state;
    send_patiently(pair.ac, "x", 1, 0, CCI_FLAG_SILENT);
    event = await(pair.b, CCI_EVENT_RECV);
    drop(event);
    REFUSED(cci_return_event(event),
            "cci_return_event(): the event was returned before, or did not come from cci_get_event()");
    memset(&made_up, 0, sizeof made_up);
    REFUSED(cci_return_event(&made_up),
            "cci_return_event(): the event was returned before, or did not come from cci_get_event()");
    REFUSED(cci_accept(event, NULL), "cci_accept(): the event was returned before, or did not come from cci_get_event()");
    REFUSED(cci_return_event((cci_event_t *)(void *)pair.b->ep),
            "cci_return_event(): what was passed as an event is an endpoint");
    REFUSED(cci_return_event((cci_event_t *)(uintptr_t)pair.bc),
            "cci_return_event(): what was passed as an event is a connection");
    send_patiently(pair.ac, "y", 1, 0, CCI_FLAG_SILENT); /* nothing is broken */
    drop(await(pair.b, CCI_EVENT_RECV));
    told("");
}

static void a_request_is_answered_once(void **state) {
    side_t *a = side_open(), *b = side_open();
    cci_event_t *event;
    (void)state;
    assert_int_equal(cci_connect(a->ep, b->uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    event = await(b, CCI_EVENT_CONNECT_REQUEST);
    assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
    REFUSED(cci_accept(event, NULL), "cci_accept(): the request was accepted or rejected before");
    REFUSED(cci_reject(event), "cci_reject(): the request was accepted or rejected before");
    REFUSED(cci_accept_data(event, NULL, "x", 1), "cci_accept_data(): the request was accepted or rejected before");
    REFUSED(cci_reject_data(event, "x", 1), "cci_reject_data(): the request was accepted or rejected before");
    drop(event);
    drop(await(b, CCI_EVENT_ACCEPT));
    drop(await(a, CCI_EVENT_CONNECT));
    told("");
}

static void a_handle_is_used_while_it_lasts_and_as_what_it_is(void **state) {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    cci_connection_t *ended = pair.ac, *wrong = (cci_connection_t *)(uintptr_t)pair.a->ep;
    cci_endpoint_t *end = pair.a->ep, *misled = (cci_endpoint_t *)(uintptr_t)pair.bc;
    cci_rma_handle_t *handle, *other;
    cci_event_t *event, *recv;
    static char memory[64];
    struct iovec piece = {memory, 1};
    uint64_t previous, ns;
    uint32_t value = 0;
    void *block;
    (void)state;
    assert_int_equal(cci_rma_register(pair.a->ep, memory, sizeof memory, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle),
                     CCI_SUCCESS);
    send_patiently(pair.ac, "x", 1, 0, CCI_FLAG_SILENT);
    recv = await(pair.b, CCI_EVENT_RECV);

    REFUSED(cci_send(wrong, "x", 1, NULL, 0), "cci_send(): what was passed as a connection is an endpoint");
    REFUSED(cci_send((cci_connection_t *)(void *)recv, "x", 1, NULL, 0),
            "cci_send(): what was passed as a connection is an event");
    REFUSED(cci_get_event(misled, &event), "cci_get_event(): what was passed as an endpoint is a connection");
    REFUSED(cci_connect(misled, "sim://1", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL),
            "cci_connect(): what was passed as an endpoint is a connection");
    REFUSED(cci_rma_register(misled, memory, 1, CCI_FLAG_READ, &other),
            "cci_rma_register(): what was passed as an endpoint is a connection");
    REFUSED(cci_rma_deregister(misled, handle), "cci_rma_deregister(): what was passed as an endpoint is a connection");
    REFUSED(cci_rma_alloc(misled, 1, &block), "cci_rma_alloc(): what was passed as an endpoint is a connection");
    REFUSED(cci_arm_os_handle(misled, 0), "cci_arm_os_handle(): what was passed as an endpoint is a connection");
    REFUSED(cci_next_deadline(misled, &ns), "cci_next_deadline(): what was passed as an endpoint is a connection");

    drop(recv);
    assert_int_equal(cci_disconnect(pair.ac), CCI_SUCCESS);
    REFUSED(cci_disconnect(ended), "cci_disconnect(): what was passed as a connection is " GONE);
    REFUSED(cci_send(ended, "x", 1, NULL, 0), "cci_send(): what was passed as a connection is " GONE);
    REFUSED(cci_sendv(ended, &piece, 1, NULL, 0), "cci_sendv(): what was passed as a connection is " GONE);
    REFUSED(cci_rma(ended, NULL, 0, handle, 0, handle, 0, 1, NULL, CCI_FLAG_WRITE),
            "cci_rma(): what was passed as a connection is " GONE);
    REFUSED(cci_atomic(ended, CCI_ATOMIC_SWAP, 8, handle, 0, 1, 0, &previous, NULL, 0),
            "cci_atomic(): what was passed as a connection is " GONE);
    REFUSED(cci_set_opt((cci_opt_handle_t *)(uintptr_t)ended, CCI_OPT_CONN_SEND_TIMEOUT, &value),
            "cci_set_opt(): what was passed as a connection is " GONE);
    REFUSED(cci_get_opt((cci_opt_handle_t *)(uintptr_t)ended, CCI_OPT_CONN_SEND_TIMEOUT, &value),
            "cci_get_opt(): what was passed as a connection is " GONE);

    side_close(pair.a);
    REFUSED(cci_get_event(end, &event), "cci_get_event(): what was passed as an endpoint is " GONE);
    REFUSED(cci_destroy_endpoint(end), "cci_destroy_endpoint(): there is no such endpoint, or no more");
}

static void memory_that_is_lent_is_not_changed(void **state) {
    static const cci_conn_attribute_t attributes[] = {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU};
    static const char changed[] = "cci_send(): a message with CCI_FLAG_NO_COPY was changed before its completion";
    static char lent[2][600];
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        pair_t pair = open_pair(attributes[i]);
        memset(lent, 1, sizeof lent);
        send_patiently(pair.ac, lent[0], 600, 1, CCI_FLAG_NO_COPY);
        lent[0][599] ^= 1;
        send_patiently(pair.ac, lent[1], 600, 2, CCI_FLAG_NO_COPY);
        await_send(pair.a, pair.ac, as_context(1), CCI_SUCCESS);
        await_send(pair.a, pair.ac, as_context(2), CCI_SUCCESS);
        told(changed);
        lent[1][0] ^= 1; /* it is the program's again */
        send_patiently(pair.ac, lent[1], 600, 2, 0);
        lent[1][0] ^= 1; /* copied */
        await_send(pair.a, pair.ac, as_context(2), CCI_SUCCESS);
        told("");
        if (attributes[i] == CCI_CONN_ATTR_RO) { /* the completion of a later message tells of a silent one */
            send_patiently(pair.ac, lent[0], 600, 3, CCI_FLAG_NO_COPY | CCI_FLAG_SILENT);
            lent[0][0] ^= 1;
            send_patiently(pair.ac, lent[1], 600, 4, CCI_FLAG_NO_COPY);
            await_send(pair.a, pair.ac, as_context(4), CCI_SUCCESS);
            told(changed);
        }
    }
}

static void what_is_kept_is_told(void **state) {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    uint32_t buffers = 4, i;
    cci_event_t *event, *kept[4];
    (void)state;
    assert_int_equal(cci_set_opt(pair.b->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(pair.b->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers), CCI_SUCCESS);
    assert_int_equal(buffers, 4);
    for (i = 0; i < 3; i++) send_patiently(pair.ac, "x", 1, 0, CCI_FLAG_SILENT);
    for (i = 0; i < 3; i++) kept[i] = await(pair.b, CCI_EVENT_RECV);
    told("");
    send_patiently(pair.ac, "x", 1, 0, CCI_FLAG_SILENT);
    kept[3] = await(pair.b, CCI_EVENT_RECV);
    assert_int_equal(cci_get_event(pair.b->ep, &event), CCI_ENOBUFS);
    assert_int_equal(cci_get_event(pair.b->ep, &event), CCI_ENOBUFS);
    told("cci_get_event(): nothing can be received, the program has not returned 4 messages, which take all receive "
         "buffers"); /* once */
    drop(kept[0]);
    drop(kept[1]);
    assert_int_equal(cci_get_event(pair.b->ep, &event), CCI_EAGAIN);
    told("");
    side_close(pair.b);
    told("cci_destroy_endpoint(): the program did not return 2 events of the endpoint");
}

static int start(void **state) {
    on_sim = 1;
    snprintf(config_text, sizeof config_text, "[sim]\ntransport = sim\n");
    return begin_test(state);
}

#define VALIDATE_TEST(name) cmocka_unit_test_setup_teardown(name, start, end_test)

int main(void) {
    const struct CMUnitTest tests[] = {
        VALIDATE_TEST(a_program_without_mistakes_is_told_nothing),
        VALIDATE_TEST(an_event_is_returned_once),
        VALIDATE_TEST(a_request_is_answered_once),
        VALIDATE_TEST(a_handle_is_used_while_it_lasts_and_as_what_it_is),
        VALIDATE_TEST(memory_that_is_lent_is_not_changed),
        VALIDATE_TEST(what_is_kept_is_told),
    };
    return cmocka_run_group_tests_name("test_validate", tests, NULL, NULL);
}
