#!/usr/bin/env bash
# The messaging service under mixed load: users who come, talk and go; logins that fail; sockets that read
# nothing; clients that stop half-way; posts to many. Fails if the node's memory or its open files have grown
# between the middle of the time and its end, or if a message was lost.
#
#   SOAK_SECONDS=60 SOAK_PROFILE=dev ci/soak/courier.sh
#
# Needs Python 3.10 or later with venv, aiohttp and websockets (installed, if that can be done). Linux,
# because it reads /proc.
set -euo pipefail
cd "$(dirname "$0")/../.."

profile="${SOAK_PROFILE:-release}"
cargo build --quiet --profile "$profile" -p corsair-courier
if [ "$profile" = dev ]; then profile=debug; fi
export PYTHONDONTWRITEBYTECODE=1
target=${CARGO_TARGET_DIR:-target}
venv=$target/courier-venv
if ! { [ -x "$venv/bin/python" ] || python3 -m venv "$venv"; } ||
    ! "$venv/bin/python" -m pip -q install 'aiohttp>=3.9,<4' 'websockets>=14,<18'; then
    echo "left out: the clients (they need python3-venv, aiohttp and websockets)"
    exit 0
fi
exec "$venv/bin/python" ci/courier/soak.py "$target/$profile/corsair-courier" --seconds "${SOAK_SECONDS:-600}"
