# SPDX-License-Identifier: MIT OR Unlicense
# verbs.sh - tests of RDMA in virtual machines; run.sh reads this file and brings build, tally, check, pass, fail and skip.
#
# Starting a machine takes seconds, so one does many jobs, one after the other, in the background. Each step waits for the end
# of its own job and counts what that counted. Two machines share the work: tests that break devices have one to themselves. A
# third has another processor.

guest=$out/guest
guest_state= # '', 'runs', or why there is none

# What the machines do, a line each: machine, job, the most seconds that it may take, command. The step is verbs-JOB. The
# tests of failures are built with the sanitizers, where there are some: that is where what is seldom used runs. The
# processors are emulated, so a conformance suite takes minutes: of those that run whole over arrays, the machines run
# what depends on the driver (auto) or the processor (arm64). CCI_VM_WHOLE=1 runs all of all, CCI_VM_SHORT=1 less:
# README.md has the minutes.
guest_all_jobs() {
    joins=connect manual="'[4.'"
    [ -z "${CCI_VM_WHOLE:-}" ] || joins='' manual=''
    cat <<END
whole info 60 ./cci_info
whole doca 600 ./doca verbs
whole conformance-rc 1200 ./conformance verbs
whole conformance-ud 1200 ./conformance verbs-ud
whole conformance-auto 1200 ./conformance verbs-auto $joins
whole conformance-auto-ud 1200 ./conformance verbs-auto-ud $joins
broken rc 1200 ./verbs rc
broken ud 1200 ./verbs ud
arm64 conformance-arm64 1200 ./conformance-arm64 verbs $manual
END
}
guest_jobs() {
    if [ -n "${CCI_VM_SHORT:-}" ]; then guest_all_jobs | grep -E '^whole (info|conformance-rc|conformance-ud|conformance-auto-ud) '; else guest_all_jobs; fi
}

# The script that a machine runs: each job in its turn, its output and then its status go to the host.
write_jobs() {
    cat >"$guest/$1/files/jobs" <<'END'
export CMOCKA_MESSAGE_OUTPUT=STDOUT ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
logs=${TMPDIR:-/tmp}
job() {
    name=$1 seconds=$2
    shift 2
    [ ! -f "/out/$name.status" ] || return 0 # it ended before the kernel crashed
    timeout -k 10 "$seconds" "$@" >"$logs/$name.out" 2>"$logs/$name.err"
    status=$?
    cp "$logs/$name.out" "$logs/$name.err" /out/
    read -r up _ </proc/uptime
    echo "$name ended with $status, $up s after the start"
    echo "$status" >"/out/$name.new"
    mv "/out/$name.new" "/out/$name.status"
}
resources=$(rdma res show)
END
    [ -n "${CCI_VM_WHOLE:-}" ] || echo 'export CONFORMANCE_BRIEF=1' >>"$guest/$1/files/jobs"
    guest_jobs | while read -r machine name seconds text; do
        case $machine-verbs-$name in "$1"-*"$only"*) echo "job $name $seconds $text" ;; esac
    done >>"$guest/$1/files/jobs"
    cat >>"$guest/$1/files/jobs" <<'END'
# What tests leave behind, and what the kernel has to say of them.
left=$(rdma res show | grep -v rxe2)
[ "$left" = "$resources" ] || echo "FAIL: left behind are $left, at first there were $resources"
dmesg | grep WARNING # the driver's own
! dmesg | grep -E 'BUG|Oops|blocked for more' || echo 'FAIL: the kernel complains'
END
}

# guest_program NAME: builds it. What can't be built is counted as a failure, or has no sanitizers here.
guest_program() {
    # shellcheck disable=SC2086 # a list of words
    case $1 in
    cci_info) make -s CC="$cc" build/cci_info && cp build/cci_info "$run_programs/" || fail 'cci_info does not compile' ;;
    verbs) works $sanitizers && build verbs tests/verbs/verbs.c -O1 $sanitizers || build verbs tests/verbs/verbs.c -O2 ;;
    *-arm64)
        aarch64-linux-gnu-gcc --sysroot="${CCI_VM_CACHE:-$PWD/build/vm}/arm64/root" -std=gnu11 -O1 -I. -o "$run_programs/$1" \
            tests/*/"${1%-arm64}.c" -lcmocka -pthread || fail "${1%-arm64} does not compile for arm64"
        ;;
    *) build "$1" tests/*/"$1.c" -O2 ;;
    esac
}

# guest_prepare MACHINE: its packages, its jobs and what they need; libraries come along by themselves. Where that can't be,
# the file `reason` says why.
guest_prepare() {
    place=$guest/$1 architecture=amd64
    mkdir -p "$place/files" "$place/out"
    write_jobs "$1"
    programs=$(sed -n 's|^job .* \./\([a-z0-9_-]*\).*|\1|p' "$place/files/jobs" | sort -u)
    [ -n "$programs" ] || return
    if [ "$1" = arm64 ]; then
        has aarch64-linux-gnu-gcc || { echo 'there is no aarch64-linux-gnu-gcc' >"$place/reason" && return; }
        architecture=arm64
    fi
    sh tests/verbs/vm/fetch.sh $architecture >"$place/fetch" 2>&1 || {
        cat "$place/fetch"
        tail -n 1 "$place/fetch" >"$place/reason"
        return
    }
    for program in $programs; do
        guest_program "$program"
        [ ! -f "$run_programs/$program" ] || cp "$run_programs/$program" "$place/files/"
    done
    echo $architecture >"$place/architecture"
}

# guest_run: does the jobs that have not ended yet.
guest_run() {
    sh tests/verbs/vm/boot.sh -a "$(cat "$place/architecture")" -m 1024 -t 3000 -o "$place/out" "$place/files" \
        'exec sh jobs' >"$place/log" 2>&1 &
    echo $! >"$place/process"
    wait $!
}

# guest_boot MACHINE...: one after the other. The kernel's RDMA driver has been seen to crash: then once more.
guest_boot() {
    for machine in "$@"; do
        place=$guest/$machine
        [ -f "$place/architecture" ] && [ "$(seconds_left)" -gt 0 ] || continue
        guest_run
        ended=$?
        if [ "$ended" -eq 125 ] && grep -q 'RIP: .*rdma_rxe' "$place/log" && [ "$(seconds_left)" -gt 0 ]; then
            mv "$place/log" "$place/crashed"
            guest_run
            ended=$?
        fi
        echo "$ended" >"$place/ended"
    done
}

# Starts the machines at the first step that needs one, two at a time.
guest_start() {
    [ -z "$guest_state" ] || return
    rm -rf "$guest"
    mkdir -p "$guest"
    echo '#include <infiniband/verbs.h>' | "$cc" -fsyntax-only -x c - 2>/dev/null ||
        { guest_state='there is no header of libibverbs' && return; }
    guest_state=runs guest_began=$(date +%s)
    trap 'cat "$guest"/*/process | xargs kill 2>/dev/null; exit 1' HUP INT TERM
    guest_prepare whole
    guest_boot whole &
    guest_prepare broken
    guest_prepare arm64
    guest_boot broken arm64 &
}

# guest_job JOB: waits for its end. Returns 1 when there is none, which it has counted.
guest_job() {
    guest_jobs | grep -q " $1 " || { skip "CCI_VM_SHORT leaves $1 out" && return 1; }
    guest_start
    [ "$guest_state" = runs ] || { skip "$guest_state" && return 1; }
    place=$guest/$(guest_jobs | sed -n "s/^\([a-z0-9]*\) $1 .*/\1/p")
    [ ! -f "$place/reason" ] || { skip "$(cat "$place/reason")" && return 1; }
    said=$place/out/$1
    until [ -f "$said.status" ]; do
        if [ -f "$place/ended" ] && [ ! -f "$said.status" ]; then
            cat "$place/log"
            fail "the virtual machine ended before $1 had"
            return 1
        fi
        [ "$(seconds_left)" -gt -60 ] || { fail "$1 in the virtual machine takes longer than the whole run may" && return 1; }
        sleep 0.2
    done
    status=$(cat "$said.status")
}

# The steps. A program of tests that isn't there has no sanitizers here, or its not compiling has been counted.
guest_tests() {
    guest_job "$1" || return
    [ "$status" -ne 127 ] || { skip "$cc has no sanitizers here" && return; }
    tally "$1 in the virtual machine"
}
guest_info() {
    guest_job info || return
    cat "$said.out" "$said.err"
    check 'cci_info failed' [ "$status" -eq 0 ]
    for port in rxe0 rxe1; do check "cci_info does not show $port" grep -q "^ *[0-9]*\. $port  (up" "$said.out"; done
}
# Ends the machines that still run.
guest_abandon() {
    [ "$guest_state" != runs ] || cat "$guest"/*/process 2>/dev/null | xargs kill 2>/dev/null
}
guest_end() {
    [ "$guest_state" = runs ] || { skip "${guest_state:-nothing else was asked of the machines}" && return; }
    [ "$(seconds_left)" -gt 0 ] || guest_abandon
    wait
    echo "what the machines did took $((($(date +%s) - guest_began + 59) / 60)) minutes, with what was fetched for them"
    for place in "$guest"/*; do
        [ -f "$place/ended" ] || continue
        if [ -f "$place/crashed" ]; then
            cat "$place/crashed"
            skip 'the RDMA driver of the kernel crashed, and the machine was started again'
        fi
        cat "$place/log"
        check "the machine in $place ended with status $(cat "$place/ended")" [ "$(cat "$place/ended")" -eq 0 ]
        check 'something is left behind, or the kernel complains' sh -c '! grep "^FAIL" "$1"' - "$place/log"
    done
}
