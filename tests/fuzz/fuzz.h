/* fuzz.h - what the fuzz targets share: programs of operations, memory that is watched, a mutator, a main of their own.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * The input of a target that speaks a protocol is a program: a head of 8 bytes, then records of 16 bytes each, every one an
 * operation with its arguments. So a mutator changes what happens, not where bytes stand, and a packet that is
 * changed on its way was a valid one before. The input of a target that reads text is that text.
 *
 * Built with -fsanitize=fuzzer and -DFUZZ_LIBFUZZER a target is a libFuzzer program; built by afl-clang-fast it is one for
 * AFL++; otherwise it runs the files and directories that it is given. -DFUZZ_TARGET=name chooses the target, or else the
 * first argument does.
 */
#ifndef CCI_TEST_FUZZ_H
#define CCI_TEST_FUZZ_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef __AFL_HAVE_MANUAL_CONTROL
#include <unistd.h>
#endif

#define FUZZ_HEAD_BYTES 8u
#define FUZZ_RECORD_BYTES 16u
#define FUZZ_MAX_RECORDS 256u
#define FUZZ_MAX_BYTES (FUZZ_HEAD_BYTES + FUZZ_MAX_RECORDS * FUZZ_RECORD_BYTES)

typedef struct fuzz_target {
    const char *name;
    void (*run)(const uint8_t *data, size_t size);
    uint32_t op_count;             /* operations of its programs; 0: the input is text                        */
    const uint8_t (*phrases)[4];   /* pieces of valid traffic: operations that follow each other, 0xff ends one */
    uint32_t phrase_count;
    const char *const *words;      /* of a text; ends with NULL */
} fuzz_target_t;

static const fuzz_target_t *fuzz_target;

/* A property that holds whatever the input is. */
#define FUZZ_CHECK(x, text) ((x) ? (void)0 : fuzz_fail(text, __LINE__))

__attribute__((noreturn)) static void fuzz_fail(const char *text, int line) {
    fprintf(stderr, "fuzz: %s (line %d)\n", text, line);
    abort();
}

/* ---- programs ---------------------------------------------------------------------------------------------------------- */

typedef struct fuzz_record {
    uint8_t op, which, pick, field;
    uint16_t a, b;
    uint32_t c, d;
} fuzz_record_t;

static fuzz_record_t fuzz_read_record(const uint8_t *at) {
    fuzz_record_t r;
    r.op = at[0];
    r.which = at[1];
    r.pick = at[2];
    r.field = at[3];
    memcpy(&r.a, at + 4, 2);
    memcpy(&r.b, at + 6, 2);
    memcpy(&r.c, at + 8, 4);
    memcpy(&r.d, at + 12, 4);
    return r;
}

/* Numbers at which code goes wrong; a 32-bit field reaches them through its top byte. */
static uint64_t fuzz_number(uint32_t value) {
    static const uint64_t special[] = {0,
                                       1,
                                       7,
                                       8,
                                       63,
                                       64,
                                       255,
                                       256,
                                       1023,
                                       1024,
                                       4095,
                                       4096,
                                       0x7fff,
                                       0xfff8,
                                       0xffff,
                                       0x10000,
                                       0x3fffffff,
                                       0x7fffffff,
                                       0x80000000u,
                                       0xffffffffu,
                                       UINT64_C(0x100000000),
                                       UINT64_MAX / 2,
                                       UINT64_MAX / 2 + 1,
                                       UINT64_MAX - 4096,
                                       UINT64_MAX - 63,
                                       UINT64_MAX - 7,
                                       UINT64_MAX - 1,
                                       UINT64_MAX};
    if (value >> 24 == 0xff) {
        return special[(value & 0xffffff) % (sizeof special / sizeof special[0])];
    }
    return value;
}

/* ---- memory of the library: counted, so that what leaks is seen -------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__)
#define FUZZ_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FUZZ_ASAN 1
#endif
#endif
#ifdef FUZZ_ASAN
#include <sanitizer/asan_interface.h>
#define FUZZ_FORBID(p, size) ASAN_POISON_MEMORY_REGION(p, size)
#define FUZZ_ALLOW(p, size) ASAN_UNPOISON_MEMORY_REGION(p, size)
#else
#define FUZZ_FORBID(p, size) ((void)0)
#define FUZZ_ALLOW(p, size) ((void)0)
#endif

/* Blocks that were released wait here for the next run, out of bounds: fresh pages cost more than all of a run. */
enum { FUZZ_BLOCKS = 128 };
typedef struct fuzz_block {
    void *memory;
    size_t size;
    int is_free;
} fuzz_block_t;
static fuzz_block_t fuzz_blocks[FUZZ_BLOCKS];
static size_t fuzz_live_blocks;
static uint32_t fuzz_allocs_left; /* 0: all succeed */

static void *fuzz_alloc(void *user, size_t size) {
    fuzz_block_t *empty = NULL;
    void *memory;
    int i;
    (void)user;
    if (fuzz_allocs_left > 0 && --fuzz_allocs_left == 0) {
        return NULL;
    }
    fuzz_live_blocks++;
    for (i = 0; size >= 4096 && i < FUZZ_BLOCKS; i++) {
        fuzz_block_t *block = &fuzz_blocks[i];
        if (block->memory != NULL && block->is_free && block->size == size) {
            block->is_free = 0;
            FUZZ_ALLOW(block->memory, size);
            return block->memory;
        }
        if (block->memory == NULL && empty == NULL) {
            empty = block;
        }
    }
    memory = malloc(size);
    if (memory == NULL) {
        abort();
    }
    if (empty != NULL) {
        empty->memory = memory;
        empty->size = size;
        empty->is_free = 0;
    }
    return memory;
}

static void fuzz_release(void *user, void *pointer) {
    int i;
    (void)user;
    FUZZ_CHECK(fuzz_live_blocks > 0, "more was released than allocated");
    fuzz_live_blocks--;
    for (i = 0; i < FUZZ_BLOCKS; i++) {
        fuzz_block_t *block = &fuzz_blocks[i];
        if (block->memory == pointer) {
            FUZZ_CHECK(!block->is_free, "memory is released twice");
            block->is_free = 1;
            FUZZ_FORBID(pointer, block->size);
            return;
        }
    }
    free(pointer);
}

/* Whatever is logged is text that ends. */
static void fuzz_log(void *user, int level, const char *text) {
    (void)user;
    FUZZ_CHECK(level >= 0 && level <= 3 && strlen(text) < 4096, "a strange message");
}

/* Unguessable for nobody: the same input gives the same run. Reset to 0 when a run begins. */
static uint32_t fuzz_random_state;

static int fuzz_random(void *user, void *bytes, size_t count) {
    size_t i;
    (void)user;
    for (i = 0; i < count; i++) {
        fuzz_random_state = fuzz_random_state * 1664525u + 1013904223u;
        ((uint8_t *)bytes)[i] = (uint8_t)(fuzz_random_state >> 24);
    }
    return 0;
}

/* ---- memory that is registered: a window between two guards ------------------------------------------------------------- */

#define FUZZ_GUARD_BYTES 256u
#define FUZZ_WINDOW_BYTES 8192u

typedef struct fuzz_window {
    uint8_t bytes[FUZZ_GUARD_BYTES + FUZZ_WINDOW_BYTES + FUZZ_GUARD_BYTES];
} fuzz_window_t;

static uint8_t fuzz_pattern(size_t at, uint32_t salt) {
    return (uint8_t)(at * 31u + at / 256u + salt * 77u + 1u);
}

/* What a window holds at first. */
static const fuzz_window_t *fuzz_window_origin(uint32_t salt) {
    static fuzz_window_t origin[6];
    static uint8_t is_made[6];
    size_t i;
    for (i = 0; !is_made[salt] && i < sizeof origin[salt].bytes; i++) {
        origin[salt].bytes[i] = fuzz_pattern(i, salt);
    }
    is_made[salt] = 1;
    return &origin[salt];
}

static void fuzz_window_fill(fuzz_window_t *window, uint32_t salt) {
    *window = *fuzz_window_origin(salt);
}

static uint8_t *fuzz_window_start(fuzz_window_t *window) {
    return window->bytes + FUZZ_GUARD_BYTES;
}

/* `whole`: nothing was to change, not only the guards. */
static void fuzz_window_check(const fuzz_window_t *window, uint32_t salt, int whole) {
    const fuzz_window_t *origin = fuzz_window_origin(salt);
    const size_t end = FUZZ_GUARD_BYTES + FUZZ_WINDOW_BYTES;
    FUZZ_CHECK(memcmp(window->bytes, origin->bytes, whole ? sizeof origin->bytes : FUZZ_GUARD_BYTES) == 0 &&
                   memcmp(window->bytes + end, origin->bytes + end, FUZZ_GUARD_BYTES) == 0,
               "memory was touched that nobody may touch");
}

/* ---- the mutator ------------------------------------------------------------------------------------------------------- */

#ifdef FUZZ_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *two, size_t two_size, uint8_t *out,
                                 size_t max_size, unsigned seed);

static uint32_t fuzz_dice_state;

static uint32_t fuzz_dice(uint32_t sides) {
    fuzz_dice_state = fuzz_dice_state * 1664525u + 1013904223u;
    return (fuzz_dice_state >> 8) % sides;
}

static void fuzz_roll_record(uint8_t *at, uint32_t op) {
    uint32_t i;
    for (i = 0; i < FUZZ_RECORD_BYTES; i++) {
        at[i] = fuzz_dice(3) == 0 ? (uint8_t)fuzz_dice(256) : 0;
    }
    at[0] = (uint8_t)op;
    if (fuzz_dice(4) == 0) {
        at[fuzz_dice(2) ? 11 : 15] = 0xff;
    }
}

/* Makes room for `count` records before record number `where`; returns the new size, or the old one if it is too long. */
static size_t fuzz_open_gap(uint8_t *data, size_t size, size_t max_size, size_t where, size_t count) {
    size_t at = FUZZ_HEAD_BYTES + where * FUZZ_RECORD_BYTES;
    if (size + count * FUZZ_RECORD_BYTES > max_size) {
        return size;
    }
    memmove(data + at + count * FUZZ_RECORD_BYTES, data + at, size - at);
    return size + count * FUZZ_RECORD_BYTES;
}

static size_t fuzz_mutate_program(uint8_t *data, size_t size, size_t max_size) {
    size_t count, where, other, larger;
    uint8_t *record, phrase;
    uint32_t i;
    if (size < FUZZ_HEAD_BYTES) {
        memset(data + size, 0, FUZZ_HEAD_BYTES - size);
        size = FUZZ_HEAD_BYTES;
    }
    count = (size - FUZZ_HEAD_BYTES) / FUZZ_RECORD_BYTES;
    size = FUZZ_HEAD_BYTES + count * FUZZ_RECORD_BYTES;
    where = fuzz_dice((uint32_t)count + 1);
    record = data + FUZZ_HEAD_BYTES + where * FUZZ_RECORD_BYTES;
    switch (count == 0 ? fuzz_dice(2) : fuzz_dice(10)) {
    case 0: /* a piece of valid traffic */
        phrase = (uint8_t)fuzz_dice(fuzz_target->phrase_count);
        for (i = 0; i < 4 && fuzz_target->phrases[phrase][i] != 0xff; i++) {
        }
        larger = fuzz_open_gap(data, size, max_size, where, i);
        while (larger > size && i-- > 0) {
            fuzz_roll_record(record + i * FUZZ_RECORD_BYTES, fuzz_target->phrases[phrase][i]);
        }
        return larger;
    case 1: /* any operation */
        larger = fuzz_open_gap(data, size, max_size, where, 1);
        if (larger > size) {
            fuzz_roll_record(record, fuzz_dice(fuzz_target->op_count));
        }
        return larger;
    case 2: /* one less */
        if (where < count) {
            memmove(record, record + FUZZ_RECORD_BYTES, (count - where - 1) * FUZZ_RECORD_BYTES);
            size -= FUZZ_RECORD_BYTES;
        }
        return size;
    case 3: /* two change places */
        if (where < count) {
            uint8_t kept[FUZZ_RECORD_BYTES], *partner;
            other = fuzz_dice((uint32_t)count);
            partner = data + FUZZ_HEAD_BYTES + other * FUZZ_RECORD_BYTES;
            memcpy(kept, record, sizeof kept);
            memmove(record, partner, sizeof kept);
            memcpy(partner, kept, sizeof kept);
        }
        return size;
    case 4: /* once more */
        other = fuzz_dice((uint32_t)count);
        larger = fuzz_open_gap(data, size, max_size, where, 1);
        if (larger > size) {
            other += other >= where;
            memcpy(record, data + FUZZ_HEAD_BYTES + other * FUZZ_RECORD_BYTES, FUZZ_RECORD_BYTES);
        }
        return larger;
    case 5:
        data[fuzz_dice(FUZZ_HEAD_BYTES)] = (uint8_t)fuzz_dice(256);
        return size;
    default: /* another argument */
        if (where < count) {
            size_t field = 1 + fuzz_dice(FUZZ_RECORD_BYTES - 1);
            switch (fuzz_dice(4)) {
            case 0:
                record[field] = (uint8_t)fuzz_dice(256);
                break;
            case 1:
                record[field] = (uint8_t)(record[field] + (fuzz_dice(2) ? 1 : 255));
                break;
            case 2:
                record[fuzz_dice(2) ? 11 : 15] = 0xff;
                break;
            default:
                (void)LLVMFuzzerMutate(record + 1, FUZZ_RECORD_BYTES - 1, FUZZ_RECORD_BYTES - 1);
                break;
            }
        }
        return size;
    }
}

static size_t fuzz_mutate_text(uint8_t *data, size_t size, size_t max_size) {
    uint32_t count = 0;
    size_t length, where;
    while (fuzz_target->words[count] != NULL) {
        count++;
    }
    if (fuzz_dice(2) == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    count = fuzz_dice(count);
    length = strlen(fuzz_target->words[count]);
    if (size + length > max_size) {
        return size;
    }
    where = fuzz_dice((uint32_t)size + 1);
    memmove(data + where + length, data + where, size - where);
    memcpy(data + where, fuzz_target->words[count], length);
    return size + length;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    uint32_t rounds;
    fuzz_dice_state = seed;
    for (rounds = 1 + fuzz_dice(4); rounds > 0; rounds--) {
        size = fuzz_target->op_count > 0 && max_size >= FUZZ_HEAD_BYTES ? fuzz_mutate_program(data, size, max_size)
                                                                         : fuzz_mutate_text(data, size, max_size);
    }
    return size;
}

/* The beginning of one and the end of the other, in whole records. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *two, size_t two_size, uint8_t *out,
                                 size_t max_size, unsigned seed) {
    size_t unit = fuzz_target->op_count > 0 ? FUZZ_RECORD_BYTES : 1, head = fuzz_target->op_count > 0 ? FUZZ_HEAD_BYTES : 0;
    size_t first, second, from;
    if (one_size < head || two_size < head) {
        return 0;
    }
    fuzz_dice_state = seed;
    first = head + unit * fuzz_dice((uint32_t)((one_size - head) / unit) + 1);
    from = head + unit * fuzz_dice((uint32_t)((two_size - head) / unit) + 1);
    second = two_size - from;
    if (first + second > max_size) {
        return 0;
    }
    memcpy(out, one, first);
    memcpy(out + first, two + from, second);
    return first + second;
}
#endif

/* ---- running ------------------------------------------------------------------------------------------------------------ */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of just its size, so that a sanitizer sees every byte beyond. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *copy = (uint8_t *)malloc(size ? size : 1);
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, data, size);
    fuzz_target->run(copy, size);
    free(copy);
    FUZZ_CHECK(fuzz_live_blocks == 0, "something leaks");
    return 0;
}

#ifndef FUZZ_LIBFUZZER
#ifdef __AFL_HAVE_MANUAL_CONTROL
__AFL_FUZZ_INIT()
#else
static uint32_t fuzz_file_count;

static int fuzz_run_file(const char *path) {
    static uint8_t bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    size_t size;
    if (file == NULL) {
        perror(path);
        return 1;
    }
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    fprintf(stderr, "%s\n", path); /* the last one named is the one that fails */
    (void)LLVMFuzzerTestOneInput(bytes, size);
    fuzz_file_count++;
    return 0;
}

/* A file, or all files of a directory. */
static int fuzz_run_path(const char *path) {
    struct stat status;
    struct dirent *entry;
    int failed = 0;
    DIR *directory;
    if (stat(path, &status) != 0) {
        perror(path);
        return 1;
    }
    if (!S_ISDIR(status.st_mode)) {
        return fuzz_run_file(path);
    }
    directory = opendir(path);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char name[4096];
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        failed |= fuzz_run_file(name);
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return failed;
}
#endif

int main(int argc, char **argv) {
    int first = LLVMFuzzerInitialize(&argc, &argv);
#ifdef __AFL_HAVE_MANUAL_CONTROL
    uint8_t *bytes;
    (void)first;
    __AFL_INIT();
    bytes = __AFL_FUZZ_TESTCASE_BUF;
    while (__AFL_LOOP(1000)) {
        (void)LLVMFuzzerTestOneInput(bytes, (size_t)__AFL_FUZZ_TESTCASE_LEN);
    }
    return 0;
#else
    int failed = 0, i;
    for (i = first; i < argc; i++) {
        failed |= fuzz_run_path(argv[i]);
    }
    printf("fuzz %s: %u inputs ran\n", fuzz_target->name, (unsigned)fuzz_file_count);
    return failed || fuzz_file_count == 0;
#endif
}
#endif

#endif /* CCI_TEST_FUZZ_H */
