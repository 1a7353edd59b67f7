#!/usr/bin/env python3
"""Backs up, compacts and trims a node under load without stopping it.

First a backup is made while users post and others listen, restored into another directory, and compared with
what was acknowledged before it was asked for. Then a node that keeps few messages and is compacted again and
again is looked at: everything that is to be kept is there, in order, and its file does not grow. Last, a node
joins a cluster while posts continue.

    backup.py PROGRAM
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import websockets
from service import Client, cluster, node, settled

FLAGS = ["--rate", "100000", "--strangers", "100000", "--fanout", "1000000", "--password-memory", "8"]
PAIRS = 6
KEPT = 1 << 20
TEXT = "x" * 900


class Load:
    def __init__(self, running):
        self.running, self.over = running, False
        self.acknowledged = {}
        self.heard = {}

    async def prepare(self):
        client = Client([self.running])
        self.users = []
        for number in range(2 * PAIRS):
            login = {"name": f"user{number}", "password": "correct horse"}
            self.users.append(await client.until_done("POST", "/users", login))
        self.rooms = []
        for number in range(PAIRS):
            anne, mary = self.users[2 * number : 2 * number + 2]
            room = await client.until_done("POST", "/conversations", {"recipients": [mary["user"]]}, anne["token"])
            self.rooms.append((room["id"], anne, mary))
        await client.close()

    def start(self):
        posting = [asyncio.create_task(self.post(*room)) for room in self.rooms]
        listening = [asyncio.create_task(self.listen(room, mary)) for room, _, mary in self.rooms]
        return posting, listening

    async def post(self, room, anne, _):
        client = Client([self.running])
        turn = 0
        while not self.over:
            turn += 1
            text = f"{turn} {TEXT}"
            path = f"/conversations/{room}/messages"
            stored = await client.until_done("POST", path, {"text": text}, anne["token"], f"{room}-{turn}")
            assert stored["number"] == turn, (stored, turn)
            self.acknowledged[room] = turn
        await client.close()

    async def listen(self, room, mary):
        url = f"ws://127.0.0.1:{self.running.port}/ws?presence=false"
        headers = {"authorization": f"Bearer {mary['token']}"}
        async with websockets.connect(url, additional_headers=headers) as connection:
            async for frame in connection:
                frame = json.loads(frame)
                number = frame["message"]["number"]
                assert number == self.heard.get(room, 0) + 1, (number, self.heard.get(room))
                self.heard[room] = number
                if number % 16 == 0:
                    await connection.send(json.dumps({"type": "ack", "sequence": frame["sequence"]}))


async def history(running, room, who, after=0):
    client = Client([running])
    found = []
    while True:
        path = f"/conversations/{room}/messages?after={after}"
        page = await client.until_done("GET", path, None, who["token"])
        found += page["messages"]
        if not page["more"]:
            await client.close()
            return found
        after = found[-1]["number"]


async def ask(program, *arguments):
    asked = await asyncio.create_subprocess_exec(
        program, *map(str, arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    said, error = await asked.communicate()
    return asked.returncode, (said + error).decode()


async def backed_up(program, directory):
    running = node(program, directory / "data", flags=FLAGS)
    copy = None
    try:
        await running.ready()
        load = Load(running)
        await load.prepare()
        posting, listening = load.start()
        await asyncio.sleep(2)
        before = dict(load.acknowledged)
        code, said = await ask(program, "backup", "--data", directory / "data", "--to", directory / "backup")
        assert code == 0, said
        after = dict(load.acknowledged)
        code, said = await ask(program, "backup", "--data", directory / "data", "--to", directory / "backup")
        assert code == 2 and "already exists" in said, said
        await asyncio.sleep(1)
        load.over = True
        await asyncio.gather(*posting)
        code, said = await ask(program, "restore", "--from", directory / "backup", "--data", directory / "restored")
        assert code == 0, said
        code, said = await ask(program, "restore", "--from", directory / "backup", "--data", directory / "restored")
        assert code == 2 and "already exists" in said, said
        copy = node(program, directory / "restored", flags=FLAGS)
        await copy.ready()
        for room, anne, mary in load.rooms:
            there = await history(copy, room, mary)
            here = await history(running, room, mary)
            assert there == here[: len(there)], f"the backup differs from the original in {room}"
            assert before[room] <= len(there) <= after[room] + 1, (before[room], len(there), after[room])
            # It resumes at its position and knows the used keys.
            client = Client([copy])
            path = f"/conversations/{room}/messages"
            again = await client.until_done("POST", path, {"text": f"1 {TEXT}"}, anne["token"], f"{room}-1")
            assert (again["number"], again["repeated"]) == (1, True), again
            stored = await client.until_done("POST", path, {"text": "on"}, anne["token"])
            assert stored["number"] == len(there) + 1, stored
            await client.close()
        # A damaged backup is found when it is brought back.
        damaged = bytearray((directory / "backup").read_bytes())
        for place in range(1 << 16, len(damaged), 4096):
            damaged[place] ^= 0x55
        (directory / "damaged").write_bytes(damaged)
        code, said = await ask(program, "restore", "--from", directory / "damaged", "--data", directory / "none")
        assert code == 2 and "panicked" not in said, (code, said)
        assert not (directory / "none" / "index.redb").exists()
        for listener in listening:
            assert not listener.done(), listener.result()
            listener.cancel()
        print(f"a backup among {sum(load.acknowledged.values())} posts has all that was acknowledged before it")
    finally:
        running.kill()
        if copy:
            copy.kill()


async def kept(program, directory):
    data = directory / "little"
    running = node(program, data, flags=[*FLAGS, "--keep-bytes", str(KEPT)])
    try:
        await running.ready()
        load = Load(running)
        await load.prepare()
        posting, listening = load.start()
        sizes = []
        for _ in range(5):
            await asyncio.sleep(2)
            code, said = await ask(program, "compact", "--data", data)
            assert code == 0, said
            sizes.append((data / "index.redb").stat().st_size)
        load.over = True
        await asyncio.gather(*posting)
        for _ in range(100):
            if load.heard == load.acknowledged:
                break
            await asyncio.sleep(0.1)
        # Listeners have received everything, however short the retention.
        assert load.heard == load.acknowledged, (load.heard, load.acknowledged)
        for listener in listening:
            listener.cancel()
        await asyncio.sleep(3)
        total = 0
        for room, _, mary in load.rooms:
            numbers = [message["number"] for message in await history(running, room, mary)]
            last = load.acknowledged[room]
            assert numbers and numbers == list(range(numbers[0], last + 1)), (room, last, numbers[:3], numbers[-3:])
            assert numbers[0] > 1, "nothing was removed"
            total += len(numbers)
        assert KEPT * 0.5 <= total * (len(TEXT) + 20) <= KEPT * 1.1, total
        code, said = await ask(program, "compact", "--data", data)
        assert code == 0, said
        size = (data / "index.redb").stat().st_size
        assert size < 8 * KEPT, size
        running.kill()
        running.start()
        await running.ready()
        for room, _, mary in load.rooms:
            numbers = [message["number"] for message in await history(running, room, mary)]
            assert numbers and numbers[-1] == load.acknowledged[room]
        print(f"of {sum(load.acknowledged.values())} posts {total} are kept; the file: {sizes + [size]}")
    finally:
        running.kill()


async def joined(program, directory):
    directory = directory / "joined"
    directory.mkdir()
    nodes = await cluster(program, directory, 3, FLAGS)
    try:
        load = Load(nodes[0])
        await load.prepare()
        posting, listening = load.start()
        await asyncio.sleep(3)
        nodes.append(node(program, directory / "fourth", nodes[0], directory / "cluster.key", FLAGS))
        await nodes[3].ready()
        await settled(program, directory / "node0", 4)
        await asyncio.sleep(2)
        load.over = True
        await asyncio.gather(*posting)
        for room, _, mary in load.rooms:
            here, there = [await history(one, room, mary) for one in (nodes[0], nodes[3])]
            assert here == there and len(here) == load.acknowledged[room], (room, len(here), len(there))
        for listener in listening:
            assert not listener.done(), listener.result()
            listener.cancel()
        print(f"a node has joined among {sum(load.acknowledged.values())} posts")
    finally:
        for process in nodes:
            process.kill()


async def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as directory:
        await backed_up(program, Path(directory))
        await kept(program, Path(directory))
        await joined(program, Path(directory))


asyncio.run(main())
