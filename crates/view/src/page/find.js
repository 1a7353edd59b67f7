// What is at a point of the graph, and what is next to it.

import { distance, isIn } from "./geometry.js";

/** @typedef {import("./graph.js").Graph} Graph @typedef {import("./graph.js").Chosen} Chosen */

/** What is at a point of the screen. @param {Graph} graph @param {number} x @param {number} y @returns {Chosen | null} */
export function findAt(graph, x, y) {
  let [best, least] = [-1, 12];
  for (const [place, node] of graph.nodes.entries()) {
    const [nodeX, nodeY] = graph.toScreen(node.x, node.y);
    const away = Math.hypot(nodeX - x, nodeY - y) - graph.radius(node, graph.camera.scale);
    if (away < least && away < 4) [best, least] = [place, away];
  }
  if (best >= 0) return { node: best };
  /** @type {Chosen | null} */
  let found = null;
  let closest = 5;
  const { scale } = graph.camera;
  const [sceneX, sceneY] = [
    (x - graph.front.clientWidth / 2) / scale + graph.camera.x, (y - graph.front.clientHeight / 2) / scale + graph.camera.y,
  ];
  for (const edge of graph.edges.values()) {
    if (edge.from >= graph.nodes.length || edge.to >= graph.nodes.length) continue;
    const away = distance(graph, edge.from, edge.to, sceneX, sceneY) * scale - Math.min(edge.rate, 1);
    if (away < closest) {
      closest = away;
      found = { from: edge.from, to: edge.to };
    }
  }
  // The name of an area stands for the area, and so does what is free in it; the innermost counts.
  const area = (graph.scene?.areas ?? []).findLastIndex((area) => isIn(area, sceneX, sceneY));
  return found ?? (area >= 0 ? { area } : null);
}

/**
 * The nearest node in a direction from another one; -1 if there is none.
 * @param {Graph} graph @param {number} here @param {number} dx @param {number} dy
 */
export function findNext({ nodes }, here, dx, dy) {
  const from = nodes[here];
  let [best, least] = [-1, Infinity];
  for (const [place, node] of nodes.entries()) {
    if (!from || place === here) continue;
    const [x, y] = [node.x - from.x, node.y - from.y];
    const along = x * dx + y * dy;
    const beside = Math.abs(x * dy) + Math.abs(y * dx);
    if (along > 0 && along + 2 * beside < least) [best, least] = [place, along + 2 * beside];
  }
  return best;
}
