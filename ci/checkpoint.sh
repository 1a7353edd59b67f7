#!/usr/bin/env bash
# Kills runs with SIGKILL at random moments and resumes them from their last checkpoint with one to four workers. The digest
# and all files must equal the output of an uninterrupted run. Half of the kills hit pirates, half netflixoss. Then it kills
# one process, or mpirun, of runs over two processes, and resumes them over one to three processes. Finally it writes
# checkpoints to a disk that gets full. It takes some minutes, so it only runs on request.
#
#   ci/checkpoint.sh [KILLS [KILLS OVER PROCESSES]]
set -euo pipefail
cd "$(dirname "$0")/.."
kills=${1:-100} over_processes=${2:-50}
cargo build --bin corsair --features mpi
corsair=$(realpath "${CARGO_TARGET_DIR:-target}/debug/corsair")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

digest() { grep -o '"digest":"[^"]*"'; }
outputs="json gml json_metrics csv_metrics times"

# Kills a process of a run: mpirun, or a process that mpirun has started.
kill_one_of() {
    local all victims victim
    victims=("$1")
    # shellcheck disable=SC2207
    [ "$2" = 1 ] || victims+=($(pgrep -P "$1" || true))
    all=("${victims[@]}")
    victim=${victims[RANDOM % ${#victims[@]}]}
    kill -9 "$victim" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
    # The other processes end by themselves.
    for victim in "${all[@]}"; do
        for _ in $(seq 200); do
            kill -0 "$victim" 2>/dev/null || continue 2
            sleep 0.1
        done
        echo "process $victim runs on after another one was killed" >&2
        exit 1
    done
}

# kill_and_resume FLAGS INTERVAL KILLS [PROCESSES]: kills a run with these flags, which saves a checkpoint every INTERVAL, until
# KILLS killed runs have been resumed.
kill_and_resume() {
    local run="$1" every=$2 kills=$3 processes=${4:-1} begin expected took resumed=0 tries=0 moment process got over=
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
        [ "$processes" = 1 ] || over="--processes $processes"
        "$corsair" $run --workers $((1 + tries % 2)) $over --checkpoint-every "$every" --checkpoint-dir c >said 2>&1 &
        process=$!
        sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
        kill_one_of $process "$processes"
        # Unfinished files of the killed process.
        find $outputs -name '.*' -type f -delete 2>/dev/null || true
        [ "$processes" = 1 ] || over="--processes $((1 + RANDOM % 3))"
        if ! got=$("$corsair" resume c --workers $((1 + RANDOM % 4)) $over 2>error | digest); then
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
    echo "$resumed resumed runs have the same digest and the same files; $((tries - resumed)) more were killed before their first checkpoint"
}

# The services of netflixoss take some 20 ms for their minute; most of the time goes to the files.
kill_and_resume "-a fsm -p 20000 -d 60 --seed 3 -j -g --format json" 30ms $((kills / 2))
kill_and_resume "-a netflixoss -d 60 --seed 3 -j -g -c --flow-format all --timeline times/t.csv --format json" 3ms $(((kills + 1) / 2))
kill_and_resume "-a fsm -p 20000 -d 60 --seed 3 -j -g --format json" 30ms $((over_processes / 2)) 2
kill_and_resume "-a netflixoss -d 60 --seed 3 -j -g -c --flow-format all --timeline times/t.csv --format json" 3ms $(((over_processes + 1) / 2)) 2

# The disk gets full while a run writes checkpoints: the run still ends with the expected digest, and the last complete
# checkpoint can be resumed.
disk_full() {
    local run="$1" over="$2" expected got code=0
    rm -rf c small $outputs
    expected=$("$corsair" $run | digest)
    mkdir small
    if ! mount -t tmpfs -o size="$3" tmpfs small 2>/dev/null; then
        echo "left out: full disks, which need a right to mount"
        return
    fi
    got=$("$corsair" $run $over --checkpoint-every 20ms --checkpoint-dir small 2>error | digest) || code=$?
    if [ "$code" != 0 ] || [ "$got" != "$expected" ]; then
        echo "with a full disk '$over' ends with $code: $got, not $expected; $(tail -3 error)" >&2
        umount small
        exit 1
    fi
    if ! grep -q "No space left" error; then
        echo "the disk did not get full: $(tail -3 error)" >&2
        umount small
        exit 1
    fi
    if [ -n "$(find small -name 'manifest.json')" ]; then
        got=$("$corsair" resume small $over --checkpoint-dir c 2>error | digest)
        [ "$got" = "$expected" ] || { echo "from a full disk: $got, not $expected; $(tail -3 error)" >&2; umount small; exit 1; }
    fi
    echo "${over:-one process}: $(find small -name manifest.json | wc -l) checkpoints on a full disk, and the digest of a run without"
    umount small
}
for over in "" "--processes 2" "--processes 3"; do
    disk_full "-a fsm -p 20000 -d 200 --seed 3 --format json" "$over" 1500k
    disk_full "-a fsm -p 20000 -d 200 --seed 3 --format json" "$over" 300k
done
