#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# extensions.sh [TABLE] - each sentence of extensions.md names a test, and each test that it names exists and is run.
set -u
cd "$(dirname "$0")/../.." || exit 1
table=${1:-tests/conformance/extensions.md}
passed=0
failed=0
skipped=0

# is_run FILE NAME: the file hands a test of that name to cmocka, or it is a fault that the soak must have had.
is_run() {
    path=$(find tests -name "$1" -type f)
    [ -n "$path" ] && grep -qE "(TEST|cmocka_unit_test[a-z_]*|^ *X)\\($2[,)]" "$path"
}

while IFS='|' read -r _ sentence tests _; do
    case $sentence in ' sentence ' | ' --- ' | ' **'*) continue ;; esac
    case $tests in
    *'not built'*) skipped=$((skipped + 1)) && echo "SKIP: not built:$sentence" && continue ;;
    *\`*) ;;
    *) failed=$((failed + 1)) && echo "FAIL: no test of:$sentence" && continue ;;
    esac
    for name in $(printf '%s' "$tests" | tr -d '`'); do
        file=conformance.c
        case $name in *:*) file=${name%%:*} ;; esac
        if is_run "$file" "${name#*:}"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAIL: there is no test ${name#*:} in $file, for:$sentence"
        fi
    done
done <<END
$(grep '^|' "$table")
END
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
