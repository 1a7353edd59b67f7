// A guide of five steps for the first run of a browser. A run has a port of its own, and with it a storage of its own; so what
// was seen is a cookie, which all ports of a host share.

import { element, link } from "./panels.js";

/** The steps by kind of the scene; files of a finished run have none. @type {Record<string, string[]>} */
const STEPS = {
  services: [
    "Each circle is a service in a zone, and its number says how many instances serve. Lines are requests: wider is more, dots move as fast as answers come.",
    "Press Play, or the space bar. Speed goes from slow motion to as fast as the machine can.",
    "Select a circle, a line or a zone: the panel shows its state. Double-click, or zoom in, to see single instances.",
    "Press Kill, Slow or Partition in the panel. You see which actors it is for before you apply it.",
    "Drag on the bar of time to look back, and on a chart to zoom. Save the session: it replays to the same bits.",
  ],
  pirates: [
    "Each dot is a pirate: blue is poor, golden is rich. Lines are buddies, who exchange gold and names.",
    "Press Play, or the space bar. Speed goes from slow motion to as fast as the machine can.",
    "Select a dot or a line, or search for a name: the panel shows gold, buddies and the last messages.",
    "Press Kill in the panel, or choose another command below it, such as send gold 5.",
    "Drag on the bar of time to look back, and on a chart to zoom. Save the session: it replays to the same bits.",
  ],
  hosts: [
    "Each circle is a host, which runs a real program in virtual time. Lines are packets between two hosts: wider is more.",
    "Press Play, or the space bar. Speed goes from slow motion to as fast as the machine can; programs see only virtual time.",
    "Select a circle, or search for a host: the panel shows its state, its connections and what its program has printed.",
    "Press Kill, Pause or Partition in the panel. You see which hosts it is for before you apply it; Revive starts a program again.",
    "Drag on the bar of time to look back. The same commands at the same times lead to the same digest.",
  ],
};
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
 * Shows the guide if it was not seen yet and there is something to do.
 * @param {HTMLElement} place @param {string} kind of the scene
 */
export function guide(place, kind) {
  const steps = STEPS[kind] ?? [];
  place.hidden = steps.length === 0 || wasSeen();
  if (place.hidden) return;
  let step = 0;
  const show = () => {
    const isLast = step === steps.length - 1;
    const next = link(isLast ? "Done" : "Next", () => {
      step += 1;
      if (isLast) end();
      else show();
    });
    const buttons = element("p", "", next, ...(isLast ? [] : [link("Skip the guide", end)]));
    buttons.className = "row";
    place.replaceChildren(element("h2", `First steps, ${step + 1} of ${steps.length}`), element("p", steps[step]), buttons);
    if (step > 0) next.focus();
  };
  const end = () => {
    setSeen();
    place.hidden = true;
  };
  show();
}
