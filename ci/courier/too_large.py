#!/usr/bin/env python3
"""Clients of other making send bodies over the limit, and each of them sees the answer 413 instead of a broken
connection: Python's http.client, urllib, requests and aiohttp, and Go's net/http.

    too_large.py --path PATH [--kind CONTENT-TYPE] -- PROGRAM [ARGUMENT ...]

PROGRAM with its arguments serves on the address that it is given for {address}. Go is left out if there is none.
"""

import argparse
import asyncio
import http.client
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import aiohttp
import requests
from service import Process, free_port

SIZES = (300 << 10, 2 << 20, 64 << 20)

GO = """package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strconv"
)

func main() {
	for _, text := range os.Args[3:] {
		size, _ := strconv.Atoi(text)
		request, _ := http.NewRequest("POST", os.Args[1], bytes.NewReader(make([]byte, size)))
		request.Header.Set("content-type", os.Args[2])
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(answer.StatusCode)
		answer.Body.Close()
	}
}
"""


def by_http_client(address, path, kind, size):
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.request("POST", path, b" " * size, {"content-type": kind})
    return connection.getresponse().status


def by_urllib(address, path, kind, size):
    request = urllib.request.Request(f"http://{address}{path}", b" " * size, {"content-type": kind})
    try:
        return urllib.request.urlopen(request, timeout=30).status
    except urllib.error.HTTPError as error:
        return error.code


def by_requests(address, path, kind, size):
    answer = requests.post(f"http://{address}{path}", b" " * size, headers={"content-type": kind}, timeout=30)
    return answer.status_code


def by_aiohttp(address, path, kind, size):
    async def post():
        async with aiohttp.ClientSession() as session:
            headers = {"content-type": kind}
            async with session.post(f"http://{address}{path}", data=b" " * size, headers=headers) as answer:
                return answer.status

    return asyncio.run(post())


def by_go(address, path, kind):
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "main.go").write_text(GO)
        url, sizes = f"http://{address}{path}", [str(size) for size in SIZES]
        # The module needs nothing but the standard library.
        run = ["go", "run", "main.go", url, kind, *sizes]
        done = subprocess.run(run, cwd=directory, capture_output=True, text=True, check=True)
        return done.stdout.split("\n")[: len(SIZES)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--path", required=True)
    parser.add_argument("--kind", default="application/json")
    parser.add_argument("program", nargs="+")
    arguments = parser.parse_args()
    port = free_port()
    address = f"127.0.0.1:{port}"
    command = [part.replace("{address}", address) for part in arguments.program]
    server = Process(command, port)
    wrong = 0
    try:
        asyncio.run(server.ready())
        for by in (by_http_client, by_urllib, by_requests, by_aiohttp):
            for size in SIZES:
                for _ in range(3):
                    try:
                        status = by(address, arguments.path, arguments.kind, size)
                    except Exception as error:
                        status = repr(error)
                    if status != 413:
                        print(f"{by.__name__}, {size} bytes: {status}")
                        wrong += 1
        clients = "http.client, urllib, requests and aiohttp"
        if shutil.which("go"):
            clients += ", and Go's net/http,"
            for size, status in zip(SIZES, by_go(address, arguments.path, arguments.kind)):
                if status != "413":
                    print(f"Go, {size} bytes: {status}")
                    wrong += 1
        else:
            print("left out: Go's client (there is no go)")
    finally:
        server.kill()
    if wrong:
        sys.exit(f"{wrong} clients did not see 413")
    print(f"{clients} see 413 for bodies of {SIZES} bytes")


main()
