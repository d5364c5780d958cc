/* sisci_program_dma.c - a program as people write them for SISCI: an encoder that is split over two processes by DMA.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * One process has the frames, the other encodes their bytes. A frame goes to the encoder by DMA, and what it has made of it comes
 * back by DMA; a word behind each says which frame it is.
 *
 *     sisci_program_dma encoder &
 *     sisci_program_dma camera
 */
#include "sisci_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME = 64 * 1024 - 5, FRAMES = 4, NUMBER_AT = 64 * 1024, SEGMENT = NUMBER_AT + 64 };
enum { RAW_FRAMES = 0x5100, ENCODED_FRAMES = 0x5200 };

#define CHECK(call)                                                                                                    \
    if (error != SCI_ERR_OK) {                                                                                         \
        fprintf(stderr, "%s: %s (0x%x)\n", #call, SCIGetErrorString(error), (unsigned int)error);                      \
        return 0;                                                                                                      \
    }

typedef struct job {
    sci_desc_t sd;
    sci_local_segment_t in, out; /* what comes, and what goes by DMA */
    sci_remote_segment_t there;
    sci_map_t in_map, out_map;
    volatile unsigned char *in_bytes;
    unsigned char *out_bytes;
    sci_dma_queue_t dq;
} job_t;

static int open_job(job_t *job, unsigned int mine, unsigned int theirs) {
    sci_error_t error;
    unsigned int node;
    SCIInitialize(0, &error);
    CHECK(SCIInitialize);
    SCIOpen(&job->sd, 0, &error);
    CHECK(SCIOpen);
    SCIGetLocalNodeId(0, &node, 0, &error);
    CHECK(SCIGetLocalNodeId);
    SCICreateSegment(job->sd, &job->in, mine, SEGMENT, NULL, NULL, 0, &error);
    CHECK(SCICreateSegment);
    SCICreateSegment(job->sd, &job->out, 0, SEGMENT, NULL, NULL, SCI_FLAG_AUTO_ID, &error);
    CHECK(SCICreateSegment);
    SCIPrepareSegment(job->in, 0, 0, &error);
    CHECK(SCIPrepareSegment);
    SCIPrepareSegment(job->out, 0, SCI_FLAG_DMA_SOURCE_ONLY, &error);
    CHECK(SCIPrepareSegment);
    job->in_bytes = (volatile unsigned char *)SCIMapLocalSegment(job->in, &job->in_map, 0, SEGMENT, NULL, 0, &error);
    CHECK(SCIMapLocalSegment);
    job->out_bytes = (unsigned char *)SCIMapLocalSegment(job->out, &job->out_map, 0, SEGMENT, NULL, 0, &error);
    CHECK(SCIMapLocalSegment);
    SCISetSegmentAvailable(job->in, 0, 0, &error);
    CHECK(SCISetSegmentAvailable);
    do {
        SCIConnectSegment(job->sd, &job->there, node, theirs, 0, NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &error);
    } while (error == SCI_ERR_NO_SUCH_SEGMENT || error == SCI_ERR_CONNECTION_REFUSED);
    CHECK(SCIConnectSegment);
    SCICreateDMAQueue(job->sd, &job->dq, 0, 2, 0, &error);
    CHECK(SCICreateDMAQueue);
    return SCIGetLocalSegmentId(job->in) == mine && SCIGetRemoteSegmentId(job->there) == theirs &&
           SCIGetLocalSegmentSize(job->in) == SEGMENT && SCIGetLocalSegmentId(job->out) != 0;
}

/* The bytes first, then the number that tells of them. */
static int send_frame(job_t *job, unsigned int number) {
    dis_dma_vec_t pieces[2];
    sci_error_t error;
    memcpy(job->out_bytes + NUMBER_AT, &number, sizeof number);
    SCICacheSync(job->out_map, job->out_bytes, SEGMENT, SCI_FLAG_CACHE_FLUSH, &error);
    CHECK(SCICacheSync);
    memset(pieces, 0, sizeof pieces);
    pieces[0].size = FRAME;
    pieces[1].size = sizeof number;
    pieces[1].local_offset = pieces[1].remote_offset = NUMBER_AT;
    if (number & 1) {
        SCIStartDmaTransferVec(job->dq, job->out, job->there, 2, pieces, NULL, NULL, SCI_FLAG_DMA_WAIT, &error);
        CHECK(SCIStartDmaTransferVec);
    } else {
        SCIStartDmaTransfer(job->dq, job->out, job->there, 0, FRAME, 0, NULL, NULL, 0, &error);
        CHECK(SCIStartDmaTransfer);
        SCIWaitForDMAQueue(job->dq, SCI_INFINITE_TIMEOUT, 0, &error);
        CHECK(SCIWaitForDMAQueue);
        SCIStartDmaTransfer(job->dq, job->out, job->there, NUMBER_AT, sizeof number, NUMBER_AT, NULL, NULL, SCI_FLAG_DMA_WAIT,
                            &error);
        CHECK(SCIStartDmaTransfer);
    }
    return 1;
}

static void await_frame(job_t *job, unsigned int number) {
    volatile unsigned int *at = (volatile unsigned int *)(volatile void *)(job->in_bytes + NUMBER_AT);
    while (*at != number) {
    }
    SCIFlushReadBuffers(NULL);
}

static int close_job(job_t *job) {
    sci_error_t error;
    SCIRemoveDMAQueue(job->dq, 0, &error);
    CHECK(SCIRemoveDMAQueue);
    SCIDisconnectSegment(job->there, 0, &error);
    CHECK(SCIDisconnectSegment);
    SCIUnmapSegment(job->in_map, 0, &error);
    SCIUnmapSegment(job->out_map, 0, &error);
    do {
        SCIRemoveSegment(job->in, 0, &error); /* the other process may still be connected */
    } while (error == SCI_ERR_BUSY);
    CHECK(SCIRemoveSegment);
    SCIRemoveSegment(job->out, 0, &error);
    CHECK(SCIRemoveSegment);
    SCIClose(job->sd, 0, &error);
    CHECK(SCIClose);
    SCITerminate();
    return 1;
}

static unsigned char encoded(unsigned char byte, unsigned int frame) {
    return (unsigned char)(byte ^ (frame * 37u + 11u));
}

static int encode(void) {
    unsigned int frame, i;
    job_t job;
    if (!open_job(&job, RAW_FRAMES, ENCODED_FRAMES)) {
        return 1;
    }
    for (frame = 1; frame <= FRAMES; frame++) {
        await_frame(&job, frame);
        for (i = 0; i < FRAME; i++) {
            job.out_bytes[i] = encoded(job.in_bytes[i], frame);
        }
        if (!send_frame(&job, frame)) {
            return 1;
        }
    }
    return close_job(&job) ? 0 : 1;
}

static int film(void) {
    unsigned int frame, i;
    job_t job;
    if (!open_job(&job, ENCODED_FRAMES, RAW_FRAMES)) {
        return 1;
    }
    for (frame = 1; frame <= FRAMES; frame++) {
        for (i = 0; i < FRAME; i++) {
            job.out_bytes[i] = (unsigned char)(i * 7 + frame);
        }
        if (!send_frame(&job, frame)) {
            return 1;
        }
        await_frame(&job, frame);
        for (i = 0; i < FRAME; i++) {
            if (job.in_bytes[i] != encoded((unsigned char)(i * 7 + frame), frame)) {
                fprintf(stderr, "byte %u of frame %u is wrong\n", i, frame);
                return 1;
            }
        }
    }
    return close_job(&job) ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "encoder") == 0) {
        return encode();
    }
    if (argc == 2 && strcmp(argv[1], "camera") == 0) {
        return film();
    }
    fprintf(stderr, "usage: sisci_program_dma encoder|camera\n");
    return 2;
}
