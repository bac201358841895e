// Several lowerings or runs side by side.
import "../common/theme.css";
import "./view.css";
import { mount as graph } from "../graph/view.ts";
import type { Host } from "../common/host.ts";
import { widget, type Mounted } from "../common/render.ts";
import { Compare } from "./compare.ts";

export async function mount(host: Host, el: HTMLElement): Promise<Mounted> {
  return new Compare(host, el, await host.document("compare", "0"), graph);
}

export default widget((host, el) => mount(host, el));
