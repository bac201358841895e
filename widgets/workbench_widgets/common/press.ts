// Changing what is on the page under a finger or a mouse button that is down. The browser clicks what was both pressed
// and released: a button that is drawn anew between the two is not clicked, and the user's choice is lost.

interface Press {
  target: Node | null;
  /** What is to be put where, once the button is up. */
  readonly waiting: Map<Element, readonly (Node | string)[]>;
}

const presses = new WeakMap<Element, Press>();

/** Notes what is pressed within the root of a view, for `put`; returns what ends it. */
export function watchPresses(root: Element): () => void {
  const press: Press = { target: null, waiting: new Map() };
  presses.set(root, press);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const done = () => {
    press.target = null;
    for (const [element, children] of press.waiting) element.replaceChildren(...children);
    press.waiting.clear();
  };
  // The click comes right after the release.
  const up = () => {
    stop();
    timer = setTimeout(done);
  };
  const stop = () => {
    for (const name of ["pointerup", "pointercancel"]) window.removeEventListener(name, up, true);
  };
  const down = (event: Event) => {
    clearTimeout(timer);
    if (press.target) done();
    press.target = event.target as Node;
    for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, up, true);
  };
  root.addEventListener("pointerdown", down, true);
  return () => {
    root.removeEventListener("pointerdown", down, true);
    stop();
    clearTimeout(timer);
    presses.delete(root);
  };
}

/** Replaces what is in an element, as `replaceChildren`; while something in it is pressed, after its click. */
export function put(element: Element, ...children: readonly (Node | string)[]): void {
  const root = element.closest(".wb-root");
  const press = root ? presses.get(root) : undefined;
  if (press?.target && element.contains(press.target)) {
    press.waiting.set(element, children);
    return;
  }
  press?.waiting.delete(element);
  element.replaceChildren(...children);
}
