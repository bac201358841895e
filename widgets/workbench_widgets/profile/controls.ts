// Starting, watching and stopping a run.
import type { StartRequest } from "../contract.ts";
import { h } from "../common/dom.ts";
import { count, seconds } from "../common/format.ts";
import { button, select } from "../common/toolbar.ts";
import type { ProfileModel } from "./model.ts";

export interface Goal {
  /** Wanted executions; 0 where time limits. */
  readonly repeat: number;
  /** Wanted seconds; 0 where executions limit. */
  readonly seconds: number;
}

/** How much of a run is done, between 0 and 1, by whichever limit is nearer; NaN where none is known. */
export function progressOf(goal: Goal, executions: number, elapsed: number): number {
  const parts = [
    goal.repeat > 0 ? executions / goal.repeat : NaN,
    goal.seconds > 0 ? elapsed / goal.seconds : NaN,
  ].filter((part) => !Number.isNaN(part));
  return parts.length ? Math.min(1, Math.max(...parts)) : NaN;
}

/** What the two fields ask for: empty is no limit. Null where that is no end at all, or no number. */
export function parseGoal(repeat: string, time: string): Goal | null {
  const executions = repeat.trim() === "" ? 0 : Number(repeat);
  const limit = time.trim() === "" ? 0 : Number(time);
  if (!Number.isInteger(executions) || executions < 0 || !Number.isFinite(limit) || limit < 0)
    return null;
  return executions || limit ? { repeat: executions, seconds: limit } : null;
}

export interface ControlsOptions {
  start(request: Omit<StartRequest, "method">): void;
  stop(): void;
}

export class Controls {
  readonly el: HTMLElement;
  private readonly run: HTMLButtonElement;
  private readonly halt: HTMLButtonElement;
  private readonly repeat = field("Executions at most; empty for no limit", "50", "1", "any");
  private readonly time = field("Seconds at most; empty for no limit", "2", "0", "secs");
  private readonly values = h("input", { type: "checkbox" });
  private readonly runtime: HTMLSelectElement;
  private readonly bar = h(
    "div.wb-profile-progress",
    {
      role: "progressbar",
      "aria-label": "Progress of the run",
      "aria-valuemin": 0,
      "aria-valuemax": 100,
    },
    h("span"),
  );
  private readonly text = h("span.wb-profile-progress-text");
  private readonly progress: HTMLElement;
  private readonly options: ControlsOptions;

  constructor(options: ControlsOptions) {
    this.options = options;
    this.run = button("▶ Run", "Run and measure", () => this.start());
    this.run.classList.add("wb-primary");
    this.halt = button(
      "■ Stop",
      "Stop after the execution that is under way; what was measured stays",
      () => options.stop(),
    );
    this.halt.hidden = true;
    this.runtime = select(
      "Runtime",
      [
        { value: "native", text: "Workbench runtime" },
        { value: "executorch", text: "ExecuTorch runtime" },
      ],
      "native",
      () => undefined,
    );
    this.progress = h("span.wb-profile-run", {}, this.bar, this.text);
    this.progress.hidden = true;
    this.el = h(
      "span.wb-toolbar-group.wb-profile-controls",
      { role: "group", "aria-label": "Run" },
      this.run,
      this.halt,
      h("label.wb-label", {}, "×\u00a0", this.repeat),
      h("label.wb-label", {}, this.time, "\u00a0s"),
      h(
        "label.wb-label",
        { title: "Compare what each instruction writes with eager PyTorch" },
        this.values,
        "\u00a0values",
      ),
      this.runtime,
      this.progress,
    );
    for (const input of [this.repeat, this.time]) {
      input.addEventListener("keydown", (event) => {
        if (event.key === "Enter") this.start();
        event.stopPropagation();
      });
      input.addEventListener("input", () => this.check());
    }
  }

  start(): void {
    const goal = this.check();
    if (!goal || this.run.disabled) return;
    const runtime = this.runtime.value === "executorch" ? "executorch" : "native";
    this.options.start({ ...goal, values: this.values.checked, runtime });
  }

  /** Shows whether a run goes on. */
  running(on: boolean): void {
    const focused = document.activeElement;
    this.halt.hidden = !on;
    this.run.hidden = on;
    this.progress.hidden = !on;
    // The focus must not get lost with the button that had it.
    if (focused === this.run && on) this.halt.focus();
    if (focused === this.halt && !on) this.run.focus();
    for (const input of [this.repeat, this.time, this.values, this.runtime]) input.disabled = on;
    if (!on) this.check();
  }

  update(goal: Goal, model: ProfileModel | null): void {
    const executions = model?.executions ?? 0;
    const elapsed = model?.elapsed ?? 0;
    const part = progressOf(goal, executions, elapsed);
    const fill = this.bar.firstElementChild as HTMLElement;
    this.bar.toggleAttribute("data-endless", Number.isNaN(part));
    fill.style.width = Number.isNaN(part) ? "" : `${(100 * part).toFixed(1)}%`;
    if (Number.isNaN(part)) this.bar.removeAttribute("aria-valuenow");
    else this.bar.setAttribute("aria-valuenow", String(Math.round(100 * part)));
    const whole = goal.repeat ? ` of ${count(goal.repeat)}` : "";
    this.text.textContent = `${count(executions)}${whole}, ${seconds(elapsed)}`;
  }

  private check(): Goal | null {
    const goal = parseGoal(this.repeat.value, this.time.value);
    for (const input of [this.repeat, this.time]) input.setAttribute("aria-invalid", String(!goal));
    this.run.disabled = !goal;
    this.run.title = goal ? "Run and measure" : "Give a number of executions, or seconds";
    return goal;
  }
}

function field(label: string, value: string, min: string, placeholder: string): HTMLInputElement {
  return h("input.wb-input.wb-profile-field", {
    type: "number",
    min,
    step: "any",
    value,
    placeholder,
    "aria-label": label,
    title: label,
  });
}
