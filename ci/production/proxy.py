#!/usr/bin/env python3
"""A real proxy with the configuration of the guide, in front of real services: sockets live longer than its time-outs, limits
count clients and not the proxy, large bodies and closed paths are answered, and a node may be killed, or the proxy's
configuration read again, without a lost message.

    proxy.py nginx|haproxy|caddy PROGRAMS CONFIGURATIONS
"""

import asyncio
import json
import re
import signal
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "courier"))

import aiohttp
import websockets
from service import Process, cluster, free_port, node

TOKEN = "the token of streams"
# The time-outs of the configurations, as they are here. Nodes ping every second instead of every 20.
SHORTER = [("75s", "3s"), ("timeout http-keep-alive 10s", "timeout http-keep-alive 2s"), ("maxconn 40000", "maxconn 1000")]
FLAGS = ["--trusted-proxy", "127.0.0.1", "--heartbeat", "1s", "--password-memory", "8", "--strangers", "5", "--access-log"]


def certificate(directory):
    """One for both names, signed by itself."""
    key, pem = directory / "key.pem", directory / "cert.pem"
    names = "subjectAltName=DNS:chat.example,DNS:streams.example"
    arguments = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=chat.example"]
    arguments += ["-addext", names, "-keyout", str(key), "-out", str(pem)]
    subprocess.run(arguments, check=True, capture_output=True)
    combined = directory / "combined.pem"
    combined.write_text(pem.read_text() + key.read_text())
    return key, pem, combined


class Proxy:
    """The configuration of the guide, with ports and files of this run."""

    def __init__(self, kind, configurations, directory, nodes, stream):
        self.kind, self.directory, self.port = kind, directory, free_port()
        key, pem, combined = certificate(directory)
        name = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg", "caddy": "Caddyfile"}[kind]
        text = (configurations / name).read_text()
        replaced = [
            (r"127\.0\.0\.1:8080", f"127.0.0.1:{nodes[0].port}"),
            (r"127\.0\.0\.1:8081", f"127.0.0.1:{nodes[-1].port}"),
            (r"127\.0\.0\.1:9092", f"127.0.0.1:{stream.port}"),
            (r"listen 443", f"listen {self.port}"),
            (r"bind :443", f"bind :{self.port}"),
            (r"/etc/ssl/\S+\.combined\.pem", str(combined)),
            (r"/etc/ssl/\S+\.pem", str(pem)),
            (r"/etc/ssl/\S+\.key", str(key)),
            (r"chat\.example \{", f"{{\n\tadmin off\n\tauto_https off\n}}\nhttps://chat.example:{self.port} {{\n\ttls {pem} {key}"),
        ]
        for pattern, there in replaced:
            text = re.sub(pattern, there, text)
        for before, after in SHORTER:
            text = text.replace(before, after)
        if kind == "nginx":
            (directory / "site.conf").write_text(text)
            text = f"""pid {directory}/nginx.pid; error_log {directory}/error.log; worker_processes 1;
                events {{ }}
                http {{ access_log off; client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy;
                    fastcgi_temp_path {directory}/f; uwsgi_temp_path {directory}/u; scgi_temp_path {directory}/s;
                    include {directory}/site.conf; }}"""
        self.file = directory / name
        self.file.write_text(text)
        check, run = {
            "nginx": (["nginx", "-t", "-c"], ["nginx", "-g", "daemon off;", "-c"]),
            "haproxy": (["haproxy", "-c", "-f"], ["haproxy", "-W", "-f"]),
            "caddy": (["caddy", "validate", "--adapter", "caddyfile", "--config"], ["caddy", "run", "--adapter", "caddyfile", "--config"]),
        }[kind]
        checked = subprocess.run([*check, self.file], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        log = (directory / "proxy.log").open("w")
        self.process = Process([*map(str, run), str(self.file)], self.port, stderr=log)

    def reload(self):
        self.process.child.send_signal({"nginx": signal.SIGHUP, "haproxy": signal.SIGUSR2}[self.kind])

    def stop(self):
        self.process.child.terminate()
        self.process.child.wait()


class Client:
    """Requests through the proxy, from an address of its own."""

    def __init__(self, proxy, host="chat.example", local="127.0.0.2"):
        self.host, self.port, self.local = host, proxy.port, local
        self.tls = ssl.create_default_context(cafile=proxy.directory / "cert.pem")

    async def __aenter__(self):
        connector = aiohttp.TCPConnector(
            ssl=self.tls, local_addr=(self.local, 0), resolver=Here(), force_close=False
        )
        self.session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=30))
        return self

    async def __aexit__(self, *_):
        await self.session.close()

    async def ask(self, method, path, body=None, token=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            headers["authorization"] = f"Bearer {token}"
        url = f"https://{self.host}:{self.port}{path}"
        data = {"data": body} if isinstance(body, (bytes, str)) else {"json": body}
        async with self.session.request(method, url, headers=headers, **data) as answer:
            return answer.status, await answer.text(), answer.headers

    async def post(self, path, body, token, key):
        """Repeats until the service says yes."""
        while True:
            try:
                status, text, _ = await self.ask("POST", path, body, token, idempotency_key=key)
                if status < 300:
                    return json.loads(text)
                assert status >= 500 or status == 429, (status, text)
            except (aiohttp.ClientError, asyncio.TimeoutError):
                pass
            await asyncio.sleep(0.1)

    def socket(self, token, after=""):
        return websockets.connect(
            f"wss://{self.host}:{self.port}/ws?presence=false{after}",
            host="127.0.0.1",
            ssl=self.tls,
            local_addr=(self.local, 0),
            additional_headers={"authorization": f"Bearer {token}"},
            origin=f"https://{self.host}:{self.port}",
            # Only the node pings.
            ping_interval=None,
        )


class Here(aiohttp.abc.AbstractResolver):
    async def resolve(self, host, port=0, family=0):
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": 2, "proto": 0, "flags": 0}]

    async def close(self):
        pass


async def heard(socket, count):
    return [json.loads(await asyncio.wait_for(socket.recv(), 30))["message"]["text"] for _ in range(count)]


async def talks(proxy, nodes, log):
    async with Client(proxy) as client:
        status, text, headers = await client.ask("GET", "/")
        assert status == 200 and "script-src 'self'" in headers["content-security-policy"], (status, text)
        made = []
        for name in ("anne", "mary"):
            status, text, _ = await client.ask("POST", "/users", {"name": name, "password": "correct horse"})
            assert status == 201, (status, text)
            made.append(json.loads(text))
        anne, mary = made
        room = await client.post("/conversations", {"recipients": [mary["user"]]}, anne["token"], "room")
        path = f"/conversations/{room['id']}/messages"
        async with client.socket(mary["token"]) as socket:
            await client.post(path, {"text": "ahoy"}, anne["token"], "1")
            assert await heard(socket, 1) == ["ahoy"]
            # Longer than the proxy's time-outs; the node's pings keep the socket.
            await asyncio.sleep(5)
            await client.post(path, {"text": "still there"}, anne["token"], "2")
            assert await heard(socket, 1) == ["still there"]
            if proxy.kind != "caddy":
                proxy.reload()
                await asyncio.sleep(1)
                await client.post(path, {"text": "with another configuration"}, anne["token"], "3")
                assert await heard(socket, 1) == ["with another configuration"]
        status, text, _ = await client.ask("GET", "/metrics")
        assert status == 404, (status, text)
        status, text, _ = await client.ask("POST", path, {"text": "x" * (2 << 20)}, anne["token"])
        assert status == 413, (status, text)
        status, text, _ = await client.ask("POST", path, {"text": "x" * 100_000}, anne["token"])
        assert status == 413 and "a text has at most" in text, (status, text)
        assert "127.0.0.2 " in log.read_text(), "the access log has the client's address"
        return anne, mary, path


async def counts_clients(proxy):
    """One client's attempts do not use up another's, whatever headers it invents."""

    async def attempts(local, count):
        async with Client(proxy, local=local) as client:
            login = {"name": "nobody", "password": "wrong horse"}
            tries = [
                client.ask("POST", "/sessions", login, x_forwarded_for=f"9.9.9.{turn}") for turn in range(count)
            ]
            return [status for status, _, _ in await asyncio.gather(*tries)]

    # Each account has a limit, too, so the second asks once.
    assert 429 in await attempts("127.0.0.3", 30)
    await asyncio.sleep(1)
    assert await attempts("127.0.0.4", 1) == [401]


async def outage(proxy, nodes, anne, mary, path):
    """A node is killed while messages are posted: each is stored once."""
    async with Client(proxy) as client:
        posting = asyncio.gather(*(client.post(path, {"text": f"m{turn}"}, anne["token"], f"m{turn}") for turn in range(50)))
        nodes[0].kill()
        await asyncio.sleep(1)
        nodes[0].start()
        await asyncio.wait_for(posting, 60)
        for _ in range(100):
            status, text, _ = await client.ask("GET", f"{path}?limit=500", None, mary["token"])
            if status == 200:
                break
            await asyncio.sleep(0.2)
        texts = [message["text"] for message in json.loads(text)["messages"]]
        wanted = [f"m{turn}" for turn in range(50)]
        assert sorted(text for text in texts if text in wanted) == sorted(wanted), texts


async def streams(proxy):
    async with Client(proxy, host="streams.example") as client:
        for path, body, token, wanted in [
            ("/write?db=d", b"cpu value=1 1\n", TOKEN, 204),
            ("/write?db=d", b"cpu value=1 1\n" * (1 << 20), TOKEN, 204),
            ("/write?db=d", b"cpu value=1 1\n", None, 401),
            ("/write?db=d", b"cpu value=1 1\n" * (3 << 20), TOKEN, 413),
        ]:
            status, text, _ = await client.ask("POST", path, body, token)
            assert status == wanted, (path, status, text)


async def main():
    kind, programs, configurations = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        # The workers of nginx are another user.
        directory.chmod(0o755)
        running = []
        try:
            log = directory / "courier.log"
            program = str(programs / "corsair-courier")
            if kind == "haproxy":
                nodes = await cluster(program, directory, 3, FLAGS, log.open("a"))
            else:
                nodes = [node(program, directory / "data", flags=FLAGS, stderr=log.open("a"))]
            running += nodes
            port = free_port()
            stream = Process([str(programs / "corsair-stream"), "serve", "--addr", f"127.0.0.1:{port}", "--token", TOKEN], port)
            running.append(stream)
            for each in running:
                await each.ready()
            proxy = Proxy(kind, configurations, directory, nodes, stream)
            try:
                await proxy.process.ready()
                await asyncio.sleep(3)
                anne, mary, path = await talks(proxy, nodes, log)
                await counts_clients(proxy)
                await outage(proxy, nodes, anne, mary, path)
                if kind == "nginx":
                    await streams(proxy)
                print(f"{kind}: sockets, limits, bodies, outages{' and streams' if kind == 'nginx' else ''} as the guide says")
            except BaseException:
                print((directory / "proxy.log").read_text()[-3000:], file=sys.stderr)
                raise
            finally:
                proxy.stop()
        finally:
            for each in running:
                each.kill()


asyncio.run(main())
