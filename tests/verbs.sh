# SPDX-License-Identifier: MIT OR Unlicense
# verbs.sh - tests of RDMA in a virtual machine; run.sh reads this file and brings build, tally, check, pass, fail and skip.
#
# Starting the machine takes seconds, so one does all that is asked for, in the background, job after job. Each step waits for
# the end of its own job and counts what that counted. The machine's folder for what comes back is build/tests/guest/out.

guest=$out/guest
guest_state= # '', 'runs', or why there is none

# job NAME SECONDS COMMAND...: something for the machine to do, if its step is asked for.
job() {
    case verbs-$1 in *"$only"*) ;; *) return ;; esac
    printf '%s\n' "$1" >>"$guest/names"
    job_seconds=$2
    guest_seconds=$((guest_seconds + job_seconds))
    echo "job $*" >>"$guest/files/jobs"
}

# What the machine does: each job in its turn, its output and then its status go to the host.
write_jobs() {
    mkdir -p "$guest/files" "$guest/out" || return
    guest_seconds=180
    cat >"$guest/files/jobs" <<'END'
export CMOCKA_MESSAGE_OUTPUT=STDOUT ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
job() {
    name=$1 seconds=$2
    shift 2
    wire
    timeout -k 10 "$seconds" "$@" >"/tmp/$name.out" 2>"/tmp/$name.err"
    status=$?
    cp "/tmp/$name.out" "/tmp/$name.err" /out/
    read -r up _ </proc/uptime
    echo "$name ended with $status, $up s after the start"
    echo "$status" >"/out/$name.new"
    mv "/out/$name.new" "/out/$name.status"
}
rdma res show >/tmp/resources
END
    job info 60 ./cci_info
    job rc 300 ./verbs rc
    job ud 300 ./verbs ud
    job conformance-rc 600 ./conformance verbs
    job conformance-ud 600 ./conformance verbs-ud
    job rc-sanitized 600 ./verbs-sanitized rc
    job ud-sanitized 600 ./verbs-sanitized ud
    job conformance-rc-sanitized 900 ./conformance-sanitized verbs
    job conformance-ud-sanitized 900 ./conformance-sanitized verbs-ud
    cat >>"$guest/files/jobs" <<'END'
# What tests leave behind, and what the kernel has to say of them.
rdma res show | diff /tmp/resources - || echo 'FAIL: resources of the kernel are left behind'
dmesg | grep -E 'BUG|WARNING|Oops|Call Trace|hung task|rdma_rxe.*(fail|error)' && echo 'FAIL: the kernel complains'
END
}

# The programs go to the machine with the libraries that they need.
guest_programs() {
    while read -r _ _ _ program _; do
        program=${program#./}
        case $program in
        cci_info)
            make -s CC="$cc" build/cci_info && cp build/cci_info "$guest/files/" || fail 'cci_info does not compile'
            continue
            ;;
        *-sanitized)
            # shellcheck disable=SC2086
            works $sanitizers || continue
            # shellcheck disable=SC2086
            build "$program" "tests/${program%-sanitized}.c" -O1 $sanitizers || continue
            ;;
        *) build "$program" "tests/$program.c" -O2 || continue ;;
        esac
        cp "$out/$program" "$guest/files/"
    done <<END
$(grep '^job [a-z]' "$guest/files/jobs")
END
}

# Starts the machine at the first step that needs it.
guest_start() {
    [ -z "$guest_state" ] || return
    rm -rf "$guest"
    write_jobs
    echo '#include <infiniband/verbs.h>' | "$cc" -fsyntax-only -x c - 2>/dev/null ||
        { guest_state='there is no header of libibverbs' && return; }
    sh tests/vm/fetch.sh >"$guest/fetch.log" 2>&1 || {
        cat "$guest/fetch.log"
        guest_state=$(tail -n 1 "$guest/fetch.log")
        return
    }
    guest_programs
    sh tests/vm/boot.sh -m 1024 -t "$guest_seconds" -o "$guest/out" "$guest/files" 'exec sh jobs' >"$guest/log" 2>&1 &
    guest_process=$!
    guest_state=runs
}

await_job() {
    until [ -f "$binary.status" ]; do
        if ! kill -0 "$guest_process" 2>/dev/null && [ ! -f "$binary.status" ]; then
            cat "$guest/log"
            fail "the virtual machine ended before $1 had"
            return 1
        fi
        sleep 0.2
    done
}

# A step: the job's result, once it is there or the machine has ended without it.
guest_job() {
    guest_start
    case $guest_state in runs) ;; *) skip "$guest_state" && return ;; esac
    binary=$guest/out/$1
    await_job "$1" || return
    status=$(cat "$binary.status")
    tally "$1 in the virtual machine"
}
# The devices that cci_info sees.
guest_info() {
    guest_start
    case $guest_state in runs) ;; *) skip "$guest_state" && return ;; esac
    binary=$guest/out/info
    await_job info || return
    cat "$binary.out" "$binary.err"
    check 'cci_info failed' [ "$(cat "$binary.status")" -eq 0 ]
    for port in rxe0 rxe1; do check "cci_info does not show $port" grep -q "^ *[0-9]*\. $port  (up)" "$binary.out"; done
}

# The end of the machine, and what it says of all jobs together.
guest_end() {
    case $guest_state in runs) ;; *) skip "${guest_state:-nothing else was asked of the machine}" && return ;; esac
    wait "$guest_process"
    status=$?
    cat "$guest/log"
    check "the virtual machine ended with status $status" [ "$status" -eq 0 ]
    check 'something is left behind, or the kernel complains' sh -c '! grep "^FAIL" "$1"' - "$guest/log"
}
