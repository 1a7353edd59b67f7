#!/usr/bin/env bash
# The heavy proofs. Runs every step, also after a failure, and reports what passed, what failed and what was left out.
#
#   ci/nightly.sh                  all steps; takes hours
#   ci/nightly.sh miri python      only these
#   ci/nightly.sh --list           the steps and what they prove
#
# The log of a step is target/nightly/STEP.log. Exit code 1 if a step failed.
set -uo pipefail
cd "$(dirname "$0")/.."

# Name, command, what it proves.
steps=(
    "loom|ci/test.sh loom|every interleaving of small models of the barrier, the exchange, edges and fork-join"
    "miri|ci/miri.sh|no undefined behaviour in the engine"
    "asan|ci/asan.sh|no memory error in the engine under random scenarios"
    "checkpoint|ci/test.sh checkpoint|runs that are killed 100 times resume to the same bits"
    "cluster|ci/test.sh cluster|one run over several processes has the result of one process"
    "host|ci/host.sh whole|unmodified programs in virtual time repeat, side by side, in a container's filter, without a network"
    "host-real|ci/host.sh real 10000|SQLite and redb survive 10,000 power losses; services, TLS, RPC and allocators repeat"
    "matrix|ci/host.sh matrix|1,000 seeds of unmodified services have one digest each, whatever runs beside them"
    "losses|ci/host.sh losses|10,000 seeds of the unmodified stream server through power losses count each point once"
    "suites|ci/host.sh suites|tokio's own tests of networks, files, time and signals pass in a simulation"
    "hunt|ci/hunt.sh whole|seeded bugs are found, shrunk and replayed, and fixed twins raise no alarm"
    "maelstrom|ci/maelstrom.sh|Maelstrom's workloads are solved by actors, and by its own demo nodes (MAELSTROM_DEMO)"
    "import|ci/import.sh|5,000 changed manifests are imported or refused, in bounded memory and time"
    "gate|ci/gate.sh|changes are judged right, planted bottlenecks are named, the stability map agrees with single runs"
    "courier|ci/test.sh courier|nothing acknowledged is lost when nodes are killed and disks fail"
    "courier-outside|ci/courier.sh outside|an hour of kills, pauses, partitions, full and failing disks of real nodes: nothing acknowledged is lost"
    "courier-hunt|ci/courier/hunt.sh 500|500 seeds of a cluster in virtual time, with faults of all kinds: histories are linearizable"
    "courier-bugs|ci/courier/hunt.sh bugs|planted bugs of a cluster are each found within ten minutes"
    "stream|ci/test.sh stream|1,000 kills leave the files of a run without one; Kafka, kapacitor's command line, TLS, clients, hung receivers"
    "python|ci/test.sh python|the wheel, its types, tests, examples and notebooks"
    "observe|ci/test.sh observe|a real Kafka and a real Neo4j receive what was sent"
    "twin-listen|ci/twin-listen.sh|spans of the official SDKs of Python, Go and Node are received and learned from, and hostile requests are refused"
    "twin|ci/twin.sh|what is learned from real services predicts them at other loads and under faults"
    "production|ci/production.sh|units, proxies, alert rules, restored nodes and rotated logs are as the guide for operators says"
    "platforms|ci/platforms.sh aarch64|every crate compiles for its platforms; aarch64 has the same digests"
    "release|ci/release.sh|every crate builds from its package; archives, image, units and wheels work without Rust"
    "book|ci/book.sh|every command and program of the book prints what the book shows; no link is broken"
    "completions|ci/completions.sh|bash, zsh and fish complete flags, architectures, services and fields of definitions"
    "editor|ci/editor.sh|the JSON language server completes, describes and checks a definition by its schema"
    "playground|ci/playground.sh|the page has the digests of the command, in Node and in Chromium"
    "soak|ci/soak.sh|memory, files and latency of the services are stable"
)

chosen=("$@")
if [ "${1:-}" = --list ]; then
    for row in "${steps[@]}"; do
        IFS='|' read -r name command proof <<<"$row"
        printf '%-12s %-40s %s\n' "$name" "$command" "$proof"
    done
    exit 0
fi
for name in "${chosen[@]}"; do
    if ! printf '%s\n' "${steps[@]}" | grep -q "^$name|"; then
        echo "nightly: no step '$name'; ci/nightly.sh --list prints all" >&2
        exit 2
    fi
done

logs=${CARGO_TARGET_DIR:-target}/nightly
mkdir -p "$logs"
passed=() failed=() left_out=()
for row in "${steps[@]}"; do
    IFS='|' read -r name command proof <<<"$row"
    if [ "${#chosen[@]}" -gt 0 ] && ! printf '%s\n' "${chosen[@]}" | grep -qx "$name"; then
        continue
    fi
    echo "nightly: $name: $proof"
    began=$SECONDS
    # shellcheck disable=SC2086
    if $command >"$logs/$name.log" 2>&1; then
        passed+=("$name ($((SECONDS - began)) s)")
    else
        failed+=("$name ($((SECONDS - began)) s): $logs/$name.log")
        tail -n 20 "$logs/$name.log" | sed 's/^/    /'
    fi
    while read -r line; do
        left_out+=("$name: $line")
    done < <(grep '^left out' "$logs/$name.log" | sort -u)
done

echo "nightly: ${#passed[@]} passed, ${#failed[@]} failed, ${#left_out[@]} parts left out"
printf '  passed    %s\n' "${passed[@]}"
[ "${#failed[@]}" -eq 0 ] || printf '  FAILED    %s\n' "${failed[@]}"
[ "${#left_out[@]}" -eq 0 ] || printf '  left out  %s\n' "${left_out[@]}"
[ "${#failed[@]}" -eq 0 ]
