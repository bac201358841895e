// A report: one page with all views, that needs no kernel and no network.
import "../common/theme.css";
import "./view.css";
import { h } from "../common/dom.ts";
import { showError } from "../common/errors.ts";
import type { Host } from "../common/host.ts";
import type { Mounted } from "../common/render.ts";
import { mount as compare } from "../compare/view.ts";
import { mount as panel } from "../panel/view.ts";
import { select } from "../common/toolbar.ts";
import { hostOf } from "./static_host.ts";
import { applyTheme, savedTheme, THEMES, type ThemeName } from "./themes.ts";

/** The panel of all views; a comparison has its own. */
export function mount(host: Host, el: HTMLElement): Mounted | Promise<Mounted> {
  return host.about.view === "compare" ? compare(host, el) : panel(host, el);
}

/** Fills the page of a report. */
export async function start(page: Document): Promise<void> {
  const root = page.getElementById("wb-report");
  if (!root) return;
  const chosen = savedTheme();
  applyTheme(page, chosen);
  page.getElementById("wb-theme")?.replaceChildren(
    h("span.wb-label", {}, "Theme"),
    select("Theme", THEMES, chosen, (name) => applyTheme(page, name as ThemeName)),
  );
  try {
    await mount(hostOf(page), root);
  } catch (error) {
    showError(root, error);
  }
}

if (typeof document !== "undefined") void start(document);
