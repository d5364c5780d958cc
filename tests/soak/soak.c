/* soak.c - many endpoints on a bad network, for as long as it is told; one number decides everything.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     soak [--seeds N] [--first SEED] [--seconds N]    runs seeds one after the other, each in a process of its own
 *     soak ... --every-fault                           fails if a kind of fault was in none of them, or few connections
 *     soak --seed SEED [--steps N] [--keep LIST]       runs one; of its steps only the first N, or those listed ("0-7,12")
 *     soak --seed SEED [--without NAMES]               runs one without steps of some kinds ("alias,replay")
 *     soak --seed SEED --reduce                        looks for a short list of steps that fails in the same way
 *     --pcap FILE   with --seed: what the endpoints sent, for Wireshark and wire_check.py (see pcap.h)
 *     --verbose     with --seed: each step          --no-fork   in this process, for a debugger
 *
 * A seed becomes a list of numbered steps, each with its time: connect, send, write, read, cut the network, destroy an endpoint
 * (soak_step.h). A step's choices come from the seed and its number alone, so that it can be left out without changing the
 * others'. Between the steps the clock runs straight to the next thing that is due. Everything the library says is compared with
 * the model (soak_model.h). A step "calm" ends all faults: then everything must complete, and nothing may be left over.
 */
#define CCI_IMPLEMENTATION
#define CCI_NO_THREADS
#include "tests/soak/soak_step.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define EXIT_HUNG 62

typedef struct options {
    const char *program;
    uint64_t seed;
    uint32_t steps;        /* at most */
    const char *keep;      /* list of steps, or NULL for all */
    const char *without;   /* kinds of steps that are left out, or NULL */
    const char *pcap;
    int is_verbose, is_single, reduces, forks, wants_faults;
    uint32_t seed_count, seconds;
} options_t;

static options_t options;
static soak_totals_t *shared_totals; /* of the children */

/* ---- the steps that are run ---------------------------------------------------------------------------------------- */

static uint8_t *kept; /* one byte for each step: is it run? */
static uint32_t step_count;

static void keep_listed(const char *list) {
    memset(kept, 0, step_count);
    while (*list != '\0') {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (*end == '-') {
            last = end[1] >= '0' && end[1] <= '9' ? strtoul(end + 1, &end, 10) : (end++, step_count - 1ul);
        }
        for (; first <= last && first < step_count; first++) {
            kept[first] = 1;
        }
        list = *end == ',' ? end + 1 : "";
    }
}

static int is_listed(const char *list, const char *name) {
    size_t length = strlen(name);
    const char *at;
    for (at = list; at != NULL && (at = strstr(at, name)) != NULL; at += length) {
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) {
            return 1;
        }
    }
    return 0;
}

static void print_kept(FILE *to) {
    uint32_t i, end;
    const char *comma = "";
    for (i = 0; i < step_count; i = end + 1) {
        for (end = i; end < step_count && kept[end]; end++) {
        }
        if (end > i) {
            fprintf(to, end > i + 1 ? "%s%lu-%lu" : "%s%lu", comma, (unsigned long)i, (unsigned long)end - 1);
            comma = ",";
        }
    }
}

static void print_command(void) {
    uint32_t i, all = 1, any = 0;
    printf("replay: %s --seed 0x%llx", options.program, (unsigned long long)options.seed);
    for (i = 0; i < step_count; i++) {
        all &= kept[i];
        any |= kept[i];
    }
    if (options.without != NULL) {
        printf(" --without '%s'", options.without);
    }
    if (!any) {
        printf(" --steps 0"); /* the calm at the end is enough */
    } else if (!all) {
        printf(" --keep ");
        print_kept(stdout);
    }
    printf("\n");
    fflush(stdout);
}

/* ---- one run --------------------------------------------------------------------------------------------------------- */

static void run_steps(void) {
    uint32_t i;
    soak_begin(options.seed);
    if (options.pcap != NULL && (net.pcap = pcap_create(options.pcap)) == NULL) {
        perror(options.pcap);
        exit(2);
    }
    for (i = 0; i < step_count; i++) {
        current_step = i;
        if (kept[i] && !is_listed(options.without, step_name(options.seed, i))) {
            soak_step(options.seed, i, options.is_verbose);
        }
    }
    current_step = step_count;
    soak_end();
    net_end();
}

/* Runs the steps in a process of their own; 0, or how it ended: the oracle that spoke, or the signal. */
static int run_forked(unsigned patience_s) {
    int status = 0;
    pid_t child;
    fflush(stdout);
    child = fork();
    if (child < 0) {
        perror("fork");
        exit(2);
    }
    if (child == 0) {
        if (is_quiet && freopen("/dev/null", "w", stderr) == NULL) {
            _exit(2);
        }
        alarm(patience_s);
        run_steps();
        *shared_totals = totals;
        fflush(stdout);
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0) {
    }
    if (WIFSIGNALED(status)) {
        return WTERMSIG(status) == SIGALRM ? EXIT_HUNG : 128 + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}

static void add_totals(soak_totals_t *sum) {
    const uint64_t *from = (const uint64_t *)(const void *)shared_totals;
    uint64_t *to = (uint64_t *)(void *)sum;
    uint64_t most_conns = cci__max64(sum->most_conns, shared_totals->most_conns);
    size_t i;
    for (i = 0; i < sizeof *sum / sizeof *to; i++) {
        to[i] += from[i];
    }
    sum->most_conns = most_conns;
}

static void tell_end(int how) {
    if (how == EXIT_HUNG) {
        printf("FAIL: hung\n");
    } else if (how > 128) {
        printf("FAIL: signal %d\n", how - 128);
    } else if (how < 64) {
        printf("FAIL: exit status %d (a sanitizer?)\n", how);
    }
    print_command();
}

/* ---- shortening a schedule ------------------------------------------------------------------------------------------- */

/* Leaves out the steps of which `out` says so; 0 if it fails in another way without them, and they stay. */
static int leave_out(const uint8_t *out, int how, uint32_t *runs) {
    uint8_t *before = (uint8_t *)soak_more(NULL, step_count);
    uint32_t i, count = 0;
    memcpy(before, kept, step_count);
    for (i = 0; i < step_count; i++) {
        count += kept[i] & out[i];
        kept[i] &= !out[i];
    }
    *runs += count > 0;
    if (count > 0 && run_forked(60) != how) {
        memcpy(kept, before, step_count);
        count = 0;
    }
    free(before);
    return count > 0;
}

/* One pass over all steps, so many at a time. */
static int leave_out_pieces(uint32_t piece, int how, uint32_t *runs) {
    uint8_t *out = (uint8_t *)soak_more(NULL, step_count);
    uint32_t i;
    int any = 0;
    for (i = 0; i < step_count; i += piece) {
        memset(out, 0, step_count);
        memset(out + i, 1, cci__min32(piece, step_count - i));
        any |= leave_out(out, how, runs);
    }
    free(out);
    return any;
}

/* Some steps here and there: one may be needed only because of another. Any other schedule also has other faults on its way, with
 * which fewer steps may do. */
static int leave_out_some(int how, uint32_t *runs) {
    uint8_t *out = (uint8_t *)soak_more(NULL, step_count);
    uint32_t tries, i;
    int any = 0;
    for (tries = 0; tries < 200; tries++) {
        memset(out, 0, step_count);
        for (i = 0; i < step_count; i++) {
            out[i] = kept[i] && rand() % 10 == 0;
        }
        any |= leave_out(out, how, runs);
    }
    free(out);
    return any;
}

/* Leaves out piece after piece, as long as it fails in the same way: halves first, single steps last, until nothing goes. */
static int reduce(void) {
    int how = run_forked(300), any;
    uint32_t piece, i, runs = 1, left;
    if (how == 0) {
        printf("this does not fail\n");
        return 1;
    }
    is_quiet = 1;
    for (piece = step_count / 2; piece > 1; piece = (piece + 1) / 2) {
        (void)leave_out_pieces(piece, how, &runs);
    }
    do {
        any = leave_out_pieces(1, how, &runs);
        any |= leave_out_some(how, &runs);
    } while (any);
    for (i = left = 0; i < step_count; i++) {
        left += kept[i];
    }
    is_quiet = 0;
    options.is_verbose = 1;
    printf("%lu of %lu steps are enough (%lu runs):\n", (unsigned long)left, (unsigned long)step_count, (unsigned long)runs);
    tell_end(run_forked(60));
    return 1;
}

/* ---- the program ------------------------------------------------------------------------------------------------------- */

static void prepare(void) {
    step_count = soak_step_count(options.seed);
    kept = (uint8_t *)soak_more((void *)kept, step_count);
    memset(kept, 1, step_count);
    if (options.keep != NULL) {
        keep_listed(options.keep);
    }
    if (options.steps < step_count) {
        memset(kept + options.steps, 0, step_count - options.steps);
    }
}

static int run_one(void) {
    int how;
    prepare();
    if (options.reduces) {
        return reduce();
    }
    if (!options.forks) {
        run_steps();
        return 0;
    }
    how = run_forked(600);
    if (how != 0) {
        tell_end(how);
        return 1;
    }
    printf("ok: seed 0x%llx, %lu steps, %.0f virtual seconds, %lu datagrams, digest %016llx\n",
           (unsigned long long)options.seed, (unsigned long)step_count, (double)shared_totals->virtual_ns / 1e9,
           (unsigned long)shared_totals->datagrams, (unsigned long long)shared_totals->digest);
    return 0;
}

static void tell_totals(const soak_totals_t *sum, uint32_t seeds, uint32_t failed) {
    printf("%lu seeds, %.2f virtual hours, %.2f million datagrams (%.1f GB), %lu endpoints, %lu connections, "
           "%lu operations (%lu lists, %lu atomics, %lu fenced messages, %lu that wake), %lu messages delivered, %lu sides' statistics compared, %lu events of status, %.1f MB of RMA, %lu operations failed, %lu calms; %lu seeds failed\n",
           (unsigned long)seeds, (double)sum->virtual_ns / 3.6e12, (double)sum->datagrams / 1e6, (double)sum->bytes / 1e9,
           (unsigned long)sum->endpoints, (unsigned long)sum->connects, (unsigned long)sum->operations,
           (unsigned long)sum->lists, (unsigned long)sum->atomics, (unsigned long)sum->fenced,
           (unsigned long)sum->wakes, (unsigned long)sum->delivered, (unsigned long)sum->counts_compared, (unsigned long)sum->news, (double)sum->rma_bytes / 1e6, (unsigned long)sum->failed_ops,
           (unsigned long)sum->calms, (unsigned long)failed);
}

/* Where the library has no way to notice a fork, the test does none. */
static int can_happen(int fault) {
    return CCI__HAS_ATFORK || (fault != FAULT_FORKED && fault != FAULT_FORKED_INSIDE);
}

/* Which faults there were; 0 if one that was wanted was not, or there were no thousands of connections. */
static int tell_faults(const soak_totals_t *sum) {
    int i, missing = sum->most_conns < 2000;
    printf("faults:");
    for (i = 0; i < FAULT_COUNT; i++) {
        printf("%s %s %llu", i == 0 ? "" : ",", net_fault_texts[i], (unsigned long long)sum->faults[i]);
        missing += sum->faults[i] == 0 && can_happen(i);
    }
    printf("; at most %llu connections at once\n", (unsigned long long)sum->most_conns);
    for (i = 0; i < FAULT_COUNT && options.wants_faults; i++) {
        if (sum->faults[i] == 0 && can_happen(i)) {
            printf("FAIL: never in these seeds: %s\n", net_fault_texts[i]);
        }
    }
    if (sum->most_conns < 2000 && options.wants_faults) {
        printf("FAIL: never 2,000 connections at once in these seeds\n");
    }
    return missing == 0 || !options.wants_faults;
}

/* The run of a seed says the same each time, or a failure could not be replayed. */
static int check_repeatable(void) {
    uint64_t digest;
    prepare();
    if (run_forked(600) != 0) {
        return 1; /* tells of itself when its turn comes */
    }
    digest = shared_totals->digest;
    (void)run_forked(600);
    if (shared_totals->digest != digest) {
        printf("FAIL: two runs of seed 0x%llx differ\n", (unsigned long long)options.seed);
        return 0;
    }
    return 1;
}

static int run_many(void) {
    soak_totals_t sum;
    struct timespec begin, now;
    uint32_t i, failed = 0;
    uint64_t first = options.seed;
    memset(&sum, 0, sizeof sum);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    failed += !check_repeatable();
    for (i = 0; options.seconds > 0 || i < options.seed_count; i++) {
        int how;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (options.seconds > 0 && now.tv_sec - begin.tv_sec >= (time_t)options.seconds) {
            break;
        }
        options.seed = first + i;
        prepare();
        how = run_forked(600);
        if (how == 0) {
            add_totals(&sum);
            continue;
        }
        failed++;
        tell_end(how);
        if (options.is_single) {
            break;
        }
    }
    tell_totals(&sum, i, failed);
    return !tell_faults(&sum) || failed > 0;
}

static const char *value_of(int argc, char **argv, int *i) {
    if (*i + 1 >= argc) {
        fprintf(stderr, "%s wants a value\n", argv[*i]);
        exit(2);
    }
    return argv[++*i];
}

int main(int argc, char **argv) {
    int i, is_one = 0;
    options.program = argv[0];
    options.seed = 1;
    options.steps = NONE;
    options.seed_count = 20;
    options.forks = 1;
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0) {
            options.seed = strtoull(value_of(argc, argv, &i), NULL, 0);
            is_one = 1;
        } else if (strcmp(argv[i], "--first") == 0) {
            options.seed = strtoull(value_of(argc, argv, &i), NULL, 0);
        } else if (strcmp(argv[i], "--seeds") == 0) {
            options.seed_count = (uint32_t)strtoul(value_of(argc, argv, &i), NULL, 0);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            options.seconds = (uint32_t)strtoul(value_of(argc, argv, &i), NULL, 0);
        } else if (strcmp(argv[i], "--steps") == 0) {
            options.steps = (uint32_t)strtoul(value_of(argc, argv, &i), NULL, 0);
        } else if (strcmp(argv[i], "--keep") == 0) {
            options.keep = value_of(argc, argv, &i);
        } else if (strcmp(argv[i], "--without") == 0) {
            options.without = value_of(argc, argv, &i);
        } else if (strcmp(argv[i], "--pcap") == 0) {
            options.pcap = value_of(argc, argv, &i);
        } else if (strcmp(argv[i], "--reduce") == 0) {
            options.reduces = 1;
        } else if (strcmp(argv[i], "--verbose") == 0) {
            options.is_verbose = 1;
        } else if (strcmp(argv[i], "--no-fork") == 0) {
            options.forks = 0;
        } else if (strcmp(argv[i], "--every-fault") == 0) {
            options.wants_faults = 1;
        } else if (strcmp(argv[i], "--stop") == 0) {
            options.is_single = 1; /* at the first failure */
        } else {
            fprintf(stderr, "%s: see the beginning of tests/soak/soak.c\n", argv[i]);
            return 2;
        }
    }
    shared_totals = (soak_totals_t *)mmap(NULL, sizeof *shared_totals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                                          -1, 0);
    if (shared_totals == (soak_totals_t *)MAP_FAILED) {
        perror("mmap");
        return 2;
    }
    return is_one ? run_one() : run_many();
}
