/* cci_verbs.h - RDMA hardware (InfiniBand, RoCE) as a transport of CCI (cci.h).                                   v0.1.0
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Speaks to the hardware through libibverbs alone, and opens that at run time: one program runs with RDMA and without.
 *
 * Do this in ONE C or C++ file, transports first, core last:
 *
 *     #define CCI_IMPLEMENTATION
 *     #include "cci_verbs.h"
 *     #include "cci_udp.h"
 *     #include "cci.h"
 *
 * CONTENTS (search for the tag)
 *     >>verbs-manual      devices, configuration keys, addresses, what happens underneath
 *     >>verbs-config      every macro with its default
 *     >>verbs-api         what this header declares
 *     >>verbs-system      what the implementation needs of the system
 *     >>verbs-library     the functions of libibverbs, opened at run time
 *     >>verbs-state       the structures
 *     >>verbs-text        log, numbers, files of the kernel
 *     >>verbs-ports       what the system tells about devices, ports and their addresses
 *     >>verbs-devices     proposed and configured devices
 *     >>verbs-table       the table
 *     >>verbs-license
 */

/* Strict ISO modes hide POSIX unless it is asked for before the first system header. */
#if defined(CCI_IMPLEMENTATION) || defined(CCI_VERBS_IMPLEMENTATION)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#endif

#ifndef CCI_VERBS_H
#define CCI_VERBS_H

#ifdef CCI_CORE_IMPLEMENTED
#error "include cci_verbs.h before cci.h in the file that defines CCI_IMPLEMENTATION"
#endif

#define CCI_TRANSPORT_INCLUDING
#include "cci.h"
#undef CCI_TRANSPORT_INCLUDING

/* ==================================================================================================================
 * >>verbs-manual
 *
 * DEVICES. Without configuration every port of every RDMA device is a device of CCI, named after it: "mlx5_0", or
 * "mlx5_0-2" for the second port of a device that has several. A port that is not active is proposed as not up.
 *
 * KEYS of a section with `transport = verbs`; all are optional. An unknown key or a bad value is an error. Numbers may
 * be hexadecimal (0x...).
 *
 *     key             unit, range                 default     meaning
 *     device          name                        -           the RDMA device; without it the fastest active port
 *     port            1 to 254                    first       the device's port; without it the first active one
 *     mode            rc or ud                    rc          rc: a reliable connected queue pair for each peer, RDMA
 *                                                             by the hardware. ud: one unreliable datagram queue pair
 *                                                             for all peers, under cci.h's own reliability
 *     gid_index       0 to 1023                   chosen      the port's address. RoCE: version 2 before 1, IPv4 before
 *                                                             IPv6, global before link-local. InfiniBand: 0
 *     service         1 to 65535                  any free    UDP port that tells the address of endpoints which name no
 *                                                             service themselves (see ADDRESSES)
 *     pkey            1 to 0xffff                 table's 1st partition
 *     qkey            1 to 0x7fffffff             0x00434349  what datagrams must carry; the same on all hosts
 *     traffic_class   0 to 255                    0           of the routing header (RoCE: DSCP and ECN)
 *     service_level   0 to 15                     0           of InfiniBand; on Ethernet the priority
 *     hop_limit       1 to 255                    64          routers that may be passed
 *     mtu             256, 512, 1024, 2048, 4096  port's      upper limit of one packet's payload, bytes
 *     recv_depth      16 to 32768                 1024        datagrams that the hardware can receive on its own
 *     send_depth      16 to 32768                 256         datagrams that the hardware can be given at once
 *     send_buf_count  messages, 1 to 65536        cci.h's     messages that can be pending
 *     max_send_size   bytes, 256 to 65472     one datagram    largest message; longer than a datagram: in fragments
 *     recv_buf_count  messages, 1 to 65536        cci.h's     messages that can be received without dropping
 *     send_timeout    microseconds, 1 to 2^32-1   30000000    send timeout of new endpoints
 *     progress        thread or poll              poll        thread: a helper thread works while the program computes
 *     congestion      discern, newreno or fixed   discern     how what is under way adapts to the path, as in cci_udp.h
 *     crc             0 or 1                      0           1: every datagram carries a CRC-32C; both sides must have it
 *
 * A device or port that does not exist makes a device of CCI that is not up; it comes up when it appears.
 * ==================================================================================================================
 * >>verbs-config
 *
 * CCI_VERBS_IMPLEMENTATION  emits the code of this header; CCI_IMPLEMENTATION implies it.
 * CCI_VERBS_LINK            the program is linked with libibverbs (-libverbs); default: it is opened at run time.
 * CCI_VERBS_LIBRARY         the name under which it is opened (default: "libibverbs.so.1").
 * CCI_NO_VERBS_H            there is no <infiniband/verbs.h>; default: found out by __has_include. The transport then has
 *                           no devices and says why.
 * CCI_STATIC, CCI_NO_THREADS, CCI_NO_STDIO, CCI_NO_DLOPEN as in cci.h.
 * ================================================================================================================== */

/* ==================================================================================================================
 * >>verbs-api
 * ================================================================================================================== */

#define CCI_HAVE_VERBS 1

#ifndef CCI_STATIC
#ifdef __cplusplus
extern "C" {
#endif
/* The transport, for cci_register_transport() or cci_setup(); a program that includes this header needs neither. */
CCI_API const cci_transport_t cci_verbs_transport;
#ifdef __cplusplus
}
#endif
#endif

/* The order of inclusion is the order of preference: take the first place that is free in cci.h's table. */
#ifndef CCI_TRANSPORT_1
#define CCI_TRANSPORT_1 &cci_verbs_transport
#elif !defined(CCI_TRANSPORT_2)
#define CCI_TRANSPORT_2 &cci_verbs_transport
#elif !defined(CCI_TRANSPORT_3)
#define CCI_TRANSPORT_3 &cci_verbs_transport
#elif !defined(CCI_TRANSPORT_4)
#define CCI_TRANSPORT_4 &cci_verbs_transport
#else
#error "cci.h takes four transports by inclusion; register the others with cci_register_transport()"
#endif

#endif /* CCI_VERBS_H */
/* end of header */

#if (defined(CCI_IMPLEMENTATION) || defined(CCI_VERBS_IMPLEMENTATION)) && !defined(CCI_VERBS_IMPLEMENTED)
#define CCI_VERBS_IMPLEMENTED

/* ==================================================================================================================
 * >>verbs-system
 *
 * Without the header of libibverbs, or on a system other than Linux, all that is left is a transport that says so.
 * ================================================================================================================== */

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#if !defined(__linux__)
#define CCI__VERBS_WHY_NOT "this system has no libibverbs"
#elif defined(CCI_NO_VERBS_H)
#define CCI__VERBS_WHY_NOT "no development header: <infiniband/verbs.h> was missing when this was compiled"
#elif !defined(__has_include)
#define CCI__VERBS_WHY_NOT "no development header: this compiler can't look for <infiniband/verbs.h>"
#elif !__has_include(<infiniband/verbs.h>)
#define CCI__VERBS_WHY_NOT "no development header: <infiniband/verbs.h> was missing when this was compiled"
#elif defined(CCI_NO_DLOPEN) && !defined(CCI_VERBS_LINK)
#define CCI__VERBS_WHY_NOT "compiled with CCI_NO_DLOPEN and without CCI_VERBS_LINK"
#endif

#ifdef CCI__VERBS_WHY_NOT

static int cci__verbs_discover(const cci_transport_t *self, void *list, int (*add)(void *, const cci_device_desc_t *),
                               char *why, size_t why_size) {
    (void)self;
    (void)list;
    (void)add;
    snprintf(why, why_size, "%s", CCI__VERBS_WHY_NOT);
    return CCI_ENODEV;
}

static int cci__verbs_configure(const cci_transport_t *self, const char *name, const char *const *keys,
                                cci_device_desc_t *desc, int *bad_key, char *why, size_t why_size) {
    (void)self;
    (void)keys;
    (void)bad_key;
    (void)why;
    (void)why_size;
    memset(desc, 0, sizeof *desc); /* one file may serve several programs: a device that never comes up */
    memset(desc->pci, 0xff, sizeof desc->pci);
    desc->name = name;
    desc->info = CCI__VERBS_WHY_NOT;
    desc->max_send_size = 256;
    desc->priority = 50;
    return CCI_SUCCESS;
}

static int cci__verbs_create(cci_device_t *device, const char *service, int flags, cci_endpoint_base_t **endpoint,
                             cci_os_handle_t *fd) {
    (void)device;
    (void)service;
    (void)flags;
    (void)endpoint;
    (void)fd;
    return CCI_ENODEV;
}

#ifdef CCI_STATIC
static
#endif
    const cci_transport_t cci_verbs_transport = {
        CCI_TRANSPORT_VERSION, "verbs", NULL, NULL, cci__verbs_discover, cci__verbs_configure, NULL, NULL,
        cci__verbs_create,
};

#else /* all that is needed is there */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <sys/types.h>

#include <sys/socket.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#ifndef CCI_VERBS_LINK
#include <dlfcn.h>
#endif

#include <infiniband/verbs.h>

/* ==================================================================================================================
 * >>verbs-library
 *
 * Only what libibverbs exports is named here. What its header does itself (ibv_post_send, ibv_poll_cq and others that
 * call the driver through the context) is used as it is.
 * ================================================================================================================== */

#ifndef CCI_VERBS_LIBRARY
#define CCI_VERBS_LIBRARY "libibverbs.so.1"
#endif

/* X(type, name without "ibv_", arguments). ibv_query_port's last argument is a struct ibv_port_attr whose newest fields
 * the exported function leaves alone. */
#define CCI__VERBS_FUNCTIONS(X)                                                                                        \
    X(struct ibv_device **, get_device_list, (int *count))                                                             \
    X(void, free_device_list, (struct ibv_device * *list))                                                             \
    X(const char *, get_device_name, (struct ibv_device * device))                                                     \
    X(struct ibv_context *, open_device, (struct ibv_device * device))                                                 \
    X(int, close_device, (struct ibv_context * context))                                                               \
    X(int, query_device, (struct ibv_context * context, struct ibv_device_attr * attributes))                          \
    X(int, query_port, (struct ibv_context * context, uint8_t port, void *attributes))                                 \
    X(int, query_gid, (struct ibv_context * context, uint8_t port, int index, union ibv_gid *gid))                     \
    X(int, query_pkey, (struct ibv_context * context, uint8_t port, int index, uint16_t *pkey))                        \
    X(int, get_async_event, (struct ibv_context * context, struct ibv_async_event * event))                            \
    X(void, ack_async_event, (struct ibv_async_event * event))                                                         \
    X(const char *, event_type_str, (enum ibv_event_type event))                                                       \
    X(const char *, wc_status_str, (enum ibv_wc_status status))                                                        \
    X(struct ibv_pd *, alloc_pd, (struct ibv_context * context))                                                       \
    X(int, dealloc_pd, (struct ibv_pd * pd))                                                                           \
    X(struct ibv_mr *, reg_mr, (struct ibv_pd * pd, void *start, size_t length, int access))                           \
    X(int, dereg_mr, (struct ibv_mr * mr))                                                                             \
    X(struct ibv_comp_channel *, create_comp_channel, (struct ibv_context * context))                                  \
    X(int, destroy_comp_channel, (struct ibv_comp_channel * channel))                                                  \
    X(struct ibv_cq *, create_cq,                                                                                      \
      (struct ibv_context * context, int depth, void *user, struct ibv_comp_channel *channel, int vector))             \
    X(int, destroy_cq, (struct ibv_cq * cq))                                                                           \
    X(int, get_cq_event, (struct ibv_comp_channel * channel, struct ibv_cq * *cq, void **user))                        \
    X(void, ack_cq_events, (struct ibv_cq * cq, unsigned int count))                                                   \
    X(struct ibv_srq *, create_srq, (struct ibv_pd * pd, struct ibv_srq_init_attr * attributes))                       \
    X(int, modify_srq, (struct ibv_srq * srq, struct ibv_srq_attr * attributes, int mask))                             \
    X(int, destroy_srq, (struct ibv_srq * srq))                                                                        \
    X(struct ibv_qp *, create_qp, (struct ibv_pd * pd, struct ibv_qp_init_attr * attributes))                          \
    X(int, modify_qp, (struct ibv_qp * qp, struct ibv_qp_attr * attributes, int mask))                                 \
    X(int, query_qp,                                                                                                   \
      (struct ibv_qp * qp, struct ibv_qp_attr * attributes, int mask, struct ibv_qp_init_attr *initial))               \
    X(int, destroy_qp, (struct ibv_qp * qp))                                                                           \
    X(struct ibv_ah *, create_ah, (struct ibv_pd * pd, struct ibv_ah_attr * attributes))                               \
    X(int, destroy_ah, (struct ibv_ah * ah))                                                                           \
    X(int, attach_mcast, (struct ibv_qp * qp, const union ibv_gid *gid, uint16_t lid))                                 \
    X(int, detach_mcast, (struct ibv_qp * qp, const union ibv_gid *gid, uint16_t lid))

typedef struct cci__verbs_functions {
#define CCI__VERBS_POINTER(type, name, arguments) type(*name) arguments;
    CCI__VERBS_FUNCTIONS(CCI__VERBS_POINTER)
#undef CCI__VERBS_POINTER
} cci__verbs_functions;

/* Filled once, under the core's lock, and never taken back: drivers stay in the process as long as it lives. */
static cci__verbs_functions cci__ibv;
static int cci__ibv_is_loaded;

#ifdef CCI_VERBS_LINK

static int cci__verbs_load(char *why, size_t why_size) {
    (void)why;
    (void)why_size;
#define CCI__VERBS_TAKE(type, name, arguments)                                                                         \
    {                                                                                                                  \
        void (*function)(void) = (void (*)(void))ibv_##name;                                                           \
        memcpy(&cci__ibv.name, &function, sizeof function);                                                            \
    }
    CCI__VERBS_FUNCTIONS(CCI__VERBS_TAKE)
#undef CCI__VERBS_TAKE
    cci__ibv_is_loaded = 1;
    return 1;
}

#else

typedef struct cci__verbs_symbol {
    const char *name;
    size_t offset; /* of a pointer in cci__ibv */
} cci__verbs_symbol;

static const cci__verbs_symbol cci__verbs_symbols[] = {
#define CCI__VERBS_SYMBOL(type, name, arguments) {"ibv_" #name, offsetof(cci__verbs_functions, name)},
    CCI__VERBS_FUNCTIONS(CCI__VERBS_SYMBOL)
#undef CCI__VERBS_SYMBOL
};

/* Opens the library. Returns 0 with the reason in `why`. */
static int cci__verbs_load(char *why, size_t why_size) {
    const char *reason;
    size_t i;
    void *library;
    if (cci__ibv_is_loaded) {
        return 1;
    }
    library = dlopen(CCI_VERBS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        reason = dlerror();
        if (!reason || strstr(reason, "No such file") || strstr(reason, "not found")) {
            snprintf(why, why_size, "%s not found", CCI_VERBS_LIBRARY);
        } else {
            snprintf(why, why_size, "%s can't be used: %.120s", CCI_VERBS_LIBRARY, reason);
        }
        return 0;
    }
    for (i = 0; i < sizeof cci__verbs_symbols / sizeof cci__verbs_symbols[0]; i++) {
        void *address = dlsym(library, cci__verbs_symbols[i].name);
        if (!address) {
            snprintf(why, why_size, "%s has no %s", CCI_VERBS_LIBRARY, cci__verbs_symbols[i].name);
            dlclose(library);
            return 0;
        }
        memcpy((char *)&cci__ibv + cci__verbs_symbols[i].offset, &address, sizeof address);
    }
    cci__ibv_is_loaded = 1;
    return 1;
}

#endif

/* ==================================================================================================================
 * >>verbs-state
 * ================================================================================================================== */

#define CCI__VERBS_NAME 64          /* bytes of a device's name, with the final 0; as in libibverbs */
#define CCI__VERBS_QKEY 0x00434349u /* default */
#define CCI__VERBS_RECV_DEPTH 1024u
#define CCI__VERBS_SEND_DEPTH 256u
#define CCI__VERBS_GID_MAX 1024 /* entries of a port's address table that are looked at */

enum { CCI__VERBS_RC, CCI__VERBS_UD };

/* A device, as `discover` or `configure` made it: which port is meant and what the keys said. Lives in
 * cci_device_desc_t.data. */
typedef struct cci__verbs_device {
    char name[CCI__VERBS_NAME]; /* key `device`, or ""            */
    char congestion[24];        /* or ""                          */
    uint32_t port;              /* 0: the first active one        */
    uint32_t gid_index;         /* UINT32_MAX: chosen             */
    uint32_t service;           /* UDP port; 0: any               */
    uint32_t pkey;              /* 0: the table's first           */
    uint32_t qkey;
    uint32_t mtu; /* 0: the port's                  */
    uint32_t recv_depth, send_depth;
    uint32_t send_buf_count, recv_buf_count;
    uint32_t max_send_size; /* 0: what a datagram takes       */
    uint32_t send_timeout_us;
    uint8_t traffic_class, service_level, hop_limit;
    uint8_t mode;
    uint8_t progress_thread, crc;
} cci__verbs_device;

typedef char cci__verbs_device_fits[sizeof(cci__verbs_device) <= sizeof(((cci_device_desc_t *)0)->data) ? 1 : -1];

/* Kinds of addresses, the better the higher. */
enum { CCI__GID_NONE, CCI__GID_V1, CCI__GID_IB, CCI__GID_V2_LINK_LOCAL, CCI__GID_V2_IPV6, CCI__GID_V2_IPV4 };

/* What the system tells about one port. */
typedef struct cci__verbs_port {
    char device[CCI__VERBS_NAME];
    char interface_name[16]; /* the network interface with the same address, "" if there is none */
    uint8_t number, port_count, is_active, is_ethernet;
    uint16_t lid;
    uint32_t mtu; /* bytes */
    uint64_t rate;
    uint32_t pci[4];
    uint32_t gid_index;
    int gid_kind;
    uint8_t gid[16];
} cci__verbs_port;

/* ==================================================================================================================
 * >>verbs-text
 * ================================================================================================================== */

/* Logs "verbs mlx5_0: what: the system's reason". */
static void cci__verbs_log(int level, const char *device, const char *what, int error) {
    char text[400];
    snprintf(text, sizeof text, "verbs %s: %s%s%s", device[0] ? device : "-", what, error ? ": " : "",
             error ? strerror(error) : "");
    cci_log(level, text);
}

/* A whole number, decimal or with 0x in front. Returns 0 when the text is something else. */
static int cci__verbs_number(const char *text, uint64_t *number) {
    uint64_t n = 0;
    unsigned base = 10, digits = 0;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text += 2;
    }
    for (;; text++, digits++) {
        unsigned digit;
        if (*text >= '0' && *text <= '9') {
            digit = (unsigned)(*text - '0');
        } else if (base == 16 && ((*text >= 'a' && *text <= 'f') || (*text >= 'A' && *text <= 'F'))) {
            digit = (unsigned)((*text | 32) - 'a') + 10;
        } else {
            break;
        }
        if (digits == 12) {
            return 0;
        }
        n = n * base + digit;
    }
    *number = n;
    return digits > 0 && *text == 0;
}

/* The first line of a file of the kernel's; 0 when it can't be read. */
static int cci__verbs_read_file(const char *path, char *text, size_t size) {
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    text[0] = 0;
    if (fd < 0) {
        return 0;
    }
    n = read(fd, text, size - 1);
    close(fd);
    if (n <= 0) {
        return 0;
    }
    text[n] = 0;
    text[strcspn(text, "\n")] = 0;
    return 1;
}

/* An attribute of a port: "ports/1/gid_attrs/types/3". */
static int cci__verbs_read_attribute(const char *device, unsigned port, const char *what, unsigned index, char *text,
                                     size_t size) {
    char path[200];
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%u/%s/%u", device, port, what, index);
    return cci__verbs_read_file(path, text, size);
}

/* ==================================================================================================================
 * >>verbs-ports
 * ================================================================================================================== */

static int cci__verbs_is_mapped_v4(const uint8_t *gid) {
    static const uint8_t front[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return memcmp(gid, front, sizeof front) == 0;
}

static int cci__verbs_is_zero(const uint8_t *bytes, size_t count) {
    while (count > 0 && *bytes == 0) {
        bytes++;
        count--;
    }
    return count == 0;
}

/* What kind of address stands in the table at `index`, and the address itself. */
static int cci__verbs_gid_at(struct ibv_context *context, const cci__verbs_port *port, uint32_t index, uint8_t *bytes) {
    char type[32];
    union ibv_gid gid;
    if (cci__ibv.query_gid(context, port->number, (int)index, &gid) != 0 || cci__verbs_is_zero(gid.raw, 16)) {
        return CCI__GID_NONE;
    }
    memcpy(bytes, gid.raw, 16);
    if (!port->is_ethernet) {
        return CCI__GID_IB;
    }
    /* an older kernel doesn't tell the type: then an IPv4 address is version 2 for sure */
    if (cci__verbs_read_attribute(port->device, port->number, "gid_attrs/types", index, type, sizeof type)
            ? strcmp(type, "RoCE v2") != 0
            : !cci__verbs_is_mapped_v4(bytes)) {
        return CCI__GID_V1;
    }
    return cci__verbs_is_mapped_v4(bytes)                    ? CCI__GID_V2_IPV4
           : bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80 ? CCI__GID_V2_LINK_LOCAL
                                                             : CCI__GID_V2_IPV6;
}

/* The best address of the port, or the one that the device names; the first of several equals. */
static void cci__verbs_choose_gid(struct ibv_context *context, const cci__verbs_device *d, int count,
                                  cci__verbs_port *port) {
    uint32_t i, end = (uint32_t)(count < CCI__VERBS_GID_MAX ? count : CCI__VERBS_GID_MAX);
    port->gid_kind = CCI__GID_NONE;
    for (i = d->gid_index == UINT32_MAX ? 0 : d->gid_index; i < end; i++) {
        uint8_t gid[16];
        int kind = cci__verbs_gid_at(context, port, i, gid);
        if (kind > port->gid_kind) {
            port->gid_kind = kind;
            port->gid_index = i;
            memcpy(port->gid, gid, sizeof gid);
        }
        if (d->gid_index != UINT32_MAX || kind == CCI__GID_V2_IPV4 || kind == CCI__GID_IB) {
            break;
        }
    }
    cci__verbs_read_attribute(port->device, port->number, "gid_attrs/ndevs", port->gid_index, port->interface_name,
                              sizeof port->interface_name);
}

/* Bits per second. */
static uint64_t cci__verbs_rate(unsigned width, unsigned speed) {
    unsigned lanes = width == 2 ? 4 : width == 4 ? 8 : width == 8 ? 12 : width == 16 ? 2 : 1;
    unsigned tenths = speed == 2     ? 50
                      : speed == 4   ? 100
                      : speed == 8   ? 100
                      : speed == 16  ? 140
                      : speed == 32  ? 250
                      : speed == 64  ? 500
                      : speed == 128 ? 1000
                                     : 25;
    return (uint64_t)lanes * tenths * 100000000u;
}

/* Where a device sits on the PCI bus: its directory is a link to something like .../0000:03:00.1. */
static void cci__verbs_pci(const char *device, uint32_t pci[4]) {
    char path[128], target[400];
    unsigned domain, bus, slot, function;
    const char *name;
    ssize_t n;
    memset(pci, 0xff, 4 * sizeof *pci);
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/device", device);
    n = readlink(path, target, sizeof target - 1);
    if (n <= 0) {
        return;
    }
    target[n] = 0;
    name = strrchr(target, '/');
    if (name && sscanf(name + 1, "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4) {
        pci[0] = domain;
        pci[1] = bus;
        pci[2] = slot;
        pci[3] = function;
    }
}

/* Describes one port of an open device; 0 when there is no such port. */
static int cci__verbs_describe(struct ibv_context *context, const char *name, unsigned number,
                               const cci__verbs_device *d, cci__verbs_port *port) {
    struct ibv_device_attr device;
    struct ibv_port_attr a;
    memset(port, 0, sizeof *port);
    memset(&device, 0, sizeof device);
    memset(&a, 0, sizeof a);
    if (cci__ibv.query_device(context, &device) != 0 || number < 1 || number > device.phys_port_cnt ||
        cci__ibv.query_port(context, (uint8_t)number, &a) != 0) {
        return 0;
    }
    snprintf(port->device, sizeof port->device, "%s", name);
    port->number = (uint8_t)number;
    port->port_count = device.phys_port_cnt;
    port->is_active = a.state == IBV_PORT_ACTIVE;
    port->is_ethernet = a.link_layer == IBV_LINK_LAYER_ETHERNET;
    port->lid = a.lid;
    port->mtu = 128u << (a.active_mtu >= 1 && a.active_mtu <= 5 ? (unsigned)a.active_mtu : 1);
    port->rate = cci__verbs_rate(a.active_width, a.active_speed);
    cci__verbs_pci(name, port->pci);
    cci__verbs_choose_gid(context, d, a.gid_tbl_len, port);
    if (port->gid_kind == CCI__GID_NONE) {
        port->is_active = 0;
    }
    return 1;
}

/* Calls visit() for each port that the device may mean, until it returns something other than 0, which it passes on. -1
 * with errno: the devices can't be listed. */
static int cci__verbs_each_port(const cci__verbs_device *d, void *user,
                                int (*visit)(void *user, const cci__verbs_port *port)) {
    int i, count = 0, result = 0;
    struct ibv_device **list = cci__ibv.get_device_list(&count);
    if (!list) {
        return -1;
    }
    for (i = 0; i < count && result == 0; i++) {
        const char *name = cci__ibv.get_device_name(list[i]);
        struct ibv_context *context;
        unsigned number;
        cci__verbs_port port;
        if (d->name[0] && strcmp(d->name, name) != 0) {
            continue;
        }
        context = cci__ibv.open_device(list[i]);
        if (!context) {
            cci__verbs_log(CCI_LOG_WARN, name, "can't be opened", errno);
            continue;
        }
        for (number = d->port ? d->port : 1; result == 0; number++) {
            if (!cci__verbs_describe(context, name, number, d, &port)) {
                break;
            }
            result = visit(user, &port);
            if (d->port) {
                break;
            }
        }
        cci__ibv.close_device(context);
    }
    cci__ibv.free_device_list(list);
    return result;
}

/* Search for the port that a device means. */
typedef struct cci__verbs_search {
    cci__verbs_port best;
    int found;
} cci__verbs_search;

static int cci__verbs_search_visit(void *user, const cci__verbs_port *port) {
    cci__verbs_search *s = (cci__verbs_search *)user;
    if (!s->found || port->is_active > s->best.is_active ||
        (port->is_active == s->best.is_active && port->rate > s->best.rate)) {
        s->best = *port;
        s->found = 1;
    }
    return 0;
}

static int cci__verbs_find(const cci__verbs_device *d, cci__verbs_search *s) {
    char why[16];
    memset(s, 0, sizeof *s);
    memset(s->best.pci, 0xff, sizeof s->best.pci);
    s->best.mtu = 1024;
    if (cci__verbs_load(why, sizeof why)) {
        cci__verbs_each_port(d, s, cci__verbs_search_visit);
    }
    return s->found;
}

/* ==================================================================================================================
 * >>verbs-devices
 * ================================================================================================================== */

static void cci__verbs_defaults(cci__verbs_device *d) {
    memset(d, 0, sizeof *d);
    d->gid_index = UINT32_MAX;
    d->qkey = CCI__VERBS_QKEY;
    d->recv_depth = CCI__VERBS_RECV_DEPTH;
    d->send_depth = CCI__VERBS_SEND_DEPTH;
    d->hop_limit = 64;
    d->mode = CCI__VERBS_UD;
}

/* Bytes of the largest datagram. */
static uint32_t cci__verbs_mtu(const cci__verbs_device *d, const cci__verbs_port *port) {
    return d->mtu && d->mtu < port->mtu ? d->mtu : port->mtu;
}

/* The text for people; it and the description's other pointers are valid until the next call. */
static char cci__verbs_info[256], cci__verbs_name[CCI__VERBS_NAME + 8];

static void cci__verbs_make_info(const cci__verbs_device *d, const cci__verbs_port *port) {
    static const char *const kinds[] = {"no address", "RoCE v1", "InfiniBand", "RoCE v2", "RoCE v2", "RoCE v2"};
    char address[INET6_ADDRSTRLEN] = "?";
    int is_v4 = cci__verbs_is_mapped_v4(port->gid);
    inet_ntop(is_v4 ? AF_INET : AF_INET6, port->gid + (is_v4 ? 12 : 0), address, sizeof address);
    snprintf(cci__verbs_info, sizeof cci__verbs_info, "%s port %u: %s, %s%s%s, MTU %lu, %lu Mbit/s, mode %s%s",
             port->device, (unsigned)port->number, kinds[port->gid_kind], address, port->interface_name[0] ? " on " : "",
             port->interface_name, (unsigned long)cci__verbs_mtu(d, port), (unsigned long)(port->rate / 1000000u),
             d->mode == CCI__VERBS_UD ? "ud" : "rc", port->is_active ? "" : ", down");
}

static void cci__verbs_make_desc(cci_device_desc_t *desc, const cci__verbs_device *d, const cci__verbs_port *port) {
    desc->up = port->is_active;
    desc->rate = port->rate;
    memcpy(desc->pci, port->pci, sizeof desc->pci);
    /* what the datagram endpoint leaves of a datagram: 24 bytes are the packet's header, 8 the message's */
    desc->max_send_size = d->max_send_size ? d->max_send_size : cci__verbs_mtu(d, port) - 32;
    memcpy(desc->data, d, sizeof *d);
}

typedef struct cci__verbs_proposal {
    void *list;
    int (*add)(void *list, const cci_device_desc_t *desc);
    int count;
} cci__verbs_proposal;

static int cci__verbs_propose(void *user, const cci__verbs_port *port) {
    cci__verbs_proposal *p = (cci__verbs_proposal *)user;
    cci__verbs_device d;
    cci_device_desc_t desc;
    cci__verbs_defaults(&d);
    memcpy(d.name, port->device, sizeof d.name);
    d.port = port->number;
    memset(&desc, 0, sizeof desc);
    cci__verbs_make_desc(&desc, &d, port);
    cci__verbs_make_info(&d, port);
    if (port->port_count > 1) {
        snprintf(cci__verbs_name, sizeof cci__verbs_name, "%s-%u", port->device, (unsigned)port->number);
    } else {
        snprintf(cci__verbs_name, sizeof cci__verbs_name, "%s", port->device);
    }
    desc.name = cci__verbs_name;
    desc.info = cci__verbs_info;
    desc.priority = !port->is_active              ? 10
                    : port->rate >= 100000000000u ? 95
                    : port->rate >= 10000000000u  ? 90
                                                  : 85;
    p->count++;
    return p->add(p->list, &desc);
}

static int cci__verbs_discover(const cci_transport_t *self, void *list, int (*add)(void *, const cci_device_desc_t *),
                               char *why, size_t why_size) {
    cci__verbs_proposal p;
    cci__verbs_device any;
    int result;
    (void)self;
    if (!cci__verbs_load(why, why_size)) {
        return CCI_ENODEV;
    }
    cci__verbs_defaults(&any);
    p.list = list;
    p.add = add;
    p.count = 0;
    errno = 0;
    result = cci__verbs_each_port(&any, &p, cci__verbs_propose);
    if (result < 0) {
        snprintf(why, why_size, "the devices can't be listed: %s",
                 errno == ENOSYS ? "the kernel has no RDMA (is ib_uverbs loaded?)" : strerror(errno));
        return CCI_ENODEV;
    }
    if (p.count == 0) {
        snprintf(why, why_size, "there is no RDMA device that can be opened");
        return CCI_ENODEV;
    }
    return result;
}

/* The keys with a number. */
typedef struct cci__verbs_key {
    const char *name;
    uint64_t smallest, largest;
    size_t offset; /* in cci__verbs_device */
    size_t size;   /* of the number there: 1 or 4 bytes */
} cci__verbs_key;

#define CCI__VERBS_KEY(field) offsetof(cci__verbs_device, field), sizeof(((cci__verbs_device *)0)->field)
static const cci__verbs_key cci__verbs_keys[] = {
    {"port", 1, 254, CCI__VERBS_KEY(port)},
    {"gid_index", 0, CCI__VERBS_GID_MAX - 1, CCI__VERBS_KEY(gid_index)},
    {"service", 1, 65535, CCI__VERBS_KEY(service)},
    {"pkey", 1, 65535, CCI__VERBS_KEY(pkey)},
    {"qkey", 1, 0x7fffffff, CCI__VERBS_KEY(qkey)},
    {"traffic_class", 0, 255, CCI__VERBS_KEY(traffic_class)},
    {"service_level", 0, 15, CCI__VERBS_KEY(service_level)},
    {"hop_limit", 1, 255, CCI__VERBS_KEY(hop_limit)},
    {"recv_depth", 16, 32768, CCI__VERBS_KEY(recv_depth)},
    {"send_depth", 16, 32768, CCI__VERBS_KEY(send_depth)},
    {"max_send_size", 256, 65472, CCI__VERBS_KEY(max_send_size)},
    {"send_buf_count", 1, 65536, CCI__VERBS_KEY(send_buf_count)},
    {"recv_buf_count", 1, 65536, CCI__VERBS_KEY(recv_buf_count)},
    {"send_timeout", 1, 4294967295u, CCI__VERBS_KEY(send_timeout_us)},
    {"crc", 0, 1, CCI__VERBS_KEY(crc)},
};

/* One of two words; 0 when it is neither. */
static int cci__verbs_parse_choice(const char *text, const char *zero, const char *one, uint8_t *choice) {
    *choice = strcmp(text, one) == 0;
    return *choice || strcmp(text, zero) == 0;
}

static int cci__verbs_parse_mtu(const char *text, uint32_t *mtu) {
    uint64_t n;
    if (!cci__verbs_number(text, &n) || n < 256 || n > 4096 || (n & (n - 1)) != 0) {
        return 0;
    }
    *mtu = (uint32_t)n;
    return 1;
}

/* Takes one key. Returns NULL, or what its value should have been; "" when there is no such key. */
static const char *cci__verbs_take_key(const char *key, const char *value, cci__verbs_device *d, char *range,
                                       size_t size) {
    size_t i, length = strlen(value);
    for (i = 0; i < sizeof cci__verbs_keys / sizeof cci__verbs_keys[0]; i++) {
        const cci__verbs_key *k = &cci__verbs_keys[i];
        uint64_t n;
        uint32_t word;
        uint8_t byte;
        if (strcmp(key, k->name) != 0) {
            continue;
        }
        if (cci__verbs_number(value, &n) && n >= k->smallest && n <= k->largest) {
            word = (uint32_t)n;
            byte = (uint8_t)n;
            memcpy((char *)d + k->offset, k->size == 1 ? (const void *)&byte : (const void *)&word, k->size);
            return NULL;
        }
        snprintf(range, size, "a number from %lu to %lu", (unsigned long)k->smallest, (unsigned long)k->largest);
        return range;
    }
    if (strcmp(key, "device") == 0) {
        memcpy(d->name, value, length < sizeof d->name ? length + 1 : 0);
        return length > 0 && length < sizeof d->name ? NULL : "the name of a device (1 to 63 characters)";
    }
    if (strcmp(key, "mtu") == 0) {
        return cci__verbs_parse_mtu(value, &d->mtu) ? NULL : "256, 512, 1024, 2048 or 4096";
    }
    if (strcmp(key, "mode") == 0) {
        return cci__verbs_parse_choice(value, "rc", "ud", &d->mode) ? NULL : "rc or ud";
    }
    if (strcmp(key, "progress") == 0) {
        return cci__verbs_parse_choice(value, "poll", "thread", &d->progress_thread) ? NULL : "thread or poll";
    }
    if (strcmp(key, "congestion") == 0) {
        memcpy(d->congestion, value, length < sizeof d->congestion ? length + 1 : 0);
        return length > 0 && length < sizeof d->congestion && cci_congestion_known(value)
                   ? NULL
                   : "a congestion control that cci.h has";
    }
    if (strcmp(key, "transport") == 0 || strcmp(key, "priority") == 0 || strcmp(key, "default") == 0) {
        return NULL; /* the core's own */
    }
    return "";
}

static int cci__verbs_take_keys(const char *const *keys, cci__verbs_device *d, int *bad_key, char *why,
                                size_t why_size) {
    int i;
    for (i = 0; keys && keys[i]; i++) {
        char key[32], range[80];
        const char *equals = strchr(keys[i], '=');
        const char *value = equals ? equals + 1 : "";
        size_t length = equals ? (size_t)(equals - keys[i]) : strlen(keys[i]);
        const char *wanted;
        while (length && (keys[i][length - 1] == ' ' || keys[i][length - 1] == '\t')) {
            length--;
        }
        value += strspn(value, " \t");
        snprintf(key, sizeof key, "%.*s", (int)(length < 31 ? length : 31), keys[i]);
        wanted = cci__verbs_take_key(key, value, d, range, sizeof range);
        if (wanted) {
            *bad_key = i;
            if (*wanted) {
                snprintf(why, why_size, "%s: \"%s\" is not %s", key, value, wanted);
            } else {
                snprintf(why, why_size, "%s: the verbs transport has no such key", key);
            }
            return CCI_EINVAL;
        }
    }
    return CCI_SUCCESS;
}

static int cci__verbs_configure(const cci_transport_t *self, const char *name, const char *const *keys,
                                cci_device_desc_t *desc, int *bad_key, char *why, size_t why_size) {
    cci__verbs_device d;
    cci__verbs_search s;
    int status;
    (void)self;
    cci__verbs_defaults(&d);
    *bad_key = -1;
    status = cci__verbs_take_keys(keys, &d, bad_key, why, why_size);
    if (status != CCI_SUCCESS) {
        return status;
    }
    if (cci__verbs_find(&d, &s)) {
        cci__verbs_make_info(&d, &s.best);
    } else if (cci__verbs_load(cci__verbs_info, sizeof cci__verbs_info)) {
        snprintf(cci__verbs_info, sizeof cci__verbs_info, "there is no such RDMA device or port now");
    }
    memset(desc, 0, sizeof *desc);
    cci__verbs_make_desc(desc, &d, &s.best);
    desc->name = name;
    desc->info = cci__verbs_info;
    desc->priority = 50;
    return CCI_SUCCESS;
}

static void cci__verbs_refresh(const cci_transport_t *self, cci_device_desc_t *desc) {
    cci__verbs_device d;
    cci__verbs_search s;
    (void)self;
    memcpy(&d, desc->data, sizeof d);
    if (cci__verbs_find(&d, &s)) {
        cci__verbs_make_desc(desc, &d, &s.best);
    } else {
        desc->up = 0;
    }
}

/* ==================================================================================================================
 * >>verbs-table
 *
 * A native transport (mode = rc) that leaves devices with mode = ud to the datagram endpoint over the link.
 * ================================================================================================================== */

static int cci__verbs_create(cci_device_t *device, const char *service, int flags, cci_endpoint_base_t **endpoint,
                             cci_os_handle_t *fd) {
    (void)device;
    (void)service;
    (void)flags;
    (void)endpoint;
    (void)fd;
    return CCI_ENODEV; /* nothing yet */
}

#ifdef CCI_STATIC
static
#endif
    const cci_transport_t cci_verbs_transport = {
        CCI_TRANSPORT_VERSION, "verbs", NULL, NULL, cci__verbs_discover, cci__verbs_configure, cci__verbs_refresh,
        NULL, cci__verbs_create,
};

#endif /* all that is needed is there */
#endif /* CCI_VERBS_IMPLEMENTATION */

/* ==================================================================================================================
 * >>verbs-license
 *
 * This software is available under either of two licenses, as you choose: the MIT license, or the Unlicense (public
 * domain). Their full text is in the file LICENSE.
 * ================================================================================================================== */
