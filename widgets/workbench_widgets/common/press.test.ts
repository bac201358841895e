import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { h } from "./dom.ts";
import { put, watchPresses } from "./press.ts";

let root: HTMLElement;
let pane: HTMLElement;
let end: () => void;
const clicked = vi.fn();
const make = (text: string) => h("button", { onclick: () => clicked(text) }, text);
const pointer = (target: EventTarget, type: string) =>
  target.dispatchEvent(new Event(type, { bubbles: true }));
const later = () => new Promise((resolve) => setTimeout(resolve));

beforeEach(() => {
  clicked.mockClear();
  pane = h("div", {}, make("first"));
  root = h("div.wb-root", {}, pane);
  document.body.append(root);
  end = watchPresses(root);
});
afterEach(() => {
  end();
  root.remove();
});

it("what is pressed stays until its click is through, then the last of what was put comes", async () => {
  const button = pane.querySelector("button")!;
  pointer(button, "pointerdown");
  put(pane, make("second"));
  put(pane, make("third"), "and text");
  expect(pane.firstChild).toBe(button);
  pointer(button, "pointerup");
  button.click(); // the browser sends it right after the release
  expect(clicked).toHaveBeenCalledExactlyOnceWith("first");
  await later();
  expect(pane.textContent).toBe("thirdand text");
});

it("other elements change at once, and everything does where nothing is pressed", async () => {
  const other = h("div");
  root.append(other);
  pointer(pane.firstChild!, "pointerdown");
  put(other, "now");
  expect(other.textContent).toBe("now");
  pointer(window, "pointercancel");
  await later();
  put(pane, "later");
  expect(pane.textContent).toBe("later");
});

it("a press whose release never came does not hold the next one up", () => {
  pointer(pane.firstChild!, "pointerdown");
  put(pane, make("second"));
  pointer(root, "pointerdown");
  expect(pane.textContent).toBe("second");
});

it("nothing is held outside of a view, or after its end", () => {
  const lone = h("div", {}, make("lone"));
  put(lone, "text");
  expect(lone.textContent).toBe("text");
  pointer(pane.firstChild!, "pointerdown");
  end();
  put(pane, "text");
  expect(pane.textContent).toBe("text");
});
