#!/usr/bin/env bash
# Compares predictions of learned definitions with measurements: see ci/twin/README.md.
#
# Usage: ci/twin.sh [build|record|define|predict|measure|report ...]   (without a step: all of them)
# Needs Go, Python 3.11 or newer, and the registries of Go, PyPI and crates.io. TWIN_WORK is a folder for what is built
# and recorded; CORSAIR is the command, if it is built already; TWIN_LEARN, TWIN_SECONDS and TWIN_REPEATS set how long is recorded and measured, and how often. TWIN_ONLY
# selects systems or scenarios by name, separated by commas; the results of all others stay as they are.
set -euo pipefail
cd "$(dirname "$0")/.."
export TWIN_WORK=${TWIN_WORK:-/tmp/corsair-twin}
steps=("$@")
[ ${#steps[@]} -gt 0 ] || steps=(build record define predict measure report)
mkdir -p "$TWIN_WORK"

build() {
    (cd ci/twin/go && go build -o "$TWIN_WORK/go-service" ./service && go build -o "$TWIN_WORK/generator" ./generator)
    CARGO_TARGET_DIR="$TWIN_WORK/target" cargo build --release --manifest-path ci/twin/rust/Cargo.toml
    cp "$TWIN_WORK/target/release/laboratory" "$TWIN_WORK/rust-service"
    [ -d "$TWIN_WORK/venv" ] || python3 -m venv "$TWIN_WORK/venv"
    "$TWIN_WORK/venv/bin/pip" install --quiet -r ci/twin/python/requirements.txt
    [ -n "${CORSAIR:-}" ] || cargo build --bin corsair
}

for step in "${steps[@]}"; do
    echo "== $step"
    case "$step" in
        build) build ;;
        record | define | predict | measure | report) python3 ci/twin/laboratory.py "$step" ;;
        *)
            echo "'$step' is not a step; give build, record, define, predict, measure or report" >&2
            exit 2
            ;;
    esac
done
