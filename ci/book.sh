#!/usr/bin/env bash
# The book: runs every command of its pages and compares the output, generates the reference, builds and tests the book,
# and checks its links.
#
#   ci/book.sh                    all steps
#   ci/book.sh commands build     only these: commands build test links axe
#   ci/book.sh --update [PAGE]    runs the commands and writes their output into the pages
#
# The built book is in target/book/html; nothing generated is committed. mdBook is installed from the registry if it is
# missing.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
book=$target/book
all_steps=(commands build test links axe)
mdbook_version=0.5.4

mdbook() {
    if ! command mdbook --version >/dev/null 2>&1; then
        [ -x "$target/tools/bin/mdbook" ] || CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
            cargo install --quiet --locked mdbook --version "$mdbook_version" --no-default-features --features search \
            --root "$target/tools"
        PATH=$target/tools/bin:$PATH
    fi
    command mdbook "$@"
}

# Builds with the feature that reads YAML, like the released binaries.
programs() {
    cargo build --quiet -p corsair-cli --features compose
    cargo build --quiet -p corsair-stream -p corsair-courier
}

# Prints a Python that has the module of the wheel; if ci/release.sh has built no wheel, prints a note and no Python.
python_with_wheel() {
    if ! compgen -G "$target/release-files/corsair_sim-*-manylinux*.whl" >/dev/null; then
        echo "left out: the Python programs of the book, which need ci/release.sh wheels" >&2
        return
    fi
    [ -x "$target/book-venv/bin/python" ] || python3 -m venv "$target/book-venv"
    "$target/book-venv/bin/pip" install --quiet --disable-pip-version-check --no-index --force-reinstall \
        "$target"/release-files/corsair_sim-*-manylinux*.whl
    echo "$target/book-venv/bin/python"
}

# Pictures that the commands draw are part of the book.
step_commands() {
    programs
    ci/book/run.py --programs "$target/debug" --python "$(python_with_wheel)" --pictures "$book/pictures"
}

step_build() {
    rm -rf "$book/source" "$book/examples" "$book/host"
    mkdir -p "$book/pictures"
    cp -r examples/book "$book/source"
    # Pages include parts of the examples.
    cp -r examples/examples "$book/examples"
    cp -r crates/host/examples "$book/host"
    cp ci/twin/README.md "$book/twin.md"
    cp ci/twin/data/results.svg "$book/source/src/architecture/"
    cp -r "$book/pictures/." "$book/source/src/"
    programs
    ci/book/reference.py --programs "$target/debug" --to "$book/source/src/reference"
    mdbook build "$book/source" --dest-dir "$book/html"
}

# The Rust programs of the pages, with the library in a separate folder, because rustdoc accepts only one build of each crate.
step_test() {
    [ -d "$book/source" ] || step_build
    cargo build --quiet -p corsair --target-dir "$target/book-library"
    mdbook test "$book/source" --library-path "$target/book-library/debug/deps"
}

step_links() {
    ci/book/links.py "$book/html"
}

step_axe() {
    local modules=$target/book-node
    for program in node npm chromium; do
        command -v "$program" >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${program/%node/nodejs}" >/dev/null; }
    done
    [ -d "$modules/node_modules/axe-core" ] ||
        PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm install --silent --no-save --prefix "$modules" 'playwright-core@^1.50' 'axe-core@^4.10'
    [ -d "$book/html" ] || step_build
    NODE_PATH=$modules/node_modules timeout 500 node ci/book/axe.mjs "$book/html" "$(command -v chromium)"
}

if [ "${1:-}" = --update ]; then
    programs
    exec ci/book/run.py --programs "$target/debug" --python "$(python_with_wheel)" --pictures "$book/pictures" --update "${@:2}"
fi
. ci/steps.sh
choose_steps book "$@"
run_steps
