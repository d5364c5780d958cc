/* cci_sisci.h - SISCI for CCI (cci.h): shared memory of one host, or a Dolphin adapter.                         v0.1.0
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Brings its own SISCI on POSIX shared memory, so every Linux host has one. A program written for SISCI uses it alone:
 *
 *     #define CCI_SISCI_API
 *     #define CCI_SISCI_IMPLEMENTATION        (in ONE C or C++ file)
 *     #include "cci_sisci.h"
 *
 * and #include "cci_sisci.h" with CCI_SISCI_API alone in all others. Link with -pthread. Programs that include
 * sisci_api.h, sisci_types.h and sisci_error.h compile unchanged where these files hold the first and the last line,
 * and one source is compiled with -DCCI_SISCI_IMPLEMENTATION.
 *
 * CONTENTS (search for the tag)
 *   what it is, and how to use it
 *     >>sisci-manual         what it does, where it differs from an adapter, what happens when processes die
 *     >>sisci-config         every macro and environment variable with its default
 *     >>sisci-api            types, values, functions
 *   part one: SISCI in shared memory
 *     >>sisci-system         what the implementation needs of the system
 *     >>sisci-state          the structures
 *     >>sisci-base           time, lock, log, errors
 *     >>sisci-names          the directory: claiming names, finding owners, sweeping what the dead left
 *     >>sisci-events         what happened, kept for those who wait or called back
 *     >>sisci-channel        messages between processes
 *     >>sisci-serve          the side that owns: connections to its segments and interrupts
 *     >>sisci-remote         the side that connects
 *     >>sisci-engine         transfers that go on while the program does something else
 *     >>sisci-progress       the helper thread, and waiting
 *     >>sisci-open           opening and closing
 *     >>sisci-local          local segments
 *     >>sisci-connect        remote segments
 *     >>sisci-map            maps, sequences, barriers, copies
 *     >>sisci-dma            DMA queues and block transfers
 *     >>sisci-interrupt      interrupts
 *     >>sisci-query          questions, and what can't be done without an adapter
 *     >>sisci-table          the table of functions
 *   part two: CCI over SISCI, the transport
 *     >>sisci-transport      the whole; what lies in shared memory, with all sizes and offsets
 *     >>sisci-cci-state      the structures of this process
 *     >>sisci-cci-base       the endpoint's lock and memory
 *     >>sisci-cci-words      words in shared memory; marks: which links to look at
 *     >>sisci-cci-provider   what the software and an adapter's library do not do alike
 *     >>sisci-cci-notify     waking peers; links that are looked at in each call, and others
 *     >>sisci-cci-items      operations and queued items: made, completed, failed
 *     >>sisci-cci-send       the ring, going out
 *     >>sisci-cci-conns      connections: made, ended, their records of the handshake
 *     >>sisci-cci-rma        RMA by the kernel and through slots; atomics
 *     >>sisci-cci-map        RMA in mapped memory
 *     >>sisci-cci-queue      what has found no space in the ring
 *     >>sisci-cci-receive    the ring, coming in
 *     >>sisci-cci-links      links: made, joined, lost
 *     >>sisci-cci-groups     multicast
 *     >>sisci-cci-time       deadlines and keepalive
 *     >>sisci-cci-work       a round of work
 *     >>sisci-cci-sleep      the OS handle, the helper thread, blocking calls
 *     >>sisci-cci-endpoint   making and ending an endpoint
 *     >>sisci-cci-connect    connecting, accepting, closing
 *     >>sisci-cci-events     getting and returning events; options
 *     >>sisci-cci-messages   sending
 *     >>sisci-cci-memory     registered memory, and issuing RMA
 *     >>sisci-cci-table      the tables of the engine and of the endpoint
 *     >>sisci-cci-devices    devices and their configuration
 *   part three: an adapter's library, with CCI_SISCI_ADAPTER
 *     >>sisci-adapter        links through an adapter: copies of the peers' inboxes, callbacks, stores that are lost
 *     >>sisci-vendor         the library of an adapter, opened at run time
 *   the end
 *     >>sisci-license        
 */

/* Strict ISO modes hide POSIX unless it is asked for before the first system header. */
#if defined(CCI_IMPLEMENTATION) || defined(CCI_SISCI_IMPLEMENTATION)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#endif

#ifndef CCI_SISCI_H
#define CCI_SISCI_H

#ifdef CCI_CORE_IMPLEMENTED
#error "include cci_sisci.h before cci.h in the file that defines CCI_IMPLEMENTATION"
#endif

#if defined(CCI_SISCI_API) && !defined(CCI_IMPLEMENTATION)
#define CCI__SCI_ALONE 1 /* a program that wants SISCI and no CCI needs no other file */
#include <stddef.h>
#include <stdint.h>
#ifndef CCI_API
#ifndef CCI_STATIC
#define CCI_API extern
#elif defined(__GNUC__) || defined(__clang__)
#define CCI_API static __attribute__((unused))
#else
#define CCI_API static
#endif
#endif
#else
#define CCI__SCI_ALONE 0
#define CCI_TRANSPORT_INCLUDING
#include "cci.h"
#undef CCI_TRANSPORT_INCLUDING
#endif

/* ==================================================================================================================
 * >>sisci-manual
 *
 * WHAT IT IS. The functions of the SISCI API (the manual of 2008, with the data interrupts of later versions) between
 * processes of one host. This host is node 4 with one adapter, number 0. A segment is memory that all who connect to it
 * map: what one stores another loads, at the speed of the processor's caches, and no call is needed.
 *
 * SHARED SEGMENTS (SCIShareSegment, SCIAttachLocalSegment) have one owner at a time, which serves who connects. When it
 * leaves or dies, one of those who share takes over with the same number; users get SCI_CB_LOST when it dies, and are
 * in the way of its SCIRemoveSegment otherwise.
 *   BROADCAST SEGMENTS (reflective memory): processes that create the same number with SCI_FLAG_BROADCAST and the same
 * size have one memory, so whatever anybody writes is with all of them at once. Connect to node 252
 * (SCI_BROADCAST_NODEID). Users keep their connection for as long as the group has a member; whether it can be
 * connected to, each member decides for all. While no successor has taken over from an owner that died, connecting is
 * SCI_ERR_NO_SUCH_SEGMENT, and nobody else can have the number. A member that is stopped counts as one: if it is the
 * last, the group waits for it.
 *
 * WHERE IT DIFFERS FROM AN ADAPTER. Sizes and offsets are of any number of bytes (adapters take multiples of 4 or
 * more). Stores never fail on their way: a sequence is SCI_SEQ_OK until the connection ends, and SCI_CB_NOT_OPERATIONAL
 * never comes. The kernel can't take a mapping back: after SCI_CB_DISCONNECT or SCI_CB_LOST the memory of a map stays
 * readable, but nobody else looks at it.
 *   Later than the manual: SCIGetErrorString, SCIGetLocalSegmentId (of a segment with SCI_FLAG_AUTO_ID, too),
 * SCIGetRemoteSegmentId, SCIGetLocalSegmentSize, SCICacheSync, SCIStartDmaTransfer and SCIStartDmaTransferVec (enqueue
 * and post at once; a queue in which a transfer has ended takes another without a reset). SCI_Q_LOCAL_SEGMENT and
 * SCI_Q_REMOTE_SEGMENT ask for addresses of a bus: SCI_ERR_NOT_IMPLEMENTED. Flags that shared memory can't honour are
 * SCI_ERR_FLAG_NOT_IMPLEMENTED: SCI_FLAG_SHARED_INT, SCI_FLAG_CONDITIONAL_INTERRUPT, SCI_FLAG_DMA_PHDMA,
 * SCI_FLAG_DMA_USER_MEM. Those that choose an engine, a cache or a kind of packet change nothing. A copy or a transfer
 * into a map with SCI_FLAG_READONLY_MAP is SCI_ERR_ACCESS.
 *   A segment on the program's own memory (SCIRegisterSegmentMemory) serves local transfers only: for it,
 * SCISetSegmentAvailable is SCI_ERR_ILLEGAL_OPERATION. The _dual and _mcast copies are loops.
 *   SCI_ERR_NOT_IMPLEMENTED: SCIGetCSRRegister, SCISetCSRRegister, SCIGetLocalCSR, SCISetLocalCSR,
 * SCIAttachPhysicalMemory, SCIphDmaEnqueue, SCIphDmaStart, SCIConnectSCISpace, SCIRegisterInterruptFlag,
 * SCIEnableConditionalInterrupt, SCIDisableConditionalInterrupt, SCIGetConditionalInterruptTrigCounter. Maps that ask
 * for interrupts by stores are SCI_ERR_FLAG_NOT_IMPLEMENTED.
 *
 * AN ADAPTER, with CCI (experimental: never tried with one), needs the macro CCI_SISCI_ADAPTER. A device of the
 * configuration with `library = PATH` (or with `provider = vendor`: libsisci.so, where the system finds it) and
 * `adapter = NUMBER` (default 0) goes through that library, whose API may be 1.x or 2.x. One library per process. Its
 * URIs are sisci://NODE:SERVICE, with the number of the adapter's node. A device whose library or adapter is missing is
 * down, and the log says why. RMA goes through slots of 32 KiB, which the target's program empties; memory of
 * cci_rma_alloc() is ordinary memory, and there are no groups. Connecting may wait for the other node, up to 100
 * milliseconds at a time. A link maps one inbox of the peer's, and needs as much memory for its copy: ring + blocks *
 * max_send_size + 256 KiB, so choose small rings where mapped memory is scarce.
 *
 *   NOT TESTED with the vendor's library or with an adapter. The tests make libraries of their own: a software SISCI
 * behind the vendor's symbols, which loses stores when told to. The whole conformance suite passes over it. What that
 * cannot show:
 *     - whether the vendor's symbols, constants and structures are as assumed,
 *     - whether stores arrive in the order that SCIFlush promises, on all adapters and processors,
 *     - whether the answer to a load pushes the peer's stores ahead of it (a sleeper relies on it), and whether an
 *       interrupt stays behind the stores before SCIStoreBarrier,
 *     - what the library's callbacks report, in which threads, and how long its calls wait for an unreachable node,
 *     - whether SCICheckSequence reports stores that failed while a cable was pulled before the peer reads what came of
 *       them: a message has no checksum of its own,
 *     - how fast it is.
 *
 * WHEN A PROCESS DIES. The kernel closes its sockets, and all who are connected get SCI_CB_LOST at once. It frees the
 * memory with the last map. The names that the dead process had are freed by who wants such a name, or opens a device
 * ten seconds after others have looked for such names. Names of live processes, also of stopped ones, are left alone.
 *   After fork() the child has nothing of its parent's devices but the maps; it opens its own. (With CCI_NO_THREADS and
 * a glibc before 2.34 fork() is not noticed: the child must not call the library before exec.)
 *
 * WHO CAN CONNECT. Processes of the same user, because the directory is that user's and closed to others. With a group
 * (CCI_SISCI_GROUP) also its members; if these shall own segments too, make the directory with mode 1770 yourself.
 * Containers share segments when they share the directory. Whoever can connect can write all over the segment: read
 * what lies in it once, check it, and use the copy. Peers that send nonsense are dropped.
 *   Interrupts are eventfds that all connected processes share: a malicious one can consume or delay interrupts of the
 * others, but cannot block the receiver.
 *
 * MEMORY OF cci_rma_alloc(), with CCI, is mapped by the peers that were given the handle of a registration in it: RMA
 * is one copy. What is registered for reading alone is mapped for reading, and can't be mapped otherwise.
 *     - A peer maps all that one cci_rma_alloc() gave: call it once for each set of peers.
 *     - The kernel cannot revoke a mapping: cci_rma_deregister() ends RMA, but a malicious peer keeps access until
 *       cci_rma_free(). After that the memory is not yours any more. A child of fork() shares the mapping.
 *     - A link maps up to 16 such memories at once, those used last; the kernel copies the others.
 * The key `rma` of a device chooses: auto (mapped, else copied by the kernel, else through slots), map (as auto, but
 * waits for the mapping, and never asks the kernel), copy (by the kernel), bounce (through slots).
 *
 * THE END OF A REGISTRATION, with CCI: cci_rma_deregister(), cci_destroy_endpoint() and cci_finalize() wait for copies
 * of peers that are under way, of up to 1 MiB each; other calls with the endpoint wait for them meanwhile. A peer that
 * is stopped in the middle of one (SIGSTOP, a debugger, a container that is paused) or gets no processor is waited for
 * until it goes on or dies. Not waited for is a peer whose threads are all seen elsewhere while the copy does not end:
 * each for a second asleep in a system call, or for ten seconds of processor time. It loses its link. So no signal
 * handler may sleep for a second in a thread that copies. Where the system does not tell a process what another one of
 * the same user does (Yama's ptrace_scope), peers that are asleep are waited for, too.
 *
 * GROUPS, with CCI: sisci://252:NUMBER is a multicast group of the processes that share the directory. Messages have up
 * to 8 KiB. The group keeps its last 128 messages; one that a receiver has got belongs to that receiver. No member
 * waits for another. Who joins waits for the founder, or who has taken the group over since, to let it in: nobody joins
 * while that process is stopped, or its program makes no calls. If it has died and all members are stopped, the next
 * process that joins founds the group anew after a second, and the others join that group when they go on. Each member
 * can write to the memory of the group, so any member can send in another's name. An endpoint has up to 16 multicast
 * connections, those that wait to join among them, and cci_connect() of one more is CCI_ENOMEM; a group wakes up to 64
 * sleeping receivers, others look once in a millisecond.
 *
 * LINKS, with CCI. All connections that a client's endpoint has with one server's endpoint share a link: an inbox on
 * each side, which nobody else can connect to once the link is open. It is made with the first connection and closed a
 * second after the last. An inbox has ring + blocks * max_send_size + 256 KiB of memory (836 KiB by default), of which
 * only what is used is ever touched. A link takes two descriptors on each side, and one more for each peer that sleeps
 * or has a thread; four or five more while it is made. An endpoint takes seven, ten with an OS handle. Without
 * descriptors cci_create_endpoint() is CCI_ERROR and cci_connect() CCI_ENOMEM; where the server has none, or they run
 * out on the way, the client tries again until CCI_ETIMEDOUT. Links that are open go on.
 *   Polling costs the same whatever the number of links: each call looks at about eight, those used last, and at those
 * that their peers have marked since. A peer marks a link with the first message after a pause. Peers can set and clear
 * marks of others: a message whose mark is lost is found within eight times as many calls as there are links, or by a
 * sleeper when it is woken next. An endpoint has up to 16,384 links. A peer of another version of this header is
 * refused: connecting to it is CCI_ECONNREFUSED, and the log says why.
 *   An endpoint takes 31 KiB at first. Its buffers are made in slabs when they are first needed.
 *   Connections end at once on both sides: what the peer had consumed before it closed a connection, or its endpoint,
 * is complete, and everything else that is pending ends with CCI_ERR_DISCONNECTED. Of the messages that it had sent
 * before, those that were complete and SILENT ones are still received, on an ordered connection up to the first that
 * is neither. Those whose completion had not come when it called cci_disconnect() end with CCI_ERR_DISCONNECTED there
 * and are not received; an endpoint that is destroyed takes none back. CCI_EVENT_DISCONNECT, if
 * CCI_OPT_ENDPT_EVENT_MASK asks for it, comes behind all that:
 *     CCI_SUCCESS           the peer called cci_disconnect(), cci_destroy_endpoint() or cci_finalize()
 *     CCI_ERR_DISCONNECTED  the peer's process died, or the link to it is lost, or the peer has given the connection up
 *     CCI_ETIMEDOUT         the peer was stopped, or made no calls, for longer than the send timeout
 *   Of the statistics (cci_endpt_stats_t, cci_conn_stats_t) an endpoint tells its connections, waiting events, receive
 * buffers in use and requests refused, a connection its messages, RMAs and their bytes, if CCI_OPT_ENDPT_CONN_STATS is
 * 1. RMAs of the peer are not counted: most need nothing of this process. There are no packets.
 *   Of CCI_EVENT_STATUS an endpoint on an adapter has paths that are suspended (SCI_CB_NOT_OPERATIONAL) and resumed
 * (SCI_CB_OPERATIONAL), and nothing else. In the shared memory of this host none ever comes.
 *   A server whose program has 1,024 requests that it has not returned, or that has no receive buffer or memory for
 * another, answers "busy" at once and says so in its log; the client asks again until its time for connecting is over.
 *   A peer that dies is noticed at once. One that is stopped, or makes no calls, is noticed by time-outs, which break
 * reliable connections. Peers in other containers that share the directory, and other users, are reached through the
 * inboxes alone: no process touches another's memory then.
 *   A program's own encryption (cci_setup()) does not hold here, and the log warns of that when an endpoint is made.
 *   What lies in an inbox is read once and checked; who writes nonsense loses its link. Long messages are read in
 * place, so a peer of the same user could still change them while the program reads; those of other users are copied
 * first. Members of a group can keep each other from connecting, but neither read nor change what others send.
 *
 * THREADS. Every function may be called from any thread. A device gets one helper thread when it first has something to
 * serve (a segment, an interrupt, a connection, a transfer), because others connect whenever they like, and callbacks
 * come at any time. Callbacks run in that thread, without a lock, and may call anything but SCIClose. Removing an
 * object waits for its callback to end. Without threads (CCI_NO_THREADS) all this happens inside the calls that the
 * program makes, chiefly those that wait: a program that makes none serves nobody.
 *
 * LIMITS. Descriptors: four per device, one per local segment or interrupt (two per data interrupt), one per pair of
 * connected devices and direction, one per connected segment or interrupt. When they are used up the functions answer
 * SCI_ERR_SYSTEM, and who connects to such a process waits (SCI_ERR_TIMEOUT). Events that nobody waits for: the last
 * 1024 of each object are kept.
 * ==================================================================================================================
 * >>sisci-config
 *
 * CCI_SISCI_IMPLEMENTATION  emits the code of this header; CCI_IMPLEMENTATION implies it.
 * CCI_SISCI_API             declares the names of the SISCI manual (SCIOpen, sci_desc_t, SCI_ERR_OK, ...). Define it in
 *                           the file with the implementation too. Without CCI_IMPLEMENTATION this is SISCI alone:
 *                           there is no transport, and cci.h is not needed.
 * CCI_SISCI_NO_SHARED_MEMORY leaves the software out, as on systems other than Linux: every function answers
 *                           SCI_ERR_NOT_IMPLEMENTED.
 * CCI_SISCI_ADAPTER         in the file with the implementation: devices of a configuration can go through an adapter's
 *                           library. Without it such devices are down, and the log says why.
 * CCI_STATIC, CCI_NO_THREADS, CCI_NO_STDIO, CCI_NO_DLOPEN as in cci.h. With cci.h, memory and log go the ways that
 *                           cci_setup() says: call it before the first function of SISCI.
 *
 * Environment, read by SCIOpen:
 * CCI_SISCI_DIR             directory of the names, up to 80 bytes, made when missing (default: the first of these that
 *                           can be used: $XDG_RUNTIME_DIR/cci-sisci without a group, /dev/shm/cci-sisci-UID,
 *                           $HOME/.cci-sisci). It must belong to the user or root and be closed to all others.
 *                           Processes in and outside of a session meet when this names one directory. When it is wiped,
 *                           each process makes its names anew within ten seconds.
 * CCI_SISCI_GROUP           name or number of a group whose members may connect (default: none).
 *
 * Keys of a device with `transport = sisci` in CCI's configuration, with their defaults:
 * ring = 65536              bytes of an inbox for messages of up to 496 bytes: 4096 to 4194304, a power of two
 * blocks = 64               longer messages under way to a process: 2 to 64
 * max_send_size = 8192      64 to 65472
 * send_buf_count = 1024, recv_buf_count = 1024, send_timeout = 30000000 (microseconds), progress = poll (or thread)
 * service                   the number in the URI of an endpoint that is made without one (default: any free one)
 * rma = auto                how: see above
 * directory, group          as the two variables of the environment
 * provider = software       or vendor: through an adapter's library (library = its path; adapter = 0 is its number);
 *                           needs CCI_SISCI_ADAPTER
 *
 * Memory: all connections between two endpoints share one link, which is an inbox for each. An inbox has 4 KiB, the
 * ring, `blocks` times max_send_size, and 256 KiB for RMA through slots: 836 KiB by default, 340 KiB with ring =
 * 16384 and blocks = 8. That is address space: the kernel gives a page when it is first written to, so a link takes
 * 8 KiB at first and what its traffic uses later. A further connection takes 256 bytes at each side.
 *
 * Sends: each connection to a peer endpoint brings `send_buf_count` messages that may wait for space in its ring, and
 * 1024 more that may be pending; all of an endpoint can have 65536 pending ones, and buffers of 64 MiB for those that
 * wait (or twice `send_buf_count` of each). When that runs short a peer that takes nothing has at most as many as are
 * left to others. Where the configuration names `send_buf_count`, it is the number for all of the endpoint.
 * ================================================================================================================== */

/* ==================================================================================================================
 * >>sisci-api
 *
 * Everything has a private name here, cci__sci_something; CCI_SISCI_API adds the names of the manual.
 * ================================================================================================================== */

#define CCI_HAVE_SISCI 1

#if !CCI__SCI_ALONE && defined(__linux__)
#ifndef CCI_STATIC
#ifdef __cplusplus
extern "C" {
#endif
/* The transport, for cci_register_transport() or cci_setup(); a program that includes this header needs neither. */
CCI_API const cci_transport_t cci_sisci_transport;
#ifdef __cplusplus
}
#endif
#endif

/* The order of inclusion is the order of preference: take the first place that is free in cci.h's table. */
#ifndef CCI_TRANSPORT_1
#define CCI_TRANSPORT_1 &cci_sisci_transport
#elif !defined(CCI_TRANSPORT_2)
#define CCI_TRANSPORT_2 &cci_sisci_transport
#elif !defined(CCI_TRANSPORT_3)
#define CCI_TRANSPORT_3 &cci_sisci_transport
#elif !defined(CCI_TRANSPORT_4)
#define CCI_TRANSPORT_4 &cci_sisci_transport
#else
#error "cci.h takes four transports by inclusion; register the others with cci_register_transport()"
#endif
#endif

/* X(name, value) */
#define CCI__SCI_ERRORS(X)                                                                                             \
    X(OK, 0)                                                                                                           \
    X(BUSY, 0x40000900)                                                                                                \
    X(FLAG_NOT_IMPLEMENTED, 0x40000901)                                                                                \
    X(ILLEGAL_FLAG, 0x40000902)                                                                                        \
    X(NOSPC, 0x40000904)                                                                                               \
    X(API_NOSPC, 0x40000905)                                                                                           \
    X(HW_NOSPC, 0x40000906)                                                                                            \
    X(NOT_IMPLEMENTED, 0x40000907)                                                                                     \
    X(ILLEGAL_ADAPTERNO, 0x40000908)                                                                                   \
    X(NO_SUCH_ADAPTERNO, 0x40000909)                                                                                   \
    X(TIMEOUT, 0x4000090A)                                                                                             \
    X(OUT_OF_RANGE, 0x4000090B)                                                                                        \
    X(NO_SUCH_SEGMENT, 0x4000090C)                                                                                     \
    X(NO_SUCH_INTNO, 0x4000090C)                                                                                       \
    X(ILLEGAL_NODEID, 0x4000090D)                                                                                      \
    X(CONNECTION_REFUSED, 0x4000090E)                                                                                  \
    X(SEGMENT_NOT_CONNECTED, 0x4000090F)                                                                               \
    X(SIZE_ALIGNMENT, 0x40000910)                                                                                      \
    X(OFFSET_ALIGNMENT, 0x40000911)                                                                                    \
    X(ILLEGAL_PARAMETER, 0x40000912)                                                                                   \
    X(MAX_ENTRIES, 0x40000913)                                                                                         \
    X(SEGMENT_NOT_PREPARED, 0x40000914)                                                                                \
    X(ILLEGAL_ADDRESS, 0x40000915)                                                                                     \
    X(ILLEGAL_OPERATION, 0x40000916)                                                                                   \
    X(ILLEGAL_QUERY, 0x40000917)                                                                                       \
    X(SEGMENTID_USED, 0x40000918)                                                                                      \
    X(INTNO_USED, 0x40000918)                                                                                          \
    X(SYSTEM, 0x40000919)                                                                                              \
    X(CANCELLED, 0x4000091A)                                                                                           \
    X(NOT_CONNECTED, 0x4000091B)                                                                                       \
    X(NOT_AVAILABLE, 0x4000091C)                                                                                       \
    X(INCONSISTENT_VERSIONS, 0x4000091D)                                                                               \
    X(COND_INT_RACE_PROBLEM, 0x4000091E)                                                                               \
    X(OVERFLOW, 0x4000091F)                                                                                            \
    X(NOT_INITIALIZED, 0x40000920)                                                                                     \
    X(ACCESS, 0x40000921)                                                                                              \
    X(NO_SUCH_NODEID, 0x40000A00)                                                                                      \
    X(NODE_NOT_RESPONDING, 0x40000A02)                                                                                 \
    X(NO_REMOTE_LINK_ACCESS, 0x40000A04)                                                                               \
    X(NO_LINK_ACCESS, 0x40000A05)                                                                                      \
    X(TRANSFER_FAILED, 0x40000A06)

/* X(name, value): flags, a bit of which means different things to different functions. An adapter's library has values
 * of its own. */
#define CCI__SCI_FLAGS(X)                                                                                              \
    X(THREAD_SAFE, 0x1)                                                                                                \
    X(USE_CALLBACK, 0x1)                                                                                               \
    X(EMPTY, 0x2)                                                                                                      \
    X(PRIVATE, 0x4)                                                                                                    \
    X(DMA_SOURCE_ONLY, 0x8)                                                                                            \
    X(FORCE_REMOVE, 0x20)                                                                                              \
    X(BROADCAST, 0x40000)                                                                                              \
    X(AUTO_ID, 0x20000000)                                                                                             \
    X(ASYNCHRONOUS_CONNECT, 0x2)                                                                                       \
    X(NOTIFY, 0x1)                                                                                                     \
    X(FORCE_DISCONNECT, 0x2)                                                                                           \
    X(FIXED_INTNO, 0x2)                                                                                                \
    X(SHARED_INT, 0x4)                                                                                                 \
    X(CONDITIONAL_INTERRUPT, 0x8)                                                                                      \
    X(COUNTING_INT, 0x20)                                                                                              \
    X(FIXED_MAP_ADDR, 0x1)                                                                                             \
    X(READONLY_MAP, 0x2)                                                                                               \
    X(LOCK_OPERATION, 0x4)                                                                                             \
    X(CONDITIONAL_INTERRUPT_MAP, 0x8)                                                                                  \
    X(UNCONDITIONAL_DATA_INTERRUPT_MAP, 0x10)                                                                          \
    X(READ_PREFETCH_AGGR_HOLD_MAP, 0x20)                                                                               \
    X(READ_PREFETCH_HOLD_MAP, 0x40)                                                                                    \
    X(IO_MAP_IOSPACE, 0x80)                                                                                            \
    X(READ_PREFETCH_NO_HOLD_MAP, 0x100)                                                                                \
    X(WRITES_ENABLE_GATHER_MAP, 0x200)                                                                                 \
    X(DMOVE_MAP, 0x400)                                                                                                \
    X(NO_MEMORY_LOOPBACK_MAP, 0x800)                                                                                   \
    X(WRITE_BACK_CACHE_MAP, 0x1000)                                                                                    \
    X(SHARED_MAP, 0x2000)                                                                                              \
    X(WRITES_DISABLE_GATHER_MAP, 0x4000)                                                                               \
    X(DISABLE_128_BYTES_PACKETS, 0x8000)                                                                               \
    X(READ_ORDERING_MAP, 0x10000)                                                                                      \
    X(WRITE_ORDERING_MAP, 0x20000)                                                                                     \
    X(FAST_BARRIER, 0x1)                                                                                               \
    X(NO_FLUSH, 0x1)                                                                                                   \
    X(NO_STORE_BARRIER, 0x2)                                                                                           \
    X(FLUSH_CPU_BUFFERS_ONLY, 0x1)                                                                                     \
    X(BLOCK_READ, 0x2)                                                                                                 \
    X(ERROR_CHECK, 0x4)                                                                                                \
    X(DMA_WAIT, 0x4)                                                                                                   \
    X(DMA_RESET, 0x8)                                                                                                  \
    X(DMA_READ, 0x10)                                                                                                  \
    X(DMA_PHDMA, 0x20)                                                                                                 \
    X(DMA_GLOBAL, 0x40)                                                                                                \
    X(DMA_SYSDMA, 0x100)                                                                                               \
    X(DMA_USER_MEM, 0x200)                                                                                             \
    X(LOCK_USER_MEM, 0x400)                                                                                            \
    X(CACHE_FLUSH, 0x1)                                                                                                \
    X(CACHE_INVALIDATE, 0x2)

/* Commands of SCIQuery, and what can be asked of an adapter; the numbers are of this implementation. */
#define CCI__SCI_QUERIES(X)                                                                                            \
    X(VENDORID, 1) /* sci_query_string_t */                                                                            \
    X(API, 2)      /* sci_query_string_t: the version, "1.10" */                                                       \
    X(ADAPTER, 3)  /* sci_query_adapter_t; data points to an unsigned int */                                           \
    X(ADAPTER_NODEID, 1)                                                                                               \
    X(ADAPTER_SERIAL_NUMBER, 2)                                                                                        \
    X(ADAPTER_CARD_TYPE, 3)                                                                                            \
    X(ADAPTER_NUMBER_OF_LINKS, 4)                                                                                      \
    X(ADAPTER_LINK_OPERATIONAL, 5)                                                                                     \
    X(LOCAL_SEGMENT, 4)  /* sci_query_local_segment_t */                                                               \
    X(REMOTE_SEGMENT, 5) /* sci_query_remote_segment_t */                                                              \
    X(LOCAL_SEGMENT_IOADDR, 1)                                                                                         \
    X(REMOTE_SEGMENT_IOADDR, 1)

#define CCI__SCI_ENUM_ERROR(name, value) CCI__SCI_ERR_##name = value,
#define CCI__SCI_ENUM_FLAG(name, value) CCI__SCI_FLAG_##name = value,
#define CCI__SCI_ENUM_QUERY(name, value) CCI__SCI_Q_##name = value,
enum { CCI__SCI_FLAGS(CCI__SCI_ENUM_FLAG) CCI__SCI_FLAG_LAST_ };
enum { CCI__SCI_QUERIES(CCI__SCI_ENUM_QUERY) CCI__SCI_Q_LAST_ };

typedef enum cci__sci_error {
    CCI__SCI_ERRORS(CCI__SCI_ENUM_ERROR)
#ifdef CCI_SISCI_API
#define CCI__SCI_STANDARD_ERROR(name, value) SCI_ERR_##name = value,
        CCI__SCI_ERRORS(CCI__SCI_STANDARD_ERROR)
#endif
            CCI__SCI_ERR_LAST_
} cci__sci_error_t;

#define CCI__SCI_INFINITE_TIMEOUT 0xffffffffu
#define CCI__SCI_BROADCAST_NODEID 252u
#define CCI__SCI_DATA_INTERRUPT_MAX 256u /* bytes that one data interrupt carries */

typedef enum cci__sci_segment_cb_reason {
    CCI__SCI_CB_CONNECT = 1,
    CCI__SCI_CB_DISCONNECT,
    CCI__SCI_CB_NOT_OPERATIONAL,
    CCI__SCI_CB_OPERATIONAL,
    CCI__SCI_CB_LOST
} cci__sci_segment_cb_reason_t;

typedef enum cci__sci_dma_queue_state {
    CCI__SCI_DMAQUEUE_IDLE,
    CCI__SCI_DMAQUEUE_GATHER,
    CCI__SCI_DMAQUEUE_POSTED,
    CCI__SCI_DMAQUEUE_DONE,
    CCI__SCI_DMAQUEUE_ABORTED,
    CCI__SCI_DMAQUEUE_ERROR
} cci__sci_dma_queue_state_t;

typedef enum cci__sci_sequence_status {
    CCI__SCI_SEQ_OK,
    CCI__SCI_SEQ_RETRIABLE,
    CCI__SCI_SEQ_NOT_RETRIABLE,
    CCI__SCI_SEQ_PENDING
} cci__sci_sequence_status_t;

typedef enum cci__sci_callback_action {
    CCI__SCI_CALLBACK_CANCEL = 1,
    CCI__SCI_CALLBACK_CONTINUE
} cci__sci_callback_action_t;

typedef struct cci__sci_desc *cci__sci_desc_t;
typedef struct cci__sci_local_segment *cci__sci_local_segment_t;
typedef struct cci__sci_remote_segment *cci__sci_remote_segment_t;
typedef struct cci__sci_map *cci__sci_map_t;
typedef struct cci__sci_sequence *cci__sci_sequence_t;
typedef struct cci__sci_dma_queue *cci__sci_dma_queue_t;
typedef struct cci__sci_local_interrupt *cci__sci_local_interrupt_t;
typedef struct cci__sci_remote_interrupt *cci__sci_remote_interrupt_t;
typedef struct cci__sci_local_data_interrupt *cci__sci_local_data_interrupt_t;
typedef struct cci__sci_remote_data_interrupt *cci__sci_remote_data_interrupt_t;
typedef struct cci__sci_block_transfer *cci__sci_block_transfer_t;

typedef uint64_t cci__sci_ioaddr_t;
typedef unsigned int cci__dis_nodeId_list_t[8]; /* ends with 0 */
typedef unsigned int cci__dis_adapter_type_t;   /* 0: not known */

typedef struct cci__sci_address {
    uint16_t nodeId; /* the node */
    uint16_t offsHi; /* where in its memory: the upper bits */
    uint32_t offsLo; /* the lower */
} cci__sci_address_t;

typedef struct cci__sci_query_string {
    char *str;           /* the program's buffer */
    unsigned int length; /* its bytes */
} cci__sci_query_string_t;

/* A piece of a transfer of several, of which there are up to CCI__DIS_DMA_MAX_VECLEN. */
#define CCI__DIS_DMA_MAX_VECLEN 100u
typedef struct cci__dis_dma_vec {
    unsigned int size, local_offset, remote_offset, flags; /* bytes; where they begin; of the piece */
} cci__dis_dma_vec_t;

/* What is asked of a segment has an answer through an adapter alone. */
typedef struct cci__sci_query_local_segment {
    cci__sci_local_segment_t segment;
    unsigned int subcommand; /* SCI_Q_LOCAL_SEGMENT_... */
    union {
        cci__sci_ioaddr_t ioaddr;
    } data;
} cci__sci_query_local_segment_t;

typedef struct cci__sci_query_remote_segment {
    cci__sci_remote_segment_t segment;
    unsigned int subcommand; /* SCI_Q_REMOTE_SEGMENT_... */
    union {
        cci__sci_ioaddr_t ioaddr;
    } data;
} cci__sci_query_remote_segment_t;

typedef struct cci__sci_query_adapter {
    unsigned int localAdapterNo; /* which is asked */
    unsigned int portNo;         /* of its links */
    unsigned int subcommand;     /* SCI_Q_ADAPTER_... */
    void *data;                  /* where the answer goes */
} cci__sci_query_adapter_t;

typedef cci__sci_callback_action_t (*cci__sci_cb_local_segment_t)(void *arg, cci__sci_local_segment_t segment,
                                                                  cci__sci_segment_cb_reason_t reason,
                                                                  unsigned int nodeId, unsigned int localAdapterNo,
                                                                  cci__sci_error_t error);
typedef cci__sci_callback_action_t (*cci__sci_cb_remote_segment_t)(void *arg, cci__sci_remote_segment_t segment,
                                                                   cci__sci_segment_cb_reason_t reason,
                                                                   cci__sci_error_t status);
typedef cci__sci_callback_action_t (*cci__sci_cb_dma_t)(void *arg, cci__sci_dma_queue_t queue, cci__sci_error_t status);
typedef int (*cci__sci_cb_block_transfer_t)(void *arg, cci__sci_block_transfer_t block, cci__sci_error_t status);
typedef cci__sci_callback_action_t (*cci__sci_cb_interrupt_t)(void *arg, cci__sci_local_interrupt_t interrupt,
                                                              cci__sci_error_t status);
typedef cci__sci_callback_action_t (*cci__sci_cb_data_interrupt_t)(void *arg, cci__sci_local_data_interrupt_t interrupt,
                                                                   void *data, unsigned int length,
                                                                   cci__sci_error_t status);

typedef void *cci__sci_pointer_t;
typedef volatile void *cci__sci_volatile_t;
typedef unsigned int cci__sci_unsigned_t;

/* Every function: X(kind, type, name, parameters). SIZE is the type of sizes and offsets: `unsigned int` up to API 1.x,
 * as in the manual, `size_t` since API 2.0. Kind: V returns nothing, R something; E has an `error`, N has none. */
#define CCI__SCI_POSSIBLE(X, SIZE)                                                                                     \
    X(VE, void, SCIInitialize, (unsigned int flags, cci__sci_error_t *error))                                          \
    X(VN, void, SCITerminate, (void))                                                                                  \
    X(VE, void, SCIOpen, (cci__sci_desc_t * sd, unsigned int flags, cci__sci_error_t *error))                          \
    X(VE, void, SCIClose, (cci__sci_desc_t sd, unsigned int flags, cci__sci_error_t *error))                           \
    X(VE, void, SCIConnectSegment,                                                                                     \
      (cci__sci_desc_t sd, cci__sci_remote_segment_t * segment, unsigned int nodeId, unsigned int segmentId,           \
       unsigned int localAdapterNo, cci__sci_cb_remote_segment_t callback, void *callbackArg, unsigned int timeout,    \
       unsigned int flags, cci__sci_error_t *error))                                                                   \
    X(VE, void, SCIDisconnectSegment,                                                                                  \
      (cci__sci_remote_segment_t segment, unsigned int flags, cci__sci_error_t *error))                                \
    X(RN, SIZE, SCIGetRemoteSegmentSize, (cci__sci_remote_segment_t segment))                                          \
    X(RE, cci__sci_segment_cb_reason_t, SCIWaitForRemoteSegmentEvent,                                                  \
      (cci__sci_remote_segment_t segment, cci__sci_error_t * status, unsigned int timeout, unsigned int flags,         \
       cci__sci_error_t *error))                                                                                       \
    X(RE, cci__sci_volatile_t, SCIMapRemoteSegment,                                                                    \
      (cci__sci_remote_segment_t segment, cci__sci_map_t * map, SIZE offset, SIZE size, void *addr,                    \
       unsigned int flags, cci__sci_error_t *error))                                                                   \
    X(RE, cci__sci_pointer_t, SCIMapLocalSegment,                                                                      \
      (cci__sci_local_segment_t segment, cci__sci_map_t * map, SIZE offset, SIZE size, void *addr, unsigned int flags, \
       cci__sci_error_t *error))                                                                                       \
    X(VE, void, SCIUnmapSegment, (cci__sci_map_t map, unsigned int flags, cci__sci_error_t *error))                    \
    X(VE, void, SCICreateSegment,                                                                                      \
      (cci__sci_desc_t sd, cci__sci_local_segment_t * segment, unsigned int segmentId, SIZE size,                      \
       cci__sci_cb_local_segment_t callback, void *callbackArg, unsigned int flags, cci__sci_error_t *error))          \
    X(RE, cci__sci_segment_cb_reason_t, SCIWaitForLocalSegmentEvent,                                                   \
      (cci__sci_local_segment_t segment, unsigned int *sourcenodeId, unsigned int *localAdapterNo,                     \
       unsigned int timeout, unsigned int flags, cci__sci_error_t *error))                                             \
    X(VE, void, SCIPrepareSegment,                                                                                     \
      (cci__sci_local_segment_t segment, unsigned int localAdapterNo, unsigned int flags, cci__sci_error_t *error))    \
    X(VE, void, SCIRemoveSegment, (cci__sci_local_segment_t segment, unsigned int flags, cci__sci_error_t *error))     \
    X(VE, void, SCISetSegmentAvailable,                                                                                \
      (cci__sci_local_segment_t segment, unsigned int localAdapterNo, unsigned int flags, cci__sci_error_t *error))    \
    X(VE, void, SCISetSegmentUnavailable,                                                                              \
      (cci__sci_local_segment_t segment, unsigned int localAdapterNo, unsigned int flags, cci__sci_error_t *error))    \
    X(VE, void, SCICreateMapSequence,                                                                                  \
      (cci__sci_map_t map, cci__sci_sequence_t * sequence, unsigned int flags, cci__sci_error_t *error))               \
    X(VE, void, SCIRemoveSequence, (cci__sci_sequence_t sequence, unsigned int flags, cci__sci_error_t *error))        \
    X(RE, cci__sci_sequence_status_t, SCIStartSequence,                                                                \
      (cci__sci_sequence_t sequence, unsigned int flags, cci__sci_error_t *error))                                     \
    X(RE, cci__sci_sequence_status_t, SCICheckSequence,                                                                \
      (cci__sci_sequence_t sequence, unsigned int flags, cci__sci_error_t *error))                                     \
    X(VN, void, SCIStoreBarrier, (cci__sci_sequence_t sequence, unsigned int flags))                                   \
    X(VN, void, SCIFlushReadBuffers, (cci__sci_sequence_t sequence))                                                   \
    X(RE, int, SCIProbeNode,                                                                                           \
      (cci__sci_desc_t sd, unsigned int localAdapterNo, unsigned int nodeId, unsigned int flags,                       \
       cci__sci_error_t *error))                                                                                       \
    X(VE, void, SCIQuery, (unsigned int command, void *data, unsigned int flags, cci__sci_error_t *error))             \
    X(VE, void, SCIGetLocalNodeId,                                                                                     \
      (unsigned int adapterNo, unsigned int *nodeId, unsigned int flags, cci__sci_error_t *error))                     \
    X(VE, void, SCIGetNodeIdByAdapterName,                                                                             \
      (char *adaptername, cci__dis_nodeId_list_t *nodeId, cci__dis_adapter_type_t *type, unsigned int flags,           \
       cci__sci_error_t *error))                                                                                       \
    X(VE, void, SCIGetNodeInfoByAdapterName,                                                                           \
      (char *adaptername, unsigned int *adapterNo, cci__dis_nodeId_list_t *nodeIdlist, cci__dis_adapter_type_t *type,  \
       unsigned int flags, cci__sci_error_t *error))                                                                   \
    X(VE, void, SCICreateDMAQueue,                                                                                     \
      (cci__sci_desc_t sd, cci__sci_dma_queue_t * dq, unsigned int localAdapterNo, unsigned int maxEntries,            \
       unsigned int flags, cci__sci_error_t *error))                                                                   \
    X(VE, void, SCIRemoveDMAQueue, (cci__sci_dma_queue_t dq, unsigned int flags, cci__sci_error_t *error))             \
    X(RE, cci__sci_dma_queue_state_t, SCIEnqueueDMATransfer,                                                           \
      (cci__sci_dma_queue_t dq, cci__sci_local_segment_t localSegment, cci__sci_remote_segment_t remoteSegment,        \
       SIZE localOffset, SIZE remoteOffset, SIZE size, unsigned int flags, cci__sci_error_t *error))                   \
    X(VE, void, SCIPostDMAQueue,                                                                                       \
      (cci__sci_dma_queue_t dq, cci__sci_cb_dma_t callback, void *callbackArg, unsigned int flags,                     \
       cci__sci_error_t *error))                                                                                       \
    X(VE, void, SCIAbortDMAQueue, (cci__sci_dma_queue_t dq, unsigned int flags, cci__sci_error_t *error))              \
    X(VE, void, SCIResetDMAQueue, (cci__sci_dma_queue_t dq, unsigned int flags, cci__sci_error_t *error))              \
    X(RN, cci__sci_dma_queue_state_t, SCIDMAQueueState, (cci__sci_dma_queue_t dq))                                     \
    X(RE, cci__sci_dma_queue_state_t, SCIWaitForDMAQueue,                                                              \
      (cci__sci_dma_queue_t dq, unsigned int timeout, unsigned int flags, cci__sci_error_t *error))                    \
    X(VE, void, SCICreateInterrupt,                                                                                    \
      (cci__sci_desc_t sd, cci__sci_local_interrupt_t * interrupt, unsigned int localAdapterNo,                        \
       unsigned int *interruptNo, cci__sci_cb_interrupt_t callback, void *callbackArg, unsigned int flags,             \
       cci__sci_error_t *error))                                                                                       \
    X(VE, void, SCIRemoveInterrupt,                                                                                    \
      (cci__sci_local_interrupt_t interrupt, unsigned int flags, cci__sci_error_t *error))                             \
    X(VE, void, SCIWaitForInterrupt,                                                                                   \
      (cci__sci_local_interrupt_t interrupt, unsigned int timeout, unsigned int flags, cci__sci_error_t *error))       \
    X(VE, void, SCIConnectInterrupt,                                                                                   \
      (cci__sci_desc_t sd, cci__sci_remote_interrupt_t * interrupt, unsigned int nodeId, unsigned int localAdapterNo,  \
       unsigned int interruptNo, unsigned int timeout, unsigned int flags, cci__sci_error_t *error))                   \
    X(VE, void, SCIDisconnectInterrupt,                                                                                \
      (cci__sci_remote_interrupt_t interrupt, unsigned int flags, cci__sci_error_t *error))                            \
    X(VE, void, SCITriggerInterrupt,                                                                                   \
      (cci__sci_remote_interrupt_t interrupt, unsigned int flags, cci__sci_error_t *error))                            \
    X(VE, void, SCICreateDataInterrupt,                                                                                \
      (cci__sci_desc_t sd, cci__sci_local_data_interrupt_t * interrupt, unsigned int localAdapterNo,                   \
       unsigned int *interruptNo, cci__sci_cb_data_interrupt_t callback, void *callbackArg, unsigned int flags,        \
       cci__sci_error_t *error))                                                                                       \
    X(VE, void, SCIRemoveDataInterrupt,                                                                                \
      (cci__sci_local_data_interrupt_t interrupt, unsigned int flags, cci__sci_error_t *error))                        \
    X(VE, void, SCIWaitForDataInterrupt,                                                                               \
      (cci__sci_local_data_interrupt_t interrupt, void *data, unsigned int *length, unsigned int timeout,              \
       unsigned int flags, cci__sci_error_t *error))                                                                   \
    X(VE, void, SCIConnectDataInterrupt,                                                                               \
      (cci__sci_desc_t sd, cci__sci_remote_data_interrupt_t * interrupt, unsigned int nodeId,                          \
       unsigned int localAdapterNo, unsigned int interruptNo, unsigned int timeout, unsigned int flags,                \
       cci__sci_error_t *error))                                                                                       \
    X(VE, void, SCIDisconnectDataInterrupt,                                                                            \
      (cci__sci_remote_data_interrupt_t interrupt, unsigned int flags, cci__sci_error_t *error))                       \
    X(VE, void, SCITriggerDataInterrupt,                                                                               \
      (cci__sci_remote_data_interrupt_t interrupt, void *data, unsigned int length, unsigned int flags,                \
       cci__sci_error_t *error))                                                                                       \
    X(VE, void, SCITransferBlock,                                                                                      \
      (cci__sci_map_t sourceMap, SIZE sourceOffset, cci__sci_map_t destinationMap, SIZE destinationOffset, SIZE size,  \
       unsigned int flags, cci__sci_error_t *error))                                                                   \
    X(VE, void, SCITransferBlockAsync,                                                                                 \
      (cci__sci_map_t sourceMap, SIZE sourceOffset, cci__sci_map_t destinationMap, SIZE destinationOffset, SIZE size,  \
       cci__sci_block_transfer_t * block, cci__sci_cb_block_transfer_t callback, void *callbackArg,                    \
       unsigned int flags, cci__sci_error_t *error))                                                                   \
    X(VE, void, SCIWaitForBlockTransfer,                                                                               \
      (cci__sci_block_transfer_t block, unsigned int timeout, unsigned int flags, cci__sci_error_t *error))            \
    X(VE, void, SCIAbortBlockTransfer, (cci__sci_block_transfer_t block, unsigned int flags, cci__sci_error_t *error)) \
    X(VE, void, SCIMemWrite,                                                                                           \
      (void *memAddr, volatile void *remoteAddr, SIZE size, unsigned int flags, cci__sci_error_t *error))              \
    X(VE, void, SCIMemWrite_mcast,                                                                                     \
      (void *memAddr, volatile void *remoteAddr[], SIZE size, unsigned int dst_num, unsigned int flags,                \
       cci__sci_error_t *error))                                                                                       \
    X(VE, void, SCIMemWrite_dual,                                                                                      \
      (volatile void *memAddr, volatile void *remoteAddr1, cci__sci_map_t remoteMap1, volatile void *remoteAddr2,      \
       cci__sci_map_t remoteMap2, SIZE size, unsigned int flags, cci__sci_error_t *error))                             \
    X(VE, void, SCIMemCpy,                                                                                             \
      (cci__sci_sequence_t sequence, void *memAddr, cci__sci_map_t remoteMap, SIZE remoteOffset, SIZE size,            \
       unsigned int flags, cci__sci_error_t *error))                                                                   \
    X(VE, void, SCIMemCopy,                                                                                            \
      (void *memAddr, cci__sci_map_t remoteMap, SIZE remoteOffset, SIZE size, unsigned int flags,                      \
       cci__sci_error_t *error))                                                                                       \
    X(VE, void, SCIMemCpy_dual,                                                                                        \
      (cci__sci_sequence_t sequence1, cci__sci_sequence_t sequence2, void *memAddr, cci__sci_map_t remoteMap1,         \
       cci__sci_map_t remoteMap2, SIZE remoteOffset, SIZE size, unsigned int flags, cci__sci_error_t *error))          \
    X(VE, void, SCIMemCpy_mcast,                                                                                       \
      (cci__sci_sequence_t sequence[], void *memAddr, cci__sci_map_t remoteMap[], SIZE remoteOffset[], SIZE size,      \
       unsigned int dst_num, unsigned int flags, cci__sci_error_t *error))                                             \
    X(VE, void, SCIRegisterSegmentMemory,                                                                              \
      (void *address, SIZE size, cci__sci_local_segment_t segment, unsigned int flags, cci__sci_error_t *error))       \
    X(VE, void, SCIAttachLocalSegment,                                                                                 \
      (cci__sci_desc_t sd, cci__sci_local_segment_t * segment, unsigned int segmentId, SIZE *size,                     \
       cci__sci_cb_local_segment_t callback, void *callbackArg, unsigned int flags, cci__sci_error_t *error))          \
    X(VE, void, SCIShareSegment, (cci__sci_local_segment_t segment, unsigned int flags, cci__sci_error_t *error))      \
    X(VN, void, SCIFlush, (cci__sci_sequence_t sequence, unsigned int flags))

/* Those that need an adapter. */
#define CCI__SCI_IMPOSSIBLE(X, SIZE)                                                                                   \
    X(RE, cci__sci_unsigned_t, SCIGetCSRRegister,                                                                      \
      (cci__sci_desc_t sd, unsigned int localAdapterNo, unsigned int SCINodeId, unsigned int CSROffset,                \
       unsigned int flags, cci__sci_error_t *error))                                                                   \
    X(VE, void, SCISetCSRRegister,                                                                                     \
      (cci__sci_desc_t sd, unsigned int localAdapterNo, unsigned int SCINodeId, unsigned int CSROffset,                \
       unsigned int CSRValue, unsigned int flags, cci__sci_error_t *error))                                            \
    X(RE, cci__sci_unsigned_t, SCIGetLocalCSR,                                                                         \
      (cci__sci_desc_t sd, unsigned int localAdapterNo, unsigned int CSROffset, unsigned int flags,                    \
       cci__sci_error_t *error))                                                                                       \
    X(VE, void, SCISetLocalCSR,                                                                                        \
      (cci__sci_desc_t sd, unsigned int localAdapterNo, unsigned int CSROffset, unsigned int CSRValue,                 \
       unsigned int flags, cci__sci_error_t *error))                                                                   \
    X(VE, void, SCIAttachPhysicalMemory,                                                                               \
      (cci__sci_ioaddr_t ioaddress, void *address, unsigned int busNo, SIZE size, cci__sci_local_segment_t segment,    \
       unsigned int flags, cci__sci_error_t *error))                                                                   \
    X(VE, void, SCIphDmaEnqueue,                                                                                       \
      (cci__sci_dma_queue_t dmaqueue, unsigned int size, cci__sci_ioaddr_t localBusAddr, unsigned int remote_nodeid,   \
       unsigned int remote_highaddr, unsigned int remote_lowaddr, unsigned int flags, cci__sci_error_t *error))        \
    X(RE, cci__sci_dma_queue_state_t, SCIphDmaStart,                                                                   \
      (cci__sci_dma_queue_t dmaqueue, cci__sci_cb_dma_t callback, void *callbackArg, unsigned int flags,               \
       cci__sci_error_t *error))                                                                                       \
    X(VE, void, SCIRegisterInterruptFlag,                                                                              \
      (unsigned int localAdapterNo, cci__sci_local_interrupt_t *interrupt, cci__sci_local_segment_t segment,           \
       SIZE offset, cci__sci_cb_interrupt_t callback, void *callbackArg, unsigned int flags, cci__sci_error_t *error)) \
    X(VE, void, SCIEnableConditionalInterrupt,                                                                         \
      (cci__sci_local_interrupt_t interrupt, unsigned int flags, cci__sci_error_t *error))                             \
    X(VE, void, SCIDisableConditionalInterrupt,                                                                        \
      (cci__sci_local_interrupt_t interrupt, unsigned int flags, cci__sci_error_t *error))                             \
    X(VE, void, SCIGetConditionalInterruptTrigCounter,                                                                 \
      (cci__sci_local_interrupt_t interrupt, unsigned int *interruptTrigCounter, unsigned int flags,                   \
       cci__sci_error_t *error))                                                                                       \
    X(VE, void, SCIConnectSCISpace,                                                                                    \
      (cci__sci_desc_t sd, unsigned int localAdapterNo, cci__sci_remote_segment_t *segment,                            \
       cci__sci_address_t address, SIZE size, unsigned int flags, cci__sci_error_t *error))

#define CCI__SCI_FUNCTIONS(X, SIZE) CCI__SCI_POSSIBLE(X, SIZE) CCI__SCI_IMPOSSIBLE(X, SIZE)

/* Later than the manual: of shared memory alone, and not asked of the library of an adapter. */
#define CCI__SCI_LATER(X, SIZE)                                                                                        \
    X(RN, cci__sci_unsigned_t, SCIGetLocalSegmentId, (cci__sci_local_segment_t segment))                               \
    X(RN, cci__sci_unsigned_t, SCIGetRemoteSegmentId, (cci__sci_remote_segment_t segment))                             \
    X(RN, SIZE, SCIGetLocalSegmentSize, (cci__sci_local_segment_t segment))                                            \
    X(VE, void, SCICacheSync,                                                                                          \
      (cci__sci_map_t map, void *addr, SIZE length, unsigned int flags, cci__sci_error_t *error))                      \
    X(VE, void, SCIStartDmaTransfer,                                                                                   \
      (cci__sci_dma_queue_t dq, cci__sci_local_segment_t localSegment, cci__sci_remote_segment_t remoteSegment,        \
       SIZE localOffset, SIZE size, SIZE remoteOffset, cci__sci_cb_dma_t callback, void *callbackArg,                  \
       unsigned int flags, cci__sci_error_t *error))                                                                   \
    X(VE, void, SCIStartDmaTransferVec,                                                                                \
      (cci__sci_dma_queue_t dq, cci__sci_local_segment_t localSegment, cci__sci_remote_segment_t remoteSegment,        \
       SIZE vecLength, cci__dis_dma_vec_t * disDmaVec, cci__sci_cb_dma_t callback, void *callbackArg,                  \
       unsigned int flags, cci__sci_error_t *error))

#define CCI__SCI_POINTER(kind, type, name, parameters) type(*name) parameters;

/* A provider of SISCI: this header, or the library of an adapter. */
typedef struct cci__sci_functions {
    CCI__SCI_FUNCTIONS(CCI__SCI_POINTER, unsigned int)
} cci__sci_functions;

/* The functions are called as in the manual when the program asks for that, and are private otherwise. */
#ifdef CCI_SISCI_API
#define CCI__SCI(name) name
#define CCI__SCI_LINKAGE CCI_API
#else
#define CCI__SCI(name) cci__sci_##name
#define CCI__SCI_LINKAGE static
#endif

#ifdef CCI_SISCI_API

#define CCI__SCI_STANDARD_FLAG(name, value) SCI_FLAG_##name = value,
#define CCI__SCI_STANDARD_QUERY(name, value) SCI_Q_##name = value,
enum { CCI__SCI_FLAGS(CCI__SCI_STANDARD_FLAG) SCI_FLAG_LAST_ };
enum { CCI__SCI_QUERIES(CCI__SCI_STANDARD_QUERY) SCI_Q_LAST_ };

#define SCI_FLAG_NO_MEMORY_LOOPBACK SCI_FLAG_NO_MEMORY_LOOPBACK_MAP
#define SCI_FLAG_UNCONDITIONAL_INTERRUPT_MAP SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP
#define DIS_BROADCAST_NODEID_GROUP_ALL CCI__SCI_BROADCAST_NODEID
#define DIS_DMA_MAX_VECLEN CCI__DIS_DMA_MAX_VECLEN
#define SCI_INFINITE_TIMEOUT CCI__SCI_INFINITE_TIMEOUT
#define SCI_BROADCAST_NODEID CCI__SCI_BROADCAST_NODEID
#define SCI_CB_CONNECT CCI__SCI_CB_CONNECT
#define SCI_CB_DISCONNECT CCI__SCI_CB_DISCONNECT
#define SCI_CB_NOT_OPERATIONAL CCI__SCI_CB_NOT_OPERATIONAL
#define SCI_CB_OPERATIONAL CCI__SCI_CB_OPERATIONAL
#define SCI_CB_LOST CCI__SCI_CB_LOST
#define SCI_DMAQUEUE_IDLE CCI__SCI_DMAQUEUE_IDLE
#define SCI_DMAQUEUE_GATHER CCI__SCI_DMAQUEUE_GATHER
#define SCI_DMAQUEUE_POSTED CCI__SCI_DMAQUEUE_POSTED
#define SCI_DMAQUEUE_DONE CCI__SCI_DMAQUEUE_DONE
#define SCI_DMAQUEUE_ABORTED CCI__SCI_DMAQUEUE_ABORTED
#define SCI_DMAQUEUE_ERROR CCI__SCI_DMAQUEUE_ERROR
#define SCI_SEQ_OK CCI__SCI_SEQ_OK
#define SCI_SEQ_RETRIABLE CCI__SCI_SEQ_RETRIABLE
#define SCI_SEQ_NOT_RETRIABLE CCI__SCI_SEQ_NOT_RETRIABLE
#define SCI_SEQ_PENDING CCI__SCI_SEQ_PENDING
#define SCI_CALLBACK_CANCEL CCI__SCI_CALLBACK_CANCEL
#define SCI_CALLBACK_CONTINUE CCI__SCI_CALLBACK_CONTINUE

typedef cci__sci_error_t sci_error_t;
typedef cci__sci_segment_cb_reason_t sci_segment_cb_reason_t;
typedef cci__sci_dma_queue_state_t sci_dma_queue_state_t;
typedef cci__sci_sequence_status_t sci_sequence_status_t;
typedef cci__sci_callback_action_t sci_callback_action_t;
typedef cci__sci_desc_t sci_desc_t;
typedef cci__sci_local_segment_t sci_local_segment_t;
typedef cci__sci_remote_segment_t sci_remote_segment_t;
typedef cci__sci_map_t sci_map_t;
typedef cci__sci_sequence_t sci_sequence_t;
typedef cci__sci_dma_queue_t sci_dma_queue_t;
typedef cci__sci_local_interrupt_t sci_local_interrupt_t;
typedef cci__sci_remote_interrupt_t sci_remote_interrupt_t;
typedef cci__sci_local_data_interrupt_t sci_local_data_interrupt_t;
typedef cci__sci_remote_data_interrupt_t sci_remote_data_interrupt_t;
typedef cci__sci_block_transfer_t sci_block_transfer_t;
typedef cci__sci_ioaddr_t sci_ioaddr_t;
typedef cci__dis_nodeId_list_t dis_nodeId_list_t;
typedef cci__dis_adapter_type_t dis_adapter_type_t;
typedef cci__dis_dma_vec_t dis_dma_vec_t;
typedef cci__sci_query_local_segment_t sci_query_local_segment_t;
typedef cci__sci_query_remote_segment_t sci_query_remote_segment_t;
typedef cci__sci_address_t sci_address_t;
typedef cci__sci_query_string_t sci_query_string_t;
typedef cci__sci_query_adapter_t sci_query_adapter_t;
typedef cci__sci_cb_local_segment_t sci_cb_local_segment_t;
typedef cci__sci_cb_remote_segment_t sci_cb_remote_segment_t;
typedef cci__sci_cb_dma_t sci_cb_dma_t;
typedef cci__sci_cb_block_transfer_t sci_cb_block_transfer_t;
typedef cci__sci_cb_interrupt_t sci_cb_interrupt_t;
typedef cci__sci_cb_data_interrupt_t sci_cb_data_interrupt_t;

#ifdef __cplusplus
extern "C" {
#endif
#define CCI__SCI_DECLARE(kind, type, name, parameters) CCI_API type name parameters;
CCI__SCI_FUNCTIONS(CCI__SCI_DECLARE, unsigned int)
CCI__SCI_LATER(CCI__SCI_DECLARE, unsigned int)
CCI_API const char *SCIGetErrorString(cci__sci_error_t error);
#ifdef __cplusplus
}
#endif

#endif /* CCI_SISCI_API */

#endif /* CCI_SISCI_H */
/* end of header */

#if (defined(CCI_IMPLEMENTATION) || defined(CCI_SISCI_IMPLEMENTATION)) && !defined(CCI_SISCI_IMPLEMENTED)
#define CCI_SISCI_IMPLEMENTED

/* ==================================================================================================================
 * >>sisci-system
 *
 * A program may have included system headers before this one, without asking for GNU declarations: what Linux offers
 * beyond POSIX is called by number. So is what programs have names of their own for: accept, listen, shutdown.
 * ================================================================================================================== */

#if defined(__GLIBC__) && !defined(__USE_MISC)
#error "a system header was included in strict ISO mode: include cci_sisci.h first, or define _DEFAULT_SOURCE"
#elif !defined(__linux__) || defined(CCI_SISCI_NO_SHARED_MEMORY)
#define CCI__SCI_SOFTWARE 0
#else
#define CCI__SCI_SOFTWARE 1

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>

/* Can fork() be noticed? (Before version 2.34, glibc had pthread_atfork() in the library of threads alone.) */
#if !defined(CCI_NO_THREADS) || !defined(__GLIBC__) || __GLIBC__ > 2 || __GLIBC_MINOR__ >= 34
#include <pthread.h>
#define CCI__SCI_HAS_ATFORK 1
#else
#define CCI__SCI_HAS_ATFORK 0
#endif

/* Linux' numbers that C libraries declare only when asked. */
#define CCI__SCI_F_ADD_SEALS 1033
#define CCI__SCI_F_GET_SEALS 1034
#define CCI__SCI_SEALS (1 /* no more seals */ | 2 /* can't shrink */ | 4 /* can't grow */)
#define CCI__SCI_MFD_CLOEXEC_SEALING 3u
#define CCI__SCI_RWF_NOWAIT 8
#define CCI__SCI_F_OFD_GETLK 36
#define CCI__SCI_F_OFD_SETLK 37
#ifdef SYS_fcntl64
#define CCI__SCI_SYS_FCNTL SYS_fcntl64
#else
#define CCI__SCI_SYS_FCNTL SYS_fcntl
#endif

typedef struct cci__sci_range { /* the kernel's struct flock64 */
    int16_t type, whence;       /* F_RDLCK, ...; SEEK_SET */
    int64_t start, length;      /* in bytes */
    int32_t pid;                /* 0 */
} cci__sci_range;

typedef struct cci__sci_ucred { /* the kernel's struct ucred */
    int32_t pid;                /* the process */
    uint32_t uid, gid;          /* its user and group */
} cci__sci_ucred;

/* Room for one descriptor, aligned for struct cmsghdr. */
typedef union cci__sci_control {
    char bytes[64]; /* the control message */
    size_t align;   /* as its header needs */
} cci__sci_control;

/* What a thread looks at without the lock. */
#define CCI__SCI_LOAD(object) __atomic_load_n(&(object), __ATOMIC_ACQUIRE)
#define CCI__SCI_STORE(object, value) __atomic_store_n(&(object), (value), __ATOMIC_RELEASE)

/* The thread sanitizer does not know fences, and gcc says so. */
#ifdef __SANITIZE_THREAD__
#define CCI__SCI_FENCE(order) ((void)0)
#else
#define CCI__SCI_FENCE(order) __atomic_thread_fence(__ATOMIC_##order)
#endif

/* The steps between which other processes can come in: tests hold a process there, or make it wait for a moment. */
#ifndef CCI__SCI_DELAY_POINT
#define CCI__SCI_DELAY_POINT(point) ((void)0)
#endif

/* What the transport calls: a program that takes SISCI alone has no use for it. */
#define CCI__SCI_INTERNAL static __attribute__((unused))

/* ==================================================================================================================
 * >>sisci-state
 *
 * Everything hangs on the device that SCIOpen gives; its lock guards all of it. A device serves objects that others
 * connect to (local segments and interrupts), and has connected objects of others (remotes). One socket joins two
 * devices, with the requests of one side about the objects of the other: the owner knows the socket as a client with
 * connections, the other side as a peer with remotes. A connection is named by the cookie that the asking side chose.
 *
 * What happens to an object becomes an event: in the object's own queue if the program waits for it, in the device's if
 * a callback is to be called.
 * ================================================================================================================== */

#define CCI__SCI_NODE 4u              /* this host; adapters number nodes in steps of 4 */
#define CCI__SCI_EVENTS_KEPT 1024u    /* per object                                     */
#define CCI__SCI_CONNECTIONS 65536u   /* per client: more is an attack                  */
#define CCI__SCI_CATCH_UP 4096        /* messages of a client before a removal          */
#define CCI__SCI_CHUNK 262144u        /* bytes that the engine copies at a time         */
#define CCI__SCI_ENTRIES 1048576u     /* per DMA queue                                  */
#define CCI__SCI_BLOCKS_KEPT 256u     /* finished block transfers that nobody waited for */
#define CCI__SCI_ATTACH_MS 10000u     /* how long an owner may take to answer           */
#define CCI__SCI_REJOIN_MS 1000u      /* how long a survivor puts up with failures      */
#define CCI__SCI_REJOIN_PAUSE_MS 100u /* the longest time between two attempts          */
#define CCI__SCI_ACCEPT_PAUSE_MS 100u /* when there are no descriptors left             */
#ifndef CCI__SCI_SWEEP_PAUSE_S
#define CCI__SCI_SWEEP_PAUSE_S 10 /* between two looks for what the dead have left   */
#endif
#define CCI__SCI_LOOK_MS 10000u /* between two looks whether our names are still there */
#define CCI__SCI_NEVER UINT64_MAX
#define CCI__SCI_FEW 8u /* buckets of a table at first */
#define CCI__SCI_PATH 81
#ifndef CCI__SCI_SHARED_ROOT
#define CCI__SCI_SHARED_ROOT "/dev/shm"
#endif
#define CCI__SCI_NAME 24

/* Objects that get events. */
enum {
    CCI__SCI_SEGMENT = 1, /* the first six can be asked for in a message */
    CCI__SCI_INTERRUPT,
    CCI__SCI_DATA_INTERRUPT,
    CCI__SCI_ATTACHMENT, /* a share of a segment       */
    CCI__SCI_GROUP,      /* a broadcast segment        */
    CCI__SCI_MEMBER,     /* a share of such a segment  */
    CCI__SCI_REMOTE_SEGMENT,
    CCI__SCI_REMOTE_OTHER,
    CCI__SCI_DMA_QUEUE,
    CCI__SCI_BLOCK
};

struct cci__sci_target;

typedef struct cci__sci_event {
    struct cci__sci_event *next;         /* in its queue */
    struct cci__sci_target *target;      /* to which it happened */
    cci__sci_segment_cb_reason_t reason; /* of a segment: what happened */
    cci__sci_error_t status;             /* how it ended */
    unsigned int length;                 /* of the data of a data interrupt, which follow */
} cci__sci_event;

typedef struct cci__sci_queue {
    cci__sci_event *first, *last; /* NULL: it is empty */
    unsigned int count;           /* of events */
} cci__sci_queue;

/* What has events; first member of every such object. */
typedef struct cci__sci_target {
    cci__sci_desc_t sd;   /* the device */
    int kind;             /* CCI__SCI_SEGMENT, ... */
    int calls_back;       /* events go to the callback */
    int removed;          /* those who wait must leave */
    unsigned int waiters; /* threads that wait for an event */
    void *argument;       /* of the callback */
    union {
        cci__sci_cb_local_segment_t local;
        cci__sci_cb_remote_segment_t remote;
        cci__sci_cb_dma_t dma;
        cci__sci_cb_block_transfer_t block;
        cci__sci_cb_interrupt_t interrupt;
        cci__sci_cb_data_interrupt_t data_interrupt;
    } callback;            /* by its kind */
    cci__sci_queue events; /* for those who wait */
} cci__sci_target;

/* A callback that runs now; removing the object from inside it empties the frame. */
typedef struct cci__sci_frame {
    struct cci__sci_frame *up; /* the callback in which this one runs */
    cci__sci_target *target;   /* whose callback it is; NULL: removed meanwhile */
} cci__sci_frame;

/* An object that others connect to. */
struct cci__sci_client;

/* Who may connect to an object, where that is not for everybody. */
typedef enum cci__sci_access { CCI__SCI_NO_ACCESS, CCI__SCI_READS, CCI__SCI_WRITES } cci__sci_access;
typedef cci__sci_access (*cci__sci_guard_t)(void *argument, uint32_t id, const struct cci__sci_client *client);

/* What is found by a number: its place in a table, whose buckets are as many as it has entries, or twice that. */
typedef struct cci__sci_hashed {
    struct cci__sci_hashed *next, **back; /* in its bucket */
    uint32_t hash;                        /* of its number or name */
} cci__sci_hashed;

typedef struct cci__sci_table {
    cci__sci_hashed **bucket;           /* NULL: `few` */
    uint32_t mask, count;               /* the number of buckets, less one */
    cci__sci_hashed *few[CCI__SCI_FEW]; /* the first buckets */
} cci__sci_table;
#define CCI__SCI_HOLDER(entry, type) ((type *)(void *)((char *)(entry)-offsetof(type, hashed)))

typedef struct cci__sci_served {
    cci__sci_target target;                          /* first */
    struct cci__sci_served *next, **back;            /* of the device */
    cci__sci_hashed hashed;                          /* by its number */
    struct cci__sci_connection *connections;         /* of clients */
    unsigned int connection_count, attachment_count; /* how many; those that share the segment */
    uint32_t id;                                     /* its number */
    int named;                                       /* the name in the directory is ours        */
    int available;                                   /* others may connect                       */
    int cleared;            /* of a segment: nor may those who were connected to its last owner */
    int fd;                 /* what they get: memory, eventfd or socket */
    int counting;           /* an interrupt that counts: each one is an event */
    cci__sci_guard_t guard; /* called with the lock held; NULL: everybody may */
    void *guard_argument;   /* of the guard */
} cci__sci_served;

struct cci__sci_local_segment {
    cci__sci_served served;             /* first */
    size_t size_bytes;                  /* of the memory; of an empty segment: the most it can have */
    void *user;                         /* the program's own memory */
    void *whole;                        /* the engine's mapping     */
    unsigned int users;                 /* maps and entries of DMA queues */
    int empty;                          /* it has no memory, or the program's own */
    int is_private;                     /* SCI_FLAG_PRIVATE */
    int prepared;                       /* SCIPrepareSegment was called */
    int shared;                         /* SCIShareSegment was called */
    int broadcast;                      /* SCI_FLAG_BROADCAST */
    int marked;                         /* we share it, and may inherit it: others see that in the directory */
    uint64_t since_ns;                  /* of one that is being joined: when its owner was missed first */
    struct cci__sci_remote *attachment; /* how we got the memory, if another process made it */
};

struct cci__sci_local_interrupt {
    cci__sci_served served; /* first */
    int slot;               /* in the device's watch, or -1 */
};

struct cci__sci_local_data_interrupt {
    cci__sci_served served; /* first */
    int receiver;           /* the other end of served.fd */
    int slot;               /* as above */
};

/* The owner's view: one of the other device's connections to one of our objects. */
typedef struct cci__sci_connection {
    struct cci__sci_client *client;                               /* who is connected */
    cci__sci_served *served;                                      /* to what */
    struct cci__sci_connection *next_of_client, **back_of_client; /* all of the client */
    struct cci__sci_connection *next_of_served, **back_of_served; /* all to the object */
    uint32_t cookie;                                              /* its name, which the client chose */
    int attached;                                                 /* the client shares the segment */
} cci__sci_connection;

typedef struct cci__sci_client {
    struct cci__sci_client *next, **back; /* of the device */
    cci__sci_connection *connections;     /* that it has */
    unsigned int count;                   /* of them */
    int fd, slot;                         /* the socket, and its place in the device's watch */
    uint32_t turn;                        /* in which it was heard last before a removal */
} cci__sci_client;

/* The other side's view: what is connected, or will be. */
enum {
    CCI__SCI_CONNECTING,
    CCI__SCI_CONNECTED,
    CCI__SCI_REFUSED,
    CCI__SCI_DISCONNECTED,
    CCI__SCI_LOST,
    CCI__SCI_INHERITED /* an attachment whose segment is ours now */
};

typedef struct cci__sci_remote {
    cci__sci_target target;               /* first */
    struct cci__sci_peer *peer;           /* the owner's device; NULL: none any more */
    struct cci__sci_remote *next, **back; /* of the peer */
    uint32_t cookie, id;                  /* the connection's name; the number of the object */
    int what;                             /* CCI__SCI_SEGMENT, ... */
    int state;                            /* read without the lock */
    int fd;                               /* what the owner gave: memory, eventfd or socket */
    int asynchronous;                     /* nobody waits in the connect: its end is an event */
    cci__sci_error_t status;              /* how connecting ended */
    uint64_t size_bytes;                  /* of a segment */
    uint64_t deadline_ns;                 /* of an asynchronous connect                              */
    struct cci__sci_remote *later;        /* the next of those who rejoin                            */
    int rejoining;                        /* the owner is gone, and we are looking for its successor */
    unsigned int losses;                  /* how often that has happened                             */
    uint64_t since_ns, retry_ns;          /* when that began, and when to try next                   */
    cci__sci_local_segment_t segment;     /* of an attachment                                     */
    unsigned int sets;                    /* how often its owner has said whether it is available     */
    char owner[CCI__SCI_NAME];            /* who was asked last                                       */
} cci__sci_remote;

struct cci__sci_remote_segment {
    cci__sci_remote remote; /* first */
    void *whole;            /* the engine's mapping */
    unsigned int users;     /* maps and entries of DMA queues */
};

struct cci__sci_remote_interrupt {
    cci__sci_remote remote; /* first */
};

struct cci__sci_remote_data_interrupt {
    cci__sci_remote remote; /* first */
};

typedef struct cci__sci_peer {
    struct cci__sci_peer *next, **back; /* of the device */
    cci__sci_hashed hashed;             /* by its owner's name */
    cci__sci_remote *remotes;           /* that are connected through it */
    char owner[CCI__SCI_NAME];          /* its name in the directory */
    int fd, slot;                       /* the socket, and its place in the device's watch */
} cci__sci_peer;

struct cci__sci_map {
    cci__sci_desc_t sd;                 /* the device */
    cci__sci_local_segment_t local;     /* one of the two */
    cci__sci_remote_segment_t remote;   /* the other is NULL */
    char *base;                         /* where the program's part begins */
    size_t size_bytes;                  /* of that part */
    void *mapping;                      /* what to unmap, or NULL */
    size_t mapping_bytes;               /* as much of it */
    unsigned int users;                 /* sequences and transfers */
    int is_readonly;                    /* SCI_FLAG_READONLY_MAP */
    struct cci__sci_map *next_readonly; /* of the process */
};

struct cci__sci_sequence {
    cci__sci_map_t map; /* that it is of */
    int broken;         /* until SCIStartSequence finds all well */
};

/* One copy that the engine makes. */
typedef struct cci__sci_piece {
    char *to;                         /* where the bytes go */
    const char *from;                 /* where they come from */
    size_t size_bytes;                /* how many */
    cci__sci_local_segment_t local;   /* in use until the piece is dropped */
    cci__sci_remote_segment_t remote; /* likewise */
    cci__sci_map_t map[2];            /* likewise, of a block transfer */
} cci__sci_piece;

typedef struct cci__sci_job {
    struct cci__sci_job *next; /* of the device */
    cci__sci_target *target;   /* the DMA queue or block transfer */
    cci__sci_piece *piece;     /* all of it */
    unsigned int count, at;    /* pieces; the one that is copied next */
    size_t done_bytes;         /* of the piece */
    int queued, running;       /* in the device's list; a chunk is being copied */
} cci__sci_job;

struct cci__sci_dma_queue {
    cci__sci_target target;           /* first */
    cci__sci_dma_queue_state_t state; /* as the program sees it */
    unsigned int entries_max;         /* that the program asked for */
    int bell;         /* rings for those who wait, or -1: unlike a condition, waiting for it ends with a signal */
    cci__sci_job job; /* what is gathered, or posted */
};

/* Handles of block transfers are numbers, not addresses: the manual lets programs use them after their end. */
typedef struct cci__sci_block {
    cci__sci_target target;      /* first */
    struct cci__sci_block *next; /* of the device */
    uintptr_t number;            /* its handle */
    int finished;                /* copied, failed or aborted */
    cci__sci_error_t status;     /* how it ended */
    cci__sci_job job;            /* of one piece */
    cci__sci_piece piece;        /* that one */
} cci__sci_block;

/* A descriptor that the device watches. Events name the slot and its generation, so that one which comes too late, for
 * an object that is gone, finds nothing. */
enum {
    CCI__SCI_SLOT_FREE,
    CCI__SCI_SLOT_WAKE,
    CCI__SCI_SLOT_LISTENER,
    CCI__SCI_SLOT_CLIENT,
    CCI__SCI_SLOT_PEER,
    CCI__SCI_SLOT_INTERRUPT,
    CCI__SCI_SLOT_DATA_INTERRUPT
};

typedef struct cci__sci_slot {
    int kind;            /* CCI__SCI_SLOT_... */
    int fd;              /* -1: free */
    int next_free;       /* -1: the last */
    uint32_t generation; /* counts what was here */
    void *object;        /* a client, peer or interrupt */
} cci__sci_slot;

/* All descriptors that a device watches. */
typedef struct cci__sci_watched {
    cci__sci_slot *slot; /* what they are of */
    int count, free;     /* slots; the first that is free, or -1 */
} cci__sci_watched;

/* The socket that others connect to. */
typedef struct cci__sci_listener {
    int fd, slot;     /* itself, and its place in the watch; -1: none */
    uint64_t back_ns; /* it rests until then */
    int is_full;      /* there was no descriptor for who connected last: the log has it */
} cci__sci_listener;

struct cci__sci_desc {
    struct cci__sci_desc *next;                 /* all devices of the process */
    char path[CCI__SCI_PATH];                   /* of the directory */
    char owner[CCI__SCI_NAME];                  /* our name in the directory, "" until something is served */
    int directory;                              /* its descriptor */
    int epoll, wake;                            /* what the device watches; an eventfd in it */
    cci__sci_listener listener;                 /* made when something is served first */
    int has_group;                              /* members of `group` may connect */
    gid_t group;                                /* CCI_SISCI_GROUP */
    unsigned int objects;                       /* that depend on the device */
    uint32_t cookie;                            /* of the last connection that we asked for */
    cci__sci_watched watched;                   /* descriptors */
    cci__sci_served *served;                    /* what others connect to */
    cci__sci_table served_by_id, peers_by_name; /* the same by their numbers; peers by their owners' names */
    uint32_t turn, drops;                       /* removals; connections of clients that have ended */
    cci__sci_client *clients;                   /* sockets of those who are connected to us */
    cci__sci_peer *peers;                       /* sockets to those that we are connected to */
    cci__sci_remote *rejoining;                 /* those that look for the successor of their owner */
    unsigned int connecting;                    /* asynchronous connects that are under way */
    uint64_t expiry_ns;                         /* none of them has a deadline before; 0: not known */
    cci__sci_queue calls;                       /* events to be called back with */
    cci__sci_frame *frame;                      /* callbacks that run */
    cci__sci_job *jobs, *last_job;              /* that the engine copies */
    cci__sci_block *blocks;                     /* the latest first */
    uint64_t names_ns;                          /* when to look next whether our names are still there */
    int caller_progress;                        /* no helper thread: the program calls cci__sci_progress() */
    unsigned int running;                       /* depth of progress */
    unsigned int changes;                       /* how often those who wait had to look again */
    int forked;                                 /* this is a copy in a child process */
#ifndef CCI_NO_THREADS
    int has_thread, stop;                       /* the helper thread runs; it must end */
    pthread_mutex_t lock;                       /* guards all of this */
    pthread_cond_t changed;                     /* those who wait look again */
    pthread_t thread, runner;                   /* the runner is the thread in progress */
#endif
};

/* The names of the steps for CCI__SCI_DELAY_POINT(). */
enum {
    CCI__SCI_AT_CALL,      /* a channel to an owner is about to be made             */
    CCI__SCI_AT_CLAIM,     /* a name was claimed that may belong to survivors       */
    CCI__SCI_AT_BURY,      /* the owner of a name was found dead                    */
    CCI__SCI_AT_TAKE_OVER, /* the same, by a survivor that will take the name over  */
    CCI__SCI_AT_TELL,      /* a message is about to be sent                         */
    CCI__SCI_AT_HEAR,      /* the kernel has said that there is a message or an end */
    CCI__SCI_AT_LOSE,      /* the channel to an owner has ended                     */
    CCI__SCI_AT_REJOIN,    /* a survivor is about to look for the owner             */
    CCI__SCI_AT_MARK,      /* a process shares a segment from now on                */
    CCI__SCI_AT_LEAVE,     /* an owner has given up the name                        */
    CCI__SCI_AT_COPY       /* a peer's registration is valid, and its memory is next */
};

/* Messages between two devices; both run on one host, so the order of bytes is that host's. */
enum {
    CCI__SCI_MSG_CONNECT = 1, /* cookie, what, id; status 1: a user of its last owner    */
    CCI__SCI_MSG_BYE,         /* cookie: the connection is not needed any more           */
    CCI__SCI_MSG_ACCEPT,      /* cookie, size, and a descriptor                          */
    CCI__SCI_MSG_REFUSE,      /* cookie, status                                          */
    CCI__SCI_MSG_NOTIFY,      /* cookie: please disconnect                               */
    CCI__SCI_MSG_END,         /* cookie: the owner has ended the connection; status 1: there will be another owner */
    CCI__SCI_MSG_EVENT,       /* cookie, status: reason of an event of a shared segment  */
    CCI__SCI_MSG_SET          /* cookie, status: a shared segment is available, or not; id: flags */
};

#define CCI__SCI_MAGIC 0x43534301u
#define CCI__SCI_NO_ROOM (-2) /* a descriptor came, and we had none left */

typedef struct cci__sci_message {
    uint32_t magic;      /* CCI__SCI_MAGIC */
    uint16_t type;       /* CCI__SCI_MSG_... */
    uint16_t what;       /* CCI__SCI_SEGMENT, ... */
    uint32_t cookie;     /* of the connection */
    uint32_t id;         /* the number of the object */
    uint32_t status;     /* by the type */
    uint32_t reserved;   /* 0 */
    uint64_t size_bytes; /* of a segment */
} cci__sci_message;

/* ==================================================================================================================
 * >>sisci-base
 *
 * What the rest of part one uses: memory, log, time, locks, tables by number, and the list of watched descriptors.
 *   Locks: one for what all devices share (cci__sci_world), taken first; then that of a device. No lock is held while a
 * callback runs. Functions that are given a device or an object expect the device's lock to be held, except those of
 * the SISCI API and those that the transport calls, which take it.
 * ================================================================================================================== */

/* What all devices of a process share. */
static struct {
    int initialized;         /* SCIInitialize was called */
    cci__sci_desc_t devices; /* all that are open */
    uintptr_t block_number;  /* of the last block transfer */
    cci__sci_map_t readonly; /* maps that can't be written to */
    int fork_handled;        /* fork() is noticed */
#ifndef CCI_NO_THREADS
    pthread_mutex_t lock;    /* taken before the lock of a device */
#endif
} cci__sci_world
#ifndef CCI_NO_THREADS
    = {0, NULL, 0, NULL, 0, PTHREAD_MUTEX_INITIALIZER}
#endif
;

#if CCI__SCI_ALONE

static void *cci__sci_alloc(size_t size_bytes) {
    return calloc(1, size_bytes);
}

static void cci__sci_free(void *memory) {
    free(memory);
}

static void cci__sci_log_text(const char *text) {
#ifdef CCI_NO_STDIO
    (void)text;
#else
    fprintf(stderr, "sisci: %s\n", text);
#endif
}

#else /* the program's own, if it has set any with cci_setup() */

static void *cci__sci_alloc(size_t size_bytes) {
    void *memory = cci_alloc(size_bytes);
    if (memory) memset(memory, 0, size_bytes);
    return memory;
}

static void cci__sci_free(void *memory) {
    cci_release(memory);
}

static void cci__sci_log_text(const char *text) {
    cci_log(CCI_LOG_WARN, text);
}

#endif

static void cci__sci_log(const char *what, const char *name, int error) {
    char text[256];
    snprintf(text, sizeof text, "%s %s%s%s", what, name, error ? ": " : "", error ? strerror(error) : "");
    cci__sci_log_text(text);
}

static void cci__sci_set(cci__sci_error_t *error, cci__sci_error_t status) {
    if (error) *error = status;
}

/* Has the caller not named what it must? Then the error says so. */
static int cci__sci_lacks(const void *named, cci__sci_error_t *error) {
    if (!named) cci__sci_set(error, CCI__SCI_ERR_ILLEGAL_PARAMETER);
    return !named;
}

static uint64_t cci__sci_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t cci__sci_deadline(unsigned int timeout_ms) {
    return timeout_ms == CCI__SCI_INFINITE_TIMEOUT ? CCI__SCI_NEVER : cci__sci_now() + (uint64_t)timeout_ms * 1000000u;
}

/* Milliseconds from now, rounded up, as poll and epoll_wait want them. */
static int cci__sci_until(uint64_t deadline_ns) {
    uint64_t now_ns, left_ms;
    if (deadline_ns == CCI__SCI_NEVER) return -1;
    now_ns = cci__sci_now();
    if (deadline_ns <= now_ns) return 0;
    left_ms = (deadline_ns - now_ns + 999999u) / 1000000u;
    return left_ms > 1000000 ? 1000000 : (int)left_ms;
}

static void cci__sci_nap(void) {
    struct timespec t = {0, 1000000};
    nanosleep(&t, NULL);
}

static uint64_t cci__sci_random(void) {
    uint64_t bits = 0;
    if (syscall(SYS_getrandom, &bits, sizeof bits, 0) != (long)sizeof bits)
        bits = cci__sci_now() * 0x9E3779B97F4A7C15u ^ (uint64_t)getpid();
    return bits;
}

static void cci__sci_lock(cci__sci_desc_t sd) {
#ifndef CCI_NO_THREADS
    (void)pthread_mutex_lock(&sd->lock);
#else
    (void)sd;
#endif
}

static void cci__sci_unlock(cci__sci_desc_t sd) {
#ifndef CCI_NO_THREADS
    (void)pthread_mutex_unlock(&sd->lock);
#else
    (void)sd;
#endif
}

static void cci__sci_leave(cci__sci_desc_t sd, cci__sci_error_t *error, cci__sci_error_t status) {
    cci__sci_unlock(sd);
    cci__sci_set(error, status);
}

static void cci__sci_lock_world(void) {
#ifndef CCI_NO_THREADS
    (void)pthread_mutex_lock(&cci__sci_world.lock);
#endif
}

static void cci__sci_unlock_world(void) {
#ifndef CCI_NO_THREADS
    (void)pthread_mutex_unlock(&cci__sci_world.lock);
#endif
}

/* Something has changed: all who wait look again. */
static void cci__sci_changed(cci__sci_desc_t sd) {
    sd->changes++;
#ifndef CCI_NO_THREADS
    (void)pthread_cond_broadcast(&sd->changed);
#endif
}

/* This thread makes the progress, that is, it is in a callback. */
static int cci__sci_is_runner(cci__sci_desc_t sd) {
#ifndef CCI_NO_THREADS
    return sd->running && pthread_equal(sd->runner, pthread_self());
#else
    return sd->running != 0;
#endif
}

/* The helper thread looks after what this thread has queued. */
static void cci__sci_wake(cci__sci_desc_t sd) {
    uint64_t one = 1;
    if (sd->running && !cci__sci_is_runner(sd)) {
        ssize_t n = write(sd->wake, &one, sizeof one);
        (void)n; /* a full counter wakes just as well */
    }
}

/* ---- tables ---------------------------------------------------------------------------------------------------- */

static cci__sci_hashed **cci__sci_bucket(cci__sci_table *table, uint32_t hash) {
    if (!table->bucket) return &table->few[hash & (CCI__SCI_FEW - 1)];
    return &table->bucket[hash & table->mask];
}

static void cci__sci_link_hashed(cci__sci_hashed **bucket, cci__sci_hashed *entry) {
    entry->next = *bucket;
    entry->back = bucket;
    if (entry->next) entry->next->back = &entry->next;
    *bucket = entry;
}

/* Doubles the buckets; without memory for that there are few, and all is found all the same. */
static void cci__sci_grow_table(cci__sci_table *table) {
    uint32_t old = table->bucket ? table->mask + 1 : CCI__SCI_FEW, i;
    cci__sci_hashed **from = table->bucket ? table->bucket : table->few;
    cci__sci_hashed **bucket = (cci__sci_hashed **)cci__sci_alloc(2 * (size_t)old * sizeof(cci__sci_hashed *));
    if (!bucket) return;
    table->mask = 2 * old - 1;
    for (i = 0; i < old; i++) {
        while (from[i]) {
            cci__sci_hashed *entry = from[i];
            from[i] = entry->next;
            cci__sci_link_hashed(&bucket[entry->hash & table->mask], entry);
        }
    }
    cci__sci_free(table->bucket);
    table->bucket = bucket;
}

static void cci__sci_insert(cci__sci_table *table, cci__sci_hashed *entry, uint32_t hash) {
    if (++table->count > (table->bucket ? table->mask + 1 : CCI__SCI_FEW)) cci__sci_grow_table(table);
    entry->hash = hash;
    cci__sci_link_hashed(cci__sci_bucket(table, hash), entry);
}

static void cci__sci_take_out(cci__sci_table *table, const cci__sci_hashed *entry) {
    *entry->back = entry->next;
    if (entry->next) entry->next->back = entry->back;
    table->count--;
}

/* Numbers may be chosen, one behind the other or with the same lowest bits. */
static uint32_t cci__sci_hash(uint32_t number) {
    number = (number ^ number >> 16) * UINT32_C(0x7feb352d);
    number = (number ^ number >> 15) * UINT32_C(0x846ca68b);
    return number ^ number >> 16;
}

static uint32_t cci__sci_hash_name(const char *name) {
    uint32_t hash = 0;
    while (*name) hash = cci__sci_hash(hash ^ (uint32_t)(unsigned char)*name++);
    return hash;
}

/* ---- watched descriptors --------------------------------------------------------------------------------------- */

static int cci__sci_grow_slots(cci__sci_desc_t sd) {
    int count = sd->watched.count ? sd->watched.count * 2 : 8, i;
    cci__sci_slot *bigger = (cci__sci_slot *)cci__sci_alloc((size_t)count * sizeof *bigger);
    if (!bigger) return 0;
    if (sd->watched.slot) {
        memcpy(bigger, sd->watched.slot, (size_t)sd->watched.count * sizeof *bigger);
        cci__sci_free(sd->watched.slot);
    }
    for (i = sd->watched.count; i < count; i++) {
        bigger[i].fd = -1;
        bigger[i].next_free = i + 1 < count ? i + 1 : -1;
    }
    sd->watched.free = sd->watched.count;
    sd->watched.slot = bigger;
    sd->watched.count = count;
    return 1;
}

/* Gives the slot, or -1. */
static int cci__sci_watch(cci__sci_desc_t sd, int kind, int fd, void *object) {
    struct epoll_event event;
    cci__sci_slot *slot;
    int index;
    if (sd->watched.free < 0 && !cci__sci_grow_slots(sd)) return -1;
    index = sd->watched.free;
    slot = &sd->watched.slot[index];
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    event.data.u64 = (uint64_t)slot->generation << 32 | (uint32_t)index;
    if (epoll_ctl(sd->epoll, EPOLL_CTL_ADD, fd, &event) != 0) return -1;
    sd->watched.free = slot->next_free;
    slot->kind = kind;
    slot->fd = fd;
    slot->object = object;
    return index;
}

static void cci__sci_unwatch(cci__sci_desc_t sd, int index) {
    cci__sci_slot *slot;
    if (index < 0) return;
    slot = &sd->watched.slot[index];
    if (!sd->forked) (void)epoll_ctl(sd->epoll, EPOLL_CTL_DEL, slot->fd, NULL);
    slot->generation++;
    slot->kind = CCI__SCI_SLOT_FREE;
    slot->fd = -1;
    slot->object = NULL;
    slot->next_free = sd->watched.free;
    sd->watched.free = index;
}

/* A descriptor that a fork did not take away. */
static void cci__sci_close(cci__sci_desc_t sd, int fd) {
    if (fd >= 0 && !sd->forked) close(fd);
}

/* ==================================================================================================================
 * >>sisci-names
 *
 * Every device that serves something listens on a socket "oRANDOM" in the directory, and every object that others
 * connect to is a symbolic link to it: "s" and the number of a segment, "i" of an interrupt, "d" of a data interrupt,
 * "b" of a broadcast segment, in eight hexadecimal digits. Making the link claims the number. The socket gets its name
 * when it listens already, so one that refuses connections is dead, and so are the links to it. Only who holds the lock
 * on the directory removes names of the dead, after having looked again; an owner removes its own link before it stops
 * listening. A name of the dead is freed when somebody wants it; now and then who opens a device looks for all others.
 * Each device locks a byte of the directory for as long as it lives, so that who looks need not connect to thousands
 * that do.
 *   SURVIVORS. Who shares a segment holds a read lock on a byte of the directory that stands for the segment: its mark.
 * The kernel removes a mark when its process dies. While a segment has a mark, nobody but a survivor may have its name:
 *     who shares       sets its mark, and only then looks whether the owner that accepted it still lives and has the
 *                      name
 *     who claims       makes the link, and only then looks for marks; where there is one it removes its link again
 *     a survivor       takes a name that is free or whose owner is dead, however many owners have died meanwhile
 *     users            are told that the segment is lost when the owner is dead and there is no mark
 * Whoever comes second sees what the first has done, so a segment never has two memories, and nobody waits for a
 * time to pass. Where the kernel has no such locks, and in groups of the transport, survivors are given
 * CCI__SCI_REJOIN_MS to act. Those who come too late find memory that is not theirs, and lose their segment.
 * ================================================================================================================== */

static void cci__sci_name(char *name, int what, uint32_t id) {
    static const char letter[] = "?sidsbb?";
    snprintf(name, CCI__SCI_NAME, "%c%08x", letter[what & 7], (unsigned int)id);
}

static int cci__sci_is_broadcast(const cci__sci_served *served) {
    const void *object = served;
    return served->target.kind == CCI__SCI_SEGMENT && ((const struct cci__sci_local_segment *)object)->broadcast;
}

static void cci__sci_name_of(const cci__sci_served *served, char *name) {
    cci__sci_name(name, cci__sci_is_broadcast(served) ? (int)CCI__SCI_GROUP : served->target.kind, served->id);
}

/* A letter and exactly so many hexadecimal digits. */
static int cci__sci_is_name(const char *name, const char *letters, size_t digits) {
    return name[0] && strchr(letters, name[0]) && strlen(name) == 1 + digits &&
           strspn(name + 1, "0123456789abcdef") == digits;
}

static void cci__sci_socket_name(cci__sci_desc_t sd, const char *name, struct sockaddr_un *address) {
    size_t path = strlen(sd->path), rest = strlen(name);
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (path + 1 + rest < sizeof address->sun_path) { /* always: the path has at most 80 bytes */
        memcpy(address->sun_path, sd->path, path);
        address->sun_path[path] = '/';
        memcpy(address->sun_path + path + 1, name, rest);
    }
}

/* A socket that is connected to this owner; -1 and errno: EAGAIN: too busy, ECONNREFUSED or ENOENT: it is dead. */
static int cci__sci_call(cci__sci_desc_t sd, const char *owner) {
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;
    if (fd < 0) return -1;
    CCI__SCI_DELAY_POINT(CCI__SCI_AT_CALL);
    cci__sci_socket_name(sd, owner, &address);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Whoever can't be asked counts as alive. */
static int cci__sci_is_alive(cci__sci_desc_t sd, const char *owner) {
    int fd;
    if (strcmp(owner, sd->owner) == 0) return 1;
    fd = cci__sci_call(sd, owner);
    if (fd >= 0) {
        close(fd);
        return 1;
    }
    return errno != ECONNREFUSED && errno != ENOENT;
}

/* Who has this name, dead or alive: 1, and 0 if nobody. */
static int cci__sci_owner_of(cci__sci_desc_t sd, const char *name, char *owner) {
    ssize_t n = readlinkat(sd->directory, name, owner, CCI__SCI_NAME - 1);
    if (n < 0) return 0;
    owner[n] = '\0';
    return cci__sci_is_name(owner, "o", 16);
}

static int cci__sci_has_live_owner(cci__sci_desc_t sd, const char *name) {
    char owner[CCI__SCI_NAME];
    return cci__sci_owner_of(sd, name, owner) && cci__sci_is_alive(sd, owner);
}

static int cci__sci_is_group(int what) {
    return what == CCI__SCI_GROUP || what == CCI__SCI_MEMBER;
}

/* Locks or unlocks a byte of the directory, or asks for the locks of others: 1 if there is one, -1 and errno if the
 * kernel can't tell. */
static int cci__sci_lock_at(cci__sci_desc_t sd, int command, int type, uint64_t at) {
    cci__sci_range range;
    memset(&range, 0, sizeof range);
    range.type = (int16_t)type;
    range.whence = SEEK_SET;
    range.start = (int64_t)at;
    range.length = 1;
    return syscall(CCI__SCI_SYS_FCNTL, sd->directory, command, &range) == 0 ? range.type != F_UNLCK : -1;
}

/* The same with the byte of a segment. */
static int cci__sci_lock_byte(cci__sci_desc_t sd, int command, int type, int what, uint32_t id) {
    return cci__sci_lock_at(sd, command, type, (uint64_t)(cci__sci_is_group(what) ? 1 : 0) << 32 | id);
}

/* The byte that a device locks for as long as it lives, by the digits of its name. */
static uint64_t cci__sci_life_at(const char *name) {
    return UINT64_C(1) << 62 | (uint64_t)strtoull(name + 1, NULL, 16) >> 2;
}

/* One of this device's own segments that shares the same memory, and does not own it. */
static int cci__sci_is_shared_here(cci__sci_desc_t sd, int what, uint32_t id) {
    const cci__sci_hashed *entry;
    for (entry = *cci__sci_bucket(&sd->served_by_id, cci__sci_hash(id)); entry; entry = entry->next) {
        const cci__sci_served *served = CCI__SCI_HOLDER(entry, cci__sci_served);
        const void *object = served;
        if (served->target.kind == CCI__SCI_SEGMENT && served->id == id && !served->named &&
            cci__sci_is_broadcast(served) == cci__sci_is_group(what) &&
            ((const struct cci__sci_local_segment *)object)->marked)
            return 1;
    }
    return 0;
}

/* Is there anybody who shares the segment and can inherit it? If the kernel can't tell there may be until some time
 * after since_ns. */
static int cci__sci_has_survivors(cci__sci_desc_t sd, int what, uint32_t id, uint64_t since_ns) {
    int is_marked;
    if (cci__sci_is_shared_here(sd, what, id)) return 1;
    is_marked = cci__sci_lock_byte(sd, CCI__SCI_F_OFD_GETLK, F_WRLCK, what, id);
    return is_marked < 0 ? cci__sci_now() < since_ns + CCI__SCI_REJOIN_MS * UINT64_C(1000000) : is_marked;
}

static void cci__sci_unmark(cci__sci_local_segment_t segment, int what) {
    cci__sci_desc_t sd = segment->served.target.sd;
    if (!segment->marked) return;
    segment->marked = 0;
    if (!cci__sci_is_shared_here(sd, what, segment->served.id))
        (void)cci__sci_lock_byte(sd, CCI__SCI_F_OFD_SETLK, F_UNLCK, what, segment->served.id);
}

/* Shares the segment with this owner from now on: 0 if that has died, or given up the name, before all could see it. */
static int cci__sci_mark(cci__sci_local_segment_t segment, int what, const char *owner) {
    cci__sci_desc_t sd = segment->served.target.sd;
    char name[CCI__SCI_NAME], other[CCI__SCI_NAME];
    segment->marked = 1;
    if (cci__sci_lock_byte(sd, CCI__SCI_F_OFD_SETLK, F_RDLCK, what, segment->served.id) < 0)
        cci__sci_log("no lock for a byte of", sd->path, errno);
    CCI__SCI_DELAY_POINT(CCI__SCI_AT_MARK);
    cci__sci_name(name, what, segment->served.id);
    if (cci__sci_owner_of(sd, name, other) && strcmp(owner, other) == 0 && cci__sci_is_alive(sd, owner)) return 1;
    cci__sci_unmark(segment, what);
    return 0;
}

/* The lock on the directory; a stopped process may hold it, so nobody waits for ever. */
static int cci__sci_lock_directory(cci__sci_desc_t sd, unsigned int patience_ms) {
    for (;;) {
        if (flock(sd->directory, LOCK_EX | LOCK_NB) == 0) return 1;
        if (patience_ms-- == 0) return 0;
        cci__sci_nap();
    }
}

static void cci__sci_unlock_directory(cci__sci_desc_t sd) {
    (void)flock(sd->directory, LOCK_UN);
}

/* Frees a name whose owner is dead; 0 if it lives. */
static int cci__sci_bury(cci__sci_desc_t sd, const char *name) {
    int is_free = 0;
    if (cci__sci_has_live_owner(sd, name)) return 0;
    CCI__SCI_DELAY_POINT(CCI__SCI_AT_BURY);
    if (!cci__sci_lock_directory(sd, 1000)) return 0;
    if (!cci__sci_has_live_owner(sd, name)) is_free = unlinkat(sd->directory, name, 0) == 0 || errno == ENOENT;
    cci__sci_unlock_directory(sd);
    return is_free;
}

/* Links whose owner's socket is gone, after the sockets of the dead have been removed. */
static void cci__sci_sweep_name(cci__sci_desc_t sd, const char *name, int links) {
    char owner[CCI__SCI_NAME];
    struct stat status;
    if (!links && cci__sci_is_name(name, "ot", 16) &&
        cci__sci_lock_at(sd, CCI__SCI_F_OFD_GETLK, F_WRLCK, cci__sci_life_at(name)) <= 0 &&
        !cci__sci_is_alive(sd, name))
        (void)unlinkat(sd->directory, name, 0);
    if (links && cci__sci_is_name(name, "sidb", 8) && cci__sci_owner_of(sd, name, owner) &&
        fstatat(sd->directory, owner, &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
        (void)unlinkat(sd->directory, name, 0);
}

/* Whether it is time to sweep: the time of the last is that at which the directory was read. Who may not set that
 * sweeps now and then. */
static int cci__sci_must_sweep(cci__sci_desc_t sd) {
    struct timespec now, times[2];
    struct stat status;
    if (fstat(sd->directory, &status) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0) return 0;
    if (now.tv_sec >= status.st_atime && now.tv_sec - status.st_atime < CCI__SCI_SWEEP_PAUSE_S) return 0;
    times[0] = now;
    times[1] = now;
    times[1].tv_nsec = UTIME_OMIT;
    return futimens(sd->directory, times) == 0 || cci__sci_random() % 64 == 0;
}

/* Removes what dead processes left. If another process does so now, that is as good. */
static void cci__sci_sweep(cci__sci_desc_t sd) {
    int fd = openat(sd->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), links;
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    if (!list) {
        if (fd >= 0) close(fd);
        return;
    }
    if (cci__sci_lock_directory(sd, 0)) {
        for (links = 0; links < 2; links++) {
            rewinddir(list);
            while ((entry = readdir(list)) != NULL) cci__sci_sweep_name(sd, entry->d_name, links);
        }
        cci__sci_unlock_directory(sd);
    }
    closedir(list);
}

/* The socket under a temporary name, then listening, then under its own: see above. A sweep may take a name that does
 * not listen yet for dead. */
static int cci__sci_name_listener(cci__sci_desc_t sd, int fd) {
    struct sockaddr_un address;
    char name[CCI__SCI_NAME], owner[CCI__SCI_NAME];
    unsigned long long number = cci__sci_random();
    mode_t mode = sd->has_group ? 0660 : 0600;
    snprintf(name, sizeof name, "t%016llx", number);
    snprintf(owner, sizeof owner, "o%016llx", number);
    /* where there are no locks, others ask */
    (void)cci__sci_lock_at(sd, CCI__SCI_F_OFD_SETLK, F_RDLCK, cci__sci_life_at(name));
    cci__sci_socket_name(sd, name, &address);
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) != 0) return 0;
    if (syscall(SYS_listen, fd, 4096) == 0 && fchmodat(sd->directory, name, mode, 0) == 0 &&
        (!sd->has_group || fchownat(sd->directory, name, (uid_t)-1, sd->group, AT_SYMLINK_NOFOLLOW) == 0) &&
        renameat(sd->directory, name, sd->directory, owner) == 0) {
        memcpy(sd->owner, owner, sizeof owner);
        return 1;
    }
    (void)unlinkat(sd->directory, name, 0);
    return 0;
}

static cci__sci_error_t cci__sci_open_directory(cci__sci_desc_t sd);

static int cci__sci_listen(cci__sci_desc_t sd) {
    int attempt;
    for (attempt = 0; sd->listener.fd < 0 && attempt < 3; attempt++) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) break;
        if (!cci__sci_name_listener(sd, fd)) {
            int error = errno;
            close(fd);
            errno = error;
            continue;
        }
        sd->listener.fd = fd;
        sd->names_ns = cci__sci_now() + CCI__SCI_LOOK_MS * UINT64_C(1000000);
        sd->listener.slot = cci__sci_watch(sd, CCI__SCI_SLOT_LISTENER, fd, sd);
        if (sd->listener.slot < 0) {
            (void)unlinkat(sd->directory, sd->owner, 0);
            sd->owner[0] = '\0';
            close(fd);
            sd->listener.fd = -1;
            break;
        }
    }
    if (sd->listener.fd < 0) cci__sci_log("can't listen in", sd->path, errno);
    return sd->listener.fd >= 0;
}

/* Survivors of a segment are looked for when the name is ours already: see above. */
static cci__sci_error_t cci__sci_claim(cci__sci_served *served, int yields) {
    cci__sci_desc_t sd = served->target.sd;
    int what = cci__sci_is_broadcast(served) ? (int)CCI__SCI_GROUP : served->target.kind, attempt;
    char name[CCI__SCI_NAME];
    if (sd->forked || !cci__sci_listen(sd)) return CCI__SCI_ERR_SYSTEM;
    cci__sci_name_of(served, name);
    for (attempt = 0; attempt < 3; attempt++) {
        if (symlinkat(sd->owner, sd->directory, name) == 0) {
            CCI__SCI_DELAY_POINT(CCI__SCI_AT_CLAIM);
            yields = yields && (what == CCI__SCI_SEGMENT || what == CCI__SCI_GROUP);
            served->named = !(yields && cci__sci_has_survivors(sd, what, served->id, 0));
            if (!served->named) (void)unlinkat(sd->directory, name, 0);
            return served->named ? CCI__SCI_ERR_OK : CCI__SCI_ERR_SEGMENTID_USED;
        }
        if (errno != EEXIST) {
            cci__sci_log("can't claim", name, errno);
            return CCI__SCI_ERR_SYSTEM;
        }
        if (!cci__sci_bury(sd, name)) break;
    }
    return CCI__SCI_ERR_SEGMENTID_USED;
}

/* Only a link that is still ours: it may have been given to another process. */
static void cci__sci_unclaim(cci__sci_served *served) {
    char name[CCI__SCI_NAME], owner[CCI__SCI_NAME];
    cci__sci_desc_t sd = served->target.sd;
    if (!served->named || sd->forked) return;
    served->named = 0;
    cci__sci_name_of(served, name);
    if (cci__sci_owner_of(sd, name, owner) && strcmp(owner, sd->owner) == 0) (void)unlinkat(sd->directory, name, 0);
}

/* A survivor takes the name of an owner that has left or died. CCI__SCI_ERR_BUSY: somebody else has it, or is at it. */
static cci__sci_error_t cci__sci_take_over(cci__sci_served *served) {
    cci__sci_desc_t sd = served->target.sd;
    char name[CCI__SCI_NAME], owner[CCI__SCI_NAME], ours[CCI__SCI_NAME];
    if (sd->forked || !cci__sci_listen(sd)) return CCI__SCI_ERR_SYSTEM;
    if (!cci__sci_lock_directory(sd, 0)) return CCI__SCI_ERR_BUSY;
    cci__sci_name_of(served, name);
    snprintf(ours, sizeof ours, "t%016llx", (unsigned long long)cci__sci_random());
    if (!cci__sci_owner_of(sd, name, owner)) {
        served->named = symlinkat(sd->owner, sd->directory, name) == 0;
    } else if (!cci__sci_is_alive(sd, owner)) {
        CCI__SCI_DELAY_POINT(CCI__SCI_AT_TAKE_OVER);
        served->named =
            symlinkat(sd->owner, sd->directory, ours) == 0 && renameat(sd->directory, ours, sd->directory, name) == 0;
        if (!served->named) (void)unlinkat(sd->directory, ours, 0);
    }
    cci__sci_unlock_directory(sd);
    return served->named ? CCI__SCI_ERR_OK : CCI__SCI_ERR_BUSY;
}

/* ==================================================================================================================
 * >>sisci-events
 *
 * An event goes to the object's own queue where the program waits for it, and to the device's queue where the object
 * has a callback. Of each object the last 1,024 are kept. Before an object is freed, all who wait for it have left, and
 * no callback of it runs.
 * ================================================================================================================== */

static void cci__sci_append(cci__sci_queue *queue, cci__sci_event *event) {
    event->next = NULL;
    if (queue->last)
        queue->last->next = event;
    else
        queue->first = event;
    queue->last = event;
    queue->count++;
}

static cci__sci_event *cci__sci_take(cci__sci_queue *queue) {
    cci__sci_event *event = queue->first;
    if (event) {
        queue->first = event->next;
        queue->count--;
        if (!queue->first) queue->last = NULL;
    }
    return event;
}

/* Forgets the events of one object. */
static void cci__sci_purge(cci__sci_queue *queue, const cci__sci_target *target) {
    unsigned int left = queue->count;
    while (left-- > 0) {
        cci__sci_event *event = cci__sci_take(queue);
        if (event->target == target)
            cci__sci_free(event);
        else
            cci__sci_append(queue, event);
    }
}

static void cci__sci_post_data(cci__sci_target *target, cci__sci_segment_cb_reason_t reason, cci__sci_error_t status,
                               const void *data, unsigned int length) {
    cci__sci_desc_t sd = target->sd;
    cci__sci_queue *queue = target->calls_back ? &sd->calls : &target->events;
    cci__sci_event *event = (cci__sci_event *)cci__sci_alloc(sizeof *event + length);
    if (!event) {
        cci__sci_log("an event is lost:", "no memory", 0);
        return;
    }
    event->target = target;
    event->reason = reason;
    event->status = status;
    event->length = length;
    if (length) memcpy(event + 1, data, length);
    if (!target->calls_back && queue->count >= CCI__SCI_EVENTS_KEPT) cci__sci_free(cci__sci_take(queue));
    cci__sci_append(queue, event);
    if (target->calls_back) cci__sci_wake(sd);
    cci__sci_changed(sd);
}

static void cci__sci_post(cci__sci_target *target, cci__sci_segment_cb_reason_t reason, cci__sci_error_t status) {
    cci__sci_post_data(target, reason, status, NULL, 0);
}

static void cci__sci_init_target(cci__sci_target *target, cci__sci_desc_t sd, int kind, int calls_back,
                                 void *argument) {
    target->sd = sd;
    target->kind = kind;
    target->calls_back = calls_back;
    target->argument = argument;
    sd->objects++;
}

/* Somebody below this call on the same stack waits for the object: it can't go now. */
static int cci__sci_is_pinned(const cci__sci_target *target) {
#ifndef CCI_NO_THREADS
    if (target->sd->has_thread) return 0;
#endif
    return target->waiters != 0 && cci__sci_is_runner(target->sd);
}

/* The object is in a callback of another thread, or another thread waits for it. */
static int cci__sci_is_occupied(const cci__sci_target *target) {
    const cci__sci_frame *frame;
    for (frame = target->sd->frame; frame; frame = frame->up)
        if (frame->target == target) return 1;
    return target->waiters != 0;
}

/* Before an object is freed: nobody waits for it any more, and no callback has it. */
static void cci__sci_retire(cci__sci_target *target) {
    cci__sci_desc_t sd = target->sd;
    cci__sci_frame *frame;
    target->removed = 1;
    cci__sci_purge(&target->events, target);
    cci__sci_purge(&sd->calls, target);
    cci__sci_changed(sd);
    if (cci__sci_is_runner(sd)) {
        for (frame = sd->frame; frame; frame = frame->up)
            if (frame->target == target) frame->target = NULL;
    }
    while (cci__sci_is_occupied(target) && !sd->forked) {
#ifndef CCI_NO_THREADS
        (void)pthread_cond_wait(&sd->changed, &sd->lock);
#else
        break;
#endif
    }
    sd->objects--;
}

/* ==================================================================================================================
 * >>sisci-channel
 *
 * One datagram of a fixed size for each message, with at most one descriptor. Sending never waits: who does not read
 * its messages loses the channel. What comes is checked for its size and magic number here, and for its meaning by who
 * receives it.
 * ================================================================================================================== */

static void cci__sci_message_init(cci__sci_message *message, int type, uint32_t cookie) {
    memset(message, 0, sizeof *message);
    message->magic = CCI__SCI_MAGIC;
    message->type = (uint16_t)type;
    message->cookie = cookie;
}

/* Sends a message, with a descriptor if `passed` is one. Never waits: who does not read its messages is dropped. */
static int cci__sci_tell(cci__sci_desc_t sd, int fd, const cci__sci_message *message, int passed) {
    struct iovec piece;
    struct msghdr header;
    cci__sci_control control;
    if (sd->forked) return 1;
    CCI__SCI_DELAY_POINT(CCI__SCI_AT_TELL);
    memset(&header, 0, sizeof header);
    memset(&control, 0, sizeof control);
    piece.iov_base = (void *)(uintptr_t)message;
    piece.iov_len = sizeof *message;
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    if (passed >= 0) {
        struct cmsghdr *item;
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(sizeof(int));
        item = CMSG_FIRSTHDR(&header);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(item), &passed, sizeof passed);
    }
    return sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof *message;
}

static int cci__sci_tell_short(cci__sci_desc_t sd, int fd, int type, uint32_t cookie, uint32_t status) {
    cci__sci_message message;
    cci__sci_message_init(&message, type, cookie);
    message.status = status;
    return cci__sci_tell(sd, fd, &message, -1);
}

/* The descriptor that came with a message, or -1. The kernel lets no more than one through: there is no more room. */
static int cci__sci_passed(struct msghdr *header) {
    struct cmsghdr *item = CMSG_FIRSTHDR(header);
    int fd = -1;
    if (item && item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_RIGHTS &&
        item->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(item), sizeof fd);
    return fd;
}

/* Takes a message: 1, 0 if there is none, -1 if the other side is gone or talks nonsense. Descriptors are accepted only
 * if `passed` is given. */
static int cci__sci_hear(int fd, cci__sci_message *message, int *passed) {
    struct iovec piece;
    struct msghdr header;
    cci__sci_control control;
    ssize_t n;
    memset(&header, 0, sizeof header);
    memset(&control, 0, sizeof control);
    piece.iov_base = message;
    piece.iov_len = sizeof *message;
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    if (passed) {
        *passed = -1;
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_LEN(sizeof(int));
    }
    n = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
    if (passed) {
        *passed = cci__sci_passed(&header);
        if (*passed < 0 && (header.msg_flags & MSG_CTRUNC)) *passed = CCI__SCI_NO_ROOM;
    }
    if (n == (ssize_t)sizeof *message && !(header.msg_flags & MSG_TRUNC) && message->magic == CCI__SCI_MAGIC) return 1;
    if (passed && *passed >= 0) {
        close(*passed);
        *passed = -1;
    }
    return -1;
}

/* The other side belongs to the same user, or has been let in by its group. */
static int cci__sci_is_welcome(cci__sci_desc_t sd, int fd) {
    cci__sci_ucred other;
    socklen_t length = sizeof other;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &length) != 0 || length != sizeof other) return 0;
    return sd->has_group || other.uid == (uint32_t)geteuid();
}

/* ==================================================================================================================
 * >>sisci-serve
 *
 * Clients are sockets that other devices have connected to our listener. Each message of a client is done at once: it
 * connects to an object, disconnects from it, or reports an event of a shared segment. A client that sends nonsense is
 * dropped, with all its connections. A budget of messages in each look keeps one client from taking all the time.
 * ================================================================================================================== */

static cci__sci_served *cci__sci_find_served(cci__sci_desc_t sd, int what, uint32_t id) {
    int is_group = cci__sci_is_group(what);
    int kind = is_group || what == CCI__SCI_ATTACHMENT ? (int)CCI__SCI_SEGMENT : what;
    cci__sci_hashed *entry;
    for (entry = *cci__sci_bucket(&sd->served_by_id, cci__sci_hash(id)); entry; entry = entry->next) {
        cci__sci_served *served = CCI__SCI_HOLDER(entry, cci__sci_served);
        if (served->target.kind == kind && served->id == id && served->named &&
            cci__sci_is_broadcast(served) == is_group)
            return served;
    }
    return NULL;
}

/* An event of a segment, for the owner and all who share it. */
static void cci__sci_happened(cci__sci_served *served, cci__sci_segment_cb_reason_t reason) {
    cci__sci_connection *connection;
    if (served->target.kind != CCI__SCI_SEGMENT) return;
    cci__sci_post(&served->target, reason, CCI__SCI_ERR_OK);
    for (connection = served->connections; connection; connection = connection->next_of_served) {
        if (connection->attached) {
            (void)cci__sci_tell_short(served->target.sd, connection->client->fd, CCI__SCI_MSG_EVENT, connection->cookie,
                                      (uint32_t)reason);
        }
    }
}

static cci__sci_connection *cci__sci_add_connection(cci__sci_client *client, cci__sci_served *served, uint32_t cookie,
                                                    int attached) {
    cci__sci_connection *c = (cci__sci_connection *)cci__sci_alloc(sizeof *c);
    if (!c) return NULL;
    c->client = client;
    c->served = served;
    c->cookie = cookie;
    c->attached = attached;
    c->next_of_client = client->connections;
    c->back_of_client = &client->connections;
    if (c->next_of_client) c->next_of_client->back_of_client = &c->next_of_client;
    client->connections = c;
    client->count++;
    c->next_of_served = served->connections;
    c->back_of_served = &served->connections;
    if (c->next_of_served) c->next_of_served->back_of_served = &c->next_of_served;
    served->connections = c;
    *(attached ? &served->attachment_count : &served->connection_count) += 1;
    return c;
}

static void cci__sci_drop_connection(cci__sci_connection *c) {
    c->served->target.sd->drops++;
    *c->back_of_client = c->next_of_client;
    if (c->next_of_client) c->next_of_client->back_of_client = c->back_of_client;
    c->client->count--;
    *c->back_of_served = c->next_of_served;
    if (c->next_of_served) c->next_of_served->back_of_served = c->back_of_served;
    *(c->attached ? &c->served->attachment_count : &c->served->connection_count) -= 1;
    cci__sci_free(c);
}

static void cci__sci_end_connection(cci__sci_connection *c, cci__sci_segment_cb_reason_t reason) {
    cci__sci_served *served = c->served;
    int attached = c->attached;
    cci__sci_drop_connection(c);
    if (!attached) cci__sci_happened(served, reason);
}

static void cci__sci_drop_client(cci__sci_desc_t sd, cci__sci_client *client) {
    while (client->connections) cci__sci_end_connection(client->connections, CCI__SCI_CB_LOST);
    cci__sci_unwatch(sd, client->slot);
    cci__sci_close(sd, client->fd);
    *client->back = client->next;
    if (client->next) client->next->back = client->back;
    cci__sci_free(client);
    cci__sci_changed(sd);
}

/* The first connection, of those who share the object or those who use it. */
static cci__sci_connection *cci__sci_first_connection(cci__sci_served *served, int attached) {
    cci__sci_connection *c = served->connections;
    while (c && c->attached != attached) c = c->next_of_served;
    return c;
}

/* Ends all connections of users, or of those who share it. Who does not take the message finds the channel ended,
 * and so do we when we listen next. */
static void cci__sci_end_connections(cci__sci_served *served, int attached, int has_heir) {
    cci__sci_desc_t sd = served->target.sd;
    cci__sci_connection *c;
    while ((c = cci__sci_first_connection(served, attached)) != NULL) {
        if (!cci__sci_tell_short(sd, c->client->fd, CCI__SCI_MSG_END, c->cookie, (uint32_t)has_heir))
            (void)syscall(SYS_shutdown, c->client->fd, SHUT_RDWR);
        cci__sci_end_connection(c, CCI__SCI_CB_DISCONNECT);
    }
}

/* An invitation to disconnect. */
static void cci__sci_notify(cci__sci_served *served) {
    cci__sci_connection *c;
    for (c = served->connections; c; c = c->next_of_served)
        if (!c->attached)
            (void)cci__sci_tell_short(served->target.sd, c->client->fd, CCI__SCI_MSG_NOTIFY, c->cookie, 0);
}

static void cci__sci_tell_available(const cci__sci_connection *c, int available, unsigned int flags) {
    cci__sci_message news;
    cci__sci_message_init(&news, CCI__SCI_MSG_SET, c->cookie);
    news.status = (uint32_t)available;
    news.id = flags;
    (void)cci__sci_tell(c->served->target.sd, c->client->fd, &news, -1);
}

static void cci__sci_note_available(cci__sci_served *served, int available, unsigned int flags) {
    served->available = available;
    served->cleared = !available && (flags & CCI__SCI_FLAG_FORCE_DISCONNECT) != 0;
}

/* Makes a segment available or not, and tells all who share it; who has asked for it comes last, so that whoever
 * inherits the segment knows of it when it is done. */
static void cci__sci_set_available(cci__sci_served *served, int available, unsigned int flags,
                                   const cci__sci_connection *asker) {
    cci__sci_connection *c;
    cci__sci_note_available(served, available, flags);
    for (c = served->connections; c; c = c->next_of_served) {
        int is_asker = c == asker;
        if (c->attached && !is_asker) cci__sci_tell_available(c, available, flags);
    }
    if (asker) cci__sci_tell_available(asker, available, flags);
    if (!available && (flags & CCI__SCI_FLAG_FORCE_DISCONNECT))
        cci__sci_end_connections(served, 0, 0);
    else if (!available && (flags & CCI__SCI_FLAG_NOTIFY))
        cci__sci_notify(served);
}

static cci__sci_connection *cci__sci_find_connection(cci__sci_client *client, uint32_t cookie) {
    cci__sci_connection *c = client->connections;
    while (c && c->cookie != cookie) c = c->next_of_client;
    return c;
}

static size_t cci__sci_served_bytes(const cci__sci_served *served) {
    const void *object = served;
    return served->target.kind == CCI__SCI_SEGMENT ? ((const struct cci__sci_local_segment *)object)->size_bytes : 0;
}

/* Opens memory once more, so that who gets the descriptor can't map it for writing. */
static int cci__sci_reopen(int fd) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* The descriptor that a client gets, -1 if it may not connect. *is_opened: it is to be closed. */
static int cci__sci_descriptor_for(const cci__sci_served *served, const cci__sci_client *client, int attaches,
                                   int *is_opened) {
    cci__sci_access access = served->guard ? CCI__SCI_NO_ACCESS : CCI__SCI_WRITES;
    if (served->guard && !attaches) access = served->guard(served->guard_argument, served->id, client);
    *is_opened = 0;
    if ((!attaches && !served->available) || access == CCI__SCI_NO_ACCESS) return -1;
    *is_opened = access == CCI__SCI_READS;
    return *is_opened ? cci__sci_reopen(served->fd) : served->fd;
}

/* Answers a request to connect: 0 if the client must be dropped. */
static int cci__sci_grant(cci__sci_desc_t sd, cci__sci_client *client, const cci__sci_message *request) {
    int attaches = request->what == CCI__SCI_ATTACHMENT || request->what == CCI__SCI_MEMBER;
    cci__sci_served *served = cci__sci_find_served(sd, request->what, request->id);
    cci__sci_connection *c;
    cci__sci_message answer;
    int fd, is_opened, told, stays;
    if (client->count >= CCI__SCI_CONNECTIONS || cci__sci_find_connection(client, request->cookie)) return 0;
    if (!served)
        return cci__sci_tell_short(sd, client->fd, CCI__SCI_MSG_REFUSE, request->cookie, CCI__SCI_ERR_NO_SUCH_SEGMENT);
    if (attaches && !((cci__sci_local_segment_t)served)->shared)
        return cci__sci_tell_short(sd, client->fd, CCI__SCI_MSG_REFUSE, request->cookie, CCI__SCI_ERR_ACCESS);
    stays = request->what == CCI__SCI_GROUP && request->status == 1 && !served->cleared;
    fd = cci__sci_descriptor_for(served, client, attaches || stays, &is_opened);
    if (fd < 0) {
        return cci__sci_tell_short(sd, client->fd, CCI__SCI_MSG_REFUSE, request->cookie,
                                   CCI__SCI_ERR_CONNECTION_REFUSED);
    }
    c = cci__sci_add_connection(client, served, request->cookie, attaches);
    cci__sci_message_init(&answer, CCI__SCI_MSG_ACCEPT, request->cookie);
    answer.size_bytes = cci__sci_served_bytes(served);
    answer.status = (uint32_t)served->available;
    answer.id = (uint32_t)(attaches && ((cci__sci_local_segment_t)served)->prepared);
    told = c && cci__sci_tell(sd, client->fd, &answer, fd);
    if (is_opened) close(fd);
    if (!told) {
        if (c) cci__sci_drop_connection(c);
        return 0;
    }
    if (!attaches) cci__sci_happened(served, CCI__SCI_CB_CONNECT);
    return 1;
}

/* Does what a client asks for: 0 if it must be dropped. */
static int cci__sci_obey(cci__sci_desc_t sd, cci__sci_client *client, const cci__sci_message *request) {
    cci__sci_connection *c;
    if (request->type == CCI__SCI_MSG_CONNECT) return cci__sci_grant(sd, client, request);
    c = cci__sci_find_connection(client, request->cookie);
    if (request->type == CCI__SCI_MSG_BYE) {
        if (c) /* else both sides have ended it at once */
            cci__sci_end_connection(c, CCI__SCI_CB_DISCONNECT);
        return 1;
    }
    if (request->type == CCI__SCI_MSG_SET && c && c->attached) {
        ((cci__sci_local_segment_t)c->served)->prepared = 1; /* one who shares it has done so */
        cci__sci_set_available(c->served, request->status != 0, request->id, c);
        return 1;
    }
    return 0;
}

/* At most so many messages, so that nobody keeps the device from all else. */
static void cci__sci_hear_client(cci__sci_desc_t sd, cci__sci_client *client, int budget) {
    cci__sci_message request;
    int heard;
    for (; budget > 0; budget--) {
        heard = cci__sci_hear(client->fd, &request, NULL);
        if (heard == 0) return;
        if (heard < 0 || !cci__sci_obey(sd, client, &request)) {
            cci__sci_drop_client(sd, client);
            return;
        }
    }
}

/* What its users have said already counts: who has disconnected is not in the way of a removal. A socket holds a few
 * hundred messages. What they say may end connections of others, too: then this begins again with those who have not
 * been heard. */
static void cci__sci_catch_up(cci__sci_served *served) {
    cci__sci_desc_t sd = served->target.sd;
    uint32_t turn = ++sd->turn, drops;
    cci__sci_connection *c = sd->forked ? NULL : served->connections;
    while (c) {
        if (c->client->turn == turn) {
            c = c->next_of_served;
            continue;
        }
        drops = sd->drops;
        c->client->turn = turn;
        cci__sci_hear_client(sd, c->client, CCI__SCI_CATCH_UP);
        c = drops == sd->drops ? c->next_of_served : served->connections;
    }
}

static void cci__sci_add_client(cci__sci_desc_t sd, int fd) {
    cci__sci_client *client = cci__sci_is_welcome(sd, fd) ? (cci__sci_client *)cci__sci_alloc(sizeof *client) : NULL;
    if (!client) {
        close(fd);
        return;
    }
    client->fd = fd;
    client->slot = cci__sci_watch(sd, CCI__SCI_SLOT_CLIENT, fd, client);
    if (client->slot < 0) {
        close(fd);
        cci__sci_free(client);
        return;
    }
    client->next = sd->clients;
    client->back = &sd->clients;
    if (client->next) client->next->back = &client->next;
    sd->clients = client;
}

/* Without a free descriptor nobody can be let in: the listener rests for a moment, so that this does not spin. The log
 * says so once, and again only when somebody was let in meanwhile. */
static void cci__sci_accept(cci__sci_desc_t sd) {
    int budget;
    for (budget = 16; budget > 0; budget--) {
        int fd = (int)syscall(SYS_accept4, sd->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            sd->listener.is_full = 0;
            cci__sci_add_client(sd, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            if (!sd->listener.is_full) cci__sci_log("can't let anybody in at", sd->owner, errno);
            sd->listener.is_full = 1;
            cci__sci_unwatch(sd, sd->listener.slot);
            sd->listener.slot = -1;
            sd->listener.back_ns = cci__sci_now() + CCI__SCI_ACCEPT_PAUSE_MS * 1000000u;
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void cci__sci_add_served(cci__sci_served *served) {
    cci__sci_desc_t sd = served->target.sd;
    served->next = sd->served;
    served->back = &sd->served;
    if (served->next) served->next->back = &served->next;
    sd->served = served;
    cci__sci_insert(&sd->served_by_id, &served->hashed, cci__sci_hash(served->id));
}

/* Gives it another number. */
static void cci__sci_renumber(cci__sci_served *served, uint32_t id) {
    cci__sci_table *table = &served->target.sd->served_by_id;
    cci__sci_take_out(table, &served->hashed);
    served->id = id;
    cci__sci_insert(table, &served->hashed, cci__sci_hash(id));
}

/* Others share the segment. */
static int cci__sci_has_heirs(const cci__sci_served *served) {
    int what = cci__sci_is_broadcast(served) ? CCI__SCI_GROUP : CCI__SCI_SEGMENT;
    return served->target.kind == CCI__SCI_SEGMENT &&
           (served->attachment_count != 0 || cci__sci_has_survivors(served->target.sd, what, served->id, 0));
}

/* Takes an object out of service and frees it. Those who share it inherit it with its name: the first takes it over,
 * the others and, of a broadcast segment, the users turn to that one. */
static void cci__sci_remove_served(cci__sci_served *served) {
    cci__sci_desc_t sd = served->target.sd;
    int users_stay;
    cci__sci_unclaim(served);
    served->named = 0;
    CCI__SCI_DELAY_POINT(CCI__SCI_AT_LEAVE);
    users_stay = served->connection_count != 0 && cci__sci_is_broadcast(served) && cci__sci_has_heirs(served);
    cci__sci_end_connections(served, 1, 1);
    cci__sci_end_connections(served, 0, users_stay);
    cci__sci_take_out(&sd->served_by_id, &served->hashed);
    *served->back = served->next;
    if (served->next) served->next->back = served->back;
    cci__sci_retire(&served->target);
    if (served->fd >= 0) close(served->fd);
    cci__sci_free(served);
}

/* ==================================================================================================================
 * >>sisci-remote
 *
 * A remote is one connection of ours, to an object of another device: connecting, connected, or ended. All remotes to
 * one device share a socket, the peer. When an owner dies, its remotes end (SCI_CB_LOST); shares of a segment, and
 * connections to broadcast segments, look for the successor instead, in pauses that grow, or become it.
 * ================================================================================================================== */

static void cci__sci_drop_peer(cci__sci_desc_t sd, cci__sci_peer *peer) {
    cci__sci_unwatch(sd, peer->slot);
    cci__sci_close(sd, peer->fd);
    cci__sci_take_out(&sd->peers_by_name, &peer->hashed);
    *peer->back = peer->next;
    if (peer->next) peer->next->back = peer->back;
    cci__sci_free(peer);
}

static void cci__sci_leave_peer(cci__sci_remote *r) {
    *r->back = r->next;
    if (r->next) r->next->back = r->back;
    r->peer = NULL;
}

/* Takes a remote off its peer; a peer without remotes is not needed. */
static void cci__sci_detach(cci__sci_remote *r) {
    cci__sci_peer *peer = r->peer;
    if (peer) {
        cci__sci_leave_peer(r);
        if (!peer->remotes) cci__sci_drop_peer(r->target.sd, peer);
    }
}

/* A connect has ended, well or not. */
static void cci__sci_decide(cci__sci_remote *r, int state, cci__sci_error_t status) {
    cci__sci_desc_t sd = r->target.sd;
    r->status = status;
    CCI__SCI_STORE(r->state, state);
    if (r->asynchronous) {
        sd->connecting--;
        cci__sci_post(&r->target, CCI__SCI_CB_CONNECT, status);
    }
    cci__sci_changed(sd);
}

/* The connection is no more. */
static void cci__sci_end_remote(cci__sci_remote *r, int state, cci__sci_segment_cb_reason_t reason) {
    r->rejoining = 0;
    CCI__SCI_STORE(r->state, state);
    if (r->segment) cci__sci_unmark(r->segment, r->what);
    if (r->target.kind == CCI__SCI_REMOTE_SEGMENT)
        cci__sci_post(&r->target, reason, CCI__SCI_ERR_OK);
    else if (r->segment)
        cci__sci_post(&r->segment->served.target, reason, CCI__SCI_ERR_OK);
}

/* Shares, and connections to a broadcast segment, outlive an owner. */
static int cci__sci_outlives(const cci__sci_remote *r) {
    return r->state == CCI__SCI_CONNECTED && (r->segment || r->what == CCI__SCI_GROUP);
}

/* Looks for the owner's successor from now on, or becomes it. The remote has no peer. At first it looks often: the
 * longer that takes, the less it hurries. */
static void cci__sci_rejoin_later(cci__sci_remote *r) {
    cci__sci_desc_t sd = r->target.sd;
    uint64_t now_ns = cci__sci_now(), pause_ns = 1000000u;
    if (!r->rejoining) {
        r->rejoining = 1;
        r->losses++;
        r->since_ns = r->retry_ns = now_ns;
    } else {
        pause_ns += (now_ns - r->since_ns) / 8;
        r->retry_ns = now_ns + (pause_ns < CCI__SCI_REJOIN_PAUSE_MS * UINT64_C(1000000)
                                    ? pause_ns
                                    : CCI__SCI_REJOIN_PAUSE_MS * UINT64_C(1000000));
    }
    r->later = sd->rejoining;
    sd->rejoining = r;
    cci__sci_wake(sd);
}

/* An attempt has failed, and not because there is no successor yet. */
static void cci__sci_rejoin_or_fail(cci__sci_remote *r) {
    if (cci__sci_now() < r->since_ns + CCI__SCI_REJOIN_MS * UINT64_C(1000000)) {
        cci__sci_rejoin_later(r);
    } else {
        cci__sci_end_remote(r, CCI__SCI_LOST, CCI__SCI_CB_LOST);
        cci__sci_changed(r->target.sd);
    }
}

static void cci__sci_forget_rejoining(cci__sci_remote *r) {
    cci__sci_remote **at = &r->target.sd->rejoining;
    while (*at && *at != r) at = &(*at)->later;
    if (*at) *at = r->later;
}

static void cci__sci_lose_peer(cci__sci_desc_t sd, cci__sci_peer *peer) {
    CCI__SCI_DELAY_POINT(CCI__SCI_AT_LOSE);
    while (peer->remotes) {
        cci__sci_remote *r = peer->remotes;
        cci__sci_leave_peer(r);
        if (r->state == CCI__SCI_CONNECTING)
            cci__sci_decide(r, CCI__SCI_REFUSED, CCI__SCI_ERR_CONNECTION_REFUSED);
        else if (cci__sci_outlives(r))
            cci__sci_rejoin_later(r);
        else
            cci__sci_end_remote(r, CCI__SCI_LOST, CCI__SCI_CB_LOST);
    }
    cci__sci_drop_peer(sd, peer);
    cci__sci_changed(sd);
}

/* The channel to this owner, made when needed; NULL and errno if there is none. */
static cci__sci_peer *cci__sci_find_peer(cci__sci_desc_t sd, const char *owner) {
    uint32_t hash = cci__sci_hash_name(owner);
    cci__sci_hashed *entry;
    cci__sci_peer *peer;
    int fd;
    for (entry = *cci__sci_bucket(&sd->peers_by_name, hash); entry; entry = entry->next) {
        peer = CCI__SCI_HOLDER(entry, cci__sci_peer);
        if (strcmp(peer->owner, owner) == 0) return peer;
    }
    fd = cci__sci_call(sd, owner);
    if (fd < 0) return NULL;
    peer = cci__sci_is_welcome(sd, fd) ? (cci__sci_peer *)cci__sci_alloc(sizeof *peer) : NULL;
    if (peer) {
        peer->fd = fd;
        peer->slot = cci__sci_watch(sd, CCI__SCI_SLOT_PEER, fd, peer);
    }
    if (!peer || peer->slot < 0) {
        close(fd);
        cci__sci_free(peer);
        errno = EACCES;
        return NULL;
    }
    memcpy(peer->owner, owner, sizeof peer->owner);
    peer->next = sd->peers;
    peer->back = &sd->peers;
    if (peer->next) peer->next->back = &peer->next;
    sd->peers = peer;
    cci__sci_insert(&sd->peers_by_name, &peer->hashed, hash);
    return peer;
}

/* Asks the owner of the object. CCI__SCI_ERR_BUSY: the owner takes no more requests just now. */
static cci__sci_error_t cci__sci_ask(cci__sci_remote *r) {
    cci__sci_desc_t sd = r->target.sd;
    cci__sci_message request;
    cci__sci_peer *peer;
    char name[CCI__SCI_NAME], owner[CCI__SCI_NAME];
    cci__sci_name(name, r->what, r->id);
    memset(owner, 0, sizeof owner);
    if (!cci__sci_owner_of(sd, name, owner)) return CCI__SCI_ERR_NO_SUCH_SEGMENT;
    peer = cci__sci_find_peer(sd, owner);
    if (!peer) {
        return errno == EAGAIN                            ? CCI__SCI_ERR_BUSY
               : errno == ECONNREFUSED || errno == ENOENT ? CCI__SCI_ERR_NO_SUCH_SEGMENT
               : errno == EACCES                          ? CCI__SCI_ERR_CONNECTION_REFUSED
                                                          : CCI__SCI_ERR_SYSTEM;
    }
    memcpy(r->owner, owner, sizeof r->owner);
    cci__sci_message_init(&request, CCI__SCI_MSG_CONNECT, r->cookie);
    request.what = (uint16_t)r->what;
    request.id = r->id;
    request.status = (uint32_t)r->rejoining;
    r->next = peer->remotes;
    r->back = &peer->remotes;
    if (r->next) r->next->back = &r->next;
    peer->remotes = r;
    r->peer = peer;
    if (!cci__sci_tell(sd, peer->fd, &request, -1)) {
        int error = errno;
        cci__sci_detach(r);
        return error == EAGAIN ? CCI__SCI_ERR_BUSY : CCI__SCI_ERR_NO_SUCH_SEGMENT;
    }
    return CCI__SCI_ERR_OK;
}

/* What was handed over is what it must be: memory that can't shrink under our feet, or a socket. */
static int cci__sci_is_sound(const cci__sci_remote *r, int fd, uint64_t size_bytes) {
    struct stat status;
    int seals, type = 0;
    socklen_t length = sizeof type;
    if (fd < 0) return 0;
    if (r->what == CCI__SCI_INTERRUPT) return fcntl(fd, F_GETFL) >= 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK);
    if (r->what == CCI__SCI_DATA_INTERRUPT)
        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_DGRAM;
    seals = fcntl(fd, CCI__SCI_F_GET_SEALS);
    return seals >= 0 && (seals & CCI__SCI_SEALS) == CCI__SCI_SEALS && fstat(fd, &status) == 0 && size_bytes > 0 &&
           size_bytes <= SIZE_MAX / 2 && (uint64_t)status.st_size >= size_bytes && status.st_size > 0;
}

/* The error codes that a refusal may carry. */
static cci__sci_error_t cci__sci_refusal(uint32_t status) {
    return status == CCI__SCI_ERR_NO_SUCH_SEGMENT ? CCI__SCI_ERR_NO_SUCH_SEGMENT
           : status == CCI__SCI_ERR_ACCESS        ? CCI__SCI_ERR_ACCESS
                                                  : CCI__SCI_ERR_CONNECTION_REFUSED;
}

static int cci__sci_is_same_memory(int one, int other) {
    struct stat a, b;
    return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* A successor lets us in: 0 if what it has is not what we had. */
static int cci__sci_rejoined(cci__sci_remote *r, const cci__sci_message *news, int fd) {
    if (!cci__sci_is_same_memory(fd, r->segment ? r->segment->served.fd : r->fd)) {
        (void)cci__sci_tell_short(r->target.sd, r->peer->fd, CCI__SCI_MSG_BYE, r->cookie, 0);
        cci__sci_end_remote(r, CCI__SCI_LOST, CCI__SCI_CB_LOST);
        cci__sci_detach(r);
        return 1;
    }
    if (r->segment) {
        r->segment->served.available = news->status != 0;
        r->segment->prepared |= news->id != 0;
    }
    r->rejoining = 0;
    return 1;
}

/* We have no room for the descriptor. That ends this connect alone, not the channel. */
static int cci__sci_note_missing(cci__sci_remote *r) {
    (void)cci__sci_tell_short(r->target.sd, r->peer->fd, CCI__SCI_MSG_BYE, r->cookie, 0);
    if (r->rejoining)
        cci__sci_end_remote(r, CCI__SCI_LOST, CCI__SCI_CB_LOST);
    else
        cci__sci_decide(r, CCI__SCI_REFUSED, CCI__SCI_ERR_SYSTEM);
    cci__sci_detach(r);
    return 1;
}

static int cci__sci_note_accepted(cci__sci_remote *r, const cci__sci_message *news, int *passed) {
    if (*passed == CCI__SCI_NO_ROOM) return cci__sci_note_missing(r);
    if (!cci__sci_is_sound(r, *passed, news->size_bytes)) return 0;
    if (r->rejoining) return cci__sci_rejoined(r, news, *passed);
    if (r->segment && !cci__sci_mark(r->segment, r->what, r->owner)) {
        (void)cci__sci_tell_short(r->target.sd, r->peer->fd, CCI__SCI_MSG_BYE, r->cookie, 0);
        cci__sci_decide(r, CCI__SCI_REFUSED, CCI__SCI_ERR_NO_SUCH_SEGMENT);
        cci__sci_detach(r);
        return 1;
    }
    if (r->segment) {
        r->segment->served.fd = *passed;
        r->segment->served.available = news->status != 0;
        r->segment->prepared = news->id != 0;
        r->segment->size_bytes = (size_t)news->size_bytes;
    } else {
        r->fd = *passed;
    }
    *passed = -1;
    r->size_bytes = news->size_bytes;
    cci__sci_decide(r, CCI__SCI_CONNECTED, CCI__SCI_ERR_OK);
    return 1;
}

static int cci__sci_note_refused(cci__sci_remote *r, const cci__sci_message *news) {
    if (r->rejoining) {
        cci__sci_detach(r);
        if (news->status == CCI__SCI_ERR_NO_SUCH_SEGMENT) /* it has just left, or may not have it */
            cci__sci_rejoin_later(r);
        else
            cci__sci_rejoin_or_fail(r);
        return 1;
    }
    cci__sci_decide(r, CCI__SCI_REFUSED, cci__sci_refusal(news->status));
    cci__sci_detach(r);
    return 1;
}

static int cci__sci_note_ended(cci__sci_remote *r, const cci__sci_message *news) {
    if (news->status == 1 && cci__sci_outlives(r)) {
        cci__sci_detach(r);
        cci__sci_rejoin_later(r);
    } else {
        cci__sci_end_remote(r, CCI__SCI_DISCONNECTED, CCI__SCI_CB_DISCONNECT);
        cci__sci_detach(r);
    }
    return 1;
}

/* What the owner says about one of our remotes: 0 if it makes no sense. */
static int cci__sci_note(cci__sci_remote *r, const cci__sci_message *news, int *passed) {
    int connecting = r->state == CCI__SCI_CONNECTING || r->rejoining;
    switch (news->type) {
    case CCI__SCI_MSG_ACCEPT: return connecting && cci__sci_note_accepted(r, news, passed);
    case CCI__SCI_MSG_REFUSE: return connecting && cci__sci_note_refused(r, news);
    case CCI__SCI_MSG_NOTIFY:
        if (!connecting && r->target.kind == CCI__SCI_REMOTE_SEGMENT)
            cci__sci_post(&r->target, CCI__SCI_CB_DISCONNECT, CCI__SCI_ERR_OK);
        return !connecting;
    case CCI__SCI_MSG_END: return !connecting && cci__sci_note_ended(r, news);
    case CCI__SCI_MSG_EVENT:
        if (connecting || !r->segment || news->status < CCI__SCI_CB_CONNECT || news->status > CCI__SCI_CB_LOST)
            return 0;
        cci__sci_post(&r->segment->served.target, (cci__sci_segment_cb_reason_t)news->status, CCI__SCI_ERR_OK);
        return 1;
    case CCI__SCI_MSG_SET:
        if (connecting || !r->segment) return 0;
        cci__sci_note_available(&r->segment->served, news->status != 0, news->id);
        r->sets++;
        cci__sci_changed(r->target.sd);
        return 1;
    default: return 0;
    }
}

static void cci__sci_hear_peer(cci__sci_desc_t sd, cci__sci_peer *peer) {
    cci__sci_message news;
    cci__sci_remote *r;
    int passed = -1, heard = cci__sci_hear(peer->fd, &news, &passed), makes_sense = 1;
    if (heard == 0) return;
    for (r = heard > 0 ? peer->remotes : NULL; r; r = r->next) {
        if (r->cookie == news.cookie) {                     /* an unknown one belongs to a connect that was given up */
            makes_sense = cci__sci_note(r, &news, &passed); /* the peer may be gone when this succeeds */
            break;
        }
    }
    if (passed >= 0) close(passed);
    if (heard < 0 || !makes_sense) cci__sci_lose_peer(sd, peer);
}

/* Ends a connection, or gives up connecting. */
static void cci__sci_disconnect(cci__sci_remote *r) {
    cci__sci_desc_t sd = r->target.sd;
    if (r->asynchronous && r->state == CCI__SCI_CONNECTING) sd->connecting--;
    cci__sci_forget_rejoining(r);
    if (r->segment) cci__sci_unmark(r->segment, r->what);
    if (r->peer && !cci__sci_tell_short(sd, r->peer->fd, CCI__SCI_MSG_BYE, r->cookie, 0)) {
        cci__sci_remote *gone = r; /* the owner does not read: end the channel, which it can't miss */
        cci__sci_peer *peer = r->peer;
        cci__sci_leave_peer(gone);
        cci__sci_lose_peer(sd, peer);
    } else {
        cci__sci_detach(r);
    }
    CCI__SCI_STORE(r->state, CCI__SCI_DISCONNECTED);
    cci__sci_retire(&r->target);
    if (r->fd >= 0) close(r->fd);
    r->fd = -1;
}

/* Asks the successor, or becomes it. CCI__SCI_ERR_BUSY: there is none yet; CCI__SCI_ERR_NOT_CONNECTED: nor ever. */
static cci__sci_error_t cci__sci_rejoin(cci__sci_remote *r) {
    cci__sci_error_t status = cci__sci_ask(r);
    if (status != CCI__SCI_ERR_NO_SUCH_SEGMENT) return status;
    if (r->segment) {
        status = cci__sci_take_over(&r->segment->served);
        if (status == CCI__SCI_ERR_OK) {
            r->rejoining = 0;
            CCI__SCI_STORE(r->state, CCI__SCI_INHERITED);
        }
        return status;
    }
    return cci__sci_has_survivors(r->target.sd, r->what, r->id, r->since_ns) ? CCI__SCI_ERR_BUSY
                                                                             : CCI__SCI_ERR_NOT_CONNECTED;
}

static void cci__sci_try_to_rejoin(cci__sci_remote *r) {
    cci__sci_error_t status = cci__sci_rejoin(r);
    if (status == CCI__SCI_ERR_BUSY) {
        cci__sci_rejoin_later(r);
        return;
    }
    if (status == CCI__SCI_ERR_NOT_CONNECTED) {
        cci__sci_end_remote(r, CCI__SCI_LOST, CCI__SCI_CB_LOST);
    } else if (status != CCI__SCI_ERR_OK) {
        cci__sci_rejoin_or_fail(r);
        return;
    }
    cci__sci_changed(r->target.sd);
}

/* All who rejoin try, each at its time; gives the time of the next attempt. Survivors never give up while they live:
 * all others depend on them. */
static uint64_t cci__sci_rejoin_all(cci__sci_desc_t sd) {
    cci__sci_remote *r = sd->rejoining, *next;
    uint64_t next_ns = CCI__SCI_NEVER, now_ns;
    if (!r) return next_ns;
    CCI__SCI_DELAY_POINT(CCI__SCI_AT_REJOIN);
    now_ns = cci__sci_now();
    sd->rejoining = NULL;
    for (; r; r = next) {
        next = r->later;
        if (r->retry_ns <= now_ns) {
            cci__sci_try_to_rejoin(r);
        } else {
            r->later = sd->rejoining;
            sd->rejoining = r;
        }
    }
    for (r = sd->rejoining; r; r = r->later) next_ns = r->retry_ns < next_ns ? r->retry_ns : next_ns;
    return next_ns;
}

/* Asynchronous connects whose time is over; gives the next deadline. */
static uint64_t cci__sci_expire(cci__sci_desc_t sd) {
    uint64_t next_ns = CCI__SCI_NEVER, now_ns;
    cci__sci_peer *peer, *next_peer;
    cci__sci_remote *r, *next;
    if (sd->connecting == 0) return next_ns;
    now_ns = cci__sci_now();
    if (sd->expiry_ns > now_ns) return sd->expiry_ns;
    for (peer = sd->peers; peer; peer = next_peer) {
        next_peer = peer->next;
        for (r = peer->remotes; r; r = next) {
            next = r->next;
            if (!r->asynchronous || r->state != CCI__SCI_CONNECTING) continue;
            if (r->deadline_ns > now_ns) {
                next_ns = r->deadline_ns < next_ns ? r->deadline_ns : next_ns;
                continue;
            }
            (void)cci__sci_tell_short(sd, peer->fd, CCI__SCI_MSG_BYE, r->cookie, 0);
            cci__sci_decide(r, CCI__SCI_REFUSED, CCI__SCI_ERR_TIMEOUT);
            cci__sci_detach(r); /* frees the peer with its last remote, when `next` is NULL */
        }
    }
    sd->expiry_ns = next_ns;
    return next_ns;
}

/* ==================================================================================================================
 * >>sisci-engine
 *
 * Copies for DMA queues and asynchronous block transfers, a chunk at a time, without the lock; between chunks the
 * device does its other work. Jobs run one after the other.
 * ================================================================================================================== */

static void cci__sci_job_ended(cci__sci_job *job, cci__sci_error_t status);

static void cci__sci_start_job(cci__sci_desc_t sd, cci__sci_job *job) {
    job->next = NULL;
    job->at = 0;
    job->done_bytes = 0;
    job->queued = 1;
    if (sd->last_job)
        sd->last_job->next = job;
    else
        sd->jobs = job;
    sd->last_job = job;
    cci__sci_wake(sd);
}

static void cci__sci_unqueue_job(cci__sci_desc_t sd, cci__sci_job *job) {
    cci__sci_job **at = &sd->jobs, *last = NULL;
    while (*at && *at != job) {
        last = *at;
        at = &(*at)->next;
    }
    if (*at) {
        *at = job->next;
        if (sd->last_job == job) sd->last_job = last;
    }
    job->queued = 0;
}

/* Takes a job away from the engine, when it is not just copying. */
static void cci__sci_stop_job(cci__sci_desc_t sd, cci__sci_job *job) {
    cci__sci_unqueue_job(sd, job);
#ifndef CCI_NO_THREADS
    while (job->running) (void)pthread_cond_wait(&sd->changed, &sd->lock);
#endif
}

static int cci__sci_is_connected(cci__sci_remote_segment_t segment) {
    return !segment || CCI__SCI_LOAD(segment->remote.state) == CCI__SCI_CONNECTED;
}

static int cci__sci_piece_is_good(const cci__sci_piece *piece) {
    return cci__sci_is_connected(piece->remote) && (!piece->map[0] || cci__sci_is_connected(piece->map[0]->remote)) &&
           (!piece->map[1] || cci__sci_is_connected(piece->map[1]->remote));
}

static void cci__sci_run_engine(cci__sci_desc_t sd) {
    cci__sci_job *job = sd->jobs;
    cci__sci_piece *piece;
    size_t chunk, at;
    if (!job || job->running) return;
    piece = &job->piece[job->at];
    if (!cci__sci_piece_is_good(piece)) {
        cci__sci_unqueue_job(sd, job);
        cci__sci_job_ended(job, CCI__SCI_ERR_TRANSFER_FAILED);
        return;
    }
    at = job->done_bytes;
    chunk = piece->size_bytes - at;
    chunk = chunk > CCI__SCI_CHUNK ? CCI__SCI_CHUNK : chunk;
    job->running = 1;
    cci__sci_unlock(sd);
    memmove(piece->to + at, piece->from + at, chunk);
    cci__sci_lock(sd);
    job->running = 0;
    cci__sci_changed(sd);
    if (!job->queued) return; /* aborted meanwhile: somebody waits for this */
    job->done_bytes += chunk;
    if (job->done_bytes < piece->size_bytes) return;
    job->done_bytes = 0;
    if (++job->at == job->count) {
        cci__sci_unqueue_job(sd, job);
        cci__sci_job_ended(job, CCI__SCI_ERR_OK);
    }
}

/* ==================================================================================================================
 * >>sisci-progress
 *
 * One thread at a time is in progress: the helper, or without one whoever waits.
 * ================================================================================================================== */

static cci__sci_callback_action_t cci__sci_call_back(cci__sci_target *t, cci__sci_event *event) {
    void *object = t;
    switch (t->kind) {
    case CCI__SCI_SEGMENT:
        return t->callback.local(t->argument, (cci__sci_local_segment_t)object, event->reason, CCI__SCI_NODE, 0,
                                 event->status);
    case CCI__SCI_REMOTE_SEGMENT:
        return t->callback.remote(t->argument, (cci__sci_remote_segment_t)object, event->reason, event->status);
    case CCI__SCI_INTERRUPT:
        return t->callback.interrupt(t->argument, (cci__sci_local_interrupt_t)object, event->status);
    case CCI__SCI_DATA_INTERRUPT:
        return t->callback.data_interrupt(t->argument, (cci__sci_local_data_interrupt_t)object, event + 1,
                                          event->length, event->status);
    case CCI__SCI_DMA_QUEUE:
        (void)t->callback.dma(t->argument, (cci__sci_dma_queue_t)object, event->status);
        return CCI__SCI_CALLBACK_CANCEL; /* the next post brings its own */
    default:
        (void)t->callback.block(t->argument, (cci__sci_block_transfer_t)((cci__sci_block *)object)->number,
                                event->status);
        return CCI__SCI_CALLBACK_CANCEL;
    }
}

static void cci__sci_forget_block(cci__sci_block *block);

static void cci__sci_run_callbacks(cci__sci_desc_t sd) {
    unsigned int left = sd->calls.count;
    while (left-- > 0 && sd->calls.first) {
        cci__sci_event *event = cci__sci_take(&sd->calls);
        cci__sci_frame frame;
        cci__sci_callback_action_t action;
        if (!event->target->calls_back) { /* the callback was cancelled: it can be waited for now */
            cci__sci_append(&event->target->events, event);
            continue;
        }
        frame.target = event->target;
        frame.up = sd->frame;
        sd->frame = &frame;
        cci__sci_unlock(sd);
        action = cci__sci_call_back(event->target, event);
        cci__sci_lock(sd);
        sd->frame = frame.up;
        if (frame.target && action == CCI__SCI_CALLBACK_CANCEL) frame.target->calls_back = 0;
        if (frame.target && frame.target->kind == CCI__SCI_BLOCK)
            cci__sci_forget_block((cci__sci_block *)(void *)frame.target);
        cci__sci_free(event);
        cci__sci_changed(sd);
    }
}

static void cci__sci_hear_interrupt(cci__sci_local_interrupt_t interrupt);
static void cci__sci_hear_data_interrupt(cci__sci_local_data_interrupt_t interrupt);

static void cci__sci_handle(cci__sci_desc_t sd, uint64_t id) {
    uint32_t index = (uint32_t)id;
    uint64_t ignored;
    cci__sci_slot slot;
    ssize_t n;
    if (index >= (uint32_t)sd->watched.count || sd->watched.slot[index].generation != (uint32_t)(id >> 32)) return;
    slot = sd->watched.slot[index];
    switch (slot.kind) {
    case CCI__SCI_SLOT_WAKE:
        n = read(slot.fd, &ignored, sizeof ignored);
        (void)n;
        break;
    case CCI__SCI_SLOT_LISTENER: cci__sci_accept(sd); break;
    case CCI__SCI_SLOT_CLIENT: cci__sci_hear_client(sd, (cci__sci_client *)slot.object, 16); break;
    case CCI__SCI_SLOT_PEER: cci__sci_hear_peer(sd, (cci__sci_peer *)slot.object); break;
    case CCI__SCI_SLOT_INTERRUPT: cci__sci_hear_interrupt((cci__sci_local_interrupt_t)slot.object); break;
    case CCI__SCI_SLOT_DATA_INTERRUPT:
        cci__sci_hear_data_interrupt((cci__sci_local_data_interrupt_t)slot.object);
        break;
    default: break;
    }
}

/* The directory is gone: another of the same name takes its place, with the marks of the segments that we share. */
static int cci__sci_renew_directory(cci__sci_desc_t sd) {
    int old = sd->directory;
    const cci__sci_served *served;
    if (cci__sci_open_directory(sd) != CCI__SCI_ERR_OK) {
        cci__sci_close(sd, sd->directory);
        sd->directory = old;
        return 0;
    }
    cci__sci_close(sd, old);
    for (served = sd->served; served; served = served->next) {
        const void *object = served;
        if (served->target.kind == CCI__SCI_SEGMENT && ((const struct cci__sci_local_segment *)object)->marked) {
            (void)cci__sci_lock_byte(sd, CCI__SCI_F_OFD_SETLK, F_RDLCK,
                                     cci__sci_is_broadcast(served) ? CCI__SCI_GROUP : CCI__SCI_SEGMENT, served->id);
        }
    }
    return 1;
}

/* Gives all that we serve its name again, unless somebody else has taken it. */
static void cci__sci_rename_all(cci__sci_desc_t sd) {
    cci__sci_served *served;
    char name[CCI__SCI_NAME];
    for (served = sd->served; served; served = served->next) {
        cci__sci_name_of(served, name);
        if (served->named && symlinkat(sd->owner, sd->directory, name) != 0 &&
            !(errno == EEXIST && cci__sci_bury(sd, name) && symlinkat(sd->owner, sd->directory, name) == 0)) {
            cci__sci_log("lost to another process is the name", name, 0);
            served->named = 0;
        }
    }
}

/* Looks now and then whether somebody has wiped the directory (at the end of a session, or because its files seemed
 * old): then the names are made anew. A socket can't be named twice, so there is a new listener; channels that are
 * open stay. */
static void cci__sci_look_after_names(cci__sci_desc_t sd) {
    struct stat status;
    if (sd->listener.fd < 0 || sd->forked || cci__sci_now() < sd->names_ns) return;
    sd->names_ns = cci__sci_now() + CCI__SCI_LOOK_MS * UINT64_C(1000000);
    if (fstatat(sd->directory, sd->owner, &status, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT) return;
    cci__sci_log("somebody has wiped", sd->path, 0);
    if (fstat(sd->directory, &status) != 0 || (status.st_nlink == 0 && !cci__sci_renew_directory(sd))) return;
    (void)cci__sci_lock_at(sd, CCI__SCI_F_OFD_SETLK, F_UNLCK, cci__sci_life_at(sd->owner));
    cci__sci_unwatch(sd, sd->listener.slot);
    close(sd->listener.fd);
    sd->listener.fd = sd->listener.slot = -1;
    if (cci__sci_listen(sd)) cci__sci_rename_all(sd);
}

/* When something has to be done that no descriptor tells of: at once if somebody may wait for what happens here. */
static uint64_t cci__sci_due(cci__sci_desc_t sd) {
    unsigned int before = sd->changes;
    uint64_t due_ns = cci__sci_rejoin_all(sd), expiry_ns = cci__sci_expire(sd);
    due_ns = expiry_ns < due_ns ? expiry_ns : due_ns;
    cci__sci_look_after_names(sd);
    if (sd->listener.fd >= 0 && sd->names_ns < due_ns) due_ns = sd->names_ns;
    if (sd->listener.fd >= 0 && sd->listener.slot < 0) {
        if (sd->listener.back_ns <= cci__sci_now()) {
            sd->listener.slot = cci__sci_watch(sd, CCI__SCI_SLOT_LISTENER, sd->listener.fd, sd);
            sd->listener.back_ns = cci__sci_now() + CCI__SCI_ACCEPT_PAUSE_MS * 1000000u;
        }
        if (sd->listener.slot < 0 && sd->listener.back_ns < due_ns) due_ns = sd->listener.back_ns;
    }
    return sd->jobs || sd->calls.first || sd->changes != before ? 0 : due_ns;
}

/* Waits for something to happen until the deadline, and deals with it. */
static void cci__sci_run(cci__sci_desc_t sd, uint64_t deadline_ns) {
    struct epoll_event event[16];
    uint64_t due_ns;
    int i, n;
#ifndef CCI_NO_THREADS
    sd->runner = pthread_self();
#endif
    sd->running++;
    due_ns = cci__sci_due(sd);
    cci__sci_unlock(sd);
    n = epoll_wait(sd->epoll, event, 16, cci__sci_until(due_ns < deadline_ns ? due_ns : deadline_ns));
    CCI__SCI_DELAY_POINT(CCI__SCI_AT_HEAR);
    cci__sci_lock(sd);
    for (i = 0; i < n; i++) cci__sci_handle(sd, event[i].data.u64);
    (void)cci__sci_expire(sd);
    cci__sci_run_engine(sd);
    cci__sci_run_callbacks(sd);
    sd->running--;
    cci__sci_changed(sd);
}

#ifndef CCI_NO_THREADS
static void *cci__sci_help(void *device) {
    cci__sci_desc_t sd = (cci__sci_desc_t)device;
    cci__sci_lock(sd);
    sd->running++;
    sd->runner = pthread_self();
    while (!sd->stop) cci__sci_run(sd, CCI__SCI_NEVER);
    sd->running--;
    cci__sci_unlock(sd);
    return NULL;
}

static void cci__sci_sleep(cci__sci_desc_t sd, uint64_t deadline_ns) {
    struct timespec t;
    if (deadline_ns == CCI__SCI_NEVER) {
        (void)pthread_cond_wait(&sd->changed, &sd->lock);
        return;
    }
    t.tv_sec = (time_t)(deadline_ns / 1000000000u);
    t.tv_nsec = (long)(deadline_ns % 1000000000u);
    (void)pthread_cond_timedwait(&sd->changed, &sd->lock, &t);
}
#endif

/* Lets the device work while the caller waits; 0 when the time is over. The caller looks again in either case. */
static int cci__sci_wait(cci__sci_desc_t sd, uint64_t deadline_ns) {
    int in_time = deadline_ns == CCI__SCI_NEVER || cci__sci_now() < deadline_ns;
    if (sd->forked) return 0;
#ifndef CCI_NO_THREADS
    if ((sd->has_thread || sd->running) && !cci__sci_is_runner(sd)) {
        if (in_time) cci__sci_sleep(sd, deadline_ns);
        return in_time;
    }
    cci__sci_run(sd, in_time ? deadline_ns : 0);
#else
    { /* all devices of the process: what is waited for may depend on another one */
        cci__sci_desc_t other;
        int alone = cci__sci_world.devices == sd && !sd->next;
        uint64_t soon_ns = cci__sci_now() + 1000000u;
        for (other = cci__sci_world.devices; other; other = other->next)
            if (other != sd && !other->forked) cci__sci_run(other, 0);
        cci__sci_run(sd, !in_time ? 0 : alone || deadline_ns < soon_ns ? deadline_ns : soon_ns);
    }
#endif
    return in_time;
}

/* The helper thread, when there is something that others may want at any time. */
static int cci__sci_need_help(cci__sci_desc_t sd) {
#ifndef CCI_NO_THREADS
    if (!sd->has_thread && !sd->caller_progress && !sd->forked) {
        sd->has_thread = pthread_create(&sd->thread, NULL, cci__sci_help, sd) == 0;
        if (!sd->has_thread) cci__sci_log("no helper thread for", sd->path, 0);
        return sd->has_thread;
    }
#else
    (void)sd;
#endif
    return 1;
}

/* Without a thread, calls that do not wait still let the device work a little. */
static void cci__sci_step(cci__sci_desc_t sd) {
#ifndef CCI_NO_THREADS
    if (sd->has_thread || sd->running) return;
#endif
    if (!sd->forked && !sd->running) cci__sci_run(sd, 0);
}

/* Waits for the next event of an object. */
static cci__sci_error_t cci__sci_await(cci__sci_target *target, uint64_t deadline_ns, cci__sci_event **event) {
    cci__sci_desc_t sd = target->sd;
    target->waiters++;
    while (!target->removed && !target->events.first && cci__sci_wait(sd, deadline_ns)) {
    }
    target->waiters--;
    if (target->removed) {
        cci__sci_changed(sd);
        return CCI__SCI_ERR_CANCELLED;
    }
    *event = cci__sci_take(&target->events);
    return *event ? CCI__SCI_ERR_OK : CCI__SCI_ERR_TIMEOUT;
}

static void cci__sci_init_remote(cci__sci_remote *r, cci__sci_desc_t sd, int kind, int what, uint32_t id) {
    cci__sci_init_target(&r->target, sd, kind, 0, NULL);
    r->what = what;
    r->id = id;
    r->cookie = ++sd->cookie;
    r->fd = -1;
}

/* Connects and waits until it is decided. An owner that is just too busy to listen is asked again. */
static cci__sci_error_t cci__sci_connect(cci__sci_remote *r, uint64_t deadline_ns) {
    cci__sci_desc_t sd = r->target.sd;
    cci__sci_error_t status;
    while ((status = cci__sci_ask(r)) == CCI__SCI_ERR_BUSY) {
        if (cci__sci_now() >= deadline_ns) return CCI__SCI_ERR_TIMEOUT;
        cci__sci_unlock(sd);
        cci__sci_nap();
        cci__sci_lock(sd);
    }
    if (status != CCI__SCI_ERR_OK) return status;
    r->target.waiters++;
    while (r->state == CCI__SCI_CONNECTING && cci__sci_wait(sd, deadline_ns)) {
    }
    r->target.waiters--;
    return r->state == CCI__SCI_CONNECTING ? CCI__SCI_ERR_TIMEOUT : r->status;
}

/* ==================================================================================================================
 * >>sisci-open
 *
 * A device is opened with its directory, an epoll descriptor and an eventfd; the listener and the helper thread come
 * when something is served first. After fork() the child closes its copies of all sockets and marks its devices as
 * forked: their calls fail, and closing them frees memory and nothing else.
 * ================================================================================================================== */

/* How a device is opened by more than SCIOpen can say. */
typedef struct cci__sci_options {
    const char *directory; /* NULL: as the environment says */
    const char *group;     /* NULL: as the environment says; name or number */
    int caller_progress;   /* no helper thread: call cci__sci_progress() when cci__sci_fd() is readable */
} cci__sci_options;

static int cci__sci_find_group(const char *text, gid_t *group) {
    char buffer[4096], *end;
    struct group entry, *found = NULL;
    unsigned long number = strtoul(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0') {
        *group = (gid_t)number;
        return 1;
    }
    if (getgrnam_r(text, &entry, buffer, sizeof buffer, &found) != 0 || !found) {
        cci__sci_log("CCI_SISCI_GROUP: there is no group", text, 0);
        return 0;
    }
    *group = entry.gr_gid;
    return 1;
}

/* Nobody else may change what is in the directory, or see it: except for the group, whose members must not be able to
 * remove each other's names. */
static const char *cci__sci_directory_fault(cci__sci_desc_t sd, const struct stat *status) {
    int shared = sd->has_group && status->st_gid == sd->group;
    if (status->st_uid != geteuid() && status->st_uid != 0 && !shared) return "belongs to another user:";
    if (status->st_mode & 07) return "is open to all users:";
    if ((status->st_mode & 070) && !shared) return "is open to a group that is not configured:";
    if ((status->st_mode & 020) && !(status->st_mode & S_ISVTX))
        return "is writable by the group, but not sticky (mode 1770):";
    return NULL;
}

static cci__sci_error_t cci__sci_open_one(cci__sci_desc_t sd) {
    struct stat status;
    const char *fault;
    int made = mkdir(sd->path, 0700) == 0;
    sd->directory = open(sd->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (sd->directory < 0 || fstat(sd->directory, &status) != 0) {
        int error = errno;
        cci__sci_log("can't open", sd->path, error);
        return error == EMFILE || error == ENFILE ? CCI__SCI_ERR_SYSTEM : CCI__SCI_ERR_ACCESS;
    }
    if (made && sd->has_group &&
        (fchown(sd->directory, (uid_t)-1, sd->group) != 0 || fchmod(sd->directory, 0750) != 0)) {
        cci__sci_log("can't give to the group:", sd->path, errno);
        return CCI__SCI_ERR_ACCESS;
    }
    fault = fstat(sd->directory, &status) == 0 ? cci__sci_directory_fault(sd, &status) : "can't be looked at:";
    if (fault) cci__sci_log(fault, sd->path, 0);
    return fault ? CCI__SCI_ERR_ACCESS : CCI__SCI_ERR_OK;
}

/* The places where the directory may be when nobody says where: that of the session, that of shared memory, the
 * user's own. 0: there is none with this number. Members of a group can't enter the session's. */
static int cci__sci_place(cci__sci_desc_t sd, int number) {
    const char *session = getenv("XDG_RUNTIME_DIR"), *home = getenv("HOME");
    int length = 0;
    sd->path[0] = '\0';
    if (number == 0 && session && *session == '/' && !sd->has_group) {
        length = snprintf(sd->path, sizeof sd->path, "%s/cci-sisci", session);
    } else if (number == 1) {
        length =
            snprintf(sd->path, sizeof sd->path, "%s/cci-sisci-%lu", CCI__SCI_SHARED_ROOT, (unsigned long)geteuid());
    } else if (number == 2 && home && *home == '/') {
        length = snprintf(sd->path, sizeof sd->path, "%s/.cci-sisci", home);
    }
    return length > 0 && (size_t)length < sizeof sd->path;
}

/* The first place that can be used, the same for all processes of the user; what is wrong with others is logged. */
static cci__sci_error_t cci__sci_open_directory(cci__sci_desc_t sd) {
    cci__sci_error_t status = CCI__SCI_ERR_ACCESS;
    int number;
    if (sd->path[0]) return cci__sci_open_one(sd);
    for (number = 0; number < 3 && status == CCI__SCI_ERR_ACCESS; number++) {
        if (!cci__sci_place(sd, number)) continue;
        cci__sci_close(sd, sd->directory);
        sd->directory = -1;
        status = cci__sci_open_one(sd);
    }
    return status;
}

static int cci__sci_choose_directory(cci__sci_desc_t sd, const cci__sci_options *options) {
    const char *path = options->directory ? options->directory : getenv("CCI_SISCI_DIR");
    const char *group = options->group ? options->group : getenv("CCI_SISCI_GROUP");
    if (group && *group) {
        sd->has_group = cci__sci_find_group(group, &sd->group);
        if (!sd->has_group) return 0;
    }
    if (!path || !*path) return 1; /* where there is a place for it */
    if (strlen(path) >= sizeof sd->path) {
        cci__sci_log("longer than 80 bytes:", path, 0);
        return 0;
    }
    memcpy(sd->path, path, strlen(path) + 1);
    return 1;
}

#if CCI__SCI_HAS_ATFORK
/* A child must not keep its parent's sockets open: peers would not notice the parent's death. Nor may it change what
 * its parent waits for. */
static void cci__sci_before_fork(void) {
    cci__sci_desc_t sd;
    cci__sci_lock_world();
    for (sd = cci__sci_world.devices; sd; sd = sd->next) cci__sci_lock(sd);
}

static void cci__sci_after_fork(void) {
    cci__sci_desc_t sd;
    for (sd = cci__sci_world.devices; sd; sd = sd->next) cci__sci_unlock(sd);
    cci__sci_unlock_world();
}

static void cci__sci_close_and_forget(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* Numbers of closed descriptors are forgotten: soon they are others. */
static void cci__sci_close_in_child(cci__sci_desc_t sd) {
    cci__sci_served *served;
    cci__sci_peer *peer;
    cci__sci_remote *r;
    int i;
    for (i = 0; i < sd->watched.count; i++) {
        cci__sci_slot *slot = &sd->watched.slot[i];
        if (slot->kind == CCI__SCI_SLOT_FREE) continue;
        close(slot->fd);
        slot->fd = -1;
        if (slot->kind == CCI__SCI_SLOT_INTERRUPT)
            ((cci__sci_local_interrupt_t)slot->object)->served.fd = -1;
        else if (slot->kind == CCI__SCI_SLOT_DATA_INTERRUPT)
            ((cci__sci_local_data_interrupt_t)slot->object)->receiver = -1;
    }
    for (served = sd->served; served; served = served->next) cci__sci_close_and_forget(&served->fd);
    for (peer = sd->peers; peer; peer = peer->next)
        for (r = peer->remotes; r; r = r->next) cci__sci_close_and_forget(&r->fd);
    for (r = sd->rejoining; r; r = r->later) cci__sci_close_and_forget(&r->fd);
    if (sd->listener.fd >= 0 && sd->listener.slot < 0) close(sd->listener.fd);
    close(sd->epoll);
    close(sd->directory);
    sd->listener.fd = sd->wake = sd->epoll = sd->directory = -1;
}

static void cci__sci_after_fork_in_child(void) {
    cci__sci_desc_t sd;
    for (sd = cci__sci_world.devices; sd; sd = sd->next) {
        if (!sd->forked) cci__sci_close_in_child(sd);
        sd->forked = 1;
        sd->running = 0;
        sd->frame = NULL;
#ifndef CCI_NO_THREADS
        sd->has_thread = 0;
        (void)pthread_cond_init(&sd->changed, NULL);
#endif
    }
    cci__sci_after_fork();
}
#endif

#ifndef CCI_NO_THREADS
static int cci__sci_init_lock(cci__sci_desc_t sd) {
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic) != 0) return 0;
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&sd->lock, NULL);
    (void)pthread_cond_init(&sd->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    return 1;
}
#endif

static void cci__sci_register(cci__sci_desc_t sd) {
    cci__sci_lock_world();
#if CCI__SCI_HAS_ATFORK
    if (!cci__sci_world.fork_handled) {
        cci__sci_world.fork_handled =
            pthread_atfork(cci__sci_before_fork, cci__sci_after_fork, cci__sci_after_fork_in_child) == 0;
    }
#endif
    sd->next = cci__sci_world.devices;
    cci__sci_world.devices = sd;
    cci__sci_unlock_world();
}

static void cci__sci_free_device(cci__sci_desc_t sd) {
    if (sd->owner[0] && !sd->forked) (void)unlinkat(sd->directory, sd->owner, 0);
    cci__sci_close(sd, sd->listener.fd);
    cci__sci_close(sd, sd->wake);
    cci__sci_close(sd, sd->epoll);
    cci__sci_close(sd, sd->directory);
#ifndef CCI_NO_THREADS
    (void)pthread_mutex_destroy(&sd->lock);
    if (!sd->forked) (void)pthread_cond_destroy(&sd->changed);
#endif
    cci__sci_free(sd->watched.slot);
    cci__sci_free(sd->served_by_id.bucket);
    cci__sci_free(sd->peers_by_name.bucket);
    cci__sci_free(sd);
}

static int cci__sci_open_waiting(cci__sci_desc_t sd) {
    sd->epoll = epoll_create1(EPOLL_CLOEXEC);
    sd->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return sd->epoll >= 0 && sd->wake >= 0 && cci__sci_watch(sd, CCI__SCI_SLOT_WAKE, sd->wake, sd) >= 0;
}

static cci__sci_desc_t cci__sci_open(const cci__sci_options *options, cci__sci_error_t *error) {
    cci__sci_desc_t sd = (cci__sci_desc_t)cci__sci_alloc(sizeof *sd);
    cci__sci_error_t status;
    cci__sci_set(error, CCI__SCI_ERR_SYSTEM);
    if (!sd) return NULL;
    sd->directory = sd->epoll = sd->wake = sd->listener.fd = sd->listener.slot = sd->watched.free = -1;
    sd->caller_progress = options->caller_progress;
#ifndef CCI_NO_THREADS
    if (!cci__sci_init_lock(sd)) {
        cci__sci_free(sd);
        return NULL;
    }
#endif
    status = cci__sci_choose_directory(sd, options) ? cci__sci_open_directory(sd) : CCI__SCI_ERR_ACCESS;
    if (status != CCI__SCI_ERR_OK) {
        cci__sci_set(error, status);
        cci__sci_free_device(sd);
        return NULL;
    }
    if (!cci__sci_open_waiting(sd)) {
        cci__sci_log("no descriptors for", sd->path, errno);
        cci__sci_free_device(sd);
        return NULL;
    }
    if (cci__sci_must_sweep(sd)) cci__sci_sweep(sd);
    cci__sci_register(sd);
    cci__sci_set(error, CCI__SCI_ERR_OK);
    return sd;
}

/* For who opened the device with `caller_progress`: the descriptor tells when there is something to do. */
CCI__SCI_INTERNAL int cci__sci_fd(cci__sci_desc_t sd) {
    return sd->epoll;
}

/* Does what there is to do, callbacks too; waits for it at most so long. */
CCI__SCI_INTERNAL void cci__sci_progress(cci__sci_desc_t sd, unsigned int timeout_ms) {
    cci__sci_lock(sd);
    (void)cci__sci_wait(sd, cci__sci_deadline(timeout_ms));
    cci__sci_unlock(sd);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIInitialize)(unsigned int flags, cci__sci_error_t *error) {
    (void)flags;
    cci__sci_lock_world();
    cci__sci_world.initialized++;
    cci__sci_unlock_world();
    cci__sci_set(error, CCI__SCI_ERR_OK);
}

CCI__SCI_LINKAGE void CCI__SCI(SCITerminate)(void) {
    cci__sci_lock_world();
    if (cci__sci_world.initialized > 0) cci__sci_world.initialized--;
    cci__sci_unlock_world();
}

CCI__SCI_LINKAGE void CCI__SCI(SCIOpen)(cci__sci_desc_t *sd, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_options options;
    int initialized;
    (void)flags; /* SCI_FLAG_THREAD_SAFE: always */
    cci__sci_lock_world();
    initialized = cci__sci_world.initialized;
    cci__sci_unlock_world();
    if (!sd || !initialized) {
        cci__sci_set(error, sd ? CCI__SCI_ERR_NOT_INITIALIZED : CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    memset(&options, 0, sizeof options);
    *sd = cci__sci_open(&options, error);
}

static void cci__sci_forget_blocks(cci__sci_desc_t sd);

CCI__SCI_LINKAGE void CCI__SCI(SCIClose)(cci__sci_desc_t sd, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_desc_t *at;
    (void)flags;
    if (cci__sci_lacks(sd, error)) return;
    cci__sci_forget_blocks(sd);
    cci__sci_lock(sd);
    if (sd->objects || cci__sci_is_runner(sd)) {
        cci__sci_leave(sd, error, CCI__SCI_ERR_BUSY);
        return;
    }
#ifndef CCI_NO_THREADS
    if (sd->has_thread) {
        sd->stop = 1;
        cci__sci_wake(sd);
        cci__sci_unlock(sd);
        (void)pthread_join(sd->thread, NULL);
        cci__sci_lock(sd);
    }
#endif
    while (sd->clients) /* those too whom the helper has let in at last */
        cci__sci_drop_client(sd, sd->clients);
    cci__sci_unlock(sd);
    cci__sci_lock_world();
    for (at = &cci__sci_world.devices; *at && *at != sd;) at = &(*at)->next;
    if (*at) *at = sd->next;
    cci__sci_unlock_world();
    cci__sci_free_device(sd);
    cci__sci_set(error, CCI__SCI_ERR_OK);
}

/* ==================================================================================================================
 * >>sisci-local
 *
 * A segment has memory (memfd, sealed against a change of its size), a number that it has claimed in the directory, and
 * connections of users. SCIRemoveSegment fails with SCI_ERR_BUSY while there are connections or maps. The memory of a
 * shared or broadcast segment belongs to all who share it.
 * ================================================================================================================== */

/* Memory that nobody can shrink once it is shared. The kernel kills a process that makes a file longer than it may. */
static int cci__sci_make_memory(size_t size_bytes) {
    struct rlimit limit;
    int fd;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size_bytes > limit.rlim_cur) {
        errno = EFBIG;
        return -1;
    }
    fd = (int)syscall(SYS_memfd_create, "cci-sisci", CCI__SCI_MFD_CLOEXEC_SEALING);
    if (fd < 0) return -1;
    if (ftruncate(fd, (off_t)size_bytes) == 0 && fcntl(fd, CCI__SCI_F_ADD_SEALS, CCI__SCI_SEALS) == 0) return fd;
    close(fd);
    return -1;
}

static cci__sci_error_t cci__sci_adapter(unsigned int adapter) {
    return adapter == 0 ? CCI__SCI_ERR_OK : CCI__SCI_ERR_NO_SUCH_ADAPTERNO;
}

/* Claims the number that was asked for, or any. */
static cci__sci_error_t cci__sci_claim_segment(cci__sci_local_segment_t segment, unsigned int flags) {
    int attempt;
    cci__sci_error_t status = CCI__SCI_ERR_SEGMENTID_USED;
    if (!(flags & CCI__SCI_FLAG_AUTO_ID)) return cci__sci_claim(&segment->served, 1);
    for (attempt = 0; attempt < 100 && status == CCI__SCI_ERR_SEGMENTID_USED; attempt++) {
        cci__sci_renumber(&segment->served, (uint32_t)cci__sci_random());
        status = cci__sci_claim(&segment->served, 1);
    }
    return status;
}

static cci__sci_local_segment_t cci__sci_new_segment(cci__sci_desc_t sd, uint32_t id,
                                                     cci__sci_cb_local_segment_t callback, void *argument,
                                                     unsigned int flags) {
    cci__sci_local_segment_t made = (cci__sci_local_segment_t)cci__sci_alloc(sizeof *made);
    if (made) {
        cci__sci_lock(sd);
        cci__sci_init_target(&made->served.target, sd, CCI__SCI_SEGMENT, (flags & CCI__SCI_FLAG_USE_CALLBACK) != 0,
                             argument);
        made->served.target.callback.local = callback;
        made->served.fd = -1;
        made->served.id = id;
        cci__sci_add_served(&made->served);
        cci__sci_unlock(sd);
    }
    return made;
}

/* Gets the memory of another process's segment: `what` is CCI__SCI_ATTACHMENT or CCI__SCI_MEMBER. */
static cci__sci_error_t cci__sci_attach(cci__sci_local_segment_t segment, int what) {
    cci__sci_desc_t sd = segment->served.target.sd;
    cci__sci_remote *r = (cci__sci_remote *)cci__sci_alloc(sizeof *r);
    cci__sci_error_t status;
    if (!r) return CCI__SCI_ERR_NOSPC;
    cci__sci_init_remote(r, sd, CCI__SCI_REMOTE_OTHER, what, segment->served.id);
    r->segment = segment;
    status = cci__sci_connect(r, cci__sci_deadline(CCI__SCI_ATTACH_MS));
    if (status == CCI__SCI_ERR_OK) {
        segment->attachment = r;
        segment->shared = 1;
    } else {
        cci__sci_disconnect(r);
        cci__sci_free(r);
    }
    return status;
}

static cci__sci_error_t cci__sci_give_memory(cci__sci_local_segment_t segment) {
    if (segment->served.fd < 0) segment->served.fd = cci__sci_make_memory(segment->size_bytes);
    if (segment->served.fd >= 0) return CCI__SCI_ERR_OK;
    return errno == EMFILE || errno == ENFILE ? CCI__SCI_ERR_SYSTEM : CCI__SCI_ERR_NOSPC;
}

/* The first to come makes the memory of a broadcast segment. CCI__SCI_ERR_SEGMENTID_USED: it is there, or there are
 * survivors of a dead owner, who will take it over. Who does not yield founds it in spite of survivors that have not
 * acted for a while: they must be stopped. */
static cci__sci_error_t cci__sci_found_broadcast(cci__sci_local_segment_t segment, int yields) {
    cci__sci_desc_t sd = segment->served.target.sd;
    uint64_t since_ns = segment->since_ns;
    cci__sci_error_t status;
    char name[CCI__SCI_NAME];
    cci__sci_name_of(&segment->served, name);
    yields = yields || cci__sci_now() < since_ns + CCI__SCI_REJOIN_MS * UINT64_C(1000000);
    if (cci__sci_has_live_owner(sd, name) ||
        (yields && cci__sci_has_survivors(sd, CCI__SCI_GROUP, segment->served.id, since_ns)))
        return CCI__SCI_ERR_SEGMENTID_USED;
    status = cci__sci_give_memory(segment);
    if (status == CCI__SCI_ERR_OK) status = cci__sci_claim(&segment->served, yields);
    if (status != CCI__SCI_ERR_OK && segment->served.fd >= 0) {
        close(segment->served.fd);
        segment->served.fd = -1;
    }
    return status;
}

/* All others share it. Neither has worked while a dead owner has no successor yet. */
static cci__sci_error_t cci__sci_join_broadcast(cci__sci_local_segment_t segment) {
    cci__sci_desc_t sd = segment->served.target.sd;
    size_t wanted_bytes = segment->size_bytes;
    cci__sci_error_t status;
    uint64_t deadline_ns = cci__sci_deadline(CCI__SCI_ATTACH_MS);
    segment->shared = 1;
    segment->since_ns = cci__sci_now();
    for (;;) {
        status = cci__sci_found_broadcast(segment, 1);
        if (status != CCI__SCI_ERR_SEGMENTID_USED) return status;
        status = cci__sci_attach(segment, CCI__SCI_MEMBER);
        if (status == CCI__SCI_ERR_OK)
            return segment->size_bytes == wanted_bytes ? CCI__SCI_ERR_OK : CCI__SCI_ERR_SEGMENTID_USED;
        if ((status != CCI__SCI_ERR_NO_SUCH_SEGMENT && status != CCI__SCI_ERR_CONNECTION_REFUSED) ||
            cci__sci_now() >= deadline_ns)
            return status;
        cci__sci_unlock(sd);
        cci__sci_nap();
        cci__sci_lock(sd);
    }
}

/* Begins to join a broadcast segment without waiting: cci__sci_step_broadcast() goes on. */
CCI__SCI_INTERNAL cci__sci_local_segment_t cci__sci_begin_broadcast(cci__sci_desc_t sd, uint32_t id) {
    cci__sci_local_segment_t made = cci__sci_new_segment(sd, id, NULL, NULL, 0);
    if (made) {
        made->broadcast = made->shared = 1;
        made->since_ns = cci__sci_now();
    }
    return made;
}

static void cci__sci_connect_later(cci__sci_remote *r, uint64_t deadline_ns);

/* Asks the first of the group for its memory. */
static cci__sci_error_t cci__sci_ask_broadcast(cci__sci_local_segment_t segment) {
    cci__sci_desc_t sd = segment->served.target.sd;
    cci__sci_remote *r = (cci__sci_remote *)cci__sci_alloc(sizeof *r);
    if (!r) return CCI__SCI_ERR_NOSPC;
    cci__sci_init_remote(r, sd, CCI__SCI_REMOTE_OTHER, CCI__SCI_MEMBER, segment->served.id);
    r->segment = segment;
    segment->attachment = r;
    cci__sci_connect_later(r, cci__sci_deadline(CCI__SCI_INFINITE_TIMEOUT));
    if (r->state == CCI__SCI_CONNECTING) { /* its state tells all: nobody waits for an event */
        r->asynchronous = 0;
        sd->connecting--;
    }
    return CCI__SCI_ERR_BUSY;
}

/* What has become of the question. */
static cci__sci_error_t cci__sci_hear_broadcast(cci__sci_local_segment_t segment, size_t size_bytes) {
    cci__sci_remote *r = segment->attachment;
    cci__sci_error_t status = r->status;
    if (r->state == CCI__SCI_CONNECTING) { /* it has an owner */
        segment->since_ns = cci__sci_now();
        return CCI__SCI_ERR_BUSY;
    }
    if (r->state == CCI__SCI_CONNECTED || r->state == CCI__SCI_INHERITED)
        return segment->size_bytes == size_bytes ? CCI__SCI_ERR_OK : CCI__SCI_ERR_SEGMENTID_USED;
    cci__sci_disconnect(r);
    cci__sci_free(r);
    segment->attachment = NULL;
    return status == CCI__SCI_ERR_NO_SUCH_SEGMENT || status == CCI__SCI_ERR_CONNECTION_REFUSED ||
                   status == CCI__SCI_ERR_TIMEOUT
               ? CCI__SCI_ERR_BUSY
               : status;
}

/* To be called again, a millisecond later, when it says CCI__SCI_ERR_BUSY. */
CCI__SCI_INTERNAL cci__sci_error_t cci__sci_step_broadcast(cci__sci_local_segment_t segment, size_t size_bytes) {
    cci__sci_desc_t sd = segment->served.target.sd;
    cci__sci_error_t status;
    cci__sci_lock(sd);
    if (segment->attachment) {
        status = cci__sci_hear_broadcast(segment, size_bytes);
    } else {
        segment->size_bytes = size_bytes;
        status = cci__sci_found_broadcast(segment, 0);
        if (status == CCI__SCI_ERR_SEGMENTID_USED) status = cci__sci_ask_broadcast(segment);
    }
    cci__sci_unlock(sd);
    return status;
}

/* Nobody of the group is left that we know of, and we don't have its name. */
CCI__SCI_INTERNAL int cci__sci_is_broadcast_lost(cci__sci_local_segment_t segment) {
    const cci__sci_remote *r = segment->attachment;
    int state = r ? CCI__SCI_LOAD(r->state) : (int)CCI__SCI_INHERITED;
    return state != CCI__SCI_CONNECTED && state != CCI__SCI_INHERITED;
}

static cci__sci_error_t cci__sci_fill_segment(cci__sci_local_segment_t segment, size_t size_bytes, unsigned int flags) {
    segment->size_bytes = size_bytes;
    segment->broadcast = (flags & CCI__SCI_FLAG_BROADCAST) != 0;
    segment->is_private = (flags & CCI__SCI_FLAG_PRIVATE) != 0;
    segment->empty = (flags & CCI__SCI_FLAG_EMPTY) != 0;
    if (segment->broadcast) {
        if (flags & (CCI__SCI_FLAG_EMPTY | CCI__SCI_FLAG_PRIVATE | CCI__SCI_FLAG_AUTO_ID))
            return CCI__SCI_ERR_ILLEGAL_FLAG;
        return cci__sci_need_help(segment->served.target.sd) ? cci__sci_join_broadcast(segment) : CCI__SCI_ERR_SYSTEM;
    }
    if (!segment->empty) {
        cci__sci_error_t status = cci__sci_give_memory(segment);
        if (status != CCI__SCI_ERR_OK) return status;
    }
    if (segment->is_private) return CCI__SCI_ERR_OK;
    return cci__sci_need_help(segment->served.target.sd) ? cci__sci_claim_segment(segment, flags) : CCI__SCI_ERR_SYSTEM;
}

/* Gives up our part of it; with the last part goes the memory. */
static void cci__sci_free_segment(cci__sci_local_segment_t segment) {
    if (segment->whole && segment->whole != segment->user) (void)munmap(segment->whole, segment->size_bytes);
    if (segment->attachment) {
        cci__sci_disconnect(segment->attachment);
        cci__sci_free(segment->attachment);
    }
    cci__sci_remove_served(&segment->served);
}

CCI__SCI_LINKAGE void CCI__SCI(SCICreateSegment)(cci__sci_desc_t sd, cci__sci_local_segment_t *segment,
                                                 unsigned int segmentId, unsigned int size,
                                                 cci__sci_cb_local_segment_t callback, void *callbackArg,
                                                 unsigned int flags, cci__sci_error_t *error) {
    cci__sci_local_segment_t made;
    cci__sci_error_t status;
    int calls_back = (flags & CCI__SCI_FLAG_USE_CALLBACK) != 0;
    if (!sd || !segment || (calls_back && !callback)) {
        cci__sci_set(error, CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    if (size == 0) {
        cci__sci_set(error, CCI__SCI_ERR_SIZE_ALIGNMENT);
        return;
    }
    made = cci__sci_new_segment(sd, segmentId, callback, callbackArg, flags);
    if (!made) {
        cci__sci_set(error, CCI__SCI_ERR_NOSPC);
        return;
    }
    cci__sci_lock(sd);
    status = cci__sci_fill_segment(made, size, flags);
    if (status == CCI__SCI_ERR_OK)
        *segment = made;
    else
        cci__sci_free_segment(made);
    cci__sci_leave(sd, error, status);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIShareSegment)(cci__sci_local_segment_t segment, unsigned int flags,
                                                cci__sci_error_t *error) {
    cci__sci_error_t status = CCI__SCI_ERR_OK;
    (void)flags;
    if (cci__sci_lacks(segment, error)) return;
    cci__sci_lock(segment->served.target.sd);
    if (segment->is_private || segment->empty)
        status = CCI__SCI_ERR_ILLEGAL_OPERATION;
    else
        segment->shared = 1;
    cci__sci_leave(segment->served.target.sd, error, status);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIAttachLocalSegment)(cci__sci_desc_t sd, cci__sci_local_segment_t *segment,
                                                      unsigned int segmentId, unsigned int *size,
                                                      cci__sci_cb_local_segment_t callback, void *callbackArg,
                                                      unsigned int flags, cci__sci_error_t *error) {
    cci__sci_local_segment_t made = NULL;
    cci__sci_error_t status;
    if (!sd || !segment || ((flags & CCI__SCI_FLAG_USE_CALLBACK) && !callback)) {
        cci__sci_set(error, CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    made = cci__sci_new_segment(sd, segmentId, callback, callbackArg, flags);
    if (!made) {
        cci__sci_set(error, CCI__SCI_ERR_NOSPC);
        return;
    }
    cci__sci_lock(sd);
    status = cci__sci_need_help(sd) ? cci__sci_attach(made, CCI__SCI_ATTACHMENT) : CCI__SCI_ERR_SYSTEM;
    if (status == CCI__SCI_ERR_OK) {
        *segment = made;
        if (size) *size = made->size_bytes <= UINT32_MAX ? (unsigned int)made->size_bytes : 0;
    } else {
        cci__sci_free_segment(made);
    }
    cci__sci_leave(sd, error, status);
}

/* The number of a segment, which the owner does not know with SCI_FLAG_AUTO_ID. */
CCI__SCI_INTERNAL unsigned int cci__sci_segment_id(cci__sci_local_segment_t segment) {
    return segment->served.id;
}

/* From now on the guard says who may connect, and who may only read. Its memory can't be opened for writing through
 * /proc any more, except by the owner's user. */
CCI__SCI_INTERNAL void cci__sci_set_guard(cci__sci_local_segment_t segment, cci__sci_guard_t guard, void *argument) {
    cci__sci_lock(segment->served.target.sd);
    segment->served.guard = guard;
    segment->served.guard_argument = argument;
    (void)fchmod(segment->served.fd, S_IRUSR);
    cci__sci_unlock(segment->served.target.sd);
}

/* For guards, which are called with the lock held: what the callbacks of the segments with this callback are called
 * with to which the client is connected, one in each call; NULL behind the last. *at is NULL at first. */
CCI__SCI_INTERNAL void *cci__sci_next_user(const cci__sci_client *client, cci__sci_cb_local_segment_t callback,
                                           const cci__sci_connection **at) {
    const cci__sci_connection *c = *at ? (*at)->next_of_client : client->connections;
    while (c && (c->served->target.kind != CCI__SCI_SEGMENT || c->served->target.callback.local != callback))
        c = c->next_of_client;
    *at = c;
    return c ? c->served->target.argument : NULL;
}

/* The process that is connected to the segment; 0 if that is none, or more than one. */
CCI__SCI_INTERNAL int cci__sci_only_user(cci__sci_local_segment_t segment, cci__sci_ucred *who) {
    socklen_t length = sizeof *who;
    const cci__sci_connection *c;
    int is_known;
    cci__sci_lock(segment->served.target.sd);
    c = segment->served.connections;
    is_known = c && !c->next_of_served && getsockopt(c->client->fd, SOL_SOCKET, SO_PEERCRED, who, &length) == 0;
    cci__sci_unlock(segment->served.target.sd);
    return is_known;
}

/* The process that owns the segment; 0 if that is not known. */
CCI__SCI_INTERNAL int cci__sci_process_of(cci__sci_remote_segment_t segment, cci__sci_ucred *who) {
    socklen_t length = sizeof *who;
    int is_known;
    cci__sci_lock(segment->remote.target.sd);
    is_known = segment->remote.peer && getsockopt(segment->remote.peer->fd, SOL_SOCKET, SO_PEERCRED, who, &length) == 0;
    cci__sci_unlock(segment->remote.target.sd);
    return is_known;
}

/* The name of the device that owns the segment, in the directory. */
CCI__SCI_INTERNAL const char *cci__sci_owner_name(cci__sci_remote_segment_t segment) {
    return segment->remote.owner;
}

/* Closes the descriptor of a segment's memory: what is mapped needs none, and nobody else will connect. */
CCI__SCI_INTERNAL void cci__sci_save_local_descriptor(cci__sci_local_segment_t segment) {
    cci__sci_lock(segment->served.target.sd);
    cci__sci_close(segment->served.target.sd, segment->served.fd);
    segment->served.fd = -1;
    cci__sci_unlock(segment->served.target.sd);
}

CCI__SCI_INTERNAL void cci__sci_save_remote_descriptor(cci__sci_remote_segment_t segment) {
    cci__sci_lock(segment->remote.target.sd);
    cci__sci_close(segment->remote.target.sd, segment->remote.fd);
    segment->remote.fd = -1;
    cci__sci_unlock(segment->remote.target.sd);
}

/* Do both belong to one device? */
CCI__SCI_INTERNAL int cci__sci_is_same_peer(cci__sci_remote_segment_t one, cci__sci_remote_segment_t other) {
    int is_same;
    cci__sci_lock(one->remote.target.sd);
    is_same = one->remote.peer && one->remote.peer == other->remote.peer;
    cci__sci_unlock(one->remote.target.sd);
    return is_same;
}

CCI__SCI_LINKAGE void CCI__SCI(SCIPrepareSegment)(cci__sci_local_segment_t segment, unsigned int localAdapterNo,
                                                  unsigned int flags, cci__sci_error_t *error) {
    (void)flags; /* SCI_FLAG_DMA_SOURCE_ONLY is a hint, SCI_FLAG_BROADCAST was said at creation */
    if (!segment || localAdapterNo != 0) {
        cci__sci_set(error, segment ? CCI__SCI_ERR_NO_SUCH_ADAPTERNO : CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    cci__sci_lock(segment->served.target.sd);
    segment->prepared = 1;
    cci__sci_leave(segment->served.target.sd, error, CCI__SCI_ERR_OK);
}

/* Asks the owner to make a segment available or not. CCI__SCI_ERR_BUSY: it died, or left, without an answer. */
static cci__sci_error_t cci__sci_ask_to_change(cci__sci_remote *r, int available, unsigned int flags,
                                               uint64_t deadline_ns) {
    cci__sci_desc_t sd = r->target.sd;
    unsigned int sets = r->sets, losses = r->losses;
    cci__sci_message request;
    if (r->state != CCI__SCI_CONNECTED || !r->peer) return CCI__SCI_ERR_NOT_CONNECTED;
    cci__sci_message_init(&request, CCI__SCI_MSG_SET, r->cookie);
    request.status = (uint32_t)available;
    request.id = flags;
    (void)cci__sci_tell(sd, r->peer->fd, &request, -1);
    while (r->sets == sets && r->losses == losses && r->state == CCI__SCI_CONNECTED && cci__sci_wait(sd, deadline_ns)) {
    }
    if (r->sets != sets) return CCI__SCI_ERR_OK;
    return cci__sci_now() < deadline_ns ? CCI__SCI_ERR_BUSY : CCI__SCI_ERR_TIMEOUT;
}

/* Makes a segment available or not, where it is owned. */
static cci__sci_error_t cci__sci_change(cci__sci_local_segment_t segment, int available, unsigned int flags) {
    cci__sci_desc_t sd = segment->served.target.sd;
    uint64_t deadline_ns = cci__sci_deadline(CCI__SCI_ATTACH_MS);
    cci__sci_remote *r = segment->attachment;
    cci__sci_error_t status = CCI__SCI_ERR_BUSY;
    while (status == CCI__SCI_ERR_BUSY) {
        while (r && r->rejoining && cci__sci_wait(sd, deadline_ns)) { /* there will be an owner soon */
        }
        if (!r || r->state == CCI__SCI_INHERITED) {
            cci__sci_set_available(&segment->served, available, flags, NULL);
            return CCI__SCI_ERR_OK;
        }
        status = cci__sci_ask_to_change(r, available, flags, deadline_ns);
    }
    return status;
}

static cci__sci_error_t cci__sci_make_available(cci__sci_local_segment_t segment) {
    if (segment->is_private || segment->empty) return CCI__SCI_ERR_ILLEGAL_OPERATION;
    if (!segment->prepared) return CCI__SCI_ERR_SEGMENT_NOT_PREPARED;
    return cci__sci_change(segment, 1, 0);
}

CCI__SCI_LINKAGE void CCI__SCI(SCISetSegmentAvailable)(cci__sci_local_segment_t segment, unsigned int localAdapterNo,
                                                       unsigned int flags, cci__sci_error_t *error) {
    cci__sci_error_t status;
    (void)flags;
    if (!segment || localAdapterNo != 0) {
        cci__sci_set(error, segment ? CCI__SCI_ERR_NO_SUCH_ADAPTERNO : CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    cci__sci_lock(segment->served.target.sd);
    status = cci__sci_make_available(segment);
    cci__sci_leave(segment->served.target.sd, error, status);
}

CCI__SCI_LINKAGE void CCI__SCI(SCISetSegmentUnavailable)(cci__sci_local_segment_t segment, unsigned int localAdapterNo,
                                                         unsigned int flags, cci__sci_error_t *error) {
    cci__sci_error_t status = CCI__SCI_ERR_ILLEGAL_OPERATION;
    if (!segment || localAdapterNo != 0) {
        cci__sci_set(error, segment ? CCI__SCI_ERR_NO_SUCH_ADAPTERNO : CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    cci__sci_lock(segment->served.target.sd);
    if (segment->served.available) status = cci__sci_change(segment, 0, flags);
    cci__sci_leave(segment->served.target.sd, error, status);
}

/* Users are in the way of a removal, unless they can turn to another member of the group. */
static int cci__sci_is_needed(const cci__sci_served *served) {
    return served->connection_count != 0 && !(cci__sci_is_broadcast(served) && cci__sci_has_heirs(served));
}

CCI__SCI_LINKAGE void CCI__SCI(SCIRemoveSegment)(cci__sci_local_segment_t segment, unsigned int flags,
                                                 cci__sci_error_t *error) {
    cci__sci_desc_t sd;
    if (cci__sci_lacks(segment, error)) return;
    sd = segment->served.target.sd;
    cci__sci_lock(sd);
    cci__sci_catch_up(&segment->served);
    if (segment->users || cci__sci_is_pinned(&segment->served.target) ||
        (cci__sci_is_needed(&segment->served) && !(flags & CCI__SCI_FLAG_FORCE_REMOVE))) {
        cci__sci_leave(sd, error, CCI__SCI_ERR_BUSY);
        return;
    }
    cci__sci_free_segment(segment);
    cci__sci_leave(sd, error, CCI__SCI_ERR_OK);
}

/* The next event of a segment, which the caller frees, if it has no callback. */
static cci__sci_error_t cci__sci_await_event(cci__sci_target *target, unsigned int timeout, cci__sci_event **event) {
    cci__sci_desc_t sd = target->sd;
    cci__sci_error_t status = CCI__SCI_ERR_ILLEGAL_OPERATION;
    *event = NULL;
    cci__sci_lock(sd);
    if (!target->calls_back) status = cci__sci_await(target, cci__sci_deadline(timeout), event);
    cci__sci_unlock(sd);
    return status;
}

CCI__SCI_LINKAGE cci__sci_segment_cb_reason_t CCI__SCI(SCIWaitForLocalSegmentEvent)(
    cci__sci_local_segment_t segment, unsigned int *sourcenodeId, unsigned int *localAdapterNo, unsigned int timeout,
    unsigned int flags, cci__sci_error_t *error) {
    cci__sci_segment_cb_reason_t reason = (cci__sci_segment_cb_reason_t)0;
    cci__sci_error_t status;
    cci__sci_event *event;
    (void)flags;
    if (cci__sci_lacks(segment, error)) return reason;
    status = cci__sci_await_event(&segment->served.target, timeout, &event);
    if (event) {
        reason = event->reason;
        cci__sci_free(event);
        if (sourcenodeId) *sourcenodeId = CCI__SCI_NODE;
        if (localAdapterNo) *localAdapterNo = 0;
    }
    cci__sci_set(error, status);
    return reason;
}

/* ==================================================================================================================
 * >>sisci-connect
 *
 * SCIConnectSegment finds the owner of a number and asks it for the memory; waiting for the answer is done by
 * >>sisci-progress, or by an event where the program connects asynchronously.
 * ================================================================================================================== */

static cci__sci_error_t cci__sci_reachable(unsigned int node, unsigned int adapter) {
    if (adapter != 0) return CCI__SCI_ERR_NO_LINK_ACCESS;
    return node == CCI__SCI_NODE ? CCI__SCI_ERR_OK : CCI__SCI_ERR_NO_REMOTE_LINK_ACCESS;
}

/* Asks, and leaves the answer to an event. */
static void cci__sci_connect_later(cci__sci_remote *r, uint64_t deadline_ns) {
    cci__sci_error_t status;
    r->asynchronous = 1;
    r->deadline_ns = deadline_ns;
    r->target.sd->connecting++;
    if (r->target.sd->expiry_ns > deadline_ns) r->target.sd->expiry_ns = deadline_ns;
    status = cci__sci_ask(r);
    if (status != CCI__SCI_ERR_OK)
        cci__sci_decide(r, CCI__SCI_REFUSED, status == CCI__SCI_ERR_BUSY ? CCI__SCI_ERR_TIMEOUT : status);
    cci__sci_wake(r->target.sd); /* its deadline may be the next */
}

CCI__SCI_LINKAGE void CCI__SCI(SCIConnectSegment)(cci__sci_desc_t sd, cci__sci_remote_segment_t *segment,
                                                  unsigned int nodeId, unsigned int segmentId,
                                                  unsigned int localAdapterNo, cci__sci_cb_remote_segment_t callback,
                                                  void *callbackArg, unsigned int timeout, unsigned int flags,
                                                  cci__sci_error_t *error) {
    cci__sci_remote_segment_t made;
    int is_group = nodeId == CCI__SCI_BROADCAST_NODEID, calls_back = (flags & CCI__SCI_FLAG_USE_CALLBACK) != 0;
    cci__sci_error_t status = cci__sci_reachable(is_group ? CCI__SCI_NODE : nodeId, localAdapterNo);
    if (!sd || !segment || (calls_back && !callback)) {
        cci__sci_set(error, CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    if (status != CCI__SCI_ERR_OK) {
        cci__sci_set(error, status);
        return;
    }
    made = (cci__sci_remote_segment_t)cci__sci_alloc(sizeof *made);
    if (!made) {
        cci__sci_set(error, CCI__SCI_ERR_NOSPC);
        return;
    }
    cci__sci_lock(sd);
    cci__sci_init_remote(&made->remote, sd, CCI__SCI_REMOTE_SEGMENT, is_group ? CCI__SCI_GROUP : CCI__SCI_SEGMENT,
                         segmentId);
    made->remote.target.calls_back = calls_back;
    made->remote.target.argument = callbackArg;
    made->remote.target.callback.remote = callback;
    if (!cci__sci_need_help(sd))
        status = CCI__SCI_ERR_SYSTEM;
    else if (flags & CCI__SCI_FLAG_ASYNCHRONOUS_CONNECT)
        cci__sci_connect_later(&made->remote, cci__sci_deadline(timeout));
    else
        status = cci__sci_connect(&made->remote, cci__sci_deadline(timeout));
    if (status == CCI__SCI_ERR_OK) {
        *segment = made;
    } else {
        cci__sci_disconnect(&made->remote);
        cci__sci_free(made);
    }
    cci__sci_leave(sd, error, status);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIDisconnectSegment)(cci__sci_remote_segment_t segment, unsigned int flags,
                                                     cci__sci_error_t *error) {
    cci__sci_desc_t sd;
    (void)flags;
    if (cci__sci_lacks(segment, error)) return;
    sd = segment->remote.target.sd;
    cci__sci_lock(sd);
    if (segment->users || cci__sci_is_pinned(&segment->remote.target)) {
        cci__sci_leave(sd, error, CCI__SCI_ERR_BUSY);
        return;
    }
    if (segment->whole) (void)munmap(segment->whole, (size_t)segment->remote.size_bytes);
    cci__sci_disconnect(&segment->remote);
    cci__sci_free(segment);
    cci__sci_leave(sd, error, CCI__SCI_ERR_OK);
}

CCI__SCI_LINKAGE unsigned int CCI__SCI(SCIGetRemoteSegmentSize)(cci__sci_remote_segment_t segment) {
    if (!segment || CCI__SCI_LOAD(segment->remote.state) == CCI__SCI_CONNECTING) return 0; /* not known yet */
    return segment->remote.size_bytes <= UINT32_MAX ? (unsigned int)segment->remote.size_bytes : 0;
}

CCI__SCI_LINKAGE cci__sci_segment_cb_reason_t CCI__SCI(SCIWaitForRemoteSegmentEvent)(cci__sci_remote_segment_t segment,
                                                                                     cci__sci_error_t *status,
                                                                                     unsigned int timeout,
                                                                                     unsigned int flags,
                                                                                     cci__sci_error_t *error) {
    cci__sci_segment_cb_reason_t reason = (cci__sci_segment_cb_reason_t)0;
    cci__sci_error_t result;
    cci__sci_event *event;
    (void)flags;
    if (cci__sci_lacks(segment, error)) return reason;
    result = cci__sci_await_event(&segment->remote.target, timeout, &event);
    if (event) {
        reason = event->reason;
        cci__sci_set(status, event->status);
        cci__sci_free(event);
    }
    cci__sci_set(error, result);
    return reason;
}

/* ==================================================================================================================
 * >>sisci-map
 *
 * A map is a mapping of whole pages, of which the program sees what it asked for; what lies outside of the segment is
 * SCI_ERR_OUT_OF_RANGE. Maps keep their memory when the connection ends. Copies are checked against the map that they
 * name, and against all read-only maps.
 * ================================================================================================================== */

/* Offset and size lie inside a whole of so many bytes. */
static cci__sci_error_t cci__sci_check_range(uint64_t offset, uint64_t size_bytes, uint64_t whole_bytes) {
    if (size_bytes == 0) return CCI__SCI_ERR_SIZE_ALIGNMENT;
    return offset > whole_bytes || size_bytes > whole_bytes - offset ? CCI__SCI_ERR_OUT_OF_RANGE : CCI__SCI_ERR_OK;
}

/* Maps memory behind a descriptor: whole pages, of which the map shows what was asked for. A suggested address is tried
 * first; it must be as far into its page as the offset is. */
static int cci__sci_map_memory(cci__sci_map_t map, int fd, size_t offset, size_t size_bytes, void *address,
                               unsigned int flags) {
    size_t lead = offset % (size_t)sysconf(_SC_PAGESIZE);
    int access = flags & CCI__SCI_FLAG_READONLY_MAP ? PROT_READ : PROT_READ | PROT_WRITE;
    char *hint = flags & CCI__SCI_FLAG_FIXED_MAP_ADDR && address ? (char *)address - lead : NULL;
    void *memory = mmap(hint, lead + size_bytes, access, MAP_SHARED, fd, (off_t)(offset - lead));
    if (memory == MAP_FAILED) return 0;
    map->mapping = memory;
    map->mapping_bytes = lead + size_bytes;
    map->base = (char *)memory + lead;
    return 1;
}

static cci__sci_error_t cci__sci_map_range(cci__sci_map_t map, int fd, char *user, size_t offset, size_t size_bytes,
                                           void *address, unsigned int flags) {
    map->size_bytes = size_bytes;
    if (user) {
        map->base = user + offset;
        return CCI__SCI_ERR_OK;
    }
    return cci__sci_map_memory(map, fd, offset, size_bytes, address, flags) ? CCI__SCI_ERR_OK : CCI__SCI_ERR_NOSPC;
}

static cci__sci_error_t cci__sci_map_local(cci__sci_map_t map, cci__sci_local_segment_t segment, size_t offset,
                                           size_t size_bytes, void *address, unsigned int flags) {
    cci__sci_error_t status;
    if (segment->empty && !segment->user) return CCI__SCI_ERR_ILLEGAL_OPERATION; /* there is no memory yet */
    status = cci__sci_check_range(offset, size_bytes, segment->size_bytes);
    if (status == CCI__SCI_ERR_OK)
        status = cci__sci_map_range(map, segment->served.fd, (char *)segment->user, offset, size_bytes, address, flags);
    if (status == CCI__SCI_ERR_OK) {
        map->local = segment;
        segment->users++;
    }
    return status;
}

static cci__sci_error_t cci__sci_map_remote(cci__sci_map_t map, cci__sci_remote_segment_t segment, size_t offset,
                                            size_t size_bytes, void *address, unsigned int flags) {
    cci__sci_error_t status;
    if (flags & (CCI__SCI_FLAG_CONDITIONAL_INTERRUPT_MAP | CCI__SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP))
        return CCI__SCI_ERR_FLAG_NOT_IMPLEMENTED; /* a store can't trap */
    if (segment->remote.state != CCI__SCI_CONNECTED) return CCI__SCI_ERR_SEGMENT_NOT_CONNECTED;
    status = cci__sci_check_range(offset, size_bytes, (size_t)segment->remote.size_bytes);
    if (status == CCI__SCI_ERR_OK)
        status = cci__sci_map_range(map, segment->remote.fd, NULL, offset, size_bytes, address, flags);
    if (status == CCI__SCI_ERR_OK) {
        map->remote = segment;
        segment->users++;
    }
    return status;
}

/* A map that can't be written to is known to those functions that get an address alone. */
static void cci__sci_note_readonly(cci__sci_map_t map) {
    map->is_readonly = 1;
    if (!map->mapping) return; /* the memory is the program's own */
    cci__sci_lock_world();
    map->next_readonly = cci__sci_world.readonly;
    CCI__SCI_STORE(cci__sci_world.readonly, map);
    cci__sci_unlock_world();
}

static void cci__sci_forget_readonly(cci__sci_map_t map) {
    cci__sci_map_t *at = &cci__sci_world.readonly;
    cci__sci_lock_world();
    while (*at && *at != map) at = &(*at)->next_readonly;
    if (*at) CCI__SCI_STORE(*at, map->next_readonly);
    cci__sci_unlock_world();
}

static int cci__sci_is_readonly_at(const volatile void *address, size_t size_bytes) {
    uintptr_t first = (uintptr_t)address;
    cci__sci_map_t map;
    if (!CCI__SCI_LOAD(cci__sci_world.readonly)) return 0;
    cci__sci_lock_world();
    map = cci__sci_world.readonly;
    while (map && (first >= (uintptr_t)map->base + map->size_bytes || (uintptr_t)map->base >= first + size_bytes))
        map = map->next_readonly;
    cci__sci_unlock_world();
    return map != NULL;
}

/* A map that is to be filled in; NULL: there is no memory. */
static cci__sci_map_t cci__sci_begin_map(cci__sci_desc_t sd, cci__sci_error_t *error) {
    cci__sci_map_t made = (cci__sci_map_t)cci__sci_alloc(sizeof *made);
    if (!made) {
        cci__sci_set(error, CCI__SCI_ERR_NOSPC);
        return NULL;
    }
    made->sd = sd;
    cci__sci_lock(sd);
    return made;
}

/* It has been filled in, or could not be; its first byte, or NULL. */
static char *cci__sci_end_map(cci__sci_map_t made, cci__sci_error_t status, cci__sci_map_t *map, unsigned int flags,
                              cci__sci_error_t *error) {
    cci__sci_leave(made->sd, error, status);
    if (status != CCI__SCI_ERR_OK) {
        cci__sci_free(made);
        return NULL;
    }
    if (flags & CCI__SCI_FLAG_READONLY_MAP) cci__sci_note_readonly(made);
    *map = made;
    return made->base;
}

CCI__SCI_LINKAGE volatile void *CCI__SCI(SCIMapRemoteSegment)(cci__sci_remote_segment_t segment, cci__sci_map_t *map,
                                                              unsigned int offset, unsigned int size, void *addr,
                                                              unsigned int flags, cci__sci_error_t *error) {
    cci__sci_map_t made;
    if (!segment || !map) {
        cci__sci_set(error, CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return NULL;
    }
    made = cci__sci_begin_map(segment->remote.target.sd, error);
    if (!made) return NULL;
    return cci__sci_end_map(made, cci__sci_map_remote(made, segment, offset, size, addr, flags), map, flags, error);
}

CCI__SCI_LINKAGE void *CCI__SCI(SCIMapLocalSegment)(cci__sci_local_segment_t segment, cci__sci_map_t *map,
                                                    unsigned int offset, unsigned int size, void *addr,
                                                    unsigned int flags, cci__sci_error_t *error) {
    cci__sci_map_t made;
    if (!segment || !map) {
        cci__sci_set(error, CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return NULL;
    }
    made = cci__sci_begin_map(segment->served.target.sd, error);
    if (!made) return NULL;
    return cci__sci_end_map(made, cci__sci_map_local(made, segment, offset, size, addr, flags), map, flags, error);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIUnmapSegment)(cci__sci_map_t map, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_desc_t sd;
    (void)flags;
    if (cci__sci_lacks(map, error)) return;
    sd = map->sd;
    cci__sci_lock(sd);
    if (map->users) {
        cci__sci_leave(sd, error, CCI__SCI_ERR_BUSY);
        return;
    }
    *(map->local ? &map->local->users : &map->remote->users) -= 1;
    cci__sci_unlock(sd);
    if (map->is_readonly) cci__sci_forget_readonly(map);
    if (map->mapping) (void)munmap(map->mapping, map->mapping_bytes);
    cci__sci_free(map);
    cci__sci_set(error, CCI__SCI_ERR_OK);
}

/* ---- sequences ------------------------------------------------------------------------------------------------- */

CCI__SCI_LINKAGE void CCI__SCI(SCICreateMapSequence)(cci__sci_map_t map, cci__sci_sequence_t *sequence,
                                                     unsigned int flags, cci__sci_error_t *error) {
    cci__sci_sequence_t made = map && sequence ? (cci__sci_sequence_t)cci__sci_alloc(sizeof *made) : NULL;
    (void)flags; /* all barriers are fast */
    if (!made) {
        cci__sci_set(error, map && sequence ? CCI__SCI_ERR_NOSPC : CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    made->map = map;
    cci__sci_lock(map->sd);
    map->users++;
    cci__sci_unlock(map->sd);
    *sequence = made;
    cci__sci_set(error, CCI__SCI_ERR_OK);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIRemoveSequence)(cci__sci_sequence_t sequence, unsigned int flags,
                                                  cci__sci_error_t *error) {
    (void)flags;
    if (cci__sci_lacks(sequence, error)) return;
    cci__sci_lock(sequence->map->sd);
    sequence->map->users--;
    cci__sci_unlock(sequence->map->sd);
    cci__sci_free(sequence);
    cci__sci_set(error, CCI__SCI_ERR_OK);
}

CCI__SCI_LINKAGE cci__sci_sequence_status_t CCI__SCI(SCIStartSequence)(cci__sci_sequence_t sequence, unsigned int flags,
                                                                       cci__sci_error_t *error) {
    (void)flags;
    if (cci__sci_lacks(sequence, error)) return CCI__SCI_SEQ_PENDING;
    cci__sci_set(error, CCI__SCI_ERR_OK);
    sequence->broken = !cci__sci_is_connected(sequence->map->remote);
    return sequence->broken ? CCI__SCI_SEQ_PENDING : CCI__SCI_SEQ_OK;
}

CCI__SCI_LINKAGE cci__sci_sequence_status_t CCI__SCI(SCICheckSequence)(cci__sci_sequence_t sequence, unsigned int flags,
                                                                       cci__sci_error_t *error) {
    if (cci__sci_lacks(sequence, error)) return CCI__SCI_SEQ_NOT_RETRIABLE;
    cci__sci_set(error, CCI__SCI_ERR_OK);
    if (!(flags & CCI__SCI_FLAG_NO_STORE_BARRIER)) CCI__SCI_FENCE(SEQ_CST);
    if (sequence->broken) return CCI__SCI_SEQ_PENDING;
    sequence->broken = !cci__sci_is_connected(sequence->map->remote);
    return sequence->broken ? CCI__SCI_SEQ_NOT_RETRIABLE : CCI__SCI_SEQ_OK;
}

CCI__SCI_LINKAGE void CCI__SCI(SCIStoreBarrier)(cci__sci_sequence_t sequence, unsigned int flags) {
    (void)sequence, (void)flags;
    CCI__SCI_FENCE(SEQ_CST);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIFlushReadBuffers)(cci__sci_sequence_t sequence) {
    (void)sequence;
    CCI__SCI_FENCE(ACQUIRE);
}

/* Earlier stores are seen before later ones: the caches keep that order once the compiler and processor do. */
CCI__SCI_LINKAGE void CCI__SCI(SCIFlush)(cci__sci_sequence_t sequence, unsigned int flags) {
    (void)sequence, (void)flags;
    CCI__SCI_FENCE(RELEASE);
}

/* ---- copies ---------------------------------------------------------------------------------------------------- */

/* Between memory and a map. */
static cci__sci_error_t cci__sci_copy(void *memory, cci__sci_map_t map, size_t offset, size_t size_bytes,
                                      unsigned int flags) {
    cci__sci_error_t status;
    if (!memory || !map) return CCI__SCI_ERR_ILLEGAL_PARAMETER;
    status = cci__sci_check_range(offset, size_bytes, map->size_bytes);
    if (status != CCI__SCI_ERR_OK) return status;
    if (flags & CCI__SCI_FLAG_BLOCK_READ ? cci__sci_is_readonly_at(memory, size_bytes) : map->is_readonly)
        return CCI__SCI_ERR_ACCESS;
    if (flags & CCI__SCI_FLAG_BLOCK_READ)
        memcpy(memory, map->base + offset, size_bytes);
    else
        memcpy(map->base + offset, memory, size_bytes);
    CCI__SCI_FENCE(SEQ_CST);
    return (flags & CCI__SCI_FLAG_ERROR_CHECK) && !cci__sci_is_connected(map->remote) ? CCI__SCI_ERR_TRANSFER_FAILED
                                                                                      : CCI__SCI_ERR_OK;
}

CCI__SCI_LINKAGE void CCI__SCI(SCIMemCpy)(cci__sci_sequence_t sequence, void *memAddr, cci__sci_map_t remoteMap,
                                          unsigned int remoteOffset, unsigned int size, unsigned int flags,
                                          cci__sci_error_t *error) {
    cci__sci_error_t status = cci__sci_copy(memAddr, remoteMap, remoteOffset, size, flags);
    if (sequence && status == CCI__SCI_ERR_TRANSFER_FAILED) sequence->broken = 1;
    cci__sci_set(error, status);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIMemCopy)(void *memAddr, cci__sci_map_t remoteMap, unsigned int remoteOffset,
                                           unsigned int size, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_set(error, cci__sci_copy(memAddr, remoteMap, remoteOffset, size, flags));
}

CCI__SCI_LINKAGE void CCI__SCI(SCIMemCpy_mcast)(cci__sci_sequence_t sequence[], void *memAddr,
                                                cci__sci_map_t remoteMap[], unsigned int remoteOffset[],
                                                unsigned int size, unsigned int dst_num, unsigned int flags,
                                                cci__sci_error_t *error) {
    cci__sci_error_t first = CCI__SCI_ERR_OK, status;
    unsigned int i;
    if (dst_num && (!remoteMap || !remoteOffset)) {
        cci__sci_set(error, CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    for (i = 0; i < dst_num; i++) {
        CCI__SCI(SCIMemCpy)
        (sequence ? sequence[i] : NULL, memAddr, remoteMap[i], remoteOffset[i], size, flags, &status);
        first = first == CCI__SCI_ERR_OK ? status : first;
    }
    cci__sci_set(error, first);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIMemCpy_dual)(cci__sci_sequence_t sequence1, cci__sci_sequence_t sequence2,
                                               void *memAddr, cci__sci_map_t remoteMap1, cci__sci_map_t remoteMap2,
                                               unsigned int remoteOffset, unsigned int size, unsigned int flags,
                                               cci__sci_error_t *error) {
    cci__sci_sequence_t sequence[2];
    cci__sci_map_t map[2];
    unsigned int offset[2];
    sequence[0] = sequence1;
    sequence[1] = sequence2;
    map[0] = remoteMap1;
    map[1] = remoteMap2;
    offset[0] = offset[1] = remoteOffset;
    CCI__SCI(SCIMemCpy_mcast)(sequence, memAddr, map, offset, size, 2, flags, error);
}

/* To an address inside a map: all that can be checked is that the map can be written to. */
static cci__sci_error_t cci__sci_write(const volatile void *memory, volatile void *address, size_t size_bytes) {
    if (!memory || !address) return CCI__SCI_ERR_ILLEGAL_PARAMETER;
    if (cci__sci_is_readonly_at(address, size_bytes)) return CCI__SCI_ERR_ACCESS;
    memcpy((void *)(uintptr_t)address, (const void *)(uintptr_t)memory, size_bytes);
    CCI__SCI_FENCE(SEQ_CST);
    return CCI__SCI_ERR_OK;
}

CCI__SCI_LINKAGE void CCI__SCI(SCIMemWrite)(void *memAddr, volatile void *remoteAddr, unsigned int size,
                                            unsigned int flags, cci__sci_error_t *error) {
    (void)flags;
    cci__sci_set(error, cci__sci_write(memAddr, remoteAddr, size));
}

CCI__SCI_LINKAGE void CCI__SCI(SCIMemWrite_mcast)(void *memAddr, volatile void *remoteAddr[], unsigned int size,
                                                  unsigned int dst_num, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_error_t first = CCI__SCI_ERR_OK, status;
    unsigned int i;
    (void)flags;
    if (dst_num && !remoteAddr) {
        first = CCI__SCI_ERR_ILLEGAL_PARAMETER;
        dst_num = 0;
    }
    for (i = 0; i < dst_num; i++) {
        status = cci__sci_write(memAddr, remoteAddr[i], size);
        first = first == CCI__SCI_ERR_OK ? status : first;
    }
    cci__sci_set(error, first);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIMemWrite_dual)(volatile void *memAddr, volatile void *remoteAddr1,
                                                 cci__sci_map_t remoteMap1, volatile void *remoteAddr2,
                                                 cci__sci_map_t remoteMap2, unsigned int size, unsigned int flags,
                                                 cci__sci_error_t *error) {
    volatile void *address[2];
    (void)remoteMap1, (void)remoteMap2;
    address[0] = remoteAddr1;
    address[1] = remoteAddr2;
    CCI__SCI(SCIMemWrite_mcast)((void *)(uintptr_t)memAddr, address, size, 2, flags, error);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIRegisterSegmentMemory)(void *address, unsigned int size,
                                                         cci__sci_local_segment_t segment, unsigned int flags,
                                                         cci__sci_error_t *error) {
    cci__sci_error_t status = CCI__SCI_ERR_OK;
    int is_readonly;
    (void)flags;
    if (cci__sci_lacks(segment, error)) return;
    is_readonly = cci__sci_is_readonly_at(address, size); /* of a map: transfers and DMA would fail */
    cci__sci_lock(segment->served.target.sd);
    if (!segment->empty || segment->user) {
        status = CCI__SCI_ERR_ILLEGAL_OPERATION;
    } else if (size == 0) {
        status = CCI__SCI_ERR_SIZE_ALIGNMENT;
    } else if (!address || (uintptr_t)address > UINTPTR_MAX - size || is_readonly) {
        status = CCI__SCI_ERR_ILLEGAL_ADDRESS;
    } else if (size > segment->size_bytes) {
        status = CCI__SCI_ERR_OUT_OF_RANGE;
    } else {
        segment->user = segment->whole = address;
        segment->size_bytes = size;
    }
    cci__sci_leave(segment->served.target.sd, error, status);
}

/* ==================================================================================================================
 * >>sisci-dma
 *
 * A queue gathers transfers, is posted as one job of the engine, and ends as done, failed or aborted. A block transfer
 * is a job of one piece without a queue. Segments and maps that a job uses cannot be removed before it ends.
 * ================================================================================================================== */

/* Flags that name physical addresses, or memory outside of segments. */
#define CCI__SCI_DMA_IMPOSSIBLE (CCI__SCI_FLAG_DMA_PHDMA | CCI__SCI_FLAG_DMA_USER_MEM)

/* What a piece uses can't go before it. */
static void cci__sci_drop_piece(cci__sci_piece *piece) {
    int i;
    if (piece->local) piece->local->users--;
    if (piece->remote) piece->remote->users--;
    for (i = 0; i < 2; i++)
        if (piece->map[i]) piece->map[i]->users--;
    memset(piece, 0, sizeof *piece);
}

static void cci__sci_drop_pieces(cci__sci_job *job) {
    unsigned int i;
    for (i = 0; i < job->count; i++) cci__sci_drop_piece(&job->piece[i]);
    job->count = 0;
}

static void cci__sci_block_ended(cci__sci_block *block, cci__sci_error_t status);
static int cci__sci_take_interrupt(int fd);
static int cci__sci_poll(cci__sci_desc_t sd, int fd, uint64_t deadline_ns);

/* The end of a post: those who wait are told. */
static void cci__sci_set_queue(cci__sci_dma_queue_t dq, cci__sci_dma_queue_state_t state) {
    uint64_t one = 1;
    dq->state = state;
    if (dq->bell >= 0 && !dq->target.sd->forked) {
        ssize_t n = write(dq->bell, &one, sizeof one);
        (void)n;
    }
    cci__sci_changed(dq->target.sd);
}

static void cci__sci_job_ended(cci__sci_job *job, cci__sci_error_t status) {
    void *object = job->target;
    if (job->target->kind == CCI__SCI_BLOCK) {
        cci__sci_block_ended((cci__sci_block *)object, status);
        return;
    }
    cci__sci_set_queue((cci__sci_dma_queue_t)object,
                       status == CCI__SCI_ERR_OK ? CCI__SCI_DMAQUEUE_DONE : CCI__SCI_DMAQUEUE_ERROR);
    if (job->target->calls_back) cci__sci_post(job->target, CCI__SCI_CB_CONNECT, status);
}

CCI__SCI_LINKAGE void CCI__SCI(SCICreateDMAQueue)(cci__sci_desc_t sd, cci__sci_dma_queue_t *dq,
                                                  unsigned int localAdapterNo, unsigned int maxEntries,
                                                  unsigned int flags, cci__sci_error_t *error) {
    cci__sci_dma_queue_t made;
    if (!sd || !dq || maxEntries == 0 || localAdapterNo != 0) {
        cci__sci_set(error, localAdapterNo ? CCI__SCI_ERR_NO_SUCH_ADAPTERNO : CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    if (flags & CCI__SCI_DMA_IMPOSSIBLE) {
        cci__sci_set(error, CCI__SCI_ERR_FLAG_NOT_IMPLEMENTED);
        return;
    }
    made = (cci__sci_dma_queue_t)cci__sci_alloc(sizeof *made);
    if (made) {
        made->job.piece = maxEntries <= CCI__SCI_ENTRIES
                              ? (cci__sci_piece *)cci__sci_alloc(maxEntries * sizeof *made->job.piece)
                              : NULL;
    }
    if (!made || !made->job.piece) {
        cci__sci_free(made);
        cci__sci_set(error, CCI__SCI_ERR_NOSPC);
        return;
    }
    made->entries_max = maxEntries;
    made->bell = -1;
    made->job.target = &made->target;
    cci__sci_lock(sd);
    cci__sci_init_target(&made->target, sd, CCI__SCI_DMA_QUEUE, 0, NULL);
    cci__sci_unlock(sd);
    *dq = made;
    cci__sci_set(error, CCI__SCI_ERR_OK);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIRemoveDMAQueue)(cci__sci_dma_queue_t dq, unsigned int flags,
                                                  cci__sci_error_t *error) {
    cci__sci_desc_t sd;
    (void)flags;
    if (cci__sci_lacks(dq, error)) return;
    sd = dq->target.sd;
    cci__sci_lock(sd);
    if (dq->state == CCI__SCI_DMAQUEUE_POSTED || dq->state == CCI__SCI_DMAQUEUE_GATHER ||
        cci__sci_is_pinned(&dq->target)) {
        cci__sci_leave(sd, error, CCI__SCI_ERR_ILLEGAL_OPERATION);
        return;
    }
    cci__sci_drop_pieces(&dq->job);
    cci__sci_retire(&dq->target);
    cci__sci_unlock(sd);
    if (dq->bell >= 0) close(dq->bell);
    cci__sci_free(dq->job.piece);
    cci__sci_free(dq);
    cci__sci_set(error, CCI__SCI_ERR_OK);
}

/* All of a segment, for the engine; mapped when first needed, and with the segment unmapped. */
static char *cci__sci_whole(void **whole, int fd, size_t size_bytes) {
    if (!*whole) {
        void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        *whole = memory == MAP_FAILED ? NULL : memory;
    }
    return (char *)*whole;
}

static cci__sci_error_t cci__sci_gather(cci__sci_dma_queue_t dq, cci__sci_local_segment_t local,
                                        cci__sci_remote_segment_t remote, size_t local_offset, size_t remote_offset,
                                        size_t size_bytes, unsigned int flags) {
    cci__sci_error_t status;
    cci__sci_piece *piece;
    char *here, *there;
    if (dq->state != CCI__SCI_DMAQUEUE_IDLE && dq->state != CCI__SCI_DMAQUEUE_GATHER)
        return CCI__SCI_ERR_ILLEGAL_OPERATION;
    if (flags & CCI__SCI_DMA_IMPOSSIBLE) return CCI__SCI_ERR_FLAG_NOT_IMPLEMENTED;
    if (dq->job.count == dq->entries_max) return CCI__SCI_ERR_MAX_ENTRIES;
    if (!local->prepared || (local->empty && !local->user)) return CCI__SCI_ERR_SEGMENT_NOT_PREPARED;
    if (!cci__sci_is_connected(remote)) return CCI__SCI_ERR_SEGMENT_NOT_CONNECTED;
    status = cci__sci_check_range(local_offset, size_bytes, local->size_bytes);
    if (status == CCI__SCI_ERR_OK) status = cci__sci_check_range(remote_offset, size_bytes, remote->remote.size_bytes);
    if (status != CCI__SCI_ERR_OK) return status;
    here = cci__sci_whole(&local->whole, local->served.fd, local->size_bytes);
    there = cci__sci_whole(&remote->whole, remote->remote.fd, (size_t)remote->remote.size_bytes);
    if (!here || !there) return CCI__SCI_ERR_NOSPC;
    piece = &dq->job.piece[dq->job.count++];
    piece->to = flags & CCI__SCI_FLAG_DMA_READ ? here + local_offset : there + remote_offset;
    piece->from = flags & CCI__SCI_FLAG_DMA_READ ? there + remote_offset : here + local_offset;
    piece->size_bytes = size_bytes;
    piece->local = local;
    piece->remote = remote;
    local->users++;
    remote->users++;
    dq->state = CCI__SCI_DMAQUEUE_GATHER;
    return CCI__SCI_ERR_OK;
}

CCI__SCI_LINKAGE cci__sci_dma_queue_state_t CCI__SCI(SCIEnqueueDMATransfer)(
    cci__sci_dma_queue_t dq, cci__sci_local_segment_t localSegment, cci__sci_remote_segment_t remoteSegment,
    unsigned int localOffset, unsigned int remoteOffset, unsigned int size, unsigned int flags,
    cci__sci_error_t *error) {
    cci__sci_dma_queue_state_t state;
    cci__sci_error_t status;
    if (!dq || !localSegment || !remoteSegment) {
        cci__sci_set(error, CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return dq ? dq->state : CCI__SCI_DMAQUEUE_ERROR;
    }
    cci__sci_lock(dq->target.sd);
    status = dq->target.sd == localSegment->served.target.sd && dq->target.sd == remoteSegment->remote.target.sd
                 ? cci__sci_gather(dq, localSegment, remoteSegment, localOffset, remoteOffset, size, flags)
                 : CCI__SCI_ERR_ILLEGAL_OPERATION; /* of three devices: three locks */
    state = dq->state;
    cci__sci_leave(dq->target.sd, error, status);
    return state;
}

CCI__SCI_LINKAGE void CCI__SCI(SCIPostDMAQueue)(cci__sci_dma_queue_t dq, cci__sci_cb_dma_t callback, void *callbackArg,
                                                unsigned int flags, cci__sci_error_t *error) {
    cci__sci_error_t status = CCI__SCI_ERR_OK;
    int calls_back = (flags & CCI__SCI_FLAG_USE_CALLBACK) != 0;
    if (!dq || (calls_back && !callback)) {
        cci__sci_set(error, CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    cci__sci_lock(dq->target.sd);
    if (dq->state != CCI__SCI_DMAQUEUE_GATHER) {
        status = CCI__SCI_ERR_ILLEGAL_OPERATION;
    } else if (!cci__sci_need_help(dq->target.sd)) {
        status = CCI__SCI_ERR_SYSTEM;
    } else {
        dq->target.calls_back = calls_back;
        dq->target.callback.dma = callback;
        dq->target.argument = callbackArg;
        dq->state = CCI__SCI_DMAQUEUE_POSTED;
        if (dq->bell >= 0) (void)cci__sci_take_interrupt(dq->bell); /* it rang for the last post */
        cci__sci_start_job(dq->target.sd, &dq->job);
    }
    cci__sci_leave(dq->target.sd, error, status);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIAbortDMAQueue)(cci__sci_dma_queue_t dq, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_error_t status = CCI__SCI_ERR_OK;
    (void)flags;
    if (cci__sci_lacks(dq, error)) return;
    cci__sci_lock(dq->target.sd);
    if (dq->state == CCI__SCI_DMAQUEUE_POSTED) {
        cci__sci_set_queue(dq, CCI__SCI_DMAQUEUE_ABORTED);
        cci__sci_stop_job(dq->target.sd, &dq->job);
    } else if (dq->state == CCI__SCI_DMAQUEUE_IDLE || dq->state == CCI__SCI_DMAQUEUE_GATHER) {
        status = CCI__SCI_ERR_ILLEGAL_OPERATION;
    }
    cci__sci_leave(dq->target.sd, error, status);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIResetDMAQueue)(cci__sci_dma_queue_t dq, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_error_t status = CCI__SCI_ERR_ILLEGAL_OPERATION;
    (void)flags;
    if (cci__sci_lacks(dq, error)) return;
    cci__sci_lock(dq->target.sd);
    if (dq->state != CCI__SCI_DMAQUEUE_POSTED) {
        cci__sci_drop_pieces(&dq->job);
        cci__sci_purge(&dq->target.sd->calls, &dq->target); /* or the next post's callback would get it */
        cci__sci_purge(&dq->target.events, &dq->target);
        dq->state = CCI__SCI_DMAQUEUE_IDLE;
        status = CCI__SCI_ERR_OK;
    }
    cci__sci_leave(dq->target.sd, error, status);
}

CCI__SCI_LINKAGE cci__sci_dma_queue_state_t CCI__SCI(SCIDMAQueueState)(cci__sci_dma_queue_t dq) {
    cci__sci_dma_queue_state_t state = CCI__SCI_DMAQUEUE_ERROR;
    if (dq) {
        cci__sci_lock(dq->target.sd);
        if (dq->state == CCI__SCI_DMAQUEUE_POSTED) cci__sci_step(dq->target.sd);
        state = dq->state;
        cci__sci_unlock(dq->target.sd);
    }
    return state;
}

/* Sleeps until the queue's state may have changed; 0: a signal came. Where the caller makes progress, it copies. */
static int cci__sci_sleep_for_queue(cci__sci_dma_queue_t dq, uint64_t deadline_ns) {
    cci__sci_desc_t sd = dq->target.sd;
#ifndef CCI_NO_THREADS
    if (sd->has_thread && !cci__sci_is_runner(sd)) {
        if (dq->bell < 0) dq->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (dq->bell >= 0) return cci__sci_poll(sd, dq->bell, deadline_ns);
    }
#endif
    (void)cci__sci_wait(sd, deadline_ns);
    return 1;
}

static cci__sci_error_t cci__sci_await_queue(cci__sci_dma_queue_t dq, uint64_t deadline_ns) {
    cci__sci_error_t status = CCI__SCI_ERR_OK;
    dq->target.waiters++;
    while (status == CCI__SCI_ERR_OK && dq->state == CCI__SCI_DMAQUEUE_POSTED) {
        int late = deadline_ns != CCI__SCI_NEVER && cci__sci_now() >= deadline_ns;
        if (!cci__sci_sleep_for_queue(dq, deadline_ns))
            status = CCI__SCI_ERR_CANCELLED;
        else if (late && dq->state == CCI__SCI_DMAQUEUE_POSTED)
            status = CCI__SCI_ERR_TIMEOUT;
    }
    dq->target.waiters--;
    cci__sci_changed(dq->target.sd); /* who removes the queue may wait for us to leave */
    return status;
}

CCI__SCI_LINKAGE cci__sci_dma_queue_state_t CCI__SCI(SCIWaitForDMAQueue)(cci__sci_dma_queue_t dq, unsigned int timeout,
                                                                         unsigned int flags, cci__sci_error_t *error) {
    cci__sci_dma_queue_state_t state;
    cci__sci_error_t status = CCI__SCI_ERR_OK;
    uint64_t deadline_ns = cci__sci_deadline(timeout);
    (void)flags;
    if (cci__sci_lacks(dq, error)) return CCI__SCI_DMAQUEUE_ERROR;
    cci__sci_lock(dq->target.sd);
    if (dq->target.calls_back || dq->state == CCI__SCI_DMAQUEUE_IDLE || dq->state == CCI__SCI_DMAQUEUE_GATHER)
        status = CCI__SCI_ERR_ILLEGAL_OPERATION;
    else
        status = cci__sci_await_queue(dq, deadline_ns);
    state = dq->state;
    cci__sci_leave(dq->target.sd, error, status);
    return state;
}

/* ---- block transfers ------------------------------------------------------------------------------------------- */

/* Takes the transfer with this handle, and locks its device; NULL if it is over. */
static cci__sci_block *cci__sci_find_block(cci__sci_block_transfer_t handle) {
    cci__sci_desc_t sd;
    cci__sci_block *block = NULL;
    cci__sci_lock_world();
    for (sd = cci__sci_world.devices; sd && !block; sd = sd->next) {
        cci__sci_lock(sd);
        for (block = sd->blocks; block && block->number != (uintptr_t)handle; block = block->next) {
        }
        if (!block) cci__sci_unlock(sd);
    }
    cci__sci_unlock_world();
    return block;
}

static void cci__sci_forget_block(cci__sci_block *block) {
    cci__sci_block **at = &block->target.sd->blocks;
    while (*at != block) at = &(*at)->next;
    *at = block->next;
    block->target.sd->objects--;
    cci__sci_free(block);
}

/* Those that are over, and that nobody waited for, beyond the latest few. */
static void cci__sci_trim_blocks(cci__sci_desc_t sd, unsigned int kept) {
    cci__sci_block *block, *next;
    for (block = sd->blocks; block; block = next) {
        next = block->next;
        if (block->finished && !block->target.calls_back && !block->target.waiters) {
            if (kept > 0)
                kept--;
            else
                cci__sci_forget_block(block);
        }
    }
}

static void cci__sci_forget_blocks(cci__sci_desc_t sd) {
    cci__sci_lock(sd);
    cci__sci_trim_blocks(sd, 0);
    cci__sci_unlock(sd);
}

static void cci__sci_block_ended(cci__sci_block *block, cci__sci_error_t status) {
    cci__sci_desc_t sd = block->target.sd;
    cci__sci_drop_piece(&block->piece);
    block->finished = 1;
    block->status = status;
    if (block->target.calls_back)
        cci__sci_post(&block->target, CCI__SCI_CB_CONNECT, status);
    else
        cci__sci_trim_blocks(sd, CCI__SCI_BLOCKS_KEPT);
    cci__sci_changed(sd);
}

static cci__sci_error_t cci__sci_check_transfer(cci__sci_map_t from, size_t from_offset, cci__sci_map_t to,
                                                size_t to_offset, size_t size_bytes) {
    cci__sci_error_t status = cci__sci_check_range(from_offset, size_bytes, from->size_bytes);
    if (status == CCI__SCI_ERR_OK) status = cci__sci_check_range(to_offset, size_bytes, to->size_bytes);
    if (status == CCI__SCI_ERR_OK && to->is_readonly) status = CCI__SCI_ERR_ACCESS;
    if (status == CCI__SCI_ERR_OK && (!cci__sci_is_connected(from->remote) || !cci__sci_is_connected(to->remote)))
        status = CCI__SCI_ERR_TRANSFER_FAILED;
    return status;
}

CCI__SCI_LINKAGE void CCI__SCI(SCITransferBlock)(cci__sci_map_t sourceMap, unsigned int sourceOffset,
                                                 cci__sci_map_t destinationMap, unsigned int destinationOffset,
                                                 unsigned int size, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_error_t status = CCI__SCI_ERR_ILLEGAL_PARAMETER;
    (void)flags;
    if (sourceMap && destinationMap)
        status = cci__sci_check_transfer(sourceMap, sourceOffset, destinationMap, destinationOffset, size);
    if (status == CCI__SCI_ERR_OK) {
        memmove(destinationMap->base + destinationOffset, sourceMap->base + sourceOffset, size);
        CCI__SCI_FENCE(SEQ_CST);
        if (!cci__sci_is_connected(sourceMap->remote) || !cci__sci_is_connected(destinationMap->remote))
            status = CCI__SCI_ERR_TRANSFER_FAILED;
    }
    cci__sci_set(error, status);
}

static void cci__sci_start_block(cci__sci_block *block, cci__sci_map_t from, size_t from_offset, cci__sci_map_t to,
                                 size_t to_offset, size_t size_bytes) {
    block->piece.from = from->base + from_offset;
    block->piece.to = to->base + to_offset;
    block->piece.size_bytes = size_bytes;
    block->piece.map[0] = from;
    block->piece.map[1] = to;
    from->users++;
    to->users++;
    block->job.target = &block->target;
    block->job.piece = &block->piece;
    block->job.count = 1;
    block->next = block->target.sd->blocks;
    block->target.sd->blocks = block;
    cci__sci_start_job(block->target.sd, &block->job);
}

CCI__SCI_LINKAGE void CCI__SCI(SCITransferBlockAsync)(cci__sci_map_t sourceMap, unsigned int sourceOffset,
                                                      cci__sci_map_t destinationMap, unsigned int destinationOffset,
                                                      unsigned int size, cci__sci_block_transfer_t *block,
                                                      cci__sci_cb_block_transfer_t callback, void *callbackArg,
                                                      unsigned int flags, cci__sci_error_t *error) {
    cci__sci_error_t status;
    cci__sci_block *made;
    cci__sci_desc_t sd;
    int calls_back = (flags & CCI__SCI_FLAG_USE_CALLBACK) != 0;
    if (!sourceMap || !destinationMap || !block || (calls_back && !callback)) {
        cci__sci_set(error, CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    sd = sourceMap->sd;
    status = destinationMap->sd == sd
                 ? cci__sci_check_transfer(sourceMap, sourceOffset, destinationMap, destinationOffset, size)
                 : CCI__SCI_ERR_ILLEGAL_OPERATION;
    made = status == CCI__SCI_ERR_OK ? (cci__sci_block *)cci__sci_alloc(sizeof *made) : NULL;
    if (!made) {
        cci__sci_set(error, status == CCI__SCI_ERR_OK ? CCI__SCI_ERR_NOSPC : status);
        return;
    }
    cci__sci_lock(sd);
    if (cci__sci_need_help(sd)) {
        cci__sci_init_target(&made->target, sd, CCI__SCI_BLOCK, calls_back, callbackArg);
        made->target.callback.block = callback;
        made->number = __atomic_add_fetch(&cci__sci_world.block_number, 1, __ATOMIC_RELAXED);
        *block = (cci__sci_block_transfer_t)made->number;
        cci__sci_start_block(made, sourceMap, sourceOffset, destinationMap, destinationOffset, size);
    } else {
        status = CCI__SCI_ERR_SYSTEM;
        cci__sci_free(made);
    }
    cci__sci_leave(sd, error, status);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIWaitForBlockTransfer)(cci__sci_block_transfer_t block, unsigned int timeout,
                                                        unsigned int flags, cci__sci_error_t *error) {
    cci__sci_block *found = cci__sci_find_block(block);
    uint64_t deadline_ns = cci__sci_deadline(timeout);
    cci__sci_error_t status = CCI__SCI_ERR_ILLEGAL_OPERATION;
    cci__sci_desc_t sd;
    (void)flags;
    if (!found) {
        cci__sci_set(error, status);
        return;
    }
    sd = found->target.sd;
    if (!found->target.calls_back) {
        found->target.waiters++;
        while (!found->finished && cci__sci_wait(sd, deadline_ns)) {
        }
        found->target.waiters--;
        status = found->finished ? found->status : CCI__SCI_ERR_TIMEOUT;
        if (found->finished && !found->target.waiters) cci__sci_forget_block(found);
    }
    cci__sci_leave(sd, error, status);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIAbortBlockTransfer)(cci__sci_block_transfer_t block, unsigned int flags,
                                                      cci__sci_error_t *error) {
    cci__sci_block *found = cci__sci_find_block(block);
    cci__sci_error_t status = CCI__SCI_ERR_ILLEGAL_OPERATION;
    cci__sci_desc_t sd;
    (void)flags;
    if (!found) {
        cci__sci_set(error, status);
        return;
    }
    sd = found->target.sd;
    if (!found->finished && found->job.queued) {
        cci__sci_stop_job(sd, &found->job);
        cci__sci_drop_piece(&found->piece);
        found->finished = 1;
        found->status = CCI__SCI_ERR_CANCELLED;
        if (!found->target.waiters) cci__sci_forget_block(found);
        cci__sci_changed(sd);
        status = CCI__SCI_ERR_OK;
    }
    cci__sci_leave(sd, error, status);
}

/* ==================================================================================================================
 * >>sisci-interrupt
 *
 * An interrupt is an event descriptor that the owner hands to those who connect: triggering it is one write, which
 * wakes the owner from whatever it sleeps on. A data interrupt is one end of a pair of sockets; they get the other end.
 * ================================================================================================================== */

/* Takes a number that is asked for, or any. */
static cci__sci_error_t cci__sci_claim_interrupt(cci__sci_served *served, unsigned int *number, unsigned int flags) {
    cci__sci_error_t status = CCI__SCI_ERR_INTNO_USED;
    int attempt;
    if (flags & CCI__SCI_FLAG_FIXED_INTNO) {
        cci__sci_renumber(served, *number);
        return cci__sci_claim(served, 1);
    }
    for (attempt = 0; attempt < 100 && status == CCI__SCI_ERR_INTNO_USED; attempt++) {
        cci__sci_renumber(served, (uint32_t)cci__sci_random() & 0x7fffffffu);
        status = cci__sci_claim(served, 1);
    }
    *number = served->id;
    return status;
}

/* Makes it known; the device watches the descriptor if there is a callback. */
static cci__sci_error_t cci__sci_offer_interrupt(cci__sci_served *served, int watched, int kind, int *slot,
                                                 unsigned int *number, unsigned int flags) {
    cci__sci_desc_t sd = served->target.sd;
    cci__sci_error_t status;
    if (served->fd < 0 || !cci__sci_need_help(sd)) return CCI__SCI_ERR_SYSTEM;
    if (served->target.calls_back) {
        *slot = cci__sci_watch(sd, kind, watched, served);
        if (*slot < 0) return CCI__SCI_ERR_SYSTEM;
    }
    status = cci__sci_claim_interrupt(served, number, flags);
    served->available = status == CCI__SCI_ERR_OK;
    return status;
}

static cci__sci_error_t cci__sci_check_interrupt(cci__sci_desc_t sd, const void *interrupt, unsigned int adapter,
                                                 const unsigned int *number, int has_callback, unsigned int flags) {
    if (!sd || !interrupt || !number || ((flags & CCI__SCI_FLAG_USE_CALLBACK) && !has_callback))
        return CCI__SCI_ERR_ILLEGAL_PARAMETER;
    if (flags & (CCI__SCI_FLAG_SHARED_INT | CCI__SCI_FLAG_CONDITIONAL_INTERRUPT))
        return CCI__SCI_ERR_FLAG_NOT_IMPLEMENTED; /* one number has one receiver, and a store can't trap */
    return cci__sci_adapter(adapter);
}

CCI__SCI_LINKAGE void CCI__SCI(SCICreateInterrupt)(cci__sci_desc_t sd, cci__sci_local_interrupt_t *interrupt,
                                                   unsigned int localAdapterNo, unsigned int *interruptNo,
                                                   cci__sci_cb_interrupt_t callback, void *callbackArg,
                                                   unsigned int flags, cci__sci_error_t *error) {
    cci__sci_local_interrupt_t made;
    cci__sci_error_t status =
        cci__sci_check_interrupt(sd, interrupt, localAdapterNo, interruptNo, callback != NULL, flags);
    made = status == CCI__SCI_ERR_OK ? (cci__sci_local_interrupt_t)cci__sci_alloc(sizeof *made) : NULL;
    if (!made) {
        cci__sci_set(error, status == CCI__SCI_ERR_OK ? CCI__SCI_ERR_NOSPC : status);
        return;
    }
    cci__sci_lock(sd);
    cci__sci_init_target(&made->served.target, sd, CCI__SCI_INTERRUPT, (flags & CCI__SCI_FLAG_USE_CALLBACK) != 0,
                         callbackArg);
    made->served.target.callback.interrupt = callback;
    made->slot = -1;
    made->served.counting = (flags & CCI__SCI_FLAG_COUNTING_INT) != 0;
    made->served.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | (made->served.counting ? EFD_SEMAPHORE : 0));
    cci__sci_add_served(&made->served);
    status = cci__sci_offer_interrupt(&made->served, made->served.fd, CCI__SCI_SLOT_INTERRUPT, &made->slot, interruptNo,
                                      flags);
    if (status == CCI__SCI_ERR_OK) {
        *interrupt = made;
    } else {
        cci__sci_unwatch(sd, made->slot);
        cci__sci_remove_served(&made->served);
    }
    cci__sci_leave(sd, error, status);
}

/* Takes one interrupt, without ever blocking: whoever is connected could make the descriptor a blocking one and empty
 * it before us. */
static int cci__sci_take_interrupt(int fd) {
    uint64_t count = 0;
    struct iovec piece;
    ssize_t n;
    piece.iov_base = &count;
    piece.iov_len = sizeof count;
#ifdef SYS_preadv2
    n = (ssize_t)syscall(SYS_preadv2, fd, &piece, 1, -1L, -1L, CCI__SCI_RWF_NOWAIT);
    if (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)) n = readv(fd, &piece, 1);
#else
    n = readv(fd, &piece, 1);
#endif
    return n == (ssize_t)sizeof count && count > 0;
}

static void cci__sci_hear_interrupt(cci__sci_local_interrupt_t interrupt) {
    if (!interrupt->served.target.calls_back) { /* the callback was cancelled: leave it to those who wait */
        cci__sci_unwatch(interrupt->served.target.sd, interrupt->slot);
        interrupt->slot = -1;
    } else if (cci__sci_take_interrupt(interrupt->served.fd)) {
        cci__sci_post(&interrupt->served.target, CCI__SCI_CB_CONNECT, CCI__SCI_ERR_OK);
    }
}

/* The descriptor that becomes readable with an interrupt that has no callback; SCIWaitForInterrupt takes it. */
CCI__SCI_INTERNAL int cci__sci_interrupt_fd(cci__sci_local_interrupt_t interrupt) {
    return interrupt->served.fd;
}

/* Ends all connections to it: those who had them are told. */
CCI__SCI_INTERNAL void cci__sci_disconnect_users(cci__sci_local_interrupt_t interrupt) {
    cci__sci_lock(interrupt->served.target.sd);
    cci__sci_end_connections(&interrupt->served, 0, 0);
    cci__sci_unlock(interrupt->served.target.sd);
}

/* Sleeps until a descriptor of an object is readable, the device has something to do (where the caller makes its
 * progress) or the time is over; the lock is free meanwhile. 0: a signal came. */
static int cci__sci_poll(cci__sci_desc_t sd, int fd, uint64_t deadline_ns) {
    struct pollfd item[2];
    nfds_t count = 1;
    uint64_t soon_ns = CCI__SCI_NEVER;
    int n;
    if (sd->forked) return 0; /* what would come is the parent's */
    item[0].fd = fd;
    item[1].fd = sd->epoll;
    item[0].events = item[1].events = POLLIN;
    item[0].revents = item[1].revents = 0;
#ifndef CCI_NO_THREADS
    if (!sd->has_thread) count = 2;
#else
    count = 2;
    if (cci__sci_world.devices != sd || sd->next) soon_ns = cci__sci_now() + 1000000u;
#endif
    if (count == 2 && (sd->jobs || sd->connecting || sd->rejoining || sd->listener.slot < 0))
        soon_ns = cci__sci_now() + 1000000u;
    cci__sci_unlock(sd);
    n = poll(item, count, cci__sci_until(soon_ns < deadline_ns ? soon_ns : deadline_ns));
    cci__sci_lock(sd);
    if (n < 0) return errno != EINTR;
    if (count == 2 && (item[1].revents || soon_ns != CCI__SCI_NEVER)) (void)cci__sci_wait(sd, 0);
    return 1;
}

/* Waits for what `take` takes from an interrupt: its descriptor is waited on directly, so one write wakes us. */
static cci__sci_error_t cci__sci_await_interrupt(cci__sci_served *served, int fd, int (*take)(int, void *), void *into,
                                                 uint64_t deadline_ns) {
    cci__sci_target *target = &served->target;
    cci__sci_error_t status = CCI__SCI_ERR_OK;
    target->waiters++;
    for (;;) {
        if (target->removed) {
            status = CCI__SCI_ERR_CANCELLED;
        } else if (!take(fd, into)) {
            if (deadline_ns != CCI__SCI_NEVER && cci__sci_now() >= deadline_ns) {
                status = CCI__SCI_ERR_TIMEOUT;
                cci__sci_step(target->sd); /* a program that only ever looks serves others too */
            } else if (cci__sci_poll(target->sd, fd, deadline_ns)) {
                continue;
            } else {
                status = CCI__SCI_ERR_CANCELLED;
            }
        }
        break;
    }
    target->waiters--;
    cci__sci_changed(target->sd);
    return status;
}

static int cci__sci_take_plain(int fd, void *into) {
    (void)into;
    return cci__sci_take_interrupt(fd);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIWaitForInterrupt)(cci__sci_local_interrupt_t interrupt, unsigned int timeout,
                                                    unsigned int flags, cci__sci_error_t *error) {
    cci__sci_error_t status = CCI__SCI_ERR_ILLEGAL_OPERATION;
    cci__sci_event *event;
    cci__sci_desc_t sd;
    (void)flags;
    if (cci__sci_lacks(interrupt, error)) return;
    sd = interrupt->served.target.sd;
    cci__sci_lock(sd);
    event = interrupt->served.target.calls_back ? NULL : cci__sci_take(&interrupt->served.target.events);
    if (event) { /* from before the callback was cancelled */
        cci__sci_free(event);
        status = CCI__SCI_ERR_OK;
    } else if (!interrupt->served.target.calls_back) {
        status = cci__sci_await_interrupt(&interrupt->served, interrupt->served.fd, cci__sci_take_plain, NULL,
                                          cci__sci_deadline(timeout));
    }
    cci__sci_leave(sd, error, status);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIRemoveInterrupt)(cci__sci_local_interrupt_t interrupt, unsigned int flags,
                                                   cci__sci_error_t *error) {
    uint64_t one = 1;
    cci__sci_desc_t sd;
    (void)flags;
    if (cci__sci_lacks(interrupt, error)) return;
    sd = interrupt->served.target.sd;
    cci__sci_lock(sd);
    cci__sci_catch_up(&interrupt->served);
    if (interrupt->served.connection_count || cci__sci_is_pinned(&interrupt->served.target)) {
        cci__sci_leave(sd, error, CCI__SCI_ERR_BUSY);
        return;
    }
    interrupt->served.target.removed = 1;
    if (interrupt->served.target.waiters) { /* those who wait look up */
        ssize_t n = write(interrupt->served.fd, &one, sizeof one);
        (void)n;
    }
    cci__sci_unwatch(sd, interrupt->slot);
    cci__sci_remove_served(&interrupt->served);
    cci__sci_leave(sd, error, CCI__SCI_ERR_OK);
}

/* Connects a remote interrupt of either kind; frees it if that fails. */
static cci__sci_error_t cci__sci_connect_interrupt(cci__sci_remote *r, cci__sci_desc_t sd, int what, uint32_t number,
                                                   unsigned int timeout_ms) {
    cci__sci_error_t status = CCI__SCI_ERR_SYSTEM;
    cci__sci_lock(sd);
    cci__sci_init_remote(r, sd, CCI__SCI_REMOTE_OTHER, what, number);
    if (cci__sci_need_help(sd)) status = cci__sci_connect(r, cci__sci_deadline(timeout_ms));
    if (status != CCI__SCI_ERR_OK) {
        cci__sci_disconnect(r);
        cci__sci_free(r);
    }
    cci__sci_unlock(sd);
    return status;
}

static void cci__sci_disconnect_interrupt(cci__sci_remote *r, cci__sci_error_t *error) {
    cci__sci_desc_t sd;
    if (cci__sci_lacks(r, error)) return;
    sd = r->target.sd;
    cci__sci_lock(sd);
    cci__sci_disconnect(r);
    cci__sci_free(r);
    cci__sci_leave(sd, error, CCI__SCI_ERR_OK);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIConnectInterrupt)(cci__sci_desc_t sd, cci__sci_remote_interrupt_t *interrupt,
                                                    unsigned int nodeId, unsigned int localAdapterNo,
                                                    unsigned int interruptNo, unsigned int timeout, unsigned int flags,
                                                    cci__sci_error_t *error) {
    cci__sci_error_t status = cci__sci_reachable(nodeId, localAdapterNo);
    cci__sci_remote_interrupt_t made = NULL;
    (void)flags; /* SCI_FLAG_COUNTING_INT: as the owner has it */
    if (!sd || !interrupt) status = CCI__SCI_ERR_ILLEGAL_PARAMETER;
    if (status == CCI__SCI_ERR_OK) {
        made = (cci__sci_remote_interrupt_t)cci__sci_alloc(sizeof *made);
        status = made ? cci__sci_connect_interrupt(&made->remote, sd, CCI__SCI_INTERRUPT, interruptNo, timeout)
                      : CCI__SCI_ERR_NOSPC;
    }
    if (status == CCI__SCI_ERR_OK) *interrupt = made;
    cci__sci_set(error, status);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIDisconnectInterrupt)(cci__sci_remote_interrupt_t interrupt, unsigned int flags,
                                                       cci__sci_error_t *error) {
    (void)flags;
    cci__sci_disconnect_interrupt(interrupt ? &interrupt->remote : NULL, error);
}

/* Connects to an interrupt without waiting: the other side may be this very thread. */
CCI__SCI_INTERNAL cci__sci_remote_interrupt_t cci__sci_begin_interrupt(cci__sci_desc_t sd, unsigned int number) {
    cci__sci_remote_interrupt_t made = (cci__sci_remote_interrupt_t)cci__sci_alloc(sizeof *made);
    if (!made) return NULL;
    cci__sci_lock(sd);
    cci__sci_init_remote(&made->remote, sd, CCI__SCI_REMOTE_OTHER, CCI__SCI_INTERRUPT, number);
    cci__sci_connect_later(&made->remote, cci__sci_deadline(CCI__SCI_INFINITE_TIMEOUT));
    if (made->remote.state == CCI__SCI_CONNECTING) { /* its state tells all: nobody waits for an event */
        made->remote.asynchronous = 0;
        sd->connecting--;
    }
    cci__sci_unlock(sd);
    return made;
}

/* CCI__SCI_CONNECTING, CCI__SCI_CONNECTED, or how it ended. */
CCI__SCI_INTERNAL int cci__sci_interrupt_state(cci__sci_remote_interrupt_t interrupt) {
    return CCI__SCI_LOAD(interrupt->remote.state);
}

CCI__SCI_LINKAGE void CCI__SCI(SCITriggerInterrupt)(cci__sci_remote_interrupt_t interrupt, unsigned int flags,
                                                    cci__sci_error_t *error) {
    uint64_t one = 1;
    ssize_t n;
    (void)flags;
    if (!interrupt || CCI__SCI_LOAD(interrupt->remote.state) != CCI__SCI_CONNECTED) {
        cci__sci_set(error, interrupt ? CCI__SCI_ERR_NOT_CONNECTED : CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    n = write(interrupt->remote.fd, &one, sizeof one);
    (void)n; /* a full counter interrupts just as well */
    cci__sci_set(error, CCI__SCI_ERR_OK);
}

/* ---- data interrupts ------------------------------------------------------------------------------------------- */

CCI__SCI_LINKAGE void CCI__SCI(SCICreateDataInterrupt)(cci__sci_desc_t sd, cci__sci_local_data_interrupt_t *interrupt,
                                                       unsigned int localAdapterNo, unsigned int *interruptNo,
                                                       cci__sci_cb_data_interrupt_t callback, void *callbackArg,
                                                       unsigned int flags, cci__sci_error_t *error) {
    cci__sci_local_data_interrupt_t made;
    int pair[2] = {-1, -1};
    cci__sci_error_t status =
        cci__sci_check_interrupt(sd, interrupt, localAdapterNo, interruptNo, callback != NULL, flags);
    made = status == CCI__SCI_ERR_OK ? (cci__sci_local_data_interrupt_t)cci__sci_alloc(sizeof *made) : NULL;
    if (!made) {
        cci__sci_set(error, status == CCI__SCI_ERR_OK ? CCI__SCI_ERR_NOSPC : status);
        return;
    }
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) pair[0] = pair[1] = -1;
    cci__sci_lock(sd);
    cci__sci_init_target(&made->served.target, sd, CCI__SCI_DATA_INTERRUPT, (flags & CCI__SCI_FLAG_USE_CALLBACK) != 0,
                         callbackArg);
    made->served.target.callback.data_interrupt = callback;
    made->slot = -1;
    made->receiver = pair[0];
    made->served.fd = pair[1];
    cci__sci_add_served(&made->served);
    status = cci__sci_offer_interrupt(&made->served, made->receiver, CCI__SCI_SLOT_DATA_INTERRUPT, &made->slot,
                                      interruptNo, flags);
    if (status == CCI__SCI_ERR_OK) {
        *interrupt = made;
    } else {
        cci__sci_unwatch(sd, made->slot);
        cci__sci_remove_served(&made->served);
        cci__sci_close(sd, pair[0]);
    }
    cci__sci_leave(sd, error, status);
}

/* What one data interrupt brought. */
typedef struct cci__sci_packet {
    unsigned int length;                     /* of the data */
    char bytes[CCI__SCI_DATA_INTERRUPT_MAX]; /* the data */
} cci__sci_packet;

/* Takes one packet, or with `peek` looks at it; what is longer than any of ours is dropped. */
static int cci__sci_take_packet(int fd, cci__sci_packet *packet, int peek) {
    struct iovec piece;
    struct msghdr header;
    ssize_t n;
    do {
        memset(&header, 0, sizeof header);
        piece.iov_base = packet->bytes;
        piece.iov_len = sizeof packet->bytes;
        header.msg_iov = &piece;
        header.msg_iovlen = 1;
        n = recvmsg(fd, &header, MSG_DONTWAIT | (peek ? MSG_PEEK : 0));
        if (n >= 0 && peek && (header.msg_flags & MSG_TRUNC)) (void)recvmsg(fd, &header, MSG_DONTWAIT);
    } while (n >= 0 && (header.msg_flags & MSG_TRUNC));
    packet->length = n < 0 ? 0 : (unsigned int)n;
    return n >= 0;
}

static void cci__sci_hear_data_interrupt(cci__sci_local_data_interrupt_t interrupt) {
    cci__sci_packet packet;
    if (!interrupt->served.target.calls_back) {
        cci__sci_unwatch(interrupt->served.target.sd, interrupt->slot);
        interrupt->slot = -1;
    } else if (cci__sci_take_packet(interrupt->receiver, &packet, 0)) {
        cci__sci_post_data(&interrupt->served.target, CCI__SCI_CB_CONNECT, CCI__SCI_ERR_OK, packet.bytes,
                           packet.length);
    }
}

/* Where a waiting program wants its data. */
typedef struct cci__sci_wanted {
    void *data;                /* where data goes */
    unsigned int room, length; /* bytes there; bytes that came */
} cci__sci_wanted;

/* A packet that does not fit stays where it is. */
static int cci__sci_take_wanted(int fd, void *into) {
    cci__sci_wanted *wanted = (cci__sci_wanted *)into;
    cci__sci_packet packet;
    if (!cci__sci_take_packet(fd, &packet, 1)) return 0;
    wanted->length = packet.length;
    if (packet.length <= wanted->room) {
        if (!cci__sci_take_packet(fd, &packet, 0)) return 0;
        wanted->length = packet.length;
        memcpy(wanted->data, packet.bytes, packet.length);
    }
    return 1;
}

static cci__sci_error_t cci__sci_await_data(cci__sci_local_data_interrupt_t interrupt, cci__sci_wanted *wanted,
                                            uint64_t deadline_ns) {
    cci__sci_target *target = &interrupt->served.target;
    cci__sci_error_t status = CCI__SCI_ERR_OK;
    cci__sci_event *event = target->events.first;
    if (target->calls_back) return CCI__SCI_ERR_ILLEGAL_OPERATION;
    if (event) { /* from before the callback was cancelled */
        wanted->length = event->length;
        if (event->length <= wanted->room) {
            memcpy(wanted->data, event + 1, event->length);
            cci__sci_free(cci__sci_take(&target->events));
        }
    } else {
        status = cci__sci_await_interrupt(&interrupt->served, interrupt->receiver, cci__sci_take_wanted, wanted,
                                          deadline_ns);
    }
    return status == CCI__SCI_ERR_OK && wanted->length > wanted->room ? CCI__SCI_ERR_OUT_OF_RANGE : status;
}

CCI__SCI_LINKAGE void CCI__SCI(SCIWaitForDataInterrupt)(cci__sci_local_data_interrupt_t interrupt, void *data,
                                                        unsigned int *length, unsigned int timeout, unsigned int flags,
                                                        cci__sci_error_t *error) {
    cci__sci_error_t status;
    cci__sci_wanted wanted;
    cci__sci_desc_t sd;
    (void)flags;
    if (!interrupt || !length || (*length && !data)) {
        cci__sci_set(error, CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    wanted.data = data;
    wanted.room = *length;
    wanted.length = 0;
    sd = interrupt->served.target.sd;
    cci__sci_lock(sd);
    status = cci__sci_await_data(interrupt, &wanted, cci__sci_deadline(timeout));
    cci__sci_unlock(sd);
    if (status == CCI__SCI_ERR_OK || status == CCI__SCI_ERR_OUT_OF_RANGE) *length = wanted.length;
    cci__sci_set(error, status);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIRemoveDataInterrupt)(cci__sci_local_data_interrupt_t interrupt, unsigned int flags,
                                                       cci__sci_error_t *error) {
    cci__sci_desc_t sd;
    int receiver;
    (void)flags;
    if (cci__sci_lacks(interrupt, error)) return;
    sd = interrupt->served.target.sd;
    cci__sci_lock(sd);
    cci__sci_catch_up(&interrupt->served);
    if (interrupt->served.connection_count || cci__sci_is_pinned(&interrupt->served.target)) {
        cci__sci_leave(sd, error, CCI__SCI_ERR_BUSY);
        return;
    }
    interrupt->served.target.removed = 1;
    receiver = interrupt->receiver;
    if (interrupt->served.target.waiters) /* those who wait look up */
        (void)syscall(SYS_shutdown, receiver, SHUT_RD);
    cci__sci_unwatch(sd, interrupt->slot);
    cci__sci_remove_served(&interrupt->served);
    cci__sci_close(sd, receiver);
    cci__sci_leave(sd, error, CCI__SCI_ERR_OK);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIConnectDataInterrupt)(cci__sci_desc_t sd, cci__sci_remote_data_interrupt_t *interrupt,
                                                        unsigned int nodeId, unsigned int localAdapterNo,
                                                        unsigned int interruptNo, unsigned int timeout,
                                                        unsigned int flags, cci__sci_error_t *error) {
    cci__sci_error_t status = cci__sci_reachable(nodeId, localAdapterNo);
    cci__sci_remote_data_interrupt_t made = NULL;
    (void)flags;
    if (!sd || !interrupt) status = CCI__SCI_ERR_ILLEGAL_PARAMETER;
    if (status == CCI__SCI_ERR_OK) {
        made = (cci__sci_remote_data_interrupt_t)cci__sci_alloc(sizeof *made);
        status = made ? cci__sci_connect_interrupt(&made->remote, sd, CCI__SCI_DATA_INTERRUPT, interruptNo, timeout)
                      : CCI__SCI_ERR_NOSPC;
    }
    if (status == CCI__SCI_ERR_OK) *interrupt = made;
    cci__sci_set(error, status);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIDisconnectDataInterrupt)(cci__sci_remote_data_interrupt_t interrupt,
                                                           unsigned int flags, cci__sci_error_t *error) {
    (void)flags;
    cci__sci_disconnect_interrupt(interrupt ? &interrupt->remote : NULL, error);
}

CCI__SCI_LINKAGE void CCI__SCI(SCITriggerDataInterrupt)(cci__sci_remote_data_interrupt_t interrupt, void *data,
                                                        unsigned int length, unsigned int flags,
                                                        cci__sci_error_t *error) {
    struct iovec piece;
    struct msghdr header;
    (void)flags;
    if (!interrupt || (length && !data) || length > CCI__SCI_DATA_INTERRUPT_MAX) {
        cci__sci_set(error, interrupt && data ? CCI__SCI_ERR_OUT_OF_RANGE : CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    if (CCI__SCI_LOAD(interrupt->remote.state) != CCI__SCI_CONNECTED) {
        cci__sci_set(error, CCI__SCI_ERR_NOT_CONNECTED);
        return;
    }
    memset(&header, 0, sizeof header);
    piece.iov_base = data;
    piece.iov_len = length;
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    if (sendmsg(interrupt->remote.fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
        cci__sci_set(error, CCI__SCI_ERR_OK);
    } else {
        cci__sci_set(error, errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? CCI__SCI_ERR_NOSPC
                                                                                        : CCI__SCI_ERR_NOT_CONNECTED);
    }
}

/* ==================================================================================================================
 * >>sisci-query
 *
 * What a program asks about the node, its adapter and its segments; functions of later versions of the API; and those
 * that need an adapter, which answer SCI_ERR_NOT_IMPLEMENTED.
 * ================================================================================================================== */

CCI__SCI_LINKAGE int CCI__SCI(SCIProbeNode)(cci__sci_desc_t sd, unsigned int localAdapterNo, unsigned int nodeId,
                                            unsigned int flags, cci__sci_error_t *error) {
    cci__sci_error_t status = sd ? cci__sci_reachable(nodeId, localAdapterNo) : CCI__SCI_ERR_ILLEGAL_PARAMETER;
    (void)flags;
    cci__sci_set(error, status);
    return status == CCI__SCI_ERR_OK;
}

static cci__sci_error_t cci__sci_answer(const cci__sci_query_string_t *question, const char *text) {
    size_t length = strlen(text) + 1;
    if (!question || !question->str || question->length < length) return CCI__SCI_ERR_ILLEGAL_PARAMETER;
    memcpy(question->str, text, length);
    return CCI__SCI_ERR_OK;
}

static cci__sci_error_t cci__sci_answer_adapter(const cci__sci_query_adapter_t *question) {
    unsigned int *answer = question ? (unsigned int *)question->data : NULL;
    if (!answer) return CCI__SCI_ERR_ILLEGAL_PARAMETER;
    if (question->localAdapterNo != 0) return CCI__SCI_ERR_NO_SUCH_ADAPTERNO;
    switch (question->subcommand) {
    case CCI__SCI_Q_ADAPTER_NODEID: *answer = CCI__SCI_NODE; return CCI__SCI_ERR_OK;
    case CCI__SCI_Q_ADAPTER_SERIAL_NUMBER:
    case CCI__SCI_Q_ADAPTER_CARD_TYPE: *answer = 0; return CCI__SCI_ERR_OK;
    case CCI__SCI_Q_ADAPTER_NUMBER_OF_LINKS:
    case CCI__SCI_Q_ADAPTER_LINK_OPERATIONAL: *answer = 1; return CCI__SCI_ERR_OK;
    default: return CCI__SCI_ERR_ILLEGAL_QUERY;
    }
}

CCI__SCI_LINKAGE void CCI__SCI(SCIQuery)(unsigned int command, void *data, unsigned int flags,
                                         cci__sci_error_t *error) {
    cci__sci_error_t status = CCI__SCI_ERR_ILLEGAL_QUERY;
    (void)flags;
    if (command == CCI__SCI_Q_VENDORID) {
        status = cci__sci_answer((const cci__sci_query_string_t *)data, "CCI, shared memory");
    } else if (command == CCI__SCI_Q_API) {
        status = cci__sci_answer((const cci__sci_query_string_t *)data, "1.10");
    } else if (command == CCI__SCI_Q_ADAPTER) {
        status = cci__sci_answer_adapter((const cci__sci_query_adapter_t *)data);
    } else if (command == CCI__SCI_Q_LOCAL_SEGMENT || command == CCI__SCI_Q_REMOTE_SEGMENT) {
        /* there are no addresses of a bus */
        status = data ? CCI__SCI_ERR_NOT_IMPLEMENTED : CCI__SCI_ERR_ILLEGAL_PARAMETER;
    }
    cci__sci_set(error, status);
}

#ifdef CCI_SISCI_API

/* ---- later than the manual ------------------------------------------------------------------------------------- */

CCI_API unsigned int SCIGetLocalSegmentId(cci__sci_local_segment_t segment) {
    return segment ? segment->served.id : 0;
}

CCI_API unsigned int SCIGetRemoteSegmentId(cci__sci_remote_segment_t segment) {
    return segment ? segment->remote.id : 0;
}

CCI_API unsigned int SCIGetLocalSegmentSize(cci__sci_local_segment_t segment) {
    return segment && segment->size_bytes <= UINT32_MAX ? (unsigned int)segment->size_bytes : 0;
}

/* The processor's caches are the memory that all see. */
CCI_API void SCICacheSync(cci__sci_map_t map, void *addr, unsigned int length, unsigned int flags,
                          cci__sci_error_t *error) {
    int is_inside = map && (uintptr_t)addr >= (uintptr_t)map->base &&
                    (uintptr_t)addr - (uintptr_t)map->base <= map->size_bytes &&
                    length <= map->size_bytes - (size_t)((uintptr_t)addr - (uintptr_t)map->base);
    (void)flags;
    CCI__SCI_FENCE(SEQ_CST);
    cci__sci_set(error, !map        ? CCI__SCI_ERR_ILLEGAL_PARAMETER
                        : is_inside ? CCI__SCI_ERR_OK
                                    : CCI__SCI_ERR_OUT_OF_RANGE);
}

/* A queue in which a transfer has ended takes another without being reset. What can't be posted whole is not begun. */
CCI_API void SCIStartDmaTransferVec(cci__sci_dma_queue_t dq, cci__sci_local_segment_t localSegment,
                                    cci__sci_remote_segment_t remoteSegment, unsigned int vecLength,
                                    cci__dis_dma_vec_t *disDmaVec, cci__sci_cb_dma_t callback, void *callbackArg,
                                    unsigned int flags, cci__sci_error_t *error) {
    cci__sci_error_t status = CCI__SCI_ERR_OK, ignored;
    cci__sci_dma_queue_state_t state;
    unsigned int i, way = flags & (CCI__SCI_FLAG_DMA_READ | CCI__SCI_DMA_IMPOSSIBLE);
    if (!dq || !disDmaVec || vecLength == 0 || vecLength > CCI__DIS_DMA_MAX_VECLEN) {
        cci__sci_set(error, CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    state = SCIDMAQueueState(dq);
    if (state == CCI__SCI_DMAQUEUE_DONE || state == CCI__SCI_DMAQUEUE_ABORTED || state == CCI__SCI_DMAQUEUE_ERROR)
        SCIResetDMAQueue(dq, 0, &status);
    for (i = 0; i < vecLength && status == CCI__SCI_ERR_OK; i++) {
        (void)SCIEnqueueDMATransfer(dq, localSegment, remoteSegment, disDmaVec[i].local_offset,
                                    disDmaVec[i].remote_offset, disDmaVec[i].size, way, &status);
    }
    if (status == CCI__SCI_ERR_OK)
        SCIPostDMAQueue(dq, callback, callbackArg, flags & CCI__SCI_FLAG_USE_CALLBACK, &status);
    else if (state != CCI__SCI_DMAQUEUE_POSTED && state != CCI__SCI_DMAQUEUE_GATHER)
        SCIResetDMAQueue(dq, 0, &ignored);
    if (status == CCI__SCI_ERR_OK && (flags & CCI__SCI_FLAG_DMA_WAIT) && !(flags & CCI__SCI_FLAG_USE_CALLBACK))
        (void)SCIWaitForDMAQueue(dq, CCI__SCI_INFINITE_TIMEOUT, 0, &status);
    cci__sci_set(error, status);
}

CCI_API void SCIStartDmaTransfer(cci__sci_dma_queue_t dq, cci__sci_local_segment_t localSegment,
                                 cci__sci_remote_segment_t remoteSegment, unsigned int localOffset, unsigned int size,
                                 unsigned int remoteOffset, cci__sci_cb_dma_t callback, void *callbackArg,
                                 unsigned int flags, cci__sci_error_t *error) {
    cci__dis_dma_vec_t piece;
    piece.size = size;
    piece.local_offset = localOffset;
    piece.remote_offset = remoteOffset;
    piece.flags = 0;
    SCIStartDmaTransferVec(dq, localSegment, remoteSegment, 1, &piece, callback, callbackArg, flags, error);
}

#endif

CCI__SCI_LINKAGE void CCI__SCI(SCIGetLocalNodeId)(unsigned int adapterNo, unsigned int *nodeId, unsigned int flags,
                                                  cci__sci_error_t *error) {
    (void)flags;
    if (nodeId && adapterNo == 0) *nodeId = CCI__SCI_NODE;
    cci__sci_set(error, nodeId ? cci__sci_adapter(adapterNo) : CCI__SCI_ERR_ILLEGAL_PARAMETER);
}

/* The one adapter is called as the host is, or "localhost". */
CCI__SCI_LINKAGE void CCI__SCI(SCIGetNodeInfoByAdapterName)(char *adaptername, unsigned int *adapterNo,
                                                            cci__dis_nodeId_list_t *nodeIdlist,
                                                            cci__dis_adapter_type_t *type, unsigned int flags,
                                                            cci__sci_error_t *error) {
    char host[256];
    (void)flags;
    memset(host, 0, sizeof host);
    if (!adaptername || gethostname(host, sizeof host - 1) != 0) {
        cci__sci_set(error, CCI__SCI_ERR_ILLEGAL_PARAMETER);
        return;
    }
    if (strcmp(adaptername, "localhost") != 0 && strcmp(adaptername, host) != 0) {
        cci__sci_set(error, CCI__SCI_ERR_NO_SUCH_NODEID);
        return;
    }
    if (adapterNo) *adapterNo = 0;
    if (nodeIdlist) {
        memset(*nodeIdlist, 0, sizeof *nodeIdlist);
        (*nodeIdlist)[0] = CCI__SCI_NODE;
    }
    if (type) *type = 0;
    cci__sci_set(error, CCI__SCI_ERR_OK);
}

CCI__SCI_LINKAGE void CCI__SCI(SCIGetNodeIdByAdapterName)(char *adaptername, cci__dis_nodeId_list_t *nodeId,
                                                          cci__dis_adapter_type_t *type, unsigned int flags,
                                                          cci__sci_error_t *error) {
    CCI__SCI(SCIGetNodeInfoByAdapterName)(adaptername, NULL, nodeId, type, flags, error);
}

#endif /* CCI__SCI_SOFTWARE */

/* ---- what can't be done, on this system or without an adapter -------------------------------------------------- */

#if !CCI__SCI_SOFTWARE
#if defined(__GNUC__) || defined(__clang__)
#define CCI__SCI_INTERNAL static __attribute__((unused))
#else
#define CCI__SCI_INTERNAL static
#endif
static void cci__sci_set(cci__sci_error_t *error, cci__sci_error_t status) {
    if (error) *error = status;
}
#endif

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

#define CCI__SCI_REFUSE_VE(type)                                                                                       \
    { cci__sci_set(error, CCI__SCI_ERR_NOT_IMPLEMENTED); }
#define CCI__SCI_REFUSE_RE(type)                                                                                       \
    {                                                                                                                  \
        cci__sci_set(error, CCI__SCI_ERR_NOT_IMPLEMENTED);                                                             \
        return (type)0;                                                                                                \
    }
#define CCI__SCI_REFUSE_VN(type)                                                                                       \
    {}
#define CCI__SCI_REFUSE_RN(type)                                                                                       \
    { return (type)0; }
#define CCI__SCI_REFUSE(kind, type, name, parameters)                                                                  \
    CCI__SCI_LINKAGE type CCI__SCI(name)                                                                               \
    parameters CCI__SCI_REFUSE_##kind(type)

CCI__SCI_IMPOSSIBLE(CCI__SCI_REFUSE, unsigned int)
#if !CCI__SCI_SOFTWARE
CCI__SCI_POSSIBLE(CCI__SCI_REFUSE, unsigned int)
#ifdef CCI_SISCI_API
CCI__SCI_LATER(CCI__SCI_REFUSE, unsigned int)
#endif
#endif

#ifdef CCI_SISCI_API
#define CCI__SCI_ERROR_TEXT(name, value) {value, "SCI_ERR_" #name},
CCI_API const char *SCIGetErrorString(cci__sci_error_t error) {
    static const struct {
        unsigned int value;
        const char *text;
    } texts[] = {CCI__SCI_ERRORS(CCI__SCI_ERROR_TEXT)};
    size_t i;
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].value == (unsigned int)error) return texts[i].text;
    return "no code of SISCI";
}
#endif

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#endif

/* ==================================================================================================================
 * >>sisci-table
 *
 * What offers SISCI to the transport: a table of functions, flags and queries. One is of this header; an adapter's
 * library fills another (>>sisci-vendor).
 * ================================================================================================================== */

#define CCI__SCI_NUMBER(name, value) unsigned int name;

/* What this header or a library offers. */
typedef struct cci__sci_provider {
    cci__sci_functions call; /* by their names in the manual */
    struct {
        CCI__SCI_FLAGS(CCI__SCI_NUMBER)
    } flag; /* SCI_FLAG_... */
    struct {
        CCI__SCI_QUERIES(CCI__SCI_NUMBER)
    } query;                           /* SCI_Q_... */
    unsigned int api_major, api_minor; /* the version of its API */
    unsigned int found;                /* functions that the library has */
    void *library;                     /* from dlopen(); NULL: this header */
} cci__sci_provider;

#define CCI__SCI_ENTRY(kind, type, name, parameters) CCI__SCI(name),
#define CCI__SCI_COUNT(kind, type, name, parameters) +1u
#define CCI__SCI_VALUE(name, value) value,

/* SISCI on shared memory. */
CCI__SCI_INTERNAL const cci__sci_provider cci__sci_software = {{CCI__SCI_FUNCTIONS(CCI__SCI_ENTRY, unsigned int)},
                                                               {CCI__SCI_FLAGS(CCI__SCI_VALUE)},
                                                               {CCI__SCI_QUERIES(CCI__SCI_VALUE)},
                                                               1,
                                                               10,
                                                               0 CCI__SCI_POSSIBLE(CCI__SCI_COUNT, unsigned int),
                                                               NULL};

#ifdef CCI_SISCI_ADAPTER
/* Opens the library at this path, or libsisci.so if it is NULL, and initializes it. NULL, or why it can't be used. */
CCI__SCI_INTERNAL const char *cci__sci_load(cci__sci_provider *vendor, const char *path);
#endif

#if !CCI__SCI_ALONE && defined(CCI_IMPLEMENTATION)

/* ==================================================================================================================
 * >>sisci-transport
 *
 * CCI over SISCI. Every endpoint has a listener: a segment whose number is the service in its URI. A client leaves a
 * connect record there, the numbers of two segments; the server makes one of them, the client the other, and each
 * connects to the other's. These two inboxes are a link: all connections that the client has with this server share it.
 * What a side reads lies in its own inbox, what it writes in the peer's: remote stores alone, no remote loads. (Through
 * an adapter there are few: the peer's card and the listener once, one word before sleeping.)
 *
 *      inbox: card 0      who owns it, sizes: written by the owner before it is offered
 *             ack 256     how far the peer has consumed what the owner sent, how many connections it has ended
 *             left 268    the peer has closed its endpoint, and with it all connections: not set by one that was killed
 *             watch 272   what the peer wants to be told of by a mark (see >>sisci-cci-words)
 *             sleep 320   through an adapter: the peer sleeps and wants an interrupt
 *             ready 328   the peer has closed its inbox to all others
 *             busy 384    the peer's copies from or to the owner's registered memory: odd while one is under way
 *             done 448    answers to the owner's bounced RMAs; 480: what the owner may map of what it has asked for
 *             returns 512 blocks of the peer's inbox that are free again
 *             ring 1024   records of whole lines of 64 bytes; then blocks, then bounce slots
 *
 * Each line begins with a word that is the sequence number of the record that begins there, stored last, or 0: so old
 * bytes are never taken for a record. The record's bytes are in the rest of its lines:
 *
 *      number 4, type 1, flags 1, length 2, index and generation of the connection 4, acknowledgement 4, 48 bytes
 *      0 4, 60 bytes; and so on
 *
 * Messages of up to 496 bytes are in the record, longer ones in a block of which the record has the number. Nothing is
 * ever lost or repeated on the way, so a message is acknowledged by its being consumed.
 *
 * The lock is the endpoint's (>>sisci-cci-base). The provider of SISCI, software or an adapter's library, is a table of
 * functions (>>sisci-cci-provider). In this section stands all that two processes must agree on: sizes, offsets, types
 * of records, what lies in an inbox and at a listener. Whoever changes any of it changes CCI__SISCI_MAGIC.
 * ================================================================================================================== */

#define CCI_LAYERS_INCLUDING
#ifndef CCI_ENDPOINT_IMPLEMENTATION
#define CCI_ENDPOINT_IMPLEMENTATION
#endif
#ifndef CCI_RMA_IMPLEMENTATION
#define CCI_RMA_IMPLEMENTATION
#endif
#include "cci.h"
#undef CCI_LAYERS_INCLUDING

#if CCI__SCI_SOFTWARE

#include <sched.h>
#include <sys/timerfd.h>

#define CCI__SISCI_MAGIC 0x43434936u /* of this version of what lies in shared memory */
#define CCI__SISCI_LINE 64u
#define CCI__SISCI_HEADER 16u
#define CCI__SISCI_FIRST_LINE 48u /* bytes of a record in its first line, and in each other */
#define CCI__SISCI_LATER_LINE 60u
#define CCI__SISCI_SHORT 496u /* bytes of a message that go in the ring */
#define CCI__SISCI_NEAR 40u /* lines of a ring that are enough while the peer has consumed all: one page of an inbox */
#define CCI__SISCI_SWEEP 0x20000000u /* lines after which numbers that were left behind are cleared */
#define CCI__SISCI_CONNECT_RECORDS 64u
#define CCI__SISCI_LISTENER_SIZE 4096u
#define CCI__SISCI_PATH 256u       /* of an adapter's library */
#define CCI__SISCI_CONNECT_MS 100u /* how long a library may wait for another node */
#define CCI__SISCI_BLOCKS 64u      /* per inbox at most */
#define CCI__SISCI_RETURNS 128u
#define CCI__SISCI_SLOTS 4u
#define CCI__SISCI_SLOT_SIZE 32768u
#define CCI__SISCI_REGIONS 4096u
#define CCI__SISCI_SLAB 16u                     /* of each kind at first; a further slab has as many as there are */
#define CCI__SISCI_CONTROL 1024u                /* events about connections that are made at a time */
#define CCI__SISCI_REQUESTS 1024u               /* that the program has not returned */
#define CCI__SISCI_NAME_LOOK_NS (100 * CCI__MS) /* between looks at whether a server that has a name is still there */
#define CCI__SISCI_URI 48u                      /* bytes of a peer's URI, behind a request's data */
#define CCI__SISCI_EXTRA_OPS 1024u              /* pending sends of a connection beyond those that wait */
enum { CCI__SISCI_AN_OP, CCI__SISCI_AN_ITEM };
#define CCI__SISCI_OPS 65536u         /* sends of an endpoint that are pending, if nobody says how many ... */
#define CCI__SISCI_QUEUED (64u << 20) /* ... and bytes of buffers for those that wait */
#define CCI__SISCI_BATCH 16           /* records taken from a link at a time */
#define CCI__SISCI_DEVICE_LOOK_NS (UINT64_C(50000)) /* ns: how often those who poll look at the device */
#define CCI__SISCI_HOT 8u                           /* links through an adapter looked at in each call, however idle */
#define CCI__SISCI_FEW 12u                          /* the same of others, when there are no more */
#define CCI__SISCI_OF_MANY 4u                       /* the same, when there are more */
#define CCI__SISCI_MARKS 16384u                     /* links of an endpoint: bits in its listener */
#define CCI__SISCI_MARKED_BATCH 64u                 /* links whose marks are followed in one call */
#define CCI__SISCI_NO_MARK 0xffffffffu
#define CCI__SISCI_EACH 2u                        /* in `watch`: a mark is wanted with each record */
#define CCI__SISCI_ANSWERS 64u                    /* links that clients are making at once */
#define CCI__SISCI_LINK_IDLE_NS (1000 * CCI__MS)  /* how long a link outlives its last connection */
#define CCI__SISCI_HANDSHAKE_NS (10000 * CCI__MS) /* how long a handshake may take once the peer takes part in it */
#define CCI__SISCI_VM_PIECE (UINT64_C(1) << 20)
#define CCI__SISCI_SPINS 100u  /* looks at whether a peer still copies before there is a millisecond between them */
#define CCI__SISCI_SIGNS 1000u /* looks that show a thread elsewhere, after which it is not believed to copy */
#define CCI__SISCI_VIEWS 16u   /* segments of the peer's memory that a link maps at once */
#define CCI__SISCI_GRANTS 8u   /* to connect to segments, that a link's peer has and may not have used yet */
#define CCI__SISCI_GROUPS 16u  /* multicast connections of an endpoint */
#define CCI__SISCI_GROUP_BYTES 8192u /* of a multicast message at most */
#define CCI__SISCI_GROUP_SLOTS 128u
#define CCI__SISCI_STEAL                                                                                               \
    (8 * CCI__SISCI_GROUP_SLOTS) /* messages after which a sender that stopped in the middle loses its slot */
#define CCI__SISCI_RECEIVERS 64u /* of a group that are woken */
#define CCI__SISCI_GROUP_SIZE (4096u + CCI__SISCI_GROUP_SLOTS * (uint32_t)sizeof(cci__sisci_group_slot))
#define CCI__SISCI_SHARED (UINT64_C(1) << 32) /* in a handle, beside the region's index: peers can map the memory */

enum { /* places in an inbox */
       CCI__SISCI_AT_ACK = 256,
       CCI__SISCI_AT_LEFT = 268,
       CCI__SISCI_AT_WATCH = 272, /* told together with how much is consumed: in the same line */
       CCI__SISCI_AT_SLEEP = 320,
       CCI__SISCI_AT_READY = 328,
       CCI__SISCI_AT_BUSY = 384,
       CCI__SISCI_AT_DONE = 448,
       CCI__SISCI_AT_GRANT = 480,
       CCI__SISCI_AT_RETURNS = 512,
       CCI__SISCI_AT_RING = 1024
};

enum {                     /* records */
       CCI__SISCI_PAD = 1, /* the rest of the ring is empty */
       CCI__SISCI_MESSAGE,
       CCI__SISCI_BLOCK,
       CCI__SISCI_REQUEST, /* client's index, generation, attribute, max_send_size; data */
       CCI__SISCI_CANCEL,  /* client's index, generation */
       CCI__SISCI_ACCEPT,  /* server's index, generation, max_send_size, 0; data */
       CCI__SISCI_REJECT,  /* 0, 0, 0; 1 if the server is busy: the client may ask again; data */
       CCI__SISCI_CONFIRM,
       CCI__SISCI_DISCONNECT, /* 0, 0, how far the sender had consumed; 1 if it has given the connection up */
       CCI__SISCI_PING,
       CCI__SISCI_RMA_WRITE,
       CCI__SISCI_RMA_READ,
       CCI__SISCI_RMA_ATOMIC,
       CCI__SISCI_MAP_REQUEST, /* to map memory: region, its key 8, number */
       CCI__SISCI_DROPPED,     /* receiver: a message that was cancelled was not delivered; where its record ends */
       CCI__SISCI_RESUME       /* ordered: what comes behind a cancellation begins here */
};
#define CCI__SISCI_BUSY 1u          /* in a REJECT */
#define CCI__SISCI_GIVEN_UP 1u      /* in a DISCONNECT */
#define CCI__SISCI_CANCELLED 0x100u /* in a record's word: cancelled */
#define CCI__SISCI_ASKS 0x200u      /* a program waits for its completion */
#define CCI__SISCI_LAST 0x400u      /* the rest of the ring is empty: as if a PAD came next */
#define CCI__SISCI_WAKE 0x800u      /* a message that was sent with CCI_FLAG_WAKE */

enum { CCI__SISCI_RMA_AUTO, CCI__SISCI_RMA_MAP, CCI__SISCI_RMA_COPY, CCI__SISCI_RMA_BOUNCE };

/* What an inbox tells about itself and its owner. */
typedef struct cci__sisci_card {
    uint32_t magic, other_id;                                          /* the number of the other inbox of the link */
    uint32_t ring_lines, block_size, block_count, slot_size;           /* of this inbox, in lines and bytes */
    uint32_t interrupt, max_send_size, pid, region_count, region_size; /* the owner's; of its registrations */
    uint32_t sleeps;                                                   /* the owner may want interrupts */
    uint64_t probe_at, probe;                                          /* where this number is in the owner's memory */
    uint64_t regions_at;                                               /* where these are in the owner's memory */
    uint32_t service, mark; /* the numbers of the owner's listener, and of the link's bit there */
} cci__sisci_card;

/* A connect record is one word, the numbers of the client's inbox and of the server's: a client that is killed leaves
 * it there or does not, but nothing in between. 0: free. Through an adapter there are only stores: such connect records
 * tell their own check, and who is overwritten tries again. */
typedef struct cci__sisci_far_connect_record {
    uint32_t check, node, client_id, server_id; /* check: 0: free; where the client is; the two inboxes */
} cci__sisci_far_connect_record;

typedef struct cci__sisci_listener {
    uint32_t magic, interrupt, count, reserved; /* the owner's interrupt; connect records that there ever were */
    uint64_t connect_record[CCI__SISCI_CONNECT_RECORDS];                          /* of clients on this host */
    cci__sisci_far_connect_record far_connect_record[CCI__SISCI_CONNECT_RECORDS]; /* of clients through an adapter */
    uint64_t name;                                                                /* of the service, 0: it has none */
    uint8_t unused[40];                                                           /* to the next line */
    uint32_t sleeps, unused_too[111];      /* sleeps: who marks a link rings, too */
    uint64_t marks[CCI__SISCI_MARKS / 64]; /* links that are to be looked at */
} cci__sisci_listener;
typedef char cci__sisci_listener_fits[sizeof(cci__sisci_listener) <= CCI__SISCI_LISTENER_SIZE ? 1 : -1];

typedef struct cci__sisci_device {
    uint32_t adapter;                                         /* of the library */
    char directory[CCI__SCI_PATH];                            /* "": as the environment says */
    char group[24];                                           /* likewise */
    uint8_t progress_thread, rma_mode, is_far;                /* progress = thread; rma; through an adapter's library */
    uint32_t ring_bytes, block_count, max_send_size;          /* of an inbox, and of a message */
    uint32_t send_buf_count, recv_buf_count, send_timeout_us; /* of an endpoint at first */
    uint32_t service;                                         /* 0: any free one */
} cci__sisci_device;

struct cci__sisci_conn;
struct cci__sisci_link;
struct cci__sisci_item;

/* ==================================================================================================================
 * >>sisci-cci-state
 *
 * The structures of this process; what lies in shared memory is above. All belong to the endpoint and are guarded by
 * its lock. Operations, items, events and buffers are made in slabs and kept until the endpoint ends; links and groups
 * are allocated one by one. Members that each message needs stand first, a few cache lines together.
 * ================================================================================================================== */

/* An operation of the program until its completion has been returned. */
typedef struct cci__sisci_op {
    cci_evq_event_t event;        /* first: the completion */
    cci_list_t node;              /* in its link, in the order of the calls */
    cci_list_t sibling;           /* in its connection, likewise */
    struct cci__sisci_conn *conn; /* whose it is */
    struct cci__sisci_item *item; /* what is not in the ring yet */
    uint64_t deadline_ns;         /* 0: the next look at the clock says */
    uint32_t start, end;          /* the lines of its record: from start to before end */
    uint32_t word;                /* the second word of its record */
    int status;                   /* its outcome, once that is known */
    uint8_t posted;               /* it completes when the peer has consumed all before `end` */
    uint8_t blocking;             /* a call waits for it; there is no completion */
    uint8_t has_record;           /* `start`, `end` and `word` are of a record in the ring */
    uint8_t done;                 /* blocking: it is over */
    uint8_t is_first_rnr;         /* its completion is the first of its connection that reports CCI_ERR_RNR */
    uint8_t is_cancelled;         /* the peer was asked not to deliver it */
    uint8_t is_renewed;           /* it got more time, since it was behind a message that found no buffer */
} cci__sisci_op;

/* What waits for the ring: a message, an RMA, or an RMA with its message. */
typedef struct cci__sisci_item {
    struct cci__sisci_item *next;         /* in its link's queue, or of the free ones */
    struct cci__sisci_conn *conn;         /* whose it is */
    cci__sisci_op *op;                    /* NULL: silent, or its operation has ended */
    const uint8_t *data;                  /* the message: the program's with CCI_FLAG_NO_COPY, or `buffer` */
    uint8_t *buffer;                      /* of `stride` bytes, kept with the item */
    uint32_t length;                      /* of the message */
    uint8_t is_rma, is_read;              /* it is an RMA, or an atomic; the RMA reads */
    uint8_t has_message;                  /* to be sent, behind the RMA if it is one */
    uint8_t dead;                         /* its operation is over */
    uint8_t is_shared;                    /* peers can map the remote memory */
    uint8_t slots;                        /* that wait for an answer */
    uint8_t is_wake;                      /* sent with CCI_FLAG_WAKE */
    uint8_t width, operation;             /* of an atomic: bytes, and what it does; a width of 0: it is none */
    int status;                           /* of the RMA */
    uint64_t local_key, local_offset;     /* of an RMA: our registration, and where in it */
    uint64_t remote_key, remote_offset;   /* the peer's */
    uint32_t local_region, remote_region; /* their places in the registration tables */
    uint64_t rma_length, begun;           /* of the RMA; how much of it is done or under way */
    uint64_t check;                       /* what the peer's registration table has for remote_key */
    uint64_t operand, compare, *previous; /* of an atomic; where the number goes that was there, or NULL */
    uint64_t deadline_ns;                 /* of a silent one, as in an operation */
    uint64_t token;                       /* the connection's; when it has another by now, nobody wants the item */
} cci__sisci_item;

/* An event that waits for the program. */
typedef struct cci__sisci_event {
    cci_evq_event_t event; /* first */
    uint64_t token;        /* as in an item */
} cci__sisci_event;

typedef struct cci__sisci_conn {
    /* first; its peer_index is the name of the peer's end; its token is 0 once the program has closed it */
    cci_conn_t conn;
    /* What each message needs lies in the line in which that ends. */
    struct cci__sisci_link *link; /* NULL: multicast */
    uint32_t silent_mark;         /* silent messages up to here have until conn.deadline_ns (0: to be set) */
    uint32_t silent_end;          /* behind the last silent message */
    uint8_t closing;              /* the program has closed it */
    uint8_t ended;                /* one side has given it up: what still comes is dropped */
    uint8_t in_gap;               /* the peer has cancelled a message: what comes is dropped until it resumes */
    uint8_t unready;              /* ordered: messages were cancelled, and the program has not heard of the first yet */
    uint32_t ping_end;            /* end of the record that asks whether the peer is there */
    /* By its state in one list. A server's that is requested or accepted: in its link's `asked`; open, with silent
     * messages: in its link's `silent`; broken: in the endpoint's `ending`. */
    cci_list_t state_node;
    cci_list_t *ops;         /* its oldest operation, from which the others hang; NULL: there is none */
    cci_list_t node;         /* in its link's `control` */
    cci_evq_event_t *event;  /* kept for the outcome of connect or accept */
    cci_conn_answer_t *data; /* client: the request, and space for the answer; server: the answer. Data behind it */
    uint32_t before, after;  /* connections of the same link */
    int16_t end_status;      /* of the event about its end */
    uint16_t data_len;       /* of the request or answer */
    uint8_t control_type;    /* the type of the record that is to be sent, or 0 */
    uint8_t cancelled;       /* server: the client has given up, or is gone */
    uint8_t pinged;          /* the peer was asked whether it is there */
    uint8_t waits;           /* client: the server is busy, and will be asked again */
    uint8_t is_over;         /* broken, and nothing of it will come any more */
    uint8_t reserved[3];     /* four lines */
    uint32_t closed_at;      /* how far we had consumed when it was closed */
    struct cci__sisci_group *group; /* of multicast */
} cci__sisci_conn;
#define CCI__SISCI_UNREADY 1u /* in `unready`: so it is */
#define CCI__SISCI_MARKED 2u  /* an event that waits tells the program of it */

enum {                        /* states of a link */
       CCI__SISCI_CONNECTING, /* client: connects to the listener */
       CCI__SISCI_WAITING,    /* client: has left its connect record */
       CCI__SISCI_JOINING,    /* connects to the peer's inbox and its interrupt */
       CCI__SISCI_READY,      /* nobody else can connect to its inbox; waits until the peer is as far */
       CCI__SISCI_OPEN,
       CCI__SISCI_LOST
};

/* What callbacks have reported: 1: connected, -1: failed or lost. They only set these. */
typedef struct cci__sisci_news {
    int listener; /* our connection to the server's listener */
    int attached; /* the peer's connection to our inbox */
    int out;      /* ours to the peer's inbox */
    int marks;    /* ours to the peer's listener, where marks are set */
} cci__sisci_news;

typedef struct cci__sisci_slot {
    cci__sisci_item *item; /* NULL: it was given up */
    uint64_t number;       /* that is awaited; 0: free */
    uint64_t at;           /* offset in the RMA */
    uint32_t length;       /* of the piece */
} cci__sisci_slot;

/* A registration of memory that peers can map, as its owner shows it to them: in the registration table, which they
 * can't write to. It proves to who has the handle that it is valid, and does not give its key away. */
typedef struct cci__sisci_entry {
    uint64_t check;  /* made of the key; 0: there is none */
    uint64_t offset; /* of the registered memory in the segment */
    uint64_t length; /* of it */
    uint32_t block;  /* the number of the segment */
    uint32_t flags;  /* CCI_FLAG_READ, CCI_FLAG_WRITE */
} cci__sisci_entry;

/* Memory of cci_rma_alloc(): a segment. */
typedef struct cci__sisci_shared {
    struct cci__sisci_shared *next;   /* of the endpoint */
    cci__sci_local_segment_t segment; /* itself */
    cci__sci_map_t map;               /* all of it */
    uint8_t *base;                    /* where it is mapped; NULL: it is not */
    uint32_t size, id;                /* bytes; the segment's number */
} cci__sisci_shared;

/* A segment of the peer's that is mapped, or will be. */
typedef struct cci__sisci_view {
    struct cci__sisci_link *link;      /* whose it is */
    cci__sci_remote_segment_t segment; /* NULL: not connected */
    cci__sci_map_t map;                /* NULL: not mapped */
    uint8_t *base;                     /* NULL: not mapped yet */
    uint32_t id, size;                 /* the segment's number, 0: this is free; bytes */
    uint32_t turn;                     /* of the RMA that used it last */
    int news;                          /* 1: connected, -1: failed or lost */
    uint8_t is_writable;               /* mapped for writing too */
} cci__sisci_view;

/* What a link has of the peer's memory; there is none before the first RMA that may need it. */
typedef struct cci__sisci_views {
    cci__sisci_view registry;                /* the peer's registration table */
    cci__sisci_view block[CCI__SISCI_VIEWS]; /* its memory */
    uint32_t turn;                           /* counts RMAs */
    uint32_t number;                         /* counts questions */
    uint32_t connecting;                     /* views that are not mapped yet */
    int is_asking;                           /* the answer has not come */
    uint64_t key;                            /* of the registration that was asked about last */
    int is_refused;                          /* that one can't be mapped */
    uint32_t pause;                          /* RMAs before the next question, after one that led to nothing */
} cci__sisci_views;

/* What a peer may connect to, for as long as the registration is there that says so. */
typedef struct cci__sisci_grant {
    uint32_t id;            /* the segment's number */
    uint32_t region;        /* the registration's place in the table */
    uint64_t key;           /* its key */
    cci__sci_access access; /* to read, or to write too */
} cci__sisci_grant;

/* A link by the number of its bit in the listener. */
typedef struct cci__sisci_mark {
    struct cci__sisci_link *link; /* NULL: the number is free */
    uint32_t next_free;           /* or CCI__SISCI_NO_MARK */
} cci__sisci_mark;

/* Our inbox, where a record comes in. */
typedef struct cci__sisci_in {
    uint8_t *base, *ring; /* the inbox as it is mapped, NULL: there is none; its ring */
    uint32_t lines;       /* of the ring */
    uint32_t tail;        /* lines that were consumed */
} cci__sisci_in;

/* The peer's inbox, where a record goes out; through an adapter, its copy. */
typedef struct cci__sisci_out {
    uint8_t *base, *ring;  /* as in `in` */
    uint32_t lines;        /* of the ring */
    uint32_t head;         /* lines that were filled */
    uint32_t acknowledged; /* lines that the peer has consumed */
    uint32_t swept;        /* where `head` was when the ring was cleared last */
    uint32_t dealt_with;   /* what had been acknowledged when that was last dealt with */
} cci__sisci_out;

/* The connections of a link. */
typedef struct cci__sisci_link_conns {
    cci_list_t control;        /* have a record of the handshake to send */
    cci_list_t silent;         /* have silent messages under way */
    cci_list_t asked;          /* server: are requested or accepted */
    uint32_t first, count;     /* the index of the first of all; how many there are */
    uint32_t disconnects;      /* that we have made, with messages that were not delivered */
    uint32_t peer_disconnects; /* likewise, of the peer's: whose records we have seen */
} cci__sisci_link_conns;

/* What is under way on a link and has deadlines. */
typedef struct cci__sisci_link_time {
    cci_list_t node;             /* in `timed` or `fresh` of the endpoint */
    uint8_t is_fresh;            /* in `fresh` */
    uint8_t begins;              /* nothing was under way before that */
    uint8_t renews;              /* something of any age has its time anew */
    cci__sisci_item *fresh_item; /* the first that has no deadline yet, and all behind it */
} cci__sisci_link_time;

/* Long messages, and RMA through slots: the parts of an inbox behind its ring. */
typedef struct cci__sisci_inbox {
    cci__sci_local_segment_t segment;      /* which the peer connects to */
    cci__sci_map_t map;                    /* all of it */
    uint32_t id;                           /* the segment's number */
    uint8_t *blocks, *slots;               /* where these begin */
    uint32_t held;                         /* blocks that the program reads */
    uint32_t given_back;                   /* blocks that went back to the peer: counts */
    uint8_t block_held[CCI__SISCI_BLOCKS]; /* 1: the program reads it */
} cci__sisci_inbox;

typedef struct cci__sisci_outbox {
    cci__sci_remote_segment_t segment;     /* the peer's */
    cci__sci_map_t map;                    /* all of it */
    uint32_t id;                           /* the segment's number */
    uint8_t *blocks, *slots;               /* where these begin */
    uint32_t returned;                     /* blocks that the peer has given back: counts */
    uint32_t free_count;                   /* how many are in: */
    uint8_t free_block[CCI__SISCI_BLOCKS]; /* numbers of free blocks */
} cci__sisci_outbox;

/* The next record waits for what the program holds, or for space for an answer; here and at the peer's. */
typedef struct cci__sisci_stalled {
    cci_list_t node;    /* in `stuck`: its next record waits for what the program holds */
    uint32_t word;      /* what the peer was told of the record that waits */
    int is_answering;   /* that record was looked at, and its answer has no space in the ring */
    uint32_t ahead;     /* up to there the acknowledgements of records behind it are known */
    uint64_t peer_ns;   /* when the peer was last seen to have no buffer for what we sent */
    uint32_t peer_word; /* what it had said of that then */
} cci__sisci_stalled;

/* How a link is made. */
typedef struct cci__sisci_joining {
    cci__sisci_news news;                       /* from callbacks */
    uint64_t retry_ns;                          /* when to try again, or to give up */
    cci__sci_remote_segment_t listener_segment; /* the server's listener */
    cci__sci_map_t listener_map;                /* where it is mapped */
    uint64_t *connect_record;                   /* ours, at the listener; NULL: it is gone */
    uint32_t service;                           /* the number of the listener */
    uint64_t name;                              /* of the server's service, as the listener says */
    int knows_name;                             /* has it said so? */
    char owner[CCI__SCI_NAME];                  /* of the listener */
} cci__sisci_joining;

/* What is known of the peer, and how it is woken. */
typedef struct cci__sisci_peer {
    cci__sisci_card card;                  /* the peer's, checked */
    uint32_t node;                         /* where it is */
    int vm;                                /* process_vm works */
    int is_foreign;                        /* the peer is another user, let in by the group */
    cci__sci_remote_interrupt_t interrupt; /* that wakes it, or NULL */
    int interrupt_is_due;                  /* an interrupt is due as soon as it is connected */
    cci__sci_remote_segment_t segment;     /* its listener, where we mark the link */
    cci__sci_map_t map;                    /* where that is mapped */
} cci__sisci_peer;

/* RMA of the link, and of its peer. */
typedef struct cci__sisci_link_rma {
    cci__sisci_views *views;                   /* of the peer's memory, or NULL */
    cci__sisci_slot slot[CCI__SISCI_SLOTS];    /* pieces that wait for an answer */
    uint64_t slot_number;                      /* of the last piece */
    uint32_t copies;                           /* ours to and from the peer's memory: beginnings and ends */
    cci__sisci_grant grant[CCI__SISCI_GRANTS]; /* what the peer may connect to */
    uint32_t grants;                           /* how many there ever were: the oldest is replaced */
} cci__sisci_link_rma;

typedef struct cci__sisci_link {
    /* What a look at it needs, and what each message does: few lines of the cache, since there may be many links. */
    cci__sisci_in in;                     /* records that come */
    uint32_t acknowledged;                /* as much was acknowledged, by a word or a record */
    uint8_t is_busy;                      /* there may be more to do than to look whether something has come: bits */
    uint8_t batch;                        /* records taken at a time */
    uint8_t is_hot;                       /* in `hot` */
    uint8_t is_watched;                   /* the peer marks the link with what it stores next */
    cci__sisci_out out;                   /* records that go */
    struct cci__sisci *ep;                /* the second line */
    struct cci__sisci_mirror *mirror;     /* through an adapter, or NULL */
    struct cci__sisci_conn *last;         /* the connection that a message came for, or NULL */
    cci_list_t due;                       /* in `due`: there is something to acknowledge */
    uint32_t watch, watched;              /* the word that we have stored for the peer; the last that we have obeyed */
    uint8_t state;                        /* CCI__SISCI_CONNECTING, ... */
    uint8_t told;                         /* through an adapter: the peer knows that we sleep */
    uint8_t peer_sleeps;                  /* the peer may want interrupts */
    uint32_t peer_mark;                   /* the number of the link's bit in: */
    cci__sisci_listener *peer_listener;   /* the peer's, as it is mapped, or NULL */
    cci_list_t node;                      /* the third: in hot or cold */
    cci_list_t ops;                       /* operations in the order of the calls */
    cci__sisci_item *items, **items_tail; /* the queue */
    uint32_t used[2];                     /* how many it has of both */
    cci__sisci_link_conns conns;          /* its connections */
    cci__sisci_link_time time;            /* what has deadlines */
    uint32_t idle_rounds;                 /* since something happened */
    /* What is rarer. */
    cci_list_t notify;            /* in `notify`: something was stored that the peer may be waiting for */
    int notify_kind;              /* in `notify`: 2 for a record, 1 for what the peer only may wait for */
    cci_list_t step;              /* in `steps`: to be looked at with the device */
    cci_list_t idle;              /* in `idle`: a client's, without connections */
    uint64_t idle_ns;             /* when a link without connections is closed */
    struct cci__sisci_link *same; /* the next in its bucket of `servers` */
    void *memory;                 /* in which the link begins with a line */
    int is_client;                /* this side has made it */
    int is_over;                  /* lost, and all that had come is taken */
    uint32_t mark;                /* the number of its bit in our listener */
    cci__sisci_inbox inbox;       /* our segment */
    cci__sisci_outbox outbox;     /* the peer's */
    cci__sisci_stalled stall;     /* what can't be received at present */
    cci__sisci_joining join;      /* how it is made */
    cci__sisci_peer peer;         /* who is at the other end */
    cci__sisci_link_rma rma;      /* remote memory access */
} cci__sisci_link;
#define CCI__SISCI_HAS_WORK 1u /* in `is_busy` */
#define CCI__SISCI_IS_DUE 2u   /* only to acknowledge, which the next record does too */
#define CCI__SISCI_QUEUES 4u   /* items or records of the handshake may wait, and what is sent comes behind them */

/* A multicast connection: its place in the memory of a group, which is a broadcast segment:
 *
 *      next 0        number of the next message: who adds one to it has that number
 *      receivers 64  those who may sleep
 *      slots 4096    message n is in slot n modulo their count
 *
 * All zeros are a good beginning. Nobody waits for anybody: a sender whose slot another one is still writing to
 * takes the next number, and a receiver that is too slow loses what was overwritten. */
typedef struct cci__sisci_group {
    struct cci__sisci_group *next;    /* of the endpoint */
    cci__sisci_conn *conn;            /* the program's */
    cci__sci_local_segment_t segment; /* the group's memory */
    cci__sci_map_t map;               /* all of it */
    uint8_t *base;                    /* NULL: not in the group yet */
    uint64_t retry_ns;                /* when to try again to join */
    uint32_t id;                      /* the group's number */
    /* receiving */
    uint64_t tail;                         /* all before were taken, or are lost */
    uint8_t taken[CCI__SISCI_GROUP_SLOTS]; /* of those from there on */
    uint32_t place;                        /* among the receivers, from 1 on; 0: there was none free */
    int told;                              /* senders know that we sleep */
    int stalled;                           /* a message waits for a buffer */
    /* sending */
    cci__sci_remote_interrupt_t bell[CCI__SISCI_RECEIVERS];
    uint32_t interrupt_of[CCI__SISCI_RECEIVERS];    /* what they are connected to */
    uint8_t interrupt_is_due[CCI__SISCI_RECEIVERS]; /* as soon as it is connected */
    uint64_t words[CCI__SISCI_GROUP_BYTES / 8];     /* a message is gathered or copied here */
} cci__sisci_group;

typedef struct cci__sisci_receiver {
    uint32_t interrupt; /* its number and one; 0: nobody */
    uint32_t sleeps;    /* it wants an interrupt */
} cci__sisci_receiver;

typedef struct cci__sisci_group_slot {
    uint64_t number;     /* of message n: 2n + 1 while it is being written, 2n + 2 then; 0: never used */
    uint64_t check;      /* of all that was written, once the slot was taken from a sender that may go on writing */
    uint32_t length;     /* of the message */
    uint32_t was_stolen; /* `check` is valid */
    uint64_t unused[5];  /* the words begin with a line */
    uint64_t words[CCI__SISCI_GROUP_BYTES / 8]; /* the message */
} cci__sisci_group_slot;

typedef struct cci__sisci_memory {
    struct cci__sisci_memory *next; /* slab of the endpoint */
} cci__sisci_memory;

/* The links of an endpoint. Each is in `hot` or `cold`, and in others by what is to be done. */
typedef struct cci__sisci_links {
    cci__sisci_link *only; /* what a poll has to look at, if that is one link */
    cci_list_t due;        /* there is something to acknowledge */
    cci_list_t notify;     /* their peers are to be told that something was stored */
    cci_list_t timed;      /* something is under way that has a deadline */
    cci_list_t hot, cold;  /* looked at in each call; when they are marked, and in turn */
    uint32_t hot_count;    /* how many are hot */
    uint32_t handshakes;   /* links that are being made, and views */
    cci_list_t steps;      /* to be looked at with the device */
    cci_list_t stuck;      /* their next record waits for what the program holds */
    cci_list_t idle;       /* a client's without connections */
    cci_list_t fresh;      /* something is new that has no deadline yet */
} cci__sisci_links;

/* When the next look is due. */
typedef struct cci__sisci_times {
    uint64_t due_ns;   /* nothing of the links in `timed` is due earlier */
    uint64_t walk_ns;  /* all of them are looked at again */
    uint64_t armed_ns; /* the alarm of the OS handle */
    uint64_t scan_ns;  /* a poll looks at the clock and at all that depends on it */
    uint64_t idle_ns;  /* the first idle link is closed */
    uint64_t look_ns;  /* a poll looks at the device */
} cci__sisci_times;

/* What grows in slabs when it is first needed. */
typedef struct cci__sisci_pools {
    cci_evq_event_t *free_ops;                            /* the events of operations */
    cci__sisci_item *free_items;                          /* with their buffers */
    cci__sisci_memory *slabs;                             /* all of them, freed with the endpoint */
    uint32_t op_made, item_made, recv_made, control_made; /* how many there are */
    uint32_t stride;                                      /* bytes of a buffer */
    /* Of pending operations, and items (CCI__SISCI_AN_OP, ...): how many there may be, and are; how many each
     * connection of a link brings it at most; does the configuration say so? */
    uint32_t most[2], used[2], each[2], is_set;
} cci__sisci_pools;

/* Our links by the numbers of their bits in our listener. */
typedef struct cci__sisci_marks {
    cci__sisci_mark *of;      /* the link of each number */
    uint64_t *pending;        /* bits as in the listener: links that have to be looked at once more */
    uint32_t count, capacity; /* numbers that were ever used; entries of `of` */
    uint32_t free;            /* the first free one, or CCI__SISCI_NO_MARK */
    uint32_t at;              /* the number where the next look begins */
} cci__sisci_marks;

/* The listener, and the interrupt that wakes this endpoint. */
typedef struct cci__sisci_entrance {
    cci__sisci_listener *listener;        /* as it is mapped */
    cci__sci_local_segment_t segment;     /* that it is */
    cci__sci_map_t map;                   /* all of it */
    uint32_t service;                     /* its number, as in the URI */
    uint32_t connect_records;             /* the listener's count of them, up to which we have looked */
    uint32_t answers;                     /* links that clients are making */
    uint32_t interrupt_number;            /* what peers connect to */
    cci__sci_local_interrupt_t interrupt; /* of the software */
} cci__sisci_entrance;

/* Sleeping: the OS handle and the helper thread. */
typedef struct cci__sisci_sleep {
    int is_asleep;     /* peers send interrupts */
    int thread_sleeps; /* the helper thread waits */
    int epoll;         /* the OS handle, or -1 */
    int self;          /* an eventfd in it: events wait */
    int timer;         /* an alarm in it, or an eventfd for the helper thread */
    int is_readable;   /* `self` is */
} cci__sisci_sleep;

/* Links to servers by node and service: a hash table. */
typedef struct cci__sisci_servers {
    cci__sisci_link **bucket; /* NULL: none yet */
    uint32_t buckets, count;  /* 2^n; links in them */
} cci__sisci_servers;

/* Registered memory. */
typedef struct cci__sisci_registered {
    cci_rma_table_t table;      /* all registrations */
    cci_rma_region_t *regions;  /* of the table: peers read them */
    cci__sisci_shared registry; /* the registration table for peers, made with the first memory of cci_rma_alloc() */
    cci__sisci_shared *shared;  /* that memory */
    uint64_t mapped_bytes;      /* moved without a copy */
    uint32_t calls;             /* counts RMAs */
} cci__sisci_registered;

typedef struct cci__sisci {
    cci__endpoint_t base; /* first */
    uint8_t unused[CCI__SISCI_LINE - sizeof(cci__endpoint_t) % CCI__SISCI_LINE];
    /* What each message needs lies in this line. */
    uint8_t is_sleeper; /* it may sleep: it has an OS handle or a helper thread */
    uint8_t is_asked;   /* somebody waits for an acknowledgement */
    uint8_t is_short;   /* something that has come waits for what the program holds */
    uint8_t returned;   /* the program has returned something meanwhile */
    uint8_t is_counted; /* what connections send and receive is counted */
#ifndef CCI_NO_THREADS
    int lock; /* 1: taken */
#endif
    uint32_t rounds;         /* of work; 0: the next one looks at the device */
    uint32_t given;          /* events that were given without a round */
    cci_evq_fifo_t received; /* messages, and ends of connections, for the program */
    cci__sisci_links links;  /* lists of them */
    uint32_t received_total; /* messages that were put in `received` */
    uint32_t taken_total;    /* that are there no more */
    cci__sisci_pools pools;  /* operations, items, buffers */
#ifndef CCI_NO_WAKE
    uint32_t wake_word; /* CCI__SISCI_WAKE while a message is posted that was sent with CCI_FLAG_WAKE, or 0 */
#endif
    cci__sisci_group *groups;         /* multicast connections */
    const struct cci__sisci_far *far; /* through an adapter: what is done otherwise there; or NULL */
    struct cci__sisci_port *port;     /* its device */
    cci__sisci_marks marks;           /* links by number */
    cci__sisci_times times;           /* when to look */
    cci__sisci_sleep sleep;           /* the OS handle and the thread */
    /* What is rarer. */
    void *allocation;             /* in which the endpoint begins with a line */
    cci__sisci_device device;     /* a copy of its configuration */
    uint64_t probe;               /* a random number that peers try to read, to learn whether process_vm works */
    const cci__sci_provider *sci; /* the table of functions and flags */
    cci__sci_desc_t sd;           /* the SISCI device */
    uint32_t adapter, node;       /* its adapter; our node there */
    uint32_t paused;              /* links whose adapter stores nothing at present */
    uint32_t requests;            /* that the program has not returned */
    uint32_t refusals;            /* requests that were answered with `busy` */
    uint32_t group_count;         /* of `groups` */
    uint32_t kept_answers;        /* to be sent */
    cci_list_t ending;            /* connections that have ended, which the program is to be told of */
    cci__sisci_entrance entrance; /* the listener */
    cci__sisci_registered rma;    /* registered memory */
    cci__sisci_servers servers;   /* links by server */
} cci__sisci;

/* What is done otherwise through an adapter (>>sisci-adapter). Where it has the name of a function of the software, it
 * does the same. */
typedef struct cci__sisci_far {
    const char *(*bring_up)(uint32_t adapter, const char *path); /* opens the library; NULL, or why it can't be used */
    const cci__sci_provider *(*provider)(void);                  /* what the library offers */
    int (*open)(cci__sisci *ep);                                 /* the device; a status */
    void (*close)(cci__sisci *ep);                               /* it, or later */
    int (*make_interrupt)(cci__sisci *ep);                       /* 0: failed; likewise below */
    int (*event_fd)(const cci__sisci *ep);                       /* readable when a callback has reported something */
    void (*consume_interrupts)(const cci__sisci *ep);            /* they have been heard of */
    void (*run_callbacks)(const cci__sisci *ep); /* these run by themselves: removes what peers have let go of */
    /* a number of 0 becomes one that is free */
    cci__sci_error_t (*make_segment)(cci__sisci *ep, cci__sci_local_segment_t *segment, uint32_t *id, size_t size,
                                     cci__sci_cb_local_segment_t callback, void *arg);
    void (*remove_listener)(cci__sisci *ep);                                           /* or later */
    int (*look_at_connect_records)(cci__sisci *ep);                                    /* 0: the rest has to wait */
    int (*leave_connect_record)(cci__sisci_link *link, cci__sisci_listener *listener); /* by stores alone */
    cci__sci_error_t (*make_inbox)(cci__sisci_link *link, size_t size); /* the link has a mirror from then on */
    void (*remove_inbox)(cci__sisci_link *link);                        /* or later */
    int (*connect_segment)(cci__sisci_link *link, cci__sci_remote_segment_t *segment, uint32_t id); /* waits */
    void (*connect_interrupt)(cci__sisci_link *link, unsigned int number);                          /* waits */
    int (*begin_mirror)(cci__sisci_link *link, size_t size);  /* the peer's inbox is mapped: its copy is made */
    void (*end_mirror)(cci__sisci_link *link);                /* frees the copy */
    void (*release_mirror)(struct cci__sisci_mirror *mirror); /* for another link */
    void (*step)(cci__sisci_link *link, uint64_t now_ns);     /* callbacks, and stores that were lost */
    void (*push)(const cci__sisci_link *link, const void *from, size_t size);          /* bytes of the copy */
    void (*push_record)(cci__sisci_link *link, const uint8_t *record, uint32_t lines); /* its first word last */
    void (*push_word)(const cci__sisci_link *link, size_t at);                         /* of the copy */
    void (*push_long)(const cci__sisci_link *link, size_t at); /* two words, behind all that was stored before */
    void (*finish_stores)(const cci__sisci_link *link);        /* before an interrupt, which may overtake them */
    int (*confirm_sleep)(cci__sisci_link *link);               /* has the word arrived that says that we sleep? */
} cci__sisci_far;

/* NULL where this is compiled without CCI_SISCI_ADAPTER. */
static const cci__sisci_far *cci__sisci_adapter(void);

/* ==================================================================================================================
 * >>sisci-cci-base
 *
 * The lock of an endpoint, and its memory. Every function below that is given an endpoint, a link or a connection
 * expects the lock to be held, except where it says otherwise. It is taken by the calls of the API, by the helper
 * thread, and by nothing else: the software's callbacks run inside cci__sci_progress(), which is called with the lock
 * held. The lock of a SISCI device is taken inside it, never around it.
 *   Slabs double what there is of a kind, up to its limit. Nothing is freed before the endpoint is.
 * ================================================================================================================== */

/* Held for a moment only, and rarely wanted by two: half as dear as a mutex. */
#ifndef CCI_NO_THREADS
static void cci__sisci_contend(cci__sisci *ep) {
    uint32_t tries = 0;
    while (CCI__UNLIKELY(__atomic_exchange_n(&ep->lock, 1, __ATOMIC_ACQUIRE))) {
        while (__atomic_load_n(&ep->lock, __ATOMIC_RELAXED))
            if (++tries > 100) (void)sched_yield();
    }
}
#endif

static inline void cci__sisci_lock(cci__sisci *ep) {
#ifndef CCI_NO_THREADS
#ifdef CCI__IS_ALONE
    if (CCI__IS_ALONE) {
        __atomic_store_n(&ep->lock, 1, __ATOMIC_RELAXED);
        return;
    }
#endif
    cci__sisci_contend(ep);
#else
    (void)ep;
#endif
}

static inline void cci__sisci_unlock(cci__sisci *ep) {
#ifndef CCI_NO_THREADS
    __atomic_store_n(&ep->lock, 0, __ATOMIC_RELEASE);
#else
    (void)ep;
#endif
}

/* Where in memory that is larger by a line the next line begins. */
static void *cci__sisci_align(void *memory) {
    return (uint8_t *)memory + (CCI__SISCI_LINE - ((uintptr_t)memory & (CCI__SISCI_LINE - 1)));
}

/* Memory that lives as long as the endpoint, aligned to 64 bytes. */
static void *cci__sisci_memory_of(cci__sisci *ep, size_t size) {
    uint8_t *bytes = (uint8_t *)cci_alloc(size + 128);
    cci__sisci_memory *block = (cci__sisci_memory *)(void *)bytes;
    if (!bytes) return NULL;
    block->next = ep->pools.slabs;
    ep->pools.slabs = block;
    return bytes + sizeof *block + (64 - ((uintptr_t)(bytes + sizeof *block) & 63));
}

/* How many of a kind the next slab has, when `made` exist and there may be `most`. */
static uint32_t cci__sisci_slab_of(uint32_t made, uint32_t most) {
    return made < most ? cci__min32(cci__max32(made, CCI__SISCI_SLAB), most - made) : 0;
}

static void cci__sisci_add_events(cci__sisci *ep, uint32_t pool, cci__sisci_event *events, uint32_t count) {
    while (count-- > 0) cci_evq_add_events(&ep->base.evq, &ep->base.api, pool, &events[count].event, 1);
}

static void cci__sisci_add_control(cci__sisci *ep) {
    uint32_t count = cci__sisci_slab_of(ep->pools.control_made, CCI__SISCI_CONTROL);
    cci__sisci_event *more;
    count = count ? count : CCI__SISCI_CONTROL;
    more = (cci__sisci_event *)cci__sisci_memory_of(ep, count * sizeof *more);
    if (more) {
        ep->pools.control_made += count;
        cci__sisci_add_events(ep, CCI_EVQ_CONTROL, more, count);
    }
}

static int cci__sisci_add_events_of(cci__endpoint_t *base) {
    cci__sisci_add_control((cci__sisci *)base);
    return base->evq.free_events[CCI_EVQ_CONTROL] != NULL;
}

/* More buffers for messages that come, with their events, up to what the program has allowed. */
static int cci__sisci_add_recv(cci__sisci *ep) {
    uint32_t count = cci__sisci_slab_of(ep->pools.recv_made, ep->base.recv_buf_count);
    cci_evq_buffer_t *buffers = count ? (cci_evq_buffer_t *)cci__sisci_memory_of(ep, count * sizeof *buffers) : NULL;
    cci__sisci_event *events = buffers ? (cci__sisci_event *)cci__sisci_memory_of(ep, count * sizeof *events) : NULL;
    uint8_t *bytes = events ? (uint8_t *)cci__sisci_memory_of(ep, (size_t)count * ep->pools.stride) : NULL;
    if (!bytes) return 0;
    cci__sisci_add_events(ep, CCI_EVQ_RECV, events, count);
    cci_evq_add_buffers(&ep->base.evq, buffers, bytes, ep->pools.stride, count);
    cci_evq_limit_buffers(&ep->base.evq, ep->base.recv_buf_count);
    ep->pools.recv_made += count;
    return 1;
}

/* A buffer for what comes, or NULL. */
static cci_evq_buffer_t *cci__sisci_alloc_buffer(cci__sisci *ep) {
    if (!ep->base.evq.free_buffers) (void)cci__sisci_add_recv(ep);
    return cci_evq_take_buffer(&ep->base.evq);
}

static void cci__sisci_close_fd(int fd) {
    if (fd >= 0) close(fd);
}

static int cci__sisci_is_sleeper(const cci__sisci *ep) {
    return ep->is_sleeper;
}

/* A call has accepted a message. */
static inline void cci__sisci_issued(const cci__sisci *ep, const cci__sisci_conn *conn, uint32_t length) {
    CCI__STATS(if (CCI__UNLIKELY(ep->is_counted)) cci__tally_issued(&ep->base.tallies, conn->conn.index, length));
    (void)ep, (void)conn, (void)length;
}

/* ==================================================================================================================
 * >>sisci-cci-words
 *
 * Every word that two processes share is loaded with acquire and stored with release order.
 * ================================================================================================================== */

static uint32_t cci__sisci_load(const void *p) {
    return __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE);
}

static void cci__sisci_store(void *p, uint32_t value) {
    __atomic_store_n((uint32_t *)p, value, __ATOMIC_RELEASE);
}

static uint64_t cci__sisci_load_long(const void *p) {
    return __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE);
}

static void cci__sisci_store_long(void *p, uint64_t value) {
    __atomic_store_n((uint64_t *)p, value, __ATOMIC_RELEASE);
}

/* ---- marks ----
 *
 * A mark is a bit in the listener of a link's owner. The peer sets it when it has stored something, so that the owner
 * need not look at links to which nothing happens. Before the owner leaves a link alone, it stores a new word `watch`
 * in the peer's inbox; the lowest bit says whether acknowledgements count too. The peer compares that word with the
 * last one for which it has set the mark: when they differ, it sets the mark once.
 *   An endpoint that polls many links asks once for a mark with each record (CCI__SISCI_EACH): then neither side writes
 * the word for a message, and the link stays cold.
 *   Where neither side sleeps, there is no fence between the store and the look at `watch`, so a mark can be missed.
 * The owner therefore looks at a link once more after it has stored the word, and at all links in turn. Peers of a
 * sleeper do have a fence. A malicious peer can set or clear marks of others; this costs them nothing else. */

/* The owner of the inbox where something was stored wants to know of it. */
static inline int cci__sisci_is_wanted(const cci__sisci_link *link, uint32_t watch, int is_record) {
    return watch != link->watched && (is_record || (watch & 1));
}

static void cci__sisci_set_mark(cci__sisci_link *link, uint32_t watch) {
    link->watched = watch & CCI__SISCI_EACH ? 0 : watch;
    (void)__atomic_fetch_or(&link->peer_listener->marks[link->peer_mark / 64], UINT64_C(1) << (link->peer_mark & 63),
                            __ATOMIC_SEQ_CST);
}

/* The peer may wait for what was just stored: its mark is set, at the end of the call if it may sleep. */
static inline void cci__sisci_touch_for(cci__sisci_link *link, int is_record) {
    if (CCI__UNLIKELY(link->peer_sleeps)) {
        link->notify_kind |= 1 + is_record;
        if (cci__list_empty(&link->notify)) cci__list_append(&link->ep->links.notify, &link->notify);
    } else if (CCI__LIKELY(link->in.base != NULL)) {
        uint32_t watch =
            __atomic_load_n((const uint32_t *)(const void *)(link->in.base + CCI__SISCI_AT_WATCH), __ATOMIC_RELAXED);
        if (CCI__UNLIKELY(cci__sisci_is_wanted(link, watch, is_record)) && link->peer_listener)
            cci__sisci_set_mark(link, watch);
    }
}

/* For a record, and for what the peer asked for only if it waits for it. */
static inline void cci__sisci_touch(cci__sisci_link *link) {
    cci__sisci_touch_for(link, 1);
}

static inline void cci__sisci_touch_lightly(cci__sisci_link *link) {
    cci__sisci_touch_for(link, 0);
}

/* The link is looked at with the device from now on. */
static void cci__sisci_add_to_steps(cci__sisci_link *link) {
    if (cci__list_empty(&link->step)) cci__list_append(&link->ep->links.steps, &link->step);
}

static void cci__sisci_leave_steps(cci__sisci_link *link) {
    if (!link->mirror &&
        !link->peer.interrupt_is_due) /* callbacks of a library come in other threads, and only set flags */
        cci__list_remove(&link->step);
}

/* Stores a word of the peer's inbox that is not in the ring. */
static void cci__sisci_write_word(cci__sisci_link *link, size_t at, uint32_t value) {
    cci__sisci_store(link->out.base + at, value);
    if (CCI__UNLIKELY(link->mirror != NULL)) link->ep->far->push_word(link, at);
}

/* The same with two words, and after what they tell of. */
static void cci__sisci_write_long(cci__sisci_link *link, size_t at, uint64_t value) {
    cci__sisci_store_long(link->out.base + at, value);
    if (CCI__UNLIKELY(link->mirror != NULL)) link->ep->far->push_long(link, at);
}

/* Bytes that a record or a word tells of, which comes next and flushes them. */
static void cci__sisci_push(cci__sisci_link *link, const void *from, size_t size) {
    if (CCI__UNLIKELY(link->mirror != NULL)) link->ep->far->push(link, from, size);
}

/* ==================================================================================================================
 * >>sisci-cci-provider
 *
 * The provider of SISCI is part one of this header, or the library of an adapter. Calls go through its table of
 * functions and flags (ep->sci). Where the two differ, the functions of this section do what each needs.
 * ================================================================================================================== */

static int cci__sisci_open_sd(cci__sisci *ep) {
    cci__sci_options options;
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    if (ep->far) return ep->far->open(ep);
    memset(&options, 0, sizeof options);
    options.directory = ep->device.directory[0] ? ep->device.directory : NULL;
    options.group = ep->device.group[0] ? ep->device.group : NULL;
    options.caller_progress = 1;
    ep->sd = cci__sci_open(&options, &error);
    if (error != CCI__SCI_ERR_OK) {
        ep->sd = NULL;
        return error == CCI__SCI_ERR_ACCESS ? (int)CCI_ENODEV : cci_status_of_errno(errno);
    }
    ep->sci->call.SCIGetLocalNodeId(ep->adapter, &ep->node, 0, &error);
    return error == CCI__SCI_ERR_OK ? CCI_SUCCESS : CCI_ENODEV;
}

/* What peers wake this endpoint with. */
static int cci__sisci_make_interrupt(cci__sisci *ep) {
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    if (ep->far) return ep->far->make_interrupt(ep);
    ep->sci->call.SCICreateInterrupt(ep->sd, &ep->entrance.interrupt, ep->adapter, &ep->entrance.interrupt_number, NULL,
                                     NULL, 0, &error);
    if (error != CCI__SCI_ERR_OK) ep->entrance.interrupt = NULL;
    return error == CCI__SCI_ERR_OK;
}

/* Those who are connected to it are told by the end of the device. */
static void cci__sisci_close_sd(cci__sisci *ep) {
    cci__sci_error_t error;
    uint32_t i;
    if (ep->far) {
        ep->far->close(ep);
        return;
    }
    for (i = 0; ep->entrance.interrupt && i < 1000; i++) {
        ep->sci->call.SCIRemoveInterrupt(ep->entrance.interrupt, 0, &error);
        if (error != CCI__SCI_ERR_BUSY) break;
        cci__sci_disconnect_users(ep->entrance.interrupt);
    }
    if (ep->sd) {
        ep->sci->call.SCIClose(ep->sd, 0, &error);
        CCI_ASSERT(error == CCI__SCI_ERR_OK);
    }
}

/* The descriptors by which a sleeper learns of events, -1 where there is none. */
static void cci__sisci_event_fds(const cci__sisci *ep, int *fds) {
    fds[0] = ep->far ? ep->far->event_fd(ep) : cci__sci_interrupt_fd(ep->entrance.interrupt);
    fds[1] = ep->far ? -1 : cci__sci_fd(ep->sd);
}

/* Interrupts have been heard of. */
static void cci__sisci_consume_interrupts(cci__sisci *ep) {
    if (ep->far)
        ep->far->consume_interrupts(ep);
    else
        (void)cci__sci_take_interrupt(cci__sci_interrupt_fd(ep->entrance.interrupt));
}

/* Lets callbacks tell their news. Those of a library come whenever they like. */
static void cci__sisci_run_callbacks(cci__sisci *ep) {
    if (ep->far)
        ep->far->run_callbacks(ep);
    else
        cci__sci_progress(ep->sd, 0);
}

/* Makes a segment; a number of 0 becomes one that is free. */
static cci__sci_error_t cci__sisci_make_segment(cci__sisci *ep, cci__sci_local_segment_t *segment, uint32_t *id,
                                                size_t size, cci__sci_cb_local_segment_t callback, void *arg) {
    unsigned int flags = (callback ? ep->sci->flag.USE_CALLBACK : 0u) | (*id ? 0u : ep->sci->flag.AUTO_ID);
    cci__sci_error_t error;
    if (ep->far) return ep->far->make_segment(ep, segment, id, size, callback, arg);
    ep->sci->call.SCICreateSegment(ep->sd, segment, *id, (unsigned int)size, callback, arg, flags, &error);
    if (error != CCI__SCI_ERR_OK) {
        *segment = NULL;
        return error;
    }
    *id = cci__sci_segment_id(*segment);
    return CCI__SCI_ERR_OK;
}

/* Others may connect from now on. */
static int cci__sisci_offer(cci__sisci *ep, cci__sci_local_segment_t segment) {
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    ep->sci->call.SCIPrepareSegment(segment, ep->adapter, 0, &error);
    if (error == CCI__SCI_ERR_OK) ep->sci->call.SCISetSegmentAvailable(segment, ep->adapter, 0, &error);
    return error == CCI__SCI_ERR_OK;
}

static void cci__sisci_remove_segment(cci__sisci *ep, cci__sci_local_segment_t segment) {
    ep->sci->call.SCIRemoveSegment(segment, ep->sci->flag.FORCE_REMOVE, NULL);
}

static void cci__sisci_remove_listener(cci__sisci *ep) {
    if (ep->far)
        ep->far->remove_listener(ep);
    else
        cci__sisci_remove_segment(ep, ep->entrance.segment);
}

static void cci__sisci_remove_inbox(cci__sisci_link *link) {
    if (link->mirror)
        link->ep->far->remove_inbox(link);
    else
        cci__sisci_remove_segment(link->ep, link->inbox.segment);
}

/* Begins to connect; the callback says how it ended. 0: it was not possible. */
static int cci__sisci_connect_segment(cci__sisci_link *link, cci__sci_remote_segment_t *segment, uint32_t id,
                                      cci__sci_cb_remote_segment_t callback, void *arg) {
    cci__sisci *ep = link->ep;
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    if (ep->far) return ep->far->connect_segment(link, segment, id);
    ep->sci->call.SCIConnectSegment(ep->sd, segment, link->peer.node, id, ep->adapter, callback, arg, 10000,
                                    ep->sci->flag.USE_CALLBACK | ep->sci->flag.ASYNCHRONOUS_CONNECT, &error);
    if (error != CCI__SCI_ERR_OK) *segment = NULL;
    return error == CCI__SCI_ERR_OK;
}

/* To the peer's, which is there at once or never when a library connects. */
static void cci__sisci_connect_interrupt(cci__sisci_link *link, unsigned int number) {
    if (link->ep->far)
        link->ep->far->connect_interrupt(link, number);
    else
        link->peer.interrupt = cci__sci_begin_interrupt(link->ep->sd, number);
}

/* CCI__SCI_CONNECTING, CCI__SCI_CONNECTED, or how it ended. */
static int cci__sisci_interrupt_state(const cci__sisci_link *link) {
    if (link->ep->far || !link->peer.interrupt) return link->peer.interrupt ? CCI__SCI_CONNECTED : CCI__SCI_CONNECTING;
    return cci__sci_interrupt_state(link->peer.interrupt);
}

/* Interrupts the peer, as soon as that is possible. */
static void cci__sisci_wake_peer(cci__sisci_link *link) {
    link->peer.interrupt_is_due = link->peer.interrupt && cci__sisci_interrupt_state(link) == CCI__SCI_CONNECTING;
    if (link->peer.interrupt_is_due) cci__sisci_add_to_steps(link);
    if (link->peer.interrupt && !link->peer.interrupt_is_due) {
        cci__sci_error_t error;
        if (link->mirror) link->ep->far->finish_stores(link); /* interrupts may overtake stores */
        link->ep->sci->call.SCITriggerInterrupt(link->peer.interrupt, 0, &error);
    }
}

/* Is the process that the card names the one at the other end of the channel, and the same user's? Else a peer could
 * make us write to somebody else. */
static int cci__sisci_is_owner(const cci__sisci_link *link) {
    cci__sci_ucred who;
    if (link->ep->far) return 0; /* its memory is another node's */
    memset(&who, 0, sizeof who);
    return cci__sci_process_of(link->outbox.segment, &who) && who.pid > 0 && (uint32_t)who.pid == link->peer.card.pid &&
           who.uid == geteuid();
}

/* Who has the listener that a client connects to. */
static void cci__sisci_note_owner(cci__sisci_link *link) {
    if (!link->ep->far)
        memcpy(link->join.owner, cci__sci_owner_name(link->join.listener_segment), sizeof link->join.owner);
}

/* Both inboxes are mapped, and nobody else will connect to ours: the descriptors of their memory are needed no more. */
static void cci__sisci_save_descriptors(cci__sisci_link *link) {
    if (link->ep->far) return;
    cci__sci_save_local_descriptor(link->inbox.segment);
    cci__sci_save_remote_descriptor(link->outbox.segment);
}

/* Nobody but the peer is connected to our inbox: one connection, of the process that has the inbox at the other end.
 * What a client believes to be its server's inbox belongs to who has the listener. */
static int cci__sisci_is_private(cci__sisci_link *link) {
    cci__sci_ucred user, owner;
    int is_known;
    if (link->ep->far) {
        link->peer.is_foreign = 1;
        return 1; /* a library does not tell who it is */
    }
    memset(&user, 0, sizeof user);
    memset(&owner, 0xff, sizeof owner);
    is_known = cci__sci_only_user(link->inbox.segment, &user) && cci__sci_process_of(link->outbox.segment, &owner);
    link->peer.is_foreign = owner.uid != (uint32_t)geteuid();
    return is_known && user.pid == owner.pid && user.uid == owner.uid &&
           (!link->is_client || strcmp(link->join.owner, cci__sci_owner_name(link->outbox.segment)) == 0);
}

/* ==================================================================================================================
 * >>sisci-cci-notify
 *
 * What was stored is made known to peers that sleep, once for each call of the program; links are hot (looked at in
 * each call) or cold (looked at when they are marked, and in turn).
 *   Invariant: a link is in `hot` or in `cold`. Before a link becomes cold, and before an endpoint sleeps, its peer has
 * been asked for a mark.
 * ================================================================================================================== */

/* 1: the peer has asked for a mark, and sleeps. */
static int cci__sisci_mark_for_sleeper(cci__sisci_link *link, int is_record) {
    uint32_t watch = cci__sisci_load(link->in.base + CCI__SISCI_AT_WATCH);
    if (!cci__sisci_is_wanted(link, watch, is_record)) return 0;
    cci__sisci_set_mark(link, watch);
    CCI__SCI_FENCE(SEQ_CST); /* the mark before this, the sleeper's word after */
    return cci__sisci_load(&link->peer_listener->sleeps) != 0;
}

static void cci__sisci_notify(cci__sisci *ep) {
    CCI__SCI_FENCE(SEQ_CST); /* the store before this, the sleeper's word after */
    while (!cci__list_empty(&ep->links.notify)) {
        cci__sisci_link *link = CCI__CONTAINER(ep->links.notify.next, cci__sisci_link, notify);
        int is_record = link->notify_kind > 1;
        cci__list_remove(&link->notify);
        link->notify_kind = 0;
        if (link->state == CCI__SISCI_OPEN && (link->mirror ? cci__sisci_load(link->in.base + CCI__SISCI_AT_SLEEP) != 0
                                                            : cci__sisci_mark_for_sleeper(link, is_record)))
            cci__sisci_wake_peer(link);
    }
}

static inline void cci__sisci_flush(cci__sisci *ep) {
    if (CCI__UNLIKELY(!cci__list_empty(&ep->links.notify))) cci__sisci_notify(ep);
}

/* The same where something was stored for this peer alone. */
static inline void cci__sisci_flush_for(cci__sisci *ep, const cci__sisci_link *link) {
    if (CCI__UNLIKELY(link->peer_sleeps)) cci__sisci_flush(ep);
}

/* Makes a link hot, and the last in the list: the links to which something happened last. */
static void cci__sisci_make_hot(cci__sisci_link *link) {
    link->idle_rounds = 0;
    if (!link->is_hot) {
        link->is_hot = 1;
        link->ep->links.only = NULL;
        link->ep->links.hot_count++;
    } else if (link->node.next == &link->ep->links.hot) {
        return;
    }
    cci__list_remove(&link->node);
    cci__list_append(&link->ep->links.hot, &link->node);
}

static void cci__sisci_make_cold(cci__sisci_link *link) {
    if (link->is_hot) {
        link->is_hot = 0;
        link->ep->links.only = NULL;
        link->ep->links.hot_count--;
        cci__list_remove(&link->node);
        cci__list_append(&link->ep->links.cold, &link->node);
    }
}

/* The next record waits for the program, or for space for an answer. */
static int cci__sisci_is_stuck(const cci__sisci_link *link) {
    return link->stall.word == link->in.tail * 2 + 1;
}

/* Somebody waits for the peer to consume what we have sent. */
static int cci__sisci_wants_acks(const cci__sisci_link *link) {
    return !cci__list_empty(&link->ops) || link->items || !cci__list_empty(&link->conns.control) ||
           cci__sisci_is_stuck(link);
}

/* More links are polled than it pays to look at in each call. */
static inline int cci__sisci_polls_many(const cci__sisci *ep) {
    return ep->marks.count > CCI__SISCI_FEW && !ep->far && !cci__sisci_is_sleeper(ep);
}

/* The peer has been asked for a mark, also for acknowledgements if somebody waits for them. */
static int cci__sisci_is_watched(const cci__sisci_link *link) {
    return link->is_watched && ((link->watch & 1) || !cci__sisci_wants_acks(link));
}

/* From now on the peer marks the link when it stores a record, or anything that somebody here waits for. */
static void cci__sisci_watch(cci__sisci_link *link) {
    uint32_t acks = (uint32_t)cci__sisci_wants_acks(link), had = link->watch & 1;
    if (!cci__sisci_is_watched(link) || (acks < had && (link->watch & CCI__SISCI_EACH))) {
        link->is_watched = 1;
        link->watch = ((link->watch | 3) + 1) | acks | (cci__sisci_polls_many(link->ep) ? CCI__SISCI_EACH : 0);
        cci__sisci_write_word(link, CCI__SISCI_AT_WATCH, link->watch);
    }
}

/* Acknowledgements count no longer, perhaps. */
static CCI__RARE void cci__sisci_watch_acks(cci__sisci_link *link) {
    if (link->state == CCI__SISCI_OPEN) cci__sisci_watch(link);
}

/* A cold link that is marked with each record stays cold, and is looked at again until nothing comes. */
static inline int cci__sisci_stays_cold(const cci__sisci_link *link) {
    return link->watch & CCI__SISCI_EACH && !link->is_hot;
}

/* Something has come on a link, which may go on. */
static inline void cci__sisci_look_again(cci__sisci_link *link) {
    if (cci__sisci_stays_cold(link)) {
        link->ep->marks.pending[link->mark / 64] |= UINT64_C(1) << (link->mark & 63);
        return;
    }
    if (!(link->watch & CCI__SISCI_EACH)) link->is_watched = 0;
    cci__sisci_make_hot(link);
}

/* What a callback of the software has reported is dealt with at the next look at the device. */
static cci__sci_callback_action_t cci__sisci_report(cci__sisci_link *link, int *news, int is_connected) {
    *news = is_connected ? 1 : -1;
    cci__sisci_add_to_steps(link);
    link->ep->rounds = 0;
    return CCI__SCI_CALLBACK_CONTINUE;
}

/* A link that has lost its peer, or whose peer writes nonsense. */
static void cci__sisci_lose(cci__sisci_link *link) {
    if (link->state == CCI__SISCI_OPEN) {
        link->join.news.out = -1; /* dealt with at the next look at the device */
        cci__sisci_add_to_steps(link);
        link->ep->rounds = 0;
    }
}

/* ==================================================================================================================
 * >>sisci-cci-items
 *
 * An operation stands for a completion that the program will get, or waits for. It is in its link's list in the order
 * of the calls, and completes when all before it are consumed, or when its time is over. An item is a message or an RMA
 * that has not found space in the ring: it has its operation, unless it is silent.
 *   Invariants: an operation has an item, or a record in the ring, or is complete. What is under way has a deadline, or
 * its link is in `fresh` until the clock is read next.
 * ================================================================================================================== */

static inline void cci__sisci_drop_op(cci__sisci *ep, cci__sisci_op *op) {
    if (op) {
        op->event.next = ep->pools.free_ops;
        ep->pools.free_ops = &op->event;
    }
}

static void cci__sisci_add_ops(cci__sisci *ep) {
    uint32_t count = cci__sisci_slab_of(ep->pools.op_made, ep->pools.most[CCI__SISCI_AN_OP]);
    cci__sisci_op *ops = count ? (cci__sisci_op *)cci__sisci_memory_of(ep, count * sizeof *ops) : NULL;
    if (!ops) return;
    ep->pools.op_made += count;
    while (count-- > 0) {
        memset(&ops[count], 0, sizeof ops[count]);
        ops[count].event.base.endpoint = &ep->base.api;
        ops[count].event.pool = CCI_EVQ_OPERATION;
        ops[count].event.next = ep->pools.free_ops;
        ep->pools.free_ops = &ops[count].event;
    }
}

/* May a link have one more? If nobody has said how many there may be it leaves as many to others as it has. */
static inline int cci__sisci_may_have(const cci__sisci_link *link, int what) {
    const cci__sisci_pools *pools = link ? &link->ep->pools : NULL;
    return !link || (link->used[what] < (uint64_t)pools->each[what] * link->conns.count &&
                     (pools->is_set || link->used[what] <= pools->most[what] - pools->used[what]));
}

static inline void cci__sisci_use(cci__sisci_link *link, int what, uint32_t more) {
    link->used[what] += more;
    link->ep->pools.used[what] += more;
}

static inline cci__sisci_op *cci__sisci_new_op(cci__sisci *ep, cci__sisci_conn *conn, void *context, int flags) {
    cci__sisci_op *op;
    if (CCI__UNLIKELY(!cci__sisci_may_have(conn->link, CCI__SISCI_AN_OP))) return NULL;
    if (CCI__UNLIKELY(!ep->pools.free_ops)) cci__sisci_add_ops(ep);
    op = (cci__sisci_op *)(void *)ep->pools.free_ops;
    if (!op) return NULL;
    ep->pools.free_ops = op->event.next;
    op->event.base.pub.send.type = CCI_EVENT_SEND;
    op->event.base.pub.send.connection = &conn->conn.pub;
    op->event.base.pub.send.context = context;
    cci__list_init(&op->node);
    cci__list_init(&op->sibling);
    op->conn = conn;
    op->item = NULL;
    op->deadline_ns = 0;
    op->status = CCI_SUCCESS;
    op->posted = op->done = op->is_first_rnr = op->has_record = op->is_cancelled = op->is_renewed = 0;
    op->blocking = (flags & CCI_FLAG_BLOCKING) != 0;
    return op;
}

/* Something is under way that is to have a deadline: that is set at the next look at the clock. */
static inline void cci__sisci_watch_time(cci__sisci_link *link) {
    if (link->time.is_fresh) return;
    link->time.is_fresh = 1;
    link->time.begins = (uint8_t)cci__list_empty(&link->time.node);
    cci__list_remove(&link->time.node);
    cci__list_append(&link->ep->links.fresh, &link->time.node);
}

/* No deadlines are set or awaited any more, until there is something new. */
static void cci__sisci_leave_time(cci__sisci_link *link) {
    link->time.is_fresh = link->time.renews = 0;
    cci__list_remove(&link->time.node);
}

/* An RMA that makes progress has the whole send timeout again. */
static void cci__sisci_renew(cci__sisci_link *link, cci__sisci_item *item) {
    item->deadline_ns = 0;
    if (item->op) item->op->deadline_ns = 0;
    link->time.renews = 1;
    cci__sisci_watch_time(link);
}

/* Adds an operation to its link and its connection. It completes when the peer has consumed its record. */
static inline void cci__sisci_add_op(cci__sisci_link *link, cci__sisci_op *op) {
    cci__list_append(&link->ops, &op->node);
    cci__sisci_use(link, CCI__SISCI_AN_OP, 1);
    cci__sisci_watch_time(link);
    link->is_busy |= CCI__SISCI_HAS_WORK;
    if (op->conn->ops)
        cci__list_append(op->conn->ops, &op->sibling);
    else
        op->conn->ops = &op->sibling;
}

static int cci__sisci_is_dead(const cci__sisci_item *item);

#ifndef CCI_NO_LINGER
static int cci__sisci_is_busy(cci__endpoint_t *base, const cci_conn_t *of) {
    const cci__sisci_conn *conn = (const cci__sisci_conn *)(const void *)of;
    const cci__sisci_item *item = conn->link ? conn->link->items : NULL;
    (void)base;
    if (!conn->link || conn->ops) return conn->ops != NULL;
    while (item && (item->conn != conn || cci__sisci_is_dead(item))) item = item->next;
    return item != NULL;
}
#endif

/* Something of a connection that lingers has ended, or the connection is broken: it may end now. */
static CCI__RARE void cci__sisci_check_linger(cci__sisci_conn *conn) {
#ifdef CCI_NO_LINGER
    (void)conn;
#else
    cci__endpoint_t *ep = &conn->link->ep->base;
    if (conn->conn.state != CCI_CONN_OPEN || !cci__sisci_is_busy(ep, &conn->conn))
        cci__timer_arm(&ep->wheel, &conn->conn.timer, ep->now_ns);
#endif
}

static void cci__sisci_remove_op(cci__sisci_op *op) {
    cci__list_remove(&op->node);
    cci__sisci_use(op->conn->link, CCI__SISCI_AN_OP, UINT32_MAX);
    if (op->conn->ops == &op->sibling) op->conn->ops = op->sibling.next == &op->sibling ? NULL : op->sibling.next;
    cci__list_remove(&op->sibling);
    if (CCI__LINGERS(&op->conn->conn)) cci__sisci_check_linger(op->conn);
}

/* Messages were cancelled, and no event tells of it yet: this one does, or it was the last of them (calls waited for
 * all, or they have come after all), and what is sent from now on starts afresh. */
static CCI__RARE void cci__sisci_end_gap(cci__sisci_op *op, int status) {
    cci_list_t *at = op->conn->ops;
    op->is_first_rnr = status == CCI_ERR_RNR && !op->blocking;
    for (; at && !op->is_first_rnr; at = at->next == op->conn->ops ? NULL : at->next)
        if (CCI__CONTAINER(at, cci__sisci_op, sibling)->is_cancelled) return;
    op->conn->unready = op->is_first_rnr ? CCI__SISCI_UNREADY | CCI__SISCI_MARKED : 0;
}

static void cci__sisci_complete(cci__sisci *ep, cci__sisci_op *op, int status) {
    if (!cci__list_empty(&op->node)) cci__sisci_remove_op(op);
    if (op->item) {
        op->item->op = NULL;
        op->item->dead = 1;
        op->item = NULL;
    }
    if (CCI__UNLIKELY(op->conn->unready == CCI__SISCI_UNREADY)) cci__sisci_end_gap(op, status);
    if (op->blocking) {
        op->status = status;
        op->done = 1;
        return;
    }
    op->event.base.pub.send.status = (cci_status_t)status;
    op->event.state = ep->received_total; /* it comes behind these */
    cci_evq_post(&ep->base.evq.done, &op->event);
}

/* Has the peer consumed its record? Then it has ended well, although that may not have been noticed yet, and the lines
 * of the record may have another one by now. */
static int cci__sisci_is_consumed(const cci__sisci_link *link, const cci__sisci_op *op) {
    return op->has_record && (int32_t)(link->out.acknowledged - op->end) >= 0;
}

/* The peer is to drop the record, if it has not consumed it. */
static void cci__sisci_cancel_record(cci__sisci_link *link, const cci__sisci_op *op) {
    CCI_ASSERT(op->has_record && !cci__sisci_is_consumed(link, op));
    cci__sisci_write_word(link, CCI__SISCI_AT_RING + (size_t)(op->start & (link->out.lines - 1)) * CCI__SISCI_LINE + 4,
                          op->word | CCI__SISCI_CANCELLED);
}

/* Fails an operation. Its record is cancelled if the peer has not consumed it. */
static void cci__sisci_fail_op(cci__sisci *ep, cci__sisci_link *link, cci__sisci_op *op, int status) {
    if (op->has_record && !cci__sisci_is_consumed(link, op) && link->state == CCI__SISCI_OPEN)
        cci__sisci_cancel_record(link, op);
    cci__sisci_complete(ep, op, status);
}

/* Fails all operations of a connection. */
static void cci__sisci_fail_ops(cci__sisci_link *link, cci__sisci_conn *conn, int status) {
    while (conn->ops) cci__sisci_fail_op(link->ep, link, CCI__CONTAINER(conn->ops, cci__sisci_op, sibling), status);
}

static void cci__sisci_free_item(cci__sisci *ep, cci__sisci_item *item) {
    item->next = ep->pools.free_items;
    ep->pools.free_items = item;
}

/* Buffers for more messages that wait; their bytes are not touched until they are used. */
static void cci__sisci_add_items(cci__sisci *ep) {
    uint32_t count = cci__sisci_slab_of(ep->pools.item_made, ep->pools.most[CCI__SISCI_AN_ITEM]);
    cci__sisci_item *items = count ? (cci__sisci_item *)cci__sisci_memory_of(ep, count * sizeof *items) : NULL;
    uint8_t *bytes = items ? (uint8_t *)cci__sisci_memory_of(ep, (size_t)count * ep->pools.stride) : NULL;
    if (!bytes) return;
    ep->pools.item_made += count;
    while (count-- > 0) {
        memset(&items[count], 0, sizeof items[count]);
        items[count].buffer = bytes + (size_t)count * ep->pools.stride;
        cci__sisci_free_item(ep, &items[count]);
    }
}

static cci__sisci_item *cci__sisci_new_item(cci__sisci *ep, cci__sisci_conn *conn) {
    cci__sisci_item *item;
    uint8_t *buffer;
    if (!cci__sisci_may_have(conn->link, CCI__SISCI_AN_ITEM)) return NULL;
    if (!ep->pools.free_items) cci__sisci_add_items(ep);
    item = ep->pools.free_items;
    if (!item) return NULL;
    ep->pools.free_items = item->next;
    buffer = item->buffer;
    memset(item, 0, sizeof *item);
    item->buffer = buffer;
    item->conn = conn;
    item->token = conn->conn.token;
    return item;
}

/* Its operation is over, or its connection. */
static int cci__sisci_is_dead(const cci__sisci_item *item) {
    return item->dead || item->token != item->conn->conn.token || item->conn->conn.state != CCI_CONN_OPEN;
}

/* ==================================================================================================================
 * >>sisci-cci-send
 *
 * From a message to a record in the peer's inbox: reserve lines, copy, publish. The first word of a record is stored
 * last. Every record carries how far we have consumed; a word of the inbox carries it when no record does.
 *   Invariant: acknowledged <= head <= acknowledged + lines of the ring, counted modulo 2^32.
 * ================================================================================================================== */

/* The peer has consumed so much; what is older than what we know comes from a word that it need not store again. */
static void cci__sisci_note_ack(cci__sisci_link *link, uint32_t consumed) {
    if ((int32_t)(consumed - link->out.acknowledged) <= 0) return;
    if (consumed - link->out.acknowledged > link->out.head - link->out.acknowledged) {
        cci__sisci_lose(link); /* that was never sent */
        return;
    }
    link->out.acknowledged = consumed;
}

static CCI__RARE void cci__sisci_read_ahead(cci__sisci_link *link);

static void cci__sisci_read_ack(cci__sisci_link *link) {
    cci__sisci_note_ack(link, cci__sisci_load(link->in.base + CCI__SISCI_AT_ACK));
    if (CCI__UNLIKELY(cci__sisci_is_stuck(link))) cci__sisci_read_ahead(link);
}

static int cci__sisci_has_room(cci__sisci_link *link, uint32_t lines) {
    if (link->out.head + lines + 1 - link->out.acknowledged <= link->out.lines) return 1;
    cci__sisci_read_ack(link);
    return link->out.head + lines + 1 - link->out.acknowledged <= link->out.lines;
}

/* The name of a connection in records: its index, and twelve bits that tell it from earlier ones of that index. */
static uint32_t cci__sisci_name(const cci__sisci_conn *conn) {
    return conn->conn.index | (uint32_t)(conn->conn.token & 0xfffu) << 20;
}

/* Records have numbers that come again after 2^31 lines. What was left behind in lines that are seldom used is cleared
 * before; the peer reads none of it. */
static void cci__sisci_sweep(cci__sisci_link *link) {
    uint32_t i;
    for (i = 0; i < link->out.lines; i++) cci__sisci_store(link->out.ring + (size_t)i * CCI__SISCI_LINE, 0);
    link->out.swept = link->out.head;
}

/* When the peer has consumed all, the next record but one goes to the front of the ring: a link that is used now and
 * then needs but one page on each side, and few lines of the caches. Both count the lines that are left out. 1: this
 * record is the last before that. */
static inline int cci__sisci_returns(cci__sisci_link *link, uint32_t place, uint32_t lines) {
    if (CCI__LIKELY(place < CCI__SISCI_NEAR) || link->mirror) return 0;
    if (link->out.acknowledged != link->out.head) {
        if ((place & 15) >= lines) return 0;
        cci__sisci_read_ack(link);
        if (link->out.acknowledged != link->out.head) return 0;
    }
    if (CCI__UNLIKELY(link->out.head - link->out.swept > CCI__SISCI_SWEEP)) cci__sisci_sweep(link);
    return 1;
}

/* How many lines a record takes; its word says whether those to the end of the ring. */
static inline uint32_t cci__sisci_span(cci__sisci_link *link, uint32_t lines, uint32_t *word) {
    uint32_t place = link->out.head & (link->out.lines - 1);
    if (CCI__LIKELY(!cci__sisci_returns(link, place, lines))) return lines;
    *word |= CCI__SISCI_LAST;
    return link->out.lines - place;
}

static inline CCI__HOT_PATH void cci__sisci_publish(cci__sisci_link *link, uint8_t *record, uint32_t lines,
                                                    uint32_t word, uint32_t to) {
    uint32_t header[2];
    header[0] = to;
    header[1] = link->acknowledged = link->in.tail;
    if (link->is_busy & CCI__SISCI_IS_DUE) {
        link->is_busy &= (uint8_t)~CCI__SISCI_IS_DUE;
        cci__list_remove(&link->due);
    }
    memcpy(record + 8, header, 8);
    __atomic_store_n((uint32_t *)(void *)(record + 4), word, __ATOMIC_RELAXED);
    cci__sisci_store(record, link->out.head * 2 + 1);
    if (CCI__UNLIKELY(link->mirror != NULL))
        link->ep->far->push_record(link, record, word == CCI__SISCI_PAD ? 1 : lines);
    link->out.head += lines;
    cci__sisci_touch(link);
}

/* Room for a record in one piece, or NULL. */
static uint8_t *cci__sisci_reserve(cci__sisci_link *link, uint32_t lines) {
    uint32_t place = link->out.head & (link->out.lines - 1);
    uint32_t rest = link->out.lines - place;
    if (lines > rest) {
        if (!cci__sisci_has_room(link, rest + lines)) return NULL;
        cci__sisci_publish(link, link->out.ring + (size_t)place * CCI__SISCI_LINE, rest, CCI__SISCI_PAD, 0);
        place = 0;
    } else if (!cci__sisci_has_room(link, lines)) {
        return NULL;
    }
    return link->out.ring + (size_t)place * CCI__SISCI_LINE;
}

static uint32_t cci__sisci_lines(uint32_t length) {
    return length <= CCI__SISCI_FIRST_LINE
               ? 1
               : 1 + (length - CCI__SISCI_FIRST_LINE + CCI__SISCI_LATER_LINE - 1) / CCI__SISCI_LATER_LINE;
}

/* Where in a record something goes, or comes from. */
typedef struct cci__sisci_place {
    uint8_t *at;   /* the next byte */
    uint32_t left; /* bytes in this line */
} cci__sisci_place;

/* Up to 64 bytes without a call and without a loop: copies that overlap. */
static inline void cci__sisci_copy(uint8_t *to, const uint8_t *from, uint32_t length) {
    if (length >= 32) {
        memcpy(to, from, 32);
        memcpy(to + length - 32, from + length - 32, 32);
    } else if (length >= 16) {
        memcpy(to, from, 16);
        memcpy(to + length - 16, from + length - 16, 16);
    } else if (length >= 8) {
        memcpy(to, from, 8);
        memcpy(to + length - 8, from + length - 8, 8);
    } else if (length >= 4) {
        memcpy(to, from, 4);
        memcpy(to + length - 4, from + length - 4, 4);
    } else if (length > 0) {
        to[0] = from[0];
        to[length / 2] = from[length / 2];
        to[length - 1] = from[length - 1];
    }
}

static void cci__sisci_put(cci__sisci_place *place, const void *data, size_t length) {
    const uint8_t *from = (const uint8_t *)data;
    while (length > 0) {
        uint32_t n;
        if (place->left == 0) {
            __atomic_store_n((uint32_t *)(void *)place->at, 0, __ATOMIC_RELAXED); /* no record begins here */
            place->at += 4;
            place->left = CCI__SISCI_LATER_LINE;
        }
        n = length < place->left ? (uint32_t)length : place->left;
        cci__sisci_copy(place->at, from, n);
        place->at += n;
        place->left -= n;
        from += n;
        length -= n;
    }
}

/* Copies whole lines, which needs no call: where it goes there is room for that. */
static void cci__sisci_get(const uint8_t *from, uint8_t *to, uint32_t length) {
    uint32_t done = CCI__SISCI_FIRST_LINE;
    memcpy(to, from, CCI__SISCI_FIRST_LINE);
    for (from += CCI__SISCI_FIRST_LINE; done < length; from += CCI__SISCI_LINE, done += CCI__SISCI_LATER_LINE)
        memcpy(to + done, from + 4, CCI__SISCI_LATER_LINE);
}

static cci__sisci_place cci__sisci_begin(uint8_t *record) {
    cci__sisci_place place;
    place.at = record + CCI__SISCI_HEADER;
    place.left = CCI__SISCI_FIRST_LINE;
    return place;
}

static void cci__sisci_gather(uint8_t *to, const struct iovec *data, uint32_t count) {
    uint32_t i;
    for (i = 0; i < count; i++) {
        if (data[i].iov_len > 0) {
            memcpy(to, data[i].iov_base, data[i].iov_len);
            to += data[i].iov_len;
        }
    }
}

/* A record with its bytes inside. */
static int cci__sisci_post(cci__sisci_link *link, uint32_t type, uint32_t to, const void *head, uint32_t head_length,
                           const void *data, uint32_t length) {
    uint32_t lines = cci__sisci_lines(head_length + length), word;
    uint8_t *record = cci__sisci_reserve(link, lines);
    cci__sisci_place place;
    if (!record) return 0;
    place = cci__sisci_begin(record);
    cci__sisci_put(&place, head, head_length);
    cci__sisci_put(&place, data, length);
    word = type | (head_length + length) << 16;
    lines = cci__sisci_span(link, lines, &word);
    cci__sisci_publish(link, record, lines, word, to);
    return 1;
}

/* A free block of the peer's inbox; what the peer has given back is looked at when there is none. */
static int cci__sisci_alloc_block(cci__sisci_link *link) {
    while (link->outbox.free_count == 0) {
        uint32_t word =
            cci__sisci_load(link->in.base + CCI__SISCI_AT_RETURNS + 4 * (link->outbox.returned % CCI__SISCI_RETURNS));
        if (word >> 8 != ((link->outbox.returned + 1) & 0xffffffu)) return -1;
        if ((word & 0xff) >= link->peer.card.block_count) {
            cci__sisci_lose(link);
            return -1;
        }
        link->outbox.free_block[link->outbox.free_count++] = (uint8_t)word;
        link->outbox.returned++;
    }
    return link->outbox.free_block[--link->outbox.free_count];
}

/* The connection's silent messages have their time from this one on, if the peer has taken those before it. */
static void cci__sisci_begin_silent(cci__sisci_link *link, cci__sisci_conn *conn) {
    if (!cci__list_empty(&conn->state_node)) {
        cci__sisci_read_ack(link);
        if ((int32_t)(link->out.acknowledged - conn->silent_mark) < 0) return;
    } else if (!cci__conn_is_reliable(&conn->conn)) {
        return;
    }
    conn->silent_mark = link->out.head;
    conn->conn.deadline_ns = 0;
    cci__list_remove(&conn->state_node);
    cci__list_append(&link->conns.silent, &conn->state_node);
    cci__sisci_watch_time(link);
}

/* A silent message has no operation that would time out: its connection remembers it. An endpoint that is polled
 * notices soon enough whether the peer gets on. */
static inline void cci__sisci_watch_silent(cci__sisci_link *link, cci__sisci_conn *conn) {
    conn->silent_end = link->out.head;
    if (CCI__UNLIKELY(cci__list_empty(&conn->state_node) || cci__sisci_is_sleeper(link->ep)))
        cci__sisci_begin_silent(link, conn);
}

/* An operation's record, which is published now. */
static inline void cci__sisci_posted(const cci__sisci_link *link, cci__sisci_op *op, uint32_t lines, uint32_t word) {
    op->start = link->out.head;
    op->end = link->out.head + lines;
    op->word = word;
    op->has_record = op->posted = 1;
}

/* Puts a message in the ring; 0 if there is no room. */
static int cci__sisci_post_message(cci__sisci_link *link, cci__sisci_conn *conn, const struct iovec *data,
                                   uint32_t count, uint32_t length, cci__sisci_op *op) {
    cci__sisci_place place;
    uint32_t lines, word, i;
    uint8_t *record;
    if (length <= CCI__SISCI_SHORT) {
        lines = cci__sisci_lines(length);
        record = cci__sisci_reserve(link, lines);
        if (!record) return 0;
        word = CCI__SISCI_MESSAGE | length << 16;
        place = cci__sisci_begin(record);
        for (i = 0; i < count; i++) cci__sisci_put(&place, data[i].iov_base, data[i].iov_len);
    } else {
        uint32_t number;
        int block;
        lines = 1;
        record = cci__sisci_reserve(link, lines);
        block = record ? cci__sisci_alloc_block(link) : -1;
        if (block < 0) return 0;
        word = CCI__SISCI_BLOCK | length << 16;
        number = (uint32_t)block;
        memcpy(record + CCI__SISCI_HEADER, &number, sizeof number);
        cci__sisci_gather(link->outbox.blocks + (size_t)number * link->peer.card.block_size, data, count);
        cci__sisci_push(link, link->outbox.blocks + (size_t)number * link->peer.card.block_size, length);
    }
    CCI__WAKES(word |= link->ep->wake_word);
    lines = cci__sisci_span(link, lines, &word);
    if (op) cci__sisci_posted(link, op, lines, word |= CCI__SISCI_ASKS);
    cci__sisci_publish(link, record, lines, word, conn->conn.peer_index);
    if (!op) cci__sisci_watch_silent(link, conn);
    return 1;
}

/* ==================================================================================================================
 * >>sisci-cci-conns
 *
 * A connection is in the list of its link; one of a multicast group has no link. A record of the handshake waits in its
 * link's list until there is space in the ring, one for each connection, and is never dropped. A connection has ended
 * for the program when its last event is posted; its place in the table is freed when the program has closed it and the
 * peer has been sent the record of it.
 * ================================================================================================================== */

static cci__sisci_conn *cci__sisci_conn_at(const cci__sisci *ep, uint32_t index) {
    return index == CCI__CONN_NONE ? NULL : (cci__sisci_conn *)(void *)cci_conn_at(&ep->base.conns, index);
}

/* The connection is of this link from now on; those of multicast are of none. */
static void cci__sisci_assign(cci__sisci *ep, cci__sisci_conn *conn, cci__sisci_link *link) {
    cci__sisci_conn *after = link ? cci__sisci_conn_at(ep, link->conns.first) : NULL;
    conn->link = link;
    conn->before = conn->after = CCI__CONN_NONE;
    if (after) {
        after->before = conn->conn.index;
        conn->after = after->conn.index;
    }
    if (link) {
        link->conns.count++;
        link->conns.first = conn->conn.index;
    }
}

/* Takes a connection off its link; how many the link has then. */
static uint32_t cci__sisci_unassign(const cci__sisci *ep, const cci__sisci_conn *conn) {
    cci__sisci_conn *before = cci__sisci_conn_at(ep, conn->before), *after = cci__sisci_conn_at(ep, conn->after);
    if (after) after->before = conn->before;
    if (before)
        before->after = conn->after;
    else
        conn->link->conns.first = conn->after;
    return --conn->link->conns.count;
}

/* The same. A link without connections is closed after a while. */
static void cci__sisci_leave_link(cci__sisci *ep, const cci__sisci_conn *conn) {
    if (cci__sisci_unassign(ep, conn) > 0) return;
    cci__sisci_add_to_steps(conn->link); /* it may be lost, and has waited for this */
    conn->link->idle_ns = cci__sci_now() + CCI__SISCI_LINK_IDLE_NS;
    ep->times.idle_ns = cci__min64(ep->times.idle_ns, conn->link->idle_ns);
    if (conn->link->is_client && cci__list_empty(&conn->link->idle))
        cci__list_append(&ep->links.idle, &conn->link->idle);
}

static void cci__sisci_drop_data(cci__sisci *ep, cci__sisci_conn *conn) {
    if (!conn->data) return;
    ep->kept_answers -= !conn->conn.is_client;
    cci_release(conn->data);
    conn->data = NULL;
}

static void cci__sisci_close_conn(cci__sisci *ep, cci__sisci_conn *conn) {
    cci__timer_disarm(&ep->base.wheel, &conn->conn.timer);
    cci__list_remove(&conn->node);
    cci__list_remove(&conn->state_node);
    cci__sisci_drop_data(ep, conn);
    if (conn->link) conn->link->last = NULL;
    if (conn->link) cci__sisci_leave_link(ep, conn);
    cci_conn_close(&ep->base.conns, &conn->conn);
}

static int cci__sisci_post_control(cci__sisci_link *link, cci__sisci_conn *conn) {
    const void *data = conn->data ? conn->data + 1 : NULL;
    uint32_t data_len = data ? conn->data_len : 0;
    uint32_t head[4];
    memset(head, 0, sizeof head);
    head[0] = cci__sisci_name(conn);
    switch (conn->control_type) {
    case CCI__SISCI_REQUEST:
        head[2] = (uint32_t)conn->conn.pub.attribute;
        head[3] = conn->conn.pub.max_send_size;
        return cci__sisci_post(link, CCI__SISCI_REQUEST, 0, head, 16, data, data_len);
    case CCI__SISCI_ACCEPT:
        head[2] = conn->conn.pub.max_send_size;
        return cci__sisci_post(link, CCI__SISCI_ACCEPT, conn->conn.peer_index, head, 16, data, data_len);
    case CCI__SISCI_REJECT:
        return cci__sisci_post(link, CCI__SISCI_REJECT, conn->conn.peer_index, head, 16, data, data_len);
    case CCI__SISCI_DISCONNECT:
        head[2] = conn->closed_at;
        head[3] = conn->conn.state == CCI_CONN_BROKEN ? CCI__SISCI_GIVEN_UP : 0;
        break;
    default: break;
    }
    return cci__sisci_post(link, conn->control_type, conn->conn.peer_index, head, 16, NULL, 0);
}

static int cci__sisci_send_control(cci__sisci *ep, cci__sisci_link *link) {
    while (!cci__list_empty(&link->conns.control)) {
        cci__sisci_conn *conn = CCI__CONTAINER(link->conns.control.next, cci__sisci_conn, node);
        if (!cci__sisci_post_control(link, conn)) return 0;
        cci__list_remove(&conn->node);
        if (conn->control_type == CCI__SISCI_ACCEPT) cci__sisci_drop_data(ep, conn);
        conn->control_type = 0;
        if (conn->closing) cci__sisci_close_conn(ep, conn);
    }
    return 1;
}

/* Sends a record of the handshake, or queues it. One for each connection: a later one replaces an earlier one. */
static void cci__sisci_queue_control(cci__sisci *ep, cci__sisci_conn *conn, uint8_t type) {
    conn->control_type = type;
    if (cci__list_empty(&conn->node)) {
        cci__list_append(&conn->link->conns.control, &conn->node);
        conn->link->is_busy |= CCI__SISCI_HAS_WORK | CCI__SISCI_QUEUES;
    }
    cci__sisci_make_hot(conn->link);
    if (conn->link->state == CCI__SISCI_OPEN) (void)cci__sisci_send_control(ep, conn->link);
}

static void cci__sisci_post_event(cci__sisci *ep, cci__sisci_conn *conn, int type, int status) {
    cci_evq_event_t *event = conn->event;
    conn->event = NULL;
    if (type == CCI_EVENT_CONNECT) {
        event->base.pub.connect.data_ptr = NULL;
        event->base.pub.connect.data_len = 0;
        cci__endpoint_post_connect(&ep->base, event, &conn->conn, status);
    } else {
        cci__endpoint_post_accept(&ep->base, event, &conn->conn, status);
    }
}

/* Such an event is forgotten when the program has closed the connection before its turn comes. */
static void cci__sisci_post_about(cci_evq_fifo_t *fifo, const cci_conn_t *conn, cci_evq_event_t *event) {
    event->state = 1;
    ((cci__sisci_event *)(void *)event)->token = conn->token;
    cci_evq_post(fifo, event);
}

/* Events about connections that have ended, as far as there are free ones. Each waits behind the messages that have
 * come, and then behind the completions. */
static void cci__sisci_post_ends(cci__sisci *ep) {
    cci_evq_event_t *event;
    while (!cci__list_empty(&ep->ending)) {
        cci__sisci_conn *conn = CCI__CONTAINER(ep->ending.next, cci__sisci_conn, state_node);
        if (!ep->base.evq.free_events[CCI_EVQ_CONTROL] && ep->pools.control_made < CCI__SISCI_CONTROL)
            cci__sisci_add_control(ep);
        event = cci_evq_take_event(&ep->base.evq, CCI_EVQ_CONTROL);
        if (!event) return;
        cci__list_remove(&conn->state_node);
        cci__event_set_disconnect(event, &conn->conn, conn->end_status);
        ep->received_total++;
        cci__sisci_post_about(&ep->received, &conn->conn, event);
    }
}

/* A connection is broken, nothing is pending on it, and no message of it will come any more. */
static void cci__sisci_end_conn(cci__sisci *ep, cci__sisci_conn *conn, int status) {
    if (conn->is_over) return;
    conn->is_over = 1;
    conn->end_status = (int16_t)status;
    cci__list_remove(&conn->state_node); /* of `silent` */
    cci__list_init(&conn->state_node);
    if (CCI__LINGERS(&conn->conn)) { /* the program has closed it */
        cci__sisci_check_linger(conn);
        return;
    }
    if (ep->base.event_mask & (1u << CCI_EVENT_DISCONNECT)) {
        cci__list_append(&ep->ending, &conn->state_node);
        cci__sisci_post_ends(ep);
    }
}

/* Keepalive begins, if there is to be any. */
static void cci__sisci_set_timer(cci__endpoint_t *base, cci_conn_t *conn) {
    ((cci__sisci_conn *)(void *)conn)->pinged = 0;
    cci__timer_arm(&base->wheel, &conn->timer,
                   conn->keepalive_us ? base->now_ns + (uint64_t)conn->keepalive_us * 1000 : CCI__NEVER);
}

static void cci__sisci_opened(cci__sisci *ep, cci__sisci_conn *conn) {
    conn->conn.state = CCI_CONN_OPEN;
    ep->base.now_ns = cci__sci_now();
    cci__sisci_set_timer(&ep->base, &conn->conn);
}

static cci__sisci_conn *cci__sisci_open_conn(cci__sisci *ep, cci__sisci_link *link, cci_conn_attribute_t attribute,
                                             void *context) {
    cci__sisci_conn *conn = (cci__sisci_conn *)(void *)cci_conn_open(&ep->base.conns);
    if (!conn && ep->base.conns.slab_count < CCI__CONN_SLABS) {
        uint8_t *slab;
        CCI__STATS(if (ep->base.tallies.counted &&
                       !cci__tallies_grow(&ep->base.tallies, ep->base.conns.slab_count + 1)) return NULL);
        if (ep->base.notices.asked && !cci__notices_grow(&ep->base.notices, ep->base.conns.slab_count + 1)) return NULL;
        slab = (uint8_t *)cci__sisci_memory_of(ep, CCI__CONN_SLAB * sizeof *conn);
        if (slab) {
            cci_conn_add_slab(&ep->base.conns, slab);
            conn = (cci__sisci_conn *)(void *)cci_conn_open(&ep->base.conns);
        }
    }
    if (!conn) return NULL;
    CCI__STATS(if (ep->base.tallies.counted) cci__tally_begin(&ep->base.tallies, conn->conn.index));
    conn->conn.pub.endpoint = (cci_endpoint_t *)&ep->base.api.pub;
    conn->conn.pub.attribute = attribute;
    conn->conn.pub.context = context;
    conn->conn.pub.max_send_size = cci__endpoint_message_max(&ep->base);
    conn->in_gap = conn->unready = 0;
    conn->conn.send_timeout_us = ep->base.send_timeout_us;
    conn->conn.keepalive_us =
        attribute == CCI_CONN_ATTR_RO || attribute == CCI_CONN_ATTR_RU ? ep->base.keepalive_us : 0;
    cci__list_init(&conn->node);
    cci__list_init(&conn->state_node);
    cci__sisci_assign(ep, conn, link);
    return conn;
}

static cci__sisci_conn *cci__sisci_find_conn(cci__sisci *ep, cci__sisci_link *link, uint32_t name) {
    cci__sisci_conn *conn = (cci__sisci_conn *)(void *)cci_conn_at(&ep->base.conns, name & 0xfffffu);
    return conn && conn->conn.state != CCI_CONN_FREE && conn->link == link && !conn->closing &&
                   cci__sisci_name(conn) == name
               ? conn
               : NULL;
}

/* ==================================================================================================================
 * >>sisci-cci-rma
 *
 * The initiator does the RMA with process_vm_readv and process_vm_writev where the kernel allows that (the same user,
 * the same container): the target's program takes no part. It first reads the registration from the target's memory,
 * and the word `busy` in the target's inbox is odd meanwhile; who ends a registration waits until it has changed.
 * Elsewhere the data goes in pieces through slots of the inboxes, and the target copies.
 *   Invariants: each piece looks up the registration anew. A slot has a number while it waits for an answer; an answer
 * with another number is ignored. Atomics are always done by the target's process.
 * ================================================================================================================== */

/* Looks up the peer's registration and copies a piece, all by the kernel; a status. */
static int cci__sisci_vm_piece(cci__sisci_link *link, const cci__sisci_item *item, uint8_t *local, uint64_t offset,
                               uint64_t length) {
    cci_rma_region_t region;
    struct iovec here, there;
    uint32_t wanted = item->is_read ? CCI_FLAG_READ : CCI_FLAG_WRITE;
    ssize_t n;
    if (item->remote_region >= link->peer.card.region_count) return CCI_ERR_RMA_HANDLE;
    here.iov_base = &region;
    here.iov_len = sizeof region;
    there.iov_base = (void *)(uintptr_t)(link->peer.card.regions_at + (uint64_t)item->remote_region * sizeof region);
    there.iov_len = sizeof region;
    n = (ssize_t)syscall(SYS_process_vm_readv, (pid_t)link->peer.card.pid, &here, 1UL, &there, 1UL, 0UL);
    if (n != (ssize_t)sizeof region) return CCI_ERR_DISCONNECTED;
    if (region.key != item->remote_key || region.key == 0 || (region.flags & wanted) != wanted ||
        length > region.length || offset > region.length - length)
        return CCI_ERR_RMA_HANDLE;
    CCI__SCI_DELAY_POINT(CCI__SCI_AT_COPY);
    here.iov_base = local;
    here.iov_len = (size_t)length;
    there.iov_base = region.start + offset;
    there.iov_len = (size_t)length;
    n = (ssize_t)syscall(item->is_read ? SYS_process_vm_readv : SYS_process_vm_writev, (pid_t)link->peer.card.pid,
                         &here, 1UL, &there, 1UL, 0UL);
    return n == (ssize_t)length ? CCI_SUCCESS : n < 0 && errno == ESRCH ? CCI_ERR_DISCONNECTED : CCI_ERR_RMA_HANDLE;
}

static uint8_t *cci__sisci_local(cci__sisci *ep, const cci__sisci_item *item, uint64_t offset, uint64_t length) {
    return cci_rma_address(&ep->rma.table, item->local_key, item->local_region, item->local_offset + offset, length, 0);
}

/* What travels with a bounced piece. */
typedef struct cci__sisci_bounce {
    uint32_t slot, region;        /* where the bytes are; the place of the registration */
    uint64_t key, offset, number; /* of the registration; in its memory; of the piece */
    uint32_t length, operation;   /* of an atomic: its width; and what it does to the number */
} cci__sisci_bounce;

/* Reads the answers that have come. */
static void cci__sisci_receive_answers(cci__sisci *ep, cci__sisci_link *link) {
    uint32_t i;
    for (i = 0; i < CCI__SISCI_SLOTS; i++) {
        cci__sisci_slot *slot = &link->rma.slot[i];
        cci__sisci_item *item = slot->item;
        uint64_t answer;
        uint8_t *local;
        if (slot->number == 0) continue;
        answer = cci__sisci_load_long(link->in.base + CCI__SISCI_AT_DONE + 8 * i);
        if (answer >> 8 != slot->number) continue;
        slot->number = 0;
        slot->item = NULL;
        if (!item) continue; /* it was given up */
        item->slots--;
        cci__sisci_renew(link, item);
        if ((answer & 0xff) != CCI_SUCCESS) {
            item->status = (answer & 0xff) == CCI_ERR_RMA_OP ? CCI_ERR_RMA_OP : CCI_ERR_RMA_HANDLE;
        } else if (item->width > 0) {
            if (item->previous)
                *item->previous =
                    cci__load64(link->inbox.slots + (size_t)(CCI__SISCI_SLOTS + i) * CCI__SISCI_SLOT_SIZE);
        } else if (item->is_read && item->status == CCI_SUCCESS) {
            local = cci__sisci_local(ep, item, slot->at, slot->length);
            if (local)
                memcpy(local, link->inbox.slots + (size_t)(CCI__SISCI_SLOTS + i) * CCI__SISCI_SLOT_SIZE, slot->length);
            else
                item->status = CCI_ERR_RMA_HANDLE;
        }
    }
}

/* Posts the record of a piece whose bytes are in slot i; 0 if there is no space in the ring. */
static int cci__sisci_post_piece(cci__sisci_link *link, cci__sisci_item *item, uint32_t i, uint32_t type,
                                 uint32_t length) {
    cci__sisci_slot *slot = &link->rma.slot[i];
    cci__sisci_bounce bounce;
    memset(&bounce, 0, sizeof bounce);
    bounce.slot = i;
    bounce.region = item->remote_region;
    bounce.key = item->remote_key;
    bounce.offset = item->remote_offset + item->begun;
    bounce.number = link->rma.slot_number + 1;
    bounce.length = length;
    bounce.operation = item->operation;
    if (!cci__sisci_post(link, type, 0, &bounce, sizeof bounce, NULL, 0)) return 0;
    slot->number = ++link->rma.slot_number;
    slot->item = item;
    slot->at = item->begun;
    slot->length = length;
    item->slots++;
    return 1;
}

/* 1 when the RMA is over. */
static int cci__sisci_bounced(cci__sisci *ep, cci__sisci_link *link, cci__sisci_item *item) {
    uint32_t i;
    cci__sisci_receive_answers(ep, link);
    for (i = 0; i < CCI__SISCI_SLOTS && item->begun < item->rma_length && item->status == CCI_SUCCESS; i++) {
        uint32_t length = (uint32_t)cci__min64(item->rma_length - item->begun, CCI__SISCI_SLOT_SIZE);
        uint8_t *local;
        if (link->rma.slot[i].number != 0) continue;
        local = cci__sisci_local(ep, item, item->begun, length);
        if (!local) {
            item->status = CCI_ERR_RMA_HANDLE;
            break;
        }
        if (!cci__sisci_has_room(link, 2)) break;
        if (!item->is_read) {
            memcpy(link->outbox.slots + (size_t)i * CCI__SISCI_SLOT_SIZE, local, length);
            cci__sisci_push(link, link->outbox.slots + (size_t)i * CCI__SISCI_SLOT_SIZE, length);
        }
        if (!cci__sisci_post_piece(link, item, i, item->is_read ? CCI__SISCI_RMA_READ : CCI__SISCI_RMA_WRITE, length))
            break;
        item->begun += length;
    }
    return item->slots == 0 && (item->status != CCI_SUCCESS || item->begun == item->rma_length);
}

/* Copies a piece for the peer, and answers. */
static void cci__sisci_serve_bounce(cci__sisci *ep, cci__sisci_link *link, int is_read,
                                    const cci__sisci_bounce *bounce) {
    uint8_t *memory;
    int status = CCI_ERR_RMA_HANDLE;
    if (bounce->slot >= CCI__SISCI_SLOTS || bounce->length > CCI__SISCI_SLOT_SIZE || bounce->length == 0) {
        cci__sisci_lose(link);
        return;
    }
    memory = cci_rma_address(&ep->rma.table, bounce->key, bounce->region, bounce->offset, bounce->length,
                             is_read ? CCI_FLAG_READ : CCI_FLAG_WRITE);
    if (memory && is_read) {
        uint8_t *slot = link->outbox.slots + (size_t)(CCI__SISCI_SLOTS + bounce->slot) * CCI__SISCI_SLOT_SIZE;
        memcpy(slot, memory, bounce->length);
        cci__sisci_push(link, slot, bounce->length);
        status = CCI_SUCCESS;
    } else if (memory) {
        memcpy(memory, link->inbox.slots + (size_t)bounce->slot * CCI__SISCI_SLOT_SIZE, bounce->length);
        status = CCI_SUCCESS;
    }
    cci__sisci_write_long(link, CCI__SISCI_AT_DONE + 8 * bounce->slot, bounce->number << 8 | (uint64_t)(uint8_t)status);
    cci__sisci_touch_lightly(link);
}

#ifndef CCI_NO_ATOMICS
/* 1 when the atomic is over. The peer's process does it, wherever the memory is. */
static int cci__sisci_request_atomic(cci__sisci *ep, cci__sisci_link *link, cci__sisci_item *item) {
    uint32_t i = 0;
    uint8_t *numbers;
    cci__sisci_receive_answers(ep, link);
    if (item->begun) return item->slots == 0;
    while (i < CCI__SISCI_SLOTS && link->rma.slot[i].number != 0) i++;
    if (i == CCI__SISCI_SLOTS || !cci__sisci_has_room(link, 2)) return 0;
    numbers = link->outbox.slots + (size_t)i * CCI__SISCI_SLOT_SIZE;
    cci__store64(numbers, item->operand);
    cci__store64(numbers + 8, item->compare);
    cci__sisci_push(link, numbers, 16);
    item->begun = (uint64_t)cci__sisci_post_piece(link, item, i, CCI__SISCI_RMA_ATOMIC, item->width);
    return 0;
}

/* Does an atomic of the peer's. */
static void cci__sisci_serve_atomic(cci__sisci *ep, cci__sisci_link *link, const cci__sisci_bounce *bounce) {
    const uint8_t *numbers;
    uint8_t *memory, *answer;
    uint64_t previous;
    int status;
    if (bounce->slot >= CCI__SISCI_SLOTS || (bounce->length != 4 && bounce->length != 8)) {
        cci__sisci_lose(link);
        return;
    }
    numbers = link->inbox.slots + (size_t)bounce->slot * CCI__SISCI_SLOT_SIZE;
    answer = link->outbox.slots + (size_t)(CCI__SISCI_SLOTS + bounce->slot) * CCI__SISCI_SLOT_SIZE;
    memory = cci_rma_address(&ep->rma.table, bounce->key, bounce->region, bounce->offset, bounce->length,
                             CCI_FLAG_READ | CCI_FLAG_WRITE);
    status = cci__atomic_do(memory, bounce->length, bounce->operation, cci__load64(numbers), cci__load64(numbers + 8),
                            &previous);
    cci__store64(answer, previous);
    cci__sisci_push(link, answer, 8);
    cci__sisci_write_long(link, CCI__SISCI_AT_DONE + 8 * bounce->slot, bounce->number << 8 | (uint64_t)(uint8_t)status);
    cci__sisci_touch_lightly(link);
}
#endif

/* ==================================================================================================================
 * >>sisci-cci-map
 *
 * Memory of cci_rma_alloc() is a segment. An initiator sends the registration's key, the target answers with the number
 * of the segment, and the initiator connects and maps it: from then on it copies between its memory and the mapping,
 * once, without the kernel or the target. The target's guard admits who has shown a key, for reading only unless that
 * registration may be written. Whether a registration is still there is looked up for each piece in the target's
 * registration table, a segment that peers cannot write to, under the same rule of `busy`. Later registrations in a
 * segment that is mapped already need no question. Last: waiting for copies of peers, when a registration has ended.
 *   The guard runs with the lock of the SISCI device held, inside cci__sci_progress().
 * ================================================================================================================== */

/* A number made of a key. The key cannot be computed from it. */
static uint64_t cci__sisci_check(uint64_t key) {
    static const uint64_t constant[2] = {UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344)};
    return cci__siphash(constant, &key, 1) | 1;
}

/* The key and index in a handle; whether its memory can be mapped. */
static int cci__sisci_parse_handle(const struct cci_rma_handle *handle, uint64_t *key, uint32_t *region) {
    const uint8_t *bytes = (const uint8_t *)handle->stuff;
    uint64_t index = cci__load64(bytes + 8);
    *key = cci__load64(bytes);
    *region = (index & ~CCI__SISCI_SHARED) > 0xffffffff ? 0xffffffff : (uint32_t)index;
    return (index & CCI__SISCI_SHARED) != 0;
}

static cci__sci_callback_action_t cci__sisci_on_view(void *arg, cci__sci_remote_segment_t segment,
                                                     cci__sci_segment_cb_reason_t reason, cci__sci_error_t status) {
    cci__sisci_view *view = (cci__sisci_view *)arg;
    (void)segment;
    return cci__sisci_report(view->link, &view->news, reason == CCI__SCI_CB_CONNECT && status == CCI__SCI_ERR_OK);
}

/* Forgets a segment of the peer's, whose memory is freed when nobody maps it any more. */
static void cci__sisci_drop_view(cci__sisci_view *view) {
    if (view->map) view->link->ep->sci->call.SCIUnmapSegment(view->map, 0, NULL);
    if (view->segment) {
        if (!view->base) {
            view->link->rma.views->connecting--;
            view->link->ep->links.handshakes--;
        }
        view->link->ep->sci->call.SCIDisconnectSegment(view->segment, 0, NULL);
    }
    view->map = NULL;
    view->segment = NULL;
    view->base = NULL;
    view->id = 0;
    view->news = 0;
}

static void cci__sisci_drop_views(cci__sisci_link *link) {
    uint32_t i;
    if (!link->rma.views) return;
    cci__sisci_drop_view(&link->rma.views->registry);
    for (i = 0; i < CCI__SISCI_VIEWS; i++) cci__sisci_drop_view(&link->rma.views->block[i]);
    cci_release(link->rma.views);
    link->rma.views = NULL;
}

static void cci__sisci_connect_view(cci__sisci_link *link, cci__sisci_view *view, uint32_t id, int is_writable) {
    view->link = link;
    if (!cci__sisci_connect_segment(link, &view->segment, id, cci__sisci_on_view, view)) return;
    view->id = id;
    view->is_writable = (uint8_t)is_writable;
    view->turn = link->rma.views->turn;
    link->rma.views->connecting++;
    link->ep->links.only = NULL;
    link->ep->links.handshakes++; /* look often */
}

/* Maps a segment that is connected, if it is the peer's. */
static int cci__sisci_map_view(cci__sisci_link *link, cci__sisci_view *view) {
    cci__sci_error_t error;
    const cci__sci_provider *sci = link->ep->sci;
    unsigned int size = sci->call.SCIGetRemoteSegmentSize(view->segment);
    uint8_t *base;
    if (size == 0 || !cci__sci_is_same_peer(view->segment, link->outbox.segment)) return 0;
    base = (uint8_t *)(uintptr_t)sci->call.SCIMapRemoteSegment(view->segment, &view->map, 0, size, NULL,
                                                               view->is_writable ? 0u : sci->flag.READONLY_MAP, &error);
    if (error != CCI__SCI_ERR_OK) {
        view->map = NULL;
        return 0;
    }
    cci__sci_save_remote_descriptor(view->segment);
    link->rma.views->connecting--;
    link->ep->links.handshakes--;
    view->base = base;
    view->size = size;
    return 1;
}

static void cci__sisci_step_view(cci__sisci_link *link, cci__sisci_view *view) {
    int news = view->news;
    view->news = 0;
    if (news < 0 || (news > 0 && !view->base && !cci__sisci_map_view(link, view))) {
        if (!view->base) {
            link->rma.views->is_refused = 1;
            link->rma.views->pause = 1000;
        }
        cci__sisci_drop_view(view);
    }
}

static void cci__sisci_step_views(cci__sisci_link *link) {
    uint32_t i;
    if (!link->rma.views) return;
    cci__sisci_step_view(link, &link->rma.views->registry);
    for (i = 0; i < CCI__SISCI_VIEWS; i++) cci__sisci_step_view(link, &link->rma.views->block[i]);
}

/* The view of a segment; with the number 0 a free one, or one that has not been used for a while. */
static cci__sisci_view *cci__sisci_find_view(cci__sisci_views *views, uint32_t id) {
    cci__sisci_view *oldest = &views->block[0];
    uint32_t i;
    for (i = 0; i < CCI__SISCI_VIEWS; i++) {
        cci__sisci_view *view = &views->block[i];
        if (view->id == id) return view;
        if (views->turn - view->turn > views->turn - oldest->turn) oldest = view;
    }
    if (id != 0 || !oldest->base || views->turn - oldest->turn < 4 * CCI__SISCI_VIEWS) return NULL;
    cci__sisci_drop_view(oldest);
    return oldest;
}

/* The peer has answered: what may be connected to is connected. */
static void cci__sisci_receive_grant(cci__sisci_link *link) {
    cci__sisci_views *views = link->rma.views;
    const uint8_t *grant = link->in.base + CCI__SISCI_AT_GRANT;
    cci__sisci_view *view;
    uint32_t word[3];
    if (cci__sisci_load(grant + 12) != views->number) return;
    memcpy(word, grant, sizeof word);
    views->is_asking = 0;
    views->is_refused = word[1] == 0;
    if (views->is_refused) return;
    if (!views->registry.segment) cci__sisci_connect_view(link, &views->registry, word[0], 0);
    view = cci__sisci_find_view(views, word[1]);
    if (view && word[2] == CCI__SCI_WRITES && !view->is_writable)
        cci__sisci_drop_view(view);
    else if (!view)
        view = cci__sisci_find_view(views, 0);
    if (view && !view->segment) cci__sisci_connect_view(link, view, word[1], word[2] == CCI__SCI_WRITES);
    views->is_refused = !view || !view->segment || !views->registry.segment;
}

/* Asks the peer for the memory of a registration: 1 when it will be there soon. */
static int cci__sisci_request_map(cci__sisci_link *link, const cci__sisci_item *item) {
    cci__sisci_views *views = link->rma.views;
    uint32_t head[4];
    if (!views) {
        views = (cci__sisci_views *)cci_alloc(sizeof *views);
        if (!views) return 0;
        memset(views, 0, sizeof *views);
        link->rma.views = views;
    }
    if (views->is_asking) cci__sisci_receive_grant(link);
    if (views->is_asking || views->connecting > 0) return 1;
    if ((views->is_refused && views->key == item->remote_key) || views->pause > 0) {
        views->pause -= views->pause > 0;
        return 0;
    }
    head[0] = item->remote_region;
    head[1] = (uint32_t)item->remote_key;
    head[2] = (uint32_t)(item->remote_key >> 32);
    head[3] = views->number + 1;
    if (cci__sisci_post(link, CCI__SISCI_MAP_REQUEST, 0, head, sizeof head, NULL, 0)) {
        views->number++;
        views->key = item->remote_key;
        views->is_asking = 1;
        link->is_busy |= CCI__SISCI_HAS_WORK;
        views->is_refused = 0;
    }
    return 1;
}

/* Looks up the peer's registration and copies a piece in mapped memory; a status, CCI_EAGAIN while it is not mapped. */
static int cci__sisci_map_piece(cci__sisci_link *link, const cci__sisci_item *item, uint8_t *local, uint64_t offset,
                                uint64_t length) {
    cci__sisci_views *views = link->rma.views;
    const cci__sisci_entry *at = (const cci__sisci_entry *)(const void *)views->registry.base + item->remote_region;
    uint32_t wanted = item->is_read ? CCI_FLAG_READ : CCI_FLAG_WRITE;
    cci__sisci_entry entry;
    cci__sisci_view *view;
    uint8_t *place;
    if (item->remote_region >= views->registry.size / sizeof entry || cci__sisci_load_long(&at->check) != item->check)
        return CCI_ERR_RMA_HANDLE;
    memcpy(&entry, at, sizeof entry);
    if ((entry.flags & wanted) == 0 || length > entry.length || offset > entry.length - length)
        return CCI_ERR_RMA_HANDLE;
    view = entry.block ? cci__sisci_find_view(views, entry.block) : NULL;
    if (!view || !view->base || (!item->is_read && !view->is_writable)) return CCI_EAGAIN;
    if (entry.offset > view->size || entry.length > view->size - entry.offset)
        return CCI_ERR_RMA_HANDLE; /* that is not its memory */
    view->turn = views->turn;
    CCI__SCI_DELAY_POINT(CCI__SCI_AT_COPY);
    place = view->base + (size_t)(entry.offset + offset);
    memcpy(item->is_read ? local : place, item->is_read ? place : local, (size_t)length);
    return CCI_SUCCESS;
}

/* Copies the next few pieces, in mapped memory or by the kernel: 1 when the RMA is over, -1 when that is not mapped. A
 * target that has left has ended its registrations, too. */
static int cci__sisci_copy_pieces(cci__sisci *ep, cci__sisci_link *link, cci__sisci_item *item, int is_mapped) {
    uint64_t most = 4 * CCI__SISCI_VM_PIECE;
    if (is_mapped && (!link->rma.views || !link->rma.views->registry.base)) return -1;
    if (is_mapped) link->rma.views->turn++;
    while (most > 0 && item->begun < item->rma_length && item->status == CCI_SUCCESS) {
        uint64_t length = cci__min64(cci__min64(most, item->rma_length - item->begun), CCI__SISCI_VM_PIECE);
        uint64_t offset = item->remote_offset + item->begun;
        uint8_t *local = cci__sisci_local(ep, item, item->begun, length);
        int status = CCI_ERR_RMA_HANDLE;
        if (local) {
            cci__sisci_store(link->out.base + CCI__SISCI_AT_BUSY, ++link->rma.copies);
            CCI__SCI_FENCE(SEQ_CST); /* who deregisters either sees this, or we see that the registration has ended */
            status = is_mapped ? cci__sisci_map_piece(link, item, local, offset, length)
                               : cci__sisci_vm_piece(link, item, local, offset, length);
            cci__sisci_store(link->out.base + CCI__SISCI_AT_BUSY, ++link->rma.copies);
            if (status == CCI_EAGAIN) return -1;
            if (status == CCI_ERR_RMA_HANDLE && cci__sisci_load(link->in.base + CCI__SISCI_AT_LEFT) == 1)
                status = CCI_ERR_DISCONNECTED;
        }
        item->status = status;
        item->begun += length;
        most -= length;
        cci__sisci_renew(link, item);
        ep->rma.mapped_bytes += is_mapped && status == CCI_SUCCESS ? length : 0;
    }
    return item->status != CCI_SUCCESS || item->begun == item->rma_length;
}

/* 1 when the RMA is over. Memory that can be mapped is; until then, and all other memory, is copied. */
static int cci__sisci_move(cci__sisci *ep, cci__sisci_link *link, cci__sisci_item *item) {
    int is_over;
#ifndef CCI_NO_ATOMICS
    if (item->width > 0) return cci__sisci_request_atomic(ep, link, item);
#endif
    if (item->is_shared && item->slots == 0 && ep->device.rma_mode < CCI__SISCI_RMA_COPY) {
        is_over = cci__sisci_copy_pieces(ep, link, item, 1);
        if (is_over >= 0) return is_over;
        if (cci__sisci_request_map(link, item) && ep->device.rma_mode == CCI__SISCI_RMA_MAP) return 0;
    }
    return link->peer.vm ? cci__sisci_copy_pieces(ep, link, item, 0) : cci__sisci_bounced(ep, link, item);
}

/* Something that an RMA waits for is there. */
static int cci__sisci_can_move(cci__sisci_link *link) {
    const cci__sisci_item *item = link->items;
    if (!item || !item->is_rma || item->width > 0) return 0;
    if (link->peer.vm || !link->rma.views || !item->is_shared) return link->peer.vm;
    return link->rma.views->is_asking
               ? cci__sisci_load(link->in.base + CCI__SISCI_AT_GRANT + 12) == link->rma.views->number
               : link->rma.views->connecting == 0 && !link->rma.views->is_refused;
}

/* A peer asks for memory: says which segment it is, if the key is right, and lets the peer connect to that. */
static void cci__sisci_receive_map_request(cci__sisci *ep, cci__sisci_link *link, const uint32_t *head) {
    uint64_t key = (uint64_t)head[2] << 32 | head[1];
    const cci_rma_region_t *region = cci_rma_find(&ep->rma.table, key, head[0]);
    const cci__sisci_entry *entry = (const cci__sisci_entry *)(const void *)ep->rma.registry.base + head[0];
    cci__sisci_grant *grant = &link->rma.grant[link->rma.grants++ % CCI__SISCI_GRANTS];
    memset(grant, 0, sizeof *grant);
    if (region && ep->rma.registry.base && entry->check != 0) {
        grant->id = entry->block;
        grant->region = head[0];
        grant->key = key;
        grant->access = region->flags & CCI_FLAG_WRITE ? CCI__SCI_WRITES : CCI__SCI_READS;
    }
    cci__sisci_write_word(link, CCI__SISCI_AT_GRANT, ep->rma.registry.id);
    cci__sisci_write_word(link, CCI__SISCI_AT_GRANT + 4, grant->id);
    cci__sisci_write_word(link, CCI__SISCI_AT_GRANT + 8, (uint32_t)grant->access);
    cci__sisci_write_word(link, CCI__SISCI_AT_GRANT + 12, head[3]);
    cci__sisci_touch_lightly(link);
}

static cci__sci_callback_action_t cci__sisci_on_in(void *arg, cci__sci_local_segment_t segment,
                                                   cci__sci_segment_cb_reason_t reason, unsigned int node,
                                                   unsigned int adapter, cci__sci_error_t status);

/* May the process at the other end of this channel connect? To the registration table who has a link, to memory who has
 * shown its key. */
static cci__sci_access cci__sisci_guard(void *arg, uint32_t id, const cci__sci_client *client) {
    cci__sisci *ep = (cci__sisci *)arg;
    cci__sci_access best = CCI__SCI_NO_ACCESS;
    const cci__sci_connection *at = NULL;
    const cci__sisci_link *link;
    uint32_t k;
    while ((link = (const cci__sisci_link *)cci__sci_next_user(client, cci__sisci_on_in, &at)) != NULL) {
        if (id == ep->rma.registry.id) return CCI__SCI_READS;
        for (k = 0; k < CCI__SISCI_GRANTS; k++) {
            const cci__sisci_grant *grant = &link->rma.grant[k];
            if (grant->id == id && grant->access > best && cci_rma_find(&ep->rma.table, grant->key, grant->region))
                best = grant->access;
        }
    }
    return best;
}

static void cci__sisci_remove_shared(cci__sisci *ep, cci__sisci_shared *shared) {
    if (shared->base) {
        ep->sci->call.SCIUnmapSegment(shared->map, 0, NULL);
        cci__sisci_remove_segment(ep, shared->segment);
    }
    shared->base = NULL;
}

/* Waits for a moment, later for a millisecond; 1 when the copy of a peer's that had this number is over. */
static int cci__sisci_is_copied(const cci__sisci_link *link, uint32_t number, uint32_t *looks) {
    (void)(*looks < CCI__SISCI_SPINS ? sched_yield() : poll(NULL, 0, 1));
    if (++*looks % 10000 == 1000) cci_log(CCI_LOG_WARN, "a peer takes long to copy memory that is being deregistered");
    cci__sisci_run_callbacks(link->ep); /* tells when it dies */
    return link->join.news.out < 0 || link->join.news.attached < 0 ||
           cci__sisci_load(link->in.base + CCI__SISCI_AT_BUSY) != number;
}

/* Reads what the system tells of a thread, "" if it does not; 0: the thread has ended. */
static int cci__sisci_read_of(DIR *threads, const char *thread, const char *what, char *text, size_t size) {
    ssize_t n;
    int fd;
    snprintf(text, size, "%s/%s", thread, what);
    fd = openat(dirfd(threads), text, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, size - 1);
    cci__sisci_close_fd(fd);
    text[n > 0 ? n : 0] = '\0';
    return n >= 0 || (errno != ENOENT && errno != ESRCH);
}

/* Waits until the copy is over: 0; or until a thread of the peer's can't be copying: 1. It has ended, is the caller, or
 * at so many looks was asleep in a system call that copies nothing, or had run for another tick of the clock. One that
 * is stopped, frozen, waits for memory or gets no processor does none of these. */
static int cci__sisci_is_elsewhere(const cci__sisci_link *link, uint32_t number, uint32_t *looks, DIR *threads,
                                   const char *thread) {
    unsigned long user = 0, system = 0, ran = ~0ul;
    uint32_t signs = 0;
    while (signs < CCI__SISCI_SIGNS && strtol(thread, NULL, 10) != (long)syscall(SYS_gettid)) {
        char text[512], state = 0;
        const char *end;
        long call = -1;
        if (!cci__sisci_read_of(threads, thread, "stat", text, sizeof text)) return 1;
        end = strrchr(text, ')'); /* of the name, which may hold anything */
        if (end && sscanf(end, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu", &state, &user, &system) == 3) {
            signs += state == 'Z' || user + system > ran;
            ran = user + system;
        }
        if (state == 'S' && cci__sisci_read_of(threads, thread, "syscall", text, sizeof text) &&
            sscanf(text, "%ld", &call) == 1)
            signs += call >= 0 && call != SYS_process_vm_readv && call != SYS_process_vm_writev;
        if (cci__sisci_is_copied(link, number, looks)) return 0;
    }
    return 1;
}

/* The same for all threads of the peer's; 0 also if they can't be seen. */
static int cci__sisci_are_elsewhere(const cci__sisci_link *link, uint32_t number, uint32_t *looks) {
    const struct dirent *thread;
    char path[64];
    cci__sci_ucred who;
    DIR *threads;
    int answer;
    memset(&who, 0, sizeof who);
    (void)cci__sci_process_of(link->outbox.segment, &who);
    snprintf(path, sizeof path, "/proc/%ld/task", (long)who.pid);
    threads = opendir(path);
    answer = threads != NULL;
    while (answer && (thread = readdir(threads)) != NULL)
        answer = cci__sisci_is_elsewhere(link, number, looks, threads, thread->d_name);
    if (threads) closedir(threads);
    return answer;
}

/* Waits for the copy that a peer says is under way, unless the peer is seen to do other things. */
static void cci__sisci_wait_for_copy(cci__sisci_link *link) {
    uint32_t number = cci__sisci_load(link->in.base + CCI__SISCI_AT_BUSY), looks = 0;
    if (!(number & 1)) return;
    while (!cci__sisci_is_copied(link, number, &looks)) {
        if (looks < CCI__SISCI_SPINS || !cci__sisci_are_elsewhere(link, number, &looks)) continue;
        cci_log(CCI_LOG_WARN, "a peer says that it copies, and does other things: its link is lost");
        cci__sisci_lose(link);
        return;
    }
}

/* Waits for all peers that can reach our memory. A copy that begins now finds no registration that has ended. */
static void cci__sisci_wait_for_copies(const cci__sisci *ep) {
    uint32_t i;
    CCI__SCI_FENCE(SEQ_CST);
    for (i = 0; i < ep->marks.count; i++) {
        cci__sisci_link *link = ep->marks.of[i].link;
        if (link && link->state == CCI__SISCI_OPEN && (!link->peer.is_foreign || link->rma.grants > 0))
            cci__sisci_wait_for_copy(link);
    }
}

static void cci__sisci_end_registration(cci__sisci *ep, cci_rma_region_t *region) {
    if (ep->rma.registry.base)
        cci__sisci_store_long(&((cci__sisci_entry *)(void *)ep->rma.registry.base)[region - ep->rma.regions].check, 0);
    cci_rma_remove(&ep->rma.table, region);
}

/* ==================================================================================================================
 * >>sisci-cci-queue
 *
 * Items of a link in the order of the calls, of all its connections. The first is tried in each look at the link; those
 * behind it wait. Consumed operations are completed here too, in order.
 * ================================================================================================================== */

static void cci__sisci_pop_item(cci__sisci *ep, cci__sisci_link *link) {
    cci__sisci_item *item = link->items;
    uint32_t i;
    for (i = 0; item->slots && i < CCI__SISCI_SLOTS; i++)
        if (link->rma.slot[i].item == item) link->rma.slot[i].item = NULL; /* the answer finds nobody */
    link->items = item->next;
    cci__sisci_use(link, CCI__SISCI_AN_ITEM, UINT32_MAX);
    if (!link->items) link->items_tail = &link->items;
    if (link->time.fresh_item == item) link->time.fresh_item = item->next;
    if (CCI__LINGERS(&item->conn->conn) && item->conn->link == link) cci__sisci_check_linger(item->conn);
    cci__sisci_free_item(ep, item);
}

static void cci__sisci_add_item(cci__sisci_link *link, cci__sisci_item *item) {
    cci__sisci_watch_time(link);
    if (!link->time.fresh_item) link->time.fresh_item = item;
    *link->items_tail = item;
    link->items_tail = &item->next;
    cci__sisci_use(link, CCI__SISCI_AN_ITEM, 1);
    link->is_busy |= CCI__SISCI_HAS_WORK | CCI__SISCI_QUEUES;
}

/* An RMA without a message completes at once, unless operations of an ordered connection are before it. */
static void cci__sisci_end_rma(cci__sisci *ep, cci__sisci_link *link, cci__sisci_op *op, int status) {
    op->item = NULL;
    op->status = status;
    op->posted = 1;
    op->end = link->out.head;
    if (op->conn->conn.pub.attribute != CCI_CONN_ATTR_RO || op->sibling.next == &op->sibling)
        cci__sisci_complete(ep, op, status);
}

/* The first item of the queue; 0 if it has to wait. */
static int cci__sisci_do_item(cci__sisci *ep, cci__sisci_link *link, cci__sisci_item *item) {
    struct iovec piece;
    int is_posted;
    if (item->is_rma && !cci__sisci_move(ep, link, item)) return 0;
    if (item->status == CCI_SUCCESS && item->has_message) {
        piece.iov_base = (void *)(uintptr_t)item->data;
        piece.iov_len = item->length;
        CCI__WAKES(ep->wake_word = item->is_wake ? CCI__SISCI_WAKE : 0);
        is_posted = cci__sisci_post_message(link, item->conn, &piece, 1, item->length, item->op);
        CCI__WAKES(ep->wake_word = 0);
        if (!is_posted) return 0;
        if (item->op) item->op->item = NULL;
    } else if (item->op) {
        cci__sisci_end_rma(ep, link, item->op, item->status);
    }
    return 1;
}

static void cci__sisci_advance(cci__sisci *ep, cci__sisci_link *link) {
    if (link->state != CCI__SISCI_OPEN || !cci__sisci_send_control(ep, link)) return;
    while (link->items) {
        if (!cci__sisci_is_dead(link->items) && !cci__sisci_do_item(ep, link, link->items)) return;
        cci__sisci_pop_item(ep, link);
    }
}

/* Completes what the peer is known to have consumed. While it has ended connections whose records we have not seen,
 * nobody knows whether it took what it consumed. */
static void cci__sisci_complete_consumed(cci__sisci *ep, cci__sisci_link *link) {
    if (cci__sisci_load(link->in.base + CCI__SISCI_AT_ACK + 4) != link->conns.peer_disconnects) return;
    while (!cci__list_empty(&link->ops)) {
        cci__sisci_op *op = CCI__CONTAINER(link->ops.next, cci__sisci_op, node);
        if (!op->posted || (int32_t)(link->out.acknowledged - op->end) < 0) return;
        cci__sisci_complete(ep, op, op->status);
    }
}

static void cci__sisci_complete_acknowledged(cci__sisci *ep, cci__sisci_link *link) {
    cci__sisci_read_ack(link);
    cci__sisci_complete_consumed(ep, link);
}

/* ==================================================================================================================
 * >>sisci-cci-receive
 *
 * What lies in an inbox is read once, checked, and used as it was read; a peer that writes what no peer writes loses
 * its link. A record is consumed when `tail` has passed it. One that needs what the program holds (a buffer, an event)
 * is not consumed: it stays, with all behind it, and the peer is told so. Long messages are read in place, in a block
 * of the inbox that goes back to the peer when the event is returned; while the program holds half of the blocks, they
 * are copied.
 *   The walk: cci__sisci_receive(), for each record the short way or the function of its type, the acknowledgement.
 * ================================================================================================================== */

static inline void cci__sisci_post_received(cci__sisci *ep, cci_evq_event_t *event) {
    ep->received_total++;
    cci_evq_post(&ep->received, event);
}

/* A message has come with word of what the peer had consumed: that is told first, since it may be the answer. */
static inline void cci__sisci_note_ack_of_message(cci__sisci *ep, cci__sisci_link *link, uint32_t ack) {
    cci__sisci_note_ack(link, ack);
    if (link->is_busy & CCI__SISCI_HAS_WORK) cci__sisci_complete_consumed(ep, link);
}

static void cci__sisci_give_back(cci__sisci_link *link, uint32_t block) {
    uint32_t place;
    if (!link->out.base) return;
    place = CCI__SISCI_AT_RETURNS + 4 * (link->inbox.given_back % CCI__SISCI_RETURNS);
    link->inbox.given_back++;
    cci__sisci_write_word(link, place, (link->inbox.given_back & 0xffffffu) << 8 | block);
    cci__sisci_touch_lightly(link);
}

/* What is in a record, copied out of shared memory. */
typedef struct cci__sisci_record {
    const uint8_t *data;                   /* its bytes, in shared memory */
    uint32_t type, length, to, ack, lines; /* as it says; `to` is a connection, `ack` how far the peer has consumed */
    int is_cancelled;                      /* it is not to be delivered */
} cci__sisci_record;

enum { CCI__SISCI_TAKEN, CCI__SISCI_STALLED, CCI__SISCI_LATER };

/* A message waits for the program. */
static inline void cci__sisci_deliver(cci__sisci *ep, cci__sisci_conn *conn, cci_evq_event_t *event) {
    event->base.pub.recv.connection = (cci_connection_t *)&conn->conn.pub;
    ((cci__sisci_event *)(void *)event)->token = conn->conn.token;
    cci__sisci_post_received(ep, event);
}

/* Tells the peer that a message which it has cancelled was not delivered, before it can see that it is consumed; 0
 * if there is no room. */
static int cci__sisci_report_dropped(cci__sisci_link *link, const cci__sisci_conn *conn, uint32_t end) {
    uint32_t head[4] = {0, 0, 0, 0};
    head[2] = end;
    if (link->state != CCI__SISCI_OPEN) return 1;
    if (!cci__sisci_has_room(link, 2 * cci__sisci_lines(sizeof head))) return 0;
    cci__sisci_write_word(link, CCI__SISCI_AT_ACK + 4, ++link->conns.disconnects);
    return cci__sisci_post(link, CCI__SISCI_DROPPED, conn->conn.peer_index, head, sizeof head, NULL, 0);
}

/* The peer has not delivered what we cancelled: if ordered, the message that ends there and all behind it. */
static void cci__sisci_receive_dropped(cci__sisci_link *link, const cci__sisci_conn *conn, uint32_t end) {
    cci_list_t *at;
    link->conns.peer_disconnects++;
    for (at = link->ops.next; conn && at != &link->ops; at = at->next) {
        cci__sisci_op *op = CCI__CONTAINER(at, cci__sisci_op, node);
        if (op->conn == conn && op->is_cancelled && op->status == CCI_SUCCESS &&
            (op->end == end || (conn->conn.pub.attribute == CCI_CONN_ATTR_RO && (int32_t)(op->end - end) > 0)))
            op->status = CCI_ERR_RNR;
    }
}

/* An event for a message, with a buffer unless the message stays where it is; NULL if there is none. */
static inline cci_evq_event_t *cci__sisci_message_event(cci__sisci *ep, int in_place) {
    cci_evq_event_t *event = cci_evq_take_event(&ep->base.evq, CCI_EVQ_RECV);
    if (CCI__UNLIKELY(!event) && cci__sisci_add_recv(ep)) event = cci_evq_take_event(&ep->base.evq, CCI_EVQ_RECV);
    if (event && !in_place && (event->buffer = cci__sisci_alloc_buffer(ep)) == NULL) {
        cci_evq_return_event(&ep->base.evq, event);
        event = NULL;
    }
    if (event) {
        event->state = 0;
        event->owner = NULL;
    }
    return event;
}

/* Nobody is to get the message. */
static int cci__sisci_is_unwanted(const cci__sisci_conn *conn, const cci__sisci_record *record) {
    return conn->ended || conn->in_gap || record->is_cancelled || record->length > conn->conn.pub.max_send_size ||
           CCI__LINGERS(&conn->conn) || (conn->conn.state != CCI_CONN_OPEN && conn->conn.state != CCI_CONN_BROKEN);
}

/* A message for the program. */
static int cci__sisci_receive_message(cci__sisci *ep, cci__sisci_link *link, const cci__sisci_record *record) {
    cci__sisci_conn *conn = cci__sisci_find_conn(ep, link, record->to);
    uint32_t block = 0;
    int is_block = record->type == CCI__SISCI_BLOCK, in_place;
    const uint8_t *data = record->data;
    cci_evq_event_t *event;
    if (is_block) {
        memcpy(&block, data, sizeof block);
        if (block >= ep->device.block_count || link->inbox.block_held[block]) {
            cci__sisci_lose(link);
            return CCI__SISCI_TAKEN;
        }
        data = link->inbox.blocks + (size_t)block * ep->pools.stride;
    }
    if (conn && record->is_cancelled) {
        if (!conn->in_gap && !cci__sisci_report_dropped(link, conn, link->in.tail + record->lines)) {
            link->stall.is_answering = 1;
            return CCI__SISCI_STALLED;
        }
        conn->in_gap = conn->conn.pub.attribute == CCI_CONN_ATTR_RO; /* nothing may come behind the gap */
    }
    if (!conn || cci__sisci_is_unwanted(conn, record)) {
        if (is_block) cci__sisci_give_back(link, block);
        return CCI__SISCI_TAKEN;
    }
    in_place = is_block && !link->peer.is_foreign && link->inbox.held < ep->device.block_count / 2;
    event = cci__sisci_message_event(ep, in_place);
    if (!event) {
        if (cci__conn_is_reliable(&conn->conn)) return CCI__SISCI_STALLED;
        if (is_block) cci__sisci_give_back(link, block);
        return CCI__SISCI_TAKEN;
    }
    if (in_place) {
        event->owner = link;
        event->state = block + 1;
        link->inbox.block_held[block] = 1;
        link->inbox.held++;
    } else if (is_block) {
        memcpy(event->buffer->data, data, record->length);
        cci__sisci_give_back(link, block);
    } else {
        cci__sisci_get(data, event->buffer->data, record->length);
    }
    event->base.pub.recv.ptr = in_place ? data : event->buffer->data;
    event->base.pub.recv.type = CCI_EVENT_RECV;
    event->base.pub.recv.len = record->length;
    cci__sisci_note_ack_of_message(ep, link, record->ack);
    cci__sisci_deliver(ep, conn, event);
    return CCI__SISCI_TAKEN;
}

/* There is no room for a request: its client may ask again, and nobody behind it has to wait. */
static int cci__sisci_refuse(cci__sisci *ep, cci__sisci_link *link, uint32_t client, const char *why) {
    uint32_t head[4] = {0, 0, 0, CCI__SISCI_BUSY};
    if (!cci__sisci_post(link, CCI__SISCI_REJECT, client, head, sizeof head, NULL, 0)) {
        link->stall.is_answering = 1;
        return CCI__SISCI_STALLED;
    }
    if ((ep->refusals & (ep->refusals + 1)) == 0) cci_log(CCI_LOG_WARN, why); /* not each of many */
    ep->refusals++;
    return CCI__SISCI_TAKEN;
}

/* What the peer's inbox says about its endpoint. */
static const char *cci__sisci_peer_uri(const cci__sisci_link *link, char *text) {
    if (link->peer.card.service == 0) return NULL;
    snprintf(text, CCI__SISCI_URI, "sisci://%lu:%lu", (unsigned long)link->peer.node,
             (unsigned long)link->peer.card.service);
    return text;
}

/* The largest message of both sides, of which the peer's record names one; its inbox may have room for less. */
static void cci__sisci_agree(cci__sisci_conn *conn, uint32_t peers) {
    conn->conn.pub.max_send_size =
        cci__min32(conn->conn.pub.max_send_size, cci__min32(peers, conn->link->peer.card.max_send_size));
}

static int cci__sisci_receive_request(cci__sisci *ep, cci__sisci_link *link, const cci__sisci_record *record,
                                      const uint32_t *head) {
    cci_evq_buffer_t *buffer;
    cci_evq_event_t *event;
    cci__sisci_conn *conn;
    uint8_t bytes[16 + CCI_CONN_REQ_LEN + CCI__SISCI_LATER_LINE]; /* whole lines are copied */
    uint32_t length = record->length - 16;
    if (length > CCI_CONN_REQ_LEN || head[2] > CCI_CONN_ATTR_UU) {
        cci__sisci_lose(link);
        return CCI__SISCI_TAKEN;
    }
    if (link->state != CCI__SISCI_OPEN) return CCI__SISCI_TAKEN; /* nobody is there to be answered */
    if (!cci__endpoint_hears(&ep->base)) return cci__sisci_refuse(ep, link, head[0], CCI__BACKLOG_IS_FULL);
    buffer = ep->requests < CCI__SISCI_REQUESTS ? cci__sisci_alloc_buffer(ep) : NULL;
    event = buffer ? cci__endpoint_event(&ep->base) : NULL;
    conn = event ? cci__sisci_open_conn(ep, link, (cci_conn_attribute_t)head[2], NULL) : NULL;
    if (!conn) {
        if (event) cci_evq_return_event(&ep->base.evq, event);
        if (buffer) cci_evq_release_buffer(&ep->base.evq, buffer);
        return cci__sisci_refuse(ep, link, head[0],
                                 buffer ? "clients have to wait: there is no memory for another connection"
                                        : "clients have to wait: the program has too many requests or messages");
    }
    conn->conn.peer_index = head[0];
    conn->conn.state = CCI_CONN_REQUESTED;
    ep->base.conns.undecided++;
    cci__sisci_agree(conn, head[3]);
    cci__list_append(&link->conns.asked, &conn->state_node);
    cci__sisci_get(record->data, bytes, record->length);
    memcpy(buffer->data, bytes + 16, length);
    event->buffer = buffer;
    event->owner = conn;
    event->state = 0;
    event->base.pub.request.type = CCI_EVENT_CONNECT_REQUEST;
    event->base.pub.request.data_len = length;
    event->base.pub.request.data_ptr = length ? buffer->data : NULL;
    event->base.pub.request.attribute = (cci_conn_attribute_t)head[2];
    event->base.pub.request.peer_uri = cci__sisci_peer_uri(link, (char *)buffer->data + CCI_CONN_REQ_LEN);
    ep->requests++;
    cci_evq_post(&ep->base.evq.urgent, event);
    return CCI__SISCI_TAKEN;
}

/* The client has given up. */
static void cci__sisci_receive_cancel(cci__sisci *ep, cci__sisci_link *link, const uint32_t *head) {
    cci_list_t *at;
    for (at = link->conns.asked.next; at != &link->conns.asked; at = at->next) {
        cci__sisci_conn *conn = CCI__CONTAINER(at, cci__sisci_conn, state_node);
        if (conn->conn.peer_index != head[0]) continue;
        if (conn->conn.state == CCI_CONN_REQUESTED) {
            conn->cancelled = 1;
        } else if (conn->conn.state == CCI_CONN_ACCEPTED) {
            cci__sisci_post_event(ep, conn, CCI_EVENT_ACCEPT, CCI_ETIMEDOUT);
            cci__sisci_close_conn(ep, conn);
        }
        return;
    }
}

/* The peer has ended a connection; it had consumed as much as `mark` then, and will take nothing else. */
static void cci__sisci_mark_ops(cci__sisci_conn *conn, uint32_t mark) {
    cci_list_t *at = conn->ops;
    for (; at; at = at->next == conn->ops ? NULL : at->next) {
        cci__sisci_op *op = CCI__CONTAINER(at, cci__sisci_op, sibling);
        if (!op->posted || (op->has_record && (int32_t)(op->end - mark) > 0)) op->status = CCI_ERR_DISCONNECTED;
    }
}

static void cci__sisci_receive_disconnect(cci__sisci *ep, cci__sisci_link *link, cci__sisci_conn *conn,
                                          const uint32_t *head) {
    link->conns.peer_disconnects++;
    if (!conn) return;
    if (conn->conn.state == CCI_CONN_ACCEPTED) {
        cci__sisci_post_event(ep, conn, CCI_EVENT_ACCEPT, CCI_ERR_DISCONNECTED);
        cci__sisci_close_conn(ep, conn);
        return;
    }
    if (conn->conn.state != CCI_CONN_OPEN && conn->conn.state != CCI_CONN_BROKEN) return;
    cci__notices_forget(&ep->base.notices, &conn->conn, 1);
    conn->conn.state = CCI_CONN_BROKEN;
    cci__sisci_mark_ops(conn, head[2]);
    while (conn->ops) {
        cci__sisci_op *op = CCI__CONTAINER(conn->ops, cci__sisci_op, sibling);
        cci__sisci_fail_op(ep, link, op, op->status);
    }
    cci__sisci_end_conn(ep, conn, head[3] == 0 ? CCI_SUCCESS : CCI_ERR_DISCONNECTED);
}

/* The server is busy: it will be asked again. */
static void cci__sisci_try_later(cci__sisci *ep, cci__sisci_conn *conn) {
    uint64_t at_ns = cci__sci_now() + cci_conn_retry_ns(conn->conn.tries);
    conn->conn.tries = (uint8_t)cci__min32(conn->conn.tries + 1u, 200);
    conn->waits = 1;
    cci__timer_arm(&ep->base.wheel, &conn->conn.timer, cci__min64(at_ns, conn->conn.deadline_ns));
}

static void cci__sisci_ask_to_connect(cci__sisci *ep, cci__sisci_conn *conn) {
    conn->waits = 0;
    cci__timer_arm(&ep->base.wheel, &conn->conn.timer, conn->conn.deadline_ns);
    cci__sisci_queue_control(ep, conn, CCI__SISCI_REQUEST);
}

/* Posts the outcome of cci_connect(), with the data that its record has. */
static void cci__sisci_answered(cci__sisci *ep, cci__sisci_conn *conn, const cci__sisci_record *record, int status) {
    uint8_t bytes[16 + CCI_CONN_REQ_LEN + CCI__SISCI_LATER_LINE]; /* whole lines are copied */
    cci_conn_answer_t *answer = conn->data;
    cci_evq_event_t *event = conn->event;
    uint32_t length = record->length - 16;
    cci__sisci_post_event(ep, conn, CCI_EVENT_CONNECT, status);
    if (length == 0) {
        cci__sisci_drop_data(ep, conn);
        return;
    }
    conn->data = NULL;
    cci__sisci_get(record->data, bytes, record->length);
    memcpy(answer + 1, bytes + 16, length);
    cci__list_append(&ep->base.told, &answer->node);
    event->base.pub.connect.data_ptr = answer + 1;
    event->base.pub.connect.data_len = length;
}

/* The server has accepted. */
static void cci__sisci_receive_accept(cci__sisci *ep, cci__sisci_conn *conn, const cci__sisci_record *record,
                                      const uint32_t *head) {
    conn->conn.peer_index = head[0];
    cci__sisci_agree(conn, head[2]);
    cci__sisci_opened(ep, conn);
    cci__sisci_answered(ep, conn, record, CCI_SUCCESS);
    cci__sisci_queue_control(ep, conn, CCI__SISCI_CONFIRM);
}

/* The server has rejected, or is busy. */
static void cci__sisci_receive_reject(cci__sisci *ep, cci__sisci_conn *conn, const cci__sisci_record *record,
                                      const uint32_t *head) {
    if (head[3] == CCI__SISCI_BUSY) {
        cci__sisci_try_later(ep, conn);
        return;
    }
    cci__sisci_answered(ep, conn, record, CCI_ECONNREFUSED);
    cci__sisci_close_conn(ep, conn);
}

/* ACCEPT or REJECT. */
static void cci__sisci_receive_answer(cci__sisci *ep, cci__sisci_link *link, cci__sisci_conn *conn,
                                      const cci__sisci_record *record, const uint32_t *head) {
    if (record->length - 16 > CCI_CONN_REQ_LEN) {
        cci__sisci_lose(link);
        return;
    }
    if (!conn || conn->conn.state != CCI_CONN_CONNECTING || !conn->conn.is_client) return;
    if (record->type == CCI__SISCI_ACCEPT)
        cci__sisci_receive_accept(ep, conn, record, head);
    else
        cci__sisci_receive_reject(ep, conn, record, head);
}

static int cci__sisci_receive_control(cci__sisci *ep, cci__sisci_link *link, const cci__sisci_record *record) {
    cci__sisci_conn *conn = cci__sisci_find_conn(ep, link, record->to);
    uint32_t head[4];
    if (record->length < sizeof head) {
        cci__sisci_lose(link);
        return CCI__SISCI_TAKEN;
    }
    memcpy(head, record->data, sizeof head);
    switch (record->type) {
    case CCI__SISCI_REQUEST: return cci__sisci_receive_request(ep, link, record, head);
    case CCI__SISCI_CANCEL: cci__sisci_receive_cancel(ep, link, head); break;
    case CCI__SISCI_ACCEPT:
    case CCI__SISCI_REJECT: cci__sisci_receive_answer(ep, link, conn, record, head); break;
    case CCI__SISCI_CONFIRM:
        if (conn && conn->conn.state == CCI_CONN_ACCEPTED) {
            cci__list_remove(&conn->state_node);
            cci__sisci_opened(ep, conn);
            cci__sisci_post_event(ep, conn, CCI_EVENT_ACCEPT, CCI_SUCCESS);
        }
        break;
    case CCI__SISCI_DISCONNECT: cci__sisci_receive_disconnect(ep, link, conn, head); break;
    case CCI__SISCI_MAP_REQUEST: cci__sisci_receive_map_request(ep, link, head); break;
    case CCI__SISCI_DROPPED: cci__sisci_receive_dropped(link, conn, head[2]); break;
    case CCI__SISCI_RESUME:
        if (conn) conn->in_gap = 0;
        break;
    default: break; /* a PING only wants to be consumed */
    }
    return CCI__SISCI_TAKEN;
}

/* Reads the next record's header once; 0 if there is none. */
static int cci__sisci_read_record(cci__sisci_link *link, cci__sisci_record *record) {
    uint32_t place = link->in.tail & (link->in.lines - 1), word;
    const uint8_t *line = link->in.ring + (size_t)place * CCI__SISCI_LINE;
    if (cci__sisci_load(line) != link->in.tail * 2 + 1) return 0;
    word = __atomic_load_n((const uint32_t *)(const void *)(line + 4), __ATOMIC_RELAXED);
    memcpy(&record->to, line + 8, 4);
    memcpy(&record->ack, line + 12, 4);
    record->type = word & 0xff;
    record->is_cancelled = (word & CCI__SISCI_CANCELLED) != 0;
    if (word & CCI__SISCI_ASKS) link->ep->is_asked = 1;
    CCI__WAKES(if (word & CCI__SISCI_WAKE) link->ep->base.wakes.heard = 1);
    record->length = word >> 16;
    record->data = line + CCI__SISCI_HEADER;
    record->lines = record->type == CCI__SISCI_PAD     ? link->in.lines - place
                    : record->type == CCI__SISCI_BLOCK ? 1
                                                       : cci__sisci_lines(record->length);
    if (record->lines > link->in.lines - place || record->type == 0 || record->type > CCI__SISCI_RESUME) {
        cci__sisci_lose(link);
        return 0;
    }
    if (word & CCI__SISCI_LAST) record->lines = link->in.lines - place;
    return 1;
}

/* While the next record waits, those behind it may carry the acknowledgement without which it would wait for ever. */
static CCI__RARE void cci__sisci_read_ahead(cci__sisci_link *link) {
    cci__sisci_record record;
    uint32_t tail = link->in.tail;
    if (link->stall.ahead - tail > link->in.lines) link->stall.ahead = tail;
    link->in.tail = link->stall.ahead;
    while (link->in.tail - tail < link->in.lines && cci__sisci_read_record(link, &record)) {
        cci__sisci_note_ack(link, record.ack);
        link->in.tail += record.lines;
    }
    link->stall.ahead = link->in.tail;
    link->in.tail = tail;
}

/* Stores how far we have consumed, unless a record that went since has said it. */
static void cci__sisci_acknowledge(cci__sisci_link *link) {
    cci__list_remove(&link->due);
    link->is_busy &= (uint8_t)~CCI__SISCI_IS_DUE;
    if (link->acknowledged != link->in.tail) {
        link->acknowledged = link->in.tail;
        cci__sisci_write_word(link, CCI__SISCI_AT_ACK, link->in.tail);
        cci__sisci_touch_lightly(link);
    }
}

static void cci__sisci_acknowledge_all(cci__sisci *ep) {
    ep->is_asked = 0;
    while (!cci__list_empty(&ep->links.due))
        cci__sisci_acknowledge(CCI__CONTAINER(ep->links.due.next, cci__sisci_link, due));
}

/* Where the next record will be. */
static inline const uint8_t *cci__sisci_next_line(const cci__sisci_link *link) {
    return link->in.ring + (size_t)(link->in.tail & (link->in.lines - 1)) * CCI__SISCI_LINE;
}

/* The connection that a short message is for, if it may just be taken. */
static inline cci__sisci_conn *cci__sisci_open_conn_of(cci__sisci *ep, cci__sisci_link *link, uint32_t name) {
    cci__sisci_conn *conn = link->last;
    if (!conn || cci__sisci_name(conn) != name) conn = link->last = cci__sisci_find_conn(ep, link, name);
    return conn && conn->conn.state == CCI_CONN_OPEN && !(conn->closing | conn->ended | conn->in_gap) ? conn : NULL;
}

/* Takes a short message for which there is room, and nothing else: NULL if it has to go the long way. */
static inline CCI__HOT_PATH cci_evq_event_t *cci__sisci_receive_short(cci__sisci *ep, cci__sisci_link *link,
                                                                      const uint8_t *line) {
    uint32_t word = __atomic_load_n((const uint32_t *)(const void *)(line + 4), __ATOMIC_RELAXED);
    uint32_t length = word >> 16, header[2], lines, rest = link->in.lines - (link->in.tail & (link->in.lines - 1));
    cci_evq_event_t *event = ep->base.evq.free_events[CCI_EVQ_RECV];
    cci_evq_buffer_t *buffer = ep->base.evq.free_buffers;
    cci__sisci_conn *conn;
    lines = 1u + (length > CCI__SISCI_FIRST_LINE);
    if ((word & (0xff | CCI__SISCI_CANCELLED | CCI__SISCI_WAKE)) != CCI__SISCI_MESSAGE ||
        length > CCI__SISCI_FIRST_LINE + CCI__SISCI_LATER_LINE || lines > rest || !event || !buffer ||
        ep->base.evq.recv_out >= ep->base.evq.recv_limit)
        return NULL;
    memcpy(header, line + 8, sizeof header);
    conn = cci__sisci_open_conn_of(ep, link, header[0]);
    if (!conn || length > conn->conn.pub.max_send_size) return NULL;
    (void)cci_evq_take_event(&ep->base.evq, CCI_EVQ_RECV);
    (void)cci_evq_take_buffer(&ep->base.evq);
    event->buffer = buffer;
    event->owner = NULL;
    memcpy(buffer->data, line + CCI__SISCI_HEADER,
           CCI__SISCI_FIRST_LINE); /* whole lines: constant lengths need no call */
    if (lines > 1) memcpy(buffer->data + CCI__SISCI_FIRST_LINE, line + CCI__SISCI_LINE + 4, CCI__SISCI_LATER_LINE);
    event->base.pub.recv.type = CCI_EVENT_RECV;
    event->base.pub.recv.len = length;
    event->base.pub.recv.ptr = buffer->data;
    event->base.pub.recv.connection = (cci_connection_t *)&conn->conn.pub;
    ((cci__sisci_event *)(void *)event)->token = conn->conn.token;
    cci__sisci_note_ack_of_message(ep, link, header[1]);
    if (word & CCI__SISCI_ASKS) ep->is_asked = 1;
    link->in.tail += CCI__UNLIKELY(word & CCI__SISCI_LAST) ? rest : lines;
    return event;
}

/* Asks for a line of memory that will be written soon. */
static inline void cci__sisci_prefetch_own(const uint8_t *line) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0"
                     :
                     : "m"(*line)); /* compilers know it only by special order; old processors ignore it */
#else
    __builtin_prefetch(line, 1);
#endif
}

/* What comes first after a pause is often answered at once. The peer polls the lines where the answer will be: to
 * take them from it costs as much as the message's way here, and is over when the program has made up its mind. */
static inline void cci__sisci_expect_answer(const cci__sisci_link *link) {
    const uint8_t *line = link->out.ring + (size_t)(link->out.head & (link->out.lines - 1)) * CCI__SISCI_LINE;
    if (!link->mirror) {
        cci__sisci_prefetch_own(line);
        cci__sisci_prefetch_own(line + CCI__SISCI_LINE);
    }
}

/* The next record waits for the program, or for space for an answer: the peer learns that, and how far we have got.
 * What the peer has consumed counts from here: more is a reason to look again. */
static void cci__sisci_stall(cci__sisci *ep, cci__sisci_link *link) {
    if (link->stall.is_answering) {
        cci__sisci_make_hot(link);
    } else {
        cci__sisci_read_ack(link);
        if (cci__list_empty(&link->stall.node)) {
            ep->is_short = 1;
            cci__list_append(&ep->links.stuck, &link->stall.node);
        }
    }
    if (!cci__sisci_is_stuck(link)) {
        link->stall.word = link->in.tail * 2 + 1;
        cci__sisci_write_word(link, CCI__SISCI_AT_ACK + 8, link->stall.word);
        cci__sisci_acknowledge(link);
    }
}

/* What was taken is acknowledged with the next record, or when nothing comes; at once if much was taken before that.
 * `begun` is where this began: lines that a record leaves out hurry nobody. */
static inline void cci__sisci_schedule_ack(cci__sisci *ep, cci__sisci_link *link, uint32_t begun) {
    if (CCI__UNLIKELY(begun - link->acknowledged > link->in.lines / 4)) {
        cci__sisci_acknowledge(link);
    } else if (!(link->is_busy & CCI__SISCI_IS_DUE)) {
        cci__list_append(&ep->links.due, &link->due);
        link->is_busy |= CCI__SISCI_IS_DUE;
    }
}

/* Is it an RMA through slots, or an atomic? */
static int cci__sisci_is_piece(const cci__sisci_record *record) {
#ifndef CCI_NO_ATOMICS
    if (record->type == CCI__SISCI_RMA_ATOMIC) return record->length >= sizeof(cci__sisci_bounce);
#endif
    return record->type == CCI__SISCI_RMA_WRITE || record->type == CCI__SISCI_RMA_READ;
}

/* 0: the peer writes nonsense. */
static int cci__sisci_receive_piece(cci__sisci *ep, cci__sisci_link *link, const cci__sisci_record *record) {
    cci__sisci_bounce bounce;
    if (record->length < sizeof bounce) {
        cci__sisci_lose(link);
        return 0;
    }
    memcpy(&bounce, record->data, sizeof bounce); /* it fits in one line */
#ifndef CCI_NO_ATOMICS
    if (record->type == CCI__SISCI_RMA_ATOMIC) {
        cci__sisci_serve_atomic(ep, link, &bounce);
        return 1;
    }
#endif
    cci__sisci_serve_bounce(ep, link, record->type == CCI__SISCI_RMA_READ, &bounce);
    return 1;
}

/* Consumes records, up to a batch, and schedules the acknowledgement; how many there were. */
static int cci__sisci_receive(cci__sisci *ep, cci__sisci_link *link) {
    cci__sisci_record record;
    cci_evq_event_t *event;
    uint32_t begun = link->in.tail;
    int count = 0, status = CCI__SISCI_TAKEN;
    while (count < link->batch) {
        const uint8_t *line = cci__sisci_next_line(link);
        if (cci__sisci_load(line) != link->in.tail * 2 + 1) break;
        if (link->batch == 1) cci__sisci_expect_answer(link);
        event = cci__sisci_receive_short(ep, link, line);
        if (event) {
            cci__sisci_post_received(ep, event);
            count++;
            continue;
        }
        if (!cci__sisci_read_record(link, &record)) break;
        link->stall.is_answering = 0;
        if (record.type == CCI__SISCI_MESSAGE || record.type == CCI__SISCI_BLOCK) {
            status = cci__sisci_receive_message(ep, link, &record);
        } else if (cci__sisci_is_piece(&record)) {
            if (!cci__sisci_receive_piece(ep, link, &record)) break;
        } else if (record.type != CCI__SISCI_PAD) {
            status = cci__sisci_receive_control(ep, link, &record);
        }
        if (status == CCI__SISCI_STALLED) break;
        cci__sisci_note_ack(link, record.ack);
        link->in.tail += record.lines;
        count++;
    }
    if (CCI__UNLIKELY(status == CCI__SISCI_STALLED)) cci__sisci_stall(ep, link);
    /* The first after a pause goes to the program at once: a look at the next one would take its line from the peer. */
    link->batch = (uint8_t)(count < link->batch              ? 1
                            : link->batch < CCI__SISCI_BATCH ? 2 * link->batch
                                                             : CCI__SISCI_BATCH);
    if (count > 0) {
        if (status == CCI__SISCI_TAKEN) cci__sisci_schedule_ack(ep, link, begun);
        if (link->told) { /* awake */
            link->told = 0;
            cci__sisci_write_word(link, CCI__SISCI_AT_SLEEP, 0);
        }
        cci__sisci_look_again(link);
    }
    return count;
}

/* ==================================================================================================================
 * >>sisci-cci-links
 *
 * How a link is made: the client makes its inbox, connects to the server's listener and leaves a connect record there;
 * the server makes the other inbox; each connects to the other's and closes its own to everybody else; when both have
 * done so, it is open. Each step is taken in cci__sisci_step_link(), when a callback has reported something or a time
 * has come. Parts: inboxes; numbers and servers; the listener; joining; names that clients seek; the end of a link.
 *   Invariant: a link is in `steps` while it is made or torn down, leads through an adapter, or a callback has reported
 * something of it.
 * ================================================================================================================== */

static cci__sci_callback_action_t cci__sisci_on_listener(void *arg, cci__sci_remote_segment_t segment,
                                                         cci__sci_segment_cb_reason_t reason, cci__sci_error_t status) {
    cci__sisci_link *link = (cci__sisci_link *)arg;
    (void)segment;
    return cci__sisci_report(link, &link->join.news.listener,
                             reason == CCI__SCI_CB_CONNECT && status == CCI__SCI_ERR_OK);
}

static cci__sci_callback_action_t cci__sisci_on_out(void *arg, cci__sci_remote_segment_t segment,
                                                    cci__sci_segment_cb_reason_t reason, cci__sci_error_t status) {
    cci__sisci_link *link = (cci__sisci_link *)arg;
    (void)segment;
    return cci__sisci_report(link, &link->join.news.out, reason == CCI__SCI_CB_CONNECT && status == CCI__SCI_ERR_OK);
}

static cci__sci_callback_action_t cci__sisci_on_marks(void *arg, cci__sci_remote_segment_t segment,
                                                      cci__sci_segment_cb_reason_t reason, cci__sci_error_t status) {
    cci__sisci_link *link = (cci__sisci_link *)arg;
    (void)segment;
    return cci__sisci_report(link, &link->join.news.marks, reason == CCI__SCI_CB_CONNECT && status == CCI__SCI_ERR_OK);
}

static cci__sci_callback_action_t cci__sisci_on_in(void *arg, cci__sci_local_segment_t segment,
                                                   cci__sci_segment_cb_reason_t reason, unsigned int node,
                                                   unsigned int adapter, cci__sci_error_t status) {
    cci__sisci_link *link = (cci__sisci_link *)arg;
    (void)segment, (void)node, (void)adapter, (void)status;
    return cci__sisci_report(link, &link->join.news.attached, reason == CCI__SCI_CB_CONNECT);
}

/* Connections to the listener, and their ends, need no work. */
static cci__sci_callback_action_t cci__sisci_on_visit(void *arg, cci__sci_local_segment_t segment,
                                                      cci__sci_segment_cb_reason_t reason, unsigned int node,
                                                      unsigned int adapter, cci__sci_error_t status) {
    (void)arg, (void)segment, (void)reason, (void)node, (void)adapter, (void)status;
    return CCI__SCI_CALLBACK_CONTINUE;
}

static size_t cci__sisci_blocks_at(uint32_t lines) {
    return ((size_t)CCI__SISCI_AT_RING + (size_t)lines * CCI__SISCI_LINE + 4095) & ~(size_t)4095;
}

static size_t cci__sisci_slots_at(uint32_t lines, uint32_t block_size, uint32_t block_count) {
    return (cci__sisci_blocks_at(lines) + (size_t)block_size * block_count + 4095) & ~(size_t)4095;
}

static size_t cci__sisci_inbox_size(uint32_t lines, uint32_t block_size, uint32_t block_count) {
    return cci__sisci_slots_at(lines, block_size, block_count) + (size_t)2 * CCI__SISCI_SLOTS * CCI__SISCI_SLOT_SIZE;
}

/* Makes our inbox and offers it; `in_id` 0: any number. */
static int cci__sisci_make_inbox(cci__sisci *ep, cci__sisci_link *link, uint32_t in_id, uint32_t out_id) {
    cci__sisci_card card;
    cci__sci_error_t error;
    uint32_t lines = ep->device.ring_bytes / CCI__SISCI_LINE;
    size_t size = cci__sisci_inbox_size(lines, ep->pools.stride, ep->device.block_count);
    link->inbox.id = in_id;
    error = ep->far ? ep->far->make_inbox(link, size)
                    : cci__sisci_make_segment(ep, &link->inbox.segment, &link->inbox.id, size, cci__sisci_on_in, link);
    if (error != CCI__SCI_ERR_OK) return 0;
    link->in.base = (uint8_t *)ep->sci->call.SCIMapLocalSegment(link->inbox.segment, &link->inbox.map, 0,
                                                                (unsigned int)size, NULL, 0, &error);
    if (error != CCI__SCI_ERR_OK) {
        link->inbox.map = NULL;
        link->in.base = NULL;
        return 0;
    }
    link->outbox.id = out_id;
    link->in.lines = lines;
    link->in.ring = link->in.base + CCI__SISCI_AT_RING;
    link->inbox.blocks = link->in.base + cci__sisci_blocks_at(lines);
    link->inbox.slots = link->in.base + cci__sisci_slots_at(lines, ep->pools.stride, ep->device.block_count);
    if (link->mirror) /* the kernel clears its shared memory; what a library gives may have been used before */
        memset(link->in.base, 0, size);
    memset(&card, 0, sizeof card);
    card.magic = CCI__SISCI_MAGIC;
    card.other_id = out_id;
    card.ring_lines = lines;
    card.block_size = ep->pools.stride;
    card.block_count = ep->device.block_count;
    card.slot_size = CCI__SISCI_SLOT_SIZE;
    card.interrupt = ep->entrance.interrupt_number;
    card.max_send_size = ep->base.max_send_size;
    card.pid = (uint32_t)getpid();
    card.region_count = CCI__SISCI_REGIONS;
    card.region_size = sizeof(cci_rma_region_t);
    card.sleeps = (uint32_t)cci__sisci_is_sleeper(ep);
    card.probe_at = (uint64_t)(uintptr_t)&ep->probe;
    card.probe = ep->probe;
    card.regions_at = (uint64_t)(uintptr_t)ep->rma.regions;
    card.service = ep->entrance.service;
    card.mark = link->mark;
    memcpy(link->in.base, &card, sizeof card);
    return cci__sisci_offer(ep, link->inbox.segment);
}

/* Leaves the listener; a connect record that nobody has taken goes with us. */
static void cci__sisci_leave_listener(cci__sisci_link *link) {
    const cci__sci_functions *call = &link->ep->sci->call;
    cci__sci_error_t error;
    if (link->join.connect_record) {
        uint64_t ours = (uint64_t)link->inbox.id << 32 | link->outbox.id;
        (void)__atomic_compare_exchange_n(link->join.connect_record, &ours, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
        link->join.connect_record = NULL;
    }
    if (link->join.listener_map) {
        call->SCIUnmapSegment(link->join.listener_map, 0, &error);
        link->join.listener_map = NULL;
    }
    if (link->join.listener_segment) {
        call->SCIDisconnectSegment(link->join.listener_segment, 0, &error);
        link->join.listener_segment = NULL;
    }
    link->join.news.listener = 0;
}

static void cci__sisci_leave_interrupt(cci__sisci_link *link) {
    cci__sci_error_t error;
    if (link->peer.interrupt) {
        link->ep->sci->call.SCIDisconnectInterrupt(link->peer.interrupt, 0, &error);
        link->peer.interrupt = NULL;
    }
    link->peer.interrupt_is_due = 0;
}

static void cci__sisci_leave_marks(cci__sisci_link *link) {
    const cci__sci_functions *call = &link->ep->sci->call;
    cci__sci_error_t error;
    if (link->peer.map) call->SCIUnmapSegment(link->peer.map, 0, &error);
    if (link->peer.segment) call->SCIDisconnectSegment(link->peer.segment, 0, &error);
    link->peer.map = NULL;
    link->peer.segment = NULL;
    link->peer_listener = NULL;
}

/* Takes down all that SISCI has of a link. */
static void cci__sisci_tear_down(cci__sisci_link *link) {
    const cci__sci_functions *call = &link->ep->sci->call;
    cci__sci_error_t error;
    cci__sisci_drop_views(link);
    cci__sisci_leave_listener(link);
    cci__sisci_leave_interrupt(link);
    cci__sisci_leave_marks(link);
    if (link->mirror) link->ep->far->end_mirror(link);
    if (link->outbox.map) call->SCIUnmapSegment(link->outbox.map, 0, &error);
    if (link->outbox.segment) call->SCIDisconnectSegment(link->outbox.segment, 0, &error);
    if (link->inbox.map) call->SCIUnmapSegment(link->inbox.map, 0, &error);
    if (link->inbox.segment) cci__sisci_remove_inbox(link);
    cci__list_remove(&link->notify);
    cci__list_remove(&link->due);
    cci__sisci_leave_time(link);
    cci__list_remove(&link->stall.node);
    link->outbox.map = link->inbox.map = NULL;
    link->outbox.segment = NULL;
    link->inbox.segment = NULL;
    link->in.base = link->out.base = NULL;
    link->watch = link->watched = 0;
    link->notify_kind = 0;
    link->is_watched = 0;
    memset(&link->join.news, 0, sizeof link->join.news);
}

static void cci__sisci_end_handshake(cci__sisci *ep, const cci__sisci_link *link) {
    if (link->state < CCI__SISCI_OPEN) {
        ep->links.handshakes--;
        ep->entrance.answers -= !link->is_client;
    }
}

/* ---- links by their numbers, and by the servers to which they lead ---- */

/* The number of a bit in our listener for a link; 0: there is none, or no memory. */
static int cci__sisci_alloc_mark(cci__sisci *ep, cci__sisci_link *link) {
    if (ep->marks.free == CCI__SISCI_NO_MARK && ep->marks.count == ep->marks.capacity) {
        uint32_t capacity = ep->marks.capacity ? 2 * ep->marks.capacity : 64;
        cci__sisci_mark *more =
            capacity <= CCI__SISCI_MARKS ? (cci__sisci_mark *)cci_alloc(capacity * sizeof *more + capacity / 8) : NULL;
        if (!more) return 0;
        memset(more + capacity, 0, capacity / 8);
        if (ep->marks.of) {
            memcpy(more, ep->marks.of, ep->marks.count * sizeof *more);
            memcpy(more + capacity, ep->marks.pending, ep->marks.capacity / 8);
            cci_release(ep->marks.of);
        }
        ep->marks.of = more;
        ep->marks.pending = (uint64_t *)(void *)(more + capacity);
        ep->marks.capacity = capacity;
    }
    link->mark = ep->marks.free;
    if (link->mark == CCI__SISCI_NO_MARK)
        link->mark = ep->marks.count++;
    else
        ep->marks.free = ep->marks.of[link->mark].next_free;
    ep->marks.of[link->mark].link = link;
    return 1;
}

static void cci__sisci_free_mark(cci__sisci *ep, const cci__sisci_link *link) {
    if (link->mark != CCI__SISCI_NO_MARK) {
        ep->marks.of[link->mark].link = NULL;
        ep->marks.of[link->mark].next_free = ep->marks.free;
        ep->marks.free = link->mark;
    }
}

static cci__sisci_link **cci__sisci_bucket(const cci__sisci *ep, uint32_t node, uint32_t service) {
    uint32_t hash = (service ^ node << 16) * UINT32_C(2654435769);
    return &ep->servers.bucket[(hash >> 8) & (ep->servers.buckets - 1)];
}

static void cci__sisci_note_server(cci__sisci *ep, cci__sisci_link *link) {
    cci__sisci_link **at = cci__sisci_bucket(ep, link->peer.node, link->join.service);
    link->same = *at;
    *at = link;
    ep->servers.count++;
}

static void cci__sisci_forget_server(cci__sisci *ep, cci__sisci_link *link) {
    cci__sisci_link **at =
        link->is_client && ep->servers.bucket ? cci__sisci_bucket(ep, link->peer.node, link->join.service) : NULL;
    while (at && *at && *at != link) at = &(*at)->same;
    if (at && *at) {
        *at = link->same;
        ep->servers.count--;
    }
}

/* Sees that there are at least as many buckets as links; 0: there is no memory for the first. */
static int cci__sisci_grow_buckets(cci__sisci *ep) {
    uint32_t count = ep->servers.buckets ? 2 * ep->servers.buckets : 16, old_count = ep->servers.buckets, i;
    cci__sisci_link **old = ep->servers.bucket, **more;
    if (ep->servers.count < old_count) return 1;
    more = (cci__sisci_link **)cci_alloc(count * sizeof *more);
    if (!more) return old != NULL;
    memset(more, 0, count * sizeof *more);
    ep->servers.bucket = more;
    ep->servers.buckets = count;
    ep->servers.count = 0;
    for (i = 0; i < old_count; i++) {
        cci__sisci_link *link, *next;
        for (link = old[i]; link; link = next) {
            next = link->same;
            cci__sisci_note_server(ep, link);
        }
    }
    cci_release(old);
    return 1;
}

static void cci__sisci_free_link(cci__sisci *ep, cci__sisci_link *link) {
    while (link->items) cci__sisci_pop_item(ep, link);
    cci__sisci_tear_down(link);
    cci__sisci_make_cold(link);
    cci__sisci_end_handshake(ep, link);
    if (link->mirror) ep->far->release_mirror(link->mirror);
    cci__sisci_forget_server(ep, link);
    cci__sisci_free_mark(ep, link);
    cci__list_remove(&link->node);
    cci__list_remove(&link->step);
    cci__list_remove(&link->idle);
    cci_release(link->memory);
}

static cci__sisci_link *cci__sisci_new_link(cci__sisci *ep, int is_client) {
    void *memory = cci_alloc(sizeof(cci__sisci_link) + CCI__SISCI_LINE);
    cci__sisci_link *link;
    if (!memory) return NULL;
    link = (cci__sisci_link *)cci__sisci_align(memory);
    memset(link, 0, sizeof *link);
    link->memory = memory;
    link->mark = CCI__SISCI_NO_MARK;
    if (!ep->far && !cci__sisci_alloc_mark(ep, link)) {
        cci_release(memory);
        return NULL;
    }
    link->ep = ep;
    link->items_tail = &link->items;
    link->batch = 1;
    cci__list_init(&link->notify);
    cci__list_init(&link->due);
    cci__list_init(&link->step);
    cci__list_init(&link->time.node);
    cci__list_init(&link->stall.node);
    cci__list_init(&link->idle);
    cci__list_init(&link->ops);
    cci__list_init(&link->conns.control);
    cci__list_init(&link->conns.asked);
    cci__list_init(&link->conns.silent);
    link->conns.first = CCI__CONN_NONE;
    cci__list_append(&ep->links.cold, &link->node);
    cci__sisci_add_to_steps(link);
    ep->links.only = NULL;
    link->is_client = is_client;
    ep->entrance.answers += !is_client;
    ep->links.handshakes++;
    return link;
}

/* Begins, or begins again, to connect to the server's listener. */
static void cci__sisci_connect_listener(cci__sisci *ep, cci__sisci_link *link) {
    uint32_t out_id = (uint32_t)cci__sci_random() | 1;
    cci__sisci_tear_down(link);
    link->state = CCI__SISCI_CONNECTING;
    link->join.retry_ns = CCI__NEVER;
    link->join.knows_name = 0;
    if (!cci__sisci_make_inbox(ep, link, 0, out_id)) {
        link->join.retry_ns = cci__sci_now() + 100 * CCI__MS;
        return;
    }
    if (!cci__sisci_connect_segment(link, &link->join.listener_segment, link->join.service, cci__sisci_on_listener,
                                    link))
        link->join.retry_ns = cci__sci_now() + 20 * CCI__MS;
}

/* The link to a server, made when there is none. */
static cci__sisci_link *cci__sisci_link_to(cci__sisci *ep, uint32_t node, uint32_t service) {
    cci__sisci_link *link = ep->servers.bucket ? *cci__sisci_bucket(ep, node, service) : NULL;
    while (link && (link->join.service != service || link->peer.node != node)) link = link->same;
    if (link) return link;
    link = cci__sisci_grow_buckets(ep) ? cci__sisci_new_link(ep, 1) : NULL;
    if (link) {
        link->peer.node = node;
        link->join.service = service;
        cci__sisci_note_server(ep, link);
        cci__sisci_connect_listener(ep, link);
        ep->rounds = 0;
    }
    return link;
}

/* The server has another version: its clients are refused. */
static void cci__sisci_refuse_version(cci__sisci *ep, const cci__sisci_link *link) {
    cci__sisci_conn *conn;
    cci_log(CCI_LOG_ERROR, "sisci: the server has another version of cci_sisci.h");
    while ((conn = cci__sisci_conn_at(ep, link->conns.first)) != NULL) {
        cci__sisci_post_event(ep, conn, CCI_EVENT_CONNECT, CCI_ECONNREFUSED);
        cci__sisci_close_conn(ep, conn);
    }
}

/* Where a client that seeks a name is, NULL if it seeks none. */
static cci_conn_seek_t *cci__sisci_seek_of(const cci__sisci_conn *conn) {
    int asks = conn->conn.is_client && conn->conn.state == CCI_CONN_CONNECTING && !conn->closing;
    cci_conn_answer_t *copy = asks ? conn->data : NULL;
    return copy && copy->token ? (cci_conn_seek_t *)(void *)((uint8_t *)(copy + 1) + CCI_CONN_REQ_LEN) : NULL;
}

/* The listener has told its server's name, perhaps another than before: those who seek one look in the next round. */
static void cci__sisci_seek_all(cci__sisci *ep, cci__sisci_link *link) {
    cci__sisci_conn *conn;
    for (conn = cci__sisci_conn_at(ep, link->conns.first); conn; conn = cci__sisci_conn_at(ep, conn->after)) {
        if (!cci__sisci_seek_of(conn)) continue;
        cci__list_remove(&conn->node); /* nothing is asked before */
        cci__list_init(&conn->node);
        conn->waits = 1;
        cci__timer_arm(&ep->base.wheel, &conn->conn.timer, ep->base.now_ns);
    }
}

/* There is a connect record: the server is woken as soon as its interrupt is connected. 0: that can't be. */
static int cci__sisci_wake_server(cci__sisci_link *link, cci__sisci_listener *listener) {
    cci__sisci_connect_interrupt(link, cci__sisci_load(&listener->interrupt));
    link->peer.interrupt_is_due = 1;
    return link->peer.interrupt != NULL;
}

/* Leaves the numbers of both inboxes at the listener; 0 if there is no room. */
static int cci__sisci_leave_connect_record(cci__sisci *ep, cci__sisci_link *link) {
    cci__sci_error_t error;
    cci__sisci_listener *listener = (cci__sisci_listener *)(uintptr_t)ep->sci->call.SCIMapRemoteSegment(
        link->join.listener_segment, &link->join.listener_map, 0, CCI__SISCI_LISTENER_SIZE, NULL, 0, &error);
    uint64_t ours = (uint64_t)link->inbox.id << 32 | link->outbox.id;
    uint32_t i;
    if (error != CCI__SCI_ERR_OK || cci__sisci_load(&listener->magic) != CCI__SISCI_MAGIC) {
        if (error != CCI__SCI_ERR_OK)
            link->join.listener_map = NULL;
        else if (cci__sisci_load(&listener->magic) >> 8 == CCI__SISCI_MAGIC >> 8)
            cci__sisci_refuse_version(ep, link);
        return 0;
    }
    link->join.name = cci__sisci_load_long(&listener->name);
    link->join.knows_name = 1;
    cci__sisci_seek_all(ep, link);
    if (ep->far) return ep->far->leave_connect_record(link, listener);
    cci__sisci_note_owner(link);
    for (i = 0; i < CCI__SISCI_CONNECT_RECORDS && !link->join.connect_record; i++) {
        uint64_t none = 0;
        if (__atomic_compare_exchange_n(&listener->connect_record[i], &none, ours, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            link->join.connect_record = &listener->connect_record[i];
    }
    /* also when others have been killed before this line */
    (void)__atomic_fetch_add(&listener->count, 1, __ATOMIC_ACQ_REL);
    return link->join.connect_record && cci__sisci_wake_server(link, listener);
}

static void cci__sisci_join(cci__sisci_link *link, uint64_t now_ns) {
    cci__sisci_leave_listener(link);
    link->state = CCI__SISCI_JOINING;
    link->join.retry_ns = now_ns + CCI__SISCI_HANDSHAKE_NS;
    if (!cci__sisci_connect_segment(link, &link->outbox.segment, link->outbox.id, cci__sisci_on_out, link))
        link->join.news.out = -1;
}

/* A client has left a connect record. */
static void cci__sisci_answer_connect_record(cci__sisci *ep, uint32_t node, uint32_t client_id, uint32_t server_id) {
    cci__sisci_link *link = client_id && server_id ? cci__sisci_new_link(ep, 0) : NULL;
    if (!link) return;
    link->peer.node = node;
    if (!cci__sisci_make_inbox(ep, link, server_id, client_id)) {
        cci__sisci_free_link(ep, link);
        return;
    }
    cci__sisci_join(link, cci__sci_now());
}

/* Takes the connect records that are there; the rest waits while many are being answered. */
static void cci__sisci_look_at_listener(cci__sisci *ep) {
    uint32_t count = cci__sisci_load(&ep->entrance.listener->count), i;
    if (count == ep->entrance.connect_records) return;
    for (i = 0; i < CCI__SISCI_CONNECT_RECORDS; i++) {
        uint64_t connect_record;
        if (ep->entrance.answers >= CCI__SISCI_ANSWERS) return;
        connect_record = __atomic_exchange_n(&ep->entrance.listener->connect_record[i], 0, __ATOMIC_ACQ_REL);
        if (connect_record)
            cci__sisci_answer_connect_record(ep, CCI__SCI_NODE, (uint32_t)(connect_record >> 32),
                                             (uint32_t)connect_record);
    }
    if (!ep->far || ep->far->look_at_connect_records(ep)) ep->entrance.connect_records = count;
}

/* Can the kernel copy from the peer's memory to ours? */
static int cci__sisci_try_vm(const cci__sisci_link *link) {
    uint64_t seen = 0;
    struct iovec here, there;
    uint8_t mode = link->ep->device.rma_mode;
    if (!cci__sisci_is_owner(link) || (mode != CCI__SISCI_RMA_AUTO && mode != CCI__SISCI_RMA_COPY) ||
        link->peer.card.region_size != sizeof(cci_rma_region_t))
        return 0;
    here.iov_base = &seen;
    there.iov_base = (void *)(uintptr_t)link->peer.card.probe_at;
    here.iov_len = there.iov_len = sizeof seen;
    return syscall(SYS_process_vm_readv, (pid_t)link->peer.card.pid, &here, 1UL, &there, 1UL, 0UL) ==
               (long)sizeof seen &&
           seen == link->peer.card.probe;
}

/* May a peer's inbox be what its card says? */
static int cci__sisci_is_valid(const cci__sisci_card *card, uint32_t our_id) {
    return card->magic == CCI__SISCI_MAGIC && card->other_id == our_id && card->ring_lines >= 64 &&
           card->ring_lines <= 65536 && (card->ring_lines & (card->ring_lines - 1)) == 0 && card->block_count > 0 &&
           card->block_count <= CCI__SISCI_BLOCKS && card->block_size >= 64 && card->block_size <= 65536 &&
           (card->block_size & 63) == 0 && card->max_send_size <= card->block_size && card->max_send_size > 0 &&
           card->slot_size == CCI__SISCI_SLOT_SIZE;
}

/* The peer's inbox is connected: maps it, and believes nothing that it says. */
static int cci__sisci_map_out(cci__sisci_link *link) {
    const cci__sci_functions *call = &link->ep->sci->call;
    cci__sisci_card *card = &link->peer.card;
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    unsigned int size = call->SCIGetRemoteSegmentSize(link->outbox.segment), i;
    size_t used;
    if (size < CCI__SISCI_AT_RING) return 0;
    link->out.base = (uint8_t *)(uintptr_t)call->SCIMapRemoteSegment(link->outbox.segment, &link->outbox.map, 0, size,
                                                                     NULL, 0, &error);
    if (error != CCI__SCI_ERR_OK) {
        link->outbox.map = NULL;
        link->out.base = NULL;
        return 0;
    }
    for (i = 0; i < sizeof *card / 4; i++) { /* an adapter takes loads of whole words best */
        uint32_t word = cci__sisci_load(link->out.base + 4 * (size_t)i);
        memcpy((uint8_t *)card + 4 * (size_t)i, &word, sizeof word);
    }
    if (!cci__sisci_is_valid(card, link->inbox.id)) return 0;
    used = cci__sisci_inbox_size(card->ring_lines, card->block_size, card->block_count);
    if (used > size || (link->mirror && !link->ep->far->begin_mirror(link, used))) return 0;
    link->peer_mark = card->mark;
    link->peer_sleeps = card->sleeps != 0;
    link->out.lines = card->ring_lines;
    link->out.ring = link->out.base + CCI__SISCI_AT_RING;
    link->outbox.blocks = link->out.base + cci__sisci_blocks_at(card->ring_lines);
    link->outbox.slots = link->out.base + cci__sisci_slots_at(card->ring_lines, card->block_size, card->block_count);
    for (i = 0; i < card->block_count; i++) link->outbox.free_block[i] = (uint8_t)(card->block_count - 1 - i);
    link->outbox.free_count = card->block_count;
    return 1;
}

/* All is connected: from now on nobody else can connect to our inbox, and the peer is told. 0: the link has failed. */
static int cci__sisci_close_inbox(cci__sisci *ep, cci__sisci_link *link) {
    cci__sci_error_t error;
    ep->sci->call.SCISetSegmentUnavailable(link->inbox.segment, ep->adapter, 0, &error);
    if (error != CCI__SCI_ERR_OK || !cci__sisci_is_private(link)) return 0;
    link->peer.vm = cci__sisci_try_vm(link);
    if (!link->mirror) {
        cci__sisci_watch(link);
    } else {
        link->told = ep->is_sleeper;
        cci__sisci_write_word(link, CCI__SISCI_AT_SLEEP, (uint32_t)link->told);
    }
    cci__sisci_write_word(link, CCI__SISCI_AT_READY, 1);
    link->state = CCI__SISCI_READY;
    if (link->peer.card.sleeps)
        cci__sisci_wake_peer(link);
    else
        cci__sisci_leave_interrupt(link);
    cci__sisci_save_descriptors(link);
    return 1;
}

/* The peer's listener is connected: that is where we mark the link. 0: it is not one, or not the peer's. */
static int cci__sisci_map_marks(cci__sisci_link *link) {
    cci__sci_error_t error;
    if (link->peer.card.mark >= CCI__SISCI_MARKS || !cci__sci_is_same_peer(link->peer.segment, link->outbox.segment))
        return 0;
    link->peer_listener = (cci__sisci_listener *)(uintptr_t)link->ep->sci->call.SCIMapRemoteSegment(
        link->peer.segment, &link->peer.map, 0, CCI__SISCI_LISTENER_SIZE, NULL, 0, &error);
    if (error != CCI__SCI_ERR_OK) {
        link->peer.map = NULL;
        link->peer_listener = NULL;
        return 0;
    }
    cci__sci_save_remote_descriptor(link->peer.segment);
    return cci__sisci_load(&link->peer_listener->magic) == CCI__SISCI_MAGIC;
}

/* The peer's inbox is connected: maps it, and connects to what its card names. 0: the link has failed. */
static int cci__sisci_begin_join(cci__sisci_link *link) {
    const cci__sisci_card *card = &link->peer.card;
    if (!cci__sisci_map_out(link)) return 0;
    if (!link->is_client && card->sleeps) cci__sisci_connect_interrupt(link, card->interrupt);
    if (!link->peer.interrupt && card->sleeps) return 0;
    return link->mirror ||
           cci__sisci_connect_segment(link, &link->peer.segment, card->service, cci__sisci_on_marks, link);
}

/* The parts come in any order; 0: the link has failed. */
static int cci__sisci_step_join(cci__sisci *ep, cci__sisci_link *link) {
    int state = CCI__SCI_CONNECTED;
    if (link->join.news.out > 0 && !link->out.base && !cci__sisci_begin_join(link)) return 0;
    if (link->join.news.marks < 0 || (link->join.news.marks > 0 && !link->peer_listener && !cci__sisci_map_marks(link)))
        return 0;
    if (link->peer.interrupt) state = cci__sisci_interrupt_state(link);
    if (state != CCI__SCI_CONNECTING && state != CCI__SCI_CONNECTED) return 0;
    return !link->out.base || (!link->mirror && !link->peer_listener) || state == CCI__SCI_CONNECTING ||
           link->join.news.attached == 0 || cci__sisci_close_inbox(ep, link);
}

static void cci__sisci_open_link(cci__sisci *ep, cci__sisci_link *link) {
    cci__sisci_end_handshake(ep, link);
    link->state = CCI__SISCI_OPEN;
    link->join.retry_ns = 0;
    cci__sisci_make_hot(link);
}

/* What the peer had dropped when it ended a connection, or says it has, in records that are still to be taken. */
static void cci__sisci_foresee_drops(cci__sisci *ep, cci__sisci_link *link) {
    uint32_t tail = link->in.tail;
    cci__sisci_record record;
    while (link->in.tail - tail < link->in.lines && cci__sisci_read_record(link, &record)) {
        uint32_t head[4];
        int ends = record.type == CCI__SISCI_DISCONNECT, tells = ends || record.type == CCI__SISCI_DROPPED;
        cci__sisci_conn *conn = tells ? cci__sisci_find_conn(ep, link, record.to) : NULL;
        if (conn && record.length >= sizeof head) {
            memcpy(head, record.data, sizeof head);
            if (ends) cci__sisci_mark_ops(conn, head[2]);
            if (!ends) cci__sisci_receive_dropped(link, conn, head[2]);
        }
        link->in.tail += record.lines;
    }
    link->in.tail = tail;
}

/* A client's request goes over another link, to `service` of the same node, when its time comes; 0: no memory. */
static int cci__sisci_change_link(cci__sisci *ep, cci__sisci_conn *conn, uint32_t service) {
    cci__sisci_link *next = cci__sisci_link_to(ep, conn->link->peer.node, service);
    if (!next || next == conn->link) return next != NULL;
    cci__sisci_leave_link(ep, conn);
    cci__sisci_assign(ep, conn, next);
    cci__list_remove(&conn->node);
    return 1;
}

/* A client seeks the server that has a name: the listener of the one that is being asked has told its name, or has the
 * rest of its time for that. */
static void cci__sisci_seek(cci__sisci *ep, cci__sisci_conn *conn, cci_conn_seek_t *seek) {
    cci__sisci_link *link = conn->link;
    uint64_t look_ns;
    if (link->state == CCI__SISCI_OPEN && !conn->waits) {
        look_ns = CCI__NEVER; /* it has been asked */
    } else if (link->join.knows_name && link->join.name == seek->name.id && link->state <= CCI__SISCI_OPEN) {
        cci__sisci_ask_to_connect(ep, conn);
        look_ns = ep->base.now_ns + CCI__SISCI_NAME_LOOK_NS; /* is it still there? */
    } else {
        conn->waits = 1;
        if ((link->join.knows_name || seek->until_ns <= ep->base.now_ns) && cci_conn_next_port(seek, ep->base.now_ns))
            (void)cci__sisci_change_link(ep, conn, seek->name.ports[seek->at]);
        look_ns = conn->link != link && conn->link->join.knows_name ? ep->base.now_ns : seek->until_ns;
    }
    cci__timer_arm(&ep->base.wheel, &conn->conn.timer, cci__min64(conn->conn.deadline_ns, look_ns));
}

/* The link to a server is lost while connecting: the request goes over a new link. */
static void cci__sisci_connect_again(cci__sisci *ep, cci__sisci_conn *conn) {
    cci_conn_seek_t *seek = cci__sisci_seek_of(conn);
    if (!cci__sisci_change_link(ep, conn, conn->link->join.service)) return;
    conn->waits = 1;
    if (seek)
        cci__sisci_seek(ep, conn, seek);
    else
        cci__sisci_ask_to_connect(ep, conn);
}

/* The link is lost: what becomes of one of its connections. */
static void cci__sisci_lose_conn(cci__sisci *ep, cci__sisci_conn *conn) {
    if (conn->closing) {
        cci__sisci_close_conn(ep, conn);
    } else if (conn->conn.state == CCI_CONN_OPEN) {
        cci__notices_forget(&ep->base.notices, &conn->conn, 1);
        conn->conn.state = CCI_CONN_BROKEN;
        if (CCI__LINGERS(&conn->conn)) cci__sisci_check_linger(conn);
    } else if (conn->conn.state == CCI_CONN_REQUESTED) {
        conn->cancelled = 1;
    } else if (conn->conn.state == CCI_CONN_ACCEPTED) {
        cci__sisci_post_event(ep, conn, CCI_EVENT_ACCEPT, CCI_ERR_DISCONNECTED);
        cci__sisci_close_conn(ep, conn);
    } else if (conn->conn.state == CCI_CONN_CONNECTING) {
        cci__sisci_connect_again(ep, conn);
    }
}

/* The peer is gone, or has written nonsense: what it had consumed completes, all else fails. */
static void cci__sisci_break_link(cci__sisci *ep, cci__sisci_link *link) {
    cci__sisci_conn *conn, *next;
    cci__sisci_read_ack(link);
    cci__sisci_foresee_drops(ep, link);
    link->conns.peer_disconnects = cci__sisci_load(link->in.base + CCI__SISCI_AT_ACK + 4);
    cci__sisci_complete_acknowledged(ep, link);
    link->state = CCI__SISCI_LOST;
    cci__sisci_forget_server(ep, link);
    cci__sisci_drop_views(link);
    while (!cci__list_empty(&link->ops))
        cci__sisci_fail_op(ep, link, CCI__CONTAINER(link->ops.next, cci__sisci_op, node), CCI_ERR_DISCONNECTED);
    while (link->items) cci__sisci_pop_item(ep, link);
    for (conn = cci__sisci_conn_at(ep, link->conns.first); conn; conn = next) {
        next = cci__sisci_conn_at(ep, conn->after);
        cci__sisci_lose_conn(ep, conn);
    }
    link->is_busy |= CCI__SISCI_HAS_WORK; /* until all that had come is taken */
    cci__sisci_make_hot(link);
}

/* The link is lost, and all that the peer had sent is consumed: its connections end. */
static void cci__sisci_end_link(cci__sisci *ep, cci__sisci_link *link) {
    int status = cci__sisci_load(link->in.base + CCI__SISCI_AT_LEFT) == 1 ? CCI_SUCCESS : CCI_ERR_DISCONNECTED;
    cci__sisci_conn *conn;
    link->is_over = 1;
    for (conn = cci__sisci_conn_at(ep, link->conns.first); conn; conn = cci__sisci_conn_at(ep, conn->after))
        if (conn->conn.state == CCI_CONN_BROKEN) cci__sisci_end_conn(ep, conn, status);
}

/* A handshake came to nothing: a client tries again. */
static void cci__sisci_fail_link(cci__sisci *ep, cci__sisci_link *link, uint64_t now_ns) {
    if (link->is_client) {
        cci__sisci_tear_down(link);
        link->state = CCI__SISCI_CONNECTING;
        link->join.retry_ns = now_ns + 20 * CCI__MS;
    } else {
        cci__sisci_free_link(ep, link);
    }
}

/* In each state: what the callbacks have reported, and what is to be tried again. */
static void cci__sisci_step_connecting(cci__sisci *ep, cci__sisci_link *link, uint64_t now_ns) {
    if (link->join.retry_ns <= now_ns) {
        cci__sisci_connect_listener(ep, link);
    } else if (link->join.news.listener > 0 && cci__sisci_leave_connect_record(ep, link)) {
        link->state = CCI__SISCI_WAITING;
    } else if (link->join.news.listener != 0) {
        cci__sisci_leave_listener(link);
        link->join.retry_ns = now_ns + 10 * CCI__MS;
    }
}

static void cci__sisci_step_waiting(cci__sisci *ep, cci__sisci_link *link, uint64_t now_ns) {
    if (link->join.news.attached > 0)
        cci__sisci_join(link, now_ns);
    else if (link->join.news.listener < 0 || link->join.news.attached < 0 || link->join.retry_ns <= now_ns)
        cci__sisci_connect_listener(ep, link);
    else if (link->join.retry_ns == CCI__NEVER && link->join.connect_record &&
             cci__sisci_load_long(link->join.connect_record) == 0)
        link->join.retry_ns = now_ns + 1000 * CCI__MS; /* the server works at it, or can't */
}

static void cci__sisci_step_handshake(cci__sisci *ep, cci__sisci_link *link, uint64_t now_ns) {
    if (link->join.news.out < 0 || link->join.news.attached < 0 || link->join.retry_ns <= now_ns ||
        (link->state == CCI__SISCI_JOINING && !cci__sisci_step_join(ep, link)))
        cci__sisci_fail_link(ep, link, now_ns);
    else if (link->state == CCI__SISCI_READY && cci__sisci_load(link->in.base + CCI__SISCI_AT_READY) != 0)
        cci__sisci_open_link(ep, link);
}

static void cci__sisci_step_open(cci__sisci *ep, cci__sisci_link *link) {
    cci__sisci_step_views(link);
    if (link->join.news.out < 0 || link->join.news.attached < 0)
        cci__sisci_break_link(ep, link);
    else
        cci__sisci_leave_steps(link);
}

static void cci__sisci_step_lost(cci__sisci *ep, cci__sisci_link *link) {
    if (link->conns.count == 0 && link->inbox.held == 0) {
        cci__sisci_free_link(ep, link);
    } else if (link->is_over && link->in.base && link->inbox.held == 0) {
        cci__sisci_tear_down(link); /* connections that the program has not closed need no memory or descriptors */
        cci__sisci_make_cold(link);
    } else if (!link->in.base) {
        cci__sisci_leave_steps(link);
    }
}

/* What the callbacks have reported, and what is to be tried again. The link may be gone afterwards. */
static void cci__sisci_step_link(cci__sisci *ep, cci__sisci_link *link, uint64_t now_ns) {
    if (link->mirror) ep->far->step(link, now_ns);
    if (link->peer.interrupt_is_due) cci__sisci_wake_peer(link);
    if (link->state < CCI__SISCI_OPEN && link->is_client && link->conns.count == 0) {
        cci__sisci_free_link(ep, link);
        return;
    }
    switch (link->state) {
    case CCI__SISCI_CONNECTING: cci__sisci_step_connecting(ep, link, now_ns); break;
    case CCI__SISCI_WAITING: cci__sisci_step_waiting(ep, link, now_ns); break;
    case CCI__SISCI_JOINING:
    case CCI__SISCI_READY: cci__sisci_step_handshake(ep, link, now_ns); break;
    case CCI__SISCI_OPEN: cci__sisci_step_open(ep, link); break;
    default: cci__sisci_step_lost(ep, link); break;
    }
}

/* ==================================================================================================================
 * >>sisci-cci-groups
 *
 * A group is a broadcast segment with slots for messages (cci__sisci_group). Nobody waits for anybody: a sender whose
 * slot is still being written takes the next number; a receiver copies a message and then looks whether it was
 * overwritten meanwhile, and loses what was. Members can write everywhere in that memory, so all that is read is
 * checked.
 * ================================================================================================================== */

static cci__sisci_group_slot *cci__sisci_slot_of(const cci__sisci_group *group, uint64_t number) {
    return (cci__sisci_group_slot *)(void *)(group->base + 4096) + number % CCI__SISCI_GROUP_SLOTS;
}

static cci__sisci_receiver *cci__sisci_receiver_at(const cci__sisci_group *group, uint32_t i) {
    return (cci__sisci_receiver *)(void *)(group->base + 64) + i;
}

static int cci__sisci_receives(const cci__sisci_group *group) {
    return group->conn->conn.pub.attribute == CCI_CONN_ATTR_UU_MC_RX;
}

static int cci__sisci_swap_word(uint32_t *word, uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(word, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static int cci__sisci_swap(uint64_t *word, uint64_t from, uint64_t to) {
    return __atomic_compare_exchange_n(word, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* A checksum of a message whose slot another process may still be writing. */
static uint64_t cci__sisci_group_check(uint64_t number, uint32_t length, const uint64_t *words) {
    uint64_t key[2];
    key[0] = number;
    key[1] = length;
    return cci__siphash(key, words, (length + 7) / 8);
}

/* Copies by words, since others may write meanwhile. */
static void cci__sisci_copy_words(uint64_t *to, const uint64_t *from, uint32_t length) {
    uint32_t i, count = (length + 7) / 8;
    for (i = 0; i < count; i++) __atomic_store_n(&to[i], __atomic_load_n(&from[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* Takes a slot for a message, and gives its number; NULL: all that were tried are being written to. */
static cci__sisci_group_slot *cci__sisci_claim_slot(cci__sisci_group *group, uint64_t *number) {
    uint32_t tries;
    for (tries = 0; tries < CCI__SISCI_GROUP_SLOTS; tries++) {
        uint64_t n = __atomic_fetch_add((uint64_t *)(void *)group->base, 1, __ATOMIC_SEQ_CST);
        cci__sisci_group_slot *slot = cci__sisci_slot_of(group, n);
        uint64_t old = cci__sisci_load_long(&slot->number);
        int steals = (old & 1) && n - old / 2 >= CCI__SISCI_STEAL;
        if ((int64_t)(old - 2 * n) > 0 || ((old & 1) && !steals))
            continue;                                       /* others have overtaken us, or one is not ready yet */
        if (steals) cci__sisci_store(&slot->was_stolen, 1); /* for ever: its owner may wake up at any time */
        if (cci__sisci_swap(&slot->number, old, 2 * n + 1)) {
            *number = n;
            return slot;
        }
    }
    return NULL;
}

/* Interrupts those who sleep. */
static void cci__sisci_interrupt_receiver(cci__sisci *ep, cci__sisci_group *group, uint32_t i) {
    cci__sisci_receiver *receiver = cci__sisci_receiver_at(group, i);
    uint32_t number = cci__sisci_load(&receiver->interrupt);
    int state;
    if (number == 0) return;
    if (group->bell[i] && group->interrupt_of[i] != number) {
        ep->sci->call.SCIDisconnectInterrupt(group->bell[i], 0, NULL);
        group->bell[i] = NULL;
    }
    if (!group->bell[i]) {
        group->bell[i] = cci__sci_begin_interrupt(ep->sd, number - 1);
        group->interrupt_of[i] = number;
    }
    state = group->bell[i] ? cci__sci_interrupt_state(group->bell[i]) : (int)CCI__SCI_CONNECTING;
    group->interrupt_is_due[i] = group->bell[i] && state == CCI__SCI_CONNECTING;
    if (state == CCI__SCI_CONNECTED) {
        ep->sci->call.SCITriggerInterrupt(group->bell[i], 0, NULL);
    } else if (state != CCI__SCI_CONNECTING) { /* it is gone */
        ep->sci->call.SCIDisconnectInterrupt(group->bell[i], 0, NULL);
        group->bell[i] = NULL;
        (void)cci__sisci_swap_word(&receiver->interrupt, number, 0);
    }
}

static void cci__sisci_wake_group(cci__sisci *ep, cci__sisci_group *group) {
    uint32_t i;
    CCI__SCI_FENCE(SEQ_CST); /* the message before this, the sleepers' words after */
    for (i = 0; i < CCI__SISCI_RECEIVERS; i++)
        if (__atomic_load_n(&cci__sisci_receiver_at(group, i)->sleeps, __ATOMIC_RELAXED) != 0)
            cci__sisci_interrupt_receiver(ep, group, i);
}

/* Writes a message to the group. Receivers that are slow lose an older one. */
static void cci__sisci_send_to_group(cci__sisci *ep, cci__sisci_group *group, const struct iovec *data, uint32_t count,
                                     uint32_t length) {
    cci__sisci_group_slot *slot;
    uint64_t number;
    if (!group->base || (slot = cci__sisci_claim_slot(group, &number)) == NULL) return;
    if (length > 0) group->words[(length - 1) / 8] = 0;
    cci__sisci_gather((uint8_t *)group->words, data, count);
    __atomic_store_n(&slot->length, length, __ATOMIC_RELAXED);
    cci__sisci_copy_words(slot->words, group->words, length);
    if (cci__sisci_load(&slot->was_stolen))
        cci__sisci_store_long(&slot->check, cci__sisci_group_check(number, length, group->words));
    (void)cci__sisci_swap(&slot->number, 2 * number + 1, 2 * number + 2); /* else it was stolen: the message is lost */
    cci__sisci_wake_group(ep, group);
}

/* Copies a message out of its slot: 0 when it was overwritten meanwhile. */
static int cci__sisci_copy_slot(const cci__sisci_group_slot *slot, uint64_t number, uint64_t *words, uint32_t length) {
    uint64_t check;
    int was_stolen;
    cci__sisci_copy_words(words, slot->words, length);
    check = __atomic_load_n(&slot->check, __ATOMIC_RELAXED);
    was_stolen = cci__sisci_load(&slot->was_stolen) != 0;
    CCI__SCI_FENCE(ACQUIRE);
    return cci__sisci_load_long(&slot->number) == 2 * number + 2 &&
           (!was_stolen || check == cci__sisci_group_check(number, length, words));
}

/* Message `number` of a group, if it is there. */
static int cci__sisci_receive_from_group(cci__sisci *ep, cci__sisci_group *group, uint64_t number) {
    const cci__sisci_group_slot *slot = cci__sisci_slot_of(group, number);
    uint64_t state = cci__sisci_load_long(&slot->number);
    uint32_t length = __atomic_load_n(&slot->length, __ATOMIC_RELAXED);
    cci_evq_event_t *event;
    if (state != 2 * number + 2) return (int64_t)(state - (2 * number + 2)) < 0 ? CCI__SISCI_LATER : CCI__SISCI_TAKEN;
    if (length > group->conn->conn.pub.max_send_size) return CCI__SISCI_TAKEN;
    event = cci__sisci_message_event(ep, 0);
    if (!event) return CCI__SISCI_STALLED;
    if (!cci__sisci_copy_slot(slot, number, (uint64_t *)(void *)event->buffer->data, length)) {
        cci_evq_return_event(&ep->base.evq, event);
        return CCI__SISCI_TAKEN;
    }
    event->base.pub.recv.ptr = event->buffer->data;
    event->base.pub.recv.type = CCI_EVENT_RECV;
    event->base.pub.recv.len = length;
    cci__sisci_deliver(ep, group->conn, event);
    return CCI__SISCI_TAKEN;
}

/* The numbers that may be there: from group->tail to what is returned. What was overwritten is given up. */
static uint64_t cci__sisci_look_at_group(cci__sisci_group *group) {
    uint64_t next = cci__sisci_load_long(group->base);
    if (next - group->tail > UINT64_C(1) << 62 || next - group->tail > 2 * CCI__SISCI_GROUP_SLOTS) {
        memset(group->taken, 0, sizeof group->taken);
        group->tail = next - cci__min64(next, CCI__SISCI_GROUP_SLOTS);
    }
    while (next - group->tail > CCI__SISCI_GROUP_SLOTS ||
           (group->tail != next && group->taken[group->tail % CCI__SISCI_GROUP_SLOTS]))
        group->taken[group->tail++ % CCI__SISCI_GROUP_SLOTS] = 0;
    return next;
}

/* Takes what has come, up to a batch; how much it was. One that is late does not keep others back. */
static int cci__sisci_receive_group(cci__sisci *ep, cci__sisci_group *group) {
    uint64_t next = cci__sisci_look_at_group(group), n;
    int count = 0, status = CCI__SISCI_TAKEN;
    for (n = group->tail; n != next && count < CCI__SISCI_BATCH; n++) {
        if (group->taken[n % CCI__SISCI_GROUP_SLOTS]) continue;
        status = cci__sisci_receive_from_group(ep, group, n);
        if (status == CCI__SISCI_STALLED) break;
        if (status == CCI__SISCI_TAKEN) {
            group->taken[n % CCI__SISCI_GROUP_SLOTS] = 1;
            count++;
        }
    }
    group->stalled = status == CCI__SISCI_STALLED;
    if (group->stalled) ep->is_short = 1;
    if (count > 0 && group->told) { /* awake */
        group->told = 0;
        cci__sisci_store(&cci__sisci_receiver_at(group, group->place - 1)->sleeps, 0);
    }
    return count;
}

static int cci__sisci_receive_groups(cci__sisci *ep) {
    cci__sisci_group *group;
    int count = 0;
    for (group = ep->groups; group; group = group->next)
        if (group->base && cci__sisci_receives(group)) count += cci__sisci_receive_group(ep, group);
    return count > 0;
}

/* Tells senders that they must interrupt from now on, or that they need not any more. */
static void cci__sisci_announce_sleep_to_groups(cci__sisci *ep, int sleeps) {
    cci__sisci_group *group;
    for (group = ep->groups; group; group = group->next) {
        if (group->base && group->place && group->told != sleeps) {
            group->told = sleeps;
            cci__sisci_store(&cci__sisci_receiver_at(group, group->place - 1)->sleeps, (uint32_t)sleeps);
        }
    }
}

/* Something has come that can be taken. */
static int cci__sisci_groups_have_work(cci__sisci *ep) {
    cci__sisci_group *group;
    for (group = ep->groups; group; group = group->next) {
        uint64_t next, n;
        if (!group->base || !cci__sisci_receives(group) || group->stalled) continue;
        next = cci__sisci_look_at_group(group);
        for (n = group->tail; n != next; n++)
            if (!group->taken[n % CCI__SISCI_GROUP_SLOTS] &&
                cci__sisci_load_long(&cci__sisci_slot_of(group, n)->number) == 2 * n + 2)
                return 1;
    }
    return 0;
}

/* A receiver has no place among those who are woken. */
static int cci__sisci_must_look(const cci__sisci *ep) {
    const cci__sisci_group *group = ep->groups;
    while (group && (!group->base || group->place || !cci__sisci_receives(group))) group = group->next;
    return group != NULL;
}

/* A place among those who are woken: there is none if this endpoint never sleeps. */
static void cci__sisci_claim_place(cci__sisci *ep, cci__sisci_group *group) {
    uint32_t i;
    for (i = 0; i < CCI__SISCI_RECEIVERS && cci__sisci_is_sleeper(ep) && !group->place; i++) {
        cci__sisci_receiver *receiver = cci__sisci_receiver_at(group, i);
        if (cci__sisci_swap_word(&receiver->interrupt, 0, ep->entrance.interrupt_number + 1)) {
            cci__sisci_store(&receiver->sleeps, 0);
            group->place = i + 1;
        }
    }
}

static void cci__sisci_disconnect_receivers(cci__sisci *ep, cci__sisci_group *group) {
    uint32_t i;
    for (i = 0; i < CCI__SISCI_RECEIVERS; i++) {
        if (group->bell[i]) ep->sci->call.SCIDisconnectInterrupt(group->bell[i], 0, NULL);
        group->bell[i] = NULL;
        group->interrupt_is_due[i] = 0;
    }
}

/* Leaves the memory of the group, which goes with its last member. */
static void cci__sisci_unmap_group(cci__sisci *ep, cci__sisci_group *group) {
    if (group->base && group->place) {
        cci__sisci_receiver *receiver = cci__sisci_receiver_at(group, group->place - 1);
        cci__sisci_store(&receiver->sleeps, 0);
        (void)cci__sisci_swap_word(&receiver->interrupt, ep->entrance.interrupt_number + 1, 0);
    }
    cci__sisci_disconnect_receivers(ep, group);
    if (group->base)
        ep->sci->call.SCIUnmapSegment(group->map, 0, NULL);
    else
        ep->links.handshakes--;
    if (group->segment) cci__sisci_remove_segment(ep, group->segment);
    group->segment = NULL;
    group->base = NULL;
    group->place = 0;
    group->told = group->stalled = 0;
}

static void cci__sisci_leave_group(cci__sisci *ep, cci__sisci_group *group) {
    cci__sisci_group **at = &ep->groups;
    while (*at != group) at = &(*at)->next;
    *at = group->next;
    ep->group_count--;
    cci__sisci_unmap_group(ep, group);
    group->conn->group = NULL;
    cci_release(group);
}

/* The connection fails, or was never told. */
static void cci__sisci_refuse_group(cci__sisci *ep, cci__sisci_group *group, int status) {
    cci__sisci_conn *conn = group->conn;
    cci__sisci_leave_group(ep, group);
    cci__sisci_post_event(ep, conn, CCI_EVENT_CONNECT, status);
    cci__sisci_close_conn(ep, conn);
}

/* The memory is there: from now on what is sent is received. */
static int cci__sisci_enter_group(cci__sisci *ep, cci__sisci_group *group) {
    cci__sci_error_t error;
    uint8_t *base = (uint8_t *)ep->sci->call.SCIMapLocalSegment(group->segment, &group->map, 0, CCI__SISCI_GROUP_SIZE,
                                                                NULL, 0, &error);
    if (error != CCI__SCI_ERR_OK) return 0;
    group->base = base;
    group->tail = cci__sisci_load_long(base);
    memset(group->taken, 0, sizeof group->taken);
    ep->links.handshakes--;
    if (cci__sisci_receives(group)) cci__sisci_claim_place(ep, group);
    if (group->conn->conn.state == CCI_CONN_CONNECTING) {
        cci__sisci_opened(ep, group->conn);
        cci__sisci_post_event(ep, group->conn, CCI_EVENT_CONNECT, CCI_SUCCESS);
    }
    return 1;
}

static void cci__sisci_begin_group(cci__sisci *ep, cci__sisci_group *group) {
    group->segment = cci__sci_begin_broadcast(ep->sd, group->id);
    group->retry_ns = cci__sci_now();
    ep->links.handshakes++; /* look often */
}

static void cci__sisci_step_joining(cci__sisci *ep, cci__sisci_group *group, uint64_t now_ns) {
    cci__sci_error_t error = CCI__SCI_ERR_NOSPC;
    int status = CCI_ENOMEM;
    if (now_ns < group->retry_ns) return;
    group->retry_ns = now_ns + CCI__MS;
    if (group->segment) error = cci__sci_step_broadcast(group->segment, CCI__SISCI_GROUP_SIZE);
    if (error == CCI__SCI_ERR_BUSY || (error == CCI__SCI_ERR_OK && cci__sisci_enter_group(ep, group))) return;
    if (error == CCI__SCI_ERR_SEGMENTID_USED) status = CCI_EADDRNOTAVAIL; /* by something else */
    if (group->conn->conn.state == CCI_CONN_CONNECTING) cci__sisci_refuse_group(ep, group, status);
}

static void cci__sisci_step_groups(cci__sisci *ep) {
    cci__sisci_group *group, *next;
    uint64_t now_ns = ep->groups ? cci__sci_now() : 0;
    uint32_t i;
    for (group = ep->groups; group; group = next) {
        next = group->next;
        if (!group->base) {
            cci__sisci_step_joining(ep, group, now_ns);
            continue;
        }
        if (cci__sci_is_broadcast_lost(group->segment)) { /* the others have, or will have, new memory */
            cci__sisci_unmap_group(ep, group);
            cci__sisci_begin_group(ep, group);
            continue;
        }
        for (i = 0; i < CCI__SISCI_RECEIVERS; i++)
            if (group->interrupt_is_due[i]) cci__sisci_interrupt_receiver(ep, group, i);
    }
}

/* A connection to a group. */
static int cci__sisci_join_group(cci__sisci *ep, uint32_t id, cci_conn_attribute_t attribute, void *context,
                                 uint64_t timeout_ns) {
    cci__sisci_group *group = ep->group_count < CCI__SISCI_GROUPS ? (cci__sisci_group *)cci_alloc(sizeof *group) : NULL;
    cci_evq_event_t *event = group ? cci__endpoint_event(&ep->base) : NULL;
    cci__sisci_conn *conn = event ? cci__sisci_open_conn(ep, NULL, attribute, context) : NULL;
    if (!conn) {
        if (event) cci_evq_return_event(&ep->base.evq, event);
        cci_release(group);
        return CCI_ENOMEM;
    }
    memset(group, 0, sizeof *group);
    group->conn = conn;
    group->id = id;
    group->next = ep->groups;
    ep->groups = group;
    ep->links.only = NULL;
    ep->group_count++;
    conn->event = event;
    conn->group = group;
    conn->conn.is_client = 1;
    conn->conn.state = CCI_CONN_CONNECTING;
    conn->conn.pub.max_send_size = cci__min32(ep->base.max_send_size, CCI__SISCI_GROUP_BYTES);
    ep->base.now_ns = cci__sci_now();
    cci__timer_arm(&ep->base.wheel, &conn->conn.timer,
                   timeout_ns == CCI__NEVER ? CCI__NEVER : ep->base.now_ns + timeout_ns);
    cci__sisci_begin_group(ep, group);
    cci__sisci_step_joining(ep, group, ep->base.now_ns);
    return CCI_SUCCESS;
}

static void cci__sisci_arm(cci__endpoint_t *base);
static int cci__sisci_block(cci__sisci *ep, cci__sisci_op *op);

static int cci__sisci_send_multicast(cci__sisci *ep, cci__sisci_conn *conn, const struct iovec *data, uint32_t count,
                                     uint32_t length, void *context, int flags) {
    cci__sisci_op *op = NULL;
    int status = CCI_SUCCESS;
    if (flags & CCI_FLAG_WAKE) return CCI_ERR_NOT_IMPLEMENTED;
    if (!(flags & CCI_FLAG_SILENT) || (flags & CCI_FLAG_BLOCKING)) {
        op = cci__sisci_new_op(ep, conn, context, flags);
        if (!op) return CCI_ENOBUFS;
    }
    cci__sisci_issued(ep, conn, length);
    cci__sisci_send_to_group(ep, conn->group, data, count, length);
    if (op) cci__sisci_complete(ep, op, CCI_SUCCESS);
    if (flags & CCI_FLAG_BLOCKING) status = cci__sisci_block(ep, op);
    if (cci__sisci_is_sleeper(ep)) cci__sisci_arm(&ep->base);
    return status;
}

/* ==================================================================================================================
 * >>sisci-cci-time
 *
 * Deadlines of operations, items and silent messages, and timers of connections. No call of the program reads the clock
 * for a message: what is new puts its link in `fresh`, and gets its deadline when the clock is read next; then the link
 * is in `timed`. No deadline in `timed` is earlier than `due_ns`, so these links are looked at when that time has come.
 * ================================================================================================================== */

/* The peer is gone, or nothing was heard of it. */
static void cci__sisci_post_keepalive(cci__endpoint_t *base, cci_conn_t *conn) {
    cci__sisci *ep = (cci__sisci *)base;
    cci_evq_event_t *event = cci__endpoint_event(base);
    if (!event) {
        cci__sisci_set_timer(base, conn);
        return;
    }
    conn->keepalive_us = 0;
    cci__timer_disarm(&base->wheel, &conn->timer);
    cci__event_set_keepalive(event, conn);
    if (conn->state == CCI_CONN_BROKEN) ep->received_total++; /* behind the messages that have come */
    cci__sisci_post_about(conn->state == CCI_CONN_BROKEN ? &ep->received : &base->evq.urgent, conn, event);
}

/* What the peer has said about the last record for which it had no buffer. */
static uint32_t cci__sisci_stall_word(const cci__sisci_link *link) {
    return cci__sisci_load(link->in.base + CCI__SISCI_AT_ACK + 8);
}

static int cci__sisci_is_stalled(const cci__sisci_link *link) {
    return cci__sisci_stall_word(link) == link->out.acknowledged * 2 + 1;
}

/* The time for connecting is over: was a server reached? */
static void cci__sisci_tell_nobody(const cci__sisci_link *link, int is_name) {
    char text[CCI__SISCI_URI + 80];
    if (link->state == CCI__SISCI_OPEN) return;
    snprintf(text, sizeof text, "sisci://%lu:%lu: %s there until the time for connecting was over",
             (unsigned long)link->peer.node, (unsigned long)link->join.service,
             is_name ? "no server of that name was" : "no endpoint was");
    cci_log(CCI_LOG_WARN, text);
}

/* The time for connecting, or the keepalive time, of a connection is over. */
static void cci__sisci_on_timer(cci__sisci *ep, cci__sisci_conn *conn) {
    cci__sisci_link *link = conn->link;
    cci_conn_seek_t *seek = link ? cci__sisci_seek_of(conn) : NULL;
    uint32_t nothing[4] = {0, 0, 0, 0};
    if (!link) {
        cci__sisci_refuse_group(ep, conn->group, CCI_ETIMEDOUT);
        return;
    }
    if (CCI__LINGERS(&conn->conn)) {
        cci__endpoint_end_linger(&ep->base, &conn->conn);
        return;
    }
    if (conn->conn.state == CCI_CONN_CONNECTING && (conn->waits || seek) && conn->conn.deadline_ns > ep->base.now_ns) {
        if (seek)
            cci__sisci_seek(ep, conn, seek);
        else
            cci__sisci_ask_to_connect(ep, conn);
        return;
    }
    if (conn->conn.state == CCI_CONN_CONNECTING) {
        cci__sisci_tell_nobody(link, seek != NULL);
        cci__sisci_post_event(ep, conn, CCI_EVENT_CONNECT, CCI_ETIMEDOUT);
        if (link->state != CCI__SISCI_OPEN || conn->control_type == CCI__SISCI_REQUEST || conn->waits) {
            cci__sisci_close_conn(ep, conn);
        } else {
            conn->closing = 1;
            cci__sisci_queue_control(ep, conn, CCI__SISCI_CANCEL);
        }
        return;
    }
    if (conn->conn.state == CCI_CONN_BROKEN || link->state != CCI__SISCI_OPEN) {
        if (conn->conn.keepalive_us && !(ep->base.event_mask & 1u << CCI_EVENT_DISCONNECT))
            cci__sisci_post_keepalive(&ep->base, &conn->conn);
        return;
    }
    cci__sisci_read_ack(link);
    if (conn->pinged && (int32_t)(link->out.acknowledged - conn->ping_end) < 0 && !cci__sisci_is_stalled(link)) {
        cci__sisci_post_keepalive(&ep->base, &conn->conn);
        return;
    }
    cci__sisci_set_timer(&ep->base, &conn->conn);
    (void)cci__sisci_post(link, CCI__SISCI_PING, 0, nothing, sizeof nothing, NULL, 0);
    conn->ping_end = link->out.head; /* a full ring is as good as a question */
    conn->pinged = 1;
}

/* A reliable connection that could not deliver in time is broken: all that is under way ends, and the peer is told. */
static void cci__sisci_break_conn(cci__sisci *ep, cci__sisci_link *link, cci__sisci_conn *conn, int status) {
    cci__notices_forget(&ep->base.notices, &conn->conn, 1);
    conn->conn.state = CCI_CONN_BROKEN;
    conn->ended = 1;
    conn->closed_at = link->in.tail;
    cci__sisci_fail_ops(link, conn, status);
    cci__sisci_write_word(link, CCI__SISCI_AT_ACK + 4, ++link->conns.disconnects);
    cci__sisci_queue_control(ep, conn, CCI__SISCI_DISCONNECT);
    cci__sisci_end_conn(ep, conn, CCI_ETIMEDOUT);
}

static uint64_t cci__sisci_new_deadline(const cci__sisci *ep, const cci__sisci_conn *conn);

/* [4.1.4.1] The receiver had no buffer for a message until its time was over: the message ends with CCI_ERR_RNR and,
 * on an ordered connection, all behind it. Of those in the ring the peer says whether it delivered them before it
 * saw that they are cancelled. */
static void cci__sisci_cancel_behind(cci__sisci *ep, cci__sisci_link *link, cci__sisci_op *from) {
    cci__sisci_conn *conn = from->conn;
    cci_list_t *at;
    cci__sisci_item *item = from->item ? from->item->next : link->items;
    int is_ordered = conn->conn.pub.attribute == CCI_CONN_ATTR_RO, resumes = 0;
    for (; item && is_ordered; item = item->next) /* nobody is to hear of these */
        if (item->conn == conn && item->has_message && !item->op) item->dead = 1;
    for (at = &from->node; at != &link->ops; at = at->next) {
        cci__sisci_op *op = CCI__CONTAINER(at, cci__sisci_op, node);
        if (op->conn != conn || op->is_cancelled || (op->item && !op->item->has_message)) continue;
        if (cci__sisci_is_consumed(link, op)) continue;
        op->is_cancelled = 1;
        op->deadline_ns = cci__sisci_new_deadline(ep, conn);
        if (op->has_record) {
            resumes = is_ordered;
            cci__sisci_cancel_record(link, op);
            cci__sisci_touch(link);
        } else if (op->item) {
            op->item->op = NULL;
            op->item->dead = 1;
            op->item = NULL;
            op->posted = 1;
            op->end = link->out.head;
            op->status = CCI_ERR_RNR;
        }
        if (!is_ordered) break;
    }
    if (is_ordered) conn->unready |= CCI__SISCI_UNREADY;
    if (resumes) cci__sisci_queue_control(ep, conn, CCI__SISCI_RESUME);
}

static uint64_t cci__sisci_new_deadline(const cci__sisci *ep, const cci__sisci_conn *conn) {
    return conn->conn.send_timeout_us ? ep->base.now_ns + (uint64_t)conn->conn.send_timeout_us * 1000 : CCI__NEVER;
}

/* How an operation that has no more time ends: the peer could take nothing while it waited, or is not heard of. A
 * peer that could take nothing until a moment ago may not have come to this one yet. */
static int cci__sisci_late_status(const cci__sisci *ep, const cci__sisci_link *link, const cci__sisci_conn *conn,
                                  int is_message) {
    return is_message && link->stall.peer_ns != 0 &&
                   ep->base.now_ns - link->stall.peer_ns <= (uint64_t)conn->conn.send_timeout_us * 1000
               ? CCI_ERR_RNR
               : CCI_ETIMEDOUT;
}

/* These three look for what has no more time; what is new gets its deadline. They give the connection that must be
 * broken with its status, or the earliest deadline. */
typedef struct cci__sisci_late {
    uint64_t earliest_ns;  /* the first deadline that is left */
    cci__sisci_conn *conn; /* that must break, or NULL */
    cci__sisci_op *op;     /* that can be cancelled, or NULL */
    int status;            /* with which it breaks */
} cci__sisci_late;

static int cci__sisci_is_late(const cci__sisci *ep, cci__sisci_late *late, cci__sisci_conn *conn,
                              uint64_t *deadline_ns) {
    if (*deadline_ns == 0) *deadline_ns = cci__sisci_new_deadline(ep, conn);
    late->earliest_ns = cci__min64(late->earliest_ns, *deadline_ns);
    late->conn = *deadline_ns <= ep->base.now_ns ? conn : NULL;
    return late->conn != NULL;
}

static int cci__sisci_look_at_ops(cci__sisci *ep, cci__sisci_link *link, cci__sisci_late *late) {
    cci_list_t *at;
    int waits = 0; /* for one that has time left: then it gets more, once it is cancelled, or is no message */
    for (at = link->ops.next; at != &link->ops; at = at->next) {
        cci__sisci_op *op = CCI__CONTAINER(at, cci__sisci_op, node);
        int is_message = op->has_record || (op->item && op->item->has_message);
        if ((op->posted && !op->has_record) || cci__sisci_is_consumed(link, op)) continue; /* it ends in its turn */
        if (!cci__sisci_is_late(ep, late, op->conn, &op->deadline_ns)) {
            waits |= op->deadline_ns != CCI__NEVER;
            continue;
        }
        late->status = cci__sisci_late_status(ep, link, op->conn, is_message || !op->is_renewed);
        if (late->status != CCI_ERR_RNR || (is_message && !(op->is_cancelled && waits))) {
            late->op = late->status == CCI_ERR_RNR && !op->is_cancelled ? op : NULL;
            return 1;
        }
        op->is_renewed = 1;
        op->deadline_ns = cci__sisci_new_deadline(ep, op->conn);
    }
    return 0;
}

static int cci__sisci_look_at_items(cci__sisci *ep, cci__sisci_link *link, cci__sisci_late *late) {
    cci__sisci_item *item;
    for (item = link->items; item; item = item->next) {
        if (!item->op && !cci__sisci_is_dead(item) && cci__sisci_is_late(ep, late, item->conn, &item->deadline_ns)) {
            late->status = cci__sisci_late_status(ep, link, item->conn, item->has_message);
            if (late->status == CCI_ETIMEDOUT) return 1;
            item->deadline_ns = cci__sisci_new_deadline(ep, item->conn); /* as those in the ring: see below */
        }
    }
    return 0;
}

static int cci__sisci_look_at_silent(cci__sisci *ep, cci__sisci_link *link, cci__sisci_late *late) {
    cci_list_t *at, *next;
    for (at = link->conns.silent.next; at != &link->conns.silent; at = next) {
        cci__sisci_conn *conn = CCI__CONTAINER(at, cci__sisci_conn, state_node);
        next = at->next;
        if ((int32_t)(link->out.acknowledged - conn->silent_end) >= 0) {
            cci__list_remove(&conn->state_node);
            continue;
        }
        if ((int32_t)(link->out.acknowledged - conn->silent_mark) >= 0) { /* the peer gets on */
            conn->silent_mark = conn->silent_end;
            conn->conn.deadline_ns = 0;
        }
        if (cci__sisci_is_late(ep, late, conn, &conn->conn.deadline_ns)) {
            late->status = cci__sisci_late_status(ep, link, conn, 1);
            if (late->status == CCI_ERR_RNR) { /* nobody would hear of it: the peer may have them when it has room */
                conn->conn.deadline_ns = cci__sisci_new_deadline(ep, conn);
                continue;
            }
            return 1;
        }
    }
    return 0;
}

/* A peer that had no buffer since the last look says so still: its word names the last record that waited. */
static void cci__sisci_note_stall(const cci__sisci *ep, cci__sisci_link *link) {
    uint32_t word;
    cci__sisci_read_ack(link);
    word = cci__sisci_stall_word(link);
    if (word != link->stall.peer_word || word == link->out.acknowledged * 2 + 1) link->stall.peer_ns = ep->base.now_ns;
    link->stall.peer_word = word;
}

/* What is new gets its deadline: it is behind all that has one. The earliest of these deadlines. */
static uint64_t cci__sisci_give_time(cci__sisci *ep, cci__sisci_link *link) {
    cci__sisci_late late;
    cci__sisci_op *op;
    cci__sisci_conn *conn;
    cci_list_t *at;
    late.earliest_ns = CCI__NEVER;
    cci__sisci_note_stall(ep, link);
    for (at = link->ops.prev; at != &link->ops; at = at->prev) {
        op = CCI__CONTAINER(at, cci__sisci_op, node);
        if (op->deadline_ns != 0) break;
        (void)cci__sisci_is_late(ep, &late, op->conn, &op->deadline_ns);
    }
    for (; link->time.fresh_item; link->time.fresh_item = link->time.fresh_item->next)
        if (!link->time.fresh_item->op && !cci__sisci_is_dead(link->time.fresh_item))
            (void)cci__sisci_is_late(ep, &late, link->time.fresh_item->conn, &link->time.fresh_item->deadline_ns);
    for (at = link->conns.silent.prev; at != &link->conns.silent; at = at->prev) {
        conn = CCI__CONTAINER(at, cci__sisci_conn, state_node);
        if (conn->conn.deadline_ns != 0) break;
        (void)cci__sisci_is_late(ep, &late, conn, &conn->conn.deadline_ns);
    }
    return late.earliest_ns;
}

/* Cancels what has no more time, or breaks its connection; gives the next deadline. */
static uint64_t cci__sisci_expire(cci__sisci *ep, cci__sisci_link *link) {
    cci__sisci_late late;
    for (;;) {
        late.earliest_ns = CCI__NEVER;
        late.op = NULL;
        cci__sisci_note_stall(ep, link);
        if (!cci__sisci_look_at_ops(ep, link, &late) && !cci__sisci_look_at_items(ep, link, &late) &&
            !cci__sisci_look_at_silent(ep, link, &late))
            return late.earliest_ns;
        if (late.op)
            cci__sisci_cancel_behind(ep, link, late.op);
        else
            cci__sisci_break_conn(ep, link, late.conn, late.status);
    }
}

/* Closes the links of a client on which there has been no connection for a while, once the peer knows all that it must.
 * The peer then finds its side lost. */
static void cci__sisci_close_idle(cci__sisci *ep) {
    cci_list_t *at, *next;
    cci__sisci_record record;
    for (at = ep->links.idle.next; at != &ep->links.idle; at = next) {
        cci__sisci_link *link = CCI__CONTAINER(at, cci__sisci_link, idle);
        next = at->next;
        if (link->state != CCI__SISCI_OPEN || link->conns.count > 0) {
            cci__list_remove(&link->idle);
            continue;
        }
        cci__sisci_read_ack(link);
        if (link->idle_ns > ep->base.now_ns || link->inbox.held > 0 || link->items ||
            !cci__list_empty(&link->conns.control) || link->out.acknowledged != link->out.head ||
            cci__sisci_read_record(link, &record)) {
            ep->times.idle_ns =
                cci__min64(ep->times.idle_ns, cci__max64(link->idle_ns, ep->base.now_ns + CCI__SISCI_LINK_IDLE_NS / 4));
            continue;
        }
        cci__sisci_free_link(ep, link);
    }
}

static int cci__sisci_has_deadlines(const cci__sisci_link *link) {
    return link->state == CCI__SISCI_OPEN &&
           (!cci__list_empty(&link->ops) || link->items || !cci__list_empty(&link->conns.silent));
}

/* Links on which something is new since the last look at the clock. */
static void cci__sisci_look_at_fresh(cci__sisci *ep) {
    while (!cci__list_empty(&ep->links.fresh)) {
        cci__sisci_link *link = CCI__CONTAINER(ep->links.fresh.next, cci__sisci_link, time.node);
        int renews = link->time.renews, begins = link->time.begins;
        cci__sisci_leave_time(link);
        if (!cci__sisci_has_deadlines(link)) continue;
        cci__list_append(&ep->links.timed, &link->time.node);
        if (begins) link->stall.peer_word = cci__sisci_stall_word(link);
        ep->times.due_ns =
            cci__min64(ep->times.due_ns, renews ? cci__sisci_expire(ep, link) : cci__sisci_give_time(ep, link));
    }
}

/* All links on which something has a deadline; some of it may have ended, or may get on. This is done when the earliest
 * deadline that was known has come, and now and then before, so that what gets on is noticed long before that. */
static void cci__sisci_look_at_timed(cci__sisci *ep) {
    cci_list_t *at, *next;
    ep->times.due_ns = CCI__NEVER;
    for (at = ep->links.timed.next; at != &ep->links.timed; at = next) {
        cci__sisci_link *link = CCI__CONTAINER(at, cci__sisci_link, time.node);
        next = at->next;
        if (cci__sisci_has_deadlines(link))
            ep->times.due_ns = cci__min64(ep->times.due_ns, cci__sisci_expire(ep, link));
        else
            cci__sisci_leave_time(link);
    }
    ep->times.walk_ns =
        ep->base.now_ns + cci__min64(cci__max64((ep->times.due_ns - ep->base.now_ns) / 16, 2 * CCI__MS), 64 * CCI__MS);
}

/* Looks at the clock, and at all that depends on it; gives the next deadline. */
static uint64_t cci__sisci_timers(cci__sisci *ep) {
    cci_timer_t *timer;
    uint64_t earliest_ns;
    ep->base.now_ns = cci__sci_now();
    ep->times.scan_ns = ep->base.now_ns + 2 * CCI__MS;
    while ((timer = cci__wheel_expire(&ep->base.wheel, ep->base.now_ns)) != NULL)
        cci__sisci_on_timer(ep, CCI__CONTAINER(timer, cci__sisci_conn, conn.timer));
    cci__sisci_look_at_fresh(ep);
    if (ep->times.due_ns <= ep->base.now_ns || ep->times.walk_ns <= ep->base.now_ns) cci__sisci_look_at_timed(ep);
    earliest_ns = ep->times.due_ns;
    if (ep->times.idle_ns <= ep->base.now_ns) {
        ep->times.idle_ns = CCI__NEVER;
        cci__sisci_close_idle(ep);
    }
    earliest_ns = cci__min64(earliest_ns, ep->times.idle_ns);
    if (cci__sisci_must_look(ep)) earliest_ns = cci__min64(earliest_ns, ep->base.now_ns + CCI__MS);
    if (!ep->far) {
        /* after the names in the directory */
        earliest_ns = cci__min64(earliest_ns, ep->base.now_ns + CCI__SCI_LOOK_MS * CCI__MS);
    }
    if (ep->links.handshakes > 0 || ep->paused > 0)
        earliest_ns = cci__min64(earliest_ns, ep->base.now_ns + 10 * CCI__MS);
    return cci__min64(earliest_ns, cci__wheel_deadline(&ep->base.wheel));
}

/* ==================================================================================================================
 * >>sisci-cci-work
 *
 * What cci_get_event() does besides giving an event: look at hot links, at marked ones and at one cold one, at groups,
 * and now and then at the clock and the SISCI device. The walk: cci__sisci_pump(), cci__sisci_serve(),
 * cci__sisci_receive(). The cost does not grow with the number of links.
 * ================================================================================================================== */

static void cci__sisci_look_at_device(cci__sisci *ep) {
    cci_list_t *at, *next;
    uint64_t now_ns;
    cci__sisci_run_callbacks(ep);
    cci__sisci_look_at_listener(ep);
    cci__sisci_step_groups(ep);
    now_ns = cci__sci_now();
    for (at = ep->links.steps.next; at != &ep->links.steps; at = next) {
        cci__sisci_link *link = CCI__CONTAINER(at, cci__sisci_link, step);
        next = at->next;
        cci__sisci_step_link(ep, link, now_ns);
    }
}

/* A link is lost, and what the peer had sent is taken. Its connections have not ended yet. */
static int cci__sisci_is_drained(cci__sisci_link *link) {
    cci__sisci_record record;
    return link->state == CCI__SISCI_LOST && !link->is_over && link->in.base && !cci__sisci_read_record(link, &record);
}

/* What we send gets on. Through an adapter there are no marks: a link counts as idle when nothing is under way. */
static inline void cci__sisci_serve_open(cci__sisci *ep, cci__sisci_link *link) {
    if (link->rma.views && link->rma.views->is_asking) cci__sisci_receive_grant(link);
    if (!cci__list_empty(&link->ops)) {
        cci__sisci_complete_acknowledged(ep, link);
        link->idle_rounds = 0;
    }
    link->out.dealt_with = link->out.acknowledged;
    if (link->items || !cci__list_empty(&link->conns.control)) {
        cci__sisci_advance(ep, link);
        link->idle_rounds = 0;
    }
    if (!cci__list_empty(&link->conns.silent)) link->idle_rounds = 0;
}

static inline uint32_t cci__sisci_work_of(const cci__sisci_link *link) {
    if (link->items || !cci__list_empty(&link->conns.control)) return CCI__SISCI_HAS_WORK | CCI__SISCI_QUEUES;
    return !cci__list_empty(&link->ops) || (link->rma.views && link->rma.views->is_asking) ? CCI__SISCI_HAS_WORK : 0u;
}

/* 1 if anything came. */
static int cci__sisci_serve(cci__sisci *ep, cci__sisci_link *link) {
    int count;
    if (link->state < CCI__SISCI_OPEN || !link->in.base) return 0;
    count = cci__sisci_receive(ep, link);
    while (CCI__UNLIKELY(cci__sisci_load(link->in.base + CCI__SISCI_AT_ACK + 4) != link->conns.peer_disconnects) &&
           count < 1024) {
        int more = cci__sisci_receive(ep, link); /* nothing completes before these records have come */
        if (more == 0) break;
        count += more;
    }
    if (count == 0 && !cci__list_empty(&link->due)) cci__sisci_acknowledge(link);
    if (link->state == CCI__SISCI_OPEN) cci__sisci_serve_open(ep, link);
    if (CCI__UNLIKELY(cci__sisci_is_drained(link))) cci__sisci_end_link(ep, link);
    link->is_busy = (uint8_t)(cci__sisci_work_of(link) | (!cci__list_empty(&link->due) ? CCI__SISCI_IS_DUE : 0u));
    /* A peer that does not know yet that we sleep sometimes is told before its link is left alone. */
    if (link->mirror && count == 0 && ++link->idle_rounds > 1000 && ep->links.hot_count > CCI__SISCI_HOT &&
        (link->told || !cci__sisci_is_sleeper(ep)))
        cci__sisci_make_cold(link);
    return count > 0;
}

/* Nothing has come and nothing waits: what most looks at a link find. */
static inline int cci__sisci_is_quiet(const cci__sisci_link *link) {
    return !link->is_busy && (!link->in.base || cci__sisci_load(cci__sisci_next_line(link)) != link->in.tail * 2 + 1);
}

/* Interrupts may have come from links that are not looked at otherwise: those through an adapter, others are marked. */
static void cci__sisci_wake_up(cci__sisci *ep) {
    cci_list_t *at, *next;
    ep->sleep.is_asleep = 0;
    cci__sisci_consume_interrupts(ep);
    cci__sisci_announce_sleep_to_groups(ep, 0);
    if (!ep->far) {
        cci__sisci_store(&ep->entrance.listener->sleeps, 0);
        return;
    }
    for (at = ep->links.cold.next; at != &ep->links.cold; at = next) {
        cci__sisci_link *link = CCI__CONTAINER(at, cci__sisci_link, node);
        next = at->next;
        if (!cci__sisci_is_quiet(link)) (void)cci__sisci_serve(ep, link);
    }
}

/* What is not done in each round: the clock is read in one of 32, if the program polls without pause. 1 if it is
 * time to look after deadlines. */
static int cci__sisci_look_around(cci__sisci *ep, uint32_t round) {
    uint64_t now_ns;
    if ((round & 3) != 0 && !ep->sleep.is_asleep) return 0;
    now_ns = cci__sci_now();
    cci__polls_looked(&ep->base.polls, now_ns, 31);
    if (ep->base.polls.left == 0) /* a program that calls seldom has its deadlines looked after in each call */
        ep->rounds = 32;
    if (round == 0 || ep->sleep.is_asleep || ep->links.handshakes > 0 || now_ns >= ep->times.look_ns) {
        cci__sisci_look_at_device(ep);
        ep->times.look_ns = now_ns + CCI__SISCI_DEVICE_LOOK_NS;
    }
    if (ep->sleep.is_asleep) cci__sisci_wake_up(ep);
    return (round & 31) == 0 && now_ns >= ep->times.scan_ns;
}

/* The link of an endpoint that has but one, and nothing else to look at. */
static inline cci__sisci_link *cci__sisci_only(const cci__sisci *ep) {
    const cci_list_t *first = ep->links.hot.next;
    return first != &ep->links.hot && first->next == &ep->links.hot && cci__list_empty(&ep->links.cold) &&
                   !ep->groups && ep->links.handshakes == 0 && !cci__sisci_is_sleeper(ep)
               ? CCI__CONTAINER(ep->links.hot.next, cci__sisci_link, node)
               : NULL;
}

/* A link in `stuck` whose record was taken in another turn. */
static int cci__sisci_has_moved(const cci_list_t *node) {
    return !cci__sisci_is_stuck(CCI__CONTAINER(node, const cci__sisci_link, stall.node));
}

/* The program has returned something: a link whose next record waits for that is looked at, one in each call while
 * there is a buffer for it, so that each of many gets its turn; all of them if there is none, for a long message may
 * need none. */
static void cci__sisci_look_at_stuck(cci__sisci *ep) {
    int has_event = ep->base.evq.free_events[CCI_EVQ_RECV] && ep->base.evq.recv_out < ep->base.evq.recv_limit, is_last;
    cci__sisci_group *group;
    for (group = ep->groups; group; group = group->next) group->stalled = 0;
    do {
        while (!cci__list_empty(&ep->links.stuck) && cci__sisci_has_moved(ep->links.stuck.next))
            cci__list_remove(ep->links.stuck.next);
        is_last = !has_event || ep->base.evq.free_buffers;
        if (has_event && !cci__list_empty(&ep->links.stuck)) {
            cci__sisci_link *link = CCI__CONTAINER(ep->links.stuck.next, cci__sisci_link, stall.node);
            cci__list_remove(&link->stall.node);
            cci__sisci_make_hot(link);
        }
    } while (!is_last && !cci__list_empty(&ep->links.stuck));
    ep->is_short = !cci__list_empty(&ep->links.stuck);
    ep->returned = ep->is_short && is_last && has_event;
}

static int cci__sisci_serve_hot(cci__sisci *ep) {
    cci_list_t *at = ep->links.hot.next, *next;
    uint32_t left;
    int came = 0;
    for (left = ep->links.hot_count; left > 0 && at != &ep->links.hot;
         left--, at = next) { /* what is served may go to the end */
        cci__sisci_link *link = CCI__CONTAINER(at, cci__sisci_link, node);
        next = at->next;
        if (cci__sisci_is_quiet(link) && (!link->mirror || ep->links.hot_count <= CCI__SISCI_HOT)) {
            link->batch = 1;
            continue;
        }
        came |= cci__sisci_serve(ep, link);
    }
    return came;
}

/* One of many has told what it had to: the words for its peer lie in one line. It is looked at again later. */
static void cci__sisci_leave_soon(cci__sisci_link *link) {
    if (link->state != CCI__SISCI_OPEN || link->mirror || link->is_busy & CCI__SISCI_HAS_WORK ||
        cci__sisci_load(cci__sisci_next_line(link)) == link->in.tail * 2 + 1)
        return;
    if (link->is_busy & CCI__SISCI_IS_DUE) cci__sisci_acknowledge(link);
    cci__sisci_watch(link);
}

/* The marks that one word of the listener has, and the links there that are to be looked at once more. */
static inline uint64_t cci__sisci_marks_at(cci__sisci *ep, uint32_t word) {
    uint64_t *shared = &ep->entrance.listener->marks[word];
    if (__atomic_load_n(shared, __ATOMIC_RELAXED) == 0) return ep->marks.pending[word];
    return ep->marks.pending[word] |= __atomic_exchange_n(shared, 0, __ATOMIC_SEQ_CST);
}

static inline cci__sisci_link *cci__sisci_marked(const cci__sisci *ep, uint32_t number) {
    return number < ep->marks.count ? ep->marks.of[number].link : NULL;
}

/* Looks at the links that one word of marks tells of; how many. */
static uint32_t cci__sisci_follow_word(cci__sisci *ep, uint32_t word, int *came) {
    uint64_t bits = ep->marks.pending[word];
    uint32_t count = 0;
    ep->marks.pending[word] = 0;
    for (; bits; bits &= bits - 1, count++) {
        cci__sisci_link *link = cci__sisci_marked(ep, word * 64 + cci__ctz64(bits));
        if (link && cci__sisci_stays_cold(link)) {
            link->batch = cci__sisci_is_quiet(link) ? 1 : link->batch;
            if (!cci__sisci_is_quiet(link)) *came |= cci__sisci_serve(ep, link);
            if (link->watch & 1) cci__sisci_watch_acks(link);
        } else if (link) {
            link->is_watched = 0; /* its peer will not mark it again */
            if (!cci__sisci_is_quiet(link)) *came |= cci__sisci_serve(ep, link);
            cci__sisci_make_hot(link);
            if (ep->marks.count > CCI__SISCI_FEW) cci__sisci_leave_soon(link);
        }
    }
    return count;
}

/* Looks at the links that are marked, as far as there are not too many: then the others come first in the next call. */
static int cci__sisci_follow_marks(cci__sisci *ep) {
    uint32_t words = (ep->marks.count + 63) / 64, begin = ep->marks.at / 64 % words, i, count = 0;
    int came = 0;
    ep->marks.at = 0;
    for (i = 0; i < words && count < CCI__SISCI_MARKED_BATCH; i++) {
        uint32_t word = begin + i < words ? begin + i : begin + i - words;
        if (cci__sisci_marks_at(ep, word) != 0) {
            count += cci__sisci_follow_word(ep, word, &came);
            ep->marks.at = word * 64 + 64;
        }
    }
    return came;
}

static int cci__sisci_has_marks(const cci__sisci *ep) {
    uint32_t i, words = ep->far ? 0 : (ep->marks.count + 63) / 64;
    for (i = 0; i < words; i++)
        if (__atomic_load_n(&ep->entrance.listener->marks[i], __ATOMIC_RELAXED) != 0) return 1;
    return 0;
}

/* A record that can be taken. One that waits can be when the peer has cancelled it, unless that is known already. */
static int cci__sisci_has_record(const cci__sisci_link *link) {
    const uint8_t *line = cci__sisci_next_line(link);
    return cci__sisci_load(line) == link->in.tail * 2 + 1 &&
           (!cci__sisci_is_stuck(link) ||
            (!link->stall.is_answering && (cci__sisci_load(line + 4) & CCI__SISCI_CANCELLED)));
}

/* The peer has consumed more since the answer to the next record found no space. */
static int cci__sisci_has_more_room(cci__sisci_link *link) {
    uint32_t before = link->out.acknowledged;
    if (!link->stall.is_answering || !cci__sisci_is_stuck(link)) return 0;
    cci__sisci_read_ack(link);
    return link->out.acknowledged != before;
}

/* Something has come, or an acknowledgement that somebody waits for, perhaps known since the clock was looked at. */
static int cci__sisci_has_work(cci__sisci_link *link) {
    if (link->state < CCI__SISCI_OPEN || !link->in.base) return 0;
    if (cci__sisci_has_record(link) || cci__sisci_is_drained(link) || cci__sisci_has_more_room(link)) return 1;
    return link->state == CCI__SISCI_OPEN && cci__sisci_wants_acks(link) &&
           (link->out.acknowledged != link->out.dealt_with ||
            (int32_t)(cci__sisci_load(link->in.base + CCI__SISCI_AT_ACK) - link->out.acknowledged) > 0);
}

/* How many links are looked at in each call, however idle. With many of them a mark costs less than the looks. */
static inline uint32_t cci__sisci_most_hot(const cci__sisci *ep) {
    return ep->far ? CCI__SISCI_HOT : ep->marks.count <= CCI__SISCI_FEW ? CCI__SISCI_FEW : CCI__SISCI_OF_MANY;
}

/* There are more links than are looked at in each call: the peers of those to which nothing has happened for longest
 * are told to mark them, and in another call such a link is left alone. */
static void cci__sisci_leave_quiet_ones(cci__sisci *ep) {
    cci_list_t *at = ep->links.hot.next, *next;
    uint32_t left;
    for (left = ep->links.hot_count - cci__sisci_most_hot(ep); left > 0 && at != &ep->links.hot; left--, at = next) {
        cci__sisci_link *link = CCI__CONTAINER(at, cci__sisci_link, node);
        next = at->next;
        if (link->mirror || !cci__list_empty(&link->due) || cci__sisci_has_work(link) || cci__sisci_can_move(link))
            continue;
        if (cci__sisci_is_watched(link) || link->state != CCI__SISCI_OPEN)
            cci__sisci_make_cold(link);
        else
            cci__sisci_watch(link);
    }
}

/* One of the links that are left alone, by turns: a mark may have been missed. */
static int cci__sisci_look_at_a_cold_one(cci__sisci *ep) {
    cci__sisci_link *link = CCI__CONTAINER(ep->links.cold.next, cci__sisci_link, node);
    cci__list_remove(&link->node);
    cci__list_append(&ep->links.cold, &link->node);
    return !cci__sisci_is_quiet(link) && cci__sisci_serve(ep, link);
}

/* One round of work; 1 if anything came. */
static int cci__sisci_pump(cci__sisci *ep) {
    int came, is_late = 0;
    uint32_t round = ep->rounds++;
    if (CCI__UNLIKELY((round & 31) == 0 || ep->sleep.is_asleep || ep->links.handshakes > 0))
        is_late = cci__sisci_look_around(ep, round);
    if (CCI__UNLIKELY(ep->returned)) cci__sisci_look_at_stuck(ep);
    came = cci__sisci_serve_hot(ep);
    if (ep->marks.count > 0 && (!cci__list_empty(&ep->links.cold) || cci__sisci_is_sleeper(ep)))
        came |= cci__sisci_follow_marks(ep);
    if (ep->groups) came |= cci__sisci_receive_groups(ep);
    if (!cci__list_empty(&ep->links.cold) && (ep->far || (round & 7) == 0)) came |= cci__sisci_look_at_a_cold_one(ep);
    if (ep->links.hot_count > cci__sisci_most_hot(ep)) cci__sisci_leave_quiet_ones(ep);
    if (CCI__UNLIKELY(is_late)) (void)cci__sisci_timers(ep);
    cci__sisci_flush(ep);
    ep->links.only = cci__sisci_only(ep);
    return came;
}

/* ==================================================================================================================
 * >>sisci-cci-sleep
 *
 * Before a sleeper sleeps, each peer is told so, and then everything is looked at once more: whatever a peer stored
 * before it saw the word is found, and for what it stores later it sends an interrupt. The OS handle is an epoll
 * descriptor over the SISCI device, the interrupt, a timer and an eventfd for events that wait.
 * ================================================================================================================== */

static int cci__sisci_has_events(const cci__sisci *ep) {
    return ((uintptr_t)ep->base.evq.urgent.head | (uintptr_t)ep->base.evq.done.head | (uintptr_t)ep->received.head) !=
           0;
}

static int cci__sisci_messages(cci__endpoint_t *base, const cci_evq_fifo_t **received, int *is_full) {
    const cci__sisci *ep = (const cci__sisci *)base;
    *received = &ep->received;
    *is_full = ep->is_short || (base->evq.free_buffer_count == 0 && ep->pools.recv_made >= base->recv_buf_count);
    return ep->received.head != NULL;
}

#ifndef CCI_NO_WAKE
/* Could a send succeed that was refused? Also where it would fail for another reason. */
static int cci__sisci_may_send(void *endpoint, const cci__refusal_t *refusal) {
    cci__sisci *ep = (cci__sisci *)endpoint;
    const cci__sisci_conn *conn = (const cci__sisci_conn *)(void *)cci_conn_at(&ep->base.conns, refusal->index);
    if (conn->conn.state != CCI_CONN_OPEN || !conn->link) return 1;
    return (ep->pools.free_ops || ep->pools.op_made < ep->pools.most[CCI__SISCI_AN_OP]) &&
           cci__sisci_may_have(conn->link, CCI__SISCI_AN_OP) &&
           (!conn->link->items || ((ep->pools.free_items || ep->pools.item_made < ep->pools.most[CCI__SISCI_AN_ITEM]) &&
                                   cci__sisci_may_have(conn->link, CCI__SISCI_AN_ITEM)));
}

#endif

/* Is the OS handle to be readable on account of events? */
static int cci__sisci_is_due(cci__sisci *ep) {
    CCI__WAKES(if (CCI__UNLIKELY(ep->base.wakes.is_used)) return cci__endpoint_wakes(&ep->base));
    return cci__sisci_has_events(ep);
}

/* Tells a peer that it must interrupt from now on; 0: it can't be told. */
static int cci__sisci_announce_sleep(cci__sisci_link *link) {
    if (!link->mirror) {
        if (link->out.base && (link->state == CCI__SISCI_READY || link->state == CCI__SISCI_OPEN))
            cci__sisci_watch(link);
        return 1;
    }
    if (!link->told && link->state == CCI__SISCI_OPEN) {
        link->told = 1;
        cci__sisci_write_word(link, CCI__SISCI_AT_SLEEP, 1);
    }
    return link->ep->far->confirm_sleep(link);
}

/* Tells all peers that they must interrupt from now on; 0 if something came meanwhile. */
static int cci__sisci_announce_sleep_to_all(cci__sisci *ep) {
    cci_list_t *at;
    if (ep->returned) return 0;
    for (at = ep->links.hot.next; at != &ep->links.hot; at = at->next)
        if (!cci__sisci_announce_sleep(CCI__CONTAINER(at, cci__sisci_link, node))) return 0;
    if (!ep->far) cci__sisci_store(&ep->entrance.listener->sleeps, 1);
    cci__sisci_announce_sleep_to_groups(ep, 1);
    CCI__SCI_FENCE(SEQ_CST); /* the words before this, the peers' stores after */
    if (cci__sisci_groups_have_work(ep) || cci__sisci_has_marks(ep)) return 0;
    for (at = ep->links.hot.next; at != &ep->links.hot; at = at->next) {
        cci__sisci_link *link = CCI__CONTAINER(at, cci__sisci_link, node);
        if (cci__sisci_has_work(link) || cci__sisci_can_move(link)) return 0;
    }
    return 1;
}

static void cci__sisci_set_readable(cci__sisci *ep, int readable) {
    uint64_t one = 1;
    ssize_t n;
    if (readable == ep->sleep.is_readable) return;
    ep->sleep.is_readable = readable;
    n = readable ? write(ep->sleep.self, &one, sizeof one) : read(ep->sleep.self, &one, sizeof one);
    (void)n;
}

/* An alarm that comes too early costs a look at the clock, and moving it a system call: so it is moved only to an
 * earlier time, and when it has gone off. */
static void cci__sisci_set_alarm(cci__sisci *ep, uint64_t at_ns) {
    struct itimerspec when;
    if (at_ns >= ep->times.armed_ns && ep->times.armed_ns > ep->base.now_ns) return;
    ep->times.armed_ns = at_ns;
    memset(&when, 0, sizeof when);
    if (at_ns != CCI__NEVER) {
        at_ns = at_ns ? at_ns : 1;
        when.it_value.tv_sec = (time_t)(at_ns / 1000000000u);
        when.it_value.tv_nsec = (long)(at_ns % 1000000000u);
    }
    (void)timerfd_settime(ep->sleep.timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void cci__sisci_wake_thread(cci__endpoint_t *base) {
    uint64_t one = 1;
    ssize_t n = write(((cci__sisci *)base)->sleep.timer, &one, sizeof one); /* the thread's eventfd */
    (void)n;
}

/* At the end of every call: makes the OS handle tell the truth, and sees that a sleeper is woken. */
static void cci__sisci_arm(cci__endpoint_t *base) {
    cci__sisci *ep = (cci__sisci *)base;
    int tries = 0;
    if (!ep->received.head) cci__sisci_acknowledge_all(ep);
    cci__sisci_flush(ep);
    if (ep->base.has_fd && cci__sisci_is_due(ep)) {
        cci__sisci_set_readable(ep, 1);
        return;
    }
    if (ep->device.progress_thread) {
        if (ep->base.has_fd) cci__sisci_set_readable(ep, 0);
        if (ep->sleep.thread_sleeps && !cci__sisci_announce_sleep_to_all(ep)) cci__sisci_wake_thread(base);
        return;
    }
    if (!ep->base.has_fd) return;
    for (tries = 0; tries < 4; tries++) {
        uint64_t deadline_ns = cci__sisci_timers(ep);
        if (cci__sisci_is_due(ep)) break;
        cci__sisci_acknowledge_all(ep); /* also what was taken just now, and what wakes nobody */
        if (cci__sisci_announce_sleep_to_all(ep)) {
            cci__sisci_flush(ep);
            ep->sleep.is_asleep = 1;
            cci__sisci_set_readable(ep, 0);
            cci__sisci_set_alarm(ep, deadline_ns);
            return;
        }
        (void)cci__sisci_pump(ep);
    }
    cci__sisci_set_readable(ep, 1);
}

#ifndef CCI_NO_THREADS
static void cci__sisci_help(void *arg) {
    cci__sisci *ep = (cci__sisci *)arg;
    uint32_t idle = 0;
    cci__sisci_lock(ep);
    while (!ep->base.stopping) {
        struct pollfd item[3];
        uint64_t deadline_ns, ignored;
        int fds[2];
        idle = cci__sisci_pump(ep) ? 0 : idle + 1;
        deadline_ns = cci__sisci_timers(ep);
        if (ep->base.has_fd) cci__sisci_set_readable(ep, cci__sisci_is_due(ep));
        cci__sisci_acknowledge_all(ep);
        if (idle < 8 || !cci__sisci_announce_sleep_to_all(ep)) {
            cci__sisci_flush(ep);
            cci__sisci_unlock(ep);
            (void)sched_yield();
            cci__sisci_lock(ep);
            continue;
        }
        cci__sisci_flush(ep);
        cci__sisci_event_fds(ep, fds);
        item[0].fd = fds[0];
        item[1].fd = fds[1];
        item[2].fd = ep->sleep.timer;
        item[0].events = item[1].events = item[2].events = POLLIN;
        deadline_ns =
            cci__min64(deadline_ns, ep->base.now_ns + 10 * CCI__MS); /* calls of the program bring new deadlines */
        ep->sleep.thread_sleeps = 1;
        cci__sisci_unlock(ep);
        (void)poll(item, 3, cci__sci_until(deadline_ns));
        cci__sisci_lock(ep);
        ep->sleep.thread_sleeps = 0;
        ep->sleep.is_asleep = 1;
        if (item[2].revents) {
            ssize_t n = read(ep->sleep.timer, &ignored, sizeof ignored);
            (void)n;
        }
    }
    cci__sisci_unlock(ep);
}
#endif

/* Waits until a BLOCKING operation is complete; its status. */
static int cci__sisci_block(cci__sisci *ep, cci__sisci_op *op) {
    uint32_t idle = 0;
    int status;
    while (!op->done) {
        idle = cci__sisci_pump(ep) ? 0 : idle + 1;
        if (op->done) break;
        cci__sisci_unlock(ep);
        if (idle > 2000) {
            struct timespec t = {0, 50000};
            nanosleep(&t, NULL);
        } else if ((idle & 15) == 15) {
            (void)sched_yield();
        }
        cci__sisci_lock(ep);
    }
    status = op->status;
    cci__sisci_drop_op(ep, op);
    return status;
}

/* ==================================================================================================================
 * >>sisci-cci-endpoint
 *
 * An endpoint is one allocation, a SISCI device, the segment of its listener with an interrupt, and slabs that come
 * later. cci__sisci_free() ends one that was made in part, too. The lock is not needed before others know the endpoint,
 * nor once its thread has ended.
 * ================================================================================================================== */

/* How many sends may be pending. What nobody has set is the same for each connection, and large for all together. */
static void cci__sisci_limit_sends(cci__sisci *ep, uint32_t count) {
    ep->base.send_buf_count = ep->pools.each[CCI__SISCI_AN_ITEM] = count;
    ep->pools.each[CCI__SISCI_AN_OP] = count + CCI__SISCI_EXTRA_OPS;
    ep->pools.most[CCI__SISCI_AN_OP] =
        CCI__SISCI_EXTRA_OPS + (ep->pools.is_set ? count : cci__max32(2 * count, CCI__SISCI_OPS));
    ep->pools.most[CCI__SISCI_AN_ITEM] =
        ep->pools.is_set ? count : cci__max32(2 * count, CCI__SISCI_QUEUED / ep->pools.stride);
}

static int cci__sisci_allocate(cci__sisci *ep, const uint64_t *keys) {
    uint8_t **slabs = (uint8_t **)cci__sisci_memory_of(ep, CCI__CONN_SLABS * sizeof *slabs);
    ep->rma.regions = (cci_rma_region_t *)cci__sisci_memory_of(ep, CCI__SISCI_REGIONS * sizeof *ep->rma.regions);
    if (!slabs || !ep->rma.regions) return 0;
    cci_evq_init(&ep->base.evq);
    cci_conn_table_init(&ep->base.conns, keys, sizeof(cci__sisci_conn), slabs);
    cci_rma_table_init(&ep->rma.table, keys + 2, ep->rma.regions, CCI__SISCI_SLAB, NULL, 0, NULL, 0, NULL, 0);
    ep->rma.table.endpoint_id = keys[4];
    ep->base.evq.recv_limit = ep->base.recv_buf_count;
    cci__sisci_limit_sends(ep, ep->base.send_buf_count);
    return 1;
}

/* A number from 1 on, or 0 when the text is none. */
static uint32_t cci__sisci_number(const char *text) {
    uint64_t n = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && n <= UINT32_MAX; at++) n = n * 10 + (uint64_t)(*at - '0');
    return *at || at == text || n > UINT32_MAX ? 0 : (uint32_t)n;
}

/* Says in the log what there is not enough of for an endpoint. */
static int cci__sisci_report_lack(const char *what) {
    char text[200];
    int error = errno;
    snprintf(text, sizeof text, "sisci: no endpoint for lack of %s%s%s", what, error ? ": " : "",
             error ? strerror(error) : "");
    cci_log(CCI_LOG_ERROR, text);
    return error == EFBIG ? CCI_ERROR : CCI_ENOMEM; /* a limit of file sizes is no lack */
}

static int cci__sisci_open_listener(cci__sisci *ep, const char *service) {
    cci__sci_error_t error;
    char port[6];
    uint64_t name =
        cci_conn_named_port(service, service ? cci_service_name(ep->base.api.pub.device, service) : NULL, port);
    uint32_t id = service ? cci__sisci_number(name ? port : service) : ep->device.service;
    if (service && id == 0) return CCI_EINVAL;
    error =
        cci__sisci_make_segment(ep, &ep->entrance.segment, &id, CCI__SISCI_LISTENER_SIZE, cci__sisci_on_visit, NULL);
    if (error != CCI__SCI_ERR_OK) {
        return error == CCI__SCI_ERR_SEGMENTID_USED ? (int)CCI_EBUSY
                                                    : cci__sisci_report_lack("shared memory, or descriptors for it");
    }
    ep->entrance.service = id;
    ep->entrance.listener = (cci__sisci_listener *)ep->sci->call.SCIMapLocalSegment(
        ep->entrance.segment, &ep->entrance.map, 0, CCI__SISCI_LISTENER_SIZE, NULL, 0, &error);
    if (error != CCI__SCI_ERR_OK) {
        ep->entrance.map = NULL;
        return cci__sisci_report_lack("address space");
    }
    if (ep->far) memset(ep->entrance.listener, 0, CCI__SISCI_LISTENER_SIZE);
    if (!cci__sisci_make_interrupt(ep)) return cci__sisci_report_lack("descriptors for an interrupt");
    ep->entrance.listener->interrupt = ep->entrance.interrupt_number;
    ep->entrance.listener->name = name;
    cci__sisci_store(&ep->entrance.listener->magic, CCI__SISCI_MAGIC);
    return cci__sisci_offer(ep, ep->entrance.segment) ? CCI_SUCCESS : CCI_ERROR;
}

static int cci__sisci_watch_fd(cci__sisci *ep, int fd) {
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    return fd < 0 || epoll_ctl(ep->sleep.epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* What sleeping needs. */
static int cci__sisci_open_handle(cci__sisci *ep) {
    int fds[2];
    if (!cci__sisci_is_sleeper(ep)) return 1;
    ep->sleep.timer = ep->device.progress_thread ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
                                                 : timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (ep->sleep.timer < 0 || !ep->base.has_fd) return ep->sleep.timer >= 0;
    ep->sleep.epoll = epoll_create1(EPOLL_CLOEXEC);
    ep->sleep.self = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ep->sleep.epoll < 0 || ep->sleep.self < 0 || !cci__sisci_watch_fd(ep, ep->sleep.self)) return 0;
    cci__sisci_event_fds(ep, fds);
    return ep->device.progress_thread || (cci__sisci_watch_fd(ep, ep->sleep.timer) && cci__sisci_watch_fd(ep, fds[1]) &&
                                          cci__sisci_watch_fd(ep, fds[0]));
}

static void cci__sisci_free_links(cci__sisci *ep, cci_list_t *list) {
    while (!cci__list_empty(list)) cci__sisci_free_link(ep, CCI__CONTAINER(list->next, cci__sisci_link, node));
}

static void cci__sisci_free(cci__sisci *ep) {
    cci__sisci_memory *block;
    cci__sci_error_t error;
    uint32_t i;
    while (ep->groups) cci__sisci_leave_group(ep, ep->groups);
    for (i = 0; i < ep->base.conns.slab_count * CCI__CONN_SLAB; i++) {
        cci__sisci_conn *conn = (cci__sisci_conn *)(void *)cci_conn_at(&ep->base.conns, i);
        if (conn->data) cci_release(conn->data);
    }
    cci__sisci_free_links(ep, &ep->links.hot);
    cci__sisci_free_links(ep, &ep->links.cold);
    cci_release(ep->marks.of);
    cci_release(ep->servers.bucket);
    cci__sisci_close_fd(ep->sleep.epoll);
    cci__sisci_close_fd(ep->sleep.self);
    cci__sisci_close_fd(ep->sleep.timer);
    cci__endpoint_free(&ep->base);
    while (ep->rma.shared) {
        cci__sisci_shared *shared = ep->rma.shared;
        ep->rma.shared = shared->next;
        cci__sisci_remove_shared(ep, shared);
        cci_release(shared);
    }
    cci__sisci_remove_shared(ep, &ep->rma.registry);
    if (ep->entrance.map) ep->sci->call.SCIUnmapSegment(ep->entrance.map, 0, &error);
    if (ep->entrance.segment) cci__sisci_remove_listener(ep);
    cci__sisci_close_sd(ep);
    for (block = ep->pools.slabs; block;) {
        cci__sisci_memory *next = block->next;
        cci_release(block);
        block = next;
    }
    cci_release(ep->allocation);
}

static int cci__sisci_start(cci__sisci *ep, const char *service) {
    uint64_t keys[5];
    int status;
    if (cci_random(keys, sizeof keys) != CCI_SUCCESS || cci_random(&ep->probe, sizeof ep->probe) != CCI_SUCCESS)
        return CCI_ERROR;
    errno = 0;
    status = cci__sisci_open_sd(ep);
    if (status != CCI_SUCCESS) return status;
    status = cci__sisci_open_listener(ep, service);
    if (status != CCI_SUCCESS) return status;
    if (!cci__sisci_allocate(ep, keys)) return cci__sisci_report_lack("memory");
    return cci__sisci_open_handle(ep) ? (int)CCI_SUCCESS : cci__sisci_report_lack("descriptors for an OS handle");
}

static const cci_endpoint_ops_t *cci__sisci_ops(void);
static const cci__engine_t *cci__sisci_engine(void);

/* The rest is closed by the software SISCI beneath, which learns of fork() by itself. */
static void cci__sisci_forked(cci_endpoint_base_t *base) {
    cci__sisci *ep = (cci__sisci *)(void *)base;
    int fd[3], i;
    fd[0] = ep->sleep.epoll, fd[1] = ep->sleep.self, fd[2] = ep->sleep.timer;
    ep->sleep.epoll = ep->sleep.self = ep->sleep.timer = -1;
    for (i = 0; i < 3; i++) cci__sisci_close_fd(fd[i]);
    CCI__WAKES(cci__wakes_close(&ep->base.wakes));
}

static int cci__sisci_create(cci_device_t *device, const char *service, int flags, cci_endpoint_base_t **endpoint,
                             cci_os_handle_t *fd) {
    void *memory = cci_alloc(sizeof(cci__sisci) + CCI__SISCI_LINE);
    cci__sisci *ep;
    int status;
    (void)flags;
    if (!memory) return CCI_ENOMEM;
    ep = (cci__sisci *)cci__sisci_align(memory);
    memset(ep, 0, sizeof *ep);
    ep->allocation = memory;
    memcpy(&ep->device, cci_device_data(device), sizeof ep->device);
    cci__endpoint_init(&ep->base, cci__sisci_engine(), device, fd != NULL);
    ep->base.api.ops = cci__sisci_ops();
    ep->base.api.forked = cci__sisci_forked;
    ep->far = ep->device.is_far ? cci__sisci_adapter() : NULL;
    ep->sci = ep->far ? ep->far->provider() : &cci__sci_software;
    ep->adapter = ep->device.adapter;
    ep->is_sleeper = ep->base.has_fd || ep->device.progress_thread;
    ep->sleep.epoll = ep->sleep.self = ep->sleep.timer = -1;
    ep->times.armed_ns = ep->times.idle_ns = ep->times.due_ns = CCI__NEVER;
    ep->pools.is_set = ep->device.send_buf_count > 0;
    ep->base.send_buf_count = ep->pools.is_set ? ep->device.send_buf_count : 1024;
    ep->base.recv_buf_count = ep->device.recv_buf_count;
    ep->base.send_timeout_us = ep->device.send_timeout_us;
    ep->base.max_send_size = ep->device.max_send_size;
    ep->pools.stride = (cci__max32(ep->base.max_send_size, CCI_CONN_REQ_LEN + CCI__SISCI_URI) + 63) & ~63u;
    ep->received.tail = &ep->received.head;
    cci__list_init(&ep->links.hot);
    cci__list_init(&ep->links.cold);
    cci__list_init(&ep->links.notify);
    cci__list_init(&ep->links.due);
    cci__list_init(&ep->links.steps);
    cci__list_init(&ep->links.timed);
    cci__list_init(&ep->links.fresh);
    cci__list_init(&ep->links.stuck);
    cci__list_init(&ep->links.idle);
    cci__list_init(&ep->ending);
    ep->marks.free = CCI__SISCI_NO_MARK;
    ep->base.now_ns = cci__sci_now();
    cci__wheel_init(&ep->base.wheel, ep->base.now_ns);
    status = cci__sisci_start(ep, service);
    if (status != CCI_SUCCESS) {
        cci__sisci_free(ep);
        return status;
    }
    if (fd) *fd = ep->sleep.epoll;
    *endpoint = &ep->base.api;
#ifndef CCI_NO_THREADS
    if (ep->device.progress_thread && !cci__endpoint_start_thread(&ep->base, cci__sisci_help)) {
        cci__sisci_free(ep);
        return CCI_ENOMEM;
    }
#endif
    return CCI_SUCCESS;
}

/* The peers learn that their connections were closed. */
static void cci__sisci_announce_end(cci_list_t *links) {
    cci_list_t *at;
    for (at = links->next; at != links; at = at->next) {
        cci__sisci_link *link = CCI__CONTAINER(at, cci__sisci_link, node);
        if (link->state == CCI__SISCI_OPEN) cci__sisci_write_word(link, CCI__SISCI_AT_LEFT, 1);
    }
}

static int cci__sisci_destroy(cci_endpoint_base_t *base) {
    cci__sisci *ep = (cci__sisci *)(void *)base;
    uint32_t i;
    cci__endpoint_stop_thread(&ep->base);
    cci__sisci_lock(ep);
    (void)cci__sisci_pump(ep); /* what has arrived already is taken, and said to be */
    cci__sisci_acknowledge_all(ep);
    cci__sisci_announce_end(&ep->links.hot);
    cci__sisci_announce_end(&ep->links.cold);
    cci__sisci_flush(ep);
    for (i = 0; i < ep->rma.table.region_count; i++)
        if (ep->rma.regions[i].key != 0) cci__sisci_end_registration(ep, &ep->rma.regions[i]);
    cci__sisci_wait_for_copies(ep);
    cci__sisci_unlock(ep);
    cci__sisci_free(ep);
    return CCI_SUCCESS;
}

/* ==================================================================================================================
 * >>sisci-cci-connect
 *
 * cci_connect(), cci_accept(), cci_reject() and cci_disconnect(): each queues a record of the handshake on the
 * connection's link, which is made first where there is none.
 * ================================================================================================================== */

/* Keeps the data of an answer until its record is in the peer's inbox; a status. */
static int cci__sisci_keep_answer(cci__sisci *ep, cci__sisci_conn *conn, const void *data, uint32_t data_len) {
    cci_conn_answer_t *answer;
    if (ep->kept_answers >= CCI__SISCI_REQUESTS) return CCI_ENOBUFS;
    answer = (cci_conn_answer_t *)cci_alloc(sizeof *answer + data_len);
    if (!answer) return CCI_ENOMEM;
    memcpy(answer + 1, data, data_len);
    conn->data = answer;
    conn->data_len = (uint16_t)data_len;
    ep->kept_answers++;
    return CCI_SUCCESS;
}

static int cci__sisci_decide(cci__endpoint_t *base, cci_evq_event_t *request, int accepts, void *context,
                             const void *data, uint32_t data_len) {
    cci__sisci *ep = (cci__sisci *)base;
    cci__sisci_conn *conn = (cci__sisci_conn *)request->owner;
    cci_evq_event_t *event = NULL;
    int status = CCI_SUCCESS;
    if (accepts && (event = cci__endpoint_event(&ep->base)) == NULL) return CCI_ENOMEM;
    if (data_len > 0) status = cci__sisci_keep_answer(ep, conn, data, data_len);
    if (status != CCI_SUCCESS) {
        if (event) cci_evq_return_event(&ep->base.evq, event);
        return status;
    }
    ep->base.conns.undecided--;
    conn->event = event;
    conn->conn.pub.context = context;
    if (conn->cancelled) {
        if (accepts) cci__sisci_post_event(ep, conn, CCI_EVENT_ACCEPT, CCI_ETIMEDOUT);
        cci__sisci_close_conn(ep, conn);
    } else if (accepts) {
        conn->conn.state = CCI_CONN_ACCEPTED;
        cci__sisci_queue_control(ep, conn, CCI__SISCI_ACCEPT);
    } else {
        conn->conn.state = CCI_CONN_REJECTED;
        conn->closing = 1;
        cci__list_remove(&conn->state_node);
        cci__sisci_queue_control(ep, conn, CCI__SISCI_REJECT);
    }
    return CCI_SUCCESS;
}

/* "4:1234", or "1234" alone: the service, 0 when it is none. */
static int cci__sisci_parse(const char *address, uint32_t *node, uint32_t *service) {
    const char *colon = strchr(address, ':');
    unsigned long number;
    *service = 0;
    if (!colon) return CCI_EINVAL;
    *service = cci__sisci_number(colon + 1);
    if (*service == 0 || colon == address) return CCI_EINVAL;
    number = strspn(address, "0123456789") == (size_t)(colon - address) ? strtoul(address, NULL, 10) : 0;
    *node = number <= 65535 ? (uint32_t)number : 0;
    return *node != 0 ? CCI_SUCCESS : CCI_EADDRNOTAVAIL;
}

/* NULL when there is neither a link nor the memory or the descriptor for one. */
static cci__sisci_link *cci__sisci_link_that_works(cci__sisci *ep, uint32_t node, uint32_t service) {
    cci__sisci_link *link = cci__sisci_link_to(ep, node, service);
    if (link && link->state == CCI__SISCI_CONNECTING && !link->in.base && link->conns.count == 0) {
        cci_log(CCI_LOG_ERROR, "no memory or descriptor for a new link");
        cci__sisci_free_link(ep, link);
        return NULL;
    }
    return link;
}

/* `name`: NULL, or the server's, which is to be sought. */
static int cci__sisci_connect_locked(cci__sisci *ep, uint32_t node, uint32_t service, const cci_conn_name_t *name,
                                     const cci__connect_t *call) {
    cci__sisci_link *link = cci__sisci_link_that_works(ep, node, service);
    cci_evq_event_t *event = link ? cci__endpoint_event(&ep->base) : NULL;
    cci__sisci_conn *conn = event ? cci__sisci_open_conn(ep, link, call->attribute, call->context) : NULL;
    size_t size = sizeof(cci_conn_answer_t) + CCI_CONN_REQ_LEN + (name ? sizeof(cci_conn_seek_t) : 0);
    cci_conn_answer_t *copy = conn ? (cci_conn_answer_t *)cci_alloc(size) : NULL;
    cci_conn_seek_t *seek;
    if (!conn || !copy) {
        if (conn) {
            conn->conn.state = CCI_CONN_CONNECTING;
            cci__sisci_close_conn(ep, conn);
        }
        if (event) cci_evq_return_event(&ep->base.evq, event);
        return CCI_ENOMEM;
    }
    if (call->data_len) memcpy(copy + 1, call->data, call->data_len);
    conn->event = event;
    conn->data = copy;
    conn->data_len = (uint16_t)call->data_len;
    conn->conn.is_client = 1;
    conn->conn.state = CCI_CONN_CONNECTING;
    ep->base.now_ns = cci__sci_now();
    conn->conn.deadline_ns = call->timeout_ns == CCI__NEVER ? CCI__NEVER : ep->base.now_ns + call->timeout_ns;
    copy->token = name != NULL;
    seek = cci__sisci_seek_of(conn);
    if (!seek) {
        cci__sisci_ask_to_connect(ep, conn);
        return CCI_SUCCESS;
    }
    memset(seek, 0, sizeof *seek);
    seek->name = *name;
    seek->pass_ns = ep->base.now_ns;
    seek->until_ns = ep->base.now_ns + CCI__SEEK_NS;
    conn->waits = 1;
    cci__sisci_seek(ep, conn, seek);
    return CCI_SUCCESS;
}

/* "4/storage": the node, as for a number, and what the name stands for, of which the first port is the service. */
static int cci__sisci_parse_name(const char *address, const char *text, uint32_t *node, uint32_t *service,
                                 cci_conn_name_t *name) {
    char number[8] = "";
    size_t length = (size_t)(text - address) - 1;
    if (length == 0 || cci_conn_hash_name(text, name) != CCI_SUCCESS) return CCI_EINVAL;
    if (length > 5) return CCI_EADDRNOTAVAIL;
    memcpy(number, address, length);
    number[length] = ':';
    number[length + 1] = '1';
    if (cci__sisci_parse(number, node, service) == CCI_EINVAL) return CCI_EINVAL;
    *service = name->ports[0];
    return *node != 0 ? CCI_SUCCESS : CCI_EADDRNOTAVAIL;
}

static int cci__sisci_connect(cci_endpoint_base_t *base, const char *address, const void *data, uint32_t data_len,
                              cci_conn_attribute_t attribute, void *context, int flags, const struct timeval *timeout) {
    cci__sisci *ep = (cci__sisci *)(void *)base;
    uint32_t node, service;
    cci_conn_name_t name;
    cci__connect_t call;
    const char *text = cci_service_name(base->pub.device, address);
    int is_group = attribute > CCI_CONN_ATTR_UU;
    int status = text ? cci__sisci_parse_name(address, text, &node, &service, &name)
                      : cci__sisci_parse(address, &node, &service);
    (void)flags;
    if (status == CCI_SUCCESS && is_group != (node == CCI__SCI_BROADCAST_NODEID)) status = CCI_EINVAL;
    if (status == CCI_SUCCESS && ep->sci == &cci__sci_software && node != CCI__SCI_NODE && !is_group)
        status = CCI_EADDRNOTAVAIL; /* there is no other */
    if (status == CCI_SUCCESS && ep->far && is_group) status = CCI_ERR_NOT_IMPLEMENTED;
    if (status != CCI_SUCCESS) return status;
    memset(&call, 0, sizeof call);
    call.data = data;
    call.data_len = data_len;
    call.attribute = attribute;
    call.context = context;
    call.timeout_ns = cci__timeout_ns(timeout);
    cci__sisci_lock(ep);
    status = is_group ? cci__sisci_join_group(ep, service, attribute, context, call.timeout_ns)
                      : cci__sisci_connect_locked(ep, node, service, text ? &name : NULL, &call);
    cci__sisci_arm(&ep->base);
    cci__sisci_unlock(ep);
    return status;
}

/* The program has given something back: what waits for that is looked at again, before a sleeper sleeps. */
static inline void cci__sisci_retry(cci__sisci *ep) {
    ep->returned |= ep->is_short;
}

/* The block that a message was read in goes back to the peer. */
static void cci__sisci_return_block(cci__sisci_link *link, cci_evq_event_t *event) {
    uint32_t block = event->state - 1;
    link->inbox.block_held[block] = 0;
    link->inbox.held--;
    cci__sisci_give_back(link, block);
    cci__sisci_flush_for(link->ep, link);
    event->owner = NULL;
    event->state = 0;
}

/* Takes back an event of a message. */
static inline void cci__sisci_return_message(cci__sisci *ep, cci_evq_event_t *event) {
    if (CCI__UNLIKELY(event->owner != NULL)) cci__sisci_return_block((cci__sisci_link *)event->owner, event);
    cci__evq_take_back(&ep->base.evq, event);
    cci__sisci_retry(ep);
}

/* What is pending ends, and what waits for the program is dropped when its turn comes. */
static void cci__sisci_forget(cci__sisci *ep, cci__sisci_conn *conn) {
    conn->conn.token = 0;
    if (conn->link) cci__sisci_fail_ops(conn->link, conn, CCI_ERR_DISCONNECTED);
    cci__timer_disarm(&ep->base.wheel, &conn->conn.timer);
    cci__list_remove(&conn->state_node);
}

static void cci__sisci_disconnect(cci__endpoint_t *base, cci_conn_t *of) {
    cci__sisci *ep = (cci__sisci *)base;
    cci__sisci_conn *conn = (cci__sisci_conn *)(void *)of;
    cci__sisci_link *link = conn->link;
    cci__sisci_forget(ep, conn);
    if (!link) {
        cci__sisci_leave_group(ep, conn->group);
        cci__sisci_close_conn(ep, conn);
    } else if (of->state == CCI_CONN_OPEN && link->state == CCI__SISCI_OPEN) {
        conn->closing = 1;
        conn->closed_at = link->in.tail;
        cci__sisci_write_word(link, CCI__SISCI_AT_ACK + 4, ++link->conns.disconnects);
        cci__sisci_queue_control(ep, conn, CCI__SISCI_DISCONNECT);
    } else if (conn->control_type && link->state == CCI__SISCI_OPEN) {
        conn->closing = 1; /* when the peer has been told */
    } else {
        cci__sisci_close_conn(ep, conn);
    }
}

#ifndef CCI_NO_LINGER
static void cci__sisci_linger(cci__endpoint_t *base, cci_conn_t *conn, uint64_t until_ns) {
    cci__timer_arm(&base->wheel, &conn->timer, until_ns);
}
#endif

/* ==================================================================================================================
 * >>sisci-cci-events
 *
 * Events are given in the order: those of connections; messages in the order in which they came, completions behind the
 * messages that came before them. An event of a connection that the program has closed is dropped when its turn comes.
 * Most messages of an endpoint with a single link are given without a round of work.
 * ================================================================================================================== */

static void cci__sisci_work(cci__endpoint_t *base) {
    (void)cci__sisci_pump((cci__sisci *)base);
}

/* The program may sleep until then: what it has taken is acknowledged, and the next poll reads the clock. */
static uint64_t cci__sisci_next_deadline(cci__endpoint_t *base) {
    cci__sisci *ep = (cci__sisci *)base;
    uint64_t at;
    if (!ep->received.head) cci__sisci_acknowledge_all(ep);
    cci__sisci_flush(ep);
    ep->times.walk_ns = 0; /* a look at all links that have deadlines: the program may be late for the next one */
    at = cci__sisci_timers(ep);
    ep->times.scan_ns = ep->base.now_ns;
    if (ep->rounds != 0) ep->rounds = 32; /* 0: somebody asked for a look at the device besides */
    return ep->received.head || ep->returned ? 0 : at;
}

static void cci__sisci_return_control(cci__sisci *ep, cci_evq_event_t *event) {
    ep->requests -= event->base.pub.type == CCI_EVENT_CONNECT_REQUEST;
    cci_evq_return_event(&ep->base.evq, event);
    cci__sisci_post_ends(ep);
    cci__sisci_retry(ep); /* a request holds a buffer */
}

/* Is the event about a connection that the program has closed? */
static inline int cci__sisci_is_stale(const cci_evq_event_t *event, const cci__sisci_conn *conn) {
    return ((const cci__sisci_event *)(const void *)event)->token != conn->conn.token || CCI__LINGERS(&conn->conn);
}

/* Events of connections come before all others. */
static cci_evq_event_t *cci__sisci_next_urgent(cci__sisci *ep) {
    cci_evq_event_t *next;
    while ((next = cci_evq_next(&ep->base.evq.urgent)) != NULL) {
        if (next->pool == CCI_EVQ_STATUS) {
            if (cci__notices_hand_out(&ep->base.notices, &ep->base.evq, next)) return next;
            continue;
        }
        if (next->base.pub.type != CCI_EVENT_KEEPALIVE_TIMEDOUT ||
            !cci__sisci_is_stale(next, (const cci__sisci_conn *)next->owner))
            return next;
        cci__sisci_return_control(ep, next);
    }
    return NULL;
}

/* An event about the end of a connection has come to the front of a queue. 1: the program gets it now. */
static int cci__sisci_is_end_due(cci__sisci *ep, cci_evq_event_t *event, const cci_evq_fifo_t *from) {
    if (cci__sisci_is_stale(event, (const cci__sisci_conn *)event->owner)) {
        cci__sisci_return_control(ep, event);
        return 0;
    }
    if (from == &ep->received) {
        event->state = ep->taken_total;
        cci_evq_post(&ep->base.evq.done,
                     event); /* the connection's messages have gone before it; now its completions do */
        return 0;
    }
    cci__event_give_disconnect(event);
    return 1;
}

/* The next event of a queue that is not of a connection that the program has closed. */
static inline cci_evq_event_t *cci__sisci_next_of(cci__sisci *ep, cci_evq_fifo_t *fifo) {
    cci_evq_event_t *next;
    while ((next = cci_evq_next(fifo)) != NULL) {
        ep->taken_total += fifo == &ep->received;
        if (CCI__LIKELY(next->pool == CCI_EVQ_RECV)) {
            if (CCI__LIKELY(
                    !cci__sisci_is_stale(next, (const cci__sisci_conn *)(const void *)next->base.pub.recv.connection)))
                return next;
            cci__sisci_return_message(ep, next);
        } else if (next->pool == CCI_EVQ_OPERATION || cci__sisci_is_end_due(ep, next, fifo)) {
            return next;
        }
    }
    return NULL;
}

/* An event that is there: of connections first, then messages and completions as they came. */
static inline int cci__sisci_next(cci__sisci *ep, cci_event_t **event) {
    cci_evq_event_t *next = CCI__UNLIKELY(ep->base.evq.urgent.head != NULL) ? cci__sisci_next_urgent(ep) : NULL;
    if (!next) {
        const cci_evq_event_t *done = ep->base.evq.done.head;
        int done_first = done && (!ep->received.head || (int32_t)(done->state - ep->taken_total) <= 0);
        next = cci__sisci_next_of(ep, done_first ? &ep->base.evq.done : &ep->received);
    }
    if (!next && ep->received.head) next = cci__sisci_next_of(ep, &ep->received);
    if (!next && ep->base.evq.done.head) next = cci__sisci_next_of(ep, &ep->base.evq.done);
    if (!next) return CCI_EAGAIN;
    if (CCI__UNLIKELY(next->pool == CCI_EVQ_OPERATION && ((cci__sisci_op *)(void *)next)->is_first_rnr))
        ((cci__sisci_op *)(void *)next)->conn->unready = 0; /* what is sent from now on starts afresh */
    *event = &next->base.pub;
    return CCI_SUCCESS;
}

/* What most calls of a program that polls find, told as fast as can be: a round in which there is nothing to do. */
static inline int cci__sisci_found_nothing(cci__sisci *ep) {
    if (!ep->links.only || (ep->rounds & 31) == 0 || !cci__sisci_is_quiet(ep->links.only)) return 0;
    /* Most messages fill two lines: when they come, both are asked for at once. */
    __builtin_prefetch(cci__sisci_next_line(ep->links.only) + CCI__SISCI_LINE);
    ep->rounds++;
    ep->links.only->batch = 1;
    return 1;
}

/* Gives a short message at once. NULL: it has to go the long way. */
static inline CCI__HOT_PATH cci_evq_event_t *cci__sisci_give_short(cci__sisci *ep, cci__sisci_link *link,
                                                                   const uint8_t *line) {
    uint32_t begun = link->in.tail;
    cci_evq_event_t *event;
    if (link->batch == 1) cci__sisci_expect_answer(link);
    event = cci__sisci_receive_short(ep, link, line);
    if (!event) return NULL;
    event->next = NULL;
    link->batch = 2;
    cci__sisci_schedule_ack(ep, link, begun);
    cci__sisci_flush_for(ep, link);
    return event;
}

/* The same for the message that comes next: it is given without a round. NULL: there is none, or more is to do. */
static inline CCI__HOT_PATH cci_evq_event_t *cci__sisci_found_message(cci__sisci *ep) {
    cci__sisci_link *link = ep->links.only;
    const uint8_t *line;
    if (!link || ep->returned || link->state != CCI__SISCI_OPEN || link->mirror || link->is_busy & CCI__SISCI_HAS_WORK)
        return NULL;
    line = cci__sisci_next_line(link);
    if (cci__sisci_load(line) != link->in.tail * 2 + 1) return NULL;
    if ((ep->rounds & 31) != 0)
        ep->rounds++; /* a look that is due comes with the next call that finds nothing */
    else if ((++ep->given & 31) == 0)
        return NULL;
    link->is_watched = 0;
    return cci__sisci_give_short(ep, link, line);
}

/* What a look at one of several links finds. */
enum { CCI__SISCI_FOUND_NOTHING, CCI__SISCI_FOUND_MESSAGE, CCI__SISCI_FOUND_WORK };

static int cci__sisci_look_at(cci__sisci *ep, cci__sisci_link *link, cci_evq_event_t **event) {
    const uint8_t *line;
    if (link->state != CCI__SISCI_OPEN || link->is_busy & CCI__SISCI_HAS_WORK) return CCI__SISCI_FOUND_WORK;
    line = cci__sisci_next_line(link);
    if (cci__sisci_load(line) == link->in.tail * 2 + 1) {
        *event = cci__sisci_give_short(ep, link, line);
        return *event ? CCI__SISCI_FOUND_MESSAGE : CCI__SISCI_FOUND_WORK;
    }
    link->batch = 1;
    if (link->is_busy) cci__sisci_acknowledge(link);
    return CCI__SISCI_FOUND_NOTHING;
}

static int cci__sisci_look_at_hot(cci__sisci *ep, cci_evq_event_t **event) {
    cci_list_t *at;
    for (at = ep->links.hot.next; at != &ep->links.hot; at = at->next) {
        cci__sisci_link *link = CCI__CONTAINER(at, cci__sisci_link, node);
        int found;
        if (cci__sisci_is_quiet(link)) {
            link->batch = 1;
            continue;
        }
        found = cci__sisci_look_at(ep, link, event);
        if (found == CCI__SISCI_FOUND_MESSAGE) cci__sisci_look_again(link);
        if (found != CCI__SISCI_FOUND_NOTHING) return found;
    }
    return CCI__SISCI_FOUND_NOTHING;
}

/* The same for a cold link that is marked. */
static inline int cci__sisci_look_at_marked(cci__sisci *ep, uint32_t number, cci_evq_event_t **event) {
    cci__sisci_link *link = cci__sisci_marked(ep, number);
    uint64_t bit = UINT64_C(1) << (number & 63);
    int found = CCI__SISCI_FOUND_NOTHING;
    if (link && !link->is_hot) {
        if (!cci__sisci_stays_cold(link)) return CCI__SISCI_FOUND_WORK;
        found = cci__sisci_look_at(ep, link, event);
        if (CCI__UNLIKELY(link->watch & 1)) cci__sisci_watch_acks(link);
    }
    if (found == CCI__SISCI_FOUND_MESSAGE)
        ep->marks.at = number + 1; /* the turn of the next one */
    else if (found == CCI__SISCI_FOUND_NOTHING)
        ep->marks.pending[number / 64] &= ~bit;
    return found;
}

/* Its turn comes with the next message: what is needed then is asked for meanwhile. */
static inline void cci__sisci_expect_marked(const cci__sisci *ep, uint32_t number) {
    const cci__sisci_link *link = cci__sisci_marked(ep, number);
    if (link && link->in.base) {
        __builtin_prefetch(&link->ep);
        __builtin_prefetch(cci__sisci_next_line(link));
        __builtin_prefetch(cci__sisci_next_line(link) + CCI__SISCI_LINE);
    }
}

static int cci__sisci_look_at_marks(cci__sisci *ep, cci_evq_event_t **event) {
    uint32_t words = (ep->marks.count + 63) / 64, word = ep->marks.at / 64 % words, i;
    uint64_t mask = ~UINT64_C(0) << (ep->marks.at & 63);
    for (i = 0; i <= words; i++, mask = ~UINT64_C(0)) { /* what comes before `at` in its word is last */
        uint64_t bits = cci__sisci_marks_at(ep, word) & mask;
        for (; bits; bits &= bits - 1) {
            int found;
            if (bits & (bits - 1)) cci__sisci_expect_marked(ep, word * 64 + cci__ctz64(bits & (bits - 1)));
            found = cci__sisci_look_at_marked(ep, word * 64 + cci__ctz64(bits), event);
            if (found != CCI__SISCI_FOUND_NOTHING) return found;
        }
        word = word + 1 < words ? word + 1 : 0;
    }
    return CCI__SISCI_FOUND_NOTHING;
}

/* The same for an endpoint that polls several links: a look at each that is hot or marked, up to the first message. */
static int cci__sisci_look_at_several(cci__sisci *ep, cci_evq_event_t **event) {
    int found;
    if (ep->links.only || ep->returned || (ep->rounds & 31) == 0 || ep->links.handshakes > 0 || ep->groups || ep->far ||
        cci__sisci_is_sleeper(ep) || ep->links.hot_count > cci__sisci_most_hot(ep))
        return CCI__SISCI_FOUND_WORK;
    found = cci__sisci_look_at_hot(ep, event);
    if (found == CCI__SISCI_FOUND_NOTHING && !cci__list_empty(&ep->links.cold)) {
        if (ep->marks.count > 0) found = cci__sisci_look_at_marks(ep, event);
        if (found == CCI__SISCI_FOUND_NOTHING && (ep->rounds & 7) == 0)
            return CCI__SISCI_FOUND_WORK; /* a cold one's turn */
    }
    ep->rounds += found != CCI__SISCI_FOUND_WORK;
    cci__sisci_flush(ep);
    return found;
}

/* The same for completions, while nothing else waits for a program that polls. */
static inline cci_evq_event_t *cci__sisci_found_completion(cci__sisci *ep) {
    cci_evq_event_t *event = ep->base.evq.done.head;
    if (!event || ep->base.evq.urgent.head || ep->received.head || cci__sisci_is_sleeper(ep) ||
        event->pool != CCI_EVQ_OPERATION || ((cci__sisci_op *)(void *)event)->is_first_rnr ||
        ((ep->given + 1) & 31) == 0)
        return NULL;
    ep->given++;
    return cci_evq_next(&ep->base.evq.done);
}

/* Events that wait are given at once. In one call of 32 the links have their turn all the same, and the clock is
 * read: a time-out is not to wait until the program has taken all events. */
static inline int cci__sisci_gives_only(cci__sisci *ep) {
    if ((++ep->given & 31) != 0) return 1;
    ep->rounds = ep->rounds == 0 ? 0 : 32; /* 0: somebody asked for a look at the device besides */
    return 0;
}

/* The same with a round of work, unless events wait. */
static CCI__RARE int cci__sisci_get_event_locked(cci__sisci *ep, cci_event_t **event) {
    int status, has_events = cci__sisci_has_events(ep);
    if (!has_events && !ep->links.only) {
        cci_evq_event_t *given = NULL;
        int found = cci__sisci_look_at_several(ep, &given);
        if (found == CCI__SISCI_FOUND_MESSAGE) {
            *event = &given->base.pub;
            return CCI_SUCCESS;
        }
        if (found == CCI__SISCI_FOUND_WORK) (void)cci__sisci_pump(ep);
    } else if (has_events ? !cci__sisci_gives_only(ep) : !cci__sisci_found_nothing(ep)) {
        (void)cci__sisci_pump(ep);
    }
    status = cci__sisci_next(ep, event);
    if (status != CCI_SUCCESS && ep->base.evq.recv_out > 0 &&
        (ep->base.evq.recv_out >= ep->base.evq.recv_limit ||
         (ep->base.evq.free_buffer_count == 0 && ep->pools.recv_made >= ep->base.recv_buf_count)))
        status = CCI_ENOBUFS; /* the program holds what messages are received in */
    if (cci__sisci_is_sleeper(ep)) {
        cci__sisci_arm(&ep->base);
        if (status == CCI_EAGAIN && cci__sisci_has_events(ep)) status = cci__sisci_next(ep, event);
    }
    return status;
}

#ifndef CCI_NO_STATS
static CCI__RARE void cci__sisci_tally_taken(const cci__sisci *ep, const cci_event_t *event) {
    const cci__sisci_conn *conn = (const cci__sisci_conn *)(const void *)event->recv.connection;
    if (event->type == CCI_EVENT_RECV) cci__tally_taken(&ep->base.tallies, conn->conn.index, event->recv.len);
}
#endif

static int cci__sisci_get_event(cci_endpoint_base_t *base, cci_event_t **event) {
    cci__sisci *ep = (cci__sisci *)(void *)base;
    const cci_evq_event_t *found;
    int status = CCI_SUCCESS;
    cci__sisci_lock(ep);
    found = CCI__LIKELY(!cci__sisci_has_events(ep)) ? cci__sisci_found_message(ep) : cci__sisci_found_completion(ep);
    if (found)
        *event = (cci_event_t *)(uintptr_t)&found->base.pub;
    else
        status = cci__sisci_get_event_locked(ep, event);
    CCI__STATS(if (CCI__UNLIKELY(ep->is_counted) && status == CCI_SUCCESS) cci__sisci_tally_taken(ep, *event));
    cci__sisci_unlock(ep);
    return status;
}

/* The next record is there: what was taken is acknowledged behind that, unless it is much. */
static int cci__sisci_more_comes(const cci__sisci *ep) {
    const cci__sisci_link *link = ep->links.only;
    return link && link->in.tail - link->acknowledged < 2 * CCI__SISCI_BATCH && !cci__sisci_is_stuck(link) &&
           cci__sisci_load(cci__sisci_next_line(link)) == link->in.tail * 2 + 1;
}

/* Who polls acknowledges with the next record, or when nothing comes any more; but at once what somebody waits for, for
 * the program may not call again for long. */
static inline void cci__sisci_message_returned(cci__sisci *ep) {
    if (cci__sisci_is_sleeper(ep)) {
        cci__sisci_arm(&ep->base); /* a message may have waited for this */
        return;
    }
    if (CCI__UNLIKELY(ep->is_asked) && !ep->received.head && !cci__sisci_more_comes(ep)) {
        cci__sisci_acknowledge_all(ep);
        cci__sisci_flush(ep);
    }
}

static int cci__sisci_return_event(cci_event_base_t *base) {
    cci_evq_event_t *event = (cci_evq_event_t *)(void *)base;
    cci__sisci *ep = (cci__sisci *)(void *)base->endpoint;
    int status = CCI_SUCCESS;
    cci__sisci_lock(ep);
    if (base->pub.type == CCI_EVENT_RECV) {
        cci__sisci_return_message(ep, event);
        cci__sisci_message_returned(ep);
    } else if (event->pool == CCI_EVQ_OPERATION) {
        cci__sisci_drop_op(ep, (cci__sisci_op *)(void *)event);
    } else if (base->pub.type == CCI_EVENT_NONE || (base->pub.type == CCI_EVENT_CONNECT_REQUEST && event->state == 0)) {
        status = CCI_EINVAL;
    } else {
        if (base->pub.type == CCI_EVENT_CONNECT) cci_release(cci_conn_take_answer(base->pub.connect.data_ptr));
        if (event->pool == CCI_EVQ_STATUS)
            cci__notices_return(&ep->base.notices, &ep->base.evq, event);
        else
            cci__sisci_return_control(ep, event);
        if (cci__sisci_is_sleeper(ep))
            cci__sisci_arm(&ep->base); /* the end of a connection, or a message, may have waited for this */
    }
    cci__sisci_unlock(ep);
    return status;
}

/* ---- options ---- */

static int cci__sisci_set_send_count(cci__endpoint_t *base, uint32_t count) {
    cci__sisci *ep = (cci__sisci *)base;
    if (count == 0 || count > 65536) return CCI_ERANGE;
    cci__sisci_limit_sends(ep, cci__max32(count, ep->base.send_buf_count));
    return CCI_SUCCESS;
}

static int cci__sisci_set_recv_count(cci__endpoint_t *base, uint32_t count) {
    cci__sisci *ep = (cci__sisci *)base;
    if (count == 0 || count > 65536) return CCI_ERANGE;
    cci_evq_limit_buffers(&ep->base.evq, count);
    ep->base.evq.recv_limit = count;
    ep->base.recv_buf_count = count;
    cci__sisci_retry(ep);
    return CCI_SUCCESS;
}

/* What endpoints can do: in the shared memory of this host, there with RMA by copies alone, and through an adapter. */
#define CCI__SISCI_CAPS(can)                                                                                           \
    {                                                                                                                  \
        CCI_CAN_ORDERED | CCI_CAN_RMA | CCI_CAN_FENCE | CCI__CAN_ATOMICS | CCI__CAN_WAKE | (can), UINT64_MAX, 0,       \
            CCI_CONN_REQ_LEN, CCI__CONN_MOST, 65536, 65536, CCI__LIST_SEGMENTS, CCI__NAME_LONGEST, {                   \
            0                                                                                                          \
        }                                                                                                              \
    }

static const cci_caps_t *cci__sisci_caps_of(const cci__sisci_device *d) {
    static const cci_caps_t table[] = {CCI__SISCI_CAPS(CCI_CAN_MULTICAST | CCI_CAN_RMA_SHARED),
                                       CCI__SISCI_CAPS(CCI_CAN_MULTICAST), CCI__SISCI_CAPS(0)};
    return &table[d->is_far ? 2 : d->rma_mode >= CCI__SISCI_RMA_COPY];
}

static int cci__sisci_uri(uint32_t node, uint32_t service, char **uri) {
    char text[32];
    if (service == 0) return CCI_ERR_NOT_IMPLEMENTED; /* the peer has not said it */
    snprintf(text, sizeof text, "%lu:%lu", (unsigned long)node, (unsigned long)service);
    return cci_make_uri("sisci", text, uri);
}

#ifndef CCI_NO_STATS
/* What there is now. */
static int cci__sisci_set_counting(cci__endpoint_t *base, uint32_t value) {
    int status = cci__tallies_set(&base->tallies, value, base->conns.slab_count);
    ((cci__sisci *)base)->is_counted = base->tallies.counted != NULL;
    return status;
}

static void cci__sisci_endpoint_stats(cci__endpoint_t *base, cci_endpt_stats_t *stats) {
    stats->events_waiting += cci_evq_count(&((const cci__sisci *)base)->received);
    stats->recv_buffers_used = base->evq.recv_out; /* those that wait, too */
    stats->requests_refused = ((const cci__sisci *)base)->refusals;
}

static void cci__sisci_connection_stats(cci__endpoint_t *base, const cci_conn_t *conn, cci_conn_stats_t *stats) {
    if (base->tallies.counted) cci__tally_tell(cci__tally_at(&base->tallies, conn->index), stats);
}
#endif

static void cci__sisci_caps(cci__endpoint_t *base, const cci_conn_t *conn, cci_caps_t *caps) {
    *caps = *cci__sisci_caps_of(&((const cci__sisci *)base)->device);
    caps->max_send_size = base->max_send_size;
    if (conn && !((const cci__sisci_conn *)(const void *)conn)->link)
        caps->can &= ~(uint64_t)CCI_CAN_WAKE; /* groups have no place for the flag */
}

/* Of a peer, or for NULL of the endpoint. */
static int cci__sisci_uri_of(cci__endpoint_t *base, const cci_conn_t *of, char **uri) {
    const cci__sisci *ep = (const cci__sisci *)base;
    const cci__sisci_conn *conn = (const cci__sisci_conn *)(const void *)of;
    const cci__sisci_link *link = conn ? conn->link : NULL;
    if (!conn) return cci__sisci_uri(ep->node, ep->entrance.service, uri);
    if (!link) return cci__sisci_uri(CCI__SCI_BROADCAST_NODEID, conn->group->id, uri);
    return cci__sisci_uri(link->peer.node, of->is_client ? link->join.service : link->peer.card.service, uri);
}

/* ==================================================================================================================
 * >>sisci-cci-messages
 *
 * cci_send(): into the ring at once where there is space and nothing waits; else into the link's queue.
 * ================================================================================================================== */

/* What can't go at once waits. */
static int cci__sisci_queue(cci__sisci *ep, cci__sisci_conn *conn, const struct iovec *data, uint32_t count,
                            uint32_t length, cci__sisci_op *op, int flags) {
    cci__sisci_item *item = cci__sisci_new_item(ep, conn);
    if (!item) return CCI_ENOBUFS;
    item->has_message = 1;
    item->is_wake = (flags & CCI_FLAG_WAKE) != 0;
    item->length = length;
    item->data = item->buffer;
    if ((flags & CCI_FLAG_NO_COPY) && op && count == 1)
        item->data = (const uint8_t *)data[0].iov_base;
    else
        cci__sisci_gather(item->buffer, data, count);
    item->op = op;
    if (op) op->item = item;
    cci__sisci_add_item(conn->link, item);
    return CCI_SUCCESS;
}

/* Ordered: the program has not heard yet that messages were cancelled. What it sends meanwhile ends likewise. */
static int cci__sisci_end_unready(cci__sisci *ep, cci__sisci_conn *conn, cci__sisci_op *op, int flags) {
    cci__sisci_link *link = conn->link;
    if (op) {
        op->is_cancelled = op->posted = 1;
        op->end = link->out.head;
        op->status = CCI_ERR_RNR;
        cci__sisci_add_op(link, op);
        cci__sisci_complete_acknowledged(ep, link);
    }
    return flags & CCI_FLAG_BLOCKING ? cci__sisci_block(ep, op) : (int)CCI_SUCCESS;
}

static CCI__RARE int cci__sisci_send_locked(cci__sisci *ep, cci__sisci_conn *conn, const struct iovec *data,
                                            uint32_t count, uint32_t length, void *context, int flags) {
    cci__sisci_link *link = conn->link;
    cci__sisci_op *op = NULL;
    int status = CCI_SUCCESS, posted;
    if (!link) return cci__sisci_send_multicast(ep, conn, data, count, length, context, flags);
    if (conn->conn.state != CCI_CONN_OPEN || link->state != CCI__SISCI_OPEN) return CCI_ERR_DISCONNECTED;
    if (!(flags & CCI_FLAG_SILENT) || (flags & CCI_FLAG_BLOCKING)) {
        op = cci__sisci_new_op(ep, conn, context, flags);
        if (!op) return CCI_ENOBUFS;
    }
    if (CCI__UNLIKELY(conn->unready)) {
        cci__sisci_issued(ep, conn, length);
        return cci__sisci_end_unready(ep, conn, op, flags);
    }
    CCI__WAKES(ep->wake_word = flags & CCI_FLAG_WAKE ? CCI__SISCI_WAKE : 0);
    posted = !link->items && cci__list_empty(&link->conns.control) &&
             cci__sisci_post_message(link, conn, data, count, length, op);
    CCI__WAKES(ep->wake_word = 0);
    if (!posted && conn->conn.pub.attribute != CCI_CONN_ATTR_UU) /* what is unreliable and finds no room is lost */
        status = cci__sisci_queue(ep, conn, data, count, length, op, flags);
    if (status != CCI_SUCCESS) {
        cci__sisci_drop_op(ep, op);
        return status;
    }
    cci__sisci_issued(ep, conn, length);
    if (!link->is_hot) cci__sisci_make_hot(link);
    if (op && conn->conn.pub.attribute == CCI_CONN_ATTR_UU)
        cci__sisci_complete(ep, op, CCI_SUCCESS);
    else if (op)
        cci__sisci_add_op(link, op);
    cci__sisci_flush(ep);
    if (flags & CCI_FLAG_BLOCKING) status = cci__sisci_block(ep, op);
    if (cci__sisci_is_sleeper(ep)) cci__sisci_arm(&ep->base);
    return status;
}

/* What most messages are: in one piece, short, with room for it. 0: it goes the long way. */
static inline CCI__HOT_PATH int cci__sisci_send_short(cci__sisci *ep, cci__sisci_conn *conn, const uint8_t *data,
                                                      uint32_t length, void *context, int flags) {
    cci__sisci_op *op = NULL;
    cci__sisci_link *link = conn->link;
    uint32_t lines = length <= CCI__SISCI_FIRST_LINE ? 1 : 2, word = CCI__SISCI_MESSAGE | length << 16, place;
    uint8_t *line;
    if (conn->conn.pub.attribute > CCI_CONN_ATTR_RU || conn->conn.state != CCI_CONN_OPEN || conn->unready ||
        link->state != CCI__SISCI_OPEN || link->is_busy & CCI__SISCI_QUEUES)
        return 0; /* others than these two attributes: unreliable, or without a link */
    place = link->out.head & (link->out.lines - 1);
    if (place + lines > link->out.lines || link->out.head + lines + 1 - link->out.acknowledged > link->out.lines)
        return 0;
    if (!(flags & CCI_FLAG_SILENT) && (op = cci__sisci_new_op(ep, conn, context, flags)) == NULL) return 0;
    line = link->out.ring + (size_t)place * CCI__SISCI_LINE;
    if (lines == 1) {
        cci__sisci_copy(line + CCI__SISCI_HEADER, data, length);
    } else { /* the line that is polled last: then the peer takes it away only once */
        __atomic_store_n((uint32_t *)(void *)(line + CCI__SISCI_LINE), 0, __ATOMIC_RELAXED); /* no record begins here */
        cci__sisci_copy(line + CCI__SISCI_LINE + 4, data + CCI__SISCI_FIRST_LINE, length - CCI__SISCI_FIRST_LINE);
        cci__sisci_copy(line + CCI__SISCI_HEADER, data, 32);
        cci__sisci_copy(line + CCI__SISCI_HEADER + 32, data + 32, CCI__SISCI_FIRST_LINE - 32);
    }
    lines = cci__sisci_span(link, lines, &word);
    if (op) cci__sisci_posted(link, op, lines, word |= CCI__SISCI_ASKS);
    cci__sisci_publish(link, line, lines, word, conn->conn.peer_index);
    if (op)
        cci__sisci_add_op(link, op);
    else
        cci__sisci_watch_silent(link, conn);
    if (!link->is_hot && (op || !cci__sisci_stays_cold(link))) cci__sisci_make_hot(link);
    cci__sisci_flush_for(ep, link);
    if (cci__sisci_is_sleeper(ep)) cci__sisci_arm(&ep->base);
    return 1;
}

/* The length of all pieces; more than any message may have if one piece is longer. */
static uint64_t cci__sisci_length_of(const struct cci_connection *connection, const struct iovec *data,
                                     uint32_t count) {
    uint64_t length = 0;
    uint32_t i;
    for (i = 0; i < count; i++) {
        if (data[i].iov_len > connection->max_send_size) return data[i].iov_len;
        length += data[i].iov_len;
    }
    return length;
}

#ifndef CCI_NO_WAKE
static CCI__RARE void cci__sisci_note_send(cci__sisci *ep, const cci__sisci_conn *conn, uint32_t length, int status) {
    cci__wakes_note(&ep->base.wakes, conn->conn.index % CCI__CONN_MOST, length, status == CCI_ENOBUFS);
    cci__sisci_arm(&ep->base);
}
#endif

static int cci__sisci_sendv(struct cci_connection *connection, const struct iovec *data, uint32_t count, void *context,
                            int flags) {
    cci__sisci_conn *conn = (cci__sisci_conn *)(void *)connection;
    cci__sisci *ep = (cci__sisci *)(void *)(uintptr_t)connection->endpoint;
    uint64_t length = CCI__LIKELY(count == 1) ? data->iov_len : cci__sisci_length_of(connection, data, count);
    int status;
    if (length > connection->max_send_size) return cci__too_long();
    cci__sisci_lock(ep);
    if (CCI__LIKELY(count == 1) && length <= CCI__SISCI_FIRST_LINE + CCI__SISCI_LATER_LINE &&
        !(flags & (CCI_FLAG_BLOCKING | CCI_FLAG_WAKE)) &&
        cci__sisci_send_short(ep, conn, (const uint8_t *)data->iov_base, (uint32_t)length, context, flags)) {
        cci__sisci_issued(ep, conn, (uint32_t)length);
        cci__sisci_unlock(ep);
        return CCI_SUCCESS;
    }
    status = cci__sisci_send_locked(ep, conn, data, count, (uint32_t)length, context, flags);
    CCI__WAKES(if (CCI__UNLIKELY(ep->base.wakes.has_fd)) cci__sisci_note_send(ep, conn, (uint32_t)length, status));
    cci__sisci_unlock(ep);
    return status;
}

/* ==================================================================================================================
 * >>sisci-cci-memory
 *
 * cci_rma_alloc(), cci_rma_register(), cci_rma() and cci_atomic(). Registrations lie where peers can read them
 * (regions, by the kernel; the registration table, by a mapping); deregistration waits until no peer copies.
 * ================================================================================================================== */

/* Makes a segment that peers can connect to if the guard lets them; a status. */
static int cci__sisci_make_shared(cci__sisci *ep, cci__sisci_shared *made, uint64_t length) {
    uint32_t size = (uint32_t)((length + 4095) & ~UINT64_C(4095));
    cci__sci_error_t error;
    memset(made, 0, sizeof *made);
    error = cci__sisci_make_segment(ep, &made->segment, &made->id, size, NULL, NULL);
    if (error != CCI__SCI_ERR_OK) return error == CCI__SCI_ERR_NOSPC ? CCI_ENOMEM : CCI_ERR_NOT_IMPLEMENTED;
    cci__sci_set_guard(made->segment, cci__sisci_guard, ep);
    made->base = (uint8_t *)ep->sci->call.SCIMapLocalSegment(made->segment, &made->map, 0, size, NULL, 0, &error);
    made->size = size;
    if (error == CCI__SCI_ERR_OK && cci__sisci_offer(ep, made->segment)) return CCI_SUCCESS;
    if (error != CCI__SCI_ERR_OK) {
        cci__sisci_remove_segment(ep, made->segment);
        made->base = NULL;
    } else {
        cci__sisci_remove_shared(ep, made);
    }
    return CCI_ENOMEM;
}

static int cci__sisci_share(cci__sisci *ep, uint64_t length, cci__sisci_shared **made) {
    int status = CCI_SUCCESS;
    *made = (cci__sisci_shared *)cci_alloc(sizeof **made);
    if (!*made) return CCI_ENOMEM;
    if (!ep->rma.registry.base)
        status = cci__sisci_make_shared(ep, &ep->rma.registry, CCI__SISCI_REGIONS * sizeof(cci__sisci_entry));
    if (status == CCI_SUCCESS) status = cci__sisci_make_shared(ep, *made, length);
    if (status != CCI_SUCCESS) {
        cci_release(*made);
        return status;
    }
    (*made)->next = ep->rma.shared;
    ep->rma.shared = *made;
    return CCI_SUCCESS;
}

static int cci__sisci_rma_alloc(cci_endpoint_base_t *base, uint64_t length, void **memory) {
    cci__sisci *ep = (cci__sisci *)(void *)base;
    cci__sisci_shared *made;
    int status;
    if (ep->far || ep->device.rma_mode >= CCI__SISCI_RMA_COPY || length > UINT32_MAX - 4095)
        return CCI_ERR_NOT_IMPLEMENTED;
    cci__sisci_lock(ep);
    status = cci__sisci_share(ep, length, &made);
    cci__sisci_unlock(ep);
    if (status == CCI_SUCCESS)
        *memory = made->base;
    else if (status == CCI_ERR_NOT_IMPLEMENTED)
        cci_log(CCI_LOG_WARN, "memory for RMA can't be shared: there are no descriptors left");
    return status;
}

static void cci__sisci_rma_free(cci_endpoint_base_t *base, void *memory) {
    cci__sisci *ep = (cci__sisci *)(void *)base;
    cci__sisci_shared **at = &ep->rma.shared, *found;
    cci__sisci_lock(ep);
    while ((*at)->base != (const uint8_t *)memory) at = &(*at)->next;
    found = *at;
    *at = found->next;
    cci__sisci_remove_shared(ep, found);
    cci_release(found);
    cci__sisci_unlock(ep);
}

/* Shows a registration to peers if its memory can be mapped. */
static void cci__sisci_show(cci__sisci *ep, cci_rma_region_t *region) {
    uint32_t index = (uint32_t)(region - ep->rma.regions);
    cci__sisci_entry *entry = (cci__sisci_entry *)(void *)ep->rma.registry.base + index;
    uint8_t *bytes = (uint8_t *)region->handle.stuff;
    const cci__sisci_shared *shared = ep->rma.shared;
    while (shared && ((uintptr_t)region->start < (uintptr_t)shared->base || region->length > shared->size ||
                      (uintptr_t)region->start - (uintptr_t)shared->base > shared->size - region->length))
        shared = shared->next;
    if (!shared) return;
    entry->offset = (uint64_t)(region->start - shared->base);
    entry->length = region->length;
    entry->block = shared->id;
    entry->flags = region->flags;
    cci__sisci_store_long(&entry->check, cci__sisci_check(region->key));
    cci__store64(bytes + 8, index | CCI__SISCI_SHARED);
}

static int cci__sisci_rma_register(cci_endpoint_base_t *base, void *start, uint64_t length, int flags,
                                   cci_rma_handle_t **handle) {
    cci__sisci *ep = (cci__sisci *)(void *)base;
    cci_rma_region_t *region;
    if (length > UINTPTR_MAX - (uintptr_t)start) return CCI_EINVAL;
    cci__sisci_lock(ep);
    if (ep->rma.table.used == ep->rma.table.region_count)
        cci_rma_add_regions(&ep->rma.table, cci__sisci_slab_of(ep->rma.table.region_count, CCI__SISCI_REGIONS));
    region = cci_rma_add(&ep->rma.table, start, length, (uint32_t)flags & (CCI_FLAG_READ | CCI_FLAG_WRITE));
    if (region && ep->rma.shared) cci__sisci_show(ep, region);
    cci__sisci_unlock(ep);
    if (!region) return CCI_ENOBUFS;
    *handle = &region->handle;
    return CCI_SUCCESS;
}

static int cci__sisci_rma_deregister(cci_endpoint_base_t *base, const struct cci_rma_handle *handle) {
    cci__sisci *ep = (cci__sisci *)(void *)base;
    cci_rma_region_t *region;
    uint64_t key;
    uint32_t index;
    (void)cci__sisci_parse_handle(handle, &key, &index);
    cci__sisci_lock(ep);
    region = cci_rma_find(&ep->rma.table, key, index);
    if (region) {
        cci__sisci_end_registration(ep, region);
        cci__sisci_wait_for_copies(ep);
    }
    cci__sisci_unlock(ep);
    return region ? CCI_SUCCESS : CCI_ERR_RMA_HANDLE;
}

typedef struct cci__sisci_rma_call {
    const void *msg;                              /* the message behind it, or NULL */
    const struct cci_rma_handle *local, *remote;  /* as in cci_rma() */
    uint64_t local_offset, remote_offset, length; /* likewise */
    void *context;                                /* of the completion */
    uint32_t msg_len;                             /* its bytes */
    int flags;                                    /* CCI_FLAG_... */
} cci__sisci_rma_call;

/* Puts into an item what an RMA reads and writes; 0 if that can't be. */
static int cci__sisci_aim(cci__sisci *ep, cci__sisci_item *item, const cci__sisci_rma_call *call) {
    (void)cci__sisci_parse_handle(call->local, &item->local_key, &item->local_region);
    item->is_shared = (uint8_t)cci__sisci_parse_handle(call->remote, &item->remote_key, &item->remote_region);
    item->is_shared &= ep->far == NULL;
    item->check = item->is_shared ? cci__sisci_check(item->remote_key) : 0;
    item->local_offset = call->local_offset;
    item->remote_offset = call->remote_offset;
    item->rma_length = call->length;
    return cci_rma_address(&ep->rma.table, item->local_key, item->local_region, call->local_offset, call->length, 0) &&
           call->remote_offset <= UINT64_MAX - call->length;
}

/* Ordered: its message would come behind a gap. */
static int cci__sisci_rma_unready(cci__sisci *ep, cci__sisci_conn *conn, const cci__sisci_rma_call *call) {
    cci__sisci_op *op = NULL;
    if (!(call->flags & CCI_FLAG_SILENT) || (call->flags & CCI_FLAG_BLOCKING)) {
        op = cci__sisci_new_op(ep, conn, call->context, call->flags);
        if (!op) return CCI_ENOBUFS;
    }
    return cci__sisci_end_unready(ep, conn, op, call->flags);
}

static void cci__sisci_count_rma(const cci__sisci *ep, const cci__sisci_conn *conn, const cci__sisci_rma_call *call,
                                 int has_message) {
#ifndef CCI_NO_STATS
    if (ep->base.tallies.counted) {
        cci__tally_rma(cci__tally_at(&ep->base.tallies, conn->conn.index), call->flags, call->length);
        if (has_message) cci__tally_issued(&ep->base.tallies, conn->conn.index, call->msg_len);
    }
#else
    (void)ep, (void)conn, (void)call, (void)has_message;
#endif
}

static int cci__sisci_rma_locked(cci__sisci *ep, cci__sisci_conn *conn, const cci__sisci_rma_call *call) {
    cci__sisci_link *link = conn->link;
    cci__sisci_item *item;
    cci__sisci_op *op = NULL;
    int aims;
    (void)cci__sisci_serve(ep, link); /* the peer may have ended the connection */
    if (link->rma.views && ((ep->rma.calls++ & 127) == 0 || link->rma.views->connecting > 0))
        cci__sisci_look_at_device(ep); /* a program may make no other calls, and mapped memory outlives the peer */
    if (conn->conn.state != CCI_CONN_OPEN || link->state != CCI__SISCI_OPEN) return CCI_ERR_DISCONNECTED;
    if (CCI__UNLIKELY(conn->unready) && call->msg_len > 0) return cci__sisci_rma_unready(ep, conn, call);
    item = cci__sisci_new_item(ep, conn);
    if (!item) return CCI_ENOBUFS;
    aims = cci__sisci_aim(ep, item, call);
    if (!aims || CCI__LISTS(call->flags & CCI_PIECE_CHECK)) {
        cci__sisci_free_item(ep, item);
        return aims ? CCI_SUCCESS : CCI_ERR_RMA_HANDLE;
    }
    if (!(call->flags & CCI_FLAG_SILENT) || (call->flags & CCI_FLAG_BLOCKING)) {
        op = cci__sisci_new_op(ep, conn, call->context, call->flags);
        if (!op) {
            cci__sisci_free_item(ep, item);
            return CCI_ENOBUFS;
        }
        if (CCI__LISTS(call->flags & CCI_PIECE)) op->event.base.pub.send.type = CCI_EVENT_NONE;
        op->item = item;
        cci__sisci_add_op(link, op);
    }
    item->op = op;
    item->is_rma = 1;
    item->is_read = (call->flags & CCI_FLAG_READ) != 0;
    item->has_message = call->msg != NULL && call->msg_len > 0;
    item->length = call->msg_len;
    item->data = item->buffer;
    if (item->has_message) memcpy(item->buffer, call->msg, call->msg_len);
    cci__sisci_count_rma(ep, conn, call, item->has_message);
    cci__sisci_add_item(link, item);
    cci__sisci_make_hot(link);
    cci__sisci_advance(ep, link);
    cci__sisci_flush(ep);
    return call->flags & CCI_FLAG_BLOCKING ? cci__sisci_block(ep, op) : CCI_SUCCESS;
}

static int cci__sisci_rma(struct cci_connection *connection, const void *msg, uint32_t msg_len,
                          const struct cci_rma_handle *local, uint64_t local_offset,
                          const struct cci_rma_handle *remote, uint64_t remote_offset, uint64_t length, void *context,
                          int flags) {
    cci__sisci_conn *conn = (cci__sisci_conn *)(void *)connection;
    cci__sisci *ep = (cci__sisci *)(void *)(uintptr_t)connection->endpoint;
    cci__sisci_rma_call call;
    int status;
    if (msg_len > connection->max_send_size) return cci__too_long();
    call.msg = msg;
    call.msg_len = msg_len;
    call.local = local;
    call.remote = remote;
    call.local_offset = local_offset;
    call.remote_offset = remote_offset;
    call.length = length;
    call.context = context;
    call.flags = flags;
    cci__sisci_lock(ep);
    status = cci__sisci_rma_locked(ep, conn, &call);
    if (cci__sisci_is_sleeper(ep)) cci__sisci_arm(&ep->base);
    cci__sisci_unlock(ep);
    return status;
}

#ifndef CCI_NO_ATOMICS
static int cci__sisci_atomic_locked(cci__sisci *ep, cci__sisci_conn *conn, const cci_atomic_call_t *call) {
    cci__sisci_link *link = conn->link;
    cci__sisci_item *item;
    cci__sisci_op *op = NULL;
    (void)cci__sisci_serve(ep, link); /* the peer may have ended the connection */
    if (conn->conn.state != CCI_CONN_OPEN || link->state != CCI__SISCI_OPEN) return CCI_ERR_DISCONNECTED;
    item = cci__sisci_new_item(ep, conn);
    if (!item) return CCI_ENOBUFS;
    if (!(call->flags & CCI_FLAG_SILENT) || (call->flags & CCI_FLAG_BLOCKING)) {
        op = cci__sisci_new_op(ep, conn, call->context, call->flags);
        if (!op) {
            cci__sisci_free_item(ep, item);
            return CCI_ENOBUFS;
        }
        op->item = item;
        cci__sisci_add_op(link, op);
    }
    item->op = op;
    item->is_rma = 1;
    item->width = (uint8_t)call->width;
    item->operation = (uint8_t)call->operation;
    item->previous = call->previous;
    item->operand = call->operand;
    item->compare = call->compare;
    item->remote_offset = call->offset;
    (void)cci__sisci_parse_handle(call->remote, &item->remote_key, &item->remote_region);
    CCI__STATS(if (ep->base.tallies.counted)
                   cci__tally_rma(cci__tally_at(&ep->base.tallies, conn->conn.index), 0, call->width));
    cci__sisci_add_item(link, item);
    cci__sisci_make_hot(link);
    cci__sisci_advance(ep, link);
    cci__sisci_flush(ep);
    return call->flags & CCI_FLAG_BLOCKING ? cci__sisci_block(ep, op) : CCI_SUCCESS;
}

static int cci__sisci_atomic(struct cci_connection *connection, const cci_atomic_call_t *call) {
    cci__sisci_conn *conn = (cci__sisci_conn *)(void *)connection;
    cci__sisci *ep = (cci__sisci *)(void *)(uintptr_t)connection->endpoint;
    int status;
    cci__sisci_lock(ep);
    status = cci__sisci_atomic_locked(ep, conn, call);
    if (cci__sisci_is_sleeper(ep)) cci__sisci_arm(&ep->base);
    cci__sisci_unlock(ep);
    return status;
}
#endif

/* ==================================================================================================================
 * >>sisci-cci-table
 *
 * What >>endpoint of cci.h calls of this engine, and what the API calls of an endpoint.
 * ================================================================================================================== */

static uint64_t cci__sisci_clock(cci__endpoint_t *base) {
    (void)base;
    return cci__sci_now();
}

static void cci__sisci_take_lock(cci__endpoint_t *base) {
    cci__sisci_lock((cci__sisci *)base);
}

static void cci__sisci_give_lock(cci__endpoint_t *base) {
    cci__sisci_unlock((cci__sisci *)base);
}

static const cci__engine_t *cci__sisci_engine(void) {
    static const cci__engine_t table = {cci__sisci_clock,
                                        cci__sisci_take_lock,
                                        cci__sisci_give_lock,
                                        cci__sisci_work,
                                        cci__sisci_arm,
                                        cci__sisci_wake_thread,
                                        cci__sisci_next_deadline,
                                        cci__sisci_messages,
#ifndef CCI_NO_WAKE
                                        cci__sisci_may_send,
                                        cci__endpoint_choose,
#endif
                                        cci__sisci_add_events_of,
                                        cci__sisci_decide,
                                        cci__sisci_disconnect,
#ifndef CCI_NO_LINGER
                                        cci__sisci_is_busy,
                                        cci__sisci_linger,
#endif
                                        cci__sisci_set_send_count,
                                        cci__sisci_set_recv_count,
#ifndef CCI_NO_STATS
                                        cci__sisci_set_counting,
                                        cci__sisci_endpoint_stats,
                                        cci__sisci_connection_stats,
#endif
                                        NULL,
                                        NULL,
                                        cci__sisci_set_timer,
                                        cci__sisci_post_keepalive,
                                        cci__sisci_uri_of,
                                        cci__sisci_caps,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        0,
                                        0};
    return &table;
}

static const cci_endpoint_ops_t *cci__sisci_ops(void) {
    static const cci_endpoint_ops_t table = {CCI__ENDPOINT_OPS(cci__sisci_destroy, cci__sisci_connect),
                                             cci__sisci_get_event,
                                             cci__sisci_return_event,
                                             CCI__ENDPOINT_OPTS,
                                             cci__sisci_sendv,
                                             cci__sisci_rma_register,
                                             cci__sisci_rma_deregister,
                                             cci__sisci_rma,
                                             cci__sisci_rma_alloc,
                                             cci__sisci_rma_free,
                                             cci__endpoint_answer,
                                             cci__endpoint_next_deadline,
#ifdef CCI_NO_ATOMICS
                                             NULL,
#else
                                             cci__sisci_atomic,
#endif
                                             NULL};
    return &table;
}

/* ==================================================================================================================
 * >>sisci-cci-devices
 *
 * The device that is there without configuration, and those of a configuration. These functions are called by one
 * thread at a time, under the lock of >>core.
 * ================================================================================================================== */

static void cci__sisci_default_device(cci__sisci_device *d) {
    memset(d, 0, sizeof *d);
    d->ring_bytes = 65536;
    d->block_count = 64;
    d->max_send_size = 8192;
    d->recv_buf_count = 1024;
    d->send_timeout_us = 30000000;
}

/* Nobody but the program knows services of this transport: what is no number is a name. */
static int cci__sisci_service_port(const char *service) {
    (void)service;
    return -1;
}

static void cci__sisci_describe(cci_device_desc_t *desc, const cci__sisci_device *d, const char *name) {
    memset(desc, 0, sizeof *desc);
    desc->name = name;
    desc->info = "shared memory of this host";
    desc->up = 1;
    desc->priority = 20;
    desc->max_send_size = d->max_send_size;
    memset(desc->pci, 0xff, sizeof desc->pci);
    memcpy(desc->data, d, sizeof *d);
    desc->caps = cci__sisci_caps_of(d);
    desc->service_port = cci__sisci_service_port;
}

static int cci__sisci_discover(const cci_transport_t *self, void *list, int (*add)(void *, const cci_device_desc_t *),
                               char *why, size_t why_size) {
    cci__sisci_device d;
    cci_device_desc_t desc;
    (void)self, (void)why, (void)why_size;
    if (!CCI__CORE_IS_LINKED) return CCI_ERROR;
    cci__sisci_default_device(&d);
    cci__sisci_describe(&desc, &d, "sisci");
    return add(list, &desc);
}

/* The keys with a number. */
typedef struct cci__sisci_key {
    const char *name;           /* as in the configuration */
    uint32_t smallest, largest; /* values */
    size_t offset;              /* in the device */
} cci__sisci_key;

static const cci__sisci_key cci__sisci_keys[] = {
    {"ring", 4096, 4194304, offsetof(cci__sisci_device, ring_bytes)},
    {"blocks", 2, CCI__SISCI_BLOCKS, offsetof(cci__sisci_device, block_count)},
    {"max_send_size", 64, 65472, offsetof(cci__sisci_device, max_send_size)},
    {"send_buf_count", 1, 65536, offsetof(cci__sisci_device, send_buf_count)},
    {"recv_buf_count", 1, 65536, offsetof(cci__sisci_device, recv_buf_count)},
    {"send_timeout", 1, 4294967295u, offsetof(cci__sisci_device, send_timeout_us)},
    {"service", 1, 4294967295u, offsetof(cci__sisci_device, service)},
    {"adapter", 0, 255, offsetof(cci__sisci_device, adapter)},
};

/* A section of the configuration: the device, and what is to be said of it. Keys by index, -1 when they are missing. */
typedef struct cci__sisci_section {
    cci__sisci_device device;                   /* as far as its keys were parsed */
    const char *library;                        /* its path, or "" */
    int library_key, adapter_key, has_provider; /* has_provider: the key `provider` is there */
} cci__sisci_section;

/* A text of at least one character that fits. */
static int cci__sisci_copy_text(char *to, size_t size, const char *text) {
    size_t length = strlen(text);
    memcpy(to, text, length < size ? length + 1 : 0);
    return length > 0 && length < size;
}

/* Takes one key whose value is a number; says what cci__sisci_parse_key() does. */
static const char *cci__sisci_parse_number_key(cci__sisci_device *d, const char *key, const char *value, char *range,
                                               size_t size) {
    size_t i;
    for (i = 0; i < sizeof cci__sisci_keys / sizeof cci__sisci_keys[0]; i++) {
        const cci__sisci_key *k = &cci__sisci_keys[i];
        uint32_t n = cci__sisci_number(value);
        if (strcmp(key, k->name) != 0) continue;
        if (n >= k->smallest && n <= k->largest && (n > 0 || strcmp(value, "0") == 0) &&
            (strcmp(key, "ring") != 0 || (n & (n - 1)) == 0)) {
            memcpy((char *)d + k->offset, &n, sizeof n);
            return NULL;
        }
        snprintf(range, size, "a number from %lu to %lu%s", (unsigned long)k->smallest, (unsigned long)k->largest,
                 strcmp(key, "ring") ? "" : ", a power of two");
        return range;
    }
    return "";
}

static const char *cci__sisci_parse_rma_mode(cci__sisci_device *d, const char *value) {
    static const char *const modes[] = {"auto", "map", "copy", "bounce"};
    for (d->rma_mode = 0; d->rma_mode < 4; d->rma_mode++)
        if (strcmp(value, modes[d->rma_mode]) == 0) return NULL;
    return "auto, map, copy or bounce";
}

/* Takes one key. Returns NULL, or what its value should have been; "" when there is no such key. */
static const char *cci__sisci_parse_key(void *user, int index, const char *key, const char *value, char *range,
                                        size_t size) {
    cci__sisci_section *section = (cci__sisci_section *)user;
    cci__sisci_device *d = &section->device;
    size_t length = strlen(value);
    const char *wanted = cci__sisci_parse_number_key(d, key, value, range, size);
    section->adapter_key = strcmp(key, "adapter") == 0 ? index : section->adapter_key;
    if (!wanted || *wanted) return wanted;
    if (strcmp(key, "directory") == 0)
        return cci__sisci_copy_text(d->directory, sizeof d->directory, value) ? NULL : "a path of 1 to 80 bytes";
    if (strcmp(key, "group") == 0)
        return cci__sisci_copy_text(d->group, sizeof d->group, value) ? NULL : "the name or number of a group";
    if (strcmp(key, "progress") == 0) {
        d->progress_thread = strcmp(value, "thread") == 0;
        return d->progress_thread || strcmp(value, "poll") == 0 ? NULL : "thread or poll";
    }
    if (strcmp(key, "library") == 0) {
        section->library = value;
        section->library_key = index;
        return length > 0 && length < CCI__SISCI_PATH ? NULL : "a path of 1 to 255 bytes";
    }
    if (strcmp(key, "provider") == 0) {
        section->has_provider = 1;
        d->is_far = strcmp(value, "vendor") == 0;
        return d->is_far || strcmp(value, "software") == 0 ? NULL : "software or vendor";
    }
    return strcmp(key, "rma") == 0 ? cci__sisci_parse_rma_mode(d, value) : "";
}

/* A device of an adapter is up when its library can be opened and has the adapter; gives why it is not. */
static const char *cci__sisci_bring_up(cci_device_desc_t *desc, const char *path) {
    const cci__sisci_far *far = cci__sisci_adapter();
    cci__sisci_device d;
    const char *fault = "this program is compiled without CCI_SISCI_ADAPTER";
    memcpy(&d, desc->data, sizeof d);
    if (far) fault = far->bring_up(d.adapter, path);
    desc->up = fault == NULL;
    desc->info = fault ? fault : "an adapter of SISCI";
    return fault;
}

static void cci__sisci_refresh(const cci_transport_t *self, cci_device_desc_t *desc) {
    cci__sisci_device d;
    (void)self;
    memcpy(&d, desc->data, sizeof d);
    if (d.is_far) (void)cci__sisci_bring_up(desc, NULL);
}

static int cci__sisci_configure(const cci_transport_t *self, const char *name, const char *const *keys,
                                cci_device_desc_t *desc, int *bad_key, char *why, size_t why_size) {
    cci__sisci_section section;
    cci__sisci_device *d = &section.device;
    const char *fault;
    int status;
    memset(&section, 0, sizeof section);
    cci__sisci_default_device(d);
    section.library = "";
    section.library_key = section.adapter_key = -1;
    status = cci_take_keys(self, keys, cci__sisci_parse_key, &section, bad_key, why, why_size);
    if (status != CCI_SUCCESS) return status;
    if (section.library_key >= 0 && !section.has_provider) d->is_far = 1;
    if (!d->is_far && (section.library_key >= 0 || d->adapter != 0)) {
        *bad_key = section.library_key >= 0 ? section.library_key : section.adapter_key;
        snprintf(why, why_size, "%s: the software has none", section.library_key >= 0 ? "library" : "adapter");
        return CCI_EINVAL;
    }
#ifdef CCI_NO_THREADS
    d->progress_thread = 0;
#endif
    cci__sisci_describe(desc, d, name);
    desc->priority = 50;
    if (d->is_far && (fault = cci__sisci_bring_up(desc, section.library)) != NULL) {
        char text[400];
        snprintf(text, sizeof text, "device %s is down: %s: %s", name,
                 *section.library ? section.library : "libsisci.so", fault);
        cci_log(CCI_LOG_WARN, text);
    }
    return CCI_SUCCESS;
}

#ifdef CCI_STATIC
static
#endif
    const cci_transport_t cci_sisci_transport = {
        CCI_TRANSPORT_VERSION, "sisci", NULL, NULL, cci__sisci_discover, cci__sisci_configure, cci__sisci_refresh, NULL,
        cci__sisci_create,
};

/* ==================================================================================================================
 * >>sisci-adapter
 *
 * Only where a link leads through an adapter: `out` is then a copy of the peer's inbox in our memory, the mirror.
 * Whatever is written there is stored through the adapter afterwards: a record's bytes, a flush, its first word, a
 * flush.
 *   Stores can be lost. SCICheckSequence is asked every two milliseconds while something was stored, and before an
 * endpoint sleeps. After an error, and after SCI_CB_NOT_OPERATIONAL, nothing is stored until SCIStartSequence succeeds;
 * then the whole mirror is stored again, which changes nothing that had arrived. So a message comes once and late, or
 * never, and then its operation says so.
 *   Callbacks run in threads of the library and without the endpoint's lock: they set bits of the mirror's `news` and
 * write to the endpoint's eventfd. A callback can come after its link has ended, so mirrors live as long as the device.
 * ================================================================================================================== */

#ifdef CCI_SISCI_ADAPTER

/* What callbacks of an adapter's library set, in threads of that library. */
enum {
    CCI__SISCI_IN_JOINED = 1,
    CCI__SISCI_IN_LOST = 2,
    CCI__SISCI_OUT_LOST = 4,
    CCI__SISCI_LISTENER_LOST = 8,
    CCI__SISCI_DOWN = 16,
    CCI__SISCI_UP = 32
};
#define CCI__SISCI_NEWS 0xffffffu
#define CCI__SISCI_TAGS 256u

/* What a link has when it leads through an adapter. Then link->out.base is a copy of the peer's inbox in our memory:
 * whatever is written there is stored in the peer's afterwards, and once more when the adapter has lost it on the
 * way. A callback may come when its object is gone: so mirrors live as long as the device, and callbacks name the
 * generation in the low bits of their argument. */
typedef struct cci__sisci_mirror {
    uint32_t news;                  /* a byte of generation, and what has happened */
    struct cci__sisci_mirror *next; /* of those that no link has */
    struct cci__sisci_port *port;   /* the device */
    cci__sci_local_segment_t left;  /* could not be removed yet */
    cci__sci_sequence_t sequence;   /* of the map, or NULL */
    uint8_t *map, *memory;          /* the peer's inbox; its copy, NULL: there is none */
    size_t size_bytes;              /* of either */
    uint64_t check_ns;              /* when the adapter is asked next */
    int stored;                     /* since the adapter was last asked whether it has lost anything */
    int paused;                     /* nothing is stored until stores arrive again; `down`: a callback will say so */
    int down;                       /* SCI_CB_NOT_OPERATIONAL came last */
} cci__sisci_mirror;

/* An adapter's device, with all that callbacks may reach. It is closed when peers have let go of what was theirs. */
typedef struct cci__sisci_port {
    struct cci__sisci_port *next;         /* of those that are to be closed */
    const cci__sci_provider *sci;         /* the library */
    cci__sci_desc_t sd;                   /* from SCIOpen */
    cci__sci_local_interrupt_t interrupt; /* that wakes the endpoint */
    cci__sisci_mirror *unused, *left;     /* of no link; those whose segment could not be removed yet */
    uint64_t retry_ns;                    /* when what is left is looked at again */
    int bell;                             /* an eventfd: callbacks write to it */
} cci__sisci_port;

/* Stores what is in our copy of the peer's inbox, by whole words: offset and size are multiples of 4. */
static void cci__sisci_copy_far(const cci__sisci_mirror *m, size_t at, size_t size) {
    size_t end = at + size;
    uint64_t two;
    uint32_t one;
    while (at < end) {
        if ((at & 4) || end - at < 8) {
            memcpy(&one, m->memory + at, sizeof one);
            *(volatile uint32_t *)(void *)(m->map + at) = one;
            at += sizeof one;
        } else {
            memcpy(&two, m->memory + at, sizeof two);
            *(volatile uint64_t *)(void *)(m->map + at) = two;
            at += sizeof two;
        }
    }
}

/* What was stored before this arrives before what is stored after it. */
static void cci__sisci_flush_far(const cci__sisci_mirror *m) {
    m->port->sci->call.SCIFlush(m->sequence, m->port->sci->flag.FLUSH_CPU_BUFFERS_ONLY);
}

/* Bytes that a record or a word tells of, which comes next and flushes them. */
static void cci__sisci_push_far(const cci__sisci_link *link, const void *from, size_t size) {
    const cci__sisci_mirror *m = link->mirror;
    if (!m->paused) cci__sisci_copy_far(m, (size_t)((const uint8_t *)from - m->memory), (size + 7) & ~(size_t)7);
}

/* A record: its first word when all else is there. */
static void cci__sisci_push_record(cci__sisci_link *link, const uint8_t *record, uint32_t lines) {
    cci__sisci_mirror *m = link->mirror;
    size_t at = (size_t)(record - m->memory);
    if (m->paused) return;
    cci__sisci_copy_far(m, at + 4, (size_t)lines * CCI__SISCI_LINE - 4);
    cci__sisci_flush_far(m);
    cci__sisci_copy_far(m, at, 4);
    cci__sisci_flush_far(m);
    m->stored = 1;
}

/* Stores all of it, in the same order. What had arrived before is overwritten with what it is. */
static void cci__sisci_push_all(cci__sisci_link *link) {
    cci__sisci_mirror *m = link->mirror;
    size_t ring = CCI__SISCI_AT_RING, blocks = (size_t)(link->outbox.blocks - link->out.base), at;
    cci__sisci_copy_far(m, blocks, m->size_bytes - blocks);
    for (at = ring; at + CCI__SISCI_LINE <= blocks; at += CCI__SISCI_LINE)
        cci__sisci_copy_far(m, at + 4, CCI__SISCI_LINE - 4);
    cci__sisci_flush_far(m);
    for (at = ring; at + CCI__SISCI_LINE <= blocks; at += CCI__SISCI_LINE) cci__sisci_copy_far(m, at, 4);
    cci__sisci_copy_far(m, CCI__SISCI_AT_ACK, ring - CCI__SISCI_AT_ACK);
    cci__sisci_flush_far(m);
}

static void cci__sisci_pause(cci__sisci_link *link) {
    if (!link->mirror->paused) {
        link->mirror->paused = 1;
        link->ep->paused++;
    }
}

/* Has all arrived? Waits until it has, a microsecond or two. */
static int cci__sisci_has_arrived(cci__sisci_link *link) {
    cci__sisci_mirror *m = link->mirror;
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    m->stored = 0;
    return m->port->sci->call.SCICheckSequence(m->sequence, 0, &error) == CCI__SCI_SEQ_OK && error == CCI__SCI_ERR_OK;
}

/* Sees that the word arrives that says that we sleep. The answer to a load comes after all that the peer had stored
 * when it did not see that word: then we see that. 0: the way has closed. */
static int cci__sisci_confirm_sleep(cci__sisci_link *link) {
    cci__sisci_mirror *m = link->mirror;
    if (m->paused || !m->stored) return 1;
    if (!cci__sisci_has_arrived(link)) {
        cci__sisci_pause(link);
        return 0;
    }
    m->port->sci->call.SCIFlushReadBuffers(m->sequence);
    (void)*(volatile uint32_t *)(void *)(m->map + CCI__SISCI_AT_SLEEP);
    return 1;
}

static void cci__sisci_push_word(const cci__sisci_link *link, size_t at) {
    cci__sisci_mirror *m = link->mirror;
    if (m->paused) return;
    cci__sisci_copy_far(m, at, 4);
    cci__sisci_flush_far(m);
    m->stored = 1;
}

static void cci__sisci_push_long(const cci__sisci_link *link, size_t at) {
    cci__sisci_mirror *m = link->mirror;
    if (m->paused) return;
    cci__sisci_flush_far(m);
    cci__sisci_copy_far(m, at, 8);
    cci__sisci_flush_far(m);
    m->stored = 1;
}

/* Is the way open again? Then all that may have been lost is stored once more. */
static void cci__sisci_resume(cci__sisci_link *link) {
    cci__sisci_mirror *m = link->mirror;
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    if (m->port->sci->call.SCIStartSequence(m->sequence, 0, &error) != CCI__SCI_SEQ_OK || error != CCI__SCI_ERR_OK)
        return;
    cci__sisci_push_all(link);
    if (!cci__sisci_has_arrived(link)) return;
    m->paused = 0;
    link->ep->paused--;
    m->stored = 1; /* the word that says that we sleep, perhaps */
    (void)cci__sisci_confirm_sleep(link);
    cci__sisci_touch(link);
}

static void cci__sisci_signal(const cci__sisci_port *port) {
    uint64_t one = 1;
    ssize_t n = write(port->bell, &one, sizeof one);
    (void)n; /* it rings already */
}

static cci__sci_callback_action_t cci__sisci_note(void *arg, uint32_t set, uint32_t clear) {
    uint32_t tag = (uint32_t)((uintptr_t)arg % CCI__SISCI_TAGS), was;
    cci__sisci_mirror *m = (cci__sisci_mirror *)(void *)((char *)arg - tag);
    was = CCI__SCI_LOAD(m->news);
    do {
        if (was >> 24 != tag) return CCI__SCI_CALLBACK_CONTINUE; /* that was another link */
    } while (!__atomic_compare_exchange_n(&m->news, &was, (was & ~clear) | set, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    cci__sisci_signal(m->port);
    return CCI__SCI_CALLBACK_CONTINUE;
}

static cci__sci_callback_action_t cci__sisci_far_listener(void *arg, cci__sci_remote_segment_t segment,
                                                          cci__sci_segment_cb_reason_t reason,
                                                          cci__sci_error_t status) {
    (void)segment, (void)status;
    return reason == CCI__SCI_CB_DISCONNECT || reason == CCI__SCI_CB_LOST
               ? cci__sisci_note(arg, CCI__SISCI_LISTENER_LOST, 0)
               : CCI__SCI_CALLBACK_CONTINUE;
}

static cci__sci_callback_action_t cci__sisci_far_out(void *arg, cci__sci_remote_segment_t segment,
                                                     cci__sci_segment_cb_reason_t reason, cci__sci_error_t status) {
    (void)segment, (void)status;
    switch (reason) {
    case CCI__SCI_CB_NOT_OPERATIONAL: return cci__sisci_note(arg, CCI__SISCI_DOWN, CCI__SISCI_UP);
    case CCI__SCI_CB_OPERATIONAL: return cci__sisci_note(arg, CCI__SISCI_UP, 0);
    case CCI__SCI_CB_DISCONNECT:
    case CCI__SCI_CB_LOST: return cci__sisci_note(arg, CCI__SISCI_OUT_LOST, 0);
    default: return CCI__SCI_CALLBACK_CONTINUE;
    }
}

static cci__sci_callback_action_t cci__sisci_far_in(void *arg, cci__sci_local_segment_t segment,
                                                    cci__sci_segment_cb_reason_t reason, unsigned int node,
                                                    unsigned int adapter, cci__sci_error_t status) {
    (void)segment, (void)node, (void)adapter, (void)status;
    switch (reason) {
    case CCI__SCI_CB_CONNECT: return cci__sisci_note(arg, CCI__SISCI_IN_JOINED, 0);
    case CCI__SCI_CB_DISCONNECT:
    case CCI__SCI_CB_LOST: return cci__sisci_note(arg, CCI__SISCI_IN_LOST, 0);
    default: /* when the way is closed, who stores finds out */ return CCI__SCI_CALLBACK_CONTINUE;
    }
}

static cci__sci_callback_action_t cci__sisci_far_interrupt(void *arg, cci__sci_local_interrupt_t interrupt,
                                                           cci__sci_error_t status) {
    (void)interrupt, (void)status;
    cci__sisci_signal((const cci__sisci_port *)arg);
    return CCI__SCI_CALLBACK_CONTINUE;
}

/* Makes callbacks that are still under way find nobody. */
static void cci__sisci_forget_news(cci__sisci_mirror *m) {
    uint32_t was = CCI__SCI_LOAD(m->news);
    CCI__SCI_STORE(m->news, (was & ~CCI__SISCI_NEWS) + CCI__SISCI_NEWS + 1);
}

static void *cci__sisci_callback_arg(cci__sisci_mirror *m) {
    return (char *)m + (CCI__SCI_LOAD(m->news) >> 24);
}

/* Not from cci_alloc(): it may have to outlive cci_finalize(). */
static cci__sisci_mirror *cci__sisci_alloc_mirror(cci__sisci_port *port) {
    cci__sisci_mirror *m = port->unused;
    void *memory;
    if (m) {
        port->unused = m->next;
        return m;
    }
    if (posix_memalign(&memory, CCI__SISCI_TAGS, sizeof *m) != 0) return NULL;
    m = (cci__sisci_mirror *)memory;
    memset(m, 0, sizeof *m);
    m->port = port;
    return m;
}

static void cci__sisci_release_mirror(cci__sisci_mirror *m) {
    cci__sisci_forget_news(m);
    m->next = m->port->unused;
    m->port->unused = m;
}

/* Peers are told to go; the segment can be removed when they have. 0: not yet. */
static int cci__sisci_remove_far(const cci__sisci_port *port, cci__sci_local_segment_t segment, uint32_t adapter) {
    cci__sci_error_t error;
    port->sci->call.SCISetSegmentUnavailable(segment, adapter,
                                             port->sci->flag.NOTIFY | port->sci->flag.FORCE_DISCONNECT, &error);
    error = CCI__SCI_ERR_OK;
    port->sci->call.SCIRemoveSegment(segment, 0, &error);
    return error != CCI__SCI_ERR_BUSY;
}

static void cci__sisci_remove_left(cci__sisci_port *port) {
    cci__sisci_mirror **at = &port->left, *m;
    port->retry_ns = cci__sci_now() + 10 * CCI__MS;
    while ((m = *at) != NULL) {
        cci__sci_error_t error = CCI__SCI_ERR_OK;
        port->sci->call.SCIRemoveSegment(m->left, 0, &error);
        if (error == CCI__SCI_ERR_BUSY) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        cci__sisci_release_mirror(m);
    }
}

/* Closes the device; 0 if peers still have something of it. */
static int cci__sisci_close_port(cci__sisci_port *port) {
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    if (port->interrupt) {
        port->sci->call.SCIRemoveInterrupt(port->interrupt, 0, &error);
        if (error == CCI__SCI_ERR_BUSY) return 0;
        port->interrupt = NULL;
    }
    cci__sisci_remove_left(port);
    if (port->left) return 0;
    error = CCI__SCI_ERR_OK;
    if (port->sd) port->sci->call.SCIClose(port->sd, 0, &error);
    if (error == CCI__SCI_ERR_BUSY) return 0;
    while (port->unused) {
        cci__sisci_mirror *m = port->unused;
        port->unused = m->next;
        free(m);
    }
    close(port->bell);
    free(port);
    return 1;
}

/* Devices of endpoints that are gone; the next endpoint that comes or goes tries to close them again. */
static cci__sisci_port *cci__sisci_left_ports;
static int cci__sisci_left_lock;

static void cci__sisci_close_left_ports(cci__sisci_port *another) {
    cci__sisci_port **at = &cci__sisci_left_ports;
    while (__atomic_exchange_n(&cci__sisci_left_lock, 1, __ATOMIC_ACQUIRE)) (void)sched_yield();
    if (another) {
        another->next = cci__sisci_left_ports;
        cci__sisci_left_ports = another;
    }
    while (*at) {
        cci__sisci_port *port = *at, *next = port->next;
        if (cci__sisci_close_port(port))
            *at = next;
        else
            at = &port->next;
    }
    __atomic_store_n(&cci__sisci_left_lock, 0, __ATOMIC_RELEASE);
}

/* Opens an adapter's device; a status. */
static int cci__sisci_open_port(cci__sisci *ep) {
    cci__sisci_port *port = (cci__sisci_port *)calloc(1, sizeof *port);
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    cci__sisci_close_left_ports(NULL);
    if (!port) return CCI_ENOMEM;
    port->sci = ep->sci;
    port->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (port->bell < 0) {
        free(port);
        return CCI_ERROR;
    }
    ep->port = port;
    ep->sci->call.SCIOpen(&port->sd, ep->sci->flag.THREAD_SAFE, &error);
    if (error != CCI__SCI_ERR_OK) {
        port->sd = NULL;
        return CCI_ENODEV;
    }
    ep->sd = port->sd;
    ep->sci->call.SCIGetLocalNodeId(ep->adapter, &ep->node, 0, &error);
    return error == CCI__SCI_ERR_OK ? CCI_SUCCESS : CCI_ENODEV;
}

/* The peer's inbox, mapped at link->out.base, gets its copy. Its first bytes are the card. 0: it can't be used. */
static int cci__sisci_make_mirror(cci__sisci_link *link, size_t size) {
    cci__sisci_mirror *m = link->mirror;
    const cci__sci_functions *call = &m->port->sci->call;
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    m->map = link->out.base;
    m->size_bytes = size;
    m->memory = NULL;
    link->out.base = NULL;
    if (memory == MAP_FAILED) return 0;
    call->SCICreateMapSequence(link->outbox.map, &m->sequence, 0, &error);
    if (error != CCI__SCI_ERR_OK) m->sequence = NULL;
    if (!m->sequence || call->SCIStartSequence(m->sequence, 0, &error) != CCI__SCI_SEQ_OK || error != CCI__SCI_ERR_OK) {
        (void)munmap(memory, size);
        return 0;
    }
    m->memory = link->out.base = (uint8_t *)memory;
    return 1;
}

static void cci__sisci_free_mirror(cci__sisci_link *link) {
    cci__sisci_mirror *m = link->mirror;
    cci__sci_error_t error;
    if (!m) return;
    if (m->sequence) {
        m->port->sci->call.SCIRemoveSequence(m->sequence, 0, &error);
        m->sequence = NULL;
    }
    if (m->memory) (void)munmap(m->memory, m->size_bytes);
    link->ep->paused -= (uint32_t)m->paused;
    m->memory = m->map = NULL;
    m->stored = m->paused = m->down = 0;
}

/* The adapter can't reach the peer for the time being, or can again; or both since the last look. */
static void cci__sisci_suspend(cci__sisci_link *link, uint32_t bits) {
    cci__sisci *ep = link->ep;
    uint32_t index = link->conns.first;
    while (index != CCI__CONN_NONE) {
        cci__sisci_conn *conn = (cci__sisci_conn *)(void *)cci_conn_at(&ep->base.conns, index);
        index = conn->after;
        if (conn->closing) continue;
        if (bits & CCI__SISCI_DOWN) (void)cci__notices_suspend(&ep->base.notices, &ep->base.evq, &conn->conn, 1);
        if (bits & CCI__SISCI_UP) (void)cci__notices_suspend(&ep->base.notices, &ep->base.evq, &conn->conn, 0);
    }
}

/* Takes what callbacks have told. */
static void cci__sisci_read_news(cci__sisci_link *link) {
    cci__sisci_mirror *m = link->mirror;
    uint32_t bits = CCI__SCI_LOAD(m->news) & CCI__SISCI_NEWS;
    if (bits == 0) return;
    (void)__atomic_fetch_and(&m->news, ~bits, __ATOMIC_ACQ_REL);
    link->join.news.attached = bits & CCI__SISCI_IN_LOST     ? -1
                               : bits & CCI__SISCI_IN_JOINED ? 1
                                                             : link->join.news.attached;
    link->join.news.out = bits & CCI__SISCI_OUT_LOST ? -1 : link->join.news.out;
    link->join.news.listener = bits & CCI__SISCI_LISTENER_LOST ? -1 : link->join.news.listener;
    if (bits & (CCI__SISCI_DOWN | CCI__SISCI_UP)) cci__sisci_suspend(link, bits);
    if (bits & CCI__SISCI_DOWN) {
        m->down = 1;
        if (m->memory) cci__sisci_pause(link);
    }
    if (bits & CCI__SISCI_UP) {
        m->down = 0;
        m->check_ns = 0;
    }
}

/* Asks the adapter now and then whether stores were lost, and stores them again. */
static void cci__sisci_step_mirror(cci__sisci_link *link, uint64_t now_ns) {
    cci__sisci_mirror *m = link->mirror;
    cci__sisci_read_news(link);
    if (!m->memory || m->check_ns > now_ns || !(m->stored || m->paused)) return;
    m->check_ns = now_ns + 2 * CCI__MS;
    if (m->down)
        cci__sisci_pause(link);
    else if (m->paused)
        cci__sisci_resume(link);
    else if (!cci__sisci_has_arrived(link))
        cci__sisci_pause(link);
}

/* ---- what the software does otherwise ---- */

static int cci__sisci_make_far_interrupt(cci__sisci *ep) {
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    ep->sci->call.SCICreateInterrupt(ep->sd, &ep->port->interrupt, ep->adapter, &ep->entrance.interrupt_number,
                                     cci__sisci_far_interrupt, ep->port, ep->sci->flag.USE_CALLBACK, &error);
    if (error != CCI__SCI_ERR_OK) ep->port->interrupt = NULL;
    return error == CCI__SCI_ERR_OK;
}

/* It may be closed later: peers have something of it. */
static void cci__sisci_leave_port(cci__sisci *ep) {
    if (ep->port) cci__sisci_close_left_ports(ep->port);
}

static int cci__sisci_far_event_fd(const cci__sisci *ep) {
    return ep->port->bell;
}

static void cci__sisci_consume_far_interrupts(const cci__sisci *ep) {
    uint64_t ignored;
    ssize_t n = read(ep->port->bell, &ignored, sizeof ignored);
    (void)n;
}

/* Removes what peers have let go of. */
static void cci__sisci_remove_left_in_time(const cci__sisci *ep) {
    if (ep->port->left && ep->port->retry_ns <= cci__sci_now()) cci__sisci_remove_left(ep->port);
}

/* Makes a segment; a number of 0 becomes one that is free: with a library's flags we would not learn the number. */
static cci__sci_error_t cci__sisci_make_far_segment(cci__sisci *ep, cci__sci_local_segment_t *segment, uint32_t *id,
                                                    size_t size, cci__sci_cb_local_segment_t callback, void *arg) {
    unsigned int flags = callback ? ep->sci->flag.USE_CALLBACK : 0u, tries;
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    for (tries = 0; tries < 16; tries++) {
        uint32_t number = *id ? *id : (uint32_t)cci__sci_random() | 1;
        ep->sci->call.SCICreateSegment(ep->sd, segment, number, (unsigned int)size, callback, arg, flags, &error);
        if (error == CCI__SCI_ERR_OK) {
            *id = number;
            return error;
        }
        if (*id || error != CCI__SCI_ERR_SEGMENTID_USED) break;
    }
    *segment = NULL;
    return error;
}

static void cci__sisci_remove_far_later(cci__sisci_port *port, cci__sisci_mirror *m, cci__sci_local_segment_t segment) {
    m->left = segment;
    m->next = port->left;
    port->left = m;
}

static void cci__sisci_remove_far_listener(cci__sisci *ep) {
    cci__sisci_mirror *m;
    if (!cci__sisci_remove_far(ep->port, ep->entrance.segment, ep->adapter) &&
        (m = cci__sisci_alloc_mirror(ep->port)) != NULL)
        cci__sisci_remove_far_later(ep->port, m, ep->entrance.segment);
}

static void cci__sisci_remove_far_inbox(cci__sisci_link *link) {
    cci__sisci *ep = link->ep;
    cci__sisci_mirror *m = link->mirror;
    cci__sisci_forget_news(m);
    if (!cci__sisci_remove_far(ep->port, link->inbox.segment, ep->adapter)) {
        cci__sisci_remove_far_later(ep->port, m, link->inbox.segment);
        link->mirror = NULL;
    }
}

/* The manual says both that a callback tells how an asynchronous connect ended and that it does not: so this
 * waits for the other node, but not long. */
static int cci__sisci_connect_far(cci__sisci_link *link, cci__sci_remote_segment_t *segment, uint32_t id) {
    cci__sisci *ep = link->ep;
    int is_door = segment == &link->join.listener_segment;
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    ep->sci->call.SCIConnectSegment(
        ep->sd, segment, link->peer.node, id, ep->adapter, is_door ? cci__sisci_far_listener : cci__sisci_far_out,
        cci__sisci_callback_arg(link->mirror), CCI__SISCI_CONNECT_MS, ep->sci->flag.USE_CALLBACK, &error);
    if (error != CCI__SCI_ERR_OK) *segment = NULL;
    *(is_door ? &link->join.news.listener : &link->join.news.out) = *segment ? 1 : -1;
    return 1;
}

static void cci__sisci_connect_far_interrupt(cci__sisci_link *link, unsigned int number) {
    cci__sisci *ep = link->ep;
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    ep->sci->call.SCIConnectInterrupt(ep->sd, &link->peer.interrupt, link->peer.node, ep->adapter, number,
                                      CCI__SISCI_CONNECT_MS, 0, &error);
    link->peer.interrupt = error == CCI__SCI_ERR_OK ? link->peer.interrupt : NULL;
}

static void cci__sisci_finish_stores(const cci__sisci_link *link) {
    if (link->mirror->sequence) link->ep->sci->call.SCIStoreBarrier(link->mirror->sequence, 0);
}

static cci__sci_error_t cci__sisci_make_far_inbox(cci__sisci_link *link, size_t size) {
    cci__sisci *ep = link->ep;
    if (!link->mirror && (link->mirror = cci__sisci_alloc_mirror(ep->port)) == NULL) return CCI__SCI_ERR_NOSPC;
    return cci__sisci_make_far_segment(ep, &link->inbox.segment, &link->inbox.id, size, cci__sisci_far_in,
                                       cci__sisci_callback_arg(link->mirror));
}

static uint32_t cci__sisci_check_of(const cci__sisci_far_connect_record *connect_record) {
    static const uint64_t constant[2] = {UINT64_C(0x13198a2e03707344), UINT64_C(0x243f6a8885a308d3)};
    uint64_t words[2];
    words[0] = (uint64_t)connect_record->client_id << 32 | connect_record->server_id;
    words[1] = connect_record->node;
    return (uint32_t)cci__siphash(constant, words, 2) | 1;
}

/* Leaves a connect record by stores alone: in a place that seems free, the check when all else is there. Who is
 * overwritten by another client that came to the same place, or is not answered, tries again. */
static int cci__sisci_leave_far_connect_record(cci__sisci_link *link, cci__sisci_listener *listener) {
    const cci__sci_provider *sci = link->ep->sci;
    uint32_t i, place = (uint32_t)cci__sci_random() % CCI__SISCI_CONNECT_RECORDS;
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    cci__sci_sequence_t sequence = NULL;
    cci__sisci_far_connect_record connect_record;
    int arrived;
    connect_record.node = link->ep->node;
    connect_record.client_id = link->inbox.id;
    connect_record.server_id = link->outbox.id;
    for (i = 0; i < CCI__SISCI_CONNECT_RECORDS && cci__sisci_load(&listener->far_connect_record[place].check) != 0; i++)
        place = (place + 1) % CCI__SISCI_CONNECT_RECORDS;
    sci->call.SCICreateMapSequence(link->join.listener_map, &sequence, 0, &error);
    if (error != CCI__SCI_ERR_OK) return 0;
    arrived = sci->call.SCIStartSequence(sequence, 0, &error) == CCI__SCI_SEQ_OK;
    if (arrived) {
        cci__sisci_store(&listener->far_connect_record[place].node, connect_record.node);
        cci__sisci_store(&listener->far_connect_record[place].client_id, connect_record.client_id);
        cci__sisci_store(&listener->far_connect_record[place].server_id, connect_record.server_id);
        sci->call.SCIFlush(sequence, sci->flag.FLUSH_CPU_BUFFERS_ONLY);
        cci__sisci_store(&listener->far_connect_record[place].check, cci__sisci_check_of(&connect_record));
        sci->call.SCIFlush(sequence, sci->flag.FLUSH_CPU_BUFFERS_ONLY);
        cci__sisci_store(&listener->count, (uint32_t)cci__sci_random());
        arrived = sci->call.SCICheckSequence(sequence, 0, &error) == CCI__SCI_SEQ_OK;
    }
    sci->call.SCIRemoveSequence(sequence, 0, &error);
    if (arrived) {
        link->join.retry_ns = cci__sci_now() + 1000 * CCI__MS;
        return cci__sisci_wake_server(link, listener);
    }
    return 0;
}

/* 0: the rest has to wait. */
static int cci__sisci_look_at_far_connect_records(cci__sisci *ep) {
    uint32_t i;
    for (i = 0; i < CCI__SISCI_CONNECT_RECORDS; i++) {
        cci__sisci_far_connect_record *at = &ep->entrance.listener->far_connect_record[i], connect_record;
        connect_record.check = cci__sisci_load(&at->check);
        if (connect_record.check == 0) continue;
        if (ep->entrance.answers >= CCI__SISCI_ANSWERS) return 0;
        connect_record.node = cci__sisci_load(&at->node);
        connect_record.client_id = cci__sisci_load(&at->client_id);
        connect_record.server_id = cci__sisci_load(&at->server_id);
        cci__sisci_store(&at->check, 0);
        if (connect_record.check == cci__sisci_check_of(&connect_record))
            cci__sisci_answer_connect_record(ep, connect_record.node, connect_record.client_id,
                                             connect_record.server_id);
    }
    return 1;
}

/* ---- the library ---- */

/* The library of an adapter: one per process, opened when a device asks for it, and never closed, since it has threads
 * of its own. The functions of devices are called by one thread at a time. */
static struct {
    cci__sci_provider provider; /* what it offers */
    char path[CCI__SISCI_PATH]; /* as it was asked for; "": libsisci.so */
    int is_open;                /* it was opened */
} cci__sisci_library;

/* NULL, or why the library can't be used. */
static const char *cci__sisci_open_library(const char *path) {
    const char *fault;
    if (cci__sisci_library.is_open) {
        return strcmp(path, cci__sisci_library.path) == 0 ? NULL
                                                          : "this process has opened another library of an adapter";
    }
    snprintf(cci__sisci_library.path, sizeof cci__sisci_library.path, "%s", path);
    fault = cci__sci_load(&cci__sisci_library.provider, *path ? path : NULL);
    cci__sisci_library.is_open = fault == NULL;
    return fault;
}

static const cci__sci_provider *cci__sisci_library_provider(void) {
    return &cci__sisci_library.provider;
}

/* NULL, or why there is no such adapter. The path is NULL for the library that was asked for before. */
static const char *cci__sisci_find_adapter(uint32_t adapter, const char *path) {
    const char *fault = cci__sisci_open_library(path ? path : cci__sisci_library.path);
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    unsigned int node;
    if (fault) return fault;
    cci__sisci_library.provider.call.SCIGetLocalNodeId(adapter, &node, 0, &error);
    return error == CCI__SCI_ERR_OK ? NULL : "it has no such adapter";
}

static const cci__sisci_far *cci__sisci_adapter(void) {
    static const cci__sisci_far table = {cci__sisci_find_adapter,
                                         cci__sisci_library_provider,
                                         cci__sisci_open_port,
                                         cci__sisci_leave_port,
                                         cci__sisci_make_far_interrupt,
                                         cci__sisci_far_event_fd,
                                         cci__sisci_consume_far_interrupts,
                                         cci__sisci_remove_left_in_time,
                                         cci__sisci_make_far_segment,
                                         cci__sisci_remove_far_listener,
                                         cci__sisci_look_at_far_connect_records,
                                         cci__sisci_leave_far_connect_record,
                                         cci__sisci_make_far_inbox,
                                         cci__sisci_remove_far_inbox,
                                         cci__sisci_connect_far,
                                         cci__sisci_connect_far_interrupt,
                                         cci__sisci_make_mirror,
                                         cci__sisci_free_mirror,
                                         cci__sisci_release_mirror,
                                         cci__sisci_step_mirror,
                                         cci__sisci_push_far,
                                         cci__sisci_push_record,
                                         cci__sisci_push_word,
                                         cci__sisci_push_long,
                                         cci__sisci_finish_stores,
                                         cci__sisci_confirm_sleep};
    return &table;
}

#else

static const cci__sisci_far *cci__sisci_adapter(void) {
    return NULL;
}

#endif /* CCI_SISCI_ADAPTER */

#endif /* CCI__SCI_SOFTWARE */
#endif /* the transport */

/* ==================================================================================================================
 * >>sisci-vendor
 *
 * EXPERIMENTAL: tested against libraries that the tests make, and never with an adapter. The library's functions
 * have the names of the manual or a prefix before them, for programs with threads (MT) or without (ST). Its flags
 * and queries are exported constants; what it lacks has the value it has here. Sizes are `unsigned int` up to API
 * 1.x and `size_t` since 2.0, which the library is asked for before any function that has one: for 2.x, functions in
 * between widen them. What it does not have answers SCI_ERR_NOT_IMPLEMENTED. One library per process.
 * ================================================================================================================== */

#ifdef CCI_SISCI_ADAPTER

#if defined(CCI_NO_DLOPEN) || !(defined(__unix__) || defined(__APPLE__))

/* Gives NULL, or why there is no such library. */
CCI__SCI_INTERNAL const char *cci__sci_load(cci__sci_provider *vendor, const char *path) {
    (void)path;
    vendor->library = NULL;
    return "this program opens no libraries at run time";
}

#else

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* What stands in for a function that the library lacks. */
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#define CCI__SCI_LACK_1(kind, type, name, parameters)                                                                  \
    static type cci__sci_lack_1_##name parameters CCI__SCI_REFUSE_##kind(type)
#define CCI__SCI_LACK_2(kind, type, name, parameters)                                                                  \
    static type cci__sci_lack_2_##name parameters CCI__SCI_REFUSE_##kind(type)
CCI__SCI_FUNCTIONS(CCI__SCI_LACK_1, unsigned int)
CCI__SCI_FUNCTIONS(CCI__SCI_LACK_2, size_t)
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#endif

/* A library of API 2.x. */
typedef struct cci__sci_wide_functions {
    CCI__SCI_FUNCTIONS(CCI__SCI_POINTER, size_t)
} cci__sci_wide_functions;

static cci__sci_wide_functions cci__sci_wide;

static unsigned int cci__sci_widen_SCIGetRemoteSegmentSize(cci__sci_remote_segment_t segment) {
    size_t size_bytes = cci__sci_wide.SCIGetRemoteSegmentSize(segment);
    return size_bytes <= UINT32_MAX ? (unsigned int)size_bytes : 0;
}

static volatile void *cci__sci_widen_SCIMapRemoteSegment(cci__sci_remote_segment_t segment, cci__sci_map_t *map,
                                                         unsigned int offset, unsigned int size, void *addr,
                                                         unsigned int flags, cci__sci_error_t *error) {
    return cci__sci_wide.SCIMapRemoteSegment(segment, map, offset, size, addr, flags, error);
}

static void *cci__sci_widen_SCIMapLocalSegment(cci__sci_local_segment_t segment, cci__sci_map_t *map,
                                               unsigned int offset, unsigned int size, void *addr, unsigned int flags,
                                               cci__sci_error_t *error) {
    return cci__sci_wide.SCIMapLocalSegment(segment, map, offset, size, addr, flags, error);
}

static void cci__sci_widen_SCICreateSegment(cci__sci_desc_t sd, cci__sci_local_segment_t *segment,
                                            unsigned int segmentId, unsigned int size,
                                            cci__sci_cb_local_segment_t callback, void *callbackArg, unsigned int flags,
                                            cci__sci_error_t *error) {
    cci__sci_wide.SCICreateSegment(sd, segment, segmentId, size, callback, callbackArg, flags, error);
}

static cci__sci_dma_queue_state_t cci__sci_widen_SCIEnqueueDMATransfer(cci__sci_dma_queue_t dq,
                                                                       cci__sci_local_segment_t localSegment,
                                                                       cci__sci_remote_segment_t remoteSegment,
                                                                       unsigned int localOffset,
                                                                       unsigned int remoteOffset, unsigned int size,
                                                                       unsigned int flags, cci__sci_error_t *error) {
    return cci__sci_wide.SCIEnqueueDMATransfer(dq, localSegment, remoteSegment, localOffset, remoteOffset, size, flags,
                                               error);
}

static void cci__sci_widen_SCITransferBlock(cci__sci_map_t sourceMap, unsigned int sourceOffset,
                                            cci__sci_map_t destinationMap, unsigned int destinationOffset,
                                            unsigned int size, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_wide.SCITransferBlock(sourceMap, sourceOffset, destinationMap, destinationOffset, size, flags, error);
}

static void cci__sci_widen_SCITransferBlockAsync(cci__sci_map_t sourceMap, unsigned int sourceOffset,
                                                 cci__sci_map_t destinationMap, unsigned int destinationOffset,
                                                 unsigned int size, cci__sci_block_transfer_t *block,
                                                 cci__sci_cb_block_transfer_t callback, void *callbackArg,
                                                 unsigned int flags, cci__sci_error_t *error) {
    cci__sci_wide.SCITransferBlockAsync(sourceMap, sourceOffset, destinationMap, destinationOffset, size, block,
                                        callback, callbackArg, flags, error);
}

static void cci__sci_widen_SCIMemWrite(void *memAddr, volatile void *remoteAddr, unsigned int size, unsigned int flags,
                                       cci__sci_error_t *error) {
    cci__sci_wide.SCIMemWrite(memAddr, remoteAddr, size, flags, error);
}

static void cci__sci_widen_SCIMemWrite_mcast(void *memAddr, volatile void *remoteAddr[], unsigned int size,
                                             unsigned int dst_num, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_wide.SCIMemWrite_mcast(memAddr, remoteAddr, size, dst_num, flags, error);
}

static void cci__sci_widen_SCIMemWrite_dual(volatile void *memAddr, volatile void *remoteAddr1,
                                            cci__sci_map_t remoteMap1, volatile void *remoteAddr2,
                                            cci__sci_map_t remoteMap2, unsigned int size, unsigned int flags,
                                            cci__sci_error_t *error) {
    cci__sci_wide.SCIMemWrite_dual(memAddr, remoteAddr1, remoteMap1, remoteAddr2, remoteMap2, size, flags, error);
}

static void cci__sci_widen_SCIMemCpy(cci__sci_sequence_t sequence, void *memAddr, cci__sci_map_t remoteMap,
                                     unsigned int remoteOffset, unsigned int size, unsigned int flags,
                                     cci__sci_error_t *error) {
    cci__sci_wide.SCIMemCpy(sequence, memAddr, remoteMap, remoteOffset, size, flags, error);
}

static void cci__sci_widen_SCIMemCopy(void *memAddr, cci__sci_map_t remoteMap, unsigned int remoteOffset,
                                      unsigned int size, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_wide.SCIMemCopy(memAddr, remoteMap, remoteOffset, size, flags, error);
}

static void cci__sci_widen_SCIMemCpy_dual(cci__sci_sequence_t sequence1, cci__sci_sequence_t sequence2, void *memAddr,
                                          cci__sci_map_t remoteMap1, cci__sci_map_t remoteMap2,
                                          unsigned int remoteOffset, unsigned int size, unsigned int flags,
                                          cci__sci_error_t *error) {
    cci__sci_wide.SCIMemCpy_dual(sequence1, sequence2, memAddr, remoteMap1, remoteMap2, remoteOffset, size, flags,
                                 error);
}

/* One after the other, until one fails: the list of offsets has numbers of another width. */
static void cci__sci_widen_SCIMemCpy_mcast(cci__sci_sequence_t sequence[], void *memAddr, cci__sci_map_t remoteMap[],
                                           unsigned int remoteOffset[], unsigned int size, unsigned int dst_num,
                                           unsigned int flags, cci__sci_error_t *error) {
    cci__sci_error_t status = CCI__SCI_ERR_OK;
    unsigned int i;
    for (i = 0; i < dst_num && status == CCI__SCI_ERR_OK; i++) {
        size_t offset = remoteOffset[i];
        cci__sci_wide.SCIMemCpy_mcast(&sequence[i], memAddr, &remoteMap[i], &offset, size, 1, flags, &status);
    }
    cci__sci_set(error, status);
}

static void cci__sci_widen_SCIRegisterSegmentMemory(void *address, unsigned int size, cci__sci_local_segment_t segment,
                                                    unsigned int flags, cci__sci_error_t *error) {
    cci__sci_wide.SCIRegisterSegmentMemory(address, size, segment, flags, error);
}

static void cci__sci_widen_SCIAttachLocalSegment(cci__sci_desc_t sd, cci__sci_local_segment_t *segment,
                                                 unsigned int segmentId, unsigned int *size,
                                                 cci__sci_cb_local_segment_t callback, void *callbackArg,
                                                 unsigned int flags, cci__sci_error_t *error) {
    size_t size_bytes = size ? *size : 0;
    cci__sci_wide.SCIAttachLocalSegment(sd, segment, segmentId, &size_bytes, callback, callbackArg, flags, error);
    if (size) *size = size_bytes <= UINT32_MAX ? (unsigned int)size_bytes : 0;
}

static void cci__sci_widen_SCIAttachPhysicalMemory(cci__sci_ioaddr_t ioaddress, void *address, unsigned int busNo,
                                                   unsigned int size, cci__sci_local_segment_t segment,
                                                   unsigned int flags, cci__sci_error_t *error) {
    cci__sci_wide.SCIAttachPhysicalMemory(ioaddress, address, busNo, size, segment, flags, error);
}

static void cci__sci_widen_SCIRegisterInterruptFlag(unsigned int localAdapterNo, cci__sci_local_interrupt_t *interrupt,
                                                    cci__sci_local_segment_t segment, unsigned int offset,
                                                    cci__sci_cb_interrupt_t callback, void *callbackArg,
                                                    unsigned int flags, cci__sci_error_t *error) {
    cci__sci_wide.SCIRegisterInterruptFlag(localAdapterNo, interrupt, segment, offset, callback, callbackArg, flags,
                                           error);
}

static void cci__sci_widen_SCIConnectSCISpace(cci__sci_desc_t sd, unsigned int localAdapterNo,
                                              cci__sci_remote_segment_t *segment, cci__sci_address_t address,
                                              unsigned int size, unsigned int flags, cci__sci_error_t *error) {
    cci__sci_wide.SCIConnectSCISpace(sd, localAdapterNo, segment, address, size, flags, error);
}

/* The functions with sizes; all others are the same in both tables. */
#define CCI__SCI_WIDENED(X)                                                                                            \
    X(SCIGetRemoteSegmentSize)                                                                                         \
    X(SCIMapRemoteSegment)                                                                                             \
    X(SCIMapLocalSegment)                                                                                              \
    X(SCICreateSegment)                                                                                                \
    X(SCIEnqueueDMATransfer)                                                                                           \
    X(SCITransferBlock)                                                                                                \
    X(SCITransferBlockAsync)                                                                                           \
    X(SCIMemWrite)                                                                                                     \
    X(SCIMemWrite_mcast)                                                                                               \
    X(SCIMemWrite_dual)                                                                                                \
    X(SCIMemCpy)                                                                                                       \
    X(SCIMemCopy)                                                                                                      \
    X(SCIMemCpy_dual)                                                                                                  \
    X(SCIMemCpy_mcast)                                                                                                 \
    X(SCIRegisterSegmentMemory)                                                                                        \
    X(SCIAttachLocalSegment)                                                                                           \
    X(SCIAttachPhysicalMemory)                                                                                         \
    X(SCIRegisterInterruptFlag)                                                                                        \
    X(SCIConnectSCISpace)

/* The address of a symbol with a prefix, or NULL. */
static void *cci__sci_symbol(void *library, const char *prefix, const char *name) {
    char symbol[96];
    int length = snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
    return length > 0 && (size_t)length < sizeof symbol ? dlsym(library, symbol) : NULL;
}

/* Data and functions have addresses of one size where there are shared libraries, but C does not convert them. */
static unsigned int cci__sci_import(void *library, const char *prefix, const char *name, void *function) {
    void *symbol = cci__sci_symbol(library, prefix, name);
    if (symbol) memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* A constant of the library, or what it is here. */
static unsigned int cci__sci_constant(void *library, const char *name, unsigned int otherwise) {
    const void *symbol = cci__sci_symbol(library, "_SISCI_PUBLIC_CONST_", name);
    if (symbol) memcpy(&otherwise, symbol, sizeof otherwise);
    return otherwise;
}

static void cci__sci_import_constants(cci__sci_provider *vendor) {
#define CCI__SCI_IMPORT_FLAG(name, value)                                                                              \
    vendor->flag.name = cci__sci_constant(vendor->library, "SCI_FLAG_" #name, value);
#define CCI__SCI_IMPORT_QUERY(name, value)                                                                             \
    vendor->query.name = cci__sci_constant(vendor->library, "SCI_Q_" #name, value);
    CCI__SCI_FLAGS(CCI__SCI_IMPORT_FLAG)
    CCI__SCI_QUERIES(CCI__SCI_IMPORT_QUERY)
}

static void cci__sci_import_1(cci__sci_provider *vendor, const char *prefix) {
#define CCI__SCI_IMPORT_1(kind, type, name, parameters)                                                                \
    vendor->call.name = cci__sci_lack_1_##name;                                                                        \
    vendor->found += cci__sci_import(vendor->library, prefix, #name, &vendor->call.name);
    CCI__SCI_FUNCTIONS(CCI__SCI_IMPORT_1, unsigned int)
    if (vendor->call.SCIFlush == cci__sci_lack_1_SCIFlush) /* it came later than the manual, and does less */
        vendor->call.SCIFlush = vendor->call.SCIStoreBarrier;
}

static void cci__sci_import_2(cci__sci_provider *vendor, const char *prefix) {
#define CCI__SCI_IMPORT_2(kind, type, name, parameters)                                                                \
    cci__sci_wide.name = cci__sci_lack_2_##name;                                                                       \
    vendor->found += cci__sci_import(vendor->library, prefix, #name, &cci__sci_wide.name);
    CCI__SCI_FUNCTIONS(CCI__SCI_IMPORT_2, size_t)
    if (cci__sci_wide.SCIFlush == cci__sci_lack_2_SCIFlush) cci__sci_wide.SCIFlush = cci__sci_wide.SCIStoreBarrier;
    memcpy(&vendor->call, &cci__sci_wide, sizeof vendor->call);
#define CCI__SCI_WIDEN(name) vendor->call.name = cci__sci_widen_##name;
    CCI__SCI_WIDENED(CCI__SCI_WIDEN)
}

/* The prefix of the library's names, or NULL if it has none of them. */
static const char *cci__sci_prefix(void *library) {
#ifdef CCI_NO_THREADS
    static const char *const known[] = {"_SISCI_PUBLIC_FUNC_ST_", "_SISCI_PUBLIC_FUNC_MT_", ""};
#else
    static const char *const known[] = {"_SISCI_PUBLIC_FUNC_MT_", "_SISCI_PUBLIC_FUNC_ST_", ""};
#endif
    size_t i;
    for (i = 0; i < sizeof known / sizeof *known; i++)
        if (cci__sci_symbol(library, known[i], "SCIQuery") && cci__sci_symbol(library, known[i], "SCIOpen") &&
            cci__sci_symbol(library, known[i], "SCIInitialize"))
            return known[i];
    return NULL;
}

/* Asks for the version, "2.1.0" or "SISCI API 1.10": the first number and the one after its point. These functions have
 * no sizes. */
static int cci__sci_ask_version(cci__sci_provider *vendor, const char *prefix) {
    void (*initialize)(unsigned int flags, cci__sci_error_t *error) = NULL;
    void (*query)(unsigned int command, void *data, unsigned int flags, cci__sci_error_t *error) = NULL;
    cci__sci_error_t error = CCI__SCI_ERR_OK;
    cci__sci_query_string_t question;
    char text[256];
    const char *number;
    (void)cci__sci_import(vendor->library, prefix, "SCIInitialize", &initialize);
    (void)cci__sci_import(vendor->library, prefix, "SCIQuery", &query);
    memset(text, 0, sizeof text);
    question.str = text;
    question.length = sizeof text - 1;
    initialize(0, &error);
    if (error == CCI__SCI_ERR_OK) query(vendor->query.API, &question, 0, &error);
    number = text + strcspn(text, "0123456789");
    return error == CCI__SCI_ERR_OK && sscanf(number, "%3u.%3u", &vendor->api_major, &vendor->api_minor) == 2;
}

static const char *cci__sci_import_all(cci__sci_provider *vendor) {
    const char *prefix = cci__sci_prefix(vendor->library);
    if (!prefix) return "it has not the functions of SISCI";
    cci__sci_import_constants(vendor);
    if (!cci__sci_ask_version(vendor, prefix)) return "it does not tell the version of its API";
    if (vendor->api_major == 1)
        cci__sci_import_1(vendor, prefix);
    else if (vendor->api_major == 2)
        cci__sci_import_2(vendor, prefix);
    else
        return "the version of its API is not known here";
    return NULL;
}

/* Opens the library at this path, or libsisci.so if it is NULL, and initializes it. NULL, or why it can't be used. */
CCI__SCI_INTERNAL const char *cci__sci_load(cci__sci_provider *vendor, const char *path) {
    const char *fault;
    memset(vendor, 0, sizeof *vendor);
    vendor->library = dlopen(path ? path : "libsisci.so", RTLD_NOW | RTLD_LOCAL);
    if (!vendor->library) return "it can't be opened";
    fault = cci__sci_import_all(vendor);
    if (fault) {
        (void)dlclose(vendor->library);
        vendor->library = NULL;
    }
    return fault;
}

/* After SCITerminate: no function of the library is called any more. */
CCI__SCI_INTERNAL void cci__sci_unload(cci__sci_provider *vendor) {
    if (vendor->library) {
        (void)dlclose(vendor->library);
        vendor->library = NULL;
    }
}

#endif /* CCI_NO_DLOPEN */

#endif /* CCI_SISCI_ADAPTER */

#endif /* CCI_SISCI_IMPLEMENTATION */

/* ==================================================================================================================
 * >>sisci-license
 *
 * This software is available under either of two licenses, as you choose: the MIT license, or the Unlicense (public
 * domain). Their full text is in the file LICENSE.
 * ================================================================================================================== */
