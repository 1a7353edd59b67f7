// Talks to the JSON language server about a definition, as an editor does. Called by editor.sh.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const server = spawn(process.argv[2], ["--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
const waiting = new Map();
const diagnostics = new Map();
let buffer = Buffer.alloc(0);
let next = 1;

function send(message) {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  server.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

function request(method, params) {
  const id = next++;
  send({ id, method, params });
  return new Promise((done) => waiting.set(id, done));
}

function receive(message) {
  if (message.method === "textDocument/publishDiagnostics") {
    diagnostics.set(message.params.uri, message.params.diagnostics);
  } else if (message.method === "vscode/content") {
    // The server asks its editor for the content of a schema.
    send({ id: message.id, result: readFileSync(new URL(message.params), "utf8") });
  } else if (message.method && message.id !== undefined) {
    send({ id: message.id, result: null });
  } else if (waiting.has(message.id)) {
    waiting.get(message.id)(message.result);
  }
}

server.stdout.on("data", (chunk) => {
  buffer = Buffer.concat([buffer, chunk]);
  for (;;) {
    const end = buffer.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = Number(/Content-Length: (\d+)/i.exec(buffer.subarray(0, end))[1]);
    if (buffer.length < end + 4 + length) return;
    receive(JSON.parse(buffer.subarray(end + 4, end + 4 + length)));
    buffer = buffer.subarray(end + 4 + length);
  }
});

const failures = [];
function check(name, holds, shown) {
  console.log(`editor: ${holds ? "ok" : "FAILED"} ${name}`);
  if (!holds) failures.push(`${name}: ${JSON.stringify(shown)}`);
}

// Opens a text beside the example definition; `|` in it is the cursor.
let opened = 0;
async function open(text, path = `examples/opened${opened++}_arch.json`) {
  const offset = text.indexOf("|");
  const content = offset < 0 ? text : text.slice(0, offset) + text.slice(offset + 1);
  const uri = pathToFileURL(resolve(path)).href;
  send({ method: "textDocument/didOpen", params: { textDocument: { uri, languageId: "json", version: 1, text: content } } });
  const before = content.slice(0, Math.max(offset, 0)).split("\n");
  return { textDocument: { uri }, position: { line: before.length - 1, character: before.at(-1).length } };
}

async function problems(text, path) {
  const { textDocument } = await open(text, path);
  for (let i = 0; i < 100 && !diagnostics.has(textDocument.uri); i++) await new Promise((done) => setTimeout(done, 100));
  return diagnostics.get(textDocument.uri);
}

const labels = (list) => (list?.items ?? list ?? []).map((item) => item.label);
const start = `{ "$schema": "../crates/arch/src/definition/schema.json", "arch": "shop",\n  "services": [`;

await request("initialize", {
  processId: process.pid,
  rootUri: null,
  capabilities: { textDocument: { completion: { completionItem: { snippetSupport: true } }, hover: { contentFormat: ["plaintext"] } } },
  initializationOptions: { provideFormatter: false, handledSchemaProtocols: ["file"] },
});
send({ method: "initialized", params: {} });

for (const file of process.argv.slice(3)) {
  const content = readFileSync(file, "utf8");
  const named = JSON.parse(content).$schema;
  check(`${file} names its schema`, resolve(file, "..", named ?? ".") === resolve("crates/arch/src/definition/schema.json"), named);
  const found = await problems(content, file);
  check(`${file} has no problem`, found?.length === 0, found);
}

const wrong = await problems(`${start}\n{ "name": "db", "package": "store", "count": "three" }] }`);
check("a wrong type is marked on its line", wrong?.some((one) => one.range.start.line === 2), wrong);
const missing = await problems(`${start}{ "package": "store" }] }`);
check("a missing name is marked", missing?.some((one) => /name/.test(one.message)), missing);

const offered = labels(await request("textDocument/completion", await open(`${start}{ "name": "db", "package": "store", "| }] }`)));
for (const field of ["count", "concurrency", "queue", "calls", "endpoints"]) check(`completion offers ${field}`, offered.includes(field), offered);
const nested = labels(await request("textDocument/completion", await open(`${start}{ "name": "db", "package": "store", "queue": { "| } }] }`)));
check("completion offers size in a queue", nested.includes("size"), nested);

const hover = await request("textDocument/hover", await open(`${start}{ "name": "db", "package": "store", "concur|rency": 4 }] }`));
const text = JSON.stringify(hover?.contents ?? "");
check("hover describes concurrency, its default and an example", /queue.*Default: .*Example: /.test(text), hover);
const values = labels(await request("textDocument/completion", await open(`${start}{ "name": "db", "package": "store", "queue": { "order": | } }] }`)));
for (const value of ['"fifo"', '"lifo"']) check(`completion offers ${value} as an order`, values.includes(value), values);

// Every example and every default is a value of its field: all of them are one document, with a schema of all fields.
const full = JSON.parse(readFileSync("crates/arch/src/definition/schema.json", "utf8"));
const fields = {};
function collect(path, part) {
  for (const [name, field] of Object.entries(part.properties ?? {})) {
    let key = `${path}.${name}`;
    while (key in fields) key += "'";
    fields[key] = field;
    collect(key, field);
  }
  for (const one of [...(part.anyOf ?? []), ...(part.oneOf ?? [])]) collect(path, one);
  for (const [name, one] of Object.entries(part.$defs ?? {})) collect(name, one);
}
collect("Definition", full);
const folder = mkdtempSync(join(tmpdir(), "corsair-editor-"));
for (const [kind, of] of [["example", (field) => field.examples?.[0]], ["default", (field) => field.default]]) {
  const given = Object.entries(fields).filter(([, field]) => of(field) !== undefined);
  const file = join(folder, `${kind}.schema.json`);
  const properties = Object.fromEntries(given);
  writeFileSync(file, JSON.stringify({ $schema: full.$schema, $defs: full.$defs, properties }));
  const document = { $schema: pathToFileURL(file).href, ...Object.fromEntries(given.map(([name, field]) => [name, of(field)])) };
  const found = await problems(JSON.stringify(document, null, 1));
  check(`${given.length} fields have a valid ${kind}`, given.length > 40 && found?.length === 0, found);
  document[given.at(-1)[0]] = { wrong: [] };
  const marked = await problems(JSON.stringify(document, null, 1));
  check(`a wrong ${kind} would be marked`, marked?.length > 0, marked);
}
rmSync(folder, { recursive: true });

server.kill();
if (failures.length) {
  console.error(failures.join("\n"));
  process.exit(1);
}
