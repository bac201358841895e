// Which containers are open: by keys that hold from stage to stage.
import type { GraphModel } from "./model.ts";

/** Opening more boxes than this at once makes a picture that nobody can read. */
export const LIMIT = 300;
/**
 * The first view opens levels up to this many boxes: few enough for labels, many enough for an
 * overview.
 */
export const FIRST = 56;

export class OpenState {
  private keys = new Set<string>();

  isOpen(model: GraphModel, item: number): boolean {
    return item === model.root || (item >= model.nodes && this.keys.has(model.key(item)));
  }

  set(model: GraphModel, item: number, open: boolean): void {
    if (item < model.nodes) return;
    if (open) this.keys.add(model.key(item));
    else this.keys.delete(model.key(item));
  }

  toggle(model: GraphModel, item: number): void {
    this.set(model, item, !this.isOpen(model, item));
  }

  closeAll(): void {
    this.keys.clear();
  }

  /** Opens all that is below an item, stacks included. */
  openAll(model: GraphModel, item = model.root): void {
    if (item < model.nodes) return;
    this.set(model, item, true);
    for (const part of model.parts[item]!) this.openAll(model, part);
  }

  /** Opens what holds these nodes; tells whether anything was closed. */
  reveal(model: GraphModel, nodes: Iterable<number>): boolean {
    let opened = false;
    for (const node of nodes) {
      for (const item of model.ancestors(model.home[node] ?? node)) {
        if (this.isOpen(model, item)) continue;
        this.set(model, item, true);
        opened = true;
      }
    }
    return opened;
  }

  /**
   * Opens level by level, stacks left closed, as long as no more than `limit` boxes are seen. Of a
   * level, modules of one class are opened all or none: else like things would look unlike.
   */
  openFirst(model: GraphModel, limit = FIRST): void {
    this.closeAll();
    let boxes = model.parts[model.root]!.length;
    let level = model.parts[model.root]!;
    while (level.length) {
      const classes = new Map<string, number[]>();
      for (const item of level) {
        if (!model.isContainer(item) || model.kind(item) === "fold") continue;
        const type = model.document.module_type.get(model.index(item));
        const known = classes.get(type);
        if (known) known.push(item);
        else classes.set(type, [item]);
      }
      const size = (items: readonly number[]) =>
        items.reduce((sum, item) => sum + model.parts[item]!.length, 0);
      const next: number[] = [];
      // The smallest first: they tell the most for the room that they take.
      for (const items of [...classes.values()].sort((a, b) => size(a) - size(b))) {
        if (boxes + size(items) > limit) return;
        boxes += size(items);
        for (const item of items) {
          this.set(model, item, true);
          next.push(...model.parts[item]!);
        }
      }
      level = next;
    }
  }

  /** The innermost item that is visible and holds a node. */
  visible(model: GraphModel, node: number): number {
    const item = model.home[node] ?? node;
    for (const above of model.ancestors(item)) if (!this.isOpen(model, above)) return above;
    return item;
  }
}
