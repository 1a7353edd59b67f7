#!/usr/bin/env bash
# Searches for faults of a cluster of corsair-courier in virtual time: the program runs as it is under kills, losses of
# power, full and failing disks, partitions, pauses, steps of clocks and changes of its members, and the histories of its
# clients are checked (crates/host/real/hunt).
#
#   ci/courier/hunt.sh [RUNS] [FLAG...]   RUNS runs (default 500): half of them with three nodes, half with five, side by side
#   ci/courier/hunt.sh bug [NAME]         plants a bug in a copy of the source, finds and shrinks it, and explains it; without
#                                         NAME lists the bugs
#   ci/courier/hunt.sh bugs               plants each bug in turn; fails if one is not found within ten minutes
#
# What is found is written to target/hunt/found.
set -euo pipefail
cd "$(dirname "$0")/../.."
bugs=$PWD/crates/host/real/hunt/bugs
target=${CARGO_TARGET_DIR:-$PWD/target}/hunt
mkdir -p "$target"

# Builds the search in a source tree, and copies the program to a path.
build() {
    CARGO_TARGET_DIR=$target/build cargo build --quiet --profile hunt --manifest-path "$1/crates/host/real/Cargo.toml" \
        --package courier-hunt
    cp "$target/build/hunt/courier-hunt" "$2"
}

# Searches on two processors until one search finds something, and returns its status.
search() {
    local program=$1 out=$2 status=0 pids=() shard
    shift 2
    rm -rf "$out"
    for shard in 0 1; do
        "$program" --shard "$shard" --nodes $((3 + 2 * shard)) --out "$out/$shard" "$@" >"$target/shard-$shard.log" &
        pids+=($!)
    done
    # The first failure ends both.
    for shard in 0 1; do
        wait -n || { status=$?; break; }
    done
    kill "${pids[@]}" 2>/dev/null || true
    wait || true
    for shard in 0 1; do
        ! grep -q violated "$target/shard-$shard.log" || sed '/^[0-9]* runs/d' "$target/shard-$shard.log"
        grep '^[0-9]* runs' "$target/shard-$shard.log" | tail -n 1 || true
    done
    return "$status"
}

# Plants a bug, and searches for it.
plant() {
    local name=$1 tree=$target/tree begun=$SECONDS status=0
    head -1 "$bugs/$name.patch"
    mkdir -p "$tree"
    git ls-files -z Cargo.toml Cargo.lock rust-toolchain.toml crates | xargs -0 cp -p --parents -t "$tree"
    # Cargo notices by their times that files were planted before, or are now.
    sed -n 's/^+++ //p' "$bugs"/*.patch | sort -u | (cd "$tree" && xargs touch)
    patch --quiet --directory "$tree" --strip 0 <"$bugs/$name.patch"
    build "$tree" "$target/$name"
    echo "built in $((SECONDS - begun)) s"
    begun=$SECONDS
    search "$target/$name" "$target/found/$name" --runs 100000 --time 600 "${@:2}" || status=$?
    if [ "$status" != 1 ]; then
        echo "$name: not found in $((SECONDS - begun)) s" >&2
        return 1
    fi
    echo "$name: found, shrunk and explained in $((SECONDS - begun)) s; see $target/found/$name"
}

case ${1:-500} in
bug)
    if [ $# = 1 ]; then
        for bug in "$bugs"/*.patch; do
            echo "$(basename "$bug" .patch): $(head -1 "$bug")"
        done
        exit
    fi
    [ -f "$bugs/$2.patch" ] || { echo "hunt: no bug is named '$2'; see $0 bug" >&2; exit 2; }
    plant "${@:2}"
    ;;
bugs)
    failed=()
    for bug in "$bugs"/*.patch; do
        plant "$(basename "$bug" .patch)" --shrink 0 || failed+=("$bug")
    done
    [ ${#failed[@]} = 0 ] || { echo "not found: ${failed[*]}" >&2; exit 1; }
    ;;
*)
    runs=${1:-500}
    build "$PWD" "$target/courier-hunt"
    search "$target/courier-hunt" "$target/found/none" --runs $((runs / 2)) "${@:2}"
    ;;
esac
