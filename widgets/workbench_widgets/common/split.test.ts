import { expect, it } from "vitest";
import { makeSplit } from "./split.ts";

const press = (el: Element, key: string) => {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
  el.dispatchEvent(event);
  return event.defaultPrevented;
};

it("the border moves by keyboard, within limits, and says where it is", () => {
  const split = makeSplit("Border", 0.5);
  const border = split.el.querySelector("[role=separator]")!;
  const now = () => Number(border.getAttribute("aria-valuenow"));
  expect(now()).toBe(50);
  expect(press(border, "ArrowRight")).toBe(true);
  expect(now()).toBe(54);
  press(border, "End");
  press(border, "ArrowRight");
  expect(now()).toBe(85);
  press(border, "Home");
  expect(now()).toBe(15);
  press(border, "Enter");
  expect(now()).toBe(50);
  expect(press(border, "ArrowDown")).toBe(false); // side by side: up and down are the page's
});

it("stacked, up and down move it", () => {
  const split = makeSplit("Border");
  const border = split.el.querySelector("[role=separator]")!;
  split.setStacked(true);
  expect(border.getAttribute("aria-orientation")).toBe("horizontal");
  expect(press(border, "ArrowDown")).toBe(true);
  expect(press(border, "ArrowRight")).toBe(false);
});

it("one pane may have all the room", () => {
  const split = makeSplit("Border");
  split.setMode("first");
  expect([split.first.hidden, split.second.hidden]).toEqual([false, true]);
  split.setMode("second");
  expect([split.first.hidden, split.second.hidden]).toEqual([true, false]);
  split.setMode("both");
  expect([split.first.hidden, split.second.hidden]).toEqual([false, false]);
  split.destroy();
});
