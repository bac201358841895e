// A strip with the duration of each execution: outliers and drift at a glance.
import { h, on, throttled } from "../common/dom.ts";
import { ms } from "../common/format.ts";
import { readTheme, watchTheme } from "../common/theme.ts";
import type { Tooltip } from "../common/tooltip.ts";
import type { ProfileModel } from "./model.ts";

/** The bars of a strip: for each column of pixels the slowest execution in it. */
export interface Columns {
  /** Index of the execution that each bar shows. */
  readonly index: readonly number[];
  readonly width: number;
}

export function columnsOf(durations: ArrayLike<number>, width: number, narrowest = 2): Columns {
  const most = Math.max(1, Math.floor(width / narrowest));
  const columns = Math.min(durations.length, most);
  const index: number[] = [];
  for (let column = 0; column < columns; column++) {
    const first = Math.floor((column * durations.length) / columns);
    const last = Math.floor(((column + 1) * durations.length) / columns);
    let best = first;
    for (let at = first + 1; at < last; at++) if (durations[at]! > durations[best]!) best = at;
    index.push(best);
  }
  return { index, width: columns ? Math.min(width / columns, 24) : 0 };
}

/** From where on an execution counts as an outlier. By the fast side: outliers themselves widen the slow one. */
export function outlierLimit(median: number, p10: number): number {
  return median + Math.max(5 * (median - p10), 0.5 * median);
}

export class HistoryStrip {
  readonly el: HTMLElement;
  private readonly canvas = document.createElement("canvas");
  private readonly request = throttled(() => this.paint());
  private readonly ends: (() => void)[] = [];
  private readonly observer: ResizeObserver;
  private readonly tooltip: Tooltip;
  private readonly onPick: (execution: number) => void;
  private model: ProfileModel;
  private columns: Columns = { index: [], width: 0 };
  private cursor = -1;
  private chosen = -1;

  constructor(model: ProfileModel, tooltip: Tooltip, onPick: (execution: number) => void) {
    this.model = model;
    this.tooltip = tooltip;
    this.onPick = onPick;
    this.el = h(
      "div.wb-profile-history",
      {
        role: "slider",
        tabindex: 0,
        "aria-label": "Duration of each execution; Enter shows one in the timeline",
        "aria-valuemin": 0,
      },
      this.canvas,
    );
    this.observer = new ResizeObserver(() => this.request());
    this.observer.observe(this.el);
    this.ends.push(
      watchTheme(() => this.request()),
      on(this.el, "pointermove", (event) => this.hover(event)),
      on(this.el, "pointerleave", () => this.tooltip.hide()),
      on(this.el, "click", (event) => this.open(this.at(event))),
      on(this.el, "keydown", (event) => this.key(event)),
    );
  }

  update(model: ProfileModel): void {
    this.model = model;
    this.request();
  }

  /** Marks the execution that the timeline shows. */
  mark(execution: number): void {
    this.chosen = execution;
    this.request();
  }

  destroy(): void {
    this.request.cancel();
    this.observer.disconnect();
    for (const end of this.ends) end();
    this.el.remove();
  }

  private at(event: MouseEvent): number {
    const { left } = this.el.getBoundingClientRect();
    const column = Math.floor((event.clientX - left) / (this.columns.width || 1));
    return column < this.columns.index.length ? column : -1;
  }

  private hover(event: MouseEvent): void {
    const index = this.columns.index[this.at(event)];
    if (index === undefined) this.tooltip.hide();
    else this.tooltip.show(event.clientX, event.clientY, this.text(index));
  }

  private text(index: number): string {
    const number = this.model.historyExecution[index]!;
    const slow = this.model.history[index]! > this.limit() ? ", an outlier" : "";
    return `execution ${number.toLocaleString("en-US")}: ${ms(this.model.history[index]!)}${slow}`;
  }

  private limit(): number {
    const { median, p10 } = this.model.total();
    return outlierLimit(median, p10);
  }

  private open(column: number): void {
    const index = this.columns.index[column];
    if (index === undefined) return;
    this.cursor = column;
    this.onPick(this.model.historyExecution[index]!);
  }

  private key(event: KeyboardEvent): void {
    const last = this.columns.index.length - 1;
    const targets: Readonly<Record<string, number>> = {
      ArrowLeft: this.cursor - 1,
      ArrowRight: this.cursor + 1,
      Home: 0,
      End: last,
    };
    const target = targets[event.key];
    if (last < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    if (target !== undefined) {
      this.cursor = Math.min(Math.max(target, 0), last);
      const index = this.columns.index[this.cursor]!;
      this.el.setAttribute("aria-valuenow", String(this.model.historyExecution[index]!));
      this.el.setAttribute("aria-valuetext", this.text(index));
      const rect = this.el.getBoundingClientRect();
      this.tooltip.show(
        rect.left + this.cursor * this.columns.width,
        rect.bottom - 8,
        this.text(index),
      );
      this.request();
    } else if (event.key === "Enter") {
      this.open(this.cursor);
    } else if (event.key === "Escape") {
      this.tooltip.hide();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private paint(): void {
    const { clientWidth: width, clientHeight: height } = this.el;
    const pen = this.canvas.getContext("2d");
    if (!pen || !width || !height) return;
    const ratio = Math.min(globalThis.devicePixelRatio || 1, 2);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const theme = readTheme(this.el);
    const { history, historyExecution } = this.model;
    this.columns = columnsOf(history, width);
    this.el.setAttribute("aria-valuemax", String(historyExecution[history.length - 1] ?? 0));
    const { median } = this.model.total();
    const limit = this.limit();
    // One wild outlier must not make all others flat: what is beyond is cut, and marked.
    const top = Math.min(
      Math.max(0, ...this.columns.index.map((at) => history[at]!)),
      Math.max(2.5 * median, 1.1 * limit),
    );
    const room = height - 5;
    const gap = this.columns.width >= 4 ? 1 : 0;
    this.columns.index.forEach((at, column) => {
      const value = history[at]!;
      const size = Math.max(1, (Math.min(value, top) / (top || 1)) * room);
      const slow = value > limit;
      pen.fillStyle = slow ? theme.warn : theme.accent;
      pen.globalAlpha = historyExecution[at] === this.chosen || column === this.cursor ? 1 : 0.6;
      const x = column * this.columns.width;
      pen.fillRect(x, height - size, this.columns.width - gap, size);
      if (value > top) {
        // A gap below the top: the bar goes on.
        pen.clearRect(x, 7, this.columns.width, 2);
      }
      if (historyExecution[at] === this.chosen) {
        pen.globalAlpha = 1;
        pen.fillStyle = theme.text;
        pen.beginPath();
        const middle = x + this.columns.width / 2;
        pen.moveTo(middle - 4, 0);
        pen.lineTo(middle + 4, 0);
        pen.lineTo(middle, 5);
        pen.fill();
      }
    });
    pen.globalAlpha = 1;
    if (median > 0 && top > 0) {
      pen.strokeStyle = theme.text;
      pen.setLineDash([3, 3]);
      pen.beginPath();
      const y = Math.round(height - (median / top) * room) + 0.5;
      pen.moveTo(0, y);
      pen.lineTo(width, y);
      pen.stroke();
      pen.setLineDash([]);
    }
  }
}
