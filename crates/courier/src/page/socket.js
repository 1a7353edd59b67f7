// A socket that reconnects when it is lost, and resumes after the last sequence number that this tab has received.

export class Line {
  // `hear` receives every frame, `state` whether the socket is open.
  constructor(token, hear, state) {
    Object.assign(this, { token, hear, state, after: null, wait: 250, over: false });
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
