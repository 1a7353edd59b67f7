#!/usr/bin/env bash
# Services under mixed load for ten minutes each: memory, files and latency at the begin and at the end.
#
#   ci/soak.sh              every service that ci/soak/ knows
#   ci/soak.sh stream       only this one
#   SOAK_SECONDS=60 ci/soak.sh
set -euo pipefail
cd "$(dirname "$0")/.."

export SOAK_SECONDS="${SOAK_SECONDS:-600}"
if [ "$#" -gt 0 ]; then names=("$@"); else
    names=()
    for script in ci/soak/*.sh; do names+=("$(basename "$script" .sh)"); done
fi
for name in "${names[@]}"; do
    if [ ! -x "ci/soak/$name.sh" ]; then
        echo "soak: there is no ci/soak/$name.sh" >&2
        exit 2
    fi
    echo "soak: $name, $SOAK_SECONDS s"
    "ci/soak/$name.sh"
done
