#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# prove.sh [--quick | -k WORD] - proves with CBMC that what reads packets stays inside them: tests/prove/prove_*.c say what exactly.
# prove.sh --install - fetches CBMC into the folder $CBMC (default build/cbmc), without touching the system.
#
# A proof is a function of a harness. With "loop" its loops are cut by contracts (the harness holds their invariants, under
# the names that CCI__LOOP gives in cci.h), so that it holds for packets of any length up to 1,500 bytes; otherwise all
# loops are unrolled completely, and that this was enough is checked too. What a proof replaces by a stand-in is proven on
# its own. Afterwards small mistakes are made in a copy of cci.h, and the proofs must find each of them. --quick leaves out
# the proofs that take longer than all others together; `make test` runs it so, `make prove` runs everything.
set -u
cd "$(dirname "$0")/../.." || exit 1
folder=${CBMC:-build/cbmc}
out=build/prove
limit_s=${PROVE_LIMIT_S:-900} # of processor time, for one proof

# ---- the tool ---------------------------------------------------------------------------------------------------------

# The packages of Debian 13, by the mirror of this machine's own apt, unpacked into a folder; nothing is installed.
install() {
    for command in apt-get dpkg-deb; do
        command -v "$command" >/dev/null || { echo "prove: there is no $command: install cbmc 6 by other means" >&2 && exit 1; }
    done
    # shellcheck disable=SC2016 # apt's own variable
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
    [ -n "$mirror" ] || { echo 'prove: apt knows no Debian mirror' >&2 && exit 1; }
    mkdir -p "$folder/apt/sources" "$folder/apt/state/lists/partial" "$folder/apt/cache/archives/partial" "$folder/deb"
    folder=$(cd "$folder" && pwd)
    : >"$folder/apt/status"
    printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: %s\n' "$mirror" \
        /usr/share/keyrings/debian-archive-keyring.gpg >"$folder/apt/sources/trixie.sources"
    set -- -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$folder/apt/sources" \
        -o Dir::Etc::preferencesparts=/dev/null -o Dir::State="$folder/apt/state" \
        -o Dir::State::status="$folder/apt/status" -o Dir::Cache="$folder/apt/cache" -o APT::Sandbox::User=root
    apt-get "$@" update && cd "$folder/deb" &&
        apt-get "$@" download cbmc minisat libc6 libgcc-s1 libstdc++6 zlib1g || exit 1
    for package in *.deb; do dpkg-deb -x "$package" "$folder/root" || exit 1; done
    rm -rf "$folder/apt" "$folder/deb"
    du -sh "$folder"
}

# Runs a program of the tool: the system's, or the one in the folder with the libraries there.
tool() {
    program=$1
    shift
    if [ -x "$folder/root/usr/bin/cbmc" ]; then
        loader=$(find "$folder/root/usr" -name 'ld-linux*' | head -n 1)
        libraries=$folder/root/usr/lib:$(dirname "$(find "$folder/root/usr/lib" -name 'libstdc++.so.6' | head -n 1)")
        "$loader" --library-path "$libraries" "$folder/root/usr/bin/$program" "$@"
    else
        "$program" "$@"
    fi
}

# ---- proofs -----------------------------------------------------------------------------------------------------------

# With whole paths, since a name without one would be looked up among the system's programs.
found=
[ -x "$folder/root/usr/bin/cbmc" ] && found=folder
command -v cbmc >/dev/null && found=system

checks='--bounds-check --pointer-check --pointer-overflow-check --signed-overflow-check --undefined-shift-check
        --div-by-zero-check --slice-formula --unwinding-assertions'

# solve HEADERS HARNESS MODE UNWIND PROOF STAND-INS...: leaves the outcome in $out/PROOF.txt; succeeds if it is proven.
solve() {
    headers=$1 harness=$2 mode=$3 unwind=$4 proof=$5
    shift 5
    base=$out/$proof
    swaps=
    for pair in "$@"; do swaps="$swaps --replace-calls $pair"; done
    contracts=--drop-unused-functions
    [ "$mode" = loop ] && contracts="--dfcc prove_$proof --apply-loop-contracts"
    # shellcheck disable=SC2086 # lists of words
    tool goto-cc -I"$headers" -I. -o "$base.0" "tests/prove/$harness.c" --function "prove_$proof" >"$base.log" 2>&1 &&
        tool goto-instrument ${swaps:---drop-unused-functions} "$base.0" "$base.1" >>"$base.log" 2>&1 &&
        tool goto-instrument $contracts "$base.1" "$base.2" >>"$base.log" 2>&1 || return 2
    # shellcheck disable=SC2086
    # shellcheck disable=SC3045 # POSIX has no -t, every shell has
    (ulimit -t "$limit_s" && tool cbmc "$base.2" $checks $until --unwind "$unwind") >"$base.txt" 2>&1
}

ranges='cci__ranges_test:prove_given_test cci__ranges_fit:prove_given_fit cci__ranges_add:prove_given_add'
part='cci__rel_reassembly:prove_given_part cci__rel_fill:prove_given_fill'

# all FUNCTION: calls it for each proof with its line of the table.
all() {
    "$1" prove_wire all 4 header
    "$1" prove_wire all 4 request
    "$1" prove_wire all 4 accept
    "$1" prove_wire all 4 read
    "$1" prove_wire all 4 data cci_rma_address:prove_given_address cci__rma_fail:prove_given_fail \
        cci__rma_arrived:prove_given_arrived cci__rma_free_chunk:prove_given_freed \
        cci__rma_again:prove_given_again cci__rma_finish:prove_given_finish
    "$1" prove_base loop 4 ranges_memory
    "$1" prove_base all 4 ranges_union
    "$1" prove_rel all 4 check
    "$1" prove_rel loop 4 scan cci__rel_in_run:prove_in_run
    # shellcheck disable=SC2086
    "$1" prove_rel loop 4 input $ranges cci__rel_scan:prove_given_scan \
        cci__rel_check_for:prove_given_check cci__rel_input_ack:prove_given_ack \
        cci__rel_input_bulk:prove_given_bulk cci__rel_input_fragment:prove_given_fragment \
        cci__rel_input_void:prove_given_void cci__rel_input_run:prove_given_run \
        cci__rel_not_ready:prove_given_nack cci__rel_refused:prove_given_refusal
    "$1" prove_rel all 18 ack
    # shellcheck disable=SC2086
    "$1" prove_rel all 4 bulk $ranges $part
    # shellcheck disable=SC2086
    "$1" prove_rel all 4 fragment $ranges $part cci__rel_unreliable_reassembly:prove_given_unreliable \
        cci__rel_free_reassembly:prove_given_free
    "$1" prove_rel loop 4 place_run cci_rel_frame_size:prove_frame_size cci__rel_place_frame:prove_take_frame
    "$1" prove_rel all 4 place_frame
    "$1" prove_rel all 4 run_skip
}

# selected PROOF: by its name, and not too long.
selected() {
    case $1 in *"$only"*) ;; *) return 1 ;; esac
    [ -n "$quick" ] || return 0
    case $1 in ranges_memory | ranges_union | scan) return 1 ;; esac
}

proven=0 failed=0
prove() {
    selected "$4" || return
    began=$(date +%s)
    solve . "$@"
    status=$?
    if [ "$status" -eq 0 ]; then
        proven=$((proven + 1)) verdict=proven
    else
        failed=$((failed + 1)) verdict=FAIL
        [ "$status" -le 128 ] || echo "  (no answer in $limit_s s)"
        grep -hE 'FAILURE|rror' "$out/$4.txt" "$out/$4.log" 2>/dev/null | head -n 10 | sed 's/^/  /'
    fi
    printf '%-6s %-14s %s  %3d s\n' "$verdict" "$4" "$(sed -n 's/^\*\* \(.*\) (.*/\1/p' "$out/$4.txt" | tail -n 1)" \
        $(($(date +%s) - began))
}

# mistake PROOF OLD NEW: with OLD replaced by NEW in cci.h the proof must fail, and not for want of an answer.
mistake() {
    selected "$1" || return
    wrong=$1
    awk -v old="$2" -v new="$3" '
        (at = index($0, old)) { $0 = substr($0, 1, at - 1) new substr($0, at + length(old)); count++ }
        { print }
        END { exit count != 1 }' cci.h >"$out/broken/cci.h" || {
        failed=$((failed + 1))
        echo "FAIL   cci.h does not hold, just once: $2"
        return
    }
    all find_mistake
}
find_mistake() {
    [ "$4" = "$wrong" ] || return
    until=--stop-on-fail # the first check that fails is enough
    solve "$out/broken" "$@"
    until=
    if grep -q '^VERIFICATION FAILED' "$out/$4.txt"; then
        proven=$((proven + 1))
        echo "found  $4: with a mistake, $(sed -n '/^Violated property:/{n;n;s/^ *//p;}' "$out/$4.txt")"
    else
        failed=$((failed + 1))
        echo "FAIL   $4 does not notice a mistake"
    fi
}

only='' quick='' until=''
case ${1:-} in
'') ;;
--quick) quick=yes ;;
-k) only=${2:-} ;;
--install) install && exit 0 ;;
*) echo "usage: $0 [--quick | -k WORD | --install]" >&2 && exit 2 ;;
esac
[ -n "$found" ] || { echo "SKIP: there is no cbmc (sh $0 --install fetches it into $folder)" && exit 0; }
rm -rf "$out"
mkdir -p "$out/broken"
tool cbmc --version
all prove
mistake header 'if (length < CCI__HEADER_SIZE || bytes[0]' 'if (length < 8 || bytes[0]'
mistake request 'request->length > length - head' 'request->length > length'
mistake accept '? CCI__ACCEPT_SIZE + CCI__SECRET_SIZE' '? CCI__ACCEPT_SIZE'
mistake read 'offset > found->length - length)' 'offset > found->length)'
mistake data 'data > length - 16' 'data > length'
mistake ranges_memory 'if (*count == capacity)' 'if (*count > capacity)'
mistake ranges_union 'while (begin > 0 && set[begin - 1].hi >= lo)' 'while (begin > 0 && set[begin - 1].hi > lo)'
mistake check 'if (data > length - size)' 'if (data > length)'
mistake scan 'run->next || run->end != at' 'run->next'
mistake input 'size == 0 || size > length - at)' 'size == 0)'
mistake ack 'if (more > CCI__REL_ACK_MORE || ' 'if ('
mistake bulk 'if (part->total != target.length || part->buffer' 'if (part->buffer'
mistake fragment 'if (part->total != total || !part->buffer' 'if (!part->buffer'
mistake place_run 'if (--count == 0)' 'if (count-- == 0)'
mistake place_frame 'check_only ? NULL : frame + 48' 'check_only ? NULL : frame + 56'
mistake run_skip '(uint16_t)cci__min32(run->begin + size, run->end)' '(uint16_t)(run->begin + size)'
echo "$proven proven, $failed failed"
[ "$failed" -eq 0 ] && [ "$proven" -gt 0 ]
