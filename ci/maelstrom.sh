#!/usr/bin/env bash
# Runs the workloads of Maelstrom: with nodes that are actors, and with Maelstrom's own demo nodes as processes.
#
#   ci/maelstrom.sh                actors only
#   ci/maelstrom.sh DEMO           and the nodes of DEMO, the directory `demo` of jepsen-io/maelstrom
#
# MAELSTROM_DEMO is the default of DEMO. Nothing is fetched: nodes whose language is not installed are left out.
set -euo pipefail
cd "$(dirname "$0")/.."
demo=${1:-${MAELSTROM_DEMO:-}}
[ -z "$demo" ] || demo=$(cd "$demo" && pwd)
cargo build -q --release --bin corsair
corsair=${CARGO_TARGET_DIR:-target}/release/corsair
failed=0

# expect EXIT-CODE NAME FLAGS...
expect() {
    local code=0 wanted=$1 name=$2
    shift 2
    "$corsair" maelstrom "$@" >/tmp/maelstrom.$$ 2>&1 || code=$?
    if [ "$code" = "$wanted" ]; then
        echo "$name: $(tail -n 1 /tmp/maelstrom.$$)"
    else
        echo "$name: exit code $code, expected $wanted" >&2
        cut -c1-200 /tmp/maelstrom.$$ | head -n 40 >&2
        failed=1
    fi
    rm -f /tmp/maelstrom.$$
}

for workload in echo unique-ids broadcast g-set g-counter pn-counter kafka lin-kv; do
    expect 0 "actors $workload" -w $workload --node-count 5 --concurrency 4n --rate 200 --latency 50 \
        --latency-dist exponential --nemesis partition --workers 2
done

# demo LANGUAGE NODE WORKLOAD FLAGS...
demo() {
    local language=$1 node=$2 workload=$3
    shift 3
    if [ -z "$demo" ]; then
        echo "left out: demo node $node (no directory of demo nodes was given)"
    elif ! command -v "$language" >/dev/null; then
        echo "left out: demo node $node ($language is not installed)"
    else
        expect 0 "$node $workload" -w "$workload" --bin "$demo/$node" --time-limit 10 "$@"
    fi
}

demo python3 python/echo.py echo --rate 20
demo python3 python/broadcast.py broadcast --node-count 5 --rate 20
demo python python/raft.py lin-kv --node-count 3 --concurrency 2n --rate 20
demo node js/echo.js echo --rate 20
demo node js/gossip.js broadcast --node-count 5 --rate 20 --nemesis partition --nemesis-interval 3
demo node js/crdt_gset.js g-set --node-count 3 --rate 20 --nemesis partition --nemesis-interval 3
demo node js/crdt_pn_counter.js pn-counter --node-count 3 --rate 20 --nemesis partition --nemesis-interval 3
demo ruby ruby/echo.rb echo --rate 20
demo ruby ruby/broadcast.rb broadcast --node-count 5 --rate 20
demo ruby ruby/g_set.rb g-set --node-count 3 --rate 20
demo ruby ruby/pn_counter.rb pn-counter --node-count 3 --rate 20
demo ruby ruby/lin_kv_proxy.rb lin-kv --node-count 3 --concurrency 2n --rate 20
demo ruby ruby/raft.rb lin-kv --node-count 3 --concurrency 2n --rate 20 --nemesis partition --nemesis-interval 3
exit "$failed"
