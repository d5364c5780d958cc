/* test_sisci_programs.c - what programs written for SISCI use beyond the manual: names that came later, single bytes.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#include "tests/support/sisci.h"

static void names_later_than_the_manual(void **state) {
    sci_desc_t sd = open_device();
    sci_local_segment_t segment;
    sci_local_interrupt_t interrupt;
    sci_dma_queue_t dq;
    sci_query_local_segment_t query;
    dis_dma_vec_t piece;
    unsigned int number, i;
    sci_map_t map;
    char *base = NULL;
    (void)state;
    TRUE(strcmp(SCIGetErrorString(SCI_ERR_OK), "SCI_ERR_OK") == 0);
    TRUE(strcmp(SCIGetErrorString(SCI_ERR_TIMEOUT), "SCI_ERR_TIMEOUT") == 0);
    TRUE(strlen(SCIGetErrorString((sci_error_t)1)) > 0);
    OK(SCICreateSegment(sd, &segment, 0, 4096, NULL, NULL, SCI_FLAG_AUTO_ID, &error));
    TRUE(SCIGetLocalSegmentId(segment) == segment->served.id && SCIGetLocalSegmentSize(segment) == 4096);
    OK(base = (char *)SCIMapLocalSegment(segment, &map, 0, 4096, NULL, 0, &error));
    for (i = 0; i < 2; i++) {
        OK(SCICacheSync(map, base + 100, 3996, i ? SCI_FLAG_CACHE_FLUSH : SCI_FLAG_CACHE_INVALIDATE, &error));
    }
    GIVES(SCI_ERR_OUT_OF_RANGE, SCICacheSync(map, base + 100, 3997, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCICacheSync(NULL, base, 4, 0, &error));
    query.segment = segment;
    query.subcommand = SCI_Q_LOCAL_SEGMENT_IOADDR;
    GIVES(SCI_ERR_NOT_IMPLEMENTED, SCIQuery(SCI_Q_LOCAL_SEGMENT, &query, 0, &error));
    GIVES(SCI_ERR_FLAG_NOT_IMPLEMENTED,
          SCICreateInterrupt(sd, &interrupt, 0, &number, NULL, NULL, SCI_FLAG_SHARED_INT, &error));
    OK(SCICreateDMAQueue(sd, &dq, 0, 4, 0, &error));
    memset(&piece, 0, sizeof piece);
    piece.size = 4;
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIStartDmaTransferVec(dq, segment, NULL, 0, &piece, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIStartDmaTransferVec(dq, segment, NULL, DIS_DMA_MAX_VECLEN + 1, &piece, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIStartDmaTransferVec(dq, segment, NULL, 1, &piece, NULL, NULL, 0, &error));
    OK(SCIRemoveDMAQueue(dq, 0, &error));
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIRemoveSegment(segment, 0, &error));
    close_device(sd);
}

/* ---- single bytes ------------------------------------------------------------------------------------------------- */

enum { ODD = 1001, ROOM = 12 };

/* A segment of an odd size, connected to by its own process; a source on its side. */
typedef struct odd {
    sci_desc_t sd;
    sci_local_segment_t to, from;
    sci_remote_segment_t there;
    sci_map_t to_map, from_map, there_map;
    sci_dma_queue_t dq;
    unsigned char *to_bytes, *from_bytes;
    volatile unsigned char *there_bytes;
} odd;

static odd begin_odd(void) {
    odd o;
    unsigned int i;
    o.sd = open_device();
    OK(SCICreateSegment(o.sd, &o.to, 77, ODD, NULL, NULL, 0, &error));
    OK(SCICreateSegment(o.sd, &o.from, 0, ODD, NULL, NULL, SCI_FLAG_PRIVATE, &error));
    OK(SCIPrepareSegment(o.to, 0, 0, &error));
    OK(SCIPrepareSegment(o.from, 0, SCI_FLAG_DMA_SOURCE_ONLY, &error));
    OK(SCISetSegmentAvailable(o.to, 0, 0, &error));
    OK(SCIConnectSegment(o.sd, &o.there, NODE, 77, 0, NULL, NULL, PATIENCE_MS, 0, &error));
    TRUE(SCIGetRemoteSegmentSize(o.there) == ODD && SCIGetLocalSegmentSize(o.to) == ODD);
    OK(o.to_bytes = (unsigned char *)SCIMapLocalSegment(o.to, &o.to_map, 0, ODD, NULL, 0, &error));
    OK(o.from_bytes = (unsigned char *)SCIMapLocalSegment(o.from, &o.from_map, 0, ODD, NULL, 0, &error));
    OK(o.there_bytes = (volatile unsigned char *)SCIMapRemoteSegment(o.there, &o.there_map, 0, ODD, NULL, 0, &error));
    OK(SCICreateDMAQueue(o.sd, &o.dq, 0, 1, 0, &error));
    for (i = 0; i < ODD; i++) {
        o.from_bytes[i] = (unsigned char)(1 + i % 251);
    }
    return o;
}

static void finish_odd(odd *o) {
    OK(SCIRemoveDMAQueue(o->dq, 0, &error));
    OK(SCIUnmapSegment(o->there_map, 0, &error));
    OK(SCIUnmapSegment(o->from_map, 0, &error));
    OK(SCIUnmapSegment(o->to_map, 0, &error));
    OK(SCIDisconnectSegment(o->there, 0, &error));
    OK(SCIRemoveSegment(o->from, 0, &error));
    OK(SCIRemoveSegment(o->to, 0, &error));
    close_device(o->sd);
}

/* Each way in which bytes can go; the last is back again. */
enum { BY_DMA, BY_TRANSFER, BY_ASYNC, BY_COPY, BY_CPY, BY_WRITE, BY_MAP, BY_DMA_BACK, WAYS };

static void go(odd *o, int way, unsigned int from, unsigned int to, unsigned int size) {
    sci_block_transfer_t block = NULL;
    volatile unsigned char *base = NULL;
    sci_map_t map;
    switch (way) {
    case BY_DMA:
        OK(SCIStartDmaTransfer(o->dq, o->from, o->there, from, size, to, NULL, NULL, SCI_FLAG_DMA_WAIT, &error));
        break;
    case BY_DMA_BACK:
        OK(SCIStartDmaTransfer(o->dq, o->from, o->there, from, size, to, NULL, NULL, SCI_FLAG_DMA_WAIT, &error));
        memset(o->from_bytes + from, 0, size);
        OK(SCIStartDmaTransfer(o->dq, o->from, o->there, from, size, to, NULL, NULL, SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_READ, &error));
        break;
    case BY_TRANSFER: OK(SCITransferBlock(o->from_map, from, o->there_map, to, size, 0, &error)); break;
    case BY_ASYNC:
        OK(SCITransferBlockAsync(o->from_map, from, o->there_map, to, size, &block, NULL, NULL, 0, &error));
        OK(SCIWaitForBlockTransfer(block, PATIENCE_MS, 0, &error));
        break;
    case BY_COPY: OK(SCIMemCopy(o->from_bytes + from, o->there_map, to, size, 0, &error)); break;
    case BY_CPY: OK(SCIMemCpy(NULL, o->from_bytes + from, o->there_map, to, size, SCI_FLAG_ERROR_CHECK, &error)); break;
    case BY_WRITE: OK(SCIMemWrite(o->from_bytes + from, o->there_bytes + to, size, 0, &error)); break;
    default:
        OK(base = (volatile unsigned char *)SCIMapRemoteSegment(o->there, &map, to, size, NULL, 0, &error));
        memcpy((void *)(uintptr_t)base, o->from_bytes + from, size);
        OK(SCIUnmapSegment(map, 0, &error));
    }
}

/* From every offset to every offset, with what lies beside it; in the last bytes of the segment too. */
static void single_bytes_go_every_way(void **state) {
    odd o = begin_odd();
    unsigned int from, to, size, i;
    int way;
    (void)state;
    for (way = 0; way < WAYS; way++) {
        for (size = 1; size <= 9; size++) {
            for (from = 0; from < 5; from++) {
                for (to = ODD - ROOM; to + size <= ODD; to++) {
                    memset(o.to_bytes, 0xff, ODD);
                    go(&o, way, from, to, size);
                    for (i = 0; i < ODD; i++) {
                        TRUE(o.to_bytes[i] == (i >= to && i < to + size ? 1 + from + i - to : 0xff));
                    }
                    TRUE(o.from_bytes[from] == 1 + from && o.from_bytes[from + size - 1] == from + size);
                }
            }
        }
    }
    finish_odd(&o);
}

static void the_last_byte_is_the_last(void **state) {
    odd o = begin_odd();
    sci_block_transfer_t block;
    sci_map_t map;
    (void)state;
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIStartDmaTransfer(o.dq, o.from, o.there, 0, 2, ODD - 1, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIStartDmaTransfer(o.dq, o.from, o.there, ODD, 1, 0, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCITransferBlock(o.from_map, 0, o.there_map, ODD - 2, 3, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCITransferBlockAsync(o.from_map, ODD, o.there_map, 0, 1, &block, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIMemCopy(o.from_bytes, o.there_map, ODD - 1, 2, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIMapRemoteSegment(o.there, &map, 1, ODD, NULL, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIMapLocalSegment(o.to, &map, ODD, 1, NULL, 0, &error));
    GIVES(SCI_ERR_SIZE_ALIGNMENT, SCIMapLocalSegment(o.to, &map, 0, 0, NULL, 0, &error));
    GIVES(SCI_ERR_SIZE_ALIGNMENT, SCIStartDmaTransfer(o.dq, o.from, o.there, 0, 0, 0, NULL, NULL, 0, &error));
    finish_odd(&o);
}

/* A flag that shared memory can't honour does not seem to work. */
static void flags_that_nobody_honours_are_refused(void **state) {
    static const unsigned int physical[] = {SCI_FLAG_DMA_PHDMA, SCI_FLAG_DMA_USER_MEM};
    odd o = begin_odd();
    sci_local_interrupt_t interrupt;
    sci_local_data_interrupt_t data_interrupt;
    sci_dma_queue_t dq;
    unsigned int number, i;
    sci_map_t map;
    (void)state;
    for (i = 0; i < 2; i++) {
        GIVES(SCI_ERR_FLAG_NOT_IMPLEMENTED, SCICreateDMAQueue(o.sd, &dq, 0, 1, physical[i], &error));
        GIVES(SCI_ERR_FLAG_NOT_IMPLEMENTED, SCIEnqueueDMATransfer(o.dq, o.from, o.there, 0, 0, 8, physical[i], &error));
        GIVES(SCI_ERR_FLAG_NOT_IMPLEMENTED,
              SCIStartDmaTransfer(o.dq, o.from, o.there, 0, 8, 0, NULL, NULL, SCI_FLAG_DMA_WAIT | physical[i], &error));
    }
    GIVES(SCI_ERR_FLAG_NOT_IMPLEMENTED,
          SCICreateInterrupt(o.sd, &interrupt, 0, &number, NULL, NULL, SCI_FLAG_SHARED_INT, &error));
    GIVES(SCI_ERR_FLAG_NOT_IMPLEMENTED,
          SCICreateInterrupt(o.sd, &interrupt, 0, &number, NULL, NULL, SCI_FLAG_CONDITIONAL_INTERRUPT, &error));
    GIVES(SCI_ERR_FLAG_NOT_IMPLEMENTED,
          SCICreateDataInterrupt(o.sd, &data_interrupt, 0, &number, NULL, NULL, SCI_FLAG_SHARED_INT, &error));
    GIVES(SCI_ERR_FLAG_NOT_IMPLEMENTED,
          SCIMapRemoteSegment(o.there, &map, 0, 8, NULL, SCI_FLAG_UNCONDITIONAL_INTERRUPT_MAP, &error));
    OK(SCIStartDmaTransfer(o.dq, o.from, o.there, 0, 8, 0, NULL, NULL,
                           SCI_FLAG_DMA_WAIT | SCI_FLAG_DMA_SYSDMA | SCI_FLAG_DMA_GLOBAL, &error));
    finish_odd(&o);
}

#define PROGRAM_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(names_later_than_the_manual),
        PROGRAM_TEST(single_bytes_go_every_way),
        PROGRAM_TEST(the_last_byte_is_the_last),
        PROGRAM_TEST(flags_that_nobody_honours_are_refused),
    };
    return cmocka_run_group_tests_name("test_sisci_programs", tests, NULL, NULL);
}
