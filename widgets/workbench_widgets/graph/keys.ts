// The keyboard on the canvas. Keys that it takes go no further; Shift with arrows pans, as in all
// canvases.
import type { GraphCore } from "./core.ts";
import type { PictureBox } from "./picture.ts";
import { spoken, walk, type Step } from "./walk.ts";

export interface KeyEvents {
  /** The walk came to a box. */
  walked(box: PictureBox): void;
  /** Enter on a node, Space on anything. */
  pick(box: PictureBox, extend: boolean): void;
  search(): void;
  clear(): void;
  say(text: string): void;
}

const STEPS: Readonly<Record<string, Step>> = {
  ArrowDown: "down",
  ArrowUp: "up",
  ArrowLeft: "left",
  ArrowRight: "right",
  Backspace: "outer",
};

/** Handles a key; tells whether it was one of the walk's. */
export function handleKey(core: GraphCore, event: KeyboardEvent, events: KeyEvents): boolean {
  const { picture } = core;
  if (!picture || event.altKey || event.ctrlKey || event.metaKey) return false;
  const step = STEPS[event.key];
  const here = picture.box(core.cursor);
  if (step && !(event.shiftKey && event.key.startsWith("Arrow"))) {
    const next = here ? walk(picture, here, step) : firstBox(core);
    if (next) goTo(core, next, events);
    else events.say("Nothing further in this direction");
    return true;
  }
  switch (event.key) {
    case "Enter":
      if (!here) return false;
      if (core.model?.isContainer(here.item)) {
        core.toggle(here.item);
        const box = core.picture?.box(here.item);
        if (box) events.say(spoken(box));
      } else {
        events.pick(here, false);
      }
      return true;
    case " ":
      if (!here) return false;
      events.pick(here, event.shiftKey);
      return true;
    case "/":
      events.search();
      return true;
    case "Escape":
      events.clear();
      return true;
    case "Home": {
      const first = picture.boxes.find((box) => !box.open);
      if (first) goTo(core, first, events);
      return true;
    }
    default:
      return false;
  }
}

function goTo(core: GraphCore, box: PictureBox, events: KeyEvents): void {
  core.cursor = box.item;
  core.center([box]);
  core.redraw();
  events.walked(box);
  events.say(spoken(box));
}

/** Where a walk begins: at what is selected, else at the first box in sight. */
function firstBox(core: GraphCore): PictureBox | null {
  const { picture, viewport } = core;
  if (!picture) return null;
  const selected = picture.boxes.find((box) => !box.open && core.selected(box) > 0);
  const sight = viewport.visible();
  return (
    selected ??
    picture.boxesIn(sight).sort((a, b) => a.y - b.y || a.x - b.x)[0] ??
    picture.boxes[0] ??
    null
  );
}
