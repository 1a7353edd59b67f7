#!/usr/bin/env bash
# Heavy proofs of crates/stream.
#
#   ci/stream.sh                all
#   ci/stream.sh clients        clients of InfluxDB from PyPI, hung receivers, a join with a silent input
#   ci/stream.sh kills [N]      N kills (default 1000) over 20 tasks for each durability: files as without a kill
#   ci/stream.sh kafka          a real Kafka broker, in and out, through 20 kills; needs Java 17 and Maven
#   ci/stream.sh kapacitor      the command line of kapacitor defines, enables, shows and deletes tasks; needs Go
#   ci/stream.sh measures       speed of deliveries, of writes for each durability, of recovery and of a stop, and memory
#   ci/stream.sh compare [N]    speed beside kapacitord, for N points; needs Go
#   ci/stream.sh vector PROGRAM [N]  speed beside Vector, for N points. Its source builds with: cargo build --release
#                               --no-default-features --features sources-http_server,transforms-filter,transforms-remap,
#                               transforms-metric_to_log,sinks-influxdb,tikv-jemallocator
#   ci/stream.sh tls            curl writes to a server with a certificate; needs openssl and curl
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
program="$target/debug/corsair-stream"
work=$(mktemp -d)
started=()
# Ends what was started here, and nothing else.
stop() {
    for pid in "${started[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    started=()
    rm -rf "$work"
}
trap stop EXIT
. ci/kafka.sh

# Starts a server with these flags, and sets `address`.
serve() {
    : >"$work/serve.out"
    "$program" serve --addr 127.0.0.1:0 "$@" >"$work/serve.out" 2>"$work/serve.err" &
    local pid=$!
    started+=("$pid")
    await corsair-stream "$pid" "$work/serve.err" grep -q listening "$work/serve.out"
    address=$(sed -n 's/.*listening at //p' "$work/serve.out")
}

# Whether the output of a command has a line that matches.
prints() {
    "${@:2}" >"$work/printed"
    grep -Eq "$1" "$work/printed" || { cat "$work/printed" >&2; return 1; }
}

step_clients() {
    cargo build -p corsair-stream
    ci/stream/clients.py "$program"
    ci/stream/delay.py "$program"
    ci/stream/join.py "$program" 20000
}

step_kills() {
    STREAM_KILLS="${1:-1000}" cargo test -p corsair-stream --test streams kills
}

step_kafka() {
    if ! command -v java >/dev/null || ! command -v mvn >/dev/null; then
        echo "left out: Kafka, because there is no java or mvn"
        return
    fi
    cargo test -p corsair-stream --features kafka,tls --test streams --no-run
    start_kafka
    cargo test -p corsair-stream --features kafka,tls --test streams -- \
        --ignored --nocapture --test-threads 1 kafka:: &
    local tests=$!
    # A test kills the broker, and continues with another one.
    wait -n "$kafka_pid" "$tests" || true
    if kill -0 "$tests" 2>/dev/null; then
        start_kafka
    fi
    wait "$tests"
}

step_measures() {
    cargo build --release -p corsair-stream -p corsair-stream-load
    ci/stream/measures.py "$target/release"
}

step_compare() {
    if ! command -v go >/dev/null; then
        echo "left out: kapacitord, because there is no go"
        return
    fi
    cargo build --release -p corsair-stream
    build_kapacitor kapacitord
    ci/stream/compare.py "$target/release/corsair-stream" "$target/kapacitor/kapacitord" "$@"
}

step_vector() {
    if [ -z "${1:-}" ]; then
        echo "left out: Vector, because no program is given"
        return
    fi
    cargo build --release -p corsair-stream
    ci/stream/vector.py "$target/release/corsair-stream" "$@"
}

# Builds a program of kapacitor. `go install` refuses a module that replaces others.
build_kapacitor() {
    mkdir -p "$target/kapacitor"
    cat >"$target/kapacitor/go.mod" <<MODULE
module client
go 1.20
require github.com/influxdata/kapacitor v1.5.9
replace gopkg.in/fsnotify.v1 => github.com/fsnotify/fsnotify v1.4.2
replace github.com/prometheus/prometheus => github.com/goller/prometheus v1.6.1-0.20170502220046-58298e738211
replace github.com/ugorji/go => ./ugorji
MODULE
    # kapacitord stops at its start with a current Go, which refuses an alphabet that names a letter twice.
    if [ ! -d "$target/kapacitor/ugorji" ]; then
        local module=github.com/ugorji/go@v0.0.0-20170312112114-708a42d24682 copy="$target/kapacitor/ugorji.part"
        rm -rf "$copy"
        cp -r "$(go mod download -json "$module" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')" "$copy"
        chmod -R u+w "$copy"
        sed -i 's/0123456789__/0123456789-_/' "$copy/codec/gen.go"
        echo 'module github.com/ugorji/go' >"$copy/go.mod"
        mv "$copy" "$target/kapacitor/ugorji"
    fi
    (cd "$target/kapacitor" && go build -mod=mod "github.com/influxdata/kapacitor/cmd/$1")
}

step_kapacitor() {
    if ! command -v go >/dev/null; then
        echo "left out: the command line of kapacitor, because there is no go"
        return
    fi
    cargo build -p corsair-stream
    build_kapacitor kapacitor
    serve --data "$work/data"
    local client=("$target/kapacitor/kapacitor" -url "$address")
    printf '%s\n' "stream" "    |from().measurement('cpu')" "    |window().period(10s).every(10s)" \
        "    |count('value')" "    |httpOut('counts')" >"$work/counts.tick"
    "${client[@]}" define counts -type stream -dbrp metrics.autogen -tick "$work/counts.tick"
    prints '^counts +stream +disabled +false +\["metrics"."autogen"\]' "${client[@]}" list tasks
    "${client[@]}" enable counts
    prints '^counts +stream +enabled +true' "${client[@]}" list tasks 'c*'
    prints '^Status: enabled' "${client[@]}" show counts
    curl -sf "$address/write?db=metrics&precision=s" --data-binary $'cpu value=1 1\ncpu value=2 11'
    prints '"count"' curl -sf "$address/tasks/counts/counts"
    "${client[@]}" disable counts
    prints '^Status: disabled' "${client[@]}" show counts
    if "${client[@]}" define wrong -type stream -dbrp a.b -tick /dev/null 2>"$work/wrong"; then
        echo "an empty script was accepted" >&2
        return 1
    fi
    "${client[@]}" delete tasks counts
    [ "$("${client[@]}" list tasks | wc -l)" = 1 ]
    echo "kapacitor's command line: define, list, enable, show, disable, delete"
}

step_tls() {
    cargo build -p corsair-stream --features kafka,tls
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
        -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
    printf 'secret\n' >"$work/token"
    serve --tls-cert "$work/cert.pem" --tls-key "$work/key.pem" --token-file "$work/token"
    local url="https://localhost:${address##*:}/write?db=d"
    local curl=(curl -s --cacert "$work/cert.pem" -o "$work/answer" -w '%{http_code}' --data-binary 'm v=1')
    [ "$("${curl[@]}" -H 'Authorization: Token secret' "$url")" = 204 ]
    [ "$("${curl[@]}" "$url")" = 401 ]
    # A client without TLS is closed, and delays no other.
    [ "$(curl -s -o /dev/null -w '%{http_code}' "http://localhost:${address##*:}/ping" || true)" != 204 ]
    [ "$("${curl[@]}" -H 'Authorization: Bearer secret' "$url")" = 204 ]
    echo "TLS: written with the token, refused without it"
}

step="${1:-all}"
case "$step" in
all)
    for each in clients kills kafka kapacitor measures compare vector tls; do
        "step_$each"
    done
    ;;
clients | kills | kafka | kapacitor | measures | compare | vector | tls) "step_$step" "${@:2}" ;;
*)
    echo "there is no step $step; choose clients, kills, kafka, kapacitor, measures, compare, vector or tls" >&2
    exit 2
    ;;
esac
