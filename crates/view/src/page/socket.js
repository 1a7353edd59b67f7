// The line to the session: frames as bytes, the rest as JSON. It comes back by itself when it was cut.

import { connect } from "./connect.js";

/**
 * @typedef {{ name: string, x: number, y: number, service: string, package: string, region: string, zone: string, count: number,
 *   size: number, slots: number }} SceneNode
 * @typedef {{ name: string, is_zone: boolean, at: [number, number, number, number] }} Area
 * @typedef {{
 *   kind: "services" | "pirates" | "hosts" | "graph", arch: string, groups: string[], nodes: SceneNode[], folded: SceneNode[],
 *   edges: [number, number][], folded_edges: [number, number][], areas: Area[], width: number, height: number,
 *   total: number, load: [number, number] | null, actions: string[], marks: { at: number, name: string, text: string }[],
 *   stretch?: [number, number],
 * }} Scene
 * @typedef {{
 *   now: number, is_playing: boolean, is_over: boolean, speed: number | null, until: string | null, stopped: string,
 *   commands: [number, string][], digest: string | null, epoch: number, can_go_back: boolean,
 *   checkpoints: { number: number, at: number, digest: string, commands: number, bytes: number }[],
 * }} Status
 * @typedef {(place: number, bits: number, queue: number, busy: number, rate: number, errors: number, up: number, all: number) => void} HearNode
 * @typedef {(from: number, to: number, rate: number, errors: number, p50: number, p99: number) => void} HearEdge
 * @typedef {{
 *   playing: boolean, over: boolean, folded: boolean, epoch: number, version: number, now: number, speed: number,
 *   hasNew: boolean, eachNode: (hear: HearNode) => void, eachEdge: (hear: HearEdge) => void,
 * }} Frame
 * @typedef {{
 *   scene: (scene: Scene) => void, status: (status: Status) => void, frame: (frame: Frame) => void,
 *   controls: (has: boolean, watchers: number) => void, line: (open: boolean) => void,
 * }} Listener
 */

/** The bits of a node's state. */
export const BITS = { down: 1, paused: 2, cutOff: 4, slow: 8, away: 16, gone: 32 };

const HEAD = 40;
const NODE = 28;
const EDGE = 24;

/**
 * Reads a frame; see crates/view/src/frame.rs. Nodes and edges are read where they lie, and nothing is made of them.
 * @param {ArrayBuffer} bytes @returns {Frame}
 */
export function readFrame(bytes) {
  const view = new DataView(bytes);
  const bits = view.getUint8(1);
  const [nodeCount, edgeCount, epoch] = [view.getUint32(4, true), view.getUint32(8, true), view.getUint32(12, true)];
  const word = (/** @type {number} */ at) => view.getUint32(at, true);
  const number = (/** @type {number} */ at) => view.getFloat32(at, true);
  const real = (/** @type {number} */ field) => view.getFloat64(16 + 8 * field, true);
  const edges = HEAD + nodeCount * NODE;
  return {
    playing: (bits & 1) !== 0, over: (bits & 2) !== 0, folded: (bits & 4) !== 0, epoch,
    version: real(0), now: real(1), speed: real(2), hasNew: nodeCount + edgeCount > 0,
    eachNode(hear) {
      for (let at = HEAD; at < edges; at += NODE) {
        hear(word(at), view.getUint8(at + 4), number(at + 8), number(at + 12), number(at + 16), number(at + 20),
          view.getUint16(at + 24, true), view.getUint16(at + 26, true));
      }
    },
    eachEdge(hear) {
      for (let at = edges; at < edges + edgeCount * EDGE; at += EDGE) {
        hear(word(at), word(at + 4), number(at + 8), number(at + 12), number(at + 16), number(at + 20));
      }
    },
  };
}

export class Line {
  /** @param {Listener} listener */
  constructor(listener) {
    this.listener = listener;
    this.next = 1;
    /** @type {Map<number, { done: (value: any) => void, failed: (error: Error) => void }>} */
    this.waiting = new Map();
    this.pause = 200;
    /** @type {"each" | "folded"} */
    this.level = "each";
    this.open();
  }

  open() {
    const socket = connect();
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.pause = 200;
      this.listener.line(true);
      if (this.level === "folded") this.setLevel("folded");
    };
    socket.onmessage = ({ data }) => this.hear(data);
    socket.onclose = () => {
      this.listener.line(false);
      for (const { failed } of this.waiting.values()) failed(new Error("the connection to the session was lost"));
      this.waiting.clear();
      setTimeout(() => this.open(), this.pause);
      this.pause = Math.min(this.pause * 2, 5000);
    };
  }

  /** @param {string | ArrayBuffer} data */
  hear(data) {
    if (data instanceof ArrayBuffer) {
      this.listener.frame(readFrame(data));
      // The next frame comes when this one has been drawn: a slow page gets fewer.
      requestAnimationFrame(() => this.say({ drawn: true }));
      return;
    }
    const message = JSON.parse(data);
    if (message.type === "scene") this.listener.scene(message.scene);
    if (message.type === "status") this.listener.status(message.status);
    if (message.type === "controls") this.listener.controls(message.has, message.watchers);
    if (message.type === "answer") {
      const waits = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.wrong === undefined) waits?.done(message.value);
      else waits?.failed(new Error(message.wrong));
    }
  }

  /** @param {object} what */
  say(what) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(what));
  }

  /** @param {"each" | "folded"} level */
  setLevel(level) {
    this.level = level;
    this.say({ level });
  }

  /** Asks the session for something. @param {object | string} what @returns {Promise<any>} */
  ask(what) {
    const id = this.next;
    this.next += 1;
    return new Promise((done, failed) => {
      if (this.socket?.readyState !== WebSocket.OPEN) {
        failed(new Error("not connected to the session"));
        return;
      }
      this.waiting.set(id, { done, failed });
      this.say({ id, ask: what });
    });
  }

  /** @param {object | string} what @returns {Promise<any>} */
  control(what) {
    return this.ask({ control: what });
  }
}
