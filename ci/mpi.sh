#!/usr/bin/env bash
# One run over the processes that mpirun has started: the digest of one process, and a clear end of all if one is killed.
#
# Needs an MPI library and libclang, and installs those of Debian if it may.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null; then
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libopenmpi-dev openmpi-bin libclang-dev
fi

cargo clippy -p corsair-cluster --features mpi --all-targets -- -D warnings
cargo build --bin corsair --features mpi
corsair="${CARGO_TARGET_DIR:-$PWD/target}/debug/corsair"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# More processes than cores, in a container.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
over() {
    local processes=$1
    shift
    mpirun --oversubscribe -n "$processes" "$corsair" "$@" --mpi
}

fail() {
    echo "mpi: $*" >&2
    exit 1
}

digest_of() {
    sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p'
}

same() {
    local seed processes workers alone together
    for seed in 1 2 3 4 5; do
        alone=$("$corsair" "$@" --seed "$seed" --workers 1 --format json | digest_of)
        [ -n "$alone" ] || fail "no digest of seed $seed of $*"
        for processes in 1 2 3; do
            for workers in 1 2; do
                together=$(over "$processes" "$@" --seed "$seed" --workers "$workers" --format json | digest_of)
                [ "$alone" = "$together" ] ||
                    fail "$* with seed $seed: $alone alone, '$together' on $processes processes with $workers workers"
            done
        done
    done
    echo "mpi: $2: 5 seeds have one digest on 1, 2 and 3 processes with 1 and 2 workers"
}
same -a fsm -p 3000 -d 500ms -kv chat:20ms
same -a netflixoss -d 1

# Pieces that are longer than a message of MPI.
alone=$("$corsair" -a fsm -p 200000 -d 1 --workers 1 --format json | digest_of)
together=$(over 2 -a fsm -p 200000 -d 1 --workers 1 --format json | digest_of)
[ "$alone" = "$together" ] || fail "200,000 pirates: $alone alone, '$together' together"
echo "mpi: windows of megabytes arrive"

# What the processes were started with is compared.
code=0
model=("$corsair" -a fsm -p 100 --mpi)
mpirun --oversubscribe -n 1 "${model[@]}" : -n 1 "${model[@]}" --seed 5 >"$work/out" 2>"$work/said" || code=$?
[ "$code" != 0 ] || fail "processes with other flags have run"
grep -q "different flags" "$work/said" || fail "processes with other flags say $(cat "$work/said")"
echo "mpi: other flags are told"

long=(-a fsm -p 3000 -d 100000 -kv chat:10ms --workers 1)
for victim in 1 2; do
    over 3 "${long[@]}" >"$work/out" 2>"$work/said" &
    runner=$!
    sleep 3
    killed=$(pgrep -P "$(pgrep -P "$runner" mpirun || echo "$runner")" corsair | sed -n "${victim}p")
    [ -n "$killed" ] || fail "there is no process to be killed: $(cat "$work/said")"
    kill -KILL "$killed"
    until=$((SECONDS + 15))
    while kill -0 "$runner" 2>/dev/null; do
        [ "$SECONDS" -lt "$until" ] || { kill "$runner"; fail "after a process was killed the others run on"; }
        sleep 0.1
    done
    ! wait "$runner" || fail "a run that lost a process succeeded"
    grep -Eq "has ended before the run did|exited on signal 9" "$work/said" || fail "a lost run says $(cat "$work/said")"
    ! grep -q digest "$work/out" || fail "a lost run printed $(cat "$work/out")"
done
echo "mpi: a process that is killed ends the others"
