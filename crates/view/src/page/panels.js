// One thing: an actor, an edge. All texts are set as texts.

import { drawBars, seconds, short } from "./charts.js";

/**
 * An element with a text and some children. @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag @param {string} [text] @param {(Node | string)[]} children @returns {HTMLElementTagNameMap[T]}
 */
export function element(tag, text = "", ...children) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

/** A button that leads to something. @param {string} text @param {() => void} act */
export function link(text, act) {
  const button = element("button", text);
  button.type = "button";
  button.addEventListener("click", act);
  return button;
}

/** Some lines below a heading. @param {string[]} lines */
export const lines = ([title, ...rest]) => element("div", "", element("h2", title), ...rest.map((line) => element("p", line)));

/** @param {[string, string | number | null][]} rows */
export function facts(rows) {
  const list = element("dl");
  for (const [name, value] of rows) {
    if (value !== null && value !== "") list.append(element("dt", name), element("dd", String(value)));
  }
  return list;
}

/** A list under a heading, or nothing. @param {string} title @param {Node[]} items */
function list(title, items) {
  if (items.length === 0) return [];
  const made = element("ul");
  made.className = "list";
  made.tabIndex = 0;
  made.setAttribute("aria-label", title || "list");
  for (const item of items) made.append(element("li", "", item));
  return [element("h2", title), made];
}

/**
 * Replaces what is in a panel, and leaves the focus and what was scrolled where they were.
 * @param {HTMLElement} place @param {Node} node
 */
export function renew(place, node) {
  const all = () => /** @type {HTMLElement[]} */ ([...place.querySelectorAll("button, [tabindex]")]);
  const before = all();
  const [at, tops] = [before.findIndex((one) => one === document.activeElement), before.map((one) => one.scrollTop)];
  place.replaceChildren(node);
  for (const [number, one] of all().entries()) {
    one.scrollTop = tops[number] ?? 0;
    if (number === at) one.focus({ preventScroll: true });
  }
}

/** A table of more services would be slow, and nobody reads it. */
const MOST_SERVICES = 25;

/**
 * All services, those that fail first. @param {import("./hover.js").Service[]} services @param {(place: number) => void} choose
 */
export function overview(services, choose) {
  const hint = element("p", services.length > 0 ? "Select a service here, or a circle, a line or a zone in the graph." : "Select a circle or a line in the graph.");
  hint.className = "hint";
  if (services.length === 0) return hint;
  const head = element("tr", "", ...["service", "serve", "requests/s", "errors", "queue"].map((name) => element("th", name)));
  const rows = services.slice(0, MOST_SERVICES).map(({ name, place, up, all, rate, errors, queue }) => {
    const cells = [up < all ? `${up}/${all}` : `${all}`, short(Math.round(10 * rate) / 10), rate > 0 ? `${Math.round((100 * errors) / rate)} %` : "", queue > 0 ? short(queue) : ""];
    const row = element("tr", "", element("td", "", link(name, () => choose(place))), ...cells.map((text) => element("td", text)));
    if (up < all || errors > 0.01 * rate) row.className = "bad";
    return row;
  });
  const more = services.length > MOST_SERVICES ? `, the first ${MOST_SERVICES} of ${services.length}` : "";
  return element("div", "", element("h2", `Services${more}`), hint, element("table", "", head, ...rows));
}

/**
 * The state of an actor. @param {Record<string, any>} seen
 * @param {{ choose: (name: string) => void, requests: (name: string) => void, trace: (trace: string) => void }} act
 */
export function actor(seen, act) {
  const short_name = String(seen.name).split(".").at(-1) ?? "";
  const { state, messages = [], requests = [], knows = [], buddies = [], log = [], ...rest } = seen;
  const words = state
    ? Object.entries({ down: state.is_down, paused: state.is_paused, "cut off": state.is_cut_off, "deregistered": state.is_away })
      .filter(([, is]) => is).map(([word]) => word)
    : [];
  const made = element("div", "", element("h2", seen.name));
  made.append(facts([
    ["service", seen.service ?? ""], ["group", seen.group ?? ""], ["package", seen.package ?? ""], ["program", seen.program ?? ""], ["address", seen.address ?? ""], ["state", state ? words.join(", ") || "up" : ""],
    ["queue", state?.queue ?? null], ["in progress", state ? Math.max(state.busy, state.in_progress) : null],
    ["slots", seen.concurrency ?? ""], ["pace", state && state.slow_percent !== 100 ? `${state.slow_percent} % of the normal service time` : ""],
    ["gold", seen.gold ?? null], ["sent", seen.sent ?? null],
  ]));
  if (state || seen.requests_in_flows > 0) made.append(link("Recent requests", () => act.requests(short_name)));
  const fields = element("pre", JSON.stringify({ state, ...rest }, null, 1));
  fields.tabIndex = 0;
  made.append(
    ...list("Requests in progress", requests.map((/** @type {any} */ request) =>
      element("span", `${request.server}, for ${seconds(request.age / 1e9)} `, link("trace", () => act.trace(request.trace))))),
    ...list("Recent messages", messages.map((/** @type {any} */ message) =>
      element("span", `${seconds(message.at / 1e9)} ${message.kind} ${message.what} from ${message.from}`))),
    ...list("Knows", knows.map((/** @type {string} */ name) => link(name, () => act.choose(name)))),
    ...list("Buddies", buddies.map((/** @type {any} */ buddy) =>
      element("span", "", link(buddy.name, () => act.choose(buddy.name)), ` gave ${buddy.gold}`))),
    ...list("Output", log.map((/** @type {string} */ line) => element("span", line))),
    element("h2", "State"),
    fields,
  );
  return made;
}

/** @param {Record<string, any>} seen */
export function edge(seen) {
  const made = element("div", "", element("h2", `${seen.from} → ${seen.to}`));
  const time = (/** @type {number | null} */ value) => (value === null ? "" : seconds(value));
  made.append(facts([
    ["sent", seen.sent], ["answered", seen.answered], ["errors", seen.errors],
    ["p50", time(seen.p50)], ["p99", time(seen.p99)], ["p99.9", time(seen.p999)],
  ]));
  const canvas = element("canvas");
  canvas.className = "histogram";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "histogram of latencies");
  made.append(canvas);
  /** @type {[number, number][]} */
  const counts = seen.histogram;
  requestAnimationFrame(() => drawBars(canvas, counts.map(([from, count]) => [seconds(from), count])));
  return made;
}
