#!/usr/bin/env bash
# Checks that simulations of hosts are reproducible, whatever else the machine runs.
#
#   ci/host.sh               quick: each test of the crate 10 times, alone and side by side
#   ci/host.sh whole [ROUNDS] 200 times; also without address randomization, in a filter that refuses personality as
#                            containers do, and in an empty network namespace, if the system permits them
#   ci/host.sh real [LOSSES] software of others and our own services (crates/host/real): SQLite and redb through LOSSES
#                            power losses, TLS, RPC, thread pools, allocators, redis-rs, NATS, a cluster of openraft
#   ci/host.sh matrix [SEEDS [PROGRAM...]] 1,000 seeds of axum and hyper on 1, 2 and 4 workers, alone and side by side, with
#                            and without address randomization, and in the filter: one digest for each seed; also with
#                            rustls (tls), jemalloc and mimalloc. 1,000 seeds of axum take half an hour on two processors,
#                            of the others, whose build is optimised, 26 minutes each beside other work
#   ci/host.sh losses [SEEDS] the stream server through power losses and kills with 10,000 seeds: each point counts once. Each
#                            processor runs a part of the seeds, because the threads of hosts take turns
#   ci/host.sh suites [MIO]  tokio's own tests of networks, files, time and signals, from its package; also mio's, from the
#                            checkout MIO, because its package has no tests. ci/host/suites.txt lists the exceptions
#
# Each test runs its seeds on 1, 2 and 4 workers and compares the digests itself; this script compares them over
# processes, which have other addresses, environments and neighbours each time.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-quick}
rounds=10
[ "$mode" = whole ] && rounds=${2:-200} && export CLIENTS=10000
export CORSAIR_HOST_DIGESTS=1

# Prints the test programs of a package.
programs() {
    cargo test --no-run --message-format json "$@" |
        sed -n 's/.*"kind":\["test"\].*"executable":"\([^"]*\)".*/\1/p'
}

# Runs a command under a filter that refuses `personality`, as Docker's default profile does.
without_personality() {
    python3 -c '
import ctypes, os, struct, sys
allow, refuse, personality = 0x7fff0000, 0x00050000 | 1, 135
code = b"".join(struct.pack("<HBBI", *line) for line in [
    (0x20, 0, 0, 0), (0x15, 0, 1, personality), (0x06, 0, 0, refuse), (0x06, 0, 0, allow)])
buffer = ctypes.create_string_buffer(code)
filter = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter, 0, 0):
    sys.exit("cannot install a filter: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])' "$@"
}

# Runs the tests of another project as hosts: its name, its directory, and arguments of Cargo.
suite() {
    local name=$1 directory=$2 root=$PWD
    shift 2
    cd "$directory"
    mapfile -t list < <(programs --target-dir "$suites/build" "$@")
    "$root/ci/host/suites.py" "$target/debug/corsair-host" "$root/ci/host/suites.txt" "$name" "${list[@]}"
    cd "$root"
}

if [ "$mode" = matrix ]; then
    export SEEDS=${2:-1000}
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
    logs=$(mktemp -d)
    trap 'rm -rf "$logs"' EXIT
    # Compares the digests of a test that runs alone with those of three processes side by side, with and without address
    # randomization and in the filter: the test, and the arguments of Cargo that build its program.
    compare() {
        local test=$1 program expected log
        shift
        program=$(programs "$@")
        run() { "$@" --nocapture "$test" 2>&1 | grep -o 'digest of seed.*' | sort; }
        expected=$(run "$program")
        [ "$(wc -l <<<"$expected")" = "$SEEDS" ] || { echo "matrix: $test: not every seed has a digest" >&2; exit 1; }
        # A seed alone, in another environment.
        [ "$(SEED=$SEEDS ROUND=$SEEDS TERM=linux run "$program")" = "$(grep "of seed $SEEDS:" <<<"$expected")" ] ||
            { echo "matrix: $test: seed $SEEDS alone differs" >&2; exit 1; }
        run "$program" >"$logs/beside" &
        if setarch -R true 2>/dev/null; then run setarch -R "$program" >"$logs/fixed" & fi
        if without_personality /bin/true 2>/dev/null; then run without_personality "$program" >"$logs/filter" & fi
        wait
        for log in "$logs"/*; do
            diff -q "$log" - <<<"$expected" >/dev/null || { echo "matrix: $test: $(basename "$log") differs" >&2; exit 1; }
            echo "$test: $(basename "$log"): $SEEDS seeds on 1, 2 and 4 workers have the same digests"
            rm "$log"
        done
    }
    real=(--manifest-path crates/host/real/Cargo.toml --profile hunt --test)
    chosen=("${@:3}")
    [ ${#chosen[@]} -gt 0 ] || chosen=(axum tls jemalloc mimalloc)
    for program in "${chosen[@]}"; do
        case $program in
        axum) compare axum_and_hyper_survive_a_kill -p corsair-host --test services ;;
        tls) compare reqwest_and_axum_under_rustls_repeat "${real[@]}" tls ;;
        jemalloc | mimalloc) compare a_program_with_an_allocator_of_its_own_repeats "${real[@]}" "$program" ;;
        *) echo "matrix: '$program' is not one of axum, tls, jemalloc, mimalloc" >&2; exit 2 ;;
        esac
    done
    exit
fi

if [ "$mode" = losses ]; then
    seeds=${2:-10000} test=stream_counts_each_point_once_through_power_losses
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
    program=$(programs --manifest-path crates/host/real/Cargo.toml --test services)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    jobs=$(nproc) first=1 running=()
    for job in $(seq "$jobs"); do
        last=$((seeds * job / jobs))
        SEEDS=$first..$last WORKERS=1 taskset -c $((job - 1)) \
            "$program" --nocapture "$test" >"$work/$job" 2>&1 &
        running+=($!) first=$((last + 1))
    done
    for job in "${!running[@]}"; do
        wait "${running[$job]}" || { tail -n 40 "$work/$((job + 1))"; exit 1; }
    done
    count=$(cat "$work"/* | grep -c "digest of seed")
    [ "$count" = "$seeds" ] || { echo "losses: $count of $seeds seeds have a digest" >&2; exit 1; }
    echo "losses: each point counts once in $seeds seeds"
    exit
fi

if [ "$mode" = suites ]; then
    target=${CARGO_TARGET_DIR:-$PWD/target}
    suites=$target/suites
    cargo build -p corsair-host-run
    package=$(cargo metadata --format-version 1 |
        python3 -c 'import json, os, sys
print(*(os.path.dirname(p["manifest_path"]) for p in json.load(sys.stdin)["packages"] if p["name"] == "tokio"))')
    rm -rf "$suites/tokio"
    mkdir -p "$suites"
    cp -r "$package" "$suites/tokio"
    printf '\n[workspace]\n' >>"$suites/tokio/Cargo.toml"
    tests=()
    for file in "$suites"/tokio/tests/{tcp,udp,uds,unix,net,fs,time,signal}*.rs; do
        case $file in *windows* | *uring* | *wasm* | *named_pipe*) continue ;; esac
        tests+=(--test "$(basename "$file" .rs)")
    done
    suite tokio "$suites/tokio" --features full,test-util "${tests[@]}"
    if [ -n "${2:-}" ]; then
        suite mio "$2" --tests --features os-poll,os-ext,net
    fi
    exit
fi

# Fails if a program makes a call that reaches the real network or writes a file.
only_simulated() {
    local calls=%network,openat,creat,mkdir,mkdirat,unlink,unlinkat,rename,renameat,renameat2,truncate
    command -v strace >/dev/null || { apt-get update -qq && apt-get install -y -qq strace >/dev/null; }
    strace -f -qq -e trace="$calls" -o "$1.strace" "$1" --test-threads 1 >/dev/null
    echo -n "$(basename "$1"): "
    ci/host/strace.py "$1.strace"
}

wrappers=(env)
if [ "$mode" = whole ]; then
    setarch -R true 2>/dev/null && wrappers+=("setarch -R") || echo "left out: without address randomization"
    without_personality /bin/true 2>/dev/null && wrappers+=(without_personality) || echo "left out: the filter"
    unshare -n true 2>/dev/null && wrappers+=("unshare -n") || echo "left out: without a network"
fi

selection=(-p corsair-host)
if [ "$mode" = real ]; then
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target} POWER_LOSSES=${2:-50}
    selection=(--manifest-path crates/host/real/Cargo.toml --workspace)
    # For many losses, an optimised build takes less time than it saves.
    [ -z "${2:-}" ] || selection+=(--profile hunt)
    rounds=2
fi
list=$(programs --tests "${selection[@]}")
if [ -z "$list" ]; then
    echo "there are no test programs" >&2
    exit 1
fi
for program in $list; do
    if [ "$mode" = whole ]; then
        case $(basename "$program") in bugs-* | faults-* | hosts-* | services-*) only_simulated "$program" ;; esac
    fi
    for round in $(seq "$rounds"); do
        wrapper=${wrappers[$((round % ${#wrappers[@]}))]}
        # The namespace has no loopback device, which the observations of the real kernel need.
        [ "$wrapper" = "unshare -n" ] && case $program in */conformance-*) wrapper=env ;; esac
        # Another environment each time, and 1, 2 or 4 tests side by side.
        export "ROUND_$round=$(head -c $((round * 7)) /dev/zero | tr '\0' x)"
        # shellcheck disable=SC2086
        log=$($wrapper "$program" --nocapture --test-threads $((1 << round % 3)) 2>&1) || {
            echo "$log" >&2
            exit 1
        }
        unset "ROUND_$round"
        { grep -o 'digest of .*' <<<"$log" || true; } | sort
    done | sort | uniq -c | awk -v rounds="$rounds" -v program="$(basename "$program")" '
        $1 % rounds { wrong = 1; print program ": differs: " $0 }
        END { print program ": " NR " digests, " (wrong ? "DIFFERENT" : "each the same in " rounds " rounds"); exit wrong }'
done
