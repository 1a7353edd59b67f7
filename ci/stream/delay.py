#!/usr/bin/env python3
"""How long a healthy sink takes beside hung ones.

    ci/stream/delay.py target/release/corsair-stream [--seconds 20]

Starts the server with forty tasks whose receiver takes connections and never answers, and one whose
receiver is this script. Writes to both all the time, and measures from the answer to a healthy write
until its body has arrived. Fails if a healthy write is refused, or if the 99th percentile is 100 ms or
more. Python's standard library only.
"""

import argparse
import http.client
import http.server
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

HUNG = 40
LIMIT = 0.1

arguments = argparse.ArgumentParser()
arguments.add_argument("program")
arguments.add_argument("--seconds", type=float, default=20)
arguments = arguments.parse_args()

arrived = {}
news = threading.Condition()


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        now = time.monotonic()
        with news:
            for row in body["series"][0]["values"]:
                arrived[row[0]] = now
            news.notify_all()
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=receiver.serve_forever, daemon=True).start()
hung = socket.create_server(("127.0.0.1", 0), backlog=4096)

with tempfile.TemporaryDirectory() as directory:
    directory = pathlib.Path(directory)
    tasks = []

    def task(name, text):
        path = directory / f"{name}.tick"
        path.write_text(text)
        tasks.append(str(path))

    for at in range(HUNG):
        url = f"http://127.0.0.1:{hung.getsockname()[1]}/{at}"
        task(f"hung{at}", f"stream | from('hung') | http_post('{url}')")
    url = f"http://127.0.0.1:{receiver.server_address[1]}/"
    task("healthy", f"stream | from('healthy') | http_post('{url}')")
    command = [arguments.program, "serve", "--addr", "127.0.0.1:0", "--shutdown", "1"]
    command += ["--sink-memory", "100000", "--patience", "0.2", "--task", *tasks]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    address = server.stdout.readline().strip().rsplit("//", 1)[1]
    over = time.monotonic() + arguments.seconds
    statuses = {}

    def write(connection, lines):
        connection.request("POST", "/write?db=db", lines)
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def disturb():
        connection = http.client.HTTPConnection(address)
        at = 0
        while time.monotonic() < over:
            lines = "".join(f"hung v=1 {at + row}\n" for row in range(1000))
            at += 1000
            status = write(connection, lines)
            statuses[status] = statuses.get(status, 0) + 1

    disturbing = [threading.Thread(target=disturb) for _ in range(4)]
    for thread in disturbing:
        thread.start()
    connection = http.client.HTTPConnection(address)
    delays = []
    refused = lost = 0
    at = 0
    while time.monotonic() < over:
        at += 1
        if write(connection, f"healthy v=1 {at}\n") != 204:
            refused += 1
            continue
        begun = time.monotonic()
        with news:
            news.wait_for(lambda: at in arrived, timeout=10)
        if at not in arrived:
            lost += 1
            continue
        delays.append(max(0.0, arrived[at] - begun))
        time.sleep(0.005)
    for thread in disturbing:
        thread.join()
    server.terminate()
    server.stdout.read()
    if server.wait() != 0:
        sys.exit("delay: the server did not end well")

delays.sort()
share = lambda part: delays[min(len(delays) - 1, int(len(delays) * part))]
print(f"{len(delays)} healthy points beside {HUNG} hung receivers; hung writes by status: {statuses}")
print(f"delay, ms: median {share(0.5) * 1e3:.2f}, p99 {share(0.99) * 1e3:.2f}, longest {delays[-1] * 1e3:.2f}")
if refused or lost:
    sys.exit(f"delay: {refused} healthy writes refused, {lost} not delivered within 10 s")
if share(0.99) >= LIMIT:
    sys.exit("delay: the 99th percentile is 100 ms or more")
