#!/usr/bin/env bash
# Definitions in an editor: the JSON language server of VS Code reads the schema that a definition names, and must offer its
# fields, describe them, and mark wrong values in place.
#
#   ci/editor.sh
#
# Needs node and npm; the server is installed from npm's registry.
set -euo pipefail
cd "$(dirname "$0")/.."

modules=$(realpath -m "${CARGO_TARGET_DIR:-target}")/editor
for tool in node npm; do
    command -v "$tool" >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null; }
done
[ -x "$modules/node_modules/.bin/vscode-json-language-server" ] ||
    npm install --silent --no-save --prefix "$modules" 'vscode-langservers-extracted@^4.10'
git ls-files "*_arch.json" | xargs node ci/editor.mjs "$modules/node_modules/.bin/vscode-json-language-server"
