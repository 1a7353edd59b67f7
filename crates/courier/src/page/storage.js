// Data that the browser keeps across reloads, for all tabs or for one tab. Each entry has a separate key, so that no tab
// overwrites the data of another.

const LOGIN = "courier";

const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

// The login of all tabs: `{ token, user, name }`.
export const login = {
  read: () => parsed(localStorage.getItem(LOGIN)),
  write: (session) => localStorage.setItem(LOGIN, JSON.stringify(session)),

  // Removes the login, unless another tab has logged in again.
  forget(session) {
    if (login.read()?.token === session.token) localStorage.removeItem(LOGIN);
  },

  // Calls `changed` when another tab logs in or out.
  watch(changed) {
    addEventListener("storage", ({ key }) => (key === LOGIN || key === null) && changed());
  },
};

// Entries of one kind and one user.
export class Entries {
  // `area` is localStorage or sessionStorage. `changed` receives an id and its value, or null, when another tab has written it.
  constructor(area, user, kind, changed, signal) {
    this.area = area;
    this.prefix = `courier/${user}/${kind}/`;
    const hear = ({ key, newValue }) => key?.startsWith(this.prefix) && changed(key.slice(this.prefix.length), newValue);
    addEventListener("storage", hear, { signal });
  }

  // Returns all entries as `[id, value]`, in the order of ids.
  all() {
    const keys = Object.keys(this.area).filter((key) => key.startsWith(this.prefix));
    return keys.sort().map((key) => [key.slice(this.prefix.length), this.area.getItem(key)]);
  }

  get(id) {
    return this.area.getItem(this.prefix + id);
  }

  // Writes an entry. Throws if the browser's storage is full.
  set(id, value) {
    this.area.setItem(this.prefix + id, value);
  }

  remove(id) {
    this.area.removeItem(this.prefix + id);
  }

  clear() {
    for (const [id] of this.all()) this.remove(id);
  }
}
