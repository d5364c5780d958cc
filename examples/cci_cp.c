/* SPDX-License-Identifier: MIT OR Unlicense */
/* cci_cp.c - copies files and directories to another machine by remote memory access.
 *
 *     cc -O2 -I.. -o cci_cp cci_cp.c -pthread
 *     ./cci_cp -l DIR                              the receiver: prints its URI, writes below DIR
 *     ./cci_cp FILE... udp://host:port[/subdir]    the sender
 *
 *     ./cci_cp --new-key FILE                      makes a key for --key at both sides (with libsodium)
 *
 * Without a key whoever reaches the receiver's port may write below DIR (and nowhere else): use it among friends.
 *
 * HOW. What the sender has to say is one stream of records: a directory, a file's name, a piece of its bytes, its
 * end. It packs them into slots of registered memory, so that a thousand small files travel together, and writes
 * each full slot into the same slot of the receiver's memory by cci_rma(); the completion message tells slot and
 * length. The receiver works off the slots in order and gives each back with a CREDIT. Since there are many slots,
 * reading, moving and writing overlap. Free slots are used last in, first out: what was used a moment ago is still
 * in the cache.
 *
 * HOLES. Where a file says that it has a hole, a record says so too: nothing is read, sent or written. The digest takes
 * runs of zeros as numbers.
 *
 * RESUMING. A file is written as `.NAME.cci-part`, given mode and times, and then renamed, so that NAME is always
 * whole. Before a file of 1 MiB or more the sender asks what is there already: a part, or a whole file of the same
 * size and time; while it waits for the answer it goes on with other files. The receiver offers the length and a digest
 * of it; if the digest is that of the same bytes at the sender, only the rest is copied. A smaller file is sent, and
 * compared with one of the same size and time: if it is the same, nothing is written. At the end the digests of the
 * whole file are compared, whatever its size. The digest notices accidents; it is not cryptographic. With
 * --remove-parts, at either side, parts are removed when a file is interrupted.
 *
 * SPACE. If the receiver's disk has less space than all files take the sender asks how much is needed beyond what is
 * there already, and begins nothing that can't be ended.
 *
 * WHO DIES OR IS CUT OFF is given up when nothing was heard of it for 10 seconds; --timeout says otherwise, for a disk that
 * takes longer to write 256 KiB.
 *
 * NAMES are bytes, and not trusted: a path that is absolute or has empty, "." or ".." components is refused, and the
 * receiver never follows a symbolic link below DIR. With --links the sender copies symbolic links too, and the
 * receiver makes those that stay within DIR; others are skipped. Set-user-id bits are not copied. */
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

#include <dirent.h>
#ifndef CCI_NO_DLOPEN
#include <dlfcn.h>
#endif
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#ifdef __APPLE__
#define st_mtim st_mtimespec
#endif

#define SLOT_BYTES (256u * 1024)
#define SLOT_COUNT 32u
#define SLOT_LIMIT 256u        /* that a sender accepts                          */
#define ASK_BYTES (1u << 20)   /* a smaller file is sent without asking          */
#define PATH_BYTES 4096u
#define NAME_BYTES 256u        /* a component and its final 0                    */
#define SESSION_LIMIT 8
#define STALL_NS 60000000000ull
#define PIECE_BYTES (1u << 20) /* hashed between two looks at the events         */
#define FILES_UNDER_WAY 16 /* large files of which the sender asks at the same time */
#define QUEUE_LIMIT 64u
#define REQUEST_MAGIC 0x32504343u
#define REQUEST_BYTES 5u     /* magic, flags; the subdirectory follows             */
#define REQUEST_REMOVE 1u    /* parts are removed rather than kept                 */

static cci_endpoint_t *endpoint;
static cci_os_handle_t os_handle;
static int quiet;
static int bar_stands;          /* the cursor is behind the progress bar */
static uint32_t timeout_s = 10; /* after which a side that says nothing is given up */

/* What is said next begins a line of its own. */
static void leave_bar(void) {
    if (bar_stands) fputc('\n', stderr);
    bar_stands = 0;
}

static void fail(const char *what, int status) {
    const char *text = cci_strerror(endpoint, (cci_status_t)status), *hint = cci_status_hint((cci_status_t)status);
    leave_bar();
    fprintf(stderr, "cci_cp: %s: %s: %s\n", what, text ? text : "unknown status", hint ? hint : "see the log");
    exit(1);
}

static void check(int status, const char *what) {
    if (status != CCI_SUCCESS) fail(what, status);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void put_le(uint8_t *to, uint64_t value, int bytes) {
    int i;
    for (i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_le(const uint8_t *from, int bytes) {
    uint64_t value = 0;
    while (bytes-- > 0) value = value << 8 | from[bytes];
    return value;
}

/* Names come from anywhere: what a terminal could take for a command is not printed. */
static const char *printable(const char *name) {
    static char text[PATH_BYTES];
    size_t i;
    for (i = 0; i < sizeof text - 1 && name[i]; i++)
        text[i] = (char)((unsigned char)name[i] < 32 || name[i] == 127 ? '?' : name[i]);
    text[i] = 0;
    return text;
}

/* ---- digest ---------------------------------------------------------------------------------------------------- */

/* Four lanes of 64 bits take the four words of each 32-byte block: multiply, add, rotate, multiply. Each step can be
 * undone, so that no block is ever without effect; at the end the lanes and the length are mixed into 64 bits. */
struct digest {
    uint64_t lane[4], length_bytes;
    uint64_t zero_blocks; /* not mixed in yet: a hole of any length costs nothing */
    uint8_t tail[32];
};

static const uint64_t odd_a = 0x9e3779b97f4a7c15u, odd_b = 0xc2b2ae3d27d4eb4fu;

static void digest_begin(struct digest *digest) {
    int i;
    memset(digest, 0, sizeof *digest);
    for (i = 0; i < 4; i++) digest->lane[i] = odd_a * (uint64_t)(i + 1);
}

static uint64_t digest_word(const uint8_t *from) {
    uint64_t word;
    memcpy(&word, from, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static void digest_mix(uint64_t *lane, uint64_t word, uint64_t before, uint64_t after) {
    uint64_t x = *lane + word * before;
    *lane = (x << 29 | x >> 35) * after;
}

/* A run of blocks of zeros is mixed in as its length. */
static void digest_mix_zeros(struct digest *digest) {
    int i;
    for (i = 0; digest->zero_blocks && i < 4; i++) digest_mix(&digest->lane[i], digest->zero_blocks, odd_b, odd_a);
    digest->zero_blocks = 0;
}

static void digest_block(struct digest *digest, const uint8_t *block) {
    uint64_t word[4];
    int i;
    for (i = 0; i < 4; i++) word[i] = digest_word(block + 8 * i);
    if ((word[0] | word[1] | word[2] | word[3]) == 0) {
        digest->zero_blocks++;
        return;
    }
    if (digest->zero_blocks) digest_mix_zeros(digest);
    for (i = 0; i < 4; i++) digest_mix(&digest->lane[i], word[i], odd_a, odd_b);
}

static void digest_add(struct digest *digest, const uint8_t *bytes, size_t count) {
    size_t held = digest->length_bytes % 32;
    digest->length_bytes += count;
    if (held) {
        size_t room = 32 - held, taken = count < room ? count : room;
        memcpy(digest->tail + held, bytes, taken);
        bytes += taken;
        count -= taken;
        if (held + taken < 32) return;
        digest_block(digest, digest->tail);
    }
    for (; count >= 32; bytes += 32, count -= 32) digest_block(digest, bytes);
    memcpy(digest->tail, bytes, count);
}

/* Adds so many zeros. */
static void digest_zeros(struct digest *digest, uint64_t count) {
    static const uint8_t zeros[32] = {0};
    uint64_t held = digest->length_bytes % 32, first = held && 32 - held < count ? 32 - held : held ? count : 0;
    digest_add(digest, zeros, (size_t)first);
    count -= first;
    digest->zero_blocks += count / 32;
    digest->length_bytes += count - count % 32;
    digest_add(digest, zeros, (size_t)(count % 32));
}

static uint64_t digest_end(const struct digest *digest) {
    struct digest last = *digest;
    uint64_t x = last.length_bytes * odd_a;
    int i;
    memset(last.tail + last.length_bytes % 32, 0, 32 - last.length_bytes % 32);
    digest_block(&last, last.tail);
    digest_mix_zeros(&last);
    for (i = 0; i < 4; i++) {
        x = (x ^ last.lane[i]) * odd_b;
        x ^= x >> 31;
        x *= odd_a;
        x ^= x >> 29;
    }
    return x;
}

/* ---- records and messages -------------------------------------------------------------------------------------- */

enum record_type {
    RECORD_DIR = 1,  /* payload: path                                                        */
    RECORD_DIR_END,  /* payload: path; sets mode and time when all is in it                  */
    RECORD_FILE,     /* payload: path; several may be open, told apart by `id`               */
    RECORD_DATA,     /* payload: bytes; `size` is their offset: the next expected, or 0      */
    RECORD_FILE_END, /* `digest` of all bytes                                                */
    RECORD_ABORT,    /* the sender could not read the rest; the part is kept                 */
    RECORD_LINK,     /* payload: path, a byte 0, and what the link says                      */
    RECORD_FINISH,
    RECORD_HOLE,     /* as RECORD_DATA, but `digest` zeros that take no space                */
    RECORD_NEED,     /* payload: path of a file that takes `digest` bytes: is it there?      */
    RECORD_NEED_END  /* how much space do those take together?                               */
};

/* A record in a slot: 48 bytes little-endian, the payload, and zeros up to a multiple of 8. */
#define RECORD_BYTES 48u
struct record {
    uint32_t type, length_bytes, id, mode;
    uint64_t size;
    int64_t mtime_s;
    uint32_t mtime_ns, ask;
    uint64_t digest;
};

static void record_put(uint8_t *to, const struct record *record) {
    put_le(to, record->type, 4);
    put_le(to + 4, record->length_bytes, 4);
    put_le(to + 8, record->id, 4);
    put_le(to + 12, record->mode, 4);
    put_le(to + 16, record->size, 8);
    put_le(to + 24, (uint64_t)record->mtime_s, 8);
    put_le(to + 32, record->mtime_ns, 4);
    put_le(to + 36, record->ask, 4);
    put_le(to + 40, record->digest, 8);
}

static void record_get(const uint8_t *from, struct record *record) {
    record->type = (uint32_t)get_le(from, 4);
    record->length_bytes = (uint32_t)get_le(from + 4, 4);
    record->id = (uint32_t)get_le(from + 8, 4);
    record->mode = (uint32_t)get_le(from + 12, 4);
    record->size = get_le(from + 16, 8);
    record->mtime_s = (int64_t)get_le(from + 24, 8);
    record->mtime_ns = (uint32_t)get_le(from + 32, 4);
    record->ask = (uint32_t)get_le(from + 36, 4);
    record->digest = get_le(from + 40, 8);
}

enum message_type {
    MESSAGE_HELLO = 1, /* receiver: `number` slots of `a` bytes, `b` free on disk; body: RMA handle */
    MESSAGE_SLOT,      /* sender: slot `number` holds `a` bytes of records                    */
    MESSAGE_CREDIT,    /* receiver: slot `number` is free again                               */
    MESSAGE_OFFER,     /* receiver: has `a` bytes of file `number`, of digest `b`             */
    MESSAGE_ALIVE,     /* receiver: still at it                                               */
    MESSAGE_ERROR,     /* receiver: file `number` failed; body: why. ALL: the session is over */
    MESSAGE_FINISHED,  /* receiver: everything before FINISH is on disk: `a` bytes were new, `b` files were there */
    MESSAGE_NEED       /* receiver: what RECORD_NEED named takes `a` bytes more than there are now                */
};
#define ALL 0xffffffffu

#define MESSAGE_BYTES 24u /* and the body */
#define BODY_BYTES 200u
struct message {
    uint32_t type, number;
    uint64_t a, b;
    uint32_t body_bytes;
    char body[BODY_BYTES + 1]; /* and a final 0, which does not travel */
};

static uint32_t message_put(uint8_t *to, const struct message *message) {
    put_le(to, message->type, 4);
    put_le(to + 4, message->number, 4);
    put_le(to + 8, message->a, 8);
    put_le(to + 16, message->b, 8);
    memcpy(to + MESSAGE_BYTES, message->body, message->body_bytes);
    return MESSAGE_BYTES + message->body_bytes;
}

static int message_get(const cci_event_recv_t *received, struct message *message) {
    const uint8_t *from = (const uint8_t *)received->ptr;
    if (received->len < MESSAGE_BYTES || received->len > MESSAGE_BYTES + BODY_BYTES) return 0;
    message->type = (uint32_t)get_le(from, 4);
    message->number = (uint32_t)get_le(from + 4, 4);
    message->a = get_le(from + 8, 8);
    message->b = get_le(from + 16, 8);
    message->body_bytes = received->len - MESSAGE_BYTES;
    memcpy(message->body, from + MESSAGE_BYTES, message->body_bytes);
    message->body[message->body_bytes] = 0;
    return 1;
}

/* ---- both sides: bytes of files, events ------------------------------------------------------------------------ */

/* Reads or writes all of it; returns what was done, less at the end of the file or with an error in errno. */
static size_t read_at(int fd, uint8_t *to, size_t count, uint64_t offset) {
    size_t done = 0;
    while (done < count) {
        ssize_t got = pread(fd, to + done, count - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += (size_t)got;
    }
    return done;
}

static size_t write_at(int fd, const uint8_t *from, size_t count, uint64_t offset) {
    size_t done = 0;
    while (done < count) {
        ssize_t put = pwrite(fd, from + done, count - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) break;
        done += (size_t)put;
    }
    return done;
}

/* Whether a file takes less space than it has bytes. */
static int has_holes(const struct stat *status) {
    return (uint64_t)status->st_blocks * 512 < (uint64_t)status->st_size;
}

static uint64_t space_of(const struct stat *status) {
    return has_holes(status) ? (uint64_t)status->st_blocks * 512 : (uint64_t)status->st_size;
}

/* Where the hole or the data that begins at `position` ends, `size` at most. Who can't tell says that all is data. */
static uint64_t region_end(int fd, uint64_t position, uint64_t size, int *is_hole) {
    uint64_t end = size;
    *is_hole = 0;
#if defined(SEEK_HOLE) && defined(SEEK_DATA)
    {
        off_t data = lseek(fd, (off_t)position, SEEK_DATA), hole;
        struct stat status;
        if (data < 0) *is_hole = errno == ENXIO && fstat(fd, &status) == 0 && (uint64_t)status.st_size >= size;
        else if ((uint64_t)data > position) {
            *is_hole = 1;
            end = (uint64_t)data;
        } else if ((hole = lseek(fd, (off_t)position, SEEK_HOLE)) > data) end = (uint64_t)hole;
    }
#else
    (void)fd;
    (void)position;
#endif
    if (end > size) end = size;
    return end;
}

/* ---- signals: taken note of, and heeded where nothing is half done */

static volatile sig_atomic_t interrupted, resized, asked; /* for statistics */

static void on_interrupt(int number) { interrupted = number; }

static void on_resize(int number) {
    (void)number;
    resized = 1;
}

static void on_asked(int number) {
    (void)number;
    asked = 1;
}

/* What the endpoint has sent, received and dropped, to standard error. */
static void tell_statistics(void) {
    cci_endpt_stats_t all;
    asked = 0;
    if (cci_get_opt(endpoint, CCI_OPT_ENDPT_STATS, &all) != CCI_SUCCESS) return;
    fprintf(stderr, "\nconnections: %u; bytes: %llu sent, %llu received; datagrams: %llu sent, %llu received, %llu retransmitted, "
            "%llu lost; dropped: %llu corrupt, %llu without a buffer, %llu repeated, %llu others\n",
            all.connections_open, (unsigned long long)all.bytes_sent, (unsigned long long)all.bytes_received,
            (unsigned long long)all.datagrams_sent, (unsigned long long)all.datagrams_received,
            (unsigned long long)all.packets_retransmitted, (unsigned long long)all.packets_lost,
            (unsigned long long)all.dropped_corrupt, (unsigned long long)all.dropped_no_buffer,
            (unsigned long long)all.dropped_duplicate,
            (unsigned long long)(all.dropped_not_ours + all.dropped_no_connection + all.dropped_not_authentic));
}

static void take_signals(void) {
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_resize;
    sigaction(SIGWINCH, &action, NULL);
    action.sa_handler = on_asked;
    sigaction(SIGUSR1, &action, NULL);
}

/* Says how to go on, and takes leave of the other side. */
static void on_leaving(void);

/* Ends as the signal would have ended the program. */
static void end_interrupted(void) {
    int number = (int)interrupted;
    interrupted = 0;
    on_leaving();
    signal(number, SIG_DFL);
    kill(getpid(), number);
    exit(1);
}

/* What one side does with an event. Handlers only take notes: they may be called while a file is being worked on. */
static void on_event(cci_event_t *event);

static int drain(void) {
    cci_event_t *event;
    int count = 0, status;
    if (interrupted) end_interrupted();
    if (asked) tell_statistics();
    while ((status = cci_get_event(endpoint, &event)) == CCI_SUCCESS) {
        on_event(event);
        cci_return_event(event);
        count++;
    }
    if (status != CCI_EAGAIN) fail("cci_get_event", status);
    return count;
}

/* Sleeps until something happens, at most `limit_ms`. */
static void doze(int limit_ms) {
    struct pollfd sleeper = {os_handle, POLLIN, 0};
    poll(&sleeper, 1, limit_ms);
}

/* Adds the first `count` bytes of a file to a digest, serving the network meanwhile. Returns 0 when there are fewer. */
static int digest_file(struct digest *digest, int fd, uint64_t count, void (*alive)(void *), void *context) {
    uint8_t *piece = (uint8_t *)malloc(PIECE_BYTES);
    struct stat status;
    uint64_t done = 0, end = count, unsaid = 0;
    int is_hole = 0, holes = fstat(fd, &status) == 0 && has_holes(&status);
    if (!piece) return 0;
    if (holes) end = 0;
    while (done < count) {
        size_t wanted;
        if (done == end) end = region_end(fd, done, count, &is_hole);
        wanted = end - done < PIECE_BYTES ? (size_t)(end - done) : PIECE_BYTES;
        if (is_hole) digest_zeros(digest, end - done);
        else if (read_at(fd, piece, wanted, done) != wanted) break;
        else digest_add(digest, piece, wanted);
        done = is_hole ? end : done + wanted;
        drain();
        if (!alive || ++unsaid % 64 != 0) continue;
        alive(context);
    }
    free(piece);
    return done == count;
}

/* ---- the key: packets are sealed as in secure.c, with a libsodium that is loaded only when there is a key ---------- */

#define KEY_BYTES 32
typedef int seal_function(unsigned char *to, unsigned long long *to_length, const unsigned char *from,
                          unsigned long long from_length, const unsigned char *head, unsigned long long head_length,
                          const unsigned char *unused, const unsigned char *nonce, const unsigned char *key);
typedef int unseal_function(unsigned char *to, unsigned long long *to_length, unsigned char *unused,
                            const unsigned char *from, unsigned long long from_length, const unsigned char *head,
                            unsigned long long head_length, const unsigned char *nonce, const unsigned char *key);

static struct {
    unsigned char bytes[KEY_BYTES];
    seal_function *seal;
    unseal_function *unseal;
    int is_set;
} secret;

static void *choose_key(void *user, cci_seal_peer_t *peer) {
    (void)user;
    (void)peer;
    return secret.bytes;
}

static int seal(void *user, void *key, const uint8_t *nonce, const uint8_t *head, uint32_t head_length, uint8_t *bytes,
                uint32_t length) {
    (void)user;
    return secret.seal(bytes, NULL, bytes, length, head, head_length, NULL, nonce, (const unsigned char *)key);
}

#define TAG_BYTES 16
static int unseal(void *user, void *key, const uint8_t *nonce, const uint8_t *head, uint32_t head_length, uint8_t *bytes,
                  uint32_t length) {
    (void)user;
    return secret.unseal(bytes, NULL, NULL, bytes, (unsigned long long)length + TAG_BYTES, head, head_length, nonce,
                         (const unsigned char *)key);
}

/* Finds libsodium. Returns 0 when there is none. */
static int load_cipher(void) {
#ifndef CCI_NO_DLOPEN
    static const char *const names[] = {"libsodium.so.26", "libsodium.so.23", "libsodium.so.18",
                                        "libsodium.so",    "libsodium.dylib", NULL};
    void *library = NULL, *symbol;
    int (*start)(void) = NULL;
    int i;
    for (i = 0; !library && names[i]; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return 0;
    if ((symbol = dlsym(library, "sodium_init")) != NULL) memcpy((void *)&start, (void *)&symbol, sizeof symbol);
    if ((symbol = dlsym(library, "crypto_aead_xchacha20poly1305_ietf_encrypt")) != NULL)
        memcpy((void *)&secret.seal, (void *)&symbol, sizeof symbol);
    if ((symbol = dlsym(library, "crypto_aead_xchacha20poly1305_ietf_decrypt")) != NULL)
        memcpy((void *)&secret.unseal, (void *)&symbol, sizeof symbol);
    return start && secret.seal && secret.unseal && start() >= 0;
#else
    return 0;
#endif
}

static int hex_digit(int digit) {
    const char *digits = "0123456789abcdef";
    const char *found = digit > 0 ? strchr(digits, digit) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* Reads 64 hexadecimal digits from a file that nobody else may read. Returns NULL, or what is wrong. */
static const char *read_key(const char *path) {
    struct stat status;
    FILE *file = fopen(path, "r");
    const char *wrong = NULL;
    int i;
    if (!file) return strerror(errno);
    setvbuf(file, NULL, _IONBF, 0);
    if (fstat(fileno(file), &status) != 0 || (status.st_mode & 077)) wrong = "others may read it: chmod 600";
    for (i = 0; !wrong && i < KEY_BYTES; i++) {
        int high = hex_digit(fgetc(file)), low = hex_digit(fgetc(file));
        if (high < 0 || low < 0) wrong = "no key in it; --new-key makes one";
        else secret.bytes[i] = (unsigned char)(high << 4 | low);
    }
    fclose(file);
    return wrong;
}

/* Makes a file with a new key that only its owner may read. Returns the exit status. */
static int make_key(const char *path) {
    unsigned char key[KEY_BYTES];
    char text[2 * KEY_BYTES + 1];
    size_t i;
    int random_fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC), fd = -1, good;
    good = random_fd >= 0 && read(random_fd, key, sizeof key) == (ssize_t)sizeof key;
    if (random_fd >= 0) close(random_fd);
    for (i = 0; good && i < sizeof key; i++) {
        text[2 * i] = "0123456789abcdef"[key[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[key[i] & 15];
    }
    text[2 * KEY_BYTES] = '\n';
    if (good) fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    good = fd >= 0 && write(fd, text, sizeof text) == (ssize_t)sizeof text;
    if (fd >= 0) good = close(fd) == 0 && good;
    if (!good) fprintf(stderr, "cci_cp: %s: %s\n", printable(path), strerror(errno));
    return !good;
}

/* From now on all packets are sealed. Returns 0 when that can't be. */
static int use_key(const char *path) {
    static const cci_seal_t hooks = {TAG_BYTES, 0, NULL, choose_key, NULL, seal, unseal};
    static cci_setup_t setup;
    const char *wrong = read_key(path);
    if (!wrong && !load_cipher()) wrong = "--key needs libsodium, which is not installed";
    if (wrong) {
        fprintf(stderr, "cci_cp: %s: %s\n", printable(path), wrong);
        return 0;
    }
    setup.seal = &hooks;
    check(cci_setup(&setup), "cci_setup");
    secret.is_set = 1;
    return 1;
}

/* ---- receiver: paths ------------------------------------------------------------------------------------------- */

/* Cuts the next component off a path. Returns 1, 0 at the end of the path, -1 for one that is refused. */
static int next_component(const char **path, char *component) {
    const char *from = *path;
    size_t length = strcspn(from, "/");
    if (*from == 0) return 0;
    if (length == 0 || length >= NAME_BYTES) return -1;
    memcpy(component, from, length);
    component[length] = 0;
    if (strcmp(component, ".") == 0 || strcmp(component, "..") == 0) return -1;
    *path = from + length;
    if (**path == '/' && *++*path == 0) return -1; /* nothing behind the slash */
    return 1;
}

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Opens the directory in which the last component of a path lies, and gives that component. No component may be a
 * symbolic link: the path can't leave the root. Returns -1 with errno. */
static int open_parent(int root_fd, const char *path, char *name) {
    int fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    int more = next_component(&path, name);
    while (fd >= 0 && more > 0 && *path) {
        int next = openat(fd, name, DIRECTORY_FLAGS), error = errno;
        close(fd);
        errno = error;
        fd = next;
        if (fd >= 0) more = next_component(&path, name);
    }
    if (fd >= 0 && more <= 0) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

/* Makes a directory unless it is there, and opens it. */
static int make_directory(int parent_fd, const char *name) {
    if (mkdirat(parent_fd, name, 0700) != 0 && errno != EEXIST) return -1;
    return openat(parent_fd, name, DIRECTORY_FLAGS);
}

/* Opens the subdirectory that a sender asks for, making what is missing. Closes root_fd. */
static int open_subdirectory(int root_fd, const char *path) {
    char name[NAME_BYTES];
    int more, fd = root_fd;
    while ((more = next_component(&path, name)) > 0) {
        int made = mkdirat(fd, name, 0777), next = openat(fd, name, DIRECTORY_FLAGS), error = errno;
        (void)made; /* it may be there: then opening tells whether it will do */
        close(fd);
        errno = error;
        fd = next;
        if (fd < 0) return -1;
    }
    if (more == 0) return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

static void part_name(const char *name, char *part) {
    struct digest digest;
    size_t length = strlen(name);
    if (length + sizeof "..cci-part" <= NAME_BYTES) {
        part[0] = '.';
        memcpy(part + 1, name, length);
        memcpy(part + 1 + length, ".cci-part", sizeof ".cci-part");
        return;
    }
    digest_begin(&digest); /* too long to be made longer */
    digest_add(&digest, (const uint8_t *)name, length);
    snprintf(part, NAME_BYTES, ".%016llx.cci-part", (unsigned long long)digest_end(&digest));
}

/* A link stays inside when it begins with at most as many ".." as its directory is deep, and has none later: what comes
 * later may lead through other links. */
static int link_stays_inside(const char *path, const char *target) {
    int depth = 0, down = 0;
    if (*target == '/' || *target == 0) return 0;
    for (; *path; path++) depth += *path == '/';
    while (*target) {
        size_t length = strcspn(target, "/");
        if (length == 2 && target[0] == '.' && target[1] == '.') {
            if (down || --depth < 0) return 0;
        } else if (length > 0 && !(length == 1 && target[0] == '.')) down = 1;
        target += length + (target[length] == '/');
    }
    return 1;
}

/* ---- receiver: sessions ---------------------------------------------------------------------------------------- */

struct directory { /* stays open while files in it are under way, or the next file may be in it too */
    int fd, uses;
    char path[PATH_BYTES];
};

struct incoming { /* a file that is being received */
    uint32_t id, mode;
    struct directory *directory; /* NULL: this one is free                                                      */
    int fd;                      /* -1: none                                                                    */
    int is_whole;                /* fd is a file that was there already, not a part, and so far it is the same  */
    char name[NAME_BYTES], part[NAME_BYTES];
    uint64_t size, position, written; /* to its end, up to where bytes came or are on disk; between them is a hole */
    struct timespec times[2];
    struct digest digest;
    uint64_t came_bytes;
};

struct session {
    int in_use, is_new, removes_parts;
    cci_connection_t *connection;
    int root_fd;
    struct directory *directory; /* of the last file */
    char subdirectory[CCI_CONN_REQ_LEN + 1];
    uint8_t *slots;
    cci_rma_handle_t *handle;
    struct { /* slots that hold records, in the order in which they came */
        uint32_t slot, length_bytes;
    } ready[SLOT_COUNT];
    uint32_t ready_first, ready_count;
    const char *ended; /* why the session is over; "" when all is well */
    struct incoming files[FILES_UNDER_WAY];
    uint64_t copied, bytes, unchanged, errors;
    uint64_t need, need_peak; /* what the files that it asks for take beyond what is there; modulo 2^64 */
};

static struct session sessions[SESSION_LIMIT];
static int listening, ended_count, ended_badly;
static const char *root_name;
static int removes_parts;

static void directory_close(struct directory *directory) {
    if (!directory || --directory->uses > 0) return;
    close(directory->fd);
    free(directory);
}

static void session_end(struct session *session, const char *why) {
    if (!session->ended) session->ended = why; /* closed by the main loop, when nothing is working on it */
}

static void session_send(struct session *session, const struct message *message) {
    uint8_t bytes[MESSAGE_BYTES + BODY_BYTES];
    uint32_t length = message_put(bytes, message);
    int status = CCI_EAGAIN;
    /* The completion of the last message says that the session may be closed. */
    int is_last = message->type == MESSAGE_FINISHED || (message->type == MESSAGE_ERROR && message->number == ALL);
    while (!session->ended) {
        status = cci_send(session->connection, bytes, length, NULL, is_last ? 0 : CCI_FLAG_SILENT);
        if (status != CCI_ENOBUFS) break;
        if (drain() == 0) doze(100);
    }
    if (status != CCI_SUCCESS) session_end(session, cci_strerror(endpoint, (cci_status_t)status));
}

static void session_tell(struct session *session, uint32_t type, uint32_t number, uint64_t a, uint64_t b) {
    struct message message;
    memset(&message, 0, sizeof message);
    message.type = type;
    message.number = number;
    message.a = a;
    message.b = b;
    session_send(session, &message);
}

static void session_alive(void *session) { session_tell((struct session *)session, MESSAGE_ALIVE, 0, 0, 0); }

static void session_error(struct session *session, uint32_t id, const char *what, const char *why) {
    struct message message;
    int length;
    memset(&message, 0, sizeof message);
    message.type = MESSAGE_ERROR;
    message.number = id;
    length = snprintf(message.body, BODY_BYTES, "%s: %s", what, why);
    message.body_bytes = length < (int)BODY_BYTES ? (uint32_t)length : BODY_BYTES - 1;
    fprintf(stderr, "cci_cp: %s\n", printable(message.body));
    session->errors++;
    session_send(session, &message);
}

/* Opens the directory in which a path lies, which mostly is that of the path before, and gives the last component. */
static struct directory *directory_open(struct session *session, const char *path, char *name) {
    const char *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : path;
    size_t length = slash ? (size_t)(slash - path) : 0;
    struct directory *directory = session->directory;
    if (length >= PATH_BYTES) return NULL;
    if (directory && strlen(directory->path) == length && memcmp(directory->path, path, length) == 0 &&
        (slash == NULL) == (length == 0)) {
        if (next_component(&last, name) == 1) return directory->uses++, directory;
        errno = EINVAL;
        return NULL;
    }
    directory = (struct directory *)calloc(1, sizeof *directory);
    if (!directory) return NULL;
    directory->fd = open_parent(session->root_fd, path, name);
    if (directory->fd < 0) {
        free(directory);
        return NULL;
    }
    memcpy(directory->path, path, length);
    directory->uses = 2;
    directory_close(session->directory);
    session->directory = directory;
    return directory;
}

static void file_close(struct incoming *file, int remove_part) {
    if (file->fd >= 0) close(file->fd);
    if (file->fd >= 0 && !file->is_whole && remove_part) unlinkat(file->directory->fd, file->part, 0);
    directory_close(file->directory);
    file->directory = NULL;
    file->fd = -1;
}

static void file_fail(struct session *session, struct incoming *file, const char *what, const char *why) {
    session_error(session, file->id, what, why);
    file_close(file, session->removes_parts);
}

/* Finds the file that the sender calls so, or a free place. */
static struct incoming *file_find(struct session *session, uint32_t id, int wants_free) {
    int i;
    for (i = 0; i < FILES_UNDER_WAY; i++) {
        struct incoming *file = &session->files[i];
        if (wants_free ? !file->directory : file->directory && file->id == id) return file;
    }
    return NULL;
}

static uint64_t free_space(int fd) {
    struct statvfs disk;
    if (fstatvfs(fd, &disk) != 0) return UINT64_MAX;
    return (uint64_t)(geteuid() == 0 ? disk.f_bfree : disk.f_bavail) * disk.f_frsize;
}

static void session_request(cci_event_t *event) {
    const uint8_t *data = (const uint8_t *)event->request.data_ptr;
    uint32_t length = event->request.data_len;
    int i = 0;
    while (i < SESSION_LIMIT && sessions[i].in_use) i++;
    if (!listening || i == SESSION_LIMIT || length < REQUEST_BYTES || get_le(data, 4) != REQUEST_MAGIC ||
        event->request.attribute != CCI_CONN_ATTR_RO) {
        cci_reject(event);
        return;
    }
    memset(&sessions[i], 0, sizeof sessions[i]);
    sessions[i].in_use = 1;
    sessions[i].root_fd = -1;
    sessions[i].removes_parts = removes_parts || (data[4] & REQUEST_REMOVE);
    memcpy(sessions[i].subdirectory, data + REQUEST_BYTES, length - REQUEST_BYTES);
    cci_accept(event, &sessions[i]);
}

/* Opens the directory and the memory, and tells the sender. */
static void session_begin(struct session *session) {
    struct message hello;
    int root_fd = open(root_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd >= 0) root_fd = open_subdirectory(root_fd, session->subdirectory);
    session->root_fd = root_fd;
    session->is_new = 0;
    if (root_fd < 0) {
        session_error(session, ALL, *session->subdirectory ? session->subdirectory : root_name, strerror(errno));
        return;
    }
    session->slots = (uint8_t *)malloc(SLOT_BYTES * SLOT_COUNT);
    if (!session->slots || cci_rma_register(endpoint, session->slots, SLOT_BYTES * SLOT_COUNT, CCI_FLAG_WRITE,
                                            &session->handle) != CCI_SUCCESS) {
        session_error(session, ALL, "memory", strerror(ENOMEM));
        return;
    }
    memset(&hello, 0, sizeof hello);
    hello.type = MESSAGE_HELLO;
    hello.number = SLOT_COUNT;
    hello.a = SLOT_BYTES;
    hello.b = free_space(root_fd);
    hello.body_bytes = sizeof *session->handle;
    memcpy(hello.body, session->handle, sizeof *session->handle);
    session_send(session, &hello);
}

static void session_close(struct session *session) {
    int i;
    if (*session->ended) fprintf(stderr, "cci_cp: sender dropped: %s\n", session->ended);
    else if (!quiet)
        printf("received %llu files, %llu bytes, %llu unchanged, %llu errors\n", (unsigned long long)session->copied,
               (unsigned long long)session->bytes, (unsigned long long)session->unchanged,
               (unsigned long long)session->errors);
    fflush(stdout);
    ended_badly |= *session->ended || session->errors;
    ended_count++;
    for (i = 0; i < FILES_UNDER_WAY; i++)
        if (session->files[i].directory) file_close(&session->files[i], session->removes_parts);
    directory_close(session->directory);
    if (session->root_fd >= 0) close(session->root_fd);
    if (session->handle) cci_rma_deregister(endpoint, session->handle);
    if (session->connection) cci_disconnect(session->connection);
    free(session->slots);
    memset(session, 0, sizeof *session);
}

/* ---- receiver: records ----------------------------------------------------------------------------------------- */

/* Makes sure that a part that was there already is ours alone. Returns 0 with errno when not. */
static int part_is_ours(const struct incoming *file, int fd, struct stat *status) {
    struct stat named;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return 0; /* another sender is at it */
    if (fstat(fd, status) != 0 || fstatat(file->directory->fd, file->part, &named, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    errno = EEXIST; /* not ours: writing to it could change something else */
    return S_ISREG(status->st_mode) && status->st_nlink == 1 && status->st_ino == named.st_ino &&
           status->st_dev == named.st_dev;
}

/* Opens the part of a file, empty unless it is to be resumed. */
static int part_open(struct incoming *file, int resume) {
    struct stat status;
    int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(file->directory->fd, file->part, flags | O_EXCL, 0600);
    if (fd >= 0) {
        (void)flock(fd, LOCK_EX | LOCK_NB);
        return fd;
    }
    if (errno == EEXIST) fd = openat(file->directory->fd, file->part, flags, 0600);
    if (fd < 0) return -1;
    if (!part_is_ours(file, fd, &status) ||
        ((!resume || (uint64_t)status.st_size > file->size) && ftruncate(fd, 0) != 0)) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static int is_same(const struct incoming *file, const struct stat *status) {
    return S_ISREG(status->st_mode) && (uint64_t)status->st_size == file->size &&
           status->st_mtim.tv_sec == file->times[1].tv_sec && status->st_mtim.tv_nsec == file->times[1].tv_nsec;
}

/* A whole file of the same size and time may be what the sender is about to send. */
static int whole_open(const struct incoming *file) {
    struct stat status;
    int fd = openat(file->directory->fd, file->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return -1;
    if (fstat(fd, &status) == 0 && is_same(file, &status)) return fd;
    close(fd);
    return -1;
}

/* Offers what is there of the file: its length and digest. */
static void file_offer(struct session *session, struct incoming *file) {
    struct stat status;
    if (fstat(file->fd, &status) != 0) {
        file_fail(session, file, file->name, strerror(errno));
        return;
    }
    file->position = (uint64_t)status.st_size;
    if (!digest_file(&file->digest, file->fd, file->position, session_alive, session)) {
        digest_begin(&file->digest);
        file->position = 0;
    }
    file->written = file->position;
    session_tell(session, MESSAGE_OFFER, file->id, file->position, digest_end(&file->digest));
}

static void file_begin(struct incoming *file, const struct record *record) {
    file->id = record->id;
    file->mode = record->mode & 0777;
    file->size = record->size;
    file->position = file->written = file->came_bytes = 0;
    file->is_whole = 0;
    file->fd = -1;
    file->times[0].tv_sec = 0;
    file->times[0].tv_nsec = UTIME_OMIT;
    file->times[1].tv_sec = (time_t)record->mtime_s;
    file->times[1].tv_nsec = record->mtime_ns < 1000000000u ? (long)record->mtime_ns : 0;
    digest_begin(&file->digest);
}

static void take_file(struct session *session, const struct record *record, const char *path) {
    struct incoming *file = file_find(session, record->id, 0);
    struct stat status;
    if (file) file_close(file, session->removes_parts);
    else file = file_find(session, 0, 1);
    if (!file) {
        session_end(session, "too many files at the same time");
        return;
    }
    file_begin(file, record);
    file->directory = directory_open(session, path, file->name);
    if (!file->directory) {
        file_fail(session, file, path, strerror(errno));
        return;
    }
    if (fstatat(file->directory->fd, file->name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISDIR(status.st_mode)) {
            file_fail(session, file, path, strerror(EISDIR));
            return;
        }
        file->fd = whole_open(file);
        file->is_whole = file->fd >= 0;
    }
    part_name(file->name, file->part);
    if (file->fd < 0) file->fd = part_open(file, record->ask != 0);
    if (file->fd < 0) file_fail(session, file, path, errno == EWOULDBLOCK ? "is being written already" : strerror(errno));
    else if (record->ask) file_offer(session, file);
}

/* The file that is there is another one: a part begins, with what was the same. Returns 0 with errno. */
static int file_diverges(struct incoming *file) {
    static uint8_t same[65536];
    uint64_t at = 0;
    int whole_fd = file->fd;
    file->fd = part_open(file, 0);
    while (file->fd >= 0 && at < file->position) {
        size_t wanted = file->position - at < sizeof same ? (size_t)(file->position - at) : sizeof same;
        if (read_at(whole_fd, same, wanted, at) != wanted || write_at(file->fd, same, wanted, at) != wanted) break;
        at += wanted;
    }
    close(whole_fd);
    file->is_whole = 0;
    file->written = at;
    return file->fd >= 0 && at == file->position;
}

/* Whether the file that is there goes on with these bytes. */
static int file_goes_on_with(const struct incoming *file, const uint8_t *bytes, size_t count) {
    static uint8_t there[SLOT_BYTES];
    return read_at(file->fd, there, count, file->position) == count && memcmp(there, bytes, count) == 0;
}

/* Prepares a file for bytes, or a hole, at an offset. Returns 0 when they have no place in it. */
static int file_expects(struct session *session, struct incoming *file, uint64_t offset, uint64_t length) {
    if (offset == 0 && file->position > 0) { /* the sender does not want what was offered */
        close(file->fd);
        file->is_whole = 0;
        file->position = file->written = 0;
        digest_begin(&file->digest);
        file->fd = part_open(file, 0);
        if (file->fd < 0) file_fail(session, file, file->name, strerror(errno));
        if (file->fd < 0) return 0;
    }
    if (offset == file->position && length <= file->size - file->position) return 1;
    file_fail(session, file, file->name, "data that does not belong there");
    return 0;
}

static void take_data(struct session *session, const struct record *record, const uint8_t *bytes) {
    struct incoming *file = file_find(session, record->id, 0);
    size_t count = record->length_bytes;
    if (!file || !file_expects(session, file, record->size, count)) return; /* the sender will have heard of it soon */
    errno = EIO;
    if (file->is_whole && !file_goes_on_with(file, bytes, count) && !file_diverges(file)) {
        file_fail(session, file, file->name, strerror(errno));
        return;
    }
    if (!file->is_whole) {
        if (write_at(file->fd, bytes, count, file->position) != count) {
            file_fail(session, file, file->name, strerror(errno));
            return;
        }
        file->written = file->position + count;
    }
    digest_add(&file->digest, bytes, count);
    file->position += count;
    file->came_bytes += count;
}

static void take_hole(struct session *session, const struct record *record) {
    struct incoming *file = file_find(session, record->id, 0);
    if (!file || !file_expects(session, file, record->size, record->digest)) return;
    errno = EIO;
    if (file->is_whole && !file_diverges(file)) {
        file_fail(session, file, file->name, strerror(errno));
        return;
    }
    digest_zeros(&file->digest, record->digest);
    file->position += record->digest;
}

static void take_file_end(struct session *session, const struct record *record) {
    struct incoming *file = file_find(session, record->id, 0);
    if (!file) return;
    if (file->position != file->size || digest_end(&file->digest) != record->digest) {
        session_error(session, file->id, file->name, "checksum differs");
        file_close(file, 1); /* resuming from it would not help */
        return;
    }
    if ((file->written < file->size && !file->is_whole && ftruncate(file->fd, (off_t)file->size) != 0) ||
        fchmod(file->fd, (mode_t)file->mode) != 0 || futimens(file->fd, file->times) != 0 ||
        (!file->is_whole && renameat(file->directory->fd, file->part, file->directory->fd, file->name) != 0)) {
        file_fail(session, file, file->name, strerror(errno));
        return;
    }
    if (file->is_whole) session->unchanged++;
    else {
        session->copied++;
        session->bytes += file->came_bytes;
    }
    file_close(file, 0);
}

/* The sender can't read the rest. */
static void take_abort(struct session *session, const struct record *record) {
    struct incoming *file = file_find(session, record->id, 0);
    if (file) file_close(file, session->removes_parts);
}

/* Adds what a file will take on disk: nothing when it is there, less when a part is. The file that it replaces goes. */
static void take_need(struct session *session, const struct record *record, const char *path) {
    struct incoming file;
    struct stat status;
    uint64_t need = record->digest, goes = 0, part;
    file_begin(&file, record);
    file.directory = directory_open(session, path, file.name);
    if (file.directory) {
        part_name(file.name, file.part);
        if (fstatat(file.directory->fd, file.name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
            goes = space_of(&status);
            if (is_same(&file, &status)) need = goes = 0;
        }
        if (need && fstatat(file.directory->fd, file.part, &status, AT_SYMLINK_NOFOLLOW) == 0) {
            part = space_of(&status);
            need -= part < need ? part : need;
        }
        directory_close(file.directory);
    }
    session->need += need;
    if ((int64_t)session->need > (int64_t)session->need_peak) session->need_peak = session->need;
    session->need -= goes;
}

static void take_directory(struct session *session, const struct record *record, const char *path) {
    char name[NAME_BYTES];
    int parent_fd = open_parent(session->root_fd, path, name);
    int fd = parent_fd < 0 ? -1 : make_directory(parent_fd, name), bad = fd < 0;
    if (!bad && record->type == RECORD_DIR_END) {
        struct timespec times[2] = {{0, UTIME_OMIT}, {0, 0}};
        times[1].tv_sec = (time_t)record->mtime_s;
        times[1].tv_nsec = record->mtime_ns < 1000000000u ? (long)record->mtime_ns : 0;
        bad = fchmod(fd, (mode_t)(record->mode & 0777)) != 0 || futimens(fd, times) != 0;
    }
    if (bad) session_error(session, record->id, path, strerror(errno));
    if (fd >= 0) close(fd);
    if (parent_fd >= 0) close(parent_fd);
}

static void take_link(struct session *session, const struct record *record, const char *path, const char *target) {
    char name[NAME_BYTES];
    int parent_fd;
    if (!link_stays_inside(path, target)) {
        session_error(session, record->id, path, "the link would lead out of the directory");
        return;
    }
    parent_fd = open_parent(session->root_fd, path, name);
    if (parent_fd >= 0) unlinkat(parent_fd, name, 0); /* fails for a directory, and then symlinkat() does */
    if (parent_fd < 0 || symlinkat(target, parent_fd, name) != 0)
        session_error(session, record->id, path, strerror(errno));
    if (parent_fd >= 0) close(parent_fd);
}

/* Takes a record that carries names. They are copied first: the sender could still be changing the slot. */
static void take_named(struct session *session, const struct record *record, const uint8_t *payload) {
    char text[2 * PATH_BYTES];
    size_t path_length;
    if (record->length_bytes >= sizeof text) {
        session_end(session, "a name that is too long");
        return;
    }
    memcpy(text, payload, record->length_bytes);
    text[record->length_bytes] = 0;
    path_length = strlen(text);
    if (record->type == RECORD_LINK && path_length < record->length_bytes)
        take_link(session, record, text, text + path_length + 1);
    else if (path_length != record->length_bytes) session_end(session, "a name with a zero in it");
    else if (record->type == RECORD_FILE) take_file(session, record, text);
    else if (record->type == RECORD_NEED) take_need(session, record, text);
    else if (record->type != RECORD_LINK) take_directory(session, record, text);
}

static void take_record(struct session *session, const struct record *record, const uint8_t *payload) {
    switch (record->type) {
    case RECORD_DIR:
    case RECORD_DIR_END:
    case RECORD_LINK:
    case RECORD_NEED:
    case RECORD_FILE: take_named(session, record, payload); break;
    case RECORD_NEED_END: session_tell(session, MESSAGE_NEED, 0, session->need_peak, 0); break;
    case RECORD_HOLE: take_hole(session, record); break;
    case RECORD_DATA: take_data(session, record, payload); break;
    case RECORD_FILE_END: take_file_end(session, record); break;
    case RECORD_ABORT: take_abort(session, record); break;
    case RECORD_FINISH: session_tell(session, MESSAGE_FINISHED, 0, session->bytes, session->unchanged); break;
    default: session_end(session, "an unknown record"); break;
    }
}

/* Works off the oldest slot of a session, and gives it back. */
static void take_slot(struct session *session) {
    uint32_t slot = session->ready[session->ready_first].slot;
    uint32_t left = session->ready[session->ready_first].length_bytes;
    const uint8_t *from = session->slots + (size_t)slot * SLOT_BYTES;
    while (left > 0 && !session->ended) {
        struct record record;
        uint32_t padded;
        if (left < RECORD_BYTES) session_end(session, "a record cut short");
        else {
            record_get(from, &record);
            padded = (record.length_bytes + 7u) & ~7u;
            if (record.length_bytes > SLOT_BYTES || padded > left - RECORD_BYTES)
                session_end(session, "a record longer than its slot");
            else {
                take_record(session, &record, from + RECORD_BYTES);
                from += RECORD_BYTES + padded;
                left -= RECORD_BYTES + padded;
            }
        }
    }
    session->ready_first = (session->ready_first + 1) % SLOT_COUNT;
    session->ready_count--;
    if (!session->ended) session_tell(session, MESSAGE_CREDIT, slot, 0, 0);
}

static void receiver_message(struct session *session, const cci_event_recv_t *received) {
    struct message message;
    uint32_t last = (session->ready_first + session->ready_count) % SLOT_COUNT;
    if (session->ended) return;
    if (!session->slots || !message_get(received, &message) || message.type != MESSAGE_SLOT ||
        message.number >= SLOT_COUNT || message.a > SLOT_BYTES || session->ready_count == SLOT_COUNT) {
        session_end(session, "a message that it must not send");
        return;
    }
    session->ready[last].slot = message.number;
    session->ready[last].length_bytes = (uint32_t)message.a;
    session->ready_count++;
}

static void receiver_event(cci_event_t *event) {
    struct session *session;
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST: session_request(event); break;
    case CCI_EVENT_ACCEPT:
        session = (struct session *)event->accept.context;
        session->connection = event->accept.connection;
        if (event->accept.status == CCI_SUCCESS) session->is_new = 1;
        else session_end(session, cci_strerror(endpoint, event->accept.status));
        break;
    case CCI_EVENT_RECV: receiver_message((struct session *)event->recv.connection->context, &event->recv); break;
    case CCI_EVENT_SEND: /* the last message has arrived */
        session_end((struct session *)event->send.connection->context,
                    event->send.status == CCI_SUCCESS ? "" : cci_strerror(endpoint, event->send.status));
        break;
    case CCI_EVENT_DISCONNECT: session_end((struct session *)event->disconnect.context, "it has left"); break;
    case CCI_EVENT_KEEPALIVE_TIMEDOUT:
        session_end((struct session *)event->keepalive.connection->context, "it does not answer any more");
        break;
    case CCI_EVENT_ENDPOINT_DEVICE_FAILED: fail("device", CCI_ERR_DEVICE_DEAD); break;
    default: break;
    }
}

/* Those who were sending are told nothing but that the connection ends: their programs say how to go on. */
static void receiver_leaves(void) {
    int i, count = 0;
    for (i = 0; i < SESSION_LIMIT; i++) {
        if (!sessions[i].in_use) continue;
        count += sessions[i].slots != NULL;
        session_end(&sessions[i], "interrupted");
        session_close(&sessions[i]);
    }
    if (count) fprintf(stderr, "cci_cp: to go on start it again at the same port (-p); the senders repeat their commands\n");
    cci_finalize();
}

static int receive_files(int once) {
    listening = 1;
    while (!once || ended_count == 0) {
        int i, busy = drain();
        for (i = 0; i < SESSION_LIMIT; i++) {
            struct session *session = &sessions[i];
            if (!session->in_use) continue;
            if (session->is_new) session_begin(session);
            else if (!session->ended && session->ready_count > 0) take_slot(session), busy = 1;
            if (session->ended) session_close(session);
        }
        if (!busy && !(once && ended_count)) doze(1000);
    }
    return ended_badly;
}

/* ---- sender: what is to be copied ------------------------------------------------------------------------------ */

struct entry {
    enum record_type type; /* RECORD_DIR, RECORD_DIR_END, RECORD_FILE or RECORD_LINK */
    char *source;
    size_t target_at; /* the path at the receiver is what stands from here on in `source` */
    uint64_t size_bytes, space_bytes; /* of the file, and on disk */
    int64_t mtime_s;
    uint32_t mtime_ns, mode;
    int failed;
};

static struct {
    struct entry *entries;
    size_t count, capacity;
    uint64_t bytes, space_bytes;
    int links;      /* copy symbolic links */
    int complaints; /* what could not be read */
} list;

static void complain(const char *path, const char *why) {
    leave_bar();
    fprintf(stderr, "cci_cp: %s: %s\n", printable(path), why);
    list.complaints++;
}

static void *must(void *memory) {
    if (!memory) fail("memory", CCI_ENOMEM);
    return memory;
}

static void list_add(enum record_type type, const char *source, size_t target_at, const struct stat *status) {
    struct entry *entry;
    if (list.count == list.capacity) {
        list.capacity = list.capacity * 2 + 64;
        list.entries = (struct entry *)must(realloc(list.entries, list.capacity * sizeof *list.entries));
    }
    entry = &list.entries[list.count++];
    memset(entry, 0, sizeof *entry);
    entry->type = type;
    entry->source = (char *)must(strdup(source));
    entry->target_at = target_at;
    entry->size_bytes = type == RECORD_FILE ? (uint64_t)status->st_size : 0;
    entry->space_bytes = type == RECORD_FILE ? space_of(status) : 0;
    entry->mode = (uint32_t)status->st_mode & 0777u;
    entry->mtime_s = (int64_t)status->st_mtim.tv_sec;
    entry->mtime_ns = (uint32_t)status->st_mtim.tv_nsec;
    list.bytes += entry->size_bytes;
    list.space_bytes += entry->space_bytes;
}

/* Adds one file, link or directory. Returns 1 when it is a directory that is to be read. */
static int list_path(const char *path, size_t target_at, const struct stat *status) {
    if (strlen(path) >= PATH_BYTES) complain(path, "the path is too long");
    else if (S_ISREG(status->st_mode)) list_add(RECORD_FILE, path, target_at, status);
    else if (S_ISLNK(status->st_mode) && list.links) list_add(RECORD_LINK, path, target_at, status);
    else if (S_ISDIR(status->st_mode)) {
        if (path[target_at]) list_add(RECORD_DIR, path, target_at, status); /* "." has no name to be made */
        return 1;
    } else
        fprintf(stderr, "cci_cp: %s: skipped, %s\n", printable(path),
                S_ISLNK(status->st_mode) ? "a symbolic link (see --links)" : "not a file");
    return 0;
}

struct level { /* a directory that is being read */
    DIR *directory;
    char *path;
    struct stat status;
};

static int level_open(struct level *level, const char *path, const struct stat *status) {
    level->directory = opendir(path);
    if (!level->directory) complain(path, strerror(errno));
    level->path = (char *)must(strdup(path));
    level->status = *status;
    if (!level->directory) free(level->path);
    return level->directory != NULL;
}

/* Adds all that is in a directory, and below. */
static void list_tree(const char *top, size_t target_at, const struct stat *top_status) {
    static struct level levels[256];
    int depth = level_open(&levels[0], top, top_status);
    while (depth > 0) {
        struct level *level = &levels[depth - 1];
        struct dirent *found = readdir(level->directory);
        struct stat status;
        char *path;
        size_t path_bytes;
        if (!found) {
            if (strlen(level->path) >= target_at && level->path[target_at])
                list_add(RECORD_DIR_END, level->path, target_at, &level->status);
            closedir(level->directory);
            free(level->path);
            depth--;
            continue;
        }
        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0) continue;
        path_bytes = strlen(level->path) + strlen(found->d_name) + 2;
        path = (char *)must(malloc(path_bytes));
        snprintf(path, path_bytes, "%s/%s", level->path, found->d_name);
        if (lstat(path, &status) != 0) complain(path, strerror(errno));
        else if (list_path(path, target_at, &status)) {
            if (depth == 256) complain(path, "too deep");
            else depth += level_open(&levels[depth], path, &status);
        }
        free(path);
    }
}

/* Adds what the user named, which must be there; what links there stand for, unlike those found below. */
static void list_operand(char *path) {
    struct stat status;
    size_t length = strlen(path), base;
    while (length > 1 && path[length - 1] == '/') path[--length] = 0;
    for (base = length; base > 0 && path[base - 1] != '/'; base--) {}
    if (strcmp(path + base, ".") == 0 || strcmp(path + base, "..") == 0 || path[base] == 0) {
        base = length; /* no name of its own: its contents go straight into the target */
    }
    if (stat(path, &status) != 0 || ((S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) && access(path, R_OK) != 0))
        complain(path, strerror(errno));
    else if (list_path(path, base, &status)) list_tree(path, base == length ? length + 1 : base, &status);
}

/* ---- sender: slots --------------------------------------------------------------------------------------------- */

static struct {
    cci_connection_t *connection;
    int connect_status; /* -1: not known yet */
    cci_rma_handle_t *local, remote;
    uint8_t *slots;
    uint32_t slot_count, slot_bytes; /* 0 until HELLO */
    uint32_t free_list[SLOT_LIMIT], free_count;
    uint8_t slot_waits[SLOT_LIMIT];       /* for the completion of the RMA, and for the credit */
    uint64_t slot_file_bytes[SLOT_LIMIT]; /* bytes of files in it, for the progress bar        */
    int slot;                             /* that is being filled, or -1 */
    uint32_t fill;
    struct { /* files of which was asked, and ends of directories that must wait for them: oldest first */
        uint32_t id;
        int fd, is_offered;
        uint64_t position, digest;
    } queue[QUEUE_LIMIT];
    uint32_t queue_first, queue_count, queue_files;
    uint64_t free_bytes, need_bytes; /* on the receiver's disk */
    uint64_t remote_errors, remote_bytes, remote_unchanged;
    int knows_need, finished;
    uint64_t heard_ns; /* when the receiver was last heard of */
} sender;

static struct {
    int is_tty;
    uint64_t start_ns, shown_ns, done_bytes, skipped_bytes;
    const char *name;
} progress;

static void format_bytes(char *text, size_t size, double bytes) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    int unit = 0;
    while (bytes >= 1000 && unit < 5) bytes /= 1000, unit++;
    snprintf(text, size, "%.*f %s", unit == 0 || bytes >= 100 ? 0 : bytes >= 10 ? 1 : 2, bytes, units[unit]);
}

static int terminal_columns(void) {
    struct winsize window;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 80;
}

/* Prints the beginning of a name, in so many columns; bytes that go on with a character of UTF-8 take none. */
static void print_name(const char *name, int columns) {
    const char *from = printable(name);
    for (; *from && (columns > 0 || ((unsigned char)*from & 0xc0) == 0x80); from++) {
        columns -= ((unsigned char)*from & 0xc0) != 0x80;
        fputc(*from, stderr);
    }
    while (columns-- > 0) fputc(' ', stderr);
}

static void print_bar(double share, int width) {
    char bar[21];
    int i;
    if (width <= 0) return;
    for (i = 0; i < width; i++) bar[i] = (double)i < share * width ? '=' : ' ';
    bar[width] = 0;
    fprintf(stderr, " [%s]", bar);
}

/* Prints "   1.2 GB  350 MB/s   0:12" in 27 columns. */
static void print_rate(uint64_t done) {
    char amount[24], speed[24], left[24] = "";
    double seconds = (double)(now_ns() - progress.start_ns) / 1e9;
    double rate = seconds > 0 ? (double)progress.done_bytes / seconds : 0;
    format_bytes(amount, sizeof amount, (double)done);
    format_bytes(speed, sizeof speed, rate);
    if (rate > 0 && done < list.bytes) {
        double eta = (double)(list.bytes - done) / rate;
        if (eta < 59999) snprintf(left, sizeof left, "%u:%02u", (unsigned)eta / 60, (unsigned)eta % 60);
    }
    fprintf(stderr, " %8s %8s/s %6s", amount, speed, left);
}

/* Draws "name  43 % [=====>    ]  1.2 GB  350 MB/s  0:12", ten times a second at most: what finds room on the line, the
 * last column of which stays free. */
static void show_progress(int last) {
    uint64_t now = now_ns(), done = progress.done_bytes + progress.skipped_bytes;
    double share = list.bytes ? (double)done / (double)list.bytes : 1;
    int room, bar_width = 0, has_rate;
    if (!progress.is_tty || quiet || (!last && !resized && now - progress.shown_ns < 100000000u)) return;
    resized = 0;
    progress.shown_ns = now;
    if (share > 1) share = 1;
    room = terminal_columns() - 7;
    has_rate = room >= 27 + 8;
    if (has_rate) room -= 27;
    if (room >= 8 + 13) bar_width = room - 11 < 20 ? room - 11 : 20;
    if (bar_width) room -= bar_width + 3;
    fputc('\r', stderr);
    print_name(progress.name ? progress.name : "", room);
    fprintf(stderr, " %3.0f %%", share * 100);
    print_bar(share, bar_width);
    if (has_rate) print_rate(done);
    bar_stands = 1;
    if (last) leave_bar();
}

static void slot_release(uint32_t slot) {
    if (slot >= sender.slot_count || sender.slot_waits[slot] == 0 || --sender.slot_waits[slot] > 0) return;
    sender.free_list[sender.free_count++] = slot;
    progress.done_bytes += sender.slot_file_bytes[slot];
}

static void queue_offer(const struct message *offer) {
    uint32_t i;
    for (i = 0; i < sender.queue_count; i++) {
        uint32_t at = (sender.queue_first + i) % QUEUE_LIMIT;
        if (sender.queue[at].id != offer->number) continue;
        sender.queue[at].position = offer->a;
        sender.queue[at].digest = offer->b;
        sender.queue[at].is_offered = 1;
    }
}

static void sender_message(const cci_event_recv_t *received) {
    struct message message;
    memset(&message, 0, sizeof message);
    if (!message_get(received, &message)) fail("the receiver's message", CCI_EMSGSIZE);
    switch (message.type) {
    case MESSAGE_HELLO:
        if (sender.slot_count || message.number == 0 || message.number > SLOT_LIMIT || message.a < 65536 ||
            message.a > 1u << 24 || message.a % 8 != 0 || message.body_bytes != sizeof sender.remote)
            fail("the receiver's greeting", CCI_EINVAL);
        memcpy((void *)&sender.remote, message.body, sizeof sender.remote);
        sender.slot_bytes = (uint32_t)message.a;
        sender.slot_count = message.number;
        sender.free_bytes = message.b;
        break;
    case MESSAGE_CREDIT: slot_release(message.number); break;
    case MESSAGE_OFFER: queue_offer(&message); break;
    case MESSAGE_NEED:
        sender.need_bytes = message.a;
        sender.knows_need = 1;
        break;
    case MESSAGE_ERROR:
        leave_bar();
        fprintf(stderr, "cci_cp: receiver: %s\n", printable(message.body));
        if (message.number == ALL) exit(1);
        if (message.number < list.count) list.entries[message.number].failed = 1;
        sender.remote_errors++;
        break;
    case MESSAGE_FINISHED:
        sender.remote_bytes = message.a;
        sender.remote_unchanged = message.b;
        sender.finished = 1;
        break;
    default: break;
    }
}

static void sender_event(const cci_event_t *event) {
    if (sender.finished) return; /* the receiver has all and may have hung up */
    sender.heard_ns = 0;         /* the clock is read when there is time for it */
    if (event->type == CCI_EVENT_RECV) sender_message(&event->recv);
    else if (event->type == CCI_EVENT_SEND) {
        check((int)event->send.status, "transfer");
        slot_release((uint32_t)(uintptr_t)event->send.context);
    } else if (event->type == CCI_EVENT_CONNECT) {
        sender.connection = event->connect.connection;
        sender.connect_status = (int)event->connect.status;
    } else if (event->type == CCI_EVENT_KEEPALIVE_TIMEDOUT) fail("receiver", CCI_ETIMEDOUT);
    else if (event->type == CCI_EVENT_ENDPOINT_DEVICE_FAILED) fail("device", CCI_ERR_DEVICE_DEAD);
}

static void on_event(cci_event_t *event) {
    if (listening) receiver_event(event);
    else sender_event(event);
}

/* Closes the connection, so that the receiver need not wait for us. */
static void leave(void) {
    if (sender.connection) cci_disconnect(sender.connection);
    sender.connection = NULL;
    cci_finalize();
}

static void sender_leaves(void) {
    char bytes[24];
    leave_bar();
    format_bytes(bytes, sizeof bytes, (double)progress.done_bytes);
    fprintf(stderr, "cci_cp: interrupted after %s: the same command again copies what is missing%s\n", bytes,
            removes_parts ? "; a file that was under way begins anew" : ", and goes on in the middle of a file");
    leave();
}

static void on_leaving(void) {
    if (listening) receiver_leaves();
    else sender_leaves();
}

/* Lets the network work, and sleeps when there is nothing to do. */
static void sender_wait(void) {
    if (drain() > 0) return;
    if (sender.heard_ns == 0) sender.heard_ns = now_ns();
    if (now_ns() - sender.heard_ns > STALL_NS) fail("receiver", CCI_ETIMEDOUT);
    show_progress(0);
    doze(100);
}

/* Sends the slot that is being filled, however full it is. */
static void slot_flush(void) {
    uint8_t bytes[MESSAGE_BYTES];
    struct message message;
    uint32_t slot = (uint32_t)sender.slot;
    uint64_t at = (uint64_t)slot * sender.slot_bytes;
    int status;
    if (sender.slot < 0 || sender.fill == 0) return;
    memset(&message, 0, sizeof message);
    message.type = MESSAGE_SLOT;
    message.number = slot;
    message.a = sender.fill;
    message_put(bytes, &message);
    sender.slot_waits[slot] = 2;
    while ((status = cci_rma(sender.connection, bytes, sizeof bytes, sender.local, at, &sender.remote, at, sender.fill,
                             (void *)(uintptr_t)slot, CCI_FLAG_WRITE)) == CCI_ENOBUFS)
        sender_wait();
    check(status, "cci_rma");
    sender.slot = -1;
    drain();
    show_progress(0);
}

/* Gives room for a record with `least` bytes of payload: where the record goes, and how much payload would fit. */
static uint8_t *slot_room(uint32_t least, uint32_t *room) {
    if (sender.slot >= 0 && sender.slot_bytes - sender.fill < RECORD_BYTES + ((least + 7u) & ~7u)) slot_flush();
    while (sender.slot < 0) {
        if (sender.free_count == 0) {
            sender_wait();
            continue;
        }
        sender.slot = (int)sender.free_list[--sender.free_count];
        sender.slot_file_bytes[sender.slot] = 0;
        sender.fill = 0;
    }
    *room = sender.slot_bytes - sender.fill - RECORD_BYTES; /* a multiple of 8, like all of it */
    return sender.slots + (size_t)sender.slot * sender.slot_bytes + sender.fill;
}

/* Adds a record; its payload stands behind it already, or is given. */
static void slot_add(const struct record *record, const void *payload) {
    uint32_t room, padded = (record->length_bytes + 7u) & ~7u;
    uint8_t *to = slot_room(record->length_bytes, &room);
    if (payload) memcpy(to + RECORD_BYTES, payload, record->length_bytes);
    memset(to + RECORD_BYTES + record->length_bytes, 0, padded - record->length_bytes);
    record_put(to, record);
    sender.fill += RECORD_BYTES + padded;
}

/* ---- sender: files --------------------------------------------------------------------------------------------- */

static void entry_record(const struct entry *entry, uint32_t id, struct record *record) {
    memset(record, 0, sizeof *record);
    record->type = entry->type;
    record->id = id;
    record->mode = entry->mode;
    record->size = entry->size_bytes;
    record->mtime_s = entry->mtime_s;
    record->mtime_ns = entry->mtime_ns;
    record->length_bytes = (uint32_t)strlen(entry->source + entry->target_at);
}

static void send_link(const struct entry *entry, uint32_t id) {
    char text[2 * PATH_BYTES];
    struct record record;
    ssize_t length;
    entry_record(entry, id, &record);
    memcpy(text, entry->source + entry->target_at, record.length_bytes + 1);
    length = readlink(entry->source, text + record.length_bytes + 1, PATH_BYTES - 2);
    if (length < 0) {
        complain(entry->source, strerror(errno));
        return;
    }
    record.length_bytes += 1 + (uint32_t)length;
    slot_add(&record, text);
}

/* Says where a hole is, and returns where it ends. */
static uint64_t send_hole(uint32_t id, uint64_t position, uint64_t end, struct digest *digest) {
    struct record record;
    memset(&record, 0, sizeof record);
    record.type = RECORD_HOLE;
    record.id = id;
    record.size = position;
    record.digest = end - position;
    digest_zeros(digest, end - position);
    slot_add(&record, NULL);
    progress.skipped_bytes += end - position;
    return end;
}

/* Streams a file from `position` on, straight from the file into the slots. Returns where it ended: short of the size
 * when the file has become shorter, can't be read, or the receiver can't take it. */
static uint64_t send_bytes(uint32_t id, int fd, uint64_t position, struct digest *digest) {
    struct entry *entry = &list.entries[id];
    struct record record;
    uint64_t end = entry->space_bytes < entry->size_bytes ? position : entry->size_bytes;
    int is_hole = 0;
    memset(&record, 0, sizeof record);
    record.type = RECORD_DATA;
    record.id = id;
    while (position < entry->size_bytes && !entry->failed) {
        uint32_t room;
        uint8_t *to;
        size_t wanted;
        if (position == end) end = region_end(fd, position, entry->size_bytes, &is_hole);
        if (is_hole) {
            position = send_hole(id, position, end, digest);
            continue;
        }
        to = slot_room(end - position < 4096 ? (uint32_t)(end - position) : 4096, &room);
        wanted = end - position < room ? (size_t)(end - position) : room;
        if (read_at(fd, to + RECORD_BYTES, wanted, position) != wanted) break;
        digest_add(digest, to + RECORD_BYTES, wanted);
        record.length_bytes = (uint32_t)wanted;
        record.size = position;
        sender.slot_file_bytes[sender.slot] += wanted;
        slot_add(&record, NULL);
        position += wanted;
    }
    return position;
}

/* Tells of a file whose bytes or part are to be copied. */
static void tell_file_name(const struct entry *entry, uint64_t position) {
    if (quiet || progress.is_tty) return;
    printf("%s  %llu bytes", printable(entry->source + entry->target_at), (unsigned long long)entry->size_bytes);
    if (position) printf(", %llu of them there already", (unsigned long long)position);
    printf("\n");
}

/* Sends what the receiver lacks of a file, and its end. Closes the file. */
static void send_rest(uint32_t id, int fd, uint64_t position, struct digest *digest) {
    struct entry *entry = &list.entries[id];
    struct record record;
    progress.name = entry->source + entry->target_at;
    progress.skipped_bytes += position;
    if (!entry->failed) tell_file_name(entry, position);
    position = send_bytes(id, fd, position, digest);
    close(fd);
    list.bytes -= entry->size_bytes - position; /* what will never come is no part of the whole */
    if (entry->failed) return;
    memset(&record, 0, sizeof record);
    record.type = position == entry->size_bytes ? RECORD_FILE_END : RECORD_ABORT;
    record.id = id;
    record.digest = digest_end(digest);
    slot_add(&record, NULL);
    if (record.type == RECORD_FILE_END) return;
    entry->failed = 1;
    complain(entry->source, "can't be read to its end");
}

static void send_named(uint32_t id, uint32_t ask) {
    struct entry *entry = &list.entries[id];
    struct record record;
    entry_record(entry, id, &record);
    record.ask = ask;
    slot_add(&record, entry->source + entry->target_at);
}

static void entry_done(uint32_t id) {
    progress.name = NULL;
    free(list.entries[id].source);
    list.entries[id].source = NULL;
}

/* Waits for the receiver's offer, and skips what it has of the same file. */
static void queue_send_file(uint32_t at) {
    uint32_t id = sender.queue[at].id;
    struct entry *entry = &list.entries[id];
    struct digest digest;
    uint64_t position;
    if (!sender.queue[at].is_offered) slot_flush();
    while (!sender.queue[at].is_offered && !entry->failed) sender_wait();
    position = sender.queue[at].position;
    digest_begin(&digest);
    if (entry->failed || position == 0 || position > entry->size_bytes ||
        !digest_file(&digest, sender.queue[at].fd, position, NULL, NULL) ||
        digest_end(&digest) != sender.queue[at].digest) {
        digest_begin(&digest);
        position = 0;
    }
    send_rest(id, sender.queue[at].fd, position, &digest);
}

/* Works off the oldest of what waits. */
static void queue_work(void) {
    uint32_t at = sender.queue_first, id = sender.queue[at].id;
    if (sender.queue[at].fd < 0) send_named(id, 0);
    else {
        queue_send_file(at);
        sender.queue_files--;
    }
    entry_done(id);
    sender.queue_first = (sender.queue_first + 1) % QUEUE_LIMIT;
    sender.queue_count--;
}

static void queue_add(uint32_t id, int fd) {
    uint32_t at;
    while (sender.queue_count == QUEUE_LIMIT || (fd >= 0 && sender.queue_files == FILES_UNDER_WAY - 1)) queue_work();
    at = (sender.queue_first + sender.queue_count++) % QUEUE_LIMIT;
    sender.queue[at].id = id;
    sender.queue[at].fd = fd;
    sender.queue[at].is_offered = 0;
    sender.queue[at].position = 0;
    if (fd >= 0) sender.queue_files++;
}

/* Opens a file. What counts is what is there now, rather than when the list was made. Returns -1 when it is gone. */
static int open_source(struct entry *entry) {
    struct stat status;
    int fd = open(entry->source, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        complain(entry->source, fd < 0 ? strerror(errno) : "is no file any more");
        list.bytes -= entry->size_bytes;
        if (fd >= 0) close(fd);
        return -1;
    }
    list.bytes += (uint64_t)status.st_size - entry->size_bytes;
    entry->size_bytes = (uint64_t)status.st_size;
    entry->space_bytes = space_of(&status);
    entry->mtime_s = (int64_t)status.st_mtim.tv_sec;
    entry->mtime_ns = (uint32_t)status.st_mtim.tv_nsec;
    return fd;
}

/* Sends a small file whole. Of a large one it asks, and meanwhile goes on with others. */
static void send_file(uint32_t id) {
    struct digest digest;
    int fd = open_source(&list.entries[id]);
    if (fd < 0) {
        entry_done(id);
        return;
    }
    if (list.entries[id].size_bytes >= ASK_BYTES) {
        queue_add(id, fd);
        send_named(id, 1);
        return;
    }
    send_named(id, 0);
    digest_begin(&digest);
    send_rest(id, fd, 0, &digest);
    entry_done(id);
}

static void send_list(void) {
    uint32_t id;
    for (id = 0; id < list.count; id++) {
        struct entry *entry = &list.entries[id];
        if (entry->type == RECORD_FILE) send_file(id);
        else if (entry->type == RECORD_DIR_END && sender.queue_count) queue_add(id, -1);
        else {
            if (entry->type == RECORD_LINK) send_link(entry, id);
            else send_named(id, 0);
            entry_done(id);
        }
        while (sender.queue_count && (sender.queue[sender.queue_first].fd < 0 ||
                                      sender.queue[sender.queue_first].is_offered)) queue_work();
    }
    while (sender.queue_count) queue_work();
}

/* When not everything may find room the receiver says how much it lacks; then nothing is begun that can't be ended. */
static void check_space(void) {
    struct record record;
    char need[24], room[24];
    uint32_t id;
    if (list.space_bytes <= sender.free_bytes) return;
    for (id = 0; id < list.count; id++) {
        if (list.entries[id].type != RECORD_FILE) continue;
        entry_record(&list.entries[id], id, &record);
        record.type = RECORD_NEED;
        record.digest = list.entries[id].space_bytes;
        slot_add(&record, list.entries[id].source + list.entries[id].target_at);
    }
    memset(&record, 0, sizeof record);
    record.type = RECORD_NEED_END;
    slot_add(&record, NULL);
    slot_flush();
    while (!sender.knows_need) sender_wait();
    if (sender.need_bytes <= sender.free_bytes) return;
    format_bytes(need, sizeof need, (double)sender.need_bytes);
    format_bytes(room, sizeof room, (double)sender.free_bytes);
    fprintf(stderr, "cci_cp: the receiver's disk has %s free, and %s are needed: nothing was copied\n", room, need);
    leave();
    exit(1);
}

/* Waits until all is on the receiver's disk. */
static void send_finish(void) {
    struct record record;
    memset(&record, 0, sizeof record);
    record.type = RECORD_FINISH;
    slot_add(&record, NULL);
    slot_flush();
    while (!sender.finished) sender_wait();
    progress.done_bytes = list.bytes - progress.skipped_bytes;
}

/* Connects to "transport://address", and sends what follows the next "/" as the subdirectory. */
static void sender_connect(char *uri) {
    uint8_t request[CCI_CONN_REQ_LEN];
    char *address = strstr(uri, "://"), *subdirectory = address ? strchr(address + 3, '/') : NULL;
    size_t length = 0;
    struct timeval patience = {0, 0};
    patience.tv_sec = (time_t)timeout_s;
    if (subdirectory) {
        *subdirectory++ = 0;
        subdirectory += strspn(subdirectory, "/");
        length = strlen(subdirectory);
        while (length > 0 && subdirectory[length - 1] == '/') length--;
    }
    if (length > sizeof request - REQUEST_BYTES) fail("subdirectory", CCI_EMSGSIZE);
    put_le(request, REQUEST_MAGIC, 4);
    request[4] = removes_parts ? REQUEST_REMOVE : 0;
    if (length) memcpy(request + REQUEST_BYTES, subdirectory, length);
    sender.connect_status = -1;
    check(cci_connect(endpoint, uri, request, (uint32_t)length + REQUEST_BYTES, CCI_CONN_ATTR_RO, NULL, 0, &patience), uri);
    while (sender.connect_status == -1) sender_wait();
    if (sender.connect_status == CCI_ETIMEDOUT)
        fprintf(stderr, "cci_cp: is the receiver there, with %s?\n", secret.is_set ? "the same key" : "no key");
    check(sender.connect_status, uri);
}

static void sender_prepare(void) {
    uint64_t length;
    while (sender.slot_count == 0) sender_wait();
    length = (uint64_t)sender.slot_count * sender.slot_bytes;
    sender.slots = (uint8_t *)must(malloc((size_t)length));
    check(cci_rma_register(endpoint, sender.slots, length, 0, &sender.local), "cci_rma_register");
    for (sender.free_count = 0; sender.free_count < sender.slot_count; sender.free_count++)
        sender.free_list[sender.free_count] = sender.free_count;
    sender.slot = -1;
}

/* What has arrived whole and was new, how many files were there already, and how many have not arrived. */
static void tell_what_was_copied(void) {
    char bytes[24], rate[24], same[48] = "", failures[48] = "";
    double seconds = (double)(now_ns() - progress.start_ns) / 1e9;
    uint64_t failed = (uint64_t)list.complaints + sender.remote_errors;
    if (quiet) return;
    format_bytes(bytes, sizeof bytes, (double)sender.remote_bytes);
    format_bytes(rate, sizeof rate, (double)sender.remote_bytes / (seconds > 0 ? seconds : 1));
    if (sender.remote_unchanged)
        snprintf(same, sizeof same, "; %llu unchanged", (unsigned long long)sender.remote_unchanged);
    if (failed) snprintf(failures, sizeof failures, "; %llu could not be copied", (unsigned long long)failed);
    printf("copied %s in %.2f s, %s/s%s%s\n", bytes, seconds, rate, same, failures);
}

/* Lists what is to be copied. Returns 0 when something that the user named is not there or can't be read. */
static int find_sources(int count, char **names) {
    int i, complaints = 0;
    for (i = 0; i < count; i++) {
        int before = list.complaints;
        size_t entries = list.count;
        list_operand(names[i]);
        complaints += list.complaints > before && list.count == entries;
    }
    if (complaints) fprintf(stderr, "cci_cp: nothing was copied\n");
    return complaints == 0;
}

static int send_files(char *uri) {
    progress.is_tty = isatty(STDERR_FILENO);
    sender_connect(uri);
    sender_prepare();
    check_space();
    progress.start_ns = now_ns();
    send_list();
    send_finish();
    show_progress(1);
    tell_what_was_copied();
    free(list.entries);
    return list.complaints > 0 || sender.remote_errors > 0;
}

/* ---- options --------------------------------------------------------------------------------------------------- */

static const char help[] =
    "usage: cci_cp -l [options] DIR               receive below DIR; prints the URI to send to\n"
    "       cci_cp [options] FILE... URI[/subdir] send files and directories\n"
    "       cci_cp --new-key FILE                 make a key\n"
    "\n"
    "  -l, --listen       be the receiver\n"
    "  -p, --port PORT    at this port or service name\n"
    "  -d, --device NAME  use this device (cci_info lists them)\n"
    "      --once         end after one sender\n"
    "      --key FILE     encrypt, and talk only to who has the same key (udp:// alone; needs libsodium)\n"
    "      --remove-parts remove what came of a file that is interrupted, rather than keep it for the next time\n"
    "      --links        copy symbolic links that stay within the target; without it they are skipped\n"
    "      --timeout S    give up a side of which nothing is heard for S seconds (10)\n"
    "  -q, --quiet        print errors only\n"
    "\n"
    "Copying the same again resumes what was interrupted. The exit status is 0 when everything was copied, 1 when\n"
    "not, 2 for wrong arguments.\n";

static cci_device_t *find_device(const char *name) {
    cci_device_t *const *devices;
    check(cci_get_devices(&devices), "cci_get_devices");
    while (*devices && strcmp((*devices)->name, name) != 0) devices++;
    if (!*devices) fail(name, CCI_ERR_NOT_FOUND);
    return *devices;
}

/* Only datagrams are sealed: other transports would leave the door open. */
static cci_device_t *sealed_device(cci_device_t *device) {
    if (secret.is_set && (!device || strcmp(device->transport, "udp") != 0)) {
        fprintf(stderr, "cci_cp: --key works over udp:// alone\n");
        exit(1);
    }
    return device;
}

/* A device of the transport that the URI names; NULL stands for the default one. */
static cci_device_t *device_for(const char *uri) {
    cci_device_t *const *devices;
    check(cci_get_devices(&devices), "cci_get_devices");
    while (*devices) {
        size_t length = strlen((*devices)->transport);
        if ((*devices)->up && strncmp(uri, (*devices)->transport, length) == 0 && uri[length] == ':') break;
        devices++;
    }
    return *devices;
}

static void open_endpoint(cci_device_t *device, const char *port) {
    uint32_t timeout_us = timeout_s * 1000000u;
    check(cci_create_endpoint_at(device, port, 0, &endpoint, &os_handle), "endpoint");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, &timeout_us), "timeout");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &timeout_us), "timeout");
}

static int listen_at(const char *directory, int once) {
    uint32_t events = 1u << CCI_EVENT_DISCONNECT;
    char *uri;
    struct stat status;
    if (stat(directory, &status) != 0 || !S_ISDIR(status.st_mode)) {
        fprintf(stderr, "cci_cp: %s: not a directory\n", directory);
        return 2;
    }
    root_name = directory;
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    (void)cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events); /* senders that leave, if the transport can tell */
    printf("uri: %s\n", uri);
    fflush(stdout);
    free(uri);
    return receive_files(once);
}

struct options {
    const char *port, *device, *key, *new_key;
    int is_receiver, once;
};

/* Returns 0 for options that there are not. */
static int take_option(struct options *options, int option) {
    if (option == 'l') options->is_receiver = 1;
    else if (option == 'p') options->port = optarg;
    else if (option == 'd') options->device = optarg;
    else if (option == 'o') options->once = 1;
    else if (option == 'k') list.links = 1;
    else if (option == 'q') quiet = 1;
    else if (option == 'r') removes_parts = 1;
    else if (option == 'K') options->key = optarg;
    else if (option == 'N') options->new_key = optarg;
    else if (option == 't' && strspn(optarg, "0123456789") == strlen(optarg) && atol(optarg) > 0 && atol(optarg) < 4000)
        timeout_s = (uint32_t)atol(optarg);
    else return 0;
    return 1;
}

static void open_device(const struct options *options, const char *uri) {
    cci_device_t *device = NULL;
    if (options->device) device = find_device(options->device);
    else if (!options->is_receiver) device = device_for(uri);
    else if (secret.is_set) device = device_for("udp:");
    open_endpoint(sealed_device(device), options->port);
}

int main(int argc, char **argv) {
    static const struct option longs[] = {
        {"listen", 0, NULL, 'l'},  {"port", 1, NULL, 'p'}, {"device", 1, NULL, 'd'},       {"once", 0, NULL, 'o'},
        {"links", 0, NULL, 'k'},   {"quiet", 0, NULL, 'q'}, {"remove-parts", 0, NULL, 'r'}, {"key", 1, NULL, 'K'},
        {"new-key", 1, NULL, 'N'}, {"timeout", 1, NULL, 't'}, {"help", 0, NULL, 'h'},         {NULL, 0, NULL, 0}};
    struct options options;
    int option, result, operands;
    uint32_t caps;
    memset(&options, 0, sizeof options);
    while ((option = getopt_long(argc, argv, "lp:d:qh", longs, NULL)) != -1)
        if (!take_option(&options, option)) return fputs(help, option == 'h' ? stdout : stderr), option == 'h' ? 0 : 2;
    operands = argc - optind;
    if (options.new_key) return operands == 0 ? make_key(options.new_key) : (fputs(help, stderr), 2);
    if (options.is_receiver ? operands != 1 : operands < 2 || !strstr(argv[argc - 1], "://"))
        return fputs(help, stderr), 2;
    if (!options.is_receiver && !find_sources(operands - 1, argv + optind)) return 1;
    if (options.key && !use_key(options.key)) return 1;
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    open_device(&options, argv[argc - 1]);
    take_signals();
    if (options.is_receiver) result = listen_at(argv[optind], options.once);
    else result = send_files(argv[argc - 1]);
    check(cci_finalize(), "cci_finalize");
    return result;
}
