// The live view of real programs as hosts, in a real Chromium: names, traffic, what a program has printed, and kills,
// pauses and partitions by click.
//
//   node hosts.mjs CORSAIR_HOST CHROMIUM [--screenshots DIR]
//
// Needs playwright-core and axe-core, found through NODE_PATH, and python3.

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import assert from "node:assert/strict";
import { complaints, digest, directory, Held, launch, runUntil, violations, visit } from "./browser.mjs";

const [program, executablePath, flag, pictures] = process.argv.slice(2);

const SERVER = `import asyncio
async def handle(reader, writer):
    while line := await reader.readline():
        writer.write(b"echo " + line)
        await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(handle, "0.0.0.0", 80)
    print("listening", flush=True)
    await server.serve_forever()
asyncio.run(main())
`;
const CLIENT = `import socket, time
for attempt in range(10000):
    try:
        stream = socket.create_connection(("server", 80), 1)
        for _ in range(5):
            stream.sendall(b"hello\\n")
            stream.recv(100)
            time.sleep(0.05)
        stream.close()
    except OSError as error:
        print(error, flush=True)
        time.sleep(0.2)
`;
const python = execFileSync("python3", ["-c", "import os, sys; print(os.path.realpath(sys.executable)); print(sys.prefix)"], { encoding: "utf8" });
const [interpreter, prefix] = python.trim().split("\n");
const host = (name, text) => ({ name, run: [interpreter, "/app/main.py"], files: { "/app/main.py": text }, read: [prefix] });
writeFileSync(join(directory, "server.py"), SERVER);
writeFileSync(join(directory, "client.py"), CLIENT);
const file = join(directory, "simulation.json");
const hosts = [host("server", "server.py"), ...[0, 1, 2].map((number) => host(`client-${number}`, "client.py"))];
writeFileSync(file, JSON.stringify({ until: "600s", host: hosts }));

/** The bits of a host. */
const bits = (page, name) => page.evaluate((name) => {
  const { graph } = window.corsair;
  return graph.bits[graph.nodes.findIndex((node) => node.name === name)];
}, name);
/** Packets per second between two hosts. */
const rate = (page, from, to) => page.evaluate(([from, to]) => {
  const { graph } = window.corsair;
  const at = (name) => graph.nodes.findIndex((node) => node.name === name);
  return graph.edges.get(at(from), at(to))?.rate ?? 0;
}, [from, to]);
const choose = async (page, name) => {
  await page.fill("#find", name);
  await page.press("#find", "Enter");
  await page.waitForFunction((name) => document.querySelector("#one h2")?.textContent === name, name);
};
const act = async (page, name, what) => {
  await choose(page, name);
  await page.click(`#picked button[data-do="${what}"]`);
  await page.waitForSelector("#picked form:not([hidden])");
  await page.locator("#picked form").getByRole("button", { name: "Apply" }).click();
};

const chromium = await launch(executablePath);
const digests = [];
for (const workers of ["1", "2"]) {
  const held = new Held(program, "run", file, "--workers", workers, "--ui");
  const page = await visit(chromium, await held.url);
  assert.equal(await page.evaluate(() => window.corsair.graph.nodes.length), 4);
  await runUntil(page, 2);
  assert.ok(await rate(page, "client-0", "server") > 5, "the clients send");
  assert.equal(await rate(page, "client-0", "client-1"), 0);
  await choose(page, "server");
  await page.waitForFunction(() => document.body.innerText.includes("listening"));
  if (flag === "--screenshots") await page.screenshot({ path: join(resolve(pictures), "hosts.png") });

  await act(page, "server", "kill");
  await runUntil(page, 4);
  assert.equal(await bits(page, "server") & 1, 1, "the server is killed");
  await choose(page, "client-0");
  await page.waitForFunction(() => document.body.innerText.includes("Connection refused"));
  await act(page, "server", "revive");
  await runUntil(page, 6);
  assert.equal(await bits(page, "server"), 0, "the server runs again");
  assert.ok(await rate(page, "client-0", "server") > 5, "the clients send again");

  await act(page, "client-1", "partition");
  await act(page, "client-2", "pause");
  await runUntil(page, 9);
  assert.equal(await bits(page, "client-1") & 4, 4);
  assert.equal(await bits(page, "client-2") & 2, 2);
  assert.equal(await rate(page, "client-2", "server"), 0, "a paused program sends nothing");
  await act(page, "client-1", "rejoin");
  await act(page, "client-2", "resume");
  await runUntil(page, 14);
  for (const client of ["client-1", "client-2"]) assert.ok(await rate(page, client, "server") > 5, `${client} sends again`);
  assert.deepEqual(await violations(page), []);
  digests.push(await digest(page));
  await page.context().close();
  await held.end();
}
assert.equal(digests[0], digests[1], "the same commands have the same digest on 1 and 2 workers");
assert.deepEqual(complaints, []);
await chromium.close();
console.log(`hosts: names, traffic, logs, kill, pause and partition by click; digest ${digests[0]} on 1 and 2 workers`);
