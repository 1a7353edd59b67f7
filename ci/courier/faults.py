#!/usr/bin/env python3
"""A node whose disk fails now and then when its log is written or synced, sometimes half-way (faults.c), and that is
killed as well: what was acknowledged is there afterwards, once, and nothing else.

    faults.py PROGRAM [--seconds 30]
"""

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
from service import Client, Refused, node

FLAGS = ["--rate", "100000", "--strangers", "100000", "--fanout", "1000000", "--password-memory", "8"]
POSTERS = 12


async def post(running, poster, path, token, over, acknowledged):
    """Posts until it is over; what has failed is repeated under its key."""
    client, turn = Client([running]), 0
    while not over.is_set():
        turn += 1
        text = f"{poster} {turn} " + "x" * random.choice((10, 3_000, 15_000))
        while True:
            try:
                stored = await client.once("POST", path, {"text": text}, token, f"{poster} {turn}")
                acknowledged[stored["number"]] = text
                break
            except (Refused, aiohttp.ClientError, asyncio.TimeoutError, OSError):
                await asyncio.sleep(0.05)
    await client.close()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=30)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        shim = f"{directory}/faults.so"
        source = Path(__file__).with_name("faults.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
        with open(f"{directory}/said", "w+") as said:
            running = node(arguments.program, f"{directory}/data", flags=FLAGS, stderr=said)
            try:
                await running.ready()
                client = Client([running])
                anne, mary, path = await client.two_in_a_conversation()
                over, acknowledged, kills = asyncio.Event(), {}, 0
                posting = [
                    asyncio.create_task(post(running, poster, path, anne["token"], over, acknowledged))
                    for poster in range(POSTERS)
                ]
                end = time.monotonic() + arguments.seconds
                while time.monotonic() < end:
                    running.kill()
                    os.environ["LD_PRELOAD"] = shim
                    # One that does not get as far as to listen is killed as well.
                    running.start()
                    kills += 1
                    await asyncio.sleep(random.uniform(2, 5))
                over.set()
                running.kill()
                del os.environ["LD_PRELOAD"]
                running.start()
                await running.ready()
                await asyncio.gather(*posting)
                found, after = {}, 0
                while True:
                    page = await client.until_done("GET", f"{path}?after={after}", None, mary["token"])
                    found.update({message["number"]: message["text"] for message in page["messages"]})
                    if not page["more"]:
                        break
                    after = page["messages"][-1]["number"]
                await client.close()
            finally:
                running.kill()
            said.seek(0)
            said = said.read()
    lost = sum(found.get(number) != text for number, text in acknowledged.items())
    phantom, twice = len(found.keys() - acknowledged.keys()), len(found) - len(set(found.values()))
    faults = said.count("the log cannot be written")
    print(
        f"{faults} faults of the disk and {kills} kills among {len(acknowledged)} posts: "
        f"lost {lost}, phantom {phantom}, twice {twice}"
    )
    if "panicked" in said:
        print(said, end="")
    sys.exit(int(bool(lost or phantom or twice or not faults or "panicked" in said)))


asyncio.run(main())
