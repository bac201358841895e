// What is wanted of the plan, the preview that it gives, and making it.
import type { MemoryDocument, MemoryPreview } from "../contract.ts";
import type { Host } from "../common/host.ts";
import { Draft, sameChoices } from "./draft.ts";

const PREVIEW_AFTER = 120;

export interface PlannerEvents {
  /** Something of it changed. */
  changed(): void;
  /** There is no such plan; null when that is past. */
  failed(error: unknown): void;
  /** The plan was made: the document is another one. */
  made(): Promise<void>;
}

export class Planner {
  draft: Draft;
  preview: MemoryPreview | null = null;
  /** The difference that the plan that holds made. */
  applied: MemoryPreview | null = null;
  busy = false;
  private document: MemoryDocument;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asked = 0;
  private readonly host: Host;
  private readonly events: PlannerEvents;

  constructor(host: Host, document: MemoryDocument, events: PlannerEvents) {
    this.host = host;
    this.document = document;
    this.events = events;
    this.draft = new Draft(document.choices, () => this.drafted());
  }

  /** Another document; what was done stays to be undone where the plan was made from it. */
  take(document: MemoryDocument): void {
    const again = this.document.method === document.method;
    this.document = document;
    this.preview = null;
    if (!again) this.applied = null;
    // What was chosen while the plan was being made is still wanted.
    if (again && this.busy) {
      if (this.dirty) this.ask();
    } else if (!again || !sameChoices(this.draft.choices, document.choices)) {
      this.draft = new Draft(document.choices, () => this.drafted());
    }
  }

  /** Whether something else is wanted than what holds. */
  get dirty(): boolean {
    return !sameChoices(this.draft.choices, this.document.choices);
  }

  get edit(): { method: string; choices: Draft["choices"] } {
    return { method: this.document.method, choices: this.draft.choices };
  }

  reset(): void {
    this.draft.set(this.document.choices);
  }

  async apply(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    clearTimeout(this.timer);
    this.events.changed();
    try {
      const applied = await this.host.call("memory.apply", this.edit);
      await this.events.made();
      this.applied = applied;
      this.events.failed(null);
    } catch (error) {
      this.events.failed(error);
    } finally {
      this.busy = false;
      this.events.changed();
    }
  }

  destroy(): void {
    clearTimeout(this.timer);
    this.asked += 1;
  }

  private drafted(): void {
    this.applied = null;
    this.events.failed(null);
    this.asked += 1;
    if (this.dirty) this.ask();
    else {
      clearTimeout(this.timer);
      this.preview = null;
    }
    this.events.changed();
  }

  /** Asks for a preview in a moment: choices often come several at a time. */
  private ask(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.plan(), PREVIEW_AFTER);
  }

  private async plan(): Promise<void> {
    const number = this.asked;
    try {
      const preview = await this.host.call("memory.preview", this.edit);
      if (number !== this.asked) return;
      this.preview = preview;
      this.events.failed(null);
    } catch (error) {
      if (number !== this.asked) return;
      this.preview = null;
      this.events.failed(error);
    }
    this.events.changed();
  }
}
