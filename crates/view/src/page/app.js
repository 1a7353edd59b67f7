// The page: what the session says is shown, and what is chosen is described.

import { Actions, scopesOf, scopesOfPlace } from "./actions.js";
import { follow, seconds, short, shown } from "./charts.js";
import { enable as enableControls, listen, showCheckpoints, showFields } from "./controls.js";
import { $, canvas, complain, input, select } from "./dom.js";
import { isIn } from "./geometry.js";
import { Graph } from "./graph.js";
import { guide } from "./guide.js";
import { about, services, showCard } from "./hover.js";
import { Measured } from "./measured.js";
import * as panels from "./panels.js";
import { Past } from "./past.js";
import { BITS, Line } from "./socket.js";
import { Traces } from "./traces.js";

/** @typedef {import("./socket.js").Scene} Scene @typedef {import("./graph.js").Chosen} Chosen */
/** @typedef {import("./actions.js").Scope} Scope */

/** What is known of the session; `chosenName` is the name of the chosen actor. @type {import("./controls.js").State} */
const state = { scene: null, status: null, now: 0, frameTime: 0, pace: 0, hasControls: false, chosenName: "" };
/** Whether no scene has come yet. */
let isFirst = true;
let epoch = 0;
/** Runs until the time is shown. @type {ReturnType<typeof setTimeout> | undefined} */
let clock;
/** Refreshes the panel while the run continues. @type {(() => Promise<void>) | null} */
let refresh = null;

/** Does something and says what is wrong. @param {object | string} what */
async function control(what) {
  try {
    await line.control(what);
    $("problem").hidden = true;
  } catch (error) {
    complain(error);
  }
}

const graph = new Graph(canvas("back"), canvas("front"), canvas("labels"), (chosen) => show(chosen),
  (isFolded) => setFolded(isFolded), (found, x, y) => showCard($("card"), graph, found, x, y));

const line = new Line({
  scene(next) {
    // A playground changes from services to pirates.
    if (next.kind !== state.scene?.kind) guide($("guide"), next.kind);
    state.scene = next;
    $("title").textContent = `corsair · ${next.arch}`;
    document.title = `corsair · ${next.arch}`;
    const actors = next.total === next.nodes.length ? "" : `, ${next.nodes.length} of ${short(next.total)} shown`;
    $("front").title = `${short(next.total)} actors${actors}`;
    graph.setScene(next);
    setFolded(next.folded.length > 0 && (isFirst || graph.folded));
    isFirst = false;
    show(null);
    input("find").value = "";
    $("fold").hidden = next.folded.length === 0;
    select("group").replaceChildren(...next.groups.map((name) => new Option(name)));
    select("do-what").replaceChildren(...next.actions.map((name) => new Option(name)));
    $("act").hidden = next.actions.length === 0;
    $("define").hidden = next.kind !== "services";
    $("save").hidden = next.kind === "graph" || next.kind === "hosts";
    $("groups").replaceChildren(...next.groups.map((name) => new Option(name)));
    $("legend").dataset.kind = next.kind;
    input("find").placeholder = next.kind === "hosts" ? "name of a host" : "name of an actor";
    input("do-who").placeholder = next.kind === "hosts" ? "host, group of hosts" : "actor, service, zone";
    $("one-group").hidden = next.groups.length < 2;
    // Hosts have neither requests nor dead letters.
    for (const one of select("until-what").options) one.hidden = next.kind === "hosts" && one.value !== "time" && one.value !== "state";
    // A saved run has a clock if its states are known.
    const isSaved = next.kind === "graph";
    for (const id of ["step-window", "step-ms", "step-actor", "times"]) $(id).hidden = isSaved;
    $("clock").hidden = $("now").hidden = isSaved && !next.load;
    $("open-traces").hidden = next.kind === "pirates" || next.kind === "hosts" || (isSaved && !next.edges.length);
    traces.place.hidden = true;
    past.leave();
    shown.span = null;
    $("densities").hidden = true;
    $("whole").classList.toggle("pirates", next.kind === "pirates");
    $("whole").hidden = isSaved && !next.load;
    showFields(next);
    void measured.refresh();
  },
  status(next) {
    if (next.epoch !== epoch) {
      epoch = next.epoch;
      graph.forget();
    }
    state.status = next;
    const play = $("play");
    play.textContent = next.is_playing ? "Pause" : "Play";
    play.setAttribute("aria-pressed", String(next.is_playing));
    $("stopped").textContent = next.is_playing ? (next.until ? `running until ${next.until}` : "") : next.stopped;
    $("digest").textContent = next.digest ? `digest ${next.digest}` : "";
    select("speed").value = next.speed === null ? "" : String(next.speed);
    $("commands").replaceChildren(...next.commands.map(([at, what]) => panels.element("li", `${seconds(at)}: ${what}`)));
    $("back-in-time").hidden = $("checkpoint").hidden = $("from-here").hidden = !next.can_go_back;
    showCheckpoints(next.checkpoints, control);
    state.now = next.now;
    showTime();
    enable();
    void measured.refresh();
    void refresh?.();
    measured.tellStage();
  },
  frame(frame) {
    if (frame.epoch !== epoch) {
      epoch = frame.epoch;
      graph.forget();
    }
    graph.setFrame(frame);
    if (frame.hasNew && !frame.playing) void refresh?.();
    state.now = state.frameTime = frame.now;
    state.pace = frame.playing ? frame.speed : 0;
    showTime();
  },
  controls(has, watchers) {
    state.hasControls = has;
    $("line").textContent = has ? `connected${watchers > 1 ? `, ${watchers} watch` : ""}` : `watching (${watchers}); another page has control`;
    $("take").hidden = has;
    enable();
  },
  line(open) {
    $("line").classList.toggle("lost", !open);
    if (!open) {
      $("line").textContent = "cannot reach the session; reload the page when corsair runs again";
      state.hasControls = false;
      enable();
    }
  },
});

/** Shows the time and the measured speed, at most ten times a second: nobody reads faster. */
function showTime() {
  if (clock !== undefined) return;
  clock = setTimeout(() => {
    clock = undefined;
    const [, whole = "", rest = ""] = /^(.*)(...)$/.exec(state.now.toFixed(6)) ?? [];
    $("now").replaceChildren(whole, panels.element("small", rest), " s");
    $("pace").textContent = state.pace > 0 ? `${short(state.pace)} ×` : "";
  }, 100);
}

/** Enables the buttons of the page that has control. */
function enable() {
  actions.enable(enableControls(state));
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

/** Shows a node in the panel, and refreshes it while the run continues. @param {() => Promise<Node>} make */
function panel(make) {
  let isBusy = false;
  const mine = async () => {
    if (isBusy) return;
    isBusy = true;
    const text = (/** @type {unknown} */ error) => panels.element("p", error instanceof Error ? error.message : String(error));
    const node = await Promise.resolve().then(make).catch(text);
    if (refresh === mine) panels.renew($("one"), node);
    isBusy = false;
  };
  refresh = mine;
  // Only the first content is read aloud, not what changes in it.
  $("one").setAttribute("aria-live", "polite");
  void mine().then(() => refresh === mine && $("one").setAttribute("aria-live", "off"));
}

const look = (/** @type {object} */ question) => line.ask({ look: question });

/** @param {string} name */
function showActor(name) {
  state.chosenName = name;
  input("do-who").value = name;
  enable();
  panel(async () => panels.actor(await look({ actor: name }), { choose, requests: (name) => openTraces([name]), trace: () => openTraces([name]) }));
}

/** @param {Chosen | null} chosen */
function show(chosen) {
  state.chosenName = "";
  /** @type {Scope[]} */
  let scopes = [];
  if (!chosen) {
    panel(async () => panels.overview(services(graph), (node) => graph.setChosen({ node })));
  } else if ("area" in chosen) {
    scopes = showArea(chosen.area);
  } else if ("from" in chosen) {
    scopes = [...scopesOf(graph, chosen.to), ...scopesOf(graph, chosen.from)];
    scopes = scopes.filter(({ who }, place) => scopes.findIndex((other) => other.who === who) === place);
    const [from, to] = [nameOf(chosen.from), nameOf(chosen.to)];
    panel(async () => ["pirates", "hosts"].includes(state.scene?.kind ?? "") ? panels.lines(about(graph, chosen)) : panels.edge(await look({ from, to })));
  } else if (graph.folded) {
    scopes = scopesOf(graph, chosen.node);
    showFolded(chosen.node);
  } else {
    scopes = scopesOf(graph, chosen.node);
    showActor(nameOf(chosen.node));
  }
  actions.show(state.scene, scopes);
  enable();
}

/** A region or zone. @param {number} number @returns {Scope[]} */
function showArea(number) {
  const { scene } = state;
  const area = scene?.areas[number];
  if (!area || !scene) return [];
  const inside = scene.nodes.filter(({ x, y, region }) => region !== "*" && isIn(area, x, y));
  const region = inside.find((node) => node.region !== "*")?.region ?? "*";
  const services = new Set(inside.map((node) => node.service));
  refresh = null;
  $("one").replaceChildren(panels.element("h2", area.is_zone ? `${region}.${area.name}` : area.name),
    panels.element("p", `${services.size} services, ${inside.length} instances`));
  return scopesOfPlace(graph, region, area.is_zone ? area.name : "*");
}

/** The instances of a folded node. @param {number} place */
function showFolded(place) {
  const node = graph.nodes[place];
  if (!node) return;
  const [service, at] = [node.name, `${node.region}.${node.zone}`];
  input("do-who").value = service;
  const members = (state.scene?.nodes ?? []).filter((one) => one.service === service && `${one.region}.${one.zone}` === at);
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
  void measured.refresh();
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

const measured = new Measured(state, (what) => line.ask(what));
const past = new Past(canvas("bar"), $("past"), {
  graph, complain, redraw: measured.redraw, run: () => measured.run(),
  ask: (what) => line.ask(what),
  live: () => {
    graph.forget();
    line.setLevel(line.level);
  },
});
follow($("charts"), measured.redraw, (time) => past.look(time));
new ResizeObserver(measured.redraw).observe($("whole"));

const traces = new Traces($("traces"), look, complain);
const openTraces = (/** @type {string[]} */ names) => traces.open(names).catch(complain);
$("open-traces").addEventListener("click", () => {
  const nodes = state.scene?.nodes ?? [];
  const entries = nodes.filter((node) => node.package === "denominator");
  void openTraces((entries.length > 0 ? entries : nodes).map((node) => node.name));
});

setInterval(() => {
  if (!state.status?.is_playing) return;
  past.tell();
  void measured.refresh();
  void refresh?.();
}, 500);

listen({ state, line, past, choose }, control);
$("fold").addEventListener("click", () => {
  graph.isAuto = !graph.isAuto;
  setFolded(graph.isAuto && graph.camera.scale <= graph.unfoldScale());
});
$("fit").addEventListener("click", () => graph.fit());
$("group").addEventListener("change", () => void measured.refresh());
$("whole-run").addEventListener("click", () => {
  shown.span = null;
  measured.draw();
});

// For tests: how many pictures were drawn, and what is shown.
Object.assign(window, { corsair: { graph, look, past, shown, pictures: () => graph.pictures, now: () => state.now, frameTime: () => state.frameTime } });
