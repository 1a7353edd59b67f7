#!/usr/bin/env python3
"""Compares corsair-stream with Vector on pipelines that both have: points in over HTTP, and out to an InfluxDB.

    ci/stream/vector.py target/release/corsair-stream PATH/vector [POINTS]

Vector has no windows in the time of events, so the pipelines filter by a tag, or by a value that is then doubled. Its metrics are
logs there, because of metrics it keeps only the last value of a batch. Both servers get the points over one connection, in bodies
of 5,000 lines, one server after the other, three rounds. Printed: points per second until the receiver has everything, processor
seconds of the server, and its largest resident memory. The receiver must have the same number of lines from both.
`ci/stream.sh vector` builds corsair-stream, and says how to build Vector.
"""

import http.server
import json
import os
import socketserver
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zlib

from compare import LINES, request, send, usage

HOSTS = 100
SECOND = 1_000_000_000
PIPELINES = {
    "by tag": {
        "corsair": "stream | from().measurement('cpu').where(lambda: \"host\" != 'h7') | influxDBOut('URL').database('out')",
        "vector": [("logs", {"type": "metric_to_log"}), ("filter", {"type": "filter", "condition": '.host != "h7"'})],
        "is_kept": lambda host, value: host != 7,
    },
    "by value": {
        "corsair": "stream | from().measurement('cpu').where(lambda: \"value\" > 50.0) | eval(lambda: \"value\" * 2.0).as('v')"
        " | influxDBOut('URL').database('out')",
        "vector": [
            ("logs", {"type": "metric_to_log"}),
            ("filter", {"type": "filter", "condition": "to_float!(.gauge.value) > 50.0"}),
            ("double", {"type": "remap", "source": ".v = to_float!(.gauge.value) * 2.0\ndel(.gauge)\ndel(.kind)\ndel(.name)"}),
        ],
        "is_kept": lambda host, value: value > 50,
    },
}


def points(count):
    """The bodies, and for each pipeline the number of points that it keeps."""
    lines, kept = [], dict.fromkeys(PIPELINES, 0)
    for at in range(count):
        host, second = at % HOSTS, at // HOSTS
        value = (at * 7919 + second * 31) % 100 + 0.5
        lines.append(f"cpu,host=h{host} value={value} {second * SECOND}")
        for name, pipeline in PIPELINES.items():
            kept[name] += pipeline["is_kept"](host, value)
    bodies = ["\n".join(lines[at : at + LINES]) + "\n" for at in range(0, count, LINES)]
    return [body.encode() for body in bodies], kept


class Receiver(http.server.BaseHTTPRequestHandler):
    """Counts lines, as the write API of an InfluxDB would get them."""

    protocol_version = "HTTP/1.1"
    lines = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = zlib.decompress(body, wbits=31)
        Receiver.lines += body.strip().count(b"\n") + 1 if body.strip() else 0
        self.send_response(204)
        self.end_headers()

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def wait_for(port, path):
    for _ in range(300):
        try:
            return request(port, "GET", path)
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"port {port} does not answer")


def run(command, port, path, accepted, begin, bodies, expected):
    """Sends all bodies to a server. Returns the seconds, its processor seconds, and its memory in MB."""
    Receiver.lines = 0
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            begin()
            before, begun = usage(server.pid)[0], time.monotonic()
            send(command[0], port, path, bodies, accepted)
            while Receiver.lines < expected:
                if time.monotonic() - begun > 300:
                    log.seek(0)
                    raise SystemExit(f"{Receiver.lines} of {expected} lines arrived:\n{log.read().decode()[-2000:]}")
                time.sleep(0.005)
            took = time.monotonic() - begun
            time.sleep(0.3)
            assert Receiver.lines == expected, (Receiver.lines, expected)
            seconds, memory = usage(server.pid)
            return took, seconds - before, memory
        finally:
            server.terminate()
            server.wait()


def main():
    corsair, vector = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
    bodies, kept = points(count)
    receiver = Server(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{receiver.server_port}"
    with tempfile.TemporaryDirectory() as directory:
        for name, pipeline in PIPELINES.items():
            text = pipeline["corsair"].replace("URL", url)

            def define():
                wait_for(19192, "/ping")
                body = json.dumps({"name": "shared", "text": text})
                status, said = request(19192, "POST", "/tasks", body, "application/json")
                assert status < 300, said

            decoding = {"codec": "influxdb"}
            source = {"type": "http_server", "address": "127.0.0.1:19292", "path": "/write", "decoding": decoding}
            transforms, last = {}, "in"
            for step, settings in pipeline["vector"]:
                transforms[step] = {**settings, "inputs": [last]}
                last = step
            sink = {
                "type": "influxdb_logs",
                "inputs": [last],
                "endpoint": url,
                "bucket": "out",
                "org": "o",
                "token": "t",
                "batch": {"max_events": LINES, "timeout_secs": 0.1},
                "measurement": "cpu",
                "tags": ["host"],
            }
            config = os.path.join(directory, "vector.json")
            with open(config, "w") as file:
                json.dump({"data_dir": directory, "sources": {"in": source}, "transforms": transforms, "sinks": {"out": sink}}, file)
            contenders = {
                "corsair": ([corsair, "serve", "--addr", "127.0.0.1:19192"], 19192, "/write?db=db&precision=ns", 204, define),
                "vector": ([vector, "--quiet", "--config", config], 19292, "/write", 200, lambda: wait_for(19292, "/")),
            }
            results = {contender: [] for contender in contenders}
            for _ in range(3):
                for contender, (command, port, path, accepted, begin) in contenders.items():
                    results[contender].append(run(command, port, path, accepted, begin, bodies, kept[name]))
            for contender, runs in results.items():
                took, seconds, memory = (statistics.median(column) for column in zip(*runs))
                print(
                    f"{name:10} {contender:8} {count / took / 1e6:8.3f} M points/s {seconds:8.2f} s CPU {memory:8.0f} MB",
                    flush=True,
                )


if __name__ == "__main__":
    main()
