// A file that the browser saves.
import type { ExportedFile } from "../contract.ts";
import { h } from "../common/dom.ts";

export function download(file: ExportedFile): void {
  const content: BlobPart = file.base64
    ? Uint8Array.from(atob(file.base64), (letter) => letter.charCodeAt(0))
    : file.text;
  const url = URL.createObjectURL(new Blob([content], { type: file.mime }));
  const link = h("a", { href: url, download: file.name });
  document.body.append(link);
  link.click();
  link.remove();
  // The browser reads it after this turn.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
