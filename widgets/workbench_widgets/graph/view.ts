// The graph view: the graph on its canvas, with controls around it.
import "../common/theme.css";
import "./view.css";
import type { Host } from "../common/host.ts";
import { widget } from "../common/render.ts";
import { loadEngine } from "./engine.ts";
import type { GraphHandle, GraphOptions } from "./scene.ts";
import { GraphView } from "./whole.ts";

export type {
  GraphHandle,
  GraphLayer,
  GraphOptions,
  GraphScene,
  GraphTool,
  SceneBox,
} from "./scene.ts";

/** Shows the graph of a stage in an element; see `GraphHandle` for what can be done with it. */
export async function mount(
  host: Host,
  el: HTMLElement,
  options: GraphOptions = {},
): Promise<GraphHandle> {
  return new GraphView(host, el, await loadEngine(), options);
}

export default widget((host, el) => mount(host, el));
