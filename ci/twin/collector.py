"""Takes traces as OTLP over HTTP (protobuf) and appends them to a file as OTLP/JSON, a request a line."""

import base64
import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

directory, port = Path(sys.argv[1]), int(sys.argv[2])
lock = Lock()
IDS = ("traceId", "spanId", "parentSpanId")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        # The first part of the path names the system; traces are kept while there is a file for it.
        file = directory / f"{self.path.split('/')[1]}.jsonl"
        if file.exists():
            request = ExportTraceServiceRequest.FromString(body)
            traces = MessageToDict(request)
            for resource in traces.get("resourceSpans", []):
                for scope in resource.get("scopeSpans", []):
                    for span in scope.get("spans", []):
                        for key in IDS:
                            if key in span:
                                span[key] = base64.b64decode(span[key]).hex()
            with lock, file.open("a") as out:
                out.write(json.dumps(traces, separators=(",", ":")) + "\n")
        self.send_response(200)
        self.send_header("content-length", "0")
        self.send_header("content-type", "application/x-protobuf")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
