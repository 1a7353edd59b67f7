#!/usr/bin/env python3
"""A node under mixed load, and what it has at the begin, in the middle and at the end: memory, open files,
bytes on the disk, latency of a POST. In soaks of five minutes and more it fails if memory or files have grown
between the middle and the end, and always if a message was lost.

    soak.py PROGRAM [--seconds 600]
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import websockets
from service import Client, Refused, node

# The cache of the index is the one part of a node's memory that is to grow with the data. 2 MiB of it are full long
# before the middle of a soak, so what grows after that is lost: hence no allowance for data stored during the soak.
FLAGS = ["--strangers", "50", "--password-memory", "8", "--write-timeout", "2s", "--cache", str(2 << 20)]
PAIRS = 8
# An allocator with an arena for each of two dozen threads keeps twice of what is in use for a while, and more of it the
# longer a node runs; with one arena that gives back what it can, what grows is in use.
ALLOCATOR = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_MMAP_THRESHOLD_": "131072"}
# From the middle to the end memory may grow by this part of it, by which its median wavers. Of 12 MB this is 27 bytes for
# each of the 56,000 messages that are posted in five minutes: one that leaks leaks more.
WAVERS = 1 / 8


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
        """The medians of a tenth of the time each: the second, the one before the middle, and the last."""
        states, begin = [], self.end - seconds
        for tenth in (1, 4, 9):
            await asyncio.sleep(max(0, begin + seconds * tenth / 10 - time.monotonic()))
            seen = []
            while time.monotonic() < begin + seconds * (tenth + 1) / 10 - 1:
                seen.append(self.state())
                await asyncio.sleep(1)
            states.append([statistics.median_high(values) for values in zip(*(seen or [self.state()]))])
        return states

    def state(self):
        pid = self.running.child.pid
        files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        data = Path(self.running.arguments[self.running.arguments.index("--data") + 1])
        return self.running.memory() >> 10, files, sum(path.stat().st_size for path in data.rglob("*")) >> 10


def p99(times):
    return sorted(times)[int(len(times) * 0.99)] * 1000


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=600)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        with open(Path(directory) / "log", "w+") as log:
            os.environ.update(ALLOCATOR)
            running = node(arguments.program, f"{directory}/data", flags=FLAGS, stderr=log)
            try:
                await running.ready()
                soak = Soak(running, arguments.seconds)
                load = [soak.pair() for _ in range(PAIRS)] + [soak.strangers(), soak.idlers(), soak.crowd()]
                (begin, middle, end), *_ = await asyncio.gather(soak.watch(arguments.seconds), *load)
                running.child.terminate()
                code = running.child.wait(30)
            finally:
                running.kill()
            log.seek(0)
            said = log.read()
    tenth = max(1, len(soak.times) // 10)
    half = len(soak.times) // 2
    print(f"{'':<22} {'begin':>12} {'middle':>12} {'end':>12}")
    for name, *states in zip(("memory, kB", "open files", "data, kB"), begin, middle, end):
        print(f"{name:<22}", *(f"{state:>12}" for state in states))
    times = soak.times[:tenth], soak.times[half - tenth : half], soak.times[-tenth:]
    print(f"{'p99 of a POST, ms':<22}", *(f"{p99(some):>12.1f}" for some in times))
    print(", ".join(f"{what}: {count}" for what, count in sorted(soak.count.items())))
    lost = {user: (number, soak.read.get(user)) for user, number in soak.stored.items() if soak.read.get(user) != number}
    if said or lost or code:
        print(f"soak: lost {lost}, ended with {code}, said: {said}", file=sys.stderr)
    grown = arguments.seconds >= 300 and (end[0] > middle[0] * (1 + WAVERS) or end[1] > middle[1] + 8)
    if grown:
        print("soak: memory or files have grown between the middle and the end", file=sys.stderr)
    sys.exit(int(bool(lost or code or grown or "panicked" in said)))


asyncio.run(main())
