// The graph has two layers. The back layer has areas and edges, and nodes if there are many; it is redrawn when they
// change, in pieces over several animation frames if there are many. The front layer has the moving dots, and nodes if
// there are few; it is redrawn in every animation frame.

import { Edges, STYLES } from "./edges.js";
import { drawNode, readColours } from "./node.js";
import { BITS } from "./socket.js";

/**
 * @typedef {import("./socket.js").Scene} Scene
 * @typedef {import("./socket.js").SceneNode} SceneNode
 * @typedef {import("./socket.js").Frame} Frame
 * @typedef {{ node: number } | { from: number, to: number }} Chosen
 * @typedef {{ x: number, y: number, scale: number }} Camera
 */

/** The limits for the number of moving dots; there are fewer dots when animation frames come late. */
const MOST_DOTS = 4000;
const FEWEST_DOTS = 250;
/** With more edges than that they are drawn less often, and piece by piece. */
const MANY_EDGES = 1500;
/** More nodes than that are drawn with the edges, not for each picture. */
const MANY_NODES = 400;
/** How often many are drawn, in milliseconds, and how long for each picture. */
const BETWEEN_BACKS = 250;
const A_PIECE = 4;
/** The number of edges or nodes that are drawn as one piece. */
const PIECE = 128;
/** A picture that comes later than this after the one before is late, in milliseconds. */
const LATE = 22;

export class Graph {
  /**
   * @param {HTMLCanvasElement} back
   * @param {HTMLCanvasElement} front
   * @param {(chosen: Chosen | null) => void} choose
   */
  constructor(back, front, choose) {
    this.back = back;
    this.front = front;
    /** What comes after the back, until all of it is drawn. */
    this.next = document.createElement("canvas");
    this.choose = choose;
    /** @type {Scene | null} */
    this.scene = null;
    this.folded = false;
    /** The nodes that are shown, and where. @type {SceneNode[]} */
    this.nodes = [];
    this.xs = new Float32Array(0);
    this.ys = new Float32Array(0);
    /** Their states. */
    this.bits = new Uint8Array(0);
    this.queues = new Float32Array(0);
    this.edges = new Edges();
    this.isDown = (/** @type {number} */ node) => !this.folded && ((this.bits[node] ?? 0) & BITS.down) !== 0;
    /** @type {Chosen | null} */
    this.chosen = null;
    /** What is looked at, and what was when the back was drawn. @type {Camera} */
    this.camera = { x: 0, y: 0, scale: 10 };
    this.seen = { ...this.camera };
    this.playing = false;
    this.dotTime = 0;
    this.drawnAt = 0;
    this.backAt = 0;
    this.isOld = true;
    /** The unfinished drawing of the back layer. @type {Generator<void> | null} */
    this.drawing = null;
    this.drawingOf = { ...this.camera };
    this.pictures = 0;
    /** How many dots there may be, and how many pictures in a row came in time. */
    this.mostDots = MOST_DOTS;
    this.inTime = 0;
    this.colours = readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.colours = readColours();
      this.isOld = true;
    });
    new ResizeObserver(() => this.resize()).observe(front);
    this.listen();
    this.tick = (/** @type {number} */ now) => this.draw(now);
    requestAnimationFrame(this.tick);
  }

  /** @param {Scene} scene */
  setScene(scene) {
    this.scene = scene;
    this.forget();
    this.fit();
  }

  /** @param {boolean} folded */
  setFolded(folded) {
    this.folded = folded;
    this.chosen = null;
    this.forget();
  }

  /** Forgets what frames have said. */
  forget() {
    this.nodes = (this.folded ? this.scene?.folded : this.scene?.nodes) ?? [];
    this.xs = Float32Array.from(this.nodes, (node) => node.x);
    this.ys = Float32Array.from(this.nodes, (node) => node.y);
    this.bits = new Uint8Array(this.nodes.length).fill(BITS.gone);
    this.queues = new Float32Array(this.nodes.length);
    this.edges.clear();
    const quiet = this.folded ? this.scene?.folded_edges : this.scene?.edges;
    for (const [from, to] of quiet ?? []) this.edges.set(from, to, 0, 0, 0, 0);
    this.drawing = null;
    this.isOld = true;
  }

  /** @param {Frame} frame */
  setFrame(frame) {
    if (frame.folded !== this.folded) return;
    this.playing = frame.playing;
    const { bits, queues, edges } = this;
    frame.eachNode((place, bit, queue) => {
      bits[place] = bit;
      queues[place] = queue;
    });
    frame.eachEdge((from, to, rate, errors, p50, p99) => edges.set(from, to, rate, errors, p50, p99));
    if (frame.hasNew) this.isOld = true;
  }

  /** Shows all. */
  fit() {
    if (!this.scene) return;
    const { clientWidth: width, clientHeight: height } = this.front;
    const scale = Math.min(width / Math.max(this.scene.width, 1), height / Math.max(this.scene.height, 1));
    this.camera = { x: this.scene.width / 2, y: this.scene.height / 2, scale: Math.max(scale * 0.96, 0.01) };
    this.isOld = true;
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.back, this.front, this.next]) {
      canvas.width = Math.max(1, Math.round(this.front.clientWidth * ratio));
      canvas.height = Math.max(1, Math.round(this.front.clientHeight * ratio));
    }
    this.drawing = null;
    this.fit();
  }

  /**
   * @param {number} x
   * @param {number} y
   * @returns {[number, number]}
   */
  toScreen(x, y) {
    const { camera, front } = this;
    return [(x - camera.x) * camera.scale + front.clientWidth / 2, (y - camera.y) * camera.scale + front.clientHeight / 2];
  }

  /**
   * @param {SceneNode} node
   * @param {number} scale
   */
  radius(node, scale) {
    const size = this.folded ? 0.3 + 0.12 * Math.sqrt(node.count) : 0.3;
    return Math.max(size * scale, 1.5);
  }

  /** @param {number} now */
  draw(now) {
    requestAnimationFrame(this.tick);
    const passed = now - this.drawnAt;
    this.drawnAt = now;
    if (this.playing) this.dotTime += Math.min(passed / 1000, 0.1);
    if (!this.scene) return;
    this.adapt(passed);
    this.drawBack(now);
    this.drawFront();
    this.pictures += 1;
  }

  /**
   * Fewer dots if pictures come late, more if they come in time for a while.
   * @param {number} passed
   */
  adapt(passed) {
    if (passed > LATE) {
      this.inTime = 0;
      this.mostDots = Math.max(FEWEST_DOTS, Math.round(this.mostDots * 0.85));
    } else if ((this.inTime += 1) > 120) {
      this.inTime = 0;
      this.mostDots = Math.min(MOST_DOTS, Math.round(this.mostDots * 1.15));
    }
  }

  /**
   * The context of a canvas that is empty.
   * @param {HTMLCanvasElement} canvas
   */
  begin(canvas) {
    const context = canvas.getContext("2d");
    if (!context) throw new Error("this browser has no 2D canvas");
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
  }

  /**
   * Draws the back if it is old: few edges at once, and many a piece for each picture. Until all is drawn, what there
   * is follows the camera.
   * @param {number} now
   */
  drawBack(now) {
    const isMuch = this.edges.count > MANY_EDGES || this.nodes.length > MANY_NODES;
    if (!this.drawing && this.isOld && (!isMuch || now - this.backAt >= BETWEEN_BACKS)) {
      this.isOld = false;
      this.backAt = now;
      this.drawingOf = { ...this.camera };
      this.drawing = this.pieces(this.begin(this.next), this.drawingOf);
    }
    const until = performance.now() + (isMuch ? A_PIECE : Infinity);
    let isDone = false;
    while (this.drawing && !isDone) {
      isDone = this.drawing.next().done === true;
      if (performance.now() >= until) break;
    }
    if (isDone) {
      this.drawing = null;
      this.seen = this.drawingOf;
      const context = this.begin(this.back);
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.drawImage(this.next, 0, 0);
    }
    const { camera, seen } = this;
    const [x, y] = [(seen.x - camera.x) * camera.scale, (seen.y - camera.y) * camera.scale];
    const grown = camera.scale / seen.scale;
    const isHere = x === 0 && y === 0 && grown === 1;
    const moved = isHere ? "" : `translate(${x}px, ${y}px) scale(${grown})`;
    if (this.back.style.transform !== moved) this.back.style.transform = moved;
  }

  /**
   * Draws the back, and rests after each piece.
   * @param {CanvasRenderingContext2D} context
   * @param {Camera} camera
   * @returns {Generator<void>}
   */
  *pieces(context, camera) {
    const { scene, colours, nodes, edges, xs, ys } = this;
    if (!scene) return;
    const { clientWidth: width, clientHeight: height } = this.front;
    const { scale } = camera;
    const [left, top] = [width / 2 - camera.x * scale, height / 2 - camera.y * scale];
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "top";
    context.textAlign = "left";
    for (const area of scene.areas) {
      const [x, y] = [area.at[0] * scale + left, area.at[1] * scale + top];
      const [wide, high] = [area.at[2] * scale, area.at[3] * scale];
      context.fillStyle = area.is_zone ? colours.zone : colours.area;
      context.beginPath();
      context.roundRect(x, y, wide, high, 6);
      context.fill();
      context.fillStyle = colours.ink;
      if (wide > 40 && high > 14) context.fillText(area.name, x + 6, y + 2);
    }
    edges.arrange(this.isDown, nodes.length);
    yield;
    const { begins, order, from, to } = edges;
    const strokes = [colours.edge, colours.warn, colours.bad];
    for (let turn = 0; turn < STYLES.count; turn += 1) {
      // Those of what is down come last, above all others.
      const style = turn === 0 ? STYLES.quiet : turn === STYLES.count - 1 ? STYLES.down : turn + 1;
      const [begin, end] = [begins[style] ?? 0, begins[style + 1] ?? 0];
      if (begin === end) continue;
      const number = style - STYLES.first;
      context.strokeStyle = (style === STYLES.quiet ? colours.faint : style === STYLES.down ? colours.bad : strokes[number % 3]) ?? "";
      context.lineWidth = style === STYLES.quiet ? 0.5 : style === STYLES.down ? 1.5 : Math.floor(number / 3) / 2;
      context.setLineDash(style === STYLES.down ? [5, 4] : []);
      for (let at = begin; at < end; ) {
        context.beginPath();
        for (const stop = Math.min(end, at + PIECE); at < stop; at += 1) {
          const a = from[order[at] ?? 0] ?? 0;
          const b = to[order[at] ?? 0] ?? 0;
          const ax = (xs[a] ?? 0) * scale + left;
          const ay = (ys[a] ?? 0) * scale + top;
          const bx = (xs[b] ?? 0) * scale + left;
          const by = (ys[b] ?? 0) * scale + top;
          if ((ax < 0 && bx < 0) || (ay < 0 && by < 0) || (ax > width && bx > width) || (ay > height && by > height)) continue;
          context.moveTo(ax, ay);
          context.lineTo(bx, by);
        }
        context.stroke();
        yield;
      }
    }
    context.setLineDash([]);
    if (this.chosen && "from" in this.chosen) {
      const { from: a, to: b } = this.chosen;
      context.strokeStyle = colours.ink;
      context.lineWidth = 3;
      context.beginPath();
      context.moveTo((xs[a] ?? 0) * scale + left, (ys[a] ?? 0) * scale + top);
      context.lineTo((xs[b] ?? 0) * scale + left, (ys[b] ?? 0) * scale + top);
      context.stroke();
    }
    if (nodes.length <= MANY_NODES) return;
    for (let at = 0; at < nodes.length; at += PIECE) {
      this.drawNodes(context, camera, at, Math.min(nodes.length, at + PIECE));
      yield;
    }
  }

  drawFront() {
    const context = this.begin(this.front);
    this.drawDots(context);
    const chosen = this.chosen && "node" in this.chosen ? this.chosen.node : -1;
    if (this.nodes.length <= MANY_NODES) this.drawNodes(context, this.camera, 0, this.nodes.length);
    else if (chosen >= 0) this.drawNodes(context, this.camera, chosen, chosen + 1);
  }

  /**
   * Draws some nodes.
   * @param {CanvasRenderingContext2D} context
   * @param {Camera} camera
   * @param {number} begin
   * @param {number} end
   */
  drawNodes(context, camera, begin, end) {
    const { colours, nodes, xs, ys } = this;
    const { clientWidth: width, clientHeight: height } = this.front;
    const { scale } = camera;
    const [left, top] = [width / 2 - camera.x * scale, height / 2 - camera.y * scale];
    context.textAlign = "center";
    context.textBaseline = "top";
    context.font = "11px system-ui, sans-serif";
    const labels = scale * (this.folded ? 2 : 1) > 26;
    const chosen = this.chosen && "node" in this.chosen ? this.chosen.node : -1;
    for (let place = begin; place < end; place += 1) {
      const node = nodes[place];
      const [x, y] = [(xs[place] ?? 0) * scale + left, (ys[place] ?? 0) * scale + top];
      if (!node || x < -20 || y < -20 || x > width + 20 || y > height + 20) continue;
      const radius = this.radius(node, scale);
      drawNode(context, colours, this.scene?.kind, { x, y, radius, bits: this.bits[place] ?? 0, queue: this.queues[place] ?? 0 });
      if (place === chosen) {
        context.strokeStyle = colours.ink;
        context.lineWidth = 2;
        context.beginPath();
        context.arc(x, y, radius + 4, 0, 2 * Math.PI);
        context.stroke();
      }
      if (labels || place === chosen) {
        context.fillStyle = colours.ink;
        const text = this.folded ? `${node.name} ×${node.count}` : node.name;
        context.fillText(place === chosen ? text : text.slice(0, 18), x, y + radius + 3);
      }
    }
  }

  /**
   * The dots of all edges, or an even part of them if they are too many.
   * @param {CanvasRenderingContext2D} context
   */
  drawDots(context) {
    const { camera, colours, edges, xs, ys, dotTime } = this;
    const { busy, busyCount, dots, takes, from, to } = edges;
    const { clientWidth: width, clientHeight: height } = this.front;
    const { scale } = camera;
    const size = Math.min(4, Math.max(2, scale / 6));
    const [left, top] = [width / 2 - camera.x * scale - size / 2, height / 2 - camera.y * scale - size / 2];
    context.fillStyle = colours.dot;
    const share = Math.min(1, this.mostDots / Math.max(edges.allDots, 1));
    let due = 0;
    for (let n = 0; n < busyCount; n += 1) {
      due += (dots[n] ?? 0) * share;
      const count = Math.floor(due);
      if (count === 0) continue;
      due -= count;
      const a = from[busy[n] ?? 0] ?? 0;
      const b = to[busy[n] ?? 0] ?? 0;
      const x = (xs[a] ?? 0) * scale + left;
      const y = (ys[a] ?? 0) * scale + top;
      const wide = (xs[b] ?? 0) * scale + left - x;
      const high = (ys[b] ?? 0) * scale + top - y;
      // Each edge begins at a moment of its own.
      const begin = dotTime / (takes[n] ?? 1) + ((a * 7919 + b * 104729) % 1000) / 1000;
      for (let dot = 0; dot < count; dot += 1) {
        const part = (begin + dot / count) % 1;
        const dotX = x + wide * part;
        const dotY = y + high * part;
        if (dotX > -size && dotY > -size && dotX < width && dotY < height) context.fillRect(dotX, dotY, size, size);
      }
    }
  }

  /** @param {Chosen | null} chosen */
  setChosen(chosen) {
    this.chosen = chosen;
    this.isOld = true;
    this.choose(chosen);
  }

  /**
   * What is at a point of the screen.
   * @param {number} x
   * @param {number} y
   * @returns {Chosen | null}
   */
  at(x, y) {
    let [best, distance] = [-1, 12];
    for (const [place, node] of this.nodes.entries()) {
      const [nodeX, nodeY] = this.toScreen(node.x, node.y);
      const away = Math.hypot(nodeX - x, nodeY - y) - this.radius(node, this.camera.scale);
      if (away < distance && away < 4) [best, distance] = [place, away];
    }
    if (best >= 0) return { node: best };
    /** @type {Chosen | null} */
    let edgeFound = null;
    let closest = 5;
    for (const edge of this.edges.values()) {
      const [from, to] = [this.nodes[edge.from], this.nodes[edge.to]];
      if (!from || !to) continue;
      const [ax, ay] = this.toScreen(from.x, from.y);
      const [bx, by] = this.toScreen(to.x, to.y);
      const length = (bx - ax) ** 2 + (by - ay) ** 2;
      const part = Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / (length || 1)));
      const away = Math.hypot(ax + part * (bx - ax) - x, ay + part * (by - ay) - y) - Math.min(edge.rate, 1);
      if (away < closest) {
        closest = away;
        edgeFound = { from: edge.from, to: edge.to };
      }
    }
    return edgeFound;
  }

  /**
   * Chooses the nearest node in a direction.
   * @param {number} dx
   * @param {number} dy
   */
  move(dx, dy) {
    const here = this.chosen && "node" in this.chosen ? this.chosen.node : -1;
    const from = this.nodes[here];
    if (!from) {
      if (this.nodes.length > 0) this.setChosen({ node: 0 });
      return;
    }
    let [best, least] = [-1, Infinity];
    for (const [place, node] of this.nodes.entries()) {
      const [x, y] = [node.x - from.x, node.y - from.y];
      const along = x * dx + y * dy;
      const beside = Math.abs(x * dy) + Math.abs(y * dx);
      if (place !== here && along > 0 && along + 2 * beside < least) [best, least] = [place, along + 2 * beside];
    }
    if (best >= 0) this.setChosen({ node: best });
  }

  /**
   * @param {number} factor
   * @param {number} [x]
   * @param {number} [y]
   */
  zoom(factor, x = this.front.clientWidth / 2, y = this.front.clientHeight / 2) {
    const { camera, front } = this;
    const scale = Math.min(400, Math.max(0.05, camera.scale * factor));
    const [offX, offY] = [x - front.clientWidth / 2, y - front.clientHeight / 2];
    camera.x += offX / camera.scale - offX / scale;
    camera.y += offY / camera.scale - offY / scale;
    camera.scale = scale;
    this.isOld = true;
  }

  listen() {
    const { front } = this;
    /** @type {{ x: number, y: number, moved: boolean } | null} */
    let held = null;
    front.addEventListener("pointerdown", (event) => {
      held = { x: event.clientX, y: event.clientY, moved: false };
      front.setPointerCapture(event.pointerId);
    });
    front.addEventListener("pointermove", (event) => {
      if (!held) return;
      const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
      if (!held.moved && Math.hypot(dx, dy) < 4) return;
      held = { x: event.clientX, y: event.clientY, moved: true };
      this.camera.x -= dx / this.camera.scale;
      this.camera.y -= dy / this.camera.scale;
      this.isOld = true;
    });
    front.addEventListener("pointerup", (event) => {
      const wasClick = held && !held.moved;
      held = null;
      const { left, top } = front.getBoundingClientRect();
      if (wasClick) this.setChosen(this.at(event.clientX - left, event.clientY - top));
    });
    front.addEventListener("wheel", (event) => {
      event.preventDefault();
      const { left, top } = front.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY / 400), event.clientX - left, event.clientY - top);
    }, { passive: false });
    front.addEventListener("keydown", (event) => {
      /** @type {Record<string, () => void>} */
      const keys = {
        ArrowLeft: () => this.move(-1, 0), ArrowRight: () => this.move(1, 0),
        ArrowUp: () => this.move(0, -1), ArrowDown: () => this.move(0, 1),
        "+": () => this.zoom(1.25), "-": () => this.zoom(0.8), 0: () => this.fit(), Escape: () => this.setChosen(null),
      };
      const act = keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
  }
}
