// The messages of the open conversation, in the order of their numbers, with days between them. The newest message stays in
// view, unless the reader has scrolled up.

import { $, element, sync } from "/page/dom.js";

// The maximum number of messages in the page; older messages are loaded again on request.
const MOST = 2000;
// The view follows new messages if it is within this many pixels of the end.
const NEAR = 24;

const dayOf = (time) => time.toLocaleDateString(undefined, { weekday: "long", year: "numeric", month: "long", day: "numeric" });

export class Messages {
  // `nameOf` returns the name of a user, `talk` opens a conversation with a user, and `seen` is called when the newest message is
  // in view.
  constructor(me, { nameOf, talk, seen }, over) {
    Object.assign(this, { me, nameOf, talk, seen, log: $("log"), list: $("messages") });
    this.clear();
    this.log.addEventListener("scroll", () => this.scrolled(), { signal: over });
    $("newer").addEventListener("click", () => this.follow(), { signal: over });
    document.addEventListener("visibilitychange", () => this.look(), { signal: over });
    // Heights change with messages, the window, and a keyboard on the screen.
    const resized = new ResizeObserver(() => this.following && this.toEnd());
    for (const part of [this.log, this.list, $("waiting")]) resized.observe(part);
    over.addEventListener("abort", () => resized.disconnect());
  }

  clear() {
    this.list.replaceChildren();
    $("waiting").replaceChildren();
    this.days = new Map();
    this.follow();
  }

  get first() {
    return Number(this.list.querySelector("[data-number]")?.dataset.number ?? Number.MAX_SAFE_INTEGER);
  }

  // The last number before the first gap. The numbers of a complete conversation have no gaps.
  get complete() {
    const numbers = [...this.list.querySelectorAll("[data-number]")].map((item) => Number(item.dataset.number));
    const end = numbers.findIndex((number, place) => numbers[place + 1] !== number + 1);
    return numbers[end] ?? 0;
  }

  // Inserts a message in the order of numbers, unless it is there already.
  draw(message) {
    let place = this.list.lastElementChild;
    while (place && !(Number(place.dataset.number) <= message.number)) place = place.previousElementSibling;
    if (place && Number(place.dataset.number) === message.number) return;
    const item = this.item(message);
    place ? place.after(item) : this.list.prepend(item);
    this.separate(item, new Date(message.sent));
    if (this.following) this.look();
  }

  // Draws a message that has just arrived.
  arrive(message) {
    this.draw(message);
    if (!this.following) $("newer").hidden = false;
    else while (this.list.children.length > MOST) this.forget(this.list.firstElementChild);
  }

  // Draws older messages without moving the messages in view.
  prepend(messages) {
    const below = this.log.scrollHeight - this.log.scrollTop;
    for (const message of messages) this.draw(message);
    this.log.scrollTop = this.log.scrollHeight - below;
  }

  // Draws the messages that wait to be sent.
  drawWaiting(messages) {
    const shown = messages.filter((one) => !one.arrived);
    const make = () => element("li", "", { className: "own" });
    sync($("waiting"), shown.map((one) => [one.id, one]), make, (item, one) => (item.textContent ||= one.text));
  }

  item(message) {
    const own = message.sender === this.me;
    const item = element("li", "", { className: own ? "own" : "" });
    item.dataset.number = message.number;
    const name = this.nameOf(message.sender);
    const who = own
      ? element("span", "You", { className: "who" })
      : element("button", name, { type: "button", className: "who", title: `Talk with ${name}`, tabIndex: -1 });
    if (!own) who.addEventListener("click", () => this.talk(message.sender));
    const sent = new Date(message.sent);
    const time = element("time", sent.toLocaleTimeString(undefined, { timeStyle: "short" }), { dateTime: sent.toISOString(), title: sent.toLocaleString() });
    item.append(who, element("span", message.text, { className: "text" }), time);
    return item;
  }

  // Inserts the date before the first message of a day.
  separate(item, sent) {
    const day = dayOf(sent);
    let separator = this.days.get(day);
    if (separator && separator.compareDocumentPosition(item) & Node.DOCUMENT_POSITION_FOLLOWING) return;
    if (!separator) {
      separator = element("li", "", { className: "day" });
      separator.append(element("h3", day));
      this.days.set(day, separator);
    }
    item.before(separator);
  }

  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.log;
    // New messages make the list longer, but only the reader scrolls up.
    if (scrollHeight - scrollTop - clientHeight <= NEAR) this.atEnd();
    else if (scrollTop < this.top) this.following = false;
    this.top = scrollTop;
  }

  follow() {
    this.atEnd();
    this.toEnd();
  }

  atEnd() {
    this.following = true;
    $("newer").hidden = true;
    this.look();
  }

  toEnd() {
    this.log.scrollTop = this.log.scrollHeight;
    this.top = this.log.scrollTop;
  }

  forget(item) {
    for (const [day, separator] of this.days) if (separator === item) this.days.delete(day);
    item.remove();
    $("earlier").hidden = false;
  }

  look() {
    if (this.following && document.visibilityState === "visible") this.seen();
  }
}
