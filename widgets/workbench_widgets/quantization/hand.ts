// Decisions by hand: what the recipe holds, and the Python that makes it.
import type { QuantizationDocument, QuantizationMove } from "../contract.ts";
import { copyText } from "../common/clipboard.ts";
import { h } from "../common/dom.ts";
import { put } from "../common/press.ts";
import { button } from "../common/toolbar.ts";

export interface HandEvents {
  move(what: QuantizationMove["what"], index: number): void;
  say(text: string): void;
  /** Shows the layer or module of an edit. */
  reveal(node: string, module: string): void;
}

export class Hand {
  readonly el = h("div.wb-quant-hands");
  private readonly events: HandEvents;

  constructor(events: HandEvents) {
    this.events = events;
  }

  show(doc: QuantizationDocument, can: boolean): void {
    const { events } = this;
    const items = doc.history.map((step) =>
      h(
        "li",
        {},
        h("button.wb-link", { type: "button", title: "Select it", onclick: () => events.reveal(step.node, step.module) }, step.text),
        can ? button("×", `Take back: ${step.text}`, () => events.move("remove", step.index)) : null,
      ),
    );
    const copy = button("Copy as Python", "Copy statements that make these decisions on `lowering`", () => {
      void copyText(doc.python).then((copied) =>
        events.say(copied ? "Copied." : "The browser refused to copy; select the text below."),
      );
    });
    const clear = can && items.length ? button("Clear", "Take back all decisions by hand", () => events.move("clear", -1)) : null;
    put(
      this.el,
      h("h4", {}, "Decided by hand"),
      items.length ? h("ol", {}, ...items) : h("p.wb-muted", {}, "Nothing yet: choose an operator, and how it shall be quantized."),
      ...(doc.python
        ? [
            h("div.wb-quant-title", {}, copy, clear),
            h("pre.wb-mono.wb-quant-code", { tabindex: 0, "aria-label": "The decisions as Python" }, doc.python),
          ]
        : []),
    );
  }
}
