// A socket that reconnects when it is lost, and resumes after the last sequence number that this tab has received.

// The time in milliseconds after which the socket counts as dead if the user's own message has not come back over it.
const ECHO = 5000;

export class Line {
  // `hear` receives every frame, `state` the state of the socket.
  constructor(token, hear, state) {
    Object.assign(this, { token, hear, state, after: null, heard: 0, wait: 250, over: false });
    this.open();
  }

  open() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const query = this.after === null ? "" : `?after=${this.after}`;
    this.socket = new WebSocket(`${scheme}://${location.host}/ws${query}`, ["courier", this.token]);
    this.socket.onopen = () => {
      this.wait = 250;
      this.state("open");
    };
    this.socket.onmessage = (event) => this.take(JSON.parse(event.data));
    this.socket.onclose = (event) => this.lost(event);
  }

  take(frame) {
    this.heard = Date.now();
    if (frame.type === "message:new") {
      this.after = frame.sequence;
      this.acknowledge();
    }
    this.hear(frame);
  }

  // Acknowledges all messages of a burst together.
  acknowledge() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      if (this.socket.readyState === WebSocket.OPEN) {
        this.socket.send(JSON.stringify({ type: "ack", sequence: this.after }));
      }
    }, 200);
  }

  // Opens a new socket if this socket does not bring back a message that was posted at this time. A network that drops a
  // connection may not notify the browser.
  expect(posted) {
    setTimeout(() => {
      if (this.heard >= posted || this.over || this.socket.readyState !== WebSocket.OPEN) return;
      this.socket.onmessage = this.socket.onclose = null;
      this.socket.close();
      this.lost({});
    }, ECHO);
  }

  lost(event) {
    if (this.over) return;
    this.state(event.code === 1008 ? "refused" : "lost");
    setTimeout(() => this.over || this.open(), this.wait * (0.5 + Math.random()));
    this.wait = Math.min(2 * this.wait, 5000);
  }

  close() {
    this.over = true;
    clearTimeout(this.timer);
    this.socket.close(1000);
  }
}
