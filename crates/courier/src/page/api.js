// Requests to the node. Requests that change data may be repeated: a message has a key, and the node stores it once for each key.

// The time limit of a request in milliseconds, longer than a node takes for an answer.
const PATIENCE = 30_000;

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  // True if the same request may succeed later, because the node is unavailable or busy.
  get passes() {
    return this.status >= 500 || this.status === 408 || this.status === 429;
  }
}

export class Api {
  // `expired` is called when the node no longer accepts the token; the signal `over` cancels all requests.
  constructor(token = null, expired = () => {}, over = new AbortController().signal) {
    Object.assign(this, { token, expired, over, naps: new Set() });
  }

  async once(method, path, body, headers = {}) {
    headers = { ...headers };
    if (this.token) headers.authorization = `Bearer ${this.token}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    const answer = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.any([this.over, AbortSignal.timeout(PATIENCE)]),
    });
    const text = await answer.text();
    this.over.throwIfAborted();
    let said = null;
    try {
      said = text ? JSON.parse(text) : null;
    } catch {
      // A proxy may send another body, even with a success status.
      if (answer.ok) throw new Refused(502, "the answer is not from a node");
    }
    if (answer.ok) return said;
    const refused = new Refused(answer.status, said?.error?.message ?? `the node answered ${answer.status}`);
    refused.wait = 1000 * (Number(answer.headers.get("retry-after")) || 1);
    if (answer.status === 401 && this.token) this.expired(refused);
    throw refused;
  }

  // Repeats the request until the node accepts or refuses it.
  async untilDone(method, path, body, headers) {
    for (let wait = 250; ; wait = Math.min(2 * wait, 5000)) {
      try {
        return await this.once(method, path, body, headers);
      } catch (error) {
        if (this.over.aborted || (error instanceof Refused && !error.passes)) throw error;
        await this.nap(error.wait ?? wait);
      }
    }
  }

  async nap(ms) {
    let timer, end;
    await new Promise((done) => {
      timer = setTimeout(done, ms);
      this.naps.add((end = done));
    });
    clearTimeout(timer);
    this.naps.delete(end);
    this.over.throwIfAborted();
  }

  // Ends all pauses, because the node can be reached again.
  wake() {
    for (const end of this.naps) end();
  }

  logIn(name, password) {
    return this.once("POST", "/sessions", { name, password });
  }

  signUp(name, password) {
    return this.once("POST", "/users", { name, password });
  }

  logOut() {
    return this.once("DELETE", "/sessions");
  }

  async conversations() {
    const all = [];
    for (let after = 0; ; ) {
      const page = await this.untilDone("GET", `/conversations?after=${after}`);
      all.push(...page.conversations);
      if (!page.more) return all;
      after = all.at(-1).id;
    }
  }

  conversation(id) {
    return this.untilDone("GET", `/conversations/${id}`);
  }

  // Finds or creates the conversation with one recipient; creates a new conversation with several recipients.
  begin(recipients, key) {
    const body = { recipients, pair: recipients.length === 1 };
    return this.untilDone("POST", "/conversations", body, { "idempotency-key": key });
  }

  before(conversation, number) {
    return this.untilDone("GET", `/conversations/${conversation}/messages?limit=50&before=${number}`);
  }

  after(conversation, number) {
    return this.untilDone("GET", `/conversations/${conversation}/messages?after=${number}`);
  }

  post(conversation, text, key) {
    return this.untilDone("POST", `/conversations/${conversation}/messages`, { text }, { "idempotency-key": key });
  }

  find(name) {
    return this.once("GET", `/users?limit=20&prefix=${encodeURIComponent(name)}`);
  }

  resolve(ids) {
    return this.untilDone("GET", `/users?ids=${ids.join(",")}`);
  }
}
