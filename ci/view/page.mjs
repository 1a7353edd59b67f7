// The live view in a real Chromium: what is drawn (pixels), time, one thing, what is done and its replay, two
// browsers, thousands of instances, a million pirates, both schemes, the keyboard alone, 200 %.
//
//   node page.mjs PROGRAM CHROMIUM [--screenshots DIR]
//
// Needs playwright-core, found through NODE_PATH.

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import assert from "node:assert/strict";
import { complaints, digest, directory, Held, launch, runUntil, standsStill, time, unfold, visit } from "./browser.mjs";

const [program, executablePath, flag, pictures] = process.argv.slice(2);
const screenshots = flag === "--screenshots" ? resolve(pictures) : null;

/** How many pixels of a canvas are drawn, and how many are mostly red. */
const pixels = (page, id) =>
  page.evaluate((id) => {
    const canvas = document.getElementById(id);
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let [drawn, red] = [0, 0];
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] > 40) drawn += 1;
      if (data[at + 3] > 100 && data[at] > 150 && data[at + 1] < 130 && data[at + 2] < 130) red += 1;
    }
    return { drawn, red };
  }, id);

/** Where a node is on the page. */
const place = (page, name) =>
  page.evaluate((name) => {
    const { graph } = window.corsair;
    const node = graph.nodes.find((node) => node.name === name);
    const [x, y] = graph.toScreen(node.x, node.y);
    const { left, top } = graph.front.getBoundingClientRect();
    return [left + x, top + y];
  }, name);

async function doIt(page, what, who, number) {
  await page.selectOption("#do-what", what);
  await page.fill("#do-who", who);
  if (number !== undefined) await page.fill("#do-number", String(number));
  const before = await page.$$eval("#commands li", (items) => items.length);
  await page.click("#do button");
  await page.waitForFunction((before) => document.querySelectorAll("#commands li").length > before, before);
}

async function picture(page, name) {
  if (screenshots) await page.screenshot({ path: join(screenshots, `${name}.png`) });
}

/** The processor time of the browser so far, in milliseconds. */
async function processorTime() {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  return processInfo.reduce((sum, one) => sum + 1000 * one.cpuTime, 0);
}

/** How long the pictures of the next three seconds take, in a sentence. */
async function frameTimes(page) {
  const before = [await processorTime(), await page.evaluate(() => window.corsair.pictures())];
  const times = await page.evaluate(() => new Promise((done) => {
    const times = [];
    let before = performance.now();
    const begun = before;
    const next = (now) => {
      times.push(now - before);
      before = now;
      if (now - begun > 3000) done(times.slice(1));
      else requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  }));
  times.sort((a, b) => a - b);
  const at = (part) => times[Math.floor(times.length * part)].toFixed(1);
  const [time, count] = [await processorTime() - before[0], await page.evaluate(() => window.corsair.pictures()) - before[1]];
  const dots = await page.evaluate(() => window.corsair.graph.mostDots);
  return `${(times.length / 3).toFixed(0)} pictures a second, half within ${at(0.5)} ms, 95 of 100 within ${at(0.95)} ms, the longest ${at(0.9999)} ms, ${(time / count).toFixed(1)} ms of the processor each, ${dots} dots`;
}

const browser = await launch(executablePath);
const runs = [];
const held = async (...args) => {
  const run = new Held(program, ...args);
  runs.push(run);
  return [run, await run.url];
};
try {
  const [run, url] = await held("-a", "netflixoss", "-d", "20", "--ui");
  const anne = await visit(browser, url, { colorScheme: "light" });
  await anne.click("#guide button:last-child");
  await unfold(anne);

  // The graph is drawn, and nothing has happened.
  assert.ok((await time(anne)) < 0.01);
  const quiet = await pixels(anne, "back");
  assert.ok(quiet.drawn > 20000, `${quiet.drawn} pixels`);
  assert.equal((await pixels(anne, "front")).drawn, 0, "dots move without messages");
  console.log("the graph is drawn, and the run is held");

  // Play and pause.
  await anne.click("#play");
  await anne.waitForFunction(() => window.corsair.now() > 0.8);
  assert.ok((await pixels(anne, "front")).drawn > 100, "messages have dots");
  await anne.click("#play");
  await standsStill(anne);
  const stopped = await time(anne);
  await anne.waitForTimeout(300);
  assert.equal(await time(anne), stopped);
  console.log("it plays and pauses");

  // Steps: a millisecond, a second, a window, one event of an actor.
  await anne.click("#step-ms");
  await anne.waitForFunction((before) => Math.abs(window.corsair.now() - before - 0.001) < 1e-9, stopped);
  await anne.click("#step-s");
  await anne.waitForFunction((before) => Math.abs(window.corsair.now() - before - 1.001) < 1e-9, stopped);
  await anne.click("#step-window");
  await anne.waitForFunction((before) => window.corsair.now() > before, stopped + 1.001);
  await anne.mouse.click(...(await place(anne, "login00")));
  await anne.waitForFunction(() => document.querySelector("#one h2")?.textContent.endsWith("login00"));
  const messages = () => anne.evaluate(() => document.querySelector("#one .list")?.parentElement.textContent ?? "");
  let seen = await messages();
  for (let turn = 0; turn < 4; turn += 1) {
    const before = await time(anne);
    await anne.click("#step-actor");
    await anne.waitForFunction((before) => window.corsair.now() > before, before);
  }
  await anne.waitForFunction((seen) => (document.querySelector("#one .list")?.parentElement.textContent ?? "") !== seen, seen);
  console.log("it steps by time, by windows and by an actor's events");

  // One thing: state, requests, a trace, an edge.
  const state = JSON.parse(await anne.textContent("#one pre"));
  assert.equal(state.state.is_down, false);
  assert.ok(state.all.host.health && state.all.role, Object.keys(state).join());
  await anne.fill("#find", "www-elb00");
  await anne.press("#find", "Enter");
  await anne.waitForFunction(() => document.querySelector("#one h2")?.textContent.endsWith("www-elb00"));
  await anne.click("text=Recent requests");
  await anne.waitForSelector("#traces .list button");
  await anne.waitForSelector("#waterfall .span");
  const bars = await anne.$$eval("#waterfall .bar i", (bars) => bars.map((bar) => bar.getBoundingClientRect().width));
  assert.ok(bars.length > 2 && bars.every((width) => width >= 2), `${bars}`);
  await picture(anne, "trace");
  await anne.keyboard.press("Escape");
  assert.ok(await anne.isHidden("#traces"));
  const edge = await anne.evaluate(() => {
    const { graph } = window.corsair;
    const busy = [...graph.edges.values()].filter((edge) => edge.rate > 1).sort((a, b) => b.rate - a.rate)[0];
    graph.setChosen({ from: busy.from, to: busy.to });
    return busy;
  });
  assert.ok(edge.p50 > 0);
  await anne.waitForSelector("#one canvas.histogram");
  console.log("an actor's state, a request's waterfall and an edge's histogram are there");

  // It is killed, and its edges turn.
  await runUntil(anne, 3);
  const before = await pixels(anne, "back");
  await doIt(anne, "kill", "login00");
  await doIt(anne, "slow", "homepage", 800);
  await anne.selectOption("#speed", "0.1");
  await anne.click("#play");
  await anne.waitForFunction(() => window.corsair.now() > 3.05);
  await anne.click("#play");
  await standsStill(anne);
  await anne.waitForTimeout(400);
  const after = await pixels(anne, "back");
  assert.ok(after.red > before.red + 100, `${before.red} red pixels, then ${after.red}`);
  await runUntil(anne, 4);
  await picture(anne, "killed");
  await doIt(anne, "revive", "login00");
  await doIt(anne, "load", "", 250);
  await runUntil(anne, 6);
  assert.ok((await pixels(anne, "latency")).drawn > 300);
  console.log("an instance is killed, and its edges turn");

  // The session is saved, and its replay has the same digest, for any number of workers.
  const [download] = await Promise.all([anne.waitForEvent("download"), anne.click("#save")]);
  const file = join(directory, "session.json");
  await download.saveAs(file);
  const saved = JSON.parse(readFileSync(file, "utf8"));
  assert.equal(saved.commands.length, 4);
  assert.equal(saved.digest, await digest(anne));
  await runUntil(anne, 7);
  const digests = ["1", "2", "3"].map((cpus) => {
    const { stdout, stderr, status } = spawnSync(resolve(program), ["--replay", file, "-cpus", cpus, "--format", "json"], { cwd: directory });
    assert.equal(status, 0, String(stderr));
    return JSON.parse(stdout).digest;
  });
  assert.equal(new Set(digests).size, 1);
  console.log("its replay has the digest of the session");

  // Loaded again in mid-run, and a second browser.
  await anne.selectOption("#speed", "1");
  await anne.click("#play");
  const mary = await visit(browser, url, { colorScheme: "dark" });
  assert.ok(await mary.isVisible("#take"));
  assert.ok(await mary.isDisabled("#play"));
  await mary.waitForFunction(() => window.corsair.now() > 7.2);
  await anne.reload();
  await anne.waitForFunction(() => window.corsair?.graph.scene && window.corsair.pictures() > 0);
  await mary.waitForFunction(() => !document.getElementById("play").disabled);
  await unfold(anne);
  await anne.waitForFunction(() => window.corsair.now() > 7.3);
  assert.equal(await anne.$$eval("#commands li", (items) => items.length), 4);
  await anne.click("#take");
  await anne.waitForFunction(() => !document.getElementById("play").disabled);
  await mary.waitForFunction(() => document.getElementById("play").disabled);
  await anne.click("#play");
  await standsStill(anne);
  console.log("a page is loaded again, two watch, and one holds the controls");

  // Light and dark; and back in time.
  const back = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.notEqual(await back(anne), await back(mary));
  const later = await time(anne);
  await anne.evaluate(() => window.corsair.past.look(6));
  await anne.click("#from-here");
  await anne.waitForFunction((later) => window.corsair.now() < later, later);
  await anne.waitForFunction((digest) => document.getElementById("digest").textContent === `digest ${digest}`, saved.digest);
  console.log("one goes back in time, to the same bits");

  // A checkpoint is saved, gone back to, and dropped.
  await anne.click("#checkpoint");
  await anne.waitForSelector("#checkpoints li");
  await doIt(anne, "kill", "homepage");
  await runUntil(anne, 6.5);
  assert.notEqual(await digest(anne), saved.digest);
  await anne.click("#checkpoints button");
  await anne.waitForFunction((digest) => document.getElementById("digest").textContent === `digest ${digest}`, saved.digest);
  assert.equal(await anne.$$eval("#commands li", (items) => items.length), 4);
  await anne.click("#checkpoints button[aria-label]");
  await anne.waitForFunction(() => document.querySelectorAll("#checkpoints li").length === 0);
  console.log("one goes back to a checkpoint");

  // A service gets more instances than the definition has, and the replay has capacity for them.
  const nodes = () => anne.evaluate(() => window.corsair.graph.nodes.length);
  const defined = await nodes();
  await doIt(anne, "scale", "login", 25);
  await anne.waitForFunction((defined) => window.corsair.graph.nodes.length > defined, defined);
  await runUntil(anne, 7);
  const [grown] = await Promise.all([anne.waitForEvent("download"), anne.click("#save")]);
  await grown.saveAs(file);
  assert.equal(JSON.parse(readFileSync(file, "utf8")).room.login, 25);
  const replayed = ["1", "3"].map((cpus) => {
    const { stdout, stderr, status } = spawnSync(resolve(program), ["--replay", file, "-cpus", cpus, "--format", "json"], { cwd: directory });
    assert.equal(status, 0, String(stderr));
    return JSON.parse(stdout).digest;
  });
  assert.equal(replayed[0], replayed[1]);
  console.log("a service is scaled beyond its definition");

  // The keyboard alone.
  await anne.reload();
  await anne.waitForFunction(() => window.corsair?.graph.scene && window.corsair.pictures() > 0);
  await unfold(anne);
  await mary.context().close();
  await anne.waitForFunction(() => !document.getElementById("play").disabled);
  const tabTo = async (id) => {
    for (let turn = 0; turn < 100; turn += 1) {
      if (await anne.evaluate((id) => document.activeElement?.id === id, id)) return;
      await anne.keyboard.press("Tab");
    }
    assert.fail(`there is no way to ${id} by the keyboard`);
  };
  await tabTo("step-ms");
  const begun = await time(anne);
  await anne.keyboard.press("Enter");
  await anne.waitForFunction((begun) => window.corsair.now() > begun, begun);
  await tabTo("front");
  await anne.keyboard.press("ArrowRight");
  await anne.keyboard.press("ArrowRight");
  await anne.waitForSelector("#one pre");
  await tabTo("do-what");
  await anne.keyboard.type("pause");
  await tabTo("do-who");
  await anne.keyboard.press("Control+A");
  await anne.keyboard.type("login01");
  await anne.keyboard.press("Enter");
  await anne.waitForFunction(() => [...document.querySelectorAll("#commands li")].at(-1)?.textContent.includes("pause login01"));
  console.log("the keyboard is enough");

  // 200 %: half as many pixels of CSS; nothing is cut off sideways.
  await anne.setViewportSize({ width: 700, height: 450 });
  const wide = await anne.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `${wide} pixels too wide`);
  for (const id of ["play", "do-who", "rate"]) {
    await anne.locator(`#${id}`).scrollIntoViewIfNeeded();
    assert.ok(await anne.isVisible(`#${id}`));
  }
  await anne.context().close();
  const said = await run.end();
  assert.ok(said.some((line) => line.includes("digest")), said.join("\n"));
  console.log("it is usable at 200 %, and ends with its summary");

  // Another page, or one that does not know the token, gets nothing.
  const [, lamp] = await held("-a", "lamp", "-d", "2", "--ui");
  const { origin } = new URL(lamp);
  assert.equal((await fetch(`${origin}/`)).status, 404);
  const policy = (await fetch(lamp)).headers.get("content-security-policy");
  assert.ok(policy.includes("default-src 'none'") && !policy.includes("unsafe"), policy);
  console.log("without the token there is nothing");

  // 2,000 nodes and 10,000 edges with traffic, each by itself: how long pictures take. A browser without a
  // graphics card draws on the processor that the run has, too; that is the worst case.
  mkdirSync(join(directory, "json_arch"));
  const services = [{ name: "www", package: "denominator", count: 0, regions: 0, dependencies: [] }];
  for (let pair = 0; pair < 100; pair += 1) {
    services[0].dependencies.push(`a${pair}`);
    services.push({ name: `a${pair}`, package: "karyon", count: 10, regions: 1, dependencies: [0, 1, 2].map((step) => `b${(pair + step) % 100}`) });
    services.push({ name: `b${pair}`, package: "store", count: 10, regions: 1, dependencies: [] });
  }
  const mesh = { arch: "mesh", load: { www: { rate: 20000 } }, services };
  writeFileSync(join(directory, "json_arch", "mesh_arch.json"), JSON.stringify(mesh));
  const [, large] = await held("-a", "mesh", "-d", "20", "--ui");
  const busy = await visit(browser, large);
  await unfold(busy);
  // Edges with traffic are those of the newest frame, which may be of a short time.
  let seenEdges = { nodes: 0, edges: 0, busy: 0 };
  for (let until = 1.5; until < 12 && seenEdges.busy <= 5000; until += 0.5) {
    await runUntil(busy, until);
    seenEdges = await busy.evaluate(() => {
      const { graph } = window.corsair;
      return { nodes: graph.nodes.length, edges: graph.edges.count, busy: graph.edges.busyCount };
    });
  }
  assert.ok(seenEdges.nodes >= 2000 && seenEdges.edges >= 10000 && seenEdges.busy > 5000, JSON.stringify(seenEdges));
  assert.equal(await busy.$$eval("#one tr", (rows) => rows.length), 26, "the table of 201 services is bounded");
  await busy.selectOption("#speed", "0.1");
  await busy.click("#play");
  const times = await frameTimes(busy);
  console.log(`${seenEdges.nodes} nodes and ${seenEdges.edges} edges, ${seenEdges.busy} of them busy: ${times}`);
  await busy.mouse.move(500, 400);
  const zoomed = frameTimes(busy);
  for (let turn = 0; turn < 20; turn += 1) await busy.mouse.wheel(0, turn < 10 ? -120 : 120);
  console.log(`while one zooms: ${await zoomed}`);
  await busy.context().close();

  // 6,000 instances: folded, and pictures keep coming.
  const [, many] = await held("-a", "netflixoss", "-p", "4000", "-w", "3", "-d", "5", "--ui");
  const crowd = await visit(browser, many);
  const counts = await crowd.evaluate(() => {
    const { scene, folded } = window.corsair.graph;
    return { nodes: scene.nodes.length, folded, groups: scene.folded.length };
  });
  assert.ok(counts.nodes >= 6000 && counts.folded && counts.groups < 500, JSON.stringify(counts));
  await runUntil(crowd, (await crowd.evaluate(() => window.corsair.graph.scene.load[0])) + 0.5);
  await crowd.selectOption("#speed", "0.01");
  await crowd.click("#play");
  const rate = async (page) => {
    const first = await page.evaluate(() => window.corsair.pictures());
    await page.waitForTimeout(2000);
    return ((await page.evaluate(() => window.corsair.pictures())) - first) / 2;
  };
  console.log(`${counts.nodes} instances folded into ${counts.groups}: ${(await rate(crowd)).toFixed(0)} pictures a second`);
  await crowd.click("#fold");
  await crowd.waitForFunction(() => !window.corsair.graph.folded && window.corsair.graph.nodes.length >= 6000);
  console.log(`and each by itself: ${(await rate(crowd)).toFixed(0)} pictures a second`);
  await crowd.context().close();

  // A million pirates: counted, a sample of them shown, any found by its name.
  const [, sea] = await held("-a", "fsm", "-p", "1000000", "-d", "3", "--ui");
  const pirates = await visit(browser, sea);
  await pirates.click("#guide button:last-child");
  await runUntil(pirates, 1.2);
  await pirates.fill("#find", "fsm.atlantic.bermuda.blackbeard777777.pirate");
  await pirates.press("#find", "Enter");
  await pirates.waitForSelector("#one pre");
  assert.ok((await pirates.textContent("#one")).includes("blackbeard777777"));
  await pirates.waitForTimeout(700);
  assert.ok((await pixels(pirates, "both")).drawn > 500);
  assert.ok((await pixels(pirates, "degree")).drawn > 500);
  await picture(pirates, "pirates");
  await pirates.evaluate(() => {
    const { graph } = window.corsair;
    const [edge] = graph.edges.values();
    graph.setChosen({ from: edge.from, to: edge.to });
  });
  await pirates.waitForFunction(() => /messages\/s, latency/.test(document.getElementById("one").textContent));
  console.log("a million pirates are counted, one is found, and a line between two is described");

  assert.deepEqual(complaints, []);
} finally {
  await browser.close();
  for (const run of runs) await run.end();
  rmSync(directory, { recursive: true, force: true });
}
