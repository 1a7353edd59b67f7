"""A service of the laboratory: performs the steps of its description, and records spans with the OpenTelemetry SDK.

../README.md has the description, which all languages share.
"""

import asyncio
import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from aiohttp import ClientConnectorError, ClientSession, web
from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode
from route import Route

about = json.loads(sys.argv[1])
resource = Resource({"service.name": about["name"], "service.instance.id": f"{about['name']}{about['port']}"})
provider = TracerProvider(resource=resource)
exporter = OTLPSpanExporter(endpoint=f"{sys.argv[2]}/v1/traces")
# Every span is wanted: no queue may drop one.
provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=200_000, max_export_batch_size=2_000))
tracer = provider.get_tracer("laboratory")
slow = 1.0
# By the first address of each called service.
routes: dict[str, Route] = {}
threads = ThreadPoolExecutor(256)


def burn(seconds: float) -> None:
    """Uses a processor for this time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def send(session: ClientSession, url: str) -> bool:
    with tracer.start_as_current_span(
        "GET", kind=SpanKind.CLIENT, attributes={"server.address": url.split("/")[2]}
    ) as span:
        headers: dict[str, str] = {}
        propagate.inject(headers)
        succeeds = False
        try:
            async with session.get(url, headers=headers) as answer:
                await answer.read()
                succeeds = answer.status < 500
        except ClientConnectorError:
            raise
        except OSError:
            pass
        finally:
            if not succeeds:
                span.set_status(StatusCode.ERROR)
        return succeeds


async def ask(route: Route) -> bool:
    # An instance without an open port is left out for a second, and another one is asked.
    for _ in route.urls:
        place = route.pick()
        try:
            return await send(route.session, route.urls[place])
        except ClientConnectorError:
            route.down[place] = time.monotonic() + 1
        finally:
            route.busy[place] -= 1
    return False


async def attempt(route: Route) -> bool:
    if not route.allows():
        return False
    limit = route.policy.get("timeout", 0) / 1e3
    try:
        succeeds = await asyncio.wait_for(ask(route), limit or None)
    except asyncio.TimeoutError:
        succeeds = False
    route.record(not succeeds)
    return succeeds


async def call(urls: list[str]) -> bool:
    route = routes[urls[0]]
    route.earn()
    for retry in range(1 + route.policy.get("retries", 0)):
        if retry and not route.spend():
            break
        if await attempt(route):
            return True
    return False


async def run(steps: list[dict]) -> bool:
    for step in steps:
        if step.get("chance", 0) and random.random() >= step["chance"]:
            continue
        factor = random.lognormvariate(0, step.get("sigma", 0)) * slow / 1e3
        if step.get("work"):
            await asyncio.sleep(step["work"] * factor)
        if step.get("burn"):
            await asyncio.get_running_loop().run_in_executor(threads, burn, step["burn"] * factor)
        if step.get("call") and not await call(step["call"]):
            return False
        if step.get("parallel") and not all(await asyncio.gather(*map(call, step["parallel"]))):
            return False
    return True


async def main() -> None:
    slots = asyncio.Semaphore(about["slots"]) if about.get("slots") else None
    for step in (step for steps in about["endpoints"].values() for step in steps):
        for urls in [*step.get("parallel", []), step.get("call")]:
            if urls:
                routes[urls[0]] = Route(urls, step)

    async def handle(request: web.BaseRequest) -> web.Response:
        global slow
        name = request.path[1:]
        if name == "slow":
            slow = float(request.query["factor"])
            return web.Response()
        if name == "flush":
            await asyncio.get_running_loop().run_in_executor(None, provider.force_flush)
            return web.Response()
        context = propagate.extract(request.headers)
        with tracer.start_as_current_span(name, context=context, kind=SpanKind.SERVER) as span:
            if slots:
                async with slots:
                    succeeds = await run(about["endpoints"][name])
            else:
                succeeds = await run(about["endpoints"][name])
            if not succeeds:
                span.set_status(StatusCode.ERROR)
            return web.Response(status=200 if succeeds else 503)

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", about["port"], backlog=1024).start()
    await asyncio.Event().wait()


asyncio.run(main())
