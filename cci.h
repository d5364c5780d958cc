/* cci.h - CCI, the Common Communication Interface, in one header.              v0.1.0
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Connections, messages, remote memory access (RMA) and events over UDP (cci_udp.h), shared memory (cci_sisci.h), RDMA
 * adapters (cci_verbs.h), or a link of your own that moves datagrams. No build system, no dependencies.
 *
 * Do this in ONE C or C++ file, transports first, core last:
 *
 *     #define CCI_IMPLEMENTATION
 *     #include "cci_udp.h"
 *     #include "cci.h"
 *
 * and #include "cci.h" alone in all others. On Linux with glibc link with -pthread (nothing else), on Windows with
 * bcrypt, and with cci_udp.h also with ws2_32 and iphlpapi.
 *
 * CONTENTS (search for the tag)
 *     >>manual      what it is and is not, quick start, transports, memory, threads, errors
 *     >>config      every macro with its default
 *     >>api         the functions, as in the CCI 0.3.0 manual, and what goes beyond it
 *     >>transport   the table of operations that a native transport fills in
 *     >>link        the table that a mover of datagrams fills in
 *     >>base        load and store, keyed hash, checksum, lists, ranges, timing wheel
 *     >>flow        congestion: how many bytes of a connection may be under way
 *     >>wire        the numbers and sizes of the protocol
 *     >>evq         events and receive buffers
 *   connections: the table, the handshake, how they end
 *     >>conn             the table; requests that come again; shares of the table
 *     >>conn-packets     packets of the handshake, the life of a connection, services by name
 *     >>seal             packets that are sealed: AEAD, nonces
 *     >>conn-handshake   handshake, CLOSE, probes, a peer that moves
 *   the reliability protocol of one connection
 *     >>rel              the whole; frames, structures, memory
 *     >>rel-issue        what the program issues becomes items, and items end
 *     >>rel-send         items become packets
 *     >>rel-ack          acknowledgements and refusals come in
 *     >>rel-receive      packets of the peer come in
 *     >>rel-time         what is due, and when
 *   remote memory access
 *     >>rma              registrations, reads, answers to reads
 *   the endpoint
 *     >>endpoint         the CCI face of every endpoint: options, requests, handle, thread; over an engine
 *   the engine over any link: joins the layers above
 *     >>dgram            the whole; structures, memory
 *     >>dgram-send       packets leave
 *     >>dgram-hot        what a connection has only while it has traffic; turns
 *     >>dgram-events     events, and what the reliability protocol reports
 *     >>dgram-receive    datagrams come in
 *     >>dgram-work       timers, a round of work, waiting
 *     >>dgram-create     endpoints are made and end
 *     >>dgram-calls      the calls of a program
 *   what has no endpoint
 *     >>core             hooks, locks, log, services
 *     >>core-config      configuration, transports, devices
 *     >>core-init        initialization, fork, devices and endpoints of a program
 *     >>core-names       services by name
 *     >>core-lists       RMA between lists of segments
 *     >>core-calls       the functions of the interface
 *   the engine of the smallest machines, in the place of all from >>evq on
 *     >>tiny             the whole; what leaves; operations, timers, remote memory
 *     >>tiny-receive     what comes in
 *     >>tiny-calls       the functions of the interface
 *     >>license
 */
#ifndef CCI_H
#define CCI_H

/* ==================================================================================================================
 * >>manual
 *
 * WHAT IT IS. CCI gives a program endpoints, connections between them, messages, remote memory access and events. One
 * endpoint talks to any number of peers; its buffers belong to the endpoint and not to a connection, so they do not
 * grow with the number of peers. Everything is asynchronous: a call starts an operation, and an event, which the
 * program gets with cci_get_event(), reports its completion. References like "[4.7.2.1]" name the section of the CCI
 * 0.3.0 manual that applies.
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
 * passes the OS handle of its endpoint to select, poll or epoll and calls cci_get_event() until CCI_EAGAIN when it
 * wakes. Datagram transports coalesce small messages: while earlier ones are under way, a small message may wait until
 * the program's next cci_get_event(). When the program pauses between messages, each leaves at once.
 *
 * SLEEPING. The handle is readable while events wait, when data arrives, and when the protocol needs a call: to repeat
 * a message, to acknowledge, to notice a time-out. Some wake-ups therefore bring no event. When
 * cci_get_event() has returned CCI_EAGAIN, the handle is readable only if there is something to do. When it has
 * returned an event, the handle stays readable until CCI_EAGAIN, or until nothing is left to do. A program that gets
 * one event for each wake-up works too, with more wake-ups, if its epoll is level-triggered. A call from another
 * thread, such as cci_send(), arms the handle as well.
 *   cci_arm_os_handle() can name the classes of events that wake (CCI_ARM_). Events of other classes wait without
 * making the handle readable; cci_get_event() gives them in their order once the program is awake. It is woken for
 * messages of any kind when they have taken all receive buffers, since no other could come any more. Someone has to do
 * the library's work while the program sleeps:
 *     progress = thread   the helper thread does. The handle is readable for events of the chosen classes alone.
 *     otherwise           the program does. The handle is readable also when data arrives or a deadline has passed, as
 *                         without classes. Such a program calls cci_arm_os_handle() again, which works and gives no
 *                         event, and then the handle is readable only if it need not sleep on.
 *   CCI_OPT_ENDPT_SEND_FD is a second descriptor, whatever the classes: readable while a CCI_EVENT_SEND waits, or while
 * a cci_send() that got CCI_ENOBUFS could succeed, until it is tried again. It is exact, and no deadline and no arrival
 * of data makes it readable: without a helper thread somebody must watch the OS handle too and do the work.
 *   A message with CCI_FLAG_WAKE is like any other to a receiver that has not armed CCI_ARM_WAKE. The flag travels with
 * the message: a peer of an older version ignores it. Messages behind an RMA don't carry it.
 *   A program may do without a handle and call seldom, for example once for each video frame: time-outs,
 * retransmissions and acknowledgements then happen in the first call after they are due. Between calls it may sleep for
 * as long as cci_next_deadline() says, if something wakes it when a packet arrives, for example an interrupt.
 *
 * FORK. Endpoints belong to the process that made them. In the child of fork() they are dead: their calls return
 * CCI_ERR_DEVICE_DEAD (the log says so once), except that cci_return_event(), cci_disconnect(), cci_rma_deregister()
 * and cci_destroy_endpoint() succeed and do nothing. Their descriptors are closed before fork() returns in the child;
 * nothing is sent and no nonce is used there. Devices of the parent are not the child's either. cci_finalize() in the
 * child is harmless, but not needed: cci_init() begins anew. The parent goes on undisturbed, except that its fork()
 * waits (1 s at most) for a thread that makes an endpoint or lists devices. What the child inherits costs memory until
 * it ends or calls exec. All descriptors are closed by exec. A daemon forks before cci_init(). A hook must not call
 * fork(), and a hook `random` of the program's own must not give the child what it gives the parent.
 *   It needs pthread_atfork(). Where that is missing (CCI_NO_THREADS with a glibc before 2.34, or no POSIX), the child
 * must not call the library, except for exec or _exit(). RDMA devices need Linux 5.12, which copies memory that the
 * adapter uses for the child at once, or RDMAV_FORK_SAFE=1 in the environment.
 *
 * MEMORY of a datagram endpoint (>>dgram). It is created small, with less than 1 MB in use, and grows in slabs when
 * there is need; slabs are kept until the endpoint is destroyed. On 64-bit machines:
 *     an idle connection               at most 256 bytes (2^20 connections at most)
 *     a connection with traffic        768 bytes more, while something is under way; the 1,024 used last keep them
 *     a pending message, 0 to 240 bytes        460 bytes, and 64 for each of its packets (in the next two rows too)
 *                        241 to 2,000 bytes    2,250 bytes
 *                        longer                the length of a datagram
 *     losses, reads, a new address     60 to 2,000 bytes, for as long as they last
 *     a list of cci_rmav()             200 bytes, 56 for each segment, and its message; until its event is returned
 *     atomics, here or of the peer     304 bytes from the first one on, until the connection ends
 *     data with an accept or reject    1,064 bytes until the client has confirmed (30 s at most), or 4 s; at a client
 *                                      while it comes, and until the event is returned
 *     a receive buffer                 the largest datagram or message (64 KiB where the link coalesces)
 * Limits, and what happens when they are reached:
 *     CCI_OPT_ENDPT_SEND_BUF_COUNT     buffers of pending messages of each connection; small ones share: CCI_ENOBUFS
 *     CCI_OPT_ENDPT_RECV_BUF_COUNT     receive buffers of the endpoint: the sender repeats, at last with CCI_ERR_RNR
 *     memory_limit (udp, verbs: memory)  bytes that all connections with traffic may take, receive buffers and idle
 *                                      connections excepted: 1 GiB by default, 256 MiB on 32-bit machines. Each kind of
 *                                      thing has its part
 * At the memory limit idle connections free their memory for traffic. If that is not enough, connections take turns in
 * the order in which they asked; each turn is the same number of bytes. Until the turn of a connection comes, its sends
 * return CCI_ENOBUFS, and packets of its peer are dropped and asked for again later. Nothing that was accepted is lost.
 * Peers that do not answer give way:
 *     three probe time-outs            without an acknowledgement: only messages, writes and reads stay; a packet of
 *                                      24 bytes asks for a sign of life, at once and after pauses that double,
 *                                      from 0.1 to 2 s; the send time-out goes on
 *     after a sign of life             the connection takes its turn among all others, at once
 *     a turn                           without an acknowledgement: from then on such connections have one turn in
 *                                      eight, together, while others wait
 *     messages pending                 a quarter of the memory for messages is for peers that answer
 * A connection keeps its turn until a remote write or read that is under way ends: a program that wants others served
 * soon divides large ones. When the peer falls silent, they give up the turn, as above; a read then begins again.
 * With CCI_MEMORY_BYTES all is allocated when an endpoint is created.
 *
 * THREADS. Any function may be called from any thread; calls on one endpoint are serialised by a lock, different
 * endpoints share nothing. After cci_destroy_endpoint() and cci_disconnect() the handle is stale: the program sees to
 * it that no other thread still uses it.
 *
 * SECRECY. Packets can be read and forged by whoever sees them, unless the program brings an AEAD: cci_setup() takes
 * hooks that choose a key when a connection is made, and seal and open its packets (cci_seal_t; examples/secure.c does
 * it with libsodium). Both sides must have them. They hold for datagram transports (udp, verbs in mode ud, links of
 * one's own): all that an endpoint of one sends. Endpoints of sisci and of verbs in mode rc don't use them, and the log
 * warns when one is made.
 *   What it gives: nobody without the key reads or changes messages, memory or request data, or causes a
 * CCI_EVENT_CONNECT_REQUEST. Each packet, also a request, is accepted at most once; packets that are not sealed are
 * dropped. Tokens, packet numbers, sizes and the key's id stay readable, since they are needed to find the key; they
 * are authenticated.
 *   Keys: the client's hook knows the address that it connects to, and may send 64 bits (key_id) in the clear, with
 * which the server's hook finds the key; nothing is kept, and no hook is asked, before the client's address is proven.
 * Where there is no key, or another one, requests are dropped and cci_connect() times out; from the third on the log
 * says so.
 *   Nonces are made by the library, of both sides' random tokens, the packet's number, its type and direction: none
 * comes twice under a key, however many connections, repetitions and restarts there are. The first 16 of their 24 bytes
 * stay the same for one connection and direction: a cipher that wants shorter nonces makes a key of these and takes the
 * last 8. A connection that has sent 2^56 packets, or whose key the hook calls worn out, breaks.
 * All this depends on the random numbers: if the hook `random` gives both sides bytes that it gave before, nonces
 * repeat.
 *   What it does not give: old traffic is only as safe as the key is kept; whoever has a key can pose as any other that
 * has it. Who sits on the path can still drop, delay and divert packets, and see how many and how long they are. A peer
 * that was restarted can't prove that it forgot a connection: that is noticed by time-outs. In a multicast group a
 * packet that is repeated is taken again.
 *   What it costs: a tag in each packet (max_send_size is smaller by it), a copy of what is sent, and a round trip more
 * to connect.
 *
 * CONNECTIONS THAT END. Over a datagram transport cci_disconnect(), cci_destroy_endpoint() and cci_finalize() tell the
 * peer. There the messages that had arrived are delivered first, what is pending ends with CCI_ERR_DISCONNECTED, and
 * later calls return that. cci_disconnect() returns at once, and its word leaves in turn: a program that ends right
 * after many of them calls cci_finalize(). Where CCI_OPT_CONN_LINGER is set, what is pending goes on first, as if
 * the connection were open, and then the peer is told. A server that serves for long asks for CCI_EVENT_DISCONNECT
 * (CCI_OPT_ENDPT_EVENT_MASK) and calls cci_disconnect() for each: otherwise connections of clients that have left stay
 * in its table. Without a word from the peer a connection ends
 *     - when a message is not taken in the send time-out (CCI_ETIMEDOUT),
 *     - when the peer answers that it does not know it, as one does that was restarted (CCI_ERR_DISCONNECTED),
 *     - when the peer was silent for `probe_idle` seconds (a key of udp, and of verbs in mode ud; 300), and for as long
 *       again while it was asked eight times for a sign of life (CCI_ETIMEDOUT). Peers that do not call the library for
 *       longer than that need a larger value, or 0. Such questions are small, need no buffers, and are not seen by
 *       programs. With 0, peers are asked only when clients are told "busy" because the table is full: those that were
 *       silent for 4 s (32 round trips, if that is longer), eight times in as long again.
 *
 * LIMITS of an endpoint on a datagram transport, and what happens when one is reached:
 *     connections             2^20        clients are told "busy"; cci_connect() goes on trying until its time-out
 *     requests undecided      3/4 of the receive buffers       likewise, until the program accepts or rejects; the log
 *                                                              tells it every 10 s
 *     from one network        3/4 of the connections, and of the requests, that are still free: likewise (a network
 *                             is an IPv4 /24 or an IPv6 /64)
 *     data with accept, reject   a 128th of memory_limit (7,700 by default)   CCI_ENOBUFS, until clients confirm; at
 *                                                              most 256 of these wait for an address to be proven
 *     registered memory       4,096 ranges   cci_rma_register() returns CCI_ENOBUFS
 *     reads under way         512 pieces of 64 packets for all connections: further reads wait. Each connection has a
 *                             fair share; one eighth is reserved for connections with nearly no reads under way
 *     CLOSE packets           50,000 a second; 6 for a connection, within 1.3 s (more on paths longer than 13 ms); it
 *                             keeps its place in the table until the peer has answered, or the last was sent
 *     cci_destroy_endpoint()  tells each peer once, 50 batches for many peers, one a millisecond; then it waits 0.1 s
 *                             at most for their answers, and tells those again that did not answer
 *
 * CHECKSUMS. Links that have none ask for a CRC-32C of each packet (cci_link_info_t; the key `crc` of udp). It finds
 * accidents, not attacks. Both sides must have it; otherwise packets are dropped and the log says so.
 *
 * ERRORS. Functions return a status, cci_strerror() names it, cci_status_hint() says what can be done. Where a URI, a
 * device, a service, an option, a handle or flags are refused, one line of the log (level warning) names what is wrong.
 * A wrong call returns a status and changes nothing. Everything from the network is checked; what is invalid is dropped
 * and counted.
 * ================================================================================================================== */

/* ==================================================================================================================
 * >>config
 *
 * Define before including, where needed. Nothing here is needed in the usual case.
 *
 * CCI_IMPLEMENTATION    in one file: emits the code of all layers, that is, defines CCI_BASE_IMPLEMENTATION,
 *                       CCI_EVQ_IMPLEMENTATION, CCI_CONN_IMPLEMENTATION, CCI_REL_IMPLEMENTATION,
 *                       CCI_RMA_IMPLEMENTATION, CCI_ENDPOINT_IMPLEMENTATION, CCI_DGRAM_IMPLEMENTATION and
 *                       CCI_CORE_IMPLEMENTATION. A program that wants one layer defines that one and those it names;
 *                       each brings in CCI_BASE_IMPLEMENTATION.
 * CCI_STATIC            everything is static: several files can have their own private copy.
 * CCI_API               what stands before each function's declaration (default: extern, or static with CCI_STATIC).
 *                       A shared library of one's own exports the public API and none of the layers when its file is
 *                       compiled with hidden visibility and includes cci.h twice: first with a CCI_API that makes
 *                       visible, and alone; then with `extern` as CCI_API, with CCI_IMPLEMENTATION and transports.
 * CCI_ASSERT(x)         default: assert(x) from <assert.h>, or nothing with NDEBUG.
 * CCI_LOG(level, text)  default: calls the log hook of cci_setup(); without a hook, warnings and errors go to stderr.
 * CCI_NO_THREADS        no lock and no helper thread: one thread uses the library.
 * CCI_NO_STDIO          no FILE: the configuration comes from cci_setup(), messages go to the log hook alone.
 * CCI_NO_DLOPEN         no transport opens a shared library at run time.
 * CCI_HAVE_TIMEVAL      where there is neither POSIX nor Windows: struct timeval is defined already.
 * CCI_HAVE_IOVEC        where there is no POSIX: struct iovec is defined already.
 * CCI_MEMORY_BYTES      for small machines: the memory limit of each datagram endpoint, all of which is allocated when
 *                       it is created (but the data of a request for a connection, and the table for more than 256
 *                       connections).
 * CCI_URI_ALLOC(size)   memory for what CCI_OPT_ENDPT_URI gives (default: malloc(), since programs call free();
 *                       with CCI_SMALL cci_alloc(), and they call cci_release()).
 * CCI_NO_TEXT           no texts for the log, 2 KB of code less, and no hints. Statuses tell the same.
 * CCI_NO_RMA            no remote memory access, 8 KB of code less: cci_rma() and cci_rma_register() return
 *                       CCI_ERR_NOT_IMPLEMENTED, and what peers ask for is refused as memory that is not registered.
 * CCI_NO_LISTS          no lists of RMA segments, 4 KB of code less: cci_rmav() returns CCI_ERR_NOT_IMPLEMENTED.
 *                       CCI_SMALL and CCI_NO_RMA imply it.
 * CCI_NO_ATOMICS        cci_atomic() returns CCI_ERR_NOT_IMPLEMENTED, and what peers ask for is refused with
 *                       CCI_ERR_RMA_OP. CCI_NO_RMA, CCI_SMALL and compilers that have neither __atomic builtins nor
 *                       Interlocked functions imply it.
 * CCI_NO_STATS          no statistics: CCI_OPT_ENDPT_STATS and CCI_OPT_CONN_STATS return CCI_ERR_NOT_IMPLEMENTED.
 *                       CCI_SMALL implies it.
 * CCI_NO_LINGER         connections end at once: CCI_OPT_CONN_LINGER returns CCI_ERR_NOT_IMPLEMENTED. CCI_SMALL and
 *                       CCI_TINY imply it.
 * CCI_NO_WAKE           no choice of what wakes: cci_arm_os_handle() with classes, CCI_FLAG_WAKE and
 *                       CCI_OPT_ENDPT_SEND_FD get CCI_ERR_NOT_IMPLEMENTED. CCI_SMALL implies it.
 * CCI_NO_NAMES          no services by name (see cci_create_endpoint_at()): a name is CCI_EINVAL, and who asks for one
 *                       is not heard. For cci_udp.h and links of one's own. CCI_SMALL and CCI_TINY imply it.
 * CCI_NO_CONGESTION     the receiver's window alone limits what is under way, on a line or network of one's own: 4 KB
 *                       of code less. Links can ask for "fixed" alone, and need not.
 * CCI_NO_ECN            no Explicit Congestion Notification. CCI_NO_CONGESTION and CCI_SMALL imply it.
 * CCI_SMALL             for small machines: endpoints on a link of the program (cci_create_endpoint_on_link()), few
 *                       peers, short datagrams. All memory is taken when an endpoint is created, from the hook `alloc`
 *                       of cci_setup(); only cci_connect() takes some later, and releases it when the outcome is known.
 *                       The wire is the same: the peer may be any. It implies CCI_NO_THREADS, CCI_NO_STDIO and
 *                       CCI_NO_DLOPEN, and cci_setup() takes no transports.
 *                       What each is worth, in bytes on 32-bit machines (D: the longest datagram):
 *     CCI_SMALL_CONNECTIONS     2   320 for each: a power of two; one more than peers, for a peer that was restarted
 *     CCI_SMALL_ACTIVE     a half   of these that can have traffic at once, the others wait their turn: 1,060 for each
 *                                   (1,420 with RMA)
 *     CCI_SMALL_SENDS           2   default of CCI_OPT_ENDPT_SEND_BUF_COUNT: 530 for each, D more where D is over 256
 *     CCI_SMALL_RECEIVES        3   default of CCI_OPT_ENDPT_RECV_BUF_COUNT: D + 100 for each
 *     CCI_SMALL_PACKETS         8   packets that wait for their acknowledgement: 56 for each
 *     CCI_SMALL_BATCH           1   packets that leave together: D + 400 for each
 *     CCI_SMALL_RMAS            1   RMAs, and messages with CCI_FLAG_NO_COPY, under way: 420 for each
 *     CCI_SMALL_REGISTRATIONS   2   64 for each
 *     CCI_SMALL_REQUEST       128   bytes of request data that a client may send; from D on each takes memory of every
 *                                   receive buffer. Clients that send more are told "busy". As many bytes go with
 *                                   cci_accept_data() and cci_reject_data(), else CCI_ERR_NOT_IMPLEMENTED, and one such
 *                                   answer is kept at a time, else CCI_ENOBUFS. A server that sends more is not
 *                                   understood: CCI_ETIMEDOUT
 * CCI_NO_ERRNO          the statuses that errno.h has names for get the numbers that Linux gives them. This is so by
 *                       itself for AVR, whose errno.h has one number for all, and where there is no errno.h
 * CCI_TINY              for the smallest: another engine (>>tiny) behind the same functions, with a fifth of the code.
 *                       Endpoints on a link of the program as with CCI_SMALL, whose other macros mean nothing here;
 *                       CCI_NO_RMA does. All memory is static: nothing is ever allocated, and of cci_setup() only
 *                       `random` counts, which is needed. The wire is the same: the peer may be any, over a link with
 *                       the same mtu. It has a window of a few packets, one piece of a write and one segment of a read
 *                       under way, serves RU in order, completes in the order of the calls, and copies all messages.
 *                       It goes without: descriptors, devices, multicast, sealed packets, answers with data
 *                       (CCI_ERR_NOT_IMPLEMENTED; those that come are ignored), statistics, URIs of endpoints and
 *                       peers, and CCI_OPT_CONN_LINGER (likewise), proof of a client's address, and peers whose
 *                       address changes. It has all other options: time-outs, keepalive, the event mask with
 *                       CCI_EVENT_DISCONNECT, the context, capabilities of endpoints and connections, alignments
 *                       (none), and the buffer counts, which can
 *                       be set up to the macros below and change nothing.
 *                       Where all connections are taken, a new client has the server ask the one that was silent
 *                       longest for a sign of life; it ends with CCI_ETIMEDOUT when eight questions, in 4 s at least,
 *                       went unanswered. A server that sets CCI_OPT_ENDPT_EVENT_MASK learns of it and calls
 *                       cci_disconnect(); then the new client gets the place.
 *                       Bytes on 32-bit machines (D: CCI_TINY_MTU):
 *     CCI_TINY_MTU            260   the longest datagram, with a checksum; a link with a larger one is CCI_ENOMEM
 *     CCI_TINY_CONNECTIONS      2   224 for each and its send slots: one more than peers, for one that was restarted
 *     CCI_TINY_SENDS            2   send slots of each connection, 2 at least: D for each
 *     CCI_TINY_RECEIVES         3   receive buffers besides one, 2 at least: D + 60 for each
 *     CCI_TINY_REGISTRATIONS    2   40 for each
 *     CCI_TINY_ENDPOINTS        1   all of the above for each
 * ================================================================================================================== */

/* strict ISO modes hide POSIX unless it is asked for before the first system header */
#if defined(CCI_IMPLEMENTATION) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif

/* a C library without errno.h, or, as for AVR, with one number for all */
#if defined(__AVR__) && !defined(CCI_NO_ERRNO)
#define CCI_NO_ERRNO
#elif defined(__has_include)
#if !__has_include(<errno.h>)
#define CCI_NO_ERRNO
#endif
#endif

#ifndef CCI_NO_ERRNO
#include <errno.h>
#endif
#include <stddef.h>
#include <stdint.h>

#if !defined(CCI_NO_ATOMICS) &&                                                                                        \
    (defined(CCI_SMALL) || defined(CCI_NO_RMA) || !(defined(__GCC_ATOMIC_INT_LOCK_FREE) || defined(_MSC_VER)))
#define CCI_NO_ATOMICS
#endif

#if (defined(CCI_SMALL) || defined(CCI_TINY)) && !defined(CCI_NO_NAMES)
#define CCI_NO_NAMES
#endif
#ifdef CCI_SMALL
#ifndef CCI_NO_THREADS
#define CCI_NO_THREADS
#endif
#ifndef CCI_NO_STDIO
#define CCI_NO_STDIO
#endif
#ifndef CCI_NO_DLOPEN
#define CCI_NO_DLOPEN
#endif
#ifndef CCI_NO_STATS
#define CCI_NO_STATS
#endif
#ifndef CCI_NO_WAKE
#define CCI_NO_WAKE
#endif
#ifndef CCI_NO_LINGER
#define CCI_NO_LINGER
#endif
#ifndef CCI_NO_LISTS
#define CCI_NO_LISTS
#endif
#ifndef CCI_NO_ECN
#define CCI_NO_ECN
#endif
#ifndef CCI_SMALL_CONNECTIONS
#define CCI_SMALL_CONNECTIONS 2
#endif
#ifndef CCI_SMALL_ACTIVE
#define CCI_SMALL_ACTIVE ((CCI_SMALL_CONNECTIONS + 1) / 2)
#endif
#ifndef CCI_SMALL_SENDS
#define CCI_SMALL_SENDS 2
#endif
#ifndef CCI_SMALL_RECEIVES
#define CCI_SMALL_RECEIVES 3
#endif
#ifndef CCI_SMALL_PACKETS
#define CCI_SMALL_PACKETS 8
#endif
#ifndef CCI_SMALL_BATCH
#define CCI_SMALL_BATCH 1
#endif
#ifndef CCI_SMALL_RMAS
#define CCI_SMALL_RMAS 1
#endif
#ifndef CCI_SMALL_REGISTRATIONS
#define CCI_SMALL_REGISTRATIONS 2
#endif
#ifndef CCI_SMALL_REQUEST
#define CCI_SMALL_REQUEST 128
#endif
#if CCI_SMALL_CONNECTIONS < 1 || (CCI_SMALL_CONNECTIONS & (CCI_SMALL_CONNECTIONS - 1)) != 0 ||                         \
    CCI_SMALL_CONNECTIONS > 256
#error "CCI_SMALL_CONNECTIONS is a power of two, from 1 to 256"
#endif
#if CCI_SMALL_SENDS < 1 || CCI_SMALL_ACTIVE < 1 || CCI_SMALL_RECEIVES < 1 || CCI_SMALL_RMAS < 1 ||                     \
    CCI_SMALL_REGISTRATIONS < 1 || CCI_SMALL_BATCH < 1
#error "CCI_SMALL: each of _ACTIVE, _SENDS, _RECEIVES, _RMAS, _REGISTRATIONS and _BATCH is 1 at least"
#endif
#if CCI_SMALL_PACKETS < 4
#error "CCI_SMALL_PACKETS is 4 at least: a packet with data, one that probes, and two acknowledgements"
#endif
#if CCI_SMALL_REQUEST > 1024
#error "CCI_SMALL_REQUEST is 1024 at most: no client may send more"
#endif
#endif

#if defined(CCI_NO_RMA) && !defined(CCI_NO_LISTS)
#define CCI_NO_LISTS
#endif
#if defined(CCI_NO_CONGESTION) && !defined(CCI_NO_ECN)
#define CCI_NO_ECN
#endif

#ifdef CCI_TINY
#ifdef CCI_SMALL
#error "CCI_TINY is an engine of its own: CCI_SMALL is for the other"
#endif
#ifndef CCI_TINY_MTU
#define CCI_TINY_MTU 260
#endif
#ifndef CCI_TINY_CONNECTIONS
#define CCI_TINY_CONNECTIONS 2
#endif
#ifndef CCI_TINY_SENDS
#define CCI_TINY_SENDS 2
#endif
#ifndef CCI_TINY_RECEIVES
#define CCI_TINY_RECEIVES 3
#endif
#ifndef CCI_TINY_REGISTRATIONS
#define CCI_TINY_REGISTRATIONS 2
#endif
#ifndef CCI_TINY_ENDPOINTS
#define CCI_TINY_ENDPOINTS 1
#endif
#if CCI_TINY_MTU < 256 || CCI_TINY_MTU > 65504
#error "CCI_TINY_MTU is 256 to 65504"
#endif
#if CCI_TINY_SENDS < 2 || CCI_TINY_SENDS > 100 || CCI_TINY_RECEIVES < 2 || CCI_TINY_CONNECTIONS < 1 ||                 \
    CCI_TINY_CONNECTIONS > 100 || CCI_TINY_REGISTRATIONS < 1 || CCI_TINY_ENDPOINTS < 1
#error "CCI_TINY: _SENDS (up to 100) and _RECEIVES are 2 at least, all others 1, _CONNECTIONS 100 at most"
#endif
#endif

#define CCI_VERSION_MAJOR 0
#define CCI_VERSION_MINOR 1
#define CCI_VERSION_PATCH 0

#if defined(__unix__) || defined(__APPLE__) || defined(__HAIKU__)
#define CCI_POSIX 1
#else
#define CCI_POSIX 0
#endif
#ifdef _WIN32
#define CCI_WINDOWS 1
#else
#define CCI_WINDOWS 0
#endif

#if CCI_POSIX
#include <sys/time.h> /* struct timeval */
#include <sys/uio.h>  /* struct iovec */
#else
#if CCI_WINDOWS
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN /* else windows.h makes macros of `small` and `interface`, and includes the old winsock.h */
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <winsock2.h> /* struct timeval */
#elif !defined(CCI_HAVE_TIMEVAL)
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

/* Statuses that have a name in errno.h have its number, and those of Linux where it has none, or one for all. */
#ifdef CCI_NO_ERRNO
#define CCI__ERRNO(name, number) number
#else
#define CCI__ERRNO(name, number) name
#endif

/* X(name, value, text, what you can do about it) */
#define CCI_STATUS_TABLE(X)                                                                                            \
    X(CCI_SUCCESS, 0, "success", "nothing to do")                                                                      \
    X(CCI_ERROR, 1, "generic error", "see the log for the reason")                                                     \
    X(CCI_ERR_DISCONNECTED, 2, "not connected", "disconnect and connect again")                                        \
    X(CCI_ERR_RNR, 3, "receiver not ready", "let the peer return its events, or raise its buffer count")               \
    X(CCI_ERR_DEVICE_DEAD, 4, "local device is gone", "use another device")                                            \
    X(CCI_ERR_RMA_HANDLE, 5, "remote memory handle is invalid or lacks permission", "check handle, range and flags")   \
    X(CCI_ERR_RMA_OP, 6, "remote memory operation is not supported by the peer", "use another operation")              \
    X(CCI_ERR_NOT_IMPLEMENTED, 7, "not implemented", "choose another transport or device")                             \
    X(CCI_ERR_NOT_FOUND, 8, "not found", "include a transport, or check the name")                                     \
    X(CCI_EINVAL, CCI__ERRNO(EINVAL, 22), "invalid parameter", "check the arguments against the manual")               \
    X(CCI_ETIMEDOUT, CCI__ERRNO(ETIMEDOUT, 110), "timed out", "check that the peer runs and calls cci_get_event()")    \
    X(CCI_ENOMEM, CCI__ERRNO(ENOMEM, 12), "out of memory", "lower the buffer counts")                                  \
    X(CCI_ENODEV, CCI__ERRNO(ENODEV, 19), "no device available",                                                       \
      "check the configuration and that the interface is up")                                                          \
    X(CCI_ENETDOWN, CCI__ERRNO(ENETDOWN, 100), "device is down", "bring the interface up")                             \
    X(CCI_EBUSY, CCI__ERRNO(EBUSY, 16), "resource busy", "choose another port or name")                                \
    X(CCI_ERANGE, CCI__ERRNO(ERANGE, 34), "value out of range", "check the value against the manual")                  \
    X(CCI_EAGAIN, CCI__ERRNO(EAGAIN, 11), "temporarily unavailable", "try again")                                      \
    X(CCI_ENOBUFS, CCI__ERRNO(ENOBUFS, 105), "no buffers available", "get and return events, then try again")          \
    X(CCI_EMSGSIZE, CCI__ERRNO(EMSGSIZE, 90), "message too long",                                                      \
      "keep to the connection's max_send_size, or use cci_rma()")                                                      \
    X(CCI_ENOMSG, CCI__ERRNO(ENOMSG, 42), "no message of the desired type", "try again")                               \
    X(CCI_EADDRNOTAVAIL, CCI__ERRNO(EADDRNOTAVAIL, 99), "address not available", "check the host in the URI")          \
    X(CCI_ECONNREFUSED, CCI__ERRNO(ECONNREFUSED, 111), "connection refused",                                           \
      "check the URI, and why the peer rejects the request")

typedef enum cci_status {
#define CCI_STATUS_ENUM(name, value, text, hint) name = (value),
    CCI_STATUS_TABLE(CCI_STATUS_ENUM)
#undef CCI_STATUS_ENUM
        CCI_STATUS_NONE_ = -1 /* never a status: makes the enum an int for every compiler */
} cci_status_t;
#define CCI_EMMSGSIZE CCI_EMSGSIZE /* the manual's enumeration has it with two Ms */

/* ---- flags ---------------------------------------------------------------------------------------------------- */

/* A bit that is none of these is CCI_EINVAL, whatever the call, and nothing happens. A flag that means nothing to a
 * call is ignored, since programs pass the flags of their RMAs to cci_send() too. */

#define CCI_FLAG_BLOCKING (1 << 0) /* return when the operation is complete; its status is the function's            */
#define CCI_FLAG_NO_COPY (1 << 1)  /* the buffer stays untouched until the completion: it need not be copied         */
#define CCI_FLAG_WAKE (1 << 2)   /* beyond CCI 0.3.0: wakes a receiver that sleeps until such a message comes         */
#define CCI_FLAG_SILENT (1 << 3) /* no completion event                                                             */
#define CCI_FLAG_READ (1 << 4)   /* RMA from remote to local memory; registration: peers may read                   */
#define CCI_FLAG_WRITE (1 << 5)  /* RMA from local to remote memory; registration: peers may write                  */
#define CCI_FLAG_FENCE (1 << 6)  /* all earlier RMAs of the connection complete remotely before this and later ones */

#define CCI_CAPS_THREAD_SAFETY (1u << 0) /* in cci_init()'s caps: calls may come from any thread */

/* ---- devices, endpoints, connections [4.2, 4.3, 4.4] ------------------------------------------------------------ */

/* A device: a section of the configuration, or what a transport proposed. Everything in it is read-only. [5.3] */
typedef CCI_CONST struct cci_device {
    const char *name;             /* of the section, or of the interface                                     */
    const char *transport;        /* "udp", ...                                                              */
    unsigned up;                  /* 1 while it is usable; brought up to date by cci_get_devices()           */
    const char *info;             /* description for people: address, MTU, rate; may have several lines      */
    const char *const *conf_argv; /* "key=value" of the section, for the transport; ends with NULL           */
    uint32_t max_send_size;       /* bytes of the largest message                                            */
    uint64_t rate;                /* bits per second, 0 if unknown                                           */
    struct {
        uint32_t domain, bus, dev, func;
    } pci; /* all 0xffffffff if it is not on a PCI bus or not known                   */
} cci_device_t;

/* A file descriptor, for select, poll and epoll; on Windows a socket, for select and WSAPoll. Never read from or write
 * to it. */
typedef int cci_os_handle_t;

/* An endpoint. [5.4] */
typedef CCI_CONST struct cci_endpoint { cci_device_t *device; } cci_endpoint_t;

typedef enum cci_endpoint_flags {
    CCI_ENDPOINT_FLAGS_NONE = 0,
    /* Beyond CCI 0.3.0: other endpoints, of this process or of others of the same user, may have the same service of
     * the device; all of them ask for it. Each connection belongs to one of them, and they share nothing else. */
    CCI_ENDPOINT_SHARED = 1 << 0
} cci_endpoint_flags_t;

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
    CCI_EVENT_NONE,                   /* never given to a program                                               */
    CCI_EVENT_SEND,                   /* send:       a send or an RMA has completed                             */
    CCI_EVENT_RECV,                   /* recv:       a message; its bytes are valid until the event is returned */
    CCI_EVENT_CONNECT,                /* connect:    the outcome of cci_connect()                               */
    CCI_EVENT_CONNECT_REQUEST,        /* request:    accept or reject it, then return it                        */
    CCI_EVENT_ACCEPT,                 /* accept:     the outcome of cci_accept()                                */
    CCI_EVENT_KEEPALIVE_TIMEDOUT,     /* keepalive:  the peer did not answer; the option is now 0               */
    CCI_EVENT_ENDPOINT_DEVICE_FAILED, /* dev_failed: the device of the endpoint is gone or down                */
    CCI_EVENT_DISCONNECT,             /* disconnect: a connection has ended; only if CCI_OPT_ENDPT_EVENT_MASK asks */
    CCI_EVENT_STATUS                  /* status:     news of the device or of a path; likewise                  */
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
    cci_status_t status;          /* CCI_SUCCESS, CCI_ECONNREFUSED, CCI_ETIMEDOUT or another */
    void *context;                /* what cci_connect() was given, also on failure */
    cci_connection_t *connection; /* NULL unless CCI_SUCCESS */
    /* Beyond CCI 0.3.0: what the server gave to cci_accept_data() or cci_reject_data(). 8-byte aligned, valid until
     * the event is returned; NULL and 0 if there is nothing, or for another status */
    const void *data_ptr;
    uint32_t data_len;
} cci_event_connect_t;

typedef struct cci_event_connect_request { /* [5.8] */
    cci_event_type_t type;
    uint32_t data_len;
    const void *data_ptr; /* 8-byte aligned, valid until the event is returned */
    cci_conn_attribute_t attribute;
    /* Beyond CCI 0.3.0: */
    const char *peer_uri; /* who asks, as text, valid until the event is returned; NULL if the transport can't say */
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

/* [5.9] Where the device may come back, what is pending goes on until its time is over. Where it can't, that ends with
 * CCI_ERR_DEVICE_DEAD, and so do calls from then on that need the device. */
typedef struct cci_event_endpoint_device_failed {
    cci_event_type_t type;
    cci_endpoint_t *endpoint;
} cci_event_endpoint_device_failed_t;

/* Beyond CCI 0.3.0: comes once for each connection, if CCI_OPT_ENDPT_EVENT_MASK has the bit 1u <<
 * CCI_EVENT_DISCONNECT, after the connection's last RECV event and after everything pending on it has completed. The
 * program still calls cci_disconnect() to give the connection back. It does not come after the program's own
 * cci_disconnect(). */
typedef struct cci_event_disconnect {
    cci_event_type_t type;
    /* CCI_SUCCESS: the peer closed it in order; CCI_ERR_DISCONNECTED: the peer has forgotten it, it was restarted;
     * CCI_ETIMEDOUT: the peer fell silent; CCI_ERR_DEVICE_DEAD: the local device is gone */
    cci_status_t status;
    cci_connection_t *connection;
    void *context; /* the connection's */
} cci_event_disconnect_t;

/* What CCI_EVENT_STATUS tells. */
typedef enum cci_status_what {
    CCI_STATUS_DEVICE_UP,       /* it works again; value: 0                                                  */
    CCI_STATUS_DEVICE_DOWN,     /* behind CCI_EVENT_ENDPOINT_DEVICE_FAILED; value: 0                         */
    CCI_STATUS_ADDRESS_CHANGED, /* value 0: the interface has lost the endpoint's address; 1: it has it again */
    CCI_STATUS_MTU_CHANGED,     /* of the device; value: bytes                                               */
    CCI_STATUS_PATH_SUSPENDED,  /* the peer has not answered for three probe time-outs; value: 0             */
    CCI_STATUS_PATH_RESUMED,    /* it is heard again; value: 0                                               */
    CCI_STATUS_PATH_MTU,        /* value: bytes of the largest packet, as path_mtu in cci_conn_stats_t       */
    CCI_STATUS_PEER_MOVED       /* to the address that CCI_OPT_CONN_PEER_URI gives; value: 0                 */
} cci_status_what_t;

/* Beyond CCI 0.3.0: comes if CCI_OPT_ENDPT_EVENT_MASK has the bit 1u << CCI_EVENT_STATUS, which takes about 180 bytes
 * for each connection, for nothing but these events. They come in the order in which things happened, and before
 * messages and completions that wait. Of each kind one at most waits for each connection, and for the device: the
 * newest, in its own place. None comes of a connection before its CONNECT or ACCEPT event, nor behind its DISCONNECT
 * event or cci_disconnect(). Which of them a transport has its header says; datagrams have all of paths, reliable
 * connections alone are suspended. */
typedef struct cci_event_status {
    cci_event_type_t type;
    cci_status_what_t what;
    cci_connection_t *connection; /* NULL: it is about the device */
    uint64_t value;
} cci_event_status_t;

typedef union cci_event { /* [5.5] */
    cci_event_type_t type;
    cci_event_send_t send;
    cci_event_recv_t recv;
    cci_event_connect_t connect;
    cci_event_connect_request_t request;
    cci_event_accept_t accept;
    cci_event_keepalive_timedout_t keepalive;
    cci_event_endpoint_device_failed_t dev_failed;
    cci_event_disconnect_t disconnect;
    cci_event_status_t status;
} cci_event_t;

/* ---- options [4.6] ---------------------------------------------------------------------------------------------- */

typedef enum cci_opt_name {
    CCI_OPT_ENDPT_SEND_TIMEOUT,   /* uint32_t µs, get and set: for new connections; 0 is for ever, default 30 s  */
    CCI_OPT_ENDPT_RECV_BUF_COUNT, /* uint32_t, get and set: messages that can be received without dropping, at least */
    /* uint32_t, get and set: messages that can be pending, at least (small ones share a buffer), and RMAs (or 1,024) */
    CCI_OPT_ENDPT_SEND_BUF_COUNT,
    CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, /* uint32_t µs, get and set: all connections, present and future; 0 is off     */
    CCI_OPT_ENDPT_URI,               /* char *, get: the program frees it                                           */
    CCI_OPT_ENDPT_RMA_ALIGN,         /* cci_alignment_t, get                                                        */
    CCI_OPT_CONN_SEND_TIMEOUT,       /* uint32_t µs, get and set: for operations started from now on                */
    CCI_OPT_CONN_KEEPALIVE_TIMEOUT,  /* uint32_t µs, get and set                                                    */
    /* Beyond CCI 0.3.0: */
    /* uint32_t, get and set: bits 1u << type of the events beyond 0.3.0 that come; default 0. Any other bit is
     * CCI_EINVAL, also that of an event of 0.3.0, which comes anyway. CCI_ENOMEM */
    CCI_OPT_ENDPT_EVENT_MASK,
    /* char *, get: who the peer is, as in cci_event_connect_request_t, or the multicast group; the program frees it.
     * CCI_ERR_NOT_IMPLEMENTED: the transport can't say */
    CCI_OPT_CONN_PEER_URI,
    CCI_OPT_CONN_CONTEXT, /* void *, get and set: the connection's context, also in events from now on             */
    /* cci_caps_t, get: what a device, an endpoint or a connection can do; the handle may be any of them.
     * CCI_ERR_NOT_IMPLEMENTED: the transport doesn't tell */
    CCI_OPT_CAPS,
    CCI_OPT_ENDPT_STATS, /* cci_endpt_stats_t, get                                                                  */
    CCI_OPT_CONN_STATS,  /* cci_conn_stats_t, get                                                                   */
    /* uint32_t, get and set: 1 begins, with all at 0, to count for each connection what the first part of
     * cci_conn_stats_t tells; 0, the default, ends it. Takes about 150 bytes for each connection. CCI_ERANGE: another
     * value. CCI_ENOMEM */
    CCI_OPT_ENDPT_CONN_STATS,
    /* cci_os_handle_t, get: a second descriptor, for whoever sends; see cci_arm_os_handle(). It belongs to the
     * endpoint; the first call makes it. CCI_EINVAL: the endpoint has no OS handle. CCI_ERR_NOT_IMPLEMENTED: there are
     * no descriptors, or the transport can't. CCI_ENOMEM: no more files can be open */
    CCI_OPT_ENDPT_SEND_FD,
    /* uint32_t µs, get and set, of any connection; 0, the default: cci_disconnect() ends at once what is pending. Else
     * it goes on for so long at most; see there. CCI_ERR_NOT_IMPLEMENTED: CCI_NO_LINGER */
    CCI_OPT_CONN_LINGER
} cci_opt_name_t;

/* Beyond CCI 0.3.0: what an endpoint has done since it was created, and what it has now. Any thread may ask. Counters
 * are never reset. What a transport can't count is 0: datagram transports tell everything (system calls: udp alone);
 * sisci, and verbs in mode rc, tell what there is now, as their headers say. Asking takes time in proportion to the
 * connections. Bytes of datagrams are without the headers of the network below (UDP, IP). */
typedef struct cci_endpt_stats {
    uint64_t datagrams_sent, bytes_sent; /* that the link has taken                                                   */
    uint64_t datagrams_received, bytes_received; /* dropped ones too                                                  */
    uint64_t packets_retransmitted; /* packets that carry again what an earlier one carried                           */
    uint64_t packets_lost;          /* that were taken for lost: later ones have arrived, or no answer came           */
    /* Datagrams received that were dropped, by reason. Repeats and latecomers of a handshake are not among them. */
    uint64_t dropped_corrupt;       /* the checksum is wrong, or a packet of a connection makes no sense              */
    uint64_t dropped_not_ours;      /* no packet of this protocol, or of a peer that is configured otherwise          */
    uint64_t dropped_no_connection; /* for none that is here                                                          */
    uint64_t dropped_no_buffer;     /* no receive buffer, or no memory for the connection's traffic: it comes again   */
    uint64_t dropped_not_authentic; /* sealed, and it does not open                                                   */
    uint64_t dropped_duplicate;     /* a packet that was there before                                                 */
    uint64_t requests_refused;      /* requests for a connection that were answered with "busy"                       */
    uint64_t connections_ended;     /* connections that got no further, and were ended since others needed memory     */
    uint64_t system_calls;          /* under the calls of the program; not those of helper threads                    */
    /* what there is now */
    uint32_t connections_open;    /* that can send and receive                                                        */
    uint32_t connections_active;  /* that hold the memory for traffic                                                 */
    uint32_t connections_opening; /* requests of both sides that have no outcome yet                                  */
    uint32_t events_waiting;      /* for cci_get_event()                                                              */
    uint32_t recv_buffers_used, recv_buffers_most; /* with messages, here or with the program; most so far            */
    uint32_t send_buffers_used, send_buffers_most; /* with messages that are pending                                  */
} cci_endpt_stats_t;

/* Beyond CCI 0.3.0: of a connection. Any thread may ask. What a transport can't count is 0: sisci, and verbs in mode
 * rc, count messages and RMAs of this side. */
typedef struct cci_conn_stats {
    /* Counted where CCI_OPT_ENDPT_CONN_STATS is 1: since the connection was made, or since the option was set if that
     * was later. Pauses without traffic don't matter. 0 otherwise. */
    uint64_t messages_sent, bytes_sent;         /* that calls have accepted, completion messages of RMA too           */
    uint64_t messages_received, bytes_received; /* that the program has taken with cci_get_event()                    */
    uint64_t rma_writes, rma_write_bytes;       /* that cci_rma() has accepted                                        */
    uint64_t rma_reads, rma_read_bytes;         /* likewise                                                           */
    uint64_t peer_write_bytes;                  /* that writes of the peer have put into memory here                  */
    uint64_t peer_read_bytes;                   /* sent for reads of the peer, repeated ones too                      */
    uint64_t packets_sent, packet_bytes_sent;   /* without those that open and close the connection                   */
    uint64_t packets_received, packet_bytes_received; /* likewise, duplicates too                                     */
    uint64_t packets_retransmitted, packets_lost;     /* as in cci_endpt_stats_t                                      */
    uint64_t rnr; /* times that the peer refused something for want of a receive buffer                               */
    /* What is known now, whether it is counted or not. 0: nothing yet. */
    uint64_t latest_rtt_ns;       /* the latest round trip, to 16 ns; 0 from a pause without traffic to the next one  */
    uint64_t srtt_ns, min_rtt_ns; /* round trips: smoothed, and the smallest; to 1 µs without traffic                 */
    uint64_t congestion_window;   /* bytes that may be under way; 0 without traffic, or if another limit rules        */
    uint64_t in_flight_bytes;     /* that are under way                                                               */
    uint64_t silent_ns;           /* since something last came from the peer, to a few milliseconds; groups: 0        */
    uint32_t operations_pending;  /* that are not done: messages, and RMAs or parts of lists, each with its message   */
    uint32_t path_mtu;            /* bytes of the largest packet                                                      */
    uint32_t is_counted;          /* 1: the first part is counted                                                     */
    uint32_t is_active;           /* 1: it holds the memory for traffic                                               */
} cci_conn_stats_t;

/* Required alignment in bytes of the parts of an RMA, 0 for none. [5.1] */
typedef struct cci_alignment {
    uint32_t rma_write_local_addr;
    uint32_t rma_write_remote_addr;
    uint32_t rma_write_length;
    uint32_t rma_read_local_addr;
    uint32_t rma_read_remote_addr;
    uint32_t rma_read_length;
} cci_alignment_t;

/* Beyond CCI 0.3.0: what can be done. */
#define CCI_CAN_ORDERED (1u << 0)      /* reliable messages arrive in order: CCI_CONN_ATTR_RO                  */
#define CCI_CAN_MULTICAST (1u << 1)    /* CCI_CONN_ATTR_UU_MC_TX and _RX                                        */
#define CCI_CAN_RMA (1u << 2)          /* cci_rma()                                                             */
#define CCI_CAN_RMA_SHARED (1u << 3)   /* peers of this host can map what cci_rma_alloc() gives                 */
#define CCI_CAN_RMA_HARDWARE (1u << 4) /* the adapter executes RMA: nothing of the target's program need run    */
#define CCI_CAN_SEAL (1u << 5)       /* packets are sealed by the program's cipher; false without cci_setup()'s hooks */
#define CCI_CAN_ATOMICS_32 (1u << 6) /* cci_atomic() of 4 bytes, if the peer can, too                          */
#define CCI_CAN_ATOMICS_64 (1u << 7) /* cci_atomic() of 8 bytes, likewise                                       */
#define CCI_CAN_WAKE (1u << 9)       /* CCI_FLAG_WAKE and the classes of cci_arm_os_handle()                    */

/* Those of a device are the most that an endpoint of it can have; those of an endpoint, the most of its connections. */
typedef struct cci_caps {
    uint64_t can;             /* a set of CCI_CAN_                                                          */
    uint64_t max_rma_length;  /* bytes of one RMA; UINT64_MAX: only memory limits it                        */
    uint32_t max_send_size;   /* bytes of the largest message                                               */
    uint32_t max_request_len; /* bytes of data that a server takes with a request                           */
    uint32_t max_connections; /* of an endpoint; memory, or an adapter, may allow less                      */
    uint32_t max_send_bufs;   /* largest value of CCI_OPT_ENDPT_SEND_BUF_COUNT                              */
    uint32_t max_recv_bufs;   /* largest value of CCI_OPT_ENDPT_RECV_BUF_COUNT                              */
    /* of each list of cci_rmav(), at most; 0: it can't have lists */
    uint32_t max_rma_segments;
    uint32_t reserved[8]; /* 0 */
} cci_caps_t;

/* an endpoint or a connection, as the option's name says; for CCI_OPT_CAPS also a device */
typedef CCI_CONST void cci_opt_handle_t;

/* A handle of registered memory: these 32 bytes and nothing else. A copy of them, sent to a peer or kept elsewhere, is
 * as good as the original. [5.13] */
typedef CCI_CONST struct cci_rma_handle { uint64_t stuff[4]; } cci_rma_handle_t;

/* ---- initialization [4.1] --------------------------------------------------------------------------------------- */

/* Makes the library ready. Calls are counted: each success wants one cci_finalize(). In the child of fork() the count
 * begins anew (see FORK in >>manual). `*caps` becomes a set of CCI_CAPS_.
 * CCI_EINVAL: caps is NULL, the ABI version is neither 1 nor 2, or flags is not 0. CCI_ERR_NOT_FOUND: no transport was
 * included or registered, or the file that CCI_CONFIG names does not exist. CCI_ERROR: the configuration has an
 * error or can't be read (the log names the file, and the line or the reason). CCI_ENOMEM: also when no more files
 * can be open. */
CCI_API int cci_init(uint32_t abi_ver, uint32_t flags, uint32_t *caps);

/* Undoes one cci_init(); the last destroys all endpoints that are left and frees everything. CCI_ERROR when there was
 * no cci_init(). */
CCI_API int cci_finalize(void);

/* The text of a status, NULL if it is none. The endpoint may be NULL. */
CCI_API const char *cci_strerror(cci_endpoint_t *endpoint, enum cci_status status);

/* Beyond CCI 0.3.0: what the program or its user can do about a status, NULL if it is none; with CCI_NO_TEXT always "".
 * Where a call refuses a URI or a device, the log (level warning) names the part that is wrong. */
CCI_API const char *cci_status_hint(enum cci_status status);

/* The name of an event type, "CCI_EVENT_RECV" for one, NULL if it is none. */
CCI_API const char *cci_event_type_str(cci_event_type_t type);

/* ---- devices [4.2] ---------------------------------------------------------------------------------------------- */

/* Gives an array of devices that ends with NULL, the highest priority first. The array belongs to the library and is
 * valid until cci_finalize(); calling again brings `up` up to date and may add devices. CCI_EINVAL: devices is NULL.
 * CCI_ERROR: before cci_init(). CCI_ENOMEM.
 *
 * The configuration is an INI text: [section] names a device; `transport` is needed; `priority` is 0 to 100 (default
 * 50); `default = 1` marks the device that a NULL device stands for; all other keys are the transport's and are
 * listed in its header. Comments start with #. */
CCI_API int cci_get_devices(cci_device_t *const **devices);

/* ---- endpoints [4.3] -------------------------------------------------------------------------------------------- */

/* Creates an endpoint on a device, or on the default device for NULL. `fd` may be NULL for a program that only polls;
 * otherwise it becomes a descriptor that is readable while events wait or the library wants to be called. flags: a
 * set of CCI_ENDPOINT_. CCI_EINVAL: endpoint is NULL, flags has another bit, or the device is not one of
 * cci_get_devices(). CCI_ENODEV: the device is not up, or there is none. CCI_ERR_NOT_IMPLEMENTED: CCI_ENDPOINT_SHARED
 * on a transport that can't. CCI_ENOMEM. CCI_ERROR: before cci_init(), or what the log says. */
CCI_API int cci_create_endpoint(cci_device_t *device, int flags, cci_endpoint_t **endpoint, cci_os_handle_t *fd);

/* The same at a given service, NULL chooses one. A number, or for UDP and verbs a service that the system knows, is a
 * port. Any other text of 1 to 120 bytes of UTF-8 is a name, unless it is made of digits and '/' alone, with 0x before
 * it of hexadecimal ones (1/2, 0x1f): clients connect to udp://host/name, or verbs:// or sisci://. There is no name
 * server and no daemon: the name gives eight ports, the server takes the first that is free, and a client asks one
 * after the other, by name, until that server answers or the client's time is over; a server of another name, or of
 * none, says that it is not the one. The endpoint's URI has the port, and connects as ever.
 * CCI_EBUSY: the port is taken, by an endpoint that does not share it, by another user's, or by as many as can share
 * it; or another server of this address has the name (on systems other than Linux only those of this process count), or
 * the name's ports are all taken. CCI_EINVAL: there is no such service, and it is no name either.
 * CCI_ERR_NOT_IMPLEMENTED: CCI_ENDPOINT_SHARED with a name. */
CCI_API int cci_create_endpoint_at(cci_device_t *device, const char *service, int flags, cci_endpoint_t **endpoint,
                                   cci_os_handle_t *fd);

/* Closes all connections, sends the acknowledgements owed and frees everything that belongs to the endpoint, events and
 * registrations included. It waits a short time for peers that were told of the end to answer, with datagram
 * transports 0.1 s at most: no other thread may use the endpoint meanwhile. CCI_EINVAL: endpoint is NULL. */
CCI_API int cci_destroy_endpoint(cci_endpoint_t *endpoint);

/* ---- connections [4.4] ------------------------------------------------------------------------------------------ */

/* Accepts a request; a CCI_EVENT_ACCEPT with the context follows. The request event must still be returned.
 * CCI_EINVAL: the event is not a request, or was accepted or rejected already. */
CCI_API int cci_accept(cci_event_t *conn_req, const void *context);

/* Rejects a request; the client gets CCI_ECONNREFUSED. The request event must still be returned. CCI_EINVAL
 * likewise. */
CCI_API int cci_reject(cci_event_t *conn_req);

/* Beyond CCI 0.3.0: the same, with up to CCI_CONN_REQ_LEN bytes for the client, which are copied. They stand in its
 * CCI_EVENT_CONNECT. They are kept until the client has confirmed, and after a rejection for 4 s: a client that has not
 * got all of them by then, or in its own time-out, gets CCI_ETIMEDOUT. A client whose address is not proven proves it
 * first, which takes a round trip; with 0 bytes this is cci_accept() or cci_reject(). CCI_EINVAL: also when data_len is
 * over CCI_CONN_REQ_LEN, or data_ptr is NULL and data_len is not 0. CCI_ENOBUFS: too many clients have not confirmed
 * such data yet; the request is still undecided. CCI_ERR_NOT_IMPLEMENTED: the transport carries no such data. */
CCI_API int cci_accept_data(cci_event_t *conn_req, const void *context, const void *data_ptr, uint32_t data_len);
CCI_API int cci_reject_data(cci_event_t *conn_req, const void *data_ptr, uint32_t data_len);

/* Asks for a connection; a CCI_EVENT_CONNECT with the context follows. `data_ptr` (up to 1,024 bytes) is copied.
 * Names in the URI are resolved by the system's resolver, which may block. flags: 0; there is none that means anything.
 * A NULL timeout means for ever. CCI_EINVAL: an argument is NULL or out of range, flags has a bit that is no CCI_FLAG_,
 * data_len is over CCI_CONN_REQ_LEN, or the URI is malformed. CCI_EADDRNOTAVAIL: the host is not known or not of a
 * family that the endpoint can reach. CCI_ENOMEM. */
CCI_API int cci_connect(cci_endpoint_t *endpoint, const char *server_uri, const void *data_ptr, uint32_t data_len,
                        cci_conn_attribute_t attribute, const void *context, int flags, const struct timeval *timeout);

/* Tears a connection down, at once: the handle is stale from now on. The peer is told, as far as the transport can.
 * Operations still pending complete with CCI_ERR_DISCONNECTED; messages not yet taken are dropped, and so are events
 * that wait and name only the connection (keepalive, disconnect). CCI_EINVAL: connection is NULL.
 *   Where CCI_OPT_CONN_LINGER is not 0, cci_disconnect() returns at once all the same, and the handle is stale, but
 * messages, RMAs and atomics that are pending go on. Each completes with the status that it has then, and with
 * CCI_ERR_DISCONNECTED if that time is over first; other events of the connection come no more, and messages of the
 * peer are dropped. When nothing is pending any more, or the time is over, the peer is told: it has got the messages,
 * and then CCI_EVENT_DISCONNECT with CCI_SUCCESS. It ends earlier, with what is pending, when the peer closes, when a
 * send time-out breaks the connection, and with cci_destroy_endpoint() and cci_finalize(), which don't wait for it.
 * Until then buffers of CCI_FLAG_NO_COPY, registered memory and what cci_atomic() is to write are in use, and the
 * connection counts where connections are limited. Nothing goes on unless the program gets events, or a helper thread
 * works. Parts of cci_rmav() that have not begun don't begin any more. */
CCI_API int cci_disconnect(cci_connection_t *connection);

/* ---- getting events [4.5] --------------------------------------------------------------------------------------- */

/* What wakes a program that sleeps on the OS handle, beyond CCI 0.3.0. */
#define CCI_ARM_RECV (1 << 0)  /* CCI_EVENT_RECV */
#define CCI_ARM_SEND (1 << 1)  /* CCI_EVENT_SEND */
#define CCI_ARM_OTHER (1 << 2) /* all other events */
#define CCI_ARM_WAKE (1 << 3)  /* CCI_EVENT_RECV of a message that was sent with CCI_FLAG_WAKE */

/* Makes the OS handle ready for sleeping: what has come is taken in, what is outstanding is sent and the next deadline
 * armed, as a cci_get_event() that returns CCI_EAGAIN does. Calling it is optional.
 * flags: 0, all events make the handle readable; or, beyond CCI 0.3.0, a set of CCI_ARM_: those alone, until the next
 * call says otherwise. The handle is readable at once if such an event waits. cci_get_event() gives all events in their
 * order as ever; after it has given one, the handle stays readable until CCI_EAGAIN or the next call. See SLEEPING in
 * >>manual for who does the library's work meanwhile. CCI_EINVAL: endpoint is NULL or has no OS handle, or flags has a
 * bit that is no CCI_ARM_. CCI_ERR_NOT_IMPLEMENTED: the transport can't choose (CCI_CAN_WAKE). */
CCI_API int cci_arm_os_handle(cci_endpoint_t *endpoint, int flags);

/* Beyond CCI 0.3.0, for programs without an OS handle: `*ns` becomes the nanoseconds from now, by the transport's
 * clock, within which the program must call cci_get_event() again if nothing arrives and it calls nothing else
 * meanwhile. 0: at once, an event waits or something is due; UINT64_MAX: not before something arrives. It may be
 * earlier than needed, and does no work itself. After CCI_ENOBUFS it takes no account of messages that wait for the
 * program to return events. CCI_EINVAL: an argument is NULL. */
CCI_API int cci_next_deadline(cci_endpoint_t *endpoint, uint64_t *ns);

/* Gets the next event, and lets the library work. Never blocks. CCI_EAGAIN: there is none (*event becomes NULL).
 * CCI_ENOBUFS: there is none to give since the program holds all receive buffers: it returns events before it sleeps,
 * since the handle stays readable while messages wait for a buffer. CCI_EINVAL: an argument is NULL. */
CCI_API int cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event);

/* Returns an event and what it holds, in any order, from any thread. CCI_EINVAL: event is NULL, or is a request that
 * was neither accepted nor rejected. */
CCI_API int cci_return_event(cci_event_t *event);

/* ---- options [4.6] ---------------------------------------------------------------------------------------------- */

/* CCI_EINVAL: handle or val is NULL, the option is get-only, there is no such option, or the handle is a connection
 * where the option is an endpoint's, or the reverse. CCI_ERANGE: the value is. */
CCI_API int cci_set_opt(cci_opt_handle_t *handle, cci_opt_name_t name, const void *val);
CCI_API int cci_get_opt(cci_opt_handle_t *handle, cci_opt_name_t name, void *val);

/* ---- messages [4.7.2.1, 4.7.2.2] -------------------------------------------------------------------------------- */

/* Sends a message of up to connection->max_send_size bytes. The buffer is the program's again on return, with
 * CCI_FLAG_NO_COPY on completion. Reliable: completes when the peer has it; unreliable: when it has left. Flags:
 * BLOCKING, NO_COPY, SILENT, WAKE, and beyond CCI 0.3.0 FENCE: the peer gets the message when every earlier RMA of the
 * connection is done, reads too; RU: later messages may come before. NO_COPY with SILENT is for RO alone (CCI_EINVAL).
 * CCI_EINVAL: connection is NULL or receives multicast, msg_ptr is NULL and msg_len is not 0, or flags has a bit that
 * is no CCI_FLAG_. CCI_EMSGSIZE: too long. CCI_ENOBUFS: too much is pending (see also cci_rmav()).
 * CCI_ERR_DISCONNECTED: the peer has left. With BLOCKING also the statuses of CCI_EVENT_SEND. CCI_ERR_NOT_IMPLEMENTED:
 * WAKE, and the transport can't (CCI_CAN_WAKE). */
CCI_API int cci_send(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len, const void *context,
                     int flags);
CCI_API int cci_sendv(cci_connection_t *connection, const struct iovec *data, uint32_t iovcnt, const void *context,
                      int flags);

/* ---- remote memory access [4.7.2.3 - 4.7.2.5] ------------------------------------------------------------------- */

/* Registers memory. Registrations may overlap. flags: what peers may do (CCI_FLAG_READ, CCI_FLAG_WRITE), 0 for local
 * use. The handle belongs to the library and stays valid until it is deregistered. CCI_EINVAL: a pointer is NULL or
 * the length is 0, the range passes the end of the address space, or flags has a bit that is no CCI_FLAG_. CCI_ENOBUFS:
 * too many registrations.
 * CCI_ENOMEM. */
CCI_API int cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
                             cci_rma_handle_t **rma_handle);

/* Ends a registration: from now on nothing touches the memory. An RMA of this endpoint that is using it ends with
 * CCI_ERR_RMA_HANDLE, one of a peer too. CCI_EINVAL: a pointer is NULL. CCI_ERR_RMA_HANDLE: there is no such handle. */
CCI_API int cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *rma_handle);

/* Moves data_len bytes between registered memories. With msg_ptr and msg_len the peer gets that message after the data.
 * Flags: one of READ and WRITE, and BLOCKING, SILENT, FENCE. Completes with CCI_SUCCESS when the peer has all of it, or
 * with CCI_ERR_RMA_HANDLE, CCI_ETIMEDOUT, CCI_ERR_DISCONNECTED, CCI_ERR_RNR.
 * CCI_EINVAL: connection or a handle is NULL, it is unreliable, data_len is 0, not just one of READ and WRITE is set,
 * or flags has a bit that is no CCI_FLAG_. CCI_ERR_RMA_HANDLE: the local handle is not valid for that range.
 * CCI_EMSGSIZE, CCI_ENOBUFS, CCI_ERR_DISCONNECTED. */
CCI_API int cci_rma(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len, cci_rma_handle_t *local_handle,
                    uint64_t local_offset, cci_rma_handle_t *remote_handle, uint64_t remote_offset, uint64_t data_len,
                    const void *context, int flags);

/* ---- beyond CCI ------------------------------------------------------------------------------------------------- */

/* A part of registered memory: `length` bytes from `offset` on. */
typedef struct cci_rma_segment {
    cci_rma_handle_t *handle;
    uint64_t offset, length;
} cci_rma_segment_t;

/* An RMA between lists: all bytes of the local segments, one segment behind the other, from or to all bytes of the
 * remote ones. Each list is divided as it likes; the sums are equal. A segment may have 0 bytes, then its handle means
 * nothing. Both arrays, and the message, are the program's again on return. Otherwise it is one cci_rma(): one
 * completion, and one message, which the peer gets after all of the data, and with READ when all of it is here. Flags
 * and statuses are those of cci_rma(), the first error that a part meets is the status, and then parts that had not
 * begun don't begin. What has been moved by then is not defined, and no message comes.
 *   It moves in parts, 64 at most at a time. The last one waits for all others if there is a message. Parts that have
 * not begun do so in cci_get_event(), with BLOCKING one after the other before the call returns. Until all have, an RMA
 * of the connection with FENCE is CCI_ENOBUFS, and on an ordered one (RO) everything that is sent behind: the program
 * gets events, and tries again.
 * CCI_EINVAL: also when a list is NULL, has more segments than max_rma_segments of cci_caps_t or 0 bytes, or the sums
 * differ. CCI_ERR_RMA_HANDLE: a local handle is not valid for that range. CCI_ENOBUFS, CCI_ENOMEM. After each of these
 * nothing is under way. CCI_ERR_NOT_IMPLEMENTED: the transport can't (max_rma_segments is 0). */
CCI_API int cci_rmav(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
                     const cci_rma_segment_t *local, uint32_t local_count, const cci_rma_segment_t *remote,
                     uint32_t remote_count, const void *context, int flags);

struct cci_transport;
struct cci_link_addr;

/* Gives memory for RMA, aligned to pages, that the transport can share with peers where it has a way to: then data goes
 * straight from memory to memory, without the peer's program (sisci: both sides on one host). Elsewhere it is memory
 * like any other. Register it, or parts of it, before use. What it holds is not defined. CCI_EINVAL: a pointer is
 * NULL or the length is 0. CCI_ENOMEM. */
CCI_API int cci_rma_alloc(cci_endpoint_t *endpoint, uint64_t length, void **memory);

/* Takes it back; cci_destroy_endpoint() does so too. CCI_EBUSY: a part of it is registered. CCI_EINVAL: it is not what
 * cci_rma_alloc() gave for this endpoint. */
CCI_API int cci_rma_free(cci_endpoint_t *endpoint, void *memory);

/* What cci_atomic() does to a number in the peer's memory, in one step. */
typedef enum cci_atomic_op {
    CCI_ATOMIC_FETCH_ADD,   /* adds `operand`, modulo 2 to the power of the width                   */
    CCI_ATOMIC_SWAP,        /* `operand` takes its place                                            */
    CCI_ATOMIC_COMPARE_SWAP /* `operand` takes its place if it is equal to `compare`, else it stays */
} cci_atomic_op_t;

/* Does that to the number of `width` bytes, 4 or 8, at `offset` of the peer's registered memory, which must allow READ
 * and WRITE: exactly once, whatever is lost or repeated on the way, and in one step for all atomics of all peers and
 * for the target's own atomic instructions. Numbers are those of the target's processor, whatever the byte order of
 * either side. `previous`, unless it is NULL, gets what was there; it is the library's until the completion. Atomics
 * of one connection may be done in any order: CCI_FLAG_FENCE keeps one behind those before it. Flags: BLOCKING,
 * SILENT, FENCE. Completes as cci_rma() does: CCI_SUCCESS; CCI_ERR_RMA_HANDLE, and nothing has changed: the memory is
 * not registered so, or the number is not aligned to its width; CCI_ERR_RMA_OP, likewise: the peer has no atomics, or
 * none of that width; with CCI_ETIMEDOUT and CCI_ERR_DISCONNECTED it may have been done or not.
 * CCI_EINVAL: connection or handle is NULL, the connection is unreliable, or operation, width or flags is none of the
 * above. CCI_ERR_NOT_IMPLEMENTED: see CCI_OPT_CAPS. CCI_ENOBUFS, CCI_ERR_DISCONNECTED. */
CCI_API int cci_atomic(cci_connection_t *connection, int operation, uint32_t width, cci_rma_handle_t *remote_handle,
                       uint64_t remote_offset, uint64_t operand, uint64_t compare, uint64_t *previous,
                       const void *context, int flags);

/* Whose key is wanted. */
typedef struct cci_seal_peer {
    cci_endpoint_t *endpoint; /* the local one                                                        */
    cci_conn_attribute_t attribute;
    const struct cci_link_addr *from; /* the peer's address, in the link's form                               */
    const char *address;              /* connecting: the URI behind its scheme; otherwise NULL                */
    void *context;                    /* connecting: what cci_connect() was given; otherwise NULL             */
    uint64_t key_id;                  /* connecting: the hook may set it, and the peer's hook gets it: a claim, readable
                                         by everybody and proven only when a packet opens                     */
} cci_seal_peer_t;

#define CCI_SEAL_NONCE_LEN 24

/* A program's own encryption, an AEAD, of the packets of its datagram endpoints: see SECRECY in >>manual. The hooks are
 * called under the lock of the endpoint, perhaps by its helper thread, and must not call the library. `key` and
 * `open` meet what anybody can send. */
typedef struct cci_seal {
    uint32_t tag_size;      /* bytes that `seal` adds: 8 to 64, a multiple of 8                                */
    uint32_t plain_allowed; /* 1: connections without a key are made and accepted too                          */
    void *user;             /* first argument of the hooks                                                     */
    /* The key of a connection that is being made, anything but NULL, which stands for none: a request is dropped, and
     * cci_connect() fails with CCI_ERR_NOT_FOUND or, where that is allowed, makes a connection that is not sealed. */
    void *(*key)(void *user, cci_seal_peer_t *peer);
    void (*forget)(void *user, void *key); /* the connection is gone: once for each key given. May be NULL      */
    /* Replaces `length` bytes by as many encrypted ones and a tag behind them, which also vouches for the head. 0,
     * or another value when the key must not be used any more: the connection then breaks. */
    int (*seal)(void *user, void *key, const uint8_t nonce[CCI_SEAL_NONCE_LEN], const uint8_t *head,
                uint32_t head_length, uint8_t *bytes, uint32_t length);
    /* Undoes that; `length` is without the tag behind it. Returns 0, or another value if anything was changed. */
    int (*open)(void *user, void *key, const uint8_t nonce[CCI_SEAL_NONCE_LEN], const uint8_t *head,
                uint32_t head_length, uint8_t *bytes, uint32_t length);
} cci_seal_t;

#define CCI_LOG_ERROR 0
#define CCI_LOG_WARN 1
#define CCI_LOG_INFO 2
#define CCI_LOG_DEBUG 3

/* What cci_setup() takes. Zero means the documented default; the pointers must stay valid until the last
 * cci_finalize(). */
typedef struct cci_setup_hooks {
    void *(*alloc)(void *user, size_t size);    /* memory aligned for any type, or NULL; default malloc()      */
    void (*release)(void *user, void *pointer); /* both or neither; default free()                             */
    /* default: errors and warnings to stderr. The environment's CCI_LOG (error, warn, info, debug), as cci_init() finds
     * it, says what is logged, here and there; debug: also each packet that opens or ends a connection, on datagram
     * transports */
    void (*log)(void *user, int level, const char *text);
    /* Unguessable bytes, 0 on success; default the system's. Never the same again, also after a restart: nonces and
     * all that nobody may guess are made of them. */
    int (*random)(void *user, void *bytes, size_t count);
    void *user;                                    /* first argument of the four above                            */
    const char *config;                            /* INI text instead of the file that CCI_CONFIG names          */
    const struct cci_transport *const *transports; /* own transports, before the included ones; ends with NULL   */
    const cci_seal_t *seal;                        /* encryption of packets; default none                         */
} cci_setup_t;

/* Sets hooks before cci_init(); NULL restores the defaults. They stay set after cci_finalize(). CCI_EBUSY: after
 * cci_init() or cci_create_endpoint_on_link(). CCI_EINVAL: only one of alloc and release is set, or `seal` lacks a hook
 * or has another tag_size than it may. Transports: as cci_register_transport(). The hooks and transports must not call
 * functions that make or list devices or endpoints. */
CCI_API int cci_setup(const cci_setup_t *setup);

/* Adds a transport (before or after cci_init(); its devices appear with the next cci_get_devices()), or takes it away
 * when none of its endpoints is open (CCI_EBUSY). The table must stay valid meanwhile. CCI_EINVAL: version or name is
 * wrong. CCI_EBUSY: the name is taken. CCI_ENOBUFS: there are 16 already. CCI_ERR_NOT_FOUND: it was not registered. */
CCI_API int cci_register_transport(const struct cci_transport *transport);
CCI_API int cci_deregister_transport(const struct cci_transport *transport);

/* Tells about transport number `index`: its name, and as the value why it has no devices, or "" when it has some. NULL
 * when there is no such transport; the text is valid until the next cci_get_devices(). For programs like cci_info. */
CCI_API const char *cci_transport_reason(uint32_t index, const char **name);

/* ==================================================================================================================
 * >>transport
 *
 * A transport makes devices, and endpoints on them. It does so in one of two ways. It may fill in `link`, a table that
 * moves datagrams and knows nothing else (see >>link): then the datagram endpoint in this header turns it into all
 * of CCI. Or it fills in `ops`, the CCI operations themselves, for hardware that does better; its endpoint then
 * begins with a cci_endpoint_base_t, its events with a cci_event_base_t, and its connections with a struct
 * cci_connection. Arguments have been checked for NULL before an operation is called; everything else is the
 * transport's.
 * ================================================================================================================== */

/* 4: `ops` ends with atomic, `rma` knows CCI_PIECE, and a device may have `service_port`. 3: `ops` ends with answer and
 * next_deadline. Transports of version 1, whose `ops` ends with rma, and of version 2, where it ends with rma_free, are
 * taken too. */
#define CCI_TRANSPORT_VERSION 4

/* Flags of `rma` for the parts of which the core makes a list (cci_rmav()); programs can't set them. */
#define CCI_PIECE (1 << 24)       /* its completion is an event of type CCI_EVENT_NONE, otherwise as CCI_EVENT_SEND */
#define CCI_PIECE_NEXT (1 << 25)  /* statistics: it belongs to an RMA that has been counted                         */
#define CCI_PIECE_CHECK (1 << 26) /* nothing happens: would the connection and the handles be taken? its status     */

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
    /* Since version 3, of a native transport: what its endpoints can do, but for max_send_size; it stays valid. NULL:
     * it does not tell, or the device is to use the link, and the core knows */
    const cci_caps_t *caps;
    /* Since version 4. NULL, or services are port numbers and addresses "host:port": this gives the number that a
     * service means which is one (0: any), or which the system knows; -1 if there is none. Then endpoints and
     * connections also go by name, see cci_service_name(). */
    int (*service_port)(const char *service);
} cci_device_desc_t;

/* Every endpoint of a native transport begins with this. */
typedef struct cci_endpoint_base {
    struct cci_endpoint pub;
    const struct cci_endpoint_ops *ops;
    struct cci_endpoint_base *next_in_core; /* the core's list of open endpoints */
    /* NULL, or what is called in the child of fork(): it closes the endpoint's descriptors and forgets their
     * numbers, and does nothing else. Another thread of the parent may have been anywhere inside the endpoint: no
     * lock, no allocation. */
    void (*forked)(struct cci_endpoint_base *endpoint);
    struct cci_lists *lists; /* since version 4, the core's: NULL, and what cci_rmav() has under way */
} cci_endpoint_base_t;

/* Every event of a native transport begins with this. */
typedef struct cci_event_base {
    union cci_event pub;
    cci_endpoint_base_t *endpoint;
} cci_event_base_t;

typedef struct cci_atomic_call {
    const struct cci_rma_handle *remote;
    uint64_t offset, operand, compare;
    uint64_t *previous;
    void *context;
    uint32_t operation, width;
    int flags;
} cci_atomic_call_t;

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
    /* Memory that peers can share, aligned to pages; it is freed only when none of it is registered, or with the
     * endpoint. Both or neither. CCI_ERR_NOT_IMPLEMENTED: ordinary memory will do, and the core gives it. */
    int (*rma_alloc)(cci_endpoint_base_t *endpoint, uint64_t length, void **memory);
    void (*rma_free)(cci_endpoint_base_t *endpoint, void *memory);
    /* Accepts or rejects with data, 1 to CCI_CONN_REQ_LEN bytes. NULL: it can't. */
    int (*answer)(cci_event_base_t *request, int accepts, void *context, const void *data, uint32_t data_len);
    int (*next_deadline)(cci_endpoint_base_t *endpoint, uint64_t *ns);
    /* What cci_atomic() was given; `operand` and `compare` have nothing beyond the width. NULL: it can't. */
    int (*atomic)(struct cci_connection *connection, const cci_atomic_call_t *call);
} cci_endpoint_ops_t;

struct cci_link;

typedef struct cci_transport {
    uint32_t version;   /* CCI_TRANSPORT_VERSION                                                        */
    const char *name;   /* "udp": the value of the key `transport`, and the scheme of its URIs          */
    const char *scheme; /* a second scheme that is accepted, or NULL                                    */
    void *user;         /* the transport's own                                                          */
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
                  cci_os_handle_t *fd); /* a native transport: sets endpoint->ops. With a link too, it returns
                                           CCI_ERR_NOT_IMPLEMENTED for a device that is to use the link   */
} cci_transport_t;

#ifndef CCI_TINY /* which has no transports but links */
/* The transport's own part of a device, as `discover` or `configure` left it. */
CCI_API const void *cci_device_data(cci_device_t *device);

#ifndef CCI_STATIC
/* Names for the linker's message: two files have the implementation, or a file has that of a transport without
 * cci.h. */
extern const char cci_only_one_file_may_define_CCI_IMPLEMENTATION, cci_h_is_missing_after_the_header_of_a_transport;
#define CCI__CORE_IS_LINKED cci_h_is_missing_after_the_header_of_a_transport
#else
#define CCI__CORE_IS_LINKED 1
#endif

/* A device with `service_port` has services by name: `service` may then be a port of five digits, '/' and the name of a
 * server that has the port on account of the name; and the address of a connection may be a host, '/' and the name.
 * Returns the name in either, NULL if there is none. */
CCI_API const char *cci_service_name(cci_device_t *device, const char *text);

/* Services that transports may use; valid between cci_init() and cci_finalize(). */
CCI_API void *cci_alloc(size_t size);
CCI_API void cci_release(void *pointer);
CCI_API void cci_log(int level, const char *text);
CCI_API int cci_log_wants(int level); /* is a text of that level worth making? CCI_LOG_DEBUG: only if CCI_LOG asks */
CCI_API int cci_random(void *bytes, size_t count);
/* the status that names an errno best, CCI_ERROR if none does; never another */
CCI_API int cci_status_of_errno(int error);
CCI_API const cci_seal_t *cci_seal_hooks(void);     /* of cci_setup(), or NULL */
CCI_API int cci_congestion_known(const char *name); /* 1 if a link may ask for that congestion control */

/* Takes one key of a device's section into what `user` is. Returns NULL, or what the value should have been (a
 * constant, or written to range[size]); "" when the transport has no such key. */
typedef const char *(*cci_take_key_t)(void *user, int index, const char *key, const char *value, char *range,
                                      size_t size);

/* For `configure`: hands each key and its value to `take`, without the blanks around them; not the core's own keys.
 * At the first that is refused *bad_key and `why` say which and why, and the result is CCI_EINVAL. *bad_key is -1
 * otherwise. */
CCI_API int cci_take_keys(const cci_transport_t *self, const char *const *keys, cci_take_key_t take, void *user,
                          int *bad_key, char *why, size_t why_size);

/* "scheme://address", for a program to free(). CCI_ENOMEM. */
CCI_API int cci_make_uri(const char *scheme, const char *address, char **uri);
#endif

/* ==================================================================================================================
 * >>link
 *
 * A link moves datagrams between addresses and knows nothing else: it may lose, repeat, reorder and corrupt them.
 * `open`, `close`, `send`, `receive` and `now` are needed; all others may be NULL. A link's functions are called by one
 * thread at a time (under the endpoint's lock), except `wait` and `wake`.
 *
 * A link of your own takes about 30 lines (examples/own_link.c: two pipes) and one call,
 * cci_create_endpoint_on_link(). Where bytes come instead of datagrams, a serial line for one, the link finds the
 * datagrams among them (examples/firmware/slip.h, for both ends of the line). In the order in which you write it:
 *     open      fills in `info`: `mtu`, 256 at least besides the 4 bytes of `crc`, which every line without a checksum
 *               of its own wants, at both ends; the buffer counts; `receive_window`: bytes that your receive queue
 *               holds while the program is busy, since more is lost. `os_handle` stays as it is, -1, where there are no
 *               descriptors.
 *     send      returns what it took. What does not fit into the queue now is not taken and comes again; half a
 *               datagram is never sent: look for room first. An endpoint of two peers needs no addresses: ignore `to`.
 *     receive   copies one datagram to `data`, sets `length` and `segment` to its bytes, `from` to zeros with the
 *               sender in them, and returns 1; 0 when nothing is there. One longer than `capacity` is dropped. `count`
 *               is 1 at least; more than one datagram may be left in as many buffers.
 *     now       counts nanoseconds and never goes back. A 24-bit counter overflows several times a second: its
 *               interrupt counts the overflows, and `now` reads both again until the count stays the same.
 *     resolve   is for the side that calls cci_connect(): it fills in what `send` wants to know, with one peer nothing.
 * The library finds out by itself that the peer of an idle connection has vanished only if `open` sets `probe_idle_s`,
 * or when all connections are taken and a new client asks. With 0 an idle connection sends nothing; the program can set
 * CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT instead.
 * An interrupt must not call the library. It moves bytes between the device and a ring with one writer and one reader,
 * and that is all; `send` and `receive` work on the ring's other end. A program without an operating system sets the
 * hooks `alloc` and `random` with cci_setup(). `random` needs a source that differs after each reset, or a restarted
 * device may be taken for the one before: where there is no generator, a counter kept in flash, the chip's number and
 * noise of an ADC, hashed together. Sends that return CCI_ENOBUFS, inside the handling of a CCI_EVENT_RECV for one,
 * are tried again after the program has returned that event and called cci_get_event(): nothing becomes free before.
 * ================================================================================================================== */

/* 3: the library reads `codepoint` of what was received, if `open` has set `ecn`. 2: the table ends with `text` and
 * `prefix`. Tables of version 2, and of version 1, which ends with `up`, are taken too. */
#define CCI_LINK_VERSION 3

/* An address of the link's own making; unused bytes are 0, since addresses are compared byte by byte. */
typedef struct cci_link_addr {
    uint8_t bytes[24];
} cci_link_addr_t;

/* What a link that shares its address may read of a datagram: the first byte of the library's packets, and of their
 * types, the second byte, those without a receiver. All others have the receiver's index in bytes 4 to 7,
 * little-endian. A request has its sender's there, and its random token in the 8 bytes from CCI_PACKET_TOKEN on, the
 * same in each of its pieces and repeats. */
#define CCI_PACKET_VERSION 0xC1
#define CCI_PACKET_REQUEST 1
#define CCI_PACKET_GROUP 9
#define CCI_PACKET_TOKEN 8u
#define CCI_PACKET_HEADER 24u /* bytes of a packet at least */

/* One datagram to send: its bytes are the pieces one after the other. */
typedef struct cci_link_tx {
    const cci_link_addr_t *to;
    uint32_t length;      /* bytes of all pieces                                              */
    uint32_t piece_count; /* 1 to 3                                                           */
    struct {
        const void *data;
        uint32_t length;
    } piece[3];
    uint32_t codepoint; /* of ECN [RFC 3168 5], to be sent with it: 0 or, if `open` has set `ecn`, 2, ECT(0) */
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
    /* out, if `open` has set `ecn`: the codepoint of ECN that all of the datagrams came with: 0 none, 1 ECT(1), 2
     * ECT(0), 3 CE. Who never writes it needs not: it comes as 0 */
    uint32_t codepoint;
} cci_link_rx_t;

/* What a link sees of its device. A change becomes a CCI_EVENT_STATUS. */
typedef struct cci_link_state {
    uint32_t mtu;           /* bytes; 0: not known                                     */
    uint32_t lacks_address; /* 1: the device has lost the address that the link is at */
} cci_link_state_t;

/* What `open` tells about the link; it comes zeroed, but for `share`. */
typedef struct cci_link_info {
    uint32_t mtu;            /* bytes of the largest datagram that the device can carry; at least 256, besides a
                                 checksum and a tag                                                              */
    uint32_t base_mtu;       /* bytes that every path surely carries (1,200 for IP); 0: mtu                     */
    uint32_t receive_window; /* bytes that may be on their way to this endpoint at once; 0: 64 times mtu        */
    /* bytes of the largest message; 0: what one datagram takes. Longer ones go in fragments */
    uint32_t max_send_size;
    uint32_t send_buf_count; /* default counts; 0: the header's                                                 */
    uint32_t recv_buf_count;
    uint32_t send_timeout_us; /* 0: 30 s                                                                         */
    uint32_t progress_thread; /* 1: a helper thread makes progress                                               */
    uint32_t coalesce;        /* 1: `receive` may leave several datagrams in one buffer; needs 64 KiB buffers    */
    int os_handle;            /* descriptor to wait on, or -1                                                    */
    const char *congestion;   /* "cubic" (also if NULL), "discern", "newreno" or "fixed": see >>flow             */
    uint32_t crc;             /* 1: each packet carries a CRC-32C, for links without a checksum; both sides or none */
    uint64_t memory_limit;    /* bytes that connections with traffic may take at most; 0: the header's, see MEMORY */
    uint32_t share;           /* in: 1 when the program asks for an address that several endpoints have              */
    /* 1: several endpoints may have the address, and the link gives each the datagrams for it */
    uint32_t is_shared;
    uint32_t index_base;   /* first of the endpoint's 2^20 connection indices, a multiple of 2^20: a link that shares
                                 its address finds the endpoint that a datagram is for by the index (see >>conn)      */
    uint32_t probe_idle_s; /* a peer that was silent for so long is asked for a sign of life; 0, which a link of
                              your own has unless it sets it: only when the table is full */
    /* NULL, or as in cci_endpoint_base_t: closes the link's descriptors in the child of fork() */
    void (*forked)(void *link);
    /* NULL, or: does the system say that nobody receives at `to`, as ICMP's "port unreachable" does? Asked when a
     * request is repeated, under the lock; must not wait. Nothing proves what it says: one line of the log is all that
     * comes of it. */
    int (*refused)(void *link, const cci_link_addr_t *to);
    const uint64_t *system_calls;  /* NULL, or where the link counts them, under the endpoint's lock              */
    const cci_link_state_t *state; /* NULL, or what `up` brings up to date                                       */
    /* NULL, or: the OS handle is not readable any more (1) when something is to be received, since the helper thread
     * sees to that; or again (0) */
    void (*hold)(void *link, int holds);
    uint32_t ecn; /* 1: `send` heeds `codepoint`, and `receive` sets it for each buffer that it fills; version 3 */
} cci_link_info_t;

typedef struct cci_link {
    uint32_t version; /* CCI_LINK_VERSION */
    /* Opens the link on a device, at a service or anywhere (NULL). want_os_handle: a descriptor is wanted. */
    int (*open)(cci_device_t *device, const char *service, int want_os_handle, void **link, cci_link_info_t *info);
    void (*close)(void *link);
    /* Sends datagrams; returns how many were taken, from the first on; 0: try again later. What was taken may be
     * reused by the caller. A datagram that can't be sent at all (too long for the path) counts as taken. */
    int (*send)(void *link, const cci_link_tx_t *tx, int count);
    /* Receives into up to `count` buffers, one at least, without waiting; returns how many were filled, 0 if nothing
     * was there. */
    int (*receive)(void *link, cci_link_rx_t *rx, int count);
    /* Nanoseconds of a clock that never goes back. */
    uint64_t (*now)(void *link);
    /* The address in a URI behind "scheme://" to a link address; a status. May block on a name service. A link that has
     * to ask over the network leaves a note for itself in *to and returns CCI_EAGAIN: it is then called again with
     * address NULL, under the lock, every millisecond while the connection has time, until it replaces the note
     * (CCI_SUCCESS) or gives up (another status, which is the connection's). */
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
     * (UINT64_MAX: no deadline). Called only when one of the two changes: a deadline that is the same needs no work,
     * another one also ends the readability of one that has passed. */
    void (*arm)(void *link, int readable, uint64_t deadline_ns);
    /* 1 while the device is usable, 0 when it failed and may come back, -1 when it is gone for good: what is pending
     * then ends with CCI_ERR_DEVICE_DEAD. Called about 10 times a second and when `receive` returned < 0. */
    int (*up)(void *link);
    /* An address as text, in the form that `resolve` takes, at most `size` bytes with the final 0; a status. */
    int (*text)(void *link, const cci_link_addr_t *address, char *text, size_t size);
    /* Writes the network that an address belongs to, as whoever holds one address of it is likely to hold others
     * (IPv4 /24, IPv6 /64): up to 16 bytes. Returns how many; 0: all are equal. One network can't take all
     * connections of an endpoint. */
    uint32_t (*prefix)(void *link, const cci_link_addr_t *address, uint8_t bytes[16]);
} cci_link_t;

/* Beyond CCI 0.3.0: creates an endpoint straight from a link, without devices, configuration and cci_init(). `service`,
 * any text or NULL, goes to the link's `open`. The endpoint's URI and those of its peers begin with link://. The table
 * must stay valid until cci_destroy_endpoint(); otherwise as cci_create_endpoint(). CCI_EINVAL: a pointer is NULL, or
 * the version of the table is wrong. A status of `open`, or CCI_ERROR: as the log says. CCI_ENOMEM. */
CCI_API int cci_create_endpoint_on_link(const cci_link_t *link, const char *service, cci_endpoint_t **endpoint,
                                        cci_os_handle_t *fd);

#ifdef __cplusplus
}
#endif

#endif /* CCI_H */
/* end of header */

#ifndef CCI_TRANSPORT_INCLUDING /* a transport header wants the declarations above alone */

#if defined(CCI_IMPLEMENTATION) && !defined(CCI_LAYERS_INCLUDING) /* or a transport header wants some layers early */
#ifdef CCI_TINY
#define CCI_TINY_IMPLEMENTATION
#define CCI_BASE_IMPLEMENTATION
#else
#define CCI_CORE_IMPLEMENTATION
#endif
#if (defined(CCI_SMALL) || defined(CCI_TINY)) &&                                                                       \
    (defined(CCI_HAVE_UDP) || defined(CCI_HAVE_VERBS) || defined(CCI_HAVE_SISCI))
#error "CCI_SMALL and CCI_TINY are for links of the program: a transport of another header needs the full profile"
#endif
#if (defined(CCI_HAVE_UDP) && !defined(CCI_UDP_IMPLEMENTED)) ||                                                        \
    (defined(CCI_HAVE_VERBS) && !defined(CCI_VERBS_IMPLEMENTED)) ||                                                    \
    (defined(CCI_HAVE_SISCI) && !defined(CCI_SISCI_IMPLEMENTED))
#error                                                                                                                 \
    "define CCI_IMPLEMENTATION before the first header of CCI in this file, not between a transport's header and cci.h"
#endif
#endif
#ifdef CCI_CORE_IMPLEMENTATION
#define CCI_DGRAM_IMPLEMENTATION
#endif
#ifdef CCI_DGRAM_IMPLEMENTATION
#define CCI_ENDPOINT_IMPLEMENTATION
#define CCI_REL_IMPLEMENTATION
#define CCI_RMA_IMPLEMENTATION
#endif
#ifdef CCI_ENDPOINT_IMPLEMENTATION
#define CCI_EVQ_IMPLEMENTATION
#define CCI_CONN_IMPLEMENTATION
#endif
#if defined(CCI_EVQ_IMPLEMENTATION) || defined(CCI_CONN_IMPLEMENTATION) || defined(CCI_REL_IMPLEMENTATION) ||          \
    defined(CCI_RMA_IMPLEMENTATION)
#define CCI_BASE_IMPLEMENTATION
#endif

/* ==================================================================================================================
 * >>base
 *
 * What all layers stand on: loads and stores of little-endian numbers at any address, a keyed hash (SipHash-2-4), a
 * checksum (CRC-32C), sorted ranges, a timing wheel; >>flow and >>wire belong to it. It never allocates, never reads
 * a clock and calls nothing but mem*().
 * ================================================================================================================== */
#if defined(CCI_BASE_IMPLEMENTATION) && !defined(CCI_BASE_IMPLEMENTED)
#define CCI_BASE_IMPLEMENTED

#include <string.h>

#ifndef CCI_ASSERT
#ifdef NDEBUG
#define CCI_ASSERT(x) ((void)0)
#elif defined(CCI_CORE_IMPLEMENTATION) || defined(CCI_LAYERS_INCLUDING)
#include <assert.h>
#define CCI_ASSERT(x) assert(x)
#else
#define CCI_ASSERT(x) ((void)0) /* a layer used alone imports nothing but mem*() */
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define CCI__UNUSED __attribute__((unused))
#define CCI__LIKELY(x) __builtin_expect(!!(x), 1)
#define CCI__UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CCI__RARE __attribute__((noinline)) /* so that what calls it stays small */
/* What most messages go through: calls and the saving of registers would cost a third of it. */
#define CCI__HOT_PATH __attribute__((always_inline))
#else
#define CCI__UNUSED
#define CCI__LIKELY(x) (x)
#define CCI__UNLIKELY(x) (x)
#define CCI__RARE
#define CCI__HOT_PATH
#endif

/* Names a loop, so that the proofs in tests/ can say what stays true in it. */
#ifndef CCI__LOOP
#define CCI__LOOP(name)
#endif

#define CCI__NEVER UINT64_MAX
#define CCI__MS UINT64_C(1000000) /* nanoseconds of a millisecond */

/* Pointer to the structure that holds `member` at address `p`. */
#define CCI__CONTAINER(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

CCI__UNUSED static inline uint32_t cci__min32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
CCI__UNUSED static inline uint32_t cci__max32(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}
CCI__UNUSED static inline uint64_t cci__min64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}
CCI__UNUSED static inline uint64_t cci__max64(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}
/* May somebody who holds so many of a pool have one more of what is left? */
CCI__UNUSED static inline int cci__share(uint32_t held, uint32_t left) {
    return held < 3 * left;
}
/* The same where peers that fall silent hold theirs until a time-out: an eighth of all is for those who hold next to
 * nothing. */
CCI__UNUSED static inline int cci__share_for_long(uint32_t held, uint32_t left, uint32_t all) {
    uint32_t kept = all / 8;
    if (held < cci__max32(kept / 64, 1)) return left > 0;
    return left > kept && cci__share(held, left - kept);
}

/* A text that is put together piece by piece. What does not fit is left out. */
typedef struct cci__note {
    size_t length;
    char text[512];
} cci__note_t;

/* A configuration or an address may hold any byte; a terminal or a log file should not be told what to do by it. */
CCI__UNUSED static void cci__note_add(cci__note_t *note, const char *text) {
    for (; *text != '\0' && note->length < sizeof note->text - 1; text++) {
        uint8_t code = (uint8_t)*text;
        note->text[note->length++] = (char)(code < 0x20 || code == 0x7f ? '?' : *text);
    }
    note->text[note->length] = '\0';
}

CCI__UNUSED static inline uint32_t cci__pad8(uint32_t length) {
    return (length + 7u) & ~7u;
}

/* Compilers make one load or store of these. */
CCI__UNUSED static inline uint16_t cci__load16(const uint8_t *p) {
    return (uint16_t)(p[0] | (uint16_t)(p[1] << 8));
}
CCI__UNUSED static inline uint32_t cci__load32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
CCI__UNUSED static inline uint64_t cci__load64(const uint8_t *p) {
    return (uint64_t)cci__load32(p) | (uint64_t)cci__load32(p + 4) << 32;
}
CCI__UNUSED static inline void cci__store16(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}
CCI__UNUSED static inline void cci__store32(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
}
CCI__UNUSED static inline void cci__store64(uint8_t *p, uint64_t v) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(p, &v, 8); /* one store, where the compiler would make two of the others */
#else
    cci__store32(p, (uint32_t)v);
    cci__store32(p + 4, (uint32_t)(v >> 32));
#endif
}

/* The 64-bit number nearest to `near` whose low 32 bits are `low`. */
CCI__UNUSED static inline uint64_t cci__expand32(uint32_t low, uint64_t around) {
    return around + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)around);
}

/* A circular list with a head that is itself a node. */
typedef struct cci_list {
    struct cci_list *next, *prev;
} cci_list_t;

CCI__UNUSED static inline void cci__list_init(cci_list_t *head) {
    head->next = head->prev = head;
}
CCI__UNUSED static inline int cci__list_empty(const cci_list_t *head) {
    return head->next == head;
}
CCI__UNUSED static inline void cci__list_insert(cci_list_t *before, cci_list_t *node) {
    node->next = before;
    node->prev = before->prev;
    before->prev->next = node;
    before->prev = node;
}
CCI__UNUSED static inline void cci__list_append(cci_list_t *head, cci_list_t *node) {
    cci__list_insert(head, node);
}
/* A removed node points to itself, so that removing it twice does no harm. */
CCI__UNUSED static inline void cci__list_remove(cci_list_t *node) {
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = node;
}

/* SipHash-2-4 (Aumasson, Bernstein) of `count` 64-bit words: unguessable without the key. */
CCI__UNUSED static uint64_t cci__siphash(const uint64_t key[2], const uint64_t *words, uint32_t count) {
    uint64_t v0 = key[0] ^ UINT64_C(0x736f6d6570736575), v1 = key[1] ^ UINT64_C(0x646f72616e646f6d);
    uint64_t v2 = key[0] ^ UINT64_C(0x6c7967656e657261), v3 = key[1] ^ UINT64_C(0x7465646279746573);
    uint32_t i, round, rounds;
    for (i = 0; i <= count + 1; i++) {
        uint64_t word = i < count ? words[i] : (uint64_t)count << 59;
        if (i <= count) {
            v3 ^= word;
            rounds = 2;
        } else {
            v2 ^= 0xff;
            rounds = 4;
        }
        for (round = 0; round < rounds; round++) {
            v0 += v1;
            v1 = (v1 << 13 | v1 >> 51) ^ v0;
            v0 = v0 << 32 | v0 >> 32;
            v2 += v3;
            v3 = (v3 << 16 | v3 >> 48) ^ v2;
            v0 += v3;
            v3 = (v3 << 21 | v3 >> 43) ^ v0;
            v2 += v1;
            v1 = (v1 << 17 | v1 >> 47) ^ v2;
            v2 = v2 << 32 | v2 >> 32;
        }
        if (i <= count) v0 ^= word;
    }
    return v0 ^ v1 ^ v2 ^ v3;
}

/* The CRC-32C (Castagnoli, as in iSCSI) of `length` bytes behind those whose CRC is `crc`; 0 for none. Half a byte at a
 * time: 64 bytes of table are what the smallest firmware has to spare. */
CCI__UNUSED static uint32_t cci__crc32c(uint32_t crc, const uint8_t *bytes, uint32_t length) {
    static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                                       0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                       0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    crc = ~crc;
    while (length-- > 0) {
        crc ^= *bytes++;
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

/* The same eight bytes at a time, ten times as fast, with tables of 8 KiB that cci__crc32c_tables() fills. */
CCI__UNUSED static void cci__crc32c_tables(uint32_t table[8][256]) {
    uint32_t i, k;
    for (i = 0; i < 256; i++) {
        uint8_t one_byte = (uint8_t)i;
        table[0][i] = ~cci__crc32c(UINT32_MAX, &one_byte, 1);
    }
    for (k = 1; k < 8; k++)
        for (i = 0; i < 256; i++) table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
}

CCI__UNUSED static uint32_t cci__crc32c_fast(uint32_t table[8][256], uint32_t crc, const uint8_t *bytes,
                                             uint32_t length) {
    crc = ~crc;
    for (; length >= 8; length -= 8, bytes += 8) {
        uint32_t low = cci__load32(bytes) ^ crc, high = cci__load32(bytes + 4);
        crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
              table[3][high & 255] ^ table[2][high >> 8 & 255] ^ table[1][high >> 16 & 255] ^ table[0][high >> 24];
    }
    return cci__crc32c(~crc, bytes, length);
}

/* ---- sorted sets of numbers: count ranges [lo, hi), ascending, with gaps between them ---- */

typedef struct cci_range {
    uint64_t lo, hi;
} cci_range_t;

enum { CCI__RANGE_NEW, CCI__RANGE_OLD, CCI__RANGE_MIXED, CCI__RANGE_FULL };

/* How [lo, hi) stands to the set: wholly new, wholly in it, or partly. New numbers come at the end, so look there
 * first. */
CCI__UNUSED static int cci__ranges_test(const cci_range_t *set, uint32_t count, uint64_t lo, uint64_t hi) {
    while (count > 0 && set[count - 1].lo >= hi) CCI__LOOP(ranges_test)
    count--;
    if (count == 0 || set[count - 1].hi <= lo) return CCI__RANGE_NEW;
    return set[count - 1].lo <= lo && hi <= set[count - 1].hi ? CCI__RANGE_OLD : CCI__RANGE_MIXED;
}

/* Adds [lo, hi), which may overlap what is there. CCI__RANGE_FULL, and no change, if one range more would be needed
 * than there is room for. */
CCI__UNUSED static int cci__ranges_add(cci_range_t *set, uint32_t *count, uint32_t capacity, uint64_t lo, uint64_t hi) {
    uint32_t end = *count, begin;
    CCI_ASSERT(lo < hi && end <= capacity);
    if (CCI__LIKELY(end > 0 && set[end - 1].hi == lo)) { /* in order, as nearly always */
        set[end - 1].hi = hi;
        return CCI__RANGE_NEW;
    }
    while (end > 0 && set[end - 1].lo > hi) CCI__LOOP(ranges_end)
    end--;
    begin = end;
    while (begin > 0 && set[begin - 1].hi >= lo) CCI__LOOP(ranges_begin)
    begin--;
    if (begin == end) { /* touches none: make room */
        if (*count == capacity) return CCI__RANGE_FULL;
        memmove(set + begin + 1, set + begin, (*count - begin) * sizeof *set);
        set[begin].lo = lo;
        set[begin].hi = hi;
        ++*count;
        return CCI__RANGE_NEW;
    }
    set[begin].lo = cci__min64(set[begin].lo, lo);
    set[begin].hi = cci__max64(set[end - 1].hi, hi);
    memmove(set + begin + 1, set + end, (*count - end) * sizeof *set);
    *count -= end - begin - 1;
    return CCI__RANGE_NEW;
}

/* Whether cci__ranges_add() would succeed. */
CCI__UNUSED static int cci__ranges_fit(const cci_range_t *set, uint32_t count, uint32_t capacity, uint64_t lo,
                                       uint64_t hi) {
    if (count < capacity) return 1;
    while (count > 0 && set[count - 1].lo > hi) CCI__LOOP(ranges_fit)
    count--;
    return count > 0 && set[count - 1].hi >= lo;
}

CCI__UNUSED static inline uint32_t cci__ctz64(uint64_t x) {
#if defined(__GNUC__) || defined(__clang__)
    return (uint32_t)__builtin_ctzll(x);
#else
    uint32_t n = 0;
    while (!(x & 1)) {
        x >>= 1;
        n++;
    }
    return n;
#endif
}

/* ---- timing wheel: six levels of 64 slots; arming, disarming and expiring cost the same for any number of timers.
 * A timer never comes early and comes at most two ticks late. ---- */

#define CCI__TICK_SHIFT 14 /* a tick is 16.4 µs */
#define CCI__WHEEL_LEVELS 6

typedef struct cci_timer {
    cci_list_t node; /* in its slot; points to itself when not armed */
    uint64_t at_ns;  /* CCI__NEVER when not armed */
    uint32_t place;  /* level * 64 + slot, or CCI__PLACE_DUE */
#ifndef CCI_NO_LINGER
    uint32_t user; /* the owner's, in bytes that alignment leaves */
#endif
} cci_timer_t;

#define CCI__PLACE_DUE 0xffffu

#ifdef CCI_SMALL /* few timers: a sorted list */

typedef struct cci_wheel {
    cci_list_t due;
} cci_wheel_t;

CCI__UNUSED static void cci__wheel_init(cci_wheel_t *wheel, uint64_t now_ns) {
    (void)now_ns;
    cci__list_init(&wheel->due);
}

CCI__UNUSED static void cci__timer_init(cci_timer_t *timer) {
    cci__list_init(&timer->node);
    timer->at_ns = CCI__NEVER;
}

CCI__UNUSED static void cci__timer_disarm(cci_wheel_t *wheel, cci_timer_t *timer) {
    (void)wheel;
    cci__list_remove(&timer->node);
    timer->at_ns = CCI__NEVER;
}

/* Arms the timer, armed or not; CCI__NEVER disarms it. */
CCI__UNUSED static void cci__timer_arm(cci_wheel_t *wheel, cci_timer_t *timer, uint64_t at_ns) {
    cci_list_t *at = wheel->due.next;
    cci__timer_disarm(wheel, timer);
    if (at_ns == CCI__NEVER) return;
    timer->at_ns = at_ns;
    for (at = wheel->due.next; at != &wheel->due; at = at->next)
        if (CCI__CONTAINER(at, cci_timer_t, node)->at_ns > at_ns) break;
    cci__list_insert(at, &timer->node);
}

/* The timer that comes next, NULL if there is none. */
CCI__UNUSED static cci_timer_t *cci__wheel_first(const cci_wheel_t *wheel) {
    return cci__list_empty(&wheel->due) ? NULL : CCI__CONTAINER(wheel->due.next, cci_timer_t, node);
}

/* Takes out one timer whose time has come, NULL if there is none (any more). */
CCI__UNUSED static cci_timer_t *cci__wheel_expire(cci_wheel_t *wheel, uint64_t now_ns) {
    cci_timer_t *timer = cci__wheel_first(wheel);
    if (!timer || timer->at_ns > now_ns) return NULL;
    cci__timer_disarm(wheel, timer);
    return timer;
}

/* The next timer's time, CCI__NEVER if there is none. */
CCI__UNUSED static uint64_t cci__wheel_deadline(const cci_wheel_t *wheel) {
    const cci_timer_t *timer = cci__wheel_first(wheel);
    return timer ? timer->at_ns : CCI__NEVER;
}

#else

typedef struct cci_wheel {
    uint64_t tick; /* all timers up to here have been moved to `due` */
    uint64_t occupied[CCI__WHEEL_LEVELS];
    cci_list_t due;
    cci_list_t slot[CCI__WHEEL_LEVELS][64];
} cci_wheel_t;

CCI__UNUSED static void cci__wheel_init(cci_wheel_t *wheel, uint64_t now_ns) {
    uint32_t i;
    memset(wheel, 0, sizeof *wheel);
    wheel->tick = now_ns >> CCI__TICK_SHIFT;
    cci__list_init(&wheel->due);
    for (i = 0; i < CCI__WHEEL_LEVELS * 64; i++) cci__list_init(&wheel->slot[i / 64][i % 64]);
}

CCI__UNUSED static void cci__timer_init(cci_timer_t *timer) {
    cci__list_init(&timer->node);
    timer->at_ns = CCI__NEVER;
    timer->place = CCI__PLACE_DUE;
}

CCI__UNUSED static void cci__timer_disarm(cci_wheel_t *wheel, cci_timer_t *timer) {
    if (timer->at_ns == CCI__NEVER) return;
    cci__list_remove(&timer->node);
    if (timer->place != CCI__PLACE_DUE && cci__list_empty(&wheel->slot[timer->place / 64][timer->place % 64]))
        wheel->occupied[timer->place / 64] &= ~(UINT64_C(1) << timer->place % 64);
    timer->at_ns = CCI__NEVER;
}

CCI__UNUSED static void cci__timer_place(cci_wheel_t *wheel, cci_timer_t *timer) {
    uint64_t tick = (timer->at_ns >> CCI__TICK_SHIFT) + 1;
    uint32_t level = 0, slot;
    if (tick <= wheel->tick) {
        timer->place = CCI__PLACE_DUE;
        cci__list_append(&wheel->due, &timer->node);
        return;
    }
    while (level < CCI__WHEEL_LEVELS - 1 && (tick >> 6 * level) - (wheel->tick >> 6 * level) >= 64) level++;
    if ((tick >> 6 * level) - (wheel->tick >> 6 * level) >= 64) /* years away: look again when the last slot comes */
        tick = ((wheel->tick >> 6 * level) + 63) << 6 * level;
    slot = (uint32_t)(tick >> 6 * level) & 63;
    timer->place = level * 64 + slot;
    wheel->occupied[level] |= UINT64_C(1) << slot;
    cci__list_append(&wheel->slot[level][slot], &timer->node);
}

/* Arms the timer, armed or not; CCI__NEVER disarms it. */
CCI__UNUSED static void cci__timer_arm(cci_wheel_t *wheel, cci_timer_t *timer, uint64_t at_ns) {
    cci__timer_disarm(wheel, timer);
    if (at_ns == CCI__NEVER) return;
    timer->at_ns = at_ns;
    cci__timer_place(wheel, timer);
}

/* The tick at which a slot of the wheel comes next, CCI__NEVER if it is empty. */
CCI__UNUSED static uint64_t cci__wheel_next(const cci_wheel_t *wheel) {
    uint64_t best = CCI__NEVER;
    uint32_t level;
    for (level = 0; level < CCI__WHEEL_LEVELS; level++) {
        uint64_t base = (wheel->tick >> 6 * level) + 1, bits = wheel->occupied[level];
        uint32_t turn = (uint32_t)base & 63;
        if (!bits) continue;
        bits = turn ? bits >> turn | bits << (64 - turn) : bits;
        best = cci__min64(best, (base + cci__ctz64(bits)) << 6 * level);
    }
    return best;
}

/* Empties the slots that begin at the wheel's tick, from the coarsest to the finest. */
CCI__UNUSED static void cci__wheel_turn(cci_wheel_t *wheel) {
    uint32_t level = CCI__WHEEL_LEVELS;
    while (level-- > 0) {
        uint32_t index = (uint32_t)(wheel->tick >> 6 * level) & 63;
        cci_list_t *slot = &wheel->slot[level][index];
        if ((wheel->tick & ((UINT64_C(1) << 6 * level) - 1)) != 0 || !(wheel->occupied[level] >> index & 1)) continue;
        wheel->occupied[level] &= ~(UINT64_C(1) << index);
        while (!cci__list_empty(slot)) {
            cci_timer_t *timer = CCI__CONTAINER(slot->next, cci_timer_t, node);
            cci__list_remove(&timer->node);
            cci__timer_place(wheel, timer);
        }
    }
}

/* Takes out one timer whose time has come, NULL if there is none (any more). */
CCI__UNUSED static cci_timer_t *cci__wheel_expire(cci_wheel_t *wheel, uint64_t now_ns) {
    uint64_t now_tick = now_ns >> CCI__TICK_SHIFT;
    cci_timer_t *timer;
    while (cci__list_empty(&wheel->due)) {
        uint64_t tick = wheel->tick < now_tick ? cci__wheel_next(wheel) : CCI__NEVER;
        if (tick > now_tick) {
            wheel->tick = cci__max64(wheel->tick, now_tick);
            return NULL;
        }
        wheel->tick = tick;
        cci__wheel_turn(wheel);
    }
    timer = CCI__CONTAINER(wheel->due.next, cci_timer_t, node);
    cci__list_remove(&timer->node);
    timer->at_ns = CCI__NEVER;
    return timer;
}

/* A time at or before the next timer's, CCI__NEVER if there is none. */
CCI__UNUSED static uint64_t cci__wheel_deadline(const cci_wheel_t *wheel) {
    uint64_t tick;
    if (!cci__list_empty(&wheel->due)) return 0;
    tick = cci__wheel_next(wheel);
    return tick == CCI__NEVER ? CCI__NEVER : tick << CCI__TICK_SHIFT;
}

/* A timer of the slot that comes next, NULL if there is none. */
CCI__UNUSED static cci_timer_t *cci__wheel_first(const cci_wheel_t *wheel) {
    uint64_t tick = cci__wheel_next(wheel);
    uint32_t level;
    if (!cci__list_empty(&wheel->due)) return CCI__CONTAINER(wheel->due.next, cci_timer_t, node);
    for (level = 0; level < CCI__WHEEL_LEVELS && tick != CCI__NEVER; level++) {
        uint32_t index = (uint32_t)(tick >> 6 * level) & 63;
        if (wheel->occupied[level] >> index & 1)
            return CCI__CONTAINER(wheel->slot[level][index].next, cci_timer_t, node);
    }
    return NULL;
}

#endif

/* ---- polls: a program that polls without pause has its clock read in one poll of several, since that costs as much
 * as the rest. Only many readings close together show such a program: one that polls seldom has its clock read in
 * each poll, so that a timer fires in the first poll after its time. ---- */

#define CCI__POLLS_CLOSE_NS 100000u
#define CCI__POLLS_MANY 64u

typedef struct cci__polls {
    uint64_t looked_ns;
    uint32_t quick, left; /* readings close together so far; polls that may do without the clock */
} cci__polls_t;

/* A poll may do without the clock: 1 if this one is to read it. */
CCI__UNUSED static inline int cci__polls_look(cci__polls_t *polls) {
    if (CCI__UNLIKELY(polls->left == 0)) return 1;
    polls->left--;
    return 0;
}

/* The clock was read, and `most` polls at most may do without it from now on. */
CCI__UNUSED static inline void cci__polls_looked(cci__polls_t *polls, uint64_t now_ns, uint32_t most) {
    uint64_t close_ns = (uint64_t)CCI__POLLS_CLOSE_NS * (polls->quick == CCI__POLLS_MANY ? most + 1 : 1);
    if (now_ns - polls->looked_ns > close_ns)
        polls->quick = 0;
    else if (polls->quick < CCI__POLLS_MANY)
        polls->quick++;
    polls->looked_ns = now_ns;
    polls->left = polls->quick == CCI__POLLS_MANY ? most : 0;
}

/* A condition that holds only for parts of lists, and the most segments of a list: see LISTS in >>core. */
#ifdef CCI_NO_LISTS
#define CCI__LISTS(condition) 0
#define CCI__LIST_SEGMENTS 0u
#else
#define CCI__LISTS(condition) CCI__UNLIKELY(condition)
#define CCI__LIST_SEGMENTS 256u
#endif

#ifdef CCI_NO_ATOMICS
#define CCI__CAN_ATOMICS 0u
#else
/* 8 bytes in one step, without a library of the compiler's. */
#if defined(_MSC_VER) || __GCC_ATOMIC_LLONG_LOCK_FREE == 2
#define CCI__HAS_ATOMICS_64 1
#define CCI__CAN_ATOMICS (CCI_CAN_ATOMICS_32 | CCI_CAN_ATOMICS_64)
#else
#define CCI__HAS_ATOMICS_64 0
#define CCI__CAN_ATOMICS CCI_CAN_ATOMICS_32
#endif

#if defined(_MSC_VER) && !defined(__clang__)
CCI__UNUSED static uint64_t cci__atomic_32(void *at, uint32_t operation, uint32_t operand, uint32_t compare) {
    volatile long *number = (volatile long *)at;
    if (operation == CCI_ATOMIC_FETCH_ADD) return (uint32_t)_InterlockedExchangeAdd(number, (long)operand);
    if (operation == CCI_ATOMIC_SWAP) return (uint32_t)_InterlockedExchange(number, (long)operand);
    return (uint32_t)_InterlockedCompareExchange(number, (long)operand, (long)compare);
}

CCI__UNUSED static uint64_t cci__atomic_64(void *at, uint32_t operation, uint64_t operand, uint64_t compare) {
    volatile __int64 *number = (volatile __int64 *)at;
    __int64 seen, wanted;
    if (operation == CCI_ATOMIC_COMPARE_SWAP)
        return (uint64_t)_InterlockedCompareExchange64(number, (__int64)operand, (__int64)compare);
    do { /* what all processors have */
        seen = *number;
        wanted = (__int64)(operation == CCI_ATOMIC_SWAP ? operand : (uint64_t)seen + operand);
    } while (_InterlockedCompareExchange64(number, wanted, seen) != seen);
    return (uint64_t)seen;
}
#else
CCI__UNUSED static uint64_t cci__atomic_32(void *at, uint32_t operation, uint32_t operand, uint32_t compare) {
    uint32_t *number = (uint32_t *)at;
    if (operation == CCI_ATOMIC_FETCH_ADD) return __atomic_fetch_add(number, operand, __ATOMIC_SEQ_CST);
    if (operation == CCI_ATOMIC_SWAP) return __atomic_exchange_n(number, operand, __ATOMIC_SEQ_CST);
    (void)__atomic_compare_exchange_n(number, &compare, operand, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return compare; /* what was there, either way */
}

#if CCI__HAS_ATOMICS_64
CCI__UNUSED static uint64_t cci__atomic_64(void *at, uint32_t operation, uint64_t operand, uint64_t compare) {
    uint64_t *number = (uint64_t *)at;
    if (operation == CCI_ATOMIC_FETCH_ADD) return __atomic_fetch_add(number, operand, __ATOMIC_SEQ_CST);
    if (operation == CCI_ATOMIC_SWAP) return __atomic_exchange_n(number, operand, __ATOMIC_SEQ_CST);
    (void)__atomic_compare_exchange_n(number, &compare, operand, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return compare;
}
#endif
#endif

/* What a peer asks for, at the target. `memory`: of `width` bytes, NULL if the peer may not use it. */
CCI__UNUSED static int cci__atomic_do(uint8_t *memory, uint32_t width, uint32_t operation, uint64_t operand,
                                      uint64_t compare, uint64_t *previous) {
    *previous = 0;
    if (operation > CCI_ATOMIC_COMPARE_SWAP || (width != 4 && width != 8)) return CCI_ERR_RMA_OP;
    if (!memory || ((uintptr_t)memory & (width - 1)) != 0) return CCI_ERR_RMA_HANDLE;
    if (width == 4) {
        *previous = cci__atomic_32(memory, operation, (uint32_t)operand, (uint32_t)compare);
        return CCI_SUCCESS;
    }
#if CCI__HAS_ATOMICS_64
    *previous = cci__atomic_64(memory, operation, operand, compare);
    return CCI_SUCCESS;
#else
    return CCI_ERR_RMA_OP;
#endif
}
#endif

/* Leaves of what an endpoint can do what one of its connections can. */
CCI__UNUSED static void cci__caps_of_connection(const struct cci_connection *connection, cci_caps_t *caps) {
    const cci_conn_attribute_t attribute = connection->attribute;
    uint64_t can = caps->can & (CCI_CAN_SEAL | CCI_CAN_WAKE);
    if (attribute == CCI_CONN_ATTR_RO) can |= caps->can & CCI_CAN_ORDERED;
    if (attribute == CCI_CONN_ATTR_RO || attribute == CCI_CONN_ATTR_RU)
        can |= caps->can & (CCI_CAN_RMA | CCI_CAN_RMA_SHARED | CCI_CAN_RMA_HARDWARE | CCI__CAN_ATOMICS);
    if (attribute > CCI_CONN_ATTR_UU) can |= caps->can & CCI_CAN_MULTICAST;
    if (!(can & CCI_CAN_RMA)) caps->max_rma_length = caps->max_rma_segments = 0;
    caps->can = can;
    caps->max_send_size = connection->max_send_size;
    caps->max_connections = 1;
}

/* From now until a deadline, which may be CCI__NEVER; 0 when it has passed. */
CCI__UNUSED static inline uint64_t cci__ns_until(uint64_t at_ns, uint64_t now_ns) {
    return at_ns == CCI__NEVER ? at_ns : at_ns > now_ns ? at_ns - now_ns : 0;
}

/* ---- OS handle: what its link was told. Each change costs system calls, each deadline that is told costs an
 * interrupt too. So a deadline is told only before the program sleeps, only when it is earlier than the one told
 * before or that one has passed, and never when it has itself passed. Between an event and the CCI_EAGAIN that
 * follows the program is awake: a handle that stays readable until then takes the place of a deadline, also for a
 * program that sleeps after each event. ---- */

typedef struct cci__handle {
    uint64_t armed_ns; /* the deadline, CCI__NEVER: none */
    uint8_t readable, is_awake;
} cci__handle_t;

/* Takes what is true now; 1 if the link must be told what has changed. */
CCI__UNUSED static int cci__handle_set(cci__handle_t *handle, int readable, uint64_t deadline_ns, uint64_t now_ns) {
    uint64_t armed_ns = handle->armed_ns;
    if (handle->is_awake)
        readable = readable || handle->readable || deadline_ns < armed_ns;
    else if (deadline_ns <= now_ns)
        readable = 1;
    else if (deadline_ns < armed_ns || armed_ns <= now_ns)
        armed_ns = deadline_ns;
    if (readable == handle->readable && armed_ns == handle->armed_ns) return 0;
    handle->readable = (uint8_t)(readable != 0);
    handle->armed_ns = armed_ns;
    return 1;
}

/* ==================================================================================================================
 * >>flow
 *
 * Congestion: how many bytes of one flow may be under way.
 *
 * A flow's owner reports round-trip times, what has arrived and what was lost; the congestion control, a table of
 * functions, answers with a window.
 *
 * `cubic`, the default, is CUBIC [RFC 9438], with fast convergence and at least the growth of NewReno, and slow start
 * ends as in HyStart++ [RFC 9406]. Each round trip with a loss cuts the window to 0.7; to 0.85 where little is lost
 * and the queue is shorter than an eighth of the round trip, since a queue so short does not keep the line busy
 * meanwhile. Growth after a smaller cut is slower, as RFC 9438 4.3 reckons it, so that the share stays that of a TCP
 * flow.
 *
 * A loss is chance, a cable's or a radio's, only as far as that was shown. The cut is the trial: if at least a round
 * trip later packets are lost at the lower rate too, and neither before nor then did round trips tell of any queue,
 * however short, it was not the rate. Then the cut is undone, and for some seconds up to a fortieth of the packets may
 * be lost without one: that is 2 % with room for how chance scatters. The finding ends when its time is over or round
 * trips grow; the next loss is the next trial. Round trips that vary by more than a 256th of their length could hide a
 * queue: there nothing is shown, and nothing is tolerated.
 *
 * A packet that a router has marked [ECN, RFC 3168] cuts the window once in a round trip, too [RFC 9002 B.7], but to
 * 0.85 only (NewReno: 0.8), since a queue that marks is short [RFC 8511]; in slow start as a loss. It is no chance.
 *
 * A deep queue is not filled: when round trips take nearly thrice as long as the shortest, the queue is drained. If
 * they stay long, it is others' queue: the cut is undone, and not tried again for some time.
 *
 * `discern`, for a line of one's own, grows as CUBIC too, and takes losses for chance unless a queue is seen. A queue
 * that overflows is long just before: a loss while round trips take an eighth longer than the shortest is the queue's,
 * and the window shrinks by nearly as much as the queue had added, so that the line stays busy while the queue drains,
 * but by no more than two fifths (as much in slow start) and no less than a tenth. A loss while there is no queue
 * changes nothing, unless a tenth of everything is lost: a path that drops so much without queueing limits the rate by
 * dropping. Where the program calls so seldom that its pauses hide the queue, each loss counts as the queue's. It is
 * not fair where a queue is shorter than an eighth of the round trip: it gives way when a tenth is lost, and TCP flows
 * beside it long before.
 *
 * Times are taken in half round trips: the shortest sample of each, which jitter and late acknowledgements don't
 * touch.
 * ================================================================================================================== */

typedef struct cci_flow {
    uint64_t window;    /* bytes */
    uint32_t threshold; /* slow start below; UINT32_MAX: it has not ended yet */
    uint32_t part;      /* of the growth, what did not make a byte yet */
    uint32_t peak;      /* CUBIC: window at the last reduction */
    uint32_t estimate;  /* bytes that NewReno would have */
    uint64_t cut_ns;    /* of the last reduction: losses of what was sent before are answered */
    /* delay */
    uint64_t shortest_ns[2]; /* of this and of the last period */
    uint32_t shortest_since; /* ticks of 2^20 ns */
    uint8_t half_count;      /* up to CCI__FLOW_SAMPLES */
    uint8_t is_blind;        /* round trips tell more of the program, which calls seldom, than of the path's queue */
    uint8_t finding;         /* CCI__FLOW_OPEN and the like */
    uint8_t slowing;         /* half round trips since slow start was slowed down; 0: it was not */
    uint64_t half_end_ns, half_ns, last_half_ns;
    uint32_t queue_ns; /* by which round trips are longer than the shortest, smoothed over 16 */
    uint32_t usual_ns; /* the same of nearly the shortest: long packets take longer than short ones */
    /* loss */
    uint32_t loss_share;    /* 1/65,536, smoothed */
    uint32_t arrived, lost; /* bytes in this half round trip */
    /* CUBIC */
    uint32_t epoch; /* ticks, 0: it has not begun; in slow start the half before the last, in 1,024 ns */
    uint32_t grown; /* ticks */
    /* From the epoch until the peak is reached again, in 1/1,024 s. While slow start is slow, and while the queue is
     * being drained, the half as it was when that began, in 1,024 ns. */
    uint32_t rise_ms;
    uint32_t tried;    /* window before the reduction that is a trial; 0: it is none */
    uint32_t credit;   /* bytes that may be lost by chance; 0 while the window has not limited anything yet */
    uint32_t until;    /* a finding holds, in ticks */
    uint16_t gain;     /* 1/256: growth of the estimate in segments per round trip */
    uint16_t is_early; /* slow start ended with a loss that may yet prove to be no sign of a full line */
} cci_flow_t;

/* What `cubic` has found: nothing; that packets are lost by chance; that others fill the queue; it is being drained. */
enum { CCI__FLOW_OPEN, CCI__FLOW_CHANCE, CCI__FLOW_OTHERS, CCI__FLOW_DRAINING };

typedef struct cci_congestion {
    const char *name;
    void (*arrived)(cci_flow_t *flow, uint32_t bytes, uint32_t mtu, uint64_t now_ns); /* while the window limited */
    void (*lost)(cci_flow_t *flow, uint32_t bytes, uint32_t mtu, uint64_t now_ns);
    uint32_t marked, marked_first; /* of 1,024 parts, what a mark leaves of the window, and in slow start; 0: no ECN */
} cci_congestion_t;

#define CCI__FLOW_MOST (UINT32_C(1) << 30)          /* bytes of a window */
#define CCI__FLOW_TICK(ns) ((uint32_t)((ns) >> 20)) /* a little more than a millisecond */
#define CCI__FLOW_PERIOD 9537u                      /* ticks, 10 s; on long paths some round trips more */
#define CCI__FLOW_SAMPLES 8u /* the shortest of so many says how long the queue is, not how packets bunch */

CCI__UNUSED static void cci__flow_init(cci_flow_t *flow, uint64_t window) {
    memset(flow, 0, sizeof *flow);
    flow->window = window;
    flow->shortest_ns[0] = flow->shortest_ns[1] = flow->half_ns = CCI__NEVER;
    flow->threshold = UINT32_MAX;
    flow->gain = 256;
}

CCI__UNUSED static uint64_t cci__flow_shortest_ns(const cci_flow_t *flow) {
    return cci__min64(flow->shortest_ns[0], flow->shortest_ns[1]);
}

/* The half round trip is over. */
CCI__UNUSED static void cci__flow_turn(cci_flow_t *flow, uint64_t now_ns) {
    uint64_t all = (uint64_t)flow->arrived + flow->lost;
    if (all > 0) {
        uint32_t share = (uint32_t)((uint64_t)flow->lost * 65536 / all);
        flow->loss_share = flow->loss_share - flow->loss_share / 32 + share / 32;
    }
    if (CCI__FLOW_TICK(now_ns) - flow->shortest_since >
        CCI__FLOW_PERIOD + CCI__FLOW_TICK(16 * cci__flow_shortest_ns(flow))) {
        flow->shortest_since = CCI__FLOW_TICK(now_ns);
        flow->shortest_ns[1] = flow->shortest_ns[0];
        flow->shortest_ns[0] = flow->half_ns;
    }
#ifndef CCI_NO_CONGESTION
    if (flow->window < flow->threshold)
        flow->epoch = (uint32_t)(flow->last_half_ns >> 10); /* the one before the last */
    flow->slowing = (uint8_t)(flow->slowing + (flow->slowing > 0));
#endif
    flow->last_half_ns = flow->half_ns;
    flow->half_end_ns = now_ns + flow->half_ns / 2;
    flow->half_ns = CCI__NEVER;
    flow->half_count = 0;
    flow->arrived = flow->lost = 0;
}

/* A 2^shift-th of the shortest round trip, and what timers and packets side by side may add. */
CCI__UNUSED static uint64_t cci__flow_part_ns(const cci_flow_t *flow, int shift) {
    return (cci__flow_shortest_ns(flow) >> shift) + 30000;
}

/* Round trips are shorter than was known: what was found is not sure. */
CCI__UNUSED static void cci__flow_shorter(cci_flow_t *flow, uint64_t rtt_ns) {
    if (rtt_ns + cci__flow_part_ns(flow, 8) < cci__flow_shortest_ns(flow)) {
        flow->tried = 0;
        flow->finding = CCI__FLOW_OPEN;
    }
    flow->shortest_ns[0] = rtt_ns;
}

CCI__UNUSED static void cci__flow_smooth(cci_flow_t *flow, uint64_t rtt_ns) {
    uint32_t queue_ns = (uint32_t)cci__min64(rtt_ns - cci__flow_shortest_ns(flow), UINT32_MAX);
    flow->queue_ns += queue_ns / 16 - flow->queue_ns / 16;
    if (queue_ns < flow->usual_ns)
        flow->usual_ns -= (flow->usual_ns - queue_ns) / 8;
    else
        flow->usual_ns += (queue_ns - flow->usual_ns) / 512;
}

/* A packet that was acknowledged now took `rtt_ns`. */
CCI__UNUSED static void cci__flow_sample(cci_flow_t *flow, uint64_t rtt_ns, uint64_t now_ns) {
#ifdef CCI_NO_CONGESTION
    flow->shortest_ns[0] = cci__min64(flow->shortest_ns[0], rtt_ns);
#else
    if (rtt_ns < flow->shortest_ns[0]) cci__flow_shorter(flow, rtt_ns);
#endif
    if (now_ns - rtt_ns < flow->cut_ns) return; /* it has seen the queue that the reduction is to drain */
    if (flow->half_count >= CCI__FLOW_SAMPLES && now_ns >= flow->half_end_ns) cci__flow_turn(flow, now_ns);
    flow->half_ns = cci__min64(flow->half_ns, rtt_ns);
    flow->half_count = (uint8_t)(flow->half_count + (flow->half_count < CCI__FLOW_SAMPLES));
#ifndef CCI_NO_CONGESTION
    if (flow->credit > 0) cci__flow_smooth(flow, rtt_ns);
#endif
}

/* The round trip with the queue as it was when what is known to be lost now was sent; 0 if there are too few
 * samples. */
CCI__UNUSED static uint64_t cci__flow_queued_ns(const cci_flow_t *flow) {
    return cci__max64(flow->last_half_ns, flow->half_count >= CCI__FLOW_SAMPLES ? flow->half_ns : 0);
}

CCI__UNUSED static int cci__flow_is_queued(const cci_flow_t *flow) {
    uint64_t shortest_ns = cci__flow_shortest_ns(flow), queued_ns = cci__flow_queued_ns(flow);
    return queued_ns > shortest_ns && queued_ns - shortest_ns > shortest_ns / 8 + 50000;
}

/* Keeps `keep` of 1,024 parts of the window. */
CCI__UNUSED static void cci__flow_cut(cci_flow_t *flow, uint64_t keep, uint32_t mtu, uint64_t now_ns) {
    /* A flow that could not get back to its peak leaves room to others sooner. */
    flow->peak = (uint32_t)(flow->window < flow->peak ? flow->window * (1024 + keep) / 2048 : flow->window);
    flow->window = cci__max64(flow->window * keep / 1024, 2 * (uint64_t)mtu);
    flow->threshold = (uint32_t)flow->window;
    flow->slowing = 0;
    flow->gain = (uint16_t)(3 * (1024 - keep) * 256 / (1024 + keep));
    flow->part = 0;
    flow->epoch = 0;
    flow->cut_ns = now_ns;
    flow->half_ns = CCI__NEVER;
    flow->half_count = 0;
    flow->last_half_ns = 0;
}

CCI__UNUSED static void cci__discern_lost(cci_flow_t *flow, uint32_t bytes, uint32_t mtu, uint64_t now_ns) {
    uint64_t keep = 717; /* CUBIC's 0.7 */
    (void)bytes;
    if (cci__flow_is_queued(flow))
        keep = cci__flow_shortest_ns(flow) * 1088 / cci__flow_queued_ns(flow);
    else if (flow->is_blind)
        keep = 717;
    else if (flow->loss_share < 65536 / 10)
        return;
    else
        flow->loss_share /= 2;
    if (flow->window < flow->threshold) /* twice as much as fits is under way */
        keep = 0;
    cci__flow_cut(flow, cci__min64(cci__max64(keep, 614), 922), mtu, now_ns); /* 0.6 to 0.9 */
}

/* The window's share of a growth; the rest is kept for the next. */
CCI__UNUSED static uint64_t cci__flow_share(cci_flow_t *flow, uint64_t growth) {
    growth += flow->part;
    flow->part = (uint32_t)(growth % flow->window);
    return growth / flow->window;
}

CCI__UNUSED static uint32_t cci__cube_root(uint64_t x) {
    uint64_t root = 0, bit;
    for (bit = UINT64_C(1) << 20; bit > 0; bit >>= 1)
        if ((root | bit) * (root | bit) * (root | bit) <= x) root |= bit;
    return (uint32_t)root;
}

/* The window that CUBIC aims at, one round trip ahead: peak + 0.4 segments/s^3 * (t - rise)^3. */
CCI__UNUSED static uint64_t cci__cubic_target(const cci_flow_t *flow, uint32_t mtu, uint64_t now_ns) {
    uint32_t t = (CCI__FLOW_TICK(now_ns) - flow->epoch + CCI__FLOW_TICK(flow->last_half_ns)) * 275 / 256;
    uint64_t d = cci__min64(t > flow->rise_ms ? t - flow->rise_ms : flow->rise_ms - t, 16384);
    uint64_t bytes = (d * d * d * 2 / 5 >> 15) * mtu >> 15;
    if (t > flow->rise_ms) return cci__min64(flow->peak + bytes, flow->window * 3 / 2);
    return bytes < flow->peak ? flow->peak - bytes : 0;
}

CCI__UNUSED static void cci__cubic_grow(cci_flow_t *flow, uint32_t bytes, uint32_t mtu, uint64_t now_ns) {
    uint64_t target;
    if (flow->epoch == 0 || CCI__FLOW_TICK(now_ns) - flow->grown >
                                CCI__FLOW_TICK(4 * flow->last_half_ns + 100 * CCI__MS)) { /* or a pause */
        flow->epoch = cci__max32(CCI__FLOW_TICK(now_ns), 1);
        flow->peak = (uint32_t)cci__max64(flow->peak, flow->window);
        flow->rise_ms = cci__cube_root(((flow->peak - flow->window) * 5 / 2 << 30) / mtu);
        flow->estimate = (uint32_t)flow->window;
    }
    flow->grown = CCI__FLOW_TICK(now_ns);
    target = cci__cubic_target(flow, mtu, now_ns);
    flow->estimate +=
        (uint32_t)cci__flow_share(flow, (uint64_t)bytes * mtu * (flow->estimate < flow->peak ? flow->gain : 256) / 256);
    flow->estimate = cci__min32(flow->estimate, CCI__FLOW_MOST);
    if (target > flow->window) flow->window += (target - flow->window) * bytes / flow->window;
    flow->window = cci__max64(flow->window, flow->estimate);
}

CCI__UNUSED static void cci__discern_arrived(cci_flow_t *flow, uint32_t bytes, uint32_t mtu, uint64_t now_ns) {
    if (flow->window >= flow->threshold) {
        cci__cubic_grow(flow, bytes, mtu, now_ns);
    } else {
        flow->window += bytes;
        if (cci__flow_shortest_ns(flow) > 2 * CCI__MS && cci__flow_is_queued(flow))
            cci__flow_cut(flow, 512, mtu, now_ns); /* a round trip ago the path was full */
    }
    flow->window = cci__min64(flow->window, CCI__FLOW_MOST);
}

/* Round trips are no longer than the shortest by a 2^shift-th of it, beyond the time that a packet of the usual length
 * needs itself. With a shift of 8 not even a short queue can hide there. */
CCI__UNUSED static int cci__cubic_is_quiet(const cci_flow_t *flow, int shift) {
    uint64_t own_ns = cci__min64(flow->usual_ns, (cci__flow_shortest_ns(flow) >> 6) + 100000);
    return flow->credit > 0 && !flow->is_blind && flow->queue_ns < own_ns + cci__flow_part_ns(flow, shift);
}

CCI__UNUSED static int cci__cubic_holds(const cci_flow_t *flow, int finding, uint64_t now_ns) {
    return flow->finding == finding && (int32_t)(flow->until - CCI__FLOW_TICK(now_ns)) > 0;
}

/* What the last reduction was made for is not so: goes on nearly where it was before. */
CCI__UNUSED static void cci__cubic_find(cci_flow_t *flow, int finding, uint32_t mtu, uint64_t now_ns) {
    flow->finding = (uint8_t)finding;
    flow->until = CCI__FLOW_TICK(now_ns + 8 * cci__flow_shortest_ns(flow)) +
                  (finding == CCI__FLOW_CHANCE ? CCI__FLOW_PERIOD * 2 / 5 : CCI__FLOW_PERIOD);
    flow->window = cci__max64(flow->window, flow->tried - flow->tried / 16);
    flow->threshold = flow->is_early ? UINT32_MAX : (uint32_t)flow->window;
    flow->credit = 8 * mtu + (uint32_t)flow->window / 32;
    flow->epoch = 0;
    flow->is_early = 0;
}

/* The loss is one of those that may be; where the line is full, and no more than that, the window shrinks a little. */
CCI__UNUSED static int cci__cubic_tolerates(cci_flow_t *flow, uint32_t bytes, uint32_t mtu, uint64_t now_ns) {
    if (!cci__cubic_holds(flow, CCI__FLOW_CHANCE, now_ns) || !cci__cubic_is_quiet(flow, 2) || flow->credit < bytes)
        return 0;
    flow->credit -= bytes;
    if (!cci__cubic_is_quiet(flow, 5)) {
        flow->until -=
            CCI__FLOW_PERIOD / 40 + cci__min32(CCI__FLOW_TICK(4 * cci__flow_shortest_ns(flow)), CCI__FLOW_PERIOD / 50);
        cci__flow_cut(flow, 983, mtu, now_ns); /* 0.96 */
    }
    return 1;
}

CCI__UNUSED static void cci__cubic_lost(cci_flow_t *flow, uint32_t bytes, uint32_t mtu, uint64_t now_ns) {
    int is_first = flow->window < flow->threshold, is_known = cci__flow_shortest_ns(flow) != CCI__NEVER;
    int is_chance = flow->finding == CCI__FLOW_CHANCE, is_quiet = cci__cubic_is_quiet(flow, 8);
    int is_short = cci__cubic_is_quiet(flow, 3) && !is_first && flow->lost <= flow->window / 32;
    if (cci__cubic_tolerates(flow, bytes, mtu, now_ns)) return;
    if (cci__cubic_holds(flow, CCI__FLOW_CHANCE, now_ns) && cci__cubic_is_quiet(flow, 2)) {
        is_quiet = 1; /* it is chance still, but too much of it */
    } else if (is_quiet && is_known && flow->finding == CCI__FLOW_OPEN &&
               flow->window <= flow->tried - flow->tried / 16) {
        cci__cubic_find(flow, CCI__FLOW_CHANCE, mtu, now_ns);
        return;
    } else if (flow->finding != CCI__FLOW_OTHERS) {
        flow->finding = CCI__FLOW_OPEN;
        is_short |= is_chance;
    }
    if (is_first)
        flow->is_early = is_quiet || flow->window <= 16 * (uint64_t)mtu;
    else
        flow->is_early = is_quiet && flow->is_early;
    flow->tried = is_quiet || is_chance ? (uint32_t)flow->window : 0;
    flow->queue_ns = (uint32_t)cci__min64(flow->queue_ns, flow->usual_ns + cci__flow_part_ns(flow, 8) * 3 / 2);
    cci__flow_cut(flow, is_short ? 870 : 717, mtu, now_ns);
    if (!is_known) flow->threshold = UINT32_MAX; /* before the first round trip nothing is known */
}

/* Slow start, which goes on slowly, and then ends, when round trips grow [RFC 9406]: by 4 to 16 ms, and by a sixteenth
 * on the longest paths. A round trip is two halves. */
CCI__UNUSED static void cci__cubic_start(cci_flow_t *flow, uint32_t bytes) {
    uint64_t before_ns = (uint64_t)flow->epoch << 10,
             half_ns = flow->half_count < CCI__FLOW_SAMPLES ? 0 : flow->half_ns;
    if (flow->slowing == 0) {
        if (before_ns > 0 && half_ns > before_ns + cci__max64(cci__min64(before_ns / 8, 16 * CCI__MS),
                                                              cci__max64(before_ns / 16, 4 * CCI__MS))) {
            flow->slowing = 1;
            flow->rise_ms = (uint32_t)(half_ns >> 10);
        }
    } else if (half_ns > 0 && half_ns >> 10 < flow->rise_ms) {
        flow->slowing = 0;
    } else if (flow->slowing > 10) {
        flow->threshold = (uint32_t)flow->window;
        flow->slowing = 0;
        flow->epoch = 0;
    }
    flow->window += flow->slowing ? bytes / 4 : bytes;
}

/* Drains a queue that is nearly twice as long as the path, and sees whether it was ours. */
CCI__UNUSED static void cci__cubic_drain(cci_flow_t *flow, uint32_t mtu, uint64_t now_ns) {
    uint64_t shortest_ns = cci__flow_shortest_ns(flow), limit_ns = cci__max64(shortest_ns * 15 / 8, 20 * CCI__MS);
    if (flow->half_count < CCI__FLOW_SAMPLES) return;
    if (flow->finding == CCI__FLOW_DRAINING) {
        if (flow->half_ns > shortest_ns + limit_ns / 3 && flow->half_ns >> 10 > flow->rise_ms / 8 * 5)
            cci__cubic_find(flow, CCI__FLOW_OTHERS, mtu, now_ns);
        else
            flow->finding = CCI__FLOW_OPEN;
    } else if (flow->half_ns > shortest_ns + limit_ns && !cci__cubic_holds(flow, CCI__FLOW_OTHERS, now_ns)) {
        flow->is_early = 0;
        flow->tried = (uint32_t)flow->window;
        if (flow->last_half_ns > 0 && flow->half_ns / 2 > flow->last_half_ns) { /* no queue of ours grows so fast */
            cci__cubic_find(flow, CCI__FLOW_OTHERS, mtu, now_ns);
            return;
        }
        flow->finding = CCI__FLOW_DRAINING;
        flow->rise_ms = (uint32_t)(flow->half_ns >> 10);
        cci__flow_cut(flow, shortest_ns * 960 / flow->half_ns, mtu, now_ns);
    }
}

CCI__UNUSED static void cci__cubic_arrived(cci_flow_t *flow, uint32_t bytes, uint32_t mtu, uint64_t now_ns) {
    flow->credit = cci__min32(flow->credit + bytes / 40, 8 * mtu + (uint32_t)flow->window / 32);
    cci__cubic_drain(flow, mtu, now_ns);
    if (flow->finding == CCI__FLOW_DRAINING) return;
    if (flow->is_early && flow->window > flow->peak && flow->peak <= 16 * mtu && cci__cubic_is_quiet(flow, 8)) {
        flow->is_early = 0; /* the first packets were too many at once for a short queue, not for the line */
        flow->threshold = UINT32_MAX;
        flow->epoch = 0;
    }
    if (flow->window < flow->threshold)
        cci__cubic_start(flow, bytes);
    else if (cci__cubic_holds(flow, CCI__FLOW_CHANCE, now_ns) && cci__cubic_is_quiet(flow, 5))
        flow->window += bytes / 16; /* the line is not full */
    else
        cci__cubic_grow(flow, bytes, mtu, now_ns);
    flow->window = cci__min64(flow->window, CCI__FLOW_MOST);
}

/* NewReno, in bytes: half for every loss, whatever its cause. */
CCI__UNUSED static void cci__newreno_arrived(cci_flow_t *flow, uint32_t bytes, uint32_t mtu, uint64_t now_ns) {
    (void)now_ns;
    if (flow->window < flow->threshold)
        flow->window += bytes;
    else
        flow->window += cci__flow_share(flow, (uint64_t)bytes * mtu);
    flow->window = cci__min64(flow->window, CCI__FLOW_MOST);
}
CCI__UNUSED static void cci__newreno_lost(cci_flow_t *flow, uint32_t bytes, uint32_t mtu, uint64_t now_ns) {
    (void)bytes;
    cci__flow_cut(flow, 512, mtu, now_ns);
}

/* For a network of one's own: as much as the receiver can take, whatever is lost. */
CCI__UNUSED static void cci__fixed_arrived(cci_flow_t *flow, uint32_t bytes, uint32_t mtu, uint64_t now_ns) {
    (void)bytes;
    (void)mtu;
    (void)now_ns;
    flow->window = CCI__FLOW_MOST;
}
CCI__UNUSED static void cci__fixed_lost(cci_flow_t *flow, uint32_t bytes, uint32_t mtu, uint64_t now_ns) {
    (void)flow;
    (void)bytes;
    (void)mtu;
    (void)now_ns;
}

/* The congestion control of a name, NULL for the default; NULL if there is none of that name. */
CCI__UNUSED static const cci_congestion_t *cci__find_congestion(const char *name) {
    static const cci_congestion_t table[] = {
#ifndef CCI_NO_CONGESTION
        {"cubic", cci__cubic_arrived, cci__cubic_lost, 870, 717},
        {"discern", cci__discern_arrived, cci__discern_lost, 870, 717},
        {"newreno", cci__newreno_arrived, cci__newreno_lost, 819, 512},
#endif
        {"fixed", cci__fixed_arrived, cci__fixed_lost, 0, 0}};
    uint32_t i, n;
    if (!name) return &table[0];
    for (i = 0; i < sizeof table / sizeof table[0]; i++) {
        for (n = 0; table[i].name[n] && table[i].name[n] == name[n]; n++) {
        }
        if (table[i].name[n] == name[n]) return &table[i];
    }
    return NULL;
}

/* `bytes` have arrived, of which the newest were sent at `sent_ns`; limited: more would have been sent if it had been
 * allowed. */
CCI__UNUSED static void cci__flow_arrived(cci_flow_t *flow, const cci_congestion_t *congestion, uint32_t bytes,
                                          uint64_t sent_ns, int limited, uint32_t mtu, uint64_t now_ns) {
    flow->arrived += bytes;
    if (limited && sent_ns >= flow->cut_ns) congestion->arrived(flow, bytes, mtu, now_ns);
}

/* A sample of the round trip counts for so much at most: one that is far longer than those before may tell of a program
 * that slept, the peer's or ours. A path that takes longer is known after a few. */
CCI__UNUSED static uint64_t cci__flow_believed_ns(uint64_t sample_ns, uint64_t srtt_ns, uint64_t rttvar_ns) {
    return cci__min64(sample_ns, cci__max64(2 * (srtt_ns + 4 * rttvar_ns), 1000 * CCI__MS));
}

/* So long the program was away lately, and round trips are of this length. */
CCI__UNUSED static void cci__flow_note_away(cci_flow_t *flow, uint64_t away_ns, uint64_t rtt_ns) {
    flow->is_blind = away_ns > CCI__MS && away_ns > rtt_ns / 4;
}

/* `bytes` that were sent at `sent_ns` at the latest are lost. */
CCI__UNUSED static void cci__flow_lost(cci_flow_t *flow, const cci_congestion_t *congestion, uint32_t bytes,
                                       uint64_t sent_ns, uint32_t mtu, uint64_t now_ns) {
    flow->lost += bytes;
    if (sent_ns >= flow->cut_ns) congestion->lost(flow, bytes, mtu, now_ns);
}

#ifndef CCI_NO_ECN
/* A router has marked one of the packets that arrived, of which the newest was sent at `sent_ns`. */
CCI__UNUSED static void cci__flow_marked(cci_flow_t *flow, const cci_congestion_t *congestion, uint64_t sent_ns,
                                         uint32_t mtu, uint64_t now_ns) {
    if (sent_ns < flow->cut_ns) return;
    flow->tried = 0; /* there is a queue: what is lost then is no chance */
    flow->is_early = 0;
    flow->finding = CCI__FLOW_OPEN;
    cci__flow_cut(flow, flow->window < flow->threshold ? congestion->marked_first : congestion->marked, mtu, now_ns);
}
#endif

/* What a reduction of the window changes. When all that seemed lost has come, it is as it was before [RFC 4015]; CUBIC
 * goes on from there towards its peak [RFC 9438 4.9]. */
typedef struct cci_flow_before {
    uint64_t cut_ns;
    uint64_t window;
    uint32_t threshold, peak;
    uint16_t gain;
} cci_flow_before_t;

#ifdef CCI_NO_CONGESTION
#define CCI__FLOW_CAN_UNDO 0
#else
#define CCI__FLOW_CAN_UNDO 1
#endif

CCI__UNUSED static void cci__flow_remember(const cci_flow_t *flow, cci_flow_before_t *before) {
    if (!CCI__FLOW_CAN_UNDO) return;
    before->cut_ns = flow->cut_ns;
    before->window = flow->window;
    before->threshold = flow->threshold;
    before->peak = flow->peak;
    before->gain = flow->gain;
}

CCI__UNUSED static void cci__flow_undo(cci_flow_t *flow, const cci_flow_before_t *before) {
    if (!CCI__FLOW_CAN_UNDO) return;
    flow->cut_ns = before->cut_ns;
    if (flow->window < before->window) flow->window = before->window;
    if (flow->threshold < before->threshold) flow->threshold = before->threshold;
    flow->peak = before->peak;
    flow->gain = before->gain;
    flow->epoch = 0;
    flow->tried = 0; /* what was no loss is no trial */
}

/* `bytes` that counted as lost have come. */
CCI__UNUSED static void cci__flow_was_late(cci_flow_t *flow, uint32_t bytes) {
    if (CCI__FLOW_CAN_UNDO) flow->lost -= cci__min32(flow->lost, bytes);
}

/* ==================================================================================================================
 * >>wire
 *
 * The numbers and sizes of the protocol (tests/wire/wire.md). What a packet of a connection looks like is drawn in
 * >>conn, what its frames look like in >>rel and >>rma.
 * ================================================================================================================== */

#define CCI__WIRE_VERSION CCI_PACKET_VERSION
#define CCI__HEADER_SIZE CCI_PACKET_HEADER
#define CCI__HEADER_CRC 1u    /* flags of a packet: it ends with a checksum */
#define CCI__HEADER_SEALED 2u /* encrypted, and with a tag */
#define CCI__HEADER_NAMED 4u  /* a REQUEST for a service with a name */
#define CCI__CRC_SIZE 4u
#define CCI__SEALED_REQUEST 64u               /* bytes of a sealed REQUEST that can be read */
#define CCI__SEALED_REJECT 32u                /* a sealed REJECT has its sender's token, as an ACCEPT has */
#define CCI__SECRET_SIZE 8u                   /* of resets, the first of what is encrypted in REQUEST and ACCEPT */
#define CCI__SEAL_NUMBERS (UINT64_C(1) << 56) /* sealed packets of a connection, at most */
#define CCI__REQUEST_SIZE 48u                 /* without data */
#define CCI__ACCEPT_SIZE 40u
#define CCI__PIECE_SIZE 8u       /* in front of the data of an ACCEPT or REJECT */
#define CCI__FRAME_AFTER 1u      /* MESSAGE: not before the one just before it; VOID: takes that one along */
#define CCI__FRAME_WAKE 4u       /* MESSAGE: for a receiver that sleeps until such a one comes */
#define CCI__CONN_PATH_FRAME 16u /* bytes of a CHALLENGE or RESPONSE */

enum { /* packet types */
       CCI__PKT_REQUEST = CCI_PACKET_REQUEST,
       CCI__PKT_COOKIE,
       CCI__PKT_ACCEPT,
       CCI__PKT_REJECT,
       CCI__PKT_CONFIRM,
       CCI__PKT_CONFIRMED,
       CCI__PKT_DATA,
       CCI__PKT_RESET,
       CCI__PKT_GROUP, /* multicast data: no index, no token */
       CCI__PKT_CLOSE,
       CCI__PKT_CLOSED,
       CCI__PKT_BUSY,
       CCI__PKT_NOT_HERE
};

typedef char cci__links_know_groups[CCI__PKT_GROUP == CCI_PACKET_GROUP ? 1 : -1];

enum { /* frame types; >>rel hands those from CCI__FRAME_OTHER on to its sink */
       CCI__FRAME_PAD,
       CCI__FRAME_MESSAGE,
       CCI__FRAME_FRAGMENT,
       CCI__FRAME_BULK,
       CCI__FRAME_SKIP,
       CCI__FRAME_VOID,
       CCI__FRAME_ACK,
       CCI__FRAME_NACK,
       CCI__FRAME_PING,
       CCI__FRAME_TAKEN,
       CCI__FRAME_OTHER = 16,
       CCI__FRAME_READ = 16, /* of >>rma, as the next three */
       CCI__FRAME_DATA,
       CCI__FRAME_DENIED,
       CCI__FRAME_ATOMIC,
       CCI__FRAME_CHALLENGE = 32, /* of >>conn, as the next */
       CCI__FRAME_RESPONSE,
       CCI__FRAME_MARKS /* of >>rel */
};

#ifdef __cplusplus
}
#endif
#endif /* CCI_BASE_IMPLEMENTATION */

/* ---- names of statuses and events, for >>core and >>tiny ---- */

#if (defined(CCI_CORE_IMPLEMENTATION) || defined(CCI_TINY_IMPLEMENTATION)) && !defined(CCI__NAMES_IMPLEMENTED)
#define CCI__NAMES_IMPLEMENTED

#ifdef __cplusplus
extern "C" {
#endif

CCI_API const char *cci_strerror(cci_endpoint_t *endpoint, enum cci_status status) {
    (void)endpoint;
    switch ((int)status) {
#define CCI__STATUS_CASE(name, value, text, hint)                                                                      \
    case value: return text;
        CCI_STATUS_TABLE(CCI__STATUS_CASE)
#undef CCI__STATUS_CASE
    default: return NULL;
    }
}

CCI_API const char *cci_event_type_str(cci_event_type_t type) {
    switch ((int)type) {
    case CCI_EVENT_NONE: return "CCI_EVENT_NONE";
    case CCI_EVENT_SEND: return "CCI_EVENT_SEND";
    case CCI_EVENT_RECV: return "CCI_EVENT_RECV";
    case CCI_EVENT_CONNECT: return "CCI_EVENT_CONNECT";
    case CCI_EVENT_CONNECT_REQUEST: return "CCI_EVENT_CONNECT_REQUEST";
    case CCI_EVENT_ACCEPT: return "CCI_EVENT_ACCEPT";
    case CCI_EVENT_KEEPALIVE_TIMEDOUT: return "CCI_EVENT_KEEPALIVE_TIMEDOUT";
    case CCI_EVENT_ENDPOINT_DEVICE_FAILED: return "CCI_EVENT_ENDPOINT_DEVICE_FAILED";
    case CCI_EVENT_DISCONNECT: return "CCI_EVENT_DISCONNECT";
    case CCI_EVENT_STATUS: return "CCI_EVENT_STATUS";
    default: return NULL;
    }
}

#ifdef __cplusplus
}
#endif

#endif

/* Mutexes, threads and the lock of an endpoint, for the layers that have them. */
#if (defined(CCI_ENDPOINT_IMPLEMENTATION) || defined(CCI_LAYERS_INCLUDING)) && !defined(CCI__LOCK)
#define CCI__LOCK

#ifdef CCI_NO_THREADS
#elif CCI_WINDOWS
#include <windows.h>
#else
#include <pthread.h>
#include <sched.h>
#endif

/* Some C libraries know whether the process has only one thread: then a lock is a plain store. */
#if defined(__GLIBC__) && defined(__ATOMIC_RELEASE) && !defined(CCI_NO_THREADS) &&                                     \
    (__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 32))
#include <sys/single_threaded.h>
#define CCI__IS_ALONE __libc_single_threaded
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifdef CCI_NO_THREADS
typedef int cci__mutex_t;
#define CCI__MUTEX_INITIALIZER 0
CCI__UNUSED static inline void cci__mutex_init(cci__mutex_t *mutex) {
    (void)mutex;
}
CCI__UNUSED static inline void cci__mutex_destroy(cci__mutex_t *mutex) {
    (void)mutex;
}
CCI__UNUSED static inline void cci__mutex_take(cci__mutex_t *mutex) {
    (void)mutex;
}
CCI__UNUSED static inline void cci__mutex_give(cci__mutex_t *mutex) {
    (void)mutex;
}
#elif CCI_WINDOWS
typedef SRWLOCK cci__mutex_t;
#define CCI__MUTEX_INITIALIZER SRWLOCK_INIT
CCI__UNUSED static inline void cci__mutex_init(cci__mutex_t *mutex) {
    InitializeSRWLock(mutex);
}
CCI__UNUSED static inline void cci__mutex_destroy(cci__mutex_t *mutex) {
    (void)mutex;
}
CCI__UNUSED static inline void cci__mutex_take(cci__mutex_t *mutex) {
    AcquireSRWLockExclusive(mutex);
}
CCI__UNUSED static inline void cci__mutex_give(cci__mutex_t *mutex) {
    ReleaseSRWLockExclusive(mutex);
}
#else
typedef pthread_mutex_t cci__mutex_t;
#define CCI__MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
CCI__UNUSED static inline void cci__mutex_init(cci__mutex_t *mutex) {
    (void)pthread_mutex_init(mutex, NULL);
}
CCI__UNUSED static inline void cci__mutex_destroy(cci__mutex_t *mutex) {
    (void)pthread_mutex_destroy(mutex);
}
CCI__UNUSED static inline void cci__mutex_take(cci__mutex_t *mutex) {
    (void)pthread_mutex_lock(mutex);
}
CCI__UNUSED static inline void cci__mutex_give(cci__mutex_t *mutex) {
    (void)pthread_mutex_unlock(mutex);
}
#endif

#ifndef CCI_NO_THREADS
/* A thread, and what it runs; the struct stays where it is until the thread has ended. */
typedef struct cci__thread {
    void (*run)(void *argument);
    void *argument;
#if CCI_WINDOWS
    HANDLE handle;
#else
    pthread_t id;
#endif
} cci__thread_t;

#if CCI_WINDOWS
static DWORD WINAPI cci__thread_main(LPVOID thread) {
    ((cci__thread_t *)thread)->run(((cci__thread_t *)thread)->argument);
    return 0;
}
#else
static void *cci__thread_main(void *thread) {
    ((cci__thread_t *)thread)->run(((cci__thread_t *)thread)->argument);
    return NULL;
}
#endif

/* 0: the system makes no more threads. */
CCI__UNUSED static int cci__thread_start(cci__thread_t *thread, void (*run)(void *argument), void *argument) {
    thread->run = run;
    thread->argument = argument;
#if CCI_WINDOWS
    thread->handle = CreateThread(NULL, 0, cci__thread_main, thread, 0, NULL);
    return thread->handle != NULL;
#else
    return pthread_create(&thread->id, NULL, cci__thread_main, thread) == 0;
#endif
}

CCI__UNUSED static void cci__thread_join(cci__thread_t *thread) {
#if CCI_WINDOWS
    (void)WaitForSingleObject(thread->handle, INFINITE);
    (void)CloseHandle(thread->handle);
#else
    (void)pthread_join(thread->id, NULL);
#endif
}
#endif

typedef struct cci__lock {
    cci__mutex_t mutex;
#ifdef CCI__IS_ALONE
    int held_alone; /* taken by the only thread, without the mutex */
#endif
} cci__lock_t;

CCI__UNUSED static inline void cci__lock_init(cci__lock_t *lock) {
#ifdef CCI__IS_ALONE
    lock->held_alone = 0;
#endif
    cci__mutex_init(&lock->mutex);
}

CCI__UNUSED static inline void cci__lock_destroy(cci__lock_t *lock) {
    cci__mutex_destroy(&lock->mutex);
}

/* The only thread of a process needs no mutex. Should it make another while it is in here (a hook of the program's
 * may), that one finds held_alone set, and waits until it has left. */
CCI__UNUSED static inline void cci__lock_take(cci__lock_t *lock) {
#ifdef CCI__IS_ALONE
    if (CCI__IS_ALONE) {
        __atomic_store_n(&lock->held_alone, 1, __ATOMIC_RELAXED);
        return;
    }
    cci__mutex_take(&lock->mutex);
    while (CCI__UNLIKELY(__atomic_load_n(&lock->held_alone, __ATOMIC_ACQUIRE))) (void)sched_yield();
#else
    cci__mutex_take(&lock->mutex);
#endif
}

CCI__UNUSED static inline void cci__lock_give(cci__lock_t *lock) {
#ifdef CCI__IS_ALONE
    if (__atomic_load_n(&lock->held_alone, __ATOMIC_RELAXED)) {
        __atomic_store_n(&lock->held_alone, 0, __ATOMIC_RELEASE);
        return;
    }
#endif
    cci__mutex_give(&lock->mutex);
}

#ifdef __cplusplus
}
#endif
#endif /* CCI__LOCK */

/* ==================================================================================================================
 * >>evq
 *
 * Events and receive buffers. Buffers are counted: a datagram's buffer stays until the last message in it has been
 * returned. An event that is to be given to the program waits in one of two queues: what opens a connection or fails a
 * device comes before completions, so that no message can overtake the event of its connection.
 *
 * It never allocates and knows no connections. Invariants: an event is in one free list, in one queue, or with the
 * program; a buffer with refs == 0 is in the free list. Limits: those of its creation, raised by adding memory.
 * ================================================================================================================== */
#if defined(CCI_EVQ_IMPLEMENTATION) && !defined(CCI_EVQ_IMPLEMENTED)
#define CCI_EVQ_IMPLEMENTED

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cci_evq_buffer {
    struct cci_evq_buffer *next;
    uint8_t *data; /* 64-byte aligned */
    uint32_t refs;
    uint32_t reserved;
} cci_evq_buffer_t;

/* Which pool an event returns to. The last two are the user's. */
enum { CCI_EVQ_RECV, CCI_EVQ_CONTROL, CCI_EVQ_OPERATION, CCI_EVQ_STATUS };

typedef struct cci_evq_event {
    cci_event_base_t base; /* first: a pointer to the program's event is a pointer to this */
    struct cci_evq_event *next;
    cci_evq_buffer_t *buffer; /* held until the event is returned, or NULL */
    void *owner;              /* the connection, or what else the user of this layer wants to find again */
    uint32_t pool;
    uint32_t state; /* the user's */
} cci_evq_event_t;

typedef struct cci_evq_fifo {
    cci_evq_event_t *head, **tail;
} cci_evq_fifo_t;

typedef struct cci_evq {
    cci_evq_buffer_t *free_buffers;
    cci_evq_event_t *free_events[2]; /* RECV, CONTROL */
    cci_evq_fifo_t urgent, done;
    uint32_t free_buffer_count;
    uint32_t buffer_limit, buffer_total; /* allowed, existing; the difference is parked */
    cci_evq_buffer_t *parked_buffers;
    uint32_t recv_limit, recv_out; /* RECV events allowed and with the program */
#ifndef CCI_NO_STATS
    uint32_t buffer_most; /* buffers that were in use at once */
#endif
} cci_evq_t;

CCI_API void cci_evq_init(cci_evq_t *evq) {
    memset(evq, 0, sizeof *evq);
    evq->urgent.tail = &evq->urgent.head;
    evq->done.tail = &evq->done.head;
}

/* Adds `count` events to a pool; the memory stays the caller's and must outlive the queue. */
CCI_API void cci_evq_add_events(cci_evq_t *evq, cci_endpoint_base_t *endpoint, uint32_t pool, cci_evq_event_t *events,
                                uint32_t count) {
    while (count-- > 0) {
        cci_evq_event_t *event = &events[count];
        memset(event, 0, sizeof *event);
        event->base.endpoint = endpoint;
        event->pool = pool;
        event->next = evq->free_events[pool];
        evq->free_events[pool] = event;
    }
}

/* Adds `count` buffers of `stride` bytes each; `data` is 64-byte aligned. */
CCI_API void cci_evq_add_buffers(cci_evq_t *evq, cci_evq_buffer_t *buffers, uint8_t *data, uint32_t stride,
                                 uint32_t count) {
    evq->buffer_total += count;
    evq->buffer_limit += count;
    evq->free_buffer_count += count;
    while (count-- > 0) {
        buffers[count].data = data + (size_t)count * stride;
        buffers[count].refs = 0;
        buffers[count].next = evq->free_buffers;
        evq->free_buffers = &buffers[count];
    }
}

/* Parks buffers, or takes them back, until at most `limit` of those that exist are in use. */
CCI_API void cci_evq_limit_buffers(cci_evq_t *evq, uint32_t limit) {
    evq->buffer_limit = limit;
    while (evq->buffer_total > limit && evq->free_buffers) {
        cci_evq_buffer_t *buffer = evq->free_buffers;
        evq->free_buffers = buffer->next;
        buffer->next = evq->parked_buffers;
        evq->parked_buffers = buffer;
        evq->buffer_total--;
        evq->free_buffer_count--;
    }
    while (evq->buffer_total < limit && evq->parked_buffers) {
        cci_evq_buffer_t *buffer = evq->parked_buffers;
        evq->parked_buffers = buffer->next;
        buffer->next = evq->free_buffers;
        evq->free_buffers = buffer;
        evq->buffer_total++;
        evq->free_buffer_count++;
    }
}

/* A free buffer with one reference, or NULL. */
CCI_API cci_evq_buffer_t *cci_evq_take_buffer(cci_evq_t *evq) {
    cci_evq_buffer_t *buffer = evq->free_buffers;
    if (!buffer) return NULL;
    evq->free_buffers = buffer->next;
    evq->free_buffer_count--;
    buffer->refs = 1;
#ifndef CCI_NO_STATS
    if (CCI__UNLIKELY(evq->buffer_total - evq->free_buffer_count > evq->buffer_most))
        evq->buffer_most = evq->buffer_total - evq->free_buffer_count;
#endif
    return buffer;
}

/* Short enough to be part of what calls it. */
CCI__UNUSED static inline void cci__evq_release(cci_evq_t *evq, cci_evq_buffer_t *buffer) {
    CCI_ASSERT(buffer->refs > 0);
    if (--buffer->refs > 0) return;
    if (CCI__UNLIKELY(evq->buffer_total > evq->buffer_limit)) {
        buffer->next = evq->parked_buffers;
        evq->parked_buffers = buffer;
        evq->buffer_total--;
        return;
    }
    buffer->next = evq->free_buffers;
    evq->free_buffers = buffer;
    evq->free_buffer_count++;
}

CCI_API void cci_evq_release_buffer(cci_evq_t *evq, cci_evq_buffer_t *buffer) {
    cci__evq_release(evq, buffer);
}

/* A free event of the pool, or NULL. */
CCI_API cci_evq_event_t *cci_evq_take_event(cci_evq_t *evq, uint32_t pool) {
    cci_evq_event_t *event = evq->free_events[pool];
    if (!event || (pool == CCI_EVQ_RECV && evq->recv_out >= evq->recv_limit)) return NULL;
    evq->recv_out += pool == CCI_EVQ_RECV;
    evq->free_events[pool] = event->next;
    return event;
}

/* The same for an event of the pools RECV and CONTROL, and its hold on the buffer. */
CCI__UNUSED static inline void cci__evq_take_back(cci_evq_t *evq, cci_evq_event_t *event) {
    if (event->buffer) cci__evq_release(evq, event->buffer);
    event->buffer = NULL;
    event->base.pub.type = CCI_EVENT_NONE;
    evq->recv_out -= event->pool == CCI_EVQ_RECV;
    event->next = evq->free_events[event->pool];
    evq->free_events[event->pool] = event;
}

CCI_API void cci_evq_return_event(cci_evq_t *evq, cci_evq_event_t *event) {
    cci__evq_take_back(evq, event);
}

CCI_API void cci_evq_post(cci_evq_fifo_t *fifo, cci_evq_event_t *event) {
    event->next = NULL;
    *fifo->tail = event;
    fifo->tail = &event->next;
}

#ifndef CCI_NO_STATS
/* Events that wait in a queue, without those that were taken back. */
CCI_API uint32_t cci_evq_count(const cci_evq_fifo_t *fifo) {
    const cci_evq_event_t *event;
    uint32_t count = 0;
    for (event = fifo->head; event; event = event->next) count += event->base.pub.type != CCI_EVENT_NONE;
    return count;
}
#endif

CCI_API cci_evq_event_t *cci_evq_next(cci_evq_fifo_t *fifo) {
    cci_evq_event_t *event = fifo->head;
    if (event && (fifo->head = event->next) == NULL) fifo->tail = &fifo->head;
    return event;
}

#ifdef __cplusplus
}
#endif
#endif /* CCI_EVQ_IMPLEMENTATION */

/* ==================================================================================================================
 * >>conn
 *
 * The connection table, and the protocol of connections: handshake, CLOSE, resets, peers that fall silent or move. A
 * connection is an index with a token of 64 unguessable bits, chosen by the side that checks them and put by the peer
 * in each of its packets. Finding it is one array access and one comparison.
 *
 * It never allocates (memory for more connections is handed in), sends nothing and reads no clock:
 *     cci_conn_input()     takes a packet, and says what it means for the user and what is to be answered
 *     cci_conn_output()    writes a packet of a connection; cci_conn_output_request() writes the client's request, and
 *                          cci_conn_output_reply() an answer that needs no connection
 *     cci_conn_deadline()  when a connection wants something
 *     cci_conn_timeout()   what that is; cci_conn_probe() for a peer that is silent
 *     cci_conn_path_...    a peer that moves
 * Its user sends, has the program's events, and opens and ends connections.
 *
 * A server keeps nothing for a request that did not prove its address while more than CCI__CONN_UNPROVEN others wait:
 * it answers with a cookie. All that a server sends before the address is proven is an answer to a packet at least as
 * long; it is the client that repeats. Limits: 2^20 connections for 4,096 slabs of 256. The upper 12 bits of an index
 * are those of the table's base: of several endpoints with one address each has another base.
 *
 *      client                                 server
 *      REQUEST  (token c, data)   ──────────▶ (under load: COOKIE ◀── REQUEST with cookie ──▶)   CONNECT_REQUEST event
 *      CONNECT event  ◀────────── ACCEPT (token s)                                       after cci_accept()
 *      CONFIRM, or data           ──────────▶ ACCEPT event
 *                     ◀────────── CONFIRMED, or data
 *
 * The server's program may have data for the client, with ACCEPT or REJECT: it comes in several of these where a packet
 * can't take 1,024 bytes, and all of them leave again when the client repeats its request; the client confirms when it
 * has all. An address that is not proven gets COOKIE instead, until the request comes with that cookie: nothing longer
 * than what came goes to an address that may be another's.
 *
 *      who closes                             the other
 *      CLOSE  (up to 6 times)     ──────────▶ messages that had arrived, completions, then the DISCONNECT event
 *                     ◀────────── CLOSED; RESET from one that has forgotten the connection
 *
 * CONFIRM is also the question to a peer that was silent for long. A server that has no space answers a REQUEST with
 * BUSY, and keeps nothing; the client goes on. One network gets at most three quarters of what is left, by counters in
 * a sketch.
 *
 * A peer's address may change (a NAT forgets). The token in its packets proves that they are the peer's, but not that
 * it receives where they say they come from: else a peer could direct what we send at a third party. So the old address
 * stays in use until the new one is proven: a packet that is newer than all before and comes from elsewhere is answered
 * there with a CHALLENGE, the peer sends its 64 unguessable bits back in a RESPONSE to the address that it knows of us,
 * and then its address is the new one. At most three times the bytes that came from the new address go there before.
 * Frames:
 *
 *     CHALLENGE type, 0 7, unguessable bits 8
 *     RESPONSE  type, 0 7, the bits of the last CHALLENGE 8
 *
 * Every packet begins with the same 24 bytes, little-endian:
 *
 *       0        1        2                 4                                 8
 *      ┌────────┬────────┬─────────────────┬─────────────────────────────────┬──────────────────────────────────────┐
 *      │version │ type   │ attribute, flags│ receiver's index                │ receiver's token                     │
 *      └────────┴────────┴─────────────────┴─────────────────────────────────┴──────────────────────────────────────┘
 *       16                                  20                                24
 *      ┌───────────────────────────────────┬─────────────────────────────────┬───────────────────
 *      │ sender's index                    │ packet number, low 32 bits      │ frames, or fields
 *      └───────────────────────────────────┴─────────────────────────────────┴───────────────────
 *
 * A REQUEST has its sender's index and token in the first two places and the cookie in the third; its data comes in
 * several pieces where a packet can't take 1,024 bytes. A RESET answers a packet
 * for a connection that is not there; it repeats the token of that packet, which only the two sides know.
 * The flags (the fourth byte) say what else is there; a packet whose flags are not those of the endpoint is dropped:
 *
 *     1 CRC     the last 4 bytes are the CRC-32C of all before them
 *     2 SEALED  a tag is behind the frames or fields (before the CRC); what is not needed for finding the key is
 *               encrypted
 *
 *      ┌─────────────────────────────────────────────┬────────────────────────────────────────┬──────────────┬───────┐
 *      │ readable: the header; REQUEST: 64 bytes, the│ encrypted: frames; REQUEST: the secret │ tag of all   │ CRC 4 │
 *      │ last 16 key's id 8, number 4, 0 4; ACCEPT 40│ of resets 8, data; ACCEPT: the secret 8│ before it    │       │
 *      │ as ever, REJECT 32: with its sender's token │                                        │              │       │
 *      └─────────────────────────────────────────────┴────────────────────────────────────────┴──────────────┴───────┘
 *
 * The nonce is never sent: the sender's token 8, the receiver's token 8 (for a REQUEST its cookie, for a GROUP 0), and
 * 8 of the number: its low 56 bits, then the type, with 0x80 added by the server. The number is that of the packet, for
 * DATA and GROUP; all others of a connection count for themselves, from 0, in the same place of the header, a REQUEST
 * at 56. A sealed GROUP has its sender's token in the place of the receiver's, and the high half of its number in that
 * of the index. COOKIE, BUSY and RESET come from where no key is known, and are never sealed; a RESET of a sealed
 * connection ends with the secret of 8 bytes that its sender gave to the peer when it was made. A sealed REQUEST is
 * heard only with a cookie.
 * ================================================================================================================== */
#if defined(CCI_CONN_IMPLEMENTATION) && !defined(CCI_CONN_IMPLEMENTED)
#define CCI_CONN_IMPLEMENTED

#ifdef __cplusplus
extern "C" {
#endif

#ifdef CCI_SMALL
#define CCI__CONN_SLAB ((uint32_t)CCI_SMALL_CONNECTIONS)
#define CCI__CONN_SLABS 1u
#else
#define CCI__CONN_SLAB 256u   /* connections in a slab */
#define CCI__CONN_SLABS 4096u /* slabs at most */
#endif
#define CCI__CONN_MOST (CCI__CONN_SLAB * CCI__CONN_SLABS)
#define CCI__CONN_UNPROVEN                                                                                             \
    256u /* requests without cookie that may wait at once; at most for a quarter of the buffers */
#define CCI__CONN_NONE 0xffffffffu
#define CCI__CONN_EPOCH_NS (UINT64_C(1) << 34) /* of cookies: 17 s */
#define CCI__CONN_CONFIRM_TRIES 30u            /* CONFIRM packets that are sent again at most */
#define CCI__CONN_CLOSE_TRIES 6u               /* CLOSE packets that are sent at most */
#define CCI__CONN_CLOSE_NS UINT64_C(20000)     /* between CLOSE packets of an endpoint, on average: 50,000 a second */
#define CCI__CONN_CLOSE_BURST 32u              /* of them may leave at once */
#define CCI__CONN_CLOSE_BATCHES 50u            /* of an endpoint that goes: one a millisecond, if there are many */
#define CCI__CONN_LINGER_NS (100 * CCI__MS)    /* it waits for answers to its CLOSE packets at most */
#define CCI__CONN_ACCEPT_NS (UINT64_C(30000) * CCI__MS) /* a client that was accepted must confirm within */
#define CCI__CONN_REJECT_NS                                                                                            \
    (UINT64_C(4000) * CCI__MS) /* a refusal is remembered: longer than the client's longest pause */
#define CCI__CONN_COLLECT_NS (UINT64_C(5000) * CCI__MS)         /* all pieces of a request must come within */
#define CCI__CONN_PROBES 8u                                     /* that a silent peer may leave unanswered */
#define CCI__CONN_RESETS 16u                                    /* RESET packets in a round of the user's work */
#define CCI__CONN_HEAD (CCI__SEALED_REQUEST + CCI__SECRET_SIZE) /* bytes that cci_conn_output() writes at most */

typedef enum cci_conn_state {
    CCI_CONN_FREE,
    CCI_CONN_CONNECTING, /* client: REQUEST is repeated                                */
    CCI_CONN_COLLECTING, /* server: not all pieces of the request have come            */
    CCI_CONN_REQUESTED,  /* server: the program has not decided                        */
    CCI_CONN_ACCEPTED,   /* server: waits for the client's confirmation                */
    CCI_CONN_REJECTED,   /* server: remembers the refusal for a while                  */
    CCI_CONN_OPEN,
    CCI_CONN_BROKEN, /* the peer has left or is lost; the program has not closed   */
    CCI_CONN_CLOSING /* the program has closed: CLOSE is repeated                  */
} cci_conn_state_t;

typedef struct cci_conn {
    struct cci_connection pub; /* first: a pointer to the program's connection is a pointer to this */
    cci_timer_t timer;
    uint64_t token, peer_token;
    uint64_t deadline_ns; /* of the handshake; later the user's */
    uint32_t index, peer_index;
    uint32_t next; /* in the free list or in its hash bucket */
    uint32_t peer_window;
    cci_link_addr_t peer;
    uint8_t state;
    uint8_t tries; /* of the packet that is repeated */
    uint8_t is_client;
    uint8_t unproven;       /* server: neither a cookie nor the server's token has come from the client's address yet */
    union {                 /* by state */
        uint8_t confirming; /* OPEN, client: CONFIRM is repeated */
        /* CLOSING: deadline_ns is when the next CLOSE may leave; else, when its answer is missing */
        uint8_t in_line;
    } step;
    uint8_t hashed;
    uint16_t flags;                         /* CCI__CONN_; those below 256 are the user's */
    uint32_t send_timeout_us, keepalive_us; /* the user's: CCI_OPT_CONN_ */
} cci_conn_t;

#define CCI__CONN_PINGED 0x100u /* the peer was asked for a sign of life, and nothing has come since */
#define CCI__CONN_WORN 0x200u   /* no more packets can be sealed */
#define CCI__CONN_BUSY 0x400u   /* client: the server has no space for it */
#define CCI__CONN_UNDECIDED                                                                                            \
    0x800u                        /* server: counts among those of its network that the program has not decided about */
#define CCI__CONN_COUNTED 0x1000u /* server: counts among those of its network */
#define CCI__CONN_ANSWERS 0x2000u /* server: the answer has data, which is kept */
#define CCI__CONN_UNREACHED 0x4000u /* client: the log says that nobody receives at the peer's address */
#define CCI__CONN_LINGERS 0x8000u   /* OPEN, BROKEN: the program has closed it, and what is pending goes on */

#ifdef CCI_NO_LINGER
#define CCI__LINGERS(conn) ((void)(conn), 0)
#else
#define CCI__LINGERS(conn) CCI__UNLIKELY(((conn)->flags & CCI__CONN_LINGERS) != 0)
#define CCI__LINGER_US(conn) (conn)->timer.user /* CCI_OPT_CONN_LINGER */
#endif

/* What the handshake needs besides. It follows directly behind the cci_conn_t of each connection of a table whose user
 * calls cci_conn_input(). */
typedef struct cci_conn_life {
    uint32_t heard;         /* when something came from the peer, in units of 2^20 ns */
    union {                 /* by state of the connection */
        int32_t end_status; /* BROKEN: that of the event about it */
        int32_t turn;       /* OPEN: the user's */
        uint32_t ask;       /* OPEN: the user's, instead of that */
    } at;
} cci_conn_life_t;

/* The same where packets may be sealed; a table without `seal` may have connections with the first part alone. */
typedef struct cci_conn_peer {
    cci_conn_life_t life;
    uint32_t sealed_count; /* of the handshake's packets that were sent */
    uint32_t count;        /* of the peer's packets of the handshake, one more than the latest that has come */
    void *key;             /* the program's, NULL: packets are not sealed */
    uint64_t secret;       /* what the peer's RESET must hold */
} cci_conn_peer_t;

/* What is there of data that comes in pieces, of which there are 32 at most. */
typedef struct cci_conn_pieces {
    uint32_t missing; /* bit n: piece n has not come */
    uint32_t unit;    /* bytes of each but the last */
} cci_conn_pieces_t;

/* The data of an ACCEPT or REJECT, which follows: at the server while the client may ask for it, at the client while
 * it comes and while the program has it. */
typedef struct cci_conn_answer {
    cci_list_t node; /* the user's */
    uint32_t data_len;
    /* Client: */
    uint8_t type; /* of the packets that it comes in */
    cci_conn_pieces_t pieces;
    uint64_t token; /* of the server that sends it */
} cci_conn_answer_t;

#ifndef CCI_NO_NAMES
#define CCI__NAME_LONGEST 120u
#define CCI__NAME_PORTS 8u
#define CCI__NAME_FIRST 49152u                 /* of the ports that names have */
#define CCI__NAME_PLACE (CCI__NAME_PORTS - 1u) /* bits of a REQUEST's name: the place of the port that is asked */
#define CCI__SEEK_NS (20 * CCI__MS)            /* for an answer of each port in the first pass */
#define CCI__SEEK_DOUBLINGS 3u                 /* of that, once for each pass */

/* What a name stands for. */
typedef struct cci_conn_name {
    uint64_t id; /* without the bits of CCI__NAME_PLACE; never 0 */
    uint32_t ports[CCI__NAME_PORTS];
} cci_conn_name_t;

/* A client seeks the server that has a name, at one port after the other, in passes. */
typedef struct cci_conn_seek {
    cci_conn_name_t name;
    uint64_t until_ns, pass_ns; /* when the next port's turn is, and when this pass began */
    uint32_t at, passes;        /* the port that is being asked, and passes that are over */
    uint32_t denied;            /* bit n: who has port n said in this pass that it has another name, or none */
    uint32_t is_asked;          /* the link has to ask where each is */
    cci_link_addr_t addresses[CCI__NAME_PORTS];
    cci_link_addr_t asked[CCI__NAME_PORTS]; /* where each port was when it was asked last, where the link had to ask */
} cci_conn_seek_t;
#endif

/* The client's request while it is repeated; its data follows. The cookie stands in the place of the peer's token. */
typedef struct cci_conn_pending {
    void *event;               /* the user's, for the outcome */
    cci_conn_answer_t *answer; /* what has come of the server's data, or NULL */
#ifndef CCI_NO_NAMES
    cci_conn_seek_t *seek; /* behind the data: the server is sought by name; or NULL */
#endif
    uint64_t key_id;     /* sealed: names the key to the server */
    uint64_t give_up_ns; /* when the time for connecting is over */
    uint32_t data_len;
} cci_conn_pending_t;

/* Tokens of clients whose connections have ended in one epoch: a copy of their request is none. */
typedef struct cci_conn_seen {
    uint64_t *slots; /* CCI__CONN_SEEN of them, an open hash; 0: empty */
    uint32_t count;
} cci_conn_seen_t;

#ifdef CCI_SMALL
#define CCI__CONN_SEEN 8u
#define CCI__CONN_SOURCES 2u
#else
#define CCI__CONN_SEEN 16384u  /* slots; an epoch ends when half of them are in use */
#define CCI__CONN_SOURCES 512u /* counters in a row */
#endif

/* How many connections each network has: a keyed sketch of two rows, whose smaller counter is at least the true
 * number. */
typedef struct cci_conn_sources {
    uint32_t all[2][CCI__CONN_SOURCES], undecided[2][CCI__CONN_SOURCES];
} cci_conn_sources_t;

typedef struct cci_conn_table {
    uint64_t key[2];
    uint64_t counter, challenges; /* tokens and challenges so far: each is another */
    uint8_t **slabs;
    uint32_t *buckets;
    uint32_t entry_size, slab_count, slab_limit, bucket_count;
    uint32_t base;            /* of the indices, a multiple of CCI__CONN_MOST; set before the first slab comes */
    uint32_t free, free_last; /* first in, first out: a name that was just given up is not given again soon */
    uint32_t used, unproven;
    /* Cookies are good for the epoch in which they were given, and for the next. So long it is remembered which
     * requests have been heard, and since there is an end to that, an epoch that has seen many ends early: this
     * costs a client a new cookie. */
    uint64_t epoch, epoch_ns; /* its number, and when it began */
    cci_conn_seen_t seen[2];  /* in this epoch, and in the one before */
    cci_conn_sources_t sources;
    /* What the user of cci_conn_input() sets. */
#ifndef CCI_NO_NAMES
    uint64_t name; /* of the service; 0: it has none */
#endif
    const cci_seal_t *seal; /* the program's hooks, or NULL */
    uint32_t (*prefix)(void *link, const cci_link_addr_t *address, uint8_t bytes[16]); /* as the link's; may be NULL */
    void *link;                                                                        /* its first argument */
    uint32_t unproven_most; /* requests without cookie that may wait at once; 0: a client asks for a cookie first */
    uint32_t window, mtu;   /* bytes that may be under way to this side at once; of a packet that any path takes */
    uint32_t accept_more;   /* bytes of the user's in each ACCEPT, in front of the data */
    uint32_t resets;        /* RESET packets since the user has set it to 0: 16 at most */
} cci_conn_table_t;

/* `slabs` has room for CCI__CONN_SLABS pointers; `entry_size` bytes are kept for each connection, of which
 * cci_conn_t is the beginning. The key is secret and random. */
CCI_API void cci_conn_table_init(cci_conn_table_t *table, const uint64_t key[2], uint32_t entry_size, uint8_t **slabs) {
    memset(table, 0, sizeof *table);
    table->key[0] = key[0];
    table->key[1] = key[1];
    table->entry_size = entry_size;
    table->slabs = slabs;
    table->slab_limit = CCI__CONN_SLABS;
    table->free = CCI__CONN_NONE;
}

/* Memory for what was heard lately: 2 * CCI__CONN_SEEN numbers. */
CCI_API void cci_conn_table_remembers(cci_conn_table_t *table, uint64_t *slots) {
    memset(slots, 0, 2 * CCI__CONN_SEEN * sizeof *slots);
    table->seen[0].slots = slots;
    table->seen[1].slots = slots + CCI__CONN_SEEN;
}

/* The base of an index does not count here. NULL when the table has not grown so far. */
CCI_API cci_conn_t *cci_conn_at(const cci_conn_table_t *table, uint32_t index) {
    index %= CCI__CONN_MOST;
    if (index / CCI__CONN_SLAB >= table->slab_count) return NULL;
    return (cci_conn_t *)(void *)(table->slabs[index / CCI__CONN_SLAB] +
                                  (size_t)(index % CCI__CONN_SLAB) * table->entry_size);
}

#ifndef CCI_NO_STATS
/* Counts the connections that are open, and those that have no outcome yet. */
CCI_API void cci_conn_count(const cci_conn_table_t *table, uint32_t *open, uint32_t *opening) {
    uint32_t i;
    *open = *opening = 0;
    for (i = 0; i < table->slab_count * CCI__CONN_SLAB; i++) {
        const cci_conn_t *conn = cci_conn_at(table, i);
        uint8_t state = conn->state;
        *open += state == CCI_CONN_OPEN && !CCI__LINGERS(conn);
        *opening += state == CCI_CONN_CONNECTING || state == CCI_CONN_COLLECTING || state == CCI_CONN_REQUESTED ||
                    state == CCI_CONN_ACCEPTED;
    }
}
#endif

/* The connection with this index and token, NULL if there is none. */
CCI_API cci_conn_t *cci_conn_find(const cci_conn_table_t *table, uint32_t index, uint64_t token) {
    cci_conn_t *conn = cci_conn_at(table, index);
    return conn && conn->index == index && conn->token == token && conn->state != CCI_CONN_FREE ? conn : NULL;
}

/* Do both sides know each other's tokens? */
CCI_API int cci_conn_has_peer(const cci_conn_t *conn) {
    return conn->state == CCI_CONN_ACCEPTED || conn->state == CCI_CONN_OPEN || conn->state == CCI_CONN_BROKEN ||
           conn->state == CCI_CONN_CLOSING;
}

static void cci_conn_put_free(cci_conn_table_t *table, cci_conn_t *conn) {
    conn->next = CCI__CONN_NONE;
    if (table->free == CCI__CONN_NONE)
        table->free = conn->index;
    else
        cci_conn_at(table, table->free_last)->next = conn->index;
    table->free_last = conn->index;
}

/* Adds CCI__CONN_SLAB connections; `memory` has CCI__CONN_SLAB * entry_size bytes. */
CCI_API void cci_conn_add_slab(cci_conn_table_t *table, uint8_t *memory) {
    uint32_t i, base = table->base + table->slab_count * CCI__CONN_SLAB;
    memset(memory, 0, (size_t)CCI__CONN_SLAB * table->entry_size);
    table->slabs[table->slab_count++] = memory;
    for (i = 0; i < CCI__CONN_SLAB; i++) {
        cci_conn_t *conn = cci_conn_at(table, base + i);
        conn->index = base + i;
        cci_conn_put_free(table, conn);
    }
}

CCI_API uint32_t *cci_conn_bucket(cci_conn_table_t *table, const cci_link_addr_t *from, uint32_t index,
                                  uint64_t token) {
    uint64_t words[5];
    memcpy(words, from->bytes, sizeof from->bytes);
    words[3] = index;
    words[4] = token;
    return &table->buckets[cci__siphash(table->key, words, 5) & (table->bucket_count - 1)];
}

/* Replaces the buckets of the hash by `count` (a power of two) new ones; returns the old array. */
CCI_API uint32_t *cci_conn_rehash(cci_conn_table_t *table, uint32_t *buckets, uint32_t count) {
    uint32_t *old = table->buckets, i;
    table->buckets = buckets;
    table->bucket_count = count;
    for (i = 0; i < count; i++) buckets[i] = CCI__CONN_NONE;
    for (i = 0; i < table->slab_count * CCI__CONN_SLAB; i++) {
        cci_conn_t *conn = cci_conn_at(table, i);
        if (conn->hashed) {
            uint32_t *bucket = cci_conn_bucket(table, &conn->peer, conn->peer_index, conn->peer_token);
            conn->next = *bucket;
            *bucket = conn->index;
        }
    }
    return old;
}

/* The server's connection for a request that came before, NULL if there is none. */
CCI_API cci_conn_t *cci_conn_find_request(cci_conn_table_t *table, const cci_link_addr_t *from, uint32_t index,
                                          uint64_t token) {
    uint32_t at = *cci_conn_bucket(table, from, index, token);
    while (at != CCI__CONN_NONE) {
        cci_conn_t *conn = cci_conn_at(table, at);
        if (conn->peer_token == token && conn->peer_index == index && !memcmp(&conn->peer, from, sizeof *from))
            return conn;
        at = conn->next;
    }
    return NULL;
}

CCI_API void cci_conn_hash(cci_conn_table_t *table, cci_conn_t *conn) {
    uint32_t *bucket = cci_conn_bucket(table, &conn->peer, conn->peer_index, conn->peer_token);
    conn->next = *bucket;
    conn->hashed = 1;
    *bucket = conn->index;
}

CCI_API void cci_conn_unhash(cci_conn_table_t *table, cci_conn_t *conn) {
    uint32_t *at;
    if (!conn->hashed) return;
    at = cci_conn_bucket(table, &conn->peer, conn->peer_index, conn->peer_token);
    while (*at != conn->index) at = &cci_conn_at(table, *at)->next;
    *at = conn->next;
    conn->hashed = 0;
}

/* A free connection with a new token, zeroed behind that; NULL when the table must grow first. */
CCI_API cci_conn_t *cci_conn_open(cci_conn_table_t *table) {
    cci_conn_t *conn;
    uint64_t words[2];
    uint32_t index = table->free;
    if (index == CCI__CONN_NONE) return NULL;
    conn = cci_conn_at(table, index);
    table->free = conn->next;
    memset(conn, 0, table->entry_size);
    conn->index = index;
    words[0] = ++table->counter;
    words[1] = index;
    conn->token = cci__siphash(table->key, words, 2);
    cci__timer_init(&conn->timer);
    table->used++;
    return conn;
}

CCI_API void cci_conn_close(cci_conn_table_t *table, cci_conn_t *conn) {
    CCI_ASSERT(conn->state != CCI_CONN_FREE && conn->timer.at_ns == CCI__NEVER);
    cci_conn_unhash(table, conn);
    conn->state = CCI_CONN_FREE;
    conn->token = 0;
    cci_conn_put_free(table, conn);
    table->used--;
}

/* ---- requests that come again after their connection has ended ---- */

static uint32_t cci__conn_seen_at(const cci_conn_table_t *table, const cci_conn_seen_t *seen, uint64_t token) {
    uint32_t at = (uint32_t)cci__siphash(table->key, &token, 1) & (CCI__CONN_SEEN - 1);
    while (seen->slots[at] != 0 && seen->slots[at] != token) at = (at + 1) & (CCI__CONN_SEEN - 1);
    return at;
}

static void cci__conn_next_epoch(cci_conn_table_t *table) {
    cci_conn_seen_t oldest = table->seen[1];
    table->seen[1] = table->seen[0];
    if (oldest.count > 0) memset(oldest.slots, 0, CCI__CONN_SEEN * sizeof *oldest.slots);
    oldest.count = 0;
    table->seen[0] = oldest;
    table->epoch++;
}

/* Ends the epoch if it is over. */
CCI_API void cci_conn_turn_epoch(cci_conn_table_t *table, uint64_t now_ns) {
    uint32_t turns = (uint32_t)cci__min64((now_ns - table->epoch_ns) / CCI__CONN_EPOCH_NS, 2);
    if (turns > 0) table->epoch_ns = now_ns;
    while (turns-- > 0) cci__conn_next_epoch(table);
}

/* Has a connection of this client's token ended in this epoch, or in the one before? */
CCI_API int cci_conn_was_seen(const cci_conn_table_t *table, uint64_t token) {
    uint32_t i;
    for (i = 0; i < 2; i++)
        if (table->seen[i].count > 0 && table->seen[i].slots[cci__conn_seen_at(table, &table->seen[i], token)] == token)
            return 1;
    return 0;
}

/* The request of a connection that ends, or that is found at another address from now on, must not be heard again. */
CCI_API void cci_conn_remember(cci_conn_table_t *table, uint64_t token, uint64_t now_ns) {
    uint32_t at;
    cci_conn_turn_epoch(table, now_ns);
    if (table->seen[0].count == CCI__CONN_SEEN / 2) cci__conn_next_epoch(table);
    at = cci__conn_seen_at(table, &table->seen[0], token);
    table->seen[0].count += table->seen[0].slots[at] != token;
    table->seen[0].slots[at] = token;
}

/* ---- shares of the table ---- */

static uint32_t cci__conn_source_at(const cci_conn_table_t *table, const uint8_t prefix[16], uint64_t row) {
    uint64_t words[3];
    words[0] = cci__load64(prefix);
    words[1] = cci__load64(prefix + 8);
    words[2] = row ^ 0x736f75726365; /* other hashes of this key have other counts of words, or another last word */
    return (uint32_t)(cci__siphash(table->key, words, 3) % CCI__CONN_SOURCES);
}

/* Counts connections of a network, and requests that are not decided: `all` and `undecided` are 1, 0 or -1. */
CCI_API void cci_conn_count_source(cci_conn_table_t *table, const uint8_t prefix[16], int all, int undecided) {
    uint32_t row;
    for (row = 0; row < 2; row++) {
        uint32_t at = cci__conn_source_at(table, prefix, row);
        table->sources.all[row][at] += (uint32_t)all;
        table->sources.undecided[row][at] += (uint32_t)undecided;
    }
}

/* May a network have one connection more, where `undecided_left` requests can still be held? Three quarters at
 * most are for one, so that others find something. */
CCI_API int cci_conn_source_may(const cci_conn_table_t *table, const uint8_t prefix[16], uint32_t undecided_left) {
    uint32_t a = cci__conn_source_at(table, prefix, 0), b = cci__conn_source_at(table, prefix, 1);
    return cci__share(cci__min32(table->sources.all[0][a], table->sources.all[1][b]),
                      table->slab_limit * CCI__CONN_SLAB - table->used) &&
           cci__share(cci__min32(table->sources.undecided[0][a], table->sources.undecided[1][b]), undecided_left);
}

/* ==================================================================================================================
 * >>conn-packets
 *
 * Reading and writing the packets of a handshake, the life of a connection in the table, and how a service is found
 * by its name. cci_conn_parse() and cci_conn_parse_...() check all that comes; what they pass on has the length that
 * its type demands. Nothing here changes a connection's state but the functions under "connections that begin, move
 * and end".
 *   Parts: packets; connections that begin, move and end; services by name.
 * ================================================================================================================== */

typedef struct cci_conn_header {
    uint8_t type, attribute, flags;
    uint32_t index, peer_index, number;
    uint64_t token;
} cci_conn_header_t;

/* Reads the first 24 bytes; 0 if this is no packet of ours. */
CCI_API int cci_conn_parse(const uint8_t *bytes, uint32_t length, cci_conn_header_t *header) {
    if (length < CCI__HEADER_SIZE || bytes[0] != CCI__WIRE_VERSION) return 0;
    header->type = bytes[1];
    header->attribute = bytes[2];
    header->flags = bytes[3];
    header->index = cci__load32(bytes + 4);
    header->token = cci__load64(bytes + 8);
    header->peer_index = cci__load32(bytes + 16);
    header->number = cci__load32(bytes + 20);
    return 1;
}

CCI_API void cci_conn_write_header(uint8_t *bytes, uint8_t type, uint8_t attribute, uint32_t to_index,
                                   uint64_t to_token, uint32_t from_index, uint32_t number) {
    bytes[0] = CCI__WIRE_VERSION;
    bytes[1] = type;
    bytes[2] = attribute;
    bytes[3] = 0;
    cci__store32(bytes + 4, to_index);
    cci__store64(bytes + 8, to_token);
    cci__store32(bytes + 16, from_index);
    cci__store32(bytes + 20, number);
}

typedef struct cci_conn_request {
    uint64_t cookie;
#ifndef CCI_NO_NAMES
    uint64_t name; /* and the place of the port, 0: the server is not asked for by name */
#endif
    uint32_t max_send_size, window;
    uint32_t data_len;       /* of the whole request */
    uint32_t unit;           /* bytes in each piece but the last */
    uint32_t offset, length; /* of this piece */
    const uint8_t *data;     /* of this piece */
} cci_conn_request_t;

/* What a packet that has come means for the user of the table. */
typedef enum cci_conn_got {
    CCI_CONN_GOT_NOTHING,   /* it has been seen to, or is dropped                            */
    CCI_CONN_GOT_SOUND,     /* it opened, if it was sealed; never from cci_conn_input()      */
    CCI_CONN_GOT_STRAY,     /* it is not ours, or for no connection of the table             */
    CCI_CONN_GOT_MISMATCH,  /* one side seals and the other does not                         */
    CCI_CONN_GOT_FORGERY,   /* it does not open                                              */
    CCI_CONN_GOT_REQUEST,   /* of a client that is new: see cci_conn_begin_request()         */
    CCI_CONN_GOT_PIECE,     /* of a request: see cci_conn_collect()                          */
    CCI_CONN_GOT_ANSWER,    /* client: an ACCEPT or REJECT with data: see cci_conn_collect_answer() */
    CCI_CONN_GOT_ACCEPT,    /* client: see cci_conn_opened()                                 */
    CCI_CONN_GOT_REJECT,    /* client: the server refuses                                    */
    CCI_CONN_GOT_NOT_HERE,  /* client: it has another name; see cci_conn_is_denied()         */
    CCI_CONN_GOT_CONFIRM,   /* server: the client knows that it was accepted: likewise       */
    CCI_CONN_GOT_CONFIRMED, /* client: the server knows that; nothing is repeated any more   */
    CCI_CONN_GOT_DATA,      /* of a connection that is accepted or open; it may be sealed    */
    CCI_CONN_GOT_CLOSE,     /* the peer has closed a connection that is accepted or open     */
    CCI_CONN_GOT_RESET,     /* the peer does not know it                                     */
    CCI_CONN_GOT_END        /* the peer knows that the program has closed it: see cci_conn_end() */
} cci_conn_got_t;

/* A packet that has come. */
typedef struct cci_conn_packet {
    const cci_link_addr_t *from;
    uint8_t *bytes;  /* what is sealed opens in place */
    uint32_t length; /* without the checksum */
    cci_conn_header_t header;
    uint64_t now_ns;
    /* What cci_conn_input() says of it. */
    cci_conn_t *conn;           /* that it is for, or NULL */
    cci_conn_request_t request; /* GOT_REQUEST, GOT_PIECE; GOT_ANSWER: the piece alone */
    uint8_t answer;             /* type of the packet that is to be sent, or 0 */
    uint8_t is_proven;          /* GOT_REQUEST: it has a cookie */
} cci_conn_packet_t;

/* Where a piece stands in the data that it is a part of, as in REQUEST, ACCEPT and REJECT. */
static void cci__conn_write_piece(const cci_conn_request_t *piece, uint8_t *bytes) {
    cci__store16(bytes, piece->data_len);
    cci__store16(bytes + 2, piece->unit);
    cci__store16(bytes + 4, piece->offset);
    cci__store16(bytes + 6, piece->length);
}

/* `length` bytes of data are there, behind those that are read; 0 if the piece is none. */
static int cci__conn_parse_piece(const uint8_t *bytes, const uint8_t *data, uint32_t length,
                                 cci_conn_request_t *piece) {
    piece->data_len = cci__load16(bytes);
    piece->unit = cci__load16(bytes + 2);
    piece->offset = cci__load16(bytes + 4);
    piece->length = cci__load16(bytes + 6);
    piece->data = data;
    if (piece->data_len > CCI_CONN_REQ_LEN || piece->length > length) return 0;
    if (piece->offset == 0 && piece->length == piece->data_len) return 1;
    return piece->unit >= 32 && piece->offset % piece->unit == 0 && piece->offset < piece->data_len &&
           piece->length == cci__min32(piece->unit, piece->data_len - piece->offset);
}

/* Writes a REQUEST without its data; returns its bytes. */
CCI_API uint32_t cci_conn_write_request(const cci_conn_t *conn, const cci_conn_request_t *request, uint8_t *bytes) {
    memset(bytes, 0, CCI__REQUEST_SIZE);
    cci_conn_write_header(bytes, CCI__PKT_REQUEST, (uint8_t)conn->pub.attribute, conn->index, conn->token, 0, 0);
    cci__store64(bytes + 16, request->cookie);
    cci__store32(bytes + 24, request->max_send_size);
    cci__store32(bytes + 28, request->window);
    cci__conn_write_piece(request, bytes + 32);
#ifndef CCI_NO_NAMES
    if (request->name != 0) {
        bytes[3] |= CCI__HEADER_NAMED;
        cci__store64(bytes + 40, request->name);
    }
#endif
    return CCI__REQUEST_SIZE;
}

/* `length` is without the tag; what is encrypted is not looked at. */
CCI_API int cci_conn_parse_request(const uint8_t *bytes, uint32_t length, cci_conn_request_t *request) {
    uint32_t head = length >= CCI__HEADER_SIZE && (bytes[3] & CCI__HEADER_SEALED)
                        ? CCI__SEALED_REQUEST + CCI__SECRET_SIZE
                        : CCI__REQUEST_SIZE;
    if (length < head) return 0;
    request->cookie = cci__load64(bytes + 16);
    request->max_send_size = cci__load32(bytes + 24);
    request->window = cci__load32(bytes + 28);
#ifndef CCI_NO_NAMES
    request->name = bytes[3] & CCI__HEADER_NAMED ? cci__load64(bytes + 40) : 0;
#endif
    return cci__conn_parse_piece(bytes + 32, bytes + head, length - head, request) && bytes[2] <= CCI_CONN_ATTR_UU &&
           request->max_send_size != 0;
}

/* Reads the piece of an ACCEPT or REJECT, which begins at `at` if there is one. 0: the packet is none of ours. Without
 * data data_len is 0. */
static int cci__conn_parse_answer(const uint8_t *bytes, uint32_t length, uint32_t at, cci_conn_request_t *piece) {
    memset(piece, 0, sizeof *piece);
    if (length <= at) return 1;
    return length - at >= CCI__PIECE_SIZE &&
           cci__conn_parse_piece(bytes + at, bytes + at + CCI__PIECE_SIZE, length - at - CCI__PIECE_SIZE, piece);
}

CCI_API uint32_t cci_conn_write_accept(const cci_conn_t *conn, uint32_t window, uint8_t *bytes) {
    cci_conn_write_header(bytes, CCI__PKT_ACCEPT, (uint8_t)conn->pub.attribute, conn->peer_index, conn->peer_token,
                          conn->index, 0);
    cci__store64(bytes + 24, conn->token);
    cci__store32(bytes + 32, conn->pub.max_send_size);
    cci__store32(bytes + 36, window);
    return CCI__ACCEPT_SIZE;
}

typedef struct cci_conn_accept {
    uint64_t token; /* the server's */
    uint32_t max_send_size, window;
} cci_conn_accept_t;

/* `length` is without the tag; what is encrypted, the secret of resets behind all this, is there but not looked at. */
CCI_API int cci_conn_parse_accept(const uint8_t *bytes, uint32_t length, cci_conn_accept_t *accept) {
    uint32_t size = length >= CCI__HEADER_SIZE && (bytes[3] & CCI__HEADER_SEALED) ? CCI__ACCEPT_SIZE + CCI__SECRET_SIZE
                                                                                  : CCI__ACCEPT_SIZE;
    if (length < size) return 0;
    accept->token = cci__load64(bytes + 24);
    accept->max_send_size = cci__load32(bytes + 32);
    accept->window = cci__load32(bytes + 36);
    return accept->max_send_size != 0;
}

/* The cookie of a COOKIE stands where other packets have their sender's index and their number. */
CCI_API uint64_t cci_conn_cookie_in(const cci_conn_header_t *header) {
    return header->peer_index | (uint64_t)header->number << 32;
}

/* The cookie for a request: proof that its sender receives at its address. It changes with `epoch`. */
CCI_API uint64_t cci_conn_cookie(const cci_conn_table_t *table, const cci_link_addr_t *from, uint32_t index,
                                 uint64_t token, uint64_t epoch) {
    uint64_t words[6];
    memcpy(words, from->bytes, sizeof from->bytes);
    words[3] = index;
    words[4] = token;
    words[5] = epoch;
    return cci__siphash(table->key, words, 6) | 1; /* 0 stands for no cookie */
}

/* Milliseconds until try number `tries` of a handshake packet is followed by the next: 20 doubling to 1,000. */
CCI_API uint64_t cci_conn_retry_ns(uint8_t tries) {
    return cci__min64((uint64_t)20 << cci__min32(tries, 8), 1000) * CCI__MS;
}

/* When the handshake, or the end, wants something of a connection: see cci_conn_timeout(). While it is open, and
 * nothing is repeated, the deadline is its user's. */
CCI__UNUSED static inline uint64_t cci_conn_deadline(const cci_conn_t *conn) {
    return conn->state != CCI_CONN_OPEN || conn->step.confirming ? conn->deadline_ns : CCI__NEVER;
}

/* What a connection wants when its deadline is over. */
typedef enum cci_conn_due {
    CCI_CONN_DUE_NOTHING,
    CCI_CONN_DUE_REQUEST,   /* a REQUEST is to be sent                                      */
    CCI_CONN_DUE_CONFIRM,   /* a CONFIRM is to be sent                                      */
    CCI_CONN_DUE_CLOSE,     /* a CLOSE is to be sent, as soon as cci_conn_close_output() says */
    CCI_CONN_DUE_TIMED_OUT, /* it does not open in time                                     */
    CCI_CONN_DUE_FORGOTTEN, /* nobody needs it any more                                     */
    CCI_CONN_DUE_IDLE       /* OPEN, BROKEN: something of the user's                        */
} cci_conn_due_t;

/* The deadline is over; `give_up_ns` is when the program's time for connecting is. Sets the next deadline, unless
 * the connection times out or is forgotten, or its user has something to do. */
CCI_API cci_conn_due_t cci_conn_timeout(cci_conn_t *conn, uint64_t give_up_ns, uint64_t now_ns) {
    switch (conn->state) {
    case CCI_CONN_CONNECTING:
        if (now_ns >= give_up_ns) return CCI_CONN_DUE_TIMED_OUT;
        if (conn->tries < 200) conn->tries++;
        conn->deadline_ns = cci__min64(now_ns + cci_conn_retry_ns(conn->tries), give_up_ns);
        return CCI_CONN_DUE_REQUEST;
    case CCI_CONN_ACCEPTED: return CCI_CONN_DUE_TIMED_OUT;
    case CCI_CONN_COLLECTING:
    case CCI_CONN_REJECTED: return CCI_CONN_DUE_FORGOTTEN;
    case CCI_CONN_CLOSING:
        return conn->step.in_line || conn->tries < CCI__CONN_CLOSE_TRIES ? CCI_CONN_DUE_CLOSE : CCI_CONN_DUE_FORGOTTEN;
    case CCI_CONN_OPEN:
        if (!conn->step.confirming || ++conn->tries > CCI__CONN_CONFIRM_TRIES) return CCI_CONN_DUE_IDLE;
        conn->deadline_ns = now_ns + cci_conn_retry_ns(conn->tries);
        return CCI_CONN_DUE_CONFIRM;
    case CCI_CONN_BROKEN: return CCI_CONN_DUE_IDLE;
    default: conn->deadline_ns = CCI__NEVER; return CCI_CONN_DUE_NOTHING;
    }
}

/* What a RESET must hold that is to end a sealed connection of the peer with this index and token of ours. It needs no
 * state, and nobody learns it who sees the packets of a connection that is alive. */
CCI_API uint64_t cci_conn_reset_secret(const cci_conn_table_t *table, uint32_t index, uint64_t token) {
    uint64_t words[3] = {0, 0, 0x7265736574}; /* other hashes of this key have other counts of words */
    words[0] = index;
    words[1] = token;
    return cci__siphash(table->key, words, 3);
}

/* The nonce of a sealed packet: no two packets that a key seals have the same. */
CCI_API void cci_conn_write_nonce(uint8_t nonce[CCI_SEAL_NONCE_LEN], uint64_t from_token, uint64_t to_token,
                                  uint64_t number, uint8_t type, int from_server) {
    CCI_ASSERT(number < CCI__SEAL_NUMBERS);
    cci__store64(nonce, from_token);
    cci__store64(nonce + 8, to_token);
    cci__store64(nonce + 16, number | (uint64_t)(type | (from_server ? 0x80u : 0u)) << 56);
}

/* Bytes in front of what is encrypted. */
CCI_API uint32_t cci_conn_clear_size(uint8_t type) {
    return type == CCI__PKT_REQUEST  ? CCI__SEALED_REQUEST
           : type == CCI__PKT_ACCEPT ? CCI__ACCEPT_SIZE
           : type == CCI__PKT_REJECT ? CCI__SEALED_REJECT
                                     : CCI__HEADER_SIZE;
}

/* ---- connections that begin, move and end ---- */

CCI__UNUSED static inline cci_conn_life_t *cci_conn_life_of(const cci_conn_t *conn) {
    return (cci_conn_life_t *)(uintptr_t)(conn + 1);
}

/* Only where packets may be sealed. */
CCI__UNUSED static inline cci_conn_peer_t *cci_conn_peer_of(const cci_conn_t *conn) {
    return (cci_conn_peer_t *)(uintptr_t)(conn + 1);
}

/* The program's key of a connection, NULL if its packets are not sealed. */
CCI__UNUSED static inline void *cci_conn_key(const cci_conn_table_t *table, const cci_conn_t *conn) {
    return table->seal ? cci_conn_peer_of(conn)->key : NULL;
}

/* The network of an address; 0 if there is none. */
CCI_API uint32_t cci_conn_prefix(const cci_conn_table_t *table, const cci_link_addr_t *address, uint8_t prefix[16]) {
    memset(prefix, 0, 16);
    return table->prefix ? table->prefix(table->link, address, prefix) : 0;
}

/* Counts a connection where its network is counted, if it has one. */
static void cci__conn_count(cci_conn_table_t *table, const cci_conn_t *conn, int all, int undecided) {
    uint8_t prefix[16];
    if ((all || undecided) && cci_conn_prefix(table, &conn->peer, prefix))
        cci_conn_count_source(table, prefix, all, undecided);
}

/* A client begins: REQUEST is to be sent at once, if its server's address `is_known`. */
CCI_API void cci_conn_begin_connect(cci_conn_t *conn, const cci_link_addr_t *to, int is_known, uint64_t give_up_ns,
                                    uint64_t now_ns) {
    conn->state = CCI_CONN_CONNECTING;
    conn->is_client = 1;
    conn->peer = *to;
    conn->deadline_ns = is_known ? cci__min64(now_ns + cci_conn_retry_ns(0), give_up_ns) : now_ns;
}

/* It is open: from now on its peer is heard of. A client repeats CONFIRM until something has come. */
CCI_API void cci_conn_opened(cci_conn_table_t *table, cci_conn_t *conn, uint64_t now_ns) {
    table->unproven -= conn->unproven;
    conn->unproven = 0;
    conn->state = CCI_CONN_OPEN;
    conn->tries = 0;
    conn->step.confirming = conn->is_client && conn->pub.attribute <= CCI_CONN_ATTR_UU;
    conn->deadline_ns = conn->step.confirming ? now_ns + cci_conn_retry_ns(0) : CCI__NEVER;
    cci_conn_life_of(conn)->heard = (uint32_t)(now_ns >> 20);
}

/* The peer is found at another address from now on. */
CCI_API void cci_conn_move(cci_conn_table_t *table, cci_conn_t *conn, const cci_link_addr_t *to, uint64_t now_ns) {
    int hashed = conn->hashed, counted = (conn->flags & CCI__CONN_COUNTED) != 0;
    if (hashed) cci_conn_remember(table, conn->peer_token, now_ns);
    cci__conn_count(table, conn, -counted, 0);
    cci_conn_unhash(table, conn);
    conn->peer = *to;
    if (hashed) cci_conn_hash(table, conn);
    cci__conn_count(table, conn, counted, 0);
}

/* Is there a peer that may think that the connection lives? */
CCI_API int cci_conn_has_listener(const cci_conn_t *conn) {
    return conn->pub.attribute <= CCI_CONN_ATTR_UU && cci_conn_has_peer(conn) && !(conn->flags & CCI__CONN_WORN) &&
           (conn->state != CCI_CONN_BROKEN || cci_conn_life_of(conn)->at.end_status == CCI_ETIMEDOUT);
}

/* The program has closed it: CLOSE is to be sent, see cci_conn_close_output(). */
CCI_API void cci_conn_begin_close(cci_conn_t *conn) {
    conn->state = CCI_CONN_CLOSING;
    conn->tries = conn->step.in_line = 0;
}

/* Nobody needs it any more: it goes back to the table, and copies of its request are not heard. */
CCI_API void cci_conn_end(cci_conn_table_t *table, cci_conn_t *conn, uint64_t now_ns) {
    if (conn->hashed) cci_conn_remember(table, conn->peer_token, now_ns);
    cci__conn_count(table, conn, -((conn->flags & CCI__CONN_COUNTED) != 0),
                    -((conn->flags & CCI__CONN_UNDECIDED) != 0));
    table->unproven -= conn->unproven;
    if (table->seal) cci_conn_peer_of(conn)->key = NULL;
    cci_conn_close(table, conn);
}

#ifndef CCI_NO_NAMES
/* ---- services by name ---- */

/* Bytes of the UTF-8 sequence that begins here, 0 if it is none. */
static uint32_t cci__utf8_length(const char *text) {
    const uint8_t *b = (const uint8_t *)text;
    uint32_t code, i,
        length = b[0] < 0x80   ? 1
                 : b[0] < 0xc2 ? 0
                 : b[0] < 0xe0 ? 2
                 : b[0] < 0xf0 ? 3
                 : b[0] < 0xf5 ? 4
                               : 0;
    code = length > 1 ? b[0] & (0x7fu >> length) : b[0];
    for (i = 1; i < length; i++) {
        if ((b[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (b[i] & 0x3f);
    }
    return (length == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
                   (length == 4 && (code < 0x10000 || code > 0x10ffff))
               ? 0
               : length;
}

#define CCI__FNV_BASIS UINT64_C(0xcbf29ce484222325)

/* FNV-1a of some bytes, which goes on from `hash`. */
CCI__UNUSED static uint64_t cci__fnv(uint64_t hash, const char *text, size_t length) {
    for (; length > 0; length--) hash = (hash ^ (uint8_t)*text++) * UINT64_C(0x100000001b3);
    return hash;
}

/* What a text stands for as the name of a service (wire.md, section 5.5); CCI_EINVAL if it is none. */
CCI_API int cci_conn_hash_name(const char *text, cci_conn_name_t *name) {
    uint64_t hash, mixed;
    uint32_t i, length = 0, more;
    for (; text[length]; length += more)
        if ((more = cci__utf8_length(text + length)) == 0 || length + more > CCI__NAME_LONGEST) return CCI_EINVAL;
    if (length == 0) return CCI_EINVAL;
    hash = cci__fnv(CCI__FNV_BASIS, text, length);
    name->id = hash & ~(uint64_t)CCI__NAME_PLACE;
    if (name->id == 0) name->id = CCI__NAME_PORTS;
    mixed = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    mixed = (mixed ^ mixed >> 32) * UINT64_C(0xd6e8feb86659fd93);
    mixed ^= mixed >> 32;
    for (i = 0; i < CCI__NAME_PORTS; i++) /* an odd step: all differ */
        name->ports[i] = CCI__NAME_FIRST + (uint32_t)((mixed + i * (mixed >> 32 | 1)) % 16384);
    return CCI_SUCCESS;
}

/* Puts a port, which has five digits, behind what is there. */
CCI_API void cci_conn_write_port(uint32_t port, char text[6]) {
    int i;
    for (i = 4; i >= 0; i--, port /= 10) text[i] = (char)('0' + port % 10);
    text[5] = '\0';
}

/* "49321/storage": the name behind a port, as a server's transport is given it. The port becomes the text; 0: there is
 * no name, and the text is empty. */
CCI_API uint64_t cci_conn_named_port(const char *service, const char *name_text, char port[6]) {
    cci_conn_name_t name;
    port[0] = '\0';
    if (!name_text || name_text - service != 6 || cci_conn_hash_name(name_text, &name) != CCI_SUCCESS) return 0;
    memcpy(port, service, 5);
    port[5] = '\0';
    return name.id;
}

/* Where the last colon of a text of at most `most` bytes is, or where the text ends if it has none. */
static size_t cci__last_colon(const char *text, size_t most) {
    size_t length, colon = most;
    for (length = 0; length < most && text[length]; length++)
        if (text[length] == ':') colon = length;
    return colon < length ? colon : length;
}

/* Client: where the server may be. `address` is "host/" and the name behind it. A status as of the link's `resolve`;
 * may block on a name service, for the first port alone where the link knows at once where that is. */
CCI_API int cci_conn_find_ports(cci_conn_seek_t *seek, const cci_link_t *link, void *handle, const char *address,
                                const char *name) {
    char text[320];
    size_t host = (size_t)(name - address) - 1;
    uint32_t i;
    int status = cci_conn_hash_name(name, &seek->name);
    if (host + 8 > sizeof text || (address[0] != '[' && cci__last_colon(address, host) < host)) status = CCI_EINVAL;
    memcpy(text, address, status == CCI_SUCCESS ? host : 0);
    memset(seek->addresses, 0, sizeof seek->addresses);
    seek->at = seek->passes = seek->denied = seek->is_asked = 0;
    for (i = 0; i < CCI__NAME_PORTS && status == CCI_SUCCESS; i++) {
        text[host] = ':';
        cci_conn_write_port(seek->name.ports[i], text + host + 1);
        status = link->resolve(handle, text, &seek->addresses[i]);
        if (status == CCI_EAGAIN) {
            seek->is_asked = 1;
            status = CCI_SUCCESS;
        } else if (i == 0 && status == CCI_SUCCESS && link->version >= 2 && link->text &&
                   link->text(handle, &seek->addresses[0], text, sizeof text) == CCI_SUCCESS) {
            size_t colon = cci__last_colon(text, sizeof text - 1);
            if (text[colon] == ':') host = colon; /* a number from now on, which nobody is asked for */
        }
    }
    memcpy(seek->asked, seek->addresses, sizeof seek->asked);
    return status == CCI_SUCCESS && seek->is_asked ? (int)CCI_EAGAIN : status;
}

/* Bytes of a request that is repeated. */
CCI_API size_t cci_conn_pending_size(uint32_t data_len, const cci_conn_seek_t *seek) {
    size_t size = sizeof(cci_conn_pending_t) + data_len;
    return seek ? ((size + 7) & ~(size_t)7) + sizeof *seek : size;
}

/* How long each port of this pass has for its answer. */
static uint64_t cci__conn_seek_pause(const cci_conn_seek_t *seek) {
    return CCI__SEEK_NS << cci__min32(seek->passes, CCI__SEEK_DOUBLINGS);
}

/* The client begins to seek, or not, with the first port. */
CCI_API void cci_conn_begin_seek(cci_conn_pending_t *pending, const cci_conn_seek_t *seek, uint64_t now_ns) {
    size_t at = cci_conn_pending_size(pending->data_len, seek) - sizeof *seek;
    pending->seek = seek ? (cci_conn_seek_t *)(void *)((uint8_t *)pending + at) : NULL;
    if (!seek) return;
    memcpy(pending->seek, seek, sizeof *seek);
    pending->seek->pass_ns = now_ns;
    pending->seek->until_ns = now_ns + CCI__SEEK_NS;
}

/* The next port's turn has come: the time of the one before is over, or who has that said "not here". Returns 1 if it
 * is to be asked now; 0: all of this pass have been asked, and the next begins at until_ns. */
CCI_API int cci_conn_next_port(cci_conn_seek_t *seek, uint64_t now_ns) {
    uint64_t pause_ns = cci__conn_seek_pause(seek);
    if (seek->at == CCI__NAME_PORTS - 1) {
        uint64_t end_ns = seek->pass_ns + CCI__NAME_PORTS * pause_ns;
        if (now_ns < end_ns) {
            seek->until_ns = end_ns;
            return 0;
        }
        if (seek->passes < CCI__SEEK_DOUBLINGS) seek->passes++;
        pause_ns = cci__conn_seek_pause(seek);
        seek->pass_ns = now_ns;
        seek->denied = 0;
    }
    seek->at = (seek->at + 1) % CCI__NAME_PORTS;
    seek->until_ns = now_ns + pause_ns;
    return 1;
}

/* The same for the connection: its request is to be sent if this returns 1. */
CCI_API int cci_conn_seek_on(cci_conn_t *conn, const cci_conn_pending_t *pending, uint64_t now_ns) {
    cci_conn_seek_t *seek = pending->seek;
    int asks = cci_conn_next_port(seek, now_ns);
    conn->tries = (uint8_t)seek->passes;
    conn->deadline_ns = cci__min64(seek->until_ns, pending->give_up_ns);
    if (!asks) return 0;
    conn->peer = seek->addresses[seek->at];
    conn->peer_token = 0; /* another's cookie */
    return 1;
}

/* A NOT_HERE has come: is it the answer of the port that is being asked? */
CCI_API int cci_conn_is_denied(cci_conn_seek_t *seek, const cci_conn_header_t *header) {
    uint64_t name = cci_conn_cookie_in(header);
    if ((name & ~(uint64_t)CCI__NAME_PLACE) != seek->name.id) return 0;
    seek->denied |= 1u << (name & CCI__NAME_PLACE);
    return (name & CCI__NAME_PLACE) == seek->at;
}

/* Is an address one of those where the server may be? Nothing is sent to another, whoever answers from there. */
CCI_API int cci_conn_is_place(const cci_conn_seek_t *seek, const cci_link_addr_t *from) {
    uint32_t i = 0;
    while (i < CCI__NAME_PORTS && memcmp(&seek->addresses[i], from, sizeof *from) != 0 &&
           memcmp(&seek->asked[i], from, sizeof *from) != 0)
        i++;
    return i < CCI__NAME_PORTS;
}
#else
typedef struct cci_conn_seek cci_conn_seek_t;
#define cci_conn_pending_size(data_len, seek) ((void)(seek), sizeof(cci_conn_pending_t) + (data_len))
#define cci_conn_begin_seek(pending, seek, now_ns) ((void)0)
#endif

/* ==================================================================================================================
 * >>seal
 *
 * Packets that are sealed: authenticated encryption (AEAD) by the hooks of the program (cci_seal_t). SECRECY in
 * >>manual says what they give and what they do not.
 *
 *      ┌──────────────────────────────────────┬───────────────────────────────────────────┬──────────────────┬───────┐
 *      │ clear: header, and fields by type    │ frames, or other fields: encrypted        │ tag: tag_size    │ CRC 4 │
 *      └──────────────────────────────────────┴───────────────────────────────────────────┴──────────────────┴───────┘
 *       authenticated, not encrypted            the same number of bytes as in the clear    of the AEAD
 *
 * cci_conn_clear_size() says how many bytes stay in the clear. The CRC-32C is there only if the endpoint asks for
 * one; it is over everything before it, the tag included, and CCI__HEADER_CRC in the header announces it.
 *   The nonce has 24 bytes (cci_conn_write_nonce()): sender's token 8, receiver's token 8, packet number, type and
 * direction 8. Packets without a number of their own, those of the handshake, are counted by the connection. So no
 * nonce is used twice under a key as long as tokens are random.
 *   Invariants: a packet is opened before anything of it counts; a connection with a key takes none that is not
 * sealed; a connection that has used up its numbers, or whose hook refuses, is worn (CCI__CONN_WORN) and sends
 * nothing more.
 * ================================================================================================================== */

/* Seals a packet of a connection, in place; 0 if that can't be: it must not be sent. `number` is that of a DATA or
 * GROUP packet. */
CCI_API int cci_conn_seal(cci_conn_table_t *table, cci_conn_t *conn, uint64_t number, uint8_t *wire, uint32_t *length) {
    cci_conn_peer_t *peer = cci_conn_peer_of(conn);
    uint8_t nonce[CCI_SEAL_NONCE_LEN], type = wire[1];
    int is_data = type == CCI__PKT_DATA || type == CCI__PKT_GROUP;
    uint32_t clear = cci_conn_clear_size(type);
    if (CCI__UNLIKELY(conn->flags & CCI__CONN_WORN)) return 0;
    if (!is_data) {
        if (peer->sealed_count == UINT32_MAX) return 0;
        number = peer->sealed_count++; /* a packet that is repeated is another */
        cci__store32(wire + (type == CCI__PKT_REQUEST ? 56 : 20), (uint32_t)number);
    }
    wire[3] |= CCI__HEADER_SEALED;
    if (number < CCI__SEAL_NUMBERS) {
        cci_conn_write_nonce(nonce, conn->token, conn->peer_token, number, type, !conn->is_client);
        if (table->seal->seal(table->seal->user, peer->key, nonce, wire, clear, wire + clear, *length - clear) == 0) {
            *length += table->seal->tag_size;
            return 1;
        }
    }
    conn->flags |= CCI__CONN_WORN;
    return 0;
}

/* Opens a sealed packet in place and takes off its tag. */
CCI_API cci_conn_got_t cci_conn_open_sealed(const cci_conn_table_t *table, void *key, const uint8_t *nonce,
                                            uint8_t *bytes, uint32_t *length) {
    const cci_seal_t *seal = table->seal;
    uint32_t clear = cci_conn_clear_size(bytes[1]);
    if (*length >= clear + seal->tag_size) {
        *length -= seal->tag_size;
        if (seal->open(seal->user, key, nonce, bytes, clear, bytes + clear, *length - clear) == 0)
            return CCI_CONN_GOT_SOUND;
    }
    return CCI_CONN_GOT_FORGERY;
}

/* Opens a packet of a connection, if its packets are sealed. `number` is all of the packet's, `peer_token` the
 * sender's. */
CCI_API cci_conn_got_t cci_conn_unseal(const cci_conn_table_t *table, const cci_conn_t *conn, uint64_t number,
                                       uint64_t peer_token, uint8_t *bytes, uint32_t *length) {
    void *key = cci_conn_key(table, conn);
    uint8_t nonce[CCI_SEAL_NONCE_LEN];
    if ((bytes[3] & CCI__HEADER_SEALED) != (key ? CCI__HEADER_SEALED : 0))
        return CCI_CONN_GOT_MISMATCH; /* above all, one that claims not to be sealed */
    if (!key) return CCI_CONN_GOT_SOUND;
    if (number >= CCI__SEAL_NUMBERS) return CCI_CONN_GOT_NOTHING;
    cci_conn_write_nonce(nonce, peer_token, conn->token, number, bytes[1], conn->is_client);
    return cci_conn_open_sealed(table, key, nonce, bytes, length);
}

/* Opens a sealed REQUEST with a key. */
CCI_API cci_conn_got_t cci_conn_open_request(const cci_conn_table_t *table, void *key, const cci_conn_packet_t *in) {
    uint32_t length = in->length;
    uint8_t nonce[CCI_SEAL_NONCE_LEN];
    cci_conn_write_nonce(nonce, in->header.token, in->request.cookie, cci__load32(in->bytes + 56), CCI__PKT_REQUEST, 0);
    return cci_conn_open_sealed(table, key, nonce, in->bytes, &length);
}

static cci_conn_got_t cci__conn_unseal_input(const cci_conn_table_t *table, cci_conn_packet_t *in,
                                             uint64_t peer_token) {
    return cci_conn_unseal(table, in->conn, in->header.number, peer_token, in->bytes, &in->length);
}

/* ==================================================================================================================
 * >>conn-handshake
 *
 * The handshake, CLOSE, probes and path validation: what a packet does to a connection, and what a connection sends.
 *   In: cci_conn_input() finds the connection, one function for each type of packet changes its state, and the
 * result tells the user what happened (CCI_CONN_GOT_...) and what to answer.
 *   Out: cci_conn_output(), when cci_conn_timeout() says so, or the user.
 *   Parts: coming in; going out; a peer whose address changes.
 * ================================================================================================================== */

/* ---- coming in ---- */

static cci_conn_got_t cci__conn_unknown(cci_conn_table_t *table, cci_conn_packet_t *in, int is_answered) {
    if (is_answered && table->resets++ < CCI__CONN_RESETS) in->answer = CCI__PKT_RESET;
    return CCI_CONN_GOT_STRAY;
}

/* Does a request have a cookie of this epoch or of the one before? */
static int cci__conn_is_proven(const cci_conn_table_t *table, const cci_conn_packet_t *in) {
    const cci_conn_header_t *header = &in->header;
    uint64_t cookie = in->request.cookie;
    return cookie != 0 && (cookie == cci_conn_cookie(table, in->from, header->index, header->token, table->epoch) ||
                           cookie == cci_conn_cookie(table, in->from, header->index, header->token, table->epoch - 1));
}

/* The packet that tells a client what was decided; 0 while nothing is. Data is not for an address that may be
 * another's: it may be longer than what came from there. */
static uint8_t cci__conn_decision(const cci_conn_t *conn) {
    if (conn->unproven && (conn->flags & CCI__CONN_ANSWERS)) return CCI__PKT_COOKIE;
    return conn->state == CCI_CONN_ACCEPTED || conn->state == CCI_CONN_OPEN ? CCI__PKT_ACCEPT
           : conn->state == CCI_CONN_REJECTED                               ? CCI__PKT_REJECT
                                                                            : 0;
}

/* A request of a connection that is there: a piece of it, or a copy because the answer was lost. */
static cci_conn_got_t cci__conn_input_again(cci_conn_table_t *table, cci_conn_packet_t *in) {
    cci_conn_t *conn = in->conn;
    void *key = cci_conn_key(table, conn);
    if (conn->unproven) {
        cci_conn_turn_epoch(table, in->now_ns);
        if (cci__conn_is_proven(table, in)) {
            table->unproven -= conn->unproven;
            conn->unproven = 0;
        }
    }
    if (conn->state == CCI_CONN_COLLECTING) {
        cci_conn_got_t got = key ? cci_conn_open_request(table, key, in) : CCI_CONN_GOT_SOUND;
        return got == CCI_CONN_GOT_SOUND ? CCI_CONN_GOT_PIECE : got;
    }
    /* all of the data answers the first piece of a request alone */
    if (!(conn->flags & CCI__CONN_ANSWERS) || conn->unproven || in->request.offset == 0)
        in->answer = cci__conn_decision(conn);
    return CCI_CONN_GOT_NOTHING;
}

static cci_conn_got_t cci__conn_input_request(cci_conn_table_t *table, cci_conn_packet_t *in) {
    const cci_conn_header_t *header = &in->header;
    int sealed = (header->flags & CCI__HEADER_SEALED) != 0;
    uint32_t tag_size = sealed ? table->seal->tag_size : 0;
    if (in->length < tag_size || !cci_conn_parse_request(in->bytes, in->length - tag_size, &in->request))
        return CCI_CONN_GOT_NOTHING;
#ifndef CCI_NO_NAMES
    if (CCI__UNLIKELY(header->flags & CCI__HEADER_NAMED) &&
        (in->request.name & ~(uint64_t)CCI__NAME_PLACE) != table->name) {
        in->answer = CCI__PKT_NOT_HERE;
        return CCI_CONN_GOT_NOTHING;
    }
#endif
    in->conn = cci_conn_find_request(table, in->from, header->index, header->token);
    if (CCI__UNLIKELY(table->seal != NULL) &&
        (in->conn ? (cci_conn_peer_of(in->conn)->key != NULL) != sealed : !sealed && !table->seal->plain_allowed))
        return CCI_CONN_GOT_MISMATCH;
    if (in->conn) return cci__conn_input_again(table, in);
    cci_conn_turn_epoch(table, in->now_ns);
    if (cci_conn_was_seen(table, header->token)) return CCI_CONN_GOT_NOTHING;
    in->is_proven = (uint8_t)cci__conn_is_proven(table, in);
    if (in->is_proven || (!sealed && table->unproven < table->unproven_most)) return CCI_CONN_GOT_REQUEST;
    in->answer = CCI__PKT_COOKIE;
    return CCI_CONN_GOT_NOTHING;
}

/* The server refuses. */
static cci_conn_got_t cci__conn_input_reject(cci_conn_table_t *table, cci_conn_packet_t *in) {
    uint32_t at = cci_conn_key(table, in->conn) ? CCI__SEALED_REJECT : CCI__HEADER_SIZE;
    cci_conn_got_t got = cci__conn_unseal_input(
        table, in, in->length < CCI__SEALED_REJECT ? 0 : cci__load64(in->bytes + CCI__HEADER_SIZE));
    if (got != CCI_CONN_GOT_SOUND) return got;
    if (!cci__conn_parse_answer(in->bytes, in->length, at, &in->request)) return CCI_CONN_GOT_NOTHING;
    return in->request.data_len > 0 ? CCI_CONN_GOT_ANSWER : CCI_CONN_GOT_REJECT;
}

/* COOKIE, REJECT, BUSY, NOT_HERE: what answers a request and opens nothing. */
static cci_conn_got_t cci__conn_input_answer(cci_conn_table_t *table, cci_conn_packet_t *in) {
    cci_conn_t *conn = in->conn;
    if (!conn || conn->state != CCI_CONN_CONNECTING) return cci__conn_unknown(table, in, 0);
    if (in->header.type == CCI__PKT_REJECT) return cci__conn_input_reject(table, in);
#ifndef CCI_NO_NAMES
    if (in->header.type == CCI__PKT_NOT_HERE) return CCI_CONN_GOT_NOT_HERE;
#endif
    if (in->header.type == CCI__PKT_BUSY) {
        conn->flags |= CCI__CONN_BUSY;                     /* the request is repeated anyway */
    } else if (conn->peer_token == 0 || conn->tries > 3) { /* one answer to a cookie, not a game */
        conn->peer_token = cci_conn_cookie_in(&in->header);
        in->answer = CCI__PKT_REQUEST;
    }
    return CCI_CONN_GOT_NOTHING;
}

/* The client knows all that its server has to say. */
static cci_conn_got_t cci__conn_accepted(cci_conn_table_t *table, cci_conn_packet_t *in,
                                         const cci_conn_accept_t *accept) {
    cci_conn_t *conn = in->conn;
    conn->pub.max_send_size = accept->max_send_size;
    conn->peer_window = cci__max32(accept->window, 4096);
    conn->peer_index = in->header.peer_index;
    conn->peer_token = accept->token;
    if (cci_conn_key(table, conn)) cci_conn_peer_of(conn)->secret = cci__load64(in->bytes + CCI__ACCEPT_SIZE);
    in->answer = CCI__PKT_CONFIRM;
    return CCI_CONN_GOT_ACCEPT;
}

static cci_conn_got_t cci__conn_input_accept(cci_conn_table_t *table, cci_conn_packet_t *in) {
    cci_conn_t *conn = in->conn;
    uint32_t tag_size = in->header.flags & CCI__HEADER_SEALED ? table->seal->tag_size : 0, at;
    cci_conn_accept_t accept;
    cci_conn_got_t got;
    if (!conn) {
        in->header.number = 0;
        return cci__conn_unknown(table, in, 1);
    }
    if (!conn->is_client || in->length < tag_size || !cci_conn_parse_accept(in->bytes, in->length - tag_size, &accept))
        return CCI_CONN_GOT_NOTHING;
    got = cci__conn_unseal_input(table, in, accept.token);
    if (got != CCI_CONN_GOT_SOUND) return got;
    at = CCI__ACCEPT_SIZE + (cci_conn_key(table, conn) ? CCI__SECRET_SIZE : 0) + table->accept_more;
    if (!cci__conn_parse_answer(in->bytes, in->length, at, &in->request)) return CCI_CONN_GOT_NOTHING;
    if (conn->state == CCI_CONN_OPEN && conn->peer_token == accept.token && in->request.offset == 0)
        in->answer = CCI__PKT_CONFIRM;
    if (conn->state != CCI_CONN_CONNECTING || accept.max_send_size > conn->pub.max_send_size)
        return CCI_CONN_GOT_NOTHING;
    return in->request.data_len > 0 ? CCI_CONN_GOT_ANSWER : cci__conn_accepted(table, in, &accept);
}

/* What a sound packet of the peer's means for the handshake: it has the server's token, or the client's
 * confirmation. */
CCI_API cci_conn_got_t cci_conn_hears(cci_conn_t *conn) {
    if (conn->state == CCI_CONN_ACCEPTED) return CCI_CONN_GOT_CONFIRM;
    if (!conn->step.confirming) return CCI_CONN_GOT_NOTHING;
    conn->step.confirming = conn->tries = 0;
    return CCI_CONN_GOT_CONFIRMED;
}

/* CONFIRM, CONFIRMED, DATA: of a connection that is accepted or open. */
static cci_conn_got_t cci__conn_input_open(cci_conn_table_t *table, cci_conn_packet_t *in) {
    cci_conn_t *conn = in->conn;
    void *key = conn ? cci_conn_key(table, conn) : NULL;
    cci_conn_got_t got;
    if (!conn || (conn->state != CCI_CONN_OPEN && conn->state != CCI_CONN_ACCEPTED))
        return cci__conn_unknown(table, in, /* no secret for one that may yet open; a CLOSE will be repeated */
                                 !conn ||
                                     (conn->state != CCI_CONN_CLOSING && (!key || conn->state == CCI_CONN_BROKEN)));
    if (in->header.type == CCI__PKT_DATA) return CCI_CONN_GOT_DATA;
    got = cci__conn_unseal_input(table, in, conn->peer_token);
    if (got != CCI_CONN_GOT_SOUND) return got;
    if (!key || in->header.number >= cci_conn_peer_of(conn)->count) {
        conn->flags &= (uint16_t)~CCI__CONN_PINGED; /* the peer is there */
        cci_conn_life_of(conn)->heard = (uint32_t)(in->now_ns >> 20);
        if (key) cci_conn_peer_of(conn)->count = in->header.number + 1;
    }
    if (in->header.type == CCI__PKT_CONFIRM) in->answer = CCI__PKT_CONFIRMED;
    return cci_conn_hears(conn);
}

/* CLOSE: the peer has closed the connection. CLOSED: it knows that we have. */
static cci_conn_got_t cci__conn_input_close(cci_conn_table_t *table, cci_conn_packet_t *in) {
    cci_conn_t *conn = in->conn;
    int is_close = in->header.type == CCI__PKT_CLOSE;
    cci_conn_got_t got;
    if (!conn) return cci__conn_unknown(table, in, is_close); /* as good an answer, from one that has forgotten it */
    if (conn->pub.attribute > CCI_CONN_ATTR_UU || !cci_conn_has_peer(conn)) return CCI_CONN_GOT_NOTHING;
    if (is_close && conn->peer_index != in->header.peer_index)
        return CCI_CONN_GOT_NOTHING; /* of another connection, which answered the same request and is gone */
    got = cci__conn_unseal_input(table, in, conn->peer_token);
    if (got != CCI_CONN_GOT_SOUND) return got;
    if (is_close) in->answer = CCI__PKT_CLOSED;
    if (conn->state == CCI_CONN_CLOSING) return CCI_CONN_GOT_END;
    return is_close && conn->state != CCI_CONN_BROKEN ? CCI_CONN_GOT_CLOSE : CCI_CONN_GOT_NOTHING;
}

static cci_conn_got_t cci__conn_input_reset(cci_conn_table_t *table, cci_conn_packet_t *in) {
    cci_conn_t *conn = cci_conn_at(table, in->header.index);
    if (!conn || conn->peer_token != in->header.token || conn->peer_index != in->header.peer_index ||
        conn->pub.attribute > CCI_CONN_ATTR_UU) /* a group's tokens are no secret: they are 0 */
        return cci__conn_unknown(table, in, 0);
    if (cci_conn_key(table, conn) && (in->length < CCI__HEADER_SIZE + CCI__SECRET_SIZE ||
                                      cci__load64(in->bytes + CCI__HEADER_SIZE) != cci_conn_peer_of(conn)->secret))
        return CCI_CONN_GOT_NOTHING; /* whoever sees the packets could have made it */
    in->conn = conn;
    if (conn->state == CCI_CONN_CLOSING) return CCI_CONN_GOT_END;
    return conn->state == CCI_CONN_OPEN || conn->state == CCI_CONN_ACCEPTED ? CCI_CONN_GOT_RESET : CCI_CONN_GOT_NOTHING;
}

/* Takes in a packet whose header has been parsed and whose flags are those of the endpoint. A packet that
 * `in->answer` names is to be sent, to in->from (see cci_conn_is_reply()) or to the peer; GOT_END ends the
 * connection behind it. */
CCI_API cci_conn_got_t cci_conn_input(cci_conn_table_t *table, cci_conn_packet_t *in) {
    in->answer = in->is_proven = 0;
    in->conn = in->header.type == CCI__PKT_REQUEST ? NULL : cci_conn_find(table, in->header.index, in->header.token);
    switch (in->header.type) {
    case CCI__PKT_REQUEST: return cci__conn_input_request(table, in);
    case CCI__PKT_COOKIE:
    case CCI__PKT_REJECT:
#ifndef CCI_NO_NAMES
    case CCI__PKT_NOT_HERE:
#endif
    case CCI__PKT_BUSY: return cci__conn_input_answer(table, in);
    case CCI__PKT_ACCEPT: return cci__conn_input_accept(table, in);
    case CCI__PKT_CONFIRM:
    case CCI__PKT_CONFIRMED:
    case CCI__PKT_DATA: return cci__conn_input_open(table, in);
    case CCI__PKT_CLOSE:
    case CCI__PKT_CLOSED: return cci__conn_input_close(table, in);
    case CCI__PKT_RESET: return cci__conn_input_reset(table, in);
    default: return CCI_CONN_GOT_STRAY;
    }
}

/* Asks the program for the key of a sealed REQUEST, and opens it; *key is NULL if there is none or it does not open. */
CCI_API cci_conn_got_t cci_conn_request_key(const cci_conn_table_t *table, const cci_conn_packet_t *in,
                                            cci_endpoint_t *endpoint, void **key) {
    const cci_seal_t *seal = table->seal;
    cci_seal_peer_t peer;
    cci_conn_got_t got;
    memset(&peer, 0, sizeof peer);
    peer.endpoint = endpoint;
    peer.attribute = (cci_conn_attribute_t)in->header.attribute;
    peer.from = in->from;
    peer.key_id = cci__load64(in->bytes + 48);
    *key = seal->key(seal->user, &peer);
    got = *key ? cci_conn_open_request(table, *key, in) : CCI_CONN_GOT_NOTHING;
    if (*key && got != CCI_CONN_GOT_SOUND) {
        if (seal->forget) seal->forget(seal->user, *key);
        *key = NULL;
    }
    return got;
}

/* A server's connection, which was opened for it, takes a request. */
CCI_API void cci_conn_begin_request(cci_conn_table_t *table, cci_conn_t *conn, const cci_conn_packet_t *in, void *key) {
    if (table->seal) cci_conn_peer_of(conn)->key = key;
    if (key) cci_conn_peer_of(conn)->secret = cci__load64(in->bytes + CCI__SEALED_REQUEST);
    conn->state = CCI_CONN_REQUESTED;
    conn->peer = *in->from;
    conn->peer_index = in->header.index;
    conn->peer_token = in->header.token;
    conn->peer_window = cci__max32(in->request.window, 4096);
    conn->pub.max_send_size = cci__min32(conn->pub.max_send_size, in->request.max_send_size);
    conn->unproven = !in->is_proven;
    conn->flags = CCI__CONN_UNDECIDED | CCI__CONN_COUNTED;
    table->unproven += conn->unproven;
    cci_conn_hash(table, conn);
    cci__conn_count(table, conn, 1, 1);
}

static uint32_t cci__conn_unit(const cci_conn_request_t *piece) {
    return piece->length == piece->data_len ? piece->length : piece->unit;
}

/* All pieces are missing, the first to come too. */
static void cci__conn_begin_pieces(cci_conn_pieces_t *pieces, const cci_conn_request_t *first) {
    pieces->unit = cci__conn_unit(first);
    pieces->missing = (uint32_t)((UINT64_C(1) << (first->data_len + pieces->unit - 1) / pieces->unit) - 1);
}

/* A piece, for `data`; 1 if all of it is there now. */
static int cci__conn_put_piece(cci_conn_pieces_t *pieces, const cci_conn_request_t *piece, uint8_t *data) {
    memcpy(data + piece->offset, piece->data, piece->length);
    pieces->missing &= ~(1u << piece->offset / pieces->unit);
    return pieces->missing == 0;
}

/* Not all of the request is in its first packet. */
CCI_API void cci_conn_begin_collect(cci_conn_t *conn, cci_conn_pieces_t *pieces, const cci_conn_request_t *first,
                                    uint64_t now_ns) {
    conn->state = CCI_CONN_COLLECTING;
    conn->deadline_ns = now_ns + CCI__CONN_COLLECT_NS;
    cci__conn_begin_pieces(pieces, first);
}

/* A piece of a request, for `data`, its `data_len` bytes; 1 if all of it is there now. */
CCI_API int cci_conn_collect(cci_conn_t *conn, cci_conn_pieces_t *pieces, const cci_conn_request_t *piece,
                             uint8_t *data, uint32_t data_len) {
    if (piece->data_len != data_len || piece->unit != pieces->unit) return 0;
    CCI_ASSERT(piece->unit != 0); /* that of the first piece */
    if (!cci__conn_put_piece(pieces, piece, data)) return 0;
    conn->state = CCI_CONN_REQUESTED;
    conn->deadline_ns = CCI__NEVER;
    return 1;
}

/* Client: a piece of the server's data, for `answer`, which has room for CCI_CONN_REQ_LEN bytes behind it and is zeroed
 * before the first. GOT_ACCEPT or GOT_REJECT if all is there now, and in->answer is to be sent; else GOT_NOTHING. What
 * a server said that has forgotten it since gives way to what it says now. */
CCI_API cci_conn_got_t cci_conn_collect_answer(cci_conn_table_t *table, cci_conn_answer_t *answer,
                                               cci_conn_packet_t *in) {
    const cci_conn_request_t *piece = &in->request;
    cci_conn_accept_t accept = {0, 0, 0};
    if (in->header.type == CCI__PKT_ACCEPT) (void)cci_conn_parse_accept(in->bytes, in->length, &accept);
    if (answer->type != in->header.type || answer->token != accept.token || answer->data_len != piece->data_len ||
        answer->pieces.unit != cci__conn_unit(piece)) {
        answer->type = in->header.type;
        answer->token = accept.token;
        answer->data_len = piece->data_len;
        cci__conn_begin_pieces(&answer->pieces, piece);
    }
    if (!cci__conn_put_piece(&answer->pieces, piece, (uint8_t *)(answer + 1))) return CCI_CONN_GOT_NOTHING;
    return in->header.type == CCI__PKT_REJECT ? CCI_CONN_GOT_REJECT : cci__conn_accepted(table, in, &accept);
}

/* Client: the event of the outcome gets what the server said with its decision, if all of it is there; that is in
 * `told` until the program returns the event. Returns what is to be released else, or NULL. */
CCI_API cci_conn_answer_t *cci_conn_give_answer(cci_conn_answer_t *answer, int status, cci_list_t *told,
                                                cci_event_connect_t *event) {
    event->data_ptr = NULL;
    event->data_len = 0;
    if (!answer || answer->pieces.missing != 0 ||
        status != (answer->type == CCI__PKT_ACCEPT ? CCI_SUCCESS : CCI_ECONNREFUSED))
        return answer;
    cci__list_append(told, &answer->node);
    event->data_ptr = answer + 1;
    event->data_len = answer->data_len;
    return NULL;
}

/* The program returns an event with this data, or with none. Returns what is to be released, or NULL. */
CCI_API cci_conn_answer_t *cci_conn_take_answer(const void *data) {
    cci_conn_answer_t *answer = data ? (cci_conn_answer_t *)(uintptr_t)data - 1 : NULL;
    if (answer) cci__list_remove(&answer->node);
    return answer;
}

/* The program has decided: the request holds no receive buffer any more, however long the client takes to confirm.
 * Returns the packet that tells the client. CCI__CONN_ANSWERS is set before where the answer has data. */
CCI_API uint8_t cci_conn_decide(cci_conn_table_t *table, cci_conn_t *conn, int accepts, uint64_t now_ns) {
    cci_conn_turn_epoch(table, now_ns);
    cci__conn_count(table, conn, 0, -((conn->flags & CCI__CONN_UNDECIDED) != 0));
    conn->flags &= (uint16_t)~CCI__CONN_UNDECIDED;
    conn->state = accepts ? CCI_CONN_ACCEPTED : CCI_CONN_REJECTED;
    conn->deadline_ns = now_ns + (accepts ? CCI__CONN_ACCEPT_NS : CCI__CONN_REJECT_NS);
    return cci__conn_decision(conn);
}

/* ---- going out ---- */

/* A COOKIE for a client of this address, index and token. */
static uint32_t cci__conn_write_cookie(const cci_conn_table_t *table, const cci_link_addr_t *to, uint32_t index,
                                       uint64_t token, uint8_t *bytes) {
    cci_conn_write_header(bytes, CCI__PKT_COOKIE, 0, index, token, 0, 0);
    cci__store64(bytes + 16, cci_conn_cookie(table, to, index, token, table->epoch));
    return CCI__HEADER_SIZE;
}

/* Writes a packet of a connection, but REQUEST: ACCEPT, or one that is nothing but its type. Returns its bytes. */
CCI_API uint32_t cci_conn_output(const cci_conn_table_t *table, const cci_conn_t *conn, uint8_t type, uint8_t *bytes) {
    int sealed = cci_conn_key(table, conn) != NULL;
    if (type == CCI__PKT_COOKIE)
        return cci__conn_write_cookie(table, &conn->peer, conn->peer_index, conn->peer_token, bytes);
    if (type == CCI__PKT_ACCEPT) {
        uint32_t size = cci_conn_write_accept(conn, table->window, bytes);
        if (sealed) cci__store64(bytes + size, cci_conn_reset_secret(table, conn->index, conn->token));
        return sealed ? size + CCI__SECRET_SIZE : size;
    }
    cci_conn_write_header(bytes, type, 0, conn->peer_index, conn->peer_token, type == CCI__PKT_REJECT ? 0 : conn->index,
                          0);
    if (type != CCI__PKT_REJECT || !sealed) return CCI__HEADER_SIZE;
    cci__store64(bytes + CCI__HEADER_SIZE, conn->token);
    return CCI__SEALED_REJECT;
}

/* Writes what stands in front of the next piece of an answer's data, `size` bytes into its ACCEPT or REJECT, which
 * cci_conn_output() has begun; the data itself is piece->data, of piece->length bytes. Returns the bytes written, 0 if
 * all are sent. Before the first, *piece is zeroed. */
CCI_API uint32_t cci_conn_output_piece(const cci_conn_table_t *table, const cci_conn_answer_t *answer,
                                       cci_conn_request_t *piece, uint32_t size, uint8_t *bytes) {
    if (piece->data) piece->offset += piece->length;
    if (piece->offset >= answer->data_len) return 0;
    piece->data_len = answer->data_len;
    piece->unit = cci__min32(answer->data_len, (table->mtu - size - CCI__PIECE_SIZE) & ~7u);
    piece->length = cci__min32(piece->unit, answer->data_len - piece->offset);
    piece->data = (const uint8_t *)(answer + 1) + piece->offset;
    cci__conn_write_piece(piece, bytes + size);
    return CCI__PIECE_SIZE;
}

/* Writes the next REQUEST of those that the data needs, but for its data: that is piece->data, of piece->length
 * bytes. Returns the bytes written, 0 when all are sent. Before the first, *piece is zeroed. */
CCI_API uint32_t cci_conn_output_request(const cci_conn_table_t *table, const cci_conn_t *conn,
                                         const cci_conn_pending_t *pending, cci_conn_request_t *piece, uint8_t *bytes) {
    int sealed = cci_conn_key(table, conn) != NULL, asks_for_cookie = sealed || table->unproven_most == 0;
    uint32_t size = sealed ? CCI__SEALED_REQUEST + CCI__SECRET_SIZE : CCI__REQUEST_SIZE;
    if (piece->data) {
        piece->offset += piece->length;
        if (piece->offset >= pending->data_len || (asks_for_cookie && conn->peer_token == 0)) return 0;
    }
    piece->cookie = conn->peer_token;
#ifndef CCI_NO_NAMES
    if (CCI__UNLIKELY(pending->seek != NULL)) piece->name = pending->seek->name.id | pending->seek->at;
#endif
    piece->max_send_size = conn->pub.max_send_size;
    piece->window = table->window;
    piece->data_len = pending->data_len;
    piece->unit = cci__min32(pending->data_len, (table->mtu - size) & ~7u);
    piece->length = cci__min32(piece->unit, pending->data_len - piece->offset);
    piece->data = (const uint8_t *)(pending + 1) + piece->offset;
    (void)cci_conn_write_request(conn, piece, bytes);
    if (sealed) {
        cci__store64(bytes + 48, pending->key_id);
        cci__store64(bytes + 56, 0); /* of which a half becomes the number */
        cci__store64(bytes + 64, cci_conn_reset_secret(table, conn->index, conn->token));
    }
    return size;
}

/* Does an answer go to where the packet came from? */
CCI_API int cci_conn_is_reply(uint8_t type) {
#ifndef CCI_NO_NAMES
    if (type == CCI__PKT_NOT_HERE) return 1;
#endif
    return type == CCI__PKT_COOKIE || type == CCI__PKT_BUSY || type == CCI__PKT_RESET || type == CCI__PKT_CLOSED;
}

/* Writes COOKIE, BUSY, NOT_HERE or RESET: answers that need no connection. Returns its bytes, which are not more than
 * came. */
CCI_API uint32_t cci_conn_output_reply(const cci_conn_table_t *table, const cci_conn_packet_t *in, uint8_t type,
                                       uint8_t *bytes) {
    const cci_conn_header_t *header = &in->header;
    uint32_t size = CCI__HEADER_SIZE;
    if (type != CCI__PKT_RESET) {
        if (type == CCI__PKT_COOKIE)
            return cci__conn_write_cookie(table, in->from, header->index, header->token, bytes);
        cci_conn_write_header(bytes, type, 0, header->index, header->token, 0, 0);
#ifndef CCI_NO_NAMES
        if (type == CCI__PKT_NOT_HERE) memcpy(bytes + 16, in->bytes + 40, 8); /* who is not here */
#endif
        return size;
    }
    cci_conn_write_header(bytes, type, 0, header->peer_index, header->token, header->index, header->number);
    if (table->seal && in->length >= size + CCI__SECRET_SIZE) { /* perhaps it was sealed */
        cci__store64(bytes + size, cci_conn_reset_secret(table, header->index, header->token));
        size += CCI__SECRET_SIZE;
    }
    return size;
}

/* Many connections may end at once: each of their CLOSE packets has its time. Returns when the next may leave;
 * *free_ns is when the line would be free of all that have been promised so far. */
CCI_API uint64_t cci_conn_close_slot(uint64_t *free_ns, uint64_t now_ns) {
    uint64_t burst_ns = CCI__CONN_CLOSE_BURST * CCI__CONN_CLOSE_NS;
    *free_ns = cci__max64(*free_ns, now_ns) + CCI__CONN_CLOSE_NS;
    return cci__max64(now_ns, *free_ns - cci__min64(*free_ns, burst_ns));
}

/* Takes a CLOSE's place in the line, if it has none yet. 1: it is to be sent now; its answer has more than a round
 * trip's time, and twice as much each time, up to a second. 0: not before deadline_ns. */
CCI_API int cci_conn_close_output(cci_conn_t *conn, uint64_t *free_ns, uint64_t srtt_ns, uint64_t now_ns) {
    uint64_t pause_ns;
    if (!conn->step.in_line) {
        conn->step.in_line = 1;
        conn->deadline_ns = cci_conn_close_slot(free_ns, now_ns);
    }
    if (conn->deadline_ns > now_ns) return 0;
    conn->step.in_line = 0;
    pause_ns = cci__min64(cci__max64(20 * CCI__MS, srtt_ns * 3 / 2) << conn->tries++, 1000 * CCI__MS);
    conn->deadline_ns = now_ns + cci__max64(pause_ns, srtt_ns * 3 / 2);
    return 1;
}

/* Looks whether the peer of an open connection has been silent for `period_ns`, and for as long again while CONFIRM
 * asked it for a sign of life: then TIMED_OUT. Else *again_ns is when to look again, after the CONFIRM that may be
 * due. */
CCI_API cci_conn_due_t cci_conn_probe(cci_conn_t *conn, uint64_t period_ns, uint64_t now_ns, uint64_t *again_ns) {
    uint64_t silent_ns = (uint64_t)((uint32_t)(now_ns >> 20) - cci_conn_life_of(conn)->heard) << 20;
    if (silent_ns < period_ns) {
        conn->tries = 0;
        *again_ns = now_ns + period_ns - silent_ns;
        return CCI_CONN_DUE_NOTHING;
    }
    if (conn->tries >= CCI__CONN_PROBES) return CCI_CONN_DUE_TIMED_OUT;
    conn->tries++;
    *again_ns = now_ns + period_ns / CCI__CONN_PROBES;
    return CCI_CONN_DUE_CONFIRM;
}

/* ---- a peer whose address changes ---- */

/* An address that the peer may have moved to, until that is proven; and what the peer wants to have proven. */
typedef struct cci_conn_path {
    cci_list_t node; /* the user's */
    cci_link_addr_t to;
    uint64_t since_ns;       /* the user's: when the connection got it */
    uint64_t challenge;      /* 0: there is none */
    uint64_t received, sent; /* bytes from there and to there */
    uint64_t again_ns;       /* when the challenge may be repeated */
    uint64_t response;       /* to a challenge of the peer's, if it is owed */
    uint32_t tries;
    uint32_t owes_response;
} cci_conn_path_t;

/* When the challenge, in a packet of `size` bytes, is to be repeated; CCI__NEVER while no more bytes may go to an
 * address that is not proven. */
CCI_API uint64_t cci_conn_path_deadline(const cci_conn_path_t *path, uint32_t size) {
    return path->challenge && path->sent + size <= 3 * path->received ? path->again_ns : CCI__NEVER;
}

/* A sound packet of the peer's came from an address that is not known to be its own. */
CCI_API void cci_conn_path_elsewhere(cci_conn_table_t *table, const cci_conn_t *conn, cci_conn_path_t *path,
                                     const cci_link_addr_t *from, uint32_t length, int newest, uint64_t now_ns) {
    if (!path->challenge || memcmp(&path->to, from, sizeof *from) != 0) {
        uint64_t words[4] = {0, 0, 0, 0}; /* other hashes of this key have other counts of words */
        if (!newest) return;              /* a late copy says nothing about where the peer is now */
        words[0] = ++table->challenges;
        words[1] = conn->index;
        words[2] = conn->token;
        path->received = path->sent = 0;
        path->tries = 0;
        path->to = *from;
        path->challenge = cci__siphash(table->key, words, 4) | 1;
        path->again_ns = now_ns;
    }
    path->received += length;
}

static void cci__conn_path_frame(uint8_t *frame, uint8_t type, uint64_t bits) {
    memset(frame, 0, 8);
    frame[0] = type;
    cci__store64(frame + 8, bits);
}

/* Writes the challenge, which is due, for path->to. */
CCI_API void cci_conn_path_challenge(cci_conn_path_t *path, uint32_t size, uint8_t *frame, uint64_t now_ns) {
    path->sent += size;
    path->again_ns = now_ns + cci_conn_retry_ns((uint8_t)path->tries);
    path->tries += path->tries < 200;
    cci__conn_path_frame(frame, CCI__FRAME_CHALLENGE, path->challenge);
}

/* Writes the response that is owed, for the peer's address. */
CCI_API void cci_conn_path_response(cci_conn_path_t *path, uint8_t *frame) {
    path->owes_response = 0;
    cci__conn_path_frame(frame, CCI__FRAME_RESPONSE, path->response);
}

/* A CHALLENGE or RESPONSE of the peer's, which moves it if it is the right one: 1. */
CCI_API int cci_conn_path_input(cci_conn_table_t *table, cci_conn_t *conn, cci_conn_path_t *path, const uint8_t *frame,
                                uint64_t now_ns) {
    uint64_t bits = cci__load64(frame + 8);
    if (frame[0] == CCI__FRAME_CHALLENGE) {
        path->response = bits;
        path->owes_response = 1;
    } else if (path->challenge && path->challenge == bits) {
        path->challenge = 0;
        cci_conn_move(table, conn, &path->to, now_ns);
        return 1;
    }
    return 0;
}

#ifdef __cplusplus
}
#endif
#endif /* CCI_CONN_IMPLEMENTATION */

/* ==================================================================================================================
 * >>rel
 *
 * The reliability protocol of one connection: it takes messages and bulk transfers, and makes packets of them; it takes
 * packets, and hands on each message once (in order on an ordered connection). RFC 9002 is the model: every
 * transmission has a new packet number, acknowledgements name ranges of numbers, loss is found by later packets being
 * acknowledged and by a probe timer.
 *
 * It does no I/O, reads no clock and never allocates: time is an argument, memory comes with the pool, which asks its
 * user for more when one of its lists is empty (cci_rel_pool_t.more), datagrams go in through cci_rel_input() and are
 * pulled out through cci_rel_output(); cci_rel_deadline() says when to call cci_rel_timeout(). What it has for its user
 * it tells through the table cci_rel_sink_t.
 *
 * Everything reliable has a sequence number: each message, and each write of memory. Sequence numbers decide what has
 * been delivered; packet numbers only what to send again. An item is what is sent: a RUN of small messages with
 * consecutive sequence numbers that travel in one packet if they fit, a LENT message that is sent straight from the
 * user's memory, a BULK write that is cut into segments straight from the user's memory, or EXTERN, which is sent by
 * another layer and has its place in the order of completion here.
 *
 * Invariants: an item is finished when all of it has been sent and no piece of it is unacknowledged. A packet is
 * acknowledged only when everything in it has been taken. A packet number is taken once. A receiver that can't take
 * a message says so (NACK) and forgets the packet; the sender repeats, and sends no other message meanwhile (but goes
 * on with bulk writes on an unordered connection). Limits: the pool's; 32 ranges of packet numbers, 128 of sequence
 * numbers on an unordered connection, 96 gaps in a bulk write: what exceeds them is not acknowledged.
 *
 * Reordering: a packet is taken for lost when three that left later have been acknowledged. If it is acknowledged after
 * all, that was a mistake: from then on a packet is lost when it is older than a round trip and a reordering window
 * [RFC 8985], of as many quarters of the shortest round trip as packets are late by, four at most. The window loses a
 * quarter for each 16 round trips that need less. When all that was taken for lost since a reduction of the congestion
 * window has been acknowledged after all, the reduction is taken back [RFC 4015]. What was sent again stays counted.
 *
 * Answers: what the program sends after it was given a message may answer it, and the peer's program is to learn that
 * its own message has arrived before it gets the answer. So the packet with the first message that was issued after one
 * was delivered carries an acknowledgement, however often it is repeated; on an unordered connection, each packet that
 * begins a message does until the peer has acknowledged one that did. There `expected` does not say all while something
 * is missing, and the ranges name packets, of which the sender may know a later copy only: TAKEN names the sequence
 * numbers that were delivered beyond `expected`. What would not fit into a TAKEN is delivered when less is missing. On
 * an ordered connection completions come in the order of the calls, so a message that may answer one behind a remote
 * read is delivered when that read is done (`gated`).
 *
 * ECN [RFC 3168, RFC 9000 13.4]: while the congestion control reacts to marks, the link carries codepoints and the
 * path shows that it leaves them alone, packets leave with ECT(0). The receiver counts what it takes by codepoint, and
 * sends the counts (MARKS) with an acknowledgement of its own: with the next one when a packet was marked, else when
 * the count has doubled, or 1,024 have come. A sender goes on without ECN until the peer moves when it gets no counts
 * while 64 packets and eight times as many as the last counts are acknowledged (the peer may know nothing of ECN), when
 * they are fewer than were acknowledged or more than it sent, when they name ECT(1), or when its first ten packets are
 * all marked.
 *
 * Blocks: a RUN begins in a small block of 256 bytes, which is all that a lonely small message needs, and moves to a
 * large one, of a packet's length, when more messages join than fit; where packets are long, to a middle one of 2,048
 * bytes first. A connection may have `block_limit` of them,
 * whatever others have. Ranges: there is space for one range of packet numbers and three of a write; for more a
 * connection gets space from the pool.
 *
 * Quotas: a connection may hold three times as much of a pool as is still free, and no more (cci__share()). What is
 * free counts up to what the pool may have in all, not what it has now: so quotas matter near its limit. So one
 * connection can have three quarters of it, n of them get equal parts, and something is left for whoever comes next.
 * Blocks and records of packets, which a slow or silent peer holds for long, have an eighth besides for those who hold
 * next to none. What is due always has a quarter that what came too early may not touch. A connection that
 * holds something and gets no further is `stuck`: cci_rel_stuck_ns() says since when, and its user may end it when
 * others go short.
 *
 * Frames follow the packet's header (>>conn) and fill multiples of 8 bytes, except the last. The first byte is the
 * type:
 *
 *     MESSAGE  type, flags, length 2, sequence 4                                             data
 *     FRAGMENT type, flags, length 2, sequence 4, offset 4, total 4                          data of a long message
 *     BULK     type, flags, length 2, sequence 4, key 8, region 4, 0 4, remote offset 8,
 *              offset 8, total 8                                                             data
 *     SKIP     as MESSAGE: a message that was withdrawn
 *     VOID     type, flags, 0 2, sequence 4, count 4, 0 4      all of these were withdrawn
 *     ACK      type, n, delay 2 (4 µs), largest 4, length of the first range 4, expected 4, n times (gap 2, length 2)
 *              expected: all sequence numbers below have been taken
 *     NACK     type, reason, 0 2, sequence 4                   not taken: no buffers, or memory not accessible
 *     PING     type, 0 7                                       only wants to be acknowledged
 *     TAKEN    type, n, 0 2, base 4, n times (begin 2, behind 2)  unordered: base + begin to base + behind have been
 *              delivered
 *     PAD      0                                               the rest of the packet means nothing
 *     MARKS    type, 0 3, ECT(0) 4, ECT(1) 4, CE 4             packets taken, by codepoint; the packet's last frame
 *
 * Each FRAGMENT, segment of a BULK and VOID is looked up among all that are arriving, so a packet has at most four
 * of them.
 *   Parts: memory. The sections >>rel-issue to >>rel-time have the rest.
 * ================================================================================================================== */
#if defined(CCI_REL_IMPLEMENTATION) && !defined(CCI_REL_IMPLEMENTED)
#define CCI_REL_IMPLEMENTED

#ifdef __cplusplus
extern "C" {
#endif

#define CCI_REL_HEADER 24u /* bytes in front of the frames that the user of this layer writes */
#define CCI_REL_HEAD 224u  /* bytes of a packet's head at most */
#ifdef CCI_SMALL
#define CCI__REL_RANGES 6u
#define CCI__REL_SEQUENCES 8u
#define CCI__REL_UNTOLD 4u
#define CCI__REL_GAPS 12u
#else
#define CCI__REL_RANGES 32u /* of packet numbers */
#define CCI__REL_SEQUENCES                                                                                             \
    112u /* of sequence numbers, on an unordered connection: as many packets as are repeated at once */
#define CCI__REL_UNTOLD 16u /* of those among them that a TAKEN of ours names */
#define CCI__REL_GAPS 96u   /* in a bulk write */
#endif
#define CCI__REL_TAKEN_RANGES 16u /* in a TAKEN of a peer's at most */
#define CCI__REL_FEW_NUMBERS 1u   /* the ranges that there is space for before the pool is asked: of packet numbers */
#define CCI__REL_FEW_GAPS 3u      /* in a bulk write or a long message */
#define CCI__REL_SMALL 256u       /* bytes of frames in a small block */
#define CCI__REL_MIDDLE 2048u     /* in a middle one, if a large one has more than twice as many */
#define CCI__REL_PARTS 288u       /* long messages and writes arriving at once: each piece is looked up among them */
#define CCI__REL_UNRELIABLE_PARTS 8u /* messages in fragments arriving at once on an unreliable connection */
#define CCI__REL_PIECES 4u           /* FRAGMENT, BULK and VOID frames in a packet; we send one */
#define CCI__REL_ACK_MORE 14u        /* ranges in an ACK besides the first */
#define CCI__REL_ACK_SMALL 32u       /* bytes that an answer leaves for one, besides those for a TAKEN and NACKs */
#define CCI__REL_TAKEN_MOST (8u + 4u * CCI__REL_UNTOLD)
#define CCI__REL_NACKS_MOST 32u /* bytes of all NACKs of a packet */
#define CCI__REL_MARKS_SIZE 16u /* bytes of a MARKS frame */
#define CCI__REL_INLINE 1024u   /* writes up to here travel like messages */
#define CCI_REL_LENT_MIN 2048u  /* below, a copy costs less than a packet of its own */
#define CCI__REL_ACK_DELAY_NS (50 * 1000u)
#define CCI__REL_SILENCE_NS (10 * 1000u)
#define CCI__REL_STREAM 262144u /* bytes in a row that make a stream */
#define CCI__REL_NAGLE_NS (50 * 1000u)
#define CCI__REL_REORDER_ROUNDS 16u          /* round trips that the reordering window keeps its width without need */
#define CCI__REL_ANSWER_NS (2000 * CCI__MS)  /* a time-out waits for the answer to the last try, at most */
#define CCI__REL_ABSENCE_NS (2000 * CCI__MS) /* then a receiver with a gap asks whether the peer is still there */

typedef struct cci_rel cci_rel_t;

/* A completion waits for one item, or for two: a write and the message behind it. The user embeds it in what it
 * wants to find again, zeroed. */
typedef struct cci_rel_link {
    struct cci_rel_link *next;
    struct cci_rel_op *op;
    uint64_t sequence;
} cci_rel_link_t;

typedef struct cci_rel_op {
    int32_t status;
    uint32_t parts; /* items it still waits for */
    cci_rel_link_t link[2];
} cci_rel_op_t;

/* A write of memory: where to, and from where. */
typedef struct cci_rel_bulk {
    uint64_t key, remote_offset, length;
    uint32_t region;
    uint32_t local_region; /* for the user: the registration that `data` is in */
    uint64_t local_key;
    const uint8_t *data;
} cci_rel_bulk_t;

/* RUN: messages and short writes, one behind the other, which travel together. SLOTS: a message of several packets,
 * lying in the pieces that it leaves in. LENT: a message that lies where the program has it. */
enum { CCI__ITEM_RUN, CCI__ITEM_BULK, CCI__ITEM_EXTERN, CCI__ITEM_LENT, CCI__ITEM_SLOTS };
#define CCI__SLOT_HEAD (CCI_REL_HEADER + 16u) /* bytes before each piece: its packet's header and the FRAGMENT's */

#define CCI__ITEM_QUEUED 1u /* in the queue of what is to be sent */
#define CCI__ITEM_HELD 2u   /* may not be sent yet */
#define CCI__ITEM_VOID 4u   /* withdrawn: the receiver must be told */
#define CCI__ITEM_DONE 8u   /* finished, waits for earlier ones */
#define CCI__ITEM_RMA 16u   /* counts for fences */
#define CCI__ITEM_FENCE 32u
#define CCI__ITEM_SENT 64u     /* all of it has been sent at least once */
#define CCI__ITEM_PAIR 128u    /* the next sequence number belongs to it: a completion message */
#define CCI__ITEM_LEAVING 256u /* about to be withdrawn */
#define CCI__ITEM_ANSWER 512u  /* may answer a message of the peer's: an acknowledgement travels with it */

typedef struct cci_rel_item {
    cci_list_t node;  /* in the connection's list of unfinished items, in the order of the calls */
    cci_list_t queue; /* in a queue, if QUEUED or HELD */
    cci_rel_link_t *ops, **ops_tail;
    uint64_t since_ns; /* when it was issued, or last heard of */
    uint64_t first;    /* sequence number */
    uint32_t count;    /* sequence numbers */
    uint32_t timeout_us;
    uint32_t pieces; /* unacknowledged */
    uint32_t flags;
    uint8_t kind;
    int32_t status;
    uint32_t length, sent, fragment; /* bytes of frames; sent up to; of the message there, bytes sent in fragments */
    uint32_t capacity;               /* bytes at `frames` */
    uint8_t *frames;                 /* RUN, SLOTS: in the small block itself, or a larger one; else NULL */
    uint8_t head[8];                 /* LENT, SLOTS: the frame's */
    uint32_t even;                   /* bytes of each fragment of the message that is being sent in fragments */
    struct cci_rel_item *follow;     /* EXTERN: a held item that goes when this is done */
    void *user_data;                 /* EXTERN: the other layer's */
    cci_rel_bulk_t bulk;
    uint64_t bulk_sent;
} cci_rel_item_t;

/* An item with space for the frames of a RUN that is small. */
typedef struct cci_rel_block {
    cci_rel_item_t item; /* first */
    uint8_t bytes[CCI__REL_SMALL];
} cci_rel_block_t;

/* What a connection gets from the pool when it must remember more than a few ranges. */
typedef union cci_rel_numbers {
    cci_list_t node; /* while it is free */
    cci_range_t range[CCI__REL_RANGES];
} cci_rel_numbers_t;

typedef union cci_rel_gaps {
    cci_list_t node;
    cci_range_t range[CCI__REL_SEQUENCES + CCI__REL_UNTOLD];
} cci_rel_gaps_t;

/* One packet that waits for its acknowledgement, or the part of it that must be sent again. */
typedef struct cci_rel_sent {
    cci_list_t node;
    uint64_t number, time_ns;
    cci_rel_item_t *item; /* NULL: nothing to repeat */
    uint64_t offset;      /* BULK: of data; else of frames */
    uint32_t length;
    uint32_t fragment; /* RUN: offset in the message at `offset`, if is_fragment */
    uint32_t size;     /* of the packet */
    uint8_t is_fragment, is_probe, in_flight;
} cci_rel_sent_t;

/* What remains of a packet that was taken for lost, until its number is settled: a record without an item, in `late`.
 * It has the packet's number, time_ns and size; `offset` is the number that was next when it was given up, `fragment`
 * is 1 if others had overtaken it. An acknowledgement that still names it tells the round-trip time, and that it was
 * only late. When a packet that was sent after that has been acknowledged, it was lost indeed. */

/* The head of the list of those: a record, too. It has what the last reduction of the congestion window changed, for as
 * long as all that was taken for lost since the one before it may still come. */
typedef union cci_rel_late {
    cci_rel_sent_t record;
    struct {
        cci_list_t node; /* first, as in the record */
        cci_flow_before_t before;
        uint32_t missing; /* packets that have not come; 0: the reduction stays */
        uint32_t cut;     /* low bits of its time */
    } head;
} cci_rel_late_t;
typedef char cci__rel_late_is_a_record[sizeof(cci_rel_late_t) == sizeof(cci_rel_sent_t) ? 1 : -1];

/* A packet with messages that have been taken. It lies over the packet's header, in the buffer itself. */
typedef struct cci_rel_run {
    struct cci_rel_run *next;
    void *buffer;        /* the user's name for the memory, for giving it back */
    uint16_t begin, end; /* bytes from here to the frames not yet consumed, and to their end */
    uint32_t count;      /* sequence numbers in it */
} cci_rel_run_t;

/* A long message or a bulk write that is arriving, or anything that arrived too early to count. */
typedef struct cci_rel_part {
    cci_list_t node; /* ascending by first */
    uint64_t first, total;
    uint32_t count;
    uint32_t range_count, range_capacity;
    uint8_t complete;
    uint8_t after; /* flags of the first frame */
    void *buffer;  /* FRAGMENT: memory for the whole, a run in front of it */
    uint8_t *memory;
    cci_range_t *ranges; /* that have come: `few`, or a cci_rel_gaps_t of the pool */
    cci_range_t few[CCI__REL_FEW_GAPS];
} cci_rel_part_t;

/* A packet to send: `head` is the caller's memory of CCI_REL_HEAD bytes, whose first CCI_REL_HEADER are left for it;
 * with `slots` it may come back as other memory, just in front of the body and of zeros for the padding: set it for
 * each packet. */
typedef struct cci_rel_packet {
    uint8_t *head; /* the caller's memory of CCI_REL_HEAD bytes, or a slot where all of the packet lies */
    uint32_t head_length;
    const uint8_t *body;
    uint32_t body_length;
    uint32_t pad_length; /* zeros behind the body: packets of one size leave together */
    uint32_t codepoint;  /* of ECN */
    uint64_t number;
    cci_rel_sent_t *sent;  /* NULL: nothing in it wants to be acknowledged */
    cci_rel_item_t *spent; /* unreliable: give it to cci_rel_spent() when the packet has left */
} cci_rel_packet_t;

/* What a connection tells its user, and asks of it. `user` is what cci_rel_begin() was given. */
typedef struct cci_rel_sink {
    /* May the packet in `buffer` be kept? 1, and then a reference is held, or 0. in_order: it is the one needed
     * next. */
    int (*keep)(void *user, void *buffer, int in_order);
    void (*drop)(void *user, void *buffer); /* gives back what was kept */
    /* Memory of CCI_REL_HEADER + size bytes for a message in fragments, kept like the above; NULL if there is none. */
    uint8_t *(*assemble)(void *user, uint32_t size, int in_order, void **buffer);
    void (*deliver)(void *user, cci_rel_run_t *run);
    /* Puts bytes where they belong (data NULL: only checks); a status. */
    int (*place)(void *user, const cci_rel_bulk_t *target, uint64_t offset, const uint8_t *data, uint32_t length);
    int (*readable)(void *user, const cci_rel_bulk_t *source); /* is the local memory still registered? */
    void (*complete)(void *user, cci_rel_op_t *op);
    void (*start)(void *user, cci_rel_item_t *item); /* an EXTERN item may go */
    /* A frame of type OTHER or above, `length` bytes to the end of the packet; returns its length, 0 if malformed. */
    uint32_t (*frame)(void *user, const uint8_t *frame, uint32_t length, uint64_t now_ns);
    void (*broken)(void *user, int status); /* the peer does not answer any more */
} cci_rel_sink_t;

/* What a pool is asked for when it has none left. */
enum {
    CCI_REL_BLOCKS,
    CCI_REL_MIDDLE,
    CCI_REL_LARGE,
    CCI_REL_BULKS,
    CCI_REL_RECORDS,
    CCI_REL_PARTS,
    CCI_REL_NUMBERS,
    CCI_REL_GAPS
};

/* What cci_rel_pool_t.note is told. */
enum {
    CCI_REL_RETRANSMITTED, /* a packet carries again what an earlier one carried */
    CCI_REL_LOST,          /* a packet is taken for lost */
    CCI_REL_NOT_READY,     /* the peer had no buffer */
    CCI_REL_NOTES,
    CCI_REL_SILENT = CCI_REL_NOTES, /* three probe time-outs have passed without an answer */
    CCI_REL_MTU                     /* the path's MTU is another */
};

/* What the connections of an endpoint share. The lists have what is free at the moment. A count of what is free goes
 * up to what the pool may have in all: `more` adds to a list that is empty, and returns 1 if it did. */
typedef struct cci_rel_pool {
    const cci_rel_sink_t *sink;
    const cci_congestion_t *congestion;
    int (*more)(struct cci_rel_pool *pool, int what); /* NULL: there are no more than were added */
    cci_list_t blocks, middle, large, bulks, records, parts, numbers, gaps;
    uint32_t ack_bytes;  /* that may come before they are acknowledged */
    uint32_t block_size; /* bytes of frames in a RUN: of a large block */
    uint8_t slots;       /* packets leave as they are: long messages lie as packets */
    /* blocks that one connection may have, and writes, reads and lent messages */
    uint32_t block_limit, bulk_limit;
    uint32_t block_total, block_out;
    uint32_t middle_total, middle_out;
    uint32_t large_total, large_out;
    uint32_t part_total, part_free;
    uint32_t record_free, record_total;
    uint32_t gap_free;
    uint32_t buffers_held; /* by all connections, with what can't be delivered yet */
    uint32_t starved;      /* something that was due had to be refused */
    uint32_t base_mtu;
    uint32_t ecn_at;       /* bytes from a cci_rel_t to its cci__rel_ecn_t; 0: no codepoints are sent or received */
    uint32_t codepoint_in; /* of the packet that is given to cci_rel_input() */
    uint32_t overhead;     /* bytes that the user of this layer adds to each packet */
    const uint8_t *zeros;  /* block_size of them */
    uint64_t away_ns;      /* so long the program did not call lately: what it could not send then may leave at once */
    uint64_t retransmitted, packets_sent, packets_refused, packets_malformed, packets_duplicate;
#ifndef CCI_NO_STATS
    uint64_t packets_lost;
    uint32_t block_most; /* blocks that were out at once */
#endif
#ifndef CCI_SMALL
    /* NULL, or is told what happens to one connection and is rare */
    void (*note)(void *user, int what);
#endif
} cci_rel_pool_t;

/* What outlives a pause of traffic. */
typedef struct cci_rel_state {
    uint64_t next_number, floor_number, next_sequence, expected_sequence;
    uint32_t srtt_us, rttvar_us, min_rtt_us; /* 0: unknown, but for rttvar_us: see cci__rel_first_pto_ns() */
    uint16_t mtu;
    uint8_t unsure, no_ecn;
} cci_rel_state_t;

#ifdef CCI_NO_ECN
#define CCI__REL_ECN(...)
#else
#define CCI__REL_ECN(...) __VA_ARGS__
/* What a connection knows of ECN: codepoints that came, and what the peer says of its own count. */
typedef struct cci__rel_ecn {
    uint32_t came[4], report_at; /* by codepoint; ECT(0) that come until the next report, if nothing is marked */
    uint32_t from, acked; /* low bits: packets from there on left with ECT(0); so many of them were acknowledged */
    uint32_t until;       /* `acked` that must not be reached without a report */
    uint32_t began_at, began_unmarked; /* the peer's count of all, and of ECT(0), when that began */
    uint32_t total, marked;            /* the peer's count of all, and of CE, in its last report */
} cci__rel_ecn_t;
#endif

struct cci_rel {
    cci_rel_pool_t *pool;
    void *user;
    uint8_t ordered, reliable;
    uint8_t once; /* unreliable, but each packet is taken once at most: the user sets it after cci_rel_begin() */
    uint8_t ack_now, rnr, probing, mtu_tries, want_mtu;
    uint8_t lost_writes; /* there may be segments of writes among what is lost */
    uint8_t shuffled;    /* what is lost may not be in the order in which the receiver needs it */
    uint8_t advanced;    /* the packet brought it further */
    uint8_t unsure; /* what is issued next may be an answer to a message that the peer doesn't know to have arrived */
    uint8_t ping, nack_count, nack_reasons[4];
    uint8_t leaving; /* 1: the user wants its memory back, so nothing new is taken; 2: and something was not */
    uint8_t untold;  /* unordered: ranges that were delivered beyond `expected`, and that the peer may not know to be */
    uint32_t run_limit;   /* bytes that the last run may have; 0: none may be added before `unsure` is looked at */
    uint32_t timeout_us;  /* of what is issued from now on; 0: for ever */
    uint16_t message_max; /* bytes of the longest message that the peer may send; set to 65,535 by cci_rel_begin() */
    uint16_t probes;      /* time-outs in a row, up to 65,535 */
    /* lent by the pool */
    uint16_t part_count, gap_count;
    uint32_t record_count, block_count, middle_count, large_count, bulk_count;
    uint32_t buffers_held; /* buffers with what can't be delivered yet */
    uint32_t rma_open;     /* RMAs on their way */
    uint32_t stream_bytes; /* that came since the peer last paused */
    uint32_t rnr_delay_ns; /* from a refusal for want of a buffer until the next try */
    /* sending */
    uint64_t next_number, next_sequence;
    union {                   /* by `ordered` */
        uint64_t unsure_from; /* 0: the first packet number whose acknowledgement says all that the peer is to know */
        cci_rel_run_t *gated; /* 1: the last of the messages that wait for a remote read, in a ring */
    } by;
    cci_list_t items;                /* unfinished, in order */
    cci_list_t runs, bulks;          /* to be sent */
    cci_list_t held, follows;        /* waiting: for a fence, for an EXTERN item */
    cci_list_t flight, lost;         /* records: by number; to be sent again */
    cci_rel_late_t *late;            /* NULL, or a record whose node is the list of those taken for lost, by number */
    uint32_t in_flight, peer_window; /* bytes */
    uint64_t expire_ns, progress_ns; /* earliest time-out; last time the peer took something */
    /* round-trip time, loss, congestion */
    uint64_t srtt_ns, rttvar_ns, min_rtt_ns, last_sent_ns, loss_ns;
    uint64_t largest_acked, recovery_number;
    cci_flow_t flow;
    uint64_t pace_ns;
    cci_rel_item_t *burst; /* after a packet: what goes on in the next one, if nothing else comes first */
    uint64_t rnr_until_ns; /* no message leaves before */
    uint64_t rnr_sequence;
    uint64_t overdue_ns; /* since when a time-out waits for the answer to the last try; 0: none does */
    uint64_t taken;      /* the peer has said that it has all sequence numbers below */
    /* path MTU */
    uint8_t large_lost; /* windows in which large packets were lost, since one arrived */
    uint8_t number_capacity;
    uint16_t doubts_number; /* low bits: a long sample counts only if the packet is not before it */
    uint32_t mtu, mtu_max;
    uint16_t mtu_failed;     /* the least that is known not to arrive */
    uint8_t codepoint;       /* that packets leave with: 2, ECT(0), or 0 */
    uint8_t owes_marks;      /* the next acknowledgement goes with counts of codepoints */
    uint32_t limited_number; /* low bits: packets before it left as part of all that the congestion window allowed */
#ifndef CCI_NO_STATS
    uint32_t latest_rtt; /* in units of 16 ns */
#endif
    uint64_t mtu_again_ns;
    /* receiving */
    uint64_t floor_number; /* all below have been seen */
    cci_range_t *numbers;  /* `few_numbers`, or a cci_rel_numbers_t of the pool */
    uint32_t number_count;
    uint32_t reordering : 3;    /* reordering window: quarters of a round trip; 0: packets have kept their order */
    uint32_t round_trips : 5;   /* that no packet needed so much of it */
    uint32_t round_number : 19; /* low bits: one more is over when a packet from here on is acknowledged */
    uint32_t low_range : 5;     /* 1 + the range of a packet that came below all that an ACK names; 0: none did */
    uint32_t ack_count, ack_bytes;
    uint64_t ack_at_ns, largest_ns;
    uint64_t heard_ns;      /* when something sound last came, or the peer was last asked for a sign of life */
    uint64_t expected;      /* all sequence numbers below have been taken */
    cci_range_t *sequences; /* in a cci_rel_gaps_t of the pool, with the untold behind them, or NULL */
    uint32_t sequence_count, sequence_capacity;
    cci_rel_run_t *early;      /* taken, not yet delivered; ascending */
    cci_rel_run_t *early_last; /* ordered: the last of them, if there are any */
    cci_list_t parts;
    uint64_t stuck_ns; /* when it got further for the last time, or began to hold something */
    uint32_t nacks[4]; /* sequence numbers */
    cci_range_t few_numbers[CCI__REL_FEW_NUMBERS];
};

#ifndef CCI_NO_ECN
/* Lies where the pool's `ecn_at` says: most endpoints have no use for it. */
static inline cci__rel_ecn_t *cci__rel_ecn(cci_rel_t *rel) {
    return (cci__rel_ecn_t *)(void *)((uint8_t *)rel + rel->pool->ecn_at);
}
#endif

/* What cci_rel_input() says of a packet: unsound; sound, perhaps late or once more; sound and newer than all before. */
enum { CCI_REL_UNSOUND, CCI_REL_SOUND, CCI_REL_NEWEST };

/* Tells the user what it may want to count, or to know. */
static CCI__RARE void cci__rel_note(const cci_rel_t *rel, int what) {
#ifndef CCI_SMALL
    if (rel->pool->note) rel->pool->note(rel->user, what);
#else
    (void)rel, (void)what;
#endif
}

#define CCI__RUN_SEQUENCE(run) cci__load32((const uint8_t *)(run) + (run)->begin + 4)

/* ---- memory ---- */

CCI_API void cci_rel_pool_init(cci_rel_pool_t *pool, const cci_rel_sink_t *sink, uint32_t block_size,
                               uint32_t base_mtu) {
    memset(pool, 0, sizeof *pool);
    pool->sink = sink;
    pool->block_size = block_size;
    pool->base_mtu = base_mtu;
    pool->ack_bytes = 131072;
    cci__list_init(&pool->blocks);
    cci__list_init(&pool->middle);
    cci__list_init(&pool->large);
    cci__list_init(&pool->bulks);
    cci__list_init(&pool->records);
    cci__list_init(&pool->parts);
    cci__list_init(&pool->numbers);
    cci__list_init(&pool->gaps);
}

/* Adds `count` blocks: that many messages of any size can be pending on each connection. `bytes` has count times
 * block_size bytes, 8-byte aligned. */
CCI_API void cci_rel_pool_add_blocks(cci_rel_pool_t *pool, cci_rel_block_t *blocks, uint8_t *bytes, uint32_t count) {
    uint32_t i;
    pool->block_total += count;
    pool->large_total += count;
    pool->block_limit += count;
    for (i = 0; i < count; i++) {
        cci__list_append(&pool->blocks, &blocks[i].item.node);
        cci__list_append(&pool->large, (cci_list_t *)(void *)(bytes + (size_t)i * pool->block_size));
    }
}

CCI_API void cci_rel_pool_add(cci_rel_pool_t *pool, cci_rel_item_t *bulks, uint32_t bulk_count, cci_rel_sent_t *records,
                              uint32_t record_count, cci_rel_part_t *parts, uint32_t part_count) {
    pool->bulk_limit += bulk_count;
    while (bulk_count-- > 0) cci__list_append(&pool->bulks, &bulks[bulk_count].node);
    pool->record_free += record_count;
    pool->record_total += record_count;
    while (record_count-- > 0) cci__list_append(&pool->records, &records[record_count].node);
    pool->part_total += part_count;
    pool->part_free += part_count;
    while (part_count-- > 0) cci__list_append(&pool->parts, &parts[part_count].node);
}

CCI_API void cci_rel_pool_add_ranges(cci_rel_pool_t *pool, cci_rel_numbers_t *numbers, uint32_t number_count,
                                     cci_rel_gaps_t *gaps, uint32_t gap_count) {
    while (number_count-- > 0) cci__list_append(&pool->numbers, &numbers[number_count].node);
    pool->gap_free += gap_count;
    while (gap_count-- > 0) cci__list_append(&pool->gaps, &gaps[gap_count].node);
}

/* Is there one in the list, perhaps now? */
static inline int cci__rel_has(cci_rel_pool_t *pool, const cci_list_t *list, int what) {
    return CCI__LIKELY(!cci__list_empty(list)) || (pool->more && pool->more(pool, what));
}

/* May somebody who holds so many have one more of what is out? One may have all there are if the pool is for one
 * alone. A quarter is for those whose peers answer. */
static int cci__rel_block_share(const cci_rel_t *rel, uint32_t held, uint32_t out, uint32_t total) {
    return total <= rel->pool->block_limit ||
           (cci__share_for_long(held, total - out, total) && (rel->probes < 2 || out < total - total / 4));
}

/* May it have one more of a list's? */
static int cci__rel_has_one(cci_rel_t *rel, const cci_list_t *list, int what, uint32_t held, uint32_t out,
                            uint32_t total) {
    return out < total && cci__rel_block_share(rel, held, out, total) && cci__rel_has(rel->pool, list, what);
}

/* May the connection have one more middle block, for `size` bytes of frames? */
static int cci__rel_has_middle(cci_rel_t *rel, uint32_t size) {
    cci_rel_pool_t *pool = rel->pool;
    return size <= CCI__REL_MIDDLE && cci__rel_has_one(rel, &pool->middle, CCI_REL_MIDDLE, rel->middle_count,
                                                       pool->middle_out, pool->middle_total);
}

/* May it have one more middle or large block? */
static int cci__rel_has_larger(cci_rel_t *rel, uint32_t size) {
    cci_rel_pool_t *pool = rel->pool;
    return cci__rel_has_middle(rel, size) ||
           cci__rel_has_one(rel, &pool->large, CCI_REL_LARGE, rel->large_count, pool->large_out, pool->large_total);
}

/* May the connection have one more block, or two, with `need` bytes of frames in the last? */
static int cci__rel_has_blocks(cci_rel_t *rel, uint32_t count, uint32_t need) {
    cci_rel_pool_t *pool = rel->pool;
    if (rel->block_count + count > pool->block_limit || pool->block_out + count > pool->block_total ||
        !cci__rel_block_share(rel, rel->block_count + count - 1, pool->block_out + count - 1, pool->block_total) ||
        !cci__rel_has(pool, &pool->blocks, CCI_REL_BLOCKS))
        return 0;
    if (count == 2 && pool->blocks.next->next == &pool->blocks && !(pool->more && pool->more(pool, CCI_REL_BLOCKS)))
        return 0;
    return need <= CCI__REL_SMALL || cci__rel_has_larger(rel, need);
}

/* The connection's count of blocks like the middle or large one that an item's frames are in. */
static uint32_t *cci__rel_larger_count(cci_rel_t *rel, const cci_rel_item_t *item) {
    return item->capacity == rel->pool->block_size ? &rel->large_count : &rel->middle_count;
}

/* Gives that block back. */
static void cci__rel_free_larger(cci_rel_t *rel, const cci_rel_item_t *item) {
    cci_rel_pool_t *pool = rel->pool;
    int is_large = item->capacity == pool->block_size;
    cci__list_insert(is_large ? pool->large.next : pool->middle.next, (cci_list_t *)(void *)item->frames);
    --*(is_large ? &pool->large_out : &pool->middle_out);
    --*cci__rel_larger_count(rel, item);
}

/* A larger block for the item's frames, which are to be `size` bytes. There is one: see cci__rel_has_larger(). */
static void cci__rel_enlarge(cci_rel_t *rel, cci_rel_item_t *item, uint32_t size) {
    cci_rel_pool_t *pool = rel->pool;
    int is_middle = cci__rel_has_middle(rel, size);
    cci_list_t *block = is_middle ? pool->middle.next : pool->large.next;
    cci__list_remove(block);
    if (item->length > 0) memcpy(block, item->frames, item->length);
    if (item->capacity > CCI__REL_SMALL) cci__rel_free_larger(rel, item);
    item->frames = (uint8_t *)(void *)block;
    item->capacity = is_middle ? CCI__REL_MIDDLE : pool->block_size;
    ++*(is_middle ? &pool->middle_out : &pool->large_out);
    ++*cci__rel_larger_count(rel, item);
}

/* Bytes of the TAKEN that an answer carries. */
static inline uint32_t cci__rel_taken_size(const cci_rel_t *rel) {
    return CCI__UNLIKELY(rel->untold) ? cci__pad8(8 + 4u * rel->untold) : 0;
}

/* Bytes that a run of messages may have in a packet that carries an acknowledgement. */
static inline uint32_t cci__rel_answer_limit(const cci_rel_t *rel) {
    return rel->mtu - CCI_REL_HEADER - CCI__REL_ACK_SMALL - cci__rel_taken_size(rel);
}

/* A message goes into the item now. Does it take an acknowledgement along? On an ordered connection what is issued
 * later is delivered later, so the first does it for all. */
static inline void cci__rel_note_answer(cci_rel_t *rel, cci_rel_item_t *item) {
    if (CCI__UNLIKELY(rel->unsure)) item->flags |= CCI__ITEM_ANSWER;
    rel->unsure = rel->unsure && !rel->ordered;
    rel->run_limit = item->flags & CCI__ITEM_ANSWER ? cci__rel_answer_limit(rel) : rel->mtu - CCI_REL_HEADER;
}

/* An item, with space for `need` bytes of frames if it is a RUN or lies in SLOTS. NULL: the pool has none for the
 * connection. */
static cci_rel_item_t *cci__rel_new_item(cci_rel_t *rel, uint8_t kind, uint32_t need, uint64_t now_ns) {
    cci_rel_pool_t *pool = rel->pool;
    int in_block = kind == CCI__ITEM_RUN || kind == CCI__ITEM_SLOTS;
    cci_rel_item_t *item;
    if (in_block ? !cci__rel_has_blocks(rel, 1, need)
                 : rel->bulk_count >= pool->bulk_limit || !cci__rel_has(pool, &pool->bulks, CCI_REL_BULKS))
        return NULL;
    item = CCI__CONTAINER(in_block ? pool->blocks.next : pool->bulks.next, cci_rel_item_t, node);
    cci__list_remove(&item->node);
    cci__list_init(&item->queue);
    item->ops = NULL;
    item->ops_tail = &item->ops;
    item->since_ns = now_ns;
    item->first = rel->next_sequence;
    item->count = item->pieces = item->flags = 0;
    if (kind != CCI__ITEM_BULK && kind != CCI__ITEM_EXTERN) cci__rel_note_answer(rel, item);
    item->timeout_us = rel->timeout_us;
    item->kind = kind;
    item->status = CCI_SUCCESS;
    item->length = item->sent = item->fragment = item->capacity = 0;
    item->frames = NULL;
    item->follow = NULL;
    item->bulk_sent = 0;
    if (in_block) {
        pool->block_out++;
#ifndef CCI_NO_STATS
        if (CCI__UNLIKELY(pool->block_out > pool->block_most)) pool->block_most = pool->block_out;
#endif
        rel->block_count++;
        item->frames = CCI__CONTAINER(item, cci_rel_block_t, item)->bytes;
        item->capacity = CCI__REL_SMALL;
        if (need > CCI__REL_SMALL) cci__rel_enlarge(rel, item, need);
    } else {
        rel->bulk_count++;
    }
    cci__list_append(&rel->items, &item->node);
    if (item->timeout_us) rel->expire_ns = cci__min64(rel->expire_ns, now_ns + (uint64_t)item->timeout_us * 1000);
    return item;
}

static void cci__rel_free_item(cci_rel_t *rel, cci_rel_item_t *item) {
    cci_rel_pool_t *pool = rel->pool;
    CCI_ASSERT(item->pieces == 0 && !item->ops);
    cci__list_remove(&item->node);
    cci__list_remove(&item->queue);
    if (!item->frames) {
        rel->bulk_count--;
        cci__list_insert(pool->bulks.next, &item->node); /* the last used is the warmest */
        return;
    }
    if (item->capacity > CCI__REL_SMALL) cci__rel_free_larger(rel, item);
    pool->block_out--;
    rel->block_count--;
    cci__list_insert(pool->blocks.next, &item->node);
}

/* Sees to it that [lo, hi) can be added to a set of ranges that come from the pool when there are more than a few;
 * 0: it can't. `space`: where the set lies, of `capacity` ranges, and `most` with what the pool has. */
static int cci__rel_gaps_fit(cci_rel_t *rel, cci_range_t **space, uint32_t count, uint32_t *capacity, uint32_t most,
                             uint64_t lo, uint64_t hi) {
    cci_rel_pool_t *pool = rel->pool;
    cci_list_t *node;
    if (CCI__LIKELY(cci__ranges_fit(*space, count, *capacity, lo, hi))) return 1;
    if (*capacity == most || !cci__share(rel->gap_count, pool->gap_free) ||
        !cci__rel_has(pool, &pool->gaps, CCI_REL_GAPS))
        return 0;
    node = pool->gaps.next;
    cci__list_remove(node);
    pool->gap_free--;
    rel->gap_count++;
    if (count > 0) memcpy(node, *space, count * sizeof **space);
    *space = CCI__CONTAINER(node, cci_rel_gaps_t, node)->range;
    *capacity = most;
    return 1;
}

/* Gives back what a set had from the pool; its ranges are forgotten. */
static void cci__rel_free_gaps(cci_rel_t *rel, cci_range_t **space, uint32_t *capacity, cci_range_t *few,
                               uint32_t few_count) {
    if (*capacity == few_count) return;
    cci__list_append(&rel->pool->gaps, &((cci_rel_gaps_t *)(void *)*space)->node);
    rel->pool->gap_free++;
    rel->gap_count--;
    *space = few;
    *capacity = few_count;
}

/* The sequence numbers that came too early are none any more. */
static void cci__rel_free_sequences(cci_rel_t *rel) {
    rel->sequence_count = 0;
    rel->untold = 0;
    cci__rel_free_gaps(rel, &rel->sequences, &rel->sequence_capacity, NULL, 0);
}

static void cci__rel_free_record(cci_rel_t *rel, cci_rel_sent_t *sent) {
    if (sent->in_flight) rel->in_flight -= sent->size;
    cci__list_remove(&sent->node);
    cci__list_insert(rel->pool->records.next, &sent->node);
    rel->pool->record_free++;
    rel->record_count--;
}

static void cci__rel_free_late(cci_rel_t *rel) {
    if (!rel->late) return;
    while (!cci__list_empty(&rel->late->head.node))
        cci__rel_free_record(rel, CCI__CONTAINER(rel->late->head.node.next, cci_rel_sent_t, node));
    rel->late->record.in_flight = 0;
    cci__rel_free_record(rel, &rel->late->record);
    rel->late = NULL;
}

static void cci__rel_free_records(cci_rel_t *rel) {
    cci__rel_free_late(rel);
    while (!cci__list_empty(&rel->lost))
        cci__rel_free_record(rel, CCI__CONTAINER(rel->lost.next, cci_rel_sent_t, node));
    while (!cci__list_empty(&rel->flight))
        cci__rel_free_record(rel, CCI__CONTAINER(rel->flight.next, cci_rel_sent_t, node));
}

/* A buffer is held with what can't be delivered yet, or (-1) not any more. */
static void cci__rel_hold_buffer(cci_rel_t *rel, int more) {
    rel->buffers_held += (uint32_t)more;
    rel->pool->buffers_held += (uint32_t)more;
}

static void cci__rel_free_part(cci_rel_t *rel, cci_rel_part_t *part) {
    if (part->buffer) {
        rel->pool->sink->drop(rel->user, part->buffer);
        cci__rel_hold_buffer(rel, -1);
    }
    cci__rel_free_gaps(rel, &part->ranges, &part->range_capacity, part->few, CCI__REL_FEW_GAPS);
    if (rel->sequence_count == 0) cci__rel_free_sequences(rel); /* see cci__rel_fits() */
    rel->part_count--;
    cci__list_remove(&part->node);
    cci__list_append(&rel->pool->parts, &part->node);
    rel->pool->part_free++;
}

#ifndef CCI_NO_ECN
/* Packets leave with ECT(0) from now on, if they may at all: nothing is known of the path. */
CCI_API void cci_rel_begin_ecn(cci_rel_t *rel) {
    cci__rel_ecn_t *ecn = cci__rel_ecn(rel);
    const cci_list_t *node;
    if (!rel->reliable || !rel->pool->ecn_at || !rel->pool->congestion->marked) return;
    rel->codepoint = 2;
    ecn->acked = 0;
    for (node = rel->flight.next; node != &rel->flight; node = node->next) ecn->acked--; /* they left before */
    ecn->until = rel->next_number == 0 ? 64 : 8192; /* the peer may have reported lately */
    ecn->began_at = ecn->total;
    ecn->began_unmarked = ecn->total - ecn->marked;
}

/* The counts begin anew. */
static void cci__rel_reset_ecn(cci_rel_t *rel, const cci_rel_state_t *state) {
    cci__rel_ecn_t *ecn = cci__rel_ecn(rel);
    if (!rel->pool->ecn_at) return;
    memset(ecn, 0, sizeof *ecn);
    ecn->report_at = 4;
    ecn->from = (uint32_t)rel->next_number;
    if (!state->no_ecn) cci_rel_begin_ecn(rel);
}
#endif

/* Takes up a connection's traffic. `mtu_max`: bytes of the largest packet both sides could take. */
CCI_API void cci_rel_begin(cci_rel_t *rel, cci_rel_pool_t *pool, void *user, const cci_rel_state_t *state,
                           int attribute, uint32_t mtu_max, uint32_t peer_window) {
    memset(rel, 0, sizeof *rel);
    rel->pool = pool;
    rel->user = user;
    rel->ordered = attribute == CCI_CONN_ATTR_RO;
    rel->reliable = attribute == CCI_CONN_ATTR_RO || attribute == CCI_CONN_ATTR_RU;
    rel->numbers = rel->few_numbers;
    rel->number_capacity = CCI__REL_FEW_NUMBERS;
    cci__list_init(&rel->items);
    cci__list_init(&rel->runs);
    cci__list_init(&rel->bulks);
    cci__list_init(&rel->held);
    cci__list_init(&rel->follows);
    cci__list_init(&rel->flight);
    cci__list_init(&rel->lost);
    cci__list_init(&rel->parts);
    rel->next_number = state->next_number;
    rel->floor_number = state->floor_number;
    rel->next_sequence = state->next_sequence;
    rel->expected = state->expected_sequence;
    rel->doubts_number = (uint16_t)rel->next_number;
    rel->limited_number = (uint32_t)rel->next_number;
    rel->srtt_ns = state->srtt_us * UINT64_C(1000);
    rel->rttvar_ns = state->rttvar_us * UINT64_C(1000);
    rel->min_rtt_ns = state->min_rtt_us ? state->min_rtt_us * UINT64_C(1000) : CCI__NEVER;
    rel->message_max = 0xffff;
    rel->mtu_max = mtu_max;
    rel->mtu = attribute <= CCI_CONN_ATTR_UU ? cci__min32(cci__max32(state->mtu, pool->base_mtu), mtu_max) : mtu_max;
    rel->run_limit = rel->mtu - CCI_REL_HEADER;
    rel->mtu_failed = (uint16_t)(mtu_max + 8);
    if (state->unsure && rel->floor_number > 0) { /* the last packet is what an answer acknowledges */
        rel->unsure = 1;
        rel->run_limit = 0;
        rel->numbers[0].hi = rel->floor_number--;
        rel->numbers[0].lo = rel->floor_number;
        rel->number_count = 1;
    }
    rel->peer_window = peer_window;
    rel->stuck_ns = CCI__NEVER;
    cci__flow_init(&rel->flow, cci__max64(12000, 4 * (uint64_t)rel->mtu));
    rel->expire_ns = rel->loss_ns = rel->ack_at_ns = CCI__NEVER;
    CCI__REL_ECN(cci__rel_reset_ecn(rel, state);)
}

/* Nothing is under way in either direction: the memory can be lent to another. */
CCI_API int cci_rel_idle(const cci_rel_t *rel) {
    return cci__list_empty(&rel->items) && cci__list_empty(&rel->flight) && cci__list_empty(&rel->lost) &&
           !rel->early && cci__list_empty(&rel->parts) && !rel->sequence_count && !rel->ack_count && !rel->nack_count &&
           !rel->ping;
}

static void cci__rel_nack(cci_rel_t *rel, uint64_t sequence, int reason);

/* Does it hold something that belongs to all? */
static int cci__rel_holds(const cci_rel_t *rel) {
    return rel->buffers_held || rel->part_count || rel->sequence_count;
}

/* Since when it has held something that belongs to all and got no further; CCI__NEVER if it holds nothing. */
CCI_API uint64_t cci_rel_stuck_ns(const cci_rel_t *rel) {
    return cci__rel_holds(rel) ? rel->stuck_ns : CCI__NEVER;
}

/* Asks the peer to send again, at once, the message that is needed next: it had been dropped. */
CCI_API void cci_rel_invite(cci_rel_t *rel) {
    if (rel->reliable) cci__rel_nack(rel, rel->expected, CCI_ERR_RNR);
}

/* Forgets packets that nobody waits for: those that only wanted to be acknowledged. */
CCI_API void cci_rel_forget(cci_rel_t *rel) {
    if (!cci__list_empty(&rel->items)) return;
    cci__rel_free_records(rel);
    rel->probing = 0;
}

/* A time in microseconds, rounded up. */
static uint32_t cci__rel_us(uint64_t ns) {
    return (uint32_t)cci__min64((ns + 999) / 1000, UINT32_MAX);
}

/* Writes down what must outlive a pause. Only when idle, and once: the numbers of packets are forgotten. A packet that
 * is late from before counts as seen. */
CCI_API void cci_rel_end(cci_rel_t *rel, cci_rel_state_t *state) {
    state->next_number = rel->next_number;
    state->floor_number = rel->number_count ? rel->numbers[rel->number_count - 1].hi : rel->floor_number;
    state->next_sequence = rel->next_sequence;
    state->expected_sequence = rel->sequence_count ? rel->sequences[rel->sequence_count - 1].hi : rel->expected;
    state->srtt_us = cci__rel_us(rel->srtt_ns);
    state->rttvar_us = cci__rel_us(rel->rttvar_ns);
    state->min_rtt_us = rel->min_rtt_ns == CCI__NEVER ? 0 : cci__rel_us(rel->min_rtt_ns);
    cci__rel_free_late(rel);
    state->mtu = (uint16_t)rel->mtu;
    state->unsure = rel->unsure;
    CCI__REL_ECN(state->no_ecn = rel->codepoint == 0;)
    cci__rel_free_sequences(rel);
    if (rel->number_capacity > CCI__REL_FEW_NUMBERS) {
        cci__list_append(&rel->pool->numbers, &((cci_rel_numbers_t *)(void *)rel->numbers)->node);
        rel->numbers = rel->few_numbers;
        rel->number_capacity = CCI__REL_FEW_NUMBERS;
    }
    rel->number_count = 0;
}

/* Is there nothing but messages, writes and reads that are not done? */
CCI_API int cci_rel_can_park(const cci_rel_t *rel) {
    const cci_list_t *node;
    if (!rel->reliable || rel->early || !cci__list_empty(&rel->parts) || rel->sequence_count ||
        cci__list_empty(&rel->items) || (rel->ordered && rel->by.gated))
        return 0;
    for (node = rel->items.next; node != &rel->items; node = node->next) {
        const cci_rel_item_t *item = CCI__CONTAINER(node, const cci_rel_item_t, node);
        if (item->flags & CCI__ITEM_VOID) return 0;
    }
    return 1;
}

/* The peer doesn't answer, and others need the memory: keeps only what is needed to repeat, messages, writes and
 * reads, which the other layer stops before and starts again after cci_rel_resume().
 * cci_rel_can_park() has said that there is no more. Returns the first of them, for cci_rel_resume(); the others follow
 * in a ring. cci_rel_end() is next. */
CCI_API cci_rel_item_t *cci_rel_park(cci_rel_t *rel) {
    cci_list_t *node, *first = rel->items.next;
    CCI_ASSERT(cci_rel_can_park(rel));
    for (node = first; node != &rel->items; node = node->next) {
        cci_rel_item_t *item = CCI__CONTAINER(node, cci_rel_item_t, node);
        cci__list_remove(&item->queue);
        item->since_ns = cci__max64(item->since_ns, rel->progress_ns);
        item->pieces = 0;
        item->sent = item->fragment = 0;
        item->bulk_sent = 0;
        item->flags &= ~(CCI__ITEM_QUEUED | CCI__ITEM_SENT);
        rel->unsure |= (item->flags & CCI__ITEM_ANSWER) != 0; /* its acknowledgement goes again, too */
    }
    cci__rel_free_records(rel);
    rel->ack_count = rel->nack_count = rel->ping = 0; /* what is not acknowledged comes again */
    cci__list_remove(&rel->items);
    return CCI__CONTAINER(first, cci_rel_item_t, node);
}

static void cci__rel_enqueue(cci_rel_t *rel, cci_rel_item_t *item);

/* After cci_rel_begin(): goes on with what was kept. The peer has not answered: one packet tries the path. */
CCI_API void cci_rel_resume(cci_rel_t *rel, cci_rel_item_t *first) {
    const cci_rel_item_t *follow = NULL;
    cci_list_t *node;
    cci__list_insert(&first->node, &rel->items);
    for (node = rel->items.next; node != &rel->items; node = node->next) {
        cci_rel_item_t *item = CCI__CONTAINER(node, cci_rel_item_t, node);
        if (item->frames)
            rel->block_count++;
        else
            rel->bulk_count++;
        if (item->capacity > CCI__REL_SMALL) ++*cci__rel_larger_count(rel, item);
        rel->rma_open += (item->flags & CCI__ITEM_RMA) != 0;
        rel->want_mtu |= item->kind == CCI__ITEM_BULK;
        if (item->timeout_us)
            rel->expire_ns = cci__min64(rel->expire_ns, item->since_ns + (uint64_t)item->timeout_us * 1000);
        if (item == follow)
            cci__list_append(&rel->follows, &item->queue);
        else if (item->flags & CCI__ITEM_HELD)
            cci__list_append(&rel->held, &item->queue);
        else if (!(item->flags & CCI__ITEM_DONE) && item->kind != CCI__ITEM_EXTERN)
            cci__rel_enqueue(rel, item);
        follow = item->kind == CCI__ITEM_EXTERN ? item->follow : NULL;
    }
    rel->run_limit = 0;
    rel->probes = 2;
    rel->flow.window = 2 * (uint64_t)rel->mtu;
    rel->progress_ns = 0;
}

/* When the time-out of what was kept is over. */
CCI_API uint64_t cci_rel_parked_until(const cci_rel_item_t *first) {
    return first->timeout_us ? first->since_ns + (uint64_t)first->timeout_us * 1000 : CCI__NEVER;
}

/* ==================================================================================================================
 * >>rel-issue
 *
 * What the program issues becomes items, and items end.
 *   The walk of a message: cci_rel_send(), or cci_rel_join() in a stream; the run that it joins, or a new item; the
 * queue `runs`, or `held` behind a fence. An item ends in cci__rel_finish(), in order on an ordered connection, and
 * with it the operations that wait for it.
 *   Parts: what the program issues; items come to their end.
 * ================================================================================================================== */

/* ---- what the program issues ---- */

static void cci__rel_attach(cci_rel_item_t *item, cci_rel_op_t *op, uint64_t sequence) {
    cci_rel_link_t *link;
    if (!op) return;
    CCI_ASSERT(op->parts < 2);
    link = &op->link[op->parts++];
    link->next = NULL;
    link->op = op;
    link->sequence = sequence;
    *item->ops_tail = link;
    item->ops_tail = &link->next;
}

static void cci__rel_enqueue(cci_rel_t *rel, cci_rel_item_t *item) {
    cci_list_t *queue = item->kind == CCI__ITEM_BULK ? &rel->bulks : &rel->runs, *before = queue;
    cci__list_remove(&item->queue);
    if (item->flags & CCI__ITEM_HELD) /* it waited while later ones were queued */
        for (before = queue->next; before != queue; before = before->next)
            if (CCI__CONTAINER(before, cci_rel_item_t, queue)->first > item->first) break;
    item->flags = (item->flags & ~CCI__ITEM_HELD) | CCI__ITEM_QUEUED;
    cci__list_insert(before, &item->queue);
}

static void cci__rel_hold(cci_rel_t *rel, cci_rel_item_t *item) {
    item->flags |= CCI__ITEM_HELD;
    cci__list_append(&rel->held, &item->queue);
}

/* The run at the end of the queue, if a frame of `need` bytes can join it: the run may have `limit`. */
static inline cci_rel_item_t *cci__rel_open_run(cci_rel_t *rel, uint32_t need, uint32_t limit, uint64_t now_ns) {
    cci_rel_item_t *item = CCI__CONTAINER(rel->runs.prev, cci_rel_item_t, queue);
    if (&item->queue == &rel->runs || item->kind != CCI__ITEM_RUN || item->sent != 0 || item->fragment != 0 ||
        item->length + need > limit || item->first + item->count != rel->next_sequence ||
        item->node.next != &rel->items || (item->flags & CCI__ITEM_VOID) || item->timeout_us != rel->timeout_us ||
        (item->timeout_us && now_ns - item->since_ns >= (uint64_t)item->timeout_us * 60))
        return NULL;
    if (CCI__UNLIKELY(item->length + need > item->capacity)) { /* a run of small messages becomes a full packet */
        if (!cci__rel_has_larger(rel, item->length + need)) return NULL;
        cci__rel_enlarge(rel, item, item->length + need);
    }
    return item;
}

/* The run that a frame of `need` bytes can join, or a new one; NULL if the pool is empty. */
static cci_rel_item_t *cci__rel_room(cci_rel_t *rel, uint32_t need, uint64_t now_ns) {
    cci_rel_item_t *item = cci__rel_open_run(rel, need, rel->run_limit, now_ns);
    if (item) return item;
    if (rel->run_limit == 0) { /* something was delivered: this may be an answer */
        item = cci__rel_open_run(rel, need, cci__rel_answer_limit(rel), now_ns);
        if (item) {
            cci__rel_note_answer(rel, item);
            return item;
        }
    }
    if (!cci__list_empty(&rel->runs))
        rel->want_mtu = 1; /* more is waiting than fits into a packet: larger ones would help */
    item = cci__rel_new_item(rel, CCI__ITEM_RUN, need, now_ns);
    if (item) {
        cci__rel_enqueue(rel, item);
        if (need + CCI_REL_HEADER > rel->mtu) rel->want_mtu = 1;
    }
    return item;
}

static uint8_t *cci__rel_frame(uint8_t *at, uint8_t type, uint8_t flags, uint32_t length, uint64_t sequence) {
    at[0] = type;
    at[1] = flags;
    cci__store16(at + 2, length);
    cci__store32(at + 4, (uint32_t)sequence);
    return at + 8;
}

/* Copies a message of `length` bytes to the end of a run. */
static void cci__rel_append(cci_rel_t *rel, cci_rel_item_t *item, const struct iovec *data, uint32_t count,
                            uint32_t length, uint8_t flags, cci_rel_op_t *op) {
    uint32_t size = 8 + cci__pad8(length), i;
    uint8_t *at;
    CCI_ASSERT(item->length + size <= item->capacity && item->first + item->count == rel->next_sequence);
    at = cci__rel_frame(item->frames + item->length, CCI__FRAME_MESSAGE, flags, length, rel->next_sequence);
    if (length & 7)
        memset(item->frames + item->length + size - 8, 0, 8); /* what goes out is ours, not what lay there */
    for (i = 0; i < count; i++) {
        if (data[i].iov_len) memcpy(at, data[i].iov_base, data[i].iov_len);
        at += data[i].iov_len;
    }
    item->length += size;
    item->count++;
    cci__rel_attach(item, op, rel->next_sequence++);
}

/* A message that one item carries, of `length` bytes. */
static void cci__rel_single(cci_rel_t *rel, cci_rel_item_t *item, uint32_t length, cci_rel_op_t *op) {
    cci__rel_frame(item->head, CCI__FRAME_MESSAGE, 0, length, rel->next_sequence);
    item->length = 8 + cci__pad8(length);
    item->count = 1;
    if (item->length + CCI_REL_HEADER > rel->mtu) rel->want_mtu = 1;
    cci__rel_attach(item, op, rel->next_sequence++);
    cci__rel_enqueue(rel, item);
}

/* Bytes of each piece of a message, of which `space` fit into a packet: pieces of one size, and as few as can be. */
static uint32_t cci__rel_even(uint32_t length, uint32_t space) {
    uint32_t count = (length + space - 1) / space;
    return cci__pad8((length + count - 1) / count);
}

/* Copies a message into pieces of `even` bytes, each behind room for its packet's head, the last filled up with
 * zeros. */
static void cci__rel_fill_slots(uint8_t *slot, uint32_t even, const struct iovec *data, uint32_t count) {
    uint32_t used = 0, i;
    slot += CCI__SLOT_HEAD;
    for (i = 0; i < count; i++) {
        const uint8_t *from = (const uint8_t *)data[i].iov_base;
        size_t rest = data[i].iov_len;
        while (rest > 0) {
            uint32_t step;
            if (used == even) {
                slot += even + CCI__SLOT_HEAD;
                used = 0;
            }
            step = (uint32_t)cci__min64(rest, even - used);
            memcpy(slot + used, from, step);
            used += step;
            from += step;
            rest -= step;
        }
    }
    memset(slot + used, 0, even - used);
}

/* Sends a message of more than one packet so that nothing of it need be copied again. 0: its pieces don't fit. */
static int cci__rel_send_slots(cci_rel_t *rel, const struct iovec *data, uint32_t count, uint32_t length,
                               cci_rel_op_t *op, uint64_t now_ns) {
    uint32_t space = rel->mtu - CCI__SLOT_HEAD - (rel->unsure ? CCI__REL_ACK_SMALL : 0);
    uint32_t even = cci__rel_even(length, space & ~7u), pieces = (length + even - 1) / even;
    cci_rel_item_t *item;
    if ((even + CCI__SLOT_HEAD) * pieces > rel->pool->block_size) return 0;
    item = cci__rel_new_item(rel, CCI__ITEM_SLOTS, (even + CCI__SLOT_HEAD) * pieces, now_ns);
    if (!item) return 0;
    item->even = even;
    cci__rel_fill_slots(item->frames, even, data, count);
    cci__rel_single(rel, item, length, op);
    return 1;
}

/* Sends a message that nobody waits for with others that wait to leave. 0, and nothing has happened, where it can't
 * join them. */
CCI_API int cci_rel_join(cci_rel_t *rel, const struct iovec *data, uint32_t length, uint64_t now_ns) {
    cci_rel_item_t *item = cci__rel_open_run(rel, 8 + cci__pad8(length), rel->run_limit, now_ns);
    if (!item) return 0;
    cci__rel_append(rel, item, data, 1, length, 0, NULL);
    return 1;
}

/* Sends a message. CCI_ENOBUFS, and nothing has happened, when the pool is empty. */
CCI_API int cci_rel_send(cci_rel_t *rel, const struct iovec *data, uint32_t count, uint32_t length, cci_rel_op_t *op,
                         uint64_t now_ns) {
    cci_rel_item_t *item;
    if (rel->pool->slots && rel->reliable && length + 8 + CCI_REL_HEADER > rel->mtu &&
        cci__rel_send_slots(rel, data, count, length, op, now_ns))
        return CCI_SUCCESS;
    item = cci__rel_room(rel, 8 + cci__pad8(length), now_ns);
    if (!item) return CCI_ENOBUFS;
    cci__rel_append(rel, item, data, count, length, 0, op);
    return CCI_SUCCESS;
}

/* Sends a message of CCI_REL_LENT_MIN bytes or more from where it is: `data` stays untouched until it completes.
 * CCI_ENOBUFS, and nothing has happened, when the pool is empty. */
CCI_API int cci_rel_lend(cci_rel_t *rel, const void *data, uint32_t length, cci_rel_op_t *op, uint64_t now_ns) {
    cci_rel_item_t *item = cci__rel_new_item(rel, CCI__ITEM_LENT, 0, now_ns);
    if (!item) return CCI_ENOBUFS;
    item->bulk.data = (const uint8_t *)data;
    cci__rel_single(rel, item, length, op);
    return CCI_SUCCESS;
}

#ifndef CCI_NO_WAKE
/* Marks the message of `length` bytes that was issued last, and of which nothing has left. */
CCI_API void cci_rel_mark_wake(cci_rel_t *rel, uint32_t length) {
    cci_rel_item_t *item = CCI__CONTAINER(rel->items.prev, cci_rel_item_t, node);
    uint8_t *frame = item->kind == CCI__ITEM_RUN ? item->frames + item->length - (8 + cci__pad8(length)) : item->head;
    CCI_ASSERT(frame[0] == CCI__FRAME_MESSAGE);
    frame[1] |= CCI__FRAME_WAKE;
}
#endif

/* Sends a message that leaves when all RMAs before it are done. CCI_ENOBUFS, and nothing has happened, when the pool
 * is empty. */
CCI_API int cci_rel_send_fenced(cci_rel_t *rel, const struct iovec *data, uint32_t count, uint32_t length,
                                cci_rel_op_t *op, uint64_t now_ns) {
    cci_rel_item_t *item;
    if (rel->rma_open == 0 && cci__list_empty(&rel->held)) return cci_rel_send(rel, data, count, length, op, now_ns);
    item = cci__rel_new_item(rel, CCI__ITEM_RUN, 8 + cci__pad8(length), now_ns);
    if (!item) return CCI_ENOBUFS;
    cci__rel_append(rel, item, data, count, length, 0, op);
    if (item->length + CCI_REL_HEADER > rel->mtu) rel->want_mtu = 1;
    item->flags |= CCI__ITEM_FENCE;
    cci__rel_hold(rel, item);
    return CCI_SUCCESS;
}

static void cci__rel_open_rma(cci_rel_t *rel, cci_rel_item_t *item) {
    if (!(item->flags & CCI__ITEM_RMA)) rel->rma_open++;
    item->flags |= CCI__ITEM_RMA;
}

static void cci__rel_write_bulk(uint8_t *at, const cci_rel_bulk_t *bulk, uint64_t sequence, uint64_t offset,
                                uint32_t length) {
    at = cci__rel_frame(at, CCI__FRAME_BULK, 0, length, sequence);
    cci__store64(at, bulk->key);
    cci__store32(at + 8, bulk->region);
    cci__store32(at + 12, 0);
    cci__store64(at + 16, bulk->remote_offset);
    cci__store64(at + 24, offset);
    cci__store64(at + 32, bulk->length);
}

/* Writes memory, and sends the message `data` behind it if `message` is set. With `fence`, not before all earlier
 * RMAs are done. CCI_ENOBUFS, and nothing has happened, when the pool is empty. */
CCI_API int cci_rel_write(cci_rel_t *rel, const cci_rel_bulk_t *bulk, int message, const struct iovec *data,
                          uint32_t length, int fence, cci_rel_op_t *op, uint64_t now_ns) {
    cci_rel_item_t *item;
    int hold = !cci__list_empty(&rel->held) || (fence && rel->rma_open > 0);
    /* goes into the same run, so that both are refused together */
    uint32_t behind = message ? 8 + cci__pad8(length) : 0;
    /* one is enough, if it is new */
    if (message && !cci__rel_has_blocks(rel, cci__min32(2, rel->pool->block_limit), behind)) return CCI_ENOBUFS;
    if (!hold && bulk->length <= CCI__REL_INLINE &&
        bulk->length + 56 + behind + CCI_REL_HEADER + CCI__REL_ACK_SMALL + CCI__REL_NACKS_MOST +
                (rel->ordered ? 0 : CCI__REL_TAKEN_MOST) <=
            cci__min32(rel->mtu, rel->pool->base_mtu)) { /* so it always fits, whatever stands in front of it */
        uint32_t size = 48 + cci__pad8((uint32_t)bulk->length);
        uint8_t *at;
        item = cci__rel_room(rel, size + behind, now_ns);
        if (!item) return CCI_ENOBUFS;
        at = item->frames + item->length;
        cci__rel_write_bulk(at, bulk, rel->next_sequence, 0, (uint32_t)bulk->length);
        memcpy(at + 48, bulk->data, (size_t)bulk->length);
        memset(at + 48 + bulk->length, 0, size - 48 - (size_t)bulk->length);
        item->length += size;
    } else {
        item = cci__rel_new_item(rel, CCI__ITEM_BULK, 0, now_ns);
        if (!item) return CCI_ENOBUFS;
        item->bulk = *bulk;
        item->flags |= (fence ? CCI__ITEM_FENCE : 0u) | (message ? CCI__ITEM_PAIR : 0u);
        rel->want_mtu = 1;
    }
    item->count++;
    cci__rel_attach(item, op, rel->next_sequence++);
    if (item->kind == CCI__ITEM_BULK) {
        if (hold)
            cci__rel_hold(rel, item);
        else
            cci__rel_enqueue(rel, item);
    }
    if (!hold) cci__rel_open_rma(rel, item);
    if (message) /* there is a block: see above */
        cci__rel_append(rel, cci__rel_room(rel, 8 + cci__pad8(length), now_ns), data, 1, length, CCI__FRAME_AFTER, op);
    return CCI_SUCCESS;
}

/* Gives an operation that another layer carries out its place in the order. The sink's start() is called when it may
 * begin, perhaps at once; the other layer calls cci_rel_extern_done() at its end. The message `data` follows when it is
 * done, if `message` is set. */
CCI_API int cci_rel_extern(cci_rel_t *rel, int message, const struct iovec *data, uint32_t length, int fence,
                           cci_rel_op_t *op, void *user_data, cci_rel_item_t **made, uint64_t now_ns) {
    cci_rel_item_t *item, *follow;
    int hold = !cci__list_empty(&rel->held) || (fence && rel->rma_open > 0);
    if (message && !cci__rel_has_blocks(rel, 1, 8 + cci__pad8(length))) return CCI_ENOBUFS;
    item = cci__rel_new_item(rel, CCI__ITEM_EXTERN, 0, now_ns);
    if (!item) return CCI_ENOBUFS;
    *made = item;
    item->user_data = user_data;
    item->flags |= fence ? CCI__ITEM_FENCE : 0u;
    cci__rel_attach(item, op, rel->next_sequence);
    if (message) {
        follow = cci__rel_new_item(rel, CCI__ITEM_RUN, 8 + cci__pad8(length), now_ns);
        cci__rel_append(rel, follow, data, 1, length, 0, op);
        follow->flags |= CCI__ITEM_HELD;
        cci__list_append(&rel->follows, &follow->queue);
        item->follow = follow;
    }
    if (hold) {
        cci__rel_hold(rel, item);
    } else {
        cci__rel_open_rma(rel, item);
        rel->pool->sink->start(rel->user, item);
    }
    return CCI_SUCCESS;
}

/* ---- items come to their end ---- */

static void cci__rel_open_gate(cci_rel_t *rel);

/* Lets go what waited for a fence. */
static void cci__rel_release_held(cci_rel_t *rel) {
    int first = 1;
    while (rel->rma_open == 0 || !first) {
        cci_rel_item_t *item;
        if (cci__list_empty(&rel->held)) return;
        item = CCI__CONTAINER(rel->held.next, cci_rel_item_t, queue);
        if (!first && (item->flags & CCI__ITEM_FENCE) && rel->rma_open > 0) return;
        first = 0;
        cci__list_remove(&item->queue);
        if (item->kind != CCI__ITEM_RUN) cci__rel_open_rma(rel, item);
        if (item->kind == CCI__ITEM_EXTERN) {
            item->flags &= ~CCI__ITEM_HELD;
            rel->pool->sink->start(rel->user, item);
        } else {
            cci__rel_enqueue(rel, item);
        }
    }
}

static void cci__rel_complete_ops(cci_rel_t *rel, cci_rel_item_t *item) {
    cci_rel_link_t *link = item->ops;
    int32_t status = item->status;
    item->ops = NULL;
    item->ops_tail = &item->ops;
    while (link) {
        cci_rel_link_t *next = link->next;
        cci_rel_op_t *op = link->op;
        if (op->status == CCI_SUCCESS && link->sequence >= item->first) op->status = status;
        if (--op->parts == 0) rel->pool->sink->complete(rel->user, op);
        link = next;
    }
}

/* The item is to be withdrawn, but its first messages may have gone in a packet of their own, and have been taken. */
static void cci__rel_complete_first(cci_rel_t *rel, cci_rel_item_t *item) {
    while (item->ops && item->ops->sequence < rel->taken && item->kind == CCI__ITEM_RUN) {
        cci_rel_op_t *op = item->ops->op;
        item->ops = item->ops->next;
        if (--op->parts == 0) rel->pool->sink->complete(rel->user, op);
    }
    if (!item->ops) item->ops_tail = &item->ops;
}

static void cci__rel_retire(cci_rel_t *rel, cci_rel_item_t *item) {
    int was_rma = (item->flags & CCI__ITEM_RMA) != 0;
    cci__list_remove(&item->queue);
    cci__rel_complete_ops(rel, item);
    cci__rel_free_item(rel, item);
    if (was_rma && --rel->rma_open == 0 && !cci__list_empty(&rel->held)) cci__rel_release_held(rel);
}

/* Ordered: tells what waits for nothing but that the peer hears of withdrawals: those themselves, and operations on
 * memory, or of another layer, that are done. (A message behind a withdrawal does wait: the peer delivers it when it
 * has heard.) */
static void cci__rel_tell(cci_rel_t *rel) {
    cci_list_t *node;
    for (node = rel->items.next; node != &rel->items; node = node->next) {
        cci_rel_item_t *item = CCI__CONTAINER(node, cci_rel_item_t, node);
        int is_memory = item->kind == CCI__ITEM_EXTERN || item->kind == CCI__ITEM_BULK;
        if (!(item->flags & CCI__ITEM_VOID) && !(is_memory && (item->flags & CCI__ITEM_DONE))) return;
        cci__rel_complete_ops(rel, item);
    }
}

/* The peer has all of the item. On an ordered connection it completes after all earlier ones. */
static void cci__rel_finish(cci_rel_t *rel, cci_rel_item_t *item) {
    item->flags |= CCI__ITEM_DONE;
    if (!rel->ordered) {
        cci__rel_retire(rel, item);
        return;
    }
    /* A fence looks at what is under way, not at what waits for its turn to be reported. */
    if (item->flags & CCI__ITEM_RMA) {
        item->flags &= ~CCI__ITEM_RMA;
        if (--rel->rma_open == 0 && !cci__list_empty(&rel->held)) cci__rel_release_held(rel);
    }
    while (!cci__list_empty(&rel->items)) {
        item = CCI__CONTAINER(rel->items.next, cci_rel_item_t, node);
        if (!(item->flags & CCI__ITEM_DONE)) {
            if (CCI__UNLIKELY((item->flags & CCI__ITEM_VOID) && !item->ops)) cci__rel_tell(rel);
            return;
        }
        cci__rel_retire(rel, item);
    }
}

/* Forgets all packets of items that are LEAVING; what they carried will not be repeated. */
static void cci__rel_forget_leaving(cci_rel_t *rel) {
    cci_list_t *node, *next;
    for (node = rel->flight.next; node != &rel->flight; node = node->next) {
        cci_rel_sent_t *sent = CCI__CONTAINER(node, cci_rel_sent_t, node);
        if (sent->item && (sent->item->flags & CCI__ITEM_LEAVING)) sent->item = NULL;
    }
    for (node = rel->lost.next; node != &rel->lost; node = next) {
        cci_rel_sent_t *sent = CCI__CONTAINER(node, cci_rel_sent_t, node);
        next = node->next;
        if (sent->item->flags & CCI__ITEM_LEAVING) cci__rel_free_record(rel, sent);
    }
}

static void cci__rel_forget_pieces(cci_rel_t *rel, cci_rel_item_t *item) {
    if (!item->pieces) return;
    item->flags |= CCI__ITEM_LEAVING;
    cci__rel_forget_leaving(rel);
    item->flags &= ~CCI__ITEM_LEAVING;
    item->pieces = 0;
}

/* Withdraws an item: its operations end with `status` in their turn, and the receiver is told to go on without it.
 * `behind`: where its place among those that have been withdrawn is looked for. */
static void cci__rel_withdraw_behind(cci_rel_t *rel, cci_rel_item_t *item, int status, cci_list_t *behind) {
    cci_list_t *before = item->node.prev;
    if (before != &rel->items && CCI__CONTAINER(before, cci_rel_item_t, node)->follow == item)
        CCI__CONTAINER(before, cci_rel_item_t, node)->follow = NULL; /* the other layer's operation ends without it */
    cci__rel_forget_pieces(rel, item);
    cci__list_remove(&item->queue);
    if (rel->taken - item->first < item->count) { /* of a run the first messages may have been taken: they succeed */
        item->count -= (uint32_t)(rel->taken - item->first);
        item->first = rel->taken;
    }
    item->status = status;
    item->flags &= ~(CCI__ITEM_SENT | CCI__ITEM_HELD | CCI__ITEM_QUEUED | CCI__ITEM_LEAVING);
    item->flags |= CCI__ITEM_VOID | CCI__ITEM_QUEUED;
    for (before = behind->next; before != &rel->runs; before = before->next) { /* first, since the receiver may wait */
        const cci_rel_item_t *other = CCI__CONTAINER(before, cci_rel_item_t, queue);
        if (!(other->flags & CCI__ITEM_VOID) || other->first > item->first)
            break; /* in order among themselves: what a fence waits for may be one of them */
    }
    cci__list_insert(before, &item->queue);
}

static void cci__rel_withdraw(cci_rel_t *rel, cci_rel_item_t *item, int status) {
    cci__rel_withdraw_behind(rel, item, status, &rel->runs);
}

/* The operation of another layer is over. */
CCI_API void cci_rel_extern_done(cci_rel_t *rel, cci_rel_item_t *item, int status) {
    cci_rel_item_t *follow = item->follow;
    item->status = status;
    item->follow = NULL;
    if (follow) {
        if (status == CCI_SUCCESS)
            cci__rel_enqueue(rel, follow);
        else
            cci__rel_withdraw(rel, follow, status);
    }
    cci__rel_finish(rel, item);
    if (!rel->ordered) return;
    if (!cci__list_empty(&rel->items)) /* the peer may have taken a part of what is first now, and answer that */
        cci__rel_complete_first(rel, CCI__CONTAINER(rel->items.next, cci_rel_item_t, node));
    cci__rel_open_gate(rel);
}

/* The program or the peer ends the connection: everything pending completes with `status`, in order. */
CCI_API void cci_rel_abort(cci_rel_t *rel, int status) {
    cci_list_t *node;
    int gap = 0;
    for (node = rel->items.next; node != &rel->items; node = node->next)
        CCI__CONTAINER(node, cci_rel_item_t, node)->pieces = 0; /* all records go: that is enough */
    cci__rel_free_records(rel);
    rel->rma_open = UINT32_MAX / 2; /* nothing held starts any more */
    while (!cci__list_empty(&rel->items)) {
        cci_rel_item_t *item = CCI__CONTAINER(rel->items.next, cci_rel_item_t, node);
        gap |= !(item->flags & CCI__ITEM_DONE) && item->kind != CCI__ITEM_EXTERN;
        /* What the peer has behind a gap that nobody fills any more is not delivered. */
        if ((gap || !(item->flags & CCI__ITEM_DONE)) && item->status == CCI_SUCCESS) item->status = status;
        cci__rel_retire(rel, item);
    }
    rel->rma_open = 0;
    while (rel->early) {
        cci_rel_run_t *run = rel->early;
        rel->early = run->next;
        rel->pool->sink->drop(rel->user, run->buffer);
        cci__rel_hold_buffer(rel, -1);
    }
    while (!cci__list_empty(&rel->parts))
        cci__rel_free_part(rel, CCI__CONTAINER(rel->parts.next, cci_rel_part_t, node));
    cci__rel_free_sequences(rel);
    if (rel->ordered) cci__rel_open_gate(rel);
    rel->ack_count = rel->nack_count = rel->ping = 0;
    rel->expire_ns = rel->loss_ns = rel->ack_at_ns = CCI__NEVER;
}

/* ==================================================================================================================
 * >>rel-send
 *
 * Items become packets. cci_rel_output() makes one packet, or says that nothing may leave now; cci_rel_deadline() in
 * >>rel-time says when to ask again.
 *   The walk: is the window open, and is it time (pacing); what was lost first, then new items in order; the
 * packet's head gets an ACK if one is owed; cci__rel_track() remembers the packet until it is acknowledged.
 *   Invariant: each packet that wants to be acknowledged has a record in `flight`, in the order of packet numbers.
 * ================================================================================================================== */

/* Longest time that a peer may need to answer, before there is a sample: what the user learnt of the path stands in
 * rttvar_ns. */
static uint64_t cci__rel_first_pto_ns(const cci_rel_t *rel) {
    return rel->rttvar_ns ? rel->rttvar_ns : 1000 * CCI__MS;
}

/* The same at any time: twice as long with each time-out in a row, up to a second or four times what the path takes,
 * whichever is more. */
static uint64_t cci__rel_pto_ns(const cci_rel_t *rel) {
    /* Earlier than RFC 9002 by the peer's delay of acknowledgements, which is short here: where one message waits
     * for the answer to another, half of all losses are known by this time-out alone. */
    uint64_t margin = cci__max64(4 * rel->rttvar_ns, cci__max64(rel->srtt_ns / 8, 200000));
    uint64_t pto = rel->srtt_ns ? rel->srtt_ns + margin + CCI__REL_ACK_DELAY_NS : cci__rel_first_pto_ns(rel);
    pto = cci__max64(pto, 2 * CCI__MS);
    if (CCI__LIKELY(rel->probes == 0)) return pto;
    return cci__min64(pto << cci__min32(rel->probes, 10), cci__max64(4 * pto, 1000 * CCI__MS));
}

/* How long the peer's answer may take, for all that is known of the path. */
CCI_API uint64_t cci_rel_answer_ns(const cci_rel_t *rel) {
    return rel->srtt_ns ? rel->srtt_ns + 4 * rel->rttvar_ns : cci__rel_first_pto_ns(rel);
}

/* When it is too late for an acknowledgement. The tries of a message that is refused are packets, too, which must not
 * put off for ever what was lost before them: then each packet has its own time. */
static uint64_t cci__rel_pto_at_ns(const cci_rel_t *rel) {
    const cci_rel_sent_t *oldest = CCI__CONTAINER(rel->flight.next, const cci_rel_sent_t, node);
    if (cci__list_empty(&rel->flight)) return CCI__NEVER;
    return (rel->rnr ? oldest->time_ns : rel->last_sent_ns) + cci__rel_pto_ns(rel);
}

/* Bytes that may be under way. On a short path all of them may wait in the receiver's queue, where a packet costs up to
 * twice its bytes, and where other peers' packets want room too; besides, what waits there long leaves the cache. */
static uint64_t cci__rel_limit(const cci_rel_t *rel) {
    return rel->min_rtt_ns < 2 * CCI__MS || rel->min_rtt_ns == CCI__NEVER
               ? cci__min64(rel->flow.window, rel->peer_window / 8)
               : rel->flow.window;
}

/* Does what is under way leave no room for a packet? One may leave all the same when nothing is. */
static int cci__rel_is_full(const cci_rel_t *rel) {
    return rel->in_flight + rel->mtu > cci__rel_limit(rel);
}

/* Writes an ACK of what has arrived into `at`; returns its bytes, 0 if it needs more than `room`. */
static uint32_t cci__rel_write_ack(cci_rel_t *rel, uint8_t *at, uint32_t room, uint64_t now_ns) {
    uint32_t i = rel->number_count, more = 0, size;
    uint64_t lo, length, delay = (now_ns - cci__min64(rel->largest_ns, now_ns)) / 4000;
    if (i == 0 || room < 16) return 0;
    lo = rel->numbers[--i].lo;
    at[0] = CCI__FRAME_ACK;
    cci__store16(at + 2, (uint32_t)cci__min64(delay, 0xffff));
    cci__store32(at + 4, (uint32_t)(rel->numbers[i].hi - 1));
    length = rel->numbers[i].hi - rel->numbers[i].lo;
    cci__store32(at + 8, (uint32_t)cci__min64(length, 0x7fffffff));
    cci__store32(at + 12, (uint32_t)rel->expected);
    if (CCI__REL_RANGES > CCI__REL_ACK_MORE + 1 && CCI__UNLIKELY(rel->low_range > 0) &&
        room >= 20 + 4 * CCI__REL_ACK_MORE) { /* with all its ranges, it may leave out others */
        i = cci__min32(i, rel->low_range - 1u + CCI__REL_ACK_MORE);
        rel->low_range = 0;
    }
    while (i > 0 && more < CCI__REL_ACK_MORE && 16 + 4 * more + 8 <= room) {
        uint64_t gap = lo - rel->numbers[i - 1].hi;
        length = rel->numbers[i - 1].hi - rel->numbers[i - 1].lo;
        if (gap > 0xffff) break;
        cci__store16(at + 16 + 4 * more, (uint32_t)gap);
        cci__store16(at + 18 + 4 * more, (uint32_t)cci__min64(length, 0xffff));
        more++;
        lo = rel->numbers[--i].lo;
        if (length > 0xffff) break; /* the highest of them are named: the others were long ago */
    }
    at[1] = (uint8_t)more;
    size = cci__pad8(16 + 4 * more);
    if (size > 16 + 4 * more) cci__store32(at + size - 4, 0);
    rel->ack_count = rel->ack_bytes = 0;
    rel->ack_now = 0;
    rel->ack_at_ns = CCI__NEVER;
    return size;
}

/* Begins a packet: takes a number and puts what is owed (acknowledgement, refusals) in front. `need`: bytes that
 * must still fit; an acknowledgement that would not leave them waits for the next packet. */
CCI_API void cci_rel_open_packet(cci_rel_t *rel, cci_rel_packet_t *packet, uint32_t need, uint64_t now_ns) {
    uint32_t room = rel->mtu > CCI_REL_HEADER + need ? rel->mtu - CCI_REL_HEADER - need : 0;
    packet->head_length = CCI_REL_HEADER;
    packet->body = NULL;
    packet->body_length = packet->pad_length = 0;
    packet->sent = NULL;
    packet->spent = NULL;
    packet->codepoint = rel->codepoint;
    packet->number = rel->next_number++;
    while (rel->nack_count > 0 && room >= 8) {
        uint8_t *at = packet->head + packet->head_length;
        rel->nack_count--;
        cci__rel_frame(at, CCI__FRAME_NACK, rel->nack_reasons[rel->nack_count], 0, rel->nacks[rel->nack_count]);
        packet->head_length += 8;
        room -= 8;
    }
    if (rel->ack_count > 0)
        packet->head_length +=
            cci__rel_write_ack(rel, packet->head + packet->head_length, cci__min32(room, 80), now_ns);
}

static uint32_t cci__rel_space(const cci_rel_t *rel, const cci_rel_packet_t *packet) {
    return rel->mtu - packet->head_length;
}

/* Remembers the packet until it is acknowledged. `sent` is a record of the pool, filled in as to what it carries. */
static void cci__rel_track(cci_rel_t *rel, cci_rel_packet_t *packet, cci_rel_sent_t *sent, uint64_t now_ns) {
    sent->number = packet->number;
    sent->time_ns = now_ns;
    sent->size = packet->head_length + packet->body_length + packet->pad_length;
    sent->in_flight = 1;
    rel->in_flight += sent->size;
    rel->last_sent_ns = now_ns;
    cci__list_append(&rel->flight, &sent->node);
    packet->sent = sent;
}

/* May it have one more record? */
static int cci__rel_record_share(const cci_rel_t *rel) {
    return cci__share_for_long(rel->record_count, rel->pool->record_free, rel->pool->record_total);
}

static cci_rel_sent_t *cci__rel_new_record(cci_rel_t *rel, cci_rel_item_t *item) {
    cci_rel_pool_t *pool = rel->pool;
    cci_rel_sent_t *sent;
    if (!cci__rel_record_share(rel) || !cci__rel_has(pool, &pool->records, CCI_REL_RECORDS)) return NULL;
    sent = CCI__CONTAINER(pool->records.next, cci_rel_sent_t, node);
    cci__list_remove(&sent->node);
    pool->record_free--;
    rel->record_count++;
    sent->item = item;
    sent->number = UINT64_MAX; /* until it is sent */
    sent->offset = 0;
    sent->length = sent->fragment = sent->size = 0;
    sent->is_fragment = sent->is_probe = sent->in_flight = 0;
    if (item) item->pieces++;
    return sent;
}

/* The frame at `offset`, its first 8 bytes at least. */
static const uint8_t *cci__rel_frame_at(const cci_rel_item_t *item, uint64_t offset) {
    return item->kind >= CCI__ITEM_LENT ? item->head : item->frames + offset;
}

static uint32_t cci__rel_frame_size(const uint8_t *frame) {
    return (frame[0] == CCI__FRAME_BULK ? 48u : 8u) + cci__pad8(cci__load16(frame + 2));
}

/* Bytes of whole frames from `offset` on that fit into `space`. */
static uint32_t cci__rel_fit(const cci_rel_item_t *item, uint32_t offset, uint32_t end, uint32_t space) {
    const uint8_t *frame = cci__rel_frame_at(item, offset);
    uint32_t fit = 0;
    if (end - offset <= space) return end - offset;
    while (fit < end - offset) {
        uint32_t size = cci__rel_frame_size(frame + fit);
        if (fit + size > space) break;
        fit += size;
    }
    return fit;
}

/* Finds the data of a message in SLOTS from `fragment` on, in the packet's place if there is nothing in the packet yet;
 * returns the bytes that lie there together. */
static uint32_t cci__rel_find_slot(cci_rel_packet_t *packet, const cci_rel_item_t *item, uint32_t fragment,
                                   const uint8_t **data) {
    uint32_t within = fragment % item->even;
    uint8_t *slot = item->frames + (size_t)(fragment / item->even) * (item->even + CCI__SLOT_HEAD);
    if (within == 0 && packet->head_length == CCI_REL_HEADER) packet->head = slot;
    *data = slot + CCI__SLOT_HEAD + within;
    return item->even - within;
}

/* Writes the piece of a message from `fragment` on that fits into the packet, as a FRAGMENT. Fragments are of one
 * size, the last filled up to it. Returns 0 if nothing fits. */
static int cci__rel_write_fragment(cci_rel_t *rel, cci_rel_packet_t *packet, cci_rel_item_t *item, cci_rel_sent_t *sent,
                                   uint32_t offset, uint32_t fragment) {
    const uint8_t *frame = cci__rel_frame_at(item, offset), *data;
    uint32_t space = cci__rel_space(rel, packet), length = cci__load16(frame + 2), rest = length - fragment, even;
    uint8_t *at;
    if (space < 16 + 64) return 0;
    space = (space - 16) & ~7u;
    if (item->kind == CCI__ITEM_SLOTS) {
        even = cci__min32(cci__rel_find_slot(packet, item, fragment, &data), space);
    } else {
        data = (item->kind == CCI__ITEM_LENT ? item->bulk.data : frame + 8) + fragment;
        even = item->even;
        if (sent->is_fragment && sent->length <= space) /* lost, and it still fits: there may be no record for a rest */
            even = sent->length;
        else if (fragment != item->fragment || fragment == 0 || even > space) /* first, lost, or another MTU */
            even = item->even = cci__rel_even(length, space);
    }
    at = packet->head + packet->head_length;
    if (rest >= even)
        rest = even;
    else if (fragment > 0 && even - rest < 64)
        packet->pad_length = even - rest;
    at = cci__rel_frame(at, CCI__FRAME_FRAGMENT, frame[1], rest, cci__load32(frame + 4));
    cci__store32(at, fragment);
    cci__store32(at + 4, length);
    packet->head_length += 16;
    packet->body = data;
    packet->body_length = rest;
    sent->offset = offset;
    sent->fragment = fragment;
    sent->length = rest;
    sent->is_fragment = 1;
    return 1;
}

/* Writes the piece of an item from `offset` (in its message from `fragment`) up to `end` that fits into the packet.
 * Sets sent's range and returns 1, or 0 if nothing fits. */
static int cci__rel_write_run(cci_rel_t *rel, cci_rel_packet_t *packet, cci_rel_item_t *item, cci_rel_sent_t *sent,
                              uint32_t offset, uint32_t fragment, uint32_t end) {
    uint32_t fit =
        fragment || item->kind == CCI__ITEM_SLOTS ? 0 : cci__rel_fit(item, offset, end, cci__rel_space(rel, packet));
    if (fit == 0 && cci__rel_frame_at(item, offset)[0] == CCI__FRAME_BULK) return 0; /* see cci_rel_write() */
    if (fit == 0) return cci__rel_write_fragment(rel, packet, item, sent, offset, fragment);
    if (item->kind == CCI__ITEM_LENT) {
        memcpy(packet->head + packet->head_length, item->head, 8);
        packet->head_length += 8;
        packet->body = item->bulk.data;
        packet->body_length = cci__load16(item->head + 2);
        packet->pad_length = fit - 8 - packet->body_length; /* the next packet of a batch stays aligned */
    } else {
        packet->body = item->frames + offset;
        packet->body_length = fit;
    }
    sent->offset = offset;
    sent->length = fit;
    sent->is_fragment = 0;
    return 1;
}

static int cci__rel_write_segment(cci_rel_t *rel, cci_rel_packet_t *packet, cci_rel_item_t *item, cci_rel_sent_t *sent,
                                  uint64_t offset, uint64_t end) {
    uint32_t space = cci__rel_space(rel, packet), length;
    if (space < 48 + 64) return 0;
    length = (space - 48) & ~7u;
    length = (uint32_t)cci__min64(length, cci__min64(end - offset, 0xfff8));
    cci__rel_write_bulk(packet->head + packet->head_length, &item->bulk, item->first, offset, length);
    packet->head_length += 48;
    packet->body = item->bulk.data + offset;
    packet->body_length = length;
    sent->offset = offset;
    sent->length = length;
    return 1;
}

/* Tells the receiver that an item was withdrawn. On an ordered connection the first of several tells it of all: what
 * lies there behind it is not to be delivered meanwhile. */
static void cci__rel_write_void(const cci_rel_t *rel, cci_rel_packet_t *packet, const cci_rel_item_t *item) {
    const cci_rel_item_t *last = item, *other = CCI__CONTAINER(item->node.prev, const cci_rel_item_t, node);
    const cci_list_t *node = item->node.next;
    uint8_t *at = packet->head + packet->head_length;
    int is_first = rel->ordered && (item->node.prev == &rel->items || !(other->flags & CCI__ITEM_VOID));
    for (; is_first && node != &rel->items; node = node->next) {
        other = CCI__CONTAINER(node, const cci_rel_item_t, node);
        if (other->kind == CCI__ITEM_EXTERN) continue;
        if (!(other->flags & CCI__ITEM_VOID) || other->first != last->first + last->count) break;
        last = other;
    }
    at = cci__rel_frame(at, CCI__FRAME_VOID, last->flags & CCI__ITEM_PAIR ? CCI__FRAME_AFTER : 0, 0, item->first);
    cci__store32(at, (uint32_t)(last->first - item->first) + last->count);
    cci__store32(at + 4, 0);
    packet->head_length += 16;
}

/* Writes a TAKEN of what has been delivered beyond `expected`. */
static void cci__rel_write_taken(const cci_rel_t *rel, cci_rel_packet_t *packet) {
    const cci_range_t *untold = rel->sequences + CCI__REL_SEQUENCES;
    uint8_t *at = packet->head + packet->head_length;
    uint32_t i, size = cci__rel_taken_size(rel);
    cci__store64(at + size - 8, 0);
    at = cci__rel_frame(at, CCI__FRAME_TAKEN, rel->untold, 0, rel->expected);
    for (i = 0; i < rel->untold; i++) {
        cci__store16(at + 4 * i, (uint32_t)(untold[i].lo - rel->expected));
        cci__store16(at + 4 * i + 2, (uint32_t)(untold[i].hi - rel->expected));
    }
    packet->head_length += size;
}

/* Begins a packet with something of the item, `need` bytes if they fit. An answer that begins in it, or is repeated,
 * takes an acknowledgement along; then less of it may fit. */
static inline void cci__rel_open_for(cci_rel_t *rel, cci_rel_packet_t *packet, const cci_rel_item_t *item, int begins,
                                     uint32_t need, uint64_t now_ns) {
    if (!(item->flags & CCI__ITEM_ANSWER) || !begins || rel->number_count == 0) {
        cci_rel_open_packet(rel, packet, need, now_ns);
        return;
    }
    rel->ack_count += rel->ack_count == 0;
    need = cci__min32(need, cci__rel_answer_limit(rel) - 8u * rel->nack_count) + cci__rel_taken_size(rel);
    cci_rel_open_packet(rel, packet, need, now_ns);
    if (CCI__UNLIKELY(rel->untold)) cci__rel_write_taken(rel, packet);
}

/* A write that is not longer than a packet stands among messages at the peer, and needs a buffer there. */
static CCI__RARE int cci__rel_is_long_write(const cci_rel_t *rel, const cci_rel_item_t *item) {
    return item->kind == CCI__ITEM_BULK && item->bulk.length > rel->mtu;
}

static int cci__rel_has_long_write(const cci_rel_t *rel) {
    return !cci__list_empty(&rel->bulks) &&
           cci__rel_is_long_write(rel, CCI__CONTAINER(rel->bulks.next, cci_rel_item_t, queue));
}

/* Begins an item anew: its records are free afterwards. */
static void cci__rel_restart(cci_rel_t *rel, cci_rel_item_t *item) {
    cci__rel_forget_pieces(rel, item);
    item->sent = item->fragment = 0;
    item->bulk_sent = 0;
    item->flags &= ~CCI__ITEM_SENT;
    item->flags |= CCI__ITEM_HELD; /* into its place among those that are queued */
    cci__rel_enqueue(rel, item);
}

static int cci__rel_is_before(const cci_rel_sent_t *a, const cci_rel_sent_t *b) {
    if (a->item != b->item) return a->item->first < b->item->first;
    return a->offset != b->offset ? a->offset < b->offset : a->fragment < b->fragment;
}

/* One list of two that are in order, linked by `next` alone. */
static cci_list_t *cci__rel_merge(cci_list_t *a, cci_list_t *b) {
    cci_list_t *merged = NULL, **tail = &merged;
    while (a && b) {
        cci_list_t **from =
            cci__rel_is_before(CCI__CONTAINER(b, cci_rel_sent_t, node), CCI__CONTAINER(a, cci_rel_sent_t, node)) ? &b
                                                                                                                 : &a;
        *tail = *from;
        *from = (*from)->next;
        tail = &(*tail)->next;
    }
    *tail = a ? a : b;
    return merged;
}

/* Brings what is lost into the order of its sequence numbers: what the receiver needs next, it always has room for.
 * What is too early for it may be refused for long: by turns, at one packet per time-out, nothing would end. Pile i
 * has 2^i packets. */
static void cci__rel_sort_lost(cci_rel_t *rel) {
    cci_list_t *piles[32] = {NULL}, *sorted = NULL, *node, *next, *pile;
    uint32_t i;
    rel->shuffled = 0;
    for (node = rel->lost.next; node != &rel->lost; node = next) {
        next = node->next;
        node->next = NULL;
        pile = node;
        for (i = 0; piles[i]; i++) {
            pile = cci__rel_merge(piles[i], pile);
            piles[i] = NULL;
        }
        piles[i] = pile;
    }
    for (i = 0; i < 32; i++) sorted = cci__rel_merge(piles[i], sorted);
    cci__list_init(&rel->lost);
    for (; sorted; sorted = next) {
        next = sorted->next;
        cci__list_append(&rel->lost, sorted);
    }
}

/* What does not fit into the packet of a lost piece: `length` bytes at `offset` of its item get a record of their own,
 * which comes behind another one, or last. There is one: cci__rel_lacks_records() has seen to it. */
static cci_rel_sent_t *cci__rel_add_rest(cci_rel_t *rel, cci_rel_item_t *item, const cci_rel_sent_t *behind,
                                         uint64_t offset, uint32_t length) {
    cci_rel_sent_t *rest = cci__rel_new_record(rel, item);
    if (rest) {
        rest->offset = offset;
        rest->length = length;
        cci__list_insert(behind ? behind->node.next : &rel->lost, &rest->node);
    }
    return rest;
}

/* The same for `length` bytes from `fragment` on of the message at this offset. */
static void cci__rel_add_rest_of_message(cci_rel_t *rel, const cci_rel_sent_t *sent, uint32_t fragment,
                                         uint32_t length) {
    cci_rel_sent_t *rest = cci__rel_add_rest(rel, sent->item, sent, sent->offset, length);
    if (!rest) return;
    rest->fragment = fragment;
    rest->is_fragment = 1;
}

static int cci__rel_output_lost_segment(cci_rel_t *rel, cci_rel_packet_t *packet, cci_rel_sent_t *sent,
                                        uint64_t now_ns) {
    cci_rel_item_t *item = sent->item;
    uint64_t end = sent->offset + sent->length, at;
    if (!rel->pool->sink->readable(rel->user, &item->bulk)) {
        cci__rel_withdraw(rel, item, CCI_ERR_RMA_HANDLE);
        return 0;
    }
    cci_rel_open_packet(rel, packet, cci__min32(sent->length, rel->mtu) + 48, now_ns);
    if (!cci__rel_write_segment(rel, packet, item, sent, sent->offset, end)) return 0;
    at = sent->offset + sent->length;
    if (at < end) (void)cci__rel_add_rest(rel, item, sent, at, (uint32_t)(end - at));
    return 1;
}

static int cci__rel_output_lost_fragment(cci_rel_t *rel, cci_rel_packet_t *packet, cci_rel_sent_t *sent,
                                         uint64_t now_ns) {
    cci_rel_item_t *item = sent->item;
    uint32_t to = sent->fragment + sent->length, at;
    cci__rel_open_for(rel, packet, item, 1, cci__min32(sent->length, rel->mtu) + 16, now_ns);
    if (!cci__rel_write_run(rel, packet, item, sent, (uint32_t)sent->offset, sent->fragment, item->length)) return 0;
    if (!sent->is_fragment) return 1;
    at = sent->fragment + sent->length;
    if (at > to) { /* not more than was lost */
        packet->pad_length = 0;
        packet->body_length -= at - to;
        sent->length = to - sent->fragment;
        cci__store16(packet->head + packet->head_length - 16 + 2, sent->length);
    } else if (at < to) {
        cci__rel_add_rest_of_message(rel, sent, at, to - at);
    }
    return 1;
}

/* Where the path has become smaller, what did not fit goes with the next packets, by another record. */
static int cci__rel_output_lost_run(cci_rel_t *rel, cci_rel_packet_t *packet, cci_rel_sent_t *sent, uint64_t now_ns) {
    cci_rel_item_t *item = sent->item;
    uint64_t end = sent->offset + sent->length, at;
    const cci_rel_sent_t *behind = sent;
    cci__rel_open_for(rel, packet, item, 1, cci__min32(sent->length, rel->mtu), now_ns);
    if (!cci__rel_write_run(rel, packet, item, sent, (uint32_t)sent->offset, 0, (uint32_t)end)) return 0;
    at = sent->offset + sent->length;
    if (sent->is_fragment) {
        uint32_t length = cci__load16(cci__rel_frame_at(item, sent->offset) + 2);
        if (sent->length < length) cci__rel_add_rest_of_message(rel, sent, sent->length, length - sent->length);
        at = sent->offset + 8 + cci__pad8(length);
        behind = NULL;
    }
    if (at < end) (void)cci__rel_add_rest(rel, item, behind, at, (uint32_t)(end - at));
    return 1;
}

/* Are there two, or is there memory for them? */
static int cci__rel_has_two_records(cci_rel_pool_t *pool) {
    const cci_list_t *records = &pool->records;
    return cci__rel_has(pool, records, CCI_REL_RECORDS) &&
           (records->next->next != records || (pool->more && pool->more(pool, CCI_REL_RECORDS)));
}

/* Has a lost piece become too long for the path, with too few records for its parts? It gets up to two more. */
static int cci__rel_lacks_records(cci_rel_t *rel, const cci_rel_sent_t *sent) {
    const cci_rel_item_t *item = sent->item;
    uint32_t frame = item->kind == CCI__ITEM_BULK ? 48 : sent->is_fragment ? 16 : 0;
    uint32_t most =
        item->flags & CCI__ITEM_ANSWER ? cci__rel_answer_limit(rel) - 8u * rel->nack_count : rel->mtu - CCI_REL_HEADER;
    return !(item->flags & CCI__ITEM_VOID) && sent->length > most - frame &&
           (rel->pool->record_free < 2 ||
            !cci__share_for_long(rel->record_count + 1, rel->pool->record_free - 1, rel->pool->record_total) ||
            !cci__rel_has_two_records(rel->pool));
}

/* Sends again one piece of what was lost. */
static int cci__rel_output_lost(cci_rel_t *rel, cci_rel_packet_t *packet, cci_rel_sent_t *sent, uint64_t now_ns) {
    cci_rel_item_t *item = sent->item;
    int ok = 1;
    if (cci__rel_lacks_records(rel, sent)) {
        cci__rel_restart(rel, item);
        return 0;
    }
    if (item->flags & CCI__ITEM_VOID) {
        cci__rel_open_for(rel, packet, item, 1, 16, now_ns);
        cci__rel_write_void(rel, packet, item);
    } else if (item->kind == CCI__ITEM_BULK) {
        ok = cci__rel_output_lost_segment(rel, packet, sent, now_ns);
    } else if (sent->is_fragment) {
        ok = cci__rel_output_lost_fragment(rel, packet, sent, now_ns);
    } else {
        ok = cci__rel_output_lost_run(rel, packet, sent, now_ns);
    }
    if (!ok) return 0;
    rel->pool->retransmitted++;
    cci__rel_note(rel, CCI_REL_RETRANSMITTED);
    cci__list_remove(&sent->node);
    cci__rel_track(rel, packet, sent, now_ns);
    return 1;
}

/* All of the item has been sent once. */
static void cci__rel_all_sent(cci_rel_item_t *item) {
    cci__list_remove(&item->queue);
    item->flags &= ~CCI__ITEM_QUEUED;
    item->flags |= CCI__ITEM_SENT;
}

/* The sender has put one more piece of the run into a packet. */
static void cci__rel_advance_run(cci_rel_item_t *item, const cci_rel_sent_t *sent) {
    if (!sent->is_fragment) {
        item->sent += sent->length;
        return;
    }
    item->fragment += sent->length;
    if (item->fragment == cci__load16(cci__rel_frame_at(item, item->sent) + 2)) {
        item->sent += 8 + cci__pad8(item->fragment);
        item->fragment = 0;
    }
}

/* Lays out the next piece of a message in SLOTS, whose slot is the packet: only its heads are to be written. 0:
 * something else is in the packet, or the pieces are not what fits into one (the MTU has changed). */
static inline int cci__rel_write_slot(cci_rel_t *rel, cci_rel_packet_t *packet, cci_rel_item_t *item,
                                      cci_rel_sent_t *sent) {
    uint32_t even = item->even, fragment = item->fragment, length = cci__load16(item->head + 2),
             rest = length - fragment;
    uint32_t slot = fragment / even, size = rest < even ? rest : even;
    uint8_t *at;
    if (packet->head_length != CCI_REL_HEADER || slot * even != fragment || even + CCI__SLOT_HEAD > rel->mtu) return 0;
    packet->head = item->frames + (size_t)slot * (even + CCI__SLOT_HEAD);
    at = cci__rel_frame(packet->head + CCI_REL_HEADER, CCI__FRAME_FRAGMENT, item->head[1], size,
                        cci__load32(item->head + 4));
    cci__store32(at, fragment);
    cci__store32(at + 4, length);
    /* the next packet of a batch stays aligned */
    packet->head_length = CCI__SLOT_HEAD + (even - size < 64 ? even : size);
    sent->fragment = fragment;
    sent->length = size;
    sent->is_fragment = 1;
    return 1;
}

/* Writes the next piece of a write or a message that was not sent before; 0 if nothing fits. */
static int cci__rel_write_next(cci_rel_t *rel, cci_rel_packet_t *packet, cci_rel_item_t *item, cci_rel_sent_t *sent) {
    int all;
    if (item->kind == CCI__ITEM_BULK) {
        if (!cci__rel_write_segment(rel, packet, item, sent, item->bulk_sent, item->bulk.length)) return 0;
        item->bulk_sent += sent->length;
        all = item->bulk_sent == item->bulk.length;
    } else {
        if (!(item->kind == CCI__ITEM_SLOTS && cci__rel_write_slot(rel, packet, item, sent)) &&
            !(item->fragment ? cci__rel_write_fragment(rel, packet, item, sent, item->sent, item->fragment)
                             : cci__rel_write_run(rel, packet, item, sent, item->sent, 0, item->length)))
            return 0;
        cci__rel_advance_run(item, sent);
        all = item->sent == item->length;
    }
    if (all) cci__rel_all_sent(item);
    return 1;
}

/* What may leave behind the last piece of an item with no more thought: the next one, if it is a long message or a
 * packet that waits for no company, and nothing else is to be sent. */
static cci_rel_item_t *cci__rel_next_burst(const cci_rel_t *rel) {
    cci_rel_item_t *item = CCI__CONTAINER(rel->runs.next, cci_rel_item_t, queue);
    return &item->queue != &rel->runs &&
                   (item->kind >= CCI__ITEM_LENT || item->length >= (rel->mtu - CCI_REL_HEADER) / 4 * 3) &&
                   !(item->flags & (CCI__ITEM_VOID | CCI__ITEM_ANSWER)) && !rel->rnr && cci__list_empty(&rel->bulks) &&
                   cci__list_empty(&rel->held) && cci__list_empty(&rel->follows)
               ? item
               : NULL;
}

/* Sends the next piece of an item that was not sent before. */
static int cci__rel_output_item(cci_rel_t *rel, cci_rel_packet_t *packet, cci_rel_item_t *item, uint64_t now_ns) {
    cci_rel_sent_t *sent;
    int is_void = (item->flags & CCI__ITEM_VOID) != 0;
    uint64_t rest = item->kind == CCI__ITEM_BULK ? item->bulk.length - item->bulk_sent : item->length - item->sent;
    if (item->kind == CCI__ITEM_BULK && !is_void && !rel->pool->sink->readable(rel->user, &item->bulk)) {
        cci__rel_withdraw(rel, item, CCI_ERR_RMA_HANDLE);
        return 0;
    }
    sent = cci__rel_new_record(rel, item);
    if (!sent) return 0;
    /* full packets of one size: they leave together */
    cci__rel_open_for(rel, packet, item, item->fragment == 0, is_void ? 16 : (uint32_t)cci__min64(rest, rel->mtu),
                      now_ns);
    if (is_void) {
        cci__rel_write_void(rel, packet, item);
        cci__rel_all_sent(item);
    } else if (!cci__rel_write_next(rel, packet, item, sent)) {
        item->pieces--;
        cci__rel_free_record(rel, sent);
        return 0;
    }
    cci__rel_track(rel, packet, sent, now_ns);
    if (!is_void)
        rel->burst = !(item->flags & CCI__ITEM_QUEUED)                       ? cci__rel_next_burst(rel)
                     : item->flags & CCI__ITEM_ANSWER && item->fragment == 0 ? NULL
                                                                             : item;
    return 1;
}

/* What is to be sent next, NULL if nothing may be. */
static cci_rel_item_t *cci__rel_next_item(const cci_rel_t *rel) {
    cci_rel_item_t *run = NULL, *bulk = NULL, *held;
    if (!cci__list_empty(&rel->runs)) run = CCI__CONTAINER(rel->runs.next, cci_rel_item_t, queue);
    if (!cci__list_empty(&rel->bulks)) bulk = CCI__CONTAINER(rel->bulks.next, cci_rel_item_t, queue);
    if (rel->ordered && bulk && run && bulk->first < run->first && !(run->flags & CCI__ITEM_VOID))
        run = NULL; /* what comes later would only wait at the receiver */
    if (!run) run = bulk;
    if (rel->ordered && run && !cci__list_empty(&rel->held)) {
        held = CCI__CONTAINER(rel->held.next, cci_rel_item_t, queue);
        if (held->first < run->first) return NULL;
    }
    if (rel->ordered && run && !cci__list_empty(&rel->follows)) {
        held = CCI__CONTAINER(rel->follows.next, cci_rel_item_t, queue);
        if (held->first < run->first) return NULL;
    }
    return run;
}

/* An unreliable run leaves once and is forgotten; its item is spent when its last packet has left. */
static int cci__rel_output_unreliable(cci_rel_t *rel, cci_rel_packet_t *packet, uint64_t now_ns) {
    cci_rel_item_t *item;
    cci_rel_sent_t piece;
    int fits;
    if (cci__list_empty(&rel->runs)) return 0;
    item = CCI__CONTAINER(rel->runs.next, cci_rel_item_t, queue);
    cci_rel_open_packet(rel, packet, rel->mtu, now_ns);
    piece.is_fragment = 0;
    fits = cci__rel_write_run(rel, packet, item, &piece, item->sent, item->fragment, item->length);
    CCI_ASSERT(fits); /* the packet was empty */
    (void)fits;
    cci__rel_advance_run(item, &piece);
    if (item->sent == item->length) {
        packet->spent = item;
        cci__rel_all_sent(item);
    }
    return 1;
}

/* An unreliable packet has left. */
CCI_API void cci_rel_spent(cci_rel_t *rel, cci_rel_item_t *item) {
    cci__rel_retire(rel, item);
}

static int cci__rel_output_probe(cci_rel_t *rel, cci_rel_packet_t *packet, uint64_t now_ns) {
    static const uint32_t steps[] = {8952, 4432, 1472, 1448, 1400}; /* what paths usually carry */
    uint32_t size = rel->mtu_max, i;
    cci_rel_sent_t *sent;
    for (i = 0; size >= rel->mtu_failed && i < sizeof steps / sizeof steps[0]; i++)
        size = (steps[i] - rel->pool->overhead) & ~7u;
    if (size >= rel->mtu_failed || size <= rel->mtu || size > rel->mtu_max) {
        rel->want_mtu = 0;
        rel->mtu_failed = (uint16_t)(rel->mtu_max + 8); /* try again in ten minutes: the route may have changed */
        rel->mtu_again_ns = now_ns + 600000 * CCI__MS;
        return 0;
    }
    sent = cci__rel_new_record(rel, NULL);
    if (!sent) return 0;
    cci_rel_open_packet(rel, packet, rel->mtu, now_ns);
    memset(packet->head + packet->head_length, 0, 16);
    packet->head[packet->head_length] = CCI__FRAME_PING;
    packet->head_length += 16; /* a PING, and the PAD that all of the rest is */
    packet->body = rel->pool->zeros;
    packet->body_length = size - packet->head_length;
    cci__rel_track(rel, packet, sent, now_ns);
    rel->in_flight -= sent->size; /* its loss says nothing about congestion */
    sent->in_flight = 0;
    sent->is_probe = 1;
    rel->probing = 1;
    return 1;
}

/* Is it time to say what has arrived, if nothing else is to be sent? In a stream of packets that takes a pause of
 * the peer: to acknowledge at each moment without work would cost it a fifth of its time. */
static int cci__rel_ack_is_due(cci_rel_t *rel, int idle, uint64_t now_ns) {
    if (rel->ack_count == 0) return 0;
    if (rel->ack_now) return 1;
    if (now_ns < rel->ack_at_ns &&
        (!idle || (rel->stream_bytes >= CCI__REL_STREAM && now_ns < rel->largest_ns + CCI__REL_SILENCE_NS)))
        return 0;
    rel->stream_bytes = 0;
    return 1;
}

/* Sends again what was lost, in the order of loss. */
static int cci__rel_output_any_lost(cci_rel_t *rel, cci_rel_packet_t *packet, uint64_t now_ns) {
    while (!cci__list_empty(&rel->lost)) {
        cci_list_t *first = rel->lost.next;
        if (cci__rel_output_lost(rel, packet, CCI__CONTAINER(first, cci_rel_sent_t, node), now_ns)) return 1;
        if (rel->lost.next == first) break; /* no records */
    }
    return 0;
}

/* Must messages wait, because the peer had no buffer for one? One tries at a time: the next one goes when that is
 * answered, or lost, and a while after it was refused. */
static int cci__rel_messages_wait(const cci_rel_t *rel, uint64_t now_ns) {
    return now_ns < rel->rnr_until_ns || (rel->rnr && rel->ordered && rel->in_flight > 0);
}

/* The first segment of a write among what is lost, or NULL. */
static cci_rel_sent_t *cci__rel_lost_write(cci_rel_t *rel) {
    cci_list_t *node;
    if (!rel->lost_writes) return NULL;
    for (node = rel->lost.next; node != &rel->lost; node = node->next)
        if (cci__rel_is_long_write(rel, CCI__CONTAINER(node, cci_rel_sent_t, node)->item))
            return CCI__CONTAINER(node, cci_rel_sent_t, node);
    rel->lost_writes = 0;
    return NULL;
}

/* Unordered, while messages must wait: long writes go on at their own pace, since they need none of the peer's
 * buffers. All of these may be held for messages behind the writes, and be free only when the writes are done. */
static int cci__rel_output_write(cci_rel_t *rel, cci_rel_packet_t *packet, uint64_t now_ns) {
    cci_rel_sent_t *sent = cci__rel_lost_write(rel);
    if (sent &&
        (cci__list_empty(&rel->bulks) ||
         CCI__CONTAINER(rel->bulks.next, cci_rel_item_t, queue)->first >= sent->item->first) &&
        cci__rel_output_lost(rel, packet, sent, now_ns))
        return 1;
    while (cci__rel_has_long_write(rel)) {
        cci_list_t *first = rel->bulks.next;
        if (cci__rel_output_item(rel, packet, CCI__CONTAINER(first, cci_rel_item_t, queue), now_ns)) return 1;
        if (rel->bulks.next == first) break; /* no records */
    }
    sent = cci__rel_lost_write(rel); /* it has a record */
    return sent && cci__rel_output_lost(rel, packet, sent, now_ns);
}

/* Does an item that was begun anew come before what is lost? Then it goes first: the receiver may have no room for the
 * others until it has this one. */
static int cci__rel_queue_is_older(const cci_rel_t *rel) {
    uint64_t first = CCI__CONTAINER(rel->lost.next, cci_rel_sent_t, node)->item->first;
    return (!cci__list_empty(&rel->runs) && CCI__CONTAINER(rel->runs.next, cci_rel_item_t, queue)->first < first) ||
           (!cci__list_empty(&rel->bulks) && CCI__CONTAINER(rel->bulks.next, cci_rel_item_t, queue)->first < first);
}

/* What is to arrive, in the order that suits the receiver. */
static int cci__rel_output_reliable(cci_rel_t *rel, cci_rel_packet_t *packet, int idle, uint64_t now_ns) {
    cci_rel_item_t *item;
    int older;
    int wait = cci__rel_messages_wait(rel, now_ns);
    if (CCI__UNLIKELY(wait) && rel->ordered) return 0;
    if (CCI__UNLIKELY(rel->shuffled)) cci__rel_sort_lost(rel);
    if (CCI__UNLIKELY(wait)) return cci__rel_output_write(rel, packet, now_ns);
    older = !cci__list_empty(&rel->lost) && cci__rel_queue_is_older(rel);
    if (!older && cci__rel_output_any_lost(rel, packet, now_ns)) return 1;
    while ((item = cci__rel_next_item(rel)) != NULL) {
        /* A small packet waits for company while others are on their way, but not for long. */
        if (item->kind == CCI__ITEM_RUN && rel->in_flight > 0 && !idle && now_ns < item->since_ns + CCI__REL_NAGLE_NS &&
            item->length - item->sent < (rel->mtu - CCI_REL_HEADER) / 4 * 3 && item->queue.next == &rel->runs &&
            !(item->flags & CCI__ITEM_VOID))
            break;
        if (cci__rel_output_item(rel, packet, item, now_ns)) return 1;
        if (cci__rel_next_item(rel) == item) break; /* no records */
    }
    return older && cci__rel_output_any_lost(rel, packet, now_ns);
}

/* The same as far as the windows and the pace allow. */
static int cci__rel_output_paced(cci_rel_t *rel, cci_rel_packet_t *packet, int idle, uint64_t now_ns) {
    if (rel->in_flight > 0) {
        if (cci__rel_is_full(rel)) {
            if (rel->in_flight + rel->mtu > rel->flow.window) rel->limited_number = (uint32_t)rel->next_number;
            return 0;
        }
        if (now_ns < rel->pace_ns) return 0;
    }
    if (!cci__rel_output_reliable(rel, packet, idle, now_ns)) return 0;
    if (CCI__UNLIKELY(rel->rnr) && !rel->ordered && !cci__rel_is_long_write(rel, packet->sent->item))
        rel->rnr_until_ns = now_ns + cci__rel_pto_ns(rel); /* until then the peer may answer */
    if (rel->srtt_ns > 2 * CCI__MS) { /* a long path: spread a window over the round trip, a quarter faster */
        uint64_t credit_ns = cci__max64(CCI__MS, cci__min64(rel->pool->away_ns, 2 * rel->min_rtt_ns));
        rel->pace_ns = cci__max64(rel->pace_ns, now_ns - cci__min64(now_ns, credit_ns)) +
                       rel->srtt_ns * packet->sent->size * 4 / (rel->flow.window * 5);
        rel->burst = NULL;
    }
    return 1;
}

#ifndef CCI_NO_ECN
/* An acknowledgement, and what has come by codepoint. */
static CCI__RARE int cci__rel_output_marks(cci_rel_t *rel, cci_rel_packet_t *packet, uint64_t now_ns) {
    const uint32_t *came = cci__rel_ecn(rel)->came;
    uint8_t *at;
    cci_rel_open_packet(rel, packet, CCI__REL_MARKS_SIZE, now_ns);
    at = packet->head + packet->head_length;
    memset(at, 0, 4);
    at[0] = CCI__FRAME_MARKS;
    cci__store32(at + 4, came[2]);
    cci__store32(at + 8, came[1]);
    cci__store32(at + 12, came[3]);
    packet->head_length += CCI__REL_MARKS_SIZE;
    rel->owes_marks = 0;
    return 1;
}
#endif

/* Makes the next packet. `idle`: nothing else is going on, so what was kept back for company may go. Returns 1 and the
 * packet, or 0 if there is nothing to send or it must wait. */
CCI_API int cci_rel_output(cci_rel_t *rel, cci_rel_packet_t *packet, int idle, uint64_t now_ns) {
    rel->burst = NULL;
    CCI__REL_ECN(
        if (CCI__UNLIKELY(rel->owes_marks) && rel->ack_count > 0) return cci__rel_output_marks(rel, packet, now_ns);)
    if (rel->want_mtu && !rel->probing && now_ns >= rel->mtu_again_ns && rel->mtu < rel->mtu_max &&
        cci__rel_output_probe(rel, packet, now_ns))
        return 1;
    if (!rel->reliable) {
        if (cci__rel_output_unreliable(rel, packet, now_ns)) return 1;
    } else if (cci__rel_output_paced(rel, packet, idle, now_ns)) {
        return 1;
    }
    if (rel->ping) {
        cci_rel_sent_t *sent = cci__rel_new_record(rel, NULL);
        if (sent) {
            rel->ping = 0;
            cci_rel_open_packet(rel, packet, 8, now_ns);
            memset(packet->head + packet->head_length, 0, 8);
            packet->head[packet->head_length] = CCI__FRAME_PING;
            packet->head_length += 8;
            cci__rel_track(rel, packet, sent, now_ns);
            return 1;
        }
    }
    if (rel->nack_count > 0 || cci__rel_ack_is_due(rel, idle, now_ns)) {
        cci_rel_open_packet(rel, packet, 0, now_ns);
        return 1;
    }
    return 0;
}

/* After cci_rel_output() made a packet and before any other call: makes the next one if it carries just the next
 * piece of the same write or message, or one of the next like it, which costs less than to look at all there is.
 * Returns 0 if there is more to be thought of. */
CCI_API int cci_rel_output_next(cci_rel_t *rel, cci_rel_packet_t *packet, uint64_t now_ns) {
    cci_rel_item_t *item = rel->burst;
    cci_rel_sent_t *sent;
    if (!item || !cci__list_empty(&rel->lost) || rel->ack_count > 0 || rel->nack_count > 0 || cci__rel_is_full(rel))
        return 0;
    sent = cci__rel_new_record(rel, item);
    if (!sent) return 0;
    packet->head_length = CCI_REL_HEADER;
    packet->body = NULL;
    packet->body_length = packet->pad_length = 0;
    packet->spent = NULL;
    packet->codepoint = rel->codepoint;
    packet->number = rel->next_number++;
    if (!cci__rel_write_next(rel, packet, item, sent)) { /* the number stays unused: that does no harm */
        item->pieces--;
        cci__rel_free_record(rel, sent);
        return 0;
    }
    cci__rel_track(rel, packet, sent, now_ns);
    if (!(item->flags & CCI__ITEM_QUEUED)) rel->burst = cci__rel_next_burst(rel);
    return 1;
}

/* ==================================================================================================================
 * >>rel-ack
 *
 * Acknowledgements and refusals come in: round trips are measured, what is acknowledged is finished, what was
 * overtaken is lost, what was refused waits or ends.
 *   The walk: cci__rel_input_ack(): the ranges, each packet in `flight` that they name, the sample of the round
 * trip, the congestion control, loss detection. cci__rel_input_nack() for what a receiver could not take.
 *   Parts: acknowledgements and refusals; counts of codepoints.
 * ================================================================================================================== */

/* ---- acknowledgements and refusals ---- */

/* What a sample of more than a second counts for, 0 if nothing: all that was sent before one of them was believed says
 * no more than it did. */
static CCI__RARE uint64_t cci__rel_long_sample(cci_rel_t *rel, uint64_t number, uint64_t sample_ns) {
    uint32_t before = (uint16_t)(rel->doubts_number - (uint32_t)number - 1u);
    if (before < rel->next_number - number) return 0;
    rel->doubts_number = (uint16_t)rel->next_number;
    return cci__flow_believed_ns(sample_ns, rel->srtt_ns, rel->rttvar_ns);
}

/* Quarters of a round trip that packets are late by; 0 where that costs no window, which never shrinks. */
static inline uint32_t cci__rel_reordering(const cci_rel_t *rel) {
    return CCI__FLOW_CAN_UNDO ? rel->reordering : 0;
}

/* Packets overtake each other, and it is not known yet how much fits into the path: that round trips take longer tells
 * of no queue then, and a loss is the queue's. */
static int cci__rel_starts_blind(const cci_rel_t *rel) {
    return CCI__UNLIKELY(cci__rel_reordering(rel) > 0) && rel->flow.window < rel->flow.threshold;
}

/* The acknowledgement of the packet came so long after it, of which the peer kept it for `delay` times 4 µs. */
static void cci__rel_sample_rtt(cci_rel_t *rel, uint64_t number, uint64_t sample_ns, uint32_t delay, uint64_t now_ns) {
    uint64_t delay_ns = delay * UINT64_C(4000);
    if (CCI__UNLIKELY(delay == 0xffff)) return; /* or for longer than can be said */
    rel->min_rtt_ns = cci__min64(rel->min_rtt_ns, sample_ns);
    if (sample_ns > rel->min_rtt_ns + delay_ns) sample_ns -= delay_ns;
#ifndef CCI_NO_STATS
    rel->latest_rtt = (uint32_t)(sample_ns >> 4);
#endif
    if (!cci__rel_starts_blind(rel)) cci__flow_sample(&rel->flow, sample_ns, now_ns);
    if (CCI__UNLIKELY(sample_ns > 1000 * CCI__MS) && (sample_ns = cci__rel_long_sample(rel, number, sample_ns)) == 0)
        return;
    if (rel->srtt_ns == 0) {
        rel->srtt_ns = cci__max64(sample_ns, 1);
        rel->rttvar_ns = sample_ns / 2;
        return;
    }
    rel->rttvar_ns =
        (3 * rel->rttvar_ns + (rel->srtt_ns > sample_ns ? rel->srtt_ns - sample_ns : sample_ns - rel->srtt_ns)) / 4;
    rel->srtt_ns = cci__max64((7 * rel->srtt_ns + sample_ns) / 8, 1);
}

/* The peer has taken something of the item: it refuses nothing any more. */
static inline void cci__rel_end_rnr(cci_rel_t *rel, const cci_rel_item_t *item) {
    if (CCI__LIKELY(!rel->rnr) || (cci__rel_is_long_write(rel, item) && rel->rnr_sequence - item->first >= item->count))
        return;
    rel->rnr = 0;
    rel->rnr_delay_ns = 0;
    rel->rnr_until_ns = 0;
}

/* The packet arrived. */
static inline void cci__rel_acked(cci_rel_t *rel, cci_rel_sent_t *sent, uint64_t now_ns) {
    cci_rel_item_t *item = sent->item;
    if (sent->is_probe) {
        rel->probing = 0;
        rel->mtu_tries = 0;
        if (sent->size > rel->mtu) {
            rel->mtu = sent->size;
            cci__rel_note(rel, CCI_REL_MTU);
            rel->flow.window = cci__max64(rel->flow.window, 4 * (uint64_t)rel->mtu);
        }
    }
    if (sent->size > rel->pool->base_mtu) rel->large_lost = 0;
    if (item) {
        item->since_ns = now_ns;
        rel->progress_ns = now_ns;
        cci__rel_end_rnr(rel, item);
    }
    cci__rel_free_record(rel, sent);
    if (item && --item->pieces == 0 && (item->flags & CCI__ITEM_SENT)) cci__rel_finish(rel, item);
}

/* Did the last reduction of the congestion window answer the loss of this packet, too? */
static int cci__rel_is_in_cut(const cci_rel_t *rel, const cci_rel_sent_t *late) {
    return CCI__FLOW_CAN_UNDO && rel->late->head.missing > 0 && late->time_ns >= rel->late->head.before.cut_ns;
}

/* The packet is about to be taken for lost, perhaps because others have overtaken it: its number is kept, if there are
 * records enough. */
static CCI__RARE int cci__rel_remember(cci_rel_t *rel, const cci_rel_sent_t *sent, uint32_t overtaken) {
    cci_rel_sent_t *late;
    cci_list_t *before;
    if (sent->is_probe) return 1;
    if (rel->pool->record_free < rel->pool->record_total / 2) return 0;
    if (!rel->late) {
        rel->late = (cci_rel_late_t *)(void *)cci__rel_new_record(rel, NULL);
        if (!rel->late) return 0;
        cci__list_init(&rel->late->head.node);
        rel->late->head.missing = 0;
    }
    late = cci__rel_new_record(rel, NULL);
    if (!late) return 0;
    late->number = sent->number;
    late->time_ns = sent->time_ns;
    late->size = sent->size;
    late->offset = rel->next_number;
    late->fragment = overtaken;
    before = &rel->late->head.node;
    while (before->prev != &rel->late->head.node &&
           CCI__CONTAINER(before->prev, cci_rel_sent_t, node)->number > late->number)
        before = before->prev;
    cci__list_insert(before, &late->node);
    rel->late->head.missing += (uint32_t)cci__rel_is_in_cut(rel, late);
    return 1;
}

/* The packet is taken to be lost: what it carried will be sent again. */
static void cci__rel_lost(cci_rel_t *rel, cci_rel_sent_t *sent) {
    if (sent->is_probe) {
        rel->probing = 0;
        if (++rel->mtu_tries >= 2) {
            rel->mtu_tries = 0;
            rel->mtu_failed = (uint16_t)cci__min32(rel->mtu_failed, sent->size);
        }
    }
    if (!sent->item) {
        cci__rel_free_record(rel, sent);
        return;
    }
    if (sent->in_flight) rel->in_flight -= sent->size;
    sent->in_flight = 0;
    rel->lost_writes |= sent->item->kind == CCI__ITEM_BULK;
    cci__list_remove(&sent->node);
    cci__list_append(&rel->lost, &sent->node);
}

/* Nothing was heard of the packet though it should have been, or of others that left later. 0: it will not be known
 * whether it was only late. */
static int cci__rel_missed(cci_rel_t *rel, cci_rel_sent_t *sent, uint32_t overtaken) {
    int is_kept = cci__rel_remember(rel, sent, overtaken);
    if (CCI__FLOW_CAN_UNDO && !is_kept && rel->late) rel->late->head.missing = 0;
#ifndef CCI_NO_STATS
    rel->pool->packets_lost++;
#endif
    cci__rel_note(rel, CCI_REL_LOST);
    cci__rel_lost(rel, sent);
    return is_kept;
}

/* The path has become smaller. */
static void cci__rel_shrink(cci_rel_t *rel) {
    uint32_t before = rel->mtu;
    rel->mtu_failed = (uint16_t)cci__min32(rel->mtu_failed, rel->mtu);
    rel->mtu = cci__min32(rel->pool->base_mtu, rel->mtu_max);
    if (rel->mtu != before) cci__rel_note(rel, CCI_REL_MTU);
    rel->run_limit = cci__min32(rel->run_limit, rel->mtu - CCI_REL_HEADER);
    rel->large_lost = 0;
}

/* The congestion window has been reduced for what was taken for lost since the reduction before, or, if that may still
 * be taken back, since the one before that. is_kept: each of those packets is among the late ones. */
static void cci__rel_note_cut(cci_rel_t *rel, const cci_flow_before_t *before, int is_kept) {
    cci_rel_late_t *late = rel->late;
    const cci_list_t *node;
    if (!CCI__FLOW_CAN_UNDO || !late) return;
    if (late->head.missing == 0 || late->head.cut != (uint32_t)before->cut_ns) late->head.before = *before;
    late->head.cut = (uint32_t)rel->flow.cut_ns;
    late->head.missing = 0;
    for (node = late->head.node.next; node != &late->head.node && is_kept; node = node->next)
        late->head.missing += CCI__CONTAINER(node, cci_rel_sent_t, node)->time_ns >= late->head.before.cut_ns;
}

/* A round trip as losses are reckoned; 0 if there is no sample yet. */
static uint64_t cci__rel_round_trip_ns(const cci_rel_t *rel) {
    return cci__max64(rel->srtt_ns, rel->min_rtt_ns == CCI__NEVER ? 0 : rel->min_rtt_ns);
}

/* A packet came that others had overtaken. Where packets do that, time alone tells which are lost [RFC 8985 6.2]: after
 * a round trip, and as many quarters of the shortest one as a packet needed lately, up to four. */
static CCI__RARE void cci__rel_reordered(cci_rel_t *rel, uint64_t sent_ns, uint64_t now_ns) {
    uint64_t late_ns = now_ns - sent_ns - cci__min64(cci__rel_round_trip_ns(rel), now_ns - sent_ns), quarters;
    if (rel->min_rtt_ns == CCI__NEVER) return;
    quarters = cci__min64(late_ns * 4 / cci__max64(rel->min_rtt_ns, 1) + 1, 4);
    if (quarters < rel->reordering) return;
    rel->reordering = (uint32_t)quarters & 7;
    rel->round_trips = 0;
}

/* What was under way when the last round trip began has been acknowledged. After some without need the window becomes
 * smaller. */
static CCI__RARE void cci__rel_end_round(cci_rel_t *rel) {
    if ((((uint32_t)rel->largest_acked - rel->round_number) & 0x7ffff) >= 0x40000) return;
    rel->round_number = (uint32_t)rel->next_number & 0x7ffff;
    rel->round_trips = (rel->round_trips + 1u) % CCI__REL_REORDER_ROUNDS;
    if (rel->round_trips == 0) rel->reordering = (rel->reordering - 1u) & 7;
}

/* So long after it left a packet is lost, if others that left later have arrived. */
static uint64_t cci__rel_loss_wait_ns(const cci_rel_t *rel) {
    uint64_t round_trip_ns = cci__rel_round_trip_ns(rel);
    if (CCI__LIKELY(cci__rel_reordering(rel) == 0)) return cci__max64(round_trip_ns * 9 / 8, CCI__MS);
    return round_trip_ns + rel->min_rtt_ns / 4 * rel->reordering;
}

/* Looks for packets that were sent well before one that has arrived [RFC 9002 6.1]. */
static void cci__rel_look_for_loss(cci_rel_t *rel, uint64_t now_ns) {
    uint64_t wait_ns = cci__rel_loss_wait_ns(rel), threshold = cci__rel_reordering(rel) ? CCI__NEVER / 2 : 3;
    cci_list_t *node = rel->flight.next, *next;
    uint64_t congested = 0, lost_ns = 0;
    uint32_t large = 0, lost_bytes = 0;
    int is_kept = 1;
    for (; node != &rel->flight; node = next) {
        cci_rel_sent_t *sent = CCI__CONTAINER(node, cci_rel_sent_t, node);
        next = node->next;
        if (sent->number >= rel->largest_acked) break;
        if (sent->number + threshold > rel->largest_acked && sent->time_ns + wait_ns > now_ns) {
            rel->loss_ns = sent->time_ns + wait_ns; /* those behind it left later */
            break;
        }
        if (!sent->is_probe) {
            congested = sent->number + 1;
            lost_bytes += sent->size;
            lost_ns = sent->time_ns;
            large |= sent->size > rel->pool->base_mtu;
        }
        is_kept &= cci__rel_missed(rel, sent, 1);
    }
    if (lost_bytes > 0) {
        cci_flow_before_t before;
        cci__flow_remember(&rel->flow, &before);
        cci__flow_note_away(&rel->flow, cci__rel_starts_blind(rel) ? CCI__NEVER : rel->pool->away_ns, rel->srtt_ns);
        cci__flow_lost(&rel->flow, rel->pool->congestion, lost_bytes, lost_ns, rel->mtu, now_ns);
        if (CCI__FLOW_CAN_UNDO && rel->flow.cut_ns != before.cut_ns) cci__rel_note_cut(rel, &before, is_kept);
    }
    if (congested > rel->recovery_number) { /* once for each window */
        rel->recovery_number = rel->next_number;
        rel->large_lost = (uint8_t)cci__min32(rel->large_lost + large, 3);
        if (rel->large_lost >= 3 && rel->mtu > rel->pool->base_mtu) /* small ones arrive, large ones don't */
            cci__rel_shrink(rel);
    }
}

static inline void cci__rel_detect_loss(cci_rel_t *rel, uint64_t now_ns) {
    rel->loss_ns = CCI__NEVER;
    if (!cci__list_empty(&rel->flight)) cci__rel_look_for_loss(rel, now_ns);
}

/* Reads an ACK of `length` bytes at most into its ranges, the highest first; returns how many, 0 if it is malformed
 * or names what was never sent: `next_number` and above. */
static uint32_t cci__rel_parse_ack(const uint8_t *frame, uint32_t length, uint64_t next_number,
                                   cci_range_t range[CCI__REL_ACK_MORE + 1]) {
    uint32_t more = frame[1], i;
    uint64_t largest, first;
    if (more > CCI__REL_ACK_MORE || cci__pad8(16 + 4 * more) > length) return 0;
    largest = cci__expand32(cci__load32(frame + 4), next_number);
    first = cci__load32(frame + 8);
    if (largest >= next_number || first == 0 || first > largest + 1) return 0;
    range[0].hi = largest + 1;
    range[0].lo = range[0].hi - first;
    for (i = 1; i <= more; i++) {
        uint64_t gap = cci__load16(frame + 12 + 4 * i), span = cci__load16(frame + 14 + 4 * i);
        if (gap == 0 || span == 0 || gap + span > range[i - 1].lo) return 0;
        range[i].hi = range[i - 1].lo - gap;
        range[i].lo = range[i].hi - span;
    }
    return more + 1;
}

/* The peer has all of the item, though it may have named no packet of it: of what was sent more than once, only the
 * last number is known. Returns 1 if that was news; then others may have come to their end with it. */
static int cci__rel_has_all(cci_rel_t *rel, cci_rel_item_t *item, uint64_t now_ns) {
    if (item->kind == CCI__ITEM_EXTERN || (item->flags & (CCI__ITEM_DONE | CCI__ITEM_HELD))) return 0;
    rel->progress_ns = now_ns;
    cci__rel_end_rnr(rel, item);
    cci__rel_forget_pieces(rel, item);
    cci__list_remove(&item->queue);
    item->flags &= ~CCI__ITEM_QUEUED;
    cci__rel_finish(rel, item);
    return 1;
}

/* The same for items from `from` on that are not the first: behind reads, which may be many, others wait. The last
 * ones that are below `expected` are looked for from behind, since those below `from` have had their end. */
static void cci__rel_taken_behind(cci_rel_t *rel, uint64_t from, uint64_t expected, uint64_t now_ns) {
    cci_list_t *node = rel->items.prev;
    while (node != &rel->items) {
        cci_rel_item_t *item = CCI__CONTAINER(node, cci_rel_item_t, node);
        int is_rma = (item->flags & CCI__ITEM_RMA) != 0;
        node = node->prev;
        if (item->first + item->count <= from && item->kind != CCI__ITEM_EXTERN) return;
        if (item->first + item->count <= expected && cci__rel_has_all(rel, item, now_ns) && is_rma)
            node = rel->items.prev; /* with the end of a fence others may have come to theirs */
    }
}

/* The peer has taken all sequence numbers below `expected`. */
static void cci__rel_taken(cci_rel_t *rel, uint64_t expected, uint64_t now_ns) {
    uint64_t from = rel->taken;
    if (CCI__UNLIKELY(!rel->reliable || expected > rel->next_sequence)) return; /* it was never told of these */
    rel->taken = cci__max64(from, expected);
    while (!cci__list_empty(&rel->items)) {
        cci_rel_item_t *item = CCI__CONTAINER(rel->items.next, cci_rel_item_t, node);
        if (CCI__LIKELY(item->first + item->count > expected)) {
            if (CCI__UNLIKELY(item->first < expected)) cci__rel_complete_first(rel, item);
            return;
        }
        if (!cci__rel_has_all(rel, item, now_ns)) break;
    }
    if (CCI__UNLIKELY(expected > from)) cci__rel_taken_behind(rel, from, expected, now_ns);
}

/* Completes the messages of an item that are in [lo, hi): the item went in several packets, and others of it may be
 * missing. */
static void cci__rel_complete_some(cci_rel_t *rel, cci_rel_item_t *item, uint64_t lo, uint64_t hi) {
    cci_rel_link_t **at = &item->ops;
    while (*at) {
        cci_rel_link_t *link = *at;
        if (link->sequence < lo || link->sequence >= hi) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        if (--link->op->parts == 0) rel->pool->sink->complete(rel->user, link->op);
    }
    item->ops_tail = at;
}

/* Completes what a TAKEN's ranges from `i` on name of an item, which are not all of it. */
static void cci__rel_complete_named(cci_rel_t *rel, cci_rel_item_t *item, const uint8_t *frame, uint32_t i,
                                    uint64_t base) {
    for (; i < frame[1] && !(item->flags & CCI__ITEM_VOID); i++) {
        uint64_t lo = base + cci__load16(frame + 8 + 4 * i), hi = base + cci__load16(frame + 10 + 4 * i);
        if (lo >= item->first + item->count || hi > rel->next_sequence) return;
        if (item->first < hi) cci__rel_complete_some(rel, item, lo, hi);
    }
}

/* Unordered, a TAKEN that is sound: what it names has been delivered. */
static void cci__rel_input_taken(cci_rel_t *rel, const uint8_t *frame, uint64_t now_ns) {
    uint64_t base = cci__expand32(cci__load32(frame + 4), rel->next_sequence), lo, hi;
    cci_list_t *node = rel->items.next;
    uint32_t i = 0;
    while (node != &rel->items && i < frame[1]) {
        cci_rel_item_t *item = CCI__CONTAINER(node, cci_rel_item_t, node);
        lo = base + cci__load16(frame + 8 + 4 * i);
        hi = base + cci__load16(frame + 10 + 4 * i);
        if (hi > rel->next_sequence) return;
        if (hi <= item->first) {
            i++;
            continue;
        }
        node = node->next;
        if (item->first < lo || item->first + item->count > hi) {
            cci__rel_complete_named(rel, item, frame, i, base);
        } else if ((item->flags & CCI__ITEM_RMA) != 0 && cci__rel_has_all(rel, item, now_ns)) {
            node = rel->items.next; /* others may have come to their end with it */
            i = 0;
        } else {
            (void)cci__rel_has_all(rel, item, now_ns);
        }
    }
}

/* A packet that was taken for lost has arrived: what it carried need not be sent again, if it was not yet. */
static void cci__rel_was_late(cci_rel_t *rel, cci_rel_sent_t *late, uint64_t now_ns) {
    cci_list_t *node = rel->lost.prev;
    if (CCI__FLOW_CAN_UNDO && late->fragment) cci__rel_reordered(rel, late->time_ns, now_ns);
    if (late->size > rel->pool->base_mtu) rel->large_lost = 0;
    cci__flow_was_late(&rel->flow, late->size);
    if (cci__rel_is_in_cut(rel, late) && --rel->late->head.missing == 0 &&
        rel->late->head.cut == (uint32_t)rel->flow.cut_ns)
        cci__flow_undo(&rel->flow, &rel->late->head.before);
    rel->largest_acked = cci__max64(rel->largest_acked, late->number);
    rel->probes = 0;
    while (node != &rel->lost && CCI__CONTAINER(node, cci_rel_sent_t, node)->number != late->number) node = node->prev;
    if (node != &rel->lost) cci__rel_acked(rel, CCI__CONTAINER(node, cci_rel_sent_t, node), now_ns);
    cci__rel_free_record(rel, late);
}

/* The same ranges of an ACK for those packets. Returns when the one with the largest number was sent, CCI__NEVER if
 * that is none of them. */
static CCI__RARE uint64_t cci__rel_ack_late(cci_rel_t *rel, const cci_range_t *range, uint32_t count, uint64_t now_ns) {
    cci_list_t *node = rel->late->head.node.prev;
    uint64_t sent_ns = CCI__NEVER;
    uint32_t i = 0;
    while (node != &rel->late->head.node) {
        cci_rel_sent_t *late = CCI__CONTAINER(node, cci_rel_sent_t, node);
        node = node->prev;
        while (i < count && late->number < range[i].lo) i++;
        if (i == count) break;
        if (late->number >= range[i].hi) continue;
        if (late->number == range[0].hi - 1) sent_ns = late->time_ns;
        cci__rel_was_late(rel, late, now_ns);
    }
    return sent_ns;
}

/* Forgets those of which it is certain by now that they were lost, and all when nothing is under way. */
static void cci__rel_settle_late(cci_rel_t *rel, uint64_t now_ns) {
    int is_all = cci__list_empty(&rel->flight) && cci__list_empty(&rel->lost);
    while (!is_all && !cci__list_empty(&rel->late->head.node)) {
        cci_rel_sent_t *late = CCI__CONTAINER(rel->late->head.node.next, cci_rel_sent_t, node);
        if (late->offset > rel->largest_acked || now_ns < late->time_ns + 2 * cci__rel_round_trip_ns(rel)) return;
        /* An unordered peer can name so many gaps only: there must not be more and more. */
        if (CCI__FLOW_CAN_UNDO && !rel->ordered) rel->reordering = 0;
        if (cci__rel_is_in_cut(rel, late)) rel->late->head.missing = 0;
        cci__rel_free_record(rel, late);
    }
    cci__rel_free_late(rel);
}

/* On an unordered connection: did the packet have an acknowledgement in it of what had been delivered? */
static int cci__rel_had_ack(const cci_rel_t *rel, const cci_rel_sent_t *sent) {
    return !rel->ordered && sent->number >= rel->by.unsure_from && sent->fragment == 0 && sent->item &&
           (sent->item->flags & CCI__ITEM_ANSWER);
}

#ifndef CCI_NO_ECN
/* ---- coming in: counts of codepoints ---- */

/* So many packets more were acknowledged. The peer should have told its counts by then. */
static inline void cci__rel_await_marks(cci_rel_t *rel, uint32_t acked) {
    cci__rel_ecn_t *ecn = cci__rel_ecn(rel);
    if (CCI__LIKELY(!rel->codepoint)) return;
    ecn->acked += acked;
    if ((int32_t)(ecn->acked - ecn->until) >= 0) rel->codepoint = 0;
}

/* Does the peer's count say that the path leaves codepoints alone [RFC 9000 13.4.2]? */
static int cci__rel_is_ecn_sound(cci_rel_t *rel, const uint8_t *frame, uint32_t total) {
    const cci__rel_ecn_t *ecn = cci__rel_ecn(rel);
    uint32_t unmarked = cci__load32(frame + 4), came = total - ecn->began_at;
    if (cci__load32(frame + 8) > 0 || (int32_t)(came - ecn->acked) < 0) return 0;
    if (came > (uint32_t)rel->next_number - ecn->from) return 0;
    return came < 10 || unmarked != ecn->began_unmarked; /* the first ten are not all marked */
}

/* The peer's counts, in a packet that is newer than all before. `acked_ns`: when the newest packet was sent of those
 * that it acknowledges for the first time; 0: none. */
static CCI__RARE void cci__rel_input_marks(cci_rel_t *rel, const uint8_t *frame, uint64_t acked_ns, uint64_t now_ns) {
    cci__rel_ecn_t *ecn = cci__rel_ecn(rel);
    uint32_t marked = cci__load32(frame + 12), total = cci__load32(frame + 4) + cci__load32(frame + 8) + marked;
    int is_first;
    if (!rel->codepoint) return;
    is_first = ecn->total == 0;
    if ((int32_t)(total - ecn->total) < 0) { /* it counts anew, after a pause */
        ecn->total = ecn->marked = 0;
        cci_rel_begin_ecn(rel);
    } else if (is_first && total > (uint32_t)rel->next_number - ecn->from) { /* or we do */
        ecn->total = total;
        ecn->marked = marked;
        cci_rel_begin_ecn(rel);
    }
    if (!cci__rel_is_ecn_sound(rel, frame, total)) {
        rel->codepoint = 0;
        return;
    }
    ecn->total = total;
    ecn->until = ecn->acked + 64 + 8 * cci__min32(total, 1024);
    if (marked == ecn->marked || acked_ns == 0) return; /* the next report tells it, too */
    ecn->marked = marked;
    cci__flow_marked(&rel->flow, rel->pool->congestion, acked_ns, rel->mtu, now_ns);
}

/* A packet with a codepoint has been taken. */
static inline void cci__rel_count_codepoint(cci_rel_t *rel) {
    cci__rel_ecn_t *ecn = cci__rel_ecn(rel);
    if (CCI__LIKELY(rel->pool->codepoint_in == 0) || !rel->pool->ecn_at) return;
    ecn->came[rel->pool->codepoint_in & 3]++;
    if (CCI__LIKELY(rel->pool->codepoint_in == 2 && ecn->came[2] != ecn->report_at)) return;
    ecn->report_at = ecn->came[2] + cci__min32(cci__max32(ecn->came[2], 4), 1024);
    rel->owes_marks = 1;
}
#endif

/* An ACK of `length` bytes at most; 0 if it is malformed. *acked_ns: when the newest packet was sent of those that it
 * names for the first time. */
static int cci__rel_input_ack(cci_rel_t *rel, const uint8_t *frame, uint32_t length, uint64_t *acked_ns,
                              uint64_t now_ns) {
    cci_range_t range[CCI__REL_ACK_MORE + 1];
    uint32_t count = cci__rel_parse_ack(frame, length, rel->next_number, range), newly = 0, named = 0;
    int limited = rel->in_flight + 2 * (uint64_t)rel->mtu > rel->flow.window;
    uint64_t largest, sent_ns = 0, sample_ns = CCI__NEVER,
                      overtaken = cci__rel_reordering(rel) ? rel->largest_acked : 0;
    cci_list_t *node;
    if (count == 0) return 0;
    largest = range[0].hi - 1;
    limited = limited || (int32_t)(rel->limited_number - (uint32_t)largest) > 0;
    if (CCI__UNLIKELY(rel->late != NULL)) sample_ns = cci__rel_ack_late(rel, range, count, now_ns);
    node = rel->flight.next;
    while (node != &rel->flight) {
        cci_rel_sent_t *sent = CCI__CONTAINER(node, cci_rel_sent_t, node);
        if (sent->number > largest) break;
        node = node->next;
        while (count > 1 && sent->number >= range[count - 1].hi) count--;
        if (sent->number < range[count - 1].lo || sent->number >= range[count - 1].hi) continue;
        if (sent->number == largest) sample_ns = sent->time_ns;
        rel->largest_acked = cci__max64(rel->largest_acked, sent->number);
        newly += sent->in_flight ? sent->size : 0;
        sent_ns = sent->time_ns;
        if (CCI__UNLIKELY(sent->number < overtaken)) cci__rel_reordered(rel, sent_ns, now_ns);
        rel->probes = 0;
        if (CCI__UNLIKELY(rel->unsure) && cci__rel_had_ack(rel, sent)) rel->unsure = rel->untold = 0;
        named++;
        cci__rel_acked(rel, sent, now_ns);
    }
    *acked_ns = sent_ns;
    CCI__REL_ECN(cci__rel_await_marks(rel, named);)
    (void)named;
    if (now_ns > sample_ns) cci__rel_sample_rtt(rel, largest, now_ns - sample_ns, cci__load16(frame + 2), now_ns);
    cci__rel_taken(rel, cci__expand32(cci__load32(frame + 12), rel->next_sequence), now_ns);
    if (newly > 0) cci__flow_arrived(&rel->flow, rel->pool->congestion, newly, sent_ns, limited, rel->mtu, now_ns);
    if (CCI__UNLIKELY(cci__rel_reordering(rel) > 0)) cci__rel_end_round(rel);
    cci__rel_detect_loss(rel, now_ns);
    if (CCI__UNLIKELY(rel->late != NULL)) cci__rel_settle_late(rel, now_ns);
    return 1;
}

/* The peer could not take a message for want of buffers: the packets that carry it and what follows come again
 * later. */
static void cci__rel_not_ready(cci_rel_t *rel, uint64_t sequence, uint64_t now_ns) {
    cci_list_t *node, *next;
    cci__rel_note(rel, CCI_REL_NOT_READY);
    rel->rnr = 1;
    rel->rnr_sequence = sequence;
    rel->rnr_delay_ns = rel->rnr_delay_ns ? cci__min32(rel->rnr_delay_ns * 2, 10000000) : 50000;
    rel->rnr_until_ns = now_ns + rel->rnr_delay_ns;
    if (rel->overdue_ns) rel->expire_ns = now_ns; /* that was the last try */
    for (node = rel->flight.next; node != &rel->flight; node = next) {
        cci_rel_sent_t *sent = CCI__CONTAINER(node, cci_rel_sent_t, node);
        next = node->next;
        if (sent->item && ((sent->item->kind != CCI__ITEM_BULK && rel->ordered && sent->item->first > sequence) ||
                           sequence - sent->item->first < sent->item->count))
            cci__rel_lost(rel, sent);
    }
}

/* The peer says that memory is not accessible: the write, and the message behind it, are withdrawn. */
static void cci__rel_refused(cci_rel_t *rel, uint64_t sequence, int status) {
    cci_list_t *node, *next;
    for (node = rel->items.next; node != &rel->items; node = node->next) {
        cci_rel_item_t *item = CCI__CONTAINER(node, cci_rel_item_t, node);
        uint32_t at = 0;
        cci_rel_link_t *link;
        if (sequence - item->first >= item->count || (item->flags & (CCI__ITEM_VOID | CCI__ITEM_DONE))) continue;
        if (item->kind == CCI__ITEM_BULK) {
            cci__rel_withdraw(rel, item, status);
            return;
        }
        if (item->kind != CCI__ITEM_RUN) return;
        while (at < item->length && cci__load32(item->frames + at + 4) != (uint32_t)sequence)
            at += (item->frames[at] == CCI__FRAME_BULK ? 48u : 8u) + cci__pad8(cci__load16(item->frames + at + 2));
        if (at >= item->length || item->frames[at] != CCI__FRAME_BULK) return;
        for (link = item->ops; link; link = link->next)
            if (link->sequence == sequence) link->op->status = status;
        item->frames[at] = CCI__FRAME_SKIP;
        cci__store16(item->frames + at + 2, 40u + cci__pad8(cci__load16(item->frames + at + 2)));
        at += 8 + cci__pad8(cci__load16(item->frames + at + 2));
        if (at < item->length && item->frames[at] == CCI__FRAME_MESSAGE && (item->frames[at + 1] & CCI__FRAME_AFTER))
            item->frames[at] = CCI__FRAME_SKIP;
        for (node = rel->flight.next; node != &rel->flight; node = next) {
            cci_rel_sent_t *sent = CCI__CONTAINER(node, cci_rel_sent_t, node);
            next = node->next;
            if (sent->item == item) cci__rel_lost(rel, sent);
        }
        return;
    }
}

static CCI__RARE void cci__rel_input_nack(cci_rel_t *rel, const uint8_t *frame, uint64_t now_ns) {
    uint64_t sequence = cci__expand32(cci__load32(frame + 4), rel->next_sequence);
    if (frame[1] == CCI_ERR_RNR)
        cci__rel_not_ready(rel, sequence, now_ns);
    else if (rel->reliable)
        cci__rel_refused(rel, sequence, CCI_ERR_RMA_HANDLE);
}

static void cci__rel_nack(cci_rel_t *rel, uint64_t sequence, int reason) {
    if (rel->nack_count == sizeof rel->nacks / sizeof rel->nacks[0])
        rel->nack_count--; /* the oldest ones matter most */
    rel->nacks[rel->nack_count] = (uint32_t)sequence;
    rel->nack_reasons[rel->nack_count++] = (uint8_t)reason;
}

/* ==================================================================================================================
 * >>rel-receive
 *
 * Packets of the peer come in. cci_rel_input() checks the whole packet first (cci__rel_scan()), then takes frame by
 * frame: messages are delivered, kept until what is before them has come, or refused; segments of writes are placed
 * where they belong; fragments are put together.
 *   Invariant: a packet counts as received only if everything in it has been taken, so the peer sends the rest
 * again.
 * ================================================================================================================== */

CCI_API uint32_t cci_rel_frame_size(const uint8_t *frame) {
    return (frame[0] == CCI__FRAME_BULK ? 48u : 8u) + cci__pad8(cci__load16(frame + 2));
}

/* Drops the first frame of a run, without asking what it is. */
CCI_API void cci_rel_run_skip(cci_rel_run_t *run) {
    uint32_t size = cci_rel_frame_size((const uint8_t *)run + run->begin);
    run->begin = (uint16_t)cci__min32(run->begin + size, run->end);
    run->count--;
}

static void cci__rel_deliver(cci_rel_t *rel, cci_rel_run_t *run) {
    run->next = NULL;
    if (rel->reliable) { /* what the program issues from now on may answer it */
        rel->unsure = 1;
        rel->run_limit = 0;
        if (!rel->ordered) rel->by.unsure_from = rel->next_number;
    }
    rel->pool->sink->deliver(rel->user, run);
}

/* Ordered: does the completion of something that the peer has, up to sequence number `taken`, wait for a remote
 * read? */
static inline int cci__rel_is_behind_read(const cci_rel_t *rel, uint64_t taken) {
    const cci_rel_item_t *item = CCI__CONTAINER(rel->items.next, const cci_rel_item_t, node);
    return !cci__list_empty(&rel->items) && item->kind == CCI__ITEM_EXTERN && item->first < taken;
}

/* Ordered: the next run waits for completions that come before it. It has its place in the order, so in the place of
 * its sequence number stands what must complete. */
static void cci__rel_gate(cci_rel_t *rel, cci_rel_run_t *run) {
    cci_rel_run_t *last = rel->by.gated;
    cci__store32((uint8_t *)run + run->begin + 4, (uint32_t)rel->taken);
    run->next = last ? last->next : run;
    if (last) last->next = run;
    rel->by.gated = run;
}

/* Ordered: the next run is delivered, or waits. */
static inline void cci__rel_deliver_ordered(cci_rel_t *rel, cci_rel_run_t *run) {
    if (CCI__UNLIKELY(rel->by.gated || cci__rel_is_behind_read(rel, rel->taken)))
        cci__rel_gate(rel, run);
    else
        cci__rel_deliver(rel, run);
}

/* Ordered: a remote read is done, or the connection ends. */
static void cci__rel_open_gate(cci_rel_t *rel) {
    while (rel->by.gated) {
        cci_rel_run_t *last = rel->by.gated, *first = last->next;
        if (cci__rel_is_behind_read(rel, cci__expand32(CCI__RUN_SEQUENCE(first), rel->taken))) return;
        last->next = first->next;
        if (first == last) rel->by.gated = NULL;
        cci__rel_deliver(rel, first);
    }
}

/* Unordered: whether a packet can say that [first, last) has been delivered. */
static int cci__rel_can_tell(const cci_rel_t *rel, uint64_t first, uint64_t last) {
    return first <= rel->expected || (last - rel->expected <= 0xffff &&
                                      (rel->untold == 0 || cci__ranges_fit(rel->sequences + CCI__REL_SEQUENCES,
                                                                           rel->untold, CCI__REL_UNTOLD, first, last)));
}

/* Unordered: a run is delivered, whose numbers from `first` on have been taken. Where its first message comes behind
 * a write, the peer is to know of that, too. */
static void cci__rel_deliver_unordered(cci_rel_t *rel, cci_rel_run_t *run, uint64_t first) {
    uint64_t last = first + run->count;
    uint32_t untold = rel->untold;
    if (CCI__UNLIKELY(last > rel->expected)) {
        first = cci__max64(first - (((const uint8_t *)run)[run->begin + 1] & CCI__FRAME_AFTER), rel->expected);
        (void)cci__ranges_add(rel->sequences + CCI__REL_SEQUENCES, &untold, CCI__REL_UNTOLD, first, last);
        rel->untold = (uint8_t)untold;
    }
    cci__rel_deliver(rel, run);
}

/* Ordered: delivers everything that has become due. */
static void cci__rel_advance(cci_rel_t *rel) {
    for (;;) {
        cci_rel_run_t *run = rel->early;
        cci_rel_part_t *part;
        if (run && cci__expand32(CCI__RUN_SEQUENCE(run), rel->expected) <= rel->expected) {
            uint64_t first = cci__expand32(CCI__RUN_SEQUENCE(run), rel->expected);
            rel->early = run->next;
            cci__rel_hold_buffer(rel, -1);
            if (first + run->count <= rel->expected) {
                rel->pool->sink->drop(rel->user, run->buffer);
                continue;
            }
            for (; first < rel->expected; first++) cci_rel_run_skip(run);
            rel->expected += run->count;
            cci__rel_deliver_ordered(rel, run);
            continue;
        }
        if (cci__list_empty(&rel->parts)) return;
        part = CCI__CONTAINER(rel->parts.next, cci_rel_part_t, node);
        if (part->first > rel->expected || (part->first == rel->expected && !part->complete)) return;
        if (part->first == rel->expected && part->buffer) {
            run = (cci_rel_run_t *)(void *)part->memory;
            part->buffer = NULL; /* the reference goes with the run */
            cci__rel_hold_buffer(rel, -1);
            rel->expected += part->count;
            cci__rel_free_part(rel, part);
            cci__rel_deliver_ordered(rel, run);
            continue;
        }
        rel->expected = cci__max64(rel->expected, part->first + part->count);
        cci__rel_free_part(rel, part);
    }
}

static int cci__rel_have(const cci_rel_t *rel, uint64_t lo, uint64_t hi) {
    if (hi <= rel->expected || hi < lo) /* or from before the first */
        return CCI__RANGE_OLD;
    if (lo < rel->expected) return CCI__RANGE_MIXED;
    return cci__ranges_test(rel->sequences, rel->sequence_count, lo, hi);
}

/* Whether sequence numbers that came too early can be remembered. */
static int cci__rel_room_for(cci_rel_t *rel, uint64_t lo, uint64_t hi) {
    return rel->ordered || lo <= rel->expected ||
           cci__rel_gaps_fit(rel, &rel->sequences, rel->sequence_count, &rel->sequence_capacity, CCI__REL_SEQUENCES, lo,
                             hi);
}

/* Unordered: [lo, hi) has been taken. 0 if that can't be remembered. */
static int cci__rel_take(cci_rel_t *rel, uint64_t lo, uint64_t hi) {
    lo = cci__max64(lo, rel->expected);
    if (hi <= lo) return 1;
    if (lo > rel->expected) {
        if (!cci__rel_room_for(rel, lo, hi)) return 0;
        (void)cci__ranges_add(rel->sequences, &rel->sequence_count, rel->sequence_capacity, lo, hi);
    }
    if (lo == rel->expected) rel->expected = hi;
    while (rel->sequence_count > 0 && rel->sequences[0].lo <= rel->expected) {
        rel->expected = cci__max64(rel->expected, rel->sequences[0].hi);
        memmove(rel->sequences, rel->sequences + 1, --rel->sequence_count * sizeof rel->sequences[0]);
    }
    while (rel->untold > 0 && rel->sequences[CCI__REL_SEQUENCES].hi <= rel->expected)
        memmove(rel->sequences + CCI__REL_SEQUENCES, rel->sequences + CCI__REL_SEQUENCES + 1,
                --rel->untold * sizeof rel->sequences[0]);
    if (rel->sequence_count == 0) cci__rel_free_sequences(rel);
    return 1;
}

/* Unordered: must a run that begins with number `first` wait: for the number before it, or since no packet could say
 * that it has been delivered? */
static int cci__rel_must_wait(const cci_rel_t *rel, const uint8_t *frame, uint64_t first, uint64_t last) {
    int after = (frame[1] & CCI__FRAME_AFTER) != 0;
    return (after && cci__rel_have(rel, first - 1, first) != CCI__RANGE_OLD) ||
           !cci__rel_can_tell(rel, first - (first > 0 && after), last);
}

/* Unordered: more has been taken; a message that waited may go. */
static void cci__rel_unblock(cci_rel_t *rel) {
    cci_rel_run_t **at = &rel->early;
    while (*at) {
        cci_rel_run_t *run = *at;
        uint64_t first = cci__expand32(CCI__RUN_SEQUENCE(run), rel->expected);
        if (!cci__rel_must_wait(rel, (const uint8_t *)run + run->begin, first, first + run->count)) {
            *at = run->next;
            cci__rel_hold_buffer(rel, -1);
            cci__rel_deliver_unordered(rel, run, first);
        } else {
            at = &run->next;
        }
    }
}

/* Gives up what has arrived of [first, last) in pieces. */
static void cci__rel_drop_parts(cci_rel_t *rel, uint64_t first, uint64_t last) {
    cci_list_t *node, *next;
    for (node = rel->parts.next; node != &rel->parts; node = next) {
        cci_rel_part_t *part = CCI__CONTAINER(node, cci_rel_part_t, node);
        next = node->next;
        if (part->first >= first && part->first < last) cci__rel_free_part(rel, part);
    }
}

/* What became of a packet's content. */
enum { CCI__TAKEN, CCI__REFUSED };

/* Puts a write that is whole where it belongs, or only checks that it may; 0, and a NACK is owed, if not. */
static int cci__rel_place_frame(cci_rel_t *rel, const uint8_t *frame, int check_only) {
    cci_rel_bulk_t target;
    int status;
    if (frame[0] != CCI__FRAME_BULK) return 1;
    target.key = cci__load64(frame + 8);
    target.region = cci__load32(frame + 16);
    target.remote_offset = cci__load64(frame + 24);
    target.length = cci__load64(frame + 40);
    status = rel->pool->sink->place(rel->user, &target, 0, check_only ? NULL : frame + 48, cci__load16(frame + 2));
    if (status == CCI_SUCCESS) return 1;
    cci__rel_nack(rel, cci__load32(frame + 4), status);
    return 0;
}

/* The same for all of a run's `count` frames. */
static int cci__rel_place_run(cci_rel_t *rel, const uint8_t *frame, uint32_t count, int check_only) {
    for (;;) CCI__LOOP(place_run) {
            if (!cci__rel_place_frame(rel, frame, check_only)) return 0;
            if (--count == 0) return 1;
            frame += cci_rel_frame_size(frame); /* never behind the last: it need not be padded */
        }
}

/* Is the message that is needed next arriving in pieces? The rest of it needs no more memory. */
static int cci__rel_has_due_part(const cci_rel_t *rel) {
    return !cci__list_empty(&rel->parts) &&
           CCI__CONTAINER(rel->parts.next, cci_rel_part_t, node)->first <= rel->expected;
}

static cci_rel_part_t *cci__rel_part(cci_rel_t *rel, uint64_t first, int make);
static int cci__rel_fill(cci_rel_t *rel, cci_rel_part_t *part, uint64_t offset, uint32_t length);

/* No buffer is free for a message that has come whole, but pieces of it had come before, and have one: there is room
 * for all of it. `frame`: the first of a run, which begins with sequence number `first`. */
static int cci__rel_complete_part(cci_rel_t *rel, const uint8_t *frame, uint64_t first) {
    uint32_t length = cci__load16(frame + 2);
    cci_rel_part_t *part = cci__rel_part(rel, first, 0);
    if (!part || frame[0] != CCI__FRAME_MESSAGE || !part->buffer || part->complete || part->total != length) return 0;
    memcpy(part->memory + CCI_REL_HEADER + 8, frame + 8, length);
    (void)cci__rel_fill(rel, part, 0, length);
    return 1;
}

/* May a run with these numbers come in? Where some of them were withdrawn or came in another packet, those are left of
 * [*first, *last) that come before the next of these. Else *outcome says what becomes of it. */
static int cci__rel_wants_run(cci_rel_t *rel, uint64_t *first, uint64_t *last, int *outcome) {
    int have = cci__rel_have(rel, *first, *last);
    uint32_t i;
    *outcome = have == CCI__RANGE_OLD ? CCI__TAKEN : CCI__REFUSED;
    if (have == CCI__RANGE_OLD) return 0; /* once more; it only wants its acknowledgement */
    if (CCI__UNLIKELY(rel->leaving)) {
        rel->leaving = 2;
        return 0;
    }
    if (have != CCI__RANGE_MIXED) return 1;
    *first = cci__max64(*first, rel->expected);
    for (i = 0; i < rel->sequence_count && rel->sequences[i].lo <= *first; i++)
        *first = cci__max64(*first, rel->sequences[i].hi);
    if (i < rel->sequence_count) *last = cci__min64(*last, rel->sequences[i].lo);
    return 1;
}

/* Has all come of a run that lies behind what was left of it? */
static int cci__rel_has_rest(const cci_rel_t *rel, uint64_t last, uint64_t behind) {
    return last == behind || cci__rel_have(rel, last, behind) == CCI__RANGE_OLD;
}

/* Where a run with these numbers belongs among those that wait for what comes before them. NULL if one of them has some
 * of its messages; *outcome says whether it has all. */
static cci_rel_run_t **cci__rel_place_early(cci_rel_t *rel, uint64_t first, uint64_t last, int *outcome) {
    cci_rel_run_t **at = &rel->early;
    uint64_t other;
    if (rel->early && rel->early_last && /* mostly behind all others */
        cci__expand32(CCI__RUN_SEQUENCE(rel->early_last), rel->expected) + rel->early_last->count <= first)
        at = &rel->early_last->next;
    while (*at && cci__expand32(CCI__RUN_SEQUENCE(*at), rel->expected) + (*at)->count <= first) at = &(*at)->next;
    if (!*at) return at;
    other = cci__expand32(CCI__RUN_SEQUENCE(*at), rel->expected);
    if (other >= last) return at;
    *outcome = other <= first && last <= other + (*at)->count ? CCI__TAKEN : CCI__REFUSED;
    return NULL;
}

/* There is no buffer for a run: but a message that came in part has one, and may be completed from the packet. */
static int cci__rel_lacks_buffer(cci_rel_t *rel, const uint8_t *frame, uint64_t first, uint32_t count) {
    int in_order = first <= rel->expected;
    if (cci__rel_complete_part(rel, frame, first) && count == 1) return CCI__TAKEN;
    if (in_order || !rel->ordered) cci__rel_nack(rel, cci__max64(first, rel->expected), CCI_ERR_RNR);
    if (in_order && !cci__rel_has_due_part(rel)) rel->advanced = 1; /* it is not its fault that it gets no further */
    return CCI__REFUSED;
}

/* A run that is due is delivered on an ordered connection, another one waits at its place. */
static void cci__rel_take_ordered(cci_rel_t *rel, cci_rel_run_t *run, cci_rel_run_t **place, uint64_t last,
                                  int is_due) {
    if (!is_due) {
        run->next = *place;
        *place = run;
        cci__rel_hold_buffer(rel, 1);
        if (!run->next) rel->early_last = run;
        return;
    }
    rel->expected = last;
    cci__rel_deliver_ordered(rel, run);
    if (CCI__UNLIKELY(rel->early || !cci__list_empty(&rel->parts))) cci__rel_advance(rel);
}

/* On an unordered connection a run waits for remote writes alone. */
static void cci__rel_take_unordered(cci_rel_t *rel, cci_rel_run_t *run, uint64_t first, uint64_t last, int waits) {
    cci__rel_drop_parts(rel, first, last); /* pieces of what is here as a whole */
    (void)cci__rel_take(rel, first, last);
    if (CCI__UNLIKELY(waits)) {
        run->next = rel->early;
        rel->early = run;
        cci__rel_hold_buffer(rel, 1);
    } else {
        cci__rel_deliver_unordered(rel, run, last - run->count);
    }
    if (CCI__UNLIKELY(rel->early != NULL)) cci__rel_unblock(rel);
}

static void cci__rel_fill_run(cci_rel_run_t *run, void *buffer, uint32_t begin, uint32_t end, uint32_t count) {
    run->buffer = buffer;
    run->begin = (uint16_t)begin;
    run->end = (uint16_t)end;
    run->count = count;
}

/* Takes a packet's run of an unreliable connection, which is due: nothing comes before it. */
static int cci__rel_input_unreliable_run(cci_rel_t *rel, uint8_t *bytes, uint32_t begin, uint32_t end, uint32_t count,
                                         int has_bulk, void *buffer) {
    cci_rel_run_t *run = (cci_rel_run_t *)(void *)bytes;
    if (has_bulk || !rel->pool->sink->keep(rel->user, buffer, 1)) return CCI__REFUSED;
    cci__rel_fill_run(run, buffer, begin, end, count);
    cci__rel_deliver(rel, run);
    return CCI__TAKEN;
}

/* Takes a packet's run of messages: `count` frames from `begin` to `end` in the packet at `bytes`. What it has behind
 * others that have come is refused: it comes again. */
static int cci__rel_input_run(cci_rel_t *rel, uint8_t *bytes, uint32_t begin, uint32_t end, uint32_t count,
                              int has_bulk, void *buffer) {
    uint64_t at = cci__expand32(cci__load32(bytes + begin + 4), rel->expected), first = at, last = at + count;
    uint64_t behind = last;
    cci_rel_run_t *run = (cci_rel_run_t *)(void *)bytes, **place = NULL;
    int in_order, waits = 0, outcome;
    if (!rel->reliable) return cci__rel_input_unreliable_run(rel, bytes, begin, end, count, has_bulk, buffer);
    if (!cci__rel_wants_run(rel, &first, &last, &outcome)) return outcome;
    for (; at < first; at++) begin += cci_rel_frame_size(bytes + begin);
    count = (uint32_t)(last - first);
    in_order = first <= rel->expected;
    if (!rel->ordered && !in_order) waits = cci__rel_must_wait(rel, bytes + begin, first, last);
    if (rel->ordered && !in_order && !(place = cci__rel_place_early(rel, first, last, &outcome))) return outcome;
    if (has_bulk && !cci__rel_place_run(rel, bytes + begin, count, 1)) return CCI__REFUSED;
    if (!cci__rel_room_for(rel, first, last)) return CCI__REFUSED;
    if (!rel->pool->sink->keep(rel->user, buffer, in_order || (!rel->ordered && !waits))) {
        outcome = cci__rel_lacks_buffer(rel, bytes + begin, first, count);
    } else {
        if (has_bulk) (void)cci__rel_place_run(rel, bytes + begin, count, 0);
        cci__rel_fill_run(run, buffer, begin, end, count);
        if (rel->ordered)
            cci__rel_take_ordered(rel, run, place, last, in_order);
        else
            cci__rel_take_unordered(rel, run, first, last, waits);
        outcome = CCI__TAKEN;
    }
    return cci__rel_has_rest(rel, last, behind) ? outcome : CCI__REFUSED;
}

/* The part that begins at this sequence number, made if there is none; NULL if that is not possible. */
static cci_rel_part_t *cci__rel_part(cci_rel_t *rel, uint64_t first, int make) {
    cci_list_t *node;
    cci_rel_part_t *part;
    for (node = rel->parts.prev; node != &rel->parts; node = node->prev) {
        part = CCI__CONTAINER(node, cci_rel_part_t, node);
        if (part->first == first) return part;
        if (part->first < first) break;
    }
    if (!make) return NULL;
    if (CCI__UNLIKELY(rel->leaving)) {
        rel->leaving = 2;
        return NULL;
    }
    if (rel->pool->part_free == 0 || !cci__rel_has(rel->pool, &rel->pool->parts, CCI_REL_PARTS)) {
        rel->pool->starved = 1;
        return NULL;
    }
    if (!rel->reliable || first > rel->expected) { /* what comes too early leaves some to what is due */
        uint32_t reserve = cci__max32(rel->pool->part_total / 4, 1);
        if (rel->part_count >= CCI__REL_PARTS || rel->pool->part_free <= reserve ||
            !cci__share(rel->part_count, rel->pool->part_free - reserve))
            return NULL;
    }
    rel->pool->part_free--;
    rel->part_count++;
    part = CCI__CONTAINER(rel->pool->parts.next, cci_rel_part_t, node);
    cci__list_remove(&part->node);
    cci__list_insert(node->next, &part->node);
    part->first = first;
    part->total = part->range_count = 0;
    part->count = 1;
    part->complete = part->after = 0;
    part->buffer = NULL;
    part->memory = NULL;
    part->ranges = part->few;
    part->range_capacity = CCI__REL_FEW_GAPS;
    return part;
}

/* Marks [offset, offset + length) of a part; TAKEN, and perhaps the part is complete and delivered. */
static int cci__rel_fill(cci_rel_t *rel, cci_rel_part_t *part, uint64_t offset, uint32_t length) {
    uint64_t first = part->first;
    cci_rel_run_t *run;
    rel->advanced = 1;
    (void)cci__ranges_add(part->ranges, &part->range_count, part->range_capacity, offset, offset + length);
    if (part->range_count != 1 || part->ranges[0].lo != 0 || part->ranges[0].hi != part->total) return CCI__TAKEN;
    part->complete = 1;
    if (rel->ordered) {
        cci__rel_advance(rel);
        return CCI__TAKEN;
    }
    run = part->buffer ? (cci_rel_run_t *)(void *)part->memory : NULL;
    part->buffer = NULL; /* the reference goes with the run */
    cci__rel_free_part(rel, part);
    if (!rel->reliable) {
        cci__rel_hold_buffer(rel, -1);
        cci__rel_deliver(rel, run);
        return CCI__TAKEN;
    }
    (void)cci__rel_take(rel, first, first + 1);
    if (run) {
        run->next = rel->early;
        rel->early = run;
    }
    cci__rel_unblock(rel);
    return CCI__TAKEN;
}

/* Whether a piece may be marked: it must not open more gaps than are remembered, nor more holes in the sequence. */
static int cci__rel_fits(cci_rel_t *rel, cci_rel_part_t *part, uint64_t sequence, uint64_t offset, uint64_t end) {
    return cci__rel_room_for(rel, sequence, sequence + 1) &&
           cci__rel_gaps_fit(rel, &part->ranges, part->range_count, &part->range_capacity, CCI__REL_GAPS, offset, end);
}

/* A segment of a bulk write. */
static int cci__rel_input_bulk(cci_rel_t *rel, const uint8_t *frame) {
    uint64_t sequence = cci__expand32(cci__load32(frame + 4), rel->expected), offset = cci__load64(frame + 32);
    uint32_t length = cci__load16(frame + 2);
    cci_rel_bulk_t target;
    cci_rel_part_t *part;
    int status;
    if (cci__rel_have(rel, sequence, sequence + 1) == CCI__RANGE_OLD) return CCI__TAKEN;
    target.key = cci__load64(frame + 8);
    target.region = cci__load32(frame + 16);
    target.remote_offset = cci__load64(frame + 24);
    target.length = cci__load64(frame + 40);
    part = cci__rel_part(rel, sequence, 0);
    if (!part) {
        status = rel->pool->sink->place(rel->user, &target, offset, NULL, length);
        if (status != CCI_SUCCESS) {
            cci__rel_nack(rel, sequence, status);
            return CCI__REFUSED;
        }
        part = cci__rel_part(rel, sequence, 1);
    }
    if (!part) return CCI__REFUSED;
    if (part->complete) return CCI__TAKEN;
    if (part->range_count == 0 && part->total == 0) part->total = target.length;
    if (part->total != target.length || part->buffer || !cci__rel_fits(rel, part, sequence, offset, offset + length))
        return CCI__REFUSED;
    if (cci__ranges_test(part->ranges, part->range_count, offset, offset + length) == CCI__RANGE_OLD) return CCI__TAKEN;
    status = rel->pool->sink->place(rel->user, &target, offset, frame + 48, length);
    if (status != CCI_SUCCESS) { /* it was deregistered meanwhile */
        cci__rel_nack(rel, sequence, status);
        return CCI__REFUSED;
    }
    return cci__rel_fill(rel, part, offset, length);
}

/* Unreliable: a message of which a piece is lost never becomes whole. The oldest make room, and all go after a
 * second. */
static void cci__rel_unreliable_part(cci_rel_t *rel, uint64_t sequence, uint64_t now_ns) {
    cci_list_t *node;
    uint32_t count = 0;
    if (cci__rel_part(rel, sequence, 0)) return;
    for (node = rel->parts.next; node != &rel->parts; node = node->next) count++;
    if (count >= CCI__REL_UNRELIABLE_PARTS)
        cci__rel_free_part(rel, CCI__CONTAINER(rel->parts.next, cci_rel_part_t, node));
    rel->expire_ns = now_ns + 1000 * CCI__MS;
}

/* A piece of a message that is longer than the path's packets. */
static int cci__rel_input_fragment(cci_rel_t *rel, const uint8_t *frame, uint64_t now_ns) {
    uint64_t sequence = cci__expand32(cci__load32(frame + 4), rel->expected);
    uint32_t length = cci__load16(frame + 2), offset = cci__load32(frame + 8), total = cci__load32(frame + 12);
    cci_rel_part_t *part;
    int in_order = rel->reliable && sequence == rel->expected;
    if (!rel->reliable)
        cci__rel_unreliable_part(rel, sequence, now_ns);
    else if (cci__rel_have(rel, sequence, sequence + 1) == CCI__RANGE_OLD)
        return CCI__TAKEN;
    part = cci__rel_part(rel, sequence, 1);
    if (!part) return CCI__REFUSED;
    if (part->complete) return CCI__TAKEN;
    if (part->range_count == 0 && part->total == 0) {
        part->memory = rel->pool->sink->assemble(rel->user, 8 + cci__pad8(total), in_order, &part->buffer);
        if (!part->memory) {
            part->buffer = NULL;
            cci__rel_free_part(rel, part);
            if (rel->reliable && (in_order || !rel->ordered)) cci__rel_nack(rel, sequence, CCI_ERR_RNR);
            rel->advanced |= (uint8_t)in_order;
            return CCI__REFUSED;
        }
        cci__rel_hold_buffer(rel, 1);
        {
            cci_rel_run_t *run = (cci_rel_run_t *)(void *)part->memory;
            run->buffer = part->buffer;
            run->begin = CCI_REL_HEADER;
            run->end = (uint16_t)(CCI_REL_HEADER + 8 + total);
            run->count = 1;
            cci__rel_frame(part->memory + CCI_REL_HEADER, CCI__FRAME_MESSAGE, frame[1], total, sequence);
        }
        part->total = total;
        part->after = frame[1] & CCI__FRAME_AFTER;
    }
    if (part->total != total || !part->buffer || !cci__rel_fits(rel, part, sequence, offset, offset + length))
        return CCI__REFUSED;
    if (cci__ranges_test(part->ranges, part->range_count, offset, offset + length) == CCI__RANGE_OLD) return CCI__TAKEN;
    memcpy(part->memory + CCI_REL_HEADER + 8 + offset, frame + 16, length);
    return cci__rel_fill(rel, part, offset, length);
}

/* The sender has withdrawn [first, first + count). */
static int cci__rel_input_void(cci_rel_t *rel, const uint8_t *frame) {
    uint64_t first = cci__expand32(cci__load32(frame + 4), rel->expected);
    uint64_t last = first + cci__load32(frame + 8) + (frame[1] & CCI__FRAME_AFTER);
    cci_rel_part_t *part;
    if (last <= rel->expected || last < first) return CCI__TAKEN;
    cci__rel_drop_parts(rel, first, last);
    if (rel->ordered) {
        part = cci__rel_part(rel, first, 1);
        if (!part) return CCI__REFUSED;
        part->count = (uint32_t)(last - first);
        part->complete = 1;
        cci__rel_advance(rel);
        return CCI__TAKEN;
    }
    if (!cci__rel_take(rel, first, last)) return CCI__REFUSED;
    if (frame[1] & CCI__FRAME_AFTER) { /* the message of a withdrawn write may already wait for it */
        cci_rel_run_t **at = &rel->early;
        while (*at && cci__expand32(CCI__RUN_SEQUENCE(*at), rel->expected) != last - 1) at = &(*at)->next;
        if (*at) {
            cci_rel_run_t *run = *at;
            cci_rel_run_skip(run);
            if (run->count == 0) {
                *at = run->next;
                cci__rel_hold_buffer(rel, -1);
                rel->pool->sink->drop(rel->user, run->buffer);
            }
        }
    }
    cci__rel_unblock(rel);
    return CCI__TAKEN;
}

/* Are the ranges of a TAKEN there, ascending, and none of them empty? */
static int cci__rel_check_taken(const uint8_t *frame, uint32_t length) {
    uint32_t i, end = 0;
    if (frame[1] == 0 || frame[1] > CCI__REL_TAKEN_RANGES || cci__pad8(8 + 4u * frame[1]) > length) return 0;
    for (i = 0; i < frame[1]; i++) {
        if (cci__load16(frame + 8 + 4 * i) <= end) return 0;
        end = cci__load16(frame + 10 + 4 * i);
        if (end <= cci__load16(frame + 8 + 4 * i)) return 0;
    }
    return 1;
}

/* Does this part of a message, or of a remote write, lie in it? `length` bytes are there. */
static int cci__rel_check_part(const uint8_t *frame, uint32_t length) {
    uint32_t data = cci__load16(frame + 2);
    if (length < 16 || data == 0) return 0;
    if (frame[0] == CCI__FRAME_FRAGMENT)
        return cci__load32(frame + 12) <= 0xffff && cci__load32(frame + 8) <= cci__load32(frame + 12) &&
               data <= cci__load32(frame + 12) - cci__load32(frame + 8);
    return length >= 48 && cci__load64(frame + 32) <= cci__load64(frame + 40) &&
           data <= cci__load64(frame + 40) - cci__load64(frame + 32);
}

static int cci__rel_check_void(const uint8_t *frame, uint32_t length) {
    return length >= 16 && cci__load32(frame + 8) > 0 && cci__load32(frame + 8) < 0x40000000;
}

/* The length of the frame at `frame`, of which `length` bytes are there, and whether it is sound; 0 if not. Frames
 * for other layers and PAD reach to the end. */
static uint32_t cci__rel_check(const uint8_t *frame, uint32_t length) {
    uint32_t data, size;
    if (frame[0] >= CCI__FRAME_OTHER || frame[0] == CCI__FRAME_PAD) return length;
    if (length < 8) return 0;
    data = cci__load16(frame + 2);
    switch (frame[0]) {
    case CCI__FRAME_MESSAGE:
    case CCI__FRAME_SKIP: size = 8; break;
    case CCI__FRAME_FRAGMENT:
    case CCI__FRAME_BULK:
        if (!cci__rel_check_part(frame, length)) return 0;
        size = frame[0] == CCI__FRAME_BULK ? 48 : 16;
        break;
    case CCI__FRAME_VOID: return cci__rel_check_void(frame, length) ? 16 : 0;
    case CCI__FRAME_ACK: return length >= 16 ? cci__pad8(16 + 4u * frame[1]) : 0;
    case CCI__FRAME_NACK:
    case CCI__FRAME_PING: return 8;
    case CCI__FRAME_TAKEN: return cci__rel_check_taken(frame, length) ? cci__pad8(8 + 4u * frame[1]) : 0;
    default: return 0;
    }
    if (data > length - size) return 0;
    return cci__min32(size + cci__pad8(data), length); /* the last frame of a packet need not be padded */
}

/* The same on a connection whose messages have `message_max` bytes at most; 0 also for what is longer
 * than the packet. */
static uint32_t cci__rel_check_for(const uint8_t *frame, uint32_t length, uint32_t message_max) {
    uint32_t size = cci__rel_check(frame, length);
    if (size == 0 || size > length || (frame[0] == CCI__FRAME_MESSAGE && cci__load16(frame + 2) > message_max) ||
        (frame[0] == CCI__FRAME_FRAGMENT && cci__load32(frame + 12) > message_max))
        return 0;
    return size;
}

/* Is it part of a run? A bulk write that is whole is. */
static int cci__rel_in_run(const uint8_t *frame) {
    return frame[0] == CCI__FRAME_MESSAGE || frame[0] == CCI__FRAME_SKIP ||
           (frame[0] == CCI__FRAME_BULK && cci__load64(frame + 40) == cci__load16(frame + 2));
}

/* Notes that packet `number` is to be acknowledged. */
static void cci__rel_owe(cci_rel_t *rel, uint32_t length, int gap, uint64_t now_ns) {
    rel->ack_count++;
    rel->ack_bytes += length;
    if (rel->ack_at_ns == CCI__NEVER) rel->ack_at_ns = now_ns + CCI__REL_ACK_DELAY_NS;
    rel->stream_bytes = cci__min32(rel->stream_bytes + length, UINT32_C(1) << 30);
    if (gap || rel->ack_bytes >= rel->pool->ack_bytes || (rel->ack_count >= 8 && rel->stream_bytes < CCI__REL_STREAM))
        rel->ack_now = 1;
}

/* The run of a packet: frames side by side with consecutive sequence numbers. */
typedef struct cci__rel_span {
    uint32_t begin, end; /* in the packet */
    uint32_t count;
    uint32_t next; /* the low 32 bits of the sequence number behind it */
    int has_bulk;
} cci__rel_span_t;

/* Checks all frames of a packet, up to one of another layer, and finds its run. 0 if the packet is unsound. */
static int cci__rel_scan(const uint8_t *bytes, uint32_t length, uint32_t message_max, cci__rel_span_t *run) {
    uint32_t at, size;
    memset(run, 0, sizeof *run);
    for (at = CCI_REL_HEADER; at < length; at += size) CCI__LOOP(scan) {
            const uint8_t *frame = bytes + at;
            size = cci__rel_check_for(frame, length - at, message_max);
            if (size == 0) return 0;
            if (!cci__rel_in_run(frame)) continue;
            if (run->count == 0)
                run->begin = at;
            else if (cci__load32(frame + 4) != run->next || run->end != at)
                return 0;
            run->next = cci__load32(frame + 4) + 1;
            run->end = at + size;
            run->count++;
            run->has_bulk |= frame[0] == CCI__FRAME_BULK;
        }
    return 1;
}

/* Does a packet carry nothing but acknowledgements and refusals? Who has nothing under way has no use for it. */
CCI_API int cci_rel_only_answers(const uint8_t *bytes, uint32_t length) {
    uint32_t at, size;
    for (at = CCI_REL_HEADER; at < length; at += size) {
        int type = bytes[at];
        size = type == CCI__FRAME_ACK || type == CCI__FRAME_NACK || type == CCI__FRAME_MARKS
                   ? cci__rel_check_for(bytes + at, length - at, 0)
                   : 0;
        if (size == 0) return 0;
    }
    return 1;
}

/* Notes a packet's number where its ranges are full: the pool may have space for more, or else the lowest range is
 * forgotten, with the gap behind it. A packet from before all ranges is then not named to the peer, but no range
 * goes for it: one at least stays, for the acknowledgement that is due. */
static void cci__rel_note_number(cci_rel_t *rel, uint64_t number) {
    cci_rel_pool_t *pool = rel->pool;
    if (rel->number_capacity < CCI__REL_RANGES && cci__rel_has(pool, &pool->numbers, CCI_REL_NUMBERS)) {
        cci_list_t *node = pool->numbers.next;
        cci__list_remove(node);
        memcpy(node, rel->numbers, rel->number_count * sizeof rel->numbers[0]);
        rel->numbers = CCI__CONTAINER(node, cci_rel_numbers_t, node)->range;
        rel->number_capacity = CCI__REL_RANGES;
    } else if (number < rel->numbers[0].lo) {
        rel->floor_number = number + 1;
    } else {
        rel->floor_number = rel->numbers[0].hi;
        memmove(rel->numbers, rel->numbers + 1, --rel->number_count * sizeof rel->numbers[0]);
    }
    if (number >= rel->floor_number)
        (void)cci__ranges_add(rel->numbers, &rel->number_count, rel->number_capacity, number, number + 1);
}

/* There are more ranges than an ACK can name, and a packet has come out of order: the next one goes down to it, and
 * leaves out others. */
static void cci__rel_note_low(cci_rel_t *rel, uint64_t number) {
    uint32_t i = 0;
    while (i < rel->number_count && rel->numbers[i].hi <= number) i++;
    if (i + CCI__REL_ACK_MORE + 1 < rel->number_count) rel->low_range = (i + 1) & 31;
}

/* The whole number of a packet that comes now with these low bits. */
CCI_API uint64_t cci_rel_expand(const cci_rel_t *rel, uint32_t number_low) {
    return cci__expand32(number_low, rel->number_count ? rel->numbers[rel->number_count - 1].hi : rel->floor_number);
}

/* A frame that is not of messages: counts of codepoints, or one of another layer. Returns its bytes, or 0 when what is
 * behind it means nothing. */
static uint32_t cci__rel_input_other(cci_rel_t *rel, const uint8_t *frame, uint32_t left, uint64_t acked_ns,
                                     int is_newest, uint64_t now_ns) {
    uint32_t size;
    CCI__REL_ECN(if (frame[0] == CCI__FRAME_MARKS) {
        if (left >= CCI__REL_MARKS_SIZE && is_newest) cci__rel_input_marks(rel, frame, acked_ns, now_ns);
        return 0;
    })
    (void)acked_ns;
    (void)is_newest;
    size = rel->pool->sink->frame(rel->user, frame, left, now_ns);
    return size <= left ? size : 0;
}

static int cci__rel_malformed(cci_rel_t *rel) {
    rel->pool->packets_malformed++;
    return CCI_REL_UNSOUND;
}

/* Takes a packet of the peer: `length` bytes at `bytes`, 8-byte aligned, header included, which may be overwritten
 * as long as the packet is kept; `buffer` is the user's name for the memory. Returns one of CCI_REL_UNSOUND, _SOUND,
 * _NEWEST. */
CCI_API int cci_rel_input(cci_rel_t *rel, uint8_t *bytes, uint32_t length, uint32_t number_low, void *buffer,
                          uint64_t now_ns) {
    uint32_t at, size, acked = 0, nacked = 0, told = 0, pieces = 0;
    cci__rel_span_t run;
    uint64_t top = rel->number_count ? rel->numbers[rel->number_count - 1].hi : rel->floor_number;
    uint64_t number = cci__expand32(number_low, top), expected = rel->expected, acked_ns = 0;
    int eliciting = 0, pinged = 0, outcome = CCI__TAKEN, gap;
    int held = cci__rel_holds(rel);
    if (number >= UINT64_MAX / 2) return CCI_REL_UNSOUND;
    rel->advanced = 0;
    if ((rel->reliable || rel->once) &&
        (number < rel->floor_number ||
         cci__ranges_test(rel->numbers, rel->number_count, number, number + 1) != CCI__RANGE_NEW)) {
        rel->pool->packets_duplicate++;
        if (rel->number_count == 0 || !rel->reliable)
            return CCI_REL_SOUND; /* from before a pause: there is nothing to name */
        rel->ack_count++;         /* the acknowledgement may have been lost */
        if (rel->ack_at_ns == CCI__NEVER) rel->ack_at_ns = now_ns + CCI__REL_ACK_DELAY_NS;
        return CCI_REL_SOUND;
    }
    /* a packet is sound or is not: look at all of it first */
    if (!cci__rel_scan(bytes, length, rel->message_max, &run)) return cci__rel_malformed(rel);
    rel->heard_ns = now_ns;
    for (at = CCI_REL_HEADER; at < length; at += size) CCI__LOOP(input) {
            const uint8_t *frame = bytes + at;
            if (run.count && at == run.begin) { /* last: afterwards the packet is not ours any more */
                size = run.end - run.begin;
                eliciting = 1;
                continue;
            }
            size = cci__rel_check_for(frame, length - at, rel->message_max);
            if (size == 0) return cci__rel_malformed(rel); /* behind a frame of another layer nobody has looked yet */
            if (frame[0] >= CCI__FRAME_OTHER) {
                size = cci__rel_input_other(rel, frame, length - at, acked_ns, number >= top, now_ns);
                if (size == 0) break;
                continue;
            }
            switch (frame[0]) {
            case CCI__FRAME_ACK:
                if (acked++ > 0)
                    break; /* as with NACKs: one that names nothing new walks along all that is under way */
                if (!cci__rel_input_ack(rel, frame, length - at, &acked_ns, now_ns)) return cci__rel_malformed(rel);
                break;
            case CCI__FRAME_NACK:
                if (nacked++ >= sizeof rel->nacks / sizeof rel->nacks[0])
                    break; /* each costs a look at all that is under way, and a sound peer sends no more */
                cci__rel_input_nack(rel, frame, now_ns);
                break;
            case CCI__FRAME_PING: eliciting = pinged = 1; break;
            case CCI__FRAME_TAKEN:
                if (rel->reliable && !rel->ordered && told++ == 0) cci__rel_input_taken(rel, frame, now_ns);
                break;
            case CCI__FRAME_BULK:
            case CCI__FRAME_FRAGMENT:
            case CCI__FRAME_VOID:
                eliciting = 1;
                if (++pieces > CCI__REL_PIECES) return cci__rel_malformed(rel);
                if (!rel->reliable && frame[0] != CCI__FRAME_FRAGMENT) break;
                if (outcome == CCI__TAKEN)
                    outcome = frame[0] == CCI__FRAME_BULK       ? cci__rel_input_bulk(rel, frame)
                              : frame[0] == CCI__FRAME_FRAGMENT ? cci__rel_input_fragment(rel, frame, now_ns)
                                                                : cci__rel_input_void(rel, frame);
                break;
            case CCI__FRAME_PAD: break;
            default:
                return cci__rel_malformed(rel); /* a message behind a frame of another layer: nobody would take it */
            }
        }
    if (run.count && outcome == CCI__TAKEN)
        outcome = cci__rel_input_run(rel, bytes, run.begin, run.end, run.count, run.has_bulk, buffer);
    if (!held || rel->advanced || rel->expected != expected) rel->stuck_ns = now_ns;
    if (outcome == CCI__REFUSED) {
        if (rel->sequence_count == 0)
            cci__rel_free_sequences(rel); /* there may have been space for it, but not for all of it */
        rel->pool->packets_refused++;
        return CCI_REL_SOUND; /* not acknowledged: it comes again */
    }
    if (!rel->reliable && !pinged && !rel->once) return CCI_REL_SOUND; /* only the path's probes are acknowledged */
    gap = number != top;
    if (CCI__UNLIKELY(cci__ranges_add(rel->numbers, &rel->number_count, rel->number_capacity, number, number + 1) ==
                      CCI__RANGE_FULL))
        cci__rel_note_number(rel, number);
    if (CCI__REL_RANGES > CCI__REL_ACK_MORE + 1 && CCI__UNLIKELY(gap && rel->number_count > CCI__REL_ACK_MORE + 1))
        cci__rel_note_low(rel, number);
    if (number >= top) rel->largest_ns = now_ns;
    CCI__REL_ECN(cci__rel_count_codepoint(rel);)
    if (rel->reliable ? eliciting : pinged) cci__rel_owe(rel, length, gap, now_ns);
    return number >= top ? CCI_REL_NEWEST : CCI_REL_SOUND;
}

/* ==================================================================================================================
 * >>rel-time
 *
 * When something is due, and what then: losses by age, the probe time-out, acknowledgements that were put off, the
 * send time-out of each message, a path whose large packets vanish, and the search for a larger one.
 * ================================================================================================================== */

/* Something has arrived that waits for what has not. */
static int cci__rel_has_gap(const cci_rel_t *rel) {
    return rel->reliable && (rel->early || rel->sequence_count || !cci__list_empty(&rel->parts));
}

/* When to call cci_rel_timeout() at the latest. */
CCI_API uint64_t cci_rel_deadline(const cci_rel_t *rel) {
    uint64_t at = cci__min64(rel->expire_ns, rel->ack_count ? rel->ack_at_ns : CCI__NEVER);
    int blocked = rel->in_flight > 0 && (cci__rel_is_full(rel) || !cci__rel_record_share(rel));
    int waiting = !cci__list_empty(&rel->lost) || cci__rel_next_item(rel) != NULL;
    at = cci__min64(at, rel->loss_ns);
    if (cci__rel_has_gap(rel)) at = cci__min64(at, rel->heard_ns + CCI__REL_ABSENCE_NS);
    at = cci__min64(at, cci__rel_pto_at_ns(rel));
    if (!waiting) return at;
    if (rel->rnr && rel->in_flight == 0) return cci__min64(at, rel->rnr_until_ns);
    if (rel->rnr && (rel->ordered || blocked)) return at;
    if (rel->rnr && !cci__rel_has_long_write(rel) && !rel->lost_writes)
        return cci__min64(at, cci__max64(rel->pace_ns, rel->rnr_until_ns));
    if (!blocked && (rel->in_flight > 0 || !rel->reliable))
        at = cci__min64(at,
                        cci__max64(rel->pace_ns, cci__list_empty(&rel->runs)
                                                     ? 0
                                                     : CCI__CONTAINER(rel->runs.next, cci_rel_item_t, queue)->since_ns +
                                                           CCI__REL_NAGLE_NS));
    return at;
}

/* When the time-out of an item is over, CCI__NEVER if it has none (any more). */
static uint64_t cci__rel_item_ends_ns(const cci_rel_t *rel, const cci_rel_item_t *item) {
    uint64_t most_ns = (uint64_t)item->timeout_us * 1000;
    if (!item->timeout_us || (item->flags & CCI__ITEM_DONE)) return CCI__NEVER;
    if ((item->flags & CCI__ITEM_VOID) && (!item->ops || item->status == CCI_ERR_RNR))
        most_ns *= 2; /* its status has been told, or waits for its turn: as long again, for the peer to hear of it */
    /* A message behind a long transfer waits its turn: what counts is that the peer takes nothing any more. */
    return cci__max64(item->since_ns, rel->progress_ns) + most_ns;
}

/* Of the items from `node` on, those that are about to be withdrawn together lose their packets: in one walk, since
 * there may be as many items as packets. */
static void cci__rel_forget_late(cci_rel_t *rel, const cci_list_t *node, uint64_t now_ns) {
    for (; node != &rel->items; node = node->next) {
        cci_rel_item_t *item = CCI__CONTAINER(node, cci_rel_item_t, node);
        if (item->kind == CCI__ITEM_EXTERN || (item->flags & CCI__ITEM_VOID) ||
            (!rel->ordered && cci__rel_item_ends_ns(rel, item) > now_ns))
            continue;
        item->flags |= CCI__ITEM_LEAVING;
    }
    cci__rel_forget_leaving(rel);
}

/* The peer had no buffers so far, but may have taken the last try, and its answer is under way. Is it worth the
 * wait? */
static int cci__rel_awaits_answer(cci_rel_t *rel, uint64_t now_ns) {
    uint64_t most_ns = rel->srtt_ns ? 2 * rel->srtt_ns + 8 * rel->rttvar_ns + CCI__MS : 20 * CCI__MS;
    most_ns = cci__min64(most_ns, CCI__REL_ANSWER_NS);
    if (!rel->rnr || rel->in_flight == 0 || (rel->overdue_ns && now_ns >= rel->overdue_ns + most_ns)) {
        rel->overdue_ns = 0;
        return 0;
    }
    if (!rel->overdue_ns) rel->overdue_ns = now_ns;
    rel->expire_ns = rel->overdue_ns + most_ns;
    return 1;
}

/* The send time-out of something may be over. */
static void cci__rel_expire(cci_rel_t *rel, uint64_t now_ns) {
    cci_list_t *node, *next, *behind = &rel->runs;
    int status;
    if (cci__rel_awaits_answer(rel, now_ns)) return;
    rel->expire_ns = CCI__NEVER;
    for (node = rel->items.next; node != &rel->items; node = next) {
        cci_rel_item_t *item = CCI__CONTAINER(node, cci_rel_item_t, node);
        uint64_t at = cci__rel_item_ends_ns(rel, item);
        next = node->next;
        if (at > now_ns) {
            rel->expire_ns = cci__min64(rel->expire_ns, at);
            continue;
        }
        status =
            rel->rnr && item->kind != CCI__ITEM_EXTERN && !(item->flags & CCI__ITEM_VOID) ? CCI_ERR_RNR : CCI_ETIMEDOUT;
        if (status == CCI_ETIMEDOUT) {
            rel->pool->sink->broken(rel->user, status);
            return;
        }
        if (behind == &rel->runs) cci__rel_forget_late(rel, node, now_ns);
        /* Of what is withdrawn, and of what follows: */
        rel->expire_ns = cci__min64(rel->expire_ns, now_ns + (uint64_t)item->timeout_us * 1000);
        if (!rel->ordered) {
            item->pieces = 0;
            cci__rel_withdraw_behind(rel, item, status, behind);
            behind = &item->queue;
            cci__rel_complete_ops(rel, item);
            continue;
        }
        /* [4.1.4.1] all successive sends of an ordered connection end likewise, in order */
        for (node = &item->node; node != &rel->items; node = next) {
            item = CCI__CONTAINER(node, cci_rel_item_t, node);
            next = node->next;
            if (item->kind == CCI__ITEM_EXTERN && !(item->flags & CCI__ITEM_DONE) && item->timeout_us)
                rel->expire_ns = cci__min64(rel->expire_ns, cci__max64(item->since_ns, rel->progress_ns) +
                                                                (uint64_t)item->timeout_us * 1000);
            if (item->kind == CCI__ITEM_EXTERN || (item->flags & CCI__ITEM_VOID)) continue;
            item->flags &= ~CCI__ITEM_DONE;
            item->pieces = 0;
            cci__rel_withdraw_behind(rel, item, status, behind);
            behind = &item->queue;
        }
        cci__rel_tell(rel);
        return;
    }
}

/* Does what time demands. Call it when the deadline has passed; early is harmless. */
CCI_API void cci_rel_timeout(cci_rel_t *rel, uint64_t now_ns) {
    if (now_ns >= rel->loss_ns) cci__rel_detect_loss(rel, now_ns);
    if (now_ns >= cci__rel_pto_at_ns(rel)) {
        cci_rel_sent_t *sent = CCI__CONTAINER(rel->flight.next, cci_rel_sent_t, node);
        rel->last_sent_ns = now_ns;
        if (sent->is_probe) {
            (void)cci__rel_missed(rel, sent, 0);
            return;
        }
        rel->probes = (uint16_t)(rel->probes + (rel->probes < UINT16_MAX));
        if (rel->probes == 3) cci__rel_note(rel, CCI_REL_SILENT);
        if (!sent->item) rel->ping = 1;
        if (rel->probes >= 3 && sent->size > rel->pool->base_mtu &&
            rel->mtu > cci__min32(rel->pool->base_mtu, rel->mtu_max))
            cci__rel_shrink(rel);
        if (rel->probes >= 3) { /* nothing comes back: all of it counts as lost, and one packet tries the path */
            cci_flow_before_t before;
            int is_kept = 1;
            cci__flow_remember(&rel->flow, &before);
            while (!cci__list_empty(&rel->flight))
                is_kept &= cci__rel_missed(rel, CCI__CONTAINER(rel->flight.next, cci_rel_sent_t, node), 0);
            rel->flow.window = 2 * (uint64_t)rel->mtu;
            cci__rel_note_cut(rel, &before, is_kept);
        } else {
            (void)cci__rel_missed(rel, sent, 0);
            if (rel->in_flight > 0 && cci__rel_is_full(rel)) rel->ping = 1;
        }
        rel->shuffled = 1;
    }
    if (now_ns >= rel->expire_ns && rel->reliable) cci__rel_expire(rel, now_ns);
    if (now_ns >= rel->expire_ns && !rel->reliable) {
        rel->expire_ns = CCI__NEVER;
        while (!cci__list_empty(&rel->parts))
            cci__rel_free_part(rel, CCI__CONTAINER(rel->parts.next, cci_rel_part_t, node));
    }
    if (rel->ack_count && now_ns >= rel->ack_at_ns) rel->ack_now = 1;
    /* A peer that has left sends nothing any more, and what waits here would wait for ever: its reset ends that. */
    if (cci__rel_has_gap(rel) && now_ns >= rel->heard_ns + CCI__REL_ABSENCE_NS) {
        rel->heard_ns = now_ns;
        rel->ping = 1;
    }
    if (rel->late) cci__rel_settle_late(rel, now_ns);
}

#ifdef __cplusplus
}
#endif
#endif /* CCI_REL_IMPLEMENTATION */

/* ==================================================================================================================
 * >>rma
 *
 * Registered memory, and reads of remote memory. A registration is an index with a key of 64 unguessable bits; every
 * access is checked against its range and rights, by subtraction. (Writes are cut into segments and repeated by >>rel;
 * this layer only says where their bytes go.)
 *
 * A read is driven by the side that wants the data: it asks for chunks, of up to 64 segments each, and asks again for
 * the segments that did not come. The other side keeps nothing but the requests that it has not answered yet, and
 * forgets those when there are too many. An answer's packets are not acknowledged; what the reader has asked for and
 * not got is its window. Segments are as long as packets that the reader may send. Those that the peer's link or the
 * way back can't carry just don't come: after three tries the reader asks for short ones, and tries long ones again
 * after a second, then two, and so on up to ten minutes.
 *
 * It does no I/O, reads no clock and never allocates. Invariants: a chunk is outstanding in one read; each byte of it
 * is placed once. Limits: the pools'. Frames, the last of their packet except READ, of which there may be several:
 *
 *     READ    type, 0 3, chunk 4, key 8, region 4, segment 4, offset 8, length 4, 0 4, missing segments (bits) 8
 *     DATA    type, 0, length 2, chunk 4, segment's number 4, 0 4                           data
 *     DENIED  type, status 1, 0 2, chunk 4                                                  the memory is not
 *             accessible, or the operation not known
 *     ATOMIC  type, operation 1, width 1, 0 1, chunk 4, key 8, region 4, number 4, offset 8, operand 8, compare 8
 *
 * An atomic is a read of 8 bytes with another request: a number that is counted up for each connection names it, so
 * that the target does it once, and answers from memory when it is asked again. Of the last 16 numbers the target
 * remembers what it answered; the initiator begins no further one before the answer to that 16 before has come.
 *   Parts: registrations; reading; being read; time.
 * ================================================================================================================== */
#if defined(CCI_RMA_IMPLEMENTATION) && !defined(CCI_RMA_IMPLEMENTED)
#define CCI_RMA_IMPLEMENTED

#ifdef __cplusplus
extern "C" {
#endif

#define CCI__RMA_CHUNK 65024u /* bytes of a chunk at most */

typedef struct cci_rma_region {
    struct cci_rma_handle handle; /* first: what the program's pointer points to */
    uint8_t *start;
    uint64_t length, key;
    uint32_t flags;
    uint32_t next; /* free one */
} cci_rma_region_t;

typedef struct cci_rma_reader cci_rma_reader_t;

typedef struct cci_rma_read {
    cci_list_t node; /* in its reader while there is something to ask for */
    cci_rma_reader_t *reader;
    void *item; /* the user's name for it */
    uint64_t local_key, local_offset, key, offset, length;
    uint32_t local_region, region;
    uint64_t asked, arrived;
    uint32_t chunks; /* outstanding */
    int32_t status;
#ifndef CCI_NO_ATOMICS
    uint32_t number; /* an atomic's, from the first request on */
    uint8_t width;   /* of an atomic: then local_key is the operand, and local_offset what to compare with */
    uint8_t operation, is_numbered;
    uint64_t *previous;
#endif
} cci_rma_read_t;

#ifndef CCI_NO_ATOMICS
#define CCI__RMA_ATOMICS 16u /* of a connection that may be under way: a power of two, 32 at most */

/* A connection's atomics, from the first one until its end. */
typedef struct cci_rma_atomics {
    cci_list_t node;   /* while it is free */
    uint32_t next;     /* number of our next one */
    uint32_t open;     /* our oldest without an answer */
    uint32_t answered; /* bits: of those from `open` on */
    uint32_t expected; /* the peer's oldest that has not come */
    uint32_t done;     /* bits: of those from `expected` on */
    uint32_t owed;     /* bits, by place in `answer`: to be sent */
    uint32_t refused;  /* likewise: the answer is a status */
    struct {
        uint64_t value;
        uint32_t number, chunk;
    } answer[CCI__RMA_ATOMICS]; /* to the peer's last ones */
} cci_rma_atomics_t;
#endif

typedef struct cci_rma_chunk {
    cci_list_t node; /* in its reader, in the order of asking */
    cci_rma_read_t *read;
    uint64_t offset;
    uint64_t missing, asked; /* segments: those that have not come, and those of them that are under way */
    uint64_t sent_ns, passed_ns;
    uint32_t length, id;
    uint16_t segment;
    uint8_t tries, heard; /* times it was asked for once more; 1: something has come since */
    uint8_t passed;       /* segments that have come of what was asked for later */
    uint8_t again;        /* nothing of it is under way: it is to be asked for once more */
    uint8_t is_late;      /* one of the `late` of its reader */
} cci_rma_chunk_t;

/* A request of a peer that is being answered. */
typedef struct cci_rma_request {
    cci_list_t node;
    uint64_t key, offset, missing;
    uint32_t region, segment, length, chunk;
} cci_rma_request_t;

/* A connection's reading, and its being read. */
struct cci_rma_reader {
    void *user;
    cci_list_t reads, chunks, requests;
    cci_list_t finished;  /* reads that are over */
    uint64_t outstanding; /* bytes asked for that have neither come nor been lost */
    cci_flow_t flow;
    uint64_t srtt_ns, rttvar_ns, heard_ns;
    uint32_t segment; /* bytes of data in a packet of the path */
    uint32_t narrow;  /* the same of the way back, while nothing larger comes */
    uint64_t narrow_until_ns, narrow_for_ns;
    uint32_t again;    /* chunks to be asked for once more */
    uint32_t timeouts; /* in a row */
    uint32_t request_count, chunk_count;
    uint32_t denied[8];
    uint16_t denied_count, unknown; /* bits: of those that ask for what there is not */
    uint32_t patience; /* quarters of a round trip: the more often something came after it had been taken for lost */
    uint64_t patience_since_ns;
#ifndef CCI_NO_ATOMICS
    cci_rma_atomics_t *atomics; /* NULL: it has had none */
#endif
#ifndef CCI_NO_CONGESTION
    cci_flow_before_t before; /* the last reduction of the congestion window, */
    uint64_t cut_ns;          /* and when that was; 0: it stays */
    uint32_t late;            /* chunks that were taken for lost and may yet come: then it is taken back */
#endif
};

typedef struct cci_rma_table {
    uint64_t key[2], counter, endpoint_id;
    cci_rma_region_t *regions;
    uint32_t region_count, free, used;
    cci_list_t reads, requests, chunks; /* free ones */
    cci_rma_chunk_t *chunk_array;
    uint32_t chunk_count, chunk_free, request_free;
    const cci_congestion_t *congestion;
    uint64_t receive_window;
    uint64_t away_ns; /* as in cci_rel_pool_t */
    uint64_t denied;  /* accesses of peers: a wrong key, range or right */
    uint64_t reads_again;
} cci_rma_table_t;

/* ---- registrations ---- */

/* Adds `count` reads that may be under way. */
CCI_API void cci_rma_add_reads(cci_rma_table_t *table, cci_rma_read_t *reads, uint32_t count) {
    while (count-- > 0) cci__list_append(&table->reads, &reads[count].node);
}

/* Adds `count` regions behind those that the table has; its memory has space for them. */
CCI_API void cci_rma_add_regions(cci_rma_table_t *table, uint32_t count) {
    uint32_t i = table->region_count + count;
    while (i-- > table->region_count) {
        table->regions[i].key = 0;
        table->regions[i].length = 0;
        table->regions[i].next = table->free;
        table->free = i;
    }
    table->region_count += count;
}

CCI_API void cci_rma_table_init(cci_rma_table_t *table, const uint64_t key[2], cci_rma_region_t *regions,
                                uint32_t region_count, cci_rma_read_t *reads, uint32_t read_count,
                                cci_rma_chunk_t *chunks, uint32_t chunk_count, cci_rma_request_t *requests,
                                uint32_t request_count) {
    memset(table, 0, sizeof *table);
    table->key[0] = key[0];
    table->key[1] = key[1];
    table->regions = regions;
    table->chunk_array = chunks;
    table->chunk_count = table->chunk_free = chunk_count;
    table->congestion = cci__find_congestion(NULL);
    table->request_free = request_count;
    cci__list_init(&table->reads);
    cci__list_init(&table->chunks);
    cci__list_init(&table->requests);
    cci_rma_add_regions(table, region_count);
    cci_rma_add_reads(table, reads, read_count);
    while (chunk_count-- > 0) {
        chunks[chunk_count].id = chunk_count;
        chunks[chunk_count].read = NULL;
        cci__list_append(&table->chunks, &chunks[chunk_count].node);
    }
    while (request_count-- > 0) cci__list_append(&table->requests, &requests[request_count].node);
}

/* Registers [start, start + length); the handle in the region is its 32 bytes in one byte order. NULL: no room. */
CCI_API cci_rma_region_t *cci_rma_add(cci_rma_table_t *table, void *start, uint64_t length, uint32_t flags) {
    cci_rma_region_t *region;
    uint64_t words[2];
    uint8_t *bytes;
    if (table->used == table->region_count) return NULL;
    region = &table->regions[table->free];
    words[0] = ++table->counter;
    words[1] = table->free;
    table->free = region->next;
    table->used++;
    region->key = cci__siphash(table->key, words, 2) | 1;
    region->start = (uint8_t *)start;
    region->length = length;
    region->flags = flags;
    bytes = (uint8_t *)region->handle.stuff;
    cci__store64(bytes, region->key);
    cci__store64(bytes + 8, (uint64_t)(region - table->regions));
    cci__store64(bytes + 16, length);
    cci__store64(bytes + 24, table->endpoint_id);
    return region;
}

CCI_API void cci_rma_parse_handle(const struct cci_rma_handle *handle, uint64_t *key, uint32_t *region) {
    const uint8_t *bytes = (const uint8_t *)handle->stuff;
    uint64_t index = cci__load64(bytes + 8);
    *key = cci__load64(bytes);
    *region = index > 0xffffffff ? 0xffffffff : (uint32_t)index;
}

CCI_API cci_rma_region_t *cci_rma_find(cci_rma_table_t *table, uint64_t key, uint32_t region) {
    return region < table->region_count && key != 0 && table->regions[region].key == key ? &table->regions[region]
                                                                                         : NULL;
}

/* The address of [offset, offset + length) in a region that exists and has all the rights in `flags`; NULL
 * otherwise. */
CCI_API uint8_t *cci_rma_address(cci_rma_table_t *table, uint64_t key, uint32_t region, uint64_t offset,
                                 uint64_t length, uint32_t flags) {
    cci_rma_region_t *found = cci_rma_find(table, key, region);
    if (!found || (found->flags & flags) != flags || length > found->length || offset > found->length - length)
        return NULL;
    return found->start + (size_t)offset;
}

CCI_API void cci_rma_remove(cci_rma_table_t *table, cci_rma_region_t *region) {
    region->key = 0;
    region->length = 0;
    region->next = table->free;
    table->free = (uint32_t)(region - table->regions);
    table->used--;
}

/* ---- reading ---- */

CCI_API void cci_rma_reader_init(cci_rma_reader_t *reader, void *user) {
    memset(reader, 0, sizeof *reader);
    reader->user = user;
    cci__list_init(&reader->reads);
    cci__list_init(&reader->chunks);
    cci__list_init(&reader->requests);
    cci__list_init(&reader->finished);
    cci__flow_init(&reader->flow, 16384);
    reader->segment = 1024;
}

/* Is there an answer to an atomic to be sent? */
static int cci__rma_owes_atomics(const cci_rma_reader_t *reader) {
#ifndef CCI_NO_ATOMICS
    return reader->atomics && reader->atomics->owed != 0;
#else
    (void)reader;
    return 0;
#endif
}

CCI_API int cci_rma_reader_idle(const cci_rma_reader_t *reader) {
    return cci__list_empty(&reader->reads) && cci__list_empty(&reader->chunks) && cci__list_empty(&reader->requests) &&
           cci__list_empty(&reader->finished) && reader->denied_count == 0 && !cci__rma_owes_atomics(reader);
}

/* A read to fill in and to give to cci_rma_read_start(), or NULL. */
CCI_API cci_rma_read_t *cci_rma_new_read(cci_rma_table_t *table) {
    cci_rma_read_t *read;
    if (cci__list_empty(&table->reads)) return NULL;
    read = CCI__CONTAINER(table->reads.next, cci_rma_read_t, node);
    cci__list_remove(&read->node);
    memset(read, 0, sizeof *read);
    cci__list_init(&read->node);
    return read;
}

CCI_API void cci_rma_free_read(cci_rma_table_t *table, cci_rma_read_t *read) {
    cci__list_remove(&read->node);
    cci__list_append(&table->reads, &read->node);
}

CCI_API void cci_rma_read_start(cci_rma_reader_t *reader, cci_rma_read_t *read) {
    read->reader = reader;
    cci__list_append(&reader->reads, &read->node);
}

/* Bytes of these segments of a chunk. */
static uint32_t cci__rma_bytes(const cci_rma_chunk_t *chunk, uint64_t bits) {
    uint64_t last = (chunk->length - 1) / chunk->segment;
    uint32_t bytes = bits >> last & 1 ? chunk->length - (uint32_t)last * chunk->segment : 0;
    for (bits &= ~(UINT64_C(1) << last); bits; bits &= bits - 1) bytes += chunk->segment;
    return bytes;
}

/* A chunk that was taken for lost has come, or was lost indeed. */
static void cci__rma_settle(cci_rma_reader_t *reader, cci_rma_chunk_t *chunk, int has_come) {
#ifndef CCI_NO_CONGESTION
    if (!chunk->is_late) return;
    chunk->is_late = 0;
    reader->late--;
    if (!has_come || reader->cut_ns != reader->flow.cut_ns) reader->cut_ns = 0;
    if (reader->late > 0 || reader->cut_ns == 0) return;
    cci__flow_undo(&reader->flow, &reader->before);
    reader->cut_ns = 0;
#else
    (void)reader, (void)chunk, (void)has_come;
#endif
}

static void cci__rma_free_chunk(cci_rma_table_t *table, cci_rma_reader_t *reader, cci_rma_chunk_t *chunk) {
    CCI_ASSERT(chunk->read);
    cci__rma_settle(reader, chunk, 0);
    reader->outstanding -= cci__rma_bytes(chunk, chunk->asked);
    reader->again -= chunk->again;
    reader->chunk_count--;
    table->chunk_free++;
    chunk->read->chunks--;
    chunk->read = NULL;
    chunk->id += 0x10000; /* what comes late for it finds nothing */
    cci__list_remove(&chunk->node);
    cci__list_append(&table->chunks, &chunk->node);
}

#ifndef CCI_NO_ATOMICS
/* An answer has come: it may make place for another one. */
static void cci__rma_atomic_answered(cci_rma_atomics_t *atomics, uint32_t number) {
    atomics->answered |= 1u << ((number - atomics->open) & (CCI__RMA_ATOMICS - 1));
    while (atomics->answered & 1) {
        atomics->answered >>= 1;
        atomics->open++;
    }
}

/* May the next of what there is to ask for be asked for? All but an atomic that 16 others are before may. */
static int cci__rma_has_number(const cci_rma_reader_t *reader) {
    const cci_rma_read_t *read = CCI__CONTAINER(reader->reads.next, const cci_rma_read_t, node);
    return read->width == 0 || read->is_numbered || reader->atomics->next - reader->atomics->open < CCI__RMA_ATOMICS;
}

static void cci__rma_number_atomic(const cci_rma_reader_t *reader, cci_rma_read_t *read) {
    if (!read->is_numbered) read->number = reader->atomics->next++;
    read->is_numbered = 1;
}

/* The request of an atomic, in the place of a READ. */
static void cci__rma_write_atomic(const cci_rma_read_t *read, uint32_t chunk, uint8_t *frame) {
    frame[0] = CCI__FRAME_ATOMIC;
    frame[1] = read->operation;
    frame[2] = read->width;
    frame[3] = 0;
    cci__store32(frame + 4, chunk);
    cci__store64(frame + 8, read->key);
    cci__store32(frame + 16, read->region);
    cci__store32(frame + 20, read->number);
    cci__store64(frame + 24, read->offset);
    cci__store64(frame + 32, read->local_key);
    cci__store64(frame + 40, read->local_offset);
}

/* A peer's atomic: done if it has not been yet, and answered in either case. What is older than all that is remembered
 * came late, and its answer has arrived. */
static void cci__rma_input_atomic(cci_rma_table_t *table, cci_rma_atomics_t *atomics, const uint8_t *frame) {
    uint32_t number = cci__load32(frame + 20), ahead = number - atomics->expected, place = number % CCI__RMA_ATOMICS;
    uint64_t value;
    uint8_t *memory;
    int status;
    if (ahead < CCI__RMA_ATOMICS && !(atomics->done >> ahead & 1)) {
        memory = cci_rma_address(table, cci__load64(frame + 8), cci__load32(frame + 16), cci__load64(frame + 24),
                                 frame[2], CCI_FLAG_READ | CCI_FLAG_WRITE);
        status = cci__atomic_do(memory, frame[2], frame[1], cci__load64(frame + 32), cci__load64(frame + 40), &value);
        table->denied += status == CCI_ERR_RMA_HANDLE;
        atomics->answer[place].number = number;
        atomics->answer[place].value = status == CCI_SUCCESS ? value : (uint64_t)status;
        atomics->refused = (atomics->refused & ~(1u << place)) | (uint32_t)(status != CCI_SUCCESS) << place;
        for (atomics->done |= 1u << ahead; atomics->done & 1; atomics->done >>= 1) atomics->expected++;
    } else if (atomics->answer[place].number != number || (ahead >= CCI__RMA_ATOMICS && ahead < 0x80000000u)) {
        return;
    }
    atomics->answer[place].chunk = cci__load32(frame + 4);
    atomics->owed |= 1u << place;
}

/* Writes the answer to one, of 24 or 8 bytes. */
static uint32_t cci__rma_answer_atomic(cci_rma_atomics_t *atomics, uint8_t *at) {
    uint32_t place = cci__ctz64(atomics->owed);
    atomics->owed &= atomics->owed - 1;
    memset(at, 0, 16);
    cci__store32(at + 4, atomics->answer[place].chunk);
    if (atomics->refused >> place & 1) {
        at[0] = CCI__FRAME_DENIED;
        at[1] = (uint8_t)atomics->answer[place].value;
        return 8;
    }
    at[0] = CCI__FRAME_DATA;
    cci__store16(at + 2, 8);
    cci__store64(at + 16, atomics->answer[place].value);
    return 24;
}
#endif

static void cci__rma_finish(cci_rma_reader_t *reader, cci_rma_read_t *read, int status) {
#ifndef CCI_NO_ATOMICS
    if (read->width > 0 && read->is_numbered) cci__rma_atomic_answered(reader->atomics, read->number);
#endif
    if (read->status == CCI_SUCCESS) read->status = status;
    cci__list_remove(&read->node);
    cci__list_append(&reader->finished, &read->node);
}

/* Ends a read early: nothing that comes for it is placed any more. */
static void cci__rma_fail(cci_rma_table_t *table, cci_rma_reader_t *reader, cci_rma_read_t *read, int status) {
    cci_list_t *node, *next;
    for (node = reader->chunks.next; node != &reader->chunks; node = next) {
        cci_rma_chunk_t *chunk = CCI__CONTAINER(node, cci_rma_chunk_t, node);
        next = node->next;
        if (chunk->read == read) cci__rma_free_chunk(table, reader, chunk);
    }
    cci__rma_finish(reader, read, status);
}

/* The next read that is over, NULL if there is none; the caller reports it and frees it. */
CCI_API cci_rma_read_t *cci_rma_next_finished(cci_rma_reader_t *reader) {
    cci_rma_read_t *read;
    if (cci__list_empty(&reader->finished)) return NULL;
    read = CCI__CONTAINER(reader->finished.next, cci_rma_read_t, node);
    cci__list_remove(&read->node);
    return read;
}

/* Forgets everything of a connection. */
CCI_API void cci_rma_reader_abort(cci_rma_table_t *table, cci_rma_reader_t *reader) {
    while (!cci__list_empty(&reader->chunks)) {
        cci_rma_chunk_t *chunk = CCI__CONTAINER(reader->chunks.next, cci_rma_chunk_t, node);
        cci_rma_read_t *read = chunk->read;
        cci__rma_free_chunk(table, reader, chunk);
        if (read->chunks == 0 && cci__list_empty(&read->node)) /* all was asked for: it is in no list */
            cci_rma_free_read(table, read);
    }
    while (!cci__list_empty(&reader->reads))
        cci_rma_free_read(table, CCI__CONTAINER(reader->reads.next, cci_rma_read_t, node));
    while (!cci__list_empty(&reader->finished))
        cci_rma_free_read(table, CCI__CONTAINER(reader->finished.next, cci_rma_read_t, node));
    while (!cci__list_empty(&reader->requests)) {
        cci_list_t *node = reader->requests.next;
        cci__list_remove(node);
        cci__list_append(&table->requests, node);
        table->request_free++;
    }
    reader->denied_count = 0;
    reader->request_count = 0;
#ifndef CCI_NO_ATOMICS
    reader->atomics = NULL;
#endif
}

/* Stops all reads: whoever keeps them starts them again, from the beginning. Returns 0, and does nothing, when there is
 * more than reads that wait for the peer. */
CCI_API int cci_rma_reader_stop(cci_rma_table_t *table, cci_rma_reader_t *reader) {
    if (!cci__list_empty(&reader->requests) || !cci__list_empty(&reader->finished) || reader->denied_count > 0 ||
        cci__rma_owes_atomics(reader))
        return 0;
    while (!cci__list_empty(&reader->chunks)) {
        cci_rma_chunk_t *chunk = CCI__CONTAINER(reader->chunks.next, cci_rma_chunk_t, node);
        cci_rma_read_t *read = chunk->read;
        cci__rma_free_chunk(table, reader, chunk);
        read->asked = read->arrived = 0;
    }
    while (!cci__list_empty(&reader->reads)) {
        cci_rma_read_t *read = CCI__CONTAINER(reader->reads.next, cci_rma_read_t, node);
        cci__list_remove(&read->node);
        read->asked = read->arrived = 0;
    }
    return 1;
}

/* Longest time in which something must come. */
static uint64_t cci__rma_timeout_ns(const cci_rma_reader_t *reader) {
    uint64_t base = reader->srtt_ns ? reader->srtt_ns + reader->srtt_ns / 8 + 4 * reader->rttvar_ns + CCI__MS
                                    : cci__max64(reader->rttvar_ns, 100 * CCI__MS);
    base = cci__max64(base, 4 * CCI__MS);
    return cci__min64(base << cci__min32(reader->timeouts, 10), cci__max64(4 * base, 4000 * CCI__MS));
}

static void cci__rma_again(cci_rma_reader_t *reader, cci_rma_chunk_t *chunk) {
    reader->again++;
    chunk->again = 1;
}

/* Packets overtake each other, and it is not known yet how much fits into the path: that round trips take longer tells
 * of no queue then, and a loss is the queue's. */
static int cci__rma_starts_blind(const cci_rma_reader_t *reader) {
    return CCI__FLOW_CAN_UNDO && reader->patience > 0 && reader->flow.window < reader->flow.threshold;
}

/* The chunk is taken for lost: the window may shrink, and grow again if this and all others before have come. */
static void cci__rma_congested(cci_rma_table_t *table, cci_rma_reader_t *reader, cci_rma_chunk_t *chunk, uint32_t bytes,
                               uint64_t now_ns) {
    uint64_t away_ns = cci__rma_starts_blind(reader) ? CCI__NEVER : table->away_ns;
#ifndef CCI_NO_CONGESTION
    cci_flow_before_t before;
    cci__flow_remember(&reader->flow, &before);
#endif
    cci__flow_note_away(&reader->flow, away_ns, reader->srtt_ns);
    cci__flow_lost(&reader->flow, table->congestion, bytes, chunk->sent_ns, reader->segment, now_ns);
#ifndef CCI_NO_CONGESTION
    if (reader->flow.cut_ns != before.cut_ns) {
        if (reader->late == 0 || reader->cut_ns != before.cut_ns) reader->before = before;
        reader->cut_ns = reader->flow.cut_ns;
    }
    reader->late += !chunk->is_late;
    chunk->is_late = 1;
#endif
}

/* What was asked for of the chunk, and has not come, will not come. */
static void cci__rma_lost(cci_rma_table_t *table, cci_rma_reader_t *reader, cci_rma_chunk_t *chunk, uint64_t now_ns) {
    uint32_t bytes = cci__rma_bytes(chunk, chunk->asked);
    reader->outstanding -= bytes;
    chunk->asked = 0;
    chunk->passed = 0;
    cci__rma_again(reader, chunk);
    table->reads_again++;
    if (!chunk->heard) /* one packet was lost, the request */
        bytes = cci__min32(bytes, reader->segment);
    cci__rma_congested(table, reader, chunk, bytes, now_ns);
}

/* Bytes of the next chunk: a part of the window, in whole segments. */
static uint32_t cci__rma_chunk_size(const cci_rma_table_t *table, const cci_rma_reader_t *reader) {
    /* What a request asks for comes in one burst, or is missing if it is lost: on a long path, where queues are
     * others' too and the line is idle while nothing comes, in shorter ones. Before the first answer in few: readers
     * that nobody answers leave chunks to others. */
    uint64_t window = cci__min64(reader->flow.window, table->receive_window);
    uint32_t parts = reader->srtt_ns == 0 ? 3 : reader->srtt_ns > 2 * CCI__MS ? 12 : 4;
    uint64_t size = cci__min64(window / parts, CCI__RMA_CHUNK);
    return cci__max32(cci__min32((uint32_t)size / reader->segment, 64), 1) * reader->segment;
}

/* Bytes that may be asked for in addition to what is under way. */
static uint64_t cci__rma_room(const cci_rma_table_t *table, const cci_rma_reader_t *reader) {
    uint64_t limit = cci__min64(reader->flow.window, table->receive_window);
    if (reader->outstanding == 0) return cci__max64(limit, reader->segment);
    return limit > reader->outstanding ? limit - reader->outstanding : 0;
}

/* Is there something to ask for once more, and room for it? */
static int cci__rma_may_ask_again(const cci_rma_table_t *table, const cci_rma_reader_t *reader) {
    return reader->again > 0 && cci__rma_room(table, reader) >= reader->segment;
}

/* Is there something new to ask for, and room for it? */
static int cci__rma_may_ask(const cci_rma_table_t *table, const cci_rma_reader_t *reader) {
    uint64_t size = cci__rma_chunk_size(table, reader);
    return reader->again == 0 && !cci__list_empty(&reader->reads) &&
#ifndef CCI_NO_ATOMICS
           cci__rma_has_number(reader) &&
#endif
           cci__share_for_long(reader->chunk_count, table->chunk_free, table->chunk_count) &&
           (reader->outstanding == 0 || (reader->outstanding + size / 2 <= reader->flow.window &&
                                         reader->outstanding + size <= table->receive_window));
}

static cci_rma_chunk_t *cci__rma_new_chunk(cci_rma_table_t *table, cci_rma_reader_t *reader) {
    cci_rma_read_t *read = CCI__CONTAINER(reader->reads.next, cci_rma_read_t, node);
    cci_rma_chunk_t *chunk;
    uint32_t segment = reader->segment, count;
    chunk = CCI__CONTAINER(table->chunks.next, cci_rma_chunk_t, node);
    cci__list_remove(&chunk->node);
    table->chunk_free--;
    reader->chunk_count++;
    chunk->read = read;
    chunk->offset = read->asked;
    chunk->length = (uint32_t)cci__min64(cci__rma_chunk_size(table, reader), read->length - read->asked);
    chunk->segment = (uint16_t)segment;
    count = (chunk->length + segment - 1) / segment;
    chunk->missing = count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
    chunk->asked = chunk->missing;
    chunk->tries = chunk->heard = chunk->passed = chunk->again = chunk->is_late = 0;
    read->asked += chunk->length;
    read->chunks++;
    if (read->asked == read->length) cci__list_remove(&read->node); /* nothing more to ask for; its chunks know it */
    return chunk;
}

/* Cuts a chunk, of which nothing is under way, into smaller segments if it has larger ones. A new segment of which
 * only a part has come is asked for as a whole. */
static void cci__rma_shrink(cci_rma_chunk_t *chunk, uint32_t segment) {
    uint32_t i, count = (chunk->length + segment - 1) / segment, before = cci__rma_bytes(chunk, chunk->missing);
    uint64_t missing = 0;
    if (chunk->segment <= segment || count > 64) return;
    for (i = 0; i < count; i++) {
        uint32_t first = i * segment, last = cci__min32(first + segment, chunk->length) - 1;
        missing |= ((chunk->missing >> first / chunk->segment | chunk->missing >> last / chunk->segment) & 1) << i;
    }
    chunk->segment = (uint16_t)segment;
    chunk->missing = missing;
    chunk->read->arrived -= cci__rma_bytes(chunk, missing) - before;
    chunk->id += 0x10000; /* what was cut otherwise has another number */
}

/* Takes the next chunk that is to be asked for once more, or as much of it as there is room for: what would come in
 * a burst that the path can't carry would only be lost once more. */
static cci_rma_chunk_t *cci__rma_take_again(cci_rma_table_t *table, cci_rma_reader_t *reader) {
    uint64_t room = cci__rma_room(table, reader);
    cci_list_t *node = reader->chunks.next;
    cci_rma_chunk_t *chunk;
    while (!CCI__CONTAINER(node, cci_rma_chunk_t, node)->again) node = node->next;
    chunk = CCI__CONTAINER(node, cci_rma_chunk_t, node);
    cci__rma_shrink(chunk, reader->segment); /* the path may have become smaller */
    do {
        chunk->asked |= (chunk->missing & ~chunk->asked) & (0 - (chunk->missing & ~chunk->asked)); /* the lowest */
    } while (chunk->asked != chunk->missing && cci__rma_bytes(chunk, chunk->asked) + chunk->segment <= room);
    chunk->again = 0;
    reader->again--;
    cci__list_remove(&chunk->node);
    if (chunk->tries < 255) chunk->tries++;
    chunk->heard = chunk->passed = 0;
    return chunk;
}

/* Writes READ frames into `at`, as many as there are and fit into `room`; returns their bytes. `segment`: bytes of
 * data that fit into a packet of this path. */
CCI_API uint32_t cci_rma_ask(cci_rma_table_t *table, cci_rma_reader_t *reader, uint32_t segment, uint8_t *at,
                             uint32_t room, uint64_t now_ns) {
    uint32_t used = 0;
    reader->segment = now_ns < reader->narrow_until_ns ? cci__min32(segment, reader->narrow) : segment;
    while (used + 48 <= room) {
        cci_rma_chunk_t *chunk = NULL;
        uint8_t *frame = at + used;
        if (cci__rma_may_ask_again(table, reader))
            chunk = cci__rma_take_again(table, reader);
        else if (cci__rma_may_ask(table, reader))
            chunk = cci__rma_new_chunk(table, reader);
        if (!chunk) return used;
        cci__list_append(&reader->chunks, &chunk->node);
        reader->outstanding += cci__rma_bytes(chunk, chunk->asked);
        chunk->sent_ns = now_ns;
        used += 48;
#ifndef CCI_NO_ATOMICS
        if (chunk->read->width > 0) {
            cci__rma_number_atomic(reader, chunk->read);
            cci__rma_write_atomic(chunk->read, chunk->id, frame);
            continue;
        }
#endif
        memset(frame, 0, 48);
        frame[0] = CCI__FRAME_READ;
        cci__store32(frame + 4, chunk->id);
        cci__store64(frame + 8, chunk->read->key);
        cci__store32(frame + 16, chunk->read->region);
        cci__store32(frame + 20, chunk->segment);
        cci__store64(frame + 24, chunk->read->offset + chunk->offset);
        cci__store32(frame + 32, chunk->length);
        cci__store64(frame + 40, chunk->asked);
    }
    return used;
}

CCI_API int cci_rma_wants_to_ask(const cci_rma_table_t *table, const cci_rma_reader_t *reader) {
    return cci__rma_may_ask_again(table, reader) || cci__rma_may_ask(table, reader);
}

/* The first of what a chunk asked for, asked once, tells the round-trip time. */
static void cci__rma_sample(cci_rma_reader_t *reader, uint64_t sample_ns, uint64_t now_ns) {
    uint64_t off;
    if (!cci__rma_starts_blind(reader)) cci__flow_sample(&reader->flow, sample_ns, now_ns);
    sample_ns = cci__flow_believed_ns(sample_ns, reader->srtt_ns, reader->rttvar_ns);
    off = reader->srtt_ns > sample_ns ? reader->srtt_ns - sample_ns : sample_ns - reader->srtt_ns;
    reader->rttvar_ns = reader->srtt_ns ? (3 * reader->rttvar_ns + off) / 4 : sample_ns / 2;
    reader->srtt_ns = reader->srtt_ns ? (7 * reader->srtt_ns + sample_ns) / 8 : cci__max64(sample_ns, 1);
    reader->timeouts = 0; /* not before: until then it may be the time-out that is too short */
}

/* What had been taken for lost comes: packets overtake each other on this path. Once in a round trip, so that it is
 * known what the last step did; up to a whole round trip [RFC 8985 6.2]. */
static void cci__rma_wait_longer(cci_rma_reader_t *reader, uint64_t now_ns) {
    if (reader->patience == 4 || now_ns < reader->patience_since_ns + reader->srtt_ns) return;
    reader->patience++;
    reader->patience_since_ns = now_ns;
}

/* `bytes` of a chunk have come; was_asked: they had not been taken for lost. */
static void cci__rma_arrived(cci_rma_table_t *table, cci_rma_reader_t *reader, cci_rma_chunk_t *chunk, uint32_t bytes,
                             int was_asked, uint64_t now_ns) {
    uint64_t patience_ns;
    cci_list_t *node;
    int is_late = !was_asked || (chunk->tries > 0 && now_ns - chunk->sent_ns < cci__flow_shortest_ns(&reader->flow));
    reader->heard_ns = now_ns;
    if (is_late) cci__rma_wait_longer(reader, now_ns);
    patience_ns = reader->patience * reader->srtt_ns / 4;
    if (chunk->tries == 0 && !chunk->heard) cci__rma_sample(reader, now_ns - chunk->sent_ns, now_ns);
    chunk->heard = 1;
    cci__flow_arrived(&reader->flow, table->congestion, bytes, chunk->sent_ns,
                      !cci__list_empty(&reader->reads) && reader->flow.window <= table->receive_window, reader->segment,
                      now_ns);
    if (is_late) cci__flow_was_late(&reader->flow, bytes);
    if (chunk->missing == 0 || !is_late) cci__rma_settle(reader, chunk, is_late);
    if (is_late) return;                                      /* it was asked for earlier than its place says */
    for (node = reader->chunks.next; node != &chunk->node;) { /* what was asked for before, and has not come */
        cci_rma_chunk_t *earlier = CCI__CONTAINER(node, cci_rma_chunk_t, node);
        node = node->next;
        if (earlier->passed == 0) earlier->passed_ns = now_ns;
        if (earlier->passed < 3) earlier->passed++;
        if (earlier->asked && earlier->passed >= 3 && now_ns >= earlier->passed_ns + patience_ns)
            cci__rma_lost(table, reader, earlier, now_ns);
    }
}

static cci_rma_chunk_t *cci__rma_chunk(cci_rma_table_t *table, const cci_rma_reader_t *reader, uint32_t id) {
    cci_rma_chunk_t *chunk = &table->chunk_array[(id & 0xffff) < table->chunk_count ? id & 0xffff : 0];
    return chunk->id == id && chunk->read && chunk->read->reader == reader ? chunk : NULL;
}

/* Puts what has come where the program wants it; 0 if that is no more. */
static int cci__rma_place(cci_rma_table_t *table, const cci_rma_read_t *read, uint64_t offset, const uint8_t *data,
                          uint32_t length) {
    uint8_t *to;
#ifndef CCI_NO_ATOMICS
    if (read->width > 0) {
        if (read->previous) *read->previous = cci__load64(data);
        return 1;
    }
#endif
    to = cci_rma_address(table, read->local_key, read->local_region, read->local_offset + offset, length, 0);
    if (to) memcpy(to, data, length);
    return to != NULL;
}

/* A DATA frame; returns its bytes, 0 if it is malformed. */
static uint32_t cci__rma_input_data(cci_rma_table_t *table, cci_rma_reader_t *reader, const uint8_t *frame,
                                    uint32_t length, uint64_t now_ns) {
    uint32_t data = cci__load16(frame + 2), number, at;
    int was_asked;
    cci_rma_chunk_t *chunk;
    cci_rma_read_t *read;
    if (length < 16 || data > length - 16 || data == 0) return 0;
    chunk = cci__rma_chunk(table, reader, cci__load32(frame + 4));
    number = cci__load32(frame + 8);
    if (!chunk || number > 63 || !(chunk->missing >> number & 1)) return length; /* late, or once more */
    at = number * chunk->segment;
    if (data != cci__min32(chunk->segment, chunk->length - at)) return 0;
    read = chunk->read;
    if (!cci__rma_place(table, read, chunk->offset + at, frame + 16, data)) { /* deregistered meanwhile */
        cci__rma_fail(table, reader, read, CCI_ERR_RMA_HANDLE);
        return length;
    }
    if (data > reader->narrow) reader->narrow_until_ns = reader->narrow_for_ns = 0;
    read->arrived += data;
    chunk->missing &= ~(UINT64_C(1) << number);
    was_asked = (int)(chunk->asked >> number & 1);
    chunk->asked &= chunk->missing;
    if (was_asked) reader->outstanding -= data;
    cci__rma_arrived(table, reader, chunk, data, was_asked, now_ns);
    if (chunk->missing == 0)
        cci__rma_free_chunk(table, reader, chunk);
    else if (chunk->asked == 0 && !chunk->again)
        cci__rma_again(reader, chunk);
    if (read->arrived == read->length) cci__rma_finish(reader, read, CCI_SUCCESS);
    return length;
}

static uint32_t cci__rma_input_read(cci_rma_table_t *table, cci_rma_reader_t *reader, const uint8_t *frame,
                                    uint32_t length) {
    cci_rma_request_t *request;
    if (length < 48) return 0;
    if (!cci__share(reader->request_count, table->request_free) || reader->request_count >= 256 ||
        cci__list_empty(&table->requests))
        return 48; /* it will be asked for again */
    if (cci__load32(frame + 20) < 64 || cci__load32(frame + 20) > 0xfff8 || cci__load32(frame + 32) == 0 ||
        (cci__load32(frame + 32) - 1) / cci__load32(frame + 20) > 63)
        return 0;
    request = CCI__CONTAINER(table->requests.next, cci_rma_request_t, node);
    request->chunk = cci__load32(frame + 4);
    request->key = cci__load64(frame + 8);
    request->region = cci__load32(frame + 16);
    request->segment = cci__load32(frame + 20);
    request->offset = cci__load64(frame + 24);
    request->length = cci__load32(frame + 32);
    request->missing = cci__load64(frame + 40);
    if (request->missing == 0) return 48;
    if (!cci_rma_address(table, request->key, request->region, request->offset, request->length, CCI_FLAG_READ)) {
        table->denied++;
        if (reader->denied_count < sizeof reader->denied / sizeof reader->denied[0])
            reader->denied[reader->denied_count++] = request->chunk;
        return 48;
    }
    cci__list_remove(&request->node);
    cci__list_append(&reader->requests, &request->node);
    reader->request_count++;
    table->request_free--;
    return 48;
}

/* A frame of this layer; returns its bytes, 0 if it is malformed. */
CCI_API uint32_t cci_rma_input(cci_rma_table_t *table, cci_rma_reader_t *reader, const uint8_t *frame, uint32_t length,
                               uint64_t now_ns) {
    cci_rma_chunk_t *chunk;
    if (frame[0] == CCI__FRAME_READ) return cci__rma_input_read(table, reader, frame, length);
    if (frame[0] == CCI__FRAME_DATA) return length < 16 ? 0 : cci__rma_input_data(table, reader, frame, length, now_ns);
    if (frame[0] == CCI__FRAME_ATOMIC && length >= 48) {
#ifdef CCI_NO_ATOMICS
        if (reader->denied_count < sizeof reader->denied / sizeof reader->denied[0]) {
            reader->unknown = (uint16_t)(reader->unknown | 1u << reader->denied_count);
            reader->denied[reader->denied_count++] = cci__load32(frame + 4);
        }
#else
        if (reader->atomics) cci__rma_input_atomic(table, reader->atomics, frame); /* else it will be asked for again */
#endif
        return 48;
    }
    if (frame[0] != CCI__FRAME_DENIED || length < 8) return 0;
    chunk = cci__rma_chunk(table, reader, cci__load32(frame + 4));
    if (chunk)
        cci__rma_fail(table, reader, chunk->read, frame[1] == CCI_ERR_RMA_OP ? CCI_ERR_RMA_OP : CCI_ERR_RMA_HANDLE);
    return 8;
}

/* ---- being read ---- */

CCI_API int cci_rma_wants_to_answer(const cci_rma_reader_t *reader) {
    return reader->denied_count > 0 || !cci__list_empty(&reader->requests) || cci__rma_owes_atomics(reader);
}

/* Writes the next frame of an answer into `at` (24 bytes), whose data is at *body, or behind the 16 bytes of the frame;
 * returns the bytes written, or 0 if there is nothing (any more). `space`: bytes of frame and data that fit into the
 * packet. */
CCI_API uint32_t cci_rma_answer(cci_rma_table_t *table, cci_rma_reader_t *reader, uint8_t *at, uint32_t space,
                                const uint8_t **body, uint32_t *body_length) {
    *body = NULL;
    *body_length = 0;
    if (reader->denied_count > 0) {
        memset(at, 0, 8);
        at[0] = CCI__FRAME_DENIED;
        at[1] = CCI_ERR_RMA_HANDLE;
        cci__store32(at + 4, reader->denied[--reader->denied_count]);
#ifdef CCI_NO_ATOMICS
        if (reader->unknown >> reader->denied_count & 1) at[1] = CCI_ERR_RMA_OP;
        reader->unknown = (uint16_t)(reader->unknown & ~(1u << reader->denied_count));
#endif
        return 8;
    }
#ifndef CCI_NO_ATOMICS
    if (cci__rma_owes_atomics(reader)) return cci__rma_answer_atomic(reader->atomics, at);
#endif
    while (!cci__list_empty(&reader->requests)) {
        cci_rma_request_t *request = CCI__CONTAINER(reader->requests.next, cci_rma_request_t, node);
        uint32_t number = cci__ctz64(request->missing), start, length;
        request->missing &= request->missing - 1;
        start = number < 64 && (request->length - 1) / request->segment >= number ? number * request->segment : 0;
        length = cci__min32(request->segment, request->length - start);
        *body = cci_rma_address(table, request->key, request->region, request->offset + start, length, CCI_FLAG_READ);
        if (*body && space >= 16 && length <= space - 16 && (request->length - 1) / request->segment >= number) {
            memset(at, 0, 16);
            at[0] = CCI__FRAME_DATA;
            cci__store16(at + 2, length);
            cci__store32(at + 4, request->chunk);
            cci__store32(at + 8, number);
            *body_length = length;
        } else {
            if (!*body && reader->denied_count < sizeof reader->denied / sizeof reader->denied[0])
                reader->denied[reader->denied_count++] = request->chunk; /* deregistered meanwhile */
            *body = NULL;
            request->missing = 0;
        }
        if (request->missing == 0) {
            cci__list_remove(&request->node);
            cci__list_append(&table->requests, &request->node);
            reader->request_count--;
            table->request_free++;
        }
        if (*body) return 16;
    }
    return 0;
}

/* ---- time ---- */

CCI_API uint64_t cci_rma_deadline(const cci_rma_reader_t *reader) {
    const cci_list_t *node = reader->chunks.next;
    if (reader->outstanding == 0) return CCI__NEVER; /* what there is to ask for may be asked for at once */
    while (!CCI__CONTAINER(node, const cci_rma_chunk_t, node)->asked) node = node->next;
    return cci__max64(CCI__CONTAINER(node, const cci_rma_chunk_t, node)->sent_ns, reader->heard_ns) +
           cci__rma_timeout_ns(reader);
}

/* Larger segments than these don't come, or nothing does: the way back, or the peer's link, may not carry them. The
 * next ones will be no larger for a while, which is the longer the more often larger ones have been tried in vain. */
static void cci__rma_narrow(cci_rma_reader_t *reader, uint32_t segment, uint64_t now_ns) {
    if (now_ns < reader->narrow_until_ns) return; /* that is known, and the chunk is from before */
    reader->narrow = segment;
    reader->narrow_for_ns = cci__min64(cci__max64(2 * reader->narrow_for_ns, 1000 * CCI__MS), 600000 * CCI__MS);
    reader->narrow_until_ns = now_ns + reader->narrow_for_ns;
}

/* After cci_rma_reader_init(), for reads that were stopped: nothing came, perhaps because segments were too long. */
CCI_API void cci_rma_reader_resume(cci_rma_reader_t *reader, uint32_t base, uint64_t now_ns) {
    cci__rma_narrow(reader, base, now_ns);
    reader->timeouts = 1;
}

/* Asks again for what has not come in time; in segments of `base` bytes after three tries. */
CCI_API void cci_rma_timeout(cci_rma_table_t *table, cci_rma_reader_t *reader, uint32_t base, uint64_t now_ns) {
    uint64_t wait_ns = cci__rma_timeout_ns(reader);
    cci_list_t *node;
    int any = 0;
    for (node = reader->chunks.next; node != &reader->chunks; node = node->next) {
        cci_rma_chunk_t *chunk = CCI__CONTAINER(node, cci_rma_chunk_t, node);
        if (cci__max64(chunk->sent_ns, reader->heard_ns) + wait_ns > now_ns) break;
        if (chunk->asked == 0) continue;
        cci__rma_lost(table, reader, chunk, now_ns);
        any = 1;
        if (chunk->tries >= 2 && !chunk->heard && chunk->segment > base) {
            cci__rma_narrow(reader, base, now_ns);
            cci__rma_shrink(chunk, base);
        }
    }
    if (!any) return;
    if (reader->timeouts < 30) reader->timeouts++;
    if (reader->timeouts >= 3) /* nothing comes any more */
        reader->flow.window = 2 * (uint64_t)reader->segment;
}

#ifdef __cplusplus
}
#endif
#endif /* CCI_RMA_IMPLEMENTATION */

/* ==================================================================================================================
 * >>endpoint
 *
 * The CCI face of every endpoint, but of CCI_TINY's: what a program sees of it, whatever moves its messages. An engine
 * does that, a table of functions (cci__engine_t): >>dgram over a link, the queue pairs of cci_verbs.h, the shared
 * memory of cci_sisci.h. Written once here, in this order:
 *     statistics      what is counted for each connection, if the program asks for it
 *     notices         CCI_EVENT_STATUS
 *     wakes           the classes of events that wake, and the second descriptor
 *     the endpoint    what all have: clock, lock, events, connections, options, handle, thread
 *     options         of endpoints and connections, with keepalive
 *     requests        accept and reject; the events about a connection's begin and end
 *     sleep           the OS handle, the helper thread, blocking calls
 *     device          changes of a link's device
 *     end             the peers of an endpoint over a link learn that it goes
 *
 * It calls the engine with the lock held.
 * ================================================================================================================== */
#if defined(CCI_ENDPOINT_IMPLEMENTATION) && !defined(CCI_ENDPOINT_IMPLEMENTED)
#define CCI_ENDPOINT_IMPLEMENTED

/* ---- statistics: what is counted for each connection, if the program asks for it ---- */

#ifdef CCI_NO_STATS
#define CCI__STATS(statement) ((void)0)
typedef void cci__tally_t;
#else
#define CCI__STATS(statement) statement
#ifdef __cplusplus
extern "C" {
#endif

#define CCI__TALLY_NOTES 3u /* the reliability protocol's */

typedef struct cci__tally {
    uint64_t messages_sent, bytes_sent;
    /* dgram: that the program has taken, or that wait for it; other engines: that it has taken */
    uint64_t messages_arrived, bytes_arrived;
    uint64_t rma_writes, rma_write_bytes, rma_reads, rma_read_bytes, peer_write_bytes, peer_read_bytes;
    uint64_t packets_sent, packet_bytes_sent, packets_received, packet_bytes_received;
    uint64_t notes[CCI__TALLY_NOTES];
    /* dgram: messages sent are counted when packets are made, by what has changed since then. */
    uint64_t next_sequence; /* of the connection, as it was then */
    uint32_t unsent_bytes;  /* likewise */
} cci__tally_t;

typedef struct cci__tallies {
    cci__tally_t **counted; /* NULL, or for each slab of connections CCI__CONN_SLAB of them: it is counted */
    cci__tally_t **made;    /* the same; they stay when counting ends */
    uint32_t slabs;
} cci__tallies_t;

/* Where a connection is counted, NULL if it is not. */
CCI__UNUSED static inline cci__tally_t *cci__tally_at(const cci__tallies_t *tallies, uint32_t index) {
    index %= CCI__CONN_MOST;
    if (CCI__UNLIKELY(tallies->counted != NULL))
        return &tallies->counted[index / CCI__CONN_SLAB][index % CCI__CONN_SLAB];
    return NULL;
}

/* Makes those of so many slabs of connections; 0 if there is no memory. */
CCI__UNUSED static int cci__tallies_grow(cci__tallies_t *tallies, uint32_t slabs) {
    if (!tallies->made) tallies->made = (cci__tally_t **)cci_alloc(CCI__CONN_SLABS * sizeof *tallies->made);
    if (!tallies->made) return 0;
    while (tallies->slabs < slabs) {
        cci__tally_t *slab = (cci__tally_t *)cci_alloc(CCI__CONN_SLAB * sizeof *slab);
        if (!slab) return 0;
        memset(slab, 0, CCI__CONN_SLAB * sizeof *slab);
        tallies->made[tallies->slabs++] = slab;
    }
    return 1;
}

CCI__UNUSED static void cci__tallies_free(cci__tallies_t *tallies) {
    while (tallies->slabs > 0) cci_release(tallies->made[--tallies->slabs]);
    cci_release(tallies->made);
}

/* Begins to count the connections of so many slabs, or ends it. */
CCI__UNUSED static int cci__tallies_set(cci__tallies_t *tallies, uint32_t value, uint32_t slabs) {
    uint32_t i;
    if (value > 1) return CCI_ERANGE;
    if ((value == 1) == (tallies->counted != NULL)) return CCI_SUCCESS;
    if (value == 1 && !cci__tallies_grow(tallies, slabs)) return CCI_ENOMEM;
    tallies->counted = value == 1 ? tallies->made : NULL;
    for (i = 0; tallies->counted && i < tallies->slabs; i++)
        memset(tallies->made[i], 0, CCI__CONN_SLAB * sizeof *tallies->made[i]);
    return CCI_SUCCESS;
}

/* Another connection has this place from now on. */
CCI__UNUSED static void cci__tally_begin(const cci__tallies_t *tallies, uint32_t index) {
    memset(cci__tally_at(tallies, index), 0, sizeof(cci__tally_t));
}

/* What CCI_OPT_ENDPT_CONN_STATS is. */
CCI__UNUSED static void cci__tallies_get(const cci__tallies_t *tallies, void *val) {
    uint32_t value = tallies->counted != NULL;
    memcpy(val, &value, sizeof value);
}

/* An RMA was issued, or a part of one, of which the first counts. */
CCI__UNUSED static void cci__tally_rma(cci__tally_t *tally, int flags, uint64_t length) {
    const int is_read = (flags & CCI_FLAG_READ) != 0;
    *(is_read ? &tally->rma_reads : &tally->rma_writes) += !(flags & CCI_PIECE_NEXT);
    *(is_read ? &tally->rma_read_bytes : &tally->rma_write_bytes) += length;
}

/* The program has taken an event. */
CCI__UNUSED static inline void cci__tally_taken(const cci__tallies_t *tallies, uint32_t index, uint32_t length) {
    cci__tally_t *tally = cci__tally_at(tallies, index);
    tally->messages_arrived++;
    tally->bytes_arrived += length;
}

/* A call has accepted a message. */
CCI__UNUSED static inline void cci__tally_issued(const cci__tallies_t *tallies, uint32_t index, uint32_t length) {
    cci__tally_t *tally = cci__tally_at(tallies, index);
    tally->messages_sent++;
    tally->bytes_sent += length;
}

/* ... and it could not be sent after all. */
CCI__UNUSED static inline void cci__tally_refused(const cci__tallies_t *tallies, uint32_t index, uint32_t length) {
    cci__tally_t *tally = cci__tally_at(tallies, index);
    tally->messages_sent--;
    tally->bytes_sent -= length;
}

/* The counted part of what a program is told. */
CCI__UNUSED static void cci__tally_tell(const cci__tally_t *tally, cci_conn_stats_t *stats) {
    stats->messages_sent = tally->messages_sent;
    stats->bytes_sent = tally->bytes_sent;
    stats->messages_received = tally->messages_arrived;
    stats->bytes_received = tally->bytes_arrived;
    stats->rma_writes = tally->rma_writes;
    stats->rma_write_bytes = tally->rma_write_bytes;
    stats->rma_reads = tally->rma_reads;
    stats->rma_read_bytes = tally->rma_read_bytes;
    stats->peer_write_bytes = tally->peer_write_bytes;
    stats->peer_read_bytes = tally->peer_read_bytes;
    stats->packets_sent = tally->packets_sent;
    stats->packet_bytes_sent = tally->packet_bytes_sent;
    stats->packets_received = tally->packets_received;
    stats->packet_bytes_received = tally->packet_bytes_received;
    stats->is_counted = 1;
}

#ifdef __cplusplus
}
#endif
#endif

/* Events that come only if they are asked for. */
#ifdef CCI_SMALL
#define CCI__ASKED_EVENTS (1u << CCI_EVENT_DISCONNECT)
#else
#define CCI__ASKED_EVENTS (1u << CCI_EVENT_DISCONNECT | 1u << CCI_EVENT_STATUS)
#endif

/* ---- notices: CCI_EVENT_STATUS ----
 *
 * What there is to tell stands with its connection, in memory that is made when the program asks for these events, so
 * that it can't be missing when something happens; and in one list, in the order in which it happened. In the queue of
 * urgent events wait only as many events as there are in CCI__NOTICE_EVENTS, which learn what they are when the program
 * takes them. */

#ifdef CCI_SMALL
#define CCI__TELLS(statement) ((void)0) /* such a machine does without CCI_EVENT_STATUS */
#else
#define CCI__TELLS(statement) statement
#ifdef __cplusplus
extern "C" {
#endif

#define CCI__NOTICE_KINDS 4u   /* of a device, and of a connection */
#define CCI__NOTICE_EVENTS 16u /* that the program may hold at once before further ones wait */

typedef struct cci__notice {
    cci_list_t node; /* in `waiting`, or alone */
    cci_conn_t *conn;
    uint64_t value;
    uint32_t what, stamp;
} cci__notice_t;

typedef struct cci__notices_of {
    cci__notice_t notice[CCI__NOTICE_KINDS];
    uint32_t is_suspended;
} cci__notices_of_t;

typedef struct cci__notices {
    cci__notices_of_t **asked; /* NULL, or for each slab of connections CCI__CONN_SLAB of them */
    cci__notices_of_t **made;  /* the same; they stay when the program asks no more */
    uint32_t slabs;
    uint32_t suspended; /* connections */
    cci__notices_of_t device;
    cci_list_t waiting;
    uint32_t waiting_count, queued; /* notices; events in the queue */
    uint32_t stamp;                 /* of the newest notice */
    cci_evq_event_t *events, *free_events;
} cci__notices_t;

static void cci__notices_begin(cci__notices_of_t *of) {
    uint32_t i;
    memset(of, 0, sizeof *of);
    for (i = 0; i < CCI__NOTICE_KINDS; i++) cci__list_init(&of->notice[i].node);
}

/* Makes what so many slabs of connections need; 0 if there is no memory. */
CCI__UNUSED static int cci__notices_grow(cci__notices_t *notices, uint32_t slabs) {
    uint32_t i;
    if (!notices->made) notices->made = (cci__notices_of_t **)cci_alloc(CCI__CONN_SLABS * sizeof *notices->made);
    if (!notices->made) return 0;
    while (notices->slabs < slabs) {
        cci__notices_of_t *slab = (cci__notices_of_t *)cci_alloc(CCI__CONN_SLAB * sizeof *slab);
        if (!slab) return 0;
        for (i = 0; i < CCI__CONN_SLAB; i++) cci__notices_begin(&slab[i]);
        notices->made[notices->slabs++] = slab;
    }
    return 1;
}

CCI__UNUSED static void cci__notices_free(cci__notices_t *notices) {
    while (notices->slabs > 0) cci_release(notices->made[--notices->slabs]);
    cci_release(notices->made);
    cci_release(notices->events);
}

/* Those of a connection, or for NULL of the device. */
static cci__notices_of_t *cci__notices_at(cci__notices_t *notices, const cci_conn_t *conn) {
    uint32_t index = conn ? conn->index % CCI__CONN_MOST : 0;
    return conn ? &notices->made[index / CCI__CONN_SLAB][index % CCI__CONN_SLAB] : &notices->device;
}

static void cci__notices_withdraw(cci__notices_t *notices, cci__notice_t *notice) {
    if (cci__list_empty(&notice->node)) return;
    cci__list_remove(&notice->node);
    notices->waiting_count--;
}

/* The connection has ended, for the program or at all, or another has its place. What waits is told if it `ends`. */
CCI__UNUSED static void cci__notices_forget(cci__notices_t *notices, const cci_conn_t *conn, int ends) {
    cci__notices_of_t *of;
    uint32_t i;
    if (!notices->asked) return;
    of = cci__notices_at(notices, conn);
    for (i = 0; !ends && i < CCI__NOTICE_KINDS; i++) cci__notices_withdraw(notices, &of->notice[i]);
    notices->suspended -= of->is_suspended;
    of->is_suspended = 0;
}

/* As many events as there is to tell, if there are so many. */
static void cci__notices_queue(cci__notices_t *notices, cci_evq_t *evq) {
    while (notices->queued < notices->waiting_count && notices->free_events) {
        cci_evq_event_t *event = notices->free_events;
        notices->free_events = event->next;
        event->base.pub.status.type = CCI_EVENT_STATUS;
        event->state = notices->stamp;
        notices->queued++;
        cci_evq_post(&evq->urgent, event);
    }
}

/* Something has happened to a connection, or for NULL to the device. */
CCI__UNUSED static CCI__RARE void cci__notices_post(cci__notices_t *notices, cci_evq_t *evq, cci_conn_t *conn,
                                                    cci_status_what_t what, uint64_t value) {
    cci__notice_t *notice;
    if (!notices->asked || (conn && CCI__LINGERS(conn))) return;
    notice = &cci__notices_at(notices, conn)->notice[(uint32_t)what % CCI__NOTICE_KINDS];
    cci__notices_withdraw(notices, notice);
    notice->conn = conn;
    notice->what = (uint32_t)what;
    notice->value = value;
    notice->stamp = ++notices->stamp;
    cci__list_append(&notices->waiting, &notice->node);
    notices->waiting_count++;
    cci__notices_queue(notices, evq);
}

/* A peer is silent (1), or was heard (0). Returns 1 if that is new. */
CCI__UNUSED static CCI__RARE int cci__notices_suspend(cci__notices_t *notices, cci_evq_t *evq, cci_conn_t *conn,
                                                      uint32_t is_suspended) {
    cci__notices_of_t *of;
    if (!notices->asked || conn->state != CCI_CONN_OPEN || CCI__LINGERS(conn)) return 0;
    of = cci__notices_at(notices, conn);
    if (of->is_suspended == is_suspended) return 0;
    of->is_suspended = is_suspended;
    notices->suspended += is_suspended ? 1 : UINT32_MAX;
    cci__notices_post(notices, evq, conn, is_suspended ? CCI_STATUS_PATH_SUSPENDED : CCI_STATUS_PATH_RESUMED, 0);
    return 1;
}

/* What a link tells of its device, against what it told before. */
CCI__UNUSED static void cci__notices_of_link(cci__notices_t *notices, cci_evq_t *evq, cci_link_state_t *before,
                                             const cci_link_state_t *now) {
    if (now->lacks_address != before->lacks_address)
        cci__notices_post(notices, evq, NULL, CCI_STATUS_ADDRESS_CHANGED, !now->lacks_address);
    if (now->mtu != before->mtu && now->mtu > 0 && before->mtu > 0)
        cci__notices_post(notices, evq, NULL, CCI_STATUS_MTU_CHANGED, now->mtu);
    before->lacks_address = now->lacks_address;
    if (now->mtu > 0) before->mtu = now->mtu;
}

CCI__UNUSED static void cci__notices_return(cci__notices_t *notices, cci_evq_t *evq, cci_evq_event_t *event) {
    event->base.pub.status.type = CCI_EVENT_NONE;
    event->next = notices->free_events;
    notices->free_events = event;
    cci__notices_queue(notices, evq);
}

/* An event has come to the front of the queue. 0: there is nothing to tell any more, and it has been returned; or only
 * what is newer than others in the queue, and it has gone behind these. */
CCI__UNUSED static CCI__RARE int cci__notices_hand_out(cci__notices_t *notices, cci_evq_t *evq,
                                                       cci_evq_event_t *event) {
    cci__notice_t *notice = CCI__CONTAINER(notices->waiting.next, cci__notice_t, node);
    notices->queued--;
    if (cci__list_empty(&notices->waiting) || (int32_t)(notice->stamp - event->state) > 0) {
        cci__notices_return(notices, evq, event);
        return 0;
    }
    cci__notices_withdraw(notices, notice);
    event->base.pub.status.what = (cci_status_what_t)notice->what;
    event->base.pub.status.connection = notice->conn ? &notice->conn->pub : NULL;
    event->base.pub.status.value = notice->value;
    return 1;
}

/* Makes the events of an endpoint; 0 if there is no memory. */
static int cci__notices_make_events(cci__notices_t *notices, cci_endpoint_base_t *endpoint) {
    uint32_t i;
    if (notices->events) return 1;
    notices->events = (cci_evq_event_t *)cci_alloc(CCI__NOTICE_EVENTS * sizeof *notices->events);
    if (!notices->events) return 0;
    memset(notices->events, 0, CCI__NOTICE_EVENTS * sizeof *notices->events);
    for (i = 0; i < CCI__NOTICE_EVENTS; i++) {
        notices->events[i].base.endpoint = endpoint;
        notices->events[i].pool = CCI_EVQ_STATUS;
        notices->events[i].next = notices->free_events;
        notices->free_events = &notices->events[i];
    }
    return 1;
}

/* The program asks for these events by its mask, or does not; a status. */
CCI__UNUSED static int cci__notices_set(cci__notices_t *notices, cci_endpoint_base_t *endpoint, uint32_t mask,
                                        uint32_t slabs) {
    int asks = (mask & 1u << CCI_EVENT_STATUS) != 0;
    uint32_t i, n;
    if (mask & ~CCI__ASKED_EVENTS) return CCI_EINVAL;
    if (asks == (notices->asked != NULL)) return CCI_SUCCESS;
    if (asks && (!cci__notices_make_events(notices, endpoint) || !cci__notices_grow(notices, slabs))) return CCI_ENOMEM;
    cci__list_init(&notices->waiting);
    notices->waiting_count = notices->suspended = 0;
    cci__notices_begin(&notices->device);
    for (i = 0; i < notices->slabs; i++)
        for (n = 0; n < CCI__CONN_SLAB; n++) cci__notices_begin(&notices->made[i][n]);
    notices->asked = asks ? notices->made : NULL;
    return CCI_SUCCESS;
}

#ifdef __cplusplus
}
#endif
#endif

/* ---- wakes: what wakes a program, if it chooses ---- */

#ifdef CCI_NO_WAKE
#define CCI__WAKES(statement) ((void)0)
#define CCI__CAN_WAKE 0u
#else
#define CCI__WAKES(statement) statement
#define CCI__CAN_WAKE CCI_CAN_WAKE
#if CCI_POSIX
#include <fcntl.h>
#include <unistd.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define CCI__WAKES_REFUSED 16u /* connections that are remembered */

typedef struct cci__refusal {
    uint32_t index, length; /* of the connection, and bytes of the message */
} cci__refusal_t;

typedef struct cci__wakes {
    int classes;     /* CCI_ARM_, 0: all */
    int fd[2];       /* a pipe: what CCI_OPT_ENDPT_SEND_FD gives, and its other end; valid if has_fd */
    uint8_t is_used; /* classes, or has_fd */
    uint8_t has_fd, is_signalled;
    uint8_t heard;     /* a message with CCI_FLAG_WAKE waits, or has waited when others still do */
    uint8_t ends;      /* the events about a connection's end are behind its messages */
    uint8_t overflows; /* more connections than are remembered were refused: nothing is known of them */
    uint32_t refused_count;
    cci__refusal_t refused[CCI__WAKES_REFUSED]; /* the last send of each got CCI_ENOBUFS */
} cci__wakes_t;

CCI__UNUSED static void cci__wakes_choose(cci__wakes_t *wakes, int classes) {
    wakes->classes = classes;
    wakes->is_used = classes != 0 || wakes->has_fd;
}

/* Is there an event in a queue that completes an operation (1), or one that doesn't (0)? */
static int cci__wakes_find(const cci_evq_fifo_t *fifo, int is_completion) {
    const cci_evq_event_t *event;
    for (event = fifo->head; event; event = event->next)
        if ((event->pool == CCI_EVQ_OPERATION) == is_completion && event->pool != CCI_EVQ_RECV) return 1;
    return 0;
}

#if CCI_POSIX
/* Is there a message in a queue? */
CCI__UNUSED static int cci__wakes_has_messages(const cci_evq_fifo_t *fifo) {
    const cci_evq_event_t *event = fifo->head;
    while (event && event->pool != CCI_EVQ_RECV) event = event->next;
    return event != NULL;
}
#endif

/* Does an event wait for which the handle is to be readable? Besides those in `evq` there are messages, and perhaps
 * `received`, a queue with messages and other events. */
CCI__UNUSED static int cci__wakes_due(cci__wakes_t *wakes, const cci_evq_t *evq, const cci_evq_fifo_t *received,
                                      int has_messages, int is_full) {
    const int classes = wakes->classes ? wakes->classes : CCI_ARM_RECV | CCI_ARM_SEND | CCI_ARM_OTHER;
    if (!has_messages) wakes->heard = wakes->ends = 0;
    if ((has_messages && (is_full || (classes & CCI_ARM_RECV))) || ((classes & CCI_ARM_WAKE) && wakes->heard)) return 1;
    if ((classes & CCI_ARM_SEND) && cci__wakes_find(&evq->done, 1)) return 1;
    return (classes & CCI_ARM_OTHER) && (wakes->ends || evq->urgent.head || cci__wakes_find(&evq->done, 0) ||
                                         (received && cci__wakes_find(received, 0)));
}

/* What CCI_OPT_ENDPT_SEND_FD gives. */
CCI__UNUSED static int cci__wakes_open(cci__wakes_t *wakes, void *val) {
#if CCI_POSIX
    if (!wakes->has_fd) {
        int i;
        if (pipe(wakes->fd) != 0) return CCI_ENOMEM;
        for (i = 0; i < 2; i++) {
            (void)fcntl(wakes->fd[i], F_SETFD, FD_CLOEXEC);
            (void)fcntl(wakes->fd[i], F_SETFL, O_NONBLOCK);
        }
        wakes->has_fd = wakes->is_used = 1;
    }
    memcpy(val, &wakes->fd[0], sizeof(cci_os_handle_t));
    return CCI_SUCCESS;
#else
    (void)wakes, (void)val;
    return CCI_ERR_NOT_IMPLEMENTED;
#endif
}

/* At the end, and in the child of fork(). */
CCI__UNUSED static void cci__wakes_close(cci__wakes_t *wakes) {
#if CCI_POSIX
    int had_fd = wakes->has_fd;
    wakes->has_fd = wakes->is_used = 0;
    if (had_fd) {
        close(wakes->fd[0]);
        close(wakes->fd[1]);
    }
#else
    (void)wakes;
#endif
}

/* Makes the second descriptor readable or not. */
CCI__UNUSED static void cci__wakes_signal(cci__wakes_t *wakes, int readable) {
#if CCI_POSIX
    char byte = 0;
    ssize_t n;
    if (readable == wakes->is_signalled) return;
    wakes->is_signalled = (uint8_t)readable;
    n = readable ? write(wakes->fd[1], &byte, 1) : read(wakes->fd[0], &byte, 1);
    (void)n;
#else
    (void)wakes, (void)readable;
#endif
}

/* The connection is gone, or what it sent last was not refused. */
CCI__UNUSED static void cci__wakes_forget(cci__wakes_t *wakes, uint32_t index) {
    uint32_t i;
    for (i = 0; i < wakes->refused_count; i++)
        if (wakes->refused[i].index == index) wakes->refused[i--] = wakes->refused[--wakes->refused_count];
    if (wakes->refused_count == 0) wakes->overflows = 0; /* they have had their chance */
}

/* A connection has sent. Called only where there is a second descriptor. */
CCI__UNUSED static void cci__wakes_note(cci__wakes_t *wakes, uint32_t index, uint32_t length, int is_refused) {
    cci__wakes_forget(wakes, index);
    if (!is_refused) return;
    if (wakes->refused_count == CCI__WAKES_REFUSED) {
        wakes->overflows = 1;
        return;
    }
    wakes->refused[wakes->refused_count].index = index;
    wakes->refused[wakes->refused_count++].length = length;
}

/* The second descriptor tells whether a completion waits, or a send could succeed that was refused. */
CCI__UNUSED static void cci__wakes_tell_sender(cci__wakes_t *wakes, const cci_evq_t *evq,
                                               int (*may_send)(void *ep, const cci__refusal_t *refusal), void *ep) {
    int readable = wakes->overflows || cci__wakes_find(&evq->done, 1);
    uint32_t i;
    for (i = 0; i < wakes->refused_count && !readable; i++) readable = may_send(ep, &wakes->refused[i]);
    cci__wakes_signal(wakes, readable);
}

#ifdef __cplusplus
}
#endif
#endif

/* ---- the endpoint ---- */

#ifdef __cplusplus
extern "C" {
#endif

#ifdef CCI_SMALL
#define CCI__GROUPS 1u
#else
#define CCI__GROUPS 16u /* multicast groups of an endpoint over a link */
#endif

struct cci__endpoint;
struct cci__connect;

/* What an engine does for an endpoint. All are called with the lock held, except lock, unlock and wake. */
typedef struct cci__engine {
    uint64_t (*clock)(struct cci__endpoint *ep); /* the time now */
    /* NULL, both: the lock is that of cci__endpoint_t */
    void (*lock)(struct cci__endpoint *ep);
    void (*unlock)(struct cci__endpoint *ep);

    /* work and sleep */
    void (*work)(struct cci__endpoint *ep); /* a whole round: receives, runs what is due, sends what may leave */
    void (*arm)(struct cci__endpoint *ep);  /* sets the OS handle and the helper thread's alarm after a change */
    void (*wake)(struct cci__endpoint *ep); /* the helper thread */
    uint64_t (*next_deadline)(struct cci__endpoint *ep); /* of cci_next_deadline(): absolute; 0: at once */
    /* 1: messages wait for the program. *received stays NULL, or becomes the queue that they share with other events;
     * *is_full becomes 1 when they occupy all receive buffers. */
    int (*messages)(struct cci__endpoint *ep, const cci_evq_fifo_t **received, int *is_full);
#ifndef CCI_NO_WAKE
    int (*may_send)(void *ep, const cci__refusal_t *refusal); /* 1: a send that got CCI_ENOBUFS could succeed now */
    void (*choose)(struct cci__endpoint *ep, int classes);    /* cci_arm_os_handle() has named other classes */
#endif

    /* connections. Those that return int return a status */
    int (*add_events)(struct cci__endpoint *ep); /* to the pool CONTROL. Returns 0 if there is no memory */
    int (*decide)(struct cci__endpoint *ep, cci_evq_event_t *request, int accepts, void *context, const void *data,
                  uint32_t data_len);
    void (*disconnect)(struct cci__endpoint *ep, cci_conn_t *conn);
#ifndef CCI_NO_LINGER
    int (*is_busy)(struct cci__endpoint *ep, const cci_conn_t *conn); /* 1: something that was accepted is pending */
    /* The connection lingers until then, if nothing ends it before. Its events and messages are dropped, and when it is
     * over the engine calls cci__endpoint_end_linger() */
    void (*linger)(struct cci__endpoint *ep, cci_conn_t *conn, uint64_t until_ns);
#endif

    /* options; the values have been checked for NULL only */
    int (*set_send_count)(struct cci__endpoint *ep, uint32_t count);
    int (*set_recv_count)(struct cci__endpoint *ep, uint32_t count);
#ifndef CCI_NO_STATS
    int (*set_counting)(struct cci__endpoint *ep, uint32_t value); /* CCI_OPT_ENDPT_CONN_STATS */
    /* Adds what the engine counts. *stats is zero but for what cci__endpoint_get_stats() has set */
    void (*endpoint_stats)(struct cci__endpoint *ep, cci_endpt_stats_t *stats);
    void (*connection_stats)(struct cci__endpoint *ep, const cci_conn_t *conn, cci_conn_stats_t *stats);
#endif
    void (*mask_changed)(struct cci__endpoint *ep);                        /* event_mask. May be NULL */
    void (*timeout_changed)(struct cci__endpoint *ep, cci_conn_t *conn);   /* send_timeout_us. May be NULL */
    void (*keepalive_changed)(struct cci__endpoint *ep, cci_conn_t *conn); /* keepalive_us: the period begins now */
    void (*keepalive_timed_out)(struct cci__endpoint *ep, cci_conn_t *conn);
    int (*uri)(struct cci__endpoint *ep, const cci_conn_t *conn, char **uri); /* conn NULL: the endpoint's own */
    void (*caps)(struct cci__endpoint *ep, const cci_conn_t *conn, cci_caps_t *caps); /* likewise */

    /* Engines over a link. Others have NULL from here on, and no time */
    uint64_t (*deadline)(struct cci__endpoint *ep);       /* of the next work: cheap, perhaps too early */
    uint64_t (*sleep_deadline)(struct cci__endpoint *ep); /* the same, exact */
    int (*has_come)(struct cci__endpoint *ep); /* 1: something came that would not end the link's `wait`. May be NULL */
    int (*receive)(struct cci__endpoint *ep);  /* one batch, and sends the answers. Returns 0 if nothing came */
    int (*ends)(struct cci__endpoint *ep, cci_conn_t *conn);       /* the endpoint goes. 1: the peer is to be told */
    int (*tell_close)(struct cci__endpoint *ep, cci_conn_t *conn); /* sends CLOSE. 0: the peer knows already */
    int (*connect)(struct cci__endpoint *ep, const struct cci__connect *call);
    uint64_t spin_ns; /* a blocking call works for so long without sleeping */
    uint64_t nap_ns;  /* then it sleeps for so long at a time, at most */
} cci__engine_t;

/* What every engine's endpoint begins with, as every engine's connection begins with a cci_conn_t. */
typedef struct cci__endpoint {
    cci_endpoint_base_t api; /* first */
    const cci__engine_t *engine;
    int has_fd;          /* the program has an OS handle */
    uint32_t event_mask; /* CCI_OPT_ENDPT_EVENT_MASK */
    uint64_t now_ns;     /* the clock, as the engine has read it last */
    cci_evq_t evq;       /* events that wait, and receive buffers */
    cci_conn_table_t conns;
    cci_wheel_t wheel; /* of connections: the time at which something is due */
    cci__polls_t polls;
    uint32_t max_send_size;                                                 /* bytes, as in cci_connection_t */
    uint32_t send_buf_count, recv_buf_count, send_timeout_us, keepalive_us; /* CCI_OPT_ENDPT_ */
    cci_list_t told; /* data of servers' answers, with events that the program has */
#ifndef CCI_NO_STATS
    cci__tallies_t tallies;
#endif
#ifndef CCI_SMALL
    cci__notices_t notices;
#endif
#ifndef CCI_NO_WAKE
    cci__wakes_t wakes;
#endif
    int stopping; /* the helper thread is to end */
    cci__lock_t lock;
#ifndef CCI_NO_THREADS
    cci__thread_t thread;
    int has_thread;
#endif
    /* over a link */
    const char *scheme; /* of URIs: the transport's name */
    const cci_link_t *link;
    void *handle; /* the link's */
    cci_link_info_t info;
#ifndef CCI_SMALL
    cci_link_state_t link_state; /* as the link told it last */
#endif
    cci__handle_t os_handle;
    cci_conn_t *groups[CCI__GROUPS]; /* connections that receive */
    uint32_t group_count;
    uint32_t waiters;           /* threads that sleep in the link's `wait` */
    uint32_t closing;           /* connections that the program has closed and the peer may not know of */
    int device_failed, is_dead; /* the device is down; for ever */
    uint64_t check_ns;          /* when to look at the device again */
    uint64_t called_ns;         /* when somebody worked here last */
    uint64_t thread_until_ns;   /* the helper thread sleeps until then; 0: it does not */
    uint64_t close_ns;          /* when the CLOSE packets that have been promised a time have left */
    uint64_t busy_log_ns;       /* when the log may tell again that requests are refused */
} cci__endpoint_t;

/* A call of cci_connect() over a link. */
typedef struct cci__connect {
    const char *address;
    const cci_conn_seek_t *seek; /* NULL: it is not by name */
    const void *data;
    void *context;
    uint64_t timeout_ns;
    uint32_t data_len;
    int is_known; /* `to` is; otherwise the link will tell it */
    int is_group;
    cci_conn_attribute_t attribute;
    cci_link_addr_t to;
} cci__connect_t;

CCI__UNUSED static void cci__endpoint_lock(cci__endpoint_t *ep) {
#ifdef CCI_NO_THREADS
    (void)ep;
#else
    if (ep->engine->lock)
        ep->engine->lock(ep);
    else
        cci__lock_take(&ep->lock);
#endif
}

CCI__UNUSED static void cci__endpoint_unlock(cci__endpoint_t *ep) {
#ifdef CCI_NO_THREADS
    (void)ep;
#else
    if (ep->engine->unlock)
        ep->engine->unlock(ep);
    else
        cci__lock_give(&ep->lock);
#endif
}

CCI__UNUSED static cci__endpoint_t *cci__conn_endpoint(const struct cci_connection *connection) {
    return (cci__endpoint_t *)(void *)(uintptr_t)connection->endpoint;
}

CCI__UNUSED static inline int cci__conn_is_reliable(const cci_conn_t *conn) {
    return conn->pub.attribute == CCI_CONN_ATTR_RO || conn->pub.attribute == CCI_CONN_ATTR_RU;
}

/* With which a connection opens. */
CCI__UNUSED static uint32_t cci__endpoint_keepalive_us(const cci__endpoint_t *ep, const cci_conn_t *conn) {
    return cci__conn_is_reliable(conn) ? ep->keepalive_us : 0;
}

/* Nanoseconds; CCI__NEVER for NULL, and for what is as good as that. */
CCI__UNUSED static uint64_t cci__timeout_ns(const struct timeval *timeout) {
    if (!timeout || (uint64_t)timeout->tv_sec >= UINT64_C(4000000000)) return CCI__NEVER;
    return (uint64_t)timeout->tv_sec * UINT64_C(1000000000) + (uint64_t)timeout->tv_usec * 1000;
}

CCI__UNUSED static void cci__endpoint_init(cci__endpoint_t *ep, const cci__engine_t *engine, cci_device_t *device,
                                           int has_fd) {
    ep->engine = engine;
    ep->api.pub.device = device;
    ep->has_fd = has_fd;
    ep->os_handle.armed_ns = CCI__NEVER;
    cci__list_init(&ep->told);
    cci__lock_init(&ep->lock);
}

/* What the endpoint still has, besides its own memory. */
CCI__UNUSED static void cci__endpoint_free(cci__endpoint_t *ep) {
    while (!cci__list_empty(&ep->told))
        cci_release(cci_conn_take_answer(CCI__CONTAINER(ep->told.next, cci_conn_answer_t, node) + 1));
    cci_release(ep->conns.buckets);
    CCI__STATS(cci__tallies_free(&ep->tallies));
    CCI__TELLS(cci__notices_free(&ep->notices));
    CCI__WAKES(cci__wakes_close(&ep->wakes));
    if (ep->handle) ep->link->close(ep->handle);
    cci__lock_destroy(&ep->lock);
}

/* An event of the pool CONTROL; NULL: there is no memory now. */
CCI__UNUSED static cci_evq_event_t *cci__endpoint_event(cci__endpoint_t *ep) {
    cci_evq_event_t *event = cci_evq_take_event(&ep->evq, CCI_EVQ_CONTROL);
    if (!event && ep->engine->add_events(ep)) event = cci_evq_take_event(&ep->evq, CCI_EVQ_CONTROL);
    if (!event) return NULL;
    event->owner = NULL;
    event->state = 0;
    return event;
}

/* ---- options ---- */

/* The program has it, and has not closed it. (cci_sisci.h takes the token away then; the state stays for a while.) */
static int cci__conn_is_held(const cci_conn_t *conn) {
    return (conn->state == CCI_CONN_OPEN || conn->state == CCI_CONN_BROKEN) && conn->token != 0 && !CCI__LINGERS(conn);
}

static void cci__endpoint_set_keepalive(cci__endpoint_t *ep, cci_conn_t *conn, uint32_t keepalive_us) {
    conn->keepalive_us = keepalive_us;
    conn->flags &= (uint16_t)~CCI__CONN_PINGED;
    if (conn->state == CCI_CONN_BROKEN) {
        if (keepalive_us) ep->engine->keepalive_timed_out(ep, conn); /* there is nobody to answer */
    } else if (!conn->step.confirming) {                             /* otherwise from the confirmation on */
        ep->engine->keepalive_changed(ep, conn);
    }
}

static void cci__endpoint_set_keepalives(cci__endpoint_t *ep, uint32_t keepalive_us) {
    uint32_t i;
    ep->keepalive_us = keepalive_us;
    for (i = 0; i < ep->conns.slab_count * CCI__CONN_SLAB; i++) {
        cci_conn_t *conn = cci_conn_at(&ep->conns, i);
        if (cci__conn_is_held(conn) && cci__conn_is_reliable(conn)) cci__endpoint_set_keepalive(ep, conn, keepalive_us);
    }
}

static int cci__endpoint_set_mask(cci__endpoint_t *ep, uint32_t mask) {
    if (mask & ~CCI__ASKED_EVENTS) return CCI_EINVAL;
    CCI__TELLS(int status = cci__notices_set(&ep->notices, &ep->api, mask, ep->conns.slab_count));
    CCI__TELLS(if (status != CCI_SUCCESS) return status);
    ep->event_mask = mask;
    if (ep->engine->mask_changed) ep->engine->mask_changed(ep);
    return CCI_SUCCESS;
}

static int cci__endpoint_set_counting(cci__endpoint_t *ep, uint32_t value) {
#ifdef CCI_NO_STATS
    (void)ep, (void)value;
    return CCI_ERR_NOT_IMPLEMENTED;
#else
    return ep->engine->set_counting(ep, value);
#endif
}

CCI__UNUSED static int cci__endpoint_set_opt(cci_endpoint_base_t *base, cci_opt_name_t name, const void *val) {
    cci__endpoint_t *ep = (cci__endpoint_t *)(void *)base;
    int status = CCI_SUCCESS;
    uint32_t value;
    memcpy(&value, val, sizeof value);
    cci__endpoint_lock(ep);
    ep->now_ns = ep->engine->clock(ep);
    switch (name) {
    case CCI_OPT_ENDPT_SEND_TIMEOUT: ep->send_timeout_us = value; break;
    case CCI_OPT_ENDPT_RECV_BUF_COUNT: status = ep->engine->set_recv_count(ep, value); break;
    case CCI_OPT_ENDPT_SEND_BUF_COUNT: status = ep->engine->set_send_count(ep, value); break;
    case CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT: cci__endpoint_set_keepalives(ep, value); break;
    case CCI_OPT_ENDPT_EVENT_MASK: status = cci__endpoint_set_mask(ep, value); break;
    case CCI_OPT_ENDPT_CONN_STATS: status = cci__endpoint_set_counting(ep, value); break;
    default: status = CCI_EINVAL; break;
    }
    ep->engine->arm(ep);
    cci__endpoint_unlock(ep);
    return status;
}

/* CCI_OPT_ENDPT_STATS, and what CCI_OPT_ENDPT_CONN_STATS is. */
static int cci__endpoint_get_stats(cci__endpoint_t *ep, cci_opt_name_t name, void *val) {
#ifdef CCI_NO_STATS
    (void)ep, (void)name, (void)val;
    return CCI_ERR_NOT_IMPLEMENTED;
#else
    cci_endpt_stats_t *stats = (cci_endpt_stats_t *)val;
    if (name == CCI_OPT_ENDPT_CONN_STATS) {
        cci__tallies_get(&ep->tallies, val);
        return CCI_SUCCESS;
    }
    memset(stats, 0, sizeof *stats);
    cci_conn_count(&ep->conns, &stats->connections_open, &stats->connections_opening);
    stats->events_waiting = cci_evq_count(&ep->evq.urgent) + cci_evq_count(&ep->evq.done);
    ep->engine->endpoint_stats(ep, stats);
    ep->engine->arm(ep);
    return CCI_SUCCESS;
#endif
}

static int cci__endpoint_get_send_fd(cci__endpoint_t *ep, void *val) {
#ifdef CCI_NO_WAKE
    (void)ep, (void)val;
    return CCI_ERR_NOT_IMPLEMENTED;
#else
    int status = ep->has_fd ? cci__wakes_open(&ep->wakes, val) : (int)CCI_EINVAL;
    ep->engine->arm(ep);
    return status;
#endif
}

CCI__UNUSED static int cci__endpoint_get_opt(cci_endpoint_base_t *base, cci_opt_name_t name, void *val) {
    cci__endpoint_t *ep = (cci__endpoint_t *)(void *)base;
    int status = CCI_SUCCESS;
    cci__endpoint_lock(ep);
    switch (name) {
    case CCI_OPT_ENDPT_SEND_TIMEOUT: memcpy(val, &ep->send_timeout_us, sizeof(uint32_t)); break;
    case CCI_OPT_ENDPT_RECV_BUF_COUNT: memcpy(val, &ep->recv_buf_count, sizeof(uint32_t)); break;
    case CCI_OPT_ENDPT_SEND_BUF_COUNT: memcpy(val, &ep->send_buf_count, sizeof(uint32_t)); break;
    case CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT: memcpy(val, &ep->keepalive_us, sizeof(uint32_t)); break;
    case CCI_OPT_ENDPT_EVENT_MASK: memcpy(val, &ep->event_mask, sizeof(uint32_t)); break;
    case CCI_OPT_ENDPT_URI: status = ep->engine->uri(ep, NULL, (char **)val); break;
    case CCI_OPT_CAPS: ep->engine->caps(ep, NULL, (cci_caps_t *)val); break;
    case CCI_OPT_ENDPT_RMA_ALIGN:
        memset(val, 0, sizeof(cci_alignment_t)); /* any address and length will do */
        break;
    case CCI_OPT_ENDPT_STATS:
    case CCI_OPT_ENDPT_CONN_STATS: status = cci__endpoint_get_stats(ep, name, val); break;
    case CCI_OPT_ENDPT_SEND_FD: status = cci__endpoint_get_send_fd(ep, val); break;
    default: status = CCI_EINVAL; break;
    }
    cci__endpoint_unlock(ep);
    return status;
}

/* CCI_OPT_CONN_LINGER. */
static int cci__endpoint_set_linger(cci_conn_t *conn, uint32_t value) {
#ifdef CCI_NO_LINGER
    (void)conn, (void)value;
    return CCI_ERR_NOT_IMPLEMENTED;
#else
    CCI__LINGER_US(conn) = value;
    return CCI_SUCCESS;
#endif
}

static int cci__endpoint_get_linger(const cci_conn_t *conn, void *val) {
#ifdef CCI_NO_LINGER
    (void)conn, (void)val;
    return CCI_ERR_NOT_IMPLEMENTED;
#else
    memcpy(val, &CCI__LINGER_US(conn), sizeof(uint32_t));
    return CCI_SUCCESS;
#endif
}

CCI__UNUSED static int cci__endpoint_set_conn_opt(struct cci_connection *connection, cci_opt_name_t name,
                                                  const void *val) {
    cci_conn_t *conn = (cci_conn_t *)(void *)connection;
    cci__endpoint_t *ep = cci__conn_endpoint(connection);
    const int any = name == CCI_OPT_CONN_CONTEXT || name == CCI_OPT_CONN_LINGER; /* the others: reliable ones */
    int status = CCI_SUCCESS;
    uint32_t value;
    memcpy(&value, val, sizeof value);
    cci__endpoint_lock(ep);
    ep->now_ns = ep->engine->clock(ep);
    if (CCI__LINGERS(conn) || (!any && !cci__conn_is_reliable(conn))) {
        status = CCI_EINVAL; /* the program has closed it, or it has no such option */
    } else if (name == CCI_OPT_CONN_CONTEXT) {
        memcpy(&conn->pub.context, val, sizeof(void *));
    } else if (name == CCI_OPT_CONN_LINGER) {
        status = cci__endpoint_set_linger(conn, value);
    } else if (name == CCI_OPT_CONN_SEND_TIMEOUT) {
        conn->send_timeout_us = value;
        if (ep->engine->timeout_changed) ep->engine->timeout_changed(ep, conn);
    } else {
        cci__endpoint_set_keepalive(ep, conn, value);
    }
    ep->engine->arm(ep);
    cci__endpoint_unlock(ep);
    return status;
}

static int cci__endpoint_get_conn_stats(cci__endpoint_t *ep, const cci_conn_t *conn, void *val) {
#ifdef CCI_NO_STATS
    (void)ep, (void)conn, (void)val;
    return CCI_ERR_NOT_IMPLEMENTED;
#else
    ep->now_ns = ep->engine->clock(ep);
    memset(val, 0, sizeof(cci_conn_stats_t));
    ep->engine->connection_stats(ep, conn, (cci_conn_stats_t *)val);
    ep->engine->arm(ep);
    return CCI_SUCCESS;
#endif
}

CCI__UNUSED static int cci__endpoint_get_conn_opt(struct cci_connection *connection, cci_opt_name_t name, void *val) {
    cci_conn_t *conn = (cci_conn_t *)(void *)connection;
    cci__endpoint_t *ep = cci__conn_endpoint(connection);
    int status = CCI_SUCCESS;
    cci__endpoint_lock(ep);
    switch (name) {
    case CCI_OPT_CONN_SEND_TIMEOUT: memcpy(val, &conn->send_timeout_us, sizeof(uint32_t)); break;
    case CCI_OPT_CONN_KEEPALIVE_TIMEOUT: memcpy(val, &conn->keepalive_us, sizeof(uint32_t)); break;
    case CCI_OPT_CONN_CONTEXT: memcpy(val, &conn->pub.context, sizeof(void *)); break;
    case CCI_OPT_CONN_LINGER: status = cci__endpoint_get_linger(conn, val); break;
    case CCI_OPT_CONN_PEER_URI: status = ep->engine->uri(ep, conn, (char **)val); break;
    case CCI_OPT_CONN_STATS: status = cci__endpoint_get_conn_stats(ep, conn, val); break;
    case CCI_OPT_CAPS:
        ep->engine->caps(ep, conn, (cci_caps_t *)val);
        cci__caps_of_connection(&conn->pub, (cci_caps_t *)val);
        break;
    default: status = CCI_EINVAL; break;
    }
    cci__endpoint_unlock(ep);
    return status;
}

/* ---- requests: and the events about a connection's begin and end ---- */

/* What is decided of a request is told to the client by the engine. */
CCI__UNUSED static int cci__endpoint_answer(cci_event_base_t *base, int accepts, void *context, const void *data,
                                            uint32_t data_len) {
    cci_evq_event_t *request = (cci_evq_event_t *)(void *)base;
    cci__endpoint_t *ep = (cci__endpoint_t *)(void *)base->endpoint;
    int status = CCI_EINVAL;
    cci__endpoint_lock(ep);
    if (base->pub.type == CCI_EVENT_CONNECT_REQUEST && request->state == 0 && request->owner) {
        ep->now_ns = ep->engine->clock(ep);
        status = ep->engine->decide(ep, request, accepts, context, data, data_len);
    }
    if (status == CCI_SUCCESS) {
        request->state = 1;
        request->owner = NULL;
        ep->engine->arm(ep);
    }
    cci__endpoint_unlock(ep);
    return status;
}

CCI__UNUSED static int cci__endpoint_accept(cci_event_base_t *base, void *context) {
    return cci__endpoint_answer(base, 1, context, NULL, 0);
}

CCI__UNUSED static int cci__endpoint_reject(cci_event_base_t *base) {
    return cci__endpoint_answer(base, 0, NULL, NULL, 0);
}

/* The outcome of cci_connect(). Its data, if the server sent any, is there already. */
CCI__UNUSED static void cci__endpoint_post_connect(cci__endpoint_t *ep, cci_evq_event_t *event, cci_conn_t *conn,
                                                   int status) {
    event->base.pub.connect.type = CCI_EVENT_CONNECT;
    event->base.pub.connect.status = (cci_status_t)status;
    event->base.pub.connect.context = conn->pub.context;
    event->base.pub.connect.connection = status == CCI_SUCCESS ? &conn->pub : NULL;
    event->owner = status == CCI_SUCCESS ? conn : NULL;
    cci_evq_post(&ep->evq.urgent, event);
}

/* The outcome of cci_accept(). */
CCI__UNUSED static void cci__endpoint_post_accept(cci__endpoint_t *ep, cci_evq_event_t *event, cci_conn_t *conn,
                                                  int status) {
    event->base.pub.accept.type = CCI_EVENT_ACCEPT;
    event->base.pub.accept.status = (cci_status_t)status;
    event->base.pub.accept.context = conn->pub.context;
    event->base.pub.accept.connection = status == CCI_SUCCESS ? &conn->pub : NULL;
    event->owner = status == CCI_SUCCESS ? conn : NULL;
    cci_evq_post(&ep->evq.urgent, event);
}

CCI__UNUSED static void cci__event_set_disconnect(cci_evq_event_t *event, cci_conn_t *conn, int status) {
    event->base.pub.disconnect.type = CCI_EVENT_DISCONNECT;
    event->base.pub.disconnect.status = (cci_status_t)status;
    event->base.pub.disconnect.connection = &conn->pub;
    event->base.pub.disconnect.context = conn->pub.context;
    event->owner = conn;
}

CCI__UNUSED static void cci__event_set_keepalive(cci_evq_event_t *event, cci_conn_t *conn) {
    event->base.pub.keepalive.type = CCI_EVENT_KEEPALIVE_TIMEDOUT;
    event->base.pub.keepalive.connection = &conn->pub;
    event->owner = conn;
}

/* A group's datagrams reach the connection from now on; a status. */
CCI__UNUSED static int cci__endpoint_join(cci__endpoint_t *ep, cci_conn_t *conn) {
    int status;
    if (conn->pub.attribute != CCI_CONN_ATTR_UU_MC_RX) return CCI_SUCCESS;
    if (ep->group_count == CCI__GROUPS) return CCI_ENOBUFS;
    status = ep->link->group(ep->handle, &conn->peer, 1);
    if (status == CCI_SUCCESS) ep->groups[ep->group_count++] = conn;
    return status;
}

static void cci__endpoint_leave(cci__endpoint_t *ep, const cci_conn_t *conn) {
    uint32_t i;
    for (i = 0; i < ep->group_count; i++) {
        if (ep->groups[i] != conn) continue;
        (void)ep->link->group(ep->handle, &conn->peer, 0);
        ep->groups[i--] = ep->groups[--ep->group_count];
    }
}

/* The program has closed a connection. 1: what is pending goes on for a while (CCI_OPT_CONN_LINGER). */
static int cci__endpoint_begin_linger(cci__endpoint_t *ep, cci_conn_t *conn) {
#ifdef CCI_NO_LINGER
    (void)ep, (void)conn;
    return 0;
#else
    if (CCI__LINGER_US(conn) == 0 || conn->state != CCI_CONN_OPEN || !ep->engine->is_busy(ep, conn)) return 0;
    conn->flags = (uint16_t)((conn->flags & ~CCI__CONN_PINGED) | CCI__CONN_LINGERS);
    conn->keepalive_us = 0;
    conn->step.confirming = 0; /* what is pending confirms it as well */
    conn->tries = 0;
    ep->engine->linger(ep, conn, ep->now_ns + CCI__LINGER_US(conn) * UINT64_C(1000));
    return 1;
#endif
}

/* When a connection that lingers ends, where that is its deadline: 0, at once. */
CCI__UNUSED static uint64_t cci__endpoint_lingers_until(cci__endpoint_t *ep, const cci_conn_t *conn) {
#ifdef CCI_NO_LINGER
    (void)ep, (void)conn;
    return CCI__NEVER;
#else
    return conn->state == CCI_CONN_OPEN && ep->engine->is_busy(ep, conn) ? conn->deadline_ns : 0;
#endif
}

/* It ends: what is still pending too. */
CCI__UNUSED static void cci__endpoint_end_linger(cci__endpoint_t *ep, cci_conn_t *conn) {
    conn->flags &= (uint16_t)~CCI__CONN_LINGERS;
    ep->engine->disconnect(ep, conn);
}

CCI__UNUSED static int cci__endpoint_disconnect(struct cci_connection *connection) {
    cci_conn_t *conn = (cci_conn_t *)(void *)connection;
    cci__endpoint_t *ep = cci__conn_endpoint(connection);
    int status = CCI_EINVAL;
    cci__endpoint_lock(ep);
    if (cci__conn_is_held(conn)) {
        status = CCI_SUCCESS;
        ep->now_ns = ep->engine->clock(ep);
        CCI__TELLS(cci__notices_forget(&ep->notices, conn, 0));
        CCI__WAKES(cci__wakes_forget(&ep->wakes, conn->index % CCI__CONN_MOST));
        cci__endpoint_leave(ep, conn);
        if (!cci__endpoint_begin_linger(ep, conn)) ep->engine->disconnect(ep, conn);
        ep->engine->arm(ep);
    }
    cci__endpoint_unlock(ep);
    return status;
}

/* What a request for a connection is repeated from; NULL: there is no memory. */
CCI__UNUSED static cci_conn_pending_t *cci__endpoint_pending(cci__endpoint_t *ep, const cci__connect_t *call) {
    cci_conn_pending_t *pending = (cci_conn_pending_t *)cci_alloc(cci_conn_pending_size(call->data_len, call->seek));
    if (!pending) return NULL;
    pending->event = cci__endpoint_event(ep);
    if (!pending->event) {
        cci_release(pending);
        return NULL;
    }
    pending->answer = NULL;
    pending->key_id = 0;
    pending->give_up_ns = call->timeout_ns == CCI__NEVER ? CCI__NEVER : ep->now_ns + call->timeout_ns;
    pending->data_len = call->data_len;
    if (call->data_len) memcpy(pending + 1, call->data, call->data_len);
    cci_conn_begin_seek(pending, call->seek, ep->now_ns);
    return pending;
}

/* Over a link: finds the address, and has the engine ask for the connection. */
CCI__UNUSED static int cci__endpoint_connect(cci_endpoint_base_t *base, const char *address, const void *data,
                                             uint32_t data_len, cci_conn_attribute_t attribute, void *context,
                                             int flags, const struct timeval *timeout) {
    cci__endpoint_t *ep = (cci__endpoint_t *)(void *)base;
    cci__connect_t call;
    int status;
#ifndef CCI_NO_NAMES
    const char *name = cci_service_name(base->pub.device, address);
    cci_conn_seek_t seek;
#endif
    (void)flags;
    if (!ep->link->resolve) return CCI_ERR_NOT_IMPLEMENTED;
    memset(&call, 0, sizeof call);
    call.address = address;
    call.data = data;
    call.data_len = data_len;
    call.attribute = attribute;
    call.context = context;
    call.is_group = attribute > CCI_CONN_ATTR_UU;
    call.timeout_ns = cci__timeout_ns(timeout);
    /* without the lock: it may ask a name service */
#ifndef CCI_NO_NAMES
    status = name ? cci_conn_find_ports(&seek, ep->link, ep->handle, address, name)
                  : ep->link->resolve(ep->handle, address, &call.to);
    if (name) {
        call.to = seek.addresses[0];
        call.seek = &seek;
    }
#else
    status = ep->link->resolve(ep->handle, address, &call.to);
#endif
    if (status != CCI_SUCCESS && status != CCI_EAGAIN) return status;
    call.is_known = status == CCI_SUCCESS;
    if (call.is_group && (!ep->link->is_group || !ep->link->group)) return CCI_ERR_NOT_IMPLEMENTED;
    if (ep->link->is_group && ep->link->is_group(ep->handle, &call.to) != call.is_group) return CCI_EINVAL;
    cci__endpoint_lock(ep);
    ep->now_ns = ep->engine->clock(ep);
    status = ep->is_dead ? (int)CCI_ERR_DEVICE_DEAD : ep->engine->connect(ep, &call);
    ep->engine->arm(ep);
    cci__endpoint_unlock(ep);
    return status;
}

/* ---- sleep: the OS handle, the helper thread, blocking calls ---- */

CCI__UNUSED static int cci__endpoint_next_deadline(cci_endpoint_base_t *base, uint64_t *ns) {
    cci__endpoint_t *ep = (cci__endpoint_t *)(void *)base;
    uint64_t at;
    cci__endpoint_lock(ep);
    ep->now_ns = ep->engine->clock(ep);
    ep->polls.left = 0; /* the next round reads the clock */
    at = ep->engine->next_deadline(ep);
    *ns = ep->evq.urgent.head || ep->evq.done.head ? 0 : cci__ns_until(at, ep->now_ns);
    cci__endpoint_unlock(ep);
    return CCI_SUCCESS;
}

/* Does the helper thread do all the work, so that only the chosen events wake the program? */
CCI__UNUSED static int cci__endpoint_thread_works(const cci__endpoint_t *ep) {
#if defined(CCI_NO_THREADS) || defined(CCI_NO_WAKE)
    (void)ep;
    return 0;
#else
    return ep->has_thread && ep->wakes.classes != 0;
#endif
}

#ifndef CCI_NO_WAKE
/* Tells the second descriptor; does an event wait that wakes? */
CCI__UNUSED static CCI__RARE int cci__endpoint_wakes(cci__endpoint_t *ep) {
    const cci_evq_fifo_t *received = NULL;
    int is_full = 0, has_messages = ep->engine->messages(ep, &received, &is_full);
#if CCI_POSIX
    if (received) has_messages = cci__wakes_has_messages(received);
#endif
    if (ep->wakes.has_fd) cci__wakes_tell_sender(&ep->wakes, &ep->evq, ep->engine->may_send, ep);
    return cci__wakes_due(&ep->wakes, &ep->evq, received, has_messages, is_full);
}
#endif

/* Over a link: sets the handle, and wakes the helper thread for a deadline that it does not know. */
CCI__UNUSED static void cci__endpoint_arm(cci__endpoint_t *ep) {
    const cci_evq_fifo_t *received = NULL;
    uint64_t deadline_ns;
    int readable, is_full = 0;
    if (!ep->has_fd && !ep->info.progress_thread) return;
    deadline_ns = ep->engine->deadline(ep);
    if (ep->info.progress_thread && deadline_ns < ep->thread_until_ns) {
        ep->thread_until_ns = 0; /* once is enough */
        ep->engine->wake(ep);
    }
    if (!ep->has_fd) return;
    readable = ep->evq.urgent.head || ep->evq.done.head || ep->engine->messages(ep, &received, &is_full);
#ifndef CCI_NO_WAKE
    if (CCI__UNLIKELY(ep->wakes.is_used)) {
        readable = cci__endpoint_wakes(ep);
        if (cci__endpoint_thread_works(ep)) deadline_ns = CCI__NEVER;
    }
#endif
    if (!ep->link->arm) return;
    if (!ep->os_handle.is_awake && deadline_ns < ep->os_handle.armed_ns) deadline_ns = ep->engine->sleep_deadline(ep);
    if (cci__handle_set(&ep->os_handle, readable, deadline_ns, ep->now_ns))
        ep->link->arm(ep->handle, ep->os_handle.readable, ep->os_handle.armed_ns);
}

#ifndef CCI_NO_WAKE
/* Other classes of events wake from now on. Without a link no deadline is armed here, and nothing holds the handle. */
CCI__UNUSED static void cci__endpoint_choose(cci__endpoint_t *ep, int classes) {
    cci__wakes_choose(&ep->wakes, classes);
    if (cci__endpoint_thread_works(ep) && ep->os_handle.armed_ns != CCI__NEVER) { /* the thread looks at the clock */
        ep->os_handle.armed_ns = CCI__NEVER;
        if (ep->link->arm) ep->link->arm(ep->handle, ep->os_handle.readable, CCI__NEVER);
    }
    if (ep->info.hold) ep->info.hold(ep->handle, cci__endpoint_thread_works(ep));
}
#endif

CCI__UNUSED static int cci__endpoint_arm_os_handle(cci_endpoint_base_t *base, int flags) {
    cci__endpoint_t *ep = (cci__endpoint_t *)(void *)base;
    if (!ep->has_fd) return CCI_EINVAL;
    cci__endpoint_lock(ep);
#ifdef CCI_NO_WAKE
    (void)flags;
#else
    if (flags != ep->wakes.classes || (flags & CCI_ARM_WAKE)) ep->engine->choose(ep, flags);
#endif
    ep->engine->work(ep);
    ep->os_handle.is_awake = 0;
    ep->engine->arm(ep);
    cci__endpoint_unlock(ep);
    return CCI_SUCCESS;
}

/* Over a link: sleeps until something comes or is due, for `most_ns` at most. */
CCI__UNUSED static void cci__endpoint_wait(cci__endpoint_t *ep, uint64_t most_ns) {
    uint64_t deadline_ns, now_ns;
    if (ep->engine->has_come && ep->engine->has_come(ep)) return;
    deadline_ns = ep->engine->sleep_deadline(ep);
    now_ns = ep->engine->clock(ep);
    most_ns = deadline_ns > now_ns ? cci__min64(deadline_ns - now_ns, most_ns) : 0;
    ep->waiters++;
    cci__endpoint_unlock(ep); /* another thread may have something to do */
    if (most_ns > 0 && ep->link->wait) ep->link->wait(ep->handle, most_ns);
    cci__endpoint_lock(ep);
    ep->waiters--;
    ep->called_ns = ep->engine->clock(ep);
}

/* Over a link: works until an operation is done. */
CCI__UNUSED static void cci__endpoint_block(cci__endpoint_t *ep, const uint8_t *is_done) {
    uint64_t start_ns = ep->engine->clock(ep);
    int done = *is_done;
    while (!done) {
        ep->engine->work(ep);
        done = *is_done;
        if (done) return;
        if (ep->now_ns - start_ns < ep->engine->spin_ns) { /* an answer is usually near: sleeping would take longer */
            cci__endpoint_unlock(ep);
            cci__endpoint_lock(ep);
        } else {
            cci__endpoint_wait(ep, ep->engine->nap_ns);
        }
    }
}

#ifndef CCI_NO_THREADS
/* The helper thread of an endpoint over a link. */
CCI__UNUSED static void cci__endpoint_help(void *endpoint) {
    cci__endpoint_t *ep = (cci__endpoint_t *)endpoint;
    cci__endpoint_lock(ep);
    while (!ep->stopping) {
        ep->engine->work(ep);
        cci__endpoint_arm(ep);
        ep->thread_until_ns = ep->engine->sleep_deadline(ep);
        cci__endpoint_wait(ep, 1000 * CCI__MS);
        ep->thread_until_ns = 0;
    }
    cci__endpoint_unlock(ep);
}

/* 0: the system makes no more threads. */
CCI__UNUSED static int cci__endpoint_start_thread(cci__endpoint_t *ep, void (*run)(void *endpoint)) {
    ep->has_thread = cci__thread_start(&ep->thread, run, ep);
    if (!ep->has_thread) cci_log(CCI_LOG_ERROR, "the helper thread could not be started");
    return ep->has_thread;
}
#endif

CCI__UNUSED static void cci__endpoint_stop_thread(cci__endpoint_t *ep) {
#ifndef CCI_NO_THREADS
    if (!ep->has_thread) return;
    cci__endpoint_lock(ep);
    ep->stopping = 1;
    cci__endpoint_unlock(ep);
    ep->engine->wake(ep);
    cci__thread_join(&ep->thread);
#else
    (void)ep;
#endif
}

/* What engines put into their tables of operations: in the order of cci_endpoint_ops_t, up to get_event, and from
 * set_endpoint_opt on. */
#define CCI__ENDPOINT_OPS(destroy, connect)                                                                            \
    destroy, cci__endpoint_accept, cci__endpoint_reject, connect, cci__endpoint_disconnect, cci__endpoint_arm_os_handle
#define CCI__ENDPOINT_OPTS                                                                                             \
    cci__endpoint_set_opt, cci__endpoint_get_opt, cci__endpoint_set_conn_opt, cci__endpoint_get_conn_opt

/* Over a link: what engines put into their tables. */
CCI__UNUSED static uint64_t cci__endpoint_clock(cci__endpoint_t *ep) {
    return ep->link->now(ep->handle);
}

CCI__UNUSED static void cci__endpoint_wake(cci__endpoint_t *ep) {
    if (ep->link->wake) ep->link->wake(ep->handle);
}

CCI__UNUSED static int cci__endpoint_link_uri(cci__endpoint_t *ep, const cci_conn_t *conn, char **uri) {
    const cci_link_t *link = ep->link;
    char text[256];
    int status;
    if (conn ? link->version < 2 || !link->text : !link->address) return CCI_ERR_NOT_IMPLEMENTED;
    status =
        conn ? link->text(ep->handle, &conn->peer, text, sizeof text) : link->address(ep->handle, text, sizeof text);
    return status == CCI_SUCCESS ? cci_make_uri(ep->scheme, text, uri) : status;
}

/* ---- device: what a link tells of it ---- */

/* Looks at it, and tells the program what has changed; what the link's `up` says. */
CCI__UNUSED static int cci__endpoint_check_link(cci__endpoint_t *ep) {
    struct cci_device *device = (struct cci_device *)(uintptr_t)ep->api.pub.device;
    int up = ep->link->up ? ep->link->up(ep->handle) : 1;
    cci_evq_event_t *event;
    ep->check_ns = ep->now_ns + 100 * CCI__MS;
    CCI__TELLS(if (ep->info.state) cci__notices_of_link(&ep->notices, &ep->evq, &ep->link_state, ep->info.state));
    if (up > 0 && ep->device_failed) {
        ep->device_failed = 0;
        device->up = 1;
        CCI__TELLS(cci__notices_post(&ep->notices, &ep->evq, NULL, CCI_STATUS_DEVICE_UP, 0));
    }
    if (up <= 0 && !ep->device_failed && (event = cci__endpoint_event(ep)) != NULL) {
        ep->device_failed = 1;
        device->up = 0;
        event->base.pub.dev_failed.type = CCI_EVENT_ENDPOINT_DEVICE_FAILED;
        event->base.pub.dev_failed.endpoint = (cci_endpoint_t *)&ep->api.pub;
        cci_evq_post(&ep->evq.urgent, event);
        CCI__TELLS(cci__notices_post(&ep->notices, &ep->evq, NULL, CCI_STATUS_DEVICE_DOWN, 0));
    }
    return up;
}

/* ---- end: the peers of an endpoint over a link learn that it goes ---- */

/* Lets the network work until a time, or until all peers know. */
static void cci__endpoint_linger(cci__endpoint_t *ep, uint64_t until_ns) {
    uint32_t rounds = UINT32_C(1) << 20; /* enough, if the link's clock stands still meanwhile */
    while (ep->closing > 0 && rounds-- > 0 && ep->now_ns < until_ns) {
        if (!ep->engine->receive(ep) && ep->link->wait) {
            cci__endpoint_unlock(ep);
            ep->link->wait(ep->handle, until_ns - ep->now_ns);
            cci__endpoint_lock(ep);
        }
        ep->conns.resets = 0;
        ep->now_ns = ep->engine->clock(ep);
    }
}

/* Tells each peer that does not know it yet, many in batches; all of them, or until a time. */
static void cci__endpoint_close_round(cci__endpoint_t *ep, uint64_t until_ns) {
    uint32_t i, sent = 0, batch = cci__max32(ep->closing / CCI__CONN_CLOSE_BATCHES, CCI__CONN_CLOSE_BURST);
    for (i = 0; i < ep->conns.slab_count * CCI__CONN_SLAB && ep->closing > 0 && ep->now_ns < until_ns; i++) {
        cci_conn_t *conn = cci_conn_at(&ep->conns, i);
        if (conn->state != CCI_CONN_CLOSING || !ep->engine->tell_close(ep, conn)) continue;
        if (++sent % batch == 0) cci__endpoint_linger(ep, ep->now_ns + CCI__MS);
    }
}

CCI__UNUSED static void cci__endpoint_close_all(cci__endpoint_t *ep) {
    uint32_t i, tries;
    uint64_t until_ns;
    if (ep->device_failed || ep->is_dead) return;
    for (i = 0; i < ep->conns.slab_count * CCI__CONN_SLAB; i++) {
        cci_conn_t *conn = cci_conn_at(&ep->conns, i);
        if (!ep->engine->ends(ep, conn)) continue;
        ep->closing += conn->state != CCI_CONN_CLOSING;
        cci_conn_begin_close(conn);
    }
    cci__endpoint_close_round(ep, CCI__NEVER); /* once at least, all of them */
    until_ns = ep->now_ns + CCI__CONN_LINGER_NS;
    for (tries = 0; tries < 3 && ep->closing > 0 && ep->now_ns < until_ns; tries++) {
        cci__endpoint_linger(ep, cci__min64(ep->now_ns + (10 * CCI__MS << tries), until_ns));
        cci__endpoint_close_round(ep, until_ns);
    }
    cci__endpoint_linger(ep, until_ns);
}

#ifdef __cplusplus
}
#endif

#endif /* CCI_ENDPOINT_IMPLEMENTATION */

/* ==================================================================================================================
 * >>dgram
 *
 * The datagram endpoint: the transport that turns any link into all of CCI. It owns the memory, the lock and the order
 * of work; protocol it leaves to the layers above. One round of work ("pump"): receive a batch, let the layers take it,
 * let due timers run, make packets of what is ready, send them in a batch.
 *
 * What a connection needs only while it has traffic (struct cci__active) is lent to it; an idle connection gives it
 * back when another wants it. All that is lent grows in slabs (cci__store_t), each kind up to its part of the memory
 * limit.
 *
 * Turns: when no more can be made and nobody is idle, connections queue up (`waiting`). The first gets what is given
 * back next, and its peer is asked for what was dropped (cci_rel_invite()). Turns are a deficit round robin over the
 * bytes of packets, both ways: whoever has moved CCI__DGRAM_TURN while others wait takes nothing new (`leaving`), so
 * that it becomes idle when what is under way is acknowledged; what it has moved beyond that counts for its next turns.
 *   Who isn't answered is parked: its messages, writes and reads stay, all else goes. Its peer is asked for a sign of
 * life, which needs no memory, in pauses that double; when one comes, or anything else, the connection queues up to
 * repeat them, reads from their beginning. If that isn't acknowledged either, it queues up in a ring of its own from
 * then on, which gets one turn in CCI__DGRAM_DOUBTED while others wait.
 *
 * Invariants: a connection with anything under way has its cci__active or is parked; a receive buffer of the
 * batch is always free to receive in, since a message is refused rather than kept in the last one. Limits: the memory
 * limit; the buffer counts; 16 multicast groups.
 *
 * Where packets carry a checksum or are sealed, the layers above see them without: their MTU is smaller by what is
 * added. It is added last and taken off first, in a copy of the packet for the link and in the buffer that it was
 * received in. Nothing of a connection with a key changes before a packet has opened, RESETs excepted, which name a
 * secret.
 * ================================================================================================================== */
#if defined(CCI_DGRAM_IMPLEMENTATION) && !defined(CCI_DGRAM_IMPLEMENTED)
#define CCI_DGRAM_IMPLEMENTED

#ifdef __cplusplus
extern "C" {
#endif

#ifdef CCI_SMALL
#define CCI__DGRAM_BATCH_RX 1
#define CCI__DGRAM_BATCH_TX CCI_SMALL_BATCH
#define CCI__DGRAM_BULKS ((uint32_t)CCI_SMALL_RMAS)
#ifdef CCI_NO_RMA
#define CCI__DGRAM_REGIONS 0u
#define CCI__SMALL_READERS 0
#else
#define CCI__DGRAM_REGIONS ((uint32_t)CCI_SMALL_REGISTRATIONS)
#define CCI__SMALL_READERS CCI_SMALL_ACTIVE
#endif
#define CCI__DGRAM_CHUNKS (1u + CCI_SMALL_RMAS)
#define CCI__DGRAM_CONTROL (2u * CCI_SMALL_CONNECTIONS)
#define CCI__DGRAM_SLAB 512u
#define CCI__DGRAM_COLLECTING 1u
#else
#define CCI__DGRAM_BATCH_RX 16
#define CCI__DGRAM_BATCH_TX 88 /* two full offloaded batches of an Ethernet's packets */
#define CCI__DGRAM_BULKS                                                                                               \
    1024u /* RMAs of a connection at once, or as many as messages that may be pending if these are more */
#define CCI__DGRAM_REGIONS 4096u
#define CCI__DGRAM_CHUNKS 512u
#define CCI__DGRAM_CONTROL 64u    /* connection events that are made at once */
#define CCI__DGRAM_SLAB 32768u    /* bytes of a slab, if not just one thing is longer */
#define CCI__DGRAM_COLLECTING 64u /* requests in pieces that are arriving */
#endif
#define CCI__DGRAM_BUFS 1024u /* default of both buffer counts, where memory allows */
#define CCI__DGRAM_MAX_BUFS 65536u
#ifdef CCI_SMALL
#define CCI__DGRAM_ALIGN 8u /* no caches */
#else
#define CCI__DGRAM_ALIGN 64u
#endif
#ifdef CCI_SMALL
#define CCI__DGRAM_REQUEST ((uint32_t)CCI_SMALL_REQUEST) /* bytes of request data that are taken */
#else
#define CCI__DGRAM_REQUEST CCI_CONN_REQ_LEN
#endif
#define CCI__DGRAM_FEW 16u    /* receive buffers: of fewer, less is kept free */
#define CCI__DGRAM_WARM 1024u /* connections that had traffic last keep their state even if others are idle as well */
#define CCI__DGRAM_QUANTUM 131072 /* bytes that a connection sends while others are ready: about a batch */
#define CCI__DGRAM_TURN 4096      /* bytes that a connection moves in its turn, while others wait for theirs */
#define CCI__DGRAM_DEBT (32 * CCI__DGRAM_TURN) /* that it may have moved beyond */
#define CCI__DGRAM_ROUNDS 4096u /* connections that are passed over, at once, since they have moved more than others */
#define CCI__DGRAM_SELDOM_NS (8 * CCI__MS) /* a program that does not call for so long does so seldom */
#define CCI__DGRAM_UNTIMED 64u /* rounds in a row that take in what has come, before timers are judged all the same */
#define CCI__DGRAM_TURN_NS (200 * CCI__MS) /* a turn that is not taken ends */
#define CCI__DGRAM_DOUBTED 8u /* one turn in so many is for peers that had turns and have not acknowledged anything */
#define CCI__DGRAM_PAUSE_NS (100 * CCI__MS) /* before a silent peer is asked for a sign of life; then twice as long */
#define CCI__DGRAM_PAUSE_MAX_NS (2000 * CCI__MS)
#define CCI__DGRAM_LOOK 16u /* connections that are looked at, at once, for one that can give something back */
#if defined(CCI_SMALL) && !defined(CCI_MEMORY_BYTES)
#define CCI_MEMORY_BYTES 65536u /* the counts rule */
#endif
#ifdef CCI_MEMORY_BYTES
#define CCI__DGRAM_MEMORY CCI_MEMORY_BYTES
#else
#define CCI__DGRAM_MEMORY (UINT64_C(1) << (sizeof(void *) > 4 ? 30 : 28)) /* bytes of the stores at most */
#endif
#define CCI__DGRAM_DRAIN 1024u    /* batches without an event that one call takes in at most */
#define CCI__DGRAM_UNCLOCKED 32u  /* messages to one look at the clock, in a stream */
#define CCI__DGRAM_BURST 112000u  /* bytes of messages that leave at once even if others are under way */
#define CCI__DGRAM_BUSY 4096u     /* bytes under way: an acknowledgement will soon wake a program that sleeps */
#define CCI__DGRAM_GIVEN 64u      /* events that are given, at most, before the network and the clock have a turn */
#define CCI__DGRAM_QUICK_NS 1000u /* work on a message, at most, of a program that has soon done with all that wait */
#define CCI__DGRAM_SLOW_NS 10000u /* between two messages that a program sends: none waits for others any more */
#define CCI__DGRAM_SEND_TIMEOUT_US 30000000u
#define CCI__DGRAM_STUCK_NS (UINT64_C(10000) * CCI__MS) /* a peer that gets no further so long makes room for others */

/* What an operation of the program leaves until its completion has been returned. */
typedef struct cci__op {
    cci_evq_event_t event; /* first */
    cci_rel_op_t rel;
    uint8_t blocking, done;
} cci__op_t;

#define CCI__DGRAM_ANSWER                                                                                              \
    (sizeof(cci_conn_answer_t) + ((CCI__DGRAM_REQUEST + 7u) & ~7u)) /* bytes of one, with its data */

#define CCI__PATH_PACKET (CCI_REL_HEADER + CCI__CONN_PATH_FRAME) /* bytes, besides what is added to a packet */

typedef struct cci__active {
    cci_list_t lent; /* first; in `lent`, the longest unused first, or in `free_actives` */
    cci_rel_t rel;
    struct cci__dconn *conn;
    /* in `ready`: something can be sent; in `soon`: something waits for company or for an idle moment */
    cci_list_t ready;
    cci_list_t inbox; /* in `inbox`: has messages for the program */
    cci_rel_run_t *runs, **runs_tail;
    cci_rma_reader_t *reader; /* NULL: it has not read, nor been read */
    cci_conn_path_t *path;    /* NULL: the peer has not moved */
    uint32_t stamp;           /* of the first of `runs` */
    uint32_t unsent_bytes;    /* of messages issued since something was sent */
    uint32_t op_count;        /* operations under way that the program waits for */
    int32_t credit;           /* bytes that it may send in its next turn besides the quantum, or has sent too many */
} cci__active_t;

/* The same where the link carries codepoints. */
typedef struct cci__active_ecn {
    cci__active_t active; /* first */
    CCI__REL_ECN(cci__rel_ecn_t ecn;)
} cci__active_ecn_t;

typedef struct cci__dconn {
    cci_conn_t conn;      /* first */
    cci_conn_peer_t peer; /* second */
    cci_rel_state_t state;
    cci__active_t *active;
    union {                            /* by conn.state */
        cci_conn_pending_t *request;   /* CONNECTING: what is repeated                              */
        cci_evq_event_t *event;        /* REQUESTED: of the request */
        struct {                       /* ACCEPTED and REJECTED */
            cci_evq_event_t *event;    /* kept for the outcome, or NULL */
            cci_conn_answer_t *answer; /* its data, if CCI__CONN_ANSWERS is set */
        } decided;
        struct {
            cci_evq_event_t *event; /* of the request */
            cci_conn_pieces_t pieces;
        } collecting;
        struct {
            cci_evq_event_t *keepalive_event; /* that waits for the program */
            uint64_t probe_ns;                /* when to look whether something has come */
        } open;
        struct {                              /* OPEN and PARKED */
            cci_evq_event_t *keepalive_event; /* as in `open` */
            cci_rel_item_t *first;            /* of the messages that are kept */
        } parked;
        struct {
            cci_evq_event_t *keepalive_event, *end_event; /* that wait for the program */
        } broken;
    } in;
} cci__dconn_t;

typedef char cci__dconn_peer_is_second[offsetof(cci__dconn_t, peer) == sizeof(cci_conn_t) ? 1 : -1];

/* The user's flags of cci_conn_t. */
#define CCI__CONN_ASKING 1u /* client: the link does not know the peer's address yet */
#define CCI__CONN_UNTOLD 2u /* BROKEN: the program is to have an event about it */
#define CCI__CONN_UNREADY                                                                                              \
    4u /* ordered: sends have ended with CCI_ERR_RNR, and the program has not heard of the first yet */
#define CCI__CONN_WAITING 8u  /* wants what is lent for traffic, and has a place in the queue */
#define CCI__CONN_PARKED 16u  /* the peer doesn't answer: only its messages are kept */
#define CCI__CONN_DOUBTED 32u /* it had its turn since then, and nothing was acknowledged */
#define CCI__CONN_REFUSED 64u /* others have the blocks that the program wanted in the connection's turn: it goes on */
#define CCI__CONN_DENIED 128u /* its last send got CCI_ENOBUFS, and the program has a descriptor for that */

typedef struct cci__memory {
    struct cci__memory *next;
} cci__memory_t;

/* What grows as connections have traffic: each kind has its part of the memory limit, so that none can leave nothing to
 * another. */
enum {
    CCI__STORE_ACTIVES = CCI_REL_GAPS + 1, /* those before are the pool's */
    CCI__STORE_READERS,
    CCI__STORE_PATHS,
    CCI__STORE_READS,
    CCI__STORE_REQUESTS,
    CCI__STORE_OPS,
    CCI__STORE_ANSWERS,
#ifndef CCI_NO_ATOMICS
    CCI__STORE_ATOMICS,
#endif
    CCI__STORES
};

typedef struct cci__store {
    cci_list_t *free; /* where new ones go; each begins with its node */
    uint32_t size;    /* bytes of one */
    uint32_t made, most;
} cci__store_t;

/* Who asks for a connection, while the program has the event. */
typedef struct cci__uri {
    struct cci__uri *next;
    char text[120];
} cci__uri_t;

/* Indices of connections that wait for their turn. */
typedef struct cci__ring {
    uint32_t *index;
    uint32_t size, first, count;
} cci__ring_t;

typedef struct cci__tx_slot {
    cci_link_addr_t to;
    cci__active_t *active;
    cci_rel_packet_t packet;
    uint8_t head[CCI_REL_HEAD];
} cci__tx_slot_t;

typedef struct cci__dgram {
    cci__endpoint_t base; /* first */
    uint64_t received_ns;
    uint32_t buffer_size, idle_rounds, unclocked;
    uint32_t given, heard;           /* events since the network and the clock had a turn, and messages among them */
    uint32_t issued;                 /* messages that the program has sent since then */
    uint32_t given_most, heard_most; /* of them before the next turn */
    uint64_t given_since_ns;
    uint64_t issued_ns;     /* when the program issued something last; exact where it is not quick */
    int is_quick;           /* the program works on a message for a short time */
    uint32_t backlog;       /* packets in the inboxes */
    uint32_t stamp;         /* of the last completion: what happened before it has a lower one */
    uint64_t awake_ns;      /* since when the program has called often enough to see what its peers do */
    uint64_t called_ns;     /* when the program was last in here */
    uint64_t seldom_ns;     /* how long it may be gone before cci__dgram_note_away() is to know; 0: at once */
    uint32_t untimed;       /* rounds since timers were looked at */
    uint64_t strays;        /* packets that are not ours, or for no connection of the endpoint: guesses among them */
    uint64_t evicted;       /* connections that were ended because they were stuck and others went short */
    uint32_t check_next;    /* where the search for a silent peer goes on */
    uint64_t memory_log_ns; /* ... that the memory for traffic is used up */
    int traces;             /* 1: the log gets each packet of a handshake or an end */
    uint32_t collecting_next;
    struct cci__uri *uris; /* free ones */
    struct {
        uint64_t token;
        uint32_t index;
    } collecting[CCI__DGRAM_COLLECTING]; /* the first so many that an eighth of the buffers allows, in turn */
    cci_rel_pool_t pool;
    cci_rma_table_t rma;
    cci_list_t ready, soon, inbox, lent, free_actives;
    cci_evq_event_t *free_ops;
    cci__store_t stores[CCI__STORES];
    cci__memory_t *memory;
    uint64_t memory_limit;              /* bytes */
    cci__ring_t waiting[2];             /* who wants what is lent for traffic; those that are DOUBTED in the second */
    uint32_t waiting_count;             /* in both */
    uint32_t turns;                     /* that were given */
    uint32_t buffers_unmade;            /* receive buffers that the program allows and that were not needed yet */
    uint32_t held_before;               /* buffers with what could not be delivered when the program set their count */
    cci_list_t readers, paths, answers; /* free ones */
#ifndef CCI_NO_ATOMICS
    cci_list_t free_atomics;
    cci_rma_atomics_t ***atomics; /* NULL, or for each slab of connections NULL, or those of each */
#endif
    cci_evq_buffer_t *current; /* the buffer that is being taken in */
    cci_link_rx_t rx[CCI__DGRAM_BATCH_RX];
    cci_evq_buffer_t *rx_buffer[CCI__DGRAM_BATCH_RX];
    cci_link_tx_t tx[CCI__DGRAM_BATCH_TX];
    cci__tx_slot_t *slots;
    uint32_t tx_count;
    uint64_t laid_out; /* bytes of packets so far, before they are wrapped */
    int tx_needs_look; /* something ends when the batch has left, or is counted */
    int looks_closer;  /* packets of connections are wrapped, opened or counted */
    const cci_seal_t *seal;
    uint8_t *wire; /* NULL, or room for a whole packet for each of tx: nothing is added to packets elsewhere */
    uint32_t wire_stride;
    uint32_t overhead;          /* bytes that are added to a packet at most */
    uint32_t (*crc_table)[256]; /* NULL where memory is dear */
    uint8_t header_flags;       /* of each packet */
    /* dropped: the checksum is wrong; the flags are not ours; it does not open */
    uint64_t packets_corrupt, packets_mismatched, packets_forged;
#ifndef CCI_NO_STATS
    uint64_t bytes_beyond; /* that the link has taken, besides `laid_out`; below 0 where it has refused some */
    uint64_t bytes_received, packets_received;
    /* dropped, too: `strays`, by reason, and what comes by a group's address and shouldn't; nothing to take it with */
    uint64_t packets_foreign, packets_unmatched, packets_unheard;
    uint64_t requests_refused;
    cci__tally_t *tx_tallies[CCI__DGRAM_BATCH_TX]; /* of the connections of `slots`, or NULL, where it is counted */
#endif
} cci__dgram_t;

#ifdef CCI_NO_TEXT
#define CCI__TELL(level, text) ((void)(level), (void)sizeof(text))
#else
#define CCI__TELL(level, text) cci_log(level, text)
#endif

#ifdef CCI_NO_RMA
#define CCI__READER(active) ((cci_rma_reader_t *)NULL) /* nothing of the layer is called */
#else
#define CCI__READER(active) ((active)->reader)
#endif

static const cci_endpoint_ops_t *cci__dgram_ops(void);
static const cci__engine_t *cci__dgram_engine(void);

static inline void cci__dgram_lock(cci__dgram_t *ep) {
    cci__lock_take(&ep->base.lock);
}

static inline void cci__dgram_unlock(cci__dgram_t *ep) {
    cci__lock_give(&ep->base.lock);
}

static cci__dgram_t *cci__dgram_of(const cci__dconn_t *conn) {
    return (cci__dgram_t *)(void *)(uintptr_t)conn->conn.pub.endpoint;
}

#ifndef CCI_NO_STATS
/* Where a connection's packets and messages are counted, NULL if they are not. */
static inline cci__tally_t *cci__dgram_tally(const cci__dgram_t *ep, const cci__dconn_t *conn) {
    return cci__tally_at(&ep->base.tallies, conn->conn.index);
}
#endif

/* Memory that lives as long as the endpoint. */
static void *cci__dgram_memory(cci__dgram_t *ep, size_t size) {
    uint8_t *bytes = (uint8_t *)cci_alloc(size + 2 * CCI__DGRAM_ALIGN);
    cci__memory_t *block = (cci__memory_t *)(void *)bytes;
    if (!bytes) return NULL;
    block->next = ep->memory;
    ep->memory = block;
    bytes += sizeof *block;
    return bytes + (CCI__DGRAM_ALIGN - ((uintptr_t)bytes & (CCI__DGRAM_ALIGN - 1)));
}

/* Makes a slab more of one kind; 0 if its part of the memory is used up, or there is no more. */
static int cci__dgram_grow_store(cci__dgram_t *ep, int kind) {
    cci__store_t *store = &ep->stores[kind];
    uint32_t count = cci__min32(cci__max32(CCI__DGRAM_SLAB / store->size, 1), store->most - store->made), i;
    uint8_t *slab = count > 0 ? (uint8_t *)cci__dgram_memory(ep, (size_t)count * store->size) : NULL;
    if (!slab) return 0;
    store->made += count;
    for (i = 0; i < count; i++) cci__list_append(store->free, (cci_list_t *)(void *)(slab + (size_t)i * store->size));
    return 1;
}

static int cci__dgram_can_grow(const cci__dgram_t *ep, int kind) {
    return ep->stores[kind].made < ep->stores[kind].most;
}

/* One of a kind, NULL if there is none. It is not zeroed. */
static void *cci__dgram_take(cci__dgram_t *ep, int kind) {
    cci_list_t *list = ep->stores[kind].free, *node;
    if (cci__list_empty(list) && !cci__dgram_grow_store(ep, kind)) return NULL;
    node = list->next;
    cci__list_remove(node);
    return node;
}

static void cci__dgram_give_back(cci__dgram_t *ep, int kind, void *thing) {
    cci_list_t *list = ep->stores[kind].free;
    cci__list_insert(list->next, (cci_list_t *)thing);
}

/* The reliability protocol's pool needs more. */
static int cci__dgram_more(cci_rel_pool_t *pool, int what) {
    return cci__dgram_grow_store(CCI__CONTAINER(pool, cci__dgram_t, pool), what);
}

/* ==================================================================================================================
 * >>dgram-send
 *
 * Packets leave: the layers above write them into the slots of a batch, which goes to the link as a whole.
 *   The walk: cci__dgram_output() for each connection in `ready`; cci__dgram_commit() puts a packet into the batch,
 * with checksum or seal; cci__dgram_flush() gives the batch to the link. What the link does not take is lost, and
 * goes again.
 *   Parts: packets into the batch, the batch to the link; a peer whose address changes.
 * ================================================================================================================== */

/* ---- packets into the batch, the batch to the link ---- */

/* Packets that the link did not take are as good as lost, and go again at once. */
static void cci__dgram_unsent(cci__dgram_t *ep, cci__tx_slot_t *slot, uint32_t length) {
    cci__active_t *active = slot->active;
#ifndef CCI_NO_STATS
    ep->bytes_beyond -= length;
#else
    (void)length;
#endif
    if (active && slot->packet.sent) {
        cci__rel_lost(&active->rel, slot->packet.sent);
        cci__list_remove(&active->ready);
        cci__list_append(&ep->ready, &active->ready);
    }
}

#ifndef CCI_NO_STATS
/* The link has taken a packet while connections are counted. */
static CCI__RARE void cci__tally_sent(cci__tally_t *tally, uint32_t length) {
    if (!tally) return;
    tally->packets_sent++;
    tally->packet_bytes_sent += length;
}
#endif

static void cci__dgram_flush(cci__dgram_t *ep) {
    uint32_t i, count = ep->tx_count;
    int sent;
    if (count == 0) return;
    ep->tx_count = 0;
    sent = ep->base.link->send(ep->base.handle, ep->tx, (int)count);
    for (i = ep->tx_needs_look ? 0 : sent > 0 ? (uint32_t)sent : 0; i < count; i++) {
        cci__tx_slot_t *slot = &ep->slots[i];
        if (CCI__UNLIKELY((int)i >= sent)) cci__dgram_unsent(ep, slot, ep->tx[i].length);
#ifndef CCI_NO_STATS
        else if (CCI__UNLIKELY(ep->base.tallies.counted != NULL))
            cci__tally_sent(ep->tx_tallies[i], ep->tx[i].length);
#endif
        if (slot->packet.spent) cci_rel_spent(&slot->active->rel, slot->packet.spent);
    }
    ep->tx_needs_look = 0;
    ep->pool.packets_sent += sent > 0 ? (uint32_t)sent : 0;
}

static cci__tx_slot_t *cci__dgram_slot(cci__dgram_t *ep) {
    if (ep->tx_count == CCI__DGRAM_BATCH_TX) cci__dgram_flush(ep);
    ep->slots[ep->tx_count].packet.head = ep->slots[ep->tx_count].head;
    return &ep->slots[ep->tx_count];
}

static uint32_t cci__dgram_crc(const cci__dgram_t *ep, const uint8_t *bytes, uint32_t length) {
    return ep->crc_table ? cci__crc32c_fast(ep->crc_table, 0, bytes, length) : cci__crc32c(0, bytes, length);
}

/* Makes one piece of a packet, and puts behind it what protects it. 0: it must not be sent. */
static int cci__dgram_wrap(cci__dgram_t *ep, cci__dconn_t *conn, uint64_t number, cci_link_tx_t *tx) {
    uint8_t *wire = ep->wire + (size_t)(tx - ep->tx) * ep->wire_stride;
    uint32_t i, length = 0;
    for (i = 0; i < tx->piece_count; i++) {
        memcpy(wire + length, tx->piece[i].data, tx->piece[i].length);
        length += tx->piece[i].length;
    }
#ifdef CCI_NO_NAMES
    wire[3] = ep->header_flags;
#else
    wire[3] |= ep->header_flags; /* a REQUEST may have another */
#endif
    if (conn && conn->peer.key && !cci_conn_seal(&ep->base.conns, &conn->conn, number, wire, &length)) return 0;
    if (ep->header_flags & CCI__HEADER_CRC) {
        cci__store32(wire + length, cci__dgram_crc(ep, wire, length));
        length += CCI__CRC_SIZE;
    }
    tx->piece[0].data = wire;
    tx->piece[0].length = tx->length = length;
    tx->piece_count = 1;
    return 1;
}

/* What few endpoints do with a packet that is laid out. 0: it must not be sent. */
static CCI__RARE int cci__dgram_finish(cci__dgram_t *ep, cci__dconn_t *conn, cci__tx_slot_t *slot, cci_link_tx_t *tx) {
    uint32_t before = tx->length;
    int is_wrapped = ep->wire == NULL || cci__dgram_wrap(ep, conn, slot->packet.number, tx);
#ifndef CCI_NO_STATS
    ep->bytes_beyond += (uint64_t)(is_wrapped ? tx->length : 0) - before;
    if (ep->base.tallies.counted) {
        ep->tx_tallies[slot - ep->slots] = slot->active ? cci__dgram_tally(ep, conn) : NULL;
        ep->tx_needs_look = 1;
    }
#else
    (void)before;
#endif
    return is_wrapped;
}

/* The pieces of a packet that has more than a head. */
static void cci__dgram_lay_out(cci__dgram_t *ep, cci_rel_packet_t *packet, cci_link_tx_t *tx) {
    uint32_t all = packet->head_length + packet->body_length;
    if (packet->head + packet->head_length == packet->body) { /* all of it lies there together, the padding too */
        packet->head_length = all + packet->pad_length;
    } else if (all <= CCI_REL_HEAD && !packet->pad_length) {
        /* one piece costs less than two */
        memcpy(packet->head + packet->head_length, packet->body, packet->body_length);
        packet->head_length = all;
    } else {
        tx->piece[1].data = packet->body;
        tx->piece[1].length = packet->body_length;
        tx->piece[2].data = ep->pool.zeros;
        tx->piece[2].length = packet->pad_length;
        tx->piece_count = packet->pad_length > 0 ? 3 : 2;
        return;
    }
    packet->body_length = packet->pad_length = 0;
}

/* Hands the packet in the next slot to the batch; `to` NULL: it goes where the one before it in the batch goes.
 * `conn` is the one that it belongs to, or NULL; `active` is given when the packet is one of the reliability
 * protocol's. */
static void cci__dgram_commit(cci__dgram_t *ep, const cci_link_addr_t *to, cci__dconn_t *conn, cci__active_t *active) {
    cci__tx_slot_t *slot = &ep->slots[ep->tx_count];
    cci_link_tx_t *tx = &ep->tx[ep->tx_count++];
    cci_rel_packet_t *packet = &slot->packet;
    if (to) {
        slot->to = *to;
        tx->to = &slot->to;
    } else {
        tx->to = tx[-1].to;
    }
    slot->active = active;
    if (CCI__UNLIKELY(packet->spent != NULL)) ep->tx_needs_look = 1;
    tx->codepoint = packet->codepoint;
    tx->piece[0].data = packet->head;
    tx->piece_count = 1;
    if (packet->body_length > 0) cci__dgram_lay_out(ep, packet, tx);
    tx->piece[0].length = packet->head_length;
    tx->length = packet->head_length + packet->body_length + packet->pad_length;
    ep->laid_out += tx->length;
    if (CCI__UNLIKELY(ep->looks_closer) && !cci__dgram_finish(ep, conn, slot, tx)) {
        ep->tx_count--; /* what was in it ends with the connection, which breaks, or is repeated by the handshake */
        slot->active = NULL;
    }
}

/* Sends a packet of the handshake, whose head is in the next slot, with `data` behind it. */
static void cci__dgram_commit_bare(cci__dgram_t *ep, const cci_link_addr_t *to, cci__dconn_t *conn,
                                   uint32_t head_length, const void *data, uint32_t data_length) {
    cci_rel_packet_t *packet = &ep->slots[ep->tx_count].packet;
    packet->head_length = head_length;
    packet->body = (const uint8_t *)data;
    packet->body_length = data_length;
    packet->pad_length = 0;
    packet->codepoint = 0;
    packet->sent = NULL;
    packet->spent = NULL;
    cci__dgram_commit(ep, to, conn, NULL);
}

static void cci__dgram_commit_data_to(cci__dgram_t *ep, cci__dconn_t *conn, const cci_link_addr_t *to) {
    cci_rel_packet_t *packet = &ep->slots[ep->tx_count].packet;
    if (conn->conn.pub.attribute == CCI_CONN_ATTR_UU_MC_TX)
        cci_conn_write_header(packet->head, CCI__PKT_GROUP, 0, conn->peer.key ? (uint32_t)(packet->number >> 32) : 0,
                              conn->peer.key ? conn->conn.token : 0, conn->conn.index, (uint32_t)packet->number);
    else
        cci_conn_write_header(packet->head, CCI__PKT_DATA, 0, conn->conn.peer_index, conn->conn.peer_token,
                              conn->conn.index, (uint32_t)packet->number);
    cci__dgram_commit(ep, to, conn, conn->active);
}

static void cci__dgram_commit_data(cci__dgram_t *ep, cci__dconn_t *conn) {
    cci__dgram_commit_data_to(ep, conn, &conn->conn.peer);
}

/* ---- a peer whose address changes ---- */

/* Begins a packet for a CHALLENGE or a RESPONSE: nothing else is in it, and nobody acknowledges it. Returns where
 * that goes. */
static uint8_t *cci__dgram_path_frame(cci__dgram_t *ep, cci__active_t *active) {
    cci_rel_packet_t *packet = &cci__dgram_slot(ep)->packet;
    cci_rel_open_packet(&active->rel, packet, active->rel.mtu, ep->base.now_ns); /* no room for what is owed */
    packet->codepoint = 0;                                                       /* it may go another way */
    packet->head_length += CCI__CONN_PATH_FRAME;
    return packet->head + packet->head_length - CCI__CONN_PATH_FRAME;
}

/* When the challenge is to be repeated. */
static uint64_t cci__path_deadline(const cci__dgram_t *ep, const cci_conn_path_t *path) {
    return path ? cci_conn_path_deadline(path, CCI__PATH_PACKET + ep->overhead) : CCI__NEVER;
}

static void cci__dgram_challenge(cci__dgram_t *ep, cci__dconn_t *conn) {
    cci_conn_path_t *path = conn->active->path;
    if (ep->base.now_ns < cci__path_deadline(ep, path)) return;
    cci_conn_path_challenge(path, CCI__PATH_PACKET + ep->overhead, cci__dgram_path_frame(ep, conn->active),
                            ep->base.now_ns);
    cci__dgram_commit_data_to(ep, conn, &path->to);
}

static cci_conn_path_t *cci__dgram_attach_path(cci__dgram_t *ep, cci__active_t *active) {
    cci_conn_path_t *path = active->path ? active->path : (cci_conn_path_t *)cci__dgram_take(ep, CCI__STORE_PATHS);
    if (path && !active->path) {
        memset(path, 0, sizeof *path);
        path->since_ns = ep->base.now_ns;
    }
    active->path = path;
    return path;
}

/* A sound packet of the peer's came from an address that is not known to be its own. */
static void cci__dgram_elsewhere(cci__dgram_t *ep, cci__dconn_t *conn, const cci_link_addr_t *from, uint32_t length,
                                 int newest) {
    if ((!conn->active->path && !newest) || !cci__dgram_attach_path(ep, conn->active)) return;
    cci_conn_path_elsewhere(&ep->base.conns, &conn->conn, conn->active->path, from, length, newest, ep->base.now_ns);
    cci__dgram_challenge(ep, conn);
}

/* The peer is where it was. */
static inline void cci__dgram_stayed(cci__active_t *active) {
    if (CCI__UNLIKELY(active->path != NULL)) active->path->challenge = 0;
}

/* A frame about addresses; returns its bytes, 0 if it is malformed. */
static uint32_t cci__dgram_input_path(cci__dgram_t *ep, cci__dconn_t *conn, const uint8_t *frame, uint32_t length) {
    cci__active_t *active = conn->active;
    if (length < CCI__CONN_PATH_FRAME || conn->conn.pub.attribute > CCI_CONN_ATTR_UU) return 0;
    /* else it is as if it were lost */
    if (active->path || (frame[0] == CCI__FRAME_CHALLENGE && cci__dgram_attach_path(ep, active))) {
        int has_moved = cci_conn_path_input(&ep->base.conns, &conn->conn, active->path, frame, ep->base.now_ns);
        CCI__TELLS(if (has_moved && conn->conn.state == CCI_CONN_OPEN)
                       cci__notices_post(&ep->base.notices, &ep->base.evq, &conn->conn, CCI_STATUS_PEER_MOVED, 0));
        CCI__REL_ECN(if (has_moved) cci_rel_begin_ecn(&active->rel);)
        (void)has_moved;
    }
    return CCI__CONN_PATH_FRAME;
}

/* The same for the next packet of a burst, whose header differs in the packet's number alone from that of the last. */
static void cci__dgram_commit_next(cci__dgram_t *ep, cci__dconn_t *conn, const uint8_t *last_head) {
    cci_rel_packet_t *packet = &ep->slots[ep->tx_count].packet;
    memcpy(packet->head, last_head, CCI_REL_HEADER - 4);
    cci__store32(packet->head + CCI_REL_HEADER - 4, (uint32_t)packet->number);
    cci__dgram_commit(ep, ep->tx_count > 0 ? NULL : &conn->conn.peer, conn, conn->active);
}

/* Answers a peer's reads, and asks for our own. Returns 1 if it made a packet. */
static int cci__dgram_output_rma(cci__dgram_t *ep, cci__dconn_t *conn, uint64_t now_ns) {
    cci__active_t *active = conn->active;
    cci_rel_packet_t *packet = &cci__dgram_slot(ep)->packet;
    cci_rma_reader_t *reader = CCI__READER(active);
    uint32_t size;
    if (!reader) return 0;
    if (cci_rma_wants_to_answer(reader)) {
        /* An answer's segment fills its packet: what is owed goes in packets of its own. */
        cci_rel_open_packet(&active->rel, packet, active->rel.mtu, now_ns);
        packet->codepoint = 0; /* nobody would tell of its marks */
        size = cci_rma_answer(&ep->rma, reader, packet->head + packet->head_length,
                              ep->base.info.mtu - packet->head_length, &packet->body, &packet->body_length);
        if (size > 0) {
            packet->head_length += size;
            CCI__STATS(if (ep->base.tallies.counted) cci__dgram_tally(ep, conn)->peer_read_bytes +=
                       packet->body_length);
            cci__dgram_commit_data(ep, conn);
            return 1;
        }
    }
    if (!cci_rma_wants_to_ask(&ep->rma, reader)) return 0;
    if (active->rel.mtu < active->rel.mtu_max && !active->rel.probing) active->rel.want_mtu = 1;
    cci_rel_open_packet(&active->rel, packet, 96, now_ns);
    packet->codepoint = 0;
    size =
        cci_rma_ask(&ep->rma, reader, (active->rel.mtu - CCI_REL_HEADER - 16) & ~7u, packet->head + packet->head_length,
                    cci__min32(CCI_REL_HEAD, active->rel.mtu) - packet->head_length, now_ns);
    packet->head_length += size;
    if (packet->head_length == CCI_REL_HEADER) return 0;
    cci__dgram_commit_data(ep, conn);
    return 1;
}

static void cci__dgram_schedule(cci__dgram_t *ep, cci__dconn_t *conn);
static void cci__dgram_break(cci__dgram_t *ep, cci__dconn_t *conn, int status);

/* Something is to be sent, and nothing is under way whose end would give another chance: a pool is empty for the
 * moment. */
static int cci__active_stuck(const cci__active_t *active) {
    const cci_rel_t *rel = &active->rel;
    return (rel->in_flight == 0 && (!cci__list_empty(&rel->bulks) || !cci__list_empty(&rel->lost))) ||
           (CCI__READER(active) && active->reader->outstanding == 0 && !cci__list_empty(&active->reader->reads));
}

/* Others wait: what a connection moves counts. */
static void cci__dgram_charge(cci__dgram_t *ep, cci__dconn_t *conn, uint32_t bytes) {
    if (CCI__UNLIKELY(ep->waiting_count > 0) && conn->conn.state == CCI_CONN_OPEN)
        conn->peer.life.at.turn -= (int32_t)cci__min32(bytes, (uint32_t)(conn->peer.life.at.turn + CCI__DGRAM_DEBT));
}

#ifndef CCI_NO_STATS
/* Counts the messages that were issued since it was last called. */
static void cci__dgram_tally_messages(const cci__dgram_t *ep, const cci__active_t *active) {
    cci__tally_t *tally = cci__dgram_tally(ep, active->conn);
    uint64_t count = active->rel.next_sequence - tally->next_sequence;
    if (count > 0) tally->bytes_sent += active->unsent_bytes - tally->unsent_bytes - 8 * count;
    tally->messages_sent += count;
    tally->next_sequence = active->rel.next_sequence;
    tally->unsent_bytes = active->unsent_bytes;
}

/* Likewise, when something was sent. */
static CCI__RARE void cci__dgram_tally_issued(const cci__dgram_t *ep, cci__active_t *active) {
    cci__dgram_tally_messages(ep, active);
    cci__dgram_tally(ep, active->conn)->unsent_bytes = active->unsent_bytes = 0;
}
#endif

/* Lays out what a connection has to send, up to a batch; what leaves with the next flush is to be scheduled after
 * it. Unless it is `alone` it gets as many bytes as others get in their turns, whatever the size of its packets
 * (deficit round robin). */
static void cci__dgram_output(cci__dgram_t *ep, cci__active_t *active, int idle, int alone, uint64_t now_ns) {
    cci__dconn_t *conn = active->conn;
    int left = CCI__DGRAM_BATCH_TX, more = 1;
    uint32_t begin = (uint32_t)ep->laid_out;
    uint32_t most = alone ? UINT32_MAX : (uint32_t)(active->credit + CCI__DGRAM_QUANTUM);
    cci__list_remove(&active->ready);
    if (CCI__UNLIKELY(active->path && active->path->owes_response)) {
        cci_conn_path_response(active->path, cci__dgram_path_frame(ep, active));
        cci__dgram_commit_data(ep, conn);
    }
    while (left-- > 0 && more && (uint32_t)ep->laid_out - begin < most) {
        cci_rel_packet_t *packet = &cci__dgram_slot(ep)->packet;
        if (!cci_rel_output(&active->rel, packet, idle, now_ns)) {
            more = cci__dgram_output_rma(ep, conn, now_ns);
            continue;
        }
        cci__dgram_commit_data(ep, conn);
        while (left > 0 && (uint32_t)ep->laid_out - begin < most && !(conn->conn.flags & CCI__CONN_WORN)) {
            const uint8_t *head = packet->head;
            packet = &cci__dgram_slot(ep)->packet;
            if (!cci_rel_output_next(&active->rel, packet, now_ns)) break;
            cci__dgram_commit_next(ep, conn, head);
            left--;
        }
    }
    cci__dgram_charge(ep, conn, (uint32_t)ep->laid_out - begin);
    if (CCI__UNLIKELY(conn->conn.flags & CCI__CONN_WORN)) {
        cci__dgram_break(ep, conn, CCI_ERR_DISCONNECTED);
        return;
    }
    if (!cci__list_empty(&active->ready)) { /* the link refused some of it meanwhile, which made it ready again */
        cci__list_remove(&active->ready);
        more = 1;
    }
    active->credit = more && !alone ? (int32_t)(most - ((uint32_t)ep->laid_out - begin)) : 0;
    if (active->credit > CCI__DGRAM_QUANTUM) active->credit = CCI__DGRAM_QUANTUM;
    if (more) /* others first */
        cci__list_append(&ep->ready, &active->ready);
    else if (active->rel.ack_count > 0 || !cci__list_empty(&active->rel.runs) || cci__active_stuck(active))
        cci__list_append(&ep->soon, &active->ready);
    CCI__STATS(if (CCI__UNLIKELY(ep->base.tallies.counted != NULL)) cci__dgram_tally_issued(ep, active));
    active->unsent_bytes = 0;
}

static void cci__dgram_make_ready(cci__dgram_t *ep, cci__active_t *active) {
    cci__list_remove(&active->ready);
    cci__list_append(&ep->ready, &active->ready);
}

/* ==================================================================================================================
 * >>dgram-hot
 *
 * Hot state: what a connection has only while it has traffic (cci__active_t), who gets it when the memory limit is
 * reached, and connections that open, break and end. TURNS in the head of >>dgram says by which rules.
 * ================================================================================================================== */

static void cci__dgram_tell(cci__dgram_t *ep, cci__dconn_t *conn, uint8_t type);

static int cci__active_idle(const cci__active_t *active) {
    return !active->runs && cci_rel_idle(&active->rel) && (!CCI__READER(active) || cci_rma_reader_idle(active->reader));
}

/* Puts a connection at the end of a ring; 0 if there is no memory for that. */
static int cci__ring_append(cci__ring_t *ring, uint32_t index) {
    uint32_t i, size = cci__max32(2 * ring->size, CCI__CONN_SLAB), *more;
    if (ring->count == ring->size) {
        more = (uint32_t *)cci_alloc(size * sizeof *more);
        if (!more) return 0;
        for (i = 0; i < ring->count; i++) more[i] = ring->index[(ring->first + i) % ring->size];
        cci_release(ring->index);
        ring->index = more;
        ring->size = size;
        ring->first = 0;
    }
    ring->index[(ring->first + ring->count++) % ring->size] = index;
    return 1;
}

static uint32_t cci__ring_take(cci__ring_t *ring) {
    uint32_t index = ring->index[ring->first];
    ring->first = (ring->first + 1) % ring->size;
    ring->count--;
    return index;
}

/* The connection waits for its turn, behind all that wait already. Without memory for the queue it asks again. */
static void cci__dgram_queue_up(cci__dgram_t *ep, cci__dconn_t *conn) {
    cci__ring_t *ring = &ep->waiting[(conn->conn.flags & CCI__CONN_DOUBTED) != 0];
    if ((conn->conn.flags & CCI__CONN_WAITING) || conn->conn.state != CCI_CONN_OPEN ||
        !cci__ring_append(ring, conn->conn.index))
        return;
    ep->waiting_count++;
    conn->conn.flags |= CCI__CONN_WAITING;
    if (conn->conn.flags & CCI__CONN_PARKED) conn->peer.life.at.turn = 0;
}

static void cci__dgram_take_active(cci__dgram_t *ep, cci__active_t *active) {
    cci__dconn_t *conn = active->conn;
    CCI_ASSERT(cci__active_idle(active));
    CCI__STATS(if (ep->base.tallies.counted) cci__dgram_tally_messages(ep, active));
    cci_rel_end(&active->rel, &conn->state);
    conn->active = NULL;
    cci__list_remove(&active->ready);
    cci__list_remove(&active->inbox);
    cci__list_remove(&active->lent);
    conn->conn.flags &= (uint16_t) ~(CCI__CONN_DOUBTED | CCI__CONN_REFUSED);
    if (conn->conn.state == CCI_CONN_OPEN && !active->rel.leaving)
        conn->peer.life.at.turn = 0; /* what it did not use is not saved for later */
    if (active->rel.leaving == 2) cci__dgram_queue_up(ep, conn);
    if (CCI__READER(active)) cci__dgram_give_back(ep, CCI__STORE_READERS, active->reader);
    if (active->path) cci__dgram_give_back(ep, CCI__STORE_PATHS, active->path);
    cci__dgram_give_back(ep, CCI__STORE_ACTIVES, active);
}

static int cci__dgram_park(cci__dgram_t *ep, cci__active_t *active);

/* The peer does not answer: three probe time-outs are over, of packets or of what was to be read. */
static int cci__active_is_silent(const cci__active_t *active) {
    return active->rel.probes >= 3 || (CCI__READER(active) && active->reader->timeouts >= 3);
}

#ifndef CCI_NO_RMA
/* Takes a reader from a connection that is idle, or whose peer is silent; NULL if the few that are looked at have none.
 * Those go to the end, so that all have their turn. */
static cci_rma_reader_t *cci__dgram_idle_reader(cci__dgram_t *ep) {
    uint32_t tries = CCI__DGRAM_LOOK;
    while (tries-- > 0 && !cci__list_empty(&ep->lent)) {
        cci__active_t *active = CCI__CONTAINER(ep->lent.next, cci__active_t, lent);
        cci_rma_reader_t *reader = active->reader;
        cci__list_remove(&active->lent);
        cci__list_append(&ep->lent, &active->lent);
        if (reader && cci__active_idle(active)) { /* also without a read that has yet to start */
            active->reader = NULL;
            return reader;
        }
        if (reader && cci__active_is_silent(active) && cci__dgram_park(ep, active))
            return (cci_rma_reader_t *)cci__dgram_take(ep, CCI__STORE_READERS);
    }
    return NULL;
}

#ifndef CCI_NO_ATOMICS
/* Where a connection's atomics stand; NULL if there are none in its slab. With `make`, NULL if there is no memory. */
static cci_rma_atomics_t **cci__dgram_atomics_at(cci__dgram_t *ep, const cci__dconn_t *conn, int make) {
    uint32_t index = conn->conn.index % CCI__CONN_MOST;
    cci_rma_atomics_t **slab;
    if (!ep->atomics && make) {
        ep->atomics = (cci_rma_atomics_t ***)cci__dgram_memory(ep, CCI__CONN_SLABS * sizeof *ep->atomics);
        if (ep->atomics) memset(ep->atomics, 0, CCI__CONN_SLABS * sizeof *ep->atomics);
    }
    if (!ep->atomics) return NULL;
    slab = ep->atomics[index / CCI__CONN_SLAB];
    if (!slab && make) {
        slab = (cci_rma_atomics_t **)cci__dgram_memory(ep, CCI__CONN_SLAB * sizeof *slab);
        if (slab) memset(slab, 0, CCI__CONN_SLAB * sizeof *slab);
        ep->atomics[index / CCI__CONN_SLAB] = slab;
    }
    return slab ? &slab[index % CCI__CONN_SLAB] : NULL;
}

/* The connection has an atomic, or its peer has; 0 if there is no memory. */
static CCI__RARE int cci__dgram_begin_atomics(cci__dgram_t *ep, const cci__dconn_t *conn, cci_rma_reader_t *reader) {
    cci_rma_atomics_t **at = cci__dgram_atomics_at(ep, conn, 1);
    if (!at) return 0;
    if (!*at) {
        *at = (cci_rma_atomics_t *)cci__dgram_take(ep, CCI__STORE_ATOMICS);
        if (!*at) return 0;
        memset(*at, 0, sizeof **at);
    }
    reader->atomics = *at;
    return 1;
}

static void cci__dgram_drop_atomics(cci__dgram_t *ep, const cci__dconn_t *conn) {
    cci_rma_atomics_t **at = cci__dgram_atomics_at(ep, conn, 0);
    if (!at || !*at) return;
    cci__dgram_give_back(ep, CCI__STORE_ATOMICS, *at);
    *at = NULL;
}
#endif

/* What the connection needs for reading, or for being read; NULL if there is none. */
static cci_rma_reader_t *cci__dgram_reader(cci__dgram_t *ep, cci__active_t *active) {
    if (active->reader) return active->reader;
    active->reader = (cci_rma_reader_t *)cci__dgram_take(ep, CCI__STORE_READERS);
    if (!active->reader) active->reader = cci__dgram_idle_reader(ep);
    if (active->reader) {
        cci_rma_reader_init(active->reader, active);
        active->reader->rttvar_ns = cci_rel_answer_ns(&active->rel); /* until it has a sample of its own */
#ifndef CCI_NO_ATOMICS
        if (ep->atomics && cci__dgram_atomics_at(ep, active->conn, 0))
            active->reader->atomics = *cci__dgram_atomics_at(ep, active->conn, 0);
#endif
    }
    return active->reader;
}

static int cci__item_is_read(const cci_list_t *node) {
    const cci_rel_item_t *item = CCI__CONTAINER(node, const cci_rel_item_t, node);
    return item->kind == CCI__ITEM_EXTERN && !(item->flags & CCI__ITEM_DONE);
}

/* Of a connection that is parked: does it read? */
static int cci__dgram_has_reads(const cci__dconn_t *conn) {
    const cci_list_t *first = &conn->in.parked.first->node, *node = first;
    do {
        if (cci__item_is_read(node)) return 1;
        node = node->next;
    } while (node != first);
    return 0;
}

/* The reads that were kept begin again. */
static void cci__dgram_resume_reads(cci__dgram_t *ep, cci__active_t *active) {
    const cci_list_t *node;
    if (!active->reader) return;
    cci_rma_reader_resume(active->reader, (ep->base.info.base_mtu - CCI_REL_HEADER - 16) & ~7u, ep->base.now_ns);
    for (node = active->rel.items.next; node != &active->rel.items; node = node->next) {
        const cci_rel_item_t *item = CCI__CONTAINER(node, const cci_rel_item_t, node);
        if (cci__item_is_read(node) && !(item->flags & CCI__ITEM_HELD))
            cci_rma_read_start(active->reader, (cci_rma_read_t *)item->user_data);
    }
}
#endif

/* Ends a connection that has long held what others need, and has got no further. Its peer learns it from a reset. */
static int cci__dgram_evict(cci__dgram_t *ep, cci__active_t *active) {
    uint64_t since_ns = cci_rel_stuck_ns(&active->rel);
    if (since_ns == CCI__NEVER || ep->base.now_ns < cci__max64(since_ns, ep->awake_ns) + CCI__DGRAM_STUCK_NS) return 0;
    ep->evicted++;
    cci__dgram_break(ep, active->conn, CCI_ETIMEDOUT);
    return 1;
}

/* A challenge waits for its answer, or an answer waits to leave: in the next turn all would begin anew. Not for
 * ever, though. */
static int cci__path_is_busy(const cci__dgram_t *ep, const cci_conn_path_t *path) {
    return path && (path->owes_response || path->challenge) && ep->base.now_ns < path->since_ns + CCI__DGRAM_TURN_NS;
}

/* It has been used since the connection got it, or could have been for long enough. */
static int cci__active_had_turn(const cci__dgram_t *ep, const cci__active_t *active) {
    if (CCI__UNLIKELY(cci__path_is_busy(ep, active->path))) return 0;
    return ep->waiting_count == 0 || (active->rel.heard_ns > 0 && !(active->conn->conn.flags & CCI__CONN_REFUSED)) ||
           ep->base.now_ns >= active->rel.progress_ns + CCI__DGRAM_TURN_NS;
}

/* Looks at the longest unused few of what is lent; those that stay go to the end, so that all have their turn. With
 * `take`, for one that is idle, which is taken back; else only for one that is stuck. */
static void cci__dgram_reclaim(cci__dgram_t *ep, int take) {
    cci_list_t *node = ep->lent.next;
    uint32_t tries = CCI__DGRAM_LOOK;
    while (tries-- > 0 && node != &ep->lent) {
        cci__active_t *active = CCI__CONTAINER(node, cci__active_t, lent);
        int evicted;
        node = node->next;
        cci__list_remove(&active->lent);
        cci__list_append(&ep->lent, &active->lent);
        if (take) cci_rel_forget(&active->rel);
        evicted = (!take || !cci__dgram_can_grow(ep, CCI__STORE_ACTIVES)) && cci__dgram_evict(ep, active);
        if (take && cci__active_idle(active) && cci__active_had_turn(ep, active)) {
            cci__dgram_take_active(ep, active);
            return;
        }
        if (!take && evicted) return;
    }
}

/* A free one, which an idle connection gives back if it need be; NULL if there is none. */
static cci__active_t *cci__dgram_new_active(cci__dgram_t *ep) {
    if (cci__list_empty(&ep->free_actives) &&
        (ep->stores[CCI__STORE_ACTIVES].made >= CCI__DGRAM_WARM || !cci__dgram_grow_store(ep, CCI__STORE_ACTIVES)))
        cci__dgram_reclaim(ep, 1);
    return (cci__active_t *)cci__dgram_take(ep, CCI__STORE_ACTIVES);
}

/* Readies what is lent to a connection. */
static void cci__active_begin(cci__dgram_t *ep, cci__active_t *active, cci__dconn_t *conn) {
    cci__list_init(&active->ready);
    cci__list_init(&active->inbox);
    active->conn = conn;
    active->runs = NULL;
    active->runs_tail = &active->runs;
    active->unsent_bytes = active->op_count = 0;
    active->credit = 0;
    active->reader = NULL;
    active->path = NULL;
    cci_rel_begin(&active->rel, &ep->pool, active, &conn->state, (int)conn->conn.pub.attribute,
                  cci__max32(cci__min32(ep->base.info.mtu, conn->conn.pub.max_send_size + CCI_REL_HEADER + 8), 256),
                  conn->conn.peer_window);
    active->rel.timeout_us = active->rel.reliable ? conn->conn.send_timeout_us : 0; /* [4.4.3.1] UU has no time-out */
    active->rel.progress_ns = ep->base.now_ns;
    active->rel.message_max = (uint16_t)cci__min32(conn->conn.pub.max_send_size, UINT16_MAX);
    active->rel.once = conn->peer.key && conn->conn.pub.attribute == CCI_CONN_ATTR_UU;
}

/* From now on the peer is asked for a sign of life when it has been silent for long. */
static void cci__dgram_watch(const cci__dgram_t *ep, cci__dconn_t *conn) {
    conn->in.open.probe_ns = CCI__NEVER;
    if (ep->base.info.probe_idle_s > 0 && conn->conn.pub.attribute <= CCI_CONN_ATTR_UU)
        conn->in.open.probe_ns = ep->base.now_ns + ep->base.info.probe_idle_s * UINT64_C(1000) * CCI__MS;
}

/* Goes on with the messages that were kept. */
static void cci__dgram_unpark(cci__active_t *active) {
    cci__dconn_t *conn = active->conn;
    cci_rel_link_t *link;
    cci_list_t *node;
    cci_rel_resume(&active->rel, conn->in.parked.first);
    for (node = active->rel.items.next; node != &active->rel.items; node = node->next)
        for (link = CCI__CONTAINER(node, cci_rel_item_t, node)->ops; link; link = link->next)
            active->op_count += link == &link->op->link[0] || link->op->parts == 1; /* the first may be done */
    conn->conn.flags &= (uint16_t)~CCI__CONN_PARKED;
    cci__dgram_watch(cci__dgram_of(conn), conn);
}

/* Lends a connection what it needs for traffic. 0, and nothing has happened, if its reads need more. */
static int cci__dgram_lend(cci__dgram_t *ep, cci__dconn_t *conn, cci__active_t *active) {
    cci__active_begin(ep, active, conn);
    if (CCI__UNLIKELY(conn->conn.flags & CCI__CONN_PARKED)) {
#ifndef CCI_NO_RMA
        if (cci__dgram_has_reads(conn) && !cci__dgram_reader(ep, active)) {
            cci__dgram_give_back(ep, CCI__STORE_ACTIVES, active);
            return 0;
        }
#endif
        cci__dgram_unpark(active);
#ifndef CCI_NO_RMA
        cci__dgram_resume_reads(ep, active);
#endif
    }
    cci__list_append(&ep->lent, &active->lent);
    conn->active = active;
    return 1;
}

/* The same for a connection that need not wait for others; NULL if everything is in use. */
static cci__active_t *cci__dgram_lend_at_once(cci__dgram_t *ep, cci__dconn_t *conn) {
    cci__active_t *active = ep->waiting_count == 0 ? cci__dgram_new_active(ep) : NULL;
    if (!active || !cci__dgram_lend(ep, conn, active)) return NULL;
    conn->peer.life.at.turn = CCI__DGRAM_TURN;
    return active;
}

/* What the connection needs for traffic; NULL if it has to wait for its turn: that is when memory has reached its
 * limit. It has no turn as long as its peer does not answer. */
static cci__active_t *cci__dgram_activate(cci__dgram_t *ep, cci__dconn_t *conn) {
    cci__active_t *active = conn->active;
    if (CCI__LIKELY(active != NULL)) {
        if (ep->lent.prev != &active->lent) {
            cci__list_remove(&active->lent);
            cci__list_append(&ep->lent, &active->lent);
        }
        if (CCI__UNLIKELY(active->rel.leaving && ep->waiting_count == 0)) active->rel.leaving = 0;
        return active;
    }
    active = cci__dgram_lend_at_once(ep, conn);
    if (!active && !(conn->conn.flags & CCI__CONN_PARKED)) cci__dgram_queue_up(ep, conn);
    return active;
}

/* What has come asks for nothing, and nothing waits for it: no turn is taken for it. Otherwise, where both sides are
 * at their limits, each invitation would ask for another one. */
static int cci__dgram_needs_no_turn(const cci__dgram_t *ep, const cci__dconn_t *conn, const uint8_t *bytes,
                                    uint32_t length) {
    return !conn->active && !(conn->conn.flags & CCI__CONN_PARKED) &&
           (ep->waiting_count > 0 || !cci__dgram_can_grow(ep, CCI__STORE_ACTIVES)) &&
           cci_rel_only_answers(bytes, length);
}

/* A peer that is parked is asked for a sign of life after a pause, as long as it has been silent. */
static void cci__dgram_pause(const cci__dgram_t *ep, cci__dconn_t *conn) {
    uint64_t silent_ns = ep->base.now_ns - cci__min64(ep->base.now_ns, conn->in.parked.first->since_ns);
    uint64_t pause_ns = cci__min64(cci__max64(silent_ns, CCI__DGRAM_PAUSE_NS), CCI__DGRAM_PAUSE_MAX_NS);
    conn->peer.life.at.ask = (uint32_t)((ep->base.now_ns + pause_ns) >> 20) + 1;
}

/* When a connection that is parked has something to do. */
static uint64_t cci__dgram_parked_due(const cci__dgram_t *ep, const cci__dconn_t *conn) {
    uint64_t until_ns = cci_rel_parked_until(conn->in.parked.first), now = ep->base.now_ns >> 20;
    int32_t left = (int32_t)(conn->peer.life.at.ask - (uint32_t)now);
    if (conn->conn.flags & CCI__CONN_WAITING) return until_ns;
    return cci__min64(until_ns, left > 0 ? (now + (uint32_t)left) << 20 : 0);
}

/* The peer has not answered for three probe time-outs: of what the connection has only its operations stay. When the
 * peer has given a sign of life, it takes its turns to send them again. 0: there is more that can't be left. */
static int cci__dgram_park(cci__dgram_t *ep, cci__active_t *active) {
    cci__dconn_t *conn = active->conn;
    cci_rel_item_t *first;
    uint16_t doubted = active->rel.progress_ns == 0 ? CCI__CONN_DOUBTED : 0; /* as cci_rel_resume() has left it */
    if (conn->conn.state != CCI_CONN_OPEN || active->runs || !cci_rel_can_park(&active->rel)) return 0;
#ifndef CCI_NO_RMA
    if (active->reader && !cci_rma_reader_stop(&ep->rma, active->reader)) return 0;
#endif
    cci__dgram_flush(ep); /* the batch may name records of the connection */
    first = cci_rel_park(&active->rel);
    active->rel.leaving = 0;
    cci__dgram_take_active(ep, active);
    conn->in.parked.first = first;
    conn->conn.flags |= (uint16_t)(CCI__CONN_PARKED | doubted);
    cci__dgram_tell(ep, conn, CCI__PKT_CONFIRM); /* it may be there, and have no memory either */
    cci__dgram_pause(ep, conn);
    cci__dgram_schedule(ep, conn);
    return 1;
}

/* Others wait: whoever has had a turn is to come to an end, and who doesn't answer ends it now. Returns how many
 * did. */
static uint32_t cci__dgram_end_turns(cci__dgram_t *ep) {
    uint32_t tries = CCI__DGRAM_LOOK, parked = 0;
    cci_list_t *node = ep->lent.next;
    while (tries-- > 0 && node != &ep->lent) {
        cci__active_t *active = CCI__CONTAINER(node, cci__active_t, lent);
        node = node->next;
        cci__list_remove(&active->lent);
        cci__list_append(&ep->lent, &active->lent);
        if (cci__active_is_silent(active) && cci__dgram_park(ep, active))
            parked++;
        else if (!active->rel.leaving && active->conn->peer.life.at.turn <= 0)
            active->rel.leaving = 1;
    }
    return parked;
}

/* Takes the next connection out of the queue, NULL if nobody waits any more. Those that have moved more than others
 * wait for another round. */
static cci__dconn_t *cci__dgram_next_waiting(cci__dgram_t *ep) {
    uint32_t rounds = CCI__DGRAM_ROUNDS;
    while (ep->waiting_count > 0) {
        int doubted = ep->waiting[0].count == 0 || (ep->waiting[1].count > 0 && ep->turns % CCI__DGRAM_DOUBTED == 0);
        uint32_t index = cci__ring_take(&ep->waiting[doubted]);
        cci__dconn_t *conn = (cci__dconn_t *)(void *)cci_conn_at(&ep->base.conns, index);
        int is_waiting = conn->conn.state == CCI_CONN_OPEN && (conn->conn.flags & CCI__CONN_WAITING) && !conn->active;
        if (is_waiting && conn->peer.life.at.turn <= -CCI__DGRAM_TURN && rounds > 0) {
            rounds--;
            conn->peer.life.at.turn += CCI__DGRAM_TURN;
            (void)cci__ring_append(&ep->waiting[doubted], index); /* there is space: it has just left */
            continue;
        }
        ep->waiting_count--;
        conn->conn.flags &= (uint16_t)~CCI__CONN_WAITING;
        if (is_waiting) return conn;
    }
    return NULL;
}

/* Gives what has become free to those that wait, the first one first. What their peers sent meanwhile was dropped:
 * they are asked for it. */
static void cci__dgram_next_turns(cci__dgram_t *ep) {
    uint32_t tries = CCI__DGRAM_LOOK;
    while (ep->waiting_count > 0 && tries > 0) {
        cci__active_t *active = cci__dgram_new_active(ep);
        cci__dconn_t *conn;
        if (!active) {
            if (cci__dgram_end_turns(ep) == 0) return;
            continue;
        }
        conn = cci__dgram_next_waiting(ep);
        if (!conn) {
            cci__dgram_give_back(ep, CCI__STORE_ACTIVES, active);
            return;
        }
        ep->turns++;
        if (!cci__dgram_lend(ep, conn, active)) {
            cci__dgram_queue_up(ep, conn);
            tries--;
            continue;
        }
        conn->peer.life.at.turn += CCI__DGRAM_TURN;
        cci_rel_invite(&active->rel);
        cci__list_append(&ep->ready, &active->ready);
    }
}

/* When time demands the next thing of a connection. */
static uint64_t cci__dgram_due(cci__dgram_t *ep, const cci__dconn_t *conn) {
    uint64_t at = CCI__NEVER;
    if (conn->active) {
        at = cci_rel_deadline(&conn->active->rel);
        if (CCI__UNLIKELY(CCI__READER(conn->active) != NULL))
            at = cci__min64(at, cci_rma_deadline(conn->active->reader));
        if (CCI__UNLIKELY(conn->active->path != NULL)) at = cci__min64(at, cci__path_deadline(ep, conn->active->path));
    }
    at = cci__min64(at, conn->conn.keepalive_us ? conn->conn.deadline_ns : cci_conn_deadline(&conn->conn));
    if (CCI__UNLIKELY(conn->conn.flags & CCI__CONN_PARKED))
        at = cci__min64(at, cci__dgram_parked_due(ep, conn));
    else if (conn->conn.state == CCI_CONN_OPEN)
        at = cci__min64(at, conn->in.open.probe_ns);
    if (CCI__LINGERS(&conn->conn)) at = cci__min64(at, cci__endpoint_lingers_until(&ep->base, &conn->conn));
    return at;
}

/* Arms the connection's timer for that. It is not moved back: that can wait until it fires, or somebody wants to
 * sleep. */
static void cci__dgram_schedule(cci__dgram_t *ep, cci__dconn_t *conn) {
    uint64_t at = cci__dgram_due(ep, conn);
    if (at >= conn->conn.timer.at_ns) return;
    /* Never at once: what stays overdue must not stop the round. Never later than before: each send comes here. */
    at = cci__max64(at, ep->base.now_ns + (1u << CCI__TICK_SHIFT));
    if (at < conn->conn.timer.at_ns) cci__timer_arm(&ep->base.wheel, &conn->conn.timer, at);
}

#ifndef CCI_NO_STATS
/* Nothing is counted yet. What is in the batch was another connection's, which had this place. */
static void cci__dgram_begin_tally(cci__dgram_t *ep, const cci__dconn_t *conn) {
    cci__tally_t *tally = cci__dgram_tally(ep, conn);
    uint32_t i;
    for (i = 0; i < ep->tx_count; i++)
        if (ep->tx_tallies[i] == tally) ep->tx_tallies[i] = NULL;
    cci__tally_begin(&ep->base.tallies, conn->conn.index);
}
#endif

/* Memory for more connections; 0 if there is none. */
static int cci__dgram_grow(cci__dgram_t *ep) {
    size_t size = (size_t)CCI__CONN_SLAB * ep->base.conns.entry_size;
    uint8_t *memory;
    if (ep->base.conns.slab_count == ep->base.conns.slab_limit) return 0;
    CCI__STATS(
        if (ep->base.tallies.counted && !cci__tallies_grow(&ep->base.tallies, ep->base.conns.slab_count + 1)) return 0);
    CCI__TELLS(
        if (ep->base.notices.asked && !cci__notices_grow(&ep->base.notices, ep->base.conns.slab_count + 1)) return 0);
    if ((ep->base.conns.slab_count + 1) * CCI__CONN_SLAB > ep->base.conns.bucket_count) {
        uint32_t count = ep->base.conns.bucket_count * 2;
        uint32_t *buckets = (uint32_t *)cci_alloc(count * sizeof *buckets);
        if (!buckets) return 0;
        cci_release(cci_conn_rehash(&ep->base.conns, buckets, count));
    }
    memory = (uint8_t *)cci__dgram_memory(ep, size);
    if (!memory) return 0;
    cci_conn_add_slab(&ep->base.conns, memory);
    return 1;
}

/* The peer's answer is waited for from now on. Its time stands where later the path's is. */
static void cci__dgram_ask_path(const cci__dgram_t *ep, cci__dconn_t *conn) {
    conn->state.rttvar_us = (uint32_t)(ep->base.now_ns / 1000);
}

static cci__dconn_t *cci__dgram_open_conn(cci__dgram_t *ep, cci_conn_attribute_t attribute, void *context) {
    cci_conn_t *made = cci_conn_open(&ep->base.conns);
    cci__dconn_t *conn;
    if (!made && (!cci__dgram_grow(ep) || (made = cci_conn_open(&ep->base.conns)) == NULL)) return NULL;
    conn = (cci__dconn_t *)(void *)made;
    made->pub.endpoint = (cci_endpoint_t *)&ep->base.api.pub;
    made->pub.attribute = attribute;
    made->pub.context = context;
    made->pub.max_send_size = ep->base.max_send_size;
    made->deadline_ns = CCI__NEVER;
    CCI__STATS(if (ep->base.tallies.counted) cci__dgram_begin_tally(ep, conn));
    conn->conn.send_timeout_us = ep->base.send_timeout_us;
    conn->state.mtu = (uint16_t)ep->base.info.base_mtu;
    cci__dgram_ask_path(ep, conn);
    return conn;
}

/* Drops what has arrived for a connection and was not taken by the program. */
static void cci__dgram_drop_runs(cci__dgram_t *ep, cci__active_t *active) {
    while (active->runs) {
        cci_rel_run_t *run = active->runs;
        active->runs = run->next;
        ep->backlog--;
        cci_evq_release_buffer(&ep->base.evq, (cci_evq_buffer_t *)run->buffer);
    }
    active->runs_tail = &active->runs;
    cci__list_remove(&active->inbox);
}

/* Ends messages that were kept. */
static void cci__dgram_abort_parked(cci__dgram_t *ep, cci__dconn_t *conn, int status) {
    cci__active_ecn_t passing; /* only for as long as it takes */
    cci_rel_t *rel = &passing.active.rel;
#ifndef CCI_NO_RMA
    cci_list_t *node = &conn->in.parked.first->node;
    do {
        if (cci__item_is_read(node))
            cci_rma_free_read(&ep->rma, (cci_rma_read_t *)CCI__CONTAINER(node, cci_rel_item_t, node)->user_data);
        node = node->next;
    } while (node != &conn->in.parked.first->node);
#endif
    cci__active_begin(ep, &passing.active, conn);
    cci__dgram_unpark(&passing.active);
    cci_rel_abort(rel, status);
    cci_rel_end(rel, &conn->state);
}

/* Ends everything that is pending with a status. */
static void cci__dgram_abort(cci__dgram_t *ep, cci__dconn_t *conn, int status) {
    cci__dgram_flush(ep); /* the batch names records of the connection */
    if (CCI__UNLIKELY(conn->conn.flags & CCI__CONN_PARKED)) cci__dgram_abort_parked(ep, conn, status);
    if (conn->active) {
#ifndef CCI_NO_RMA
        cci_list_t *node;
        for (node = conn->active->rel.held.next; node != &conn->active->rel.held; node = node->next) {
            cci_rel_item_t *item = CCI__CONTAINER(node, cci_rel_item_t, queue);
            if (item->kind == CCI__ITEM_EXTERN) /* a read that waits for a fence: the reader does not know it yet */
                cci_rma_free_read(&ep->rma, (cci_rma_read_t *)item->user_data);
        }
#endif
        if (CCI__READER(conn->active)) cci_rma_reader_abort(&ep->rma, conn->active->reader);
        cci_rel_abort(&conn->active->rel, status);
        cci__list_remove(&conn->active->ready);
    }
}

static void cci__dgram_forget(const cci__dgram_t *ep, void *key) {
    if (key && ep->seal->forget) ep->seal->forget(ep->seal->user, key);
}

/* Takes back what was lent to a connection on which nothing is pending. */
static void cci__dgram_drop_active(cci__dgram_t *ep, cci__dconn_t *conn) {
    if (!conn->active) return;
    cci__dgram_drop_runs(ep, conn->active);
    cci__dgram_take_active(ep, conn->active);
}

/* The data of an answer is not needed any more. */
static void cci__dgram_drop_answer(cci__dgram_t *ep, cci__dconn_t *conn) {
    if (!(conn->conn.flags & CCI__CONN_ANSWERS)) return;
    cci__dgram_flush(ep); /* the batch may name it */
    conn->conn.flags &= (uint16_t)~CCI__CONN_ANSWERS;
    cci__dgram_give_back(ep, CCI__STORE_ANSWERS, conn->in.decided.answer);
}

static void cci__dgram_close_conn(cci__dgram_t *ep, cci__dconn_t *conn) {
    cci__dgram_drop_active(ep, conn);
    cci__dgram_drop_answer(ep, conn);
#ifndef CCI_NO_ATOMICS
    cci__dgram_drop_atomics(ep, conn);
#endif
    ep->base.closing -= conn->conn.state == CCI_CONN_CLOSING;
    cci__dgram_forget(ep, conn->peer.key);
    cci__timer_disarm(&ep->base.wheel, &conn->conn.timer);
    cci_conn_end(&ep->base.conns, &conn->conn, ep->base.now_ns);
}

/* ==================================================================================================================
 * >>dgram-events
 *
 * Events are made, and what the reliability protocol asks and reports: the functions of cci_rel_sink_t.
 *   Parts: events; what the reliability protocol asks and tells.
 * ================================================================================================================== */

/* ---- events ---- */

static int cci__dgram_add_events(cci__endpoint_t *base) {
    cci_evq_event_t *more =
        (cci_evq_event_t *)cci__dgram_memory((cci__dgram_t *)base, CCI__DGRAM_CONTROL * sizeof *more);
    if (more) cci_evq_add_events(&base->evq, &base->api, CCI_EVQ_CONTROL, more, CCI__DGRAM_CONTROL);
    return more != NULL;
}

/* Keepalive begins, if there is to be any. */
static void cci__dgram_begin_keepalive(cci__endpoint_t *base, cci_conn_t *conn) {
    conn->deadline_ns = conn->keepalive_us ? base->now_ns + (uint64_t)conn->keepalive_us * 1000 : CCI__NEVER;
    cci__dgram_schedule((cci__dgram_t *)base, (cci__dconn_t *)(void *)conn);
}

/* The peer has answered: the path takes no longer, though the peer's program may have taken most of that. The first
 * probe time-out is twice as long, but 0.1 s at least and 3 s at most, and not the same for all who begin together. */
static void cci__dgram_know_path(const cci__dgram_t *ep, cci__dconn_t *conn) {
    uint64_t took_us = (uint32_t)((uint32_t)(ep->base.now_ns / 1000) - conn->state.rttvar_us);
    uint64_t wait_us = cci__min64(2 * took_us, 3000000);
    wait_us += wait_us * (ep->base.now_ns >> 6 & 255) / 2048;
    conn->state.rttvar_us = (uint32_t)cci__max64(wait_us, 100000);
}

/* The connection opens. */
static void cci__dgram_opened(cci__dgram_t *ep, cci__dconn_t *conn) {
    cci_conn_opened(&ep->base.conns, &conn->conn, ep->base.now_ns);
    cci__dgram_know_path(ep, conn);
    conn->conn.keepalive_us = cci__endpoint_keepalive_us(&ep->base, &conn->conn);
    conn->in.open.keepalive_event = NULL;
    conn->peer.life.at.turn = 0;
    cci__dgram_watch(ep, conn);
    if (conn->conn.step.confirming)
        cci__dgram_schedule(ep, conn); /* keepalive from the confirmation on */
    else
        cci__dgram_begin_keepalive(&ep->base, &conn->conn);
}

/* The peer may have been asked for a sign of life: nobody waits for the answer any more. */
static void cci__dgram_end_ping(const cci__dconn_t *conn) {
    if (!conn->active) return;
    conn->active->rel.ping = 0;
    cci_rel_forget(&conn->active->rel);
}

/* A question of the keepalive before would be repeated for ever, to a peer that is gone. */
static void cci__dgram_change_keepalive(cci__endpoint_t *base, cci_conn_t *conn) {
    cci__dgram_end_ping((const cci__dconn_t *)(const void *)conn);
    cci__dgram_begin_keepalive(base, conn);
}

/* The peer is gone, or nothing was heard of it. */
static void cci__dgram_post_keepalive(cci__endpoint_t *base, cci_conn_t *of) {
    cci__dconn_t *conn = (cci__dconn_t *)(void *)of;
    cci_evq_event_t *event = conn->in.open.keepalive_event ? NULL : cci__endpoint_event(base);
    of->keepalive_us = 0;
    of->flags &= (uint16_t)~CCI__CONN_PINGED;
    cci__dgram_end_ping(conn);
    if (!event) return;
    cci__event_set_keepalive(event, of);
    conn->in.open.keepalive_event = event; /* in the same place when it is broken */
    cci_evq_post(&base->evq.urgent, event);
}

/* Posts the events about the end of a connection, once the program has had its last message: that of keepalive, and
 * behind the completions that which the program has asked for. */
static void cci__dgram_post_end(cci__dgram_t *ep, cci__dconn_t *conn) {
    cci_evq_event_t *event;
    if (conn->active && conn->active->runs) {
        CCI__WAKES(if (conn->conn.keepalive_us || (conn->conn.flags & CCI__CONN_UNTOLD)) ep->base.wakes.ends = 1);
        return;
    }
    if (conn->conn.keepalive_us) cci__dgram_post_keepalive(&ep->base, &conn->conn);
    if (!(conn->conn.flags & CCI__CONN_UNTOLD)) return;
    event = cci__endpoint_event(&ep->base);
    if (!event) { /* there is no memory now */
        conn->conn.deadline_ns = ep->base.now_ns + 10 * CCI__MS;
        cci__dgram_schedule(ep, conn);
        return;
    }
    conn->conn.flags &= (uint16_t)~CCI__CONN_UNTOLD;
    cci__event_set_disconnect(event, &conn->conn, conn->peer.life.at.end_status);
    event->state = ++ep->stamp;
    conn->in.broken.end_event = event;
    cci_evq_post(&ep->base.evq.done, event);
}

/* Events that wait for the program must not name a connection that is gone. */
static void cci__dgram_take_back_events(cci__dgram_t *ep, const cci__dconn_t *conn) {
    (void)ep;
    if (conn->conn.state != CCI_CONN_OPEN && conn->conn.state != CCI_CONN_BROKEN) return;
    CCI__TELLS(cci__notices_forget(&ep->base.notices, &conn->conn, 0));
    if (conn->in.open.keepalive_event) conn->in.open.keepalive_event->base.pub.type = CCI_EVENT_NONE;
    if (conn->conn.state == CCI_CONN_BROKEN && conn->in.broken.end_event)
        conn->in.broken.end_event->base.pub.type = CCI_EVENT_NONE;
}

/* An address as a URI, in memory that cci__dgram_free_uri() takes back; NULL if the link has no text for it. */
static const char *cci__dgram_peer_uri(cci__dgram_t *ep, const cci_link_addr_t *address) {
    cci__uri_t *uri = ep->uris;
    size_t length = strlen(ep->base.scheme);
    uint32_t i;
    if (ep->base.link->version < 2 || !ep->base.link->text || length + 4 > sizeof uri->text) return NULL;
    if (!uri) {
        uri = (cci__uri_t *)cci__dgram_memory(ep, 16 * sizeof *uri);
        for (i = 0; uri && i < 16; i++) {
            uri[i].next = ep->uris;
            ep->uris = &uri[i];
        }
        if ((uri = ep->uris) == NULL) return NULL;
    }
    memcpy(uri->text, ep->base.scheme, length);
    memcpy(uri->text + length, "://", 3);
    if (ep->base.link->text(ep->base.handle, address, uri->text + length + 3, sizeof uri->text - length - 3) !=
        CCI_SUCCESS)
        return NULL;
    ep->uris = uri->next;
    return uri->text;
}

static void cci__dgram_free_uri(cci__dgram_t *ep, const char *text) {
    cci__uri_t *uri;
    if (!text) return;
    uri = CCI__CONTAINER((uintptr_t)text, cci__uri_t, text);
    uri->next = ep->uris;
    ep->uris = uri;
}

/* An event leaves its queue for the program. 0: it was taken back meanwhile, and has been returned. */
static int cci__dgram_hand_out(cci__dgram_t *ep, cci_evq_event_t *event) {
    cci__dconn_t *conn = (cci__dconn_t *)event->owner;
    switch (event->base.pub.type) {
    case CCI_EVENT_NONE: cci_evq_return_event(&ep->base.evq, event); return 0;
    case CCI_EVENT_KEEPALIVE_TIMEDOUT: conn->in.open.keepalive_event = NULL; return 1;
    case CCI_EVENT_DISCONNECT:
        CCI__TELLS(cci__notices_forget(&ep->base.notices, &conn->conn, 0));
        conn->in.broken.end_event = NULL;
        return 1;
#ifndef CCI_SMALL
    case CCI_EVENT_STATUS: return cci__notices_hand_out(&ep->base.notices, &ep->base.evq, event);
#endif
    case CCI_EVENT_CONNECT_REQUEST:
        event->base.pub.request.peer_uri = cci__dgram_peer_uri(ep, &conn->conn.peer);
        return 1;
    default: return 1;
    }
}

/* The peer has left (CCI_SUCCESS) or is lost. The connection stays until the program disconnects. */
static void cci__dgram_break(cci__dgram_t *ep, cci__dconn_t *conn, int status) {
    if (conn->conn.state != CCI_CONN_OPEN) return;
    CCI__TELLS(cci__notices_forget(&ep->base.notices, &conn->conn, 1));
    conn->conn.state = CCI_CONN_BROKEN;
    conn->conn.step.confirming = 0;
    conn->conn.deadline_ns = CCI__NEVER;
    conn->peer.life.at.end_status = status;
    cci__dgram_abort(ep, conn, status == CCI_SUCCESS ? (int)CCI_ERR_DISCONNECTED : status);
    conn->in.broken.end_event = NULL; /* not before: what was kept for a silent peer stands in its place */
    if (CCI__LINGERS(&conn->conn)) {  /* the program has closed it */
        cci__dgram_schedule(ep, conn);
        return;
    }
    if (ep->base.event_mask & 1u << CCI_EVENT_DISCONNECT) conn->conn.flags |= CCI__CONN_UNTOLD;
    cci__dgram_post_end(ep, conn);
}

/* Posts the outcome of cci_connect() with the event that was kept for it. */
static void cci__dgram_connected(cci__dgram_t *ep, cci__dconn_t *conn, int status) {
    cci_conn_pending_t *pending = conn->in.request;
    cci_evq_event_t *event = (cci_evq_event_t *)pending->event;
    cci__dgram_flush(ep); /* the batch may hold a request, which names the data in `pending` */
    cci_release(cci_conn_give_answer(pending->answer, status, &ep->base.told, &event->base.pub.connect));
    cci_release(pending);
    cci__endpoint_post_connect(&ep->base, event, &conn->conn, status);
    if (status == CCI_SUCCESS)
        cci__dgram_opened(ep, conn);
    else
        cci__dgram_close_conn(ep, conn);
}

static void cci__dgram_accepted(cci__dgram_t *ep, cci__dconn_t *conn, int status) {
    cci_evq_event_t *event = conn->in.decided.event;
    cci__dgram_drop_answer(ep, conn);
    cci__endpoint_post_accept(&ep->base, event, &conn->conn, status);
    if (status == CCI_SUCCESS)
        cci__dgram_opened(ep, conn);
    else
        cci__dgram_close_conn(ep, conn);
}

/* ---- what the reliability protocol asks and tells ---- */

/* Are the buffers with what came early rather than with the program? */
static int cci__dgram_peers_hold(const cci__dgram_t *ep) {
    return ep->pool.buffers_held >= ep->base.recv_buf_count / 2;
}

/* Makes receive buffers, a slab of them; 0 if there are to be no more. */
static int cci__dgram_grow_buffers(cci__dgram_t *ep) {
    uint32_t count = cci__min32(cci__max32(CCI__DGRAM_SLAB / ep->buffer_size, CCI__DGRAM_BATCH_RX), ep->buffers_unmade);
    cci_evq_buffer_t *buffers = NULL;
    uint8_t *bytes = NULL;
    if (count > 0) buffers = (cci_evq_buffer_t *)cci__dgram_memory(ep, count * sizeof *buffers);
    if (buffers) bytes = (uint8_t *)cci__dgram_memory(ep, (size_t)count * ep->buffer_size);
    if (!bytes) return 0;
    ep->buffers_unmade -= count;
    cci_evq_add_buffers(&ep->base.evq, buffers, bytes, ep->buffer_size, count);
    return 1;
}

/* Buffers that are free, and those that can be made. */
static uint32_t cci__dgram_buffers_left(const cci__dgram_t *ep) {
    return ep->base.evq.free_buffer_count + ep->buffers_unmade;
}

/* Is there one now, besides the one that takes the place in the batch of one that is kept? */
static int cci__dgram_has_buffer(cci__dgram_t *ep) {
    return ep->base.evq.free_buffer_count > 1 || cci__dgram_grow_buffers(ep) || ep->base.evq.free_buffer_count > 0;
}

static cci_evq_buffer_t *cci__dgram_take_buffer(cci__dgram_t *ep) {
    if (ep->base.evq.free_buffer_count == 0) (void)cci__dgram_grow_buffers(ep);
    return cci_evq_take_buffer(&ep->base.evq);
}

/* Is there one more buffer for what is due? What came early holds more than it may if the program has lowered their
 * count: so many more may be in use, which otherwise are parked, or were never made. */
static int cci__dgram_exceed(cci__dgram_t *ep, uint32_t early) {
    uint32_t limit = ep->base.evq.buffer_limit, held = cci__min32(ep->pool.buffers_held, ep->held_before) + early;
    if (held <= ep->base.recv_buf_count || ep->base.evq.buffer_total >= limit + (held - ep->base.recv_buf_count))
        return 0;
    cci_evq_limit_buffers(&ep->base.evq, ep->base.evq.buffer_total + 1);
    ep->base.evq.buffer_limit = limit; /* which comes into force as buffers come back */
    if (ep->base.evq.free_buffer_count > 0) return 1;
    if (ep->buffers_unmade > 0) return 0; /* there is no memory */
    ep->buffers_unmade = 1;
    if (cci__dgram_grow_buffers(ep)) return 1;
    ep->buffers_unmade = 0;
    return 0;
}

/* Is there a buffer for a packet of the connection's, besides `spoken_for` others? What comes too early leaves the last
 * quarter to what is due, a little more to requests for connections, and its share to other connections. A single
 * buffer is for what is due, where that comes for sure. */
static int cci__dgram_buffer_for(cci__dgram_t *ep, const cci__active_t *active, int in_order, uint32_t spoken_for) {
    uint32_t count = ep->base.recv_buf_count;
    uint32_t early =
        count / 4 + (count < CCI__DGRAM_FEW ? count > 1 || active->rel.reliable : cci__max32(count / 16, 2));
    uint32_t left = cci__dgram_buffers_left(ep), reserve = spoken_for + (in_order ? 0 : early);
    if (left > reserve && (in_order || cci__share(active->rel.buffers_held, left - reserve)) &&
        (CCI__LIKELY(ep->base.evq.free_buffer_count > spoken_for) || cci__dgram_grow_buffers(ep)))
        return 1;
    if (!in_order || !cci__dgram_peers_hold(ep)) return 0;
    if (spoken_for == 0 && cci__dgram_exceed(ep, early)) return 1;
    ep->pool.starved = 1;
    return 0;
}

/* May the packet that is being taken in be kept? It needs a free buffer in its place. Anybody can send to a group,
 * so its messages leave the last quarter to what peers send. */
static int cci__sink_keep(void *user, void *buffer, int in_order) {
    cci__active_t *active = (cci__active_t *)user;
    cci__dgram_t *ep = cci__dgram_of(active->conn);
    cci_evq_buffer_t *kept = (cci_evq_buffer_t *)buffer;
    if (active->conn->conn.pub.attribute == CCI_CONN_ATTR_UU_MC_RX) in_order = 0;
    if (kept->refs == 1 && !cci__dgram_buffer_for(ep, active, in_order, 0)) return 0;
    kept->refs++;
    return 1;
}

static void cci__sink_drop(void *user, void *buffer) {
    cci__active_t *active = (cci__active_t *)user;
    cci_evq_release_buffer(&cci__dgram_of(active->conn)->base.evq, (cci_evq_buffer_t *)buffer);
}

static uint8_t *cci__sink_assemble(void *user, uint32_t size, int in_order, void **buffer) {
    cci__active_t *active = (cci__active_t *)user;
    cci__dgram_t *ep = cci__dgram_of(active->conn);
    cci_evq_buffer_t *taken;
    if (size + CCI_REL_HEADER > ep->buffer_size ||
        !cci__dgram_buffer_for(ep, active, in_order, ep->current && ep->current->refs > 1))
        return NULL;
    taken = cci__dgram_take_buffer(ep);
    *buffer = taken;
    return taken->data;
}

/* The first frame's sequence number has done its work: in its place stands since when the run waits for the program. */
static uint8_t *cci__run_stamp(cci_rel_run_t *run) {
    return (uint8_t *)run + run->begin + 4;
}

#ifndef CCI_NO_STATS
/* Messages that wait in a packet, and the bytes in them, without those that were withdrawn. */
static uint32_t cci__run_messages(const cci_rel_run_t *run, uint64_t *bytes) {
    const uint8_t *frame = (const uint8_t *)run + run->begin;
    uint32_t left, count = 0, sum = 0;
    for (left = run->count; left > 0; left--) {
        uint32_t length = cci__load16(frame + 2);
        if (frame[0] != CCI__FRAME_MESSAGE) {
            frame += cci_rel_frame_size(frame);
            continue;
        }
        frame += 8 + cci__pad8(length);
        sum += length;
        count++;
    }
    *bytes += sum;
    return count;
}

/* Messages have arrived for the program. */
static CCI__RARE void cci__dgram_tally_run(const cci__dgram_t *ep, const cci__dconn_t *conn, const cci_rel_run_t *run) {
    cci__tally_t *tally = cci__dgram_tally(ep, conn);
    tally->messages_arrived += cci__run_messages(run, &tally->bytes_arrived);
}
#endif

#ifndef CCI_NO_WAKE
/* Is a message among those that wait in a packet which was sent with CCI_FLAG_WAKE? */
static CCI__RARE int cci__run_wakes(const cci_rel_run_t *run) {
    const uint8_t *frame = (const uint8_t *)run + run->begin;
    uint32_t left;
    for (left = run->count; left > 0; left--) {
        if (frame[0] == CCI__FRAME_MESSAGE && (frame[1] & CCI__FRAME_WAKE)) return 1;
        frame += cci_rel_frame_size(frame);
    }
    return 0;
}
#endif

static void cci__sink_deliver(void *user, cci_rel_run_t *run) {
    cci__active_t *active = (cci__active_t *)user;
    cci__dgram_t *ep = cci__dgram_of(active->conn);
    if (CCI__LINGERS(&active->conn->conn)) { /* nobody takes it any more */
        cci_evq_release_buffer(&ep->base.evq, (cci_evq_buffer_t *)run->buffer);
        return;
    }
    if (!active->runs) {
        active->stamp = ep->stamp;
        cci__list_append(&ep->inbox, &active->inbox);
    }
    cci__store32(cci__run_stamp(run), ep->stamp);
    ep->backlog++;
    run->next = NULL;
    *active->runs_tail = run;
    active->runs_tail = &run->next;
    CCI__WAKES(if (CCI__UNLIKELY(ep->base.wakes.classes & CCI_ARM_WAKE)) ep->base.wakes.heard |=
               (uint8_t)cci__run_wakes(run));
    CCI__STATS(if (CCI__UNLIKELY(ep->base.tallies.counted != NULL)) cci__dgram_tally_run(ep, active->conn, run));
}

static int cci__sink_place(void *user, const cci_rel_bulk_t *target, uint64_t offset, const uint8_t *data,
                           uint32_t length) {
    cci__active_t *active = (cci__active_t *)user;
#ifdef CCI_NO_RMA
    (void)active, (void)target, (void)offset, (void)data, (void)length;
    return CCI_ERR_RMA_HANDLE;
#else
    cci__dgram_t *ep = cci__dgram_of(active->conn);
    uint8_t *to =
        cci_rma_address(&ep->rma, target->key, target->region, target->remote_offset, target->length, CCI_FLAG_WRITE);
    if (!to) {
        ep->rma.denied++;
        return CCI_ERR_RMA_HANDLE;
    }
    if (data) {
        memcpy(to + (size_t)offset, data, length);
        CCI__STATS(if (ep->base.tallies.counted) cci__dgram_tally(ep, active->conn)->peer_write_bytes += length);
    }
    return CCI_SUCCESS;
#endif
}

static int cci__sink_readable(void *user, const cci_rel_bulk_t *source) {
    cci__active_t *active = (cci__active_t *)user;
#ifdef CCI_NO_RMA
    (void)active, (void)source;
    return 0;
#else
    return cci_rma_find(&cci__dgram_of(active->conn)->rma, source->local_key, source->local_region) != NULL;
#endif
}

static void cci__dgram_complete(cci__dgram_t *ep, cci__op_t *op, int status) {
    cci__dconn_t *conn = (cci__dconn_t *)(void *)(uintptr_t)op->event.base.pub.send.connection;
    if (CCI__UNLIKELY(status == CCI_ERR_RNR) && conn->conn.pub.attribute == CCI_CONN_ATTR_RO &&
        !(conn->conn.flags & CCI__CONN_UNREADY)) {
        conn->conn.flags |= CCI__CONN_UNREADY;
        op->done = 1; /* this is the event that the program is to hear of */
    }
    op->event.base.pub.send.status = (cci_status_t)status;
    op->event.state = ++ep->stamp;
    cci_evq_post(&ep->base.evq.done, &op->event);
}

static void cci__sink_complete(void *user, cci_rel_op_t *rel_op) {
    cci__op_t *op = CCI__CONTAINER(rel_op, cci__op_t, rel);
    cci__active_t *active = (cci__active_t *)user;
    cci__dgram_t *ep = cci__dgram_of(active->conn);
    active->op_count--;
    if (op->blocking) {
        op->done = 1;
        if (ep->base.waiters > 0 && ep->base.link->wake) ep->base.link->wake(ep->base.handle);
        return;
    }
    cci__dgram_complete(ep, op, rel_op->status);
}

static void cci__sink_start(void *user, cci_rel_item_t *item) {
#ifdef CCI_NO_RMA
    (void)user, (void)item;
#else
    cci__active_t *active = (cci__active_t *)user;
    cci_rma_read_start(active->reader, (cci_rma_read_t *)item->user_data); /* see cci__dgram_read() */
#endif
}

#ifdef CCI_NO_RMA
/* A peer's read is denied at once. */
static uint32_t cci__dgram_deny(cci__dgram_t *ep, cci__active_t *active, const uint8_t *frame, uint32_t length,
                                uint64_t now_ns) {
    cci_rel_packet_t *packet = &cci__dgram_slot(ep)->packet;
    uint8_t *at;
    if ((frame[0] != CCI__FRAME_READ && frame[0] != CCI__FRAME_ATOMIC) || length < 48u) return 0;
    cci_rel_open_packet(&active->rel, packet, 8, now_ns);
    at = packet->head + packet->head_length;
    memset(at, 0, 8);
    at[0] = CCI__FRAME_DENIED;
    at[1] = frame[0] == CCI__FRAME_READ ? CCI_ERR_RMA_HANDLE : CCI_ERR_RMA_OP;
    cci__store32(at + 4, cci__load32(frame + 4));
    packet->head_length += 8;
    cci__dgram_commit_data(ep, active->conn);
    return 48u;
}
#endif

static uint32_t cci__sink_frame(void *user, const uint8_t *frame, uint32_t length, uint64_t now_ns) {
    cci__active_t *active = (cci__active_t *)user;
    cci__dgram_t *ep = cci__dgram_of(active->conn);
#ifndef CCI_NO_RMA
    uint32_t size, requests;
    cci_rma_reader_t *reader;
    cci_rma_read_t *read;
#endif
    if (CCI__UNLIKELY(frame[0] == CCI__FRAME_CHALLENGE || frame[0] == CCI__FRAME_RESPONSE))
        return cci__dgram_input_path(ep, active->conn, frame, length);
    if (!active->rel.reliable) return 0;
#ifdef CCI_NO_RMA
    return cci__dgram_deny(ep, active, frame, length, now_ns);
#else
    reader = cci__dgram_reader(ep, active);
    if (!reader) return 0; /* as if it were lost */
    if (frame[0] == CCI__FRAME_READ && cci__list_empty(&ep->rma.requests))
        (void)cci__dgram_grow_store(ep, CCI__STORE_REQUESTS);
#ifndef CCI_NO_ATOMICS
    if (frame[0] == CCI__FRAME_ATOMIC && !reader->atomics) (void)cci__dgram_begin_atomics(ep, active->conn, reader);
#endif
    requests = reader->request_count;
    size = cci_rma_input(&ep->rma, reader, frame, length, now_ns);
    if (frame[0] == CCI__FRAME_DATA) active->rel.progress_ns = now_ns;
    active->rel.advanced |= reader->request_count > requests; /* what waits may wait for a read to end */
    while ((read = cci_rma_next_finished(reader)) != NULL) {
        cci_rel_item_t *item = (cci_rel_item_t *)read->item;
        int status = read->status;
        cci_rma_free_read(&ep->rma, read);
        cci_rel_extern_done(&active->rel, item, status);
    }
    return size;
#endif
}

static void cci__sink_broken(void *user, int status) {
    cci__active_t *active = (cci__active_t *)user;
    cci__dgram_break(cci__dgram_of(active->conn), active->conn, status);
}

#ifndef CCI_SMALL
/* Bytes of a path's largest packet, with what is added. */
static uint32_t cci__dgram_path_mtu(const cci__dgram_t *ep, const cci__dconn_t *conn, uint32_t mtu) {
    return mtu + (ep->header_flags & CCI__HEADER_CRC ? CCI__CRC_SIZE : 0) + (conn->peer.key ? ep->seal->tag_size : 0);
}

/* A reliable connection's peer is silent, or was heard. */
static CCI__RARE void cci__dgram_suspend(cci__dgram_t *ep, cci__dconn_t *conn, uint32_t is_suspended) {
    if (cci__conn_is_reliable(&conn->conn))
        (void)cci__notices_suspend(&ep->base.notices, &ep->base.evq, &conn->conn, is_suspended);
}

/* Only while the program wants to know. */
static void cci__sink_note(void *user, int what) {
    const cci__active_t *active = (const cci__active_t *)user;
    cci__dgram_t *ep = cci__dgram_of(active->conn);
    if (what == CCI_REL_SILENT) {
        cci__dgram_suspend(ep, active->conn, 1);
    } else if (what == CCI_REL_MTU) {
        if (active->conn->conn.state == CCI_CONN_OPEN)
            cci__notices_post(&ep->base.notices, &ep->base.evq, &active->conn->conn, CCI_STATUS_PATH_MTU,
                              cci__dgram_path_mtu(ep, active->conn, active->rel.mtu));
    } else {
        CCI__STATS(if (ep->base.tallies.counted) cci__dgram_tally(ep, active->conn)->notes[what]++);
    }
}

/* Somebody wants to know what is rare. */
static void cci__dgram_take_note(cci__endpoint_t *base) {
    cci__dgram_t *ep = (cci__dgram_t *)base;
    int wants = ep->base.notices.asked != NULL;
    CCI__STATS(wants |= ep->base.tallies.counted != NULL);
    ep->pool.note = wants ? cci__sink_note : NULL;
}
#endif

static const cci_rel_sink_t cci__dgram_sink = {
    cci__sink_keep,     cci__sink_drop,     cci__sink_assemble, cci__sink_deliver, cci__sink_place,
    cci__sink_readable, cci__sink_complete, cci__sink_start,    cci__sink_frame,   cci__sink_broken};

/* ==================================================================================================================
 * >>dgram-receive
 *
 * Datagrams come in. The walk: cci__dgram_receive() gets a batch from the link; each datagram's checksum and header;
 * a packet of an open connection goes to cci__dgram_input_data() and so to >>rel-receive; all else to
 * >>conn-handshake, whose answer says what happened.
 * ================================================================================================================== */

/* For the log: a text with a peer's address in it. */
static CCI__RARE void cci__dgram_log_peer(const cci__dgram_t *ep, int level, const char *before,
                                          const cci_link_addr_t *peer, const char *behind) {
#ifdef CCI_NO_TEXT
    (void)ep, (void)level, (void)before, (void)peer, (void)behind;
#else
    int is_known = ep->base.link->version >= 2 && ep->base.link->text;
    char address[128];
    cci__note_t note;
    is_known = is_known && ep->base.link->text(ep->base.handle, peer, address, sizeof address) == CCI_SUCCESS;
    note.length = 0;
    cci__note_add(&note, ep->base.scheme);
    cci__note_add(&note, ": ");
    cci__note_add(&note, before);
    cci__note_add(&note, is_known ? address : "a peer");
    cci__note_add(&note, behind);
    cci_log(level, note.text);
#endif
}

/* For the log: a packet that is none of DATA, and where it goes or comes from. */
static CCI__RARE void cci__dgram_trace_text(const cci__dgram_t *ep, uint8_t type, const char *way,
                                            const cci_link_addr_t *peer) {
#ifdef CCI_NO_TEXT
    (void)ep, (void)type, (void)way, (void)peer;
#else
    static const char *const names[] = {"?",
                                        "REQUEST",
                                        "COOKIE",
                                        "ACCEPT",
                                        "REJECT",
                                        "CONFIRM",
                                        "CONFIRMED",
                                        "DATA",
                                        "RESET",
                                        "GROUP",
                                        "CLOSE",
                                        "CLOSED",
                                        "BUSY"
#ifndef CCI_NO_NAMES
                                        ,
                                        "NOT_HERE"
#endif
    };
    cci__note_t note;
    note.length = 0;
    cci__note_add(&note, names[type < sizeof names / sizeof names[0] ? type : 0]);
    cci__note_add(&note, way);
    cci__dgram_log_peer(ep, CCI_LOG_DEBUG, note.text, peer, "");
#endif
}

static inline void cci__dgram_trace(const cci__dgram_t *ep, uint8_t type, const char *way,
                                    const cci_link_addr_t *peer) {
    if (CCI__UNLIKELY(ep->traces)) cci__dgram_trace_text(ep, type, way, peer);
}

static void cci__dgram_send_request(cci__dgram_t *ep, cci__dconn_t *conn) {
    cci_conn_request_t piece;
    uint32_t size;
    cci__dgram_trace(ep, CCI__PKT_REQUEST, " to ", &conn->conn.peer);
    memset(&piece, 0, sizeof piece);
    while ((size = cci_conn_output_request(&ep->base.conns, &conn->conn, conn->in.request, &piece,
                                           cci__dgram_slot(ep)->head)) > 0)
        cci__dgram_commit_bare(ep, &conn->conn.peer, conn, size, piece.data, piece.length);
}

/* Sends a packet of a connection's handshake or end. */
static void cci__dgram_tell_at(cci__dgram_t *ep, cci__dconn_t *conn, uint8_t type, const cci_link_addr_t *to) {
    uint32_t size = cci_conn_output(&ep->base.conns, &conn->conn, type, cci__dgram_slot(ep)->head);
    cci__dgram_trace(ep, type, " to ", to);
    cci__dgram_commit_bare(ep, to, conn, size, NULL, 0);
}

/* Sends all that an answer's data needs. */
static void cci__dgram_tell_answer(cci__dgram_t *ep, cci__dconn_t *conn, uint8_t type) {
    const cci_conn_answer_t *answer = conn->in.decided.answer;
    cci_conn_request_t piece;
    cci__dgram_trace(ep, type, " to ", &conn->conn.peer);
    memset(&piece, 0, sizeof piece);
    for (;;) {
        uint8_t *head = cci__dgram_slot(ep)->head;
        uint32_t size = cci_conn_output(&ep->base.conns, &conn->conn, type, head);
        uint32_t more = cci_conn_output_piece(&ep->base.conns, answer, &piece, size, head);
        if (more == 0) return;
        cci__dgram_commit_bare(ep, &conn->conn.peer, conn, size + more, piece.data, piece.length);
    }
}

static void cci__dgram_tell(cci__dgram_t *ep, cci__dconn_t *conn, uint8_t type) {
    if ((type == CCI__PKT_ACCEPT || type == CCI__PKT_REJECT) && (conn->conn.flags & CCI__CONN_ANSWERS))
        cci__dgram_tell_answer(ep, conn, type);
    else
        cci__dgram_tell_at(ep, conn, type, &conn->conn.peer);
}

/* Sends a packet that needs no connection. */
static void cci__dgram_reply(cci__dgram_t *ep, const cci_conn_packet_t *in, uint8_t type) {
    uint32_t size = cci_conn_output_reply(&ep->base.conns, in, type, cci__dgram_slot(ep)->head);
    cci__dgram_trace(ep, type, " to ", in->from);
    cci__dgram_commit_bare(ep, in->from, NULL, size, NULL, 0);
}

/* Sends what cci_conn_input() wants to be sent. */
static void cci__dgram_answer(cci__dgram_t *ep, const cci_conn_packet_t *in) {
    cci__dconn_t *conn = (cci__dconn_t *)(void *)in->conn;
    if (in->answer == CCI__PKT_REQUEST)
        cci__dgram_send_request(ep, conn);
    else if (in->answer == CCI__PKT_CLOSED)
        cci__dgram_tell_at(ep, conn, in->answer, in->from);
    else if (cci_conn_is_reply(in->answer))
        cci__dgram_reply(ep, in, in->answer);
    else if (in->answer)
        cci__dgram_tell(ep, conn, in->answer);
}

/* Sends a CLOSE as soon as it is its turn. */
static void cci__dgram_send_close(cci__dgram_t *ep, cci__dconn_t *conn) {
    if (cci_conn_close_output(&conn->conn, &ep->base.close_ns, conn->state.srtt_us * UINT64_C(1000), ep->base.now_ns))
        cci__dgram_tell(ep, conn, CCI__PKT_CLOSE);
}

/* A request that the program has not seen is given up. */
static void cci__dgram_forget_request(cci__dgram_t *ep, cci__dconn_t *conn) {
    cci_evq_return_event(&ep->base.evq, conn->in.event);
    cci__dgram_close_conn(ep, conn);
}

/* A request in pieces takes its turn. Its pieces leave the client together: one that is still waiting for the rest when
 * so many others have begun, has lost some, and the client sends all again; or it never wanted to go on. */
static void cci__dgram_begin_collecting(cci__dgram_t *ep, const cci__dconn_t *conn) {
    uint32_t most = cci__max32(cci__min32(ep->base.recv_buf_count / 8, CCI__DGRAM_COLLECTING), 1);
    uint32_t at = ep->collecting_next++ % most;
    cci__dconn_t *other =
        (cci__dconn_t *)(void *)cci_conn_find(&ep->base.conns, ep->collecting[at].index, ep->collecting[at].token);
    if (other && other->conn.state == CCI_CONN_COLLECTING) cci__dgram_forget_request(ep, other);
    ep->collecting[at].index = conn->conn.index;
    ep->collecting[at].token = conn->conn.token;
}

/* A piece of a request: when all have come, the program may decide. */
static void cci__dgram_collect(cci__dgram_t *ep, cci__dconn_t *conn, const cci_conn_request_t *request) {
    cci_evq_event_t *event = conn->in.collecting.event;
    if (cci_conn_collect(&conn->conn, &conn->in.collecting.pieces, request, event->buffer->data,
                         event->base.pub.request.data_len))
        cci_evq_post(&ep->base.evq.urgent, event);
}

#ifndef CCI_NO_NAMES
static int cci__dgram_locate(cci__dgram_t *ep, cci__dconn_t *conn);

/* A client asks the next port of the name that it seeks, or goes on asking the link where that is. */
static CCI__RARE void cci__dgram_seek(cci__dgram_t *ep, cci__dconn_t *conn, int is_over) {
    cci_conn_pending_t *pending = conn->in.request;
    if (is_over && !cci_conn_seek_on(&conn->conn, pending, ep->base.now_ns)) return;
    if (is_over && pending->seek->is_asked) conn->conn.flags |= CCI__CONN_ASKING;
    if (cci__dgram_locate(ep, conn) == CCI_SUCCESS) {
        conn->conn.deadline_ns = cci__min64(pending->seek->until_ns, pending->give_up_ns);
        if (!is_over) conn->conn.deadline_ns = cci__max64(conn->conn.deadline_ns, ep->base.now_ns + CCI__MS);
        pending->seek->asked[pending->seek->at] = conn->conn.peer;
        cci__dgram_send_request(ep, conn);
    } else {
        conn->conn.deadline_ns = cci__min64(ep->base.now_ns + CCI__MS, pending->give_up_ns);
    }
}

/* Who was asked has another name. */
static void cci__dgram_denied(cci__dgram_t *ep, cci__dconn_t *conn, const cci_conn_header_t *header) {
    cci_conn_pending_t *pending = conn->in.request;
    if (!pending->seek || !cci_conn_is_denied(pending->seek, header)) return;
    cci__dgram_seek(ep, conn, 1);
    cci__dgram_schedule(ep, conn);
}

/* An ACCEPT or a COOKIE has come: there it is. A COOKIE from where nobody was asked is forgotten. */
static void cci__dgram_found(cci__dconn_t *conn, cci_conn_packet_t *in) {
    if (cci_conn_is_place(conn->in.request->seek, in->from)) {
        conn->conn.peer = *in->from;
    } else if (in->answer == CCI__PKT_REQUEST) {
        in->answer = 0;
        conn->conn.peer_token = 0;
    }
}

/* The log says what a search came to. */
static void cci__dgram_log_search(const cci__dgram_t *ep, const cci__dconn_t *conn) {
    const cci_conn_seek_t *seek = conn->in.request->seek;
    if (!seek) return;
    cci__dgram_log_peer(ep, CCI_LOG_WARN, "no server of that name has answered, the last that was asked being ",
                        &seek->addresses[seek->at],
                        seek->denied ? "; others there have other names" : "; none of another name has, either");
}
#else
#define cci__dgram_log_search(ep, conn) ((void)0)
#endif

/* A packet of somebody who is configured otherwise: it must not be taken for one of ours. One may be chance. */
static void cci__dgram_mismatched(cci__dgram_t *ep) {
    if (++ep->packets_mismatched == 3)
        CCI__TELL(CCI_LOG_WARN, "packets are dropped: a peer's checksums or seals are configured otherwise than ours");
}

static void cci__dgram_forged(cci__dgram_t *ep) {
    if (++ep->packets_forged == 3)
        CCI__TELL(CCI_LOG_WARN, "sealed packets are dropped: they were forged, or a peer has another key");
}

/* Counts a packet that did not open; 1 if it did. */
static int cci__dgram_is_sound(cci__dgram_t *ep, cci_conn_got_t got) {
    if (got == CCI_CONN_GOT_MISMATCH)
        cci__dgram_mismatched(ep);
    else if (got == CCI_CONN_GOT_FORGERY)
        cci__dgram_forged(ep);
    return got == CCI_CONN_GOT_SOUND;
}

/* There is no space for a request now. The client, which asks again, learns so; no state is kept. */
static void cci__dgram_send_busy(cci__dgram_t *ep, const cci_conn_packet_t *in, const char *why) {
    cci__dgram_reply(ep, in, CCI__PKT_BUSY);
    CCI__STATS(ep->requests_refused++);
    if (ep->base.now_ns < ep->base.busy_log_ns) return;
    ep->base.busy_log_ns = ep->base.now_ns + 10000 * CCI__MS;
    CCI__TELL(CCI_LOG_WARN, why);
}

/* The longest silence of a peer before it is asked for a sign of life: what the link says, or where that is never and
 * a request has found the table full, 4 s, or more on long paths. */
static uint64_t cci__dgram_longest_silence(const cci__dgram_t *ep, const cci__dconn_t *conn) {
    if (ep->base.info.probe_idle_s > 0) return ep->base.info.probe_idle_s * UINT64_C(1000) * CCI__MS;
    return cci__max64(4000 * CCI__MS, conn->state.srtt_us * UINT64_C(32000));
}

/* A request finds the table full, and nobody looks after silent peers: one of the next few connections may be dead.
 * It is asked now, and whoever answers is not asked again for some seconds. */
static void cci__dgram_check_silent(cci__dgram_t *ep) {
    uint32_t tries = cci__min32(CCI__DGRAM_LOOK, ep->base.conns.slab_count * CCI__CONN_SLAB);
    if (ep->base.info.probe_idle_s > 0) return;
    while (tries-- > 0) {
        uint32_t index = ep->check_next < ep->base.conns.slab_count * CCI__CONN_SLAB ? ep->check_next : 0;
        cci__dconn_t *conn = (cci__dconn_t *)(void *)cci_conn_at(&ep->base.conns, index);
        uint64_t silent_ns = (uint64_t)((uint32_t)(ep->base.now_ns >> 20) - conn->peer.life.heard) << 20;
        ep->check_next = index + 1;
        if (conn->conn.state != CCI_CONN_OPEN || (conn->conn.flags & CCI__CONN_PARKED) || conn->conn.step.confirming ||
            conn->conn.pub.attribute > CCI_CONN_ATTR_UU || conn->in.open.probe_ns != CCI__NEVER ||
            silent_ns < cci__dgram_longest_silence(ep, conn))
            continue;
        conn->conn.tries = 0;
        conn->in.open.probe_ns = ep->base.now_ns;
        cci__dgram_schedule(ep, conn);
        return;
    }
}

/* Why there is no space for a request, NULL if there is. */
static const char *cci__dgram_refusal(cci__dgram_t *ep, const cci_conn_packet_t *in) {
    /* of few, what is early leaves but one more */
    uint32_t reserve = ep->base.recv_buf_count / 4 + (ep->base.recv_buf_count >= CCI__DGRAM_FEW);
    uint32_t left = cci__dgram_buffers_left(ep);
    uint8_t prefix[16];
#ifdef CCI_SMALL
    if (in->request.data_len > CCI_SMALL_REQUEST) return "clients have to wait: they send more than CCI_SMALL_REQUEST";
#endif
    if ((ep->current->refs == 1 || in->request.length != in->request.data_len) &&
        (left <= reserve || !cci__dgram_has_buffer(ep))) {
        if (cci__dgram_peers_hold(ep)) cci__dgram_reclaim(ep, 0);
        return "clients have to wait: the receive buffers are full of requests and messages";
    }
    if (cci_conn_prefix(&ep->base.conns, in->from, prefix) &&
        !cci_conn_source_may(&ep->base.conns, prefix, left > reserve ? left - reserve : 1)) {
        cci__dgram_check_silent(ep);
        return "clients have to wait: one network has the most connections, or undecided requests, that it may have";
    }
    return NULL;
}

/* A request that is to be heard: `event` for the program when all of it is there. */
static void cci__dgram_hear(cci__dgram_t *ep, cci__dconn_t *conn, const cci_conn_request_t *request,
                            cci_evq_event_t *event) {
    event->owner = conn;
    conn->in.event = event;
    event->base.pub.request.type = CCI_EVENT_CONNECT_REQUEST;
    event->base.pub.request.data_len = request->data_len;
    event->base.pub.request.attribute = conn->conn.pub.attribute;
    event->base.pub.request.peer_uri = NULL;
    if (request->length == request->data_len) {
        ep->current->refs++;
        event->buffer = ep->current;
        event->base.pub.request.data_ptr = request->data_len ? request->data : NULL;
        cci_evq_post(&ep->base.evq.urgent, event);
        return;
    }
    event->buffer = cci__dgram_take_buffer(ep);
    event->base.pub.request.data_ptr = event->buffer->data;
    cci_conn_begin_collect(&conn->conn, &conn->in.collecting.pieces, request, ep->base.now_ns);
    cci__dgram_begin_collecting(ep, conn);
    cci__dgram_collect(ep, conn, request);
    cci__dgram_schedule(ep, conn);
}

/* A request of a client that is new. */
static void cci__dgram_new_request(cci__dgram_t *ep, const cci_conn_packet_t *in) {
    const char *refusal = cci__dgram_refusal(ep, in);
    void *key = NULL;
    cci_evq_event_t *event;
    cci__dconn_t *conn;
    if (refusal) {
        cci__dgram_send_busy(ep, in, refusal);
        return;
    }
    if ((in->header.flags & CCI__HEADER_SEALED) &&
        !cci__dgram_is_sound(ep, cci_conn_request_key(&ep->base.conns, in, (cci_endpoint_t *)&ep->base.api.pub, &key)))
        return;
    event = cci__endpoint_event(&ep->base);
    conn = event ? cci__dgram_open_conn(ep, (cci_conn_attribute_t)in->header.attribute, NULL) : NULL;
    if (!conn) {
        cci__dgram_forget(ep, key);
        if (event) cci_evq_return_event(&ep->base.evq, event);
        cci__dgram_check_silent(ep);
        cci__dgram_send_busy(ep, in,
                             "clients have to wait: the connection table is full, or there is no memory for more");
        return;
    }
    cci_conn_begin_request(&ep->base.conns, &conn->conn, in, key);
    cci__dgram_hear(ep, conn, &in->request, event);
}

/* A piece of the server's data. Without memory for it, it is as good as lost: the request is repeated. */
static cci_conn_got_t cci__dgram_collect_answer(cci__dgram_t *ep, cci_conn_packet_t *in) {
    cci_conn_pending_t *pending = ((cci__dconn_t *)(void *)in->conn)->in.request;
    if (in->request.data_len > CCI__DGRAM_REQUEST) return CCI_CONN_GOT_NOTHING;
    if (!pending->answer) {
        pending->answer = (cci_conn_answer_t *)cci_alloc(CCI__DGRAM_ANSWER);
        if (!pending->answer) return CCI_CONN_GOT_NOTHING;
        memset(pending->answer, 0, sizeof *pending->answer);
    }
    return cci_conn_collect_answer(&ep->base.conns, pending->answer, in);
}

/* The peer has left (CCI_SUCCESS), or does not know the connection. */
static void cci__dgram_left(cci__dgram_t *ep, cci__dconn_t *conn, int status) {
    if (conn->conn.state == CCI_CONN_ACCEPTED)
        cci__dgram_accepted(ep, conn, CCI_ERR_DISCONNECTED);
    else
        cci__dgram_break(ep, conn, status);
}

/* What a packet means for its connection. */
static void cci__dgram_got(cci__dgram_t *ep, cci__dconn_t *conn, cci_conn_got_t got) {
    switch (got) {
    case CCI_CONN_GOT_STRAY:
        ep->strays++;
        CCI__STATS(ep->packets_unmatched++);
        break;
    case CCI_CONN_GOT_ACCEPT: cci__dgram_connected(ep, conn, CCI_SUCCESS); break;
    case CCI_CONN_GOT_REJECT: cci__dgram_connected(ep, conn, CCI_ECONNREFUSED); break;
    case CCI_CONN_GOT_CONFIRM: cci__dgram_accepted(ep, conn, CCI_SUCCESS); break;
    case CCI_CONN_GOT_CONFIRMED: cci__dgram_begin_keepalive(&ep->base, &conn->conn); break;
    case CCI_CONN_GOT_CLOSE: cci__dgram_left(ep, conn, CCI_SUCCESS); break;
    case CCI_CONN_GOT_RESET: cci__dgram_left(ep, conn, CCI_ERR_DISCONNECTED); break;
    case CCI_CONN_GOT_END: cci__dgram_close_conn(ep, conn); break;
    default: (void)cci__dgram_is_sound(ep, got); break;
    }
}

/* Any packet but those with frames. */
static void cci__dgram_input_control(cci__dgram_t *ep, const cci_link_rx_t *rx, uint8_t *bytes, uint32_t length,
                                     const cci_conn_header_t *header) {
    cci_conn_packet_t in;
    cci__dconn_t *conn;
    cci_conn_got_t got;
    in.from = &rx->from;
    in.bytes = bytes;
    in.length = length;
    in.header = *header;
    in.now_ns = ep->base.now_ns;
    cci__dgram_trace(ep, header->type, " from ", in.from);
    got = cci_conn_input(&ep->base.conns, &in);
    conn = (cci__dconn_t *)(void *)in.conn;
    if (got == CCI_CONN_GOT_ANSWER) got = cci__dgram_collect_answer(ep, &in);
#ifndef CCI_NO_NAMES
    if (conn && conn->conn.state == CCI_CONN_CONNECTING && conn->in.request->seek) {
        if (got == CCI_CONN_GOT_NOT_HERE) cci__dgram_denied(ep, conn, header);
        if (got == CCI_CONN_GOT_ACCEPT || in.answer == CCI__PKT_REQUEST) cci__dgram_found(conn, &in);
    }
#endif
#ifndef CCI_SMALL
    if (ep->base.notices.suspended > 0 && conn && conn->peer.life.heard == (uint32_t)(ep->base.now_ns >> 20))
        cci__dgram_suspend(ep, conn, 0);
#endif
    if (got == CCI_CONN_GOT_ACCEPT) /* before the answer, which so leaves with others */
        cci__dgram_got(ep, conn, got);
    if (conn && got == CCI_CONN_GOT_NOTHING && (conn->conn.flags & CCI__CONN_PARKED))
        cci__dgram_queue_up(ep, conn); /* the peer is back */
    cci__dgram_answer(ep, &in);
    if (got == CCI_CONN_GOT_REQUEST)
        cci__dgram_new_request(ep, &in);
    else if (got == CCI_CONN_GOT_PIECE)
        cci__dgram_collect(ep, conn, &in.request);
    else if (got != CCI_CONN_GOT_ACCEPT)
        cci__dgram_got(ep, conn, got);
}

/* All of a DATA packet's number, of which the header has a part. */
static uint64_t cci__dgram_number(const cci__dconn_t *conn, const cci_conn_header_t *header) {
    return conn->active ? cci_rel_expand(&conn->active->rel, header->number)
                        : cci__expand32(header->number, conn->state.floor_number);
}

#ifndef CCI_NO_STATS
/* A packet has come for a connection; `length` is without what was taken off. */
static void cci__dgram_tally_packet(cci__dgram_t *ep, const cci__dconn_t *conn, uint32_t length) {
    cci__tally_t *tally = cci__dgram_tally(ep, conn);
    tally->packets_received++;
    tally->packet_bytes_received +=
        length + (ep->header_flags & CCI__HEADER_CRC ? CCI__CRC_SIZE : 0) + (conn->peer.key ? ep->seal->tag_size : 0);
}
#endif

/* What few endpoints do with a packet of a connection that has come. 0: it is not the peer's. */
static CCI__RARE int cci__dgram_open(cci__dgram_t *ep, const cci__dconn_t *conn, const cci_conn_header_t *header,
                                     uint8_t *bytes, uint32_t *length) {
    if (ep->seal &&
        !cci__dgram_is_sound(ep, cci_conn_unseal(&ep->base.conns, &conn->conn, cci__dgram_number(conn, header),
                                                 conn->conn.peer_token, bytes, length)))
        return 0;
    CCI__STATS(if (ep->base.tallies.counted) cci__dgram_tally_packet(ep, conn, *length));
    return 1;
}

static void cci__dgram_input_data(cci__dgram_t *ep, const cci_link_rx_t *rx, uint8_t *bytes, uint32_t length,
                                  const cci_conn_header_t *header) {
    cci__dconn_t *conn = (cci__dconn_t *)(void *)cci_conn_find(&ep->base.conns, header->index, header->token);
    cci__active_t *active;
    int outcome;
    if (!conn || (conn->conn.state != CCI_CONN_OPEN && conn->conn.state != CCI_CONN_ACCEPTED)) {
        cci__dgram_input_control(ep, rx, bytes, length, header);
        return;
    }
    if (CCI__UNLIKELY(ep->looks_closer) && !cci__dgram_open(ep, conn, header, bytes, &length)) return;
    if (!conn->peer.key) {
        conn->conn.flags &= (uint16_t)~CCI__CONN_PINGED; /* the peer is there */
        conn->peer.life.heard = (uint32_t)(ep->base.now_ns >> 20);
    }
    if (CCI__UNLIKELY(conn->conn.state == CCI_CONN_ACCEPTED || conn->conn.step.confirming))
        cci__dgram_got(ep, conn, cci_conn_hears(&conn->conn));
    if (CCI__UNLIKELY(cci__dgram_needs_no_turn(ep, conn, bytes, length))) return;
    active = cci__dgram_activate(ep, conn);
    if (CCI__UNLIKELY(!active && (conn->conn.flags & CCI__CONN_PARKED)))
        cci__dgram_queue_up(ep, conn); /* the peer is back */
    if (!active) {                     /* a DATA packet is as if it were lost */
        CCI__STATS(ep->packets_unheard++);
        return;
    }
    cci__dgram_charge(ep, conn, length);
    ep->pool.codepoint_in = rx->codepoint;
    outcome = cci_rel_input(&active->rel, bytes, length, header->number, ep->current, ep->base.now_ns);
    if (outcome == CCI_REL_NEWEST) { /* sealed ones can be repeated by others, but are then not new */
        conn->conn.flags &= (uint16_t)~CCI__CONN_PINGED;
        conn->peer.life.heard = (uint32_t)(ep->base.now_ns >> 20);
        CCI__TELLS(if (CCI__UNLIKELY(ep->base.notices.suspended > 0)) cci__dgram_suspend(ep, conn, 0));
    }
    if (CCI__UNLIKELY(memcmp(&conn->conn.peer, &rx->from, sizeof rx->from) != 0)) {
        if (outcome != CCI_REL_UNSOUND) cci__dgram_elsewhere(ep, conn, &rx->from, length, outcome == CCI_REL_NEWEST);
    } else if (outcome == CCI_REL_NEWEST) {
        cci__dgram_stayed(active);
    }
    if (conn->conn.state == CCI_CONN_OPEN) cci__dgram_make_ready(ep, active);
    if (CCI__UNLIKELY(ep->pool.starved)) { /* this packet is refused; its repetition may find room */
        ep->pool.starved = 0;
        cci__dgram_reclaim(ep, 0);
    }
}

/* Opens a packet of a group, if they are sealed. Who sent it is in it, and all of its number. */
static cci_conn_got_t cci__dgram_unseal_group(const cci__dgram_t *ep, const cci__dconn_t *conn, uint8_t *bytes,
                                              uint32_t *length) {
    uint64_t number = cci__load32(bytes + 20) | (uint64_t)cci__load32(bytes + 4) << 32;
    uint8_t nonce[CCI_SEAL_NONCE_LEN];
    if ((bytes[3] & CCI__HEADER_SEALED) != (conn->peer.key ? CCI__HEADER_SEALED : 0)) return CCI_CONN_GOT_MISMATCH;
    if (!conn->peer.key) return CCI_CONN_GOT_SOUND;
    if (number >= CCI__SEAL_NUMBERS) return CCI_CONN_GOT_NOTHING;
    cci_conn_write_nonce(nonce, cci__load64(bytes + 8), 0, number, CCI__PKT_GROUP, 0);
    return cci_conn_open_sealed(&ep->base.conns, conn->peer.key, nonce, bytes, length);
}

static void cci__dgram_input_group(cci__dgram_t *ep, const cci_link_rx_t *rx, uint8_t *bytes, uint32_t length) {
    uint32_t i;
    for (i = 0; i < ep->base.group_count; i++) {
        cci__dconn_t *conn = (cci__dconn_t *)(void *)ep->base.groups[i];
        cci__active_t *active;
        if (!rx->is_group || memcmp(&conn->conn.peer, &rx->group, sizeof rx->group) != 0) continue;
        if (!cci__dgram_is_sound(ep, cci__dgram_unseal_group(ep, conn, bytes, &length))) return;
        CCI__STATS(if (ep->base.tallies.counted) cci__dgram_tally_packet(ep, conn, length));
        active = cci__dgram_activate(ep, conn);
        if (!active) {
            CCI__STATS(ep->packets_unheard++);
            return;
        }
        (void)cci_rel_input(&active->rel, bytes, length, 0, ep->current, ep->base.now_ns);
        active->rel.ack_count = active->rel.nack_count = 0; /* anybody can send to a group: it answers nothing */
        cci__dgram_schedule(ep, conn);                      /* pieces of messages have their time */
        return;
    }
    CCI__STATS(ep->packets_unmatched++);
}

/* Takes the checksum off; 0 if it is wrong. */
static int cci__dgram_check(cci__dgram_t *ep, const uint8_t *bytes, uint32_t *length) {
    if (*length >= CCI__HEADER_SIZE + CCI__CRC_SIZE) {
        *length -= CCI__CRC_SIZE;
        if (cci__dgram_crc(ep, bytes, *length) == cci__load32(bytes + *length)) return 1;
        if (bytes[0] == CCI__WIRE_VERSION && !(bytes[3] & CCI__HEADER_CRC)) {
            cci__dgram_mismatched(ep); /* there is none, rather */
            return 0;
        }
    }
    ep->packets_corrupt++;
    return 0;
}

/* Are the flags of a packet, which are not the endpoint's alone, some that it may have? */
#ifdef CCI_NO_NAMES
#define cci__dgram_takes_flags(ep, header) ((ep)->seal && (header)->flags == ((ep)->header_flags | CCI__HEADER_SEALED))
#else
static CCI__RARE int cci__dgram_takes_flags(const cci__dgram_t *ep, const cci_conn_header_t *header) {
    uint32_t flags = header->flags;
    if (header->type == CCI__PKT_REQUEST) flags &= ~CCI__HEADER_NAMED;
    return flags == ep->header_flags || (ep->seal && flags == (ep->header_flags | CCI__HEADER_SEALED));
}
#endif

/* One datagram. */
static void cci__dgram_input(cci__dgram_t *ep, const cci_link_rx_t *rx, uint8_t *bytes, uint32_t length) {
    cci_conn_header_t header;
    if (CCI__UNLIKELY(ep->header_flags & CCI__HEADER_CRC) && !cci__dgram_check(ep, bytes, &length)) return;
    if (!cci_conn_parse(bytes, length, &header)) {
        ep->strays++;
        CCI__STATS(ep->packets_foreign++);
        return;
    }
    if (CCI__UNLIKELY(header.flags != ep->header_flags) && !cci__dgram_takes_flags(ep, &header)) {
        cci__dgram_mismatched(ep);
        return;
    }
    if (CCI__UNLIKELY(rx->is_group) && header.type != CCI__PKT_GROUP) {
        CCI__STATS(ep->packets_foreign++);
        return; /* one packet to a group must not provoke an answer from each of its members */
    }
    if (CCI__LIKELY(header.type == CCI__PKT_DATA))
        cci__dgram_input_data(ep, rx, bytes, length, &header);
    else if (header.type == CCI__PKT_GROUP)
        cci__dgram_input_group(ep, rx, bytes, length);
    else
        cci__dgram_input_control(ep, rx, bytes, length, &header);
}

/* A received buffer: one datagram, also an empty one, or several side by side. */
static void cci__dgram_input_buffer(cci__dgram_t *ep, cci_link_rx_t *rx) {
    uint32_t at = 0, step = rx->length;
    CCI__STATS(ep->bytes_received += step);
    if (rx->segment && rx->segment < rx->length) {
        step = rx->segment;
        CCI__STATS(ep->packets_received += (rx->length - 1) / step); /* besides the first */
    }
    do {
        uint32_t length = cci__min32(step, rx->length - at);
        if (CCI__LIKELY((at & 7) == 0)) {
            cci__dgram_input(ep, rx, rx->data + at, length);
        } else { /* a peer with odd sizes: move it to where its messages are aligned */
            cci_evq_buffer_t *outer = ep->current, *moved = cci__dgram_take_buffer(ep);
            if (!moved) {
                CCI__STATS(ep->packets_unheard++);
                continue;
            }
            memcpy(moved->data, rx->data + at, length);
            ep->current = moved;
            cci__dgram_input(ep, rx, moved->data, length);
            ep->current = outer;
            cci_evq_release_buffer(&ep->base.evq, moved);
        }
    } while ((at += step) < rx->length);
}

static int cci__dgram_receive(cci__dgram_t *ep, int most) {
    int i, count = ep->base.link->receive(ep->base.handle, ep->rx, most);
    if (count > 0) {
        CCI__STATS(ep->packets_received += (uint32_t)count);
        ep->base.now_ns = ep->received_ns = ep->base.link->now(ep->base.handle);
    }
    for (i = 0; i < count; i++) {
        ep->current = ep->rx_buffer[i];
        cci__dgram_input_buffer(ep, &ep->rx[i]);
        /* kept: another takes its place in the batch; keep() saw to it that there is one */
        if (ep->current->refs > 1) {
            cci_evq_buffer_t *fresh = cci__dgram_take_buffer(ep);
            CCI_ASSERT(fresh);
            cci_evq_release_buffer(&ep->base.evq, ep->current);
            ep->rx_buffer[i] = fresh;
            ep->rx[i].data = fresh->data;
        }
        ep->current = NULL;
    }
    return count;
}

/* ==================================================================================================================
 * >>dgram-work
 *
 * Time and work: due timers, a round of work (cci__dgram_pump()), the OS handle, blocking calls and the helper
 * thread.
 *   Parts: time; the OS handle, waiting, and the helper thread.
 * ================================================================================================================== */

/* ---- time ---- */

static void cci__dgram_keepalive(cci__dgram_t *ep, cci__dconn_t *conn) {
    cci__active_t *active;
    uint64_t period_ns = (uint64_t)conn->conn.keepalive_us * 1000;
    if (conn->conn.flags & CCI__CONN_PINGED) {
        cci__dgram_post_keepalive(&ep->base, &conn->conn);
        conn->conn.deadline_ns = CCI__NEVER;
        return;
    }
    active = cci__dgram_activate(ep, conn);
    if (active) {
        active->rel.ping = 1;
        conn->conn.flags |= CCI__CONN_PINGED;
        cci__dgram_make_ready(ep, active);
    }
    conn->conn.deadline_ns = ep->base.now_ns + period_ns;
}

/* Asks a peer that has been silent for long whether it is still there. It needs no hot state, and answers with
 * CONFIRMED. */
static void cci__dgram_probe(cci__dgram_t *ep, cci__dconn_t *conn) {
    uint64_t period_ns = cci__dgram_longest_silence(ep, conn);
    cci_conn_due_t due = cci_conn_probe(&conn->conn, period_ns, ep->base.now_ns, &conn->in.open.probe_ns);
    CCI__TELLS(if (due == CCI_CONN_DUE_CONFIRM && conn->conn.tries > 3) cci__dgram_suspend(ep, conn, 1));
    if (due == CCI_CONN_DUE_CONFIRM)
        cci__dgram_tell(ep, conn, CCI__PKT_CONFIRM);
    else if (due == CCI_CONN_DUE_TIMED_OUT)
        cci__dgram_break(ep, conn, CCI_ETIMEDOUT);
    else if (ep->base.info.probe_idle_s == 0)
        conn->in.open.probe_ns = CCI__NEVER; /* it has answered */
}

/* A connection that is parked has something to do. */
static void cci__dgram_parked_timeout(cci__dgram_t *ep, cci__dconn_t *conn) {
    cci__active_t *active;
    if (cci_rel_parked_until(conn->in.parked.first) <= ep->base.now_ns) {
        cci__dgram_break(ep, conn, CCI_ETIMEDOUT);
    } else if (cci__dgram_parked_due(ep, conn) <= ep->base.now_ns) {
        cci__dgram_pause(ep, conn);
        active = cci__dgram_lend_at_once(ep, conn); /* there may be enough for all again */
        if (active)
            cci__dgram_make_ready(ep, active);
        else
            cci__dgram_tell(ep, conn, CCI__PKT_CONFIRM);
    }
}

/* Does the link know by now where the peer is? */
static int cci__dgram_locate(cci__dgram_t *ep, cci__dconn_t *conn) {
    int status;
    if (!(conn->conn.flags & CCI__CONN_ASKING)) return CCI_SUCCESS;
    status = ep->base.link->resolve(ep->base.handle, NULL, &conn->conn.peer);
    if (status == CCI_SUCCESS) conn->conn.flags &= (uint16_t)~CCI__CONN_ASKING;
    return status;
}

/* A request is repeated. Where the system says that nobody receives at the address, the log does, once; the server may
 * be about to start, and so the request goes on until its time-out. */
static void cci__dgram_ask_why(cci__dgram_t *ep, cci__dconn_t *conn) {
    if (!ep->base.info.refused || (conn->conn.flags & CCI__CONN_UNREACHED) ||
        !ep->base.info.refused(ep->base.handle, &conn->conn.peer))
        return;
    conn->conn.flags |= CCI__CONN_UNREACHED;
    cci__dgram_log_peer(ep, CCI_LOG_WARN, "connection refused: nobody receives at ", &conn->conn.peer,
                        ", which is asked until the time for connecting is over");
}

/* A REQUEST is due: it is sent, or the link is asked once more where to. */
static void cci__dgram_ask(cci__dgram_t *ep, cci__dconn_t *conn) {
    int asked = (conn->conn.flags & CCI__CONN_ASKING) != 0, status;
#ifndef CCI_NO_NAMES
    if (CCI__UNLIKELY(conn->in.request->seek != NULL)) {
        cci__dgram_seek(ep, conn, ep->base.now_ns >= conn->in.request->seek->until_ns);
        return;
    }
#endif
    status = cci__dgram_locate(ep, conn);
    conn->conn.tries -= (uint8_t)(asked && conn->conn.tries > 0); /* what could not be sent is no try */
    if (status == CCI_EAGAIN)
        conn->conn.deadline_ns = cci__min64(ep->base.now_ns + CCI__MS, conn->in.request->give_up_ns);
    else if (status != CCI_SUCCESS)
        cci__dgram_connected(ep, conn, status);
    else {
        if (conn->conn.tries > 1) cci__dgram_ask_why(ep, conn);
        cci__dgram_send_request(ep, conn);
    }
}

/* A connection does not open in time. */
static void cci__dgram_timed_out(cci__dgram_t *ep, cci__dconn_t *conn) {
    if (conn->conn.flags & CCI__CONN_BUSY)
        CCI__TELL(CCI_LOG_WARN, "the server was busy until the time for connecting was over");
    if (conn->conn.state == CCI_CONN_CONNECTING) {
        cci__dgram_log_search(ep, conn);
        cci__dgram_connected(ep, conn, CCI_ETIMEDOUT);
    } else {
        cci__dgram_accepted(ep, conn, CCI_ETIMEDOUT);
    }
}

/* The user's deadline of a connection, or what has to be done again. */
static void cci__dgram_idle(cci__dgram_t *ep, cci__dconn_t *conn) {
    if (conn->conn.state == CCI_CONN_BROKEN) { /* there was no memory for the event */
        conn->conn.deadline_ns = CCI__NEVER;
        cci__dgram_post_end(ep, conn);
    } else if (conn->conn.step.confirming) {
        (void)cci_conn_hears(&conn->conn); /* a server that sleeps so long learns it from the first message */
        cci__dgram_begin_keepalive(&ep->base, &conn->conn);
    } else {
        cci__dgram_keepalive(ep, conn);
    }
}

/* The next step of a connection's opening, use or end is due. */
static void cci__dgram_step(cci__dgram_t *ep, cci__dconn_t *conn) {
    uint64_t give_up_ns = conn->conn.state == CCI_CONN_CONNECTING ? conn->in.request->give_up_ns : CCI__NEVER;
    switch (cci_conn_timeout(&conn->conn, give_up_ns, ep->base.now_ns)) {
    case CCI_CONN_DUE_NOTHING: break;
    case CCI_CONN_DUE_REQUEST: cci__dgram_ask(ep, conn); break;
    case CCI_CONN_DUE_CONFIRM: cci__dgram_tell(ep, conn, CCI__PKT_CONFIRM); break;
    case CCI_CONN_DUE_CLOSE: cci__dgram_send_close(ep, conn); break;
    case CCI_CONN_DUE_TIMED_OUT: cci__dgram_timed_out(ep, conn); break;
    case CCI_CONN_DUE_FORGOTTEN:
        if (conn->conn.state == CCI_CONN_COLLECTING) cci_evq_return_event(&ep->base.evq, conn->in.event);
        cci__dgram_close_conn(ep, conn);
        break;
    case CCI_CONN_DUE_IDLE: cci__dgram_idle(ep, conn); break;
    }
}

static void cci__dgram_timers(cci__dgram_t *ep) {
    cci_timer_t *timer;
    while ((timer = cci__wheel_expire(&ep->base.wheel, ep->base.now_ns)) != NULL) {
        cci__dconn_t *conn = (cci__dconn_t *)(void *)CCI__CONTAINER(timer, cci_conn_t, timer);
        if (conn->active && conn->conn.state == CCI_CONN_OPEN) {
            cci__active_t *active = conn->active;
            cci_rel_timeout(&active->rel, ep->base.now_ns);
            if (CCI__UNLIKELY(CCI__READER(active) != NULL))
                cci_rma_timeout(&ep->rma, active->reader, (ep->base.info.base_mtu - CCI_REL_HEADER - 16) & ~7u,
                                ep->base.now_ns);
            cci__dgram_challenge(ep, conn);
            if (conn->conn.state == CCI_CONN_OPEN) cci__dgram_make_ready(ep, active);
        }
        if (CCI__UNLIKELY(conn->conn.flags & CCI__CONN_PARKED))
            cci__dgram_parked_timeout(ep, conn);
        else if (conn->conn.state == CCI_CONN_OPEN && conn->in.open.probe_ns <= ep->base.now_ns)
            cci__dgram_probe(ep, conn);
        if (CCI__LINGERS(&conn->conn)) {
            if (cci__endpoint_lingers_until(&ep->base, &conn->conn) <= ep->base.now_ns)
                cci__endpoint_end_linger(&ep->base, &conn->conn);
        } else if (conn->conn.deadline_ns <= ep->base.now_ns) {
            cci__dgram_step(ep, conn);
        }
        if (conn->conn.state != CCI_CONN_FREE) cci__dgram_schedule(ep, conn);
    }
}

/* The device is gone and does not come back: what is pending waits for nothing. */
static void cci__dgram_die(cci__dgram_t *ep) {
    uint32_t i;
    ep->base.is_dead = 1;
    for (i = 0; i < ep->base.conns.slab_count * CCI__CONN_SLAB; i++) {
        cci__dconn_t *conn = (cci__dconn_t *)(void *)cci_conn_at(&ep->base.conns, i);
        if (conn->conn.state == CCI_CONN_CONNECTING)
            cci__dgram_connected(ep, conn, CCI_ERR_DEVICE_DEAD);
        else if (conn->conn.state == CCI_CONN_ACCEPTED)
            cci__dgram_accepted(ep, conn, CCI_ERR_DEVICE_DEAD);
        else
            cci__dgram_break(ep, conn, CCI_ERR_DEVICE_DEAD);
    }
}

static void cci__dgram_check_device(cci__dgram_t *ep) {
    if (cci__endpoint_check_link(&ep->base) < 0 && !ep->base.is_dead) cci__dgram_die(ep);
}

enum { CCI__BUSY = 0, CCI__IDLE_IF_NOTHING_COMES = 1, CCI__IDLE = 2 };

/* What waits for company waits no more: all of `soon` goes behind `ready`. */
static void cci__dgram_hurry(cci__dgram_t *ep) {
    cci_list_t *first = ep->soon.next, *last = ep->soon.prev;
    if (cci__list_empty(&ep->soon)) return;
    cci__list_init(&ep->soon);
    first->prev = ep->ready.prev;
    ep->ready.prev->next = first;
    last->next = &ep->ready;
    ep->ready.prev = last;
}

/* Sends for each that is ready, once: what is made ready meanwhile has its turn in the next round. */
static void cci__dgram_output_ready(cci__dgram_t *ep, int idle) {
    cci_list_t round;
    int alone;
    if (!cci__list_empty(&ep->ready)) {
        round = ep->ready;
        round.next->prev = &round;
        round.prev->next = &round;
        cci__list_init(&ep->ready);
        alone = round.next == round.prev;
        while (!cci__list_empty(&round)) {
            cci__active_t *active = CCI__CONTAINER(round.next, cci__active_t, ready);
            cci__dconn_t *conn = active->conn;
            cci__dgram_output(ep, active, idle, alone, ep->base.now_ns);
            cci__dgram_schedule(ep, conn);
        }
    }
    cci__dgram_flush(ep);
}

/* How long the program was away, though it was wanted. One that has a handle is not while it sleeps until the handle
 * wakes it. What is known of that stays for a sixteenth of it, while the program catches up. */
static CCI__RARE void cci__dgram_note_away(cci__dgram_t *ep) {
    uint64_t gone_ns = ep->base.now_ns - cci__min64(ep->base.called_ns, ep->base.now_ns), known_ns = ep->pool.away_ns;
    if (gone_ns > 1000 * CCI__MS) ep->awake_ns = ep->base.now_ns; /* what peers did is still waiting to be received */
    known_ns -= cci__min64(known_ns, 16 * gone_ns);
    if (ep->base.has_fd)
        gone_ns = cci__min64(gone_ns, ep->base.now_ns - cci__min64(ep->base.os_handle.armed_ns, ep->base.now_ns));
    gone_ns = gone_ns < CCI__DGRAM_SELDOM_NS ? 0 : cci__min64(gone_ns, 1000 * CCI__MS);
    ep->pool.away_ns = ep->rma.away_ns = cci__max64(known_ns, gone_ns);
    ep->seldom_ns = ep->pool.away_ns > 0 ? 0 : CCI__DGRAM_SELDOM_NS;
}

/* Where the program calls seldom, acknowledgements may wait behind what was received just now: no packet is judged
 * lost before they are taken in, but for so many rounds at most. */
static CCI__RARE int cci__dgram_has_more(cci__dgram_t *ep, int is_full) {
    if (!is_full || ep->untimed == CCI__DGRAM_UNTIMED) {
        ep->untimed = 0;
        return 0;
    }
    ep->untimed++;
    return 1;
}

/* One round of work. `idle`: the program has nothing else to do, so nothing is kept back; what comes gives it
 * something to do, and acknowledgements a message to go with. Takes `most` datagrams; 0: the program has events enough,
 * and one is taken now and then. */
static int cci__dgram_pump(cci__dgram_t *ep, int idle, int most) {
    int count;
    ep->base.conns.resets = 0;
    if (most == 0 || idle || !cci__list_empty(&ep->ready) || !cci__list_empty(&ep->soon) ||
        cci__polls_look(&ep->base.polls)) {
        ep->base.now_ns = ep->base.link->now(ep->base.handle);
        cci__polls_looked(&ep->base.polls, ep->base.now_ns, 7);
    }
    if (CCI__UNLIKELY(ep->base.now_ns - ep->base.called_ns >= ep->seldom_ns)) cci__dgram_note_away(ep);
    count = most == 0 && ep->base.now_ns < ep->received_ns + 200000 ? 0 : cci__dgram_receive(ep, most > 0 ? most : 1);
    if (count > 0) {
        ep->idle_rounds = 0;
        idle &= CCI__IDLE;
    } else if (ep->idle_rounds < 1000)
        ep->idle_rounds++;
    if (CCI__UNLIKELY(count < 0)) ep->base.check_ns = 0;
    if (CCI__LIKELY(ep->seldom_ns > 0) || !cci__dgram_has_more(ep, count == most && most > 0)) cci__dgram_timers(ep);
    ep->base.called_ns = ep->base.now_ns;
    if (ep->base.now_ns >= ep->base.check_ns) cci__dgram_check_device(ep);
    idle = idle || ep->idle_rounds >= 2;
    if (idle) cci__dgram_hurry(ep);
    if (CCI__UNLIKELY(ep->waiting_count > 0)) cci__dgram_next_turns(ep);
    cci__dgram_output_ready(ep, idle);
    return count;
}

/* ---- the OS handle, waiting, and the helper thread ---- */

static int cci__dgram_has_events(const cci__dgram_t *ep) {
    return ep->base.evq.urgent.head || ep->base.evq.done.head || !cci__list_empty(&ep->inbox);
}

static int cci__dgram_messages(cci__endpoint_t *base, const cci_evq_fifo_t **received, int *is_full) {
    const cci__dgram_t *ep = (const cci__dgram_t *)base;
    int has_messages = !cci__list_empty(&ep->inbox);
    (void)received;
    *is_full = has_messages && cci__dgram_buffers_left(ep) == 0;
    return has_messages;
}

static uint64_t cci__dgram_deadline(cci__endpoint_t *base) {
    const cci__dgram_t *ep = (const cci__dgram_t *)base;
    uint64_t at = cci__list_empty(&ep->ready) ? cci__wheel_deadline(&base->wheel) : 0;
    if (CCI__UNLIKELY(ep->waiting_count > 0)) /* turns that are not taken end */
        at = cci__min64(at, base->now_ns + 10 * CCI__MS);
    return base->link->up ? cci__min64(at, base->check_ns + 900 * CCI__MS) : at;
}

/* The deadline for one who is going to sleep until then: timers that come first and whose time has moved back since
 * they were armed are put where they belong. A packet makes one timer stale at most, so this costs little for each. */
static uint64_t cci__dgram_sleep_deadline(cci__endpoint_t *base) {
    cci__dgram_t *ep = (cci__dgram_t *)base;
    cci_timer_t *timer;
    uint32_t moved;
    for (moved = 0; moved < 64 && (timer = cci__wheel_first(&base->wheel)) != NULL; moved++) {
        const cci__dconn_t *conn = (const cci__dconn_t *)(void *)CCI__CONTAINER(timer, cci_conn_t, timer);
        uint64_t at = cci__dgram_due(ep, conn);
        if (at <= timer->at_ns || timer->at_ns <= base->now_ns) break;
        cci__timer_arm(&base->wheel, timer, at);
    }
    return cci__dgram_deadline(base);
}

#ifndef CCI_NO_WAKE
/* Could a send succeed that was refused? Also where it would fail for another reason. */
static int cci__dgram_may_send(void *endpoint, const cci__refusal_t *refusal) {
    cci__dgram_t *ep = (cci__dgram_t *)endpoint;
    cci__dconn_t *conn = (cci__dconn_t *)(void *)cci_conn_at(&ep->base.conns, refusal->index);
    cci__active_t *active = conn->active;
    if (conn->conn.state != CCI_CONN_OPEN || (conn->conn.flags & CCI__CONN_UNREADY)) return 1;
    if (!active) return !(conn->conn.flags & CCI__CONN_WAITING);
    if (ep->waiting_count > 0 && !cci__list_empty(&active->rel.items) &&
        (active->rel.leaving || active->rel.probes >= 2))
        return 0;
    if (active->op_count >= ep->base.send_buf_count + CCI__DGRAM_BULKS ||
        (!ep->free_ops && ep->stores[CCI__STORE_OPS].made >= ep->stores[CCI__STORE_OPS].most))
        return 0;
    return cci__rel_has_blocks(&active->rel, 1, 8 + cci__pad8(refusal->length));
}

/* A send has ended with a status, where there is a second descriptor. */
static CCI__RARE void cci__dgram_note_send(cci__dgram_t *ep, cci__dconn_t *conn, uint32_t length, int status) {
    int is_refused = status == CCI_ENOBUFS || status == CCI_EAGAIN;
    conn->conn.flags &= (uint16_t)~CCI__CONN_DENIED;
    conn->conn.flags |= (uint16_t)(is_refused ? CCI__CONN_DENIED : 0);
    cci__wakes_note(&ep->base.wakes, conn->conn.index % CCI__CONN_MOST, length, is_refused);
}
#endif

/* At the end of every call that may have changed what the OS handle or the helper thread has to know. */
static inline void cci__dgram_arm(cci__dgram_t *ep) {
    if (ep->base.has_fd || ep->base.info.progress_thread) cci__endpoint_arm(&ep->base);
}

static void cci__dgram_work(cci__endpoint_t *base) {
    (void)cci__dgram_pump((cci__dgram_t *)base, CCI__IDLE, CCI__DGRAM_BATCH_RX);
}

static void cci__dgram_drop_op(cci__dgram_t *ep, cci__op_t *op) {
    if (!op) return;
    op->event.next = ep->free_ops;
    ep->free_ops = &op->event;
}

/* Waits for an operation, and returns its status. */
static int cci__dgram_block(cci__dgram_t *ep, cci__op_t *op) {
    int status;
    cci__endpoint_block(&ep->base, &op->done);
    status = op->rel.status;
    cci__dgram_drop_op(ep, op);
    return status;
}

/* ==================================================================================================================
 * >>dgram-create
 *
 * Endpoints are made, with the memory that they begin with, and end.
 * ================================================================================================================== */

#ifdef CCI_SMALL
/* How many of each kind there are, in the order of CCI_REL_BLOCKS and CCI__STORE_ACTIVES; the counts of buffers raise
 * some. */
static const uint16_t cci__small_most[CCI__STORES] = {1,
                                                      0,
                                                      0,
                                                      CCI_SMALL_RMAS,
                                                      CCI_SMALL_PACKETS,
                                                      CCI_SMALL_ACTIVE,
                                                      CCI_SMALL_ACTIVE,
                                                      CCI_SMALL_ACTIVE,
                                                      CCI_SMALL_ACTIVE,
                                                      CCI__SMALL_READERS,
                                                      0,
                                                      CCI__SMALL_READERS ? CCI_SMALL_RMAS : 0,
                                                      CCI__SMALL_READERS *CCI__DGRAM_CHUNKS,
                                                      1,
                                                      1};
#endif

/* Gives a kind its part of the memory, in 128ths, and a list for those that are free. */
static void cci__dgram_init_store(cci__dgram_t *ep, int kind, cci_list_t *list, size_t size, uint32_t part) {
    cci__store_t *store = &ep->stores[kind];
#ifdef CCI_SMALL
    store->most = cci__small_most[kind];
    (void)part;
#else
    uint64_t most = ep->memory_limit / 128 * part / size;
    store->most = (uint32_t)cci__min64(cci__max64(most, 4), UINT32_MAX / 16);
#endif
    store->free = list;
    store->size = (uint32_t)size;
    store->made = 0;
}

/* What the reliability protocol's pool may have. */
static void cci__dgram_init_pool(cci__dgram_t *ep) {
    cci_rel_pool_t *pool = &ep->pool;
    int has_middle = pool->block_size > 2 * CCI__REL_MIDDLE;
    cci__dgram_init_store(ep, CCI_REL_BLOCKS, &pool->blocks, sizeof(cci_rel_block_t), 36);
    cci__dgram_init_store(ep, CCI_REL_MIDDLE, &pool->middle, CCI__REL_MIDDLE, 12);
    if (!has_middle) ep->stores[CCI_REL_MIDDLE].most = 0;
    cci__dgram_init_store(ep, CCI_REL_LARGE, &pool->large, pool->block_size, has_middle ? 16 : 28);
    cci__dgram_init_store(ep, CCI_REL_BULKS, &pool->bulks, sizeof(cci_rel_item_t), 4);
    cci__dgram_init_store(ep, CCI_REL_RECORDS, &pool->records, sizeof(cci_rel_sent_t), 10);
    cci__dgram_init_store(ep, CCI_REL_PARTS, &pool->parts, sizeof(cci_rel_part_t), 2);
    cci__dgram_init_store(ep, CCI_REL_NUMBERS, &pool->numbers, sizeof(cci_rel_numbers_t), 2);
    cci__dgram_init_store(ep, CCI_REL_GAPS, &pool->gaps, sizeof(cci_rel_gaps_t), 2);
    pool->more = cci__dgram_more;
    pool->block_total = ep->stores[CCI_REL_BLOCKS].most;
    pool->middle_total = ep->stores[CCI_REL_MIDDLE].most;
    pool->large_total = ep->stores[CCI_REL_LARGE].most;
    pool->record_free = pool->record_total = ep->stores[CCI_REL_RECORDS].most;
    pool->part_free = pool->part_total = ep->stores[CCI_REL_PARTS].most;
    pool->gap_free = ep->stores[CCI_REL_GAPS].most;
}

static void cci__dgram_init_stores(cci__dgram_t *ep) {
    size_t active_size = sizeof(cci__active_t);
#ifndef CCI_NO_ECN
    if (ep->base.link->version >= 3 && ep->base.info.ecn) {
        active_size = sizeof(cci__active_ecn_t);
        ep->pool.ecn_at = (uint32_t)(offsetof(cci__active_ecn_t, ecn) - offsetof(cci__active_t, rel));
    }
#endif
    cci__dgram_init_store(ep, CCI__STORE_ACTIVES, &ep->free_actives, active_size, 28);
    cci__dgram_init_store(ep, CCI__STORE_READERS, &ep->readers, sizeof(cci_rma_reader_t), 2);
    cci__dgram_init_store(ep, CCI__STORE_PATHS, &ep->paths, sizeof(cci_conn_path_t), 1);
    cci__dgram_init_store(ep, CCI__STORE_READS, &ep->rma.reads, sizeof(cci_rma_read_t), 2);
    cci__dgram_init_store(ep, CCI__STORE_REQUESTS, &ep->rma.requests, sizeof(cci_rma_request_t), 2);
    cci__dgram_init_store(ep, CCI__STORE_OPS, NULL, sizeof(cci__op_t), 7);
    cci__dgram_init_store(ep, CCI__STORE_ANSWERS, &ep->answers, CCI__DGRAM_ANSWER, 1);
#ifndef CCI_NO_ATOMICS
    cci__dgram_init_store(ep, CCI__STORE_ATOMICS, &ep->free_atomics, sizeof(cci_rma_atomics_t), 1);
#endif
    ep->rma.request_free = ep->stores[CCI__STORE_REQUESTS].most;
    cci__dgram_init_pool(ep);
}

/* Operations have lists of their own. */
static int cci__dgram_grow_ops(cci__dgram_t *ep) {
    cci__store_t *store = &ep->stores[CCI__STORE_OPS];
    uint32_t count = cci__min32(CCI__DGRAM_SLAB / store->size, store->most - store->made);
    cci__op_t *ops = count > 0 ? (cci__op_t *)cci__dgram_memory(ep, count * sizeof *ops) : NULL;
    if (!ops) return 0;
    store->made += count;
    while (count-- > 0) {
        memset(&ops[count], 0, sizeof ops[count]);
        ops[count].event.base.endpoint = &ep->base.api;
        ops[count].event.pool = CCI_EVQ_OPERATION;
        ops[count].event.next = ep->free_ops;
        ep->free_ops = &ops[count].event;
    }
    return 1;
}

/* An event for a message that has arrived, NULL if the program holds as many as it allows. */
static cci_evq_event_t *cci__dgram_message_event(cci__dgram_t *ep) {
    cci_evq_event_t *event = cci_evq_take_event(&ep->base.evq, CCI_EVQ_RECV);
    uint32_t count = CCI__DGRAM_SLAB / sizeof *event / 4;
    if (CCI__LIKELY(event != NULL) || ep->base.evq.recv_out >= ep->base.evq.recv_limit) return event;
    event = (cci_evq_event_t *)cci__dgram_memory(ep, count * sizeof *event);
    if (!event) return NULL;
    cci_evq_add_events(&ep->base.evq, &ep->base.api, CCI_EVQ_RECV, event, count);
    return cci_evq_take_event(&ep->base.evq, CCI_EVQ_RECV);
}

static void cci__dgram_look_closer(cci__dgram_t *ep) {
    ep->looks_closer = ep->wire != NULL || ep->seal != NULL;
    CCI__STATS(ep->looks_closer |= ep->base.tallies.counted != NULL);
}

/* Memory for what is added to packets, if anything is. */
static int cci__dgram_allocate_wire(cci__dgram_t *ep) {
    if (ep->overhead == 0) return 1;
    ep->wire_stride = (ep->base.info.mtu + ep->overhead + 63) & ~63u;
    ep->wire = (uint8_t *)cci__dgram_memory(ep, (size_t)CCI__DGRAM_BATCH_TX * ep->wire_stride);
    if ((ep->header_flags & CCI__HEADER_CRC) && (uint64_t)ep->base.recv_buf_count * ep->buffer_size >= 256 * 1024) {
        ep->crc_table = (uint32_t(*)[256])cci__dgram_memory(ep, 8 * sizeof *ep->crc_table); /* 3 % of the buffers */
        if (!ep->crc_table) return 0;
        cci__crc32c_tables(ep->crc_table);
    }
    return ep->wire != NULL;
}

/* How many blocks a connection may have. What the program asks for, it gets, however little memory it has allowed. */
static void cci__dgram_limit_blocks(cci__dgram_t *ep, uint32_t count) {
    cci__store_t *blocks = &ep->stores[CCI_REL_BLOCKS], *large = &ep->stores[CCI_REL_LARGE];
    cci__store_t *bulks = &ep->stores[CCI_REL_BULKS], *reads = &ep->stores[CCI__STORE_READS];
#ifdef CCI_SMALL
    blocks->most = cci__max32(blocks->most, count); /* one connection may have all: mostly there is but one */
    if (ep->pool.block_size > CCI__REL_SMALL) large->most = cci__max32(large->most, count);
#else
    uint32_t all = count + (count * 11 + 20) / 21 + 1; /* one may have `count` of these: cci__rel_block_share() */
    blocks->most = cci__max32(blocks->most, all);
    large->most = cci__max32(large->most, all);
#endif
    ep->pool.block_total = blocks->most;
    ep->pool.large_total = large->most;
    ep->pool.block_limit = ep->base.send_buf_count = count;
#ifdef CCI_SMALL
    ep->pool.bulk_limit = CCI__DGRAM_BULKS;
    (void)bulks, (void)reads;
#else
    ep->pool.bulk_limit = cci__max32(count, CCI__DGRAM_BULKS);
    bulks->most = cci__max32(bulks->most, ep->pool.bulk_limit);
    reads->most = cci__max32(reads->most, ep->pool.bulk_limit);
#endif
    ep->stores[CCI__STORE_OPS].most = cci__max32(ep->stores[CCI__STORE_OPS].most, count + ep->pool.bulk_limit);
}

/* Requests whose senders have proven nothing may wait for a quarter of the receive buffers. */
static uint32_t cci__dgram_unproven_most(uint32_t recv_buf_count) {
    return cci__max32(cci__min32(recv_buf_count / 4, CCI__CONN_UNPROVEN), 1);
}

/* The counts of buffers that the link and the configuration leave open, and what follows from them. */
static int cci__dgram_set_counts(cci__dgram_t *ep) {
    cci_link_info_t *info = &ep->base.info;
    uint64_t receive = cci__min64(ep->memory_limit / 8 / ep->buffer_size, CCI__DGRAM_BUFS);
    uint32_t send = cci__min32(ep->stores[CCI_REL_LARGE].most, ep->stores[CCI_REL_BLOCKS].most) / 8 * 5;
#ifdef CCI_SMALL
    if (!info->send_buf_count) info->send_buf_count = CCI_SMALL_SENDS;
    if (!info->recv_buf_count) info->recv_buf_count = CCI_SMALL_RECEIVES;
#endif
    cci__dgram_limit_blocks(ep, info->send_buf_count ? info->send_buf_count
                                                     : cci__max32(cci__min32(send, CCI__DGRAM_BUFS), 1));
    ep->base.recv_buf_count =
        info->recv_buf_count ? info->recv_buf_count : cci__max32((uint32_t)receive, CCI__DGRAM_FEW);
    if (ep->base.recv_buf_count > SIZE_MAX / 2 / ep->buffer_size) return 0;
    ep->base.evq.recv_limit = ep->base.recv_buf_count;
    ep->base.conns.unproven_most = cci__dgram_unproven_most(ep->base.recv_buf_count);
    ep->buffers_unmade = ep->base.recv_buf_count + CCI__DGRAM_BATCH_RX;
    return 1;
}

/* The buffers of the batch that is received. */
static int cci__dgram_fill_batch(cci__dgram_t *ep) {
    uint32_t i;
    for (i = 0; i < CCI__DGRAM_BATCH_RX; i++) {
        ep->rx_buffer[i] = cci__dgram_take_buffer(ep);
        if (!ep->rx_buffer[i]) return 0;
        ep->rx[i].data = ep->rx_buffer[i]->data;
        ep->rx[i].capacity = ep->buffer_size;
    }
    return 1;
}

#ifdef CCI_SMALL
static int cci__dgram_fill_events(cci__dgram_t *ep) {
    uint32_t count = ep->base.recv_buf_count + CCI__DGRAM_CONTROL;
    cci_evq_event_t *events = (cci_evq_event_t *)cci__dgram_memory(ep, count * sizeof *events);
    if (!events) return 0;
    cci_evq_add_events(&ep->base.evq, &ep->base.api, CCI_EVQ_RECV, events, ep->base.recv_buf_count);
    cci_evq_add_events(&ep->base.evq, &ep->base.api, CCI_EVQ_CONTROL, events + ep->base.recv_buf_count,
                       CCI__DGRAM_CONTROL);
    return 1;
}
#endif

#ifdef CCI_MEMORY_BYTES
/* Takes all of the memory at once: nothing is allocated afterwards. */
static int cci__dgram_fill_stores(cci__dgram_t *ep) {
    int kind;
    for (kind = 0; kind < CCI__STORES; kind++)
        while (ep->stores[kind].made < ep->stores[kind].most)
            if (!(kind == CCI__STORE_OPS ? cci__dgram_grow_ops(ep) : cci__dgram_grow_store(ep, kind))) return 0;
    while (ep->buffers_unmade > 0)
        if (!cci__dgram_grow_buffers(ep)) return 0;
#ifdef CCI_SMALL
    return cci__dgram_fill_events(ep);
#else
    return 1;
#endif
}
#endif

/* The memory of an endpoint without traffic. All else is allocated when it is needed. */
static int cci__dgram_allocate(cci__dgram_t *ep, const uint64_t *keys) {
    uint32_t heads = 0;
    cci_rma_region_t *regions = (cci_rma_region_t *)cci__dgram_memory(ep, CCI__DGRAM_REGIONS * sizeof *regions);
    cci_rma_chunk_t *chunks = (cci_rma_chunk_t *)cci__dgram_memory(ep, CCI__DGRAM_CHUNKS * sizeof *chunks);
    uint8_t **slabs = (uint8_t **)cci__dgram_memory(ep, CCI__CONN_SLABS * sizeof *slabs);
    uint8_t *zeros = (uint8_t *)cci__dgram_memory(ep, ep->base.info.mtu);
    uint64_t *seen = (uint64_t *)cci__dgram_memory(ep, 2 * CCI__CONN_SEEN * sizeof *seen);
    uint32_t *buckets = (uint32_t *)cci_alloc(2 * CCI__CONN_SLAB * sizeof *buckets);
    ep->base.conns.buckets = buckets; /* so that it is released on failure */
    ep->slots = (cci__tx_slot_t *)cci__dgram_memory(ep, CCI__DGRAM_BATCH_TX * sizeof *ep->slots);
    if (!regions || !chunks || !slabs || !zeros || !seen || !buckets || !ep->slots) return 0;
    memset(ep->slots, 0, CCI__DGRAM_BATCH_TX * sizeof *ep->slots);
    memset(zeros, 0, ep->base.info.mtu);
    cci_evq_init(&ep->base.evq);
    cci_conn_table_init(&ep->base.conns, keys, sizeof(cci__dconn_t), slabs);
    ep->base.conns.base = ep->base.info.index_base;
    ep->base.conns.seal = ep->seal;
    ep->base.conns.prefix = ep->base.link->version >= 2 ? ep->base.link->prefix : NULL;
    ep->base.conns.link = ep->base.handle;
    ep->base.conns.window = ep->base.info.receive_window;
    ep->base.conns.mtu = ep->base.info.base_mtu;
    cci_conn_table_remembers(&ep->base.conns, seen);
    (void)cci_conn_rehash(&ep->base.conns, buckets, 2 * CCI__CONN_SLAB);
    /* space for the packets' heads between the pieces */
    if (ep->base.max_send_size > ep->base.info.base_mtu - CCI_REL_HEADER - 8)
        heads = (ep->base.max_send_size / (ep->base.info.base_mtu - CCI__SLOT_HEAD - 7) + 1) * (CCI__SLOT_HEAD + 8);
    cci_rel_pool_init(&ep->pool, &cci__dgram_sink,
                      cci__max32(ep->base.info.mtu - CCI_REL_HEADER, 8 + cci__pad8(ep->base.max_send_size) + heads),
                      ep->base.info.base_mtu);
    ep->pool.congestion = cci__find_congestion(ep->base.info.congestion);
    ep->pool.zeros = zeros;
    ep->pool.overhead = ep->overhead;
    /* a third of what cci__rel_limit lets come */
    ep->pool.ack_bytes = cci__min32(ep->base.info.receive_window / 24, 196608);
    cci_rma_table_init(&ep->rma, keys + 2, regions, CCI__DGRAM_REGIONS, NULL, 0, chunks, CCI__DGRAM_CHUNKS, NULL, 0);
    ep->rma.endpoint_id = keys[4];
    ep->rma.receive_window = ep->base.info.receive_window;
    ep->rma.congestion = ep->pool.congestion;
    cci__dgram_init_stores(ep);
    if (!cci__dgram_set_counts(ep) || !cci__dgram_allocate_wire(ep) || !cci__dgram_grow(ep) ||
        !cci__dgram_fill_batch(ep))
        return 0;
    ep->pool.slots = ep->wire == NULL;
#ifdef CCI_MEMORY_BYTES
    return cci__dgram_fill_stores(ep);
#else
    return 1;
#endif
}

static void cci__dgram_free(cci__dgram_t *ep) {
    cci__memory_t *block = ep->memory;
    uint32_t i;
    for (i = 0; i < ep->base.conns.slab_count * CCI__CONN_SLAB; i++) {
        cci__dconn_t *conn = (cci__dconn_t *)(void *)cci_conn_at(&ep->base.conns, i);
        CCI_ASSERT(conn);
        if (conn->conn.state == CCI_CONN_CONNECTING) {
            cci_release(conn->in.request->answer);
            cci_release(conn->in.request);
        }
        cci__dgram_forget(ep, conn->peer.key);
    }
    cci__endpoint_free(&ep->base);
    cci_release(ep->waiting[0].index);
    cci_release(ep->waiting[1].index);
    while (block) {
        cci__memory_t *next = block->next;
        cci_release(block);
        block = next;
    }
    cci_release(ep);
}

/* Fills in what the link left open; 0 if what it said can't be. */
static int cci__dgram_defaults(cci__dgram_t *ep) {
    cci_link_info_t *info = &ep->base.info;
    uint32_t wire_mtu = cci__min32(info->mtu, 65504);
    ep->seal = cci_seal_hooks();
    ep->header_flags = (uint8_t)(info->crc ? CCI__HEADER_CRC : 0);
    ep->traces = cci_log_wants(CCI_LOG_DEBUG);
    ep->overhead = (info->crc ? CCI__CRC_SIZE : 0) + (ep->seal ? ep->seal->tag_size : 0);
    info->mtu = wire_mtu > ep->overhead ? (wire_mtu - ep->overhead) & ~7u : 0;
    if (info->mtu < 256 || (info->congestion && !cci__find_congestion(info->congestion))) {
        CCI__TELL(CCI_LOG_ERROR, info->mtu < 256 ? "the link's datagrams are too short: 256 bytes are needed"
                                                 : "there is no congestion control of the name that was configured");
        return 0;
    }
    info->base_mtu =
        info->base_mtu ? cci__min32(info->base_mtu, wire_mtu) - cci__min32(info->base_mtu, ep->overhead) : info->mtu;
    info->base_mtu = cci__max32(cci__min32(info->base_mtu, info->mtu) & ~7u, 256);
    if (info->receive_window == 0) info->receive_window = 64 * info->mtu;
    info->receive_window = cci__max32(info->receive_window, 2 * info->mtu);
    ep->base.send_timeout_us = info->send_timeout_us ? info->send_timeout_us : CCI__DGRAM_SEND_TIMEOUT_US;
    ep->base.max_send_size =
        info->max_send_size ? cci__min32(info->max_send_size, 65472) : info->mtu - CCI_REL_HEADER - 8;
    if (ep->base.api.pub.device->max_send_size > 0)
        ep->base.max_send_size = cci__min32(ep->base.max_send_size, ep->base.api.pub.device->max_send_size);
    ep->buffer_size = cci__max32(wire_mtu, cci__max32(ep->base.max_send_size, CCI__DGRAM_REQUEST) + CCI_REL_HEADER + 8);
    ep->memory_limit = info->memory_limit ? info->memory_limit : CCI__DGRAM_MEMORY;
#ifdef CCI_SMALL
    ep->buffer_size = (ep->buffer_size + 7) & ~7u;
#else
    ep->buffer_size = info->coalesce ? 65536 : (ep->buffer_size + CCI_REL_HEADER + 8 + 63) & ~63u;
#endif
    return 1;
}

static void cci__dgram_forked(cci_endpoint_base_t *base) {
    cci__dgram_t *ep = (cci__dgram_t *)(void *)base;
    CCI__WAKES(cci__wakes_close(&ep->base.wakes));
    if (ep->base.info.forked) ep->base.info.forked(ep->base.handle);
}

static int cci_dgram_create(const cci_transport_t *transport, cci_device_t *device, const char *service, int flags,
                            cci_endpoint_base_t **endpoint, cci_os_handle_t *fd) {
    cci__dgram_t *ep = (cci__dgram_t *)cci_alloc(sizeof *ep);
    uint64_t keys[5];
    int status;
#ifndef CCI_NO_NAMES
    uint64_t name;
    char port[6];
#endif
    if (!ep) return CCI_ENOMEM;
    memset(ep, 0, sizeof *ep);
    cci__endpoint_init(&ep->base, cci__dgram_engine(), device, fd != NULL);
    ep->base.api.ops = cci__dgram_ops();
    ep->base.api.forked = cci__dgram_forked;
    ep->base.scheme = transport->name;
    ep->base.link = transport->link;
    ep->base.info.os_handle = -1;
    ep->base.info.share = (flags & CCI_ENDPOINT_SHARED) != 0;
    ep->given_most = ep->heard_most = 1;
    cci__list_init(&ep->ready);
    cci__list_init(&ep->soon);
    cci__list_init(&ep->inbox);
    cci__list_init(&ep->lent);
    cci__list_init(&ep->free_actives);
    cci__list_init(&ep->readers);
    cci__list_init(&ep->paths);
    cci__list_init(&ep->answers);
#ifndef CCI_NO_ATOMICS
    cci__list_init(&ep->free_atomics);
#endif
#ifndef CCI_NO_NAMES
    name = cci_conn_named_port(service, service ? cci_service_name(device, service) : NULL, port);
    if (name) service = port;
#endif
    status = ep->base.link->open(device, service, fd != NULL, &ep->base.handle, &ep->base.info);
#ifndef CCI_NO_NAMES
    if (status == CCI_SUCCESS && name && ep->base.info.is_shared)
        status = CCI_ERR_NOT_IMPLEMENTED; /* who has the name? */
#endif
    if (status == CCI_SUCCESS && ep->base.info.share && !ep->base.info.is_shared) status = CCI_ERR_NOT_IMPLEMENTED;
    if (status == CCI_SUCCESS && (!cci__dgram_defaults(ep) || cci_random(keys, sizeof keys) != CCI_SUCCESS))
        status = CCI_ERROR;
    if (status == CCI_SUCCESS && !cci__dgram_allocate(ep, keys)) status = CCI_ENOMEM;
    if (status != CCI_SUCCESS) {
        cci__dgram_free(ep);
        return status;
    }
#ifndef CCI_NO_NAMES
    ep->base.conns.name = name;
#endif
    cci__dgram_look_closer(ep);
    CCI__TELLS(if (ep->base.info.state) ep->base.link_state = *ep->base.info.state);
    ep->base.now_ns = ep->base.called_ns = ep->base.link->now(ep->base.handle);
    cci__wheel_init(&ep->base.wheel, ep->base.now_ns);
    if (fd) *fd = ep->base.info.os_handle;
    *endpoint = &ep->base.api;
#ifndef CCI_NO_THREADS
    if (ep->base.info.progress_thread && ep->base.link->wait &&
        !cci__endpoint_start_thread(&ep->base, cci__endpoint_help)) {
        cci__dgram_free(ep);
        return CCI_ENOMEM;
    }
#endif
    return CCI_SUCCESS;
}

/* Sends what a connection owes: a peer's last message is complete when it is acknowledged. */
static void cci__dgram_send_owed(cci__dgram_t *ep, cci__dconn_t *conn) {
    cci__active_t *active = conn->active;
    if (!active || !active->rel.reliable || active->rel.number_count == 0 || conn->conn.state != CCI_CONN_OPEN) return;
    active->rel.ack_count++;
    cci_rel_open_packet(&active->rel, &cci__dgram_slot(ep)->packet, 0, ep->base.now_ns);
    cci__dgram_commit_data(ep, conn);
}

/* Ends what is pending, and what the program has not taken. */
static void cci__dgram_quiet(cci__dgram_t *ep, cci__dconn_t *conn) {
    cci__dgram_send_owed(ep, conn);
    cci__dgram_abort(ep, conn, CCI_ERR_DISCONNECTED);
    cci__dgram_take_back_events(ep, conn);
    cci__dgram_drop_active(ep, conn);
}

/* What is left of the connection waits until the peer knows that it has ended. */
static void cci__dgram_begin_close(cci__dgram_t *ep, cci__dconn_t *conn) {
    if (ep->base.is_dead || !cci_conn_has_listener(&conn->conn)) {
        cci__dgram_close_conn(ep, conn);
        return;
    }
#ifndef CCI_NO_ATOMICS
    cci__dgram_drop_atomics(ep, conn); /* it takes nothing any more */
#endif
    ep->base.closing++;
    cci_conn_begin_close(&conn->conn);
    conn->conn.flags &= CCI__CONN_COUNTED;
    cci__dgram_send_close(ep, conn);
    cci__dgram_schedule(ep, conn);
}

/* The endpoint ends. 1: the connection's peer is to be told. */
static int cci__dgram_ends(cci__endpoint_t *base, cci_conn_t *conn) {
    if (!cci_conn_has_listener(conn)) return 0;
    cci__dgram_quiet((cci__dgram_t *)base, (cci__dconn_t *)(void *)conn);
    return 1;
}

static int cci__dgram_tell_close(cci__endpoint_t *base, cci_conn_t *conn) {
    cci__dgram_tell((cci__dgram_t *)base, (cci__dconn_t *)(void *)conn, CCI__PKT_CLOSE);
    return 1;
}

static int cci__dgram_receive_batch(cci__endpoint_t *base) {
    cci__dgram_t *ep = (cci__dgram_t *)base;
    int count;
    cci__dgram_flush(ep);
    count = cci__dgram_receive(ep, CCI__DGRAM_BATCH_RX);
    cci__dgram_flush(ep);
    return count > 0;
}

static int cci__dgram_destroy(cci_endpoint_base_t *base) {
    cci__dgram_t *ep = (cci__dgram_t *)(void *)base;
    int round;
    cci__endpoint_stop_thread(&ep->base);
    cci__dgram_lock(ep);
    ep->base.now_ns = ep->base.link->now(ep->base.handle);
    for (round = 0; round < 64; round++) /* what has arrived already is taken, or will never be acknowledged */
        if (cci__dgram_receive(ep, CCI__DGRAM_BATCH_RX) <= 0) break;
    cci__endpoint_close_all(&ep->base);
    cci__dgram_flush(ep);
    cci__dgram_unlock(ep);
    cci__dgram_free(ep);
    return CCI_SUCCESS;
}

/* ==================================================================================================================
 * >>dgram-calls
 *
 * The calls of a program, with the endpoint's lock held: each changes some state and leaves the rest to a round of
 * work.
 *   Parts: connecting; events; options; messages; remote memory access.
 * ================================================================================================================== */

/* ---- connecting ---- */

/* Keeps the data of an answer for as long as its client may ask for it; NULL if there is no memory for it. */
static cci_conn_answer_t *cci__dgram_keep_answer(cci__dgram_t *ep, const void *data, uint32_t data_len) {
    cci_conn_answer_t *answer = (cci_conn_answer_t *)cci__dgram_take(ep, CCI__STORE_ANSWERS);
    if (!answer) return NULL;
    answer->data_len = data_len;
    memcpy(answer + 1, data, data_len);
    return answer;
}

/* Accepts or rejects a request, and tells the client. An accept keeps an event for its outcome. */
static int cci__dgram_decide(cci__endpoint_t *base, cci_evq_event_t *request, int accepts, void *context,
                             const void *data, uint32_t data_len) {
    cci__dgram_t *ep = (cci__dgram_t *)base;
    cci__dconn_t *conn = (cci__dconn_t *)request->owner;
    cci_evq_event_t *event = NULL;
    cci_conn_answer_t *answer = NULL;
    if (accepts && base->is_dead) return CCI_ERR_DEVICE_DEAD;
    if (data_len > CCI__DGRAM_REQUEST) return CCI_ERR_NOT_IMPLEMENTED;
    if (data_len && (answer = cci__dgram_keep_answer(ep, data, data_len)) == NULL) return CCI_ENOBUFS;
    if (accepts && (event = cci__endpoint_event(base)) == NULL) {
        if (answer) cci__dgram_give_back(ep, CCI__STORE_ANSWERS, answer);
        return CCI_ENOMEM;
    }
    conn->in.decided.event = event;
    conn->in.decided.answer = answer;
    if (answer) conn->conn.flags |= CCI__CONN_ANSWERS;
    conn->conn.pub.context = context;
    cci__dgram_ask_path(ep, conn);
    cci__dgram_tell(ep, conn, cci_conn_decide(&base->conns, &conn->conn, accepts, base->now_ns));
    cci__dgram_schedule(ep, conn);
    cci__dgram_flush(ep);
    return CCI_SUCCESS;
}

/* Asks the program for the key of a connection that it wants; a status. */
static int cci__dgram_connect_key(cci__dgram_t *ep, cci__dconn_t *conn, const char *address) {
    cci_seal_peer_t peer;
    if (!ep->seal) return CCI_SUCCESS;
    memset(&peer, 0, sizeof peer);
    peer.endpoint = (cci_endpoint_t *)&ep->base.api.pub;
    peer.attribute = conn->conn.pub.attribute;
    peer.from = &conn->conn.peer;
    peer.address = address;
    peer.context = conn->conn.pub.context;
    conn->peer.key = ep->seal->key(ep->seal->user, &peer);
    conn->in.request->key_id = peer.key_id;
    return conn->peer.key || ep->seal->plain_allowed ? CCI_SUCCESS : CCI_ERR_NOT_FOUND;
}

static int cci__dgram_connect(cci__endpoint_t *base, const cci__connect_t *call) {
    cci__dgram_t *ep = (cci__dgram_t *)base;
    cci_conn_pending_t *pending = cci__endpoint_pending(base, call);
    cci__dconn_t *conn = pending ? cci__dgram_open_conn(ep, call->attribute, call->context) : NULL;
    int status = CCI_ENOMEM;
    if (conn) {
        conn->in.request = pending;
        cci_conn_begin_connect(&conn->conn, &call->to, call->is_known, pending->give_up_ns, base->now_ns);
        status = cci__dgram_connect_key(ep, conn, call->address);
        if (status == CCI_SUCCESS) status = cci__endpoint_join(base, &conn->conn);
    }
    if (status != CCI_SUCCESS) {
        if (pending) cci_evq_return_event(&base->evq, (cci_evq_event_t *)pending->event);
        cci_release(pending);
        if (conn) cci__dgram_close_conn(ep, conn);
        return status;
    }
    if (call->is_group) { /* there is no server: it is open at once */
        cci__dgram_connected(ep, conn, CCI_SUCCESS);
        return CCI_SUCCESS;
    }
    if (call->is_known)
        cci__dgram_send_request(ep, conn);
    else
        conn->conn.flags |= CCI__CONN_ASKING;
    cci__dgram_schedule(ep, conn);
    cci__dgram_flush(ep);
    return CCI_SUCCESS;
}

static void cci__dgram_disconnect(cci__endpoint_t *base, cci_conn_t *conn) {
    cci__dgram_t *ep = (cci__dgram_t *)base;
    cci__dgram_quiet(ep, (cci__dconn_t *)(void *)conn);
    cci__dgram_begin_close(ep, (cci__dconn_t *)(void *)conn);
    cci__dgram_flush(ep);
}

#ifndef CCI_NO_LINGER
static int cci__dgram_is_busy(cci__endpoint_t *base, const cci_conn_t *of) {
    const cci__dconn_t *conn = (const cci__dconn_t *)(const void *)of;
    (void)base;
    return (of->flags & CCI__CONN_PARKED) || (conn->active && !cci__list_empty(&conn->active->rel.items));
}

static void cci__dgram_linger(cci__endpoint_t *base, cci_conn_t *of, uint64_t until_ns) {
    cci__dgram_t *ep = (cci__dgram_t *)base;
    cci__dconn_t *conn = (cci__dconn_t *)(void *)of;
    cci__dgram_take_back_events(ep, conn);
    conn->in.open.keepalive_event = NULL; /* in the same place when it is parked */
    of->deadline_ns = until_ns;
    if (conn->active) {
        conn->active->rel.ping = 0;
        cci__dgram_drop_runs(ep, conn->active);
    }
    cci__dgram_schedule(ep, conn);
}
#endif

/* ---- events ---- */

#ifndef CCI_NO_WAKE
/* From now on other classes of events wake. */
static void cci__dgram_choose(cci__endpoint_t *base, int classes) {
    const cci__dgram_t *ep = (const cci__dgram_t *)base;
    const cci_list_t *node;
    const cci_rel_run_t *run;
    cci__endpoint_choose(base, classes);
    base->wakes.heard = 0;
    for (node = ep->inbox.next; (classes & CCI_ARM_WAKE) && node != &ep->inbox; node = node->next)
        for (run = CCI__CONTAINER(node, const cci__active_t, inbox)->runs; run; run = run->next)
            base->wakes.heard |= (uint8_t)cci__run_wakes(run);
}
#endif

/* A program with a handle, for which there is no event, may go to sleep: what waits for company leaves before. Only
 * where one connection has much under way it stays: an acknowledgement, or else the timer, wakes the program soon. */
static int cci__dgram_stays(const cci__dgram_t *ep) {
    return !cci__list_empty(&ep->soon) && ep->soon.next == ep->soon.prev && cci__list_empty(&ep->ready) &&
           CCI__CONTAINER(ep->soon.next, cci__active_t, ready)->rel.in_flight >= CCI__DGRAM_BUSY;
}

/* The program may sleep until then: what waits for company leaves before. */
static uint64_t cci__dgram_next_deadline(cci__endpoint_t *base) {
    cci__dgram_t *ep = (cci__dgram_t *)base;
    if (!cci__list_empty(&ep->soon) && !(base->has_fd && cci__dgram_stays(ep))) cci__dgram_work(base);
    if (!cci__list_empty(&ep->inbox) && base->evq.recv_out < base->evq.recv_limit) return 0;
    return cci__dgram_sleep_deadline(base);
}

/* The next message that has arrived; *event is NULL if it was withdrawn. Returns CCI_ENOBUFS if there is one but no
 * event to give it with. */
static int cci__dgram_next_message(cci__dgram_t *ep, cci_event_t **event) {
    cci__active_t *active = CCI__CONTAINER(ep->inbox.next, cci__active_t, inbox);
    cci_rel_run_t *run;
    cci_evq_buffer_t *buffer;
    cci_evq_event_t *made = NULL;
    const uint8_t *frame;
    if (cci__list_empty(&ep->inbox)) return CCI_EAGAIN;
    run = active->runs;
    CCI_ASSERT(run); /* without one it would not be in the inbox */
    buffer = (cci_evq_buffer_t *)run->buffer;
    frame = (const uint8_t *)run + run->begin;
    if (frame[0] == CCI__FRAME_MESSAGE) {
        made = cci__dgram_message_event(ep);
        if (!made) return CCI_ENOBUFS;
        made->base.pub.recv.type = CCI_EVENT_RECV;
        made->base.pub.recv.len = cci__load16(frame + 2);
        made->base.pub.recv.ptr = frame + 8;
        made->base.pub.recv.connection = &active->conn->conn.pub;
        made->buffer = buffer;
        buffer->refs++;
    }
    cci_rel_run_skip(run);
    if (run->count == 0) {
        ep->backlog--;
        active->runs = run->next;
        cci__list_remove(&active->inbox);
        if (active->runs) {
            active->stamp = cci__load32(cci__run_stamp(active->runs));
            cci__list_append(&ep->inbox, &active->inbox); /* the others' turn */
        } else {
            active->runs_tail = &active->runs;
        }
        cci_evq_release_buffer(&ep->base.evq, buffer);
        if (CCI__UNLIKELY(active->conn->conn.state == CCI_CONN_BROKEN)) cci__dgram_post_end(ep, active->conn);
    }
    *event = made ? &made->base.pub : NULL;
    return CCI_SUCCESS;
}

/* Did the completion happen before the connection's first message that waits? */
static int cci__op_is_before(const cci_evq_event_t *completion, const cci__active_t *active) {
    return (int32_t)(completion->state - active->stamp) <= 0;
}

/* Is the completion next, and not a message? What happened to one connection is told in the order in which it
 * happened; and a completion comes before all messages that came after it, since one of them may be the answer on
 * another connection. */
static int cci__dgram_is_next(cci__dgram_t *ep, const cci_evq_event_t *completion) {
    cci__active_t *active;
    if (!completion || cci__list_empty(&ep->inbox)) return completion != NULL;
    if (!cci__op_is_before(completion, CCI__CONTAINER(ep->inbox.next, cci__active_t, inbox))) return 0;
    active = ((const cci__dconn_t *)(const void *)completion->base.pub.send.connection)->active;
    if (!active || !active->runs || cci__op_is_before(completion, active)) return 1;
    cci__list_remove(&active->inbox); /* its older messages first */
    cci__list_insert(ep->inbox.next, &active->inbox);
    return 0;
}

/* Takes an event that is there: of connections first, then completions and messages as they came. */
static int cci__dgram_next(cci__dgram_t *ep, cci_event_t **event) {
    cci_evq_event_t *next;
    int status = CCI_EAGAIN;
    if (CCI__LIKELY(!cci__dgram_has_events(ep))) return CCI_EAGAIN;
    while ((next = cci_evq_next(&ep->base.evq.urgent)) != NULL) {
        if (CCI__LIKELY(cci__dgram_hand_out(ep, next))) {
            *event = &next->base.pub;
            return CCI_SUCCESS;
        }
    }
    for (;;) {
        while (!cci__dgram_is_next(ep, ep->base.evq.done.head)) {
            status = cci__dgram_next_message(ep, event);
            if (status == CCI_SUCCESS && *event) return CCI_SUCCESS;
            if (status != CCI_SUCCESS) break;
        }
        next = cci_evq_next(&ep->base.evq.done); /* also before messages for which the program leaves no event */
        if (!next) return status;
        if (next->pool != CCI_EVQ_OPERATION && !cci__dgram_hand_out(ep, next)) continue;
        /* now all starts afresh */
        if (CCI__UNLIKELY(next->pool == CCI_EVQ_OPERATION && ((cci__op_t *)(void *)next)->done))
            ((cci__dconn_t *)(void *)(uintptr_t)next->base.pub.send.connection)->conn.flags &=
                (uint16_t)~CCI__CONN_UNREADY;
        *event = &next->base.pub;
        return CCI_SUCCESS;
    }
}

/* As many as a program works on in a millisecond, judged by the time that it took for `count`; 64 at most. */
static uint32_t cci__dgram_in_a_ms(uint64_t took_ns, uint32_t count) {
    uint32_t most = CCI__DGRAM_GIVEN;
    while (most > 1 && took_ns * most > count * (uint64_t)CCI__MS) most /= 2;
    return most;
}

/* How many events, and messages among them, the program may have next. And does it send its messages one close to the
 * other? */
static void cci__dgram_judge(cci__dgram_t *ep) {
    uint64_t took_ns;
    if (ep->given + ep->issued > 0) ep->base.polls.left = 0; /* that may have taken long */
    if (ep->given + ep->issued < 2 && ep->given < ep->given_most && ep->heard < ep->heard_most) return;
    ep->base.now_ns = ep->base.link->now(ep->base.handle);
    took_ns = ep->base.now_ns - ep->given_since_ns;
    if (ep->issued > 1) ep->is_quick = took_ns <= ep->issued * (uint64_t)CCI__DGRAM_QUICK_NS;
    if (ep->given > 0) ep->given_most = cci__dgram_in_a_ms(took_ns, ep->given);
    if (ep->heard > 0) ep->heard_most = cci__dgram_in_a_ms(took_ns, ep->heard);
}

/* The network has its turn, and then there may be an event. */
static int cci__dgram_look(cci__dgram_t *ep, cci_event_t **event) {
    uint32_t rounds = CCI__DGRAM_DRAIN;
    int came, status, stays;
    do { /* what has come may hold no event, and what is behind it one */
        stays = ep->base.has_fd && cci__dgram_stays(ep);
        /* What the program has not taken stays with the link as long as possible: there it holds the sender back,
         * and what is taken late has left the cache. */
        came = cci__dgram_pump(ep, ep->base.has_fd && !ep->backlog && !stays ? CCI__IDLE_IF_NOTHING_COMES : CCI__BUSY,
                               ep->backlog < 8 ? (CCI__DGRAM_BATCH_RX + 1) / 2 : 0);
        status = cci__dgram_next(ep, event);
        if (status == CCI_EAGAIN && came <= 0 && ep->base.has_fd && !stays) {
            if (!cci__list_empty(&ep->soon) || !cci__list_empty(&ep->ready))
                came = cci__dgram_pump(ep, CCI__IDLE, CCI__DGRAM_BATCH_RX);
            status = cci__dgram_next(ep, event);
        }
    } while (status == CCI_EAGAIN && came > 0 && --rounds > 0);
    /* The program's time begins, which is measured if it works on several. */
    ep->given_since_ns = cci__dgram_has_events(ep) ? ep->base.link->now(ep->base.handle) : ep->base.now_ns;
    return status;
}

static int cci__dgram_get_event(cci_endpoint_base_t *base, cci_event_t **event) {
    cci__dgram_t *ep = (cci__dgram_t *)(void *)base;
    int status;
    cci__dgram_lock(ep);
    /* Events that are there are given at once; now and then the network has its turn all the same. */
    status = ep->given < ep->given_most && ep->heard < ep->heard_most ? cci__dgram_next(ep, event) : CCI_EAGAIN;
    if (status != CCI_SUCCESS) {
        cci__dgram_judge(ep);
        ep->given = ep->heard = ep->issued = 0;
        status = cci__dgram_look(ep, event);
    }
    if (status == CCI_SUCCESS) {
        ep->given++;
        ep->heard += (*event)->type == CCI_EVENT_RECV;
    } else {
        *event = NULL;
        if (ep->base.evq.recv_out > 0 &&
            (ep->base.evq.recv_out >= ep->base.evq.recv_limit || cci__dgram_buffers_left(ep) == 0))
            status = CCI_ENOBUFS; /* the program holds what messages are received in */
    }
    ep->base.os_handle.is_awake = status == CCI_SUCCESS;
    cci__dgram_arm(ep); /* for the helper thread too */
    cci__dgram_unlock(ep);
    return status;
}

static void cci__dgram_take_event_back(cci__dgram_t *ep, cci_evq_event_t *event) {
#ifndef CCI_SMALL
    if (event->pool == CCI_EVQ_STATUS) {
        cci__notices_return(&ep->base.notices, &ep->base.evq, event);
        cci__dgram_arm(ep); /* there may be more to tell */
        return;
    }
#endif
    cci_evq_return_event(&ep->base.evq, event);
}

static int cci__dgram_return_event(cci_event_base_t *base) {
    cci_evq_event_t *event = (cci_evq_event_t *)(void *)base;
    cci__dgram_t *ep = (cci__dgram_t *)(void *)base->endpoint;
    int status = CCI_SUCCESS;
    cci__dgram_lock(ep);
    if (event->pool == CCI_EVQ_OPERATION) {
        cci__dgram_drop_op(ep, (cci__op_t *)(void *)event);
    } else if (base->pub.type == CCI_EVENT_NONE || (base->pub.type == CCI_EVENT_CONNECT_REQUEST && event->state == 0)) {
        status = CCI_EINVAL;
    } else {
        if (base->pub.type == CCI_EVENT_CONNECT_REQUEST) cci__dgram_free_uri(ep, base->pub.request.peer_uri);
        if (base->pub.type == CCI_EVENT_CONNECT) cci_release(cci_conn_take_answer(base->pub.connect.data_ptr));
        cci__dgram_take_event_back(ep, event);
    }
    cci__dgram_unlock(ep);
    return status;
}

/* ---- options ---- */

static int cci__dgram_set_send_count(cci__endpoint_t *base, uint32_t count) {
    if (count == 0 || count > CCI__DGRAM_MAX_BUFS) return CCI_ERANGE;
    cci__dgram_limit_blocks((cci__dgram_t *)base, count);
    return CCI_SUCCESS;
}

static int cci__dgram_set_recv_count(cci__endpoint_t *base, uint32_t count) {
    cci__dgram_t *ep = (cci__dgram_t *)base;
    if (count == 0 || count > CCI__DGRAM_MAX_BUFS) return CCI_ERANGE;
    if (count > SIZE_MAX / 2 / ep->buffer_size) return CCI_ENOMEM;
    cci_evq_limit_buffers(&ep->base.evq, count + CCI__DGRAM_BATCH_RX);
    ep->buffers_unmade = count + CCI__DGRAM_BATCH_RX > ep->base.evq.buffer_total
                             ? count + CCI__DGRAM_BATCH_RX - ep->base.evq.buffer_total
                             : 0;
    ep->base.evq.recv_limit = count;
    ep->base.recv_buf_count = count;
    ep->held_before = ep->pool.buffers_held;
    ep->base.conns.unproven_most = cci__dgram_unproven_most(count);
    return CCI_SUCCESS;
}

#ifndef CCI_NO_STATS
/* A connection's messages that wait for cci_get_event(), and the bytes in them. */
static uint32_t cci__active_waiting(const cci__active_t *active, uint64_t *bytes) {
    const cci_rel_run_t *run;
    uint32_t count = 0;
    *bytes = 0;
    for (run = active->runs; run; run = run->next) count += cci__run_messages(run, bytes);
    return count;
}

/* A connection's messages of before are not counted. */
static void cci__dgram_count_from_now(const cci__dgram_t *ep, const cci__dconn_t *conn) {
    cci__tally_t *tally = cci__dgram_tally(ep, conn);
    const cci__active_t *active = conn->active;
    tally->next_sequence = active ? active->rel.next_sequence : conn->state.next_sequence;
    if (!active) return;
    tally->unsent_bytes = active->unsent_bytes;
    tally->messages_arrived = cci__active_waiting(active, &tally->bytes_arrived);
}

/* Begins to count for each connection, or ends it. */
static int cci__dgram_set_counting(cci__endpoint_t *base, uint32_t value) {
    cci__dgram_t *ep = (cci__dgram_t *)base;
    int status, was_counted = ep->base.tallies.counted != NULL;
    uint32_t i;
    cci__dgram_flush(ep); /* what is in the batch was laid out before */
    status = cci__tallies_set(&ep->base.tallies, value, ep->base.conns.slab_count);
    if (status != CCI_SUCCESS || (value == 1) == was_counted) return status;
    CCI__TELLS(cci__dgram_take_note(base));
    cci__dgram_look_closer(ep);
    for (i = 0; value == 1 && i < ep->base.conns.slab_count * CCI__CONN_SLAB; i++)
        cci__dgram_count_from_now(ep, (const cci__dconn_t *)(const void *)cci_conn_at(&ep->base.conns, i));
    return CCI_SUCCESS;
}

/* Messages that wait for cci_get_event(). */
static uint32_t cci__dgram_messages_waiting(const cci__dgram_t *ep) {
    uint32_t count = 0;
    const cci_list_t *node;
    uint64_t bytes;
    for (node = ep->inbox.next; node != &ep->inbox; node = node->next)
        count += cci__active_waiting(CCI__CONTAINER(node, cci__active_t, inbox), &bytes);
    return count;
}

/* Connections that have what is lent for traffic. */
static uint32_t cci__dgram_count_active(const cci__dgram_t *ep) {
    const cci_list_t *node;
    uint32_t count = 0;
    for (node = ep->lent.next; node != &ep->lent; node = node->next) count++;
    return count;
}

static void cci__dgram_endpoint_stats(cci__endpoint_t *base, cci_endpt_stats_t *stats) {
    cci__dgram_t *ep = (cci__dgram_t *)base;
    cci__dgram_flush(ep); /* what is in the batch was counted in part */
    stats->datagrams_sent = ep->pool.packets_sent;
    stats->bytes_sent = ep->laid_out + ep->bytes_beyond;
    stats->datagrams_received = ep->packets_received;
    stats->bytes_received = ep->bytes_received;
    stats->packets_retransmitted = ep->pool.retransmitted;
    stats->packets_lost = ep->pool.packets_lost;
    stats->dropped_corrupt = ep->packets_corrupt + ep->pool.packets_malformed;
    stats->dropped_not_ours = ep->packets_foreign + ep->packets_mismatched;
    stats->dropped_no_connection = ep->packets_unmatched;
    stats->dropped_no_buffer = ep->pool.packets_refused + ep->packets_unheard;
    stats->dropped_not_authentic = ep->packets_forged;
    stats->dropped_duplicate = ep->pool.packets_duplicate;
    stats->requests_refused = ep->requests_refused;
    stats->connections_ended = ep->evicted;
    if (ep->base.info.system_calls) stats->system_calls = *ep->base.info.system_calls;
    stats->connections_active = cci__dgram_count_active(ep);
    stats->events_waiting += cci__dgram_messages_waiting(ep);
    /* the batch has some that nothing has come in */
    stats->recv_buffers_used = ep->base.evq.buffer_total - ep->base.evq.free_buffer_count - CCI__DGRAM_BATCH_RX;
    stats->recv_buffers_most = ep->base.evq.buffer_most - CCI__DGRAM_BATCH_RX;
    stats->send_buffers_used = ep->pool.block_out;
    stats->send_buffers_most = ep->pool.block_most;
}

/* The counted part, of a connection as it is now. */
static void cci__dgram_tell_tally(const cci__dgram_t *ep, const cci__dconn_t *conn, cci_conn_stats_t *stats) {
    const cci__tally_t *tally = cci__dgram_tally(ep, conn);
    uint64_t bytes;
    if (conn->active) cci__dgram_tally_messages(ep, conn->active);
    cci__tally_tell(tally, stats);
    stats->packets_retransmitted = tally->notes[CCI_REL_RETRANSMITTED];
    stats->packets_lost = tally->notes[CCI_REL_LOST];
    stats->rnr = tally->notes[CCI_REL_NOT_READY];
    if (!conn->active) return;
    stats->messages_received -= cci__active_waiting(conn->active, &bytes);
    stats->bytes_received -= bytes;
}

/* Messages and RMAs of an item that are not done. A write or read and its completion message are one: it counts where
 * the message is, also when both lie in the same run. */
static uint32_t cci__item_operations(const cci_rel_item_t *item) {
    uint32_t count = item->count, at;
    if (item->flags & CCI__ITEM_DONE) return 0;
    if (item->kind == CCI__ITEM_EXTERN) return item->follow == NULL;
    if (item->flags & CCI__ITEM_PAIR) return 0;
    if (item->kind != CCI__ITEM_RUN || !item->frames || (item->flags & CCI__ITEM_VOID)) return count;
    for (at = cci__rel_frame_size(item->frames); at < item->length; at += cci__rel_frame_size(item->frames + at))
        count -= item->frames[at] == CCI__FRAME_MESSAGE && (item->frames[at + 1] & CCI__FRAME_AFTER);
    return count;
}

/* Messages and RMAs from an item on, to the end of the list or once round. */
static uint32_t cci__items_operations(const cci_list_t *first, const cci_list_t *end) {
    const cci_list_t *node = first;
    uint32_t count = 0;
    if (first == end) return 0;
    do {
        count += cci__item_operations(CCI__CONTAINER(node, cci_rel_item_t, node));
        node = node->next;
    } while (node != end && node != first);
    return count;
}

/* What the reliability protocol knows while there is traffic. */
static void cci__rel_tell_stats(const cci_rel_t *rel, cci_conn_stats_t *stats) {
    stats->latest_rtt_ns = (uint64_t)rel->latest_rtt << 4;
    stats->srtt_ns = rel->srtt_ns;
    stats->min_rtt_ns = rel->min_rtt_ns == CCI__NEVER ? 0 : rel->min_rtt_ns;
    stats->congestion_window = rel->flow.window;
    stats->in_flight_bytes = rel->in_flight;
    stats->path_mtu = rel->mtu;
    stats->operations_pending = cci__items_operations(rel->items.next, &rel->items);
    stats->is_active = 1;
}

static void cci__dgram_connection_stats(cci__endpoint_t *base, const cci_conn_t *of, cci_conn_stats_t *stats) {
    cci__dgram_t *ep = (cci__dgram_t *)base;
    const cci__dconn_t *conn = (const cci__dconn_t *)(const void *)of;
    uint64_t heard_ns = (uint64_t)((uint32_t)(ep->base.now_ns >> 20) - conn->peer.life.heard) << 20;
    const cci_rel_state_t *state = &conn->state;
    cci__dgram_flush(ep); /* what is in the batch was counted in part */
    if (ep->base.tallies.counted) cci__dgram_tell_tally(ep, conn, stats);
    if (conn->conn.pub.attribute <= CCI_CONN_ATTR_UU) stats->silent_ns = heard_ns;
    if (conn->active) {
        cci__rel_tell_stats(&conn->active->rel, stats);
    } else {
        stats->srtt_ns = state->srtt_us * UINT64_C(1000);
        stats->min_rtt_ns = state->min_rtt_us * UINT64_C(1000);
        stats->path_mtu = state->mtu;
        if (conn->conn.flags & CCI__CONN_PARKED)
            stats->operations_pending = cci__items_operations(&conn->in.parked.first->node, NULL);
    }
    stats->path_mtu = cci__dgram_path_mtu(ep, conn, stats->path_mtu);
}
#endif

/* What every endpoint over a link can do. */
static void cci__dgram_link_caps(const cci_link_t *link, cci_caps_t *caps) {
    memset(caps, 0, sizeof *caps);
    caps->can = CCI_CAN_ORDERED;
    caps->can |= CCI__CAN_WAKE;
    if (link->group && link->is_group) caps->can |= CCI_CAN_MULTICAST;
#ifndef CCI_NO_RMA
    caps->can |= CCI_CAN_RMA | CCI__CAN_ATOMICS;
    caps->max_rma_length = UINT64_MAX;
    caps->max_rma_segments = CCI__LIST_SEGMENTS;
#endif
    caps->max_request_len = CCI__DGRAM_REQUEST;
    caps->max_connections = CCI__CONN_MOST;
    caps->max_send_bufs = caps->max_recv_bufs = CCI__DGRAM_MAX_BUFS;
}

static void cci__dgram_caps(cci__endpoint_t *base, const cci_conn_t *conn, cci_caps_t *caps) {
    const cci__dgram_t *ep = (const cci__dgram_t *)base;
    cci__dgram_link_caps(base->link, caps);
    if (ep->seal && (!conn || ((const cci__dconn_t *)(const void *)conn)->peer.key)) caps->can |= CCI_CAN_SEAL;
    caps->max_send_size = base->max_send_size;
    caps->max_recv_bufs = (uint32_t)cci__min64(CCI__DGRAM_MAX_BUFS, SIZE_MAX / 2 / ep->buffer_size);
}

static void cci__dgram_set_timeout(cci__endpoint_t *base, cci_conn_t *conn) {
    const cci__dconn_t *of = (const cci__dconn_t *)(const void *)conn;
    (void)base;
    if (of->active) of->active->rel.timeout_us = conn->send_timeout_us;
}

/* ---- messages ---- */

/* An operation for a completion, NULL if none is wanted; *status is CCI_ENOBUFS if there is none to be had. */
static cci__op_t *cci__dgram_op(cci__dgram_t *ep, cci__dconn_t *conn, void *context, int flags, int *status) {
    cci__op_t *op;
    if ((flags & CCI_FLAG_SILENT) && !(flags & CCI_FLAG_BLOCKING)) return NULL;
    if (conn->active->op_count >= ep->base.send_buf_count + CCI__DGRAM_BULKS ||
        (!ep->free_ops && !cci__dgram_grow_ops(ep))) {
        *status = CCI_ENOBUFS;
        return NULL;
    }
    op = (cci__op_t *)(void *)ep->free_ops;
    ep->free_ops = op->event.next;
    conn->active->op_count++;
    op->event.base.pub.send.type = CCI_EVENT_SEND;
    op->event.base.pub.send.connection = &conn->conn.pub;
    op->event.base.pub.send.context = context;
    op->rel.status = CCI_SUCCESS;
    op->rel.parts = 0;
    op->blocking = (flags & CCI_FLAG_BLOCKING) != 0;
    op->done = 0;
    return op;
}

/* It was not begun after all. */
static void cci__dgram_undo_op(cci__dgram_t *ep, cci__active_t *active, cci__op_t *op) {
    if (!op) return;
    active->op_count--;
    cci__dgram_drop_op(ep, op);
}

/* The program goes on after the link has sent. What that took was not the program's time. */
static inline void cci__dgram_resume(cci__dgram_t *ep) {
    uint64_t now_ns = ep->base.link->now(ep->base.handle);
    ep->given_since_ns += now_ns - ep->base.now_ns;
    ep->issued_ns = now_ns;
}

/* After something has been given to the reliability protocol: what may go at once goes at once, the rest when there is
 * company or at the next chance. */
static int cci__dgram_issued(cci__dgram_t *ep, cci__active_t *active, cci__op_t *op, int flags) {
    cci__dconn_t *conn = active->conn;
    cci_rel_t *rel = &active->rel;
    int is_first = rel->reliable ? rel->in_flight == 0 : ep->base.now_ns - rel->last_sent_ns > 20000;
    /* A program that sleeps between batches of events, and is quick, wakes its peer once for each. */
    int waits = ep->base.has_fd && ep->is_quick && cci__dgram_has_events(ep);
    int is_slow = !ep->is_quick && ep->base.now_ns - ep->issued_ns > CCI__DGRAM_SLOW_NS;
    int now = active->unsent_bytes >= CCI__DGRAM_BURST || is_slow || (is_first && !waits);
    int status = CCI_SUCCESS;
    ep->issued_ns = ep->base.now_ns;
    if (now) {
        if (rel->in_flight > 0 && ep->is_quick) /* else cci__dgram_send_locked has read the clock */
            ep->base.now_ns = ep->base.link->now(ep->base.handle);
        if (!rel->reliable) rel->last_sent_ns = ep->base.now_ns;
        cci__dgram_output(ep, active, 0, 1, ep->base.now_ns);
        cci__dgram_flush(ep);
        cci__dgram_schedule(ep, conn); /* the peer works already */
        if (CCI__UNLIKELY(is_slow && !cci__list_empty(&ep->soon))) {
            cci__dgram_hurry(ep);
            cci__dgram_output_ready(ep, CCI__IDLE);
        }
        if (ep->issued > 1 || !ep->is_quick) cci__dgram_resume(ep); /* one alone isn't judged */
    } else if (cci__list_empty(&active->ready)) {
        cci__list_append(&ep->soon, &active->ready);
        cci__dgram_schedule(ep, conn);
    }
    ep->idle_rounds = 0;
    if (flags & CCI_FLAG_BLOCKING) status = cci__dgram_block(ep, op);
    cci__dgram_arm(ep);
    return status;
}

/* Gives a message to the reliability protocol: from where it is if the program allows that and it pays, else as a
 * copy. */
static int cci__dgram_queue(cci__dgram_t *ep, cci__active_t *active, const struct iovec *data, uint32_t count,
                            uint32_t length, cci_rel_op_t *op, int flags) {
    if (CCI__UNLIKELY(flags & CCI_FLAG_FENCE)) /* it may have to wait */
        return cci_rel_send_fenced(&active->rel, data, count, length, op, ep->base.now_ns);
    if ((flags & CCI_FLAG_NO_COPY) && count == 1 && length >= CCI_REL_LENT_MIN &&
        cci_rel_lend(&active->rel, data[0].iov_base, length, op, ep->base.now_ns) == CCI_SUCCESS)
        return CCI_SUCCESS;
    return cci_rel_send(&active->rel, data, count, length, op, ep->base.now_ns);
}

/* In a stream most messages only join others that wait to leave: all else has been seen to. 0: this one has more to
 * it. */
static inline int cci__dgram_join(cci__dgram_t *ep, cci__dconn_t *conn, const struct iovec *data, uint32_t count,
                                  uint32_t length, int flags) {
    cci__active_t *active = conn->active;
    if (flags != CCI_FLAG_SILENT || count != 1 || !active || !ep->is_quick || conn->conn.state != CCI_CONN_OPEN ||
        (conn->conn.flags & (CCI__CONN_UNREADY | CCI__CONN_DENIED)) || active->rel.in_flight == 0 ||
        cci__list_empty(&active->ready) || active->unsent_bytes + length + 8 >= CCI__DGRAM_BURST ||
        ep->unclocked + 1 >= CCI__DGRAM_UNCLOCKED || !cci_rel_join(&active->rel, data, length, ep->base.now_ns))
        return 0;
    active->unsent_bytes += length + 8;
    ep->unclocked++;
    ep->issued++;
    ep->idle_rounds = 0;
    return 1;
}

/* [4.1.4.1] Ordered: sends behind one that ended with CCI_ERR_RNR end likewise, up to the moment when the program
 * hears of it. Else they would be delivered where it can't know that something before them is missing. */
static int cci__dgram_end_unready(cci__dgram_t *ep, cci__dconn_t *conn, void *context, int flags) {
    int status = CCI_SUCCESS;
    cci__op_t *op;
    if (flags & CCI_FLAG_BLOCKING) return CCI_ERR_RNR;
    op = cci__dgram_op(ep, conn, context, flags, &status);
    if (op) cci__dgram_complete(ep, op, CCI_ERR_RNR);
    cci__dgram_arm(ep);
    return status;
}

/* Its turn is over, or its peer does not answer, and it has something under way: what the program issues more has to
 * wait. */
static int cci__dgram_must_wait(const cci__dgram_t *ep, cci__active_t *active) {
    if (CCI__LIKELY(ep->waiting_count == 0) || cci__list_empty(&active->rel.items)) return 0;
    active->rel.leaving = active->rel.leaving ? 2 : 0;
    return active->rel.leaving || active->rel.probes >= 2;
}

/* Says so in the log, every 10 s at most. */
static int cci__dgram_lacks_memory(cci__dgram_t *ep) {
    if (ep->base.now_ns >= ep->memory_log_ns) {
        ep->memory_log_ns = ep->base.now_ns + 10000 * CCI__MS;
        cci_log(CCI_LOG_WARN,
                "connections take turns, and sends get CCI_ENOBUFS meanwhile: the memory for their traffic "
                "is used up; the key `memory` (memory_limit of a link) allows more");
    }
    return CCI_ENOBUFS;
}

static int cci__dgram_send_locked(cci__dgram_t *ep, cci__dconn_t *conn, const struct iovec *data, uint32_t count,
                                  uint32_t length, void *context, int flags) {
    cci__active_t *active;
    cci__op_t *op;
    int status = CCI_SUCCESS;
    if (conn->conn.state != CCI_CONN_OPEN) return ep->base.is_dead ? CCI_ERR_DEVICE_DEAD : CCI_ERR_DISCONNECTED;
    if (CCI__UNLIKELY(conn->conn.flags & CCI__CONN_UNREADY)) return cci__dgram_end_unready(ep, conn, context, flags);
    active = cci__dgram_activate(ep, conn);
    if (!active || cci__dgram_must_wait(ep, active)) return cci__dgram_lacks_memory(ep);
    /* Reading the clock costs as much as the rest: what a quick program sends and only joins others that wait can do
     * with a time a little old. */
    if (active->rel.in_flight == 0 || !ep->is_quick || ++ep->unclocked >= CCI__DGRAM_UNCLOCKED) {
        ep->base.now_ns = ep->base.link->now(ep->base.handle);
        ep->unclocked = 0;
        if (ep->heard + ep->issued == 0) ep->given_since_ns = ep->base.now_ns; /* it had nothing to do */
    }
    ep->issued++;
    op = cci__dgram_op(ep, conn, context, flags, &status);
    if (status == CCI_SUCCESS) status = cci__dgram_queue(ep, active, data, count, length, op ? &op->rel : NULL, flags);
    CCI__WAKES(if (CCI__UNLIKELY((flags & CCI_FLAG_WAKE) && status == CCI_SUCCESS))
                   cci_rel_mark_wake(&active->rel, length));
    if (status != CCI_SUCCESS) {
        cci__dgram_undo_op(ep, active, op);
        if (cci__list_empty(&active->rel.items)) {
            conn->conn.flags |= CCI__CONN_REFUSED;
            active->rel.progress_ns = ep->base.now_ns;
        }
        return status;
    }
    conn->conn.flags &= (uint16_t)~CCI__CONN_REFUSED;
    active->unsent_bytes += length + 8;
    return cci__dgram_issued(ep, active, op, flags);
}

static int cci__dgram_sendv(struct cci_connection *connection, const struct iovec *data, uint32_t count, void *context,
                            int flags) {
    cci__dconn_t *conn = (cci__dconn_t *)(void *)connection;
    cci__dgram_t *ep = cci__dgram_of(conn);
    uint64_t length = 0;
    uint32_t i;
    int status;
    for (i = 0; i < count; i++) {
        if (data[i].iov_len > connection->max_send_size) return CCI_EMSGSIZE;
        if (data[i].iov_len > 0 && !data[i].iov_base) return CCI_EINVAL;
        length += data[i].iov_len;
    }
    if (length > connection->max_send_size) return CCI_EMSGSIZE;
    cci__dgram_lock(ep);
    status = cci__dgram_join(ep, conn, data, count, (uint32_t)length, flags)
                 ? CCI_SUCCESS
                 : cci__dgram_send_locked(ep, conn, data, count, (uint32_t)length, context, flags);
#ifndef CCI_NO_WAKE
    if (CCI__UNLIKELY(ep->base.wakes.has_fd)) {
        cci__dgram_note_send(ep, conn, (uint32_t)length, status);
        cci__dgram_arm(ep);
    }
#endif
    cci__dgram_unlock(ep);
    return status;
}

#ifndef CCI_NO_RMA
/* ---- remote memory access ---- */

static int cci__dgram_rma_register(cci_endpoint_base_t *base, void *start, uint64_t length, int flags,
                                   cci_rma_handle_t **handle) {
    cci__dgram_t *ep = (cci__dgram_t *)(void *)base;
    cci_rma_region_t *region;
    if (length > UINTPTR_MAX - (uintptr_t)start) return CCI_EINVAL;
    cci__dgram_lock(ep);
    region = cci_rma_add(&ep->rma, start, length, (uint32_t)flags & (CCI_FLAG_READ | CCI_FLAG_WRITE));
    cci__dgram_unlock(ep);
    if (!region) return CCI_ENOBUFS;
    *handle = &region->handle;
    return CCI_SUCCESS;
}

static int cci__dgram_rma_deregister(cci_endpoint_base_t *base, const struct cci_rma_handle *handle) {
    cci__dgram_t *ep = (cci__dgram_t *)(void *)base;
    cci_rma_region_t *region;
    uint64_t key;
    uint32_t index;
    cci_rma_parse_handle(handle, &key, &index);
    cci__dgram_lock(ep);
    region = cci_rma_find(&ep->rma, key, index);
    if (region) cci_rma_remove(&ep->rma, region);
    cci__dgram_unlock(ep);
    return region ? CCI_SUCCESS : CCI_ERR_RMA_HANDLE;
}

typedef struct cci__rma_call {
    const struct iovec *message;
    const struct cci_rma_handle *local, *remote;
    uint64_t local_offset, remote_offset, length;
    void *context;
    int flags, has_message;
} cci__rma_call_t;

static int cci__dgram_read(cci__dgram_t *ep, cci__active_t *active, const cci__rma_call_t *call, cci__op_t *op) {
    cci_rma_read_t *read;
    cci_rel_item_t *item = NULL;
    int status;
    if (!cci__dgram_reader(ep, active)) return CCI_ENOBUFS;
    if (cci__list_empty(&ep->rma.reads)) (void)cci__dgram_grow_store(ep, CCI__STORE_READS);
    read = cci_rma_new_read(&ep->rma);
    if (!read) return CCI_ENOBUFS;
    cci_rma_parse_handle(call->local, &read->local_key, &read->local_region);
    cci_rma_parse_handle(call->remote, &read->key, &read->region);
    read->local_offset = call->local_offset;
    read->offset = call->remote_offset;
    read->length = call->length;
    status = cci_rel_extern(&active->rel, call->has_message, call->message, (uint32_t)call->message->iov_len,
                            (call->flags & CCI_FLAG_FENCE) != 0, op ? &op->rel : NULL, read, &item, ep->base.now_ns);
    if (status != CCI_SUCCESS) {
        cci_rma_free_read(&ep->rma, read);
        return status;
    }
    read->item = item;
    return CCI_SUCCESS;
}

static int cci__dgram_write(cci__dgram_t *ep, cci__active_t *active, const cci__rma_call_t *call, cci__op_t *op) {
    cci_rel_bulk_t bulk;
    cci_rma_parse_handle(call->local, &bulk.local_key, &bulk.local_region);
    cci_rma_parse_handle(call->remote, &bulk.key, &bulk.region);
    bulk.data = cci_rma_address(&ep->rma, bulk.local_key, bulk.local_region, call->local_offset, call->length, 0);
    bulk.remote_offset = call->remote_offset;
    bulk.length = call->length;
    return cci_rel_write(&active->rel, &bulk, call->has_message, call->message, (uint32_t)call->message->iov_len,
                         (call->flags & CCI_FLAG_FENCE) != 0, op ? &op->rel : NULL, ep->base.now_ns);
}

#ifndef CCI_NO_STATS
/* Counts an RMA that was issued, and takes its sequence numbers for counted. */
static void cci__dgram_tally_rma(const cci__dgram_t *ep, const cci__active_t *active, const cci__rma_call_t *call) {
    cci__tally_t *tally = cci__dgram_tally(ep, active->conn);
    cci__tally_rma(tally, call->flags, call->length);
    tally->messages_sent += (uint32_t)call->has_message;
    tally->bytes_sent += call->has_message ? call->message->iov_len : 0;
    tally->next_sequence = active->rel.next_sequence;
    tally->unsent_bytes = CCI__DGRAM_BURST;
}
#endif

static int cci__dgram_rma_locked(cci__dgram_t *ep, cci__dconn_t *conn, const cci__rma_call_t *call) {
    cci__active_t *active;
    cci__op_t *op;
    uint64_t key;
    uint32_t index;
    int status = CCI_SUCCESS;
    if (conn->conn.state != CCI_CONN_OPEN) return ep->base.is_dead ? CCI_ERR_DEVICE_DEAD : CCI_ERR_DISCONNECTED;
    cci_rma_parse_handle(call->local, &key, &index);
    if (!cci_rma_address(&ep->rma, key, index, call->local_offset, call->length, 0) ||
        call->remote_offset > UINT64_MAX - call->length)
        return CCI_ERR_RMA_HANDLE;
    if (CCI__LISTS(call->flags & CCI_PIECE_CHECK)) return CCI_SUCCESS;
    if (CCI__UNLIKELY(conn->conn.flags & CCI__CONN_UNREADY) && call->has_message)
        return cci__dgram_end_unready(ep, conn, call->context, call->flags);
    ep->base.now_ns = ep->base.link->now(ep->base.handle);
    active = cci__dgram_activate(ep, conn);
    if (!active || cci__dgram_must_wait(ep, active)) return cci__dgram_lacks_memory(ep);
    CCI__STATS(if (ep->base.tallies.counted) cci__dgram_tally_messages(ep, active));
    op = cci__dgram_op(ep, conn, call->context, call->flags, &status);
    if (CCI__LISTS(op && (call->flags & CCI_PIECE))) op->event.base.pub.send.type = CCI_EVENT_NONE;
    if (status == CCI_SUCCESS)
        status = (call->flags & CCI_FLAG_READ) ? cci__dgram_read(ep, active, call, op)
                                               : cci__dgram_write(ep, active, call, op);
    if (status != CCI_SUCCESS) {
        cci__dgram_undo_op(ep, active, op);
        return status;
    }
    CCI__STATS(if (ep->base.tallies.counted) cci__dgram_tally_rma(ep, active, call));
    active->unsent_bytes = CCI__DGRAM_BURST; /* it goes at once */
    return cci__dgram_issued(ep, active, op, call->flags);
}

static int cci__dgram_rma(struct cci_connection *connection, const void *msg, uint32_t msg_len,
                          const struct cci_rma_handle *local, uint64_t local_offset,
                          const struct cci_rma_handle *remote, uint64_t remote_offset, uint64_t length, void *context,
                          int flags) {
    cci__dconn_t *conn = (cci__dconn_t *)(void *)connection;
    cci__dgram_t *ep = cci__dgram_of(conn);
    cci__rma_call_t call;
    struct iovec message;
    int status;
    if (msg_len > connection->max_send_size) return CCI_EMSGSIZE;
    message.iov_base = (void *)(uintptr_t)msg;
    message.iov_len = msg_len;
    call.message = &message;
    call.has_message = msg != NULL && msg_len > 0;
    call.local = local;
    call.remote = remote;
    call.local_offset = local_offset;
    call.remote_offset = remote_offset;
    call.length = length;
    call.context = context;
    call.flags = flags;
    cci__dgram_lock(ep);
    status = cci__dgram_rma_locked(ep, conn, &call);
    cci__dgram_unlock(ep);
    return status;
}

#ifndef CCI_NO_ATOMICS
static int cci__dgram_atomic_locked(cci__dgram_t *ep, cci__dconn_t *conn, const cci_atomic_call_t *call) {
    cci__active_t *active;
    cci_rma_read_t *read;
    cci_rel_item_t *item = NULL;
    cci__op_t *op;
    int status = CCI_SUCCESS;
    if (conn->conn.state != CCI_CONN_OPEN) return ep->base.is_dead ? CCI_ERR_DEVICE_DEAD : CCI_ERR_DISCONNECTED;
    ep->base.now_ns = ep->base.link->now(ep->base.handle);
    active = cci__dgram_activate(ep, conn);
    if (!active || cci__dgram_must_wait(ep, active)) return cci__dgram_lacks_memory(ep);
    if (!cci__dgram_reader(ep, active)) return CCI_ENOBUFS;
    if (!active->reader->atomics && !cci__dgram_begin_atomics(ep, conn, active->reader)) return CCI_ENOBUFS;
    if (cci__list_empty(&ep->rma.reads)) (void)cci__dgram_grow_store(ep, CCI__STORE_READS);
    read = cci_rma_new_read(&ep->rma);
    if (!read) return CCI_ENOBUFS;
    cci_rma_parse_handle(call->remote, &read->key, &read->region);
    read->offset = call->offset;
    read->length = 8;
    read->width = (uint8_t)call->width;
    read->operation = (uint8_t)call->operation;
    read->local_key = call->operand;
    read->local_offset = call->compare;
    read->previous = call->previous;
    CCI__STATS(if (ep->base.tallies.counted) cci__dgram_tally_messages(ep, active));
    op = cci__dgram_op(ep, conn, call->context, call->flags, &status);
    if (status == CCI_SUCCESS)
        status = cci_rel_extern(&active->rel, 0, NULL, 0, (call->flags & CCI_FLAG_FENCE) != 0, op ? &op->rel : NULL,
                                read, &item, ep->base.now_ns);
    if (status != CCI_SUCCESS) {
        cci__dgram_undo_op(ep, active, op);
        cci_rma_free_read(&ep->rma, read);
        return status;
    }
    read->item = item;
    CCI__STATS(if (ep->base.tallies.counted) cci__tally_rma(cci__dgram_tally(ep, conn), 0, call->width));
    active->unsent_bytes = CCI__DGRAM_BURST; /* it goes at once */
    return cci__dgram_issued(ep, active, op, call->flags);
}

static int cci__dgram_atomic(struct cci_connection *connection, const cci_atomic_call_t *call) {
    cci__dconn_t *conn = (cci__dconn_t *)(void *)connection;
    cci__dgram_t *ep = cci__dgram_of(conn);
    int status;
    cci__dgram_lock(ep);
    status = cci__dgram_atomic_locked(ep, conn, call);
    cci__dgram_unlock(ep);
    return status;
}
#endif
#endif

static const cci__engine_t *cci__dgram_engine(void) {
    static const cci__engine_t table = {cci__endpoint_clock,
                                        NULL,
                                        NULL,
                                        cci__dgram_work,
                                        cci__endpoint_arm,
                                        cci__endpoint_wake,
                                        cci__dgram_next_deadline,
                                        cci__dgram_messages,
#ifndef CCI_NO_WAKE
                                        cci__dgram_may_send,
                                        cci__dgram_choose,
#endif
                                        cci__dgram_add_events,
                                        cci__dgram_decide,
                                        cci__dgram_disconnect,
#ifndef CCI_NO_LINGER
                                        cci__dgram_is_busy,
                                        cci__dgram_linger,
#endif
                                        cci__dgram_set_send_count,
                                        cci__dgram_set_recv_count,
#ifndef CCI_NO_STATS
                                        cci__dgram_set_counting,
                                        cci__dgram_endpoint_stats,
                                        cci__dgram_connection_stats,
#endif
#ifdef CCI_SMALL
                                        NULL,
#else
                                        cci__dgram_take_note,
#endif
                                        cci__dgram_set_timeout,
                                        cci__dgram_change_keepalive,
                                        cci__dgram_post_keepalive,
                                        cci__endpoint_link_uri,
                                        cci__dgram_caps,
                                        cci__dgram_deadline,
                                        cci__dgram_sleep_deadline,
                                        NULL,
                                        cci__dgram_receive_batch,
                                        cci__dgram_ends,
                                        cci__dgram_tell_close,
                                        cci__dgram_connect,
                                        50000,
                                        100 * CCI__MS};
    return &table;
}

static const cci_endpoint_ops_t *cci__dgram_ops(void) {
    static const cci_endpoint_ops_t table = {CCI__ENDPOINT_OPS(cci__dgram_destroy, cci__endpoint_connect),
                                             cci__dgram_get_event,
                                             cci__dgram_return_event,
                                             CCI__ENDPOINT_OPTS,
                                             cci__dgram_sendv,
#ifdef CCI_NO_RMA
                                             NULL,
                                             NULL,
                                             NULL,
#else
                                             cci__dgram_rma_register,
                                             cci__dgram_rma_deregister,
                                             cci__dgram_rma,
#endif
                                             NULL,
                                             NULL,
                                             cci__endpoint_answer,
                                             cci__endpoint_next_deadline,
#ifdef CCI_NO_ATOMICS
                                             NULL
#else
                                             cci__dgram_atomic
#endif
    };
    return &table;
}

#ifdef __cplusplus
}
#endif
#endif /* CCI_DGRAM_IMPLEMENTATION */

/* ==================================================================================================================
 * >>core
 *
 * What is left of the interface when an endpoint's own work is taken away: the program's hooks, the table of
 * transports, the configuration, the list of devices, and the functions that check their arguments and call the
 * transport of the endpoint that they were given. It never touches a datagram, an event or a connection's state; of
 * an RMA between lists (>>core-lists) it keeps what the transports don't know.
 *
 * Invariants. One lock guards the table, the devices and the list of endpoints; it is held while a transport proposes,
 * configures or refreshes devices and creates an endpoint, so hooks and transports must not call back into functions
 * that make or list devices or endpoints. Another guards the books about memory of cci_rma_alloc() and its
 * registrations, and the links between endpoints; nothing is called while it is held.
 * Nothing on the way of a message or an RMA takes either. Devices, their texts and every
 * array that cci_get_devices() ever gave live until the last cci_finalize(). What cci_setup() set stays set after it.
 *
 * Configuration. The text is parsed as a whole before any device is made; the first error is logged as "file:line:
 * reason" and ends cci_init(). A section whose transport is not in this program is skipped with a warning, since one
 * file may serve several programs; its device appears should the transport be registered later. Without configuration,
 * two transports that propose the same name both get a device: the second is called "name.transport".
 *
 * Limits: 16 transports; a configuration of 1 MiB, with lines of 4,096 bytes, 1,024 sections and 64 keys in each.
 * ================================================================================================================== */
#if defined(CCI_CORE_IMPLEMENTATION) && !defined(CCI_CORE_IMPLEMENTED)
#define CCI_CORE_IMPLEMENTED

#include <stdlib.h>
#include <string.h>
#ifndef CCI_NO_STDIO
#include <stdio.h>
#endif
#if CCI_POSIX
#include <pthread.h>
#include <time.h>
#include <unistd.h>
#elif CCI_WINDOWS
#include <windows.h>

#include <bcrypt.h>
#ifdef _MSC_VER
#pragma comment(lib, "bcrypt")
#endif
#endif
#if defined(__linux__)
#include <sys/random.h>
#ifndef CCI_NO_NAMES
#include <sys/socket.h>
#include <sys/un.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifdef CCI_SMALL
#define CCI__TRANSPORT_MAX 2u
#else
#define CCI__TRANSPORT_MAX 16u
#endif
#ifdef CCI_SMALL
#define CCI__REASON_SIZE_BYTES 16u
#else
#define CCI__REASON_SIZE_BYTES 160u
#endif
#define CCI__INI_SIZE_MAX_BYTES ((size_t)1 << 20)
#define CCI__INI_LINE_MAX_BYTES ((size_t)4096)
#define CCI__INI_SECTION_MAX 1024u
#define CCI__INI_KEY_MAX 64u

/* A section of the configuration. Its keys, other than the three that the core reads, are args[first_arg] and those
 * that follow, up to a NULL: just what conf_argv wants. */
typedef struct cci__ini_section {
    const char *name;
    const char *transport;
    uint32_t line;
    uint32_t priority;
    uint32_t first_arg;
    uint32_t arg_count;
    uint8_t has_priority;
    uint8_t has_default;
    uint8_t is_default;
    uint8_t is_pending; /* no device was made of it yet */
} cci__ini_section_t;

/* A parsed configuration: one block of memory that begins with the sections. */
typedef struct cci__ini {
    cci__ini_section_t *sections;
    const char **args;
    uint32_t *arg_lines; /* the line of each of args */
    char *file;          /* the name for messages */
    char *text;          /* a copy that the parser cuts into strings */
    uint32_t section_count;
    uint32_t arg_count;
    uint32_t default_line;
} cci__ini_t;

/* A string that a device once showed; the characters follow. */
typedef struct cci__text {
    struct cci__text *next;
} cci__text_t;

typedef struct cci__device {
    struct cci_device pub; /* first, so that a pointer to one is a pointer to the other */
    cci_device_desc_t desc;
    const cci_transport_t *transport; /* NULL after the transport was deregistered */
    struct cci__device *next;         /* in the order of priority */
    cci__text_t *texts;
    uint32_t priority;
    uint32_t rank; /* orders equal priorities: the transport's place in the table */
    uint8_t is_default;
    uint8_t is_proposed; /* by the transport rather than configured */
    uint8_t is_seen;     /* proposed again in this round */
    uint8_t is_own;      /* of cci_create_endpoint_on_link(): in no list, it ends with its endpoint */
} cci__device_t;

#ifndef CCI_NO_NAMES
/* The name of an endpoint's service, as long as it has it. */
typedef struct cci__held_name {
    struct cci__held_name *next;
    const cci_endpoint_base_t *endpoint;
    uint64_t words[2]; /* what name it is, and on which address */
    int fd;            /* holds it against other processes; -1: nothing does */
} cci__held_name_t;
#endif

/* What stands for device and transport where the program gives a link. */
typedef struct cci__own_device {
    cci__device_t device; /* first */
    cci_transport_t transport;
} cci__own_device_t;

/* An array given to the program; the pointers follow. */
typedef struct cci__array {
    struct cci__array *next;
} cci__array_t;

/* What cci_rma_alloc() gave. */
typedef struct cci__shared {
    struct cci__shared *next;
    const cci_endpoint_base_t *endpoint;
    uint8_t *start;
    uint64_t length;
    int is_transports; /* it is the transport's; else it lies behind this */
} cci__shared_t;

/* A registration of such memory: known by the bytes of its handle. */
typedef struct cci__registered {
    struct cci__registered *next;
    const cci_endpoint_base_t *endpoint;
    const uint8_t *start;
    uint64_t length;
    struct cci_rma_handle handle;
} cci__registered_t;

#ifndef CCI_STATIC
const char cci_only_one_file_may_define_CCI_IMPLEMENTATION = 1, cci_h_is_missing_after_the_header_of_a_transport = 1;
#endif

typedef struct cci__core {
    cci_setup_t setup;
    uint32_t init_count;
    int log_level;      /* of CCI_LOG in the environment, plus 1; 0: none */
    uint32_t has_table; /* the included transports are in the table */
    uint32_t table_count;
    uint32_t fixed_count; /* the first of them come from cci_setup() and inclusion, the others were registered */
    const cci_transport_t *table[CCI__TRANSPORT_MAX];
    uint32_t open_count[CCI__TRANSPORT_MAX]; /* endpoints */
    char reason[CCI__TRANSPORT_MAX][CCI__REASON_SIZE_BYTES];
    uint32_t is_configured;
    cci__ini_t ini;
    cci__device_t *devices;
    uint32_t device_count;
    cci__array_t *arrays; /* the newest first */
    uint32_t array_device_count;
    cci_endpoint_base_t *endpoints;
    cci__shared_t *memories; /* these two and the links of `endpoints` have a lock of their own */
    cci__registered_t *registered;
#ifndef CCI_NO_NAMES
    cci__held_name_t *names;         /* likewise */
    cci__held_name_t *parents_names; /* in the child of fork(): nobody may free them there */
#endif
    uint32_t is_forked; /* this is the child of fork(), and cci_init() was not called in it */
    uint32_t has_told_fork;
    cci_endpoint_base_t *dead; /* endpoints of the parent */
    /* what the child keeps and never looks at, since the program may have pointers to it */
    cci__device_t *parent_devices;
    cci__array_t *parent_arrays;
    cci__ini_t parent_ini;
} cci__core_t;

static cci__core_t cci__core;

/* Can fork() be noticed? (Before version 2.34, glibc had pthread_atfork() in the library of threads alone.) */
#if CCI_POSIX && (!defined(CCI_NO_THREADS) || !defined(__GLIBC__))
#define CCI__HAS_ATFORK 1
#elif CCI_POSIX && (__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 34))
#define CCI__HAS_ATFORK 1
#else
#define CCI__HAS_ATFORK 0
#endif

/* The included transports, in the order of their inclusion. */
static const cci_transport_t *const cci__included[] = {
#ifdef CCI_TRANSPORT_1
    CCI_TRANSPORT_1,
#endif
#ifdef CCI_TRANSPORT_2
    CCI_TRANSPORT_2,
#endif
#ifdef CCI_TRANSPORT_3
    CCI_TRANSPORT_3,
#endif
#ifdef CCI_TRANSPORT_4
    CCI_TRANSPORT_4,
#endif
    NULL};

static cci__mutex_t cci__core_mutex = CCI__MUTEX_INITIALIZER, cci__shared_mutex = CCI__MUTEX_INITIALIZER;

static void cci__core_lock(void) {
    cci__mutex_take(&cci__core_mutex);
}

static void cci__core_unlock(void) {
    cci__mutex_give(&cci__core_mutex);
}

static void cci__shared_lock(void) {
    cci__mutex_take(&cci__shared_mutex);
}

static void cci__shared_unlock(void) {
    cci__mutex_give(&cci__shared_mutex);
}

/* ---- the list of open endpoints ---------------------------------------------------------------------------------- */

static void cci__endpoint_link(cci_endpoint_base_t *endpoint) {
    cci__shared_lock();
    endpoint->next_in_core = cci__core.endpoints;
    cci__core.endpoints = endpoint;
    cci__shared_unlock();
}

/* Takes an endpoint off a list; 0 when it is not there. */
static int cci__endpoint_unlink(cci_endpoint_base_t **at, const cci_endpoint_base_t *endpoint) {
    int is_there;
    cci__shared_lock();
    while (*at != NULL && *at != endpoint) at = &(*at)->next_in_core;
    is_there = *at != NULL;
    if (is_there) *at = endpoint->next_in_core;
    cci__shared_unlock();
    return is_there;
}

/* Is the handle an endpoint, open or dead? It may be a connection: only addresses are compared. */
static int cci__is_endpoint(const void *handle) {
    const cci_endpoint_base_t *at;
    cci__shared_lock();
    at = cci__core.endpoints;
    while (at != NULL && (const void *)at != handle) at = at->next_in_core;
    if (at == NULL) at = cci__core.dead;
    while (at != NULL && (const void *)at != handle) at = at->next_in_core;
    cci__shared_unlock();
    return at != NULL;
}

/* ---- names of services that endpoints have ----------------------------------------------------------------------- */

#ifdef CCI_NO_NAMES
#define cci__give_name_up(endpoint) ((void)0)
#define cci__forget_names() ((void)0)
#else
/* Binds what no other process of this host, or network namespace, can bind at the same time. -1: where there is nothing
 * of the kind. */
static int cci__hold(const uint64_t words[2], int *fd) {
    *fd = -1;
#if defined(__linux__)
    struct sockaddr_un at;
    size_t i;
    memset(&at, 0, sizeof at);
    at.sun_family = AF_UNIX;
    memcpy(at.sun_path, "\0cci.h service ", 15); /* no file: it goes with the last process that has it */
    for (i = 0; i < 32; i++) at.sun_path[15 + i] = "0123456789abcdef"[words[i / 16] >> 4 * (i % 16) & 15];
    *fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (*fd < 0 || bind(*fd, (const struct sockaddr *)(const void *)&at,
                        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 47)) != 0) {
        int error = errno;
        if (*fd >= 0) (void)close(*fd);
        return error == EADDRINUSE ? (int)CCI_EBUSY : cci_status_of_errno(error);
    }
#else
    (void)words;
#endif
    return CCI_SUCCESS;
}

static void cci__free_name(cci__held_name_t *held) {
#if defined(__linux__)
    if (held->fd >= 0) (void)close(held->fd);
#endif
    cci_release(held);
}

/* The endpoint goes, and others may have its name. */
static void cci__give_name_up(const cci_endpoint_base_t *endpoint) {
    cci__held_name_t **at = &cci__core.names;
    cci__shared_lock();
    while (*at != NULL && (*at)->endpoint != endpoint) at = &(*at)->next;
    if (*at != NULL) {
        cci__held_name_t *held = *at;
        *at = held->next;
        cci__free_name(held);
    }
    cci__shared_unlock();
}

#if CCI_POSIX
/* In the child of fork(): they are the parent's alone. */
static void cci__forget_names(void) {
    cci__held_name_t **at;
    for (at = &cci__core.names; *at != NULL; at = &(*at)->next) {
#if defined(__linux__)
        if ((*at)->fd >= 0) (void)close((*at)->fd);
#endif
    }
    *at = cci__core.parents_names;
    cci__core.parents_names = cci__core.names;
    cci__core.names = NULL;
}
#endif
#endif

/* ---- services -------------------------------------------------------------------------------------------------- */

CCI_API int cci_status_of_errno(int error) {
    switch (error) {
    case EINVAL:
    case ETIMEDOUT:
    case ENOMEM:
    case ENODEV:
    case ENETDOWN:
    case EBUSY:
    case ERANGE:
    case EAGAIN:
    case ENOBUFS:
    case EMSGSIZE:
    case ENOMSG:
    case EADDRNOTAVAIL:
    case ECONNREFUSED: return error; /* these statuses have the numbers of what they are named after */
    case ENOENT: return CCI_ERR_NOT_FOUND;
    case EMFILE:
    case ENFILE: return CCI_ENOMEM;
    case EADDRINUSE: return CCI_EBUSY;
    default: return CCI_ERROR;
    }
}

CCI_API void *cci_alloc(size_t size) {
#ifdef CCI_SMALL
    return cci__core.setup.alloc != NULL ? cci__core.setup.alloc(cci__core.setup.user, size) : NULL;
#else
    return cci__core.setup.alloc != NULL ? cci__core.setup.alloc(cci__core.setup.user, size) : malloc(size);
#endif
}

CCI_API void cci_release(void *pointer) {
    if (pointer == NULL) return;
    if (cci__core.setup.release != NULL) cci__core.setup.release(cci__core.setup.user, pointer);
#ifndef CCI_SMALL
    else
        free(pointer);
#endif
}

#ifndef CCI_LOG
#define CCI_LOG(level, text) cci__log_default(level, text)

static void cci__log_default(int level, const char *text) {
    if (cci__core.setup.log != NULL) {
        cci__core.setup.log(cci__core.setup.user, level, text);
        return;
    }
#ifndef CCI_NO_STDIO
    if (level <= CCI_LOG_WARN || cci__core.log_level > 0)
        fprintf(stderr, "cci: %s: %s\n",
                level == CCI_LOG_ERROR  ? "error"
                : level == CCI_LOG_WARN ? "warning"
                : level == CCI_LOG_INFO ? "info"
                                        : "debug",
                text);
#endif
}
#endif

CCI_API int cci_log_wants(int level) {
    return level < (cci__core.log_level > 0 ? cci__core.log_level : CCI_LOG_DEBUG);
}

CCI_API void cci_log(int level, const char *text) {
    if (cci__core.log_level == 0 || cci_log_wants(level)) CCI_LOG(level, text);
}

CCI_API int cci_random(void *bytes, size_t count) {
    uint8_t *at = (uint8_t *)bytes;
    if (cci__core.setup.random != NULL)
        return cci__core.setup.random(cci__core.setup.user, bytes, count) == 0 ? CCI_SUCCESS : CCI_ERROR;
#if defined(__linux__)
    while (count > 0) {
        ssize_t got = getrandom(at, count, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break; /* a kernel without the call: try the file */
        at += got;
        count -= (size_t)got;
    }
#endif
#if CCI_POSIX && !defined(CCI_NO_STDIO)
    if (count > 0) {
        FILE *file = fopen("/dev/urandom", "rb");
        if (file != NULL) {
            count -= fread(at, 1, count, file);
            fclose(file);
        }
    }
#endif
#if CCI_WINDOWS
    while (count > 0) {
        ULONG part = count > 1048576 ? 1048576 : (ULONG)count;
        if (BCryptGenRandom(NULL, at, part, BCRYPT_USE_SYSTEM_PREFERRED_RNG) != 0) break;
        at += part;
        count -= part;
    }
#endif
    (void)at;
    return count == 0 ? CCI_SUCCESS : CCI_ERROR;
}

CCI_API const cci_seal_t *cci_seal_hooks(void) {
    return cci__core.setup.seal;
}

CCI_API int cci_congestion_known(const char *name) {
    return cci__find_congestion(name) != NULL;
}

#ifndef CCI_URI_ALLOC
#ifdef CCI_SMALL
#define CCI_URI_ALLOC cci_alloc /* programs give URIs back with cci_release() */
#define CCI_URI_RELEASE cci_release
#else
#define CCI_URI_ALLOC malloc /* programs give URIs back with free() */
#define CCI_URI_RELEASE free
#endif
#endif

CCI_API int cci_make_uri(const char *scheme, const char *address, char **uri) {
    size_t head = strlen(scheme), size = head + 3 + strlen(address) + 1;
    *uri = (char *)CCI_URI_ALLOC(size);
    if (!*uri) return CCI_ENOMEM;
    memcpy(*uri, scheme, head);
    memcpy(*uri + head, "://", 3);
    memcpy(*uri + head + 3, address, size - head - 3);
    return CCI_SUCCESS;
}

/* ---- messages to the log ----------------------------------------------------------------------------------------- */

static void cci__note_add_number(cci__note_t *note, uint32_t number) {
    char digits[12];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10u);
        number /= 10u;
    } while (number > 0);
    cci__note_add(note, digits + at);
}

/* "key: why it is refused", as far as there is room. */
static void cci__explain_key(const cci_transport_t *self, const char *key, const char *value, const char *wanted,
                             char *why, size_t why_size) {
    cci__note_t note;
    size_t length;
    note.length = 0;
    cci__note_add(&note, key);
    if (*wanted) {
        cci__note_add(&note, ": \"");
        cci__note_add(&note, value);
        cci__note_add(&note, "\" is not ");
        cci__note_add(&note, wanted);
    } else {
        cci__note_add(&note, ": the ");
        cci__note_add(&note, self->name);
        cci__note_add(&note, " transport has no such key");
    }
    if (why_size == 0) return;
    length = note.length < why_size - 1 ? note.length : why_size - 1;
    memcpy(why, note.text, length);
    why[length] = '\0';
}

CCI_API int cci_take_keys(const cci_transport_t *self, const char *const *keys, cci_take_key_t take, void *user,
                          int *bad_key, char *why, size_t why_size) {
    int i;
    *bad_key = -1;
    for (i = 0; keys && keys[i]; i++) {
        char key[32], range[80];
        const char *equals = strchr(keys[i], '='), *value = equals ? equals + 1 : "", *wanted;
        size_t length = equals ? (size_t)(equals - keys[i]) : strlen(keys[i]);
        while (length && (keys[i][length - 1] == ' ' || keys[i][length - 1] == '\t')) length--;
        length = length < sizeof key - 1 ? length : sizeof key - 1;
        memcpy(key, keys[i], length);
        key[length] = '\0';
        value += strspn(value, " \t");
        if (strcmp(key, "transport") == 0 || strcmp(key, "priority") == 0 || strcmp(key, "default") == 0) continue;
        wanted = take(user, i, key, value, range, sizeof range);
        if (wanted) {
            *bad_key = i;
            cci__explain_key(self, key, value, wanted, why, why_size);
            return CCI_EINVAL;
        }
    }
    return CCI_SUCCESS;
}

/* Logs "file:line: " and three pieces of text. Without a file there is no such prefix, without a line (0) no number. */
static void cci__report(int level, const char *file, uint32_t line, const char *first, const char *second,
                        const char *third) {
    cci__note_t note;
    note.length = 0;
    if (file != NULL) {
        size_t length = strlen(file);
        cci__note_add(&note, length > 256 ? file + (length - 256) : file); /* leaves room for the reason */
        cci__note_add(&note, ":");
        if (line > 0) {
            cci__note_add_number(&note, line);
            cci__note_add(&note, ":");
        }
        cci__note_add(&note, " ");
    }
    cci__note_add(&note, first);
    cci__note_add(&note, second);
    cci__note_add(&note, third);
    cci_log(level, note.text);
}

/* ==================================================================================================================
 * >>core-config
 *
 * The configuration's text, the table of transports, and the devices that come of both.
 *   Parts: the parser; the table of transports; devices; devices without configuration; devices of a configuration.
 * ================================================================================================================== */

/* ---- the parser ---- */

static int cci__ini_error(const cci__ini_t *ini, uint32_t line, const char *first, const char *second,
                          const char *third) {
    cci__report(CCI_LOG_ERROR, ini->file, line, first, second, third);
    return CCI_ERROR;
}

static int cci__ini_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Takes the blanks off both ends, and ends the rest with a 0: the byte behind it is a blank, a comment, a line feed, or
 * what the caller has finished with. */
static char *cci__ini_trim(char *at, size_t *length) {
    while (*length > 0 && cci__ini_is_blank(at[*length - 1])) --*length;
    while (*length > 0 && cci__ini_is_blank(*at)) {
        at++;
        --*length;
    }
    at[*length] = '\0';
    return at;
}

/* Each section needs a '[' and each key a '=', so counting these tells how much is needed at most. */
static int cci__ini_allocate(cci__ini_t *ini, const char *name, const char *text, size_t length) {
    size_t sections = 1, args = 1, name_size = strlen(name) + 1, i;
    char *block;
    for (i = 0; i < length; i++) {
        sections += text[i] == '[';
        args += text[i] == '=';
    }
    if (sections > CCI__INI_SECTION_MAX) sections = CCI__INI_SECTION_MAX;
    if (args > CCI__INI_SECTION_MAX * CCI__INI_KEY_MAX) args = CCI__INI_SECTION_MAX * CCI__INI_KEY_MAX;
    args += sections; /* the NULL behind each section's */
    block = (char *)cci_alloc(sections * sizeof *ini->sections + args * (sizeof *ini->args + sizeof *ini->arg_lines) +
                              name_size + length + 1);
    if (block == NULL) return CCI_ENOMEM;
    ini->sections = (cci__ini_section_t *)(void *)block;
    ini->args = (const char **)(void *)(ini->sections + sections);
    ini->arg_lines = (uint32_t *)(void *)(ini->args + args);
    ini->file = (char *)(ini->arg_lines + args);
    ini->text = ini->file + name_size;
    memcpy(ini->file, name, name_size);
    if (length > 0) memcpy(ini->text, text, length);
    ini->text[length] = '\0';
    return CCI_SUCCESS;
}

static void cci__ini_free(cci__ini_t *ini) {
    cci_release(ini->sections);
    memset(ini, 0, sizeof *ini);
}

/* Ends the section that is open, if any. */
static int cci__ini_end_section(cci__ini_t *ini) {
    const cci__ini_section_t *section;
    if (ini->section_count == 0) return CCI_SUCCESS;
    section = &ini->sections[ini->section_count - 1];
    if (section->transport == NULL)
        return cci__ini_error(ini, section->line, "section [", section->name, "] has no key \"transport\"");
    ini->args[ini->arg_count] = NULL;
    ini->arg_lines[ini->arg_count++] = section->line;
    return CCI_SUCCESS;
}

/* A line "[name]". */
static int cci__ini_parse_header(cci__ini_t *ini, uint32_t line, char *at, size_t length) {
    const char *close = (const char *)memchr(at, ']', length);
    cci__ini_section_t *section;
    uint32_t i;
    int status;
    if (close == NULL) return cci__ini_error(ini, line, "\"]\" is missing", "", "");
    if (close != at + length - 1) return cci__ini_error(ini, line, "there is text behind \"]\"", "", "");
    length -= 2;
    at = cci__ini_trim(at + 1, &length);
    if (length == 0) return cci__ini_error(ini, line, "the section has no name", "", "");
    for (i = 0; i < ini->section_count; i++)
        if (strcmp(ini->sections[i].name, at) == 0)
            return cci__ini_error(ini, line, "there is already a section [", at, "]");
    status = cci__ini_end_section(ini);
    if (status != CCI_SUCCESS) return status;
    if (ini->section_count == CCI__INI_SECTION_MAX) return cci__ini_error(ini, line, "too many sections", "", "");
    section = &ini->sections[ini->section_count++];
    memset(section, 0, sizeof *section);
    section->name = at;
    section->line = line;
    section->priority = 50;
    section->first_arg = ini->arg_count;
    section->is_pending = 1;
    return CCI_SUCCESS;
}

static int cci__ini_set_priority(cci__ini_t *ini, cci__ini_section_t *section, uint32_t line, const char *value) {
    uint32_t number = 0;
    const char *at = value;
    if (section->has_priority) return cci__ini_error(ini, line, "\"priority\" is set twice", "", "");
    while (*at >= '0' && *at <= '9' && number <= 100) number = number * 10 + (uint32_t)(*at++ - '0');
    if (at == value || *at != '\0' || number > 100)
        return cci__ini_error(ini, line, "priority is a number from 0 to 100, not \"", value, "\"");
    section->priority = number;
    section->has_priority = 1;
    return CCI_SUCCESS;
}

static int cci__ini_set_default(cci__ini_t *ini, cci__ini_section_t *section, uint32_t line, const char *value) {
    int is_true = strcmp(value, "1") == 0 || strcmp(value, "true") == 0 || strcmp(value, "yes") == 0;
    if (section->has_default) return cci__ini_error(ini, line, "\"default\" is set twice", "", "");
    section->has_default = 1;
    if (!is_true && strcmp(value, "0") != 0 && strcmp(value, "false") != 0 && strcmp(value, "no") != 0)
        return cci__ini_error(ini, line, "default is 0 or 1, not \"", value, "\"");
    if (!is_true) return CCI_SUCCESS;
    if (ini->default_line != 0) {
        cci__note_t note;
        note.length = 0;
        cci__note_add_number(&note, ini->default_line);
        return cci__ini_error(ini, line, "only one device can be the default, and line ", note.text, " has it");
    }
    ini->default_line = line;
    section->is_default = 1;
    return CCI_SUCCESS;
}

/* Keeps a key for the transport; `pair` is "key=value". */
static int cci__ini_add_arg(cci__ini_t *ini, cci__ini_section_t *section, uint32_t line, const char *pair,
                            size_t key_length) {
    uint32_t i;
    for (i = 0; i < section->arg_count; i++) {
        /* including the '=', so that one key is not mistaken for a longer one */
        if (strncmp(ini->args[section->first_arg + i], pair, key_length + 1) == 0)
            return cci__ini_error(ini, line, "the key of \"", pair, "\" is set twice in this section");
    }
    if (section->arg_count == CCI__INI_KEY_MAX) return cci__ini_error(ini, line, "too many keys", "", "");
    ini->args[ini->arg_count] = pair;
    ini->arg_lines[ini->arg_count++] = line;
    section->arg_count++;
    return CCI_SUCCESS;
}

/* A line "key = value". */
static int cci__ini_parse_pair(cci__ini_t *ini, uint32_t line, char *key, size_t length) {
    char *equals = (char *)memchr(key, '=', length), *value;
    cci__ini_section_t *section;
    size_t key_length, value_length;
    if (equals == NULL) return cci__ini_error(ini, line, "\"key = value\" is expected, not \"", key, "\"");
    if (ini->section_count == 0) return cci__ini_error(ini, line, "a key stands before the first [section]", "", "");
    section = &ini->sections[ini->section_count - 1];
    key_length = (size_t)(equals - key);
    value_length = length - key_length - 1;
    value = cci__ini_trim(equals + 1, &value_length);
    key = cci__ini_trim(key, &key_length);
    if (key_length == 0) return cci__ini_error(ini, line, "the key before \"=\" is missing", "", "");
    if (strcmp(key, "priority") == 0) return cci__ini_set_priority(ini, section, line, value);
    if (strcmp(key, "default") == 0) return cci__ini_set_default(ini, section, line, value);
    if (strcmp(key, "transport") == 0) {
        if (section->transport != NULL) return cci__ini_error(ini, line, "\"transport\" is set twice", "", "");
        if (value_length == 0) return cci__ini_error(ini, line, "\"transport\" has no value", "", "");
        section->transport = value;
        return CCI_SUCCESS;
    }
    key[key_length] = '='; /* joins the two in place; there is room, since only blanks have gone */
    memmove(key + key_length + 1, value, value_length + 1);
    return cci__ini_add_arg(ini, section, line, key, key_length);
}

static int cci__ini_parse_line(cci__ini_t *ini, uint32_t line, char *at, size_t length) {
    const char *comment = (const char *)memchr(at, '#', length);
    if (length > CCI__INI_LINE_MAX_BYTES) return cci__ini_error(ini, line, "the line is too long", "", "");
    if (memchr(at, '\0', length) != NULL) return cci__ini_error(ini, line, "the line has a byte 0", "", "");
    if (comment != NULL) length = (size_t)(comment - at);
    at = cci__ini_trim(at, &length);
    if (length == 0) return CCI_SUCCESS;
    return *at == '[' ? cci__ini_parse_header(ini, line, at, length) : cci__ini_parse_pair(ini, line, at, length);
}

/* Parses a configuration; `name` stands for it in messages. What comes out of it is freed with cci__ini_free(). The
 * bytes may be anything. */
static int cci__ini_parse(const char *name, const char *text, size_t length, cci__ini_t *ini) {
    char *at, *end;
    uint32_t line = 0;
    int status;
    memset(ini, 0, sizeof *ini);
    if (length > CCI__INI_SIZE_MAX_BYTES) {
        cci__report(CCI_LOG_ERROR, name, 0, "the configuration is longer than 1 MiB", "", "");
        return CCI_ERROR;
    }
    status = cci__ini_allocate(ini, name, text, length);
    if (status != CCI_SUCCESS) return status;
    at = ini->text;
    end = at + length;
    if (length >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) at += 3; /* some editors mark UTF-8 so */
    while (at < end && status == CCI_SUCCESS) {
        char *stop = (char *)memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) stop = end;
        status = cci__ini_parse_line(ini, ++line, at, (size_t)(stop - at));
        at = stop + 1; /* at most one past the final 0 */
    }
    if (status == CCI_SUCCESS) status = cci__ini_end_section(ini);
    if (status != CCI_SUCCESS) cci__ini_free(ini);
    return status;
}

#ifndef CCI_NO_STDIO
/* Reads a stream to its end into memory of its own, and stops one byte past what the parser takes. */
static int cci__ini_slurp(FILE *file, char **text, size_t *length) {
    size_t capacity = 4096, used = 0;
    char *bytes = (char *)cci_alloc(capacity);
    while (bytes != NULL) {
        char *larger;
        used += fread(bytes + used, 1, capacity - used, file);
        if (used < capacity || used > CCI__INI_SIZE_MAX_BYTES) break;
        larger = (char *)cci_alloc(capacity * 2);
        if (larger != NULL) memcpy(larger, bytes, used);
        cci_release(bytes);
        bytes = larger;
        capacity *= 2;
    }
    *text = bytes;
    *length = used;
    return bytes != NULL ? CCI_SUCCESS : CCI_ENOMEM;
}

static int cci__ini_read_file(const char *name, cci__ini_t *ini) {
    char *text = NULL;
    size_t length = 0;
    int status;
    FILE *file;
    errno = 0;
    file = fopen(name, "rb");
    if (file == NULL) {
        status = cci_status_of_errno(errno);
        cci__report(CCI_LOG_ERROR, name, 0, "cannot open the file that CCI_CONFIG names: ", strerror(errno), "");
        return status;
    }
    status = cci__ini_slurp(file, &text, &length);
    if (status == CCI_SUCCESS && ferror(file)) { /* a directory, for one */
        status = cci_status_of_errno(errno);
        cci__report(CCI_LOG_ERROR, name, 0, "cannot read the file that CCI_CONFIG names: ", strerror(errno), "");
    }
    fclose(file);
    if (status == CCI_SUCCESS) status = cci__ini_parse(name, text, length, ini);
    cci_release(text);
    return status;
}
#endif

/* ---- the table of transports ----------------------------------------------------------------------------------- */

/* The name becomes the scheme of URIs, so it is made of what a scheme may have. */
static int cci__name_is_valid(const char *name) {
    if (name == NULL || *name == '\0') return 0;
    for (; *name != '\0'; name++) {
        char c = *name;
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '-' ||
              c == '.'))
            return 0;
    }
    return 1;
}

static int cci__table_append(const cci_transport_t **table, uint32_t *count, const cci_transport_t *transport) {
    uint32_t i;
    if (transport->version == 0 || transport->version > CCI_TRANSPORT_VERSION || !cci__name_is_valid(transport->name))
        return CCI_EINVAL;
    if (transport->link == NULL ? transport->create == NULL : transport->link->version - 1u >= CCI_LINK_VERSION)
        return CCI_EINVAL;
    for (i = 0; i < *count; i++)
        if (strcmp(table[i]->name, transport->name) == 0) return CCI_EBUSY;
    if (*count == CCI__TRANSPORT_MAX) return CCI_ENOBUFS;
    table[(*count)++] = transport;
    return CCI_SUCCESS;
}

/* Makes the table anew: the program's own, the included ones, those registered before. On failure nothing changes. */
static int cci__table_build(const cci_transport_t *const *own) {
    const cci_transport_t *table[CCI__TRANSPORT_MAX];
    uint32_t count = 0, fixed_count, i;
    int status = CCI_SUCCESS;
    for (i = 0; own != NULL && own[i] != NULL && status == CCI_SUCCESS; i++)
        status = cci__table_append(table, &count, own[i]);
    for (i = 0; cci__included[i] != NULL && status == CCI_SUCCESS; i++)
        status = cci__table_append(table, &count, cci__included[i]);
    fixed_count = count;
    for (i = cci__core.fixed_count; i < cci__core.table_count && status == CCI_SUCCESS; i++)
        status = cci__table_append(table, &count, cci__core.table[i]);
    if (status != CCI_SUCCESS) return status;
    for (i = 0; i < count; i++) cci__core.table[i] = table[i];
    cci__core.table_count = count;
    cci__core.fixed_count = fixed_count;
    cci__core.has_table = 1;
    return CCI_SUCCESS;
}

static int cci__table_load(void) {
    return cci__core.has_table ? (int)CCI_SUCCESS : cci__table_build(NULL);
}

/* The index of a transport, or table_count. */
static uint32_t cci__table_find(const cci_transport_t *transport) {
    uint32_t i = 0;
    while (i < cci__core.table_count && cci__core.table[i] != transport) i++;
    return i;
}

static uint32_t cci__table_find_name(const char *name) {
    uint32_t i = 0;
    while (i < cci__core.table_count && strcmp(cci__core.table[i]->name, name) != 0) i++;
    return i;
}

static int cci__core_can_seal(const cci_seal_t *seal) {
    return seal->key != NULL && seal->seal != NULL && seal->open != NULL && seal->tag_size >= 8 &&
           seal->tag_size <= 64 && seal->tag_size % 8 == 0;
}

static int cci__setup_locked(const cci_setup_t *setup) {
    int status;
    if (cci__core.init_count > 0 && !cci__core.is_forked) return CCI_EBUSY;
    if (cci__core.endpoints != NULL) return CCI_EBUSY; /* on a link of the program */
    if (setup != NULL && (setup->alloc == NULL) != (setup->release == NULL)) return CCI_EINVAL;
    if (setup != NULL && setup->seal != NULL && !cci__core_can_seal(setup->seal)) return CCI_EINVAL;
#ifdef CCI_SMALL
    status = setup != NULL && setup->transports != NULL ? (int)CCI_EINVAL : (int)CCI_SUCCESS;
#else
    status = cci__table_build(setup != NULL ? setup->transports : NULL);
#endif
    if (status != CCI_SUCCESS) return status;
    if (setup != NULL)
        cci__core.setup = *setup;
    else
        memset(&cci__core.setup, 0, sizeof cci__core.setup);
    return CCI_SUCCESS;
}

CCI_API int cci_setup(const cci_setup_t *setup) {
    int status;
    cci__core_lock();
    status = cci__setup_locked(setup);
    cci__core_unlock();
    return status;
}

CCI_API int cci_register_transport(const struct cci_transport *transport) {
    int status;
    if (transport == NULL) return CCI_EINVAL;
    cci__core_lock();
    status = cci__table_load();
    if (status == CCI_SUCCESS) {
        uint32_t i = cci__core.table_count;
        status = cci__table_append(cci__core.table, &cci__core.table_count, transport);
        if (status == CCI_SUCCESS) {
            cci__core.open_count[i] = 0;
            cci__core.reason[i][0] = '\0';
        }
    }
    cci__core_unlock();
    return status;
}

static void cci__device_set_up(cci__device_t *device, unsigned up) {
    if (device->pub.up != up) device->pub.up = up; /* other threads read it: no write without need */
}

/* The devices stay in the list, since the program may hold pointers to them, but they are down for good, or until a
 * transport of that name is registered again. */
static int cci__deregister_locked(const cci_transport_t *transport) {
    uint32_t i = cci__table_find(transport);
    cci__device_t *device;
    if (i == cci__core.table_count) return CCI_ERR_NOT_FOUND;
    if (cci__core.open_count[i] > 0) return CCI_EBUSY;
    for (device = cci__core.devices; device != NULL; device = device->next) {
        if (device->transport != transport) continue;
        device->transport = NULL;
        cci__device_set_up(device, 0);
    }
    cci__core.table_count--;
    if (i < cci__core.fixed_count) cci__core.fixed_count--;
    for (; i < cci__core.table_count; i++) {
        cci__core.table[i] = cci__core.table[i + 1];
        cci__core.open_count[i] = cci__core.open_count[i + 1];
        memcpy(cci__core.reason[i], cci__core.reason[i + 1], CCI__REASON_SIZE_BYTES);
    }
    return CCI_SUCCESS;
}

CCI_API int cci_deregister_transport(const struct cci_transport *transport) {
    int status;
    if (transport == NULL) return CCI_EINVAL;
    cci__core_lock();
    status = cci__table_load();
    if (status == CCI_SUCCESS) status = cci__deregister_locked(transport);
    cci__core_unlock();
    return status;
}

static const char *cci__reason_locked(uint32_t index) {
    const cci__device_t *device;
    for (device = cci__core.devices; device != NULL; device = device->next)
        if (device->transport == cci__core.table[index]) return "";
    if (cci__core.reason[index][0] != '\0') return cci__core.reason[index];
    if (cci__core.init_count == 0 || cci__core.is_forked) return "the library is not initialized";
    return cci__core.is_configured ? "the configuration has no device of it" : "no device was looked for yet";
}

/* The reason is good until the next cci_get_devices(). */
CCI_API const char *cci_transport_reason(uint32_t index, const char **name) {
    const char *reason = NULL;
    cci__core_lock();
    if (cci__table_load() == CCI_SUCCESS && index < cci__core.table_count) {
        if (name != NULL) *name = cci__core.table[index]->name;
        reason = cci__reason_locked(index);
    }
    cci__core_unlock();
    return reason;
}

/* ---- devices --------------------------------------------------------------------------------------------------- */

static cci__device_t *cci__device_of(cci_device_t *device) {
    return (cci__device_t *)(uintptr_t)device;
}

/* Keeps a text as long as the device. One that was shown before is found again, so that a device whose state flaps does
 * not eat memory. */
static const char *cci__text_keep(cci__device_t *device, const char *text) {
    size_t size = strlen(text) + 1;
    cci__text_t *kept;
    for (kept = device->texts; kept != NULL; kept = kept->next)
        if (strcmp((const char *)(kept + 1), text) == 0) return (const char *)(kept + 1);
    kept = (cci__text_t *)cci_alloc(sizeof *kept + size);
    if (kept == NULL) return NULL;
    memcpy(kept + 1, text, size);
    kept->next = device->texts;
    device->texts = kept;
    return (const char *)(kept + 1);
}

/* Takes over what a transport tells about a device. Without memory for a new `info`, the old one stays. The bytes are
 * compared before they are copied since endpoints of other threads may be reading them. */
static int cci__device_update(cci__device_t *device, const cci_device_desc_t *desc) {
    struct cci_device *pub = &device->pub;
    const char *info;
    cci__device_set_up(device, desc->up != 0);
    if (pub->max_send_size != desc->max_send_size) pub->max_send_size = desc->max_send_size;
    if (pub->rate != desc->rate) pub->rate = desc->rate;
    if (memcmp(device->desc.data, desc->data, sizeof desc->data) != 0)
        memcpy(device->desc.data, desc->data, sizeof desc->data);
    device->desc.up = desc->up != 0;
    device->desc.priority = desc->priority;
    device->desc.max_send_size = desc->max_send_size;
    device->desc.caps = device->transport->version >= 3 ? desc->caps : NULL;
    device->desc.service_port = device->transport->version >= 4 ? desc->service_port : NULL;
    device->desc.rate = desc->rate;
    info = cci__text_keep(device, desc->info != NULL ? desc->info : "");
    if (info == NULL) return CCI_ENOMEM;
    if (pub->info != info) pub->info = info;
    device->desc.info = info;
    return CCI_SUCCESS;
}

static void cci__device_refresh(cci__device_t *device) {
    cci_device_desc_t desc;
    if (device->transport == NULL || device->transport->refresh == NULL) return;
    desc = device->desc;
    device->transport->refresh(device->transport, &desc);
    (void)cci__device_update(device, &desc);
}

static void cci__device_free(cci__device_t *device) {
    while (device->texts != NULL) {
        cci__text_t *text = device->texts;
        device->texts = text->next;
        cci_release(text);
    }
    cci_release(device);
}

/* Makes a device called `name`, or `name`.`suffix`. The strings stand behind the struct: the name that the transport
 * uses, the transport's, and the device's. */
static cci__device_t *cci__device_make(const cci_transport_t *transport, const char *name, const char *suffix,
                                       const cci_device_desc_t *desc) {
    size_t name_length = strlen(name), transport_size = strlen(transport->name) + 1;
    size_t suffix_size = suffix != NULL ? strlen(suffix) + 2 : 1; /* with a dot or without, and the final 0 */
    cci__device_t *device =
        (cci__device_t *)cci_alloc(sizeof *device + name_length + 1 + transport_size + name_length + suffix_size);
    char *text;
    if (device == NULL) return NULL;
    memset(device, 0, sizeof *device);
    text = (char *)(device + 1);
    memcpy(text, name, name_length + 1);
    text += name_length + 1;
    device->desc.name = (const char *)(device + 1);
    memcpy(device->desc.pci, desc->pci, sizeof desc->pci);
    device->pub.pci.domain = desc->pci[0];
    device->pub.pci.bus = desc->pci[1];
    device->pub.pci.dev = desc->pci[2];
    device->pub.pci.func = desc->pci[3];
    device->pub.transport = text;
    memcpy(text, transport->name, transport_size);
    text += transport_size;
    device->pub.name = text;
    memcpy(text, name, name_length);
    text[name_length] = '\0';
    if (suffix != NULL) {
        text[name_length] = '.';
        memcpy(text + name_length + 1, suffix, suffix_size - 1);
    }
    device->transport = transport;
    if (cci__device_update(device, desc) != CCI_SUCCESS) {
        cci__device_free(device);
        return NULL;
    }
    return device;
}

/* Puts a device in its place: after all of a higher or the same priority and rank. */
static void cci__device_insert(cci__device_t *device) {
    cci__device_t **at = &cci__core.devices;
    while (*at != NULL &&
           ((*at)->priority > device->priority || ((*at)->priority == device->priority && (*at)->rank <= device->rank)))
        at = &(*at)->next;
    device->next = *at;
    *at = device;
    cci__core.device_count++;
}

static int cci__device_name_is(const cci__device_t *device, const char *name, const char *suffix) {
    size_t length = strlen(name);
    if (strncmp(device->pub.name, name, length) != 0) return 0;
    if (suffix == NULL) return device->pub.name[length] == '\0';
    return device->pub.name[length] == '.' && strcmp(device->pub.name + length + 1, suffix) == 0;
}

static int cci__device_name_is_taken(const char *name, const char *suffix) {
    const cci__device_t *device;
    for (device = cci__core.devices; device != NULL; device = device->next)
        if (cci__device_name_is(device, name, suffix)) return 1;
    return 0;
}

/* ---- devices without configuration ------------------------------------------------------------------------------- */

static const char *const cci__no_args[] = {NULL};

/* What `add` needs to know about the transport that is proposing. */
typedef struct cci__proposals {
    const cci_transport_t *transport;
    uint32_t rank;
    uint32_t count;
    int status; /* the first that `add` returned other than CCI_SUCCESS */
} cci__proposals_t;

static int cci__propose_new(const cci__proposals_t *proposals, const cci_device_desc_t *desc) {
    const char *suffix = NULL;
    cci__device_t *device;
    if (cci__device_name_is_taken(desc->name, NULL)) {
        suffix = proposals->transport->name;
        if (cci__device_name_is_taken(desc->name, suffix)) {
            cci__report(CCI_LOG_WARN, NULL, 0, suffix, ": no name is left for device ", desc->name);
            return CCI_SUCCESS;
        }
    }
    device = cci__device_make(proposals->transport, desc->name, suffix, desc);
    if (device == NULL) return CCI_ENOMEM;
    device->pub.conf_argv = cci__no_args;
    device->priority = desc->priority < 100 ? desc->priority : 100;
    device->rank = proposals->rank;
    device->is_proposed = 1;
    device->is_seen = 1;
    cci__device_insert(device);
    return CCI_SUCCESS;
}

/* The `add` that a transport's `discover` calls. A device that is known is brought up to date. */
static int cci__propose(void *list, const cci_device_desc_t *desc) {
    cci__proposals_t *proposals = (cci__proposals_t *)list;
    cci__device_t *device = cci__core.devices;
    int status;
    if (desc->name == NULL || *desc->name == '\0') return CCI_EINVAL;
    for (; device != NULL; device = device->next)
        if (device->is_proposed && strcmp(device->desc.name, desc->name) == 0 &&
            strcmp(device->pub.transport, proposals->transport->name) == 0)
            break;
    if (device != NULL) {
        device->transport = proposals->transport;
        device->is_seen = 1;
        status = cci__device_update(device, desc);
    } else {
        status = cci__propose_new(proposals, desc);
    }
    proposals->count++;
    if (proposals->status == CCI_SUCCESS) proposals->status = status;
    return status;
}

/* Keeps the reason for having no devices, and logs it when it is news. */
static void cci__reason_set(uint32_t index, const char *why) {
    char *reason = cci__core.reason[index];
    size_t length = strlen(why);
    if (length > CCI__REASON_SIZE_BYTES - 1) length = CCI__REASON_SIZE_BYTES - 1;
    if (strncmp(reason, why, length) == 0 && reason[length] == '\0') return;
    memcpy(reason, why, length);
    reason[length] = '\0';
    if (length > 0) cci__report(CCI_LOG_INFO, NULL, 0, cci__core.table[index]->name, ": ", reason);
}

/* Lets one transport propose. Only lack of memory is a failure; a transport that can't run gives its reason. */
static int cci__discover_one(uint32_t index) {
    char why[CCI__REASON_SIZE_BYTES];
    cci__device_t *device;
    cci__proposals_t proposals;
    int status;
    memset(&proposals, 0, sizeof proposals);
    proposals.transport = cci__core.table[index];
    proposals.rank = index;
    if (proposals.transport->discover == NULL) {
        cci__reason_set(index, "it works with a configuration only");
        return CCI_SUCCESS;
    }
    for (device = cci__core.devices; device != NULL; device = device->next) device->is_seen = 0;
    why[0] = '\0';
    status = proposals.transport->discover(proposals.transport, &proposals, cci__propose, why, sizeof why);
    why[sizeof why - 1] = '\0';
    if (status == CCI_ENOMEM || proposals.status == CCI_ENOMEM) return CCI_ENOMEM;
    if (status != CCI_SUCCESS) {
        const char *text = cci_strerror(NULL, (enum cci_status)status);
        if (why[0] == '\0')
            cci__reason_set(index, text != NULL ? text : "its discovery failed");
        else
            cci__reason_set(index, why);
        return CCI_SUCCESS;
    }
    cci__reason_set(index, proposals.count > 0 ? "" : why[0] != '\0' ? why : "it found no device");
    for (device = cci__core.devices; device != NULL; device = device->next)
        if (device->transport == proposals.transport && !device->is_seen) cci__device_set_up(device, 0);
    return CCI_SUCCESS;
}

static int cci__discover(void) {
    uint32_t i;
    int status = CCI_SUCCESS;
    for (i = 0; i < cci__core.table_count && status == CCI_SUCCESS; i++) status = cci__discover_one(i);
    return status;
}

/* ---- devices of a configuration ---------------------------------------------------------------------------------- */

static int cci__configure_section(cci__ini_section_t *section, const cci_transport_t *transport) {
    const cci__ini_t *ini = &cci__core.ini;
    char why[CCI__REASON_SIZE_BYTES];
    cci_device_desc_t desc;
    cci__device_t *device;
    int bad_key = -1, status = CCI_ERROR, i;
    memset(&desc, 0, sizeof desc);
    for (i = 0; i < 4; i++) desc.pci[i] = UINT32_MAX;
    desc.name = section->name;
    section->is_pending = 0;
    why[0] = '\0';
    if (transport->configure != NULL) {
        status = transport->configure(transport, section->name, ini->args + section->first_arg, &desc, &bad_key, why,
                                      sizeof why);
        why[sizeof why - 1] = '\0';
    }
    if (status != CCI_SUCCESS) {
        int is_key = bad_key >= 0 && (uint32_t)bad_key < section->arg_count;
        const char *text =
            transport->configure == NULL ? "it takes no configuration" : cci_strerror(NULL, (enum cci_status)status);
        if (why[0] != '\0') text = why;
        if (status == CCI_ENOMEM) return status;
        return cci__ini_error(ini, is_key ? ini->arg_lines[section->first_arg + (uint32_t)bad_key] : section->line,
                              transport->name, ": ", text != NULL ? text : "the device can't be configured");
    }
    device = cci__device_make(transport, section->name, NULL, &desc);
    if (device == NULL) return CCI_ENOMEM;
    device->pub.conf_argv = ini->args + section->first_arg;
    device->priority = section->priority;
    device->is_default = section->is_default;
    cci__device_insert(device);
    return CCI_SUCCESS;
}

/* Makes devices of all sections that have none yet. An error ends cci_init(); later it costs that section only. */
static int cci__configure(int is_init) {
    uint32_t i;
    for (i = 0; i < cci__core.ini.section_count; i++) {
        cci__ini_section_t *section = &cci__core.ini.sections[i];
        uint32_t index;
        int status;
        if (!section->is_pending) continue;
        index = cci__table_find_name(section->transport);
        if (index == cci__core.table_count) {
            if (is_init) {
                cci__report(CCI_LOG_WARN, cci__core.ini.file, section->line, "this program has no transport \"",
                            section->transport, "\": the section is skipped");
            }
            continue;
        }
        status = cci__configure_section(section, cci__core.table[index]);
        if (status == CCI_ENOMEM) section->is_pending = 1;
        if (status != CCI_SUCCESS && (is_init || status == CCI_ENOMEM)) return status;
    }
    return CCI_SUCCESS;
}

/* A transport that was taken away and came back gets its configured devices back. */
static void cci__configure_again(void) {
    cci__device_t *device;
    for (device = cci__core.devices; device != NULL; device = device->next) {
        uint32_t index;
        if (device->transport != NULL) continue;
        index = cci__table_find_name(device->pub.transport);
        if (index == cci__core.table_count) continue;
        device->transport = cci__core.table[index];
        cci__device_set_up(device, device->desc.up);
    }
}

/* ==================================================================================================================
 * >>core-init
 *
 * cci_init(), cci_finalize(), and the child of fork().
 *   Parts: fork; initialization; device functions; endpoint functions.
 * ================================================================================================================== */

/* ---- fork ----------------------------------------------------------------------------------------------------------
 *
 * A child shares its parent's sockets and has a copy of everything else: keys, packet numbers, locks that a thread
 * held which it does not have. Nothing of that may be used. So before fork() returns in the child, each of its
 * endpoints gets a table of operations that fail, and closes its descriptors; its memory stays as it was, since
 * nobody knows in which state that is. Calls pay nothing for this. */

static int cci__is_initialized(void) {
    return cci__core.init_count > 0 && !cci__core.is_forked;
}

/* All that cci_init() and cci_get_devices() made is gone, or not this process's. */
static void cci__core_forget(void) {
    uint32_t i;
    cci__core.devices = NULL;
    cci__core.arrays = NULL;
    memset(&cci__core.ini, 0, sizeof cci__core.ini);
    cci__core.is_configured = 0;
    cci__core.device_count = 0;
    cci__core.array_device_count = 0;
    for (i = 0; i < CCI__TRANSPORT_MAX; i++) {
        cci__core.open_count[i] = 0;
        cci__core.reason[i][0] = '\0';
    }
}

#if CCI__HAS_ATFORK

/* The one line of the log; not written by the handler, where the program's hook might wait for ever. */
static int cci__fork_refuse(void) {
    if (!cci__core.has_told_fork) {
        cci__core.has_told_fork = 1;
        cci_log(CCI_LOG_ERROR,
                "fork(): endpoints of the parent are dead in the child; it calls cci_init() and makes its own");
    }
    return CCI_ERR_DEVICE_DEAD;
}

static int cci__dead_destroy(cci_endpoint_base_t *endpoint) {
    (void)endpoint;
    return CCI_SUCCESS;
}

static int cci__dead_accept(cci_event_base_t *request, void *context) {
    (void)request, (void)context;
    return cci__fork_refuse();
}

static int cci__dead_reject(cci_event_base_t *request) {
    (void)request;
    return cci__fork_refuse();
}

static int cci__dead_answer(cci_event_base_t *request, int accepts, void *context, const void *data,
                            uint32_t data_len) {
    (void)request, (void)accepts, (void)context, (void)data, (void)data_len;
    return cci__fork_refuse();
}

static int cci__dead_connect(cci_endpoint_base_t *endpoint, const char *address, const void *data, uint32_t data_len,
                             cci_conn_attribute_t attribute, void *context, int flags, const struct timeval *timeout) {
    (void)endpoint, (void)address, (void)data, (void)data_len, (void)attribute, (void)context, (void)flags,
        (void)timeout;
    return cci__fork_refuse();
}

static int cci__dead_disconnect(struct cci_connection *connection) {
    (void)connection;
    return CCI_SUCCESS;
}

static int cci__dead_arm_os_handle(cci_endpoint_base_t *endpoint, int flags) {
    (void)endpoint, (void)flags;
    return cci__fork_refuse();
}

static int cci__dead_get_event(cci_endpoint_base_t *endpoint, cci_event_t **event) {
    (void)endpoint, (void)event;
    return cci__fork_refuse();
}

static int cci__dead_return_event(cci_event_base_t *event) {
    (void)event;
    return CCI_SUCCESS;
}

static int cci__dead_set_endpoint_opt(cci_endpoint_base_t *endpoint, cci_opt_name_t name, const void *val) {
    (void)endpoint, (void)name, (void)val;
    return cci__fork_refuse();
}

static int cci__dead_get_endpoint_opt(cci_endpoint_base_t *endpoint, cci_opt_name_t name, void *val) {
    (void)endpoint, (void)name, (void)val;
    return cci__fork_refuse();
}

static int cci__dead_set_connection_opt(struct cci_connection *connection, cci_opt_name_t name, const void *val) {
    (void)connection, (void)name, (void)val;
    return cci__fork_refuse();
}

static int cci__dead_get_connection_opt(struct cci_connection *connection, cci_opt_name_t name, void *val) {
    (void)connection, (void)name, (void)val;
    return cci__fork_refuse();
}

static int cci__dead_sendv(struct cci_connection *connection, const struct iovec *data, uint32_t count, void *context,
                           int flags) {
    (void)connection, (void)data, (void)count, (void)context, (void)flags;
    return cci__fork_refuse();
}

static int cci__dead_rma_register(cci_endpoint_base_t *endpoint, void *start, uint64_t length, int flags,
                                  cci_rma_handle_t **handle) {
    (void)endpoint, (void)start, (void)length, (void)flags, (void)handle;
    return cci__fork_refuse();
}

static int cci__dead_rma_deregister(cci_endpoint_base_t *endpoint, const struct cci_rma_handle *handle) {
    (void)endpoint, (void)handle;
    return CCI_SUCCESS;
}

static int cci__dead_rma(struct cci_connection *connection, const void *msg, uint32_t msg_len,
                         const struct cci_rma_handle *local, uint64_t local_offset, const struct cci_rma_handle *remote,
                         uint64_t remote_offset, uint64_t length, void *context, int flags) {
    (void)connection, (void)msg, (void)msg_len, (void)local, (void)local_offset, (void)remote, (void)remote_offset;
    (void)length, (void)context, (void)flags;
    return cci__fork_refuse();
}

static int cci__dead_rma_alloc(cci_endpoint_base_t *endpoint, uint64_t length, void **memory) {
    (void)endpoint, (void)length, (void)memory;
    return cci__fork_refuse();
}

static void cci__dead_rma_free(cci_endpoint_base_t *endpoint, void *memory) {
    (void)endpoint, (void)memory;
}

static int cci__dead_next_deadline(cci_endpoint_base_t *endpoint, uint64_t *ns) {
    (void)endpoint, (void)ns;
    return cci__fork_refuse();
}

static int cci__dead_atomic(struct cci_connection *connection, const cci_atomic_call_t *call) {
    (void)connection, (void)call;
    return cci__fork_refuse();
}

static const cci_endpoint_ops_t cci__dead_ops = {cci__dead_destroy,
                                                 cci__dead_accept,
                                                 cci__dead_reject,
                                                 cci__dead_connect,
                                                 cci__dead_disconnect,
                                                 cci__dead_arm_os_handle,
                                                 cci__dead_get_event,
                                                 cci__dead_return_event,
                                                 cci__dead_set_endpoint_opt,
                                                 cci__dead_get_endpoint_opt,
                                                 cci__dead_set_connection_opt,
                                                 cci__dead_get_connection_opt,
                                                 cci__dead_sendv,
                                                 cci__dead_rma_register,
                                                 cci__dead_rma_deregister,
                                                 cci__dead_rma,
                                                 cci__dead_rma_alloc,
                                                 cci__dead_rma_free,
                                                 cci__dead_answer,
                                                 cci__dead_next_deadline,
                                                 cci__dead_atomic};

#ifndef CCI_NO_THREADS
static pthread_key_t cci__fork_key; /* which locks a thread that forks holds */
#define CCI__FORK_HOLDS_CORE ((uintptr_t)1)
#define CCI__FORK_HOLDS_SHARED ((uintptr_t)2)

/* Takes a lock that may be that of the caller of fork() himself, who is in a hook: then it is not to be had. */
static int cci__fork_lock(pthread_mutex_t *mutex) {
    const struct timespec pause = {0, 1000000};
    int tries = 1000;
    while (pthread_mutex_trylock(mutex) != 0) {
        if (--tries == 0) return 0;
        (void)nanosleep(&pause, NULL);
    }
    return 1;
}

static void cci__fork_unlock(uintptr_t held) {
    if (held & CCI__FORK_HOLDS_SHARED) cci__shared_unlock();
    if (held & CCI__FORK_HOLDS_CORE) cci__core_unlock();
}
#endif

/* While memory is copied nobody writes in the lists. */
static void cci__fork_prepare(void) {
#ifndef CCI_NO_THREADS
    uintptr_t held = 0;
    if (cci__fork_lock(&cci__core_mutex)) held |= CCI__FORK_HOLDS_CORE;
    if (cci__fork_lock(&cci__shared_mutex)) held |= CCI__FORK_HOLDS_SHARED;
    if (pthread_setspecific(cci__fork_key, (const void *)held) != 0) cci__fork_unlock(held);
#endif
}

static void cci__fork_in_parent(void) {
#ifndef CCI_NO_THREADS
    cci__fork_unlock((uintptr_t)pthread_getspecific(cci__fork_key));
    (void)pthread_setspecific(cci__fork_key, NULL);
#endif
}

static void cci__fork_in_child(void) {
    cci_endpoint_base_t *endpoint, *last = NULL;
    for (endpoint = cci__core.endpoints; endpoint != NULL; endpoint = endpoint->next_in_core) {
        endpoint->ops = &cci__dead_ops;
        if (endpoint->forked != NULL) endpoint->forked(endpoint);
        last = endpoint;
    }
    if (last != NULL) {
        last->next_in_core = cci__core.dead;
        cci__core.dead = cci__core.endpoints;
        cci__core.endpoints = NULL;
    }
    if (cci__is_initialized()) {
        cci__core.parent_devices = cci__core.devices;
        cci__core.parent_arrays = cci__core.arrays;
        cci__core.parent_ini = cci__core.ini;
        cci__core_forget();
        cci__core.is_forked = 1;
        cci__core.has_told_fork = 0;
    }
    cci__forget_names();
    cci__core.memories = NULL; /* it is the parent's, and so are its registrations */
    cci__core.registered = NULL;
#ifndef CCI_NO_THREADS
    cci__mutex_init(&cci__core_mutex);
    cci__mutex_init(&cci__shared_mutex);
    (void)pthread_setspecific(cci__fork_key, NULL);
#endif
}

static void cci__fork_watch(void) {
    static int is_watching;
#ifndef CCI_NO_THREADS
    if (!is_watching && pthread_key_create(&cci__fork_key, NULL) != 0) return;
#endif
    if (!is_watching) is_watching = pthread_atfork(cci__fork_prepare, cci__fork_in_parent, cci__fork_in_child) == 0;
}
#else
static void cci__fork_watch(void) {}
#endif

/* ---- initialization ---------------------------------------------------------------------------------------------- */

/* What CCI_LOG in the environment names: a level plus 1, or 0. */
static int cci__read_log_level(void) {
#ifndef CCI_NO_STDIO
    static const char *const names[] = {"error", "warn", "info", "debug"};
    const char *name = getenv("CCI_LOG");
    int i;
    for (i = 0; name != NULL && i < 4; i++)
        if (strcmp(name, names[i]) == 0) return i + 1;
#endif
    return 0;
}

static int cci__read_configuration(void) {
#ifndef CCI_NO_STDIO
    const char *name;
#endif
    if (cci__core.setup.config != NULL) {
        cci__core.is_configured = 1;
        return cci__ini_parse("config", cci__core.setup.config, strlen(cci__core.setup.config), &cci__core.ini);
    }
#ifndef CCI_NO_STDIO
    name = getenv("CCI_CONFIG");
    if (name != NULL && *name != '\0') {
        cci__core.is_configured = 1;
        return cci__ini_read_file(name, &cci__core.ini);
    }
#endif
    cci__core.is_configured = 0;
    return CCI_SUCCESS;
}

/* Takes the memory of an endpoint off the books: what an endpoint at the same address gets later is its own. */
static cci__shared_t *cci__shared_take_all(const cci_endpoint_base_t *endpoint) {
    cci__shared_t **at = &cci__core.memories, *taken = NULL;
    cci__registered_t **r = &cci__core.registered;
    cci__shared_lock();
    while (*at != NULL) {
        cci__shared_t *memory = *at;
        if (memory->endpoint == endpoint) {
            *at = memory->next;
            memory->next = taken;
            taken = memory;
        } else {
            at = &memory->next;
        }
    }
    while (*r != NULL) {
        cci__registered_t *registered = *r;
        if (registered->endpoint == endpoint) {
            *r = registered->next;
            cci_release(registered);
        } else {
            r = &registered->next;
        }
    }
    cci__shared_unlock();
    return taken;
}

#ifndef CCI_NO_LISTS
static void cci__lists_free(struct cci_lists *lists);
#endif

/* Ends an endpoint, and only then gives its memory back. */
static int cci__endpoint_destroy(cci_endpoint_base_t *endpoint) {
    cci__shared_t *memory = cci__shared_take_all(endpoint);
    cci__device_t *device = cci__device_of(endpoint->pub.device);
#ifndef CCI_NO_LISTS
    struct cci_lists *lists = endpoint->lists;
#endif
    int status = endpoint->ops->destroy(endpoint);
#ifndef CCI_NO_LISTS
    cci__lists_free(lists);
#endif
    cci__give_name_up(endpoint);
    if (device->is_own) cci_release(device);
    while (memory != NULL) {
        cci__shared_t *next = memory->next;
        cci_release(memory);
        memory = next;
    }
    return status;
}

/* Frees everything that cci_init() and cci_get_devices() made. Endpoints go first, since they use their device. */
static void cci__core_clear(void) {
    while (cci__core.endpoints != NULL) {
        cci_endpoint_base_t *endpoint = cci__core.endpoints;
        (void)cci__endpoint_unlink(&cci__core.endpoints, endpoint);
        (void)cci__endpoint_destroy(endpoint);
    }
    while (cci__core.devices != NULL) {
        cci__device_t *device = cci__core.devices;
        cci__core.devices = device->next;
        cci__device_free(device);
    }
    while (cci__core.arrays != NULL) {
        cci__array_t *array = cci__core.arrays;
        cci__core.arrays = array->next;
        cci_release(array);
    }
    cci__ini_free(&cci__core.ini);
    cci__core_forget();
}

static int cci__init_locked(void) {
    int status;
    if (cci__core.is_forked) {
        cci__core.is_forked = 0;
        cci__core.init_count = 0;
    }
    if (cci__core.init_count > 0) return CCI_SUCCESS;
    cci__fork_watch();
    cci__core.log_level = cci__read_log_level();
    status = cci__table_load();
    if (status != CCI_SUCCESS) return status;
    if (cci__core.table_count == 0) {
        cci_log(CCI_LOG_ERROR, "there is no transport: include one before cci.h, or register one");
        return CCI_ERR_NOT_FOUND;
    }
    status = cci__read_configuration();
    if (status == CCI_SUCCESS) status = cci__core.is_configured ? cci__configure(1) : cci__discover();
    if (status != CCI_SUCCESS) cci__core_clear();
    return status;
}

CCI_API int cci_init(uint32_t abi_ver, uint32_t flags, uint32_t *caps) {
    int status;
    if (caps == NULL || abi_ver < 1 || abi_ver > CCI_ABI_VERSION || flags != 0) return CCI_EINVAL;
    cci__core_lock();
    status = cci__init_locked();
    if (status == CCI_SUCCESS) {
        cci__core.init_count++;
#ifndef CCI_NO_THREADS
        *caps = CCI_CAPS_THREAD_SAFETY;
#else
        *caps = 0;
#endif
    }
    cci__core_unlock();
    return status;
}

CCI_API int cci_finalize(void) {
    int status = CCI_ERROR;
    cci__core_lock();
    if (cci__core.init_count > 0) {
        if (--cci__core.init_count == 0) cci__core_clear();
        status = CCI_SUCCESS;
    }
    cci__core_unlock();
    return status;
}

CCI_API const char *cci_status_hint(enum cci_status status) {
#ifdef CCI_NO_TEXT
    (void)status;
    return "";
#else
    switch ((int)status) {
#define CCI__HINT_CASE(name, value, text, hint)                                                                        \
    case value:                                                                                                        \
        return hint;
        CCI_STATUS_TABLE(CCI__HINT_CASE)
#undef CCI__HINT_CASE
    default: return NULL;
    }
#endif
}

/* ---- device functions -------------------------------------------------------------------------------------------- */

/* The array for the program. A new one is made when devices came; the old ones stay as they were. */
static int cci__array_make(cci_device_t *const **devices) {
    const cci__device_t *device;
    cci__array_t *array = cci__core.arrays;
    if (array == NULL || cci__core.array_device_count != cci__core.device_count) {
        cci_device_t **at;
        array = (cci__array_t *)cci_alloc(sizeof *array + (cci__core.device_count + (size_t)1) * sizeof *at);
        if (array == NULL) return CCI_ENOMEM;
        at = (cci_device_t **)(void *)(array + 1);
        for (device = cci__core.devices; device != NULL; device = device->next)
            *at++ = (cci_device_t *)(uintptr_t)&device->pub;
        *at = NULL;
        array->next = cci__core.arrays;
        cci__core.arrays = array;
        cci__core.array_device_count = cci__core.device_count;
    }
    *devices = (cci_device_t *const *)(void *)(array + 1);
    return CCI_SUCCESS;
}

/* Logs why nothing works; the status for it. */
static int cci__not_initialized(const char *function) {
    cci__report(CCI_LOG_WARN, NULL, 0, function, ": call cci_init() first",
                cci__core.is_forked ? ", also in the child of fork()" : "");
    return CCI_ERROR;
}

static int cci__get_devices_locked(cci_device_t *const **devices) {
    cci__device_t *device;
    int status;
    if (!cci__is_initialized()) return cci__not_initialized("cci_get_devices()");
    if (cci__core.is_configured) {
        cci__configure_again();
        status = cci__configure(0);
    } else {
        status = cci__discover();
    }
    if (status != CCI_SUCCESS) return status;
    for (device = cci__core.devices; device != NULL; device = device->next) {
        /* what is no longer proposed was set down just now, and its transport does not know it any more */
        if (!device->is_proposed || device->pub.up) cci__device_refresh(device);
    }
    return cci__array_make(devices);
}

CCI_API int cci_get_devices(cci_device_t *const **devices) {
    int status;
    if (devices == NULL) return CCI_EINVAL;
    cci__core_lock();
    status = cci__get_devices_locked(devices);
    cci__core_unlock();
    return status;
}

CCI_API const void *cci_device_data(cci_device_t *device) {
    return device != NULL ? cci__device_of(device)->desc.data : NULL;
}

/* ---- endpoint functions ------------------------------------------------------------------------------------------ */

static cci_endpoint_base_t *cci__endpoint_of(cci_endpoint_t *endpoint) {
    return (cci_endpoint_base_t *)(uintptr_t)endpoint;
}

static cci_endpoint_base_t *cci__endpoint_of_connection(cci_connection_t *connection) {
    return cci__endpoint_of(connection->endpoint);
}

static struct cci_connection *cci__connection_of(cci_connection_t *connection) {
    return (struct cci_connection *)(uintptr_t)connection;
}

/* A context is handed back as it came; only its const is in the way. */
static void *cci__context_of(const void *context) {
    return (void *)(uintptr_t)context;
}

/* How much better than the device that is taken another has to be for the log to say that it is down: real
 * interfaces are that much better than bridges, tunnels and the loopback. */
#define CCI__PRIORITY_GAP 10

/* What a call may have in its flags; not all of it means something to each. */
#define CCI__FLAGS                                                                                                     \
    (CCI_FLAG_BLOCKING | CCI_FLAG_NO_COPY | CCI_FLAG_SILENT | CCI_FLAG_READ | CCI_FLAG_WRITE | CCI_FLAG_FENCE |        \
     CCI_FLAG_WAKE)
#ifdef CCI_NO_WAKE
#define CCI__SEND_FLAGS (CCI__FLAGS & ~CCI_FLAG_WAKE)
#else
#define CCI__SEND_FLAGS CCI__FLAGS
#endif
#define CCI__CLASSES (CCI_ARM_RECV | CCI_ARM_SEND | CCI_ARM_OTHER | CCI_ARM_WAKE)

/* Logs which argument is refused, and why; the status for it. */
static int cci__refuse(const char *function, const char *why) {
    cci__report(CCI_LOG_WARN, NULL, 0, function, ": ", why);
    return CCI_EINVAL;
}

/* Logs which bits are refused; the status for it. */
static int cci__flags_refuse(const char *function, int bits) {
    cci__note_t note;
    char digits[2] = {0, 0};
    int shift = 28;
    note.length = 0;
    cci__note_add(&note, function);
    cci__note_add(&note, ": flags has bits that mean nothing here: 0x");
    while (shift > 0 && ((unsigned)bits >> shift) == 0) shift -= 4;
    for (; shift >= 0; shift -= 4) {
        digits[0] = "0123456789abcdef"[(unsigned)bits >> shift & 15];
        cci__note_add(&note, digits);
    }
    cci_log(CCI_LOG_WARN, note.text);
    return CCI_EINVAL;
}

/* The device that NULL stands for: the default if it is up, or the first that is up. */
static cci__device_t *cci__device_any(void) {
    cci__device_t *device, *first = NULL, *down = NULL;
    const char *which = ", the default device, is down; the endpoint is made on ";
    for (device = cci__core.devices; device != NULL; device = device->next) {
        if (device->is_default || first == NULL) cci__device_refresh(device);
        if (device->is_default) {
            if (device->pub.up) return device;
            down = device;
        }
        if (first == NULL && device->pub.up) first = device;
    }
    if (first != NULL && down == NULL && cci__core.devices->priority >= first->priority + CCI__PRIORITY_GAP) {
        down = cci__core.devices;
        which = " is down; the endpoint is made on ";
    }
    if (first != NULL && down != NULL) cci__report(CCI_LOG_WARN, NULL, 0, down->pub.name, which, first->pub.name);
    return first;
}

/* Logs why there is no endpoint; the status for it. */
static int cci__device_is_down(const cci__device_t *device) {
    if (device == NULL) device = cci__core.devices; /* the best of those that are all down */
    if (device == NULL) {
        cci_log(CCI_LOG_WARN, "there is no device: cci_transport_reason() and the tool cci_info say why");
    } else {
        cci__report(CCI_LOG_WARN, NULL, 0, device->pub.name,
                    " is down: ", device->transport != NULL ? device->pub.info : "its transport is not registered");
    }
    return CCI_ENODEV;
}

/* Whoever names no device, and configures none, may not expect that nobody else reaches the endpoint. */
static void cci__warn_of_loopback(cci_endpoint_base_t *endpoint) {
#ifdef CCI_URI_RELEASE /* not if the program brings CCI_URI_ALLOC alone */
    char *uri = NULL;
    const char *host;
    if (endpoint->ops->get_endpoint_opt == NULL ||
        endpoint->ops->get_endpoint_opt(endpoint, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS || uri == NULL)
        return;
    host = strstr(uri, "://");
    if (host != NULL && (strncmp(host + 3, "127.", 4) == 0 || strncmp(host + 3, "[::1]", 5) == 0))
        cci__report(CCI_LOG_WARN, NULL, 0, uri,
                    ": only this host reaches the default endpoint, since no device but the ", "loopback is up");
    CCI_URI_RELEASE(uri);
#else
    (void)endpoint;
#endif
}

static const char cci__not_sealed[] =
    ": cci_setup() has hooks to seal packets, and this endpoint does not use them: it sends what it is given, over ";

/* Makes an endpoint of a transport; a status. */
static int cci__create_base(const cci_transport_t *transport, cci_device_t *device, const char *service, int flags,
                            cci_endpoint_base_t **base, cci_os_handle_t *fd, int *has_link) {
    int status =
        transport->create != NULL ? transport->create(device, service, flags, base, fd) : (int)CCI_ERR_NOT_IMPLEMENTED;
    *has_link = status == CCI_ERR_NOT_IMPLEMENTED && transport->link != NULL;
    return *has_link ? cci_dgram_create(transport, device, service, flags, base, fd) : status;
}

/* ==================================================================================================================
 * >>core-names
 *
 * Services by name: a name gives a short sequence of ports, the server takes the first that is free, the client asks
 * along the same sequence.
 * ================================================================================================================== */

#ifndef CCI_NO_NAMES
static int (*cci__service_port_of(cci_device_t *device))(const char *) {
    const cci__device_t *own = cci__device_of(device);
    return own->desc.service_port;
}

/* Numbers, in decimal or with 0x, are ports, or with '/' between them the queue pairs of verbs, but no names. */
static int cci__is_numeric(const char *text) {
    const char *digits = strncmp(text, "0x", 2) == 0 ? "0123456789abcdefABCDEFx/" : "0123456789/";
    return *text != '\0' && strspn(text, digits) == strlen(text);
}
#endif

CCI_API const char *cci_service_name(cci_device_t *device, const char *text) {
#ifdef CCI_NO_NAMES
    (void)device, (void)text;
    return NULL;
#else
    const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL;
    const char *name = strchr(bracket != NULL ? bracket : text, '/');
    if (name == NULL || cci__service_port_of(device) == NULL) return NULL;
    return cci__is_numeric(name + 1) ? NULL : name + 1;
#endif
}

#ifdef CCI_NO_NAMES
#define cci__service_is_name(device, service) 0
#define cci__create_named(transport, device, service, flags, base, fd, has_link) CCI_EINVAL
#define cci__known_service(device, address, text, size) ((void)(text), (address))
#else
/* Is a service neither NULL, nor a number, nor known to the system, on a device whose services may have names? */
static int cci__service_is_name(cci_device_t *device, const char *service) {
    int (*service_port)(const char *) = cci__service_port_of(device);
    return service != NULL && service_port != NULL && !cci__is_numeric(service) && service_port(service) < 0;
}

/* An endpoint takes a name on its address, or CCI_EBUSY. The address is the endpoint's URI without the port. */
static int cci__take_name(cci_endpoint_base_t *endpoint, const char *service) {
    cci__held_name_t *held = (cci__held_name_t *)cci_alloc(sizeof *held), *other;
    cci_conn_name_t name;
    char *uri = NULL;
    const char *end;
    int status = held == NULL ? (int)CCI_ENOMEM : cci_conn_hash_name(service, &name);
    if (status == CCI_SUCCESS) status = endpoint->ops->get_endpoint_opt(endpoint, CCI_OPT_ENDPT_URI, &uri);
    if (status == CCI_SUCCESS) {
        held->endpoint = endpoint;
        held->words[0] = name.id;
        end = strrchr(uri, ':');
        if (end[1] == '/') end += 3; /* an address without a host */
        held->words[1] = cci__fnv(CCI__FNV_BASIS, uri, (size_t)(end - uri));
        CCI_URI_RELEASE(uri);
        cci__shared_lock();
        for (other = cci__core.names; other != NULL && memcmp(other->words, held->words, sizeof held->words) != 0;)
            other = other->next;
        status = other != NULL ? (int)CCI_EBUSY : cci__hold(held->words, &held->fd);
        held->next = cci__core.names;
        if (status == CCI_SUCCESS) cci__core.names = held;
        cci__shared_unlock();
    }
    if (status != CCI_SUCCESS) cci_release(held);
    return status;
}

/* Makes an endpoint with a name, at the first free port of those that the name has. */
static int cci__create_named(const cci_transport_t *transport, cci_device_t *device, const char *service, int flags,
                             cci_endpoint_base_t **base, cci_os_handle_t *fd, int *has_link) {
    char text[6 + CCI__NAME_LONGEST + 1];
    cci_conn_name_t name;
    uint32_t i;
    int status = cci_conn_hash_name(service, &name);
    if (status != CCI_SUCCESS) return status;
    memcpy(text + 6, service, strlen(service) + 1);
    for (i = 0, status = CCI_EBUSY; i < CCI__NAME_PORTS && status == CCI_EBUSY; i++) {
        cci_conn_write_port(name.ports[i], text);
        text[5] = '/';
        status = cci__create_base(transport, device, text, flags, base, fd, has_link);
    }
    if (status != CCI_SUCCESS) return status;
    status = cci__take_name(*base, service);
    if (status != CCI_SUCCESS) (void)(*base)->ops->destroy(*base);
    return status;
}

/* The address of a connection: where the name behind its '/' is that of a service which the system knows, or nothing
 * but digits, "host:port" in `text`; as it is else. */
static const char *cci__known_service(cci_device_t *device, const char *address, char *text, size_t size) {
    const char *name = cci_service_name(device, address);
    size_t host = name != NULL ? (size_t)(name - address) - 1 : 0;
    int port = name != NULL && *name != '\0' ? cci__service_port_of(device)(name) : -1;
    if (port <= 0 || port > 65535 || host + 7 > size) return address;
    memcpy(text, address, host);
    text[host] = ':';
    cci_conn_write_port((uint32_t)port, text + host + 1);
    return text;
}
#endif

/* Logs why there is no endpoint at a service; the status for it. */
static int cci__service_refuse(cci_device_t *device, const char *service, int status) {
    int is_name = cci__service_is_name(device, service);
    cci__note_t note;
    if ((status != CCI_EINVAL || service == NULL) && status != CCI_EBUSY) return status;
    note.length = 0;
    cci__note_add(&note, device->name);
    cci__note_add(&note, service != NULL ? ": the service \"" : ": the port that the configuration names");
    cci__note_add(&note, service != NULL ? service : "");
    cci__note_add(&note, service != NULL ? "\"" : "");
    cci__note_add(&note, status == CCI_EBUSY ? (is_name ? " is taken: a server here has that name, or others its ports"
                                                        : " is taken: choose another, or make all its endpoints with "
                                                          "CCI_ENDPOINT_SHARED")
                         : is_name           ? " is neither a port number nor a name of 1 to 120 bytes of UTF-8"
                                             : " is neither a port number nor a name that the system knows");
    cci_log(CCI_LOG_WARN, note.text);
    return status;
}

static int cci__create_locked(cci_device_t *wanted, const char *service, int flags, cci_endpoint_t **endpoint,
                              cci_os_handle_t *fd) {
    cci__device_t *device = cci__core.devices;
    const cci_transport_t *transport;
    cci_endpoint_base_t *base = NULL;
    int status, has_link;
    if (!cci__is_initialized()) return cci__not_initialized("cci_create_endpoint()");
    if (wanted == NULL) {
        device = cci__device_any();
    } else {
        while (device != NULL && device != cci__device_of(wanted)) device = device->next;
        if (device == NULL)
            return cci__refuse("cci_create_endpoint()", "the device is none of those that cci_get_devices() gives");
        cci__device_refresh(device);
    }
    if (device == NULL || !device->pub.up || device->transport == NULL) return cci__device_is_down(device);
    transport = device->transport;
    if ((flags & CCI_ENDPOINT_SHARED) && (transport->create != NULL || cci__service_is_name(&device->pub, service))) {
        (void)cci__refuse(device->pub.name, transport->create != NULL
                                                ? "its transport can't let several endpoints have one service"
                                                : "several endpoints can share a port, but not the name of a service");
        return CCI_ERR_NOT_IMPLEMENTED;
    }
    status = cci__service_is_name(&device->pub, service)
                 ? cci__create_named(transport, &device->pub, service, flags, &base, fd, &has_link)
                 : cci__create_base(transport, &device->pub, service, flags, &base, fd, &has_link);
    if (status != CCI_SUCCESS) return cci__service_refuse(&device->pub, service, status);
    if (cci__core.setup.seal != NULL && !has_link)
        cci__report(CCI_LOG_WARN, NULL, 0, device->pub.name, cci__not_sealed, transport->name);
    CCI_ASSERT(base != NULL && base->ops != NULL && base->ops->destroy != NULL && base->ops->get_event != NULL &&
               base->ops->return_event != NULL && base->ops->sendv != NULL);
    if (base->pub.device != &device->pub) /* a helper thread may be reading it by now */
        base->pub.device = &device->pub;
    cci__endpoint_link(base);
    cci__core.open_count[cci__table_find(transport)]++;
    *endpoint = &base->pub;
    if (wanted == NULL && device->is_proposed) cci__warn_of_loopback(base);
    return CCI_SUCCESS;
}

CCI_API int cci_create_endpoint_at(cci_device_t *device, const char *service, int flags, cci_endpoint_t **endpoint,
                                   cci_os_handle_t *fd) {
    int status;
    if (endpoint == NULL) return CCI_EINVAL;
    if (flags & ~(int)CCI_ENDPOINT_SHARED)
        return cci__flags_refuse("cci_create_endpoint()", flags & ~(int)CCI_ENDPOINT_SHARED);
    cci__core_lock();
    status = cci__create_locked(device, service, flags, endpoint, fd);
    cci__core_unlock();
    return status;
}

CCI_API int cci_create_endpoint(cci_device_t *device, int flags, cci_endpoint_t **endpoint, cci_os_handle_t *fd) {
    return cci_create_endpoint_at(device, NULL, flags, endpoint, fd);
}

static cci__own_device_t *cci__own_device_new(const cci_link_t *link) {
    static const char *const no_keys[] = {NULL};
    cci__own_device_t *own = (cci__own_device_t *)cci_alloc(sizeof *own);
    if (own == NULL) return NULL;
    memset(own, 0, sizeof *own);
    own->transport.version = CCI_TRANSPORT_VERSION;
    own->transport.name = "link";
    own->transport.link = link;
    own->device.transport = &own->transport;
    own->device.is_own = 1;
    own->device.pub.name = own->device.pub.transport = own->transport.name;
    own->device.pub.up = 1;
    own->device.pub.info = "";
    own->device.pub.conf_argv = no_keys;
    memset(&own->device.pub.pci, 0xff, sizeof own->device.pub.pci);
    return own;
}

CCI_API int cci_create_endpoint_on_link(const cci_link_t *link, const char *service, cci_endpoint_t **endpoint,
                                        cci_os_handle_t *fd) {
    cci__own_device_t *own;
    cci_endpoint_base_t *base = NULL;
    int status;
    if (link == NULL || endpoint == NULL || link->version < 1 || link->version > CCI_LINK_VERSION) return CCI_EINVAL;
    own = cci__own_device_new(link);
    if (own == NULL) return CCI_ENOMEM;
    cci__core_lock();
    cci__fork_watch();
    status = cci_dgram_create(&own->transport, &own->device.pub, service, 0, &base, fd);
    if (status == CCI_SUCCESS) {
        own->device.pub.max_send_size = ((const cci__endpoint_t *)(const void *)base)->max_send_size;
        cci__endpoint_link(base);
        *endpoint = &base->pub;
    }
    cci__core_unlock();
    if (status != CCI_SUCCESS) cci_release(own);
    return status;
}

/* The lock is not held while the endpoint says good-bye to its peers, which may take a while; its transport counts as
 * busy until that is over. */
CCI_API int cci_destroy_endpoint(cci_endpoint_t *endpoint) {
    cci_endpoint_base_t *base = cci__endpoint_of(endpoint);
    const cci_transport_t *transport = NULL;
    int status, was_dead, is_own = 0;
    if (endpoint == NULL) return CCI_EINVAL;
    cci__core_lock();
    if (cci__endpoint_unlink(&cci__core.endpoints, base)) {
        transport = cci__device_of(base->pub.device)->transport;
        is_own = cci__device_of(base->pub.device)->is_own;
    }
    was_dead = transport == NULL && cci__endpoint_unlink(&cci__core.dead, base);
    cci__core_unlock();
    if (was_dead) return CCI_SUCCESS; /* the parent's: nothing of it is touched */
    if (transport == NULL) return CCI_EINVAL;
    status = cci__endpoint_destroy(base);
    if (is_own) return status; /* its transport went with it */
    cci__core_lock();
    cci__core.open_count[cci__table_find(transport)]--;
    cci__core_unlock();
    return status;
}

CCI_API int cci_arm_os_handle(cci_endpoint_t *endpoint, int flags) {
    cci_endpoint_base_t *base = cci__endpoint_of(endpoint);
    if (endpoint == NULL) return CCI_EINVAL;
    if (flags & ~CCI__CLASSES) return cci__flags_refuse("cci_arm_os_handle()", flags & ~CCI__CLASSES);
    if (base->ops->arm_os_handle == NULL) return CCI_ERR_NOT_IMPLEMENTED;
#ifdef CCI_NO_WAKE
    if (flags != 0) return CCI_ERR_NOT_IMPLEMENTED;
#endif
    return base->ops->arm_os_handle(base, flags);
}

/* The version of CCI_TRANSPORT_VERSION that says where the operations of an endpoint end. */
static uint32_t cci__ops_version(const cci_endpoint_base_t *endpoint) {
    return endpoint->ops == cci__dgram_ops() ? CCI_TRANSPORT_VERSION
                                             : cci__device_of(endpoint->pub.device)->transport->version;
}

/* ==================================================================================================================
 * >>core-lists
 *
 * RMA between lists of segments.
 * A piece is where a local and a remote segment overlap. Each is an RMA of the transport with the flag CCI_PIECE, so
 * that its completion is known from the program's and taken out here; the event of the whole list lies in its record.
 * A list is accepted with its first piece, or not at all. Other pieces begin when the transport has the means for them,
 * in cci_get_event(), the last one only after all others have succeeded if a message goes with it. What must not
 * overtake pieces that have not begun is refused meanwhile (cci_rmav() in >>api).
 *
 * Locks: an endpoint's lists have a lock, which is taken before the transport's. In the child of fork() it may be held
 * for ever, and is not taken.
 * ================================================================================================================== */

typedef int cci__sendv_t(struct cci_connection *connection, const struct iovec *data, uint32_t count, void *context,
                         int flags);
typedef int cci__rma_t(struct cci_connection *connection, const void *msg, uint32_t msg_len,
                       const struct cci_rma_handle *local, uint64_t local_offset, const struct cci_rma_handle *remote,
                       uint64_t remote_offset, uint64_t length, void *context, int flags);

#ifdef CCI_NO_LISTS
static inline cci__sendv_t *cci__sendv_of(cci_connection_t *connection) {
    return cci__endpoint_of_connection(connection)->ops->sendv;
}

static inline cci__rma_t *cci__rma_of(cci_connection_t *connection) {
    return cci__endpoint_of_connection(connection)->ops->rma;
}

static inline void cci__lists_leave(cci_connection_t *connection) {
    (void)connection;
}

static inline int cci__lists_get_event(cci_endpoint_base_t *base, cci_event_t **event) {
    return base->ops->get_event(base, event);
}

static inline int cci__lists_next_deadline(cci_endpoint_base_t *base, uint64_t *ns) {
    return base->ops->next_deadline(base, ns);
}
#else
#define CCI__LIST_AT_ONCE 64u       /* pieces of a list that are under way */
#define CCI__LIST_AGAIN_NS 1000000u /* from one try to the next, of a list that nothing wakes */

#ifdef __GNUC__
#define CCI__LISTS_LOAD(value) __atomic_load_n(&(value), __ATOMIC_ACQUIRE)
#define CCI__LISTS_STORE(value, new_value) __atomic_store_n(&(value), (new_value), __ATOMIC_RELEASE)
#else
#define CCI__LISTS_LOAD(value) (value)
#define CCI__LISTS_STORE(value, new_value) ((value) = (new_value))
#endif

/* How far two lists have been gone through: the segments that are next, and bytes of them that are done. */
typedef struct cci__walk {
    const cci_rma_segment_t *local, *remote;
    uint64_t local_done, remote_done, bytes_left;
} cci__walk_t;

/* What cci_rmav() was given. The segments, their handles and the message follow. */
typedef struct cci__rmav {
    cci_event_base_t event; /* first: its completion */
    cci_list_t node;        /* in one of the endpoint's three */
    cci_connection_t *connection;
    cci__walk_t walk;
    const uint8_t *message;
    uint32_t message_len;
    uint32_t under_way; /* pieces */
    int flags, status;
    uint8_t has_begun, waits, is_stuck;
} cci__rmav_t;

typedef struct cci_lists {
    cci_endpoint_base_t face; /* first: what the lists' events are given back to */
    cci_endpoint_ops_t ops;   /* its operations: return_event alone */
    cci_endpoint_base_t *base;
    cci__lock_t lock;
    cci_list_t waiting; /* with pieces that have not begun, in the order of the calls */
    cci_list_t issued;  /* all have */
    cci_list_t given;   /* the program has the event */
    cci_event_t *end;   /* of a connection, before which its lists end; NULL: none waits */
    uint32_t waiting_count;
    uint32_t stuck_count; /* of these, without a piece under way that could wake them */
} cci_lists_t;

static int cci__lists_are_dead(const cci_endpoint_base_t *base) {
#if CCI__HAS_ATFORK
    return base->ops == &cci__dead_ops;
#else
    (void)base;
    return 0;
#endif
}

/* Bytes of the next piece, 0 when there is none. */
static uint64_t cci__walk_look(cci__walk_t *walk) {
    if (walk->bytes_left == 0) return 0;
    for (; walk->local_done == walk->local->length; walk->local_done = 0) walk->local++;
    for (; walk->remote_done == walk->remote->length; walk->remote_done = 0) walk->remote++;
    return cci__min64(walk->local->length - walk->local_done, walk->remote->length - walk->remote_done);
}

static void cci__walk_take(cci__walk_t *walk, uint64_t length) {
    walk->local_done += length;
    walk->remote_done += length;
    walk->bytes_left -= length;
}

/* Gives the transport a piece, with the message or NULL. */
static int cci__walk_issue(const cci__walk_t *walk, cci_connection_t *connection, const void *message, uint32_t length,
                           uint64_t bytes, void *context, int flags) {
    return cci__endpoint_of_connection(connection)
        ->ops->rma(cci__connection_of(connection), message, length, walk->local->handle,
                   walk->local->offset + walk->local_done, walk->remote->handle,
                   walk->remote->offset + walk->remote_done, bytes, context, flags);
}

/* Begins what can begin now. */
static void cci__rmav_issue(cci__rmav_t *list) {
    const int direction = list->flags & (CCI_FLAG_READ | CCI_FLAG_WRITE);
    uint64_t bytes;
    while (list->status == CCI_SUCCESS && list->under_way < CCI__LIST_AT_ONCE &&
           (bytes = cci__walk_look(&list->walk)) > 0) {
        int has_message = list->message_len > 0 && bytes == list->walk.bytes_left, status;
        if (has_message && list->under_way > 0) return;
        status = cci__walk_issue(
            &list->walk, list->connection, has_message ? list->message : NULL, has_message ? list->message_len : 0,
            bytes, list, direction | CCI_PIECE | (list->has_begun ? CCI_PIECE_NEXT : list->flags & CCI_FLAG_FENCE));
        if (status == CCI_ENOBUFS) return;
        if (status != CCI_SUCCESS) {
            list->status = status;
            return;
        }
        cci__walk_take(&list->walk, bytes);
        list->under_way++;
        list->has_begun = 1;
    }
}

static int cci__rmav_is_over(const cci__rmav_t *list) {
    return list->under_way == 0 && (list->status != CCI_SUCCESS || list->walk.bytes_left == 0);
}

/* Puts a list where it belongs, after its pieces have changed. */
static void cci__rmav_sort(cci_lists_t *lists, cci__rmav_t *list, int is_over) {
    uint8_t waits = list->walk.bytes_left > 0 && !is_over, is_stuck = waits && list->under_way == 0;
    if (waits != list->waits) {
        cci__list_remove(&list->node);
        cci__list_append(waits ? &lists->waiting : &lists->issued, &list->node);
        CCI__LISTS_STORE(lists->waiting_count, waits ? lists->waiting_count + 1 : lists->waiting_count - 1);
    }
    if (is_stuck != list->is_stuck)
        CCI__LISTS_STORE(lists->stuck_count, is_stuck ? lists->stuck_count + 1 : lists->stuck_count - 1);
    list->waits = waits;
    list->is_stuck = is_stuck;
}

/* A list may go on: begins what can, and ends it when it is over. Gives its event if it has one for the program. */
static cci_event_t *cci__rmav_go_on(cci_lists_t *lists, cci__rmav_t *list) {
    int is_over;
    cci__rmav_issue(list);
    is_over = cci__rmav_is_over(list);
    cci__rmav_sort(lists, list, is_over);
    if (!is_over) return NULL;
    cci__list_remove(&list->node);
    if (list->flags & CCI_FLAG_SILENT) {
        cci_release(list);
        return NULL;
    }
    list->event.pub.send.status = (cci_status_t)list->status;
    cci__list_append(&lists->given, &list->node);
    return &list->event.pub;
}

/* Tries again those that nothing wakes. */
static cci_event_t *cci__lists_retry(cci_lists_t *lists) {
    cci_list_t *node, *next;
    cci_event_t *event = NULL;
    cci__lock_take(&lists->lock);
    for (node = lists->waiting.next; node != &lists->waiting && !event; node = next) {
        cci__rmav_t *list = CCI__CONTAINER(node, cci__rmav_t, node);
        next = node->next;
        if (list->is_stuck) event = cci__rmav_go_on(lists, list);
    }
    cci__lock_give(&lists->lock);
    return event;
}

/* A piece has ended. */
static cci_event_t *cci__lists_take(cci_lists_t *lists, cci_event_t *piece) {
    cci__rmav_t *list = (cci__rmav_t *)piece->send.context;
    int status = (int)piece->send.status;
    (void)lists->base->ops->return_event((cci_event_base_t *)(void *)piece); /* the next one may need its place */
    cci__lock_take(&lists->lock);
    list->under_way--;
    if (list->status == CCI_SUCCESS) list->status = status;
    piece = cci__rmav_go_on(lists, list);
    cci__lock_give(&lists->lock);
    return piece;
}

/* A connection has ended, now or, with NULL, before: its lists that nothing wakes end before the program hears of it.
 * Gives what it hears, NULL if nothing waits. */
static cci_event_t *cci__lists_end(cci_lists_t *lists, cci_event_t *end) {
    cci_list_t *node, *next;
    cci_event_t *event = NULL;
    cci__lock_take(&lists->lock);
    if (!end) end = lists->end; /* another thread may have taken it */
    for (node = lists->waiting.next; node != &lists->waiting && end && !event; node = next) {
        cci__rmav_t *list = CCI__CONTAINER(node, cci__rmav_t, node);
        next = node->next;
        if (list->connection != end->disconnect.connection) continue;
        if (list->status == CCI_SUCCESS) list->status = CCI_ERR_DISCONNECTED;
        event = cci__rmav_go_on(lists, list);
    }
    CCI__LISTS_STORE(lists->end, event ? end : NULL);
    cci__lock_give(&lists->lock);
    return event ? event : end;
}

/* What the transport has given, where the endpoint has had lists: pieces are taken from among the events. */
static CCI__RARE int cci__lists_sift(cci_endpoint_base_t *base, cci_event_t **event, int status) {
    cci_lists_t *lists = CCI__LISTS_LOAD(base->lists);
    for (;;) {
        if (status == CCI_SUCCESS && (*event)->type == CCI_EVENT_DISCONNECT) *event = cci__lists_end(lists, *event);
        if (status == CCI_SUCCESS && (*event)->type != CCI_EVENT_NONE) return status;
        if (status == CCI_SUCCESS && (*event = cci__lists_take(lists, *event)) != NULL) return status;
        if (CCI__LISTS_LOAD(lists->stuck_count) > 0 && !cci__lists_are_dead(base) &&
            (*event = cci__lists_retry(lists)) != NULL)
            return CCI_SUCCESS;
        if (status != CCI_SUCCESS) return status;
        status = base->ops->get_event(base, event);
    }
}

/* Another thread may make the endpoint's lists meanwhile, and then pieces come: so it is looked for them afterwards. */
static inline int cci__lists_get_event(cci_endpoint_base_t *base, cci_event_t **event) {
    cci_lists_t *lists = CCI__LISTS_LOAD(base->lists);
    int status;
    if (CCI__UNLIKELY(lists != NULL) && CCI__LISTS_LOAD(lists->end) != NULL && !cci__lists_are_dead(base) &&
        (*event = cci__lists_end(lists, NULL)) != NULL)
        return CCI_SUCCESS;
    status = base->ops->get_event(base, event);
    return CCI__LIKELY(CCI__LISTS_LOAD(base->lists) == NULL) ? status : cci__lists_sift(base, event, status);
}

static int cci__lists_next_deadline(cci_endpoint_base_t *base, uint64_t *ns) {
    cci_lists_t *lists = CCI__LISTS_LOAD(base->lists);
    int status = base->ops->next_deadline(base, ns);
    if (lists != NULL && CCI__LISTS_LOAD(lists->stuck_count) > 0) *ns = cci__min64(*ns, CCI__LIST_AGAIN_NS);
    if (lists != NULL && CCI__LISTS_LOAD(lists->end) != NULL) *ns = 0;
    return status;
}

/* May what a call gives not overtake pieces that have not begun? */
static int cci__lists_hold(cci_lists_t *lists, const struct cci_connection *connection, int flags) {
    const cci_list_t *node;
    int holds = 0;
    if (CCI__LISTS_LOAD(lists->waiting_count) == 0 || cci__lists_are_dead(lists->base)) return 0;
    if (connection->attribute != CCI_CONN_ATTR_RO && !(flags & CCI_FLAG_FENCE)) return 0;
    cci__lock_take(&lists->lock);
    for (node = lists->waiting.next; node != &lists->waiting && !holds; node = node->next) {
        const cci__rmav_t *list = CCI__CONTAINER(node, cci__rmav_t, node);
        holds = list->connection == connection && list->status == CCI_SUCCESS;
    }
    cci__lock_give(&lists->lock);
    return holds;
}

/* Operations of the transport's, where the endpoint has had lists. */
static int cci__lists_sendv(struct cci_connection *connection, const struct iovec *data, uint32_t count, void *context,
                            int flags) {
    cci_endpoint_base_t *base = cci__endpoint_of_connection(connection);
    if (cci__lists_hold(base->lists, connection, flags)) return CCI_ENOBUFS;
    return base->ops->sendv(connection, data, count, context, flags);
}

static int cci__lists_rma(struct cci_connection *connection, const void *msg, uint32_t msg_len,
                          const struct cci_rma_handle *local, uint64_t local_offset,
                          const struct cci_rma_handle *remote, uint64_t remote_offset, uint64_t length, void *context,
                          int flags) {
    cci_endpoint_base_t *base = cci__endpoint_of_connection(connection);
    if (cci__lists_hold(base->lists, connection, flags)) return CCI_ENOBUFS;
    return base->ops->rma(connection, msg, msg_len, local, local_offset, remote, remote_offset, length, context, flags);
}

static inline cci__sendv_t *cci__sendv_of(cci_connection_t *connection) {
    cci_endpoint_base_t *base = cci__endpoint_of_connection(connection);
    return CCI__UNLIKELY(CCI__LISTS_LOAD(base->lists) != NULL) ? cci__lists_sendv : base->ops->sendv;
}

static inline cci__rma_t *cci__rma_of(cci_connection_t *connection) {
    cci_endpoint_base_t *base = cci__endpoint_of_connection(connection);
    return CCI__UNLIKELY(CCI__LISTS_LOAD(base->lists) != NULL) ? cci__lists_rma : base->ops->rma;
}

/* The program ends a connection: nothing more begins there. */
static void cci__lists_leave(cci_connection_t *connection) {
    cci_lists_t *lists = CCI__LISTS_LOAD(cci__endpoint_of_connection(connection)->lists);
    cci_event_t *end = NULL;
    cci_list_t *node;
    if (lists == NULL || cci__lists_are_dead(lists->base)) return;
    cci__lock_take(&lists->lock);
    for (node = lists->waiting.next; node != &lists->waiting; node = node->next) {
        cci__rmav_t *list = CCI__CONTAINER(node, cci__rmav_t, node);
        if (list->connection == connection && list->status == CCI_SUCCESS) list->status = CCI_ERR_DISCONNECTED;
    }
    if (lists->end != NULL && lists->end->disconnect.connection == connection) {
        end = lists->end;
        CCI__LISTS_STORE(lists->end, NULL);
    }
    cci__lock_give(&lists->lock);
    if (end != NULL) (void)lists->base->ops->return_event((cci_event_base_t *)(void *)end);
}

static int cci__lists_return_event(cci_event_base_t *event) {
    cci_lists_t *lists = (cci_lists_t *)(void *)event->endpoint;
    cci__rmav_t *list = (cci__rmav_t *)(void *)event;
    if (cci__lists_are_dead(lists->base)) return CCI_SUCCESS;
    cci__lock_take(&lists->lock);
    cci__list_remove(&list->node);
    cci__lock_give(&lists->lock);
    cci_release(list);
    return CCI_SUCCESS;
}

/* The endpoint's lists; NULL: there is no memory. */
static cci_lists_t *cci__lists_of(cci_endpoint_base_t *base) {
    cci_lists_t *lists = CCI__LISTS_LOAD(base->lists), *made;
    if (lists != NULL) return lists;
    made = (cci_lists_t *)cci_alloc(sizeof *made);
    if (made == NULL) return NULL;
    memset(made, 0, sizeof *made);
    made->ops.return_event = cci__lists_return_event;
    made->face.ops = &made->ops;
    made->base = base;
    cci__lock_init(&made->lock);
    cci__list_init(&made->waiting);
    cci__list_init(&made->issued);
    cci__list_init(&made->given);
    cci__shared_lock();
    lists = base->lists;
    if (lists == NULL) CCI__LISTS_STORE(base->lists, made);
    cci__shared_unlock();
    if (lists == NULL) return made;
    cci__lock_destroy(&made->lock);
    cci_release(made);
    return lists;
}

static void cci__lists_release(cci_list_t *head) {
    while (!cci__list_empty(head)) {
        cci__rmav_t *list = CCI__CONTAINER(head->next, cci__rmav_t, node);
        cci__list_remove(&list->node);
        cci_release(list);
    }
}

/* The endpoint is gone. */
static void cci__lists_free(cci_lists_t *lists) {
    if (lists == NULL) return;
    cci__lists_release(&lists->waiting);
    cci__lists_release(&lists->issued);
    cci__lists_release(&lists->given);
    cci__lock_destroy(&lists->lock);
    cci_release(lists);
}
#endif

CCI_API int cci_next_deadline(cci_endpoint_t *endpoint, uint64_t *ns) {
    cci_endpoint_base_t *base = cci__endpoint_of(endpoint);
    if (endpoint == NULL || ns == NULL) return CCI_EINVAL;
    if (cci__ops_version(base) < 3 || base->ops->next_deadline == NULL) return CCI_ERR_NOT_IMPLEMENTED;
    return cci__lists_next_deadline(base, ns);
}

/* ==================================================================================================================
 * >>core-calls
 *
 * The functions of the interface: each checks its arguments and calls the transport of its endpoint.
 *   Parts: connection functions; event functions; option functions; message functions; remote memory access
 * functions; memory that is shared where it can be.
 * ================================================================================================================== */

/* ---- connection functions ---- */

CCI_API int cci_accept(cci_event_t *conn_req, const void *context) {
    cci_event_base_t *event = (cci_event_base_t *)(void *)conn_req;
    if (conn_req == NULL || conn_req->type != CCI_EVENT_CONNECT_REQUEST) return CCI_EINVAL;
    if (event->endpoint->ops->accept == NULL) return CCI_ERR_NOT_IMPLEMENTED;
    return event->endpoint->ops->accept(event, cci__context_of(context));
}

CCI_API int cci_reject(cci_event_t *conn_req) {
    cci_event_base_t *event = (cci_event_base_t *)(void *)conn_req;
    if (conn_req == NULL || conn_req->type != CCI_EVENT_CONNECT_REQUEST) return CCI_EINVAL;
    if (event->endpoint->ops->reject == NULL) return CCI_ERR_NOT_IMPLEMENTED;
    return event->endpoint->ops->reject(event);
}

static int cci__answer(cci_event_t *conn_req, int accepts, void *context, const void *data, uint32_t data_len) {
    cci_event_base_t *event = (cci_event_base_t *)(void *)conn_req;
    const cci_endpoint_ops_t *ops;
    if (conn_req == NULL || conn_req->type != CCI_EVENT_CONNECT_REQUEST) return CCI_EINVAL;
    if (data_len > CCI_CONN_REQ_LEN || (data_len > 0 && data == NULL)) return CCI_EINVAL;
    if (data_len == 0) return accepts ? cci_accept(conn_req, context) : cci_reject(conn_req);
    ops = event->endpoint->ops;
    if (cci__ops_version(event->endpoint) < 3 || ops->answer == NULL) return CCI_ERR_NOT_IMPLEMENTED;
    return ops->answer(event, accepts, context, data, data_len);
}

CCI_API int cci_accept_data(cci_event_t *conn_req, const void *context, const void *data_ptr, uint32_t data_len) {
    return cci__answer(conn_req, 1, cci__context_of(context), data_ptr, data_len);
}

CCI_API int cci_reject_data(cci_event_t *conn_req, const void *data_ptr, uint32_t data_len) {
    return cci__answer(conn_req, 0, NULL, data_ptr, data_len);
}

/* What stands behind "scheme://", or NULL when the URI is not of that scheme or has nothing there. */
static const char *cci__uri_address(const char *uri, const char *scheme) {
    size_t length;
    if (scheme == NULL) return NULL;
    length = strlen(scheme);
    if (strncmp(uri, scheme, length) != 0 || strncmp(uri + length, "://", 3) != 0) return NULL;
    return uri[length + 3] != '\0' ? uri + length + 3 : NULL;
}

#ifdef CCI_NO_TEXT
static int cci__uri_refuse(const char *uri, const char *address, const cci_transport_t *own, int status) {
    (void)uri, (void)address, (void)own;
    return status;
}
#else
/* What is wrong with the part before "://", as far as it tells. `*name` becomes what the text ends with. */
static const char *cci__scheme_fault(const char *uri, const cci_transport_t *own, char *name, size_t size) {
    const char *end = strstr(uri, "://");
    size_t length = end != NULL ? (size_t)(end - uri) : 0;
    uint32_t i;
    name[0] = '\0';
    if (length == 0) return "it does not begin with a transport, as in udp://host:port";
    if (end[3] == '\0') return "nothing stands behind ://";
    length = length < size ? length : size - 1;
    memcpy(name, uri, length);
    name[length] = '\0';
    cci__core_lock();
    for (i = 0; i < cci__core.table_count; i++) {
        const cci_transport_t *transport = cci__core.table[i];
        if (strcmp(name, transport->name) == 0 || (transport->scheme != NULL && strcmp(name, transport->scheme) == 0))
            break;
    }
    cci__core_unlock();
    if (i == cci__core.table_count) return "this program has no transport ";
    length = strlen(own->name) < size ? strlen(own->name) : size - 1;
    memcpy(name, own->name, length);
    name[length] = '\0';
    return "it needs an endpoint of another device; this one's transport is ";
}

#ifndef CCI_NO_NAMES
/* What is wrong with the name behind a slash, if that is it. */
static const char *cci__name_fault(const char *address, const char *slash, const char *colon) {
    if (slash == address) return "it has no host";
    if (strspn(slash + 1, "0123456789") < strlen(slash + 1))
        return "behind the host stands either :port, or / and a name of 1 to 120 bytes of UTF-8";
    if (slash[1] == '\0') return "it has no name of a service behind /";
    return colon == NULL ? "a port stands behind a colon, not behind /" : NULL;
}
#endif

/* What is wrong with the part behind "://": host and port, or node and service. */
static const char *cci__address_fault(const char *address, int status) {
    const char *bracket = strrchr(address, ']'), *colon = strrchr(bracket != NULL ? bracket : address, ':');
    unsigned long port = 0;
    const char *digit;
#ifndef CCI_NO_NAMES
    const char *slash = strchr(bracket != NULL ? bracket : address, '/');
    const char *fault = status != CCI_EADDRNOTAVAIL && slash != NULL ? cci__name_fault(address, slash, colon) : NULL;
    if (fault != NULL) return fault;
#endif
    if (status == CCI_EADDRNOTAVAIL) return "no such host, or none that this device can reach";
    if (colon == NULL) return "it has no port";
    if (colon == address) return "it has no host";
    if (bracket == NULL && strchr(address, ':') != colon) return "an IPv6 address stands in brackets, [address]:port";
    for (digit = colon + 1; *digit >= '0' && *digit <= '9' && port <= 65535; digit++)
        port = 10 * port + (unsigned long)(*digit - '0');
    if (*digit != '\0' || port < 1 || port > 65535) return "its port is not a number from 1 to 65535";
    return "its address is none for a connection of this attribute";
}

/* Logs which part of a URI is wrong, and passes the status on. */
static int cci__uri_refuse(const char *uri, const char *address, const cci_transport_t *own, int status) {
    char name[32] = "";
    cci__note_t note;
    note.length = 0;
    cci__note_add(&note, "cannot connect to \"");
    cci__note_add(&note, uri);
    cci__note_add(&note, "\": ");
    cci__note_add(&note, address != NULL ? cci__address_fault(address, status)
                                         : cci__scheme_fault(uri, own, name, sizeof name));
    cci__note_add(&note, name);
    cci_log(CCI_LOG_WARN, note.text);
    return status;
}
#endif

CCI_API int cci_connect(cci_endpoint_t *endpoint, const char *server_uri, const void *data_ptr, uint32_t data_len,
                        cci_conn_attribute_t attribute, const void *context, int flags, const struct timeval *timeout) {
    cci_endpoint_base_t *base = cci__endpoint_of(endpoint);
    const cci_transport_t *transport;
    const char *address;
    char text[320];
    int status;
    if (endpoint == NULL || server_uri == NULL)
        return cci__refuse("cci_connect()", endpoint == NULL ? "the endpoint is NULL" : "the URI is NULL");
    if (data_len > CCI_CONN_REQ_LEN) return cci__refuse("cci_connect()", "data_len is over 1024");
    if (data_ptr == NULL && data_len > 0) return cci__refuse("cci_connect()", "data_ptr is NULL and data_len is not 0");
    if ((unsigned)attribute > (unsigned)CCI_CONN_ATTR_UU_MC_RX)
        return cci__refuse("cci_connect()", "there is no such attribute");
    if (flags & ~CCI__FLAGS) return cci__flags_refuse("cci_connect()", flags & ~CCI__FLAGS);
    if (timeout != NULL && (timeout->tv_sec < 0 || timeout->tv_usec < 0 || timeout->tv_usec >= 1000000))
        return cci__refuse("cci_connect()", "the timeout is negative, or has a million microseconds or more");
    transport = cci__device_of(endpoint->device)->transport;
    address = cci__uri_address(server_uri, transport->name);
    if (address == NULL) address = cci__uri_address(server_uri, transport->scheme);
    if (address == NULL) return cci__uri_refuse(server_uri, NULL, transport, CCI_EINVAL);
    address = cci__known_service(endpoint->device, address, text, sizeof text);
    if (base->ops->connect == NULL) return CCI_ERR_NOT_IMPLEMENTED;
    status = base->ops->connect(base, address, data_ptr, data_len, attribute, cci__context_of(context), flags, timeout);
    if (status == CCI_EINVAL || status == CCI_EADDRNOTAVAIL)
        return cci__uri_refuse(server_uri, address, transport, status);
    return status;
}

CCI_API int cci_disconnect(cci_connection_t *connection) {
    const cci_endpoint_ops_t *ops;
    if (connection == NULL) return CCI_EINVAL;
    cci__lists_leave(connection);
    ops = cci__endpoint_of_connection(connection)->ops;
    return ops->disconnect != NULL ? ops->disconnect(cci__connection_of(connection)) : (int)CCI_ERR_NOT_IMPLEMENTED;
}

/* ---- event functions --------------------------------------------------------------------------------------------- */

CCI_API int cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event) {
    cci_endpoint_base_t *base = cci__endpoint_of(endpoint);
    if (endpoint == NULL || event == NULL) return CCI_EINVAL;
    *event = NULL;
    return cci__lists_get_event(base, event);
}

CCI_API int cci_return_event(cci_event_t *event) {
    cci_event_base_t *base = (cci_event_base_t *)(void *)event;
    if (event == NULL) return CCI_EINVAL;
    return base->endpoint->ops->return_event(base);
}

/* ---- option functions -------------------------------------------------------------------------------------------- */

/* The device that a handle is, NULL if it is none. */
static const cci__device_t *cci__device_among(const void *handle) {
    const cci__device_t *device;
    const cci_endpoint_base_t *at;
    cci__core_lock();
    for (device = cci__core.devices; device != NULL && (const void *)device != handle;) device = device->next;
    if (device == NULL) device = cci__core.parent_devices;
    while (device != NULL && (const void *)device != handle) device = device->next;
    for (at = cci__core.endpoints; device == NULL && at != NULL; at = at->next_in_core)
        if ((const void *)at->pub.device == handle) device = cci__device_of(at->pub.device);
    cci__core_unlock();
    return device;
}

static int cci__device_caps(const cci__device_t *device, cci_caps_t *caps) {
    if (device->desc.caps == NULL && (device->transport == NULL || device->transport->link == NULL))
        return CCI_ERR_NOT_IMPLEMENTED;
    if (device->desc.caps != NULL) {
        *caps = *device->desc.caps;
    } else {
        cci__dgram_link_caps(device->transport->link, caps);
        if (cci_seal_hooks() != NULL) caps->can |= CCI_CAN_SEAL;
    }
    caps->max_send_size = device->pub.max_send_size;
    return CCI_SUCCESS;
}

/* Whose option it is: 'e' for an endpoint's, 'c' for a connection's, 'a' for any handle's, 0 for none. */
static int cci__opt_owner(cci_opt_name_t name) {
    switch ((int)name) {
    case CCI_OPT_ENDPT_SEND_TIMEOUT:
    case CCI_OPT_ENDPT_RECV_BUF_COUNT:
    case CCI_OPT_ENDPT_SEND_BUF_COUNT:
    case CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT:
    case CCI_OPT_ENDPT_URI:
    case CCI_OPT_ENDPT_RMA_ALIGN:
    case CCI_OPT_ENDPT_EVENT_MASK:
    case CCI_OPT_ENDPT_STATS:
    case CCI_OPT_ENDPT_SEND_FD:
    case CCI_OPT_ENDPT_CONN_STATS: return 'e';
    case CCI_OPT_CONN_STATS:
    case CCI_OPT_CONN_SEND_TIMEOUT:
    case CCI_OPT_CONN_KEEPALIVE_TIMEOUT:
    case CCI_OPT_CONN_PEER_URI:
    case CCI_OPT_CONN_LINGER:
    case CCI_OPT_CONN_CONTEXT: return 'c';
    case CCI_OPT_CAPS: return 'a';
    default: return 0;
    }
}

/* 'e' or 'c' as above, 0 also when the handle is of the other kind. */
static int cci__opt_kind(const void *handle, cci_opt_name_t name) {
    int owner = cci__opt_owner(name);
    if (owner == 'a') return handle == NULL ? 0 : cci__is_endpoint(handle) ? 'e' : 'c';
    return handle != NULL && cci__is_endpoint(handle) == (owner == 'e') ? owner : 0;
}

/* Logs why an option can't be set or got; the status for it. */
static int cci__opt_refuse(const char *function, const void *handle, cci_opt_name_t name) {
    int owner = cci__opt_owner(name);
    return cci__refuse(function, owner == 0       ? "there is no such option"
                                 : handle == NULL ? "the handle is NULL"
                                 : owner == 'e'   ? "the option is an endpoint's, and the handle is none"
                                                  : "the option is a connection's, and the handle is an endpoint");
}

CCI_API int cci_set_opt(cci_opt_handle_t *handle, cci_opt_name_t name, const void *val) {
    int owner = cci__opt_kind((const void *)handle, name);
    if (owner == 0) return cci__opt_refuse("cci_set_opt()", (const void *)handle, name);
    if (val == NULL) return cci__refuse("cci_set_opt()", "the value is NULL");
    if (name == CCI_OPT_ENDPT_URI || name == CCI_OPT_ENDPT_RMA_ALIGN || name == CCI_OPT_CONN_PEER_URI ||
        name == CCI_OPT_CAPS || name == CCI_OPT_ENDPT_STATS || name == CCI_OPT_CONN_STATS ||
        name == CCI_OPT_ENDPT_SEND_FD)
        return cci__refuse("cci_set_opt()", "the option can only be got");
    if (owner == 'e') {
        cci_endpoint_base_t *base = cci__endpoint_of((cci_endpoint_t *)handle);
        if (base->ops->set_endpoint_opt == NULL) return CCI_ERR_NOT_IMPLEMENTED;
        return base->ops->set_endpoint_opt(base, name, val);
    } else {
        struct cci_connection *connection = cci__connection_of((cci_connection_t *)handle);
        const cci_endpoint_ops_t *ops = cci__endpoint_of_connection(connection)->ops;
        if (ops->set_connection_opt == NULL) return CCI_ERR_NOT_IMPLEMENTED;
        return ops->set_connection_opt(connection, name, val);
    }
}

CCI_API int cci_get_opt(cci_opt_handle_t *handle, cci_opt_name_t name, void *val) {
    int owner = cci__opt_kind((const void *)handle, name);
    if (owner == 0) return cci__opt_refuse("cci_get_opt()", (const void *)handle, name);
    if (val == NULL) return cci__refuse("cci_get_opt()", "the value is NULL");
    if (name == CCI_OPT_CAPS && owner == 'c') {
        const cci__device_t *device = cci__device_among((const void *)handle);
        if (device != NULL) return cci__device_caps(device, (cci_caps_t *)val);
    }
    if (owner == 'e') {
        cci_endpoint_base_t *base = cci__endpoint_of((cci_endpoint_t *)handle);
        if (base->ops->get_endpoint_opt == NULL) return CCI_ERR_NOT_IMPLEMENTED;
        return base->ops->get_endpoint_opt(base, name, val);
    } else {
        struct cci_connection *connection = cci__connection_of((cci_connection_t *)handle);
        const cci_endpoint_ops_t *ops = cci__endpoint_of_connection(connection)->ops;
        if (ops->get_connection_opt == NULL) return CCI_ERR_NOT_IMPLEMENTED;
        return ops->get_connection_opt(connection, name, val);
    }
}

/* ---- message functions ------------------------------------------------------------------------------------------- */

/* Without completion nobody knows when a borrowed buffer is free again, unless a later completion in order tells:
 * NO_COPY with SILENT is for RO. */
static CCI__RARE int cci__send_flags_are_legal(const cci_connection_t *connection, int flags) {
    const int both = CCI_FLAG_NO_COPY | CCI_FLAG_SILENT;
    return (flags & ~CCI__FLAGS) == 0 && (connection->attribute == CCI_CONN_ATTR_RO || (flags & both) != both);
}

/* A receiver of multicast can't send. */
static inline int cci__send_is_legal(const cci_connection_t *connection, int flags) {
    return connection->attribute != CCI_CONN_ATTR_UU_MC_RX &&
           (CCI__LIKELY(flags == 0) || cci__send_flags_are_legal(connection, flags));
}

static CCI__RARE int cci__send_refuse(int flags) {
#ifdef CCI_NO_WAKE
    if ((flags & ~CCI__SEND_FLAGS) == CCI_FLAG_WAKE) return CCI_ERR_NOT_IMPLEMENTED;
#endif
    if (flags & ~CCI__SEND_FLAGS) return cci__flags_refuse("cci_send()", flags & ~CCI__SEND_FLAGS);
    return CCI_EINVAL;
}

CCI_API int cci_send(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len, const void *context,
                     int flags) {
    struct iovec piece;
    if (connection == NULL || (msg_ptr == NULL && msg_len > 0) || !cci__send_is_legal(connection, flags))
        return cci__send_refuse(flags);
    piece.iov_base = cci__context_of(msg_ptr);
    piece.iov_len = msg_len;
    return cci__sendv_of(connection)(cci__connection_of(connection), &piece, 1, cci__context_of(context), flags);
}

CCI_API int cci_sendv(cci_connection_t *connection, const struct iovec *data, uint32_t iovcnt, const void *context,
                      int flags) {
    uint32_t i;
    if (connection == NULL || (data == NULL && iovcnt > 0) || !cci__send_is_legal(connection, flags))
        return cci__send_refuse(flags);
    for (i = 0; i < iovcnt; i++)
        if (data[i].iov_base == NULL && data[i].iov_len > 0) return CCI_EINVAL;
    return cci__sendv_of(connection)(cci__connection_of(connection), data, iovcnt, cci__context_of(context), flags);
}

/* ---- remote memory access functions ------------------------------------------------------------------------------ */

static int cci__ranges_meet(const uint8_t *one, uint64_t one_length, const uint8_t *other, uint64_t other_length) {
    uintptr_t a = (uintptr_t)one, b = (uintptr_t)other;
    return a < b ? b - a < one_length : a - b < other_length;
}

/* Room for a note about a registration when it is of memory of cci_rma_alloc(), else NULL. 0: there is no memory. */
static int cci__registered_new(const cci_endpoint_base_t *endpoint, const void *start, uint64_t length,
                               cci__registered_t **made) {
    const cci__shared_t *memory;
    *made = NULL;
    cci__shared_lock();
    memory = cci__core.memories;
    while (memory != NULL && (memory->endpoint != endpoint ||
                              !cci__ranges_meet(memory->start, memory->length, (const uint8_t *)start, length)))
        memory = memory->next;
    cci__shared_unlock();
    if (memory == NULL) return 1;
    *made = (cci__registered_t *)cci_alloc(sizeof **made);
    if (*made == NULL) return 0;
    (*made)->endpoint = endpoint;
    (*made)->start = (const uint8_t *)start;
    (*made)->length = length;
    return 1;
}

static void cci__registered_add(cci__registered_t *made, const struct cci_rma_handle *handle) {
    made->handle = *handle;
    cci__shared_lock();
    made->next = cci__core.registered;
    cci__core.registered = made;
    cci__shared_unlock();
}

static void cci__registered_remove(const cci_endpoint_base_t *endpoint, const struct cci_rma_handle *handle) {
    cci__registered_t **at, *found;
    cci__shared_lock();
    at = &cci__core.registered;
    while (*at != NULL && ((*at)->endpoint != endpoint || memcmp(&(*at)->handle, handle, sizeof *handle) != 0))
        at = &(*at)->next;
    found = *at;
    if (found != NULL) *at = found->next;
    cci__shared_unlock();
    cci_release(found);
}

CCI_API int cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
                             cci_rma_handle_t **rma_handle) {
    cci_endpoint_base_t *base = cci__endpoint_of(endpoint);
    cci__registered_t *registered;
    int status;
    if (endpoint == NULL || start == NULL || rma_handle == NULL || length == 0) return CCI_EINVAL;
    if (length - 1 > (uint64_t)(UINTPTR_MAX - (uintptr_t)start)) return CCI_EINVAL;
    if (flags & ~CCI__FLAGS) return cci__flags_refuse("cci_rma_register()", flags & ~CCI__FLAGS);
    if (base->ops->rma_register == NULL) return CCI_ERR_NOT_IMPLEMENTED;
    if (!cci__registered_new(base, start, length, &registered)) return CCI_ENOMEM;
    status = base->ops->rma_register(base, start, length, flags, rma_handle);
    if (status == CCI_SUCCESS && registered != NULL)
        cci__registered_add(registered, *rma_handle);
    else
        cci_release(registered);
    return status;
}

CCI_API int cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *rma_handle) {
    cci_endpoint_base_t *base = cci__endpoint_of(endpoint);
    struct cci_rma_handle handle;
    int status;
    if (endpoint == NULL || rma_handle == NULL) return CCI_EINVAL;
    if (base->ops->rma_deregister == NULL) return CCI_ERR_NOT_IMPLEMENTED;
    handle = *rma_handle; /* what it points to may be another registration's soon */
    status = base->ops->rma_deregister(base, &handle);
    if (status == CCI_SUCCESS) cci__registered_remove(base, &handle);
    if (status == CCI_ERR_RMA_HANDLE) (void)cci__refuse("cci_rma_deregister()", "the endpoint has no such handle");
    return status;
}

/* What RMAs are refused for, whatever their memory is. */
static inline int cci__rma_check(const char *function, const cci_connection_t *connection, const void *msg_ptr,
                                 uint32_t msg_len, int flags) {
    const int both = CCI_FLAG_READ | CCI_FLAG_WRITE;
    if (connection->attribute != CCI_CONN_ATTR_RO && connection->attribute != CCI_CONN_ATTR_RU) return CCI_EINVAL;
    if ((flags & both) == 0 || (flags & both) == both || (msg_ptr == NULL && msg_len > 0)) return CCI_EINVAL;
    return (flags & ~CCI__FLAGS) != 0 ? cci__flags_refuse(function, flags & ~CCI__FLAGS) : (int)CCI_SUCCESS;
}

CCI_API int cci_rma(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len, cci_rma_handle_t *local_handle,
                    uint64_t local_offset, cci_rma_handle_t *remote_handle, uint64_t remote_offset, uint64_t data_len,
                    const void *context, int flags) {
    cci__rma_t *rma;
    int status;
    if (connection == NULL || local_handle == NULL || remote_handle == NULL || data_len == 0) return CCI_EINVAL;
    status = cci__rma_check("cci_rma()", connection, msg_ptr, msg_len, flags);
    if (status != CCI_SUCCESS) return status;
    rma = cci__rma_of(connection);
    if (rma == NULL) return CCI_ERR_NOT_IMPLEMENTED;
    status = rma(cci__connection_of(connection), msg_ptr, msg_len, local_handle, local_offset, remote_handle,
                 remote_offset, data_len, cci__context_of(context), flags);
    if (status == CCI_ERR_RMA_HANDLE && !(flags & CCI_FLAG_BLOCKING)) /* else it may be the remote one */
        (void)cci__refuse("cci_rma()", "the endpoint has no such local handle, or not for that range");
    return status;
}

#ifdef CCI_NO_LISTS
CCI_API int cci_rmav(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
                     const cci_rma_segment_t *local, uint32_t local_count, const cci_rma_segment_t *remote,
                     uint32_t remote_count, const void *context, int flags) {
    (void)connection, (void)msg_ptr, (void)msg_len, (void)local, (void)local_count, (void)remote, (void)remote_count;
    (void)context, (void)flags;
    return CCI_ERR_NOT_IMPLEMENTED;
}
#else
/* Adds up the bytes of segments. */
static int cci__rmav_measure(const cci_rma_segment_t *segment, uint32_t count, uint64_t *bytes) {
    uint32_t i;
    *bytes = 0;
    if (segment == NULL || count > CCI__LIST_SEGMENTS) return CCI_EINVAL;
    for (i = 0; i < count; i++) {
        if (segment[i].length == 0) continue;
        if (segment[i].handle == NULL || segment[i].length > UINT64_MAX - *bytes) return CCI_EINVAL;
        *bytes += segment[i].length;
    }
    return *bytes > 0 ? CCI_SUCCESS : CCI_EINVAL;
}

/* Would all pieces be taken? */
static int cci__rmav_check(cci_connection_t *connection, cci__walk_t walk, int flags) {
    uint64_t bytes;
    while ((bytes = cci__walk_look(&walk)) > 0) {
        int status;
        if (walk.local->length > UINT64_MAX - walk.local->offset ||
            walk.remote->length > UINT64_MAX - walk.remote->offset)
            return CCI_ERR_RMA_HANDLE;
        status = cci__walk_issue(&walk, connection, NULL, 0, bytes, NULL, flags | CCI_PIECE_CHECK);
        if (status != CCI_SUCCESS) return status;
        cci__walk_take(&walk, bytes);
    }
    return CCI_SUCCESS;
}

/* One piece after the other, each to its end. */
static int cci__rmav_block(cci_connection_t *connection, cci__walk_t walk, const void *message, uint32_t length,
                           int flags) {
    int status = CCI_SUCCESS;
    uint64_t bytes;
    while (status == CCI_SUCCESS && (bytes = cci__walk_look(&walk)) > 0) {
        int is_last = bytes == walk.bytes_left;
        status = cci__walk_issue(&walk, connection, is_last ? message : NULL, is_last ? length : 0, bytes, NULL, flags);
        flags = (flags & ~CCI_FLAG_FENCE) | CCI_PIECE_NEXT;
        cci__walk_take(&walk, bytes);
    }
    return status;
}

/* A copy of segments with their handles, at `to`. */
static const cci_rma_segment_t *cci__rmav_copy(uint8_t **to, const cci_rma_segment_t *from, uint32_t count) {
    cci_rma_segment_t *segment = (cci_rma_segment_t *)(void *)*to;
    struct cci_rma_handle *handle = (struct cci_rma_handle *)(void *)(segment + count);
    uint32_t i;
    for (i = 0; i < count; i++) {
        segment[i] = from[i];
        if (from[i].length > 0) handle[i] = *from[i].handle;
        segment[i].handle = &handle[i];
    }
    *to = (uint8_t *)(handle + count);
    return segment;
}

/* Accepts a list with its first piece. */
static int cci__rmav_accept(cci_lists_t *lists, cci__rmav_t *list) {
    int status = CCI_SUCCESS;
    cci__lock_take(&lists->lock);
    cci__rmav_issue(list);
    if (list->under_way > 0) {
        cci__list_append(&lists->issued, &list->node);
        cci__rmav_sort(lists, list, 0);
    } else {
        status = list->status != CCI_SUCCESS ? list->status : (int)CCI_ENOBUFS;
    }
    cci__lock_give(&lists->lock);
    if (status != CCI_SUCCESS) cci_release(list);
    return status;
}

static int cci__rmav_start(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
                           const cci_rma_segment_t *local, uint32_t local_count, const cci_rma_segment_t *remote,
                           uint32_t remote_count, const cci__walk_t *walk, const void *context, int flags) {
    const size_t segment_bytes = sizeof(cci_rma_segment_t) + sizeof(struct cci_rma_handle);
    cci_lists_t *lists = cci__lists_of(cci__endpoint_of_connection(connection));
    cci__rmav_t *list;
    uint8_t *to;
    if (lists == NULL) return CCI_ENOMEM;
    list = (cci__rmav_t *)cci_alloc(sizeof *list + (local_count + remote_count) * segment_bytes + msg_len);
    if (list == NULL) return CCI_ENOMEM;
    memset(list, 0, sizeof *list);
    list->event.endpoint = &lists->face;
    list->event.pub.send.type = CCI_EVENT_SEND;
    list->event.pub.send.connection = connection;
    list->event.pub.send.context = cci__context_of(context);
    list->connection = connection;
    list->flags = flags;
    to = (uint8_t *)(list + 1);
    list->walk.local = cci__rmav_copy(&to, local, local_count);
    list->walk.remote = cci__rmav_copy(&to, remote, remote_count);
    list->walk.bytes_left = walk->bytes_left;
    list->message = to;
    list->message_len = msg_len;
    if (msg_len > 0) memcpy(to, msg_ptr, msg_len);
    return cci__rmav_accept(lists, list);
}

CCI_API int cci_rmav(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
                     const cci_rma_segment_t *local, uint32_t local_count, const cci_rma_segment_t *remote,
                     uint32_t remote_count, const void *context, int flags) {
    cci_endpoint_base_t *base;
    cci_lists_t *lists;
    cci__walk_t walk;
    uint64_t bytes;
    int status = cci__rmav_measure(local, local_count, &walk.bytes_left);
    if (connection == NULL) return CCI_EINVAL;
    if (status == CCI_SUCCESS) status = cci__rmav_measure(remote, remote_count, &bytes);
    if (status == CCI_SUCCESS && bytes != walk.bytes_left) status = CCI_EINVAL;
    if (status != CCI_SUCCESS)
        return cci__refuse("cci_rmav()", "a list is NULL, too long or empty, or the sums differ");
    status = cci__rma_check("cci_rmav()", connection, msg_ptr, msg_len, flags);
    if (status != CCI_SUCCESS) return status;
    base = cci__endpoint_of_connection(connection);
    if (base->ops->rma == NULL) return CCI_ERR_NOT_IMPLEMENTED;
    if (msg_len > connection->max_send_size) return CCI_EMSGSIZE;
    walk.local = local;
    walk.remote = remote;
    walk.local_done = walk.remote_done = 0;
    bytes = cci__walk_look(&walk);
    if (bytes == walk.bytes_left)
        return cci_rma(connection, msg_ptr, msg_len, walk.local->handle, walk.local->offset, walk.remote->handle,
                       walk.remote->offset, bytes, context, flags);
    if (cci__ops_version(base) < 4) return CCI_ERR_NOT_IMPLEMENTED;
    status = cci__rmav_check(connection, walk, flags & (CCI_FLAG_READ | CCI_FLAG_WRITE));
    if (status == CCI_ERR_RMA_HANDLE)
        (void)cci__refuse("cci_rmav()", "the endpoint has no such local handle, or not for that range");
    if (status != CCI_SUCCESS) return status;
    lists = CCI__LISTS_LOAD(base->lists);
    if (lists != NULL && cci__lists_hold(lists, connection, flags)) return CCI_ENOBUFS;
    if (flags & CCI_FLAG_BLOCKING) return cci__rmav_block(connection, walk, msg_ptr, msg_len, flags);
    return cci__rmav_start(connection, msg_ptr, msg_len, local, local_count, remote, remote_count, &walk, context,
                           flags);
}
#endif

CCI_API int cci_atomic(cci_connection_t *connection, int operation, uint32_t width, cci_rma_handle_t *remote_handle,
                       uint64_t remote_offset, uint64_t operand, uint64_t compare, uint64_t *previous,
                       const void *context, int flags) {
#ifdef CCI_NO_ATOMICS
    (void)connection, (void)operation, (void)width, (void)remote_handle, (void)remote_offset, (void)operand;
    (void)compare, (void)previous, (void)context, (void)flags;
    return CCI_ERR_NOT_IMPLEMENTED;
#else
    const uint64_t mask = width == 4 ? UINT32_MAX : UINT64_MAX;
    const cci_endpoint_base_t *endpoint;
    cci_atomic_call_t call;
    if (connection == NULL || remote_handle == NULL || (width != 4 && width != 8)) return CCI_EINVAL;
    if (connection->attribute != CCI_CONN_ATTR_RO && connection->attribute != CCI_CONN_ATTR_RU) return CCI_EINVAL;
    if (operation < CCI_ATOMIC_FETCH_ADD || operation > CCI_ATOMIC_COMPARE_SWAP)
        return cci__refuse("cci_atomic()", "there is no such operation");
    if (flags & ~CCI__FLAGS) return cci__flags_refuse("cci_atomic()", flags & ~CCI__FLAGS);
    endpoint = cci__endpoint_of_connection(connection);
    if (cci__ops_version(endpoint) < 4 || endpoint->ops->atomic == NULL) return CCI_ERR_NOT_IMPLEMENTED;
#ifndef CCI_NO_LISTS
    if ((flags & CCI_FLAG_FENCE) && CCI__LISTS_LOAD(endpoint->lists) &&
        cci__lists_hold(CCI__LISTS_LOAD(endpoint->lists), connection, flags))
        return CCI_ENOBUFS;
#endif
    call.remote = remote_handle;
    call.offset = remote_offset;
    call.operand = operand & mask;
    call.compare = compare & mask;
    call.previous = previous;
    call.context = cci__context_of(context);
    call.operation = (uint32_t)operation;
    call.width = width;
    call.flags = flags;
    return endpoint->ops->atomic(cci__connection_of(connection), &call);
#endif
}

/* ---- memory that is shared where it can be ---- */

static int cci__can_share(const cci_endpoint_base_t *endpoint) {
    return cci__ops_version(endpoint) >= 2 && endpoint->ops->rma_alloc != NULL;
}

/* Bytes of a page; where there are none, a cache line will do. */
static size_t cci__page_size(void) {
#if CCI_POSIX
    long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (size_t)size : 4096;
#elif CCI_WINDOWS
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return (size_t)info.dwPageSize;
#else
    return 64;
#endif
}

/* Makes the note about memory, with room for the memory itself behind it if the transport has none. */
static int cci__shared_make(cci_endpoint_base_t *endpoint, uint64_t length, cci__shared_t **made) {
    size_t page = cci__page_size(), extra = 0;
    int is_transports = 0, status = CCI_ERR_NOT_IMPLEMENTED;
    void *start = NULL;
    if (cci__can_share(endpoint)) {
        status = endpoint->ops->rma_alloc(endpoint, length, &start);
        is_transports = status == CCI_SUCCESS;
    }
    if (!is_transports) {
        if (status != CCI_ERR_NOT_IMPLEMENTED) return status;
        if (length > SIZE_MAX - sizeof **made - page) return CCI_ENOMEM;
        extra = (size_t)length + page;
    }
    *made = (cci__shared_t *)cci_alloc(sizeof **made + extra);
    if (*made == NULL) {
        if (is_transports) endpoint->ops->rma_free(endpoint, start);
        return CCI_ENOMEM;
    }
    if (!is_transports) start = (uint8_t *)(*made + 1) + (page - 1 - (((uintptr_t)(*made + 1) - 1) & (page - 1)));
    (*made)->endpoint = endpoint;
    (*made)->start = (uint8_t *)start;
    (*made)->length = length;
    (*made)->is_transports = is_transports;
    return CCI_SUCCESS;
}

CCI_API int cci_rma_alloc(cci_endpoint_t *endpoint, uint64_t length, void **memory) {
    cci__shared_t *made;
    int status;
    if (endpoint == NULL || memory == NULL || length == 0) return CCI_EINVAL;
    status = cci__shared_make(cci__endpoint_of(endpoint), length, &made);
    if (status != CCI_SUCCESS) return status;
    cci__shared_lock();
    made->next = cci__core.memories;
    cci__core.memories = made;
    cci__shared_unlock();
    *memory = made->start;
    return CCI_SUCCESS;
}

static int cci__shared_is_registered(const cci__shared_t *memory) {
    const cci__registered_t *r = cci__core.registered;
    while (r != NULL &&
           (r->endpoint != memory->endpoint || !cci__ranges_meet(memory->start, memory->length, r->start, r->length)))
        r = r->next;
    return r != NULL;
}

CCI_API int cci_rma_free(cci_endpoint_t *endpoint, void *memory) {
    cci_endpoint_base_t *base = cci__endpoint_of(endpoint);
    cci__shared_t **at, *found;
    int status = CCI_EINVAL;
    if (endpoint == NULL || memory == NULL) return CCI_EINVAL;
    cci__shared_lock();
    at = &cci__core.memories;
    while (*at != NULL && ((*at)->endpoint != base || (*at)->start != (const uint8_t *)memory)) at = &(*at)->next;
    found = *at;
    if (found != NULL) status = cci__shared_is_registered(found) ? CCI_EBUSY : CCI_SUCCESS;
    if (status == CCI_SUCCESS) *at = found->next;
    cci__shared_unlock();
    if (status != CCI_SUCCESS) return status;
    if (found->is_transports) base->ops->rma_free(base, memory);
    cci_release(found);
    return CCI_SUCCESS;
}

#ifdef __cplusplus
}
#endif

#endif /* CCI_CORE_IMPLEMENTATION */

/* ==================================================================================================================
 * >>tiny
 *
 * The engine of CCI_TINY: the whole of the interface over one link, in one piece, for the smallest machines. It stands
 * in the place of >>evq, >>conn, >>rel, >>rma, >>dgram and >>core and speaks the same protocol (tests/wire/wire.md), so
 * that a peer can't tell.
 *
 * How it does with less. A message, or a piece of a remote write, takes a packet of its own; the connection's few send
 * slots are its window, a ring in the order of the calls, and completions come in that order. What is received stays in
 * the buffer that it came in until the program has returned it. RU is served in order, as RO is. A remote write has
 * one piece under way, a remote read one segment. A NACK, a RESET, the answer to a CHALLENGE or a READ leave at once or
 * not at all: what provoked them is repeated. Every datagram that leaves for an open connection takes the
 * acknowledgement along.
 *
 * Time is counted in ticks of 2^16 ns, in 32 bits, which overflow after 78 hours: nothing waits for half as long.
 *
 * Invariants: one receive buffer is always free, to receive in; a packet is acknowledged only when all of it was
 * delivered, placed or kept; a slot of the table serves again only when the program holds nothing of it.
 * ================================================================================================================== */
#if defined(CCI_TINY_IMPLEMENTATION) && !defined(CCI_TINY_IMPLEMENTED)
#define CCI_TINY_IMPLEMENTED

#ifdef __cplusplus
extern "C" {
#endif

#define CCI__TINY_TICK_SHIFT 16
#define CCI__TINY_MS(ms) ((uint32_t)((uint64_t)(ms)*1000000u >> CCI__TINY_TICK_SHIFT))
#define CCI__TINY_LATER 0x7fffffff /* ticks: nothing is to be done */
#define CCI__TINY_HEAD CCI_PACKET_HEADER
#define CCI__TINY_ACK_ROOM 32u  /* bytes that each packet with a message or a piece leaves for the acknowledgement */
#define CCI__TINY_SILENT 0x2000 /* besides the program's flags: a part of an operation whose other part reports */
#define CCI__TINY_JOINED 0x4000 /* the message behind the write or read before it                            */
#define CCI__TINY_FLAGS                                                                                                \
    (CCI_FLAG_BLOCKING | CCI_FLAG_NO_COPY | CCI_FLAG_SILENT | CCI_FLAG_READ | CCI_FLAG_WRITE | CCI_FLAG_FENCE |        \
     CCI_FLAG_WAKE)
#define CCI__TINY_EARLY_EVENTS                                                                                         \
    (1u << CCI_EVENT_CONNECT | 1u << CCI_EVENT_CONNECT_REQUEST | 1u << CCI_EVENT_ACCEPT |                              \
     1u << CCI_EVENT_KEEPALIVE_TIMEDOUT)

/* States of a connection, of an operation and of a receive buffer. */
enum {
    CCI__TINY_GONE,
    CCI__TINY_CONNECTING,
    CCI__TINY_REQUESTED,
    CCI__TINY_REJECTED,
    CCI__TINY_ACCEPTED,
    CCI__TINY_OPEN,
    CCI__TINY_BROKEN,
    CCI__TINY_CLOSING
};
enum { CCI__TINY_FREE, CCI__TINY_WAITS, CCI__TINY_UNDER_WAY, CCI__TINY_DONE, CCI__TINY_GIVEN };
enum { CCI__TINY_EMPTY, CCI__TINY_KEPT, CCI__TINY_FILLS, CCI__TINY_READY, CCI__TINY_ASKS };

struct cci__tiny;
struct cci__tiny_conn;

/* A send slot: a message, a remote write or a remote read. */
typedef struct cci__tiny_op {
    cci_event_t event; /* first */
    struct cci__tiny_conn *conn;
    uint32_t sequence, number, sent, began; /* `number`: of the packet that carried it last; ticks              */
    uint32_t length;                        /* bytes of the message, or of the piece under way                   */
    uint16_t flags;
    uint8_t kind; /* type of its frame */
    uint8_t state, tries;
    union {
        uint64_t message[(CCI_TINY_MTU - CCI__TINY_HEAD - CCI__TINY_ACK_ROOM) / 8];
        struct {
            uint64_t done, total, remote_offset, key;
            uint8_t *memory;
            uint32_t region, segment, chunk, local;
        } rma;
    } u;
} cci__tiny_op_t;

/* A receive buffer: what was received, and the run of messages in it that the program has not got yet. */
typedef struct cci__tiny_buf {
    uint64_t bytes[(CCI_TINY_MTU + 7) / 8];
    struct cci__tiny_conn *conn;
    uint32_t first, order; /* sequence number of the frame at `at`; order of arrival */
    uint32_t at, left, length;
    uint8_t state, held; /* events that the program has */
} cci__tiny_buf_t;

typedef struct cci__tiny_event {
    cci_event_t event;    /* first */
    cci__tiny_buf_t *buf; /* NULL: free */
} cci__tiny_event_t;

typedef struct cci__tiny_conn {
    struct cci_connection pub; /* first */
    cci_event_t event;
    struct cci__tiny *ep;
    cci__tiny_buf_t *request;
    cci_link_addr_t peer;
    uint64_t token, peer_token, cookie, next_number, have; /* `have`: bytes of the write that is arriving */
    uint32_t peer_index, next_sequence, expected, top, bits, known;
    uint32_t due, until, heard, taken, asked, checked, pause, paused_until; /* ticks */
    uint32_t timeout, keepalive, timeout_us, keepalive_us;
    uint32_t srtt, rttvar; /* ticks, times 8 and times 4 */
    uint32_t chunk, request_length;
    int status;
    uint16_t pending; /* events: bits 1 << type */
    uint8_t state, tries, is_server, is_confirmed, is_held, is_late, was_pinged, probes, checks, fires, is_refused;
    uint8_t ack; /* 1: owed, 2: owed at once */
    uint8_t limit, first, count;
    cci__tiny_op_t op[CCI_TINY_SENDS];
} cci__tiny_conn_t;

typedef struct cci__tiny_region {
    struct cci_rma_handle handle; /* key, index, length */
    uint8_t *start;
    int flags;
} cci__tiny_region_t;

typedef struct cci__tiny {
    struct cci_endpoint pub; /* first */
    struct cci_device device;
    const cci_link_t *link;
    void *handle;
    uint64_t now_ns;
    uint32_t now, order, mtu, window, probe, mask, timeout_us, keepalive_us;
    int32_t left; /* ticks until something is to be done */
    uint8_t crc, has_acted, turn;
    cci__tiny_buf_t buf[CCI_TINY_RECEIVES + 1];
    cci__tiny_event_t event[CCI_TINY_RECEIVES];
    cci__tiny_conn_t conn[CCI_TINY_CONNECTIONS];
#ifndef CCI_NO_RMA
    cci__tiny_region_t region[CCI_TINY_REGISTRATIONS];
#endif
} cci__tiny_t;

static cci__tiny_t cci__tiny[CCI_TINY_ENDPOINTS];
static int (*cci__tiny_random)(void *user, void *bytes, size_t count);
static void *cci__tiny_user;

static int cci__tiny_before(uint32_t a, uint32_t b) {
    return (int32_t)(a - b) < 0;
}

/* Ticks of so many microseconds, at least as long. */
static uint32_t cci__tiny_ticks(uint32_t us) {
    return us == 0 ? 0 : (us >> 16) * 1000 + ((us & 0xffff) * 1000 >> 16) + 1;
}

/* Has this moment come? If not, the endpoint wants to be called then. */
static int cci__tiny_is_due(cci__tiny_t *ep, uint32_t at) {
    int32_t left = (int32_t)(at - ep->now);
    if (left <= 0) {
        ep->has_acted = 1;
        return 1;
    }
    if (left < ep->left) ep->left = left;
    return 0;
}

static uint32_t cci__tiny_retry(uint32_t tries) {
    return tries > 5 ? CCI__TINY_MS(1000) : CCI__TINY_MS(20) << tries;
}

static void cci__tiny_look_at_clock(cci__tiny_t *ep) {
    ep->now_ns = ep->link->now(ep->handle);
    ep->now = (uint32_t)(ep->now_ns >> CCI__TINY_TICK_SHIFT);
}

/* A number that nobody can guess, never 0; 0 without a source of chance. */
static uint64_t cci__tiny_secret(void) {
    uint64_t secret = 0;
    uint32_t tries;
    for (tries = 0; secret == 0 && tries < 4; tries++)
        if (!cci__tiny_random || cci__tiny_random(cci__tiny_user, &secret, sizeof secret) != 0) return 0;
    return secret;
}

/* ---- what leaves ------------------------------------------------------------------------------------------------ */

/* Sends a datagram whose head has the version and the flags still to be set. 0: the link has no room for it now. */
static int cci__tiny_transmit(cci__tiny_t *ep, const cci_link_addr_t *to, uint8_t *head, uint32_t size,
                              const void *data, uint32_t length) {
    cci_link_tx_t tx;
    uint8_t check[4];
    tx.codepoint = 0;
    head[0] = CCI_PACKET_VERSION;
    head[3] = ep->crc;
    tx.to = to;
    tx.length = size + length;
    tx.piece_count = 1;
    tx.piece[0].data = head;
    tx.piece[0].length = size;
    if (length > 0) {
        tx.piece[1].data = data;
        tx.piece[1].length = length;
        tx.piece_count = 2;
    }
    if (ep->crc) {
        cci__store32(check, cci__crc32c(cci__crc32c(0, head, size), (const uint8_t *)data, length));
        tx.piece[tx.piece_count].data = check;
        tx.piece[tx.piece_count++].length = 4;
        tx.length += 4;
    }
    return ep->link->send(ep->handle, &tx, 1) > 0;
}

static void cci__tiny_head(uint8_t *head, int type, uint32_t index, uint64_t token, uint32_t sender, uint32_t number) {
    memset(head, 0, CCI__TINY_HEAD);
    head[1] = (uint8_t)type;
    cci__store32(head + 4, index);
    cci__store64(head + 8, token);
    cci__store32(head + 16, sender);
    cci__store32(head + 20, number);
}

static uint32_t cci__tiny_index(const cci__tiny_conn_t *conn) {
    return (uint32_t)(conn - conn->ep->conn);
}

/* A packet without frames. */
static void cci__tiny_control(cci__tiny_conn_t *conn, int type) {
    uint8_t head[CCI__TINY_HEAD];
    cci__tiny_head(head, type, conn->peer_index, conn->peer_token, type == CCI__PKT_REJECT ? 0 : cci__tiny_index(conn),
                   0);
    (void)cci__tiny_transmit(conn->ep, &conn->peer, head, sizeof head, NULL, 0);
}

static void cci__tiny_accept(cci__tiny_conn_t *conn) {
    uint8_t head[40];
    cci__tiny_head(head, CCI__PKT_ACCEPT, conn->peer_index, conn->peer_token, cci__tiny_index(conn), 0);
    head[2] = (uint8_t)conn->pub.attribute;
    cci__store64(head + 24, conn->token);
    cci__store32(head + 32, conn->pub.max_send_size);
    cci__store32(head + 36, conn->ep->window);
    (void)cci__tiny_transmit(conn->ep, &conn->peer, head, sizeof head, NULL, 0);
}

/* The request data lies in the first send slot. */
static void cci__tiny_request(cci__tiny_conn_t *conn) {
    uint8_t head[48];
    memset(head, 0, sizeof head);
    cci__tiny_head(head, CCI__PKT_REQUEST, cci__tiny_index(conn), conn->token, 0, 0);
    head[2] = (uint8_t)conn->pub.attribute;
    cci__store64(head + 16, conn->cookie);
    cci__store32(head + 24, conn->pub.max_send_size);
    cci__store32(head + 28, conn->ep->window);
    cci__store16(head + 32, (uint16_t)conn->request_length);
    cci__store16(head + 38, (uint16_t)conn->request_length);
    (void)cci__tiny_transmit(conn->ep, &conn->peer, head, sizeof head, conn->op[0].u.message, conn->request_length);
    conn->due = conn->ep->now + cci__tiny_retry(conn->tries);
    if (conn->tries < 255) conn->tries++;
}

/* Names what has arrived; returns its bytes, `space` at most. */
static uint32_t cci__tiny_write_ack(const cci__tiny_conn_t *conn, uint8_t *ack, uint32_t space) {
    const uint32_t delay = conn->ep->now - conn->heard;
    uint32_t size = 16, i = 0, begin, gap;
    ack[0] = CCI__FRAME_ACK;
    cci__store16(ack + 2, (uint16_t)(delay > 4000 ? 65535 : delay * 16));
    cci__store32(ack + 4, conn->top - 1);
    while (i < conn->known && (conn->bits >> i & 1)) i++;
    cci__store32(ack + 8, i);
    cci__store32(ack + 12, conn->pub.attribute == CCI_CONN_ATTR_UU ? 0 : conn->expected);
    for (; size + 4 <= space && ack[1] < 14; size += 4) {
        for (gap = i; i < conn->known && !(conn->bits >> i & 1);) i++;
        for (begin = i; i < conn->known && (conn->bits >> i & 1);) i++;
        if (begin == i) break;
        cci__store16(ack + size, (uint16_t)(begin - gap));
        cci__store16(ack + size + 2, (uint16_t)(i - begin));
        ack[1]++;
    }
    return cci__pad8(size);
}

/* Sends a packet of an open connection: the acknowledgement where it fits, a frame's head and what is behind it. */
static int cci__tiny_data(cci__tiny_conn_t *conn, const uint8_t *frame, uint32_t size, const void *data,
                          uint32_t length) {
    uint8_t head[CCI__TINY_HEAD + CCI__TINY_ACK_ROOM + 48];
    uint32_t at = CCI__TINY_HEAD, space = conn->ep->mtu - CCI__TINY_HEAD - size - length;
    int has_ack = conn->known > 0 && space >= 16 && (conn->ack || conn->pub.attribute != CCI_CONN_ATTR_UU);
    memset(head, 0, sizeof head);
    cci__tiny_head(head, CCI__PKT_DATA, conn->peer_index, conn->peer_token, cci__tiny_index(conn),
                   (uint32_t)conn->next_number);
    if (has_ack) at += cci__tiny_write_ack(conn, head + at, cci__min32(space & ~7u, CCI__TINY_ACK_ROOM));
    if (size > 0) memcpy(head + at, frame, size);
    if (!cci__tiny_transmit(conn->ep, &conn->peer, head, at + size, data, length)) return 0;
    conn->next_number++;
    if (has_ack) conn->ack = 0;
    return 1;
}

/* A frame that leaves at once or not at all. */
static void cci__tiny_say(cci__tiny_conn_t *conn, int type, int reason, uint32_t number) {
    uint8_t frame[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    frame[0] = (uint8_t)type;
    frame[1] = (uint8_t)reason;
    cci__store32(frame + 4, number);
    (void)cci__tiny_data(conn, frame, sizeof frame, NULL, 0);
}

/* Answers a packet for which nothing is kept. */
static void cci__tiny_answer(cci__tiny_t *ep, const cci_link_addr_t *to, const uint8_t *bytes, int type) {
    uint8_t head[CCI__TINY_HEAD];
    if (type == CCI__PKT_BUSY)
        cci__tiny_head(head, type, cci__load32(bytes + 4), cci__load64(bytes + 8), 0, 0);
    else
        cci__tiny_head(head, type, cci__load32(bytes + 16), cci__load64(bytes + 8), cci__load32(bytes + 4),
                       cci__load32(bytes + 20));
    (void)cci__tiny_transmit(ep, to, head, sizeof head, NULL, 0);
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* The slot number `i` of the ring, from the oldest on. */
static cci__tiny_op_t *cci__tiny_op_at(cci__tiny_conn_t *conn, uint32_t i) {
    i += conn->first;
    return &conn->op[i < CCI_TINY_SENDS ? i : i - CCI_TINY_SENDS];
}

static void cci__tiny_free_ops(cci__tiny_conn_t *conn) {
    while (conn->count > 0 && conn->op[conn->first].state == CCI__TINY_FREE) {
        conn->first = (uint8_t)(conn->first + 1 < CCI_TINY_SENDS ? conn->first + 1 : 0);
        conn->count--;
    }
}

static void cci__tiny_finish(cci__tiny_op_t *op, int status) {
    if (op->state != CCI__TINY_WAITS && op->state != CCI__TINY_UNDER_WAY) return;
    if (op->event.send.status == CCI_SUCCESS) op->event.send.status = (cci_status_t)status;
    op->state = CCI__TINY_DONE;
    if ((op->flags & CCI__TINY_SILENT) || (op->flags & (CCI_FLAG_SILENT | CCI_FLAG_BLOCKING)) == CCI_FLAG_SILENT)
        op->state = CCI__TINY_FREE;
}

/* Withdraws what the peer does not take: it takes a frame instead that means nothing. */
static void cci__tiny_withdraw(cci__tiny_op_t *op, int status) {
    if (op->state != CCI__TINY_WAITS && op->state != CCI__TINY_UNDER_WAY) return;
    if (op->kind == CCI__FRAME_READ || op->kind == CCI__FRAME_SKIP || op->kind == CCI__FRAME_VOID) {
        if (op->kind == CCI__FRAME_READ) cci__tiny_finish(op, status);
        return;
    }
    op->kind = op->kind == CCI__FRAME_BULK ? CCI__FRAME_VOID : CCI__FRAME_SKIP;
    op->event.send.status = (cci_status_t)status;
    op->state = CCI__TINY_WAITS;
    op->tries = 0;
    op->length = 0;
    op->began = op->conn->ep->now;
}

/* Withdraws an operation and the message that belongs to it. */
static void cci__tiny_withdraw_both(cci__tiny_conn_t *conn, uint32_t i, int status) {
    cci__tiny_op_t *next;
    cci__tiny_withdraw(cci__tiny_op_at(conn, i), status);
    if (i + 1 == conn->count) return;
    next = cci__tiny_op_at(conn, i + 1);
    if (next->flags & CCI__TINY_JOINED) cci__tiny_withdraw(next, status);
}

/* The operation has the peer's word for what was under way. */
static void cci__tiny_took(cci__tiny_op_t *op) {
    op->tries = 0;
#ifndef CCI_NO_RMA
    if (op->kind == CCI__FRAME_BULK || op->kind == CCI__FRAME_READ) {
        op->u.rma.done += op->length;
        op->u.rma.chunk = 0;
        if (op->u.rma.done < op->u.rma.total) {
            op->state = CCI__TINY_WAITS;
            return;
        }
    }
#endif
    cci__tiny_finish(op, CCI_SUCCESS);
}

/* Writes the head of an operation's frame. Returns its bytes; `data` becomes what follows. */
static uint32_t cci__tiny_write_frame(cci__tiny_op_t *op, uint8_t *frame, const void **data) {
    frame[0] = op->kind;
    frame[1] = (op->flags & CCI__TINY_JOINED) != 0;
    cci__store16(frame + 2, (uint16_t)op->length);
    cci__store32(frame + 4, op->sequence);
    *data = op->u.message;
    if (op->kind == CCI__FRAME_VOID) {
        frame[1] = (op->flags & CCI__TINY_SILENT) != 0; /* and its message */
        cci__store32(frame + 8, 1);
        return 16;
    }
#ifndef CCI_NO_RMA
    if (op->kind == CCI__FRAME_BULK || op->kind == CCI__FRAME_READ) {
        op->length = (uint32_t)cci__min64(op->u.rma.total - op->u.rma.done, op->u.rma.segment);
        cci__store64(frame + 8, op->u.rma.key);
        cci__store32(frame + 16, op->u.rma.region);
        frame[1] = 0;
    }
    if (op->kind == CCI__FRAME_BULK) {
        cci__store16(frame + 2, (uint16_t)op->length);
        cci__store64(frame + 24, op->u.rma.remote_offset);
        cci__store64(frame + 32, op->u.rma.done);
        cci__store64(frame + 40, op->u.rma.total);
        *data = op->u.rma.memory + (size_t)op->u.rma.done;
        return 48;
    }
    if (op->kind == CCI__FRAME_READ) {
        if (op->u.rma.chunk == 0) op->u.rma.chunk = ++op->conn->chunk; /* until its bytes are here: answers come late */
        cci__store16(frame + 2, 0);
        cci__store32(frame + 4, op->u.rma.chunk);
        cci__store32(frame + 20, op->u.rma.segment);
        cci__store64(frame + 24, op->u.rma.remote_offset + op->u.rma.done);
        cci__store32(frame + 32, op->length);
        frame[40] = 1;
        return 48;
    }
#endif
    return 8;
}

/* Sends an operation's packet; 0 when the link has no room. */
static int cci__tiny_send_op(cci__tiny_conn_t *conn, cci__tiny_op_t *op) {
    uint8_t frame[48];
    const void *data;
    uint32_t size;
    memset(frame, 0, sizeof frame);
    op->number = (uint32_t)conn->next_number;
#ifndef CCI_NO_RMA
    if (op->kind == CCI__FRAME_READ && op->tries >= 3) op->u.rma.segment = cci__max32(op->u.rma.segment / 2 & ~7u, 64);
#endif
    size = cci__tiny_write_frame(op, frame, &data);
    if (!cci__tiny_data(conn, frame, size, data, op->kind == CCI__FRAME_READ ? 0 : op->length)) return 0;
    op->state = CCI__TINY_UNDER_WAY;
    op->sent = conn->ep->now;
    if (op->tries < 255) op->tries++;
    if (conn->pub.attribute == CCI_CONN_ATTR_UU) cci__tiny_finish(op, CCI_SUCCESS);
    return 1;
}

/* Sends what the window allows, the oldest first. */
static void cci__tiny_output(cci__tiny_conn_t *conn) {
    cci__tiny_t *ep = conn->ep;
    uint32_t i, under_way = 0, before = 0;
    for (i = 0; i < conn->count; i++) under_way += cci__tiny_op_at(conn, i)->state == CCI__TINY_UNDER_WAY;
    for (i = 0; i < conn->count && under_way < conn->limit; i++) {
        cci__tiny_op_t *op = cci__tiny_op_at(conn, i);
        if ((op->flags & CCI_FLAG_FENCE) && before > 0 && op->state == CCI__TINY_WAITS) break;
        before += op->state == CCI__TINY_WAITS || op->state == CCI__TINY_UNDER_WAY;
        if (op->state != CCI__TINY_WAITS) continue;
        if (conn->pause && (under_way > 0 || !cci__tiny_is_due(ep, conn->paused_until))) break;
        if (!cci__tiny_send_op(conn, op)) {
            ep->left = 1; /* until the link has room */
            break;
        }
        under_way += op->state == CCI__TINY_UNDER_WAY;
    }
    cci__tiny_free_ops(conn);
}

/* The probe time-out without back-off. */
static uint32_t cci__tiny_patience(const cci__tiny_conn_t *conn) {
    return conn->srtt ? (conn->srtt >> 3) + cci__max32(conn->rttvar, 4) + 1 : CCI__TINY_MS(100);
}

static uint32_t cci__tiny_probe_ticks(const cci__tiny_conn_t *conn) {
    uint32_t ticks = cci__tiny_patience(conn);
    return cci__min32(cci__max32(ticks, CCI__TINY_MS(2) + 1) << conn->fires, cci__max32(CCI__TINY_MS(8000), ticks));
}

/* ---- the end of a connection ------------------------------------------------------------------------------------ */

static void cci__tiny_empty(cci__tiny_buf_t *buf) {
    if (buf->left == 0 && buf->held == 0) buf->state = CCI__TINY_EMPTY;
}

/* Drops what was received: what is early, or everything that the program has not got yet. */
static void cci__tiny_drop(cci__tiny_conn_t *conn, int all) {
    uint32_t i;
    for (i = 0; i <= CCI_TINY_RECEIVES; i++) {
        cci__tiny_buf_t *buf = &conn->ep->buf[i];
        if (buf->conn != conn || buf->state == CCI__TINY_EMPTY ||
            buf->state > (all ? CCI__TINY_READY : CCI__TINY_FILLS))
            continue;
        buf->left = 0;
        cci__tiny_empty(buf);
    }
}

/* The connection ends. What the peer has behind a gap that nobody fills any more is not delivered: messages behind
 * others on an ordered connection, and a message behind its own write. */
static void cci__tiny_finish_all(cci__tiny_conn_t *conn, int status) {
    const int ordered = conn->pub.attribute == CCI_CONN_ATTR_RO;
    uint32_t i;
    int gap = 0;
    for (i = 0; i < conn->count; i++) {
        cci__tiny_op_t *op = cci__tiny_op_at(conn, i);
        int waits = op->state == CCI__TINY_WAITS || op->state == CCI__TINY_UNDER_WAY;
        gap &= ordered || (op->flags & CCI__TINY_JOINED) != 0;
        if (gap && op->state == CCI__TINY_DONE && op->kind != CCI__FRAME_READ && op->event.send.status == CCI_SUCCESS)
            op->event.send.status = (cci_status_t)status;
        cci__tiny_finish(op, status);
        gap |= waits && op->kind != CCI__FRAME_READ;
    }
    cci__tiny_free_ops(conn);
}

/* The connection has ended without the program's doing. */
static void cci__tiny_break(cci__tiny_conn_t *conn, int status) {
    conn->state = CCI__TINY_BROKEN;
    conn->status = status;
    conn->pending |= conn->ep->mask & 1u << CCI_EVENT_DISCONNECT;
    cci__tiny_drop(conn, 0);
    cci__tiny_finish_all(conn, status == CCI_SUCCESS ? CCI_ERR_DISCONNECTED : status);
}

/* What was asked for has failed: the program gets an event without a connection. */
static void cci__tiny_fail(cci__tiny_conn_t *conn, int type, int status) {
    conn->state = CCI__TINY_GONE;
    conn->status = status;
    conn->pending = (uint16_t)(1u << type);
}

/* ---- timers ----------------------------------------------------------------------------------------------------- */

/* The oldest operation was not taken in the send time-out. */
static void cci__tiny_time_out(cci__tiny_conn_t *conn) {
    uint32_t i;
    cci__tiny_op_t *op = cci__tiny_op_at(conn, 0);
    if (!conn->is_refused || op->kind == CCI__FRAME_SKIP || op->kind == CCI__FRAME_VOID) {
        cci__tiny_break(conn, CCI_ETIMEDOUT);
        return;
    }
    for (i = 0; i < conn->count; i++) cci__tiny_withdraw(cci__tiny_op_at(conn, i), CCI_ERR_RNR);
}

/* RFC 9002, 5.3. */
static void cci__tiny_sample(cci__tiny_conn_t *conn, uint32_t sample) {
    uint32_t mean = conn->srtt >> 3, off = sample > mean ? sample - mean : mean - sample;
    sample = cci__max32(sample, 1);
    if (conn->srtt == 0) {
        conn->srtt = sample << 3;
        conn->rttvar = sample << 1;
        return;
    }
    conn->srtt += sample - mean;
    conn->rttvar += off - (conn->rttvar >> 2);
}

/* The peer has taken something. Only what was sent once tells the round trip; until something does, the back-off stays
 * (RFC 6298, 3 and 5.7). */
static void cci__tiny_progress(cci__tiny_conn_t *conn, const cci__tiny_op_t *op, int is_sample) {
    conn->taken = conn->ep->now;
    if (is_sample) cci__tiny_sample(conn, conn->ep->now - op->sent);
    if (op->tries == 1) conn->fires = 0;
}

/* What is unacknowledged for too long counts as lost: the oldest, and all when that has happened often. */
static void cci__tiny_probe(cci__tiny_conn_t *conn) {
    uint32_t i, fires = conn->fires;
    for (i = 0; i < conn->count; i++) {
        cci__tiny_op_t *op = cci__tiny_op_at(conn, i);
        if (op->state != CCI__TINY_UNDER_WAY) continue;
        if (fires == conn->fires) {
            if (!cci__tiny_is_due(conn->ep, op->sent + cci__tiny_probe_ticks(conn))) return;
            if (conn->fires < 9) conn->fires++;
        }
        op->state = CCI__TINY_WAITS;
        if (fires < 2) return;
    }
}

/* Asks a silent peer for a sign of life. */
static void cci__tiny_ask(cci__tiny_conn_t *conn) {
    cci__tiny_t *ep = conn->ep;
    if (conn->keepalive && cci__tiny_is_due(ep, conn->asked + conn->keepalive)) {
        conn->asked = ep->now;
        if (conn->was_pinged) {
            conn->keepalive = conn->keepalive_us = 0;
            conn->pending |= 1u << CCI_EVENT_KEEPALIVE_TIMEDOUT;
        } else {
            cci__tiny_say(conn, CCI__FRAME_PING, 0, 0);
            conn->was_pinged = 1;
        }
    }
    if (!ep->probe || !cci__tiny_is_due(ep, conn->heard + ep->probe + conn->probes * (ep->probe / 8))) return;
    if (conn->probes++ < 8)
        cci__tiny_control(conn, CCI__PKT_CONFIRM);
    else
        cci__tiny_break(conn, CCI_ETIMEDOUT);
}

/* A request finds no free connection: the one that has been silent longest, for more than a second, is asked for a sign
 * of life, and ended when it misses eight in a row. Only requests drive this, one connection at a time; many requests
 * cause no more than one question in half a second, nor does a question outlive them. */
static void cci__tiny_check_silent(cci__tiny_t *ep) {
    cci__tiny_conn_t *conn = NULL;
    uint32_t i, silent = CCI__TINY_MS(1000), interval;
    for (i = 0; i < CCI_TINY_CONNECTIONS; i++) {
        if (ep->conn[i].state != CCI__TINY_OPEN || ep->now - ep->conn[i].heard <= silent) continue;
        conn = &ep->conn[i];
        silent = ep->now - conn->heard;
    }
    if (!conn) return;
    interval = cci__max32(2 * cci__tiny_patience(conn), CCI__TINY_MS(500));
    if (conn->checks > 0 && ep->now - conn->checked < interval) return;
    if (ep->now - conn->checked > 16 * interval) conn->checks = 0; /* those before are long ago */
    conn->checked = ep->now;
    if (conn->checks++ < 8)
        cci__tiny_control(conn, CCI__PKT_CONFIRM);
    else
        cci__tiny_break(conn, CCI_ETIMEDOUT);
}

static void cci__tiny_open_timers(cci__tiny_conn_t *conn) {
    cci__tiny_t *ep = conn->ep;
    if (!conn->is_confirmed && cci__tiny_is_due(ep, conn->due)) {
        cci__tiny_control(conn, CCI__PKT_CONFIRM);
        conn->due = ep->now + cci__tiny_retry(conn->tries);
        conn->is_confirmed = ++conn->tries > 30;
    }
    cci__tiny_ask(conn);
    if (conn->count > 0 && conn->timeout) {
        const cci__tiny_op_t *op = cci__tiny_op_at(conn, 0);
        uint32_t since = cci__tiny_before(op->began, conn->taken) ? conn->taken : op->began;
        if ((op->state == CCI__TINY_WAITS || op->state == CCI__TINY_UNDER_WAY) &&
            cci__tiny_is_due(ep, since + conn->timeout))
            cci__tiny_time_out(conn);
    }
    if (conn->state != CCI__TINY_OPEN) return;
    cci__tiny_probe(conn);
    cci__tiny_output(conn);
}

static void cci__tiny_timers(cci__tiny_conn_t *conn) {
    cci__tiny_t *ep = conn->ep;
    if (conn->state == CCI__TINY_OPEN) {
        cci__tiny_open_timers(conn);
        return;
    }
    if (conn->state == CCI__TINY_CONNECTING && conn->is_late && cci__tiny_is_due(ep, conn->until)) {
        cci__tiny_fail(conn, CCI_EVENT_CONNECT, CCI_ETIMEDOUT);
        return;
    }
    if (conn->state == CCI__TINY_GONE || conn->state == CCI__TINY_REQUESTED || conn->state == CCI__TINY_BROKEN ||
        !cci__tiny_is_due(ep, conn->due))
        return;
    if (conn->state == CCI__TINY_CONNECTING) {
        cci__tiny_request(conn);
    } else if (conn->state == CCI__TINY_ACCEPTED) {
        cci__tiny_fail(conn, CCI_EVENT_ACCEPT, CCI_ETIMEDOUT);
    } else if (conn->state == CCI__TINY_REJECTED || conn->tries == 6) {
        conn->state = CCI__TINY_GONE;
    } else {
        cci__tiny_control(conn, CCI__PKT_CLOSE);
        conn->due = ep->now + cci__max32(cci__tiny_retry(conn->tries++), (conn->srtt >> 3) * 3 / 2);
    }
}

/* Does what time demands, and finds when to do more. */
static void cci__tiny_step(cci__tiny_t *ep) {
    uint32_t i, round;
    cci__tiny_look_at_clock(ep);
    for (round = 0; round < 2; round++) {
        ep->left = CCI__TINY_LATER;
        ep->has_acted = 0;
        for (i = 0; i < CCI_TINY_CONNECTIONS; i++) cci__tiny_timers(&ep->conn[i]);
        if (!ep->has_acted) break;
    }
}

/* ---- remote memory ---------------------------------------------------------------------------------------------- */

/* Where `length` bytes from `offset` on of a peer's handle lie; NULL when it has no right to them. */
static uint8_t *cci__tiny_target(cci__tiny_t *ep, const uint8_t *frame, uint64_t offset, uint64_t length, int right) {
#ifdef CCI_NO_RMA
    (void)ep, (void)frame, (void)offset, (void)length, (void)right;
    return NULL;
#else
    const uint32_t index = cci__load32(frame + 16);
    const uint64_t key = cci__load64(frame + 8);
    const cci__tiny_region_t *region;
    if (index >= CCI_TINY_REGISTRATIONS) return NULL;
    region = &ep->region[index];
    if (key == 0 || key != region->handle.stuff[0] || !(region->flags & right)) return NULL;
    if (offset > region->handle.stuff[2] || length > region->handle.stuff[2] - offset) return NULL;
    return region->start + (size_t)offset;
#endif
}

/* A piece of a write: its place, or NULL. */
static uint8_t *cci__tiny_place_of(cci__tiny_t *ep, const uint8_t *frame) {
    const uint64_t total = cci__load64(frame + 40);
    uint8_t *start = cci__tiny_target(ep, frame, cci__load64(frame + 24), total, CCI_FLAG_WRITE);
    return start && total > 0 ? start + (size_t)cci__load64(frame + 32) : NULL;
}

#ifndef CCI_NO_RMA
/* Answers a READ with the segments that it wants, as many as the link takes. */
static void cci__tiny_serve(cci__tiny_conn_t *conn, const uint8_t *ask) {
    const uint32_t segment = cci__load32(ask + 20), length = cci__load32(ask + 32);
    const uint8_t *start = cci__tiny_target(conn->ep, ask, cci__load64(ask + 24), length, CCI_FLAG_READ);
    uint32_t i, at;
    if (!start) {
        cci__tiny_say(conn, CCI__FRAME_DENIED, CCI_ERR_RMA_HANDLE, cci__load32(ask + 4));
        return;
    }
    if (cci__min32(segment, length) > conn->ep->mtu - CCI__TINY_HEAD - 16) return; /* the reader will ask for less */
    for (i = 0, at = 0; at < length; i++, at += segment) {
        uint8_t frame[16];
        const uint32_t bytes = cci__min32(segment, length - at);
        if (!(ask[40 + i / 8] >> (i & 7) & 1)) continue;
        memset(frame, 0, sizeof frame);
        frame[0] = CCI__FRAME_DATA;
        cci__store16(frame + 2, (uint16_t)bytes);
        cci__store32(frame + 4, cci__load32(ask + 4));
        frame[8] = (uint8_t)i;
        if (!cci__tiny_data(conn, frame, sizeof frame, start + at, bytes)) return;
    }
}

/* A segment, or the word that there is none, for a READ that waits for it. */
static void cci__tiny_on_segment(cci__tiny_conn_t *conn, const uint8_t *frame) {
    const uint32_t bytes = cci__load16(frame + 2);
    uint32_t i;
    for (i = 0; i < conn->count; i++) {
        cci__tiny_op_t *op = cci__tiny_op_at(conn, i);
        if (op->kind != CCI__FRAME_READ || op->tries == 0 || op->u.rma.chunk != cci__load32(frame + 4)) continue;
        if (op->state != CCI__TINY_WAITS && op->state != CCI__TINY_UNDER_WAY) continue;
        if (frame[0] == CCI__FRAME_DENIED) {
            cci__tiny_withdraw_both(conn, i, CCI_ERR_RMA_HANDLE);
        } else if (cci__load32(frame + 8) == 0 && bytes > 0 && bytes <= op->u.rma.total - op->u.rma.done) {
            op->length = bytes; /* of a try before, perhaps, which asked for more: that comes through, only late */
            op->u.rma.segment = cci__max32(op->u.rma.segment, bytes);
            memcpy(op->u.rma.memory + (size_t)op->u.rma.done, frame + 16, bytes);
            cci__tiny_progress(conn, op, op->tries == 1);
            cci__tiny_took(op);
        }
        break;
    }
    cci__tiny_free_ops(conn);
}
#endif

/* ==================================================================================================================
 * >>tiny-receive
 *
 * What comes in: frames, acknowledgements, packets of open connections, and all others.
 *   Parts: frames; acknowledgements that arrive; what arrives on an open connection; packets that arrive.
 * ================================================================================================================== */

/* ---- frames ---- */

/* Bytes of a frame; 0 when there are not as many, or it is of no known type. */
static uint32_t cci__tiny_size(const uint8_t *frame, uint32_t left) {
    static const uint8_t sizes[] = {0, 8, 16, 48, 8, 16, 16, 8, 8, 8, 0, 0, 0, 0, 0, 0, 48, 16, 8, 48};
    const uint8_t type = frame[0];
    uint32_t size = type < sizeof sizes ? sizes[type] : 0;
    if (type == CCI__FRAME_CHALLENGE || type == CCI__FRAME_RESPONSE) size = 16;
    if (size == 0 || size > left) return 0;
    if (type <= CCI__FRAME_SKIP || type == CCI__FRAME_DATA) size += cci__load16(frame + 2);
    if (type == CCI__FRAME_ACK || type == CCI__FRAME_TAKEN) size += 4u * frame[1];
    return size <= left ? size : 0;
}

/* Pairs of 16-bit numbers behind an ACK or TAKEN, none of them 0; those of a TAKEN ascend. */
static int cci__tiny_has_sound_pairs(const uint8_t *frame, const uint8_t *pair) {
    uint32_t i, behind = 0;
    for (i = 0; i < frame[1]; i++, pair += 4) {
        const uint32_t a = cci__load16(pair), b = cci__load16(pair + 2);
        if (a == 0 || b == 0) return 0;
        if (frame[0] == CCI__FRAME_TAKEN && (a <= behind || b <= a)) return 0;
        behind = b;
    }
    return 1;
}

/* Is a frame of this length sound, and may it stand on the connection? */
static int cci__tiny_is_sound(const cci__tiny_conn_t *conn, const uint8_t *frame) {
    const uint32_t length = cci__load16(frame + 2);
    if (conn->pub.attribute == CCI_CONN_ATTR_UU && (0xf02b8u >> (frame[0] & 31) & 1) && frame[0] < 32) return 0;
    switch (frame[0]) {
    case CCI__FRAME_MESSAGE: return length <= conn->pub.max_send_size;
    case CCI__FRAME_FRAGMENT: {
        const uint32_t offset = cci__load32(frame + 8), total = cci__load32(frame + 12);
        return length > 0 && total > 0 && total <= conn->pub.max_send_size && offset <= total &&
               length <= total - offset;
    }
    case CCI__FRAME_BULK: {
        const uint64_t offset = cci__load64(frame + 32), total = cci__load64(frame + 40);
        return length > 0 && offset <= total && (total == 0 || length <= total - offset);
    }
    case CCI__FRAME_VOID: return cci__load32(frame + 8) - 1 < 0x3fffffff;
    case CCI__FRAME_ACK:
        return frame[1] <= 14 && cci__load32(frame + 8) - 1 < 0x7fffffff &&
               cci__tiny_has_sound_pairs(frame, frame + 16);
    case CCI__FRAME_TAKEN: return frame[1] - 1u < 16 && cci__tiny_has_sound_pairs(frame, frame + 8);
    case CCI__FRAME_READ: {
        const uint32_t segment = cci__load32(frame + 20), bytes = cci__load32(frame + 32);
        return segment >= 64 && segment <= 65528 && bytes > 0 && bytes <= 64 * segment;
    }
    case CCI__FRAME_DATA: return length > 0;
    default: return 1;
    }
}

/* Does this frame belong to a run: a message, what stands for one, or a whole write? */
static int cci__tiny_is_run(const uint8_t *frame) {
    return frame[0] == CCI__FRAME_MESSAGE || frame[0] == CCI__FRAME_SKIP ||
           (frame[0] == CCI__FRAME_BULK && cci__load64(frame + 40) == cci__load16(frame + 2));
}

/* What a packet holds. */
typedef struct cci__tiny_scan {
    uint32_t end;               /* of the frames that are understood                     */
    uint32_t run, first, count; /* where the run is, its first sequence number, its frames */
    uint8_t has_bulk, has_message, elicits, has_ping, pieces;
} cci__tiny_scan_t;

/* Looks at all frames before anything is done. 0: the packet is dropped. */
static int cci__tiny_look(const cci__tiny_conn_t *conn, const uint8_t *bytes, uint32_t length, cci__tiny_scan_t *scan) {
    uint32_t at = CCI__TINY_HEAD, size;
    int is_over = 0; /* 1: the run has ended; 2: a frame of another class has come */
    memset(scan, 0, sizeof *scan);
    for (; at < length && bytes[at] != 0; at += cci__pad8(size)) {
        const uint8_t *frame = bytes + at;
        const uint8_t type = frame[0];
        size = cci__tiny_size(frame, length - at);
        if (size == 0 || !cci__tiny_is_sound(conn, frame)) {
            if (type < CCI__FRAME_READ) return 0;
            break;
        }
        if (cci__tiny_is_run(frame)) {
            if (is_over == 2 && type != CCI__FRAME_BULK) return 0;
            if (scan->count == 0) {
                scan->run = at;
                scan->first = cci__load32(frame + 4);
            } else if (is_over || cci__load32(frame + 4) != scan->first + scan->count)
                return 0;
            scan->count++;
            scan->has_message |= type == CCI__FRAME_MESSAGE;
            scan->has_bulk |= type == CCI__FRAME_BULK;
        } else {
            if (scan->count > 0 && !is_over) is_over = 1;
            if (type == CCI__FRAME_FRAGMENT || type == CCI__FRAME_BULK || type == CCI__FRAME_VOID)
                if (++scan->pieces > 4) return 0;
        }
        if (type >= CCI__FRAME_READ) is_over = 2;
        scan->has_ping |= type == CCI__FRAME_PING;
        scan->elicits |= type <= CCI__FRAME_VOID || type == CCI__FRAME_PING;
    }
    scan->end = cci__min32(at, length);
    return 1;
}

/* ---- acknowledgements that arrive ------------------------------------------------------------------------------- */

/* Does an ACK name the packet that is `below` numbers below its largest? */
static int cci__tiny_names(const uint8_t *ack, uint32_t below) {
    uint32_t i, at = cci__load32(ack + 8);
    if (below < at) return 1;
    for (i = 0; i < ack[1]; i++) {
        at += cci__load16(ack + 16 + 4 * i);
        if (below < at) return 0;
        at += cci__load16(ack + 18 + 4 * i);
        if (below < at) return 1;
    }
    return 0;
}

/* 0: it names what was never sent. */
static int cci__tiny_on_ack(cci__tiny_conn_t *conn, const uint8_t *ack) {
    const uint32_t largest = cci__load32(ack + 4), expected = cci__load32(ack + 12);
    const uint32_t above = (uint32_t)conn->next_number - 1 - largest; /* numbers used since */
    uint64_t span = (uint64_t)above + cci__load32(ack + 8);
    uint32_t i, is_reliable = conn->pub.attribute != CCI_CONN_ATTR_UU, is_new = 0;
    for (i = 0; i < ack[1]; i++) span += (uint32_t)cci__load16(ack + 16 + 4 * i) + cci__load16(ack + 18 + 4 * i);
    if (span > conn->next_number) return 0;
    for (i = 0; i < conn->count; i++) {
        cci__tiny_op_t *op = cci__tiny_op_at(conn, i);
        const uint32_t below = largest - op->number;
        const int is_done = is_reliable && cci__tiny_before(op->sequence, expected);
        if (op->tries == 0 || op->kind == CCI__FRAME_READ) continue;
        if (op->state != CCI__TINY_WAITS && op->state != CCI__TINY_UNDER_WAY) continue;
        if (is_done || ((int32_t)below >= 0 && cci__tiny_names(ack, below))) {
            cci__tiny_progress(conn, op, below == 0 && op->tries == 1);
#ifndef CCI_NO_RMA
            if (is_done && op->kind == CCI__FRAME_BULK) op->u.rma.done = op->u.rma.total - op->length;
#endif
            cci__tiny_took(op);
            is_new = 1;
        } else if ((int32_t)below >= 3)
            op->state = CCI__TINY_WAITS; /* lost */
    }
    if (is_new) {
        conn->pause = 0;
        conn->is_refused = 0;
    }
    cci__tiny_free_ops(conn);
    return 1;
}

static void cci__tiny_on_nack(cci__tiny_conn_t *conn, const uint8_t *nack) {
    const uint32_t sequence = cci__load32(nack + 4);
    uint32_t i;
    for (i = 0; i < conn->count; i++) {
        cci__tiny_op_t *op = cci__tiny_op_at(conn, i);
        if (op->tries == 0 || op->kind == CCI__FRAME_READ || cci__tiny_before(op->sequence, sequence)) continue;
        if (nack[1] != CCI_ERR_RNR) {
            if (op->sequence == sequence && op->kind == CCI__FRAME_BULK)
                cci__tiny_withdraw_both(conn, i, CCI_ERR_RMA_HANDLE);
        } else if (op->state == CCI__TINY_UNDER_WAY) {
            op->state = CCI__TINY_WAITS;
            conn->is_refused = 1;
        }
    }
    if (nack[1] != CCI_ERR_RNR || !conn->is_refused) return;
    conn->pause = cci__min32(cci__max32(2 * conn->pause, 1), CCI__TINY_MS(10));
    conn->paused_until = conn->ep->now + conn->pause;
}

/* ---- what arrives on an open connection ------------------------------------------------------------------------- */

/* Receive buffers that could be kept, besides the one that is always there to receive in. */
static uint32_t cci__tiny_spare(const cci__tiny_t *ep) {
    uint32_t i, count = 0;
    for (i = 0; i <= CCI_TINY_RECEIVES; i++) count += ep->buf[i].state == CCI__TINY_EMPTY;
    return count - 1;
}

/* Leaves out the first frames of a buffer's run, and then what is no message. */
static void cci__tiny_skip(cci__tiny_buf_t *buf, uint32_t count) {
    const uint8_t *bytes = (const uint8_t *)buf->bytes;
    while (buf->left > 0 && (count > 0 || bytes[buf->at] != CCI__FRAME_MESSAGE)) {
        if (count > 0) count--;
        buf->at += cci__pad8(cci__tiny_size(bytes + buf->at, buf->length - buf->at));
        buf->left--;
        buf->first++;
    }
}

static void cci__tiny_keep(cci__tiny_conn_t *conn, cci__tiny_buf_t *buf, const cci__tiny_scan_t *scan, int state) {
    buf->conn = conn;
    buf->at = scan->run;
    buf->first = scan->first;
    buf->left = scan->count;
    buf->order = conn->ep->order++;
    buf->state = (uint8_t)state;
}

/* All below `expected` is there: so may be what came early. */
static void cci__tiny_advance(cci__tiny_conn_t *conn, uint32_t expected) {
    uint32_t i;
    conn->expected = expected;
    conn->have = 0;
    for (i = 0; i <= CCI_TINY_RECEIVES; i++) {
        cci__tiny_buf_t *buf = &conn->ep->buf[i];
        uint32_t done = conn->expected - buf->first, end = buf->first + buf->left;
        if (buf->state == CCI__TINY_FILLS && buf->conn == conn) buf->state = CCI__TINY_EMPTY;
        if (buf->state != CCI__TINY_KEPT || buf->conn != conn || (int32_t)done < 0) continue;
        cci__tiny_skip(buf, cci__min32(done, buf->left));
        buf->state = CCI__TINY_READY;
        buf->order = conn->ep->order++;
        cci__tiny_empty(buf);
        if (!cci__tiny_before(conn->expected, end)) continue;
        conn->expected = end;
        i = UINT32_MAX; /* from the beginning again */
    }
}

/* A run that is not due yet is kept while there is another buffer for the one that is. */
static int cci__tiny_take_early(cci__tiny_conn_t *conn, cci__tiny_buf_t *buf, const cci__tiny_scan_t *scan) {
    uint32_t i;
    if (scan->has_bulk) return 0;
    for (i = 0; i <= CCI_TINY_RECEIVES; i++) {
        const cci__tiny_buf_t *kept = &conn->ep->buf[i];
        if (kept->state == CCI__TINY_KEPT && kept->conn == conn && kept->first == scan->first &&
            kept->left >= scan->count)
            return 1;
    }
    if (cci__tiny_spare(conn->ep) < 2) return 0;
    cci__tiny_keep(conn, buf, scan, CCI__TINY_KEPT);
    return 1;
}

/* Takes a run as a whole, 1, or not at all, 0. */
static int cci__tiny_take_run(cci__tiny_conn_t *conn, cci__tiny_buf_t *buf, const cci__tiny_scan_t *scan) {
    const uint8_t *frame = (const uint8_t *)buf->bytes + scan->run;
    const uint32_t end = scan->first + scan->count, skip = conn->expected - scan->first;
    uint32_t i;
    if (conn->pub.attribute == CCI_CONN_ATTR_UU) {
        if (cci__tiny_spare(conn->ep) > 0) cci__tiny_keep(conn, buf, scan, CCI__TINY_READY);
        return 1;
    }
    if (!cci__tiny_before(conn->expected, end)) return 1;
    if ((int32_t)skip < 0) return cci__tiny_take_early(conn, buf, scan);
    for (i = 0; scan->has_bulk && i < scan->count; i++) {
        if (i >= skip && frame[0] == CCI__FRAME_BULK) {
            uint8_t *to = cci__tiny_place_of(conn->ep, frame);
            if (!to) {
                cci__tiny_say(conn, CCI__FRAME_NACK, CCI_ERR_RMA_HANDLE, scan->first + i);
                return 0;
            }
            memcpy(to, frame + 48, cci__load16(frame + 2));
        }
        frame += cci__pad8(cci__tiny_size(frame, CCI_TINY_MTU));
    }
    if (scan->has_message) {
        if (cci__tiny_spare(conn->ep) == 0) {
            cci__tiny_say(conn, CCI__FRAME_NACK, CCI_ERR_RNR, conn->expected);
            return 0;
        }
        cci__tiny_keep(conn, buf, scan, CCI__TINY_READY);
        cci__tiny_skip(buf, skip);
        cci__tiny_empty(buf);
    }
    cci__tiny_advance(conn, end);
    return 1;
}

/* A piece of a write: the next in order, or one that was there. */
static int cci__tiny_take_piece(cci__tiny_conn_t *conn, const uint8_t *frame) {
    const uint32_t sequence = cci__load32(frame + 4), length = cci__load16(frame + 2);
    const uint64_t offset = cci__load64(frame + 32);
    uint8_t *to;
    if (cci__tiny_before(sequence, conn->expected)) return 1;
    if (sequence != conn->expected) return 0;
    to = cci__tiny_place_of(conn->ep, frame);
    if (!to) {
        cci__tiny_say(conn, CCI__FRAME_NACK, CCI_ERR_RMA_HANDLE, sequence);
        return 0;
    }
    if (offset > conn->have) return 0;
    memcpy(to, frame + 48, length);
    conn->have = cci__max64(conn->have, offset + length);
    if (conn->have == cci__load64(frame + 40)) cci__tiny_advance(conn, sequence + 1);
    return 1;
}

/* The buffer in which the connection's next message grows from fragments, if there is one or one to spare. It becomes
 * what a packet with the whole message would be. */
static cci__tiny_buf_t *cci__tiny_filling(cci__tiny_conn_t *conn, const cci__tiny_buf_t *arrived) {
    cci__tiny_t *ep = conn->ep;
    cci__tiny_buf_t *empty = NULL;
    uint32_t i;
    for (i = 0; i <= CCI_TINY_RECEIVES; i++) {
        if (ep->buf[i].state == CCI__TINY_FILLS && ep->buf[i].conn == conn) return &ep->buf[i];
        if (ep->buf[i].state == CCI__TINY_EMPTY && &ep->buf[i] != arrived) empty = &ep->buf[i];
    }
    if (!empty) return NULL;
    empty->conn = conn;
    empty->state = CCI__TINY_FILLS;
    empty->left = 0;
    conn->have = 0;
    return empty;
}

/* A piece of a message: likewise in order. */
static int cci__tiny_take_fragment(cci__tiny_conn_t *conn, const cci__tiny_buf_t *arrived, const uint8_t *frame) {
    const uint32_t sequence = cci__load32(frame + 4), length = cci__load16(frame + 2), offset = cci__load32(frame + 8);
    cci__tiny_buf_t *buf;
    uint8_t *whole;
    if (conn->pub.attribute == CCI_CONN_ATTR_UU || cci__tiny_before(sequence, conn->expected)) return 1;
    if (sequence != conn->expected) return 0;
    if ((buf = cci__tiny_filling(conn, arrived)) == NULL) {
        cci__tiny_say(conn, CCI__FRAME_NACK, CCI_ERR_RNR, sequence);
        return 0;
    }
    if (offset > conn->have) return 0;
    whole = (uint8_t *)buf->bytes;
    memcpy(whole + 8 + offset, frame + 16, length);
    conn->have = cci__max64(conn->have, offset + length);
    if (conn->have != cci__load32(frame + 12)) return 1;
    whole[0] = CCI__FRAME_MESSAGE;
    cci__store16(whole + 2, (uint16_t)conn->have);
    buf->at = 0;
    buf->first = sequence;
    buf->left = 1;
    buf->length = (uint32_t)conn->have + 8;
    buf->order = conn->ep->order++;
    buf->state = CCI__TINY_READY;
    cci__tiny_advance(conn, sequence + 1);
    return 1;
}

/* Sequence numbers that were withdrawn. */
static int cci__tiny_take_void(cci__tiny_conn_t *conn, const uint8_t *frame) {
    const uint32_t first = cci__load32(frame + 4), end = first + cci__load32(frame + 8) + (frame[1] & 1);
    if (!cci__tiny_before(conn->expected, end)) return 1;
    if (cci__tiny_before(conn->expected, first)) return 0;
    cci__tiny_advance(conn, end);
    return 1;
}

/* Acts on one frame. 0: what it has could not be taken, and the packet is not acknowledged. */
static int cci__tiny_act(cci__tiny_conn_t *conn, cci__tiny_buf_t *buf, const cci__tiny_scan_t *scan,
                         const uint8_t *frame) {
    switch (frame[0]) {
    case CCI__FRAME_MESSAGE:
    case CCI__FRAME_SKIP:
    case CCI__FRAME_BULK:
        if (!cci__tiny_is_run(frame)) return cci__tiny_take_piece(conn, frame);
        return frame != (const uint8_t *)buf->bytes + scan->run || cci__tiny_take_run(conn, buf, scan);
    case CCI__FRAME_FRAGMENT: return cci__tiny_take_fragment(conn, buf, frame);
    case CCI__FRAME_VOID: return cci__tiny_take_void(conn, frame);
    case CCI__FRAME_ACK: return cci__tiny_on_ack(conn, frame);
    case CCI__FRAME_NACK: cci__tiny_on_nack(conn, frame); break;
#ifndef CCI_NO_RMA
    case CCI__FRAME_READ: cci__tiny_serve(conn, frame); break;
    case CCI__FRAME_DATA:
    case CCI__FRAME_DENIED: cci__tiny_on_segment(conn, frame); break;
#else
    case CCI__FRAME_READ: cci__tiny_say(conn, CCI__FRAME_DENIED, CCI_ERR_RMA_HANDLE, cci__load32(frame + 4)); break;
#endif
    case CCI__FRAME_ATOMIC: cci__tiny_say(conn, CCI__FRAME_DENIED, CCI_ERR_RMA_OP, cci__load32(frame + 4)); break;
    case CCI__FRAME_CHALLENGE: {
        uint8_t answer[16];
        memcpy(answer, frame, sizeof answer);
        answer[0] = CCI__FRAME_RESPONSE;
        (void)cci__tiny_data(conn, answer, sizeof answer, NULL, 0);
        break;
    }
    default: break;
    }
    return 1;
}

/* Has the packet number come before? 1: yes; 0: no; -1: there is no such number. */
static int cci__tiny_is_known(const cci__tiny_conn_t *conn, uint32_t number) {
    const uint32_t below = conn->top - 1 - number;
    if (!cci__tiny_before(number, conn->top)) return 0;
    if (below >= conn->known) return conn->known < 32 ? -1 : 1;
    return (int)(conn->bits >> below & 1);
}

static void cci__tiny_mark(cci__tiny_conn_t *conn, uint32_t number) {
    if (cci__tiny_before(number, conn->top)) {
        conn->bits |= (uint32_t)1 << (conn->top - 1 - number);
        conn->ack = 2;
    } else {
        const uint32_t shift = number - conn->top + 1;
        if (shift > 1) conn->ack = 2; /* something is missing */
        conn->bits = (shift < 32 ? conn->bits << shift : 0) | 1;
        conn->known = shift < 32 ? cci__min32(conn->known + shift, 32) : 32;
        conn->top = number + 1;
    }
}

/* A DATA packet of an open connection. */
static void cci__tiny_on_data(cci__tiny_conn_t *conn, cci__tiny_buf_t *buf, uint32_t length) {
    const uint8_t *bytes = (const uint8_t *)buf->bytes;
    const uint32_t number = cci__load32(bytes + 20);
    const uint8_t ack = conn->ack;
    cci__tiny_scan_t scan;
    uint32_t at;
    int known = cci__tiny_is_known(conn, number);
    if (known < 0 || !cci__tiny_look(conn, bytes, length, &scan)) return;
    buf->length = length;
    for (at = CCI__TINY_HEAD; !known && at < scan.end && bytes[at] != 0;
         at += cci__pad8(cci__tiny_size(bytes + at, length - at)))
        if (!cci__tiny_act(conn, buf, &scan, bytes + at)) return;
    if (!known) cci__tiny_mark(conn, number);
    if (!(conn->pub.attribute == CCI_CONN_ATTR_UU ? scan.has_ping : scan.elicits))
        conn->ack = ack;
    else if (conn->ack < 2)
        conn->ack = known || conn->ack ? 2 : 1;
}

/* ---- packets that arrive ---------------------------------------------------------------------------------------- */

/* A place in the table for a connection: of those that are free, the one that was not used for longest, since it
 * remembers the token of the connection that it had. */
static cci__tiny_conn_t *cci__tiny_new_conn(cci__tiny_t *ep) {
    uint32_t i;
    for (i = 0; i < CCI_TINY_CONNECTIONS; i++) {
        cci__tiny_conn_t *conn = &ep->conn[ep->turn];
        ep->turn = (uint8_t)(ep->turn + 1 < CCI_TINY_CONNECTIONS ? ep->turn + 1 : 0);
        if (conn->state != CCI__TINY_GONE || conn->pending || conn->is_held || conn->count > 0) continue;
        memset(conn, 0, offsetof(cci__tiny_conn_t, op));
        conn->ep = ep;
        conn->pub.endpoint = &ep->pub;
        conn->token = cci__tiny_secret();
        conn->timeout_us = ep->timeout_us;
        conn->keepalive_us = ep->keepalive_us;
        return conn->token ? conn : NULL;
    }
    return NULL;
}

static void cci__tiny_open(cci__tiny_conn_t *conn, uint32_t window) {
    cci__tiny_t *ep = conn->ep;
    conn->state = CCI__TINY_OPEN;
    conn->heard = conn->taken = conn->asked = ep->now;
    conn->timeout = cci__tiny_ticks(conn->timeout_us);
    conn->keepalive = cci__tiny_ticks(conn->keepalive_us);
    /* An eighth of what fits into the peer's queue, but not less than two packets. */
    for (conn->limit = 2; conn->limit < CCI_TINY_SENDS && (conn->limit + 1u) * 8 * ep->mtu <= window;) conn->limit++;
}

/* A request, or a copy of one. */
static void cci__tiny_on_request(cci__tiny_t *ep, cci__tiny_buf_t *buf, uint32_t length, const cci_link_addr_t *from) {
    const uint8_t *bytes = (const uint8_t *)buf->bytes;
    const uint32_t data_length = length >= 48 ? cci__load16(bytes + 32) : 0;
    const uint64_t token = cci__load64(bytes + 8);
    cci__tiny_conn_t *conn;
    uint32_t i;
    if (length < 48 || bytes[2] > CCI_CONN_ATTR_UU || cci__load32(bytes + 24) == 0 || data_length > CCI_CONN_REQ_LEN ||
        cci__load16(bytes + 38) > length - 48)
        return;
    for (i = 0; i < CCI_TINY_CONNECTIONS; i++) {
        conn = &ep->conn[i];
        if (!conn->is_server || conn->peer_token != token || conn->peer_index != cci__load32(bytes + 4) ||
            memcmp(&conn->peer, from, sizeof *from) != 0)
            continue;
        if (conn->state == CCI__TINY_ACCEPTED || conn->state == CCI__TINY_OPEN) cci__tiny_accept(conn);
        if (conn->state == CCI__TINY_REJECTED) cci__tiny_control(conn, CCI__PKT_REJECT);
        return;
    }
    if (cci__load16(bytes + 36) != 0 || cci__load16(bytes + 38) != data_length || cci__tiny_spare(ep) < 2 ||
        (conn = cci__tiny_new_conn(ep)) == NULL) {
        if (!conn) cci__tiny_check_silent(ep);
        cci__tiny_answer(ep, from, bytes, CCI__PKT_BUSY);
        return;
    }
    conn->state = CCI__TINY_REQUESTED;
    conn->is_server = conn->is_confirmed = 1;
    conn->peer = *from;
    conn->peer_index = cci__load32(bytes + 4);
    conn->peer_token = token;
    conn->pub.attribute = (cci_conn_attribute_t)bytes[2];
    conn->pub.max_send_size = cci__min32(cci__load32(bytes + 24), ep->device.max_send_size);
    conn->until = cci__max32(cci__load32(bytes + 28), 4096); /* the window, until the connection is open */
    conn->request = buf;
    conn->request_length = data_length;
    conn->pending = 1u << CCI_EVENT_CONNECT_REQUEST;
    buf->state = CCI__TINY_ASKS;
}

/* The connection that a packet is for, if its token is right. */
static cci__tiny_conn_t *cci__tiny_find(cci__tiny_t *ep, uint32_t index, uint64_t token) {
    cci__tiny_conn_t *conn = &ep->conn[index < CCI_TINY_CONNECTIONS ? index : 0];
    if (index >= CCI_TINY_CONNECTIONS || conn->state == CCI__TINY_GONE || conn->token != token) return NULL;
    return conn;
}

/* COOKIE, ACCEPT or REJECT for a connection that a client asked for. */
static void cci__tiny_on_answer(cci__tiny_conn_t *conn, const uint8_t *bytes) {
    cci__tiny_t *ep = conn->ep;
    if (bytes[1] == CCI__PKT_ACCEPT && conn->state == CCI__TINY_OPEN) {
        if (cci__load64(bytes + 24) == conn->peer_token && !conn->is_server) cci__tiny_control(conn, CCI__PKT_CONFIRM);
        return;
    }
    if (conn->state != CCI__TINY_CONNECTING) return;
    if (bytes[1] == CCI__PKT_REJECT) {
        cci__tiny_fail(conn, CCI_EVENT_CONNECT, CCI_ECONNREFUSED);
    } else if (bytes[1] == CCI__PKT_COOKIE) {
        if (conn->cookie != 0 && conn->fires < 4) { /* later ones count after four repetitions */
            conn->fires++;
            return;
        }
        conn->cookie = cci__load64(bytes + 16);
        conn->fires = 0;
        cci__tiny_request(conn);
    } else {
        const uint32_t most = cci__load32(bytes + 32);
        if (most == 0 || most > conn->pub.max_send_size) return;
        conn->pub.max_send_size = most;
        conn->peer_index = cci__load32(bytes + 16);
        conn->peer_token = cci__load64(bytes + 24);
        conn->fires = conn->tries = 0;
        conn->status = CCI_SUCCESS;
        conn->pending |= 1u << CCI_EVENT_CONNECT;
        cci__tiny_open(conn, cci__max32(cci__load32(bytes + 36), 4096));
        conn->due = ep->now; /* CONFIRM */
    }
}

/* RESET names what it answers: the connection is the one whose peer has that index and token. */
static void cci__tiny_on_reset(cci__tiny_t *ep, const uint8_t *bytes) {
    cci__tiny_conn_t *conn = &ep->conn[0];
    const uint32_t index = cci__load32(bytes + 4);
    if (index >= CCI_TINY_CONNECTIONS) return;
    conn += index;
    if (conn->peer_token != cci__load64(bytes + 8) || conn->peer_index != cci__load32(bytes + 16)) return;
    if (conn->state == CCI__TINY_ACCEPTED) cci__tiny_fail(conn, CCI_EVENT_ACCEPT, CCI_ERR_DISCONNECTED);
    if (conn->state == CCI__TINY_OPEN) cci__tiny_break(conn, CCI_ERR_DISCONNECTED);
    if (conn->state == CCI__TINY_CLOSING) conn->state = CCI__TINY_GONE;
}

/* The peer has closed the connection. */
static void cci__tiny_on_close(cci__tiny_conn_t *conn) {
    cci__tiny_control(conn, CCI__PKT_CLOSED);
    if (conn->state == CCI__TINY_CLOSING) conn->state = CCI__TINY_GONE;
    if (conn->state == CCI__TINY_ACCEPTED) cci__tiny_fail(conn, CCI_EVENT_ACCEPT, CCI_ERR_DISCONNECTED);
    if (conn->state == CCI__TINY_OPEN) cci__tiny_break(conn, CCI_SUCCESS);
    if (conn->state == CCI__TINY_BROKEN) conn->tries = 6; /* there is nobody left to tell */
}

/* A packet of a connection that is there: the peer knows its token. */
static void cci__tiny_on_packet(cci__tiny_conn_t *conn, cci__tiny_buf_t *buf, uint32_t length) {
    const uint8_t type = ((const uint8_t *)buf->bytes)[1];
    if (type == CCI__PKT_CLOSED) {
        if (conn->state == CCI__TINY_CLOSING) conn->state = CCI__TINY_GONE;
        return;
    }
    if (conn->state < CCI__TINY_ACCEPTED) return;
    if (type == CCI__PKT_CLOSE) {
        cci__tiny_on_close(conn);
        return;
    }
    if (conn->state == CCI__TINY_BROKEN)
        cci__tiny_answer(conn->ep, &conn->peer, (const uint8_t *)buf->bytes, CCI__PKT_RESET);
    if (conn->state == CCI__TINY_ACCEPTED) {
        cci__tiny_open(conn, conn->until);
        conn->status = CCI_SUCCESS;
        conn->pending |= 1u << CCI_EVENT_ACCEPT;
    }
    if (conn->state != CCI__TINY_OPEN) return;
    conn->heard = conn->ep->now;
    conn->was_pinged = conn->probes = conn->checks = 0;
    if (type == CCI__PKT_CONFIRM) {
        cci__tiny_control(conn, CCI__PKT_CONFIRMED);
        return;
    }
    conn->is_confirmed = 1;
    if (type == CCI__PKT_DATA) cci__tiny_on_data(conn, buf, length);
}

/* A datagram; it lies in a buffer that may be kept. */
static void cci__tiny_input(cci__tiny_t *ep, cci__tiny_buf_t *buf, uint32_t length, const cci_link_addr_t *from) {
    const uint8_t *bytes = (const uint8_t *)buf->bytes;
    cci__tiny_conn_t *conn;
    if (ep->crc) {
        if (length < CCI__TINY_HEAD + 4) return;
        length -= 4;
        if (cci__crc32c(0, bytes, length) != cci__load32(bytes + length)) return;
    }
    if (length < CCI__TINY_HEAD || bytes[0] != CCI_PACKET_VERSION || bytes[3] != ep->crc) return;
    if (bytes[1] == CCI__PKT_REQUEST) {
        cci__tiny_on_request(ep, buf, length, from);
        return;
    }
    if (bytes[1] == CCI__PKT_RESET) {
        if (length == CCI__TINY_HEAD) cci__tiny_on_reset(ep, bytes);
        return;
    }
    if (bytes[1] == CCI__PKT_ACCEPT && length < 40) return;
    conn = cci__tiny_find(ep, cci__load32(bytes + 4), cci__load64(bytes + 8));
    switch (bytes[1]) {
    case CCI__PKT_COOKIE:
    case CCI__PKT_REJECT:
        if (conn) cci__tiny_on_answer(conn, bytes);
        break;
    case CCI__PKT_ACCEPT:
    case CCI__PKT_CONFIRM:
    case CCI__PKT_CONFIRMED:
    case CCI__PKT_DATA:
    case CCI__PKT_CLOSE:
        if (!conn) {
            cci__tiny_answer(ep, from, bytes, CCI__PKT_RESET);
            break;
        }
        if (bytes[1] == CCI__PKT_ACCEPT) {
            cci__tiny_on_answer(conn, bytes);
            break;
        }
        cci__tiny_on_packet(conn, buf, length);
        break;
    case CCI__PKT_CLOSED:
        if (conn) cci__tiny_on_packet(conn, buf, length);
        break;
    default: break;
    }
}

/* Sends acknowledgements that nothing has taken along: those that are urgent, 1, or all, 0. */
static void cci__tiny_acknowledge(cci__tiny_t *ep, uint32_t urgent) {
    uint32_t i;
    for (i = 0; i < CCI_TINY_CONNECTIONS; i++) {
        cci__tiny_conn_t *conn = &ep->conn[i];
        if (conn->state == CCI__TINY_OPEN && conn->ack > urgent) (void)cci__tiny_data(conn, NULL, 0, NULL, 0);
    }
}

/* Takes what has arrived, a few datagrams, and does what is due. */
static void cci__tiny_work(cci__tiny_t *ep) {
    uint32_t i, turn;
    cci__tiny_look_at_clock(ep);
    cci__tiny_acknowledge(ep, 0); /* what the program has not answered since */
    for (turn = 0; turn < 8; turn++) {
        cci_link_rx_t rx;
        for (i = 0; ep->buf[i].state != CCI__TINY_EMPTY;) i++;
        memset(&rx, 0, sizeof rx);
        rx.data = (uint8_t *)ep->buf[i].bytes;
        rx.capacity = CCI_TINY_MTU;
        if (ep->link->receive(ep->handle, &rx, 1) <= 0) break;
        if (!rx.is_group && rx.length <= CCI_TINY_MTU && rx.segment >= rx.length)
            cci__tiny_input(ep, &ep->buf[i], rx.length, &rx.from);
    }
    cci__tiny_step(ep);
}

/* ==================================================================================================================
 * >>tiny-calls
 *
 * The functions of the interface.
 *   Parts: events; connections; messages; remote memory, the program's side; endpoints and the rest.
 * ================================================================================================================== */

/* ---- events ---- */

/* The event of a connection itself: of those that are pending the first of its kind. */
static cci_event_t *cci__tiny_conn_event(cci__tiny_conn_t *conn, uint32_t kinds) {
    cci_event_t *event = &conn->event;
    cci_connection_t *handle = conn->state >= CCI__TINY_OPEN ? &conn->pub : NULL;
    uint32_t type = 0;
    if (conn->is_held || !(conn->pending & kinds)) return NULL;
    while (!(conn->pending & kinds & 1u << type)) type++;
    conn->pending = (uint16_t)(conn->pending & ~(1u << type));
    conn->is_held = 1;
    memset(event, 0, sizeof *event);
    event->type = (cci_event_type_t)type;
    if (type == CCI_EVENT_CONNECT_REQUEST) {
        event->request.data_len = conn->request_length;
        event->request.data_ptr = (const uint8_t *)conn->request->bytes + 48;
        event->request.attribute = conn->pub.attribute;
    } else if (type == CCI_EVENT_CONNECT) {
        event->connect.status = (cci_status_t)(handle ? CCI_SUCCESS : conn->status);
        event->connect.context = conn->pub.context;
        event->connect.connection = handle;
    } else if (type == CCI_EVENT_ACCEPT) {
        event->accept.status = (cci_status_t)(handle ? CCI_SUCCESS : conn->status);
        event->accept.context = conn->pub.context;
        event->accept.connection = handle;
    } else if (type == CCI_EVENT_DISCONNECT) {
        event->disconnect.status = (cci_status_t)conn->status;
        event->disconnect.connection = handle;
        event->disconnect.context = conn->pub.context;
    } else
        event->keepalive.connection = handle;
    return event;
}

/* The next completion, in the order of the calls. */
static cci_event_t *cci__tiny_completion(cci__tiny_conn_t *conn) {
    uint32_t i;
    for (i = 0; i < conn->count; i++) {
        cci__tiny_op_t *op = cci__tiny_op_at(conn, i);
        if (op->state == CCI__TINY_WAITS || op->state == CCI__TINY_UNDER_WAY) return NULL;
        if (op->state != CCI__TINY_DONE || (op->flags & CCI_FLAG_BLOCKING)) continue;
        op->state = CCI__TINY_GIVEN;
        return &op->event;
    }
    return NULL;
}

/* The oldest buffer with a message that may be given: not before the event of its connection. */
static cci__tiny_buf_t *cci__tiny_oldest(cci__tiny_t *ep, const cci__tiny_conn_t *conn) {
    cci__tiny_buf_t *oldest = NULL;
    uint32_t i;
    for (i = 0; i <= CCI_TINY_RECEIVES; i++) {
        cci__tiny_buf_t *buf = &ep->buf[i];
        if (buf->state != CCI__TINY_READY || buf->left == 0) continue;
        if (conn ? buf->conn != conn : (buf->conn->pending & CCI__TINY_EARLY_EVENTS) != 0) continue;
        if (!oldest || cci__tiny_before(buf->order, oldest->order)) oldest = buf;
    }
    return oldest;
}

static int cci__tiny_message(cci__tiny_t *ep, cci_event_t **event) {
    cci__tiny_buf_t *buf = cci__tiny_oldest(ep, NULL);
    const uint8_t *frame;
    cci__tiny_event_t *given = NULL;
    uint32_t i, held = 0;
    for (i = 0; i < CCI_TINY_RECEIVES; i++) {
        held += ep->event[i].buf != NULL;
        if (!ep->event[i].buf) given = &ep->event[i];
    }
    if (!given) return CCI_ENOBUFS;
    if (!buf) return held > 0 && cci__tiny_spare(ep) == 0 ? CCI_ENOBUFS : CCI_EAGAIN;
    frame = (const uint8_t *)buf->bytes + buf->at;
    given->buf = buf;
    *event = &given->event;
    (*event)->type = CCI_EVENT_RECV;
    (*event)->recv.len = cci__load16(frame + 2);
    (*event)->recv.ptr = frame + 8;
    (*event)->recv.connection = &buf->conn->pub;
    buf->held++;
    cci__tiny_skip(buf, 1);
    return CCI_SUCCESS;
}

/* The next event there is. */
static int cci__tiny_next(cci__tiny_t *ep, cci_event_t **event) {
    uint32_t i;
    int status;
    for (i = 0; i < CCI_TINY_CONNECTIONS; i++) {
        *event = cci__tiny_conn_event(&ep->conn[i], CCI__TINY_EARLY_EVENTS);
        if (!*event) *event = cci__tiny_completion(&ep->conn[i]);
        if (*event) return CCI_SUCCESS;
    }
    status = cci__tiny_message(ep, event);
    for (i = 0; i < CCI_TINY_CONNECTIONS && status != CCI_SUCCESS; i++) {
        cci__tiny_conn_t *conn = &ep->conn[i];
        if (cci__tiny_oldest(ep, conn)) continue;
        *event = cci__tiny_conn_event(conn, 1u << CCI_EVENT_DISCONNECT);
        if (*event) return CCI_SUCCESS;
    }
    return status;
}

CCI_API int cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event) {
    cci__tiny_t *ep = (cci__tiny_t *)(void *)endpoint;
    int status;
    if (!endpoint || !event) return CCI_EINVAL;
    *event = NULL;
    cci__tiny_work(ep);
    status = cci__tiny_next(ep, event);
    cci__tiny_acknowledge(ep, status == CCI_SUCCESS);
    return status;
}

CCI_API int cci_return_event(cci_event_t *event) {
    if (!event) return CCI_EINVAL;
    if (event->type == CCI_EVENT_SEND) {
        cci__tiny_op_t *op = (cci__tiny_op_t *)(void *)event;
        op->state = CCI__TINY_FREE;
        cci__tiny_free_ops(op->conn);
    } else if (event->type == CCI_EVENT_RECV) {
        cci__tiny_event_t *given = (cci__tiny_event_t *)(void *)event;
        given->buf->held--;
        cci__tiny_empty(given->buf);
        given->buf = NULL;
    } else {
        cci__tiny_conn_t *conn = CCI__CONTAINER(event, cci__tiny_conn_t, event);
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            if (conn->state == CCI__TINY_REQUESTED) return CCI_EINVAL;
            conn->request->state = CCI__TINY_EMPTY;
            conn->request = NULL;
        }
        conn->is_held = 0;
    }
    event->type = CCI_EVENT_NONE;
    return CCI_SUCCESS;
}

CCI_API int cci_next_deadline(cci_endpoint_t *endpoint, uint64_t *ns) {
    cci__tiny_t *ep = (cci__tiny_t *)(void *)endpoint;
    uint32_t i;
    if (!endpoint || !ns) return CCI_EINVAL;
    cci__tiny_step(ep);
    *ns = ep->left == CCI__TINY_LATER ? UINT64_MAX : (uint64_t)(uint32_t)ep->left << CCI__TINY_TICK_SHIFT;
    for (i = 0; i < CCI_TINY_CONNECTIONS; i++) {
        const cci__tiny_conn_t *conn = &ep->conn[i];
        if ((conn->pending && !conn->is_held) || conn->ack) *ns = 0;
        if (conn->count > 0 && conn->op[conn->first].state == CCI__TINY_DONE) *ns = 0;
    }
    for (i = 0; i < CCI_TINY_RECEIVES && ep->event[i].buf;) i++;
    if (i < CCI_TINY_RECEIVES && cci__tiny_oldest(ep, NULL)) *ns = 0;
    return CCI_SUCCESS;
}

/* ---- connections ------------------------------------------------------------------------------------------------ */

/* The connection of a request that the program has not decided; else NULL. */
static cci__tiny_conn_t *cci__tiny_undecided(cci_event_t *event) {
    cci__tiny_conn_t *conn;
    if (!event || event->type != CCI_EVENT_CONNECT_REQUEST) return NULL;
    conn = CCI__CONTAINER(event, cci__tiny_conn_t, event);
    return conn->state == CCI__TINY_REQUESTED ? conn : NULL;
}

CCI_API int cci_accept(cci_event_t *conn_req, const void *context) {
    cci__tiny_conn_t *conn = cci__tiny_undecided(conn_req);
    if (!conn) return CCI_EINVAL;
    conn->pub.context = (void *)(uintptr_t)context;
    conn->state = CCI__TINY_ACCEPTED;
    conn->due = conn->ep->now + CCI__TINY_MS(30000);
    cci__tiny_accept(conn);
    return CCI_SUCCESS;
}

CCI_API int cci_reject(cci_event_t *conn_req) {
    cci__tiny_conn_t *conn = cci__tiny_undecided(conn_req);
    if (!conn) return CCI_EINVAL;
    conn->state = CCI__TINY_REJECTED;
    conn->due = conn->ep->now + CCI__TINY_MS(4000);
    cci__tiny_control(conn, CCI__PKT_REJECT);
    return CCI_SUCCESS;
}

/* Data for the client is more than this engine carries. */
static int cci__tiny_check_data(cci_event_t *conn_req, const void *data_ptr, uint32_t data_len) {
    if (!cci__tiny_undecided(conn_req) || data_len > CCI_CONN_REQ_LEN || (!data_ptr && data_len > 0)) return CCI_EINVAL;
    return data_len > 0 ? CCI_ERR_NOT_IMPLEMENTED : CCI_SUCCESS;
}

CCI_API int cci_accept_data(cci_event_t *conn_req, const void *context, const void *data_ptr, uint32_t data_len) {
    int status = cci__tiny_check_data(conn_req, data_ptr, data_len);
    return status == CCI_SUCCESS ? cci_accept(conn_req, context) : status;
}

CCI_API int cci_reject_data(cci_event_t *conn_req, const void *data_ptr, uint32_t data_len) {
    int status = cci__tiny_check_data(conn_req, data_ptr, data_len);
    return status == CCI_SUCCESS ? cci_reject(conn_req) : status;
}

CCI_API int cci_connect(cci_endpoint_t *endpoint, const char *server_uri, const void *data_ptr, uint32_t data_len,
                        cci_conn_attribute_t attribute, const void *context, int flags, const struct timeval *timeout) {
    cci__tiny_t *ep = (cci__tiny_t *)(void *)endpoint;
    cci__tiny_conn_t *conn;
    cci_link_addr_t peer;
    int status = CCI_SUCCESS;
    if (!endpoint || !server_uri || (!data_ptr && data_len > 0) || data_len > CCI_CONN_REQ_LEN ||
        (unsigned)attribute > CCI_CONN_ATTR_UU_MC_RX || (flags & ~CCI__TINY_FLAGS) ||
        strncmp(server_uri, "link://", 7) != 0)
        return CCI_EINVAL;
    if (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0 || timeout->tv_usec >= 1000000)) return CCI_EINVAL;
    if (attribute > CCI_CONN_ATTR_UU || data_len > ep->mtu - 48) return CCI_ERR_NOT_IMPLEMENTED;
    memset(&peer, 0, sizeof peer);
    if (ep->link->resolve) status = ep->link->resolve(ep->handle, server_uri + 7, &peer);
    if (status != CCI_SUCCESS) return status;
    if ((conn = cci__tiny_new_conn(ep)) == NULL) return CCI_ENOMEM;
    cci__tiny_look_at_clock(ep);
    conn->state = CCI__TINY_CONNECTING;
    conn->peer = peer;
    conn->pub.attribute = attribute;
    conn->pub.max_send_size = ep->device.max_send_size;
    conn->pub.context = (void *)(uintptr_t)context;
    conn->request_length = data_len;
    if (data_len > 0) memcpy(conn->op[0].u.message, data_ptr, data_len);
    if (timeout && timeout->tv_sec < 100000) {
        conn->is_late = 1;
        conn->until = ep->now + (uint32_t)timeout->tv_sec * 15259u + cci__tiny_ticks((uint32_t)timeout->tv_usec);
    }
    conn->due = ep->now;
    cci__tiny_step(ep);
    return CCI_SUCCESS;
}

CCI_API int cci_disconnect(cci_connection_t *connection) {
    cci__tiny_conn_t *conn = (cci__tiny_conn_t *)(void *)connection;
    if (!connection) return CCI_EINVAL;
    if (conn->state != CCI__TINY_OPEN && conn->state != CCI__TINY_BROKEN) return CCI_SUCCESS;
    cci__tiny_look_at_clock(conn->ep);
    if (conn->state == CCI__TINY_OPEN && conn->ack) (void)cci__tiny_data(conn, NULL, 0, NULL, 0);
    cci__tiny_finish_all(conn, CCI_ERR_DISCONNECTED);
    cci__tiny_drop(conn, 1);
    conn->pending = 0;
    if (conn->state == CCI__TINY_BROKEN && conn->status != CCI_ETIMEDOUT) {
        conn->state = CCI__TINY_GONE;
        return CCI_SUCCESS;
    }
    conn->state = CCI__TINY_CLOSING;
    conn->tries = 0;
    conn->due = conn->ep->now;
    cci__tiny_step(conn->ep);
    return CCI_SUCCESS;
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

/* A free send slot behind all others; the caller has seen to it that there is one. */
static cci__tiny_op_t *cci__tiny_new_op(cci__tiny_conn_t *conn, int kind, const void *context, int flags) {
    cci__tiny_op_t *op = cci__tiny_op_at(conn, conn->count++);
    if (conn->count == 1) conn->taken = conn->ep->now; /* what was before may be too long ago for 32 bits */
    memset(op, 0, offsetof(cci__tiny_op_t, u));
    op->event.send.type = CCI_EVENT_SEND;
    op->event.send.connection = &conn->pub;
    op->event.send.context = (void *)(uintptr_t)context;
    op->conn = conn;
    op->began = conn->ep->now;
    op->flags = (uint16_t)flags;
    op->kind = (uint8_t)kind;
    op->state = CCI__TINY_WAITS;
    if (kind != CCI__FRAME_READ) op->sequence = conn->next_sequence++;
    return op;
}

/* Starts the operation; with CCI_FLAG_BLOCKING it also waits for the end. */
static int cci__tiny_start(cci__tiny_op_t *op) {
    cci__tiny_conn_t *conn = op->conn;
    const int is_blocking = op->flags & CCI_FLAG_BLOCKING;
    cci__tiny_step(conn->ep);
    if (!is_blocking) return CCI_SUCCESS;
    while (op->state != CCI__TINY_DONE) cci__tiny_work(conn->ep);
    op->state = CCI__TINY_FREE;
    cci__tiny_free_ops(conn);
    return (int)op->event.send.status;
}

CCI_API int cci_sendv(cci_connection_t *connection, const struct iovec *data, uint32_t iovcnt, const void *context,
                      int flags) {
    cci__tiny_conn_t *conn = (cci__tiny_conn_t *)(void *)connection;
    cci__tiny_op_t *op;
    uint32_t i, length = 0;
    if (!connection || (!data && iovcnt > 0) || (flags & ~CCI__TINY_FLAGS)) return CCI_EINVAL;
    if (flags & CCI_FLAG_WAKE) return CCI_ERR_NOT_IMPLEMENTED;
    if ((flags & CCI_FLAG_NO_COPY) && (flags & CCI_FLAG_SILENT) && connection->attribute != CCI_CONN_ATTR_RO)
        return CCI_EINVAL;
    for (i = 0; i < iovcnt; i++) {
        if (!data[i].iov_base && data[i].iov_len > 0) return CCI_EINVAL;
        if (data[i].iov_len > connection->max_send_size - length) return CCI_EMSGSIZE;
        length += (uint32_t)data[i].iov_len;
    }
    if (conn->state != CCI__TINY_OPEN) return CCI_ERR_DISCONNECTED;
    if (conn->count == CCI_TINY_SENDS) return CCI_ENOBUFS;
    cci__tiny_look_at_clock(conn->ep);
    op = cci__tiny_new_op(conn, CCI__FRAME_MESSAGE, context, flags);
    op->length = length;
    for (i = 0, length = 0; i < iovcnt; length += (uint32_t)data[i++].iov_len)
        if (data[i].iov_len > 0) memcpy((uint8_t *)op->u.message + length, data[i].iov_base, data[i].iov_len);
    return cci__tiny_start(op);
}

CCI_API int cci_send(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len, const void *context,
                     int flags) {
    struct iovec data;
    data.iov_base = (void *)(uintptr_t)msg_ptr;
    data.iov_len = msg_len;
    return cci_sendv(connection, &data, 1, context, flags);
}

/* ---- remote memory, the program's side -------------------------------------------------------------------------- */

#ifdef CCI_NO_RMA
CCI_API int cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
                             cci_rma_handle_t **rma_handle) {
    (void)endpoint, (void)start, (void)length, (void)flags, (void)rma_handle;
    return CCI_ERR_NOT_IMPLEMENTED;
}

CCI_API int cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *rma_handle) {
    (void)endpoint, (void)rma_handle;
    return CCI_ERR_NOT_IMPLEMENTED;
}

CCI_API int cci_rma(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len, cci_rma_handle_t *local_handle,
                    uint64_t local_offset, cci_rma_handle_t *remote_handle, uint64_t remote_offset, uint64_t data_len,
                    const void *context, int flags) {
    (void)connection, (void)msg_ptr, (void)msg_len, (void)local_handle, (void)local_offset, (void)remote_handle;
    (void)remote_offset, (void)data_len, (void)context, (void)flags;
    return CCI_ERR_NOT_IMPLEMENTED;
}
#else
/* The registration whose handle this is a copy of, or NULL. */
static cci__tiny_region_t *cci__tiny_registered(cci__tiny_t *ep, cci_rma_handle_t *handle) {
    const uint64_t index = handle->stuff[1];
    if (index >= CCI_TINY_REGISTRATIONS || handle->stuff[0] == 0) return NULL;
    return ep->region[index].handle.stuff[0] == handle->stuff[0] ? &ep->region[index] : NULL;
}

CCI_API int cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
                             cci_rma_handle_t **rma_handle) {
    cci__tiny_t *ep = (cci__tiny_t *)(void *)endpoint;
    cci__tiny_region_t *region;
    uint64_t index = 0;
    if (!endpoint || !start || !rma_handle || length == 0 || length - 1 > UINTPTR_MAX - (uintptr_t)start ||
        (flags & ~CCI__TINY_FLAGS))
        return CCI_EINVAL;
    while (index < CCI_TINY_REGISTRATIONS && ep->region[index].handle.stuff[0] != 0) index++;
    if (index == CCI_TINY_REGISTRATIONS) return CCI_ENOBUFS;
    region = &ep->region[index];
    region->handle.stuff[0] = cci__tiny_secret();
    if (region->handle.stuff[0] == 0) return CCI_ERROR;
    region->handle.stuff[1] = index;
    region->handle.stuff[2] = length;
    region->start = (uint8_t *)start;
    region->flags = flags;
    *rma_handle = &region->handle;
    return CCI_SUCCESS;
}

CCI_API int cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *rma_handle) {
    cci__tiny_t *ep = (cci__tiny_t *)(void *)endpoint;
    cci__tiny_region_t *region;
    uint32_t i, j;
    if (!endpoint || !rma_handle) return CCI_EINVAL;
    if ((region = cci__tiny_registered(ep, rma_handle)) == NULL) return CCI_ERR_RMA_HANDLE;
    for (i = 0; i < CCI_TINY_CONNECTIONS; i++) {
        cci__tiny_conn_t *conn = &ep->conn[i];
        for (j = 0; j < conn->count; j++) {
            const cci__tiny_op_t *op = cci__tiny_op_at(conn, j);
            if ((op->kind == CCI__FRAME_BULK || op->kind == CCI__FRAME_READ) &&
                op->u.rma.local == (uint32_t)(region - ep->region))
                cci__tiny_withdraw_both(conn, j, CCI_ERR_RMA_HANDLE);
        }
        cci__tiny_free_ops(conn);
    }
    memset(region, 0, sizeof *region);
    return CCI_SUCCESS;
}

CCI_API int cci_rma(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len, cci_rma_handle_t *local_handle,
                    uint64_t local_offset, cci_rma_handle_t *remote_handle, uint64_t remote_offset, uint64_t data_len,
                    const void *context, int flags) {
    cci__tiny_conn_t *conn = (cci__tiny_conn_t *)(void *)connection;
    const int kind = (flags & CCI_FLAG_READ) ? CCI__FRAME_READ : CCI__FRAME_BULK, has_message = msg_ptr != NULL;
    const cci__tiny_region_t *region;
    cci__tiny_op_t *op;
    if (!connection || !local_handle || !remote_handle || connection->attribute == CCI_CONN_ATTR_UU || data_len == 0 ||
        !(flags & CCI_FLAG_READ) == !(flags & CCI_FLAG_WRITE) || (flags & ~CCI__TINY_FLAGS) ||
        (!msg_ptr && msg_len > 0))
        return CCI_EINVAL;
    region = cci__tiny_registered(conn->ep, local_handle);
    if (!region || local_offset > region->handle.stuff[2] || data_len > region->handle.stuff[2] - local_offset)
        return CCI_ERR_RMA_HANDLE;
    if (msg_len > connection->max_send_size) return CCI_EMSGSIZE;
    if (conn->state != CCI__TINY_OPEN) return CCI_ERR_DISCONNECTED;
    if (conn->count + 1 + has_message > CCI_TINY_SENDS) return CCI_ENOBUFS;
    cci__tiny_look_at_clock(conn->ep);
    op = cci__tiny_new_op(conn, kind, context, has_message ? (flags & CCI_FLAG_FENCE) | CCI__TINY_SILENT : flags);
    memset(&op->u.rma, 0, sizeof op->u.rma);
    op->u.rma.total = data_len;
    op->u.rma.remote_offset = remote_offset;
    op->u.rma.key = remote_handle->stuff[0];
    op->u.rma.region = (uint32_t)cci__min64(remote_handle->stuff[1], UINT32_MAX);
    op->u.rma.memory = region->start + (size_t)local_offset;
    op->u.rma.local = (uint32_t)(region - conn->ep->region);
    op->u.rma.segment = conn->ep->mtu - CCI__TINY_HEAD - CCI__TINY_ACK_ROOM - (kind == CCI__FRAME_READ ? 16 : 48);
    if (has_message) { /* behind what was read it waits for that */
        flags = (flags & ~CCI_FLAG_FENCE) | CCI__TINY_JOINED | (kind == CCI__FRAME_READ ? CCI_FLAG_FENCE : 0);
        op = cci__tiny_new_op(conn, CCI__FRAME_MESSAGE, context, flags);
        op->length = msg_len;
        if (msg_len > 0) memcpy(op->u.message, msg_ptr, msg_len);
    }
    return cci__tiny_start(op);
}
#endif

/* ---- endpoints and the rest ------------------------------------------------------------------------------------- */

CCI_API int cci_create_endpoint_on_link(const cci_link_t *link, const char *service, cci_endpoint_t **endpoint,
                                        cci_os_handle_t *fd) {
    cci_link_info_t info;
    cci__tiny_t *ep = cci__tiny;
    uint32_t most;
    int status;
    if (!link || !endpoint || link->version < 1 || link->version > CCI_LINK_VERSION) return CCI_EINVAL;
    if (fd) return CCI_ERR_NOT_IMPLEMENTED;
    while (ep < cci__tiny + CCI_TINY_ENDPOINTS && ep->link) ep++;
    if (ep == cci__tiny + CCI_TINY_ENDPOINTS) return CCI_ENOMEM;
    memset(ep, 0, sizeof *ep);
    memset(&info, 0, sizeof info);
    info.os_handle = -1;
    ep->device.name = ep->device.transport = ep->device.info = "link";
    ep->device.up = 1;
    status = link->open(&ep->device, service, 0, &ep->handle, &info);
    if (status != CCI_SUCCESS) return status;
    ep->crc = info.crc != 0;
    ep->mtu = (info.mtu - (ep->crc ? 4u : 0u)) & ~7u;
    if (info.mtu > CCI_TINY_MTU || info.mtu < 256u + (ep->crc ? 4u : 0u)) {
        link->close(ep->handle);
        return info.mtu > CCI_TINY_MTU ? CCI_ENOMEM : CCI_ERROR;
    }
    ep->window = info.receive_window ? info.receive_window : CCI_TINY_RECEIVES * CCI_TINY_MTU;
    most = ep->mtu - CCI__TINY_HEAD - 8 - CCI__TINY_ACK_ROOM;
    ep->device.max_send_size = info.max_send_size ? cci__min32(info.max_send_size, most) : most;
    ep->timeout_us = info.send_timeout_us ? info.send_timeout_us : 30000000;
    ep->probe = cci__min32(info.probe_idle_s, 36000) * 15259u; /* ticks of a second */
    ep->pub.device = &ep->device;
    ep->link = link;
    ep->left = CCI__TINY_LATER;
    *endpoint = &ep->pub;
    return CCI_SUCCESS;
}

CCI_API int cci_destroy_endpoint(cci_endpoint_t *endpoint) {
    cci__tiny_t *ep = (cci__tiny_t *)(void *)endpoint;
    uint32_t i;
    if (!endpoint || !ep->link) return CCI_EINVAL;
    for (i = 0; i < CCI_TINY_CONNECTIONS; i++) {
        cci__tiny_conn_t *conn = &ep->conn[i];
        if (conn->state == CCI__TINY_OPEN && conn->ack) (void)cci__tiny_data(conn, NULL, 0, NULL, 0);
        if (conn->state == CCI__TINY_OPEN || conn->state == CCI__TINY_ACCEPTED) cci__tiny_control(conn, CCI__PKT_CLOSE);
    }
    ep->link->close(ep->handle);
    ep->link = NULL;
    return CCI_SUCCESS;
}

CCI_API int cci_setup(const cci_setup_t *setup) {
    if (setup && !setup->alloc != !setup->release) return CCI_EINVAL;
    cci__tiny_random = setup ? setup->random : NULL;
    cci__tiny_user = setup ? setup->user : NULL;
    return CCI_SUCCESS;
}

CCI_API int cci_init(uint32_t abi_ver, uint32_t flags, uint32_t *caps) {
    if (!caps || abi_ver < 1 || abi_ver > CCI_ABI_VERSION || flags != 0) return CCI_EINVAL;
    *caps = 0;
    return CCI_SUCCESS;
}

CCI_API int cci_finalize(void) {
    uint32_t i;
    for (i = 0; i < CCI_TINY_ENDPOINTS; i++) (void)cci_destroy_endpoint(&cci__tiny[i].pub);
    return CCI_SUCCESS;
}

CCI_API int cci_arm_os_handle(cci_endpoint_t *endpoint, int flags) {
    (void)endpoint, (void)flags;
    return CCI_EINVAL; /* there is none */
}

CCI_API int cci_get_devices(cci_device_t *const **devices) {
    static cci_device_t *const none[1] = {NULL};
    if (!devices) return CCI_EINVAL;
    *devices = none;
    return CCI_SUCCESS;
}

CCI_API int cci_create_endpoint_at(cci_device_t *device, const char *service, int flags, cci_endpoint_t **endpoint,
                                   cci_os_handle_t *fd) {
    (void)device, (void)service, (void)flags, (void)fd;
    return endpoint ? CCI_ENODEV : CCI_EINVAL;
}

CCI_API int cci_create_endpoint(cci_device_t *device, int flags, cci_endpoint_t **endpoint, cci_os_handle_t *fd) {
    return cci_create_endpoint_at(device, NULL, flags, endpoint, fd);
}

CCI_API const char *cci_status_hint(enum cci_status status) {
    return cci_strerror(NULL, status) ? "" : NULL;
}

/* The endpoint that a handle is of; `conn` becomes the connection that it is, or NULL. NULL: it is neither. */
static cci__tiny_t *cci__tiny_of_handle(cci_opt_handle_t *handle, cci__tiny_conn_t **conn) {
    uint32_t i, j;
    for (i = 0; i < CCI_TINY_ENDPOINTS; i++) {
        *conn = NULL;
        if (handle == (const void *)&cci__tiny[i]) return &cci__tiny[i];
        for (j = 0; j < CCI_TINY_CONNECTIONS; j++)
            if (handle == (const void *)(*conn = &cci__tiny[i].conn[j])) return &cci__tiny[i];
    }
    return NULL;
}

static void cci__tiny_set_keepalive(cci__tiny_conn_t *conn, uint32_t us) {
    conn->keepalive_us = us;
    conn->keepalive = cci__tiny_ticks(us);
    conn->asked = conn->ep ? conn->ep->now : 0;
    conn->was_pinged = 0;
}

/* Options of connections. */
static int cci__tiny_set_conn_opt(cci__tiny_conn_t *conn, cci_opt_name_t name, const void *val) {
    switch ((int)name) {
    case CCI_OPT_CONN_SEND_TIMEOUT:
        conn->timeout_us = *(const uint32_t *)val;
        conn->timeout = cci__tiny_ticks(conn->timeout_us);
        return CCI_SUCCESS;
    case CCI_OPT_CONN_KEEPALIVE_TIMEOUT: cci__tiny_set_keepalive(conn, *(const uint32_t *)val); return CCI_SUCCESS;
    case CCI_OPT_CONN_CONTEXT: memcpy(&conn->pub.context, val, sizeof(void *)); return CCI_SUCCESS;
    case CCI_OPT_CONN_LINGER: return CCI_ERR_NOT_IMPLEMENTED;
    default: return CCI_EINVAL;
    }
}

CCI_API int cci_set_opt(cci_opt_handle_t *handle, cci_opt_name_t name, const void *val) {
    cci__tiny_conn_t *conn = NULL;
    cci__tiny_t *ep = cci__tiny_of_handle(handle, &conn);
    uint32_t number, i;
    if (!ep || !val) return CCI_EINVAL;
    if (conn) return cci__tiny_set_conn_opt(conn, name, val);
    number = *(const uint32_t *)val;
    switch ((int)name) {
    case CCI_OPT_ENDPT_SEND_TIMEOUT: ep->timeout_us = number; return CCI_SUCCESS;
    case CCI_OPT_ENDPT_RECV_BUF_COUNT: return number > 0 && number <= CCI_TINY_RECEIVES ? CCI_SUCCESS : CCI_ERANGE;
    case CCI_OPT_ENDPT_SEND_BUF_COUNT: return number > 0 && number <= CCI_TINY_SENDS ? CCI_SUCCESS : CCI_ERANGE;
    case CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT:
        ep->keepalive_us = number;
        for (i = 0; i < CCI_TINY_CONNECTIONS; i++) cci__tiny_set_keepalive(&ep->conn[i], number);
        return CCI_SUCCESS;
    case CCI_OPT_ENDPT_EVENT_MASK:
        if (number & ~(1u << CCI_EVENT_DISCONNECT)) return CCI_EINVAL;
        ep->mask = number;
        return CCI_SUCCESS;
    case CCI_OPT_ENDPT_SEND_FD:
    case CCI_OPT_ENDPT_CONN_STATS: return CCI_ERR_NOT_IMPLEMENTED;
    default: return CCI_EINVAL;
    }
}

static void cci__tiny_caps(const cci__tiny_t *ep, const cci__tiny_conn_t *conn, cci_caps_t *caps) {
    memset(caps, 0, sizeof *caps);
    caps->max_send_size = conn ? conn->pub.max_send_size : ep->device.max_send_size;
    caps->max_request_len = ep->mtu - 48;
    caps->max_connections = CCI_TINY_CONNECTIONS;
    caps->max_send_bufs = CCI_TINY_SENDS;
    caps->max_recv_bufs = CCI_TINY_RECEIVES;
    if (!conn || conn->pub.attribute == CCI_CONN_ATTR_RO) caps->can |= CCI_CAN_ORDERED;
#ifndef CCI_NO_RMA
    if (!conn || conn->pub.attribute != CCI_CONN_ATTR_UU) {
        caps->can |= CCI_CAN_RMA;
        caps->max_rma_length = UINT64_MAX;
    }
#endif
}

CCI_API int cci_get_opt(cci_opt_handle_t *handle, cci_opt_name_t name, void *val) {
    cci__tiny_conn_t *conn = NULL;
    cci__tiny_t *ep = cci__tiny_of_handle(handle, &conn);
    uint32_t *number = (uint32_t *)val;
    if (!ep || !val) return CCI_EINVAL;
    if (name == CCI_OPT_CAPS) {
        cci__tiny_caps(ep, conn, (cci_caps_t *)val);
        return CCI_SUCCESS;
    }
    if ((conn != NULL) != (name == CCI_OPT_CONN_SEND_TIMEOUT || name == CCI_OPT_CONN_KEEPALIVE_TIMEOUT ||
                           name == CCI_OPT_CONN_CONTEXT || name == CCI_OPT_CONN_PEER_URI ||
                           name == CCI_OPT_CONN_STATS || name == CCI_OPT_CONN_LINGER))
        return CCI_EINVAL;
    switch ((int)name) {
    case CCI_OPT_ENDPT_SEND_TIMEOUT: *number = ep->timeout_us; break;
    case CCI_OPT_ENDPT_RECV_BUF_COUNT: *number = CCI_TINY_RECEIVES; break;
    case CCI_OPT_ENDPT_SEND_BUF_COUNT: *number = CCI_TINY_SENDS; break;
    case CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT: *number = ep->keepalive_us; break;
    case CCI_OPT_ENDPT_RMA_ALIGN: memset(val, 0, sizeof(cci_alignment_t)); break;
    case CCI_OPT_ENDPT_EVENT_MASK: *number = ep->mask; break;
    case CCI_OPT_CONN_SEND_TIMEOUT: *number = conn->timeout_us; break;
    case CCI_OPT_CONN_KEEPALIVE_TIMEOUT: *number = conn->keepalive_us; break;
    case CCI_OPT_CONN_CONTEXT: memcpy(val, &conn->pub.context, sizeof(void *)); break;
    case CCI_OPT_ENDPT_URI:
    case CCI_OPT_ENDPT_STATS:
    case CCI_OPT_ENDPT_CONN_STATS:
    case CCI_OPT_CONN_STATS:
    case CCI_OPT_CONN_LINGER:
    case CCI_OPT_CONN_PEER_URI: return CCI_ERR_NOT_IMPLEMENTED;
    default: return CCI_EINVAL;
    }
    return CCI_SUCCESS;
}

/* What only the full library has. */
CCI_API int cci_rmav(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
                     const cci_rma_segment_t *local, uint32_t local_count, const cci_rma_segment_t *remote,
                     uint32_t remote_count, const void *context, int flags) {
    (void)connection, (void)msg_ptr, (void)msg_len, (void)local, (void)local_count, (void)remote, (void)remote_count;
    (void)context, (void)flags;
    return CCI_ERR_NOT_IMPLEMENTED;
}

CCI_API int cci_atomic(cci_connection_t *connection, int operation, uint32_t width, cci_rma_handle_t *remote_handle,
                       uint64_t remote_offset, uint64_t operand, uint64_t compare, uint64_t *previous,
                       const void *context, int flags) {
    (void)connection, (void)operation, (void)width, (void)remote_handle, (void)remote_offset, (void)operand;
    (void)compare, (void)previous, (void)context, (void)flags;
    return CCI_ERR_NOT_IMPLEMENTED;
}

CCI_API int cci_rma_alloc(cci_endpoint_t *endpoint, uint64_t length, void **memory) {
    return endpoint && memory && length > 0 ? CCI_ENOMEM : CCI_EINVAL;
}

CCI_API int cci_rma_free(cci_endpoint_t *endpoint, void *memory) {
    (void)endpoint, (void)memory;
    return CCI_EINVAL;
}

CCI_API int cci_register_transport(const struct cci_transport *transport) {
    (void)transport;
    return CCI_ENOBUFS;
}

CCI_API int cci_deregister_transport(const struct cci_transport *transport) {
    (void)transport;
    return CCI_ERR_NOT_FOUND;
}

CCI_API const char *cci_transport_reason(uint32_t index, const char **name) {
    (void)index, (void)name;
    return NULL;
}

#ifdef __cplusplus
}
#endif
#endif /* CCI_TINY_IMPLEMENTATION */

#endif /* CCI_TRANSPORT_INCLUDING */

/* ==================================================================================================================
 * >>license
 *
 * Copyright (c) the CCI in one header authors. You may use this file under the MIT license or as public domain (the
 * Unlicense), as you choose. Both texts are in the file LICENSE.
 *
 * The software is provided "as is", without warranty of any kind, express or implied.
 * ================================================================================================================== */
