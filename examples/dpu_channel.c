/* dpu_channel.c - host and DPU talk over the DOCA Comm Channel interface; without DOCA, see doca_comm_channel.h.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     dpu_channel dpu SERVICE [DEVICE]           the service: sends back what it gets, in capitals, for ever
 *     dpu_channel host SERVICE TEXT [DEVICE]     the client: sends the text and prints the answer
 *
 * On two computers the host's environment says where the DPU is: DOCA_COMM_CHANNEL_DPU=192.0.2.7. */
#define DOCA_COMM_CHANNEL_IMPLEMENTATION
#include "doca_comm_channel.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 8000 };

static struct doca_dev *dev;
static struct doca_dev_rep *rep;
static struct doca_comm_channel_ep_t *ep;
static char text[LONGEST];

static void check(doca_error_t result, const char *what) {
    if (result == DOCA_SUCCESS) return;
    fprintf(stderr, "dpu_channel: %s: %s (%s)\n", what, doca_get_error_name(result), doca_get_error_string(result));
    exit(1);
}

/* The device of that name, or the first. */
static void open_device(const char *wanted) {
    struct doca_devinfo **list;
    struct doca_devinfo_rep **reps;
    uint32_t count, i, found = 0;
    char name[DOCA_DEVINFO_IFACE_NAME_SIZE];
    check(doca_devinfo_list_create(&list, &count), "listing devices");
    for (i = 0; wanted && i < count; i++)
        if (doca_devinfo_get_iface_name(list[i], name, sizeof name) == DOCA_SUCCESS && strcmp(name, wanted) == 0) break;
    found = wanted ? i : 0;
    check(found < count ? doca_dev_open(list[found], &dev) : DOCA_ERROR_NOT_FOUND, wanted ? wanted : "a device");
    doca_devinfo_list_destroy(list);
    check(doca_devinfo_rep_list_create(dev, DOCA_DEV_REP_FILTER_NET, &reps, &count), "listing representors");
    check(doca_dev_rep_open(reps[0], &rep), "opening a representor");
    doca_devinfo_rep_list_destroy(reps);
}

/* Sleeps until one of the two channels has something new. */
static void wait_on(int sends) {
    struct pollfd sleeper = {0, POLLIN, 0};
    doca_event_channel_t send_channel, recv_channel;
    check(doca_comm_channel_ep_get_event_channel(ep, &send_channel, &recv_channel), "event channels");
    if (sends)
        check(doca_comm_channel_ep_event_handle_arm_send(ep), "arming");
    else
        check(doca_comm_channel_ep_event_handle_arm_recv(ep), "arming");
    sleeper.fd = sends ? send_channel : recv_channel;
    poll(&sleeper, 1, -1);
}

static doca_error_t send_text(size_t length, struct doca_comm_channel_addr_t *peer) {
    doca_error_t result;
    while ((result = doca_comm_channel_ep_sendto(ep, text, length, DOCA_CC_MSG_FLAG_NONE, peer)) == DOCA_ERROR_AGAIN)
        wait_on(1);
    return result;
}

static doca_error_t receive_text(size_t *length, struct doca_comm_channel_addr_t **peer) {
    doca_error_t result;
    for (;;) {
        *length = LONGEST;
        result = doca_comm_channel_ep_recvfrom(ep, text, length, DOCA_CC_MSG_FLAG_NONE, peer);
        if (result != DOCA_ERROR_AGAIN) return result;
        wait_on(0);
    }
}

static void serve(const char *service) {
    struct doca_comm_channel_addr_t *peer;
    size_t length, i;
    check(doca_comm_channel_ep_set_device_rep(ep, rep), "setting the representor");
    check(doca_comm_channel_ep_listen(ep, service), "listening");
    printf("ready\n");
    for (;;) {
        doca_error_t result = receive_text(&length, &peer);
        if (result == DOCA_SUCCESS) {
            printf("received: %.*s\n", (int)length, text);
            for (i = 0; i < length; i++) text[i] = (char)toupper((unsigned char)text[i]);
            result = send_text(length, peer);
        }
        if (result == DOCA_ERROR_CONNECTION_RESET)
            doca_comm_channel_ep_disconnect(ep, peer); /* this client has left */
        else
            check(result, "serving");
    }
}

static void ask(const char *service, const char *question) {
    struct doca_comm_channel_addr_t *peer;
    size_t length = strlen(question);
    if (length > LONGEST) length = LONGEST;
    check(doca_comm_channel_ep_connect(ep, service, &peer), "connecting");
    memcpy(text, question, length);
    check(send_text(length, peer), "sending");
    check(receive_text(&length, &peer), "receiving");
    printf("%.*s\n", (int)length, text);
    check(doca_comm_channel_ep_disconnect(ep, peer), "disconnecting");
}

int main(int argc, char **argv) {
    int is_dpu = argc > 1 && strcmp(argv[1], "dpu") == 0, needed = is_dpu ? 3 : 4;
    if (argc < needed || argc > needed + 1 || (!is_dpu && strcmp(argv[1], "host") != 0)) {
        fprintf(stderr, "usage: dpu_channel dpu SERVICE [DEVICE] | dpu_channel host SERVICE TEXT [DEVICE]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    open_device(argv[needed]);
    check(doca_comm_channel_ep_create(&ep), "creating an endpoint");
    check(doca_comm_channel_ep_set_device(ep, dev), "setting the device");
    check(doca_comm_channel_ep_set_max_msg_size(ep, LONGEST), "setting the message size");
    if (is_dpu)
        serve(argv[2]);
    else
        ask(argv[2], argv[3]);
    doca_comm_channel_ep_destroy(ep);
    doca_dev_rep_close(rep);
    doca_dev_close(dev);
    return 0;
}
