"""An HTTP server on asyncio, which counts its requests in a file."""
import asyncio
import os

COUNT = "/var/count"


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ")[1].decode()
            await asyncio.sleep(0.05)
            count = int(open(COUNT).read()) + 1 if os.path.exists(COUNT) else 1
            with open(COUNT, "w") as file:
                file.write(str(count))
                file.flush()
                os.fsync(file.fileno())
            body = f"{path} {count}".encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", 80)
    print("serves", flush=True)
    async with server:
        await server.serve_forever()


asyncio.run(main())
