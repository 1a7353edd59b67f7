#!/usr/bin/env bash
# The time from nothing to the first picture, each in an empty root: from the archive, the wheel, the playground and the source.
#
#   ci/release/first_picture.sh                 all; needs what ci/release.sh and ci/playground.sh have built
#   ci/release/first_picture.sh archive wheel   only these: archive wheel playground source
#
# Prints a line for each with its limit in seconds. Times mean something on an idle machine only, so nothing fails by them; on a busy one,
# processor time divided by the number of processors is a bound of what an idle one takes.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
files=$target/release-files
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run=(-a netflixoss -d 10 --out /tmp --timeline /tmp/first.svg)

# measured NAME LIMIT COMMAND...: runs it and prints how long it took, and the processor time of all its processes.
measured() {
    local name=$1 limit=$2 TIMEFORMAT='%R %U %S'
    shift 2
    { time "$@" >"$work/$name.log" 2>&1; } 2>"$work/time" || {
        cat "$work/$name.log" >&2
        echo "$name: FAILED" >&2
        exit 1
    }
    awk -v name="$name" -v limit="$limit" \
        '{ printf "first picture: %-10s %6.1f s (%.1f s of processor time), at most %d s are allowed\n", name, $1, $2 + $3, limit }' "$work/time"
}

# A root with nothing but the archive.
from_archive() {
    mkdir -p "$work/archive/tmp"
    tar -C "$work/archive" --strip-components 1 -xzf "$files"/corsair-[0-9]*-x86_64-unknown-linux-musl.tar.gz
    chroot "$work/archive" /corsair "${run[@]}"
    grep -q '<svg' "$work/archive/tmp/first.svg"
}

# A root with Debian's Python and nothing else.
from_wheel() {
    local root=$target/debian-root
    cp "$files"/corsair_sim-*-manylinux*x86_64.whl "$root/tmp/"
    chroot "$root" sh -c 'rm -rf /tmp/venv /tmp/first.svg && python3.14 -m venv /tmp/venv && /tmp/venv/bin/pip install --quiet --no-index /tmp/*.whl'
    chroot "$root" /tmp/venv/bin/python -m corsair "${run[@]}"
    grep -q '<svg' "$root/tmp/first.svg"
}

from_playground() {
    NODE_PATH=$target/playground-node/node_modules node ci/playground/first_picture.mjs "$target/playground/index.html" "$(command -v chromium)"
}

# A clone without anything built; the registry's files are downloaded.
from_source() {
    git clone --quiet . "$work/clone"
    cd "$work/clone"
    CARGO_HOME=$work/cargo-home CARGO_TARGET_DIR=$work/clone/target cargo run --quiet -- -a netflixoss -d 10 --out "$work" --timeline "$work/first.svg"
    grep -q '<svg' "$work/first.svg"
}

steps=("${@:-}")
[ -n "${steps[0]}" ] || steps=(archive wheel playground source)
for step in "${steps[@]}"; do
    case $step in
    archive) measured archive 10 from_archive ;;
    wheel) measured wheel 30 from_wheel ;;
    playground) measured playground 5 from_playground ;;
    source) measured source 120 from_source ;;
    *)
        echo "first_picture: no step $step; there are archive, wheel, playground and source" >&2
        exit 2
        ;;
    esac
done
