// Two panes with a border between them that can be moved: by mouse, touch or keyboard.
import "./split.css";
import { h, on } from "./dom.ts";

export type Mode = "first" | "both" | "second";

export interface Split {
  readonly el: HTMLElement;
  readonly first: HTMLElement;
  readonly second: HTMLElement;
  setMode(mode: Mode): void;
  /** Side by side, or one above the other. */
  setStacked(stacked: boolean): void;
  destroy(): void;
}

const LEAST = 0.15;
const STEP = 0.04;

/** `share` is the first pane's part of the room, `label` says what the border divides. */
export function makeSplit(label: string, share = 0.5): Split {
  const first = h("div.wb-pane");
  const second = h("div.wb-pane");
  const border = h("div.wb-split-border", {
    role: "separator",
    tabindex: 0,
    "aria-label": label,
    title: `${label}: drag, or use the arrow keys; Enter puts it back`,
    "aria-valuemin": Math.round(100 * LEAST),
    "aria-valuemax": Math.round(100 * (1 - LEAST)),
  });
  const el = h("div.wb-split", {}, first, border, second);
  let stacked = false;
  let current = share;
  let mode: Mode = "both";

  const arrange = () => {
    first.hidden = mode === "second";
    second.hidden = mode === "first";
    border.hidden = mode !== "both";
    el.classList.toggle("wb-split-stacked", stacked);
    first.style.flex = mode === "both" ? `0 0 calc(${(100 * current).toFixed(2)}% - 4px)` : "1";
    border.setAttribute("aria-orientation", stacked ? "horizontal" : "vertical");
    border.setAttribute("aria-valuenow", String(Math.round(100 * current)));
  };
  const set = (next: number) => {
    current = Math.min(Math.max(next, LEAST), 1 - LEAST);
    arrange();
  };
  let drag: { pointer: number } | null = null;
  const ends = [
    on(border, "pointerdown", (event) => {
      if (event.button !== 0) return;
      drag = { pointer: event.pointerId };
      border.setPointerCapture(event.pointerId);
      event.preventDefault();
      border.focus({ preventScroll: true });
    }),
    on(border, "pointermove", (event) => {
      if (drag?.pointer !== event.pointerId) return;
      const rect = el.getBoundingClientRect();
      set(
        stacked
          ? (event.clientY - rect.top) / rect.height
          : (event.clientX - rect.left) / rect.width,
      );
    }),
    on(border, "pointerup", () => (drag = null)),
    on(border, "pointercancel", () => (drag = null)),
    on(border, "dblclick", () => set(share)),
    on(border, "keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const targets: Readonly<Record<string, number>> = {
        [stacked ? "ArrowUp" : "ArrowLeft"]: current - STEP,
        [stacked ? "ArrowDown" : "ArrowRight"]: current + STEP,
        Home: LEAST,
        End: 1 - LEAST,
        Enter: share,
      };
      const target = targets[event.key];
      if (target === undefined) return;
      set(target);
      event.preventDefault();
      event.stopPropagation();
    }),
  ];
  arrange();
  return {
    el,
    first,
    second,
    setMode(next) {
      mode = next;
      arrange();
    },
    setStacked(next) {
      stacked = next;
      arrange();
    },
    destroy() {
      for (const end of ends) end();
      el.remove();
    },
  };
}
