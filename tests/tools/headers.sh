# SPDX-License-Identifier: MIT OR Unlicense
# headers.sh - tests of the headers as a compiler and a linker see them; steps.sh reads this file.

# What a program writes; the macros come from the command line, empty as `#define X` makes them.
write_users() {
    mkdir -p "$out/use"
    core='#include "cci.h"'
    udp='#include "cci_udp.h"'
    systems=$(printf '#include <%s>\n' stdio.h stdlib.h string.h time.h unistd.h sys/types.h sys/socket.h netinet/in.h)
    printf '%s\n' "$core" >"$out/use/core.c"
    printf '#include "cci_sisci.h"\n%s\n' "$core" >"$out/use/sisci.c"
    printf '#define CCI_SISCI_API\n#include "cci_sisci.h"\n' >"$out/use/sisci-alone.c"
    printf '%s\n%s\n' "$udp" "$core" >"$out/use/udp.c"
    verbs='#include "cci_verbs.h"'
    printf '%s\n%s\n' "$verbs" "$core" >"$out/use/verbs.c"
    printf '%s\n%s\n%s\n' "$verbs" "$udp" "$core" >"$out/use/verbs-udp.c"
    printf '%s\n#include "cci_sisci.h"\n%s\n%s\n' "$verbs" "$udp" "$core" >"$out/use/everything.c"
    printf '%s\n#include <type_traits>\n' "$core" >"$out/use/const.c"
    for each in device endpoint connection rma_handle opt_handle; do
        printf 'static_assert(std::is_const<cci_%s_t>::value, "");\n' "$each" >>"$out/use/const.c"
    done
    printf '%s\n%s\n%s\n%s\n' "$udp" "$core" "$udp" "$core" >"$out/use/twice.c"
    printf '%s\n%s\n%s\n' "$systems" "$udp" "$core" >"$out/use/after-system.c"
    printf '%s\n%s\n%s\n' "$systems" "$verbs" "$core" >"$out/use/verbs-after-system.c"
    printf '#define CCI_IMPLEMENTATION\n%s\n%s\n' "$core" "$udp" >"$out/use/wrong-order.c"
    printf '#include "cci.h"\n#ifdef __cplusplus\nextern "C"\n#endif\nconst char *other(void);\n%s\n' \
        'const char *other(void) { return cci_strerror(NULL, CCI_SUCCESS); }' >"$out/use/other.c"
    printf '#define CCI_IMPLEMENTATION\n%s\n%s\n%s\n%s\n' "$udp" "$core" \
        '#ifdef __cplusplus
extern "C"
#endif
const char *other(void);' \
        'int main(void) { return other() == NULL || cci_strerror(NULL, CCI_EINVAL) == NULL; }' >"$out/use/main.c"
    sed '1i\
#define CCI_IMPLEMENTATION\
#include "cci_udp.h"' "$out/use/other.c" >"$out/use/other-static.c"
}

# accept FILE FLAGS...: the headers, used so, compile in this compiler without a warning.
accept() {
    user=$1
    shift
    # shellcheck disable=SC2086
    check "$compile $user.c $*" $compile $warnings -I. "$@" "$out/use/$user.c"
}

# gcc sees unused functions only when it goes on to generate code, as it does for some of these; clang always does.
headers() {
    compiler=$1 language=$2 strict=$3 gnu=$4 modern=$5
    has "$compiler" || { skip "there is no $compiler" && return; }
    compile="$compiler -x $language -std=$strict -fsyntax-only"
    all=-DCCI_IMPLEMENTATION=
    accept core
    accept udp
    [ "$language" = c ] || accept const # of handles: C++ has it, C has not
    accept core "$all"
    accept udp "$all"
    accept twice "$all"
    accept udp "$all" -DCCI_NO_THREADS=
    accept udp "$all" -DCCI_NO_STDIO=
    accept udp "$all" -DCCI_NO_DLOPEN=
    accept udp "$all" -DCCI_NO_THREADS= -DCCI_NO_STDIO= -DCCI_NO_DLOPEN=
    accept udp "$all" -DCCI_STATIC=
    accept udp "$all" -DCCI_UDP_PORTABLE=
    accept udp "$all" -DCCI_UDP_PORTABLE= -DCCI_NO_THREADS=
    accept udp "$all" -DCCI_NO_ERRNO=
    accept udp "$all" -DNDEBUG
    accept udp "$all" -DCCI_NO_RMA=
    accept udp "$all" -DCCI_NO_TEXT= -DCCI_NO_CONGESTION= -DCCI_NO_STATS=
    accept core "$all" -DCCI_SMALL=
    accept core "$all" -DCCI_SMALL= -DCCI_NO_RMA= -DCCI_NO_TEXT= -DCCI_SMALL_CONNECTIONS=8
    accept core "$all" -DCCI_SMALL= -DCCI_STATIC=
    for each in SEAL MULTICAST MIGRATION SERVER CLIENT DEVICES; do accept core "$all" "-DCCI_NO_$each="; done
    accept core "$all" -DCCI_SMALL= -DCCI_NO_SEAL= -DCCI_NO_MULTICAST= -DCCI_NO_MIGRATION= -DCCI_NO_SERVER=
    accept core "$all" -DCCI_SMALL= -DCCI_NO_SEAL= -DCCI_NO_MULTICAST= -DCCI_NO_MIGRATION= -DCCI_NO_CLIENT= -DCCI_NO_RMA=
    accept core -DCCI_REL_IMPLEMENTATION= -DCCI_SMALL=
    accept core "$all" -DCCI_TINY=
    accept core "$all" -DCCI_TINY= -DCCI_NO_RMA= -DCCI_NO_TEXT= -DNDEBUG
    accept core "$all" -DCCI_TINY= -DCCI_TINY_SEAL= -DCCI_NO_CLIENT=
    accept core "$all" -DCCI_TINY= -DCCI_STATIC= -DCCI_TINY_CONNECTIONS=1 -DCCI_TINY_SENDS=8
    accept sisci
    accept sisci-alone
    accept sisci "$all"
    accept sisci "$all" -DCCI_STATIC=
    accept sisci "$all" -DCCI_NO_THREADS=
    accept sisci "$all" -DCCI_SISCI_ADAPTER=
    accept sisci "$all" -DCCI_SISCI_ADAPTER= -DCCI_NO_THREADS= -DCCI_STATIC=
    alone=-DCCI_SISCI_IMPLEMENTATION=
    accept sisci-alone "$alone"
    accept sisci-alone "$alone" -DCCI_STATIC=
    accept sisci-alone "$alone" -DCCI_NO_THREADS=
    accept sisci-alone "$alone" -DCCI_NO_STDIO=
    accept sisci-alone "$alone" -DCCI_SISCI_ADAPTER=
    accept sisci-alone "$alone" -DCCI_SISCI_ADAPTER= -DCCI_NO_DLOPEN=
    accept sisci-alone "$alone" -DCCI_SISCI_NO_SHARED_MEMORY=
    for each in verbs verbs-udp; do
        accept $each
        accept $each "$all"
        accept $each "$all" -DCCI_STATIC=
    done
    for each in CCI_NO_THREADS CCI_NO_STDIO CCI_NO_DLOPEN CCI_VERBS_LINK CCI_NO_VERBS_H CCI_NO_NAMES CCI_VALIDATE NDEBUG; do
        accept verbs "$all" "-D$each="
    done
    accept verbs "$all" -DCCI_NO_VERBS_H= -DCCI_STATIC=
    accept verbs-udp "$all" -DCCI_NO_VERBS_H= -DCCI_STATIC=
    for layer in BASE EVQ CONN REL RMA; do accept core "-DCCI_${layer}_IMPLEMENTATION="; done
    case $compiler in g*) compile="$compiler -x $language -std=$strict -c -o $out/use/warned.o" ;; esac # its warnings depend on it
    level=-O2
    accept udp "$all" $level
    [ "$language" = c ] || level=-O0 # what optimization finds it has found in C
    accept udp "$all" $level -DNDEBUG -DCCI_STATIC=
    accept core "$all" $level -DNDEBUG -DCCI_SMALL= -DCCI_NO_TEXT= -DCCI_NO_CONGESTION=
    accept core "$all" $level -DCCI_TINY=
    accept sisci "$all" -O0
    accept sisci "$all" $level -DCCI_SISCI_ADAPTER=
    accept verbs-udp "$all" $level
    accept sisci-alone "$alone" $level
    compile="$compiler -x $language -std=$gnu -fsyntax-only"
    accept udp "$all"
    accept after-system "$all"
    accept after-system "$all" -DCCI_UDP_PORTABLE=
    accept verbs-after-system "$all"
    compile="$compiler -x $language -std=$modern -fsyntax-only"
    accept udp "$all"
}

# A wrong order of the headers gives one error, and that one says what to do.
wrong_order() {
    for compiler in gcc clang; do
        has "$compiler" || { skip "there is no $compiler" && continue; }
        $compiler -I. -fsyntax-only "$out/use/wrong-order.c" >"$out/wrong-order.txt" 2>&1
        cat "$out/wrong-order.txt"
        count=$(grep -c 'error:' "$out/wrong-order.txt")
        check "$compiler prints $count errors, not one" [ "$count" -eq 1 ]
        check "$compiler does not name the order" grep -q 'error: .*before cci\.h' "$out/wrong-order.txt"
    done
}

# What a program sees of the headers declares no sockets: their names are free.
no_sockets() {
    for user in core udp sisci; do
        "$cc" -M -I. "$out/use/$user.c" >"$out/included.txt" || { fail "$user.c does not compile" && continue; }
        check "$user.c includes sockets" sh -c '! grep -q socket "$1"' - "$out/included.txt"
    done
    printf '#include "cci.h"\nvoid use(cci_connection_t *c);\nvoid use(cci_connection_t *c) { c->context = c; }\n' >"$out/use/plain.c"
    check 'handles are const in C' "$cc" -I. -c -o "$out/use/plain.o" "$out/use/plain.c"
}

# link_two TEXT COMPILE-MAIN COMPILE-OTHER LINK: makes one program of two files and runs it.
link_two() {
    text=$1 main=$2 other=$3
    # shellcheck disable=SC2086
    if $main -I. -c -o "$out/main.o" && $other -I. -c -o "$out/other.o" && $4 -o "$out/two" "$out/main.o" \
        "$out/other.o" -pthread && "$out/two"; then
        pass
    else
        fail "$text"
    fi
}

two_files() {
    u=$out/use
    link_two 'two C files' "$cc $u/main.c" "$cc $u/other.c" "$cc"
    link_two 'two C files, each with a private copy' "$cc -DCCI_STATIC $u/main.c" "$cc -DCCI_STATIC $u/other-static.c" "$cc"
    has g++ || { skip 'there is no g++' && return; }
    link_two 'implementation in C, use in C++' "$cc $u/main.c" "g++ -x c++ $u/other.c" g++
    link_two 'implementation in C++, use in C' "g++ -x c++ $u/main.c" "$cc $u/other.c" g++
}

# What an object may import although its source calls nothing: memory functions and the compiler's own support.
support='mem(cpy|move|set|cmp)|__stack_chk_(fail|guard)|_GLOBAL_OFFSET_TABLE_|__[a-z]+[dst]i[234]|__aeabi_[a-z0-9]+'

# imports TEXT ALLOWED FLAGS...: of one layer compiled alone.
imports() {
    text=$1 allowed=$2
    shift 2
    if ! "$@" -x c -I. -O2 -c -o "$out/layer.o" "$out/use/core.c"; then
        fail "$text does not compile"
        return
    fi
    foreign=$(nm -u "$out/layer.o" | sed 's/.* //' | grep -vE "^($allowed)$" | sort | tr '\n' ' ')
    check "$text imports $foreign" [ -z "$foreign" ]
}

purity() {
    has nm || { skip 'there is no nm' && return; }
    for compiler in gcc clang; do
        has "$compiler" || { skip "there is no $compiler" && continue; }
        for layer in EVQ CONN REL RMA; do
            imports "$layer ($compiler)" "$support" "$compiler" "-DCCI_${layer}_IMPLEMENTATION=" -DNDEBUG
            imports "$layer ($compiler, with assertions)" "$support|__assert_fail|__assert" \
                "$compiler" "-DCCI_${layer}_IMPLEMENTATION="
        done
    done
}

# What goes wrong in a first program that includes the headers in the wrong way is said by the compiler or the linker.
# blunder TEXT FILES...: they do not build, and TEXT is in what is printed.
blunder() {
    blunder_text=$1
    shift
    if "$cc" -I. -o "$out/blunder" "$@" -pthread >"$out/blunder.txt" 2>&1; then fail "built: $*"
    else check "not said of $*: $blunder_text" grep -qF "$blunder_text" "$out/blunder.txt"
    fi
}

blunders() {
    printf '#include "cci_udp.h"\n#define CCI_IMPLEMENTATION\n#include "cci.h"\nint main(void) { return 0; }\n' >"$out/between.c"
    printf '#define CCI_IMPLEMENTATION\n#include "cci_udp.h"\nint main(void) { return 0; }\n' >"$out/coreless.c"
    printf '#define CCI_IMPLEMENTATION\n#include "cci.h"\n#include "cci_udp.h"\nint main(void) { return 0; }\n' >"$out/late.c"
    printf '#define CCI_IMPLEMENTATION\n#include "cci_udp.h"\n#include "cci.h"\n' >"$out/one.c"
    { cat "$out/one.c" && echo 'int main(void) { return 0; }'; } >"$out/two.c"
    blunder 'define CCI_IMPLEMENTATION before the first header of CCI' "$out/between.c"
    blunder 'cci_h_is_missing_after_the_header_of_a_transport' "$out/coreless.c"
    blunder 'include cci_udp.h before cci.h' "$out/late.c"
    # What a small profile can't be is said once.
    for wrong in CONNECTIONS=3 SENDS=0 PACKETS=3 REQUEST=1025; do
        printf '#define CCI_SMALL_%s\n#define CCI_SMALL\n#define CCI_IMPLEMENTATION\n#include "cci.h"\nint main(void) { return 0; }\n' \
            "$(echo "$wrong" | tr '=' ' ')" >"$out/small-wrong.c"
        blunder "CCI_SMALL" "$out/small-wrong.c"
        check "CCI_SMALL_$wrong gives not one error" [ "$(grep -c 'error:' "$out/blunder.txt")" -eq 1 ]
    done
    printf '#define CCI_SMALL\n' >"$out/small-udp.c"
    cat "$out/one.c" >>"$out/small-udp.c"
    blunder 'CCI_SMALL and CCI_TINY are for links of the program' "$out/small-udp.c"
    # What another header needs can't be left out.
    for wrong in SEAL MULTICAST MIGRATION SERVER CLIENT DEVICES; do
        { echo "#define CCI_NO_$wrong" && cat "$out/one.c"; } >"$out/without.c"
        blunder 'for links of the program' "$out/without.c"
        check "CCI_NO_$wrong with cci_udp.h gives not one error" [ "$(grep -c 'error:' "$out/blunder.txt")" -eq 1 ]
    done
    printf '#define CCI_NO_SERVER\n#define CCI_NO_CLIENT\n#define CCI_IMPLEMENTATION\n#include "cci.h"\n' >"$out/nobody.c"
    blunder 'leave nobody who connects' "$out/nobody.c"
    { printf '#define CCI_TINY\n#define CCI_TINY_SEAL\n' && cat "$out/nobody.c"; } >"$out/sealed.c"
    blunder 'CCI_TINY_SEAL needs handshakes' "$out/sealed.c"
    blunder 'cci_only_one_file_may_define_CCI_IMPLEMENTATION' "$out/one.c" "$out/two.c"
}

exports() {
    has nm || { skip 'there is no nm' && return; }
    if "$cc" -I. -DCCI_IMPLEMENTATION= -c -o "$out/all.o" "$out/use/everything.c"; then
        nm -g --defined-only "$out/all.o" | sed 's/.* //' >"$out/exported.txt"
        check 'nothing is exported' grep -q '^cci_init$' "$out/exported.txt"
        foreign=$(grep -vE '^cci_[a-z]' "$out/exported.txt" | tr '\n' ' ')
        check "not public by name, but exported: $foreign" [ -z "$foreign" ]
        # A program's own global of such a name would take the place of the C library's function.
        called=$(nm -u "$out/all.o" | sed 's/.* //' | grep -xE 'send|recv|accept|listen|shutdown' | tr '\n' ' ')
        check "called, though programs have such names: $called" [ -z "$called" ]
    else
        fail 'the implementation does not compile'
    fi
    check 'the hints are not in the code' grep -q 'check that the peer runs' "$out/all.o"
    check 'CCI_NO_TEXT does not compile' "$cc" -I. -DCCI_IMPLEMENTATION= -DCCI_NO_TEXT= -c -o "$out/no-text.o" "$out/use/everything.c"
    check 'CCI_NO_TEXT leaves hints in the code' sh -c '! grep -q "check that the peer runs" "$1"' - "$out/no-text.o"
    if "$cc" -I. -DCCI_IMPLEMENTATION= -DCCI_STATIC= -c -o "$out/static.o" "$out/use/everything.c"; then
        check 'CCI_STATIC exports something' [ -z "$(nm -g --defined-only "$out/static.o")" ]
    else
        fail 'the implementation does not compile with CCI_STATIC'
    fi
}

# Examples compile as a user may compile them; tests are held to the same warnings.
warnings_of() {
    for compiler in gcc clang; do
        has "$compiler" || { skip "there is no $compiler" && continue; }
        for standard in $1; do
            [ "$compiler $standard" != 'clang gnu11' ] || [ "$1" = gnu11 ] || continue # warns no more than in C99
            for source in $2; do
                case $source in
                *secure.c) has_sodium || { skip 'there is no libsodium' && continue; } ;;
                *uv_loop.c) has_uv || { skip 'there is no libuv' && continue; } ;;
                esac
                # shellcheck disable=SC2086
                check "$compiler -std=$standard $source" \
                    $compiler -std=$standard -fsyntax-only $warnings -I. "$source"
            done
        done
    done
}
