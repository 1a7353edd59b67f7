// The built page in a real Chromium, opened from a folder: digests, the live view, answers, links, rules of accessibility.
//
//   node page.mjs PAGE.html CHROMIUM DIGESTS.json BINDINGS_DIR [PICTURE.png]

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { definitions, SEEDS } from "./definitions.mjs";

const require = createRequire(`${process.env.NODE_PATH}/`);
const { chromium } = require("playwright-core");
const [file, program, digests, bindings, picture] = process.argv.slice(2);
const url = pathToFileURL(resolve(file)).href;
const expected = JSON.parse(readFileSync(digests, "utf8"));
const corsair = createRequire(import.meta.url)(resolve(bindings, "corsair_playground.js"));

const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
// But for what the editor's parser says about text that is half typed.
/** @type {string[]} */
const complaints = [];
page.on("pageerror", (error) => complaints.push(String(error)));
page.on("console", (message) => message.type() === "error" && !message.text().startsWith("parsed json with") && complaints.push(message.text()));
/** @type {string[]} */
const requests = [];
page.on("request", (request) => request.url().startsWith("blob:") || requests.push(request.url()));

/** Waits until a predicate is true in the page, whose policy allows no `waitForFunction`. */
async function until(/** @type {any} */ page, /** @type {() => unknown} */ predicate) {
  for (const end = Date.now() + 60_000; Date.now() < end; await new Promise((done) => setTimeout(done, 50))) {
    if (await page.evaluate(predicate)) return;
  }
  const said = ["#said", "#problem", "#stopped", "#play"].map((id) => page.textContent(id));
  throw new Error(`not within a minute: ${predicate}; the page says ${JSON.stringify([...(await Promise.all(said)), ...complaints])}`);
}

const began = Date.now();
await page.goto(url);
await until(page, () => window.corsair?.pictures() > 0);
const first = Date.now() - began;

// The digests of the native command.
let same = 0;
for (const [name, text] of definitions(corsair)) {
  for (const seed of SEEDS) {
    const ran = await page.evaluate(([text, seed]) => window.playground.other.call("run", text, seed, 2), [text, String(seed)]);
    assert.equal(ran.digest, expected[`${name} ${seed}`], `${name}, seed ${seed}`);
    same += 1;
  }
}

// The first example is the shop of the book.
assert.equal(await page.inputValue("#example"), "shop");
await page.selectOption("#example", "netflixoss");
await until(page, () => document.title.includes("netflixoss"));

// The live view: plays, shows the digest when it is paused, takes a command.
await page.click("#play");
await until(page, () => window.corsair.now() > 0.3);
await page.fill("#do-who", "login");
await page.selectOption("#do-what", "kill");
await page.click("#do button");
await until(page, () => document.querySelectorAll("#commands li").length === 1);
await page.click("#play");
await until(page, () => /digest [0-9a-f]{16}/.test(document.querySelector("#digest").textContent));

// A link brings the definition, the seed and the commands.
await page.fill("#seed", "5");
await page.click("#start");
await until(page, () => document.querySelectorAll("#commands li").length === 0);
await page.fill("#do-who", "login");
await page.fill("#do-at", "0.5");
await page.click("#do button");
await until(page, () => document.querySelectorAll("#commands li").length === 1);
await page.click("#link");
await until(page, () => location.hash.length > 100);
const link = page.url();
const other = await browser.newPage();
await other.goto(link);
await until(other, () => document.querySelectorAll("#commands li").length === 1);
assert.equal(await other.inputValue("#seed"), "5");
assert.equal(await other.inputValue("#example"), "", "the example of a link");
await other.close();

// A page whose link is damaged, or has something wrong, says so and can be used.
const linkOf = (/** @type {unknown} */ state) => `#${gzipSync(JSON.stringify(state)).toString("base64url")}`;
const small = { definition: corsair.example("lamp"), seed: "1", seconds: 10 };
for (const [hash, said] of [
  ["#H4sIAAAA", /damaged/], [link.slice(link.indexOf("#"), -9), /damaged/], [`#${"A".repeat(200_001)}`, /damaged/],
  [linkOf(null), /damaged/], [linkOf([1, 2]), /damaged/], [linkOf({ seed: "1" }), /damaged/],
  [linkOf({ ...small, definition: '{"arch": "x", "services": 5}' }), /expected a sequence/],
  [linkOf({ ...small, seed: "99999999999999999999" }), /'99999999999999999999' is not a seed/],
  [linkOf({ ...small, seed: { x: 1 } }), /is not a seed/], [linkOf({ ...small, seconds: "ten" }), /duration/],
  [linkOf({ ...small, seconds: 1e9 }), /duration/], [linkOf({ pirates: 1e12 }), /is not a number of pirates/],
  [linkOf({ ...small, commands: [{ at: 500_000_000, do: "nonsense" }] }), /a command of the link has no effect/],
  [linkOf({ ...small, commands: [null] }), /a command of the link has no effect/],
]) {
  const damaged = await browser.newPage();
  damaged.on("pageerror", (error) => complaints.push(`${hash.slice(0, 60)}: ${error}`));
  await damaged.goto(url + hash);
  await until(damaged, () => window.corsair?.pictures() > 0 && document.querySelector("#said.wrong"));
  assert.match(await damaged.textContent("#said"), said);
  await damaged.fill("#seed", "0");
  await damaged.fill("#seconds", "10");
  await damaged.selectOption("#example", "test");
  await until(damaged, () => document.title.includes("test"));
  await damaged.close();
}

// A definition that a link cannot carry is refused when the link is made.
await page.evaluate((noise) => {
  const { editor } = window.playground;
  editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: JSON.stringify({ arch: noise, services: [] }) } });
}, randomBytes(200_000).toString("base64url"));
await page.click("#link");
await until(page, () => /too long for a link/.test(document.querySelector("#said.wrong")?.textContent ?? ""));

// Answers.
await page.selectOption("#example", "lamp");
await until(page, () => document.title.includes("lamp"));
await page.click("#capacity button");
await until(page, () => /nothing limits/.test(document.querySelector("#verdict").textContent));
await page.evaluate(() => {
  const services = [{ name: "db", package: "store", count: 1, regions: 1, service_time: "4ms", concurrency: 2 },
    { name: "www", package: "denominator", count: 0, regions: 0, dependencies: ["db"] }];
  const { editor } = window.playground;
  editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: JSON.stringify({ arch: "shop", services }) } });
});
await page.click("#capacity button");
await until(page, () => /^sustains \d.* busy$/.test(document.querySelector("#verdict").textContent)
  && document.querySelectorAll("#answer tr").length > 3 && document.querySelectorAll("#answer polyline").length === 2);
const [left, right] = await Promise.all(["#definition", "#answers"].map((id) => page.locator(id).boundingBox()));
assert.ok(right.x >= left.x + left.width && right.y + right.height <= 900, "the answers are at the right, within the window");
await until(page, () => /has changed/.test(document.querySelector("#said").textContent));
await page.focus(".cm-content");
await page.keyboard.press("Control+Enter");
await until(page, () => document.title.includes("shop"));
await page.selectOption("#example", "test");
await page.selectOption("#example", "lamp");
await until(page, () => document.title.includes("lamp"));
assert.equal(await page.inputValue("#settings"), "services.rds-mysql.count=4");
await page.click("#compare button");
await until(page, () => /intervals/.test(document.querySelector("#verdict").textContent));
await page.click("#digest-run");
await until(page, () => /^digest [0-9a-f]{16} /.test(document.querySelector("#verdict").textContent));
await page.fill("#seed", "five");
await page.click("#digest-run");
await until(page, () => /'five' is not a seed/.test(document.querySelector("#said.wrong")?.textContent ?? ""));
await page.fill("#seed", "5");
await page.fill("#settings", "services.nobody.count=36");
await page.click("#compare button");
await until(page, () => /nobody/.test(document.querySelector("#said.wrong")?.textContent ?? ""));

// Errors and completion in place.
await page.evaluate(() => {
  const { editor } = window.playground;
  editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: '{\n  "arch": "x",\n  \n  "services": 5\n}' }, selection: { anchor: 18 } });
  editor.focus();
});
await page.keyboard.type('"');
await page.waitForSelector(".cm-tooltip-autocomplete", { timeout: 10_000 });
const offered = await page.textContent(".cm-tooltip-autocomplete");
assert.match(offered, /network|load|faults/);
await page.keyboard.press("Escape");
await page.evaluate(() => {
  const { editor } = window.playground;
  editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: '{\n  "arch": "x",\n  "services": 5\n}' } });
});
await page.waitForSelector(".cm-lintRange", { timeout: 20_000 });

// Pirates.
await page.selectOption("#example", "pirates");
await until(page, () => document.title.includes("fsm"));
await page.click("#play");
await until(page, () => !document.querySelector("#densities").hidden);
assert.match(await page.textContent("#guide"), /pirate/);
await page.fill("#population", "50");
await page.click("#start");
await until(page, () => /^5[01] actors/.test(document.querySelector("#front").title));
if (picture) await page.screenshot({ path: picture });

// 30 frames a second with 500 instances, none above 100 ms.
await page.evaluate(async () => {
  const services = [{ name: "store", package: "store", count: 500, regions: 1 },
    { name: "www", package: "denominator", count: 0, regions: 0, dependencies: ["store"] }];
  await window.playground.live.call("open", JSON.stringify({ arch: "big", services, load: { www: { rate: 2000 } } }), "0", 60);
});
await until(page, () => document.title.includes("big"));
await page.click("#play");
const frames = await page.evaluate(() => new Promise((done) => {
  const times = [];
  const step = (time) => (times.push(time), times.length < 150 ? requestAnimationFrame(step) : done(times));
  requestAnimationFrame(step);
}));
const gaps = frames.slice(1).map((time, place) => time - frames[place]).sort((a, b) => a - b);
console.log(`playground: first picture after ${first} ms; with 500 instances a frame every ${gaps[75].toFixed(1)} ms (median), longest ${gaps.at(-1).toFixed(1)} ms`);

const { source } = require("axe-core");
await page.selectOption("#example", "shop");
await page.click("#capacity button");
await until(page, () => !document.querySelector("#answers").hidden);
/** The rules of accessibility that a page breaks. The browser's own tool runs this, not the page, whose policy would refuse. */
async function violationsOf(/** @type {any} */ page) {
  await page.evaluate(source);
  return page.evaluate(async () =>
    (await window.axe.run()).violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target).join(" ")}`));
}
const dark = await browser.newPage({ viewport: { width: 1400, height: 900 }, colorScheme: "dark" });
await dark.goto(url);
await until(dark, () => window.corsair?.pictures() > 0);
const violations = [...(await violationsOf(page)), ...(await violationsOf(dark))];

assert.deepEqual(requests.filter((one) => !one.startsWith(url) && !one.startsWith("data:")), [], "the page loads something");
assert.deepEqual(complaints, []);
assert.deepEqual(violations, []);
await browser.close();
console.log(`playground: ${same} digests in Chromium, live view, link, answers, editor, pirates: all as expected`);
