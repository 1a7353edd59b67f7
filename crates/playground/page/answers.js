// The panel of answers at the right: a sentence, numbers, for a search also a picture, and the command that gives the same.

import { seconds, short } from "../../view/src/page/charts.js";

/** @param {string} id */
const $ = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * @param {string} verdict
 * @param {Element[]} parts
 * @param {string} command
 */
function show(verdict, parts, command) {
  $("verdict").textContent = verdict;
  $("answer").replaceChildren(...parts);
  $("same").textContent = command;
  $("answers").hidden = false;
}

export function close() {
  $("answers").hidden = true;
}

/** A table whose first row is its head. @param {string[][]} rows */
function table([head = [], ...rows]) {
  const made = document.createElement("table");
  const line = made.createTHead().insertRow();
  for (const text of head) {
    const cell = document.createElement(text === "" ? "td" : "th");
    cell.textContent = text;
    line.append(cell);
  }
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const text of row) line.insertCell().textContent = text;
  }
  return made;
}

const percent = (/** @type {number} */ share) => `${Number((share * 100).toPrecision(3))} %`;

/** @param {string} name @param {Record<string, string | number>} attributes @param {string} [text] */
function svg(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

/**
 * Response times by load, both on logarithmic axes.
 * @param {{ load: number, p50_seconds: number, p99_seconds: number }[]} points @param {number} limit in seconds
 */
function chart(points, limit) {
  const [width, height, left, right, top, bottom] = [440, 220, 52, 34, 10, 24];
  const seen = points.filter((point) => point.load > 0 && point.p50_seconds > 0);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": "response times by load" });
  if (seen.length < 2) return picture;
  const times = seen.flatMap((point) => [point.p50_seconds, point.p99_seconds]).concat(limit);
  const loads = seen.map((point) => point.load);
  const scale = (/** @type {number[]} */ values, /** @type {number} */ from, /** @type {number} */ to) => {
    const [least, most] = [Math.log(Math.min(...values)), Math.log(Math.max(...values) * 1.001)];
    return (/** @type {number} */ value) => from + ((Math.log(value) - least) / (most - least)) * (to - from);
  };
  const [x, y] = [scale(loads, left, width - right), scale(times, height - bottom, top)];
  /** The powers of ten, and if there are few also 2 and 5 times them. */
  const marks = (/** @type {number[]} */ values) => {
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const all = Array.from({ length: 20 }, (_, power) => [1, 2, 5].map((one) => one * 10 ** (power - 9))).flat();
    const within = all.filter((one) => one >= least * 0.999 && one <= most * 1.001);
    return within.length > 6 ? within.filter((one) => Number.isInteger(Math.log10(one))) : within;
  };
  for (const time of marks(times)) {
    picture.append(svg("line", { x1: left, x2: width - right, y1: y(time), y2: y(time) }),
      svg("text", { x: left - 6, y: y(time) + 4, "text-anchor": "end" }, seconds(time)));
  }
  for (const load of marks(loads)) {
    picture.append(svg("text", { x: x(load), y: height - 8, "text-anchor": "middle" }, `${short(load)}/s`));
  }
  picture.append(svg("line", { class: "limit", x1: left, x2: width - right, y1: y(limit), y2: y(limit) }),
    svg("text", { class: "limit", x: left + 4, y: y(limit) - 4 }, `limit ${seconds(limit)}`));
  for (const name of /** @type {const} */ (["p50", "p99"])) {
    const at = seen.map((point) => [x(point.load), y(point[`${name}_seconds`])]);
    picture.append(svg("polyline", { class: name, points: at.map((point) => point.join(",")).join(" ") }),
      svg("text", { class: name, x: width - right + 4, y: (at.at(-1)?.[1] ?? top) + 4 }, name));
  }
  return picture;
}

/** @param {any} found as `corsair capacity --format json` prints it @param {number} limit in milliseconds @param {string} command */
export function capacity(found, limit, command) {
  const last = found.points.findLast((/** @type {any} */ point) => point.load === found.load);
  const [busiest] = Object.entries(last?.utilisations ?? {}).sort(([, a], [, b]) => Number(b) - Number(a));
  const bottleneck = busiest ? `; ${busiest[0]} is ${(Number(busiest[1]) * 100).toFixed(0)} % busy` : "";
  const verdict = !found.limited ? "nothing limits the load; give services a concurrency, processors or a rate_limit to find a capacity"
    : found.load === null ? "not even the lowest load is sustained"
    : `sustains ${found.beyond ? "at least " : ""}${found.load} requests per second at each entry point${bottleneck}`;
  const rows = found.points.map((/** @type {any} */ point) => [short(point.load), seconds(point.p50_seconds), seconds(point.p95_seconds),
    seconds(point.p99_seconds), percent(point.errors), point.holds ? "" : "too much"]);
  show(verdict, [chart(found.points, limit / 1e3), table([["load/s", "p50", "p95", "p99", "errors", ""], ...rows])], command);
}

/** @param {any[]} compared as `corsair compare --format json` prints it @param {string} command */
export function compare(compared, command) {
  const rows = compared.map((row) => {
    const [name, unit] = row.name.endsWith("_seconds") ? [row.name.slice(0, -8), "ms"] : [row.name, row.name === "errors" ? "%" : ""];
    const factor = { ms: 1e3, "%": 100 }[unit] ?? 1;
    const digits = unit === "" ? 1 : 3;
    const shown = (/** @type {string} */ of) => (row[of] === null ? ""
      : `${(row[of] * factor).toFixed(digits)} ± ${((row[`${of}_within`] ?? 0) * factor).toFixed(digits)} ${unit}`.trimEnd());
    return [name, shown("a"), shown("b"), shown("difference"), row.is_clear ? "*" : ""];
  });
  show("95 % intervals from 5 seeds; * where the variant differs", [table([["", "a", "b", "b - a", ""], ...rows])], command);
}

/** @param {any} ran @param {string} seed @param {string} command */
export function run(ran, seed, command) {
  const rows = Object.entries(ran.entries).map(([name, entry]) => [name, String(entry.requests), seconds(entry.p50_seconds ?? 0),
    seconds(entry.p95_seconds ?? 0), seconds(entry.p99_seconds ?? 0)]);
  show(`digest ${ran.digest} (seed ${seed})`, [table([["entry point", "requests", "p50", "p95", "p99"], ...rows])], command);
}
