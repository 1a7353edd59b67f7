// The page in a real Chromium: two browsers talk, one is cut off and catches up, the server is killed and
// comes back, the keyboard is enough, and nothing is loaded that the policy does not allow.
//
//   node page.mjs PROGRAM CHROMIUM
//
// Needs playwright-core, found through NODE_PATH.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";

const { chromium } = createRequire(join(process.env.NODE_PATH, "x"))("playwright-core");
const [program, executablePath] = process.argv.slice(2);
const PASSWORD = "correct horse";

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
    Object.assign(this, { port, data });
  }

  async start() {
    const listen = `127.0.0.1:${this.port}`;
    const flags = ["serve", "--listen", listen, "--data", this.data, "--password-memory", "8"];
    this.child = spawn(program, flags, { stdio: "ignore" });
    for (;;) {
      try {
        if ((await fetch(`http://${listen}/readyz`)).ok) return;
      } catch {
        await new Promise((done) => setTimeout(done, 50));
      }
    }
  }

  async kill() {
    this.child.kill("SIGKILL");
    await once(this.child, "exit");
  }
}

// A way to the node that can be cut.
class Way {
  constructor(to) {
    Object.assign(this, { to, open: true, sockets: new Set() });
  }

  async listen() {
    this.server = createServer((here) => {
      if (!this.open) return here.destroy();
      const there = connect(this.to, "127.0.0.1");
      for (const [one, other] of [[here, there], [there, here]]) {
        this.sockets.add(one);
        one.on("error", () => {});
        one.on("close", () => other.destroy() && this.sockets.delete(one));
        one.pipe(other);
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

  mend() {
    this.open = true;
  }
}

// A browser of its own, and what it complained of.
async function visitor(browser, url, options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && /Content Security Policy|Uncaught/.test(message.text())) {
      complaints.push(message.text());
    }
  });
  await page.goto(url);
  return { context, page, complaints };
}

async function signUp(page, name) {
  await page.fill("#name", name);
  await page.fill("#password", PASSWORD);
  await page.click("#sign-up");
  await page.waitForSelector("#chat:not([hidden])");
  await connected(page);
}

const connected = (page) => page.waitForFunction(() => document.getElementById("state").textContent === "connected");

async function say(page, text) {
  await page.fill("#text", text);
  await page.press("#text", "Enter");
}

const texts = (page) =>
  page.$$eval("#messages li[data-number]", (items) => items.map((item) => item.childNodes[1].textContent));

async function sees(page, text) {
  await page.waitForFunction(
    (text) => [...document.querySelectorAll("#messages li[data-number]")].some((item) => item.textContent.includes(text)),
    text,
    { timeout: 20000 },
  );
}

const data = mkdtempSync(join(tmpdir(), "courier-page-"));
const node = new Node(await freePort(), join(data, "data"));
const url = `http://127.0.0.1:${node.port}/`;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  await node.start();
  const anne = await visitor(browser, url, { colorScheme: "dark" });
  const way = new Way(node.port);
  const mary = await visitor(browser, await way.listen(), { colorScheme: "light" });
  await signUp(anne.page, "anne");
  await signUp(mary.page, "mary");
  await anne.page.waitForFunction(() => document.getElementById("online").textContent.includes("mary"));
  console.log("both are online, and see each other");

  // A conversation by the keyboard alone.
  await anne.page.focus("#with");
  await anne.page.keyboard.type("mary");
  await anne.page.keyboard.press("Enter");
  await anne.page.waitForSelector("#post:not([hidden])");
  await anne.page.waitForFunction(() => document.activeElement.id === "text");
  await anne.page.keyboard.type("ahoy <b>mary</b> & \"all\"");
  await anne.page.keyboard.press("Enter");
  await mary.page.waitForSelector("#conversations .unread");
  await mary.page.focus("#with");
  for (let turn = 0; turn < 10; turn += 1) {
    await mary.page.keyboard.press("Tab");
    if (await mary.page.evaluate(() => document.activeElement.closest("#conversations") !== null)) break;
  }
  await mary.page.keyboard.press("Enter");
  await sees(mary.page, "ahoy <b>mary</b> & \"all\"");
  assert.equal(await mary.page.$("#messages b"), null, "a text is a text");
  await say(mary.page, "ahoy anne");
  await sees(anne.page, "ahoy anne");
  console.log("they talk, by the keyboard alone");

  // One is cut off, and catches up.
  way.cut();
  await mary.page.waitForFunction(() => document.getElementById("state").className === "lost");
  for (let turn = 0; turn < 30; turn += 1) await say(anne.page, `missed ${turn}`);
  await sees(anne.page, "missed 29");
  assert.ok(!(await texts(mary.page)).includes("missed 0"));
  way.mend();
  await sees(mary.page, "missed 29");
  assert.deepEqual(await texts(mary.page), await texts(anne.page));
  console.log("one was cut off, and has caught up");

  // The server is killed under a message, and comes back.
  await node.kill();
  await mary.page.waitForFunction(() => document.getElementById("state").className === "lost");
  await say(mary.page, "said to nobody yet");
  await new Promise((done) => setTimeout(done, 1000));
  await node.start();
  await sees(anne.page, "said to nobody yet");
  await sees(mary.page, "said to nobody yet");
  await connected(anne.page);
  assert.deepEqual(await texts(mary.page), await texts(anne.page));
  assert.equal((await texts(anne.page)).filter((text) => text === "said to nobody yet").length, 1);
  console.log("the server was killed and came back, and every message is there once");

  // Both colours, and a page that is loaded again.
  const back = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.notEqual(await back(anne.page), await back(mary.page));
  await mary.page.reload();
  await mary.page.waitForSelector("#conversations button");
  await mary.page.click("#conversations button");
  await sees(mary.page, "ahoy anne");
  assert.deepEqual(await texts(mary.page), await texts(anne.page));
  await mary.page.click("#log-out");
  await mary.page.waitForSelector("#login:not([hidden])");
  await mary.page.fill("#name", "mary");
  await mary.page.fill("#password", "wrong horse");
  await mary.page.click("#log-in");
  await mary.page.waitForSelector("#problem:not([hidden])");
  await mary.page.fill("#password", PASSWORD);
  await mary.page.press("#password", "Enter");
  await mary.page.waitForSelector("#chat:not([hidden])");
  console.log("light and dark, loaded again, logged out and in");
  assert.deepEqual([...anne.complaints, ...mary.complaints], []);
  way.cut();
  way.server.close();
} finally {
  await browser.close();
  if (node.child.exitCode === null && node.child.signalCode === null) await node.kill();
  rmSync(data, { recursive: true, force: true });
}
