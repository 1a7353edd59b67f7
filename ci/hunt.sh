#!/usr/bin/env bash
# Tests that the common bugs of the zoo are shrunk and that its fixed twins raise no alarm in 2,000 runs each, and scores the
# search for bugs on the zoo and the checker on a long history.
#
#   ci/hunt.sh        quick: 3 searches of at most 2,000 runs for each program
#   ci/hunt.sh whole  10 searches of at most 100,000 runs, an hour of hunting the fixed Rafts, an hour of hunting the example
#                     Raft, and a history of 1,000,000 operations
#
# Prints a table; fails if a fixed twin raises an alarm, or a shrunk failure is not reproduced 100 of 100 times.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test -q --release -p corsair-zoo --test hunt -- --ignored
if [ "${1:-quick}" = whole ]; then
    cargo run -q --release -p corsair-zoo --example scores -- 10 100000
    cargo run -q --release -p corsair-zoo --example survive -- 60 raft_{commit,log,membership,read,truncate}
    cargo run -q --release -p corsair-examples --example raft -- 60
    cargo build -q --release -p corsair-check --example history
    history=${CARGO_TARGET_DIR:-target}/release/examples/history
    made=$(mktemp)
    trap 'rm -f "$made"' EXIT
    "$history" make 1000000 100 1000 >"$made"
    # 60 seconds and 4 GB are the limits.
    (ulimit -v 4194304 && timeout 60 "$history" "$made" kv)
else
    cargo run -q --release -p corsair-zoo --example scores -- 3 2000
fi
