#!/usr/bin/env python3
"""Unmodified third-party clients write to a server.

    ci/stream/clients.py target/debug/corsair-stream

Installs the packages `influxdb` (for InfluxDB 1) and `influxdb-client` (for InfluxDB 2) with pip into a
directory of its own, writes points with each, with and without the right token, and looks for them in
what a task shows.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request
import venv

TOKEN = "sesame"
TASK = "stream | from() | groupBy(*) | http_out('seen')\n"


def inside(address):
    """Runs with the packages."""
    import influxdb
    import influxdb_client
    from influxdb_client.client.write_api import SYNCHRONOUS

    host, port = address.split(":")
    one = influxdb.InfluxDBClient(host, int(port), "anybody", TOKEN, "metrics")
    assert one.ping(), "no version"
    one.create_database("metrics")
    one.create_retention_policy("week", "7d", "1", "metrics")
    points = [{"measurement": "one", "tags": {"host": f"h{at}"}, "fields": {"value": float(at)}} for at in range(50)]
    assert one.write_points(points, time_precision="ms")
    assert one.write_points(["one,host=line value=1"], protocol="line")
    wrong = influxdb.InfluxDBClient(host, int(port), "anybody", "wrong", "metrics")
    try:
        wrong.write_points(points)
        raise SystemExit("a wrong password was taken")
    except influxdb.exceptions.InfluxDBClientError as error:
        assert error.code == 401, error

    for gzip in (False, True):
        with influxdb_client.InfluxDBClient(f"http://{address}", TOKEN, org="any", enable_gzip=gzip) as two:
            assert two.ping()
            assert two.health().status == "pass"
            write = two.write_api(write_options=SYNCHRONOUS)
            for at in range(50):
                point = influxdb_client.Point("two").tag("host", f"h{at}").tag("gzip", gzip).field("value", at)
                write.write("metrics/autogen", record=point)
            batch = two.write_api()
            for at in range(1000):
                batch.write("metrics", record=f"batch,gzip={gzip},host=b{at} value={at}i")
            batch.close()
    with influxdb_client.InfluxDBClient(f"http://{address}", "wrong", org="any") as two:
        try:
            two.write_api(write_options=SYNCHRONOUS).write("metrics", record="two value=1")
            raise SystemExit("a wrong token was taken")
        except influxdb_client.rest.ApiException as error:
            assert error.status == 401, error


def main(program):
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        venv.create(directory / "venv", with_pip=True)
        python = directory / "venv/bin/python"
        packages = ["influxdb==5.3.2", "influxdb-client==1.49.0", "setuptools<81"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        (directory / "all.tick").write_text(TASK)
        command = [program, "serve", "--addr", "127.0.0.1:0", "--token", TOKEN, "--task", directory / "all.tick"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            address = server.stdout.readline().strip().rsplit("//", 1)[1]
            subprocess.run([python, __file__, "--inside", address], check=True)
            request = urllib.request.Request(f"http://{address}/tasks/all/seen")
            request.add_header("Authorization", f"Token {TOKEN}")
            series = json.load(urllib.request.urlopen(request))["series"]
        finally:
            server.terminate()
            server.wait()
    found = {}
    for one in series:
        found[one["name"]] = found.get(one["name"], 0) + 1
    expected = {"one": 51, "two": 100, "batch": 2000}
    if found != expected:
        sys.exit(f"clients: found {found}, not {expected}")
    print("clients: all points of influxdb and influxdb-client arrived, wrong tokens were refused")


if sys.argv[1] == "--inside":
    inside(sys.argv[2])
else:
    main(sys.argv[1])
