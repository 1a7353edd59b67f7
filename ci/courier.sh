#!/usr/bin/env bash
# The messaging service: nodes, alone and as members of a cluster, are killed in turn under load,
# by the project's own client and by one that shares no code with it (ci/courier/chaos.py, on aiohttp
# and websockets), and nothing that was acknowledged is lost. Then clients that read nothing, a disk that
# is full or fails, bodies over the limit, the OpenAPI document against every route (schemathesis), a user beside others who post to
# thousands, backups and compactions under load, and nodes that are upgraded one after the other.
#
#   ci/courier.sh                            all of it
#   ci/courier.sh chaos contract             only these: failover chaos behind slow_readers disk_full faults too_large
#                                            corruption contract page fanout backup upgrade clients
#   ci/courier.sh outside                    must be asked for: an hour (COURIER_OUTSIDE=60 seconds) of kills, pauses of the
#                                            leader, partitions of namespaces, full and failing disks
#   ci/courier.sh measures                   must be asked for, on an idle machine: fail-over, nodes, deliveries and sockets beside their limits
#
# Needs Python 3.10 or later with venv, and for the data of earlier versions nats-server. What is missing is
# installed, if that can be done; otherwise this script says what it leaves out. Takes about eight
# minutes once built, two of them for the document (COURIER_CONTRACT=20 for less).
set -euo pipefail
cd "$(dirname "$0")/.."

all_steps=(failover chaos behind slow_readers disk_full faults too_large corruption contract page fanout backup upgrade clients)
export PYTHONDONTWRITEBYTECODE=1
target=${CARGO_TARGET_DIR:-target}
venv=$target/courier-venv
python=$venv/bin/python
# Debian installs the server in a directory that is only in root's PATH.
export PATH="$PATH:/usr/sbin"

nats() {
    command -v nats-server >/dev/null && return
    if ! { apt-get update -qq && apt-get install -y -qq nats-server; } >/dev/null 2>&1; then
        echo "left out: nats-server is not installed and cannot be (apt-get install nats-server)"
        return 1
    fi
}

# True if these Python packages are installed.
packages() {
    if ! { [ -x "$python" ] || python3 -m venv "$venv"; } || ! "$python" -m pip -q install "$@"; then
        echo "left out: clients of other making (they need python3-venv and $*)"
        return 1
    fi
}
clients=('aiohttp>=3.9,<4' 'websockets>=14,<18')

# The time limit detects hanging tests, not a slow build, so the build comes first.
step_failover() {
    cargo test -p corsair-courier --test failover --no-run
    timeout "${COURIER_SECONDS:-600}" \
        cargo test -p corsair-courier --test failover -- --include-ignored --nocapture --test-threads 1
}

step_chaos() {
    packages "${clients[@]}" || return 0
    timeout 300 "$python" ci/courier/chaos.py "$program" --nodes 1 --kills 20
    timeout 300 "$python" ci/courier/chaos.py "$program" --nodes 3 --kills 20
}

step_measures() {
    packages "${clients[@]}" || return 0
    cargo build --release -p corsair-courier -p corsair-courier-load
    "$python" ci/courier/measures.py "$target/release"
}

step_outside() {
    packages "${clients[@]}" || return 0
    if ! { ip netns add courier-probe && ip netns del courier-probe && iptables -S && command -v cc mkfs.ext4; } >/dev/null 2>&1; then
        echo "left out: nodes in namespaces of their own (they need root, iproute2, iptables, e2fsprogs and cc)"
        return 0
    fi
    "$python" ci/courier/outside.py "$program" --seconds "${COURIER_OUTSIDE:-3600}"
}

step_behind() {
    packages "${clients[@]}" || return 0
    timeout 300 "$python" ci/courier/behind.py "$program"
}

step_slow_readers() {
    packages "${clients[@]}" || return 0
    timeout 300 "$python" ci/courier/slow_readers.py "$program"
}

step_disk_full() {
    packages "${clients[@]}" || return 0
    timeout 300 "$python" ci/courier/disk_full.py "$program"
}

# The fault injector is written in C, because it sits between the node and the C library.
step_faults() {
    packages "${clients[@]}" || return 0
    if ! command -v cc >/dev/null; then
        echo "left out: a disk that fails now and then (it needs cc)"
        return 0
    fi
    timeout 300 "$python" ci/courier/faults.py "$program"
    timeout 60 "$python" ci/courier/hang.py "$program"
}

# Third-party clients send bodies above the limit to both services.
step_too_large() {
    packages "${clients[@]}" 'requests>=2.32,<3' || return 0
    cargo build --quiet -p corsair-stream
    timeout 120 "$python" ci/courier/too_large.py --path /users -- "$program" serve --listen '{address}'
    timeout 120 "$python" ci/courier/too_large.py --path '/write?db=d' --kind text/plain -- \
        "$target/debug/corsair-stream" serve --addr '{address}' --max-body 100000
}

step_corruption() {
    packages "${clients[@]}" || return 0
    timeout 300 "$python" ci/courier/corruption.py "$program"
}

step_contract() {
    packages "${clients[@]}" 'schemathesis>=4,<5' 'openapi-spec-validator>=0.7,<1' || return 0
    timeout 400 "$python" ci/courier/contract.py "$program" --seconds "${COURIER_CONTRACT:-120}"
}

# The page in a real Chromium. playwright-core drives it, and brings none of its own.
step_page() {
    local chromium part modules=$target/courier-node
    if ! command -v node npm >/dev/null; then
        echo "left out: the page in a browser (it needs node and npm)"
        return 0
    fi
    if ! { command -v chromium >/dev/null || apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1; then
        echo "left out: the page in a browser (apt-get install chromium)"
        return 0
    fi
    chromium=$(command -v chromium)
    if ! PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm install --silent --no-save --prefix "$modules" 'playwright-core@^1.50' 'axe-core@^4'; then
        echo "left out: the page in a browser (npm install playwright-core axe-core)"
        return 0
    fi
    for part in talk outbox reading; do
        NODE_PATH="$(cd "$modules" && pwd)/node_modules" timeout 300 node "ci/courier/page/$part.mjs" "$program" "$chromium"
    done
}

# Prints the latencies of the victim's POSTs. The speed of the machine does not decide the test.
step_fanout() {
    cargo build --quiet --bin corsair-courier-load
    timeout 300 "$target/debug/corsair-courier-load" --fanout 8
}

step_backup() {
    packages "${clients[@]}" || return 0
    timeout 300 "$python" ci/courier/backup.py "$program"
}

# The last commit with a log on NATS, whose data `export` moves.
older=b88b774a

# Builds the older version from the history, which is impossible in a shallow clone.
step_upgrade() {
    local tree=$target/courier-older
    packages "${clients[@]}" || return 0
    nats || true
    if ! git cat-file -e "$older^{commit}" 2>/dev/null; then
        echo "left out: the upgrade of nodes (this clone does not reach back to $older)"
        return 0
    fi
    if [ ! -x "$tree/corsair-courier" ]; then
        rm -rf "$tree" && mkdir -p "$tree/source"
        git archive "$older" | tar -x -C "$tree/source"
        (cd "$tree/source" && CARGO_TARGET_DIR=../build cargo build --quiet -p corsair-courier)
        cp "$tree/build/debug/corsair-courier" "$tree/"
    fi
    timeout 120 "$python" ci/courier/upgrade.py "$tree/corsair-courier" "$program"
}

# Runs the client examples against a separate node.
step_clients() {
    packages "${clients[@]}" || return 0
    cargo build --quiet --example courier_client
    timeout 120 "$python" ci/courier/clients.py "$program" "$target/debug/examples/courier_client"
}

. ci/steps.sh
choose_steps courier "$@"
program=$target/debug/corsair-courier
cargo build -p corsair-courier
run_steps
