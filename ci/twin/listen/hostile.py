"""Sends requests that no SDK sends, and requires that each is refused and that the receiver continues.

Usage: hostile.py ADDRESS
"""
import gzip
import http.client
import os
import socket
import sys

address = sys.argv[1]
host, port = address.rsplit(":", 1)
PROTOBUF, JSON = "application/x-protobuf", "application/json"


def post(path, body, **headers):
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except (BrokenPipeError, ConnectionResetError):
        # The receiver has closed the connection before it had the whole body.
        return 413, "closed"
    finally:
        connection.close()


def refused(status, path, body, **headers):
    found, said = post(path, body, **headers)
    assert found == status, (status, found, said[:300])


refused(404, "/v1/metrics", b"", content_type=PROTOBUF)
refused(404, "/", b"")
refused(415, "/v1/traces", b"x", content_type="text/plain")
refused(415, "/v1/traces", b"x")
refused(415, "/v1/traces", b"x", content_type=JSON, content_encoding="br")
refused(400, "/v1/traces", b"x", content_type=JSON, content_encoding="gzip")
refused(400, "/v1/traces", gzip.compress(b"{}")[:-9], content_type=JSON, content_encoding="gzip")
refused(400, "/v1/traces", b"\xff" * 100, content_type=PROTOBUF)
refused(400, "/v1/traces", b"[" * 100_000, content_type=JSON)
refused(400, "/v1/traces", b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "x"}]}]}]}', content_type=JSON)
refused(413, "/v1/traces", b"0" * (17 << 20), content_type=JSON)
bomb = gzip.compress(b"0" * (200 << 20), 9)
refused(413, "/v1/traces", bomb, content_type=JSON, content_encoding="gzip")
for number in range(200):
    found, _ = post("/v1/traces", os.urandom(number * 37), content_type=PROTOBUF)
    assert found in (200, 400), found

# Connections that say nothing, or too little, use places but hinder nobody.
silent = [socket.create_connection((host, int(port))) for _ in range(100)]
for number, one in enumerate(silent):
    if number % 3 == 0:
        one.sendall(b"POST /v1/traces HTTP/1.1\r\nContent-Length: 10\r\nContent-Type: application/json\r\n")
    elif number % 3 == 1:
        one.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(60))
found, said = post("/v1/traces", b'{"resourceSpans": []}', content_type=JSON)
assert (found, said) == (200, "{}"), (found, said)
for one in silent:
    one.close()
print("hostile requests were refused")
