#!/usr/bin/env python3
"""Measures of corsair-stream, with the promised limits beside them; all contenders alternate within one run.

    cargo build --release -p corsair-stream -p corsair-stream-load
    ci/stream/measures.py target/release [deliver|durability|recovery|stop|memory …]

Fails if a limit is exceeded. Linux, because it reads /proc.
"""

import gzip
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

BUILT = os.path.abspath(sys.argv[1])
COUNT = "stream | from().measurement('m0') | window(100s, every 100s) | count(value)"
MILLION = 1_000_000
failed = []


def report(what, value, unit, limit, within):
    """Prints a measure, and remembers whether it is within its limit."""
    print(f"{what:<60} {value:>12.2f} {unit:<6} limit {limit}{'' if within else '  EXCEEDED'}", flush=True)
    if not within:
        failed.append(what)


class Server:
    """A server with its data in a directory."""

    def __init__(self, directory, *flags):
        self.begun = time.monotonic()
        command = [f"{BUILT}/corsair-stream", "serve", "--addr", "127.0.0.1:0", *flags]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=directory
        )
        line = self.process.stdout.readline()
        self.url = re.search(r"http://\S+", line).group(0)
        self.start = time.monotonic() - self.begun

    def request(self, path, body=None, headers=None):
        """Sends a request, again and again while the server is busy, for at most two minutes. Returns the answer."""
        request = urllib.request.Request(self.url + path, data=body, headers=headers or {})
        begun = time.monotonic()
        while True:
            try:
                return urllib.request.urlopen(request, timeout=120).read().decode()
            except urllib.error.HTTPError as error:
                if error.code != 503 or time.monotonic() - begun > 120:
                    raise
                time.sleep(0.05)

    def task(self, name, text):
        """Adds a task."""
        body = f'{{"name": "{name}", "text": "{text}"}}'.encode()
        self.request("/tasks", body, {"content-type": "application/json"})

    def memory(self, field):
        """Memory in MB: VmRSS now, or VmHWM at most."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(rf"{field}:\s+(\d+)", status.read()).group(1)) / 1e3

    def end(self, name=signal.SIGTERM):
        """Ends the server. Returns the seconds until it has ended."""
        begun = time.monotonic()
        self.process.send_signal(name)
        self.process.stdout.read()
        self.process.wait()
        return time.monotonic() - begun


def load(server, seconds, *flags):
    """Writes as fast as the server accepts. Returns lines per second."""
    command = [f"{BUILT}/corsair-stream-load", "write", "--server", server.url.removeprefix("http://")]
    done = subprocess.run([*command, "--seconds", str(seconds), *flags], capture_output=True, text=True, check=True)
    return float(re.search(r": (\d+) lines/s", done.stdout).group(1))


def deliver():
    """A point to 1,000 tasks."""
    command = [f"{BUILT}/corsair-stream-load", "deliver", "--work", "from", "--tasks", "1000", "--rounds", "15"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    value = float(done.stdout.split()[-1])
    report("a point to 1,000 tasks, for each delivery", value, "ns", "0.5", value <= 0.5)


def durability():
    """Writes over sockets, for each durability."""
    rates = {"none": [], "memory": [], "interval": [], "always": []}
    for turn in range(5):
        # Every round begins with another contender, because the machine is not equally busy all the time.
        names = list(rates)
        for name in names[turn % 4 :] + names[: turn % 4]:
            with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
                data = [] if name == "none" else ["--data", "data", "--durability", name]
                server = Server(directory, *data)
                server.task("count", COUNT)
                load(server, 1)
                rates[name].append(load(server, 4))
                server.end()
    rate = {name: statistics.median(each) for name, each in rates.items()}
    for name in rates:
        print(f"writes with {name}: {rate[name] / 1e6:.2f} million lines/s of {[round(each / 1e6, 2) for each in rates[name]]}")
    share = 100 * rate["interval"] / rate["memory"]
    report("writes with `interval`, as a share of `memory`", share, "%", "90", share >= 90)
    share = 100 * rate["always"] / rate["memory"]
    report("writes with `always`, as a share of `memory`", share, "%", "40", share >= 40)


def recovery():
    """The start after a kill, under full load, for several ages of the log and sizes of the state."""
    for seconds, hosts in [(5, 100), (60, 100), (30, 100_000)]:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            server = Server(directory, "--data", "data")
            server.task("sum", "stream | from('m0') | groupBy('host') | window(100s, every 100s) | sum(value)")
            load(server, seconds, "--hosts", str(hosts))
            log = subprocess.run(["du", "-sm", f"{directory}/data"], capture_output=True, text=True, check=True)
            server.end(signal.SIGKILL)
            server = Server(directory, "--data", "data")
            what = f"recovery after {seconds} s of load, {hosts:,} groups, {log.stdout.split()[0]} MB"
            report(what, server.start, "s", "5", server.start <= 5)
            server.end()


def stop():
    """A stop with a million open windows, and the start after it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        server = Server(directory, "--data", "data", "--node-memory", str(4 << 30))
        server.task("sum", "stream | from('m') | groupBy('h') | window(100s, every 100s) | sum(v)")
        for begin in range(0, MILLION, 50_000):
            lines = "".join(f"m,h=h{at} v=1i 1\n" for at in range(begin, begin + 50_000))
            server.request("/write?db=x&precision=s", lines.encode())
        seconds = server.end()
        report("a stop with a million open windows", seconds, "s", "8", seconds <= 8)
        server = Server(directory, "--data", "data", "--node-memory", str(4 << 30))
        report("the start after it", server.start, "s", "5", server.start <= 5)
        server.end()


def memory():
    """Packed bodies of many clients, which are large when they are unpacked."""
    lines = "".join(f"m,host=h{at % 100} value={at % 1000}.5 {at}\n" for at in range(1_000_000))
    body = gzip.compress(lines.encode(), 1)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        server = Server(directory, "--body-memory", str(128 << 20), "--task-memory", str(64 << 20))
        server.task("count", COUNT)
        before = server.memory("VmRSS")
        accepted = []

        def write():
            server.request("/write?db=x&precision=s", body, {"content-encoding": "gzip"})
            accepted.append(True)

        clients = [threading.Thread(target=write) for _ in range(32)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        grown = server.memory("VmHWM") - before
        what = f"memory of 32 bodies of {len(body) / 1e6:.1f} MB, {len(lines) / 1e6:.0f} MB unpacked"
        # Bodies, the writes on the edges of the task, and the allocator's share.
        report(what, grown, "MB", "288", grown <= 288)
        report("bodies of 32 that were accepted within two minutes", len(accepted), "", "32", len(accepted) == 32)
        server.end()


MEASURES = {each.__name__: each for each in [deliver, durability, recovery, stop, memory]}
for name in sys.argv[2:] or MEASURES:
    MEASURES[name]()
if failed:
    sys.exit(f"{len(failed)} limits are exceeded: {'; '.join(failed)}")
