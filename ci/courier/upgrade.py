#!/usr/bin/env python3
"""A node alone is upgraded from a program of an older version, the last one with NATS: it is killed, continues with the
files of the older program, and becomes the first member of a cluster. Then it is upgraded and taken back. Last, two
nodes on a NATS server are exported by the older program and imported by the newer one, and nothing is lost.

    upgrade.py OLDER NEWER
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from service import Client, Process, cluster, free_port, node

FLAGS = ["--rate", "100000", "--strangers", "100000", "--fanout", "1000000", "--password-memory", "8"]


async def post(nodes, room, who, over, acknowledged):
    client = Client(nodes, room)
    turn = 0
    while not over.is_set():
        turn += 1
        path = f"/conversations/{room}/messages"
        stored = await client.until_done("POST", path, {"text": str(turn)}, who["token"], f"{room}-{turn}")
        acknowledged[room, stored["number"]] = str(turn)
        if turn % 16 == 0:
            client.at += 1
        await asyncio.sleep(0.005)
    await client.close()


async def alone(older, newer):
    with tempfile.TemporaryDirectory() as directory:
        running = node(older, f"{directory}/data", flags=FLAGS)
        try:
            await running.ready()
            client = Client([running])
            anne = await client.until_done("POST", "/users", {"name": "anne", "password": "correct horse"})
            mary = await client.until_done("POST", "/users", {"name": "mary", "password": "correct horse"})
            room = await client.until_done("POST", "/conversations", {"recipients": [mary["user"]]}, anne["token"])
            acknowledged, wanted = {}, {}
            for seconds, program in ((1, older), (2, newer), (3, newer)):
                over = asyncio.Event()
                posting = asyncio.create_task(post([running], room["id"], anne, over, acknowledged))
                await asyncio.sleep(seconds)
                running.kill()
                over.set()
                running.arguments[0] = program
                running.start()
                await running.ready()
                await posting
                wanted.update(acknowledged)
                # It begins with the keys of the last time, under which nothing new is stored.
                found = await everything(running, room["id"], mary)
                assert found == wanted, f"{len(found)} messages of {len(wanted)} after {program}"
            await client.close()
            running.kill()
            key = Path(directory) / "cluster.key"
            key.write_text("the key of a cluster of one")
            running.arguments += ["--cluster-key", str(key)]
            running.start()
            await running.ready()
            assert await everything(running, room["id"], mary) == wanted
            left = sorted(path.name for path in Path(f"{directory}/data").iterdir())
            assert "log" not in left and "cluster" in left, left
            print(f"a node killed and upgraded among {len(wanted)} posts, none lost, none invented")
        finally:
            running.kill()


async def everything(running, room, reader):
    """The texts of a conversation, by number."""
    client, found, after = Client([running]), {}, 0
    while True:
        page = await client.until_done("GET", f"/conversations/{room}/messages?after={after}", None, reader["token"])
        found.update({(room, each["number"]): each["text"] for each in page["messages"]})
        if not page["more"]:
            await client.close()
            return found
        after = page["messages"][-1]["number"]


async def moved(older, newer):
    """The data of nodes on a NATS server are moved to a cluster."""
    program = shutil.which("nats-server") or "/usr/sbin/nats-server"
    if not Path(program).exists():
        print("left out: nodes that are moved from NATS (apt-get install nats-server)")
        return
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        key, port = directory / "nodes.key", free_port()
        key.write_text("the key of nodes that are moved")
        nats = Process([program, "-js", "-a", "127.0.0.1", "-p", str(port), "-sd", str(directory / "nats")], port)
        running = [nats]
        try:
            await nats.ready()
            flags = [*FLAGS, "--nats", f"nats://127.0.0.1:{port}", "--nats-key", str(key)]
            old = [node(older, directory / f"old{number}", flags=flags) for number in range(2)]
            running += old
            for one in old:
                await one.ready()
            await asyncio.sleep(3)
            client = Client(old)
            anne, mary, path = await client.two_in_a_conversation()
            room, acknowledged, over = int(path.split("/")[2]), {}, asyncio.Event()
            posting = asyncio.create_task(post(old, room, anne, over, acknowledged))
            await asyncio.sleep(3)
            over.set()
            await posting
            await client.close()
            lines = directory / "lines.jsonl"
            subprocess.run([older, "export", "--data", directory / "old1", "--to", lines], check=True)
            subprocess.run([newer, "import", "--from", lines, "--data", directory / "node0"], check=True)
            refused = subprocess.run([newer, *old[0].arguments[1:]], capture_output=True, text=True, timeout=30, check=False)
            assert refused.returncode == 2 and "--cluster-key" in refused.stderr, refused
            new = await cluster(newer, directory, 3, FLAGS)
            running += new
            client = Client(new)
            for (_, number), text in acknowledged.items():
                again = await client.until_done("POST", path, {"text": text}, anne["token"], f"{room}-{text}")
                assert again["number"] == number and again["repeated"], again
            await client.close()
            for one in new:
                assert await everything(one, room, mary) == acknowledged
            print(f"nodes on NATS are moved to a cluster with {len(acknowledged)} posts, none lost, none doubled")
        finally:
            for process in running:
                process.kill()


async def taken_back(older, newer, directory):
    """A node is upgraded and taken back, as the guide for operators says."""
    data, backup = directory / "data", directory / "copy"
    running = node(older, data, flags=FLAGS)
    client = Client([running])
    try:
        await running.ready()
        anne, mary, path = await client.two_in_a_conversation()

        async def posts(count, begin):
            for turn in range(begin, begin + count):
                await client.until_done("POST", path, {"text": f"{turn}"}, anne["token"], f"{turn}")

        def stop():
            running.child.terminate()
            running.child.wait()

        await posts(50, 0)
        stop()
        shutil.copytree(data, backup)
        running.arguments[0] = newer
        running.start()
        await running.ready()
        await posts(50, 50)
        stop()
        shutil.move(data, directory / "newer")
        shutil.move(backup, data)
        running.arguments[0] = older
        running.start()
        await running.ready()
        found = await everything(running, int(path.split("/")[2]), mary)
        assert list(found.values()) == [f"{turn}" for turn in range(50)], found
        print("a node alone was upgraded and taken back, with 50 of 100 posts")
    finally:
        await client.close()
        running.kill()


async def main():
    older, newer = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as directory:
        await taken_back(older, newer, Path(directory))
    await alone(older, newer)
    await moved(older, newer)


asyncio.run(main())
