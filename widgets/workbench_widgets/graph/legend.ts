// What the colours mean, in a corner of the graph.
import { h } from "../common/dom.ts";
import { hatchCss, ramp, swatch, type Swatch } from "../common/palette.ts";
import { CATEGORIES, type Categories, type CategoryName } from "./category.ts";
import { formatUnit, type Overlay, type TagFill } from "./overlay.ts";
import type { Picture } from "./picture.ts";

const STEPS = 24;
const MOST_TAGS = 8;

export class Legend {
  readonly el = h("div.wb-graph-legend", { role: "group", "aria-label": "Legend" });
  private readonly setLog: (log: boolean) => void;

  constructor(setLog: (log: boolean) => void) {
    this.setLog = setLog;
  }

  showOverlay(overlay: Overlay): void {
    const { low, high, log, reversed } = overlay.scale;
    const { unit, title } = overlay.column;
    const stops = Array.from({ length: STEPS + 1 }, (_, at) =>
      ramp(reversed ? 1 - at / STEPS : at / STEPS),
    );
    const bar = h("span.wb-graph-ramp", {
      style: `background: linear-gradient(90deg, ${stops.join(", ")})`,
    });
    const box = h("input", {
      type: "checkbox",
      checked: log,
      onchange: () => this.setLog(box.checked),
    });
    this.el.replaceChildren(
      h("strong", {}, title),
      h(
        "span.wb-graph-scale",
        {},
        h("span", {}, formatUnit(low, unit)),
        bar,
        h("span", {}, formatUnit(high, unit)),
      ),
      h("label.wb-label", { title: "Equal ratios are equal steps of colour" }, box, " log"),
    );
  }

  showTags(fill: TagFill): void {
    const more = fill.tags.length - MOST_TAGS;
    this.el.replaceChildren(
      ...fill.tags.slice(0, MOST_TAGS).map((tag, index) => entry(swatch(index), tag)),
      ...(more > 0 ? [h("span.wb-muted", {}, `and ${more} more`)] : []),
    );
  }

  /** The sorts of work that are in sight. */
  showKinds(picture: Picture, categories: Categories): void {
    const seen = new Set<CategoryName>();
    for (const box of picture.boxes) {
      const name = categories.of(picture.model, box.item);
      if (name) seen.add(name);
    }
    const names = (Object.keys(CATEGORIES) as CategoryName[]).filter((name) => seen.has(name));
    this.el.replaceChildren(
      ...names.flatMap((name) => {
        const category = CATEGORIES[name];
        return category.swatch ? [entry(category.swatch, category.title)] : [];
      }),
    );
  }
}

function entry(look: Swatch, text: string): HTMLElement {
  const mark = h("span.wb-swatch", { "aria-hidden": true });
  mark.style.background = `${hatchCss(look.hatch, "#ffffffcc")}, ${look.color}`;
  if (look.hatch === "none") mark.style.background = look.color;
  return h("span.wb-graph-entry", {}, mark, text);
}
