/* cp_liar.c - a sender that says to a receiver of examples/cci_cp.c what it must not believe.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     cp_liar URI LIE [PATH [TARGET]]
 *
 * It ends with 0 when the receiver took what it was told, and with 1 when it complained or hung up.
 */
#define main cp_main
int cp_main(int argc, char **argv);
#include "examples/cci_cp.c"
#undef main

#include <signal.h>

static const char *path = "told";
static const char *target = "";

static void tell(enum record_type type, const void *payload, uint32_t length_bytes, uint64_t size, uint64_t digest) {
    struct record record;
    memset(&record, 0, sizeof record);
    record.type = (uint32_t)type;
    record.length_bytes = length_bytes;
    record.mode = 06755;
    record.size = size;
    record.digest = digest;
    slot_add(&record, payload);
}

static void tell_path(enum record_type type, uint64_t size) {
    tell(type, path, (uint32_t)strlen(path), size, 0);
}

static uint64_t digest_of(const char *text) {
    struct digest digest;
    digest_begin(&digest);
    digest_add(&digest, (const uint8_t *)text, strlen(text));
    return digest_end(&digest);
}

/* A file that says "hello", of which something is not true. */
static void tell_file(const char *lie) {
    int is_short = strcmp(lie, "short") == 0, is_long = strcmp(lie, "long") == 0;
    tell_path(RECORD_FILE, is_short ? 6 : is_long ? 4 : 5);
    tell(RECORD_DATA, "hello", 5, strcmp(lie, "gap") == 0, 0);
    tell(RECORD_FILE_END, NULL, 0, 0, digest_of("hello") ^ (strcmp(lie, "digest") == 0));
}

/* More files at the same time than there is place for. */
static void tell_crowd(void) {
    struct record record;
    uint32_t id;
    char name[16];
    for (id = 0; id <= FILES_UNDER_WAY; id++) {
        memset(&record, 0, sizeof record);
        record.type = RECORD_FILE;
        record.id = id;
        record.size = 5;
        record.length_bytes = (uint32_t)snprintf(name, sizeof name, "crowd%u", (unsigned)id);
        slot_add(&record, name);
    }
}

/* A hole that is longer than its file; it must take no time. */
static void tell_hole(void) {
    tell_path(RECORD_FILE, 5);
    tell(RECORD_HOLE, NULL, 0, 0, UINT64_MAX);
}

static void tell_link(void) {
    char text[2 * PATH_BYTES];
    size_t length = strlen(path) + 1 + strlen(target);
    snprintf(text, sizeof text, "%s%c%s", path, 0, target);
    tell(RECORD_LINK, text, (uint32_t)length, 0, 0);
}

/* A record that its slot can't hold, or that is none. */
static void tell_nonsense(const char *lie) {
    uint8_t *at;
    tell_path(RECORD_DIR, 0);
    at = sender.slots + (size_t)sender.slot * sender.slot_bytes;
    if (strcmp(lie, "endless") == 0) put_le(at + 4, 0xfffffff8u, 4);
    else if (strcmp(lie, "beyond") == 0) put_le(at + 4, sender.slot_bytes, 4);
    else if (strcmp(lie, "cut") == 0) sender.fill = RECORD_BYTES - 8;
    else put_le(at, 99, 4);
}

static void tell_slot(void) {
    uint8_t bytes[MESSAGE_BYTES];
    struct message message;
    memset(&message, 0, sizeof message);
    message.type = MESSAGE_SLOT;
    message.number = 100000;
    message.a = 64;
    message_put(bytes, &message);
    check(cci_send(sender.connection, bytes, sizeof bytes, NULL, CCI_FLAG_SILENT), "cci_send");
}

/* In the middle of a file the sender is gone, without a word. */
static void die(void) {
    tell_path(RECORD_FILE, 1000000);
    tell(RECORD_DATA, "hello", 5, 0, 0);
    slot_flush();
    while (sender.free_count < sender.slot_count) sender_wait();
    raise(SIGKILL);
}

/* In the middle of a file nothing comes any more, until a signal does. */
static void stand_still(void) {
    take_signals();
    tell_path(RECORD_FILE, 1000000);
    tell(RECORD_DATA, "hello", 5, 0, 0);
    slot_flush();
    while (sender.free_count < sender.slot_count) sender_wait();
    puts("it stands");
    fflush(stdout);
    for (;;) sender_wait();
}

int main(int argc, char **argv) {
    uint32_t caps;
    const char *lie = argc > 2 ? argv[2] : "";
    if (argc > 3) path = argv[3];
    if (argc > 4) target = argv[4];
    if (argc < 3) return 2;
    timeout_s = 2;
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    open_endpoint(device_for(argv[1]), NULL);
    removes_parts = strcmp(lie, "stand-remove") == 0;
    sender_connect(argv[1]);
    sender_prepare();
    if (strcmp(lie, "die") == 0) die();
    else if (strncmp(lie, "stand", 5) == 0) stand_still();
    else if (strcmp(lie, "crowd") == 0) tell_crowd();
    else if (strcmp(lie, "hole") == 0) tell_hole();
    else if (strcmp(lie, "link") == 0) tell_link();
    else if (strcmp(lie, "zero") == 0) tell(RECORD_FILE, "a\0b", 3, 0, 0);
    else if (strcmp(lie, "slot") == 0) tell_slot();
    else if (strcmp(lie, "directory") == 0) tell_path(RECORD_DIR, 0), tell_path(RECORD_DIR_END, 0);
    else if (strcmp(lie, "endless") == 0 || strcmp(lie, "beyond") == 0 || strcmp(lie, "cut") == 0 ||
             strcmp(lie, "unknown") == 0) tell_nonsense(lie);
    else tell_file(lie);
    send_finish();
    check(cci_finalize(), "cci_finalize");
    return sender.remote_errors > 0;
}
