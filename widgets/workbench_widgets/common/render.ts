// What anywidget calls: makes a host of the model and mounts the view.
import type { Host } from "./host.ts";
import { LiveHost, type Model } from "./live.ts";
import { showError } from "./errors.ts";
import { watchPresses } from "./press.ts";

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
      // Notebooks hold on to what they have shown, this clean-up included: it has nothing left to hold then.
      let end: (() => void) | null = await show(mount, model, el);
      return () => {
        end?.();
        end = null;
      };
    },
  };
}

async function show(mount: Mount, model: Model, el: HTMLElement): Promise<() => void> {
  const host = new LiveHost(model);
  el.classList.add("wb-root");
  const size = () => el.style.setProperty("--wb-height", `${Number(model.get("height"))}px`);
  size();
  model.on("change:height", size);
  const releases = [keepKeys(el), watchPresses(el)];
  let mounted: Mounted | null = null;
  try {
    mounted = await mount(host, el);
    void mark(el, mounted);
  } catch (error) {
    showError(el, error);
  }
  return () => {
    for (const release of releases) release();
    model.off("change:height", size);
    mounted?.destroy();
    host.destroy();
    el.replaceChildren();
    Object.assign(el, { wbView: null });
  };
}

/**
 * Keeps plain keys, undo and redo from JupyterLab, which would delete cells and restart kernels by them. It asks for
 * its mark from the focused element upwards, and has selectors that the focused element itself meets.
 */
function keepKeys(el: HTMLElement): () => void {
  const keep = (event: KeyboardEvent) => {
    const target = event.target;
    if (!(target instanceof Element) || !el.contains(target)) return;
    const own = !(event.ctrlKey || event.metaKey) || /^[zy]$/i.test(event.key);
    target.toggleAttribute("data-lm-suppress-shortcuts", own);
  };
  // JupyterLab listens at the document, in the same phase: the window comes before it.
  window.addEventListener("keydown", keep, true);
  return () => window.removeEventListener("keydown", keep, true);
}

/** Measurements and tests wait for the mark, and reach the view through the element. */
async function mark(el: HTMLElement, mounted: Mounted): Promise<void> {
  Object.assign(el, { wbView: mounted });
  await mounted.ready;
  for (let frame = 0; frame < 2; frame++) await new Promise((done) => requestAnimationFrame(done));
  el.dataset.wbReady = "1";
}
