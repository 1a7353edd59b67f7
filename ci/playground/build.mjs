// Builds the playground's page: one file, with everything inside and a policy that lets it load nothing else.
//
//   node build.mjs WASM_BINDGEN_DIR OUT.html

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { gzipSync } from "node:zlib";

const require = createRequire(`${process.env.NODE_PATH}/`);
const { build } = require("esbuild");
const [bindings, out] = process.argv.slice(2);
const view = resolve("crates/view/src/page");
const own = resolve("crates/playground/page");

// The first example is the shop of the book's first page, without the schema, which the editor has.
const shop = /```json file shop_arch\.json\n(.*?)```/s.exec(readFileSync("examples/book/src/architecture/start.md", "utf8"))?.[1]
  ?.replace(/ *"\$schema".*\n/, "");
if (!shop) throw new Error("examples/book/src/architecture/start.md has no block 'json file shop_arch.json'");

/** Modules by name: those of the live view, but for its socket. */
const modules = (/** @type {string} */ workerText) => ({
  name: "modules",
  setup(/** @type {any} */ builder) {
    builder.onResolve({ filter: /^corsair$/ }, () => ({ path: resolve(bindings, "corsair_playground.js") }));
    builder.onResolve({ filter: /^shop$/ }, () => ({ path: "shop", namespace: "shop" }));
    builder.onLoad({ filter: /.*/, namespace: "shop" }, () => ({ contents: shop, loader: "text" }));
    builder.onResolve({ filter: /^worker$/ }, () => ({ path: "worker", namespace: "worker" }));
    builder.onLoad({ filter: /.*/, namespace: "worker" }, () => ({ contents: workerText, loader: "text" }));
    builder.onResolve({ filter: /\/connect\.js$/ }, () => ({ path: `${own}/connect.js` }));
    builder.onResolve({ filter: /\/app\.js$/ }, () => ({ path: `${view}/app.js` }));
  },
});

async function bundle(/** @type {string} */ entry, workerText = "") {
  const built = await build({
    entryPoints: [entry], bundle: true, minify: true, write: false, format: "iife", target: "es2022", logLevel: "error",
    nodePaths: [process.env.NODE_PATH ?? ""], plugins: [modules(workerText)], define: { "import.meta.url": '""' },
  });
  return built.outputFiles[0].text;
}

const worker = await bundle(`${own}/worker.js`);
// A script ends at the first of these, wherever it is.
const script = (await bundle(`${own}/playground.js`, worker)).replaceAll("</script", "<\\/script");
const style = readFileSync(`${view}/style.css`, "utf8") + readFileSync(`${own}/playground.css`, "utf8");
const wasm = gzipSync(readFileSync(resolve(bindings, "corsair_playground_bg.wasm")), { level: 9 }).toString("base64");
const hash = (/** @type {string} */ text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
// The editor makes style sheets while it runs; the page is a file, so anyone can read its nonce, and styles load nothing.
const nonce = createHash("sha256").update(style).digest("hex").slice(0, 16);
const policy = `default-src 'none'; script-src ${hash(script)} 'wasm-unsafe-eval'; worker-src blob:; style-src 'nonce-${nonce}'; ` +
  "img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'";
const page = readFileSync(`${view}/index.html`, "utf8")
  .replace('<link rel="stylesheet" href="style.css">', () => `<style nonce="${nonce}">${style}</style>`)
  .replace('<script type="module" src="app.js"></script>', "")
  .replace('<meta charset="utf-8">', () => `<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="${policy}">`)
  .replace("<title>corsair</title>", "<title>corsair playground</title>")
  .replace("<body>", () => `<body>\n${readFileSync(`${own}/playground.html`, "utf8")}`)
  .replace("</body>", () => `<script type="application/octet-stream" id="wasm">${wasm}</script>\n<script>${script}</script>\n</body>`);
writeFileSync(out, page);
const compressed = gzipSync(page, { level: 9 }).length;
console.log(`playground: ${page.length} bytes, ${compressed} compressed; at most 3,000,000 are allowed`);
if (compressed > 3_000_000) process.exit(1);
