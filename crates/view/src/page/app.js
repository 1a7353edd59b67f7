// The page: what the session says is shown, what the controls say is sent.

import { Actions, accepted, command, scopesOf, scopesOfPlace } from "./actions.js";
import { drawBar, drawBars, drawCurves, drawDensity, follow, seconds, short, shown } from "./charts.js";
import { Graph } from "./graph.js";
import { guide } from "./guide.js";
import { showCard } from "./hover.js";
import { readNumber, readTime } from "./numbers.js";
import * as panels from "./panels.js";
import { Past } from "./past.js";
import { BITS, Line } from "./socket.js";
import { Traces } from "./traces.js";

/**
 * @typedef {import("./socket.js").Scene} Scene
 * @typedef {import("./socket.js").Status} Status
 * @typedef {import("./graph.js").Chosen} Chosen
 */

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
function $(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`there is no ${id}`);
  return found;
}
const input = (/** @type {string} */ id) => /** @type {HTMLInputElement} */ ($(id));
const select = (/** @type {string} */ id) => /** @type {HTMLSelectElement} */ ($(id));
const canvas = (/** @type {string} */ id) => /** @type {HTMLCanvasElement} */ ($(id));

/** @type {Scene | null} */
let scene = null;
/** @type {Status | null} */
let status = null;
let hasControls = false;
/** Whether no scene has come yet. */
let isFirst = true;
let now = 0;
let epoch = 0;
/** Refreshes the panel while the run continues. @type {(() => Promise<void>) | null} */
let refresh = null;
/** The name of the chosen actor. */
let chosenName = "";

/** @param {unknown} error */
function complain(error) {
  const problem = $("problem");
  problem.textContent = error instanceof Error ? error.message : String(error);
  problem.hidden = false;
  clearTimeout(complain.timer);
  complain.timer = setTimeout(() => (problem.hidden = true), 8000);
}
/** @type {ReturnType<typeof setTimeout> | undefined} */
complain.timer = undefined;

/**
 * Runs what reads a form, and says what is wrong with it.
 * @param {() => void} read
 */
function trying(read) {
  try {
    read();
  } catch (error) {
    complain(error);
  }
}

/**
 * Does something and says what is wrong.
 * @param {object | string} what
 */
async function control(what) {
  try {
    await line.control(what);
    $("problem").hidden = true;
  } catch (error) {
    complain(error);
  }
}

/** @typedef {import("./actions.js").Scope} Scope */

const graph = new Graph(canvas("back"), canvas("front"), canvas("labels"), (chosen) => show(chosen),
  (isFolded) => setFolded(isFolded), (found, x, y) => showCard($("card"), graph, found, x, y));

const line = new Line({
  scene(next) {
    scene = next;
    $("title").textContent = `corsair · ${next.arch}`;
    document.title = `corsair · ${next.arch}`;
    const actors = next.total === next.nodes.length ? "" : `, ${next.nodes.length} of ${short(next.total)} shown`;
    $("front").title = `${short(next.total)} actors${actors}`;
    graph.setScene(next);
    setFolded(next.folded.length > 0 && (isFirst || graph.folded));
    if (isFirst) graph.fit();
    if (isFirst) guide($("guide"), next.kind);
    isFirst = false;
    show(null);
    input("find").value = "";
    $("fold").hidden = next.folded.length === 0;
    select("group").replaceChildren(...next.groups.map((name) => new Option(name)));
    select("do-what").replaceChildren(...next.actions.map((name) => new Option(name)));
    $("act").hidden = next.actions.length === 0;
    $("define").hidden = next.kind !== "services";
    $("save").hidden = next.kind === "graph";
    $("groups").replaceChildren(...next.groups.map((name) => new Option(name)));
    $("graph").classList.toggle("pirates", next.kind === "pirates");
    // A saved run has a clock if its states are known.
    const isSaved = next.kind === "graph";
    $("graph").classList.toggle("still", isSaved);
    for (const id of ["step-window", "step-ms", "step-actor", "times"]) $(id).hidden = isSaved;
    $("clock").hidden = $("now").hidden = isSaved && !next.load;
    $("open-traces").hidden = next.kind === "pirates" || (isSaved && !next.edges.length);
    traces.place.hidden = true;
    past.leave();
    shown.span = null;
    $("densities").hidden = next.kind !== "pirates";
    $("whole").classList.toggle("pirates", next.kind === "pirates");
    $("whole").hidden = isSaved && !next.load;
    showFields();
    void draw();
  },
  status(next) {
    if (next.epoch !== epoch) {
      epoch = next.epoch;
      graph.forget();
    }
    status = next;
    const play = $("play");
    play.textContent = next.is_playing ? "Pause" : "Play";
    play.setAttribute("aria-pressed", String(next.is_playing));
    $("stopped").textContent = next.is_playing ? (next.until ? `running until ${next.until}` : "") : next.stopped;
    $("digest").textContent = next.digest ? `digest ${next.digest}` : "";
    select("speed").value = next.speed === null ? "" : String(next.speed);
    $("commands").replaceChildren(...next.commands.map(([at, what]) => panels.element("li", `${seconds(at)}: ${what}`)));
    $("back-in-time").hidden = $("from-here").hidden = !next.can_go_back;
    showCheckpoints(next.checkpoints);
    showTime(next.now);
    enable();
    void draw();
    void refresh?.();
    tellStage();
  },
  frame(frame) {
    if (frame.epoch !== epoch) {
      epoch = frame.epoch;
      graph.forget();
    }
    graph.setFrame(frame);
    showTime(frame.now);
    $("pace").textContent = frame.playing ? `${short(frame.speed)} ×` : "";
  },
  controls(has, watchers) {
    hasControls = has;
    $("line").textContent = has ? `connected, ${watchers} watching` : `watching (${watchers}); another page has control`;
    $("take").hidden = has;
    enable();
  },
  line(open) {
    $("line").classList.toggle("lost", !open);
    if (!open) {
      $("line").textContent = "cannot reach the session; reload the page when corsair runs again";
      hasControls = false;
      enable();
    }
  },
});

/** @param {number} time */
function showTime(time) {
  now = time;
  $("now").textContent = `${time.toFixed(6)} s`;
}

/** Enables the buttons of the page that has control. */
function enable() {
  const moves = hasControls && (!(status?.is_over ?? true) || scene?.kind === "graph");
  for (const id of ["play", "step-window", "step-ms", "step-s", "speed"]) input(id).disabled = !moves;
  input("step-actor").disabled = !moves || chosenName === "";
  actions.enable(moves);
  for (const form of ["until", "do"]) {
    for (const field of $(form).querySelectorAll("button")) field.disabled = !moves;
  }
  input("from-here").disabled = !hasControls;
  input("checkpoint").disabled = !moves;
  for (const button of $("checkpoints").querySelectorAll("button")) button.disabled = !hasControls;
}

/** The checkpoints on the page, which are rendered again only when they change. */
let shownCheckpoints = "";

/** @param {Status["checkpoints"]} checkpoints */
function showCheckpoints(checkpoints) {
  const text = JSON.stringify(checkpoints);
  if (text === shownCheckpoints) return;
  shownCheckpoints = text;
  $("checkpoints").replaceChildren(...checkpoints.map(({ number, at, digest, commands, bytes }) => {
    const size = bytes > 0 ? `, ${short(bytes)}B` : "";
    const back = panels.link(`Return to ${seconds(at)}`, () => control({ back: number }));
    back.title = `checkpoint ${number}, ${commands} commands, digest ${digest}${size}`;
    const drop = panels.link("✕", () => control({ forget: number }));
    drop.setAttribute("aria-label", `delete checkpoint ${number}`);
    return panels.element("li", "", back, ` ${commands} commands${size} `, drop);
  }));
}

/** @param {boolean} folded */
function setFolded(folded) {
  $("fold").setAttribute("aria-pressed", String(folded || graph.isAuto));
  if (folded !== graph.folded) graph.setFolded(folded);
  line.setLevel(folded ? "folded" : "each");
  void past.refresh();
}

const actions = new Actions($("picked"), { ask: (what) => line.ask(what), control, complain }, BITS);

/** The name of a node in the session. @param {number} place */
function nameOf(place) {
  const node = graph.nodes[place];
  if (!node) return "";
  return graph.folded ? `${node.name}@${node.region}.${node.zone}` : node.name;
}

/**
 * Shows a node in the panel, and refreshes it while the run continues.
 * @param {() => Promise<Node>} make
 */
function panel(make) {
  let isBusy = false;
  const mine = async () => {
    if (isBusy) return;
    isBusy = true;
    try {
      const node = await make();
      if (refresh === mine) $("one").replaceChildren(node);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      if (refresh === mine) $("one").replaceChildren(panels.element("p", text));
    }
    isBusy = false;
  };
  refresh = mine;
  void mine();
}

const look = (/** @type {object} */ question) => line.ask({ look: question });

/** @param {string} name */
function showActor(name) {
  chosenName = name;
  input("do-who").value = name;
  enable();
  panel(async () => panels.actor(await look({ actor: name }), { choose, requests: (name) => openTraces([name]), trace: () => openTraces([name]) }));
}

/** @param {Chosen | null} chosen */
function show(chosen) {
  chosenName = "";
  /** @type {Scope[]} */
  let scopes = [];
  if (!chosen) {
    refresh = null;
    const hint = panels.element("p", "Select an actor or an edge in the graph.");
    hint.className = "hint";
    $("one").replaceChildren(hint);
  } else if ("area" in chosen) {
    scopes = showArea(chosen.area);
  } else if ("from" in chosen) {
    scopes = [...scopesOf(graph, chosen.to), ...scopesOf(graph, chosen.from)];
    scopes = scopes.filter(({ who }, place) => scopes.findIndex((other) => other.who === who) === place);
    const [from, to] = [nameOf(chosen.from), nameOf(chosen.to)];
    panel(async () => panels.edge(await look({ from, to })));
  } else if (graph.folded) {
    scopes = scopesOf(graph, chosen.node);
    showFolded(chosen.node);
  } else {
    scopes = scopesOf(graph, chosen.node);
    showActor(nameOf(chosen.node));
  }
  actions.show(scene, scopes);
  enable();
}

/**
 * A region or zone.
 * @param {number} number
 * @returns {Scope[]}
 */
function showArea(number) {
  const area = scene?.areas[number];
  if (!area || !scene) return [];
  const isIn = (/** @type {import("./socket.js").SceneNode} */ { x, y, region }) =>
    region !== "*" && x >= area.at[0] && x <= area.at[0] + area.at[2] && y >= area.at[1] && y <= area.at[1] + area.at[3];
  const inside = scene.nodes.filter(isIn);
  const region = inside.find((node) => node.region !== "*")?.region ?? "*";
  const services = new Set(inside.map((node) => node.service));
  refresh = null;
  $("one").replaceChildren(panels.element("h2", area.is_zone ? `${region}.${area.name}` : area.name),
    panels.element("p", `${services.size} services, ${inside.length} instances`));
  return scopesOfPlace(graph, region, area.is_zone ? area.name : "*");
}

/**
 * The instances of a folded node.
 * @param {number} place
 */
function showFolded(place) {
  const node = graph.nodes[place];
  if (!node) return;
  const [service, at] = [node.name, `${node.region}.${node.zone}`];
  input("do-who").value = service;
  const members = (scene?.nodes ?? []).filter((one) => one.service === service && `${one.region}.${one.zone}` === at);
  const list = panels.element("ul");
  list.className = "list";
  list.tabIndex = 0;
  list.setAttribute("aria-label", "instances");
  for (const one of members.slice(0, 500)) list.append(panels.element("li", "", panels.link(one.name, () => choose(one.name))));
  const count = panels.element("p");
  const unfold = panels.link("Show instances in the graph", () => graph.unfold({ node: place }));
  const made = panels.element("div", "", panels.element("h2", node.zone === "*" ? service : `${service} in ${at}`), count, unfold, list);
  panel(async () => {
    const [up, all] = [graph.health[2 * place] ?? 0, graph.health[2 * place + 1] ?? 0];
    count.textContent = graph.folded ? `${up} of ${all} instances serve` : `${members.length} instances`;
    return made;
  });
  select("group").value = service;
  void draw();
}

/** Chooses an actor by its name, shown or not. @param {string} name */
function choose(name) {
  const place = graph.folded ? -1 : graph.nodes.findIndex((node) => node.name === name);
  if (place >= 0) {
    graph.setChosen({ node: place });
  } else {
    graph.chosen = null;
    showActor(name);
  }
}

// What is measured over time.
let isDrawing = false;
async function draw() {
  if (isDrawing || !scene) return;
  isDrawing = true;
  try {
    ({ points: measured } = await line.ask({ series: select("group").value || "all" }));
    drawMeasured();
    if (scene.kind === "pirates") await drawPirates();
  } catch {
    // Without a line there is nothing to draw; the line says so.
  }
  isDrawing = false;
}

/** What was measured of the chosen group. @type {import("./charts.js").Point[]} */
let measured = [];

/** The end of the run as far as it is known, and its time. */
const runTimes = () => ({ end: scene?.load?.[1] ?? 0, now: scene?.kind === "graph" ? scene.load?.[1] ?? 0 : now });

/** A stage has come if its time has; the first one is there before the load begins. */
function tellStage() {
  const stages = (scene?.marks ?? []).filter((mark) => mark.text);
  const stage = stages.findLast(({ at }) => at <= (shown.at ?? now) + 1e-6) ?? stages[0];
  $("stage-of").hidden = !stage;
  const text = stage ? `${stages.indexOf(stage) + 1} of ${stages.length} · ${stage.name}: ${stage.text}` : "";
  if ($("stage-of").textContent !== text) $("stage-of").textContent = text;
}

function drawMeasured() {
  const commands = status?.commands ?? [];
  const faults = scene?.marks ?? [];
  const marks = [...faults.map(({ at, text }) => ({ at, isFault: !text })), ...commands.map(([at]) => ({ at, isFault: false }))];
  const isServices = scene?.kind !== "pirates";
  $("whole-run").hidden = !shown.span;
  drawBar(canvas("bar"), measured, { ...runTimes(), now, faults, commands });
  const near = shown.cursor;
  const isNear = (/** @type {number} */ at) => near !== null && Math.abs(at - near) < 0.01 * Math.max(now, runTimes().end);
  const names = [...faults.map(({ at, name }) => [at, name]), ...commands].filter(([at]) => isNear(Number(at)));
  $("bar").title = names.map(([at, name]) => `${seconds(Number(at))}: ${name}`).join("\n");
  drawCurves(canvas("rate"), measured, [
    { name: isServices ? "requests/s" : "messages/s", colour: "--edge", of: (point) => point.rate },
    ...(isServices ? [{ name: "errors/s", colour: "--bad", of: (/** @type {import("./charts.js").Point} */ point) => point.errors }] : []),
  ], marks);
  drawCurves(canvas("latency"), measured, [
    { name: "p50", colour: "--edge", of: (point) => point.p50 },
    { name: "p99", colour: "--warn", of: (point) => point.p99 },
    { name: "p99.9", colour: "--cut", of: (point) => point.p999 },
  ], marks, { log: true, unit: seconds });
  drawCurves(canvas("queue"), measured, [{ name: "queue", colour: "--cut", of: (point) => point.queue }], marks);
  drawCurves(canvas("utilisation"), measured, [{ name: "utilisation", colour: "--slow", of: (point) => point.utilisation }], marks, {
    top: 1, unit: (value) => `${Math.round(value * 100)} %`,
  });
  const isEmpty = ["rate", "latency", "queue", "utilisation"].every((id) => canvas(id).hidden);
  $("no-charts").hidden = !isEmpty;
  tellStage();
}
const past = new Past(canvas("bar"), $("past"), {
  graph, complain, redraw: drawMeasured, run: runTimes,
  ask: (what) => line.ask(what),
  live: () => {
    graph.forget();
    line.setLevel(line.level);
  },
});
follow($("charts"), drawMeasured, (time) => past.look(time));
new ResizeObserver(drawMeasured).observe($("whole"));

const traces = new Traces($("traces"), look, complain);
const openTraces = (/** @type {string[]} */ names) => traces.open(names).catch(complain);
$("open-traces").addEventListener("click", () => {
  const nodes = scene?.nodes ?? [];
  const entries = nodes.filter((node) => node.package === "denominator");
  void openTraces((entries.length > 0 ? entries : nodes).map((node) => node.name));
});

async function drawPirates() {
  const seen = await look({ density: true });
  const powers = (/** @type {number[]} */ counts, /** @type {number} */ unit) => {
    const last = counts.findLastIndex((count) => count > 0);
    return counts.slice(0, last + 1).map((count, place) =>
      /** @type {[string, number]} */ ([place === 0 ? "0" : short(2 ** (place - 1) * unit), count]));
  };
  drawBars(canvas("degree"), seen.degree.map((/** @type {number} */ count, /** @type {number} */ degree) => [String(degree), count]));
  drawBars(canvas("gold"), powers(seen.gold, 1));
  drawBars(canvas("rates"), powers(seen.tenths_per_second, 0.1));
  drawDensity(canvas("both"), seen.degree_by_gold.map((/** @type {number[]} */ row) => row.slice(0, 14)));
}

setInterval(() => {
  if (!status?.is_playing) return;
  past.tell();
  void draw();
  void refresh?.();
}, 500);

// The controls.
const step = (/** @type {object | string} */ by) => control({ step: by });
$("play").addEventListener("click", async () => {
  const { at } = shown;
  past.leave();
  // A saved run plays from where one looks.
  if (scene?.kind === "graph" && at !== null && !status?.is_playing) await control({ goto: Math.round(at * 1e9) });
  void control(status?.is_playing ? "pause" : "play");
});
$("step-window").addEventListener("click", () => step("window"));
$("step-ms").addEventListener("click", () => step({ nanos: 1e6 }));
$("step-s").addEventListener("click", () => step({ nanos: 1e9 }));
$("step-actor").addEventListener("click", () => step({ actor: chosenName }));
$("speed").addEventListener("change", () => {
  const { value } = select("speed");
  void control({ speed: value === "" ? null : Number(value) });
});
$("fold").addEventListener("click", () => {
  graph.isAuto = !graph.isAuto;
  setFolded(graph.isAuto && graph.camera.scale <= graph.unfoldScale());
});
$("fit").addEventListener("click", () => graph.fit());
$("take").addEventListener("click", () => line.say({ take: true }));
$("group").addEventListener("change", () => void draw());
$("checkpoint").addEventListener("click", () => control("checkpoint"));
$("present").addEventListener("click", () => past.leave());
$("whole-run").addEventListener("click", () => {
  shown.span = null;
  drawMeasured();
});
$("from-here").addEventListener("click", () => {
  const { at } = shown;
  past.leave();
  if (at !== null) void control({ goto: Math.round(at * 1e9) });
});

$("until-what").addEventListener("change", () => {
  const what = select("until-what").value;
  $("until-pointer").hidden = what !== "state";
  $("until-of").hidden = what === "time" || what === "dead";
});
$("until-of").hidden = true;

$("until").addEventListener("submit", (event) => {
  event.preventDefault();
  const what = select("until-what").value;
  const text = input("until-value").value;
  trying(() => {
    if (what === "time") return void control({ until: { time: readTime(text, "the time to run until") } });
    const value = readNumber(text, "the value to run until", { least: -Infinity });
    const of = input("until-of").value;
    /** @type {Record<string, unknown>} */
    const condition = { measure: what, above: what === "p99" ? value / 1000 : value };
    if (what === "state") Object.assign(condition, { who: of, pointer: input("until-pointer").value });
    else if (what !== "dead") condition.of = of;
    void control({ until: { condition } });
  });
});

/** Shows the fields that an action has. */
function showFields() {
  const what = select("do-what").value;
  $("do-number-label").hidden = !["slow", "load", "scale"].includes(what);
  $("do-number-name").textContent = what === "scale" ? "instances" : "percent";
  $("do-message-label").hidden = what !== "send";
  if (scene) $("names").replaceChildren(...accepted(scene, what).map((name) => new Option(name)));
}
$("do-what").addEventListener("change", showFields);

$("do").addEventListener("submit", (event) => {
  event.preventDefault();
  trying(() => {
    const [what, who, number, message, at] = ["do-what", "do-who", "do-number", "do-message", "do-at"].map((id) => input(id).value);
    void control(command(what ?? "", who ?? "", number ?? "", message ?? "", at ?? ""));
  });
});

// A search: what fits is offered, Enter chooses.
input("find").addEventListener("input", async () => {
  const part = input("find").value.trim();
  if (part === "") return;
  try {
    const found = await look({ find: part });
    $("found").replaceChildren(...found.map((/** @type {string} */ name) => new Option(name)));
  } catch {
    $("found").replaceChildren();
  }
});
$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = input("find").value.trim();
  if (name) choose(name);
});

/**
 * Lets the browser keep what the session says.
 * @param {string} what
 * @param {string} name
 */
async function keep(what, name) {
  try {
    const saved = JSON.stringify(await line.ask(what), null, 1);
    const file = panels.element("a");
    file.href = URL.createObjectURL(new Blob([saved], { type: "application/json" }));
    file.download = `${scene?.arch ?? "corsair"}_${name}.json`;
    file.click();
    setTimeout(() => URL.revokeObjectURL(file.href), 1000);
  } catch (error) {
    complain(error);
  }
}
$("save").addEventListener("click", () => keep("save", "session"));
$("define").addEventListener("click", () => keep("definition", "faults"));

// Space plays and a full stop steps, wherever nothing else wants the key.
document.addEventListener("keydown", (event) => {
  const wants = event.target instanceof Element && event.target.closest("input, select, button, textarea");
  if (wants || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === " ") $("play").click();
  else if (event.key === ".") $("step-window").click();
  else return;
  event.preventDefault();
});

// For tests: how many pictures were drawn, and what is shown.
Object.assign(window, { corsair: { graph, look, past, shown, pictures: () => graph.pictures, now: () => now } });
