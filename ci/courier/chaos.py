#!/usr/bin/env python3
"""Nodes, alone or as members of a cluster, are killed under the load of a client that shares no
code with the service (aiohttp and websockets). Nothing that was acknowledged may be lost, nothing may
come that was not posted, and every conversation comes in its order.

    chaos.py PROGRAM [--nodes 1|3] [--kills 20]
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
from pathlib import Path

import websockets
from service import Client, cluster, node

USERS, ROOMS = 30, 12
FLAGS = ["--rate", "100000", "--strangers", "100000", "--fanout", "1000000", "--password-memory", "8"]


class Load:
    def __init__(self, nodes, pause=0.01):
        self.nodes, self.pause, self.over = nodes, pause, False
        self.users, self.rooms = [], []
        self.acknowledged = {}
        self.inboxes, self.last = [{} for _ in range(USERS)], [0] * USERS
        self.wrong, self.again = [], 0

    async def prepare(self):
        client = Client(self.nodes)
        for number in range(USERS):
            login = {"name": f"user{number}", "password": "correct horse"}
            self.users.append(await client.until_done("POST", "/users", login))
        for number in range(ROOMS):
            members = [user for user in range(USERS) if number in (user % ROOMS, (user + 1) % ROOMS)]
            recipients = [self.users[user]["user"] for user in members]
            token = self.users[members[0]]["token"]
            room = await client.until_done("POST", "/conversations", {"recipients": recipients}, token)
            self.rooms.append((room["id"], members))
        await client.close()

    async def post(self, room, members, user):
        client, turn = Client(self.nodes, user), 0
        while not self.over:
            text = f"{user} {turn} in {room} 🏴"
            path = f"/conversations/{room}/messages"
            stored = await client.until_done("POST", path, {"text": text}, self.users[user]["token"], f"{room}-{turn}")
            place = (room, stored["number"])
            if place in self.acknowledged:
                self.wrong.append(f"two posts got {place}")
            self.acknowledged[place] = (text, user, members)
            turn += 1
            client.at += turn % 16 == 0
            await asyncio.sleep(self.pause)
        await client.close()

    async def listen(self, user):
        at = user
        while True:
            at += 1
            query = "?presence=false" + (f"&after={self.last[user]}" if user % 2 else "")
            node = self.nodes[at % len(self.nodes)]
            url = f"ws://{node.host}:{node.port}/ws{query}"
            headers = {"authorization": f"Bearer {self.users[user]['token']}"}
            try:
                async with websockets.connect(url, additional_headers=headers, open_timeout=10) as socket:
                    await self.receive(user, socket)
            except (OSError, asyncio.TimeoutError, websockets.WebSocketException):
                await asyncio.sleep(0.05)

    async def receive(self, user, socket):
        inbox, before = self.inboxes[user], None
        async for frame in socket:
            frame = json.loads(frame)
            if frame["type"] != "message:new":
                continue
            sequence, message = frame["sequence"], frame["message"]
            if before is not None and sequence != before + 1 or sequence > self.last[user] + 1:
                self.wrong.append(f"user{user}: {sequence} after {before}: a gap")
            before, self.last[user] = sequence, max(sequence, self.last[user])
            known = inbox.setdefault(sequence, message)
            if known != message:
                self.wrong.append(f"user{user}: two messages are {sequence}")
            self.again += known is not message
            if sequence % 4 == 0:
                await socket.send(json.dumps({"type": "ack", "sequence": sequence}))

    def account(self):
        lost = phantom = delivered = 0
        for user, inbox in enumerate(self.inboxes):
            wanted = {
                place: text
                for place, (text, sender, members) in self.acknowledged.items()
                if user in members and user != sender
            }
            last = {}
            for sequence in sorted(inbox):
                message = inbox[sequence]
                place = (message["conversation"], message["number"])
                if last.get(place[0], 0) >= place[1]:
                    self.wrong.append(f"user{user}: {place} out of order")
                last[place[0]] = place[1]
                # A user receives the own posts, except those accepted just after a node's start.
                if message["sender"] == self.users[user]["user"]:
                    continue
                delivered += 1
                phantom += wanted.pop(place, None) != message["text"]
            lost += len(wanted)
        return lost, phantom, delivered


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--kills", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        if arguments.nodes > 1:
            nodes = await cluster(arguments.program, directory, arguments.nodes, FLAGS)
        else:
            nodes = [node(arguments.program, directory / "node", flags=FLAGS)]
            await nodes[0].ready()
        try:
            what = f"{len(nodes)} nodes, killed {arguments.kills} times"
            failed = await attack(Load(nodes), what, kill(nodes, arguments.kills))
        finally:
            for process in nodes:
                process.kill()
    sys.exit(failed)


async def kill(nodes, kills):
    for _ in range(kills):
        await asyncio.sleep(random.uniform(0.3, 1.2))
        victim = random.choice(nodes)
        victim.kill()
        await asyncio.sleep(random.uniform(0, 0.5))
        victim.start()
        await victim.ready()


async def attack(load, what, faults):
    """Runs the load beside `faults`, and accounts for every message. Returns the exit code."""
    await load.prepare()
    posters = [
        asyncio.create_task(load.post(room, members, user)) for room, members in load.rooms for user in members[:2]
    ]
    listeners = [asyncio.create_task(load.listen(user)) for user in range(USERS)]
    await faults
    await asyncio.sleep(2)
    load.over = True
    await asyncio.gather(*posters)
    for _ in range(300):
        lost, phantom, delivered = load.account()
        if lost == 0:
            break
        await asyncio.sleep(0.2)
    for listener in listeners:
        listener.cancel()
    await asyncio.gather(*listeners, return_exceptions=True)
    print(
        f"{what}: acknowledged {len(load.acknowledged)}, delivered {delivered}, "
        f"again {load.again}, lost {lost}, phantom {phantom}, wrong {len(load.wrong)}"
    )
    for wrong in load.wrong[:10]:
        print(wrong)
    return int(bool(lost or phantom or load.wrong or len(load.acknowledged) < 100))


if __name__ == "__main__":
    asyncio.run(main())
