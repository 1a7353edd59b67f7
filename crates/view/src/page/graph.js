// The graph: areas and edges on a layer that is drawn when they change, nodes and moving dots on one that is
// drawn for each picture of the screen.

import { BITS } from "./socket.js";

/**
 * @typedef {import("./socket.js").Scene} Scene
 * @typedef {import("./socket.js").SceneNode} SceneNode
 * @typedef {import("./socket.js").Frame} Frame
 * @typedef {import("./socket.js").NodeState} NodeState
 * @typedef {import("./socket.js").EdgeState} EdgeState
 * @typedef {{ node: number } | { from: number, to: number }} Chosen
 */

/** At most so many dots move. */
const MOST_DOTS = 4000;
/** With more edges than that they are drawn less often. */
const MANY_EDGES = 1500;
/** More nodes than that are drawn with the edges, not for each picture. */
const MANY_NODES = 1000;
/** How long a dot of an edge with the usual latency takes, in seconds. */
const USUAL = 1.2;

/** @param {string} name */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** @type {NodeState} */
const QUIET = { place: 0, bits: BITS.gone, queue: 0, busy: 0, rate: 0, errors: 0 };

export class Graph {
  /**
   * @param {HTMLCanvasElement} back
   * @param {HTMLCanvasElement} front
   * @param {(chosen: Chosen | null) => void} choose
   */
  constructor(back, front, choose) {
    this.back = back;
    this.front = front;
    this.choose = choose;
    /** @type {Scene | null} */
    this.scene = null;
    this.folded = false;
    /** @type {NodeState[]} */
    this.states = [];
    /** @type {Map<string, EdgeState>} */
    this.edges = new Map();
    /** @type {Chosen | null} */
    this.chosen = null;
    this.camera = { x: 0, y: 0, scale: 10 };
    this.playing = false;
    this.dotTime = 0;
    this.drawnAt = 0;
    this.backAt = 0;
    this.isOld = true;
    this.pictures = 0;
    /** Edges with traffic, and what half of them take. @type {EdgeState[]} */
    this.busy = [];
    this.usual = 1;
    this.colours = this.readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.colours = this.readColours();
      this.isOld = true;
    });
    new ResizeObserver(() => this.resize()).observe(front);
    this.listen();
    requestAnimationFrame((now) => this.draw(now));
  }

  readColours() {
    const [gold, edge] = [colour("--gold"), colour("--edge")];
    return {
      ink: colour("--ink"), faint: colour("--faint"), area: colour("--area"), zone: colour("--zone"), edge,
      warn: colour("--warn"), bad: colour("--bad"), good: colour("--good"), slow: colour("--slow"),
      cut: colour("--cut"), dot: colour("--dot"), paper: colour("--paper"),
      // From poor to rich.
      gold: [0, 1, 2, 3, 4, 5, 6, 7, 8].map((part) => `color-mix(in srgb, ${gold} ${part * 12.5}%, ${edge})`),
    };
  }

  /** The nodes that are shown. */
  get nodes() {
    if (!this.scene) return [];
    return this.folded ? this.scene.folded : this.scene.nodes;
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
    this.states = this.nodes.map(() => QUIET);
    this.edges = new Map();
    const quiet = this.folded ? this.scene?.folded_edges : this.scene?.edges;
    for (const [from, to] of quiet ?? []) {
      this.edges.set(`${from},${to}`, { from, to, rate: 0, errors: 0, p50: 0, p99: 0 });
    }
    this.isOld = true;
  }

  /** @param {Frame} frame */
  setFrame(frame) {
    if (frame.folded !== this.folded) return;
    this.playing = frame.playing;
    for (const node of frame.nodes) this.states[node.place] = node;
    for (const edge of frame.edges) this.edges.set(`${edge.from},${edge.to}`, edge);
    if (frame.nodes.length > 0 || frame.edges.length > 0) this.isOld = true;
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
    for (const canvas of [this.back, this.front]) {
      canvas.width = Math.max(1, Math.round(this.front.clientWidth * ratio));
      canvas.height = Math.max(1, Math.round(this.front.clientHeight * ratio));
    }
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

  /** @param {SceneNode} node */
  radius(node) {
    const size = this.folded ? 0.3 + 0.12 * Math.sqrt(node.count) : 0.3;
    return Math.max(size * this.camera.scale, 1.5);
  }

  /** @param {number} now */
  draw(now) {
    requestAnimationFrame((next) => this.draw(next));
    const passed = Math.min((now - this.drawnAt) / 1000, 0.1);
    this.drawnAt = now;
    if (this.playing) this.dotTime += passed;
    if (!this.scene) return;
    const patience = this.edges.size > MANY_EDGES || this.nodes.length > MANY_NODES ? 250 : 0;
    if (this.isOld && now - this.backAt >= patience) {
      this.isOld = false;
      this.backAt = now;
      this.drawBack();
    }
    this.drawFront();
    this.pictures += 1;
  }

  /** @param {HTMLCanvasElement} canvas */
  begin(canvas) {
    const context = canvas.getContext("2d");
    if (!context) throw new Error("this browser draws nothing on a canvas");
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    return context;
  }

  /** @param {EdgeState} edge */
  edgeStyle(edge) {
    const { colours, states } = this;
    const touches = (/** @type {number} */ end) => ((states[end] ?? QUIET).bits & BITS.down) !== 0;
    if (!this.folded && (touches(edge.to) || touches(edge.from))) return { stroke: colours.bad, width: 1.5, dashed: true };
    if (edge.rate < 0.01) return { stroke: colours.faint, width: 0.5, dashed: false };
    const width = Math.round(2 * (0.6 + 0.9 * Math.log10(1 + edge.rate))) / 2;
    const stroke = edge.errors > 0.3 ? colours.bad : edge.errors > 0.01 ? colours.warn : colours.edge;
    return { stroke, width, dashed: false };
  }

  drawBack() {
    const context = this.begin(this.back);
    const { scene, colours, nodes } = this;
    if (!scene) return;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "top";
    for (const area of scene.areas) {
      const [x, y] = this.toScreen(area.at[0], area.at[1]);
      const [width, height] = [area.at[2] * this.camera.scale, area.at[3] * this.camera.scale];
      context.fillStyle = area.is_zone ? colours.zone : colours.area;
      context.beginPath();
      context.roundRect(x, y, width, height, 6);
      context.fill();
      context.fillStyle = colours.ink;
      if (width > 40 && height > 14) context.fillText(area.name, x + 6, y + 2);
    }
    // One path for all edges of a style.
    /** @type {Map<string, { style: { stroke: string, width: number, dashed: boolean }, path: Path2D }>} */
    const paths = new Map();
    for (const edge of this.edges.values()) {
      const [from, to] = [nodes[edge.from], nodes[edge.to]];
      if (!from || !to) continue;
      const style = this.edgeStyle(edge);
      const key = `${style.stroke} ${style.width} ${style.dashed}`;
      const { path } = paths.get(key) ?? { path: new Path2D() };
      paths.set(key, { style, path });
      path.moveTo(...this.toScreen(from.x, from.y));
      path.lineTo(...this.toScreen(to.x, to.y));
    }
    for (const { style, path } of [...paths.values()].sort((a, b) => a.style.width - b.style.width)) {
      context.strokeStyle = style.stroke;
      context.lineWidth = style.width;
      context.setLineDash(style.dashed ? [5, 4] : []);
      context.stroke(path);
    }
    context.setLineDash([]);
    if (this.chosen && "from" in this.chosen) {
      const [from, to] = [nodes[this.chosen.from], nodes[this.chosen.to]];
      if (from && to) {
        context.strokeStyle = colours.ink;
        context.lineWidth = 3;
        context.beginPath();
        context.moveTo(...this.toScreen(from.x, from.y));
        context.lineTo(...this.toScreen(to.x, to.y));
        context.stroke();
      }
    }
    this.busy = [...this.edges.values()].filter((edge) => edge.rate >= 0.01 && edge.p50 > 0);
    const latencies = this.busy.map((edge) => edge.p50).sort((a, b) => a - b);
    this.usual = latencies[latencies.length >> 1] ?? 1;
    if (nodes.length > MANY_NODES) this.drawNodes(context, -1);
    context.textAlign = "left";
  }

  drawFront() {
    const context = this.begin(this.front);
    this.drawDots(context);
    const chosen = this.chosen && "node" in this.chosen ? this.chosen.node : -1;
    if (this.nodes.length <= MANY_NODES) this.drawNodes(context, -1);
    else if (chosen >= 0) this.drawNodes(context, chosen);
  }

  /**
   * Draws all nodes, or one of them.
   * @param {CanvasRenderingContext2D} context
   * @param {number} only
   */
  drawNodes(context, only) {
    const { colours, nodes, front } = this;
    context.textAlign = "center";
    context.textBaseline = "top";
    context.font = "11px system-ui, sans-serif";
    const labels = this.camera.scale * (this.folded ? 2 : 1) > 26;
    const chosen = this.chosen && "node" in this.chosen ? this.chosen.node : -1;
    for (const [place, node] of nodes.entries()) {
      if (only >= 0 && place !== only) continue;
      const [x, y] = this.toScreen(node.x, node.y);
      if (x < -20 || y < -20 || x > front.clientWidth + 20 || y > front.clientHeight + 20) continue;
      const state = this.states[place] ?? QUIET;
      const radius = this.radius(node);
      this.drawNode(context, x, y, radius, state);
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
   * @param {CanvasRenderingContext2D} context
   * @param {number} x
   * @param {number} y
   * @param {number} radius
   * @param {NodeState} state
   */
  drawNode(context, x, y, radius, state) {
    const { colours } = this;
    const is = (/** @type {number} */ bit) => (state.bits & bit) !== 0;
    if (state.queue > 0 && this.scene?.kind === "services") {
      context.fillStyle = colours.warn;
      context.globalAlpha = 0.35;
      context.beginPath();
      context.arc(x, y, radius * (1.2 + 0.35 * Math.log2(1 + state.queue)), 0, 2 * Math.PI);
      context.fill();
      context.globalAlpha = 1;
    }
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    if (is(BITS.gone) || is(BITS.away)) {
      context.fillStyle = colours.paper;
      context.fill();
      context.strokeStyle = is(BITS.gone) ? colours.faint : colours.good;
      context.lineWidth = 1;
      context.stroke();
    } else {
      context.fillStyle = is(BITS.down) ? colours.bad : is(BITS.paused) ? colours.faint : is(BITS.slow) ? colours.slow : this.goodColour(state);
      context.fill();
    }
    context.strokeStyle = is(BITS.down) ? colours.paper : colours.ink;
    context.lineWidth = Math.max(radius / 5, 1);
    const arm = radius * 0.5;
    if (is(BITS.down)) {
      // A cross, and for a pause two bars: colours alone say nothing.
      context.beginPath();
      context.moveTo(x - arm, y - arm);
      context.lineTo(x + arm, y + arm);
      context.moveTo(x + arm, y - arm);
      context.lineTo(x - arm, y + arm);
      context.stroke();
    } else if (is(BITS.paused)) {
      context.beginPath();
      context.moveTo(x - arm / 2, y - arm);
      context.lineTo(x - arm / 2, y + arm);
      context.moveTo(x + arm / 2, y - arm);
      context.lineTo(x + arm / 2, y + arm);
      context.stroke();
    }
    if (is(BITS.cutOff)) {
      context.strokeStyle = colours.cut;
      context.setLineDash([3, 3]);
      context.beginPath();
      context.arc(x, y, radius + 2, 0, 2 * Math.PI);
      context.stroke();
      context.setLineDash([]);
    }
  }

  /** @param {NodeState} state */
  goodColour(state) {
    if (this.scene?.kind !== "pirates") return this.colours.good;
    // Richer pirates are more golden.
    return this.colours.gold[Math.min(8, Math.round(Math.log2(1 + state.queue)))] ?? this.colours.good;
  }

  /** @param {CanvasRenderingContext2D} context */
  drawDots(context) {
    const { nodes, colours, busy, usual } = this;
    let left = MOST_DOTS;
    context.fillStyle = colours.dot;
    const size = Math.min(4, Math.max(2, this.camera.scale / 6));
    for (const edge of busy) {
      const [from, to] = [nodes[edge.from], nodes[edge.to]];
      const dots = Math.min(5, Math.ceil(Math.log2(1 + edge.rate)));
      if (!from || !to) continue;
      if ((left -= dots) < 0) break;
      const takes = Math.min(8, Math.max(0.25, (USUAL * edge.p50) / usual));
      const [x, y] = this.toScreen(from.x, from.y);
      const [endX, endY] = this.toScreen(to.x, to.y);
      // Each edge begins at a moment of its own.
      const begin = ((edge.from * 7919 + edge.to * 104729) % 1000) / 1000;
      for (let dot = 0; dot < dots; dot += 1) {
        const part = (this.dotTime / takes + begin + dot / dots) % 1;
        context.fillRect(x + (endX - x) * part - size / 2, y + (endY - y) * part - size / 2, size, size);
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
      const away = Math.hypot(nodeX - x, nodeY - y) - this.radius(node);
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
