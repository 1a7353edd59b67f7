#!/usr/bin/env bash
# Imports the published manifests of seven systems without an edit, 5,000 changed manifests, and large attacks.
#
#   ci/import.sh [FOLDER]
#
# FOLDER has clones (or exported trees) of microservices-demo, DeathStarBench, TeaStore, istio and opentelemetry-demo. Without it,
# only changed manifests and attacks are imported. The manifests themselves are not part of this repository.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
    CORSAIR_IMPORT_CHECKOUTS=$(cd "$1" && pwd)
    export CORSAIR_IMPORT_CHECKOUTS
else
    echo "left out: published manifests; give the folder of their repositories"
fi
export CORSAIR_MUTATIONS=${CORSAIR_MUTATIONS:-5000}
cargo test -p corsair-arch --features compose --lib import:: -- --nocapture
cargo test -p corsair-arch --features compose --test imports -- --nocapture
