/* test_udp_texts.c - what the transport for UDP reads from texts: keys of a configuration, addresses and services.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Its sockets are the conformance suite's and netns.c's.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CCI_IMPLEMENTATION
#include "cci_udp.h"

#include "cci.h"

static char log_text[1000];

static void keep_log(void *user, int level, const char *text) {
    (void)user;
    (void)level;
    snprintf(log_text, sizeof log_text, "%s", text);
}

/* What the library says to a device with this line: a status; what is wrong is in log_text. */
static int configure(const char *line) {
    char config[400];
    cci_setup_t setup;
    uint32_t caps;
    int status;
    snprintf(config, sizeof config, "[loop]\ntransport = udp\n%s\n%s\n",
             strncmp(line, "interface", 9) == 0 ? "" : "interface = lo", line);
    memset(&setup, 0, sizeof setup);
    setup.log = keep_log;
    setup.config = config;
    log_text[0] = '\0';
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    status = cci_init(CCI_ABI_VERSION, 0, &caps);
    if (status == CCI_SUCCESS) {
        assert_int_equal(cci_finalize(), CCI_SUCCESS);
    }
    assert_int_equal(cci_setup(NULL), CCI_SUCCESS);
    return status;
}

static void assert_taken(const char *line) {
    if (configure(line) != CCI_SUCCESS) {
        fail_msg("\"%s\" is refused: %s", line, log_text);
    }
}

/* It is refused, and the message names the key and says what it should be. */
static void assert_refused(const char *line, const char *wanted) {
    char key[40];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(line, " ="), line);
    if (configure(line) == CCI_SUCCESS) {
        fail_msg("\"%s\" is taken", line);
    }
    if (strstr(log_text, key) == NULL || strstr(log_text, wanted) == NULL) {
        fail_msg("\"%s\" is refused with: %s", line, log_text);
    }
}

static void the_smallest_and_the_largest_value_of_each_number_are_taken_and_nothing_beyond(void **state) {
    static const struct {
        const char *key;
        uint64_t smallest, largest;
    } keys[] = {{"port", 1, 65535},           {"mtu", 576, 65535},          {"max_send_size", 256, 65472},
                {"send_buf_count", 1, 65536}, {"recv_buf_count", 1, 65536}, {"send_timeout", 1, 4294967295u},
                {"memory", 65536, 4294967295u}, {"rcvbuf", 4096, 1u << 30},   {"sndbuf", 4096, 1u << 30},   {"crc", 0, 1},
                {"ttl", 1, 255},              {"hops", 1, 255}};
    char line[80];
    size_t i;
    (void)state;
    for (i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        snprintf(line, sizeof line, "%s = %lu", keys[i].key, (unsigned long)keys[i].smallest);
        assert_taken(line);
        snprintf(line, sizeof line, "%s = %lu", keys[i].key, (unsigned long)keys[i].largest);
        assert_taken(line);
        snprintf(line, sizeof line, "%s = %lu", keys[i].key, (unsigned long)keys[i].largest + 1);
        assert_refused(line, "a number from");
        if (keys[i].smallest > 0) {
            snprintf(line, sizeof line, "%s = %lu", keys[i].key, (unsigned long)keys[i].smallest - 1);
            assert_refused(line, "a number from");
        }
        snprintf(line, sizeof line, "%s = 1x", keys[i].key);
        assert_refused(line, "a number from");
    }
}

static void a_suffix_multiplies_and_a_product_that_does_not_fit_is_refused(void **state) {
    static const char *const refused[] = {"63553351617G", "17179869185G", "17592186044417M", "999999999999K", "1T", "1KK",
                                          "K", "-1K", "1 K", "1000000000000", "18446744073709555712"};
    uint64_t n = 0;
    char line[80];
    size_t i;
    (void)state;
    assert_taken("rcvbuf = 64K");
    assert_taken("rcvbuf = 64k");
    assert_taken("sndbuf = 1M");
    assert_taken("sndbuf = 1G");
    for (i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        snprintf(line, sizeof line, "rcvbuf = %s", refused[i]); /* without a check some of them would be small again */
        assert_refused(line, "a number from 4096 to 1073741824");
    }
    assert_refused("mtu = 1K", "a number from");
    assert_true(cci__udp_number("17179869183G", 1, &n));
    assert_true(n == UINT64_C(17179869183) << 30);
    assert_false(cci__udp_number("17179869184G", 1, &n)); /* 2 to the power of 64 */
    assert_true(cci__udp_number("999999999999", 1, &n));
    assert_true(n == UINT64_C(999999999999));
}

static void words_are_taken_as_they_are_and_others_are_named(void **state) {
    (void)state;
    assert_taken("offload = on");
    assert_taken("offload = off");
    assert_refused("offload = maybe", "on or off");
    assert_taken("progress = poll");
    assert_taken("progress = thread");
    assert_refused("progress = fast", "thread or poll");
    assert_taken("ip = 127.0.0.1");
    assert_refused("ip = 127.0.0.256", "an IPv4 or IPv6 address");
    assert_refused("ip = :::", "an IPv4 or IPv6 address");
    assert_refused("mac = :", "a hardware address");
    assert_refused("mac = 00:11:22:33:44:5g", "a hardware address");
    assert_refused("interface = a-name-that-is-longer-than-any", "the name of an interface");
    assert_taken("congestion = newreno");
    assert_refused("congestion = a-name-that-is-longer-than-any", "a congestion control that cci.h has");
    assert_refused("congestion = oldreno", "a congestion control that cci.h has");
    assert_refused("colour = blue", "no such key");
    assert_refused("ip = 192.0.2.1", "do not name the same interface");
}

static void a_service_is_a_number_or_a_name_that_the_system_knows(void **state) {
    (void)state;
    assert_int_equal(cci__udp_service_port("0"), 0);
    assert_int_equal(cci__udp_service_port("65535"), 65535);
    assert_int_equal(cci__udp_service_port("65536"), -1);
    assert_int_equal(cci__udp_service_port(""), -1);
    assert_int_equal(cci__udp_service_port("7x"), -1);
    assert_int_equal(cci__udp_service_port("no-such-service"), -1);
}

static void an_address_is_another_text_only_if_it_is_another_address(void **state) {
    static const uint8_t v4[4] = {127, 0, 0, 1}, v6[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    cci_link_addr_t addr;
    char text[100];
    (void)state;
    memset(&addr, 0, sizeof addr);
    cci__udp_make_addr(&addr, 4, v4, 4242, 0);
    cci__udp_addr_text(&addr, text, sizeof text);
    assert_string_equal(text, "127.0.0.1:4242");
    cci__udp_make_addr(&addr, 6, v6, 4242, 0);
    cci__udp_addr_text(&addr, text, sizeof text);
    assert_string_equal(text, "[fe80::1]:4242");
    cci__udp_make_addr(&addr, 6, v6, 4242, 4000000000u); /* the interface of this number is not there */
    cci__udp_addr_text(&addr, text, sizeof text);
    assert_string_equal(text, "[fe80::1%4000000000]:4242");
    cci__udp_make_addr(&addr, 6, v6, 0, 4000000000u);
    cci__udp_addr_text(&addr, text, sizeof text);
    assert_string_equal(text, "fe80::1%4000000000");
}

/* Do two addresses count as of one network? Bytes that aren't named are those of `base`. */
static int is_one_network(int family, uint32_t differing_byte, uint16_t other_port, uint32_t scope, uint32_t other_scope) {
    uint8_t base[16] = {0x20, 1, 0xd, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, other[16], prefix[2][16];
    uint32_t length;
    cci_link_addr_t one, two;
    memcpy(other, base, sizeof base);
    if (differing_byte < sizeof other) other[differing_byte] ^= 1;
    memset(&one, 0, sizeof one);
    memset(&two, 0, sizeof two);
    cci__udp_make_addr(&one, family, base, 4242, scope);
    cci__udp_make_addr(&two, family, other, other_port, other_scope);
    memset(prefix, 0, sizeof prefix);
    length = cci__udp_prefix(NULL, &one, prefix[0]);
    assert_in_range(length, 3, 16);
    assert_int_equal(cci__udp_prefix(NULL, &two, prefix[1]), length);
    return memcmp(prefix[0], prefix[1], length) == 0;
}

static void a_source_is_a_network_of_24_bits_of_ipv4_or_64_of_ipv6(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 4; i++) assert_int_equal(is_one_network(4, i, 4242, 0, 0), i >= 3);
    for (i = 0; i < 16; i++) assert_int_equal(is_one_network(6, i, 4242, 0, 0), i >= 8);
    assert_true(is_one_network(4, 99, 4243, 0, 0));
    assert_true(is_one_network(6, 99, 4243, 0, 0));
    assert_false(is_one_network(6, 99, 4242, 1, 2)); /* fe80::1 of two interfaces are two machines */
}

/* What an interface is known by when the system lists these addresses, each by its letter, and the device names one of them. */
static char chosen(const char *listed, char named) {
    cci__udp_interface f;
    cci__udp_device d;
    memset(&f, 0, sizeof f);
    memset(&d, 0, sizeof d);
    d.ip_family = 6;
    d.ip[0] = named == 'l' ? 0xfe : 0x20, d.ip[1] = named == 'l' ? 0x80 : 0x01, d.ip[15] = (uint8_t)named;
    if (named == '-') {
        d.ip_family = 0;
    }
    for (; *listed != '\0'; listed++) {
        cci__udp_sockaddr s;
        memset(&s, 0, sizeof s);
        s.v6.sin6_family = AF_INET6;
        s.v6.sin6_scope_id = (uint32_t)*listed;
        s.v6.sin6_addr.s6_addr[0] = *listed == 'l' ? 0xfe : 0x20;
        s.v6.sin6_addr.s6_addr[1] = *listed == 'l' ? 0x80 : 0x01;
        s.v6.sin6_addr.s6_addr[15] = (uint8_t)*listed;
        cci__udp_add_address(&f, &s.any, &d);
        assert_int_equal(f.has_v6, 1);
        assert_int_equal(f.has_v4, 0);
    }
    assert_int_equal(f.v6_scope, f.v6[15]);
    return (char)f.v6[15];
}

/* a and b are global addresses, l is a link-local one. */
static void the_address_that_the_device_names_wins_then_the_first_global_one(void **state) {
    static const char *const orders[] = {"abl", "alb", "bal", "bla", "lab", "lba"};
    cci__udp_interface f;
    cci__udp_device d;
    size_t i;
    int named;
    (void)state;
    for (i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        char first = orders[i][0] == 'l' ? orders[i][1] : orders[i][0];
        assert_int_equal(chosen(orders[i], '-'), first);
        assert_int_equal(chosen(orders[i], 'x'), first); /* it is another interface's */
        assert_int_equal(chosen(orders[i], 'a'), 'a');
        assert_int_equal(chosen(orders[i], 'b'), 'b');
        assert_int_equal(chosen(orders[i], 'l'), 'l');
    }
    assert_int_equal(chosen("l", '-'), 'l');
    assert_int_equal(chosen("l", 'a'), 'l');
    for (named = 0; named < 4; named++) { /* the same among three of IPv4 */
        memset(&f, 0, sizeof f);
        memset(&d, 0, sizeof d);
        d.ip_family = named > 0 ? 4 : 0;
        d.ip[3] = (uint8_t)named;
        for (i = 1; i <= 3; i++) {
            cci__udp_sockaddr s;
            uint8_t ip[4] = {0, 0, 0, 0};
            ip[3] = (uint8_t)i;
            memset(&s, 0, sizeof s);
            s.v4.sin_family = AF_INET;
            memcpy(&s.v4.sin_addr, ip, 4);
            cci__udp_add_address(&f, &s.any, &d);
        }
        assert_int_equal(f.has_v4, 1);
        assert_int_equal(f.has_v6, 0);
        assert_int_equal(f.v4[3], named > 0 ? named : 1);
    }
}

#ifdef __linux__
static void an_address_on_the_bus_is_read_as_a_whole_or_not_at_all(void **state) {
    static const char *const none[] = {"", "0000:00:1f.6", "0000:00:1f/6", "0000.00:1f.6/", "0000:00:1g.6/", "virtual/", "0000:00"};
    uint32_t pci[4] = {7, 7, 7, 7};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof none / sizeof none[0]; i++) {
        cci__udp_parse_pci(none[i], pci);
        assert_true(pci[0] == 7 && pci[1] == 7 && pci[2] == 7 && pci[3] == 7);
    }
    cci__udp_parse_pci("0001:a2:1f.6/net/eth0", pci);
    assert_true(pci[0] == 1 && pci[1] == 0xa2 && pci[2] == 0x1f && pci[3] == 6);
    cci__udp_parse_pci("12345678:00:00.7/", pci);
    assert_true(pci[0] == 0x12345678 && pci[1] == 0 && pci[2] == 0 && pci[3] == 7);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_and_the_largest_value_of_each_number_are_taken_and_nothing_beyond),
        cmocka_unit_test(a_suffix_multiplies_and_a_product_that_does_not_fit_is_refused),
        cmocka_unit_test(words_are_taken_as_they_are_and_others_are_named),
        cmocka_unit_test(a_service_is_a_number_or_a_name_that_the_system_knows),
        cmocka_unit_test(an_address_is_another_text_only_if_it_is_another_address),
        cmocka_unit_test(a_source_is_a_network_of_24_bits_of_ipv4_or_64_of_ipv6),
        cmocka_unit_test(the_address_that_the_device_names_wins_then_the_first_global_one),
#ifdef __linux__
        cmocka_unit_test(an_address_on_the_bus_is_read_as_a_whole_or_not_at_all),
#endif
    };
    return cmocka_run_group_tests_name("udp", tests, NULL, NULL);
}
