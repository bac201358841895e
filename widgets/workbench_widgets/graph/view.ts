// The graph view: the graph on its canvas, with controls around it.
import "../shared/theme.css";
import "./view.css";
import { h } from "../shared/dom.ts";
import { clearError, showError } from "../shared/errors.ts";
import { matches, type Host } from "../shared/host.ts";
import { widget } from "../shared/render.ts";
import { GraphCore } from "./core.ts";
import { loadEngine } from "./engine.ts";
import { GraphSelection } from "./select.ts";
import type { GraphHandle, GraphOptions, GraphScene } from "./scene.ts";

export type { GraphHandle, GraphLayer, GraphOptions, GraphScene, GraphTool, SceneBox } from "./scene.ts";

export async function mount(host: Host, el: HTMLElement, options: GraphOptions = {}): Promise<GraphHandle> {
  const chrome = options.chrome ?? true;
  const stageEl = h("div.wb-graph-canvas");
  const body = h("div.wb-body", {}, stageEl);
  const frame = h("div", { class: chrome ? "wb-frame wb-graph" : "wb-graph wb-graph-bare" }, body);
  el.append(frame);
  const ready = new Set<(scene: GraphScene) => void>();
  const core = new GraphCore(stageEl, await loadEngine(), {
    arranged: (picture) => {
      for (const listener of [...ready]) listener(picture);
    },
    hovered: () => undefined,
    picked: (box, extend) => selection.pick(box, extend),
  });
  const selection = new GraphSelection(host, core, options.method ?? host.about.method);
  let stage = options.stage ?? host.about.stage;
  let method = options.method ?? host.about.method;
  let turn = 0;
  const load = async (keep: boolean) => {
    const own = ++turn;
    try {
      const document = await host.document("graph", `${stage}/${method}`);
      if (own !== turn) return;
      clearError(frame);
      core.show(document, keep);
      selection.show(method);
    } catch (error) {
      if (own === turn) showError(frame, error);
    }
  };
  const ends = [
    host.onChange((kinds) => {
      if (matches(kinds, "graph")) void load(true);
    }),
  ];
  void load(false);
  return {
    destroy() {
      turn = -1;
      for (const end of ends) end();
      selection.destroy();
      core.destroy();
      frame.remove();
    },
    async setStage(next, nextMethod) {
      const same = nextMethod === undefined || nextMethod === method;
      stage = next;
      method = nextMethod ?? method;
      await load(same);
    },
    addLayer: (layer) => core.addLayer(layer),
    setTool: (tool) => core.setTool(tool),
    get scene() {
      return core.picture;
    },
    redraw: () => core.redraw(),
    fit: () => core.viewport.fit(),
    reveal: (nodes) => core.reveal([...nodes]),
    onReady(listener) {
      ready.add(listener);
      if (core.picture) listener(core.picture);
      return () => ready.delete(listener);
    },
  };
}

export default widget((host, el) => mount(host, el));
