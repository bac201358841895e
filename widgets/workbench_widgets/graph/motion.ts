// Boxes that glide from where they were to where they are.
import type { Box } from "../common/viewport.ts";
import type { GraphModel } from "./model.ts";
import type { Picture, PictureBox } from "./picture.ts";

const DURATION = 260;
/** More boxes than this jump: moving them would stutter. */
const MOST = 1500;

/**
 * Keys by which boxes are the same from stage to stage: of a node its smallest handle, of a module
 * its path.
 */
export function identities(model: GraphModel): (item: number) => string {
  const { handle_start: start, handles, name } = model.document;
  const seen = new Map<string, number>();
  const keys: string[] = [];
  for (let node = 0; node < model.nodes; node++) {
    const own =
      start[node + 1]! > start[node]! ? `h${handles[start[node]!]!}` : `n${name.get(node)}`;
    const count = seen.get(own) ?? 0;
    seen.set(own, count + 1);
    keys.push(count ? `${own}.${count}` : own);
  }
  // What a delegate runs keeps the names of the modules that it was taken from.
  return (item) => (item < model.nodes ? keys[item]! : `m${model.key(item).replace(/^.*!/, "")}`);
}

export interface Places {
  /** Where each thing was, in the world. */
  readonly world: ReadonlyMap<string, Box>;
  /** Where it was within what holds it. */
  readonly within: ReadonlyMap<string, { readonly x: number; readonly y: number }>;
}

/** Where everything is now, for the next picture. */
export function remember(picture: Picture): Places {
  const identity = identities(picture.model);
  const world = new Map<string, Box>();
  const within = new Map<string, { x: number; y: number }>();
  for (const wiring of picture.wirings) {
    const holder = wiring.owner ? identity(wiring.owner.item) : "";
    wiring.placed.parts.forEach((part, at) => {
      const { x, y } = wiring.placed.layout;
      within.set(`${holder}>${identity(part)}`, { x: x[at]!, y: y[at]! });
    });
  }
  for (const { item, x, y, width, height } of picture.boxes)
    world.set(identity(item), { x, y, width, height });
  return { world, within };
}

export interface Motion {
  /** Ends it at once: all boxes are where they belong. */
  finish(): void;
}

/**
 * Moves the boxes of a picture from their places before; `frame` is called for each step, with 1 at
 * the end.
 */
export function glide(
  picture: Picture,
  from: Places,
  frame: (progress: number) => void,
): Motion | null {
  const calm = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches;
  if (calm || picture.boxes.length > MOST) return null;
  const identity = identities(picture.model);
  const moves: { box: PictureBox; start: Box; end: Box }[] = [];
  for (const box of picture.boxes) {
    const end = { x: box.x, y: box.y, width: box.width, height: box.height };
    const before = from.world.get(identity(box.item)) ?? nearest(box, from, identity);
    if (before && differ(before, end)) moves.push({ box, start: before, end });
  }
  if (!moves.length) return null;
  const began = performance.now();
  let request = 0;
  const put = (progress: number) => {
    const eased = 1 - (1 - progress) ** 3;
    for (const { box, start, end } of moves) {
      box.x = start.x + (end.x - start.x) * eased;
      box.y = start.y + (end.y - start.y) * eased;
      box.width = start.width + (end.width - start.width) * eased;
      box.height = start.height + (end.height - start.height) * eased;
    }
    picture.moved();
    frame(progress);
  };
  const step = () => {
    const progress = Math.min(1, (performance.now() - began) / DURATION);
    put(progress);
    request = progress < 1 ? requestAnimationFrame(step) : 0;
  };
  put(0);
  request = requestAnimationFrame(step);
  return {
    finish() {
      if (!request) return;
      cancelAnimationFrame(request);
      request = 0;
      put(1);
    },
  };
}

/** What was not there comes out of what held it. */
function nearest(box: PictureBox, from: Places, identity: (item: number) => string): Box | null {
  for (let above = box.parent; above; above = above.parent) {
    const known = from.world.get(identity(above.item));
    if (known)
      return {
        x: known.x,
        y: known.y,
        width: Math.min(known.width, box.width),
        height: Math.min(known.height, box.height),
      };
  }
  return null;
}

function differ(a: Box, b: Box): boolean {
  return (
    Math.abs(a.x - b.x) +
      Math.abs(a.y - b.y) +
      Math.abs(a.width - b.width) +
      Math.abs(a.height - b.height) >
    0.5
  );
}
