/* fake_verbs.h - an RDMA device that is a few arrays in this process, for tests of cci_verbs.h without hardware.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Include it behind cci_verbs.h in the file with the implementation: it fills the table of libibverbs' functions with its
 * own. There are two devices, fake0 and fake1, whose addresses are 127.0.0.1 and 127.0.0.2, with a perfect network between
 * them that carries unreliable datagrams, and reliable connections with messages, writes and reads. Everything that is
 * made is counted, so that a test sees what is left; any making of something can be made to fail; events can be sent, and
 * datagrams be forged. Several threads may call it, but only one makes and ends devices and completion queues.
 *
 * Adapters have ways of their own, which a test sets in `fake`, or all of one kind of adapter by fake_adapters[]:
 *     max_inline, tells_inline   how much goes into a work request, and what the adapter says that it takes
 *     mtu, keys of both sides    a pair's packets have one size; parts of another are refused
 *     last_wqe                   when a failed queue pair gives a receive buffer back, and whether the adapter tells that
 *     reset_purges               what a reset takes along out of the completion queue
 *     relaxed_fails, on_demand_fails, dmabuf_fails  registrations for relaxed ordering, of memory that is not pinned, and of
 *                                another device's memory are refused
 *     comp_vectors, no_moderation, post_takes, send_refuses
 *     messages_fail, why         messages fail though nothing is wrong with them, before they arrive or after that
 *     make_takes_ns, is_held     making a queue pair takes time, or until a test lets it go on
 *     transport, max_srq, no_qp_type     what it is, and lacks
 *     gid_type, gid_interface, gid_fails its addresses: kinds, interfaces that are elsewhere, no way out
 *     fork_status, fork_fails    what the kernel does about fork()
 */
#ifndef CCI_TEST_FAKE_VERBS_H
#define CCI_TEST_FAKE_VERBS_H

#define FAKE_FN static __attribute__((unused))
#define FAKE_QPS 32768
#define FAKE_CONTEXTS 64
#define FAKE_RECVS 4096
#define FAKE_WCS 8192
#define FAKE_BELLS 64
#define FAKE_LOG 256
#define FAKE_SENDS 128
#define FAKE_MRS 256
#define FAKE_EVENTS 128

/* What a device's port tells in /sys, for CCI_VERBS_READ_FILE. */
static int fake_read_file(const char *path, char *text, size_t size);

typedef struct fake_context {
    struct verbs_context ext; /* its last member is what programs know */
    int device, is_open;
    struct ibv_async_event events[FAKE_EVENTS];
    unsigned event_count;
} fake_context;

FAKE_FN fake_context *fake_context_of(const struct ibv_context *context) {
    return (fake_context *)(void *)((uintptr_t)context - offsetof(fake_context, ext.context));
}

typedef struct fake_channel {
    struct ibv_comp_channel pub; /* first */
    struct ibv_cq *bells[FAKE_BELLS];
    unsigned bell_count;
} fake_channel;

typedef struct fake_cq {
    struct ibv_cq pub; /* first */
    struct ibv_wc wc[FAKE_WCS];
    unsigned first, count;
    int is_armed, fails, swallows; /* ... completions, and tells nobody */
    unsigned acked, rang, swallowed;
} fake_cq;

typedef struct fake_srq {
    struct ibv_srq pub; /* first */
    struct ibv_recv_wr recv[FAKE_RECVS];
    struct ibv_sge recv_piece[FAKE_RECVS];
    unsigned recv_first, recv_count;
    uint64_t bytes;
} fake_srq;

/* A work request of a reliable connection that has not been done. */
typedef struct fake_send {
    struct ibv_send_wr wr;
    struct ibv_sge piece;
    uint8_t inlined[256];
} fake_send;

typedef struct fake_qp {
    struct ibv_qp pub; /* first */
    int device;
    uint32_t qkey, max_inline;
    uint64_t bytes;
    int place;                       /* in fake.qp */
    struct fake_qp *next_of_bucket;  /* of numbers */
    struct fake_qp *next_busy;
    int is_busy;                     /* it is in the list of those that may have something to do */
    struct ibv_recv_wr *recv;        /* FAKE_RECVS, or NULL with a shared receive queue */
    struct ibv_sge *recv_piece;
    unsigned recv_first, recv_count;
    union ibv_gid groups[16];
    unsigned group_count;
    /* of a reliable connection */
    uint32_t peer;
    enum ibv_mtu mtu;
    uint16_t dlid;
    uint32_t flow_label;
    fake_send *sends; /* FAKE_SENDS, from the first one on */
    unsigned send_first, send_count;
    /* of one with a shared receive queue: the buffer of a message that has come in part, and when it is given back */
    struct ibv_recv_wr held;
    int holds, last_due;
} fake_qp;

typedef struct fake_ah {
    struct ibv_ah pub; /* first */
    struct ibv_ah_attr attr;
} fake_ah;

static struct {
    /* what a test may set */
    int device_count;         /* 2 */
    int no_devices_error;     /* errno of the list, 0: there is one */
    int fail_at;              /* the making of something that fails: 1 the next, 0 none */
    int port_state[2];        /* IBV_PORT_ACTIVE */
    int link_layer;           /* IBV_LINK_LAYER_ETHERNET */
    int mtu;                  /* IBV_MTU_1024 */
    union ibv_gid gid[2][4];
    const char *gid_type[2][4];      /* NULL: an older kernel, which does not tell */
    const char *gid_interface[2][4]; /* the same; "": it has none here */
    int gid_fails[2][4];             /* errno of address handles that leave by it */
    int no_sys;                      /* /sys is not there */
    enum ibv_transport_type transport;
    int max_srq;
    int no_qp_type[8];               /* queue pairs of these types are not offered: errno */
    uint16_t lid[2];
    uint16_t pkey[2];
    int ah_fails;             /* making address handles fails */
    uint64_t ah_takes_ns;     /* ... or takes so long */
    uint64_t make_takes_ns;   /* making a queue pair of a connection takes so long; atomic */
    int is_held[2];           /* ... of this device takes until a test changes this; read and written atomically */
    int drops;                /* the network loses everything */
    int passes, loses;        /* so many of the next datagrams come, and so many behind these do not */
    int doubles;              /* datagrams come twice */
    int max_inline, max_qp_wr;
    int tells_inline; /* what a queue pair that asks for inline data gets, 0: what it asked for */
    int modify_fails;         /* changes of queue pairs fail */
    int destroy_fails;        /* destroying and deregistering reports an error, and does it */
    uint32_t vendor_id;       /* of the devices */
    unsigned resets;          /* of queue pairs that had failed */
    int reset_purges;         /* a queue pair that is reset takes its completions along, as with some drivers */
    int relaxed_fails;        /* errno of registrations for relaxed ordering */
    int on_demand_fails;      /* ... of memory that is not pinned */
    int dmabuf_fails;         /* ... of other devices' memory */
    int fork_status;          /* what the library tells of fork(): 0 unsafe, 1 safe, 2 always safe */
    int fork_fails;           /* errno: it can't be made safe */
    int comp_vectors;         /* 1 */
    int no_moderation;        /* completion queues can't be modified */
    int post_takes;           /* receive buffers that are taken of a batch before the rest is refused; 0: all */
    int send_refuses;         /* errno of work requests on connections */
    int messages_fail;        /* so many of the next messages on connections: every second after it has arrived; where it
                               * is negative, none arrives */
    enum ibv_wc_status why;   /* ... with this status */
    int last_wqe;             /* polls after which a queue pair that failed has given its receive buffer back and tells so; -1: it
                               * gives it back at once and never tells */
    /* what a test may read */
    int relaxed, strict;      /* registrations of programs' memory, with relaxed ordering and without */
    int on_demand;            /* registrations of memory that is not pinned */
    uint64_t dmabuf_offset;   /* of the last dmabuf, */
    int dmabuf_fd;            /* and its descriptor */
    int vector_used[8];       /* completion queues with a channel, by vector */
    int moderated, moderation_us;
    int srq_posts;            /* calls that gave buffers to a shared receive queue */
    int fork_inits;           /* how often the library was told that the program may fork */
    int shared_pages;         /* registrations of the library's own that have not whole pages */
    int lost_buffers;         /* held by a queue pair that was reset or destroyed before it told that it has none */
    int opened; /* how often a device was opened */
    uint64_t pinned, most_pinned; /* bytes: of memory, and of queues as drivers make them */
    int contexts, pds, mrs, channels, cqs, srqs, qps, ahs, ahs_made, most_ahs;
    int post_count, largest_batch, signalled, inlined, sent;
    uint32_t next_qpn, next_rkey;
    int making, most_making;  /* queue pairs of connections at once; atomic */
    int qp_most;              /* places of `qp` that were ever used */
    int qp_free;              /* none below is free */
    fake_qp *qp[FAKE_QPS];
    fake_qp *qp_bucket[FAKE_QPS]; /* by number */
    fake_qp *busy;
    int commands[3];          /* queue pairs that were made, changed and destroyed */
    struct ibv_mr *mr[FAKE_MRS];
    int mr_access[FAKE_MRS];
    fake_context *context[FAKE_CONTEXTS];
    struct ibv_ah_attr last_ah;
    uint32_t last_imm;
    struct ibv_sge last_piece; /* of a reliable connection's message that was not inline */
} fake;

static struct ibv_device fake_devices[2];

/* What several threads may call. */
static pthread_mutex_t fake_mutex = PTHREAD_MUTEX_INITIALIZER;

FAKE_FN void fake_enter(void) {
    (void)pthread_mutex_lock(&fake_mutex);
}

FAKE_FN void fake_leave(void) {
    (void)pthread_mutex_unlock(&fake_mutex);
}

FAKE_FN int fake_may(void) {
    if (fake.fail_at > 0 && --fake.fail_at == 0) {
        errno = ENOMEM;
        return 0;
    }
    return 1;
}

FAKE_FN void *fake_new(size_t size, int *counter) {
    void *object = fake_may() ? calloc(1, size) : NULL;
    *counter += object != NULL;
    return object;
}

static int fake_fork_init(void) {
    fake.fork_inits++;
    assert_int_equal(fake.mrs, 0); /* later is too late */
    return fake.fork_fails;
}

static int fake_is_fork_initialized(void) {
    return fake.fork_status;
}

/* Bytes that are pinned, and pinned no more. */
FAKE_FN void fake_pin(uint64_t bytes) {
    fake.pinned += bytes;
    fake.most_pinned = fake.pinned > fake.most_pinned ? fake.pinned : fake.most_pinned;
}

FAKE_FN uint64_t fake_queue_bytes(uint32_t depth, uint32_t entry) {
    uint64_t power = 1;
    while (power < depth) {
        power *= 2;
    }
    return power * entry;
}

/* ---- devices and ports ------------------------------------------------------------------------------------------ */

static struct ibv_device **fake_get_device_list(int *count) {
    struct ibv_device **list = (struct ibv_device **)calloc(3, sizeof *list);
    int i;
    if (fake.no_devices_error) {
        free((void *)list);
        errno = fake.no_devices_error;
        return NULL;
    }
    for (i = 0; i < fake.device_count; i++) {
        snprintf(fake_devices[i].name, sizeof fake_devices[i].name, "fake%d", i);
        fake_devices[i].transport_type = fake.transport;
        list[i] = &fake_devices[i];
    }
    *count = fake.device_count;
    return list;
}

static void fake_free_device_list(struct ibv_device **list) {
    free((void *)list);
}

static const char *fake_get_device_name(struct ibv_device *device) {
    return device->name;
}

static int fake_query_device(struct ibv_context *context, struct ibv_device_attr *attributes) {
    (void)context;
    attributes->phys_port_cnt = 1;
    attributes->vendor_id = fake.vendor_id;
    attributes->max_qp_wr = fake.max_qp_wr;
    attributes->max_cqe = FAKE_WCS;
    attributes->max_srq = fake.max_srq;
    attributes->max_srq_wr = FAKE_RECVS;
    attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 4;
    return 0;
}

static int fake_query_port(struct ibv_context *context, uint8_t port, void *attributes) {
    struct ibv_port_attr *a = (struct ibv_port_attr *)attributes;
    const fake_context *c = fake_context_of(context);
    if (port != 1) {
        return EINVAL;
    }
    a->state = (enum ibv_port_state)fake.port_state[c->device];
    a->link_layer = (uint8_t)fake.link_layer;
    a->active_mtu = (enum ibv_mtu)fake.mtu;
    a->active_width = 2;
    a->active_speed = 32;
    a->gid_tbl_len = 4;
    a->lid = fake.lid[c->device];
    return 0;
}

FAKE_FN int fake_put_text(char *text, size_t size, const char *what) {
    if (what == NULL) {
        errno = ENOENT;
    } else if (what[0] == '\0') {
        errno = EINVAL;
    } else {
        snprintf(text, size, "%s", what);
        return 1;
    }
    return 0;
}

static int fake_read_file(const char *path, char *text, size_t size) {
    char what[64], gid[INET6_ADDRSTRLEN];
    int device, index = 0;
    if (strncmp(path, "/sys/class/infiniband/", 22) != 0) {
        return cci__verbs_read_file(path, text, size);
    }
    text[0] = '\0';
    if (fake.no_sys || sscanf(path, "/sys/class/infiniband/fake%d/ports/1/%63s", &device, what) != 2 || device > 1) {
        errno = ENOENT;
        return 0;
    }
    if (strcmp(what, "state") == 0) {
        return fake_put_text(text, size, fake.port_state[device] == IBV_PORT_ACTIVE ? "4: ACTIVE" : "1: DOWN");
    }
    if (strcmp(what, "link_layer") == 0) {
        return fake_put_text(text, size, fake.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
    }
    index = strrchr(what, '/') != NULL ? atoi(strrchr(what, '/') + 1) : 4;
    if (index < 4 && strncmp(what, "gids/", 5) == 0) {
        inet_ntop(AF_INET6, fake.gid[device][index].raw, gid, sizeof gid);
        return fake_put_text(text, size, gid);
    }
    if (index < 4 && strncmp(what, "gid_attrs/types/", 16) == 0) {
        return fake_put_text(text, size, fake.gid_type[device][index]);
    }
    if (index < 4 && strncmp(what, "gid_attrs/ndevs/", 16) == 0) {
        return fake_put_text(text, size, fake.gid_interface[device][index]);
    }
    errno = ENOENT;
    return 0;
}

static int fake_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid) {
    (void)port;
    if (index < 0 || index >= 4) {
        return -1;
    }
    *gid = fake.gid[fake_context_of(context)->device][index];
    return 0;
}

static int fake_query_pkey(struct ibv_context *context, uint8_t port, int index, uint16_t *pkey) {
    (void)context;
    (void)port;
    if (index < 0 || index >= 2) {
        return -1;
    }
    *pkey = htons(fake.pkey[index]);
    return 0;
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

FAKE_FN void fake_ring(int fd) {
    uint64_t one = 1;
    assert_int_equal(write(fd, &one, sizeof one), sizeof one);
}

FAKE_FN void fake_silence(int fd) {
    uint64_t count;
    assert_int_equal(read(fd, &count, sizeof count), sizeof count);
}

FAKE_FN struct ibv_async_event *fake_new_event(fake_context *c, enum ibv_event_type type) {
    struct ibv_async_event *event = &c->events[c->event_count++];
    assert_true(c->event_count <= FAKE_EVENTS);
    memset(event, 0, sizeof *event);
    event->event_type = type;
    fake_ring(c->ext.context.async_fd);
    return event;
}

/* Sends an event to all who have the device open. */
FAKE_FN void fake_event(int device, enum ibv_event_type type) {
    int i;
    for (i = 0; i < FAKE_CONTEXTS; i++) {
        fake_context *c = fake.context[i];
        if (c != NULL && c->device == device) {
            fake_new_event(c, type)->element.port_num = 1;
        }
    }
}

/* Sends an event about a queue pair, or about its completion queue. */
FAKE_FN void fake_event_of(const fake_qp *qp, enum ibv_event_type type) {
    struct ibv_async_event *event = fake_new_event(fake_context_of(qp->pub.context), type);
    if (type == IBV_EVENT_CQ_ERR) {
        event->element.cq = qp->pub.recv_cq;
    } else {
        event->element.qp = (struct ibv_qp *)(uintptr_t)&qp->pub;
    }
}

/* What the device has to tell about a queue pair goes with it. */
FAKE_FN void fake_forget_events(const struct ibv_qp *qp) {
    fake_context *c = fake_context_of(qp->context);
    unsigned i, kept = 0, had = c->event_count;
    for (i = 0; i < had; i++) {
        if (c->events[i].event_type != IBV_EVENT_QP_LAST_WQE_REACHED || c->events[i].element.qp != qp) {
            c->events[kept++] = c->events[i];
        }
    }
    c->event_count = kept;
    if (had > 0 && kept == 0) {
        fake_silence(c->ext.context.async_fd);
    }
}

/* Sends one about a completion queue or a shared receive queue. */
FAKE_FN void fake_event_of_queue(struct ibv_context *context, enum ibv_event_type type, void *queue) {
    struct ibv_async_event *event = fake_new_event(fake_context_of(context), type);
    if (type == IBV_EVENT_CQ_ERR) {
        event->element.cq = (struct ibv_cq *)queue;
    } else {
        event->element.srq = (struct ibv_srq *)queue;
    }
}

static int fake_do_get_async_event(struct ibv_context *context, struct ibv_async_event *event) {
    fake_context *c = fake_context_of(context);
    if (c->event_count == 0) {
        errno = EAGAIN;
        return -1;
    }
    *event = c->events[0];
    memmove(c->events, c->events + 1, --c->event_count * sizeof *c->events);
    if (c->event_count == 0) {
        fake_silence(context->async_fd);
    }
    return 0;
}

static int fake_get_async_event(struct ibv_context *context, struct ibv_async_event *event) {
    int result;
    fake_enter();
    result = fake_do_get_async_event(context, event);
    fake_leave();
    return result;
}

static void fake_ack_async_event(struct ibv_async_event *event) {
    (void)event;
}

static const char *fake_event_type_str(enum ibv_event_type event) {
    (void)event;
    return "an event";
}

static const char *fake_wc_status_str(enum ibv_wc_status status) {
    (void)status;
    return "a status";
}

/* ---- queues ----------------------------------------------------------------------------------------------------- */

FAKE_FN void fake_complete(struct ibv_cq *cq, const struct ibv_wc *wc) {
    fake_cq *q = (fake_cq *)cq;
    if (q->swallows) {
        q->swallowed++;
        return;
    }
    assert_true(q->count < (unsigned)q->pub.cqe); /* nothing may overrun a completion queue */
    q->wc[(q->first + q->count++) % FAKE_WCS] = *wc;
    if (q->is_armed) {
        fake_channel *channel = (fake_channel *)q->pub.channel;
        q->is_armed = 0;
        q->rang++;
        assert_true(channel->bell_count < FAKE_BELLS);
        channel->bells[channel->bell_count++] = cq;
        fake_ring(channel->pub.fd);
    }
}

/* Takes a queue pair's completions away. */
FAKE_FN void fake_purge(struct ibv_cq *cq, uint32_t qp_num) {
    fake_cq *q = (fake_cq *)cq;
    unsigned i, kept = 0;
    for (i = 0; i < q->count; i++) {
        const struct ibv_wc *wc = &q->wc[(q->first + i) % FAKE_WCS];
        if (wc->qp_num != qp_num) {
            q->wc[(q->first + kept++) % FAKE_WCS] = *wc;
        }
    }
    q->count = kept;
}

/* ---- reliable connections ---------------------------------------------------------------------------------------- */

/* On InfiniBand a LID has to be the one that the port has now. */
FAKE_FN int fake_leads_to(uint16_t lid, int device) {
    return fake.link_layer == IBV_LINK_LAYER_ETHERNET || lid == fake.lid[device];
}

FAKE_FN fake_qp *fake_numbered(uint32_t number) {
    fake_qp *q = fake.qp_bucket[number % FAKE_QPS];
    while (q != NULL && q->pub.qp_num != number) {
        q = q->next_of_bucket;
    }
    return q;
}

FAKE_FN fake_qp *fake_peer(const fake_qp *q) {
    fake_qp *peer = fake_numbered(q->peer);
    int listens = peer != NULL && (peer->pub.state == IBV_QPS_RTR || peer->pub.state == IBV_QPS_RTS);
    return listens && peer->peer == q->pub.qp_num && fake_leads_to(q->dlid, peer->device) &&
                   fake.port_state[0] == IBV_PORT_ACTIVE && fake.port_state[1] == IBV_PORT_ACTIVE && !fake.drops
               ? peer
               : NULL;
}

/* From now on it may have something to do. */
FAKE_FN void fake_list_busy(fake_qp *q) {
    if (!q->is_busy) {
        q->is_busy = 1;
        q->next_busy = fake.busy;
        fake.busy = q;
    }
}

/* Memory that may be accessed so from afar, NULL if it may not. */
FAKE_FN uint8_t *fake_remote(const fake_qp *peer, const struct ibv_send_wr *wr, uint32_t length) {
    int i, right = wr->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
    for (i = 0; i < FAKE_MRS; i++) {
        const struct ibv_mr *mr = fake.mr[i];
        if (mr != NULL && mr->rkey == wr->wr.rdma.rkey && mr->pd == peer->pub.pd && (fake.mr_access[i] & right) != 0 &&
            wr->wr.rdma.remote_addr >= (uintptr_t)mr->addr &&
            wr->wr.rdma.remote_addr + length <= (uintptr_t)mr->addr + mr->length) {
            return (uint8_t *)(uintptr_t)wr->wr.rdma.remote_addr;
        }
    }
    return NULL;
}

FAKE_FN void fake_done(fake_qp *q, const struct ibv_send_wr *wr, enum ibv_wc_status status) {
    struct ibv_wc wc;
    if (status == IBV_WC_SUCCESS && !(wr->send_flags & IBV_SEND_SIGNALED)) {
        return;
    }
    memset(&wc, 0, sizeof wc);
    wc.wr_id = wr->wr_id;
    wc.status = status;
    wc.qp_num = q->pub.qp_num;
    fake_complete(q->pub.send_cq, &wc);
}

/* A message reaches the peer's shared receive queue; 0 if there is no buffer. */
FAKE_FN int fake_arrive(fake_qp *peer, const struct ibv_send_wr *wr, const void *bytes, uint32_t length) {
    fake_srq *srq = (fake_srq *)peer->pub.srq;
    struct ibv_wc wc;
    if (srq->recv_count == 0) {
        return 0;
    }
    memset(&wc, 0, sizeof wc);
    assert_true(srq->recv_piece[srq->recv_first].length >= length);
    if (length > 0) {
        memcpy((void *)(uintptr_t)srq->recv_piece[srq->recv_first].addr, bytes, length);
    }
    wc.wr_id = srq->recv[srq->recv_first].wr_id;
    wc.status = IBV_WC_SUCCESS;
    wc.opcode = IBV_WC_RECV;
    wc.byte_len = length;
    wc.qp_num = peer->pub.qp_num;
    wc.wc_flags = wr->opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_WITH_IMM : 0;
    wc.imm_data = wr->imm_data;
    srq->recv_first = (srq->recv_first + 1) % FAKE_RECVS;
    srq->recv_count--;
    fake_complete(peer->pub.recv_cq, &wc);
    return 1;
}

FAKE_FN void fake_flush(fake_qp *q) {
    for (; q->send_count > 0; q->send_count--) {
        fake_done(q, &q->sends[q->send_first].wr, IBV_WC_WR_FLUSH_ERR);
        q->send_first = (q->send_first + 1) % FAKE_SENDS;
    }
}

/* The first half of a message reaches a queue pair: it has one of the shared receive queue's buffers. */
FAKE_FN void fake_arrive_half(fake_qp *q) {
    fake_srq *srq = (fake_srq *)q->pub.srq;
    assert_true(srq->recv_count > 0 && !q->holds);
    q->held = srq->recv[srq->recv_first];
    q->holds = 1;
    srq->recv_first = (srq->recv_first + 1) % FAKE_RECVS;
    srq->recv_count--;
}

/* A queue pair that has failed has no use for the rest of a message any more. */
FAKE_FN void fake_give_back(fake_qp *q) {
    struct ibv_wc wc;
    if (q->holds) {
        memset(&wc, 0, sizeof wc);
        wc.wr_id = q->held.wr_id;
        wc.status = IBV_WC_WR_FLUSH_ERR;
        wc.qp_num = q->pub.qp_num;
        q->holds = 0;
        fake_complete(q->pub.recv_cq, &wc);
    }
    q->last_due = 0;
    if (fake.last_wqe >= 0) {
        fake_event_of(q, IBV_EVENT_QP_LAST_WQE_REACHED);
    }
}

/* It is reset, or destroyed. */
FAKE_FN void fake_let_go(fake_qp *q) {
    fake.lost_buffers += q->holds;
    q->holds = q->last_due = 0;
}

/* A queue pair fails, or is stopped. */
FAKE_FN void fake_stop(fake_qp *q, enum ibv_qp_state before) {
    q->pub.state = IBV_QPS_ERR;
    fake_flush(q);
    if (q->pub.srq != NULL && (before == IBV_QPS_RTR || before == IBV_QPS_RTS)) {
        if (fake.last_wqe > 0) {
            q->last_due = fake.last_wqe;
            fake_list_busy(q);
        } else {
            fake_give_back(q);
        }
    }
}

/* The peer refuses the oldest work request: both queue pairs have failed. */
FAKE_FN void fake_refuse(fake_qp *q, fake_qp *peer, enum ibv_wc_status status) {
    fake_done(q, &q->sends[q->send_first].wr, status);
    q->send_first = (q->send_first + 1) % FAKE_SENDS;
    q->send_count--;
    fake_stop(q, q->pub.state);
    fake_stop(peer, peer->pub.state);
}

/* Is a piece in memory that is registered under its key? */
FAKE_FN int fake_is_registered(const struct ibv_sge *piece) {
    int i;
    for (i = 0; i < FAKE_MRS; i++) {
        const struct ibv_mr *mr = fake.mr[i];
        if (mr != NULL && mr->lkey == piece->lkey && piece->addr >= (uintptr_t)mr->addr &&
            piece->addr + piece->length <= (uintptr_t)mr->addr + mr->length) {
            return 1;
        }
    }
    return 0;
}

/* Does what a queue pair has to do, as far as its peer lets it. */
FAKE_FN void fake_run(fake_qp *q) {
    fake_qp *peer;
    while (q->send_count > 0 && q->pub.state == IBV_QPS_RTS && (peer = fake_peer(q)) != NULL) {
        struct ibv_send_wr *wr = &q->sends[q->send_first].wr;
        uint32_t length = wr->num_sge > 0 ? q->sends[q->send_first].piece.length : 0;
        void *local = (void *)(uintptr_t)q->sends[q->send_first].piece.addr;
        int is_send = wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM;
        uint8_t *remote = is_send || length == 0 ? NULL : fake_remote(peer, wr, length);
        if (q->mtu != peer->mtu && length > 128u << (q->mtu < peer->mtu ? q->mtu : peer->mtu)) {
            fake_refuse(q, peer, IBV_WC_REM_INV_REQ_ERR); /* packets of another size than the path has */
            return;
        }
        if (length > 0 && !(wr->send_flags & IBV_SEND_INLINE) && !fake_is_registered(&q->sends[q->send_first].piece)) {
            fake_refuse(q, peer, IBV_WC_LOC_PROT_ERR);
            return;
        }
        if (is_send) {
            if (fake.messages_fail >= 0 && (fake.messages_fail & 1) == 0 && !fake_arrive(peer, wr, local, length)) {
                return;
            }
            if (fake.messages_fail != 0) {
                fake.messages_fail += fake.messages_fail < 0 ? 1 : -1;
                fake_refuse(q, peer, fake.why);
                return;
            }
        } else if (remote == NULL && length > 0) {
            fake_refuse(q, peer, IBV_WC_REM_ACCESS_ERR);
            return;
        } else if (length > 0) {
            memcpy(wr->opcode == IBV_WR_RDMA_READ ? local : remote, wr->opcode == IBV_WR_RDMA_READ ? remote : local,
                   length);
        }
        fake_done(q, wr, IBV_WC_SUCCESS);
        q->send_first = (q->send_first + 1) % FAKE_SENDS;
        q->send_count--;
    }
}

FAKE_FN void fake_run_all(void) {
    fake_qp *q = fake.busy, *next;
    fake.busy = NULL;
    for (; q != NULL; q = next) {
        next = q->next_busy;
        q->is_busy = 0;
        fake_run(q);
        if (q->last_due > 0 && --q->last_due == 0) {
            fake_give_back(q);
        }
        if (q->send_count > 0 || q->last_due > 0) {
            fake_list_busy(q);
        }
    }
}

static int fake_post_reliable(fake_qp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    if (fake.send_refuses != 0) {
        *bad = wr;
        errno = EDOM; /* that is not how it tells the reason */
        return fake.send_refuses;
    }
    if (q->sends == NULL) {
        q->sends = (fake_send *)calloc(FAKE_SENDS, sizeof *q->sends);
        assert_non_null(q->sends);
    }
    for (; wr != NULL; wr = wr->next) {
        fake_send *send = &q->sends[(q->send_first + q->send_count) % FAKE_SENDS];
        if (q->send_count == FAKE_SENDS || (q->pub.state != IBV_QPS_RTS && q->pub.state != IBV_QPS_ERR)) {
            *bad = wr;
            return EINVAL;
        }
        assert_true(wr->num_sge <= 1);
        send->wr = *wr;
        if (wr->num_sge > 0) {
            send->piece = wr->sg_list[0];
        }
        if (!(wr->send_flags & IBV_SEND_INLINE) && wr->num_sge > 0) {
            assert_true(fake_is_registered(&send->piece));
            if (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM) {
                fake.last_piece = send->piece;
            }
        }
        if ((wr->send_flags & IBV_SEND_INLINE) && wr->num_sge > 0) {
            assert_true(send->piece.length <= q->max_inline && send->piece.length <= sizeof send->inlined);
            fake.inlined++;
            memcpy(send->inlined, (const void *)(uintptr_t)send->piece.addr, send->piece.length);
            send->piece.addr = (uintptr_t)send->inlined;
        }
        q->send_count++;
    }
    if (q->pub.state == IBV_QPS_ERR) {
        fake_flush(q);
    }
    fake_run(q);
    if (q->send_count > 0) {
        fake_list_busy(q);
    }
    return 0;
}

static int fake_do_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    fake_srq *q = (fake_srq *)srq;
    int taken = 0;
    fake.srq_posts++;
    for (; wr != NULL; wr = wr->next) {
        unsigned at = (q->recv_first + q->recv_count) % FAKE_RECVS, i;
        if (fake.post_takes > 0 && taken++ == fake.post_takes) {
            *bad = wr;
            errno = EDOM;
            return EIO;
        }
        if (q->recv_count == FAKE_RECVS) {
            *bad = wr;
            return ENOMEM;
        }
        for (i = 0; i < q->recv_count; i++) { /* no buffer is given twice */
            assert_true(q->recv[(q->recv_first + i) % FAKE_RECVS].wr_id != wr->wr_id);
        }
        q->recv[at] = *wr;
        q->recv_piece[at] = wr->sg_list[0];
        q->recv_count++;
    }
    return 0;
}

static int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    int result;
    fake_enter();
    result = fake_do_post_srq_recv(srq, wr, bad);
    fake_leave();
    return result;
}

static int fake_do_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc) {
    fake_cq *q = (fake_cq *)cq;
    int i;
    fake_run_all();
    if (q->fails) {
        return -1;
    }
    for (i = 0; i < count && q->count > 0; i++, q->count--) {
        wc[i] = q->wc[q->first];
        q->first = (q->first + 1) % FAKE_WCS;
    }
    return i;
}

static int fake_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc) {
    int result;
    fake_enter();
    result = fake_do_poll_cq(cq, count, wc);
    fake_leave();
    return result;
}

static int fake_do_req_notify_cq(struct ibv_cq *cq, int solicited) {
    (void)solicited;
    ((fake_cq *)cq)->is_armed = 1;
    return 0;
}

static int fake_req_notify_cq(struct ibv_cq *cq, int solicited) {
    int result;
    fake_enter();
    result = fake_do_req_notify_cq(cq, solicited);
    fake_leave();
    return result;
}

static int fake_do_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **user) {
    fake_channel *c = (fake_channel *)channel;
    if (c->bell_count == 0) {
        errno = EAGAIN;
        return -1;
    }
    *cq = c->bells[0];
    *user = NULL;
    memmove((void *)c->bells, (void *)(c->bells + 1), --c->bell_count * sizeof *c->bells);
    if (c->bell_count == 0) {
        fake_silence(channel->fd);
    }
    return 0;
}

static int fake_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **user) {
    int result;
    fake_enter();
    result = fake_do_get_cq_event(channel, cq, user);
    fake_leave();
    return result;
}

static void fake_ack_cq_events(struct ibv_cq *cq, unsigned int count) {
    ((fake_cq *)cq)->acked += count;
}

static int fake_do_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    fake_qp *q = (fake_qp *)qp;
    int taken = 0;
    for (; wr != NULL; wr = wr->next) {
        unsigned at = (q->recv_first + q->recv_count) % FAKE_RECVS;
        if (q->recv_count == FAKE_RECVS || qp->state == IBV_QPS_RESET || (fake.post_takes > 0 && taken++ == fake.post_takes)) {
            *bad = wr;
            errno = EDOM;
            return EIO;
        }
        q->recv[at] = *wr;
        q->recv_piece[at] = wr->sg_list[0];
        q->recv_count++;
    }
    return 0;
}

static int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    int result;
    fake_enter();
    result = fake_do_post_recv(qp, wr, bad);
    fake_leave();
    return result;
}

/* Writes what precedes each datagram: with IPv4 addresses an IPv4 header at the end of it. */
FAKE_FN void fake_write_header(uint8_t *header, const uint8_t *from, const uint8_t *to) {
    memset(header, 0, 40);
    if (cci__verbs_is_mapped_v4(to)) {
        header[20] = 0x45;
        memcpy(header + 32, from + 12, 4);
        memcpy(header + 36, to + 12, 4);
    } else {
        header[0] = 0x60;
        memcpy(header + 8, from, 16);
        memcpy(header + 24, to, 16);
    }
}

/* A datagram reaches a queue pair, if it has a buffer for it. */
FAKE_FN int fake_deliver(fake_qp *q, const uint8_t *header, const uint8_t *bytes, uint32_t length, uint32_t from_qp,
                         unsigned flags, uint32_t imm) {
    struct ibv_wc wc;
    uint8_t *to;
    if (q->recv_count == 0 || q->pub.state != IBV_QPS_RTS) {
        return 0;
    }
    memset(&wc, 0, sizeof wc);
    assert_true(q->recv_piece[q->recv_first].length >= length + 40);
    to = (uint8_t *)(uintptr_t)q->recv_piece[q->recv_first].addr;
    memcpy(to, header, 40);
    memcpy(to + 40, bytes, length);
    wc.wr_id = q->recv[q->recv_first].wr_id;
    wc.status = IBV_WC_SUCCESS;
    wc.byte_len = length + 40;
    wc.src_qp = from_qp;
    wc.wc_flags = IBV_WC_GRH | flags;
    wc.imm_data = imm;
    wc.slid = fake.lid[!q->device];
    q->recv_first = (q->recv_first + 1) % FAKE_RECVS;
    q->recv_count--;
    fake_complete(q->pub.recv_cq, &wc);
    return 1;
}

FAKE_FN int fake_has_group(const fake_qp *q, const uint8_t *gid) {
    unsigned i;
    for (i = 0; i < q->group_count; i++) {
        if (memcmp(q->groups[i].raw, gid, 16) == 0) {
            return 1;
        }
    }
    return 0;
}

FAKE_FN int fake_device_of(const uint8_t *gid) {
    int i, n;
    for (i = 0; i < 2; i++) {
        for (n = 0; n < 4; n++) {
            if (memcmp(fake.gid[i][n].raw, gid, 16) == 0) {
                return i;
            }
        }
    }
    return -1;
}

FAKE_FN void fake_transmit(const fake_qp *from, const struct ibv_send_wr *wr, const uint8_t *bytes, uint32_t length) {
    const fake_ah *ah = (const fake_ah *)wr->wr.ud.ah;
    const uint8_t *to = ah->attr.grh.dgid.raw;
    int is_group = wr->wr.ud.remote_qpn == 0xffffff, i, device = fake_device_of(to), copies = fake.doubles ? 2 : 1, n;
    uint8_t header[40];
    if (fake.passes > 0) {
        fake.passes--;
    } else if (fake.loses > 0) {
        fake.loses--;
        copies = 0;
    }
    fake.last_ah = ah->attr;
    fake.last_imm = ntohl(wr->imm_data);
    fake.sent++;
    fake_write_header(header, fake.gid[from->device][ah->attr.grh.sgid_index].raw, to);
    for (i = is_group ? 0 : fake.qp_most - 1; i < fake.qp_most && !fake.drops; i++) {
        fake_qp *q = is_group ? fake.qp[i] : fake_numbered(wr->wr.ud.remote_qpn);
        if (q == NULL || q->recv == NULL || q->qkey != wr->wr.ud.remote_qkey || fake.port_state[q->device] != IBV_PORT_ACTIVE ||
            fake.port_state[from->device] != IBV_PORT_ACTIVE) {
            continue;
        }
        if (is_group ? fake_has_group(q, to) : q->device == device && fake_leads_to(ah->attr.dlid, device)) {
            for (n = 0; n < copies; n++) {
                (void)fake_deliver(q, header, bytes, length, from->pub.qp_num,
                                   wr->opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_WITH_IMM : 0, wr->imm_data);
            }
        }
    }
}

static int fake_do_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    fake_qp *q = (fake_qp *)qp;
    int batch = 0;
    fake.post_count++;
    if (qp->qp_type == IBV_QPT_RC) {
        return fake_post_reliable(q, wr, bad);
    }
    for (; wr != NULL; wr = wr->next, batch++) {
        uint8_t bytes[8192];
        uint32_t length = 0;
        int i;
        struct ibv_wc wc;
        if (qp->state != IBV_QPS_RTS) {
            *bad = wr;
            return EINVAL;
        }
        for (i = 0; i < wr->num_sge; i++) {
            memcpy(bytes + length, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
            length += wr->sg_list[i].length;
            assert_true((wr->send_flags & IBV_SEND_INLINE) != 0 || wr->sg_list[i].lkey == 77);
        }
        assert_true((wr->send_flags & IBV_SEND_INLINE) == 0 || length <= q->max_inline);
        fake.inlined += (wr->send_flags & IBV_SEND_INLINE) != 0;
        fake_transmit(q, wr, bytes, length);
        if (wr->send_flags & IBV_SEND_SIGNALED) {
            memset(&wc, 0, sizeof wc);
            wc.wr_id = wr->wr_id;
            wc.status = IBV_WC_SUCCESS;
            fake.signalled++;
            fake_complete(qp->send_cq, &wc);
        }
    }
    fake.largest_batch = batch > fake.largest_batch ? batch : fake.largest_batch;
    return 0;
}

static int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    int result;
    fake_enter();
    result = fake_do_post_send(qp, wr, bad);
    fake_leave();
    return result;
}

/* ---- making and unmaking ---------------------------------------------------------------------------------------- */

static int fake_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attributes) {
    assert_int_equal(attributes->attr_mask, IBV_CQ_ATTR_MODERATE);
    assert_non_null(cq->channel);
    fake.moderated++;
    fake.moderation_us = (int)attributes->moderate.cq_period;
    return 0;
}

static struct ibv_context *fake_open_device(struct ibv_device *device) {
    fake_context *c = (fake_context *)fake_new(sizeof *c, &fake.contexts);
    int i;
    fake.opened++;
    if (c == NULL) {
        return NULL;
    }
    c->device = (int)(device - fake_devices);
    c->ext.context.device = device;
    c->ext.context.async_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    c->ext.context.cmd_fd = -1;
    c->ext.context.num_comp_vectors = fake.comp_vectors;
    c->ext.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    c->ext.sz = sizeof c->ext;
    c->ext.modify_cq = fake.no_moderation ? NULL : fake_modify_cq;
    c->ext.context.ops.poll_cq = fake_poll_cq;
    c->ext.context.ops.req_notify_cq = fake_req_notify_cq;
    c->ext.context.ops.post_send = fake_post_send;
    c->ext.context.ops.post_recv = fake_post_recv;
    c->ext.context.ops.post_srq_recv = fake_post_srq_recv;
    for (i = 0; i < FAKE_CONTEXTS && fake.context[i] != NULL; i++) {
    }
    assert_true(i < FAKE_CONTEXTS);
    fake.context[i] = c;
    return &c->ext.context;
}

static int fake_close_device(struct ibv_context *context) {
    int i;
    for (i = 0; i < FAKE_CONTEXTS; i++) {
        if (fake.context[i] == fake_context_of(context)) {
            fake.context[i] = NULL;
        }
    }
    close(context->async_fd);
    fake.contexts--;
    free(fake_context_of(context));
    return 0;
}

static struct ibv_pd *fake_alloc_pd(struct ibv_context *context) {
    struct ibv_pd *pd = (struct ibv_pd *)fake_new(sizeof *pd, &fake.pds);
    if (pd != NULL) {
        pd->context = context;
    }
    return pd;
}

static int fake_dealloc_pd(struct ibv_pd *pd) {
    fake.pds--;
    free(pd);
    return 0;
}

static struct ibv_mr *fake_do_reg_mr(struct ibv_pd *pd, void *start, size_t length, int access) {
    struct ibv_mr *mr;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    int i;
    if ((access & 1 << 20) != 0 && fake.relaxed_fails != 0) {
        errno = fake.relaxed_fails;
        return NULL;
    }
    if ((access & 1 << 6) != 0 && fake.on_demand_fails != 0) {
        errno = fake.on_demand_fails;
        return NULL;
    }
    fake.on_demand += (access & 1 << 6) != 0;
    *((access & 1 << 20) != 0 ? &fake.relaxed : &fake.strict) += access != IBV_ACCESS_LOCAL_WRITE;
    fake.shared_pages += access == IBV_ACCESS_LOCAL_WRITE && (((uintptr_t)start | length) & (page - 1)) != 0;
    mr = (struct ibv_mr *)fake_new(sizeof *mr, &fake.mrs);
    if (mr != NULL) {
        for (i = 0; i < FAKE_MRS && fake.mr[i] != NULL; i++) {
        }
        assert_true(i < FAKE_MRS);
        fake.mr[i] = mr;
        fake.mr_access[i] = access;
        mr->pd = pd;
        mr->addr = start;
        mr->length = length;
        fake_pin(length);
        mr->rkey = ++fake.next_rkey;
        mr->lkey = access == IBV_ACCESS_LOCAL_WRITE ? 77 : mr->rkey + 1000; /* of the library's own, or the program's */
    }
    return mr;
}

static struct ibv_mr *fake_reg_mr(struct ibv_pd *pd, void *start, size_t length, int access) {
    struct ibv_mr *result;
    fake_enter();
    result = fake_do_reg_mr(pd, start, length, access);
    fake_leave();
    return result;
}

/* The other device's memory is this process's, where `address` says. */
static struct ibv_mr *fake_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t address, int fd, int access) {
    if (fake.dmabuf_fails != 0) {
        errno = fake.dmabuf_fails;
        return NULL;
    }
    fake.dmabuf_offset = offset;
    fake.dmabuf_fd = fd;
    return fake_reg_mr(pd, (void *)(uintptr_t)address, length, access);
}

static int fake_do_dereg_mr(struct ibv_mr *mr) {
    int i;
    for (i = 0; i < FAKE_MRS; i++) {
        if (fake.mr[i] == mr) {
            fake.mr[i] = NULL;
            fake.pinned -= mr->length;
        }
    }
    fake.mrs--;
    free(mr);
    return fake.destroy_fails ? EBUSY : 0;
}

static int fake_dereg_mr(struct ibv_mr *mr) {
    int result;
    fake_enter();
    result = fake_do_dereg_mr(mr);
    fake_leave();
    return result;
}

static struct ibv_comp_channel *fake_create_comp_channel(struct ibv_context *context) {
    fake_channel *c = (fake_channel *)fake_new(sizeof *c, &fake.channels);
    if (c == NULL) {
        return NULL;
    }
    c->pub.context = context;
    c->pub.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return &c->pub;
}

static int fake_destroy_comp_channel(struct ibv_comp_channel *channel) {
    fake.channels--;
    close(channel->fd);
    free(channel);
    return 0;
}

static struct ibv_cq *fake_create_cq(struct ibv_context *context, int depth, void *user,
                                     struct ibv_comp_channel *channel, int vector) {
    fake_cq *q = (fake_cq *)fake_new(sizeof *q, &fake.cqs);
    (void)user;
    assert_true(vector == 0 || (vector > 0 && vector < fake.comp_vectors));
    fake.vector_used[vector] += channel != NULL;
    if (q == NULL) {
        return NULL;
    }
    q->pub.context = context;
    q->pub.channel = channel;
    q->pub.cqe = depth;
    fake_pin(fake_queue_bytes((uint32_t)depth, 64));
    return &q->pub;
}

/* As the real one, which would wait for ever, this wants each ring of the bell to have been acknowledged. */
static int fake_destroy_cq(struct ibv_cq *cq) {
    fake_cq *q = (fake_cq *)cq;
    fake_channel *channel = (fake_channel *)cq->channel;
    unsigned i, kept = 0;
    for (i = 0; i < (unsigned)fake.qp_most; i++) {
        assert_true(fake.qp[i] == NULL || (fake.qp[i]->pub.send_cq != cq && fake.qp[i]->pub.recv_cq != cq));
    }
    for (i = 0; channel != NULL && i < channel->bell_count; i++) {
        if (channel->bells[i] != cq) {
            channel->bells[kept++] = channel->bells[i];
        } else {
            q->acked++; /* the kernel drops what nobody has taken */
        }
    }
    if (channel != NULL && channel->bell_count > 0 && kept == 0) {
        fake_silence(channel->pub.fd);
    }
    if (channel != NULL) {
        channel->bell_count = kept;
    }
    assert_int_equal(q->rang, q->acked);
    fake.pinned -= fake_queue_bytes((uint32_t)cq->cqe, 64);
    fake.cqs--;
    free(q);
    return fake.destroy_fails ? EBUSY : 0;
}

static struct ibv_srq *fake_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attributes) {
    fake_srq *q = (fake_srq *)fake_new(sizeof *q, &fake.srqs);
    if (q == NULL) {
        return NULL;
    }
    assert_true(attributes->attr.max_wr <= FAKE_RECVS);
    q->pub.context = pd->context;
    q->pub.pd = pd;
    q->bytes = fake_queue_bytes(attributes->attr.max_wr, 32);
    fake_pin(q->bytes);
    return &q->pub;
}

static int fake_destroy_srq(struct ibv_srq *srq) {
    int i;
    for (i = 0; i < fake.qp_most; i++) {
        assert_true(fake.qp[i] == NULL || fake.qp[i]->pub.srq != srq);
    }
    fake.pinned -= ((fake_srq *)srq)->bytes;
    fake.srqs--;
    free(srq);
    return fake.destroy_fails ? EBUSY : 0;
}

static struct ibv_qp *fake_do_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes) {
    fake_qp *q;
    int i;
    if (fake.no_qp_type[attributes->qp_type] != 0) {
        errno = fake.no_qp_type[attributes->qp_type];
        return NULL;
    }
    if ((int)attributes->cap.max_inline_data > fake.max_inline) {
        errno = EINVAL;
        return NULL;
    }
    q = (fake_qp *)fake_new(sizeof *q, &fake.qps);
    if (q == NULL) {
        return NULL;
    }
    for (i = fake.qp_free; i < fake.qp_most && fake.qp[i] != NULL; i++) {
    }
    assert_true(i < FAKE_QPS);
    fake.qp_most += i == fake.qp_most;
    fake.qp_free = i + 1;
    fake.commands[0]++;
    if (attributes->srq == NULL) {
        q->recv = (struct ibv_recv_wr *)calloc(FAKE_RECVS, sizeof *q->recv);
        q->recv_piece = (struct ibv_sge *)calloc(FAKE_RECVS, sizeof *q->recv_piece);
        assert_true(q->recv != NULL && q->recv_piece != NULL);
    }
    q->max_inline = attributes->cap.max_inline_data;
    if (fake.tells_inline > 0 && q->max_inline > 0) {
        q->max_inline = attributes->cap.max_inline_data = (uint32_t)fake.tells_inline;
    }
    q->pub.context = pd->context;
    q->pub.pd = pd;
    q->pub.send_cq = attributes->send_cq;
    q->pub.recv_cq = attributes->recv_cq;
    q->pub.srq = attributes->srq;
    q->pub.qp_num = fake.next_qpn++;
    q->pub.qp_type = attributes->qp_type;
    q->bytes = fake_queue_bytes(attributes->cap.max_send_wr, 64 + attributes->cap.max_inline_data) +
               fake_queue_bytes(attributes->cap.max_recv_wr, 16);
    fake_pin(q->bytes);
    q->device = fake_context_of(pd->context)->device;
    q->place = i;
    fake.qp[i] = q;
    q->next_of_bucket = fake.qp_bucket[q->pub.qp_num % FAKE_QPS];
    fake.qp_bucket[q->pub.qp_num % FAKE_QPS] = q;
    return &q->pub;
}

/* Making one takes the adapter a while, or until a test lets it go on; a test that forgets that is not waited for. */
FAKE_FN void fake_take_time(int device) {
    struct timespec t = {0, 1000000};
    int i;
    fake_enter();
    fake.most_making = fake.making + 1 > fake.most_making ? fake.making + 1 : fake.most_making;
    (void)__atomic_add_fetch(&fake.making, 1, __ATOMIC_SEQ_CST);
    fake_leave();
    for (i = 0; i < 20000 && __atomic_load_n(&fake.is_held[device], __ATOMIC_SEQ_CST); i++) {
        nanosleep(&t, NULL);
    }
    t.tv_nsec = (long)__atomic_load_n(&fake.make_takes_ns, __ATOMIC_SEQ_CST);
    if (t.tv_nsec > 0) {
        nanosleep(&t, NULL);
    }
    fake_enter();
    (void)__atomic_sub_fetch(&fake.making, 1, __ATOMIC_SEQ_CST);
    fake_leave();
}

static struct ibv_qp *fake_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes) {
    struct ibv_qp *result;
    if (attributes->qp_type == IBV_QPT_RC) {
        fake_take_time(fake_context_of(pd->context)->device);
    }
    fake_enter();
    result = fake_do_create_qp(pd, attributes);
    fake_leave();
    return result;
}

static int fake_do_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask) {
    fake_qp *q = (fake_qp *)qp;
    enum ibv_qp_state before = qp->state;
    fake.commands[1]++;
    if (fake.modify_fails) {
        return EIO;
    }
    if (mask & IBV_QP_STATE) {
        qp->state = attributes->qp_state;
    }
    if (mask & IBV_QP_QKEY) {
        q->qkey = attributes->qkey;
    }
    if (mask & IBV_QP_DEST_QPN) {
        q->peer = attributes->dest_qp_num;
    }
    if (mask & IBV_QP_PATH_MTU) {
        q->mtu = attributes->path_mtu;
    }
    if (mask & IBV_QP_AV) {
        q->dlid = attributes->ah_attr.dlid;
        q->flow_label = attributes->ah_attr.grh.flow_label;
    }
    if (qp->state == IBV_QPS_ERR) {
        fake_stop(q, before);
    }
    if (qp->state == IBV_QPS_RESET) {
        fake.resets += before == IBV_QPS_ERR;
        fake_let_go(q);
        q->recv_count = q->send_count = 0;
        if (fake.reset_purges) {
            fake_purge(qp->send_cq, qp->qp_num);
        }
    }
    return 0;
}

static int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask) {
    int result;
    fake_enter();
    result = fake_do_modify_qp(qp, attributes, mask);
    fake_leave();
    return result;
}

/* Nothing knows of it any more. */
FAKE_FN void fake_forget_qp(fake_qp *q) {
    fake_qp **at = &fake.qp_bucket[q->pub.qp_num % FAKE_QPS];
    while (*at != q) {
        at = &(*at)->next_of_bucket;
    }
    *at = q->next_of_bucket;
    for (at = &fake.busy; q->is_busy && *at != q;) {
        at = &(*at)->next_busy;
    }
    if (q->is_busy) {
        *at = q->next_busy;
    }
    fake.qp[q->place] = NULL;
    fake.qp_free = q->place < fake.qp_free ? q->place : fake.qp_free;
    fake_forget_events(&q->pub);
}

static int fake_do_destroy_qp(struct ibv_qp *qp) {
    fake_qp *q = (fake_qp *)qp;
    if (q->group_count > 0) {
        return EBUSY;
    }
    fake.commands[2]++;
    fake.pinned -= q->bytes;
    fake_let_go(q);
    fake_forget_qp(q);
    fake.qps--;
    free(q->recv);
    free(q->recv_piece);
    free(q->sends);
    free(q);
    return fake.destroy_fails ? EBUSY : 0;
}

static int fake_destroy_qp(struct ibv_qp *qp) {
    int result;
    fake_enter();
    result = fake_do_destroy_qp(qp);
    fake_leave();
    return result;
}

static struct ibv_ah *fake_do_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attributes) {
    fake_ah *ah;
    struct timespec t;
    if (fake.ah_takes_ns != 0) {
        t.tv_sec = (time_t)(fake.ah_takes_ns / 1000000000u);
        t.tv_nsec = (long)(fake.ah_takes_ns % 1000000000u);
        nanosleep(&t, NULL);
    }
    fake.ahs_made++;
    if (fake.ah_fails) {
        errno = EHOSTUNREACH;
        return NULL;
    }
    if (fake.gid_fails[fake_context_of(pd->context)->device][attributes->grh.sgid_index] != 0) {
        errno = fake.gid_fails[fake_context_of(pd->context)->device][attributes->grh.sgid_index];
        return NULL;
    }
    ah = (fake_ah *)fake_new(sizeof *ah, &fake.ahs);
    if (ah == NULL) {
        return NULL;
    }
    ah->pub.pd = pd;
    ah->attr = *attributes;
    fake.most_ahs = fake.ahs > fake.most_ahs ? fake.ahs : fake.most_ahs;
    return &ah->pub;
}

static struct ibv_ah *fake_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attributes) {
    struct ibv_ah *result;
    fake_enter();
    result = fake_do_create_ah(pd, attributes);
    fake_leave();
    return result;
}

static int fake_do_destroy_ah(struct ibv_ah *ah) {
    fake.ahs--;
    free(ah);
    return 0;
}

static int fake_destroy_ah(struct ibv_ah *ah) {
    int result;
    fake_enter();
    result = fake_do_destroy_ah(ah);
    fake_leave();
    return result;
}

static int fake_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid) {
    fake_qp *q = (fake_qp *)qp;
    (void)lid;
    if (!fake_may() || q->group_count == 16) {
        return ENOMEM;
    }
    q->groups[q->group_count++] = *gid;
    return 0;
}

static int fake_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid) {
    fake_qp *q = (fake_qp *)qp;
    unsigned i;
    (void)lid;
    for (i = 0; i < q->group_count; i++) {
        if (memcmp(&q->groups[i], gid, sizeof *gid) == 0) {
            q->groups[i] = q->groups[--q->group_count];
            return 0;
        }
    }
    return EINVAL;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

FAKE_FN void fake_set_gid(int device, int index, const char *text) {
    if (strchr(text, '.') != NULL && strchr(text, ':') == NULL) {
        memset(fake.gid[device][index].raw, 0, 16);
        memset(fake.gid[device][index].raw + 10, 0xff, 2);
        assert_int_equal(inet_pton(AF_INET, text, fake.gid[device][index].raw + 12), 1);
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, fake.gid[device][index].raw), 1);
    }
}

/* Kinds of adapters, as their drivers and documentation describe them; `lacks` is part of the reason for which one is refused. */
static const struct fake_adapter {
    const char *name, *lacks;
    enum ibv_transport_type transport;
    int max_inline, tells_inline, max_srq, last_wqe, relaxed_fails, no_moderation, comp_vectors, reset_purges, mtu;
    int link_layer;
} fake_adapters[] = {
    {"ConnectX, BlueField", NULL, IBV_TRANSPORT_IB, 256, 0, 64, 3, 0, 0, 8, 1, IBV_MTU_4096, IBV_LINK_LAYER_ETHERNET},
    {"ConnectX on InfiniBand", NULL, IBV_TRANSPORT_IB, 256, 0, 64, 3, 0, 0, 8, 1, IBV_MTU_4096, IBV_LINK_LAYER_INFINIBAND},
    {"an old ConnectX, or kernel", NULL, IBV_TRANSPORT_IB, 256, 188, 64, 3, EINVAL, 1, 8, 1, IBV_MTU_2048, IBV_LINK_LAYER_ETHERNET},
    {"E810", NULL, IBV_TRANSPORT_IB, 101, 101, 64, 1, EOPNOTSUPP, 1, 4, 0, IBV_MTU_4096, IBV_LINK_LAYER_ETHERNET},
    {"bnxt", NULL, IBV_TRANSPORT_IB, 96, 96, 64, 50, 0, 1, 4, 0, IBV_MTU_4096, IBV_LINK_LAYER_ETHERNET},
    {"rxe", NULL, IBV_TRANSPORT_IB, 256, 0, 64, -1, EINVAL, 1, 1, 0, IBV_MTU_1024, IBV_LINK_LAYER_ETHERNET},
    {"one that does little", NULL, IBV_TRANSPORT_IB, 0, 0, 64, -1, EINVAL, 1, 0, 0, IBV_MTU_256, IBV_LINK_LAYER_ETHERNET},
    {"iWARP", "iWARP", IBV_TRANSPORT_IWARP, 96, 0, 64, 0, EINVAL, 1, 1, 0, IBV_MTU_1024, IBV_LINK_LAYER_ETHERNET},
    {"EFA", "neither", IBV_TRANSPORT_UNKNOWN, 32, 0, 0, 0, EINVAL, 1, 1, 0, IBV_MTU_4096, IBV_LINK_LAYER_ETHERNET},
    {"one without shared receive queues", "no shared receive queues", IBV_TRANSPORT_IB, 96, 0, 0, 0, 0, 1, 1, 0, IBV_MTU_4096,
     IBV_LINK_LAYER_ETHERNET},
};

FAKE_FN void fake_play(const struct fake_adapter *a) {
    fake.transport = a->transport;
    fake.max_inline = a->max_inline;
    fake.tells_inline = a->tells_inline;
    fake.max_srq = a->max_srq;
    fake.last_wqe = a->last_wqe;
    fake.relaxed_fails = a->relaxed_fails;
    fake.no_moderation = a->no_moderation;
    fake.comp_vectors = a->comp_vectors;
    fake.reset_purges = a->reset_purges;
    fake.mtu = a->mtu;
    fake.link_layer = a->link_layer;
    fake.lid[0] = 7;
    fake.lid[1] = 9;
}

/* Two good devices, in the place of whatever this machine has. */
FAKE_FN void fake_begin(void) {
    memset(&fake, 0, sizeof fake);
    fake.device_count = 2;
    fake.port_state[0] = fake.port_state[1] = IBV_PORT_ACTIVE;
    fake.link_layer = IBV_LINK_LAYER_ETHERNET;
    fake.mtu = IBV_MTU_1024;
    fake.pkey[0] = 0xffff;
    fake.pkey[1] = 0x8005;
    fake.max_inline = 256;
    fake.max_qp_wr = 4096;
    fake.max_srq = 64;
    fake.comp_vectors = 1;
    fake.next_qpn = 100;
    fake_set_gid(0, 0, "fe80::1");
    fake_set_gid(0, 1, "127.0.0.1");
    fake_set_gid(1, 0, "fe80::2");
    fake_set_gid(1, 1, "127.0.0.2");
    memset(&cci__ibv, 0, sizeof cci__ibv);
#define FAKE(name) cci__ibv.name = fake_##name
    FAKE(get_device_list), FAKE(free_device_list), FAKE(get_device_name), FAKE(open_device), FAKE(close_device);
    FAKE(query_device), FAKE(query_port), FAKE(query_gid), FAKE(query_pkey);
    FAKE(get_async_event), FAKE(ack_async_event), FAKE(event_type_str), FAKE(wc_status_str);
    FAKE(alloc_pd), FAKE(dealloc_pd), FAKE(reg_mr), FAKE(dereg_mr);
    FAKE(create_comp_channel), FAKE(destroy_comp_channel), FAKE(create_cq), FAKE(destroy_cq);
    FAKE(create_srq), FAKE(destroy_srq);
    FAKE(get_cq_event), FAKE(ack_cq_events), FAKE(create_qp), FAKE(modify_qp), FAKE(destroy_qp);
    FAKE(create_ah), FAKE(destroy_ah), FAKE(attach_mcast), FAKE(detach_mcast);
    FAKE(fork_init), FAKE(is_fork_initialized), FAKE(reg_dmabuf_mr);
#undef FAKE
    cci__ibv_is_loaded = 1;
    cci__ibv_may_fork = 0;
    cci__verbs_known_count = 0;
    fake.fork_status = 2;
}

/* Nothing may be left. */
FAKE_FN void fake_end(void) {
    assert_int_equal(fake.contexts, 0);
    assert_int_equal(fake.pds, 0);
    assert_int_equal(fake.mrs, 0);
    assert_int_equal(fake.channels, 0);
    assert_int_equal(fake.cqs, 0);
    assert_int_equal(fake.srqs, 0);
    assert_int_equal(fake.qps, 0);
    assert_int_equal(fake.ahs, 0);
    assert_int_equal(fake.pinned, 0);
}

#endif /* CCI_TEST_FAKE_VERBS_H */
