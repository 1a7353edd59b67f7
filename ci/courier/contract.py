#!/usr/bin/env python3
"""The OpenAPI document of a node is valid, says what its WebSockets say, and holds for every route:
schemathesis sends what the document allows, and what it does not, for two minutes. No answer may be a
server's error, or another than the document has.

    contract.py PROGRAM [--seconds 120]
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import aiohttp
import jsonschema
import websockets
from openapi_spec_validator import validate
from service import Client, node

HERE = Path(__file__).parent
# What schemathesis asks for is not to end at a limit.
FLAGS = ["--rate", "1000000", "--strangers", "1000000", "--fanout", "100000000", "--password-memory", "8"]
# What has too long a head is refused before anybody looks at what it says.
CONFIG = """
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 413, 415, 422, 429, 431]
"""
# A text that is short enough in characters may be too long in bytes, which no schema can say.
LEFT_OUT = "positive_data_acceptance"


async def document(running):
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{running.port}/openapi.json") as answer:
            found = await answer.json()
    assert found["openapi"].startswith("3.1"), found["openapi"]
    validate(found)
    return found


async def frames(running, document):
    """Every kind of frame is sent, and is what the document says."""
    schema = {"$ref": "#/components/schemas/ServerFrame", "components": document["components"]}
    check = jsonschema.Draft202012Validator(schema)
    client = Client([running])
    anne, mary = [
        await client.once("POST", "/users", {"name": name, "password": "correct horse"}) for name in ("anne", "mary")
    ]
    room = await client.once("POST", "/conversations", {"recipients": [mary["user"]]}, anne["token"])
    seen = set()

    def connect(who):
        headers = {"authorization": f"Bearer {who['token']}"}
        return websockets.connect(f"ws://127.0.0.1:{running.port}/ws", additional_headers=headers)

    async with connect(mary) as socket:
        async with connect(anne):
            path = f"/conversations/{room['id']}/messages"
            await client.once("POST", path, {"text": "a \"quoted\" 🏴 \u0001"}, anne["token"])
            await socket.send("nonsense")
            await client.once("PUT", f"/conversations/{room['id']}/title", {"title": "the bay"}, anne["token"])
            await asyncio.sleep(0.5)
        while "users:disconnect" not in seen:
            frame = json.loads(await asyncio.wait_for(socket.recv(), 20))
            check.validate(frame)
            seen.add(frame["type"])
    await client.close()
    wanted = {"message:new", "users:online", "users:connect", "users:disconnect", "conversation:changed", "error"}
    assert seen == wanted, seen
    return anne["token"]


def schemathesis(running, token, seconds):
    program = Path(sys.executable).with_name("st")
    environment = dict(os.environ, SCHEMATHESIS_HOOKS="hooks", PYTHONPATH=str(HERE), COURIER_PORT=str(running.port))
    arguments = [program, "run", f"http://127.0.0.1:{running.port}/openapi.json", "--max-time", str(seconds)]
    arguments += ["--checks", "all", "--exclude-checks", LEFT_OUT, "--header", f"Authorization: Bearer {token}"]
    arguments += ["--generation-database", "none", "--no-color", "--request-timeout", "20", "--warnings", "off"]
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "schemathesis.toml").write_text(CONFIG)
        done = subprocess.run(arguments, env=environment, cwd=directory, capture_output=True, text=True)
    # What it has sent may be long.
    for line in (done.stdout + done.stderr).splitlines():
        print(line[:300])
    return done.returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=120)
    arguments = parser.parse_args()
    program = str(Path(arguments.program).resolve())
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "log"
        with open(log, "w") as stderr:
            running = node(program, Path(directory) / "data", flags=FLAGS, stderr=stderr)
        try:
            asyncio.run(running.ready())
            found = asyncio.run(document(running))
            token = asyncio.run(frames(running, found))
            failed = schemathesis(running, token, arguments.seconds)
            asyncio.run(document(running))
        finally:
            running.kill()
        said = log.read_text()
        print(said, end="")
        sys.exit(failed or int("panicked" in said))


if __name__ == "__main__":
    main()
