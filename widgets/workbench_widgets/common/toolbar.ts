// The bar of controls above a view.
import { h } from "./dom.ts";

export interface ToggleButton extends HTMLButtonElement {
  pressed: boolean;
}

export function toolbar(label: string, ...children: (Node | null)[]): HTMLElement {
  return h("div.wb-toolbar", { role: "toolbar", "aria-label": label }, ...children);
}

export function spacer(): HTMLElement {
  return h("span.wb-spacer");
}

/** A push button; the title says what it does, and the key that does the same. */
export function button(text: string, title: string, action: () => void): HTMLButtonElement {
  return h("button.wb-button", { type: "button", title, "aria-label": title, onclick: action }, text);
}

/** A button that stays pressed. */
export function toggle(text: string, title: string, pressed: boolean, action: (on: boolean) => void): HTMLButtonElement {
  const made = button(text, title, () => {
    const next = made.getAttribute("aria-pressed") !== "true";
    made.setAttribute("aria-pressed", String(next));
    action(next);
  });
  made.setAttribute("aria-pressed", String(pressed));
  return made;
}

export interface Option {
  readonly value: string;
  readonly text: string;
}

export function select(
  label: string,
  options: readonly Option[],
  value: string,
  action: (value: string) => void,
): HTMLSelectElement {
  const made = h("select.wb-select", {
    "aria-label": label,
    title: label,
    onchange: () => action(made.value),
  });
  setOptions(made, options, value);
  return made;
}

export function setOptions(element: HTMLSelectElement, options: readonly Option[], value: string): void {
  const same = (option: Option, at: number) =>
    element.options[at]?.value === option.value && element.options[at]?.text === option.text;
  // A list that is open closes when its entries are replaced.
  if (element.options.length !== options.length || !options.every(same)) {
    element.replaceChildren(...options.map((option) => h("option", { value: option.value }, option.text)));
  }
  if (element.value !== value) element.value = value;
}

/** A labelled group of controls. */
export function group(label: string, ...children: Node[]): HTMLElement {
  return h("span.wb-toolbar-group", { role: "group", "aria-label": label }, h("span.wb-label", {}, label), ...children);
}
