// The page: who is logged in, the conversations, and what is said in the one that is open.

import { Api, Refused } from "/page/api.js";
import { Line } from "/page/socket.js";

const $ = (id) => document.getElementById(id);
const NEWEST = Number.MAX_SAFE_INTEGER;

// What is kept of a tab: who it is, and how far it has read.
const kept = {
  read: () => JSON.parse(sessionStorage.getItem("courier") ?? "null"),
  write: (session) => sessionStorage.setItem("courier", JSON.stringify(session)),
  forget: () => sessionStorage.removeItem("courier"),
};

let api = new Api();
let line = null;
let session = null;
let open = null;
const names = new Map();
const rooms = new Map();
const online = new Map();

function complain(error) {
  $("problem").textContent = error.message;
  $("problem").hidden = false;
  clearTimeout(complain.timer);
  complain.timer = setTimeout(() => ($("problem").hidden = true), 8000);
}

function element(tag, text, properties = {}) {
  return Object.assign(document.createElement(tag), { textContent: text, ...properties });
}

function show(which) {
  $("login").hidden = which !== "login";
  $("chat").hidden = which !== "chat";
  (which === "login" ? $("name") : $("with")).focus();
}

async function enter(login, name) {
  session = { token: login.token, user: login.user, name, after: null };
  kept.write(session);
  await start();
}

async function start() {
  api = new Api(session.token);
  names.set(session.user, session.name);
  $("me").textContent = session.name;
  show("chat");
  try {
    for (const room of await api.conversations()) rooms.set(room.id, { ...room, unread: 0 });
    for (const { conversation, count } of (await api.unread()).conversations) {
      if (rooms.has(conversation)) rooms.get(conversation).unread = count;
    }
  } catch (error) {
    return leave(error);
  }
  await resolve([...rooms.values()].flatMap((room) => room.members.slice(0, 20)));
  drawRooms();
  line = new Line(session.token, session.after, hear, connection);
}

function leave(error) {
  line?.close();
  line = null;
  kept.forget();
  for (const map of [names, rooms, online]) map.clear();
  shut();
  api = new Api();
  show("login");
  if (error) complain(error);
}

const sending = (text) => [...$("messages").querySelectorAll(".waiting")].find((item) => item.textContent === text);

function shut() {
  open = null;
  $("messages").replaceChildren();
  $("post").hidden = $("earlier").hidden = true;
  $("title").textContent = "No conversation";
}

// The names of those whom this tab does not know yet.
async function resolve(ids) {
  const unknown = [...new Set(ids)].filter((id) => !names.has(id));
  for (let first = 0; first < unknown.length; first += 100) {
    const page = await api.resolve(unknown.slice(first, first + 100));
    for (const user of page.users) names.set(user.id, user.name);
  }
}

// Browsers have randomUUID on secure pages only.
const newKey = () => crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint32Array(4))).join("-");

const nameOf = (id) => names.get(id) ?? `user ${id}`;

function titleOf(room) {
  if (room.title) return room.title;
  const others = room.members.filter((id) => id !== session.user);
  const shown = others.slice(0, 5).map(nameOf).join(", ");
  return others.length > 5 ? `${shown} and ${others.length - 5} more` : shown;
}

function drawRooms() {
  const items = [...rooms].sort(([a], [b]) => b - a).map(([id, room]) => {
    const button = element("button", titleOf(room), { type: "button", onclick: () => choose(id).catch(complain) });
    button.dataset.id = id;
    button.setAttribute("aria-current", String(id === open));
    if (room.unread > 0) {
      const count = element("span", String(room.unread), { className: "unread" });
      count.setAttribute("aria-label", `${room.unread} unread`);
      button.append(count);
    }
    const item = document.createElement("li");
    item.append(button);
    return item;
  });
  $("conversations").replaceChildren(...items);
}

function drawOnline(total = online.size) {
  $("count").textContent = String(total);
  $("online").replaceChildren(...[...online.values()].sort().map((name) => element("li", name)));
}

async function choose(id) {
  open = id;
  rooms.get(id).unread = 0;
  $("title").textContent = titleOf(rooms.get(id));
  $("messages").replaceChildren();
  $("post").hidden = false;
  drawRooms();
  await earlier(NEWEST);
  $("text").focus();
}

async function earlier(before) {
  const id = open;
  const page = await api.before(id, before);
  await resolve(page.messages.map((message) => message.sender));
  if (id !== open) return;
  // The newest comes first.
  for (const message of page.messages) draw(message);
  $("earlier").hidden = !page.more;
}

// Puts a message where its number belongs, once.
function draw(message) {
  const list = $("messages");
  const atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 20;
  let place = list.lastElementChild;
  while (place && (place.dataset.number === undefined || Number(place.dataset.number) > message.number)) {
    place = place.previousElementSibling;
  }
  if (place && Number(place.dataset.number) === message.number) return;
  const item = document.createElement("li");
  item.dataset.number = message.number;
  item.append(element("span", nameOf(message.sender), { className: "who" }), message.text);
  const sent = new Date(message.sent);
  item.append(element("time", sent.toLocaleTimeString(), { dateTime: sent.toISOString() }));
  place ? place.after(item) : list.prepend(item);
  if (atEnd) list.scrollTop = list.scrollHeight;
}

async function hear(frame) {
  switch (frame.type) {
    case "message:new": {
      session.after = frame.sequence;
      kept.write(session);
      const { message } = frame;
      await meet(message.conversation).catch(complain);
      await resolve([message.sender]).catch(complain);
      if (message.conversation === open) {
        // It may come over the socket before the answer to its POST.
        if (message.sender === session.user) sending(message.text)?.remove();
        draw(message);
      } else if (message.sender !== session.user && rooms.has(message.conversation)) {
        rooms.get(message.conversation).unread += 1;
      }
      drawRooms();
      break;
    }
    case "conversation:changed": {
      const before = rooms.get(frame.conversation);
      rooms.delete(frame.conversation);
      await meet(frame.conversation).catch(complain);
      const room = rooms.get(frame.conversation);
      if (room && before) room.unread = before.unread;
      if (frame.conversation === open) room ? ($("title").textContent = titleOf(room)) : shut();
      drawRooms();
      break;
    }
    case "users:online":
      online.clear();
      for (const user of frame.users) online.set(user.id, user.name);
      drawOnline(frame.total);
      break;
    case "users:connect":
      for (const user of frame.users) online.set(user.id, user.name);
      drawOnline();
      break;
    case "users:disconnect":
      for (const user of frame.users) online.delete(user.id);
      drawOnline();
      break;
    case "error":
      complain(frame);
  }
}

// A conversation that somebody else has begun.
async function meet(id) {
  if (rooms.has(id)) return;
  const page = await api.untilDone("GET", `/conversations?limit=1&after=${id - 1}`);
  // Whoever has left finds another one here, or none.
  for (const room of page.conversations) if (!rooms.has(room.id)) rooms.set(room.id, { ...room, unread: 0 });
  await resolve(page.conversations.flatMap((room) => room.members.slice(0, 20)));
}

async function connection(state) {
  $("state").textContent = state === "open" ? "connected" : "connection lost, trying again";
  $("state").className = state === "open" ? "" : "lost";
  if (state === "open") return;
  // A token that is not good any more ends here.
  try {
    await api.once("GET", "/conversations?limit=1");
  } catch (error) {
    if (error instanceof Refused && error.status === 401) leave(error);
  }
}

async function send(text) {
  const conversation = open;
  const waiting = element("li", text, { className: "waiting" });
  $("messages").append(waiting);
  $("messages").scrollTop = $("messages").scrollHeight;
  try {
    const stored = await api.post(conversation, text, newKey());
    waiting.remove();
    if (conversation === open) draw({ ...stored, sender: session.user, text });
  } catch (error) {
    waiting.remove();
    $("text").value ||= text;
    complain(error);
  }
}

$("credentials").addEventListener("submit", async (event) => {
  event.preventDefault();
  const [name, password] = [$("name").value, $("password").value];
  try {
    const isNew = event.submitter?.id === "sign-up";
    const login = await (isNew ? api.signUp(name, password) : api.logIn(name, password));
    $("password").value = "";
    await enter(login, name);
  } catch (error) {
    complain(error);
  }
});

$("begin").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const wanted = $("with").value.split(",").map((name) => name.trim()).filter((name) => name);
    const recipients = [];
    for (const name of wanted) {
      const found = (await api.find(name)).users.find((user) => user.name === name);
      if (!found) throw new Error(`user ${name} does not exist`);
      names.set(found.id, found.name);
      recipients.push(found.id);
    }
    const { id } = await api.begin(recipients, newKey());
    if (!rooms.has(id)) rooms.set(id, { members: [...recipients, session.user], unread: 0 });
    $("with").value = "";
    await choose(id);
  } catch (error) {
    complain(error);
  }
});

$("with").addEventListener("input", async () => {
  const name = $("with").value.split(",").at(-1).trim();
  if (!name) return;
  try {
    const { users } = await api.find(name);
    $("found").replaceChildren(...users.map((user) => element("option", "", { value: user.name })));
  } catch {
    // Names can be typed without suggestions.
  }
});

$("post").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("text").value;
  if (!text) return;
  $("text").value = "";
  send(text);
});

$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("post").requestSubmit();
  }
});

$("earlier").addEventListener("click", () => {
  const first = $("messages").querySelector("li[data-number]");
  earlier(first ? Number(first.dataset.number) : NEWEST).catch(complain);
});

$("log-out").addEventListener("click", async () => {
  try {
    await api.logOut();
    leave();
  } catch (error) {
    leave(error);
  }
});

session = kept.read();
if (session) {
  start();
} else {
  show("login");
}
