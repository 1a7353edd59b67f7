// What is measured over time: the charts of the run, of a service or a zone, and those of pirates.

import { drawBar, drawBars, drawCurves, drawDensity, seconds, short, shown, styleOf } from "./charts.js";
import { $, canvas, select } from "./dom.js";

/**
 * @typedef {import("./socket.js").Scene} Scene @typedef {import("./charts.js").Point} Point
 * @typedef {{ scene: Scene | null, status: import("./socket.js").Status | null, now: number }} State
 */

export class Measured {
  /** @param {State} state @param {(what: object) => Promise<any>} ask */
  constructor(state, ask) {
    this.state = state;
    this.ask = ask;
    this.isDrawing = false;
    /** The measurements of the chosen group. @type {Point[]} */
    this.points = [];
    this.redraw = () => this.draw();
  }

  /** The end of the run as far as it is known, and its time. */
  run() {
    const { scene, now } = this.state;
    const end = scene?.load?.[1] ?? 0;
    return { end, now: scene?.kind === "graph" ? end : now };
  }

  /** Asks for what was measured, and draws it. */
  async refresh() {
    const { scene } = this.state;
    if (this.isDrawing || !scene) return;
    this.isDrawing = true;
    try {
      ({ points: this.points } = await this.ask({ series: select("group").value || "all" }));
      this.draw();
      if (scene.kind === "pirates") await this.drawPirates();
    } catch {
      // Without a line there is nothing to draw; the line says so.
    }
    this.isDrawing = false;
  }

  /** A stage has come if its time has; the first one is there before the load begins. */
  tellStage() {
    const { scene, now } = this.state;
    const stages = (scene?.marks ?? []).filter((mark) => mark.text);
    const stage = stages.findLast(({ at }) => at <= (shown.at ?? now) + 1e-6) ?? stages[0];
    $("stage-of").hidden = !stage;
    const text = stage ? `${stages.indexOf(stage) + 1} of ${stages.length} · ${stage.name}: ${stage.text}` : "";
    if ($("stage-of").textContent !== text) $("stage-of").textContent = text;
  }

  draw() {
    const { points, state: { scene, status, now } } = this;
    const [commands, faults] = [status?.commands ?? [], scene?.marks ?? []];
    const marks = [...faults.map(({ at, name, text }) => ({ at, style: styleOf(name, text) })), ...commands.map(([at]) => ({ at, style: "--ink" }))];
    const isServices = scene?.kind !== "pirates" && scene?.kind !== "hosts";
    $("whole-run").hidden = !shown.span;
    drawBar(canvas("bar"), points, { ...this.run(), now, faults, commands });
    const near = shown.cursor;
    const isNear = (/** @type {number} */ at) => near !== null && Math.abs(at - near) < 0.01 * Math.max(now, this.run().end);
    const names = [...faults.map(({ at, name }) => [at, name]), ...commands].filter(([at]) => isNear(Number(at)));
    $("bar").title = names.map(([at, name]) => `${seconds(Number(at))}: ${name}`).join("\n");
    drawCurves(canvas("rate"), points, [
      { name: isServices ? "requests/s" : scene?.kind === "hosts" ? "packets/s" : "messages/s", colour: "--edge", of: (point) => point.rate },
      ...(isServices ? [{ name: "errors/s", colour: "--bad", of: (/** @type {Point} */ point) => point.errors }] : []),
    ], marks);
    drawCurves(canvas("latency"), points, [
      { name: "p50", colour: "--edge", of: (point) => point.p50 },
      { name: "p99", colour: "--warn", of: (point) => point.p99 },
      { name: "p99.9", colour: "--cut", of: (point) => point.p999 },
    ], marks, { log: true, unit: seconds });
    drawCurves(canvas("queue"), points, [{ name: "queue", colour: "--cut", of: (point) => point.queue }], marks);
    drawCurves(canvas("utilisation"), points, [{ name: "utilisation", colour: "--slow", of: (point) => point.utilisation }], marks, {
      top: 1, unit: (value) => `${Math.round(value * 100)} %`,
    });
    $("no-charts").hidden = !["rate", "latency", "queue", "utilisation"].every((id) => canvas(id).hidden);
    this.tellStage();
  }

  async drawPirates() {
    const seen = await this.ask({ look: { density: true } });
    $("densities").hidden = seen.degree.every((/** @type {number} */ count) => count === 0);
    const powers = (/** @type {number[]} */ counts, /** @type {number} */ unit) => {
      const last = counts.findLastIndex((count) => count > 0);
      return counts.slice(0, last + 1).map((count, place) =>
        /** @type {[string, number]} */ ([place === 0 ? "0" : short(2 ** (place - 1) * unit), count]));
    };
    drawBars(canvas("degree"), seen.degree.map((/** @type {number} */ count, /** @type {number} */ degree) => [String(degree), count]));
    drawBars(canvas("gold"), powers(seen.gold, 1));
    drawBars(canvas("rates"), powers(seen.tenths_per_second, 0.1));
    drawDensity(canvas("both"), seen.degree_by_gold.map((/** @type {number[]} */ row) => row.slice(0, 14)));
  }
}
