#!/usr/bin/env bash
# Builds the Python of Debian's source with musl.
#
#   ci/release/musl_python.sh PREFIX     PREFIX/bin/python3 exists when it is done
#
# Needs musl-gcc. A script of its own because `set -e` has no effect in a function that is called as a condition.
set -euo pipefail

prefix=$(realpath -m "$1")
part=$prefix.part
rm -rf "$prefix" "$part"
mkdir -p "$part/lists/partial"
cat >"$part/cc" <<'CC'
#!/bin/sh
# Compiles with musl, without the directories of the C library of the machine.
for argument; do
    shift
    case $argument in
    --print-multiarch) exit ;;
    -[IL]/usr/* | -L/lib/*) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec musl-gcc "$@"
CC
chmod +x "$part/cc"
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" >"$part/sources"
apt=(apt-get -qq -o "Dir::Etc::SourceList=$part/sources" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$part/lists" -o APT::Sandbox::User=root)
cd "$part"
"${apt[@]}" update
"${apt[@]}" source --download-only python3.11
tar -xzf python3.11_*.orig.tar.gz
cd Python-3.11.*/
CC=$part/cc CFLAGS=-O1 ./configure --quiet --prefix="$prefix" --disable-test-modules --without-ensurepip
make -j "$(nproc)"
# Some modules need libraries that are not here for musl, so their installation may fail.
make -k install || [ -x "$prefix/bin/python3" ]
cd /
rm -rf "$part"
