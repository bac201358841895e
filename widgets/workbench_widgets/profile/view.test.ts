import { beforeEach, describe, expect, it, vi } from "vitest";
import { CallError } from "../common/host.ts";
import { barParts, spread } from "./columns.ts";
import { parseGoal, progressOf } from "./controls.ts";
import { columnsOf, outlierLimit } from "./history.ts";
import { ProfileModel } from "./model.ts";
import { pointsOf, rangesOf, scaleOf } from "./points.ts";
import { batchOf, sample, SampleHost, timelineOf } from "./sample.ts";
import { mount, type ProfileHandle } from "./view.ts";

const ROWS = [
  {
    name: "conv",
    operator: "aten::convolution.out",
    module: "stem",
    median: 5,
    p10: 4,
    p90: 7,
    flops: 4e6,
    bytes: 1e5,
    handles: [3],
  },
  {
    name: "mm, add",
    operator: "Demo",
    backend: "Demo",
    module: "body",
    median: 3,
    p10: 3,
    p90: 3,
    handles: [4, 5],
  },
  {
    name: "mm",
    operator: "mm #0",
    backend: "Demo",
    module: "body",
    parent: 1,
    median: 2,
    handles: [4],
  },
  {
    name: "relu",
    operator: "aten::relu.out",
    module: "body",
    median: 1,
    flops: 10,
    bytes: 80,
    handles: [6],
  },
];

describe("bars", () => {
  it("have whiskers from p10 to p90 on the scale of the longest", () => {
    expect(barParts(5, 4, 7, NaN, 10)).toEqual({ fill: 0.5, low: 0.4, high: 0.7, before: 0 });
    expect(barParts(5, 4, 7, 20, 10).before).toBe(1);
    expect(barParts(NaN, NaN, NaN, NaN, 0)).toEqual({ fill: 0, low: 0, high: 0, before: 0 });
  });

  it("tell the spread as a part of the median", () => {
    const model = new ProfileModel(sample(ROWS));
    expect(spread(model, 0)).toBeCloseTo(0.6);
    expect(spread(new ProfileModel(sample([{ name: "a" }])), 0)).toBeNaN();
  });
});

describe("goals", () => {
  it("are executions, seconds or both, but never none", () => {
    expect(parseGoal("50", "2")).toEqual({ repeat: 50, seconds: 2 });
    expect(parseGoal("", "0.5")).toEqual({ repeat: 0, seconds: 0.5 });
    for (const [repeat, time] of [
      ["", ""],
      ["0", "0"],
      ["1.5", ""],
      ["-1", "2"],
      ["x", ""],
    ] as const) {
      expect(parseGoal(repeat, time)).toBeNull();
    }
  });

  it("are reached by whichever comes first", () => {
    expect(progressOf({ repeat: 100, seconds: 10 }, 20, 5)).toBe(0.5);
    expect(progressOf({ repeat: 100, seconds: 0 }, 300, 5)).toBe(1);
    expect(progressOf({ repeat: 0, seconds: 0 }, 1, 1)).toBeNaN();
  });
});

describe("the strip of executions", () => {
  it("shows the slowest of those that share a bar", () => {
    const durations = new Array<number>(1000).fill(1);
    durations[777] = 9;
    const { index, width } = columnsOf(durations, 200);
    expect(index.length).toBe(100);
    expect(width).toBe(2);
    expect(index[77]).toBe(777);
    expect(columnsOf([], 200).index).toEqual([]);
  });

  it("knows outliers by the fast half, which they do not move", () => {
    expect(outlierLimit(10, 9.5)).toBe(15);
    expect(outlierLimit(10, 8)).toBe(20);
  });
});

describe("the roofline's points", () => {
  const model = new ProfileModel(sample(ROWS));

  it("are instructions with work and time, the slowest first", () => {
    expect(pointsOf(model).map((point) => point.row)).toEqual([0, 3]);
  });

  it("are the parts of a delegate where all of them are known, and else its call", () => {
    const rows = ROWS.map((row, at) =>
      at === 1 || at === 2 ? { ...row, flops: 100, bytes: 10 } : row,
    );
    expect(pointsOf(new ProfileModel(sample(rows))).map((point) => point.row)).toEqual([0, 2, 3]);
    const partly = rows.map((row, at) => (at === 2 ? { ...row, flops: NaN } : row));
    expect(pointsOf(new ProfileModel(sample(partly))).map((point) => point.row)).toEqual([0, 1, 3]);
  });

  it("lie in whole decades, with the ridge", () => {
    const { x, y } = rangesOf(pointsOf(model), { gflops: 60, gbytes: 30 });
    expect(x).toEqual([0.1, 100]);
    expect(y[0]).toBeLessThan(1e-5);
    expect(y[1]).toBe(100);
    const scale = scaleOf(x, 0, 300);
    expect(scale(0.1)).toBe(0);
    expect(scale(1)).toBeCloseTo(100);
    expect(scale(100)).toBeCloseTo(300);
  });
});

describe("the view", () => {
  let host: SampleHost;
  let el: HTMLElement;
  let view: ProfileHandle;

  const open = async (document = sample(ROWS), live = true) => {
    host = new SampleHost(live);
    host.documents.set("profile:forward", document);
    host.documents.set(
      "timeline:forward/median",
      timelineOf(
        [
          [0, 0, 5],
          [1, 5, 3],
          [2, 5, 2, true],
          [3, 8, 1],
        ],
        10,
      ),
    );
    el = globalThis.document.createElement("div");
    globalThis.document.body.replaceChildren(el);
    view = await mount(host as never, el);
  };
  const names = () =>
    [...el.querySelectorAll(".wb-profile-name")].map((item) =>
      item.textContent!.replace(/[▸▾]/g, ""),
    );
  const control = <T extends HTMLElement>(label: string) =>
    el.querySelector<T>(`[aria-label^="${label}"]`)!;
  const choose = (label: string, value: string) => {
    const menu = control<HTMLSelectElement>(label);
    menu.value = value;
    menu.dispatchEvent(new Event("change"));
  };
  const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

  beforeEach(() => open());

  it("shows the rows, the slowest first, with the inside of delegates closed", () => {
    expect(names()).toEqual(["conv", "mm, add", "relu"]);
    expect(el.querySelector(".wb-profile-big")!.textContent).toBe("10.0 ms");
    expect(el.querySelectorAll(".wb-profile-whisker").length).toBe(1);
  });

  it("opens a delegate, by pointer and by key", () => {
    el.querySelector<HTMLElement>("button.wb-profile-open")!.click();
    expect(names()).toEqual(["conv", "mm, add", "mm", "relu"]);
    const grid = el.querySelector<HTMLElement>('table[role="treegrid"]')!;
    el.querySelectorAll<HTMLElement>("tbody tr[data-row]")[1]!.click();
    grid.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true }));
    expect(names()).toEqual(["conv", "mm, add", "relu"]);
    grid.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    expect(names()).toHaveLength(4);
  });

  it("groups by module and operator, with sums", () => {
    choose("Group rows by", "module");
    expect(names()).toEqual(["stem 1", "conv", "body 2"]); // what takes more than half is open
    choose("Group rows by", "operator");
    expect(names()).toEqual(["convolution 1", "Demo 1", "relu 1"]);
  });

  it("selects in all views what is picked, and marks what others pick", async () => {
    el.querySelectorAll<HTMLElement>("tbody tr[data-row]")[0]!.click();
    expect(host.picks.at(-1)).toEqual({ method: "forward", handles: [3], node: "conv" });
    el.querySelectorAll<HTMLElement>("tbody tr[data-row]")[2]!.dispatchEvent(
      new MouseEvent("click", { bubbles: true, ctrlKey: true }),
    );
    expect(host.picks.at(-1)).toEqual({ method: "forward", handles: [3, 6], node: null });
    host.selection.set({ method: "forward", handles: [5], node: null });
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const marked = [...el.querySelectorAll('tr[aria-selected="true"]')].map(
      (row) => row.querySelector(".wb-profile-name")!.textContent,
    );
    expect(marked).toEqual(["▸mm, add"]);
  });

  it("runs with what the fields say, fills while it runs, and stops", async () => {
    host.answers.set("profile.start", () => ({
      run: 2,
      method: "forward",
      repeat: 50,
      seconds: 2,
      streams: true,
    }));
    host.answers.set("profile.stop", () => ({ method: "forward" }));
    view.start();
    expect(host.asked).toEqual([
      {
        name: "profile.start",
        args: { method: "forward", repeat: 50, seconds: 2, values: false, runtime: "native" },
      },
    ]);
    await settled();
    expect(control("Stop").hidden).toBe(false);
    host.emit(
      "profile.rows",
      sample(
        ROWS.map(({ name, handles }) => ({ name, handles })),
        { run: 2, state: "running", executions: 0 },
      ),
    );
    expect(el.querySelector(".wb-profile-summary")!.textContent).toContain(
      "first execution is under way",
    );
    host.emit("profile.batch", batchOf([0, 1, 2, 3], { run: 2 }));
    expect(el.querySelector('[role="progressbar"]')!.getAttribute("aria-valuenow")).toBe("25");
    expect(el.querySelector(".wb-profile-summary")!.textContent).toContain("2 executions");
    expect(el.querySelector('tbody tr[data-row="0"]')!.textContent).toContain("1.00 ms");
    control("Stop").click();
    expect(host.asked.at(-1)).toEqual({ name: "profile.stop", args: { method: "forward" } });
    host.emit("profile.ended", { run: 2, document: sample(ROWS, { run: 2, state: "stopped" }) });
    expect(control("Run and").hidden).toBe(false);
    expect(control("Stop").hidden).toBe(true);
    expect(el.querySelector(".wb-profile-summary")!.textContent).toContain("stopped");
  });

  it("keeps lines in place while numbers change", async () => {
    host.emit("profile.rows", sample(ROWS, { run: 2, state: "running", executions: 0 }));
    host.emit("profile.batch", batchOf([0, 1, 2, 3], { run: 2 }));
    const line = el.querySelector("tbody tr[data-row]");
    host.emit("profile.batch", batchOf([0, 1, 2, 3], { run: 2, executions: 4 }));
    expect(el.querySelector("tbody tr[data-row]")).toBe(line);
  });

  it("shows why a run could not begin, and why one failed", async () => {
    host.answers.set("profile.start", () => {
      throw new CallError({
        kind: "ExecutionError",
        message: "a run is under way already",
        details: { hint: "stop it" },
      });
    });
    view.start();
    await settled();
    await settled();
    expect(el.querySelector('[role="alert"]')!.textContent).toContain("a run is under way already");
    expect(control("Run and").hidden).toBe(false);
    const problem = { kind: "ExecutionError", message: "an operator failed", details: {} };
    const bare = ROWS.map(({ name, handles }) => ({ name, handles }));
    host.emit("profile.ended", {
      run: 3,
      document: sample(bare, { run: 3, state: "failed", problem, executions: 0 }),
    });
    expect(el.querySelector('[role="alert"]')!.textContent).toContain("an operator failed");
    expect(el.querySelector(".wb-profile-summary")!.textContent).toContain("The run failed");
    expect(el.querySelectorAll(".wb-profile-fill").length).toBe(0);
  });

  it("asks again when the profile changed", async () => {
    host.documents.set("profile:forward", sample(ROWS.slice(0, 1), { run: 5 }));
    host.changed("profile");
    await settled();
    expect(names()).toEqual(["conv"]);
  });

  it("shows the bar of the run before", async () => {
    await open(sample(ROWS.map((row) => ({ ...row, before: 6 }))));
    expect(el.querySelectorAll(".wb-profile-before").length).toBe(3);
    expect(el.querySelector(".wb-profile-summary")!.textContent).toContain(
      "+11.1 % against 9.00 ms before",
    );
  });

  it("shows the timeline and its table", async () => {
    el.querySelectorAll<HTMLElement>('[role="tab"]')[1]!.click();
    await settled();
    expect(el.textContent).toContain("execution 4, 10.0 ms");
    control("Show the spans").click();
    const rows = [...el.querySelectorAll('table[aria-label^="Spans"] tbody tr[data-row]')];
    expect(rows.map((row) => row.children[0]!.textContent)).toEqual([
      "method",
      "module",
      "module",
      "instruction",
      "instruction",
      "instruction",
      "inside",
    ]);
  });

  it("measures the machine when the roofline is opened, once", async () => {
    host.answers.set("profile.peaks", () => ({ gflops: 100, gbytes: 20, cache_bytes: 1 }));
    const tab = el.querySelectorAll<HTMLElement>('[role="tab"]')[2]!;
    tab.click();
    await settled();
    tab.click();
    await settled();
    expect(host.asked.filter((item) => item.name === "profile.peaks")).toHaveLength(1);
    expect(el.querySelector(".wb-profile-roofline")!.textContent).toContain(
      "100 GFLOP/s, 20 GB/s, ridge at 5",
    );
    choose("Columns", "work");
    expect(el.querySelector('tr[data-row="0"]')!.textContent).toContain("compute");
  });

  it("has no controls of a run in a report", async () => {
    await open(sample(ROWS), false);
    expect(control("Run and")).toBeNull();
    expect(names()).toHaveLength(3);
    const options = [...control<HTMLSelectElement>("Save").options].map((option) => option.value);
    expect(options).toEqual(["", "csv"]);
  });

  it("leaves nothing behind", () => {
    const cancel = vi.spyOn(globalThis, "cancelAnimationFrame");
    expect(host.listeners()).toBeGreaterThan(0);
    view.destroy();
    expect(host.listeners()).toBe(0);
    expect(el.children.length).toBe(0);
    expect(cancel).toHaveBeenCalled();
    cancel.mockRestore();
  });
});
