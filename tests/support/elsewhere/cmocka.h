/* cmocka.h - the part of cmocka that these tests use, for machines and C libraries that it is not packaged for.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * The tests include <cmocka.h>; where they are cross-compiled, -Itests/elsewhere makes that this file. A test that fails
 * ends there, its teardown runs, and the others go on. What is printed can be counted like cmocka's output.
 */
#ifndef CCI_TEST_CMOCKA_H
#define CCI_TEST_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CMOCKA_FN static __attribute__((unused))

struct CMUnitTest {
    const char *name;
    void (*test_func)(void **state);
    int (*setup_func)(void **state);
    int (*teardown_func)(void **state);
    void *initial_state;
};

#define cmocka_unit_test(f) {#f, f, NULL, NULL, NULL}
#define cmocka_unit_test_setup(f, setup) {#f, f, setup, NULL, NULL}
#define cmocka_unit_test_setup_teardown(f, setup, teardown) {#f, f, setup, teardown, NULL}
#define cmocka_run_group_tests(tests, setup, teardown) cmocka_run_group_tests_name(#tests, tests, setup, teardown)
#define cmocka_run_group_tests_name(name, tests, setup, teardown)                                                     \
    _cmocka_run_group_tests(name, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)

static jmp_buf cmocka_end;
enum { CMOCKA_FAILED = 1, CMOCKA_SKIPPED };

#define cmocka_leave(outcome) longjmp(cmocka_end, outcome)
#define skip() cmocka_leave(CMOCKA_SKIPPED)
#define fail_msg(...) (printf("%s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), printf("\n"), cmocka_leave(CMOCKA_FAILED))
#define fail() fail_msg("failed")
#define print_message(...) (void)printf(__VA_ARGS__)

/* Whole numbers and pointers are compared as cmocka compares them: as the widest unsigned number. */
#define cmocka_number(x) ((uint64_t)(x))
#define cmocka_pointer(x) ((uint64_t)(uintptr_t)(x))

CMOCKA_FN void cmocka_compare(uint64_t a, uint64_t b, int equal, const char *what, const char *file, int line) {
    if ((a == b) != equal) {
        printf("%s:%d: %s: %#llx, %#llx\n", file, line, what, (unsigned long long)a, (unsigned long long)b);
        cmocka_leave(CMOCKA_FAILED);
    }
}

CMOCKA_FN void cmocka_check(int good, const char *what, const char *file, int line) {
    if (!good) {
        printf("%s:%d: %s\n", file, line, what);
        cmocka_leave(CMOCKA_FAILED);
    }
}

#define cmocka_hold(good, what) cmocka_check((good) ? 1 : 0, what, __FILE__, __LINE__)
#define assert_true(x) cmocka_hold(x, #x)
#define assert_false(x) cmocka_hold(!(x), "not " #x)
#define assert_null(x) cmocka_hold((x) == NULL, #x " is NULL")
#define assert_non_null(x) cmocka_hold((x) != NULL, #x " is not NULL")
#define assert_int_equal(a, b) cmocka_compare(cmocka_number(a), cmocka_number(b), 1, #a " == " #b, __FILE__, __LINE__)
#define assert_int_not_equal(a, b) cmocka_compare(cmocka_number(a), cmocka_number(b), 0, #a " != " #b, __FILE__, __LINE__)
#define assert_ptr_equal(a, b) cmocka_compare(cmocka_pointer(a), cmocka_pointer(b), 1, #a " == " #b, __FILE__, __LINE__)
#define assert_ptr_not_equal(a, b)                                                                                    \
    cmocka_compare(cmocka_pointer(a), cmocka_pointer(b), 0, #a " != " #b, __FILE__, __LINE__)
#define assert_string_equal(a, b) cmocka_hold(strcmp(a, b) == 0, #a " equals " #b)
#define assert_memory_equal(a, b, size) cmocka_hold(memcmp(a, b, size) == 0, #a " equals " #b)
#define assert_memory_not_equal(a, b, size) cmocka_hold(memcmp(a, b, size) != 0, #a " differs from " #b)
#define assert_in_range(x, low, high)                                                                                 \
    cmocka_hold(cmocka_number(x) >= cmocka_number(low) && cmocka_number(x) <= cmocka_number(high), #x " is in range")

/* Runs one test; a failed setup or teardown is a failed test. */
CMOCKA_FN int cmocka_run_one(const struct CMUnitTest *test) {
    void *state = test->initial_state;
    int outcome;
    printf("[ RUN      ] %s\n", test->name);
    fflush(stdout);
    outcome = setjmp(cmocka_end);
    if (outcome == 0) {
        if (test->setup_func && test->setup_func(&state) != 0) {
            cmocka_leave(CMOCKA_FAILED);
        }
        test->test_func(&state);
    }
    if (test->teardown_func) {
        int late = setjmp(cmocka_end);
        if (late != 0 || test->teardown_func(&state) != 0) {
            return CMOCKA_FAILED;
        }
    }
    return outcome;
}

CMOCKA_FN int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count,
                                      int (*setup)(void **), int (*teardown)(void **)) {
    int of[3] = {0, 0, 0};
    size_t i;
    void *state = NULL;
    if (setup && setup(&state) != 0) {
        return 1;
    }
    for (i = 0; i < count; i++) {
        int outcome = cmocka_run_one(&tests[i]);
        of[outcome]++;
        printf("%s%s\n", outcome == 0 ? "[       OK ] " : outcome == CMOCKA_FAILED ? "[  FAILED  ] " : "[  SKIPPED ] ",
               tests[i].name);
        fflush(stdout);
    }
    if (teardown && teardown(&state) != 0) {
        of[CMOCKA_FAILED]++;
    }
    printf("[==========] %s: %lu test(s) run.\n", name, (unsigned long)count);
    if (of[CMOCKA_SKIPPED] > 0) {
        printf("[  SKIPPED ] %d test(s), listed above:\n", of[CMOCKA_SKIPPED]);
    }
    if (of[CMOCKA_FAILED] > 0) {
        printf("[  FAILED  ] %d test(s), listed above:\n", of[CMOCKA_FAILED]);
    }
    return of[CMOCKA_FAILED];
}

#endif /* CCI_TEST_CMOCKA_H */
