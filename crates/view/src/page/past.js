// Looking back: the state of the graph at an earlier time, chosen on the bar of time, by pointer or by keys.

import { seconds, shown, timeAt } from "./charts.js";
import { readFrame } from "./socket.js";

/**
 * @typedef {{ end: number, now: number }} Run
 * @typedef {{ graph: import("./graph.js").Graph, ask: (what: object) => Promise<any>, live: () => void, run: () => Run,
 *   redraw: () => void, complain: (error: unknown) => void }} Session
 */

/** How far a key moves, as a part of the run. @type {Record<string, number>} */
const KEYS = { ArrowLeft: -0.01, ArrowDown: -0.01, ArrowRight: 0.01, ArrowUp: 0.01, PageDown: -0.1, PageUp: 0.1 };

export class Past {
  /** @param {HTMLCanvasElement} bar @param {HTMLElement} note @param {Session} session */
  constructor(bar, note, session) {
    this.bar = bar;
    this.note = note;
    this.session = session;
    this.isAsking = false;
    let isHeld = false;
    const point = (/** @type {PointerEvent} */ event) => {
      shown.cursor = timeAt(bar, event.offsetX);
      if (isHeld && shown.cursor !== null) this.look(shown.cursor);
      else session.redraw();
    };
    bar.addEventListener("pointerdown", (event) => {
      isHeld = true;
      bar.setPointerCapture?.(event.pointerId);
      point(event);
    });
    bar.addEventListener("pointermove", point);
    for (const ends of ["pointerup", "pointercancel", "pointerleave"]) {
      bar.addEventListener(ends, () => {
        isHeld = false;
        shown.cursor = null;
        session.redraw();
      });
    }
    bar.addEventListener("keydown", (event) => {
      const { end, now } = session.run();
      const part = KEYS[event.key];
      if (event.key === "Home") this.look(0);
      else if (event.key === "End" || event.key === "Escape") this.leave();
      else if (part !== undefined) this.look((shown.at ?? now) + part * Math.max(end, now));
      else return;
      event.preventDefault();
    });
  }

  /** Looks at a time; the latest one counts if several are asked for at once. @param {number} time */
  look(time) {
    const { now } = this.session.run();
    if (time >= now) return this.leave();
    shown.at = Math.max(0, time);
    this.tell();
    void this.refresh();
  }

  /** Asks for the state of the time that is looked at. */
  async refresh() {
    if (this.isAsking) return;
    this.isAsking = true;
    const { graph, ask, complain } = this.session;
    for (let [asked, level] = [NaN, ""]; shown.at !== null && (asked !== shown.at || level !== (graph.folded ? "folded" : "each")); ) {
      [asked, level] = [shown.at, graph.folded ? "folded" : "each"];
      try {
        const bytes = Uint8Array.from(await ask({ at: [asked, level] }));
        if (shown.at !== null) graph.setPast(readFrame(bytes.buffer));
      } catch (error) {
        complain(error);
        this.leave();
      }
    }
    this.isAsking = false;
  }

  /** Returns to the present. */
  leave() {
    if (shown.at === null) return;
    shown.at = null;
    this.session.graph.past = false;
    this.session.live();
    this.tell();
  }

  tell() {
    const at = shown.at;
    this.note.hidden = at === null;
    const { end, now } = this.session.run();
    const text = at === null ? "" : `Looking back at ${seconds(at)}`;
    if (this.note.firstElementChild) this.note.firstElementChild.textContent = text;
    this.bar.setAttribute("aria-valuemax", String(Math.max(end, now)));
    this.bar.setAttribute("aria-valuenow", String(at ?? now));
    this.bar.setAttribute("aria-valuetext", text || `now, ${seconds(now)}`);
    this.session.redraw();
  }
}
