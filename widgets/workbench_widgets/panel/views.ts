// The views that the panel is made of. This is the one place that lists them.
import { mount as graph } from "../graph/view.ts";
import { mount as memory } from "../memory/view.ts";
import { mount as partition } from "../partition/view.ts";
import { mount as profile } from "../profile/view.ts";
import { mount as program } from "../program/view.ts";
import { mount as quantization } from "../quantization/view.ts";
import type { PanelView } from "./places.ts";

export const VIEWS: Readonly<Record<string, PanelView>> = {
  graph: { title: "Graph", mount: graph },
  quantization: { title: "Quantization", mount: quantization },
  partition: { title: "Partition", mount: partition },
  memory: { title: "Memory", mount: memory },
  program: { title: "Program", mount: program },
  profile: { title: "Profile", mount: profile },
};
