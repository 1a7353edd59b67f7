// What is drawn on the layers of the graph: areas and edges, nodes, moving dots, names.

import { STYLES } from "./edges.js";
import { along, bend, control } from "./geometry.js";
import { drawLabels, place as placeLabels } from "./labels.js";
import { drawFolded, drawNode } from "./node.js";

/** @typedef {import("./graph.js").Graph} Graph @typedef {import("./graph.js").Camera} Camera */

/** More edges than that are straight: curves would take too long to draw, and nobody could follow one of them. */
const MOST_CURVES = 20000;
/** More edges than that are thin, drawn less often, and piece by piece: a browser draws a thin line five times as fast. */
export const MANY_EDGES = 1500;
/** More nodes than that are drawn less often, and piece by piece. */
export const MANY_NODES = 400;
/** The number of edges or nodes that are drawn as one piece. */
export const PIECE = 64;
/** The width of the cell of a service in units of the scene; see crates/view/src/layout.rs. */
const CELL = 3;

/**
 * Adds the curve of an edge to the path.
 * @param {Graph} graph @param {CanvasRenderingContext2D} context @param {number} a @param {number} b
 * @param {{ scale: number, left: number, top: number }} at
 */
function addCurve(graph, context, a, b, { scale, left, top }) {
  const { xs, ys } = graph;
  bend(graph, a, b);
  const [cx, cy, dx, dy] = [control[0] ?? 0, control[1] ?? 0, control[2] ?? 0, control[3] ?? 0];
  context.moveTo((xs[a] ?? 0) * scale + left, (ys[a] ?? 0) * scale + top);
  context.bezierCurveTo(cx * scale + left, cy * scale + top, dx * scale + left, dy * scale + top,
    (xs[b] ?? 0) * scale + left, (ys[b] ?? 0) * scale + top);
}

/**
 * Draws edges in the order of their styles, and rests after each piece.
 * @param {Graph} graph @param {CanvasRenderingContext2D} context @param {{ scale: number, left: number, top: number }} at
 * @param {{ of: number, isOwn: boolean } | null} only the edges of a node, or all other edges @returns {Generator<void>}
 */
function* strokeEdges(graph, context, at, only) {
  const { colours, edges: { begins, count, from, order, to }, xs, ys } = graph;
  const { clientWidth: width, clientHeight: height } = graph.front;
  const { scale, left, top } = at;
  // Many edges would hide the nodes, and those that fail.
  const crowd = Math.max(0.3, Math.min(1, 150 / count));
  const fade = only && !only.isOwn ? 0.2 : 1;
  const isThin = count > MANY_EDGES && !only?.isOwn;
  const strokes = [colours.edge, colours.warn, colours.bad];
  for (let turn = 0; turn < STYLES.count; turn += 1) {
    // Those of what is down come last, above all others.
    const style = turn === 0 ? STYLES.quiet : turn === STYLES.count - 1 ? STYLES.down : turn + 1;
    const [begin, end] = [begins[style] ?? 0, begins[style + 1] ?? 0];
    if (begin === end) continue;
    const number = style - STYLES.first;
    context.strokeStyle = (style === STYLES.quiet ? colours.faint : style === STYLES.down ? colours.bad : strokes[number % 3]) ?? "";
    const wide = style === STYLES.quiet ? 0.5 : style === STYLES.down ? 1.5 : Math.floor(number / 3) / 2;
    context.lineWidth = isThin ? Math.min(1, wide) : wide;
    context.setLineDash(style === STYLES.down ? [5, 4] : []);
    const isWell = style === STYLES.quiet || (style !== STYLES.down && number % 3 === 0);
    context.globalAlpha = (isWell && !only ? crowd : 1) * fade;
    for (let next = begin; next < end; ) {
      context.beginPath();
      for (const stop = Math.min(end, next + PIECE); next < stop; next += 1) {
        const a = from[order[next] ?? 0] ?? 0;
        const b = to[order[next] ?? 0] ?? 0;
        if (only && (a === only.of || b === only.of) !== only.isOwn) continue;
        const ax = (xs[a] ?? 0) * scale + left;
        const ay = (ys[a] ?? 0) * scale + top;
        const bx = (xs[b] ?? 0) * scale + left;
        const by = (ys[b] ?? 0) * scale + top;
        if ((ax < 0 && bx < 0) || (ay < 0 && by < 0) || (ax > width && bx > width) || (ay > height && by > height)) continue;
        if (!graph.isStraight) {
          addCurve(graph, context, a, b, at);
          continue;
        }
        context.moveTo(ax, ay);
        context.lineTo(bx, by);
      }
      context.stroke();
      yield;
    }
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

/**
 * Draws the back, and rests after each piece.
 * @param {Graph} graph @param {CanvasRenderingContext2D} context @param {Camera} camera @returns {Generator<void>}
 */
export function* pieces(graph, context, camera) {
  const { scene, colours, nodes, edges, chosen } = graph;
  if (!scene) return;
  const { scale } = camera;
  const [left, top] = [graph.front.clientWidth / 2 - camera.x * scale, graph.front.clientHeight / 2 - camera.y * scale];
  for (const [number, area] of scene.areas.entries()) {
    const [x, y] = [area.at[0] * scale + left, area.at[1] * scale + top];
    const [wide, high] = [area.at[2] * scale, area.at[3] * scale];
    context.fillStyle = area.is_zone ? colours.zone : colours.area;
    context.beginPath();
    context.roundRect(x, y, wide, high, 6);
    context.fill();
    if (!chosen || !("area" in chosen) || number !== chosen.area) continue;
    context.strokeStyle = colours.ink;
    context.lineWidth = 2;
    context.stroke();
  }
  edges.arrange(graph.isDown, nodes.length);
  graph.isStraight = scene.folded.length === 0 || edges.count > MOST_CURVES;
  yield;
  // The edges of a chosen node are drawn above the others, which fade.
  const of = chosen && "node" in chosen ? chosen.node : -1;
  const at = { scale, left, top };
  yield* strokeEdges(graph, context, at, of < 0 ? null : { of, isOwn: false });
  if (of >= 0) yield* strokeEdges(graph, context, at, { of, isOwn: true });
  if (chosen && "from" in chosen) {
    context.strokeStyle = colours.ink;
    context.lineWidth = 3;
    context.beginPath();
    addCurve(graph, context, chosen.from, chosen.to, at);
    context.stroke();
  }
  for (let next = 0; next < nodes.length; next += PIECE) {
    drawNodes(graph, context, camera, next, Math.min(nodes.length, next + PIECE));
    yield;
  }
}

/**
 * Draws the names: of areas, of what is chosen, of services, and of instances if there is room.
 * @param {Graph} graph @param {number} chosen
 */
export function drawNames(graph, chosen) {
  const { camera, front, scene, nodes } = graph;
  if (!scene) return;
  const { scale } = camera;
  const { clientWidth: width, clientHeight: height } = front;
  const key = `${camera.x} ${camera.y} ${scale} ${width} ${height} ${chosen} ${graph.folded} ${nodes.length}`;
  if (key === graph.labelsOf) return;
  const context = graph.begin(graph.names);
  graph.labelsOf = key;
  /** @type {import("./labels.js").Wanted[]} */
  const wanted = [];
  const [stretchX, stretchY] = scene.stretch ?? [1, 1];
  for (const { name, at: [left, top, wide] } of scene.areas) {
    const [x, y] = graph.toScreen(left, top);
    wanted.push({ name, x: Math.max(x, 0) + 6, y: Math.max(y, 0) + 1, room: wide * scale - 12, place: -1, isTitle: true });
  }
  const add = (/** @type {number} */ place, /** @type {number} */ room) => {
    const node = nodes[place];
    if (!node) return;
    const [x, y] = graph.toScreen(node.x, node.y);
    if (x < 0 || y < 0 || x > width || y > height) return;
    wanted.push({ name: node.name, x, y: y + graph.radius(node, scale) + 2, room, place, isTitle: false });
  };
  if (chosen >= 0) add(chosen, 400);
  if (!graph.folded && scene.kind !== "pirates") {
    // The instances of a service have one name until their own names fit.
    for (const { name, x: left, y: top } of scene.folded) {
      const [x, y] = graph.toScreen(left, top + 0.85 * stretchY);
      wanted.push({ name, x, y, room: CELL * stretchX * scale - 4, place: -1, isTitle: false });
    }
  }
  for (const [place, node] of nodes.entries()) {
    const room = (graph.folded ? CELL : node.size) * stretchX * scale - 4;
    if (place !== chosen && room > 10) add(place, room);
    if (wanted.length > 1500) break;
  }
  graph.labels = placeLabels(context, wanted, width, height);
  drawLabels(context, graph.labels, graph.colours);
}

/**
 * Draws some nodes. @param {Graph} graph @param {CanvasRenderingContext2D} context @param {Camera} camera @param {number} begin
 * @param {number} end
 */
export function drawNodes(graph, context, camera, begin, end) {
  const { colours, nodes, xs, ys } = graph;
  const { clientWidth: width, clientHeight: height } = graph.front;
  const { scale } = camera;
  const [left, top] = [width / 2 - camera.x * scale, height / 2 - camera.y * scale];
  const chosen = graph.chosen && "node" in graph.chosen ? graph.chosen.node : -1;
  for (let place = begin; place < end; place += 1) {
    const node = nodes[place];
    const [x, y] = [(xs[place] ?? 0) * scale + left, (ys[place] ?? 0) * scale + top];
    if (!node || x < -20 || y < -20 || x > width + 20 || y > height + 20) continue;
    const radius = graph.radius(node, scale);
    const [up, all] = [graph.health[2 * place] ?? 0, graph.health[2 * place + 1] ?? 0];
    const use = node.slots > 0 ? (graph.busy[place] ?? 0) / (node.slots * Math.max(all, 1)) : 0;
    const drawn = { x, y, radius, bits: graph.bits[place] ?? 0, queue: graph.queues[place] ?? 0, use };
    if (graph.folded) drawFolded(context, colours, drawn, up, all);
    else drawNode(context, colours, graph.scene?.kind, drawn);
    if (place === chosen) {
      context.strokeStyle = colours.ink;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x, y, radius + 4, 0, 2 * Math.PI);
      context.stroke();
    }
  }
}

/**
 * The dots of all edges, or an even part of them if they are too many.
 * @param {Graph} graph @param {CanvasRenderingContext2D} context
 */
export function drawDots(graph, context) {
  const { camera, colours, edges: { allDots, busy, busyCount, dots, takes, from, to }, nodes, xs, ys, dotTime } = graph;
  const { clientWidth: width, clientHeight: height } = graph.front;
  const { scale } = camera;
  const size = Math.min(4, Math.max(2, scale / 6));
  const [left, top] = [width / 2 - camera.x * scale - size / 2, height / 2 - camera.y * scale - size / 2];
  context.fillStyle = colours.dot;
  const share = Math.min(1, graph.mostDots / Math.max(allDots, 1));
  const chosen = graph.chosen && "node" in graph.chosen ? graph.chosen.node : -1;
  /** The square of a node's radius. @param {import("./socket.js").SceneNode | undefined} node */
  const square = (node) => (node ? (graph.radius(node, scale) / scale) ** 2 : 0);
  let due = 0;
  for (let n = 0; n < busyCount; n += 1) {
    due += (dots[n] ?? 0) * share;
    const count = Math.floor(due);
    if (count === 0) continue;
    due -= count;
    const a = from[busy[n] ?? 0] ?? 0;
    const b = to[busy[n] ?? 0] ?? 0;
    if (chosen >= 0 && a !== chosen && b !== chosen) continue;
    bend(graph, a, b);
    const [ax, ay, bx, by] = [xs[a] ?? 0, ys[a] ?? 0, xs[b] ?? 0, ys[b] ?? 0];
    const [cx, cy, dx, dy] = [control[0] ?? 0, control[1] ?? 0, control[2] ?? 0, control[3] ?? 0];
    // A dot passes below the nodes at both ends.
    const [belowA, belowB] = [square(nodes[a]), square(nodes[b])];
    // Each edge begins at a moment of its own.
    const begin = dotTime / (takes[n] ?? 1) + ((a * 7919 + b * 104729) % 1000) / 1000;
    for (let dot = 0; dot < count; dot += 1) {
      const part = (begin + dot / count) % 1;
      const [x, y] = [along(ax, cx, dx, bx, part), along(ay, cy, dy, by, part)];
      if ((x - ax) ** 2 + (y - ay) ** 2 < belowA || (x - bx) ** 2 + (y - by) ** 2 < belowB) continue;
      const [dotX, dotY] = [x * scale + left, y * scale + top];
      if (dotX > -size && dotY > -size && dotX < width && dotY < height) context.fillRect(dotX, dotY, size, size);
    }
  }
}
