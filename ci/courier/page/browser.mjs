// What the tests of the page share: a node that can be killed, a way to it that can be cut, and browsers.
//
// Needs playwright-core and axe-core, found through NODE_PATH. COURIER_PAGE=crates/courier/src/page takes the scripts and styles from
// there, so that a change needs no build.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hear, launch, violations } from "../../browser.mjs";

export { violations };
const [program, executablePath] = process.argv.slice(2);
export const PASSWORD = "correct horse";

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

class Node {
  constructor(port, data) {
    Object.assign(this, { port, data, url: `http://127.0.0.1:${port}/` });
  }

  async start(...more) {
    const flags = ["serve", "--listen", `127.0.0.1:${this.port}`, "--data", this.data, "--password-memory", "8", ...more];
    this.child = spawn(program, flags, { stdio: "ignore" });
    for (;;) {
      try {
        if ((await fetch(`${this.url}readyz`)).ok) return;
      } catch {
        await pause(50);
      }
    }
  }

  async kill() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill("SIGKILL");
    await once(this.child, "exit");
  }

  // A request beside the page.
  async ask(method, path, body, token, headers = {}) {
    if (token) headers.authorization = `Bearer ${token}`;
    if (body) headers["content-type"] = "application/json";
    const answer = await fetch(this.url + path, { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.status === 204 ? null : answer.json();
  }

  // A user without a browser.
  create(name) {
    return this.ask("POST", "users", { name, password: PASSWORD });
  }

  // All messages of a conversation.
  async history(conversation, token) {
    const all = [];
    for (let more = true; more; ) {
      const page = await this.ask("GET", `conversations/${conversation}/messages?after=${all.length}`, undefined, token);
      all.push(...page.messages);
      more = page.more;
    }
    return all;
  }
}

// A way to the node that can be cut.
export class Way {
  constructor(to) {
    Object.assign(this, { to, open: true, mute: false, sockets: new Set() });
  }

  async listen() {
    this.server = createServer((here) => {
      if (!this.open) return here.destroy();
      const there = connect(this.to, "127.0.0.1");
      for (const [one, other] of [[here, there], [there, here]]) {
        this.sockets.add(one);
        one.on("error", () => {});
        one.on("close", () => other.destroy() && this.sockets.delete(one));
        one.on("data", (bytes) => {
          // WebSockets are those that the browser asks to upgrade.
          if (bytes.subarray(0, 7).toString() === "GET /ws") here.socket = true;
          if (!(this.mute && here.socket && this.muted.has(here))) other.write(bytes);
        });
      }
    });
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    return `http://127.0.0.1:${this.server.address().port}/`;
  }

  cut() {
    this.open = false;
    for (const socket of this.sockets) socket.destroy();
  }

  // Drops what goes over the WebSockets that are open now, without closing them, as a network may.
  dropSilently() {
    this.mute = true;
    this.muted = new Set(this.sockets);
  }

  mend() {
    this.open = true;
  }
}

// A page, and what it complained of.
export async function tab(context, url) {
  const page = await context.newPage();
  page.complaints = [];
  hear(page, page.complaints);
  await page.goto(url);
  return page;
}

// Lets a page have the scripts and styles of the source, with the headers of the node.
async function fromSource(context) {
  if (!process.env.COURIER_PAGE) return;
  await context.route(/\/page\/[^/]+$/, async (route) => {
    const path = join(process.env.COURIER_PAGE, new URL(route.request().url()).pathname.slice("/page/".length));
    await route.fulfill({ response: await route.fetch(), body: readFileSync(path) });
  });
}

export async function logIn(page, name, button = "#sign-up") {
  await page.fill("#name", name);
  await page.fill("#password", PASSWORD);
  await page.click(button);
  await page.waitForSelector("#chat:not([hidden])");
  await connected(page);
}

export const connected = (page) => page.waitForFunction(() => document.getElementById("state").textContent === "connected");

export const lost = (page) => page.waitForFunction(() => document.getElementById("state").className === "lost");

export async function say(page, text) {
  await page.fill("#text", text);
  await page.press("#text", "Enter");
}

// Opens a conversation by the names of the others.
export async function talkWith(page, names) {
  await page.fill("#with", names);
  await page.press("#with", "Enter");
  await page.waitForFunction(() => document.getElementById("with").value === "");
}

// Opens a conversation of the list.
export async function choose(page, title) {
  await page.click(`#conversations button:has-text("${title}")`);
  await page.waitForFunction((title) => document.getElementById("title").textContent.includes(title), title);
}

export const texts = (page) => page.$$eval("#messages li[data-number] .text", (items) => items.map((item) => item.textContent));

export const sees = (page, text, timeout = 20000) =>
  page.waitForFunction(
    (text) => [...document.querySelectorAll("#messages li[data-number] .text")].some((item) => item.textContent.includes(text)),
    text,
    { timeout },
  );

// Whether the newest message is in view.
export const atEnd = (page) =>
  page.waitForFunction(() => {
    const log = document.getElementById("log");
    return log.scrollHeight - log.scrollTop - log.clientHeight < 2;
  });

// Runs tests, pairs of a name and a function, each with a node of its own and a function that opens a browser.
export async function run(tests) {
  const browser = await launch(executablePath);
  try {
    for (const [name, test] of tests) {
      const data = mkdtempSync(join(tmpdir(), "courier-page-"));
      const node = new Node(await freePort(), join(data, "data"));
      const pages = [];
      const visit = async (options = {}, url = node.url) => {
        const context = await browser.newContext(options);
        await fromSource(context);
        const page = await tab(context, url);
        pages.push(page);
        return page;
      };
      const complaints = () => pages.flatMap((page) => page.complaints);
      try {
        await node.start();
        await test(node, visit);
        if (complaints().length > 0) throw new Error("the page complains");
        console.log(`page: ${name}`);
      } catch (error) {
        console.error(`page: FAILED: ${name}`, error, ...complaints());
        process.exitCode = 1;
      } finally {
        for (const page of pages) await page.context().close();
        await node.kill();
        rmSync(data, { recursive: true, force: true });
      }
    }
  } finally {
    await browser.close();
  }
}
