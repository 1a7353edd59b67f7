// A socket that reconnects when it is lost, and resumes after the last sequence number that this tab has received.

// A user's own messages come back over the socket. After this time in milliseconds without any, the socket is dead.
const ECHO = 5000;

export class Line {
  // `hear` receives every frame, `state` whether the socket is open.
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

  // A burst is acknowledged at once.
  acknowledge() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      if (this.socket.readyState === WebSocket.OPEN) {
        this.socket.send(JSON.stringify({ type: "ack", sequence: this.after }));
      }
    }, 200);
  }

  // Opens another socket if this one does not bring back a message that was posted at this time. A network that drops a
  // connection may not say so to the browser.
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
