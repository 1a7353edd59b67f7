"""Sends spans of a web service and its database with the official SDK, by each exporter and compression.

Usage: send.py ADDRESS TRACES
"""
import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from grpc import Compression as GrpcCompression

MILLISECOND = 1_000_000


def send(name, exporter, traces, start):
    def tracer(service):
        resource = Resource.create({"service.name": f"{service}-{name}"})
        provider = TracerProvider(resource=resource)
        provider.add_span_processor(BatchSpanProcessor(exporter(), max_queue_size=100_000))
        return provider, provider.get_tracer("corsair")

    web_provider, web = tracer("web")
    db_provider, db = tracer("db")
    for number in range(traces):
        at = start + number * 10 * MILLISECOND
        page = web.start_span("page", kind=trace.SpanKind.SERVER, start_time=at)
        page.set_attribute("http.request.method", "GET")
        inside = trace.set_span_in_context(page)
        client = web.start_span("get", inside, kind=trace.SpanKind.CLIENT, start_time=at + MILLISECOND)
        server = db.start_span(
            "get", trace.set_span_in_context(client), kind=trace.SpanKind.SERVER, start_time=at + 2 * MILLISECOND
        )
        server.set_attribute("rows", [1, 2, 3])
        server.end(end_time=at + 5 * MILLISECOND)
        client.end(end_time=at + 6 * MILLISECOND)
        page.end(end_time=at + 8 * MILLISECOND)
    for provider in (web_provider, db_provider):
        assert provider.force_flush(30_000), f"{name}: not everything was sent"
        provider.shutdown()


def main():
    address, traces = sys.argv[1], int(sys.argv[2])
    url, start = f"http://{address}/v1/traces", 1_700_000_000_000_000_000
    exporters = {
        "python-http": lambda: Http(endpoint=url),
        "python-http-gzip": lambda: Http(endpoint=url, compression=Compression.Gzip),
        "python-grpc": lambda: Grpc(endpoint=f"http://{address}", insecure=True),
        "python-grpc-gzip": lambda: Grpc(
            endpoint=f"http://{address}", insecure=True, compression=GrpcCompression.Gzip
        ),
    }
    for name, exporter in exporters.items():
        send(name, exporter, traces, start)


main()
