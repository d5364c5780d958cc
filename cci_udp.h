/* cci_udp.h - UDP sockets as a link of CCI (cci.h).                                                             v0.1.0
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Moves CCI's datagrams over UDP, IPv4 and IPv6. On Linux it hands the kernel many datagrams at once (UDP_SEGMENT,
 * UDP_GRO, sendmmsg, recvmmsg); elsewhere it needs nothing but POSIX sockets and poll(), or Winsock.
 *
 * Do this in ONE C or C++ file, transports first, core last:
 *
 *     #define CCI_IMPLEMENTATION
 *     #include "cci_udp.h"
 *     #include "cci.h"
 *
 * CONTENTS (search for the tag)
 *     >>udp-manual      devices, configuration keys, addresses, what happens underneath
 *     >>udp-config      every macro with its default
 *     >>udp-api         what this header declares
 *     >>udp-system      what the implementation needs of the system
 *     >>udp-state       the structures
 *     >>udp-sockets     what sockets of POSIX and of Windows have in common
 *     >>udp-text        log, numbers, addresses as text
 *     >>udp-interfaces  what the system tells about its network interfaces
 *     >>udp-devices     proposed and configured devices
 *     >>udp-linux       waiting with epoll, and news of the interface through netlink
 *     >>udp-posix       waiting with poll, and a helper thread behind the OS handle
 *     >>udp-send        outgoing datagrams
 *     >>udp-share       several endpoints with one address
 *     >>udp-receive     incoming datagrams
 *     >>udp-groups      multicast
 *     >>udp-names       addresses from and to text
 *     >>udp-open        opening and closing, the table
 *     >>udp-license
 */

/* Strict ISO modes hide POSIX unless it is asked for before the first system header. */
#if defined(CCI_IMPLEMENTATION) || defined(CCI_UDP_IMPLEMENTATION)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#endif

#ifndef CCI_UDP_H
#define CCI_UDP_H

#ifdef CCI_CORE_IMPLEMENTED
#error "include cci_udp.h before cci.h in the file that defines CCI_IMPLEMENTATION"
#endif

#define CCI_TRANSPORT_INCLUDING
#include "cci.h"
#undef CCI_TRANSPORT_INCLUDING

/* ==================================================================================================================
 * >>udp-manual
 *
 * DEVICES. Without configuration every network interface that has an IP address is a device named after it: real ones
 * first, the faster the better, then virtual ones (bridges, tunnels), last the loopback. An interface that has an
 * address but no carrier is proposed as not up.
 *
 * KEYS of a section with `transport = udp`; all are optional. An unknown key or a bad value is an error.
 *
 *     key             unit, range                 default     meaning
 *     ip              IPv4 or IPv6 address        -           the interface that has this address
 *     mac             00:11:22:33:44:55           -           the interface with this hardware address; together with
 *                                                             `ip` or `interface` both must name the same one
 *     interface       name, or up to 4            -           the interface itself, or several: see SEVERAL INTERFACES;
 *                     as in eth0, eth1                        with none of these three keys, the best
 *     port            1 to 65535                  any free    local port of endpoints that name no service
 *     mtu             bytes, 576 to 65535         interface's largest IP packet, headers included; see PATH MTU
 *     memory          bytes, 64K to 4294967295,   1G          what connections with traffic may take at most, receive
 *                     K M G work                              buffers excepted; see MEMORY in cci.h
 *     send_buf_count  messages, 1 to 65536        cci.h's     messages that can be pending on each connection
 *     max_send_size   bytes, 256 to 65472     one datagram    largest message; longer than a datagram: in fragments
 *     recv_buf_count  messages, 1 to 65536        cci.h's     messages that can be received without dropping
 *     send_timeout    microseconds, 1 to 2^32-1   30000000    send timeout of new endpoints
 *     rcvbuf, sndbuf  bytes, 4K to 1G, K M G work 4M, 1M      the kernel's socket buffers; the kernel may grant less
 *                                                             (sysctl net.core.rmem_max, net.core.wmem_max)
 *     progress        thread or poll              poll        thread: a helper thread works while the program computes
 *     congestion      cubic, discern, newreno     cubic       how what is under way adapts to the path. cubic: shares
 *                     or fixed                                it fairly with TCP, and tolerates up to 2 % of loss that
 *                                                             a trial shows to be chance; discern: for a line of one's
 *                                                             own, tells a full queue from a bad cable or radio, and
 *                                                             slows down only for the first; newreno: slows down for
 *                                                             each loss; fixed: never, for a network of one's own
 *     crc             0 or 1                      0           1: every packet carries a CRC-32C, where the checksum of
 *                                                             UDP is off or not enough; both sides must have it
 *     probe_idle      seconds, 0 to 86400         300         a peer that was silent for so long is asked for a sign of
 *                                                             life; after as long again without one the connection
 *                                                             ends; 0: only when all connections are taken
 *     ttl, hops       hops, 1 to 255              system's    time to live of what is sent, multicast too (default 1)
 *     offload         on or off                   on          off: no segmentation offload, no batched system calls
 *     share           0 or 1                      0           1: endpoints of the device are made with
 *                                                             CCI_ENDPOINT_SHARED
 *     ecn             0 or 1                      0           1: Explicit Congestion Notification, see ECN
 *
 * An `ip`, `mac` or `interface` that does not exist makes a device that is not up; it comes up when it appears.
 *
 * SERVICE. cci_create_endpoint_at() takes a port number, a service of the system, or a name. CCI_EBUSY: it is taken.
 * A client that connects to a port where nobody receives repeats its request until its time-out, since the server may
 * be about to start. If ICMP reports that nobody receives there, the log says "connection refused" once.
 *
 * ONE ADDRESS FOR SEVERAL ENDPOINTS (Linux). A server uses several cores with one endpoint for each thread, or process:
 * all of them are made with the flag CCI_ENDPOINT_SHARED or the key `share`, at the same service, and have the same
 * URI.
 *
 *     cci_create_endpoint_at(device, "4242", CCI_ENDPOINT_SHARED, &endpoint, NULL);    (in each thread)
 *
 * A client's connection belongs to the endpoint that got its request. The random token of the request says which one
 * that is, so that connections spread evenly over all endpoints, also those of one client, and an endpoint that takes
 * the place of another gets its part of the clients that connect again. The endpoints share nothing: a message, a
 * registration, an event of one is no other's. The kernel takes each packet to the endpoint of its connection, also
 * when the peer's address changes. Endpoints may come and go at any time, and processes may be killed: the connections
 * of the others go on. The connections of one that is gone time out, or end sooner when its successor says that it
 * does not know them. A call of cci_connect() makes one CCI_EVENT_CONNECT_REQUEST. While endpoints come or go, 10 ms,
 * it may make one on each of two: the client takes the first answer, and the other's CCI_EVENT_ACCEPT tells a failure.
 *   Limits: 256 endpoints for one port of an interface, of one user and one network namespace. Each of them has to call
 * the library for the kernel's table to follow a change; until then packets that come to the wrong endpoint are handed
 * over, which costs time. sysctl net.unix.max_dgram_qlen is how many batches of these can wait.
 *     Linux before 4.5     (it has no SO_ATTACH_REUSEPORT_CBPF) a hash of both addresses chooses the endpoint of a new
 *                          connection, and more packets are handed over
 *     other systems        CCI_ERR_NOT_IMPLEMENTED
 *     another local user   can occupy numbers of endpoints (CCI_EBUSY when none is left), and then gets what is handed
 *                          over to an endpoint that is gone, as if it listened on the network, and some connects make
 *                          more than one request; it can hand nothing over to your endpoints
 *
 * SEVERAL INTERFACES. `interface = eth0, eth1` gives an endpoint up to four interfaces. There is no load sharing: one
 * path, an interface here and an address of the peer, is in use at a time. The endpoint tells its peers all its
 * addresses. When the path in use has been silent for three probe time-outs, or its interface went away and one
 * time-out has passed, the side that waits for an answer tries the other pairs of interface and address with packets of
 * 40 bytes, 20 ms apart or more, and goes on over the first that answers: no operation fails unless its time-out is
 * over by then, nothing comes twice, and CCI_EVENT_STATUS tells with CCI_STATUS_PATH_CHANGED. It suffices that one side
 * has several interfaces.
 *   The URI names the address of the first interface that is up when the endpoint is created; that is number 0 of
 * CCI_STATUS_PATH_CHANGED, the others follow in the order of the key. An interface that comes later joins then. The
 * smallest MTU of all counts. CCI_EVENT_ENDPOINT_DEVICE_FAILED comes only when the last interface is gone.
 *   Limits: a connection is opened over one path, that of the client's first interface that is up and the address in
 * the URI; multicast uses the first interface alone; the keys `ip`, `mac` and `share` can't stand beside several
 * interfaces, and an endpoint made with CCI_ENDPOINT_SHARED uses the first. The system's routes decide by which
 * interface a packet leaves: the interfaces should be in different networks, or have rules by source address. What a
 * peer behind a NAT tells of its addresses does not help: it has to find the new path itself.
 *
 * ADDRESSES in URIs (udp:// or ip://) are 192.0.2.1:4242, [2001:db8::1]:4242, [fe80::1%eth0]:4242 or name:4242. An
 * endpoint on an interface that has both families talks to both; its own URI names the IPv4 address. Groups are
 * 224.0.0.0/4 and ff00::/8; they are joined on the device's interface, at most 16 per endpoint. Linux carries no IPv6
 * groups over the loopback.
 *
 * PATH MTU. The key `mtu` counts bytes of an IP packet: IP header, UDP header and payload. The payload is 28 bytes less
 * over IPv4 and 48 less over IPv6, rounded down to a multiple of 8: with mtu = 1500 that is 1,472 and 1,448 bytes.
 *     default            the MTU of the interface; on the loopback, payloads of 65,504 bytes
 *     a larger value     has no effect: the MTU of the interface stays the limit
 *     a smaller value    limits all that the endpoint sends, and what its peers send to it; on the loopback too
 *     of two peers       the smaller limit holds in both directions
 * It is a limit, and not the size that is used: the path may carry less, which cci.h finds out for each connection.
 * Datagrams are sent with "don't fragment". A connection begins with payloads of 1,200 bytes (or the limit, if that is
 * smaller), tries the limit, then sizes that paths usually carry, and keeps the largest that arrives. It goes back to
 * 1,200 when larger ones get lost again and again, and tries anew every ten minutes. So `mtu` is needed only to choose
 * the size of a datagram, on which the default of max_send_size depends, to spare paths the search, or where a path
 * carries less than 1,200 bytes: nothing gets through otherwise.
 *
 * ECN, on Linux, with `ecn = 1`. What the congestion control of cci.h governs leaves with the codepoint ECT(0) of RFC
 * 3168 in its IP header (IP_TOS, IPV6_TCLASS), and the codepoints of what arrives are counted (IP_RECVTOS,
 * IPV6_RECVTCLASS), so that a router can mark packets where it would drop them. Both sides need the key. A side without
 * it, an older library, a path that changes codepoints or marks everything are found out, and ECN ends there. Where the
 * kernel refuses one of these options there is none. The other six bits of the field are 0.
 *
 * MEMORY of an endpoint (MEMORY in cci.h has the rest). An endpoint without traffic takes 2 MB of address space and
 * uses less than 1 MB. With traffic it grows:
 *     receive buffers    64 KiB each, up to recv_buf_count, since Linux hands over that much at once of datagrams that
 *                        it has put together (the mtu with offload = off); they are made when they are needed
 *     messages to send   256 bytes each, or the largest datagram (on the loopback 64 KiB), up to send_buf_count for
 *                        each connection and `memory` for all
 * Where memory is scarce lower `memory` and recv_buf_count.
 *
 * CCI_EVENT_STATUS. Besides what cci.h tells of paths: the interface goes down and comes back, loses the endpoint's
 * address and has it again, or its MTU changes, which then changes no connection by itself: see PATH MTU. Linux tells
 * of all that at once; elsewhere the library looks once a second. CCI_STATUS_ROUTE_CHANGED comes on Linux alone, for
 * any route of any table but those that the kernel keeps for its own addresses; of many changes at once one is told.
 *
 * OS HANDLE. On Linux an epoll descriptor over sockets, timer and the news that an interface went away. On other
 * systems a pipe that a helper thread fills; with CCI_NO_THREADS there the main socket itself, which tells of arriving
 * data only: a program that sleeps on it must wake up now and then by itself. On Windows a socket, for WSAPoll(),
 * select() or WSAEventSelect(), which the same thread fills.
 *
 * WINDOWS, from Vista on. Devices have the names of if_indextoname(), as ethernet_32769 or loopback_0; keys `ip` and
 * `mac` are the easier way to name one. A link-local address in a URI names its interface by number:
 * [fe80::1%4]:4242. There is no offload, and no address for several endpoints. What was run: tests under Wine; nothing
 * yet on Windows itself.
 *
 * LIMITS. UDP checksums are 16 bits. An endpoint is bound to the address that its interface has when it is created. On
 * big-endian user-mode emulators that do not translate UDP_SEGMENT, set offload = off.
 * ==================================================================================================================
 * >>udp-config
 *
 * CCI_UDP_IMPLEMENTATION  emits the code of this header; CCI_IMPLEMENTATION implies it.
 * CCI_UDP_PORTABLE        use only POSIX sockets and poll(), also on Linux. Default: on all systems but Linux.
 * CCI_STATIC, CCI_NO_THREADS, CCI_NO_STDIO as in cci.h.
 * ================================================================================================================== */

/* ==================================================================================================================
 * >>udp-api
 * ================================================================================================================== */

#define CCI_HAVE_UDP 1

#ifndef CCI_STATIC
#ifdef __cplusplus
extern "C" {
#endif
/* The transport, for cci_register_transport() or cci_setup(); a program that includes this header needs neither. */
CCI_API const cci_transport_t cci_udp_transport;
#ifdef __cplusplus
}
#endif
#endif

/* The order of inclusion is the order of preference: take the first place that is free in cci.h's table. */
#ifndef CCI_TRANSPORT_1
#define CCI_TRANSPORT_1 &cci_udp_transport
#elif !defined(CCI_TRANSPORT_2)
#define CCI_TRANSPORT_2 &cci_udp_transport
#elif !defined(CCI_TRANSPORT_3)
#define CCI_TRANSPORT_3 &cci_udp_transport
#elif !defined(CCI_TRANSPORT_4)
#define CCI_TRANSPORT_4 &cci_udp_transport
#else
#error "cci.h takes four transports by inclusion; register the others with cci_register_transport()"
#endif

#endif /* CCI_UDP_H */
/* end of header */

#if (defined(CCI_IMPLEMENTATION) || defined(CCI_UDP_IMPLEMENTATION)) && !defined(CCI_UDP_IMPLEMENTED)
#define CCI_UDP_IMPLEMENTED

/* ==================================================================================================================
 * >>udp-system
 *
 * A program may have included system headers before this one, without asking for GNU declarations. So nothing here
 * relies on them: what Linux offers beyond POSIX is called by number and laid out by hand.
 * ================================================================================================================== */

#if !CCI_POSIX && !CCI_WINDOWS
#error "cci_udp.h needs POSIX sockets, or those of Windows"
#elif defined(__GLIBC__) && !defined(__USE_MISC)
#error "a system header was included in strict ISO mode: include cci_udp.h first, or define _DEFAULT_SOURCE"
#else

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <errno.h>

#if CCI_WINDOWS
#include <winsock2.h>
#include <ws2tcpip.h>

#include <iphlpapi.h>
#include <mswsock.h>
#ifdef _MSC_VER
#pragma comment(lib, "ws2_32")
#pragma comment(lib, "iphlpapi")
#endif
#else
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <sys/types.h>

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#endif

#if defined(__linux__) && !defined(CCI_UDP_PORTABLE)
#define CCI__UDP_LINUX 1
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#else
#define CCI__UDP_LINUX 0
#if CCI_WINDOWS
#define CCI__UDP_POLLED(fd) ((SOCKET)(fd))
#else
#define CCI__UDP_POLLED(fd) (fd)
#include <poll.h>
#endif
#if defined(__APPLE__) || defined(__FreeBSD__) || defined(__NetBSD__) || defined(__OpenBSD__) || defined(__DragonFly__)
#include <net/if_dl.h>
#define CCI__UDP_HAVE_IF_DL 1
#endif
#endif

/* Mutexes and threads. */
#define CCI_LAYERS_INCLUDING
#ifndef CCI_BASE_IMPLEMENTATION
#define CCI_BASE_IMPLEMENTATION
#endif
#include "cci.h"
#undef CCI_LAYERS_INCLUDING

/* Linux' numbers for options that older C libraries do not declare. */
#define CCI__UDP_SOL_UDP 17
#define CCI__UDP_SEGMENT 103
#define CCI__UDP_GRO 104
#define CCI__UDP_IP_MTU_DISCOVER 10
#define CCI__UDP_IPV6_MTU_DISCOVER 23
#define CCI__UDP_PMTUDISC_PROBE 3
#define CCI__UDP_IP_MULTICAST_ALL 49
#define CCI__UDP_IPV6_MULTICAST_ALL 29
#define CCI__UDP_SCM_CREDENTIALS 2
#define CCI__UDP_IP_TOS 1
#define CCI__UDP_IP_RECVTOS 13
#define CCI__UDP_IPV6_RECVTCLASS 66
#define CCI__UDP_IPV6_TCLASS 67
#ifdef SO_ATTACH_REUSEPORT_CBPF
#define CCI__UDP_ATTACH SO_ATTACH_REUSEPORT_CBPF
#else
#define CCI__UDP_ATTACH 51
#endif

/* `wait` runs in another thread than the rest; the flags they share are read and written whole. */
#if defined(__GNUC__) || defined(__clang__)
#define CCI__UDP_STORE(object, value) __atomic_store_n(&(object), (value), __ATOMIC_RELAXED)
#define CCI__UDP_LOAD(object) __atomic_load_n(&(object), __ATOMIC_RELAXED)
#else
#define CCI__UDP_STORE(object, value) ((object) = (value))
#define CCI__UDP_LOAD(object) (object)
#endif

/* ==================================================================================================================
 * >>udp-state
 *
 * A link has up to 25 sockets: slot 0 for the main family, slot 1 for the other one, 16 for multicast groups, the
 * mailbox of an endpoint that shares its address, and two for each further interface. An address that a link hands to
 * the endpoint has the number of the interface in bytes[1], 0 is the first.
 * ================================================================================================================== */

#define CCI__UDP_GROUPS 16
#define CCI__UDP_MAIL (2 + CCI__UDP_GROUPS) /* the mailbox's slot */
#define CCI__UDP_MORE (CCI__UDP_MAIL + 1)   /* two of each further interface from here on, IPv4 first */
#define CCI__UDP_INTERFACES ((int)CCI_LINK_INTERFACES)
#define CCI__UDP_SOCKETS (CCI__UDP_MORE + 2 * (CCI__UDP_INTERFACES - 1))
#define CCI__UDP_ALL_SOCKETS ((1u << CCI__UDP_SOCKETS) - 1u)
#define CCI__UDP_LOOK_AROUND 32u /* every so many calls of `receive` look at all sockets ...          */
#define CCI__UDP_HOT 1024u       /* ... and at one that had traffic in each of the next calls         */

/* An offloaded batch becomes one IP packet of at most 64 KiB with its Ethernet header: above, the kernel would cut it
 * up again in software. */
#define CCI__UDP_SEGMENTS 64
#define CCI__UDP_BATCH_V4 65480u
#define CCI__UDP_BATCH_V6 65460u
#define CCI__UDP_HEADERS_V4 28u
#define CCI__UDP_HEADERS_V6 48u
#define CCI__UDP_LARGEST 65507u /* bytes in one UDP datagram over IPv4 */

#define CCI__UDP_OUT_MESSAGES 16
#define CCI__UDP_OUT_PIECES 1024
#define CCI__UDP_FLAT 131072u /* bytes: two offloaded batches */
#define CCI__UDP_SHORT 4096u  /* bytes of a datagram that is put side by side with others before the kernel copies it */
#define CCI__UDP_IN_MESSAGES 32
#define CCI__UDP_MEMBERS                                                                                               \
    256u /* endpoints that can share one address: the upper 8 bits of their indices tell them apart */
#define CCI__UDP_MEMBER_SHIFT 24
#define CCI__UDP_BULK 16u /* so many datagrams that came in company make a socket coalesce from then on */

/* A device, as `discover` or `configure` made it: which interface is meant and what the keys said. Lives in
 * cci_device_desc_t.data. */
typedef struct cci__udp_device {
    char interface_name[16];                      /* key `interface`, or ""          */
    char more_names[CCI_LINK_INTERFACES - 1][16]; /* further ones, or "" */
    char congestion[24];                          /* or ""                           */
    uint8_t ip[16];                               /* key `ip`                        */
    uint8_t ip_family;                            /* 4, 6, or 0: no such key         */
    uint8_t mac[8];
    uint8_t mac_length; /* 0: no such key                  */
    uint8_t progress_thread;
    uint8_t offload;
    uint32_t ip_scope;
    uint32_t port;
    uint32_t mtu; /* 0: the interface's              */
    uint32_t send_buf_count;
    uint32_t recv_buf_count;
    uint32_t memory_bytes;
    uint32_t max_send_size; /* 0: what a datagram takes */
    uint32_t send_timeout_us;
    uint32_t rcvbuf_bytes;
    uint32_t sndbuf_bytes;
    uint32_t ttl_hops; /* 0: the system's                 */
    uint32_t crc;
    uint32_t share;
    uint32_t ecn;
    uint32_t probe_idle_s; /* 0: never                    */
} cci__udp_device;

#define CCI__UDP_PROBE_IDLE_S 300u

typedef char cci__udp_device_fits[sizeof(cci__udp_device) <= sizeof(((cci_device_desc_t *)0)->data) ? 1 : -1];

/* What the system tells about one interface. */
typedef struct cci__udp_interface {
    char name[16];
    uint32_t index;
    uint32_t mtu; /* of IP, bytes */
    uint64_t rate;
    uint32_t pci[4];
    uint8_t v4[4];
    uint8_t v6[16];
    uint32_t v6_scope;
    uint8_t mac[6];
    uint8_t has_v4, has_v6, has_mac;
    uint8_t running, loopback, is_virtual;
} cci__udp_interface;

typedef union cci__udp_sockaddr {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} cci__udp_sockaddr;

typedef struct cci__udp_socket {
    int fd;             /* -1: none                                     */
    int family;         /* 4 or 6                                       */
    int busy;           /* so many calls in a row found datagrams       */
    int coalesces;      /* UDP_GRO is on                                */
    int tells;          /* control messages come with what is received  */
    uint32_t codepoint; /* that datagrams leave with                    */
    int is_shared;      /* other endpoints have sockets at its address  */
    uint8_t interface_number;
    uint16_t port;       /* of one of a further interface                */
    uint32_t company;    /* datagrams that came together with others ... */
    uint32_t company_at; /* ... the last of them in this call            */
    uint32_t hot_until;  /* call number                                  */
    cci_link_addr_t group;
} cci__udp_socket;

/* Room for CMSG_SPACE(int) on every system, aligned for struct cmsghdr. */
typedef union cci__udp_control {
    char bytes[64];
    size_t align;
} cci__udp_control;

#if CCI__UDP_LINUX
typedef struct cci__udp_mmsghdr { /* the kernel's struct mmsghdr */
    struct msghdr header;
    unsigned length;
} cci__udp_mmsghdr;

typedef struct cci__udp_out { /* messages that one sendmmsg takes */
    cci__udp_mmsghdr message[CCI__UDP_OUT_MESSAGES];
    cci__udp_sockaddr to[CCI__UDP_OUT_MESSAGES];
    cci__udp_control control[CCI__UDP_OUT_MESSAGES];
    int run[CCI__UDP_OUT_MESSAGES]; /* datagrams in the message */
    struct iovec piece[CCI__UDP_OUT_PIECES];
    uint32_t flat_used;
    uint8_t flat[CCI__UDP_FLAT]; /* offloaded batches side by side */
} cci__udp_out;

typedef struct cci__udp_in { /* what one recvmmsg fills */
    cci__udp_mmsghdr message[CCI__UDP_IN_MESSAGES];
    cci__udp_sockaddr from[CCI__UDP_IN_MESSAGES];
    cci__udp_control control[CCI__UDP_IN_MESSAGES];
    struct iovec piece[CCI__UDP_IN_MESSAGES];
} cci__udp_in;

/* How waiting works: two epoll sets watch the sockets and netlink. `handle`, the OS handle, also has the timer and the
 * eventfd that `arm` keeps readable; `sleeper`, which `wait` waits on, the eventfd that `wake` writes. So neither shows
 * in the other. A socket in an epoll set costs time for each datagram that arrives: `handle` exists only when it is
 * wanted, and `sleeper` gets the sockets with the first `wait`. */
typedef struct cci__udp_waiter {
    int handle, sleeper;
    int sleeps; /* the sockets are in `sleeper` */
    int holds;  /* ... and not in `handle`: the helper thread alone receives */
    int wake, readable, timer, netlink;
    int is_readable;
    int has_pwait2;
    uint64_t armed_ns; /* UINT64_MAX: the timer is off */
    cci__mutex_t lock; /* of the sockets' slots and `sleeps` */
} cci__udp_waiter;
#else
/* How waiting works: `wait` polls the sockets and the pipe that `wake` writes. Behind the OS handle, a pipe, stands a
 * thread that polls the sockets until the next deadline and puts one byte in the pipe; it then rests until `receive`
 * has found all sockets empty. */
typedef struct cci__udp_waiter {
    int wake[2];
    int handle[2];
    int control[2]; /* makes the thread look again */
    int has_thread, stop;
    int full;     /* the handle's byte is in its pipe      */
    int readable; /* as `arm` said                         */
    int reported; /* the thread saw data                   */
    int expired;  /* the thread saw the deadline pass      */
    int holds;    /* it watches no sockets: the helper thread alone receives */
    uint64_t deadline_ns;
    cci__mutex_t lock; /* of all this and the sockets' slots */
#ifndef CCI_NO_THREADS
    cci__thread_t thread;
#endif
} cci__udp_waiter;
#endif

/* What a member of those that share an address knows. */
typedef struct cci__udp_share {
    int is_on;
    int refused;                            /* the kernel takes no program                            */
    int astray;                             /* what the program should have given to another came     */
    int answered;                           /* positions were told since the program was made         */
    uint32_t member;                        /* this one's number                                      */
    uint32_t round;                         /* of measuring                                           */
    uint32_t asked[2];                      /* per slot: positions that were asked for in this round  */
    uint64_t asked_ns;                      /* when it began                                          */
    uint64_t patience_ns;                   /* ... and how long the next waits                        */
    uint64_t handed_over;                   /* buffers that were another's                            */
    uint64_t unclaimed;                     /* ... and those for members that are gone, or full       */
    uint64_t listed_ns;                     /* when `living` was made; 0: it is out of date               */
    uint64_t pause_ns;                      /* from one list to the next, if no request comes             */
    uint32_t living_count;                  /* members in the list, ...                                   */
    uint32_t unknown_count;                 /* ... and those of them from which no mail has come yet      */
    uint8_t living[CCI__UDP_MEMBERS];       /* the members' numbers, in order                             */
    uint8_t known[CCI__UDP_MEMBERS];        /* mail came from it: it is of this user                      */
    uint16_t position[2][CCI__UDP_MEMBERS]; /* per slot and member, of its socket, plus 1; 0: not known */
    uint8_t seen[2][CCI__UDP_MEMBERS];      /* it was told in this round */
} cci__udp_share;

#define CCI__UDP_SCOUT_NS 4000000000u /* an address is listened for that long */

typedef struct cci__udp_link {
    cci__udp_device device;
    cci__udp_interface interface_;
    cci__udp_socket socket[CCI__UDP_SOCKETS];
    /* Per interface, of IPv4 and IPv6, NULL if there is none */
    cci__udp_socket *of_family[CCI_LINK_INTERFACES][2];
    cci__udp_interface more[CCI_LINK_INTERFACES - 1]; /* further ones; those without sockets have only a name */
    int interface_is_up[CCI_LINK_INTERFACES];
    cci_link_paths_t paths;
    uint32_t largest[2]; /* bytes of the largest datagram per family   */
    uint16_t port;
    uint32_t calls; /* of `receive`                               */
    uint32_t hot;   /* bit per socket: had traffic lately         */
    int wants_handle;
    int slept;          /* `wait` returned: look at all sockets       */
    int came;           /* the last call of `receive` found something */
    int gso, gro, mmsg; /* allowed and, as far as is known, there    */
    int ecn;            /* likewise                                  */
    uint32_t lost;      /* datagrams that the system refused         */
    int warned_send, warned_receive;
    int is_up, is_news;
    cci_link_state_t state;
    uint64_t looked_ns;
    cci__udp_waiter waiter;
    cci__udp_share share;
#if CCI__UDP_LINUX
    cci__udp_out out;
    cci__udp_in in;
#endif
    uint64_t system_calls; /* to send, to receive, and to arm the handle */
    /* A socket that is connected to an address where requests find no answer: it hears what ICMP says of that */
    struct {
        int fd; /* -1: none */
        int is_refused;
        cci_link_addr_t to;
        uint64_t until_ns; /* it is kept so long */
    } scout;
} cci__udp_link;

/* ==================================================================================================================
 * >>udp-sockets
 *
 * What the sockets of POSIX and of Windows have in common goes by one name here. A descriptor is an int: Windows has
 * larger ones in theory alone, and they are refused. Calls that fail set errno, to one of the numbers that POSIX has.
 * ================================================================================================================== */

#if CCI_WINDOWS
#ifndef SIO_UDP_CONNRESET
#define SIO_UDP_CONNRESET _WSAIOW(IOC_VENDOR, 12)
#endif
#ifndef SIO_UDP_NETRESET
#define SIO_UDP_NETRESET _WSAIOW(IOC_VENDOR, 15)
#endif

static uint64_t cci__udp_now(void *link) {
    LARGE_INTEGER ticks, rate; /* per second */
    uint64_t n, per_s;
    (void)link;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&rate);
    n = (uint64_t)ticks.QuadPart;
    per_s = (uint64_t)rate.QuadPart;
    return n / per_s * 1000000000u + n % per_s * 1000000000u / per_s;
}

/* Sockets work from now on; nothing turns them off but the end of the process. */
static void cci__udp_begin(void) {
    static int has_begun;
    WSADATA data;
    if (CCI__UDP_LOAD(has_begun) || WSAStartup(MAKEWORD(2, 2), &data) != 0) return;
    CCI__UDP_STORE(has_begun, 1);
}

/* Puts the number of the last error in errno. Returns -1. */
static int cci__udp_failed(void) {
    static const int errors[][2] = {
        {WSAEWOULDBLOCK, EAGAIN},
        {WSAEINTR, EINTR},
        {WSAEINVAL, EINVAL},
        {WSAEMFILE, EMFILE},
        {WSAEADDRINUSE, EADDRINUSE},
        {WSAEADDRNOTAVAIL, EADDRNOTAVAIL},
        {WSAEACCES, EACCES},
        {WSAENOBUFS, ENOBUFS},
        {WSAEMSGSIZE, EMSGSIZE},
        {WSAENETDOWN, ENETDOWN},
        {WSAENETUNREACH, ENETUNREACH},
        {WSAEHOSTUNREACH, EHOSTUNREACH},
        {WSAECONNRESET, ECONNREFUSED},
        {WSAENETRESET, ECONNREFUSED},
        {WSAECONNREFUSED, ECONNREFUSED},
        {WSA_NOT_ENOUGH_MEMORY, ENOMEM},
    };
    int error = WSAGetLastError();
    size_t i;
    errno = EIO;
    for (i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i][0] == error) errno = errors[i][1];
    return -1;
}

static int cci__udp_result(int result) {
    return result == SOCKET_ERROR ? cci__udp_failed() : result;
}

static void cci__udp_shut(int fd) {
    (void)closesocket((SOCKET)fd);
}

/* A socket that doesn't hear what became of earlier datagrams: else each that nobody took fails a later receive. */
static int cci__udp_make_socket(int domain) {
    SOCKET s = WSASocketW(domain, SOCK_DGRAM, IPPROTO_UDP, NULL, 0, WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
    BOOL off = FALSE;
    DWORD size;
    if (s == INVALID_SOCKET) return cci__udp_failed();
    if (s > INT32_MAX) {
        (void)closesocket(s);
        errno = EMFILE;
        return -1;
    }
    (void)WSAIoctl(s, SIO_UDP_CONNRESET, &off, sizeof off, NULL, 0, &size, NULL, NULL);
    (void)WSAIoctl(s, SIO_UDP_NETRESET, &off, sizeof off, NULL, 0, &size, NULL, NULL);
    return (int)s;
}

static void cci__udp_set_flags(int fd) {
    u_long on = 1;
    (void)ioctlsocket((SOCKET)fd, (long)FIONBIO, &on);
}

static int cci__udp_set_option(int fd, int level, int name, const void *value, size_t size) {
    return cci__udp_result(setsockopt((SOCKET)fd, level, name, (const char *)value, (int)size));
}

static int cci__udp_get_option(int fd, int level, int name, int *value) {
    int size = sizeof *value;
    return cci__udp_result(getsockopt((SOCKET)fd, level, name, (char *)value, &size));
}

static int cci__udp_bind_to(int fd, const cci__udp_sockaddr *own, socklen_t size) {
    return cci__udp_result(bind((SOCKET)fd, &own->any, size));
}

static int cci__udp_connect_to(int fd, const cci__udp_sockaddr *to, socklen_t size) {
    return cci__udp_result(connect((SOCKET)fd, &to->any, size));
}

static int cci__udp_bound_to(int fd, cci__udp_sockaddr *own, socklen_t *size) {
    return cci__udp_result(getsockname((SOCKET)fd, &own->any, size));
}

/* Sends one datagram; -1 with errno. */
static int cci__udp_put(int fd, const cci_link_tx_t *tx, const cci__udp_sockaddr *to, socklen_t to_size) {
    WSABUF piece[3];
    DWORD i, sent;
    for (i = 0; i < tx->piece_count; i++) {
        piece[i].buf = (char *)(uintptr_t)tx->piece[i].data; /* only read */
        piece[i].len = (ULONG)tx->piece[i].length;
    }
    return cci__udp_result(WSASendTo((SOCKET)fd, piece, i, &sent, 0, &to->any, to_size, NULL, NULL));
}

/* Receives one datagram; returns its length, more than `capacity` when it did not fit, or -1 with errno. */
static long cci__udp_get(int fd, uint8_t *bytes, uint32_t capacity, cci__udp_sockaddr *from) {
    WSABUF piece;
    DWORD length = 0, flags = 0;
    INT from_size = sizeof *from;
    piece.buf = (char *)bytes;
    piece.len = capacity;
    if (WSARecvFrom((SOCKET)fd, &piece, 1, &length, &flags, &from->any, &from_size, NULL, NULL) == 0)
        return (long)length;
    (void)cci__udp_failed();
    return errno == EMSGSIZE ? (long)capacity + 1 : -1;
}

/* The same, with what else the system tells about a datagram; -1 with errno. */
static int cci__udp_get_message(int fd, WSAMSG *message, uint32_t *length) {
    GUID name = WSAID_WSARECVMSG;
    LPFN_WSARECVMSG receive = NULL; /* a function of the socket's provider */
    DWORD size = 0;
    if (WSAIoctl((SOCKET)fd, SIO_GET_EXTENSION_FUNCTION_POINTER, &name, sizeof name, &receive, sizeof receive, &size,
                 NULL, NULL) != 0 ||
        receive((SOCKET)fd, message, &size, NULL, NULL) != 0)
        return cci__udp_failed();
    *length = size;
    return 0;
}

static void cci__udp_poll(struct pollfd *sockets, unsigned count, int timeout_ms) {
    (void)WSAPoll(sockets, count, timeout_ms);
}

/* There are no pipes that can be polled: a socket that is connected to itself has both ends. */
static int cci__udp_open_pipe(int fd[2]) {
    cci__udp_sockaddr own;
    socklen_t size = sizeof own.v4;
    memset(&own, 0, sizeof own);
    own.v4.sin_family = AF_INET;
    own.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd[1] = -1;
    fd[0] = cci__udp_make_socket(AF_INET);
    if (fd[0] < 0 || cci__udp_bind_to(fd[0], &own, size) != 0 || cci__udp_bound_to(fd[0], &own, &size) != 0 ||
        cci__udp_connect_to(fd[0], &own, size) != 0)
        return 0; /* the caller closes */
    cci__udp_set_flags(fd[0]);
    return 1;
}

/* Has ICMP said that nobody took what the connected socket sent? */
static int cci__udp_was_refused(int fd) {
    char one;
    return cci__udp_result(recvfrom((SOCKET)fd, &one, 1, 0, NULL, NULL)) < 0 && errno == ECONNREFUSED;
}

/* A datagram without bytes. */
static void cci__udp_knock(int fd) {
    (void)sendto((SOCKET)fd, "", 0, 0, NULL, 0);
}

static void cci__udp_write_byte(const int fd[2]) {
    (void)send((SOCKET)fd[0], "", 1, 0); /* what is full is as good */
}

static void cci__udp_read_bytes(int fd) {
    char bytes[64];
    while (recv((SOCKET)fd, bytes, sizeof bytes, 0) > 0) {
    }
}

/* There is a text for what is also a status. */
static const char *cci__udp_error_text(int error) {
    return cci_strerror(NULL, (cci_status_t)cci_status_of_errno(error));
}
#else
static uint64_t cci__udp_now(void *link) {
    struct timespec t;
    (void)link;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void cci__udp_begin(void) {}

static void cci__udp_shut(int fd) {
    close(fd);
}

static int cci__udp_make_socket(int domain) {
    return socket(domain, SOCK_DGRAM, 0);
}

static void cci__udp_set_flags(int fd) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static int cci__udp_set_option(int fd, int level, int name, const void *value, size_t size) {
    return setsockopt(fd, level, name, value, (socklen_t)size);
}

static int cci__udp_get_option(int fd, int level, int name, int *value) {
    socklen_t size = sizeof *value;
    return getsockopt(fd, level, name, value, &size);
}

static int cci__udp_bind_to(int fd, const cci__udp_sockaddr *own, socklen_t size) {
    return bind(fd, &own->any, size);
}

static int cci__udp_connect_to(int fd, const cci__udp_sockaddr *to, socklen_t size) {
    return connect(fd, &to->any, size);
}

static int cci__udp_bound_to(int fd, cci__udp_sockaddr *own, socklen_t *size) {
    return getsockname(fd, &own->any, size);
}

/* Sends one datagram; -1 with errno. */
static int cci__udp_put(int fd, const cci_link_tx_t *tx, const cci__udp_sockaddr *to, socklen_t to_size) {
    struct msghdr m;
    struct iovec piece[3];
    unsigned short i;
    if (tx->piece_count == 1) return (int)sendto(fd, tx->piece[0].data, tx->piece[0].length, 0, &to->any, to_size);
    memset(&m, 0, sizeof m);
    for (i = 0; i < tx->piece_count; i++) {
        piece[i].iov_base = (void *)(uintptr_t)tx->piece[i].data; /* sendmsg only reads */
        piece[i].iov_len = tx->piece[i].length;
    }
    m.msg_name = (void *)(uintptr_t)to;
    m.msg_namelen = to_size;
    m.msg_iov = piece;
    m.msg_iovlen = i;
    return (int)sendmsg(fd, &m, 0);
}

/* Has ICMP said that nobody took what the connected socket sent? */
static int cci__udp_was_refused(int fd) {
    char one;
    return recvfrom(fd, &one, 1, 0, NULL, NULL) < 0 && errno == ECONNREFUSED;
}

/* A datagram without bytes. */
static void cci__udp_knock(int fd) {
    ssize_t ignored = sendto(fd, "", 0, 0, NULL, 0);
    (void)ignored;
}

static const char *cci__udp_error_text(int error) {
    return strerror(error);
}

#if CCI__UDP_LINUX
/* Receives one datagram; returns its length, more than `capacity` when it did not fit, or -1 with errno. */
static long cci__udp_get(int fd, uint8_t *bytes, uint32_t capacity, cci__udp_sockaddr *from) {
    socklen_t from_size = sizeof *from;
    return (long)recvfrom(fd, bytes, capacity, MSG_TRUNC, &from->any, &from_size);
}
#else
static void cci__udp_poll(struct pollfd *sockets, unsigned count, int timeout_ms) {
    poll(sockets, count, timeout_ms);
}

static int cci__udp_open_pipe(int fd[2]) {
    if (pipe(fd) != 0) {
        fd[0] = fd[1] = -1;
        return 0;
    }
    cci__udp_set_flags(fd[0]);
    cci__udp_set_flags(fd[1]);
    return 1;
}

static void cci__udp_write_byte(const int fd[2]) {
    ssize_t r = write(fd[1], "", 1); /* a full pipe is as good */
    (void)r;
}

static void cci__udp_read_bytes(int fd) {
    char bytes[64];
    while (read(fd, bytes, sizeof bytes) > 0) {
    }
}
#endif
#endif

static void cci__udp_set(int fd, int level, int name, int value) {
    (void)cci__udp_set_option(fd, level, name, &value, sizeof value);
}

/* Forgets a descriptor and closes it, in this order: fork() may come in between. */
static void cci__udp_drop(int *fd) {
    int was = *fd;
    *fd = -1;
    if (was >= 0) cci__udp_shut(was);
}

/* The scout's time may be over. */
static void cci__udp_look_at_scout(cci__udp_link *l) {
    if (l->scout.fd >= 0 && cci__udp_now(l) >= l->scout.until_ns) cci__udp_drop(&l->scout.fd);
}

/* ==================================================================================================================
 * >>udp-text
 * ================================================================================================================== */

static void cci__udp_lock(cci__udp_link *l) {
    cci__mutex_take(&l->waiter.lock);
}

static void cci__udp_unlock(cci__udp_link *l) {
    cci__mutex_give(&l->waiter.lock);
}

/* Logs "udp eth0: what: the system's reason"; the status for that. */
static int cci__udp_log(int level, const char *interface_name, const char *what, int error) {
    char text[400];
    snprintf(text, sizeof text, "udp %s: %s%s%s", interface_name[0] ? interface_name : "-", what, error ? ": " : "",
             error ? cci__udp_error_text(error) : "");
    cci_log(level, text);
    return cci_status_of_errno(error);
}

/* A whole number, with K, M or G behind it where `suffix` allows it. Returns 0 when the text is something else. */
static int cci__udp_number(const char *text, int suffix, uint64_t *number) {
    uint64_t n = 0;
    int digits = 0;
    for (; *text >= '0' && *text <= '9'; text++, digits++) {
        if (digits == 12) return 0;
        n = n * 10 + (uint64_t)(*text - '0');
    }
    if (digits == 0) return 0;
    if (suffix && *text) {
        unsigned shift = (*text == 'K' || *text == 'k') ? 10 : *text == 'M' ? 20 : *text == 'G' ? 30 : 0;
        if (shift == 0 || n > UINT64_MAX >> shift) return 0;
        n <<= shift;
        text++;
    }
    *number = n;
    return *text == 0;
}

/* Up to `most` hexadecimal digits; returns where they end, or NULL when there is none. */
static const char *cci__udp_hex(const char *text, int most, uint32_t *number) {
    int n;
    *number = 0;
    for (n = 0; n < most; n++, text++) {
        uint32_t digit;
        if (*text >= '0' && *text <= '9')
            digit = (uint32_t)(*text - '0');
        else if ((*text >= 'a' && *text <= 'f') || (*text >= 'A' && *text <= 'F'))
            digit = (uint32_t)((*text | 32) - 'a' + 10);
        else
            break;
        *number = *number << 4 | digit;
    }
    return n ? text : NULL;
}

static uint64_t cci__udp_to_wide(const uint8_t *bytes, int count) {
    uint64_t n = 0;
    int i;
    for (i = 0; i < count; i++) n = n << 8 | bytes[i];
    return n;
}

/* The canonical form of an address in cci_link_addr_t: family (4 or 6), 0, port (big-endian, 2 bytes), scope (4 bytes,
 * this host's order), address (4 or 16 bytes), zeros. An IPv4 address inside IPv6 never appears. */
static void cci__udp_make_addr(cci_link_addr_t *to, int family, const uint8_t *ip, unsigned port, uint32_t scope) {
    memset(to, 0, sizeof *to);
    to->bytes[0] = (uint8_t)family;
    to->bytes[2] = (uint8_t)(port >> 8);
    to->bytes[3] = (uint8_t)port;
    memcpy(to->bytes + 4, &scope, 4);
    memcpy(to->bytes + 8, ip, family == 4 ? 4 : 16);
}

static void cci__udp_from_system(cci_link_addr_t *to, const cci__udp_sockaddr *from) {
    if (from->any.sa_family == AF_INET) {
        cci__udp_make_addr(to, 4, (const uint8_t *)&from->v4.sin_addr, ntohs(from->v4.sin_port), 0);
    } else {
        cci__udp_make_addr(to, 6, (const uint8_t *)&from->v6.sin6_addr, ntohs(from->v6.sin6_port),
                           from->v6.sin6_scope_id);
    }
}

static socklen_t cci__udp_to_system(cci__udp_sockaddr *to, const cci_link_addr_t *from) {
    memset(to, 0, sizeof *to);
    if (from->bytes[0] == 4) {
        to->v4.sin_family = AF_INET;
        memcpy(&to->v4.sin_port, from->bytes + 2, 2);
        memcpy(&to->v4.sin_addr, from->bytes + 8, 4);
        return sizeof to->v4;
    }
    to->v6.sin6_family = AF_INET6;
    memcpy(&to->v6.sin6_port, from->bytes + 2, 2);
    memcpy(&to->v6.sin6_scope_id, from->bytes + 4, 4);
    memcpy(&to->v6.sin6_addr, from->bytes + 8, 16);
    return sizeof to->v6;
}

/* "192.0.2.1:4242" or "[fe80::1%eth0]:4242"; without the port when it is 0. */
static void cci__udp_addr_text(const cci_link_addr_t *addr, char *text, size_t size) {
    char ip[INET6_ADDRSTRLEN] = "?";
    char scope_name[IF_NAMESIZE + 1] = "";
    unsigned port = (unsigned)cci__udp_to_wide(addr->bytes + 2, 2);
    uint32_t scope;
    int v4 = addr->bytes[0] == 4;
    memcpy(&scope, addr->bytes + 4, 4);
    inet_ntop(v4 ? AF_INET : AF_INET6, addr->bytes + 8, ip, sizeof ip);
    if (scope && !CCI_WINDOWS && if_indextoname(scope, scope_name + 1)) /* Windows resolves numbers alone */
        scope_name[0] = '%';
    else if (scope) /* the interface may be gone: the address is not another's for that */
        snprintf(scope_name, sizeof scope_name, "%%%u", (unsigned)scope);
    if (port == 0)
        snprintf(text, size, "%s%s", ip, scope_name);
    else if (v4)
        snprintf(text, size, "%s:%u", ip, port);
    else
        snprintf(text, size, "[%s%s]:%u", ip, scope_name, port);
}

/* ==================================================================================================================
 * >>udp-interfaces
 * ================================================================================================================== */

/* Link-local unicast, or multicast of interface or link scope: only meaningful together with an interface. */
static int cci__udp_is_link_local(const uint8_t *v6) {
    return (v6[0] == 0xfe && (v6[1] & 0xc0) == 0x80) || (v6[0] == 0xff && ((v6[1] & 15) == 1 || (v6[1] & 15) == 2));
}

/* Adds one address that the system lists to what is known of its interface. The address that the device names wins,
 * then the first; of IPv6 a global one before a link-local one. */
static void cci__udp_add_address(cci__udp_interface *f, const struct sockaddr *a, const cci__udp_device *d) {
    cci__udp_sockaddr s;
    memset(&s, 0, sizeof s);
    if (a->sa_family == AF_INET) {
        memcpy(&s.v4, a, sizeof s.v4);
        if (!f->has_v4 || (d->ip_family == 4 && memcmp(&s.v4.sin_addr, d->ip, 4) == 0)) {
            memcpy(f->v4, &s.v4.sin_addr, 4);
            f->has_v4 = 1;
        }
    } else if (a->sa_family == AF_INET6) {
        int pinned, better;
        memcpy(&s.v6, a, sizeof s.v6);
        pinned = f->has_v6 && d->ip_family == 6 && memcmp(f->v6, d->ip, 16) == 0;
        better = !f->has_v6 || (cci__udp_is_link_local(f->v6) && !cci__udp_is_link_local(s.v6.sin6_addr.s6_addr)) ||
                 (d->ip_family == 6 && memcmp(&s.v6.sin6_addr, d->ip, 16) == 0);
        if (!pinned && better) {
            memcpy(f->v6, &s.v6.sin6_addr, 16);
            f->v6_scope = s.v6.sin6_scope_id;
            f->has_v6 = 1;
        }
    }
#ifdef CCI__UDP_HAVE_IF_DL
    if (a->sa_family == AF_LINK) {
        const struct sockaddr_dl *dl = (const struct sockaddr_dl *)(const void *)a;
        if (dl->sdl_alen == 6) {
            memcpy(f->mac, dl->sdl_data + dl->sdl_nlen, 6);
            f->has_mac = 1;
        }
    }
#endif
}

#ifdef __linux__
/* "0000:00:1f.6/" */
static void cci__udp_parse_pci(const char *text, uint32_t pci[4]) {
    static const char behind[] = "::./";
    static const int digits[] = {8, 2, 2, 1};
    uint32_t part[4];
    int i;
    for (i = 0; i < 4; i++) {
        text = cci__udp_hex(text, digits[i], &part[i]);
        if (!text || *text++ != behind[i]) return;
    }
    memcpy(pci, part, sizeof part);
}

/* PCI address and whether the interface is virtual, from the path of its directory in sysfs; rate in Mbit/s. */
static void cci__udp_read_sysfs(cci__udp_interface *f) {
    char path[64], text[512];
    ssize_t n;
    int fd;
    snprintf(path, sizeof path, "/sys/class/net/%s", f->name);
    n = readlink(path, text, sizeof text - 1);
    if (n > 0) {
        char *p;
        text[n] = 0;
        f->is_virtual = strstr(text, "/virtual/") != NULL;
        for (p = strchr(text, '/'); p; p = strchr(p + 1, '/'))
            cci__udp_parse_pci(p + 1, f->pci); /* the innermost stays */
    }
    snprintf(path, sizeof path, "/sys/class/net/%s/speed", f->name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        uint64_t mbit;
        n = read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        text[strcspn(text, "\n")] = 0;
        if (cci__udp_number(text, 0, &mbit) && mbit < 100000000u) f->rate = mbit * 1000000u;
        close(fd);
    }
}
#endif

#if CCI_WINDOWS
/* Everything about one adapter of the system's list; 0 when it has no IP address. */
static int cci__udp_describe(const IP_ADAPTER_ADDRESSES *a, const cci__udp_device *d, cci__udp_interface *f) {
    const IP_ADAPTER_UNICAST_ADDRESS *u;
    char name[NDIS_IF_MAX_STRING_SIZE + 1] = "";
    memset(f, 0, sizeof *f);
    memset(f->pci, 0xff, sizeof f->pci);
    for (u = a->FirstUnicastAddress; u; u = u->Next) cci__udp_add_address(f, u->Address.lpSockaddr, d);
    if (!f->has_v4 && !f->has_v6) return 0;
    f->index = a->IfIndex ? a->IfIndex : a->Ipv6IfIndex;
    if (ConvertInterfaceLuidToNameA(&a->Luid, name, sizeof name) != NO_ERROR) return 0;
    snprintf(f->name, sizeof f->name, "%.15s", name);
    f->loopback = a->IfType == IF_TYPE_SOFTWARE_LOOPBACK;
    f->is_virtual = a->IfType == IF_TYPE_TUNNEL;
    f->running = a->OperStatus == IfOperStatusUp;
    f->mtu = a->Mtu >= 576 ? a->Mtu : 1500;
    f->rate = a->TransmitLinkSpeed == UINT64_MAX ? 0 : a->TransmitLinkSpeed;
    f->has_mac = a->PhysicalAddressLength == 6;
    if (f->has_mac) memcpy(f->mac, a->PhysicalAddress, 6);
    return 1;
}

/* The system's list of adapters, in memory of cci_alloc(); NULL with errno. It may grow between two calls. */
static IP_ADAPTER_ADDRESSES *cci__udp_adapters(void) {
    const ULONG flags = GAA_FLAG_SKIP_ANYCAST | GAA_FLAG_SKIP_MULTICAST | GAA_FLAG_SKIP_DNS_SERVER;
    ULONG size = 16384, error = ERROR_BUFFER_OVERFLOW;
    IP_ADAPTER_ADDRESSES *list = NULL;
    int turns;
    for (turns = 0; turns < 8 && error == ERROR_BUFFER_OVERFLOW; turns++) {
        cci_release(list);
        list = (IP_ADAPTER_ADDRESSES *)cci_alloc(size);
        error = list ? GetAdaptersAddresses(AF_UNSPEC, flags, NULL, list, &size) : (ULONG)ERROR_NOT_ENOUGH_MEMORY;
    }
    if (error == NO_ERROR) return list;
    cci_release(list);
    errno = error == ERROR_NOT_ENOUGH_MEMORY ? ENOMEM : ENODEV;
    return NULL;
}
#else
/* A second IPv4 address may carry a label: "eth0:1" is on eth0. */
static int cci__udp_same_interface(const char *a, const char *b) {
    size_t n = strcspn(a, ":");
    return n == strcspn(b, ":") && memcmp(a, b, n) == 0;
}

/* Everything about one interface of the system's list; 0 when it has no IP address. */
static int cci__udp_describe(const struct ifaddrs *list, const char *name, const cci__udp_device *d,
                             cci__udp_interface *f) {
    const struct ifaddrs *a;
    struct ifreq request;
    int fd;
    memset(f, 0, sizeof *f);
    memset(f->pci, 0xff, sizeof f->pci);
    snprintf(f->name, sizeof f->name, "%.*s", (int)strcspn(name, ":"), name);
    for (a = list; a; a = a->ifa_next) {
        if (!cci__udp_same_interface(a->ifa_name, name)) continue;
        f->loopback = (a->ifa_flags & IFF_LOOPBACK) != 0;
        f->running = (a->ifa_flags & IFF_UP) && (a->ifa_flags & IFF_RUNNING);
        if (a->ifa_addr) cci__udp_add_address(f, a->ifa_addr, d);
    }
    if (!f->has_v4 && !f->has_v6) return 0;
    f->index = if_nametoindex(f->name);
    f->mtu = f->loopback ? 16384 : 1500;
    fd = socket(f->has_v4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0);
    if (fd >= 0) {
#ifdef SIOCGIFMTU
        memset(&request, 0, sizeof request);
        memcpy(request.ifr_name, f->name, sizeof f->name);
        if (ioctl(fd, SIOCGIFMTU, &request) == 0 && request.ifr_mtu >= 576) f->mtu = (uint32_t)request.ifr_mtu;
#endif
#if defined(__linux__) && defined(SIOCGIFHWADDR)
        memset(&request, 0, sizeof request);
        memcpy(request.ifr_name, f->name, sizeof f->name);
        if (ioctl(fd, SIOCGIFHWADDR, &request) == 0) {
            memcpy(f->mac, request.ifr_hwaddr.sa_data, 6);
            f->has_mac = 1;
        }
#endif
        close(fd);
    }
    (void)request;
#ifdef __linux__
    cci__udp_read_sysfs(f);
#endif
    return 1;
}
#endif

/* 0 to 100: real interfaces before virtual ones before the loopback, then by rate and kind of address. */
static uint32_t cci__udp_priority(const cci__udp_interface *f) {
    uint32_t priority = f->loopback ? 30 : f->is_virtual ? 40 : 50;
    uint64_t rate;
    if (!f->loopback && !f->has_v4 && cci__udp_is_link_local(f->v6)) priority -= 5;
    for (rate = f->rate / 100000000u; rate && !f->loopback && !f->is_virtual && priority < 65; rate /= 2) priority++;
    return priority;
}

static int cci__udp_has_ip(const cci__udp_interface *f, const cci__udp_device *d) {
    return (d->ip_family == 4 && f->has_v4 && memcmp(f->v4, d->ip, 4) == 0) ||
           (d->ip_family == 6 && f->has_v6 && memcmp(f->v6, d->ip, 16) == 0);
}

static int cci__udp_has_mac(const cci__udp_interface *f, const cci__udp_device *d) {
    return f->has_mac && d->mac_length == 6 && memcmp(f->mac, d->mac, 6) == 0;
}

/* Calls visit() for each interface with an address, until it returns something other than 0, which it passes on. If the
 * system refuses, -1, and errno, which is 0 before, says why. */
static int cci__udp_each_interface(const cci__udp_device *d, void *user,
                                   int (*visit)(void *user, const cci__udp_interface *f)) {
    cci__udp_interface f;
    int result = 0;
#if CCI_WINDOWS
    IP_ADAPTER_ADDRESSES *list, *a;
    errno = 0;
    list = cci__udp_adapters();
    if (!list) return -1;
    for (a = list; a && result == 0; a = a->Next)
        if (cci__udp_describe(a, d, &f)) result = visit(user, &f);
    cci_release(list);
#else
    struct ifaddrs *list, *a, *b;
    errno = 0;
    if (getifaddrs(&list) != 0) return -1;
    for (a = list; a && result == 0; a = a->ifa_next) {
        for (b = list; b != a && !cci__udp_same_interface(a->ifa_name, b->ifa_name); b = b->ifa_next) {
        }
        if (a == b && cci__udp_describe(list, a->ifa_name, d, &f)) result = visit(user, &f);
    }
    freeifaddrs(list);
#endif
    return result;
}

/* Search for the interface that a device means. */
typedef struct cci__udp_search {
    const cci__udp_device *device;
    cci__udp_interface best;
    int found;           /* all keys match                                       */
    int contradiction;   /* an interface matches some of the keys but not others */
    char other_name[16]; /* that interface                                       */
    uint32_t priority;
} cci__udp_search;

static int cci__udp_search_visit(void *user, const cci__udp_interface *f) {
    cci__udp_search *s = (cci__udp_search *)user;
    const cci__udp_device *d = s->device;
    int named = d->interface_name[0] != 0;
    int asked = named + (d->ip_family != 0) + (d->mac_length != 0);
    int hits = (named && strcmp(f->name, d->interface_name) == 0) + cci__udp_has_ip(f, d) + cci__udp_has_mac(f, d);
    uint32_t priority = cci__udp_priority(f) + (f->running ? 1000u : 0u);
    if (hits == asked && (!s->found || priority > s->priority)) {
        s->best = *f;
        s->found = 1;
        s->priority = priority;
    } else if (hits > 0 && hits < asked) {
        s->contradiction = 1;
        memcpy(s->other_name, f->name, sizeof s->other_name);
    }
    return 0;
}

static int cci__udp_find_one(const cci__udp_device *d, cci__udp_search *s) {
    memset(s, 0, sizeof *s);
    s->device = d;
    cci__udp_each_interface(d, s, cci__udp_search_visit);
    return s->found;
}

/* How many interfaces a device names, or means. */
static int cci__udp_count_names(const cci__udp_device *d) {
    int n = 1;
    while (n < CCI__UDP_INTERFACES && d->more_names[n - 1][0]) n++;
    return n;
}

static const char *cci__udp_name(const cci__udp_device *d, int n) {
    return n == 0 ? d->interface_name : d->more_names[n - 1];
}

/* The interface that a device means; of several that it names, the first that is running, or the first that exists. */
static int cci__udp_find(const cci__udp_device *d, cci__udp_search *s) {
    int n, count = cci__udp_count_names(d);
    cci__udp_search next;
    cci__udp_device one = *d;
    if (cci__udp_find_one(d, s) && s->best.running) return 1;
    for (n = 1; n < count; n++) {
        memcpy(one.interface_name, d->more_names[n - 1], sizeof one.interface_name);
        if (cci__udp_find_one(&one, &next) && (next.best.running || !s->found)) *s = next;
        if (s->found && s->best.running) break;
    }
    s->device = d;
    return s->found;
}

/* The interface of a socket. */
static const cci__udp_interface *cci__udp_interface_of(const cci__udp_link *l, int number) {
    return number == 0 ? &l->interface_ : &l->more[number - 1];
}

static void cci__udp_addr_of(const cci__udp_interface *f, int family, unsigned port, cci_link_addr_t *addr) {
    if (family == 4)
        cci__udp_make_addr(addr, 4, f->v4, port, 0);
    else
        cci__udp_make_addr(addr, 6, f->v6, port, f->v6_scope);
}

/* The address that the socket of a slot is bound to. */
static void cci__udp_own_addr(const cci__udp_link *l, int slot, unsigned port, cci_link_addr_t *addr) {
    cci__udp_addr_of(&l->interface_, l->socket[slot].family, port, addr);
}

#if CCI__UDP_LINUX
/* The kernel's struct nlmsghdr with its struct ifaddrmsg. */
typedef struct cci__udp_route {
    uint32_t length;
    uint16_t type, flags;
    uint32_t sequence, process;
    uint8_t family, prefix_length, address_flags, scope;
    uint32_t index;
} cci__udp_route;

enum {
    CCI__UDP_NETLINK = 270, /* the level of options */
    CCI__UDP_STRICT = 12,   /* the option: what a request names limits the answer, since Linux 4.20 */
    CCI__UDP_NEW_ADDRESS = 20,
    CCI__UDP_GET_ADDRESS = 22,
    CCI__UDP_DUMP = 0x301,    /* a request for all that match */
    CCI__UDP_IFA_ADDRESS = 1, /* attributes; where there is a LOCAL one, ADDRESS is the peer's */
    CCI__UDP_IFA_LOCAL = 2
};

/* Is a message of the kernel about this address? */
static int cci__udp_is_about(const uint8_t *message, uint32_t length, const uint8_t *ip, uint32_t ip_size) {
    uint32_t at = sizeof(cci__udp_route);
    int has_local = 0, matches = 0;
    while (length >= at && length - at >= 4) {
        uint16_t size, type;
        memcpy(&size, message + at, sizeof size);
        memcpy(&type, message + at + 2, sizeof type);
        if (size < 4 || size > length - at) break;
        if (type == CCI__UDP_IFA_LOCAL || (type == CCI__UDP_IFA_ADDRESS && !has_local)) {
            has_local |= type == CCI__UDP_IFA_LOCAL;
            matches = size - 4u == ip_size && memcmp(message + at + 4, ip, ip_size) == 0;
        }
        at += (size + 3u) & ~3u;
    }
    return matches;
}

/* Goes through what one read gave: 1 when it is about the address, 0 when it was all, -1 when more is to come. */
static int cci__udp_look_through(const uint8_t *bytes, size_t length, uint32_t index, const uint8_t *ip,
                                 uint32_t ip_size) {
    size_t at = 0;
    while (length - at >= 16) {
        cci__udp_route r;
        memcpy(&r, bytes + at, 16);
        if (r.length < 16 || r.length > length - at || r.type != CCI__UDP_NEW_ADDRESS)
            return 0; /* the end, or an error */
        if (r.length >= sizeof r) {
            memcpy(&r, bytes + at, sizeof r);
            if (r.index == index && cci__udp_is_about(bytes + at, r.length, ip, ip_size)) return 1;
        }
        at += (r.length + 3u) & ~3u;
        at = at < length ? at : length;
    }
    return -1;
}

/* Asks for the addresses of one interface: 1 when one is the given one, 0 when none is, -1 when the kernel does not
 * say. */
static int cci__udp_ask_address(uint32_t index, const cci_link_addr_t *own) {
    int on = 1, found = -1, turns = 1024, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    cci__udp_route request;
    uint8_t bytes[8192];
    memset(&request, 0, sizeof request);
    request.length = sizeof request;
    request.type = CCI__UDP_GET_ADDRESS;
    request.flags = CCI__UDP_DUMP;
    request.family = own->bytes[0] == 4 ? AF_INET : AF_INET6;
    request.index = index;
    if (fd >= 0 && setsockopt(fd, CCI__UDP_NETLINK, CCI__UDP_STRICT, &on, sizeof on) == 0 &&
        sendto(fd, &request, sizeof request, 0, NULL, 0) == (ssize_t)sizeof request) {
        do {
            ssize_t n = recvfrom(fd, bytes, sizeof bytes, 0, NULL, NULL);
            if (n < 0) break;
            found = cci__udp_look_through(bytes, (size_t)n, index, own->bytes + 8, own->bytes[0] == 4 ? 4 : 16);
        } while (found < 0 && --turns);
    }
    if (fd >= 0) close(fd);
    return found;
}
#endif

/* Has this host the address? */
static int cci__udp_can_bind(const cci_link_addr_t *own) {
    cci__udp_sockaddr a;
    socklen_t size = cci__udp_to_system(&a, own);
    int can, fd = cci__udp_make_socket(a.any.sa_family);
    if (fd < 0) return 1; /* nobody knows */
    can = cci__udp_bind_to(fd, &a, size) == 0 || errno != EADDRNOTAVAIL;
    cci__udp_shut(fd);
    return can;
}

#if CCI_WINDOWS
static int cci__udp_is_running(const cci__udp_link *l, const cci__udp_interface *f) {
    MIB_IF_ROW2 row;
    (void)l;
    memset(&row, 0, sizeof row);
    row.InterfaceIndex = f->index;
    return GetIfEntry2(&row) == NO_ERROR && row.OperStatus == IfOperStatusUp;
}
#else
static int cci__udp_is_running(const cci__udp_link *l, const cci__udp_interface *f) {
    struct ifreq request;
    memset(&request, 0, sizeof request);
    memcpy(request.ifr_name, f->name, sizeof f->name);
    return ioctl(l->socket[0].fd, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_UP) &&
           (request.ifr_flags & IFF_RUNNING);
}
#endif

/* What the interface carries now, where the system tells it without a list of all. */
static void cci__udp_read_mtu(cci__udp_link *l) {
#if defined(SIOCGIFMTU) && !CCI_WINDOWS
    struct ifreq request;
    memset(&request, 0, sizeof request);
    memcpy(request.ifr_name, l->interface_.name, sizeof l->interface_.name);
    if (ioctl(l->socket[0].fd, SIOCGIFMTU, &request) == 0 && request.ifr_mtu > 0)
        l->state.mtu = (uint32_t)request.ifr_mtu;
#else
    (void)l;
#endif
}

/* Is an interface usable: has it carrier, and the address that the link is bound to? This happens while a program
 * waits, so it asks about this interface alone: listing thousands of them takes long. */
static int cci__udp_look_at(const cci__udp_link *l, const cci__udp_interface *f, int family, uint32_t *lacks_address) {
    cci_link_addr_t own;
    int has = -1;
#if CCI__UDP_LINUX
    struct ifreq request;
    memset(&request, 0, sizeof request);
    memcpy(request.ifr_name, f->name, sizeof f->name);
#endif
    if (!cci__udp_is_running(l, f)) return 0;
    cci__udp_addr_of(f, family, 0, &own);
#if CCI__UDP_LINUX
    if (ioctl(l->socket[0].fd, SIOCGIFINDEX, &request) == 0)
        has = cci__udp_ask_address((uint32_t)request.ifr_ifindex, &own);
#endif
    if (has < 0) has = cci__udp_can_bind(&own);
    *lacks_address = !has;
    return has;
}

static void cci__udp_join_interface(cci__udp_link *l, int number);

/* Is the device usable: is one of its interfaces? */
static int cci__udp_look(cci__udp_link *l) {
    int n, up, is_up = 0;
    cci__udp_read_mtu(l);
    for (n = 0; n < (int)l->paths.interface_count; n++) {
        uint32_t lacks_address = 0, *lacks = n == 0 ? &l->state.lacks_address : &lacks_address;
        int main_family = l->socket[0].family == 6, family = l->of_family[n][main_family] ? main_family : !main_family;
        if (!l->of_family[n][family]) cci__udp_join_interface(l, n);
        up = l->of_family[n][family] && cci__udp_look_at(l, cci__udp_interface_of(l, n), family ? 6 : 4, lacks);
        CCI__UDP_STORE(l->interface_is_up[n], up);
        is_up |= up;
    }
    return is_up;
}

/* ==================================================================================================================
 * >>udp-devices
 * ================================================================================================================== */

static uint32_t cci__udp_ip_mtu(const cci__udp_device *d, const cci__udp_interface *f) {
    uint32_t mtu = f->mtu > 65535 ? 65535 : f->mtu;
    return d->mtu && d->mtu < mtu ? d->mtu : mtu;
}

/* Bytes of the largest datagram, a multiple of 8. */
static uint32_t cci__udp_largest(const cci__udp_device *d, const cci__udp_interface *f, int family) {
    uint32_t bytes = cci__udp_ip_mtu(d, f) - (family == 4 ? CCI__UDP_HEADERS_V4 : CCI__UDP_HEADERS_V6);
    return (bytes > CCI__UDP_LARGEST ? CCI__UDP_LARGEST : bytes) & ~7u;
}

static int cci__udp_main_family(const cci__udp_device *d, const cci__udp_interface *f) {
    return d->ip_family ? d->ip_family : f->has_v4 ? 4 : 6;
}

/* The text for people; it and the description's other pointers are valid until the next call. */
static char cci__udp_info[256];

static void cci__udp_make_info(const cci__udp_device *d, const cci__udp_interface *f) {
    char v4[64] = "", v6[64] = "", rate[32] = "";
    cci_link_addr_t addr;
    if (f->has_v4) {
        cci__udp_make_addr(&addr, 4, f->v4, 0, 0);
        cci__udp_addr_text(&addr, v4, sizeof v4);
    }
    if (f->has_v6) {
        cci__udp_make_addr(&addr, 6, f->v6, 0, f->v6_scope);
        cci__udp_addr_text(&addr, v6, sizeof v6);
    }
    if (f->rate) snprintf(rate, sizeof rate, ", %lu Mbit/s", (unsigned long)(f->rate / 1000000u));
    snprintf(cci__udp_info, sizeof cci__udp_info, "%s: %s%s%s, MTU %lu%s%s", f->name, v4,
             f->has_v4 && f->has_v6 ? ", " : "", v6, (unsigned long)cci__udp_ip_mtu(d, f), rate,
             f->running ? "" : ", down");
}

static int cci__udp_service_port(const char *service);

static void cci__udp_make_desc(cci_device_desc_t *desc, const cci__udp_device *d, const cci__udp_interface *f) {
    desc->up = f->running;
    desc->rate = f->rate;
    memcpy(desc->pci, f->pci, sizeof desc->pci);
    /* what the datagram endpoint leaves of a datagram: 24 bytes are the packet's header, 8 the message's */
    desc->max_send_size = d->max_send_size ? d->max_send_size : cci__udp_largest(d, f, cci__udp_main_family(d, f)) - 32;
    memcpy(desc->data, d, sizeof *d);
    desc->service_port = cci__udp_service_port;
}

typedef struct cci__udp_proposal {
    void *list;
    int (*add)(void *list, const cci_device_desc_t *desc);
    int count;
} cci__udp_proposal;

static int cci__udp_propose(void *user, const cci__udp_interface *f) {
    cci__udp_proposal *p = (cci__udp_proposal *)user;
    cci__udp_device d;
    cci_device_desc_t desc;
    memset(&d, 0, sizeof d);
    memset(&desc, 0, sizeof desc);
    d.offload = 1;
    d.probe_idle_s = CCI__UDP_PROBE_IDLE_S;
    memcpy(d.interface_name, f->name, sizeof d.interface_name);
    cci__udp_make_desc(&desc, &d, f);
    cci__udp_make_info(&d, f);
    desc.name = f->name;
    desc.info = cci__udp_info;
    desc.priority = f->running ? cci__udp_priority(f) : 10;
    p->count++;
    return p->add(p->list, &desc);
}

static int cci__udp_discover(const cci_transport_t *self, void *list, int (*add)(void *, const cci_device_desc_t *),
                             char *why, size_t why_size) {
    cci__udp_proposal p;
    cci__udp_device any;
    int result;
    (void)self;
    if (!CCI__CORE_IS_LINKED) return CCI_ERROR;
    memset(&any, 0, sizeof any);
    p.list = list;
    p.add = add;
    p.count = 0;
    cci__udp_begin();
    result = cci__udp_each_interface(&any, &p, cci__udp_propose);
    if (result < 0) {
        snprintf(why, why_size, "the network interfaces can't be listed: %s", cci__udp_error_text(errno));
        return CCI_ENODEV;
    }
    if (p.count == 0) {
        snprintf(why, why_size, "no network interface has an IP address");
        return CCI_ENODEV;
    }
    return result;
}

/* The keys with a number. */
typedef struct cci__udp_key {
    const char *name;
    uint64_t smallest, largest;
    size_t offset; /* of a uint32_t in cci__udp_device */
    int suffix;
} cci__udp_key;

static const cci__udp_key cci__udp_keys[] = {
    {"port", 1, 65535, offsetof(cci__udp_device, port), 0},
    {"mtu", 576, 65535, offsetof(cci__udp_device, mtu), 0},
    {"max_send_size", 256, 65472, offsetof(cci__udp_device, max_send_size), 0},
    {"send_buf_count", 1, 65536, offsetof(cci__udp_device, send_buf_count), 0},
    {"recv_buf_count", 1, 65536, offsetof(cci__udp_device, recv_buf_count), 0},
    {"send_timeout", 1, 4294967295u, offsetof(cci__udp_device, send_timeout_us), 0},
    {"rcvbuf", 4096, 1073741824, offsetof(cci__udp_device, rcvbuf_bytes), 1},
    {"sndbuf", 4096, 1073741824, offsetof(cci__udp_device, sndbuf_bytes), 1},
    {"memory", 65536, 4294967295u, offsetof(cci__udp_device, memory_bytes), 1},
    {"crc", 0, 1, offsetof(cci__udp_device, crc), 0},
    {"share", 0, 1, offsetof(cci__udp_device, share), 0},
    {"ecn", 0, 1, offsetof(cci__udp_device, ecn), 0},
    {"probe_idle", 0, 86400, offsetof(cci__udp_device, probe_idle_s), 0},
    {"ttl", 1, 255, offsetof(cci__udp_device, ttl_hops), 0},
    {"hops", 1, 255, offsetof(cci__udp_device, ttl_hops), 0},
};

static int cci__udp_parse_mac(const char *text, cci__udp_device *d) {
    uint32_t n, number;
    for (n = 0; n < sizeof d->mac; text++) {
        text = cci__udp_hex(text, 2, &number);
        if (!text) return 0;
        d->mac[n++] = (uint8_t)number;
        d->mac_length = (uint8_t)n;
        if (*text != ':' && *text != '-') break;
    }
    return n >= 5 && *text == 0; /* the manual's own example has five bytes; such a one matches no interface */
}

static int cci__udp_parse_ip(const char *text, cci__udp_device *d) {
    char host[INET6_ADDRSTRLEN];
    size_t n = strcspn(text, "%"); /* the scope follows from the interface */
    if (n >= sizeof host) return 0;
    memcpy(host, text, n);
    host[n] = 0;
    if (inet_pton(AF_INET, text, d->ip) == 1) {
        d->ip_family = 4;
        return 1;
    }
    d->ip_family = 6;
    return inet_pton(AF_INET6, host, d->ip) == 1;
}

/* One of two words; 0 when it is neither. */
static int cci__udp_parse_choice(const char *text, const char *zero, const char *one, uint8_t *choice) {
    *choice = strcmp(text, one) == 0;
    return *choice || strcmp(text, zero) == 0;
}

/* A text of at least one character that fits. */
static int cci__udp_copy_text(char *to, size_t size, const char *text) {
    size_t length = strlen(text);
    memcpy(to, text, length < size ? length + 1 : 0);
    return length > 0 && length < size;
}

/* One to four names with commas between them. */
static int cci__udp_parse_names(const char *text, cci__udp_device *d) {
    int n, i;
    for (n = 0; n < CCI__UDP_INTERFACES; n++) {
        char *name = n == 0 ? d->interface_name : d->more_names[n - 1];
        size_t length = strcspn(text, ","), end = length;
        while (end > 0 && text[end - 1] == ' ') end--;
        if (end == 0 || end > 15) return 0;
        memset(name, 0, 16);
        memcpy(name, text, end);
        for (i = 0; i < n; i++)
            if (strcmp(cci__udp_name(d, i), name) == 0) return 0;
        if (!text[length]) return 1;
        for (text += length + 1; *text == ' '; text++) {
        }
    }
    return 0;
}

/* Takes one key whose value is a number; says what cci__udp_take_key() does. */
static const char *cci__udp_take_number_key(cci__udp_device *d, const char *key, const char *value, char *range,
                                            size_t size) {
    size_t i;
    for (i = 0; i < sizeof cci__udp_keys / sizeof cci__udp_keys[0]; i++) {
        const cci__udp_key *k = &cci__udp_keys[i];
        uint64_t n;
        uint32_t word;
        if (strcmp(key, k->name) != 0) continue;
        if (cci__udp_number(value, k->suffix, &n) && n >= k->smallest && n <= k->largest) {
            word = (uint32_t)n;
            memcpy((char *)d + k->offset, &word, sizeof word);
            return NULL;
        }
        snprintf(range, size, "a number from %lu to %lu", (unsigned long)k->smallest, (unsigned long)k->largest);
        return range;
    }
    return "";
}

/* Takes one key. Returns NULL, or what its value should have been; "" when there is no such key. */
static const char *cci__udp_take_key(void *device, int index, const char *key, const char *value, char *range,
                                     size_t size) {
    cci__udp_device *d = (cci__udp_device *)device;
    const char *wanted = cci__udp_take_number_key(d, key, value, range, size);
    (void)index;
    if (!wanted || *wanted) return wanted;
    if (strcmp(key, "ip") == 0) return cci__udp_parse_ip(value, d) ? NULL : "an IPv4 or IPv6 address";
    if (strcmp(key, "mac") == 0)
        return cci__udp_parse_mac(value, d) ? NULL : "a hardware address like 00:11:22:33:44:55";
    if (strcmp(key, "interface") == 0)
        return cci__udp_parse_names(value, d)
                   ? NULL
                   : "the name of an interface (1 to 15 characters), or up to four different ones, as in `eth0, eth1`";
    if (strcmp(key, "congestion") == 0)
        return cci__udp_copy_text(d->congestion, sizeof d->congestion, value) && cci_congestion_known(value)
                   ? NULL
                   : "a congestion control that cci.h has";
    if (strcmp(key, "progress") == 0)
        return cci__udp_parse_choice(value, "poll", "thread", &d->progress_thread) ? NULL : "thread or poll";
    if (strcmp(key, "offload") == 0) return cci__udp_parse_choice(value, "off", "on", &d->offload) ? NULL : "on or off";
    return "";
}

static int cci__udp_configure(const cci_transport_t *self, const char *name, const char *const *keys,
                              cci_device_desc_t *desc, int *bad_key, char *why, size_t why_size) {
    cci__udp_device d;
    cci__udp_search s;
    int status;
    memset(&d, 0, sizeof d);
    d.offload = 1;
    d.probe_idle_s = CCI__UDP_PROBE_IDLE_S;
    cci__udp_begin();
    status = cci_take_keys(self, keys, cci__udp_take_key, &d, bad_key, why, why_size);
    if (status != CCI_SUCCESS) return status;
    if (d.more_names[0][0] && (d.ip_family || d.mac_length || d.share)) {
        snprintf(why, why_size, "a device with several interfaces has no ip, no mac and no share");
        return CCI_EINVAL;
    }
    if (cci__udp_find(&d, &s)) {
        cci__udp_make_info(&d, &s.best);
    } else if (s.contradiction) {
        snprintf(why, why_size, "ip, mac and interface do not name the same interface (one of them is %s)",
                 s.other_name);
        return CCI_EINVAL;
    } else {
        memset(s.best.pci, 0xff, sizeof s.best.pci);
        s.best.mtu = 1500;
        snprintf(cci__udp_info, sizeof cci__udp_info, "there is no such interface now");
    }
    memset(desc, 0, sizeof *desc);
    cci__udp_make_desc(desc, &d, &s.best);
    desc->name = name;
    desc->info = cci__udp_info;
    desc->priority = 50;
    return CCI_SUCCESS;
}

static void cci__udp_refresh(const cci_transport_t *self, cci_device_desc_t *desc) {
    cci__udp_device d;
    cci__udp_search s;
    (void)self;
    memcpy(&d, desc->data, sizeof d);
    if (cci__udp_find(&d, &s))
        cci__udp_make_desc(desc, &d, &s.best);
    else if (cci_status_of_errno(errno) != CCI_ENOMEM) /* then nothing was learnt */
        desc->up = 0;
}

#if CCI__UDP_LINUX
/* ==================================================================================================================
 * >>udp-linux
 * ================================================================================================================== */

#define CCI__UDP_SLOT_NETLINK 100u
#define CCI__UDP_SLOT_OTHER 101u

static void cci__udp_watch(int set, int fd, uint32_t slot) {
    struct epoll_event e;
    memset(&e, 0, sizeof e);
    e.events = EPOLLIN;
    e.data.u32 = slot;
    if (set >= 0 && fd >= 0) epoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
}

/* Puts sockets and netlink in a set. */
static void cci__udp_watch_all(cci__udp_link *l, int set) {
    int i;
    for (i = 0; i < CCI__UDP_SOCKETS; i++) cci__udp_watch(set, l->socket[i].fd, (uint32_t)i);
    cci__udp_watch(set, l->waiter.netlink, CCI__UDP_SLOT_NETLINK);
}

/* A socket is about to be closed. It would leave the sets by itself, unless a child of fork() still has it. */
static void cci__udp_unwatch(cci__udp_link *l, int fd) {
    struct epoll_event unused;
    memset(&unused, 0, sizeof unused); /* old kernels want one */
    if (l->waiter.handle >= 0) epoll_ctl(l->waiter.handle, EPOLL_CTL_DEL, fd, &unused);
    if (l->waiter.sleeps) epoll_ctl(l->waiter.sleeper, EPOLL_CTL_DEL, fd, &unused);
}

/* A socket came or went. Called with the lock held. */
static void cci__udp_slot_changed(cci__udp_link *l, int slot) {
    if (!l->waiter.holds) cci__udp_watch(l->waiter.handle, l->socket[slot].fd, (uint32_t)slot);
    if (l->waiter.sleeps) cci__udp_watch(l->waiter.sleeper, l->socket[slot].fd, (uint32_t)slot);
}

/* Takes sockets and netlink out of the OS handle, or puts them in again. */
static void cci__udp_hold(void *link, int holds) {
    cci__udp_link *l = (cci__udp_link *)link;
    struct epoll_event unused;
    int i;
    memset(&unused, 0, sizeof unused);
    if (l->waiter.handle < 0 || l->waiter.holds == holds) return;
    cci__udp_lock(l);
    CCI__UDP_STORE(l->waiter.holds, holds);
    if (!holds) cci__udp_watch_all(l, l->waiter.handle);
    for (i = 0; holds && i < CCI__UDP_SOCKETS; i++)
        if (l->socket[i].fd >= 0) epoll_ctl(l->waiter.handle, EPOLL_CTL_DEL, l->socket[i].fd, &unused);
    if (holds && l->waiter.netlink >= 0) epoll_ctl(l->waiter.handle, EPOLL_CTL_DEL, l->waiter.netlink, &unused);
    cci__udp_unlock(l);
}

/* The route socket tells when interfaces or addresses change. -1 where it is forbidden: then `up` looks by itself. */
static int cci__udp_open_netlink(void) {
    struct {
        sa_family_t family;
        unsigned short pad;
        uint32_t pid, groups;
    } address;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0 /* NETLINK_ROUTE */);
    memset(&address, 0, sizeof address);
    address.family = AF_NETLINK;
    address.groups = 0x1u | 0x10u | 0x100u; /* RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR */
    if (fd >= 0 && bind(fd, (struct sockaddr *)(void *)&address, sizeof address) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* The program asks for news: then of routes too, which change often on a router. Without netlink there are none. */
static void cci__udp_watch_routes(void *link, int asked) {
    static const int groups[] = {7, 11}; /* RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE */
    const cci__udp_link *l = (const cci__udp_link *)link;
    const int option = asked ? 1 : 2; /* NETLINK_ADD_MEMBERSHIP, NETLINK_DROP_MEMBERSHIP */
    int i;
    for (i = 0; l->waiter.netlink >= 0 && i < 2; i++)
        (void)setsockopt(l->waiter.netlink, CCI__UDP_NETLINK, option, &groups[i], sizeof groups[i]);
}

/* A message of netlink: a route that is not the kernel's own (table 255: it follows an address) nor only remembered
 * (RTM_F_CLONED) has come, gone or changed. Anything else is news: `up` then asks for the whole truth about the
 * link's interface. */
static void cci__udp_hear_of(cci__udp_link *l, const uint8_t *message, uint32_t length) {
    const uint32_t rtm_at = 16, rtm_size = 12, newroute = 24, delroute = 25, local = 255, cloned = 0x200;
    uint32_t flags;
    uint16_t type;
    memcpy(&type, message + 4, sizeof type);
    if (type != newroute && type != delroute) {
        l->is_news = 1;
        return;
    }
    if (length < rtm_at + rtm_size) return;
    memcpy(&flags, message + rtm_at + 8, sizeof flags);
    if (message[rtm_at + 4] != local && !(flags & cloned)) l->state.route_changes++;
}

/* What the kernel tells; where it has dropped some of it, anything may have happened. */
static void cci__udp_drain_netlink(cci__udp_link *l) {
    uint8_t text[2048];
    ssize_t n;
    int turns = 64;
    if (l->waiter.netlink < 0) return;
    do {
        uint32_t length = 0, at;
        n = recvfrom(l->waiter.netlink, text, sizeof text, 0, NULL, NULL);
        if (n < 0 && errno == ENOBUFS) l->is_news = 1;
        for (at = 0; n >= 16 && at <= (uint32_t)n - 16; at += (length + 3) & ~3u) {
            memcpy(&length, text + at, sizeof length);
            if (length < 16 || length > (uint32_t)n - at) {
                l->is_news = 1; /* it was too long */
                break;
            }
            cci__udp_hear_of(l, text + at, length);
        }
    } while (--turns && (n >= 0 || errno == ENOBUFS || errno == EINTR));
}

static int cci__udp_waiter_open(cci__udp_link *l, int *os_handle) {
    cci__udp_waiter *w = &l->waiter;
    w->sleeper = epoll_create1(EPOLL_CLOEXEC);
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->netlink = cci__udp_open_netlink();
    w->handle = w->readable = w->timer = -1;
    w->armed_ns = UINT64_MAX;
    w->has_pwait2 = 1;
    cci__mutex_init(&w->lock);
    if (w->sleeper < 0 || w->wake < 0) return 0;
    cci__udp_watch(w->sleeper, w->wake, CCI__UDP_SLOT_OTHER);
    if (l->wants_handle) {
        w->handle = epoll_create1(EPOLL_CLOEXEC);
        w->readable = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (w->handle < 0 || w->readable < 0 || w->timer < 0) return 0;
        cci__udp_watch_all(l, w->handle);
        cci__udp_watch(w->handle, w->timer, CCI__UDP_SLOT_OTHER);
        cci__udp_watch(w->handle, w->readable, CCI__UDP_SLOT_OTHER);
        *os_handle = w->handle;
    }
    return 1;
}

static void cci__udp_waiter_drop(cci__udp_waiter *w) {
    cci__udp_drop(&w->handle);
    cci__udp_drop(&w->sleeper);
    cci__udp_drop(&w->wake);
    cci__udp_drop(&w->readable);
    cci__udp_drop(&w->timer);
    cci__udp_drop(&w->netlink);
}

static void cci__udp_waiter_close(cci__udp_link *l) {
    cci__udp_waiter *w = &l->waiter;
    cci__udp_waiter_drop(w);
    cci__mutex_destroy(&w->lock);
}

/* One system call tells all: a bit per socket that has something. Netlink is emptied on the way, so that it
 * doesn't keep the handle readable; a timer that has fired does, until `arm` names the next deadline. */
static uint32_t cci__udp_ready(cci__udp_link *l) {
    struct epoll_event e[CCI__UDP_SOCKETS + 3];
    uint32_t mask = 0;
    int i, n, set = l->waiter.handle;
    if (l->waiter.holds) set = -1;
    if (set < 0 && CCI__UDP_LOAD(l->waiter.sleeps)) set = l->waiter.sleeper;
    if (set < 0) return CCI__UDP_ALL_SOCKETS; /* nobody waits: try each */
    l->system_calls++;
    n = epoll_wait(set, e, (int)(sizeof e / sizeof e[0]), 0);
    for (i = 0; i < n; i++) {
        uint32_t slot = e[i].data.u32;
        if (slot == CCI__UDP_SLOT_NETLINK)
            cci__udp_drain_netlink(l);
        else if (slot < CCI__UDP_SOCKETS)
            mask |= 1u << slot;
    }
    return mask;
}

/* `receive` found nothing anywhere: the epoll sets know that by themselves. */
static void cci__udp_drained(cci__udp_link *l) {
    (void)l;
}

static void cci__udp_arm(void *link, int readable, uint64_t deadline_ns) {
    cci__udp_link *l = (cci__udp_link *)link;
    cci__udp_waiter *w = &l->waiter;
    ssize_t r = 0;
    if (w->handle < 0) return;
    readable = readable != 0;
    if (readable != w->is_readable) {
        uint64_t one = 1;
        l->system_calls++;
        r = readable ? write(w->readable, &one, sizeof one) : read(w->readable, &one, sizeof one);
        w->is_readable = readable;
    }
    (void)r;
    if (deadline_ns != w->armed_ns) { /* setting a timer that has fired also ends its being readable */
        struct itimerspec t;          /* zero turns the timer off */
        memset(&t, 0, sizeof t);
        if (deadline_ns == 0) deadline_ns = 1;
        if (deadline_ns != UINT64_MAX) {
            t.it_value.tv_sec = (time_t)(deadline_ns / 1000000000u);
            t.it_value.tv_nsec = (long)(deadline_ns % 1000000000u);
        }
        l->system_calls++;
        if (timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &t, NULL) == 0) w->armed_ns = deadline_ns;
    }
}

static void cci__udp_wait(void *link, uint64_t timeout_ns) {
    cci__udp_link *l = (cci__udp_link *)link;
    cci__udp_waiter *w = &l->waiter;
    struct epoll_event e[2];
    uint64_t count;
    ssize_t r;
    int n = -1;
    if (!CCI__UDP_LOAD(w->sleeps)) {
        cci__udp_lock(l);
        cci__udp_watch_all(l, w->sleeper);
        CCI__UDP_STORE(w->sleeps, 1);
        cci__udp_unlock(l);
    }
#ifdef SYS_epoll_pwait2
    if (CCI__UDP_LOAD(w->has_pwait2)) {
        struct {
            int64_t seconds, nanoseconds;
        } t; /* the kernel's struct __kernel_timespec */
        t.seconds = (int64_t)(timeout_ns / 1000000000u);
        t.nanoseconds = (int64_t)(timeout_ns % 1000000000u);
        n = (int)syscall(SYS_epoll_pwait2, w->sleeper, e, 2, timeout_ns == UINT64_MAX ? NULL : &t, NULL, (size_t)8);
        if (n < 0 && errno != EINTR) CCI__UDP_STORE(w->has_pwait2, 0);
    }
    if (!CCI__UDP_LOAD(w->has_pwait2))
#endif
    {
        uint64_t ms = timeout_ns / 1000000u + (timeout_ns % 1000000u != 0);
        n = epoll_wait(w->sleeper, e, 2, timeout_ns == UINT64_MAX ? -1 : ms > 1000000 ? 1000000 : (int)ms);
    }
    (void)n;
    r = read(w->wake, &count, sizeof count);
    (void)r;
    CCI__UDP_STORE(l->slept, 1);
}

static void cci__udp_wake(void *link) {
    cci__udp_link *l = (cci__udp_link *)link;
    uint64_t one = 1;
    ssize_t r = write(l->waiter.wake, &one, sizeof one);
    (void)r;
}

static int cci__udp_up(void *link) {
    cci__udp_link *l = (cci__udp_link *)link;
    cci__udp_drain_netlink(l);
    cci__udp_look_at_scout(l);
    if (l->is_news || (l->waiter.netlink < 0 && cci__udp_now(l) - l->looked_ns > 1000000000u)) {
        l->is_news = 0;
        l->looked_ns = cci__udp_now(l);
        l->is_up = cci__udp_look(l);
    }
    return l->is_up;
}

#else
/* ==================================================================================================================
 * >>udp-posix
 * ================================================================================================================== */

/* Puts the handle's byte in or takes it out. Called with the lock held. */
static void cci__udp_sync_handle(cci__udp_waiter *w) {
    int full = w->readable || w->reported || w->expired;
    if (full && !w->full)
        cci__udp_write_byte(w->handle);
    else if (!full && w->full)
        cci__udp_read_bytes(w->handle[0]);
    w->full = full;
}

/* Sockets and one more descriptor, for poll(); returns how many. Called with the lock held: groups come and go. */
static unsigned cci__udp_poll_set(cci__udp_link *l, int sockets, int other, struct pollfd *p, int *slot) {
    unsigned n = 0;
    int i;
    for (i = 0; sockets && i < CCI__UDP_SOCKETS; i++) {
        if (l->socket[i].fd >= 0) {
            p[n].fd = CCI__UDP_POLLED(l->socket[i].fd);
            p[n].events = POLLIN;
            p[n].revents = 0;
            slot[n++] = i;
        }
    }
    if (other >= 0) {
        p[n].fd = CCI__UDP_POLLED(other);
        p[n].events = POLLIN;
        p[n].revents = 0;
        slot[n++] = -1;
    }
    return n;
}

static int cci__udp_poll_ms(uint64_t timeout_ns) {
    uint64_t ms = timeout_ns / 1000000u + (timeout_ns % 1000000u != 0);
    return timeout_ns == UINT64_MAX ? -1 : ms > 1000000 ? 1000000 : (int)ms;
}

#ifndef CCI_NO_THREADS
static void cci__udp_handle_thread(void *link) {
    cci__udp_link *l = (cci__udp_link *)link;
    cci__udp_waiter *w = &l->waiter;
    struct pollfd p[CCI__UDP_SOCKETS + 1];
    int slot[CCI__UDP_SOCKETS + 1];
    cci__udp_lock(l);
    while (!w->stop) {
        uint64_t now = cci__udp_now(l), timeout = UINT64_MAX;
        unsigned n, i;
        if (!w->expired && w->deadline_ns != UINT64_MAX) timeout = w->deadline_ns > now ? w->deadline_ns - now : 0;
        n = cci__udp_poll_set(l, !w->reported && !w->holds, w->control[0], p, slot);
        cci__udp_unlock(l);
        cci__udp_poll(p, n, cci__udp_poll_ms(timeout));
        cci__udp_read_bytes(w->control[0]);
        cci__udp_lock(l);
        for (i = 0; i + 1 < n && !w->holds; i++) w->reported |= p[i].revents != 0; /* unless it is held by now */
        w->expired |= w->deadline_ns <= cci__udp_now(l);
        cci__udp_sync_handle(w);
    }
    cci__udp_unlock(l);
}
#endif

static int cci__udp_waiter_open(cci__udp_link *l, int *os_handle) {
    cci__udp_waiter *w = &l->waiter;
    w->wake[0] = w->wake[1] = w->handle[0] = w->handle[1] = w->control[0] = w->control[1] = -1;
    w->deadline_ns = UINT64_MAX;
    cci__mutex_init(&w->lock);
    if (!cci__udp_open_pipe(w->wake)) return 0;
#ifndef CCI_NO_THREADS
    if (l->wants_handle) {
        if (!cci__udp_open_pipe(w->handle) || !cci__udp_open_pipe(w->control) ||
            !cci__thread_start(&w->thread, cci__udp_handle_thread, l))
            return 0;
        w->has_thread = 1;
        *os_handle = w->handle[0];
    }
#else
    if (l->wants_handle) *os_handle = l->socket[0].fd;
#endif
    return 1;
}

static void cci__udp_waiter_drop(cci__udp_waiter *w) {
    int i;
    for (i = 0; i < 2; i++) {
        cci__udp_drop(&w->wake[i]);
        cci__udp_drop(&w->handle[i]);
        cci__udp_drop(&w->control[i]);
    }
}

static void cci__udp_waiter_close(cci__udp_link *l) {
    cci__udp_waiter *w = &l->waiter;
#ifndef CCI_NO_THREADS
    if (w->has_thread) {
        cci__udp_lock(l);
        w->stop = 1;
        cci__udp_unlock(l);
        cci__udp_write_byte(w->control);
        cci__thread_join(&w->thread);
    }
#endif
    cci__mutex_destroy(&w->lock);
    cci__udp_waiter_drop(w);
}

static void cci__udp_unwatch(cci__udp_link *l, int fd) {
    (void)l, (void)fd;
}

/* The handle is not readable any more when something is to be received, or again. */
static void cci__udp_hold(void *link, int holds) {
    cci__udp_link *l = (cci__udp_link *)link;
    cci__udp_waiter *w = &l->waiter;
    if (!w->has_thread || w->holds == holds) return;
    cci__udp_lock(l);
    w->holds = holds;
    if (holds) {
        w->reported = w->expired = 0;
        w->deadline_ns = UINT64_MAX;
    }
    cci__udp_sync_handle(w);
    cci__udp_write_byte(w->control);
    cci__udp_unlock(l);
}

/* A socket came or went: the thread must look again. Called with the lock held. */
static void cci__udp_slot_changed(cci__udp_link *l, int slot) {
    (void)slot;
    if (l->waiter.has_thread) cci__udp_write_byte(l->waiter.control);
}

/* A bit per socket that has something. */
static uint32_t cci__udp_ready(cci__udp_link *l) {
    struct pollfd p[CCI__UDP_SOCKETS + 1];
    int slot[CCI__UDP_SOCKETS + 1];
    uint32_t mask = 0;
    unsigned i, n = cci__udp_poll_set(l, 1, -1, p, slot);
    l->system_calls++;
    cci__udp_poll(p, n, 0);
    for (i = 0; i < n; i++) mask |= p[i].revents ? 1u << slot[i] : 0u;
    return mask;
}

/* `receive` found nothing anywhere: the thread may watch the sockets again. What arrived in between it sees at once. */
static void cci__udp_drained(cci__udp_link *l) {
    cci__udp_waiter *w = &l->waiter;
    if (!w->has_thread) return;
    cci__udp_lock(l);
    if (w->reported) {
        w->reported = 0;
        cci__udp_sync_handle(w);
        cci__udp_write_byte(w->control);
    }
    cci__udp_unlock(l);
}

static void cci__udp_arm(void *link, int readable, uint64_t deadline_ns) {
    cci__udp_link *l = (cci__udp_link *)link;
    cci__udp_waiter *w = &l->waiter;
    if (!w->has_thread) return;
    cci__udp_lock(l);
    w->readable = readable != 0;
    if (deadline_ns < w->deadline_ns || w->deadline_ns <= cci__udp_now(l)) {
        w->deadline_ns = deadline_ns;
        w->expired = 0;
        cci__udp_write_byte(w->control);
    }
    cci__udp_sync_handle(w);
    cci__udp_unlock(l);
}

static void cci__udp_wait(void *link, uint64_t timeout_ns) {
    cci__udp_link *l = (cci__udp_link *)link;
    struct pollfd p[CCI__UDP_SOCKETS + 1];
    int slot[CCI__UDP_SOCKETS + 1];
    unsigned n;
    cci__udp_lock(l);
    n = cci__udp_poll_set(l, 1, l->waiter.wake[0], p, slot);
    cci__udp_unlock(l);
    cci__udp_poll(p, n, cci__udp_poll_ms(timeout_ns));
    cci__udp_read_bytes(l->waiter.wake[0]);
    CCI__UDP_STORE(l->slept, 1);
}

static void cci__udp_wake(void *link) {
    cci__udp_link *l = (cci__udp_link *)link;
    cci__udp_write_byte(l->waiter.wake);
}

/* Without news from the system, look once a second. */
static int cci__udp_up(void *link) {
    cci__udp_link *l = (cci__udp_link *)link;
    uint64_t now = cci__udp_now(l);
    cci__udp_look_at_scout(l);
    if (l->is_news || now - l->looked_ns > 1000000000u) {
        l->is_news = 0;
        l->looked_ns = now;
        l->is_up = cci__udp_look(l);
    }
    return l->is_up;
}
#endif /* CCI__UDP_LINUX */

/* ==================================================================================================================
 * >>udp-send
 *
 * A single datagram costs one system call and nothing else. Of several, those with the same destination and length (the
 * last may be shorter) become one message that the kernel or the adapter cuts up, and up to 16 such messages go in one
 * call. Where the kernel refuses, the datagrams of that message go one by one.
 * ================================================================================================================== */

/* 1: the datagram is lost, go on; 0: the system has no room, try again later. */
static int cci__udp_send_failed(cci__udp_link *l, const cci_link_addr_t *to, int error) {
    if (error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM) return 0;
    l->lost++;
    if (error == ENETDOWN || error == ENODEV || error == EADDRNOTAVAIL || error == ENETUNREACH) l->is_news = 1;
    if (!l->warned_send && error != EMSGSIZE && error != ECONNREFUSED) {
        char text[128] = "sending to ";
        int expected = error == EHOSTUNREACH || error == ENETUNREACH || error == ENETDOWN;
        cci__udp_addr_text(to, text + 11, sizeof text - 11);
        cci__udp_log(expected ? CCI_LOG_INFO : CCI_LOG_WARN, l->interface_.name, text, error);
        l->warned_send = 1;
    }
    return 1;
}

#if CCI__UDP_LINUX
/* The codepoint that a socket's datagrams leave with from now on; 0 when it can't be. */
static int cci__udp_mark(cci__udp_socket *s, uint32_t codepoint) {
    int value = (int)codepoint;
    s->codepoint = codepoint; /* a kernel that refuses it now would do so again */
    return s->family == 4 ? setsockopt(s->fd, IPPROTO_IP, CCI__UDP_IP_TOS, &value, sizeof value) == 0
                          : setsockopt(s->fd, IPPROTO_IPV6, CCI__UDP_IPV6_TCLASS, &value, sizeof value) == 0;
}
#endif

/* The socket for a datagram, NULL when it can't be sent. */
static cci__udp_socket *cci__udp_way(cci__udp_link *l, const cci_link_tx_t *tx) {
    int v6 = tx->to->bytes[0] == 6;
    return tx->length <= l->largest[v6] ? l->of_family[tx->to->bytes[1] % CCI_LINK_INTERFACES][v6] : NULL;
}

/* 1: taken (sent or lost), 0: no room. */
static int cci__udp_send_one(cci__udp_link *l, const cci_link_tx_t *tx) {
    cci__udp_socket *s = cci__udp_way(l, tx);
    cci__udp_sockaddr to;
    socklen_t to_size;
    int r;
    if (!s) return 1;
#if CCI__UDP_LINUX
    if (tx->codepoint != s->codepoint) (void)cci__udp_mark(s, tx->codepoint);
#endif
    to_size = cci__udp_to_system(&to, tx->to);
    do {
        r = cci__udp_put(s->fd, tx, &to, to_size);
        l->system_calls++;
    } while (r < 0 && errno == EINTR);
    return r >= 0 ? 1 : cci__udp_send_failed(l, tx->to, errno);
}

#if CCI__UDP_LINUX
/* How many of the datagrams from the first on can travel as one message. */
static int cci__udp_run(const cci__udp_link *l, const cci_link_tx_t *tx, int count, int pieces_left) {
    uint32_t length = tx->length, bytes = length;
    uint32_t most = tx->to->bytes[0] == 6 ? CCI__UDP_BATCH_V6 : CCI__UDP_BATCH_V4;
    int n = 1, pieces = (int)tx->piece_count;
    if (!l->gso || length == 0) return 1;
    count = count < CCI__UDP_SEGMENTS ? count : CCI__UDP_SEGMENTS;
    for (; n < count && tx[n].length <= length && tx[n].length > 0; n++) {
        if (tx[n].to != tx->to && memcmp(tx[n].to, tx->to, sizeof *tx->to) != 0) break;
        if (tx[n].codepoint != tx->codepoint) break;
        bytes += tx[n].length;
        pieces += (int)tx[n].piece_count;
        if (bytes > most || pieces > pieces_left) break;
        if (tx[n].length < length) return n + 1; /* a shorter one can only be the last */
    }
    return n;
}

/* Lays out message number m from n datagrams with their pieces at `piece`; returns the pieces used. */
static int cci__udp_lay_out(cci__udp_link *l, int m, const cci_link_tx_t *tx, int n, struct iovec *piece) {
    cci__udp_out *o = &l->out;
    struct msghdr *h = &o->message[m].header;
    unsigned short used = 0;
    uint8_t *end = NULL;
    int i, may_copy = n > 1 && tx->length <= CCI__UDP_SHORT;
    uint32_t j;
    for (i = 0; i < n && !(may_copy && used * 2 > n); i++) {
        if (tx[i].piece_count == 1 && tx[i].piece[0].data == end) { /* often a batch lies in one piece */
            piece[used - 1].iov_len += tx[i].length;
            end += tx[i].length;
            continue;
        }
        for (j = 0; j < tx[i].piece_count; j++) {
            uint8_t *data = (uint8_t *)(uintptr_t)tx[i].piece[j].data; /* sendmsg only reads */
            if (used > 0 && data == end) {
                piece[used - 1].iov_len += tx[i].piece[j].length;
            } else {
                piece[used].iov_base = data;
                piece[used++].iov_len = tx[i].piece[j].length;
            }
            end = data + tx[i].piece[j].length;
        }
    }
    if (may_copy && used * 2 > n) {
        /* The kernel copies one long piece much faster than many short ones, and this copy stays in the cache. */
        uint8_t *at = o->flat + o->flat_used;
        piece[0].iov_base = at;
        for (i = 0; i < n; i++) {
            for (j = 0; j < tx[i].piece_count; j++) {
                memcpy(at, tx[i].piece[j].data, tx[i].piece[j].length);
                at += tx[i].piece[j].length;
            }
        }
        piece[0].iov_len = (size_t)(at - (uint8_t *)piece[0].iov_base);
        o->flat_used += (uint32_t)piece[0].iov_len;
        used = 1;
    }
    memset(h, 0, sizeof *h);
    h->msg_name = &o->to[m];
    h->msg_namelen = cci__udp_to_system(&o->to[m], tx->to);
    h->msg_iov = piece;
    h->msg_iovlen = used;
    o->run[m] = n;
    if (n > 1) {
        struct cmsghdr *c = (struct cmsghdr *)(void *)&o->control[m];
        uint16_t segment = (uint16_t)tx->length;
        memset(&o->control[m], 0, sizeof o->control[m]);
        c->cmsg_level = CCI__UDP_SOL_UDP;
        c->cmsg_type = CCI__UDP_SEGMENT;
        c->cmsg_len = (unsigned short)CMSG_LEN(sizeof segment);
        memcpy(CMSG_DATA(c), &segment, sizeof segment);
        h->msg_control = c;
        h->msg_controllen = (unsigned short)CMSG_SPACE(sizeof segment);
    }
    return used;
}

/* Lays out as many messages for one socket as one call takes; returns how many. */
static int cci__udp_fill(cci__udp_link *l, const cci__udp_socket *s, const cci_link_tx_t *tx, int count) {
    int most = l->mmsg ? CCI__UDP_OUT_MESSAGES : 1;
    int m = 0, done = 0, pieces = 0;
    l->out.flat_used = 0;
    while (m < most && done < count && pieces + 3 <= CCI__UDP_OUT_PIECES &&
           l->out.flat_used + CCI__UDP_BATCH_V4 <= CCI__UDP_FLAT) {
        int n;
        if (cci__udp_way(l, &tx[done]) != s || tx[done].codepoint != tx->codepoint) break;
        n = cci__udp_run(l, &tx[done], count - done, CCI__UDP_OUT_PIECES - pieces);
        pieces += cci__udp_lay_out(l, m, &tx[done], n, l->out.piece + pieces);
        done += n;
        m++;
    }
    return m;
}

/* The kernel refused an offloaded message: send its datagrams singly, and learn whether the offload is to blame. */
static int cci__udp_send_singly(cci__udp_link *l, const cci_link_tx_t *tx, int count, int error) {
    uint32_t lost = l->lost;
    int i = 0;
    while (i < count && cci__udp_send_one(l, &tx[i])) i++;
    if (error == EINVAL && l->lost != lost)
        error = EMSGSIZE; /* they are too long for the interface, with and without */
    if (error == EIO || error == EINVAL || error == EOPNOTSUPP || error == ENOSYS || error == ENOPROTOOPT) {
        cci__udp_log(CCI_LOG_INFO, l->interface_.name, "segmentation offload is off", error);
        l->gso = 0;
    }
    return i;
}

/* Sends the messages laid out; returns the datagrams taken. Sets *full when the system has no room for more. */
static int cci__udp_push(cci__udp_link *l, const cci__udp_socket *s, int messages, const cci_link_tx_t *tx, int *full) {
    cci__udp_out *o = &l->out;
    int m = 0, taken = 0;
    while (m < messages && !*full) {
        int n, error;
        l->system_calls++;
        if (messages - m > 1 && l->mmsg) {
#ifdef SYS_sendmmsg
            n = (int)syscall(SYS_sendmmsg, s->fd, &o->message[m], messages - m, 0);
#else
            n = -1, errno = ENOSYS;
#endif
        } else {
            n = sendmsg(s->fd, &o->message[m].header, 0) >= 0 ? 1 : -1;
        }
        for (; n > 0; n--) taken += o->run[m++];
        if (n == 0) continue;
        error = errno;
        if (error == ENOSYS && l->mmsg) {
            l->mmsg = 0;
        } else if (error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM) {
            *full = 1;
        } else if (o->run[m] > 1 && error != EINTR) {
            n = cci__udp_send_singly(l, tx + taken, o->run[m], error);
            *full = n < o->run[m++];
            taken += n;
        } else if (error != EINTR) {
            cci__udp_send_failed(l, tx[taken].to, error);
            taken++, m++;
        }
    }
    return taken;
}
#endif

static int cci__udp_send(void *link, const cci_link_tx_t *tx, int count) {
    cci__udp_link *l = (cci__udp_link *)link;
    int taken = 0, full = 0;
#if CCI__UDP_LINUX
    while (count - taken > 1 && (l->mmsg || l->gso)) {
        const cci_link_tx_t *next = &tx[taken];
        cci__udp_socket *s = cci__udp_way(l, next);
        if (!s) {
            taken++; /* lost */
            continue;
        }
        if (next->codepoint != s->codepoint) (void)cci__udp_mark(s, next->codepoint);
        taken += cci__udp_push(l, s, cci__udp_fill(l, s, next, count - taken), next, &full);
        if (full) return taken;
    }
#else
    (void)full;
#endif
    while (taken < count && cci__udp_send_one(l, &tx[taken])) taken++;
    return taken;
}

/* ==================================================================================================================
 * >>udp-share
 *
 * Several endpoints, the members, have one address. The kernel gives a datagram to the socket at some position among
 * theirs; a program of its packet filter, which any member may replace, reads the member's number from the upper 8 bits
 * of the receiver's index and returns the position of that member's socket. A request is for the member whose place in
 * the list of living members, ordered by number, is the request's token modulo the length of the list, so that repeats
 * and pieces of a request reach the same member. What else names no receiver, and what is for a member whose position
 * is not known, goes where the kernel's hash of both addresses says.
 *
 * The kernel looks at the first datagram alone of several that travel as one (GSO, GRO). Whoever gets the others hands
 * them over, requests as well: by its own list of living members, which is at most 10 ms old. A member lives while its
 * mailbox exists, and gets requests as mail once some has come from it: mail of another user does not count. Whoever
 * gets a request as mail keeps it, so that it is handed over at most once, also while two lists differ because a member
 * has just come or gone. Where the kernel takes no program, requests stay where its hash takes them.
 *
 * Each member has a mailbox: a Unix socket with an abstract name of interface, port and member. So no number is taken
 * twice, and the name ends with its process, however that ends. What a member receives for another it sends to that
 * one's mailbox. Correctness rests on this alone; the program only saves the work. The kernel vouches for the user that
 * mail comes from, and mail of other users is dropped.
 *
 * When a socket is closed, the last one takes its position. Nobody keeps an account of that: a member that joins, is
 * told that another has left, or gets what the program should have given to another, measures. It sends probes to the
 * address itself, one for each position; the program takes the position from the probe, and whoever receives it answers
 * to the mailbox of the member that asks. Behind the last position the kernel's hash chooses a member that has answered
 * before. With each answer the program is made anew of all that is known. Nothing here waits for another member.
 *
 *       0      1          2         3      4         8                                     24
 *      ┌──────┬──────────┬─────────┬──────┬─────────┬─────────────────────────────────────┐
 *      │ 0xC0 │ position │ who asks│ slot │ round   │ 0                                   │  probe
 *      └──────┴──────────┴─────────┴──────┴─────────┴─────────────────────────────────────┘
 * ================================================================================================================== */

#define CCI__UDP_PROBE 0xC0
#define CCI__UDP_PROBES 8u                    /* positions that are asked for at a time */
#define CCI__UDP_PATIENCE_NS 10000000u        /* from one measurement to the next, ...           */
#define CCI__UDP_MOST_PATIENCE_NS 5000000000u /* ... doubling while nothing new is found         */
#define CCI__UDP_LISTED_NS 10000000u          /* a list of living members is used that long      */

#if CCI__UDP_LINUX

/* What stands in front of each mail; both sides are on this machine. */
typedef struct cci__udp_mail {
    uint8_t kind, sender;
    uint8_t slot, position; /* POSITION: which socket of the sender is where; PACKETS: position is their codepoint */
    uint32_t number;        /* POSITION: the round; PACKETS: bytes of each but the last; LEFT: 1: another measures;
                               JOINED: 1: an answer to one */
    cci_link_addr_t from;   /* PACKETS: where they came from */
} cci__udp_mail;

enum { CCI__UDP_MAIL_PACKETS = 1, CCI__UDP_MAIL_POSITION, CCI__UDP_MAIL_LEFT, CCI__UDP_MAIL_JOINED };

typedef struct cci__udp_filter { /* the kernel's struct sock_filter */
    uint16_t code;
    uint8_t if_true, if_false;
    uint32_t k;
} cci__udp_filter;

#define CCI__UDP_FILTERS (19u + 4u * CCI__UDP_MEMBERS)

static socklen_t cci__udp_mailbox(const cci__udp_link *l, uint32_t member, struct sockaddr_un *a) {
    int length;
    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    length = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "cci-udp %u %u %u", (unsigned)l->interface_.index,
                      (unsigned)l->port, (unsigned)member);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Sends mail in pieces to a member; 0 when it is gone, or has too much. */
static int cci__udp_send_pieces(cci__udp_link *l, uint32_t member, struct iovec *piece, uint32_t count) {
    struct sockaddr_un to;
    struct msghdr h;
    memset(&h, 0, sizeof h);
    h.msg_namelen = cci__udp_mailbox(l, member, &to);
    h.msg_name = &to;
    h.msg_iov = piece;
    h.msg_iovlen = (unsigned short)count;
    l->system_calls++;
    return sendmsg(l->socket[CCI__UDP_MAIL].fd, &h, 0) >= 0;
}

static int cci__udp_send_mail(cci__udp_link *l, uint32_t member, const cci__udp_mail *mail) {
    struct iovec piece;
    piece.iov_base = (void *)(uintptr_t)mail; /* sendmsg only reads */
    piece.iov_len = sizeof *mail;
    return cci__udp_send_pieces(l, member, &piece, 1);
}

/* Tells a member that this one has come, or goes. */
static int cci__udp_send_news(cci__udp_link *l, uint32_t member, uint8_t kind, uint32_t number) {
    cci__udp_mail mail;
    memset(&mail, 0, sizeof mail);
    mail.kind = kind;
    mail.sender = (uint8_t)l->share.member;
    mail.number = number;
    return cci__udp_send_mail(l, member, &mail);
}

/* ---- steering ---- */

/* Instructions of the kernel's packet filters: class, size, operation. */
enum {
    CCI__BPF_LENGTH = 0x80,
    CCI__BPF_WORD = 0x20,
    CCI__BPF_BYTE = 0x30,
    CCI__BPF_MODULO = 0x94,
    CCI__BPF_AT_LEAST = 0x35,
    CCI__BPF_EQUAL = 0x15,
    CCI__BPF_JUMP = 0x05,
    CCI__BPF_RETURN = 0x06,
    CCI__BPF_RETURN_IT = 0x16
};

static uint32_t cci__udp_add_filter(cci__udp_filter *at, uint32_t n, uint16_t code, uint32_t k, uint8_t if_true,
                                    uint8_t if_false) {
    at[n].code = code;
    at[n].if_true = if_true;
    at[n].if_false = if_false;
    at[n].k = k;
    return n + 1;
}

/* Lists the members that live: those whose mailbox exists. Connecting tells it, and disturbs nobody. One from which no
 * mail has come yet is asked for some: it may be of another user. Without a socket the list stays as it is. */
static void cci__udp_list_members(cci__udp_link *l) {
    cci__udp_share *s = &l->share;
    struct sockaddr_un a;
    uint32_t member;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    s->listed_ns = cci__udp_now(l);
    s->living_count = s->unknown_count = 0;
    for (member = 0; member < CCI__UDP_MEMBERS; member++) {
        socklen_t size = cci__udp_mailbox(l, member, &a);
        if (member == s->member || connect(fd, (const struct sockaddr *)(const void *)&a, size) == 0) {
            s->living[s->living_count++] = (uint8_t)member;
            if (s->known[member]) continue;
            s->unknown_count++;
            cci__udp_send_news(l, member, CCI__UDP_MAIL_JOINED, 0);
        } else if (s->known[member]) {
            s->known[member] = 0;
            s->astray = 1; /* sockets have other positions now */
        }
    }
    close(fd);
}

/* Adds to a program: when the accumulator is `number`, the position of a member, if it is known, is the result. */
static uint32_t cci__udp_add_position(const cci__udp_link *l, int slot, uint32_t number, uint32_t member,
                                      cci__udp_filter *f, uint32_t n) {
    if (l->share.position[slot][member] == 0) return n;
    n = cci__udp_add_filter(f, n, CCI__BPF_EQUAL, number, 0, 1);
    return cci__udp_add_filter(f, n, CCI__BPF_RETURN, l->share.position[slot][member] - 1u, 0, 0);
}

/* The program for the sockets of one slot; returns its instructions. It sees what is behind the UDP header. A position
 * that does not exist leaves the choice to the kernel's hash. */
static uint32_t cci__udp_make_program(const cci__udp_link *l, int slot, cci__udp_filter *f) {
    const uint32_t hash = 0xffffffffu;
    const cci__udp_share *s = &l->share;
    uint32_t n = 0, i, jump;
    n = cci__udp_add_filter(f, n, CCI__BPF_LENGTH, 0, 0, 0);
    n = cci__udp_add_filter(f, n, CCI__BPF_AT_LEAST, CCI_PACKET_HEADER, 1, 0);
    n = cci__udp_add_filter(f, n, CCI__BPF_RETURN, hash, 0, 0);
    n = cci__udp_add_filter(f, n, CCI__BPF_BYTE, 0, 0, 0);
    n = cci__udp_add_filter(f, n, CCI__BPF_EQUAL, CCI__UDP_PROBE, 0, 2);
    n = cci__udp_add_filter(f, n, CCI__BPF_BYTE, 1, 0, 0);
    n = cci__udp_add_filter(f, n, CCI__BPF_RETURN_IT, 0, 0, 0);
    n = cci__udp_add_filter(f, n, CCI__BPF_EQUAL, CCI_PACKET_VERSION, 1, 0);
    n = cci__udp_add_filter(f, n, CCI__BPF_RETURN, hash, 0, 0);
    n = cci__udp_add_filter(f, n, CCI__BPF_BYTE, 1, 0, 0);
    n = cci__udp_add_filter(f, n, CCI__BPF_EQUAL, CCI_PACKET_REQUEST, 1, 0);
    jump = n;
    n = cci__udp_add_filter(f, n, CCI__BPF_JUMP, 0, 0, 0);
    n = cci__udp_add_filter(f, n, CCI__BPF_WORD, CCI_PACKET_TOKEN, 0, 0);
    n = cci__udp_add_filter(f, n, CCI__BPF_MODULO, s->living_count, 0, 0);
    for (i = 0; i < s->living_count; i++) n = cci__udp_add_position(l, slot, i, s->living[i], f, n);
    n = cci__udp_add_filter(f, n, CCI__BPF_RETURN, hash, 0, 0);
    f[jump].k = n - jump - 1;
    n = cci__udp_add_filter(f, n, CCI__BPF_EQUAL, CCI_PACKET_GROUP, 0, 1);
    n = cci__udp_add_filter(f, n, CCI__BPF_RETURN, hash, 0, 0);
    n = cci__udp_add_filter(f, n, CCI__BPF_BYTE, 7, 0, 0);
    for (i = 0; i < CCI__UDP_MEMBERS; i++) n = cci__udp_add_position(l, slot, i, i, f, n);
    return cci__udp_add_filter(f, n, CCI__BPF_RETURN, hash, 0, 0);
}

/* Gives the kernel a program of all positions that are known. */
static void cci__udp_steer(cci__udp_link *l) {
    cci__udp_filter filter[CCI__UDP_FILTERS];
    struct {
        unsigned short count;
        cci__udp_filter *filter;
    } program; /* the kernel's struct sock_fprog */
    int slot;
    l->share.answered = 0;
    if (!l->share.refused) cci__udp_list_members(l);
    for (slot = 0; slot < 2 && !l->share.refused; slot++) {
        if (!l->socket[slot].is_shared) continue;
        program.count = (unsigned short)cci__udp_make_program(l, slot, filter);
        program.filter = filter;
        if (setsockopt(l->socket[slot].fd, SOL_SOCKET, CCI__UDP_ATTACH, &program, sizeof program) != 0) {
            l->share.refused = 1;
            cci__udp_log(CCI_LOG_WARN, l->interface_.name,
                         "the kernel does not take packets to the endpoint of their connection: they are handed over",
                         errno);
        }
    }
}

/* Asks for the next positions of one slot. */
static void cci__udp_probe(cci__udp_link *l, int slot) {
    uint8_t probe[CCI_PACKET_HEADER];
    cci_link_addr_t own;
    cci__udp_sockaddr to;
    socklen_t to_size;
    uint32_t end = l->share.asked[slot] + CCI__UDP_PROBES;
    cci__udp_own_addr(l, slot, l->port, &own);
    to_size = cci__udp_to_system(&to, &own);
    memset(probe, 0, sizeof probe);
    probe[0] = CCI__UDP_PROBE;
    probe[2] = (uint8_t)l->share.member;
    probe[3] = (uint8_t)slot;
    memcpy(probe + 4, &l->share.round, 4);
    for (; l->share.asked[slot] < end && l->share.asked[slot] < CCI__UDP_MEMBERS; l->share.asked[slot]++) {
        probe[1] = (uint8_t)l->share.asked[slot];
        if (sendto(l->socket[slot].fd, probe, sizeof probe, 0, &to.any, to_size) < 0)
            return; /* whatever goes astray leads to another measurement */
    }
}

/* Begins to measure which member's socket is at which position. */
static void cci__udp_measure(cci__udp_link *l) {
    cci__udp_share *s = &l->share;
    int slot;
    s->round++;
    s->asked_ns = cci__udp_now(l);
    s->patience_ns = s->patience_ns * 2 < CCI__UDP_MOST_PATIENCE_NS ? s->patience_ns * 2 : CCI__UDP_MOST_PATIENCE_NS;
    memset(s->seen, 0, sizeof s->seen);
    for (slot = 0; slot < 2 && !s->refused; slot++) {
        s->asked[slot] = 0;
        if (l->socket[slot].is_shared) cci__udp_probe(l, slot);
    }
}

/* A member tells that a probe for a position has reached it. The hash gives it those behind the last position too. */
static void cci__udp_note_position(cci__udp_link *l, int slot, uint32_t position, uint32_t member, uint32_t round) {
    cci__udp_share *s = &l->share;
    int is_first;
    if (slot >= 2 || round != s->round) return;
    is_first = !s->seen[slot][member];
    if (!is_first && position + 1u >= s->position[slot][member]) return;
    if (s->position[slot][member] != position + 1u) s->patience_ns = CCI__UDP_PATIENCE_NS;
    s->seen[slot][member] = 1;
    s->position[slot][member] = (uint16_t)(position + 1u);
    s->answered = 1;
    if (is_first && position + CCI__UDP_PROBES / 2 >= s->asked[slot]) cci__udp_probe(l, slot);
}

/* Answers a probe of a member; 0 when the datagram is something else. */
static int cci__udp_answer_probe(cci__udp_link *l, const cci_link_rx_t *rx, int slot) {
    const uint8_t *probe = rx->data;
    cci__udp_mail mail;
    cci_link_addr_t own;
    uint32_t round;
    if (rx->length != CCI_PACKET_HEADER || probe[0] != CCI__UDP_PROBE) return 0;
    cci__udp_own_addr(l, slot, l->port, &own);
    if (memcmp(&own, &rx->from, sizeof own) != 0) return 0; /* not one that shares it */
    memcpy(&round, probe + 4, 4);
    if (probe[2] == l->share.member) {
        cci__udp_note_position(l, probe[3], probe[1], l->share.member, round);
        return 1;
    }
    memset(&mail, 0, sizeof mail);
    mail.kind = CCI__UDP_MAIL_POSITION;
    mail.sender = (uint8_t)l->share.member;
    mail.position = probe[1];
    mail.slot = probe[3];
    mail.number = round;
    cci__udp_send_mail(l, probe[2], &mail);
    return 1;
}

/* Something came that was for another: the program is missing, or has positions that are no more. Or members have told
 * their positions, or some have not answered yet. */
static void cci__udp_steer_again(cci__udp_link *l) {
    int was_astray;
    if (l->share.unknown_count > 0 && cci__udp_now(l) - l->share.listed_ns >= l->share.pause_ns) {
        l->share.pause_ns = 2 * l->share.pause_ns + CCI__UDP_PATIENCE_NS;
        cci__udp_list_members(l);
    }
    was_astray = l->share.astray;
    l->share.astray = 0;
    if (l->share.answered) cci__udp_steer(l);
    if (was_astray && cci__udp_now(l) - l->share.asked_ns >= l->share.patience_ns) cci__udp_measure(l);
}

/* ---- handing over ---- */

/* The member that a datagram names; what names no receiver is for whoever got it. */
static uint32_t cci__udp_receiver(const cci__udp_link *l, const uint8_t *bytes, uint32_t length) {
    if (length < CCI_PACKET_HEADER || bytes[0] != CCI_PACKET_VERSION || bytes[1] == CCI_PACKET_REQUEST ||
        bytes[1] == CCI_PACKET_GROUP)
        return l->share.member;
    return bytes[CCI__UDP_MEMBER_SHIFT / 8 + 4];
}

/* The member that the datagram at `at` is for, a request by its token. */
static uint32_t cci__udp_owner(cci__udp_link *l, const cci_link_rx_t *rx, uint32_t at, uint32_t step) {
    cci__udp_share *s = &l->share;
    const uint8_t *bytes = rx->data + at, *token = bytes + CCI_PACKET_TOKEN;
    uint32_t length = rx->length - at < step ? rx->length - at : step, member;
    if (length < CCI_PACKET_HEADER || bytes[0] != CCI_PACKET_VERSION || bytes[1] != CCI_PACKET_REQUEST || s->refused)
        return cci__udp_receiver(l, bytes, length);
    if (cci__udp_now(l) - s->listed_ns > CCI__UDP_LISTED_NS) cci__udp_list_members(l);
    member = s->living[((uint32_t)token[0] << 24 | (uint32_t)token[1] << 16 | (uint32_t)token[2] << 8 | token[3]) %
                       s->living_count];
    return s->known[member] ? member : s->member;
}

/* Sends what a buffer has for a member, from the datagram at `at` on, to that one, and closes the gaps; 0 when it is
 * gone, or has too much. Nobody answers for it then, and its peer repeats a request. */
static int cci__udp_hand_over(cci__udp_link *l, uint32_t owner, cci_link_rx_t *rx, uint32_t at, uint32_t step) {
    struct iovec piece[1 + CCI__UDP_SEGMENTS];
    uint32_t count = 1, kept = at, next, i;
    const uint8_t *end = rx->data + rx->length;
    int is_sent;
    cci__udp_mail mail;
    memset(&mail, 0, sizeof mail);
    mail.kind = CCI__UDP_MAIL_PACKETS;
    mail.sender = (uint8_t)l->share.member;
    mail.number = step;
    mail.position = (uint8_t)rx->codepoint;
    mail.from = rx->from;
    piece[0].iov_base = &mail;
    piece[0].iov_len = sizeof mail;
    for (; at < rx->length; at = next) {
        next = rx->length - at < step ? rx->length : at + step;
        if (at > kept && cci__udp_owner(l, rx, at, step) != owner) continue;
        if (count > 1 && (uint8_t *)piece[count - 1].iov_base + piece[count - 1].iov_len == rx->data + at) {
            piece[count - 1].iov_len += next - at;
        } else if (count <= CCI__UDP_SEGMENTS) {
            piece[count].iov_base = rx->data + at;
            piece[count++].iov_len = next - at;
        } else {
            break;
        }
    }
    is_sent = cci__udp_send_pieces(l, owner, piece, count);
    for (i = 1; i < count; i++) {
        const uint8_t *from = (uint8_t *)piece[i].iov_base + piece[i].iov_len;
        const uint8_t *to = i + 1 < count ? (uint8_t *)piece[i + 1].iov_base : end;
        memmove(rx->data + kept, from, (size_t)(to - from));
        kept += (uint32_t)(to - from);
    }
    rx->length = kept;
    return is_sent;
}

/* Of what has come to a shared address, what is for other members goes to them, and this one's stays. */
static void cci__udp_sort(cci__udp_link *l, int slot, cci_link_rx_t *rx) {
    uint32_t step = rx->segment ? rx->segment : rx->length, at = 0;
    const uint32_t length = rx->length;
    if (cci__udp_answer_probe(l, rx, slot)) {
        rx->length = 0;
        return;
    }
    while (at < rx->length) {
        uint32_t owner = cci__udp_owner(l, rx, at, step);
        int is_first = at == 0 && rx->length == length;
        if (owner == l->share.member) {
            at += step;
        } else if (cci__udp_hand_over(l, owner, rx, at, step)) {
            l->share.handed_over++;
            l->share.astray |= is_first; /* the kernel goes by the first of several */
        } else {
            l->share.unclaimed++;
            l->share.listed_ns = 0; /* who is gone is for no request */
        }
    }
    rx->segment = rx->length < step ? rx->length : step;
}

/* Packets that another member has handed over; 0 when they are none for this one. */
static int cci__udp_take_over(const cci__udp_link *l, const cci__udp_mail *mail, cci_link_rx_t *rx, uint32_t length) {
    uint32_t at, step = mail->number;
    if (length == 0 || length > rx->capacity || step == 0 || (mail->from.bytes[0] != 4 && mail->from.bytes[0] != 6))
        return 0;
    for (at = 0; at < length; at += length - at < step ? length - at : step)
        if (cci__udp_receiver(l, rx->data + at, length - at < step ? length - at : step) != l->share.member) return 0;
    rx->length = length;
    rx->segment = step < length ? step : length;
    rx->is_group = 0;
    rx->codepoint = mail->position & 3;
    rx->from = mail->from;
    return 1;
}

/* 1 when the kernel says that a mail is of this process' user. Whoever sends descriptors along loses them: there is no
 * room for these in the control message. */
static int cci__udp_is_trusted(const struct msghdr *h) {
    const struct cmsghdr *c = h->msg_controllen >= sizeof(struct cmsghdr) ? CMSG_FIRSTHDR(h) : NULL;
    uint32_t who[3]; /* the kernel's struct ucred: process, user, group */
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != CCI__UDP_SCM_CREDENTIALS ||
        c->cmsg_len < CMSG_LEN(sizeof who))
        return 0;
    memcpy(who, CMSG_DATA(c), sizeof who);
    return who[1] == (uint32_t)getuid();
}

/* Takes mail; returns how many buffers got packets. */
static int cci__udp_take_mail(cci__udp_link *l, cci_link_rx_t *rx, int count) {
    int got = 0, turns;
    for (turns = 0; turns < 2 * CCI__UDP_IN_MESSAGES && got < count; turns++) {
        cci__udp_control control;
        cci__udp_mail mail;
        struct iovec piece[2];
        struct msghdr h;
        ssize_t n;
        memset(&h, 0, sizeof h);
        piece[0].iov_base = &mail;
        piece[0].iov_len = sizeof mail;
        piece[1].iov_base = rx[got].data;
        piece[1].iov_len = rx[got].capacity;
        h.msg_iov = piece;
        h.msg_iovlen = 2;
        h.msg_control = &control;
        h.msg_controllen = CMSG_SPACE(3 * sizeof(uint32_t));
        l->system_calls++;
        n = recvmsg(l->socket[CCI__UDP_MAIL].fd, &h, 0);
        if (n < 0) break;
        if ((size_t)n < sizeof mail || (h.msg_flags & MSG_TRUNC) || !cci__udp_is_trusted(&h)) continue;
        l->share.known[mail.sender] = mail.kind != CCI__UDP_MAIL_LEFT;
        if (mail.kind == CCI__UDP_MAIL_JOINED || mail.kind == CCI__UDP_MAIL_LEFT)
            l->share.listed_ns = l->share.pause_ns = 0;
        if (mail.kind == CCI__UDP_MAIL_JOINED && mail.number == 0)
            cci__udp_send_news(l, mail.sender, CCI__UDP_MAIL_JOINED, 1);
        if (mail.kind == CCI__UDP_MAIL_PACKETS)
            got += cci__udp_take_over(l, &mail, &rx[got], (uint32_t)((size_t)n - sizeof mail));
        else if (mail.kind == CCI__UDP_MAIL_POSITION)
            cci__udp_note_position(l, mail.slot, mail.position, mail.sender, mail.number);
        else if (mail.kind == CCI__UDP_MAIL_LEFT && mail.number == 0)
            cci__udp_measure(l);
    }
    return got;
}

/* ---- joining and leaving ---- */

/* Opens the mailbox under a number that no other member has; a status. */
static int cci__udp_open_mailbox(cci__udp_link *l) {
    struct sockaddr_un a;
    uint32_t member;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return cci_status_of_errno(errno);
    l->socket[CCI__UDP_MAIL].fd = fd;
    cci__udp_set(fd, SOL_SOCKET, SO_PASSCRED, 1);
    cci__udp_set(fd, SOL_SOCKET, SO_SNDBUF, 1 << 20);
    for (member = 0; member < CCI__UDP_MEMBERS; member++) {
        socklen_t size = cci__udp_mailbox(l, member, &a);
        if (bind(fd, (const struct sockaddr *)(const void *)&a, size) == 0) {
            l->share.member = member;
            return CCI_SUCCESS;
        }
        if (errno != EADDRINUSE) return cci_status_of_errno(errno);
    }
    return CCI_EBUSY;
}

/* Finds the other members, which learn that this one has joined. */
static void cci__udp_greet_members(cci__udp_link *l) {
    l->share.known[l->share.member] = 1;
    l->share.living[0] = (uint8_t)l->share.member;
    l->share.living_count = 1;
    cci__udp_list_members(l);
}

static void cci__udp_leave_members(cci__udp_link *l) {
    uint32_t i, measures = 0;               /* one that measures will do */
    if (l->share.living_count == 0) return; /* it has not joined */
    for (i = 1; i < CCI__UDP_MEMBERS; i++)
        if (cci__udp_send_news(l, (l->share.member + i) % CCI__UDP_MEMBERS, CCI__UDP_MAIL_LEFT, measures)) measures = 1;
}

#else

static void cci__udp_sort(cci__udp_link *l, int slot, cci_link_rx_t *rx) {
    (void)l, (void)slot, (void)rx;
}

static void cci__udp_steer_again(cci__udp_link *l) {
    (void)l;
}

static int cci__udp_take_mail(cci__udp_link *l, cci_link_rx_t *rx, int count) {
    (void)l, (void)rx, (void)count;
    return 0;
}

static void cci__udp_leave_members(cci__udp_link *l) {
    (void)l;
}
#endif

/* ==================================================================================================================
 * >>udp-receive
 *
 * An idle call and a ping-pong cost one system call: one recvfrom on the socket that had traffic last. When a call
 * finds something, the next one takes as much as there is; when that is much, the kernel is asked to coalesce. Sockets
 * that are quiet are looked at in every 32nd call, and, when somebody sleeps on the OS handle or in `wait`, before a
 * second call in succession says that there is nothing: what has kept the sleeper awake must be found, but epoll does
 * not forget a socket that nobody looked at. (Portable: before every such call.)
 * ================================================================================================================== */

/* 1: nothing came, and that is all; 0: something broke. Errors of earlier sends are nothing new. */
static int cci__udp_receive_failed(cci__udp_link *l, int error) {
    if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == ECONNREFUSED || error == EHOSTUNREACH ||
        error == ENETUNREACH || error == EMSGSIZE || error == ENOMEM || error == ENOBUFS)
        return 1;
    l->is_news = 1;
    if (!l->warned_receive) {
        l->warned_receive = 1;
        cci__udp_log(CCI_LOG_ERROR, l->interface_.name, "receiving", error);
    }
    return 0;
}

/* Is it the socket of a group? */
static uint32_t cci__udp_is_groups(const cci__udp_link *l, const cci__udp_socket *s) {
    return s >= &l->socket[2] && s < &l->socket[CCI__UDP_MAIL];
}

#if CCI__UDP_LINUX || CCI_WINDOWS
/* The same as below with the cheapest of the calls, for a socket that tells no more. */
static int cci__udp_take_plain(cci__udp_link *l, cci__udp_socket *s, cci_link_rx_t *rx) {
    cci__udp_sockaddr from;
    long n = cci__udp_get(s->fd, rx->data, rx->capacity, &from);
    l->system_calls++;
    if (n < 0) return cci__udp_receive_failed(l, errno) ? 0 : -1;
    rx->length = rx->segment = (size_t)n > rx->capacity ? 0 : (uint32_t)n;
    rx->is_group = cci__udp_is_groups(l, s);
    rx->codepoint = 0;
    cci__udp_from_system(&rx->from, &from);
    rx->from.bytes[1] = s->interface_number;
    if (rx->is_group) rx->group = s->group;
    return 1;
}
#endif

#if CCI_WINDOWS
/* Was a datagram sent to the group? */
static int cci__udp_is_for(WSAMSG *m, const cci_link_addr_t *group) {
    const WSACMSGHDR *c = WSA_CMSG_FIRSTHDR(m);
    struct in_pktinfo v4;
    struct in6_pktinfo v6;
    if (c && c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO && group->bytes[0] == 4) {
        memcpy(&v4, WSA_CMSG_DATA(c), sizeof v4);
        return memcmp(&v4.ipi_addr, group->bytes + 8, 4) == 0;
    }
    if (c && c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO && group->bytes[0] == 6) {
        memcpy(&v6, WSA_CMSG_DATA(c), sizeof v6);
        return memcmp(&v6.ipi6_addr, group->bytes + 8, 16) == 0;
    }
    return 0;
}

/* The same for a group's socket. It also gets what is sent to the port at this host's addresses, or at other groups:
 * that is dropped, so its length is 0. */
static int cci__udp_take_group(cci__udp_link *l, cci__udp_socket *s, cci_link_rx_t *rx) {
    cci__udp_sockaddr from;
    cci__udp_control control;
    WSABUF piece;
    WSAMSG m;
    uint32_t length = 0;
    memset(&m, 0, sizeof m);
    piece.buf = (char *)rx->data;
    piece.len = rx->capacity;
    m.name = &from.any;
    m.namelen = sizeof from;
    m.lpBuffers = &piece;
    m.dwBufferCount = 1;
    m.Control.buf = control.bytes;
    m.Control.len = sizeof control;
    l->system_calls++;
    if (cci__udp_get_message(s->fd, &m, &length) != 0) return cci__udp_receive_failed(l, errno) ? 0 : -1;
    rx->length = rx->segment = cci__udp_is_for(&m, &s->group) ? length : 0;
    rx->is_group = 1;
    cci__udp_from_system(&rx->from, &from);
    rx->group = s->group;
    return 1;
}
#endif

#if CCI__UDP_LINUX
/* Datagrams come in company: let the kernel leave those of one sender side by side. This is not turned off again, since
 * what already waits coalesced would then come without its segment size. */
static void cci__udp_count_company(cci__udp_link *l, cci__udp_socket *s, int got) {
    if (got < 2) return;
    s->company = l->calls - s->company_at > CCI__UDP_HOT ? 0 : s->company + (uint32_t)got;
    s->company_at = l->calls;
    if (s->company >= CCI__UDP_BULK && l->gro && !s->coalesces) {
        int one = 1;
        s->coalesces = setsockopt(s->fd, CCI__UDP_SOL_UDP, CCI__UDP_GRO, &one, sizeof one) == 0;
        s->tells |= s->coalesces;
        l->gro = s->coalesces;
    }
}
#endif

#if !CCI_WINDOWS
/* Says what came. A datagram that did not fit is dropped: its length becomes 0. Of several side by side, those that fit
 * stay. */
static void cci__udp_came(cci__udp_link *l, const cci__udp_socket *s, cci_link_rx_t *rx, const struct msghdr *h,
                          size_t length) {
    uint8_t *at = (uint8_t *)h->msg_control;
    size_t left = h->msg_controllen;
    uint32_t segment = 0, codepoint = 0;
    /* Each tells a byte or an int, which take the same room. */
    for (; left >= CMSG_SPACE(sizeof(int)); at += CMSG_SPACE(sizeof(int)), left -= CMSG_SPACE(sizeof(int))) {
        struct cmsghdr *c = (struct cmsghdr *)(void *)at; /* without const for NetBSD, in C++ */
        int value;
        if (c->cmsg_level == IPPROTO_IP) {
            codepoint = *CMSG_DATA(c); /* IP_TOS */
            continue;
        }
        memcpy(&value, CMSG_DATA(c), sizeof value);
        if (c->cmsg_level == CCI__UDP_SOL_UDP)
            segment = value > 0 ? (uint32_t)value : 0; /* UDP_GRO */
        else
            codepoint = (uint32_t)value; /* IPV6_TCLASS */
    }
    rx->codepoint = codepoint & 3;
    rx->length = (uint32_t)length;
    if (h->msg_flags & MSG_TRUNC) rx->length = segment ? rx->capacity - rx->capacity % segment : 0;
    rx->segment = segment && segment < rx->length ? segment : rx->length;
    rx->is_group = cci__udp_is_groups(l, s);
    cci__udp_from_system(&rx->from, (const cci__udp_sockaddr *)h->msg_name);
    rx->from.bytes[1] = s->interface_number;
    if (rx->is_group) rx->group = s->group;
}
#endif

/* One datagram, or several side by side: 1, 0 for nothing, -1 for an error. */
#if CCI_WINDOWS
static int cci__udp_take_one(cci__udp_link *l, cci__udp_socket *s, cci_link_rx_t *rx) {
    return cci__udp_is_groups(l, s) ? cci__udp_take_group(l, s, rx) : cci__udp_take_plain(l, s, rx);
}
#else
static int cci__udp_take_one(cci__udp_link *l, cci__udp_socket *s, cci_link_rx_t *rx) {
    cci__udp_sockaddr from;
    cci__udp_control control;
    struct iovec piece;
    struct msghdr h;
    ssize_t n;
#if CCI__UDP_LINUX
    if (!s->tells) return cci__udp_take_plain(l, s, rx);
#endif
    memset(&h, 0, sizeof h);
    piece.iov_base = rx->data;
    piece.iov_len = rx->capacity;
    h.msg_name = &from;
    h.msg_namelen = sizeof from;
    h.msg_iov = &piece;
    h.msg_iovlen = 1;
    h.msg_control = &control;
    h.msg_controllen = sizeof control;
    l->system_calls++;
    n = recvmsg(s->fd, &h, 0);
    if (n < 0) return cci__udp_receive_failed(l, errno) ? 0 : -1;
    cci__udp_came(l, s, rx, &h, (size_t)n);
    return 1;
}
#endif

#if CCI__UDP_LINUX && defined(SYS_recvmmsg)
/* What stays the same in each call. */
static void cci__udp_prepare_in(cci__udp_in *in) {
    int i;
    for (i = 0; i < CCI__UDP_IN_MESSAGES; i++) {
        struct msghdr *h = &in->message[i].header;
        h->msg_name = &in->from[i];
        h->msg_iov = &in->piece[i];
        h->msg_iovlen = 1;
        h->msg_control = &in->control[i];
    }
}

/* Up to `count` buffers in one call; -2 when the system has no such call. */
static int cci__udp_take_many(cci__udp_link *l, cci__udp_socket *s, cci_link_rx_t *rx, int count) {
    cci__udp_in *in = &l->in;
    const unsigned short room = s->tells ? (unsigned short)sizeof in->control[0] : 0;
    int i, n = count < CCI__UDP_IN_MESSAGES ? count : CCI__UDP_IN_MESSAGES;
    for (i = 0; i < n; i++) {
        struct msghdr *h = &in->message[i].header;
        in->piece[i].iov_base = rx[i].data;
        in->piece[i].iov_len = rx[i].capacity;
        h->msg_namelen = sizeof in->from[i];
        h->msg_controllen = room;
    }
    l->system_calls++;
    n = (int)syscall(SYS_recvmmsg, s->fd, in->message, n, 0, NULL);
    if (n < 0) {
        if (errno == ENOSYS) {
            l->mmsg = 0;
            return -2;
        }
        return cci__udp_receive_failed(l, errno) ? 0 : -1;
    }
    for (i = 0; i < n; i++) cci__udp_came(l, s, &rx[i], &in->message[i].header, in->message[i].length);
    cci__udp_count_company(l, s, n);
    return n;
}
#else
static int cci__udp_take_many(cci__udp_link *l, cci__udp_socket *s, cci_link_rx_t *rx, int count) {
    (void)l, (void)s, (void)rx, (void)count;
    return -2;
}
#endif

/* What one socket has: one buffer's worth after a quiet call, everything after one that found something. */
static int cci__udp_take(cci__udp_link *l, int slot, cci_link_rx_t *rx, int count) {
    cci__udp_socket *s = &l->socket[slot];
    int got = -2, r;
    if (slot == CCI__UDP_MAIL)
        got = cci__udp_take_mail(l, rx, count);
    else if (s->busy > 1 && count > 1 && l->mmsg)
        got = cci__udp_take_many(l, s, rx, count);
    if (got == -2) {
        int most = s->busy > 1 ? count : 1;
        for (got = 0, r = 1; got < most && r > 0; got += r > 0) r = cci__udp_take_one(l, s, &rx[got]);
        got = got == 0 && r < 0 ? -1 : got;
    }
    for (r = 0; s->is_shared && r < got; r++) cci__udp_sort(l, slot, &rx[r]);
    s->busy = got > 0 ? s->busy + (s->busy < 2) : 0;
    if (got > 0) {
        s->hot_until = l->calls + CCI__UDP_HOT;
        l->hot |= 1u << slot;
    } else if ((int32_t)(l->calls - s->hot_until) > 0) {
        l->hot &= ~(1u << slot);
    }
    return got;
}

/* What the sockets of a mask have, beginning at the other end each time so that none starves. */
static int cci__udp_take_mask(cci__udp_link *l, uint32_t mask, cci_link_rx_t *rx, int count) {
    int i, got = 0, failed = 0;
    if (mask == 1) return cci__udp_take(l, 0, rx, count);
    for (i = 0; i < CCI__UDP_SOCKETS && mask && got < count; i++) {
        int slot = (l->calls & 1) ? CCI__UDP_SOCKETS - 1 - i : i;
        if (mask >> slot & 1u) {
            int n = l->socket[slot].fd >= 0 ? cci__udp_take(l, slot, rx + got, count - got) : 0;
            mask &= ~(1u << slot);
            failed |= n < 0;
            got += n > 0 ? n : 0;
        }
    }
    return got == 0 && failed ? -1 : got;
}

static int cci__udp_receive(void *link, cci_link_rx_t *rx, int count) {
    cci__udp_link *l = (cci__udp_link *)link;
    uint32_t mask = l->hot ? l->hot : 1u;
    uint32_t two_less = mask & (mask - 1u);
    int got, looked;
    if (count <= 0) return 0;
    l->calls++;
    two_less &= two_less - 1u;
    looked = l->calls % CCI__UDP_LOOK_AROUND == 0 || two_less != 0;
    got = cci__udp_take_mask(l, looked ? cci__udp_ready(l) : mask, rx, count);
    if (got == 0 && (l->wants_handle || CCI__UDP_LOAD(l->slept))) {
        if (!looked && !(l->came && CCI__UDP_LINUX)) got = cci__udp_take_mask(l, cci__udp_ready(l), rx, count);
        if (got == 0) {
            CCI__UDP_STORE(l->slept, 0);
            cci__udp_drained(l);
        }
    }
    l->came = got > 0;
    if (l->share.answered || l->share.astray || l->share.unknown_count > 0) cci__udp_steer_again(l);
    /* News of the interface: a negative result makes the caller ask `up`, before it sleeps again. */
    return got == 0 && l->is_news ? -1 : got;
}

/* ==================================================================================================================
 * >>udp-groups
 * ================================================================================================================== */

static int cci__udp_is_group(void *link, const cci_link_addr_t *to) {
    (void)link;
    return to->bytes[0] == 4 ? (to->bytes[8] & 0xf0) == 0xe0 : to->bytes[8] == 0xff;
}

/* Tells the socket to be a member on the device's interface; 0 with errno when it can't. */
static int cci__udp_join(const cci__udp_link *l, int fd, const cci_link_addr_t *group) {
    if (group->bytes[0] == 4) {
#if defined(__linux__) || defined(__FreeBSD__) || defined(__APPLE__)
        struct ip_mreqn m;
        memset(&m, 0, sizeof m);
        m.imr_ifindex = (int)l->interface_.index;
        memcpy(&m.imr_address, l->interface_.v4, 4);
#else
        struct ip_mreq m;
        memset(&m, 0, sizeof m);
        memcpy(&m.imr_interface, l->interface_.v4, 4);
#endif
        memcpy(&m.imr_multiaddr, group->bytes + 8, 4);
        return cci__udp_set_option(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof m) == 0;
    } else {
        struct ipv6_mreq m;
        memset(&m, 0, sizeof m);
        memcpy(&m.ipv6mr_multiaddr, group->bytes + 8, 16);
        m.ipv6mr_interface = l->interface_.index;
        return cci__udp_set_option(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof m) == 0;
    }
}

/* A socket bound to the group itself gets the group's datagrams and nothing else. Windows binds none to a group: there
 * it is bound to the port alone, and each datagram tells where it was sent to. */
static int cci__udp_open_group(const cci__udp_link *l, const cci_link_addr_t *group) {
    cci__udp_sockaddr a;
    socklen_t size = cci__udp_to_system(&a, group);
    int v4 = group->bytes[0] == 4, error;
    int fd = cci__udp_make_socket(v4 ? AF_INET : AF_INET6);
    if (fd < 0) return -1;
    cci__udp_set_flags(fd);
#if CCI_WINDOWS
    memset(v4 ? (void *)&a.v4.sin_addr : (void *)&a.v6.sin6_addr, 0, v4 ? 4 : 16);
    cci__udp_set(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_PKTINFO : IPV6_PKTINFO, 1);
#endif
    cci__udp_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
#if defined(SO_REUSEPORT) && !defined(__linux__)
    cci__udp_set(fd, SOL_SOCKET, SO_REUSEPORT, 1); /* BSD wants it when two programs join the same group */
#endif
    cci__udp_set(fd, SOL_SOCKET, SO_RCVBUF, (int)(l->device.rcvbuf_bytes ? l->device.rcvbuf_bytes : 1u << 20));
    if (!v4) cci__udp_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
#ifdef __linux__
    /* Without this the socket would also get what other programs joined on other interfaces. */
    cci__udp_set(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? CCI__UDP_IP_MULTICAST_ALL : CCI__UDP_IPV6_MULTICAST_ALL, 0);
#endif
    if (cci__udp_bind_to(fd, &a, size) != 0 || !cci__udp_join(l, fd, group)) {
        error = errno;
        cci__udp_shut(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* Puts a socket in its slot or takes it out (-1). `wait` reads the slots from another thread. */
static void cci__udp_set_slot(cci__udp_link *l, int slot, int fd) {
    int old;
    cci__udp_lock(l);
    old = l->socket[slot].fd;
    l->socket[slot].fd = fd;
    if (old >= 0) {
        cci__udp_unwatch(l, old);
        cci__udp_shut(old);
    }
    cci__udp_slot_changed(l, slot);
    cci__udp_unlock(l);
}

static int cci__udp_leave(cci__udp_link *l, int slot) {
    cci__udp_set_slot(l, slot, -1);
    l->hot &= ~(1u << slot);
    return CCI_SUCCESS;
}

static int cci__udp_group(void *link, const cci_link_addr_t *group, int join) {
    cci__udp_link *l = (cci__udp_link *)link;
    char text[128] = "joining ";
    int i, fd, unused = -1;
    if (!cci__udp_is_group(l, group)) return CCI_EINVAL;
    for (i = 2; i < CCI__UDP_MAIL; i++)
        if (l->socket[i].fd < 0)
            unused = unused < 0 ? i : unused;
        else if (memcmp(&l->socket[i].group, group, sizeof *group) == 0)
            return join ? CCI_EBUSY : cci__udp_leave(l, i);
    if (!join) return CCI_EINVAL;
    if (unused < 0) return CCI_ENOBUFS;
    if (!l->of_family[0][group->bytes[0] == 6]) return CCI_EADDRNOTAVAIL;
    fd = cci__udp_open_group(l, group);
    if (fd < 0) {
        int error = errno;
        cci__udp_addr_text(group, text + 8, sizeof text - 8);
        cci__udp_log(CCI_LOG_ERROR, l->interface_.name, text, error);
        return cci_status_of_errno(error);
    }
    l->socket[unused].family = group->bytes[0];
    l->socket[unused].group = *group;
    l->socket[unused].busy = l->socket[unused].coalesces = 0;
    l->socket[unused].company = 0;
    cci__udp_set_slot(l, unused, fd);
    return CCI_SUCCESS;
}

/* ==================================================================================================================
 * >>udp-names
 * ================================================================================================================== */

/* Splits "host:port" or "[v6]:port"; 0 when it is neither. */
static int cci__udp_split(const char *text, char *host, size_t host_size, unsigned *port) {
    const char *end, *colon;
    uint64_t n;
    size_t length;
    if (*text == '[') {
        text++;
        end = strchr(text, ']');
        colon = end ? end + 1 : NULL;
    } else {
        end = colon = strchr(text, ':');
        if (end && strchr(end + 1, ':')) return 0; /* IPv6 without brackets */
    }
    if (!end || *colon != ':' || !cci__udp_number(colon + 1, 0, &n) || n < 1 || n > 65535) return 0;
    length = (size_t)(end - text);
    if (length == 0 || length >= host_size) return 0;
    memcpy(host, text, length);
    host[length] = 0;
    *port = (unsigned)n;
    return 1;
}

/* The first interface from which an address may be reached; 0: there is none. Groups are of the first alone. */
static int cci__udp_choose_interface(const cci__udp_link *l, cci_link_addr_t *to) {
    int n, v6 = to->bytes[0] == 6, count = (int)l->paths.interface_count;
    for (n = 0; n < count && count > 1 && !cci__udp_is_group(NULL, to); n++) {
        if (!l->of_family[n][v6] || !CCI__UDP_LOAD(l->interface_is_up[n])) continue;
        to->bytes[1] = (uint8_t)n;
        return 1;
    }
    return l->of_family[0][v6] != NULL;
}

/* The canonical form of what the resolver found, when this link has a socket for it. */
static int cci__udp_reachable(const cci__udp_link *l, const struct addrinfo *r, unsigned port, cci_link_addr_t *to) {
    static const uint8_t zeros[16] = {0};
    static const uint8_t v4_inside[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    cci__udp_sockaddr s;
    const uint8_t *ip = (const uint8_t *)&s.v4.sin_addr;
    int family = 4;
    uint32_t scope = 0;
    memset(&s, 0, sizeof s);
    if (r->ai_family == AF_INET && r->ai_addrlen >= sizeof s.v4) {
        memcpy(&s.v4, r->ai_addr, sizeof s.v4);
    } else if (r->ai_family == AF_INET6 && r->ai_addrlen >= sizeof s.v6) {
        memcpy(&s.v6, r->ai_addr, sizeof s.v6);
        ip = (const uint8_t *)&s.v6.sin6_addr;
        family = 6;
        if (memcmp(ip, v4_inside, sizeof v4_inside) == 0) {
            ip += 12;
            family = 4;
        } else if (cci__udp_is_link_local(ip)) {
            scope = s.v6.sin6_scope_id ? s.v6.sin6_scope_id : l->interface_.index;
        }
    } else {
        return 0;
    }
    if (memcmp(ip, zeros, family == 4 ? 4 : 16) == 0) return 0;
    cci__udp_make_addr(to, family, ip, port, scope);
    return cci__udp_choose_interface(l, to);
}

/* A status for what was not found, unless memory or descriptors were lacking for the search; errno was 0 before it. */
static int cci__udp_not_found(const cci__udp_link *l, const char *what, int status) {
    if (cci_status_of_errno(errno) != CCI_ENOMEM) return status;
    return cci__udp_log(CCI_LOG_ERROR, l->device.interface_name, what, errno);
}

static int cci__udp_resolve(void *link, const char *address, cci_link_addr_t *to) {
    cci__udp_link *l = (cci__udp_link *)link;
    char host[300];
    unsigned port;
    struct addrinfo hints, *list = NULL, *r;
    int found = 0;
    if (!cci__udp_split(address, host, sizeof host, &port)) return CCI_EINVAL;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_DGRAM;
    hints.ai_flags = AI_NUMERICHOST; /* first without the name service, which may block */
    if (getaddrinfo(host, NULL, &hints, &list) != 0) {
        hints.ai_flags = 0;
        list = NULL;
        errno = 0;
        if (getaddrinfo(host, NULL, &hints, &list) != 0)
            return cci__udp_not_found(l, "looking up a host", CCI_EADDRNOTAVAIL);
    }
    for (r = list; r && !found; r = r->ai_next) found = cci__udp_reachable(l, r, port, to);
    freeaddrinfo(list);
    return found ? CCI_SUCCESS : CCI_EADDRNOTAVAIL;
}

/* An address as it stands in a URI. */
static int cci__udp_text(void *link, const cci_link_addr_t *address, char *text, size_t size) {
    char whole[INET6_ADDRSTRLEN + IF_NAMESIZE + 16];
    (void)link;
    cci__udp_addr_text(address, whole, sizeof whole);
    if (strlen(whole) >= size) return CCI_ERANGE;
    memcpy(text, whole, strlen(whole) + 1);
    return CCI_SUCCESS;
}

static int cci__udp_address(void *link, char *text, size_t size) {
    cci__udp_link *l = (cci__udp_link *)link;
    cci_link_addr_t a;
    cci__udp_own_addr(l, 0, l->port, &a);
    return cci__udp_text(l, &a, text, size);
}

/* The network that an address belongs to: of IPv4 /24, of IPv6 /64 and the interface, as far as it matters. */
static uint32_t cci__udp_prefix(void *link, const cci_link_addr_t *address, uint8_t bytes[16]) {
    (void)link;
    bytes[0] = address->bytes[0];
    memcpy(bytes + 1, address->bytes + 4, 4);
    memcpy(bytes + 5, address->bytes + 8, address->bytes[0] == 4 ? 3 : 8);
    return address->bytes[0] == 4 ? 8 : 13;
}

/* The port that a service means, 0 for any; -1 when there is no such service. */
static int cci__udp_service_port(const char *service) {
    struct addrinfo hints, *list = NULL;
    uint64_t n;
    int port = -1;
    if (cci__udp_number(service, 0, &n)) return n <= 65535 ? (int)n : -1;
    if ((*service | 32) < 'a' || (*service | 32) > 'z') return -1; /* getaddrinfo() skips blanks and signs */
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_DGRAM;
    hints.ai_flags = AI_PASSIVE;
    if (getaddrinfo(NULL, service, &hints, &list) == 0 && list) {
        cci__udp_sockaddr s;
        memset(&s, 0, sizeof s);
        memcpy(&s, list->ai_addr, list->ai_addrlen < sizeof s ? list->ai_addrlen : sizeof s);
        port = ntohs(s.any.sa_family == AF_INET ? s.v4.sin_port : s.v6.sin6_port);
    }
    if (list) freeaddrinfo(list);
    return port;
}

/* ==================================================================================================================
 * >>udp-open
 * ================================================================================================================== */

/* Asks for a socket buffer; a privileged program may exceed the system's limit. Returns what the kernel granted. */
static uint32_t cci__udp_set_buffer(int fd, int option, int forced, uint32_t bytes) {
    int granted = 0;
    cci__udp_set(fd, SOL_SOCKET, option, (int)bytes);
    (void)cci__udp_get_option(fd, SOL_SOCKET, option, &granted);
    if (forced >= 0 && granted >= 0 && (uint32_t)granted < bytes) {
        cci__udp_set(fd, SOL_SOCKET, forced, (int)bytes);
        (void)cci__udp_get_option(fd, SOL_SOCKET, option, &granted);
    }
    return granted > 0 ? (uint32_t)granted : 65536;
}

/* Some systems want a byte here. */
static void cci__udp_set_multicast_ttl(int fd, int hops) {
#if CCI_WINDOWS
    cci__udp_set(fd, IPPROTO_IP, IP_MULTICAST_TTL, hops);
#else
    unsigned char one_byte = (unsigned char)hops;
    (void)cci__udp_set_option(fd, IPPROTO_IP, IP_MULTICAST_TTL, &one_byte, sizeof one_byte);
#endif
}

/* Hops, multicast and "don't fragment". What a system refuses here costs no function, so nobody asks. */
static void cci__udp_set_ip_options(const cci__udp_link *l, int fd, int family) {
    int hops = (int)l->device.ttl_hops;
    if (family == 4) {
        struct in_addr from;
        memcpy(&from, l->interface_.v4, 4);
        (void)cci__udp_set_option(fd, IPPROTO_IP, IP_MULTICAST_IF, &from, sizeof from);
        if (hops) {
            cci__udp_set(fd, IPPROTO_IP, IP_TTL, hops);
            cci__udp_set_multicast_ttl(fd, hops);
        }
#ifdef __linux__
        cci__udp_set(fd, IPPROTO_IP, CCI__UDP_IP_MTU_DISCOVER, CCI__UDP_PMTUDISC_PROBE);
#elif CCI_WINDOWS
        cci__udp_set(fd, IPPROTO_IP, IP_DONTFRAGMENT, 1);
#elif defined(IP_DONTFRAG)
        cci__udp_set(fd, IPPROTO_IP, IP_DONTFRAG, 1);
#endif
    } else {
        cci__udp_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)l->interface_.index);
        if (hops) {
            cci__udp_set(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, hops);
            cci__udp_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, hops);
        }
#ifdef __linux__
        cci__udp_set(fd, IPPROTO_IPV6, CCI__UDP_IPV6_MTU_DISCOVER, CCI__UDP_PMTUDISC_PROBE);
#elif defined(IPV6_DONTFRAG)
        cci__udp_set(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
#endif
    }
}

/* A socket bound to an interface's address; -1 with errno. *port comes back when it was 0. */
static int cci__udp_open_on(const cci__udp_link *l, const cci__udp_interface *f, int family, uint16_t *port) {
    cci__udp_sockaddr a;
    cci_link_addr_t addr;
    socklen_t size;
    int error, fd = cci__udp_make_socket(family == 4 ? AF_INET : AF_INET6);
    if (fd < 0) return -1;
    cci__udp_set_flags(fd);
    cci__udp_addr_of(f, family, *port, &addr);
    size = cci__udp_to_system(&a, &addr);
    if (family == 6) cci__udp_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
#if CCI_WINDOWS
    cci__udp_set(fd, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, 1); /* else another program may take the port, and what arrives */
#endif
#if CCI__UDP_LINUX
    if (l->share.is_on && *port != 0) cci__udp_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
#endif
    if (cci__udp_bind_to(fd, &a, size) != 0 || cci__udp_bound_to(fd, &a, &size) != 0) {
        error = errno;
        cci__udp_shut(fd);
        errno = error;
        return -1;
    }
    *port = ntohs(family == 4 ? a.v4.sin_port : a.v6.sin6_port);
    cci__udp_set_ip_options(l, fd, family);
    return fd;
}

static int cci__udp_open_socket(const cci__udp_link *l, int family, uint16_t *port) {
    return cci__udp_open_on(l, &l->interface_, family, port);
}

/* Does ICMP say that nobody receives at an address? Answers on the endpoint's own sockets can't tell: they belong to no
 * address, and would fail calls for all others. One address has the scout at a time, until the answer is there. */
static int cci__udp_refused(void *link, const cci_link_addr_t *to) {
    cci__udp_link *l = (cci__udp_link *)link;
    int is_same = l->scout.fd >= 0 && memcmp(&l->scout.to, to, sizeof *to) == 0;
    if (!is_same) {
        cci__udp_sockaddr a;
        socklen_t size = cci__udp_to_system(&a, to);
        uint16_t port = 0;
        cci__udp_look_at_scout(l);
        if (l->scout.fd >= 0 && !l->scout.is_refused) return 0; /* another address has it */
        cci__udp_drop(&l->scout.fd);
        l->scout.fd = cci__udp_open_socket(l, to->bytes[0], &port);
        if (l->scout.fd < 0 || cci__udp_connect_to(l->scout.fd, &a, size) != 0) {
            cci__udp_drop(&l->scout.fd);
            return 0;
        }
        l->scout.to = *to;
        l->scout.is_refused = 0;
        l->scout.until_ns = cci__udp_now(l) + CCI__UDP_SCOUT_NS;
        cci__udp_knock(l->scout.fd);
    }
    l->scout.is_refused |= cci__udp_was_refused(l->scout.fd);
    return l->scout.is_refused;
}

/* Binds both families, to the same port where possible; a status. When any port will do, one is searched that is free
 * in both families; otherwise the second family takes any port, good for what this endpoint begins itself. */
static int cci__udp_bind(cci__udp_link *l, uint16_t port) {
    int main_family = cci__udp_main_family(&l->device, &l->interface_);
    int other_family = main_family == 4 ? 6 : 4;
    int has_other = main_family == 4 ? l->interface_.has_v6 : l->interface_.has_v4;
    int attempt;
    for (attempt = 0; attempt < 16; attempt++) {
        uint16_t other_port;
        l->port = port;
        l->socket[0].family = main_family;
        l->socket[0].fd = cci__udp_open_socket(l, main_family, &l->port);
        if (l->socket[0].fd < 0 || !has_other) break;
        other_port = l->port;
        l->socket[1].family = other_family;
        l->socket[1].fd = cci__udp_open_socket(l, other_family, &other_port);
        if (l->socket[1].fd < 0 && errno == EADDRINUSE && port == 0 && attempt < 15) {
            cci__udp_shut(l->socket[0].fd);
            continue;
        }
        if (l->socket[1].fd < 0) {
            int error = errno;
            other_port = 0;
            if (error == EADDRINUSE) l->socket[1].fd = cci__udp_open_socket(l, other_family, &other_port);
            cci__udp_log(CCI_LOG_INFO, l->interface_.name, other_family == 6 ? "IPv6 socket" : "IPv4 socket", error);
        }
        break;
    }
    if (l->socket[0].fd < 0) {
        int error = errno;
        char text[96];
        snprintf(text, sizeof text, "binding to port %u", port);
        if (error != EADDRINUSE) cci__udp_log(CCI_LOG_ERROR, l->interface_.name, text, error); /* cci.h says that */
        return error == EADDRNOTAVAIL ? (int)CCI_ENODEV : cci_status_of_errno(error);
    }
    return CCI_SUCCESS;
}

#if CCI__UDP_LINUX
/* The port that a socket is bound to. */
static uint16_t cci__udp_port_of(int fd) {
    cci__udp_sockaddr a;
    socklen_t size = sizeof a;
    memset(&a, 0, sizeof a);
    if (getsockname(fd, &a.any, &size) != 0) return 0;
    return ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
}

/* From now on others may bind to the address of a socket; 0 with errno when that can't be. Only a socket that asks
 * before it is bound is one of those that the kernel chooses from. */
static int cci__udp_let_share(cci__udp_link *l, int slot) {
    int fd, old = l->socket[slot].fd;
    uint16_t port = l->port;
    cci__udp_set(old, SOL_SOCKET, SO_REUSEPORT, 1);
    fd = cci__udp_open_socket(l, l->socket[slot].family, &port);
    if (fd < 0) return 0;
    l->socket[slot].fd = fd;
    close(old);
    return 1;
}

/* Becomes one of those that share the address; a status. */
static int cci__udp_join_members(cci__udp_link *l) {
    int slot, status, is_alone = !l->share.is_on;
    l->share.is_on = 1;
    for (slot = 0; slot < 2; slot++) {
        cci__udp_socket *s = &l->socket[slot];
        s->is_shared = s->fd >= 0 && cci__udp_port_of(s->fd) == l->port;
        if (s->is_shared && is_alone && !cci__udp_let_share(l, slot)) {
            cci__udp_log(CCI_LOG_ERROR, l->interface_.name, "sharing the address", errno);
            return CCI_ERROR;
        }
    }
    status = cci__udp_open_mailbox(l);
    if (status != CCI_SUCCESS) {
        cci__udp_log(CCI_LOG_ERROR, l->interface_.name, "no number is free for one more endpoint of the address",
                     errno);
        return status;
    }
    l->share.patience_ns = CCI__UDP_PATIENCE_NS / 2;
    cci__udp_greet_members(l);
    cci__udp_measure(l);
    return CCI_SUCCESS;
}
#else
static int cci__udp_join_members(cci__udp_link *l) {
    cci__udp_log(CCI_LOG_ERROR, l->interface_.name, "endpoints can share an address on Linux alone", 0);
    return CCI_ERR_NOT_IMPLEMENTED;
}
#endif

#if CCI__UDP_LINUX
/* From now on the codepoint of each datagram is told; 0 when it can't be, or can't be set. */
static int cci__udp_tell_codepoints(cci__udp_socket *s) {
    int one = 1, v4 = s->family == 4;
    s->tells = setsockopt(s->fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? CCI__UDP_IP_RECVTOS : CCI__UDP_IPV6_RECVTCLASS,
                          &one, sizeof one) == 0;
    return s->tells && cci__udp_mark(s, 2) && cci__udp_mark(s, 0);
}
#endif

/* Buffers, offloads and ECN of a socket that is bound; returns its receive buffer. */
static uint32_t cci__udp_set_up_socket(cci__udp_link *l, cci__udp_socket *s, int fd) {
    int forced_rcv = -1, forced_snd = -1;
    uint32_t granted;
#ifdef SO_RCVBUFFORCE
    forced_rcv = SO_RCVBUFFORCE;
    forced_snd = SO_SNDBUFFORCE;
#endif
    granted =
        cci__udp_set_buffer(fd, SO_RCVBUF, forced_rcv, l->device.rcvbuf_bytes ? l->device.rcvbuf_bytes : 4u << 20);
    cci__udp_set_buffer(fd, SO_SNDBUF, forced_snd, l->device.sndbuf_bytes ? l->device.sndbuf_bytes : 1u << 20);
#if CCI__UDP_LINUX
    if (l->gso) {
        int zero = 0;
        l->gso = setsockopt(fd, CCI__UDP_SOL_UDP, CCI__UDP_SEGMENT, &zero, sizeof zero) == 0;
        l->gro &= setsockopt(fd, CCI__UDP_SOL_UDP, CCI__UDP_GRO, &zero, sizeof zero) == 0; /* there? */
    }
    l->ecn = l->ecn && cci__udp_tell_codepoints(s);
#endif
    l->of_family[s->interface_number][s->family == 6] = s;
    return granted;
}

/* The same for all; returns the receive buffer of the smallest. */
static uint32_t cci__udp_set_up_sockets(cci__udp_link *l) {
    uint32_t smallest = UINT32_MAX, granted;
    int i;
#if CCI__UDP_LINUX
    l->gso = l->gro = l->mmsg = l->device.offload;
    l->ecn = (int)l->device.ecn;
#endif
    for (i = 0; i < CCI__UDP_SOCKETS; i++) {
        cci__udp_socket *s = &l->socket[i];
        if (s->fd < 0 || i == CCI__UDP_MAIL) continue;
        granted = cci__udp_set_up_socket(l, s, s->fd);
        smallest = granted < smallest ? granted : smallest;
    }
    return smallest;
}

/* ---- several interfaces ---- */

/* Opens the sockets of a further interface, at the port of the first where it is free; what is missing is logged. */
static void cci__udp_open_interface(cci__udp_link *l, int number, const cci__udp_interface *f, int is_open) {
    int family;
    l->more[number - 1] = *f;
    for (family = 4; family <= 6; family += 2) {
        int slot = CCI__UDP_MORE + 2 * (number - 1) + (family == 6), fd;
        cci__udp_socket *s = &l->socket[slot];
        if (family == 4 ? !f->has_v4 : !f->has_v6) continue;
        s->port = l->port;
        fd = cci__udp_open_on(l, f, family, &s->port);
        if (fd < 0 && errno == EADDRINUSE) {
            s->port = 0;
            fd = cci__udp_open_on(l, f, family, &s->port);
        }
        if (fd < 0) {
            cci__udp_log(CCI_LOG_INFO, f->name, family == 6 ? "IPv6 socket" : "IPv4 socket", errno);
            continue;
        }
        s->family = family;
        s->interface_number = (uint8_t)number;
        if (is_open) {
            cci__udp_set_up_socket(l, s, fd);
            cci__udp_set_slot(l, slot, fd);
        } else {
            s->fd = fd;
        }
        l->largest[family == 6] = cci__udp_largest(&l->device, f, family) < l->largest[family == 6]
                                      ? cci__udp_largest(&l->device, f, family)
                                      : l->largest[family == 6];
    }
}

/* Has the interface of that number come since? */
static void cci__udp_find_further(cci__udp_link *l, int number, int is_open) {
    cci__udp_device one = l->device;
    cci__udp_search s;
    memset(one.more_names, 0, sizeof one.more_names);
    memcpy(one.interface_name, l->more[number - 1].name, sizeof one.interface_name);
    if (cci__udp_find_one(&one, &s)) cci__udp_open_interface(l, number, &s.best, is_open);
}

static void cci__udp_join_interface(cci__udp_link *l, int number) {
    if (number == 0) return;
    cci__udp_find_further(l, number, 1);
    if (l->of_family[number][0] || l->of_family[number][1]) l->paths.changes++;
}

/* Opens what there is of the device's further interfaces. Those that come later are opened then. */
static void cci__udp_open_further(cci__udp_link *l) {
    int n, number = 0, count = cci__udp_count_names(&l->device);
    for (n = 0; n < count && count > 1; n++) {
        if (strcmp(cci__udp_name(&l->device, n), l->interface_.name) == 0) continue;
        memcpy(l->more[number].name, cci__udp_name(&l->device, n), sizeof l->more[number].name);
        cci__udp_find_further(l, ++number, 0);
    }
    l->paths.interface_count = (uint32_t)number + 1;
}

/* An address of the endpoint, as its peers are told: those of the main family first. */
static int cci__udp_own(void *link, uint32_t number, cci_link_addr_t *own) {
    const cci__udp_link *l = (const cci__udp_link *)link;
    int main_family = l->socket[0].family == 6, i, count = (int)l->paths.interface_count;
    for (i = 0; i < 2 * count; i++) {
        int v6 = i < count ? main_family : !main_family, n = i % count;
        if (!l->of_family[n][v6] || number-- > 0) continue;
        cci__udp_addr_of(cci__udp_interface_of(l, n), v6 ? 6 : 4, n == 0 ? l->port : l->of_family[n][v6]->port, own);
        memset(own->bytes + 4, 0, 4); /* an index of an interface means nothing elsewhere */
        return 1;
    }
    return 0;
}

/* Can that be an endpoint's address, for one on an interface? */
static int cci__udp_can_be(const cci__udp_interface *f, const cci_link_addr_t *addr) {
    static const uint8_t zeros[16] = {0};
    const uint8_t *ip = addr->bytes + 8;
    if (addr->bytes[2] == 0 && addr->bytes[3] == 0) return 0;
    if (addr->bytes[0] == 4) return ip[0] != 0 && ip[0] < 224 && (ip[0] == 127) == f->loopback;
    /* not a group, and nothing that begins with zeros, as IPv4 inside IPv6, but for ::1 */
    if (memcmp(ip, zeros, 8) != 0) return ip[0] != 0xff && !f->loopback;
    return f->loopback && memcmp(ip, zeros, 15) == 0 && ip[15] == 1;
}

static int cci__udp_path(void *link, uint32_t number, const cci_link_addr_t *told, cci_link_addr_t *path) {
    const cci__udp_link *l = (const cci__udp_link *)link;
    const cci__udp_interface *f;
    int v6 = told->bytes[0] == 6;
    if ((told->bytes[0] != 4 && !v6) || number >= l->paths.interface_count || !l->of_family[number][v6] ||
        !l->interface_is_up[number])
        return 0;
    f = cci__udp_interface_of(l, (int)number);
    if (!cci__udp_can_be(f, told)) return 0;
    cci__udp_make_addr(path, v6 ? 6 : 4, told->bytes + 8, (unsigned)cci__udp_to_wide(told->bytes + 2, 2),
                       v6 && cci__udp_is_link_local(told->bytes + 8) ? f->index : 0);
    path->bytes[1] = (uint8_t)number;
    return 1;
}

/* In the child of fork() nothing must be left that keeps the parent's sockets open, or that would send. */
static void cci__udp_forked(void *link) {
    cci__udp_link *l = (cci__udp_link *)link;
    int i;
    for (i = 0; i < CCI__UDP_SOCKETS; i++) cci__udp_drop(&l->socket[i].fd);
    cci__udp_drop(&l->scout.fd);
    cci__udp_waiter_drop(&l->waiter);
}

static void cci__udp_tell(const cci__udp_link *l, uint32_t receive_buffer_bytes, cci_link_info_t *info) {
    const cci__udp_device *d = &l->device;
    info->mtu = l->largest[l->socket[0].family == 6];
    info->base_mtu = info->mtu < 1200 ? info->mtu : 1200;
    /* The kernel counts whole pages and its own structures against the buffer: half of it is what surely fits. */
    info->receive_window = receive_buffer_bytes / 2;
    info->send_buf_count = d->send_buf_count;
    info->recv_buf_count = d->recv_buf_count;
    info->memory_limit = d->memory_bytes;
    info->max_send_size = d->max_send_size;
    info->send_timeout_us = d->send_timeout_us;
    info->progress_thread = d->progress_thread;
    info->coalesce = (uint32_t)l->gro;
    info->congestion = d->congestion[0] ? d->congestion : NULL;
    info->forked = cci__udp_forked;
    info->refused = cci__udp_refused;
    info->crc = d->crc;
    info->ecn = (uint32_t)l->ecn;
    info->is_shared = (uint32_t)l->share.is_on;
    info->index_base = l->share.member << CCI__UDP_MEMBER_SHIFT;
    info->probe_idle_s = d->probe_idle_s;
    info->system_calls = &l->system_calls;
    info->state = &l->state;
#if CCI__UDP_LINUX
    info->watch = cci__udp_watch_routes;
#endif
    info->paths = &l->paths;
}

/* Closes all sockets, the mailbox last: from it the other members hear that this one's position is free. */
static void cci__udp_close_sockets(cci__udp_link *l) {
    int i;
    for (i = 0; i < CCI__UDP_SOCKETS; i++) {
        if (i == CCI__UDP_MAIL && l->socket[i].fd >= 0) cci__udp_leave_members(l);
        cci__udp_drop(&l->socket[i].fd);
    }
    cci__udp_drop(&l->scout.fd);
}

static void cci__udp_close(void *link) {
    cci__udp_link *l = (cci__udp_link *)link;
    cci__udp_waiter_close(l); /* first: its thread uses the sockets */
    cci__udp_close_sockets(l);
    cci_release(l);
}

/* Finds the interface and opens what belongs to the link; a status. On failure the caller closes. */
static int cci__udp_start(cci__udp_link *l, const char *service, cci_link_info_t *info) {
    cci__udp_search s;
    int n, status, port = service ? cci__udp_service_port(service) : (int)l->device.port;
    uint32_t granted;
    int shares = l->device.share || info->share;
    if (port < 0) return CCI_EINVAL;
    if (!cci__udp_find(&l->device, &s)) return cci__udp_not_found(l, "looking for an interface", CCI_ENODEV);
    if (!s.best.running) return CCI_ENODEV;
    l->interface_ = s.best;
    l->state.mtu = s.best.mtu;
    l->is_up = 1;
    l->looked_ns = cci__udp_now(l);
    l->share.is_on = shares && port != 0; /* a port that the kernel chooses must be nobody's yet */
    status = cci__udp_bind(l, (uint16_t)port);
    if (status == CCI_SUCCESS && shares) status = cci__udp_join_members(l);
    if (status != CCI_SUCCESS) return status;
    l->largest[0] = cci__udp_largest(&l->device, &l->interface_, 4);
    l->largest[1] = cci__udp_largest(&l->device, &l->interface_, 6);
    l->paths.own = cci__udp_own;
    l->paths.path = cci__udp_path;
    l->paths.interface_count = 1;
    if (!shares) cci__udp_open_further(l);
    granted = cci__udp_set_up_sockets(l);
    for (n = 0; n < CCI__UDP_INTERFACES; n++)
        l->interface_is_up[n] = n == 0 || (n < (int)l->paths.interface_count && l->more[n - 1].running);
    cci__udp_tell(l, granted, info);
    return CCI_SUCCESS;
}

static int cci__udp_open(cci_device_t *device, const char *service, int want_os_handle, void **link,
                         cci_link_info_t *info) {
    cci__udp_link *l = (cci__udp_link *)cci_alloc(sizeof *l);
    int i, status;
    if (!l) return CCI_ENOMEM;
    memset(l, 0, sizeof *l);
    memcpy(&l->device, cci_device_data(device), sizeof l->device);
#if CCI__UDP_LINUX && defined(SYS_recvmmsg)
    cci__udp_prepare_in(&l->in);
#endif
    l->wants_handle = want_os_handle;
    for (i = 0; i < CCI__UDP_SOCKETS; i++) l->socket[i].fd = -1;
    l->scout.fd = -1;
    info->os_handle = -1;
    status = cci__udp_start(l, service, info);
    if (status != CCI_SUCCESS) {
        cci__udp_close_sockets(l);
        cci_release(l);
        return status;
    }
    if (!cci__udp_waiter_open(l, &info->os_handle)) {
        status = cci__udp_log(CCI_LOG_ERROR, l->interface_.name, "opening descriptors to wait on", errno);
        cci__udp_close(l);
        return status;
    }
    info->hold = cci__udp_hold;
    *link = l;
    return CCI_SUCCESS;
}

static const cci_link_t cci__udp_link_table = {
    CCI_LINK_VERSION, cci__udp_open,    cci__udp_close, cci__udp_send,     cci__udp_receive, cci__udp_now,
    cci__udp_resolve, cci__udp_address, cci__udp_group, cci__udp_is_group, cci__udp_wait,    cci__udp_wake,
    cci__udp_arm,     cci__udp_up,      cci__udp_text,  cci__udp_prefix,
};

#ifdef CCI_STATIC
static
#endif
    const cci_transport_t cci_udp_transport = {
        CCI_TRANSPORT_VERSION, "udp", "ip", NULL, cci__udp_discover, cci__udp_configure, cci__udp_refresh,
        &cci__udp_link_table,  NULL,
};

#endif /* a system that will do */
#endif /* CCI_UDP_IMPLEMENTATION */

/* ==================================================================================================================
 * >>udp-license
 *
 * This software is available under either of two licenses, as you choose: the MIT license, or the Unlicense (public
 * domain). Their full text is in the file LICENSE.
 * ================================================================================================================== */
