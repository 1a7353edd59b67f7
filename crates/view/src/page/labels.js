// Names on the graph: drawn above everything else with a halo, shortened in the middle, and never over each other.

/**
 * A name to be placed: `x` is the middle, `y` the top; `place` is the node, or -1.
 * @typedef {{ name: string, x: number, y: number, room: number, place: number, isTitle: boolean }} Wanted
 * @typedef {{ name: string, text: string, x: number, y: number, width: number, height: number, place: number, isTitle: boolean }} Label
 */

const FONT = "11px system-ui, sans-serif";
const TITLE_FONT = "600 12px system-ui, sans-serif";
const HEIGHT = 13;
/** A name that is shortened to fewer letters says nothing. */
const FEWEST = 4;

/** Widths of texts by font and text. @type {Map<string, number>} */
const widths = new Map();

/** @param {CanvasRenderingContext2D} context @param {string} text */
function measure(context, text) {
  const key = `${context.font} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 20000) widths.clear();
    width = context.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

/**
 * A text in the room that there is, without letters of its middle; empty if it would say nothing.
 * @param {string} text @param {number} room @param {(text: string) => number} width
 */
export function shorten(text, room, width) {
  if (width(text) <= room) return text;
  for (let letters = text.length - 1; letters >= FEWEST; letters -= 1) {
    const after = Math.floor(letters / 2);
    const short = `${text.slice(0, letters - after)}…${text.slice(text.length - after)}`;
    if (width(short) <= room) return short;
  }
  return "";
}

/** How much wider than its room a name may be where nothing else is. */
const WIDER = 1.8;

/**
 * Places names, the first ones first; a name that would cover another one is left out. When all have been placed, those that
 * are shortened are made longer where nothing else is.
 * @param {CanvasRenderingContext2D} context @param {Wanted[]} wanted @param {number} width @param {number} height
 * @returns {Label[]}
 */
export function place(context, wanted, width, height) {
  /** @type {Map<Wanted, Label>} */
  const placed = new Map();
  const attempt = (/** @type {Wanted} */ one, /** @type {number} */ room) => {
    context.font = one.isTitle ? TITLE_FONT : FONT;
    const text = shorten(one.name, room, (text) => measure(context, text));
    if (text === "") return;
    const wide = measure(context, text);
    const { name, y, place, isTitle } = one;
    const label = { name, text, x: isTitle ? one.x : one.x - wide / 2, y, width: wide, height: HEIGHT, place, isTitle };
    if (label.x < 0 || y < 0 || label.x + wide > width || y + HEIGHT > height) return;
    for (const [owner, other] of placed) {
      const isApart = label.x >= other.x + other.width + 1 || other.x >= label.x + wide + 1;
      if (owner !== one && !isApart && y < other.y + HEIGHT && other.y < y + HEIGHT) return;
    }
    placed.set(one, label);
  };
  for (const one of wanted) attempt(one, one.room);
  for (const one of wanted) {
    if (!one.isTitle && placed.get(one)?.text !== one.name) attempt(one, WIDER * one.room);
  }
  return [...placed.values()];
}

/** @param {CanvasRenderingContext2D} context @param {Label[]} labels @param {{ ink: string, paper: string }} colours */
export function drawLabels(context, labels, colours) {
  context.textAlign = "left";
  context.textBaseline = "top";
  context.lineJoin = "round";
  context.lineWidth = 3;
  context.strokeStyle = colours.paper;
  context.fillStyle = colours.ink;
  for (const { text, x, y, isTitle } of labels) {
    context.font = isTitle ? TITLE_FONT : FONT;
    context.strokeText(text, x, y + 1);
    context.fillText(text, x, y + 1);
  }
}
