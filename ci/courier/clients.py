#!/usr/bin/env python3
"""The clients in the examples, of Rust and of Python, talk with each other, and the node is killed in between.

    clients.py PROGRAM RUST_CLIENT
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from service import node

PYTHON = [sys.executable, str(Path(__file__).parent.parent.parent / "examples" / "courier_client.py")]
ENVIRONMENT = dict(os.environ, COURIER_PASSWORD="correct horse")


async def run(*arguments):
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*map(str, arguments), env=ENVIRONMENT, stdout=pipe)


async def main():
    program, rust = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as directory:
        running = node(program, Path(directory) / "data", flags=["--password-memory", "8"])
        await running.ready()
        host = f"127.0.0.1:{running.port}"
        kinds = {"rust": [rust, host], "python": [*PYTHON, f"http://{host}"]}
        try:
            listening = {}
            for name, client in kinds.items():
                listening[name] = await run(*client, name, "listen")
            await asyncio.sleep(2)
            for turn in range(3):
                for name, client in kinds.items():
                    for other in kinds:
                        if other == name:
                            continue
                        text = f"{turn} from {name}"
                        sent = await run(*client, name, "send", other, text)
                        if turn == 1:
                            running.kill()
                            await asyncio.sleep(0.3)
                            running.start()
                        assert await asyncio.wait_for(sent.wait(), 30) == 0
                        # One's own message comes to one's other device, and the other's to the other.
                        for who in kinds:
                            line = await asyncio.wait_for(listening[who].stdout.readline(), 30)
                            assert line.decode().strip() == text, (who, line, text)
            print("the examples of clients have talked with each other, and lost nothing")
        finally:
            for listener in listening.values():
                listener.kill()
            running.kill()


asyncio.run(main())
