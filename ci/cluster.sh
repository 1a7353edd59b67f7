#!/usr/bin/env bash
# One run over several real processes: the same digest as one, and a clear end whatever happens to one of them.
#
#   ci/cluster.sh quick    one seed, files, and a checkpoint: seconds
#   ci/cluster.sh          a few seeds, and processes that are killed, stopped and cut off
#   ci/cluster.sh all      the same with 20 seeds, 2 to 4 processes with 1 and 2 workers each
#
# The part in network namespaces needs root and `ip`; it is left out with a line that says so.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --bin corsair --features cluster
corsair="${CARGO_TARGET_DIR:-$PWD/target}/debug/corsair"
work=$(mktemp -d)
started=()
finish() {
    for pid in "${started[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT

fail() {
    echo "cluster: $*" >&2
    exit 1
}

# The digest of a run with these flags.
digest() {
    "$corsair" "$@" --format json | sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p'
}

seeds=3 all_processes="2 3" all_workers="1 2"
case "${1:-}" in
    all) seeds=20 all_processes="2 3 4" ;;
    quick) seeds=1 all_processes=2 all_workers=1 ;;
esac

# These flags make the same run on one process and on several, with $seeds seeds.
same() {
    local seed processes workers alone together
    for seed in $(seq "$seeds"); do
        alone=$(digest "$@" --seed "$seed" --workers 1)
        [ -n "$alone" ] || fail "no digest of seed $seed of $*"
        for processes in $all_processes; do
            for workers in $all_workers; do
                together=$(digest "$@" --seed "$seed" --processes "$processes" --workers "$workers")
                [ "$alone" = "$together" ] ||
                    fail "$* with seed $seed: $alone alone, $together on $processes processes with $workers workers"
            done
        done
    done
    echo "cluster: $2: $seeds seeds have one digest on $all_processes processes with $all_workers workers"
}
model=(-a fsm -p 3000 -d 500ms -kv chat:20ms)
services=(-a netflixoss -d 1)
same "${model[@]}"
same "${services[@]}"

# What is written is what one process writes, byte for byte, but for how it was asked to.
files() {
    local name=$1
    shift
    "$corsair" "$@" --out "$work/$name" >"$work/$name.said"
    # The summary has times of the clock, and where files are.
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

# What a summary says of a run, but for what depends on the clock, the machine and how it was asked for.
essence() {
    python3 -c '
import json, sys
said = json.loads(sys.stdin.readlines()[-1])
leave_out = ("wall", "workers", "peak", "delivered", "per_second", "files", "process")
print(json.dumps({k: v for k, v in said.items() if not any(part in k for part in leave_out)}, sort_keys=True))'
}

# What is written of time is what one process has written, if it was asked for.
over_time() {
    [ ! -e "$work/t.one" ] || cmp "$work/t.one" "$work/t.csv" || fail "another timeline"
}

# A run of several processes is saved, and goes on over one and over others; one of one process goes on over several.
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
    echo "cluster: $2: checkpoints of one, two and three processes go on over one, two and three, and so do their files"
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

# It stops where it is told to, and goes on as a branch, as over one process.
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

# It is saved whenever its files have grown by so much.
"$corsair" "${model[@]}" -d 5 -j --out "$work/grown" --processes 2 --checkpoint-every 300kB --checkpoint-dir "$work/checkpoints" \
    >"$work/said"
[ -d "$work/checkpoints/000001" ] || fail "nothing was saved by bytes: $(cat "$work/said")"
alone=$("$corsair" "${model[@]}" -d 5 -j --out "$work/alone" --format json | essence)
resumed=$("$corsair" resume "$work/checkpoints" --out "$work/grown" --format json | essence)
[ "$alone" = "$resumed" ] || fail "saved by bytes: $resumed, not $alone"
diff -r "$work/alone" "$work/grown" >/dev/null || fail "saved by bytes, it writes other files"
rm -r "$work/checkpoints" "$work/alone" "$work/grown"
echo "cluster: it is saved by the bytes of its files"

# The signal saves it, whichever process gets it.
"$corsair" "${services[@]}" -d 600 --workers 1 --format json >"$work/unsaved"
for who in 1 2; do
    "$corsair" "${services[@]}" -d 600 --workers 1 --processes 2 --checkpoint-dir "$work/checkpoints" --format json \
        >"$work/said" 2>&1 &
    parent=$!
    started+=("$parent")
    until [ "$(pgrep -c -P "$parent")" = 2 ]; do sleep 0.05; done
    asked=$(pgrep -P "$parent" | sed -n "${who}p")
    # Before it has a handler the signal would end it: the tenth bit of those that are caught.
    until (( 0x$(awk '/SigCgt/ { print $2 }' "/proc/$asked/status") >> 9 & 1 )); do sleep 0.02; done
    kill -USR1 "$asked"
    wait "$parent" || fail "after SIGUSR1 to process $who: $(cat "$work/said")"
    [ -d "$work"/checkpoints/000001-asked ] || fail "SIGUSR1 to process $who saved nothing: $(cat "$work/said")"
    [ "$(essence <"$work/unsaved")" = "$("$corsair" resume "$work/checkpoints" --processes 2 --format json | essence)" ] ||
        fail "what SIGUSR1 has saved goes on to another end"
    rm -r "$work/checkpoints"
done
echo "cluster: SIGUSR1 to any process saves all"

# A log of messages goes on behind the line that is named.
logged() { grep -E '^([0-9]|fsm: (Delivered|Shutdown|Exit))' "$1" | sed 's/^fsm: Delivered.*/fsm: Delivered/' || true; }
for run in "${model[*]}" "${services[*]}"; do
    read -ra flags <<<"$run"
    "$corsair" "${flags[@]}" -m >"$work/all"
    "$corsair" "${flags[@]}" -m --processes 2 --checkpoint-at 300ms --checkpoint-dir "$work/checkpoints" >/dev/null
    for over in "--processes 2" "--processes 3" ""; do
        # shellcheck disable=SC2086
        "$corsair" resume "$work/checkpoints" $over >"$work/rest"
        line=$(sed -n 's/.*goes on behind line \([0-9]*\).*/\1/p' "$work/rest")
        [ -n "$line" ] || fail "$run: no line is named: $(head -3 "$work/rest")"
        cmp <(logged "$work/all" | tail -n +$((line + 1))) <(logged "$work/rest") || fail "$run: another log with '$over'"
    done
    rm -r "$work/checkpoints"
done
echo "cluster: logs of messages go on behind the line that is named"
[ "${1:-}" != quick ] || exit 0

# Ports of this machine that are free now.
ports() {
    python3 - "$1" <<'PYTHON'
import socket, sys
held = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in held:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in held))
PYTHON
}

head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$work/secret"
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$work/other"
# A run that goes on for minutes.
long=(-a fsm -p 3000 -d 100000 -kv chat:10ms --workers 1)

# Starts process $1, with further flags; its complaints go to $work/said.$1.
member() {
    local process=$1
    shift
    "$corsair" "${long[@]}" --hosts "$work/hosts" --process "$process" --secret-file "$work/secret" "$@" \
        >"$work/out.$process" 2>"$work/said.$process" &
    pids[process]=$!
    started+=("$!")
}

begin() {
    ports 3 | tr ' ' '\n' | sed 's/^/127.0.0.1:/' > "$work/hosts"
    pids=()
}

# Waits for process $1, which must fail within $2 seconds and say what $3 matches.
ends() {
    local process=$1 within=$2 says=$3 code=0
    local until=$((SECONDS + within))
    while kill -0 "${pids[process]}" 2>/dev/null; do
        [ "$SECONDS" -lt "$until" ] || fail "process $process still runs after $within s: $(cat "$work"/said.*)"
        sleep 0.1
    done
    wait "${pids[process]}" || code=$?
    [ "$code" = 2 ] || fail "process $process ended with $code: $(cat "$work/said.$process")"
    grep -Eq "$says" "$work/said.$process" || fail "process $process says $(cat "$work/said.$process"), not $says"
    [ "$(wc -l < "$work/said.$process")" = 1 ] || fail "process $process says more: $(cat "$work/said.$process")"
    ! grep -q digest "$work/out.$process" || fail "process $process printed $(cat "$work/out.$process")"
}

for victim in 0 1 2; do
    begin
    for process in 0 1 2; do member "$process"; done
    sleep 2
    kill -KILL "${pids[victim]}"
    for process in 0 1 2; do
        [ "$process" = "$victim" ] || ends "$process" 5 "process $victim at .* has ended before the run did"
    done
done
echo "cluster: a process that is killed ends the others"

for victim in 0 2; do
    begin
    for process in 0 1 2; do member "$process"; done
    sleep 2
    kill -STOP "${pids[victim]}"
    for process in 0 1 2; do
        [ "$process" = "$victim" ] || ends "$process" 15 "process $victim at .* not been heard of for 10s"
    done
    kill -CONT "${pids[victim]}"
    ends "$victim" 15 "process"
done
echo "cluster: a process that is stopped ends the others, and itself when it goes on"

begin
for process in 0 1 2; do member "$process"; done
sleep 2
kill -KILL "${pids[1]}"
member 1 --meet-within 2s
ends 1 10 "process 0 at .* (cannot be reached|refuses process 1: the run has begun)"
ends 0 5 "process 1 at"
echo "cluster: a process that is started again alone says so"

begin
member 0 --meet-within 3s
member 1 --meet-within 3s
"$corsair" "${long[@]}" --hosts "$work/hosts" --process 2 --secret-file "$work/other" \
    >"$work/out.2" 2>"$work/said.2" &
pids[2]=$!
ends 2 5 "has another secret"
ends 0 10 "process 2 at .* did not come within 3s; .*turned away.* another secret"
ends 1 10 "process 2 at"
begin
member 0
member 1 --seed 5
ends 0 10 "different flags"
ends 1 10 "different flags"
echo "cluster: another secret and other flags are told"

# A process is lost, and the run goes on from its last checkpoint.
mended() {
    local parent victim
    rm -rf "$work/checkpoints" "$work/mended"
    "$corsair" "${mend[@]}" --out "$work/mended" --processes 2 --checkpoint-every 500ms \
        --checkpoint-dir "$work/checkpoints" --restarts 2 --format json >"$work/out" 2>"$work/said" &
    parent=$!
    started+=("$parent")
    until [ -d "$work/checkpoints/000001" ] || ! kill -0 "$parent" 2>/dev/null; do sleep 0.1; done
    victim=$(pgrep -P "$parent" | "$2" -1)
    kill "-$1" "$victim" || fail "the run was over before a process was lost"
    wait "$parent" || fail "after $1: $(cat "$work/said")"
    grep -q "going on from $work/checkpoints/0.* (restart 1 of 2)" "$work/said" || fail "after $1: $(cat "$work/said")"
    grep -q "the last checkpoint is $work/checkpoints/0" "$work/said" || fail "after $1: $(cat "$work/said")"
    [ "$alone" = "$(essence <"$work/out")" ] || fail "after $1: $(cat "$work/out"), not $alone"
    diff -r "$work/alone" "$work/mended" || fail "after $1 there are other files"
}

# The same over hosts: one is killed and comes again, the others wait for it.
mended_over_hosts() {
    local again process
    begin
    rm -rf "$work/checkpoints" "$work/mended"
    again=("${mend[@]}" --out "$work/mended" --checkpoint-every 500ms --checkpoint-dir "$work/checkpoints" --restarts 2 --format json)
    for process in 0 1 2; do
        "$corsair" "${again[@]}" --hosts "$work/hosts" --process "$process" --secret-file "$work/secret" \
            >"$work/out.$process" 2>"$work/said.$process" &
        pids[process]=$!
        started+=("$!")
    done
    until [ -d "$work/checkpoints/000001" ] || ! kill -0 "${pids[0]}" 2>/dev/null; do sleep 0.1; done
    kill -KILL "$(pgrep -P "${pids[2]}")" "${pids[2]}"
    "$corsair" "${again[@]}" --hosts "$work/hosts" --process 2 --secret-file "$work/secret" 2>"$work/said.2" >/dev/null &
    pids[2]=$!
    for process in 0 1 2; do wait "${pids[process]}" || fail "process $process: $(cat "$work/said.$process")"; done
    [ "$alone" = "$(essence <"$work/out.0")" ] || fail "after one came again: $(cat "$work/out.0"), not $alone"
    diff -r "$work/alone" "$work/mended" || fail "after one came again there are other files"
}

# Long enough that a process is lost while the run goes on.
for run in "${model[*]} -d 60 -j" "${services[*]} -d 360 -j -c"; do
    read -ra mend <<<"$run --workers 1"
    alone=$("$corsair" "${mend[@]}" --out "$work/alone" --format json | essence)
    mended KILL tail
    mended KILL head
    mended STOP tail
    mended_over_hosts
    rm -r "$work/alone"
    echo "cluster: ${mend[1]}: a run that loses a process goes on from its last checkpoint, on one machine and over many"
done

# Strays knock while processes meet and run.
begin
port=$(sed -n '1s/.*://p' "$work/hosts")
short=(-a fsm -p 3000 -d 20 -kv chat:20ms --workers 1)
(
    until [ -e "$work/over" ]; do
        (printf 'GET / HTTP/1.1\r\n\r\n' > "/dev/tcp/127.0.0.1/$port") 2>/dev/null || true
        (head -c 200 /dev/urandom > "/dev/tcp/127.0.0.1/$port") 2>/dev/null || true
        sleep 0.01
    done
) &
knocks=$!
alone=$(digest "${short[@]}")
for process in 1 2; do
    "$corsair" "${short[@]}" --hosts "$work/hosts" --process "$process" --secret-file "$work/secret" &
done
together=$(digest "${short[@]}" --hosts "$work/hosts" --process 0 --secret-file "$work/secret")
touch "$work/over"
wait "$knocks"
[ "$alone" = "$together" ] || fail "with strays the digest is $together, not $alone"
echo "cluster: strays change nothing"

# A process in each of three network namespaces, with a bridge between them. Each has numbers of processes of its own, as other
# machines have, so that they share no memory.
if [ "$(id -u)" != 0 ] || ! ip netns add corsair-ci-0 2>/dev/null; then
    echo "cluster: left out: network namespaces, which need root and ip"
    exit 0
fi
clean() {
    for n in 0 1 2; do ip netns del "corsair-ci-$n" 2>/dev/null || true; done
    ip link del corsair-ci 2>/dev/null || true
    finish
}
trap clean EXIT
ip netns add corsair-ci-1
ip netns add corsair-ci-2
ip link add corsair-ci type bridge
ip link set corsair-ci up
rm -f "$work/hosts"
for n in 0 1 2; do
    ip link add "corsair-ci-$n" type veth peer name eth0 netns "corsair-ci-$n"
    ip link set "corsair-ci-$n" master corsair-ci up
    ip -n "corsair-ci-$n" addr add "10.117.0.$((n + 1))/24" dev eth0
    ip -n "corsair-ci-$n" link set eth0 up
    ip -n "corsair-ci-$n" link set lo up
    echo "10.117.0.$((n + 1))" >> "$work/hosts"
done
# Runs these flags in all three.
in_namespaces() {
    local n
    pids=()
    for n in 0 1 2; do
        ip netns exec "corsair-ci-$n" unshare --pid --fork --kill-child "$corsair" "$@" --hosts "$work/hosts" --process "$n" \
            --secret-file "$work/secret" >"$work/out.$n" 2>"$work/said.$n" &
        pids[n]=$!
        started+=("$!")
    done
}

in_namespaces "${short[@]}" --format json
for n in 0 1 2; do wait "${pids[n]}" || fail "process $n: $(cat "$work/said.$n")"; done
together=$(sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p' "$work/out.0")
[ "$alone" = "$together" ] || fail "in namespaces the digest is $together, not $alone"
echo "cluster: the same digest in three network namespaces"

# A cable is pulled.
in_namespaces "${long[@]}"
sleep 3
ip link set corsair-ci-2 down
for n in 0 1; do ends "$n" 20 "process 2 at 10.117.0.3:7351 has not been heard of for 10s"; done
ends 2 20 "process 0 at 10.117.0.1:7351 has not been heard of for 10s"
echo "cluster: a cable that is pulled ends all"
