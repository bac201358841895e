// The pane beside the graph: all that is known of what is selected. What the document has is there
// at once; the
// kernel adds the rest.
import type { CodeLine, GraphDetails, NodeTensor } from "../contract.ts";
import { h } from "../common/dom.ts";
import { errorBox } from "../common/errors.ts";
import { bytes, count } from "../common/format.ts";
import type { Host } from "../common/host.ts";
import { put } from "../common/press.ts";
import { facts } from "../common/tooltip.ts";
import type { Adjacency } from "./highlight.ts";
import { shortOperator } from "./labels.ts";
import type { GraphModel } from "./model.ts";
import { formatUnit, type Overlay } from "./overlay.ts";

export interface DetailsEvents {
  /** Selects a node of the graph that is shown, and brings it into sight. */
  goTo(node: number): void;
  /** Shows a node of another stage. */
  goToStage(stage: string, rows: readonly number[]): void;
  copy(text: string): void;
}

type Entry = readonly [string, string | Node | null | undefined];
const MOST = 12;

export class Details {
  readonly el = h("aside.wb-side.wb-graph-details", { "aria-label": "Details" });
  private readonly host: Host;
  private readonly events: DetailsEvents;
  private turn = 0;

  constructor(host: Host, events: DetailsEvents) {
    this.host = host;
    this.events = events;
    this.nothing();
  }

  destroy(): void {
    this.turn = -1;
    this.el.remove();
  }

  nothing(): void {
    this.turn++;
    put(
      this.el,
      h(
        "p.wb-muted",
        {},
        "Click a node or a module to see what is known of it. Double-click opens and closes modules; arrow keys walk along edges.",
      ),
    );
  }

  /** Several nodes: how many, and of what sorts. */
  showMany(
    model: GraphModel,
    nodes: readonly number[],
    title: string,
    entries: readonly Entry[] = [],
  ): void {
    this.turn++;
    const { document } = model;
    const calls = nodes.filter(
      (node) => document.kind.get(node) === "call" || document.kind.get(node) === "delegate",
    );
    const sorts = new Map<string, number>();
    for (const node of calls) {
      const op = shortOperator(document.op.get(node));
      sorts.set(op, (sorts.get(op) ?? 0) + 1);
    }
    const ranked = [...sorts].sort((a, b) => b[1] - a[1]);
    const total = (wanted: (kind: string) => boolean) =>
      nodes.reduce(
        (sum, node) => sum + (wanted(document.kind.get(node)) ? document.bytes[node]! : 0),
        0,
      );
    put(
      this.el,
      heading(title),
      facts([
        ...entries,
        ["nodes", count(nodes.length)],
        ["outputs", bytes(total((kind) => kind === "call"))],
        [
          "weights",
          bytes(total((kind) => kind === "parameter" || kind === "buffer" || kind === "constant")),
        ],
      ]),
      section("Operators"),
      facts(ranked.slice(0, 20).map(([op, much]) => [op, `×${much}`] as const)),
    );
  }

  showModule(model: GraphModel, item: number, overlay: Overlay | null): void {
    const { document } = model;
    const index = model.index(item);
    const value = overlay ? overlay.value(item) : NaN;
    const title = model.title(item);
    this.showMany(model, [...model.members(item)], title, [
      ["path", mono(document.module_path.get(index))],
      ["class", mono(document.module_type.get(index))],
      ["stack", model.kind(item) === "fold" ? `${model.folded(item).length} equal blocks` : null],
      [
        overlay?.column.title ?? "",
        overlay && !Number.isNaN(value) ? formatUnit(value, overlay.column.unit) : null,
      ],
    ]);
  }

  showNode(model: GraphModel, adjacency: Adjacency, node: number, overlay: Overlay | null): void {
    const turn = ++this.turn;
    const { document } = model;
    const index = document.module[node]!;
    const value = overlay ? overlay.column.values[node]! : NaN;
    const rest = h("div");
    const handles = [
      ...document.handles.subarray(document.handle_start[node]!, document.handle_start[node + 1]!),
    ];
    const more = h("div", {}, this.neighbours(model, adjacency, node));
    put(
      this.el,
      heading(document.name.get(node)),
      facts([
        ["operator", mono(document.op.get(node))],
        ["kind", document.kind.get(node)],
        ["shape", document.shape.get(node) ? mono(document.shape.get(node)) : null],
        ["type", document.dtype.get(node)],
        ["bytes", document.bytes[node] ? bytes(document.bytes[node]!) : null],
        [
          overlay?.column.title ?? "",
          overlay && !Number.isNaN(value) ? formatUnit(value, overlay.column.unit) : null,
        ],
        ["attributes", document.attributes.get(node) ? mono(document.attributes.get(node)) : null],
        ["partition", document.tag.get(node)],
        ["module", document.module_path.get(index) ? mono(document.module_path.get(index)) : null],
        ["class", document.module_type.get(index) ? mono(document.module_type.get(index)) : null],
        ["source", this.source(document.source.get(node))],
        [
          "handles",
          handles.length
            ? mono(handles.slice(0, 40).join(", ") + (handles.length > 40 ? " …" : ""))
            : null,
        ],
        [
          "instruction",
          document.instruction[node]! >= 0 ? String(document.instruction[node]) : null,
        ],
      ]),
      more,
      rest,
    );
    if (!this.host.live) return;
    rest.append(h("p.wb-busy", { role: "status" }, "Asking the kernel for more…"));
    this.host
      .call("graph.details", { stage: document.stage, method: document.method, row: node })
      .then(
        (known) => {
          if (turn !== this.turn) return;
          put(more);
          put(rest, ...this.rest(known));
        },
        (error: unknown) => turn === this.turn && put(rest, errorBox(error)),
      );
  }

  private neighbours(model: GraphModel, adjacency: Adjacency, node: number): HTMLElement {
    const { document } = model;
    const list = (title: string, ends: readonly number[]) =>
      ends.length
        ? [
            section(title),
            h(
              "ul.wb-graph-list",
              {},
              ...ends.slice(0, MOST).map((end) =>
                h(
                  "li",
                  {},
                  this.link(document.name.get(end), () => this.events.goTo(end)),
                  h("span.wb-muted", {}, ` ${document.dtype.get(end)}${document.shape.get(end)}`),
                ),
              ),
            ),
          ]
        : [];
    // The adjacency has no hidden constants; the document has all edges.
    const inputs = [...document.dst.keys()]
      .filter((edge) => document.dst[edge] === node)
      .map((edge) => document.src[edge]!);
    const users = [...adjacency.outgoing(node)].map((edge) => document.dst[edge]!);
    return h("div", {}, ...list("Inputs", inputs), ...list("Used by", users));
  }

  private rest(known: GraphDetails): Node[] {
    const parts: Node[] = [];
    const add = (title: string, ...content: (Node | null)[]) => {
      const shown = content.filter((item): item is Node => item !== null);
      if (shown.length) parts.push(section(title), ...shown);
    };
    for (const text of known.why_not) add("Why it stays with the runtime", h("p", {}, text));
    if (known.code.length) add("Source", this.code(known.source, known.code));
    if (known.inputs.length) add("Inputs", ...known.inputs.map((tensor) => this.tensor(tensor)));
    if (known.outputs.length) add("Outputs", ...known.outputs.map((tensor) => this.tensor(tensor)));
    if (known.arguments.length)
      add("Arguments", facts(known.arguments.map(({ name, text }) => [name, mono(text)] as const)));
    if (known.origins.length) {
      add(
        "Comes from",
        h(
          "ul.wb-graph-list",
          {},
          ...known.origins
            .slice(0, MOST)
            .map((origin) =>
              h(
                "li",
                { title: origin.source },
                mono(origin.name),
                h(
                  "span.wb-muted",
                  {},
                  ` ${shortOperator(origin.target)} · handle ${origin.handle}`,
                ),
              ),
            ),
        ),
      );
    }
    if (known.stages.length) {
      add(
        "At each stage",
        facts(
          known.stages.map(
            (entry) =>
              [
                entry.stage,
                entry.count
                  ? this.link(
                      names(entry.names, entry.count),
                      () => this.events.goToStage(entry.stage, entry.rows),
                      entry.ops.join(", "),
                    )
                  : h("span.wb-muted", {}, "gone"),
              ] as const,
          ),
        ),
      );
    }
    if (known.schema) add("Signature", mono(known.schema));
    const metadata = Object.entries(known.metadata);
    if (metadata.length) {
      parts.push(
        h(
          "details.wb-graph-more",
          {},
          h("summary", {}, `Metadata (${metadata.length})`),
          facts(metadata.map(([name, text]) => [name, mono(text)] as const)),
        ),
      );
    }
    return parts;
  }

  private tensor(tensor: NodeTensor): HTMLElement {
    const name = tensor.name || "result";
    return h(
      "div.wb-graph-tensor",
      {},
      tensor.row >= 0
        ? this.link(name, () => this.events.goTo(tensor.row))
        : h("span.wb-mono", {}, name),
      h("span.wb-mono", {}, ` ${tensor.dtype}${tensor.shape}`),
      h(
        "div.wb-muted",
        {},
        [
          bytes(tensor.bytes),
          tensor.dim_order && `dim order ${tensor.dim_order}`,
          tensor.strides && `strides ${tensor.strides}`,
        ]
          .filter(Boolean)
          .join(" · "),
      ),
    );
  }

  private source(text: string): Node | null {
    if (!text) return null;
    return h(
      "span",
      {},
      mono(text),
      " ",
      this.link("copy", () => this.events.copy(text), "Copy file and line"),
    );
  }

  private code(source: string, lines: readonly CodeLine[]): HTMLElement {
    const wanted = Number(source.slice(source.lastIndexOf(":") + 1));
    return h(
      "pre.wb-graph-code",
      { tabindex: 0, "aria-label": `Source at ${source}` },
      ...lines.map((line) =>
        h(
          "span",
          { class: line.number === wanted ? "wb-graph-line wb-graph-here" : "wb-graph-line" },
          h("span.wb-muted", {}, String(line.number).padStart(4)),
          ` ${line.text}\n`,
        ),
      ),
    );
  }

  private link(text: string, action: () => void, title = ""): HTMLElement {
    return h(
      "button.wb-graph-link",
      { type: "button", onclick: action, title: title || null },
      text,
    );
  }
}

function names(known: readonly string[], total: number): string {
  const shown = known.slice(0, 3).join(", ");
  return total > 3 ? `${shown} +${total - 3}` : shown;
}

function heading(text: string): HTMLElement {
  return h("h3.wb-graph-heading", {}, text);
}

function section(text: string): HTMLElement {
  return h("h4.wb-graph-section", {}, text);
}

function mono(text: string): HTMLElement {
  return h("span.wb-mono", {}, text);
}
