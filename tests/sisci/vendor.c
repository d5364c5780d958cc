/* vendor.c - the loader of an adapter's library, against stubs that record their calls: vendor DIRECTORY-OF-STUBS
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CCI_SISCI_API
#define CCI_SISCI_ADAPTER
#define CCI_SISCI_IMPLEMENTATION
#include "cci_sisci.h"

static const char *stubs;
static cci__sci_provider vendor;
static const char **called;
static const size_t *number;

static const char *load(const char *name) {
    char path[500];
    snprintf(path, sizeof path, "%s/%s.so", stubs, name);
    return cci__sci_load(&vendor, path);
}

static void load_well(const char *name) {
    void *symbol;
    assert_null(load(name));
    symbol = dlsym(vendor.library, "stub_called");
    assert_non_null(symbol);
    called = (const char **)symbol;
    number = (const size_t *)dlsym(vendor.library, "stub_number");
    assert_non_null(number);
}

/* What both widths have in common: calls arrive, with their arguments as they were. */
static void check_calls(void) {
    sci_error_t error = CCI__SCI_ERR_LAST_;
    sci_desc_t sd = NULL;
    sci_local_segment_t segment = NULL;
    sci_map_t map[2] = {NULL, NULL};
    sci_sequence_t sequence[2] = {NULL, NULL};
    unsigned int offset[2] = {0xfffffff0u, 0xfffffffcu}, size = 4;
    char place;
    vendor.call.SCIOpen(&sd, 0, &error);
    assert_string_equal(*called, "SCIOpen");
    assert_int_equal(error, SCI_ERR_OK);
    vendor.call.SCIFlush(NULL, 0);
    assert_string_equal(*called, "SCIFlush");
    vendor.call.SCICreateSegment(sd, &segment, 5, 0xfffffffcu, NULL, NULL, vendor.flag.PRIVATE, &error);
    assert_string_equal(*called, "SCICreateSegment");
    assert_true(number[0] == 5 && number[1] == 0xfffffffcu && number[2] == vendor.flag.PRIVATE);
    assert_ptr_equal(vendor.call.SCIMapRemoteSegment(NULL, map, 0x80000000u, 0xfffffff8u, &place, 7, &error), &place);
    assert_true(number[0] == 0x80000000u && number[1] == 0xfffffff8u && number[2] == 7);
    assert_int_equal(vendor.call.SCIEnqueueDMATransfer(NULL, NULL, NULL, 0xf0000000u, 0xe0000000u, 0xd0000000u, 0, &error),
                     SCI_DMAQUEUE_GATHER);
    assert_true(number[0] == 0xf0000000u && number[1] == 0xe0000000u && number[2] == 0xd0000000u);
    vendor.call.SCIMemCpy_mcast(sequence, &place, map, offset, 16, 2, 0, &error);
    assert_string_equal(*called, "SCIMemCpy_mcast");
    assert_true(number[0] == 0xfffffffcu && number[1] == 16);
    vendor.call.SCIAttachLocalSegment(sd, &segment, 6, &size, NULL, NULL, 0, &error);
    assert_true(number[0] == 6 && number[1] == 4 && size == 8192);
    vendor.call.SCIMemCopy(&place, NULL, 0, 4, 0, &error);
    assert_string_equal(*called, "SCIMemCopy");
    vendor.call.SCITerminate();
    assert_string_equal(*called, "SCITerminate");
}

static void test_a_library_of_API_1_is_found_with_each_prefix(void **state) {
    static const char *const names[] = {"mt1", "st1", "plain1"};
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        load_well(names[i]);
        assert_int_equal(vendor.api_major, 1);
        assert_int_equal(vendor.api_minor, 10);
        assert_int_equal(vendor.call.SCIGetRemoteSegmentSize(NULL), 4096);
        check_calls();
        cci__sci_unload(&vendor);
    }
}

static void test_a_library_of_API_2_gets_sizes_in_its_width(void **state) {
    (void)state;
    load_well("mt2");
    assert_int_equal(vendor.api_major, 2);
    assert_int_equal(vendor.api_minor, 1);
    check_calls();
    if (sizeof(size_t) > 4) {
        assert_int_equal(vendor.call.SCIGetRemoteSegmentSize(NULL), 0); /* more than fits */
    }
    cci__sci_unload(&vendor);
}

static void test_every_function_is_found_and_each_goes_where_its_name_says(void **state) {
    static const char *const names[] = {"mt1", "mt2"};
    cci__sci_functions lacking;
    unsigned int all = (unsigned int)(sizeof lacking / sizeof(void *));
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        load_well(names[i]);
        assert_int_equal(vendor.found, all);
        cci__sci_unload(&vendor);
    }
}

static void test_flags_and_questions_are_the_librarys_where_it_has_them(void **state) {
    (void)state;
    load_well("mt1");
    assert_int_equal(vendor.flag.USE_CALLBACK, SCI_FLAG_USE_CALLBACK ^ 0x55000000);
    assert_int_equal(vendor.flag.DMA_READ, SCI_FLAG_DMA_READ ^ 0x55000000);
    assert_int_equal(vendor.query.API, 77);
    assert_int_equal(vendor.query.ADAPTER, SCI_Q_ADAPTER);
    cci__sci_unload(&vendor);
    load_well("plain1"); /* without any */
    assert_int_equal(vendor.flag.USE_CALLBACK, SCI_FLAG_USE_CALLBACK);
    assert_int_equal(vendor.query.API, SCI_Q_API);
    cci__sci_unload(&vendor);
}

static void test_what_a_library_lacks_is_NOT_IMPLEMENTED(void **state) {
    static const char *const names[] = {"few1", "few2"};
    sci_error_t error = SCI_ERR_OK;
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        assert_null(load(names[i]));
        assert_int_equal(vendor.found, 3);
        vendor.call.SCICreateSegment(NULL, NULL, 5, 4, NULL, NULL, 0, &error);
        assert_int_equal(error, SCI_ERR_NOT_IMPLEMENTED);
        error = SCI_ERR_OK;
        assert_null(vendor.call.SCIMapLocalSegment(NULL, NULL, 0, 4, NULL, 0, &error));
        assert_int_equal(error, SCI_ERR_NOT_IMPLEMENTED);
        assert_int_equal(vendor.call.SCIGetRemoteSegmentSize(NULL), 0);
        cci__sci_unload(&vendor);
    }
}

static void test_a_library_that_can_not_be_used_says_why(void **state) {
    (void)state;
    assert_string_equal(load("missing"), "it can't be opened");
    assert_string_equal(load("empty"), "it has not the functions of SISCI");
    assert_string_equal(load("silent"), "it does not tell the version of its API");
    assert_string_equal(load("mt3"), "the version of its API is not known here");
    assert_null(vendor.library);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_library_of_API_1_is_found_with_each_prefix),
        cmocka_unit_test(test_a_library_of_API_2_gets_sizes_in_its_width),
        cmocka_unit_test(test_every_function_is_found_and_each_goes_where_its_name_says),
        cmocka_unit_test(test_flags_and_questions_are_the_librarys_where_it_has_them),
        cmocka_unit_test(test_what_a_library_lacks_is_NOT_IMPLEMENTED),
        cmocka_unit_test(test_a_library_that_can_not_be_used_says_why),
    };
    stubs = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
