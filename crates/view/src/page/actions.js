// Commands to the simulation: buttons for what is selected, each with a preview of its targets, and a form for all others.

import { readNumber, readTime } from "./numbers.js";
import { element, link } from "./panels.js";

/**
 * @typedef {import("./socket.js").Scene} Scene @typedef {import("./socket.js").SceneNode} SceneNode
 * @typedef {import("./graph.js").Graph} Graph
 * @typedef {{ who: string, text: string, service: string, bits: number }} Scope what a command is for, as the session calls it
 * @typedef {{ ask: (what: object) => Promise<any>, control: (what: object) => Promise<void>, complain: (error: unknown) => void }} Session
 */

const MOST_PERCENT = 100000;
const MOST_COUNT = 4294967295;
/** Above that instances are not offered by name. */
const MOST_OFFERED = 3000;

/** A number that a command has: what it is, and what is offered first. @type {Record<string, [string, string]>} */
const NUMBERS = { slow: ["percent of the normal service time", "500"], load: ["percent of the load", "200"], scale: ["instances", ""] };

/**
 * The commands that make sense for a scope, and the words on their buttons.
 * @param {Scene} scene @param {Scope} scope @param {{ down: number, paused: number, cutOff: number }} bits
 * @returns {[string, string][]}
 */
function offered(scene, scope, bits) {
  const has = (/** @type {number} */ bit) => (scope.bits & bit) !== 0;
  const isEntry = scene.nodes.some((node) => node.service === scope.service && node.package === "denominator");
  /** @type {[string, string, boolean][]} */
  const all = [
    ["kill", "Kill", true], ["revive", "Revive", has(bits.down)], ["slow", "Slow", true], ["pause", "Pause", !has(bits.paused)],
    ["resume", "Resume", has(bits.paused)], ["partition", "Partition", !has(bits.cutOff)], ["rejoin", "Rejoin", has(bits.cutOff)],
    ["scale", "Scale", scope.service !== "" && !isEntry], ["load", "Load", isEntry],
  ];
  return all.filter(([name, , fits]) => fits && scene.actions.includes(name)).map(([name, word]) => [name, word]);
}

/** The names that a command accepts. @param {Scene} scene @param {string} what */
export function accepted(scene, what) {
  const names = (/** @type {(node: import("./socket.js").SceneNode) => string} */ of, nodes = scene.nodes) => nodes.map(of);
  const entries = scene.nodes.filter((node) => node.package === "denominator");
  if (scene.kind === "pirates") return names((node) => node.name).slice(0, MOST_OFFERED);
  if (what === "scale") return [...new Set(names((node) => node.service))];
  if (what === "load") return [...new Set([...names((node) => node.service, entries), ...names((node) => node.name, entries)])];
  const placed = scene.nodes.filter((node) => node.region !== "*");
  const zoned = placed.filter((node) => node.zone !== "*");
  return [...new Set([
    ...names((node) => node.service), ...names((node) => node.region, placed),
    ...names((node) => `${node.region}.${node.zone}`, zoned),
    ...(scene.nodes.length <= MOST_OFFERED ? names((node) => node.name) : []),
  ])];
}

/**
 * A command as the session reads it.
 * @param {string} what @param {string} who @param {string} number @param {string} message @param {string} at
 */
export function command(what, who, number, message, at) {
  /** @type {Record<string, unknown>} */
  const action = { do: what };
  const target = who.trim();
  if (target === "" && what !== "load") throw new Error("the target is empty; type or choose an actor, a service or a zone");
  if (what === "scale") {
    Object.assign(action, { service: target, count: readNumber(number, "the number of instances", { most: MOST_COUNT, isWhole: true, example: "3" }) });
  } else if (what !== "load" || target !== "") {
    action.who = target;
  }
  if (what === "slow" || what === "load") {
    const least = what === "slow" ? 1 : 0;
    action.percent = readNumber(number, "the percentage", { least, most: MOST_PERCENT, isWhole: true, example: "500" });
  }
  if (what === "send") action.message = message;
  return { do: { what: action, ...(at.trim() === "" ? {} : { at: readTime(at, "the time") }) } };
}

/**
 * What the commands for a node may be for: it, its service, its zone, its region.
 * @param {Graph} graph @param {number} place @returns {Scope[]}
 */
export function scopesOf(graph, place) {
  const node = graph.nodes[place];
  if (!node) return [];
  const at = `${node.region}.${node.zone}`;
  const bitsOf = (/** @type {(other: SceneNode) => boolean} */ is) =>
    graph.nodes.reduce((bits, other, place) => bits | (is(other) ? graph.bits[place] ?? 0 : 0), 0);
  const bits = graph.bits[place] ?? 0;
  if (graph.scene?.kind === "pirates") return [{ who: node.name, text: node.name, service: "", bits }];
  /** @type {Scope[]} */
  const scopes = [graph.folded
    ? { who: `${node.service}@${at}`, text: node.zone === "*" ? node.service : `${node.service} in ${at}`, service: node.service, bits }
    : { who: node.name, text: node.name, service: node.service, bits }];
  if (!graph.folded || node.zone !== "*") {
    const is = (/** @type {SceneNode} */ other) => other.service === node.service;
    scopes.push({ who: node.service, text: `${node.service} everywhere`, service: node.service, bits: bitsOf(is) });
  }
  return [...scopes, ...scopesOfPlace(graph, node.region, node.zone)];
}

/** The zone and the region of a place. @param {Graph} graph @param {string} region @param {string} zone @returns {Scope[]} */
export function scopesOfPlace(graph, region, zone) {
  /** @type {Scope[]} */
  const scopes = [];
  const bitsOf = (/** @type {string} */ of) =>
    graph.nodes.reduce((bits, other, place) => bits | (other.region === region && (of === "*" || other.zone === of) ? graph.bits[place] ?? 0 : 0), 0);
  if (region !== "*" && zone !== "*") scopes.push({ who: `${region}.${zone}`, text: `all of ${region}.${zone}`, service: "", bits: bitsOf(zone) });
  if (region !== "*") scopes.push({ who: region, text: `all of ${region}`, service: "", bits: bitsOf("*") });
  return scopes;
}

export class Actions {
  /** @param {HTMLElement} place @param {Session} session @param {{ down: number, paused: number, cutOff: number }} bits */
  constructor(place, session, bits) {
    this.place = place;
    this.session = session;
    this.bits = bits;
    this.isEnabled = false;
  }

  /** Offers commands for one of some scopes. @param {Scene | null} scene @param {Scope[]} scopes the first is chosen */
  show(scene, scopes) {
    const [first] = scopes;
    this.place.replaceChildren();
    this.place.hidden = !scene || !first || scene.actions.length === 0;
    if (this.place.hidden || !scene || !first) return;
    const choice = element("select");
    choice.setAttribute("aria-label", "what the buttons are for");
    choice.append(...scopes.map(({ text }, number) => new Option(text, String(number))));
    const buttons = element("p");
    buttons.className = "row";
    const plan = element("form");
    plan.hidden = true;
    const offer = () => {
      const scope = scopes[Number(choice.value)] ?? first;
      plan.hidden = true;
      buttons.replaceChildren(...offered(scene, scope, this.bits).map(([what, word]) => {
        const button = link(word, () => void this.preview(plan, what, word, scope));
        button.dataset.do = what;
        return button;
      }));
      this.enable(this.isEnabled);
    };
    choice.addEventListener("change", offer);
    const label = element("label", "", "For ", choice);
    if (scopes.length > 0) this.place.append(label);
    this.place.append(buttons, plan);
    offer();
  }

  /** @param {boolean} isEnabled */
  enable(isEnabled) {
    this.isEnabled = isEnabled;
    for (const button of this.place.querySelectorAll("button")) button.disabled = !isEnabled;
  }

  /**
   * Shows what a command would be for, before it is applied.
   * @param {HTMLFormElement} plan @param {string} what @param {string} word @param {Scope} scope
   */
  async preview(plan, what, word, scope) {
    const who = what === "scale" ? scope.service : scope.who;
    const [unit, usual] = NUMBERS[what] ?? ["", ""];
    try {
      const { do: { what: action } } = command(what, who, what === "scale" ? "0" : usual, "", "");
      const kind = what === "scale" ? { do: "kill", who } : action;
      const { count, names } = await this.session.ask({ look: { preview: kind } });
      const shown = names.slice(0, 6).join(", ");
      const targets = element("p", `${word} ${count} ${count === 1 ? "actor" : "actors"}: ${shown}${count > 6 ? ", …" : ""}`);
      targets.setAttribute("role", "status");
      const number = element("input");
      number.value = what === "scale" ? String(count + 1) : usual;
      number.size = 6;
      number.inputMode = "numeric";
      const at = element("input");
      at.placeholder = "now";
      at.size = 5;
      at.inputMode = "decimal";
      const apply = element("button", "Apply");
      const cancel = link("Cancel", () => (plan.hidden = true));
      const fields = unit ? [element("label", "", `${unit} `, number)] : [];
      plan.replaceChildren(targets, ...fields, element("label", "", "at ", at, " s"), apply, cancel);
      plan.onsubmit = (event) => {
        event.preventDefault();
        try {
          void this.session.control(command(what, who, number.value, "", at.value));
          plan.hidden = true;
        } catch (error) {
          this.session.complain(error);
        }
      };
      plan.hidden = false;
      this.enable(this.isEnabled);
      (unit ? number : apply).focus();
    } catch (error) {
      plan.hidden = true;
      this.session.complain(error);
    }
  }
}
