// The card beside the pointer: what is measured of the node or edge below it.

import { seconds, short } from "./charts.js";
import { element } from "./panels.js";
import { BITS } from "./socket.js";

/** @typedef {import("./graph.js").Graph} Graph @typedef {import("./graph.js").Chosen} Chosen */

/** @param {Graph} graph @param {number} place @returns {string[]} */
function aboutNode(graph, place) {
  const node = graph.nodes[place];
  if (!node) return [];
  const [up, all] = [graph.health[2 * place] ?? 0, graph.health[2 * place + 1] ?? 0];
  const bits = graph.bits[place] ?? 0;
  const states = (/** @type {Record<string, number>} */ of) => Object.keys(of).filter((word) => (bits & (of[word] ?? 0)) !== 0).join(", ");
  const where = node.region === "*" ? "" : ` in ${node.region}${node.zone === "*" ? "" : `.${node.zone}`}`;
  const lines = [`${node.name}${where}`];
  if (graph.scene?.kind === "pirates") {
    lines.push(`${short(graph.rates[place] ?? 0)} messages/s`, `gold ${short(graph.queues[place] ?? 0)}, buddies ${graph.busy[place] ?? 0}`);
    return lines;
  }
  if (graph.scene?.kind === "hosts") {
    const received = [...graph.edges.values()].reduce((sum, edge) => sum + (edge.to === place ? edge.rate : 0), 0);
    return [...lines, states({ down: BITS.down, paused: BITS.paused, "cut off": BITS.cutOff, ended: BITS.gone }) || "running", `${short(graph.rates[place] ?? 0)} packets/s sent, ${short(received)} received`];
  }
  if (graph.folded) lines.push(`${up} of ${all} instances serve`);
  const words = states({ killed: BITS.down, paused: BITS.paused, "cut off": BITS.cutOff, slow: BITS.slow, "not registered": BITS.away });
  if (words) lines.push(graph.folded ? `some: ${words}` : words);
  let [rate, p50, p99] = [0, 0, 0];
  for (const edge of graph.edges.values()) {
    if (edge.to !== place || edge.rate <= 0) continue;
    rate += edge.rate;
    p50 += edge.rate * edge.p50;
    p99 = Math.max(p99, edge.p99);
  }
  lines.push(`${short(graph.rates[place] ?? 0)} requests/s, ${Math.round(100 * (graph.errors[place] ?? 0))} % errors`);
  if (rate > 0) lines.push(`mean p50 ${seconds(p50 / rate)}, highest p99 ${seconds(p99)}`);
  const slots = node.slots * Math.max(all, 1);
  const use = slots > 0 ? `, ${Math.round((100 * (graph.busy[place] ?? 0)) / slots)} % of ${slots} slots in use` : "";
  lines.push(`queue ${short(graph.queues[place] ?? 0)}${use}`);
  return lines;
}

/** @typedef {{ name: string, place: number, up: number, all: number, rate: number, errors: number, queue: number }} Service */

/** What is measured of all services, the worst first. @param {Graph} graph @returns {Service[]} */
export function services(graph) {
  /** @type {Map<string, Service>} */
  const found = new Map();
  for (const [place, node] of (graph.scene?.folded.length ? graph.nodes : []).entries()) {
    const sum = found.get(node.service) ?? { name: node.service, place, up: 0, all: 0, rate: 0, errors: 0, queue: 0 };
    found.set(node.service, sum);
    const isUp = ((graph.bits[place] ?? 0) & (BITS.down | BITS.gone)) === 0;
    sum.up += graph.folded ? graph.health[2 * place] ?? 0 : Number(isUp);
    sum.all += graph.folded ? graph.health[2 * place + 1] ?? 0 : 1;
    sum.rate += graph.rates[place] ?? 0;
    sum.errors += (graph.rates[place] ?? 0) * (graph.errors[place] ?? 0);
    sum.queue += graph.queues[place] ?? 0;
  }
  const worse = (/** @type {Service} */ one) => one.all - one.up + (one.rate > 0 ? one.errors / one.rate : 0);
  return [...found.values()].sort((a, b) => worse(b) - worse(a) || b.rate - a.rate);
}

/** @param {Graph} graph @param {number} from @param {number} to @returns {string[]} */
function aboutEdge(graph, from, to) {
  const [a, b, edge] = [graph.nodes[from], graph.nodes[to], graph.edges.get(from, to)];
  if (!a || !b || !edge) return [];
  if (graph.scene?.kind === "hosts") return [`${a.name} → ${b.name}`, `${short(edge.rate)} packets/s`];
  if (graph.scene?.kind === "pirates") return [`${a.name} → ${b.name}`, `${short(edge.rate)} messages/s, latency ${seconds(edge.p50)}`];
  const lines = [`${a.name} → ${b.name}`, `${short(edge.rate)} requests/s, ${Math.round(100 * edge.errors)} % errors`];
  if (edge.p99 > 0) lines.push(`p50 ${seconds(edge.p50)}, p99 ${seconds(edge.p99)}`);
  return lines;
}

/** What is measured of a node or an edge, its name first. @param {Graph} graph @param {Chosen | null} found */
export function about(graph, found) {
  if (!found || "area" in found) return [];
  return "node" in found ? aboutNode(graph, found.node) : aboutEdge(graph, found.from, found.to);
}

/**
 * Shows the card of what is below the pointer, or hides it.
 * @param {HTMLElement} card @param {Graph} graph @param {Chosen | null} found @param {number} x @param {number} y
 */
export function showCard(card, graph, found, x, y) {
  const lines = about(graph, found);
  card.hidden = lines.length === 0;
  graph.front.style.cursor = found ? "pointer" : "";
  if (card.hidden) return;
  card.replaceChildren(...lines.map((text, number) => element(number === 0 ? "strong" : "span", text)));
  const { clientWidth: width, clientHeight: height } = graph.front;
  card.style.left = `${Math.max(0, Math.min(x + 14, width - card.offsetWidth - 4))}px`;
  card.style.top = `${y + 18 + card.offsetHeight > height ? Math.max(0, y - card.offsetHeight - 10) : y + 18}px`;
}
