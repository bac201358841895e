// The recipe as Python and JSON, in a drawer over the views.
import type { RecipeDocument } from "../contract.ts";
import type { Host } from "../common/host.ts";
import { copyText } from "../common/clipboard.ts";
import { h, unique } from "../common/dom.ts";
import { showError } from "../common/errors.ts";
import { matches } from "../common/host.ts";
import { button, toggle } from "../common/toolbar.ts";

export interface RecipeButton {
  readonly el: HTMLButtonElement;
  readonly drawer: HTMLElement;
  destroy(): void;
}

export function recipeButton(host: Host): RecipeButton {
  const drawer = h("div.wb-drawer", {
    id: unique("recipe"),
    role: "region",
    "aria-label": "Recipe",
    hidden: true,
  });
  const el = toggle(
    "Recipe",
    "All choices that lead to this program, as Python and JSON",
    false,
    (on) => open(on),
  );
  el.setAttribute("aria-expanded", "false");
  el.setAttribute("aria-controls", drawer.id);
  // A program from a file has no recipe.
  el.hidden = !host.about.can_lower && !host.has("recipe");
  const open = (on: boolean) => {
    drawer.hidden = !on;
    el.setAttribute("aria-pressed", String(on));
    el.setAttribute("aria-expanded", String(on));
    if (on) void fill();
    else el.focus({ preventScroll: true });
  };
  const fill = async () => {
    try {
      const recipe = await host.document("recipe");
      drawer.replaceChildren(...content(recipe, () => open(false)));
    } catch (error) {
      showError(drawer, error);
    }
  };
  const key = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    open(false);
    event.stopPropagation();
  };
  drawer.addEventListener("keydown", key);
  const end = host.onChange((kinds) => {
    if (matches(kinds, "recipe") && !drawer.hidden) void fill();
  });
  return {
    el,
    drawer,
    destroy() {
      end();
      drawer.removeEventListener("keydown", key);
    },
  };
}

function content(recipe: RecipeDocument, close: () => void): Node[] {
  const versions = Object.entries(recipe.versions).map(([name, version]) => `${name} ${version}`);
  const parts: Node[] = [
    h("div.wb-drawer-head", {}, h("strong", {}, "Recipe"), button("×", "Close the recipe", close)),
  ];
  if (recipe.problem) parts.push(h("p", {}, recipe.problem));
  if (recipe.python) parts.push(listing("Python", recipe.python));
  if (recipe.json) parts.push(listing("JSON", recipe.json));
  parts.push(h("p.wb-muted", {}, versions.join(", ")));
  return parts;
}

function listing(title: string, text: string): HTMLElement {
  const copy = button("Copy", `Copy the recipe as ${title}`, () => {
    void copyText(text).then((done) => (copy.textContent = done ? "Copied" : "Not copied"));
  });
  return h(
    "section.wb-listing",
    {},
    h("div.wb-drawer-head", {}, h("span.wb-label", {}, title), copy),
    h("pre.wb-mono", { tabindex: 0 }, text),
  );
}
