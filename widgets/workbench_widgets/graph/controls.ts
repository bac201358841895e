// The bar above the graph: stage, method, search, colours, and what to show.
import { h } from "../common/dom.ts";
import type { Host } from "../common/host.ts";
import {
  select,
  setOptions,
  spacer,
  toggle,
  toolbar,
  type Option,
} from "../common/toolbar.ts";
import type { CopyForm } from "./copy.ts";
import type { SearchBox } from "./searchbox.ts";

export interface ControlEvents {
  stage(name: string): void;
  method(name: string): void;
  color(by: string): void;
  constants(shown: boolean): void;
  table(shown: boolean): void;
  details(shown: boolean): void;
  copy(form: CopyForm): void;
}

const FORMS: readonly Option[] = [
  { value: "", text: "Copy…" },
  { value: "names", text: "Node names" },
  { value: "handles", text: "Source handles" },
  { value: "python", text: "Python" },
];

export class Controls {
  readonly el: HTMLElement;
  private readonly names: string[];
  private readonly range: HTMLInputElement;
  private readonly shown: HTMLElement;
  private readonly marks: HTMLElement[];
  private readonly methods: HTMLSelectElement;
  private readonly colors: HTMLSelectElement;
  private readonly tableButton: HTMLButtonElement;
  private readonly detailsButton: HTMLButtonElement;
  private readonly titles: ReadonlyMap<string, string>;

  constructor(
    host: Host,
    stage: string,
    method: string,
    details: boolean,
    search: SearchBox,
    events: ControlEvents,
  ) {
    const stages = host.about.stages.filter(({ name }) => name !== "run");
    this.names = stages.map(({ name }) => name);
    this.titles = new Map(
      stages.map(({ name, title, detail }) => [name, detail ? `${title}: ${detail}` : title]),
    );
    this.range = h("input.wb-graph-range", {
      type: "range",
      min: 0,
      max: Math.max(0, stages.length - 1),
      step: 1,
      "aria-label": "Stage",
      oninput: () => events.stage(this.names[Number(this.range.value)] ?? stage),
      // Arrow keys belong to the slider here.
      onkeydown: (event: KeyboardEvent) => event.stopPropagation(),
    });
    this.shown = h("output.wb-graph-stage");
    this.marks = stages.map(({ name, title }) =>
      h(
        "button.wb-graph-mark",
        {
          type: "button",
          tabindex: -1,
          onclick: () => events.stage(name),
          title: this.titles.get(name) ?? "",
        },
        title,
      ),
    );
    this.methods = select(
      "Method",
      host.about.methods.map((name) => ({ value: name, text: name })),
      method,
      events.method,
    );
    this.methods.hidden = host.about.methods.length < 2;
    this.colors = select("Colour by", [], "kind", events.color);
    const copy = select("Copy the selection as", FORMS, "", (form) => {
      copy.value = "";
      if (form) events.copy(form as CopyForm);
    });
    copy.classList.add("wb-graph-copy");
    this.tableButton = toggle("Table", "The nodes as a table", false, events.table);
    this.detailsButton = toggle("Details", "Details of the selection", details, events.details);
    const slider =
      stages.length > 1
        ? h(
            "div.wb-graph-stages",
            { role: "group", "aria-label": "Stage" },
            this.range,
            h("div.wb-graph-marks", { style: `--wb-stages:${stages.length}` }, ...this.marks),
            this.shown,
          )
        : null;
    this.el = toolbar(
      "Graph",
      slider,
      this.methods,
      search.el,
      search.problem,
      h(
        "span.wb-toolbar-group",
        {},
        h("span.wb-label", { "aria-hidden": true }, "Colour"),
        this.colors,
      ),
      spacer(),
      h(
        "span.wb-toolbar-group",
        {},
        toggle("Weights", "Show weights and other constants as boxes", false, events.constants),
        copy,
        this.tableButton,
        this.detailsButton,
      ),
    );
    this.setStage(stage, method);
  }

  setStage(stage: string, method: string): void {
    const at = this.names.indexOf(stage);
    this.range.value = String(Math.max(0, at));
    this.shown.textContent = this.titles.get(stage) ?? stage;
    this.range.setAttribute("aria-valuetext", this.titles.get(stage) ?? stage);
    this.marks.forEach((mark, index) => mark.classList.toggle("wb-graph-now", index === at));
    this.methods.value = method;
  }

  setColors(options: readonly Option[], value: string): void {
    setOptions(this.colors, options, value);
  }

  setTable(shown: boolean): void {
    this.tableButton.setAttribute("aria-pressed", String(shown));
  }

  setDetails(shown: boolean): void {
    this.detailsButton.setAttribute("aria-pressed", String(shown));
  }
}
