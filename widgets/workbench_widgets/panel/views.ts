// The views that the panel is made of. This is the one place that lists them.
import { mount as graph } from "../graph/view.ts";
import { mount as memory } from "../memory/view.ts";
import type { PanelView } from "./places.ts";

export const VIEWS: Readonly<Record<string, PanelView>> = {
  graph: { title: "Graph", mount: graph },
  memory: { title: "Memory", mount: memory },
};
