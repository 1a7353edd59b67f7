// The rules of accessibility of axe on every page of the built book, in a real Chromium.
//
//   NODE_PATH=MODULES node axe.mjs BOOK CHROMIUM

import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, normalize } from "node:path";

const require = createRequire(`${process.env.NODE_PATH}/`);
const { chromium } = require("playwright-core");
const { source } = require("axe-core");
const [book, program] = process.argv.slice(2);
// The list of pages for browsers without scripts is a frame of the others.
const pages = readdirSync(book, { recursive: true }).filter((name) => name.endsWith(".html") && !/(^|\/)(toc|print)\.html$/.test(name));
// From a server, because the page for a wrong address names its files from the site's root.
const types = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml" };
const server = createServer((request, response) => {
  const name = normalize(decodeURIComponent(new URL(request.url ?? "/", "http://book").pathname));
  try {
    const content = readFileSync(join(book, name));
    response.writeHead(200, { "content-type": types[extname(name)] ?? "application/octet-stream" }).end(content);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
let violations = 0;
for (const name of pages) {
  await page.goto(`http://127.0.0.1:${server.address().port}/${name}`);
  await page.evaluate(source);
  const found = await page.evaluate(async () => (await window.axe.run()).violations.map((one) =>
    `${one.id}: ${one.nodes.map((node) => node.target).slice(0, 3).join(" ")} (${one.nodes.length}): ${one.nodes[0].failureSummary}`));
  for (const one of found) console.error(`${name}: ${one}`);
  violations += found.length;
}
await browser.close();
server.close();
console.log(`book: ${pages.length} pages have ${violations} violations of axe's rules`);
if (violations > 0 || pages.length === 0) process.exit(1);
