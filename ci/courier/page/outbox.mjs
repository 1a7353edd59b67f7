// What is typed arrives once and in order, whatever fails, and what is refused is given back.
//
//   node outbox.mjs PROGRAM CHROMIUM

import assert from "node:assert/strict";
import { atEnd, choose, connected, logIn, lost, pause, run, say, sees, tab, talkWith, texts } from "./browser.mjs";

const BURST = 1000;

const until = async (page, test, ...rest) => page.waitForFunction(test, ...rest);
const waiting = (page) => page.$$eval("#waiting li", (items) => items.map((item) => item.textContent));
const box = (page) => page.inputValue("#text");

// Answers POSTs of messages with this status while `broken.on` is set.
async function refuse(page, status) {
  const broken = { on: true };
  await page.route("**/conversations/*/messages", (route) =>
    broken.on && route.request().method() === "POST"
      ? route.fulfill({ status, json: { error: { code: "test", message: `refused with ${status}` } } })
      : route.continue());
  return broken;
}

// Guarantee: courier-26.
async function burst(node, visit) {
  const anne = await visit();
  const mary = await visit();
  await logIn(anne, "anne");
  await logIn(mary, "mary");
  await talkWith(anne, "mary");
  await say(anne, "first");
  await choose(mary, "anne");
  await sees(mary, "first");
  const outages = (async () => {
    for (const seen of [200, 600]) {
      await until(mary, (seen) => document.querySelectorAll("#messages li[data-number]").length >= seen, seen, { timeout: 60000 });
      await node.kill();
      await pause(1500);
      await node.start();
    }
  })();
  const wanted = ["first"];
  for (let turn = 1; turn < BURST; turn += 1) {
    wanted.push(`message ${turn}`);
    await say(anne, `message ${turn}`);
  }
  await outages;
  for (const page of [mary, anne]) {
    await sees(page, `message ${BURST - 1}`, 60000);
    assert.deepEqual(await texts(page), wanted, "in the page");
    await atEnd(page);
  }
  assert.deepEqual(await waiting(anne), []);
  const { token } = await anne.evaluate(() => JSON.parse(localStorage.getItem("courier")));
  const stored = await node.history(1, token);
  assert.deepEqual(stored.map((message) => message.text), wanted, "at the node");
  assert.deepEqual(stored.map((message) => message.number), wanted.map((_, place) => place + 1));
}

async function typedWhileAway(node, visit) {
  const anne = await visit();
  await node.create("mary");
  await node.create("jack");
  await logIn(anne, "anne");
  await talkWith(anne, "jack");
  await talkWith(anne, "mary");
  await node.kill();
  await lost(anne);
  for (const text of ["one", "two", "three", "four", "five"]) await say(anne, text);
  await choose(anne, "jack");
  assert.deepEqual(await waiting(anne), [], "each conversation has its own");
  await say(anne, "to jack");
  await choose(anne, "mary");
  assert.deepEqual(await waiting(anne), ["one", "two", "three", "four", "five"]);
  await anne.fill("#text", "half a th");
  // The page itself cannot be loaded now; what was typed is kept.
  await anne.reload().catch(() => {});
  await node.start();
  // The browser may still be on its way to the page that says so.
  while (!(await anne.goto(node.url).catch(() => null))) await pause(100);
  await sees(anne, "five");
  assert.deepEqual(await texts(anne), ["one", "two", "three", "four", "five"]);
  assert.equal(await box(anne), "half a th");
  await choose(anne, "jack");
  await sees(anne, "to jack");
}

// Guarantee: courier-26.
async function refused(node, visit) {
  const anne = await visit();
  await node.create("mary");
  await node.create("jack");
  await logIn(anne, "anne");
  await talkWith(anne, "jack");
  await talkWith(anne, "mary");
  // More bytes than a text may have, though fewer characters than the box takes.
  const long = "ü".repeat(9000);
  await say(anne, long);
  await anne.waitForSelector("#problem:not([hidden])");
  await until(anne, () => document.getElementById("text").value !== "");
  assert.equal(await box(anne), long, "it is back in the box");
  await anne.fill("#text", "");

  // Several come back in their order.
  const alsoLong = "ö".repeat(9000);
  await node.kill();
  await lost(anne);
  await say(anne, long);
  await say(anne, alsoLong);
  await node.start();
  await until(anne, (length) => document.getElementById("text").value.length === length, 2 * 9000 + 1);
  assert.equal(await box(anne), `${long}\n${alsoLong}`);
  await anne.fill("#text", "");

  // It is back beside what was typed since, and after what was sent since.
  let answer;
  await anne.route("**/conversations/*/messages", async (route) => {
    if (route.request().postData()?.includes("üü")) await new Promise((done) => (answer = done));
    await route.continue();
  });
  await say(anne, long);
  await say(anne, "sent since");
  await anne.fill("#text", "typed since");
  await choose(anne, "jack");
  await anne.fill("#text", "for jack");
  answer();
  await anne.waitForSelector("#problem:not([hidden])");
  assert.equal(await box(anne), "for jack", "another conversation's box is left alone");
  await anne.unroute("**/conversations/*/messages");
  await anne.reload();
  await choose(anne, "mary");
  await sees(anne, "sent since");
  assert.equal(await box(anne), `${long}\ntyped since`);
  await choose(anne, "jack");
  assert.equal(await box(anne), "for jack");
}

async function removed(node, visit) {
  const anne = await visit();
  await logIn(anne, "anne");
  const me = await anne.evaluate(() => JSON.parse(localStorage.getItem("courier")).user);
  const mary = await node.create("mary");
  const jack = await node.create("jack");
  await node.ask("POST", "conversations", { recipients: [me, mary.user] }, jack.token);
  await node.ask("POST", "conversations/1/messages", { text: "ahoy" }, jack.token);
  await choose(anne, "mary");
  await anne.route("**/conversations/*/messages", (route) => route.abort());
  await say(anne, "too late");
  await node.ask("DELETE", `conversations/1/members/${me}`, undefined, jack.token);
  await until(anne, () => document.querySelector("#conversations li") === null);
  await anne.unroute("**/conversations/*/messages");
  await until(anne, () => document.getElementById("problem").textContent.includes("too late"));
  await pause(9000);
  assert.ok(await anne.isVisible("#problem"), "a text that has no box stays in view");
}

async function onlyAnEndedLogin(node, visit) {
  const anne = await visit();
  await node.create("mary");
  await logIn(anne, "anne");
  await talkWith(anne, "mary");
  for (const status of [500, 502, 503, 429, 408]) {
    const broken = await refuse(anne, status);
    await say(anne, `through ${status}`);
    await pause(300);
    assert.deepEqual(await waiting(anne), [`through ${status}`]);
    broken.on = false;
    await sees(anne, `through ${status}`);
    await anne.unroute("**/conversations/*/messages");
  }
  // A proxy that answers with a page of its own.
  await anne.route("**/conversations/*/messages", (route) => route.fulfill({ status: 200, body: "<html>sign in</html>" }));
  await say(anne, "through a portal");
  await pause(300);
  await anne.unroute("**/conversations/*/messages");
  await sees(anne, "through a portal");
  assert.ok(await anne.isVisible("#chat"));

  // A reload while the node answers with errors.
  await anne.route("**/conversations*", (route) => route.fulfill({ status: 503, body: "" }));
  await anne.reload();
  await pause(1000);
  assert.ok(await anne.isVisible("#chat"), "503 does not log out");
  await anne.unroute("**/conversations*");
  await sees(anne, "through a portal");

  // A login that has ended.
  const { token } = await anne.evaluate(() => JSON.parse(localStorage.getItem("courier")));
  await node.kill();
  await lost(anne);
  await say(anne, "kept for the next login");
  await node.start();
  await sees(anne, "kept for the next login");
  await anne.route("**/conversations/*/messages", (route) => route.abort());
  await say(anne, "kept even so");
  await node.ask("DELETE", "sessions", undefined, token);
  await anne.waitForSelector("#login:not([hidden])");
  await anne.unroute("**/conversations/*/messages");
  await logIn(anne, "anne", "#log-in");
  await sees(anne, "kept even so");
  const all = await texts(anne);
  assert.equal(new Set(all).size, all.length, "nothing twice");
}

async function tabs(node, visit) {
  const one = await visit();
  await node.create("mary");
  await logIn(one, "anne");
  await talkWith(one, "mary");
  const two = await tab(one.context(), node.url);
  await connected(two);
  await choose(two, "mary");
  await say(one, "from one");
  await say(two, "from two");
  for (const page of [one, two]) {
    await sees(page, "from two");
    await sees(page, "from one");
  }
  // Typed in both while the node is away; the tab of the first is closed before it is back.
  await node.kill();
  await Promise.all([lost(one), lost(two)]);
  for (let turn = 0; turn < 5; turn += 1) {
    await say(one, `one ${turn}`);
    await say(two, `two ${turn}`);
  }
  await one.close();
  await node.start();
  await sees(two, "two 4", 30000);
  const all = await texts(two);
  const wanted = [0, 1, 2, 3, 4].flatMap((turn) => [`one ${turn}`, `two ${turn}`]);
  assert.deepEqual(all.slice(2), wanted);
  // Logged out in one tab, logged out in all; and in again.
  const three = await tab(two.context(), node.url);
  await connected(three);
  await two.click("#log-out");
  await three.waitForSelector("#login:not([hidden])");
  await logIn(three, "anne", "#log-in");
  await two.waitForSelector("#chat:not([hidden])");
  await connected(two);
  assert.deepEqual([...two.complaints, ...three.complaints], []);
}

async function logOut(node, visit) {
  const anne = await visit();
  await node.create("mary");
  await logIn(anne, "anne");
  await talkWith(anne, "mary");
  await anne.route("**/conversations/*/messages", (route) => route.abort());
  await say(anne, "private");
  anne.once("dialog", (dialog) => dialog.dismiss());
  await anne.click("#log-out");
  await pause(300);
  assert.deepEqual(await waiting(anne), ["private"], "nothing is discarded without being asked");
  anne.once("dialog", (dialog) => dialog.accept());
  await anne.click("#log-out");
  await anne.waitForSelector("#login:not([hidden])");
  const kept = await anne.evaluate(() => JSON.stringify(Object.entries(localStorage)));
  assert.ok(!kept.includes("private") && !kept.includes("courier_"), kept);
}

await run([
  [`a burst of ${BURST} messages with two outages arrives once and in order`, burst],
  ["what is typed while the node is away is kept over a reload, by conversation", typedWhileAway],
  ["a refused message goes back to the box of its conversation", refused],
  ["what was typed in a conversation that one was removed from is shown", removed],
  ["only a login that has ended logs out", onlyAnEndedLogin],
  ["tabs share a login, and send each other's messages", tabs],
  ["logging out leaves nothing in the browser", logOut],
]);
