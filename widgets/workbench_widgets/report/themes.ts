// Light and dark for a page that has no notebook around it.

export const THEMES = [
  { value: "system", text: "As the system" },
  { value: "light", text: "Light" },
  { value: "dark", text: "Dark" },
] as const;

export type ThemeName = (typeof THEMES)[number]["value"];

const KEY = "lowering-workbench.theme";

export function savedTheme(): ThemeName {
  try {
    const saved = localStorage.getItem(KEY);
    return THEMES.find((theme) => theme.value === saved)?.value ?? "system";
  } catch {
    return "system"; // pages from files may have no storage
  }
}

/** The views take Jupyter's attribute for a sign that the theme changed; the page's style reads it. */
export function applyTheme(page: Document, name: ThemeName): void {
  if (name === "system") delete page.body.dataset.jpThemeLight;
  else page.body.dataset.jpThemeLight = String(name === "light");
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // It holds until the page is closed, then.
  }
}
