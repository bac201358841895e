// All views of one subject in one panel.
import "../common/theme.css";
import "./view.css";
import type { Host } from "../common/host.ts";
import { widget, type Mounted } from "../common/render.ts";
import { Panel } from "./panel.ts";
import { PLACES } from "./places.ts";
import { VIEWS } from "./views.ts";

export function mount(host: Host, el: HTMLElement): Mounted {
  return new Panel(host, el, { views: VIEWS, places: PLACES });
}

export default widget((host, el) => mount(host, el));
