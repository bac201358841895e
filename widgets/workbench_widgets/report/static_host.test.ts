import { beforeEach, describe, expect, it } from "vitest";
import golden from "../common/golden.json";
import { CallError, type Host } from "../common/host.ts";
import { ABOUT } from "../common/mock_model.ts";
import { hostOf, StaticHost } from "./static_host.ts";
import { applyTheme, savedTheme } from "./themes.ts";

const failure = { kind: "WorkbenchError", message: "it is broken", details: { hint: "mend it" } };
const block = (name: string, type: string, text: string) => {
  const script = document.createElement("script");
  script.type = type;
  script.dataset.document = name;
  script.textContent = text;
  return script;
};

beforeEach(() => {
  document.body.replaceChildren();
});

describe("the host of a report", () => {
  const host = (): Host =>
    new StaticHost(
      ABOUT,
      new Map([
        ["graph:edge/forward", { data: golden.deflated }],
        ["graph:lowered/forward", { error: failure }],
      ]),
    );

  it("has the documents of the page, read once", async () => {
    const made = host();
    expect(made.live).toBe(false);
    expect(made.has("graph", "edge/forward")).toBe(true);
    const first = await made.document("graph", "edge/forward");
    expect(first).toMatchObject({ count: 1000 });
    expect(await made.document("graph", "edge/forward")).toBe(first);
  });

  it("tells why a document could not be made", async () => {
    const made = host();
    expect(made.has("graph", "lowered/forward")).toBe(false);
    await expect(made.document("graph", "lowered/forward")).rejects.toMatchObject({ failure });
  });

  it("tells that a document is not there, and that nothing can be called", async () => {
    const made = host();
    const missing = made.document("memory", "forward");
    await expect(missing).rejects.toBeInstanceOf(CallError);
    await expect(missing).rejects.toMatchObject({
      failure: { details: { found: "memory:forward" } },
    });
    await expect(
      made.call("panel.report", { stage: "edge", method: "forward" }),
    ).rejects.toMatchObject({
      failure: { message: "A report has no kernel that could do this" },
    });
  });

  it("has a selection of its own", () => {
    const [one, other] = [host(), host()];
    one.selection.set({ method: "forward", handles: [3], node: null });
    expect(other.selection.get().handles).toEqual([]);
  });
});

describe("a page", () => {
  it("gives its documents, and lets go of their text", async () => {
    const about = document.createElement("script");
    about.id = "wb-about";
    about.type = "application/json";
    about.textContent = JSON.stringify({ ...ABOUT, title: "</script>" }).replaceAll("<", "\\u003c");
    document.body.append(
      about,
      block("graph:edge/forward", "application/octet-stream", golden.plain),
      block("graph:lowered/forward", "application/json", JSON.stringify(failure)),
    );
    const host = hostOf(document);
    expect(host.about.title).toBe("</script>");
    expect(document.querySelectorAll("script[data-document]").length).toBe(0);
    expect(await host.document("graph", "edge/forward")).toMatchObject({ count: 3 });
    await expect(host.document("graph", "lowered/forward")).rejects.toThrow("it is broken");
  });

  it("that is incomplete says so", () => {
    expect(() => hostOf(document)).toThrow("incomplete");
  });

  it("takes a theme, and keeps it", () => {
    applyTheme(document, "dark");
    expect(document.body.dataset.jpThemeLight).toBe("false");
    expect(savedTheme()).toBe("dark");
    applyTheme(document, "light");
    expect(document.body.dataset.jpThemeLight).toBe("true");
    applyTheme(document, "system");
    expect(document.body.dataset.jpThemeLight).toBeUndefined();
    expect(savedTheme()).toBe("system");
  });
});
