// Runs the simulation, so that the page never waits for it.

import * as corsair from "corsair";

/** @type {import("corsair").Player | null} */
let player = null;
let generation = 0;

function flush() {
  for (;;) {
    const text = player?.take_text();
    if (text !== undefined) {
      postMessage({ text });
      continue;
    }
    const frame = player?.take_frame();
    if (frame === undefined) return;
    postMessage({ frame: frame.buffer }, [frame.buffer]);
  }
}

/** @param {number} mine */
function turn(mine) {
  if (mine !== generation || !player) return;
  const wait = player.turn();
  flush();
  setTimeout(turn, wait, mine);
}

/** @type {Record<string, (...given: any[]) => unknown>} */
const calls = {
  check: corsair.check,
  example: corsair.example,
  examples: () => JSON.parse(corsair.examples()),
  schema: () => JSON.parse(corsair.schema()),
  run: (definition, seed, seconds) => JSON.parse(corsair.run(definition, BigInt(seed), seconds)),
  capacity: (definition, seed, seconds, limit) => JSON.parse(corsair.capacity(definition, BigInt(seed), seconds, limit)),
  compare: (definition, settings, seed, seconds, seeds) =>
    JSON.parse(corsair.compare(definition, settings, BigInt(seed), seconds, seeds)),
  /** Starts a session; what was running ends. */
  open(definition, seed, seconds) {
    const next = new corsair.Player(definition, BigInt(seed), seconds);
    start(next);
  },
  pirates(population, seed, seconds) {
    start(corsair.Player.pirates(population, BigInt(seed), seconds));
  },
};

/** @param {import("corsair").Player} next */
function start(next) {
  player?.free();
  player = next;
  generation += 1;
  flush();
  turn(generation);
}

/** @type {(value: any) => void} */
let ready;
const isReady = new Promise((done) => (ready = done));

onmessage = async ({ data }) => {
  if (data.module) {
    corsair.initSync({ module: data.module });
    ready(null);
    return;
  }
  await isReady;
  if (data.hear !== undefined) {
    player?.hear(data.hear);
    flush();
    return;
  }
  try {
    postMessage({ id: data.id, value: calls[data.call]?.(...data.given) });
  } catch (error) {
    postMessage({ id: data.id, wrong: error instanceof Error ? error.message : String(error) });
  }
};
