// The geometry of edges: curves that leave a zone together and arrive at a zone together, so that the edges between two
// zones form a bundle.

/**
 * The places of nodes, of the groups that they belong to, and of their zones (the left and right edge, and the middle; not a
 * number if there is none), in units of the scene.
 * @typedef {{ xs: Float32Array, ys: Float32Array, groupXs: Float32Array, groupYs: Float32Array, isStraight: boolean,
 *   zoneLefts: Float32Array, zoneRights: Float32Array, zoneYs: Float32Array }} Places
 */

/** True if a point is in an area. @param {import("./socket.js").Area} area @param {number} x @param {number} y */
export const isIn = ({ at: [left, top, wide, high] }, x, y) => x >= left && x <= left + wide && y >= top && y <= top + high;

/** How far beside a zone its bundles gather. */
const BESIDE = 0.7;

/** The x and y of the two control points of the last curve. */
export const control = new Float64Array(4);

/** Computes the control points of an edge, in units of the scene. @param {Places} places @param {number} a @param {number} b */
export function bend(places, a, b) {
  const { xs, ys, groupXs, groupYs, zoneLefts, zoneRights, zoneYs } = places;
  const [fromX, fromY] = [groupXs[a] ?? 0, groupYs[a] ?? 0];
  const [toX, toY] = [groupXs[b] ?? 0, groupYs[b] ?? 0];
  const [wide, high] = [toX - fromX, toY - fromY];
  const [leftA = NaN, leftB = NaN, rightA = NaN, rightB = NaN] = [zoneLefts[a], zoneLefts[b], zoneRights[a], zoneRights[b]];
  const [zoneA = NaN, zoneB = NaN] = [zoneYs[a], zoneYs[b]];
  if (places.isStraight || (wide === 0 && high === 0)) {
    const [ax, ay, bx, by] = [xs[a] ?? 0, ys[a] ?? 0, xs[b] ?? 0, ys[b] ?? 0];
    control[0] = ax + (bx - ax) / 3;
    control[1] = ay + (by - ay) / 3;
    control[2] = bx - (bx - ax) / 3;
    control[3] = by - (by - ay) / 3;
  } else if (zoneA > 0 && zoneB > 0 && (zoneA !== zoneB || leftA !== leftB)) {
    // Between two zones; those above each other have their bundle on the right.
    const isBeside = leftA === leftB;
    control[0] = isBeside || leftB > rightA ? rightA + BESIDE : leftA - BESIDE;
    control[1] = zoneA;
    control[2] = isBeside || leftA > rightB ? rightB + BESIDE : leftB - BESIDE;
    control[3] = zoneB;
  } else if (high > 2 && Number.isNaN(zoneA) && Number.isNaN(zoneB)) {
    // From above all regions down into one, beside its zones.
    control[0] = control[2] = toX;
    control[1] = fromY + 0.1 * high;
    control[3] = toY - 0.5 * high;
  } else if (Math.abs(wide) > 0.4 * Math.abs(high)) {
    control[0] = control[2] = fromX + wide / 2;
    control[1] = fromY;
    control[3] = toY;
  } else {
    // Past what stands between, not through it.
    const aside = Math.min(1.3, 0.2 * Math.abs(high));
    control[0] = fromX + aside;
    control[2] = toX + aside;
    control[1] = fromY + 0.3 * high;
    control[3] = toY - 0.3 * high;
  }
}

/**
 * A coordinate of a curve at a part of its way.
 * @param {number} a @param {number} c @param {number} d @param {number} b @param {number} part
 */
export function along(a, c, d, b, part) {
  const rest = 1 - part;
  return rest * rest * (rest * a + 3 * part * c) + part * part * (3 * rest * d + part * b);
}

/**
 * The distance between a point and an edge, in units of the scene.
 * @param {Places} places @param {number} a @param {number} b @param {number} x @param {number} y
 */
export function distance(places, a, b, x, y) {
  bend(places, a, b);
  const [ax, ay] = [places.xs[a] ?? 0, places.ys[a] ?? 0];
  const [bx, by] = [places.xs[b] ?? 0, places.ys[b] ?? 0];
  const [cx, cy, dx, dy] = control;
  let [beforeX, beforeY, least] = [ax, ay, Infinity];
  for (let step = 1; step <= 12; step += 1) {
    const nextX = along(ax, cx ?? 0, dx ?? 0, bx, step / 12);
    const nextY = along(ay, cy ?? 0, dy ?? 0, by, step / 12);
    const [wide, high] = [nextX - beforeX, nextY - beforeY];
    const part = ((x - beforeX) * wide + (y - beforeY) * high) / (wide * wide + high * high || 1);
    const near = Math.max(0, Math.min(1, part));
    least = Math.min(least, Math.hypot(beforeX + near * wide - x, beforeY + near * high - y));
    [beforeX, beforeY] = [nextX, nextY];
  }
  return least;
}
