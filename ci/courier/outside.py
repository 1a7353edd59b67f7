#!/usr/bin/env python3
"""Three nodes, each in a network namespace and on a file system of its own, under kills, pauses of the leader,
partitions, full disks and disks that fail, one fault after the other. Nothing that was acknowledged may be lost, nothing
may come that was not posted, and after each fault new posts are acknowledged within a minute.

    outside.py PROGRAM [--seconds 3600] [--seed N]

Needs root, and the commands ip, iptables, mkfs.ext4 and cc.
"""

import argparse
import asyncio
import collections
import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from chaos import FLAGS, Load, attack
from service import cluster, leader

NODES = 3
# The disk of a node, in MiB: an hour takes a tenth of it.
DISK = 1024
# The pause of a client between two posts, in seconds: an hour of them fits into the memory of this script.
PAUSE = 0.2
# The maximum time from the end of a fault to the next acknowledged post, in seconds.
PATIENCE = 60


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def namespace(number):
    return f"courier{number}"


def address(number):
    return f"10.77.0.{number + 1}"


@contextlib.contextmanager
def network():
    """A bridge between the namespaces of the nodes and this process."""
    bridge = "courier-bridge"
    try:
        run("ip", "link", "add", bridge, "type", "bridge")
        run("ip", "address", "add", "10.77.0.254/24", "dev", bridge)
        run("ip", "link", "set", bridge, "up")
        for number in range(NODES):
            space, cable = namespace(number), f"courier-{number}"
            run("ip", "netns", "add", space)
            run("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space)
            run("ip", "link", "set", cable, "master", bridge, "up")
            run("ip", "-n", space, "address", "add", f"{address(number)}/24", "dev", "eth0")
            run("ip", "-n", space, "link", "set", "eth0", "up")
            run("ip", "-n", space, "link", "set", "lo", "up")
        yield
    finally:
        for number in range(NODES):
            subprocess.run(["ip", "netns", "del", namespace(number)], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "del", bridge], stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def disks(directory):
    """A file system for each node, in a file."""
    mounted = []
    try:
        for number in range(NODES):
            image, place = directory / f"disk{number}", directory / f"node{number}"
            place.mkdir()
            run("truncate", "-s", f"{DISK}M", str(image))
            run("mkfs.ext4", "-q", "-m", "0", str(image))
            run("mount", "-o", "loop", str(image), str(place))
            mounted.append(place)
            (place / "lost+found").rmdir()
        yield
    finally:
        for place in mounted:
            subprocess.run(["umount", "-l", str(place)])


class Faults:
    def __init__(self, program, directory, nodes, load, chance):
        self.program, self.directory, self.nodes, self.load, self.chance = program, directory, nodes, load, chance
        self.shim = str(directory / "faults.so")
        run("cc", "-shared", "-fPIC", "-O1", "-o", self.shim, str(Path(__file__).with_name("faults.c")), "-ldl")
        self.counts = collections.Counter()
        self.longest = 0.0

    def some(self):
        return self.chance.randrange(NODES)

    def leader(self):
        """The number of the leader, as the nodes that answer know it."""
        for number in range(NODES):
            with contextlib.suppress(subprocess.CalledProcessError):
                found = leader(self.program, self.directory / f"node{number}", self.nodes)
                if found is not None:
                    return found
        return self.some()

    async def wait(self, least, most):
        await asyncio.sleep(self.chance.uniform(least, most))

    async def kill(self):
        victim = self.nodes[self.some()]
        victim.kill()
        await self.wait(0, 5)
        victim.start()
        await victim.ready()

    async def kill_all(self):
        for node in self.nodes:
            node.kill()
        await self.wait(0, 2)
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            await node.ready()

    async def pause(self):
        """Stops the leader for 30 seconds; the others must elect another one in this time."""
        victim, before = self.nodes[self.leader()], len(self.load.acknowledged)
        victim.child.send_signal(signal.SIGSTOP)
        await asyncio.sleep(30)
        if len(self.load.acknowledged) == before:
            sys.exit("outside: nothing was acknowledged while the leader was stopped")
        victim.child.send_signal(signal.SIGCONT)

    def deafen(self, one, other, add):
        """Drops what a node receives from another one."""
        # A rule that is there already is not added twice, because each partition removes what it has added.
        rule = ["INPUT", "-s", address(other), "-j", "DROP"]
        run("ip", "netns", "exec", namespace(one), "iptables", "-w", "-A" if add else "-D", *rule)

    def pairs(self):
        """The pairs of a partition: the leader or another node against the rest, in both directions or in one."""
        one = self.leader() if self.chance.random() < 0.6 else self.some()
        rest = [other for other in range(NODES) if other != one]
        if self.chance.random() < 0.3:
            rest = [self.chance.choice(rest)]
        ways = self.chance.choice(["both", "hears nothing", "is not heard"])
        return [
            pair
            for other in rest
            for pair in ([] if ways == "is not heard" else [(one, other)])
            + ([] if ways == "hears nothing" else [(other, one)])
        ]

    async def partition(self):
        pairs = self.pairs()
        for pair in pairs:
            self.deafen(*pair, True)
        await self.wait(1, 15)
        for pair in pairs:
            self.deafen(*pair, False)

    async def flapping(self):
        pairs = self.pairs()
        for _ in range(self.chance.randrange(4, 12)):
            for pair in pairs:
                self.deafen(*pair, True)
            await self.wait(0.1, 1.5)
            for pair in pairs:
                self.deafen(*pair, False)
            await self.wait(0.1, 1.5)

    async def full_disk(self):
        place = self.directory / f"node{self.some()}"
        free = os.statvfs(place)
        filler = place / "filler"
        subprocess.run(["fallocate", "-l", str(free.f_bavail * free.f_frsize), str(filler)], stderr=subprocess.DEVNULL)
        with contextlib.suppress(OSError), open(filler, "ab") as rest:
            while True:
                rest.write(bytes(4096))
                rest.flush()
        await self.wait(2, 10)
        filler.unlink()

    async def failing_disk(self):
        """Calls to a node's disk fail now and then; a node that therefore does not start is started again."""
        victim = self.nodes[self.some()]
        victim.kill()
        os.environ["LD_PRELOAD"] = self.shim
        victim.start()
        del os.environ["LD_PRELOAD"]
        await self.wait(5, 15)
        victim.kill()
        victim.start()
        await victim.ready()

    async def run(self, seconds):
        kinds = [self.kill, self.partition, self.flapping, self.full_disk, self.failing_disk]
        rare = [self.pause, self.kill_all]
        end = time.monotonic() + seconds
        for number in itertools.count(1):
            if time.monotonic() >= end:
                break
            await self.wait(0.5, 4)
            fault = self.chance.choice(rare if number % 8 == 0 else kinds)
            await fault()
            self.counts[fault.__name__] += 1
            healed, before = time.monotonic(), len(self.load.acknowledged)
            while len(self.load.acknowledged) == before:
                await asyncio.sleep(0.05)
                if time.monotonic() > healed + PATIENCE:
                    sys.exit(f"outside: nothing was acknowledged for {PATIENCE} s after {fault.__name__}")
            self.longest = max(self.longest, time.monotonic() - healed)
            if number % 20 == 0:
                print(f"{number} faults, {len(self.load.acknowledged)} posts", flush=True)


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory() as directory, network(), disks(Path(directory)):
        directory, nodes = Path(directory), []
        place = lambda number: {"host": address(number), "inside": ["ip", "netns", "exec", namespace(number)]}
        with open(directory / "said", "w+") as said:
            try:
                nodes = await cluster(arguments.program, directory, NODES, FLAGS, said, place)
                load = Load(nodes, PAUSE)
                faults = Faults(arguments.program, directory, nodes, load, random.Random(arguments.seed))
                failed = await attack(load, f"{NODES} nodes", faults.run(arguments.seconds))
            finally:
                for node in nodes:
                    node.child.send_signal(signal.SIGCONT)
                    node.kill()
            said.seek(0)
            panics = [line for line in said if "panicked" in line]
    print(", ".join(f"{name}: {count}" for name, count in sorted(faults.counts.items())))
    print(f"longest time to the first post after a fault: {faults.longest:.1f} s")
    print("".join(panics[:10]), end="")
    sys.exit(int(bool(failed or panics)))


asyncio.run(main())
