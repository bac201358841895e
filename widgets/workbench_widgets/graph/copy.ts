// The selection as text for elsewhere.
import type { Picked } from "../contract.ts";

export type CopyForm = "names" | "handles" | "python";

export function copyText(form: CopyForm, picked: Picked, names: readonly string[]): string {
  switch (form) {
    case "names":
      return names.join("\n");
    case "handles":
      return picked.handles.join(", ");
    case "python":
      return `lowering.selection = [${picked.handles.join(", ")}]`;
  }
}

/** Puts text on the clipboard; the old way where the page may not use the new one. */
export async function toClipboard(text: string, near: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    field.style.position = "fixed";
    field.style.opacity = "0";
    near.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (!done) throw new Error("The browser does not let this page write to the clipboard.");
  }
}
