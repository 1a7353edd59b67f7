#!/usr/bin/env bash
# Kills a run with -9 at random moments, goes on from its last checkpoint with any number of workers, and compares the digest
# and the graph file with those of a run without a stop. Asked for by hand: it takes some minutes.
#
#   ci/checkpoint.sh [KILLS]
set -euo pipefail
cd "$(dirname "$0")/.."
kills=${1:-50}
cargo build --bin corsair
corsair=$(realpath "${CARGO_TARGET_DIR:-target}/debug/corsair")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

run="-a fsm -p 20000 -d 60 --seed 3 -j --format json"
digest() { grep -o '"digest":"[^"]*"'; }
begin=$(date +%s%N)
expected=$("$corsair" $run | digest)
took=$((($(date +%s%N) - begin) / 1000000))
mv json/fsm.json expected.json
echo "without a stop: $expected in $took ms"

resumed=0
tries=0
while [ "$resumed" -lt "$kills" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt $((5 * kills)) ]; then
        echo "only $resumed of $tries runs were killed after their first checkpoint; is the machine busy?" >&2
        exit 1
    fi
    rm -rf c json
    moment=$((RANDOM * took / 32768))
    "$corsair" $run --workers $((1 + tries % 2)) --checkpoint-every 30ms --checkpoint-dir c >said 2>&1 &
    process=$!
    sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
    kill -9 $process 2>/dev/null || true
    wait $process 2>/dev/null || true
    if ! got=$("$corsair" resume c --workers $((1 + RANDOM % 3)) 2>error | digest); then
        if grep -q "no complete checkpoint\|cannot read c" error; then
            continue
        fi
        echo "killed after $moment ms:" >&2
        cat error >&2
        exit 1
    fi
    if [ "$got" != "$expected" ] || ! cmp -s json/fsm.json expected.json; then
        echo "killed after $moment ms: $got, not $expected, or another graph" >&2
        exit 1
    fi
    resumed=$((resumed + 1))
done
echo "$resumed runs went on to the same digest and the same file; $((tries - resumed)) more were killed before their first checkpoint"
