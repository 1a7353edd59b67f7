// What the checks of the live view share: runs, visits, and the controls of the clock. Needs playwright-core, found through
// NODE_PATH.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import * as browser from "../browser.mjs";

export const { violations } = browser;
/** The working directory of all runs. */
export const directory = mkdtempSync(join(tmpdir(), "corsair-view-"));

/** A run with its page. */
export class Held {
  constructor(program, ...args) {
    this.child = spawn(resolve(program), args, { cwd: directory, stdio: ["ignore", "pipe", "inherit"] });
    this.lines = [];
    this.reader = createInterface({ input: this.child.stdout });
    this.url = new Promise((done, failed) => {
      this.reader.on("line", (line) => {
        this.lines.push(line);
        const url = line.match(/http:\S+/);
        if (url) done(url[0]);
      });
      this.child.once("exit", (code) => failed(new Error(`it ended with ${code}: ${this.lines.join("\n")}`)));
    });
    this.url.catch(() => {});
  }

  /** Ends it, and waits for its summary. */
  async end() {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill("SIGINT");
      await once(this.child, "exit");
    }
    return this.lines;
  }
}

/** What pages have complained of. */
export const complaints = [];

/** Serves the files of a directory in place of the program's own: VIEW_PAGE=crates/view/src/page tries a change without a build. */
async function fromDisk(context, directory) {
  const types = { js: "text/javascript", css: "text/css", html: "text/html" };
  await context.route("**/*", (route) => {
    const { pathname } = new URL(route.request().url());
    const file = pathname.endsWith("/") ? "index.html" : pathname.split("/").at(-1);
    const contentType = types[file.split(".").at(-1)];
    return contentType ? route.fulfill({ body: readFileSync(join(directory, file)), contentType }) : route.continue();
  });
}

/** The browser. Pages from disk have no address, from which a socket is refused unless the check is off. */
export const launch = (executablePath) =>
  browser.launch(executablePath, ...(process.env.VIEW_PAGE ? ["--disable-features=LocalNetworkAccessChecks"] : []));

/** Opens a page and waits for its first pictures. */
export async function visit(chromium, url, options = {}) {
  const context = await chromium.newContext({ viewport: { width: 1400, height: 900 }, acceptDownloads: true, ...options });
  if (process.env.VIEW_PAGE) await fromDisk(context, process.env.VIEW_PAGE);
  const page = await context.newPage();
  browser.hear(page, complaints);
  await page.goto(url);
  await page.waitForFunction(() => window.corsair?.graph.scene && window.corsair.pictures() > 0);
  return page;
}

export const time = (page) => page.evaluate(() => window.corsair.now());
export const standsStill = (page) => page.waitForFunction(() => document.getElementById("play").textContent === "Play");
export const digest = async (page) => (await page.textContent("#digest")).replace("digest ", "");

/** Runs as fast as it goes until a time in seconds, and waits for the frame of that time, which may come after the status. */
export async function runUntil(page, seconds) {
  await page.selectOption("#speed", "");
  await page.selectOption("#until-what", "time");
  await page.fill("#until-value", String(seconds));
  await page.click("#until button");
  await page.waitForFunction((until) => window.corsair.frameTime() >= until - 1e-9, seconds, { timeout: 60000 });
  await standsStill(page);
}

/** Shows each instance by itself. */
export async function unfold(page) {
  await page.click("#fold");
  await page.waitForFunction(() => {
    const { graph } = window.corsair;
    return !graph.folded && graph.nodes.length === graph.scene.nodes.length && graph.bits.some((bits) => (bits & 32) === 0);
  });
}
