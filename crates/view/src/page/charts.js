// Curves over virtual time, histograms, densities: drawn by hand on canvases.

/**
 * @typedef {{ from: number, to: number, rate: number, errors: number, p50: number | null, p99: number | null,
 *   p999: number | null, queue: number, utilisation: number | null }} Point
 * @typedef {{ name: string, colour: string, of: (point: Point) => number | null }} Curve
 */

/** @param {string} name */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * A number as people read it.
 * @param {number} value
 */
export function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)} k`;
  return size >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

/**
 * Seconds as people read them.
 * @param {number} value
 */
export function seconds(value) {
  if (value >= 1) return `${Number(value.toPrecision(4))} s`;
  if (value >= 1e-3) return `${Number((value * 1e3).toPrecision(3))} ms`;
  return `${Number((value * 1e6).toPrecision(3))} µs`;
}

/** The time under the pointer, for all charts; null if there is none. */
let cursor = /** @type {number | null} */ (null);
/** The times at the edges of each chart. @type {WeakMap<HTMLCanvasElement, { from: number, to: number, left: number, right: number }>} */
const spans = new WeakMap();

/**
 * Shows the values at the time under the pointer, in all charts.
 * @param {HTMLElement} charts
 * @param {() => void} redraw
 */
export function follow(charts, redraw) {
  charts.addEventListener("pointermove", (event) => {
    const canvas = event.target;
    const span = canvas instanceof HTMLCanvasElement ? spans.get(canvas) : undefined;
    const x = event.offsetX;
    const wide = canvas instanceof HTMLCanvasElement ? canvas.clientWidth : 0;
    if (!span || x < span.left || x > wide - span.right) cursor = null;
    else cursor = span.from + ((x - span.left) / (wide - span.left - span.right)) * (span.to - span.from);
    redraw();
  });
  charts.addEventListener("pointerleave", () => {
    cursor = null;
    redraw();
  });
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
 * Curves over time.
 * @param {HTMLCanvasElement} canvas
 * @param {Point[]} points
 * @param {Curve[]} curves
 * @param {[number, string][]} marks
 * @param {{ log?: boolean, top?: number, unit?: (value: number) => string }} how
 */
export function drawCurves(canvas, points, curves, marks, { log = false, top = 0, unit = short } = {}) {
  // A chart of nothing is not shown.
  canvas.hidden = !points.some((point) => curves.some((curve) => (curve.of(point) ?? 0) > 0));
  if (canvas.hidden) return;
  const { context, width, height } = begin(canvas);
  const [left, right, below] = [52, 6, 16];
  const first = points[0];
  const last = points.at(-1);
  context.fillStyle = colour("--ink");
  context.textBaseline = "top";
  const under = cursor === null ? undefined : points.find((point) => point.from <= (cursor ?? 0) && (cursor ?? 0) <= point.to);
  let [at, above] = [0, 1];
  for (const curve of curves) {
    const value = under ? curve.of(under) : null;
    const name = value === null ? curve.name : `${curve.name} ${unit(value)}`;
    const wide = 20 + context.measureText(name).width;
    if (at > 0 && at + wide > width) [at, above] = [0, above + 13];
    context.fillStyle = colour(curve.colour);
    context.fillRect(at, above + 4, 8, 4);
    context.fillStyle = colour("--ink");
    context.fillText(name, at + 11, above);
    at += wide;
  }
  above += 17;
  if (!first || !last) return;
  const values = curves.flatMap((curve) => points.map(curve.of)).filter((value) => value !== null && value > 0);
  let most = top || Math.max(...values.map(Number), log ? 1e-6 : 1e-9);
  const least = log ? Math.min(...values.map(Number), most / 10) : 0;
  if (!top && !log) most = Math.max(most * 1.1, 1e-3);
  const [from, to] = [first.from, Math.max(last.to, first.from + 1e-9)];
  spans.set(canvas, { from, to, left, right });
  const x = (/** @type {number} */ time) => left + ((time - from) / (to - from)) * (width - left - right);
  const y = (/** @type {number} */ value) => {
    const part = log
      ? Math.log(Math.max(value, least) / least) / Math.log(most / least || 2)
      : value / most;
    return height - below - part * (height - above - below);
  };
  context.strokeStyle = colour("--faint");
  context.lineWidth = 0.5;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of log ? [least, Math.sqrt(least * most), most] : [0, most / 2, most]) {
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
  context.strokeStyle = colour("--bad");
  context.setLineDash([2, 3]);
  for (const [time] of marks) {
    if (time < from || time > to) continue;
    context.beginPath();
    context.moveTo(x(time), above);
    context.lineTo(x(time), height - below);
    context.stroke();
  }
  context.setLineDash([]);
  if (cursor !== null && cursor >= from && cursor <= to) {
    context.strokeStyle = colour("--ink");
    context.beginPath();
    context.moveTo(x(cursor), above);
    context.lineTo(x(cursor), height - below);
    context.stroke();
    context.textAlign = "center";
    context.fillText(seconds(cursor), Math.min(width - 90, Math.max(left + 70, x(cursor))), height);
  }
  context.lineWidth = 1.5;
  for (const curve of curves) {
    context.strokeStyle = colour(curve.colour);
    context.beginPath();
    let isDrawing = false;
    let until = -Infinity;
    for (const point of points) {
      const value = curve.of(point);
      // Time that nobody watched is a gap.
      if (point.from - until > 0.5 * (point.to - point.from)) isDrawing = false;
      until = point.to;
      if (value === null) {
        isDrawing = false;
        continue;
      }
      const middle = x((point.from + point.to) / 2);
      if (isDrawing) context.lineTo(middle, y(value));
      else context.moveTo(middle, y(value));
      isDrawing = true;
    }
    context.stroke();
  }
}

/**
 * Bars with their labels.
 * @param {HTMLCanvasElement} canvas
 * @param {[string, number][]} bars
 */
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
    if (place % every === 0) context.fillText(label, place * step + step / 2, height);
  }
}

/**
 * How many there are of each pair: darker is more.
 * @param {HTMLCanvasElement} canvas
 * @param {number[][]} rows
 */
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
