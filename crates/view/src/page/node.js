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
    cut: colour("--cut"), dot: colour("--dot"), paper: colour("--paper"),
    // From poor to rich.
    gold: [0, 1, 2, 3, 4, 5, 6, 7, 8].map((part) => `color-mix(in srgb, ${gold} ${part * 12.5}%, ${edge})`),
  };
}

/**
 * Draws a node.
 * @param {CanvasRenderingContext2D} context
 * @param {Colours} colours
 * @param {string | undefined} kind
 * @param {{ x: number, y: number, radius: number, bits: number, queue: number }} node
 */
export function drawNode(context, colours, kind, { x, y, radius, bits, queue }) {
  if (queue > 0 && kind === "services") {
    context.fillStyle = colours.warn;
    context.globalAlpha = 0.35;
    context.beginPath();
    context.arc(x, y, radius * (1.2 + 0.35 * Math.log2(1 + queue)), 0, 2 * Math.PI);
    context.fill();
    context.globalAlpha = 1;
  }
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
  if ((bits & BITS.cutOff) !== 0) {
    context.strokeStyle = colours.cut;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.arc(x, y, radius + 2, 0, 2 * Math.PI);
    context.stroke();
    context.setLineDash([]);
  }
}

/**
 * Richer pirates are more golden.
 * @param {Colours} colours
 * @param {string | undefined} kind
 * @param {number} gold
 */
function good(colours, kind, gold) {
  if (kind !== "pirates") return colours.good;
  return colours.gold[Math.min(8, Math.round(Math.log2(1 + gold)))] ?? colours.good;
}
