/* sisci_adapter.c - stands for the library of an adapter, and works: a software SISCI behind the vendor's symbols.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Built as a shared library. STUB_PREFIX, STUB_SIZE and STUB_API make it one of those that there may be. It is strict where
 * the software is not: every call gives a place for its error, and flags are this library's, nodes and adapters too. It
 * counts its calls, and can close and open the way to all other nodes (`adapter_*`): meanwhile stores are lost.
 * With STUB_POSTED stores arrive when they are flushed, not before, and in no order that anybody may rely on.
 *
 * Two names of one symbol are needed where the prefix is empty: then this is the software as it is.
 */
#define _GNU_SOURCE 1
#ifndef STUB_PREFIX
#define STUB_PREFIX _SISCI_PUBLIC_FUNC_MT_
#define STUB_SIZE size_t
#define STUB_API "2.0"
#endif

#define CCI_SISCI_API
#define CCI__SCI_SWEEP_PAUSE_S 0 /* each device that is opened looks for what the dead have left */
#define CCI_SISCI_IMPLEMENTATION
#ifdef STUB_PLAIN
#include "cci_sisci.h"
#else
#define CCI_STATIC
#include "cci_sisci.h"

#include <stdio.h>
#include <stdlib.h>

#define ADAPTER 1u /* the only one  */
#define NODE 12u   /* this node     */
#define QUERY_API 77u
#define FLAG(value) ((value) << 1) /* this library's flags */

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(name) PASTE(STUB_PREFIX, name)

#define CONSTANT(name, value)                                                                                          \
    extern const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_##name;                                                     \
    const unsigned int _SISCI_PUBLIC_CONST_SCI_FLAG_##name = FLAG((unsigned int)(value));
CCI__SCI_FLAGS(CONSTANT)
extern const unsigned int _SISCI_PUBLIC_CONST_SCI_Q_API;
const unsigned int _SISCI_PUBLIC_CONST_SCI_Q_API = QUERY_API;

#define DECLARE(kind, type, name, parameters) type NAME(name) parameters;
CCI__SCI_FUNCTIONS(DECLARE, STUB_SIZE)

/* ---- what tests can see and do ----------------------------------------------------------------------------------- */

extern unsigned int adapter_count(const char *name); /* how often it was called */
extern void adapter_close(int tells);                /* the way to all nodes: stores are lost from now on */
extern void adapter_open(int tells);

typedef struct called {
    const char *name;
    unsigned int count;
} called;

static called calls[128];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int is_closed;
static unsigned int closings; /* sequences that have not been started since find an error */

static void fault(const char *name, const char *what) {
    fprintf(stderr, "%s: %s\n", name, what);
    abort();
}

static void count(const char *name, const void *error) {
    size_t i = 0;
    if (!error) {
        fault(name, "there is no place for the error");
    }
    pthread_mutex_lock(&lock);
    while (calls[i].name && strcmp(calls[i].name, name) != 0) {
        i++;
    }
    calls[i].name = name;
    calls[i].count++;
    pthread_mutex_unlock(&lock);
}

unsigned int adapter_count(const char *name) {
    unsigned int n = 0;
    size_t i;
    pthread_mutex_lock(&lock);
    for (i = 0; calls[i].name; i++) {
        n = strcmp(calls[i].name, name) == 0 ? calls[i].count : n;
    }
    pthread_mutex_unlock(&lock);
    return n;
}

static unsigned int flags_of(const char *name, unsigned int flags) {
    if (flags & 1) {
        fault(name, "a flag is not this library's");
    }
    return flags >> 1;
}

/* An adapter moves words. */
static unsigned int words_of(const char *name, STUB_SIZE bytes) {
    if (bytes % 4 != 0) {
        fault(name, "a size or an offset is of no words");
    }
    return (unsigned int)bytes;
}

static unsigned int adapter_of(unsigned int adapter) {
    return adapter == ADAPTER ? 0 : adapter + 1;
}

static unsigned int node_of(unsigned int node) {
    return node == NODE ? CCI__SCI_NODE : node == CCI__SCI_NODE ? 1 : node;
}

/* ---- remote segments, which lose stores while the way is closed ----------------------------------------------------- */

typedef struct remote {
    struct remote *next;
    cci__sci_remote_segment_t segment;
    cci__sci_cb_remote_segment_t callback;
    void *arg;
    cci__sci_map_t map;
    void *base; /* what the caller stores to */
    size_t size;
    uint8_t *real, *posted; /* with STUB_POSTED: where stores arrive, and what has been posted */
} remote;

typedef struct started {
    struct started *next;
    cci__sci_sequence_t sequence;
    unsigned int closings;
} started;

static remote *remotes;
static started *sequences;

static void cover(const remote *r) {
    void *memory = MAP_FAILED;
    if (r->posted) {
        if (r->map && !is_closed) { /* what was lost is nowhere */
            memcpy(r->base, r->real, r->size);
            memcpy(r->posted, r->real, r->size);
        }
        return;
    }
    if (r->map && is_closed) {
        memory = mmap(r->base, r->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    } else if (r->map) {
        memory = mmap(r->base, r->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, r->segment->remote.fd, 0);
    }
    if (r->map && memory == MAP_FAILED) {
        fault("a map", "can't be changed");
    }
}

#ifdef STUB_POSTED
enum { CHUNK = 1024 };

static unsigned int posts; /* in turns from the first word to the last, and from the last to the first */

/* Whole words arrive. Now and then there is time between the first and the next, in which others can see the first; not
 * for ever, so that large transfers end. */
static void post_chunk(remote *r, size_t at, size_t size) {
    static unsigned int chunks;
    uint32_t *to = (uint32_t *)(void *)(r->real + at), word;
    int hesitates = ++chunks % 7 == 0 && chunks < 50000;
    size_t i;
    for (i = 0; i < size / 4; i++) {
        size_t k = posts & 1 ? i : size / 4 - 1 - i;
        memcpy(&word, (char *)r->base + at + 4 * k, 4);
        if (memcmp(&word, r->posted + at + 4 * k, 4) != 0) {
            memcpy(r->posted + at + 4 * k, &word, 4);
            if (!is_closed) {
                __atomic_store_n(&to[k], word, __ATOMIC_RELEASE);
            }
            if (hesitates) {
                struct timespec moment = {0, 20000};
                nanosleep(&moment, NULL);
                hesitates = 0;
            }
        }
    }
}

static void post(cci__sci_map_t map) {
    remote *r = remotes;
    size_t i, count;
    while (r && r->map != map) {
        r = r->next;
    }
    if (!r) {
        fault("a flush", "of what is not mapped");
    }
    posts++;
    count = r->size / CHUNK; /* segments have whole pages */
    for (i = 0; i < count; i++) {
        size_t at = CHUNK * (posts & 1 ? i : count - 1 - i);
        if (memcmp((char *)r->base + at, r->posted + at, CHUNK) != 0) {
            post_chunk(r, at, CHUNK);
        }
    }
}

static void begin_posting(remote *r) {
    r->real = (uint8_t *)r->base;
    r->posted = (uint8_t *)malloc(r->size);
    r->base = malloc(r->size);
    if (!r->posted || !r->base) {
        fault("SCIMapRemoteSegment", "no memory");
    }
    memcpy(r->base, r->real, r->size);
    memcpy(r->posted, r->real, r->size);
}

static void end_posting(remote *r) {
    free(r->base);
    free(r->posted);
    r->posted = NULL;
}
#else
static void post(cci__sci_map_t map) {
    (void)map;
}
#endif

static void change(int closed, int tells) {
    cci__sci_segment_cb_reason_t reason = closed ? CCI__SCI_CB_NOT_OPERATIONAL : CCI__SCI_CB_OPERATIONAL;
    remote *r;
    pthread_mutex_lock(&lock);
    is_closed = closed;
    closings += closed != 0;
    for (r = remotes; r; r = r->next) {
        cover(r);
        if (tells && r->callback) {
            (void)r->callback(r->arg, r->segment, reason, CCI__SCI_ERR_OK);
        }
    }
    pthread_mutex_unlock(&lock);
}

void adapter_close(int tells) {
    change(1, tells);
}

void adapter_open(int tells) {
    change(0, tells);
}

/* ---- the functions that the transport calls -------------------------------------------------------------------------- */

void NAME(SCIInitialize)(unsigned int flags, cci__sci_error_t *error) {
    count("SCIInitialize", error);
    SCIInitialize(flags, error);
}

void NAME(SCIQuery)(unsigned int command, void *data, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_query_string_t *question = (cci__sci_query_string_t *)data;
    count("SCIQuery", error);
    (void)flags;
    *error = command == QUERY_API ? CCI__SCI_ERR_OK : CCI__SCI_ERR_ILLEGAL_QUERY;
    if (command == QUERY_API) {
        snprintf(question->str, question->length, "%s", STUB_API);
    }
}

void NAME(SCIOpen)(cci__sci_desc_t *sd, unsigned int flags, cci__sci_error_t *error) {
    count("SCIOpen", error);
    SCIOpen(sd, flags_of("SCIOpen", flags), error);
}

void NAME(SCIClose)(cci__sci_desc_t sd, unsigned int flags, cci__sci_error_t *error) {
    count("SCIClose", error);
    SCIClose(sd, flags, error);
}

void NAME(SCIGetLocalNodeId)(unsigned int adapter, unsigned int *node, unsigned int flags, cci__sci_error_t *error) {
    count("SCIGetLocalNodeId", error);
    SCIGetLocalNodeId(adapter_of(adapter), node, flags, error);
    *node = NODE;
}

void NAME(SCICreateSegment)(cci__sci_desc_t sd, cci__sci_local_segment_t *segment, unsigned int id, STUB_SIZE size,
                            cci__sci_cb_local_segment_t callback, void *arg, unsigned int flags,
                            cci__sci_error_t *error) {
    count("SCICreateSegment", error);
    SCICreateSegment(sd, segment, id, words_of("SCICreateSegment", size), callback, arg, flags_of("SCICreateSegment", flags), error);
}

void *NAME(SCIMapLocalSegment)(cci__sci_local_segment_t segment, cci__sci_map_t *map, STUB_SIZE offset, STUB_SIZE size,
                               void *address, unsigned int flags, cci__sci_error_t *error) {
    void *base;
    count("SCIMapLocalSegment", error);
    base = SCIMapLocalSegment(segment, map, words_of("SCIMapLocalSegment", offset), words_of("SCIMapLocalSegment", size), address,
                              flags_of("SCIMapLocalSegment", flags), error);
    if (base) {
        memset(base, 0x5a, size); /* what was there before */
    }
    return base;
}

void NAME(SCIPrepareSegment)(cci__sci_local_segment_t segment, unsigned int adapter, unsigned int flags,
                             cci__sci_error_t *error) {
    count("SCIPrepareSegment", error);
    SCIPrepareSegment(segment, adapter_of(adapter), flags_of("SCIPrepareSegment", flags), error);
}

void NAME(SCISetSegmentAvailable)(cci__sci_local_segment_t segment, unsigned int adapter, unsigned int flags,
                                  cci__sci_error_t *error) {
    count("SCISetSegmentAvailable", error);
    SCISetSegmentAvailable(segment, adapter_of(adapter), flags_of("SCISetSegmentAvailable", flags), error);
}

void NAME(SCISetSegmentUnavailable)(cci__sci_local_segment_t segment, unsigned int adapter, unsigned int flags,
                                    cci__sci_error_t *error) {
    count("SCISetSegmentUnavailable", error);
    SCISetSegmentUnavailable(segment, adapter_of(adapter), flags_of("SCISetSegmentUnavailable", flags), error);
}

void NAME(SCIRemoveSegment)(cci__sci_local_segment_t segment, unsigned int flags, cci__sci_error_t *error) {
    count("SCIRemoveSegment", error);
    if (flags_of("SCIRemoveSegment", flags) & CCI__SCI_FLAG_FORCE_REMOVE) {
        fault("SCIRemoveSegment", "SCI_FLAG_FORCE_REMOVE is not for general use");
    }
    SCIRemoveSegment(segment, 0, error);
}

void NAME(SCIConnectSegment)(cci__sci_desc_t sd, cci__sci_remote_segment_t *segment, unsigned int node, unsigned int id,
                             unsigned int adapter, cci__sci_cb_remote_segment_t callback, void *arg,
                             unsigned int timeout, unsigned int flags, cci__sci_error_t *error) {
    remote *r = (remote *)calloc(1, sizeof *r);
    count("SCIConnectSegment", error);
    if (!r || (flags_of("SCIConnectSegment", flags) & CCI__SCI_FLAG_ASYNCHRONOUS_CONNECT)) {
        fault("SCIConnectSegment", "is not asynchronous here");
    }
    SCIConnectSegment(sd, segment, node_of(node), id, adapter_of(adapter), callback, arg, timeout,
                      flags_of("SCIConnectSegment", flags), error);
    if (*error != CCI__SCI_ERR_OK) {
        free(r);
        return;
    }
    r->segment = *segment;
    r->callback = callback;
    r->arg = arg;
    pthread_mutex_lock(&lock);
    r->next = remotes;
    remotes = r;
    pthread_mutex_unlock(&lock);
}

void NAME(SCIDisconnectSegment)(cci__sci_remote_segment_t segment, unsigned int flags, cci__sci_error_t *error) {
    remote **at = &remotes, *r;
    count("SCIDisconnectSegment", error);
    pthread_mutex_lock(&lock);
    while ((r = *at) != NULL && r->segment != segment) {
        at = &r->next;
    }
    if (r) {
        *at = r->next;
        free(r);
    }
    pthread_mutex_unlock(&lock);
    SCIDisconnectSegment(segment, flags, error);
}

STUB_SIZE NAME(SCIGetRemoteSegmentSize)(cci__sci_remote_segment_t segment) {
    count("SCIGetRemoteSegmentSize", calls);
    return SCIGetRemoteSegmentSize(segment);
}

volatile void *NAME(SCIMapRemoteSegment)(cci__sci_remote_segment_t segment, cci__sci_map_t *map, STUB_SIZE offset,
                                         STUB_SIZE size, void *address, unsigned int flags, cci__sci_error_t *error) {
    volatile void *base;
    remote *r;
    count("SCIMapRemoteSegment", error);
    base = SCIMapRemoteSegment(segment, map, words_of("SCIMapRemoteSegment", offset), words_of("SCIMapRemoteSegment", size), address,
                               flags_of("SCIMapRemoteSegment", flags), error);
    pthread_mutex_lock(&lock);
    for (r = remotes; r && base; r = r->next) {
        if (r->segment == segment && offset == 0) {
            r->map = *map;
            r->base = (void *)(uintptr_t)base;
            r->size = size;
#ifdef STUB_POSTED
            begin_posting(r);
            base = r->base;
#endif
            if (is_closed) {
                cover(r);
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return base;
}

void NAME(SCIUnmapSegment)(cci__sci_map_t map, unsigned int flags, cci__sci_error_t *error) {
    remote *r;
    count("SCIUnmapSegment", error);
    pthread_mutex_lock(&lock);
    for (r = remotes; r; r = r->next) {
        if (r->map == map) {
#ifdef STUB_POSTED
            end_posting(r);
#endif
            r->map = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    SCIUnmapSegment(map, flags, error);
}

void NAME(SCICreateMapSequence)(cci__sci_map_t map, cci__sci_sequence_t *sequence, unsigned int flags,
                                cci__sci_error_t *error) {
    count("SCICreateMapSequence", error);
    SCICreateMapSequence(map, sequence, flags_of("SCICreateMapSequence", flags), error);
}

/* The place that names it, or the end of the list. */
static started **find_started(cci__sci_sequence_t sequence) {
    started **at = &sequences;
    while (*at && (*at)->sequence != sequence) {
        at = &(*at)->next;
    }
    return at;
}

static void note_start(cci__sci_sequence_t sequence) {
    started **at = find_started(sequence);
    if (!*at && (*at = (started *)calloc(1, sizeof **at)) == NULL) {
        fault("SCIStartSequence", "no memory");
    }
    (*at)->sequence = sequence;
    (*at)->closings = closings;
}

void NAME(SCIRemoveSequence)(cci__sci_sequence_t sequence, unsigned int flags, cci__sci_error_t *error) {
    started **at, *gone;
    count("SCIRemoveSequence", error);
    pthread_mutex_lock(&lock);
    at = find_started(sequence);
    gone = *at;
    if (gone) {
        *at = gone->next;
        free(gone);
    }
    pthread_mutex_unlock(&lock);
    SCIRemoveSequence(sequence, flags, error);
}

cci__sci_sequence_status_t NAME(SCIStartSequence)(cci__sci_sequence_t sequence, unsigned int flags,
                                                  cci__sci_error_t *error) {
    cci__sci_sequence_status_t status = CCI__SCI_SEQ_PENDING;
    count("SCIStartSequence", error);
    *error = CCI__SCI_ERR_OK;
    pthread_mutex_lock(&lock);
    if (!is_closed) {
        status = SCIStartSequence(sequence, flags, error);
        note_start(sequence);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* Adapters lose stores to a node that is not reached, and tell it here. */
cci__sci_sequence_status_t NAME(SCICheckSequence)(cci__sci_sequence_t sequence, unsigned int flags,
                                                  cci__sci_error_t *error) {
    cci__sci_sequence_status_t status;
    const started *at;
    count("SCICheckSequence", error);
    *error = CCI__SCI_ERR_OK;
    pthread_mutex_lock(&lock);
    at = *find_started(sequence);
    if (!at) {
        fault("SCICheckSequence", "the sequence was not started");
    }
    post(sequence->map);
    if (is_closed) {
        status = CCI__SCI_SEQ_NOT_RETRIABLE;
    } else if (at->closings != closings) {
        status = CCI__SCI_SEQ_RETRIABLE;
    } else {
        status = SCICheckSequence(sequence, flags_of("SCICheckSequence", flags), error);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void NAME(SCIStoreBarrier)(cci__sci_sequence_t sequence, unsigned int flags) {
    count("SCIStoreBarrier", calls);
    pthread_mutex_lock(&lock);
    post(sequence->map);
    pthread_mutex_unlock(&lock);
    SCIStoreBarrier(sequence, flags);
}

#ifndef STUB_WITHOUT_FLUSH
void NAME(SCIFlush)(cci__sci_sequence_t sequence, unsigned int flags) {
    count("SCIFlush", calls);
    if (flags_of("SCIFlush", flags) != CCI__SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY) {
        fault("SCIFlush", "takes long with these flags");
    }
    pthread_mutex_lock(&lock);
    post(sequence->map);
    pthread_mutex_unlock(&lock);
    SCIFlush(sequence, flags >> 1);
}
#endif

void NAME(SCIFlushReadBuffers)(cci__sci_sequence_t sequence) {
    count("SCIFlushReadBuffers", calls);
    SCIFlushReadBuffers(sequence);
}

void NAME(SCICreateInterrupt)(cci__sci_desc_t sd, cci__sci_local_interrupt_t *interrupt, unsigned int adapter,
                              unsigned int *number, cci__sci_cb_interrupt_t callback, void *arg, unsigned int flags,
                              cci__sci_error_t *error) {
    count("SCICreateInterrupt", error);
    SCICreateInterrupt(sd, interrupt, adapter_of(adapter), number, callback, arg, flags_of("SCICreateInterrupt", flags),
                       error);
}

void NAME(SCIRemoveInterrupt)(cci__sci_local_interrupt_t interrupt, unsigned int flags, cci__sci_error_t *error) {
    count("SCIRemoveInterrupt", error);
    SCIRemoveInterrupt(interrupt, flags, error);
}

void NAME(SCIConnectInterrupt)(cci__sci_desc_t sd, cci__sci_remote_interrupt_t *interrupt, unsigned int node,
                               unsigned int adapter, unsigned int number, unsigned int timeout, unsigned int flags,
                               cci__sci_error_t *error) {
    count("SCIConnectInterrupt", error);
    SCIConnectInterrupt(sd, interrupt, node_of(node), adapter_of(adapter), number, timeout,
                        flags_of("SCIConnectInterrupt", flags), error);
}

void NAME(SCIDisconnectInterrupt)(cci__sci_remote_interrupt_t interrupt, unsigned int flags, cci__sci_error_t *error) {
    count("SCIDisconnectInterrupt", error);
    SCIDisconnectInterrupt(interrupt, flags, error);
}

void NAME(SCITriggerInterrupt)(cci__sci_remote_interrupt_t interrupt, unsigned int flags, cci__sci_error_t *error) {
    count("SCITriggerInterrupt", error);
    SCITriggerInterrupt(interrupt, flags, error);
}

#endif /* STUB_PLAIN */
