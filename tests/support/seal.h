/* seal.h - encryption for tests, as cci_setup() takes it, that remembers each nonce it was given.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * With CCI_TEST_SODIUM it is libsodium's XChaCha20-Poly1305. Otherwise it is a toy, which notices changes but hides and
 * proves nothing.
 */
#ifndef CCI_TEST_SEAL_H
#define CCI_TEST_SEAL_H

#include "cci.h"

#include <stdlib.h>
#include <string.h>

#ifdef CCI_TEST_SODIUM
#include <sodium.h>
#endif

#define SEAL_FN static __attribute__((unused))
#define SEAL_TAG_SIZE 16
#define SEAL_KEY_ID UINT64_C(0x1122334455667788)

typedef struct seal_key {
    uint8_t bytes[32];
} seal_key_t;

static struct seal_state {
    uint8_t secret_of_client, secret_of_server; /* 0: the hook has no key */
    uint64_t sealed, opened, refused;           /* packets */
    uint64_t repeats;                           /* nonces that a secret was given more than once */
    int given, forgotten;                       /* keys */
    int fails;                                  /* 1: `seal` says that the key is worn out */
    uint64_t *seen;                             /* a hash table of what identifies (secret, nonce); 0: free */
    size_t seen_count, seen_capacity;
} seal_state = {1, 1, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0};

/* Endpoints with helper threads call the hooks at the same time. */
static char seal_lock;

SEAL_FN void seal_begin(void) {
#ifdef __ATOMIC_ACQUIRE /* else one thread has to do */
    while (__atomic_test_and_set(&seal_lock, __ATOMIC_ACQUIRE)) {
    }
#endif
}

SEAL_FN void seal_end(void) {
#ifdef __ATOMIC_ACQUIRE
    __atomic_clear(&seal_lock, __ATOMIC_RELEASE);
#else
    seal_lock = 0;
#endif
}

SEAL_FN uint64_t seal_mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Different for any two texts of one length that differ in one word, and as good as always otherwise. Quick rather than
 * thorough: gigabytes pass through here. */
SEAL_FN uint64_t seal_hash(uint64_t hash, const uint8_t *bytes, uint32_t length) {
    uint32_t i;
    for (i = 0; i < length; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, length - i < 8 ? length - i : 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return seal_mix(hash ^ length);
}

/* Puts a fingerprint into the table; 0 if it was there. */
SEAL_FN int seal_insert(uint64_t *table, size_t capacity, uint64_t fingerprint) {
    size_t at = (size_t)fingerprint & (capacity - 1);
    while (table[at] != 0) {
        if (table[at] == fingerprint) {
            return 0;
        }
        at = (at + 1) & (capacity - 1);
    }
    table[at] = fingerprint;
    return 1;
}

SEAL_FN void seal_remember(const seal_key_t *key, const uint8_t *nonce) {
    uint64_t fingerprint = seal_hash(key->bytes[0], nonce, CCI_SEAL_NONCE_LEN) | 1;
    if (2 * seal_state.seen_count >= seal_state.seen_capacity) {
        size_t capacity = seal_state.seen_capacity == 0 ? 1024 : 2 * seal_state.seen_capacity, i;
        uint64_t *table = (uint64_t *)calloc(capacity, sizeof *table);
        if (table == NULL) {
            abort();
        }
        for (i = 0; i < seal_state.seen_capacity; i++) {
            if (seal_state.seen[i] != 0) {
                (void)seal_insert(table, capacity, seal_state.seen[i]);
            }
        }
        free(seal_state.seen);
        seal_state.seen = table;
        seal_state.seen_capacity = capacity;
    }
    if (seal_insert(seal_state.seen, seal_state.seen_capacity, fingerprint)) {
        seal_state.seen_count++;
    } else {
        seal_state.repeats++;
    }
}

SEAL_FN void *seal_choose_key(void *user, cci_seal_peer_t *peer) {
    int is_group = peer->attribute == CCI_CONN_ATTR_UU_MC_TX || peer->attribute == CCI_CONN_ATTR_UU_MC_RX;
    uint8_t secret = peer->address != NULL && !is_group ? seal_state.secret_of_client : seal_state.secret_of_server;
    seal_key_t *key;
    (void)user;
    if (peer->address != NULL) {
        peer->key_id = SEAL_KEY_ID;
    } else if (peer->key_id != SEAL_KEY_ID) {
        return NULL;
    }
    if (secret == 0) {
        return NULL;
    }
    key = (seal_key_t *)malloc(sizeof *key);
    if (key == NULL) {
        abort();
    }
    memset(key->bytes, secret, sizeof key->bytes);
    seal_begin();
    seal_state.given++;
    seal_end();
    return key;
}

SEAL_FN void seal_forget_key(void *user, void *key) {
    (void)user;
    free(key);
    seal_begin();
    seal_state.forgotten++;
    seal_end();
}

#ifdef CCI_TEST_SODIUM
SEAL_FN void seal_bytes(const seal_key_t *key, const uint8_t *nonce, const uint8_t *head, uint32_t head_length,
                        uint8_t *bytes, uint32_t length) {
    crypto_aead_xchacha20poly1305_ietf_encrypt(bytes, NULL, bytes, length, head, head_length, NULL, nonce, key->bytes);
}

SEAL_FN int seal_open_bytes(const seal_key_t *key, const uint8_t *nonce, const uint8_t *head, uint32_t head_length,
                            uint8_t *bytes, uint32_t length) {
    return crypto_aead_xchacha20poly1305_ietf_decrypt(bytes, NULL, NULL, bytes, length + SEAL_TAG_SIZE, head, head_length,
                                                      nonce, key->bytes);
}
#else
SEAL_FN void seal_tag(const seal_key_t *key, const uint8_t *nonce, const uint8_t *head, uint32_t head_length,
                      const uint8_t *bytes, uint32_t length, uint8_t *tag) {
    uint64_t hash = seal_hash(1, key->bytes, sizeof key->bytes);
    hash = seal_hash(hash, nonce, CCI_SEAL_NONCE_LEN);
    hash = seal_hash(hash, head, head_length);
    hash = seal_hash(hash, bytes, length);
    memcpy(tag, &hash, 8);
    hash = seal_mix(hash + 1);
    memcpy(tag + 8, &hash, 8);
}

SEAL_FN void seal_scramble(const seal_key_t *key, const uint8_t *nonce, uint8_t *bytes, uint32_t length) {
    uint64_t state = seal_hash(seal_hash(2, key->bytes, sizeof key->bytes), nonce, CCI_SEAL_NONCE_LEN);
    uint32_t i;
    for (i = 0; i < length; i += 8) {
        uint32_t count = length - i < 8 ? length - i : 8;
        uint64_t word = 0;
        memcpy(&word, bytes + i, count);
        word ^= state ^ state >> 32;
        memcpy(bytes + i, &word, count);
        state = state * UINT64_C(0x5851f42d4c957f2d) + 1;
    }
}

SEAL_FN void seal_bytes(const seal_key_t *key, const uint8_t *nonce, const uint8_t *head, uint32_t head_length,
                        uint8_t *bytes, uint32_t length) {
    seal_scramble(key, nonce, bytes, length);
    seal_tag(key, nonce, head, head_length, bytes, length, bytes + length);
}

SEAL_FN int seal_open_bytes(const seal_key_t *key, const uint8_t *nonce, const uint8_t *head, uint32_t head_length,
                            uint8_t *bytes, uint32_t length) {
    uint8_t tag[SEAL_TAG_SIZE];
    seal_tag(key, nonce, head, head_length, bytes, length, tag);
    if (memcmp(tag, bytes + length, sizeof tag) != 0) {
        return -1;
    }
    seal_scramble(key, nonce, bytes, length);
    return 0;
}
#endif

SEAL_FN int seal_packet(void *user, void *key, const uint8_t nonce[CCI_SEAL_NONCE_LEN], const uint8_t *head,
                        uint32_t head_length, uint8_t *bytes, uint32_t length) {
    (void)user;
    if (seal_state.fails) {
        return -1;
    }
    seal_begin();
    seal_state.sealed++;
    seal_remember((const seal_key_t *)key, nonce);
    seal_end();
    seal_bytes((const seal_key_t *)key, nonce, head, head_length, bytes, length);
    return 0;
}

SEAL_FN int seal_open_packet(void *user, void *key, const uint8_t nonce[CCI_SEAL_NONCE_LEN], const uint8_t *head,
                             uint32_t head_length, uint8_t *bytes, uint32_t length) {
    int status = seal_open_bytes((const seal_key_t *)key, nonce, head, head_length, bytes, length);
    (void)user;
    seal_begin();
    seal_state.opened += status == 0;
    seal_state.refused += status != 0;
    seal_end();
    return status;
}

static cci_seal_t seal_hooks = {SEAL_TAG_SIZE, 0, NULL, seal_choose_key, seal_forget_key, seal_packet, seal_open_packet};

/* All as at the beginning; nonces seen are remembered unless they are forgotten here. */
SEAL_FN void seal_reset(void) {
    free(seal_state.seen);
    memset(&seal_state, 0, sizeof seal_state);
    seal_state.secret_of_client = seal_state.secret_of_server = 1;
    seal_hooks.plain_allowed = 0;
}

#endif /* CCI_TEST_SEAL_H */
