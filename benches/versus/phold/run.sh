#!/usr/bin/env bash
# PHOLD in corsair beside ROSS, with the same parameters on the same machine.
#
#   benches/versus/phold/run.sh PATH-TO-ROSS          # a checkout of https://github.com/ROSS-org/ROSS
#   ROUNDS=5 benches/versus/phold/run.sh PATH-TO-ROSS # medians of 5 rounds instead of 3
#   PROCESSOR_TIME=1 benches/versus/phold/run.sh PATH-TO-ROSS # one thread, by processor time: for machines that are not idle
#
# Builds ROSS's model `phold` with the system's MPI (Debian: apt-get install cmake libopenmpi-dev openmpi-bin), and prints a
# table. Without PROCESSOR_TIME it also writes benches/plots/phold.json, which `cargo bench --bench plots` draws. The contenders
# take turns, so a disturbance affects all of them. ROSS's rate is its own "Event Rate", which leaves its
# setup out; corsair's is events per second of the whole run. ROSS's best is the fastest of sequential, conservative and
# optimistic with a process for each of WORKERS cores (2).
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
ross="${1:?usage: run.sh PATH-TO-ROSS}"
rounds="${ROUNDS:-3}"
workers="${WORKERS:-2}"
for tool in cmake mpicc mpirun python3; do
    command -v "$tool" >/dev/null || { echo "run.sh needs $tool; on Debian: apt-get install cmake libopenmpi-dev openmpi-bin python3" >&2; exit 2; }
done
[ -f "$ross/CMakeLists.txt" ] || { echo "$ross is not a checkout of ROSS" >&2; exit 2; }

target="${CARGO_TARGET_DIR:-$here/../target}"
build="$target/ross"
mkdir -p "$build"
(cd "$build" && cmake "$(cd "$OLDPWD" && cd "$ross" && pwd)" -DCMAKE_BUILD_TYPE=Release -DROSS_BUILD_MODELS=ON -DCMAKE_C_COMPILER=mpicc && make phold) >"$build/log" 2>&1 ||
    { tail -20 "$build/log" >&2; exit 1; }
cargo build --release --manifest-path "$here/Cargo.toml" --target-dir "$target"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec python3 "$here/compare.py" "$target/release/phold" "$build/models/phold/phold" "$rounds" "$workers"
