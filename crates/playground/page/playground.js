// The playground: a definition at the left, the live view and answers at the right.

import shop from "shop";
import workerText from "worker";
import { autocompletion } from "@codemirror/autocomplete";
import { syntaxHighlighting } from "@codemirror/language";
import { classHighlighter } from "@lezer/highlight";
import { EditorView, basicSetup } from "codemirror";
import { jsonSchema } from "codemirror-json-schema";
import * as answers from "./answers.js";
import { deliver, setPost } from "./connect.js";

/** @param {string} id */
const $ = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
const field = (/** @type {string} */ id) => /** @type {HTMLInputElement} */ ($(id));

/** A worker that is called by messages. */
class Caller {
  /** @param {WebAssembly.Module} module */
  constructor(module) {
    const url = URL.createObjectURL(new Blob([workerText], { type: "text/javascript" }));
    this.worker = new Worker(url);
    this.next = 1;
    /** @type {Map<number, { done: (value: any) => void, failed: (error: Error) => void }>} */
    this.waiting = new Map();
    this.worker.onmessage = ({ data }) => {
      if (data.text !== undefined) return deliver(data.text);
      if (data.frame !== undefined) return deliver(data.frame);
      const waits = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.wrong === undefined) waits?.done(data.value);
      else waits?.failed(new Error(data.wrong));
    };
    this.worker.onerror = ({ message }) => complain(`the simulation has failed (${message}); reload the page`);
    this.worker.postMessage({ module });
  }

  /**
   * @param {string} call
   * @param {...unknown} given
   * @returns {Promise<any>}
   */
  call(call, ...given) {
    const id = this.next++;
    return new Promise((done, failed) => {
      this.waiting.set(id, { done, failed });
      this.worker.postMessage({ id, call, given });
    });
  }

  /** @param {string} text */
  hear(text) {
    this.worker.postMessage({ hear: text });
  }
}

/** @param {Uint8Array} bytes @param {CompressionStream | DecompressionStream} through */
async function piped(bytes, through) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(through)).arrayBuffer());
}

const fromBase64 = (/** @type {string} */ text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const toBase64 = (/** @type {Uint8Array} */ bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));

/** The longest link that is read, and the longest text in it. */
const MOST_LINK = 200_000;
const MOST_TEXT = 2_000_000;

/** @returns {Promise<any>} the content of the link; an object without fields if the address has none */
async function fromLink() {
  const text = location.hash.slice(1).replaceAll("-", "+").replaceAll("_", "/");
  if (text === "") return {};
  try {
    if (text.length > MOST_LINK) throw new Error("too long");
    const bytes = await piped(fromBase64(text), new DecompressionStream("gzip"));
    if (bytes.length > MOST_TEXT) throw new Error("too long");
    const link = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof link.definition !== "string" && !(link.pirates > 0)) throw new Error("nothing to run");
    return link;
  } catch {
    return { fault: "the link is damaged; copy the whole address" };
  }
}

/** The number of messages so far. */
let messages = 0;

/** @param {string} text @param {boolean} [wrong] */
function say(text, wrong = false) {
  messages += 1;
  $("said").textContent = text;
  $("said").classList.toggle("wrong", wrong);
}

/** @param {unknown} error */
const complain = (error) => say(error instanceof Error ? error.message : String(error), true);

const READY = "Press Play. Everything runs in this page, and nothing is sent.";

/**
 * The text of a field as a whole number of a range.
 * @param {string} id @param {string} what @param {bigint} least @param {bigint} most
 */
function whole(id, what, least, most) {
  const text = field(id).value.trim();
  const number = /^\d{1,20}$/.test(text) ? BigInt(text) : -1n;
  if (number < least || number > most) throw new Error(`'${text}' is not a ${what}; give a whole number from ${least} to ${most}`);
  return String(number);
}

/** A change that is worth a comparison: twice as many instances of the first store. @param {string} text */
function suggestion(text) {
  try {
    const services = JSON.parse(text).services.filter((/** @type {any} */ one) => one.count > 0);
    const chosen = services.find((/** @type {any} */ one) => one.package === "store") ?? services[0];
    return chosen ? `services.${chosen.name}.count=${chosen.count * 2}` : "";
  } catch {
    return "";
  }
}

async function main() {
  const packed = $("wasm").textContent ?? "";
  const bytes = await piped(fromBase64(packed.trim()), new DecompressionStream("gzip"));
  const module = await WebAssembly.compile(bytes);
  $("wasm").remove();
  const [live, other] = [new Caller(module), new Caller(module)];
  setPost((text) => live.hear(text));
  const link = await fromLink();
  const schema = await other.call("schema");
  const names = await other.call("examples");
  const isLinked = typeof link.definition === "string";
  $("example").replaceChildren(...[...(isLinked ? [""] : []), "shop", ...names, "pirates"].map((name) => new Option(name === "" ? "from the link" : name, name)));
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const editor = new EditorView({
    doc: isLinked ? link.definition : shop,
    extensions: [basicSetup, jsonSchema(schema), autocompletion(), EditorView.lineWrapping, syntaxHighlighting(classHighlighter),
      EditorView.darkTheme.of(isDark),
      EditorView.updateListener.of((update) => update.docChanged && edited()),
      EditorView.cspNonce.of(document.querySelector("style")?.nonce ?? ""),
      EditorView.contentAttributes.of({ "aria-label": "definition" })],
    parent: $("editor"),
  });
  const text = () => editor.state.doc.toString();
  const [seed, seconds] = [field("seed"), field("seconds")];
  seed.value = String(link.seed ?? seed.value);
  seconds.value = String(link.seconds ?? seconds.value);
  let kind = link.pirates > 0 ? "pirates" : "services";
  if (kind === "pirates") field("population").value = String(link.pirates);
  const population = () => Number(whole("population", "number of pirates", 1n, 1_000_000n));
  const seedNow = () => whole("seed", "seed", 0n, 2n ** 64n - 1n);
  const settings = field("settings");
  /** The definition of the session. */
  let opened = "";
  let checking = 0;

  /** Starts the session again with what the editor has. */
  async function open() {
    const definition = text();
    if (kind === "pirates") await live.call("pirates", population(), seedNow(), Number(seconds.value));
    else await live.call("open", definition, seedNow(), Number(seconds.value));
    opened = definition;
    showKind();
    say(READY);
  }
  function showKind() {
    const isPirates = kind === "pirates";
    for (const id of ["population-label", "of-pirates"]) $(id).hidden = !isPirates;
    for (const id of ["editor", "capacity", "compare", "digest-run"]) $(id).hidden = isPirates;
    $("start").classList.toggle("changed", !isPirates && text() !== opened);
    if (isPirates) field("example").value = "pirates";
  }
  /** Checks the text when it has not changed for some time. */
  function edited() {
    clearTimeout(checking);
    showKind();
    const before = messages;
    checking = window.setTimeout(async () => {
      try {
        await other.call("check", text());
        // The check waits for answers. A message that was shown in the meantime is newer.
        if (messages === before) say(text() === opened ? READY : "The definition has changed; Start shows it.");
      } catch (error) {
        complain(error);
      }
    }, 300);
  }
  /** @param {() => Promise<void>} work */
  const trying = (work) => async (/** @type {Event} */ event) => {
    event?.preventDefault();
    try {
      document.body.setAttribute("aria-busy", "true");
      await work();
    } catch (error) {
      complain(error);
    }
    document.body.removeAttribute("aria-busy");
  };

  settings.value = suggestion(text());
  try {
    await open();
    for (const command of Array.isArray(link.commands) ? link.commands.slice(0, 10_000) : []) {
      const { at, ...what } = Object(command);
      await ask(live, { control: { do: { what, at } } }).catch((error) => complain(`a command of the link has no effect: ${error.message}`));
    }
    if (link.fault) complain(link.fault);
  } catch (error) {
    // The page is of use even if its link is not.
    await live.call("open", shop, "0", 10);
    complain(error);
  }
  await import("./app.js");

  field("example").addEventListener("change", trying(async () => {
    const name = field("example").value;
    const definition = { "": link.definition, pirates: "", shop }[name] ?? await other.call("example", name);
    kind = name === "pirates" ? "pirates" : "services";
    if (kind === "services") {
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: definition } });
      settings.value = suggestion(definition);
    }
    answers.close();
    await open();
  }));
  const start = trying(open);
  $("start").addEventListener("click", start);
  editor.dom.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && start(event), { capture: true });
  $("close-answers").addEventListener("click", answers.close);
  /** The name that the file of the definition has in commands. */
  const file = () => `${/"arch" *: *"([\w-]+)"/.exec(text())?.[1] ?? "definition"}_arch.json`;
  const ofSeed = () => (seed.value === "0" ? "" : ` --seed ${seed.value}`);
  $("digest-run").addEventListener("click", trying(async () => {
    const ran = await other.call("run", text(), seedNow(), Number(seconds.value));
    answers.run(ran, seedNow(), `corsair -a ${file()} -d ${seconds.value}${ofSeed()}`);
  }));
  $("capacity").addEventListener("submit", trying(async () => {
    const limit = Number(field("limit").value);
    const found = await other.call("capacity", text(), seedNow(), 5, limit);
    answers.capacity(found, limit, `corsair capacity -a ${file()} --limit ${limit}ms${ofSeed()}`);
  }));
  $("compare").addEventListener("submit", trying(async () => {
    const rows = await other.call("compare", text(), settings.value, seedNow(), 5, 5);
    answers.compare(rows, `corsair compare ${file()} --set '${settings.value.trim()}' --seeds 5 -d 5${ofSeed()}`);
  }));
  $("link").addEventListener("click", trying(async () => {
    const { commands } = await ask(live, "save");
    const state = JSON.stringify({ definition: kind === "services" ? text() : undefined, seed: seed.value, seconds: Number(seconds.value),
      pirates: kind === "pirates" ? population() : 0, commands });
    const bytes = new TextEncoder().encode(state);
    const hash = toBase64(await piped(bytes, new CompressionStream("gzip"))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    if (bytes.length > MOST_TEXT || hash.length > MOST_LINK) throw new Error("the definition is too long for a link; save its text to a file");
    location.hash = hash;
    say("The address of this page now has the definition, the seed and the commands. Copy it.");
  }));

  Object.assign(window, { playground: { live, other, open, editor } });
}

/** The number of the next request; those of the live view are small. */
let asked = 1e9;

/** Sends a request to the session. @param {Caller} live @param {unknown} request @returns {Promise<any>} the answer */
function ask(live, request) {
  const id = asked++;
  return new Promise((done, failed) => {
    const hear = (/** @type {MessageEvent} */ { data }) => {
      const message = data.text === undefined ? {} : JSON.parse(data.text);
      if (message.type !== "answer" || message.id !== id) return;
      live.worker.removeEventListener("message", hear);
      if (message.wrong === undefined) done(message.value);
      else failed(new Error(message.wrong));
    };
    live.worker.addEventListener("message", hear);
    live.hear(JSON.stringify({ id, ask: request }));
  });
}

main().catch(complain);
