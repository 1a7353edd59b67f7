// Requests. What changes something may be repeated: a message has a key, under which it is stored once.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export class Api {
  constructor(token = null) {
    this.token = token;
  }

  async once(method, path, body, headers = {}) {
    headers = { ...headers };
    if (this.token) headers.authorization = `Bearer ${this.token}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await answer.text();
    let said = null;
    try {
      said = text ? JSON.parse(text) : null;
    } catch {
      // A proxy may answer something else.
    }
    if (!answer.ok) {
      const refused = new Refused(answer.status, said?.error?.message ?? `the node answered ${answer.status}`);
      refused.wait = 1000 * Number(answer.headers.get("retry-after") ?? 1);
      throw refused;
    }
    return said;
  }

  // Repeats until the node says yes or no: it may be away, or busy.
  async untilDone(method, path, body, headers) {
    for (let wait = 250; ; wait = Math.min(2 * wait, 5000)) {
      try {
        return await this.once(method, path, body, headers);
      } catch (error) {
        if (error instanceof Refused && error.status < 500 && error.status !== 429) throw error;
        await pause(error.wait ?? wait);
      }
    }
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

  // With one other there is one conversation; with several each is a new one.
  begin(recipients, key) {
    const body = { recipients, pair: recipients.length === 1 };
    return this.untilDone("POST", "/conversations", body, { "idempotency-key": key });
  }

  before(conversation, number) {
    return this.untilDone("GET", `/conversations/${conversation}/messages?limit=50&before=${number}`);
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

  unread() {
    return this.untilDone("GET", "/conversations/unread");
  }
}
