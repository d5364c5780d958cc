/* test_sisci_programs.c - programs that were written for SISCI run unchanged, each as two processes; names later than the manual.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#include "tests/support/sisci.h"

#include "sisci_program_dma.c"
#include "sisci_program_pio.c"

static void encodes(int in, int out) {
    (void)in, (void)out;
    _exit(encoder_main());
}

static void has_a_camera(int in, int out) {
    (void)in, (void)out;
    _exit(camera_main());
}

static void plays_first(int in, int out) {
    (void)in, (void)out;
    _exit(pingpong_main(0));
}

static void plays_second(int in, int out) {
    (void)in, (void)out;
    _exit(pingpong_main(1));
}

static void run_both(void (*one)(int, int), void (*other)(int, int)) {
    child a = start(one), b = start(other);
    TRUE(end(&a) == 0 && end(&b) == 0);
}

static void an_encoder_that_is_split_by_dma(void **state) {
    (void)state;
    run_both(encodes, has_a_camera);
}

static void a_ping_pong_by_stores(void **state) {
    (void)state;
    run_both(plays_first, plays_second);
}

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

#define PROGRAM_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(an_encoder_that_is_split_by_dma),
        PROGRAM_TEST(a_ping_pong_by_stores),
        PROGRAM_TEST(names_later_than_the_manual),
    };
    return cmocka_run_group_tests_name("test_sisci_programs", tests, NULL, NULL);
}
