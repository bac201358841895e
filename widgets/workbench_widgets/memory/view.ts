// Where each tensor lives, and when; pins, planners and limits to try before they are made.
import "../common/theme.css";
import "./view.css";
import type { MemoryDocument } from "../contract.ts";
import { copyText } from "../common/clipboard.ts";
import { h, on } from "../common/dom.ts";
import { clearError, showError } from "../common/errors.ts";
import { bytes, count } from "../common/format.ts";
import { matches, type Host } from "../common/host.ts";
import { put } from "../common/press.ts";
import { widget, type Mounted } from "../common/render.ts";
import { Table } from "../common/table.ts";
import { facts, makeTooltip, type Tooltip } from "../common/tooltip.ts";
import { Chart } from "./chart.ts";
import { legend, tensorColumns } from "./columns.ts";
import { Controls } from "./controls.ts";
import { Picks } from "./picks.ts";
import { Planner } from "./planner.ts";
import { overlaps, rowsOf, type Places } from "./scene.ts";
import { about, change, chosen, peakList, summary } from "./side.ts";

export interface MemoryOptions {
  readonly stage?: string;
  readonly method?: string;
}

export interface MemoryHandle extends Mounted {
  setStage(stage: string, method?: string): Promise<void>;
}

class MemoryView implements MemoryHandle {
  private readonly host: Host;
  private readonly frame: HTMLElement;
  private readonly notes = h("div.wb-memory-notes");
  private readonly side = h("div.wb-side", { tabindex: -1, "aria-label": "Details" });
  private readonly foot = h("div.wb-memory-foot", { role: "status" });
  private readonly picture: HTMLElement;
  private readonly controls: Controls;
  private readonly chart: Chart;
  private readonly tooltip: Tooltip;
  private readonly ends: (() => void)[] = [];
  private method: string;
  private document: MemoryDocument | null = null;
  private picks: Picks | null = null;
  private arena = 1;
  private sorted: { places: Places | null; rows: Map<number, Int32Array> } = {
    places: null,
    rows: new Map(),
  };
  private planner: Planner | null = null;
  private conflicts: number[] = [];
  private table: Table | null = null;
  private gathered = 0;

  constructor(host: Host, el: HTMLElement, method: string) {
    this.host = host;
    this.method = method;
    this.controls = new Controls({
      method: (name) => void this.load(name),
      arena: (arena) => this.showArena(arena),
      planner: (planner) => this.planner?.draft.set({ planner }),
      alignment: (alignment) => this.planner?.draft.set({ alignment }),
      limit: (limit) => this.planner?.draft.limit(this.arena, limit),
      undo: () => this.planner?.draft.undo(),
      redo: () => this.planner?.draft.redo(),
      apply: () => void this.planner?.apply(),
      reset: () => this.planner?.reset(),
      copy: () => void this.copy(),
      fit: () => this.chart.fit(),
      table: (shown) => this.toggleTable(shown),
    });
    this.picture = h("div.wb-body");
    this.frame = h(
      "div.wb-frame.wb-memory",
      {},
      this.controls.el,
      this.notes,
      this.picture,
      this.foot,
    );
    el.append(this.frame);
    this.tooltip = makeTooltip(this.frame);
    this.chart = new Chart(this.picture, {
      hover: (row, event) => this.hover(row, event),
      pick: (row, extend) => this.pick(row, extend),
      pickMoment: (moment) => this.picks?.chooseMoment(moment),
      drag: (row, offset, done) => this.dragged(row, offset, done),
      canDrag: () => host.live && this.document !== null,
      gathered: (number) => {
        if (number !== this.gathered) {
          this.gathered = number;
          this.footer();
        }
      },
    });
    this.picture.append(this.side);
    this.ends.push(
      host.selection.subscribe(() => this.selected()),
      host.onChange((kinds) => {
        if (matches(kinds, "memory")) void this.load(this.method);
      }),
      on(this.frame, "keydown", (event) => this.key(event)),
    );
  }

  async load(method: string): Promise<void> {
    this.method = method;
    try {
      const document = await this.host.document("memory", method);
      if (this.method === method) this.take(document);
    } catch (error) {
      showError(this.notes, error);
    }
  }

  async setStage(_: string, method?: string): Promise<void> {
    if (method !== undefined && method !== this.method) await this.load(method);
  }

  destroy(): void {
    this.planner?.destroy();
    for (const end of this.ends) end();
    this.table?.destroy();
    this.chart.destroy();
    this.tooltip.destroy();
    this.frame.remove();
  }

  private take(document: MemoryDocument): void {
    const again = this.document?.method === document.method;
    this.document = document;
    this.picks = new Picks(this.host, document);
    this.conflicts = [];
    if (this.planner) this.planner.take(document);
    else {
      this.planner = new Planner(this.host, document, {
        changed: () => this.update(),
        failed: (error) => (error === null ? clearError(this.notes) : showError(this.notes, error)),
        made: () => this.load(this.method),
      });
    }
    const arenas = document.arenas.map((item) => item.arena);
    if (!arenas.includes(this.arena)) this.arena = arenas[0] ?? 1;
    this.table?.update({ columns: tensorColumns(document), rows: document.name.length });
    clearError(this.notes);
    this.update(!again);
  }

  // ---- what is shown ---------------------------------------------------------------------------------------

  private places(): Places {
    return this.planner?.preview ?? this.document!;
  }

  private rows(): Set<number> {
    return this.picks?.rows() ?? new Set();
  }

  /** Rows of an arena by time; sorted anew only when the places change. */
  private inArena(arena: number): Int32Array {
    const places = this.places();
    if (this.sorted.places !== places) this.sorted = { places, rows: new Map() };
    let known = this.sorted.rows.get(arena);
    if (!known) this.sorted.rows.set(arena, (known = rowsOf(this.document!, places, arena)));
    return known;
  }

  private pinned(): Set<number> {
    return new Set(
      Object.keys(this.planner?.draft.choices.pins ?? {}).flatMap(
        (name) => this.picks?.named(name) ?? [],
      ),
    );
  }

  private update(fit = false): void {
    const { document, planner } = this;
    if (!document || !planner) return;
    const { draft, preview } = planner;
    const places = this.places();
    const known = document.arenas.find((item) => item.arena === this.arena);
    const next = preview?.arenas.find((item) => item.arena === this.arena);
    const selected = this.rows();
    const arenas = [
      ...new Set([...document.arenas, ...(preview?.arenas ?? [])].map((item) => item.arena)),
    ];
    this.controls.update({
      methods: this.host.about.methods,
      document,
      arenas: arenas.sort((a, b) => a - b),
      arena: this.arena,
      choices: draft.choices,
      live: this.host.live,
      busy: planner.busy,
      dirty: planner.dirty,
      canUndo: draft.canUndo,
      canRedo: draft.canRedo,
    });
    this.chart.show(
      {
        document,
        places,
        before: preview ? document : null,
        moved: preview?.moved ?? null,
        arena: this.arena,
        size: next?.after ?? known?.size ?? 0,
        sizeBefore: preview ? (known?.size ?? 0) : 0,
        peak: next?.peak_moment ?? known?.peak_moment ?? 0,
        lowerBound: next?.lower_bound ?? known?.lower_bound ?? 0,
        limit: draft.choices.arena_limits[String(this.arena)] ?? null,
        alignment: draft.choices.alignment,
        pins: this.pinned(),
        selected,
        conflicts: new Set(this.conflicts),
      },
      fit,
    );
    this.details(selected);
    this.table?.select(selected);
    this.footer();
  }

  private details(selected: ReadonlySet<number>): void {
    const { document, planner } = this;
    if (!document || !planner) return;
    const { draft, preview } = planner;
    const places = this.places();
    const arena = document.arenas.find((item) => item.arena === this.arena);
    const rows = this.inArena(this.arena);
    const peak =
      preview?.arenas.find((item) => item.arena === this.arena)?.peak_moment ??
      arena?.peak_moment ??
      0;
    const parts: (HTMLElement | null)[] = [];
    if (preview)
      parts.push(change(preview, false, document.can_apply ? "" : ` ${document.why_not}`));
    else if (planner.applied) parts.push(change(planner.applied, true, ""));
    if (selected.size === 1) {
      const row = [...selected][0]!;
      const name = document.name.get(row);
      const own = this.inArena(places.arena[row]!);
      parts.push(
        chosen(document, places, own, row, this.conflicts, {
          enabled: this.host.live,
          why: "Needs a running notebook",
          pinned: draft.choices.pins[name] ?? null,
          alignment: draft.choices.alignment,
          arenas: document.arenas.length,
          pin: (to, offset) => this.pin(row, to, offset),
          unpin: () => draft.unpin(name),
          move: (to) => draft.move(name, to),
          pick: (other) => this.pick(other, false),
        }),
      );
    } else if (selected.size > 1) {
      const total = [...selected].reduce((sum, row) => sum + document.bytes[row]!, 0);
      parts.push(
        h(
          "section.wb-memory-section",
          {},
          h("h4", {}, `${count(selected.size)} tensors chosen, ${bytes(total)}`),
        ),
      );
    }
    if (arena) parts.push(summary(arena, document));
    parts.push(peakList(document, rows, peak, selected, (row, extend) => this.pick(row, extend)));
    const top = this.side.scrollTop;
    put(this.side, ...parts.filter((part) => part !== null));
    this.side.scrollTop = top;
  }

  private footer(): void {
    const { document } = this;
    if (!document) return;
    this.foot.replaceChildren(...legend(document, this.gathered));
  }

  private hover(row: number, event: PointerEvent | null): void {
    if (row < 0 || !event || !this.document) {
      this.tooltip.hide();
      return;
    }
    const note = this.pinned().has(row) ? [["pinned", "by you"] as const] : [];
    this.tooltip.show(
      event.clientX,
      event.clientY,
      h(
        "div",
        {},
        h("strong", {}, this.document.name.get(row)),
        facts([...about(this.document, this.places(), row), ...note]),
      ),
    );
  }

  private toggleTable(shown: boolean): void {
    this.table?.destroy();
    this.table = null;
    this.chart.el.hidden = shown;
    if (!shown || !this.document) return;
    this.table = new Table({
      label: "Tensors of the memory plan",
      columns: tensorColumns(this.document),
      rows: this.document.name.length,
      onPick: (row, extend) => this.pick(row, extend),
    });
    this.picture.prepend(this.table.el);
    this.table.select(this.rows());
  }

  private showArena(arena: number): void {
    this.arena = arena;
    this.update(true);
  }

  // ---- selection -------------------------------------------------------------------------------------------

  private pick(row: number, extend: boolean): void {
    const rows = row < 0 ? [] : extend ? [...new Set([...this.rows(), row])] : [row];
    this.picks?.choose(rows);
    if (rows.length === 1) this.bring(rows[0]!);
    this.update();
  }

  private bring(row: number): void {
    const arena = this.places().arena[row]!;
    if (arena !== this.arena) this.showArena(arena);
    this.chart.reveal(row);
  }

  private selected(): void {
    if (!this.picks?.changed()) return;
    const rows = this.rows();
    const first = [...rows][0];
    if (first !== undefined && ![...rows].some((row) => this.places().arena[row] === this.arena))
      this.bring(first);
    this.update();
    if (first !== undefined) this.chart.reveal(first);
  }

  private key(event: KeyboardEvent): void {
    const field =
      event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    const command = event.ctrlKey || event.metaKey;
    const step = (by: number) => this.walk(by);
    const actions: Readonly<Record<string, () => void>> = command
      ? {
          z: () => (event.shiftKey ? this.planner?.draft.redo() : this.planner?.draft.undo()),
          Z: () => this.planner?.draft.redo(),
          y: () => this.planner?.draft.redo(),
        }
      : event.altKey
        ? { ArrowUp: () => this.nudge(1), ArrowDown: () => this.nudge(-1) }
        : {
            ".": () => step(1),
            ",": () => step(-1),
            p: () => this.togglePin(),
            t: () => this.controls.table.click(),
            Escape: () => this.pick(-1, false),
          };
    const action = actions[event.key];
    if (!action || (field && !command)) return;
    action();
    event.preventDefault();
    event.stopPropagation();
  }

  /** To the tensor that comes into use next, or before. */
  private walk(by: number): void {
    const order = this.chart.order();
    const now = [...this.rows()][0];
    const at = now === undefined ? (by > 0 ? -1 : order.length) : order.indexOf(now);
    const next = order[Math.min(Math.max(at + by, 0), order.length - 1)];
    if (next !== undefined) this.pick(next, false);
  }

  // ---- editing ---------------------------------------------------------------------------------------------

  private pin(row: number, arena: number, offset: number): void {
    if (!this.document) return;
    this.planner?.draft.pin(this.document.name.get(row), { arena, offset });
  }

  private togglePin(): void {
    const row = this.picks?.single() ?? -1;
    if (row < 0 || !this.host.live) return;
    const name = this.document!.name.get(row);
    if (this.planner!.draft.choices.pins[name]) this.planner!.draft.unpin(name);
    else this.pin(row, this.places().arena[row]!, this.places().offset[row]!);
  }

  private nudge(by: number): void {
    const row = this.picks?.single() ?? -1;
    if (row < 0 || !this.host.live) return;
    const offset = Math.max(
      0,
      this.places().offset[row]! + by * this.planner!.draft.choices.alignment,
    );
    this.pin(row, this.places().arena[row]!, offset);
  }

  /** What is in the way of a pin: red where it is pinned itself, since then no plan exists. */
  private dragged(row: number, offset: number | null, done: boolean): void {
    const document = this.document!;
    const arena = this.places().arena[row]!;
    this.conflicts = offset === null ? [] : overlaps(document, this.places(), row, arena, offset);
    this.tooltip.hide();
    if (done && offset !== null) this.pin(row, arena, offset);
    if (done) this.conflicts = [];
    const pins = this.pinned();
    const stuck = this.conflicts.filter((other) => pins.has(other)).length;
    this.update();
    if (!done && offset !== null) {
      const others = this.conflicts.length - stuck;
      const text = stuck
        ? `${count(stuck)} pinned in the way: no plan exists`
        : others
          ? `${count(others)} in use at once must move`
          : "free";
      this.foot.replaceChildren(
        h("strong", {}, `${document.name.get(row)} at byte ${count(offset)}`),
        h("span", {}, text),
      );
    }
  }

  private async copy(): Promise<void> {
    try {
      const { text } = await this.host.call("memory.python", this.planner!.edit);
      const copied = await copyText(text);
      this.foot.replaceChildren(
        h("span", {}, copied ? "Copied: " : "Copy it by hand: "),
        h("code", {}, text),
      );
    } catch (error) {
      showError(this.notes, error);
    }
  }
}

export async function mount(
  host: Host,
  el: HTMLElement,
  options: MemoryOptions = {},
): Promise<MemoryHandle> {
  const view = new MemoryView(host, el, options.method ?? host.about.method);
  await view.load(options.method ?? host.about.method);
  return view;
}

export default widget((host, el) => mount(host, el));
