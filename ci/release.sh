#!/usr/bin/env bash
# Builds the release files, and tests them like a new user: without Rust, in an empty root.
#
#   ci/release.sh                       all steps but pages
#   ci/release.sh binaries container    only these: workflow packages install binaries empty_root container units wheels newcomer tracks features
#   ci/release.sh pages                 must be asked for: the book and the playground as files, which ci/book.sh and ci/playground.sh test
#   TARGET=aarch64-unknown-linux-musl ci/release.sh binaries
#
# Archives and wheels lie in target/release-files, with SHA256SUMS. Nothing is uploaded; see .github/RELEASING.md.
set -euo pipefail
cd "$(dirname "$0")/.."

host=x86_64-unknown-linux-musl
build=${TARGET:-$host}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
files=$target/release-files
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
all_steps=(workflow packages install binaries empty_root container units wheels newcomer tracks features)

# need COMMAND PACKAGE...: installs Debian packages if the command is missing.
need() {
    command -v "$1" >/dev/null && return
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${@:2}" >/dev/null
}

# The workflow that repeats these steps for a tag has no mistake that a linter finds.
step_workflow() {
    if ! command -v go >/dev/null; then
        echo "left out: the workflow (actionlint needs go)"
        return 0
    fi
    go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 .github/workflows/*.yml
}

# Every crate builds from its package, in the order of their dependencies, and says what the registry and docs.rs ask for.
step_packages() {
    cargo publish --workspace --dry-run
    ci/release/packages.py "$target/package/tmp-registry"
}

# `cargo install` from nothing: without the registry's files, a configuration or a build.
step_install() {
    local root
    root=$(mktemp -d)
    CARGO_HOME=$root/cargo-home CARGO_TARGET_DIR=$root/target \
        cargo install --quiet --path crates/cli --features full --root "$root"
    "$root/bin/corsair" -a netflixoss -d 2 --out "$root" | tail -n 3
    "$root/bin/corsair" marshal --format sonic --count 10 --time 1 | tail -n 1
    rm -rf "$root"
}

# Checksums of all files that are here.
sums() {
    (cd "$files" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum -- >SHA256SUMS)
}

# Static binaries, stripped, in archives with completions, manual page and licenses.
step_binaries() {
    rustup target add "$build"
    case $build in
    x86_64-*) need musl-gcc musl-tools ;;
    aarch64-*)
        need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross
        export CC_aarch64_unknown_linux_musl=aarch64-linux-gnu-gcc
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=aarch64-linux-gnu-gcc
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUSTFLAGS="-C target-feature=+crt-static -C link-self-contained=yes"
        ;;
    esac
    # The command is loaded at any address, but stores the places to adjust in their short form; and a panic ends it, so the
    # index of the tables for unwinding has no use. Both together are a thirtieth of the program.
    local flags=CARGO_TARGET_${build^^}_RUSTFLAGS
    flags=${flags//-/_}
    env "$flags=${!flags:-} -C link-arg=-Wl,-z,pack-relative-relocs,--no-eh-frame-hdr" \
        cargo build --profile dist --target "$build" -p corsair-cli --features full
    cargo build --profile dist-services --target "$build" -p corsair-stream -p corsair-courier --features corsair-stream/tls,corsair-stream/kafka
    mkdir -p "$files"
    local program package built run=() command=$target/$build/dist/corsair
    if [[ $build == aarch64-* ]] && [ "$(uname -m)" != aarch64 ]; then
        need qemu-aarch64 qemu-user
        run=(qemu-aarch64)
    fi
    for program in corsair corsair-stream corsair-courier; do
        package=$program-$version-$build
        rm -rf "${files:?}/$package"
        mkdir -p "$files/$package"
        built=$target/$build/dist-services/$program
        [ "$program" != corsair ] || built=$command
        cp "$built" LICENSE-APACHE LICENSE-MIT CHANGELOG.md "$files/$package/"
        if [ "$program" = corsair ]; then
            cp README.md "$files/$package/"
            mkdir "$files/$package/completions"
            for shell in bash zsh fish; do
                "${run[@]}" "$command" completions "$shell" >"$files/$package/completions/corsair.$shell"
            done
            "${run[@]}" "$command" man >"$files/$package/corsair.1"
        else
            cp "crates/${program#corsair-}/README.md" "$files/$package/"
        fi
        tar -C "$files" -czf "$files/$package.tar.gz" "$package"
        rm -r "${files:?}/$package"
    done
    sums
    local size
    size=$(stat -c %s "$command")
    echo "corsair is $size bytes; at most 15,000,000 are allowed"
    [ "$size" -le 15000000 ]
    found_by_binstall
}

# The archive has the name, and the program the path, that the metadata of the crate gives.
found_by_binstall() {
    local url path
    fill() {
        sed -n "s/^$1 = \"\(.*\)\"/\1/p" crates/cli/Cargo.toml |
            sed "s/{ version }/$version/g; s/{ target }/$build/g; s/{ archive-suffix }/.tar.gz/; s/{ bin }/corsair/; s/{ binary-ext }//"
    }
    url=$(fill pkg-url)
    path=$(fill bin-dir)
    tar -tzf "$files/${url##*/}" "$path"
}

# The archive in an empty root: no shell, no library, no Rust.
step_empty_root() {
    local root address page
    root=$(mktemp -d)
    tar -C "$root" --strip-components 1 -xzf "$files/corsair-$version-$host.tar.gz"
    mkdir "$root/tmp"
    chroot "$root" /corsair -a netflixoss -d 2 --out /tmp | tail -n 3
    chroot "$root" /corsair -a netflixoss -d 60 --out /tmp --ui >"$root/log" 2>&1 &
    page=$!
    for _ in $(seq 50); do
        address=$(grep -o 'http://127\.0\.0\.1:[0-9]*/[^ ]*' "$root/log") && break
        sleep 0.1
    done
    if ! curl -fsS "$address" | grep '<title>corsair'; then
        echo "--ui serves no page; it printed:" >&2
        cat "$root/log" >&2
        return 1
    fi
    kill "$page"
    wait "$page" || true
    rm -rf "$root"
}

# One image with the three programs, which runs as a user without rights; built without a daemon.
step_container() {
    need buildah buildah
    mkdir -p "$target/image"
    for program in corsair corsair-stream corsair-courier; do
        tar -C "$target/image" --strip-components 1 -xzf "$files/$program-$version-$host.tar.gz"
    done
    cp ci/release/Dockerfile "$target/image/"
    buildah --storage-driver vfs bud --isolation chroot --tag corsair:"$version" "$target/image"
    local container
    container=$(buildah --storage-driver vfs from corsair:"$version")
    buildah --storage-driver vfs run --isolation chroot "$container" -- /corsair -a fsm -p 1000 -d 1 | tail -n 1
    buildah --storage-driver vfs rm "$container" >/dev/null
}

# A root with Debian's Python and curl, and without Rust: `$debian`. False, with a line that says so, if there cannot be one.
debian=$target/debian-root
debian_root() {
    [ -x "$debian/usr/bin/python3.14" ] && return
    need debootstrap debootstrap
    if ! debootstrap --variant=minbase --include=python3.14,python3.14-venv,curl sid "$debian" >"$target/debootstrap.log" 2>&1; then
        rm -rf "$debian"
        echo "left out: a root of Debian, which debootstrap cannot make here; $target/debootstrap.log says why"
        return 1
    fi
}

# Also fails on warnings, because a misspelt setting causes only a warning.
verify() {
    local said
    said=$(systemd-analyze verify "$1" 2>&1) && [ -z "$said" ] && return
    echo "$said" >&2
    return 1
}

# Units and manifests for operators.
step_units() {
    need systemd-analyze systemd
    local unit root
    root=$(mktemp -d)
    mkdir -p "$root/usr/local/bin" "$root/etc/systemd/system"
    for program in corsair-stream corsair-courier; do
        printf '#!/bin/sh\n' >"$root/usr/local/bin/$program"
        chmod +x "$root/usr/local/bin/$program"
    done
    for unit in examples/deploy/*.service examples/deploy/*.timer; do
        sed "s|/usr/local/bin|$root/usr/local/bin|" "$unit" >"$root/etc/systemd/system/${unit##*/}"
        verify "$root/etc/systemd/system/${unit##*/}"
    done
    for unit in corsair-courier-cluster corsair-stream-token; do
        local service=$root/etc/systemd/system/${unit%-*}.service
        mkdir "$service.d"
        sed "s|/usr/local/bin|$root/usr/local/bin|" "examples/deploy/$unit.conf" >"$service.d/${unit##*-}.conf"
        verify "$service"
    done
    rm -rf "$root"
    python3 -m venv "$target/kubernetes-venv"
    "$target/kubernetes-venv/bin/pip" install --quiet --disable-pip-version-check kubernetes-validate
    "$target/kubernetes-venv/bin/kubernetes-validate" --strict examples/deploy/*.yaml
}

# A Python of Debian's source that is built with musl: `$musl`. False, with a line that says so, if there cannot be one.
musl=$target/musl-python
musl_python() {
    [ -x "$musl/bin/python3" ] && return
    need musl-gcc musl-tools
    if ! ci/release/musl_python.sh "$musl" >"$target/musl-python.log" 2>&1; then
        echo "left out: a Python with musl; $target/musl-python.log says why"
        return 1
    fi
}

# The wheel for musl, unpacked, because this Python has no pip; and the source, which pip builds.
other_wheels() {
    local fresh
    fresh=$(mktemp -d)
    if musl_python; then
        python3 -m zipfile -e "$files"/corsair_sim-*-musllinux*.whl "$fresh"
        runs env -i PYTHONPATH="$fresh" TMPDIR=/tmp "$musl/bin/python3"
    fi
    python3 -m venv "$fresh/venv"
    "$fresh/venv/bin/pip" install --quiet --disable-pip-version-check maturin
    MATURIN_PEP517_ARGS="--profile dev" PATH=$fresh/venv/bin:$PATH \
        "$fresh/venv/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation "$files"/corsair_sim-*.tar.gz
    runs env -i TMPDIR=/tmp "$fresh/venv/bin/python"
    rm -rf "$fresh"
}

# Runs the command and the module with this Python.
runs() {
    "$@" -m corsair -a fsm -p 1000 -d 1 | grep digest
    "$@" -c 'import sys, corsair
result = corsair.run(corsair.Architecture.built_in("lamp"), duration=2, seed=1)
print("Python", sys.version.split()[0], "runs lamp:", result.summary["digest"])'
}

# abi3 wheels for glibc and musl, and the source; the first is installed on each Python that is here.
step_wheels() {
    local venv=$target/release-venv python
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check 'maturin[zig]>=1.9,<2'
    mkdir -p "$files"
    rm -f "$files"/*.whl
    (
        cd crates/python
        PATH=$venv/bin:$PATH
        maturin build --release --zig --compatibility manylinux2014 --target x86_64-unknown-linux-gnu --out "$files"
        rustup target add x86_64-unknown-linux-musl
        maturin build --release --zig --compatibility musllinux_1_2 --target x86_64-unknown-linux-musl --out "$files"
        maturin sdist --out "$files"
    )
    sums
    local minor found tried=0
    for minor in 10 11 12 13 14; do
        found=
        for python in "python3.$minor" "$HOME/.pyenv/versions/3.$minor".*/bin/python; do
            "$python" -c "import sys; sys.exit(sys.version_info[:2] != (3, $minor))" 2>/dev/null && found=$python && break
        done
        if [ -n "$found" ]; then
            installs "$found" ""
        elif [ "$minor" = 14 ] && debian_root; then
            rm -rf "$debian/tmp/wheels" && mkdir "$debian/tmp/wheels" && cp "$files"/*.whl "$debian/tmp/wheels/"
            installs python3.14 "$debian"
        else
            echo "left out: Python 3.$minor is not installed"
            continue
        fi
        tried=$((tried + 1))
    done
    [ "$tried" -gt 0 ]
    other_wheels
}

# Installs the wheel for glibc with this Python, in a root if one is given, and runs the command and the module.
installs() {
    local python=$1 root=$2 fresh wheels=$files
    local enter=()
    if [ -n "$root" ]; then
        enter=(chroot "$root")
        wheels=/tmp/wheels
    fi
    fresh=$("${enter[@]}" mktemp -d)
    "${enter[@]}" "$python" -m venv "$fresh"
    # shellcheck disable=SC2016
    "${enter[@]}" sh -c '"$1/bin/pip" install --quiet --disable-pip-version-check --no-index "$2"/corsair_sim-*-manylinux*.whl' sh "$fresh" "$wheels"
    runs "${enter[@]}" env -i PATH="$fresh/bin" TMPDIR=/tmp "$fresh/bin/python"
    "${enter[@]}" rm -rf "$fresh"
}

# The book, and the playground as one file that opens in a browser from any folder.
step_pages() {
    [ -d "$target/book/html" ] || ci/book.sh commands build
    [ -f "$target/playground/index.html" ] || ci/playground.sh build
    mkdir -p "$files"
    cp "$target/playground/index.html" "$files/corsair-playground-$version.html"
    tar -C "$target/book" --transform "s|^html|corsair-book-$version|" -czf "$files/corsair-book-$version.tar.gz" html
    sums
}

# A stranger who has only the archives copies the commands of the first pages of the book.
step_newcomer() {
    debian_root || return 0
    local home=$debian/newcomer programs=$debian/newcomer/programs
    rm -rf "$home"
    mkdir -p "$programs" "$home/ci" "$home/examples"
    for program in corsair corsair-stream corsair-courier; do
        tar -C "$programs" --strip-components 1 -xzf "$files/$program-$version-$host.tar.gz"
    done
    cp -r ci/book "$home/ci/"
    cp -r examples/book "$home/examples/"
    mount -t proc proc "$debian/proc" 2>/dev/null || true
    local status=0
    chroot "$debian" /usr/bin/python3.14 -B /newcomer/ci/book/run.py --programs /newcomer/programs --pictures /tmp/pictures \
        /newcomer/examples/book/src/{introduction,gallery,architecture/{start,faults,import,hunt},operate/{start,courier}}.md || status=$?
    umount "$debian/proc" 2>/dev/null || true
    return "$status"
}

# A stranger with Rust and a clone, in which nothing is built, copies the commands of the tracks that are written in Rust.
step_tracks() {
    local clone programs
    clone=$(mktemp -d)
    programs=$(mktemp -d)
    git clone --quiet . "$clone"
    tar -C "$programs" --strip-components 1 -xzf "$files/corsair-$version-$host.tar.gz"
    (
        cd "$clone"
        CARGO_TARGET_DIR=$clone/target ci/book/run.py --programs "$programs" --pictures "$clone/pictures" \
            examples/book/src/{actors/start,actors/raft,service/start}.md
    )
    rm -rf "$clone" "$programs"
}

# The table of features in RELEASING.md is true of each artifact that is here.
step_features() {
    local unpacked artifacts=() venv=$target/features-venv
    unpacked=$(mktemp -d)
    tar -C "$unpacked" --strip-components 1 -xzf "$files/corsair-$version-$host.tar.gz"
    cargo build --quiet --bin corsair
    artifacts=("source=$target/debug/corsair" "static binaries=$unpacked/corsair" "container=$unpacked/corsair")
    if compgen -G "$files/corsair_sim-*-manylinux*.whl" >/dev/null; then
        [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check --no-index --force-reinstall "$files"/corsair_sim-*-manylinux*.whl
        artifacts+=("wheel=$venv/bin/python -m corsair")
    fi
    ci/release/features.py "${artifacts[@]}"
    rm -rf "$unpacked"
}

. ci/steps.sh
choose_steps release "$@"
run_steps
