#!/usr/bin/env bash
# Kills runs with -9 at random moments, goes on from their last checkpoint with any number of workers, and compares the digest
# and all files with those of a run without a stop: half of the kills with pirates, half with netflixoss. Asked for by hand: it
# takes some minutes.
#
#   ci/checkpoint.sh [KILLS]
set -euo pipefail
cd "$(dirname "$0")/.."
kills=${1:-100}
cargo build --bin corsair
corsair=$(realpath "${CARGO_TARGET_DIR:-target}/debug/corsair")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

digest() { grep -o '"digest":"[^"]*"'; }
outputs="json gml json_metrics csv_metrics times"

# Kills a run of these flags so often.
kill_and_go_on() {
    local run="$1" kills=$2 begin expected took resumed=0 tries=0 moment process got
    rm -rf c expected $outputs
    mkdir -p expected times
    begin=$(date +%s%N)
    expected=$("$corsair" $run | digest)
    took=$((($(date +%s%N) - begin) / 1000000))
    for output in $outputs; do
        if [ -d "$output" ]; then mv "$output" expected; fi
    done
    echo "$run: $expected in $took ms, $(find expected -type f | wc -l) files"
    while [ "$resumed" -lt "$kills" ]; do
        tries=$((tries + 1))
        if [ "$tries" -gt $((5 * kills)) ]; then
            echo "only $resumed of $tries runs were killed after their first checkpoint; is the machine busy?" >&2
            exit 1
        fi
        rm -rf c $outputs
        mkdir times
        moment=$((RANDOM * took / 32768))
        "$corsair" $run --workers $((1 + tries % 2)) --checkpoint-every 30ms --checkpoint-dir c >said 2>&1 &
        process=$!
        sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
        kill -9 $process 2>/dev/null || true
        wait $process 2>/dev/null || true
        # What the killed process was writing beside its places.
        find $outputs -name '.*' -type f -delete 2>/dev/null || true
        if ! got=$("$corsair" resume c --workers $((1 + RANDOM % 4)) 2>error | digest); then
            if grep -q "no complete checkpoint\|cannot read c" error; then
                continue
            fi
            echo "killed after $moment ms:" >&2
            cat error >&2
            exit 1
        fi
        if [ "$got" != "$expected" ]; then
            echo "killed after $moment ms: $got, not $expected" >&2
            exit 1
        fi
        for output in $(cd expected && ls); do
            if ! diff -r "expected/$output" "$output"; then
                echo "killed after $moment ms: other files" >&2
                exit 1
            fi
        done
        resumed=$((resumed + 1))
    done
    echo "$resumed runs went on to the same digest and the same files; $((tries - resumed)) more were killed before their first checkpoint"
}

kill_and_go_on "-a fsm -p 20000 -d 60 --seed 3 -j -g --format json" $((kills / 2))
kill_and_go_on "-a netflixoss -d 60 --seed 3 -j -g -c --flow-format all --timeline times/t.csv --format json" $(((kills + 1) / 2))
