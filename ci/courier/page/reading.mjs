// What readers meet: the newest message in view, days, names to click, the keyboard, and what axe says.
//
//   node reading.mjs PROGRAM CHROMIUM

import assert from "node:assert/strict";
import { atEnd, choose, connected, logIn, pause, run, say, sees, tab, talkWith, violations } from "./browser.mjs";

const scroll = (page) => page.$eval("#log", (log) => log.scrollTop);

async function scrolling(node, visit) {
  const anne = await visit({ viewport: { width: 900, height: 600 } });
  const mary = await node.create("mary");
  await logIn(anne, "anne");
  await talkWith(anne, "mary");
  const post = (text) => node.ask("POST", "conversations/1/messages", { text }, mary.token);
  for (let turn = 0; turn < 60; turn += 1) await post(`message ${turn}`);
  await sees(anne, "message 59");
  await atEnd(anne);
  await anne.reload();
  await sees(anne, "message 59");
  await atEnd(anne);
  for (const size of [{ width: 900, height: 300 }, { width: 400, height: 700 }, { width: 1200, height: 500 }]) {
    await anne.setViewportSize(size);
    await pause(200);
    await atEnd(anne);
  }
  // A message of many lines, and a box that grows.
  await post("line\n".repeat(40));
  await sees(anne, "line");
  await atEnd(anne);
  await anne.evaluate(() => (document.getElementById("text").rows = 8));
  await pause(200);
  await atEnd(anne);

  // A reader who has scrolled up is left alone.
  await anne.hover("#log");
  await anne.mouse.wheel(0, -600);
  await anne.waitForFunction(() => {
    const log = document.getElementById("log");
    return log.scrollHeight - log.scrollTop - log.clientHeight > 300;
  });
  await pause(300);
  const before = await scroll(anne);
  assert.ok(!(await anne.isVisible("#newer")));
  for (let turn = 0; turn < 20; turn += 1) await post(`later ${turn}`);
  await sees(anne, "later 19");
  assert.equal(await scroll(anne), before, "the page does not move under the reader");
  await anne.waitForSelector("#newer:not([hidden])");
  await anne.waitForSelector("#conversations .unread");
  await anne.focus("#newer");
  await anne.keyboard.press("Enter");
  await atEnd(anne);
  assert.ok(!(await anne.isVisible("#newer")));
  await anne.waitForFunction(() => document.querySelector("#conversations .unread") === null);
  // Older messages come above those in view.
  await anne.$eval("#log", (log) => (log.scrollTop = 0));
  const first = await anne.$eval("#messages li[data-number]", (item) => [item.dataset.number, item.getBoundingClientRect().top]);
  await anne.click("#earlier");
  await sees(anne, "message 0");
  const after = await anne.$eval(`#messages li[data-number="${first[0]}"]`, (item) => item.getBoundingClientRect().top);
  assert.ok(Math.abs(after - first[1]) < 60, `${first[1]} ${after}`);
  const numbers = await anne.$$eval("#messages li[data-number]", (items) => items.map((item) => Number(item.dataset.number)));
  assert.deepEqual(numbers, numbers.map((_, place) => place + 1));
}

async function flood(node, visit) {
  // Whoever reads at the end stays there, however fast messages come.
  const anne = await visit({ viewport: { width: 900, height: 600 } });
  const mary = await node.create("mary");
  await logIn(anne, "anne");
  await talkWith(anne, "mary");
  for (let round = 0; round < 10; round += 1) {
    const posts = Array.from({ length: 40 }, (_, turn) =>
      node.ask("POST", "conversations/1/messages", { text: `${round} ${turn}` }, mary.token));
    await Promise.all(posts);
    await pause(450);
    assert.ok(!(await anne.isVisible("#newer")), `round ${round}`);
  }
  await anne.waitForFunction(() => document.querySelectorAll("#messages li[data-number]").length === 400);
  await atEnd(anne);
}

async function looks(node, visit) {
  const anne = await visit({ colorScheme: "dark" });
  assert.deepEqual(await violations(anne), [], "the login, dark");
  await logIn(anne, "anne");
  const mary = await visit({ colorScheme: "light" });
  assert.deepEqual(await violations(mary), [], "the login, light");
  await logIn(mary, "mary");
  const jack = await node.create("jack");
  await talkWith(anne, "mary, jack");
  await say(anne, "ahoy all");
  await sees(anne, "ahoy all");
  await node.ask("POST", "conversations/1/messages", { text: "jack is here" }, jack.token);
  await choose(mary, "anne");
  await sees(mary, "jack is here");
  await say(mary, "ahoy");
  await sees(anne, "ahoy");

  // Own messages are set apart.
  const left = (page, text) => page.$eval(`#messages li:has-text("${text}")`, (item) => item.getBoundingClientRect().left);
  assert.ok((await left(mary, "ahoy all")) + 50 < (await left(mary, "You")));
  assert.equal(await mary.$eval("#messages .own .who", (who) => who.textContent), "You");

  // A name opens a conversation with this person.
  await mary.click('#messages button.who:has-text("jack")');
  await mary.waitForFunction(() => document.getElementById("title").textContent === "jack");
  await mary.click('#online button:has-text("anne")');
  await mary.waitForFunction(() => document.getElementById("title").textContent === "anne");
  await mary.click('#online button:has-text("anne")');
  await pause(300);
  assert.equal((await mary.$$("#conversations li")).length, 3, "a pair has one conversation");

  // The conversation is kept over a reload.
  await choose(mary, "jack");
  await mary.reload();
  await mary.waitForFunction(() => document.getElementById("title").textContent === "jack");
  await choose(mary, "anne, jack");
  await sees(mary, "jack is here");

  // An unread count outlives a reload.
  await choose(mary, "anne, jack");
  await mary.reload();
  await mary.waitForFunction(() => document.getElementById("title").textContent.includes("anne, jack"));
  await connected(mary);
  await talkWith(anne, "mary");
  await say(anne, "only mary");
  await say(anne, "and again");
  await mary.waitForFunction(() => document.querySelector("#conversations .unread")?.textContent.startsWith("2"));
  assert.equal(await mary.title(), "(1) Courier");
  await pause(500);
  await mary.reload();
  await mary.waitForFunction(() => document.querySelector("#conversations .unread")?.textContent.startsWith("2"));

  // A lost connection, an error, messages that wait, unread ones: all of it within what axe asks for.
  await choose(anne, "jack, mary").catch(() => choose(anne, "mary, jack"));
  await anne.route("**/conversations/*/messages", (route) => route.abort());
  await say(anne, "waits");
  await anne.waitForSelector("#waiting li");
  for (const page of [anne, mary]) {
    assert.deepEqual(await violations(page), [], "the chat");
    await page.emulateMedia({ colorScheme: page === anne ? "light" : "dark" });
    assert.deepEqual(await violations(page), [], "the chat in the other colours");
    await page.setViewportSize({ width: 360, height: 640 });
    assert.deepEqual(await violations(page), [], "the chat on a small screen");
  }
  const landmarks = await anne.$$eval("header, nav, main", (all) => all.filter((one) => one.checkVisibility()).map((one) => one.localName));
  assert.deepEqual(landmarks, ["header", "nav", "main"]);
  const headings = await anne.$$eval("h1, h2, h3", (all) => all.filter((one) => one.checkVisibility()).map((one) => one.localName));
  assert.equal(headings[0], "h1");
  assert.ok(headings.includes("h3"), "days are headings");
}

async function days(node, visit) {
  // The clock of the page's reader is in another zone for each.
  const mary = await node.create("mary");
  const jack = await node.create("jack");
  const { id } = await node.ask("POST", "conversations", { recipients: [jack.user], pair: true }, mary.token);
  for (let turn = 0; turn < 6; turn += 1) await node.ask("POST", `conversations/${id}/messages`, { text: `day ${turn}` }, mary.token);
  const page = await visit({ timezoneId: "UTC", locale: "en-GB" });
  // The node says when; the test says other times.
  await page.route("**/conversations/*/messages*", async (route) => {
    const answer = await route.fetch();
    const said = await answer.json();
    for (const message of said.messages ?? []) message.sent = Date.UTC(2026, 1, 27 + Math.floor(message.number / 2), 12);
    await route.fulfill({ response: answer, json: said });
  });
  await page.fill("#name", "jack");
  await page.fill("#password", "correct horse");
  await page.click("#log-in");
  await choose(page, "mary");
  await sees(page, "day 5");
  const items = await page.$$eval("#messages li", (all) => all.map((item) => item.querySelector("h3, .text").textContent));
  assert.deepEqual(items, [
    "Friday, 27 February 2026", "day 0", "Saturday, 28 February 2026", "day 1", "day 2",
    "Sunday, 1 March 2026", "day 3", "day 4", "Monday, 2 March 2026", "day 5",
  ]);
}

async function keyboard(node, visit) {
  const anne = await visit();
  await node.create("mary");
  await logIn(anne, "anne");
  await talkWith(anne, "mary");
  const other = await tab(anne.context(), node.url);
  await connected(other);
  // The skip link comes first, and leads to the messages.
  await anne.focus("#log-out");
  await anne.keyboard.press("Shift+Tab");
  assert.equal(await anne.evaluate(() => document.activeElement.className), "skip");
  await anne.keyboard.press("Enter");
  assert.equal(await anne.evaluate(() => document.activeElement.id), "room");
  // The focus stays where it is when lists change.
  await anne.focus("#conversations button");
  const jack = await node.create("jack");
  const me = await anne.evaluate(() => JSON.parse(localStorage.getItem("courier")).user);
  const { id } = await node.ask("POST", "conversations", { recipients: [me], pair: true }, jack.token);
  for (let turn = 0; turn < 5; turn += 1) await node.ask("POST", `conversations/${id}/messages`, { text: "psst" }, jack.token);
  await anne.waitForSelector("#conversations .unread");
  assert.equal(await anne.evaluate(() => document.activeElement.textContent), "mary");
  // Shift and Enter make a line, Enter sends.
  await anne.focus("#text");
  await anne.keyboard.type("one");
  await anne.keyboard.press("Shift+Enter");
  await anne.keyboard.type("two");
  await anne.keyboard.press("Enter");
  await sees(anne, "one\ntwo");
  // The messages scroll by the keyboard.
  for (let turn = 0; turn < 40; turn += 1) await say(anne, `line ${turn}`);
  await sees(anne, "line 39");
  await anne.focus("#log");
  await anne.keyboard.press("Home");
  await anne.waitForFunction(() => document.getElementById("log").scrollTop === 0);
  await anne.keyboard.press("End");
  await atEnd(anne);
}

await run([
  ["the newest message stays in view, unless the reader has scrolled up", scrolling],
  ["a flood of messages does not leave the reader behind", flood],
  ["own messages, names, reloads, and no violation of what axe checks", looks],
  ["messages stand below their days", days],
  ["the keyboard reaches everything", keyboard],
]);
