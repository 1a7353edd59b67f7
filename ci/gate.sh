#!/usr/bin/env bash
# The whole form of prepared systems whose answers are known: 20 changes are judged, 20 bottlenecks are named, and the map of the
# metastable example agrees with 200 single runs. `cargo test` has a part of each.
set -euo pipefail
cd "$(dirname "$0")/.."
CORSAIR_GATE=whole cargo test -p corsair-arch --features compose,pictures --lib -- gate:: why:: stability::
# What `learn` finds in long recordings: pauses, queues before spans, times to open connections, or none of them.
CORSAIR_GATE=whole cargo test -p corsair-arch --features compose,pictures --test behaviour -- --include-ignored learn_
