import { describe, expect, it, vi } from "vitest";
import { h, on, svg, throttled, unique } from "./dom.ts";

describe("elements", () => {
  it("have classes, attributes, listeners and children", () => {
    const pressed = vi.fn();
    const made = h(
      "button.wb-button.wb-primary",
      { type: "button", title: "Go", disabled: false, hidden: null, tabindex: 0, onclick: pressed },
      "Go ",
      3,
      null,
      undefined,
      false,
      h("b", {}, "!"),
    );
    expect(made.outerHTML).toBe(
      '<button class="wb-button wb-primary" type="button" title="Go" tabindex="0">Go 3<b>!</b></button>',
    );
    made.click();
    expect(pressed).toHaveBeenCalledOnce();
  });

  it("take text as text", () => {
    expect(h("p", {}, "<b>no</b>").innerHTML).toBe("&lt;b&gt;no&lt;/b&gt;");
  });

  it("of SVG have their namespace", () => {
    expect(svg("rect", { width: 3 }).namespaceURI).toBe("http://www.w3.org/2000/svg");
  });
});

it("a listener can be ended", () => {
  const heard = vi.fn();
  const el = h("div");
  const end = on(el, "click", heard);
  el.click();
  end();
  el.click();
  expect(heard).toHaveBeenCalledOnce();
});

it("throttled work is done once a frame, and not after it was called off", async () => {
  const work = vi.fn();
  const request = throttled(work);
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  request();
  request();
  await frame();
  expect(work).toHaveBeenCalledOnce();
  request();
  request.cancel();
  await frame();
  expect(work).toHaveBeenCalledOnce();
});

it("identifiers are unique", () => {
  expect(new Set(Array.from({ length: 50 }, () => unique("panel"))).size).toBe(50);
});
