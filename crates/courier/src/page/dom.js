// Elements of the page.

export const $ = (id) => document.getElementById(id);

export const element = (tag, text, properties = {}) => Object.assign(document.createElement(tag), { textContent: text, ...properties });

// Updates the items of `list` to match `wanted`, pairs of a key and a value, in order. Items that stay are not moved, so that
// the focus stays where it is.
export function sync(list, wanted, make, update) {
  const keys = new Set(wanted.map(([key]) => String(key)));
  const items = new Map();
  for (const item of [...list.children]) keys.has(item.dataset.key) ? items.set(item.dataset.key, item) : item.remove();
  let place = list.firstElementChild;
  for (const [key, value] of wanted) {
    let item = items.get(String(key));
    if (!item) {
      item = make(key);
      item.dataset.key = key;
    }
    update(item, value);
    if (item === place) place = place.nextElementSibling;
    else list.insertBefore(item, place);
  }
}

// Shows an error for a while, or until the next error.
export function complain(error, time = 8000) {
  $("problem").textContent = error.message;
  $("problem").hidden = false;
  clearTimeout(complain.timer);
  if (time < Infinity) complain.timer = setTimeout(() => ($("problem").hidden = true), time);
}
