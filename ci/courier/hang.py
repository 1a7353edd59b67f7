#!/usr/bin/env python3
"""A node whose disk hangs is not ready before a client would have waited long, and is ready again afterwards.

    hang.py PROGRAM
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
from service import node


async def status(running, path):
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
        async with session.get(f"http://127.0.0.1:{running.port}{path}") as answer:
            return answer.status


async def until(running, path, wanted, most):
    begun = time.monotonic()
    while (found := await status(running, path)) != wanted:
        if time.monotonic() - begun > most:
            sys.exit(f"{path} is {found} after {most} s, not {wanted}")
        await asyncio.sleep(0.1)
    return time.monotonic() - begun


async def main():
    with tempfile.TemporaryDirectory() as directory:
        shim, hang = f"{directory}/faults.so", Path(directory) / "hang"
        source = Path(__file__).with_name("faults.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
        os.environ |= {"LD_PRELOAD": shim, "COURIER_HANG": str(hang)}
        running = node(sys.argv[1], f"{directory}/data")
        del os.environ["LD_PRELOAD"]
        try:
            await running.ready()
            await until(running, "/readyz", 200, 5)
            hang.touch()
            hung = await until(running, "/readyz", 503, 10)
            for _ in range(3):
                if await status(running, "/readyz") != 503 or await status(running, "/healthz") != 200:
                    sys.exit("a node whose disk hangs is alive and not ready")
            hang.unlink()
            back = await until(running, "/readyz", 200, 5)
        finally:
            running.kill()
    print(f"a disk that hangs: not ready after {hung:.1f} s, and ready {back:.1f} s after its return")


asyncio.run(main())
