// A node as it is drawn: its colour is its state, and so is a mark, because colours alone say nothing.

import { BITS } from "./socket.js";

/** @typedef {ReturnType<typeof readColours>} Colours */

/** @param {string} name */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The colours of the page's scheme. */
export function readColours() {
  const [gold, edge] = [colour("--gold"), colour("--edge")];
  return {
    ink: colour("--ink"), faint: colour("--faint"), area: colour("--area"), zone: colour("--zone"), edge,
    warn: colour("--warn"), bad: colour("--bad"), good: colour("--good"), slow: colour("--slow"),
    cut: colour("--cut"), dot: colour("--dot"), paper: colour("--paper"), use: colour("--use"),
    // From poor to rich.
    gold: [0, 1, 2, 3, 4, 5, 6, 7, 8].map((part) => `color-mix(in srgb, ${gold} ${part * 12.5}%, ${edge})`),
  };
}

/**
 * Draws a node. @param {CanvasRenderingContext2D} context @param {Colours} colours @param {string | undefined} kind
 * @param {{ x: number, y: number, radius: number, bits: number, queue: number }} node
 */
export function drawNode(context, colours, kind, { x, y, radius, bits, queue }) {
  if (kind === "services") drawQueue(context, colours, x, y, radius, queue);
  const isDown = (bits & BITS.down) !== 0;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  if ((bits & (BITS.gone | BITS.away)) !== 0) {
    context.fillStyle = colours.paper;
    context.fill();
    context.strokeStyle = (bits & BITS.gone) !== 0 ? colours.faint : colours.good;
    context.lineWidth = 1;
    context.stroke();
  } else {
    const isPaused = (bits & BITS.paused) !== 0;
    context.fillStyle = isDown ? colours.bad : isPaused ? colours.faint : (bits & BITS.slow) !== 0 ? colours.slow : good(colours, kind, queue);
    context.fill();
  }
  context.strokeStyle = isDown ? colours.paper : colours.ink;
  context.lineWidth = Math.max(radius / 5, 1);
  const arm = radius * 0.5;
  if (isDown) {
    // A cross, and for a pause two bars: colours alone say nothing.
    context.beginPath();
    context.moveTo(x - arm, y - arm);
    context.lineTo(x + arm, y + arm);
    context.moveTo(x + arm, y - arm);
    context.lineTo(x - arm, y + arm);
    context.stroke();
  } else if ((bits & BITS.paused) !== 0) {
    context.beginPath();
    context.moveTo(x - arm / 2, y - arm);
    context.lineTo(x - arm / 2, y + arm);
    context.moveTo(x + arm / 2, y - arm);
    context.lineTo(x + arm / 2, y + arm);
    context.stroke();
  }
  if ((bits & BITS.cutOff) !== 0) drawCut(context, colours, x, y, radius);
}

/**
 * Draws the instances of a service in a zone: a ring whose red part is down, and how many serve.
 * @param {CanvasRenderingContext2D} context @param {Colours} colours
 * @param {{ x: number, y: number, radius: number, bits: number, queue: number, use: number }} node `use` is the part of slots in use
 * @param {number} up @param {number} all
 */
export function drawFolded(context, colours, { x, y, radius, bits, queue, use }, up, all) {
  drawQueue(context, colours, x, y, radius, queue);
  const circle = (/** @type {string} */ style, from = 0, to = 1) => {
    context.strokeStyle = style;
    context.beginPath();
    context.arc(x, y, radius - context.lineWidth / 2, (2 * from - 0.5) * Math.PI, (2 * to - 0.5) * Math.PI);
    context.stroke();
  };
  context.fillStyle = colours.paper;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
  if (use > 0) {
    // It fills up from below.
    const half = Math.acos(1 - 2 * Math.min(1, use));
    context.fillStyle = colours.use;
    context.beginPath();
    context.arc(x, y, radius, 0.5 * Math.PI - half, 0.5 * Math.PI + half);
    context.fill();
  }
  context.lineWidth = Math.max(2, radius / 5);
  const isIdle = all === 0 || (bits & BITS.gone) !== 0;
  const serves = (bits & BITS.paused) !== 0 ? colours.faint : (bits & BITS.slow) !== 0 ? colours.slow : colours.good;
  circle(isIdle ? colours.faint : serves);
  if (!isIdle && up < all) circle(colours.bad, up / all, 1);
  if ((bits & BITS.cutOff) !== 0) drawCut(context, colours, x, y, radius);
  if (radius < 9 || isIdle) return;
  const text = up === all ? String(all) : `${up}/${all}`;
  context.font = `600 ${Math.min(12, Math.max(8, radius * (text.length > 3 ? 0.62 : 0.8)))}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = up === all ? colours.ink : colours.bad;
  context.fillText((bits & BITS.paused) !== 0 && up === all ? "‖" : text, x, y + 0.5);
}

/**
 * A halo that grows with the queue.
 * @param {CanvasRenderingContext2D} context @param {Colours} colours @param {number} x @param {number} y
 * @param {number} radius @param {number} queue
 */
function drawQueue(context, colours, x, y, radius, queue) {
  if (queue <= 0) return;
  context.fillStyle = colours.warn;
  context.globalAlpha = 0.35;
  context.beginPath();
  context.arc(x, y, radius * Math.min(2.2, 1.2 + 0.12 * Math.log2(1 + queue)), 0, 2 * Math.PI);
  context.fill();
  context.globalAlpha = 1;
}

/**
 * A dashed ring around what is cut off.
 * @param {CanvasRenderingContext2D} context @param {Colours} colours @param {number} x @param {number} y @param {number} radius
 */
function drawCut(context, colours, x, y, radius) {
  context.strokeStyle = colours.cut;
  context.lineWidth = 2;
  context.setLineDash([3, 3]);
  context.beginPath();
  context.arc(x, y, radius + 3, 0, 2 * Math.PI);
  context.stroke();
  context.setLineDash([]);
}

/** Richer pirates are more golden. @param {Colours} colours @param {string | undefined} kind @param {number} gold */
function good(colours, kind, gold) {
  if (kind !== "pirates") return colours.good;
  return colours.gold[Math.min(8, Math.round(Math.log2(1 + gold)))] ?? colours.good;
}
