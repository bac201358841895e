// The one tooltip of a view, placed beside the pointer and inside the window.
import { h } from "./dom.ts";

export interface Tooltip {
  show(x: number, y: number, content: Node | string): void;
  hide(): void;
  destroy(): void;
}

/** x and y are client coordinates. */
export function makeTooltip(root: HTMLElement): Tooltip {
  const box = h("div.wb-tooltip", { role: "tooltip", hidden: true });
  // Inside the root, so that it has the theme's tokens; fixed, so that nothing clips it.
  root.append(box);
  return {
    show(x, y, content) {
      box.replaceChildren(content);
      box.hidden = false;
      // A transformed ancestor would move what is fixed: measure where 0, 0 is.
      box.style.left = box.style.top = "0px";
      const origin = box.getBoundingClientRect();
      const left = Math.min(x + 14, innerWidth - origin.width - 8);
      const top = y + 18 + origin.height > innerHeight ? y - origin.height - 10 : y + 18;
      box.style.left = `${Math.max(4, left) - origin.left}px`;
      box.style.top = `${Math.max(4, top) - origin.top}px`;
    },
    hide() {
      box.hidden = true;
    },
    destroy() {
      box.remove();
    },
  };
}

/** Names and values as a definition list. */
export function facts(entries: Iterable<readonly [string, string | Node | null | undefined]>): HTMLElement {
  const list = h("dl.wb-facts");
  for (const [name, value] of entries) {
    if (value === null || value === undefined || value === "") continue;
    list.append(h("dt", {}, name), h("dd", {}, value));
  }
  return list;
}
