/* sisci.c - SISCI alone, between two processes of one host: a segment, a DMA queue and an interrupt.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     sisci              offers a segment and waits for the interrupt that says it was written to
 *     sisci TEXT         writes the text into that segment, and interrupts
 */
#define CCI_SISCI_API
#define CCI_SISCI_IMPLEMENTATION
#include "cci_sisci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT = 4711, MY_SEGMENT = 4712, INTERRUPT = 11, SIZE = 4096, TIMEOUT_MS = 10000 };

static sci_error_t outcome;

static void must(const char *what) {
    if (outcome != SCI_ERR_OK) {
        fprintf(stderr, "sisci: can't %s (0x%x)\n", what, (unsigned int)outcome);
        exit(1);
    }
}

static void wait_for_text(sci_desc_t sd) {
    sci_local_segment_t segment;
    sci_local_interrupt_t interrupt;
    sci_map_t map;
    unsigned int number = INTERRUPT;
    const char *text;
    SCICreateSegment(sd, &segment, SEGMENT, SIZE, NULL, NULL, 0, &outcome);
    must("create the segment");
    text = (const char *)SCIMapLocalSegment(segment, &map, 0, SIZE, NULL, 0, &outcome);
    must("map the segment");
    SCICreateInterrupt(sd, &interrupt, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &outcome);
    must("create the interrupt");
    SCIPrepareSegment(segment, 0, 0, &outcome);
    must("prepare the segment");
    SCISetSegmentAvailable(segment, 0, 0, &outcome);
    must("offer the segment");
    printf("ready\n");
    fflush(stdout);
    SCIWaitForInterrupt(interrupt, SCI_INFINITE_TIMEOUT, 0, &outcome);
    must("wait for the interrupt");
    printf("received: %.*s\n", SIZE, text); /* who writes here may have forgotten the end of the text */
    do { /* the other process still holds the interrupt for a moment */
        SCIWaitForLocalSegmentEvent(segment, NULL, NULL, 10, 0, &outcome);
        SCIRemoveInterrupt(interrupt, 0, &outcome);
    } while (outcome == SCI_ERR_BUSY);
    SCIUnmapSegment(map, 0, &outcome);
    SCIRemoveSegment(segment, SCI_FLAG_FORCE_REMOVE, &outcome);
    must("remove the segment");
}

static void send_text(sci_desc_t sd, const char *given) {
    sci_local_segment_t source;
    sci_remote_segment_t target;
    sci_remote_interrupt_t interrupt;
    sci_dma_queue_t queue;
    sci_map_t map;
    unsigned int node;
    char *text;
    SCIGetLocalNodeId(0, &node, 0, &outcome);
    must("tell the number of this node");
    SCIConnectSegment(sd, &target, node, SEGMENT, 0, NULL, NULL, TIMEOUT_MS, 0, &outcome);
    must("connect to the segment; is the other process running?");
    SCIConnectInterrupt(sd, &interrupt, node, 0, INTERRUPT, TIMEOUT_MS, 0, &outcome);
    must("connect to the interrupt");
    SCICreateSegment(sd, &source, MY_SEGMENT, SIZE, NULL, NULL, SCI_FLAG_PRIVATE, &outcome);
    must("create a segment to send from");
    SCIPrepareSegment(source, 0, SCI_FLAG_DMA_SOURCE_ONLY, &outcome);
    text = (char *)SCIMapLocalSegment(source, &map, 0, SIZE, NULL, 0, &outcome);
    must("map it");
    strncpy(text, given, SIZE - 1);
    SCICreateDMAQueue(sd, &queue, 0, 1, 0, &outcome);
    must("create a DMA queue");
    SCIEnqueueDMATransfer(queue, source, target, 0, 0, SIZE, 0, &outcome);
    must("queue the transfer");
    SCIPostDMAQueue(queue, NULL, NULL, 0, &outcome);
    must("start the transfer");
    if (SCIWaitForDMAQueue(queue, TIMEOUT_MS, 0, &outcome) != SCI_DMAQUEUE_DONE) {
        fprintf(stderr, "sisci: the transfer failed\n");
        exit(1);
    }
    SCITriggerInterrupt(interrupt, 0, &outcome);
    must("interrupt");
    SCIRemoveDMAQueue(queue, 0, &outcome);
    SCIUnmapSegment(map, 0, &outcome);
    SCIRemoveSegment(source, 0, &outcome);
    SCIDisconnectInterrupt(interrupt, 0, &outcome);
    SCIDisconnectSegment(target, 0, &outcome);
    must("leave");
}

int main(int argc, char **argv) {
    sci_desc_t sd;
    SCIInitialize(0, &outcome);
    SCIOpen(&sd, 0, &outcome);
    must("open a device");
    if (argc > 1) {
        send_text(sd, argv[1]);
    } else {
        wait_for_text(sd);
    }
    SCIClose(sd, 0, &outcome);
    must("close the device");
    SCITerminate();
    return 0;
}
