#!/usr/bin/env python3
"""What clients that ask and do not read cost a node, in bytes, measured from outside: its resident memory
before, and while 60 connections of one user leave histories of control characters unread, and while 300
sockets of 30 users leave thousands of messages unread. Other users are answered during that time, and readers who
read in the end get everything.

    slow_readers.py PROGRAM
"""

import argparse
import asyncio
import base64
import json
import os
import socket
import sys
import tempfile
import time

from service import Client, node

FLAGS = ["--strangers", "100000", "--rate", "100000", "--fanout", "1000000", "--password-memory", "8"]
MEGABYTE = 1 << 20
ANSWERS, SOCKETS, USERS = 60, 300, 30
# What the README allows: --unread for a user's pages; for a socket --outbox of messages that wait, or one
# (96 KiB as JSON, of the largest texts), and the one that is being written, in buffers that double.
MOST_ANSWERS, MOST_SOCKET = 16 * MEGABYTE, 400 << 10


def connect(port):
    """A connection that takes as little as the system allows."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", port))
    return connection


def head(path, token, more=""):
    return f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n{more}\r\n".encode()


def upgrade(token):
    key = base64.b64encode(os.urandom(16)).decode()
    more = f"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n"
    return head("/ws?presence=false", token, more)


async def most(running, seconds):
    """The most memory within a time."""
    seen, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        seen = max(seen, running.memory())
        await asyncio.sleep(0.05)
    return seen


async def measure(running):
    client = Client([running])

    async def user(name):
        return await client.once("POST", "/users", {"name": name, "password": "correct horse"})

    users = [await user(f"user{number}") for number in range(USERS)]
    poster = await user("poster")
    everybody = {"recipients": [one["user"] for one in users]}
    room = await client.once("POST", "/conversations", everybody, poster["token"])
    path = f"/conversations/{room['id']}/messages"
    # Each is 96 KiB as JSON.
    for _ in range(100):
        await client.once("POST", path, {"text": "\u0001" * (16 << 10)}, poster["token"])
    await asyncio.sleep(6)

    before = running.memory()
    stalled = [connect(running.port) for _ in range(ANSWERS)]
    for connection in stalled:
        connection.sendall(head(path, users[0]["token"]) * 20)
    unread = await most(running, 5) - before
    begun = time.monotonic()
    await client.once("GET", path + "?limit=1", None, users[1]["token"])
    other = time.monotonic() - begun
    for connection in stalled:
        connection.close()
    await asyncio.sleep(2)

    before = running.memory()
    sockets = []
    for number in range(SOCKETS):
        connection = connect(running.port)
        connection.sendall(upgrade(users[number % USERS]["token"]))
        sockets.append(connection)
    for _ in range(200):
        await client.once("POST", path, {"text": "\u0001" * (16 << 10)}, poster["token"])
    silent = await most(running, 5) - before
    await client.once("POST", path, {"text": "the last"}, poster["token"])
    # One of the silent readers starts to read.
    sequences = await asyncio.get_running_loop().run_in_executor(None, read, sockets[7], "the last")
    await client.close()
    return unread, other, silent, sequences


def read(connection, last):
    """The sequences of all messages up to one."""
    connection.settimeout(60)
    stream, found = connection.makefile("rb"), []
    while stream.readline().strip():
        pass
    while True:
        kind, length = stream.read(2)
        if length == 126:
            length = int.from_bytes(stream.read(2), "big")
        elif length == 127:
            length = int.from_bytes(stream.read(8), "big")
        body = stream.read(length)
        if kind & 15 == 1:
            frame = json.loads(body)
            found.append(frame["sequence"])
            if frame["message"]["text"] == last:
                return found


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        running = node(arguments.program, f"{directory}/data", flags=FLAGS)
        try:
            await running.ready()
            unread, other, silent, sequences = await measure(running)
        finally:
            running.kill()
    each = silent / SOCKETS
    print(f"{ANSWERS} connections of one user that read no answer: {unread / MEGABYTE:.1f} MB more")
    print(f"another user's page during that time: {other * 1000:.1f} ms")
    print(f"{SOCKETS} sockets that read nothing: {silent / MEGABYTE:.1f} MB more, {each / 1024:.0f} KB each")
    print(f"one of them got {len(sequences)} messages in the end")
    complete = sequences == list(range(1, len(sequences) + 1)) and len(sequences) == 301
    bounded = unread < MOST_ANSWERS and each < MOST_SOCKET
    sys.exit(int(not (complete and bounded)))


asyncio.run(main())
