#!/usr/bin/env python3
"""What the guide tells operators to do, done: the commands of the units start, one of several nodes is lost and replaced, and logs are rotated without a lost line.

    operate.py PROGRAMS DEPLOY
"""

import asyncio
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "courier"))

import aiohttp
from service import Client, Process, cluster, free_port, members, node, settled

FLAGS = ["--rate", "100000", "--strangers", "100000", "--fanout", "1000000", "--password-memory", "8"]


async def status(url, **request):
    async with aiohttp.ClientSession() as session, session.request(request.pop("method", "GET"), url, **request) as answer:
        return answer.status


async def units(programs, deploy, directory):
    """The command line of each service unit, and of the drop-in, starts its service."""
    secrets = directory / "secrets"
    secrets.mkdir()
    (secrets / "cluster.key").write_text("the key of the nodes")
    (secrets / "token").write_text("open sesame")
    replaced = {
        "/usr/local/bin": str(programs),
        "/var/lib": str(directory / "lib"),
        "${CREDENTIALS_DIRECTORY}": str(secrets),
        "\\\n": " ",
    }
    (directory / "lib").mkdir(exist_ok=True)
    courier = ["corsair-courier.service", "corsair-courier-cluster.conf"]
    stream = ["corsair-stream.service", "corsair-stream-token.conf"]
    for unit, ready in [*((unit, "/readyz") for unit in courier), *((unit, "/ping") for unit in stream)]:
        text = (deploy / unit).read_text()
        for here, there in replaced.items():
            text = text.replace(here, there)
        command = re.search(r"^ExecStart=(.+)$", text, re.M)[1]
        # The first address is where it listens.
        ports = [free_port() for _ in re.findall(r"127\.0\.0\.1:\d+", command)]
        for port in ports:
            command = re.sub(r"127\.0\.0\.1:(?!0*(?:%s)\b)\d+" % "|".join(map(str, ports)), f"127.0.0.1:{port}", command, count=1)
        service = Process(shlex.split(command), ports[0])
        try:
            await service.ready()
            assert await status(f"http://127.0.0.1:{ports[0]}{ready}") < 300
        finally:
            service.child.terminate()
            assert service.child.wait() == 0, unit
        shutil.rmtree(directory / "lib")
        (directory / "lib").mkdir()
    print("the commands of the units start and stop")


async def posts(running, path, token, over, acknowledged):
    client = Client(running)
    while not over.is_set():
        turn = len(acknowledged)
        await client.until_done("POST", path, {"text": f"{turn}"}, token, f"{turn}")
        acknowledged.append(f"{turn}")
    await client.close()


async def history(running, path, token):
    client = Client([running])
    found = []
    while True:
        page = await client.until_done("GET", f"{path}?after={len(found)}", None, token)
        found += [message["text"] for message in page["messages"]]
        if not page["more"]:
            await client.close()
            return found


def run(*arguments):
    done = subprocess.run([*map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)


async def lost_node(programs, directory):
    """One of three nodes loses its disk while the others serve, and is replaced."""
    program = str(programs / "corsair-courier")
    nodes = await cluster(program, directory, 3, FLAGS)
    try:
        client = Client(nodes)
        one, other, path = await client.two_in_a_conversation()
        await client.close()
        acknowledged, over = [], asyncio.Event()
        posting = asyncio.create_task(posts([nodes[0]], path, one["token"], over, acknowledged))
        await asyncio.sleep(2)
        nodes[2].kill()
        shutil.rmtree(directory / "node2")
        before = len(acknowledged)
        await asyncio.sleep(4)
        assert len(acknowledged) > before, "the other nodes serve"
        listed = members(program, directory / "node0")
        lost = next(member for member in listed if member["address"].endswith(f":{nodes[2].port}"))
        run(program, "remove", "--data", directory / "node0", "--node", lost["id"])
        nodes[2].start()
        await nodes[2].ready()
        await settled(program, directory / "node0", 3)
        known = len(acknowledged)
        there = await history(nodes[2], path, other["token"])
        assert there[:known] == acknowledged[:known], (len(there), known)
        over.set()
        await posting
        for each in nodes:
            assert await history(each, path, other["token"]) == acknowledged
        print(f"a node was replaced among {len(acknowledged)} posts")
    finally:
        for process in nodes:
            process.kill()


async def rotated(programs, deploy, directory):
    """The logs of a service without systemd, and the files of alerts, rotated by logrotate."""
    logs = directory / "logs"
    logs.mkdir()
    log, alerts = logs / "corsair-courier.log", logs / "alerts.log"
    courier = node(programs / "corsair-courier", directory / "rotating", flags=[*FLAGS, "--access-log"], stderr=log.open("a"))
    port = free_port()
    (directory / "alert.tick").write_text(f"stream | from('cpu') | alert().crit(value > 0).all().log('{alerts}')")
    arguments = [programs / "corsair-stream", "serve", "--addr", f"127.0.0.1:{port}", "--task", directory / "alert.tick"]
    stream = Process([*map(str, arguments), "--alert-logs", str(logs)], port)
    text = (deploy / "logrotate.conf").read_text().replace("/var/log/corsair", str(logs))
    # Rotation refuses files of others; here all belong to whoever runs this.
    configuration = directory / "logrotate.conf"
    configuration.write_text(text)
    configuration.chmod(0o644)
    logs.chmod(0o755)
    try:
        await courier.ready()
        await stream.ready()
        for turn in range(3):
            assert await status(f"http://127.0.0.1:{courier.port}/ping?{turn}") == 200
            for place in range(5):
                line = f"cpu,host=h{turn}x{place} value=1 {turn}\n"
                assert await status(f"http://127.0.0.1:{port}/write?db=d", method="POST", data=line) == 204
            for _ in range(100):
                lines = [line for file in logs.glob("alerts.log*") for line in file.read_text().splitlines()]
                if len(lines) == 5 * (turn + 1):
                    break
                await asyncio.sleep(0.05)
            assert len(lines) == 5 * (turn + 1), (turn, len(lines), [*logs.iterdir()])
            assert len(alerts.read_text().splitlines()) == 5, [*logs.iterdir()]
            assert log.read_text().count("GET /ping") == 1, log.read_text()
            run("logrotate", "--force", "--state", directory / "state", configuration)
        assert len([*logs.glob("corsair-courier.log.*")]) == 3, [*logs.iterdir()]
        print("logs are rotated, and every line is in one of the files")
    finally:
        courier.kill()
        stream.kill()


async def main():
    programs, deploy = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        await units(programs, deploy, directory)
        await lost_node(programs, directory)
        await rotated(programs, deploy, directory)


asyncio.run(main())
