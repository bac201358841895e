// What anywidget calls: makes a host of the model and mounts the view.
import type { Host } from "./host.ts";
import { LiveHost, type Model } from "./live.ts";
import { showError } from "./errors.ts";

export interface Mounted {
  destroy(): void;
  /** Resolves when the first picture is complete; by default mounting is taken for that. */
  readonly ready?: Promise<unknown>;
}

export type Mount = (host: Host, el: HTMLElement) => Mounted | Promise<Mounted>;

/** The module that anywidget expects of a view. */
export function widget(mount: Mount): { render(context: { model: Model; el: HTMLElement }): Promise<() => void> } {
  return {
    async render({ model, el }) {
      const host = new LiveHost(model);
      el.classList.add("wb-root");
      // JupyterLab would take letters and arrows for its own shortcuts.
      el.setAttribute("data-lm-suppress-shortcuts", "true");
      const size = () => el.style.setProperty("--wb-height", `${Number(model.get("height"))}px`);
      size();
      model.on("change:height", size);
      let mounted: Mounted | null = null;
      try {
        mounted = await mount(host, el);
        void mark(el, mounted);
      } catch (error) {
        showError(el, error);
      }
      return () => {
        model.off("change:height", size);
        mounted?.destroy();
        host.destroy();
        el.replaceChildren();
      };
    },
  };
}

/** Measurements and tests wait for the mark, and reach the view through the element. */
async function mark(el: HTMLElement, mounted: Mounted): Promise<void> {
  Object.assign(el, { wbView: mounted });
  await mounted.ready;
  for (let frame = 0; frame < 2; frame++) await new Promise((done) => requestAnimationFrame(done));
  el.dataset.wbReady = "1";
}
