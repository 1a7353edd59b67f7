#!/usr/bin/env bash
# The engine's unsafe code under miri, which finds undefined behaviour.
#
#   ci/miri.sh            small scenarios that go through all of it, and the unit tests of its parts: minutes
#   ci/miri.sh all        with them the unit tests of the core, and the suites of virtual time and of edges:
#                         up to an hour
#   ci/miri.sh all wheel  of these, what has `wheel` in its path
#
# miri is some thousand times slower than the processor: the engine's tables and the tests' populations
# are small under `cfg(miri)`. It exists on nightly only, which is installed if it is missing; where that
# fails, this script says so and does nothing.
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
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"

cargo "+$toolchain" miri setup
if [ "${1:-}" != all ]; then
    # One after the other: each has the whole of miri's one thread. What waits for threads to fall
    # asleep takes long, and is in `all`.
    timeout "${MIRI_SECONDS:-1200}" cargo "+$toolchain" miri test -p corsair-conformance --test soundness -- --test-threads=1
    timeout "${MIRI_SECONDS:-1200}" cargo "+$toolchain" miri test -p corsair --lib -- --test-threads=1 \
        virtual_time::buffer virtual_time::order virtual_time::stash virtual_time::window_timers virtual_time::shard virtual_time::region virtual_time::exchange
    exit 0
fi
shift
# The other tests take hours under miri because of their threads and runtimes, or run foreign code.
others=(--skip conformance:: --skip fork_join:: --skip fsm:: --skip wall:: --skip progress::)
timeout "${MIRI_SECONDS:-2400}" cargo "+$toolchain" miri test -p corsair --lib -- "$@"
timeout "${MIRI_SECONDS:-2400}" cargo "+$toolchain" miri test -p corsair-conformance --test soundness -- "$@"
timeout "${MIRI_SECONDS:-2400}" cargo "+$toolchain" miri test -p corsair-conformance --test suite -- "$@" "${others[@]}"
