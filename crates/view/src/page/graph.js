// The graph has three layers. The back layer has areas and edges, and nodes if there are many; it is redrawn when they
// change, in pieces over several animation frames if there are many. The front layer has the moving dots, and nodes if
// there are few; it is redrawn in every animation frame. Above both are the names, which are redrawn when the camera moves.

import { fitTo } from "./arrange.js";
import { Edges, STYLES } from "./edges.js";
import { along, bend, control, distance as distanceTo } from "./geometry.js";
import { listen } from "./gestures.js";
import { drawLabels, place as placeLabels } from "./labels.js";
import { drawFolded, drawNode, readColours } from "./node.js";
import { BITS } from "./socket.js";

/**
 * @typedef {import("./socket.js").Scene} Scene
 * @typedef {import("./socket.js").SceneNode} SceneNode
 * @typedef {import("./socket.js").Frame} Frame
 * @typedef {{ node: number } | { from: number, to: number } | { area: number }} Chosen
 * @typedef {{ x: number, y: number, scale: number }} Camera
 */

/** The limits for the number of moving dots; there are fewer dots when animation frames come late. */
const MOST_DOTS = 4000;
const FEWEST_DOTS = 250;
/** With more edges than that they are drawn less often, and piece by piece. */
const MANY_EDGES = 1500;
/** More edges than that are straight: curves would take too long to draw, and nobody could follow one of them. */
const MOST_CURVES = 20000;
/** More nodes than that are drawn with the edges, not for each picture. */
const MANY_NODES = 400;
/** How often many are drawn, in milliseconds, and how long for each picture. */
const BETWEEN_BACKS = 250;
const A_PIECE = 4;
/** The number of edges or nodes that are drawn as one piece. */
const PIECE = 128;
/** A picture that comes later than this after the one before is late, in milliseconds. */
const LATE = 22;
/** The width of the cell of a service in units of the scene; see crates/view/src/layout.rs. */
const CELL = 3;
/** The largest scale that shows everything, in pixels per unit: a few nodes would be huge. */
const MOST_FIT = 90;
/** How much larger than everything services are when they unfold. */
const UNFOLDS = 2.2;

export class Graph {
  /**
   * @param {HTMLCanvasElement} back
   * @param {HTMLCanvasElement} front
   * @param {HTMLCanvasElement} names
   * @param {(chosen: Chosen | null) => void} choose
   * @param {(isFolded: boolean) => void} fold is called when a zoom or a double click folds or unfolds
   * @param {(found: Chosen | null, x: number, y: number) => void} hover
   */
  constructor(back, front, names, choose, fold, hover) {
    this.back = back;
    this.front = front;
    this.names = names;
    /** Whether an earlier state is shown. */
    this.past = false;
    /** What comes after the back, until all of it is drawn. */
    this.next = document.createElement("canvas");
    this.choose = choose;
    this.fold = fold;
    /** Whether a zoom folds and unfolds. */
    this.isAuto = true;
    /** Whether the user has moved the camera. */
    this.isMoved = false;
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
    this.busy = new Float32Array(0);
    this.rates = new Float32Array(0);
    this.errors = new Float32Array(0);
    /** Instances that serve, and that should, by node. */
    this.health = new Uint16Array(0);
    /** The centres of the groups of nodes. */
    this.groupXs = new Float32Array(0);
    this.groupYs = new Float32Array(0);
    this.isStraight = false;
    /** The names on the graph, and what they were placed for. @type {import("./labels.js").Label[]} */
    this.labels = [];
    this.labelsOf = "";
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
      this.labelsOf = "";
      this.isOld = true;
    });
    new ResizeObserver(() => this.resize()).observe(front);
    listen(this, hover);
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
    this.bits = new Uint8Array(this.nodes.length).fill(BITS.gone);
    this.queues = new Float32Array(this.nodes.length);
    this.busy = new Float32Array(this.nodes.length);
    this.rates = new Float32Array(this.nodes.length);
    this.errors = new Float32Array(this.nodes.length);
    this.health = new Uint16Array(2 * this.nodes.length);
    this.setPlaces();
    this.edges.clear();
    const quiet = this.folded ? this.scene?.folded_edges : this.scene?.edges;
    for (const [from, to] of quiet ?? []) this.edges.set(from, to, 0, 0, 0, 0);
    this.drawing = null;
    this.isOld = true;
  }

  /** Reads where nodes and their groups are. */
  setPlaces() {
    this.xs = Float32Array.from(this.nodes, (node) => node.x);
    this.ys = Float32Array.from(this.nodes, (node) => node.y);
    const of = (/** @type {SceneNode} */ node) => `${node.service}@${node.region}.${node.zone}`;
    const groups = new Map((this.scene?.folded ?? []).map((node) => [of(node), node]));
    this.groupXs = Float32Array.from(this.nodes, (node) => groups.get(of(node))?.x ?? node.x);
    this.groupYs = Float32Array.from(this.nodes, (node) => groups.get(of(node))?.y ?? node.y);
    this.labelsOf = "";
  }

  /** @param {Frame} frame */
  setPast(frame) {
    if (frame.folded !== this.folded) return;
    this.forget();
    this.past = false;
    this.setFrame(frame);
    this.past = true;
  }

  /** @param {Frame} frame */
  setFrame(frame) {
    if (frame.folded !== this.folded || this.past) return;
    this.playing = frame.playing;
    const { bits, queues, busy, rates, errors, health, edges } = this;
    frame.eachNode((place, bit, queue, inProgress, rate, failed, up, all) => {
      bits[place] = bit;
      queues[place] = queue;
      busy[place] = inProgress;
      rates[place] = rate;
      errors[place] = failed;
      health[2 * place] = up;
      health[2 * place + 1] = all;
    });
    frame.eachEdge((from, to, rate, errors, p50, p99) => edges.set(from, to, rate, errors, p50, p99));
    if (frame.hasNew) this.isOld = true;
  }

  /** The scale that shows all. */
  fitScale() {
    const { clientWidth: width, clientHeight: height } = this.front;
    const { width: wide, height: high } = this.scene ?? { width: 1, height: 1 };
    return Math.min(MOST_FIT, Math.max(0.98 * Math.min(width / Math.max(wide, 1), height / Math.max(high, 1)), 0.01));
  }

  /** The scale above which services unfold. */
  unfoldScale() {
    return this.fitScale() * UNFOLDS;
  }

  /** Shows all, folded again if a zoom has unfolded it. */
  fit() {
    if (!this.scene) return;
    if (fitTo(this.scene, this.front.clientWidth, this.front.clientHeight)) this.setPlaces();
    this.camera = { x: this.scene.width / 2, y: this.scene.height / 2, scale: this.fitScale() };
    this.isMoved = false;
    this.isOld = true;
    if (this.isAuto && !this.folded && this.scene.folded.length > 0) this.fold(true);
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.back, this.front, this.names, this.next]) {
      canvas.width = Math.max(1, Math.round(this.front.clientWidth * ratio));
      canvas.height = Math.max(1, Math.round(this.front.clientHeight * ratio));
    }
    this.drawing = null;
    this.labelsOf = "";
    this.isOld = true;
    if (!this.isMoved) this.fit();
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
    return this.folded ? Math.min(26, Math.max(0.55 * scale, 5)) : Math.min(40, Math.max(0.38 * node.size * scale, 1.5));
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
    const chosenArea = this.chosen && "area" in this.chosen ? this.chosen.area : -1;
    for (const [number, area] of scene.areas.entries()) {
      const [x, y] = [area.at[0] * scale + left, area.at[1] * scale + top];
      const [wide, high] = [area.at[2] * scale, area.at[3] * scale];
      context.fillStyle = area.is_zone ? colours.zone : colours.area;
      context.beginPath();
      context.roundRect(x, y, wide, high, 6);
      context.fill();
      if (number !== chosenArea) continue;
      context.strokeStyle = colours.ink;
      context.lineWidth = 2;
      context.stroke();
    }
    edges.arrange(this.isDown, nodes.length);
    this.isStraight = scene.folded.length === 0 || edges.count > MOST_CURVES;
    yield;
    const { begins, order, from, to } = edges;
    // Many quiet edges would hide the others.
    const quiet = edges.count > 200 ? 0.45 : 1;
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
      context.globalAlpha = style === STYLES.quiet ? quiet : 1;
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
          if (this.isStraight) {
            context.moveTo(ax, ay);
            context.lineTo(bx, by);
            continue;
          }
          bend(this, a, b);
          const [cx, cy, dx, dy] = [control[0] ?? 0, control[1] ?? 0, control[2] ?? 0, control[3] ?? 0];
          context.moveTo(ax, ay);
          context.bezierCurveTo(cx * scale + left, cy * scale + top, dx * scale + left, dy * scale + top, bx, by);
        }
        context.stroke();
        yield;
      }
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
    if (this.chosen && "from" in this.chosen) {
      const { from: a, to: b } = this.chosen;
      context.strokeStyle = colours.ink;
      context.lineWidth = 3;
      context.beginPath();
      bend(this, a, b);
      const [cx, cy, dx, dy] = [control[0] ?? 0, control[1] ?? 0, control[2] ?? 0, control[3] ?? 0];
      context.moveTo((xs[a] ?? 0) * scale + left, (ys[a] ?? 0) * scale + top);
      context.bezierCurveTo(cx * scale + left, cy * scale + top, dx * scale + left, dy * scale + top,
        (xs[b] ?? 0) * scale + left, (ys[b] ?? 0) * scale + top);
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
    this.drawNames(chosen);
  }

  /**
   * Draws the names: of areas, of what is chosen, of services, and of instances if there is room.
   * @param {number} chosen
   */
  drawNames(chosen) {
    const { camera, front, scene, nodes } = this;
    if (!scene) return;
    const { scale } = camera;
    const { clientWidth: width, clientHeight: height } = front;
    const key = `${camera.x} ${camera.y} ${scale} ${width} ${height} ${chosen} ${this.folded} ${nodes.length}`;
    if (key === this.labelsOf) return;
    const context = this.begin(this.names);
    this.labelsOf = key;
    /** @type {import("./labels.js").Wanted[]} */
    const wanted = [];
    const [stretchX, stretchY] = scene.stretch ?? [1, 1];
    for (const { name, at: [left, top, wide] } of scene.areas) {
      const [x, y] = this.toScreen(left, top);
      wanted.push({ name, x: Math.max(x, 0) + 6, y: Math.max(y, 0) + 1, room: wide * scale - 12, place: -1, isTitle: true });
    }
    const add = (/** @type {number} */ place, /** @type {number} */ room) => {
      const node = nodes[place];
      if (!node) return;
      const [x, y] = this.toScreen(node.x, node.y);
      if (x < 0 || y < 0 || x > width || y > height) return;
      wanted.push({ name: node.name, x, y: y + this.radius(node, scale) + 2, room, place, isTitle: false });
    };
    if (chosen >= 0) add(chosen, 400);
    if (!this.folded && scene.kind !== "pirates") {
      // The instances of a service have one name until their own names fit.
      for (const { name, x: left, y: top } of scene.folded) {
        const [x, y] = this.toScreen(left, top + 0.85 * stretchY);
        wanted.push({ name, x, y, room: CELL * stretchX * scale - 4, place: -1, isTitle: false });
      }
    }
    for (const [place, node] of nodes.entries()) {
      const room = (this.folded ? CELL : node.size) * stretchX * scale - 4;
      if (place !== chosen && room > 10) add(place, room);
      if (wanted.length > 1500) break;
    }
    this.labels = placeLabels(context, wanted, width, height);
    drawLabels(context, this.labels, this.colours);
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
    const chosen = this.chosen && "node" in this.chosen ? this.chosen.node : -1;
    for (let place = begin; place < end; place += 1) {
      const node = nodes[place];
      const [x, y] = [(xs[place] ?? 0) * scale + left, (ys[place] ?? 0) * scale + top];
      if (!node || x < -20 || y < -20 || x > width + 20 || y > height + 20) continue;
      const radius = this.radius(node, scale);
      const drawn = { x, y, radius, bits: this.bits[place] ?? 0, queue: this.queues[place] ?? 0 };
      if (this.folded) drawFolded(context, colours, drawn, this.health[2 * place] ?? 0, this.health[2 * place + 1] ?? 0);
      else drawNode(context, colours, this.scene?.kind, drawn);
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
      bend(this, a, b);
      const [ax, ay, bx, by] = [xs[a] ?? 0, ys[a] ?? 0, xs[b] ?? 0, ys[b] ?? 0];
      const [cx, cy, dx, dy] = [control[0] ?? 0, control[1] ?? 0, control[2] ?? 0, control[3] ?? 0];
      // Each edge begins at a moment of its own.
      const begin = dotTime / (takes[n] ?? 1) + ((a * 7919 + b * 104729) % 1000) / 1000;
      for (let dot = 0; dot < count; dot += 1) {
        const part = (begin + dot / count) % 1;
        const dotX = along(ax, cx, dx, bx, part) * scale + left;
        const dotY = along(ay, cy, dy, by, part) * scale + top;
        if (dotX > -size && dotY > -size && dotX < width && dotY < height) context.fillRect(dotX, dotY, size, size);
      }
    }
  }

  /**
   * Unfolds services, around one of them.
   * @param {Chosen | null} chosen
   */
  unfold(chosen) {
    const node = chosen && "node" in chosen ? this.nodes[chosen.node] : undefined;
    if (!node || !this.folded) return;
    this.camera = { x: node.x, y: node.y, scale: Math.max(this.unfoldScale() * 1.3, this.camera.scale) };
    this.isMoved = true;
    this.fold(false);
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
    let found = null;
    let closest = 5;
    const { scale } = this.camera;
    const [sceneX, sceneY] = [
      (x - this.front.clientWidth / 2) / scale + this.camera.x, (y - this.front.clientHeight / 2) / scale + this.camera.y,
    ];
    for (const edge of this.edges.values()) {
      if (edge.from >= this.nodes.length || edge.to >= this.nodes.length) continue;
      const away = distanceTo(this, edge.from, edge.to, sceneX, sceneY) * scale - Math.min(edge.rate, 1);
      if (away < closest) {
        closest = away;
        found = { from: edge.from, to: edge.to };
      }
    }
    // The name of an area stands for the area, and so does what is free in it; the innermost counts.
    const areas = this.scene?.areas ?? [];
    const isIn = (/** @type {import("./socket.js").Area} */ { at: [left, top, wide, high] }) =>
      sceneX >= left && sceneX <= left + wide && sceneY >= top && sceneY <= top + high;
    const area = areas.findLastIndex(isIn);
    return found ?? (area >= 0 ? { area } : null);
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
      this.reveal(0);
      return;
    }
    let [best, least] = [-1, Infinity];
    for (const [place, node] of this.nodes.entries()) {
      const [x, y] = [node.x - from.x, node.y - from.y];
      const along = x * dx + y * dy;
      const beside = Math.abs(x * dy) + Math.abs(y * dx);
      if (place !== here && along > 0 && along + 2 * beside < least) [best, least] = [place, along + 2 * beside];
    }
    if (best < 0) return;
    this.setChosen({ node: best });
    this.reveal(best);
  }

  /** Moves the camera so that a node is in view. @param {number} place */
  reveal(place) {
    const node = this.nodes[place];
    if (!node) return;
    const [x, y] = this.toScreen(node.x, node.y);
    const { clientWidth: width, clientHeight: height } = this.front;
    const margin = Math.min(60, width / 4, height / 4);
    const into = (/** @type {number} */ at, /** @type {number} */ size) => Math.min(size - margin, Math.max(margin, at)) - at;
    const [dx, dy] = [into(x, width), into(y, height)];
    if (dx !== 0 || dy !== 0) this.pan(dx, dy);
  }

  /**
   * @param {number} dx
   * @param {number} dy
   */
  pan(dx, dy) {
    this.camera.x -= dx / this.camera.scale;
    this.camera.y -= dy / this.camera.scale;
    this.isMoved = true;
    this.isOld = true;
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
    this.isMoved = true;
    this.isOld = true;
    const limit = this.unfoldScale();
    if (!this.isAuto || (this.scene?.folded.length ?? 0) === 0) return;
    if (this.folded && scale > limit) this.fold(false);
    else if (!this.folded && scale < limit * 0.7) this.fold(true);
  }
}
