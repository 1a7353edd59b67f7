// The socket of a page. The playground has a worker in its place.

/** Opens the socket to the session that serves this page. @returns {WebSocket} */
export function connect() {
  const url = new URL("socket", location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return new WebSocket(url);
}
