#!/usr/bin/env bash
# The messaging service with a real NATS server: nodes and the server are killed in turn under load,
# and nothing that was acknowledged is lost.
#
#   ci/courier.sh
#
# Needs nats-server (apt-get install nats-server). Where it is missing it is installed, if that can
# be done; otherwise this script says so and does nothing. Takes about a minute once built.
set -euo pipefail
cd "$(dirname "$0")/.."

# Debian puts it where only root looks.
export PATH="$PATH:/usr/sbin"
if ! command -v nats-server >/dev/null; then
    if ! { apt-get update -qq && apt-get install -y -qq nats-server; } >/dev/null 2>&1; then
        echo "left out: nats-server is not installed and cannot be (apt-get install nats-server)"
        exit 0
    fi
fi
nats-server --version

# What takes too long is a hang of the tests, not a slow build.
cargo test -p corsair-courier --test failover --no-run
timeout "${COURIER_SECONDS:-600}" \
    cargo test -p corsair-courier --test failover -- --include-ignored --nocapture --test-threads 1
