#!/usr/bin/env bash
# All checks that must pass before a change goes in; they are the same locally and on a build machine.
#
#   ci/test.sh            all steps
#   ci/test.sh fmt docs   only these
#   ci/test.sh miri       must be asked for: undefined behaviour in the engine
#   ci/test.sh package    must be asked for: whether the libraries can be published, asks the registry
#   ci/test.sh observe    must be asked for: a real Kafka and a real Neo4j
#   ci/test.sh cluster    must be asked for: runs over processes of mpirun, which it installs, and kills and stops
#   ci/test.sh courier    must be asked for: nodes that are killed
#   ci/test.sh checkpoint must be asked for: kills runs 100 times and resumes them
#   ci/test.sh book       must be asked for: the book, which installs mdBook
#   ci/test.sh python     must be asked for: the Python module, with what it needs from PyPI
#   ci/test.sh host       must be asked for: simulations of hosts, ten times each, side by side
#   ci/test.sh stream     must be asked for: clients of InfluxDB from pip, and hung receivers
#
# Needs rustup and a C linker. The toolchain comes from rust-toolchain.toml; what else is missing
# and cannot be had (nightly for miri, cargo-deny) is left out with a line that says so.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"
# The steps build once; incremental caches would only cost time and space.
export CARGO_INCREMENTAL=0

all_steps=(toolchain fmt words lean clippy tests docs examples benches versus readme semantics features ui loom deny)

# The toolchain of rust-toolchain.toml with its components.
step_toolchain() {
    cargo --version
    cargo fmt --version || rustup component add rustfmt
    cargo clippy --version || rustup component add clippy
}

step_fmt() {
    cargo fmt --all --check
}

# Phrases that readers stumble over; ci/words.txt lists them with their replacements.
step_words() {
    ci/words.sh
}

# The number of crates that `cargo run` builds, and so the wait of a newcomer.
most_crates=150
step_lean() {
    local count
    cargo build --bin corsair
    count=$(cargo build --quiet --bin corsair --message-format json |
        grep -o '"package_id":"[^"]*"' | sort -u | wc -l)
    echo "the command is built from $count crates; at most $most_crates are allowed"
    if [ "$count" -gt "$most_crates" ]; then
        echo "see which are new with: cargo tree -p corsair-cli -e normal,build --prefix none | sort -u" >&2
        return 1
    fi
}

step_clippy() {
    cargo clippy --workspace --all-targets -- -D warnings
}

# The README's command.
step_tests() {
    cargo test
    # The features that are not in the default build of the command.
    cargo test -p corsair-cli --features compose,metrics,otlp,rayon -- compose every_executor receiver sense
}

step_docs() {
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
}

# Cargo lists the examples that it knows when it is asked for one without a name.
step_examples() {
    local names name
    cargo build --examples
    names=$(cargo run --example 2>&1 | sed -n 's/^    \([a-z0-9_-]*\)$/\1/p' || true)
    if [ -z "$names" ]; then
        echo "there are no examples; expected some in examples/" >&2
        return 1
    fi
    for name in $names; do
        echo "example $name"
        timeout 120 cargo run --quiet --example "$name" >/dev/null
    done
}

# Runs every benchmark once and checks its results; speed does not matter here. The
# members are those of the tests, because others would have other features and all be built again.
step_benches() {
    cargo test --bench '*'
}

# The benchmarks of third-party runtimes, which are a separate workspace. This step only checks the code; each contender has
# a command that runs it.
step_versus() {
    local manifest=benches/versus/Cargo.toml
    cargo fmt --manifest-path "$manifest" --check
    cargo clippy --manifest-path "$manifest" --all-targets -- -D warnings
}

# The README shows the example `hello` from its first `use` on. Every fenced `sh` block of it and of the crates' READMEs
# that follows a line `<!-- ci: run -->` is run, but for `cargo test`, which is the step tests. `-p` is replaced by the program,
# whose libraries the steps before have built; the step features checks that each member can also be built alone.
step_readme() {
    local commands
    if ! awk '/^```/ { inside = ($0 == "```rust"); next } inside' README.md |
        diff - <(sed -n '/^use /,$p' examples/examples/hello.rs); then
        echo "the rust block of README.md differs from examples/examples/hello.rs; copy it from its first \`use\` on" >&2
        return 1
    fi
    commands=$(awk '
        /^<!-- ci: run -->[ \t]*$/ { marked = 1; next }
        inside && /^```/           { inside = 0; next }
        inside && /^cargo test$/   { next }
        inside                     { print; next }
        marked && /^```sh/         { inside = 1; marked = 0; next }
        /[^ \t]/                   { marked = 0 }
    ' README.md crates/*/README.md |
        sed -e 's/ -p corsair-examples / /' -e 's/ -p \(corsair-[a-z-]*\)/ --bin \1/')
    if [ -z "$commands" ]; then
        echo "README.md has no sh block marked with <!-- ci: run -->" >&2
        return 1
    fi
    timeout 600 bash -euxo pipefail -c "$commands"
}

# Every guarantee of the SEMANTICS.md of a crate has a test.
step_semantics() {
    ci/semantics.py
}

# Model checking of the barrier and the exchange; loom replaces the atomics under `cfg(loom)`.
step_loom() {
    local log=target/loom/log
    mkdir -p target/loom
    RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom \
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        timeout 600 cargo test -p corsair --release --lib loom | tee "$log"
    if ! grep -q '^test result: ok. [1-9]' "$log"; then
        echo "no test of corsair with loom in its path was run" >&2
        return 1
    fi
}

# Small scenarios, which still take many minutes, so not among all steps; `ci/miri.sh all` takes up to an hour.
step_miri() {
    ci/miri.sh
}

# Each test of hosts ten times, with other neighbours and addresses; `ci/host.sh whole` 200 times.
step_host() {
    ci/host.sh
}

# Builds without the default features, and with each feature that no other step builds.
step_features() {
    cargo clippy -p corsair --all-features -- -D warnings
    cargo test -p corsair --all-features --doc -- rng inspect_value TestLayer
    cargo test -p corsair --no-default-features --lib -- run::tests
    local rooms
    for rooms in edge fork-join fsm edge,fork-join edge,fsm fork-join,fsm threads tokio serde; do
        cargo clippy -p corsair --lib --no-default-features --features "$rooms" -- -D warnings
    done
    if rustup target add wasm32-unknown-unknown; then
        cargo clippy -p corsair --no-default-features --target wasm32-unknown-unknown -- -D warnings
    else
        echo "left out: WebAssembly, its target cannot be installed"
        cargo clippy -p corsair --no-default-features -- -D warnings
    fi
    local features
    for features in "" tls; do
        cargo clippy -p corsair-stream --lib --no-default-features --features "$features" -- -D warnings
    done
    cargo clippy -p corsair-stream --lib --bins --features tls,kafka -- -D warnings
    cargo clippy -p corsair-cli --bins --features ui -- -D warnings
    local member
    for member in corsair-courier corsair-courier-load corsair-host-run corsair-stream; do
        cargo check -p "$member"
    done
    cargo check -p corsair-examples --example hello
    ci/cluster.sh quick
}

# Whether every crate can be published, in dependency order; without building it again from its package.
step_package() {
    cargo publish --workspace --dry-run --no-verify
}

# Nodes and a server are killed under load; not among all steps, because it installs a server.
step_courier() {
    ci/courier.sh
}

# Processes of one run, which mpirun starts, are killed and stopped; not among all steps, because that takes minutes.
step_cluster() {
    ci/cluster.sh
}

# Kills runs at random moments and resumes them from their checkpoints. It is not one of the default steps, because it takes
# minutes.
step_checkpoint() {
    ci/checkpoint.sh
}

# The live view in a real browser, where one is or can be installed.
step_ui() {
    ci/view.sh
}

# The Python module, its wheel, types, tests, examples and notebooks; not among all steps, because it fetches
# packages with pip and builds the libraries once more.
step_python() {
    ci/python.sh
}

# Every command of the book, its programs and its links; not among all steps, because it installs mdBook.
step_book() {
    ci/book.sh
}

# Third-party clients, hung receivers, 1,000 kills, a real Kafka, the command line of kapacitor. It is not one of the default
# steps, because it fetches packages.
step_stream() {
    ci/stream.sh
}

# Real systems to write to; not among all steps, because it fetches 150 MB the first time.
step_observe() {
    ci/observe.sh
}

step_deny() {
    if ! cargo deny --version; then
        echo "left out: cargo-deny is not installed (cargo install --locked cargo-deny)"
        return 0
    fi
    cargo deny check bans licenses sources
    if timeout 30 git ls-remote -q https://github.com/rustsec/advisory-db HEAD >/dev/null 2>&1; then
        cargo deny check advisories
    else
        echo "left out: advisories, their database cannot be reached"
    fi
}

. ci/steps.sh
choose_steps ci "$@"
run_steps
