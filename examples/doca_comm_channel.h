/* doca_comm_channel.h - the DOCA Comm Channel interface over CCI: messages between a host and a DPU, without DOCA.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * A program written for the Comm Channel of DOCA 2.0 includes this header instead of DOCA's and compiles unchanged; in
 * ONE of its files, with this line before it:
 *
 *     #define DOCA_COMM_CHANNEL_IMPLEMENTATION
 *     #include "doca_comm_channel.h"
 *
 * That brings cci.h and its transports (RDMA, shared memory, UDP) with it, unless the file has included cci.h before:
 * then it must be, somewhere in the program, with CCI_IMPLEMENTATION and the transports that are wanted. Link with
 * -pthread. Where the program includes doca_dev.h or doca_error.h too, give it files of these names that include this
 * one. examples/dpu_channel.c is a whole program.
 *
 * HOST AND DPU are two computers with addresses here, or two processes of one computer.
 *   A device (struct doca_dev) is a device of CCI that is up: without configuration each network interface with an
 * address, each active port of an RDMA adapter, and this computer's memory. CCI_CONFIG names a file that chooses
 * others; `transport = udp`, `verbs` or `sisci` is a key there. `progress = thread` in it serves peers while the
 * program computes; without that everything happens inside the calls below.
 *   A representor (struct doca_dev_rep) stands for all hosts that reach its device: each device has one.
 *   The client's environment says where the services are: DOCA_COMM_CHANNEL_DPU=192.0.2.7 for all devices, or
 * eth0=192.0.2.7,eth1=192.0.2.9 for each its own. It is what stands in a URI of CCI before the port: an address, a
 * name, [fe80::1%eth0]; with sisci the number of a node. Not set: they are on this computer. Between a BlueField and
 * its host that is the address of the DPU's end of tmfifo_net0, or of a network adapter's port.
 *
 * NAMES. A name, by a hash of it, is that of a service of CCI, which stands for 8 ports out of 49152 to 65535, as
 * cci_create_endpoint_at() says; the request carries all of it. A firewall between the two must let these ports
 * through. Anybody who reaches them can be a client. One service of an address has a name.
 *
 * MESSAGES have up to 65,535 bytes with every device: what the network does not carry in one piece travels in several.
 * They arrive in order, each once, and none is lost while both sides live: where the receiver's queue is full the
 * sender's becomes full, and sendto says DOCA_ERROR_AGAIN. Disconnecting, and destroying an endpoint, waits until what
 * was sent has arrived, up to DOCA_COMM_CHANNEL_FLUSH_MS. What a peer has sent before it left is received first, then
 * DOCA_ERROR_CONNECTION_RESET comes once.
 *   A peer that vanished without a word is noticed after DOCA_COMM_CHANNEL_SILENCE_MS, or twice that. So is one that
 * does not call this header for so long, unless its device has `progress = thread`.
 *
 * EVENT CHANNELS (Linux). A channel is readable only while it is armed. Arming the one for received messages makes it
 * readable when there is something to receive, also if that was there before; the next message received disarms it.
 * Arming the one for transmitted messages makes it readable when a message has been transmitted since it was last
 * readable, or when the queue that was full is not; that disarms it. A channel may be readable without need: the
 * program calls recvfrom or sendto, gets DOCA_ERROR_AGAIN, arms it again and sleeps on. Elsewhere get_event_channel is
 * DOCA_ERROR_NOT_FOUND.
 *
 * THREADS. One thread at a time uses an endpoint and its peers; different endpoints share nothing.
 *
 * FUNCTIONS, each without doca_comm_channel_ in front, and what it does here. None of the document's is missing.
 *
 *     get_max_service_name_len               121: names have 1 to 120 bytes
 *     get_max_message_size                   65,535 for each device
 *     get_max_send_queue_size                the device's largest buffer count (CCI_OPT_CAPS) as a power of two, at
 *                                            most 32,768
 *     get_max_recv_queue_size                likewise
 *     get_service_max_num_connections        the device's largest number of connections (CCI_OPT_CAPS)
 *     ep_create                              an empty endpoint; cci_init()
 *     ep_set_device                          the device of CCI
 *     ep_get_device                          NULL if none was set
 *     ep_set_device_rep                      a service needs one, although it stands for all hosts
 *     ep_get_device_rep                      NULL if none was set
 *     ep_set_max_msg_size                    the longest message of this side: at least 64, 4,080 if not set
 *     ep_get_max_msg_size                    that
 *     ep_set_send_queue_size                 messages in transmission to all peers together: a power of two, at least
 *                                            16, 256 if not set
 *     ep_get_send_queue_size                 that
 *     ep_set_recv_queue_size                 CCI_OPT_ENDPT_RECV_BUF_COUNT: likewise
 *     ep_get_recv_queue_size                 that
 *     ep_listen                              cci_create_endpoint_at() with the name
 *     ep_connect                             cci_create_endpoint(), cci_connect() to the name; waits for
 *                                            the outcome, up to DOCA_COMM_CHANNEL_CONNECT_MS
 *     ep_get_event_channel                   two epoll descriptors over the OS handle of the endpoint
 *     ep_event_handle_arm_recv               cci_get_event() until there is none; then as EVENT CHANNELS says
 *     ep_event_handle_arm_send               likewise
 *     ep_sendto                              cci_sendv(): the bytes are copied
 *     ep_recvfrom                            cci_get_event(): the bytes are copied; for a service cci_accept() too: the
 *                                            first message of a client makes it known to the program. `*len` is the
 *                                            size of the buffer and becomes the message's. A message that is longer
 *                                            stays where it is: DOCA_ERROR_INVALID_VALUE, and `*len` becomes the bytes
 *                                            that it needs
 *     ep_disconnect                          cci_disconnect(); for a client cci_destroy_endpoint(): its properties may
 *                                            be set again
 *     ep_destroy                             cci_destroy_endpoint(), cci_finalize(): peers and channels are gone
 *     peer_addr_set_user_data                kept with the peer
 *     peer_addr_get_user_data                that
 *     peer_addr_update_info                  lets the library work and takes over the counts. DOCA_ERROR_NOT_CONNECTED:
 *                                            it was disconnected; DOCA_ERROR_CONNECTION_RESET: the peer has gone
 *     peer_addr_get_send_messages            that sendto has accepted, as of update_info; likewise
 *     peer_addr_get_send_bytes               their bytes
 *     peer_addr_get_recv_messages            that recvfrom has given
 *     peer_addr_get_recv_bytes               their bytes
 *     peer_addr_get_send_in_flight_messages  that the peer's endpoint is not known to have
 *
 * Of DOCA Core there is what these need: lists of devices and representors, opening and closing, names and errors.
 *
 * STATUSES that the document names and that do not come here:
 *     DOCA_ERROR_INITIALIZATION of sendto and recvfrom    there is no DCI to be made anew after a failed send
 *     DOCA_ERROR_UNEXPECTED                               only if CCI refuses to tell about a device of its own
 *
 * A disconnected peer may be given to these functions until its endpoint is destroyed (DOCA_ERROR_NOT_CONNECTED), but a
 * new client may have taken its place: forget it.
 *
 * LIMITS. It is for systems with POSIX. A client's message in several pieces takes its length of memory at the service
 * from its first piece on. A program that waits for an empty slot alone, and has let its receive queue become full, is
 * woken again and again. */
#ifdef DOCA_COMM_CHANNEL_IMPLEMENTATION
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* before the first header: strict ISO modes hide POSIX */
#endif
#ifndef CCI_H
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"
#endif
#endif

#ifndef DOCA_COMM_CHANNEL_H
#define DOCA_COMM_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ------------------------------------------------------------------------------------------------------ */

#define DOCA_ERROR_TABLE(X)                                                                                            \
    X(DOCA_SUCCESS, "success")                                                                                         \
    X(DOCA_ERROR_UNKNOWN, "unknown error")                                                                             \
    X(DOCA_ERROR_NOT_PERMITTED, "operation not permitted")                                                             \
    X(DOCA_ERROR_IN_USE, "resource in use")                                                                            \
    X(DOCA_ERROR_NOT_SUPPORTED, "operation not supported")                                                             \
    X(DOCA_ERROR_AGAIN, "temporarily unavailable, try again")                                                          \
    X(DOCA_ERROR_INVALID_VALUE, "invalid value")                                                                       \
    X(DOCA_ERROR_NO_MEMORY, "out of memory")                                                                           \
    X(DOCA_ERROR_INITIALIZATION, "initialization failed")                                                              \
    X(DOCA_ERROR_TIME_OUT, "timed out")                                                                                \
    X(DOCA_ERROR_SHUTDOWN, "shut down")                                                                                \
    X(DOCA_ERROR_CONNECTION_RESET, "connection reset by the peer")                                                     \
    X(DOCA_ERROR_CONNECTION_ABORTED, "connection aborted")                                                             \
    X(DOCA_ERROR_CONNECTION_INPROGRESS, "connection in progress")                                                      \
    X(DOCA_ERROR_NOT_CONNECTED, "not connected")                                                                       \
    X(DOCA_ERROR_NO_LOCK, "lock not available")                                                                        \
    X(DOCA_ERROR_NOT_FOUND, "not found")                                                                               \
    X(DOCA_ERROR_IO_FAILED, "input or output failed")                                                                  \
    X(DOCA_ERROR_BAD_STATE, "bad state")                                                                               \
    X(DOCA_ERROR_UNSUPPORTED_VERSION, "unsupported version")                                                           \
    X(DOCA_ERROR_OPERATING_SYSTEM, "operating system call failed")                                                     \
    X(DOCA_ERROR_DRIVER, "driver call failed")                                                                         \
    X(DOCA_ERROR_UNEXPECTED, "unexpected error")

#define DOCA__ERROR_VALUE(name, text) name,
typedef enum doca_error { DOCA_ERROR_TABLE(DOCA__ERROR_VALUE) DOCA__ERROR_COUNT } doca_error_t;
#undef DOCA__ERROR_VALUE

const char *doca_get_error_string(doca_error_t error); /* "out of memory" */
const char *doca_get_error_name(doca_error_t error);   /* "DOCA_ERROR_NO_MEMORY" */

/* ---- devices and representors ------------------------------------------------------------------------------------ */

#define DOCA_DEVINFO_IFACE_NAME_SIZE 256
#define DOCA_DEVINFO_PCI_ADDR_SIZE 13 /* "0000:03:00.0" */
#define DOCA_DEVINFO_REP_VUID_SIZE 128

struct doca_devinfo;
struct doca_dev;
struct doca_devinfo_rep;
struct doca_dev_rep;

enum doca_dev_rep_filter {
    DOCA_DEV_REP_FILTER_ALL = 0,
    DOCA_DEV_REP_FILTER_NET = 1 << 1,
    DOCA_DEV_REP_FILTER_EMULATED = 1 << 2
};

/* The best comes first; ends with NULL too. */
doca_error_t doca_devinfo_list_create(struct doca_devinfo ***dev_list, uint32_t *nb_devs);
doca_error_t doca_devinfo_list_destroy(struct doca_devinfo **dev_list);
doca_error_t doca_devinfo_get_iface_name(const struct doca_devinfo *devinfo, char *iface_name, uint32_t size);
/* DOCA_ERROR_NOT_SUPPORTED: the device is not on a PCI bus, or the transport does not know. */
doca_error_t doca_devinfo_get_pci_addr_str(const struct doca_devinfo *devinfo, char *pci_addr_str);
doca_error_t doca_dev_open(struct doca_devinfo *devinfo, struct doca_dev **dev);
doca_error_t doca_dev_close(struct doca_dev *dev);
struct doca_devinfo *doca_dev_as_devinfo(struct doca_dev *dev);

doca_error_t doca_devinfo_rep_list_create(struct doca_dev *dev, int filter, struct doca_devinfo_rep ***dev_list_rep,
                                          uint32_t *nb_devs_rep);
doca_error_t doca_devinfo_rep_list_destroy(struct doca_devinfo_rep **dev_list_rep);
doca_error_t doca_devinfo_rep_get_vuid(const struct doca_devinfo_rep *devinfo_rep, char *rep_vuid, uint32_t size);
doca_error_t doca_dev_rep_open(struct doca_devinfo_rep *devinfo_rep, struct doca_dev_rep **dev_rep);
doca_error_t doca_dev_rep_close(struct doca_dev_rep *dev_rep);

/* ---- the channel ------------------------------------------------------------------------------------------------- */

typedef int doca_event_channel_t; /* for poll, select and epoll; owned by the endpoint */

enum doca_comm_channel_msg_flags { DOCA_CC_MSG_FLAG_NONE = 0 };

struct doca_comm_channel_ep_t;
struct doca_comm_channel_addr_t;

doca_error_t doca_comm_channel_get_max_service_name_len(uint32_t *max_service_name_len);
doca_error_t doca_comm_channel_get_max_message_size(const struct doca_devinfo *devinfo, uint32_t *max_message_size);
doca_error_t doca_comm_channel_get_max_send_queue_size(const struct doca_devinfo *devinfo,
                                                       uint32_t *max_send_queue_size);
doca_error_t doca_comm_channel_get_max_recv_queue_size(const struct doca_devinfo *devinfo,
                                                       uint32_t *max_recv_queue_size);
doca_error_t doca_comm_channel_get_service_max_num_connections(const struct doca_devinfo *devinfo,
                                                               uint32_t *max_num_connections);

doca_error_t doca_comm_channel_ep_create(struct doca_comm_channel_ep_t **ep);
doca_error_t doca_comm_channel_ep_destroy(struct doca_comm_channel_ep_t *local_ep);

doca_error_t doca_comm_channel_ep_set_device(struct doca_comm_channel_ep_t *ep, struct doca_dev *device);
doca_error_t doca_comm_channel_ep_set_device_rep(struct doca_comm_channel_ep_t *ep, struct doca_dev_rep *device_rep);
doca_error_t doca_comm_channel_ep_set_max_msg_size(struct doca_comm_channel_ep_t *ep, uint16_t max_msg_size);
doca_error_t doca_comm_channel_ep_set_send_queue_size(struct doca_comm_channel_ep_t *ep, uint16_t send_queue_size);
doca_error_t doca_comm_channel_ep_set_recv_queue_size(struct doca_comm_channel_ep_t *ep, uint16_t recv_queue_size);
doca_error_t doca_comm_channel_ep_get_device(struct doca_comm_channel_ep_t *ep, struct doca_dev **device);
doca_error_t doca_comm_channel_ep_get_device_rep(struct doca_comm_channel_ep_t *ep, struct doca_dev_rep **device_rep);
doca_error_t doca_comm_channel_ep_get_max_msg_size(struct doca_comm_channel_ep_t *ep, uint16_t *max_msg_size);
doca_error_t doca_comm_channel_ep_get_send_queue_size(struct doca_comm_channel_ep_t *ep, uint16_t *send_queue_size);
doca_error_t doca_comm_channel_ep_get_recv_queue_size(struct doca_comm_channel_ep_t *ep, uint16_t *recv_queue_size);

doca_error_t doca_comm_channel_ep_listen(struct doca_comm_channel_ep_t *local_ep, const char *name);
doca_error_t doca_comm_channel_ep_connect(struct doca_comm_channel_ep_t *local_ep, const char *name,
                                          struct doca_comm_channel_addr_t **peer_addr);
doca_error_t doca_comm_channel_ep_disconnect(struct doca_comm_channel_ep_t *local_ep,
                                             struct doca_comm_channel_addr_t *peer_addr);
doca_error_t doca_comm_channel_ep_sendto(struct doca_comm_channel_ep_t *local_ep, const void *msg, size_t len,
                                         int flags, struct doca_comm_channel_addr_t *peer_addr);
doca_error_t doca_comm_channel_ep_recvfrom(struct doca_comm_channel_ep_t *local_ep, void *msg, size_t *len, int flags,
                                           struct doca_comm_channel_addr_t **peer_addr);

doca_error_t doca_comm_channel_ep_get_event_channel(struct doca_comm_channel_ep_t *local_ep,
                                                    doca_event_channel_t *send_event_channel,
                                                    doca_event_channel_t *recv_event_channel);
doca_error_t doca_comm_channel_ep_event_handle_arm_send(struct doca_comm_channel_ep_t *local_ep);
doca_error_t doca_comm_channel_ep_event_handle_arm_recv(struct doca_comm_channel_ep_t *local_ep);

doca_error_t doca_comm_channel_peer_addr_set_user_data(struct doca_comm_channel_addr_t *peer_addr,
                                                       uint64_t user_context);
doca_error_t doca_comm_channel_peer_addr_get_user_data(struct doca_comm_channel_addr_t *peer_addr, uint64_t *user_data);
doca_error_t doca_comm_channel_peer_addr_update_info(struct doca_comm_channel_addr_t *peer_addr);
doca_error_t doca_comm_channel_peer_addr_get_send_messages(const struct doca_comm_channel_addr_t *peer_addr,
                                                           uint64_t *send_messages);
doca_error_t doca_comm_channel_peer_addr_get_send_bytes(const struct doca_comm_channel_addr_t *peer_addr,
                                                        uint64_t *send_bytes);
doca_error_t doca_comm_channel_peer_addr_get_recv_messages(const struct doca_comm_channel_addr_t *peer_addr,
                                                           uint64_t *recv_messages);
doca_error_t doca_comm_channel_peer_addr_get_recv_bytes(const struct doca_comm_channel_addr_t *peer_addr,
                                                        uint64_t *recv_bytes);
doca_error_t doca_comm_channel_peer_addr_get_send_in_flight_messages(const struct doca_comm_channel_addr_t *peer_addr,
                                                                     uint64_t *send_in_flight_messages);

#ifdef __cplusplus
}
#endif
#endif /* DOCA_COMM_CHANNEL_H, end of header */

#if defined(DOCA_COMM_CHANNEL_IMPLEMENTATION) && !defined(DOCA_COMM_CHANNEL_IMPLEMENTED)
#define DOCA_COMM_CHANNEL_IMPLEMENTED

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#endif

#ifndef DOCA_COMM_CHANNEL_SILENCE_MS
#define DOCA_COMM_CHANNEL_SILENCE_MS 30000 /* a peer that gives no sign of life for so long has gone */
#endif
#ifndef DOCA_COMM_CHANNEL_CONNECT_MS
#define DOCA_COMM_CHANNEL_CONNECT_MS 3000 /* doca_comm_channel_ep_connect() waits for so long at most */
#endif
#ifndef DOCA_COMM_CHANNEL_FLUSH_MS
#define DOCA_COMM_CHANNEL_FLUSH_MS 2000 /* disconnecting waits for what was sent to arrive */
#endif

enum {
    DOCA__CC_NAME = 120, /* bytes of a service's name */
    DOCA__CC_SERVICE_NAME = 32,
    DOCA__CC_MESSAGE = 65535,
    DOCA__CC_QUEUE = 32768, /* the largest power of two that the setters take */
    DOCA__CC_HEAD = 4,      /* before each piece: the length of the whole message, least significant byte first */
    DOCA__CC_MAGIC = 8      /* before the name in a request */
};

#define DOCA__CC_HELLO "DOCA-CC\1"

typedef enum { DOCA__CC_FREE, DOCA__CC_OPENING, DOCA__CC_OPEN, DOCA__CC_BROKEN, DOCA__CC_CLOSING } doca__cc_state;

typedef struct doca__cc_counts {
    uint64_t sent, sent_bytes, received, received_bytes, in_flight;
} doca__cc_counts;

/* Peers stay until their endpoint is destroyed: a handle that is used too long meets memory that is there. */
struct doca_comm_channel_addr_t {
    struct doca_comm_channel_ep_t *ep;
    struct doca_comm_channel_addr_t *next;      /* of all */
    struct doca_comm_channel_addr_t *next_free; /* of those that are DOCA__CC_FREE */
    struct doca_comm_channel_addr_t *next_rest; /* of those with a rest */
    cci_connection_t *connection;
    doca__cc_state state;
    int is_known; /* 1: the program has seen this handle */
    int is_told;  /* 1: the program has heard of its end */
    uint64_t user_context;
    doca__cc_counts now, told;
    uint8_t *whole; /* a message that comes in pieces */
    uint32_t whole_length, whole_have;
    uint8_t *rest; /* a message that leaves in pieces, not all of which CCI has taken */
    uint32_t rest_length, rest_sent;
};

typedef enum { DOCA__CC_IDLE, DOCA__CC_SERVICE, DOCA__CC_CLIENT } doca__cc_role;

struct doca_comm_channel_ep_t {
    struct doca_dev *dev;
    struct doca_dev_rep *rep;
    uint16_t max_msg_size, send_queue_size, recv_queue_size;
    doca__cc_role role;
    char name[DOCA__CC_NAME + 1];
    cci_endpoint_t *endpoint;
    cci_os_handle_t fd;
    cci_event_t **queue; /* what waits for recvfrom: messages, and ends of connections, in a ring */
    uint32_t queue_first, queue_count, queue_size;
    struct doca_comm_channel_addr_t *peers, *free_peers, *rests;
    uint64_t in_flight;
    int is_asking;                           /* the client's request is outstanding */
    cci_connection_t *found;                 /* what it has led to */
    struct doca_comm_channel_addr_t *server; /* its peer */
    int channels[2], bells[2];               /* for sending and receiving: epoll, and an eventfd in it */
    int armed[2], is_rung[2];                /* armed: the OS handle is in the epoll, too */
    int is_refused, is_emptied; /* sendto said DOCA_ERROR_AGAIN; a message was transmitted since the bell's last ring */
};

enum { DOCA__CC_SEND, DOCA__CC_RECV };

/* ---- errors ------------------------------------------------------------------------------------------------------ */

#define DOCA__ERROR_TEXT(name, text) text,
#define DOCA__ERROR_NAME(name, text) #name,
const char *doca_get_error_string(doca_error_t error) {
    static const char *const texts[] = {DOCA_ERROR_TABLE(DOCA__ERROR_TEXT)};
    return (unsigned)error < DOCA__ERROR_COUNT ? texts[(unsigned)error] : "no such error";
}

const char *doca_get_error_name(doca_error_t error) {
    static const char *const names[] = {DOCA_ERROR_TABLE(DOCA__ERROR_NAME)};
    return (unsigned)error < DOCA__ERROR_COUNT ? names[(unsigned)error] : "no such error";
}

static doca_error_t doca__cc_error(int status) {
    switch (status) {
    case CCI_SUCCESS: return DOCA_SUCCESS;
    case CCI_ENOMEM: return DOCA_ERROR_NO_MEMORY;
    case CCI_ENODEV:
    case CCI_ENETDOWN:
    case CCI_ERR_DEVICE_DEAD: return DOCA_ERROR_DRIVER;
    default: return DOCA_ERROR_INITIALIZATION;
    }
}

/* ---- devices and representors ------------------------------------------------------------------------------------ */

/* Lists, devices and endpoints each hold the library, which may be asked for as often as one likes. */
struct doca_devinfo {
    cci_device_t *device;
};

struct doca_dev {
    struct doca_devinfo info;
};

struct doca_devinfo_rep {
    cci_device_t *device;
};

struct doca_dev_rep {
    struct doca_devinfo_rep info;
};

static int doca__cc_begin(void) {
    uint32_t caps;
    return cci_init(CCI_ABI_VERSION, 0, &caps);
}

doca_error_t doca_devinfo_list_create(struct doca_devinfo ***dev_list, uint32_t *nb_devs) {
    cci_device_t *const *devices = NULL;
    struct doca_devinfo **list, *infos;
    uint32_t count = 0, i = 0;
    int status;
    if (!dev_list || !nb_devs) return DOCA_ERROR_INVALID_VALUE;
    status = doca__cc_begin();
    if (status) return doca__cc_error(status);
    status = cci_get_devices(&devices);
    while (!status && devices[count]) count++;
    list =
        status ? NULL : (struct doca_devinfo **)malloc((count + 1) * (sizeof(struct doca_devinfo *) + sizeof *infos));
    if (!list) {
        cci_finalize();
        return status ? doca__cc_error(status) : DOCA_ERROR_NO_MEMORY;
    }
    infos = (struct doca_devinfo *)(void *)(list + count + 1);
    for (*nb_devs = 0; i < count; i++) {
        if (!devices[i]->up) continue;
        infos[*nb_devs].device = devices[i];
        list[*nb_devs] = &infos[*nb_devs];
        *nb_devs += 1;
    }
    list[*nb_devs] = NULL;
    *dev_list = list;
    return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_list_destroy(struct doca_devinfo **dev_list) {
    if (!dev_list) return DOCA_ERROR_INVALID_VALUE;
    free((void *)dev_list);
    cci_finalize();
    return DOCA_SUCCESS;
}

static doca_error_t doca__cc_copy_text(const char *text, char *to, uint32_t size) {
    if (strlen(text) >= size) return DOCA_ERROR_INVALID_VALUE;
    strcpy(to, text);
    return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_get_iface_name(const struct doca_devinfo *devinfo, char *iface_name, uint32_t size) {
    if (!devinfo || !iface_name) return DOCA_ERROR_INVALID_VALUE;
    return doca__cc_copy_text(devinfo->device->name, iface_name, size);
}

doca_error_t doca_devinfo_get_pci_addr_str(const struct doca_devinfo *devinfo, char *pci_addr_str) {
    cci_device_t *device;
    if (!devinfo || !pci_addr_str) return DOCA_ERROR_INVALID_VALUE;
    device = devinfo->device;
    if (device->pci.domain > 0xffff || device->pci.bus > 0xff || device->pci.dev > 31 || device->pci.func > 7)
        return DOCA_ERROR_NOT_SUPPORTED;
    snprintf(pci_addr_str, DOCA_DEVINFO_PCI_ADDR_SIZE, "%04x:%02x:%02x.%u", device->pci.domain & 0xffffu,
             device->pci.bus & 0xffu, device->pci.dev & 31u, device->pci.func & 7u);
    return DOCA_SUCCESS;
}

doca_error_t doca_dev_open(struct doca_devinfo *devinfo, struct doca_dev **dev) {
    if (!devinfo || !dev) return DOCA_ERROR_INVALID_VALUE;
    if (doca__cc_begin()) return DOCA_ERROR_INITIALIZATION;
    *dev = (struct doca_dev *)malloc(sizeof **dev);
    if (*dev) {
        (*dev)->info = *devinfo;
        return DOCA_SUCCESS;
    }
    cci_finalize();
    return DOCA_ERROR_NO_MEMORY;
}

doca_error_t doca_dev_close(struct doca_dev *dev) {
    if (!dev) return DOCA_ERROR_INVALID_VALUE;
    free(dev);
    cci_finalize();
    return DOCA_SUCCESS;
}

struct doca_devinfo *doca_dev_as_devinfo(struct doca_dev *dev) {
    return dev ? &dev->info : NULL;
}

doca_error_t doca_devinfo_rep_list_create(struct doca_dev *dev, int filter, struct doca_devinfo_rep ***dev_list_rep,
                                          uint32_t *nb_devs_rep) {
    struct doca_devinfo_rep **list;
    const int all = DOCA_DEV_REP_FILTER_NET | DOCA_DEV_REP_FILTER_EMULATED;
    if (!dev || !dev_list_rep || !nb_devs_rep || (filter & ~all)) return DOCA_ERROR_INVALID_VALUE;
    list = (struct doca_devinfo_rep **)malloc(2 * sizeof *list + sizeof **list);
    if (!list) return DOCA_ERROR_NO_MEMORY;
    *nb_devs_rep = filter == DOCA_DEV_REP_FILTER_EMULATED ? 0 : 1;
    list[*nb_devs_rep] = NULL;
    if (*nb_devs_rep) {
        list[0] = (struct doca_devinfo_rep *)(void *)(list + 2);
        list[0]->device = dev->info.device;
    }
    *dev_list_rep = list;
    return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_rep_list_destroy(struct doca_devinfo_rep **dev_list_rep) {
    if (!dev_list_rep) return DOCA_ERROR_INVALID_VALUE;
    free((void *)dev_list_rep);
    return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_rep_get_vuid(const struct doca_devinfo_rep *devinfo_rep, char *rep_vuid, uint32_t size) {
    if (!devinfo_rep || !rep_vuid) return DOCA_ERROR_INVALID_VALUE;
    return doca__cc_copy_text(devinfo_rep->device->name, rep_vuid, size);
}

doca_error_t doca_dev_rep_open(struct doca_devinfo_rep *devinfo_rep, struct doca_dev_rep **dev_rep) {
    if (!devinfo_rep || !dev_rep) return DOCA_ERROR_INVALID_VALUE;
    *dev_rep = (struct doca_dev_rep *)malloc(sizeof **dev_rep);
    if (!*dev_rep) return DOCA_ERROR_NO_MEMORY;
    (*dev_rep)->info = *devinfo_rep;
    return DOCA_SUCCESS;
}

doca_error_t doca_dev_rep_close(struct doca_dev_rep *dev_rep) {
    if (!dev_rep) return DOCA_ERROR_INVALID_VALUE;
    free(dev_rep);
    return DOCA_SUCCESS;
}

/* ---- what there can be ------------------------------------------------------------------------------------------- */

doca_error_t doca_comm_channel_get_max_service_name_len(uint32_t *max_service_name_len) {
    if (!max_service_name_len) return DOCA_ERROR_INVALID_VALUE;
    *max_service_name_len = DOCA__CC_NAME + 1;
    return DOCA_SUCCESS;
}

doca_error_t doca_comm_channel_get_max_message_size(const struct doca_devinfo *devinfo, uint32_t *max_message_size) {
    if (!devinfo || !max_message_size) return DOCA_ERROR_INVALID_VALUE;
    *max_message_size = DOCA__CC_MESSAGE;
    return DOCA_SUCCESS;
}

static uint32_t doca__cc_largest_queue(uint32_t most) {
    uint32_t size = DOCA__CC_QUEUE;
    while (size > most) size /= 2;
    return size;
}

static doca_error_t doca__cc_caps(const struct doca_devinfo *devinfo, const uint32_t *result, cci_caps_t *caps) {
    if (!devinfo || !result) return DOCA_ERROR_INVALID_VALUE;
    switch (cci_get_opt(devinfo->device, CCI_OPT_CAPS, caps)) {
    case CCI_SUCCESS: return DOCA_SUCCESS;
    case CCI_ERR_NOT_IMPLEMENTED: return DOCA_ERROR_NOT_SUPPORTED;
    default: return DOCA_ERROR_UNEXPECTED;
    }
}

doca_error_t doca_comm_channel_get_max_send_queue_size(const struct doca_devinfo *devinfo,
                                                       uint32_t *max_send_queue_size) {
    cci_caps_t caps;
    doca_error_t result = doca__cc_caps(devinfo, max_send_queue_size, &caps);
    if (!result) *max_send_queue_size = doca__cc_largest_queue(caps.max_send_bufs);
    return result == DOCA_ERROR_NOT_SUPPORTED ? DOCA_ERROR_UNEXPECTED : result;
}

doca_error_t doca_comm_channel_get_max_recv_queue_size(const struct doca_devinfo *devinfo,
                                                       uint32_t *max_recv_queue_size) {
    cci_caps_t caps;
    doca_error_t result = doca__cc_caps(devinfo, max_recv_queue_size, &caps);
    if (!result) *max_recv_queue_size = doca__cc_largest_queue(caps.max_recv_bufs);
    return result == DOCA_ERROR_NOT_SUPPORTED ? DOCA_ERROR_UNEXPECTED : result;
}

doca_error_t doca_comm_channel_get_service_max_num_connections(const struct doca_devinfo *devinfo,
                                                               uint32_t *max_num_connections) {
    cci_caps_t caps;
    doca_error_t result = doca__cc_caps(devinfo, max_num_connections, &caps);
    if (!result) *max_num_connections = caps.max_connections;
    return result;
}

/* ---- event channels ---------------------------------------------------------------------------------------------- */

#ifdef __linux__
static int doca__cc_watch(int channel, int operation, int fd) {
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    return epoll_ctl(channel, operation, fd, &event);
}

/* Both channels, once for the endpoint's life. */
static void doca__cc_open_channels(struct doca_comm_channel_ep_t *ep) {
    int i;
    for (i = 0; i < 2; i++) {
        if (ep->channels[i] >= 0) continue;
        ep->channels[i] = epoll_create1(EPOLL_CLOEXEC);
        ep->bells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (ep->channels[i] >= 0 && ep->bells[i] >= 0 && !doca__cc_watch(ep->channels[i], EPOLL_CTL_ADD, ep->bells[i]))
            continue;
        if (ep->channels[i] >= 0) close(ep->channels[i]);
        if (ep->bells[i] >= 0) close(ep->bells[i]);
        ep->channels[i] = ep->bells[i] = -1;
    }
}

static void doca__cc_close_channels(struct doca_comm_channel_ep_t *ep) {
    int i;
    for (i = 0; i < 2; i++) {
        if (ep->channels[i] < 0) continue;
        close(ep->channels[i]);
        close(ep->bells[i]);
    }
}

/* Makes the channel readable, or no longer, whatever the OS handle says. */
static void doca__cc_ring(struct doca_comm_channel_ep_t *ep, int which, int rings) {
    uint64_t one = 1;
    if (ep->is_rung[which] == rings || ep->channels[which] < 0) return;
    ep->is_rung[which] = rings;
    if ((rings ? write(ep->bells[which], &one, sizeof one) : read(ep->bells[which], &one, sizeof one)) < 0)
        ep->is_rung[which] = !rings;
}

static void doca__cc_arm(struct doca_comm_channel_ep_t *ep, int which, int arms) {
    if (ep->armed[which] == arms || ep->channels[which] < 0) return;
    ep->armed[which] = arms;
    doca__cc_watch(ep->channels[which], arms ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, ep->fd);
}
#else
static void doca__cc_open_channels(struct doca_comm_channel_ep_t *ep) {
    (void)ep;
}

static void doca__cc_close_channels(struct doca_comm_channel_ep_t *ep) {
    (void)ep;
}

static void doca__cc_ring(struct doca_comm_channel_ep_t *ep, int which, int rings) {
    ep->is_rung[which] = rings;
}

static void doca__cc_arm(struct doca_comm_channel_ep_t *ep, int which, int arms) {
    ep->armed[which] = arms;
}
#endif

/* An armed channel becomes readable when there is a reason, the one for sending then needs to be armed anew. */
static void doca__cc_ring_armed(struct doca_comm_channel_ep_t *ep) {
    if (ep->armed[DOCA__CC_RECV] && ep->queue_count > 0) doca__cc_ring(ep, DOCA__CC_RECV, 1);
    if (!ep->armed[DOCA__CC_SEND]) return;
    if (!ep->is_emptied && !(ep->is_refused && ep->in_flight < ep->send_queue_size)) return;
    ep->is_emptied = ep->is_refused = 0;
    doca__cc_ring(ep, DOCA__CC_SEND, 1);
    doca__cc_arm(ep, DOCA__CC_SEND, 0);
}

/* ---- peers and what waits ---------------------------------------------------------------------------------------- */

static struct doca_comm_channel_addr_t *doca__cc_new_peer(struct doca_comm_channel_ep_t *ep, doca__cc_state state) {
    struct doca_comm_channel_addr_t *peer = ep->free_peers, *next;
    if (peer) {
        ep->free_peers = peer->next_free;
        next = peer->next;
    } else {
        peer = (struct doca_comm_channel_addr_t *)malloc(sizeof *peer);
        if (!peer) return NULL;
        next = ep->peers;
        ep->peers = peer;
    }
    memset(peer, 0, sizeof *peer);
    peer->ep = ep;
    peer->next = next;
    peer->state = state;
    return peer;
}

/* A message that leaves in pieces is forgotten: `is_lost` if its last piece will not be completed. */
static void doca__cc_drop_rest(struct doca_comm_channel_addr_t *peer, int is_lost) {
    struct doca_comm_channel_addr_t **at = &peer->ep->rests;
    if (!peer->rest) return;
    while (*at != peer) at = &(*at)->next_rest;
    *at = peer->next_rest;
    free(peer->rest);
    peer->rest = NULL;
    if (!is_lost) return;
    peer->now.in_flight--;
    peer->ep->in_flight--;
}

static void doca__cc_free_peer(struct doca_comm_channel_addr_t *peer) {
    doca__cc_drop_rest(peer, 1);
    peer->ep->in_flight -= peer->now.in_flight;
    peer->now.in_flight = 0;
    free(peer->whole);
    peer->whole = NULL;
    peer->connection = NULL;
    peer->state = DOCA__CC_FREE;
    peer->next_free = peer->ep->free_peers;
    peer->ep->free_peers = peer;
}

static struct doca_comm_channel_addr_t *doca__cc_peer_of(struct doca_comm_channel_ep_t *ep,
                                                         cci_connection_t *connection) {
    if (connection == ep->found) return ep->server;
    return ep->role == DOCA__CC_SERVICE ? (struct doca_comm_channel_addr_t *)connection->context : NULL;
}

static cci_connection_t *doca__cc_connection_of(const cci_event_t *event) {
    switch (event->type) {
    case CCI_EVENT_RECV: return event->recv.connection;
    case CCI_EVENT_KEEPALIVE_TIMEDOUT: return event->keepalive.connection;
    default: return event->disconnect.connection;
    }
}

static cci_event_t *doca__cc_pop(struct doca_comm_channel_ep_t *ep) {
    cci_event_t *event = ep->queue[ep->queue_first];
    ep->queue_first = (ep->queue_first + 1) & (ep->queue_size - 1);
    if (--ep->queue_count == 0) doca__cc_ring(ep, DOCA__CC_RECV, 0);
    return event;
}

static int doca__cc_make_space(struct doca_comm_channel_ep_t *ep) {
    uint32_t size = ep->queue_size ? 2 * ep->queue_size : 64, i;
    cci_event_t **queue;
    if (ep->queue_count < ep->queue_size) return 1;
    queue = (cci_event_t **)malloc(size * sizeof *queue);
    if (!queue) return 0;
    for (i = 0; i < ep->queue_count; i++) queue[i] = ep->queue[(ep->queue_first + i) & (ep->queue_size - 1)];
    free((void *)ep->queue);
    ep->queue = queue;
    ep->queue_first = 0;
    ep->queue_size = size;
    return 1;
}

/* There is space: see doca__cc_work(). */
static void doca__cc_push(struct doca_comm_channel_ep_t *ep, cci_event_t *event) {
    ep->queue[(ep->queue_first + ep->queue_count++) & (ep->queue_size - 1)] = event;
}

static void doca__cc_purge(struct doca_comm_channel_ep_t *ep, cci_connection_t *connection) {
    uint32_t count = ep->queue_count, i;
    for (i = 0; i < count; i++) {
        cci_event_t *event = doca__cc_pop(ep);
        if (doca__cc_connection_of(event) == connection)
            cci_return_event(event);
        else
            doca__cc_push(ep, event);
    }
}

/* ---- sending in pieces ------------------------------------------------------------------------------------------- */

static int doca__cc_send_piece(struct doca_comm_channel_addr_t *peer, uint32_t whole, const void *bytes,
                               uint32_t length, void *context) {
    uint8_t head[DOCA__CC_HEAD];
    struct iovec parts[2];
    head[0] = (uint8_t)(whole & 255);
    head[1] = (uint8_t)(whole >> 8 & 255);
    head[2] = (uint8_t)(whole >> 16 & 255);
    head[3] = 0;
    parts[0].iov_base = head;
    parts[0].iov_len = sizeof head;
    memset(&parts[1], 0, sizeof parts[1]);
    memcpy(&parts[1].iov_base, &bytes, sizeof bytes); /* CCI only reads it */
    parts[1].iov_len = length;
    return cci_sendv(peer->connection, parts, length > 0 ? 2 : 1, context, 0);
}

/* Hands on as much as CCI takes now. Only the last piece counts as the message's completion. */
static int doca__cc_send_rest(struct doca_comm_channel_addr_t *peer) {
    uint32_t piece = peer->connection->max_send_size - DOCA__CC_HEAD;
    while (peer->rest) {
        uint32_t left = peer->rest_length - peer->rest_sent, length = left < piece ? left : piece;
        int status = doca__cc_send_piece(peer, peer->rest_length, peer->rest + peer->rest_sent, length,
                                         length == left ? peer : NULL);
        if (status) return status;
        peer->rest_sent += length;
        if (length == left) doca__cc_drop_rest(peer, 0);
    }
    return CCI_SUCCESS;
}

static void doca__cc_send_rests(struct doca_comm_channel_ep_t *ep) {
    struct doca_comm_channel_addr_t *peer, *next;
    for (peer = ep->rests; peer; peer = next) {
        int status;
        next = peer->next_rest;
        status = doca__cc_send_rest(peer);
        if (status == CCI_SUCCESS || status == CCI_ENOBUFS) continue;
        doca__cc_drop_rest(peer, 1);
        peer->state = DOCA__CC_BROKEN;
    }
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void doca__cc_on_request(struct doca_comm_channel_ep_t *ep, cci_event_t *event) {
    const cci_event_connect_request_t *request = &event->request;
    const char *data = (const char *)request->data_ptr;
    size_t length = strlen(ep->name);
    struct doca_comm_channel_addr_t *peer = NULL;
    if (ep->role == DOCA__CC_SERVICE && request->attribute == CCI_CONN_ATTR_RO &&
        request->data_len == DOCA__CC_MAGIC + length && memcmp(data, DOCA__CC_HELLO, DOCA__CC_MAGIC) == 0 &&
        memcmp(data + DOCA__CC_MAGIC, ep->name, length) == 0)
        peer = doca__cc_new_peer(ep, DOCA__CC_OPENING);
    if (!peer) {
        cci_reject(event);
    } else if (cci_accept(event, peer)) {
        doca__cc_free_peer(peer);
        cci_reject(event);
    }
    cci_return_event(event);
}

static void doca__cc_on_accept(cci_event_t *event) {
    struct doca_comm_channel_addr_t *peer = (struct doca_comm_channel_addr_t *)event->accept.context;
    if (event->accept.status) {
        doca__cc_free_peer(peer);
    } else {
        peer->connection = event->accept.connection;
        peer->state = DOCA__CC_OPEN;
    }
    cci_return_event(event);
}

static void doca__cc_on_connect(struct doca_comm_channel_ep_t *ep, cci_event_t *event) {
    ep->is_asking = 0;
    if (event->connect.status == CCI_SUCCESS) {
        ep->found = event->connect.connection;
        if (ep->server) {
            ep->server->connection = ep->found;
            ep->server->state = DOCA__CC_OPEN;
        }
    }
    cci_return_event(event);
}

static void doca__cc_on_sent(struct doca_comm_channel_ep_t *ep, cci_event_t *event) {
    struct doca_comm_channel_addr_t *peer = (struct doca_comm_channel_addr_t *)event->send.context;
    if (peer && peer->now.in_flight > 0) {
        peer->now.in_flight--;
        ep->in_flight--;
        ep->is_emptied = 1;
        if (event->send.status && peer->state == DOCA__CC_OPEN) peer->state = DOCA__CC_BROKEN;
        if (peer->state == DOCA__CC_CLOSING && peer->now.in_flight == 0) doca__cc_free_peer(peer);
    }
    cci_return_event(event);
    doca__cc_send_rests(ep);
}

/* The end of a connection waits its turn behind what the peer has sent. */
static void doca__cc_on_end(struct doca_comm_channel_ep_t *ep, cci_event_t *event) {
    struct doca_comm_channel_addr_t *peer = doca__cc_peer_of(ep, doca__cc_connection_of(event));
    if (peer && (peer->state == DOCA__CC_OPEN || peer->state == DOCA__CC_BROKEN)) {
        peer->state = DOCA__CC_BROKEN;
        doca__cc_push(ep, event);
    } else {
        cci_return_event(event);
    }
}

static void doca__cc_take(struct doca_comm_channel_ep_t *ep, cci_event_t *event) {
    switch (event->type) {
    case CCI_EVENT_RECV: doca__cc_push(ep, event); break;
    case CCI_EVENT_SEND: doca__cc_on_sent(ep, event); break;
    case CCI_EVENT_CONNECT: doca__cc_on_connect(ep, event); break;
    case CCI_EVENT_CONNECT_REQUEST: doca__cc_on_request(ep, event); break;
    case CCI_EVENT_ACCEPT: doca__cc_on_accept(event); break;
    case CCI_EVENT_DISCONNECT:
    case CCI_EVENT_KEEPALIVE_TIMEDOUT: doca__cc_on_end(ep, event); break;
    default: cci_return_event(event);
    }
}

/* Takes one event; 0 if there is none, or no memory to remember it. */
static int doca__cc_step(struct doca_comm_channel_ep_t *ep) {
    cci_event_t *event;
    if (!doca__cc_make_space(ep) || cci_get_event(ep->endpoint, &event) != CCI_SUCCESS) return 0;
    doca__cc_take(ep, event);
    return 1;
}

static void doca__cc_work(struct doca_comm_channel_ep_t *ep) {
    doca__cc_send_rests(ep);
    while (doca__cc_step(ep)) {
    }
    doca__cc_ring_armed(ep);
}

static uint64_t doca__cc_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Sleeps until something happens or that time has come. */
static void doca__cc_sleep(struct doca_comm_channel_ep_t *ep, uint64_t until_ms) {
    struct pollfd sleeper = {ep->fd, POLLIN, 0};
    uint64_t now_ms = doca__cc_now_ms();
    if (now_ms < until_ms) poll(&sleeper, 1, (int)(until_ms - now_ms));
}

/* ---- endpoints and their properties ------------------------------------------------------------------------------ */

doca_error_t doca_comm_channel_ep_create(struct doca_comm_channel_ep_t **ep) {
    struct doca_comm_channel_ep_t *made;
    int status;
    if (!ep) return DOCA_ERROR_INVALID_VALUE;
    status = doca__cc_begin();
    if (status) return doca__cc_error(status);
    made = (struct doca_comm_channel_ep_t *)calloc(1, sizeof *made);
    if (!made) {
        cci_finalize();
        return DOCA_ERROR_NO_MEMORY;
    }
    made->max_msg_size = 4080;
    made->send_queue_size = made->recv_queue_size = 256;
    made->channels[0] = made->channels[1] = made->bells[0] = made->bells[1] = -1;
    *ep = made;
    return DOCA_SUCCESS;
}

/* What a setter says about its arguments. */
static doca_error_t doca__cc_may_set(const struct doca_comm_channel_ep_t *ep, int is_valid) {
    if (!ep || !is_valid) return DOCA_ERROR_INVALID_VALUE;
    return ep->role == DOCA__CC_IDLE ? DOCA_SUCCESS : DOCA_ERROR_BAD_STATE;
}

doca_error_t doca_comm_channel_ep_set_device(struct doca_comm_channel_ep_t *ep, struct doca_dev *device) {
    doca_error_t result = doca__cc_may_set(ep, device != NULL);
    if (!result) ep->dev = device;
    return result;
}

doca_error_t doca_comm_channel_ep_set_device_rep(struct doca_comm_channel_ep_t *ep, struct doca_dev_rep *device_rep) {
    doca_error_t result = doca__cc_may_set(ep, device_rep != NULL);
    if (!result) ep->rep = device_rep;
    return result;
}

doca_error_t doca_comm_channel_ep_set_max_msg_size(struct doca_comm_channel_ep_t *ep, uint16_t max_msg_size) {
    doca_error_t result = doca__cc_may_set(ep, max_msg_size > 0);
    if (!result) ep->max_msg_size = max_msg_size < 64 ? 64 : max_msg_size;
    return result;
}

static uint16_t doca__cc_round_up(uint16_t size) {
    uint16_t rounded = 16;
    while (rounded < size) rounded = (uint16_t)(2 * rounded);
    return rounded;
}

doca_error_t doca_comm_channel_ep_set_send_queue_size(struct doca_comm_channel_ep_t *ep, uint16_t send_queue_size) {
    doca_error_t result = doca__cc_may_set(ep, send_queue_size > 0 && send_queue_size <= DOCA__CC_QUEUE);
    if (!result) ep->send_queue_size = doca__cc_round_up(send_queue_size);
    return result;
}

doca_error_t doca_comm_channel_ep_set_recv_queue_size(struct doca_comm_channel_ep_t *ep, uint16_t recv_queue_size) {
    doca_error_t result = doca__cc_may_set(ep, recv_queue_size > 0 && recv_queue_size <= DOCA__CC_QUEUE);
    if (!result) ep->recv_queue_size = doca__cc_round_up(recv_queue_size);
    return result;
}

doca_error_t doca_comm_channel_ep_get_device(struct doca_comm_channel_ep_t *ep, struct doca_dev **device) {
    if (!ep || !device) return DOCA_ERROR_INVALID_VALUE;
    *device = ep->dev;
    return DOCA_SUCCESS;
}

doca_error_t doca_comm_channel_ep_get_device_rep(struct doca_comm_channel_ep_t *ep, struct doca_dev_rep **device_rep) {
    if (!ep || !device_rep) return DOCA_ERROR_INVALID_VALUE;
    *device_rep = ep->rep;
    return DOCA_SUCCESS;
}

doca_error_t doca_comm_channel_ep_get_max_msg_size(struct doca_comm_channel_ep_t *ep, uint16_t *max_msg_size) {
    if (!ep || !max_msg_size) return DOCA_ERROR_INVALID_VALUE;
    *max_msg_size = ep->max_msg_size;
    return DOCA_SUCCESS;
}

doca_error_t doca_comm_channel_ep_get_send_queue_size(struct doca_comm_channel_ep_t *ep, uint16_t *send_queue_size) {
    if (!ep || !send_queue_size) return DOCA_ERROR_INVALID_VALUE;
    *send_queue_size = ep->send_queue_size;
    return DOCA_SUCCESS;
}

doca_error_t doca_comm_channel_ep_get_recv_queue_size(struct doca_comm_channel_ep_t *ep, uint16_t *recv_queue_size) {
    if (!ep || !recv_queue_size) return DOCA_ERROR_INVALID_VALUE;
    *recv_queue_size = ep->recv_queue_size;
    return DOCA_SUCCESS;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

/* A name as CCI has it, which takes no bytes that are not UTF-8 and no numbers: FNV-1a. The request has the whole. */
static void doca__cc_service(const char *name, char service[DOCA__CC_SERVICE_NAME]) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    snprintf(service, DOCA__CC_SERVICE_NAME, "doca-cc:%08lx%08lx", (unsigned long)(hash >> 32),
             (unsigned long)(hash & 0xffffffffu));
}

static int doca__cc_configure(struct doca_comm_channel_ep_t *ep) {
    uint32_t events = 1u << CCI_EVENT_DISCONNECT, silence_us = 1000u * DOCA_COMM_CHANNEL_SILENCE_MS, forever_us = 0;
    uint32_t recv_count = ep->recv_queue_size, send_count = 0;
    int status = cci_set_opt(ep->endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events);
    /* A receiver that takes its time is no reason to lose a message: only one that gives no sign of life is. */
    if (!status) status = cci_set_opt(ep->endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, &forever_us);
    if (!status) status = cci_set_opt(ep->endpoint, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &silence_us);
    if (!status) status = cci_set_opt(ep->endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, &recv_count);
    if (!status) status = cci_get_opt(ep->endpoint, CCI_OPT_ENDPT_SEND_BUF_COUNT, &send_count);
    if (status || send_count >= ep->send_queue_size) return status;
    send_count = ep->send_queue_size;
    return cci_set_opt(ep->endpoint, CCI_OPT_ENDPT_SEND_BUF_COUNT, &send_count);
}

/* Everything but the properties, the role and the channels goes. */
static void doca__cc_close(struct doca_comm_channel_ep_t *ep) {
    struct doca_comm_channel_addr_t *peer;
    doca__cc_arm(ep, DOCA__CC_SEND, 0);
    doca__cc_arm(ep, DOCA__CC_RECV, 0);
    doca__cc_ring(ep, DOCA__CC_SEND, 0);
    doca__cc_ring(ep, DOCA__CC_RECV, 0);
    if (ep->endpoint) cci_destroy_endpoint(ep->endpoint); /* and with it its events */
    ep->endpoint = NULL;
    ep->queue_count = 0;
    for (peer = ep->peers; peer; peer = peer->next)
        if (peer->state != DOCA__CC_FREE) doca__cc_free_peer(peer);
    ep->in_flight = 0;
    ep->is_refused = ep->is_emptied = 0;
    ep->role = DOCA__CC_IDLE;
}

/* Makes the CCI endpoint, the service's with its name. */
static doca_error_t doca__cc_open(struct doca_comm_channel_ep_t *ep, const char *name, doca__cc_role role) {
    cci_device_t *device = ep->dev->info.device;
    char service[DOCA__CC_SERVICE_NAME];
    int status;
    doca__cc_service(name, service);
    status = cci_create_endpoint_at(device, role == DOCA__CC_SERVICE ? service : NULL, 0, &ep->endpoint, &ep->fd);
    if (status) {
        ep->endpoint = NULL;
        return status == CCI_EBUSY ? DOCA_ERROR_CONNECTION_ABORTED : doca__cc_error(status);
    }
    strcpy(ep->name, name);
    ep->role = role;
    ep->found = NULL;
    ep->server = NULL;
    ep->is_asking = 0;
    doca__cc_open_channels(ep);
    status = doca__cc_configure(ep);
    if (status) doca__cc_close(ep);
    return doca__cc_error(status);
}

/* The part of the text that is for this device: "a" or "eth0=a,eth1=b". Its length; 0 if there is none. */
static size_t doca__cc_choose(const char **text, const char *device) {
    size_t name = strlen(device);
    while (**text) {
        size_t length = strcspn(*text, ","), mark = strcspn(*text, "=,");
        if (mark == length) return length;
        if (mark == name && memcmp(*text, device, name) == 0) {
            *text += name + 1;
            return length - name - 1;
        }
        *text += length + ((*text)[length] == ',');
    }
    return 0;
}

/* The URI without its port of where services are: what the environment says, or this endpoint's own. */
static doca_error_t doca__cc_find_dpu(struct doca_comm_channel_ep_t *ep, char *uri, size_t size) {
    const char *given = getenv("DOCA_COMM_CHANNEL_DPU");
    size_t length = given ? doca__cc_choose(&given, ep->dev->info.device->name) : 0, scheme;
    char *own, *port;
    if (cci_get_opt(ep->endpoint, CCI_OPT_ENDPT_URI, &own)) return DOCA_ERROR_INITIALIZATION;
    port = strrchr(own, ':');
    scheme = strcspn(own, ":") + 3;
    if (!port || length + strlen(own) + 8 > size) {
        free(own);
        return DOCA_ERROR_INITIALIZATION;
    }
    if (length > 0)
        snprintf(uri, size, "%.*s%.*s", (int)scheme, own, (int)length, given);
    else
        snprintf(uri, size, "%.*s", (int)(port - own), own);
    free(own);
    return DOCA_SUCCESS;
}

/* Asks the service that has the name. DOCA_SUCCESS: ep->found is it. */
static doca_error_t doca__cc_ask(struct doca_comm_channel_ep_t *ep, const char *name, const char *dpu) {
    uint64_t end_ms = doca__cc_now_ms() + DOCA_COMM_CHANNEL_CONNECT_MS;
    char uri[512], service[DOCA__CC_SERVICE_NAME], data[DOCA__CC_MAGIC + DOCA__CC_NAME];
    size_t length = strlen(name);
    struct timeval timeout;
    int status;
    doca__cc_service(name, service);
    snprintf(uri, sizeof uri, "%s/%s", dpu, service);
    memcpy(data, DOCA__CC_HELLO, DOCA__CC_MAGIC);
    memcpy(data + DOCA__CC_MAGIC, name, length);
    timeout.tv_sec = DOCA_COMM_CHANNEL_CONNECT_MS / 1000;
    timeout.tv_usec = DOCA_COMM_CHANNEL_CONNECT_MS % 1000 * 1000;
    status =
        cci_connect(ep->endpoint, uri, data, (uint32_t)(DOCA__CC_MAGIC + length), CCI_CONN_ATTR_RO, NULL, 0, &timeout);
    if (status) return doca__cc_error(status);
    for (ep->is_asking = 1;;) {
        doca__cc_work(ep);
        if (ep->found) return DOCA_SUCCESS;
        if (!ep->is_asking || doca__cc_now_ms() >= end_ms) return DOCA_ERROR_CONNECTION_ABORTED;
        doca__cc_sleep(ep, end_ms);
    }
}

static int doca__cc_is_name(const char *name) {
    return name && *name && strlen(name) <= DOCA__CC_NAME;
}

doca_error_t doca_comm_channel_ep_listen(struct doca_comm_channel_ep_t *local_ep, const char *name) {
    if (!local_ep || !doca__cc_is_name(name)) return DOCA_ERROR_INVALID_VALUE;
    if (local_ep->role != DOCA__CC_IDLE) return DOCA_ERROR_NOT_PERMITTED;
    if (!local_ep->dev || !local_ep->rep) return DOCA_ERROR_BAD_STATE;
    return doca__cc_open(local_ep, name, DOCA__CC_SERVICE);
}

doca_error_t doca_comm_channel_ep_connect(struct doca_comm_channel_ep_t *local_ep, const char *name,
                                          struct doca_comm_channel_addr_t **peer_addr) {
    char dpu[384];
    doca_error_t result;
    if (!local_ep || !doca__cc_is_name(name) || !peer_addr) return DOCA_ERROR_INVALID_VALUE;
    if (local_ep->role != DOCA__CC_IDLE) return DOCA_ERROR_NOT_PERMITTED;
    if (!local_ep->dev) return DOCA_ERROR_BAD_STATE;
    result = doca__cc_open(local_ep, name, DOCA__CC_CLIENT);
    if (result) return result;
    local_ep->server = doca__cc_new_peer(local_ep, DOCA__CC_OPENING);
    if (local_ep->server)
        local_ep->server->is_known = 1;
    else
        result = DOCA_ERROR_NO_MEMORY;
    if (!result) result = doca__cc_find_dpu(local_ep, dpu, sizeof dpu);
    if (!result) result = doca__cc_ask(local_ep, name, dpu);
    if (result) {
        doca__cc_close(local_ep);
        return result;
    }
    *peer_addr = local_ep->server;
    return DOCA_SUCCESS;
}

/* Waits until what was sent to this peer, or to all, has arrived, as long as the peers live; a second at most. */
static void doca__cc_flush(struct doca_comm_channel_ep_t *ep, const struct doca_comm_channel_addr_t *only) {
    uint64_t end_ms = doca__cc_now_ms() + DOCA_COMM_CHANNEL_FLUSH_MS;
    for (;;) {
        const struct doca_comm_channel_addr_t *peer = only ? only : ep->peers;
        doca__cc_work(ep);
        while (peer && (peer->state != DOCA__CC_OPEN || peer->now.in_flight == 0)) peer = only ? NULL : peer->next;
        if (!peer || doca__cc_now_ms() >= end_ms) return;
        doca__cc_sleep(ep, end_ms);
    }
}

doca_error_t doca_comm_channel_ep_disconnect(struct doca_comm_channel_ep_t *local_ep,
                                             struct doca_comm_channel_addr_t *peer_addr) {
    cci_connection_t *connection;
    if (!local_ep) return DOCA_ERROR_INVALID_VALUE;
    if (!peer_addr || peer_addr->ep != local_ep ||
        (peer_addr->state != DOCA__CC_OPEN && peer_addr->state != DOCA__CC_BROKEN))
        return DOCA_ERROR_NOT_CONNECTED;
    doca__cc_flush(local_ep, peer_addr);
    if (local_ep->role == DOCA__CC_CLIENT) {
        doca__cc_close(local_ep);
        return DOCA_SUCCESS;
    }
    connection = peer_addr->connection;
    doca__cc_drop_rest(peer_addr, 1);
    peer_addr->state = DOCA__CC_CLOSING;
    doca__cc_purge(local_ep, connection);
    cci_disconnect(connection);
    if (peer_addr->now.in_flight == 0) doca__cc_free_peer(peer_addr); /* otherwise when that is completed */
    doca__cc_work(local_ep);
    return DOCA_SUCCESS;
}

doca_error_t doca_comm_channel_ep_destroy(struct doca_comm_channel_ep_t *local_ep) {
    struct doca_comm_channel_addr_t *peer, *next;
    if (!local_ep) return DOCA_ERROR_NOT_CONNECTED;
    if (local_ep->endpoint && local_ep->in_flight > 0) doca__cc_flush(local_ep, NULL);
    doca__cc_close(local_ep);
    doca__cc_close_channels(local_ep);
    for (peer = local_ep->peers; peer; peer = next) {
        next = peer->next;
        free(peer);
    }
    free((void *)local_ep->queue);
    free(local_ep);
    cci_finalize();
    return DOCA_SUCCESS;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* The outcome of a send that CCI did not take. */
static doca_error_t doca__cc_not_sent(struct doca_comm_channel_addr_t *peer, int status) {
    if (status == CCI_ENOBUFS || status == CCI_EAGAIN || status == CCI_ENOMEM) {
        peer->ep->is_refused = 1;
        peer->ep->is_emptied = 0;
        return DOCA_ERROR_AGAIN;
    }
    if (status != CCI_ERR_DISCONNECTED && status != CCI_ERR_DEVICE_DEAD && status != CCI_ETIMEDOUT)
        return DOCA_ERROR_UNKNOWN;
    peer->state = DOCA__CC_BROKEN;
    return DOCA_ERROR_CONNECTION_RESET;
}

/* Longer than what the connection carries at once: a copy leaves piece by piece, the first now. */
static int doca__cc_send_long(struct doca_comm_channel_addr_t *peer, const void *msg, uint32_t length) {
    int status;
    peer->rest = (uint8_t *)malloc(length > 0 ? length : 1);
    if (!peer->rest) return CCI_ENOMEM;
    memcpy(peer->rest, msg, length);
    peer->rest_length = length;
    peer->rest_sent = 0;
    peer->next_rest = peer->ep->rests;
    peer->ep->rests = peer;
    status = doca__cc_send_rest(peer);
    if (status == CCI_SUCCESS || (status == CCI_ENOBUFS && peer->rest_sent > 0)) return CCI_SUCCESS;
    doca__cc_drop_rest(peer, 0);
    return status;
}

doca_error_t doca_comm_channel_ep_sendto(struct doca_comm_channel_ep_t *local_ep, const void *msg, size_t len,
                                         int flags, struct doca_comm_channel_addr_t *peer_addr) {
    int status;
    if (!local_ep || !msg || flags != DOCA_CC_MSG_FLAG_NONE || len > local_ep->max_msg_size)
        return DOCA_ERROR_INVALID_VALUE;
    if (!peer_addr || peer_addr->ep != local_ep || !local_ep->endpoint) return DOCA_ERROR_NOT_CONNECTED;
    if (local_ep->in_flight >= local_ep->send_queue_size || peer_addr->rest) doca__cc_work(local_ep);
    if (peer_addr->state == DOCA__CC_BROKEN) return DOCA_ERROR_CONNECTION_RESET;
    if (peer_addr->state != DOCA__CC_OPEN) return DOCA_ERROR_NOT_CONNECTED;
    doca__cc_ring(local_ep, DOCA__CC_SEND, 0);
    if (local_ep->in_flight >= local_ep->send_queue_size || peer_addr->rest)
        return doca__cc_not_sent(peer_addr, CCI_EAGAIN);
    if (len + DOCA__CC_HEAD <= peer_addr->connection->max_send_size)
        status = doca__cc_send_piece(peer_addr, (uint32_t)len, msg, (uint32_t)len, peer_addr);
    else
        status = doca__cc_send_long(peer_addr, msg, (uint32_t)len);
    if (status) {
        doca_error_t result = doca__cc_not_sent(peer_addr, status);
        doca__cc_work(local_ep);
        return result;
    }
    local_ep->is_refused = 0;
    local_ep->in_flight++;
    peer_addr->now.in_flight++;
    peer_addr->now.sent++;
    peer_addr->now.sent_bytes += len;
    doca__cc_work(local_ep); /* it leaves now: the next call may be far */
    return DOCA_SUCCESS;
}

/* What a piece says of its message: the length, or UINT32_MAX if it does not fit to what was there before. */
static uint32_t doca__cc_length_of(const struct doca_comm_channel_addr_t *peer, const cci_event_recv_t *recv) {
    const uint8_t *head = (const uint8_t *)recv->ptr;
    uint32_t length, bytes;
    if (recv->len < DOCA__CC_HEAD) return UINT32_MAX;
    length = (uint32_t)head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24;
    bytes = recv->len - DOCA__CC_HEAD;
    if (length > DOCA__CC_MESSAGE) return UINT32_MAX;
    if (!peer->whole) return bytes > length || (bytes == 0 && length > 0) ? UINT32_MAX : length;
    return length != peer->whole_length || bytes == 0 || bytes > length - peer->whole_have ? UINT32_MAX : length;
}

/* Takes the first in the queue, a piece. DOCA_ERROR_AGAIN: it was not the last of its message. */
static doca_error_t doca__cc_take_piece(struct doca_comm_channel_ep_t *ep, struct doca_comm_channel_addr_t *peer,
                                        void *msg, size_t *len) {
    const cci_event_recv_t *recv = &ep->queue[ep->queue_first]->recv;
    uint32_t length = doca__cc_length_of(peer, recv), bytes = recv->len - DOCA__CC_HEAD;
    uint32_t have = peer->whole ? peer->whole_have : 0;
    const uint8_t *from = (const uint8_t *)recv->ptr + DOCA__CC_HEAD;
    if (length == UINT32_MAX) { /* nothing that this header sends */
        peer->state = DOCA__CC_BROKEN;
        peer->is_told = 1;
        cci_return_event(doca__cc_pop(ep));
        return DOCA_ERROR_CONNECTION_RESET;
    }
    if (have + bytes == length && length > *len) {
        *len = length;
        return DOCA_ERROR_INVALID_VALUE;
    }
    if (have + bytes < length) {
        if (!peer->whole) peer->whole = (uint8_t *)malloc(length);
        if (!peer->whole) return DOCA_ERROR_UNKNOWN; /* the piece waits */
        memcpy(peer->whole + have, from, bytes);
        peer->whole_length = length;
        peer->whole_have = have + bytes;
        cci_return_event(doca__cc_pop(ep));
        return DOCA_ERROR_AGAIN;
    }
    if (have > 0) memcpy(msg, peer->whole, have);
    if (bytes > 0) memcpy((uint8_t *)msg + have, from, bytes);
    *len = length;
    free(peer->whole);
    peer->whole = NULL;
    cci_return_event(doca__cc_pop(ep));
    return DOCA_SUCCESS;
}

/* Looks at the first in the queue. DOCA_ERROR_AGAIN: it was of no interest to the program, and is gone. */
static doca_error_t doca__cc_take_first(struct doca_comm_channel_ep_t *ep, void *msg, size_t *len,
                                        struct doca_comm_channel_addr_t **from) {
    cci_event_t *event = ep->queue[ep->queue_first];
    struct doca_comm_channel_addr_t *peer = doca__cc_peer_of(ep, doca__cc_connection_of(event));
    doca_error_t result = DOCA_ERROR_AGAIN;
    if (peer && event->type == CCI_EVENT_RECV && !peer->is_told) {
        result = doca__cc_take_piece(ep, peer, msg, len);
    } else {
        cci_connection_t *connection = doca__cc_connection_of(event);
        cci_return_event(doca__cc_pop(ep));
        if (peer && event->type != CCI_EVENT_RECV && !peer->is_known) {
            doca__cc_purge(ep, connection); /* a client that came and left without a message */
            cci_disconnect(connection);
            doca__cc_free_peer(peer);
        } else if (peer && !peer->is_told) {
            peer->is_told = 1;
            result = DOCA_ERROR_CONNECTION_RESET;
        }
    }
    if (result == DOCA_SUCCESS || result == DOCA_ERROR_CONNECTION_RESET) {
        peer->is_known = 1;
        *from = peer;
    }
    if (result != DOCA_SUCCESS) return result;
    peer->now.received++;
    peer->now.received_bytes += *len;
    return DOCA_SUCCESS;
}

doca_error_t doca_comm_channel_ep_recvfrom(struct doca_comm_channel_ep_t *local_ep, void *msg, size_t *len, int flags,
                                           struct doca_comm_channel_addr_t **peer_addr) {
    doca_error_t result = DOCA_ERROR_AGAIN;
    if (!local_ep || !msg || !len || !peer_addr || flags != DOCA_CC_MSG_FLAG_NONE) return DOCA_ERROR_INVALID_VALUE;
    if (local_ep->role == DOCA__CC_IDLE) return DOCA_ERROR_NOT_CONNECTED;
    while (result == DOCA_ERROR_AGAIN) {
        while (local_ep->queue_count == 0 && doca__cc_step(local_ep)) {
        }
        if (local_ep->queue_count == 0) break;
        result = doca__cc_take_first(local_ep, msg, len, peer_addr);
    }
    if (result == DOCA_SUCCESS || result == DOCA_ERROR_CONNECTION_RESET) {
        doca__cc_arm(local_ep, DOCA__CC_RECV, 0);
        doca__cc_ring(local_ep, DOCA__CC_RECV, 0);
        if (local_ep->queue_count == 0) doca__cc_step(local_ep); /* acknowledges: the next call may be far */
    }
    doca__cc_ring_armed(local_ep);
    return result;
}

doca_error_t doca_comm_channel_ep_get_event_channel(struct doca_comm_channel_ep_t *local_ep,
                                                    doca_event_channel_t *send_event_channel,
                                                    doca_event_channel_t *recv_event_channel) {
    if (!local_ep || (!send_event_channel && !recv_event_channel)) return DOCA_ERROR_INVALID_VALUE;
    if (local_ep->role == DOCA__CC_IDLE) return DOCA_ERROR_BAD_STATE;
    if (local_ep->channels[DOCA__CC_SEND] < 0 || local_ep->channels[DOCA__CC_RECV] < 0) return DOCA_ERROR_NOT_FOUND;
    if (send_event_channel) *send_event_channel = local_ep->channels[DOCA__CC_SEND];
    if (recv_event_channel) *recv_event_channel = local_ep->channels[DOCA__CC_RECV];
    return DOCA_SUCCESS;
}

static doca_error_t doca__cc_arm_handle(struct doca_comm_channel_ep_t *ep, int which) {
    if (!ep) return DOCA_ERROR_INVALID_VALUE;
    if (ep->role == DOCA__CC_IDLE) return DOCA_ERROR_BAD_STATE;
    if (which == DOCA__CC_SEND) doca__cc_ring(ep, which, 0);
    doca__cc_arm(ep, which, 1);
    doca__cc_work(ep);
    return DOCA_SUCCESS;
}

doca_error_t doca_comm_channel_ep_event_handle_arm_send(struct doca_comm_channel_ep_t *local_ep) {
    return doca__cc_arm_handle(local_ep, DOCA__CC_SEND);
}

doca_error_t doca_comm_channel_ep_event_handle_arm_recv(struct doca_comm_channel_ep_t *local_ep) {
    return doca__cc_arm_handle(local_ep, DOCA__CC_RECV);
}

/* ---- what is known of a peer ------------------------------------------------------------------------------------- */

doca_error_t doca_comm_channel_peer_addr_set_user_data(struct doca_comm_channel_addr_t *peer_addr,
                                                       uint64_t user_context) {
    if (!peer_addr) return DOCA_ERROR_INVALID_VALUE;
    peer_addr->user_context = user_context;
    return DOCA_SUCCESS;
}

doca_error_t doca_comm_channel_peer_addr_get_user_data(struct doca_comm_channel_addr_t *peer_addr,
                                                       uint64_t *user_data) {
    if (!peer_addr || !user_data) return DOCA_ERROR_INVALID_VALUE;
    *user_data = peer_addr->user_context;
    return DOCA_SUCCESS;
}

doca_error_t doca_comm_channel_peer_addr_update_info(struct doca_comm_channel_addr_t *peer_addr) {
    if (!peer_addr) return DOCA_ERROR_INVALID_VALUE;
    if (peer_addr->state != DOCA__CC_OPEN && peer_addr->state != DOCA__CC_BROKEN) return DOCA_ERROR_NOT_CONNECTED;
    doca__cc_work(peer_addr->ep);
    peer_addr->told = peer_addr->now;
    return peer_addr->state == DOCA__CC_OPEN ? DOCA_SUCCESS : DOCA_ERROR_CONNECTION_RESET;
}

static doca_error_t doca__cc_give(const struct doca_comm_channel_addr_t *peer, const uint64_t *count,
                                  uint64_t *result) {
    if (!peer || !result) return DOCA_ERROR_INVALID_VALUE;
    *result = *count;
    return DOCA_SUCCESS;
}

doca_error_t doca_comm_channel_peer_addr_get_send_messages(const struct doca_comm_channel_addr_t *peer_addr,
                                                           uint64_t *send_messages) {
    return doca__cc_give(peer_addr, peer_addr ? &peer_addr->told.sent : NULL, send_messages);
}

doca_error_t doca_comm_channel_peer_addr_get_send_bytes(const struct doca_comm_channel_addr_t *peer_addr,
                                                        uint64_t *send_bytes) {
    return doca__cc_give(peer_addr, peer_addr ? &peer_addr->told.sent_bytes : NULL, send_bytes);
}

doca_error_t doca_comm_channel_peer_addr_get_recv_messages(const struct doca_comm_channel_addr_t *peer_addr,
                                                           uint64_t *recv_messages) {
    return doca__cc_give(peer_addr, peer_addr ? &peer_addr->told.received : NULL, recv_messages);
}

doca_error_t doca_comm_channel_peer_addr_get_recv_bytes(const struct doca_comm_channel_addr_t *peer_addr,
                                                        uint64_t *recv_bytes) {
    return doca__cc_give(peer_addr, peer_addr ? &peer_addr->told.received_bytes : NULL, recv_bytes);
}

doca_error_t doca_comm_channel_peer_addr_get_send_in_flight_messages(const struct doca_comm_channel_addr_t *peer_addr,
                                                                     uint64_t *send_in_flight_messages) {
    return doca__cc_give(peer_addr, peer_addr ? &peer_addr->told.in_flight : NULL, send_in_flight_messages);
}

#endif /* DOCA_COMM_CHANNEL_IMPLEMENTATION */
