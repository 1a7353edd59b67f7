#!/usr/bin/env python3
"""Measures a join with one silent side: SERIES series that never find a partner, written twice.

    cargo build --release -p corsair-stream
    ci/stream/join.py target/release/corsair-stream [SERIES]

Prints the seconds until everything is written and until the server is idle, its processor time and its memory. Fails if a
point was lost: each is joined, waits, or is counted as left out. Linux, because it reads /proc.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

TASK = """var a = stream | from('cpu') | groupBy('host')
var b = stream | from('silent') | groupBy('host')
a | join(b).as('a', 'b').tolerance(1s)
"""
BODY = 20_000


def write(url, body):
    """Writes a body, again and again while the server is busy."""
    request = urllib.request.Request(f"{url}/write?db=x&precision=s", data=body, method="POST")
    while True:
        try:
            return urllib.request.urlopen(request, timeout=120).read()
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503):
                raise
            time.sleep(0.05)


def processor_time(pid):
    """Seconds of processor time of a process."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid):
    """Its memory now, in kB."""
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))


def main():
    program = sys.argv[1]
    series = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    with tempfile.TemporaryDirectory() as directory:
        task = os.path.join(directory, "join.tick")
        with open(task, "w") as file:
            file.write(TASK)
        arguments = [program, "serve", "--addr", "127.0.0.1:0", "--task", task]
        server = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            url = next(found[0] for line in server.stdout if (found := re.search(r"http:\S+", line)))
            begun, spent = time.monotonic(), processor_time(server.pid)
            for second in (1_700_000_000, 1_700_000_010):
                for first in range(0, series, BODY):
                    some = range(first, min(first + BODY, series))
                    write(url, "\n".join(f"cpu,host=h{host} value={host % 100} {second}" for host in some).encode())
            written = time.monotonic() - begun
            before = -1.0
            while processor_time(server.pid) - before > 0.02:
                before = processor_time(server.pid)
                time.sleep(0.5)
            took, used = time.monotonic() - begun, processor_time(server.pid) - spent
            shown = json.load(urllib.request.urlopen(f"{url}/tasks/join"))
            collected = max(edge["collected"] for edge in shown["edges"] if edge["to"].startswith("join"))
            print(
                f"{2 * series} points of {series} series beside a silent side: written after {written:.1f} s, quiet after "
                f"{took:.1f} s, {used:.1f} s of processor time, {memory(server.pid)} kB"
            )
            if collected != 2 * series:
                sys.exit(f"join: {collected} of {2 * series} points came to it")
        finally:
            server.terminate()
            server.wait(60)


if __name__ == "__main__":
    main()
