// Errors in the view, with what to do about them.
import { CallError } from "./host.ts";
import { h } from "./dom.ts";

const LABELS: Readonly<Record<string, string>> = {
  stage: "Stage",
  node: "Node",
  source: "Source",
  expected: "Expected",
  found: "Found",
  hint: "What to do",
  code: "Code",
  where: "Where",
};

/** An error as an element: what, where, expected, found, what to do; with a button that closes it. */
export function errorBox(error: unknown, onClose?: () => void): HTMLElement {
  const failure =
    error instanceof CallError
      ? error.failure
      : { kind: "Error", message: error instanceof Error ? error.message : String(error), details: {} };
  const rows = Object.entries(failure.details).flatMap(([key, value]) => [
    h("dt", {}, LABELS[key] ?? key),
    h("dd", {}, value),
  ]);
  const box = h(
    "div.wb-error",
    { role: "alert", tabindex: -1 },
    h("strong", {}, failure.message),
    h("span.wb-error-kind", {}, failure.kind),
    rows.length ? h("dl", {}, ...rows) : null,
    h("button.wb-button.wb-error-close", { type: "button", "aria-label": "Close", title: "Close", onclick: () => {
      box.remove();
      onClose?.();
    } }, "×"),
  );
  return box;
}

/** Shows an error at the top of an element, in place of the one before. */
export function showError(el: HTMLElement, error: unknown): HTMLElement {
  clearError(el);
  const box = errorBox(error);
  el.prepend(box);
  return box;
}

export function clearError(el: HTMLElement): void {
  for (const child of [...el.children]) if (child.classList.contains("wb-error")) child.remove();
}
