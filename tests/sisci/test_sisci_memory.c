/* test_sisci_memory.c - SISCI beside CCI in one program, with its memory and log: every allocation fails once.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CCI_SISCI_API
#define CCI_IMPLEMENTATION
#include "cci_sisci.h"

#include "cci.h"

enum { ID = 0x300, SIZE = 4096, PATIENCE_MS = 20000 };

static int allocations, failing, blocks, lines;

static void *allocate(void *user, size_t size) {
    (void)user;
    if (__atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED) == failing) {
        return NULL;
    }
    __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
    return malloc(size);
}

static void release(void *user, void *memory) {
    (void)user;
    __atomic_sub_fetch(&blocks, 1, __ATOMIC_RELAXED);
    free(memory);
}

static void listen_to_log(void *user, int level, const char *text) {
    (void)user, (void)level;
    assert_true(strlen(text) > 0);
    __atomic_add_fetch(&lines, 1, __ATOMIC_RELAXED);
}

/* A failure of this kind is what must happen when memory runs out; all others are the test's. */
static int is_good(sci_error_t error) {
    if (error == SCI_ERR_OK) {
        return 1;
    }
    assert_true(error == SCI_ERR_NOSPC || error == SCI_ERR_SYSTEM || error == SCI_ERR_CONNECTION_REFUSED ||
                error == SCI_ERR_NOT_CONNECTED);
    return 0;
}

static void transfer(sci_desc_t sd, sci_remote_segment_t remote) {
    sci_local_segment_t source;
    sci_dma_queue_t dq;
    sci_map_t here, there;
    sci_sequence_t sequence;
    sci_block_transfer_t block;
    sci_error_t error;
    SCICreateSegment(sd, &source, 0, SIZE, NULL, NULL, SCI_FLAG_PRIVATE, &error);
    if (!is_good(error)) return;
    SCIPrepareSegment(source, 0, 0, &error);
    SCICreateDMAQueue(sd, &dq, 0, 4, 0, &error);
    if (is_good(error)) {
        SCIEnqueueDMATransfer(dq, source, remote, 0, 0, SIZE, 0, &error);
        if (is_good(error)) {
            SCIPostDMAQueue(dq, NULL, NULL, 0, &error);
            assert_int_equal(error, SCI_ERR_OK);
            SCIWaitForDMAQueue(dq, PATIENCE_MS, 0, &error);
            assert_int_equal(error, SCI_ERR_OK);
        }
        SCIRemoveDMAQueue(dq, 0, &error);
        assert_int_equal(error, SCI_ERR_OK);
    }
    SCIMapLocalSegment(source, &here, 0, SIZE, NULL, 0, &error);
    if (is_good(error)) {
        SCIMapRemoteSegment(remote, &there, 0, SIZE, NULL, 0, &error);
        if (is_good(error)) {
            SCICreateMapSequence(there, &sequence, 0, &error);
            if (is_good(error)) SCIRemoveSequence(sequence, 0, &error);
            SCITransferBlockAsync(here, 0, there, 0, SIZE, &block, NULL, NULL, 0, &error);
            if (is_good(error)) SCIWaitForBlockTransfer(block, PATIENCE_MS, 0, &error);
            SCIUnmapSegment(there, 0, &error);
            assert_int_equal(error, SCI_ERR_OK);
        }
        SCIUnmapSegment(here, 0, &error);
        assert_int_equal(error, SCI_ERR_OK);
    }
    SCIRemoveSegment(source, 0, &error);
    assert_int_equal(error, SCI_ERR_OK);
}

static void interrupt(sci_desc_t sd) {
    sci_local_interrupt_t local;
    sci_remote_interrupt_t remote;
    sci_local_data_interrupt_t data;
    unsigned int number;
    sci_error_t error;
    SCICreateInterrupt(sd, &local, 0, &number, NULL, NULL, 0, &error);
    if (is_good(error)) {
        SCIConnectInterrupt(sd, &remote, CCI__SCI_NODE, 0, number, PATIENCE_MS, 0, &error);
        if (is_good(error)) SCIDisconnectInterrupt(remote, 0, &error);
        do { /* the device hears of the end of a connection that failed in a moment */
            SCIRemoveInterrupt(local, 0, &error);
        } while (error == SCI_ERR_BUSY);
        assert_int_equal(error, SCI_ERR_OK);
    }
    SCICreateDataInterrupt(sd, &data, 0, &number, NULL, NULL, 0, &error);
    if (is_good(error)) SCIRemoveDataInterrupt(data, 0, &error);
}

static void live(void) {
    sci_desc_t sd;
    sci_local_segment_t local, attached;
    sci_remote_segment_t remote;
    sci_error_t error;
    SCIOpen(&sd, 0, &error);
    if (!is_good(error)) return;
    SCICreateSegment(sd, &local, ID, SIZE, NULL, NULL, 0, &error);
    if (is_good(error)) {
        SCIPrepareSegment(local, 0, 0, &error);
        SCISetSegmentAvailable(local, 0, 0, &error);
        SCIShareSegment(local, 0, &error);
        SCIConnectSegment(sd, &remote, CCI__SCI_NODE, ID, 0, NULL, NULL, PATIENCE_MS, 0, &error);
        if (is_good(error)) {
            transfer(sd, remote);
            SCIDisconnectSegment(remote, 0, &error);
            assert_int_equal(error, SCI_ERR_OK);
        }
        SCIAttachLocalSegment(sd, &attached, ID, NULL, NULL, NULL, 0, &error);
        if (is_good(error)) {
            SCIRemoveSegment(attached, 0, &error);
            assert_int_equal(error, SCI_ERR_OK);
        }
        SCIRemoveSegment(local, SCI_FLAG_FORCE_REMOVE, &error);
        assert_int_equal(error, SCI_ERR_OK);
    }
    interrupt(sd);
    SCIClose(sd, 0, &error);
    assert_int_equal(error, SCI_ERR_OK);
}

static void test_every_allocation_may_fail_and_nothing_leaks(void **state) {
    char directory[] = "/dev/shm/cci-test-XXXXXX";
    cci_setup_t setup;
    sci_error_t error;
    sci_desc_t sd;
    (void)state;
    alarm(120);
    assert_non_null(mkdtemp(directory));
    setenv("CCI_SISCI_DIR", directory, 1);
    memset(&setup, 0, sizeof setup);
    setup.alloc = allocate;
    setup.release = release;
    setup.log = listen_to_log;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    SCIInitialize(0, &error);
    do {
        failing++;
        allocations = 0;
        live();
        if (blocks != 0) fail_msg("%d blocks are left when allocation %d fails", blocks, failing);
    } while (allocations >= failing);
    assert_true(failing > 20);
    printf("%d allocations failed\n", failing - 1);
    setenv("CCI_SISCI_DIR", "/dev/null", 1);
    failing = 0;
    SCIOpen(&sd, 0, &error);
    assert_int_equal(error, SCI_ERR_ACCESS);
    assert_true(lines > 0);
    SCITerminate();
    assert_int_equal(rmdir(directory), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation_may_fail_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
