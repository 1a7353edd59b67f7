#!/usr/bin/env bash
# Streams under mixed load: two writers, one of them with mistyped points and new series all the time,
# tasks that come and go, a receiver that hangs and one that is away, clients that stop half-way. Fails
# if the most memory or open files of the server in the last fifth of the time are more than a fifth above
# those of the second fifth (blocks are compacted from time to time, so memory goes up and down), or
# if a healthy write was refused.
#
#   SOAK_SECONDS=60 SOAK_PROFILE=dev ci/soak/stream.sh
#   SOAK_PROGRAM=target/release/corsair-stream ci/soak/stream.sh     one that is built already
#
# Needs curl and nothing else. Linux, because it reads /proc.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds="${SOAK_SECONDS:-600}"
dir=$(mktemp -d)
pids=()
stopped=
finish() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    [ -z "$stopped" ] || kill -KILL "$stopped" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$dir"
}
trap finish EXIT

program="${SOAK_PROGRAM:-}"
if [ -z "$program" ]; then
    profile="${SOAK_PROFILE:-release}"
    cargo build --quiet --profile "$profile" -p corsair-stream
    if [ "$profile" = dev ]; then profile=debug; fi
    program="${CARGO_TARGET_DIR:-target}/$profile/corsair-stream"
fi

# A receiver that hangs: a server that is stopped once it listens. The system takes connections for it.
"$program" serve --addr 127.0.0.1:0 >"$dir/hung" &
stopped=$!
task() { printf '%s\n' "$2" >"$dir/$1.tick"; }
task counts "stream | from('cpu') | groupBy('host') | window(10s, every 5s) | mean(value) | http_out('means')"
task sparse "stream | from('cpu') | where(value > 998) | window(1h, every 1h) | count(value) | http_out('rare')"
task alerts "stream | from('churn') | groupBy('host') | alert().crit(value > 500) | log('alert')"
task join "var a = stream | from('cpu') | groupBy('host')
var b = stream | from('silent') | groupBy('host')
a | join(b).as('a', 'b').tolerance(1s)"
task away "stream | from('away') | http_post('http://127.0.0.1:9/')"
for _ in $(seq 50); do grep -q http "$dir/hung" && break; sleep 0.1; done
hung=$(sed -n 's/.*\(http:.*\)/\1/p' "$dir/hung")
kill -STOP "$stopped"
task hung "stream | from('hung') | http_post('$hung/write?db=x')"
"$program" serve --addr 127.0.0.1:0 --data "$dir/data" --max-series 50000 --series-idle 30 --max-points 200000 \
    --patience 0.2 --task "$dir"/*.tick >"$dir/out" 2>"$dir/log" &
server=$!
pids+=("$server")
for _ in $(seq 50); do grep -q http "$dir/out" && break; sleep 0.1; done
url=$(sed -n 's/.*\(http:.*\)/\1/p' "$dir/out")

# Lines of one second, after the number of the write.
lines() {
    awk -v name="$1" -v at="$2" -v count="$3" -v churn="$4" 'BEGIN {
        for (i = 0; i < count; i++) {
            host = churn ? at * count + i : i % 200
            value = churn && i % 50 == 0 ? "\"oops\"" : (at * 7 + i * 13) % 1000
            printf "%s,host=h%d value=%s %d\n", name, host, value, 1700000000 + at
        }
    }'
}
post() { # measurement, number, lines, churn; prints status and seconds
    lines "$@" | curl -s -o /dev/null -w '%{http_code} %{time_total}\n' --data-binary @- \
        "$url/write?db=soak&precision=s" || echo "000 0"
}
end=$((SECONDS + seconds))
(n=0; while [ "$SECONDS" -lt "$end" ]; do n=$((n + 1)); post cpu "$n" 2000 0; done >"$dir/cpu") &
writers=($!)
(n=0; while [ "$SECONDS" -lt "$end" ]; do n=$((n + 1)); post churn "$n" 500 1; done >"$dir/churn") &
writers+=($!)
(
    n=0
    while [ "$SECONDS" -lt "$end" ]; do
        n=$((n + 1))
        post hung "$n" 10 0 >/dev/null
        post away "$n" 10 0 >/dev/null
        curl -s -o /dev/null "$url/tasks" -d "{\"name\":\"t$((n % 5))\",\"text\":\"stream | from('cpu') | log()\"}" || true
        curl -s -o /dev/null -X DELETE "$url/tasks/t$(((n + 3) % 5))" || true
        # A client that goes away in the middle of its body.
        curl -s -o /dev/null -m 0.2 -H 'content-length: 100000' --data-binary 'cpu value=1' "$url/write?db=soak" || true
        curl -s -o /dev/null "$url/tasks/counts/means"
        sleep 0.2
    done
) &
writers+=($!)
pids+=("${writers[@]}")

memory() { awk '/VmRSS/ { print $2 }' "/proc/$server/status"; }
files() { find "/proc/$server/fd" -mindepth 1 2>/dev/null | wc -l; }
# Takes a sample every second, with the fraction of the time that has passed.
begun=$SECONDS
while [ "$SECONDS" -lt "$end" ]; do
    echo "$(((SECONDS - begun) * 5 / seconds)) $(memory) $(files)" >>"$dir/looks"
    sleep 1
done
wait "${writers[@]}"
most() { awk -v part="$1" -v column="$2" '$1 == part && $column > most { most = $column } END { print most + 0 }' "$dir/looks"; }
begin=("$(most 1 2)" "$(most 1 3)")
last=("$(most 4 2)" "$(most 4 3)")

# The 99th percentile, in seconds, of the first and the last tenth of the writes.
p99() { awk '{ print $2 }' | sort -n | awk '{ t[NR] = $1 } END { at = int(NR * 0.99); if (at < 1) at = 1; print t[at] }'; }
tenth=$((($(wc -l <"$dir/cpu") + 9) / 10))
echo "most memory in each fifth of the time, kB: $(for part in 0 1 2 3 4; do most "$part" 2; done | tr '\n' ' ')"
printf '%-22s %12s %12s\n' '' begin end
printf '%-22s %12s %12s\n' 'most memory, kB' "${begin[0]}" "${last[0]}" 'most open files' "${begin[1]}" "${last[1]}" \
    'p99 of a write, s' "$(head -n "$tenth" "$dir/cpu" | p99)" "$(tail -n "$tenth" "$dir/cpu" | p99)"
echo "writes: $(wc -l <"$dir/cpu") of 2,000 lines, $(wc -l <"$dir/churn") of 500"

refused=$(cat "$dir/cpu" "$dir/churn" | grep -vc '^204' || true)
stopping=$SECONDS
kill -TERM "$server"
wait "$server" || { echo "soak: the server ended with $?" >&2; tail "$dir/log" >&2; exit 1; }
echo "a stop took $((SECONDS - stopping)) s; $(grep saved "$dir/out" || echo nothing saved)"
if [ "$refused" -gt 0 ]; then
    echo "soak: $refused writes to healthy tasks were refused" >&2
    exit 1
fi
# In a shorter run the buffers are not full at the first sample, so memory still has to grow.
[ "$seconds" -ge 300 ] || exit 0
for at in 0 1; do
    if [ "${last[at]}" -gt $((begin[at] * 6 / 5)) ]; then
        echo "soak: ${begin[at]} has grown to ${last[at]}" >&2
        exit 1
    fi
done
