// Requests. What changes something may be repeated: a message has a key, under which it is stored once.

// Longer than a node takes for an answer.
const PATIENCE = 30_000;

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  // Whether the same request may succeed later: the node is away or busy, and has not said no.
  get passes() {
    return this.status >= 500 || this.status === 408 || this.status === 429;
  }
}

export class Api {
  // `expired` is called when the node does not accept the token any more; `over` ends all requests.
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
      // A proxy may answer something else, even with success.
      if (answer.ok) throw new Refused(502, "the answer is not from a node");
    }
    if (answer.ok) return said;
    const refused = new Refused(answer.status, said?.error?.message ?? `the node answered ${answer.status}`);
    refused.wait = 1000 * (Number(answer.headers.get("retry-after")) || 1);
    if (answer.status === 401 && this.token) this.expired(refused);
    throw refused;
  }

  // Repeats until the node says yes or no: it may be away, or busy.
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

  // Ends all pauses: the node can be reached again.
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

  // With one other there is one conversation; with several each is a new one.
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
