#!/usr/bin/env python3
"""Bytes of a node's files are changed, cut off or zeroed. Whatever the node answers then is what it would
have answered before; otherwise it says that its data are damaged, or does not start. Nothing is served
that was never written.

    corruption.py PROGRAM [--rounds 60] [--seed 1]
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import aiohttp
import websockets
from service import Client, Refused, node

FLAGS = ["--strangers", "100000", "--rate", "100000", "--fanout", "1000000", "--password-memory", "8"]
USERS, ROOMS, MESSAGES = 8, 6, 20


async def fill(running):
    client = Client([running])
    users = [
        await client.once("POST", "/users", {"name": f"user{number}", "password": "correct horse"})
        for number in range(USERS)
    ]
    rooms = []
    for number in range(ROOMS):
        members = [users[(number + step) % USERS]["user"] for step in range(1, 4)]
        room = await client.once("POST", "/conversations", {"recipients": members}, users[number]["token"])
        rooms.append(room["id"])
        for turn in range(MESSAGES):
            path = f"/conversations/{room['id']}/messages"
            text = f"{turn} in {number} " + "x" * (turn * 20)
            await client.once("POST", path, {"text": text}, users[number]["token"], f"{number} {turn}")
    for number in range(0, USERS, 2):
        headers = {"authorization": f"Bearer {users[number]['token']}"}
        url = f"ws://127.0.0.1:{running.port}/ws?presence=false"
        async with websockets.connect(url, additional_headers=headers, max_queue=None) as socket:
            for _ in range(10):
                await socket.recv()
            await socket.send('{"type":"ack","sequence":10}')
    await asyncio.sleep(0.5)
    await client.close()
    return users, rooms


async def look(running, users, rooms):
    """All that can be asked; of what the node refuses as damaged, nothing."""
    client, answers = Client([running]), {}

    async def ask(what, *arguments, **named):
        try:
            answers[what] = await client.once(*arguments, **named)
        except Refused as refused:
            answers[what] = refused.status
        except (aiohttp.ClientError, asyncio.TimeoutError):
            answers[what] = 0

    for number, user in enumerate(users):
        token = user["token"]
        await ask(("rooms", number), "GET", "/conversations", None, token)
        for room in rooms:
            await ask((number, room), "GET", f"/conversations/{room}/messages?limit=500", None, token)
        headers = {"authorization": f"Bearer {token}"}
        try:
            url = f"ws://127.0.0.1:{running.port}/ws?presence=false"
            async with websockets.connect(url, additional_headers=headers, close_timeout=1, max_queue=None) as socket:
                answers["first", number] = await asyncio.wait_for(socket.recv(), 2)
        except (OSError, asyncio.TimeoutError, websockets.WebSocketException):
            answers["first", number] = 0
        login = {"name": f"user{number}", "password": "correct horse"}
        await ask(("login", number), "POST", "/sessions", login)
        if isinstance(answers["login", number], dict):
            answers["login", number] = answers["login", number]["user"]
    await client.close()
    return answers


def damage(path, random):
    size = path.stat().st_size
    place = random.randrange(size)
    with open(path, "r+b") as file:
        kind = random.choice(("bit", "bit", "bytes", "page", "cut"))
        if kind == "cut":
            file.truncate(place)
            return kind
        file.seek(place)
        length = {"bit": 1, "bytes": random.randrange(2, 64), "page": 4096}[kind]
        before = file.read(length)
        after = {
            "bit": bytes(byte ^ (1 << random.randrange(8)) for byte in before),
            "bytes": random.randbytes(len(before)),
            "page": bytes(len(before)),
        }[kind]
        file.seek(place)
        file.write(after)
        return kind


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance, tally, wrong = random.Random(arguments.seed), Counter(), []
    with tempfile.TemporaryDirectory() as directory:
        good, bad = Path(directory) / "good", Path(directory) / "bad"
        running = node(arguments.program, good, flags=FLAGS)
        await running.ready()
        users, rooms = await fill(running)
        expected = await look(running, users, rooms)
        running.child.terminate()
        running.child.wait(20)
        for turn in range(arguments.rounds):
            shutil.copytree(good, bad)
            entries = max((bad / "log").glob("*.entries")).relative_to(bad)
            name = chance.choice(("index.redb", "index.redb", "index.redb", entries))
            kind = damage(bad / name, chance)
            with open(Path(directory) / "log", "w+") as log:
                running = node(arguments.program, bad, flags=FLAGS, stderr=log)
                try:
                    while running.child.poll() is None and not up(running):
                        await asyncio.sleep(0.05)
                    if running.child.poll() is not None:
                        log.seek(0)
                        said = log.read()
                        tally["refused to start"] += 1
                        if running.child.returncode != 2 or len(said.splitlines()) != 1 or "panicked" in said:
                            wrong.append(f"round {turn}, {kind} of {name}: ended {running.child.returncode}: {said}")
                    else:
                        found = await look(running, users, rooms)
                        differ = {what for what in expected if found[what] != expected[what]}
                        served = {what for what in differ if found[what] not in (0, 503)}
                        tally["all as before" if not differ else "said" if not served else "wrong"] += 1
                        for what in served:
                            wrong.append(f"round {turn}, {kind} of {name}: {what}: {str(found[what])[:200]}")
                finally:
                    running.kill()
                log.seek(0)
                if "panicked" in log.read():
                    wrong.append(f"round {turn}, {kind} of {name}: a panic")
            shutil.rmtree(bad)
    print(", ".join(f"{what}: {count}" for what, count in sorted(tally.items())))
    for one in wrong[:20]:
        print(one)
    sys.exit(int(bool(wrong)))


def up(running):
    import socket

    try:
        socket.create_connection(("127.0.0.1", running.port), 1).close()
        return True
    except OSError:
        return False


asyncio.run(main())
