// What the user wants the plan to be made with, step by step, with undo and redo.
import type { MemoryChoices, MemoryPin } from "../contract.ts";

/** Equal, whatever the order of their entries. */
export function sameChoices(a: MemoryChoices, b: MemoryChoices): boolean {
  return stable(a) === stable(b);
}

function stable(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) =>
    item && typeof item === "object" && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([left], [right]) => (left < right ? -1 : 1)))
      : item,
  );
}

function without<T>(table: Readonly<Record<string, T>>, name: string): Record<string, T> {
  return Object.fromEntries(Object.entries(table).filter(([key]) => key !== name));
}

export class Draft {
  private steps: MemoryChoices[];
  private at = 0;
  private readonly changed: () => void;

  constructor(start: MemoryChoices, changed: () => void = () => {}) {
    this.steps = [start];
    this.changed = changed;
  }

  get choices(): MemoryChoices {
    return this.steps[this.at]!;
  }

  get canUndo(): boolean {
    return this.at > 0;
  }

  get canRedo(): boolean {
    return this.at + 1 < this.steps.length;
  }

  set(changes: Partial<MemoryChoices>): void {
    const next = { ...this.choices, ...changes };
    if (sameChoices(next, this.choices)) return;
    this.steps = [...this.steps.slice(0, this.at + 1), next];
    this.at += 1;
    this.changed();
  }

  undo(): void {
    if (!this.canUndo) return;
    this.at -= 1;
    this.changed();
  }

  redo(): void {
    if (!this.canRedo) return;
    this.at += 1;
    this.changed();
  }

  pin(name: string, pin: MemoryPin): void {
    this.set({ pins: { ...this.choices.pins, [name]: pin } });
  }

  unpin(name: string): void {
    this.set({ pins: without(this.choices.pins, name) });
  }

  /** Another arena; a pin goes along. */
  move(name: string, arena: number): void {
    const arenas =
      arena === 1 ? without(this.choices.arenas, name) : { ...this.choices.arenas, [name]: arena };
    const pin = this.choices.pins[name];
    const pins = pin ? { ...this.choices.pins, [name]: { ...pin, arena } } : this.choices.pins;
    this.set({ arenas, pins });
  }

  limit(arena: number, bytes: number | null): void {
    const limits = without(this.choices.arena_limits, String(arena));
    this.set({ arena_limits: bytes === null ? limits : { ...limits, [String(arena)]: bytes } });
  }
}

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  k: 2 ** 10,
  kb: 1e3,
  kib: 2 ** 10,
  m: 2 ** 20,
  mb: 1e6,
  mib: 2 ** 20,
  g: 2 ** 30,
  gb: 1e9,
  gib: 2 ** 30,
};

/** `512 KiB`, `0x40`, `1,024` -> bytes; null for an empty text, NaN for one that is no size. */
export function parseBytes(text: string): number | null {
  const plain = text
    .trim()
    .toLowerCase()
    .replaceAll(/[,_\s]/g, "");
  if (!plain) return null;
  if (/^0x[0-9a-f]+$/.test(plain)) return parseInt(plain, 16);
  const match = /^(\d+(?:\.\d+)?)([a-z]*)$/.exec(plain);
  const unit = match && UNITS[match[2]!];
  return match && unit ? Math.round(Number(match[1]) * unit) : NaN;
}
