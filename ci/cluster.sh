#!/usr/bin/env bash
# Runs over several processes that mpirun starts: they have the results of one process, and end clearly if a process fails.
#
#   ci/cluster.sh quick    one seed, files, and a checkpoint: seconds
#   ci/cluster.sh          more seeds, processes and workers; processes that are killed and stopped; bad inputs
#
# Needs an MPI library and libclang, and installs Debian's packages if that is permitted.
# Guarantees: cluster-1, cluster-2, cluster-3, cluster-4, cluster-5.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "left out: runs over several processes need MPI and libclang (libopenmpi-dev openmpi-bin libclang-dev)"
        exit 0
    fi
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libopenmpi-dev openmpi-bin libclang-dev
fi

cargo clippy -p corsair-cluster --features mpi --all-targets -- -D warnings
cargo build --bin corsair --features mpi
corsair="${CARGO_TARGET_DIR:-$PWD/target}/debug/corsair"
work=$(mktemp -d)
started=()
finish() {
    # When mpirun ends, its processes end as well.
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT
# Options for more processes than cores, and for containers.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
launch=(mpirun --oversubscribe --bind-to none)

fail() {
    echo "cluster: $*" >&2
    exit 1
}

# Prints the digest of a run with these flags.
digest() {
    "$corsair" "$@" --format json | sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p'
}

seeds=2 all_processes="1 2 3 4" all_workers="1 2"
[ "${1:-}" != quick ] || { seeds=1 all_processes=2 all_workers=1; }

# These flags make the same run on one process and on several.
same() {
    local seed processes workers alone together
    for seed in $(seq "$seeds"); do
        alone=$(digest "$@" --seed "$seed" --workers 1)
        [ -n "$alone" ] || fail "no digest of seed $seed of $*"
        for processes in $all_processes; do
            for workers in $all_workers; do
                together=$(digest "$@" --seed "$seed" --processes "$processes" --workers "$workers")
                [ "$alone" = "$together" ] ||
                    fail "$* with seed $seed: $alone alone, '$together' on $processes processes with $workers workers"
            done
        done
    done
    echo "cluster: $2: $seeds seeds have one digest on $all_processes processes with $all_workers workers"
}
model=(-a fsm -p 3000 -d 500ms -kv chat:20ms)
services=(-a netflixoss -d 1)
same "${model[@]}"
same "${services[@]}"

# Runs corsair with its files below the given directory, and keeps the printed lines that do not depend on the clock or the
# directory. The files of a run over several processes must equal the files of a single process, byte for byte.
files() {
    local name=$1
    shift
    "$corsair" "$@" --out "$work/$name" >"$work/$name.said"
    # Removes wall-clock times and file locations from the summary.
    grep -vE '^corsair: [0-9]|^fsm: Delivered|^  (messages|time|peak memory|process|file) ' "$work/$name.said" >"$work/$name.log"
}
for run in "${model[*]} -g -j -m --per-actor" "${services[*]} -g -j -c -m --timeline $work/t.csv --per-actor"; do
    read -ra flags <<<"$run"
    files one "${flags[@]}" "$work/actors.one"
    [ ! -e "$work/t.csv" ] || mv "$work/t.csv" "$work/t.one"
    for processes in $all_processes; do
        files many "${flags[@]}" "$work/actors.many" --processes "$processes"
        diff -r "$work/one" "$work/many" >/dev/null || fail "$run writes other files on $processes processes"
        cmp "$work/actors.one" "$work/actors.many"
        cmp "$work/one.log" "$work/many.log"
        [ ! -e "$work/t.one" ] || cmp "$work/t.one" "$work/t.csv"
        rm -r "$work/many"
    done
    rm -r "$work/one"
done
echo "cluster: files on $all_processes processes are those of one, byte for byte"

# Prints a summary without the parts that depend on the clock, the machine or the flags.
essence() {
    python3 -c '
import json, sys
said = json.loads(sys.stdin.readlines()[-1])
leave_out = ("wall", "workers", "peak", "delivered", "per_second", "files", "process")
print(json.dumps({k: v for k, v in said.items() if not any(part in k for part in leave_out)}, sort_keys=True))'
}

# Compares the timeline with the timeline of a single process, if the flags ask for one.
over_time() {
    [ ! -e "$work/t.one" ] || cmp "$work/t.one" "$work/t.csv" || fail "another timeline"
}

# Saves runs over one, two and three processes, and resumes each over other numbers of processes.
saved_runs() {
    local at=$1 over resumed alone from
    shift
    rm -f "$work/t.csv" "$work/t.one"
    alone=$("$corsair" "$@" --out "$work/alone" --format json | essence)
    [ ! -e "$work/t.csv" ] || mv "$work/t.csv" "$work/t.one"
    for from in "--processes 2 --workers 1" "--processes 3 --workers 2" "--workers 2"; do
        # shellcheck disable=SC2086
        resumed=$("$corsair" "$@" $from --out "$work/saved" --checkpoint-dir "$work/checkpoints" --checkpoint-at "$at" \
            --format json | essence)
        [ "$alone" = "$resumed" ] || fail "$* $from, saved on the way: $resumed, not $alone"
        over_time
        diff -r "$work/alone" "$work/saved" >/dev/null || fail "$* $from, saved on the way, writes other files"
        for checkpoint in "$work"/checkpoints/0*-asked; do
            for over in "" "--processes 2" "--processes 3 --workers 2"; do
                [ "$from$over" != "--workers 2" ] || continue
                # shellcheck disable=SC2086
                resumed=$("$corsair" resume "$checkpoint" $over --format json --out "$work/resumed" | essence)
                [ "$alone" = "$resumed" ] || fail "$* $from, $checkpoint resumed with '$over': $resumed, not $alone"
                over_time
                diff -r "$work/alone" "$work/resumed" >/dev/null || fail "$* $from, $checkpoint resumed with '$over', writes other files"
                rm -r "$work/resumed"
            done
        done
        leftover=$(find "$work/checkpoints" "$work/saved" -name '.*' | head -3)
        [ -z "$leftover" ] || fail "left: $leftover"
        rm -r "$work/checkpoints" "$work/saved"
    done
    rm -r "$work/alone"
    echo "cluster: $2: checkpoints of one, two and three processes resume over one, two and three, with equal files"
}
# A part with a byte that has changed is refused by its name, by whichever process needs it, and so is one that is missing.
refused() {
    local said
    if said=$("$corsair" resume "$work/checkpoints" --processes 2 --format json 2>&1); then
        fail "$1 was not noticed: $said"
    fi
    grep -q "$2" <<<"$said" || fail "$1: $said"
}
"$corsair" "${model[@]}" --checkpoint-at 200ms --checkpoint-dir "$work/checkpoints" --workers 2 >/dev/null
part=$work/checkpoints/000001-asked/part-0002
cp "$part" "$work/good"
bytes=$(stat -c %s "$part")
for place in 0 1000 $((bytes / 3)) $((bytes - 3000)) $((bytes - 5)) $((bytes - 1)); do
    byte=$(od -An -tu1 -j "$place" -N1 "$part")
    printf "\\x$(printf %x $((byte ^ 16)))" | dd of="$part" bs=1 seek="$place" conv=notrunc status=none
    refused "a changed byte at $place" part-0002
    cp "$work/good" "$part"
done
truncate -s -1 "$part"
refused "a byte less" part-0002
rm "$part"
refused "a missing part" part-0002
rm -r "$work/checkpoints"
echo "cluster: parts that are cut or changed are refused by their names"

saved_runs 200ms,350ms "${model[@]}" -g -j
saved_runs 700ms,1400ms "${services[@]}" -g -j -c --timeline "$work/t.csv"

# A branch (`resume` with --until, --seed-from-here or --set) over several processes has the same result as over one process.
branched() {
    local resume alone over
    "$corsair" "$@" --checkpoint-at 300ms --checkpoint-dir "$work/checkpoints" --workers 2 >/dev/null
    for resume in "${branches[@]}"; do
        # shellcheck disable=SC2086
        alone=$("$corsair" resume "$work/checkpoints" $resume --format json | essence)
        for over in "--processes 2" "--processes 3 --workers 2"; do
            # shellcheck disable=SC2086
            together=$("$corsair" resume "$work/checkpoints" $resume $over --format json | essence)
            [ "$alone" = "$together" ] || fail "$* resumed with $resume $over: $together, not $alone"
        done
    done
    rm -r "$work/checkpoints"
    echo "cluster: $2: branches (${#branches[@]}) are the same over one, two and three processes"
}
branches=("--until 450ms" "--until 300ms" "--seed-from-here 9")
branched "${model[@]}"
printf '%s' '{"arch": "x", "load": {"www": {"rate": 200, "arrivals": "poisson", "requests": {"web.get": 1}}}, "services": [
    {"name": "www", "package": "denominator", "count": 3, "regions": 0, "dependencies": ["web"]},
    {"name": "web", "package": "service", "count": 90, "regions": 1, "concurrency": 2,
     "endpoints": [{"name": "get", "steps": [{"work": "2ms"}]}]}]}' >"$work/x_arch.json"
work_time=services.web.endpoints.get.steps.0.work
branches+=("--set load=250%" "--set load.www.rate=500 --seed-from-here 4" "--set $work_time=9ms --until 800ms"
    '--set services.web.faults=[{"kind":"kill","at":"1s","for":"200ms"}]')
branched -a "$work/x_arch.json" -d 2

# The run is saved whenever its files have grown by this size.
"$corsair" "${model[@]}" -d 5 -j --out "$work/grown" --processes 2 --checkpoint-every 300kB --checkpoint-dir "$work/checkpoints" \
    >"$work/said"
[ -d "$work/checkpoints/000001" ] || fail "nothing was saved by bytes: $(cat "$work/said")"
alone=$("$corsair" "${model[@]}" -d 5 -j --out "$work/alone" --format json | essence)
resumed=$("$corsair" resume "$work/checkpoints" --out "$work/grown" --format json | essence)
[ "$alone" = "$resumed" ] || fail "saved by bytes: $resumed, not $alone"
diff -r "$work/alone" "$work/grown" >/dev/null || fail "saved by bytes, it writes other files"
rm -r "$work/checkpoints" "$work/alone" "$work/grown"
echo "cluster: it is saved by the bytes of its files"

# The message log of a resumed run continues after the line that the run names.
logged() { grep -E '^([0-9]|fsm: (Delivered|Shutdown|Exit))' "$1" | sed 's/^fsm: Delivered.*/fsm: Delivered/' || true; }
for run in "${model[*]}" "${services[*]}"; do
    read -ra flags <<<"$run"
    "$corsair" "${flags[@]}" -m >"$work/all"
    "$corsair" "${flags[@]}" -m --processes 2 --checkpoint-at 300ms --checkpoint-dir "$work/checkpoints" >/dev/null
    for over in "--processes 2" "--processes 3" ""; do
        # shellcheck disable=SC2086
        "$corsair" resume "$work/checkpoints" $over >"$work/rest"
        line=$(sed -n 's/.*continues after its line \([0-9]*\).*/\1/p' "$work/rest")
        [ -n "$line" ] || fail "$run: no line is named: $(head -3 "$work/rest")"
        cmp <(logged "$work/all" | tail -n +$((line + 1))) <(logged "$work/rest") || fail "$run: another log with '$over'"
    done
    rm -r "$work/checkpoints"
done
echo "cluster: logs of messages continue after the line that the checkpoint names"
[ "${1:-}" != quick ] || exit 0

# Prints the processes that mpirun has started; mpirun is process $1 or was started by it.
ranks() {
    local mpirun
    mpirun=$(pgrep -P "$1" mpirun || echo "$1")
    pgrep -P "$mpirun" corsair
}

# SIGUSR1 to any process saves the run.
"$corsair" "${services[@]}" -d 600 --workers 1 --format json >"$work/unsaved"
for who in 1 2; do
    "$corsair" "${services[@]}" -d 600 --workers 1 --processes 2 --checkpoint-dir "$work/checkpoints" --format json \
        >"$work/said" 2>&1 &
    parent=$!
    started+=("$parent")
    until [ "$(ranks "$parent" | wc -l)" = 2 ]; do sleep 0.05; done
    asked=$(ranks "$parent" | sed -n "${who}p")
    # Waits until the process has a handler (tenth bit of the caught signals), because the signal would end the process otherwise.
    until (( 0x$(awk '/SigCgt/ { print $2 }' "/proc/$asked/status") >> 9 & 1 )); do sleep 0.02; done
    kill -USR1 "$asked"
    wait "$parent" || fail "after SIGUSR1 to process $who: $(cat "$work/said")"
    [ -d "$work"/checkpoints/000001-asked ] || fail "SIGUSR1 to process $who saved nothing: $(cat "$work/said")"
    [ "$(essence <"$work/unsaved")" = "$("$corsair" resume "$work/checkpoints" --processes 2 --format json | essence)" ] ||
        fail "the checkpoint of SIGUSR1 resumes to a different end"
    rm -r "$work/checkpoints"
done
echo "cluster: SIGUSR1 to any process saves all"

# Windows of megabytes, because MPI transfers large messages differently from small ones.
alone=$(digest -a fsm -p 200000 -d 1 --workers 1)
together=$(digest -a fsm -p 200000 -d 1 --workers 1 --processes 2)
[ "$alone" = "$together" ] || fail "200,000 pirates: $alone alone, '$together' together"
echo "cluster: windows of megabytes arrive"

# Runs mpirun with these arguments. It must exit with 2 within $2 seconds and print a line that matches $1.
refused_run() {
    local says=$1 within=$2 code=0
    shift 2
    timeout "$within" "$@" >"$work/out" 2>"$work/said" || code=$?
    [ "$code" = 2 ] || fail "$* ended with $code: $(cat "$work/said")"
    grep -Eq "^corsair: .*($says)" "$work/said" || fail "$* says $(cat "$work/said"), not $says"
    [ "$(grep -Ec "^corsair: .*($says)" "$work/said")" = 1 ] || fail "$* says it more than once: $(cat "$work/said")"
    ! grep -q digest "$work/out" || fail "$* printed $(cat "$work/out")"
}

refused_run "process 1 and process 0 have different flags" 30 \
    "${launch[@]}" -n 1 "$corsair" "${model[@]}" --mpi : -n 1 "$corsair" "${model[@]}" --mpi --seed 5
refused_run "process 1 and process 0 have different numbers of workers" 30 \
    "${launch[@]}" -n 1 "$corsair" "${model[@]}" --mpi --workers 1 : -n 1 "$corsair" "${model[@]}" --mpi --workers 2
# A program that reports another version: the same file with a different number in it.
version=$("$corsair" --version | sed 's/.* //')
sed "s/corsair $version/corsair 9.9.9/g" "$corsair" >"$work/other"
chmod +x "$work/other"
refused_run "process 1 and process 0 are different versions of the program" 30 \
    "${launch[@]}" -n 1 "$corsair" "${model[@]}" --mpi : -n 1 "$work/other" "${model[@]}" --mpi
# The definitions differ although the flags are equal, because each process has its own directory.
mkdir "$work/here" "$work/there"
echo '{"arch": "x", "services": [{"name": "a", "package": "service", "count": 1, "regions": 1}]}' >"$work/here/x_arch.json"
sed 's/"count": 1/"count": 2/' "$work/here/x_arch.json" >"$work/there/x_arch.json"
refused_run "different flags or another definition" 30 \
    "${launch[@]}" -n 1 -wdir "$work/here" "$corsair" -a x_arch.json -d 1 --mpi \
    : -n 1 -wdir "$work/there" "$corsair" -a x_arch.json -d 1 --mpi
refused_run "cannot be sent to another process" 30 "${launch[@]}" -n 3 "$corsair" -a fsm --form async --mpi
refused_run "/dev/null/out" 30 "${launch[@]}" -n 3 "$corsair" "${model[@]}" -j --out /dev/null/out --mpi
refused_run "leave one of them out" 30 "$corsair" "${model[@]}" --processes 2 --cpuprofile "$work/profile"
for flag in --hosts --process --secret-file --meet-within --restarts; do
    refused_run "$flag was removed: .*(mpirun|scheduler|MPI)" 30 "$corsair" "${model[@]}" "$flag" 1
done
refused_run "mpirun, which starts the processes, is not installed; install an MPI library" 30 \
    env PATH=/nowhere "$corsair" "${model[@]}" --processes 2
echo "cluster: other flags, definitions, workers and versions, bad inputs, and a directory that cannot be written are refused"

# Without a directory that all processes share, the run ends as usual and reports that it was not saved.
(
    "${launch[@]}" -n 1 -wdir "$work/here" "$corsair" "${model[@]}" --mpi --workers 1 --checkpoint-at 200ms --checkpoint-dir saved \
        : -n 1 -wdir "$work/there" "$corsair" "${model[@]}" --mpi --workers 1 --checkpoint-at 200ms --checkpoint-dir saved
) >"$work/out" 2>"$work/said" || fail "without a shared directory: $(cat "$work/said")"
grep -q "^corsair: --checkpoint-dir: .*part-0002" "$work/said" || fail "without a shared directory it says $(cat "$work/said")"
grep -q "$(digest "${model[@]}")" "$work/out" || fail "without a shared directory there is another digest"
[ ! -e "$work/here/saved/000001-asked" ] || fail "a checkpoint without all of its parts was made"
echo "cluster: a checkpoint directory that is not shared is reported"

# The run loses a process: it ends and names the last checkpoint, from which it is resumed.
long=("${model[@]}" -d 60 -j --workers 1)
alone=$("$corsair" "${long[@]}" --out "$work/alone" --format json | essence)
lost() {
    local signal=$1 victim=$2 processes=$3 parent killed until code=0
    shift 3
    rm -rf "$work/checkpoints" "$work/lost"
    "${launch[@]}" -n "$processes" "$corsair" "${long[@]}" --out "$work/lost" --checkpoint-every 500ms \
        --checkpoint-dir "$work/checkpoints" --mpi "$@" >"$work/out" 2>"$work/said" &
    parent=$!
    started+=("$parent")
    until [ -d "$work/checkpoints/000001" ] || ! kill -0 "$parent" 2>/dev/null; do sleep 0.1; done
    killed=$(ranks "$parent" | sed -n "${victim}p")
    kill "-$signal" "$killed" || fail "the run was over before a process was lost: $(cat "$work/said")"
    until=$((SECONDS + 30))
    while kill -0 "$parent" 2>/dev/null; do
        [ "$SECONDS" -lt "$until" ] || fail "after $signal to process $victim the run continues: $(cat "$work/said")"
        sleep 0.1
    done
    wait "$parent" || code=$?
    [ "$code" != 0 ] || fail "a run that lost a process succeeded: $(cat "$work/out")"
    ! grep -q digest "$work/out" || fail "a run that lost a process printed $(cat "$work/out")"
    grep -Eq "^corsair: .*the last checkpoint is $work/checkpoints/0.*, resume from it with" "$work/said" ||
        fail "after $signal to process $victim it says $(cat "$work/said")"
    [ "$alone" = "$("$corsair" resume "$work/checkpoints" --processes 2 --out "$work/lost" --format json | essence)" ] ||
        fail "after $signal to process $victim it is resumed to another end"
    diff -r "$work/alone" "$work/lost" >/dev/null || fail "after $signal to process $victim there are other files"
}
lost KILL 1 2
lost KILL 2 2
lost KILL 2 3
echo "cluster: a process that is killed ends the run, which is resumed from its last checkpoint"
lost STOP 1 2 --window-within 2s
grep -q "process 0 has not reached the end of a window for 2s" "$work/said" || fail "process 0 was stopped: $(cat "$work/said")"
lost STOP 2 3 --window-within 2s
grep -q "process 1 has not reached the end of a window for 2s" "$work/said" || fail "process 1 was stopped: $(cat "$work/said")"
echo "cluster: a process that is stopped ends the run, too"
