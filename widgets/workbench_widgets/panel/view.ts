// All views of one subject in one panel.
import "../shared/theme.css";
import "./view.css";
import type { Host } from "../shared/host.ts";
import { widget, type Mounted } from "../shared/render.ts";
import { Panel } from "./panel.ts";
import { PLACES } from "./places.ts";
import { VIEWS } from "./views.ts";

export function mount(host: Host, el: HTMLElement): Mounted {
  return new Panel(host, el, { views: VIEWS, places: PLACES });
}

export default widget((host, el) => mount(host, el));
