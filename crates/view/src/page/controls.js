// Buttons, forms and keys that control the run: its clock, conditions, commands, checkpoints and files.

import { accepted, command } from "./actions.js";
import { seconds, short, shown } from "./charts.js";
import { $, complain, input, select, trying } from "./dom.js";
import { readNumber, readTime } from "./numbers.js";
import { element, link } from "./panels.js";

/**
 * @typedef {import("./socket.js").Status["checkpoints"]} Checkpoints
 * @typedef {import("./measured.js").State & { frameTime: number, pace: number, hasControls: boolean, chosenName: string }} State
 * @typedef {{ state: State, line: import("./socket.js").Line, past: import("./past.js").Past, choose: (name: string) => void }} Page
 */

/** Shows the fields that an action has. @param {State["scene"]} scene */
export function showFields(scene) {
  const what = select("do-what").value;
  $("do-number-label").hidden = !["slow", "load", "scale"].includes(what);
  $("do-number-name").textContent = what === "scale" ? "instances" : "percent";
  $("do-message-label").hidden = what !== "send";
  if (scene) $("names").replaceChildren(...accepted(scene, what).map((name) => new Option(name)));
}

/** The checkpoints on the page, which are rendered again only when they change. */
let shownCheckpoints = "";

/** @param {Checkpoints} checkpoints @param {(what: object) => void} control */
export function showCheckpoints(checkpoints, control) {
  const text = JSON.stringify(checkpoints);
  if (text === shownCheckpoints) return;
  shownCheckpoints = text;
  $("checkpoints").replaceChildren(...checkpoints.map(({ number, at, digest, commands, bytes }) => {
    const size = bytes > 0 ? `, ${short(bytes)}B` : "";
    const back = link(`Return to ${seconds(at)}`, () => control({ back: number }));
    back.title = `checkpoint ${number}, ${commands} commands, digest ${digest}${size}`;
    const drop = link("✕", () => control({ forget: number }));
    drop.setAttribute("aria-label", `delete checkpoint ${number}`);
    return element("li", "", back, ` ${commands} commands${size} `, drop);
  }));
}

/** Enables the buttons of the page that has control; true if the run can continue. @param {State} state */
export function enable({ status, scene, hasControls, chosenName }) {
  const moves = hasControls && (!(status?.is_over ?? true) || scene?.kind === "graph");
  for (const id of ["play", "step-window", "step-ms", "step-s", "speed"]) input(id).disabled = !moves;
  input("step-actor").disabled = !moves || chosenName === "";
  for (const form of ["until", "do"]) {
    for (const field of $(form).querySelectorAll("button")) field.disabled = !moves;
  }
  input("from-here").disabled = !hasControls;
  input("checkpoint").disabled = !moves;
  for (const button of $("checkpoints").querySelectorAll("button")) button.disabled = !hasControls;
  return moves;
}

/** The condition that the form asks for. */
function readUntil() {
  const what = select("until-what").value;
  const text = input("until-value").value;
  if (what === "time") return { time: readTime(text, "the time to run until") };
  const value = readNumber(text, "the value to run until", { least: -Infinity });
  const of = input("until-of").value;
  /** @type {Record<string, unknown>} */
  const condition = { measure: what, above: what === "p99" ? value / 1000 : value };
  if (what === "state") Object.assign(condition, { who: of, pointer: input("until-pointer").value });
  else if (what !== "dead") condition.of = of;
  return { condition };
}

/** Lets the browser keep what the session says. @param {Page} page @param {string} what @param {string} name */
async function keep({ line, state }, what, name) {
  try {
    const saved = JSON.stringify(await line.ask(what), null, 1);
    const file = element("a");
    file.href = URL.createObjectURL(new Blob([saved], { type: "application/json" }));
    file.download = `${state.scene?.arch ?? "corsair"}_${name}.json`;
    file.click();
    setTimeout(() => URL.revokeObjectURL(file.href), 1000);
  } catch (error) {
    complain(error);
  }
}

/** Listens to the controls. @param {Page} page @param {(what: object | string) => Promise<void>} control */
export function listen(page, control) {
  const { state, line, past } = page;
  const on = (/** @type {string} */ id, /** @type {() => void} */ act) => $(id).addEventListener("click", act);
  const step = (/** @type {object | string} */ by) => control({ step: by });
  on("play", async () => {
    const { at } = shown;
    past.leave();
    // A saved run plays from where one looks.
    if (state.scene?.kind === "graph" && at !== null && !state.status?.is_playing) await control({ goto: Math.round(at * 1e9) });
    void control(state.status?.is_playing ? "pause" : "play");
  });
  on("step-window", () => step("window"));
  on("step-ms", () => step({ nanos: 1e6 }));
  on("step-s", () => step({ nanos: 1e9 }));
  on("step-actor", () => step({ actor: state.chosenName }));
  on("take", () => line.say({ take: true }));
  on("checkpoint", () => control("checkpoint"));
  on("present", () => past.leave());
  on("from-here", () => {
    const { at } = shown;
    past.leave();
    if (at !== null) void control({ goto: Math.round(at * 1e9) });
  });
  on("save", () => keep(page, "save", "session"));
  on("define", () => keep(page, "definition", "faults"));
  $("speed").addEventListener("change", () => {
    const { value } = select("speed");
    void control({ speed: value === "" ? null : Number(value) });
  });
  $("until-what").addEventListener("change", () => {
    const what = select("until-what").value;
    $("until-pointer").hidden = what !== "state";
    $("until-of").hidden = what === "time" || what === "dead";
  });
  $("until-of").hidden = true;
  $("until").addEventListener("submit", (event) => {
    event.preventDefault();
    trying(() => void control({ until: readUntil() }));
  });
  $("do-what").addEventListener("change", () => showFields(state.scene));
  $("do").addEventListener("submit", (event) => {
    event.preventDefault();
    trying(() => {
      const [what, who, number, message, at] = ["do-what", "do-who", "do-number", "do-message", "do-at"].map((id) => input(id).value);
      void control(command(what ?? "", who ?? "", number ?? "", message ?? "", at ?? ""));
    });
  });
  listenToSearch(page);
  // Space plays and a full stop steps, wherever nothing else wants the key.
  document.addEventListener("keydown", (event) => {
    const wants = event.target instanceof Element && event.target.closest("input, select, button, textarea, summary");
    if (wants || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " ") $("play").click();
    else if (event.key === ".") $("step-window").click();
    else return;
    event.preventDefault();
  });
}

/** A search: what fits is offered, Enter chooses. @param {Page} page */
function listenToSearch({ line, choose }) {
  input("find").addEventListener("input", async () => {
    const part = input("find").value.trim();
    if (part === "") return;
    try {
      const found = await line.ask({ look: { find: part } });
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
}
