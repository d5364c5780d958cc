/* test_evq.c - events and receive buffers, alone.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define CCI_EVQ_IMPLEMENTATION
#include "cci.h"

#define BUFFERS 16u
#define EVENTS 8u
#define STRIDE 128u

static cci_evq_t evq;
static cci_evq_buffer_t buffers[BUFFERS];
static cci_evq_event_t events[EVENTS], control[2];
static uint8_t data[BUFFERS * STRIDE];
static cci_endpoint_base_t endpoint;

static int setup(void **state) {
    (void)state;
    cci_evq_init(&evq);
    cci_evq_add_events(&evq, &endpoint, CCI_EVQ_RECV, events, EVENTS);
    cci_evq_add_events(&evq, &endpoint, CCI_EVQ_CONTROL, control, 2);
    cci_evq_add_buffers(&evq, buffers, data, STRIDE, BUFFERS);
    evq.recv_limit = EVENTS;
    return 0;
}

static uint32_t take_all(cci_evq_buffer_t **taken) {
    uint32_t n = 0;
    while ((taken[n] = cci_evq_take_buffer(&evq)) != NULL) assert_true(++n <= BUFFERS);
    return n;
}

static void test_each_buffer_is_given_once_and_with_memory_of_its_own(void **state) {
    cci_evq_buffer_t *taken[BUFFERS + 1];
    uint8_t seen[BUFFERS] = {0};
    uint32_t n = take_all(taken), i;
    (void)state;
    assert_int_equal(n, BUFFERS);
    for (i = 0; i < n; i++) {
        assert_int_equal(taken[i]->refs, 1);
        assert_int_equal((taken[i]->data - data) % STRIDE, 0);
        seen[(taken[i]->data - data) / STRIDE]++;
    }
    for (i = 0; i < BUFFERS; i++) assert_int_equal(seen[i], 1);
    assert_int_equal(evq.free_buffer_count, 0);
    for (i = 0; i < n; i++) cci_evq_release_buffer(&evq, taken[i]);
    assert_int_equal(evq.free_buffer_count, BUFFERS);
}

static void test_a_buffer_is_free_when_its_last_message_is_returned(void **state) {
    cci_evq_buffer_t *buffer = cci_evq_take_buffer(&evq);
    cci_evq_event_t *a = cci_evq_take_event(&evq, CCI_EVQ_RECV), *b = cci_evq_take_event(&evq, CCI_EVQ_RECV);
    (void)state;
    assert_true(a && b && a != b);
    assert_ptr_equal(a->base.endpoint, &endpoint);
    a->buffer = b->buffer = buffer;
    buffer->refs += 2;
    cci_evq_release_buffer(&evq, buffer);
    cci_evq_return_event(&evq, b);
    assert_int_equal(evq.free_buffer_count, BUFFERS - 1);
    cci_evq_return_event(&evq, a);
    assert_int_equal(evq.free_buffer_count, BUFFERS);
    assert_int_equal(evq.recv_out, 0);
    assert_null(a->buffer);
}

static void test_events_are_limited_by_their_pool_and_by_the_limit(void **state) {
    cci_evq_event_t *taken[EVENTS];
    uint32_t i;
    (void)state;
    evq.recv_limit = 3;
    for (i = 0; i < 3; i++) assert_non_null(taken[i] = cci_evq_take_event(&evq, CCI_EVQ_RECV));
    assert_null(cci_evq_take_event(&evq, CCI_EVQ_RECV));
    evq.recv_limit = EVENTS; /* raised while in use */
    for (; i < EVENTS; i++) assert_non_null(taken[i] = cci_evq_take_event(&evq, CCI_EVQ_RECV));
    evq.recv_limit = 100;
    assert_null(cci_evq_take_event(&evq, CCI_EVQ_RECV));
    evq.recv_limit = 2; /* lowered while in use */
    for (i = 0; i < EVENTS - 2; i++) {
        cci_evq_return_event(&evq, taken[i]);
        assert_null(cci_evq_take_event(&evq, CCI_EVQ_RECV));
    }
    cci_evq_return_event(&evq, taken[i]);
    assert_non_null(cci_evq_take_event(&evq, CCI_EVQ_RECV));
    assert_non_null(cci_evq_take_event(&evq, CCI_EVQ_CONTROL)); /* pools of their own */
    assert_non_null(cci_evq_take_event(&evq, CCI_EVQ_CONTROL));
    assert_null(cci_evq_take_event(&evq, CCI_EVQ_CONTROL));
}

static void test_limits_of_buffers_move_while_they_are_in_use(void **state) {
    cci_evq_buffer_t *taken[BUFFERS + 1];
    uint32_t n = take_all(taken), i;
    (void)state;
    cci_evq_limit_buffers(&evq, 4); /* all are out: they are parked as they come back */
    for (i = 0; i < n; i++) cci_evq_release_buffer(&evq, taken[i]);
    assert_int_equal(evq.free_buffer_count, 4);
    assert_int_equal(take_all(taken), 4);
    cci_evq_limit_buffers(&evq, 10);
    n = 4 + take_all(taken + 4);
    assert_int_equal(n, 10);
    cci_evq_limit_buffers(&evq, 2);
    cci_evq_limit_buffers(&evq, 10); /* and back, before any returned */
    for (i = 0; i < n; i++) cci_evq_release_buffer(&evq, taken[i]);
    assert_int_equal(evq.free_buffer_count, 10);
    cci_evq_limit_buffers(&evq, 1000); /* no more than there are */
    assert_int_equal(take_all(taken), BUFFERS);
}

static void test_limits_moved_at_random_lose_no_buffer(void **state) {
    cci_evq_buffer_t *out[BUFFERS];
    uint32_t n = 0, i, limit = BUFFERS, random = 1;
    (void)state;
    for (i = 0; i < 100000; i++) {
        random = random * 1103515245u + 12345u;
        switch (random >> 16 & 7) {
        case 0:
            limit = (random >> 20) % (BUFFERS + 4);
            cci_evq_limit_buffers(&evq, limit);
            break;
        case 1: case 2: case 3:
            if (n > 0) cci_evq_release_buffer(&evq, out[--n]);
            break;
        default: {
            cci_evq_buffer_t *buffer = cci_evq_take_buffer(&evq);
            if (buffer) {
                out[n++] = buffer;
                assert_true(n <= cci__min32(limit, BUFFERS));
            } else {
                assert_true(n >= cci__min32(limit, BUFFERS));
            }
        }
        }
    }
    while (n > 0) cci_evq_release_buffer(&evq, out[--n]);
    cci_evq_limit_buffers(&evq, BUFFERS);
    assert_int_equal(evq.free_buffer_count, BUFFERS);
}

static void test_queues_give_in_the_order_of_posting(void **state) {
    uint32_t i, k;
    (void)state;
    assert_null(cci_evq_next(&evq.done));
    for (k = 0; k < 3; k++) {
        for (i = 0; i < EVENTS; i++) cci_evq_post(i & 1 ? &evq.urgent : &evq.done, &events[i]);
        for (i = 0; i < EVENTS; i += 2) assert_ptr_equal(cci_evq_next(&evq.done), &events[i]);
        assert_null(cci_evq_next(&evq.done));
        cci_evq_post(&evq.urgent, &events[0]);
        for (i = 1; i < EVENTS; i += 2) assert_ptr_equal(cci_evq_next(&evq.urgent), &events[i]);
        assert_ptr_equal(cci_evq_next(&evq.urgent), &events[0]);
        assert_null(cci_evq_next(&evq.urgent));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_each_buffer_is_given_once_and_with_memory_of_its_own, setup),
        cmocka_unit_test_setup(test_a_buffer_is_free_when_its_last_message_is_returned, setup),
        cmocka_unit_test_setup(test_events_are_limited_by_their_pool_and_by_the_limit, setup),
        cmocka_unit_test_setup(test_limits_of_buffers_move_while_they_are_in_use, setup),
        cmocka_unit_test_setup(test_limits_moved_at_random_lose_no_buffer, setup),
        cmocka_unit_test_setup(test_queues_give_in_the_order_of_posting, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
