#!/usr/bin/env bash
# The core's unit tests, and those of the virtual executor and of edges, under miri, which finds
# undefined behaviour in unsafe code.
#
#   ci/miri.sh            all of them
#   ci/miri.sh wheel      those with `wheel` in their path
#
# miri is some thousand times slower than the processor: tests choose small populations under
# `cfg(miri)`, and properties try few cases. It exists on nightly only, which is installed if it is
# missing; where that fails, this script says so and does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

toolchain="${CORSAIR_NIGHTLY:-nightly}"
if ! cargo "+$toolchain" miri --version 2>/dev/null; then
    if ! rustup toolchain install "$toolchain" --profile minimal --component miri --component rust-src; then
        echo "left out: miri, because the toolchain $toolchain with miri cannot be installed"
        exit 0
    fi
fi

# The tests read the clock and the number of cores.
export MIRIFLAGS="${MIRIFLAGS:--Zmiri-disable-isolation}"
export PROPTEST_CASES="${PROPTEST_CASES:-2}"
export PROPTEST_DISABLE_FAILURE_PERSISTENCE=true

cargo "+$toolchain" miri setup
# The others run threads and runtimes that take miri hours, or other systems' code.
others=(--skip conformance:: --skip fork_join:: --skip fsm:: --skip wall:: --skip progress::)
timeout "${MIRI_SECONDS:-2400}" cargo "+$toolchain" miri test -p corsair --lib -- "$@"
timeout "${MIRI_SECONDS:-2400}" cargo "+$toolchain" miri test -p corsair-conformance --test suite -- "$@" "${others[@]}"
