// Where the time goes: a table that fills while the program runs, a timeline, a roofline.
import "../common/theme.css";
import "./view.css";
import type { Picked, ProfileBatch, ProfileDocument, StartRequest } from "../contract.ts";
import { h } from "../common/dom.ts";
import { clearError, errorBox, showError } from "../common/errors.ts";
import { count, delta, ms, percent } from "../common/format.ts";
import { CallError, matches, type Host } from "../common/host.ts";
import { widget, type Mounted } from "../common/render.ts";
import { HandleIndex } from "../common/selection.ts";
import { spacer, toolbar } from "../common/toolbar.ts";
import { makeTooltip, type Tooltip } from "../common/tooltip.ts";
import { Controls, type Goal } from "./controls.ts";
import { HistoryStrip } from "./history.ts";
import { ProfileModel } from "./model.ts";
import { Pages } from "./pages.ts";

export interface ProfileOptions {
  readonly stage?: string;
  readonly method?: string;
}

export interface ProfileHandle extends Mounted {
  setStage(stage: string, method?: string): Promise<void>;
  /** Runs and measures with what the controls say. */
  start(): void;
}

/** While a run goes on, how many batches pass until the lines are put in order again. */
const RESORT = 8;

class ProfileView implements ProfileHandle {
  private readonly host: Host;
  private readonly frame: HTMLElement;
  private readonly notes = h("div.wb-profile-notes");
  private readonly facts = h("span.wb-legend", { role: "status" });
  private readonly controls: Controls;
  private readonly tooltip: Tooltip;
  private readonly strip: HistoryStrip;
  private readonly pages: Pages;
  private readonly ends: (() => void)[] = [];
  private method: string;
  private model: ProfileModel;
  private index: HandleIndex | null = null;
  private goal: Goal = { repeat: 0, seconds: 0 };
  private batches = 0;
  private local: readonly number[] = [];
  private asked = 0;
  private mine = false;

  constructor(host: Host, el: HTMLElement, method: string, first: ProfileDocument) {
    this.host = host;
    this.method = method;
    this.model = new ProfileModel(first);
    this.tooltip = makeTooltip(el);
    this.controls = new Controls({
      start: (request) => void this.run({ ...request, method: this.method }),
      stop: () => void this.stop(),
    });
    this.pages = new Pages(host, this.model, this.method, {
      tooltip: this.tooltip,
      onPick: (rows, extend) => this.pick(rows, extend),
      onExecution: (execution) => this.strip.mark(execution),
      onError: (error) => showError(this.notes, error),
    });
    this.strip = new HistoryStrip(this.model, this.tooltip, (execution) =>
      this.pages.showExecution(execution),
    );
    const canRun = host.live && host.about.can_run;
    this.frame = h(
      "div.wb-frame.wb-profile",
      {},
      toolbar(
        "Profile",
        canRun ? this.controls.el : null,
        spacer(),
        this.pages.tabs,
        this.pages.exports,
      ),
      h("div.wb-profile-summary", {}, this.facts, this.strip.el),
      this.notes,
      this.pages.el,
    );
    el.append(this.frame);
    this.ends.push(
      host.selection.subscribe((picked) => this.follow(picked)),
      host.onChange((kinds) => {
        if (matches(kinds, "profile")) void this.load();
        if (matches(kinds, "timeline")) this.pages.stale();
      }),
      host.onEvent("profile.started", (event) => {
        this.goal = { repeat: event.repeat, seconds: event.seconds };
      }),
      host.onEvent("profile.rows", (document) => this.show(document)),
      host.onEvent("profile.batch", (batch) => this.take(batch)),
      host.onEvent("profile.ended", (event) => this.show(event.document)),
    );
    this.show(first);
  }

  async setStage(_: string, method?: string): Promise<void> {
    if (!method || method === this.method) return;
    this.method = method;
    await this.load();
  }

  start(): void {
    this.controls.start();
  }

  destroy(): void {
    this.asked = -1;
    for (const end of this.ends) end();
    this.pages.destroy();
    this.strip.destroy();
    this.tooltip.destroy();
    this.frame.remove();
  }

  async load(): Promise<void> {
    const turn = ++this.asked;
    try {
      const document = await this.host.document("profile", this.method);
      if (turn === this.asked) this.show(document);
    } catch (error) {
      if (turn === this.asked) showError(this.notes, error);
    }
  }

  private show(document: ProfileDocument): void {
    if (document.method !== this.method) return;
    const before = this.model;
    // A document that was asked for while the kernel was busy must not hide a newer run.
    if (document.run < before.document.run && before.document.state === "running") return;
    this.model = new ProfileModel(document);
    this.model.peaks ??= before.peaks;
    this.index = new HandleIndex(document.handle_start, document.handles);
    this.batches = 0;
    this.pages.setModel(this.model, this.method);
    this.strip.update(this.model);
    this.controls.running(document.state === "running");
    this.controls.update(this.goal, this.model);
    this.problems(document);
    this.summary();
    this.follow(this.host.selection.get(), false);
  }

  private take(batch: ProfileBatch): void {
    if (!this.model.apply(batch)) return;
    this.batches++;
    this.controls.update(this.goal, this.model);
    this.strip.update(this.model);
    this.pages.refresh(this.batches % RESORT === 1);
    this.summary();
  }

  private async run(request: StartRequest): Promise<void> {
    clearError(this.notes);
    this.controls.running(true);
    this.goal = { repeat: request.repeat, seconds: request.seconds };
    this.controls.update(this.goal, null);
    try {
      const started = await this.host.call("profile.start", request);
      this.goal = { repeat: started.repeat, seconds: started.seconds };
    } catch (error) {
      this.controls.running(this.model.document.state === "running");
      showError(this.notes, error);
    }
  }

  private async stop(): Promise<void> {
    try {
      await this.host.call("profile.stop", { method: this.method });
    } catch (error) {
      showError(this.notes, error);
    }
  }

  private problems(document: ProfileDocument): void {
    if (document.state === "running") {
      clearError(this.notes);
      return;
    }
    const known = this.notes.dataset.run;
    if (known === String(document.run)) return;
    this.notes.dataset.run = String(document.run);
    clearError(this.notes);
    if (document.problem) this.notes.append(errorBox(new CallError(document.problem)));
    if (document.values_problem) this.notes.append(errorBox(new Error(document.values_problem)));
  }

  private summary(): void {
    const { document } = this.model;
    if (!this.model.measured) {
      const hint = this.host.live && this.host.about.can_run ? "Run measures it." : "";
      const words: Readonly<Record<string, string>> = {
        running: "The first execution is under way.",
        failed: "The run failed before an execution was complete.",
        stopped: "The run was stopped before an execution was complete.",
      };
      const text = words[document.state] ?? `Nothing was measured yet. ${hint}`;
      this.facts.replaceChildren(h("span.wb-muted", {}, text));
      return;
    }
    const { median, p10, p90 } = this.model.total();
    const flops = document.flops.reduce(
      (sum, value, row) => (document.parent[row]! < 0 && value > 0 ? sum + value : sum),
      0,
    );
    const before = document.before_median;
    const entries: (string | null)[] = [
      `p10 ${ms(p10)}, p90 ${ms(p90)}`,
      `${count(this.model.executions)} ${this.model.executions === 1 ? "execution" : "executions"}`,
      flops > 0 ? `${(flops / median / 1e6).toPrecision(3)} GFLOP/s` : null,
      before !== null
        ? `${delta(median / before - 1, percent)} against ${ms(before)} before`
        : null,
      document.runtime === "executorch" ? "ExecuTorch runtime" : null,
      document.state === "stopped" ? "stopped" : document.state === "failed" ? "failed" : null,
      this.model.dropped ? `${count(this.model.dropped)} events lost` : null,
    ];
    this.facts.replaceChildren(
      h("span.wb-profile-big", { title: "Median of an execution" }, ms(median)),
      ...entries
        .filter((entry) => entry !== null)
        .map((entry) => h("span.wb-profile-fact", {}, entry)),
    );
  }

  // ---- selection -------------------------------------------------------------------------------------------

  private pick(rows: readonly number[], extend: boolean): void {
    const index = this.index;
    if (!index) return;
    const handles = new Set(extend ? this.host.selection.get().handles : []);
    for (const row of rows) for (const handle of index.handles(row)) handles.add(handle);
    // Rows without handles (moves, jumps) can be marked here, but in no other view.
    this.local = extend ? [...this.local, ...rows] : rows;
    const single =
      rows.length === 1 && !extend && !this.model.inside[rows[0]!]?.length ? rows[0]! : -1;
    const node = single < 0 ? null : this.model.document.name.get(single);
    this.mine = true;
    this.host.selection.set({ method: this.method, handles: [...handles], node });
    this.mine = false;
    this.pages.select(this.local, false);
  }

  private follow(picked: Picked, reveal = true): void {
    if (this.mine || !this.index) return;
    this.local = picked.method === this.method ? this.index.find(picked.handles) : [];
    this.pages.select(this.local, reveal);
  }
}

export async function mount(
  host: Host,
  el: HTMLElement,
  options: ProfileOptions = {},
): Promise<ProfileHandle> {
  const method = options.method ?? host.about.method;
  return new ProfileView(host, el, method, await host.document("profile", method));
}

export default widget((host, el) => mount(host, el));
