// Colours of the notebook's theme for canvases, and a call when it changes.

export interface Theme {
  readonly dark: boolean;
  readonly text: string;
  readonly muted: string;
  readonly background: string;
  readonly surface: string;
  readonly raised: string;
  readonly border: string;
  readonly accent: string;
  readonly warn: string;
  readonly error: string;
  readonly good: string;
  readonly font: string;
  readonly mono: string;
}

const NAMES = {
  text: "--wb-text",
  muted: "--wb-muted",
  background: "--wb-background",
  surface: "--wb-surface",
  raised: "--wb-raised",
  border: "--wb-border",
  accent: "--wb-accent",
  warn: "--wb-warn",
  error: "--wb-error-color",
  good: "--wb-good",
  font: "--wb-font",
  mono: "--wb-mono",
} as const;

/** The theme as it is around an element. */
export function readTheme(el: HTMLElement): Theme {
  const style = getComputedStyle(el);
  const values = Object.fromEntries(
    Object.entries(NAMES).map(([key, name]) => [key, style.getPropertyValue(name).trim()]),
  ) as unknown as Omit<Theme, "dark">;
  return { ...values, dark: luminance(values.background) < 0.4 };
}

function luminance(color: string): number {
  const pen = document.createElement("canvas").getContext("2d");
  if (!pen || !color) return 1;
  pen.fillStyle = color;
  const hex = pen.fillStyle;
  const parts = /^#(..)(..)(..)/.exec(hex)?.slice(1).map((part) => parseInt(part, 16)) ?? [255, 255, 255];
  return (0.2126 * parts[0]! + 0.7152 * parts[1]! + 0.0722 * parts[2]!) / 255;
}

/** Calls back after the theme may have changed: JupyterLab and others set attributes or classes of the page. */
export function watchTheme(listener: () => void): () => void {
  const observer = new MutationObserver(() => requestAnimationFrame(listener));
  const options = {
    attributes: true,
    attributeFilter: ["class", "data-jp-theme-light", "data-jp-theme-name", "data-vscode-theme-kind", "style"],
  };
  observer.observe(document.body, options);
  observer.observe(document.documentElement, options);
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", listener);
  return () => {
    observer.disconnect();
    media.removeEventListener("change", listener);
  };
}
