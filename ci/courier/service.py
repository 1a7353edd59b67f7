"""Nodes in processes of their own, and an HTTP client that is not corsair's."""

import asyncio
import json
import re
import signal
import socket
import subprocess
from pathlib import Path

import aiohttp

PATIENCE = 30


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Process:
    """A process that can be killed and started again with the same arguments."""

    def __init__(self, arguments, port, stderr=subprocess.DEVNULL, host="127.0.0.1"):
        self.arguments, self.port, self.stderr, self.host = arguments, port, stderr, host
        self.start()

    def start(self):
        self.child = subprocess.Popen(self.arguments, stdout=subprocess.DEVNULL, stderr=self.stderr)

    def memory(self):
        """Resident bytes of its own: not the pages of its program, of which it touches more as it runs."""
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) * 1024

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()

    async def ready(self):
        for _ in range(PATIENCE * 20):
            try:
                _, writer = await asyncio.open_connection(self.host, self.port)
                writer.close()
                return
            except OSError:
                await asyncio.sleep(0.05)
        raise SystemExit(f"{self.arguments[0]} does not start")


def node(program, data, first=None, key=None, flags=(), stderr=subprocess.DEVNULL, host="127.0.0.1", inside=()):
    """A node alone, or with a key a member of a cluster: its first one, or one that joins the first one."""
    port = free_port()
    arguments = [*inside, program, "serve", "--listen", f"{host}:{port}", "--data", str(data), *flags]
    if key:
        arguments += ["--cluster-key", str(key)]
    if first:
        arguments += ["--join", f"{first.host}:{first.port}"]
    return Process(arguments, port, stderr, host)


async def cluster(program, directory, count, flags=(), stderr=subprocess.DEVNULL, place=lambda number: {}):
    """The nodes of a cluster, with a vote each. `place` gives the host of a node, and what its process runs inside."""
    key = directory / "cluster.key"
    key.write_text("the key that the nodes of a test share")
    nodes = []
    for number in range(count):
        first = nodes[0] if nodes else None
        nodes.append(node(program, directory / f"node{number}", first, key, flags, stderr, **place(number)))
        await nodes[-1].ready()
    await settled(program, directory / "node0", count)
    return nodes


def members(program, data):
    listed = subprocess.run([program, "members", "--data", str(data)], capture_output=True, text=True, check=True)
    return json.loads(listed.stdout)["members"]


def leader(program, data, nodes):
    """The place among `nodes` of the leader, as the node with this data knows it; None if it knows none."""
    ports = [node.port for node in nodes]
    for member in members(program, data):
        if member["leader"]:
            return ports.index(int(member["address"].rsplit(":", 1)[1]))
    return None


async def settled(program, data, count):
    """Waits until the cluster has this number of members, all of which can vote."""
    for _ in range(PATIENCE * 20):
        if [member["voter"] for member in members(program, data)] == [True] * count:
            return
        await asyncio.sleep(0.05)
    raise SystemExit(f"the cluster has {members(program, data)}, not {count} voters")


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status = status


class Client:
    """Requests to one node after another, whichever answers."""

    def __init__(self, nodes, first=0):
        self.nodes, self.at = nodes, first
        self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=25))

    async def close(self):
        await self.session.close()

    def url(self):
        node = self.nodes[self.at % len(self.nodes)]
        return f"http://{node.host}:{node.port}"

    async def once(self, method, path, body=None, token=None, key=None):
        headers = {}
        if token:
            headers["authorization"] = f"Bearer {token}"
        if key:
            headers["idempotency-key"] = key
        async with self.session.request(method, self.url() + path, json=body, headers=headers) as answer:
            text = await answer.text()
            if answer.status >= 300:
                raise Refused(answer.status, text)
            return json.loads(text) if text else None

    async def two_in_a_conversation(self):
        """Two new users, and the path of their messages."""
        one, other = [
            await self.until_done("POST", "/users", {"name": name, "password": "correct horse"})
            for name in ("anne", "mary")
        ]
        room = await self.until_done("POST", "/conversations", {"recipients": [other["user"]]}, one["token"])
        return one, other, f"/conversations/{room['id']}/messages"

    async def until_done(self, *arguments, **named):
        """Repeats until the service says yes or no."""
        while True:
            try:
                return await self.once(*arguments, **named)
            except Refused as refused:
                if refused.status < 500 and refused.status != 429:
                    raise
            except (aiohttp.ClientError, asyncio.TimeoutError, OSError):
                pass
            self.at += 1
            await asyncio.sleep(0.05)
