#!/usr/bin/env bash
# Random scenarios in virtual time under AddressSanitizer, which finds accesses outside of live
# memory in the engine's unsafe code.
#
#   ci/asan.sh            thirty seconds
#   ci/asan.sh 3600 5000  an hour, from case 5000 on
#
# The sanitizer exists on nightly only, which is installed if it is missing; where that fails, this
# script says so and does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

toolchain="${CORSAIR_NIGHTLY:-nightly}"
target="$(rustc -vV | sed -n 's/^host: //p')"
if ! rustc "+$toolchain" --version >/dev/null 2>&1 &&
    ! rustup toolchain install "$toolchain" --profile minimal; then
    echo "left out: AddressSanitizer, because the toolchain $toolchain cannot be installed"
    exit 0
fi

# With a target named, the flags do not apply to procedural macros.
RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/asan" \
    cargo "+$toolchain" run --target "$target" -p corsair-conformance --example fuzz -- "${@:-30}"
