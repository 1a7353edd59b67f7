// The chat of one login: the conversations, the online users, and the open conversation.

import { Api } from "/page/api.js";
import { $, complain, element, sync } from "/page/dom.js";
import { Messages } from "/page/messages.js";
import { conversationOf, newKey, Outbox } from "/page/outbox.js";
import { Line } from "/page/socket.js";
import { Entries } from "/page/storage.js";

const NEWEST = Number.MAX_SAFE_INTEGER;
// The maximum number of names in the list of online users.
const MOST_ONLINE = 200;
// The maximum number of pages that are loaded after an outage. If more were missed, only the newest page is loaded.
const MOST_PAGES = 4;
// The key under which a tab stores the id of its open conversation.
const OPEN = "courier/open";

export class Chat {
  // `expired` is called when the node no longer accepts the token.
  constructor(session, expired) {
    this.session = session;
    this.me = session.user;
    this.ending = new AbortController();
    const over = (this.over = this.ending.signal);
    this.api = new Api(session.token, expired, over);
    this.names = new Map([[this.me, session.name]]);
    this.rooms = new Map();
    this.meeting = new Map();
    this.online = new Map();
    this.total = 0;
    this.open = null;
    // The number of characters at the start of the input field that are refused texts and have not been edited.
    this.back = 0;
    this.loading = Promise.resolve();
    this.hearing = Promise.resolve();
    const entries = (kind, changed) => new Entries(localStorage, this.me, kind, changed, over);
    // The last read number and the last number of each conversation.
    this.marks = new Map();
    this.read = entries("read", (id, text) => text && this.mark(Number(id), ...text.split(" ").map(Number)));
    for (const [id, text] of this.read.all()) this.mark(Number(id), ...text.split(" ").map(Number));
    this.drafts = new Entries(sessionStorage, this.me, "draft", () => {}, over);
    this.refused = entries("refused", () => this.takeBack());
    this.messages = new Messages(this.me, {
      nameOf: (id) => this.nameOf(id),
      talk: (id) => this.talk([id]).catch((error) => this.failed(error)),
      seen: () => this.seen(),
    }, over);
    this.outbox = new Outbox(this.api, this.me, {
      changed: () => this.redraw(),
      stored: (message, posted) => this.stored(message, posted),
      refused: (id, text, why) => this.giveBack(id, text, why),
    });
    this.listen();
    $("me").textContent = session.name;
    $("with").focus();
    this.line = new Line(session.token, (frame) => this.hearNext(frame), (state) => this.connection(state));
    this.load();
  }

  close() {
    this.ending.abort();
    this.line.close();
    this.api.wake();
    this.shut();
    document.title = "Courier";
    for (const list of ["conversations", "online"]) $(list).replaceChildren();
  }

  // The number of texts that the user has sent and that the node has not stored.
  get unsent() {
    return this.outbox.entries.all().length + this.refused.all().length;
  }

  forget() {
    for (const kind of [this.outbox.entries, this.refused, this.drafts]) kind.clear();
  }

  failed(error) {
    if (!this.over.aborted) complain(error);
  }

  listen() {
    const on = (id, event, work) => $(id).addEventListener(event, work, { signal: this.over });
    on("begin", "submit", (event) => {
      event.preventDefault();
      this.begin($("with").value).catch((error) => this.failed(error));
    });
    on("with", "input", () => this.suggest($("with").value).catch(() => {}));
    on("post", "submit", (event) => {
      event.preventDefault();
      this.send($("text").value);
    });
    on("text", "keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      $("post").requestSubmit();
    });
    on("text", "input", () => {
      this.back = 0;
      this.keepDraft();
    });
    on("earlier", "click", () => this.earlier().catch((error) => this.failed(error)));
  }

  // Loads the contents of the page, at the start and after every connection, because not every change is sent over the socket.
  load() {
    this.loading = this.loading.then(() => this.loadNow()).catch((error) => this.failed(error));
  }

  async loadNow() {
    const rooms = await this.api.conversations();
    const before = this.rooms;
    this.rooms = new Map(rooms.map((room) => [room.id, room]));
    this.redraw();
    await this.resolve(rooms.flatMap((room) => room.members.slice(0, 20)));
    // Some conversations may have been created after the request.
    for (const id of before.keys()) await this.meet(id);
    this.redraw();
    const kept = Number(sessionStorage.getItem(OPEN));
    if (this.open === null && this.rooms.has(kept)) await this.choose(kept);
    else if (this.rooms.has(this.open)) await this.fill(this.open);
    else this.shut();
  }

  // Loads the missing messages of the open conversation.
  async fill(id) {
    for (let pages = 0; pages < MOST_PAGES && this.messages.complete > 0; pages += 1) {
      const page = await this.api.after(id, this.messages.complete);
      await this.resolve(page.messages.map((message) => message.sender));
      if (id !== this.open) return;
      for (const message of page.messages) this.messages.arrive(message);
      if (!page.more) return;
    }
    this.messages.clear();
    await this.page(id, NEWEST);
  }

  connection(state) {
    $("state").textContent = state === "open" ? "connected" : "connection lost, trying again";
    $("state").className = state === "open" ? "" : "lost";
    if (state === "open") {
      this.api.wake();
      this.load();
    } else {
      // A browser does not report why a socket was refused. If the token has expired, this request reports it.
      this.api.once("GET", "/conversations?limit=1").catch(() => {});
    }
  }

  // Loads the names of users that this tab does not know yet.
  async resolve(ids) {
    const unknown = [...new Set(ids)].filter((id) => !this.names.has(id));
    for (let first = 0; first < unknown.length; first += 100) {
      const page = await this.api.resolve(unknown.slice(first, first + 100));
      for (const user of page.users) this.names.set(user.id, user.name);
    }
  }

  nameOf(id) {
    return this.names.get(id) ?? `user ${id}`;
  }

  titleOf(room) {
    if (room.title) return room.title;
    const others = room.members.filter((id) => id !== this.me);
    const shown = others.slice(0, 5).map((id) => this.nameOf(id)).join(", ");
    return others.length > 5 ? `${shown} and ${others.length - 5} more` : shown || "nobody else";
  }

  unread(id) {
    const { read, last } = this.marks.get(id) ?? { read: 0, last: 0 };
    return last - read;
  }

  // Records the last read number and the last number of a conversation. Neither decreases, even if another tab reports less.
  mark(id, read, last) {
    const before = this.marks.get(id) ?? { read: 0, last: 0 };
    const after = { read: Math.max(before.read, read), last: Math.max(before.last, read, last) };
    if (after.read === before.read && after.last === before.last) return;
    this.marks.set(id, after);
    try {
      this.read.set(id, `${after.read} ${after.last}`);
    } catch {
      // If the browser's storage is full, the value is lost on a reload.
    }
    this.redraw();
  }

  seen() {
    const last = this.marks.get(this.open)?.last;
    if (last) this.mark(this.open, last, last);
  }

  // Draws the lists before the next frame.
  redraw() {
    this.drawing ??= requestAnimationFrame(() => {
      this.drawing = undefined;
      if (!this.over.aborted) this.draw();
    });
  }

  draw() {
    const rooms = [...this.rooms.values()].sort((a, b) => b.id - a.id);
    sync($("conversations"), rooms.map((room) => [room.id, room]), (id) => this.item(() => this.choose(id)), (item, room) => this.drawRoom(item, room));
    const online = [...this.online].sort(([, a], [, b]) => a.localeCompare(b)).slice(0, MOST_ONLINE);
    sync($("online"), online, (id) => this.item(() => this.talk([id])), (item, name) => this.drawPerson(item.firstChild, name));
    $("count").textContent = String(this.total);
    const unread = rooms.filter((room) => this.unread(room.id) > 0).length;
    document.title = unread > 0 ? `(${unread}) Courier` : "Courier";
    if (!this.rooms.has(this.open)) return;
    $("title").textContent = this.titleOf(this.rooms.get(this.open));
    this.messages.drawWaiting(this.outbox.of(this.open));
  }

  drawPerson(button, name) {
    button.disabled = name === this.session.name;
    button.textContent = button.disabled ? `${name} (you)` : name;
  }

  item(act) {
    const item = document.createElement("li");
    const button = element("button", "", { type: "button" });
    button.addEventListener("click", () => act().catch((error) => this.failed(error)));
    item.append(button);
    return item;
  }

  drawRoom(item, room) {
    const button = item.firstChild;
    const unread = this.unread(room.id);
    const parts = [this.titleOf(room)];
    if (unread > 0) {
      const count = element("span", String(unread), { className: "unread" });
      count.append(element("span", " unread", { className: "spoken" }));
      parts.push(" ", count);
    }
    button.replaceChildren(...parts);
    button.dataset.id = room.id;
    button.setAttribute("aria-current", String(room.id === this.open));
  }

  async choose(id) {
    this.open = id;
    this.back = 0;
    sessionStorage.setItem(OPEN, id);
    $("post").hidden = false;
    $("earlier").hidden = true;
    $("text").value = this.drafts.get(id) ?? "";
    this.takeBack();
    this.messages.clear();
    this.draw();
    $("text").focus();
    await this.page(id, NEWEST);
  }

  shut() {
    this.open = null;
    this.messages.clear();
    $("post").hidden = $("earlier").hidden = true;
    $("title").textContent = "No conversation";
  }

  async page(id, before) {
    $("log").ariaBusy = "true";
    try {
      const page = await this.api.before(id, before);
      await this.resolve(page.messages.map((message) => message.sender));
      if (id !== this.open) return;
      $("earlier").hidden = !page.more;
      this.messages.prepend(page.messages);
      const [last] = page.messages;
      if (before === NEWEST && last) {
        this.mark(id, 0, last.number);
        this.messages.follow();
      }
    } finally {
      $("log").ariaBusy = "false";
    }
  }

  async earlier() {
    this.messages.following = false;
    await this.page(this.open, this.messages.first);
  }

  // Handles frames one after the other, because some need a request.
  hearNext(frame) {
    this.hearing = this.hearing.then(() => this.hear(frame)).catch((error) => this.failed(error));
  }

  async hear(frame) {
    if (this.over.aborted) return;
    switch (frame.type) {
      case "message:new":
        return this.hearMessage(frame.message);
      case "conversation:changed":
        return this.hearChange(frame.conversation);
      case "users:online":
        this.online.clear();
        this.total = frame.total;
        for (const user of frame.users) this.online.set(user.id, user.name);
        break;
      case "users:connect":
        for (const user of frame.users) {
          if (!this.online.has(user.id)) this.total += 1;
          this.online.set(user.id, user.name);
        }
        break;
      case "users:disconnect":
        for (const user of frame.users) this.online.delete(user.id);
        this.total = Math.max(this.total - frame.users.length, this.online.size);
        break;
      case "error":
        complain(frame);
    }
    this.redraw();
  }

  async hearMessage(message) {
    const { conversation, number, sender } = message;
    await this.meet(conversation);
    await this.resolve([sender]);
    // Messages before the first one that this browser receives were read elsewhere.
    const read = this.marks.has(conversation) ? 0 : number - 1;
    this.mark(conversation, sender === this.me ? number : read, number);
    if (sender === this.me) this.outbox.arrived(conversation, message.text);
    if (conversation === this.open) this.messages.arrive(message);
  }

  async hearChange(id) {
    const room = await this.find(id);
    room ? this.rooms.set(id, room) : this.rooms.delete(id);
    if (id === this.open && !this.rooms.has(id)) this.shut();
    this.redraw();
  }

  // Loads a conversation that another user has created.
  meet(id) {
    if (this.rooms.has(id)) return;
    if (!this.meeting.has(id)) {
      const met = this.find(id).then((room) => room && this.rooms.set(id, room));
      this.meeting.set(id, met.finally(() => this.meeting.delete(id)));
    }
    return this.meeting.get(id);
  }

  // Returns a conversation and loads the names of its members; undefined if this user is not a member.
  async find(id) {
    try {
      const room = await this.api.conversation(id);
      await this.resolve(room.members.slice(0, 20));
      return room;
    } catch (error) {
      if (error.status !== 404) throw error;
    }
  }

  stored(message, posted) {
    this.line.expect(posted);
    this.mark(message.conversation, message.number, message.number);
    if (message.conversation === this.open) this.messages.draw(message);
  }

  send(text) {
    if (!text) return;
    try {
      this.outbox.add(this.open, text);
    } catch {
      return complain(new Error("this browser cannot store more unsent messages; wait until the connection is back"));
    }
    $("text").value = "";
    this.back = 0;
    this.drafts.remove(this.open);
    this.messages.follow();
  }

  keepDraft() {
    try {
      if ($("text").value) this.drafts.set(this.open, $("text").value);
      else this.drafts.remove(this.open);
    } catch {
      // If the browser's storage is full, the value is lost on a reload.
    }
  }

  // Stores a refused text until its conversation is open.
  giveBack(id, text, why) {
    const room = this.rooms.get(conversationOf(id));
    // The user cannot open a conversation that they have left.
    if (!room && why.status === 404) return complain(new Error(`not sent: ${why.message}; it was: ${text}`), Infinity);
    complain(new Error(`not sent: ${why.message}`));
    this.refused.set(id, text);
    this.takeBack();
  }

  // Inserts refused texts, in order, before the text in the input field.
  takeBack() {
    const box = $("text");
    for (const [id, text] of this.refused.all()) {
      if (conversationOf(id) !== this.open) continue;
      const before = this.back > 0 ? "\n" : "";
      const after = this.back === 0 && box.value ? "\n" : "";
      box.setRangeText(before + text + after, this.back, this.back, "preserve");
      this.back += before.length + text.length;
      this.keepDraft();
      this.refused.remove(id);
    }
  }

  async begin(text) {
    const wanted = text.split(",").map((name) => name.trim().normalize("NFC")).filter((name) => name);
    const recipients = [];
    for (const name of wanted) {
      const found = (await this.api.find(name)).users.find((user) => user.name === name);
      if (!found) throw new Error(`user ${name} does not exist`);
      this.names.set(found.id, found.name);
      recipients.push(found.id);
    }
    if (recipients.length > 0) await this.talk(recipients);
    $("with").value = "";
  }

  async talk(recipients) {
    const { id } = await this.api.begin(recipients, newKey());
    await this.meet(id);
    await this.choose(id);
  }

  async suggest(text) {
    const [last, ...before] = text.split(",").reverse();
    if (!last.trim()) return;
    const { users } = await this.api.find(last.trim());
    const head = before.reverse().map((name) => `${name.trim()}, `).join("");
    $("found").replaceChildren(...users.map((user) => element("option", "", { value: head + user.name })));
  }
}
