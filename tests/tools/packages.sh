#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# packages.sh [PART...] - makes the packages and uses each from outside, in C and in C++. Parts: versions archive install
# exports manual pkgconfig find_package fetch_content meson vcpkg conan debian abi. What needs a tool that is not there is
# skipped and says so. The last line is the sum.
set -u
umask 022
cd "$(dirname "$0")/../.." || exit 1
unset CCI_CONFIG DESTDIR MAKEFLAGS MFLAGS MAKELEVEL SOURCE_DATE_EPOCH CFLAGS CPPFLAGS LDFLAGS CXXFLAGS
top=$(pwd)
out=$top/build/packages
rm -rf "$out"
mkdir -p "$out" || exit 1
version=$(sh .github/packaging/package.sh version)
abi=$(sh .github/packaging/package.sh soname | sed 's/^libcci\.so\.//')
archive=cci-$version.tar.gz
tree=$out/cci-$version    # the unpacked archive, where everything is built
root=$out/root            # where it is installed
cc=${CC:-cc}

passed=0 failed=0 skipped=0
fail() {
    failed=$((failed + 1))
    echo "FAIL: $*"
}
skip() {
    skipped=$((skipped + 1))
    echo "SKIP: $*"
}
has() {
    command -v "$1" >/dev/null 2>&1
}
# need TOOL...: each must be there, or the part is skipped.
need() {
    for tool; do has "$tool" || { skip "$part: there is no $tool" && return 1; }; done
}
# check TEXT COMMAND...: it must succeed; if it doesn't, the end of what it says is shown.
check() {
    text=$1
    shift
    if "$@" >"$out/log" 2>&1; then
        passed=$((passed + 1))
    else
        fail "$text"
        tail -n 25 "$out/log" | sed 's/^/    | /'
        return 1
    fi
}
# says TEXT WANTED COMMAND...: what it prints is this.
says() {
    text=$1 wanted=$2
    shift 2
    got=$("$@" 2>"$out/log")
    check "$text: \"$got\" instead of \"$wanted\" $(tail -n 3 "$out/log")" [ "$got" = "$wanted" ]
}
# The same text twice: what differs is shown.
same() {
    check "$1" diff -u "$2" "$3"
}

# ---- programs that use the packages -------------------------------------------------------------------------------------

# write_users DIRECTORY: use.c and use.cpp hold the code themselves, linked.c and linked.cpp use the shared library.
write_users() {
    mkdir -p "$1"
    printf '#include <cci.h>\n#include <stdio.h>\n%s\n' 'int main(void) {
    uint32_t caps;
    if (cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS) return 1;
    printf("%d.%d.%d\n", CCI_VERSION_MAJOR, CCI_VERSION_MINOR, CCI_VERSION_PATCH);
    return cci_finalize();
}' >"$1/linked.c"
    { printf '#define CCI_IMPLEMENTATION\n#include <cci_udp.h>\n' && cat "$1/linked.c"; } >"$1/use.c"
    cp "$1/use.c" "$1/use.cpp"
    cp "$1/linked.c" "$1/linked.cpp"
}
users='add_executable(use_c use.c)
target_link_libraries(use_c cci::cci)
add_executable(use_cpp use.cpp)
target_link_libraries(use_cpp cci::cci)
add_executable(linked_c linked.c)
target_link_libraries(linked_c cci::shared)
add_executable(linked_cpp linked.cpp)
target_link_libraries(linked_cpp cci::shared)'
run_users() {
    for user in use_c use_cpp linked_c linked_cpp; do
        [ ! -e "$1/$user" ] && [ "${2:-}" = headers ] && continue
        says "$part: $user" "$version" "$1/$user"
    done
}

# cmake_project NAME LINES FLAGS...: configures, builds and runs it.
cmake_project() {
    project=$out/$1
    write_users "$project"
    printf 'cmake_minimum_required(VERSION 3.18)\nproject(user C CXX)\n%s\n' "$2" >"$project/CMakeLists.txt"
    shift 2
    check "$part: cmake does not configure" cmake -S "$project" -B "$project/build" "$@" || return
    check "$part: cmake does not build" cmake --build "$project/build" || return
    run_users "$project/build" headers
}

# ---- the parts ----------------------------------------------------------------------------------------------------------

# Recipes that have a copy of the version have the right one.
versions() {
    for header in cci*.h; do check "$header: another version in its first line" grep -q " v$version\$" "$header"; done
    p=.github/packaging
    check 'meson.build has another version' grep -q "^  version: '$version',\$" $p/meson/meson.build
    check 'vcpkg.json has another version' grep -q "\"version-semver\": \"$version\"" $p/vcpkg/vcpkg.json
    check 'debian/changelog has another version' sh -c "head -n 1 $p/debian/changelog | grep -q '^cci ($version-'"
    check 'debian/control names another libcci' grep -q "^Package: libcci$abi\$" $p/debian/control
    check 'debian/libcci*.install is for another version' [ -f "$p/debian/libcci$abi.install" ]
    check 'the release notes have no section of this version' grep -q "^## $version" .github/CHANGELOG.md
}

# The bill of materials is what SPDX 2.3 wants, and names the archive's files with their digests.
check_bill() {
    python3 - "$1" "$2" "$3" <<'PYTHON'
import hashlib, json, os, re, sys
bill, tree, archive = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3]
assert bill["spdxVersion"] == "SPDX-2.3" and bill["dataLicense"] == "CC0-1.0" and bill["SPDXID"] == "SPDXRef-DOCUMENT"
assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", bill["creationInfo"]["created"])
package = bill["packages"][0]
read = lambda name: open(name, "rb").read()
assert package["checksums"] == [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(read(archive)).hexdigest()}]
found = {"./" + os.path.relpath(os.path.join(d, f), tree) for d, _, files in os.walk(tree) for f in files}
assert found == {f["fileName"] for f in bill["files"]}, found ^ {f["fileName"] for f in bill["files"]}
sums = []
for f in bill["files"]:
    text = read(os.path.join(tree, f["fileName"]))
    digests = {c["algorithm"]: c["checksumValue"] for c in f["checksums"]}
    assert digests == {"SHA1": hashlib.sha1(text).hexdigest(), "SHA256": hashlib.sha256(text).hexdigest()}, f["fileName"]
    sums.append(digests["SHA1"])
code = hashlib.sha1("".join(sorted(sums)).encode()).hexdigest()
assert package["packageVerificationCode"]["packageVerificationCodeValue"] == code
ids = [e["SPDXID"] for e in bill["packages"] + bill["files"]] + ["SPDXRef-DOCUMENT"]
assert len(ids) == len(set(ids))
assert all(r["spdxElementId"] in ids and r["relatedSpdxElement"] in ids for r in bill["relationships"])
PYTHON
}

# The archive of this tree, the archive of the unpacked archive, and that of the same with other times and another umask
# are the same bytes.
archive() {
    tar --version 2>/dev/null | grep -q GNU || { skip "$part: there is no GNU tar, and nothing else can be tested" && return; }
    check 'make dist failed' make -s dist URL=https://example.org/releases || return
    check 'the checksum is wrong' sh -c 'cd build/dist && sha256sum -c *.sha256'
    cp -R build/dist "$out/dist"
    check 'the names in the archive are not in order' sh -c 'tar -tzf "$1" | sed "s|/\$||" | LC_ALL=C sort -c' - "$out/dist/$archive"
    tar -xzf "$out/dist/$archive" -C "$out" || fail 'the archive does not unpack'
    if has python3; then
        check 'the bill of materials' check_bill "$out/dist/cci-$version.spdx.json" "$tree" "$out/dist/$archive"
    else
        skip "$part: there is no python3 to read the bill of materials"
    fi
    check 'the tests do not take the archive for a tree' sh "$tree/tests/run.sh" -k tree
    rm -rf "$tree/build"
    check 'make dist in the archive failed' make -s -C "$tree" dist URL=https://example.org/releases
    check 'an archive of the archive differs' diff -r "$out/dist" "$tree/build/dist"
    time=$(date -r "$tree/cci.h" +%s)
    rm -rf "$tree/build" "$out/later"
    cp -R "$tree" "$out/later"
    find "$out/later" -exec touch -t 200001020304 {} +
    chmod -R go-rwx "$out/later"
    (umask 077 && cd "$out/later" && SOURCE_DATE_EPOCH=$time make -s dist URL=https://example.org/releases) >/dev/null
    check 'an archive made later under another umask differs' diff -r "$out/dist" "$out/later/build/dist"
    rm -rf "$out/later"
}

# unpacked: the parts that follow need what `archive` left.
unpacked() {
    [ -d "$tree" ] || { skip "$part: there is no archive" && return 1; }
}
# installed: and these what `install` left.
installed() {
    [ -e "$root/usr/local/include/cci.h" ] || { skip "$part: nothing is installed" && return 1; }
}

list_installed() {
    (cd "$root" && find . ! -type d | LC_ALL=C sort)
}
install() {
    unpacked || return
    check 'make install failed' make -s -C "$tree" install CC="$cc" CFLAGS=-O0 DESTDIR="$root" || return
    printf './usr/local/%s\n' bin/cci_cp bin/cci_info bin/cci_perf include/cci.h include/cci_sisci.h include/cci_udp.h \
        include/cci_verbs.h lib/cmake/cci/cci-config-version.cmake lib/cmake/cci/cci-config.cmake lib/libcci.so \
        "lib/libcci.so.$abi" "lib/libcci.so.$version" lib/pkgconfig/cci-shared.pc lib/pkgconfig/cci.pc \
        share/doc/cci/CHANGELOG.md share/doc/cci/LICENSE share/man/man1/cci_cp.1 share/man/man1/cci_info.1 \
        share/man/man1/cci_perf.1 share/man/man3/cci.3 >"$out/wanted.txt"
    list_installed >"$out/got.txt"
    same 'other files are installed' "$out/wanted.txt" "$out/got.txt"
    check 'others cannot read what is installed' [ -z "$(find "$root" ! -type l ! -perm -044)" ]
    check 'others can write what is installed' [ -z "$(find "$root" ! -type l -perm -022)" ]
    check 'a word of a template was not replaced' sh -c '! grep -rE "@[A-Z_]+@" "$1"/usr/local/lib/pkgconfig "$1"/usr/local/lib/cmake' - "$root"
    for tool in cci_info cci_perf cci_cp; do check "$tool does not run" "$root/usr/local/bin/$tool" -h; done
    uninstall
}
# A second installation, with directories of its own, over the same again, and beside files of others; then nothing is left.
uninstall() {
    other=$out/other
    mkdir -p "$other/opt/x/lib/a"
    echo mine >"$other/opt/x/lib/a/libother.so"
    set -- -s -C "$tree" CC="$cc" CFLAGS=-O0 DESTDIR="$other" PREFIX=/opt/x LIBDIR=/opt/x/lib/a MANDIR=/opt/man
    check 'make install with other directories failed' make "$@" install
    check 'the same again failed' make "$@" install
    check 'LIBDIR is not used' [ -e "$other/opt/x/lib/a/cmake/cci/cci-config.cmake" ]
    check 'MANDIR is not used' [ -e "$other/opt/man/man3/cci.3" ]
    check 'a relative directory is taken' sh -c '! make "$@" install PREFIX=here' - "$@"
    make "$@" install LIBDIR=/opt/y/lib >"$out/log" 2>&1
    check 'LIBDIR outside of PREFIX: the files for CMake do not name the headers' \
        grep -q '"/opt/x/include"' "$other/opt/y/lib/cmake/cci/cci-config.cmake"
    make "$@" uninstall LIBDIR=/opt/y/lib >"$out/log" 2>&1
    make "$@" install >"$out/log" 2>&1
    check 'make uninstall failed' make "$@" uninstall
    check 'make uninstall leaves something' [ -z "$(find "$other" ! -type d ! -name libother.so -o -type d -name '*cci*')" ]
    check 'make uninstall takes what is not ours' [ -e "$other/opt/x/lib/a/libother.so" ]
    check 'make uninstall where nothing is left failed' make "$@" uninstall
}

# The shared library exports what cci.h declares above the end of its public part, and has the version in its name.
declared() {
    sed '/^\/\* end of header \*\/$/q; /^#if defined(CCI_TINY)/,/^#endif/d' cci.h | sed -n 's/^CCI_API [^(]*\(cci_[a-z0-9_]*\)(.*/\1/p' | LC_ALL=C sort
}
exports() {
    installed && need nm || return
    library=$root/usr/local/lib/libcci.so
    declared >"$out/declared.txt"
    check 'cci.h declares nothing' grep -qx cci_connect "$out/declared.txt"
    nm -D --defined-only "$library" | sed 's/.* //' | LC_ALL=C sort >"$out/exported.txt"
    same 'the library exports (+) other symbols than cci.h declares (-)' "$out/declared.txt" "$out/exported.txt"
    need readelf || return
    says 'soname' "libcci.so.$abi" sh -c 'readelf -d "$1" | sed -n "s/.*(SONAME).*\[\(.*\)\]/\1/p"' - "$library"
}

# in_manual TEXT: the words of standard input stand in the page.
in_manual() {
    while read -r word; do grep -qw -- "$word" .github/man/cci.3 || echo "$word"; done >"$out/missing.txt"
    check "cci.3 does not have $1: $(tr '\n' ' ' <"$out/missing.txt")" [ ! -s "$out/missing.txt" ]
}
# The options of a program's help and of its page are the same.
same_options() {
    "$root/usr/local/bin/$1" -h | grep -oE '(^|[ [,])--?[A-Za-z][a-z-]*' | tr -d ' ,[' | LC_ALL=C sort -u >"$out/help.txt"
    sed -n -e 's/^\.It Fl/Fl/p' -e 's/^\.Op Fl/Fl/p' ".github/man/$1.1" | grep -oE '^Fl [^ ]+|Fl [^ ]+|, -[a-z-]+' |
        sed -e 's/^Fl /-/' -e 's/^, /-/' | LC_ALL=C sort -u >"$out/page.txt"
    # Each program has -h, which its help need not name.
    { cat "$out/help.txt" && printf '%s\n' -h --help; } | LC_ALL=C sort -u >"$out/help-all.txt"
    { cat "$out/page.txt" && printf '%s\n' -h --help; } | LC_ALL=C sort -u >"$out/page-all.txt"
    same "$1: options of the help (-) and of the page (+) differ" "$out/help-all.txt" "$out/page-all.txt"
}
# What can be done about each status, in a line: of the header, and of the page, where it is the end of each entry.
hints() {
    sed -e ':a' -e '/\\$/{N;s/ *\\\n */ /;ta' -e '}' "$1" | grep -o 'X(CCI_[A-Z_]*, [^"]*"[^"]*", "[^"]*")' |
        sed 's/^X(\(CCI_[A-Z_]*\), [^"]*"[^"]*", "\(.*\)")$/\1 \2./' | awk '{ $2 = toupper(substr($2, 1, 1)) substr($2, 2); print }'
}
manual_hints() {
    awk '/^\.It Er / { if (text) print status, text; status = $3; text = ""; next }
         /^\.El/ { if (text) print status, text; text = "" }
         status == "" || (/^\./ && !/^\.(Fn|Va) /) { next }
         { word = $0
           if (/^\./) { word = $2 ($1 == ".Fn" ? "()" : "") ($3 ? $3 : "") }
           # A sentence begins behind one that has ended, with the line.
           text = text == "" || text ~ /\.$/ ? word : text " " word }' .github/man/cci.3
}
manual() {
    installed || return
    public=$out/public.h
    sed '/^ \* >>transport$/q' cci.h >"$public"
    sed -n 's/^CCI_API [^(]*\(cci_[a-z0-9_]*\)(.*/\1/p' "$public" | in_manual 'the functions'
    sed -n 's/^ *X(\(CCI_[A-Z_]*\),.*/\1/p' "$public" | in_manual 'the statuses'
    sed -n 's/^ *\(CCI_\(OPT\|EVENT\|CONN_ATTR\)_[A-Z_]*\)[, ].*/\1/p' "$public" | in_manual 'the values'
    sed -n 's/^#define \(CCI_\(FLAG\|CAPS\)_[A-Z_]*\) .*/\1/p' "$public" | in_manual 'the flags'
    hints "$public" >"$out/hints.txt"
    manual_hints >"$out/manual-hints.txt"
    check 'cci.h has no hints' grep -q '^CCI_ENOBUFS Get and return events' "$out/hints.txt"
    same 'hints of cci.h (-) and of cci.3 (+) differ' "$out/hints.txt" "$out/manual-hints.txt"
    for tool in cci_info cci_perf cci_cp; do same_options $tool; done
    awk '/^\.Sh/ { example = $2 == "EXAMPLES" } /^\.Ed/ { code = 0 } example && code { gsub(/\\e/, "\\"); print }
         /^\.Bd -literal/ { code = 1 }' .github/man/cci.3 >"$out/example.c"
    check 'cci.3 has no example' grep -q 'int main' "$out/example.c"
    check 'the example of cci.3 does not compile' "$cc" -I. -Wall -Werror -fsyntax-only "$out/example.c"
    need mandoc || return
    for page in .github/man/*; do
        mandoc -Tlint -W style "$page" 2>&1 | grep -v -e 'referenced manual not found' -e 'outdated mandoc.db' >"$out/lint.txt"
        check "$page: $(head -n 5 "$out/lint.txt")" [ ! -s "$out/lint.txt" ]
    done
}

# compile NAME COMPILER FLAGS...: makes and runs it, with the flags at the end.
compile() {
    name=$1 compiler=$2
    shift 2
    has "$compiler" || { skip "$part: there is no $compiler" && return; }
    check "$part: $name does not compile" "$compiler" -o "$out/user/$name" "$@" || return
    says "$part: $name" "$version" env LD_LIBRARY_PATH="$root/usr/local/lib" "$out/user/$name"
}
pkgconfig() {
    installed && need pkg-config || return
    write_users "$out/user"
    export PKG_CONFIG_PATH="$root/usr/local/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
    says 'the version of cci.pc' "$version" pkg-config --modversion cci
    # shellcheck disable=SC2046 # lists of words
    {
        compile use_c "$cc" "$out/user/use.c" $(pkg-config --cflags --libs cci)
        compile use_cpp c++ "$out/user/use.cpp" $(pkg-config --cflags --libs cci)
        compile linked_c "$cc" "$out/user/linked.c" $(pkg-config --cflags --libs cci-shared)
        compile linked_cpp c++ "$out/user/linked.cpp" $(pkg-config --cflags --libs cci-shared)
    }
    unset PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
}

# Also which versions may be asked for: this one, none, an older patch; no newer one and none of another series.
find_package() {
    installed && need cmake c++ || return
    next=${version%%.*}.$((${abi##*.} + 1))
    cmake_project find_package "foreach(wanted 99.0 $next 0.0.1...0.0.9 ${version}1)
  find_package(cci \${wanted} CONFIG QUIET)
  if(cci_FOUND)
    message(FATAL_ERROR \"found though \${wanted} was wanted\")
  endif()
endforeach()
find_package(cci CONFIG REQUIRED)
find_package(cci $abi CONFIG REQUIRED)
find_package(cci $version EXACT CONFIG REQUIRED)
find_package(cci $abi...<99 CONFIG REQUIRED)
$users" "-DCMAKE_PREFIX_PATH=$root/usr/local"
}

# From the repository, which has no file for CMake at its top, and from the archive, which has.
fetch_content() {
    unpacked && need cmake c++ || return
    cp -R "$tree" "$out/repository"
    rm -rf "$out/repository/CMakeLists.txt" "$out/repository/build"
    cmake_project fetch_repository "include(FetchContent)
FetchContent_Declare(cci SOURCE_DIR $out/repository SOURCE_SUBDIR .github/packaging/cmake)
FetchContent_MakeAvailable(cci)
$(echo "$users" | head -n 4)"
    cmake_project fetch_archive "include(FetchContent)
set(CCI_SHARED ON)
FetchContent_Declare(cci URL file://$out/dist/$archive URL_HASH SHA256=$(cut -c 1-64 "$out/dist/$archive.sha256"))
FetchContent_MakeAvailable(cci)
$users" -DCMAKE_POLICY_DEFAULT_CMP0077=NEW -DCMAKE_POLICY_DEFAULT_CMP0135=NEW
    rm -rf "$out/repository"
}

# meson_project NAME: the project's files; the caller adds the subproject.
meson_project() {
    project=$out/$1
    write_users "$project"
    mkdir -p "$project/subprojects/packagecache" "$project/subprojects/packagefiles/cci"
    printf '%s\n' "project('user', 'c', 'cpp')" "cci = dependency('cci', version: '>= $version')" \
        "executable('use_c', 'use.c', dependencies: cci)" "executable('use_cpp', 'use.cpp', dependencies: cci)" \
        >"$project/meson.build"
}
build_meson() {
    check "$part: meson does not configure" meson setup --buildtype=plain --wrap-mode=forcefallback "$project/build" "$project" || return
    check "$part: meson does not build" meson compile -C "$project/build" || return
    run_users "$project/build" headers
}
meson_wraps() {
    unpacked && need meson ninja c++ || return
    meson_project meson_archive
    cp "$out/dist/cci.wrap" "$project/subprojects/"
    cp "$out/dist/$archive" "$project/subprojects/packagecache/"
    build_meson
    # The repository as it is: meson.build comes from beside the wrap.
    meson_project meson_repository
    printf '[wrap-file]\ndirectory = repository\nsource_filename = repository.tar.gz\npatch_directory = cci\n' \
        >"$project/subprojects/cci.wrap"
    mkdir "$out/repository"
    cp cci*.h "$out/repository/"
    tar -czf "$project/subprojects/packagefiles/repository.tar.gz" -C "$out" repository
    rm -rf "$out/repository"
    cp .github/packaging/meson/meson.build "$project/subprojects/packagefiles/cci/"
    build_meson
}

# The port runs under CMake alone, with stand-ins that do what vcpkg's functions are documented to do.
write_vcpkg() {
    cat >"$1" <<'CMAKE'
set(VERSION "@version@")
set(PORT cci)
set(CURRENT_PACKAGES_DIR "@out@/vcpkg")
set(built "@out@/vcpkg-build")
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "failed: ${ARGN}")
  endif()
endfunction()
function(vcpkg_download_distfile variable)
  cmake_parse_arguments(arg "" "FILENAME;SHA512" "URLS" ${ARGN})
  file(SHA512 "@out@/dist/${arg_FILENAME}" digest)
  if(NOT digest STREQUAL arg_SHA512)
    message(FATAL_ERROR "the digest is wrong")
  endif()
  set(${variable} "@out@/dist/${arg_FILENAME}" PARENT_SCOPE)
endfunction()
function(vcpkg_extract_source_archive variable)
  cmake_parse_arguments(arg "" "ARCHIVE" "" ${ARGN})
  file(ARCHIVE_EXTRACT INPUT "${arg_ARCHIVE}" DESTINATION "${built}/src")
  set(${variable} "${built}/src/cci-${VERSION}" PARENT_SCOPE)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(arg "" "SOURCE_PATH" "OPTIONS" ${ARGN})
  run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${built}/b" "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" ${arg_OPTIONS})
endfunction()
function(vcpkg_cmake_install)
  run("${CMAKE_COMMAND}" --build "${built}/b" --target install)
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(arg "" "" "FILE_LIST" ${ARGN})
  file(COPY_FILE ${arg_FILE_LIST} "${CURRENT_PACKAGES_DIR}/share/cci/copyright")
endfunction()
include("${port}/portfile.cmake")
CMAKE
    sed -i.bak -e "s|@out@|$out|g" -e "s|@version@|$version|g" "$1"
}
vcpkg() {
    unpacked && need cmake || return
    write_vcpkg "$out/vcpkg.cmake"
    for port in "$tree/.github/packaging/vcpkg" "$out/dist/vcpkg/cci"; do
        rm -rf "$out/vcpkg" "$out/vcpkg-build"
        check "$part: the port does not build" cmake "-Dport=$port" -P "$out/vcpkg.cmake" || return
        (cd "$out/vcpkg" && find . -type f | LC_ALL=C sort) >"$out/got.txt"
        printf './%s\n' include/cci.h include/cci_sisci.h include/cci_udp.h include/cci_verbs.h lib/pkgconfig/cci.pc \
            share/cci/cci-config-version.cmake share/cci/cci-config.cmake share/cci/copyright share/cci/usage \
            share/man/man3/cci.3 >"$out/wanted.txt"
        same "$part: the port installs other files" "$out/wanted.txt" "$out/got.txt"
    done
    has c++ && cmake_project vcpkg_user "find_package(cci CONFIG REQUIRED)
$(echo "$users" | head -n 2)" "-DCMAKE_PREFIX_PATH=$out/vcpkg"
    has python3 && check 'vcpkg.json is no JSON' python3 -m json.tool .github/packaging/vcpkg/vcpkg.json
    has vcpkg || skip "$part: there is no vcpkg; stand-ins of its functions were used"
}

# The recipe runs with stand-ins for what it imports, in the order of `conan create`.
run_recipe() {
    python3 - "$1" "$2" "$version" <<'PYTHON'
import fnmatch, os, shutil, sys, types
recipe, out, version = sys.argv[1:]

def copy(conanfile, pattern, src, dst):
    for name in fnmatch.filter(os.listdir(src), pattern):
        os.makedirs(dst, exist_ok=True)
        shutil.copy(os.path.join(src, name), dst)

class ConanFile:
    cpp_info = types.SimpleNamespace(set_property=lambda name, value: properties.append((name, value)))
    info = types.SimpleNamespace(clear=lambda: None)

properties = []
sys.modules["conan"] = types.SimpleNamespace(ConanFile=ConanFile)
sys.modules["conan.tools"] = types.ModuleType("conan.tools")
sys.modules["conan.tools.files"] = types.SimpleNamespace(copy=copy, load=lambda conanfile, path: open(path).read())
names = {"__name__": "recipe"}
exec(compile(open(os.path.join(recipe, "conanfile.py")).read(), "conanfile.py", "exec"), names)
conanfile = names["CciRecipe"]()
conanfile.recipe_folder = recipe
conanfile.settings = types.SimpleNamespace(os="Linux")
conanfile.set_version()
assert conanfile.version == version
conanfile.export_sources_folder = conanfile.source_folder = os.path.join(out, "s")
conanfile.package_folder = os.path.join(out, "p")
conanfile.export_sources()
conanfile.recipe_folder = None  # what follows runs in the cache
conanfile.package()
conanfile.package_id()
conanfile.package_info()
assert ("cmake_target_name", "cci::cci") in properties
PYTHON
}
conan_recipe() {
    unpacked && need python3 || return
    check "$part: the recipe fails" run_recipe "$tree/.github/packaging/conan" "$out/conan"
    printf './%s\n' include/cci.h include/cci_sisci.h include/cci_udp.h include/cci_verbs.h licenses/LICENSE >"$out/wanted.txt"
    (cd "$out/conan/p" && find . -type f | LC_ALL=C sort) >"$out/got.txt"
    same "$part: the package has other files" "$out/wanted.txt" "$out/got.txt"
    test=.github/packaging/conan/test_package
    check "$part: the test is no Python" python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' $test/conanfile.py
    has cmake && installed && check "$part: the test does not build" cmake -S $test -B "$out/conan/t" "-DCMAKE_PREFIX_PATH=$root/usr/local" &&
        check "$part: the test does not build" cmake --build "$out/conan/t" &&
        check "$part: the test fails" "$out/conan/t/test_package"
    has conan || { skip "$part: there is no conan; stand-ins of what the recipe imports were used" && return; }
    export CONAN_HOME="$out/conan-home"
    check "$part: no profile" conan profile detect
    check "$part: conan create failed" conan create "$tree/.github/packaging/conan"
    unset CONAN_HOME
}

# Three packages, and lintian has nothing to say. Without optimisation, to be quick: so some flags of hardening are not used,
# and lintian is not asked for these.
debian() {
    unpacked && need dpkg-buildpackage dh || return
    [ -c /dev/null ] || { skip "$part: /dev/null is a file here, and debhelper would take what is in it" && return; }
    mkdir "$out/debian"
    cp -R "$tree" "$out/debian/"
    source=$out/debian/cci-$version
    cp -R .github/packaging/debian "$source/"
    chmod 755 "$source/debian/rules"
    check 'the Debian packages are not built' sh -c 'cd "$1" && DEB_CFLAGS_STRIP=-g DEB_BUILD_OPTIONS="noopt noautodbgsym" dpkg-buildpackage -b -us -uc' - \
        "$source" || return
    for package in "libcci$abi" libcci-dev cci-tools; do
        check "there is no package $package" ls "$out/debian/${package}_"*.deb
    done
    if has lintian; then
        (cd "$out/debian" && lintian --allow-root --fail-on none --suppress-tags hardening-no-fortify-functions ./*.changes) \
            2>&1 | grep -E '^[EW]:' >"$out/lintian.txt"
        check "lintian: $(cat "$out/lintian.txt")" [ ! -s "$out/lintian.txt" ]
    else
        skip "$part: there is no lintian"
    fi
    rm -rf "$source"
}

# abi.sh takes an addition and finds a change.
abi() {
    unpacked && need abidiff || return
    check 'abi.sh fails of itself' sh .github/packaging/abi.sh
    mkdir -p "$out/older/.github/packaging" "$out/broken/.github/packaging"
    for copy in older broken; do
        cp cci*.h "$out/$copy/"
        cp .github/packaging/libcci.c .github/packaging/package.sh "$out/$copy/.github/packaging/"
    done
    sed '/^CCI_API.*cci_event_type_str(.*;$/d' cci.h >"$out/older/cci.h"
    check 'abi.sh does not take an addition' sh .github/packaging/abi.sh "$out/older" .
    sed 's/^    uint32_t len;    \/\* bytes, may be 0 \*\/$/    uint64_t len;/' cci.h >"$out/broken/cci.h"
    check 'cci.h has no longer the line that is to be changed' sh -c '! cmp -s cci.h "$1/cci.h"' - "$out/broken"
    check 'abi.sh does not see a change' sh -c 'sh .github/packaging/abi.sh . "$1" | grep "^FAIL"' - "$out/broken"
}

[ $# -gt 0 ] || set -- versions archive install exports manual pkgconfig find_package fetch_content meson vcpkg conan debian abi
for part; do
    began=$(date +%s)
    case $part in
    versions | archive | install | exports | manual | pkgconfig | find_package | fetch_content | vcpkg | debian | abi) $part ;;
    meson) meson_wraps ;;
    conan) conan_recipe ;;
    *) echo "packages.sh: there is no part $part" >&2 && exit 2 ;;
    esac
    echo "$part: $(($(date +%s) - began)) s"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
