// A worker in place of the live view's socket.

/** The readyState of an open WebSocket. */
const OPEN = 1;
const CLOSED = 3;

/** @type {WorkerSocket | null} */
let current = null;
/** @type {((text: string) => void) | null} */
let post = null;

/** What the page uses of a WebSocket. */
class WorkerSocket {
  constructor() {
    this.readyState = 0;
    this.binaryType = "arraybuffer";
    /** @type {(() => void) | null} */
    this.onopen = null;
    /** @type {((event: { data: string | ArrayBuffer }) => void) | null} */
    this.onmessage = null;
    /** @type {(() => void) | null} */
    this.onclose = null;
  }

  /** @param {string} text */
  send(text) {
    post?.(text);
  }

  close() {
    if (this.readyState === CLOSED) return;
    this.readyState = CLOSED;
    this.onclose?.();
  }
}

/** Opens the socket; it is connected when a session has started. */
export function connect() {
  current = new WorkerSocket();
  const opened = current;
  queueMicrotask(() => {
    opened.readyState = OPEN;
    opened.onopen?.();
    post?.('{"again": true}');
  });
  return current;
}

/**
 * Sets where messages of the page go.
 * @param {(text: string) => void} to
 */
export function setPost(to) {
  post = to;
}

/** @param {string | ArrayBuffer} data */
export function deliver(data) {
  if (current?.readyState === OPEN) current.onmessage?.({ data });
}
