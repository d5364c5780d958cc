#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# metrics.sh - how large the headers, their functions and sections are: a table beside bounds and goals, which metrics.py has. How
# long a compiler takes is printed only. pmccabe counts the complexity of each function too, and must come to the same.
set -u
cd "$(dirname "$0")/../.." || exit 1
out=build/metrics
rm -rf "$out"
mkdir -p "$out" || exit 1
command -v python3 >/dev/null || { echo 'SKIP: there is no python3' && echo '0 passed, 0 failed' && exit 0; }

python3 tests/tools/metrics.py >"$out/table.txt"
failed=$?
cat "$out/table.txt"
passed=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$out/table.txt")

printf '#define CCI_IMPLEMENTATION\n#include "cci_udp.h"\n#include "cci.h"\n' >"$out/udp.c"
if command -v gcc >/dev/null; then
    began=$(date +%s%N)
    gcc -O2 -I. -c -o "$out/udp.o" "$out/udp.c" || failed=1
    echo "cci_udp.h and cci.h, gcc -O2: $((($(date +%s%N) - began) / 1000000)) ms"
fi

if command -v pmccabe >/dev/null; then
    for header in cci.h cci_udp.h cci_verbs.h cci_sisci.h; do
        file=$out/${header%.h}.c
        python3 tests/tools/metrics.py --functions "$header" >"$file"
        pmccabe "$file" | sed 's/(\([0-9]*\)):.*/ \1/' | awk '{ print $2, $NF }' | sort >"$out/pmccabe.txt"
        python3 tests/tools/metrics.py --complexity "$header" | cut -d ' ' -f 1,2 | sort >"$out/own.txt"
        if diff "$out/own.txt" "$out/pmccabe.txt"; then
            passed=$((passed + 1))
        else
            echo "FAIL: $header: pmccabe (>) counts another complexity than metrics.py (<)"
            failed=1
        fi
    done
else
    echo 'SKIP: there is no pmccabe'
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
