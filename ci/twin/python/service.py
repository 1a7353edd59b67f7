"""A service of the laboratory: performs the steps of its description, and records spans with the OpenTelemetry SDK.

../README.md has the description, which all languages share.
"""

import asyncio
import json
import random
import sys

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web
from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

about = json.loads(sys.argv[1])
resource = Resource({"service.name": about["name"], "service.instance.id": f"{about['name']}{about['port']}"})
provider = TracerProvider(resource=resource)
exporter = OTLPSpanExporter(endpoint=f"{sys.argv[2]}/v1/traces")
# Every span is wanted: no queue may drop one.
provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=200_000, max_export_batch_size=2_000))
tracer = provider.get_tracer("laboratory")
slow = 1.0


async def attempt(session: ClientSession, url: str, timeout: float) -> bool:
    with tracer.start_as_current_span(
        "GET", kind=SpanKind.CLIENT, attributes={"server.address": url.split("/")[2]}
    ) as span:
        headers: dict[str, str] = {}
        propagate.inject(headers)
        limit = ClientTimeout(total=timeout / 1e3 if timeout else None)
        try:
            async with session.get(url, headers=headers, timeout=limit) as answer:
                await answer.read()
                succeeds = answer.status < 500
        except (OSError, asyncio.TimeoutError):
            succeeds = False
        if not succeeds:
            span.set_status(StatusCode.ERROR)
        return succeeds


async def call(session: ClientSession, url: str, step: dict) -> bool:
    for _ in range(1 + step.get("retries", 0)):
        if await attempt(session, url, step.get("timeout", 0)):
            return True
    return False


async def run(session: ClientSession, steps: list[dict]) -> bool:
    for step in steps:
        if step.get("chance", 0) and random.random() >= step["chance"]:
            continue
        if step.get("work"):
            wait = step["work"] * random.lognormvariate(0, step.get("sigma", 0)) * slow
            await asyncio.sleep(wait / 1e3)
        if step.get("call") and not await call(session, step["call"], step):
            return False
        if step.get("parallel"):
            calls = (call(session, url, step) for url in step["parallel"])
            if not all(await asyncio.gather(*calls)):
                return False
    return True


async def main() -> None:
    slots = asyncio.Semaphore(about["slots"]) if about.get("slots") else None
    session = ClientSession(connector=TCPConnector(limit=0))

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
                    succeeds = await run(session, about["endpoints"][name])
            else:
                succeeds = await run(session, about["endpoints"][name])
            if not succeeds:
                span.set_status(StatusCode.ERROR)
            return web.Response(status=200 if succeeds else 503)

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", about["port"], backlog=1024).start()
    await asyncio.Event().wait()


asyncio.run(main())
