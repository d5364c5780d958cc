#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# package.sh lib | install | uninstall | dist | version | soname - what `make lib`, `make install` and the like do.
#
# The Makefile hands over CC, CPPFLAGS, CFLAGS, LDFLAGS, LDLIBS, DESTDIR and the directories. The version stands in cci.h and
# nowhere else; tests/tools/packages.sh checks the copies that recipes need.
set -eu
umask 022
cd "$(dirname "$0")/../.."
here=.github/packaging

die() {
    echo "package.sh: $*" >&2
    exit 1
}

version_part() {
    sed -n "s/^#define CCI_VERSION_$1 \([0-9][0-9]*\)$/\1/p" cci.h
}
major=$(version_part MAJOR) minor=$(version_part MINOR) patch=$(version_part PATCH)
version=$major.$minor.$patch
# A release with another number here may break programs. Before 1.0 that is every minor one: see .github/CHANGELOG.md.
abi=$major
[ "$major" -gt 0 ] || abi=0.$minor

headers='cci.h cci_udp.h cci_verbs.h cci_sisci.h'
tools='cci_info cci_perf cci_cp'
case $(uname -s) in
Darwin) shared=libcci.$version.dylib soname=libcci.$abi.dylib link=libcci.dylib ;;
*) shared=libcci.so.$version soname=libcci.so.$abi link=libcci.so ;;
esac

# ---- the shared library -------------------------------------------------------------------------------------------------

# The directory of the installed library is part of its name on macOS.
build_lib() {
    mkdir -p build
    case $(uname -s) in
    Darwin) set -- -dynamiclib -install_name "$LIBDIR/$soname" -current_version "$version" -compatibility_version "$abi" ;;
    *) set -- -shared "-Wl,-soname,$soname" ;;
    esac
    # shellcheck disable=SC2086 # lists of words
    ${CC:-cc} ${CFLAGS:-} ${CPPFLAGS:-} -fPIC -fvisibility=hidden -I. "$@" ${LDFLAGS:-} -o build/libcci.so \
        $here/libcci.c -pthread ${LDLIBS:-} || return
    [ "$(uname -s)" = Darwin ] || ln -sf libcci.so "build/$soname" # what a program linked with it looks for when it starts
}

# ---- installing ---------------------------------------------------------------------------------------------------------

# put MODE SOURCE TARGET: copies a file; a program that runs keeps its old file.
put() {
    mkdir -p "$DESTDIR$(dirname "$3")"
    rm -f "$DESTDIR$3"
    cp "$2" "$DESTDIR$3"
    chmod "$1" "$DESTDIR$3"
}
# link_to TEXT TARGET
link_to() {
    rm -f "$DESTDIR$2"
    ln -s "$1" "$DESTDIR$2"
}
# drop ANYTHING TARGET...: the reverse of both.
drop() {
    for target; do :; done
    rm -f "$DESTDIR$target"
}

# each_file PUT LINK: calls PUT MODE SOURCE TARGET and LINK TEXT TARGET for all that is installed, so that install and
# uninstall have the same list.
each_file() {
    for file in $headers; do $1 644 "$file" "$INCLUDEDIR/$file"; done
    for file in $tools; do
        $1 755 "build/$file" "$BINDIR/$file"
        $1 644 ".github/man/$file.1" "$MANDIR/man1/$file.1"
    done
    $1 644 .github/man/cci.3 "$MANDIR/man3/cci.3"
    $1 755 build/libcci.so "$LIBDIR/$shared"
    $2 "$shared" "$LIBDIR/$soname"
    $2 "$soname" "$LIBDIR/$link"
    $1 644 build/package/cci.pc "$LIBDIR/pkgconfig/cci.pc"
    $1 644 build/package/cci-shared.pc "$LIBDIR/pkgconfig/cci-shared.pc"
    $1 644 build/package/cci-config.cmake "$LIBDIR/cmake/cci/cci-config.cmake"
    $1 644 build/package/cci-config-version.cmake "$LIBDIR/cmake/cci/cci-config-version.cmake"
    $1 644 LICENSE "$DOCDIR/LICENSE"
    $1 644 .github/CHANGELOG.md "$DOCDIR/CHANGELOG.md"
}

# below VARIABLE DIRECTORY: the directory as text of a file that may be moved together with the prefix.
below() {
    case $2 in
    "$PREFIX"/*) echo "\${$1}${2#"$PREFIX"}" ;;
    *) echo "$2" ;;
    esac
}

# fill_in FILE: a template with the words between @ replaced. CMake finds the prefix from where its files lie, so these must
# be below it.
fill_in() {
    cmake_includedir=$INCLUDEDIR cmake_libdir=$LIBDIR up=.
    case $LIBDIR in
    "$PREFIX"/*)
        up=$(echo "${LIBDIR#"$PREFIX"/}/cmake/cci" | sed 's|[^/][^/]*|..|g')
        cmake_includedir=$(below _cci_prefix "$INCLUDEDIR")
        cmake_libdir=$(below _cci_prefix "$LIBDIR")
        ;;
    esac
    sed -e "s|@VERSION@|$version|g" -e "s|@PREFIX@|$PREFIX|g" -e "s|@UP@|$up|g" -e "s|@SHARED@|$link|g" \
        -e "s|@PC_INCLUDEDIR@|$(below prefix "$INCLUDEDIR")|g" -e "s|@PC_LIBDIR@|$(below prefix "$LIBDIR")|g" \
        -e "s|@CMAKE_INCLUDEDIR@|$cmake_includedir|g" -e "s|@CMAKE_LIBDIR@|$cmake_libdir|g" "$here/$1.in"
}

# Names of directories stand as they are in scripts of sh and sed, and in files of pkg-config and CMake.
check_directories() {
    for directory in "$PREFIX" "$BINDIR" "$INCLUDEDIR" "$LIBDIR" "$MANDIR" "$DOCDIR"; do
        case $directory in
        *[!A-Za-z0-9_./+~:@%,=-]*) die "a directory's name has strange characters: $directory" ;;
        /*) ;;
        *) die "a directory's name is not absolute: $directory" ;;
        esac
    done
}

install_all() {
    check_directories
    mkdir -p build/package
    for file in cci.pc cci-shared.pc cci-config.cmake cci-config-version.cmake; do fill_in $file >build/package/$file; done
    each_file put link_to
}

# Directories of our own go too, others stay.
uninstall_all() {
    check_directories
    each_file drop drop
    for directory in "$LIBDIR/cmake/cci" "$DOCDIR"; do
        [ ! -d "$DESTDIR$directory" ] || rmdir "$DESTDIR$directory" 2>/dev/null ||
            echo "uninstall: $DESTDIR$directory has other files and stays"
    done
}

# ---- the archive --------------------------------------------------------------------------------------------------------

# What is released: the files that git knows; in an unpacked archive all but what this script makes.
released() {
    if [ -e .git ] && git ls-files >/dev/null 2>&1; then
        git ls-files | while read -r file; do [ ! -f "$file" ] || echo "$file"; done
    else
        find . -path ./build -prune -o -path ./.git -prune -o -type f -print | sed 's|^\./||' |
            grep -vxE 'CMakeLists\.txt|meson\.build'
    fi | LC_ALL=C sort
}

# The time of all files: SOURCE_DATE_EPOCH, or that of the last commit, which the files of an archive have too.
release_time() {
    if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
        echo "$SOURCE_DATE_EPOCH"
    elif [ -e .git ] && git log -1 --format=%ct 2>/dev/null; then
        :
    else
        date -r cci.h +%s
    fi
}

# stage DIRECTORY: a copy of the files, and at its top the build files that CMake and Meson look for there.
stage() {
    rm -rf "$1"
    mkdir -p "$1"
    released | tar -cf - -T - | tar -xf - -C "$1"
    cp $here/cmake/CMakeLists.txt $here/meson/meson.build "$1/"
}

# The same files give the same bytes: names in order, one time, no owner, modes without the umask, no time in gzip's header.
archive() {
    (cd "$1" && find "$2" | LC_ALL=C sort | tar --format=ustar --no-recursion --owner=0 --group=0 --numeric-owner \
        --mode=a-st,u=rwX,go=rX "--mtime=@$3" -cf - -T -) | gzip -9n
}

# bill_of_materials STAGE DIGEST TIME: SPDX 2.3 as JSON, of the archive and of each file in it.
bill_of_materials() {
    (cd "$1" && find . -type f | LC_ALL=C sort | xargs sha1sum) >"$work/sha1"
    (cd "$1" && find . -type f | LC_ALL=C sort | xargs sha256sum) | cut -c 1-64 | paste -d ' ' - "$work/sha1" >"$work/files"
    (cd "$1" && find . -type f | LC_ALL=C sort |
        xargs grep -l 'SPDX-License-Identifier: MIT OR Unlicense' | sed 's/^/licensed /') >"$work/licensed"
    code=$(cut -c 1-40 "$work/sha1" | LC_ALL=C sort | tr -d '\n' | sha1sum | cut -c 1-40)
    awk -v version="$version" -v digest="$2" -v code="$code" -v created="$(date -u -d "@$3" +%Y-%m-%dT%H:%M:%SZ)" \
        -v copyright="$(sed -n 's/^\(Copyright .*\)$/\1/p' LICENSE)" -f $here/spdx.awk "$work/licensed" "$work/files"
}

# Recipes that want the archive's address and digest.
recipes() {
    mkdir -p build/dist/vcpkg/cci
    url=${URL:-https://example.org/cci}/cci-$version.tar.gz
    sed -e "s|@VERSION@|$version|g" -e "s|@URL@|$url|g" -e "s|@SHA256@|$1|g" $here/meson/cci.wrap.in >build/dist/cci.wrap
    sed -e "s|^set(cci_url .*|set(cci_url \"$url\")|" -e "s|^set(cci_sha512 .*|set(cci_sha512 $2)|" \
        $here/vcpkg/portfile.cmake >build/dist/vcpkg/cci/portfile.cmake
    cp $here/vcpkg/vcpkg.json $here/vcpkg/usage build/dist/vcpkg/cci/
}

dist() {
    tar --version 2>/dev/null | grep -q GNU || die 'make dist needs GNU tar'
    if [ -e .git ] && [ -n "$(git status --porcelain 2>/dev/null)" ]; then
        echo 'package.sh: the archive has changes that are not committed' >&2
    fi
    name=cci-$version
    work=build/package
    rm -rf build/dist "$work"
    mkdir -p build/dist "$work"
    time=$(release_time)
    stage "$work/$name"
    archive "$work" "$name" "$time" >"build/dist/$name.tar.gz"
    (cd build/dist && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
    digest=$(cut -c 1-64 "build/dist/$name.tar.gz.sha256")
    bill_of_materials "$work/$name" "$digest" "$time" >"build/dist/$name.spdx.json"
    recipes "$digest" "$(sha512sum "build/dist/$name.tar.gz" | cut -c 1-128)"
    rm -rf "$work"
    echo "build/dist/$name.tar.gz"
}

case ${1:-} in
soname) echo "$soname" ;;
version) echo "$version" ;;
lib) build_lib ;;
install) install_all ;;
uninstall) uninstall_all ;;
dist) dist ;;
*) echo "usage: $0 lib | install | uninstall | dist | version | soname" >&2 && exit 2 ;;
esac
