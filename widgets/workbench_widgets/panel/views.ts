// The views that the panel is made of. This is the one place that lists them.
import type { PanelView } from "./places.ts";

export const VIEWS: Readonly<Record<string, PanelView>> = {};
