#!/usr/bin/env bash
# Records spans of the official OpenTelemetry SDKs of Python, Go and Node with `corsair learn --listen`: HTTP with
# protobuf and JSON, gRPC, each with and without gzip. Then the learned definition must have every service with every
# span. Also sends what no SDK sends: large bodies, bombs of gzip, slow and silent connections.
#
# Needs Go, Python 3.11 or newer, Node with npm, and the registries of Go, PyPI, npm and crates.io. TWIN_WORK is a folder
# for what is built; CORSAIR is a command that was built with the feature otlp.
set -euo pipefail
cd "$(dirname "$0")/.."
work=${TWIN_WORK:-/tmp/corsair-twin}/listen
traces=${TWIN_TRACES:-300}
mkdir -p "$work"

corsair=${CORSAIR:-}
if [ -z "$corsair" ]; then
    cargo build --bin corsair --features otlp
    corsair=$PWD/target/debug/corsair
fi

[ -d "$work/venv" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet opentelemetry-sdk opentelemetry-exporter-otlp-proto-http \
    opentelemetry-exporter-otlp-proto-grpc
cp -r ci/twin/listen/go "$work/"
(cd "$work/go" && { [ -f go.mod ] || go mod init send >/dev/null 2>&1; } && go mod tidy >/dev/null 2>&1 && go build -o "$work/go-send" .)
cp -r ci/twin/listen/node "$work/"
(cd "$work/node" && npm install --silent --no-audit --no-fund)

"$corsair" learn --listen 127.0.0.1:0 --format json --out "$work/learned.json" >"$work/report.json" 2>"$work/said" &
pid=$!
trap 'kill -KILL $pid 2>/dev/null || true' EXIT
address=
for _ in $(seq 100); do
    address=$(grep -o 'at 127.0.0.1:[0-9]*' "$work/said" | head -1 | cut -c4- || true)
    [ -n "$address" ] && break
    sleep 0.1
done
[ -n "$address" ] || { cat "$work/said" >&2; exit 1; }

"$work/venv/bin/python" ci/twin/listen/send.py "$address" "$traces"
"$work/go-send" "$address" "$traces"
(cd "$work/node" && node send.mjs "$address" "$traces")
python3 ci/twin/listen/hostile.py "$address"

# Ctrl-C ends the recording.
kill -INT "$pid"
wait "$pid"
trap - EXIT
python3 - "$work/report.json" "$traces" <<'CHECK'
import json, sys

report, traces = json.load(open(sys.argv[1])), int(sys.argv[2])
kinds = ["python-http", "python-http-gzip", "python-grpc", "python-grpc-gzip", "go-http", "go-http-gzip", "go-grpc",
         "go-grpc-gzip", "node-json", "node-json-gzip"]
services = {service["name"] for service in report["definition"]["services"]}
missing = [f"{side}-{kind}" for kind in kinds for side in ("web", "db") if f"{side}-{kind}" not in services]
assert not missing, f"missing: {missing}"
assert report["traces"] == traces * len(kinds), report["traces"]
assert report["spans"] == 3 * traces * len(kinds), report["spans"]
for kind in report["requests"]:
    assert kind["recorded"] == traces, kind
    for quantile in kind["quantiles"]:
        assert abs(quantile["recorded_seconds"] - 0.008) < 1e-4, kind
print(f"learned {len(services)} services from {report['spans']} spans by {len(kinds)} exporters")
CHECK

# The rate and the processor time come from a real Prometheus, which scrapes a program with known counters.
command -v prometheus >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus >/dev/null; }
read -r scraped asked < <(python3 -c 'import socket
sockets = [socket.socket() for _ in range(2)]
for one in sockets: one.bind(("127.0.0.1", 0))
print(*[one.getsockname()[1] for one in sockets])')
cat >"$work/prometheus.yml" <<CONFIG
global: { scrape_interval: 1s }
scrape_configs:
  - job_name: shop
    static_configs: [{ targets: ["127.0.0.1:$scraped"] }]
CONFIG
python3 ci/twin/listen/exporter.py "$scraped" db-go-grpc &
exporter=$!
rm -rf "$work/prometheus"
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/prometheus" \
    --web.listen-address="127.0.0.1:$asked" --log.level=error &
prometheus=$!
trap 'kill $exporter $prometheus 2>/dev/null || true' EXIT
"$corsair" -a "$work/learned.json" -d 20 --flow-format otlp --out "$work" >/dev/null
sleep 30
"$corsair" learn "$work"/json_metrics/learned_flow.otlp.jsonl --resamples 0 --format json --lookback 25s \
    --prometheus "127.0.0.1:$asked" --rate 'sum(rate(http_requests_total[5s]))' \
    --cpu 'sum by (service) (rate(cpu_seconds_total[5s]))' --out "$work/priced.json" >"$work/priced-report.json"
python3 - "$work/priced-report.json" <<'CHECK'
import json, sys

report = json.load(open(sys.argv[1]))
loads = report["definition"]["load"].values()
rate = sum(load["rate"] if isinstance(load["rate"], float) else load["rate"][-1]["rate"] for load in loads)
assert abs(rate / 50 - 1) < 0.1, rate
cpu = [number for number in report["numbers"] if number["name"] == "db-go-grpc processor"]
assert len(cpu) == 1 and cpu[0]["value"] > 0, report["numbers"]
print(f"Prometheus: {rate:.1f} requests per second, {cpu[0]['value'] * 1e3:.3f} ms of a processor per request")
CHECK
