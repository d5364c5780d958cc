# SPDX-License-Identifier: MIT OR Unlicense
# coverage.awk - adds up what gcov says of many programs (see coverage.sh).
# -v out=DIRECTORY -v least=PERCENT -v admitted=FILE: a table of functions, of their lines that no test reaches, and why.

BEGIN {
    FS = ":"
    while ((getline row < admitted) > 0)
        if (split(row, cell, "|") >= 4 && cell[2] ~ /`/) {
            gsub(/[ `]/, "", cell[2])
            allowed[cell[2]] = cell[3] + 0
        }
}

/^ *-: *0:Source:/ {
    file = $0
    sub(/.*Source:/, "", file)
    sub(/.*\//, "", file)
    ours = file == "cci.h" || file == "cci_udp.h"
    function_name = ""
}
!ours { next }

/^function / {
    split($0, word, " ")
    function_name = word[2]
    next
}
/^branch / {
    split($0, word, " ")
    key = file ":" line ":" word[2]
    if (!(key in branch)) {
        branch[key] = 0
        branches[file]++
    }
    if (word[3] == "taken" && word[4] + 0 > 0) {
        reached_branches[file] += branch[key] == 0
        branch[key] = 1
    }
    next
}
/^ *[0-9#=-]+\*?:/ {
    line = $2 + 0
    if (line == 0 || $1 ~ /-/)
        next
    key = file ":" line
    if (!(key in seen)) {
        seen[key] = 0
        lines[file]++
        text = $0
        sub(/^[^:]*:[^:]*:/, "", text)
        source[key] = text
        if (line > last[file])
            last[file] = line
    }
    owner[key] = function_name
    if ($1 !~ /#|=/) {
        reached_lines[file] += seen[key] == 0
        seen[key] = 1
    }
}

function percent(part, whole) { return whole ? 100 * part / whole : 0 }

END {
    list = out "/uncovered.txt"
    printf "" > list
    for (file in lines)
        printf "coverage: %-9s lines %6.2f %% of %d, branches %6.2f %% of %d\n", file,
            percent(reached_lines[file], lines[file]), lines[file],
            percent(reached_branches[file], branches[file]), branches[file]
    bad = !("cci.h" in lines) || percent(reached_lines["cci.h"], lines["cci.h"]) < least
    if (bad)
        print "coverage: less than " least " % of the lines of cci.h"
    for (f = 1; f <= 2; f++) {
        file = f == 1 ? "cci.h" : "cci_udp.h"
        for (line = 1; line <= last[file]; line++) {
            key = file ":" line
            if ((key in seen) && !seen[key]) {
                print file ":" line ": " owner[key] ": " source[key] > list
                if (file == "cci.h")
                    missed[owner[key]]++
            }
        }
    }
    for (name in missed)
        if (missed[name] > allowed[name] + 0) {
            printf "coverage: %s has %d unreached lines, %d admitted in %s\n", name, missed[name], allowed[name], admitted
            bad = 1
        }
    for (name in allowed)
        if (missed[name] + 0 < allowed[name])
            printf "coverage: note: %s has %d unreached lines, %d were admitted\n", name, missed[name], allowed[name]
    print "coverage: what is not reached is in " list
    exit bad
}
