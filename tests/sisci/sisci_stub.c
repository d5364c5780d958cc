/* sisci_stub.c - stands for the library of an adapter: every function records that it was called, and with what sizes.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Built as a shared library from two objects: STUB_PART 1 has every function, weakly; part 2 those that record their
 * sizes; part 3, alone, has three functions. STUB_PREFIX, STUB_SIZE and STUB_API make it one of the libraries that there
 * may be.
 */
#include "cci_sisci.h"

#include <string.h>

#ifndef STUB_PART
#define STUB_PART 1
#define STUB_PREFIX
#define STUB_SIZE size_t
#define STUB_API "2.0"
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(name) PASTE(STUB_PREFIX, name)

extern const char *stub_called;
extern size_t stub_number[4];

void stub_note(const char *name, size_t a, size_t b, size_t c);

#if STUB_PART == 1

#pragma GCC diagnostic ignored "-Wunused-parameter"

const char *stub_called = "";
size_t stub_number[4];

void stub_note(const char *name, size_t a, size_t b, size_t c) {
    stub_called = name;
    stub_number[0] = a;
    stub_number[1] = b;
    stub_number[2] = c;
}

#define BODY_VE(type, name) { stub_note(#name, 0, 0, 0); *error = CCI__SCI_ERR_OK; }
#define BODY_RE(type, name) { stub_note(#name, 0, 0, 0); *error = CCI__SCI_ERR_OK; return (type)0; }
#define BODY_VN(type, name) { stub_note(#name, 0, 0, 0); }
#define BODY_RN(type, name) { stub_note(#name, 0, 0, 0); return (type)0; }
#define FUNCTION(kind, type, name, parameters)                                                                         \
    type NAME(name) parameters;                                                                                        \
    __attribute__((weak)) type NAME(name) parameters BODY_##kind(type, name)
CCI__SCI_FUNCTIONS(FUNCTION, STUB_SIZE)

#elif STUB_PART == 3

#define DECLARE(kind, type, name, parameters) type NAME(name) parameters;
CCI__SCI_FUNCTIONS(DECLARE, STUB_SIZE)

void NAME(SCIInitialize)(unsigned int flags, cci__sci_error_t *error) {
    (void)flags;
    *error = CCI__SCI_ERR_OK;
}

void NAME(SCIOpen)(cci__sci_desc_t *sd, unsigned int flags, cci__sci_error_t *error) {
    (void)sd, (void)flags;
    *error = CCI__SCI_ERR_OK;
}

void NAME(SCIQuery)(unsigned int command, void *data, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_query_string_t *question = (cci__sci_query_string_t *)data;
    (void)flags, (void)command;
    *error = CCI__SCI_ERR_OK;
    strncpy(question->str, STUB_API, question->length);
}

#else

/* Flags and questions have numbers of their own. */
#define FLAG(name, value)                                                                                              \
    extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_##name;                                                     \
    const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_##name = (value) ^ 0x55000000;
#ifndef STUB_WITHOUT_CONSTANTS
CCI__SCI_FLAGS(FLAG)
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_Q_API;
const unsigned int _SISCI_PUBLIC_CONST_SCI_Q_API = 77;
#define QUESTION 77
#else
#define QUESTION CCI__SCI_Q_API
#endif

#define DECLARE(kind, type, name, parameters) type NAME(name) parameters;
CCI__SCI_FUNCTIONS(DECLARE, STUB_SIZE)

void NAME(SCIQuery)(unsigned int command, void *data, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_query_string_t *question = (cci__sci_query_string_t *)data;
    (void)flags;
    *error = command == QUESTION ? CCI__SCI_ERR_OK : CCI__SCI_ERR_ILLEGAL_QUERY;
    if (command == QUESTION) {
        strncpy(question->str, STUB_API, question->length);
    }
}

STUB_SIZE NAME(SCIGetRemoteSegmentSize)(cci__sci_remote_segment_t segment) {
    (void)segment;
    stub_note("SCIGetRemoteSegmentSize", 0, 0, 0);
    return (STUB_SIZE)(sizeof(STUB_SIZE) > 4 ? UINT64_C(0x123456789) : 4096);
}

void NAME(SCICreateSegment)(cci__sci_desc_t sd, cci__sci_local_segment_t *segment, unsigned int segmentId,
                            STUB_SIZE size, cci__sci_cb_local_segment_t callback, void *callbackArg,
                            unsigned int flags, cci__sci_error_t *error) {
    (void)sd, (void)segment, (void)callback, (void)callbackArg;
    stub_note("SCICreateSegment", segmentId, size, flags);
    *error = CCI__SCI_ERR_OK;
}

volatile void *NAME(SCIMapRemoteSegment)(cci__sci_remote_segment_t segment, cci__sci_map_t *map, STUB_SIZE offset,
                                         STUB_SIZE size, void *addr, unsigned int flags, cci__sci_error_t *error) {
    (void)segment, (void)map;
    stub_note("SCIMapRemoteSegment", offset, size, flags);
    *error = CCI__SCI_ERR_OK;
    return addr;
}

cci__sci_dma_queue_state_t NAME(SCIEnqueueDMATransfer)(cci__sci_dma_queue_t dq, cci__sci_local_segment_t localSegment,
                                                       cci__sci_remote_segment_t remoteSegment, STUB_SIZE localOffset,
                                                       STUB_SIZE remoteOffset, STUB_SIZE size, unsigned int flags,
                                                       cci__sci_error_t *error) {
    (void)dq, (void)localSegment, (void)remoteSegment, (void)flags;
    stub_note("SCIEnqueueDMATransfer", localOffset, remoteOffset, size);
    *error = CCI__SCI_ERR_OK;
    return CCI__SCI_DMAQUEUE_GATHER;
}

void NAME(SCIMemCpy_mcast)(cci__sci_sequence_t sequence[], void *memAddr, cci__sci_map_t remoteMap[],
                           STUB_SIZE remoteOffset[], STUB_SIZE size, unsigned int dst_num, unsigned int flags,
                           cci__sci_error_t *error) {
    (void)sequence, (void)memAddr, (void)remoteMap, (void)flags;
    stub_note("SCIMemCpy_mcast", remoteOffset[dst_num - 1], size, dst_num);
    *error = CCI__SCI_ERR_OK;
}

void NAME(SCIAttachLocalSegment)(cci__sci_desc_t sd, cci__sci_local_segment_t *segment, unsigned int segmentId,
                                 STUB_SIZE *size, cci__sci_cb_local_segment_t callback, void *callbackArg,
                                 unsigned int flags, cci__sci_error_t *error) {
    (void)sd, (void)segment, (void)callback, (void)callbackArg;
    stub_note("SCIAttachLocalSegment", segmentId, *size, flags);
    *size = 8192;
    *error = CCI__SCI_ERR_OK;
}

#endif
