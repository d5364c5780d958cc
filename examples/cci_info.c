/* SPDX-License-Identifier: MIT OR Unlicense */
/* cci_info.c - shows the devices of each transport, or why it has none.
 *
 *     cc -O2 -I.. -o cci_info cci_info.c -pthread
 *     ./cci_info [-d device] [--json] [--try]
 *
 * Devices are numbered in the order of their priority; a program that asks for no particular device gets the one marked
 * "default". With --try two endpoints of each device exchange a thousand messages, and the connection's statistics tell
 * how that went. The exit status is 0 when there is a usable device; with --try it also has to work. */
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The core tells which device is the default only by using it: an endpoint on no particular device knows its own. */
static cci_device_t *default_device(void) {
    cci_endpoint_t *endpoint;
    cci_device_t *device;
    if (cci_create_endpoint(NULL, 0, &endpoint, NULL) != CCI_SUCCESS) return NULL;
    device = endpoint->device;
    cci_destroy_endpoint(endpoint);
    return device;
}

static void print_text(const char *label, const char *text) {
    while (text && *text) { /* a description may have several lines */
        size_t length = strcspn(text, "\n");
        printf("    %-15s %.*s\n", label, (int)length, text);
        text += length + (text[length] == '\n');
        label = "";
    }
}

/* What each bit of cci_caps_t.can is called here. */
static const char *const abilities[] = {"ordered",      "multicast", "rma",          "shared rma",
                                        "hardware rma", "sealed",    "atomics of 4", "atomics of 8", "fence", "wake"};
#define ABILITIES ((int)(sizeof abilities / sizeof abilities[0]))

static int get_caps(cci_device_t *device, cci_caps_t *caps) {
    return cci_get_opt(device, CCI_OPT_CAPS, caps) == CCI_SUCCESS;
}

static void print_caps(cci_device_t *device) {
    const char *separator = " ";
    cci_caps_t caps;
    int i;
    if (!get_caps(device, &caps)) return;
    printf("    %-15s", "can");
    for (i = 0; i < ABILITIES; i++) {
        if (!(caps.can >> i & 1)) continue;
        printf("%s%s", separator, abilities[i]);
        separator = ", ";
    }
    printf("\n    %-15s %lu connections, %lu bytes with a request, buffers: %lu for sending, %lu for receiving\n", "at most",
           (unsigned long)caps.max_connections, (unsigned long)caps.max_request_len, (unsigned long)caps.max_send_bufs,
           (unsigned long)caps.max_recv_bufs);
}

static void print_device(cci_device_t *device, int order, int is_default) {
    const char *const *key = device->conf_argv;
    printf("  %d. %s  (%s%s)\n", order, device->name, device->up ? "up" : "down", is_default ? ", default" : "");
    print_text("info", device->info);
    printf("    %-15s %u bytes\n", "max_send_size", device->max_send_size);
    if (device->rate) printf("    %-15s %.4g Gbit/s\n", "rate", (double)device->rate / 1e9);
    else printf("    %-15s unknown\n", "rate");
    print_caps(device);
    if (device->pci.bus != 0xffffffffu)
        printf("    %-15s %04x:%02x:%02x.%x\n", "pci", device->pci.domain, device->pci.bus, device->pci.dev,
               device->pci.func);
    for (; key && *key; key++) print_text(key == device->conf_argv ? "configured" : "", *key);
}

/* Bytes of the UTF-8 character at `text`, 0 if it is none. */
static int utf8_length(const unsigned char *text) {
    unsigned first = text[0];
    unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    int length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0, i;
    for (i = 1; i < length; i++, low = 0x80, high = 0xbf)
        if (text[i] < low || text[i] > high) return 0;
    return length;
}

/* A string of JSON. What is no UTF-8 (names come from a file that may hold any bytes) becomes U+FFFD. */
static void print_string(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    putchar('"');
    while (*at) {
        int length = utf8_length(at);
        if (length == 0) printf("\\ufffd");
        else if (*at < 0x20 || *at == 0x7f) printf("\\u%04x", *at);
        else if (*at == '"' || *at == '\\') printf("\\%c", *at);
        else printf("%.*s", length, (const char *)at);
        at += length ? length : 1;
    }
    putchar('"');
}

static void print_member(const char *name, const char *text) {
    printf(", \"%s\": ", name);
    if (text) print_string(text);
    else printf("null");
}

static void print_caps_json(cci_device_t *device) {
    const char *separator = "";
    cci_caps_t caps;
    int i;
    if (!get_caps(device, &caps)) {
        printf(", \"caps\": null");
        return;
    }
    printf(", \"caps\": {\"can\": [");
    for (i = 0; i < ABILITIES; i++) {
        if (!(caps.can >> i & 1)) continue;
        printf("%s\"%s\"", separator, abilities[i]);
        separator = ", ";
    }
    printf("], \"max_request_len\": %lu, \"max_connections\": %lu, \"max_send_bufs\": %lu, \"max_recv_bufs\": %lu, "
           "\"max_rma_segments\": %lu, \"max_rma_length\": ",
           (unsigned long)caps.max_request_len, (unsigned long)caps.max_connections, (unsigned long)caps.max_send_bufs,
           (unsigned long)caps.max_recv_bufs, (unsigned long)caps.max_rma_segments);
    if (caps.max_rma_length == UINT64_MAX) printf("null}");
    else printf("%llu}", (unsigned long long)caps.max_rma_length);
}

/* ---- does a device work? ---------------------------------------------------------------------------------------- */

#define MESSAGES 1000
#define SECONDS 5 /* for connecting, and for the messages */

typedef struct trial {
    cci_endpoint_t *client, *server;
    cci_connection_t *connection; /* the client's */
    int status, answers;
    cci_conn_stats_t stats;
} trial_t;

static void serve(trial_t *trial, cci_endpoint_t *endpoint) {
    cci_event_t *event;
    while (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            cci_accept(event, NULL);
        } else if (event->type == CCI_EVENT_CONNECT) {
            trial->status = (int)event->connect.status;
            trial->connection = event->connect.connection;
        } else if (event->type == CCI_EVENT_RECV && endpoint == trial->server) {
            cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT);
        } else if (event->type == CCI_EVENT_RECV) {
            trial->answers++;
        }
        cci_return_event(event);
    }
}

/* Lets both work until the client has so many answers, or has its connection, or the time is over. */
static void wait_for(trial_t *trial, int answers) {
    time_t end = time(NULL) + SECONDS + 1;
    while (trial->status == (answers ? CCI_SUCCESS : CCI_EAGAIN) && trial->answers < answers + !answers) {
        serve(trial, trial->client);
        serve(trial, trial->server);
        if (time(NULL) > end) trial->status = CCI_ETIMEDOUT;
    }
}

static int talk(trial_t *trial) {
    static const char message[64] = "is anybody there?";
    const struct timeval timeout = {SECONDS, 0};
    uint32_t counted = 1;
    char *uri = NULL;
    int i, status;
    (void)cci_set_opt(trial->client, CCI_OPT_ENDPT_CONN_STATS, &counted);
    status = cci_get_opt(trial->server, CCI_OPT_ENDPT_URI, &uri);
    if (status != CCI_SUCCESS) return status;
    trial->status = CCI_EAGAIN;
    status = cci_connect(trial->client, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &timeout);
    free(uri);
    if (status != CCI_SUCCESS) return status;
    wait_for(trial, 0);
    for (i = 1; i <= MESSAGES && trial->status == CCI_SUCCESS; i++) {
        trial->status = cci_send(trial->connection, message, sizeof message, NULL, CCI_FLAG_SILENT);
        if (trial->status == CCI_SUCCESS) wait_for(trial, i);
    }
    if (trial->status != CCI_SUCCESS) return trial->status;
    return cci_get_opt(trial->connection, CCI_OPT_CONN_STATS, &trial->stats);
}

/* Two endpoints of the device talk to each other; a status. */
static int try_device(cci_device_t *device, trial_t *trial) {
    int status;
    memset(trial, 0, sizeof *trial);
    status = cci_create_endpoint(device, 0, &trial->server, NULL);
    if (status == CCI_SUCCESS) status = cci_create_endpoint(device, 0, &trial->client, NULL);
    if (status == CCI_SUCCESS) status = talk(trial);
    if (trial->client) cci_destroy_endpoint(trial->client);
    if (trial->server) cci_destroy_endpoint(trial->server);
    return status;
}

static int print_trial(cci_device_t *device) {
    trial_t trial;
    int status = try_device(device, &trial);
    const cci_conn_stats_t *stats = &trial.stats;
    if (status != CCI_SUCCESS) {
        printf("    %-15s failed: %s\n", "tried", cci_strerror(NULL, (cci_status_t)status));
        return status;
    }
    printf("    %-15s %d messages there and back", "tried", MESSAGES);
    if (stats->srtt_ns)
        printf(", round trip %.1f us, %.1f at best", (double)stats->srtt_ns / 1e3, (double)stats->min_rtt_ns / 1e3);
    if (stats->path_mtu) printf(", packets of up to %lu bytes", (unsigned long)stats->path_mtu);
    if (stats->packets_sent)
        printf(", %llu sent, %llu of them again", (unsigned long long)stats->packets_sent,
               (unsigned long long)stats->packets_retransmitted);
    printf("\n");
    return status;
}

static int print_trial_json(cci_device_t *device) {
    trial_t trial;
    int status = try_device(device, &trial);
    printf(", \"tried\": {\"status\": ");
    print_string(cci_strerror(NULL, (cci_status_t)status));
    printf(", \"messages\": %d, \"srtt_ns\": %llu, \"min_rtt_ns\": %llu, \"path_mtu\": %lu, \"packets_sent\": %llu, "
           "\"packets_retransmitted\": %llu}",
           trial.answers, (unsigned long long)trial.stats.srtt_ns, (unsigned long long)trial.stats.min_rtt_ns,
           (unsigned long)trial.stats.path_mtu, (unsigned long long)trial.stats.packets_sent,
           (unsigned long long)trial.stats.packets_retransmitted);
    return status;
}

static int print_device_json(cci_device_t *device, int order, int is_default, int tries) {
    const char *const *key = device->conf_argv;
    int works = device->up != 0;
    printf("{\"order\": %d", order);
    print_member("name", device->name);
    printf(", \"up\": %s, \"default\": %s", device->up ? "true" : "false", is_default ? "true" : "false");
    print_member("info", device->info);
    printf(", \"max_send_size\": %u, \"rate\": ", device->max_send_size);
    if (device->rate) printf("%llu", (unsigned long long)device->rate);
    else printf("null");
    if (device->pci.bus == 0xffffffffu) print_member("pci", NULL);
    else
        printf(", \"pci\": \"%04x:%02x:%02x.%x\"", device->pci.domain, device->pci.bus, device->pci.dev,
               device->pci.func);
    print_caps_json(device);
    printf(", \"configured\": [");
    for (; key && *key; key++) {
        if (key != device->conf_argv) printf(", ");
        print_string(*key);
    }
    printf("]");
    if (tries && works) works = print_trial_json(device) == CCI_SUCCESS;
    printf("}");
    return works;
}

struct options {
    const char *only; /* the device of this name, or NULL */
    int json, tries;
};

/* Prints the devices of one transport, or those of them that have the wanted name. Returns how many are up, or work. */
static int print_devices(cci_device_t *const *devices, const char *transport, const struct options *options,
                         cci_device_t *favourite) {
    int order, up_count = 0, count = 0;
    for (order = 0; devices[order]; order++) {
        if (strcmp(devices[order]->transport, transport) != 0) continue;
        if (options->only && strcmp(devices[order]->name, options->only) != 0) continue;
        if (options->json) {
            printf(count++ ? ",\n    " : "\n    ");
            up_count += print_device_json(devices[order], order + 1, devices[order] == favourite, options->tries);
        } else {
            print_device(devices[order], order + 1, devices[order] == favourite);
            up_count += devices[order]->up && (!options->tries || print_trial(devices[order]) == CCI_SUCCESS);
        }
    }
    return up_count;
}

static void print_head(uint32_t caps, int json) {
    const char *config = getenv("CCI_CONFIG");
    int threads = (caps & CCI_CAPS_THREAD_SAFETY) != 0;
    if (json) {
        printf("{\"version\": \"%d.%d.%d\", \"abi\": %d, \"threads\": %s", CCI_VERSION_MAJOR, CCI_VERSION_MINOR,
               CCI_VERSION_PATCH, CCI_ABI_VERSION, threads ? "true" : "false");
        print_member("config", config);
        printf(", \"transports\": [");
        return;
    }
    printf("CCI %d.%d.%d, ABI %d, %s\n", CCI_VERSION_MAJOR, CCI_VERSION_MINOR, CCI_VERSION_PATCH, CCI_ABI_VERSION,
           threads ? "calls may come from any thread" : "calls must come from one thread");
    if (config) printf("configured by %s\n", config);
}

/* Prints every transport and its devices. Returns how many devices are up. */
static int print_transports(cci_device_t *const *devices, const struct options *options) {
    cci_device_t *favourite = default_device();
    const char *transport, *reason;
    uint32_t index;
    int up_count = 0;
    for (index = 0; (reason = cci_transport_reason(index, &transport)) != NULL; index++) {
        if (options->json) {
            printf(index ? ",\n  {\"name\": " : "\n  {\"name\": ");
            print_string(transport);
            print_member("reason", *reason ? reason : NULL);
            printf(", \"devices\": [");
        } else printf("%s%s%s\n", transport, *reason ? ": no devices: " : "", reason);
        up_count += print_devices(devices, transport, options, favourite);
        if (options->json) printf("]}");
    }
    if (options->json) printf("]}\n");
    return up_count;
}

static void parse_options(struct options *options, int argc, char **argv) {
    int i, status = -1;
    memset(options, 0, sizeof *options);
    for (i = 1; i < argc && status < 0; i++) {
        if (strcmp(argv[i], "-d") == 0 && i + 1 < argc) options->only = argv[++i];
        else if (strcmp(argv[i], "--json") == 0) options->json = 1;
        else if (strcmp(argv[i], "--try") == 0) options->tries = 1;
        else status = strcmp(argv[i], "-h") == 0 ? 0 : 2;
    }
    if (status < 0) return;
    printf("usage: %s [-d device] [--json] [--try]\n", argv[0]);
    exit(status);
}

int main(int argc, char **argv) {
    struct options options;
    cci_device_t *const *devices;
    uint32_t caps;
    int status, up_count;
    parse_options(&options, argc, argv);
    status = cci_init(CCI_ABI_VERSION, 0, &caps);
    if (status == CCI_SUCCESS) status = cci_get_devices(&devices);
    if (status != CCI_SUCCESS) {
        fprintf(stderr, "cci_info: %s: %s\n", cci_strerror(NULL, (cci_status_t)status),
                cci_status_hint((cci_status_t)status));
        return 1;
    }
    print_head(caps, options.json);
    up_count = print_transports(devices, &options);
    cci_finalize();
    return up_count == 0;
}
