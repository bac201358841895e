// Elements in one expression.

type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;
type Child = Node | string | number | null | undefined | false;

/** `h("button.wb-button", {onclick: go, "aria-label": "Fit"}, "Fit")`; a null or false attribute is left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K | `${K}.${string}`,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const [name, ...classes] = tag.split(".") as [K, ...string[]];
  const element = document.createElement(name);
  if (classes.length) element.classList.add(...classes);
  assign(element, attributes);
  append(element, children);
  return element;
}

/** The same for SVG. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  assign(element, attributes);
  append(element, children);
  return element;
}

function assign(element: Element, attributes: Attributes): void {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") {
      element.addEventListener(key.replace(/^on/, ""), value as EventListener);
    } else {
      element.setAttribute(key, value === true ? "" : String(value));
    }
  }
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
}

/** Listens, and returns what ends it. */
export function on<K extends keyof HTMLElementEventMap>(
  target: EventTarget,
  event: K,
  listener: (event: HTMLElementEventMap[K]) => void,
  options?: AddEventListenerOptions,
): () => void {
  target.addEventListener(event, listener as EventListener, options);
  return () => target.removeEventListener(event, listener as EventListener, options);
}

/** Calls at most once a frame. */
export function throttled(work: () => void): { (): void; cancel(): void } {
  let frame = 0;
  const run = () => {
    if (!frame) {
      frame = requestAnimationFrame(() => {
        frame = 0;
        work();
      });
    }
  };
  run.cancel = () => {
    cancelAnimationFrame(frame);
    frame = 0;
  };
  return run;
}

let identity = 0;
/** A name for `id` and `aria-controls`, unique on the page. */
export function unique(stem: string): string {
  return `wb-${stem}-${(identity++).toString(36)}-${Math.random().toString(36).slice(2, 7)}`;
}
