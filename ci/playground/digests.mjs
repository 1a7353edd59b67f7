// Whether WebAssembly gives the digests of the native command: 20 definitions, 3 seeds each.
//
//   node digests.mjs NODE_BINDINGS_DIR CORSAIR

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { definitions, SEEDS } from "./definitions.mjs";

const [bindings, command] = process.argv.slice(2);
const corsair = createRequire(import.meta.url)(resolve(bindings, "corsair_playground.js"));
const folder = mkdtempSync(join(tmpdir(), "playground-"));
const expected = {};
let wrong = 0;
for (const [name, text] of definitions(corsair)) {
  const file = join(folder, `${name}_arch.json`);
  writeFileSync(file, text);
  for (const seed of SEEDS) {
    const native = execFileSync(command, ["-a", file, "-d", "2", "--seed", String(seed), "--format", "json"], { cwd: folder });
    const digest = /"digest": *"([0-9a-f]+)"/.exec(native.toString())?.[1];
    const ran = JSON.parse(corsair.run(text, BigInt(seed), 2));
    expected[`${name} ${seed}`] = digest;
    if (!digest || ran.digest !== digest) {
      console.error(`${name}, seed ${seed}: native ${digest}, WebAssembly ${ran.digest}`);
      wrong += 1;
    }
  }
}
writeFileSync(process.argv[4] ?? join(folder, "digests.json"), JSON.stringify(expected));
console.log(`playground: ${Object.keys(expected).length} digests in Node, ${wrong} differ`);
// Answers are those of the command, to the last digit.
const shop = join(folder, "shop_arch.json");
const text = JSON.stringify({ arch: "shop", load: { www: { rate: 200, arrivals: "poisson" } }, services: [
  { name: "db", package: "store", count: 2, regions: 1, service_time: { exponential: "4ms" }, concurrency: 4 },
  { name: "www", package: "denominator", count: 0, regions: 0, dependencies: ["db"] }] });
writeFileSync(shop, text);
const answer = (/** @type {string[]} */ ...given) => JSON.parse(execFileSync(command, [...given, "--format", "json"], { cwd: folder }).toString());
assert.deepEqual({ ...JSON.parse(corsair.capacity(text, 7n, 2, 50)), arch: shop },
  answer("capacity", "-a", shop, "-d", "2", "--limit", "50ms", "--seed", "7"));
assert.deepEqual(JSON.parse(corsair.compare(text, "services.db.count=4", 7n, 2, 3)),
  answer("compare", shop, "--set", "services.db.count=4", "-d", "2", "--seeds", "3", "--seed", "7"));

// A session survives commands that come within one tick of the clock, which is coarse in browsers.
const clock = performance.now.bind(performance);
performance.now = () => Math.floor(clock() * 10) / 10;
for (let seed = 0n; seed < 5n; seed += 1n) {
  const player = new corsair.Player(corsair.example("netflixoss"), seed, 30);
  const drained = () => {
    while (player.take_text() !== undefined || player.take_frame() !== undefined);
  };
  player.hear(JSON.stringify({ id: 1, ask: { control: "play" } }));
  for (let id = 2; id < 400; id += 1) {
    player.turn();
    player.hear(JSON.stringify({ drawn: true, id, ask: "save" }));
    drained();
    if (id % 3 === 0) for (const end = clock() + 2; clock() < end; );
  }
  player.free();
}
performance.now = clock;

// Bad input gives a sentence.
for (const [what, bad] of [
  ["no JSON", () => corsair.check("{")], ["an unknown field", () => corsair.check('{"arch": "x", "sevrices": []}')],
  ["a duration", () => corsair.run(corsair.example("lamp"), 0n, -1)], ["a limit", () => corsair.capacity(corsair.example("lamp"), 0n, 1, NaN)],
  ["a setting", () => corsair.compare(corsair.example("lamp"), "nonsense", 0n, 1, 3)],
  ["too many", () => corsair.check(corsair.example("lamp").replace(/"count": *[1-9]\d*/, '"count": 4000000'))],
]) {
  try {
    bad();
    console.error(`${what} was accepted`);
    wrong += 1;
  } catch (error) {
    if (typeof error !== "string" || error.length < 10) {
      console.error(`${what}: ${error}`);
      wrong += 1;
    }
  }
}
process.exit(wrong === 0 ? 0 : 1);
