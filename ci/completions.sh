#!/usr/bin/env bash
# Completion in bash, zsh and fish, each on a terminal with a pressed tab key: flags, subcommands, and values such as
# architectures, services of a definition and fields for `--set`.
#
#   ci/completions.sh
#
# Installs zsh and fish from Debian if they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."

for shell in zsh fish; do
    command -v "$shell" >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$shell" >/dev/null; }
done
cargo build --quiet --bin corsair
ci/completions/press_tab.py "${CARGO_TARGET_DIR:-target}/debug"
