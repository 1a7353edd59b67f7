#!/usr/bin/env python3
"""A client of the messaging service, made from the node's own OpenAPI document: its operations are called by
their names, with what the document says of them. It posts under a key of its own until the node says yes or
no, and listens on from the last message it has dealt with, however often the node goes away.

    COURIER_PASSWORD=... courier_client.py URL NAME listen
    COURIER_PASSWORD=... courier_client.py URL NAME send TO TEXT

Names are made when they are first used. Needs Python 3.10 and, to listen, `pip install websockets`.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status


class Client:
    """The operations of a node: `client.post_users(body={...})`."""

    def __init__(self, url):
        self.url, self.token, self.operations = url.rstrip("/"), None, {}
        document = self.until_done(lambda: self.request("GET", "/openapi.json", None, {}))
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                self.operations[operation["operationId"]] = (method.upper(), path, operation)

    def __getattr__(self, name):
        if name not in self.operations:
            raise AttributeError(f"the node knows no {name}; there are {', '.join(sorted(self.operations))}")
        method, path, operation = self.operations[name]

        def call(body=None, key=None, **given):
            query, filled, headers = {}, path, {}
            for parameter in operation.get("parameters", []):
                value = given.pop(parameter["name"], None)
                if parameter["in"] == "path":
                    filled = filled.replace("{%s}" % parameter["name"], urllib.parse.quote(str(value)))
                elif parameter["in"] == "query" and value is not None:
                    query[parameter["name"]] = value
                elif parameter["name"] == "Idempotency-Key" and key is not None:
                    headers["idempotency-key"] = key
            if given:
                raise TypeError(f"{name} does not take {', '.join(given)}")
            if query:
                filled += "?" + urllib.parse.urlencode(query)
            if operation.get("security"):
                headers["authorization"] = f"Bearer {self.token}"
            return self.until_done(lambda: self.request(method, filled, body, headers))

        return call

    def request(self, method, path, body, headers):
        data = None
        if body is not None:
            data, headers = json.dumps(body).encode(), {**headers, "content-type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            said = json.loads(error.read() or b"{}")
            raise Refused(error.code, said.get("error", {}).get("message", error.reason)) from None
        return json.loads(text) if text else None

    @staticmethod
    def until_done(ask):
        """Asks again while the node is away, busy, or wants less."""
        while True:
            try:
                return ask()
            except Refused as refused:
                if refused.status < 500 and refused.status != 429:
                    raise
            except OSError:
                pass
            time.sleep(0.2)

    def enter(self, name, password):
        """Logs in, or makes the account."""
        who = {"name": name, "password": password}
        try:
            self.token = self.post_users(body=who)["token"]
        except Refused as refused:
            if refused.status != 409:
                raise
            self.token = self.post_sessions(body=who)["token"]

    def send(self, to, text):
        found = [user for user in self.get_users(prefix=to, limit=1)["users"] if user["name"] == to]
        if not found:
            raise SystemExit(f"user {to} does not exist")
        room = self.post_conversations(body={"recipients": [found[0]["id"]], "pair": True})
        return self.post_conversations_id_messages(id=room["id"], body={"text": text}, key=str(uuid.uuid4()))

    def listen(self):
        """Every message, in order, once."""
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect

        last = 0
        while True:
            url = self.url.replace("http", "ws", 1) + "/ws?presence=false" + (f"&after={last}" if last else "")
            try:
                with connect(url, additional_headers={"authorization": f"Bearer {self.token}"}) as socket:
                    for frame in socket:
                        frame = json.loads(frame)
                        if frame["type"] == "message:new" and frame["sequence"] > last:
                            yield frame["message"]
                            last = frame["sequence"]
                            socket.send(json.dumps({"type": "ack", "sequence": last}))
            except (OSError, WebSocketException):
                time.sleep(0.2)


def main():
    match sys.argv[1:]:
        case [url, name, "listen"]:
            client = Client(url)
            client.enter(name, os.environ["COURIER_PASSWORD"])
            for message in client.listen():
                print(message["text"], flush=True)
        case [url, name, "send", to, text]:
            client = Client(url)
            client.enter(name, os.environ["COURIER_PASSWORD"])
            client.send(to, text)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
