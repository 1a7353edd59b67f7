#!/usr/bin/env bash
# The live view in a real Chromium, and its modules checked by the compiler of TypeScript.
#
#   ci/view.sh            all steps
#   ci/view.sh types      only these: types sight page hosts
#   ci/view.sh page --screenshots DIR   also writes pictures
#
# Needs node and npm, and Debian's chromium for the page. What is missing is installed, if that can be
# done; otherwise this script says what it leaves out.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
modules=$target/view-node
steps=()
extra=()
while [ "$#" -gt 0 ]; do
    case "$1" in
    types | sight | page | hosts) steps+=("$1") ;;
    --screenshots)
        extra+=("$1" "${2:?--screenshots needs a directory}")
        shift
        ;;
    *)
        echo "view: no step $1; there are types, sight, page and hosts" >&2
        exit 2
        ;;
    esac
    shift
done
[ "${#steps[@]}" -gt 0 ] || steps=(types sight page hosts)

# True if the program exists; otherwise installs the system's package of the same name.
program() {
    command -v "$1" >/dev/null ||
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$1"; } >/dev/null 2>&1
}

# True if node has this package.
package() {
    program npm && command -v node >/dev/null &&
        PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm install --silent --no-save --prefix "$modules" "$@"
}

step_types() {
    if ! package 'typescript@^5.9'; then
        echo "left out: the types of the page (they need node, npm and the package typescript)"
        return 0
    fi
    "$modules/node_modules/.bin/tsc" --noEmit --allowJs --checkJs --strict --noUncheckedIndexedAccess \
        --target es2023 --module es2022 --moduleResolution bundler --lib es2023,dom,dom.iterable \
        crates/view/src/page/*.js
}

# Runs a script of ci/view with Chromium, and the program of a package.
drive() {
    if ! package 'playwright-core@^1.50' 'axe-core@^4.10'; then
        echo "left out: the live view in a browser (it needs node, npm and the packages playwright-core and axe-core)"
        return 0
    fi
    if ! program chromium; then
        echo "left out: the live view in a browser (apt-get install chromium)"
        return 0
    fi
    # With the features of all members, so that libraries which other builds of the command need are built once.
    cargo build --workspace --bin "$3" --features "$2/ui"
    NODE_PATH="$(cd "$modules" && pwd)/node_modules" timeout 400 \
        node "ci/view/$1" "$target/debug/$3" "$(command -v chromium)" "${extra[@]}"
}

# The page as a newcomer sees it: names, accessibility, commands by buttons.
step_sight() {
    drive sight.mjs corsair-cli corsair
}

step_page() {
    drive page.mjs corsair-cli corsair
}

# Real programs as hosts, which are killed, paused and partitioned by click.
step_hosts() {
    drive hosts.mjs corsair-host-run corsair-host
}

for step in "${steps[@]}"; do
    echo "view: $step"
    "step_$step"
done
