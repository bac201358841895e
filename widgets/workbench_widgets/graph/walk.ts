// Walking the graph by keyboard: along edges and among siblings.
import { OUTSIDE } from "./edges.ts";
import type { Picture, PictureBox } from "./picture.ts";

export type Step = "down" | "up" | "left" | "right" | "outer";

/**
 * Where a step leads; null where there is nothing. Down and up follow edges, left and right
 * siblings.
 */
export function walk(picture: Picture, from: PictureBox, step: Step): PictureBox | null {
  switch (step) {
    case "outer":
      return from.parent;
    case "down":
      return from.open ? enter(picture, from, true) : along(picture, from, true);
    case "up":
      return along(picture, from, false);
    case "left":
    case "right":
      return beside(picture, from, step === "right" ? 1 : -1);
  }
}

/**
 * The nearest box at the other end of an edge; at a border the walk goes on outside, into frames
 * inside.
 */
function along(picture: Picture, from: PictureBox, forward: boolean): PictureBox | null {
  for (let box: PictureBox | null = from; box; box = box.parent) {
    const holder: PictureBox | null = box.parent;
    const wiring = picture.wirings.find((known) => known.owner === holder);
    if (!wiring) return null;
    let best: PictureBox | null = null;
    for (const bundle of wiring.placed.bundles) {
      const [near, far] = forward ? [bundle.from, bundle.to] : [bundle.to, bundle.from];
      if (near !== box.item || far === OUTSIDE || far === near) continue;
      const other = picture.box(far);
      if (other && (!best || distance(from, other) < distance(from, best))) best = other;
    }
    if (best) return enter(picture, best, forward);
  }
  return null;
}

/** The first box inside an open frame that the walk comes to. */
function enter(picture: Picture, box: PictureBox, forward: boolean): PictureBox {
  let inner = box;
  while (inner.open) {
    const wiring = picture.wirings.find((known) => known.owner === inner);
    const gate = wiring?.placed.bundles.find(
      (bundle) => (forward ? bundle.from : bundle.to) === OUTSIDE,
    );
    const next = gate && picture.box(forward ? gate.to : gate.from);
    if (!next) break;
    inner = next;
  }
  return inner;
}

/**
 * The next box in the same container: of those at the same height the nearest on that side, else
 * the next in order.
 */
function beside(picture: Picture, from: PictureBox, sign: 1 | -1): PictureBox | null {
  const wiring = picture.wirings.find((known) => known.owner === from.parent);
  if (!wiring) return null;
  const siblings = wiring.placed.parts
    .map((part) => picture.box(part))
    .filter((box): box is PictureBox => box !== null);
  const level = siblings.filter(
    (box) =>
      box !== from &&
      box.y < from.y + from.height &&
      from.y < box.y + box.height &&
      sign * (box.x - from.x) > 0,
  );
  level.sort((a, b) => sign * (a.x - b.x));
  if (level[0]) return level[0];
  return siblings[siblings.indexOf(from) + sign] ?? null;
}

function distance(a: PictureBox, b: PictureBox): number {
  return Math.hypot(a.x + a.width / 2 - b.x - b.width / 2, a.y - b.y);
}

/** What a screen reader says of a box. */
export function spoken(box: PictureBox): string {
  const { model } = box;
  const { document } = model;
  const where = box.parent
    ? ` in ${document.module_path.get(box.parent.index) || box.parent.title}`
    : "";
  if (box.kind === "node") {
    const name = document.name.get(box.index);
    return `${box.title}${name === box.title ? "" : `, ${name}`}, ${box.detail}${where}`;
  }
  return `${box.kind === "fold" ? "Stack" : "Module"} ${box.title}, ${box.detail}, ${box.open ? "open" : "closed"}${where}`;
}
