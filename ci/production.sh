#!/usr/bin/env bash
# What the guide of operators says (examples/book/src/operate/production.md), tried: the units, rules and configurations of
# examples/deploy are checked by the programs that read them, and the services run behind these proxies.
#
#   ci/production.sh                     all steps
#   ci/production.sh rules nginx         only these: units rules nginx haproxy caddy operate
#
# Needs Debian's nginx, haproxy, caddy, prometheus, logrotate, systemd and Python with venv. What is missing is
# installed, if that can be done; otherwise this script says what it leaves out. Takes about two minutes once built.
set -euo pipefail
cd "$(dirname "$0")/.."

all_steps=(units rules nginx haproxy caddy operate)
export PYTHONDONTWRITEBYTECODE=1
target=${CARGO_TARGET_DIR:-target}
venv=$target/courier-venv
python=$venv/bin/python
deploy=examples/deploy
# Debian installs servers in a directory that is only in root's PATH.
export PATH="$PATH:/usr/sbin"

# True if the command exists; otherwise installs its package, which has the same name or is the second argument.
need() {
    command -v "$1" >/dev/null && return
    if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${2:-$1}"; } >/dev/null 2>&1; then
        echo "left out: $1 is not installed and cannot be (apt-get install ${2:-$1})"
        return 1
    fi
}

packages() {
    if ! { [ -x "$python" ] || python3 -m venv "$venv"; } || ! "$python" -m pip -q install 'aiohttp>=3.9,<4' 'websockets>=14,<18'; then
        echo "left out: the clients (they need python3-venv, aiohttp and websockets)"
        return 1
    fi
}

step_units() {
    ci/release.sh units
}

# The rules parse, fire when they should, and name metrics that the services have.
step_rules() {
    need promtool prometheus || return 0
    packages || return 0
    (
        cd "$deploy/monitoring"
        promtool check rules alerts.yml
        promtool test rules alerts.test.yml
    )
    timeout 120 "$python" ci/production/rules.py "$target/debug" "$deploy/monitoring"
}

proxy() {
    need "$1" || return 0
    packages || return 0
    timeout 300 "$python" ci/production/proxy.py "$1" "$target/debug" "$deploy/proxy"
}

step_nginx() { proxy nginx; }
step_haproxy() { proxy haproxy; }
step_caddy() { proxy caddy; }

# Backups, a lost node, rotation of logs and a certificate, a rollback.
step_operate() {
    packages || return 0
    need logrotate || return 0
    timeout 300 "$python" ci/production/operate.py "$target/debug" "$deploy"
}

. ci/steps.sh
choose_steps production "$@"
cargo build --quiet -p corsair-courier -p corsair-stream
run_steps
