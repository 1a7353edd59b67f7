// The playground: a definition at the left, the live view at the right.

import workerText from "worker";
import { autocompletion } from "@codemirror/autocomplete";
import { EditorView, basicSetup } from "codemirror";
import { jsonSchema } from "codemirror-json-schema";
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

/** @returns {Promise<any>} what the link says, if it says anything */
async function fromLink() {
  const text = location.hash.slice(1).replaceAll("-", "+").replaceAll("_", "/");
  if (text === "" || text.length > MOST_LINK) return null;
  try {
    const bytes = await piped(fromBase64(text), new DecompressionStream("gzip"));
    if (bytes.length > MOST_TEXT) throw new Error("too long");
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    say("the link is damaged; copy the whole address", true);
    return null;
  }
}

/** @param {string} text @param {boolean} [wrong] */
function say(text, wrong = false) {
  $("said").textContent = text;
  $("said").classList.toggle("wrong", wrong);
}

/** @param {unknown} error */
const complain = (error) => say(error instanceof Error ? error.message : String(error), true);

/** @param {string[][]} rows */
function table(rows) {
  const made = document.createElement("table");
  for (const row of rows) {
    const line = made.insertRow();
    for (const text of row) line.insertCell().textContent = text;
  }
  $("answer").replaceChildren(made);
}

const ms = (/** @type {number | null} */ seconds) => (seconds === null ? "" : `${(seconds * 1e3).toPrecision(3)} ms`);

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
  $("example").replaceChildren(...["", ...names, "pirates"].map((name) => new Option(name === "" ? "choose…" : name, name)));
  const editor = new EditorView({
    doc: typeof link?.definition === "string" ? link.definition : await other.call("example", "netflixoss"),
    extensions: [basicSetup, jsonSchema(schema), autocompletion(), EditorView.lineWrapping,
      EditorView.cspNonce.of(document.querySelector("style")?.nonce ?? ""),
      EditorView.contentAttributes.of({ "aria-label": "definition" })],
    parent: $("editor"),
  });
  const text = () => editor.state.doc.toString();
  const [seed, seconds] = [field("seed"), field("seconds")];
  if (/^\d{1,19}$/.test(String(link?.seed))) seed.value = String(link.seed);
  if (Number(link?.seconds) > 0) seconds.value = String(link.seconds);
  let kind = link?.pirates > 0 ? "pirates" : "services";
  let population = Number(link?.pirates) || 1000;

  /** Starts the session again with what the editor has. */
  async function open() {
    if (kind === "pirates") await live.call("pirates", population, seed.value, Number(seconds.value));
    else await live.call("open", text(), seed.value, Number(seconds.value));
    say(kind === "pirates" ? `${population} pirates` : "");
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

  await open();
  await import("./app.js");
  for (const command of Array.isArray(link?.commands) ? link.commands.slice(0, 10_000) : []) {
    const { at, ...what } = Object(command);
    live.hear(JSON.stringify({ id: 0, ask: { control: { do: { what, at } } } }));
  }

  field("example").addEventListener("change", trying(async () => {
    const name = field("example").value;
    if (name === "") return;
    kind = name === "pirates" ? "pirates" : "services";
    if (kind === "services") {
      const definition = await other.call("example", name);
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: definition } });
    }
    await open();
  }));
  $("start").addEventListener("click", trying(async () => {
    kind = "services";
    await open();
  }));
  $("digest-run").addEventListener("click", trying(async () => {
    const ran = await other.call("run", text(), seed.value, Number(seconds.value));
    table([["digest", `${ran.digest} (seed ${seed.value})`]]);
    say(`the command gives the same digest: corsair -a definition.json -d ${seconds.value} --seed ${seed.value}`);
  }));
  $("capacity").addEventListener("submit", trying(async () => {
    const found = await other.call("capacity", text(), seed.value, 2, Number(field("limit").value));
    say(!found.limited ? "nothing limits the load; give services concurrency, processors or a rate_limit to find a capacity"
      : found.load === null ? "not even the lowest load is sustained"
      : `sustains ${found.beyond ? "at least " : ""}${found.load} requests per second at each entry point`);
    table([["load/s", "p99", "errors", ""], ...found.points.map((/** @type {any} */ point) =>
      [String(point.load), ms(point.p99_seconds), String(point.errors), point.holds ? "" : "too much"])]);
  }));
  $("compare").addEventListener("submit", trying(async () => {
    const rows = await other.call("compare", text(), field("settings").value, seed.value, 2, 5);
    say("95 % intervals from 5 seeds; * where the variant differs");
    table([["", "a", "b", "b - a", ""], ...rows.map((/** @type {any} */ row) => {
      const shown = (/** @type {string} */ of) =>
        row[of] === null ? "" : `${row[of].toPrecision(4)} ± ${(row[`${of}_within`] ?? 0).toPrecision(2)}`;
      return [row.name, shown("a"), shown("b"), shown("difference"), row.is_clear ? "*" : ""];
    })]);
  }));
  $("link").addEventListener("click", trying(async () => {
    const saved = await recording(live);
    const state = { definition: kind === "services" ? text() : "", seed: seed.value, seconds: Number(seconds.value),
      pirates: kind === "pirates" ? population : 0, commands: saved.commands };
    const bytes = await piped(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("gzip"));
    location.hash = toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    say("the address of this page now has the definition, the seed and the commands; nothing was sent");
  }));

  let checking = 0;
  editor.dom.addEventListener("keyup", () => {
    clearTimeout(checking);
    checking = window.setTimeout(async () => {
      try {
        await other.call("check", text());
        say("");
      } catch (error) {
        complain(error);
      }
    }, 300);
  });
  Object.assign(window, { playground: { live, other, open, editor } });
}

/** The commands of the session so far. @param {Caller} live @returns {Promise<any>} */
function recording(live) {
  return new Promise((done) => {
    const id = 1e9;
    const hear = (/** @type {MessageEvent} */ { data }) => {
      const message = data.text === undefined ? {} : JSON.parse(data.text);
      if (message.type !== "answer" || message.id !== id) return;
      live.worker.removeEventListener("message", hear);
      done(message.value ?? { commands: [] });
    };
    live.worker.addEventListener("message", hear);
    live.hear(JSON.stringify({ id, ask: "save" }));
  });
}

main().catch(complain);
