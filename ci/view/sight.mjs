// The live view at first sight: names on the graph (from the scene, six architectures at three sizes), rules of accessibility
// at three sizes in both schemes, what is folded and unfolded, commands by buttons, and forms that refuse what is wrong.
//
//   node sight.mjs PROGRAM CHROMIUM [--screenshots DIR]
//
// Needs playwright-core and axe-core, found through NODE_PATH.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { complaints, directory, Held, launch, runUntil, standsStill, violations, visit } from "./browser.mjs";

const [program, executablePath, flag, pictures] = process.argv.slice(2);
const screenshots = flag === "--screenshots" ? resolve(pictures) : null;
const SIZES = [[1440, 900], [1024, 768], [390, 844]].map(([width, height]) => ({ width, height }));
const runs = [];
const held = async (...args) => {
  const run = new Held(program, ...args);
  runs.push(run);
  return [run, await run.url];
};
const settled = (page) => page.evaluate(() => new Promise((done) => setTimeout(() => requestAnimationFrame(() => done(null)), 150)));

/** What is wrong with the names on the graph. */
const wrongLabels = (page, all) => page.evaluate((all) => {
  const { graph } = window.corsair;
  const { labels, front, nodes, scene } = graph;
  const { left, top } = front.getBoundingClientRect();
  const wrong = [];
  for (const [place, a] of labels.entries()) {
    if (a.x < 0 || a.y < 0 || a.x + a.width > front.clientWidth || a.y + a.height > front.clientHeight) wrong.push(`${a.name} is cut off`);
    for (const b of labels.slice(place + 1)) {
      if (a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height) wrong.push(`${a.name} over ${b.name}`);
    }
    for (const [x, y] of [[a.x, a.y], [a.x + a.width, a.y + a.height], [a.x + a.width / 2, a.y + a.height / 2]]) {
      const above = document.elementFromPoint(left + x, top + y);
      if (above && above !== front && top + y < innerHeight) wrong.push(`${a.name} is under ${above.id || above.tagName}`);
    }
    const isOf = a.isTitle ? scene.areas.some((area) => area.name === a.name) : nodes[a.place]?.name === a.name;
    if (!isOf) wrong.push(`${a.name} names nothing`);
  }
  const named = new Set(labels.map((label) => label.place));
  if (all) nodes.forEach((node, place) => named.has(place) || wrong.push(`${node.name}@${node.region}.${node.zone} has no name`));
  if (labels.filter((label) => !label.isTitle).length === 0) wrong.push("there are no names");
  // What is drawn: the areas, and the circles with their radius.
  const boxes = [
    ...scene.areas.map(({ at: [x, y, wide, high] }) => [...graph.toScreen(x, y), ...graph.toScreen(x + wide, y + high)]),
    ...nodes.map((node) => {
      const [[x, y], radius] = [graph.toScreen(node.x, node.y), graph.radius(node, graph.camera.scale)];
      return [x - radius, y - radius, x + radius, y + radius];
    }),
  ];
  const span = (from, to) => Math.max(...boxes.map((box) => box[to])) - Math.min(...boxes.map((box) => box[from]));
  const share = Math.max(span(0, 2) / front.clientWidth, span(1, 3) / front.clientHeight);
  if (share < 0.7) wrong.push(`the drawing uses ${share.toFixed(2)} of the window`);
  return wrong;
}, all);

/** What is drawn of a chart with a legend: no part of the legend is outside of it. */
const cutLegends = (page) => page.evaluate(() => [...document.querySelectorAll("#charts figure")].flatMap((figure) => {
  const box = figure.getBoundingClientRect();
  return [...figure.querySelectorAll("figcaption span")].filter((one) => {
    const { left, right } = one.getBoundingClientRect();
    return left < box.left - 1 || right > box.right + 1 || one.scrollWidth > one.clientWidth + 1;
  }).map((one) => one.textContent);
}));
const drag = async (page, id, from, to) => {
  const { x, y, width, height } = await page.locator(id).boundingBox();
  await page.mouse.move(x + from * width, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + to * width, y + height / 2, { steps: 4 });
  await page.mouse.up();
};
const shown = (page) => page.evaluate(() => ({ ...window.corsair.shown, now: window.corsair.now() }));

/** The bar of time, the charts and the pane of traces of a run that is held at 3 s with an instance down. */
async function timeAndTraces(page) {
  await page.locator("#bar").scrollIntoViewIfNeeded();
  const health = () => page.evaluate(() => {
    const { graph } = window.corsair;
    const place = graph.nodes.findIndex((node) => node.name === "homepage" && node.zone === "zoneA");
    return graph.health[2 * place];
  });
  assert.equal(await health(), 7);
  // Looking back, by pointer and by keys, shows the state of that time; nothing is discarded.
  await drag(page, "#bar", 0.2, 0.08);
  await page.waitForFunction(() => window.corsair.shown.at !== null);
  await page.waitForFunction(() => /Looking back at/.test(document.getElementById("past").textContent));
  for (const end = Date.now() + 5000; (await health()) !== 8; ) assert.ok(Date.now() < end, "the state is not that of the time");
  assert.match(await page.getAttribute("#bar", "aria-valuetext"), /Looking back/);
  const { at } = await shown(page);
  await page.focus("#bar");
  await page.keyboard.press("ArrowRight");
  assert.ok((await shown(page)).at > at);
  await page.keyboard.press("Escape");
  for (const end = Date.now() + 5000; (await health()) !== 7; ) assert.ok(Date.now() < end, "the state is not that of now");
  assert.equal((await shown(page)).at, null);
  // A drag on a chart zooms all of them.
  await drag(page, "#rate", 0.3, 0.7);
  const { span, now } = await shown(page);
  assert.ok(span[0] > 0 && span[1] < now && span[1] - span[0] < 0.6 * now, String(span));
  for (const size of SIZES) {
    await page.setViewportSize(size);
    await page.hover("#latency");
    await settled(page);
    assert.deepEqual(await cutLegends(page), [], `legends at ${size.width}`);
  }
  await page.setViewportSize(SIZES[0]);
  await page.click("#whole-run");
  assert.equal((await shown(page)).span, null);
  // Traces: as wide as the page, an axis of time, durations in rows, details, filters.
  await page.click("#open-traces");
  await page.waitForSelector("#waterfall .span");
  assert.equal((await page.locator("#traces").boundingBox()).width, SIZES[0].width);
  const rows = await page.$$eval("#waterfall summary", (all) => all.map((one) => one.lastElementChild.textContent));
  assert.ok(rows.length > 2 && rows.every((text) => /(ms|µs|s)/.test(text)), rows.join());
  assert.equal(await page.$$eval("#waterfall .axis .bar span", (all) => all.length), 5);
  await page.click("#waterfall summary");
  assert.match(await page.textContent("#waterfall details[open] dl"), /duration.*outcome/);
  const listed = () => page.$$eval("#traces .list button", (all) => all.length);
  assert.ok((await listed()) > 0);
  await page.focus("#waterfall summary");
  await page.keyboard.press("Space");
  assert.equal(await page.$$eval("#waterfall details[open]", (all) => all.length), 0);
  assert.equal(await page.textContent("#play"), "Play", "the space bar is for the part of the request, not for the run");
  await page.fill("#traces input", "nobody");
  assert.equal(await listed(), 0);
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Escape");
  assert.ok(await page.isHidden("#traces"));
  console.log("one looks back, zooms and reads traces, by pointer and by keys");
}

/** Saved runs and tables: played, looked back at, with marks; a table that was cut is refused. */
async function savedRuns() {
  const saved = join(directory, "saved");
  const [flows, table] = [["-j", "-c"], ["--timeline", join(saved, "run.csv")]];
  mkdirSync(saved);
  assert.equal(spawnSync(resolve(program), ["-a", "netflixoss", "-d", "4", "--out", saved, ...flows, ...table], { cwd: directory }).status, 0);
  for (const path of [saved, join(saved, "run.csv")]) {
    const [run, url] = await held("view", path);
    const page = await visit(browser, url, { viewport: SIZES[0] });
    const isTable = path !== saved;
    for (const id of ["#clock", "#whole", "#bar", "#rate"]) await page.waitForSelector(id);
    for (const id of ["#step-actor", "#times", "#act", "#from-here"]) assert.ok(await page.isHidden(id), id);
    assert.equal(await page.isVisible("#open-traces"), !isTable);
    if (!isTable) assert.match(JSON.stringify(await page.evaluate(() => window.corsair.graph.scene.marks)), /kill homepage/);
    await drag(page, "#bar", 0.5, 0.3);
    await page.waitForFunction(() => /Looking back/.test(document.getElementById("past").textContent));
    await page.waitForFunction(() => window.corsair.graph.past && window.corsair.graph.rates.some((rate) => rate > 0));
    const { at } = await shown(page);
    await page.click("#play");
    await page.waitForFunction((at) => window.corsair.now() > at + 0.2 && window.corsair.now() < at + 2, at);
    await page.click("#play");
    await standsStill(page);
    assert.deepEqual(await violations(page), []);
    await page.context().close();
    await run.end();
  }
  const text = readFileSync(join(saved, "run.csv"), "utf8");
  writeFileSync(join(directory, "cut.csv"), text.slice(0, text.length - 7));
  const cut = spawnSync(resolve(program), ["view", join(directory, "cut.csv")], { cwd: directory });
  assert.equal(cut.status, 2);
  assert.match(String(cut.stderr), /cut.csv:\d+: this line does not belong to a table of --timeline/);
  console.log("saved runs and tables are played and looked back at; a cut one is refused");
}

/** The demo: the page explains each stage, and what it shows is what the stage says. */
async function demo() {
  const [run, url] = await held("demo");
  const page = await visit(browser, url, { viewport: { width: 1280, height: 800 }, colorScheme: "light" });
  const stage = () => page.textContent("#stage-of");
  await page.waitForFunction(() => /^1 of 5 · Calm/.test(document.getElementById("stage-of").textContent));
  await page.click("#guide button:last-child");
  const failing = () => page.evaluate(() => Math.max(...[...window.corsair.graph.edges.values()].map((edge) => edge.errors)));
  for (const [seconds, name, isFailing] of [[24, "Calm", false], [40, "Saturation", true], [69, "Relief", false], [80, "Failure", true]]) {
    await runUntil(page, seconds);
    await page.waitForFunction((name) => document.getElementById("stage-of").textContent.includes(` ${name}:`), name);
    await settled(page);
    assert.equal((await failing()) > 0.05, isFailing, name);
  }
  const down = () => page.evaluate(() => {
    const { nodes, health } = window.corsair.graph;
    return nodes.filter((node, place) => node.zone === "zoneA" && health[2 * place] === 0).length;
  });
  assert.ok((await down()) >= 2);
  if (screenshots) await page.screenshot({ path: join(screenshots, "demo.png") });
  assert.deepEqual(await violations(page), []);
  await runUntil(page, 115);
  assert.equal(await down(), 0);
  assert.match(await stage(), /^5 of 5 · Recovery/);
  await page.context().close();
  await run.end();
  console.log("the demo saturates, fails and recovers, and the page explains each stage");
}

const browser = await launch(executablePath);
try {
  // Names, at first sight.
  const architectures = [
    ["-a", "netflixoss"], ["-a", "lamp"], ["-a", "migration", "-s", "9", "-w", "2"], ["-a", "netflix"], ["-a", "storage"],
    ["-a", "netflixoss", "-p", "1000", "-w", "3"],
  ];
  for (const args of architectures) {
    const [run, url] = await held(...args, "-d", "5", "--ui");
    const page = await visit(browser, url, { viewport: SIZES[0] });
    for (const [number, size] of SIZES.entries()) {
      await page.setViewportSize(size);
      await settled(page);
      assert.ok(await page.evaluate(() => window.corsair.graph.folded));
      const isAll = number === 0;
      assert.deepEqual(await wrongLabels(page, isAll), [], `${args.join(" ")} at ${size.width}x${size.height}`);
    }
    await page.context().close();
    await run.end();
  }
  console.log(`the names of ${architectures.length} architectures are whole at ${SIZES.length} sizes`);

  const [, url] = await held("-a", "netflixoss", "-d", "8", "--ui");
  const page = await visit(browser, url, { viewport: SIZES[0], colorScheme: "light" });
  const header = await page.evaluate(() => document.querySelector("header").clientHeight);
  assert.ok(header < 50, `the header is ${header} pixels high at 1440`);
  assert.equal(await page.textContent("#digest"), "");

  // A guide of five steps, which another run does not show again.
  assert.match(await page.textContent("#guide"), /1 of 5/);
  for (let step = 0; step < 4; step += 1) await page.click("#guide button");
  assert.match(await page.textContent("#guide"), /5 of 5/);
  await page.click("#guide button");
  assert.ok(await page.isHidden("#guide"));
  const [, next] = await held("-a", "lamp", "-d", "2", "--ui");
  const again = await page.context().newPage();
  await again.goto(next);
  await again.waitForFunction(() => window.corsair?.pictures() > 0);
  assert.ok(await again.isHidden("#guide"));
  await again.close();
  console.log("the guide is shown once");

  // Forms refuse what is not a number, in a sentence, and nothing happens.
  const problem = () => page.textContent("#problem");
  const commands = () => page.$$eval("#commands li", (items) => items.map((item) => item.textContent));
  const refuses = async (id, text, button, sentence) => {
    await page.fill(id, text);
    await page.click(button);
    await page.waitForFunction((part) => document.getElementById("problem").textContent.includes(part), sentence);
    assert.ok(!/serde|invalid type|expected u32|null/.test(await problem()), await problem());
    assert.deepEqual(await commands(), []);
  };
  // Charts of nothing are not shown; those that there are follow the pointer together.
  const charts = () => page.$$eval("#charts canvas", (all) => all.filter((one) => !one.hidden).map((one) => one.id));
  assert.deepEqual(await charts(), []);
  await runUntil(page, 1);
  await page.waitForFunction(() => !document.getElementById("latency").hidden);
  assert.deepEqual(await charts(), ["rate", "latency"]);
  await settled(page);
  const curves = () => page.evaluate(() => document.getElementById("latency").toDataURL());
  const plain = await curves();
  await page.hover("#rate");
  assert.notEqual(await curves(), plain);
  assert.match(await page.textContent("#charts figure:nth-child(2) figcaption"), /p50 [\d.]+ (ms|µs).*at [\d.]+ (ms|s)/);
  await page.mouse.move(5, 5);

  // All services are in a table, which keeps the focus while the run continues; a row selects its service.
  const rows = () => page.$$eval("#one tr:not(:first-child)", (all) => all.map((row) => row.textContent));
  await page.waitForFunction(() => /homepage24/.test(document.getElementById("one").textContent));
  assert.equal((await rows()).length, 8);
  await page.selectOption("#speed", "0.1");
  await page.click("#play");
  await page.focus("#one tr:nth-child(3) button");
  await page.waitForFunction(() => window.corsair.now() > 1.1);
  assert.ok(await page.evaluate(() => document.activeElement.matches("#one tr:nth-child(3) button")));
  await page.evaluate(() => document.getElementById("play").click());
  await standsStill(page);
  const [chosen] = await page.evaluate(() => document.activeElement.textContent.split("@"));
  await page.keyboard.press("Enter");
  assert.ok((await page.textContent("#one h2")).startsWith(chosen), chosen);
  await page.focus("#front");
  await page.keyboard.press("Escape");
  await page.waitForSelector("#one table");

  await page.selectOption("#do-what", "kill");
  await refuses("#do-who", "", "#do button", "the target is empty");
  await page.fill("#do-who", "login00");
  await refuses("#do-at", "xx", "#do button", "the time 'xx' is not a number");
  await page.fill("#do-at", "");
  await page.selectOption("#do-what", "slow");
  for (const [text, sentence] of [["abc", "'abc' is not a number"], ["50.5", "not a whole number"], ["0", "too low"], ["1e9", "too high"], ["", "is empty"]]) {
    await refuses("#do-number", text, "#do button", sentence);
  }
  const before = await page.evaluate(() => window.corsair.now());
  await refuses("#until-value", "soon", "#until button", "'soon' is not a number");
  assert.equal(await page.evaluate(() => window.corsair.now()), before);

  // What is offered is accepted.
  const offered = async (what) => {
    await page.selectOption("#do-what", what);
    return page.$$eval("#names option", (options) => options.map((option) => option.value));
  };
  const targets = await offered("kill");
  assert.ok(targets.includes("us-east-1") && targets.includes("us-east-1.zoneA") && targets.includes("login") && targets.includes("login00"));
  assert.ok(!targets.some((name) => name.includes("*") || name === "all"), targets.join());
  const wrong = await page.evaluate(async (targets) => {
    const wrong = [];
    for (const who of targets) {
      await window.corsair.look({ preview: { do: "kill", who } }).catch((error) => wrong.push(`${who}: ${error.message}`));
    }
    return wrong;
  }, targets);
  assert.deepEqual(wrong, []);
  assert.deepEqual(await offered("load"), ["www", "www00"]);
  console.log("forms offer what is accepted and refuse the rest in a sentence");

  // A service of a zone is selected, and an instance of it killed by buttons: a part is down.
  const select = async (name, zone) => {
    const [x, y] = await page.evaluate(([name, zone]) => {
      const { graph } = window.corsair;
      const node = graph.nodes.find((node) => node.name === name && (!zone || node.zone === zone));
      const { left, top } = graph.front.getBoundingClientRect();
      const [x, y] = graph.toScreen(node.x, node.y);
      return [left + x, top + y];
    }, [name, zone]);
    await page.mouse.move(x, y);
    return [x, y];
  };
  const at = await select("homepage", "zoneA");
  await page.waitForSelector("#card:not([hidden])");
  assert.match(await page.textContent("#card"), /homepage.*8 of 8 instances serve/);
  await page.mouse.click(...at);
  await page.click('#picked button[data-do="kill"]');
  await page.waitForSelector("#picked form:not([hidden])");
  assert.match(await page.textContent("#picked form"), /Kill 8 actors: homepage\d+/);
  await page.click("#picked form button:last-child");
  assert.deepEqual(await commands(), []);
  await page.fill("#do-who", await page.textContent("#one .list button"));
  await page.selectOption("#do-what", "kill");
  await page.click("#do button");
  await runUntil(page, 2);
  await page.waitForFunction(() => {
    const { graph } = window.corsair;
    const place = graph.nodes.findIndex((node) => node.name === "homepage" && node.zone === "zoneA");
    return graph.health[2 * place] === 7 && graph.health[2 * place + 1] === 8;
  });
  await page.click('#picked button[data-do="slow"]');
  await page.waitForSelector("#picked form:not([hidden])");
  await page.fill("#picked form input", "300");
  await page.click("#picked form button");
  await page.waitForFunction(() => document.querySelectorAll("#commands li").length === 2);
  assert.match((await commands())[1], /slow homepage@us-east-1.zoneA to 300 %/);
  await runUntil(page, 3);
  if (screenshots) await page.screenshot({ path: join(screenshots, "sight.png") });
  console.log("a selection has buttons with a preview; one of eight down is 7/8");

  // A zone is selected, a double click unfolds, keys bring into view, a pinch zooms, a resize keeps what was moved.
  const zone = await page.evaluate(() => {
    const { graph } = window.corsair;
    const { left, top } = graph.front.getBoundingClientRect();
    const label = graph.labels.find((label) => label.name === "zoneB");
    return [left + label.x + 5, top + label.y + 5];
  });
  await page.mouse.click(...zone);
  assert.match(await page.textContent("#one"), /us-east-1.zoneB/);
  await page.click('#picked button[data-do="partition"]');
  await page.waitForFunction(() => /Partition \d+ actors/.test(document.querySelector("#picked form").textContent));
  await page.mouse.dblclick(...(await select("homepage", "zoneA")));
  await page.waitForFunction(() => !window.corsair.graph.folded);
  assert.ok(await page.evaluate(() => window.corsair.graph.isMoved));
  const camera = () => page.evaluate(() => ({ ...window.corsair.graph.camera }));
  const kept = await camera();
  await page.setViewportSize(SIZES[1]);
  await settled(page);
  assert.deepEqual(await camera(), kept);
  await page.setViewportSize(SIZES[0]);
  await page.focus("#front");
  for (let turn = 0; turn < 12; turn += 1) {
    await page.keyboard.press(turn % 3 === 2 ? "ArrowDown" : "ArrowRight");
    const inView = await page.evaluate(() => {
      const { graph } = window.corsair;
      const node = graph.nodes[graph.chosen.node];
      const [x, y] = graph.toScreen(node.x, node.y);
      return x >= 0 && y >= 0 && x <= graph.front.clientWidth && y <= graph.front.clientHeight;
    });
    assert.ok(inView);
  }
  await page.click("#fit");
  await page.waitForFunction(() => window.corsair.graph.folded && !window.corsair.graph.isMoved);
  const wide = (await camera()).scale;
  await page.evaluate(() => {
    const { front } = window.corsair.graph;
    front.setPointerCapture = () => {};
    const { left, top } = front.getBoundingClientRect();
    const send = (type, id, x, y) => front.dispatchEvent(new PointerEvent(type, { pointerId: id, clientX: left + x, clientY: top + y, bubbles: true }));
    send("pointerdown", 1, 300, 300);
    send("pointerdown", 2, 340, 300);
    send("pointermove", 2, 380, 300);
    send("pointerup", 1, 300, 300);
    send("pointerup", 2, 380, 300);
  });
  assert.ok(Math.abs((await camera()).scale / wide - 2) < 0.01, "a pinch to twice the distance shows all twice as large");
  await page.click("#fit");
  console.log("zones are selected, services unfold, keys, pinch and resize keep what matters in view");

  await timeAndTraces(page);

  // After the end the last state stays, with traffic and curves.
  await page.selectOption("#speed", "");
  await page.click("#play");
  await page.waitForFunction(() => /over/.test(document.getElementById("stopped").textContent), null, { timeout: 60000 });
  await settled(page);
  const last = await page.evaluate(() => {
    const { graph } = window.corsair;
    return { gone: graph.bits.filter((bits) => (bits & 32) !== 0).length, busy: [...graph.edges.values()].filter((edge) => edge.rate > 0).length };
  });
  assert.equal(last.gone, 0);
  assert.ok(last.busy > 5, JSON.stringify(last));

  // The rules of accessibility, at three sizes, in both schemes.
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const size of SIZES) {
      await page.setViewportSize(size);
      await settled(page);
      await page.mouse.click(...(await select("homepage", "zoneA")));
      assert.deepEqual(await violations(page), [], `${colorScheme} at ${size.width}x${size.height}`);
      if (screenshots) await page.screenshot({ path: join(screenshots, `${colorScheme}-${size.width}.png`) });
    }
  }
  console.log("no rule of accessibility is broken at three sizes in both schemes");

  // An address that others can reach is warned of, and the printed one works.
  const [open, shown] = await held("-a", "lamp", "-d", "1", "--ui", "0.0.0.0");
  assert.match(shown, /^http:\/\/127\.0\.0\.1:/);
  assert.equal((await fetch(shown)).status, 200);
  await open.end();
  // Files of a finished run have no digest and no commands.
  spawnSync(resolve(program), ["-a", "lamp", "-d", "1", "-j"], { cwd: directory });
  const [, files] = await held("view", directory);
  const still = await visit(browser, files, { viewport: SIZES[0] });
  assert.equal(await still.textContent("#digest"), "");
  assert.deepEqual(await wrongLabels(still, true), []);
  // Without states there is nothing to play, and the controls are absent.
  for (const id of ["#clock", "#whole", "#times", "#act", "#from-here"]) assert.ok(await still.isHidden(id), id);
  await still.context().close();
  console.log("a saved run has names too, no digest, and no controls without states");
  await savedRuns();
  await demo();

  assert.deepEqual(complaints, []);
} finally {
  await browser.close();
  for (const run of runs) await run.end();
  rmSync(directory, { recursive: true, force: true });
}
