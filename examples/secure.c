/* SPDX-License-Identifier: MIT OR Unlicense */
/* secure.c - says hello to another process in secret: packets are encrypted and authenticated with a key that both know.
 *
 *     cc -O2 -I.. -o secure secure.c -lsodium -pthread        (Debian: libsodium-dev)
 *     (umask 077; ./secure new >key)      makes a key that only you can read; take it to the other side in a safe way
 *     ./secure key                        the server: prints its URI, then answers everybody who has the key, for ever
 *     ./secure key udp://host:port        the client
 *
 * What it proves: that the other side has the key, and that nothing was read or changed on the way; not who it is, as
 * all have the same one: a client could pose as the server. Whoever learns the key can also read what was recorded before.
 *
 * The library makes the nonces and never gives the same twice, also after a restart. A cipher with nonces of 24 bytes
 * takes them as they are; with shorter ones it makes a key of the first 16 bytes and takes the last 8. */
#define CCI_IMPLEMENTATION
#include "cci_udp.h"
#include "cci.h"

#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct secret {
    unsigned char key[crypto_aead_xchacha20poly1305_ietf_KEYBYTES];
} secret_t;

static void check(int status, const char *what) {
    if (status == CCI_SUCCESS) return;
    fprintf(stderr, "%s: %s: %s\n", what, cci_strerror(NULL, (cci_status_t)status),
            cci_status_hint((cci_status_t)status));
    exit(1);
}

/* ---- the hooks of cci_setup(): the same key for everybody. A server with many clients would look at peer->key_id,
 * which the client's hook sets, and find the key of that client. */
static void *choose_key(void *user, cci_seal_peer_t *peer) {
    (void)peer;
    return user;
}

static int seal(void *user, void *key, const uint8_t *nonce, const uint8_t *head, uint32_t head_length, uint8_t *bytes,
                uint32_t length) {
    (void)user;
    return crypto_aead_xchacha20poly1305_ietf_encrypt(bytes, NULL, bytes, length, head, head_length, NULL, nonce,
                                                      ((const secret_t *)key)->key);
}

static int unseal(void *user, void *key, const uint8_t *nonce, const uint8_t *head, uint32_t head_length,
                  uint8_t *bytes, uint32_t length) {
    uint32_t sealed_length = length + crypto_aead_xchacha20poly1305_ietf_ABYTES;
    (void)user;
    return crypto_aead_xchacha20poly1305_ietf_decrypt(bytes, NULL, NULL, bytes, sealed_length, head, head_length, nonce,
                                                      ((const secret_t *)key)->key);
}

/* ---- the key's file: 64 hexadecimal digits */
static void read_key(const char *path, secret_t *secret) {
    char text[2 * sizeof secret->key + 1] = "";
    size_t length = 0;
    FILE *file = fopen(path, "r");
    if (file && fgets(text, sizeof text, file))
        sodium_hex2bin(secret->key, sizeof secret->key, text, sizeof text - 1, NULL, &length, NULL);
    if (file) fclose(file);
    sodium_memzero(text, sizeof text);
    if (length == sizeof secret->key) return;
    fprintf(stderr, "%s: no key in it; ./secure new makes one\n", path);
    exit(1);
}

static int print_new_key(void) {
    unsigned char key[sizeof(secret_t)];
    char text[2 * sizeof key + 1];
    randombytes_buf(key, sizeof key);
    return puts(sodium_bin2hex(text, sizeof text, key, sizeof key)) < 0;
}

/* ---- from here on as in hello.c: nothing else has to know */

/* The server's messages that are still to be answered. */
static cci_event_t **kept;
static uint32_t kept_count;

/* Answers straight from the receive buffers, and returns these. What finds no send buffer free (CCI_ENOBUFS) is tried again later.
 * What a client sent that is `gone` needs no answer; other failures are no reason to stop. */
static void answer_kept(const cci_connection_t *gone) {
    const cci_connection_t *full = NULL;
    uint32_t i, left = 0;
    for (i = 0; i < kept_count; i++) {
        const cci_event_recv_t *message = &kept[i]->recv;
        if (message->connection != gone && (message->connection == full ||
            cci_send(message->connection, message->ptr, message->len, NULL, CCI_FLAG_SILENT) == CCI_ENOBUFS)) {
            full = message->connection;
            kept[left++] = kept[i];
        } else {
            check(cci_return_event(kept[i]), "return");
        }
    }
    kept_count = left;
}

/* Keeps the event of a message until it is answered. */
static void keep(cci_event_t *event) {
    static uint32_t places;
    if (kept_count == places) {
        cci_event_t **more = (cci_event_t **)realloc((void *)kept, (places += 64) * sizeof *kept);
        check(more ? CCI_SUCCESS : CCI_ENOMEM, "memory");
        kept = more;
    }
    kept[kept_count++] = event;
}

/* Returns 1 when the client has its answer. The server keeps a message; all other events go back at once. */
static int on_event(cci_event_t *event, int is_server) {
    int is_message = event->type == CCI_EVENT_RECV;
    if (event->type == CCI_EVENT_CONNECT_REQUEST && cci_accept(event, NULL) != CCI_SUCCESS) (void)cci_reject(event);
    if (event->type == CCI_EVENT_CONNECT) {
        check((int)event->connect.status, "connect"); /* with a wrong key it times out */
        check(cci_send(event->connect.connection, "hello, friend", 13, NULL, CCI_FLAG_SILENT), "send");
    }
    if (event->type == CCI_EVENT_DISCONNECT) {
        answer_kept(event->disconnect.connection);
        check(cci_disconnect(event->disconnect.connection), "disconnect");
    }
    if (is_message) printf("received: %.*s\n", (int)event->recv.len, (const char *)event->recv.ptr);
    if (is_message && is_server) keep(event);
    else check(cci_return_event(event), "return");
    return is_message && !is_server;
}

int main(int argc, char **argv) {
    static secret_t secret;
    static cci_seal_t hooks = {crypto_aead_xchacha20poly1305_ietf_ABYTES, 0, &secret, choose_key, NULL, seal, unseal};
    static cci_setup_t setup;
    int is_server = argc == 2, done = 0;
    uint32_t caps, events = 1u << CCI_EVENT_DISCONNECT;
    cci_endpoint_t *endpoint;
    cci_os_handle_t fd;
    char *uri;
    struct timeval patience = {5, 0};
    if (argc < 2 || sodium_init() < 0) return fprintf(stderr, "usage: secure new | secure KEYFILE [URI]\n"), 1;
    if (argc == 2 && !strcmp(argv[1], "new")) return print_new_key();
    read_key(argv[1], &secret);
    setup.seal = &hooks;
    check(cci_setup(&setup), "cci_setup");
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(NULL, 0, &endpoint, &fd), "cci_create_endpoint");
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events), "cci_set_opt");
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (is_server) printf("uri: %s\n", uri);
    else check(cci_connect(endpoint, argv[2], NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), argv[2]);
    while (!done) {
        struct pollfd sleeper = {fd, POLLIN, 0};
        cci_event_t *event;
        poll(&sleeper, 1, kept_count > 0 ? 1 : -1);
        while (!done && cci_get_event(endpoint, &event) == CCI_SUCCESS) done = on_event(event, is_server);
        answer_kept(NULL);
    }
    free((void *)kept);
    free(uri);
    return cci_finalize();
}
