// Starts Chromium, opens the playground from its folder, and ends when the first picture is drawn.
//
//   node first_picture.mjs PAGE.html CHROMIUM

import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const { chromium } = createRequire(`${process.env.NODE_PATH}/`)("playwright-core");
const [file, program] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
const page = await browser.newPage();
await page.goto(pathToFileURL(resolve(file)).href);
for (const end = Date.now() + 60_000; !(await page.evaluate(() => window.corsair?.pictures() > 0)); ) {
  if (Date.now() > end) throw new Error("no picture within a minute");
  await new Promise((done) => setTimeout(done, 20));
}
await browser.close();
