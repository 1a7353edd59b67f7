// Elements of the page by their id, and sentences about what went wrong.

/** @param {string} id @returns {HTMLElement} */
export function $(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`there is no ${id}`);
  return found;
}
export const input = (/** @type {string} */ id) => /** @type {HTMLInputElement} */ ($(id));
export const select = (/** @type {string} */ id) => /** @type {HTMLSelectElement} */ ($(id));
export const canvas = (/** @type {string} */ id) => /** @type {HTMLCanvasElement} */ ($(id));

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** Shows a sentence for a while. @param {unknown} error */
export function complain(error) {
  const problem = $("problem");
  problem.textContent = error instanceof Error ? error.message : String(error);
  problem.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(() => (problem.hidden = true), 8000);
}

/** Runs what reads a form, and says what is wrong with it. @param {() => void} read */
export function trying(read) {
  try {
    read();
  } catch (error) {
    complain(error);
  }
}
