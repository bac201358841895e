import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Viewport, type ViewportOptions } from "./viewport.ts";

const EXTENT = { x: 0, y: 0, width: 1000, height: 500 };
let parent: HTMLElement;
let viewport: Viewport;

function make(options: Partial<ViewportOptions> = {}): Viewport {
  viewport = new Viewport(parent, {
    draw: () => {},
    extent: () => EXTENT,
    label: "A picture",
    ...options,
  });
  return viewport;
}

const press = (key: string, options: KeyboardEventInit = {}) => {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...options });
  viewport.canvas.dispatchEvent(event);
  return event;
};
const wheel = (options: { ctrlKey?: boolean }) => {
  const event = new WheelEvent("wheel", { deltaY: -100, bubbles: true, cancelable: true });
  // This DOM's wheel events know no modifiers.
  Object.defineProperty(event, "ctrlKey", { value: options.ctrlKey ?? false });
  viewport.canvas.dispatchEvent(event);
  return event;
};

beforeEach(() => {
  parent = document.createElement("div");
  Object.defineProperty(parent, "clientWidth", { value: 532, configurable: true });
  Object.defineProperty(parent, "clientHeight", { value: 432, configurable: true });
  document.body.append(parent);
});
afterEach(() => {
  viewport.destroy();
  parent.remove();
});

describe("a viewport", () => {
  it("begins with all of the world in its middle", () => {
    make();
    expect(viewport.transform.scale).toBeCloseTo(0.5); // 500 of 1000, with 16 pixels around
    expect(viewport.transform.x).toBeCloseTo(16);
    expect(viewport.transform.y).toBeCloseTo((432 - 250) / 2);
    expect(viewport.canvas.getAttribute("aria-label")).toBe("A picture");
    expect(viewport.canvas.tabIndex).toBe(0);
  });

  it("zooms about the point under the pointer", () => {
    make();
    const before = viewport.world({ clientX: 100, clientY: 150 });
    viewport.zoom(2, 100, 150);
    const after = viewport.world({ clientX: 100, clientY: 150 });
    expect(viewport.transform.scale).toBeCloseTo(1);
    expect(after.x).toBeCloseTo(before.x);
    expect(after.y).toBeCloseTo(before.y);
    expect(viewport.client(after.x, after.y)).toEqual({
      x: expect.closeTo(100),
      y: expect.closeTo(150),
    });
  });

  it("zooms within limits", () => {
    make({ minScale: 0.25, maxScale: 2 });
    viewport.zoom(1000);
    expect(viewport.transform.scale).toBe(2);
    viewport.zoom(1e-6);
    expect(viewport.transform.scale).toBe(0.25);
  });

  it("keeps a piece of the world in sight", () => {
    make();
    viewport.pan(1e6, 1e6);
    const right = viewport.visible();
    expect(right.x + right.width).toBeGreaterThan(EXTENT.x);
    viewport.pan(-1e7, -1e7);
    const left = viewport.visible();
    expect(left.x).toBeLessThan(EXTENT.width);
    expect(left.y).toBeLessThan(EXTENT.height);
  });

  it("reveals a box with as little movement as it takes", () => {
    make();
    viewport.zoom(4);
    const box = { x: 900, y: 450, width: 20, height: 10 };
    viewport.reveal(box);
    const seen = viewport.visible();
    expect(seen.x).toBeLessThanOrEqual(box.x);
    expect(seen.x + seen.width).toBeGreaterThanOrEqual(box.x + box.width);
    expect(seen.y + seen.height).toBeGreaterThanOrEqual(box.y + box.height);
    const { x, y } = viewport.transform;
    viewport.reveal(box);
    expect(viewport.transform).toMatchObject({ x, y });
  });

  it("that is horizontal zooms in one direction", () => {
    make({ horizontal: true, extent: () => ({ ...EXTENT, height: 100 }) });
    viewport.zoom(3);
    expect(viewport.visible().height).toBe(432);
    expect(viewport.transform.y).toBe(0);
  });
});

describe("keys", () => {
  it("pan, zoom and fit, and go no further", () => {
    make();
    const { x } = viewport.transform;
    const outer = vi.fn();
    parent.addEventListener("keydown", outer);
    expect(press("ArrowLeft").defaultPrevented).toBe(true);
    expect(viewport.transform.x).toBe(x + 40);
    press("ArrowRight", { shiftKey: true });
    expect(viewport.transform.x).toBe(x - 120);
    press("+");
    expect(viewport.transform.scale).toBeCloseTo(0.625);
    press("f");
    expect(viewport.transform.scale).toBeCloseTo(0.5);
    expect(outer).not.toHaveBeenCalled();
  });

  it("with Ctrl, and all others, are the page's", () => {
    make();
    const { x } = viewport.transform;
    expect(press("ArrowLeft", { ctrlKey: true }).defaultPrevented).toBe(false);
    expect(press("q").defaultPrevented).toBe(false);
    expect(viewport.transform.x).toBe(x);
  });
});

describe("the wheel", () => {
  it("scrolls the page over a view that has no focus", () => {
    make();
    expect(wheel({}).defaultPrevented).toBe(false);
    expect(viewport.transform.scale).toBeCloseTo(0.5);
  });

  it("zooms with Ctrl, or with the focus", () => {
    make();
    expect(wheel({ ctrlKey: true }).defaultPrevented).toBe(true);
    const once = viewport.transform.scale;
    expect(once).toBeGreaterThan(0.5);
    viewport.canvas.focus();
    expect(wheel({}).defaultPrevented).toBe(true);
    expect(viewport.transform.scale).toBeGreaterThan(once);
  });
});

it("a destroyed viewport hears nothing more", () => {
  make();
  const { canvas } = viewport;
  viewport.destroy();
  expect(canvas.isConnected).toBe(false);
  const { x } = viewport.transform;
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }));
  expect(viewport.transform.x).toBe(x);
});
