// Fits a scene to the window: regions in as many columns as suit it, and all of it stretched one way. The scene comes as the
// session has placed it, without knowing the window.

/**
 * @typedef {import("./socket.js").Scene} Scene
 * @typedef {{ x: number, y: number, width: number, height: number, dx: number, dy: number }} Region
 */

const GAP = 0.6;

/** How far regions have been moved, by scene. @type {WeakMap<Scene, { columns: number, regions: Map<string, Region>, below: number, high: number }>} */
const known = new WeakMap();

/** The most that a scene is stretched. */
const MOST_STRETCH = 2;

/** Multiplies all coordinates. @param {Scene} scene @param {number} x @param {number} y */
function multiply(scene, x, y) {
  for (const node of [...scene.nodes, ...scene.folded]) {
    node.x *= x;
    node.y *= y;
  }
  for (const { at } of scene.areas) {
    at[0] *= x;
    at[1] *= y;
    at[2] *= x;
    at[3] *= y;
  }
  scene.width *= x;
  scene.height *= y;
}

/**
 * Fits a scene to a window. True if anything has moved. @param {Scene} scene @param {number} width of the window
 * @param {number} height
 */
export function fitTo(scene, width, height) {
  if (scene.folded.length === 0 || width < 1 || height < 1) return false;
  const [x, y] = scene.stretch ?? [1, 1];
  multiply(scene, 1 / x, 1 / y);
  arrange(scene, width, height);
  const ratio = width / height / (scene.width / scene.height);
  const limit = (/** @type {number} */ factor) => Math.min(MOST_STRETCH, Math.max(1, factor));
  scene.stretch = [limit(ratio), limit(1 / ratio)];
  multiply(scene, ...scene.stretch);
  return true;
}

/** @param {Scene} scene */
function read(scene) {
  const regions = new Map();
  let high = 0;
  for (const { name, is_zone: isZone, at: [x, y, width, height] } of scene.areas) {
    if (isZone) continue;
    regions.set(name, { x, y, width, height, dx: 0, dy: 0 });
    high = Math.max(high, y + height);
  }
  return { columns: 0, regions, below: 0, high };
}

/**
 * Moves regions, and what is in them, so that the drawing is as large as it can be.
 * @param {Scene} scene @param {number} width of the window @param {number} height
 */
function arrange(scene, width, height) {
  const before = known.get(scene) ?? read(scene);
  known.set(scene, before);
  const boxes = [...before.regions.values()];
  if (boxes.length < 2) return;
  const wide = Math.max(...boxes.map((box) => box.width)) + GAP;
  const tall = Math.max(...boxes.map((box) => box.height)) + GAP;
  const top = Math.min(...boxes.map((box) => box.y));
  const rest = scene.height - (before.high + before.below - top);
  const scale = (/** @type {number} */ columns) =>
    Math.min(width / (columns * wide), height / (Math.ceil(boxes.length / columns) * tall + rest));
  let columns = 1;
  for (let more = 2; more <= boxes.length; more += 1) if (scale(more) >= scale(columns)) columns = more;
  if (columns === before.columns) return;
  const rows = Math.ceil(boxes.length / columns);
  const below = top + rows * tall - before.high;
  /** @type {Map<string, { dx: number, dy: number }>} */
  const moves = new Map();
  for (const [number, [name, box]] of [...before.regions].entries()) {
    const dx = GAP + (number % columns) * wide - box.x;
    const dy = Math.floor(number / columns) * tall + top - box.y;
    moves.set(name, { dx: dx - box.dx, dy: dy - box.dy });
    Object.assign(box, { dx, dy });
  }
  const newWidth = columns * wide + GAP;
  const [aside, down] = [(newWidth - scene.width) / 2, below - before.below];
  const after = before.high + before.below;
  for (const node of [...scene.nodes, ...scene.folded]) {
    const { dx, dy } = moves.get(node.region) ?? { dx: aside, dy: node.y > after ? down : 0 };
    node.x += dx;
    node.y += dy;
  }
  let region = "";
  for (const area of scene.areas) {
    if (!area.is_zone) region = area.name;
    const { dx, dy } = moves.get(region) ?? { dx: 0, dy: 0 };
    area.at[0] += dx;
    area.at[1] += dy;
  }
  scene.width = newWidth;
  scene.height += down;
  Object.assign(before, { columns, below });
}
