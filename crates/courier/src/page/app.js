// The page: a form to log in, or the chat. All tabs of a browser share one login.

import { Api } from "/page/api.js";
import { Chat } from "/page/chat.js";
import { $, complain } from "/page/dom.js";
import { login } from "/page/storage.js";

let chat = null;

// Shows the chat if the browser has a stored login, or else the form.
function show() {
  const session = login.read();
  if (chat && chat.session.token === session?.token) return;
  chat?.close();
  chat = null;
  $("login").hidden = session !== null;
  $("chat").hidden = session === null;
  if (session) chat = new Chat(session, expired);
  else $("name").focus();
}

// Only the node ends a login. While the node is unavailable, the chat waits.
function expired() {
  if (chat) login.forget(chat.session);
  show();
  complain(new Error("your login has ended; log in again"));
}

$("credentials").addEventListener("submit", async (event) => {
  event.preventDefault();
  const [name, password] = [$("name").value, $("password").value];
  const api = new Api();
  try {
    const isNew = event.submitter?.id === "sign-up";
    const { token, user } = await (isNew ? api.signUp(name, password) : api.logIn(name, password));
    $("password").value = "";
    login.write({ token, user, name });
    show();
  } catch (error) {
    complain(error);
  }
});

$("log-out").addEventListener("click", async () => {
  const { session, unsent } = chat;
  if (unsent > 0 && !confirm("Some texts have not been sent. Log out and discard them?")) return;
  chat.forget();
  login.forget(session);
  show();
  try {
    await new Api(session.token).logOut();
  } catch (error) {
    if (error.status !== 401) complain(new Error(`logged out in this browser only: ${error.message}`));
  }
});

try {
  login.watch(show);
  show();
} catch {
  // A browser that blocks cookies also blocks storage.
  complain(new Error("this page needs the storage of the browser; allow cookies for it"));
}
