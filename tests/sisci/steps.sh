# SPDX-License-Identifier: MIT OR Unlicense
# steps.sh - SISCI, and CCI over it; run.sh reads this file.

# stub NAME PREFIX SIZE API FLAGS...: a library that stands for an adapter's.
stub() {
    library=$out/stubs/$1
    stub_flags="-fPIC -I. -DSTUB_PREFIX=$2"
    size=-DSTUB_SIZE=$3
    api=-DSTUB_API=\"$4\"
    shift 4
    # shellcheck disable=SC2086
    "$cc" $stub_flags "$size" "$api" "$@" -DSTUB_PART=1 -c -o "$library.1.o" tests/sisci/sisci_stub.c &&
        "$cc" $stub_flags "$size" "$api" "$@" -DSTUB_PART=2 -c -o "$library.2.o" tests/sisci/sisci_stub.c &&
        "$cc" -shared -o "$library.so" "$library.1.o" "$library.2.o" && return
    fail "$library.so does not compile"
}

few() {
    # shellcheck disable=SC2086
    "$cc" -shared -fPIC -I. -DSTUB_PREFIX= -DSTUB_SIZE="$2" -DSTUB_API="\"$3\"" -DSTUB_PART=3 -o "$out/stubs/$1.so" \
        tests/sisci/sisci_stub.c || fail "$1.so does not compile"
}

vendor() {
    mkdir -p "$out/stubs"
    public=_SISCI_PUBLIC_FUNC_
    stub mt1 ${public}MT_ 'unsigned int' 'SISCI API version 1.10.5'
    stub st1 ${public}ST_ 'unsigned int' '1.10'
    stub plain1 '' 'unsigned int' '1.10' -DSTUB_WITHOUT_CONSTANTS
    stub mt2 ${public}MT_ size_t '2.1.0'
    stub mt3 ${public}MT_ size_t '3.0'
    few few1 'unsigned int' '1.9'
    few few2 size_t '2.0'
    few silent size_t 'none'
    echo 'int nothing;' >"$out/empty.c"
    "$cc" -shared -fPIC -o "$out/stubs/empty.so" "$out/empty.c" || fail 'empty.so does not compile'
    build vendor tests/sisci/vendor.c -O1 -ldl && run vendor "$out/stubs"
    # shellcheck disable=SC2086
    works $sanitizers || { skip "$cc has no sanitizers here" && return; }
    # shellcheck disable=SC2086
    build vendor-sanitized tests/sisci/vendor.c -O1 $sanitizers -ldl && run vendor-sanitized "$out/stubs"
}

# Programs written for SISCI compile unchanged with the two lines of tests/sisci/sisci_api.h, each as two processes.
# sisci_programs_with HOW COMPILER FLAGS...
sisci_programs_with() {
    how=$1
    shift
    for program in dma:encoder:camera pio:1:0; do
        binary=$out/sisci_program_${program%%:*}-$how
        # shellcheck disable=SC2086
        "$@" $warnings -I. -DCCI_SISCI_IMPLEMENTATION -o "$binary" "tests/sisci/sisci_program_${program%%:*}.c" -pthread ||
            { fail "sisci_program_${program%%:*}.c does not compile: $*" && continue; }
        sides=${program#*:}
        CCI_SISCI_DIR=$out/names within 120 "$binary" "${sides%:*}" &
        CCI_SISCI_DIR=$out/names check "$binary ${sides#*:}" within 120 "$binary" "${sides#*:}"
        check "$binary ${sides%:*}" wait $!
    done
}
sisci_programs() {
    (umask 077 && mkdir -p "$out/names")
    sisci_programs_with c gcc -std=gnu99 -O2
    has g++ && sisci_programs_with c++ g++ -x c++ -std=gnu++11 -O2
    has clang && sisci_programs_with clang clang -std=c99 -O2
    # shellcheck disable=SC2086
    works $sanitizers && sisci_programs_with sanitized "$cc" -std=gnu11 -g1 -O1 $sanitizers
    # shellcheck disable=SC2012
    check 'a program left a name behind' [ "$(ls "$out/names" | wc -l)" -eq 0 ]
}

# adapter NAME SIZE API FLAGS...: a library of an adapter that works, over shared memory.
adapter() {
    library=$out/$1.so size=$2 api=$3
    shift 3
    [ ! -e "$library" ] || return 0
    "$cc" -std=gnu11 -g -shared -fPIC -I. -DSTUB_PREFIX=_SISCI_PUBLIC_FUNC_MT_ -DSTUB_SIZE="$size" -DSTUB_API="\"$api\"" \
        "$@" -o "$library" tests/sisci/sisci_adapter.c -pthread || fail "$library does not compile"
}

# adapted HOW FLAGS PROGRAM SOURCE ARGUMENTS...: runs a program (built plain, sanitized, raced) over such a library.
adapted() {
    how=$1 flags=$2 program=$3 source=$4
    shift 4
    libraries=-ldl
    # shellcheck disable=SC2086
    adapter "adapter2-$how" size_t 2.1 -O1 $flags
    [ "$program" = conformance ] || set -- "$out/adapter2-$how.so"
    SISCI_LIBRARY=$out/adapter2-$how.so SISCI_ADAPTER=1 "$how" "$program" "$source" "$@"
    libraries=
}

# The other libraries that there may be: of API 1.x, without SCIFlush; with functions and values as in the manual; and one
# through which stores arrive late and in any order.
adapted_others() {
    libraries=-ldl
    adapter adapter1 'unsigned int' 1.10 -O1 -DSTUB_WITHOUT_FLUSH
    adapter adapter-plain size_t 1.10 -O1 -DSTUB_PLAIN
    adapter adapter-posted size_t 2.0 -O1 -DSTUB_POSTED
    plain adapter tests/sisci/adapter.c "$out/adapter1.so"
    plain adapter tests/sisci/adapter.c "$out/adapter-posted.so"
    libraries=
    for part in message fence; do # all of it takes minutes
        SISCI_LIBRARY=$out/adapter-posted.so SISCI_ADAPTER=1 plain conformance tests/conformance/conformance.c sisci-vendor "$part"
    done
    SISCI_LIBRARY=$out/adapter1.so SISCI_ADAPTER=1 plain conformance tests/conformance/conformance.c sisci-vendor
    SISCI_LIBRARY=$out/adapter-plain.so SISCI_ADAPTER=0 plain conformance tests/conformance/conformance.c sisci-vendor
}

sisci_steps() {
    unit_tests sisci
    for unit in test_sisci test_sisci_deaths test_sisci_succession test_sisci_memory test_sisci_links; do
        step "$unit-threadless" threadless "$unit" "tests/sisci/$unit.c"
        step "$unit-raced" raced "$unit" "tests/sisci/$unit.c"
    done
    step sisci-programs sisci_programs
    step vendor vendor
    step adapter adapted plain '' adapter tests/sisci/adapter.c
    step adapter-sanitized adapted sanitized "$sanitizers" adapter tests/sisci/adapter.c
    step adapter-raced adapted raced -fsanitize=thread adapter tests/sisci/adapter.c
    step adapter-others adapted_others
}
