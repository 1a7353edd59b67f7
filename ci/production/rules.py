#!/usr/bin/env python3
"""Every metric that a rule names is one that the services have, and a real Prometheus reads both services.

    rules.py PROGRAMS MONITORING
"""

import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci" / "courier"))

import aiohttp
from service import Client, Process, free_port, node

TASK = "stream | from('cpu') | window(10s, every 10s) | count(value) | http_post('http://127.0.0.1:9/')"
TOKEN = "the token of streams"


async def fetch(url, token=None):
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        assert answer.status == 200, (url, answer.status)
        return await answer.text()


def samples(text):
    return {re.split(r"[{ ]", line)[0] for line in text.splitlines() if line and not line.startswith("#")}


def metrics_of(rules):
    """The names in the expressions of the rules."""
    found = set()
    for expression in re.findall(r"expr: (.*)", rules):
        found |= set(re.findall(r"\b(?:courier|corsair_stream)_\w+", expression))
    return found


async def scraped(monitoring, directory, targets):
    """Starts Prometheus with the configuration of the guide, and returns which targets are up."""
    for name in ("prometheus.yml", "alerts.yml"):
        text = (monitoring / name).read_text().replace("scrape_interval: 15s", "scrape_interval: 1s")
        for here, there in targets.items():
            text = text.replace(here, there)
        (directory / name).write_text(text)
    (directory / "stream.token").write_text(TOKEN)
    port = free_port()
    prometheus = Process(
        [
            "prometheus",
            f"--config.file={directory}/prometheus.yml",
            f"--storage.tsdb.path={directory}/prometheus",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        port,
    )
    try:
        await prometheus.ready()
        for _ in range(60):
            await asyncio.sleep(0.5)
            answer = json.loads(await fetch(f"http://127.0.0.1:{port}/api/v1/query?query=up"))
            up = {each["metric"]["job"] for each in answer["data"]["result"] if each["value"][1] == "1"}
            if up == {"courier", "stream"}:
                return
        raise SystemExit(f"Prometheus reaches {up or 'nothing'}")
    finally:
        prometheus.kill()


async def main():
    programs, monitoring = Path(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        metrics, address = free_port(), free_port()
        flags = ["--metrics-listen", f"127.0.0.1:{metrics}", "--password-memory", "8", "--strangers", "1"]
        courier = node(programs / "corsair-courier", directory / "courier", flags=flags)
        (directory / "task.tick").write_text(TASK)
        arguments = [programs / "corsair-stream", "serve", "--addr", f"127.0.0.1:{address}", "--token", TOKEN]
        arguments += ["--data", directory / "stream", "--task", directory / "task.tick"]
        stream = Process([*map(str, arguments)], address)
        try:
            await courier.ready()
            await stream.ready()
            # A counter with labels is there from its first event on.
            client = Client([courier])
            await client.until_done("POST", "/users", {"name": "anne", "password": "correct horse"})
            for _ in range(3):
                try:
                    await client.once("POST", "/sessions", {"name": "anne", "password": "wrong horse"})
                except Exception:
                    pass
            await client.close()
            url = f"http://127.0.0.1:{address}"
            async with aiohttp.ClientSession(headers={"authorization": f"Bearer {TOKEN}"}) as session:
                async with session.post(f"{url}/write?db=d", data="cpu value=1 1\n") as answer:
                    assert answer.status == 204, answer.status
            there = samples(await fetch(f"http://127.0.0.1:{metrics}/metrics"))
            there |= samples(await fetch(f"{url}/metrics", TOKEN))
            named = metrics_of((monitoring / "alerts.yml").read_text())
            assert named, "the rules name no metric"
            assert named <= there, f"no service has {sorted(named - there)}"
            # Which limit refuses is a label, of which most have no sample here.
            source = "".join(path.read_text() for path in (ROOT / "crates" / "courier" / "src").rglob("*.rs"))
            for reasons in re.findall(r'why=~?"([^"]+)"', (monitoring / "alerts.yml").read_text()):
                for reason in reasons.split("|"):
                    assert f'refuse("{reason}")' in source, f"no request is refused for {reason}"
            print(f"the {len(named)} metrics that rules name are there")
            if shutil.which("prometheus"):
                targets = {"127.0.0.1:9100": f"127.0.0.1:{metrics}", "127.0.0.1:9092": f"127.0.0.1:{address}"}
                await scraped(monitoring, directory, targets)
                checked = subprocess.run(["promtool", "check", "config", directory / "prometheus.yml"], check=True, capture_output=True)
                assert b"SUCCESS" in checked.stdout
                print("a real Prometheus reads both services")
        finally:
            courier.kill()
            stream.kill()


asyncio.run(main())
