#!/usr/bin/env bash
# Builds the playground, a page that needs no server, and tests it in Node and in Chromium.
#
#   ci/playground.sh               all steps
#   ci/playground.sh build         only the page: target/playground/index.html; steps are build digests page
#
# Needs node and npm, and Debian's chromium for the page. The command of wasm-bindgen is installed from the registry.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
out=$target/playground
modules=$target/playground-node
wasm=$target/wasm32-unknown-unknown/playground/corsair_playground.wasm
all_steps=(build digests page)

# Installs a Debian package if its command is missing.
need() {
    command -v "$1" >/dev/null && return
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}

# The command has to be of the library's version.
bindgen() {
    local version
    version=$(sed -n '/^name = "wasm-bindgen"$/{n;s/version = "\(.*\)"/\1/p}' Cargo.lock)
    if ! command wasm-bindgen --version 2>/dev/null | grep -q " $version\$"; then
        if ! "$target/tools/bin/wasm-bindgen" --version 2>/dev/null | grep -q " $version\$"; then
            CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
                cargo install --quiet wasm-bindgen-cli --version "$version" --root "$target/tools"
        fi
        PATH=$target/tools/bin:$PATH
    fi
    command wasm-bindgen "$@"
}

packages() {
    need node nodejs
    need npm npm
    [ -d "$modules/node_modules/esbuild" ] || PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm install --silent --no-save --prefix "$modules" \
        'esbuild@^0.25' 'codemirror@^6' '@codemirror/autocomplete@^6' '@codemirror/lang-json@^6' 'codemirror-json-schema@^0.8' \
        'playwright-core@^1.50' 'axe-core@^4'
    export NODE_PATH=$modules/node_modules
}

step_build() {
    rustup target add wasm32-unknown-unknown
    cargo build --profile playground --target wasm32-unknown-unknown -p corsair-playground
    bindgen --target web --out-dir "$out/web" "$wasm"
    bindgen --target nodejs --out-dir "$out/node" "$wasm"
    packages
    node ci/playground/build.mjs "$out/web" "$out/index.html"
}

step_digests() {
    [ -f "$out/index.html" ] || step_build
    cargo build --quiet --bin corsair
    node ci/playground/digests.mjs "$out/node" "$target/debug/corsair" "$out/digests.json"
}

step_page() {
    [ -f "$out/digests.json" ] || step_digests
    need chromium chromium
    packages
    timeout 500 node ci/playground/page.mjs "$out/index.html" "$(command -v chromium)" "$out/digests.json" "$out/node" \
        "$out/playground.png"
}

. ci/steps.sh
choose_steps playground "$@"
run_steps
