import { expect, it, vi } from "vitest";
import type { Host } from "./host.ts";
import { MockModel } from "./mock_model.ts";
import { widget } from "./render.ts";

const place = () => document.createElement("div");

it("mounts the view, follows the height, and leaves nothing behind", async () => {
  const model = new MockModel();
  const el = place();
  const destroy = vi.fn();
  const mount = vi.fn((_: Host, parent: HTMLElement) => {
    parent.append("a picture");
    return { destroy };
  });
  const end = await widget(mount).render({ model, el });
  expect(el.textContent).toBe("a picture");
  expect(el.style.getPropertyValue("--wb-height")).toBe("520px");
  model.set("height", 700);
  expect(el.style.getPropertyValue("--wb-height")).toBe("700px");
  end();
  expect(destroy).toHaveBeenCalledOnce();
  expect(el.childNodes.length).toBe(0);
  expect(model.listening).toBe(0);
});

it("shows in place of the view why it can't be mounted", async () => {
  const model = new MockModel();
  const el = place();
  const end = await widget(() => Promise.reject(new Error("no picture today"))).render({
    model,
    el,
  });
  expect(el.querySelector("[role=alert]")?.textContent).toContain("no picture today");
  end();
  expect(model.listening).toBe(0);
});

it("a hundred renderings of one model leave no listener", async () => {
  const model = new MockModel({ family: "hundred" });
  const view = widget((host) => {
    const end = host.selection.subscribe(() => {});
    return { destroy: end };
  });
  for (let turn = 0; turn < 100; turn++) (await view.render({ model, el: place() }))();
  expect(model.listening).toBe(0);
});
