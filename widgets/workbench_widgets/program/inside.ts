// The inside of one delegate: its steps as a table, and what else is known of its blob.
import type { Host } from "../common/host.ts";
import { h } from "../common/dom.ts";
import { showError } from "../common/errors.ts";
import { HandleIndex } from "../common/selection.ts";
import { Table } from "../common/table.ts";
import { delegateDetails, stepColumns } from "./panes.ts";

type Pick = (handles: number[], extend: boolean, method: string, node: string | null) => void;

export class Inside {
  readonly key: string;
  readonly el = h(
    "div.wb-program-inside",
    { "aria-label": "Inside of the delegate" },
    h("p.wb-busy", {}, "Opening…"),
  );
  private table: Table | null = null;
  private index: HandleIndex | null = null;
  private closed = false;

  /** `key` is the document's: method and number. */
  constructor(key: string) {
    this.key = key;
  }

  async open(host: Host, pick: Pick): Promise<void> {
    try {
      const found = await host.document("program_delegate", this.key);
      if (this.closed) return;
      const index = new HandleIndex(found.step_handle_start, found.step_handles);
      const steps = found.step_name.length;
      if (steps) {
        this.table = new Table({
          label: `Steps of ${found.backend} ${found.index}`,
          columns: stepColumns(found),
          rows: steps,
          filter: steps > 12,
          onPick: (step, extend) => {
            pick(index.handles(step), extend, found.method, found.step_node.get(step) || null);
            this.table?.select([step], false);
          },
        });
      }
      this.index = index;
      this.el.replaceChildren(...(this.table ? [this.table.el] : []), delegateDetails(found));
    } catch (error) {
      if (this.closed) return;
      this.el.replaceChildren();
      showError(this.el, error);
    }
  }

  /** Marks the steps that a selection meets. */
  light(handles: readonly number[]): void {
    if (this.index) this.table?.select(this.index.find(handles));
  }

  destroy(): void {
    this.closed = true;
    this.table?.destroy();
    this.el.remove();
  }
}
