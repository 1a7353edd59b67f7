#!/usr/bin/env bash
# The messaging service with a real NATS server: nodes and the server are killed in turn under load,
# by the project's own client and by one that shares no code with it (ci/courier/chaos.py, on aiohttp
# and websockets), and nothing that was acknowledged is lost.
#
#   ci/courier.sh
#
# Needs nats-server (apt-get install nats-server) and Python 3.10 or later with venv. What is missing is
# installed, if that can be done; otherwise this script says what it leaves out. Takes about three
# minutes once built.
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

export PYTHONDONTWRITEBYTECODE=1
target=${CARGO_TARGET_DIR:-target}
venv=$target/courier-venv
if ! { [ -x "$venv/bin/python" ] || python3 -m venv "$venv"; } ||
    ! "$venv/bin/python" -m pip -q install 'aiohttp>=3.9,<4' 'websockets>=14,<18'; then
    echo "left out: the client of other making (needs python3-venv, aiohttp and websockets)"
    exit 0
fi
cargo build -p corsair-courier
for nodes in 1 3; do
    timeout 300 "$venv/bin/python" ci/courier/chaos.py "$target/debug/corsair-courier" --nodes "$nodes" --kills 20
done
