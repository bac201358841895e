// All views of one subject: the stages as tabs, the graph at the left, the stage's own view at the right.
import type { About } from "../contract.ts";
import type { Host } from "../common/host.ts";
import { saveFile } from "../common/clipboard.ts";
import { h, on, unique } from "../common/dom.ts";
import { clearError, showError } from "../common/errors.ts";
import { matches } from "../common/host.ts";
import { put } from "../common/press.ts";
import { button, select, spacer, toggle } from "../common/toolbar.ts";
import { differences, relowered } from "./notes.ts";
import { recipeButton, type RecipeButton } from "./recipe.ts";
import { pythonName, reportPython, scoped } from "./scoped.ts";
import { makeSelectionLine, type SelectionLine } from "./selection_line.ts";
import { makeSplit, type Mode, type Split } from "../common/split.ts";
import { makeStageBar, type StageBar } from "./stagebar.ts";
import { graphStage, type Mounted, type PanelView, type Place } from "./places.ts";

export interface PanelOptions {
  readonly views: Readonly<Record<string, PanelView>>;
  readonly places: Readonly<Record<string, Place>>;
}

const NARROW = 700;
const NOTE_MS = 12_000;

interface Slot {
  readonly el: HTMLElement;
  readonly handle: Promise<Mounted | null>;
}

export class Panel {
  /** Resolves when the views that stand there first are complete. */
  readonly ready: Promise<unknown>;
  private readonly host: Host;
  private readonly options: PanelOptions;
  private readonly el: HTMLElement;
  private readonly bar: StageBar;
  private readonly split: Split;
  private readonly whole: HTMLElement;
  private readonly note: HTMLElement;
  private readonly line: SelectionLine;
  private readonly recipe: RecipeButton;
  private readonly modes: Map<Mode, HTMLButtonElement>;
  private readonly modeGroup: HTMLElement;
  private readonly slots = new Map<string, Slot>();
  private readonly ends: (() => void)[] = [];
  private readonly methods: HTMLSelectElement;
  private about: About;
  private stage: string;
  private method: string;
  private mode: Mode = "both";
  private narrow = false;
  private closed = false;
  private timer = 0;
  /** How many changes of the graph's stage are under way. */
  private moving = 0;

  constructor(host: Host, parent: HTMLElement, options: PanelOptions) {
    this.host = host;
    this.options = options;
    this.about = host.about;
    const stages = this.about.stages;
    this.stage = stages.some((s) => s.name === this.about.stage)
      ? this.about.stage
      : (stages[0]?.name ?? "");
    this.method = this.about.method;
    const id = unique("panel");
    this.bar = makeStageBar(stages, this.stage, id, (name) => this.show(name));
    this.split = makeSplit("Border between the graph and the view");
    this.whole = h("div.wb-pane.wb-whole");
    this.note = h("div.wb-panel-note", { role: "status", hidden: true });
    this.line = makeSelectionLine(host, this.graphStage(), pythonName(this.about));
    this.modes = new Map(
      (
        [
          ["first", "Graph", "Only the graph"],
          ["both", "Both", "The graph and the stage's own view"],
          ["second", "View", "Only the stage's own view"],
        ] as const
      ).map(([mode, text, title]) => [mode, button(text, title, () => this.setMode(mode))]),
    );
    this.modeGroup = h(
      "span.wb-modes",
      { role: "group", "aria-label": "Show" },
      ...this.modes.values(),
    );
    this.recipe = recipeButton(host);
    const names = this.about.methods.map((name) => ({ value: name, text: name }));
    this.methods = select("Method", names, this.method, (name) => this.choose(name));
    this.methods.hidden = names.length < 2;
    this.el = this.build(id);
    parent.append(this.el);
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(this.el);
    this.ends.push(
      () => observer.disconnect(),
      host.onChange((kinds) => this.changed(kinds)),
      // A node of another method was picked, in a view or in Python.
      host.selection.subscribe(({ method }) => {
        if (method !== this.method && this.about.methods.includes(method)) this.follow(method);
      }),
      on(this.el, "keydown", (event) => {
        if (
          event.key !== "Escape" ||
          event.defaultPrevented ||
          !host.selection.get().handles.length
        )
          return;
        host.selection.set({ ...host.selection.get(), handles: [], node: null });
        event.preventDefault();
      }),
    );
    this.resize();
    this.show(this.stage);
    this.ready = Promise.all(
      [...this.slots.values()].map(async (slot) => (await slot.handle)?.ready),
    );
  }

  destroy(): void {
    this.closed = true;
    clearTimeout(this.timer);
    for (const end of this.ends) end();
    for (const slot of this.slots.values()) void slot.handle.then((handle) => handle?.destroy());
    this.slots.clear();
    this.line.destroy();
    this.recipe.destroy();
    this.bar.destroy();
    this.split.destroy();
    this.el.remove();
  }

  private build(id: string): HTMLElement {
    const live = this.host.live;
    const run = button("▶ Run", "Run with the example inputs and measure", () => void this.run());
    run.disabled = !live || !this.about.can_run;
    if (!live) run.title = "A report has no kernel to run in";
    const report = button(
      "Report",
      "Save all views as one HTML file",
      () => void this.report(report),
    );
    const tall = toggle("⤢", "As high as the window", false, (on) => {
      this.el.classList.toggle("wb-tall", on);
      if (on) this.el.scrollIntoView({ block: "start" });
    });
    return h(
      "div.wb-frame.wb-panel",
      {},
      h(
        "div.wb-panel-bar",
        {},
        this.bar.el,
        h(
          "div.wb-panel-actions",
          { role: "toolbar", "aria-label": "Workbench" },
          this.methods,
          this.modeGroup,
          spacer(),
          live ? run : null,
          this.recipe.el,
          live ? report : null,
          tall,
        ),
      ),
      this.note,
      h(
        "div.wb-panel-body",
        { id, role: "tabpanel", "aria-labelledby": `${id}-${this.stage}` },
        this.split.el,
        this.whole,
        this.recipe.drawer,
      ),
      this.line.el,
    );
  }

  // ---- what is shown ---------------------------------------------------------------------------------------

  private get place(): Place {
    const place = this.options.places[this.stage] ?? { view: null };
    return place.view === null || this.options.views[place.view] ? place : { view: null };
  }

  private graphStage(): string {
    return graphStage(
      this.stage,
      this.about.stages.map((stage) => stage.name),
    );
  }

  private show(stage: string): void {
    this.stage = stage;
    const { view, alone } = this.place;
    this.split.el.hidden = alone === true;
    this.whole.hidden = alone !== true;
    const wanted = new Set<string>();
    if (!alone && (view === null || this.mode !== "second")) wanted.add("graph");
    if (view !== null && (alone || this.mode !== "first")) wanted.add(view);
    for (const [name, slot] of this.slots) slot.el.hidden = !wanted.has(name);
    for (const name of wanted) this.ensure(name);
    this.arrange();
    this.line.setStage(this.graphStage());
    const body = this.split.el.parentElement;
    body?.setAttribute("aria-labelledby", `${body.id}-${stage}`);
  }

  /** Mounts a view where it is not yet, and tells it the stage. */
  private ensure(name: string): void {
    const stage = name === "graph" ? this.graphStage() : this.stage;
    const known = this.slots.get(name);
    if (known) {
      void known.handle.then((handle) => {
        if (!this.closed && name === "graph" && handle) void this.moveGraph(handle);
      });
      return;
    }
    const parent = this.paneOf(name);
    const el = h("div.wb-slot", { "data-view": name });
    parent.append(el);
    this.slots.set(name, { el, handle: this.mount(name, el, stage, this.method) });
  }

  private paneOf(name: string): HTMLElement {
    if (name === "graph") return this.split.first;
    return this.place.alone ? this.whole : this.split.second;
  }

  private async mount(
    name: string,
    el: HTMLElement,
    stage: string,
    method: string,
  ): Promise<Mounted | null> {
    const view = this.options.views[name];
    if (!view) return null;
    try {
      const handle = await view.mount(scoped(this.host, name, stage, () => this.method), el, { stage, method });
      if (this.closed) {
        handle.destroy();
        return null;
      }
      // The bar may have moved on while the view was made.
      const end = handle.onOverlay?.((overlay) => {
        void this.slots.get("graph")?.handle.then((graph) => graph?.showOverlay?.(overlay));
      });
      if (end) this.ends.push(end);
      if (name === "graph") this.followGraph(handle);
      else if (this.method !== method) void handle.setStage?.(stage, this.method);
      return handle;
    } catch (error) {
      if (!this.closed) this.failed(name, el, error);
      return null;
    }
  }

  /** The graph goes where the bar is. */
  private async moveGraph(handle: Mounted): Promise<void> {
    this.moving += 1;
    try {
      await handle.setStage?.(this.graphStage(), this.method);
    } finally {
      this.moving -= 1;
    }
  }

  /** The bar goes where the graph is, if that went to another stage by itself. */
  private followGraph(handle: Mounted): void {
    const end = handle.onReady?.(({ document: { stage } }) => {
      if (this.closed || this.moving || stage === this.graphStage()) return;
      if (!this.about.stages.some(({ name }) => name === stage)) return;
      this.bar.choose(stage);
      this.show(stage);
    });
    if (end) this.ends.push(end);
    void this.moveGraph(handle);
  }

  private failed(name: string, el: HTMLElement, error: unknown): void {
    const box = showError(el, error);
    const again = button(
      "Try again",
      `Show ${this.options.views[name]?.title ?? name} again`,
      () => {
        el.remove();
        this.slots.delete(name);
        this.show(this.stage);
      },
    );
    box.append(h("div.wb-error-actions", {}, again));
  }

  private setMode(mode: Mode): void {
    this.mode = mode;
    this.show(this.stage);
  }

  private arrange(): void {
    const { view, alone } = this.place;
    this.modeGroup.hidden = view === null || alone === true;
    const mode = view === null ? "first" : this.mode;
    for (const [name, made] of this.modes) made.setAttribute("aria-pressed", String(name === mode));
    const title = view === null ? "View" : (this.options.views[view]?.title ?? "View");
    const second = this.modes.get("second");
    if (second) second.textContent = title;
    this.split.setStacked(this.narrow);
    this.split.setMode(mode);
  }

  private resize(): void {
    const narrow = this.el.clientWidth > 0 && this.el.clientWidth < NARROW;
    this.el.classList.toggle("wb-narrow", narrow);
    if (narrow === this.narrow) return;
    this.narrow = narrow;
    this.arrange();
  }

  /** Another method, by the panel's own choice: nothing of it is selected yet. */
  private choose(method: string): void {
    this.host.selection.set({ method, handles: [], node: null });
    if (this.method !== method) this.follow(method);
  }

  private follow(method: string): void {
    this.method = method;
    this.methods.value = method;
    for (const [name, { handle }] of this.slots) {
      void handle.then((mounted) => {
        if (this.closed || !mounted) return;
        if (name === "graph") void this.moveGraph(mounted);
        else void mounted.setStage?.(this.stageOf(name), method);
      });
    }
  }

  /** The stage beside which a view stands. */
  private stageOf(view: string): string {
    const { places } = this.options;
    if (places[this.stage]?.view === view) return this.stage;
    return Object.keys(places).find((stage) => places[stage]?.view === view) ?? this.stage;
  }

  // ---- what happens ----------------------------------------------------------------------------------------

  private changed(kinds: ReadonlySet<string>): void {
    if (!matches(kinds, "about")) return;
    const before = this.about;
    this.about = this.host.about;
    this.bar.update(this.about.stages, differences(before.stages, this.about.stages));
    if (!this.about.stages.some(({ name }) => name === this.stage)) this.leave();
    if (kinds.has("*")) this.tell(relowered(before, this.about));
  }

  /** The stage that was shown is gone: another recipe has no such step. */
  private leave(): void {
    const first = this.about.stages[0]?.name;
    if (first === undefined) return;
    this.bar.choose(first);
    this.show(first);
  }

  private tell(text: string): void {
    this.note.hidden = false;
    put(
      this.note,
      h("span", {}, text),
      button("×", "Close", () => (this.note.hidden = true)),
    );
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.note.hidden = true), NOTE_MS) as unknown as number;
  }

  /** Goes to the run's stage and starts what stands there. */
  private async run(): Promise<void> {
    this.bar.choose("run");
    if (this.mode === "first") this.mode = "both";
    this.show("run");
    const view = this.options.places.run?.view;
    const handle = view ? await this.slots.get(view)?.handle : null;
    if (!this.closed) void handle?.start?.();
  }

  private async report(made: HTMLButtonElement): Promise<void> {
    made.disabled = true;
    made.setAttribute("aria-busy", "true");
    clearError(this.el);
    try {
      const file = await this.host.call("panel.report", { stage: this.stage, method: this.method });
      saveFile(file.name, file.html, "text/html");
      this.tell(`Saved ${file.name}; in Python: ${reportPython(this.about)}`);
    } catch (error) {
      if (!this.closed) showError(this.el, error);
    } finally {
      made.disabled = false;
      made.removeAttribute("aria-busy");
    }
  }
}
