#!/usr/bin/env python3
"""A disk that fills up under load, of 24 MB and quite real: a tmpfs in a mount namespace of this process.
The node says so, serves what it has where it can, recovers by itself when space is free, and loses nothing
that was acknowledged. Once with a reserve (--reserve), and once without, so that writing fails.

    disk_full.py PROGRAM
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
from service import Client, Refused, node

INSIDE = "COURIER_DISK_FULL"
FLAGS = ["--rate", "100000", "--strangers", "100000", "--fanout", "1000000", "--password-memory", "8"]
ROUNDS = 4


def namespace():
    """Runs this script again in a mount namespace; 0 if that is not allowed."""
    for flags in (["-m"], ["-rm"]):
        if subprocess.run(["unshare", *flags, "true"], capture_output=True).returncode == 0:
            environment = dict(os.environ, **{INSIDE: "1"})
            os.execvpe("unshare", ["unshare", *flags, sys.executable, *sys.argv], environment)
    print("left out: this system lets nobody mount a tmpfs (unshare -m)")
    return 0


class Disk:
    def __init__(self, directory):
        self.directory = directory
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", directory], check=True)

    def fill(self, leave):
        free = shutil.disk_usage(self.directory).free - leave
        with open(self.directory / "ballast", "ab") as ballast:
            while free > 0:
                try:
                    free -= ballast.write(bytes(min(free, 1 << 16)))
                    ballast.flush()
                except OSError:
                    return

    def empty(self):
        (self.directory / "ballast").unlink(missing_ok=True)


async def attempt(program, reserve):
    with tempfile.TemporaryDirectory() as directory:
        disk = Disk(Path(directory))
        log = open(os.path.join(tempfile.gettempdir(), f"courier-disk-{os.getpid()}"), "w+")
        running = node(program, disk.directory / "data", flags=[*FLAGS, "--reserve", str(reserve)], stderr=log)
        try:
            await running.ready()
            failed = await rounds(running, disk, reserve)
        finally:
            running.kill()
            subprocess.run(["umount", directory], check=False)
            os.unlink(log.name)
        log.seek(0)
        said = log.read()
        if failed or "panicked" in said:
            print(said, end="")
        return failed or "panicked" in said


async def rounds(running, disk, reserve):
    client = Client([running])
    anne, mary, path = await client.two_in_a_conversation()
    acknowledged, sentences, waited = {}, set(), []
    pid = running.child.pid

    async def post(number):
        """True if it was stored, with the key that a repetition has, too."""
        text = f"{number} " + "x" * 4000
        try:
            stored = await client.once("POST", path, {"text": text}, anne["token"], f"key {number}")
        except Refused as refused:
            assert refused.status == 503, refused
            sentences.add(str(refused)[:160])
            return False
        except (aiohttp.ClientError, asyncio.TimeoutError) as error:
            raise AssertionError(f"a connection died: {error!r}") from error
        acknowledged[stored["number"]] = text
        return True

    number = 0
    for turn in range(ROUNDS):
        # 4 KB a message, and the databases that hold them: the disk is full before long.
        disk.fill(leave=reserve + (1 << 20) * (turn + 1))
        while await post(number):
            number += 1
        for _ in range(20):
            await post(number)
            await asyncio.sleep(0.02)
        disk.empty()
        begun = time.monotonic()
        while not await post(number):
            assert time.monotonic() - begun < 30, f"no recovery: {sentences}"
            await asyncio.sleep(0.05)
        waited.append(time.monotonic() - begun)
        number += 1
    assert running.child.poll() is None and running.child.pid == pid, "the process has ended"
    found = {}
    while True:
        page = await client.once("GET", f"{path}?after={max(found, default=0)}", None, mary["token"])
        found.update({message["number"]: message["text"] for message in page["messages"]})
        if not page["more"]:
            break
    lost = [place for place, text in acknowledged.items() if found.get(place) != text]
    twice = len(found) - len(set(found.values()))
    phantom = [place for place in found if place not in acknowledged]
    await client.close()
    waits = ", ".join(f"{wait:.1f}" for wait in waited)
    print(
        f"reserve {reserve >> 20} MB, {ROUNDS} times full: acknowledged {len(acknowledged)}, lost {len(lost)}, "
        f"twice {twice}, phantom {len(phantom)}; taken again {waits} s after there was room"
    )
    for sentence in sorted(sentences):
        print(f"  said: {sentence}")
    return bool(lost or twice or phantom or not any("full" in said or "space" in said for said in sentences))


async def main(program):
    failed = [await attempt(program, reserve) for reserve in (4 << 20, 0)]
    return int(any(failed))


if INSIDE not in os.environ:
    sys.exit(namespace())
sys.exit(asyncio.run(main(str(Path(sys.argv[1]).resolve()))))
