import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Table, type TableOptions } from "./table.ts";

const NAMES = ["conv", "add", "relu", "mul"];
const TIMES = [3, Number.NaN, 10, 1];

let table: Table;
const picked = vi.fn();
const opened = vi.fn();

function make(options: Partial<TableOptions> = {}): Table {
  table = new Table({
    label: "Nodes",
    rows: NAMES.length,
    columns: [
      { name: "name", title: "Name", text: (row) => NAMES[row] ?? `row ${row}` },
      {
        name: "ms",
        title: "Time",
        numeric: true,
        text: (row) => `${TIMES[row] ?? row} ms`,
        value: (row) => TIMES[row] ?? row,
      },
    ],
    onPick: picked,
    onOpen: opened,
    ...options,
  });
  document.body.append(table.el);
  return table;
}

const grid = () => table.el.querySelector<HTMLTableElement>("table[role=grid]")!;
const lines = () => [...table.el.querySelectorAll<HTMLElement>("tr[data-row]")];
const firstCells = () => lines().map((line) => line.firstElementChild?.textContent);
const heading = (title: string) =>
  [...table.el.querySelectorAll("th")].find((th) => th.textContent?.startsWith(title))!;
const press = (key: string, options: KeyboardEventInit = {}) => {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...options });
  grid().dispatchEvent(event);
  return event;
};
const frame = () => new Promise((resolve) => requestAnimationFrame(() => resolve(undefined)));

beforeEach(() => {
  picked.mockClear();
  opened.mockClear();
});
afterEach(() => table.destroy());

describe("sorting", () => {
  it("a numeric column goes down, up, and back to the order of the rows", () => {
    make();
    heading("Time").querySelector("button")!.click();
    expect(firstCells()).toEqual(["relu", "conv", "mul", "add"]);
    expect(heading("Time").getAttribute("aria-sort")).toBe("descending");
    heading("Time").querySelector("button")!.click();
    expect(firstCells()).toEqual(["mul", "conv", "relu", "add"]); // what is no number stays last
    heading("Time").querySelector("button")!.click();
    expect(firstCells()).toEqual(NAMES);
    expect(heading("Time").getAttribute("aria-sort")).toBe("none");
  });

  it("a column of text goes up first", () => {
    make();
    heading("Name").querySelector("button")!.click();
    expect(firstCells()).toEqual(["add", "conv", "mul", "relu"]);
  });

  it("may be given", () => {
    make({ sort: { column: "ms", descending: true } });
    expect(firstCells()[0]).toBe("relu");
    expect(table.shown()).toEqual([2, 0, 3, 1]);
  });
});

describe("filtering", () => {
  it("keeps the rows with the text in any column, whatever the case", () => {
    make();
    const field = table.el.querySelector("input")!;
    field.value = "MUL";
    field.dispatchEvent(new Event("input"));
    expect(firstCells()).toEqual(["mul"]);
    expect(table.el.querySelector("[role=status]")!.textContent).toBe("1 of 4 rows");
    expect(grid().getAttribute("aria-rowcount")).toBe("2");
    field.value = "10 ms";
    field.dispatchEvent(new Event("input"));
    expect(firstCells()).toEqual(["relu"]);
  });

  it("holds the rows that are exported", () => {
    make({ sort: { column: "ms", descending: true } });
    const field = table.el.querySelector("input")!;
    field.value = "u";
    field.dispatchEvent(new Event("input"));
    expect(table.csv()).toBe("Name,Time\nrelu,10\nmul,1\n");
  });
});

describe("the keyboard", () => {
  it("moves the cursor and picks, in the shown order", () => {
    make({ sort: { column: "ms", descending: true } });
    press("ArrowDown");
    expect(picked).toHaveBeenLastCalledWith(2, false);
    press("ArrowDown", { shiftKey: true });
    expect(picked).toHaveBeenLastCalledWith(0, true);
    press("End");
    expect(picked).toHaveBeenLastCalledWith(1, false);
    press("ArrowDown");
    expect(picked).toHaveBeenLastCalledWith(1, false);
    press("Home");
    expect(picked).toHaveBeenLastCalledWith(2, false);
    press("Enter");
    expect(opened).toHaveBeenCalledExactlyOnceWith(2);
  });

  it("leaves other keys to the page", () => {
    make();
    expect(press("ArrowDown").defaultPrevented).toBe(true);
    expect(press("a").defaultPrevented).toBe(false);
    expect(press("ArrowDown", { altKey: true }).defaultPrevented).toBe(false);
  });

  it("does nothing in an empty table", () => {
    make({ rows: 0 });
    press("ArrowDown");
    press("Enter");
    expect(picked).not.toHaveBeenCalled();
    expect(opened).not.toHaveBeenCalled();
  });
});

describe("the mouse", () => {
  it("picks a row, and extends with Shift or Ctrl", () => {
    make();
    lines()[1]!.firstElementChild!.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    expect(picked).toHaveBeenLastCalledWith(1, false);
    lines()[3]!.dispatchEvent(new MouseEvent("click", { bubbles: true, ctrlKey: true }));
    expect(picked).toHaveBeenLastCalledWith(3, true);
    lines()[3]!.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
    expect(opened).toHaveBeenCalledExactlyOnceWith(3);
  });
});

describe("a row that is pressed", () => {
  const pointer = (target: EventTarget, type: string, x = 10, y = 10) =>
    target.dispatchEvent(
      new PointerEvent(type, { bubbles: true, button: 0, clientX: x, clientY: y }),
    );
  const later = () => new Promise((resolve) => setTimeout(resolve));

  it("stays the same element when the rows are drawn anew, with the same cells", async () => {
    make();
    const [before, cell] = [lines()[1]!, lines()[1]!.firstElementChild];
    table.select([0, 1]);
    await frame();
    expect(lines()[1]).toBe(before);
    expect(before.firstElementChild).toBe(cell);
    expect(before.getAttribute("aria-selected")).toBe("true");
    heading("Time").querySelector("button")!.click();
    expect(lines()[3]).toBe(before);
  });

  it("is chosen where the browser tells of no click, as its cell was drawn anew", async () => {
    make();
    pointer(lines()[2]!.firstElementChild!, "pointerdown");
    table.update({ rows: 3 });
    pointer(window, "pointerup", 11);
    await later();
    expect(picked).toHaveBeenCalledExactlyOnceWith(2, false);
  });

  it("is chosen once where the browser tells of one", async () => {
    make();
    const cell = lines()[2]!.firstElementChild!;
    pointer(cell, "pointerdown");
    pointer(cell, "pointerup");
    cell.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    await later();
    expect(picked).toHaveBeenCalledExactlyOnceWith(2, false);
  });

  it("is not chosen by a drag, by a control in it, or when it is gone", async () => {
    make({ columns: [{ name: "a", title: "A", text: () => "", cell: () => {
      const button = document.createElement("button");
      button.addEventListener("click", (event) => event.stopPropagation());
      return button;
    } }] });
    pointer(lines()[2]!, "pointerdown");
    pointer(window, "pointerup", 90);
    await later();
    const button = lines()[1]!.querySelector("button")!;
    pointer(button, "pointerdown");
    pointer(button, "pointerup");
    button.click();
    await later();
    pointer(lines()[3]!, "pointerdown");
    table.update({ rows: 2 });
    pointer(window, "pointerup");
    await later();
    expect(picked).not.toHaveBeenCalled();
  });

  it("keeps the rows where they are until it is released", async () => {
    make({ rows: 1000 });
    const scroll = table.el.querySelector<HTMLElement>(".wb-table-scroll")!;
    pointer(lines()[2]!, "pointerdown");
    table.select([800]);
    expect(scroll.scrollTop).toBe(0);
    pointer(window, "pointerup");
    await later();
    table.select([800]);
    expect(scroll.scrollTop).toBeGreaterThan(0);
  });
});

describe("rows", () => {
  it("exist only where they are visible", () => {
    make({ rows: 50_000 });
    expect(lines().length).toBeLessThan(60);
    expect(grid().getAttribute("aria-rowcount")).toBe("50001");
    expect(lines()[0]!.getAttribute("aria-rowindex")).toBe("2");
  });

  it("that are selected are marked, also after another order", async () => {
    make();
    table.select([3]);
    await frame();
    const selected = () => lines().filter((line) => line.getAttribute("aria-selected") === "true");
    expect(selected().map((line) => line.dataset.row)).toEqual(["3"]);
    heading("Time").querySelector("button")!.click();
    expect(selected().map((line) => line.dataset.row)).toEqual(["3"]);
    table.update({ rows: 2 });
    expect(selected()).toEqual([]);
    expect(table.shown()).toEqual([0, 1]);
  });

  it("the cursor stays on its row when the order changes", () => {
    make();
    press("ArrowDown"); // conv
    heading("Name").querySelector("button")!.click(); // add, conv, mul, relu
    press("ArrowDown");
    expect(picked).toHaveBeenLastCalledWith(3, false);
  });

  it("are quoted in CSV", () => {
    make({ rows: 1, columns: [{ name: "a", title: 'a,"b"', text: () => "1,\n2" }] });
    expect(table.csv()).toBe('"a,""b"""\n"1,\n2"\n');
  });
});

it("a destroyed table is gone", () => {
  make().destroy();
  expect(document.querySelector(".wb-table")).toBeNull();
});
