#!/usr/bin/env python3
"""A member of a cluster is down for so long that the others no longer have the entries it lacks. It starts again from a
copy of another member's index, and then follows as before.

    behind.py PROGRAM
"""

# Guarantee: courier-20.

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from service import Client, Refused, cluster, members

FLAGS = ["--rate", "1000000", "--strangers", "100000", "--fanout", "10000000", "--password-memory", "8"]
# More than the members keep for one that is behind.
POSTERS, POSTS, TEXT = 32, 200, "x" * 16_000
# The index is on disk, so that the log may release entries.
CHECKPOINT = 24
PATIENCE = 60


async def count(running, path, reader):
    client, found, after = Client([running]), 0, 0
    try:
        while True:
            page = await client.once("GET", f"{path}?after={after}&limit=500", None, reader["token"])
            found += len(page["messages"])
            if not page["more"]:
                return found
            after = page["messages"][-1]["number"]
    except (Refused, OSError):
        return None
    finally:
        await client.close()


async def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        nodes = await cluster(program, directory, 3, FLAGS)
        client = Client(nodes)
        try:
            anne, mary, path = await client.two_in_a_conversation()
            leader = next(member for member in members(program, directory / "node0") if member["leader"])
            behind = next(one for one in nodes if not leader["address"].endswith(f":{one.port}"))
            client.nodes = others = [one for one in nodes if one is not behind]
            behind.kill()

            async def post(number):
                mine = Client(others, number)
                for turn in range(POSTS):
                    await mine.until_done("POST", path, {"text": TEXT}, anne["token"], f"{number}-{turn}")
                await mine.close()

            await asyncio.gather(*[post(number) for number in range(POSTERS)])
            await asyncio.sleep(CHECKPOINT)
            await client.until_done("POST", path, {"text": "ahoy"}, anne["token"], "before")
            begun = time.monotonic()
            behind.start()
            await behind.ready()
            wanted = POSTERS * POSTS + 1
            while await count(behind, path, mary) != wanted:
                assert time.monotonic() - begun < PATIENCE, f"the member does not catch up with {wanted} messages"
                await asyncio.sleep(0.5)
            seconds = time.monotonic() - begun
            there = Client([behind])
            stored = await there.until_done("POST", path, {"text": "ahoy"}, anne["token"], "after")
            await there.close()
            assert stored["number"] == wanted + 1, stored
            assert await count(others[0], path, mary) == wanted + 1
            print(f"a member that was {wanted} posts behind has caught up within {seconds:.0f} s")
        finally:
            await client.close()
            for one in nodes:
                one.kill()


asyncio.run(main())
