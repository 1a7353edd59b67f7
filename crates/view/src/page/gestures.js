// What pointers and keys do to the graph: pan, zoom, pinch, choose, hover.

import { findAt } from "./find.js";

/** @typedef {import("./graph.js").Graph} Graph */

/** A pointer that moves less than this, in pixels, clicks. */
const CLICK = 4;

/** @param {Graph} graph @param {(found: import("./graph.js").Chosen | null, x: number, y: number) => void} hover */
export function listen(graph, hover) {
  const { front } = graph;
  /** The pointers that are down. @type {Map<number, { x: number, y: number }>} */
  const held = new Map();
  let isClick = false;
  const at = (/** @type {{ clientX: number, clientY: number }} */ event) => {
    const { left, top } = front.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  front.addEventListener("pointerdown", (event) => {
    held.set(event.pointerId, at(event));
    isClick = held.size === 1;
    front.setPointerCapture(event.pointerId);
    hover(null, 0, 0);
  });
  front.addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId);
    const now = at(event);
    if (!before) {
      hover(findAt(graph, now.x, now.y), now.x, now.y);
      return;
    }
    if (isClick && Math.hypot(now.x - before.x, now.y - before.y) < CLICK) return;
    isClick = false;
    held.set(event.pointerId, now);
    const other = [...held].find(([id]) => id !== event.pointerId)?.[1];
    if (!other) return graph.pan(now.x - before.x, now.y - before.y);
    const apart = (/** @type {{ x: number, y: number }} */ one) => Math.max(1, Math.hypot(one.x - other.x, one.y - other.y));
    graph.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    graph.zoom(apart(now) / apart(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
  });
  const release = (/** @type {PointerEvent} */ event) => {
    const wasClick = held.delete(event.pointerId) && isClick && event.type === "pointerup";
    isClick = false;
    const { x, y } = at(event);
    if (wasClick) graph.setChosen(findAt(graph, x, y));
  };
  front.addEventListener("pointerup", release);
  front.addEventListener("pointercancel", release);
  front.addEventListener("pointerleave", () => hover(null, 0, 0));
  front.addEventListener("dblclick", (event) => {
    const { x, y } = at(event);
    graph.unfold(findAt(graph, x, y));
  });
  front.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { x, y } = at(event);
    hover(null, 0, 0);
    graph.zoom(Math.exp(-event.deltaY / 400), x, y);
  }, { passive: false });
  front.addEventListener("keydown", (event) => {
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => graph.move(-1, 0), ArrowRight: () => graph.move(1, 0),
      ArrowUp: () => graph.move(0, -1), ArrowDown: () => graph.move(0, 1),
      "+": () => graph.zoom(1.25), "-": () => graph.zoom(0.8), 0: () => graph.fit(), Escape: () => graph.setChosen(null),
      Enter: () => graph.unfold(graph.chosen),
    };
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
}
