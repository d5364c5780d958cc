/* SPDX-License-Identifier: MIT OR Unlicense */
/* why.c - why does it time out? Connects, sends for three seconds, and says what keeps messages from a server.
 *
 *     cc -O2 -I.. -o why why.c -pthread
 *     ./why URI     of any server that accepts connections and doesn't mind messages; status 0: all is well
 *
 *     what is wrong                         how it shows here
 *     nobody receives at the port           ICMP says so: the log has "connection refused"
 *     a firewall, or a host that is down    nothing is received, and no ICMP either, of no port
 *     the server doesn't call the library   nothing is received, though ICMP refuses another port of the host
 *     another protocol, version, key, crc   datagrams are received and dropped: dropped_not_ours and its kin
 *     the server calls no longer            messages stay pending, silent_ns grows, rnr does not
 *     it holds its receive buffers          messages stay pending, rnr grows; at the server recv_buffers_used stays high
 *     it has too few, or is slow            messages complete, rnr grows; at the server dropped_no_buffer grows */
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define U(counter) ((unsigned long long)s.counter)

static cci_endpoint_t *endpoint;
static cci_os_handle_t os_handle;
static cci_connection_t *connection;
static int was_refused, outcome, pending; /* outcome: of cci_connect(), a status, or -1 */
static double completed_s;                /* when a message last did */

static void check(int status, const char *what) {
    cci_status_t code = (cci_status_t)status;
    if (code == CCI_SUCCESS) return;
    fprintf(stderr, "%s: %s: %s\n", what, cci_strerror(NULL, code), cci_status_hint(code));
    exit(1);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The log tells what no status does, such as what ICMP has said. */
static void on_log(void *user, int level, const char *text) {
    (void)user, (void)level;
    was_refused |= strstr(text, "connection refused") != NULL;
    fprintf(stderr, "log: %s\n", text);
}

/* Gives the library so many milliseconds, and keeps what the events say. */
static void work(int ms) {
    double end_s = now_s() + ms / 1000.0;
    while (now_s() < end_s) {
        struct pollfd sleeper = {os_handle, POLLIN, 0};
        cci_event_t *event;
        poll(&sleeper, 1, 10);
        while (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
            if (event->type == CCI_EVENT_CONNECT) {
                outcome = (int)event->connect.status;
                connection = event->connect.connection;
            }
            if (event->type == CCI_EVENT_SEND) {
                pending--;
                if (event->send.status == CCI_SUCCESS) completed_s = now_s();
            }
            if (event->type == CCI_EVENT_CONNECT_REQUEST) (void)cci_reject(event); /* anybody can ask */
            check(cci_return_event(event), "return");
        }
    }
}

/* Asks for a connection; a status. The library looks for ICMP's answer about one address at a time, for 4 s. */
static int attempt(const char *uri) {
    struct timeval patience = {5, 0};
    was_refused = 0;
    outcome = -1;
    check(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), uri);
    while (outcome < 0) work(20);
    return outcome;
}

/* Is a port beside the server's refused? Then packets get to the host, and ICMP gets back. */
static int host_answers(const char *uri) {
    char other[512];
    const char *colon = strrchr(uri, ':');
    if (!colon || strspn(colon + 1, "0123456789") != strlen(colon + 1) || colon - uri > 500) return 0;
    snprintf(other, sizeof other, "%.*s:1", (int)(colon - uri), uri);
    return attempt(other) != CCI_SUCCESS && was_refused;
}

static int explain_connect(const char *uri, int status) {
    cci_endpt_stats_t s;
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_STATS, &s), "statistics");
    printf("datagrams: %llu sent, %llu received; dropped: %llu not ours, %llu corrupt, %llu not authentic\n",
           U(datagrams_sent), U(datagrams_received), U(dropped_not_ours), U(dropped_corrupt), U(dropped_not_authentic));
    if (status != CCI_ETIMEDOUT) puts("finding: the server answers, and does not accept");
    else if (was_refused) puts("finding: wrong port, or no server: nobody receives at this port");
    else if (s.dropped_not_ours + s.dropped_corrupt + s.dropped_not_authentic > 0)
        puts("finding: the other side speaks another protocol or version, or has another key or `crc`");
    else if (s.datagrams_received > 0) puts("finding: the server answers, and is busy");
    else if (host_answers(uri))
        puts("finding: the host answers, the server does not: its program does not call the library (on its host `ss -uan`\n"
             "shows a Recv-Q above 0), or a firewall drops what is for this port alone");
    else puts("finding: nothing comes back: a firewall, a wrong address, or a host that is down");
    return 1;
}

static int explain_traffic(void) {
    cci_conn_stats_t s;
    int is_stuck = now_s() - completed_s > 1.5;
    check(cci_get_opt(connection, CCI_OPT_CONN_STATS, &s), "statistics");
    printf("messages: %llu sent, %d pending; refused without a receive buffer: %llu; packets: %llu sent, %llu lost; "
           "round trip: %.3f ms; silent for %.1f s\n", U(messages_sent), pending, U(rnr), U(packets_sent), U(packets_lost),
           (double)s.srtt_ns / 1e6, (double)s.silent_ns / 1e9);
    if (is_stuck && s.rnr > 0) puts("finding: the server holds its receive buffers: it does not return events");
    else if (is_stuck) puts("finding: the server does not call the library any more, or the path broke");
    else if (s.rnr > 0) puts("finding: the server has too few receive buffers, or takes messages too slowly");
    else if (s.packets_lost * 100 > s.packets_sent) puts("finding: the path loses packets");
    else return puts("finding: all is well"), 0;
    return 1;
}

static int find_out(const char *uri) {
    uint32_t on = 1;
    int status = attempt(uri);
    double end_s = now_s() + 3;
    if (status != CCI_SUCCESS) return explain_connect(uri, status);
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_CONN_STATS, &on), "statistics");
    for (completed_s = now_s(); now_s() < end_s; work(10))
        while (pending < 32 && cci_send(connection, "why?", 4, NULL, 0) == CCI_SUCCESS) pending++;
    return explain_traffic();
}

/* A device of the transport that the URI names; NULL stands for the default one. */
static cci_device_t *device_for(const char *uri) {
    cci_device_t *const *each;
    check(cci_get_devices(&each), "cci_get_devices");
    while (*each && !((*each)->up && strncmp(uri, (*each)->transport, strcspn(uri, ":")) == 0)) each++;
    return *each;
}

int main(int argc, char **argv) {
    cci_setup_t setup;
    uint32_t caps;
    int result;
    if (argc != 2) return fprintf(stderr, "usage: why URI\n"), 2;
    memset(&setup, 0, sizeof setup);
    setup.log = on_log;
    check(cci_setup(&setup), "cci_setup");
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(device_for(argv[1]), 0, &endpoint, &os_handle), "cci_create_endpoint");
    result = find_out(argv[1]);
    check(cci_finalize(), "cci_finalize");
    return result;
}
