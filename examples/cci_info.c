/* SPDX-License-Identifier: MIT OR Unlicense */
/* cci_info.c - shows the devices of each transport, or why it has none.
 *
 *     cc -O2 -I.. -o cci_info cci_info.c -pthread
 *     ./cci_info [-d device]
 *
 * Devices are numbered in the order of their priority; a program that asks for no particular device gets the one marked
 * "default". The exit status is 0 when there is a usable device. */
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void print_device(const cci_device_t *device, int order, int is_default) {
    const char *const *key = device->conf_argv;
    printf("  %d. %s  (%s%s)\n", order, device->name, device->up ? "up" : "down", is_default ? ", default" : "");
    print_text("info", device->info);
    printf("    %-15s %u bytes\n", "max_send_size", device->max_send_size);
    if (device->rate) printf("    %-15s %.4g Gbit/s\n", "rate", (double)device->rate / 1e9);
    else printf("    %-15s unknown\n", "rate");
    if (device->pci.bus != 0xffffffffu)
        printf("    %-15s %04x:%02x:%02x.%x\n", "pci", device->pci.domain, device->pci.bus, device->pci.dev,
               device->pci.func);
    for (; key && *key; key++) print_text(key == device->conf_argv ? "configured" : "", *key);
}

/* Prints the devices of one transport, or of all that have the given device name. Returns how many of them are up. */
static int print_devices(cci_device_t *const *devices, const char *transport, const char *only,
                         cci_device_t *favourite) {
    int order, up_count = 0;
    for (order = 0; devices[order]; order++) {
        if (strcmp(devices[order]->transport, transport) != 0) continue;
        if (only && strcmp(devices[order]->name, only) != 0) continue;
        print_device(devices[order], order + 1, devices[order] == favourite);
        up_count += devices[order]->up != 0;
    }
    return up_count;
}

int main(int argc, char **argv) {
    const char *only = argc == 3 && strcmp(argv[1], "-d") == 0 ? argv[2] : NULL;
    const char *transport, *reason;
    cci_device_t *const *devices;
    cci_device_t *favourite;
    uint32_t caps, index;
    int status, up_count = 0;
    if (argc > 1 && !only) {
        printf("usage: %s [-d device]\n", argv[0]);
        return strcmp(argv[1], "-h") == 0 ? 0 : 2;
    }
    status = cci_init(CCI_ABI_VERSION, 0, &caps);
    if (status == CCI_SUCCESS) status = cci_get_devices(&devices);
    if (status != CCI_SUCCESS) {
        fprintf(stderr, "cci_info: %s\n", cci_strerror(NULL, (cci_status_t)status));
        return 1;
    }
    printf("CCI %d.%d.%d, ABI %d, %s\n", CCI_VERSION_MAJOR, CCI_VERSION_MINOR, CCI_VERSION_PATCH, CCI_ABI_VERSION,
           caps & CCI_CAPS_THREAD_SAFETY ? "calls may come from any thread" : "calls must come from one thread");
    if (getenv("CCI_CONFIG")) printf("configured by %s\n", getenv("CCI_CONFIG"));
    favourite = default_device();
    for (index = 0; (reason = cci_transport_reason(index, &transport)) != NULL; index++) {
        printf("%s%s%s\n", transport, *reason ? ": no devices: " : "", reason);
        up_count += print_devices(devices, transport, only, favourite);
    }
    cci_finalize();
    return up_count == 0;
}
