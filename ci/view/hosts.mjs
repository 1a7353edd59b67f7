// The live view of real programs as hosts, in a real Chromium: names, guide, legend, traffic, what a program has printed, kills,
// pauses and partitions by click and at a virtual time, and a program that fails.
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
// A fault of the file is marked like one of the page.
const fault = [{ at: "15s", pause: "client-0" }];
writeFileSync(file, JSON.stringify({ until: "600s", host: hosts, fault }));

/** Waits until a host has these bits, for a frame may come after the message that the run stands still. */
const hasBits = (page, name, bits) => page.waitForFunction(([name, bits]) => {
  const { graph } = window.corsair;
  return graph.bits[graph.nodes.findIndex((node) => node.name === name)] === bits;
}, [name, bits], { timeout: 5000 }).catch((error) => assert.fail(`${name} does not get the bits ${bits}: ${error}`));
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

/** What is at a node is shown beside the pointer. */
const card = async (page, name) => {
  const [x, y] = await page.evaluate((name) => {
    const { graph } = window.corsair;
    const node = graph.nodes.find((node) => node.name === name);
    const { left, top } = graph.front.getBoundingClientRect();
    const [x, y] = graph.toScreen(node.x, node.y);
    return [left + x, top + y];
  }, name);
  await page.mouse.move(x, y);
  await page.waitForSelector("#card:not([hidden])");
  return page.$$eval("#card > *", (all) => all.map((one) => one.textContent));
};
/** The page speaks of hosts and packets, not of services and requests. */
async function words(page) {
  const guide = () => page.textContent("#guide");
  for (let step = 1; step <= 5; step += 1) {
    assert.match(await guide(), new RegExp(`${step} of 5`));
    assert.doesNotMatch(await guide(), /service|request|zone/i);
    await page.click("#guide button");
  }
  assert.ok(await page.isHidden("#guide"));
  const legend = await page.$$eval("#legend li", (all) => all.filter((one) => one.checkVisibility()).map((one) => one.textContent));
  assert.deepEqual(legend, ["running", "ended", "down", "paused", "cut off", "packets, wider is more", "to or from a host that is down"]);
  const named = await page.evaluate(() => window.corsair.graph.labels.map((label) => label.text).sort());
  assert.deepEqual(named, ["client-0", "client-1", "client-2", "server"]);
  const until = await page.$$eval("#until-what option", (all) => all.filter((one) => !one.hidden).map((one) => one.value));
  assert.deepEqual(until, ["time", "state"]);
  for (const id of ["#save", "#open-traces", "#one-group"]) assert.ok(await page.isHidden(id), id);
}

const chromium = await launch(executablePath);
const digests = [];
const runs = [];
const hold = async (...args) => {
  const run = new Held(program, "run", file, "--ui", ...args);
  runs.push(run);
  return [run, await visit(chromium, await run.url)];
};
try {
  for (const workers of ["1", "2"]) {
    const [held, page] = await hold("--workers", workers);
    assert.equal(await page.evaluate(() => window.corsair.graph.nodes.length), 4);
    if (workers === "1") await words(page);
    await runUntil(page, 2);
    assert.ok(await rate(page, "client-0", "server") > 5, "the clients send");
    assert.match((await card(page, "server")).join("\n"), /^server\nrunning\n[\d.]+ packets\/s sent, [\d.]+ received$/);
    assert.match(await page.textContent("#charts figcaption"), /packets\/s/);
    assert.equal(await rate(page, "client-0", "client-1"), 0);
    await choose(page, "server");
    await page.waitForFunction(() => document.body.innerText.includes("listening"));
    assert.match(await page.textContent("#one dl"), /^group.*program.*runs.*address.*10\.0\.0\.1/);

    await act(page, "server", "kill");
    await runUntil(page, 4);
    await hasBits(page, "server", 1);
    await choose(page, "client-0");
    await page.waitForFunction(() => document.body.innerText.includes("Connection refused"));
    await act(page, "server", "revive");
    await runUntil(page, 6);
    await hasBits(page, "server", 0);
    assert.ok(await rate(page, "client-0", "server") > 5, "the clients send again");

    await act(page, "client-1", "partition");
    await act(page, "client-2", "pause");
    await runUntil(page, 9);
    await hasBits(page, "client-1", 4);
    await hasBits(page, "client-2", 2);
    assert.equal(await rate(page, "client-2", "server"), 0, "a paused program sends nothing");
    await act(page, "client-1", "rejoin");
    await act(page, "client-2", "resume");
    await runUntil(page, 14);
    for (const client of ["client-1", "client-2"]) assert.ok(await rate(page, client, "server") > 5, `${client} sends again`);
    // A command and a fault of the file are marked from their times on, not before; the bar of time names the fault.
    assert.deepEqual(await page.evaluate(() => window.corsair.graph.scene.marks), [{ at: 15, name: "pause client-0", text: "" }]);
    await page.selectOption("#do-what", "partition");
    await page.fill("#do-who", "client-2");
    await page.fill("#do-at", "16");
    await page.click("#do button");
    for (const [time, paused, cutOff] of [[14.5, 0, 0], [15.5, 2, 0], [16.5, 2, 4]]) {
      await runUntil(page, time);
      await hasBits(page, "client-0", paused);
      await hasBits(page, "client-2", cutOff);
    }
    // The larger part of a partition is not cut off.
    await hasBits(page, "server", 0);
    await choose(page, "client-2");
    await page.waitForFunction(() => /"separated from": \[\s*"server",/.test(document.querySelector("#one pre").textContent));
    if (flag === "--screenshots") await page.screenshot({ path: join(resolve(pictures), "hosts.png") });
    assert.match((await card(page, "client-2")).join(), /cut off/);
    assert.deepEqual(await violations(page), []);
    digests.push(await digest(page));
    await page.context().close();
    await held.end();
  }
  assert.equal(digests[0], digests[1], "the same commands have the same digest on 1 and 2 workers");

  // A program that fails ends the run, and the page says which.
  writeFileSync(join(directory, "broken.py"), "import time\ntime.sleep(1)\nraise SystemExit(3)\n");
  writeFileSync(file, JSON.stringify({ until: "60s", host: [host("broken", "broken.py"), hosts[0]] }));
  const [, page] = await hold();
  await page.selectOption("#speed", "");
  await page.click("#play");
  await page.waitForFunction(() => /host broken exited with status 3, seed 1, at or before/.test(document.getElementById("stopped").textContent));
  await choose(page, "broken");
  await page.waitForFunction(() => /exited with status 3/.test(document.querySelector("#one dl").textContent));
  assert.deepEqual(complaints, []);
} finally {
  await chromium.close();
  for (const run of runs) await run.end();
}
console.log(`hosts: names, guide, legend, traffic, logs, failures, kill, pause and partition by click; digest ${digests[0]} on 1 and 2 workers`);
