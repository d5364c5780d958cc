# SPDX-License-Identifier: MIT OR Unlicense
# steps.sh - everything at once, decided by a seed; run.sh reads this file.

# The soak test: the same seeds each time, fresh ones, and some of both with sanitizers. A failing seed prints the command that
# replays it.
soak() {
    check 'the soak test does not compile' make -s CC="$cc" CFLAGS=-O2 build/soak
    [ -x build/soak ] || return
    check 'the known seeds' within 900 build/soak --first 1 --seeds 80 --every-fault
    # Crowds at a memory limit of 64 KiB or less whose members change their addresses; small writes behind refusals and gaps; a
    # TAKEN that names one item twice; closing on a slow path; few readers for many connections; messages behind a withdrawal
    # that an answer acknowledges; few buffers, all held behind what is due; a lost write beside refused messages; a read
    # whose message was withdrawn before it was done; the repeat of what is due lost behind a hundred messages that are refused;
    # two sides that follow each other from path to path, once more while one reads (0xf4, 0x16f); a peer without memory for the
    # addresses that it is told; five hundred connections that search for a path at once; a packet's number changed unnoticed, so
    # that answers acknowledge what was never sent (0x5001092, too); a short time-out behind a fence that waits long; a peer that
    # dies after refusals; silent writes that were given up before a fence (0x500121a, 0x77000704); an answer to half a run behind
    # reads; a list that waits for its turn behind a thousand others; a write that goes before the messages that wait
    # for it.
    for seed in 968 2466 3046803309586 7000014 7000056 17000647 0x48715aaf3a4b 0xdbe30 0xdc119 0x1e872a \
        0x6e61eeffb4aa 0x18829 0x18745 0x18c95 0xf4 0x16f 0x1620 0x2a8115901c9a 0x5000280 0x500043f 0x5001092 \
        0x500121a 0x77000704 0x77001541 0x77001739 0x8800100b 0x880011e4; do
        check "seed $seed" within 300 build/soak --seed $seed
    done
    fresh=$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')
    echo "fresh seeds from $fresh on"
    check "the fresh seeds from $fresh on" within 900 build/soak --first "$fresh" --seconds 12
    # shellcheck disable=SC2086
    works $sanitizers || { skip "$cc has no sanitizers here" && return; }
    # shellcheck disable=SC2086
    counting='-fsanitize-coverage=trace-pc -DSOAK_COUNTS_WORK' # see tests/soak/soak_net.h
    # shellcheck disable=SC2086
    works $sanitizers $counting || counting=
    # shellcheck disable=SC2086
    check 'the soak test does not compile with sanitizers' "$cc" -std=gnu11 -g1 -O1 $sanitizers $counting -I. \
        -o "$out/soak-sanitized" tests/soak/soak.c
    check "seeds from $fresh on, sanitized" within 900 "$out/soak-sanitized" --first "$fresh" --seconds 18
}

# Processes that are killed, stopped and replaced while they talk. A failing round prints its seed.
soak_sisci() {
    check 'the soak test does not compile' make -s CC="$cc" CFLAGS=-O2 build/soak_sisci
    [ -x build/soak_sisci ] || return
    fresh=$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')
    check 'the known seeds' within 600 build/soak_sisci --first 1 --rounds 3
    check "the fresh seeds from $fresh on" within 600 build/soak_sisci --first "$fresh" --seconds 8
    for kind in "$sanitizers" -fsanitize=thread; do
        # shellcheck disable=SC2086
        works $kind || { skip "$cc has no $kind here" && continue; }
        # shellcheck disable=SC2086
        check "it does not compile with $kind" "$cc" -std=gnu11 -g1 -O1 $kind -I. -o "$out/soak_sisci" tests/soak/soak_sisci.c -pthread
        check "seeds from $fresh on, $kind" within 600 "$out/soak_sisci" --first "$fresh" --seconds 6
    done
}

# The smallest engine (CCI_TINY), with and without RMA, against the full one and the same with small tables (CCI_SMALL). A failing seed is printed. soak_tiny [32].
soak_tiny() {
    compiler_of "${1:-}" || return
    mkdir -p "$out/soak_tiny${1:-}"
    for profile in full tiny bare small; do
        macros_of $profile
        # shellcheck disable=SC2086
        $compiler -std=gnu11 $flags -I. "-DSIDE=${profile}_profile" "-DPROFILE=\"$profile\"" $macros -c \
            -o "$out/soak_tiny${1:-}/$profile.o" tests/soak/soak_tiny_end.c || { fail "soak_tiny_end.c does not compile: $macros" && return; }
    done
    # shellcheck disable=SC2086
    $compiler -std=gnu11 $flags -I. -o "$out/soak_tiny${1:-}/soak_tiny" tests/soak/soak_tiny.c "$out/soak_tiny${1:-}"/*.o ||
        { fail 'soak_tiny.c does not compile' && return; }
    check 'the known seeds' within 600 "$out/soak_tiny${1:-}/soak_tiny" --first 1 --seeds 250
    check 'messages behind a write when a connection ends' within 600 "$out/soak_tiny${1:-}/soak_tiny" --first 1018 --seeds 1
}

# The soak tests find small deliberate bugs: seven of them here, all by `make mutants`.
mutants() {
    within 900 sh tests/tools/mutants.sh 'no check for duplicates' 'acknowledged though refused' 'beyond the end' 'no probe timer' 'used twice' \
        'hear of a fork' 'goes on listening'
    check 'a mutant survived, or applies no more' [ $? -eq 0 ]
}

soak_steps() {
    step soak soak
    step soak-capture soak_capture
    step soak-sisci soak_sisci
    step soak-tiny soak_tiny
    step soak-tiny-32 soak_tiny 32
    step mutants mutants
}
