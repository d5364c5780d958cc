# SPDX-License-Identifier: MIT OR Unlicense
# Nothing has to be built to use the library: copy cci.h and cci_udp.h. This file builds the examples, runs the tests and
# makes packages.
.NOTPARALLEL:
.PHONY: help examples demo deps test check soak mutants bench bench-verbs plots fuzz fuzz-afl fuzz-sisci coverage analyze prove firmware firmware-test \
	lib install uninstall dist clean

CC = cc
CFLAGS = -O2
FUZZ_TARGETS = live handshake rma config uri card
FUZZ_SECONDS = 60
EXAMPLES = hello readme pingpong rma chat requests publish transfer why cci_info cci_perf cci_cp sisci own_link dpu_channel
# What needs Linux, libsodium or libuv is built where these are: all else needs a C compiler alone. No compiler is told to
# write to /dev/null: tcc unlinks what it writes to, and root may.
EPOLL = $(shell uname -s | sed -n 's/^Linux$$/epoll_loop/p')
# $(call links,EXPRESSION,HEADER,LIBRARY,NAME): NAME, if a program with the library's header links.
links = $(shell mkdir -p build; echo 'int main(void) { return $(1); }' | $(CC) $(CPPFLAGS) $(LDFLAGS) -include $(2) \
	-x c -o build/probe.$$$$ - $(3) 2>/dev/null && echo $(4); rm -f build/probe.$$$$)
SODIUM = $(call links,sodium_init() < 0,sodium.h,-lsodium,secure)
UV = $(call links,!uv_version(),uv.h,-luv,uv_loop)

help:
	@echo 'make demo       two processes talk, write into each other'\''s memory and copy a file (needs a C compiler only)'
	@echo 'make examples   build all examples into build/'
	@echo 'make deps       install what the tests need (Debian, Ubuntu)'
	@echo 'make test       run all tests; sh tests/run.sh -k WORD runs those whose name contains WORD'
	@echo 'make check      the quick ones of them, while working'
	@echo 'make soak       many endpoints on a bad simulated network, SECONDS_TO_RUN=600 of them; a failure prints how to replay it;'
	@echo '                before it, processes that are killed and stopped while they talk over sisci://'
	@echo 'make mutants    small deliberate bugs in a copy of cci.h, each of which the soak test must find; then RANDOM_MUTANTS=10'
	@echo '                random changes of each header, RANDOM_SEED=1, and which of them no test notices; an hour'
	@echo 'make bench      measure side by side with raw sockets'
	@echo 'make bench-verbs  measure RDMA side by side with perftest, in a virtual machine'
	@echo 'make plots      draw how well bad networks are used: goodput, latency and shares (simulated)'
	@echo 'make fuzz       fuzz every parser for FUZZ_SECONDS (60) each with libFuzzer; make fuzz-afl: with AFL++;'
	@echo '                make fuzz-sisci: what lies in shared memory, ROUNDS=5000 of attacks of each kind'
	@echo 'make coverage   lines and branches of cci.h that all tests together reach'
	@echo 'make analyze    gcc'\''s analyzer, cppcheck, clang-tidy, shellcheck and pyflakes: no open finding; minutes'
	@echo 'make prove      what reads packets stays inside them, proven with CBMC; minutes'
	@echo 'make firmware   the example of a small machine, examples/firmware, at a serial line and at Ethernet, with arm-none-eabi-gcc;'
	@echo '                make firmware-test: in an emulator, QEMU, and an ordinary program talks to it'
	@echo 'make install    headers, tools, man pages, shared library, files for pkg-config and CMake: below PREFIX=/usr/local,'
	@echo '                or DESTDIR and PREFIX; make uninstall takes them away again'
	@echo 'make lib        the shared library alone, build/libcci.so, which exports the public API and nothing else'
	@echo 'make dist       archive, checksum, bill of materials (SPDX) and recipes in build/dist/; URL= says where it will lie'
	@echo 'make clean      remove build/'

examples: $(EXAMPLES:%=build/%)
	@for each in $(EPOLL) $(SODIUM) $(UV); do $(MAKE) --no-print-directory "build/$$each" || exit; done

demo: build/hello build/rma build/cci_perf build/cci_cp
	@sh tests/tools/demo.sh build

deps:
	@sh tests/support/deps.sh

test:
	@sh tests/run.sh

check:
	@sh tests/run.sh -q

SECONDS_TO_RUN = 600
SOAK_SEED = $$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')
soak: build/soak build/soak_sisci
	build/soak_sisci --first $(SOAK_SEED) --seconds $$(($(SECONDS_TO_RUN) / 5))
	build/soak --first $(SOAK_SEED) --seconds $(SECONDS_TO_RUN)

RANDOM_MUTANTS = 10
RANDOM_SEED = 1
mutants:
	@sh tests/tools/mutants.sh
	@for each in cci_udp.h cci_verbs.h cci_sisci.h cci.h; do \
		python3 tests/tools/random_mutants.py -n $(RANDOM_MUTANTS) -s $(RANDOM_SEED) "$$each" || exit; done

bench:
	@sh tests/bench/bench.sh

bench-verbs:
	@sh tests/bench/bench_verbs.sh

plots:
	@sh tests/bench/netplot.sh

fuzz:
	@sh tests/fuzz/fuzz.sh libfuzzer $(FUZZ_SECONDS) $(FUZZ_TARGETS)

fuzz-afl:
	@sh tests/fuzz/fuzz.sh afl $(FUZZ_SECONDS) $(FUZZ_TARGETS)

ROUNDS = 5000
fuzz-sisci: | build
	$(CC) $(CPPFLAGS) -std=gnu11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -I. $(LDFLAGS) \
		-o build/fuzz_sisci tests/sisci/test_sisci_hostile.c -lcmocka -pthread
	build/fuzz_sisci --first $(SOAK_SEED) --rounds $(ROUNDS)

coverage:
	@sh tests/tools/coverage.sh

analyze:
	@sh tests/tools/analyze.sh

prove:
	@sh tests/prove/prove.sh

FIRMWARE_CC = arm-none-eabi-gcc
FIRMWARE_CFLAGS = -mcpu=cortex-m3 -mthumb -Os -std=gnu99 -DNDEBUG -Wall -Wextra -ffunction-sections -fdata-sections -ffreestanding
FIRMWARE = build/firmware.elf build/firmware-small.elf build/firmware-ethernet.elf build/firmware-ethernet-m4.elf \
	build/firmware-m33.elf
firmware: $(FIRMWARE) build/firmware-host

build/firmware-small.elf: FIRMWARE_BOARD = -DBOARD_SMALL
build/firmware-ethernet.elf: FIRMWARE_BOARD = -DBOARD_ETHERNET
build/firmware-ethernet-m4.elf: FIRMWARE_BOARD = -DBOARD_ETHERNET -mcpu=cortex-m4
build/firmware-m33.elf: FIRMWARE_BOARD = -DBOARD_M33 -mcpu=cortex-m33 -Wl,--defsym=flash_begin=0x10000000,--defsym=ram_begin=0x38000000
$(FIRMWARE): examples/firmware/firmware.c $(wildcard examples/firmware/*.h) examples/firmware/firmware.ld cci.h | build
	$(FIRMWARE_CC) $(FIRMWARE_CFLAGS) $(FIRMWARE_BOARD) -nostartfiles -Wl,--gc-sections -T examples/firmware/firmware.ld -I. -o $@ $<

build/firmware-host: examples/firmware/host.c examples/firmware/board.h examples/firmware/slip.h cci.h cci_udp.h | build
	$(CC) $(CFLAGS) $(CPPFLAGS) -I. $(LDFLAGS) -o $@ $< -pthread $(LDLIBS)

firmware-test:
	@sh tests/run.sh -k firmware

PREFIX = /usr/local
BINDIR = $(PREFIX)/bin
INCLUDEDIR = $(PREFIX)/include
LIBDIR = $(PREFIX)/lib
MANDIR = $(PREFIX)/share/man
DOCDIR = $(PREFIX)/share/doc/cci
PACKAGE = CC='$(CC)' CPPFLAGS='$(CPPFLAGS)' CFLAGS='$(CFLAGS)' LDFLAGS='$(LDFLAGS)' LDLIBS='$(LDLIBS)' \
	DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' BINDIR='$(BINDIR)' INCLUDEDIR='$(INCLUDEDIR)' LIBDIR='$(LIBDIR)' \
	MANDIR='$(MANDIR)' DOCDIR='$(DOCDIR)' URL='$(URL)' sh .github/packaging/package.sh

lib: build/libcci.so

install: build/cci_info build/cci_perf build/cci_cp build/libcci.so
	@$(PACKAGE) install

uninstall:
	@$(PACKAGE) uninstall

dist:
	@$(PACKAGE) dist

clean:
	rm -rf build examples/__pycache__

build:
	mkdir -p build

build/secure: LDLIBS += -lsodium

build/uv_loop: LDLIBS += -luv

build/sisci: cci_sisci.h

build/dpu_channel: examples/doca_comm_channel.h

build/libcci.so: .github/packaging/libcci.c cci.h cci_udp.h cci_sisci.h cci_verbs.h | build
	@$(PACKAGE) lib

build/soak: tests/soak/soak.c tests/soak/soak_hooks.h tests/soak/soak_model.h tests/soak/soak_net.h tests/soak/soak_step.h tests/support/sim.h tests/support/seal.h tests/support/pcap.h cci.h | build
	$(CC) $(CFLAGS) $(CPPFLAGS) -g -I. $(LDFLAGS) -o $@ tests/soak/soak.c $(LDLIBS)

build/soak_sisci: tests/soak/soak_sisci.c cci_sisci.h cci.h | build
	$(CC) $(CFLAGS) $(CPPFLAGS) -g -I. $(LDFLAGS) -o $@ tests/soak/soak_sisci.c -pthread $(LDLIBS)

build/%: examples/%.c cci.h cci_udp.h cci_sisci.h cci_verbs.h | build
	$(CC) $(CFLAGS) $(CPPFLAGS) -I. $(LDFLAGS) -o $@ $< -pthread $(LDLIBS)
