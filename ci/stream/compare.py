#!/usr/bin/env python3
"""Compares corsair-stream with kapacitord: the same tasks and the same points, one server after the other.

    ci/stream/compare.py target/release/corsair-stream PATH/kapacitord [POINTS]

`ci/stream.sh compare` builds both and runs this. Each server gets the points over
one connection, in bodies of 5,000 lines. Printed: points per second until all windows have been counted, processor
seconds, and the largest resident memory. The counts of the windows must be equal.
"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time

HOSTS = 100
LINES = 5_000
SECOND = 1_000_000_000
TASKS = {
    "count": "stream|from().measurement('cpu').groupBy('host')|window().period(10s).every(10s).align()|count('value')|httpOut('out')",
    "filter": "stream|from().measurement('cpu').where(lambda: \"value\" > 50.0)|eval(lambda: \"value\" * 2.0).as('v')|groupBy('host')|window().period(10s).every(10s).align()|mean('v')|httpOut('out')",
}


def bodies(points):
    """A point of each host for each second, and at last a point that ends all windows."""
    lines = []
    for at in range(points):
        second = at // HOSTS
        lines.append(f"cpu,host=h{at % HOSTS} value={(at * 7919 + second * 31) % 100}.5 {second * SECOND}")
    end = (points // HOSTS // 10 + 2) * 10 * SECOND
    lines += [f"cpu,host=h{host} value=99.5 {end}" for host in range(HOSTS)]
    for at in range(0, len(lines), LINES):
        yield ("\n".join(lines[at : at + LINES]) + "\n").encode()


def request(port, method, path, body=None, kind="text/plain"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, {"Content-Type": kind})
    answer = connection.getresponse()
    return answer.status, answer.read()


def shown(port, path):
    status, body = request(port, "GET", path)
    if status != 200:
        return None
    series = json.loads(body).get("series") or []
    rows = ((s["tags"]["host"], s["values"][-1][1:]) for s in series)
    return sorted(rows)


def usage(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{pid}/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), peak / 1024


def send(name, port, path, all_bodies, accepted):
    """Posts all bodies over one connection, each until it is answered with the status `accepted`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for body in all_bodies:
        while True:
            connection.request("POST", path, body)
            answer = connection.getresponse()
            said = answer.read()
            if answer.status == accepted:
                break
            assert answer.status == 503, (name, answer.status, said)
            time.sleep(0.01)


def run(name, command, port, define, out, all_bodies, points):
    """Starts a server, and measures it. Returns what it shows."""
    with open(os.devnull, "w") as null:
        server = subprocess.Popen(command, stdout=null, stderr=null)
    try:
        for _ in range(300):
            try:
                if request(port, "GET", "/ping" if "corsair" in name else "/kapacitor/v1/ping")[0] == 204:
                    break
            except OSError:
                time.sleep(0.1)
        for task, text in TASKS.items():
            status, body = define(port, task, text)
            assert status < 300, (name, task, status, body)
        before = usage(server.pid)[0]
        begun = time.monotonic()
        send(name, port, "/write?db=db&rp=rp&precision=ns", all_bodies, 204)
        # The last window of every host holds the points of its last ten seconds.
        found, stable = {}, 0
        while stable < 3:
            latest = {task: shown(port, out(task)) for task in TASKS}
            complete = all(rows and len(rows) == HOSTS for rows in latest.values())
            stable = stable + 1 if complete and latest == found else 0
            found = latest
            if not stable:
                ended = time.monotonic()
            time.sleep(0.02)
        seconds, memory = usage(server.pid)
        took = ended - begun
        print(f"{name:16} {points / took / 1e6:8.2f} M points/s {seconds - before:8.2f} s CPU {memory:8.0f} MB", flush=True)
        return found
    finally:
        server.terminate()
        server.wait()


def main():
    corsair, kapacitord = sys.argv[1:3]
    points = int(sys.argv[3]) if len(sys.argv) > 3 else 2_000_000
    all_bodies = list(bodies(points))
    with tempfile.TemporaryDirectory() as directory:
        config = os.path.join(directory, "kapacitor.conf")
        with open(config, "w") as file:
            file.write(
                f'hostname="localhost"\ndata_dir="{directory}"\n[http]\nbind-address="127.0.0.1:19292"\nlog-enabled=false\n'
                f'[replay]\ndir="{directory}/replay"\n[task]\ndir="{directory}/tasks"\n[storage]\nboltdb="{directory}/k.db"\n'
                '[logging]\nfile="STDERR"\nlevel="ERROR"\n[[influxdb]]\nenabled=false\nname="none"\nurls=["http://localhost:1"]\n'
                "[reporting]\nenabled=false\n[stats]\nenabled=false\n"
            )

        def define_kapacitor(port, task, text):
            body = {"id": task, "type": "stream", "dbrps": [{"db": "db", "rp": "rp"}], "script": text, "status": "enabled"}
            return request(port, "POST", "/kapacitor/v1/tasks", json.dumps(body), "application/json")

        results = []
        for flags, name in [([], "corsair, no data"), (["--data", f"{directory}/data"], "corsair, interval")]:
            command = [corsair, "serve", "--addr", "127.0.0.1:19192", *flags]
            results.append(
                run(name, command, 19192, define_kapacitor, lambda task: f"/tasks/{task}/out", all_bodies, points)
            )
        command = [kapacitord, "-config", config]
        results.append(
            run("kapacitord", command, 19292, define_kapacitor, lambda task: f"/kapacitor/v1/tasks/{task}/out", all_bodies, points)
        )
        for result in results[1:]:
            assert result == results[0], "the servers show different windows"
        print("the windows are equal")


if __name__ == "__main__":
    main()
