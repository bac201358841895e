// Text to the clipboard or to a file, also where the page may not use the clipboard.
import { h } from "./dom.ts";

/** Whether the text was copied. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages without a secure origin (a notebook over plain HTTP, a report from a file) have only the old way.
    const field = h("textarea", { readonly: true, style: "position:fixed;top:0;opacity:0" });
    field.value = text;
    const focused = document.activeElement;
    document.body.append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
    return copied;
  }
}

/** Offers a file for download. */
export function saveFile(name: string, content: string, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = h("a", { href: url, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  // The download has begun, or never will.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
