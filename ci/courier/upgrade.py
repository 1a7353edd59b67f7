#!/usr/bin/env python3
"""Three nodes on one NATS server are upgraded one after the other, from a program of an older version of the
commands to one of this, under load: nothing that was acknowledged is lost, and what only the newer version
knows is refused until the last node has been upgraded. Then one node with a log of its own, which is killed, and
continues with the files of the older program. Last, upgrades are taken back: a node alone has what was posted before its
directory was copied, one of two has everything.

    upgrade.py OLDER NEWER
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from service import Client, Refused, nats_server, node

FLAGS = ["--rate", "100000", "--strangers", "100000", "--fanout", "1000000", "--password-memory", "8"]
ROOMS = 6


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


async def title(nodes, room, who):
    """The status of what only the newer version knows."""
    client = Client(nodes)
    try:
        await client.once("PUT", f"/conversations/{room}/title", {"title": "the bay"}, who["token"])
        return 204
    except Refused as refused:
        return refused.status
    finally:
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
                found, after = {}, 0
                while True:
                    path = f"/conversations/{room['id']}/messages?after={after}"
                    page = await client.until_done("GET", path, None, mary["token"])
                    found.update({(room["id"], each["number"]): each["text"] for each in page["messages"]})
                    if not page["more"]:
                        break
                    after = page["messages"][-1]["number"]
                assert found == wanted, f"{len(found)} messages of {len(wanted)} after {program}"
            await client.close()
            left = sorted(path.name for path in Path(f"{directory}/data").iterdir())
            assert "log.redb" not in left, left
            print(f"a node killed and upgraded among {len(wanted)} posts, none lost, none invented")
        finally:
            running.kill()


async def together(older, newer):
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        key = directory / "nodes.key"
        key.write_text("the key of nodes that are upgraded")
        nats = nats_server(directory / "nats")
        await nats.ready()
        nodes = [node(older, directory / f"node{number}", nats, key, FLAGS) for number in range(3)]
        try:
            for one in nodes:
                await one.ready()
            await asyncio.sleep(3)
            client = Client(nodes)
            anne = await client.until_done("POST", "/users", {"name": "anne", "password": "correct horse"})
            mary = await client.until_done("POST", "/users", {"name": "mary", "password": "correct horse"})
            rooms = []
            for _ in range(ROOMS):
                room = {"recipients": [mary["user"]]}
                rooms.append((await client.until_done("POST", "/conversations", room, anne["token"]))["id"])
            over, acknowledged = asyncio.Event(), {}
            posting = [asyncio.create_task(post(nodes, room, anne, over, acknowledged)) for room in rooms]
            for number, one in enumerate(nodes):
                await asyncio.sleep(1.5)
                one.child.terminate()
                assert one.child.wait(20) == 0
                one.arguments[0] = newer
                one.start()
                await one.ready()
                await asyncio.sleep(3.5)
                found = await title([one], rooms[0], anne)
                wanted = 503 if number < 2 else 204
                assert found == wanted, f"{number + 1} of 3 nodes are upgraded, and a new command is answered {found}"
            over.set()
            await asyncio.gather(*posting)
            await client.close()
            for one in nodes:
                client = Client([one])
                found = {}
                for room in rooms:
                    after = 0
                    while True:
                        path = f"/conversations/{room}/messages?after={after}"
                        page = await client.until_done("GET", path, None, mary["token"])
                        for message in page["messages"]:
                            found[room, message["number"]] = message["text"]
                        if not page["more"]:
                            break
                        after = page["messages"][-1]["number"]
                await client.close()
                assert found == acknowledged, f"{len(found)} messages of {len(acknowledged)}"
            print(f"three nodes upgraded among {len(acknowledged)} posts, none lost, none invented")
        finally:
            for process in [*nodes, nats]:
                process.kill()


async def taken_back(older, newer, directory, shared):
    """The last of the nodes is upgraded and taken back, as the guide for operators says. The older program has no backups, so
    its directory is copied while it is stopped."""
    key, nats = directory / "nodes.key", None
    key.write_text("the key of nodes that are taken back")
    data, backup = directory / "last", directory / "copy"
    nodes, client = [], None
    try:
        if shared:
            nats = nats_server(directory / "nats")
            await nats.ready()
            nodes.append(node(older, directory / "first", nats, key, FLAGS))
        nodes.append(node(older, data, nats, key, FLAGS))
        for one in nodes:
            await one.ready()
        last = nodes[-1]
        client = Client(nodes)
        anne, mary, path = await client.two_in_a_conversation()

        async def posts(count, begin):
            for turn in range(begin, begin + count):
                await client.until_done("POST", path, {"text": f"{turn}"}, anne["token"], f"{turn}")

        def stop():
            last.child.terminate()
            last.child.wait()

        await posts(50, 0)
        stop()
        shutil.copytree(data, backup)
        last.arguments[0] = newer
        last.start()
        await last.ready()
        await posts(50, 50)
        stop()
        refused = subprocess.run([older, *last.arguments[1:]], capture_output=True, text=True, timeout=30, check=False)
        assert refused.returncode != 0 and "version" in refused.stderr and "panicked" not in refused.stderr, refused
        shutil.move(data, directory / "newer")
        shutil.move(backup, data)
        last.arguments[0] = older
        last.start()
        await last.ready()
        there = Client([last])
        found = await there.until_done("GET", f"{path}?limit=500", None, mary["token"])
        await there.close()
        wanted = [f"{turn}" for turn in range(100 if shared else 50)]
        assert [message["text"] for message in found["messages"]] == wanted, found
        print(f"{'one of two nodes' if shared else 'a node alone'} was upgraded and taken back, with {len(wanted)} of 100 posts")
    finally:
        if client:
            await client.close()
        for process in [*nodes, *([nats] if nats else [])]:
            process.kill()


async def main():
    older, newer = sys.argv[1:3]
    for shared in (False, True):
        with tempfile.TemporaryDirectory() as directory:
            await taken_back(older, newer, Path(directory), shared)
    await alone(older, newer)
    await together(older, newer)


asyncio.run(main())
