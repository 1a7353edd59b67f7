"""Serves counters for Prometheus: 50 requests per second, and a tenth of a processor of each service that is named.

Usage: exporter.py PORT SERVICE...
"""
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

start = time.monotonic()


class Metrics(BaseHTTPRequestHandler):
    def do_GET(self):
        lasted = time.monotonic() - start
        lines = [f"http_requests_total {50 * lasted}"]
        lines += [f'cpu_seconds_total{{service="{name}"}} {0.1 * lasted}' for name in sys.argv[2:]]
        self.send_response(200)
        self.send_header("content-type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(("\n".join(lines) + "\n").encode())

    def log_message(self, *about):
        pass


HTTPServer(("127.0.0.1", int(sys.argv[1])), Metrics).serve_forever()
