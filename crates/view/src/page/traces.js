// Requests and their parts over time, in a pane as wide as the page: errors first, then the slowest.

import { seconds } from "./charts.js";
import { element, facts, link } from "./panels.js";

/**
 * @typedef {{ trace: string, span: string, parent: string, client: string, server: string, sent: number, received: number, answer: string }} Span
 * @typedef {(question: object) => Promise<any>} Look
 */

/** The most requests in the list, and the most actors that are asked for theirs. */
const MOST = 200;
const MOST_ACTORS = 32;

const isWrong = (/** @type {Span} */ { answer }) => answer !== "found" && answer !== "missing";
const lasts = (/** @type {Span} */ { sent, received }) => received - sent;

export class Traces {
  /** @param {HTMLElement} place @param {Look} look @param {(error: unknown) => void} complain */
  constructor(place, look, complain) {
    this.place = place;
    this.look = look;
    this.complain = complain;
    place.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  close() {
    this.place.hidden = true;
    this.opener?.focus();
  }

  /** Opens the pane with the recent requests of some actors. @param {string[]} names */
  async open(names) {
    /** @type {Span[]} */
    const spans = [];
    for (const requests of names.slice(0, MOST_ACTORS)) spans.push(...await this.look({ requests }));
    spans.sort((a, b) => Number(isWrong(b)) - Number(isWrong(a)) || lasts(b) - lasts(a));
    const filter = element("input");
    filter.placeholder = "name or outcome";
    const wrong = element("input");
    wrong.type = "checkbox";
    const [list, count, one] = [element("ul"), element("output"), element("div")];
    [list.className, list.tabIndex, one.id, one.tabIndex] = ["list", 0, "waterfall", 0];
    list.setAttribute("aria-label", "requests");
    one.setAttribute("role", "region");
    one.setAttribute("aria-label", "parts of the request");
    const fill = () => {
      const part = filter.value.trim().toLowerCase();
      const fit = spans.filter((span) => (!wrong.checked || isWrong(span)) && `${span.client} ${span.server} ${span.answer}`.toLowerCase().includes(part));
      count.textContent = `${fit.length} of ${spans.length}${fit.length > MOST ? `, ${MOST} shown` : ""}`;
      list.replaceChildren(...fit.slice(0, MOST).map((span) => {
        const button = link(`${seconds(lasts(span))} ${isWrong(span) ? `${span.answer}: ` : ""}${span.client} → ${span.server} at ${seconds(span.sent)}`, () => void this.show(span.trace, one));
        if (isWrong(span)) button.className = "bad";
        return element("li", "", button);
      }));
      if (fit[0]) void this.show(fit[0].trace, one);
      else one.replaceChildren(element("p", spans.length === 0 ? "No request has been answered since this page was opened." : "No request fits."));
    };
    filter.addEventListener("input", fill);
    wrong.addEventListener("change", fill);
    const head = element("p", "", element("strong", `Requests of ${names.length > 2 ? `${names.length} actors` : names.join(" and ")}`),
      element("label", "", "Filter ", filter), element("label", "", wrong, " errors only"), count, link("Close", () => this.close()));
    head.className = "row";
    if (this.place.hidden) this.opener = document.activeElement instanceof HTMLElement ? document.activeElement : null;
    this.place.replaceChildren(head, list, one);
    this.place.hidden = false;
    fill();
    filter.focus();
  }

  /** Shows a request as a waterfall with an axis of time. @param {string} trace @param {HTMLElement} place */
  async show(trace, place) {
    /** @type {Span[]} */
    let spans;
    try {
      spans = await this.look({ trace });
    } catch (error) {
      return this.complain(error);
    }
    if (spans.length === 0) {
      place.replaceChildren(element("p", "No spans of this trace are stored; it is still in progress, or too old."));
      return;
    }
    const begin = Math.min(...spans.map((span) => span.sent));
    const end = Math.max(...spans.map((span) => span.received));
    const share = (/** @type {number} */ time) => `${((100 * time) / (end - begin || 1)).toFixed(3)}%`;
    const known = new Map(spans.map((span) => [span.span, span]));
    const depth = (/** @type {Span} */ span) => {
      let [deep, at] = [0, known.get(span.parent)];
      while (at && deep < 50) [deep, at] = [deep + 1, known.get(at.parent)];
      return deep;
    };
    const row = (/** @type {string} */ name, /** @type {string} */ time, /** @type {Node[]} */ ...inside) => {
      const track = element("span", "", ...inside);
      track.className = "bar";
      const made = [element("span", name), track, element("span", time)];
      if (made[0]) made[0].className = "name";
      return made;
    };
    const axis = element("div", "", ...row("", "", ...[0, 0.25, 0.5, 0.75, 1].map((part) => {
      const tick = element("span", seconds(part * (end - begin)));
      tick.style.left = `${100 * part}%`;
      tick.style.translate = `${-100 * part}%`;
      return tick;
    })));
    axis.className = "axis";
    place.replaceChildren(element("p", `Trace ${trace}: ${spans.length} requests, ${seconds(end - begin)} from ${seconds(begin)}`), axis, ...spans.map((span) => {
      const bar = element("i");
      bar.style.left = share(span.sent - begin);
      bar.style.width = share(lasts(span));
      if (isWrong(span)) bar.className = "wrong";
      const summary = element("summary", "", ...row(`${"· ".repeat(depth(span))}${span.server}`, `${seconds(lasts(span))}${isWrong(span) ? ` ${span.answer}` : ""}`, bar));
      const made = element("details", "", summary, facts([
        ["from", span.client], ["to", span.server], ["sent", seconds(span.sent)], ["answered", seconds(span.received)],
        ["duration", seconds(lasts(span))], ["outcome", span.answer], ["span", span.span], ["parent", span.parent],
      ]));
      made.className = "span";
      return made;
    }));
  }
}
