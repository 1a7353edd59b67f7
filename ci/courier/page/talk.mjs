// Two browsers talk, one is cut off and catches up, the server is killed and comes back, the keyboard is enough, and nothing is
// loaded that the policy does not allow.
//
//   node talk.mjs PROGRAM CHROMIUM

import assert from "node:assert/strict";
import { choose, connected, logIn, lost, pause, PASSWORD, run, say, sees, talkWith, texts, Way } from "./browser.mjs";

async function conversation(node, visit) {
  const way = new Way(node.port);
  const anne = await visit({ colorScheme: "dark" });
  const mary = await visit({ colorScheme: "light" }, await way.listen());
  await logIn(anne, "anne");
  await logIn(mary, "mary");
  await anne.waitForFunction(() => document.getElementById("online").textContent.includes("mary"));

  // By the keyboard alone.
  await anne.focus("#with");
  await anne.keyboard.type("mary");
  await anne.keyboard.press("Enter");
  await anne.waitForSelector("#post:not([hidden])");
  await anne.waitForFunction(() => document.activeElement.id === "text");
  await anne.keyboard.type("ahoy <b>mary</b> & \"all\"");
  await anne.keyboard.press("Enter");
  await mary.waitForSelector("#conversations .unread");
  await mary.focus("#with");
  for (let turn = 0; turn < 10; turn += 1) {
    await mary.keyboard.press("Tab");
    if (await mary.evaluate(() => document.activeElement.closest("#conversations") !== null)) break;
  }
  await mary.keyboard.press("Enter");
  await sees(mary, "ahoy <b>mary</b> & \"all\"");
  assert.equal(await mary.$("#messages b"), null, "a text is a text");
  await say(mary, "ahoy anne");
  await sees(anne, "ahoy anne");

  // One is cut off, and catches up.
  way.cut();
  await lost(mary);
  for (let turn = 0; turn < 30; turn += 1) await say(anne, `missed ${turn}`);
  await sees(anne, "missed 29");
  assert.ok(!(await texts(mary)).includes("missed 0"));
  way.mend();
  await sees(mary, "missed 29");
  assert.deepEqual(await texts(mary), await texts(anne));

  // The server is killed under a message, and comes back.
  await node.kill();
  await lost(mary);
  await say(mary, "said to nobody yet");
  await pause(1000);
  await node.start();
  await sees(anne, "said to nobody yet");
  await sees(mary, "said to nobody yet");
  await connected(anne);
  assert.deepEqual(await texts(mary), await texts(anne));
  assert.equal((await texts(anne)).filter((text) => text === "said to nobody yet").length, 1);

  const back = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.notEqual(await back(anne), await back(mary), "light and dark");
  await mary.reload();
  await choose(mary, "anne");
  await sees(mary, "ahoy anne");
  assert.deepEqual(await texts(mary), await texts(anne));
  await mary.click("#log-out");
  await mary.waitForSelector("#login:not([hidden])");
  await mary.fill("#name", "mary");
  await mary.fill("#password", "wrong horse");
  await mary.click("#log-in");
  await mary.waitForSelector("#problem:not([hidden])");
  await mary.fill("#password", PASSWORD);
  await mary.press("#password", "Enter");
  await mary.waitForSelector("#chat:not([hidden])");
  way.cut();
  way.server.close();
}

// A network that drops a socket without a word.
async function deadSocket(node, visit) {
  const way = new Way(node.port);
  const anne = await visit({}, await way.listen());
  const mary = await node.create("mary");
  await logIn(anne, "anne");
  await talkWith(anne, "mary");
  await say(anne, "first");
  await sees(anne, "first");
  way.dropSilently();
  await node.ask("POST", "conversations/1/messages", { text: "unheard" }, mary.token);
  await pause(1000);
  assert.ok(!(await texts(anne)).includes("unheard"));
  await say(anne, "is anybody there");
  await sees(anne, "is anybody there");
  await sees(anne, "unheard");
  assert.deepEqual(await texts(anne), ["first", "unheard", "is anybody there"]);
  way.cut();
  way.server.close();
}

await run([
  ["two talk, through an outage, by the keyboard, in light and dark", conversation],
  ["a socket that is dead is found out", deadSocket],
]);
