#!/usr/bin/env bash
# Whether each crate compiles for the platforms that it claims, and whether aarch64 gives the digests of x86-64.
#
#   ci/platforms.sh          check every crate for its platforms
#   ci/platforms.sh aarch64  also build the command for aarch64 Linux, run it under qemu and compare digests
set -euo pipefail
cd "$(dirname "$0")/.."

need() {
    if ! command -v "$1" >/dev/null; then
        apt-get update -qq && apt-get install -y -qq "$2" >/dev/null
    fi
}

# A row for each platform: the target, and the crates that claim it, with the features to check.
check() {
    local target=$1
    shift
    if ! rustup target add "$target" >/dev/null 2>&1; then
        echo "left out: $target, its standard library cannot be installed"
        return 0
    fi
    echo "$target: $*"
    cargo check --quiet --target "$target" "$@"
}

# Crates without code in C and without calls of one system. corsair-host-run is for x86-64 Linux with glibc only. Tests of
# programs with corsair-host compile everywhere, and fail with a clear error where programs cannot be simulated.
# Of the command, all features but `tls`, which needs a C compiler for the target, and `mpi`.
everywhere=(-p corsair -p corsair-derive -p corsair-serial -p corsair-check -p corsair-hunt -p corsair-observe -p corsair-arch -p corsair-view
    -p corsair-maelstrom -p corsair-cli
    --features corsair-cli/compose,corsair-cli/metrics,corsair-cli/otlp,corsair-cli/rayon,corsair-cli/sonic,corsair-cli/ui)

check aarch64-unknown-linux-gnu "${everywhere[@]}" -p corsair-journal -p corsair-stream
check aarch64-apple-darwin "${everywhere[@]}" -p corsair-journal -p corsair-stream
check x86_64-pc-windows-gnu "${everywhere[@]}"
for target in aarch64-unknown-linux-gnu aarch64-apple-darwin x86_64-pc-windows-gnu; do
    check "$target" -p corsair-host --lib --example acknowledged --test bugs --test services
done
check wasm32-unknown-unknown -p corsair -p corsair-arch -p corsair-view --no-default-features
check wasm32-unknown-unknown -p corsair-playground

[ "${1:-}" = aarch64 ] || exit 0

need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
need qemu-aarch64 qemu-user

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
cargo test --quiet --target aarch64-unknown-linux-gnu -p corsair -p corsair-arch --lib
cargo test --quiet --target aarch64-unknown-linux-gnu -p corsair-arch --test behaviour digests
cargo build --quiet --bin corsair
cargo build --quiet --target aarch64-unknown-linux-gnu --bin corsair
target=${CARGO_TARGET_DIR:-target}
for arguments in "-a fsm -p 2000 -d 1" "-a netflixoss -d 2 -w 2" "-a lamp -d 2 --seed 7" "-a migration -s 9 -d 1"; do
    # shellcheck disable=SC2086
    here=$("$target/debug/corsair" $arguments --format json | grep -o '"digest": *"[^"]*"')
    # shellcheck disable=SC2086
    there=$(qemu-aarch64 -L /usr/aarch64-linux-gnu "$target/aarch64-unknown-linux-gnu/debug/corsair" $arguments --format json | grep -o '"digest": *"[^"]*"')
    if [ "$here" != "$there" ]; then
        echo "corsair $arguments: x86-64 has $here, aarch64 has $there; a result depends on the machine" >&2
        exit 1
    fi
    echo "corsair $arguments: $here on both"
done
