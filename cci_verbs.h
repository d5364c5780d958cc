/* cci_verbs.h - RDMA hardware (InfiniBand, RoCE) as a transport of CCI (cci.h).                                 v0.1.0
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
 *     >>verbs-handles     address handles, kept in a table of fixed size
 *     >>verbs-send        outgoing datagrams
 *     >>verbs-receive     incoming datagrams
 *     >>verbs-groups      multicast
 *     >>verbs-names       addresses from and to text; asking hosts where their endpoints are
 *     >>verbs-health      failures of queues, port and device
 *     >>verbs-wait        waiting, and the OS handle
 *     >>verbs-open        opening and closing
 *     >>verbs-rc          mode = rc: a queue pair for each connection
 *     >>verbs-rc-work     posting, and completions
 *     >>verbs-rc-pair     queue pairs: making, joining, making anew
 *     >>verbs-rc-connect  the handshake
 *     >>verbs-rc-progress time, rounds of work, waiting
 *     >>verbs-rc-endpoint making and ending an endpoint
 *     >>verbs-rc-calls    the operations
 *     >>verbs-auto        mode = auto: connections over datagrams beside those with queue pairs
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
 * "mlx5_0-2" for the second port of a device that has several. A port that is not active is proposed as not up. So is
 * that of an adapter that lacks what the mode needs, with the reason in its `info`: CCI needs InfiniBand or RoCE (no
 * iWARP, no EFA), datagram queue pairs and, for mode = rc, reliable connected ones with a shared receive queue. A
 * device is opened when it is seen for the first time, and by endpoints; cci_get_devices() then looks at /sys.
 *
 * KEYS of a section with `transport = verbs`; all are optional. An unknown key or a bad value is an error. Numbers may
 * be hexadecimal (0x...).
 *
 *     key             unit, range                 default     meaning
 *     device          name                        -           the RDMA device; without it the fastest active port
 *     port            1 to 254                    first       the device's port; without it the first active one
 *     mode            rc, ud or auto              rc          rc: a reliable connected queue pair for each peer, RDMA
 *                                                             by the hardware. ud: one unreliable datagram queue pair
 *                                                             for all peers, under cci.h's own reliability. auto: rc
 *                                                             for so many, then ud (see MODE AUTO)
 *     ip              IPv4 or IPv6 address        -           the port that has this address (InfiniBand: whose IPoIB
 *                                                             interface has it)
 *     interface       name                        -           the port and address of this network interface
 *     gid_index       0 to 255                    chosen      the port's address. RoCE: version 2 before 1, IPv4 before
 *                                                             IPv6, global before link-local; those of interfaces that
 *                                                             this system or container has, and that the kernel finds a
 *                                                             way for. InfiniBand: 0
 *     service         1 to 65535                  any free    UDP port of endpoints that name no service
 *                                                             themselves (see ADDRESSES)
 *     pkey            1 to 0xffff                 table's 1st partition
 *     qkey            1 to 0x7fffffff             0x00434349  what datagrams must carry; the same on all hosts. It is
 *                                                             told to the hosts that a program connects to, and to
 *                                                             nobody else
 *     traffic_class   0 to 255                    0           of the routing header (RoCE: DSCP and ECN)
 *     service_level   0 to 15                     0           of InfiniBand; on Ethernet the priority
 *     flow_label      0 to 0xfffff                varies      of the routing header; RoCE: the UDP source port is made
 *                                                             of it. By default each connection (ud: each peer) has its
 *                                                             own, so that switches and bonds spread them over paths,
 *                                                             and one that is made anew after a failure another
 *     hop_limit       1 to 255                    64 (groups: 1) routers that may be passed
 *     mtu             256, 512, 1024, 2048, 4096  port's      upper limit of one packet's payload, bytes
 *     recv_depth      16 to 32768                 rc: 256, ud: 1024  datagrams that the hardware can receive on its own
 *     send_depth      16 to 32768                 rc: 128, ud: 256  datagrams that the hardware can be given at once
 *     address_handles 64 to 65536                 2048        address handles that are kept; for further peers
 *                                                             one is made for each use
 *     send_buf_count  messages, 1 to 65536        rc: 512, ud: cci.h's  messages that can be pending
 *     max_send_size   bytes, 256 to 65472         rc: 8192, ud: one datagram  largest message; ud: longer than a
 *                                                             datagram in fragments; rc: of reliable connections
 *     recv_buf_count  messages, 1 to 65536        rc: 512, ud: cci.h's  messages that can be received without
 *                                                             dropping; rc: at most srq_depth
 *     memory          bytes, 65536 to 2^32-1      1073741824  ud: what connections with traffic may take at most; see
 *                                                             MEMORY in cci.h
 *     send_timeout    microseconds, 1 to 2^32-1   30000000    send timeout of new endpoints
 *     progress        thread or poll              poll        thread: a helper thread works while the program computes
 *     moderation      microseconds, 0 to 1000     4           how long the adapter may collect completions before it
 *                                                             wakes a sleeping program, if it can; 0: not at all
 *     congestion      cubic, discern, newreno     cubic       how what is under way adapts to the path, as in cci_udp.h
 *                     or fixed
 *     crc             0 or 1                      0           1: datagrams carry a CRC-32C; both sides must have it
 *     probe_idle      seconds, 0 to 86400         300         a peer that was silent for so long is asked for a
 *                                                             sign of life; after as long again without one the
 *                                                             connection ends; 0: never
 *   for mode = rc and auto alone:
 *     rc_depth        16 to 16384                 63          work requests that a queue pair can be given at once:
 *                                                             most of what a connection costs
 *     srq_depth       16 to 32768                 4096        receive buffers that the hardware can be given
 *     ack_timeout     1 to 31                     14          the hardware repeats after 4.096 microseconds times 2 to
 *                                                             the power of this (14: 67 ms)
 *     retry_count     0 to 6                      6           as many times; then the queue pair is made anew
 *     relaxed_ordering 0 or 1                     1           the host's memory may take parts of an RMA in any order:
 *                                                             faster on many hosts; the same on both sides. 0 where a
 *                                                             program watches memory instead of waiting for an event
 *     setups          0 to 32                     2           queue pairs that are made at once, by as many threads
 *                                                             of the endpoint (see MODE RC). 0: the program's calls
 *                                                             make them, one after the other
 *     rc_connections  0 to 1048576                1024        mode auto: connections that an endpoint may have before
 *                                                             new ones go over datagrams
 *     on_demand       0 or 1                      0           1: memory that is registered is not pinned, where the
 *                                                             adapter can fetch pages when it needs them (on-demand
 *                                                             paging); else registering is CCI_ERR_NOT_IMPLEMENTED
 *     rnr_timer       1 to 31                     12          how long to wait for receive buffers (12: 0.64 ms), in
 *                                                             the code of the InfiniBand specification
 *
 * A device or port that does not exist makes a device of CCI that is not up; it comes up when it appears.
 *
 * ADDRESSES in URIs. verbs://192.0.2.1:4242, verbs://[2001:db8::1]:4242 or verbs://name:4242 names a UDP socket that
 * the endpoint has on its port's network interface (RoCE: the port's own address; InfiniBand: that of IPoIB). It tells
 * those who ask where the endpoint's queue pair is: 64 bytes are answered by 64 bytes, and nothing is kept. The client
 * asks again, ever more slowly, until its time for connecting is over.
 *   verbs://[fe80::1234]/289/17 names GID, queue pair and, on InfiniBand, LID themselves: for fabrics without IP, where
 * this is what an endpoint's URI looks like.
 *   Groups (UU_MC_TX, UU_MC_RX) are verbs://239.1.2.3:4242 or verbs://[ff15::1]:4242, of the kind of the port's
 * address; at most 16 per endpoint. They need RoCE version 2: on InfiniBand only the subnet manager's own protocol
 * joins groups.
 *
 * SERVICE. cci_create_endpoint_at() takes a UDP port number or a service name of the system. CCI_EBUSY: it is taken.
 *
 * MODE UD. One queue pair, two completion queues and a ring of registered buffers are all that an endpoint has of the
 * hardware, whatever the number of its peers: (recv_depth + send_depth) times the MTU, 5 MiB at 4,096 bytes. Messages,
 * RMA and their acknowledgements are cci.h's own datagrams of the port's MTU. All peers need the same qkey.
 *
 * MODE RC. Each reliable connection is a queue pair, joined when it is accepted; all of an endpoint's share one
 * completion queue and one shared receive queue, beside the queue pair for datagrams, which carries handshakes, UU and
 * multicast. A connection costs 256 bytes here and its queue pair there (with rxe 32 KiB at rc_depth 63). Memory is
 * pinned: under 4 MB at an MTU of 4,096, with 32 buffers of max_send_size for sending and 128 for receiving. There are
 * more when they are needed, up to 512 each; or as many from the beginning as send_buf_count and recv_buf_count say.
 * What cci_rma_register() is given is pinned too. A send is complete when the peer's hardware has acknowledged it: the
 * peer's program need not run for that, nor for RMA. CCI_OPT_ENDPT_RECV_BUF_COUNT that is lowered holds when the
 * buffers which the hardware has by then have been used.
 *   A message of 2,048 bytes or more with CCI_FLAG_NO_COPY leaves without a copy if it is in one piece and in memory
 * that the program has registered with cci_rma_register(); otherwise it is copied. As for RMA, memory must not be
 * unmapped before it is deregistered. The library registers nothing by itself and keeps no registration behind
 * cci_rma_deregister(): nobody tells it when memory is unmapped and mapped anew, so a registration that it kept could
 * be one of other memory. Register once what is used again and again. The receiver gets a message where the hardware
 * has put it, without a copy too: there is no rendezvous protocol for large messages.
 *   An adapter may take milliseconds to make a queue pair. From the second connection on, threads of the endpoint make
 * them, as many at once as the key `setups` says; further connections wait for their turn, and nothing else waits.
 * These threads handle no signals, and end with the endpoint. Where there is no memory for a queue pair,
 * CCI_EVENT_ACCEPT comes with CCI_ENOMEM, and the client's CCI_EVENT_CONNECT with CCI_ECONNREFUSED.
 *   A send that is issued behind an RMA read completes after it. Its message may arrive long before, so an answer
 * can come ahead of the completion; on the other transports it never does.
 *   Memory of a GPU is registered with cci_verbs_register_dmabuf(). With on_demand = 1 memory is not pinned.
 *   cci_atomic() is done by the peer's processor, which datagrams ask for it: the peer's program has to call the
 * library, or have progress = thread. So it is atomic with the peer's own instructions and with what others ask of it
 * by any transport, and done once even if the queue pair fails. The adapter's own atomics are not used. Most are atomic
 * with those of the same adapter alone (IBV_ATOMIC_HCA); they know no swap and no numbers of 4 bytes; and whether one
 * whose queue pair failed was done, nobody can tell. 16 of a connection are under way at most: a 17th, and what is
 * issued behind it, waits for an answer, and what is lost is asked for again after 0.1 s at the earliest. What is
 * issued behind an atomic is complete after it. CCI_ERR_RMA_HANDLE: also for memory of a GPU. CCI_ERR_RMA_OP: also from
 * peers with an older library. A connection takes 440 bytes more from the first atomic on, its own or its peer's.
 *   An RMA to memory that the peer has meanwhile deregistered ends with CCI_ERR_RMA_HANDLE; the hardware then breaks
 * both queue pairs, and both sides make them anew without the programs noticing: >>verbs-rc tells how. The same happens
 * when the peer was out of reach. Only after the send timeout is a connection broken.
 *   Who closes a connection or an endpoint tells the peer, up to six times until it answers (an endpoint waits for 0.1
 * s at most): what the peer had got is complete, everything else that is pending ends with CCI_ERR_DISCONNECTED, and
 * messages that had come are still received. CCI_EVENT_DISCONNECT, if CCI_OPT_ENDPT_EVENT_MASK asks for it, comes
 * behind all that. A process that is killed says nothing: it is noticed by the send timeout, or by `probe_idle` where
 * nothing is sent. A server with 1,024 requests that its program has not returned, or without memory for another
 * connection, answers "busy" and says so in its log; the client asks again until its time for connecting is over. One
 * network (IPv4 /24, or the subnet of a GID) gets three quarters at most of what is left of the requests and of 2^20
 * connections. In a request, `peer_uri` names the GID and the queue pair of who asks.
 *   Of the statistics (cci_endpt_stats_t, cci_conn_stats_t) an endpoint tells its connections, waiting events and
 * buffers in use, and a connection its messages and RMAs with their bytes, where CCI_OPT_ENDPT_CONN_STATS is 1, what is
 * pending, and how long the peer is silent. What the hardware does alone is not counted: packets, retransmissions, RMAs
 * of the peer. Mode ud tells all but system calls.
 *   A program's own encryption (cci_setup()) and crc don't hold here. The log warns when an endpoint is made while
 * there are hooks for encryption; mode = ud uses them.
 *   CCI_EVENT_STATUS tells of the device that it went down and came back, that its address went and came back, and the
 * active MTU of its port. Mode ud tells all of paths. In mode rc a path is suspended when the hardware has repeated a
 * packet as often as it does, or when the peer has not answered three questions: about work that stands still, or about
 * a new queue pair. It is resumed when the peer is heard, or the new pair joined. PEER_MOVED is told, PATH_MTU never.
 *
 * MODE AUTO. Adapters keep the state of some hundred or thousand queue pairs near at hand, and fetch that of others.
 * An endpoint with mode = auto is one of mode rc and one of mode ud together, at one address. A new reliable connection
 * has a queue pair while both sides have fewer connections than their `rc_connections` say, without those that go over
 * datagrams; beyond that it goes over datagrams, if both sides have mode auto. It keeps its kind until its end, and its
 * capabilities tell which: CCI_CAN_RMA_HARDWARE. Both can do the same, and an RMA handle is good for either, but one of
 * a GPU's memory for connections with queue pairs alone. Events of connections of different kinds have no order.
 *   The endpoint pins what an endpoint of each mode pins, and has the buffers of both. A blocking call works for
 * connections of its own kind alone; with progress = thread the others go on meanwhile. UU and multicast are as in mode
 * rc. A program's own encryption is used over datagrams alone, so the log warns.
 *
 * FAILURES. CCI_EVENT_ENDPOINT_DEVICE_FAILED comes when the port goes down, loses its address, or the device fails. A
 * port that comes back goes on where it was, as far as send timeouts allow; a device that failed does not: all that is
 * pending then ends with CCI_ERR_DEVICE_DEAD, and so do later calls. A queue pair or completion queue that fails
 * alone is repaired, or the shared receive queue: what was under way is sent again unless it is known to have arrived,
 * and still comes once. In mode = rc a failed queue can lose messages that the hardware has acknowledged and the
 * program has not received. The sender detects that, and the connection ends on both sides with CCI_ERR_DISCONNECTED;
 * connections that lost nothing go on. An RMA is done again unless a message behind it has arrived.
 *
 * WHAT IT NEEDS. Access to /dev/infiniband, and memory that may be locked (ulimit -l): CCI_ENOMEM or CCI_ERROR
 * otherwise, and the log says how much is allowed and needed.
 *
 * FORK. The memory of an endpoint has pages of its own. Linux from 5.12 on copies what the hardware uses for the child
 * of fork(). On an older one the library keeps such pages from the child, as the first endpoint asks it to
 * (ibv_fork_init()): whatever else is on the pages of memory that cci_rma_register() was given is then missing in the
 * child, so register whole pages. If another part of the program has registered memory before that, it has to call
 * ibv_fork_init() itself, or RDMAV_FORK_SAFE=1 has to be in the environment; the log says so.
 *
 * LIMITS. The kernel finds the Ethernet address of a new peer, and may take up to a second when nobody is there. It is
 * found again after 30 s, so a peer that gets another one is not lost for longer.
 *
 * CHECKLIST for a new machine:
 *     ibv_devinfo                                 is a port PORT_ACTIVE? (Debian: ibverbs-utils)
 *     ulimit -l                                   memory that may be locked; better "unlimited"
 *     cci_info                                    the same ports, with address, MTU, rate and PCI address, or what is
 *                                                 missing
 *     cci_perf -d mlx5_0                          on one machine: prints a URI
 *     cci_perf -d mlx5_0 verbs://192.0.2.1:40312 -t lat    on the other
 * On RoCE the port's network interface needs an IP address, which is the port's address then. On lossless networks set
 * traffic_class to what the switches take for lossless traffic. Compare with perftest on the same two ports
 * (ib_send_lat, ib_send_bw, ib_write_bw, ib_read_bw). If both are slow, read `rdma statistic` and the port's counters
 * in /sys/class/infiniband/DEVICE/ports/1/hw_counters:
 *     out_of_sequence, packet_seq_err, local_ack_timeout_err    the network loses: flow control or ECN is not set up
 *     rnr_nak_retry_err, out_of_buffer                          a receiver is too slow for its recv_depth
 *
 * BLUEFIELD. The DPU's Arm cores and the host are two machines with a switch between them, and each needs an RDMA
 * device whose network interface has an IP address. On the host that is its ordinary port (mlx5_0). On the Arm side it
 * is a scalable function, such as enp3s0f0s0 with its device mlx5_2 or mlx5_3; the uplink (p0) and the host's
 * representor (pf0hpf) are ports of the switch and do not serve. Join the representors of both (pf0hpf and en3f0pf0sf0)
 * and the uplink in one bridge of the switch, and give both functions addresses of one subnet. Check with ping and
 * ib_send_lat between host, Arm cores and other machines first. show_gids tells which device has which address.
 * Without RDMA cci_udp.h connects the two over the management interface, tmfifo_net0 (by default 192.168.100.1 on the
 * host, 192.168.100.2 on the Arm side). examples/doca_comm_channel.h is a channel of messages over either.
 *
 * TESTED on the Linux kernel's software driver (rxe, RoCE version 2) in a virtual machine, and on a simulated device
 * (tests/verbs) that also plays InfiniBand, kinds of adapters, failing hardware and hostile peers. NOT TESTED on any
 * adapter, InfiniBand fabric or BlueField:
 *   rates and latencies; PCI placement; relaxed ordering and moderation, beyond being accepted or refused
 *   how long queue pairs take to make, and how many an adapter makes at once (key `setups`)
 *   whether flow labels spread connections over paths and bonds; congestion of real switches
 *   on-demand paging (rxe has it only in newer kernels) and dmabufs of GPUs
 *   limits of drivers (inline data, queue depths, when IBV_EVENT_QP_LAST_WQE_REACHED comes): played from documentation
 *   IPoIB, partitions, a subnet manager that moves LIDs, and the removal of a busy device
 * ==================================================================================================================
 * >>verbs-config
 *
 * CCI_VERBS_IMPLEMENTATION  emits the code of this header; CCI_IMPLEMENTATION implies it.
 * CCI_VERBS_LINK            the program is linked with libibverbs (-libverbs); default: it is opened at run time.
 * CCI_VERBS_LIBRARY         the name under which it is opened (default: "libibverbs.so.1").
 * CCI_VERBS_READ_FILE       int f(const char *path, char *text, size_t size): reads the first line of a file under
 *                           /sys; returns 0 with errno when that can't be read.
 * CCI_NO_VERBS_H            there is no <infiniband/verbs.h>; default: found out by __has_include. The transport then
 *                           has no devices and says why.
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

/* Registers memory of another device, such as a GPU, for RMA by an endpoint with mode = rc: `length` bytes from
 * `offset` of the dmabuf `fd`, which that device's driver has exported (CUDA: cuMemGetHandleForAddressRange). `start`
 * is how they are addressed, as by the driver: not NULL, and as far from the beginning of a page as `offset` is. The
 * library never looks there. The descriptor may be closed afterwards; the handle goes to cci_rma_deregister() as any
 * other.
 * CCI_ERR_NOT_IMPLEMENTED: library, kernel, adapter or endpoint can't do it. CCI_EINVAL: an argument, or no dmabuf.
 * CCI_ENOMEM, CCI_ENOBUFS as with cci_rma_register(). */
CCI_API int cci_verbs_register_dmabuf(cci_endpoint_t *endpoint, int fd, uint64_t offset, void *start, uint64_t length,
                                      int flags, cci_rma_handle_t **handle);
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
#elif defined(__GLIBC__) && !defined(__USE_MISC)
#error "a system header was included in strict ISO mode: include cci_verbs.h first, or define _DEFAULT_SOURCE"
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
static inline
#endif
    int
    cci_verbs_register_dmabuf(cci_endpoint_t *endpoint, int fd, uint64_t offset, void *start, uint64_t length,
                              int flags, cci_rma_handle_t **handle) {
    (void)endpoint;
    (void)fd;
    (void)offset;
    (void)start;
    (void)length;
    (void)flags;
    (void)handle;
    return CCI_ERR_NOT_IMPLEMENTED;
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
#include <sys/resource.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#ifndef CCI_VERBS_LINK
#include <dlfcn.h>
#endif

#ifndef CCI_NO_THREADS
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#endif

#include <infiniband/verbs.h>

/* Numbers in byte order, the keyed hash, and for mode = rc events, connections and registrations. */
#define CCI_LAYERS_INCLUDING
#ifndef CCI_BASE_IMPLEMENTATION
#define CCI_BASE_IMPLEMENTATION
#endif
#ifndef CCI_ENDPOINT_IMPLEMENTATION
#define CCI_ENDPOINT_IMPLEMENTATION
#endif
#ifndef CCI_RMA_IMPLEMENTATION
#define CCI_RMA_IMPLEMENTATION
#endif
#include "cci.h"
#undef CCI_LAYERS_INCLUDING

/* ==================================================================================================================
 * >>verbs-library
 *
 * Only what libibverbs exports is named here. What its header does itself (ibv_post_send, ibv_poll_cq and others that
 * call the driver through the context) is used as it is.
 * ================================================================================================================== */

#ifndef CCI_VERBS_LIBRARY
#define CCI_VERBS_LIBRARY "libibverbs.so.1"
#endif

#ifndef CCI_VERBS_READ_FILE
#define CCI_VERBS_READ_FILE cci__verbs_read_file
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

/* The same for what older libraries and headers don't have; NULL where it is missing. The status is 2 where the
 * kernel copies the pages of fork()'s child at once. */
#define CCI__VERBS_OPTIONAL(X)                                                                                         \
    X(int, fork_init, (void))                                                                                          \
    X(int, is_fork_initialized, (void))                                                                                \
    X(struct ibv_mr *, reg_dmabuf_mr,                                                                                  \
      (struct ibv_pd * pd, uint64_t offset, size_t length, uint64_t address, int fd, int access))

typedef struct cci__verbs_functions {
#define CCI__VERBS_POINTER(type, name, arguments) type(*name) arguments;
    CCI__VERBS_FUNCTIONS(CCI__VERBS_POINTER)
    CCI__VERBS_OPTIONAL(CCI__VERBS_POINTER)
#undef CCI__VERBS_POINTER
} cci__verbs_functions;

/* Filled once, under the core's lock, and never taken back: drivers stay in the process as long as it lives. */
static cci__verbs_functions cci__ibv;
static int cci__ibv_is_loaded, cci__ibv_may_fork;

#ifdef CCI_VERBS_LINK

/* Older libraries lack it. */
#if defined(__GNUC__) && !defined(__cplusplus)
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
    __attribute__((weak));
#define CCI__VERBS_LINKS_DMABUF
#endif

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
    cci__ibv.fork_init = ibv_fork_init; /* the other may be missing, and is asked by this one */
#ifdef CCI__VERBS_LINKS_DMABUF
    cci__ibv.reg_dmabuf_mr = ibv_reg_dmabuf_mr;
#endif
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
    CCI__VERBS_FUNCTIONS(CCI__VERBS_SYMBOL)};

static const cci__verbs_symbol cci__verbs_optional_symbols[] = {CCI__VERBS_OPTIONAL(CCI__VERBS_SYMBOL)
#undef CCI__VERBS_SYMBOL
};

/* Takes a function of the library; 0: it has no such. */
static int cci__verbs_take_symbol(void *library, const cci__verbs_symbol *symbol) {
    void *address = dlsym(library, symbol->name);
    memcpy((char *)&cci__ibv + symbol->offset, &address, sizeof address);
    return address != NULL;
}

/* Opens the library. Returns 0 with the reason in `why`. */
static int cci__verbs_load(char *why, size_t why_size) {
    const char *reason;
    size_t i;
    void *library;
    if (cci__ibv_is_loaded) return 1;
    library = dlopen(CCI_VERBS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        reason = dlerror();
        if (!reason || strstr(reason, "No such file") || strstr(reason, "not found"))
            snprintf(why, why_size, "%s not found", CCI_VERBS_LIBRARY);
        else
            snprintf(why, why_size, "%s can't be used: %.120s", CCI_VERBS_LIBRARY, reason);
        return 0;
    }
    for (i = 0; i < sizeof cci__verbs_symbols / sizeof cci__verbs_symbols[0]; i++) {
        if (!cci__verbs_take_symbol(library, &cci__verbs_symbols[i])) {
            snprintf(why, why_size, "%s has no %s", CCI_VERBS_LIBRARY, cci__verbs_symbols[i].name);
            dlclose(library);
            return 0;
        }
    }
    for (i = 0; i < sizeof cci__verbs_optional_symbols / sizeof cci__verbs_optional_symbols[0]; i++)
        (void)cci__verbs_take_symbol(library, &cci__verbs_optional_symbols[i]);
    cci__ibv_is_loaded = 1;
    return 1;
}

#endif

/* ==================================================================================================================
 * >>verbs-state
 * ================================================================================================================== */

#define CCI__VERBS_NAME 64          /* bytes of a device's name, with the final 0; as in libibverbs */
#define CCI__VERBS_QKEY 0x00434349u /* default */
#define CCI__VERBS_RECV_DEPTH 1024u /* defaults of mode ud */
#define CCI__VERBS_SEND_DEPTH 256u
#define CCI__VERBS_RC_RECV_DEPTH 256u /* of mode rc: for handshakes, UU and multicast */
#define CCI__VERBS_RC_SEND_DEPTH 128u
#define CCI__VERBS_RC_DEPTH 63u /* drivers take a power of two, and some keep one place for themselves */
#define CCI__VERBS_SRQ_DEPTH 4096u
#define CCI__VERBS_RC_SENDS 4096u      /* work requests of the endpoint that are under way at most */
#define CCI__VERBS_RC_FIRST_SENDS 32u  /* buffers that an endpoint begins with where no number was configured; */
#define CCI__VERBS_RC_FIRST_RECVS 128u /* more are pinned when they are needed */
#define CCI__VERBS_PROBE_IDLE_S 300u
#define CCI__VERBS_MODERATION_US 4u
#define CCI__VERBS_MODERATION_COUNT 16u /* completions that ring without waiting for more */
#define CCI__VERBS_RC_MESSAGE 8192u     /* default size of the largest message in mode rc */
#define CCI__VERBS_GID_MAX 256          /* entries of a port's address table that can be named */
#define CCI__VERBS_GID_ANY 0xffffu
#define CCI__VERBS_FLOW_VARIES UINT32_MAX
#define CCI__VERBS_SETUPS 2u /* queue pairs that are made at once; so many firmware commands do not queue up */
#define CCI__VERBS_SETUPS_MOST 32u
#define CCI__VERBS_RC_CONNECTIONS 1024u /* of mode auto, before others go over datagrams */

enum { CCI__VERBS_RC, CCI__VERBS_UD };

/* A device, as `discover` or `configure` made it: which port is meant and what the keys said. Lives in
 * cci_device_desc_t.data. */
typedef struct cci__verbs_device {
    char name[CCI__VERBS_NAME]; /* key `device`, or ""            */
    char congestion[16];        /* or ""                          */
    char interface_name[16];    /* key `interface`, or ""         */
    uint8_t ip[16];             /* key `ip`                       */
    uint32_t qkey, address_handles, send_buf_count, recv_buf_count, memory_bytes, send_timeout_us;
    uint32_t max_send_size;          /* 0: what a datagram takes       */
    uint32_t probe_idle_s;           /* 0: never                       */
    uint32_t flow_label;             /* CCI__VERBS_FLOW_VARIES: by connection */
    uint16_t gid_index;              /* CCI__VERBS_GID_ANY: chosen     */
    uint16_t service;                /* UDP port; 0: any               */
    uint16_t pkey;                   /* 0: the table's first           */
    uint16_t mtu;                    /* 0: the port's                  */
    uint16_t recv_depth, send_depth; /* 0: as the mode is              */
    uint16_t rc_depth, srq_depth;
    uint8_t port;      /* 0: the first active one        */
    uint8_t ip_family; /* 0, 4 or 6 */
    uint8_t traffic_class, service_level, hop_limit;
    uint8_t mode;
    uint8_t is_auto; /* with mode rc: key `mode` is auto */
    uint8_t progress_thread, crc;
    uint8_t ack_timeout, retry_count, rnr_timer; /* mode = rc */
    uint8_t relaxed_ordering, on_demand;
    uint8_t setups;
    uint32_t rc_connections; /* with is_auto: from so many on, new ones go over datagrams */
    uint16_t moderation_us;  /* 0: completions ring at once         */
    uint8_t state;           /* CCI__VERBS_UNSEEN and so on */
} cci__verbs_device;

/* A device that was never there; one that has been described; one that lacks something. */
enum { CCI__VERBS_UNSEEN, CCI__VERBS_SEEN, CCI__VERBS_REFUSED };

typedef char cci__verbs_device_fits[sizeof(cci__verbs_device) <= sizeof(((cci_device_desc_t *)0)->data) ? 1 : -1];

typedef union cci__verbs_sockaddr {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} cci__verbs_sockaddr;

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
    const char *lacks; /* why the adapter can't be used; NULL: it can */
} cci__verbs_port;

#define CCI__VERBS_GRH 40u  /* bytes that come before each datagram: the routing header */
#define CCI__VERBS_PIECES 3 /* of a datagram that is sent */
#define CCI__VERBS_BATCH 32 /* work requests posted, or completions taken, at once */
#define CCI__VERBS_GROUPS 16u
#define CCI__VERBS_WAYS 8u                             /* places of the handle table in which an address may stand */
#define CCI__VERBS_HANDLES 2048u                       /* default */
#define CCI__VERBS_QUESTIONS 256u                      /* addresses that are asked for at once */
#define CCI__VERBS_HANDLE_AGE_NS UINT64_C(30000000000) /* then the Ethernet address behind it is looked up again */
#define CCI__VERBS_HANDLE_RETRY_NS UINT64_C(100000000) /* after a failure */
#define CCI__VERBS_RETIRED 64u
#define CCI__VERBS_LOOK_NS UINT64_C(500000)     /* how often the socket is looked at where nobody waits */
#define CCI__VERBS_REPAIR_NS UINT64_C(10000000) /* from one repair to the next */

/* The canonical form of an address in cci_link_addr_t. Numbers are big-endian.
 *     queue pair  1, 0, LID 2 (0 on Ethernet), 0 1, queue pair number 3, GID 16
 *     group       2, 0, port 2, zeros 4, GID 16
 *     host        4 or 6, 0, port 2, scope 4 (this host's order), address 4 or 16, zeros: to be asked for the first */
enum { CCI__VERBS_TO_QP = 1, CCI__VERBS_TO_GROUP = 2 };

/* What the hardware needs to send to an address, kept for as long as its place is not wanted by another. */
typedef struct cci__verbs_handle {
    cci_link_addr_t to; /* zeros: the place is empty */
    struct ibv_ah *ah;  /* NULL: it could not be made */
    uint64_t made_ns;   /* or tried */
    uint64_t used;      /* the last send's number */
    uint32_t hits;
    uint8_t is_outdated;
} cci__verbs_handle;

/* A handle that has been replaced, while datagrams to it may still be under way. */
typedef struct cci__verbs_retired {
    struct ibv_ah *ah;
    uint64_t used;
} cci__verbs_retired;

typedef struct cci__verbs_group {
    cci_link_addr_t to;
} cci__verbs_group;

/* A host that was asked for its endpoint's address. */
typedef struct cci__verbs_question {
    cci_link_addr_t host;
    cci_link_addr_t answer;
    uint8_t nonce[8];
    uint64_t asked_ns, wanted_ns, answered_ns; /* the last time; 0: never */
    uint32_t tries;
    int status; /* CCI_EAGAIN: no answer yet */
} cci__verbs_question;

/* How waiting works: two epoll sets watch the completion channel, asynchronous events, the socket and `more`, an
 * eventfd that says that completions were left behind. `handle`, the OS handle, also has the timer and the eventfd that
 * `arm` keeps readable; `sleeper`, which `wait` waits on, the eventfd that `wake` writes. */
typedef struct cci__verbs_waiter {
    int handle, sleeper, wake, more, readable, timer;
    int is_readable, is_more;
    int sleeps; /* somebody has called `wait` */
    int holds;  /* the OS handle has only what `arm` says: the helper thread alone waits for the adapter */
    int has_pwait2;
    uint64_t armed_ns;
} cci__verbs_waiter;

typedef struct cci__verbs_link {
    cci__verbs_device device;
    cci__verbs_port port;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *recv_cq, *send_cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct ibv_cq *more_cq;                                            /* see cci__verbs_share_channel() */
    void (*on_event)(void *user, const struct ibv_async_event *event); /* what is not the link's own; or NULL */
    void *on_event_user;
    uint64_t key[2]; /* of the hash */
    uint32_t mtu, max_inline;
    uint32_t epoch;  /* of the work requests */
    uint64_t pinned; /* bytes that the endpoint pins, about */
    int vector;      /* of its completion queues: which of the adapter's interrupts they raise */
    int refuses;     /* receive buffers were not taken, and the log says so */
    int pkey_index;
    /* sending: numbers count work requests, the slot is the number modulo the depth */
    uint64_t send_next, send_done;
    uint32_t send_depth, send_stride, signal_every;
    uint8_t *send_packets;
    struct ibv_send_wr send_wr[CCI__VERBS_BATCH];
    struct ibv_sge send_piece[CCI__VERBS_BATCH][CCI__VERBS_PIECES];
    /* receiving */
    uint32_t recv_depth, recv_stride;
    uint8_t *memory, *packets;
    struct ibv_recv_wr *recv_wr, *to_post;
    struct ibv_sge *recv_piece;
    uint32_t to_post_count;
    uint64_t unmatched; /* datagrams that were dropped: not from or for whom they should be */
    /* address handles */
    cci__verbs_handle *handles, *last_handle;
    cci__verbs_retired retired[CCI__VERBS_RETIRED];
    uint32_t retired_count;
    uint64_t handles_again_ns; /* making them took long: none for new addresses until then */
    uint64_t unreachable;      /* datagrams that had none */
    /* groups */
    int group_socket;
    uint32_t group_count;
    cci__verbs_group groups[CCI__VERBS_GROUPS];
    /* names */
    int socket;
    cci_link_addr_t host; /* where it is bound; zeros: there is none */
    cci__verbs_question questions[CCI__VERBS_QUESTIONS];
    uint32_t question_count; /* without an answer */
    uint64_t looked_ns;      /* at the socket */
    /* state of the device */
    int is_up, is_dead, is_news, is_broken, cq_is_broken;
    cci_link_state_t state;
    uint32_t repairs;
    uint64_t repaired_ns;
    uint64_t now_ns; /* when the clock was read last */
    /* waiting */
    int is_beside; /* it has neither name nor service: another endpoint's does */
    int wants_handle;
    int is_armed, more_is_armed;
    unsigned unacked, more_unacked;
    cci__verbs_waiter waiter;
} cci__verbs_link;

/* What sections use of those behind them. */
static void cci__verbs_broken(cci__verbs_link *l, const char *what, const char *reason);
static int cci__verbs_works(cci__verbs_link *l);
static void cci__verbs_check(const cci__verbs_link *l, int error, const char *what);
static uint64_t cci__verbs_now(void *link);
static void cci__verbs_reap(cci__verbs_link *l);
static void cci__verbs_look_around(cci__verbs_link *l);
static int cci__verbs_arm_queues(cci__verbs_link *l);
static void cci__verbs_leave(cci__verbs_link *l, int is_more);
static int cci__verbs_open_queues(cci__verbs_link *l);
static void cci__verbs_close_queues(cci__verbs_link *l);
static int cci__verbs_start_qp(cci__verbs_link *l);
static void cci__verbs_restart_rings(cci__verbs_link *l);
static void cci__verbs_post(cci__verbs_link *l);
static void cci__verbs_unwatch(int set, int fd);

/* ==================================================================================================================
 * >>verbs-text
 * ================================================================================================================== */

/* Logs "verbs mlx5_0: what: the system's reason"; the status for that. */
static int cci__verbs_log(int level, const char *device, const char *what, int error) {
    char text[400];
    snprintf(text, sizeof text, "verbs %s: %s%s%s", device[0] ? device : "-", what, error ? ": " : "",
             error ? strerror(error) : "");
    cci_log(level, text);
    return cci_status_of_errno(error);
}

/* The same where memory for the hardware can't be had, with what is allowed and what is needed: about so many bytes. */
static int cci__verbs_log_memory(int level, const char *device, const char *what, int error, uint64_t bytes) {
    char text[300], allowed[40] = "as much as it wants";
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        snprintf(allowed, sizeof allowed, "%lu KiB", (unsigned long)(limit.rlim_cur / 1024));
    snprintf(text, sizeof text,
             "%.60s: %.100s; the process may lock %s (`ulimit -l`), and the endpoint needs about %lu KiB", what,
             strerror(error), allowed, (unsigned long)((bytes + 1023) / 1024));
    cci__verbs_log(level, device, text, 0);
    return cci_status_of_errno(error);
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
        if (*text >= '0' && *text <= '9')
            digit = (unsigned)(*text - '0');
        else if (base == 16 && ((*text >= 'a' && *text <= 'f') || (*text >= 'A' && *text <= 'F')))
            digit = (unsigned)((*text | 32) - 'a') + 10;
        else
            break;
        if (digits == 12) return 0;
        n = n * base + digit;
    }
    *number = n;
    return digits > 0 && *text == 0;
}

/* The first line of a file of the kernel's; 0 with errno when it can't be read. */
static int cci__verbs_read_file(const char *path, char *text, size_t size) {
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    text[0] = 0;
    if (fd < 0) return 0;
    n = read(fd, text, size - 1);
    close(fd);
    if (n <= 0) return 0;
    text[n] = 0;
    text[strcspn(text, "\n")] = 0;
    return 1;
}

/* What the kernel tells of a port: "state". */
static int cci__verbs_read_port(const char *device, unsigned port, const char *what, char *text, size_t size) {
    char path[200];
    snprintf(path, sizeof path, "/sys/class/infiniband/%.63s/ports/%u/%.80s", device, port, what);
    return CCI_VERBS_READ_FILE(path, text, size);
}

/* An entry of one of its tables: "gid_attrs/types/3". */
static int cci__verbs_read_attribute(const cci__verbs_port *port, const char *what, unsigned index, char *text,
                                     size_t size) {
    char entry[80];
    snprintf(entry, sizeof entry, "%.60s/%u", what, index);
    return cci__verbs_read_port(port->device, port->number, entry, text, size);
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

/* An entry of the port's address table, from an open device or else from /sys; 0: it is empty. */
static int cci__verbs_read_gid(struct ibv_context *context, const cci__verbs_port *port, uint32_t index,
                               uint8_t *bytes) {
    char text[64];
    union ibv_gid gid;
    if (context) {
        if (cci__ibv.query_gid(context, port->number, (int)index, &gid) != 0) return 0;
        memcpy(bytes, gid.raw, 16);
    } else if (!cci__verbs_read_attribute(port, "gids", index, text, sizeof text) ||
               inet_pton(AF_INET6, text, bytes) != 1) {
        return 0;
    }
    return !cci__verbs_is_zero(bytes, 16);
}

/* What kind of address stands in the table at `index`, and the address itself. */
static int cci__verbs_gid_at(struct ibv_context *context, const cci__verbs_port *port, uint32_t index, uint8_t *bytes) {
    char type[32];
    if (!cci__verbs_read_gid(context, port, index, bytes)) return CCI__GID_NONE;
    if (!port->is_ethernet) return CCI__GID_IB;
    /* an older kernel doesn't tell the type: then an IPv4 address is version 2 for sure */
    if (cci__verbs_read_attribute(port, "gid_attrs/types", index, type, sizeof type) ? strcmp(type, "RoCE v2") != 0
                                                                                     : !cci__verbs_is_mapped_v4(bytes))
        return CCI__GID_V1;
    return cci__verbs_is_mapped_v4(bytes)                  ? CCI__GID_V2_IPV4
           : bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80 ? CCI__GID_V2_LINK_LOCAL
                                                           : CCI__GID_V2_IPV6;
}

/* Does an interface's hardware address, "80:00:01:...", end with this GID? That is so with IPoIB. */
static int cci__verbs_ends_with_gid(const char *text, const uint8_t *gid) {
    unsigned i, byte;
    if (strlen(text) != 20 * 3 - 1) return 0;
    for (i = 0; i < 16; i++)
        if (sscanf(text + (size_t)(4 + i) * 3, "%2x", &byte) != 1 || byte != gid[i]) return 0;
    return 1;
}

/* The IPoIB interface of an InfiniBand address, "" if there is none. */
static void cci__verbs_find_ipoib(const uint8_t *gid, char *name, size_t size) {
    struct if_nameindex *list = if_nameindex(), *at;
    for (at = list; at && at->if_name; at++) {
        char path[80], text[80];
        snprintf(path, sizeof path, "/sys/class/net/%.20s/address", at->if_name);
        if (CCI_VERBS_READ_FILE(path, text, sizeof text) && cci__verbs_ends_with_gid(text, gid)) {
            snprintf(name, size, "%.15s", at->if_name);
            break;
        }
    }
    if (list) if_freenameindex(list);
}

/* The network interface of an address, "" if it isn't known. 0: the address is of no use here, since the interface
 * is gone, or another container's. An older kernel doesn't tell. */
static int cci__verbs_gid_interface(const cci__verbs_port *port, uint32_t index, const uint8_t *gid, char *name,
                                    size_t size) {
    errno = 0;
    if (cci__verbs_read_attribute(port, "gid_attrs/ndevs", index, name, size)) return if_nametoindex(name) != 0;
    name[0] = 0;
    if (port->is_ethernet) return errno == ENOENT;
    cci__verbs_find_ipoib(gid, name, size);
    return 1;
}

/* Has an interface of this system this IP address? */
static int cci__verbs_interface_has(const char *name, const cci__verbs_device *d) {
    struct ifaddrs *list, *a;
    int found = 0;
    if (getifaddrs(&list) != 0) return 0;
    for (a = list; a && !found; a = a->ifa_next) {
        cci__verbs_sockaddr s;
        if (!a->ifa_addr || strcmp(a->ifa_name, name) != 0) continue;
        if (a->ifa_addr->sa_family == AF_INET && d->ip_family == 4) {
            memcpy(&s.v4, a->ifa_addr, sizeof s.v4);
            found = memcmp(&s.v4.sin_addr, d->ip, 4) == 0;
        } else if (a->ifa_addr->sa_family == AF_INET6 && d->ip_family == 6) {
            memcpy(&s.v6, a->ifa_addr, sizeof s.v6);
            found = memcmp(&s.v6.sin6_addr, d->ip, 16) == 0;
        }
    }
    freeifaddrs(list);
    return found;
}

/* Is it an address that the keys allow? On InfiniBand `ip` is that of the IPoIB interface. */
static int cci__verbs_is_meant(const cci__verbs_device *d, int is_ethernet, const uint8_t *gid,
                               const char *interface_name) {
    if (d->interface_name[0] && strcmp(d->interface_name, interface_name) != 0) return 0;
    if (d->ip_family == 0) return 1;
    if (!is_ethernet) return cci__verbs_interface_has(interface_name, d);
    return d->ip_family == 4 ? cci__verbs_is_mapped_v4(gid) && memcmp(gid + 12, d->ip, 4) == 0
                             : memcmp(gid, d->ip, 16) == 0;
}

/* Does the kernel find a way for what leaves by this address? The way to itself shows it. */
static int cci__verbs_try_gid(struct ibv_pd *pd, const cci__verbs_port *port) {
    struct ibv_ah_attr a;
    struct ibv_ah *ah;
    memset(&a, 0, sizeof a);
    memcpy(a.grh.dgid.raw, port->gid, 16);
    a.grh.sgid_index = (uint8_t)port->gid_index;
    a.grh.hop_limit = 64;
    a.is_global = 1;
    a.port_num = port->number;
    ah = cci__ibv.create_ah(pd, &a);
    if (ah) cci__ibv.destroy_ah(ah);
    return ah != NULL;
}

/* Takes the first address of this kind that can be used, keys allow, and the kernel finds a way for; 0: there is
 * none. The first that is only without a way is taken too, for want of a better one. `pd`: NULL if that can't be
 * tried. */
static int cci__verbs_take_gid(struct ibv_context *context, struct ibv_pd *pd, const cci__verbs_device *d,
                               uint8_t *kinds, int kind, cci__verbs_port *port) {
    uint32_t first = d->gid_index == CCI__VERBS_GID_ANY ? 0 : d->gid_index, i;
    uint32_t end = d->gid_index == CCI__VERBS_GID_ANY ? CCI__VERBS_GID_MAX : first + 1;
    for (i = first; i < end; i++) {
        cci__verbs_port with = *port;
        if (kinds[i] == 0xff) kinds[i] = (uint8_t)cci__verbs_gid_at(context, port, i, with.gid);
        if (kinds[i] != kind || !cci__verbs_read_gid(context, port, i, with.gid) ||
            !cci__verbs_gid_interface(port, i, with.gid, with.interface_name, sizeof with.interface_name) ||
            !cci__verbs_is_meant(d, port->is_ethernet, with.gid, with.interface_name))
            continue;
        with.gid_index = i;
        with.gid_kind = kind;
        if (!pd || cci__verbs_try_gid(pd, &with)) {
            *port = with;
            return 1;
        }
        if (port->gid_kind == CCI__GID_NONE) *port = with;
    }
    return 0;
}

/* The best address of the port that fits the device; the first of several equals. `count`: entries of the table.
 * Without a context, as far as /sys tells. */
static void cci__verbs_choose_gid(struct ibv_context *context, const cci__verbs_device *d, int count,
                                  cci__verbs_port *port) {
    uint8_t kinds[CCI__VERBS_GID_MAX];
    struct ibv_pd *pd = context && port->is_ethernet && port->is_active ? cci__ibv.alloc_pd(context) : NULL;
    int kind, found = 0;
    memset(kinds, CCI__GID_NONE, sizeof kinds);
    memset(kinds, 0xff, (size_t)(count < 0 ? 0 : count < CCI__VERBS_GID_MAX ? count : CCI__VERBS_GID_MAX));
    port->gid_kind = CCI__GID_NONE;
    for (kind = CCI__GID_V2_IPV4; kind > CCI__GID_NONE && !found; kind--)
        found = cci__verbs_take_gid(context, pd, d, kinds, kind, port);
    if (pd) cci__ibv.dealloc_pd(pd);
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
    if (n <= 0) return;
    target[n] = 0;
    name = strrchr(target, '/');
    if (name && sscanf(name + 1, "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4) {
        pci[0] = domain;
        pci[1] = bus;
        pci[2] = slot;
        pci[3] = function;
    }
}

/* Does the adapter have queue pairs of this kind? Where they can't be made for another reason, that is seen later. */
static int cci__verbs_has_type(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq, enum ibv_qp_type type) {
    struct ibv_qp_init_attr a;
    struct ibv_qp *qp;
    memset(&a, 0, sizeof a);
    a.send_cq = a.recv_cq = cq;
    a.srq = srq;
    a.cap.max_send_wr = a.cap.max_send_sge = 1;
    a.cap.max_recv_wr = a.cap.max_recv_sge = srq ? 0 : 1;
    a.qp_type = type;
    qp = cci__ibv.create_qp(pd, &a);
    if (!qp) return errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS;
    cci__ibv.destroy_qp(qp);
    return 1;
}

/* What the adapter lacks for the device's mode among the kinds of queues; NULL: nothing. */
static const char *cci__verbs_try_queues(struct ibv_context *context, const cci__verbs_device *d) {
    struct ibv_srq_init_attr a;
    const char *lacks = NULL;
    struct ibv_pd *pd = cci__ibv.alloc_pd(context);
    struct ibv_cq *cq = cci__ibv.create_cq(context, 16, NULL, NULL, 0);
    struct ibv_srq *srq = NULL;
    memset(&a, 0, sizeof a);
    a.attr.max_wr = 16;
    a.attr.max_sge = 1;
    if (pd && cq && d->mode == CCI__VERBS_RC) srq = cci__ibv.create_srq(pd, &a);
    if (pd && cq && !cci__verbs_has_type(pd, cq, NULL, IBV_QPT_UD))
        lacks = "it has no datagram queue pairs";
    else if (srq && !cci__verbs_has_type(pd, cq, srq, IBV_QPT_RC))
        lacks = "it has no reliable connected queue pairs; use mode = ud";
    if (srq) cci__ibv.destroy_srq(srq);
    if (cq) cci__ibv.destroy_cq(cq);
    if (pd) cci__ibv.dealloc_pd(pd);
    return lacks;
}

/* What the adapter lacks for the device's mode; NULL: nothing. `thorough`: as far as trying shows it. */
static const char *cci__verbs_lacks(struct ibv_context *context, const cci__verbs_device *d,
                                    const struct ibv_device_attr *a, int thorough) {
    int transport = (int)context->device->transport_type;
    if (transport == (int)IBV_TRANSPORT_IWARP) return "it is iWARP, which has no datagrams";
    if (transport != (int)IBV_TRANSPORT_IB) return "it is neither InfiniBand nor RoCE";
    if (d->mode == CCI__VERBS_RC && a->max_srq <= 0) return "it has no shared receive queues; use mode = ud";
    return thorough ? cci__verbs_try_queues(context, d) : NULL;
}

/* Bytes of a port's largest packet; the smallest that there is if the driver names none. */
static uint32_t cci__verbs_active_mtu(const struct ibv_port_attr *port) {
    return 128u << (port->active_mtu >= 1 && port->active_mtu <= 5 ? (unsigned)port->active_mtu : 1);
}

/* Describes one port of an open device; 0 when there is no such port. */
static int cci__verbs_describe(struct ibv_context *context, const char *name, unsigned number,
                               const cci__verbs_device *d, int thorough, cci__verbs_port *port) {
    struct ibv_device_attr device;
    struct ibv_port_attr a;
    memset(port, 0, sizeof *port);
    memset(&device, 0, sizeof device);
    memset(&a, 0, sizeof a);
    if (cci__ibv.query_device(context, &device) != 0 || number < 1 || number > device.phys_port_cnt ||
        cci__ibv.query_port(context, (uint8_t)number, &a) != 0)
        return 0;
    snprintf(port->device, sizeof port->device, "%s", name);
    port->number = (uint8_t)number;
    port->port_count = device.phys_port_cnt;
    port->is_active = a.state == IBV_PORT_ACTIVE;
    port->is_ethernet = a.link_layer == IBV_LINK_LAYER_ETHERNET;
    port->lid = a.lid;
    port->mtu = cci__verbs_active_mtu(&a);
    port->rate = cci__verbs_rate(a.active_width, a.active_speed);
    cci__verbs_pci(name, port->pci);
    port->lacks = cci__verbs_lacks(context, d, &device, thorough);
    if (port->lacks)
        port->is_active = 0;
    else
        cci__verbs_choose_gid(context, d, a.gid_tbl_len, port);
    if (port->gid_kind == CCI__GID_NONE) port->is_active = 0;
    return 1;
}

/* What /sys tells of a port that was described, or whose device and number are all that is known: 1 it works, 0 it
 * doesn't, -1 nothing is to be learnt. */
static int cci__verbs_glance(const cci__verbs_device *d, cci__verbs_port *port) {
    char text[64];
    unsigned whole, tenth = 0;
    if (!cci__verbs_read_port(port->device, port->number, "state", text, sizeof text)) return -1;
    port->is_active = text[0] == '4' && !port->lacks;
    if (!port->is_active) return 0;
    port->is_ethernet = cci__verbs_read_port(port->device, port->number, "link_layer", text, sizeof text) &&
                        strcmp(text, "Ethernet") == 0;
    if (cci__verbs_read_port(port->device, port->number, "rate", text, sizeof text) &&
        sscanf(text, "%u.%1u", &whole, &tenth) >= 1)
        port->rate = (whole * UINT64_C(10) + tenth) * 100000000u;
    cci__verbs_choose_gid(NULL, d, CCI__VERBS_GID_MAX, port);
    port->is_active = port->gid_kind != CCI__GID_NONE;
    return port->is_active;
}

static int cci__verbs_is_named(const cci__verbs_device *d, const char *name) {
    return !d->name[0] || strcmp(d->name, name) == 0;
}

/* Does one of the ports that the device may mean work, as far as /sys tells? *rate: the fastest of them. -1: nothing
 * is to be learnt. */
static int cci__verbs_glance_all(const cci__verbs_device *d, uint64_t *rate) {
    int i, count = 0, result = 0;
    struct ibv_device **list = cci__ibv.get_device_list(&count);
    for (i = 0; list && i < count; i++) {
        const char *name = cci__ibv.get_device_name(list[i]);
        unsigned number;
        for (number = d->port ? d->port : 1; cci__verbs_is_named(d, name) && number < 255; number++) {
            cci__verbs_port port;
            int is_up;
            memset(&port, 0, sizeof port);
            snprintf(port.device, sizeof port.device, "%s", name);
            port.number = (uint8_t)number;
            is_up = cci__verbs_glance(d, &port);
            if (is_up > 0) {
                result = 1;
                *rate = port.rate > *rate ? port.rate : *rate;
            } else if (is_up < 0 && number == (d->port ? d->port : 1) && result == 0) {
                result = -1;
            }
            if (is_up < 0 || d->port) break;
        }
    }
    if (list) cci__ibv.free_device_list(list);
    return result;
}

/* Once, before anything is registered: pages that the hardware uses stay this process's own when it forks. Newer
 * kernels copy them for the child by themselves; for older ones the library hides them from it. */
static void cci__verbs_prepare_fork(const char *name) {
    int error;
    if (cci__ibv_may_fork || (cci__ibv.is_fork_initialized && cci__ibv.is_fork_initialized() != 0)) return;
    cci__ibv_may_fork = 1;
    error = cci__ibv.fork_init ? cci__ibv.fork_init() : 0;
    if (error)
        cci__verbs_log(CCI_LOG_WARN, name, "fork() would endanger what the hardware writes", error > 0 ? error : errno);
}

/* Opens a device, for the first time after what that needs. */
static struct ibv_context *cci__verbs_open_device(struct ibv_device *device) {
    cci__verbs_prepare_fork(cci__ibv.get_device_name(device));
    return cci__ibv.open_device(device);
}

/* What was found out about ports by opening their devices, for proposals; who asks for these again opens none. */
#define CCI__VERBS_KNOWN 32
static cci__verbs_port cci__verbs_known[CCI__VERBS_KNOWN];
static int cci__verbs_known_count;

static cci__verbs_port *cci__verbs_find_known(const char *name, unsigned number) {
    int i;
    for (i = 0; i < cci__verbs_known_count; i++)
        if (cci__verbs_known[i].number == number && strcmp(cci__verbs_known[i].device, name) == 0)
            return &cci__verbs_known[i];
    return NULL;
}

/* Ports of a device that is known, as they are now; 0: it isn't known, or nothing is to be learnt of it now. */
static int cci__verbs_recall(const char *name, unsigned number, const cci__verbs_device *d, cci__verbs_port *port) {
    const cci__verbs_port *known = cci__verbs_find_known(name, number);
    if (!known) return 0;
    *port = *known;
    return port->lacks || cci__verbs_glance(d, port) >= 0;
}

static void cci__verbs_remember(const cci__verbs_port *port) {
    cci__verbs_port *place = cci__verbs_find_known(port->device, port->number);
    if (!place && cci__verbs_known_count < CCI__VERBS_KNOWN) place = &cci__verbs_known[cci__verbs_known_count++];
    if (place) *place = *port;
}

/* Devices that are not there any more may come back as others. */
static void cci__verbs_forget_gone(struct ibv_device **list, int count) {
    int i, n, kept = 0;
    for (i = 0; i < cci__verbs_known_count; i++) {
        for (n = 0; n < count && strcmp(cci__ibv.get_device_name(list[n]), cci__verbs_known[i].device) != 0; n++) {
        }
        if (n < count) cci__verbs_known[kept++] = cci__verbs_known[i];
    }
    cci__verbs_known_count = kept;
}

/* Where ports come from: what is known of them, an open device, or that after trying what it has. */
enum { CCI__VERBS_RECALLED, CCI__VERBS_OPENED, CCI__VERBS_TRIED };

/* Calls visit() for the ports of one device. Its result, or 0. */
static int cci__verbs_visit_ports(struct ibv_device *device, const cci__verbs_device *d, int how, void *user,
                                  int (*visit)(void *user, const cci__verbs_port *port)) {
    const char *name = cci__ibv.get_device_name(device);
    struct ibv_context *context = NULL;
    cci__verbs_port port;
    unsigned number;
    int result = 0, is_last = 0;
    for (number = d->port ? d->port : 1; result == 0 && !is_last; number++) {
        if (context || how != CCI__VERBS_RECALLED || !cci__verbs_recall(name, number, d, &port)) {
            context = context ? context : cci__verbs_open_device(device);
            if (!context) {
                cci__verbs_log(CCI_LOG_WARN, name, "can't be opened", errno);
                return 0;
            }
            if (!cci__verbs_describe(context, name, number, d, how != CCI__VERBS_OPENED, &port)) break;
            if (how == CCI__VERBS_RECALLED) cci__verbs_remember(&port);
        }
        result = visit(user, &port);
        is_last = d->port || number >= port.port_count;
    }
    if (context) cci__ibv.close_device(context);
    return result;
}

/* Calls visit() for each port that the device may mean, until it returns something other than 0, which it passes on. -1
 * with errno: the devices can't be listed. */
static int cci__verbs_each_port(const cci__verbs_device *d, int how, void *user,
                                int (*visit)(void *user, const cci__verbs_port *port)) {
    int i, count = 0, result = 0;
    struct ibv_device **list = cci__ibv.get_device_list(&count);
    if (!list) return -1;
    cci__verbs_forget_gone(list, count);
    for (i = 0; i < count && result == 0; i++)
        if (cci__verbs_is_named(d, cci__ibv.get_device_name(list[i])))
            result = cci__verbs_visit_ports(list[i], d, how, user, visit);
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

/* `how`: CCI__VERBS_OPENED or CCI__VERBS_TRIED. */
static int cci__verbs_find(const cci__verbs_device *d, int how, cci__verbs_search *s) {
    char why[16];
    memset(s, 0, sizeof *s);
    memset(s->best.pci, 0xff, sizeof s->best.pci);
    s->best.mtu = 1024;
    if (cci__verbs_load(why, sizeof why)) cci__verbs_each_port(d, how, s, cci__verbs_search_visit);
    return s->found;
}

/* ==================================================================================================================
 * >>verbs-devices
 * ================================================================================================================== */

static void cci__verbs_defaults(cci__verbs_device *d) {
    memset(d, 0, sizeof *d);
    d->gid_index = CCI__VERBS_GID_ANY;
    d->qkey = CCI__VERBS_QKEY;
    d->flow_label = CCI__VERBS_FLOW_VARIES;
    d->probe_idle_s = CCI__VERBS_PROBE_IDLE_S;
    d->address_handles = CCI__VERBS_HANDLES;
    d->relaxed_ordering = 1;
    d->setups = CCI__VERBS_SETUPS;
    d->rc_connections = CCI__VERBS_RC_CONNECTIONS;
    d->moderation_us = CCI__VERBS_MODERATION_US;
    d->ack_timeout = 14;
    d->retry_count = 6;
    d->rnr_timer = 12;
    d->rc_depth = CCI__VERBS_RC_DEPTH;
    d->srq_depth = CCI__VERBS_SRQ_DEPTH;
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
    snprintf(cci__verbs_info, sizeof cci__verbs_info, "%s port %u: %s, %s%s%s, MTU %lu, %lu Mbit/s, mode %s%s%s%s",
             port->device, (unsigned)port->number, kinds[port->gid_kind], address,
             port->interface_name[0] ? " on " : "", port->interface_name, (unsigned long)cci__verbs_mtu(d, port),
             (unsigned long)(port->rate / 1000000u),
             d->mode == CCI__VERBS_UD ? "ud"
             : d->is_auto             ? "auto"
                                      : "rc",
             port->is_active ? "" : ", down", port->lacks ? ": " : "", port->lacks ? port->lacks : "");
}

/* What endpoints of a device with mode = rc can do; one of mode = ud is left to the datagram endpoint. */
static const cci_caps_t cci__rc_device_caps = {CCI_CAN_ORDERED | CCI_CAN_MULTICAST | CCI_CAN_RMA |
                                                   CCI_CAN_RMA_HARDWARE | CCI_CAN_FENCE | CCI__CAN_ATOMICS |
                                                   CCI__CAN_WAKE,
                                               UINT64_MAX,
                                               0,
                                               CCI_CONN_REQ_LEN,
                                               1u << 20,
                                               65536,
                                               32768,
                                               CCI__LIST_SEGMENTS,
                                               CCI__NAME_LONGEST,
                                               {0}};

static int cci__verbs_service_port(const char *service);

static void cci__verbs_make_desc(cci_device_desc_t *desc, const cci__verbs_device *d, const cci__verbs_port *port) {
    desc->up = port->is_active;
    desc->rate = port->rate;
    memcpy(desc->pci, port->pci, sizeof desc->pci);
    /* what the datagram endpoint leaves of a datagram: 24 bytes are the packet's header, 8 the message's */
    desc->max_send_size = d->max_send_size           ? d->max_send_size
                          : d->mode == CCI__VERBS_RC ? CCI__VERBS_RC_MESSAGE
                                                     : cci__verbs_mtu(d, port) - 32;
    memcpy(desc->data, d, sizeof *d);
    desc->caps = d->mode == CCI__VERBS_RC ? &cci__rc_device_caps : NULL;
    desc->service_port = cci__verbs_service_port;
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
    d.state = port->lacks ? CCI__VERBS_REFUSED : CCI__VERBS_SEEN;
    memset(&desc, 0, sizeof desc);
    cci__verbs_make_desc(&desc, &d, port);
    cci__verbs_make_info(&d, port);
    if (port->port_count > 1)
        snprintf(cci__verbs_name, sizeof cci__verbs_name, "%s-%u", port->device, (unsigned)port->number);
    else
        snprintf(cci__verbs_name, sizeof cci__verbs_name, "%s", port->device);
    desc.name = cci__verbs_name;
    desc.info = cci__verbs_info;
    desc.priority = !port->is_active ? 10 : port->rate >= 100000000000u ? 95 : port->rate >= 10000000000u ? 90 : 85;
    p->count++;
    return p->add(p->list, &desc);
}

static int cci__verbs_discover(const cci_transport_t *self, void *list, int (*add)(void *, const cci_device_desc_t *),
                               char *why, size_t why_size) {
    cci__verbs_proposal p;
    cci__verbs_device any;
    int result;
    (void)self;
    if (!CCI__CORE_IS_LINKED) return CCI_ERROR;
    if (!cci__verbs_load(why, why_size)) return CCI_ENODEV;
    cci__verbs_defaults(&any);
    p.list = list;
    p.add = add;
    p.count = 0;
    errno = 0;
    result = cci__verbs_each_port(&any, CCI__VERBS_RECALLED, &p, cci__verbs_propose);
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
    size_t size;   /* of the number there: 1, 2 or 4 bytes */
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
    {"flow_label", 0, 0xfffff, CCI__VERBS_KEY(flow_label)},
    {"recv_depth", 16, 32768, CCI__VERBS_KEY(recv_depth)},
    {"send_depth", 16, 32768, CCI__VERBS_KEY(send_depth)},
    {"address_handles", 64, 65536, CCI__VERBS_KEY(address_handles)},
    {"max_send_size", 256, 65472, CCI__VERBS_KEY(max_send_size)},
    {"send_buf_count", 1, 65536, CCI__VERBS_KEY(send_buf_count)},
    {"recv_buf_count", 1, 65536, CCI__VERBS_KEY(recv_buf_count)},
    {"send_timeout", 1, 4294967295u, CCI__VERBS_KEY(send_timeout_us)},
    {"memory", 65536, 4294967295u, CCI__VERBS_KEY(memory_bytes)},
    {"crc", 0, 1, CCI__VERBS_KEY(crc)},
    {"probe_idle", 0, 86400, CCI__VERBS_KEY(probe_idle_s)},
    {"ack_timeout", 1, 31, CCI__VERBS_KEY(ack_timeout)},
    {"retry_count", 0, 6, CCI__VERBS_KEY(retry_count)},
    {"rnr_timer", 1, 31, CCI__VERBS_KEY(rnr_timer)},
    {"rc_depth", 16, 16384, CCI__VERBS_KEY(rc_depth)},
    {"srq_depth", 16, 32768, CCI__VERBS_KEY(srq_depth)},
    {"relaxed_ordering", 0, 1, CCI__VERBS_KEY(relaxed_ordering)},
    {"on_demand", 0, 1, CCI__VERBS_KEY(on_demand)},
    {"setups", 0, CCI__VERBS_SETUPS_MOST, CCI__VERBS_KEY(setups)},
    {"moderation", 0, 1000, CCI__VERBS_KEY(moderation_us)},
    {"rc_connections", 0, 1u << 20, CCI__VERBS_KEY(rc_connections)},
};

/* One of two words; 0 when it is neither. */
static int cci__verbs_parse_choice(const char *text, const char *zero, const char *one, uint8_t *choice) {
    *choice = strcmp(text, one) == 0;
    return *choice || strcmp(text, zero) == 0;
}

/* The mode, of which `auto` is one kind of rc. */
static int cci__verbs_parse_mode(const char *text, cci__verbs_device *d) {
    d->is_auto = strcmp(text, "auto") == 0;
    return cci__verbs_parse_choice(d->is_auto ? "rc" : text, "rc", "ud", &d->mode);
}

static int cci__verbs_parse_mtu(const char *text, uint16_t *mtu) {
    uint64_t n;
    if (!cci__verbs_number(text, &n) || n < 256 || n > 4096 || (n & (n - 1)) != 0) return 0;
    *mtu = (uint16_t)n;
    return 1;
}

static void cci__verbs_store_number(char *to, size_t size, uint64_t n) {
    uint32_t word = (uint32_t)n;
    uint16_t half = (uint16_t)n;
    uint8_t byte = (uint8_t)n;
    memcpy(to, size == 1 ? (const void *)&byte : size == 2 ? (const void *)&half : (const void *)&word, size);
}

static int cci__verbs_parse_ip(const char *text, cci__verbs_device *d) {
    d->ip_family = inet_pton(AF_INET, text, d->ip) == 1 ? 4 : inet_pton(AF_INET6, text, d->ip) == 1 ? 6 : 0;
    return d->ip_family != 0;
}

/* A text of at least one character that fits. */
static int cci__verbs_copy_text(char *to, size_t size, const char *text) {
    size_t length = strlen(text);
    memcpy(to, text, length < size ? length + 1 : 0);
    return length > 0 && length < size;
}

/* Takes one key whose value is a number; says what cci__verbs_take_key() does. */
static const char *cci__verbs_take_number_key(cci__verbs_device *d, const char *key, const char *value, char *range,
                                              size_t size) {
    size_t i;
    for (i = 0; i < sizeof cci__verbs_keys / sizeof cci__verbs_keys[0]; i++) {
        const cci__verbs_key *k = &cci__verbs_keys[i];
        uint64_t n;
        if (strcmp(key, k->name) != 0) continue;
        if (cci__verbs_number(value, &n) && n >= k->smallest && n <= k->largest) {
            cci__verbs_store_number((char *)d + k->offset, k->size, n);
            return NULL;
        }
        snprintf(range, size, "a number from %lu to %lu", (unsigned long)k->smallest, (unsigned long)k->largest);
        return range;
    }
    return "";
}

/* Takes one key. Returns NULL, or what its value should have been; "" when there is no such key. */
static const char *cci__verbs_take_key(void *device, int index, const char *key, const char *value, char *range,
                                       size_t size) {
    cci__verbs_device *d = (cci__verbs_device *)device;
    const char *wanted = cci__verbs_take_number_key(d, key, value, range, size);
    (void)index;
    if (!wanted || *wanted) return wanted;
    if (strcmp(key, "device") == 0)
        return cci__verbs_copy_text(d->name, sizeof d->name, value) ? NULL
                                                                    : "the name of a device (1 to 63 characters)";
    if (strcmp(key, "interface") == 0)
        return cci__verbs_copy_text(d->interface_name, sizeof d->interface_name, value)
                   ? NULL
                   : "the name of an interface (1 to 15 characters)";
    if (strcmp(key, "ip") == 0) return cci__verbs_parse_ip(value, d) ? NULL : "an IPv4 or IPv6 address";
    if (strcmp(key, "mtu") == 0) return cci__verbs_parse_mtu(value, &d->mtu) ? NULL : "256, 512, 1024, 2048 or 4096";
    if (strcmp(key, "mode") == 0) return cci__verbs_parse_mode(value, d) ? NULL : "rc or ud or auto";
    if (strcmp(key, "progress") == 0)
        return cci__verbs_parse_choice(value, "poll", "thread", &d->progress_thread) ? NULL : "thread or poll";
    if (strcmp(key, "congestion") == 0)
        return cci__verbs_copy_text(d->congestion, sizeof d->congestion, value) && cci_congestion_known(value)
                   ? NULL
                   : "a congestion control that cci.h has";
    return "";
}

static int cci__verbs_configure(const cci_transport_t *self, const char *name, const char *const *keys,
                                cci_device_desc_t *desc, int *bad_key, char *why, size_t why_size) {
    cci__verbs_device d;
    cci__verbs_search s;
    int status;
    cci__verbs_defaults(&d);
    status = cci_take_keys(self, keys, cci__verbs_take_key, &d, bad_key, why, why_size);
    if (status != CCI_SUCCESS) return status;
    if (cci__verbs_find(&d, CCI__VERBS_TRIED, &s)) {
        d.state = s.best.lacks ? CCI__VERBS_REFUSED : CCI__VERBS_SEEN;
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

/* Opens no device, unless one that was never there has come. */
static void cci__verbs_refresh(const cci_transport_t *self, cci_device_desc_t *desc) {
    cci__verbs_device d;
    cci__verbs_search s;
    uint64_t rate = 0;
    char why[16];
    int is_up;
    (void)self;
    memcpy(&d, desc->data, sizeof d);
    if (d.state == CCI__VERBS_REFUSED || !cci__verbs_load(why, sizeof why)) {
        desc->up = 0;
        return;
    }
    is_up = cci__verbs_glance_all(&d, &rate);
    if (is_up >= 0) {
        desc->up = (uint32_t)is_up;
        desc->rate = rate ? rate : desc->rate;
    }
    if (d.state == CCI__VERBS_UNSEEN && is_up != 0) {
        desc->up = 0;
        if (cci__verbs_find(&d, CCI__VERBS_TRIED, &s)) {
            d.state = s.best.lacks ? CCI__VERBS_REFUSED : CCI__VERBS_SEEN;
            cci__verbs_make_desc(desc, &d, &s.best);
            cci__verbs_make_info(&d, &s.best);
            desc->info = cci__verbs_info;
        }
    }
}

/* ==================================================================================================================
 * >>verbs-handles
 *
 * Address handles: a table of fixed size, eight places for each address, found by a keyed hash so that nobody can aim
 * at another's place. The place of the least used goes first. Making one may ask the network for an Ethernet address
 * and take a while, up to a second where nobody answers; so that strangers can't spend this endpoint's time, at most a
 * tenth of it goes there.
 * ================================================================================================================== */

static void cci__verbs_make_addr(cci_link_addr_t *to, uint32_t lid, uint32_t qpn, const uint8_t *gid) {
    memset(to, 0, sizeof *to);
    to->bytes[0] = CCI__VERBS_TO_QP;
    to->bytes[2] = (uint8_t)(lid >> 8);
    to->bytes[3] = (uint8_t)lid;
    to->bytes[5] = (uint8_t)(qpn >> 16);
    to->bytes[6] = (uint8_t)(qpn >> 8);
    to->bytes[7] = (uint8_t)qpn;
    memcpy(to->bytes + 8, gid, 16);
}

static uint32_t cci__verbs_addr_lid(const cci_link_addr_t *to) {
    return (uint32_t)to->bytes[2] << 8 | to->bytes[3];
}

static uint32_t cci__verbs_addr_qpn(const cci_link_addr_t *to) {
    return to->bytes[0] == CCI__VERBS_TO_GROUP
               ? 0xffffffu
               : (uint32_t)to->bytes[5] << 16 | (uint32_t)to->bytes[6] << 8 | to->bytes[7];
}

/* Which of several equal paths through the network is taken. Drivers make the UDP source port of RoCE of the 20 bits,
 * and of 0 something of their own. */
static uint32_t cci__verbs_flow(const cci__verbs_link *l, const uint64_t words[3]) {
    uint32_t label = (uint32_t)cci__siphash(l->key, words, 3) & 0xfffff;
    return l->device.flow_label != CCI__VERBS_FLOW_VARIES ? l->device.flow_label : label ? label : 1;
}

/* The way to an address, for address handles and connected queue pairs. */
static void cci__verbs_path(const cci__verbs_link *l, const cci_link_addr_t *to, struct ibv_ah_attr *a) {
    uint64_t words[3];
    int is_group = to->bytes[0] == CCI__VERBS_TO_GROUP;
    memset(a, 0, sizeof *a);
    memcpy(a->grh.dgid.raw, to->bytes + 8, 16);
    a->grh.sgid_index = (uint8_t)l->port.gid_index;
    a->grh.hop_limit = (uint8_t)(l->device.hop_limit ? l->device.hop_limit : is_group ? 1 : 64);
    a->grh.traffic_class = l->device.traffic_class;
    memcpy(words, to->bytes, sizeof words);
    a->grh.flow_label = cci__verbs_flow(l, words);
    a->is_global = 1;
    a->dlid = is_group ? 0 : (uint16_t)cci__verbs_addr_lid(to);
    a->sl = l->device.service_level;
    a->port_num = l->port.number;
}

static struct ibv_ah *cci__verbs_make_ah(cci__verbs_link *l, const cci_link_addr_t *to) {
    struct ibv_ah_attr a;
    struct ibv_ah *ah;
    uint64_t began_ns = cci__verbs_now(l), took_ns;
    cci__verbs_path(l, to, &a);
    ah = cci__ibv.create_ah(l->pd, &a);
    took_ns = cci__verbs_now(l) - began_ns;
    if (took_ns > 2000000u) l->handles_again_ns = l->now_ns + took_ns * 9;
    return ah;
}

static void cci__verbs_destroy_ah(cci__verbs_link *l, struct ibv_ah *ah) {
    cci__verbs_check(l, cci__ibv.destroy_ah(ah), "destroying an address handle");
}

/* Destroys the retired handles that nothing is under way to any more; all of them when the queue pair has gone. */
static void cci__verbs_bury(cci__verbs_link *l) {
    uint32_t i, kept = 0;
    for (i = 0; i < l->retired_count; i++)
        if (l->qp && l->retired[i].used >= l->send_done)
            l->retired[kept++] = l->retired[i];
        else
            cci__verbs_destroy_ah(l, l->retired[i].ah);
    l->retired_count = kept;
}

/* Takes the handle away, now or when all that uses it has been sent; 0: it has to stay for now. */
static int cci__verbs_retire(cci__verbs_link *l, struct ibv_ah *ah, uint64_t used) {
    if (used < l->send_done) {
        cci__verbs_destroy_ah(l, ah);
        return 1;
    }
    if (l->retired_count == CCI__VERBS_RETIRED) {
        cci__verbs_reap(l);
        cci__verbs_bury(l);
    }
    if (l->retired_count == CCI__VERBS_RETIRED) return 0;
    l->retired[l->retired_count].ah = ah;
    l->retired[l->retired_count++].used = used;
    return 1;
}

/* All of them; the queue pair has gone. */
static void cci__verbs_drop_handles(cci__verbs_link *l) {
    uint32_t i;
    for (i = 0; l->handles && i < l->device.address_handles; i++) {
        if (l->handles[i].ah) cci__verbs_destroy_ah(l, l->handles[i].ah);
        memset(&l->handles[i], 0, sizeof l->handles[i]);
    }
    cci__verbs_bury(l);
}

/* The port's own address has another place: all handles are to be made anew. */
static void cci__verbs_outdate_handles(cci__verbs_link *l) {
    uint32_t i;
    for (i = 0; i < l->device.address_handles; i++) l->handles[i].is_outdated = 1;
}

/* The first of the places for an address. */
static cci__verbs_handle *cci__verbs_places(const cci__verbs_link *l, const cci_link_addr_t *to) {
    uint64_t words[3];
    memcpy(words, to->bytes, sizeof words);
    return l->handles +
           cci__siphash(l->key, words, 3) % (l->device.address_handles / CCI__VERBS_WAYS) * CCI__VERBS_WAYS;
}

/* A place for a new address: an empty one, or that of the address which was used least. NULL if it can't be had now. */
static cci__verbs_handle *cci__verbs_evict(cci__verbs_link *l, cci__verbs_handle *places) {
    cci__verbs_handle *victim = &places[0];
    uint32_t i;
    for (i = 0; i < CCI__VERBS_WAYS; i++) {
        cci__verbs_handle *h = &places[i];
        if (h->to.bytes[0] == 0) return h;
        if (h->hits < victim->hits || (h->hits == victim->hits && h->used < victim->used)) victim = h;
    }
    if (victim->ah && !cci__verbs_retire(l, victim->ah, victim->used)) return NULL;
    memset(victim, 0, sizeof *victim);
    for (i = 0; i < CCI__VERBS_WAYS; i++) places[i].hits /= 2; /* who was busy once is not busy for ever */
    return victim;
}

/* The Ethernet address behind it may have changed, by failure or move: a fresh one replaces it, if there is one. */
static void cci__verbs_renew(cci__verbs_link *l, cci__verbs_handle *h) {
    struct ibv_ah *ah;
    h->made_ns = l->now_ns;
    if (l->now_ns < l->handles_again_ns || l->retired_count == CCI__VERBS_RETIRED) return;
    ah = cci__verbs_make_ah(l, &h->to);
    if (ah) {
        (void)cci__verbs_retire(l, h->ah, h->used);
        h->ah = ah;
        h->is_outdated = 0;
    }
}

/* The handle of an address, NULL when there is none now. */
static struct ibv_ah *cci__verbs_handle_of(cci__verbs_link *l, const cci_link_addr_t *to) {
    cci__verbs_handle *places, *h = l->last_handle;
    uint32_t i;
    if (!h || memcmp(&h->to, to, sizeof *to) != 0) {
        places = cci__verbs_places(l, to);
        for (i = 0, h = NULL; i < CCI__VERBS_WAYS && !h; i++)
            if (memcmp(&places[i].to, to, sizeof *to) == 0) h = &places[i];
    }
    if (h && h->ah) {
        if (h->is_outdated || (l->port.is_ethernet && l->now_ns - h->made_ns > CCI__VERBS_HANDLE_AGE_NS))
            cci__verbs_renew(l, h);
        h->hits += h->hits < 1000000;
        h->used = l->send_next;
        l->last_handle = h;
        return h->ah;
    }
    if (l->now_ns < l->handles_again_ns || (h && l->now_ns - h->made_ns < CCI__VERBS_HANDLE_RETRY_NS)) return NULL;
    if (!h) h = cci__verbs_evict(l, cci__verbs_places(l, to));
    if (!h) return NULL;
    h->to = *to;
    h->used = l->send_next;
    h->ah = cci__verbs_make_ah(l, to);
    h->made_ns = l->now_ns;
    return h->ah;
}

/* ==================================================================================================================
 * >>verbs-send
 *
 * Short datagrams travel in the work request, longer ones in a slot of the ring. Only some requests ask for a
 * completion; as they complete in order, one completion frees all slots before it.
 * ================================================================================================================== */

/* Takes completions of sends: slots are free again. */
static void cci__verbs_reap(cci__verbs_link *l) {
    struct ibv_wc wc[CCI__VERBS_BATCH];
    int i, n = ibv_poll_cq(l->send_cq, CCI__VERBS_BATCH, wc);
    for (i = 0; i < n; i++) {
        uint32_t behind = (uint32_t)l->send_next - (uint32_t)wc[i].wr_id;
        if ((uint32_t)(wc[i].wr_id >> 32) != l->epoch) continue;
        if (wc[i].status != IBV_WC_SUCCESS)
            cci__verbs_broken(l, "a datagram can't be sent", cci__ibv.wc_status_str(wc[i].status));
        else if (behind <= l->send_next - l->send_done)
            l->send_done = l->send_next - behind + 1;
    }
    if (n < 0) {
        cci__verbs_broken(l, "a completion queue can't be read", "");
        l->cq_is_broken = 1;
    }
}

/* One work request for the datagram, in the batch's place `at`; 0: there is no way to its address now. */
static int cci__verbs_fill(cci__verbs_link *l, const cci_link_tx_t *tx, int at) {
    struct ibv_send_wr *wr = &l->send_wr[at];
    struct ibv_sge *piece = l->send_piece[at];
    uint32_t slot = (uint32_t)(l->send_next % l->send_depth), i;
    uint8_t *bytes = l->send_packets + (size_t)slot * l->send_stride;
    struct ibv_ah *ah;
    if (tx->length > l->mtu || tx->to->bytes[0] < CCI__VERBS_TO_QP || tx->to->bytes[0] > CCI__VERBS_TO_GROUP)
        return 0; /* it would vanish on the way */
    ah = cci__verbs_handle_of(l, tx->to);
    if (!ah) {
        l->unreachable++;
        return 0;
    }
    memset(wr, 0, sizeof *wr);
    wr->wr_id = (uint64_t)l->epoch << 32 | (uint32_t)l->send_next;
    wr->sg_list = piece;
    wr->opcode = IBV_WR_SEND;
    wr->send_flags = (l->send_next + 1) % l->signal_every == 0 ? IBV_SEND_SIGNALED : 0;
    wr->wr.ud.ah = ah;
    wr->wr.ud.remote_qpn = cci__verbs_addr_qpn(tx->to);
    wr->wr.ud.remote_qkey = l->device.qkey;
    if (tx->to->bytes[0] == CCI__VERBS_TO_GROUP) { /* the routing header has no room for the group's port */
        uint16_t port;
        memcpy(&port, tx->to->bytes + 2, sizeof port);
        wr->opcode = IBV_WR_SEND_WITH_IMM;
        wr->imm_data = htonl(ntohs(port));
    }
    if (tx->length <= l->max_inline) {
        wr->send_flags |= IBV_SEND_INLINE;
        wr->num_sge = (int)tx->piece_count;
        for (i = 0; i < tx->piece_count; i++) {
            piece[i].addr = (uintptr_t)tx->piece[i].data;
            piece[i].length = tx->piece[i].length;
            piece[i].lkey = 0;
        }
    } else {
        piece->addr = (uintptr_t)bytes;
        piece->length = tx->length;
        piece->lkey = l->mr->lkey;
        wr->num_sge = 1;
        for (i = 0; i < tx->piece_count; i++) {
            memcpy(bytes, tx->piece[i].data, tx->piece[i].length);
            bytes += tx->piece[i].length;
        }
    }
    l->send_next++;
    return 1;
}

/* Posts a batch. What the hardware refuses is lost, as on any wire; its numbers are given back. */
static void cci__verbs_ring(cci__verbs_link *l, int count) {
    struct ibv_send_wr *bad = NULL;
    int i, error;
    if (count == 0) return;
    for (i = 0; i < count; i++) l->send_wr[i].next = i + 1 < count ? &l->send_wr[i + 1] : NULL;
    error = ibv_post_send(l->qp, l->send_wr, &bad);
    if (error) {
        l->send_next -= bad ? (uint64_t)(l->send_wr + count - bad) : (uint64_t)count;
        if (error != ENOMEM) /* that is: the queue is full */
            cci__verbs_broken(l, "datagrams can't be handed to the hardware", strerror(error));
    }
}

static int cci__verbs_send(void *link, const cci_link_tx_t *tx, int count) {
    cci__verbs_link *l = (cci__verbs_link *)link;
    int i, batch = 0;
    if (!cci__verbs_works(l)) return count; /* nothing reaches anybody */
    if (l->send_next - l->send_done > l->send_depth / 2) cci__verbs_reap(l);
    for (i = 0; i < count; i++) {
        if (l->send_next - l->send_done == l->send_depth) break;
        batch += cci__verbs_fill(l, &tx[i], batch);
        if (batch == CCI__VERBS_BATCH) {
            cci__verbs_ring(l, batch);
            batch = 0;
            cci__verbs_reap(l);
            if (l->is_broken) return count; /* what is left is as lost as what was under way */
        }
    }
    cci__verbs_ring(l, batch);
    return i;
}

/* ==================================================================================================================
 * >>verbs-receive
 *
 * The routing header tells who sent a datagram and to whom. On Ethernet with IPv4 addresses it is the IPv4 header,
 * behind 20 bytes of nothing.
 * ================================================================================================================== */

/* Sender and receiver, as GIDs; 0: it is not a header of the port's own kind. */
static int cci__verbs_read_header(const cci__verbs_link *l, const uint8_t *header, uint8_t *from, uint8_t *to) {
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (l->port.gid_kind != CCI__GID_V2_IPV4) {
        memcpy(from, header + 8, 16);
        memcpy(to, header + 24, 16);
        return header[0] >> 4 == 6 && !cci__verbs_is_zero(from, 16) && from[0] != 0xff;
    }
    memcpy(from, mapped, sizeof mapped);
    memcpy(to, mapped, sizeof mapped);
    memcpy(from + 12, header + 32, 4);
    memcpy(to + 12, header + 36, 4);
    return header[20] == 0x45 && from[12] != 0 && from[12] < 224;
}

static int cci__verbs_is_group_gid(const uint8_t *gid) {
    return cci__verbs_is_mapped_v4(gid) ? gid[12] >= 224 && gid[12] < 240 : gid[0] == 0xff;
}

/* Is it for a group that this endpoint has joined? */
static int cci__verbs_for_group(const cci__verbs_link *l, const struct ibv_wc *wc, const uint8_t *gid,
                                cci_link_rx_t *rx) {
    uint32_t i, port = wc->wc_flags & IBV_WC_WITH_IMM ? ntohl(wc->imm_data) : 0;
    if (port > 65535) return 0;
    memset(&rx->group, 0, sizeof rx->group);
    rx->is_group = 1;
    rx->group.bytes[0] = CCI__VERBS_TO_GROUP;
    rx->group.bytes[2] = (uint8_t)(port >> 8);
    rx->group.bytes[3] = (uint8_t)port;
    memcpy(rx->group.bytes + 8, gid, 16);
    for (i = 0; i < l->group_count; i++)
        if (memcmp(&l->groups[i].to, &rx->group, sizeof rx->group) == 0) return 1;
    return 0;
}

/* Copies a datagram out of its slot; 0 when it is nothing for anybody here. */
static int cci__verbs_take(cci__verbs_link *l, const struct ibv_wc *wc, cci_link_rx_t *rx) {
    const uint8_t *bytes = l->packets + (size_t)(uint32_t)wc->wr_id * l->recv_stride;
    uint8_t from[16], to[16];
    uint32_t length = wc->byte_len - CCI__VERBS_GRH;
    if (!(wc->wc_flags & IBV_WC_GRH) || wc->byte_len < CCI__VERBS_GRH || length > l->mtu || length > rx->capacity ||
        !cci__verbs_read_header(l, bytes, from, to))
        return 0;
    rx->is_group = 0;
    if (cci__verbs_is_group_gid(to) && !cci__verbs_for_group(l, wc, to, rx)) return 0;
    cci__verbs_make_addr(&rx->from, l->port.is_ethernet ? 0 : wc->slid, wc->src_qp, from);
    rx->length = rx->segment = length;
    memcpy(rx->data, bytes + CCI__VERBS_GRH, length);
    return 1;
}

/* Takes up to `count` completions; returns how many datagrams came of them. *seen: how many completions there were. */
static int cci__verbs_poll(cci__verbs_link *l, cci_link_rx_t *rx, int count, int *seen) {
    struct ibv_wc wc[CCI__VERBS_BATCH];
    int i, got = 0;
    int n = ibv_poll_cq(l->recv_cq, count < CCI__VERBS_BATCH ? count : CCI__VERBS_BATCH, wc);
    *seen = n;
    for (i = 0; i < n; i++) {
        uint32_t slot = (uint32_t)wc[i].wr_id;
        if ((uint32_t)(wc[i].wr_id >> 32) != l->epoch || slot >= l->recv_depth) continue;
        if (wc[i].status != IBV_WC_SUCCESS) {
            cci__verbs_broken(l, "a datagram can't be received", cci__ibv.wc_status_str(wc[i].status));
            continue;
        }
        if (cci__verbs_take(l, &wc[i], &rx[got]))
            got++;
        else
            l->unmatched++;
        l->recv_wr[slot].next = l->to_post;
        l->to_post = &l->recv_wr[slot];
        l->to_post_count++;
    }
    if (n < 0) {
        cci__verbs_broken(l, "a completion queue can't be read", "");
        l->cq_is_broken = 1;
    }
    if (l->to_post_count >= l->recv_depth / 16) cci__verbs_post(l);
    return got;
}

static int cci__verbs_receive(void *link, cci_link_rx_t *rx, int count) {
    cci__verbs_link *l = (cci__verbs_link *)link;
    int seen, got;
    if (!cci__verbs_works(l)) {
        cci__verbs_look_around(l);
        return -1;
    }
    got = cci__verbs_poll(l, rx, count, &seen);
    if (seen == 0) {
        cci__verbs_post(l);
        cci__verbs_look_around(l);
        if (cci__verbs_arm_queues(l)) /* what came before that rings no bell */
            got = cci__verbs_poll(l, rx, count, &seen);
    }
    cci__verbs_leave(l, seen == count || seen == CCI__VERBS_BATCH);
    return got > 0 || !l->is_broken ? got : -1;
}

/* ==================================================================================================================
 * >>verbs-groups
 *
 * A group is attached to the queue pair; a socket that joins it, too, makes the network bring its datagrams here.
 * Several groups may have one address and differ in their port.
 * ================================================================================================================== */

static int cci__verbs_is_group(void *link, const cci_link_addr_t *to) {
    (void)link;
    return to->bytes[0] == CCI__VERBS_TO_GROUP;
}

/* How many of the joined groups have this address. */
static uint32_t cci__verbs_group_users(const cci__verbs_link *l, const uint8_t *gid) {
    uint32_t i, users = 0;
    for (i = 0; i < l->group_count; i++) users += memcmp(l->groups[i].to.bytes + 8, gid, 16) == 0;
    return users;
}

/* Tells the network, through the interface that has the port's address. */
static int cci__verbs_tell_network(cci__verbs_link *l, const uint8_t *gid, int join) {
    unsigned index = if_nametoindex(l->port.interface_name);
    if (cci__verbs_is_mapped_v4(gid)) {
        struct ip_mreqn request;
        memset(&request, 0, sizeof request);
        memcpy(&request.imr_multiaddr, gid + 12, 4);
        memcpy(&request.imr_address, l->port.gid + 12, 4);
        request.imr_ifindex = (int)index;
        return setsockopt(l->group_socket, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &request,
                          sizeof request);
    } else {
        struct ipv6_mreq request;
        memset(&request, 0, sizeof request);
        memcpy(&request.ipv6mr_multiaddr, gid, 16);
        request.ipv6mr_interface = index;
        return setsockopt(l->group_socket, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &request,
                          sizeof request);
    }
}

static int cci__verbs_attach(cci__verbs_link *l, const cci_link_addr_t *to) {
    union ibv_gid gid;
    memcpy(gid.raw, to->bytes + 8, 16);
    return cci__ibv.attach_mcast(l->qp, &gid, 0);
}

static void cci__verbs_detach(cci__verbs_link *l, const cci_link_addr_t *to) {
    union ibv_gid gid;
    memcpy(gid.raw, to->bytes + 8, 16);
    if (!l->qp) return;                          /* the device has failed */
    (void)cci__ibv.detach_mcast(l->qp, &gid, 0); /* a second time, of groups with one address, finds nothing */
}

static int cci__verbs_join(cci__verbs_link *l, const cci_link_addr_t *to) {
    const uint8_t *gid = to->bytes + 8;
    if (l->group_count == CCI__VERBS_GROUPS) return CCI_ENOBUFS;
    if (cci__verbs_group_users(l, gid) == 0) {
        int error;
        if (l->group_socket < 0)
            l->group_socket = socket(cci__verbs_is_mapped_v4(gid) ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (l->group_socket < 0 || cci__verbs_tell_network(l, gid, 1) != 0) {
            cci__verbs_log(CCI_LOG_ERROR, l->port.device, "joining a group on its network interface", errno);
            return CCI_ERROR;
        }
        error = cci__verbs_attach(l, to);
        if (error) {
            cci__verbs_log(CCI_LOG_ERROR, l->port.device, "attaching to a group", error > 0 ? error : errno);
            (void)cci__verbs_tell_network(l, gid, 0);
            return CCI_ERROR;
        }
    }
    l->groups[l->group_count++].to = *to;
    return CCI_SUCCESS;
}

static int cci__verbs_group_call(void *link, const cci_link_addr_t *to, int join) {
    cci__verbs_link *l = (cci__verbs_link *)link;
    uint32_t i;
    if (join) return cci__verbs_works(l) ? cci__verbs_join(l, to) : CCI_ENODEV;
    for (i = 0; i < l->group_count; i++) {
        if (memcmp(&l->groups[i].to, to, sizeof *to) == 0) {
            if (cci__verbs_group_users(l, to->bytes + 8) == 1) {
                cci__verbs_detach(l, to);
                (void)cci__verbs_tell_network(l, to->bytes + 8, 0);
            }
            l->groups[i] = l->groups[--l->group_count];
            return CCI_SUCCESS;
        }
    }
    return CCI_ERR_NOT_FOUND;
}

/* ==================================================================================================================
 * >>verbs-names
 *
 * A host and a UDP port stand for an endpoint: its socket there tells where its queue pair is. Question and answer have
 * the same 64 bytes, so that nobody can use an endpoint to send a third party more than it sends itself. Numbers are
 * little-endian:
 *
 *     "CCIv" 4, version 1 1, kind 1 (1 question, 2 answer), mode 1 (1 rc, 2 ud), 0 1, nonce 8, GID 16, queue pair 4,
 *     qkey 4, LID 2, 0 2, MTU 4, zeros 16
 *
 * The qkey of an answer is 0 unless the question has the right one: who does not know it is not told.
 * A question's nonce can't be guessed, and an answer must repeat it and come from where the question went.
 * ================================================================================================================== */

#define CCI__VERBS_CARD 64u
#define CCI__VERBS_FRESH_NS UINT64_C(50000000)   /* an answer stands for connections that are opened within this time */
#define CCI__VERBS_STALE_NS UINT64_C(2000000000) /* a question that nobody has come back for is forgotten */

static void cci__verbs_write_card(const cci__verbs_link *l, uint8_t kind, const uint8_t *nonce, uint8_t *card) {
    memset(card, 0, CCI__VERBS_CARD);
    memcpy(card, "CCIv", 4);
    card[4] = 1;
    card[5] = kind;
    card[6] = (uint8_t)(l->device.mode + 1);
    memcpy(card + 8, nonce, 8);
    memcpy(card + 16, l->port.gid, 16);
    cci__store32(card + 32, l->qp ? l->qp->qp_num : 0);
    cci__store32(card + 36, l->device.qkey);
    cci__store16(card + 40, l->port.is_ethernet ? 0 : l->port.lid);
    cci__store32(card + 44, l->mtu);
}

/* The address on an answer, if it is one that can be sent to; a status. */
static int cci__verbs_read_card(const cci__verbs_link *l, const uint8_t *card, cci_link_addr_t *to) {
    uint32_t qpn = cci__load32(card + 32), lid = cci__load16(card + 40);
    int is_v4 = cci__verbs_is_mapped_v4(card + 16);
    if (card[6] != l->device.mode + 1 || cci__load32(card + 36) != l->device.qkey) {
        cci__verbs_log(CCI_LOG_WARN, l->port.device, "a server has another mode or qkey", 0);
        return CCI_ECONNREFUSED;
    }
    if (qpn < 2 || qpn >= 0xffffff || cci__verbs_is_zero(card + 16, 16) || cci__verbs_is_group_gid(card + 16) ||
        is_v4 != (l->port.gid_kind == CCI__GID_V2_IPV4) ||
        (l->port.is_ethernet ? lid != 0 : lid == 0 || lid > 0xbfff)) {
        cci__verbs_log(CCI_LOG_WARN, l->port.device, "a server has an address that this port can't send to", 0);
        return CCI_ECONNREFUSED;
    }
    cci__verbs_make_addr(to, lid, qpn, card + 16);
    return CCI_SUCCESS;
}

static void cci__verbs_make_host(cci_link_addr_t *to, int family, const void *ip, unsigned port, uint32_t scope) {
    memset(to, 0, sizeof *to);
    to->bytes[0] = (uint8_t)family;
    to->bytes[2] = (uint8_t)(port >> 8);
    to->bytes[3] = (uint8_t)port;
    memcpy(to->bytes + 4, &scope, 4);
    memcpy(to->bytes + 8, ip, family == 4 ? 4 : 16);
}

static void cci__verbs_host_of(cci_link_addr_t *to, const cci__verbs_sockaddr *s) {
    if (s->any.sa_family == AF_INET)
        cci__verbs_make_host(to, 4, &s->v4.sin_addr, ntohs(s->v4.sin_port), 0);
    else
        cci__verbs_make_host(to, 6, &s->v6.sin6_addr, ntohs(s->v6.sin6_port), s->v6.sin6_scope_id);
}

static socklen_t cci__verbs_to_system(cci__verbs_sockaddr *s, const cci_link_addr_t *host) {
    memset(s, 0, sizeof *s);
    if (host->bytes[0] == 4) {
        s->v4.sin_family = AF_INET;
        memcpy(&s->v4.sin_port, host->bytes + 2, 2);
        memcpy(&s->v4.sin_addr, host->bytes + 8, 4);
        return sizeof s->v4;
    }
    s->v6.sin6_family = AF_INET6;
    memcpy(&s->v6.sin6_port, host->bytes + 2, 2);
    memcpy(&s->v6.sin6_scope_id, host->bytes + 4, 4);
    memcpy(&s->v6.sin6_addr, host->bytes + 8, 16);
    return sizeof s->v6;
}

static void cci__verbs_put_card(const cci__verbs_link *l, const uint8_t *card, const cci_link_addr_t *host) {
    cci__verbs_sockaddr s;
    socklen_t size = cci__verbs_to_system(&s, host);
    (void)sendto(l->socket, card, CCI__VERBS_CARD, MSG_DONTWAIT | MSG_NOSIGNAL, &s.any, size);
}

/* The first of the eight places for a host. */
static cci__verbs_question *cci__verbs_question_places(cci__verbs_link *l, const cci_link_addr_t *host) {
    uint64_t words[3];
    memcpy(words, host->bytes, sizeof words);
    return l->questions + cci__siphash(l->key, words, 3) % (CCI__VERBS_QUESTIONS / 8) * 8;
}

static cci__verbs_question *cci__verbs_find_question(cci__verbs_link *l, const cci_link_addr_t *host) {
    cci__verbs_question *places = cci__verbs_question_places(l, host);
    int i;
    for (i = 0; i < 8; i++)
        if (memcmp(&places[i].host, host, sizeof *host) == 0) return &places[i];
    return NULL;
}

/* A place for a new question, NULL if others wait for an answer in all of them. */
static cci__verbs_question *cci__verbs_new_question(cci__verbs_link *l, const cci_link_addr_t *host) {
    cci__verbs_question *places = cci__verbs_question_places(l, host);
    int i;
    for (i = 0; i < 8; i++) {
        cci__verbs_question *q = &places[i];
        if (q->host.bytes[0] == 0 || q->status != CCI_EAGAIN || l->now_ns - q->wanted_ns > CCI__VERBS_STALE_NS) {
            memset(q, 0, sizeof *q);
            if (cci_random(q->nonce, sizeof q->nonce) != CCI_SUCCESS) return NULL;
            q->host = *host;
            q->status = CCI_EAGAIN;
            return q;
        }
    }
    return NULL;
}

/* What has become of the question for a host; it is asked when it was not, or not lately. */
static int cci__verbs_ask(cci__verbs_link *l, cci_link_addr_t *to) {
    cci__verbs_question *q = cci__verbs_find_question(l, to);
    uint64_t patience_ns;
    cci__verbs_now(l);
    if (q && q->status != CCI_EAGAIN) {
        if (l->now_ns - q->answered_ns < CCI__VERBS_FRESH_NS) {
            *to = q->status == CCI_SUCCESS ? q->answer : *to;
            return q->status;
        }
        memset(q, 0, sizeof *q); /* meanwhile somebody else may be there */
        q = NULL;
    }
    if (!q) q = cci__verbs_new_question(l, to);
    if (!q) return CCI_EAGAIN;
    q->wanted_ns = l->now_ns;
    patience_ns = UINT64_C(20000000) << (q->tries < 6 ? q->tries : 6);
    if (q->tries == 0 || l->now_ns - q->asked_ns >= patience_ns) {
        uint8_t card[CCI__VERBS_CARD];
        cci__verbs_write_card(l, 1, q->nonce, card);
        cci__verbs_put_card(l, card, to);
        q->asked_ns = l->now_ns;
        q->tries += q->tries < 100;
    }
    return CCI_EAGAIN;
}

/* A question is answered, in place; an answer is kept if this endpoint has asked for it, there. */
static void cci__verbs_input_card(cci__verbs_link *l, uint8_t *card, size_t length, const cci_link_addr_t *from) {
    cci__verbs_question *q;
    if (length != CCI__VERBS_CARD || memcmp(card, "CCIv", 4) != 0 || card[4] != 1) return;
    q = card[5] == 2 ? cci__verbs_find_question(l, from) : NULL;
    if (card[5] == 1) {
        uint8_t nonce[8];
        int knows = cci__load32(card + 36) == l->device.qkey;
        memcpy(nonce, card + 8, sizeof nonce);
        cci__verbs_write_card(l, 2, nonce, card);
        if (!knows) cci__store32(card + 36, 0);
        cci__verbs_put_card(l, card, from);
    } else if (q && q->status == CCI_EAGAIN && memcmp(q->nonce, card + 8, sizeof q->nonce) == 0) {
        q->status = cci__verbs_read_card(l, card, &q->answer);
        q->answered_ns = l->now_ns;
    }
}

/* Reads questions and answers; the work is bounded. */
static void cci__verbs_read_cards(cci__verbs_link *l) {
    int turns;
    l->looked_ns = l->now_ns;
    for (turns = 0; turns < 16; turns++) {
        uint8_t card[CCI__VERBS_CARD + 1];
        cci__verbs_sockaddr s;
        socklen_t size = sizeof s;
        cci_link_addr_t from;
        ssize_t n;
        s.any.sa_family = AF_UNSPEC;
        n = recvfrom(l->socket, card, sizeof card, MSG_DONTWAIT, &s.any, &size);
        if (n < 0) {
            if (errno != EINTR && errno != ECONNREFUSED) break;
            continue;
        }
        cci__verbs_host_of(&from, &s);
        cci__verbs_input_card(l, card, (size_t)n, &from);
    }
}

/* Splits "host:port", "[v6]:port"; 0 if it is something else. Link-local addresses are those on the port's own
 * interface, so a "%interface", which may be the server's name for its own, is left out. */
static int cci__verbs_split(const char *text, char *host, size_t host_size, unsigned *port) {
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
    if (!end || *colon != ':' || colon[1] == '0' || !cci__verbs_number(colon + 1, &n) || n < 1 || n > 65535) return 0;
    length = (size_t)(end - text);
    if (length == 0 || length >= host_size) return 0;
    memcpy(host, text, length);
    host[length] = 0;
    host[strcspn(host, "%")] = 0;
    *port = (unsigned)n;
    return 1;
}

/* "[gid]/queue pair" or "[gid]/queue pair/LID"; 1, 0 when it has another form, -1 when a part of it is wrong. */
static int cci__verbs_parse_direct(const cci__verbs_link *l, const char *text, cci_link_addr_t *to) {
    char part[64];
    uint8_t gid[16];
    uint64_t qpn, lid = 0;
    const char *end = *text == '[' ? strchr(text, ']') : NULL;
    size_t length;
    if (!end || end[1] != '/') return 0;
    length = (size_t)(end - text) - 1;
    if (length >= sizeof part) return -1;
    memcpy(part, text + 1, length);
    part[length] = 0;
    if (inet_pton(AF_INET6, part, gid) != 1) return -1;
    text = end + 2;
    length = strcspn(text, "/");
    if (length >= sizeof part) return -1;
    memcpy(part, text, length);
    part[length] = 0;
    if (!cci__verbs_number(part, &qpn) || qpn < 2 || qpn >= 0xffffff ||
        (text[length] == '/' && !cci__verbs_number(text + length + 1, &lid)) || cci__verbs_is_zero(gid, 16) ||
        cci__verbs_is_group_gid(gid) || (l->port.is_ethernet ? lid != 0 : lid < 1 || lid > 0xbfff))
        return -1;
    cci__verbs_make_addr(to, (uint32_t)lid, (uint32_t)qpn, gid);
    return 1;
}

/* The canonical form of what the resolver found, when this link can send there. */
static int cci__verbs_reachable(const cci__verbs_link *l, const struct addrinfo *r, unsigned port,
                                cci_link_addr_t *to) {
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    cci__verbs_sockaddr s;
    uint8_t gid[16];
    memset(&s, 0, sizeof s);
    if (r->ai_addrlen > sizeof s) return 0;
    memcpy(&s, r->ai_addr, r->ai_addrlen);
    if (r->ai_family == AF_INET) {
        memcpy(gid, mapped, sizeof mapped);
        memcpy(gid + 12, &s.v4.sin_addr, 4);
        s.v4.sin_port = htons((uint16_t)port);
    } else if (r->ai_family == AF_INET6) {
        memcpy(gid, &s.v6.sin6_addr, 16);
        s.v6.sin6_port = htons((uint16_t)port);
        if (gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80) s.v6.sin6_scope_id = if_nametoindex(l->port.interface_name);
    } else {
        return 0;
    }
    if (cci__verbs_is_group_gid(gid)) { /* where the port's own addresses are those of IP */
        if ((r->ai_family == AF_INET) != (l->port.gid_kind == CCI__GID_V2_IPV4) ||
            l->port.gid_kind < CCI__GID_V2_LINK_LOCAL)
            return 0;
        memset(to, 0, sizeof *to);
        to->bytes[0] = CCI__VERBS_TO_GROUP;
        to->bytes[2] = (uint8_t)(port >> 8);
        to->bytes[3] = (uint8_t)port;
        memcpy(to->bytes + 8, gid, 16);
        return 1;
    }
    if (l->host.bytes[0] != (r->ai_family == AF_INET ? 4 : 6) || cci__verbs_is_zero(gid + 12, 4)) return 0;
    cci__verbs_host_of(to, &s);
    return 1;
}

/* With an address: what can be known without asking the host. Without: what it has answered by now. */
static int cci__verbs_resolve(void *link, const char *address, cci_link_addr_t *to) {
    cci__verbs_link *l = (cci__verbs_link *)link;
    char host[300];
    unsigned port;
    struct addrinfo hints, *list = NULL, *r;
    int found;
    if (!address) return cci__verbs_ask(l, to);
    found = cci__verbs_parse_direct(l, address, to);
    if (found) return found > 0 ? CCI_SUCCESS : CCI_EINVAL;
    if (!cci__verbs_split(address, host, sizeof host, &port)) return CCI_EINVAL;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_DGRAM;
    hints.ai_flags = AI_NUMERICHOST; /* first without the name service, which may block */
    if (getaddrinfo(host, NULL, &hints, &list) != 0) {
        hints.ai_flags = 0;
        list = NULL;
        errno = 0;
        if (getaddrinfo(host, NULL, &hints, &list) != 0)
            return cci_status_of_errno(errno) != CCI_ENOMEM
                       ? (int)CCI_EADDRNOTAVAIL
                       : cci__verbs_log(CCI_LOG_ERROR, l->port.device, "looking up a host", errno);
    }
    for (r = list; r && !found; r = r->ai_next) found = cci__verbs_reachable(l, r, port, to);
    freeaddrinfo(list);
    if (!found) return CCI_EADDRNOTAVAIL;
    return to->bytes[0] == CCI__VERBS_TO_GROUP ? CCI_SUCCESS : CCI_EAGAIN;
}

/* The address of a queue pair as it stands in a URI. */
static int cci__verbs_text(void *link, const cci_link_addr_t *address, char *text, size_t size) {
    const cci__verbs_link *l = (const cci__verbs_link *)link;
    char ip[INET6_ADDRSTRLEN] = "?", whole[128];
    inet_ntop(AF_INET6, address->bytes + 8, ip, sizeof ip);
    snprintf(whole, sizeof whole, l->port.is_ethernet ? "[%s]/%lu" : "[%s]/%lu/%u", ip,
             (unsigned long)cci__verbs_addr_qpn(address), (unsigned)cci__verbs_addr_lid(address));
    if (strlen(whole) >= size) return CCI_ERANGE;
    memcpy(text, whole, strlen(whole) + 1);
    return CCI_SUCCESS;
}

/* The network that an address belongs to: /24 of an IPv4 address in the GID, otherwise its subnet's 8 bytes. */
static uint32_t cci__verbs_prefix(void *link, const cci_link_addr_t *address, uint8_t bytes[16]) {
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    uint32_t length = memcmp(address->bytes + 8, mapped, sizeof mapped) == 0 ? 15 : 8;
    (void)link;
    memcpy(bytes, address->bytes + 8, length);
    return length;
}

static int cci__verbs_address(void *link, char *text, size_t size) {
    cci__verbs_link *l = (cci__verbs_link *)link;
    char ip[INET6_ADDRSTRLEN] = "?", whole[128];
    unsigned port = (unsigned)l->host.bytes[2] << 8 | l->host.bytes[3];
    if (l->host.bytes[0]) {
        inet_ntop(l->host.bytes[0] == 4 ? AF_INET : AF_INET6, l->host.bytes + 8, ip, sizeof ip);
        snprintf(whole, sizeof whole, l->host.bytes[0] == 4 ? "%s:%u" : "[%s]:%u", ip, port);
    } else {
        inet_ntop(AF_INET6, l->port.gid, ip, sizeof ip);
        snprintf(whole, sizeof whole, l->port.is_ethernet ? "[%s]/%lu" : "[%s]/%lu/%u", ip,
                 l->qp ? (unsigned long)l->qp->qp_num : 0, (unsigned)l->port.lid);
    }
    if (strlen(whole) >= size) return CCI_ERANGE;
    memcpy(text, whole, strlen(whole) + 1);
    return CCI_SUCCESS;
}

/* The port that a service means, 0 for any; -1 when there is no such service. */
static int cci__verbs_service_port(const char *service) {
    struct addrinfo hints, *list = NULL;
    uint64_t n;
    int port = -1;
    if (*service >= '0' && *service <= '9') return cci__verbs_number(service, &n) && n <= 65535 ? (int)n : -1;
    if ((*service | 32) < 'a' || (*service | 32) > 'z') return -1; /* getaddrinfo() skips blanks and signs */
    if (*service == 0) return -1;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_DGRAM;
    hints.ai_flags = AI_PASSIVE;
    if (getaddrinfo(NULL, service, &hints, &list) == 0 && list) {
        cci__verbs_sockaddr s;
        memset(&s, 0, sizeof s);
        memcpy(&s, list->ai_addr, list->ai_addrlen < sizeof s ? list->ai_addrlen : sizeof s);
        port = ntohs(s.any.sa_family == AF_INET ? s.v4.sin_port : s.v6.sin6_port);
    }
    if (list) freeaddrinfo(list);
    return port;
}

/* The IP address that stands for the port: its own, if that is one, or the interface's. */
static int cci__verbs_find_host(const cci__verbs_device *d, const cci__verbs_port *port, cci_link_addr_t *host) {
    struct ifaddrs *list, *a;
    uint32_t scope = port->gid_kind == CCI__GID_V2_LINK_LOCAL ? if_nametoindex(port->interface_name) : 0;
    memset(host, 0, sizeof *host);
    if (port->gid_kind == CCI__GID_V2_IPV4) {
        cci__verbs_make_host(host, 4, port->gid + 12, 0, 0);
    } else if (port->gid_kind == CCI__GID_V2_IPV6 || (port->gid_kind == CCI__GID_V2_LINK_LOCAL && scope)) {
        cci__verbs_make_host(host, 6, port->gid, 0, scope);
    } else if (port->interface_name[0] && getifaddrs(&list) == 0) {
        if (d->ip_family) cci__verbs_make_host(host, d->ip_family, d->ip, 0, 0);
        for (a = list; a && !d->ip_family; a = a->ifa_next) {
            cci__verbs_sockaddr s;
            if (!a->ifa_addr || strcmp(a->ifa_name, port->interface_name) != 0) continue;
            memset(&s, 0, sizeof s);
            if (a->ifa_addr->sa_family == AF_INET) {
                memcpy(&s.v4, a->ifa_addr, sizeof s.v4);
                cci__verbs_make_host(host, 4, &s.v4.sin_addr, 0, 0);
                break;
            }
            if (a->ifa_addr->sa_family == AF_INET6 && !host->bytes[0]) {
                memcpy(&s.v6, a->ifa_addr, sizeof s.v6);
                cci__verbs_make_host(host, 6, &s.v6.sin6_addr, 0, s.v6.sin6_scope_id);
            }
        }
        freeifaddrs(list);
    }
    return host->bytes[0] != 0;
}

/* The socket that answers for this endpoint; a status. A port without any IP address has none, and no services. */
static int cci__verbs_open_socket(cci__verbs_link *l, const char *service) {
    int port = service ? cci__verbs_service_port(service) : (int)l->device.service;
    cci__verbs_sockaddr s;
    socklen_t size;
    if (port < 0) return CCI_EINVAL;
    if (!cci__verbs_find_host(&l->device, &l->port, &l->host)) {
        if (port > 0)
            cci__verbs_log(CCI_LOG_ERROR, l->port.device, "services need an IP address, and the port has none", 0);
        return port > 0 ? CCI_EINVAL : CCI_SUCCESS;
    }
    l->host.bytes[2] = (uint8_t)((unsigned)port >> 8);
    l->host.bytes[3] = (uint8_t)port;
    size = cci__verbs_to_system(&s, &l->host);
    l->socket = socket(s.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->socket < 0 || bind(l->socket, &s.any, size) != 0 || getsockname(l->socket, &s.any, &size) != 0) {
        int error = errno;
        if (error != EADDRINUSE) /* cci.h says that */
            cci__verbs_log(CCI_LOG_ERROR, l->port.device, "binding to the service", error);
        return error == EADDRNOTAVAIL ? (int)CCI_ENODEV : cci_status_of_errno(error);
    }
    cci__verbs_host_of(&l->host, &s);
    return CCI_SUCCESS;
}

/* ==================================================================================================================
 * >>verbs-health
 * ================================================================================================================== */

/* The queue pair has failed, or a completion queue: the next call repairs it. */
static void cci__verbs_broken(cci__verbs_link *l, const char *what, const char *reason) {
    char text[160];
    if (!l->is_broken && (l->repairs & (l->repairs - 1)) == 0) { /* not each of many */
        snprintf(text, sizeof text, "%s: %s", what, reason);
        cci__verbs_log(CCI_LOG_WARN, l->port.device, text, 0);
    }
    l->is_broken = 1;
}

/* The device is gone for good. Its descriptors would be readable for ever. */
static void cci__verbs_die(cci__verbs_link *l) {
    l->is_dead = 1;
    cci__verbs_leave(l, 0);
    cci__verbs_unwatch(l->waiter.handle, l->context->async_fd);
    cci__verbs_unwatch(l->waiter.sleeper, l->context->async_fd);
    cci__verbs_unwatch(l->waiter.handle, l->channel->fd);
    cci__verbs_unwatch(l->waiter.sleeper, l->channel->fd);
}

/* Takes away what has completed of an older generation. */
static void cci__verbs_drain(cci__verbs_link *l) {
    struct ibv_wc wc[CCI__VERBS_BATCH];
    uint32_t turns;
    for (turns = 0; turns < l->recv_depth && ibv_poll_cq(l->recv_cq, CCI__VERBS_BATCH, wc) > 0; turns++) {
    }
    for (turns = 0; turns < l->send_depth && ibv_poll_cq(l->send_cq, CCI__VERBS_BATCH, wc) > 0; turns++) {
    }
}

/* What was under way is lost, as on any wire. The queue pair keeps its number if it can, so that peers find it
 * again; if not, they notice the new one by themselves. */
static int cci__verbs_repair(cci__verbs_link *l) {
    uint32_t i;
    if (cci__verbs_now(l) - l->repaired_ns < CCI__VERBS_REPAIR_NS && l->repairs > 0) return 0;
    l->repaired_ns = l->now_ns;
    l->repairs++;
    if (!l->cq_is_broken && l->qp && cci__verbs_start_qp(l)) {
        cci__verbs_drain(l);
        cci__verbs_restart_rings(l);
        cci__verbs_post(l);
    } else {
        cci__verbs_close_queues(l);
        if (cci__verbs_open_queues(l) != CCI_SUCCESS) {
            cci__verbs_close_queues(l);
            cci__verbs_die(l);
            return 0;
        }
        for (i = 0; i < l->group_count; i++) (void)cci__verbs_attach(l, &l->groups[i].to);
    }
    l->is_broken = l->cq_is_broken = 0;
    return 1;
}

/* Can it send and receive? */
static int cci__verbs_works(cci__verbs_link *l) {
    return !l->is_dead && (!l->is_broken || cci__verbs_repair(l));
}

static void cci__verbs_on_event(cci__verbs_link *l, const struct ibv_async_event *event) {
    switch (event->event_type) {
    case IBV_EVENT_DEVICE_FATAL:
        cci__verbs_log(CCI_LOG_ERROR, l->port.device, "the device has failed or was taken away", 0);
        cci__verbs_die(l);
        break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE: l->is_news |= event->element.port_num == l->port.number; break;
    case IBV_EVENT_CQ_ERR:
        if (event->element.cq == l->recv_cq || event->element.cq == l->send_cq) {
            l->cq_is_broken = 1;
            cci__verbs_broken(l, "a completion queue has failed", cci__ibv.event_type_str(event->event_type));
            return;
        }
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        if (event->element.qp == l->qp) {
            cci__verbs_broken(l, "the queue pair has failed", cci__ibv.event_type_str(event->event_type));
            return;
        }
        break;
    default: break;
    }
    if (l->on_event) l->on_event(l->on_event_user, event);
}

static void cci__verbs_read_events(cci__verbs_link *l) {
    struct ibv_async_event event;
    int turns;
    for (turns = 0; turns < 64; turns++) {
        if (cci__ibv.get_async_event(l->context, &event) != 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) /* the device has gone */
                cci__verbs_die(l);
            return;
        }
        cci__verbs_on_event(l, &event);
        cci__ibv.ack_async_event(&event);
    }
}

/* Is this place of the address table that of the address which peers know? Several places may have it, for other
 * interfaces. */
static int cci__verbs_is_own_gid(const cci__verbs_link *l, uint32_t index) {
    char name[sizeof l->port.interface_name];
    uint8_t gid[16];
    return cci__verbs_gid_at(l->context, &l->port, index, gid) == l->port.gid_kind &&
           memcmp(gid, l->port.gid, sizeof gid) == 0 &&
           cci__verbs_gid_interface(&l->port, index, gid, name, sizeof name);
}

/* Is the port active, and has it still the address that peers know? The address may have another place in the table. */
static int cci__verbs_look(cci__verbs_link *l) {
    struct ibv_port_attr a;
    uint32_t i, index = l->port.gid_index;
    memset(&a, 0, sizeof a);
    if (cci__ibv.query_port(l->context, l->port.number, &a) != 0) return 0;
    for (i = 0; !cci__verbs_is_own_gid(l, index); i++) {
        if (i == CCI__VERBS_GID_MAX || i >= (uint32_t)a.gid_tbl_len) {
            l->state.lacks_address = 1;
            return 0;
        }
        index = i;
    }
    l->state.lacks_address = 0;
    if (a.state == IBV_PORT_ACTIVE) l->state.mtu = cci__verbs_active_mtu(&a);
    if (index != l->port.gid_index || a.lid != l->port.lid) {
        l->port.gid_index = index;
        l->port.lid = a.lid;
        cci__verbs_outdate_handles(l);
    }
    return a.state == IBV_PORT_ACTIVE;
}

static int cci__verbs_up(void *link) {
    cci__verbs_link *l = (cci__verbs_link *)link;
    if (!l->is_dead) cci__verbs_read_events(l);
    if (l->is_news && !l->is_dead) {
        l->is_news = 0;
        l->is_up = cci__verbs_look(l);
    }
    return l->is_dead ? -1 : l->is_up;
}

/* ==================================================================================================================
 * >>verbs-wait
 * ================================================================================================================== */

enum { CCI__VERBS_AT_CHANNEL, CCI__VERBS_AT_EVENTS, CCI__VERBS_AT_SOCKET, CCI__VERBS_AT_OTHER };

/* `wait` runs in another thread than the rest. */
#define CCI__VERBS_STORE(object, value) __atomic_store_n(&(object), (value), __ATOMIC_RELAXED)
#define CCI__VERBS_LOAD(object) __atomic_load_n(&(object), __ATOMIC_RELAXED)

static int cci__verbs_somebody_waits(const cci__verbs_link *l) {
    return l->wants_handle || CCI__VERBS_LOAD(l->waiter.sleeps);
}

static void cci__verbs_watch(int set, int fd, uint32_t place) {
    struct epoll_event e;
    memset(&e, 0, sizeof e);
    e.events = EPOLLIN;
    e.data.u32 = place;
    if (set >= 0 && fd >= 0) epoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
}

static void cci__verbs_unwatch(int set, int fd) {
    struct epoll_event e;
    memset(&e, 0, sizeof e);
    if (set >= 0 && fd >= 0) epoll_ctl(set, EPOLL_CTL_DEL, fd, &e);
}

static void cci__verbs_watch_all(cci__verbs_link *l, int set) {
    cci__verbs_watch(set, l->channel->fd, CCI__VERBS_AT_CHANNEL);
    cci__verbs_watch(set, l->context->async_fd, CCI__VERBS_AT_EVENTS);
    cci__verbs_watch(set, l->socket, CCI__VERBS_AT_SOCKET);
    cci__verbs_watch(set, l->waiter.more, CCI__VERBS_AT_OTHER);
}

static void cci__verbs_waiter_init(cci__verbs_link *l) {
    cci__verbs_waiter *w = &l->waiter;
    w->handle = w->sleeper = w->wake = w->more = w->readable = w->timer = -1;
    w->armed_ns = UINT64_MAX;
    w->has_pwait2 = 1;
}

static int cci__verbs_waiter_open(cci__verbs_link *l, int *os_handle) {
    cci__verbs_waiter *w = &l->waiter;
    w->sleeper = epoll_create1(EPOLL_CLOEXEC);
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->more = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->sleeper < 0 || w->wake < 0 || w->more < 0) return 0;
    cci__verbs_watch_all(l, w->sleeper);
    cci__verbs_watch(w->sleeper, w->wake, CCI__VERBS_AT_OTHER);
    if (l->wants_handle) {
        w->handle = epoll_create1(EPOLL_CLOEXEC);
        w->readable = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (w->handle < 0 || w->readable < 0 || w->timer < 0) return 0;
        cci__verbs_watch_all(l, w->handle);
        cci__verbs_watch(w->handle, w->timer, CCI__VERBS_AT_OTHER);
        cci__verbs_watch(w->handle, w->readable, CCI__VERBS_AT_OTHER);
        *os_handle = w->handle;
    }
    return 1;
}

/* Forgets a descriptor and closes it, in this order: fork() may come in between. */
static void cci__verbs_drop(int *fd) {
    int was = *fd;
    *fd = -1;
    if (was >= 0) close(was);
}

static void cci__verbs_waiter_close(cci__verbs_link *l) {
    cci__verbs_waiter *w = &l->waiter;
    cci__verbs_drop(&w->handle);
    cci__verbs_drop(&w->sleeper);
    cci__verbs_drop(&w->wake);
    cci__verbs_drop(&w->more);
    cci__verbs_drop(&w->readable);
    cci__verbs_drop(&w->timer);
}

/* An eventfd is readable or not. */
static void cci__verbs_flag(int fd, int *is_set, int set) {
    uint64_t one = 1;
    ssize_t r = 0;
    if (set != *is_set) {
        r = set ? write(fd, &one, sizeof one) : read(fd, &one, sizeof one);
        *is_set = set;
    }
    (void)r;
}

/* The channel has rung: the queues that rang are not armed any more. */
static void cci__verbs_read_channel(cci__verbs_link *l) {
    struct ibv_cq *cq;
    void *user;
    int turns;
    for (turns = 0; turns < 64 && cci__ibv.get_cq_event(l->channel, &cq, &user) == 0; turns++) {
        if (cq == l->recv_cq) {
            l->is_armed = 0;
            l->unacked++;
        } else if (cq == l->more_cq) {
            l->more_is_armed = 0;
            l->more_unacked++;
        }
    }
    if (l->unacked >= 64) { /* each acknowledgement takes a lock */
        cci__ibv.ack_cq_events(l->recv_cq, l->unacked);
        l->unacked = 0;
    }
    if (l->more_unacked >= 64) {
        cci__ibv.ack_cq_events(l->more_cq, l->more_unacked);
        l->more_unacked = 0;
    }
}

/* Nothing was received: time for everything else that may have come. Where somebody waits, one call tells all. */
static void cci__verbs_look_around(cci__verbs_link *l) {
    struct epoll_event e[8];
    int i, n, set = l->waiter.holds ? l->waiter.sleeper : l->waiter.handle;
    if (set < 0 && CCI__VERBS_LOAD(l->waiter.sleeps)) set = l->waiter.sleeper;
    if (set < 0) {
        if (l->socket >= 0 && l->now_ns - l->looked_ns > CCI__VERBS_LOOK_NS) cci__verbs_read_cards(l);
        return;
    }
    n = epoll_wait(set, e, (int)(sizeof e / sizeof e[0]), 0);
    for (i = 0; i < n; i++)
        if (e[i].data.u32 == CCI__VERBS_AT_CHANNEL)
            cci__verbs_read_channel(l);
        else if (e[i].data.u32 == CCI__VERBS_AT_EVENTS && !l->is_dead)
            cci__verbs_read_events(l);
        else if (e[i].data.u32 == CCI__VERBS_AT_SOCKET)
            cci__verbs_read_cards(l);
}

/* Where somebody waits, the next completion is to ring; 1: it was not so until now, so look once more. */
static int cci__verbs_arm_queues(cci__verbs_link *l) {
    int was_armed = l->is_armed;
    if (!cci__verbs_somebody_waits(l)) return 0;
    if (!l->is_armed) l->is_armed = ibv_req_notify_cq(l->recv_cq, 0) == 0;
    if (l->more_cq && !l->more_is_armed) l->more_is_armed = ibv_req_notify_cq(l->more_cq, 0) == 0;
    return !was_armed;
}

/* Completions that were left behind ring no bell: the descriptors stay readable until they are taken. */
static void cci__verbs_leave(cci__verbs_link *l, int is_more) {
    if (l->waiter.is_more != is_more && cci__verbs_somebody_waits(l))
        cci__verbs_flag(l->waiter.more, &l->waiter.is_more, is_more);
}

static void cci__verbs_arm(void *link, int readable, uint64_t deadline_ns) {
    cci__verbs_link *l = (cci__verbs_link *)link;
    cci__verbs_waiter *w = &l->waiter;
    if (w->handle < 0) return;
    cci__verbs_flag(w->readable, &w->is_readable, readable != 0);
    if (deadline_ns != w->armed_ns) { /* setting a timer that has fired also ends its being readable */
        struct itimerspec t;          /* zero turns the timer off */
        memset(&t, 0, sizeof t);
        if (deadline_ns == 0) deadline_ns = 1;
        if (deadline_ns != UINT64_MAX) {
            t.it_value.tv_sec = (time_t)(deadline_ns / 1000000000u);
            t.it_value.tv_nsec = (long)(deadline_ns % 1000000000u);
        }
        if (timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &t, NULL) == 0) w->armed_ns = deadline_ns;
    }
}

/* Takes what `wait` watches too out of the OS handle, or puts it in again. */
static void cci__verbs_hold(void *link, int holds) {
    cci__verbs_link *l = (cci__verbs_link *)link;
    cci__verbs_waiter *w = &l->waiter;
    if (w->handle < 0 || w->holds == holds) return;
    w->holds = holds;
    if (!holds) {
        cci__verbs_watch_all(l, w->handle);
        return;
    }
    cci__verbs_unwatch(w->handle, l->channel->fd);
    cci__verbs_unwatch(w->handle, l->context->async_fd);
    cci__verbs_unwatch(w->handle, l->socket);
    cci__verbs_unwatch(w->handle, w->more);
}

/* The first time it doesn't sleep: only from then on do completions ring. */
static void cci__verbs_wait(void *link, uint64_t timeout_ns) {
    cci__verbs_link *l = (cci__verbs_link *)link;
    cci__verbs_waiter *w = &l->waiter;
    uint64_t ms = timeout_ns / 1000000u + (timeout_ns % 1000000u != 0), count;
    struct epoll_event e[2];
    ssize_t r;
    if (!CCI__VERBS_LOAD(w->sleeps)) {
        CCI__VERBS_STORE(w->sleeps, 1);
        return;
    }
#ifdef SYS_epoll_pwait2
    if (CCI__VERBS_LOAD(w->has_pwait2)) {
        struct {
            int64_t seconds, nanoseconds;
        } t; /* the kernel's struct __kernel_timespec */
        t.seconds = (int64_t)(timeout_ns / 1000000000u);
        t.nanoseconds = (int64_t)(timeout_ns % 1000000000u);
        if (syscall(SYS_epoll_pwait2, w->sleeper, e, 2, timeout_ns == UINT64_MAX ? NULL : &t, NULL, (size_t)8) < 0 &&
            errno != EINTR)
            CCI__VERBS_STORE(w->has_pwait2, 0);
    }
    if (!CCI__VERBS_LOAD(w->has_pwait2))
#endif
    {
        (void)epoll_wait(w->sleeper, e, 2, timeout_ns == UINT64_MAX ? -1 : ms > 1000000 ? 1000000 : (int)ms);
    }
    r = read(w->wake, &count, sizeof count);
    (void)r;
}

static void cci__verbs_wake(void *link) {
    cci__verbs_link *l = (cci__verbs_link *)link;
    uint64_t one = 1;
    ssize_t r = write(l->waiter.wake, &one, sizeof one);
    (void)r;
}

/* ==================================================================================================================
 * >>verbs-open
 *
 * Opening and closing what a link has of the hardware: context, protection domain, memory, queues.
 * ================================================================================================================== */

static uint64_t cci__verbs_now(void *link) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    ((cci__verbs_link *)link)->now_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    return ((cci__verbs_link *)link)->now_ns;
}

/* Opens the device by its name; NULL with the reason logged. */
static struct ibv_context *cci__verbs_open_context(const char *name) {
    int i, count = 0;
    struct ibv_context *context = NULL;
    struct ibv_device **list = cci__ibv.get_device_list(&count);
    for (i = 0; list && i < count && !context; i++) {
        if (strcmp(cci__ibv.get_device_name(list[i]), name) == 0) {
            context = cci__verbs_open_device(list[i]);
            if (!context) cci__verbs_log(CCI_LOG_ERROR, name, "can't be opened", errno);
        }
    }
    if (list) cci__ibv.free_device_list(list);
    if (context) /* a read of these must never wait */
        fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK);
    return context;
}

/* The place of a partition key in the port's table, -1 if it is not there. The top bit, full or limited membership,
 * doesn't matter. */
static int cci__verbs_pkey_index(struct ibv_context *context, const cci__verbs_port *port, uint32_t pkey) {
    int i;
    uint16_t entry;
    if (pkey == 0) return 0;
    for (i = 0; i < 128 && cci__ibv.query_pkey(context, port->number, i, &entry) == 0; i++)
        if ((ntohs(entry) & 0x7fffu) == (pkey & 0x7fffu)) return i;
    return -1;
}

/* Most drivers round the depth of a queue up to a power of two. */
static uint64_t cci__verbs_queue_bytes(uint64_t depth, uint32_t entry) {
    uint64_t power = 64;
    while (power < depth) power *= 2;
    return power * entry;
}

/* Bytes of memory that the endpoint's buffers and queues pin, as drivers make them: entries of completion queues
 * have 64 bytes, those of receive queues 32, those of send queues some hundred. */
static void cci__verbs_estimate(cci__verbs_link *l, const struct ibv_device_attr *a) {
    const cci__verbs_device *d = &l->device;
    uint64_t bytes = (uint64_t)l->recv_depth * l->recv_stride + (uint64_t)l->send_depth * l->send_stride;
    uint32_t srq_depth = (uint32_t)a->max_srq_wr < d->srq_depth ? (uint32_t)a->max_srq_wr : d->srq_depth;
    uint32_t stride = ((d->max_send_size ? d->max_send_size : CCI__VERBS_RC_MESSAGE) + 63u) & ~63u;
    bytes += cci__verbs_queue_bytes(l->recv_depth, 64 + 32) + cci__verbs_queue_bytes(l->send_depth, 64 + 512);
    if (d->mode == CCI__VERBS_RC) {
        bytes += cci__verbs_queue_bytes(srq_depth, 32) + cci__verbs_queue_bytes(srq_depth + CCI__VERBS_RC_SENDS, 64);
        bytes += (uint64_t)stride * (d->send_buf_count ? d->send_buf_count : CCI__VERBS_RC_FIRST_SENDS);
        bytes += (uint64_t)stride * (d->recv_buf_count ? d->recv_buf_count : CCI__VERBS_RC_FIRST_RECVS);
    }
    l->pinned = bytes;
}

/* A completion queue with the endpoint's interrupt; one with a channel rings it for several completions, where the
 * adapter can. */
static struct ibv_cq *cci__verbs_make_cq(cci__verbs_link *l, uint32_t depth, void *user,
                                         struct ibv_comp_channel *channel) {
    struct ibv_cq *cq = cci__ibv.create_cq(l->context, (int)depth, user, channel, l->vector);
#ifdef ibv_reg_mr /* a macro since the header has that, and more */
    if (cq && channel && l->device.moderation_us) {
        struct ibv_modify_cq_attr a;
        memset(&a, 0, sizeof a);
        a.attr_mask = IBV_CQ_ATTR_MODERATE;
        a.moderate.cq_count = CCI__VERBS_MODERATION_COUNT;
        a.moderate.cq_period = l->device.moderation_us;
        (void)ibv_modify_cq(cq, &a);
    }
#endif
    return cq;
}

/* Each endpoint has the next of the adapter's interrupts: they are spread over the host's cores. */
static int cci__verbs_next_vector(const struct ibv_context *context) {
    static unsigned last;
    return context->num_comp_vectors > 1 ? (int)(last++ % (unsigned)context->num_comp_vectors) : 0;
}

/* What the device allows. */
static int cci__verbs_fit(cci__verbs_link *l) {
    struct ibv_device_attr a;
    uint32_t most;
    int is_rc = l->device.mode == CCI__VERBS_RC;
    memset(&a, 0, sizeof a);
    if (cci__ibv.query_device(l->context, &a) != 0) return 0;
    most = a.max_qp_wr > 0 ? (uint32_t)a.max_qp_wr : 16;
    most = a.max_cqe > 0 && (uint32_t)a.max_cqe < most ? (uint32_t)a.max_cqe : most;
    l->recv_depth = l->device.recv_depth ? l->device.recv_depth
                    : is_rc              ? CCI__VERBS_RC_RECV_DEPTH
                                         : CCI__VERBS_RECV_DEPTH;
    l->send_depth = l->device.send_depth ? l->device.send_depth
                    : is_rc              ? CCI__VERBS_RC_SEND_DEPTH
                                         : CCI__VERBS_SEND_DEPTH;
    l->recv_depth = l->recv_depth < most ? l->recv_depth : most;
    l->send_depth = l->send_depth < most ? l->send_depth : most;
    l->signal_every = l->send_depth / 4 < 64 ? l->send_depth / 4 : 64;
    l->recv_stride = (CCI__VERBS_GRH + l->mtu + 63u) & ~63u;
    l->send_stride = (l->mtu + 63u) & ~63u;
    cci__verbs_estimate(l, &a);
    return 1;
}

/* One block of memory for all packets, in pages of their own, and its registration. */
static int cci__verbs_open_memory(cci__verbs_link *l) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes;
    uint32_t i;
    bytes = (size_t)l->recv_depth * l->recv_stride + (size_t)l->send_depth * l->send_stride;
    bytes = (bytes + page - 1) & ~(page - 1);
    l->memory = (uint8_t *)cci_alloc(bytes + page);
    l->recv_wr = (struct ibv_recv_wr *)cci_alloc(l->recv_depth * (sizeof *l->recv_wr + sizeof *l->recv_piece));
    if (!l->memory || !l->recv_wr) return CCI_ENOMEM;
    l->packets = l->memory + (page - (uintptr_t)l->memory % page);
    memset(l->packets, 0, bytes);
    l->recv_piece = (struct ibv_sge *)(void *)(l->recv_wr + l->recv_depth);
    l->send_packets = l->packets + (size_t)l->recv_depth * l->recv_stride;
    l->mr = cci__ibv.reg_mr(l->pd, l->packets, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (!l->mr) {
        cci__verbs_log_memory(CCI_LOG_ERROR, l->port.device, "memory can't be pinned", errno, l->pinned);
        return CCI_ENOMEM;
    }
    for (i = 0; i < l->recv_depth; i++) {
        memset(&l->recv_wr[i], 0, sizeof l->recv_wr[i]);
        l->recv_piece[i].addr = (uintptr_t)(l->packets + (size_t)i * l->recv_stride);
        l->recv_piece[i].length = CCI__VERBS_GRH + l->mtu;
        l->recv_piece[i].lkey = l->mr->lkey;
        l->recv_wr[i].sg_list = &l->recv_piece[i];
        l->recv_wr[i].num_sge = 1;
    }
    return CCI_SUCCESS;
}

/* Brings the queue pair from any state to the one in which it sends and receives; 0 with errno when that fails. */
static int cci__verbs_start_qp(cci__verbs_link *l) {
    struct ibv_qp_attr a;
    int error;
    memset(&a, 0, sizeof a);
    a.qp_state = IBV_QPS_RESET;
    error = cci__ibv.modify_qp(l->qp, &a, IBV_QP_STATE);
    a.qp_state = IBV_QPS_INIT;
    a.pkey_index = (uint16_t)l->pkey_index;
    a.port_num = l->port.number;
    a.qkey = l->device.qkey;
    if (!error) error = cci__ibv.modify_qp(l->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    a.qp_state = IBV_QPS_RTR;
    if (!error) error = cci__ibv.modify_qp(l->qp, &a, IBV_QP_STATE);
    a.qp_state = IBV_QPS_RTS;
    if (!error) error = cci__ibv.modify_qp(l->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
    errno = error > 0 ? error : errno;
    return !error;
}

/* A new generation of work requests: what completes of an older one is ignored. All receive buffers must be posted. */
static void cci__verbs_restart_rings(cci__verbs_link *l) {
    uint32_t i;
    l->epoch++;
    l->send_done = l->send_next;
    l->to_post = NULL;
    l->to_post_count = 0;
    for (i = 0; i < l->recv_depth; i++) {
        l->recv_wr[i].wr_id = (uint64_t)l->epoch << 32 | i;
        l->recv_wr[i].next = l->to_post;
        l->to_post = &l->recv_wr[i];
        l->to_post_count++;
    }
}

/* How posting receive buffers ended: *first is then the first that was not taken, NULL if all were. Returns how many
 * were taken. The first time that some were not, the log says so. */
static uint32_t cci__verbs_posted(const cci__verbs_link *l, struct ibv_recv_wr **first, struct ibv_recv_wr *bad,
                                  int error, const char *what, int *refuses) {
    struct ibv_recv_wr *at = *first;
    uint32_t taken = 0;
    if (!error)
        bad = NULL;
    else if (!bad)
        bad = at;
    for (; at != bad; at = at->next) taken++;
    *first = bad;
    if (error && !*refuses) cci__verbs_log(CCI_LOG_ERROR, l->port.device, what, error > 0 ? error : errno);
    *refuses = error != 0;
    return taken;
}

/* Gives the hardware the receive buffers that are free. What it does not take stays for the next time. */
static void cci__verbs_post(cci__verbs_link *l) {
    struct ibv_recv_wr *bad = NULL;
    int error;
    if (!l->to_post) return;
    error = ibv_post_recv(l->qp, l->to_post, &bad);
    l->to_post_count -=
        cci__verbs_posted(l, &l->to_post, bad, error, "the queue pair takes no receive buffers", &l->refuses);
}

/* Makes a queue pair with as many bytes in the work requests themselves as it can have, at most as many as are asked
 * for in the attributes. These tell then what was asked for; *offered is what the adapter gave. NULL with errno. */
static struct ibv_qp *cci__verbs_make_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes, uint32_t *offered) {
    static const uint32_t bytes[] = {256, 192, 128, 96, 64, 32, 0};
    size_t i;
    for (i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        struct ibv_qp_init_attr a = *attributes;
        struct ibv_qp *qp;
        if (bytes[i] > attributes->cap.max_inline_data) continue;
        a.cap.max_inline_data = bytes[i];
        qp = cci__ibv.create_qp(pd, &a);
        if (qp) {
            *offered = bytes[i] ? a.cap.max_inline_data : 0;
            attributes->cap.max_inline_data = bytes[i];
            return qp;
        }
    }
    return NULL;
}

/* Queues and queue pair. */
static int cci__verbs_open_queues(cci__verbs_link *l) {
    struct ibv_qp_init_attr a;
    l->recv_cq = cci__verbs_make_cq(l, l->recv_depth, NULL, l->channel);
    l->send_cq = cci__verbs_make_cq(l, l->send_depth, NULL, NULL);
    if (!l->recv_cq || !l->send_cq)
        return cci__verbs_log_memory(CCI_LOG_ERROR, l->port.device, "no completion queue", errno, l->pinned);
    memset(&a, 0, sizeof a);
    a.send_cq = l->send_cq;
    a.recv_cq = l->recv_cq;
    a.cap.max_send_wr = l->send_depth;
    a.cap.max_recv_wr = l->recv_depth;
    a.cap.max_send_sge = CCI__VERBS_PIECES;
    a.cap.max_recv_sge = 1;
    a.cap.max_inline_data = 256;
    a.qp_type = IBV_QPT_UD;
    l->qp = cci__verbs_make_qp(l->pd, &a, &l->max_inline);
    if (!l->qp || !cci__verbs_start_qp(l))
        return cci__verbs_log_memory(CCI_LOG_ERROR, l->port.device, "no queue pair", errno, l->pinned);
    cci__verbs_restart_rings(l);
    cci__verbs_post(l);
    return CCI_SUCCESS;
}

static void cci__verbs_check(const cci__verbs_link *l, int error, const char *what) {
    if (error && !l->is_dead) cci__verbs_log(CCI_LOG_ERROR, l->port.device, what, error > 0 ? error : errno);
}

/* The groups stay known, for the queue pair that may come after this one. */
static void cci__verbs_close_queues(cci__verbs_link *l) {
    uint32_t i;
    for (i = 0; i < l->group_count && l->qp; i++) cci__verbs_detach(l, &l->groups[i].to);
    if (l->qp) cci__verbs_check(l, cci__ibv.destroy_qp(l->qp), "destroying the queue pair");
    l->qp = NULL;
    cci__verbs_drop_handles(l);
    if (l->recv_cq) {
        cci__ibv.ack_cq_events(l->recv_cq, l->unacked);
        cci__verbs_check(l, cci__ibv.destroy_cq(l->recv_cq), "destroying a completion queue");
    }
    if (l->send_cq) cci__verbs_check(l, cci__ibv.destroy_cq(l->send_cq), "destroying a completion queue");
    l->recv_cq = l->send_cq = NULL;
    l->unacked = 0;
    l->is_armed = 0;
}

/* Another completion queue of the endpoint's, on the same channel: `receive` then arms it too. NULL takes it away,
 * before it is destroyed. */
CCI__UNUSED static void cci__verbs_share_channel(cci__verbs_link *l, struct ibv_cq *cq) {
    if (l->more_cq) cci__ibv.ack_cq_events(l->more_cq, l->more_unacked);
    l->more_cq = cq;
    l->more_unacked = 0;
    l->more_is_armed = 0;
}

/* In the child of fork() the device's own descriptors are closed too: while one is left, the parent's queue pairs
 * outlive it. */
static void cci__verbs_forked(void *link) {
    cci__verbs_link *l = (cci__verbs_link *)link;
    cci__verbs_waiter_close(l);
    cci__verbs_drop(&l->socket);
    cci__verbs_drop(&l->group_socket);
    if (l->channel) cci__verbs_drop(&l->channel->fd);
    if (l->context) {
        cci__verbs_drop(&l->context->async_fd);
        cci__verbs_drop(&l->context->cmd_fd);
    }
}

static void cci__verbs_close(void *link) {
    cci__verbs_link *l = (cci__verbs_link *)link;
    cci__verbs_close_queues(l);
    if (l->mr) cci__verbs_check(l, cci__ibv.dereg_mr(l->mr), "deregistering memory");
    if (l->channel) cci__verbs_check(l, cci__ibv.destroy_comp_channel(l->channel), "destroying the completion channel");
    if (l->pd) cci__verbs_check(l, cci__ibv.dealloc_pd(l->pd), "freeing the protection domain");
    cci__verbs_waiter_close(l);
    if (l->context) cci__verbs_check(l, cci__ibv.close_device(l->context), "closing the device");
    if (l->socket >= 0) close(l->socket);
    if (l->group_socket >= 0) close(l->group_socket);
    cci_release(l->memory);
    cci_release(l->recv_wr);
    cci_release(l->handles);
    cci_release(l);
}

/* The parts in the order in which they need each other; a status. On failure the caller closes. */
static int cci__verbs_start(cci__verbs_link *l, const char *service) {
    cci__verbs_search s;
    int status;
    if (!cci__verbs_find(&l->device, CCI__VERBS_OPENED, &s) || !s.best.is_active) return CCI_ENODEV;
    l->port = s.best;
    l->is_up = 1;
    l->mtu = cci__verbs_mtu(&l->device, &l->port);
    l->state.mtu = l->port.mtu;
    if (cci_random(l->key, sizeof l->key) != CCI_SUCCESS) return CCI_ERROR;
    status = l->is_beside ? (int)CCI_SUCCESS : cci__verbs_open_socket(l, service);
    if (status != CCI_SUCCESS) return status;
    l->context = cci__verbs_open_context(l->port.device);
    if (!l->context || !cci__verbs_fit(l)) return CCI_ENODEV;
    l->vector = cci__verbs_next_vector(l->context);
    l->pkey_index = cci__verbs_pkey_index(l->context, &l->port, l->device.pkey);
    if (l->pkey_index < 0) {
        cci__verbs_log(CCI_LOG_ERROR, l->port.device, "the port is not in the partition that `pkey` names", 0);
        return CCI_ENODEV;
    }
    l->handles = (cci__verbs_handle *)cci_alloc((size_t)l->device.address_handles * sizeof *l->handles);
    if (!l->handles) return CCI_ENOMEM;
    memset(l->handles, 0, (size_t)l->device.address_handles * sizeof *l->handles);
    l->pd = cci__ibv.alloc_pd(l->context);
    l->channel = cci__ibv.create_comp_channel(l->context);
    if (!l->pd || !l->channel) {
        return cci__verbs_log(CCI_LOG_ERROR, l->port.device, "making a protection domain or a completion channel",
                              errno);
    }
    fcntl(l->channel->fd, F_SETFL, fcntl(l->channel->fd, F_GETFL) | O_NONBLOCK);
    status = cci__verbs_open_memory(l);
    return status == CCI_SUCCESS ? cci__verbs_open_queues(l) : status;
}

static void cci__verbs_tell(const cci__verbs_link *l, cci_link_info_t *info) {
    const cci__verbs_device *d = &l->device;
    info->mtu = l->mtu;
    info->base_mtu = l->mtu < 1024 ? l->mtu : 1024; /* what an Ethernet with frames of 1,500 bytes leaves */
    info->receive_window = l->recv_depth * (l->mtu / 2);
    info->send_buf_count = d->send_buf_count;
    info->recv_buf_count = d->recv_buf_count;
    info->memory_limit = d->memory_bytes;
    info->max_send_size = d->max_send_size;
    info->send_timeout_us = d->send_timeout_us;
    info->progress_thread = d->progress_thread;
    info->congestion = d->congestion[0] ? d->congestion : NULL;
    info->forked = cci__verbs_forked;
    info->crc = d->crc;
    info->probe_idle_s = d->probe_idle_s;
    info->state = &l->state;
}

/* Opens the link of an endpoint, or of the one beside an endpoint of mode auto. */
static int cci__verbs_open_as(cci_device_t *device, const char *service, int want_os_handle, void **link,
                              cci_link_info_t *info, int is_beside) {
    cci__verbs_link *l = (cci__verbs_link *)cci_alloc(sizeof *l);
    int status;
    if (!l) return CCI_ENOMEM;
    memset(l, 0, sizeof *l);
    memcpy(&l->device, cci_device_data(device), sizeof l->device);
    l->is_beside = is_beside;
    if (is_beside) {
        l->device.mode = CCI__VERBS_UD;
        if (!l->device.max_send_size) l->device.max_send_size = CCI__VERBS_RC_MESSAGE; /* the same for both */
        info->index_base = CCI__CONN_MOST;
    }
    l->socket = l->group_socket = -1;
    l->wants_handle = want_os_handle;
    cci__verbs_waiter_init(l);
    info->os_handle = -1;
    status = cci__verbs_start(l, service);
    info->hold = cci__verbs_hold;
    if (status == CCI_SUCCESS && !cci__verbs_waiter_open(l, &info->os_handle))
        status = cci__verbs_log(CCI_LOG_ERROR, l->port.device, "opening descriptors to wait on", errno);
    if (status != CCI_SUCCESS) {
        cci__verbs_close(l);
        return status;
    }
    cci__verbs_tell(l, info);
    *link = l;
    return CCI_SUCCESS;
}

static int cci__verbs_open(cci_device_t *device, const char *service, int want_os_handle, void **link,
                           cci_link_info_t *info) {
    return cci__verbs_open_as(device, service, want_os_handle, link, info, 0);
}

static int cci__verbs_open_beside(cci_device_t *device, const char *service, int want_os_handle, void **link,
                                  cci_link_info_t *info) {
    return cci__verbs_open_as(device, service, want_os_handle, link, info, 1);
}

#define CCI__VERBS_LINK_TABLE(open)                                                                                    \
    {                                                                                                                  \
        CCI_LINK_VERSION, open, cci__verbs_close, cci__verbs_send, cci__verbs_receive, cci__verbs_now,                 \
            cci__verbs_resolve, cci__verbs_address, cci__verbs_group_call, cci__verbs_is_group, cci__verbs_wait,       \
            cci__verbs_wake, cci__verbs_arm, cci__verbs_up, cci__verbs_text, cci__verbs_prefix                         \
    }

static const cci_link_t cci__verbs_link_table = CCI__VERBS_LINK_TABLE(cci__verbs_open);
static const cci_link_t cci__verbs_beside_table = CCI__VERBS_LINK_TABLE(cci__verbs_open_beside);

/* ==================================================================================================================
 * >>verbs-rc
 *
 * mode = rc: an endpoint whose reliable connections are reliable connected queue pairs. Messages and RMAs are work
 * requests of the hardware, which repeats, orders and acknowledges them; the peer's program need not run for that.
 *
 *      endpoint ── link (>>verbs-link)         one UD queue pair: handshake, states of pairs, UU, multicast
 *               ├─ completion queue            all completions of all pairs
 *               ├─ shared receive queue        the endpoint's receive buffers, whoever sends
 *               └─ connection ── queue pair    when it is accepted, and no sooner: a flood of requests makes none
 *
 * CONNECTING is the handshake of cci.h's >>conn over the link, packet by packet, but a request is always answered with
 * a cookie first, and nothing is kept before that comes back. ACCEPT, CONFIRM, CONFIRMED and CLOSE end with the state
 * of the sender's queue pair; so does PAIR, which is nothing but that (type 32, behind the usual 24 bytes):
 *
 *       0                 4                 8                 12                16                20
 *      ┌─────────────────┬─────────────────┬─────────────────┬─────────────────┬─────────────────┬───┬───┬───┬───┐
 *      │ epoch           │ queue pair      │ first packet    │ messages got    │ epoch joined    │fl.│rd.│mtu│ 0 │
 *      └─────────────────┴─────────────────┴─────────────────┴─────────────────┴─────────────────┴───┴───┴───┴───┘
 *       24                                 32
 *      ┌──────────────────────────────────┬──────────────────────────────────┐
 *      │ key of its handles               │ 0                                │   flags: 1 asks for an answer,
 *      └──────────────────────────────────┴──────────────────────────────────┘          2 no receive buffers
 *                                                                                       4 knows atomics
 *
 * MAKING a queue pair, and joining it to the peer's, is done without the endpoint's lock, by its threads or within the
 * program's calls: a connection in line (`setup`) answers nothing, so its peer repeats what it has said until that is
 * over. A client that was accepted repeats its request every 6 s while it is in line, and each request gives it another
 * 30 s to confirm: so a line may be longer than a server waits for those of which it hears nothing. What ends
 * meanwhile leaves its queue pair to the set-up, which destroys it; but one that is being joined may have a receive
 * buffer, and drains when that is over. A completion queue is made anew when no set-up runs.
 *
 * A PAIR that fails (the peer was out of reach for longer than the hardware repeats, or an RMA named memory that is
 * registered no more) is made anew: both sides take what their queue pair had finished, reset it, begin a new epoch and
 * join the peer's. Before the reset the device tells that the queue pair holds no buffer of the shared receive queue
 * any more (IBV_EVENT_QP_LAST_WQE_REACHED), or has had its time to: some never tell. Both count the messages that they
 * got, so each knows which of its own are to be sent again, and every message still comes once and in order. A
 * completion queue or shared receive queue that fails does so with all pairs at once, which get new ones; and where a
 * side has got fewer messages than the other knows to have been acknowledged, they were lost with the queue, and the
 * connection is over. Else only time ends a connection: the send timeout of an operation, all then have CCI_ETIMEDOUT;
 * and the peer's leaving. When the peer has said last that it has no receive buffers, messages are withdrawn instead:
 * the pair is made anew, and those that the peer then has not got end with CCI_ERR_RNR.
 *
 * CLOSING. Who disconnects sends CLOSE until it is answered with CLOSED, and the peer takes from it how many of its
 * messages were got: those are complete, and what else is pending ends as disconnected. An open connection whose peer
 * was silent for `probe_idle` seconds repeats CONFIRM until there is a CONFIRMED.
 *
 *      MAKING ─▶ FRESH ──peer's new state──▶ JOINING ─▶ JOINED ──peer has joined──▶ PAIRED ──failure, or peer's newer
 *      epoch──▶ DRAINING ─▶ FRESH
 *
 * RECEIVER NOT READY. A shared receive queue that is empty makes the hardware repeat until it is not: that neither
 * fails the pair nor holds up others. When nothing gets on for a while, the peer is asked over the link.
 *
 * SENDING. Each connection has its operations in a ring, oldest first, and work requests have numbers, so that one
 * completion tells of all before it. Several messages are posted together; only the last of them is signalled. Small
 * ones travel inside the work request. A message's bytes stay in their block until it is complete, for repeating.
 *
 * RMA is RDMA write and read. A handle holds address, rkey, length, rights, and a tag made of them with a key that the
 * target gives to its peers: so the initiator refuses what is forged, foreign, out of range or not permitted before the
 * hardware does, and the hardware only has to stop peers that lie. That costs them their queue pair, and nobody else
 * anything. A completion message is a send behind the write, or behind the read with a fence.
 *
 * ATOMICS go over the link, so that they need no receive buffers of the program and don't care what comes of the pair:
 * a packet of type 33 is a frame ATOMIC of >>rma behind the usual 24 bytes, or its answer, DATA or DENIED, and `chunk`
 * is the number that is counted up. That number makes them exactly once, as there: the target remembers its last 16
 * answers. They are asked for in the order of the ring and while the pair is joined; those without an answer at looks
 * at the pair that are ever further apart, and when it is made anew. A fence holds back an atomic until all before it
 * is complete, and anything else until the atomics before it are. Who asks knows from the peer's state that it can.
 *
 * It allocates when a connection opens or has its first atomic, and for messages and RMAs while there are more of them
 * at once than ever before. Invariants: an item is in the ring of one connection or free; a receive buffer is posted,
 * waits in `received`, or is with the program; a queue pair is destroyed only when all its work requests have been
 * accounted for. Limits: memory is pinned; handles know 2^48 bytes.
 * ================================================================================================================== */

#define CCI__RC_BUFS 512u /* default of both buffer counts */
#define CCI__RC_MAX_BUFS 65536u
#define CCI__RC_RXE 0xffffffu  /* what the kernel's software driver says as its vendor */
#define CCI__RC_INLINE 128u    /* bytes in a work request that are asked for */
#define CCI__RC_CHAIN 16u      /* work requests posted together */
#define CCI__RC_AT_ONCE 4u     /* work requests under way of a connection below which a message leaves at once */
#define CCI__RC_WAITING 16u    /* messages that wait for company */
#define CCI__RC_POLL 32        /* completions taken at once */
#define CCI__RC_MORE_SENDS 64u /* so many messages are added at a time, up to the endpoint's number */
#define CCI__RC_MORE_RECVS 64u
#define CCI__RC_FEW_RECVS 32u    /* posted buffers below which more are added */
#define CCI__RC_ENOUGH_RECVS 64u /* ... and from which on they are posted in batches */
#define CCI__RC_RMAS 1024u       /* RMAs at once, or as many as messages that may be pending if these are more */
#define CCI__RC_MORE_RMAS 256u   /* so many are added at a time */
#define CCI__RC_CHUNK (1u << 20) /* bytes of one RDMA write or read at most; less when these don't get through */
#define CCI__RC_CHUNK_LEAST (1u << 14)
#define CCI__RC_REGIONS 4096u
#define CCI__RC_BORROW 2048u     /* bytes of a message from which on looking for a registration pays off */
#define CCI__RC_BORROW_TRIES 8u  /* registrations that begin before a message and are looked at */
#define CCI__RC_CONTROL 64u      /* events of connections that are there from the beginning */
#define CCI__RC_REQUESTS 1024u   /* requests that have not been decided */
#define CCI__RC_ANSWERS 4096u    /* answers with data that clients have not confirmed */
#define CCI__RC_DATAGRAMS 16     /* taken from the link at once */
#define CCI__RC_QUIET 32u        /* rounds between two looks at clock and link while messages come */
#define CCI__RC_MOST_UNDATED 32u /* connections whose sends wait for a reading of the clock */
#define CCI__RC_SEND_TIMEOUT_US 30000000u
#define CCI__RC_PAIR_TRIES 40 /* for a connection that has nothing to send */
#define CCI__RC_LEAVE_NS (10 * CCI__MS)
#define CCI__RC_DRAIN_NS (1000 * CCI__MS)
#define CCI__RC_LAST_NS (100 * CCI__MS) /* for the event that a queue pair is empty, as long as none has come */
#define CCI__RC_LOOK_NS (50 * CCI__MS)
#define CCI__RC_IN_LINE_NS (CCI__CONN_ACCEPT_NS / 5) /* between requests of a client that waits for its queue pair */
#define CCI__RC_ASK 4u      /* looks without progress after which the peer is asked, each time so many */
#define CCI__RC_RENEWALS 3u /* of a pair without progress; after so many a refused message ends its connection */
#define CCI__RC_STUCK 16u   /* looks without progress after which the pair is made anew */
#define CCI__RC_PKT_PAIR 32u
#define CCI__RC_PKT_ATOMIC 33u
#define CCI__RC_PKT_ELSEWHERE 34u
#define CCI__RC_ASKS_EITHER 64u     /* flags of a REQUEST: either kind of connection will do; */
#define CCI__RC_ASKS_DATAGRAMS 128u /* the client has as many with queue pairs as it may have */
#define CCI__RC_STATE_SIZE 40u
#define CCI__RC_URI 160u                    /* bytes of a peer's URI */
#define CCI__RC_SEND_ID (UINT64_C(1) << 63) /* a completion's name: this, connection, number; or a buffer's address */

/* MAKING: its queue pair is being made; JOINING: it is there, and being joined to the peer's. */
enum {
    CCI__RC_NO_PAIR,
    CCI__RC_MAKING,
    CCI__RC_FRESH,
    CCI__RC_JOINING,
    CCI__RC_JOINED,
    CCI__RC_PAIRED,
    CCI__RC_DRAINING
};
enum { CCI__RC_MESSAGE_ITEM, CCI__RC_WRITE_ITEM, CCI__RC_READ_ITEM, CCI__RC_ATOMIC_ITEM };

/* Flags of a connection. */
#define CCI__RC_LISTED 1u                   /* in `ready`, or in `drained` if it is draining */
#define CCI__RC_TOLD 2u                     /* closing: the peer knows it, or will never hear it */
#define CCI__RC_UNREADY 4u                  /* the peer has said last that it has no receive buffers */
#define CCI__RC_RESOLVING 8u
#define CCI__RC_AWAITING 16u  /* client: accepted; the peer has not said that it has joined */
#define CCI__RC_FLUSHING 32u  /* a work request of this epoch has failed: none behind it has succeeded */
#define CCI__RC_BEYOND 64u    /* client, mode auto: when it began there were as many connections as may have pairs */

/* More flags of a connection. */
#define CCI__RC_UNTOLD 1u     /* broken: the program is to have an event about it */
#define CCI__RC_ORDERLY 2u    /* broken: the peer has closed it */
#define CCI__RC_COUNTS 4u     /* ... and had got as many messages as `joined` says */
#define CCI__RC_GETS_ON 8u    /* open: work requests were done since the last look */
#define CCI__RC_CANCELLED 16u /* ordered: messages were withdrawn, and the program has not heard of the first yet */
#define CCI__RC_MARKED 32u    /* ... and an event that waits tells it */
#define CCI__RC_EMPTY                                                                                                  \
    64u /* its queue pair can't have a buffer of the shared receive queue: it has told so, or never had one */
#define CCI__RC_UNDATED 128u /* its items' deadlines count from the next reading of the clock */

/* Flags of a state. */
#define CCI__RC_ASKS 1u
#define CCI__RC_IS_UNREADY 2u
#define CCI__RC_KNOWS_ATOMICS 4u

/* Atomics of a connection. */
#define CCI__RC_PEER_DOES 1u /* the peer does them */
#define CCI__RC_HAS_HAD 2u   /* there have been some */

struct cci__rc_item;

/* An operation of the program until its completion has been returned. */
typedef struct cci__rc_op {
    cci_evq_event_t event; /* first */
    int status;
    uint8_t blocking, done;
    uint8_t is_first; /* its event is the first that tells the program of CCI_ERR_RNR */
} cci__rc_op;

/* A message or an RMA on its way; or an atomic, which is never posted, as no work request is for it. */
typedef struct cci__rc_item {
    struct cci__rc_item *next; /* the next call's; of the newest: the oldest */
    cci__rc_op *op;            /* NULL: no completion is wanted */
    uint8_t *data;             /* a message's bytes, for repeating it */
    uint64_t deadline_ns;      /* time from the next reading of the clock on while the connection is undated */
    union {                    /* by kind */
        struct {
            const uint8_t *from;       /* where the work request finds its bytes, or an RMA's local memory */
            uint64_t remote, tag;      /* remote address; the local registration's tag */
            uint64_t length, at, base; /* bytes; of them posted, and moved before this epoch */
            uint32_t region, lkey, rkey;
            uint32_t first, last; /* numbers of its work requests */
            uint32_t chunk;       /* bytes that each of them moves, but the last */
        } work;
        struct {
            void *previous;            /* where to put what was there, or NULL */
            uint64_t key, offset;      /* tag of the target's handle; where the number is in its memory */
            uint64_t operand, compare; /* what to add or store; what has to be there for that */
            uint32_t region, number;   /* the handle's registration; which of the connection's it is */
            uint32_t width, operation; /* bytes; CCI_ATOMIC_ */
        } atomic;
    } of;
    int status;
    uint8_t kind, is_posted, is_done, is_fenced, has_message;
    /* it ends with CCI_ERR_RNR unless the peer has it: that is known when the pair is made anew */
    uint8_t is_withdrawn;
    uint8_t is_borrowed; /* a message whose bytes are the program's, in memory that it has registered */
    uint8_t is_wake;     /* a message that was sent with CCI_FLAG_WAKE */
    uint32_t own_lkey;   /* of `data` */
} cci__rc_item;

/* A receive buffer with its event. */
typedef struct cci__rc_buffer {
    cci_evq_event_t event; /* first; its type is CCI_EVENT_NONE unless it is the program's, or waits for it */
    struct ibv_recv_wr wr;
    struct ibv_sge sge;
    struct cci__rc_buffer *made_before;
    uint64_t token; /* of the connection that its message came for */
} cci__rc_buffer;

/* An event about a connection. It is forgotten when the connection is closed before the program has got it. */
typedef struct cci__rc_event {
    cci_evq_event_t event; /* first */
    uint64_t token;        /* of the connection */
} cci__rc_event;

/* A request that the program has not returned. The data follows. */
typedef struct cci__rc_request {
    cci_evq_event_t event; /* first */
    cci_list_t node;
    cci_conn_pieces_t pieces;
} cci__rc_request;

struct cci__rc_setup;

typedef struct cci__rc_conn {
    cci_conn_t conn;      /* first */
    cci_conn_life_t life; /* second */
    struct ibv_qp *qp;
    union {
        uint32_t listed[2];          /* the next and the one before, in the list that it is in */
        struct cci__rc_setup *setup; /* under way, or in line: while it is MAKING or JOINING */
    } at;
    cci__rc_item *newest, *unposted;
    union { /* by state; NULL: there is nothing */
        void *any;
        cci_conn_pending_t *asked;       /* client: what it has asked for, until it knows the outcome */
        struct cci__rc_request *request; /* COLLECTING */
        cci_evq_event_t *outcome;        /* ACCEPTED: the event for that; with CCI__CONN_ANSWERS it owns the answer */
        cci_conn_answer_t *answer;       /* REJECTED, with CCI__CONN_ANSWERS */
        struct cci__rc_atomics *atomics; /* OPEN and after that, with CCI__RC_HAS_HAD */
    } in;
    uint64_t retry_ns; /* when the pair's next step is due */
    uint64_t probe_ns; /* open: when to look whether something has come */
    uint64_t peer_key; /* of its handles */
    uint32_t next_qp;
    uint32_t epoch, joined;   /* own; the peer's that the queue pair was joined to last */
    uint32_t received, acked; /* messages got; messages that the peer has got */
    uint32_t posted, retired; /* numbers of the next work request, and of the first that is under way */
    uint16_t waiting;         /* messages not posted yet */
    int16_t failure;          /* status of what is still pending */
    uint8_t phase, pair_tries;
    uint16_t stuck;   /* looks without progress */
    uint8_t answered; /* the peer has said since then that it is ready */
    uint8_t renewals; /* of the pair since there was progress */
    uint8_t marks;    /* more flags */
    uint8_t atomics;  /* flags */
} cci__rc_conn;

#ifndef CCI_NO_ATOMICS
/* A connection's atomics, from the first one until its end. */
typedef struct cci__rc_atomics {
    cci_rma_atomics_t numbers;
    cci__rc_item *asked[CCI__RMA_ATOMICS]; /* those without an answer, by number */
    uint32_t looks;                        /* since the oldest of them is that */
} cci__rc_atomics;
#endif

typedef char cci__rc_life_is_second[offsetof(cci__rc_conn, life) == sizeof(cci_conn_t) ? 1 : -1];

/* A queue pair that is to be made, or joined to the peer's, or both: which takes the adapter milliseconds, so it is
 * done without the lock. Where a connection does not want it any more, `conn` is NULL, and a new queue pair is
 * destroyed. */
typedef struct cci__rc_setup {
    struct cci__rc_setup *next;
    cci__rc_conn *conn;
    struct ibv_qp *qp;  /* NULL: it is to be made */
    const char *failed; /* what could not be done; NULL: all was */
    int error;
    uint32_t epoch, first_packet; /* of this side */
    uint32_t peer_epoch, peer_joined, peer_qp, peer_first_packet, peer_rd_atomic, mtu;
    struct ibv_ah_attr path;
    uint8_t makes, joins, runs;
    uint8_t stops; /* joining: the connection is to drain as soon as that is over */
} cci__rc_setup;

typedef struct cci__rc_memory {
    struct cci__rc_memory *next;
    struct ibv_mr *mr; /* or NULL */
} cci__rc_memory;

typedef struct cci__rc {
    cci__endpoint_t base; /* first */
    cci__verbs_device device;
    cci__verbs_link *hw; /* what `base.handle` is */
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    uint32_t depth, rd_atomic, srq_depth, datagram;
    int resets_badly; /* the driver doesn't survive a packet that comes while a queue pair is reset: it is replaced */
    uint32_t inline_asked, inline_size; /* bytes in a work request: asked for, and offered by the adapter */
    uint32_t under_way, sends; /* work requests, and how many there may be: the completion queue has room for all */
    cci_evq_fifo_t received;
    uint32_t received_total, taken_total; /* messages that were put there, and that are there no more */
    cci_rma_table_t rma;
    cci_rma_region_t *regions;
    struct ibv_mr **mrs;
    uint16_t *by_start; /* registrations in the order of their addresses */
    uint32_t listed;
    uint32_t borrowed; /* messages that are sent from registered memory without a copy */
    uint64_t handle_key;
    uint32_t *qp_buckets;
    cci__rc_conn *last_got; /* the connection that the last message came for, while it has a queue pair */
    uint32_t qp_bucket_count, ready, ready_last, drained, request_count;
    uint32_t emptying; /* connections that are draining and not marked as empty */
    uint64_t empty_ns; /* how long to wait for that, at most */
    cci_evq_event_t *free_ops;
    cci__rc_item *free_messages, *free_rmas;
    cci_evq_event_t *free_plain; /* buffers for UU and multicast: no hardware writes there */
    cci_evq_event_t *parked;
    cci__rc_buffer *buffers; /* for the hardware: all that there are, the newest first */
    struct ibv_recv_wr *repost, **repost_tail;
    uint32_t repost_count, posted_buffers, active_buffers, total_buffers;
    uint32_t total_messages, used_messages, total_rmas, total_plain;
    uint64_t grow_ns; /* when memory may be pinned again */
    cci_list_t requests;
    uint32_t answers_kept; /* data of answers: their clients may ask for them */
    cci__rc_memory *memory;
    cci_link_rx_t rx[CCI__RC_DATAGRAMS];
    uint64_t repaired_ns;
    uint32_t stride, turn, repairs;
    uint32_t undated[CCI__RC_MOST_UNDATED], undated_count;
    struct ibv_send_wr wr[CCI__RC_CHAIN], inline_wr; /* work requests: what is the same in all of them stays */
    struct ibv_sge sge[CCI__RC_CHAIN], inline_sge;
    /* `send_buf_count` and `evq.recv_limit`, or 0 while connections are counted: a message looks closer then */
    uint32_t send_quickly, take_quickly;
    uint32_t datagram_qp;  /* number of the link's queue pair, as peers know it */
    uint16_t datagram_lid; /* and its port's LID */
    int is_broken;
    int sleeps;       /* somebody may: the program on the OS handle, or the helper thread */
    int refuses;      /* receive buffers were not taken, and the log says so */
    int send_fd;      /* mode auto: what CCI_OPT_ENDPT_SEND_FD gave; -1: nothing yet */
    int looks_beside; /* mode auto: whose events are taken first, in turns; read and written without the lock */
    int may_relax;    /* memory is registered for relaxed ordering; read and written without the lock */
    cci__rc_setup *setups, **setups_tail; /* in line, the oldest first */
    uint32_t setups_waiting, setups_running;
    uint32_t pairs; /* queue pairs of connections */
    uint32_t worker_count;
#ifndef CCI_NO_THREADS
    sem_t work; /* for the workers */
    pthread_t workers[CCI__VERBS_SETUPS_MOST];
#endif
} cci__rc;

static inline void cci__rc_lock(cci__rc *ep) {
    cci__lock_take(&ep->base.lock);
}

static inline void cci__rc_unlock(cci__rc *ep) {
    cci__lock_give(&ep->base.lock);
}

static cci__rc *cci__rc_of(const cci__rc_conn *conn) {
    return (cci__rc *)(uintptr_t)conn->conn.pub.endpoint;
}

/* Mode auto: there is an endpoint beside this one, for connections over datagrams. */
static int cci__rc_is_auto(const cci__rc *ep) {
    return ep->base.datagrams != &ep->base;
}

/* ... which asks for a connection. Its lock is always taken behind this one's. */
static int cci__rc_connect_beside(cci__endpoint_t *beside, const cci__connect_t *call) {
    int status;
    cci__endpoint_lock(beside);
    beside->now_ns = beside->engine->clock(beside);
    status = beside->is_dead ? (int)CCI_ERR_DEVICE_DEAD : beside->engine->connect(beside, call);
    beside->engine->arm(beside);
    cci__endpoint_unlock(beside);
    return status;
}

/* Bytes that the endpoint pins, with its connections' queue pairs and what was added to its buffers. */
static uint64_t cci__rc_pinned(const cci__rc *ep) {
    uint64_t buffers = (uint64_t)ep->total_messages + ep->total_buffers;
    uint64_t first = (uint64_t)(ep->device.send_buf_count ? ep->device.send_buf_count : CCI__VERBS_RC_FIRST_SENDS) +
                     (ep->device.recv_buf_count ? ep->device.recv_buf_count : CCI__VERBS_RC_FIRST_RECVS);
    return ep->hw->pinned + (buffers > first ? (buffers - first) * ep->stride : 0) +
           ep->base.conns.used * cci__verbs_queue_bytes(ep->depth, 256);
}

/* Memory that lives as long as the endpoint, aligned to 64 bytes. If it is for the hardware, it is pinned, and has
 * pages of its own: where the kernel needs that, fork() leaves these out. */
static void *cci__rc_memory_of(cci__rc *ep, size_t size, struct ibv_mr **mr) {
    size_t unit = mr ? (size_t)sysconf(_SC_PAGESIZE) : 64;
    uint8_t *bytes, *start;
    cci__rc_memory *block;
    size = (size + unit - 1) & ~(unit - 1);
    bytes = (uint8_t *)cci_alloc(size + sizeof *block + unit);
    block = (cci__rc_memory *)(void *)bytes;
    if (!bytes) return NULL;
    start = bytes + sizeof *block;
    start += (unit - ((uintptr_t)start & (unit - 1))) & (unit - 1);
    block->mr = NULL;
    if (mr) {
        block->mr = cci__ibv.reg_mr(ep->pd, start, size, IBV_ACCESS_LOCAL_WRITE);
        if (!block->mr) {
            cci__verbs_log_memory(CCI_LOG_ERROR, ep->hw->port.device, "memory can't be pinned", errno,
                                  cci__rc_pinned(ep) + size);
            cci_release(bytes);
            return NULL;
        }
        *mr = block->mr;
    }
    block->next = ep->memory;
    ep->memory = block;
    return start;
}

/* ---- lists of connections that have something to do: `ready` to post, `drained` to be reset ---- */

static cci__rc_conn *cci__rc_at(const cci__rc *ep, uint32_t index) {
    return (cci__rc_conn *)(void *)cci_conn_at(&ep->base.conns, index);
}

static void cci__rc_unlist(cci__rc *ep, cci__rc_conn *conn) {
    int is_drained = conn->phase == CCI__RC_DRAINING;
    uint32_t next = conn->at.listed[0], last = conn->at.listed[1];
    if (!(conn->conn.flags & CCI__RC_LISTED)) return;
    if (last != CCI__CONN_NONE)
        cci__rc_at(ep, last)->at.listed[0] = next;
    else if (is_drained)
        ep->drained = next;
    else
        ep->ready = next;
    if (next != CCI__CONN_NONE)
        cci__rc_at(ep, next)->at.listed[1] = last;
    else if (!is_drained)
        ep->ready_last = last;
    conn->conn.flags &= (uint16_t)~CCI__RC_LISTED;
}

static void cci__rc_list_ready(cci__rc *ep, cci__rc_conn *conn) {
    if (conn->conn.flags & CCI__RC_LISTED) return;
    conn->conn.flags |= CCI__RC_LISTED;
    conn->at.listed[0] = conn->at.listed[1] = CCI__CONN_NONE;
    if (ep->ready == CCI__CONN_NONE) {
        ep->ready = conn->conn.index;
    } else {
        conn->at.listed[1] = ep->ready_last;
        cci__rc_at(ep, ep->ready_last)->at.listed[0] = conn->conn.index;
    }
    ep->ready_last = conn->conn.index;
}

static void cci__rc_list_drained(cci__rc *ep, cci__rc_conn *conn) {
    if (conn->conn.flags & CCI__RC_LISTED) return;
    conn->conn.flags |= CCI__RC_LISTED;
    conn->at.listed[0] = ep->drained;
    conn->at.listed[1] = CCI__CONN_NONE;
    if (ep->drained != CCI__CONN_NONE) cci__rc_at(ep, ep->drained)->at.listed[1] = conn->conn.index;
    ep->drained = conn->conn.index;
}

static cci__rc_setup *cci__rc_setup_of(const cci__rc_conn *conn) {
    return conn->phase == CCI__RC_MAKING || conn->phase == CCI__RC_JOINING ? conn->at.setup : NULL;
}

/* Where a queue pair's connection is in the hash by number. */
static uint32_t cci__rc_qp_bucket(const cci__rc *ep, uint32_t qp_num) {
    return (qp_num * 2654435761u >> 7) & (ep->qp_bucket_count - 1);
}

/* ---- time ---- */

static cci__rc_item *cci__rc_oldest(const cci__rc_conn *conn) {
    return conn->newest ? conn->newest->next : NULL;
}

/* Sees to it that the connection's timer comes early enough. One that comes too early looks again. */
static void cci__rc_schedule(cci__rc *ep, cci__rc_conn *conn) {
    const cci__rc_item *oldest = cci__rc_oldest(conn);
    uint64_t at = cci__min64(conn->conn.deadline_ns, conn->retry_ns);
    if (CCI__LINGERS(&conn->conn)) at = cci__min64(at, cci__endpoint_lingers_until(&ep->base, &conn->conn));
    if (conn->conn.state == CCI_CONN_OPEN) {
        int is_due = oldest && !(conn->marks & CCI__RC_UNDATED);
        at = cci__min64(at, cci__min64(conn->probe_ns, is_due ? oldest->deadline_ns : CCI__NEVER));
    }
    if (at < conn->conn.timer.at_ns) cci__timer_arm(&ep->base.wheel, &conn->conn.timer, at);
}

/* How often a pair with work under way is looked at. */
static uint64_t cci__rc_look_ns(const cci__rc_conn *conn) {
    uint64_t part_ns = (uint64_t)conn->conn.send_timeout_us * 1000 / 32;
    return part_ns ? cci__min64(part_ns, CCI__RC_LOOK_NS) : CCI__RC_LOOK_NS;
}

/* ---- events ---- */

static int cci__rc_add_events(cci__endpoint_t *base) {
    cci__rc_event *more = (cci__rc_event *)cci__rc_memory_of((cci__rc *)base, CCI__RC_CONTROL * sizeof *more, NULL);
    uint32_t i;
    for (i = 0; more && i < CCI__RC_CONTROL; i++)
        cci_evq_add_events(&base->evq, &base->api, CCI_EVQ_CONTROL, &more[i].event, 1);
    return more != NULL;
}

static void cci__rc_post_about(cci_evq_fifo_t *fifo, const cci_conn_t *conn, cci_evq_event_t *event) {
    ((cci__rc_event *)(void *)event)->token = conn->token;
    cci_evq_post(fifo, event);
}

/* The peer is gone, or nothing was heard of it. */
static void cci__rc_post_keepalive(cci__endpoint_t *base, cci_conn_t *conn) {
    cci__rc *ep = (cci__rc *)base;
    cci_evq_event_t *event = cci__endpoint_event(base);
    conn->keepalive_us = 0;
    conn->flags &= (uint16_t)~CCI__CONN_PINGED;
    if (!event) return;
    cci__event_set_keepalive(event, conn);
    if (conn->state == CCI_CONN_BROKEN) ep->received_total++;
    cci__rc_post_about(conn->state == CCI_CONN_BROKEN ? &ep->received : &base->evq.urgent, conn, event);
}

/* Posts the event about the end of a connection, behind its messages; it goes behind its completions then. */
static void cci__rc_post_end(cci__rc *ep, cci__rc_conn *conn) {
    int is_untold = (conn->marks & CCI__RC_UNTOLD) != 0, status = conn->failure;
    cci_evq_event_t *event = is_untold ? cci__endpoint_event(&ep->base) : NULL;
    if (!event) {
        conn->conn.deadline_ns = is_untold ? ep->base.now_ns + 10 * CCI__MS : CCI__NEVER; /* there is no memory now */
        cci__rc_schedule(ep, conn);
        return;
    }
    if (conn->marks & CCI__RC_ORDERLY)
        status = CCI_SUCCESS;
    else if (status == CCI_ERR_RNR)
        status = CCI_ETIMEDOUT;
    else if (status == CCI_ERROR)
        status = CCI_ERR_DISCONNECTED;
    conn->marks &= (uint8_t)~CCI__RC_UNTOLD;
    conn->conn.deadline_ns = CCI__NEVER;
    cci__event_set_disconnect(event, &conn->conn, status);
    ep->received_total++;
    cci__rc_post_about(&ep->received, &conn->conn, event);
}

/* A connection that was open is no more; the program learns it when nothing of it is under way. */
static void cci__rc_begin_end(cci__rc *ep, cci__rc_conn *conn, unsigned how) {
    cci__notices_forget(&ep->base.notices, &conn->conn, 1);
    if (conn->conn.state == CCI_CONN_OPEN)
        conn->marks |= (uint8_t)(how | (ep->base.event_mask & (1u << CCI_EVENT_DISCONNECT) ? CCI__RC_UNTOLD : 0));
    conn->conn.state = CCI_CONN_BROKEN;
    conn->conn.step.confirming = 0;
    if (!CCI__LINGERS(&conn->conn)) return;
    conn->marks &= (uint8_t)~CCI__RC_UNTOLD; /* the program has closed it */
    cci__rc_schedule(ep, conn);
}

static void cci__rc_hear_of(const cci__rc *ep, cci__rc_conn *conn) {
    conn->life.heard = (uint32_t)(ep->base.now_ns >> 20);
}

static void cci__rc_free_op(cci__rc *ep, cci__rc_op *op) {
    op->event.next = ep->free_ops;
    ep->free_ops = &op->event;
}

static void cci__rc_complete_op(cci__rc *ep, cci__rc_op *op, int status) {
    op->status = status;
    op->done = 1;
    if (op->blocking) return;
    if (status == CCI_ERR_RNR && op->event.base.pub.send.connection->attribute == CCI_CONN_ATTR_RO) {
        cci__rc_conn *conn = (cci__rc_conn *)(void *)(uintptr_t)op->event.base.pub.send.connection;
        op->is_first = (conn->marks & (CCI__RC_CANCELLED | CCI__RC_MARKED)) == CCI__RC_CANCELLED;
        if (op->is_first) conn->marks |= CCI__RC_MARKED; /* else the program has heard of it, or will before */
    }
    op->event.base.pub.send.status = (cci_status_t)status;
    op->event.state = ep->received_total; /* it comes behind these */
    cci_evq_post(&ep->base.evq.done, &op->event);
}

/* ==================================================================================================================
 * >>verbs-rc-work
 *
 * Work requests: posting what waits, and what their completions say.
 * ================================================================================================================== */

/* A message has its own bytes again. */
static void cci__rc_end_borrowing(cci__rc *ep, cci__rc_item *item) {
    item->of.work.from = item->data;
    item->of.work.lkey = item->own_lkey;
    item->is_borrowed = 0;
    ep->borrowed--;
}

static void cci__rc_free_item(cci__rc *ep, cci__rc_item *item) {
    if (item->kind == CCI__RC_MESSAGE_ITEM) {
        if (CCI__UNLIKELY(item->is_borrowed)) cci__rc_end_borrowing(ep, item);
        item->next = ep->free_messages;
        ep->free_messages = item;
        ep->used_messages--;
    } else {
        item->next = ep->free_rmas;
        ep->free_rmas = item;
    }
}

/* Operations end in the order of their calls: where one has less time than those before it, they have no more. */
static void cci__rc_hurry(cci__rc *ep, cci__rc_conn *conn, uint64_t deadline_ns) {
    cci__rc_item *item = cci__rc_oldest(conn), *newest = conn->newest;
    if (!item || newest->deadline_ns <= deadline_ns) return;
    for (; item; item = item == newest ? NULL : item->next)
        item->deadline_ns = cci__min64(item->deadline_ns, deadline_ns);
    cci__rc_schedule(ep, conn);
}

/* Makes an item the newest of its connection. */
static inline void cci__rc_enqueue(cci__rc *ep, cci__rc_conn *conn, cci__rc_item *item) {
    cci__rc_hurry(ep, conn, item->deadline_ns);
    if (conn->newest) {
        item->next = conn->newest->next;
        conn->newest->next = item;
    } else {
        item->next = item;
    }
    conn->newest = item;
}

/* ... and one that is to be posted. */
static inline void cci__rc_append(cci__rc *ep, cci__rc_conn *conn, cci__rc_item *item) {
    cci__rc_enqueue(ep, conn, item);
    if (!conn->unposted) conn->unposted = item;
}

/* Messages were withdrawn. When the last of them has ended, and no event tells of it, since they were sent silently or
 * by calls that waited, or have come after all, then what is sent from now on starts afresh. */
static CCI__RARE void cci__rc_end_withdrawal(cci__rc_conn *conn) {
    const cci__rc_item *item = cci__rc_oldest(conn), *newest = conn->newest;
    for (; item; item = item == newest ? NULL : item->next)
        if (item->is_done ? item->status == CCI_ERR_RNR : item->is_withdrawn) return;
    conn->marks &= (uint8_t)~CCI__RC_CANCELLED;
}

/* Operations that are over leave the ring in the order of their calls. */
static void cci__rc_reap(cci__rc *ep, cci__rc_conn *conn) {
    cci__rc_item *oldest;
    while ((oldest = cci__rc_oldest(conn)) != NULL && oldest->is_done) {
        if (conn->unposted == oldest) conn->unposted = oldest == conn->newest ? NULL : oldest->next;
        if (oldest == conn->newest)
            conn->newest = NULL;
        else
            conn->newest->next = oldest->next;
        if (oldest->op) cci__rc_complete_op(ep, oldest->op, oldest->status);
        cci__rc_free_item(ep, oldest);
    }
    if (CCI__UNLIKELY((conn->marks & (CCI__RC_CANCELLED | CCI__RC_MARKED)) == CCI__RC_CANCELLED))
        cci__rc_end_withdrawal(conn);
}

/* An item is over. No completion message comes of an RMA that failed. */
static void cci__rc_end_item(cci__rc_conn *conn, cci__rc_item *item, int status) {
    item->is_done = 1;
    item->status = status;
    if (item->kind == CCI__RC_MESSAGE_ITEM && status == CCI_SUCCESS) conn->acked++;
    if (item->has_message && status != CCI_SUCCESS) {
        item->next->is_done = 1;
        item->next->status = status;
    }
}

/* No atomic is pending, and the peer's are taken no more. */
static void cci__rc_drop_atomics(cci__rc_conn *conn) {
    if (!(conn->atomics & CCI__RC_HAS_HAD)) return;
    cci_release(conn->in.atomics);
    conn->in.any = NULL;
    conn->atomics &= CCI__RC_PEER_DOES;
}

/* All that is pending ends with a status. Nothing of it is under way. */
static void cci__rc_end_all(cci__rc *ep, cci__rc_conn *conn, int status) {
    cci__rc_item *item = cci__rc_oldest(conn), *newest = conn->newest;
    for (; item; item = item == newest ? NULL : item->next)
        if (!item->is_done) cci__rc_end_item(conn, item, status);
    cci__rc_reap(ep, conn);
}

/* The work request for the next part of an item. A message brings along how many of the peer's have been received: the
 * hardware may tell the peer later than the message does, which may be the answer to one. */
static void cci__rc_fill_wr(const cci__rc *ep, cci__rc_item *item, uint32_t received, struct ibv_send_wr *wr) {
    uint64_t length = item->of.work.length - item->of.work.at;
    wr->num_sge = item->of.work.length > 0;
    wr->send_flags = item->is_fenced && item->of.work.at == 0 ? IBV_SEND_FENCE : 0;
    if (item->kind == CCI__RC_MESSAGE_ITEM) {
        wr->opcode = item->is_wake ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM; /* so the peer tells them apart */
        wr->imm_data = htonl(received);
        if (length <= ep->inline_size) wr->send_flags |= IBV_SEND_INLINE;
    } else {
        length = cci__min64(length, item->of.work.chunk);
        wr->opcode = item->kind == CCI__RC_READ_ITEM ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
        if (length == item->of.work.chunk)
            wr->send_flags |= IBV_SEND_SIGNALED; /* large transfers show that they get on */
        wr->wr.rdma.remote_addr = item->of.work.remote + item->of.work.at;
        wr->wr.rdma.rkey = item->of.work.rkey;
    }
    wr->sg_list->addr = (uintptr_t)item->of.work.from + item->of.work.at;
    wr->sg_list->length = (uint32_t)length;
    wr->sg_list->lkey = item->of.work.lkey;
    item->of.work.at += length;
}

#ifndef CCI_NO_ATOMICS
/* ---- atomics: the peer's processor does them, as datagrams ask it to. An item stays in the ring until its answer has
 * come; what is behind it goes on, and is complete after it. ---- */

static int cci__rc_send_frame(cci__rc *ep, cci__rc_conn *conn, const uint8_t *frame, uint32_t length);

/* A connection's atomics, NULL if it has had none. */
static cci__rc_atomics *cci__rc_atomics_of(const cci__rc_conn *conn) {
    return conn->atomics & CCI__RC_HAS_HAD ? conn->in.atomics : NULL;
}

/* The same, from now on; NULL: there is no memory, or the connection is not open yet. */
static cci__rc_atomics *cci__rc_begin_atomics(cci__rc_conn *conn) {
    if (!conn->in.any) {
        conn->in.atomics = (cci__rc_atomics *)cci_alloc(sizeof(cci__rc_atomics));
        if (!conn->in.atomics) return NULL;
        memset(conn->in.atomics, 0, sizeof(cci__rc_atomics));
        conn->atomics |= CCI__RC_HAS_HAD;
    }
    return cci__rc_atomics_of(conn);
}

/* Asks for an atomic, again under the same number. 0: it has to wait, for the answer to another or for the link. */
static int cci__rc_ask_atomic(cci__rc *ep, cci__rc_conn *conn, cci__rc_item *item) {
    cci__rc_atomics *atomics = cci__rc_atomics_of(conn);
    cci_rma_read_t request;
    uint8_t frame[48];
    if (atomics->asked[item->of.atomic.number % CCI__RMA_ATOMICS] != item) {
        if (atomics->numbers.next - atomics->numbers.open >= CCI__RMA_ATOMICS) return 0;
        item->of.atomic.number = atomics->numbers.next++;
        atomics->asked[item->of.atomic.number % CCI__RMA_ATOMICS] = item;
    }
    memset(&request, 0, sizeof request);
    request.operation = (uint8_t)item->of.atomic.operation;
    request.width = (uint8_t)item->of.atomic.width;
    request.key = item->of.atomic.key;
    request.region = item->of.atomic.region;
    request.number = item->of.atomic.number;
    request.offset = item->of.atomic.offset;
    request.local_key = item->of.atomic.operand;
    request.local_offset = item->of.atomic.compare;
    cci__rma_write_atomic(&request, item->of.atomic.number, frame);
    if (cci__rc_send_frame(ep, conn, frame, sizeof frame)) return 1;
    cci__rc_list_ready(ep, conn); /* in the next round */
    return 0;
}

/* Is an atomic before an item that has no answer? */
static int cci__rc_has_atomic_before(const cci__rc_conn *conn, const cci__rc_item *item) {
    const cci__rc_item *at = conn->atomics & CCI__RC_HAS_HAD ? cci__rc_oldest(conn) : item;
    while (at != item && (at->kind != CCI__RC_ATOMIC_ITEM || at->is_done)) at = at->next;
    return at != item;
}
#endif

/* Has what is fenced to wait until all before it is complete? Hardware keeps writes in order on the way, but not in a
 * memory that takes them in any order, nor with what the peer's processor does. */
static int cci__rc_waits(const cci__rc *ep, const cci__rc_conn *conn, const cci__rc_item *item, uint32_t count) {
    if (!item->is_fenced || item->is_posted || item->is_done) return 0;
#ifndef CCI_NO_ATOMICS
    if (cci__rc_has_atomic_before(conn, item)) return 1;
    if (item->kind == CCI__RC_ATOMIC_ITEM) return conn->posted + count != conn->retired;
#endif
    return item->kind != CCI__RC_MESSAGE_ITEM && ep->device.relaxed_ordering && conn->posted + count != conn->retired;
}

/* Is the local memory of an RMA still registered? */
static int cci__rc_has_memory(cci__rc *ep, const cci__rc_item *item) {
    return item->kind == CCI__RC_MESSAGE_ITEM ||
           cci_rma_find(&ep->rma, item->of.work.tag, item->of.work.region) != NULL;
}

static uint64_t cci__rc_wr_id(const cci__rc_conn *conn, uint32_t number) {
    return CCI__RC_SEND_ID | (uint64_t)conn->conn.index << 32 | number;
}

/* Makes up to `most` work requests of what waits; returns how many. */
static uint32_t cci__rc_gather(cci__rc *ep, cci__rc_conn *conn, uint32_t most) {
    uint32_t count = 0;
    while (conn->unposted && count < most) {
        cci__rc_item *item = conn->unposted;
        if (CCI__UNLIKELY(cci__rc_waits(ep, conn, item, count))) break;
#ifndef CCI_NO_ATOMICS
        if (CCI__UNLIKELY(item->kind == CCI__RC_ATOMIC_ITEM && !item->is_done)) {
            if (!cci__rc_ask_atomic(ep, conn, item)) break;
            conn->unposted = item == conn->newest ? NULL : item->next;
            continue;
        }
#endif
        if (!item->is_done && item->of.work.at == item->of.work.base && !cci__rc_has_memory(ep, item))
            cci__rc_end_item(conn, item, CCI_ERR_RMA_HANDLE);
        if (!item->is_done) {
            uint32_t number = conn->posted + count;
            if (!item->is_posted) {
                item->is_posted = 1;
                item->of.work.first = number;
                item->of.work.chunk = cci__max32(CCI__RC_CHUNK >> 2 * conn->renewals, CCI__RC_CHUNK_LEAST);
            }
            cci__rc_fill_wr(ep, item, conn->received, &ep->wr[count]);
            ep->wr[count].wr_id = cci__rc_wr_id(conn, number);
            ep->wr[count].next = NULL;
            if (count > 0) ep->wr[count - 1].next = &ep->wr[count];
            count++;
            if (item->of.work.at < item->of.work.length) continue;
            item->of.work.last = number;
        }
        conn->unposted = item == conn->newest ? NULL : item->next;
    }
    return count;
}

static void cci__rc_break(cci__rc *ep, cci__rc_conn *conn, int status);

/* Is as much under way as there may be? */
static int cci__rc_is_full(const cci__rc *ep) {
    return ep->under_way >= ep->sends;
}

/* The hardware has refused the last `count` work requests of a connection. What it took before is flushed. */
static void cci__rc_refused(cci__rc *ep, cci__rc_conn *conn, uint32_t count, int error) {
    conn->posted -= count;
    ep->under_way -= count;
    cci__verbs_log(CCI_LOG_ERROR, ep->hw->port.device, "the hardware takes no work", error > 0 ? error : errno);
    cci__rc_break(ep, conn, CCI_ERROR);
}

/* Posts what waits on a pair, as much as has room. */
static void cci__rc_post(cci__rc *ep, cci__rc_conn *conn) {
    struct ibv_send_wr *bad = NULL;
    int error;
    conn->waiting = 0;
    while (conn->phase == CCI__RC_PAIRED && conn->unposted) {
        uint32_t room = cci__min32(ep->depth - (conn->posted - conn->retired), ep->sends - ep->under_way), count;
        if (room == 0) { /* a completion goes on with it: its own, or any of the endpoint's */
            if (cci__rc_is_full(ep)) cci__rc_list_ready(ep, conn);
            break;
        }
        count = cci__rc_gather(ep, conn, cci__min32(room, CCI__RC_CHAIN));
        if (count == 0) break;
        ep->wr[count - 1].send_flags |= IBV_SEND_SIGNALED;
        conn->posted += count;
        ep->under_way += count;
        error = ibv_post_send(conn->qp, ep->wr, &bad);
        if (error) {
            cci__rc_refused(ep, conn, bad ? count - (uint32_t)(bad - ep->wr) : count, error);
            return;
        }
    }
    cci__rc_reap(ep, conn); /* those whose memory has gone */
}

/* Sees to it that a pair with work under way is looked at. */
static void cci__rc_watch(cci__rc *ep, cci__rc_conn *conn) {
    if (conn->retry_ns != CCI__NEVER) return;
    conn->retry_ns = ep->base.now_ns + cci__rc_look_ns(conn);
    conn->marks &= (uint8_t)~CCI__RC_GETS_ON;
    conn->stuck = 0;
    cci__rc_schedule(ep, conn);
}

/* The clock was read: what was sent since it was read before has its time from now on. */
static void cci__rc_date(cci__rc *ep) {
    uint32_t i;
    for (i = 0; i < ep->undated_count; i++) {
        cci__rc_conn *conn = cci__rc_at(ep, ep->undated[i]);
        cci__rc_item *item = cci__rc_oldest(conn), *newest = conn->newest;
        if (!(conn->marks & CCI__RC_UNDATED)) continue; /* it is another one now */
        conn->marks &= (uint8_t)~CCI__RC_UNDATED;
        if (!item) continue;
        for (; item; item = item == newest ? NULL : item->next)
            if (item->deadline_ns != CCI__NEVER) item->deadline_ns += ep->base.now_ns;
        cci__rc_schedule(ep, conn);
        if (conn->phase == CCI__RC_PAIRED) cci__rc_watch(ep, conn);
    }
    ep->undated_count = 0;
}

/* When an operation that is issued now has to be over. Reading the clock for it takes a good part of what a small
 * message costs, and most are complete before the clock is read for something else: so their time counts from then on,
 * unless the program may sleep first. */
static inline uint64_t cci__rc_deadline_of(cci__rc *ep, cci__rc_conn *conn) {
    uint64_t time_ns = conn->conn.send_timeout_us ? (uint64_t)conn->conn.send_timeout_us * 1000 : CCI__NEVER;
    if (conn->marks & CCI__RC_UNDATED) return time_ns;
    if (!conn->newest) { /* else the time of the last round will do */
        if (!ep->sleeps) {
            if (ep->undated_count == CCI__RC_MOST_UNDATED) {
                ep->base.now_ns = ep->base.link->now(ep->base.handle);
                cci__rc_date(ep);
            }
            conn->marks |= CCI__RC_UNDATED;
            ep->undated[ep->undated_count++] = conn->conn.index;
            return time_ns;
        }
        ep->base.now_ns = ep->base.link->now(ep->base.handle);
    }
    return time_ns == CCI__NEVER ? CCI__NEVER : ep->base.now_ns + time_ns;
}

/* After something was appended: what may go at once goes at once, the rest with company or in the next round. */
static void cci__rc_issued(cci__rc *ep, cci__rc_conn *conn, int now) {
    if (conn->phase != CCI__RC_PAIRED) {
        if (conn->phase == CCI__RC_FRESH || conn->phase == CCI__RC_JOINED) {
            conn->pair_tries = (uint8_t)cci__min32(conn->pair_tries, CCI__RC_PAIR_TRIES - 1);
            conn->retry_ns = cci__min64(conn->retry_ns, ep->base.now_ns + cci_conn_retry_ns(conn->pair_tries));
            cci__rc_schedule(ep, conn);
        }
        return;
    }
    if (!(conn->marks & CCI__RC_UNDATED)) cci__rc_watch(ep, conn);
    conn->waiting++;
    if (now || conn->posted - conn->retired < CCI__RC_AT_ONCE || conn->waiting >= CCI__RC_WAITING)
        cci__rc_post(ep, conn);
    else
        cci__rc_list_ready(ep, conn);
}

/* The same behind an atomic, which has no answer yet. */
static CCI__RARE void cci__rc_retire_behind(cci__rc_conn *conn, cci__rc_item *item, uint32_t number) {
    const cci__rc_item *newest = conn->newest;
    for (; item; item = item == newest ? NULL : item->next)
        if (item->is_posted && !item->is_done && item->of.work.at == item->of.work.length &&
            (int32_t)(item->of.work.last - number) < 0)
            cci__rc_end_item(conn, item, CCI_SUCCESS);
}

/* All work requests before `number` are done. */
static void cci__rc_retire(cci__rc *ep, cci__rc_conn *conn, uint32_t number) {
    cci__rc_item *item = cci__rc_oldest(conn), *newest = conn->newest;
    ep->under_way -= number - conn->retired;
    if (number != conn->retired) conn->marks |= CCI__RC_GETS_ON;
    conn->retired = number;
    while (item && (item->is_done || (item->is_posted && item->of.work.at == item->of.work.length &&
                                      (int32_t)(item->of.work.last - number) < 0))) {
        if (!item->is_done) cci__rc_end_item(conn, item, CCI_SUCCESS);
        item = item == newest ? NULL : item->next;
    }
    if (item && item->kind == CCI__RC_ATOMIC_ITEM) cci__rc_retire_behind(conn, item, number);
    cci__rc_reap(ep, conn);
}

/* ---- the end of a queue pair ---- */

static int cci__rc_modify(cci__rc *ep, cci__rc_conn *conn, enum ibv_qp_state state) {
    struct ibv_qp_attr attr;
    (void)ep;
    memset(&attr, 0, sizeof attr);
    attr.qp_state = state;
    return cci__ibv.modify_qp(conn->qp, &attr, IBV_QP_STATE);
}

/* Its queue pair has no buffer of the shared receive queue. */
static void cci__rc_is_empty(cci__rc *ep, cci__rc_conn *conn) {
    if (!(conn->marks & CCI__RC_EMPTY)) {
        conn->marks |= CCI__RC_EMPTY;
        ep->emptying -= conn->phase == CCI__RC_DRAINING;
    }
}

static void cci__rc_drop_setup(cci__rc *ep, cci__rc_conn *conn);

/* Stops the queue pair. What is under way is flushed, and the device tells that the queue pair has no receive buffer
 * any more: one that is reset in the middle of a message before that would keep it. Then cci__rc_settle() goes on. */
static void cci__rc_drain(cci__rc *ep, cci__rc_conn *conn) {
    cci__rc_setup *s = cci__rc_setup_of(conn);
    if (s && s->runs && !s->makes) { /* when that is over: a worker uses the pair */
        s->stops = 1;
        return;
    }
    if (s) cci__rc_drop_setup(ep, conn);
    if (conn->phase != CCI__RC_DRAINING) {
        if (!conn->qp || (conn->phase != CCI__RC_JOINED && conn->phase != CCI__RC_PAIRED)) cci__rc_is_empty(ep, conn);
        cci__rc_unlist(ep, conn);
        if (conn->qp) (void)cci__rc_modify(ep, conn, IBV_QPS_ERR);
        conn->phase = CCI__RC_DRAINING;
        conn->retry_ns = ep->base.now_ns + CCI__RC_DRAIN_NS;
        ep->emptying += !(conn->marks & CCI__RC_EMPTY);
        cci__rc_schedule(ep, conn);
    }
    if (conn->posted != conn->retired) return;
    if (conn->marks & CCI__RC_EMPTY) {
        cci__rc_list_drained(ep, conn);
    } else {
        conn->retry_ns = cci__min64(conn->retry_ns, ep->base.now_ns + ep->empty_ns);
        cci__rc_schedule(ep, conn);
    }
}

/* A queue pair that drains is waited for no longer: nothing of it is under way. */
static void cci__rc_stop_waiting(cci__rc *ep, cci__rc_conn *conn) {
    ep->under_way -= conn->posted - conn->retired;
    conn->retired = conn->posted;
    cci__rc_is_empty(ep, conn);
    cci__rc_drain(ep, conn);
}

/* The device has told that a queue pair has no receive buffer any more: it has failed. */
static void cci__rc_hear_empty(cci__rc *ep, const struct ibv_qp *qp) {
    uint32_t i;
    ep->empty_ns = CCI__RC_DRAIN_NS; /* one that tells is worth waiting for */
    for (i = ep->qp_buckets[cci__rc_qp_bucket(ep, qp->qp_num)]; i != CCI__CONN_NONE; i = cci__rc_at(ep, i)->next_qp) {
        cci__rc_conn *conn = cci__rc_at(ep, i);
        if (conn->qp == qp && conn->phase > CCI__RC_FRESH) {
            cci__rc_is_empty(ep, conn);
            cci__rc_drain(ep, conn); /* if it was not known yet that it has failed */
            return;
        }
    }
}

/* Whatever is pending is to end with a status, and the queue pair with it. */
static void cci__rc_fail(cci__rc *ep, cci__rc_conn *conn, int status) {
    if (conn->failure == CCI_SUCCESS) conn->failure = (int16_t)status;
    cci__rc_drain(ep, conn);
}

/* The peer has left or is lost. The connection stays until the program disconnects. */
static void cci__rc_break(cci__rc *ep, cci__rc_conn *conn, int status) {
    cci__rc_begin_end(ep, conn, 0);
    conn->conn.deadline_ns = CCI__NEVER;
    cci__rc_fail(ep, conn, status);
    if (conn->conn.keepalive_us && !(conn->marks & CCI__RC_UNTOLD)) cci__rc_post_keepalive(&ep->base, &conn->conn);
}

/* Nothing is wrong with what has failed, as far as this side knows: a new pair may do better, unless some have not. The
 * driver that emulates hardware was seen to refuse messages of a pair whose receiver had few buffers. */
static int cci__rc_may_renew(cci__rc_conn *conn) {
    if (conn->marks & CCI__RC_GETS_ON) conn->renewals = 0;
    if (conn->renewals >= CCI__RC_RENEWALS) return 0;
    conn->renewals++;
    return 1;
}

/* The oldest item that work requests are for and that is not over. */
static cci__rc_item *cci__rc_oldest_work(const cci__rc_conn *conn) {
    cci__rc_item *item = cci__rc_oldest(conn);
    while (item && (item->is_done || item->kind == CCI__RC_ATOMIC_ITEM))
        item = item == conn->newest ? NULL : item->next;
    return item;
}

/* The item of the first work request that has failed, which begins again there. NULL: another one had failed before, or
 * it was a sign of life. */
static cci__rc_item *cci__rc_failed_item(cci__rc *ep, cci__rc_conn *conn, uint32_t number) {
    cci__rc_item *item;
    if (conn->conn.flags & CCI__RC_FLUSHING) return NULL;
    conn->conn.flags |= CCI__RC_FLUSHING;
    cci__rc_retire(ep, conn, number); /* those before it have succeeded */
    item = cci__rc_oldest_work(conn);
    if (!item || !item->is_posted || (int32_t)(item->of.work.first - number) > 0) return NULL;
    item->of.work.base += (uint64_t)(number - item->of.work.first) * item->of.work.chunk;
    return item;
}

/* A work request has failed. One that named memory which isn't there fails alone: all others go on with a new pair. */
static void cci__rc_work_failed(cci__rc *ep, cci__rc_conn *conn, uint32_t number, enum ibv_wc_status why) {
    cci__rc_item *item = cci__rc_failed_item(ep, conn, number);
    switch (why) {
    case IBV_WC_WR_FLUSH_ERR: break;
    case IBV_WC_RETRY_EXC_ERR:
        if (!(conn->conn.flags & CCI__RC_AWAITING))
            (void)cci__notices_suspend(&ep->base.notices, &ep->base.evq, &conn->conn, 1);
        break;
    case IBV_WC_RNR_RETRY_EXC_ERR: conn->conn.flags |= CCI__RC_UNREADY; break;
    case IBV_WC_LOC_LEN_ERR: /* which of these it is depends on the hardware and on the moment */
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_INV_RD_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
        if (item && item->kind != CCI__RC_MESSAGE_ITEM) {
            cci__rc_end_item(conn, item, CCI_ERR_RMA_HANDLE);
            break;
        } /* fall through */
    default:
        /* memory that was deregistered while the queue pair was being stopped for that */
        if (why == IBV_WC_LOC_PROT_ERR && conn->phase == CCI__RC_DRAINING) break;
        cci__verbs_log(CCI_LOG_WARN, ep->hw->port.device, cci__ibv.wc_status_str(why), 0);
        if (conn->conn.state == CCI_CONN_OPEN && !cci__rc_may_renew(conn)) cci__rc_break(ep, conn, CCI_ERROR);
        break;
    }
    ep->under_way -= number + 1 - conn->retired;
    conn->retired = number + 1;
    cci__rc_drain(ep, conn);
}

static void cci__rc_sent(cci__rc *ep, const struct ibv_wc *wc) {
    cci__rc_conn *conn = cci__rc_at(ep, (uint32_t)((wc->wr_id & ~CCI__RC_SEND_ID) >> 32));
    uint32_t number = (uint32_t)wc->wr_id;
    if (!conn || conn->conn.state == CCI_CONN_FREE || number - conn->retired >= conn->posted - conn->retired)
        return; /* of a queue pair that did not drain in time */
    if (wc->status != IBV_WC_SUCCESS) {
        cci__rc_work_failed(ep, conn, number, wc->status);
        return;
    }
    conn->conn.flags &= (uint16_t) ~(CCI__CONN_PINGED | CCI__RC_UNREADY);
    cci__rc_hear_of(ep, conn);
    cci__rc_retire(ep, conn, number + 1);
    if (conn->phase == CCI__RC_DRAINING) {
        cci__rc_drain(ep, conn);
        return;
    }
    if (conn->unposted) cci__rc_list_ready(ep, conn);
    if (!conn->newest) conn->retry_ns = CCI__NEVER;
    if (CCI__LINGERS(&conn->conn)) cci__rc_schedule(ep, conn);
}

/* ---- receive buffers ---- */

/* Gives the hardware the buffers that wait for that. */
static void cci__rc_repost(cci__rc *ep) {
    struct ibv_recv_wr *bad = NULL;
    uint32_t taken;
    int error;
    if (ep->repost_count == 0) return;
    error = ibv_post_srq_recv(ep->srq, ep->repost, &bad);
    taken =
        cci__verbs_posted(ep->hw, &ep->repost, bad, error, "the shared receive queue takes no buffers", &ep->refuses);
    ep->posted_buffers += taken;
    ep->repost_count -= taken;
    if (ep->repost_count == 0) ep->repost_tail = &ep->repost;
}

/* ... when they are many, or the hardware has few. */
static void cci__rc_repost_some(cci__rc *ep) {
    if (ep->repost_count >= CCI__RC_CHAIN || ep->posted_buffers < CCI__RC_ENOUGH_RECVS) cci__rc_repost(ep);
}

/* The hardware may have the buffer again. */
static void cci__rc_give_buffer(cci__rc *ep, cci__rc_buffer *buffer) {
    if (ep->active_buffers > ep->base.recv_buf_count) {
        buffer->event.next = ep->parked;
        ep->parked = &buffer->event;
        ep->active_buffers--;
        return;
    }
    buffer->wr.next = NULL;
    *ep->repost_tail = &buffer->wr;
    ep->repost_tail = &buffer->wr.next;
    ep->repost_count++;
    cci__rc_repost_some(ep);
}

static cci__rc_conn *cci__rc_search_qp(cci__rc *ep, uint32_t qp_num) {
    uint32_t at = ep->qp_buckets[cci__rc_qp_bucket(ep, qp_num)];
    while (at != CCI__CONN_NONE) {
        cci__rc_conn *conn = cci__rc_at(ep, at);
        if (conn->qp->qp_num == qp_num) {
            ep->last_got = conn;
            return conn;
        }
        at = conn->next_qp;
    }
    return NULL;
}

/* The connection of a queue pair, NULL if there is none. Messages often come from the same one again. */
static inline cci__rc_conn *cci__rc_find_qp(cci__rc *ep, uint32_t qp_num) {
    cci__rc_conn *last = ep->last_got;
    return last && last->qp->qp_num == qp_num ? last : cci__rc_search_qp(ep, qp_num);
}

static void cci__rc_paired(cci__rc *ep, cci__rc_conn *conn);
static void cci__rc_connected(cci__rc *ep, cci__rc_conn *conn, int status);
static void cci__rc_accepted(cci__rc *ep, cci__rc_conn *conn, int status);
static void cci__rc_hears(cci__rc *ep, cci__rc_conn *conn);

/* May a message go past the queue to the program? Nothing is before it, and nothing forbids that it is taken. */
static inline int cci__rc_may_hand_over(const cci__rc *ep) {
    return !ep->base.evq.urgent.head && !ep->base.evq.done.head && !ep->received.head &&
           ep->base.evq.recv_out < ep->take_quickly;
}

/* A message for the program: to `first`, unless that is NULL or has one, or it has to be queued. */
static inline void cci__rc_deliver(cci__rc *ep, cci__rc_conn *conn, cci_evq_event_t *event, const uint8_t *data,
                                   uint32_t length, cci_evq_event_t **first) {
    event->base.pub.recv.type = CCI_EVENT_RECV;
    event->base.pub.recv.len = length;
    event->base.pub.recv.ptr = data;
    event->base.pub.recv.connection = &conn->conn.pub;
    event->owner = conn;
    cci__rc_hear_of(ep, conn);
    if (first && !*first && CCI__LIKELY(cci__rc_may_hand_over(ep))) {
        ep->base.evq.recv_out++;
        *first = event;
        return;
    }
    ((cci__rc_buffer *)(void *)event)->token = conn->conn.token;
    ep->received_total++;
    cci_evq_post(&ep->received, event);
}

/* The peer has received so many messages of ours: what waits for that is complete, though the hardware does not know
 * it yet and keeps the items. Behind a read nobody knows. */
static void cci__rc_hear_answer(cci__rc *ep, cci__rc_conn *conn, uint32_t received) {
    cci__rc_item *item = cci__rc_oldest(conn), *newest = conn->newest;
    uint32_t more = received - conn->acked;
    if (more > UINT32_MAX / 2) return;
    while (item && more > 0 && item->is_posted && (item->is_done || item->kind != CCI__RC_READ_ITEM)) {
        if (!item->is_done) {
            more -= item->kind == CCI__RC_MESSAGE_ITEM;
            if (item->op) cci__rc_complete_op(ep, item->op, CCI_SUCCESS);
            item->op = NULL;
        }
        item = item == newest ? NULL : item->next;
    }
}

/* A message by which a connection learns something: that the peer has joined, has heard, is alive. */
static CCI__RARE void cci__rc_got_first(cci__rc *ep, cci__rc_conn *conn) {
    conn->conn.flags &= (uint16_t)~CCI__CONN_PINGED;
    if (conn->phase == CCI__RC_JOINED)
        cci__rc_paired(ep, conn);
    else if (conn->phase != CCI__RC_PAIRED && (conn->conn.flags & CCI__RC_AWAITING))
        cci__rc_connected(ep, conn, CCI_SUCCESS);
    if (conn->conn.state == CCI_CONN_ACCEPTED || conn->conn.step.confirming) cci__rc_hears(ep, conn);
}

/* What a message finds: an open connection that waits for nothing, and that the program has not closed. */
static inline int cci__rc_is_settled(const cci__rc_conn *conn) {
    return conn->phase == CCI__RC_PAIRED && conn->conn.state == CCI_CONN_OPEN && !conn->conn.step.confirming &&
           !(conn->conn.flags & (CCI__CONN_PINGED | CCI__CONN_LINGERS));
}

static CCI__HOT_PATH inline void cci__rc_got(cci__rc *ep, const struct ibv_wc *wc, cci_evq_event_t **first) {
    cci__rc_buffer *buffer = (cci__rc_buffer *)(uintptr_t)wc->wr_id;
    cci__rc_conn *conn;
    ep->posted_buffers--;
    if (CCI__UNLIKELY(wc->status != IBV_WC_SUCCESS || (conn = cci__rc_find_qp(ep, wc->qp_num)) == NULL)) {
        cci__rc_give_buffer(ep, buffer);
        return;
    }
    if (CCI__UNLIKELY(!cci__rc_is_settled(conn))) {
        if (conn->conn.state == CCI_CONN_CLOSING) {
            cci__rc_give_buffer(ep, buffer);
            return;
        }
        conn->received++;
        cci__rc_got_first(ep, conn);
        first = NULL;
    } else {
        conn->received++;
    }
    if (CCI__UNLIKELY(!(wc->wc_flags & IBV_WC_WITH_IMM)))
        CCI__WAKES(ep->base.wakes.heard = 1);
    else if (CCI__UNLIKELY(ntohl(wc->imm_data) != conn->acked))
        cci__rc_hear_answer(ep, conn, ntohl(wc->imm_data));
    if (CCI__UNLIKELY(wc->byte_len > conn->conn.pub.max_send_size)) { /* the peer had agreed to less */
        cci__rc_give_buffer(ep, buffer);
        return;
    }
    cci__rc_deliver(ep, conn, &buffer->event, (const uint8_t *)(uintptr_t)buffer->sge.addr, wc->byte_len, first);
}

static void cci__rc_broken(cci__rc *ep, const char *what, const char *reason);

/* Takes completions; returns how many there were. `first`: NULL, or where a message goes that need not be queued. */
static CCI__HOT_PATH inline int cci__rc_poll_here(cci__rc *ep, cci_evq_event_t **first) {
    struct ibv_wc wc[CCI__RC_POLL], *at = wc;
    int count = ibv_poll_cq(ep->cq, CCI__RC_POLL, wc), left;
    for (left = count; left > 0; left--, at++)
        if (at->wr_id & CCI__RC_SEND_ID)
            cci__rc_sent(ep, at);
        else
            cci__rc_got(ep, at, first);
    if (CCI__UNLIKELY(count < 0)) cci__rc_broken(ep, "the completion queue can't be read", "");
    return count;
}

static int cci__rc_poll(cci__rc *ep) {
    return cci__rc_poll_here(ep, NULL);
}

/* ==================================================================================================================
 * >>verbs-rc-pair
 *
 * Queue pairs: making, joining, and making them anew.
 * ================================================================================================================== */

static void cci__rc_send_leave(cci__rc *ep, cci__rc_conn *conn);

/* 0: the link has not taken it, and it is as good as lost: all are repeated. */
static int cci__rc_send_datagram(cci__rc *ep, const cci_link_addr_t *to, const uint8_t *head, uint32_t head_length,
                                 const void *data, uint32_t length) {
    cci_link_tx_t tx;
    memset(&tx, 0, sizeof tx);
    tx.to = to;
    tx.length = head_length + length;
    tx.piece_count = length > 0 ? 2 : 1;
    tx.piece[0].data = head;
    tx.piece[0].length = head_length;
    tx.piece[1].data = data;
    tx.piece[1].length = length;
    return ep->base.link->send(ep->base.handle, &tx, 1) == 1;
}

static uint32_t cci__rc_first_packet(const cci__rc *ep, const cci__rc_conn *conn, uint32_t epoch) {
    uint64_t words[3];
    words[0] = conn->conn.token;
    words[1] = epoch;
    words[2] = 0x70736e;
    return (uint32_t)cci__siphash(ep->base.conns.key, words, 3) & 0xffffff;
}

static int cci__rc_has_buffers(const cci__rc *ep) {
    return ep->posted_buffers > 0 && ep->base.evq.recv_out < ep->base.evq.recv_limit;
}

static uint32_t cci__rc_write_state(const cci__rc *ep, const cci__rc_conn *conn, uint32_t flags, uint8_t *bytes) {
    int has_joined = conn->phase == CCI__RC_JOINED || conn->phase == CCI__RC_PAIRED;
    memset(bytes, 0, CCI__RC_STATE_SIZE);
    if (!cci__rc_has_buffers(ep)) flags |= CCI__RC_IS_UNREADY;
    if (CCI__CAN_ATOMICS) flags |= CCI__RC_KNOWS_ATOMICS;
    cci__store32(bytes, conn->epoch);
    cci__store32(bytes + 4, conn->qp ? conn->qp->qp_num : 0);
    cci__store32(bytes + 8, cci__rc_first_packet(ep, conn, conn->epoch));
    cci__store32(bytes + 12, conn->received);
    cci__store32(bytes + 16, has_joined ? conn->joined : 0);
    bytes[20] = (uint8_t)flags;
    bytes[21] = (uint8_t)ep->rd_atomic;
    bytes[22] = (uint8_t)(ep->hw->mtu / 256);
    cci__store64(bytes + 24, ep->handle_key);
    return CCI__RC_STATE_SIZE;
}

/* The data of a server's decision, NULL if it has none. */
static cci_conn_answer_t *cci__rc_answer_of(const cci__rc_conn *conn) {
    if (!(conn->conn.flags & CCI__CONN_ANSWERS)) return NULL;
    return conn->conn.state == CCI_CONN_REJECTED ? conn->in.answer : (cci_conn_answer_t *)conn->in.outcome->owner;
}

/* The data is not needed any more. */
static void cci__rc_drop_answer(cci__rc *ep, cci__rc_conn *conn) {
    cci_conn_answer_t *answer = cci__rc_answer_of(conn);
    if (!answer) return;
    conn->conn.flags &= (uint16_t)~CCI__CONN_ANSWERS;
    ep->answers_kept--;
    cci_release(answer);
}

/* A packet of a connection, with the state of its queue pair but in REJECT and CLOSED; as many as its data needs. */
static void cci__rc_tell(cci__rc *ep, cci__rc_conn *conn, uint8_t type, uint32_t flags) {
    uint8_t bytes[CCI__CONN_HEAD + CCI__RC_STATE_SIZE + CCI__PIECE_SIZE];
    uint32_t size = cci_conn_output(&ep->base.conns, &conn->conn, type, bytes), more;
    const cci_conn_answer_t *answer =
        type == CCI__PKT_ACCEPT || type == CCI__PKT_REJECT ? cci__rc_answer_of(conn) : NULL;
    cci_conn_request_t piece;
    if (type != CCI__PKT_REJECT && type != CCI__PKT_CLOSED) size += cci__rc_write_state(ep, conn, flags, bytes + size);
    if (!answer) cci__rc_send_datagram(ep, &conn->conn.peer, bytes, size, NULL, 0);
    memset(&piece, 0, sizeof piece);
    while (answer && (more = cci_conn_output_piece(&ep->base.conns, answer, &piece, size, bytes)) > 0)
        cci__rc_send_datagram(ep, &conn->conn.peer, bytes, size + more, piece.data, piece.length);
}

/* The state of a pair that is to be made, repeated until the peer has joined. */
static void cci__rc_tell_pair(cci__rc *ep, cci__rc_conn *conn) {
    cci__rc_tell(ep, conn, CCI__RC_PKT_PAIR, CCI__RC_ASKS);
    if (conn->pair_tries < 200) conn->pair_tries++;
    conn->retry_ns = conn->pair_tries > CCI__RC_PAIR_TRIES && !conn->newest
                         ? CCI__NEVER
                         : ep->base.now_ns + cci_conn_retry_ns(conn->pair_tries);
    cci__rc_schedule(ep, conn);
}

static void cci__rc_hash_qp(cci__rc *ep, cci__rc_conn *conn) {
    uint32_t *bucket = &ep->qp_buckets[cci__rc_qp_bucket(ep, conn->qp->qp_num)];
    conn->next_qp = *bucket;
    *bucket = conn->conn.index;
}

static void cci__rc_unhash_qp(cci__rc *ep, cci__rc_conn *conn) {
    uint32_t *at = &ep->qp_buckets[cci__rc_qp_bucket(ep, conn->qp->qp_num)];
    while (*at != conn->conn.index) at = &cci__rc_at(ep, *at)->next_qp;
    *at = conn->next_qp;
    if (ep->last_got == conn) ep->last_got = NULL;
}

/* A queue pair that is reset, or new, begins an epoch. */
static void cci__rc_begin_epoch(cci__rc_conn *conn, uint32_t epoch) {
    conn->epoch = epoch;
    conn->conn.flags &= (uint16_t)~CCI__RC_FLUSHING;
    conn->marks &= (uint8_t)~CCI__RC_EMPTY;
    conn->phase = CCI__RC_FRESH;
    conn->pair_tries = 0;
}

static int cci__rc_init_qp(const cci__rc *ep, struct ibv_qp *qp) {
    struct ibv_qp_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.qp_state = IBV_QPS_INIT;
    attr.pkey_index = (uint16_t)ep->hw->pkey_index;
    attr.port_num = ep->hw->port.number;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    return cci__ibv.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* What a connection's queue pair is made with. */
static void cci__rc_qp_attributes(const cci__rc *ep, struct ibv_qp_init_attr *attr) {
    memset(attr, 0, sizeof *attr);
    attr->send_cq = attr->recv_cq = ep->cq;
    attr->srq = ep->srq;
    attr->cap.max_send_wr = ep->depth;
    attr->cap.max_send_sge = 1;
    attr->cap.max_inline_data = ep->inline_asked;
    attr->qp_type = IBV_QPT_RC;
}

static void cci__rc_drop_qp(cci__rc *ep, cci__rc_conn *conn) {
    cci__rc_unhash_qp(ep, conn);
    cci__verbs_check(ep->hw, cci__ibv.destroy_qp(conn->qp), "destroying a connection's queue pair");
    conn->qp = NULL;
    ep->pairs--;
}

static void cci__rc_destroy_qp(cci__rc *ep, cci__rc_conn *conn) {
    cci__rc_drop_setup(ep, conn);
    if (conn->qp) {
        cci__rc_drop_qp(ep, conn);
        conn->phase = CCI__RC_NO_PAIR;
    }
}

static enum ibv_mtu cci__rc_mtu_code(uint32_t mtu) {
    return mtu >= 4096   ? IBV_MTU_4096
           : mtu >= 2048 ? IBV_MTU_2048
           : mtu >= 1024 ? IBV_MTU_1024
           : mtu >= 512  ? IBV_MTU_512
                         : IBV_MTU_256;
}

/* Connects the queue pair to the peer's; 0 with errno when that fails. */
static int cci__rc_connect_qp(const cci__rc *ep, const cci__rc_setup *s) {
    struct ibv_qp_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = cci__rc_mtu_code(s->mtu);
    attr.dest_qp_num = s->peer_qp;
    attr.rq_psn = s->peer_first_packet;
    attr.max_dest_rd_atomic = (uint8_t)ep->rd_atomic;
    attr.min_rnr_timer = ep->device.rnr_timer;
    attr.ah_attr = s->path;
    if (cci__ibv.modify_qp(s->qp, &attr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return 0;
    memset(&attr, 0, sizeof attr);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = ep->device.ack_timeout;
    attr.retry_cnt = ep->device.retry_count;
    attr.rnr_retry = 7; /* for ever: it is the send timeout that ends it */
    attr.sq_psn = s->first_packet;
    attr.max_rd_atomic = (uint8_t)cci__max32(cci__min32(ep->rd_atomic, s->peer_rd_atomic), 1);
    return !cci__ibv.modify_qp(s->qp, &attr,
                               IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                   IBV_QP_MAX_QP_RD_ATOMIC);
}

/* ---- set-ups: one after the other, or as many at once as configured, without the lock ---- */

/* Does it. What it reads of the endpoint does not change while it runs: cci__rc_repair() waits for that. */
static void cci__rc_run_setup(const cci__rc *ep, cci__rc_setup *s) {
    struct ibv_qp_init_attr attr;
    errno = 0;
    if (s->makes) {
        cci__rc_qp_attributes(ep, &attr);
        s->qp = cci__ibv.create_qp(ep->pd, &attr);
        if (!s->qp)
            s->failed = "no queue pair for a connection";
        else if (cci__rc_init_qp(ep, s->qp))
            s->failed = "a queue pair can't be used";
    }
    if (!s->failed && s->joins && !cci__rc_connect_qp(ep, s)) s->failed = "a queue pair can't be joined to its peer";
    s->error = errno;
}

/* The oldest in line, if one more may run now; NULL: none. */
static cci__rc_setup *cci__rc_take_setup(cci__rc *ep) {
    cci__rc_setup *s = ep->setups;
    while (s && !s->conn) {
        ep->setups = s->next;
        cci_release(s);
        s = ep->setups;
    }
    if (!s) ep->setups_tail = &ep->setups;
    if (!s || ep->is_broken || ep->setups_running >= cci__max32(ep->device.setups, 1)) return NULL;
    ep->setups = s->next;
    if (!s->next) ep->setups_tail = &ep->setups;
    ep->setups_waiting--;
    ep->setups_running++;
    s->runs = 1;
    return s;
}

static void cci__rc_setup_done(cci__rc *ep, cci__rc_conn *conn, const cci__rc_setup *s);

/* Runs the oldest set-up, without the lock, and does then what waits for it. 0: there was none. */
static int cci__rc_do_setup(cci__rc *ep) {
    cci__rc_setup *s = cci__rc_take_setup(ep);
    if (!s) return 0;
    cci__rc_unlock(ep);
    cci__rc_run_setup(ep, s);
    cci__rc_lock(ep);
    if (!s->conn && s->qp) { /* nobody knows this queue pair */
        cci__rc_unlock(ep);
        cci__verbs_check(ep->hw, cci__ibv.destroy_qp(s->qp), "destroying a queue pair that came too late");
        cci__rc_lock(ep);
    }
    ep->setups_running--;
    if (s->conn) {
        ep->base.now_ns = ep->base.link->now(ep->base.handle);
        cci__rc_setup_done(ep, s->conn, s);
    }
    cci_release(s);
    return 1;
}

/* The connection does not want its set-up any more. */
static void cci__rc_drop_setup(cci__rc *ep, cci__rc_conn *conn) {
    cci__rc_setup *s = cci__rc_setup_of(conn);
    if (!s) return;
    s->conn = NULL;
    ep->setups_waiting -= !s->runs;
    if (s->runs && conn->qp) { /* it is the set-up's now */
        cci__rc_unhash_qp(ep, conn);
        conn->qp = NULL;
        ep->pairs--;
    }
    conn->phase = conn->qp ? CCI__RC_FRESH : CCI__RC_NO_PAIR;
}

static void cci__rc_call_workers(cci__rc *ep, uint32_t others);

/* Puts a connection's set-up into line: a queue pair is made unless there is one, and joined to the peer's if its
 * `state` is known. */
static int cci__rc_begin_setup(cci__rc *ep, cci__rc_conn *conn, const uint8_t *state) {
    cci__rc_setup *s = (cci__rc_setup *)cci_alloc(sizeof *s);
    uint64_t words[3];
    if (!s) return CCI_ENOMEM;
    memset(s, 0, sizeof *s);
    s->conn = conn;
    s->qp = conn->qp;
    s->makes = conn->qp == NULL;
    s->epoch = conn->epoch + s->makes;
    s->first_packet = cci__rc_first_packet(ep, conn, s->epoch);
    if (state) {
        s->joins = 1;
        s->peer_epoch = cci__load32(state);
        s->peer_joined = cci__load32(state + 16);
        s->peer_qp = cci__load32(state + 4);
        s->peer_first_packet = cci__load32(state + 8) & 0xffffff;
        s->peer_rd_atomic = state[21];
        s->mtu = cci__min32(ep->hw->mtu, 256u * cci__max32(state[22], 1));
        cci__verbs_path(ep->hw, &conn->conn.peer, &s->path);
        words[0] = conn->conn.token;
        words[1] = s->epoch; /* what is made anew may go around what has failed */
        words[2] = 0x666c6f77;
        s->path.grh.flow_label = cci__verbs_flow(ep->hw, words);
    }
    conn->at.setup = s;
    conn->phase = s->makes ? CCI__RC_MAKING : CCI__RC_JOINING;
    conn->retry_ns = CCI__NEVER;
    *ep->setups_tail = s;
    ep->setups_tail = &s->next;
    ep->setups_waiting++;
    cci__rc_call_workers(ep, ep->pairs - !s->makes);
    return CCI_SUCCESS;
}

/* Do both sides' counts of messages agree? The peer can't have more than was sent, nor less than was acknowledged. */
static int cci__rc_agrees(const cci__rc_conn *conn, uint32_t more) {
    const cci__rc_item *item = cci__rc_oldest(conn);
    for (; item && more > 0; item = item == conn->newest ? NULL : item->next)
        more -= item->kind == CCI__RC_MESSAGE_ITEM && !item->is_done;
    return more == 0;
}

/* What the peer had got of the messages that were under way when the pair failed is complete, and so are the writes
 * before them, and a read whose completion message is among them: hardware keeps that order. All else is done again,
 * or asked for again. */
static void cci__rc_catch_up(cci__rc *ep, cci__rc_conn *conn, uint32_t more) {
    cci__rc_item *item = cci__rc_oldest(conn), *newest = conn->newest;
    while (item && more > 0) {
        if (!item->is_done && (item->kind <= CCI__RC_WRITE_ITEM || item->has_message)) {
            more -= item->kind == CCI__RC_MESSAGE_ITEM;
            cci__rc_end_item(conn, item, CCI_SUCCESS);
        }
        item = item == newest ? NULL : item->next;
    }
    cci__rc_reap(ep, conn);
}

/* What was withdrawn and the peer does not have ends. */
static void cci__rc_end_cancelled(cci__rc *ep, cci__rc_conn *conn) {
    cci__rc_item *item = cci__rc_oldest(conn), *newest = conn->newest;
    for (; item; item = item == newest ? NULL : item->next)
        if (item->is_withdrawn && !item->is_done) cci__rc_end_item(conn, item, CCI_ERR_RNR);
    cci__rc_reap(ep, conn);
}

/* The peer has joined this epoch: what waits may go. */
static void cci__rc_paired(cci__rc *ep, cci__rc_conn *conn) {
    conn->phase = CCI__RC_PAIRED;
    conn->retry_ns = conn->newest ? ep->base.now_ns + cci__rc_look_ns(conn) : CCI__NEVER;
    conn->marks &= (uint8_t)~CCI__RC_GETS_ON;
    conn->stuck = 0;
    (void)cci__notices_suspend(&ep->base.notices, &ep->base.evq, &conn->conn, 0);
    cci__rc_schedule(ep, conn);
    if (conn->conn.flags & CCI__RC_AWAITING) cci__rc_connected(ep, conn, CCI_SUCCESS);
    if (conn->unposted) cci__rc_list_ready(ep, conn);
}

/* Messages that were acknowledged have not reached the peer's program, as their completions were lost there: nothing
 * can bring them back, so both programs learn that the connection is no more. */
static void cci__rc_mourn(cci__rc *ep, cci__rc_conn *conn) {
    cci__verbs_log(CCI_LOG_WARN, ep->hw->port.device, "a peer has lost messages: the connection ends", 0);
    if (conn->conn.state == CCI_CONN_OPEN && !(conn->conn.flags & CCI__RC_AWAITING)) {
        cci__rc_send_leave(ep, conn);
        cci__rc_break(ep, conn, CCI_ERR_DISCONNECTED);
    }
}

/* Begins to join the queue pair to the peer's. Without memory the peer's next state does. */
static void cci__rc_join(cci__rc *ep, cci__rc_conn *conn, const uint8_t *state) {
    uint32_t more = cci__load32(state + 12) - conn->acked;
    if (!cci__rc_agrees(conn, more)) {
        cci__rc_mourn(ep, conn);
        return;
    }
    cci__rc_catch_up(ep, conn, more);
    cci__rc_end_cancelled(ep, conn);
    (void)cci__rc_begin_setup(ep, conn, state);
}

/* Both sides' queue pairs know each other as far as this one can tell. */
static void cci__rc_joined(cci__rc *ep, cci__rc_conn *conn, const cci__rc_setup *s) {
    conn->joined = s->peer_epoch;
    conn->phase = CCI__RC_JOINED;
    conn->pair_tries = 0;
    if (s->stops) {
        cci__rc_drain(ep, conn);
        return;
    }
    if ((conn->conn.flags & CCI__RC_AWAITING) && conn->conn.step.confirming) { /* it is CONFIRM that is repeated */
        conn->conn.tries = 0;
        conn->conn.deadline_ns = ep->base.now_ns + cci_conn_retry_ns(0);
        cci__rc_schedule(ep, conn);
        cci__rc_tell(ep, conn, CCI__PKT_CONFIRM, 0);
        return;
    }
    conn->retry_ns = ep->base.now_ns + cci_conn_retry_ns(0);
    cci__rc_schedule(ep, conn);
    if (s->peer_joined == conn->epoch) cci__rc_paired(ep, conn);
    cci__rc_tell(ep, conn, CCI__RC_PKT_PAIR, 0);
}

/* There is a queue pair now, and the peer is to join it. */
static void cci__rc_made(cci__rc *ep, cci__rc_conn *conn) {
    if (conn->conn.state == CCI_CONN_ACCEPTED) { /* the client may not know more of it, and repeats its request */
        conn->conn.deadline_ns = ep->base.now_ns + CCI__CONN_ACCEPT_NS;
        cci__rc_tell(ep, conn, CCI__PKT_ACCEPT, 0);
        cci__rc_schedule(ep, conn);
    } else {
        cci__rc_tell_pair(ep, conn);
    }
}

static void cci__rc_refuse(cci__rc *ep, cci__rc_conn *conn);
static void cci__rc_give_up(cci__rc *ep, cci__rc_conn *conn);

/* There is no queue pair for a connection, or it can't be joined to the peer's. */
static void cci__rc_setup_failed(cci__rc *ep, cci__rc_conn *conn, const cci__rc_setup *s) {
    if (s->qp)
        cci__verbs_log(CCI_LOG_WARN, ep->hw->port.device, s->failed, s->error);
    else
        cci__verbs_log_memory(CCI_LOG_WARN, ep->hw->port.device, s->failed, s->error, cci__rc_pinned(ep));
    if (s->stops) {
        cci__rc_drain(ep, conn);
    } else if (conn->conn.state == CCI_CONN_ACCEPTED) {
        if (s->makes) cci__rc_refuse(ep, conn);
    } else if (conn->conn.flags & CCI__RC_AWAITING) {
        if (!s->makes) return; /* the next state is tried, until the time for connecting is over */
        cci__rc_send_leave(ep, conn);
        cci__rc_connected(ep, conn, CCI_ENOMEM);
    } else if (conn->conn.state == CCI_CONN_OPEN) {
        cci__rc_break(ep, conn, CCI_ERROR);
    }
}

static void cci__rc_setup_done(cci__rc *ep, cci__rc_conn *conn, const cci__rc_setup *s) {
    if (s->makes && s->qp) {
        conn->qp = s->qp;
        ep->pairs++;
        cci__rc_hash_qp(ep, conn);
        cci__rc_begin_epoch(conn, s->epoch);
    } else {
        conn->phase = conn->qp ? CCI__RC_FRESH : CCI__RC_NO_PAIR;
    }
    if (s->failed)
        cci__rc_setup_failed(ep, conn, s);
    else if (s->joins)
        cci__rc_joined(ep, conn, s);
    else
        cci__rc_made(ep, conn);
}

/* May this epoch join that of the peer, which has joined `joined`? One that has joined another is over, or will be
 * as soon as the peer hears of this one; and one is joined once, unless what it has joined is this one. */
static int cci__rc_may_join(const cci__rc_conn *conn, uint32_t epoch, uint32_t joined) {
    return joined == conn->epoch ? (int32_t)(epoch - conn->joined) >= 0
                                 : joined == 0 && (int32_t)(epoch - conn->joined) > 0;
}

/* The peer's state has come, with this or that packet. `answers`: the packet is answered in any case. */
static void cci__rc_input_state(cci__rc *ep, cci__rc_conn *conn, const uint8_t *state, int answers) {
    uint32_t epoch = cci__load32(state), joined = cci__load32(state + 16);
    int wants = (state[20] & CCI__RC_ASKS) != 0;
    conn->conn.flags &= (uint16_t) ~(CCI__RC_UNREADY | CCI__CONN_PINGED);
    conn->answered = (state[20] & CCI__RC_IS_UNREADY) == 0;
    if (!conn->answered) conn->conn.flags |= CCI__RC_UNREADY;
    conn->peer_key = cci__load64(state + 24);
    conn->atomics =
        (uint8_t)((conn->atomics & CCI__RC_HAS_HAD) | (state[20] & CCI__RC_KNOWS_ATOMICS ? CCI__RC_PEER_DOES : 0));
    if (!conn->qp) return;
    if (conn->phase == CCI__RC_FRESH && cci__rc_may_join(conn, epoch, joined)) {
        cci__rc_join(ep, conn, state);
        wants = 0; /* the peer hears when that is done */
    } else if ((conn->phase == CCI__RC_JOINED || conn->phase == CCI__RC_PAIRED) &&
               (int32_t)(epoch - conn->joined) > 0) {
        cci__rc_drain(ep, conn); /* it has begun anew, and so must this side */
    } else if (joined != conn->epoch && (epoch == conn->joined || (conn->phase == CCI__RC_FRESH && joined != 0))) {
        wants = 1;
    }
    if (conn->phase == CCI__RC_JOINED && epoch == conn->joined && joined == conn->epoch) cci__rc_paired(ep, conn);
    if (wants && !answers && conn->phase != CCI__RC_DRAINING) cci__rc_tell(ep, conn, CCI__RC_PKT_PAIR, 0);
}

/* ---- what has drained is reset, and goes on or is over ---- */

static void cci__rc_discard(cci__rc *ep, cci__rc_conn *conn);

/* What was under way waits again. */
static void cci__rc_rewind(cci__rc_conn *conn) {
    cci__rc_item *item = cci__rc_oldest(conn), *newest = conn->newest;
    conn->unposted = item;
    while (item) {
        item->is_posted = 0;
        if (item->kind != CCI__RC_ATOMIC_ITEM) item->of.work.at = item->of.work.base;
        item = item == newest ? NULL : item->next;
    }
}

/* There is no queue pair for a connection any more. */
static void cci__rc_give_up(cci__rc *ep, cci__rc_conn *conn) {
    cci__verbs_log(CCI_LOG_WARN, ep->hw->port.device, "a queue pair can't be used again", errno);
    if (conn->conn.state == CCI_CONN_ACCEPTED)
        cci__rc_accepted(ep, conn, CCI_ERROR);
    else if (conn->conn.flags & CCI__RC_AWAITING)
        cci__rc_connected(ep, conn, CCI_ERROR);
    else
        cci__rc_break(ep, conn, CCI_ERROR);
}

static void cci__rc_finish(cci__rc *ep, cci__rc_conn *conn) {
    conn->phase = CCI__RC_NO_PAIR;
    conn->retry_ns = CCI__NEVER;
    if (conn->failure != CCI_SUCCESS) {
        if ((conn->marks & CCI__RC_COUNTS) && cci__rc_agrees(conn, conn->joined - conn->acked))
            cci__rc_catch_up(ep, conn, conn->joined - conn->acked);
        cci__rc_end_all(ep, conn, conn->failure);
        cci__rc_drop_atomics(conn);
        cci__rc_destroy_qp(ep, conn);
        if (conn->conn.state != CCI_CONN_CLOSING)
            cci__rc_post_end(ep, conn);
        else if (conn->conn.flags & CCI__RC_TOLD)
            cci__rc_discard(ep, conn);
        return;
    }
    cci__rc_rewind(conn);
    if (ep->resets_badly) cci__rc_destroy_qp(ep, conn);
    if (conn->qp ? cci__rc_init_qp(ep, conn->qp) : cci__rc_begin_setup(ep, conn, NULL)) {
        cci__rc_give_up(ep, conn);
    } else if (conn->qp) {
        cci__rc_begin_epoch(conn, conn->epoch + 1);
        cci__rc_made(ep, conn);
    }
}

/* The completion queue is emptied between reset and what follows: then nothing is on its way of the old epoch. And
 * before it, since some drivers take what is there of a queue pair out of the completion queue when they reset it. */
static void cci__rc_settle(cci__rc *ep) {
    if (ep->emptying > 0 && !ep->hw->is_dead) cci__verbs_read_events(ep->hw);
    while (ep->drained != CCI__CONN_NONE) {
        uint32_t first, at;
        while (cci__rc_poll(ep) > 0) {
        }
        first = ep->drained;
        ep->drained = CCI__CONN_NONE;
        for (at = first; at != CCI__CONN_NONE; at = cci__rc_at(ep, at)->at.listed[0]) {
            cci__rc_conn *conn = cci__rc_at(ep, at);
            if (conn->qp && !ep->resets_badly) (void)cci__rc_modify(ep, conn, IBV_QPS_RESET);
        }
        while (cci__rc_poll(ep) > 0) {
        }
        while (first != CCI__CONN_NONE) {
            cci__rc_conn *conn = cci__rc_at(ep, first);
            first = conn->at.listed[0];
            conn->conn.flags &= (uint16_t)~CCI__RC_LISTED;
            cci__rc_finish(ep, conn);
        }
    }
}

/* ==================================================================================================================
 * >>verbs-rc-connect
 *
 * The handshake, with the packets of >>conn over the link.
 * ================================================================================================================== */

/* One slab of connections more, and hashes that keep up. */
static int cci__rc_grow(cci__rc *ep) {
    uint32_t capacity = (ep->base.conns.slab_count + 1) * CCI__CONN_SLAB, i;
    uint8_t *slab;
    uint32_t *buckets, *qp_buckets;
    if (ep->base.conns.slab_count == CCI__CONN_SLABS) return 0;
    CCI__STATS(
        if (ep->base.tallies.counted && !cci__tallies_grow(&ep->base.tallies, ep->base.conns.slab_count + 1)) return 0);
    if (ep->base.notices.asked && !cci__notices_grow(&ep->base.notices, ep->base.conns.slab_count + 1)) return 0;
    slab = (uint8_t *)cci_alloc((size_t)CCI__CONN_SLAB * ep->base.conns.entry_size);
    if (!slab) return 0;
    if (capacity > ep->qp_bucket_count) {
        uint32_t count = 2 * ep->qp_bucket_count;
        buckets = (uint32_t *)cci_alloc(count * sizeof *buckets);
        qp_buckets = (uint32_t *)cci_alloc(count * sizeof *qp_buckets);
        if (!buckets || !qp_buckets) {
            cci_release(buckets);
            cci_release(qp_buckets);
            cci_release(slab);
            return 0;
        }
        cci_release(cci_conn_rehash(&ep->base.conns, buckets, count));
        cci_release(ep->qp_buckets);
        ep->qp_buckets = qp_buckets;
        ep->qp_bucket_count = count;
        memset(qp_buckets, 0xff, count * sizeof *qp_buckets);
        for (i = 0; i < ep->base.conns.slab_count * CCI__CONN_SLAB; i++) {
            cci__rc_conn *conn = cci__rc_at(ep, i);
            if (conn->conn.state != CCI_CONN_FREE && conn->qp) cci__rc_hash_qp(ep, conn);
        }
    }
    cci_conn_add_slab(&ep->base.conns, slab);
    return 1;
}

static cci__rc_conn *cci__rc_open_conn(cci__rc *ep, cci_conn_attribute_t attribute, void *context) {
    cci_conn_t *made = cci_conn_open(&ep->base.conns);
    cci__rc_conn *conn;
    if (!made && (!cci__rc_grow(ep) || (made = cci_conn_open(&ep->base.conns)) == NULL)) return NULL;
    conn = (cci__rc_conn *)(void *)made;
    CCI__STATS(if (ep->base.tallies.counted) cci__tally_begin(&ep->base.tallies, made->index));
    made->pub.endpoint = (cci_endpoint_t *)&ep->base.api.pub;
    made->pub.attribute = attribute;
    made->pub.context = context;
    made->deadline_ns = CCI__NEVER;
    conn->retry_ns = conn->probe_ns = CCI__NEVER;
    conn->conn.send_timeout_us = ep->base.send_timeout_us;
    made->pub.max_send_size = cci__conn_is_reliable(&conn->conn) ? cci__endpoint_message_max(&ep->base)
                                                                 : cci__min32(cci__endpoint_message_max(&ep->base),
                                                                              ep->base.info.mtu - CCI__HEADER_SIZE);
    return conn;
}

/* How far messages go without a closer look at them. */
static void cci__rc_set_pace(cci__rc *ep) {
    int is_counted = 0;
    CCI__STATS(is_counted = ep->base.tallies.counted != NULL);
    ep->send_quickly = is_counted ? 0 : ep->base.send_buf_count;
    ep->take_quickly = is_counted ? 0 : ep->base.evq.recv_limit;
}

/* Nothing of the connection is under way any more. */
static void cci__rc_discard(cci__rc *ep, cci__rc_conn *conn) {
    cci__rc_drop_answer(ep, conn);
    cci__rc_drop_atomics(conn);
    cci__rc_is_empty(ep, conn);
    cci__rc_unlist(ep, conn);
    cci__rc_destroy_qp(ep, conn);
    ep->base.closing -= conn->conn.state == CCI_CONN_CLOSING;
    cci__timer_disarm(&ep->base.wheel, &conn->conn.timer);
    cci_conn_end(&ep->base.conns, &conn->conn, ep->base.now_ns);
}

/* ---- outcomes ---- */

static void cci__rc_begin_keepalive(cci__endpoint_t *base, cci_conn_t *conn) {
    conn->deadline_ns = conn->keepalive_us ? base->now_ns + (uint64_t)conn->keepalive_us * 1000 : CCI__NEVER;
    cci__rc_schedule((cci__rc *)base, (cci__rc_conn *)(void *)conn);
}

/* Nobody knows of a connection that did not open. If its queue pair may have a receive buffer, that comes home. */
static void cci__rc_let_go(cci__rc *ep, cci__rc_conn *conn) {
    if (conn->phase <= CCI__RC_FRESH || ep->base.is_dead) {
        cci__rc_discard(ep, conn);
        return;
    }
    conn->conn.state = CCI_CONN_CLOSING;
    conn->conn.flags |= CCI__RC_TOLD;
    conn->conn.deadline_ns = CCI__NEVER;
    ep->base.closing++;
    cci__rc_fail(ep, conn, CCI_ERR_DISCONNECTED);
}

/* The outcome of a handshake was posted. 1: the connection is open; 0: it is gone. */
static int cci__rc_opened(cci__rc *ep, cci__rc_conn *conn, int status) {
    if (status != CCI_SUCCESS) {
        cci__rc_let_go(ep, conn);
        return 0;
    }
    if (conn->conn.state != CCI_CONN_OPEN) /* a client's is since its server has accepted */
        cci_conn_opened(&ep->base.conns, &conn->conn, ep->base.now_ns);
    conn->conn.keepalive_us = cci__endpoint_keepalive_us(&ep->base, &conn->conn);
    cci__rc_hear_of(ep, conn);
    if (ep->device.probe_idle_s > 0 && conn->conn.pub.attribute <= CCI_CONN_ATTR_UU)
        conn->probe_ns = ep->base.now_ns + ep->device.probe_idle_s * UINT64_C(1000) * CCI__MS;
    cci__rc_schedule(ep, conn);
    return 1;
}

/* Posts the outcome of cci_connect() with the event that was kept for it. */
static void cci__rc_connected(cci__rc *ep, cci__rc_conn *conn, int status) {
    cci_conn_pending_t *pending = conn->in.asked;
    cci_evq_event_t *event = (cci_evq_event_t *)pending->event;
    conn->in.any = NULL;
    conn->conn.flags &= (uint16_t)~CCI__RC_AWAITING;
    cci_release(cci_conn_give_answer(pending->answer, status, &ep->base.told, &event->base.pub.connect));
    cci_release(pending);
    cci__endpoint_post_connect(&ep->base, event, &conn->conn, status);
    (void)cci__rc_opened(ep, conn, status);
}

static void cci__rc_accepted(cci__rc *ep, cci__rc_conn *conn, int status) {
    cci_evq_event_t *event = conn->in.outcome;
    cci__rc_drop_answer(ep, conn);
    conn->in.any = NULL;
    cci__endpoint_post_accept(&ep->base, event, &conn->conn, status);
    if (cci__rc_opened(ep, conn, status)) cci__rc_begin_keepalive(&ep->base, &conn->conn);
}

/* There is no queue pair for a client that the program has accepted: both programs learn it. */
static void cci__rc_refuse(cci__rc *ep, cci__rc_conn *conn) {
    cci_evq_event_t *event = conn->in.outcome;
    cci__rc_drop_answer(ep, conn);
    conn->in.any = NULL;
    cci__endpoint_post_accept(&ep->base, event, &conn->conn, CCI_ENOMEM);
    cci__rc_destroy_qp(ep, conn);
    cci__rc_tell(ep, conn, cci_conn_decide(&ep->base.conns, &conn->conn, 0, ep->base.now_ns), 0);
    cci__rc_schedule(ep, conn);
}

/* Something sound has come of an accepted or open connection. */
static void cci__rc_hears(cci__rc *ep, cci__rc_conn *conn) {
    cci_conn_got_t got = cci_conn_hears(&conn->conn);
    if (got == CCI_CONN_GOT_CONFIRM)
        cci__rc_accepted(ep, conn, CCI_SUCCESS);
    else if (got == CCI_CONN_GOT_CONFIRMED)
        cci__rc_begin_keepalive(&ep->base, &conn->conn);
}

/* ---- packets out ---- */

/* In mode auto: what a client's request says of connections over datagrams. */
static uint8_t cci__rc_asks(const cci__rc *ep, const cci__rc_conn *conn) {
    if (!cci__rc_is_auto(ep) || !cci__conn_is_reliable(&conn->conn)) return 0;
    return conn->conn.flags & CCI__RC_BEYOND ? CCI__RC_ASKS_EITHER | CCI__RC_ASKS_DATAGRAMS : CCI__RC_ASKS_EITHER;
}

static void cci__rc_send_request(cci__rc *ep, cci__rc_conn *conn) {
    const cci_conn_pending_t *pending = conn->in.asked;
    cci_conn_request_t piece;
    uint8_t bytes[CCI__CONN_HEAD];
    uint32_t size;
    memset(&piece, 0, sizeof piece);
    while ((size = cci_conn_output_request(&ep->base.conns, &conn->conn, pending, &piece, bytes)) > 0) {
        bytes[3] |= cci__rc_asks(ep, conn);
        cci__rc_send_datagram(ep, &conn->conn.peer, bytes, size, piece.data, piece.length);
    }
}

/* Sends a CLOSE as soon as it is its turn. */
static void cci__rc_send_close(cci__rc *ep, cci__rc_conn *conn) {
    if (cci_conn_close_output(&conn->conn, &ep->base.close_ns, 0, ep->base.now_ns))
        cci__rc_tell(ep, conn, CCI__PKT_CLOSE, 0);
    cci__rc_schedule(ep, conn);
}

/* Sends a packet that needs no connection. */
static void cci__rc_reply(cci__rc *ep, const cci_conn_packet_t *in, uint8_t type) {
    uint8_t bytes[CCI__CONN_HEAD];
    uint32_t size = cci_conn_output_reply(&ep->base.conns, in, type, bytes);
    cci__rc_send_datagram(ep, in->from, bytes, size, NULL, 0);
}

/* Sends what cci_conn_input() wants to be sent. */
static void cci__rc_answer(cci__rc *ep, const cci_conn_packet_t *in) {
    cci__rc_conn *conn = (cci__rc_conn *)(void *)in->conn;
    if (in->answer == CCI__PKT_REQUEST)
        cci__rc_send_request(ep, conn);
    else if (in->answer == CCI__PKT_COOKIE || in->answer == CCI__PKT_RESET || in->answer == CCI__PKT_NOT_HERE)
        cci__rc_reply(ep, in, in->answer);
    else if (in->answer && conn->conn.state != CCI_CONN_FREE &&
             !cci__rc_setup_of(conn)) /* the peer repeats it until that is over */
        cci__rc_tell(ep, conn, in->answer, 0);
}

/* There is no space for a request: its client learns it, and repeats the request. */
static void cci__rc_send_busy(cci__rc *ep, const cci_conn_packet_t *in, const char *why) {
    cci__rc_reply(ep, in, CCI__PKT_BUSY);
    if (ep->base.now_ns >= ep->base.busy_log_ns) {
        ep->base.busy_log_ns = ep->base.now_ns + 10000 * CCI__MS;
        cci__verbs_log(CCI_LOG_WARN, ep->hw->port.device, why, 0);
    }
}

/* The peer may forget the connection now: its next use of it then fails at once and not after a time-out. */
static void cci__rc_send_leave(cci__rc *ep, cci__rc_conn *conn) {
    uint8_t bytes[CCI__HEADER_SIZE];
    cci_conn_write_header(bytes, CCI__PKT_RESET, 0, conn->conn.peer_index, conn->conn.token, conn->conn.index, 0);
    cci__rc_send_datagram(ep, &conn->conn.peer, bytes, sizeof bytes, NULL, 0);
}

/* ---- requests in ---- */

static void cci__rc_free_request(cci__rc *ep, cci__rc_request *request) {
    cci__list_remove(&request->node);
    ep->request_count--;
    cci_release(request);
}

/* Not all pieces of a request have come. */
static void cci__rc_forget_request(cci__rc *ep, cci__rc_conn *conn) {
    cci__rc_free_request(ep, conn->in.request);
    conn->in.any = NULL;
    cci__rc_discard(ep, conn);
}

/* A piece of a request: when all have come, the program may decide. */
static void cci__rc_collect(cci__rc *ep, cci__rc_conn *conn, const cci_conn_request_t *piece) {
    cci__rc_request *request = conn->in.request;
    if (cci_conn_collect(&conn->conn, &request->pieces, piece, (uint8_t *)(request + 1),
                         request->event.base.pub.request.data_len))
        cci_evq_post(&ep->base.evq.urgent, &request->event);
}

static const char *cci__rc_peer_uri(cci__rc *ep, const cci_link_addr_t *from, char *text, size_t size) {
    static const char scheme[] = "verbs://";
    memcpy(text, scheme, sizeof scheme);
    return ep->base.link->text(ep->base.handle, from, text + sizeof scheme - 1, size - sizeof scheme + 1) == CCI_SUCCESS
               ? text
               : NULL;
}

/* Why there is no space for a request, NULL if there is. */
static const char *cci__rc_refusal(const cci__rc *ep, const cci_conn_packet_t *in) {
    uint8_t prefix[16];
    if (ep->request_count >= CCI__RC_REQUESTS) return "clients have to wait: the program has too many requests";
    if (!cci__endpoint_hears(&ep->base)) return CCI__BACKLOG_IS_FULL;
    if (cci_conn_prefix(&ep->base.conns, in->from, prefix) &&
        !cci_conn_source_may(&ep->base.conns, prefix, CCI__RC_REQUESTS - ep->request_count))
        return "clients have to wait: one network has the most connections, or undecided requests, that it may have";
    return NULL;
}

/* Mode auto: does a client that takes either go over datagrams, as one of both has its number of queue pairs? */
static int cci__rc_sends_elsewhere(const cci__rc *ep, const cci_conn_packet_t *in) {
    uint8_t asks = in->bytes[3];
    return cci__rc_is_auto(ep) && (asks & CCI__RC_ASKS_EITHER) &&
           ((asks & CCI__RC_ASKS_DATAGRAMS) || ep->base.conns.used >= ep->device.rc_connections);
}

/* Tells a client the queue pair that takes connections over datagrams. Nothing is kept of it here. */
static void cci__rc_send_elsewhere(cci__rc *ep, const cci_conn_packet_t *in) {
    const cci__verbs_link *l = (const cci__verbs_link *)ep->base.datagrams->handle;
    uint8_t bytes[CCI__CONN_HEAD];
    uint32_t size = cci_conn_output_reply(&ep->base.conns, in, CCI__RC_PKT_ELSEWHERE, bytes);
    cci__store32(bytes + 16, l->qp ? l->qp->qp_num : 0); /* 0: it is being repaired, and the client asks again */
    cci__rc_send_datagram(ep, in->from, bytes, size, NULL, 0);
}

/* The first piece of a request whose sender is where it says. */
static void cci__rc_new_request(cci__rc *ep, const cci_conn_packet_t *in) {
    const cci_conn_request_t *piece = &in->request;
    const char *refusal = cci__rc_refusal(ep, in);
    cci__rc_request *request = NULL;
    cci__rc_conn *conn = NULL;
    if (cci__rc_sends_elsewhere(ep, in)) {
        cci__rc_send_elsewhere(ep, in);
        return;
    }
    if (!refusal) {
        request = (cci__rc_request *)cci_alloc(sizeof *request + piece->data_len + CCI__RC_URI);
        conn = request ? cci__rc_open_conn(ep, (cci_conn_attribute_t)in->header.attribute, NULL) : NULL;
    }
    if (!conn) {
        cci_release(request);
        cci__rc_send_busy(ep, in,
                          refusal ? refusal : "clients have to wait: there is no memory for another connection");
        return;
    }
    memset(request, 0, sizeof *request);
    request->event.base.pub.request.peer_uri =
        cci__rc_peer_uri(ep, in->from, (char *)(request + 1) + piece->data_len, CCI__RC_URI);
    request->event.base.endpoint = &ep->base.api;
    request->event.base.pub.request.type = CCI_EVENT_CONNECT_REQUEST;
    request->event.base.pub.request.data_len = piece->data_len;
    request->event.base.pub.request.data_ptr = piece->data_len ? (void *)(request + 1) : NULL;
    request->event.base.pub.request.attribute = conn->conn.pub.attribute;
    request->event.owner = conn;
    request->event.pool = CCI_EVQ_CONTROL;
    cci__list_append(&ep->requests, &request->node);
    ep->request_count++;
    conn->in.request = request;
    cci_conn_begin_request(&ep->base.conns, &conn->conn, in, NULL);
    if (piece->length == piece->data_len) {
        memcpy(request + 1, piece->data, piece->length);
        cci_evq_post(&ep->base.evq.urgent, &request->event);
        return;
    }
    cci_conn_begin_collect(&conn->conn, &request->pieces, piece, ep->base.now_ns);
    cci__rc_schedule(ep, conn);
    cci__rc_collect(ep, conn, piece);
}

#ifndef CCI_NO_NAMES
/* A client asks the next port of the name that it seeks, or goes on asking where that is. */
static void cci__rc_seek(cci__rc *ep, cci__rc_conn *conn, int is_over) {
    cci_conn_pending_t *pending = conn->in.asked;
    int status = CCI_EAGAIN;
    if (is_over && !cci_conn_seek_on(&conn->conn, pending, ep->base.now_ns)) return;
    if (is_over && pending->seek->is_asked) conn->conn.flags |= CCI__RC_RESOLVING;
    if (conn->conn.flags & CCI__RC_RESOLVING) status = ep->base.link->resolve(ep->base.handle, NULL, &conn->conn.peer);
    conn->conn.deadline_ns = cci__min64(ep->base.now_ns + CCI__MS, pending->give_up_ns);
    if (status != CCI_SUCCESS) return; /* another port may be somebody's */
    conn->conn.flags &= (uint16_t)~CCI__RC_RESOLVING;
    conn->conn.deadline_ns =
        cci__max64(conn->conn.deadline_ns, cci__min64(pending->seek->until_ns, pending->give_up_ns));
    pending->seek->asked[pending->seek->at] = conn->conn.peer;
    cci__rc_send_request(ep, conn);
}

#define cci__rc_has_seek(pending) ((pending)->seek != NULL)

/* Does a client seek a server by its name, and somebody answers whom it has not asked? He may have the token from one
 * who was. */
static int cci__rc_was_not_asked(const cci__rc *ep, const cci_conn_packet_t *in) {
    const cci_conn_t *conn = cci_conn_find(&ep->base.conns, in->header.index, in->header.token);
    const cci_conn_pending_t *pending;
    if (in->header.type == CCI__PKT_REQUEST || !conn || conn->state != CCI_CONN_CONNECTING) return 0;
    pending = ((const cci__rc_conn *)(const void *)conn)->in.asked;
    return pending->seek && !cci_conn_is_place(pending->seek, in->from);
}

/* Who was asked has another name. */
static void cci__rc_denied(cci__rc *ep, cci__rc_conn *conn, const cci_conn_header_t *header) {
    cci_conn_pending_t *pending = conn->in.asked;
    if (conn->conn.state != CCI_CONN_CONNECTING || !pending->seek || !cci_conn_is_denied(pending->seek, header)) return;
    cci__rc_seek(ep, conn, 1);
    cci__rc_schedule(ep, conn);
}

/* An ACCEPT or a COOKIE has come: who was asked before the last may have the name. */
static void cci__rc_found(cci__rc_conn *conn, const cci_conn_packet_t *in) {
    if (!conn->in.asked->seek) return;
    conn->conn.peer = *in->from;
    conn->conn.flags &= (uint16_t)~CCI__RC_RESOLVING;
}

/* The request of a client that seeks a name is due; 0: it seeks none. */
static int cci__rc_seeks(cci__rc *ep, cci__rc_conn *conn) {
    const cci_conn_seek_t *seek = conn->in.asked->seek;
    if (seek) cci__rc_seek(ep, conn, ep->base.now_ns >= seek->until_ns);
    return seek != NULL;
}
#else
#define cci__rc_was_not_asked(ep, in) 0
#define cci__rc_denied(ep, conn, header) ((void)0)
#define cci__rc_found(conn, in) ((void)0)
#define cci__rc_seeks(ep, conn) 0
#define cci__rc_has_seek(pending) 0
#endif

/* ---- answers in ---- */

/* A piece of the server's data. Without memory for it, it is as good as lost: the request is repeated. */
static cci_conn_got_t cci__rc_collect_answer(cci__rc *ep, cci_conn_packet_t *in) {
    cci_conn_pending_t *pending = ((cci__rc_conn *)(void *)in->conn)->in.asked;
    if (!pending->answer) {
        pending->answer = (cci_conn_answer_t *)cci_alloc(sizeof *pending->answer + CCI_CONN_REQ_LEN);
        if (!pending->answer) return CCI_CONN_GOT_NOTHING;
        memset(pending->answer, 0, sizeof *pending->answer);
    }
    return cci_conn_collect_answer(&ep->base.conns, pending->answer, in);
}

/* Mode auto: a server has told where it takes connections over datagrams. What the program has asked for is asked for
 * there, in what is left of its time. */
static void cci__rc_go_elsewhere(cci__rc *ep, const cci_conn_packet_t *in) {
    cci_conn_t *of = cci_conn_find(&ep->base.conns, in->header.index, in->header.token);
    cci__rc_conn *conn = (cci__rc_conn *)(void *)of;
    uint32_t qpn = in->header.peer_index;
    cci_conn_pending_t *pending;
    char text[CCI__RC_URI];
    cci__connect_t call;
    int status;
    if (!of || of->state != CCI_CONN_CONNECTING || cci__rc_asks(ep, conn) == 0 || ep->base.stopping) return;
    pending = conn->in.asked;
    if (qpn < 2 || qpn >= 0xffffff || (!cci__rc_has_seek(pending) && memcmp(in->from, &of->peer, sizeof of->peer) != 0))
        return;
    memset(&call, 0, sizeof call);
    cci__verbs_make_addr(&call.to, cci__verbs_addr_lid(in->from), qpn, in->from->bytes + 8);
    if (ep->base.link->text(ep->base.handle, &call.to, text, sizeof text) == CCI_SUCCESS) call.address = text;
    call.is_known = 1;
    call.data = pending->data_len ? pending + 1 : NULL;
    call.data_len = pending->data_len;
    call.context = of->pub.context;
    call.attribute = of->pub.attribute;
    call.timeout_ns =
        pending->give_up_ns == CCI__NEVER ? CCI__NEVER : cci__ns_until(pending->give_up_ns, ep->base.now_ns);
    status = cci__rc_connect_beside(ep->base.datagrams, &call);
    if (status != CCI_SUCCESS) {
        cci__rc_connected(ep, conn, status);
        return;
    }
    conn->in.any = NULL;
    cci_evq_return_event(&ep->base.evq, (cci_evq_event_t *)pending->event);
    cci_release(pending->answer);
    cci_release(pending);
    cci__rc_discard(ep, conn);
}

/* A packet that proves to be the peer's comes from where it is: its queue pair for datagrams has another number when
 * it was made anew, or its port's LID has changed: then the pair is made anew too. Another port is not believed. */
static void cci__rc_follow(cci__rc *ep, cci__rc_conn *conn, const cci_link_addr_t *from) {
    int has_moved = cci__verbs_addr_lid(&conn->conn.peer) != cci__verbs_addr_lid(from);
    if (memcmp(&conn->conn.peer, from, sizeof *from) == 0 || conn->conn.peer.bytes[0] != from->bytes[0] ||
        memcmp(conn->conn.peer.bytes + 8, from->bytes + 8, 16) != 0)
        return;
    cci_conn_move(&ep->base.conns, &conn->conn, from, ep->base.now_ns);
    if (conn->conn.state == CCI_CONN_OPEN && !(conn->conn.flags & CCI__RC_AWAITING))
        cci__notices_post(&ep->base.notices, &ep->base.evq, &conn->conn, CCI_STATUS_PEER_MOVED, 0);
    if (has_moved && (conn->phase == CCI__RC_JOINED || conn->phase == CCI__RC_PAIRED)) cci__rc_drain(ep, conn);
}

/* The server has accepted: its queue pair waits for this side's. The program learns it when both have joined. */
static void cci__rc_was_accepted(cci__rc *ep, cci__rc_conn *conn, const uint8_t *state) {
    cci_conn_opened(&ep->base.conns, &conn->conn, ep->base.now_ns);
    if (!cci__conn_is_reliable(&conn->conn)) {
        cci__rc_connected(ep, conn, CCI_SUCCESS);
        return;
    }
    conn->conn.flags |= CCI__RC_AWAITING;
    cci__rc_input_state(ep, conn, state, 1);
    if (cci__rc_begin_setup(ep, conn, state) != CCI_SUCCESS) {
        cci__rc_send_leave(ep, conn);
        cci__rc_connected(ep, conn, CCI_ENOMEM);
        return;
    }
    cci__rc_schedule(ep, conn);
}

/* The peer has left. What it has acknowledged may still be on its way to the program's side of the queues. */
static void cci__rc_left(cci__rc *ep, cci__rc_conn *conn) {
    if (conn->posted == conn->retired || conn->phase == CCI__RC_DRAINING) {
        cci__rc_break(ep, conn, CCI_ERR_DISCONNECTED);
        return;
    }
    cci__rc_begin_end(ep, conn, 0);
    conn->failure = CCI_ERR_DISCONNECTED;
    conn->retry_ns = CCI__NEVER; /* its pair is looked at no more */
    conn->conn.deadline_ns = ep->base.now_ns + CCI__RC_LEAVE_NS;
    cci__rc_schedule(ep, conn);
}

/* The peer knows that the program has closed the connection, or nobody is there to hear it. */
static void cci__rc_closed(cci__rc *ep, cci__rc_conn *conn) {
    conn->conn.flags |= CCI__RC_TOLD;
    conn->conn.deadline_ns = CCI__NEVER;
    if (conn->phase == CCI__RC_NO_PAIR || ep->base.stopping) cci__rc_discard(ep, conn);
}

/* The peer has closed the connection. What it has got is complete when nothing is under way any more; and what it
 * has sent before is in the completion queue already. */
static void cci__rc_was_closed(cci__rc *ep, cci__rc_conn *conn, const uint8_t *state) {
    cci__rc_begin_end(ep, conn, CCI__RC_ORDERLY | (state ? CCI__RC_COUNTS : 0));
    if (state) conn->joined = cci__load32(state + 12);
    cci__rc_break(ep, conn, CCI_ERR_DISCONNECTED);
}

/* What has ended for the peer: CLOSE, of which `state` may be NULL, or RESET. */
static void cci__rc_input_end(cci__rc *ep, cci__rc_conn *conn, int is_close, const uint8_t *state) {
    if (conn->conn.flags & CCI__RC_AWAITING)
        cci__rc_connected(ep, conn, CCI_ERR_DISCONNECTED);
    else if (conn->conn.state == CCI_CONN_ACCEPTED)
        cci__rc_accepted(ep, conn, CCI_ERR_DISCONNECTED);
    else if (is_close)
        cci__rc_was_closed(ep, conn, state);
    else
        cci__rc_left(ep, conn);
}

static void cci__rc_input_data(cci__rc *ep, cci__rc_conn *conn, const cci_conn_packet_t *in);

/* What a packet means for its connection; `state` is that of the peer's queue pair, NULL if the packet has none. */
static void cci__rc_heard(cci__rc *ep, cci__rc_conn *conn, cci_conn_got_t got, const cci_conn_packet_t *in,
                          const uint8_t *state) {
    switch (got) {
    case CCI_CONN_GOT_REQUEST: cci__rc_new_request(ep, in); break;
    case CCI_CONN_GOT_PIECE: cci__rc_collect(ep, conn, &in->request); break;
    case CCI_CONN_GOT_REJECT: cci__rc_connected(ep, conn, CCI_ECONNREFUSED); break;
    case CCI_CONN_GOT_CONFIRM: cci__rc_accepted(ep, conn, CCI_SUCCESS); break;
    case CCI_CONN_GOT_CONFIRMED:
        if (conn->conn.state == CCI_CONN_OPEN) cci__rc_begin_keepalive(&ep->base, &conn->conn);
        break;
    case CCI_CONN_GOT_DATA: cci__rc_input_data(ep, conn, in); break;
    case CCI_CONN_GOT_CLOSE:
    case CCI_CONN_GOT_RESET: cci__rc_input_end(ep, conn, got == CCI_CONN_GOT_CLOSE, state); break;
    case CCI_CONN_GOT_END: cci__rc_closed(ep, conn); break;
    default: break;
    }
}

/* The state of the queue pair at the end of a packet, NULL if there is none. */
static const uint8_t *cci__rc_state_in(const cci_conn_packet_t *in) {
    uint32_t at = in->header.type == CCI__PKT_ACCEPT ? CCI__ACCEPT_SIZE : CCI__HEADER_SIZE;
    return in->length >= at + CCI__RC_STATE_SIZE ? in->bytes + at : NULL;
}

/* A client that was accepted asks again: it has not heard of that, or waits for its queue pair. */
static void cci__rc_wait_on(cci__rc *ep, cci__rc_conn *conn) {
    if (conn->conn.state == CCI_CONN_ACCEPTED && !cci__rc_setup_of(conn))
        conn->conn.deadline_ns = ep->base.now_ns + CCI__CONN_ACCEPT_NS;
}

/* A PAIR is to the handshake what a CONFIRMED is, an ATOMIC what DATA is. */
static uint8_t cci__rc_type_for_conn(uint8_t type) {
    return type == CCI__RC_PKT_PAIR     ? (uint8_t)CCI__PKT_CONFIRMED
           : type == CCI__RC_PKT_ATOMIC ? (uint8_t)CCI__PKT_DATA
                                        : type;
}

/* A packet that matches a connection was sent by its peer, and is no copy of an old one. */
static int cci__rc_is_from_peer(uint8_t type, const cci_conn_packet_t *in) {
    return type != CCI__PKT_REQUEST && type != CCI__PKT_RESET && (type != CCI__PKT_ACCEPT || in->answer);
}

/* A packet of the handshake, or of the end. */
static void cci__rc_input_conn(cci__rc *ep, cci_conn_packet_t *in) {
    uint8_t type = cci__rc_type_for_conn(in->header.type);
    int tells_state = type == CCI__PKT_CONFIRM || type == CCI__PKT_CONFIRMED;
    const uint8_t *state = cci__rc_state_in(in);
    cci__rc_conn *conn;
    cci_conn_got_t got;
    if ((!state && (tells_state || type == CCI__PKT_ACCEPT)) || cci__rc_was_not_asked(ep, in)) return;
    if (CCI__UNLIKELY(type == CCI__RC_PKT_ELSEWHERE)) {
        cci__rc_go_elsewhere(ep, in);
        return;
    }
    in->header.type = type;
    got = cci_conn_input(&ep->base.conns, in);
    conn = (cci__rc_conn *)(void *)in->conn;
    if (got == CCI_CONN_GOT_ANSWER) got = cci__rc_collect_answer(ep, in);
    if (got == CCI_CONN_GOT_NOT_HERE) cci__rc_denied(ep, conn, &in->header);
    if (in->answer == CCI__PKT_REQUEST || got == CCI_CONN_GOT_ACCEPT) cci__rc_found(conn, in);
    if (got == CCI_CONN_GOT_ACCEPT) cci__rc_was_accepted(ep, conn, state);
    if (type == CCI__PKT_REQUEST && in->answer == CCI__PKT_ACCEPT) cci__rc_wait_on(ep, conn);
    if (conn && got != CCI_CONN_GOT_UNMATCHED && cci__rc_is_from_peer(type, in) && cci_conn_has_peer(&conn->conn)) {
        cci__rc_follow(ep, conn, in->from);
        if (tells_state) cci__rc_input_state(ep, conn, state, type == CCI__PKT_CONFIRM);
    }
    cci__rc_answer(ep, in);
    cci__rc_heard(ep, conn, got, in, state);
}

/* ---- unreliable messages ---- */

/* Was it sent with CCI_FLAG_WAKE? The number that the header has room for says so. */
static void cci__rc_hear_wake(cci__rc *ep, const uint8_t *header) {
    CCI__WAKES(ep->base.wakes.heard |= (uint8_t)(cci__load32(header + 20) & 1));
    (void)ep, (void)header;
}

/* A copy of an unreliable message for the program; it is dropped if there is no buffer. */
static void cci__rc_deliver_copy(cci__rc *ep, cci__rc_conn *conn, const uint8_t *bytes, uint32_t length) {
    cci__rc_buffer *buffer = (cci__rc_buffer *)(void *)ep->free_plain;
    if (!buffer || length > conn->conn.pub.max_send_size) return;
    ep->free_plain = buffer->event.next;
    memcpy((void *)(uintptr_t)buffer->sge.addr, bytes, length);
    cci__rc_deliver(ep, conn, &buffer->event, (const uint8_t *)(uintptr_t)buffer->sge.addr, length, NULL);
}

/* ---- atomics ---- */

#ifndef CCI_NO_ATOMICS
static int cci__rc_send_frame(cci__rc *ep, cci__rc_conn *conn, const uint8_t *frame, uint32_t length) {
    uint8_t head[CCI__CONN_HEAD];
    uint32_t size = cci_conn_output(&ep->base.conns, &conn->conn, CCI__RC_PKT_ATOMIC, head);
    return cci__rc_send_datagram(ep, &conn->conn.peer, head, size, frame, length);
}

/* Does what the peer asks for, unless it was done. Without memory for that it will be asked for again. */
static void cci__rc_serve_atomic(cci__rc *ep, cci__rc_conn *conn, const uint8_t *frame) {
    cci__rc_atomics *atomics = cci__rc_begin_atomics(conn);
    uint8_t answer[24];
    if (!atomics) return;
    cci__rma_input_atomic(&ep->rma, &atomics->numbers, frame);
    while (atomics->numbers.owed != 0) {
        uint32_t size = cci__rma_answer_atomic(&atomics->numbers, answer);
        (void)cci__rc_send_frame(ep, conn, answer, size);
    }
}

/* An answer, which may be one of several to the same request. */
static void cci__rc_atomic_answered(cci__rc *ep, cci__rc_conn *conn, const uint8_t *frame, uint32_t length) {
    cci__rc_atomics *atomics = cci__rc_atomics_of(conn);
    uint32_t number = cci__load32(frame + 4), open = atomics->numbers.open;
    cci__rc_item *item = atomics->asked[number % CCI__RMA_ATOMICS];
    int is_done = frame[0] == CCI__FRAME_DATA && length >= 24, status = CCI_SUCCESS;
    uint64_t value;
    if (!item || item->of.atomic.number != number || (!is_done && frame[0] != CCI__FRAME_DENIED)) return;
    if (!is_done) status = frame[1] == CCI_ERR_RMA_OP ? CCI_ERR_RMA_OP : CCI_ERR_RMA_HANDLE;
    if (is_done && item->of.atomic.previous) {
        value = cci__load64(frame + 16);
        memcpy(item->of.atomic.previous, &value, sizeof value);
    }
    atomics->asked[number % CCI__RMA_ATOMICS] = NULL;
    cci__rma_atomic_answered(&atomics->numbers, number);
    if (atomics->numbers.open != open) atomics->looks = 0;
    cci__rc_end_item(conn, item, status);
    cci__rc_reap(ep, conn);
    if (conn->unposted && conn->phase == CCI__RC_PAIRED) cci__rc_list_ready(ep, conn);
    cci__rc_schedule(ep, conn);
}
#endif

static void cci__rc_input_atomic(cci__rc *ep, cci__rc_conn *conn, const cci_conn_packet_t *in) {
#ifdef CCI_NO_ATOMICS
    (void)ep, (void)conn, (void)in;
#else
    const uint8_t *frame = in->bytes + CCI__HEADER_SIZE;
    uint32_t length = in->length - CCI__HEADER_SIZE;
    conn->conn.flags &= (uint16_t)~CCI__CONN_PINGED;
    cci__rc_hear_of(ep, conn);
    cci__rc_hears(ep, conn);
    if (length >= 48 && frame[0] == CCI__FRAME_ATOMIC)
        cci__rc_serve_atomic(ep, conn, frame);
    else if (length >= 8 && cci__rc_atomics_of(conn))
        cci__rc_atomic_answered(ep, conn, frame, length);
#endif
}

static void cci__rc_input_data(cci__rc *ep, cci__rc_conn *conn, const cci_conn_packet_t *in) {
    if (in->bytes[1] == CCI__RC_PKT_ATOMIC) {
        if (cci__conn_is_reliable(&conn->conn)) cci__rc_input_atomic(ep, conn, in);
        return;
    }
    if (cci__conn_is_reliable(&conn->conn)) {
        if (ep->base.conns.resets++ < CCI__CONN_RESETS) cci__rc_reply(ep, in, CCI__PKT_RESET);
        return;
    }
    cci__rc_hears(ep, conn);
    cci__rc_deliver_copy(ep, conn, in->bytes + CCI__HEADER_SIZE, in->length - CCI__HEADER_SIZE);
    cci__rc_hear_wake(ep, in->bytes);
}

static void cci__rc_input_group(cci__rc *ep, const cci_link_rx_t *rx, uint32_t length) {
    uint32_t i;
    for (i = 0; rx->is_group && i < ep->base.group_count; i++)
        if (!memcmp(&ep->base.groups[i]->peer, &rx->group, sizeof rx->group))
            cci__rc_deliver_copy(ep, (cci__rc_conn *)(void *)ep->base.groups[i], rx->data + CCI__HEADER_SIZE,
                                 length - CCI__HEADER_SIZE);
    cci__rc_hear_wake(ep, rx->data);
}

static void cci__rc_input(cci__rc *ep, const cci_link_rx_t *rx) {
    cci_conn_packet_t in;
    if (!cci_conn_parse(rx->data, rx->length, &in.header)) return;
    if (in.header.type == CCI__PKT_REQUEST)
        in.header.flags &= (uint8_t) ~(CCI__RC_ASKS_EITHER | CCI__RC_ASKS_DATAGRAMS); /* looked at when it is proven */
    if (in.header.flags != (in.header.type == CCI__PKT_REQUEST ? in.header.flags & CCI__HEADER_NAMED : 0)) return;
    if (rx->is_group || in.header.type == CCI__PKT_GROUP) {
        if (in.header.type == CCI__PKT_GROUP) cci__rc_input_group(ep, rx, rx->length);
        return;
    }
    in.from = &rx->from;
    in.bytes = rx->data;
    in.length = rx->length;
    in.now_ns = ep->base.now_ns;
    cci__rc_input_conn(ep, &in);
}

/* ==================================================================================================================
 * >>verbs-rc-progress
 *
 * Time, rounds of work, waiting.
 * ================================================================================================================== */

static void cci__rc_keepalive(cci__rc *ep, cci__rc_conn *conn) {
    struct ibv_send_wr wr, *bad = NULL;
    int error;
    if (conn->conn.flags & CCI__CONN_PINGED) {
        cci__rc_post_keepalive(&ep->base, &conn->conn);
        conn->conn.deadline_ns = CCI__NEVER;
        return;
    }
    conn->conn.flags |= CCI__CONN_PINGED;
    conn->conn.deadline_ns = ep->base.now_ns + (uint64_t)conn->conn.keepalive_us * 1000;
    if (conn->phase != CCI__RC_PAIRED) {
        cci__rc_tell_pair(ep, conn);
        return;
    }
    if (conn->posted != conn->retired) return; /* the completions of what is under way are signs of life */
    if (cci__rc_is_full(ep)) {
        cci__rc_tell(ep, conn, CCI__RC_PKT_PAIR, CCI__RC_ASKS);
        return;
    }
    memset(&wr, 0, sizeof wr);
    wr.wr_id = cci__rc_wr_id(conn, conn->posted);
    wr.opcode = IBV_WR_RDMA_WRITE; /* of nothing */
    wr.send_flags = IBV_SEND_SIGNALED;
    error = ibv_post_send(conn->qp, &wr, &bad);
    if (error) {
        cci__verbs_log(CCI_LOG_WARN, ep->hw->port.device, "the hardware takes no sign of life",
                       error > 0 ? error : errno);
        return;
    }
    conn->posted++;
    ep->under_way++;
}

/* Since something last came from the peer. */
static uint64_t cci__rc_silent_ns(const cci__rc *ep, const cci__rc_conn *conn) {
    return (uint64_t)((uint32_t)(ep->base.now_ns >> 20) - conn->life.heard) << 20;
}

/* Questions were not answered. A peer that was heard meanwhile is there. */
static void cci__rc_suspend(cci__rc *ep, cci__rc_conn *conn) {
    if (cci__rc_silent_ns(ep, conn) >= 3 * CCI__RC_ASK * cci__rc_look_ns(conn) &&
        !(conn->conn.flags & CCI__RC_AWAITING))
        (void)cci__notices_suspend(&ep->base.notices, &ep->base.evq, &conn->conn, 1);
}

#ifndef CCI_NO_ATOMICS
/* Asks once more for what has no answer: at the second look, the fourth, the eighth, and each sixteenth. */
static void cci__rc_ask_atomics_again(cci__rc *ep, cci__rc_conn *conn) {
    cci__rc_atomics *atomics = cci__rc_atomics_of(conn);
    uint32_t number;
    if (!atomics || atomics->numbers.open == atomics->numbers.next) return;
    atomics->looks++;
    if (atomics->looks < 2 || (atomics->looks % 16 != 0 && (atomics->looks & (atomics->looks - 1)) != 0)) return;
    for (number = atomics->numbers.open; number != atomics->numbers.next; number++) {
        cci__rc_item *item = atomics->asked[number % CCI__RMA_ATOMICS];
        if (item) (void)cci__rc_ask_atomic(ep, conn, item);
    }
    if (atomics->looks > 3 * CCI__RC_ASK) cci__rc_suspend(ep, conn);
}
#endif

/* Looks whether a pair gets on. The hardware repeats by itself, and for ever what the peer has no buffer for; only the
 * peer can tell which it is. The driver that emulates hardware has been seen to repeat no more: a pair that stands
 * still though the peer is ready is made anew. */
static void cci__rc_look(cci__rc *ep, cci__rc_conn *conn) {
    conn->retry_ns = conn->newest ? ep->base.now_ns + cci__rc_look_ns(conn) : CCI__NEVER;
#ifndef CCI_NO_ATOMICS
    cci__rc_ask_atomics_again(ep, conn);
#endif
    if (conn->posted == conn->retired || (conn->marks & CCI__RC_GETS_ON)) {
        conn->marks &= (uint8_t)~CCI__RC_GETS_ON;
        conn->stuck = conn->answered = conn->renewals = 0;
        return;
    }
    conn->stuck++;
    if (conn->answered && conn->stuck >= CCI__RC_STUCK << conn->renewals) {
        conn->answered = 0;
        conn->renewals = (uint8_t)cci__min32(conn->renewals + 1u, CCI__RC_RENEWALS); /* perhaps it is just slow */
        cci_log(CCI_LOG_INFO, "verbs: a queue pair that stands still is made anew");
        cci__rc_drain(ep, conn);
        return;
    }
    if (conn->stuck % CCI__RC_ASK != 0) return;
    if (conn->stuck > 3 * CCI__RC_ASK) cci__rc_suspend(ep, conn);
    cci__rc_tell(ep, conn, CCI__RC_PKT_PAIR, CCI__RC_ASKS);
}

/* Asks a peer that has been silent for long whether it is still there; after as long again in silence it is not. */
static void cci__rc_probe(cci__rc *ep, cci__rc_conn *conn) {
    uint64_t period_ns = ep->device.probe_idle_s * UINT64_C(1000) * CCI__MS;
    cci_conn_due_t due = cci_conn_probe(&conn->conn, period_ns, ep->base.now_ns, &conn->probe_ns);
    if (due == CCI_CONN_DUE_CONFIRM)
        cci__rc_tell(ep, conn, CCI__PKT_CONFIRM, 0);
    else if (due == CCI_CONN_DUE_TIMED_OUT)
        cci__rc_break(ep, conn, CCI_ETIMEDOUT);
}

/* [4.1.4.1] The peer had no buffer for a message until its time was over: it ends with CCI_ERR_RNR and, on an
 * ordered connection, all behind it. The pair is made anew, since then both sides know what has arrived. 0: that was
 * tried before. */
static int cci__rc_cancel(cci__rc *ep, cci__rc_conn *conn) {
    cci__rc_item *item = cci__rc_oldest(conn), *newest = conn->newest;
    uint64_t time_ns = (uint64_t)conn->conn.send_timeout_us * 1000; /* so long again, for the peer to answer */
    uint64_t until_ns = time_ns ? ep->base.now_ns + time_ns : CCI__NEVER;
    int is_ordered = conn->conn.pub.attribute == CCI_CONN_ATTR_RO;
    if (item->is_withdrawn || (item->kind != CCI__RC_MESSAGE_ITEM && !item->has_message)) return 0;
    while (item) {
        if (is_ordered || item->deadline_ns <= ep->base.now_ns)
            item->is_withdrawn = item->kind == CCI__RC_MESSAGE_ITEM || item->has_message;
        item->deadline_ns = cci__max64(item->deadline_ns, until_ns);
        item = item == newest ? NULL : item->next;
    }
    if (is_ordered) conn->marks |= CCI__RC_CANCELLED;
    cci__rc_drain(ep, conn);
    return 1;
}

static void cci__rc_step(cci__rc *ep, cci__rc_conn *conn);

static uint64_t cci__rc_give_up_ns(const cci__rc_conn *conn) {
    return conn->in.asked->give_up_ns;
}

/* The time of the oldest operation is over. */
static void cci__rc_late(cci__rc *ep, cci__rc_conn *conn, const cci__rc_item *oldest) {
    int is_unready = (conn->conn.flags & CCI__RC_UNREADY) != 0;
    if (is_unready && cci__rc_cancel(ep, conn)) return;
    cci__rc_break(ep, conn, is_unready && oldest->kind != CCI__RC_ATOMIC_ITEM ? CCI_ERR_RNR : CCI_ETIMEDOUT);
}

/* Looks after a connection that is open: keepalive, confirmation, its pair, its oldest operation. */
static void cci__rc_look_after(cci__rc *ep, cci__rc_conn *conn) {
    cci__rc_item *oldest = cci__rc_oldest(conn);
    int awaiting = (conn->conn.flags & CCI__RC_AWAITING) != 0;
    if (awaiting && cci__rc_give_up_ns(conn) <= ep->base.now_ns) {
        cci__rc_send_leave(ep, conn);
        cci__rc_connected(ep, conn, CCI_ETIMEDOUT);
        return;
    }
    if (conn->conn.deadline_ns <= ep->base.now_ns) cci__rc_step(ep, conn);
    if (oldest && oldest->deadline_ns <= ep->base.now_ns) {
        cci__rc_late(ep, conn, oldest);
        return;
    }
    if (ep->base.notices.suspended > 0 && conn->phase == CCI__RC_PAIRED &&
        cci__rc_silent_ns(ep, conn) < 2 * cci__rc_look_ns(conn))
        (void)cci__notices_suspend(&ep->base.notices, &ep->base.evq, &conn->conn, 0);
    if (conn->probe_ns <= ep->base.now_ns) cci__rc_probe(ep, conn);
    if (conn->retry_ns > ep->base.now_ns) return;
    if (conn->phase == CCI__RC_FRESH || conn->phase == CCI__RC_JOINED) {
        if (conn->pair_tries >= 3) cci__rc_suspend(ep, conn);
        cci__rc_tell_pair(ep, conn);
    } else if (conn->phase == CCI__RC_PAIRED) {
        cci__rc_look(ep, conn);
    }
}

static void cci__rc_ask_resolver(cci__rc *ep, cci__rc_conn *conn) {
    int status = ep->base.link->resolve(ep->base.handle, NULL, &conn->conn.peer);
    uint64_t wait_ns = status == CCI_EAGAIN ? CCI__MS : cci_conn_retry_ns(0);
    conn->conn.tries = 0; /* what could not be sent is no try */
    conn->conn.deadline_ns = cci__min64(ep->base.now_ns + wait_ns, cci__rc_give_up_ns(conn));
    if (status == CCI_EAGAIN) return;
    conn->conn.flags &= (uint16_t)~CCI__RC_RESOLVING;
    if (status == CCI_SUCCESS)
        cci__rc_send_request(ep, conn);
    else
        cci__rc_connected(ep, conn, status);
}

/* When a request is repeated if nothing answers. Requests that went together are repeated apart, each time in
 * another order: a server that has too few buffers for all of them at once would have none for the same ones for
 * ever. */
static uint64_t cci__rc_request_due(const cci__rc *ep, const cci__rc_conn *conn) {
    uint64_t wait_ns = cci_conn_retry_ns(conn->conn.tries);
    uint64_t place = ((conn->conn.index + conn->conn.tries) * UINT32_C(0x9e3779b1)) >> 24;
    /* up to a quarter earlier */
    return cci__min64(ep->base.now_ns + wait_ns - wait_ns / 1024 * place, cci__rc_give_up_ns(conn));
}

/* A client that was accepted is in line for its queue pair: now and then its server learns that it still waits. */
static void cci__rc_stay_in_line(cci__rc *ep, cci__rc_conn *conn) {
    if (conn->conn.tries > 1) cci__rc_send_request(ep, conn);
    conn->conn.deadline_ns = cci__min64(ep->base.now_ns + CCI__RC_IN_LINE_NS, cci__rc_give_up_ns(conn));
}

/* The client's request, or its confirmation of one that waits for its pair, is due again. */
static void cci__rc_ask_again(cci__rc *ep, cci__rc_conn *conn, cci_conn_due_t due) {
    if (due == CCI_CONN_DUE_REQUEST && cci__rc_seeks(ep, conn)) return;
    if (conn->conn.flags & CCI__RC_RESOLVING) {
        cci__rc_ask_resolver(ep, conn);
    } else if (due == CCI_CONN_DUE_REQUEST) {
        cci__rc_send_request(ep, conn);
        conn->conn.deadline_ns = cci__rc_request_due(ep, conn);
    } else if (conn->phase == CCI__RC_MAKING) {
        cci__rc_stay_in_line(ep, conn);
    } else {
        cci__rc_tell(ep, conn, CCI__PKT_CONFIRM, 0);
    }
}

/* Nobody needs the connection any more, or what the program has closed. */
static void cci__rc_forgotten(cci__rc *ep, cci__rc_conn *conn) {
    if (conn->conn.state == CCI_CONN_CLOSING)
        cci__rc_closed(ep, conn); /* nobody is there to hear it */
    else if (conn->conn.state == CCI_CONN_COLLECTING)
        cci__rc_forget_request(ep, conn);
    else
        cci__rc_discard(ep, conn);
}

/* A connection does not open in time. */
static void cci__rc_timed_out(cci__rc *ep, cci__rc_conn *conn) {
    if (conn->conn.flags & CCI__CONN_BUSY)
        cci_log(CCI_LOG_WARN, "the server was busy until the time for connecting was over");
    if (conn->conn.state == CCI_CONN_CONNECTING)
        cci__rc_connected(ep, conn, CCI_ETIMEDOUT);
    else
        cci__rc_accepted(ep, conn, CCI_ETIMEDOUT);
}

/* What is due that is the user's: keepalive, also when a server has not confirmed for long; or the end of one that
 * is broken. */
static void cci__rc_idle(cci__rc *ep, cci__rc_conn *conn) {
    if (conn->conn.state == CCI_CONN_OPEN && conn->conn.step.confirming)
        cci__rc_hears(ep, conn);
    else if (conn->conn.state == CCI_CONN_OPEN)
        cci__rc_keepalive(ep, conn);
    else if (conn->phase == CCI__RC_NO_PAIR && conn->failure != CCI_SUCCESS)
        cci__rc_post_end(ep, conn);
    else
        cci__rc_break(ep, conn, CCI_ERR_DISCONNECTED);
}

/* The next step of a connection's opening, use or end is due. */
static void cci__rc_step(cci__rc *ep, cci__rc_conn *conn) {
    int awaiting = (conn->conn.flags & CCI__RC_AWAITING) != 0;
    uint64_t give_up_ns = awaiting || conn->conn.state == CCI_CONN_CONNECTING ? cci__rc_give_up_ns(conn) : CCI__NEVER;
    cci_conn_due_t due;
    if (awaiting) /* its time for connecting is its limit */
        conn->conn.tries = (uint8_t)cci__min32(conn->conn.tries, CCI__CONN_CONFIRM_TRIES - 1);
    due = cci_conn_timeout(&conn->conn, give_up_ns, ep->base.now_ns);
    switch (due) {
    case CCI_CONN_DUE_NOTHING: break;
    case CCI_CONN_DUE_REQUEST:
    case CCI_CONN_DUE_CONFIRM:
        conn->conn.deadline_ns = cci__min64(conn->conn.deadline_ns, give_up_ns);
        cci__rc_ask_again(ep, conn, due);
        break;
    case CCI_CONN_DUE_CLOSE: cci__rc_send_close(ep, conn); break;
    case CCI_CONN_DUE_TIMED_OUT: cci__rc_timed_out(ep, conn); break;
    case CCI_CONN_DUE_FORGOTTEN: cci__rc_forgotten(ep, conn); break;
    case CCI_CONN_DUE_IDLE: cci__rc_idle(ep, conn); break;
    }
}

/* A connection's timer has come, perhaps too early. */
static void cci__rc_timeout(cci__rc *ep, cci__rc_conn *conn) {
    if (CCI__LINGERS(&conn->conn) && cci__endpoint_lingers_until(&ep->base, &conn->conn) <= ep->base.now_ns) {
        cci__endpoint_end_linger(&ep->base, &conn->conn);
        return;
    }
    if (conn->conn.state == CCI_CONN_OPEN)
        cci__rc_look_after(ep, conn);
    else if (conn->conn.deadline_ns <= ep->base.now_ns)
        cci__rc_step(ep, conn);
    else if (conn->conn.state == CCI_CONN_ACCEPTED && conn->retry_ns <= ep->base.now_ns)
        conn->retry_ns = CCI__NEVER;                                            /* it is the client that repeats */
    if (conn->phase == CCI__RC_DRAINING && conn->retry_ns <= ep->base.now_ns) { /* not all of it was flushed, or told */
        if (ep->empty_ns != CCI__RC_DRAIN_NS && !(conn->marks & CCI__RC_EMPTY) && conn->posted == conn->retired)
            ep->empty_ns = 0; /* this device does not tell */
        conn->retry_ns = CCI__NEVER;
        cci__rc_stop_waiting(ep, conn);
    }
}

static void cci__rc_timers(cci__rc *ep) {
    cci_timer_t *timer;
    while ((timer = cci__wheel_expire(&ep->base.wheel, ep->base.now_ns)) != NULL) {
        cci__rc_conn *conn = (cci__rc_conn *)(void *)CCI__CONTAINER(timer, cci_conn_t, timer);
        cci__rc_timeout(ep, conn);
        if (conn->conn.state != CCI_CONN_FREE) cci__rc_schedule(ep, conn);
    }
}

/* What a connection waits for comes no more. */
static void cci__rc_lose_device(cci__rc *ep, cci__rc_conn *conn) {
    switch (conn->conn.state) {
    case CCI_CONN_CONNECTING: cci__rc_connected(ep, conn, CCI_ERR_DEVICE_DEAD); return;
    case CCI_CONN_ACCEPTED: cci__rc_accepted(ep, conn, CCI_ERR_DEVICE_DEAD); return;
    case CCI_CONN_OPEN:
        if (conn->conn.flags & CCI__RC_AWAITING) {
            cci__rc_connected(ep, conn, CCI_ERR_DEVICE_DEAD);
            return;
        }
        break;
    case CCI_CONN_BROKEN:
    case CCI_CONN_CLOSING: break;
    default: return;
    }
    if (conn->conn.state == CCI_CONN_CLOSING) {
        conn->conn.flags |= CCI__RC_TOLD;
        conn->conn.deadline_ns = CCI__NEVER;
        cci__rc_fail(ep, conn, CCI_ERR_DEVICE_DEAD);
    } else {
        cci__rc_break(ep, conn, CCI_ERR_DEVICE_DEAD);
    }
    cci__rc_stop_waiting(ep, conn); /* nothing flushes it */
}

/* The device is gone and does not come back. */
static void cci__rc_die(cci__rc *ep) {
    uint32_t i;
    ep->base.is_dead = 1;
    for (i = 0; i < ep->base.conns.slab_count * CCI__CONN_SLAB; i++) cci__rc_lose_device(ep, cci__rc_at(ep, i));
    cci__rc_settle(ep);
}

/* ---- a completion queue, or the shared receive queue, that has failed ---- */

/* The next look at the device repairs it. */
static void cci__rc_broken(cci__rc *ep, const char *what, const char *reason) {
    char text[160];
    if (!ep->is_broken && (ep->repairs & (ep->repairs - 1)) == 0) { /* not each of many */
        snprintf(text, sizeof text, "%s%s%s", what, reason[0] ? ": " : "", reason);
        cci__verbs_log(CCI_LOG_WARN, ep->hw->port.device, text, 0);
    }
    ep->is_broken = 1;
    ep->base.check_ns = 0;
}

/* What the link is told of the device, and is not its own. */
static void cci__rc_on_event(void *user, const struct ibv_async_event *event) {
    cci__rc *ep = (cci__rc *)user;
    if (event->event_type == IBV_EVENT_CQ_ERR && event->element.cq == ep->cq)
        cci__rc_broken(ep, "the completion queue has failed", cci__ibv.event_type_str(event->event_type));
    else if (event->event_type == IBV_EVENT_SRQ_ERR && event->element.srq == ep->srq)
        cci__rc_broken(ep, "the shared receive queue has failed", cci__ibv.event_type_str(event->event_type));
    else if (event->event_type == IBV_EVENT_QP_LAST_WQE_REACHED)
        cci__rc_hear_empty(ep, event->element.qp);
}

/* Stops all pairs, takes what the old queue still has, and destroys them: what was not told is under way no more. */
static void cci__rc_stop_pairs(cci__rc *ep) {
    uint32_t i, turns;
    for (i = 0; i < ep->base.conns.slab_count * CCI__CONN_SLAB; i++) {
        cci__rc_conn *conn = cci__rc_at(ep, i);
        if (conn->conn.state != CCI_CONN_FREE && conn->qp) cci__rc_drain(ep, conn);
    }
    for (turns = 0; turns <= (ep->srq_depth + ep->sends) / CCI__RC_POLL && cci__rc_poll(ep) > 0; turns++) {
    }
    for (i = 0; i < ep->base.conns.slab_count * CCI__CONN_SLAB; i++) {
        cci__rc_conn *conn = cci__rc_at(ep, i);
        if (conn->conn.state != CCI_CONN_FREE && conn->qp) {
            cci__rc_stop_waiting(ep, conn);
            cci__rc_drop_qp(ep, conn);
        }
    }
}

/* The shared receive queue is a new one: all buffers that the old one had are to be posted, whatever came of them. */
static void cci__rc_reclaim_buffers(cci__rc *ep) {
    cci_evq_event_t *parked;
    cci__rc_buffer *buffer;
    for (parked = ep->parked; parked; parked = parked->next) parked->base.pub.type = CCI_EVENT_RECV; /* not of those */
    ep->repost_tail = &ep->repost;
    ep->repost_count = ep->posted_buffers = 0;
    for (buffer = ep->buffers; buffer; buffer = buffer->made_before) {
        if (buffer->event.base.pub.type == CCI_EVENT_NONE) {
            buffer->wr.next = NULL;
            *ep->repost_tail = &buffer->wr;
            ep->repost_tail = &buffer->wr.next;
            ep->repost_count++;
        }
    }
    for (parked = ep->parked; parked; parked = parked->next) parked->base.pub.type = CCI_EVENT_NONE;
    cci__rc_repost(ep);
}

static int cci__rc_make_queues(cci__rc *ep);
static void cci__rc_destroy_queues(cci__rc *ep, struct ibv_cq *cq, struct ibv_srq *srq);

/* Queue pairs can't change their queues, so all are made anew with new ones, as if each had failed: both sides count
 * messages, so what was sent is told or repeated, and where messages that came were lost, the peer notices. 0: there
 * are no new queues to be had. */
static int cci__rc_repair(cci__rc *ep) {
    struct ibv_cq *cq = ep->cq;
    struct ibv_srq *srq = ep->srq;
    if (ep->setups_running > 0 || (ep->repairs > 0 && ep->base.now_ns - ep->repaired_ns < CCI__VERBS_REPAIR_NS)) {
        ep->base.check_ns = 0; /* meanwhile no further set-up begins */
        return 1;
    }
    cci__rc_stop_pairs(ep);
    if (!cci__rc_make_queues(ep)) {
        cci__verbs_share_channel(ep->hw, cq);
        cci__rc_destroy_queues(ep, ep->cq, NULL);
        ep->cq = cq; /* they stay for those who look, until the endpoint ends */
        ep->srq = srq;
        return 0;
    }
    cci__rc_destroy_queues(ep, cq, srq);
    ep->repairs++;
    ep->repaired_ns = ep->base.now_ns;
    ep->is_broken = 0;
    cci__rc_reclaim_buffers(ep);
    cci__rc_settle(ep);
    cci__rc_call_workers(ep, ep->setups_waiting - 1);
    return 1;
}

/* The link has made its queue pair anew, and it has another number, or its port another LID: peers learn it. Who
 * doesn't hear learns it from the next packet. */
static void cci__rc_move(cci__rc *ep) {
    uint32_t i;
    ep->datagram_qp = ep->hw->qp->qp_num;
    ep->datagram_lid = ep->hw->port.lid;
    for (i = 0; i < ep->base.conns.slab_count * CCI__CONN_SLAB; i++) {
        cci__rc_conn *conn = cci__rc_at(ep, i);
        if (conn->conn.state == CCI_CONN_OPEN && conn->conn.pub.attribute <= CCI_CONN_ATTR_UU)
            cci__rc_tell(ep, conn, CCI__RC_PKT_PAIR, 0);
        else if (conn->conn.state == CCI_CONN_ACCEPTED)
            cci__rc_tell(ep, conn, CCI__PKT_ACCEPT, 0);
    }
}

static void cci__rc_check_device(cci__rc *ep) {
    (void)cci__endpoint_check_link(&ep->base); /* first: a repair that has to wait asks for the next look */
    if (ep->hw->qp && (ep->hw->qp->qp_num != ep->datagram_qp || ep->hw->port.lid != ep->datagram_lid)) cci__rc_move(ep);
    if (ep->is_broken && !ep->hw->is_dead && !cci__rc_repair(ep)) {
        cci__verbs_die(ep->hw); /* what can't be repaired has failed for good */
        (void)cci__endpoint_check_link(&ep->base);
    }
    if (ep->hw->is_dead && !ep->base.is_dead) cci__rc_die(ep);
}

/* Posts what has waited for company. */
static void cci__rc_post_ready(cci__rc *ep) {
    uint32_t last = ep->ready_last;
    while (ep->ready != CCI__CONN_NONE && !cci__rc_is_full(ep)) {
        cci__rc_conn *conn = cci__rc_at(ep, ep->ready);
        int is_last = ep->ready == last; /* what is made ready meanwhile has its turn in the next round */
        cci__rc_unlist(ep, conn);
        cci__rc_post(ep, conn);
        if (is_last) break;
    }
}

static void cci__rc_grow_buffers(cci__rc *ep);

/* Returns 1 when there may be more. */
static int cci__rc_receive(cci__rc *ep) {
    int i, count = ep->base.link->receive(ep->base.handle, ep->rx, CCI__RC_DATAGRAMS);
    if (count < 0) ep->base.check_ns = 0;
    for (i = 0; i < count; i++) cci__rc_input(ep, &ep->rx[i]);
    return count > 0;
}

/* Do the program's own calls make queue pairs, and is one to be made? */
static inline int cci__rc_works_itself(const cci__rc *ep) {
    return ep->setups_waiting > 0 && ep->worker_count == 0 && ep->setups_running == 0 && !ep->is_broken;
}

/* The part of a round of work that needs the clock. */
static void cci__rc_look_around(cci__rc *ep) {
    ep->base.now_ns = ep->base.link->now(ep->base.handle);
    ep->base.conns.resets = 0;
    cci__polls_looked(&ep->base.polls, ep->base.now_ns, CCI__RC_QUIET);
    if (ep->undated_count > 0) cci__rc_date(ep);
    if (cci__rc_receive(ep)) ep->base.polls.left = 0; /* look again in the next round */
    cci__rc_timers(ep);
    if (ep->base.now_ns >= ep->base.check_ns) cci__rc_check_device(ep);
}

/* Does anything wait for its turn? */
static inline int cci__rc_has_work(const cci__rc *ep) {
    uint32_t waits = ~(ep->ready & ep->drained) | ep->emptying | ep->setups_waiting; /* no index has all bits set */
    return waits != 0 || ep->posted_buffers < CCI__RC_ENOUGH_RECVS;
}

static void cci__rc_do_work(cci__rc *ep) {
    if (ep->drained != CCI__CONN_NONE || ep->emptying > 0) cci__rc_settle(ep);
    cci__rc_post_ready(ep);
    cci__rc_repost_some(ep);
    if (ep->posted_buffers < CCI__RC_FEW_RECVS && ep->total_buffers < ep->base.recv_buf_count) cci__rc_grow_buffers(ep);
    if (cci__rc_works_itself(ep)) (void)cci__rc_do_setup(ep); /* one in a round: traffic has its turn */
}

/* One round of work. `thorough`: the program has nothing else to do. `first`: as with cci__rc_poll_here(). */
static CCI__HOT_PATH inline void cci__rc_pump(cci__rc *ep, int thorough, cci_evq_event_t **first) {
    (void)cci__rc_poll_here(ep, first);
    if (cci__polls_look(&ep->base.polls) || thorough) cci__rc_look_around(ep);
    if (CCI__UNLIKELY(cci__rc_has_work(ep))) cci__rc_do_work(ep);
}

/* ---- the OS handle, waiting, and the helper thread ---- */

static uint64_t cci__rc_deadline(cci__endpoint_t *base) {
    const cci__rc *ep = (const cci__rc *)base;
    int may_post = (ep->ready != CCI__CONN_NONE && !cci__rc_is_full(ep)) || cci__rc_works_itself(ep);
    uint64_t at = may_post || ep->drained != CCI__CONN_NONE ? 0 : cci__wheel_deadline(&base->wheel);
    return cci__min64(at, base->check_ns + 900 * CCI__MS);
}

static int cci__rc_messages(cci__endpoint_t *base, const cci_evq_fifo_t **received, int *is_full) {
    const cci__rc *ep = (const cci__rc *)base;
    *received = &ep->received;
    *is_full = ep->received_total - ep->taken_total + base->evq.recv_out >= base->evq.recv_limit;
    return ep->received.head != NULL;
}

/* The last round has asked for a bell; what came before that rings none. */
static int cci__rc_has_come(cci__endpoint_t *base) {
    return cci__rc_poll((cci__rc *)base) > 0;
}

/* What came before the bell was asked for is taken too. */
static void cci__rc_work(cci__endpoint_t *base) {
    cci__rc_pump((cci__rc *)base, 1, NULL);
    (void)cci__rc_poll((cci__rc *)base);
}

#ifndef CCI_NO_WAKE
/* Could a send succeed that was refused? Also where it would fail for another reason. */
static int cci__rc_may_send(void *endpoint, const cci__refusal_t *refusal) {
    cci__rc *ep = (cci__rc *)endpoint;
    return cci__rc_at(ep, refusal->index)->conn.state != CCI_CONN_OPEN ||
           (ep->free_ops && ep->used_messages < ep->base.send_buf_count);
}
#endif

/* ---- the threads that make queue pairs ---- */

#ifndef CCI_NO_THREADS
static void *cci__rc_worker(void *arg) {
    cci__rc *ep = (cci__rc *)arg;
    cci__rc_lock(ep);
    while (!ep->base.stopping) {
        if (cci__rc_do_setup(ep)) {
            cci__endpoint_arm(&ep->base);
            continue;
        }
        cci__rc_unlock(ep);
        while (sem_wait(&ep->work) != 0) {
        }
        cci__rc_lock(ep);
    }
    cci__rc_unlock(ep);
    return NULL;
}

/* No signal of the program is handled there. */
static void cci__rc_add_worker(cci__rc *ep) {
    sigset_t all, before;
    (void)sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return;
    if (pthread_create(&ep->workers[ep->worker_count], NULL, cci__rc_worker, ep) == 0) ep->worker_count++;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void cci__rc_end_workers(cci__rc *ep) {
    uint32_t i, count;
    cci__rc_lock(ep);
    ep->base.stopping = 1;
    count = ep->worker_count;
    cci__rc_unlock(ep);
    for (i = 0; i < count; i++) (void)sem_post(&ep->work);
    for (i = 0; i < count; i++) (void)pthread_join(ep->workers[i], NULL);
    ep->worker_count = 0;
}
#endif

/* A set-up is in line, beside so many other connections. Where there is none, it is the program's own work, as it holds
 * up nobody: so a program with one connection and one thread keeps to that. */
static void cci__rc_call_workers(cci__rc *ep, uint32_t others) {
#ifndef CCI_NO_THREADS
    uint32_t i, wanted = cci__min32(ep->setups_waiting + ep->setups_running, ep->device.setups);
    if (ep->base.stopping || ep->setups_waiting == 0) return;
    if (others > 0 && ep->worker_count < wanted) cci__rc_add_worker(ep);
    for (i = 0; i < ep->worker_count; i++) (void)sem_post(&ep->work);
#else
    (void)ep;
    (void)others;
#endif
}

/* Waits until a BLOCKING operation is complete; its status. */
static int cci__rc_block(cci__rc *ep, cci__rc_op *op) {
    int status;
    cci__endpoint_block(&ep->base, &op->done);
    status = op->status;
    cci__rc_free_op(ep, op);
    return status;
}

/* ==================================================================================================================
 * >>verbs-rc-endpoint
 *
 * Making and ending an endpoint.
 * ================================================================================================================== */

static int cci__rc_add_ops(cci__rc *ep, uint32_t count) {
    cci__rc_op *ops = (cci__rc_op *)cci__rc_memory_of(ep, count * sizeof *ops, NULL);
    if (!ops) return 0;
    while (count-- > 0) {
        memset(&ops[count], 0, sizeof ops[count]);
        ops[count].event.base.endpoint = &ep->base.api;
        ops[count].event.pool = CCI_EVQ_OPERATION;
        cci__rc_free_op(ep, &ops[count]);
    }
    return 1;
}

/* Memory that could not be pinned is asked for again after a while. */
static int cci__rc_may_grow(const cci__rc *ep) {
    return ep->base.now_ns >= ep->grow_ns;
}

static int cci__rc_grown(cci__rc *ep, int has_grown) {
    ep->grow_ns = has_grown ? 0 : ep->base.now_ns + 1000 * CCI__MS;
    return has_grown;
}

/* Room for `count` more messages to be sent. */
static int cci__rc_add_messages(cci__rc *ep, uint32_t count) {
    struct ibv_mr *mr = NULL;
    uint8_t *data = (uint8_t *)cci__rc_memory_of(ep, (size_t)count * ep->stride, &mr);
    cci__rc_item *items = data ? (cci__rc_item *)cci__rc_memory_of(ep, count * sizeof *items, NULL) : NULL;
    if (!items || !cci__rc_add_ops(ep, count)) return 0;
    ep->total_messages += count;
    while (count-- > 0) {
        memset(&items[count], 0, sizeof items[count]);
        items[count].of.work.from = items[count].data = data + (size_t)count * ep->stride;
        items[count].of.work.lkey = items[count].own_lkey = mr->lkey;
        items[count].next = ep->free_messages;
        ep->free_messages = &items[count];
    }
    return 1;
}

static int cci__rc_add_rmas(cci__rc *ep, uint32_t count) {
    cci__rc_item *items = (cci__rc_item *)cci__rc_memory_of(ep, count * sizeof *items, NULL);
    if (!items || !cci__rc_add_ops(ep, count)) return 0;
    ep->total_rmas += count;
    while (count-- > 0) {
        items[count].kind = CCI__RC_WRITE_ITEM;
        cci__rc_free_item(ep, &items[count]);
    }
    return 1;
}

static cci__rc_buffer *cci__rc_make_buffers(cci__rc *ep, uint32_t count, uint32_t stride, struct ibv_mr **mr) {
    uint8_t *data = (uint8_t *)cci__rc_memory_of(ep, (size_t)count * stride, mr);
    cci__rc_buffer *buffers = data ? (cci__rc_buffer *)cci__rc_memory_of(ep, count * sizeof *buffers, NULL) : NULL;
    uint32_t i;
    if (!buffers) return NULL;
    memset(buffers, 0, count * sizeof *buffers);
    for (i = 0; i < count; i++) {
        cci__rc_buffer *buffer = &buffers[i];
        buffer->event.base.endpoint = &ep->base.api;
        buffer->event.pool = CCI_EVQ_RECV;
        buffer->event.state = mr != NULL;
        buffer->sge.addr = (uintptr_t)data + (size_t)i * stride;
        buffer->sge.length = stride;
        buffer->sge.lkey = mr ? (*mr)->lkey : 0;
        buffer->wr.wr_id = (uintptr_t)buffer;
        buffer->wr.sg_list = &buffer->sge;
        buffer->wr.num_sge = 1;
    }
    return buffers;
}

/* Room for copies of unreliable messages, as many as can be received of any kind; it is not pinned. */
static int cci__rc_add_plain(cci__rc *ep, uint32_t total) {
    uint32_t i, count = total > ep->total_plain ? total - ep->total_plain : 0;
    cci__rc_buffer *plain = count ? cci__rc_make_buffers(ep, count, ep->datagram, NULL) : NULL;
    if (count && !plain) return 0;
    for (i = 0; i < count; i++) {
        plain[i].event.next = ep->free_plain;
        ep->free_plain = &plain[i].event;
    }
    ep->total_plain += count;
    return 1;
}

/* Room for `count` more messages to be received. */
static int cci__rc_add_buffers(cci__rc *ep, uint32_t count) {
    struct ibv_mr *mr = NULL;
    cci__rc_buffer *buffers;
    uint32_t i;
    if (count > ep->srq_depth - ep->total_buffers) return 0;
    buffers = cci__rc_make_buffers(ep, count, ep->stride, &mr);
    if (!buffers) return 0;
    ep->total_buffers += count;
    ep->active_buffers += count;
    for (i = 0; i < count; i++) {
        buffers[i].made_before = ep->buffers;
        ep->buffers = &buffers[i];
        cci__rc_give_buffer(ep, &buffers[i]);
    }
    cci__rc_repost(ep);
    return 1;
}

/* Few of the receive buffers are left to the hardware, and there may be more. */
static void cci__rc_grow_buffers(cci__rc *ep) {
    uint32_t count = cci__min32(ep->base.recv_buf_count - ep->total_buffers, CCI__RC_MORE_RECVS);
    if (cci__rc_may_grow(ep)) (void)cci__rc_grown(ep, cci__rc_add_buffers(ep, count));
}

static int cci__rc_make_tables(cci__rc *ep, const uint64_t *keys) {
    uint8_t **slabs = (uint8_t **)cci__rc_memory_of(ep, CCI__CONN_SLABS * sizeof *slabs, NULL);
    cci_rma_region_t *regions = (cci_rma_region_t *)cci__rc_memory_of(ep, CCI__RC_REGIONS * sizeof *regions, NULL);
    uint64_t *seen = (uint64_t *)cci__rc_memory_of(ep, 2 * CCI__CONN_SEEN * sizeof *seen, NULL);
    uint32_t *buckets = (uint32_t *)cci_alloc(CCI__CONN_SLAB * sizeof *buckets);
    uint8_t *data = (uint8_t *)cci__rc_memory_of(ep, (size_t)CCI__RC_DATAGRAMS * ep->datagram, NULL);
    int i;
    ep->mrs = (struct ibv_mr **)cci__rc_memory_of(ep, CCI__RC_REGIONS * sizeof *ep->mrs, NULL);
    ep->by_start = (uint16_t *)cci__rc_memory_of(ep, CCI__RC_REGIONS * sizeof *ep->by_start, NULL);
    ep->qp_buckets = (uint32_t *)cci_alloc(CCI__CONN_SLAB * sizeof *ep->qp_buckets);
    if (!slabs || !regions || !seen || !buckets || !data || !ep->mrs || !ep->by_start || !ep->qp_buckets) {
        cci_release(buckets);
        return 0;
    }
    memset(ep->mrs, 0, CCI__RC_REGIONS * sizeof *ep->mrs);
    memset(ep->qp_buckets, 0xff, CCI__CONN_SLAB * sizeof *ep->qp_buckets);
    ep->qp_bucket_count = CCI__CONN_SLAB;
    cci_conn_table_init(&ep->base.conns, keys, (uint32_t)sizeof(cci__rc_conn), slabs);
    cci_conn_table_remembers(&ep->base.conns, seen);
    (void)cci_conn_rehash(&ep->base.conns, buckets, CCI__CONN_SLAB);
    ep->base.conns.prefix = ep->base.link->prefix;
    ep->base.conns.link = ep->base.handle;
    ep->base.conns.mtu = ep->base.info.base_mtu;
    ep->base.conns.accept_more = CCI__RC_STATE_SIZE;
    ep->regions = regions;
    cci_rma_table_init(&ep->rma, keys + 2, regions, CCI__RC_REGIONS, NULL, 0, NULL, 0, NULL, 0);
    ep->handle_key = keys[4];
    for (i = 0; i < CCI__RC_DATAGRAMS; i++) {
        ep->rx[i].data = data + (size_t)i * ep->datagram;
        ep->rx[i].capacity = ep->datagram;
    }
    return 1;
}

/* What the hardware can do, and what was configured. */
static int cci__rc_limits(cci__rc *ep) {
    struct ibv_device_attr attr;
    memset(&attr, 0, sizeof attr);
    if (cci__ibv.query_device(ep->context, &attr)) return 0;
    ep->depth = cci__min32(ep->device.rc_depth, (uint32_t)attr.max_qp_wr);
    ep->srq_depth = cci__min32(ep->device.srq_depth, (uint32_t)attr.max_srq_wr);
    ep->srq_depth = cci__min32(ep->srq_depth, (uint32_t)attr.max_cqe / 2);
    ep->sends = cci__min32(CCI__VERBS_RC_SENDS, (uint32_t)attr.max_cqe - ep->srq_depth);
    ep->rd_atomic = cci__min32(16, cci__min32((uint32_t)attr.max_qp_rd_atom, (uint32_t)attr.max_qp_init_rd_atom));
    ep->rd_atomic = cci__max32(ep->rd_atomic, 1);
    ep->resets_badly = attr.vendor_id == CCI__RC_RXE;
    ep->inline_asked = CCI__RC_INLINE;
    ep->may_relax = ep->device.relaxed_ordering;
    ep->base.send_buf_count = ep->base.info.send_buf_count ? ep->base.info.send_buf_count : CCI__RC_BUFS;
    ep->base.recv_buf_count =
        cci__min32(ep->base.info.recv_buf_count ? ep->base.info.recv_buf_count : CCI__RC_BUFS, ep->srq_depth);
    ep->base.send_timeout_us = ep->base.info.send_timeout_us ? ep->base.info.send_timeout_us : CCI__RC_SEND_TIMEOUT_US;
    ep->base.max_send_size = ep->base.api.pub.device->max_send_size;
    ep->stride = (ep->base.max_send_size + 63) & ~63u;
    ep->datagram = (cci__max32(ep->base.info.mtu, 256) + 63) & ~63u;
    return 1;
}

/* New ones; what there was before is the caller's. 0: at most the first could be made. */
static int cci__rc_make_queues(cci__rc *ep) {
    struct ibv_srq_init_attr attr;
    ep->srq = NULL;
    ep->cq = cci__verbs_make_cq(ep->hw, ep->srq_depth + ep->sends, ep, ep->hw->channel);
    if (!ep->cq) {
        cci__verbs_log_memory(CCI_LOG_ERROR, ep->hw->port.device, "no completion queue", errno, cci__rc_pinned(ep));
        return 0;
    }
    cci__verbs_share_channel(ep->hw, ep->cq);
    memset(&attr, 0, sizeof attr);
    attr.attr.max_wr = ep->srq_depth;
    attr.attr.max_sge = 1;
    ep->srq = cci__ibv.create_srq(ep->pd, &attr);
    if (!ep->srq) {
        cci__verbs_log_memory(CCI_LOG_ERROR, ep->hw->port.device, "no shared receive queue", errno, cci__rc_pinned(ep));
        return 0;
    }
    return 1;
}

/* Finds out, with a queue pair for nobody, how many bytes of a message a work request can have. 0: none can be made. */
static int cci__rc_try_pair(cci__rc *ep) {
    struct ibv_qp_init_attr attr;
    struct ibv_qp *qp;
    cci__rc_qp_attributes(ep, &attr);
    qp = cci__verbs_make_qp(ep->pd, &attr, &ep->inline_size);
    if (!qp) {
        cci__verbs_log_memory(CCI_LOG_ERROR, ep->hw->port.device, "no queue pair for connections", errno,
                              cci__rc_pinned(ep));
        return 0;
    }
    ep->inline_asked = attr.cap.max_inline_data;
    cci__verbs_check(ep->hw, cci__ibv.destroy_qp(qp), "destroying a queue pair");
    return 1;
}

/* Those that there are of the two. Nothing uses them any more. */
static void cci__rc_destroy_queues(cci__rc *ep, struct ibv_cq *cq, struct ibv_srq *srq) {
    if (srq) cci__verbs_check(ep->hw, cci__ibv.destroy_srq(srq), "destroying a shared receive queue");
    if (cq) cci__verbs_check(ep->hw, cci__ibv.destroy_cq(cq), "destroying a connections' completion queue");
}

static void cci__rc_free(cci__rc *ep) {
    uint32_t i;
    if (cci__rc_is_auto(ep)) (void)ep->base.datagrams->api.ops->destroy(&ep->base.datagrams->api);
    cci__verbs_drop(&ep->send_fd);
    for (i = 0; i < ep->base.conns.slab_count * CCI__CONN_SLAB; i++) {
        cci__rc_conn *conn = cci__rc_at(ep, i);
        if (conn->conn.state != CCI_CONN_FREE) {
            if (conn->qp)
                cci__verbs_check(ep->hw, cci__ibv.destroy_qp(conn->qp), "destroying a connection's queue pair");
            cci__rc_drop_atomics(conn);
            if (conn->conn.is_client && conn->in.asked) cci_release(conn->in.asked->answer);
            if (conn->conn.is_client) cci_release(conn->in.asked);
            cci__rc_drop_answer(ep, conn);
        }
    }
    while (ep->requests.next && !cci__list_empty(&ep->requests))
        cci__rc_free_request(ep, CCI__CONTAINER(ep->requests.next, cci__rc_request, node));
    for (i = 0; ep->mrs && i < CCI__RC_REGIONS; i++)
        if (ep->mrs[i]) cci__verbs_check(ep->hw, cci__ibv.dereg_mr(ep->mrs[i]), "deregistering a program's memory");
    if (ep->hw) {
        cci__verbs_share_channel(ep->hw, NULL);
        cci__rc_destroy_queues(ep, ep->cq, ep->srq);
    }
    for (i = 0; i < ep->base.conns.slab_count; i++) cci_release(ep->base.conns.slabs[i]);
    cci_release(ep->qp_buckets);
    while (ep->memory) {
        cci__rc_memory *block = ep->memory;
        ep->memory = block->next;
        if (block->mr) cci__verbs_check(ep->hw, cci__ibv.dereg_mr(block->mr), "deregistering memory");
        cci_release(block);
    }
    while (ep->setups) {
        cci__rc_setup *setup = ep->setups;
        ep->setups = setup->next;
        cci_release(setup);
    }
    cci__endpoint_free(&ep->base);
#ifndef CCI_NO_THREADS
    (void)sem_destroy(&ep->work);
#endif
    cci_release(ep);
}

static const cci_endpoint_ops_t *cci__rc_ops(void);
static const cci__engine_t *cci__rc_engine(void);
static const cci_endpoint_ops_t *cci__auto_ops(void);
static int cci__auto_open(cci__rc *ep, int wants_fd);

static void cci__rc_forked(cci_endpoint_base_t *base) {
    cci__endpoint_t *beside = ((cci__rc *)(void *)base)->base.datagrams;
    if (&beside->api != base) {
        beside->api.ops = base->ops;
        beside->api.forked(&beside->api);
        cci__verbs_drop(&((cci__rc *)(void *)base)->send_fd);
    }
    cci__verbs_forked(((cci__rc *)(void *)base)->base.handle);
    CCI__WAKES(cci__wakes_close(&((cci__rc *)(void *)base)->base.wakes));
}

static int cci__rc_open(cci__rc *ep, const char *service, int wants_fd) {
    uint64_t keys[5];
    int status;
#ifndef CCI_NO_NAMES
    char port[6];
    uint64_t name =
        cci_conn_named_port(service, service ? cci_service_name(ep->base.api.pub.device, service) : NULL, port);
    if (name) service = port;
#endif
    status = ep->base.link->open(ep->base.api.pub.device, service, wants_fd, &ep->base.handle, &ep->base.info);
    if (status != CCI_SUCCESS) return status;
    ep->hw = (cci__verbs_link *)ep->base.handle;
    ep->datagram_qp = ep->hw->qp->qp_num;
    ep->datagram_lid = ep->hw->port.lid;
    ep->hw->on_event = cci__rc_on_event;
    ep->hw->on_event_user = ep;
    ep->context = ep->hw->context;
    ep->pd = ep->hw->pd;
    if (!cci__rc_limits(ep) || cci_random(keys, sizeof keys) != CCI_SUCCESS) return CCI_ERROR;
    if (!cci__rc_make_queues(ep) || !cci__rc_try_pair(ep) || !cci__rc_make_tables(ep, keys)) return CCI_ENOMEM;
#ifndef CCI_NO_NAMES
    ep->base.conns.name = name;
#endif
    cci_evq_init(&ep->base.evq);
    ep->base.evq.recv_limit = ep->base.recv_buf_count;
    cci__rc_set_pace(ep);
    if (!cci__rc_add_messages(ep, ep->base.info.send_buf_count ? ep->base.send_buf_count : CCI__VERBS_RC_FIRST_SENDS) ||
        !cci__rc_add_rmas(ep, CCI__RC_RMAS) || !cci__rc_add_plain(ep, ep->base.recv_buf_count) ||
        !cci__rc_add_buffers(ep, ep->base.info.recv_buf_count
                                     ? ep->base.recv_buf_count
                                     : cci__min32(CCI__VERBS_RC_FIRST_RECVS, ep->base.recv_buf_count)))
        return CCI_ENOMEM;
    ep->base.now_ns = ep->base.link->now(ep->base.handle);
    cci__wheel_init(&ep->base.wheel, ep->base.now_ns);
    return CCI_SUCCESS;
}

static int cci__rc_create(cci_device_t *device, const char *service, cci_endpoint_base_t **endpoint,
                          cci_os_handle_t *fd) {
    cci__rc *ep = (cci__rc *)cci_alloc(sizeof *ep);
    uint32_t i;
    int status;
    if (!ep) return CCI_ENOMEM;
    memset(ep, 0, sizeof *ep);
    memcpy(&ep->device, cci_device_data(device), sizeof ep->device);
    cci__endpoint_init(&ep->base, cci__rc_engine(), device, fd != NULL);
    ep->base.api.ops = cci__rc_ops();
    ep->base.api.forked = cci__rc_forked;
    ep->base.scheme = "verbs";
    ep->base.link = &cci__verbs_link_table;
    ep->base.info.os_handle = -1;
    for (i = 0; i < CCI__RC_CHAIN; i++) ep->wr[i].sg_list = &ep->sge[i];
    ep->inline_wr.sg_list = &ep->inline_sge;
    ep->inline_wr.num_sge = 1;
    ep->inline_wr.opcode = IBV_WR_SEND_WITH_IMM;
    ep->inline_wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    ep->send_fd = -1;
    ep->empty_ns = CCI__RC_LAST_NS;
    ep->ready = ep->drained = CCI__CONN_NONE;
    ep->received.tail = &ep->received.head;
    ep->repost_tail = &ep->repost;
    ep->setups_tail = &ep->setups;
    cci__list_init(&ep->requests);
#ifndef CCI_NO_THREADS
    (void)sem_init(&ep->work, 0, 0);
#endif
    status = cci__rc_open(ep, service, fd != NULL);
    if (status == CCI_SUCCESS && ep->device.is_auto) status = cci__auto_open(ep, fd != NULL);
    ep->sleeps = ep->base.has_fd || ep->base.info.progress_thread;
    if (status != CCI_SUCCESS) {
        cci__rc_free(ep);
        return status;
    }
    CCI__TELLS(ep->base.link_state = *ep->base.info.state);
    if (fd) {
        *fd = ep->base.info.os_handle;
        cci__rc_pump(ep, 1, NULL);
        cci__endpoint_arm(&ep->base);
    }
    *endpoint = &ep->base.api;
#ifndef CCI_NO_THREADS
    if (ep->base.info.progress_thread && !cci__endpoint_start_thread(&ep->base, cci__endpoint_help)) {
        cci__rc_free(ep);
        return CCI_ENOMEM;
    }
#endif
    return CCI_SUCCESS;
}

/* Is there a peer that may think that the connection lives? */
static int cci__rc_has_listener(const cci__rc *ep, const cci__rc_conn *conn) {
    return conn->conn.pub.attribute <= CCI_CONN_ATTR_UU && cci_conn_has_peer(&conn->conn) && !ep->base.is_dead &&
           !(conn->conn.flags & (CCI__RC_AWAITING | CCI__RC_TOLD)) &&
           (conn->conn.state != CCI_CONN_BROKEN || conn->failure == CCI_ETIMEDOUT || conn->failure == CCI_ERR_RNR);
}

/* The endpoint ends. 1: the connection's peer is to be told. */
static int cci__rc_ends(cci__endpoint_t *base, cci_conn_t *of) {
    cci__rc *ep = (cci__rc *)base;
    cci__rc_conn *conn = (cci__rc_conn *)(void *)of;
    if (of->state == CCI_CONN_OPEN && (of->flags & CCI__RC_AWAITING)) {
        cci__rc_send_leave(ep, conn);
        return 0;
    }
    return cci__rc_has_listener(ep, conn) && of->state != CCI_CONN_CLOSING;
}

static int cci__rc_tell_close(cci__endpoint_t *base, cci_conn_t *conn) {
    if (conn->flags & CCI__RC_TOLD) return 0;
    cci__rc_tell((cci__rc *)base, (cci__rc_conn *)(void *)conn, CCI__PKT_CLOSE, 0);
    return 1;
}

static int cci__rc_receive_batch(cci__endpoint_t *base) {
    return cci__rc_receive((cci__rc *)base);
}

/* The last of it: what has come, peers may take as got. */
static void cci__rc_take_last(cci__rc *ep) {
    uint32_t i;
    cci__endpoint_stop_thread(&ep->base);
#ifndef CCI_NO_THREADS
    cci__rc_end_workers(ep);
#endif
    cci__rc_lock(ep);
    ep->base.stopping = 1;
    ep->base.now_ns = ep->base.link->now(ep->base.handle);
    for (i = 0; i <= ep->srq_depth / CCI__RC_POLL && cci__rc_poll(ep) > 0; i++) {
    }
}

static void cci__rc_leave(cci_endpoint_base_t *base) {
    cci__rc *ep = (cci__rc *)(void *)base;
    cci_endpoint_base_t *datagrams = cci__rc_is_auto(ep) ? &ep->base.datagrams->api : NULL;
    cci__rc_take_last(ep);
    cci__endpoint_tell_all(&ep->base);
    cci__rc_unlock(ep);
    if (datagrams) datagrams->ops->leave(datagrams);
}

static int cci__rc_destroy(cci_endpoint_base_t *base) {
    cci__rc *ep = (cci__rc *)(void *)base;
    uint32_t i;
    cci__rc_take_last(ep);
    cci__endpoint_close_all(&ep->base);
    for (i = 0; i < ep->base.group_count; i++)
        (void)ep->base.link->group(ep->base.handle, &ep->base.groups[i]->peer, 0);
    cci__rc_unlock(ep);
    cci__rc_free(ep);
    return CCI_SUCCESS;
}

/* ==================================================================================================================
 * >>verbs-rc-calls
 *
 * The operations of an endpoint. Parts: connecting; events; options; messages; messages from registered memory;
 * reliable messages; memory; remote memory access; the tables of operations; memory of another device.
 * ================================================================================================================== */

/* ---- connecting ---- */

/* Keeps the data of an answer for as long as its client may ask for it; NULL if there is no memory for it. */
static cci_conn_answer_t *cci__rc_keep_answer(const cci__rc *ep, const void *data, uint32_t data_len) {
    cci_conn_answer_t *answer =
        ep->answers_kept < CCI__RC_ANSWERS ? (cci_conn_answer_t *)cci_alloc(sizeof *answer + data_len) : NULL;
    if (!answer) return NULL;
    answer->data_len = data_len;
    memcpy(answer + 1, data, data_len);
    return answer;
}

/* What an accept needs: an event for its outcome, and a queue pair that is being made. A status. */
static int cci__rc_prepare_accept(cci__rc *ep, cci__rc_conn *conn, cci_evq_event_t **event) {
    if (ep->base.is_dead) return CCI_ERR_DEVICE_DEAD;
    *event = cci__endpoint_event(&ep->base);
    if (!*event) return CCI_ENOMEM;
    if (!cci__conn_is_reliable(&conn->conn) || cci__rc_begin_setup(ep, conn, NULL) == CCI_SUCCESS) return CCI_SUCCESS;
    cci_evq_return_event(&ep->base.evq, *event);
    return CCI_ENOMEM;
}

/* The answer, if there is one, is kept with the connection. */
static void cci__rc_attach_answer(cci__rc *ep, cci__rc_conn *conn, cci_evq_event_t *event, cci_conn_answer_t *answer) {
    conn->in.outcome = event;
    if (!answer) return;
    conn->conn.flags |= CCI__CONN_ANSWERS;
    ep->answers_kept++;
    if (event)
        event->owner = answer;
    else
        conn->in.answer = answer;
}

static int cci__rc_decide(cci__endpoint_t *base, cci_evq_event_t *request, int accepts, void *context, const void *data,
                          uint32_t data_len) {
    cci__rc *ep = (cci__rc *)base;
    cci__rc_conn *conn = (cci__rc_conn *)request->owner;
    cci_evq_event_t *event = NULL;
    cci_conn_answer_t *answer = NULL;
    int status;
    uint8_t type;
    if (data_len && (answer = cci__rc_keep_answer(ep, data, data_len)) == NULL) return CCI_ENOBUFS;
    status = accepts ? cci__rc_prepare_accept(ep, conn, &event) : (int)CCI_SUCCESS;
    if (status != CCI_SUCCESS) {
        cci_release(answer);
        return status;
    }
    cci__rc_attach_answer(ep, conn, event, answer);
    conn->conn.pub.context = context;
    type = cci_conn_decide(&ep->base.conns, &conn->conn, accepts, ep->base.now_ns);
    if (cci__rc_setup_of(conn))
        conn->conn.deadline_ns = CCI__NEVER; /* the client hears of it when its queue pair is there */
    else
        cci__rc_tell(ep, conn, type, 0);
    cci__rc_schedule(ep, conn);
    return CCI_SUCCESS;
}

static int cci__rc_connect(cci__endpoint_t *base, const cci__connect_t *call) {
    cci__rc *ep = (cci__rc *)base;
    cci_conn_pending_t *pending = cci__endpoint_pending(base, call);
    cci__rc_conn *conn = pending ? cci__rc_open_conn(ep, call->attribute, call->context) : NULL;
    int status = CCI_ENOMEM;
    if (conn) {
        conn->in.asked = pending;
        cci_conn_begin_connect(&conn->conn, &call->to, call->is_known, pending->give_up_ns, base->now_ns);
        conn->conn.flags = call->is_known ? 0 : CCI__RC_RESOLVING;
        if (base->conns.used > ep->device.rc_connections) conn->conn.flags |= CCI__RC_BEYOND;
        status = cci__endpoint_join(base, &conn->conn);
    }
    if (status != CCI_SUCCESS) {
        if (pending) cci_evq_return_event(&base->evq, (cci_evq_event_t *)pending->event);
        cci_release(pending);
        if (conn) cci__rc_discard(ep, conn);
        return status;
    }
    if (call->is_group) /* there is no server: it is open at once */
        cci__rc_connected(ep, conn, CCI_SUCCESS);
    else if (call->is_known)
        cci__rc_send_request(ep, conn);
    cci__rc_schedule(ep, conn);
    return CCI_SUCCESS;
}

static void cci__rc_disconnect(cci__endpoint_t *base, cci_conn_t *of) {
    cci__rc *ep = (cci__rc *)base;
    cci__rc_conn *conn = (cci__rc_conn *)(void *)of;
    if (!cci__rc_has_listener(ep, conn)) of->flags |= CCI__RC_TOLD;
    base->closing++;
    cci_conn_begin_close(of);
    of->deadline_ns = CCI__NEVER;
    of->keepalive_us = 0;
    if (!(of->flags & CCI__RC_TOLD)) cci__rc_send_close(ep, conn);
    cci__rc_fail(ep, conn, CCI_ERR_DISCONNECTED);
    cci__rc_settle(ep);
}

#ifndef CCI_NO_LINGER
static int cci__rc_is_busy(cci__endpoint_t *base, const cci_conn_t *conn) {
    (void)base;
    return ((const cci__rc_conn *)(const void *)conn)->newest != NULL;
}

static void cci__rc_linger(cci__endpoint_t *base, cci_conn_t *conn, uint64_t until_ns) {
    conn->deadline_ns = until_ns;
    cci__rc_schedule((cci__rc *)base, (cci__rc_conn *)(void *)conn);
}
#endif

/* ---- events ---- */

static void cci__rc_return_message(cci__rc *ep, cci_evq_event_t *event) {
    event->base.pub.type = CCI_EVENT_NONE;
    if (event->state) {
        cci__rc_give_buffer(ep, (cci__rc_buffer *)(void *)event);
    } else {
        event->next = ep->free_plain;
        ep->free_plain = event;
    }
}

/* Is it about a connection that the program has closed? */
static int cci__rc_is_stale(const cci_evq_event_t *event) {
    const cci__rc_conn *conn = (const cci__rc_conn *)event->owner;
    uint64_t token = event->pool == CCI_EVQ_RECV ? ((const cci__rc_buffer *)(const void *)event)->token
                                                 : ((const cci__rc_event *)(const void *)event)->token;
    return conn->conn.token != token || conn->conn.state == CCI_CONN_CLOSING || CCI__LINGERS(&conn->conn);
}

static int cci__rc_next_done(cci__rc *ep, cci_event_t **event) {
    cci_evq_event_t *next;
    while ((next = cci_evq_next(&ep->base.evq.done)) != NULL) {
        if (next->pool == CCI_EVQ_OPERATION || !cci__rc_is_stale(next)) {
            if (CCI__UNLIKELY(next->pool == CCI_EVQ_OPERATION && ((cci__rc_op *)(void *)next)->is_first)) {
                ((cci__rc_conn *)(void *)(uintptr_t)next->base.pub.send.connection)->marks &=
                    (uint8_t) ~(CCI__RC_CANCELLED | CCI__RC_MARKED); /* all starts afresh */
            }
            if (next->pool != CCI_EVQ_OPERATION) cci__event_give_disconnect(next);
            *event = &next->base.pub;
            return CCI_SUCCESS;
        }
        cci_evq_return_event(&ep->base.evq, next);
    }
    return CCI_EAGAIN;
}

#ifndef CCI_NO_STATS
static void cci__rc_tally_taken(const cci__rc *ep, const cci_evq_event_t *event) {
    const cci__rc_conn *conn = (const cci__rc_conn *)event->owner;
    cci__tally_taken(&ep->base.tallies, conn->conn.index, event->base.pub.recv.len);
}
#endif

/* A message, or when there is none what comes behind all of them; what is not for the program is dropped. */
static int cci__rc_next_of_any(cci__rc *ep, cci_event_t **event) {
    cci_evq_event_t *next;
    while ((next = ep->received.head) != NULL) {
        int is_stale = cci__rc_is_stale(next), is_message = next->pool == CCI_EVQ_RECV;
        if (is_message && !is_stale && ep->base.evq.recv_out >= ep->base.evq.recv_limit) return CCI_ENOBUFS;
        if ((ep->received.head = next->next) == NULL) ep->received.tail = &ep->received.head;
        ep->taken_total++;
        if (CCI__LIKELY(is_message && !is_stale)) {
            CCI__STATS(if (ep->base.tallies.counted) cci__rc_tally_taken(ep, next));
            ep->base.evq.recv_out++;
            *event = &next->base.pub;
            return CCI_SUCCESS;
        }
        if (is_message) {
            cci__rc_return_message(ep, next);
        } else if (is_stale) {
            cci_evq_return_event(&ep->base.evq, next);
        } else { /* a connection's end: its messages have gone before it, and now its completions do */
            next->state = ep->taken_total;
            cci_evq_post(&ep->base.evq.done, next);
        }
    }
    return cci__rc_next_done(ep, event);
}

static int cci__rc_next_urgent(cci__rc *ep, cci_event_t **event) {
    cci_evq_event_t *next;
    while ((next = cci_evq_next(&ep->base.evq.urgent)) != NULL) {
        if (next->pool == CCI_EVQ_STATUS) {
            if (!cci__notices_hand_out(&ep->base.notices, &ep->base.evq, next)) continue;
            *event = &next->base.pub;
            return CCI_SUCCESS;
        }
        if (next->base.pub.type != CCI_EVENT_KEEPALIVE_TIMEDOUT || !cci__rc_is_stale(next)) {
            *event = &next->base.pub;
            return CCI_SUCCESS;
        }
        cci_evq_return_event(&ep->base.evq, next);
    }
    return CCI_EAGAIN;
}

static inline int cci__rc_next_message(cci__rc *ep, cci_event_t **event) {
    cci_evq_event_t *next = ep->received.head;
    if (CCI__LIKELY(next && next->pool == CCI_EVQ_RECV && ep->base.evq.recv_out < ep->take_quickly &&
                    !cci__rc_is_stale(next))) {
        if ((ep->received.head = next->next) == NULL) ep->received.tail = &ep->received.head;
        ep->taken_total++;
        ep->base.evq.recv_out++;
        *event = &next->base.pub;
        return CCI_SUCCESS;
    }
    return cci__rc_next_of_any(ep, event);
}

/* Completions and messages as they came; a completion comes before messages that the program leaves no space for. */
static int cci__rc_next_in_order(cci__rc *ep, cci_event_t **event) {
    int status = CCI_ENOBUFS;
    if ((int32_t)(ep->base.evq.done.head->state - ep->taken_total) > 0) {
        status = cci__rc_next_message(ep, event);
        if (status != CCI_ENOBUFS) return status;
    }
    if (cci__rc_next_done(ep, event) == CCI_SUCCESS) return CCI_SUCCESS;
    return cci__rc_next_message(ep, event);
}

/* Takes an event that is there: of connections first. */
static CCI__HOT_PATH inline int cci__rc_next(cci__rc *ep, cci_event_t **event) {
    if (CCI__UNLIKELY(ep->base.evq.urgent.head != NULL) && cci__rc_next_urgent(ep, event) == CCI_SUCCESS)
        return CCI_SUCCESS;
    ep->turn++;
    return ep->base.evq.done.head ? cci__rc_next_in_order(ep, event) : cci__rc_next_message(ep, event);
}

/* There is no event, and the program may go to sleep now. */
static int cci__rc_next_before_sleep(cci__rc *ep, cci_event_t **event) {
    cci__rc_work(&ep->base);
    return cci__rc_next(ep, event);
}

static int cci__rc_get_event(cci_endpoint_base_t *base, cci_event_t **event) {
    cci__rc *ep = (cci__rc *)(void *)base;
    cci_evq_event_t *first = NULL;
    int status = CCI_EAGAIN;
    cci__rc_lock(ep);
    if ((ep->base.evq.urgent.head || ep->base.evq.done.head || ep->received.head) &&
        (ep->turn & 63) != 63) /* the network has its turn all the same */
        status = cci__rc_next(ep, event);
    if (status != CCI_SUCCESS) {
        cci__rc_pump(ep, 0, &first);
        status = CCI__LIKELY(first != NULL) ? (int)CCI_SUCCESS : cci__rc_next(ep, event);
        if (first) *event = &first->base.pub;
        if (status == CCI_EAGAIN && ep->base.has_fd) status = cci__rc_next_before_sleep(ep, event);
    }
    if (status != CCI_SUCCESS) {
        *event = NULL;
        if (ep->base.evq.recv_out > 0 && ep->base.evq.recv_out >= ep->base.evq.recv_limit)
            status = CCI_ENOBUFS; /* the program holds what messages are received in */
    }
    ep->base.os_handle.is_awake = status == CCI_SUCCESS;
    if (CCI__UNLIKELY(ep->sleeps)) cci__endpoint_arm(&ep->base);
    cci__rc_unlock(ep);
    return status;
}

static uint64_t cci__rc_next_deadline(cci__endpoint_t *base) {
    cci__rc *ep = (cci__rc *)base;
    if (ep->undated_count > 0) cci__rc_date(ep);
    return ep->received.head && base->evq.recv_out < base->evq.recv_limit ? 0 : cci__rc_deadline(base);
}

static int cci__rc_return_locked(cci__rc *ep, cci_evq_event_t *event) {
    if (event->pool == CCI_EVQ_OPERATION) {
        cci__rc_free_op(ep, (cci__rc_op *)(void *)event);
        return CCI_SUCCESS;
    }
    if (event->base.pub.type == CCI_EVENT_NONE) return CCI_EINVAL;
    if (event->pool == CCI_EVQ_STATUS) {
        cci__notices_return(&ep->base.notices, &ep->base.evq, event);
        cci__endpoint_arm(&ep->base); /* there may be more to tell */
        return CCI_SUCCESS;
    }
    if (event->base.pub.type == CCI_EVENT_CONNECT_REQUEST) {
        if (event->state == 0) return CCI_EINVAL;
        cci__rc_free_request(ep, (cci__rc_request *)(void *)event);
        return CCI_SUCCESS;
    }
    if (event->pool == CCI_EVQ_CONTROL) {
        if (event->base.pub.type == CCI_EVENT_CONNECT)
            cci_release(cci_conn_take_answer(event->base.pub.connect.data_ptr));
        cci_evq_return_event(&ep->base.evq, event);
        return CCI_SUCCESS;
    }
    ep->base.evq.recv_out--;
    cci__rc_return_message(ep, event);
    return CCI_SUCCESS;
}

static int cci__rc_return_event(cci_event_base_t *base) {
    cci__rc *ep = (cci__rc *)(void *)base->endpoint;
    int status;
    cci__rc_lock(ep);
    status = cci__rc_return_locked(ep, (cci_evq_event_t *)(void *)base);
    cci__rc_unlock(ep);
    return status;
}

/* ---- options ---- */

static int cci__rc_set_send_count(cci__endpoint_t *base, uint32_t count) {
    cci__rc *ep = (cci__rc *)base;
    if (count == 0 || count > CCI__RC_MAX_BUFS) return CCI_ERANGE;
    if (count > ep->total_messages && !cci__rc_add_messages(ep, count - ep->total_messages)) return CCI_ENOMEM;
    ep->base.send_buf_count = count;
    cci__rc_set_pace(ep);
    return CCI_SUCCESS;
}

/* Buffers that are posted can't be taken back: they are parked as they return. */
static int cci__rc_set_recv_count(cci__endpoint_t *base, uint32_t count) {
    cci__rc *ep = (cci__rc *)base;
    if (count == 0 || count > ep->srq_depth) return CCI_ERANGE;
    ep->base.recv_buf_count = count;
    while (ep->parked && ep->active_buffers < count) {
        cci__rc_buffer *buffer = (cci__rc_buffer *)(void *)ep->parked;
        ep->parked = buffer->event.next;
        ep->active_buffers++;
        cci__rc_give_buffer(ep, buffer);
    }
    cci__rc_repost(ep);
    if ((count > ep->total_buffers && !cci__rc_add_buffers(ep, count - ep->total_buffers)) ||
        !cci__rc_add_plain(ep, count)) {
        ep->base.recv_buf_count = cci__min32(ep->total_buffers, ep->total_plain);
        return CCI_ENOMEM;
    }
    ep->base.evq.recv_limit = count;
    cci__rc_set_pace(ep);
    return CCI_SUCCESS;
}

#ifndef CCI_NO_STATS
static int cci__rc_set_counting(cci__endpoint_t *base, uint32_t value) {
    cci__rc *ep = (cci__rc *)base;
    int status = cci__tallies_set(&ep->base.tallies, value, ep->base.conns.slab_count);
    cci__rc_set_pace(ep);
    return status;
}
#endif

static void cci__rc_caps(cci__endpoint_t *base, const cci_conn_t *conn, cci_caps_t *caps) {
    (void)conn;
    *caps = cci__rc_device_caps;
    caps->max_send_size = base->max_send_size;
    caps->max_recv_bufs = ((const cci__rc *)base)->srq_depth;
}

#ifndef CCI_NO_STATS
/* What there is now. */
static void cci__rc_endpoint_stats(cci__endpoint_t *base, cci_endpt_stats_t *stats) {
    const cci__rc *ep = (const cci__rc *)base;
    const cci_evq_event_t *event;
    uint32_t i;
    stats->connections_active = ep->pairs;
    stats->events_waiting += cci_evq_count(&ep->received);
    stats->recv_buffers_used = base->evq.recv_out;
    for (event = ep->received.head; event; event = event->next) stats->recv_buffers_used += event->pool == CCI_EVQ_RECV;
    stats->send_buffers_used = ep->used_messages;
    for (i = 0; i < base->conns.slab_count * CCI__CONN_SLAB; i++) { /* accepted, but the peer's pair is not ready */
        const cci_conn_t *conn = cci_conn_at(&base->conns, i);
        uint32_t is_opening = conn->state == CCI_CONN_OPEN && (conn->flags & CCI__RC_AWAITING) != 0;
        stats->connections_open -= is_opening;
        stats->connections_opening += is_opening;
    }
}

static void cci__rc_connection_stats(cci__endpoint_t *base, const cci_conn_t *of, cci_conn_stats_t *stats) {
    const cci__rc_conn *conn = (const cci__rc_conn *)(const void *)of;
    const cci__rc_item *item = cci__rc_oldest(conn), *newest = conn->newest;
    if (base->tallies.counted) cci__tally_tell(cci__tally_at(&base->tallies, of->index), stats);
    for (; item; item = item == newest ? NULL : item->next)
        stats->operations_pending += !item->is_done && !item->has_message; /* an RMA and its message are one */
    if (of->pub.attribute <= CCI_CONN_ATTR_UU) stats->silent_ns = cci__rc_silent_ns((const cci__rc *)base, conn);
    stats->is_active = conn->qp != NULL;
}
#endif

/* ---- messages ---- */

/* An operation for a completion, NULL if none is wanted; *status is CCI_ENOBUFS if there is none to be had. */
static inline cci__rc_op *cci__rc_new_op(cci__rc *ep, cci__rc_conn *conn, void *context, int flags, int *status) {
    cci__rc_op *op = (cci__rc_op *)(void *)ep->free_ops;
    *status = CCI_SUCCESS;
    if ((flags & (CCI_FLAG_SILENT | CCI_FLAG_BLOCKING)) == CCI_FLAG_SILENT) return NULL;
    if (CCI__UNLIKELY(!op)) {
        *status = CCI_ENOBUFS;
        return NULL;
    }
    ep->free_ops = op->event.next;
    op->event.base.pub.send.type = CCI_EVENT_SEND;
    op->event.base.pub.send.connection = &conn->conn.pub;
    op->event.base.pub.send.context = context;
    op->blocking = (flags & CCI_FLAG_BLOCKING) != 0;
    op->done = op->is_first = 0;
    return op;
}

/* More items for messages. 0: there are as many as there may be, or there is no memory. */
static int cci__rc_more_messages(cci__rc *ep) {
    uint32_t more = cci__min32(ep->base.send_buf_count - ep->total_messages, CCI__RC_MORE_SENDS);
    return ep->used_messages < ep->base.send_buf_count && cci__rc_may_grow(ep) &&
           cci__rc_grown(ep, cci__rc_add_messages(ep, more));
}

/* The same for a message that needs a closer look; 0: there is none to be had. */
static CCI__RARE int cci__rc_look_closer(cci__rc *ep, const cci__rc_conn *conn, uint32_t length) {
    if ((!ep->free_messages || ep->used_messages >= ep->base.send_buf_count) && !cci__rc_more_messages(ep)) return 0;
    CCI__STATS(if (ep->base.tallies.counted) cci__tally_issued(&ep->base.tallies, conn->conn.index, length));
    (void)conn, (void)length;
    return 1;
}

/* The item of a message, which is accepted with that; NULL if there is none to be had. */
static inline cci__rc_item *cci__rc_new_item(cci__rc *ep, const cci__rc_conn *conn, uint32_t length) {
    cci__rc_item *item = ep->free_messages;
    if (CCI__UNLIKELY(!item || ep->used_messages >= ep->send_quickly)) {
        if (!cci__rc_look_closer(ep, conn, length)) return NULL;
        item = ep->free_messages;
    }
    ep->free_messages = item->next;
    ep->used_messages++;
    item->op = NULL;
    item->of.work.length = length;
    item->of.work.at = item->of.work.base = 0;
    item->kind = CCI__RC_MESSAGE_ITEM;
    item->is_posted = item->is_done = item->is_fenced = item->has_message = item->is_withdrawn = item->is_wake = 0;
    return item;
}

/* Takes a message's bytes. */
static void cci__rc_take_bytes(cci__rc_item *item, const struct iovec *data, uint32_t count) {
    uint8_t *to = item->data;
    uint32_t i;
    for (i = 0; i < count; i++) {
        if (data[i].iov_len > 0) {
            memcpy(to, data[i].iov_base, data[i].iov_len);
            to += data[i].iov_len;
        }
    }
}

/* An unreliable message: it is complete when the link has it. */
static int cci__rc_send_unreliable(cci__rc *ep, cci__rc_conn *conn, const struct iovec *data, uint32_t count,
                                   uint32_t length, cci__rc_op *op, int flags) {
    cci__rc_item *item = cci__rc_new_item(ep, conn, length);
    uint8_t head[CCI__HEADER_SIZE];
    cci_link_tx_t tx;
    int is_group = conn->conn.pub.attribute == CCI_CONN_ATTR_UU_MC_TX, sent, status = CCI_SUCCESS;
    if (!item) return CCI_ENOBUFS;
    cci__rc_take_bytes(item, data, count);
    cci_conn_write_header(head, is_group ? CCI__PKT_GROUP : CCI__PKT_DATA, 0, is_group ? 0 : conn->conn.peer_index,
                          is_group ? 0 : conn->conn.peer_token, is_group ? 0 : conn->conn.index,
                          (flags & CCI_FLAG_WAKE) != 0);
    memset(&tx, 0, sizeof tx);
    tx.to = &conn->conn.peer;
    tx.length = CCI__HEADER_SIZE + length;
    tx.piece_count = length > 0 ? 2 : 1;
    tx.piece[0].data = head;
    tx.piece[0].length = CCI__HEADER_SIZE;
    tx.piece[1].data = item->data;
    tx.piece[1].length = length;
    sent = ep->base.link->send(ep->base.handle, &tx, 1);
    cci__rc_free_item(ep, item);
    if (sent != 1) {
        CCI__STATS(if (ep->base.tallies.counted) cci__tally_refused(&ep->base.tallies, conn->conn.index, length));
        return CCI_ENOBUFS;
    }
    if (op) {
        cci__rc_complete_op(ep, op, CCI_SUCCESS);
        if (flags & CCI_FLAG_BLOCKING) {
            status = op->status;
            cci__rc_free_op(ep, op);
        }
    }
    return status;
}

/* ---- messages from registered memory ----
 *
 * What the program has registered with cci_rma_register() is known by its address, and the only memory that a message
 * leaves without a copy: the program has promised that it stays where it is until cci_rma_deregister(). Nothing is
 * registered on the program's behalf and kept, for nobody tells when memory is unmapped and mapped anew. A message that
 * is under way when its memory is deregistered gets a copy, and its pair is made anew: then the peer tells whether it
 * has it. */

/* How many registrations begin at or before an address. */
static uint32_t cci__rc_count_before(const cci__rc *ep, uintptr_t address) {
    uint32_t low = 0, high = ep->listed;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if ((uintptr_t)ep->regions[ep->by_start[middle]].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void cci__rc_enlist_region(cci__rc *ep, uint32_t region) {
    uint32_t at = cci__rc_count_before(ep, (uintptr_t)ep->regions[region].start);
    memmove(&ep->by_start[at + 1], &ep->by_start[at], (ep->listed++ - at) * sizeof *ep->by_start);
    ep->by_start[at] = (uint16_t)region;
}

static void cci__rc_delist_region(cci__rc *ep, uint32_t region) {
    uint32_t at = 0;
    while (at < ep->listed && ep->by_start[at] != region) at++;
    if (at == ep->listed) return; /* a device's memory */
    memmove(&ep->by_start[at], &ep->by_start[at + 1], (--ep->listed - at) * sizeof *ep->by_start);
}

/* A registration that a message's bytes are in, NULL if none was found. */
static cci_rma_region_t *cci__rc_registered(const cci__rc *ep, const void *bytes, uint64_t length) {
    uintptr_t address = (uintptr_t)bytes;
    uint32_t at = cci__rc_count_before(ep, address), tries;
    for (tries = 0; at > 0 && tries < CCI__RC_BORROW_TRIES; tries++) {
        cci_rma_region_t *region = &ep->regions[ep->by_start[--at]];
        uint64_t offset = address - (uintptr_t)region->start;
        if (offset <= region->length && length <= region->length - offset) return region;
    }
    return NULL;
}

/* Lets a message leave from where it is. 0: it has to be copied. */
static int cci__rc_borrow(cci__rc *ep, cci__rc_item *item, const struct iovec *data, uint32_t count) {
    cci_rma_region_t *region;
    if (count != 1 || item->of.work.length < CCI__RC_BORROW) return 0;
    region = cci__rc_registered(ep, data->iov_base, item->of.work.length);
    if (!region) return 0;
    item->of.work.from = (const uint8_t *)data->iov_base;
    item->of.work.region = (uint32_t)(region - ep->regions);
    item->of.work.lkey = ep->mrs[item->of.work.region]->lkey;
    item->is_borrowed = 1;
    ep->borrowed++;
    return 1;
}

/* Memory is about to be deregistered: the messages of a connection that are in it get copies. */
static void cci__rc_copy_borrowed(cci__rc *ep, cci__rc_conn *conn, uint32_t region) {
    cci__rc_item *item = cci__rc_oldest(conn), *newest = conn->newest;
    int is_used = 0;
    while (item) {
        if (item->kind == CCI__RC_MESSAGE_ITEM && item->is_borrowed && item->of.work.region == region) {
            memcpy(item->data, item->of.work.from, (size_t)item->of.work.length);
            cci__rc_end_borrowing(ep, item);
            is_used |= item->is_posted && !item->is_done;
        }
        item = item == newest ? NULL : item->next;
    }
    if (is_used && conn->phase == CCI__RC_PAIRED) cci__rc_drain(ep, conn);
}

static void cci__rc_stop_borrowing(cci__rc *ep, uint32_t region) {
    uint32_t i;
    while (ep->borrowed > 0 && cci__rc_poll(ep) > 0) {
    }
    for (i = 0; ep->borrowed > 0 && i < ep->base.conns.slab_count * CCI__CONN_SLAB; i++) {
        cci__rc_conn *conn = cci__rc_at(ep, i);
        if (conn->conn.state != CCI_CONN_FREE) cci__rc_copy_borrowed(ep, conn, region);
    }
}

/* ---- reliable messages ---- */

/* May a message be posted at once? Nothing waits before it, and the hardware has little to do. */
static inline int cci__rc_is_free(const cci__rc *ep, const cci__rc_conn *conn) {
    return conn->phase == CCI__RC_PAIRED && !(conn->marks & CCI__RC_CANCELLED) && !conn->unposted &&
           conn->posted - conn->retired < CCI__RC_AT_ONCE && ep->under_way < ep->sends;
}

/* Sends a small message at once: its bytes go from the program's memory to the inside of the work request, and are
 * copied afterwards, for repeating it. */
static inline void cci__rc_send_inline(cci__rc *ep, cci__rc_conn *conn, cci__rc_item *item, const void *bytes) {
    struct ibv_send_wr *bad = NULL;
    uint32_t number = conn->posted++;
    int error;
    ep->inline_wr.wr_id = cci__rc_wr_id(conn, number);
    ep->inline_wr.imm_data = htonl(conn->received);
    ep->inline_sge.addr = (uintptr_t)bytes;
    ep->inline_sge.length = (uint32_t)item->of.work.length;
    item->is_posted = 1;
    item->of.work.first = item->of.work.last = number;
    item->of.work.at = item->of.work.length;
    ep->under_way++;
    error = ibv_post_send(conn->qp, &ep->inline_wr, &bad);
    if (CCI__UNLIKELY(error)) cci__rc_refused(ep, conn, 1, error);
    memcpy(item->data, bytes, (size_t)item->of.work.length);
}

/* What is before it has ended with CCI_ERR_RNR, and the program does not know that yet: it ends so too. */
static inline void cci__rc_keep_gap(cci__rc *ep, cci__rc_conn *conn, cci__rc_item *item) {
    if (CCI__LIKELY(!(conn->marks & CCI__RC_CANCELLED))) return;
    cci__rc_end_item(conn, item, CCI_ERR_RNR);
    cci__rc_reap(ep, conn);
}

static int cci__rc_send_reliable(cci__rc *ep, cci__rc_conn *conn, const struct iovec *data, uint32_t count,
                                 uint32_t length, cci__rc_op *op, int flags) {
    cci__rc_item *item = cci__rc_new_item(ep, conn, length);
    if (CCI__UNLIKELY(!item)) return CCI_ENOBUFS;
    item->op = op;
    item->deadline_ns = cci__rc_deadline_of(ep, conn);
    if (CCI__LIKELY(count == 1 && length - 1 < ep->inline_size && !(flags & (CCI_FLAG_WAKE | CCI_FLAG_FENCE)) &&
                    cci__rc_is_free(ep, conn))) {
        cci__rc_enqueue(ep, conn, item);
        if (CCI__UNLIKELY(!(conn->marks & CCI__RC_UNDATED))) cci__rc_watch(ep, conn);
        cci__rc_send_inline(ep, conn, item, data->iov_base);
    } else {
        if (!(flags & CCI_FLAG_NO_COPY) || !cci__rc_borrow(ep, item, data, count))
            cci__rc_take_bytes(item, data, count);
        item->is_wake = (flags & CCI_FLAG_WAKE) != 0;
        item->is_fenced = (flags & CCI_FLAG_FENCE) != 0; /* the pair delivers it behind all writes, and now reads too */
        cci__rc_append(ep, conn, item);
        cci__rc_keep_gap(ep, conn, item);
        cci__rc_issued(ep, conn, 0);
    }
    return flags & CCI_FLAG_BLOCKING ? cci__rc_block(ep, op) : (int)CCI_SUCCESS;
}

static int cci__rc_send_locked(cci__rc *ep, cci__rc_conn *conn, const struct iovec *data, uint32_t count,
                               uint32_t length, void *context, int flags) {
    cci__rc_op *op;
    int status;
    if (CCI__UNLIKELY(conn->conn.state != CCI_CONN_OPEN))
        return ep->base.is_dead ? CCI_ERR_DEVICE_DEAD : CCI_ERR_DISCONNECTED;
    op = cci__rc_new_op(ep, conn, context, flags, &status);
    if (status != CCI_SUCCESS) return status;
    status = CCI__LIKELY(cci__conn_is_reliable(&conn->conn))
                 ? cci__rc_send_reliable(ep, conn, data, count, length, op, flags)
                 : cci__rc_send_unreliable(ep, conn, data, count, length, op, flags);
    if (status == CCI_ENOBUFS && op) cci__rc_free_op(ep, op);
    return status;
}

static int cci__rc_sendv(struct cci_connection *connection, const struct iovec *data, uint32_t count, void *context,
                         int flags) {
    cci__rc_conn *conn = (cci__rc_conn *)(void *)connection;
    cci__rc *ep = cci__rc_of(conn);
    uint64_t length = count > 0 ? data->iov_len : 0;
    uint32_t i;
    int status;
    if (length > connection->max_send_size) return cci__too_long();
    for (i = 1; i < count; i++) {
        if (data[i].iov_len > connection->max_send_size - length) return cci__too_long();
        length += data[i].iov_len;
    }
    cci__rc_lock(ep);
    status = cci__rc_send_locked(ep, conn, data, count, (uint32_t)length, context, flags);
    if (CCI__UNLIKELY(ep->sleeps)) {
        CCI__WAKES(if (ep->base.wakes.has_fd) cci__wakes_note(&ep->base.wakes, conn->conn.index % CCI__CONN_MOST,
                                                              (uint32_t)length, status == CCI_ENOBUFS));
        cci__endpoint_arm(&ep->base);
    }
    cci__rc_unlock(ep);
    return status;
}

/* ---- memory ----
 *
 * A handle, little-endian: tag 8, index of the registration 2, generation 2, rkey 4, address 8, length 6, rights 1,
 * generation 1. */

typedef struct cci__rc_handle {
    uint64_t tag, address, length;
    uint32_t region, rkey, rights;
} cci__rc_handle;

static uint64_t cci__rc_handle_tag(uint64_t key, const uint8_t *bytes) {
    uint64_t keys[2], words[3];
    keys[0] = key;
    keys[1] = ~key;
    words[0] = cci__load64(bytes + 8);
    words[1] = cci__load64(bytes + 16);
    words[2] = cci__load64(bytes + 24);
    return cci__siphash(keys, words, 3) | 1;
}

static void cci__rc_parse_handle(const struct cci_rma_handle *from, cci__rc_handle *handle) {
    const uint8_t *bytes = (const uint8_t *)from->stuff;
    handle->tag = cci__load64(bytes);
    handle->region = cci__load16(bytes + 8);
    handle->rkey = cci__load32(bytes + 12);
    handle->address = cci__load64(bytes + 16);
    handle->length = cci__load64(bytes + 24) & ((UINT64_C(1) << 48) - 1);
    handle->rights = bytes[30];
}

static void cci__rc_write_handle(cci__rc *ep, cci_rma_region_t *region, const struct ibv_mr *mr) {
    uint8_t *bytes = (uint8_t *)region->handle.stuff;
    cci__store16(bytes + 8, (uint32_t)(region - ep->regions));
    cci__store16(bytes + 10, (uint32_t)ep->rma.counter);
    cci__store32(bytes + 12, mr->rkey);
    cci__store64(bytes + 16, (uintptr_t)region->start);
    cci__store64(bytes + 24, region->length | (uint64_t)region->flags << 48 | (ep->rma.counter >> 16 & 255) << 56);
    region->key = cci__rc_handle_tag(ep->handle_key, bytes);
    cci__store64(bytes, region->key);
}

/* IBV_ACCESS_RELAXED_ORDERING and IBV_ACCESS_ON_DEMAND, which older headers don't have. */
#define CCI__RC_RELAXED (1 << 20)
#define CCI__RC_ON_DEMAND (1 << 6)

/* The status of a registration that the system has refused. */
static int cci__rc_refused_memory(const cci__rc *ep, const char *what, int error) {
    if (what && (error == EINVAL || error == EOPNOTSUPP || error == ENOSYS || error == EPROTONOSUPPORT)) {
        cci__verbs_log(CCI_LOG_ERROR, ep->hw->port.device, what, error);
        return CCI_ERR_NOT_IMPLEMENTED;
    }
    return error == ENOMEM || error == EAGAIN  ? CCI_ENOMEM
           : error == EFAULT || error == EBADF ? CCI_EINVAL
                                               : CCI_ENOBUFS;
}

/* Registrations are changed under the locks of both endpoints that use them. */
static void cci__rc_lock_beside(cci__rc *ep) {
    if (cci__rc_is_auto(ep)) cci__endpoint_lock(ep->base.datagrams);
}

static void cci__rc_unlock_beside(cci__rc *ep) {
    if (cci__rc_is_auto(ep)) cci__endpoint_unlock(ep->base.datagrams);
}

/* A registration is known from now on. Messages may leave from it if it is of the program's own memory. */
static int cci__rc_add_region(cci__rc *ep, void *start, uint64_t length, int flags, struct ibv_mr *mr, int is_memory,
                              cci_rma_handle_t **handle) {
    cci_rma_region_t *region;
    cci__rc_lock(ep);
    cci__rc_lock_beside(ep);
    region = cci_rma_add(&ep->rma, start, length, (uint32_t)flags & (CCI_FLAG_READ | CCI_FLAG_WRITE));
    if (region) {
        cci__rc_write_handle(ep, region, mr);
        ep->mrs[region - ep->regions] = mr;
        if (is_memory)
            cci__rc_enlist_region(ep, (uint32_t)(region - ep->regions));
        else
            region->flags = 0; /* atomics are for the processor, which has no such memory */
    }
    cci__rc_unlock_beside(ep);
    cci__rc_unlock(ep);
    if (!region) {
        cci__verbs_check(ep->hw, cci__ibv.dereg_mr(mr), "deregistering a program's memory");
        return CCI_ENOBUFS;
    }
    *handle = &region->handle;
    return CCI_SUCCESS;
}

static int cci__rc_access(int flags) {
    return (flags & CCI_FLAG_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0) |
           (flags & CCI_FLAG_READ ? IBV_ACCESS_REMOTE_READ : 0);
}

/* Registers memory that may take parts of an RMA in any order, where the system lets it. */
static struct ibv_mr *cci__rc_register(cci__rc *ep, void *start, uint64_t length, int access) {
    int may_relax = CCI__VERBS_LOAD(ep->may_relax);
    struct ibv_mr *mr = may_relax ? cci__ibv.reg_mr(ep->pd, start, (size_t)length, access | CCI__RC_RELAXED) : NULL;
    if (!mr && (!may_relax || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS)) {
        mr = cci__ibv.reg_mr(ep->pd, start, (size_t)length, access);
        if (mr && may_relax) CCI__VERBS_STORE(ep->may_relax, 0); /* it was refused for that alone */
    }
    return mr;
}

static int cci__rc_rma_register(cci_endpoint_base_t *base, void *start, uint64_t length, int flags,
                                cci_rma_handle_t **handle) {
    cci__rc *ep = (cci__rc *)(void *)base;
    int access = cci__rc_access(flags) | (ep->device.on_demand ? CCI__RC_ON_DEMAND : 0);
    struct ibv_mr *mr;
    if (length > UINTPTR_MAX - (uintptr_t)start || length >> 48 != 0) return CCI_EINVAL;
    mr = cci__rc_register(ep, start, length, access | IBV_ACCESS_LOCAL_WRITE);
    if (!mr && !(flags & CCI_FLAG_WRITE)) mr = cci__rc_register(ep, start, length, access); /* it may be read-only */
    return mr ? cci__rc_add_region(ep, start, length, flags, mr, 1, handle)
              : cci__rc_refused_memory(ep, ep->device.on_demand ? "the adapter has no on-demand paging" : NULL, errno);
}

static int cci__rc_rma_deregister(cci_endpoint_base_t *base, const struct cci_rma_handle *from) {
    cci__rc *ep = (cci__rc *)(void *)base;
    cci__rc_handle handle;
    cci_rma_region_t *region;
    struct ibv_mr *mr = NULL;
    cci__rc_parse_handle(from, &handle);
    cci__rc_lock(ep);
    region = cci_rma_find(&ep->rma, handle.tag, handle.region);
    if (region) {
        cci__rc_stop_borrowing(ep, handle.region);
        cci__rc_delist_region(ep, handle.region);
        mr = ep->mrs[handle.region];
        ep->mrs[handle.region] = NULL;
        cci__rc_lock_beside(ep);
        cci_rma_remove(&ep->rma, region);
        cci__rc_unlock_beside(ep);
    }
    cci__rc_unlock(ep);
    if (!region) return CCI_ERR_RMA_HANDLE;
    return cci__ibv.dereg_mr(mr) ? CCI_ERROR : CCI_SUCCESS;
}

/* ---- remote memory access ---- */

typedef struct cci__rc_call {
    cci__rc_handle local, remote;
    struct iovec message;
    uint64_t local_offset, remote_offset, length;
    void *context;
    int flags, has_message;
} cci__rc_call;

/* May the peer's memory be used so, as far as its handle says? */
static int cci__rc_is_permitted(const cci__rc_conn *conn, const cci__rc_call *call, const struct cci_rma_handle *from) {
    const cci__rc_handle *remote = &call->remote;
    uint32_t rights = (uint32_t)call->flags & (CCI_FLAG_READ | CCI_FLAG_WRITE);
    return remote->tag == cci__rc_handle_tag(conn->peer_key, (const uint8_t *)from->stuff) &&
           (remote->rights & rights) == rights && call->length <= remote->length &&
           call->remote_offset <= remote->length - call->length;
}

/* Is there an item for another RMA? */
static int cci__rc_may_rma(cci__rc *ep) {
    uint32_t most = cci__max32(ep->base.send_buf_count, CCI__RC_RMAS);
    return ep->free_rmas ||
           (ep->total_rmas < most && cci__rc_add_rmas(ep, cci__min32(most - ep->total_rmas, CCI__RC_MORE_RMAS)));
}

static cci__rc_item *cci__rc_new_rma(cci__rc *ep, cci__rc_conn *conn, uint8_t kind, int flags) {
    cci__rc_item *item = ep->free_rmas;
    ep->free_rmas = item->next;
    memset(item, 0, sizeof *item);
    item->kind = kind;
    item->is_fenced = (flags & CCI_FLAG_FENCE) != 0;
    item->deadline_ns = cci__rc_deadline_of(ep, conn);
    return item;
}

static int cci__rc_rma_locked(cci__rc *ep, cci__rc_conn *conn, const cci__rc_call *call,
                              const struct cci_rma_handle *remote) {
    uint8_t *local;
    cci__rc_item *item, *message = NULL;
    cci__rc_op *op;
    int status;
    if (conn->conn.state != CCI_CONN_OPEN) return ep->base.is_dead ? CCI_ERR_DEVICE_DEAD : CCI_ERR_DISCONNECTED;
    local = cci_rma_address(&ep->rma, call->local.tag, call->local.region, call->local_offset, call->length, 0);
    if (!local || !cci__rc_is_permitted(conn, call, remote)) return CCI_ERR_RMA_HANDLE;
    if (CCI__LISTS(call->flags & CCI_PIECE_CHECK)) return CCI_SUCCESS;
    if (!cci__rc_may_rma(ep)) return CCI_ENOBUFS;
    op = cci__rc_new_op(ep, conn, call->context, call->flags, &status);
    if (status == CCI_SUCCESS && call->has_message) {
        message = cci__rc_new_item(ep, conn, (uint32_t)call->message.iov_len);
        if (!message) {
            status = CCI_ENOBUFS;
            if (op) cci__rc_free_op(ep, op);
        }
    }
    if (status != CCI_SUCCESS) return status;
    if (CCI__LISTS(op && (call->flags & CCI_PIECE))) op->event.base.pub.send.type = CCI_EVENT_NONE;
    item = cci__rc_new_rma(ep, conn, call->flags & CCI_FLAG_READ ? CCI__RC_READ_ITEM : CCI__RC_WRITE_ITEM, call->flags);
    item->of.work.from = local;
    item->of.work.length = call->length;
    item->of.work.tag = call->local.tag;
    item->of.work.region = call->local.region;
    item->of.work.lkey = ep->mrs[call->local.region]->lkey;
    item->of.work.rkey = call->remote.rkey;
    item->of.work.remote = call->remote.address + call->remote_offset;
    item->op = message ? NULL : op;
    cci__rc_append(ep, conn, item);
    if (message) {
        cci__rc_take_bytes(message, &call->message, 1);
        item->has_message = 1;
        message->deadline_ns = item->deadline_ns;
        message->op = op;
        message->is_fenced = item->kind == CCI__RC_READ_ITEM;
        cci__rc_append(ep, conn, message);
        cci__rc_keep_gap(ep, conn, item);
    }
    CCI__STATS(if (ep->base.tallies.counted)
                   cci__tally_rma(cci__tally_at(&ep->base.tallies, conn->conn.index), call->flags, call->length));
    cci__rc_issued(ep, conn, 1);
    return call->flags & CCI_FLAG_BLOCKING ? cci__rc_block(ep, op) : (int)CCI_SUCCESS;
}

static int cci__rc_rma(struct cci_connection *connection, const void *msg, uint32_t msg_len,
                       const struct cci_rma_handle *local, uint64_t local_offset, const struct cci_rma_handle *remote,
                       uint64_t remote_offset, uint64_t length, void *context, int flags) {
    cci__rc_conn *conn = (cci__rc_conn *)(void *)connection;
    cci__rc *ep = cci__rc_of(conn);
    cci__rc_call call;
    int status;
    if (msg_len > connection->max_send_size) return cci__too_long();
    memset(&call, 0, sizeof call);
    cci__rc_parse_handle(local, &call.local);
    cci__rc_parse_handle(remote, &call.remote);
    call.message.iov_base = (void *)(uintptr_t)msg;
    call.message.iov_len = msg_len;
    call.has_message = msg != NULL && msg_len > 0;
    call.local_offset = local_offset;
    call.remote_offset = remote_offset;
    call.length = length;
    call.context = context;
    call.flags = flags;
    cci__rc_lock(ep);
    status = cci__rc_rma_locked(ep, conn, &call, remote);
    cci__endpoint_arm(&ep->base);
    cci__rc_unlock(ep);
    return status;
}

#ifndef CCI_NO_ATOMICS
static int cci__rc_atomic_locked(cci__rc *ep, cci__rc_conn *conn, const cci_atomic_call_t *call) {
    cci__rc_handle remote;
    cci__rc_item *item;
    cci__rc_op *op;
    int status;
    if (conn->conn.state != CCI_CONN_OPEN) return ep->base.is_dead ? CCI_ERR_DEVICE_DEAD : CCI_ERR_DISCONNECTED;
    if (!cci__rc_may_rma(ep) || !cci__rc_begin_atomics(conn)) return CCI_ENOBUFS;
    op = cci__rc_new_op(ep, conn, call->context, call->flags, &status);
    if (status != CCI_SUCCESS) return status;
    cci__rc_parse_handle(call->remote, &remote);
    item = cci__rc_new_rma(ep, conn, CCI__RC_ATOMIC_ITEM, call->flags);
    item->op = op;
    item->of.atomic.key = remote.tag;
    item->of.atomic.region = remote.region;
    item->of.atomic.offset = call->offset;
    item->of.atomic.previous = call->previous;
    item->of.atomic.width = call->width;
    item->of.atomic.operation = call->operation;
    item->of.atomic.operand = call->operand;
    item->of.atomic.compare = call->compare;
    item->of.atomic.number = 0;
    cci__rc_append(ep, conn, item);
    CCI__STATS(if (ep->base.tallies.counted)
                   cci__tally_rma(cci__tally_at(&ep->base.tallies, conn->conn.index), 0, call->width));
    if (conn->atomics & CCI__RC_PEER_DOES) {
        cci__rc_issued(ep, conn, 1);
    } else { /* it would not know what it is asked for */
        cci__rc_end_item(conn, item, CCI_ERR_RMA_OP);
        cci__rc_reap(ep, conn);
    }
    return call->flags & CCI_FLAG_BLOCKING ? cci__rc_block(ep, op) : (int)CCI_SUCCESS;
}

static int cci__rc_atomic(struct cci_connection *connection, const cci_atomic_call_t *call) {
    cci__rc_conn *conn = (cci__rc_conn *)(void *)connection;
    cci__rc *ep = cci__rc_of(conn);
    int status;
    cci__rc_lock(ep);
    status = cci__rc_atomic_locked(ep, conn, call);
    cci__endpoint_arm(&ep->base);
    cci__rc_unlock(ep);
    return status;
}
#endif

/* ---- the tables of operations ---- */

static const cci__engine_t *cci__rc_engine(void) {
    static const cci__engine_t table = {cci__endpoint_clock,
                                        NULL,
                                        NULL,
                                        cci__rc_work,
                                        cci__endpoint_arm,
                                        cci__endpoint_wake,
                                        cci__rc_next_deadline,
                                        cci__rc_messages,
#ifndef CCI_NO_WAKE
                                        cci__rc_may_send,
                                        cci__endpoint_choose,
#endif
                                        cci__rc_add_events,
                                        cci__rc_decide,
                                        cci__rc_disconnect,
#ifndef CCI_NO_LINGER
                                        cci__rc_is_busy,
                                        cci__rc_linger,
#endif
                                        cci__rc_set_send_count,
                                        cci__rc_set_recv_count,
#ifndef CCI_NO_STATS
                                        cci__rc_set_counting,
                                        cci__rc_endpoint_stats,
                                        cci__rc_connection_stats,
#endif
                                        NULL,
                                        NULL,
                                        cci__rc_begin_keepalive,
                                        cci__rc_post_keepalive,
                                        cci__endpoint_link_uri,
                                        cci__rc_caps,
                                        cci__rc_deadline,
                                        cci__rc_deadline,
                                        cci__rc_has_come,
                                        cci__rc_receive_batch,
                                        cci__rc_ends,
                                        cci__rc_tell_close,
                                        cci__rc_connect,
                                        200000,
                                        CCI__MS};
    return &table;
}

static const cci_endpoint_ops_t *cci__rc_ops(void) {
    static const cci_endpoint_ops_t table = {CCI__ENDPOINT_OPS(cci__rc_destroy, cci__endpoint_connect),
                                             cci__rc_get_event,
                                             cci__rc_return_event,
                                             CCI__ENDPOINT_OPTS,
                                             cci__rc_sendv,
                                             cci__rc_rma_register,
                                             cci__rc_rma_deregister,
                                             cci__rc_rma,
                                             NULL,
                                             NULL,
                                             cci__endpoint_answer,
                                             cci__endpoint_next_deadline,
#ifdef CCI_NO_ATOMICS
                                             NULL,
#else
                                             cci__rc_atomic,
#endif
                                             cci__rc_leave};
    return &table;
}

/* ---- memory of another device ---- */

#ifdef CCI_STATIC
CCI__UNUSED static
#endif
    int
    cci_verbs_register_dmabuf(cci_endpoint_t *endpoint, int fd, uint64_t offset, void *start, uint64_t length,
                              int flags, cci_rma_handle_t **handle) {
    cci__rc *ep = (cci__rc *)(void *)endpoint; /* if it is one */
    struct ibv_mr *mr;
    if (!endpoint || !start || !handle || length == 0 || fd < 0) return CCI_EINVAL;
    if (flags & ~(CCI_FLAG_READ | CCI_FLAG_WRITE)) return CCI_EINVAL;
    if ((((cci_endpoint_base_t *)(void *)endpoint)->ops != cci__rc_ops() &&
         ((cci_endpoint_base_t *)(void *)endpoint)->ops != cci__auto_ops()) ||
        !cci__ibv.reg_dmabuf_mr)
        return CCI_ERR_NOT_IMPLEMENTED;
    if (length > UINTPTR_MAX - (uintptr_t)start || length >> 48 != 0 || length > UINT64_MAX - offset) return CCI_EINVAL;
    mr = cci__ibv.reg_dmabuf_mr(ep->pd, offset, (size_t)length, (uintptr_t)start, fd,
                                cci__rc_access(flags) | IBV_ACCESS_LOCAL_WRITE);
    return mr ? cci__rc_add_region(ep, start, length, flags, mr, 0, handle)
              : cci__rc_refused_memory(ep, "the adapter or the kernel can't use a dmabuf", errno);
}

/* ==================================================================================================================
 * >>verbs-auto
 *
 * mode = auto: an endpoint of mode rc, with one of mode ud beside it that has no name and no service of its own. To the
 * program both are one endpoint, the first. Each connection belongs to one of both from its beginning to its end, and
 * its index tells to which.
 *
 *     client ── REQUEST ──▶ server                flags: 64 takes either kind, 128 has its number of queue pairs
 *     client ◀── ELSEWHERE, queue pair ── server  type 34, 24 bytes, where one of both has its number
 *     client ── REQUEST ──▶ that queue pair       of the endpoint beside
 *
 * The server keeps nothing of a client that it sends elsewhere, and answers one whose address is proven, with fewer
 * bytes than came. A client goes there once, by the word of whom it has asked alone. Registrations are in one table,
 * with the keys of mode rc, so that a handle is good over both kinds. The lock of the endpoint beside is taken behind
 * that of the first, never the other way round.
 * ================================================================================================================== */

static cci_endpoint_base_t *cci__auto_beside(cci_endpoint_base_t *base) {
    return &((cci__endpoint_t *)(void *)base)->datagrams->api;
}

/* The operations of the endpoint that has a connection. */
static const cci_endpoint_ops_t *cci__auto_ops_of(const struct cci_connection *connection) {
    const cci__endpoint_t *ep = cci__conn_endpoint(connection);
    return ep == ep->datagrams ? ep->api.ops : cci__rc_ops();
}

/* Tells what the endpoint beside has to say of the device, too: the first one has said it. */
static int cci__auto_is_known(const cci_event_t *event) {
    return event->type == CCI_EVENT_ENDPOINT_DEVICE_FAILED ||
           (event->type == CCI_EVENT_STATUS && event->status.connection == NULL);
}

static int cci__auto_take_beside(cci_endpoint_base_t *beside, cci_event_t **event) {
    int status;
    while ((status = beside->ops->get_event(beside, event)) == CCI_SUCCESS && cci__auto_is_known(*event))
        (void)beside->ops->return_event((cci_event_base_t *)(void *)*event);
    return status;
}

/* Both have their turn; who was second is first in the next call. */
static int cci__auto_get_event(cci_endpoint_base_t *base, cci_event_t **event) {
    cci__rc *ep = (cci__rc *)(void *)base;
    cci_endpoint_base_t *beside = cci__auto_beside(base);
    int is_beside = CCI__VERBS_LOAD(ep->looks_beside), status, other;
    CCI__VERBS_STORE(ep->looks_beside, !is_beside);
    status = is_beside ? cci__auto_take_beside(beside, event) : cci__rc_get_event(base, event);
    if (status == CCI_SUCCESS) return status;
    other = is_beside ? cci__rc_get_event(base, event) : cci__auto_take_beside(beside, event);
    return other == CCI_EAGAIN ? status : other;
}

static int cci__auto_return_event(cci_event_base_t *event) {
    const cci__endpoint_t *ep = (const cci__endpoint_t *)(const void *)event->endpoint;
    return ep == ep->datagrams ? ep->api.ops->return_event(event) : cci__rc_return_event(event);
}

static int cci__auto_arm_os_handle(cci_endpoint_base_t *base, int flags) {
    int status = cci__endpoint_arm_os_handle(base, flags);
    return status == CCI_SUCCESS ? cci__auto_beside(base)->ops->arm_os_handle(cci__auto_beside(base), flags) : status;
}

static int cci__auto_set_opt(cci_endpoint_base_t *base, cci_opt_name_t name, const void *val) {
    int status = cci__endpoint_set_opt(base, name, val);
    return status == CCI_SUCCESS ? cci__auto_beside(base)->ops->set_endpoint_opt(cci__auto_beside(base), name, val)
                                 : status;
}

#ifndef CCI_NO_STATS
static void cci__auto_add_stats(cci_endpt_stats_t *to, const cci_endpt_stats_t *from) {
    to->datagrams_sent += from->datagrams_sent;
    to->bytes_sent += from->bytes_sent;
    to->datagrams_received += from->datagrams_received;
    to->bytes_received += from->bytes_received;
    to->packets_retransmitted += from->packets_retransmitted;
    to->packets_lost += from->packets_lost;
    to->dropped_corrupt += from->dropped_corrupt;
    to->dropped_not_ours += from->dropped_not_ours;
    to->dropped_no_connection += from->dropped_no_connection;
    to->dropped_no_buffer += from->dropped_no_buffer;
    to->dropped_not_authentic += from->dropped_not_authentic;
    to->dropped_duplicate += from->dropped_duplicate;
    to->requests_refused += from->requests_refused;
    to->connections_ended += from->connections_ended;
    to->connections_open += from->connections_open;
    to->connections_active += from->connections_active;
    to->connections_opening += from->connections_opening;
    to->events_waiting += from->events_waiting;
    to->recv_buffers_used += from->recv_buffers_used;
    to->recv_buffers_most += from->recv_buffers_most;
    to->send_buffers_used += from->send_buffers_used;
    to->send_buffers_most += from->send_buffers_most;
}
#endif

#ifndef CCI_NO_WAKE
/* A descriptor that is readable when the second one of either is. */
static int cci__auto_send_fd(cci__rc *ep, void *val) {
    cci_endpoint_base_t *beside = &ep->base.datagrams->api;
    cci_os_handle_t fds[2] = {-1, -1};
    int status = cci__endpoint_get_opt(&ep->base.api, CCI_OPT_ENDPT_SEND_FD, &fds[0]);
    if (status == CCI_SUCCESS) status = beside->ops->get_endpoint_opt(beside, CCI_OPT_ENDPT_SEND_FD, &fds[1]);
    if (status != CCI_SUCCESS) return status;
    cci__rc_lock(ep);
    if (ep->send_fd < 0 && (ep->send_fd = epoll_create1(EPOLL_CLOEXEC)) >= 0) {
        cci__verbs_watch(ep->send_fd, fds[0], CCI__VERBS_AT_OTHER);
        cci__verbs_watch(ep->send_fd, fds[1], CCI__VERBS_AT_OTHER);
    }
    memcpy(val, &ep->send_fd, sizeof ep->send_fd);
    status = ep->send_fd < 0 ? CCI_ENOMEM : CCI_SUCCESS;
    cci__rc_unlock(ep);
    return status;
}
#endif

static int cci__auto_get_opt(cci_endpoint_base_t *base, cci_opt_name_t name, void *val) {
    int status;
#ifndef CCI_NO_WAKE
    if (name == CCI_OPT_ENDPT_SEND_FD) return cci__auto_send_fd((cci__rc *)(void *)base, val);
#endif
    status = cci__endpoint_get_opt(base, name, val);
#ifndef CCI_NO_STATS
    if (name == CCI_OPT_ENDPT_STATS && status == CCI_SUCCESS) {
        cci_endpt_stats_t more;
        status = cci__auto_beside(base)->ops->get_endpoint_opt(cci__auto_beside(base), name, &more);
        if (status == CCI_SUCCESS) cci__auto_add_stats((cci_endpt_stats_t *)val, &more);
    }
#endif
    return status;
}

/* A connection can have no more of anything than its endpoint. */
static int cci__auto_get_conn_opt(struct cci_connection *connection, cci_opt_name_t name, void *val) {
    int status = cci__endpoint_get_conn_opt(connection, name, val);
    if (name == CCI_OPT_CAPS && status == CCI_SUCCESS) {
        cci_caps_t *caps = (cci_caps_t *)val, all;
        cci__rc_caps((cci__endpoint_t *)(void *)(uintptr_t)connection->endpoint, NULL, &all);
        caps->max_recv_bufs = cci__min32(caps->max_recv_bufs, all.max_recv_bufs);
        caps->max_send_bufs = cci__min32(caps->max_send_bufs, all.max_send_bufs);
    }
    return status;
}

static int cci__auto_sendv(struct cci_connection *connection, const struct iovec *data, uint32_t count, void *context,
                           int flags) {
    return cci__auto_ops_of(connection)->sendv(connection, data, count, context, flags);
}

/* A handle as the endpoint beside reads it: key and place of the registration. */
static void cci__auto_handle(const struct cci_rma_handle *from, struct cci_rma_handle *to) {
    cci__rc_handle handle;
    cci__rc_parse_handle(from, &handle);
    memset(to, 0, sizeof *to);
    cci__store64((uint8_t *)to->stuff, handle.tag);
    cci__store64((uint8_t *)to->stuff + 8, handle.region);
}

static int cci__auto_rma(struct cci_connection *connection, const void *msg, uint32_t msg_len,
                         const struct cci_rma_handle *local, uint64_t local_offset, const struct cci_rma_handle *remote,
                         uint64_t remote_offset, uint64_t length, void *context, int flags) {
    const cci_endpoint_ops_t *ops = cci__auto_ops_of(connection);
    struct cci_rma_handle here, there;
    if (ops == cci__rc_ops())
        return cci__rc_rma(connection, msg, msg_len, local, local_offset, remote, remote_offset, length, context,
                           flags);
    if (!ops->rma) return CCI_ERR_NOT_IMPLEMENTED;
    cci__auto_handle(local, &here);
    cci__auto_handle(remote, &there);
    return ops->rma(connection, msg, msg_len, &here, local_offset, &there, remote_offset, length, context, flags);
}

#ifndef CCI_NO_ATOMICS
static int cci__auto_atomic(struct cci_connection *connection, const cci_atomic_call_t *call) {
    const cci_endpoint_ops_t *ops = cci__auto_ops_of(connection);
    struct cci_rma_handle there;
    cci_atomic_call_t beside = *call;
    if (ops == cci__rc_ops()) return cci__rc_atomic(connection, call);
    if (!ops->atomic) return CCI_ERR_NOT_IMPLEMENTED;
    cci__auto_handle(call->remote, &there);
    beside.remote = &there;
    return ops->atomic(connection, &beside);
}
#endif

static int cci__auto_next_deadline(cci_endpoint_base_t *base, uint64_t *ns) {
    uint64_t beside_ns = CCI__NEVER;
    int status = cci__endpoint_next_deadline(base, ns);
    if (status == CCI_SUCCESS) status = cci__auto_beside(base)->ops->next_deadline(cci__auto_beside(base), &beside_ns);
    *ns = cci__min64(*ns, beside_ns);
    return status;
}

static const cci_endpoint_ops_t *cci__auto_ops(void) {
    static const cci_endpoint_ops_t table = {cci__rc_destroy,
                                             cci__endpoint_accept,
                                             cci__endpoint_reject,
                                             cci__endpoint_connect,
                                             cci__endpoint_disconnect,
                                             cci__auto_arm_os_handle,
                                             cci__auto_get_event,
                                             cci__auto_return_event,
                                             cci__auto_set_opt,
                                             cci__auto_get_opt,
                                             cci__endpoint_set_conn_opt,
                                             cci__auto_get_conn_opt,
                                             cci__auto_sendv,
                                             cci__rc_rma_register,
                                             cci__rc_rma_deregister,
                                             cci__auto_rma,
                                             NULL,
                                             NULL,
                                             cci__endpoint_answer,
                                             cci__auto_next_deadline,
#ifdef CCI_NO_ATOMICS
                                             NULL,
#else
                                             cci__auto_atomic,
#endif
                                             cci__rc_leave};
    return &table;
}

/* Makes the endpoint beside; a status. On failure the caller ends both. */
static int cci__auto_open(cci__rc *ep, int wants_fd) {
    static const cci_transport_t transport = {
        CCI_TRANSPORT_VERSION, "verbs", NULL, NULL, NULL, NULL, NULL, &cci__verbs_beside_table, NULL,
    };
    cci_endpoint_base_t *beside = NULL;
    cci_os_handle_t fd = -1;
    int status =
        cci_dgram_beside(&transport, &ep->base.api, ep->regions, CCI__RC_REGIONS, &beside, wants_fd ? &fd : NULL);
    if (status != CCI_SUCCESS) return status;
    ep->base.api.ops = cci__auto_ops();
    if (wants_fd) cci__verbs_watch(ep->hw->waiter.handle, fd, CCI__VERBS_AT_OTHER);
    return CCI_SUCCESS;
}

/* ==================================================================================================================
 * >>verbs-table
 *
 * A native transport (mode = rc) that leaves devices with mode = ud to the datagram endpoint over the link.
 * ================================================================================================================== */

static int cci__verbs_create(cci_device_t *device, const char *service, int flags, cci_endpoint_base_t **endpoint,
                             cci_os_handle_t *fd) {
    const cci__verbs_device *d = (const cci__verbs_device *)cci_device_data(device);
    (void)flags;
    return d->mode == CCI__VERBS_UD ? (int)CCI_ERR_NOT_IMPLEMENTED : cci__rc_create(device, service, endpoint, fd);
}

#ifdef CCI_STATIC
static
#endif
    const cci_transport_t cci_verbs_transport = {
        CCI_TRANSPORT_VERSION,
        "verbs",
        NULL,
        NULL,
        cci__verbs_discover,
        cci__verbs_configure,
        cci__verbs_refresh,
        &cci__verbs_link_table,
        cci__verbs_create,
};

#endif /* all that is needed is there */
#endif /* CCI_VERBS_IMPLEMENTATION */

/* ==================================================================================================================
 * >>verbs-license
 *
 * This software is available under either of two licenses, as you choose: the MIT license, or the Unlicense (public
 * domain). Their full text is in the file LICENSE.
 * ================================================================================================================== */
