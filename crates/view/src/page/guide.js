// A guide of five steps for the first run of a browser. A run has a port of its own, and with it a storage of its own; so what
// was seen is a cookie, which all ports of a host share.

import { element, link } from "./panels.js";

const STEPS = [
  "Each circle is a service in a zone, and its number says how many instances serve. Lines are requests: wider is more, dots move as fast as answers come.",
  "Press Play, or the space bar. Speed goes from slow motion to as fast as the machine can.",
  "Select a circle, a line or a zone: the panel shows its state. Double-click, or zoom in, to see single instances.",
  "Press Kill, Slow or Partition in the panel. You see which actors it is for before you apply it.",
  "The charts follow the whole run. Save the session: it replays to the same bits.",
];
const SEEN = "corsair-guide=seen";

function wasSeen() {
  try {
    return document.cookie.includes(SEEN) || localStorage.getItem("corsair-guide") === "seen";
  } catch {
    // A browser may forbid storage; then the guide comes each time.
    return false;
  }
}

function setSeen() {
  document.cookie = `${SEEN}; path=/; max-age=31536000; samesite=strict`;
  try {
    localStorage.setItem("corsair-guide", "seen");
  } catch {
    // See above.
  }
}

/**
 * Shows the guide if it was not seen yet.
 * @param {HTMLElement} place
 */
export function guide(place) {
  if (wasSeen()) return;
  let step = 0;
  const show = () => {
    const isLast = step === STEPS.length - 1;
    const next = link(isLast ? "Done" : "Next", () => {
      step += 1;
      if (isLast) end();
      else show();
    });
    const buttons = element("p", "", next, ...(isLast ? [] : [link("Skip the guide", end)]));
    buttons.className = "row";
    place.replaceChildren(element("h2", `First steps, ${step + 1} of ${STEPS.length}`), element("p", STEPS[step]), buttons);
    if (step > 0) next.focus();
  };
  const end = () => {
    setSeen();
    place.hidden = true;
  };
  place.hidden = false;
  show();
}
