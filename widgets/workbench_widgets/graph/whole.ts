// All parts of the view, and how they follow one another.
import { h, on } from "../common/dom.ts";
import { showError } from "../common/errors.ts";
import { matches, type Host } from "../common/host.ts";
import type { Table } from "../common/table.ts";
import { button } from "../common/toolbar.ts";
import { makeTooltip, type Tooltip } from "../common/tooltip.ts";
import type { OverlayColumn } from "../contract.ts";
import type { Engine } from "./arrange.ts";
import { Colors } from "./colors.ts";
import { Controls } from "./controls.ts";
import { copyText, toClipboard, type CopyForm } from "./copy.ts";
import { GraphCore } from "./core.ts";
import { Details } from "./details.ts";
import { Hits } from "./hits.ts";
import { handleKey } from "./keys.ts";
import { Minimap } from "./minimap.ts";
import { makeNodeTable } from "./nodetable.ts";
import type { Picture, PictureBox } from "./picture.ts";
import type { GraphHandle, GraphLayer, GraphOptions, GraphScene, GraphTool } from "./scene.ts";
import { SearchBox } from "./searchbox.ts";
import { GraphSelection } from "./select.ts";
import { tip } from "./tip.ts";

/** Below this width the details pane waits to be asked for. */
const ROOMY = 760;
/** Milliseconds after which a view says that it waits for the kernel. */
const PATIENCE = 300;

export class GraphView implements GraphHandle {
  private first: () => void = () => undefined;
  /** The first picture is there, or the reason why there is none. */
  readonly ready = new Promise<void>((done) => (this.first = done));
  /** Stands in the bar; a view without one may put it where it likes. */
  readonly search: SearchBox;
  private readonly host: Host;
  private readonly frame: HTMLElement;
  private readonly canvas = h("div.wb-graph-canvas");
  private readonly notes = h("div.wb-graph-notes");
  private readonly main = h("div.wb-graph-main", {}, this.notes, this.canvas);
  private readonly live = h("div.wb-visually-hidden", { "aria-live": "polite" });
  private readonly core: GraphCore;
  private readonly selection: GraphSelection;
  private readonly colors: Colors;
  private readonly hits: Hits;
  private readonly tooltip: Tooltip;
  private readonly details: Details | null;
  /** The details were shown or hidden by hand: they no longer follow the width. */
  private chosen = false;
  private readonly controls: Controls | null;
  private readonly minimap: Minimap | null;
  private readonly listeners = new Set<(scene: GraphScene) => void>();
  private readonly ends: (() => void)[] = [];
  private table: Table | null = null;
  private columns: readonly OverlayColumn[] = [];
  private stage: string;
  private method: string;
  private turn = 0;
  /** The module that was picked last: it has no handle of its own to be known by. */
  private module: number | null = null;

  constructor(host: Host, el: HTMLElement, engine: Engine, options: GraphOptions) {
    this.host = host;
    const chrome = options.chrome ?? true;
    const asked = options.stage ?? host.about.stage;
    const known = host.about.stages.map(({ name }) => name).filter((name) => name !== "run");
    this.stage = known.includes(asked) ? asked : (known[known.length - 1] ?? asked);
    this.method = options.method ?? host.about.method;
    this.frame = h("div", { class: chrome ? "wb-frame wb-graph" : "wb-graph wb-graph-bare" });
    el.append(this.frame);
    const roomy = (el.clientWidth || 1000) >= ROOMY;
    this.core = new GraphCore(this.canvas, engine, {
      arranged: (picture) => this.arranged(picture),
      hovered: (box, event) => this.hovered(box, event),
      picked: (box, extend) => this.pick(box, extend),
      painted: () => this.minimap?.paint(),
    });
    this.selection = new GraphSelection(host, this.core, this.method);
    this.colors = new Colors(this.core, options.overlay ?? "kind");
    this.tooltip = makeTooltip(el);
    this.hits = new Hits(
      this.core,
      (text, problem) => {
        this.search.setFound(text, problem);
        if (text) this.say(text);
      },
      (hit) => hit.kind === "node" && this.selection.pickNodes([hit.index], false, hit.index),
    );
    this.search = new SearchBox({
      search: (query, regex) => this.hits.find(query, regex),
      step: (direction) => this.hits.step(direction),
    });
    this.details = chrome
      ? new Details(host, {
          goTo: (node) => this.goTo(node),
          goToStage: (stage, rows) => void this.goToStage(stage, rows),
          copy: (text) => void this.toClipboard(text),
        })
      : null;
    this.controls = chrome ? this.makeControls(roomy) : null;
    this.minimap = chrome ? new Minimap(this.core.viewport, this.core.categories) : null;
    this.build(roomy);
    const observer = new ResizeObserver(() => {
      const wide = el.clientWidth >= ROOMY;
      if (!this.chosen && el.clientWidth && this.details && this.details.el.hidden === wide)
        this.showDetails(wide);
    });
    observer.observe(el);
    this.ends.push(() => observer.disconnect());
    void this.load(false);
    this.ends.push(
      this.selection.onChange((own) => this.selected(own)),
      host.onChange((kinds) => {
        if (matches(kinds, "graph")) void this.load(true);
        else if (matches(kinds, "overlays")) void this.loadOverlays(this.turn);
      }),
      on(this.canvas, "keydown", (event) => this.key(event), { capture: true }),
    );
  }

  // ---- what others use --------------------------------------------------------------------------------------

  get scene(): GraphScene | null {
    return this.core.picture;
  }

  destroy(): void {
    this.turn = -1;
    for (const end of this.ends) end();
    this.selection.destroy();
    this.details?.destroy();
    this.minimap?.destroy();
    this.table?.destroy();
    this.tooltip.destroy();
    this.core.destroy();
    this.listeners.clear();
    this.frame.remove();
  }

  async setStage(stage: string, method?: string): Promise<void> {
    const same = method === undefined || method === this.method;
    if (same && stage === this.stage) return;
    this.stage = stage;
    this.method = method ?? this.method;
    await this.load(same);
  }

  addLayer(layer: GraphLayer): () => void {
    return this.core.addLayer(layer);
  }

  setTool(tool: GraphTool | null): void {
    this.core.setTool(tool);
    this.tooltip.hide();
  }

  redraw(): void {
    this.core.redraw();
  }

  fit(): void {
    this.core.viewport.fit();
  }

  reveal(nodes: Iterable<number>): void {
    this.core.reveal([...nodes]);
  }

  onReady(listener: (scene: GraphScene) => void): () => void {
    this.listeners.add(listener);
    if (this.core.picture) listener(this.core.picture);
    return () => this.listeners.delete(listener);
  }

  /** Gets the graph of the stage and shows it; with `keep` things stay where they were. */
  async load(keep: boolean): Promise<void> {
    const turn = ++this.turn;
    this.controls?.setStage(this.stage, this.method);
    const key = `${this.stage}/${this.method}`;
    // A kernel that runs other cells answers when they are done: until then the graph before stays.
    const asks = this.host.live && !this.host.has("graph", key);
    const wait = setTimeout(() => {
      if (asks && turn === this.turn) this.wait(`Asking the kernel for ${key}…`);
    }, PATIENCE);
    try {
      const document = await this.host.document("graph", key);
      if (turn !== this.turn) return;
      this.notes.replaceChildren();
      this.module = null;
      this.columns = [];
      this.core.show(document, keep);
      this.colors.setColumns([]);
      this.selection.show(this.method);
      this.hits.again();
      if (this.table) this.showTable(true);
      this.offerColors();
    } catch (error) {
      if (turn === this.turn) {
        this.notes.replaceChildren();
        showError(this.notes, error);
      }
      return;
    } finally {
      clearTimeout(wait);
      this.first();
    }
    await this.loadOverlays(turn);
  }

  private wait(text: string): void {
    this.notes.replaceChildren(h("p.wb-busy.wb-graph-wait", { role: "status" }, text));
  }

  private async loadOverlays(turn: number): Promise<void> {
    const key = `${this.stage}/${this.method}`;
    if (!this.host.live && !this.host.has("overlays", key)) return;
    try {
      const { columns } = await this.host.document("overlays", key);
      if (turn !== this.turn) return;
      this.columns = columns;
      this.colors.setColumns(columns);
      this.offerColors();
      if (this.table) this.showTable(true);
    } catch (error) {
      if (turn === this.turn) showError(this.notes, error);
    }
  }

  // ---- putting it together ----------------------------------------------------------------------------------

  private makeControls(details: boolean): Controls {
    return new Controls(this.host, this.stage, this.method, details, this.search, {
      stage: (stage) => void this.setStage(stage),
      method: (method) => void this.setStage(this.stage, method),
      color: (by) => this.colors.choose(by),
      constants: (shown) => this.showConstants(shown),
      table: (shown) => this.showTable(shown),
      details: (shown) => {
        this.chosen = true;
        this.showDetails(shown);
      },
      copy: (form) => void this.copy(form),
    });
  }

  private build(details: boolean): void {
    if (!this.controls) {
      this.frame.append(this.main, this.live);
      return;
    }
    const { viewport } = this.core;
    this.main.append(this.colors.legend.el);
    this.canvas.append(
      h(
        "div.wb-graph-corner",
        { role: "group", "aria-label": "Zoom and modules" },
        button("+", "Zoom in (+)", () => viewport.zoom(1.25)),
        button("−", "Zoom out (-)", () => viewport.zoom(0.8)),
        button("⤢", "Fit all in sight (f)", () => viewport.fit()),
        button("⊞", "Open all modules", () => this.core.openAll()),
        button("⊟", "Close all modules", () => this.core.closeAll()),
      ),
    );
    if (this.minimap) this.canvas.append(this.minimap.el);
    const body = h("div.wb-body", {}, this.main, this.details?.el);
    this.frame.append(this.controls.el, body, this.live);
    this.showDetails(details);
  }

  showOverlay(name: string): void {
    this.colors.choose(name);
    this.offerColors();
  }

  private offerColors(): void {
    this.controls?.setColors(this.colors.options(), this.colors.chosen);
  }

  private showDetails(shown: boolean): void {
    if (this.details) this.details.el.hidden = !shown;
    this.controls?.setDetails(shown);
  }

  private showConstants(shown: boolean): void {
    const document = this.core.model?.document;
    this.core.constants = shown;
    if (!document) return;
    this.core.show(document, true);
    this.colors.refresh();
    this.selection.show(this.method);
  }

  private showTable(shown: boolean): void {
    this.table?.destroy();
    this.table = null;
    this.canvas.hidden = this.colors.legend.el.hidden = shown;
    this.controls?.setTable(shown);
    const document = this.core.model?.document;
    if (!shown || !document) return;
    this.table = makeNodeTable(document, this.columns, {
      onPick: (row, extend) => this.selection.pickNodes([row], extend, row),
      onOpen: (row) => {
        this.showTable(false);
        this.core.reveal([row]);
        this.core.viewport.canvas.focus({ preventScroll: true });
      },
    });
    this.canvas.after(this.table.el);
    this.table.select(this.selection.nodes);
  }

  // ---- following one another --------------------------------------------------------------------------------

  private arranged(picture: Picture): void {
    this.tooltip.hide();
    this.minimap?.show(picture);
    this.colors.apply();
    this.hits.mark();
    for (const listener of [...this.listeners]) listener(picture);
  }

  private hovered(box: PictureBox | null, event: PointerEvent | null): void {
    if (!box || !event) this.tooltip.hide();
    else this.tooltip.show(event.clientX, event.clientY, tip(box, this.colors.overlay));
  }

  private pick(box: PictureBox | null, extend: boolean): void {
    this.module = box && box.kind !== "node" && !extend ? box.item : null;
    const picked = this.host.selection.get();
    this.selection.pick(box, extend);
    // What has no handles of its own, or the same as before, is no change of the selection.
    const node = box?.kind === "node" ? box.index : null;
    const known = picked !== this.host.selection.get();
    if (!known || (node !== null && !this.selection.has(node))) this.describe(node);
  }

  private selected(own: boolean): void {
    if (!own) this.module = null;
    this.table?.select(this.selection.nodes);
    this.describe(null);
  }

  /** Shows what is selected in the pane; or one node, whatever is selected. */
  private describe(node: number | null): void {
    const { model, adjacency } = this.core;
    if (!model || !adjacency || !this.details) return;
    const { nodes } = this.selection;
    const { overlay } = this.colors;
    if (this.module !== null) this.details.showModule(model, this.module, overlay);
    else if (node !== null) this.details.showNode(model, adjacency, node, overlay);
    else if (nodes.length === 1) this.details.showNode(model, adjacency, nodes[0]!, overlay);
    else if (nodes.length) this.details.showMany(model, nodes, `${nodes.length} nodes selected`);
    else this.details.nothing();
  }

  private goTo(node: number): void {
    this.module = null;
    this.core.reveal([node]);
    this.selection.pickNodes([node], false, node);
    this.describe(node);
  }

  private async goToStage(stage: string, rows: readonly number[]): Promise<void> {
    await this.setStage(stage);
    this.core.reveal(rows);
  }

  private key(event: KeyboardEvent): void {
    if (event.target !== this.core.viewport.canvas) return;
    const taken = handleKey(this.core, event, {
      walked: (box) => {
        this.module = box.kind === "node" ? null : box.item;
        this.describe(box.kind === "node" ? box.index : null);
      },
      pick: (box, extend) => this.pick(box, extend),
      search: () => this.search.focus(),
      clear: () => this.pick(null, false),
      say: (text) => this.say(text),
    });
    if (!taken) return;
    event.preventDefault();
    event.stopPropagation();
  }

  private say(text: string): void {
    this.live.textContent = text;
  }

  private async copy(form: CopyForm): Promise<void> {
    const document = this.core.model?.document;
    if (!document) return;
    const names = this.selection.nodes.map((node) => document.name.get(node));
    await this.toClipboard(copyText(form, this.host.selection.get(), names));
  }

  private async toClipboard(text: string): Promise<void> {
    try {
      await toClipboard(text, this.frame);
      this.say("Copied");
    } catch (error) {
      showError(this.notes, error);
    }
  }
}
