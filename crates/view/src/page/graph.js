// The graph has three layers. The back layer has areas, edges and nodes; it is redrawn when they change, in pieces over several
// animation frames if there are many. The front layer has the moving dots and the chosen node; it is redrawn in every animation
// frame while dots move. Above both are the names, which are redrawn when the camera moves.

import { fitTo } from "./arrange.js";
import { Edges } from "./edges.js";
import { findNext } from "./find.js";
import { isIn } from "./geometry.js";
import { listen } from "./gestures.js";
import { MANY_EDGES, MANY_NODES, PIECE, drawDots, drawNames, drawNodes, pieces } from "./layers.js";
import { readColours } from "./node.js";
import { BITS } from "./socket.js";

/**
 * @typedef {import("./socket.js").Scene} Scene @typedef {import("./socket.js").SceneNode} SceneNode
 * @typedef {import("./socket.js").Frame} Frame
 * @typedef {{ node: number } | { from: number, to: number } | { area: number }} Chosen
 * @typedef {{ x: number, y: number, scale: number }} Camera
 */

/** The limits for the number of moving dots; there are fewer dots when animation frames come late. */
const MOST_DOTS = 4000;
const FEWEST_DOTS = 250;
/** How often a back with few and with many edges or nodes is redrawn if only rates and queues have changed, in milliseconds. */
const BETWEEN_BACKS = { few: 100, many: 1000 };
/** The limits for the number of edges and nodes of the back that one picture draws, if there are many. */
const LARGEST_PART = 2048;
const SMALLEST_PART = 128;
/** A picture that comes later than this after the one before is late, in milliseconds. */
const LATE = 22;
/** The largest scale that shows everything, in pixels per unit: a few nodes would be huge. */
const MOST_FIT = 90;
/** How much larger than everything services are when they unfold. */
const UNFOLDS = 2.2;

export class Graph {
  /**
   * @param {HTMLCanvasElement} back @param {HTMLCanvasElement} front @param {HTMLCanvasElement} names
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
    /** The zones of nodes: their edges, and their middles. */
    this.zoneLefts = this.zoneRights = this.zoneYs = new Float32Array(0);
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
    /** Whether the front, the back, or more than rates and queues of the back have changed since they were drawn. */
    this.isFrontOld = this.isOld = this.isUrgent = true;
    /** The unfinished drawing of the back layer. @type {Generator<void> | null} */
    this.drawing = null;
    this.drawingOf = { ...this.camera };
    this.pictures = 0;
    /** How many dots there may be, and how many pictures in a row came in time. */
    this.mostDots = MOST_DOTS;
    this.inTime = 0;
    /** How many edges and nodes of a large back a picture draws. */
    this.part = SMALLEST_PART * 4;
    this.colours = readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.colours = readColours();
      this.labelsOf = "";
      this.touch();
    });
    new ResizeObserver(() => this.resize()).observe(front);
    listen(this, hover);
    this.tick = (/** @type {number} */ now) => this.draw(now);
    this.isAwake = false;
  }

  /** All of the graph has changed. */
  touch() {
    this.isFrontOld = this.isOld = this.isUrgent = true;
    this.wake();
  }

  /** Draws from the next animation frame on, until nothing changes any more. */
  wake() {
    if (this.isAwake) return;
    this.isAwake = true;
    this.drawnAt = 0;
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
    this.touch();
  }

  /** Reads where nodes and their groups are. */
  setPlaces() {
    this.xs = Float32Array.from(this.nodes, (node) => node.x);
    this.ys = Float32Array.from(this.nodes, (node) => node.y);
    const of = (/** @type {SceneNode} */ node) => `${node.service}@${node.region}.${node.zone}`;
    const groups = new Map((this.scene?.folded ?? []).map((node) => [of(node), node]));
    this.groupXs = Float32Array.from(this.nodes, (node) => groups.get(of(node))?.x ?? node.x);
    this.groupYs = Float32Array.from(this.nodes, (node) => groups.get(of(node))?.y ?? node.y);
    const zones = this.scene?.areas.filter((area) => area.is_zone) ?? [];
    const found = this.nodes.map(({ x, y }) => zones.find((zone) => isIn(zone, x, y))?.at);
    this.zoneLefts = Float32Array.from(found, (at) => (at ? at[0] : NaN));
    this.zoneRights = Float32Array.from(found, (at) => (at ? at[0] + at[2] : NaN));
    this.zoneYs = Float32Array.from(found, (at) => (at ? at[1] + at[3] / 2 : NaN));
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
      if (bits[place] !== bit) this.isUrgent = true;
      bits[place] = bit;
      queues[place] = queue;
      busy[place] = inProgress;
      rates[place] = rate;
      errors[place] = failed;
      health[2 * place] = up;
      health[2 * place + 1] = all;
    });
    frame.eachEdge((from, to, rate, errors, p50, p99) => edges.set(from, to, rate, errors, p50, p99));
    if (frame.hasNew) this.isFrontOld = this.isOld = true;
    if (frame.hasNew || frame.playing) this.wake();
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
    this.touch();
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
    this.touch();
    if (!this.isMoved) this.fit();
  }

  /** @param {number} x @param {number} y @returns {[number, number]} */
  toScreen(x, y) {
    const { camera, front } = this;
    return [(x - camera.x) * camera.scale + front.clientWidth / 2, (y - camera.y) * camera.scale + front.clientHeight / 2];
  }

  /** @param {SceneNode} node @param {number} scale */
  radius(node, scale) {
    return this.folded ? Math.min(30, Math.max(0.68 * scale, 5)) : Math.min(40, Math.max(0.38 * node.size * scale, 1.5));
  }

  /** @param {number} now */
  draw(now) {
    const passed = this.drawnAt === 0 ? 0 : now - this.drawnAt;
    this.drawnAt = now;
    const isMoving = this.playing && this.edges.allDots > 0;
    this.isAwake = this.isOld || this.drawing !== null || isMoving;
    if (this.isAwake) requestAnimationFrame(this.tick);
    if (this.playing) this.dotTime += Math.min(passed / 1000, 0.1);
    if (!this.scene) return;
    this.adapt(passed);
    this.drawBack(now);
    if (!this.isFrontOld && !isMoving) return;
    this.isFrontOld = false;
    this.drawFront();
    this.pictures += 1;
  }

  /** Less work for each picture if pictures come late, more if they come in time for a while. @param {number} passed */
  adapt(passed) {
    if (passed > LATE) {
      this.inTime = 0;
      this.mostDots = Math.max(FEWEST_DOTS, Math.round(this.mostDots * 0.85));
      this.part = Math.max(SMALLEST_PART, this.part * 0.7);
    } else if ((this.inTime += 1) > 120) {
      this.inTime = 0;
      this.mostDots = Math.min(MOST_DOTS, Math.round(this.mostDots * 1.15));
      this.part = Math.min(LARGEST_PART, this.part * 1.15);
    }
  }

  /** The context of a canvas that is empty. @param {HTMLCanvasElement} canvas */
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
   * Draws the back if it is old: few edges at once, and many a part for each picture, because the browser rasterizes them
   * after this function. Until all is drawn, what there is follows the camera. @param {number} now
   */
  drawBack(now) {
    const isMuch = this.edges.count > MANY_EDGES || this.nodes.length > MANY_NODES;
    const isDue = this.isUrgent || now - this.backAt >= (isMuch ? BETWEEN_BACKS.many : BETWEEN_BACKS.few);
    if (!this.drawing && this.isOld && isDue) {
      this.isOld = this.isUrgent = false;
      this.backAt = now;
      this.drawingOf = { ...this.camera };
      this.drawing = pieces(this, this.begin(this.next), this.drawingOf);
    }
    let [left, isDone] = [isMuch ? this.part : Infinity, false];
    for (; this.drawing && !isDone && left > 0; left -= PIECE) isDone = this.drawing.next().done === true;
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
    this.back.classList.toggle("moved", !isHere);
  }

  drawFront() {
    const context = this.begin(this.front);
    drawDots(this, context);
    const chosen = this.chosen && "node" in this.chosen ? this.chosen.node : -1;
    if (chosen >= 0) drawNodes(this, context, this.camera, chosen, chosen + 1);
    drawNames(this, chosen);
  }

  /** Unfolds services, around one of them. @param {Chosen | null} chosen */
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
    this.touch();
    this.choose(chosen);
  }

  /** Chooses the nearest node in a direction. @param {number} dx @param {number} dy */
  move(dx, dy) {
    const here = this.chosen && "node" in this.chosen ? this.chosen.node : -1;
    const next = this.nodes[here] ? findNext(this, here, dx, dy) : Math.min(0, this.nodes.length - 1);
    if (next < 0) return;
    this.setChosen({ node: next });
    this.reveal(next);
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

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this.camera.x -= dx / this.camera.scale;
    this.camera.y -= dy / this.camera.scale;
    this.isMoved = true;
    this.touch();
  }

  /** @param {number} factor @param {number} [x] @param {number} [y] */
  zoom(factor, x = this.front.clientWidth / 2, y = this.front.clientHeight / 2) {
    const { camera, front } = this;
    const scale = Math.min(400, Math.max(0.05, camera.scale * factor));
    const [offX, offY] = [x - front.clientWidth / 2, y - front.clientHeight / 2];
    camera.x += offX / camera.scale - offX / scale;
    camera.y += offY / camera.scale - offY / scale;
    camera.scale = scale;
    this.isMoved = true;
    this.touch();
    const limit = this.unfoldScale();
    if (!this.isAuto || (this.scene?.folded.length ?? 0) === 0) return;
    if (this.folded && scale > limit) this.fold(false);
    else if (!this.folded && scale < limit * 0.7) this.fold(true);
  }
}
