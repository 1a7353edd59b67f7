// Chromium for the checks of pages: its start, what pages complain of, and the rules of accessibility. Needs playwright-core and
// axe-core, found through NODE_PATH.

import { createRequire } from "node:module";
import { join } from "node:path";

export const require = createRequire(join(process.env.NODE_PATH, "x"));

/** Starts the browser. */
export const launch = (executablePath, ...more) =>
  require("playwright-core").chromium.launch({ executablePath, args: ["--no-sandbox", ...more] });

/** Adds to a list what a page complains of. */
export function hear(page, complaints) {
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && /Content Security Policy|Uncaught/.test(message.text())) complaints.push(message.text());
  });
}

/** The rules of accessibility that a page breaks. The browser's own tool runs axe, not the page, whose policy would refuse. */
export async function violations(page) {
  await page.evaluate(require("axe-core").source);
  return page.evaluate(async () => (await window.axe.run()).violations.flatMap((one) =>
    one.nodes.map((node) => `${one.id}: ${node.target} ${node.any[0]?.message ?? ""}`)));
}
