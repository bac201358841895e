import { afterEach, describe, expect, it } from "vitest";
import type { MemoryChoices, MemoryEdit, MemoryPreview } from "../contract.ts";
import { CallError } from "../common/host.ts";
import { MockHost } from "../common/mock_host.ts";
import { nice } from "./axes.ts";
import type { Chart } from "./chart.ts";
import { Draft, parseBytes, sameChoices } from "./draft.ts";
import { sample, type Row } from "./sample.ts";
import {
  aligned,
  aliveAt,
  extent,
  hit,
  holes,
  liveAt,
  outlineOf,
  overlaps,
  reuse,
  rowsOf,
  snap,
  steps,
} from "./scene.ts";
import { mount } from "./view.ts";

/** Repeatable random numbers (a linear congruential generator, Numerical Recipes' constants). */
function random(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function scattered(seed: number, count = 60): Row[] {
  const draw = random(seed);
  return Array.from({ length: count }, (_, at): Row => {
    const first = draw(40);
    return [`t${at}`, 16 * (1 + draw(20)), first, first + draw(8), 16 * draw(100)];
  });
}

describe("geometry", () => {
  const document = sample();
  const rows = rowsOf(document, document, 1);

  it("orders the rows of an arena by time", () => {
    expect([...rows]).toEqual([0, 1, 2, 3, 4]);
    const other = { arena: [1, 2, 1, 2, 1], offset: document.offset };
    expect([...rowsOf(document, other, 2)]).toEqual([1, 3]);
    expect(extent(document, document, rows)).toBe(192);
  });

  it("steps up and down where tensors come and go", () => {
    const line = steps(document, rows, 16);
    expect([...line.moment]).toEqual([0, 1, 2, 4, 5, 6, 7]);
    expect([...line.bytes]).toEqual([64, 192, 192, 192, 160, 32, 0]);
    expect(liveAt(line, 3)).toBe(192);
    expect(liveAt(line, -1)).toBe(0);
    expect(liveAt(line, 100)).toBe(0);
  });

  it.each([1, 2, 3, 4, 5])("agrees with counting what is alive, moment by moment (%i)", (seed) => {
    const many = sample(scattered(seed));
    const all = rowsOf(many, many, 1);
    const line = steps(many, all, 64);
    for (let moment = 0; moment < many.moments; moment++) {
      const alive = aliveAt(many, all, moment);
      expect(liveAt(line, moment)).toBe(
        alive.reduce((sum, row) => sum + aligned(many.bytes[row]!, 64), 0),
      );
      for (const row of alive)
        expect(many.first[row]! <= moment && moment <= many.last[row]!).toBe(true);
    }
  });

  it("finds the bytes that nobody has at a moment", () => {
    expect(holes(document, document, rows, 3, 192)).toEqual([]);
    expect(holes(document, document, rows, 6, 192)).toEqual([[32, 192]]);
    expect(holes(document, document, rows, 5, 256)).toEqual([
      [32, 64],
      [192, 256],
    ]);
  });

  it.each([1, 2, 3])("has holes and live bytes make up the arena (%i)", (seed) => {
    // Without overlaps in memory: one tensor above the other.
    let top = 0;
    const stacked = scattered(seed).map(([name, size, first, last]): Row => {
      const row: Row = [name, size, first, last, top];
      top += size;
      return row;
    });
    const many = sample(stacked);
    const all = rowsOf(many, many, 1);
    for (let moment = 0; moment < many.moments; moment++) {
      const empty = holes(many, many, all, moment, top).reduce(
        (sum, [from, to]) => sum + to - from,
        0,
      );
      expect(
        empty + aliveAt(many, all, moment).reduce((sum, row) => sum + many.bytes[row]!, 0),
      ).toBe(top);
    }
  });

  it("says who had a tensor's bytes before and has them next", () => {
    expect(reuse(document, document, rows, 2)).toEqual({ before: [0], after: [4], others: 0 });
    expect(reuse(document, document, rows, 3)).toEqual({ before: [1], after: [], others: 0 });
    // Of a chain in the same place, the neighbours; the rest is counted.
    const chain = sample([0, 1, 2, 3, 4].map((at): Row => [`t${at}`, 32, 2 * at, 2 * at + 1, 0]));
    expect(reuse(chain, chain, rowsOf(chain, chain, 1), 2)).toEqual({
      before: [1],
      after: [3],
      others: 2,
    });
  });

  it("finds what is in the way of a tensor at another place", () => {
    expect(overlaps(document, document, 2, 1, 64)).toEqual([1, 3]);
    expect(overlaps(document, document, 2, 1, 192)).toEqual([]);
    expect(overlaps(document, document, 2, 2, 64)).toEqual([]);
    // In use at other times only: free to share.
    expect(overlaps(document, document, 0, 1, 160)).toEqual([1]);
    expect(overlaps(document, document, 4, 1, 192)).toEqual([]);
  });

  it("hits the tensor under the pointer, or the nearest within reach", () => {
    const none = { moments: 0, bytes: 0 };
    expect(hit(document, document, rows, 1.5, 100, none)).toBe(1);
    expect(hit(document, document, rows, 6.5, 10, none)).toBe(4);
    expect(hit(document, document, rows, 6.5, 100, none)).toBe(-1);
    expect(hit(document, document, rows, 6.5, 40, { moments: 0.1, bytes: 10 })).toBe(4);
    expect(hit(document, document, rows, 7.05, 10, { moments: 0.1, bytes: 10 })).toBe(4);
    expect(hit(document, document, rows, 9, 10, { moments: 0.1, bytes: 10 })).toBe(-1);
  });

  it("hits every tensor in its middle", () => {
    let top = 0;
    const many = sample(
      scattered(7).map(([name, size, first, last]): Row => {
        const row: Row = [name, size, first, last, top];
        top += size;
        return row;
      }),
    );
    const all = rowsOf(many, many, 1);
    for (const row of all) {
      const middle = (many.first[row]! + many.last[row]! + 1) / 2;
      expect(
        hit(many, many, all, middle, many.offset[row]! + many.bytes[row]! / 2, {
          moments: 0.01,
          bytes: 1,
        }),
      ).toBe(row);
    }
  });

  it("snaps to the alignment, not below the arena", () => {
    expect(snap(23, 16)).toBe(16);
    expect(snap(24, 16)).toBe(32);
    expect(snap(-100, 16)).toBe(0);
    expect(snap(4097, 4096)).toBe(4096);
    expect(aligned(17, 16)).toBe(32);
  });

  it("draws a dense step line by the most of each pixel", () => {
    const count = 5000;
    const line = {
      moment: Int32Array.from({ length: count }, (_, at) => at),
      bytes: Float64Array.from({ length: count }, (_, at) => (at === 2345 ? 999 : at % 7)),
    };
    const points = outlineOf(line, (moment) => moment / 10, 500);
    expect(points.length).toBeLessThan(1100);
    expect(Math.max(...points.map((point) => point.bytes))).toBe(999);
    for (let at = 1; at < points.length; at++)
      expect(points[at]!.x).toBeGreaterThanOrEqual(points[at - 1]!.x);
    // Zoomed in, its corners are exact.
    const exact = outlineOf({ moment: [0, 2, 3], bytes: [4, 8, 0] }, (moment) => 10 * moment, 100);
    expect(exact).toEqual([
      { x: 0, bytes: 0 },
      { x: 0, bytes: 4 },
      { x: 20, bytes: 4 },
      { x: 20, bytes: 8 },
      { x: 30, bytes: 8 },
      { x: 30, bytes: 0 },
    ]);
  });

  it("has ticks that read well in powers of two", () => {
    expect(nice(1000)).toBe(1024);
    expect(nice(0.2)).toBe(1);
    expect(nice(1025)).toBe(2048);
  });
});

describe("the draft of choices", () => {
  const start: MemoryChoices = {
    planner: "best",
    alignment: 16,
    arena_limits: {},
    arenas: {},
    pins: {},
  };

  it("goes back and forth, and forgets what was undone when something else is chosen", () => {
    let calls = 0;
    const draft = new Draft(start, () => (calls += 1));
    draft.pin("a", { arena: 1, offset: 64 });
    draft.set({ planner: "naive" });
    expect(draft.choices.pins).toEqual({ a: { arena: 1, offset: 64 } });
    draft.undo();
    expect(draft.choices.planner).toBe("best");
    draft.undo();
    expect(draft.choices).toEqual(start);
    expect(draft.canUndo).toBe(false);
    draft.undo();
    draft.redo();
    expect(Object.keys(draft.choices.pins)).toEqual(["a"]);
    draft.unpin("a");
    expect(draft.canRedo).toBe(false);
    expect(sameChoices(draft.choices, start)).toBe(true);
    expect(calls).toBe(6);
    draft.set({ planner: "best" });
    expect(calls).toBe(6);
  });

  it("moves a pin along with its tensor, and takes limits away again", () => {
    const draft = new Draft(start);
    draft.pin("a", { arena: 1, offset: 64 });
    draft.move("a", 2);
    expect(draft.choices).toMatchObject({
      arenas: { a: 2 },
      pins: { a: { arena: 2, offset: 64 } },
    });
    draft.move("a", 1);
    expect(draft.choices).toMatchObject({ arenas: {}, pins: { a: { arena: 1 } } });
    draft.limit(1, 4096);
    expect(draft.choices.arena_limits).toEqual({ "1": 4096 });
    draft.limit(1, null);
    expect(draft.choices.arena_limits).toEqual({});
  });

  it("compares choices whatever their order", () => {
    const [a, b] = [
      { arena: 1, offset: 0 },
      { arena: 1, offset: 16 },
    ];
    expect(sameChoices({ ...start, pins: { a, b } }, { ...start, pins: { b, a } })).toBe(true);
    expect(sameChoices({ ...start, pins: { a } }, { ...start, pins: { a: b } })).toBe(false);
  });

  it("reads sizes as people write them", () => {
    expect(parseBytes("512 KiB")).toBe(524288);
    expect(parseBytes("1,024")).toBe(1024);
    expect(parseBytes("0x40")).toBe(64);
    expect(parseBytes("1.5m")).toBe(1572864);
    expect(parseBytes(" ")).toBe(null);
    expect(parseBytes("many")).toBeNaN();
    expect(parseBytes("-5")).toBeNaN();
    expect(parseBytes("3 parsecs")).toBeNaN();
  });
});

describe("the view", () => {
  const roots: HTMLElement[] = [];
  const ends: (() => void)[] = [];
  const wait = (milliseconds = 0) => new Promise((done) => setTimeout(done, milliseconds));

  afterEach(() => {
    for (const end of ends.splice(0)) end();
    for (const root of roots.splice(0)) root.remove();
  });

  async function open(document = sample(), live = true) {
    const host = new MockHost(
      { "memory:forward": document },
      { methods: ["forward"], method: "forward" },
    );
    host.live = live;
    const root = globalThis.document.createElement("div");
    globalThis.document.body.append(root);
    roots.push(root);
    const view = await mount(host, root);
    ends.push(() => view.destroy());
    return { host, root, view };
  }

  const answer = (after: number): MemoryPreview => ({
    arenas: [{ arena: 1, before: 192, after, lower_bound: 192, limit: null, peak_moment: 1 }],
    before: 192,
    after,
    arena: Int32Array.of(1, 1, 1, 1, 1),
    offset: Float64Array.of(0, 64, 320, 64, 0),
    moved: Uint8Array.of(0, 0, 1, 0, 0),
    milliseconds: 1.5,
  });
  const named = (root: HTMLElement, name: string) =>
    root.querySelector<HTMLButtonElement>(`[aria-label="${name}"]`)!;
  const press = (root: HTMLElement, key: string, init: KeyboardEventInit = {}) =>
    root
      .querySelector("canvas.wb-canvas")!
      .dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...init }));

  it("lists what is alive at the peak, the largest first, and selects from there", async () => {
    const { host, root } = await open();
    const bars = [...root.querySelectorAll<HTMLElement>(".wb-memory-bar")];
    expect(bars.map((bar) => bar.title)).toEqual(["a", "x"]);
    bars[0]!.click();
    expect(host.selection.get()).toEqual({ method: "forward", handles: [20], node: "a" });
    expect(root.querySelector("[aria-label='Chosen tensor'] h4")!.textContent).toBe("a");
  });

  it("follows the selection of other views", async () => {
    const { host, root } = await open();
    host.selection.set({ method: "forward", handles: [40], node: null });
    expect(root.querySelector("[aria-label='Chosen tensor'] h4")!.textContent).toBe("c");
    host.selection.set({ method: "forward", handles: [40, 50], node: null });
    expect(root.textContent).toContain("2 tensors chosen, 160 B");
    host.selection.set({ method: "another", handles: [40], node: null });
    expect(root.querySelector("[aria-label='Chosen tensor']")).toBe(null);
  });

  it("chooses an instruction on the line of live bytes", async () => {
    const { host, root, view } = await open();
    // Nothing has a size here: a pixel to a moment.
    Object.assign((view as unknown as { chart: Chart }).chart.viewport.transform, {
      scale: 1,
      x: 0,
    });
    root
      .querySelector(".wb-memory-strip")!
      .dispatchEvent(new MouseEvent("click", { clientX: 2.5, bubbles: true }));
    expect(host.selection.get()).toEqual({ method: "forward", handles: [30], node: null });
    expect(root.querySelector("[aria-label='Chosen tensor'] h4")!.textContent).toBe("b");
  });

  it("walks by keyboard in the order of time, and lets go with Escape", async () => {
    const { host, root } = await open();
    press(root, ".");
    press(root, ".");
    expect(host.selection.get().node).toBe("a");
    press(root, ",");
    expect(host.selection.get().node).toBe("x");
    press(root, "Escape");
    expect(host.selection.get().handles).toEqual([]);
  });

  it("previews a pin made by keyboard, makes it, and undoes it", async () => {
    const { host, root } = await open();
    host.answers.set("memory.preview", () => answer(384));
    host.answers.set("memory.apply", ({ choices }: MemoryEdit) => {
      host.give("memory:forward", sample(undefined, { choices }));
      host.changed("*");
      return answer(384);
    });
    host.selection.set({ method: "forward", handles: [30], node: "b" });
    expect(named(root, "Plan again").disabled).toBe(true);
    press(root, "p");
    await wait(200);
    expect(host.calls).toEqual([
      {
        name: "memory.preview",
        args: {
          method: "forward",
          choices: {
            planner: "best",
            alignment: 16,
            arena_limits: {},
            arenas: {},
            pins: { b: { arena: 1, offset: 0 } },
          },
        },
      },
    ]);
    expect(root.querySelector("[aria-label=Preview]")!.textContent).toContain(
      "▲ +192 B (+100.0 %)",
    );
    press(root, "ArrowUp", { altKey: true });
    await wait(200);
    // From where the preview has it, one step of the alignment.
    expect(host.calls.at(-1)!.args).toMatchObject({
      choices: { pins: { b: { arena: 1, offset: 336 } } },
    });
    named(root, "Plan again").click();
    await wait(20);
    expect(host.calls.at(-1)!.name).toBe("memory.apply");
    expect(root.querySelector("[aria-label='What changed']")).not.toBe(null);
    named(root, "Undo (Ctrl+Z)").click();
    press(root, "z", { ctrlKey: true });
    await wait(200);
    // Back at the start, which is no longer the plan that holds: a preview again.
    expect(host.calls.at(-1)).toMatchObject({
      name: "memory.preview",
      args: { choices: { pins: {} } },
    });
    expect(root.querySelector("[aria-label=Preview]")).not.toBe(null);
    expect(named(root, "Undo (Ctrl+Z)").disabled).toBe(true);
    expect(named(root, "Redo (Ctrl+Shift+Z)").disabled).toBe(false);
  });

  it("says in the view why there is no such plan", async () => {
    const { host, root } = await open();
    host.answers.set("memory.preview", () => {
      throw new CallError({
        kind: "MemoryPlanError",
        message: "method `forward` does not fit arena 1",
        details: { expected: "at most 64 bytes" },
      });
    });
    const limit = root.querySelector<HTMLInputElement>(".wb-memory-limit")!;
    limit.value = "64";
    limit.dispatchEvent(new Event("change"));
    await wait(200);
    expect(root.querySelector(".wb-error")!.textContent).toContain("does not fit arena 1");
    named(root, "Discard the changes").click();
    await wait(200);
    expect(root.querySelector(".wb-error")).toBe(null);
  });

  it("takes an offset that was typed, and marks one that is none", async () => {
    const { host, root } = await open();
    host.answers.set("memory.preview", () => answer(192));
    host.selection.set({ method: "forward", handles: [30], node: "b" });
    const field = () => root.querySelector<HTMLInputElement>(".wb-memory-offset")!;
    field().value = "somewhere";
    field().dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
    expect(field().getAttribute("aria-invalid")).toBe("true");
    field().value = "1 KiB";
    field().dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
    await wait(200);
    expect(host.calls.at(-1)!.args).toMatchObject({
      choices: { pins: { b: { arena: 1, offset: 1024 } } },
    });
  });

  it("shows a report without a kernel: nothing that needs Python works, and says why", async () => {
    const { host, root } = await open(sample(), false);
    const planner = named(root, "Planner") as unknown as HTMLSelectElement;
    expect(planner.disabled).toBe(true);
    expect(planner.title).toContain("notebook");
    expect(named(root, "Plan again").disabled).toBe(true);
    host.selection.set({ method: "forward", handles: [30], node: "b" });
    press(root, "p");
    await wait(200);
    expect(host.calls).toEqual([]);
  });

  it("has the table of all tensors behind the picture", async () => {
    const { host, root } = await open();
    named(root, "The tensors as a table (T)").click();
    expect(root.querySelector<HTMLElement>(".wb-memory-chart")!.hidden).toBe(true);
    const lines = [...root.querySelectorAll<HTMLElement>("tbody tr[data-row]")];
    expect(lines.length).toBe(5);
    lines[3]!.click();
    expect(host.selection.get()).toMatchObject({ handles: [40], node: "c" });
  });

  it("loads anew what changed, and stops listening when it is closed", async () => {
    const { host, root, view } = await open();
    host.give("memory:forward", sample([["only", 64, 0, 1, 0]]));
    host.changed("*");
    await wait();
    expect(root.textContent).toContain("Alive at the peak: 1");
    view.destroy();
    expect(host.listening).toBe(0);
    expect(root.children.length).toBe(0);
  });
});
