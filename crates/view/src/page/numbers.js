// Numbers that people type. What is not one is refused in a sentence, before anything is sent.

/**
 * Reads a number. @param {string} text @param {string} what
 * @param {{ least?: number, most?: number, isWhole?: boolean, example?: string }} [range]
 */
export function readNumber(text, what, { least = 0, most = Infinity, isWhole = false, example = "2.5" } = {}) {
  const typed = text.trim();
  if (typed === "") throw new Error(`${what} is empty; type a number, for example ${example}`);
  const value = Number(typed.replace(",", "."));
  if (!Number.isFinite(value)) throw new Error(`${what} '${typed}' is not a number; type a number, for example ${example}`);
  if (isWhole && !Number.isInteger(value)) throw new Error(`${what} '${typed}' is not a whole number; type for example ${example}`);
  if (value < least) throw new Error(`${what} '${typed}' is too low; the lowest is ${least}`);
  if (value > most) throw new Error(`${what} '${typed}' is too high; the highest is ${most}`);
  return value;
}

/** The latest time of a run, in seconds: nanoseconds have to fit in 63 bits. */
const MOST_SECONDS = 9e9;

/** Reads a virtual time in seconds, as nanoseconds. @param {string} text @param {string} what */
export const readTime = (text, what) => Math.round(readNumber(text, what, { most: MOST_SECONDS }) * 1e9);
