#!/usr/bin/env python3
"""A node under mixed load, and what it has at the begin and at the end: memory, open files, bytes on the
disk, latency of a POST. Fails if memory, beside the pages of what was stored meanwhile, or files have grown by
more than a half after the first tenth (in soaks of five minutes and more), or if a message was lost.

    soak.py PROGRAM [--seconds 600]
"""

import argparse
import asyncio
import itertools
import json
import random
import socket
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import websockets
from service import Client, Refused, node

FLAGS = ["--strangers", "50", "--password-memory", "8", "--write-timeout", "2s"]
PAIRS = 8
# Pages of the index and the log that a node keeps in memory, in kB; its README says so.
PAGES = (128 + 8) << 10


class Soak:
    def __init__(self, running, seconds):
        self.running, self.end = running, time.monotonic() + seconds
        self.times, self.stored, self.read = [], {}, {}
        self.names = itertools.count()
        self.count = {}

    def over(self):
        return time.monotonic() >= self.end

    def counted(self, what):
        self.count[what] = self.count.get(what, 0) + 1

    async def user(self, client):
        login = {"name": f"user{next(self.names)}", "password": "correct horse"}
        return await client.until_done("POST", "/users", login)

    def connect(self, who, query=""):
        headers = {"authorization": f"Bearer {who['token']}"}
        url = f"ws://127.0.0.1:{self.running.port}/ws{query}"
        return websockets.connect(url, additional_headers=headers, open_timeout=30)

    async def pair(self):
        """One posts, the other listens, and is cut off now and then."""
        client = Client([self.running])
        anne, mary = await self.user(client), await self.user(client)
        room = await client.until_done("POST", "/conversations", {"recipients": [mary["user"]]}, anne["token"])
        listener = asyncio.create_task(self.listen(mary))
        for turn in itertools.count():
            if self.over():
                break
            begun = time.monotonic()
            path = f"/conversations/{room['id']}/messages"
            stored = await client.until_done("POST", path, {"text": f"{turn} " + "x" * 200}, anne["token"], str(turn))
            self.times.append(time.monotonic() - begun)
            self.stored[mary["user"]] = stored["number"]
            self.counted("posts")
            await asyncio.sleep(0.03)
        for _ in range(300):
            if self.read.get(mary["user"]) == self.stored[mary["user"]]:
                break
            await asyncio.sleep(0.1)
        listener.cancel()
        await client.close()

    async def listen(self, who):
        while True:
            try:
                async with self.connect(who) as connection:
                    cut = time.monotonic() + random.uniform(1, 20)
                    async for frame in connection:
                        frame = json.loads(frame)
                        if frame["type"] == "message:new":
                            self.read[who["user"]] = max(self.read.get(who["user"], 0), frame["message"]["number"])
                            await connection.send(json.dumps({"type": "ack", "sequence": frame["sequence"]}))
                        if time.monotonic() > cut:
                            break
                self.counted("sockets")
            except (OSError, asyncio.TimeoutError, websockets.WebSocketException):
                await asyncio.sleep(0.1)

    async def strangers(self):
        """Logins that fail, random tokens, users who come and go."""
        client = Client([self.running])
        while not self.over():
            wrong = {"name": f"user{random.randrange(20)}", "password": "wrong horse"}
            for attempt in (
                client.once("POST", "/sessions", wrong),
                client.once("GET", "/conversations", None, "courier_" + "A" * 63 + random.choice("AQgw")),
                client.once("POST", "/conversations", {"recipients": "nonsense"}, "nonsense"),
            ):
                try:
                    await attempt
                except (Refused, aiohttp.ClientError):
                    self.counted("refusals")
            guest = await self.user(client)
            async with self.connect(guest):
                self.counted("guests")
            await client.once("DELETE", "/sessions", None, guest["token"])
            await asyncio.sleep(0.2)
        await client.close()

    async def idlers(self):
        """Histories that are asked for and not read, sockets that read nothing, bodies that end half-way."""
        client = Client([self.running])
        anne, mary = await self.user(client), await self.user(client)
        room = await client.until_done("POST", "/conversations", {"recipients": [mary["user"]]}, anne["token"])
        path = f"/conversations/{room['id']}/messages"
        for _ in range(40):
            await client.until_done("POST", path, {"text": "\u0001" * 10_000}, anne["token"])
        while not self.over():
            held = []
            for text in (
                f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {mary['token']}\r\n\r\n" * 20,
                f"GET /ws HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {mary['token']}\r\nconnection: upgrade\r\n"
                "upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {mary['token']}\r\n"
                'content-type: application/json\r\ncontent-length: 5000\r\n\r\n{"text":',
            ):
                connection = socket.socket()
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.connect(("127.0.0.1", self.running.port))
                connection.sendall(text.encode())
                held.append(connection)
            await asyncio.sleep(3)
            for connection in held:
                connection.close()
            self.counted("half-read")
        await client.close()

    async def crowd(self):
        """Posts to many."""
        client = Client([self.running])
        users = [await self.user(client) for _ in range(200)]
        others = {"recipients": [user["user"] for user in users[1:]]}
        room = await client.until_done("POST", "/conversations", others, users[0]["token"])
        while not self.over():
            await client.until_done("POST", f"/conversations/{room['id']}/messages", {"text": "all"}, users[0]["token"])
            self.counted("posts to 199")
            await asyncio.sleep(0.1)
        await client.close()

    async def watch(self, seconds):
        await asyncio.sleep(seconds / 10)
        begin = self.state()
        await asyncio.sleep(max(0, self.end - time.monotonic() - 1))
        return begin, self.state()

    def state(self):
        pid = self.running.child.pid
        files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        data = Path(self.running.arguments[self.running.arguments.index("--data") + 1])
        return self.running.memory() >> 10, files, sum(path.stat().st_size for path in data.iterdir()) >> 10


def p99(times):
    return sorted(times)[int(len(times) * 0.99)] * 1000


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=600)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        with open(Path(directory) / "log", "w+") as log:
            running = node(arguments.program, f"{directory}/data", flags=FLAGS, stderr=log)
            try:
                await running.ready()
                soak = Soak(running, arguments.seconds)
                load = [soak.pair() for _ in range(PAIRS)] + [soak.strangers(), soak.idlers(), soak.crowd()]
                (begin, end), *_ = await asyncio.gather(soak.watch(arguments.seconds), *load)
                running.child.terminate()
                code = running.child.wait(30)
            finally:
                running.kill()
            log.seek(0)
            said = log.read()
    tenth = max(1, len(soak.times) // 10)
    print(f"{'':<22} {'begin':>12} {'end':>12}")
    for name, first, last in zip(("memory, kB", "open files", "data, kB"), begin, end):
        print(f"{name:<22} {first:>12} {last:>12}")
    print(f"{'p99 of a POST, ms':<22} {p99(soak.times[:tenth]):>12.1f} {p99(soak.times[-tenth:]):>12.1f}")
    print(", ".join(f"{what}: {count}" for what, count in sorted(soak.count.items())))
    lost = {user: (number, soak.read.get(user)) for user, number in soak.stored.items() if soak.read.get(user) != number}
    if said or lost or code:
        print(f"soak: lost {lost}, ended with {code}, said: {said}", file=sys.stderr)
    # Pages of what was stored meanwhile are kept in memory, up to a bound.
    pages = min(max(0, end[2] - begin[2]), PAGES)
    grown = arguments.seconds >= 300 and (end[0] > begin[0] * 3 / 2 + pages or end[1] > begin[1] * 3 / 2)
    if grown:
        print("soak: memory or files have grown by more than a half", file=sys.stderr)
    sys.exit(int(bool(lost or code or grown or "panicked" in said)))


asyncio.run(main())
