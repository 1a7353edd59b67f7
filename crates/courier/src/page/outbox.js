// The messages that the node has not stored yet. The messages of a conversation are posted one after the other, in the order in
// which they were typed. The browser keeps them until they are stored, also across reloads. Several tabs may post the same
// message, because it has a key; no tab posts a message before the earlier messages of its conversation are stored.

import { Refused } from "/page/api.js";
import { Entries } from "/page/storage.js";

// Browsers have randomUUID on secure pages only.
export const newKey = () => crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint32Array(4))).join("-");

// An id is CONVERSATION/TIME/KEY. All times have the same length, so the ids of a conversation sort by time.
export const conversationOf = (id) => Number(id.split("/", 1)[0]);
const stampOf = (id) => Number(id.split("/")[1]);
const keyOf = (id) => id.split("/")[2];

// The time in milliseconds for which only the tab in which a message was typed posts it.
const TURN = 5000;

export class Outbox {
  // `changed` receives a conversation whose messages have changed; `stored` receives a stored message and the time of its POST;
  // `refused` receives the id and the text of a refused message, and the error.
  constructor(api, user, { changed, stored, refused }) {
    Object.assign(this, { api, user, changed, stored, refused });
    this.queues = new Map();
    this.posting = new Set();
    this.last = 0;
    this.entries = new Entries(localStorage, user, "unsent", (id, text) => this.heard(id, text), api.over);
    for (const [id, text] of this.entries.all()) this.keep(id, text);
    for (const conversation of this.queues.keys()) this.drain(conversation);
  }

  // Returns the waiting messages of a conversation as `{ id, text, arrived }`, in order.
  of(conversation) {
    return this.queues.get(conversation) ?? [];
  }

  // Adds a message. Throws if the browser cannot store it.
  add(conversation, text) {
    const stamp = Math.max(Date.now(), this.last + 1);
    const id = `${conversation}/${String(stamp).padStart(16, "0")}/${newKey()}`;
    this.entries.set(id, text);
    this.keep(id, text);
    this.drain(conversation);
  }

  // Handles an entry that another tab has written or removed.
  heard(id, text) {
    if (text === null) return this.drop(id);
    this.keep(id, text);
    setTimeout(() => this.drain(conversationOf(id)), TURN);
  }

  // Handles a message of this user that arrived over the socket, perhaps before the answer to its POST.
  arrived(conversation, text) {
    const [first] = this.of(conversation);
    if (first?.text !== text) return;
    first.arrived = true;
    this.changed(conversation);
  }

  keep(id, text) {
    const conversation = conversationOf(id);
    this.last = Math.max(this.last, stampOf(id));
    const queue = this.of(conversation);
    if (queue.some((one) => one.id === id)) return;
    const place = queue.findLastIndex((one) => one.id < id) + 1;
    queue.splice(place, 0, { id, text, arrived: false });
    this.queues.set(conversation, queue);
    this.changed(conversation);
  }

  drop(id) {
    const conversation = conversationOf(id);
    const queue = this.of(conversation);
    const place = queue.findIndex((one) => one.id === id);
    if (place < 0) return;
    queue.splice(place, 1);
    this.changed(conversation);
  }

  async drain(conversation) {
    if (this.posting.has(conversation)) return;
    this.posting.add(conversation);
    try {
      // A message that another tab has posted is posted again with the same key.
      for (let first; (first = this.of(conversation)[0]); ) await this.post(conversation, first);
    } catch (error) {
      // The login has ended; the remaining messages are posted after the next login.
      if (!this.api.over.aborted) throw error;
    } finally {
      this.posting.delete(conversation);
    }
  }

  async post(conversation, { id, text }) {
    const posted = Date.now();
    try {
      const stored = await this.api.post(conversation, text, keyOf(id));
      this.remove(id);
      this.stored({ ...stored, sender: this.user, text }, posted);
    } catch (error) {
      if (!(error instanceof Refused) || error.status === 401) throw error;
      this.remove(id);
      this.refused(id, text, error);
    }
  }

  remove(id) {
    this.entries.remove(id);
    this.drop(id);
  }
}
