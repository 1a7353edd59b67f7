// Curves and a bar of virtual time, histograms, densities: drawn by hand on canvases.

/**
 * @typedef {{ from: number, to: number, rate: number, errors: number, p50: number | null, p99: number | null,
 *   p999: number | null, queue: number, utilisation: number | null }} Point
 * @typedef {{ name: string, colour: string, of: (point: Point) => number | null }} Curve
 */

/** @param {string} name */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A number as people read it. @param {number} value */
export function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)} k`;
  return size >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

/** Seconds as people read them. @param {number} value */
export function seconds(value) {
  if (value >= 1 || value === 0) return `${Number(value.toPrecision(4))} s`;
  if (value >= 1e-3) return `${Number((value * 1e3).toPrecision(3))} ms`;
  return `${Number((value * 1e6).toPrecision(3))} µs`;
}

/**
 * What all charts show: the part of the run that was chosen (null: all of it), the time under the pointer, the earlier time
 * that is looked at, and the part that is being chosen.
 * @type {{ span: [number, number] | null, cursor: number | null, at: number | null, brush: [number, number] | null }}
 */
export const shown = { span: null, cursor: null, at: null, brush: null };
/** The times at the edges of each chart. @type {WeakMap<HTMLCanvasElement, { from: number, to: number, left: number, right: number }>} */
const spans = new WeakMap();

/** The time at a place of a chart, in pixels; null if it has none. @param {HTMLCanvasElement} canvas @param {number} x */
export function timeAt(canvas, x) {
  const span = spans.get(canvas);
  if (!span) return null;
  const part = (x - span.left) / Math.max(1, canvas.clientWidth - span.left - span.right);
  return span.from + Math.max(0, Math.min(1, part)) * (span.to - span.from);
}

/** A drag that is shorter than this, in pixels, is a click. */
const CLICK = 4;

/**
 * Shows the values at the time under the pointer in all charts; a drag chooses a part of the run, a double click all of it,
 * and a click a time to look at. @param {HTMLElement} charts @param {() => void} redraw @param {(time: number) => void} look
 */
export function follow(charts, redraw, look) {
  /** @type {{ canvas: HTMLCanvasElement, x: number, time: number } | null} */
  let begun = null;
  const on = (/** @type {PointerEvent} */ event) => (event.target instanceof HTMLCanvasElement ? event.target : null);
  charts.addEventListener("pointerdown", (event) => {
    const canvas = on(event);
    const time = canvas && timeAt(canvas, event.offsetX);
    if (!canvas || time === null) return;
    begun = { canvas, x: event.offsetX, time };
    canvas.setPointerCapture?.(event.pointerId);
  });
  charts.addEventListener("pointermove", (event) => {
    const canvas = begun?.canvas ?? on(event);
    shown.cursor = canvas && timeAt(canvas, event.offsetX);
    const isDrag = begun && shown.cursor !== null && Math.abs(event.offsetX - begun.x) >= CLICK;
    if (begun && isDrag) shown.brush = [Math.min(begun.time, shown.cursor ?? 0), Math.max(begun.time, shown.cursor ?? 0)];
    redraw();
  });
  charts.addEventListener("pointerup", () => {
    if (shown.brush) shown.span = shown.brush;
    else if (begun) look(begun.time);
    shown.brush = begun = null;
    redraw();
  });
  for (const leaves of ["pointerleave", "pointercancel"]) {
    charts.addEventListener(leaves, () => {
      shown.cursor = shown.brush = begun = null;
      redraw();
    });
  }
  charts.addEventListener("dblclick", () => {
    shown.span = null;
    redraw();
  });
}

/** Values on an axis from 0, a round step apart. @param {number} most */
function ticks(most) {
  const power = 10 ** Math.floor(Math.log10(most / 2));
  const step = ([5, 2, 1].find((factor) => factor * power * 2 <= most) ?? 1) * power;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, n) => n * step);
}

/** Values on a logarithmic axis: 1, 2 and 5 times powers of ten, or only the powers if those are many. @param {number} least @param {number} most */
function logTicks(least, most) {
  const powers = Math.log10(most / least);
  const factors = powers > 3 ? [1] : powers > 1.2 ? [1, 3] : [1, 2, 5];
  const first = Math.floor(Math.log10(least));
  const all = Array.from({ length: Math.ceil(powers) + 2 }, (_, n) => factors.map((factor) => factor * 10 ** (first + n))).flat();
  return all.filter((value) => value >= least * 0.999 && value <= most * 1.001);
}

/**
 * Draws a mark of time from top to bottom.
 * @param {CanvasRenderingContext2D} context @param {string} style @param {number} x @param {number} top @param {number} bottom
 */
function upright(context, style, x, top, bottom) {
  context.strokeStyle = colour(style);
  context.beginPath();
  context.moveTo(x, top);
  context.lineTo(x, bottom);
  context.stroke();
}

/** The colour of a stage, a fault or the end of a fault. @param {string} name @param {string} text */
export const styleOf = (name, text) => (text ? "--edge" : name.endsWith(" ends") ? "--good" : "--bad");

/** Two points with nothing measured between them. @param {Point} before @param {Point} next */
const isGap = (before, next) => next.from - before.to > 1e-6 * (next.to - next.from);

/**
 * The bar of time: what was measured, faults and stages above, commands below, the part that is chosen, and the time.
 * @param {HTMLCanvasElement} canvas @param {Point[]} points
 * @param {{ end: number, now: number, faults: { at: number, name: string, text: string }[], commands: [number, string][] }} run
 */
export function drawBar(canvas, points, { end, now, faults, commands }) {
  const { context, width, height } = begin(canvas);
  const [left, right] = [8, 8];
  const to = Math.max(end, now, 1e-9);
  spans.set(canvas, { from: 0, to, left, right });
  const x = (/** @type {number} */ time) => left + (time / to) * (width - left - right);
  const [top, below] = [14, height - 15];
  context.fillStyle = colour("--area");
  context.fillRect(x(0), top, x(to) - x(0), below - top);
  context.globalAlpha = 0.55;
  context.fillStyle = colour("--edge");
  const most = Math.max(1e-9, ...points.map((point) => point.rate));
  for (const { from, to: until, rate } of points) {
    const high = 3 + (rate / most) * (below - top - 3);
    context.fillRect(x(from), below - high, Math.max(1, x(until) - x(from) + 0.5), high);
  }
  context.globalAlpha = 1;
  const part = shown.brush ?? shown.span;
  context.lineWidth = 1.5;
  context.strokeStyle = colour("--ink");
  if (part) context.strokeRect(x(part[0]), top - 1, Math.max(2, x(part[1]) - x(part[0])), below - top + 2);
  // Faults are above stages that begin with them.
  for (const { at, name, text } of [...faults].sort((a, b) => b.text.length - a.text.length)) {
    context.fillStyle = colour(styleOf(name, text));
    context.beginPath();
    context.moveTo(x(at) - 4, 4);
    context.lineTo(x(at) + 4, 4);
    context.lineTo(x(at), 12);
    context.fill();
  }
  // Their names, the stages first, where there is room beside the marks.
  const [marks, named] = [faults.map((fault) => x(fault.at)), new Set()];
  context.fillStyle = colour("--hint");
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const { at, name } of [...faults].sort((a, b) => Number(b.text !== "") - Number(a.text !== ""))) {
    const begins = x(at) + 7;
    const ends = begins + context.measureText(name).width;
    if (ends > width || named.has(x(at)) || marks.some((mark) => mark > x(at) + 1 && mark < ends + 8)) continue;
    context.fillText(name, begins, 7);
    named.add(x(at));
  }
  for (const [at] of commands) upright(context, "--ink", x(at), below - 7, below + 3);
  context.fillStyle = colour("--ink");
  context.textBaseline = "bottom";
  const step = ticks(to).filter((time) => x(time) < width - 80);
  for (const time of step) {
    context.textAlign = time === 0 ? "left" : "center";
    context.fillText(seconds(time), x(time), height);
  }
  context.textAlign = "right";
  context.fillText(seconds(to), width, height);
  context.lineWidth = 2;
  upright(context, "--good", x(now), top - 3, below + 3);
  if (shown.cursor !== null) upright(context, "--faint", x(shown.cursor), top, below);
  if (shown.at === null) return;
  upright(context, "--ink", x(shown.at), top - 6, below + 4);
  context.beginPath();
  context.arc(x(shown.at), top - 3, 4, 0, 7);
  context.fill();
}

/** @param {HTMLCanvasElement} canvas */
function begin(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser has no 2D canvas");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  return { context, width, height };
}

/**
 * Curves over time, below a legend with the values at the time that is looked at.
 * @param {HTMLCanvasElement} canvas @param {Point[]} all @param {Curve[]} possible those without values are left out
 * @param {{ at: number, style: string }[]} marks
 * @param {{ log?: boolean, top?: number, unit?: (value: number) => string }} how
 */
export function drawCurves(canvas, all, possible, marks, { log = false, top = 0, unit = short } = {}) {
  // A chart of nothing is not shown.
  const curves = possible.filter((curve) => all.some((point) => curve.of(point) !== null));
  canvas.hidden = !all.some((point) => curves.some((curve) => (curve.of(point) ?? 0) > 0));
  if (canvas.hidden) return;
  const [first, last, span] = [all[0], all.at(-1), shown.span];
  const points = span ? all.filter(({ from, to }) => to >= span[0] && from <= span[1]) : all;
  const time = shown.cursor ?? shown.at;
  const under = time === null ? undefined : points.findLast((point) => point.from <= time && time <= point.to);
  const legend = /** @type {HTMLElement} */ (canvas.previousElementSibling);
  legend.replaceChildren(...curves.map((curve) => {
    const [one, mark, value] = [document.createElement("span"), document.createElement("i"), under ? curve.of(under) : null];
    mark.style.background = `var(${curve.colour})`;
    one.append(mark, value === null ? curve.name : `${curve.name} ${unit(value)}`);
    return one;
  }), time === null ? "" : `at ${seconds(time)}`);
  const { context, width, height } = begin(canvas);
  const [left, right, above, below] = [52, 6, 6, 16];
  if (!first || !last) return;
  const values = curves.flatMap((curve) => points.map(curve.of)).filter((value) => value !== null && value > 0);
  const most = top || Math.max(...values.map(Number), log ? 1e-6 : 1e-9) * (log ? 1 : 1.1);
  const least = log ? Math.min(...values.map(Number), most / 10) : 0;
  // Measurements begin with the first page; what is close to the beginning of the run is its beginning.
  const begins = first.from < 0.05 * last.to ? 0 : first.from;
  const [from, to] = span ?? [begins, Math.max(last.to, begins + 1e-9)];
  spans.set(canvas, { from, to, left, right });
  const x = (/** @type {number} */ time) => left + ((time - from) / (to - from)) * (width - left - right);
  const y = (/** @type {number} */ value) => {
    const part = log
      ? Math.log(Math.max(value, least) / least) / Math.log(most / least || 2)
      : value / most;
    return height - below - part * (height - above - below);
  };
  context.strokeStyle = colour("--faint");
  context.fillStyle = colour("--ink");
  context.lineWidth = 0.5;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of log ? logTicks(least, most) : ticks(most)) {
    context.beginPath();
    context.moveTo(left, y(value));
    context.lineTo(width - right, y(value));
    context.stroke();
    context.fillText(unit(value), left - 4, y(value));
  }
  context.textBaseline = "bottom";
  context.fillText(seconds(to), width - right, height);
  context.textAlign = "left";
  context.fillText(seconds(from), left, height);
  const [high, low] = [above, height - below];
  context.save();
  context.beginPath();
  context.rect(left, 0, width - left - right, height);
  context.clip();
  if (shown.brush) {
    context.fillStyle = colour("--zone");
    context.fillRect(x(shown.brush[0]), high, x(shown.brush[1]) - x(shown.brush[0]), low - high);
  }
  context.setLineDash([2, 3]);
  for (const { at, style } of marks) upright(context, style, x(at), high, low);
  context.setLineDash([]);
  if (shown.cursor !== null) upright(context, "--ink", x(shown.cursor), high, low);
  context.lineWidth = 1.5;
  if (shown.at !== null) upright(context, "--ink", x(shown.at), high, low);
  for (const curve of curves) {
    context.strokeStyle = colour(curve.colour);
    context.beginPath();
    /** The last point of the line so far. @type {Point | null} */
    let before = null;
    for (const point of points) {
      const value = curve.of(point);
      // A measurement holds for its interval; time without data is a gap.
      if (value !== null) {
        if (before && !isGap(before, point)) context.lineTo(x(point.from), y(value));
        else context.moveTo(x(point.from) - 0.5, y(value));
        context.lineTo(x(point.to), y(value));
      }
      before = value === null ? null : point;
    }
    context.stroke();
  }
  context.restore();
}

/** Bars with their labels. @param {HTMLCanvasElement} canvas @param {[string, number][]} bars */
export function drawBars(canvas, bars) {
  const { context, width, height } = begin(canvas);
  const most = Math.max(1, ...bars.map(([, count]) => count));
  const step = width / Math.max(bars.length, 1);
  context.textAlign = "center";
  context.textBaseline = "bottom";
  for (const [place, [label, count]] of bars.entries()) {
    const size = (count / most) * (height - 18);
    context.fillStyle = colour("--edge");
    context.fillRect(place * step + 1, height - 14 - size, Math.max(step - 2, 1), size);
    const every = Math.ceil(46 / step);
    context.fillStyle = colour("--ink");
    const half = context.measureText(label).width / 2;
    if (place % every === 0) context.fillText(label, Math.min(width - half, Math.max(half, (place + 0.5) * step)), height);
  }
}

/** How many there are of each pair: darker is more. @param {HTMLCanvasElement} canvas @param {number[][]} rows */
export function drawDensity(canvas, rows) {
  const { context, width, height } = begin(canvas);
  const most = Math.max(1, ...rows.flat());
  const [columns, ink] = [rows[0]?.length ?? 1, colour("--edge")];
  const [stepX, stepY] = [width / columns, height / Math.max(rows.length, 1)];
  context.fillStyle = ink;
  for (const [row, counts] of rows.entries()) {
    for (const [column, count] of counts.entries()) {
      if (count === 0) continue;
      context.globalAlpha = 0.12 + (0.88 * Math.log(1 + count)) / Math.log(1 + most);
      context.fillRect(column * stepX, height - (row + 1) * stepY, stepX - 1, stepY - 1);
    }
  }
  context.globalAlpha = 1;
}
