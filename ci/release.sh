#!/usr/bin/env bash
# Builds what is released, and tests it as a stranger would: without Rust, in an empty root.
#
#   ci/release.sh                       all steps
#   ci/release.sh binaries container    only these: binaries empty_root container units wheels
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
all_steps=(binaries empty_root container units wheels)

# Installs a Debian package if its command is missing.
need() {
    command -v "$1" >/dev/null && return
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}

# Static binaries, stripped, in archives with completions, manual page and licenses.
step_binaries() {
    rustup target add "$build"
    case $build in
    x86_64-*) need musl-gcc musl-tools ;;
    aarch64-*)
        need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
        export CC_aarch64_unknown_linux_musl=aarch64-linux-gnu-gcc
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=aarch64-linux-gnu-gcc
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUSTFLAGS="-C target-feature=+crt-static -C link-self-contained=yes"
        ;;
    esac
    cargo build --profile dist --target "$build" -p corsair-cli -p corsair-stream -p corsair-courier \
        --features corsair-cli/full,corsair-stream/tls
    mkdir -p "$files"
    local program package output=$target/$build/dist
    for program in corsair corsair-stream corsair-courier; do
        package=$program-$version-$build
        rm -rf "${files:?}/$package"
        mkdir -p "$files/$package"
        cp "$output/$program" LICENSE-APACHE LICENSE-MIT CHANGELOG.md "$files/$package/"
        if [ "$program" = corsair ]; then
            cp README.md "$files/$package/"
            if [ "$build" = "$host" ]; then
                mkdir "$files/$package/completions"
                for shell in bash zsh fish; do
                    "$output/corsair" completions "$shell" >"$files/$package/completions/corsair.$shell"
                done
                "$output/corsair" man >"$files/$package/corsair.1"
            fi
        else
            cp "crates/${program#corsair-}/README.md" "$files/$package/"
        fi
        tar -C "$files" -czf "$files/$package.tar.gz" "$package"
        rm -r "${files:?}/$package"
    done
    (cd "$files" && sha256sum -- *.tar.gz >SHA256SUMS)
    local size
    size=$(stat -c %s "$output/corsair")
    echo "corsair is $size bytes; at most 15,000,000 are allowed"
    [ "$size" -le 15000000 ]
}

# The archive in an empty root: no shell, no library, no Rust.
step_empty_root() {
    local root port page
    root=$(mktemp -d)
    tar -C "$root" --strip-components 1 -xzf "$files/corsair-$version-$host.tar.gz"
    mkdir "$root/tmp"
    chroot "$root" /corsair -a netflixoss -d 2 --out /tmp | tail -n 3
    chroot "$root" /corsair -a netflixoss -d 60 --out /tmp --ui >"$root/log" 2>&1 &
    page=$!
    for _ in $(seq 50); do
        port=$(grep -o '127\.0\.0\.1:[0-9]*' "$root/log" | head -n 1) || true
        [ -n "$port" ] && break
        sleep 0.1
    done
    curl -fsS "http://$port/" | grep -q '<title>' && echo "the page of --ui is served at $port"
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

# Fails on warnings, too: a misspelt setting is one.
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
    for unit in corsair-courier-nats corsair-stream-token; do
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
    for python in python3.10 python3.11 python3.12 python3.13 python3.14; do
        if ! command -v "$python" >/dev/null; then
            echo "left out: $python is not installed"
            continue
        fi
        local fresh
        fresh=$(mktemp -d)
        "$python" -m venv "$fresh"
        "$fresh/bin/pip" install --quiet --disable-pip-version-check "$files"/corsair_sim-*-manylinux*.whl
        env -i PATH="$fresh/bin" "$fresh/bin/python" -m corsair -a fsm -p 1000 -d 1 | tail -n 1
        rm -rf "$fresh"
    done
}

. ci/steps.sh
choose_steps release "$@"
run_steps
