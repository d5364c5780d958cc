/* cci.h - CCI, the Common Communication Interface, in one header.              v0.1.0
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Connections, messages of up to one datagram, remote memory access (RMA) and events, on top of whatever the network
 * can do: UDP sockets (cci_udp.h), or anything of your own that moves datagrams. No build system, no dependencies.
 *
 * Do this in ONE C or C++ file, transports first, core last:
 *
 *     #define CCI_IMPLEMENTATION
 *     #include "cci_udp.h"
 *     #include "cci.h"
 *
 * and #include "cci.h" alone in all others. On Linux with glibc link with -pthread (nothing else).
 *
 * CONTENTS (search for the tag)
 *     >>manual      what it is and is not, quick start, transports, memory, threads, errors
 *     >>config      every macro with its default
 *     >>api         the functions, as in the CCI 0.3.0 manual, and what goes beyond it
 *     >>transport   the table of operations that a native transport fills in
 *     >>link        the table that a mover of datagrams fills in
 *     >>base        load and store, keyed hash, lists, ranges, timing wheel
 *     >>evq         events and receive buffers
 *     >>conn        connection table and handshake
 *     >>rel         reliability protocol: acknowledgements, loss, order, pace
 *     >>rma         registrations, placement, reads
 *     >>dgram       the datagram endpoint: joins the layers over one link
 *     >>core        devices, configuration, transport table, dispatch
 *     >>license
 */
#ifndef CCI_H
#define CCI_H

/* ==================================================================================================================
 * >>manual
 *
 * WHAT IT IS. CCI gives a program endpoints, connections between them, messages, remote memory access and events. One
 * endpoint talks to any number of peers; its buffers belong to the endpoint and not to a connection, so memory does not
 * grow with the number of peers. Everything is asynchronous: a call starts an operation, cci_get_event() tells the end
 * of it. References like "[4.7.2.1]" name the section of the CCI 0.3.0 manual that rules.
 *
 * WHAT IT IS NOT. It is not a byte stream (messages have ends), not an RPC system, not a name service, and it keeps no
 * secret: without the program's own encryption whoever sees the traffic can read and change it. It starts no threads
 * unless a device is configured with `progress = thread`.
 *
 * QUICK START. A server waits for a request, accepts it and prints what comes:
 *
 *     uint32_t caps; cci_endpoint_t *ep; cci_event_t *ev; char *uri;
 *     cci_init(CCI_ABI_VERSION, 0, &caps);
 *     cci_create_endpoint(NULL, 0, &ep, NULL);
 *     cci_get_opt(ep, CCI_OPT_ENDPT_URI, &uri);                  (give this to the client)
 *     for (;;) {
 *         if (cci_get_event(ep, &ev) != CCI_SUCCESS) continue;
 *         if (ev->type == CCI_EVENT_CONNECT_REQUEST) cci_accept(ev, NULL);
 *         if (ev->type == CCI_EVENT_RECV) printf("%.*s\n", (int)ev->recv.len, (const char *)ev->recv.ptr);
 *         cci_return_event(ev);
 *     }
 *
 * A client calls cci_connect(ep, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), waits for CCI_EVENT_CONNECT, and
 * sends on its connection. examples/hello.c is the whole program.
 *
 * TRANSPORTS. Each transport header that is included before this one registers itself; the order of inclusion is the
 * order of preference. Without configuration every transport proposes its devices; with a configuration file (the
 * environment variable CCI_CONFIG names it, see cci_get_devices()) the file decides. cci_register_transport() adds one
 * at run time.
 *
 * PROGRESS. The library works inside its calls, chiefly cci_get_event(): a program that stops calling stops serving its
 * peers (they will see CCI_ETIMEDOUT), unless the device has `progress = thread`. A program that would rather sleep
 * passes the OS handle of its endpoint to select, poll or epoll and calls cci_get_event() until CCI_EAGAIN when it wakes.
 *
 * MEMORY. All memory of an endpoint is allocated when it is created (and when its buffer counts are raised); only the
 * connection table grows, in slabs, when connections open. Pages that are never used are never touched.
 *
 * THREADS. Any function may be called from any thread; calls on one endpoint are serialised by a lock, different
 * endpoints share nothing. After cci_destroy_endpoint() and cci_disconnect() the handle is stale: the program sees to it
 * that no other thread still uses it.
 *
 * ERRORS. Functions return a status, cci_strerror() names it. What the caller did wrong is answered with a status and
 * changes nothing; what comes from the network is never trusted: it is checked, dropped and counted.
 * ================================================================================================================== */

/* ==================================================================================================================
 * >>config
 *
 * Define before including, where needed. Nothing here is needed in the usual case.
 *
 * CCI_IMPLEMENTATION    in one file: emits the code of all layers, that is, defines CCI_BASE_IMPLEMENTATION,
 *                       CCI_EVQ_IMPLEMENTATION, CCI_CONN_IMPLEMENTATION, CCI_REL_IMPLEMENTATION, CCI_RMA_IMPLEMENTATION,
 *                       CCI_DGRAM_IMPLEMENTATION and CCI_CORE_IMPLEMENTATION. A program that wants one layer defines that
 *                       one and those it names; each brings in CCI_BASE_IMPLEMENTATION.
 * CCI_STATIC            everything is static: several files can have their own private copy.
 * CCI_API               what stands before each function's declaration (default: extern, or static with CCI_STATIC).
 * CCI_ASSERT(x)         default: assert(x) from <assert.h>, or nothing with NDEBUG.
 * CCI_LOG(level, text)  default: calls the log hook of cci_setup(); without a hook, warnings and errors go to stderr.
 * CCI_NO_THREADS        no lock and no helper thread: one thread uses the library.
 * CCI_NO_STDIO          no FILE: the configuration comes from cci_setup(), messages go to the log hook alone.
 * CCI_NO_DLOPEN         no transport opens a shared library at run time.
 * ================================================================================================================== */

/* strict ISO modes hide POSIX unless it is asked for before the first system header */
#if defined(CCI_IMPLEMENTATION) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#define CCI_VERSION_MAJOR 0
#define CCI_VERSION_MINOR 1
#define CCI_VERSION_PATCH 0

#if defined(__unix__) || defined(__APPLE__) || defined(__HAIKU__)
#define CCI_POSIX 1
#else
#define CCI_POSIX 0
#endif

#if CCI_POSIX
#include <sys/time.h> /* struct timeval */
#include <sys/uio.h>  /* struct iovec */
#else
#ifndef CCI_HAVE_TIMEVAL
#define CCI_HAVE_TIMEVAL
struct timeval {
    long tv_sec;
    long tv_usec;
};
#endif
#ifndef CCI_HAVE_IOVEC
#define CCI_HAVE_IOVEC
struct iovec {
    void *iov_base;
    size_t iov_len;
};
#endif
#endif

#ifndef CCI_API
#ifdef CCI_STATIC
#if defined(__GNUC__) || defined(__clang__)
#define CCI_API static __attribute__((unused))
#else
#define CCI_API static
#endif
#else
#define CCI_API extern
#endif
#endif
#define CCI_DECLSPEC CCI_API

/* Handles are structs without const in C, as the manual prints them, and const in C++. */
#ifdef __cplusplus
#define CCI_CONST const
extern "C" {
#else
#define CCI_CONST
#endif

/* ==================================================================================================================
 * >>api
 * ================================================================================================================== */

/* ---- status codes [4.1.4.1] ----------------------------------------------------------------------------------- */

/* The version of the interface that a program was written for; cci_init() also takes 1. */
#define CCI_ABI_VERSION 2

/* X(name, value, text, what you can do about it) */
#define CCI_STATUS_TABLE(X)                                                                                            \
    X(CCI_SUCCESS, 0, "success", "nothing to do")                                                                      \
    X(CCI_ERROR, 1, "generic error", "see the log for the reason")                                                     \
    X(CCI_ERR_DISCONNECTED, 2, "not connected", "disconnect and connect again")                                        \
    X(CCI_ERR_RNR, 3, "receiver not ready", "let the peer return its events, or raise its buffer count")               \
    X(CCI_ERR_DEVICE_DEAD, 4, "local device is gone", "use another device")                                            \
    X(CCI_ERR_RMA_HANDLE, 5, "remote memory handle is invalid or lacks permission", "check handle, range and flags")   \
    X(CCI_ERR_RMA_OP, 6, "remote memory operation is not supported by the peer", "use another operation")              \
    X(CCI_ERR_NOT_IMPLEMENTED, 7, "not implemented", "ask CCI_OPT or choose another transport")                        \
    X(CCI_ERR_NOT_FOUND, 8, "not found", "include a transport, or check the name")                                     \
    X(CCI_EINVAL, EINVAL, "invalid parameter", "check the arguments against the manual")                               \
    X(CCI_ETIMEDOUT, ETIMEDOUT, "timed out", "check that the peer runs and calls cci_get_event()")                     \
    X(CCI_ENOMEM, ENOMEM, "out of memory", "lower the buffer counts")                                                  \
    X(CCI_ENODEV, ENODEV, "no device available", "check the configuration and that the interface is up")               \
    X(CCI_ENETDOWN, ENETDOWN, "device is down", "bring the interface up")                                              \
    X(CCI_EBUSY, EBUSY, "resource busy", "choose another port or name")                                                \
    X(CCI_ERANGE, ERANGE, "value out of range", "check the value against the manual")                                  \
    X(CCI_EAGAIN, EAGAIN, "temporarily unavailable", "try again")                                                      \
    X(CCI_ENOBUFS, ENOBUFS, "no buffers available", "get and return events, then try again")                           \
    X(CCI_EMSGSIZE, EMSGSIZE, "message too long", "keep to the connection's max_send_size, or use cci_rma()")          \
    X(CCI_ENOMSG, ENOMSG, "no message of the desired type", "try again")                                               \
    X(CCI_EADDRNOTAVAIL, EADDRNOTAVAIL, "address not available", "check the address")                                  \
    X(CCI_ECONNREFUSED, ECONNREFUSED, "connection refused", "the peer rejected the request")

typedef enum cci_status {
#define CCI_STATUS_ENUM(name, value, text, hint) name = value,
    CCI_STATUS_TABLE(CCI_STATUS_ENUM)
#undef CCI_STATUS_ENUM
        CCI_STATUS_MAX_ = 0x7fffffff /* never a status: makes the enum as wide as int for every compiler */
} cci_status_t;
#define CCI_EMMSGSIZE CCI_EMSGSIZE /* the manual's enumeration has it with two Ms */

/* ---- flags ---------------------------------------------------------------------------------------------------- */

#define CCI_FLAG_BLOCKING (1 << 0) /* return when the operation is complete; its status is the function's            */
#define CCI_FLAG_NO_COPY (1 << 1)  /* the buffer stays untouched until the completion: it need not be copied         */
#define CCI_FLAG_SILENT (1 << 3)   /* no completion event                                                             */
#define CCI_FLAG_READ (1 << 4)     /* RMA from remote to local memory; registration: peers may read                   */
#define CCI_FLAG_WRITE (1 << 5)    /* RMA from local to remote memory; registration: peers may write                  */
#define CCI_FLAG_FENCE (1 << 6)    /* all earlier RMAs of the connection complete remotely before this and later ones */

#define CCI_CAPS_THREAD_SAFETY (1u << 0) /* in cci_init()'s caps: calls may come from any thread */

/* ---- devices, endpoints, connections [4.2, 4.3, 4.4] ------------------------------------------------------------ */

/* A device: a section of the configuration, or what a transport proposed. Everything in it is read-only. [5.3] */
typedef CCI_CONST struct cci_device {
    const char *name;              /* of the section, or of the interface                                     */
    const char *transport;         /* "udp", ...                                                              */
    unsigned up;                   /* 1 while it is usable; brought up to date by cci_get_devices()           */
    const char *info;              /* description for people: address, MTU, rate; may have several lines      */
    const char *const *conf_argv;  /* "key=value" of the section, for the transport; ends with NULL           */
    uint32_t max_send_size;        /* bytes of the largest message                                            */
    uint64_t rate;                 /* bits per second, 0 if unknown                                           */
    struct {
        uint32_t domain, bus, dev, func;
    } pci;                         /* all 0xffffffff if it is not on a PCI bus or not known                   */
} cci_device_t;

typedef int cci_os_handle_t; /* a file descriptor, for select, poll and epoll; never read from or write to it */

/* An endpoint. [5.4] */
typedef CCI_CONST struct cci_endpoint {
    cci_device_t *device;
} cci_endpoint_t;

typedef enum cci_endpoint_flags { CCI_ENDPOINT_FLAGS_NONE = 0 } cci_endpoint_flags_t;

typedef enum cci_conn_attribute {
    CCI_CONN_ATTR_RO,       /* reliable, ordered: delivery and completion in the order of the calls           */
    CCI_CONN_ATTR_RU,       /* reliable, unordered: each once, in any order                                   */
    CCI_CONN_ATTR_UU,       /* unreliable, unordered: once, several times or never; no RMA                    */
    CCI_CONN_ATTR_UU_MC_TX, /* multicast, sending side                                                        */
    CCI_CONN_ATTR_UU_MC_RX  /* multicast, receiving side                                                      */
} cci_conn_attribute_t;

/* A connection, valid from its CONNECT or ACCEPT event until cci_disconnect() or cci_destroy_endpoint(). [5.2] */
typedef CCI_CONST struct cci_connection {
    uint32_t max_send_size;         /* bytes of the largest message on this connection                        */
    cci_endpoint_t *endpoint;       /* the local endpoint                                                     */
    cci_conn_attribute_t attribute; /* as asked for by the client                                             */
    void *context;                  /* what cci_connect() or cci_accept() was given                           */
} cci_connection_t;

#define CCI_CONN_REQ_LEN (1024) /* bytes of request data at most */

/* ---- events [4.5] ----------------------------------------------------------------------------------------------- */

typedef enum cci_event_type {
    CCI_EVENT_NONE,                  /* never given to a program                                               */
    CCI_EVENT_SEND,                  /* send:       a send or an RMA has completed                             */
    CCI_EVENT_RECV,                  /* recv:       a message; its bytes are valid until the event is returned */
    CCI_EVENT_CONNECT,               /* connect:    the outcome of cci_connect()                               */
    CCI_EVENT_CONNECT_REQUEST,       /* request:    accept or reject it, then return it                        */
    CCI_EVENT_ACCEPT,                /* accept:     the outcome of cci_accept()                                */
    CCI_EVENT_KEEPALIVE_TIMEDOUT,    /* keepalive:  the peer did not answer; the option is now 0               */
    CCI_EVENT_ENDPOINT_DEVICE_FAILED /* dev_failed: the device of the endpoint is gone or down                 */
} cci_event_type_t;

typedef struct cci_event_send { /* [5.12] */
    cci_event_type_t type;
    cci_status_t status;
    cci_connection_t *connection;
    void *context; /* what the call was given */
} cci_event_send_t;

typedef struct cci_event_recv { /* [5.11] */
    cci_event_type_t type;
    uint32_t len;    /* bytes, may be 0 */
    const void *ptr; /* 8-byte aligned, in place in the receive buffer; may be changed and sent from there */
    cci_connection_t *connection;
} cci_event_recv_t;

typedef struct cci_event_connect { /* [5.7] */
    cci_event_type_t type;
    cci_status_t status; /* CCI_SUCCESS, CCI_ECONNREFUSED, CCI_ETIMEDOUT or another */
    void *context;       /* what cci_connect() was given, also on failure */
    cci_connection_t *connection; /* NULL unless CCI_SUCCESS */
} cci_event_connect_t;

typedef struct cci_event_connect_request { /* [5.8] */
    cci_event_type_t type;
    uint32_t data_len;
    const void *data_ptr; /* 8-byte aligned, valid until the event is returned */
    cci_conn_attribute_t attribute;
} cci_event_connect_request_t;

typedef struct cci_event_accept { /* [5.6] */
    cci_event_type_t type;
    cci_status_t status;
    void *context;                /* what cci_accept() was given, also on failure */
    cci_connection_t *connection; /* NULL unless CCI_SUCCESS */
} cci_event_accept_t;

typedef struct cci_event_keepalive_timedout { /* [5.10] */
    cci_event_type_t type;
    cci_connection_t *connection;
} cci_event_keepalive_timedout_t;

typedef struct cci_event_endpoint_device_failed { /* [5.9] */
    cci_event_type_t type;
    cci_endpoint_t *endpoint;
} cci_event_endpoint_device_failed_t;

typedef union cci_event { /* [5.5] */
    cci_event_type_t type;
    cci_event_send_t send;
    cci_event_recv_t recv;
    cci_event_connect_t connect;
    cci_event_connect_request_t request;
    cci_event_accept_t accept;
    cci_event_keepalive_timedout_t keepalive;
    cci_event_endpoint_device_failed_t dev_failed;
} cci_event_t;

/* ---- options [4.6] ---------------------------------------------------------------------------------------------- */

typedef enum cci_opt_name {
    CCI_OPT_ENDPT_SEND_TIMEOUT,      /* uint32_t µs, get and set: for new connections; 0 is for ever, default 30 s  */
    CCI_OPT_ENDPT_RECV_BUF_COUNT,    /* uint32_t, get and set: messages that can be received without dropping       */
    CCI_OPT_ENDPT_SEND_BUF_COUNT,    /* uint32_t, get and set: messages that can be pending                         */
    CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, /* uint32_t µs, get and set: all connections, present and future; 0 is off     */
    CCI_OPT_ENDPT_URI,               /* char *, get: the program frees it                                           */
    CCI_OPT_ENDPT_RMA_ALIGN,         /* cci_alignment_t, get                                                        */
    CCI_OPT_CONN_SEND_TIMEOUT,       /* uint32_t µs, get and set: for operations started from now on                */
    CCI_OPT_CONN_KEEPALIVE_TIMEOUT   /* uint32_t µs, get and set                                                    */
} cci_opt_name_t;

/* Required alignment in bytes of the parts of an RMA, 0 for none. [5.1] */
typedef struct cci_alignment {
    uint32_t rma_write_local_addr;
    uint32_t rma_write_remote_addr;
    uint32_t rma_write_length;
    uint32_t rma_read_local_addr;
    uint32_t rma_read_remote_addr;
    uint32_t rma_read_length;
} cci_alignment_t;

typedef CCI_CONST void cci_opt_handle_t; /* an endpoint or a connection, as the option's name says */

/* A handle of registered memory: these 32 bytes and nothing else. A copy of them, sent to a peer or kept elsewhere, is
 * as good as the original. [5.13] */
typedef CCI_CONST struct cci_rma_handle {
    uint64_t stuff[4];
} cci_rma_handle_t;

/* ---- initialization [4.1] --------------------------------------------------------------------------------------- */

/* Makes the library ready. Calls are counted: each success wants one cci_finalize(). `*caps` becomes a set of CCI_CAPS_.
 * CCI_EINVAL: caps is NULL, the ABI version is neither 1 nor 2, or flags is not 0. CCI_ERR_NOT_FOUND: no transport was
 * included or registered. CCI_ERROR: the configuration has an error (the log names file and line). Otherwise what fopen()
 * set errno to. */
CCI_API int cci_init(uint32_t abi_ver, uint32_t flags, uint32_t *caps);

/* Undoes one cci_init(); the last destroys all endpoints that are left and frees everything. CCI_ERROR when there was
 * no cci_init(). */
CCI_API int cci_finalize(void);

/* The text of a status, NULL if it is none. The endpoint may be NULL. */
CCI_API const char *cci_strerror(cci_endpoint_t *endpoint, enum cci_status status);

/* The name of an event type, "CCI_EVENT_RECV" for one, NULL if it is none. */
CCI_API const char *cci_event_type_str(cci_event_type_t type);

/* ---- devices [4.2] ---------------------------------------------------------------------------------------------- */

/* Gives an array of devices that ends with NULL, the highest priority first. The array belongs to the library and is
 * valid until cci_finalize(); calling again brings `up` up to date and may add devices. CCI_EINVAL: devices is NULL.
 *
 * The configuration is an INI text: [section] names a device; `transport` is needed; `priority` is 0 to 100 (default
 * 50); `default = 1` marks the device that a NULL device stands for; all other keys are the transport's and are listed in
 * its header. Comments start with #. */
CCI_API int cci_get_devices(cci_device_t *const **devices);

/* ---- endpoints [4.3] -------------------------------------------------------------------------------------------- */

/* Creates an endpoint on a device, or on the default device for NULL. `fd` may be NULL for a program that only polls;
 * otherwise it becomes a descriptor that is readable while events wait or the library wants to be called. flags: 0.
 * CCI_EINVAL: endpoint is NULL. CCI_ENODEV: the device is not up, or there is none. CCI_ENOMEM. */
CCI_API int cci_create_endpoint(cci_device_t *device, int flags, cci_endpoint_t **endpoint, cci_os_handle_t *fd);

/* The same at a given service: a port number or a service name for UDP. NULL chooses one. CCI_EBUSY: it is taken.
 * CCI_EINVAL: there is no such service. */
CCI_API int cci_create_endpoint_at(cci_device_t *device, const char *service, int flags, cci_endpoint_t **endpoint,
                                   cci_os_handle_t *fd);

/* Closes all connections, sends the acknowledgements owed and frees everything that belongs to the endpoint, events and
 * registrations included. CCI_EINVAL: endpoint is NULL. */
CCI_API int cci_destroy_endpoint(cci_endpoint_t *endpoint);

/* ---- connections [4.4] ------------------------------------------------------------------------------------------ */

/* Accepts a request; a CCI_EVENT_ACCEPT with the context follows. The request event must still be returned.
 * CCI_EINVAL: the event is not a request, or was accepted or rejected already. */
CCI_API int cci_accept(cci_event_t *conn_req, const void *context);

/* Rejects a request; the client gets CCI_ECONNREFUSED. The request event must still be returned. CCI_EINVAL likewise. */
CCI_API int cci_reject(cci_event_t *conn_req);

/* Asks for a connection; a CCI_EVENT_CONNECT with the context follows. `data_ptr` (up to 1,024 bytes) is copied. Names in
 * the URI are resolved by the system's resolver, which may block. `flags` is not used. A NULL timeout means for ever.
 * CCI_EINVAL: an argument is NULL or out of range, data_len is over CCI_CONN_REQ_LEN, or the URI is malformed.
 * CCI_EADDRNOTAVAIL: the host is not known or not of a family that the endpoint can reach. CCI_ENOMEM. */
CCI_API int cci_connect(cci_endpoint_t *endpoint, const char *server_uri, const void *data_ptr, uint32_t data_len,
                        cci_conn_attribute_t attribute, const void *context, int flags, const struct timeval *timeout);

/* Tears a connection down, locally: the peer learns it when it next uses its side. Operations still pending complete with
 * CCI_ERR_DISCONNECTED; messages not yet taken are dropped. CCI_EINVAL: connection is NULL. */
CCI_API int cci_disconnect(cci_connection_t *connection);

/* ---- getting events [4.5] --------------------------------------------------------------------------------------- */

/* Makes the OS handle ready for sleeping: what is outstanding is sent and the next deadline armed. Calling it is optional.
 * flags: 0. CCI_EINVAL: endpoint is NULL, or has no OS handle. */
CCI_API int cci_arm_os_handle(cci_endpoint_t *endpoint, int flags);

/* Gets the next event, and lets the library work. Never blocks. CCI_EAGAIN: there is none (*event becomes NULL).
 * CCI_ENOBUFS: there is none to give since the program holds all receive buffers. CCI_EINVAL: an argument is NULL. */
CCI_API int cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event);

/* Returns an event and what it holds, in any order, from any thread. CCI_EINVAL: event is NULL, or is a request that was
 * neither accepted nor rejected. */
CCI_API int cci_return_event(cci_event_t *event);

/* ---- options [4.6] ---------------------------------------------------------------------------------------------- */

/* CCI_EINVAL: handle or val is NULL, the option is get-only, or there is no such option. CCI_ERANGE: the value is. */
CCI_API int cci_set_opt(cci_opt_handle_t *handle, cci_opt_name_t name, const void *val);
CCI_API int cci_get_opt(cci_opt_handle_t *handle, cci_opt_name_t name, void *val);

/* ---- messages [4.7.2.1, 4.7.2.2] -------------------------------------------------------------------------------- */

/* Sends a message of up to connection->max_send_size bytes. The buffer is the program's again on return, with
 * CCI_FLAG_NO_COPY on completion. Reliable: completes when the peer has it; unreliable: when it has left. Flags: BLOCKING,
 * NO_COPY, SILENT; NO_COPY with SILENT is for RO alone (CCI_EINVAL). CCI_EINVAL: connection is NULL or receives multicast,
 * or msg_ptr is NULL and msg_len is not 0. CCI_EMSGSIZE: too long. CCI_ENOBUFS: too much is pending.
 * CCI_ERR_DISCONNECTED: the peer has left. With BLOCKING also the statuses of CCI_EVENT_SEND. */
CCI_API int cci_send(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len, const void *context,
                     int flags);
CCI_API int cci_sendv(cci_connection_t *connection, const struct iovec *data, uint32_t iovcnt, const void *context,
                      int flags);

/* ---- remote memory access [4.7.2.3 - 4.7.2.5] ------------------------------------------------------------------- */

/* Registers memory. Registrations may overlap. flags: what peers may do (CCI_FLAG_READ, CCI_FLAG_WRITE), 0 for local use.
 * The handle belongs to the library and stays valid until it is deregistered. CCI_EINVAL: a pointer is NULL or the length
 * is 0, or the range passes the end of the address space. CCI_ENOBUFS: too many registrations. */
CCI_API int cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
                             cci_rma_handle_t **rma_handle);

/* Ends a registration: from now on nothing touches the memory. An RMA of this endpoint that is using it ends with
 * CCI_ERR_RMA_HANDLE, one of a peer too. CCI_EINVAL: a pointer is NULL. CCI_ERR_RMA_HANDLE: there is no such handle. */
CCI_API int cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *rma_handle);

/* Moves data_len bytes between registered memories. With msg_ptr and msg_len the peer gets that message after the data.
 * Flags: one of READ and WRITE, and BLOCKING, SILENT, FENCE. Completes with CCI_SUCCESS when the peer has all of it, or
 * with CCI_ERR_RMA_HANDLE, CCI_ETIMEDOUT, CCI_ERR_DISCONNECTED, CCI_ERR_RNR.
 * CCI_EINVAL: connection or a handle is NULL, it is unreliable, data_len is 0, or not just one of READ and WRITE is set.
 * CCI_ERR_RMA_HANDLE: the local handle is not valid for that range. CCI_EMSGSIZE, CCI_ENOBUFS, CCI_ERR_DISCONNECTED. */
CCI_API int cci_rma(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len, cci_rma_handle_t *local_handle,
                    uint64_t local_offset, cci_rma_handle_t *remote_handle, uint64_t remote_offset, uint64_t data_len,
                    const void *context, int flags);

/* ---- beyond CCI ------------------------------------------------------------------------------------------------- */

struct cci_transport;

#define CCI_LOG_ERROR 0
#define CCI_LOG_WARN 1
#define CCI_LOG_INFO 2
#define CCI_LOG_DEBUG 3

/* What cci_setup() takes. Zero means the documented default; the pointers must stay valid until the last
 * cci_finalize(). */
typedef struct cci_setup {
    void *(*alloc)(void *user, size_t size);      /* memory aligned for any type, or NULL; default malloc()      */
    void (*release)(void *user, void *pointer);   /* both or neither; default free()                             */
    void (*log)(void *user, int level, const char *text); /* default: errors and warnings to stderr              */
    int (*random)(void *user, void *bytes, size_t count); /* unguessable bytes, 0 on success; default the system's */
    void *user;                                   /* first argument of the four above                            */
    const char *config;                           /* INI text instead of the file that CCI_CONFIG names          */
    const struct cci_transport *const *transports; /* own transports, before the included ones; ends with NULL   */
} cci_setup_t;

/* Sets hooks before cci_init(); NULL restores the defaults. CCI_EBUSY: after cci_init(). CCI_EINVAL: only one of alloc
 * and release is set. */
CCI_API int cci_setup(const cci_setup_t *setup);

/* Adds a transport (before or after cci_init(); its devices appear with the next cci_get_devices()), or takes it away
 * when none of its endpoints is open (CCI_EBUSY). The table must stay valid meanwhile. CCI_EINVAL: version or name is
 * wrong. CCI_EBUSY: the name is taken. CCI_ENOBUFS: there are 16 already. */
CCI_API int cci_register_transport(const struct cci_transport *transport);
CCI_API int cci_deregister_transport(const struct cci_transport *transport);

/* Tells about transport number `index`: its name, and as the value why it has no devices, or "" when it has some. NULL
 * when there is no such transport. For programs like cci_info. */
CCI_API const char *cci_transport_reason(uint32_t index, const char **name);

/* ==================================================================================================================
 * >>transport
 *
 * A transport makes devices, and endpoints on them. It does so in one of two ways. It may fill in `link`, a table that
 * moves datagrams and knows nothing else (see >>link): then the datagram endpoint in this header turns it into all of CCI.
 * Or it fills in `ops`, the CCI operations themselves, for hardware that does better; its endpoint then begins with a
 * cci_endpoint_base_t, its events with a cci_event_base_t, and its connections with a struct cci_connection. Arguments
 * have been checked for NULL before an operation is called; everything else is the transport's.
 * ================================================================================================================== */

#define CCI_TRANSPORT_VERSION 1

/* What a device is, told by the transport to the core, which copies all of it. */
typedef struct cci_device_desc {
    const char *name;       /* default name of the device                                               */
    const char *info;       /* text for people                                                          */
    unsigned up;            /* 1: usable                                                                */
    uint32_t priority;      /* 0 to 100, for devices that are proposed                                  */
    uint32_t max_send_size; /* bytes                                                                    */
    uint64_t rate;          /* bits per second, 0 if unknown                                            */
    uint32_t pci[4];        /* domain, bus, device, function; 0xffffffff if none                        */
    uint8_t data[192];      /* the transport's own; cci_device_data() gives its copy back               */
} cci_device_desc_t;

/* Every endpoint of a native transport begins with this. */
typedef struct cci_endpoint_base {
    struct cci_endpoint pub;
    const struct cci_endpoint_ops *ops;
    struct cci_endpoint_base *next_in_core; /* the core's list of open endpoints */
} cci_endpoint_base_t;

/* Every event of a native transport begins with this. */
typedef struct cci_event_base {
    union cci_event pub;
    cci_endpoint_base_t *endpoint;
} cci_event_base_t;

typedef struct cci_endpoint_ops {
    int (*destroy)(cci_endpoint_base_t *endpoint);
    int (*accept)(cci_event_base_t *request, void *context);
    int (*reject)(cci_event_base_t *request);
    int (*connect)(cci_endpoint_base_t *endpoint, const char *address, const void *data, uint32_t data_len,
                   cci_conn_attribute_t attribute, void *context, int flags, const struct timeval *timeout);
    int (*disconnect)(struct cci_connection *connection);
    int (*arm_os_handle)(cci_endpoint_base_t *endpoint, int flags);
    int (*get_event)(cci_endpoint_base_t *endpoint, cci_event_t **event);
    int (*return_event)(cci_event_base_t *event);
    int (*set_endpoint_opt)(cci_endpoint_base_t *endpoint, cci_opt_name_t name, const void *val);
    int (*get_endpoint_opt)(cci_endpoint_base_t *endpoint, cci_opt_name_t name, void *val);
    int (*set_connection_opt)(struct cci_connection *connection, cci_opt_name_t name, const void *val);
    int (*get_connection_opt)(struct cci_connection *connection, cci_opt_name_t name, void *val);
    int (*sendv)(struct cci_connection *connection, const struct iovec *data, uint32_t count, void *context, int flags);
    int (*rma_register)(cci_endpoint_base_t *endpoint, void *start, uint64_t length, int flags,
                        cci_rma_handle_t **handle);
    int (*rma_deregister)(cci_endpoint_base_t *endpoint, const struct cci_rma_handle *handle);
    int (*rma)(struct cci_connection *connection, const void *msg, uint32_t msg_len, const struct cci_rma_handle *local,
               uint64_t local_offset, const struct cci_rma_handle *remote, uint64_t remote_offset, uint64_t length,
               void *context, int flags);
} cci_endpoint_ops_t;

struct cci_link;

typedef struct cci_transport {
    uint32_t version;    /* CCI_TRANSPORT_VERSION                                                        */
    const char *name;    /* "udp": the value of the key `transport`, and the scheme of its URIs          */
    const char *scheme;  /* a second scheme that is accepted, or NULL                                    */
    void *user;          /* the transport's own                                                          */
    /* Proposes devices: calls add(list, desc) for each. Returns CCI_SUCCESS, or a status with the reason in `why`. */
    int (*discover)(const struct cci_transport *self, void *list, int (*add)(void *list, const cci_device_desc_t *desc),
                    char *why, size_t why_size);
    /* Makes a device of a section's keys ("key=value", NULL at the end). Unknown keys and bad values are errors: the
     * text in `why` names key and reason, *bad_key the index of the key (or -1). */
    int (*configure)(const struct cci_transport *self, const char *name, const char *const *keys,
                     cci_device_desc_t *desc, int *bad_key, char *why, size_t why_size);
    /* Brings `up`, and what else may have changed, up to date. May be NULL. */
    void (*refresh)(const struct cci_transport *self, cci_device_desc_t *desc);
    const struct cci_link *link; /* a mover of datagrams, or                                              */
    int (*create)(cci_device_t *device, const char *service, int flags, cci_endpoint_base_t **endpoint,
                  cci_os_handle_t *fd); /* a native transport: sets endpoint->ops                         */
} cci_transport_t;

/* The transport's own part of a device, as `discover` or `configure` left it. */
CCI_API const void *cci_device_data(cci_device_t *device);

/* Services that transports may use; valid between cci_init() and cci_finalize(). */
CCI_API void *cci_alloc(size_t size);
CCI_API void cci_release(void *pointer);
CCI_API void cci_log(int level, const char *text);
CCI_API int cci_random(void *bytes, size_t count);

/* ==================================================================================================================
 * >>link
 *
 * A link moves datagrams between addresses and knows nothing else: it may lose, repeat, reorder and corrupt them. `open`,
 * `close`, `send`, `receive` and `now` are needed; all others may be NULL. A link's functions are called by one thread
 * at a time (under the endpoint's lock), except `wait` and `wake`.
 * ================================================================================================================== */

#define CCI_LINK_VERSION 1

/* An address of the link's own making; unused bytes are 0, since addresses are compared byte by byte. */
typedef struct cci_link_addr {
    uint8_t bytes[24];
} cci_link_addr_t;

/* One datagram to send: its bytes are the pieces one after the other. */
typedef struct cci_link_tx {
    const cci_link_addr_t *to;
    uint32_t length;      /* bytes of all pieces                                              */
    uint32_t piece_count; /* 1 to 3                                                           */
    struct {
        const void *data;
        uint32_t length;
    } piece[3];
} cci_link_tx_t;

/* A buffer to receive in. A link that gets several datagrams of one sender at once may leave them side by side in one
 * buffer, each `segment` bytes long, the last perhaps shorter. */
typedef struct cci_link_rx {
    uint8_t *data;         /* in: where to, 8-byte aligned                                    */
    uint32_t capacity;     /* in: bytes there                                                 */
    uint32_t length;       /* out: bytes received                                             */
    uint32_t segment;      /* out: bytes of each datagram; equal to length when it is one     */
    uint32_t is_group;     /* out: 1 when it came by multicast to `group`                     */
    cci_link_addr_t from;  /* out                                                             */
    cci_link_addr_t group; /* out                                                             */
} cci_link_rx_t;

/* What `open` tells about the link; it comes zeroed. */
typedef struct cci_link_info {
    uint32_t mtu;             /* bytes of the largest datagram that the device can carry; at least 256           */
    uint32_t base_mtu;        /* bytes that every path surely carries (1,200 for IP); 0: mtu                     */
    uint32_t receive_window;  /* bytes that may be on their way to this endpoint at once; 0: 64 times mtu        */
    uint32_t send_buf_count;  /* default counts; 0: the header's                                                 */
    uint32_t recv_buf_count;
    uint32_t send_timeout_us; /* 0: 30 s                                                                         */
    uint32_t progress_thread; /* 1: a helper thread makes progress                                               */
    uint32_t coalesce;        /* 1: `receive` may leave several datagrams in one buffer; needs 64 KiB buffers    */
    int os_handle;            /* descriptor to wait on, or -1                                                    */
    const char *congestion;   /* name of the congestion control, NULL for the default                            */
} cci_link_info_t;

typedef struct cci_link {
    uint32_t version; /* CCI_LINK_VERSION */
    /* Opens the link on a device, at a service or anywhere (NULL). want_os_handle: a descriptor is wanted. */
    int (*open)(cci_device_t *device, const char *service, int want_os_handle, void **link, cci_link_info_t *info);
    void (*close)(void *link);
    /* Sends datagrams; returns how many were taken, from the first on; 0: try again later. What was taken may be reused by
     * the caller. A datagram that can't be sent at all (too long for the path) counts as taken. */
    int (*send)(void *link, const cci_link_tx_t *tx, int count);
    /* Receives into up to `count` buffers without waiting; returns how many were filled, 0 if nothing was there. */
    int (*receive)(void *link, cci_link_rx_t *rx, int count);
    /* Nanoseconds of a clock that never goes back. */
    uint64_t (*now)(void *link);
    /* The address in a URI behind "scheme://" to a link address; a status. May block on a name service. */
    int (*resolve)(void *link, const char *address, cci_link_addr_t *to);
    /* The link's own address in the same form, at most `size` bytes with the final 0. */
    int (*address)(void *link, char *text, size_t size);
    /* Joins (1) or leaves (0) a multicast group; needed for UU_MC_RX. Sending to a group needs no call. */
    int (*group)(void *link, const cci_link_addr_t *group, int join);
    /* 1 when the address is a multicast group. */
    int (*is_group)(void *link, const cci_link_addr_t *to);
    /* Sleeps until something is to be received, `timeout_ns` is over, or `wake` is called. Called without the lock. */
    void (*wait)(void *link, uint64_t timeout_ns);
    /* Ends a `wait` of another thread, now or its next. */
    void (*wake)(void *link);
    /* Keeps the OS handle readable (1) or not (0) on account of waiting events, and readable from deadline_ns on
     * (UINT64_MAX: no deadline). */
    void (*arm)(void *link, int readable, uint64_t deadline_ns);
    /* 1 while the device is usable, 0 when it failed. Called about 10 times a second and when `receive` returned < 0. */
    int (*up)(void *link);
} cci_link_t;

#ifdef __cplusplus
}
#endif

#endif /* CCI_H */
/* end of header */
