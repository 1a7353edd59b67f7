#!/usr/bin/env python3
"""Measures of corsair-courier, with the promised limits beside them.

    cargo build --release -p corsair-courier -p corsair-courier-load
    ci/courier/measures.py target/release [failover|nodes|handler|delivery|idle ...] [--kills 200]

`failover` needs aiohttp. Fails if a limit is exceeded.
"""

import argparse
import asyncio
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from service import Client, cluster, leader, node, settled

FLAGS = ["--rate", "1000000", "--strangers", "100000", "--fanout", "1000000", "--password-memory", "8"]
NODES = 3
ROUNDS = 5
failed = []


def report(what, value, unit, limit, within):
    """Prints a measure, and remembers whether it is within its limit."""
    print(f"{what:<62} {value:>10.2f} {unit:<4} limit {limit}{'' if within else '  EXCEEDED'}", flush=True)
    if not within:
        failed.append(what)


def load(built, *flags):
    command = [f"{built}/corsair-courier-load", "--format", "json", *flags]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def rate(measured):
    return measured["load"]["post"]["count"] / measured["load"]["wall_ns"] * 1e9


async def post(nodes, path, token, acknowledged, number):
    """Posts one message after another, and notes the times of the answers."""
    client = Client(nodes, number)
    try:
        for turn in range(sys.maxsize):
            await client.until_done("POST", path, {"text": "ahoy"}, token, f"{number}-{turn}")
            acknowledged.append(time.monotonic())
    finally:
        await client.close()


async def known_leader(program, directory, nodes, asked):
    """The place of the leader, as soon as another node knows it."""
    while (found := leader(program, directory / f"node{asked}", nodes)) is None:
        await asyncio.sleep(0.05)
    return found


async def failover(built, kills):
    """The time from the last acknowledged POST to the first one after the leader was killed."""
    program = f"{built}/corsair-courier"
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        nodes = await cluster(program, directory, NODES, FLAGS)
        client, acknowledged, gaps = Client(nodes), [], []
        one, _, path = await client.two_in_a_conversation()
        posters = [asyncio.create_task(post(nodes, path, one["token"], acknowledged, each)) for each in range(8)]
        try:
            asked = 0
            for _ in range(kills):
                await asyncio.sleep(0.5)
                victim = await known_leader(program, directory, nodes, asked)
                asked = (victim + 1) % NODES
                before = len(acknowledged) - 1
                nodes[victim].kill()
                killed = time.monotonic()
                await leader_is_not(victim, program, directory, nodes, asked)
                while acknowledged[-1] < killed + 0.5 and time.monotonic() < killed + 30:
                    await asyncio.sleep(0.02)
                times = acknowledged[before:]
                gaps.append(max(after - earlier for earlier, after in zip(times, times[1:])))
                nodes[victim].start()
                await nodes[victim].ready()
                await settled(program, directory / f"node{asked}", NODES)
        finally:
            for poster in posters:
                poster.cancel()
            await asyncio.gather(*posters, return_exceptions=True)
            await client.close()
            for process in nodes:
                process.kill()
    gaps.sort()
    print(f"{kills} kills of the leader, {len(acknowledged)} POSTs: median {statistics.median(gaps):.2f} s, longest {gaps[-1]:.2f} s")
    p99 = gaps[math.ceil(len(gaps) * 0.99) - 1]
    report("p99 from the last to the first acknowledged POST", p99, "s", "2", p99 <= 2)


async def leader_is_not(victim, program, directory, nodes, asked):
    while await known_leader(program, directory, nodes, asked) == victim:
        await asyncio.sleep(0.02)


async def nodes(built, _):
    """Durable POSTs a second to one node alone and to a leader of three, in alternating rounds."""
    program, rates = f"{built}/corsair-courier", {1: [], NODES: []}
    for _ in range(ROUNDS):
        for count, measured in rates.items():
            with tempfile.TemporaryDirectory() as directory:
                directory = Path(directory)
                many = count > 1
                all_nodes = await cluster(program, directory, count, FLAGS) if many else [node(program, directory / "node0", flags=FLAGS)]
                await all_nodes[0].ready()
                url = f"http://127.0.0.1:{all_nodes[0].port}"
                measured.append(rate(load(built, "--url", url, "--workers", "64", "--messages", "300")))
                for process in all_nodes:
                    process.kill()
    for count, measured in rates.items():
        print(f"{count} node{'s' if count > 1 else ''}, durable POSTs/s: {' '.join(f'{each:.0f}' for each in measured)}")
    ratio = statistics.median(three / one for one, three in zip(*rates.values()))
    print(f"three nodes on one machine take {ratio * 100:.0f} % of the POSTs that one takes")


async def handler(built, _):
    """Durable POSTs against POSTs to a handler that stores nothing."""
    ratio = load(built, "--compare", "4s")["comparison"]["ratio"]
    report("durable POSTs, of POSTs to a bare handler", ratio * 100, "%", "50", ratio >= 0.5)


async def delivery(built, _):
    """The time from a POST to the socket of its receiver, at 1,000 POSTs a second."""
    measured = load(built, "--workers", "16", "--messages", "1000", "--rate", "1000")["load"]["post_to_socket"]
    p50, p99 = measured["p50_ns"] / 1e6, measured["p99_ns"] / 1e6
    report("POST to socket at 1,000 a second, p50", p50, "ms", "0.4", p50 <= 0.4)
    report("POST to socket at 1,000 a second, p99", p99, "ms", "1.1", p99 <= 1.1)


async def idle(built, _):
    each = load(built, "--idle", "9000")["idle"]["each_bytes"]
    report("memory of an idle socket, of 9,000", each / 1e3, "kB", "2.5", each <= 2500)


STEPS = [delivery, handler, idle, nodes, failover]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("built", help="the directory of the programs")
    parser.add_argument("steps", nargs="*", choices=[[], *(step.__name__ for step in STEPS)], help="all by default")
    parser.add_argument("--kills", type=int, default=200)
    arguments = parser.parse_args()
    for step in STEPS:
        if not arguments.steps or step.__name__ in arguments.steps:
            asyncio.run(step(arguments.built, arguments.kills))
    if failed:
        sys.exit(f"exceeded: {', '.join(failed)}")


if __name__ == "__main__":
    main()
