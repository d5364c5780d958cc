/* sisci_program_pio.c - a program as people write them for SISCI: a ping-pong by stores (PIO).
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Each process stores a number in the other's segment and waits for the answer in its own.
 *
 *     sisci_program_pio 1 &
 *     sisci_program_pio 0
 */
#include "sisci_api.h"

#include <stdio.h>
#include <string.h>

enum { TURNS = 50, BALL_SEGMENT = 0x6000, BALL_SIZE = 4096 };

#define CHECK_PIO(call)                                                                                                \
    if (error != SCI_ERR_OK) {                                                                                         \
        fprintf(stderr, "%s: %s\n", #call, SCIGetErrorString(error));                                                  \
        return 1;                                                                                                      \
    }

static int play(unsigned int side) {
    volatile unsigned int *mine, *theirs;
    sci_local_segment_t local;
    sci_remote_segment_t remote;
    sci_map_t local_map, remote_map;
    sci_sequence_t sequence;
    sci_sequence_status_t status;
    sci_query_adapter_t query;
    unsigned int node, turn;
    sci_error_t error;
    sci_desc_t sd;
    SCIInitialize(0, &error);
    CHECK_PIO(SCIInitialize);
    SCIOpen(&sd, 0, &error);
    CHECK_PIO(SCIOpen);
    memset(&query, 0, sizeof query);
    query.subcommand = SCI_Q_ADAPTER_NODEID;
    query.data = &node;
    SCIQuery(SCI_Q_ADAPTER, &query, 0, &error);
    CHECK_PIO(SCIQuery);
    SCICreateSegment(sd, &local, BALL_SEGMENT | side, BALL_SIZE, NULL, NULL, 0, &error);
    CHECK_PIO(SCICreateSegment);
    SCIPrepareSegment(local, 0, 0, &error);
    CHECK_PIO(SCIPrepareSegment);
    mine = (volatile unsigned int *)SCIMapLocalSegment(local, &local_map, 0, BALL_SIZE, NULL, 0, &error);
    CHECK_PIO(SCIMapLocalSegment);
    SCISetSegmentAvailable(local, 0, 0, &error);
    CHECK_PIO(SCISetSegmentAvailable);
    do {
        SCIConnectSegment(sd, &remote, node, BALL_SEGMENT | !side, 0, NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &error);
    } while (error != SCI_ERR_OK);
    theirs = (volatile unsigned int *)SCIMapRemoteSegment(remote, &remote_map, 0, SCIGetRemoteSegmentSize(remote), NULL, 0,
                                                          &error);
    CHECK_PIO(SCIMapRemoteSegment);
    SCICreateMapSequence(remote_map, &sequence, SCI_FLAG_FAST_BARRIER, &error);
    CHECK_PIO(SCICreateMapSequence);
    do {
        status = SCIStartSequence(sequence, 0, &error);
    } while (status != SCI_SEQ_OK);
    for (turn = 1; turn <= TURNS; turn++) {
        if (side == 0) {
            *theirs = turn;
            SCIFlush(sequence, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
        }
        while (*mine != turn) {
        }
        if (side == 1) {
            *theirs = turn;
            SCIFlush(sequence, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
        }
    }
    status = SCICheckSequence(sequence, 0, &error);
    if (status != SCI_SEQ_OK && status != SCI_SEQ_PENDING) { /* the other may have ended already */
        CHECK_PIO(SCICheckSequence);
    }
    SCIRemoveSequence(sequence, 0, &error);
    SCIUnmapSegment(remote_map, 0, &error);
    SCIDisconnectSegment(remote, 0, &error);
    SCIUnmapSegment(local_map, 0, &error);
    do {
        SCIRemoveSegment(local, 0, &error);
    } while (error == SCI_ERR_BUSY);
    SCIClose(sd, 0, &error);
    CHECK_PIO(SCIClose);
    SCITerminate();
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2 || (strcmp(argv[1], "0") != 0 && strcmp(argv[1], "1") != 0)) {
        fprintf(stderr, "usage: sisci_program_pio 0|1\n");
        return 2;
    }
    return play(argv[1][0] == '1');
}
