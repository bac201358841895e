import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import golden from "./golden.json";
import { CallError, matches } from "./host.ts";
import { LiveHost } from "./live.ts";
import { MockModel } from "./mock_model.ts";
import { selectionOf } from "./selection.ts";

const bytes = Uint8Array.from(atob(golden.plain), (c) => c.charCodeAt(0));
const view = () => new DataView(bytes.slice().buffer);
const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

describe("documents", () => {
  it("that travelled with the widget need no kernel", async () => {
    const model = new MockModel({}, { "graph:edge/forward": view() });
    const host = new LiveHost(model);
    expect(host.has("graph", "edge/forward")).toBe(true);
    expect(await host.document("graph", "edge/forward")).toMatchObject({ count: 3 });
    expect(model.sent).toEqual([]);
  });

  it("are asked for once", async () => {
    const model = new MockModel();
    const host = new LiveHost(model);
    expect(host.has("graph", "edge/forward")).toBe(false);
    const both = [host.document("graph", "edge/forward"), host.document("graph", "edge/forward")];
    expect(model.sent).toMatchObject([{ document: "graph", key: "edge/forward" }]);
    model.receive({ id: model.sent[0]!.id }, bytes);
    const [one, other] = await Promise.all(both);
    expect(one).toMatchObject({ name: "Größe → 1" });
    expect(other).toBe(one);
    expect(host.has("graph", "edge/forward")).toBe(true);
  });

  it("that could not be made are asked for again", async () => {
    const model = new MockModel();
    const host = new LiveHost(model);
    const first = host.document("graph", "edge/forward");
    const failure = {
      kind: "WorkbenchError",
      message: "no such stage",
      details: { hint: "another" },
    };
    model.receive({ id: model.sent[0]!.id, error: failure });
    await expect(first).rejects.toMatchObject({
      name: "WorkbenchError",
      message: "no such stage",
      failure,
    });
    await expect(first).rejects.toBeInstanceOf(CallError);
    const second = host.document("graph", "edge/forward");
    model.receive({ id: model.sent[1]!.id }, bytes);
    expect(await second).toMatchObject({ count: 3 });
  });

  it("that are stale are asked for again, the others kept", async () => {
    const model = new MockModel();
    const host = new LiveHost(model);
    const heard = vi.fn();
    host.onChange(heard);
    for (const kind of ["graph", "memory"] as const) void host.document(kind, "edge/forward");
    for (const { id } of [...model.sent]) model.receive({ id }, bytes);
    await settled();
    model.receive({ changed: ["graph"] });
    expect(heard).toHaveBeenCalledExactlyOnceWith(new Set(["graph"]));
    expect(host.has("graph", "edge/forward")).toBe(false);
    expect(host.has("memory", "edge/forward")).toBe(true);
    model.receive({ changed: ["*"] });
    expect(host.has("memory", "edge/forward")).toBe(false);
  });

  it("an answer that was under way when they changed is not kept", async () => {
    const model = new MockModel();
    const host = new LiveHost(model);
    const stale = host.document("graph", "edge/forward");
    model.receive({ changed: ["graph"] });
    void host.document("graph", "edge/forward");
    expect(model.sent.length).toBe(2);
    model.receive({ id: model.sent[0]!.id }, bytes);
    await stale;
    expect(host.has("graph", "edge/forward")).toBe(true); // the second question, not the first answer
    expect(
      await Promise.race([host.document("graph", "edge/forward"), settled().then(() => "waits")]),
    ).toBe("waits");
  });

  it("a failure of a stale question leaves the newer one alone", async () => {
    const model = new MockModel();
    const host = new LiveHost(model);
    const stale = host.document("graph", "edge/forward");
    model.receive({ changed: ["graph"] });
    const fresh = host.document("graph", "edge/forward");
    model.receive({ id: model.sent[0]!.id, error: { kind: "E", message: "old", details: {} } });
    await expect(stale).rejects.toThrow("old");
    expect(host.document("graph", "edge/forward")).toBe(fresh);
  });
});

describe("calls and events", () => {
  const nothing = { stage: "edge", method: "forward" };

  it("a call is sent with its arguments and gets its own reply", async () => {
    const model = new MockModel();
    const [one, other] = [new LiveHost(model), new LiveHost(model)];
    const answers = [one.call("panel.report", nothing), other.call("panel.report", nothing)];
    expect(model.sent).toMatchObject([
      { call: "panel.report", arguments: nothing },
      { call: "panel.report" },
    ]);
    expect(model.sent[0]!.id).not.toBe(model.sent[1]!.id);
    model.receive({ id: model.sent[1]!.id }, bytes);
    model.receive({
      id: model.sent[0]!.id,
      error: { kind: "DisplayError", message: "no", details: {} },
    });
    await expect(answers[0]).rejects.toMatchObject({ name: "DisplayError" });
    expect(await answers[1]).toMatchObject({ count: 3 });
  });

  it("replies that nobody waits for and garbage are no error", async () => {
    const model = new MockModel();
    new LiveHost(model);
    model.receive({ id: 12345 }, bytes);
    model.receive({ something: "else" });
    await settled();
  });

  it("a broken reply is an error of its call", async () => {
    const model = new MockModel();
    const host = new LiveHost(model);
    const answer = host.call("panel.report", nothing);
    model.receive({ id: model.sent[0]!.id }, new TextEncoder().encode("no document at all"));
    await expect(answer).rejects.toThrow("no document");
  });

  it("events reach who asked for them, until they end it, in order", async () => {
    const model = new MockModel();
    const host = new LiveHost(model);
    const heard: unknown[] = [];
    const end = host.onEvent("profile.started", (event) => heard.push(event));
    const deflated = Uint8Array.from(atob(golden.deflated), (c) => c.charCodeAt(0));
    model.receive({ event: "profile.started" }, deflated);
    model.receive({ event: "profile.started" }, bytes);
    model.receive({ event: "profile.ended" }, bytes);
    await vi.waitFor(() => expect(heard.length).toBe(2));
    // The first takes longer to unpack, and still comes first.
    expect(heard).toMatchObject([{ count: 1000 }, { count: 3 }]);
    end();
    model.receive({ event: "profile.started" }, bytes);
    await settled();
    expect(heard.length).toBe(2);
  });
});

describe("the selection", () => {
  it("goes to Python once for each change, and comes back without an echo", () => {
    const model = new MockModel();
    const host = new LiveHost(model);
    host.selection.set({ method: "forward", handles: [4, 2], node: null });
    expect(model.get("selection")).toEqual({ method: "forward", handles: [2, 4], node: null });
    expect(model.saves).toBe(1);
    model.set("selection", { method: "forward", handles: [9], node: "add" });
    expect(host.selection.get()).toEqual({ method: "forward", handles: [9], node: "add" });
    expect(model.saves).toBe(1);
  });

  it("is shared by two widgets of a family while no kernel answers", () => {
    const [a, b] = [new MockModel({ family: "f1" }), new MockModel({ family: "f1" })];
    const [one, other] = [new LiveHost(a), new LiveHost(b)];
    one.selection.set({ method: "forward", handles: [7], node: null });
    expect(other.selection.get().handles).toEqual([7]);
    expect(b.get("selection")).toMatchObject({ handles: [7] });
    one.destroy();
    other.destroy();
    selectionOf("f1", "forward").set({ method: "forward", handles: [8], node: null });
    expect(a.get("selection")).toMatchObject({ handles: [7] });
  });
});

describe("the end", () => {
  it("leaves no listener, and whoever waits hears of it", async () => {
    const model = new MockModel({ family: "f2" });
    const host = new LiveHost(model);
    expect(model.listening).toBeGreaterThan(0);
    const waiting = host.document("graph", "edge/forward");
    host.destroy();
    await expect(waiting).rejects.toThrow("closed");
    expect(model.listening).toBe(0);
  });

  it("a document that is asked for behind it is refused", async () => {
    const model = new MockModel();
    const host = new LiveHost(model);
    host.destroy();
    await expect(host.document("graph", "edge/forward")).rejects.toThrow("closed");
    expect(model.sent).toEqual([]);
  });
});

it("kinds match by name, or all at once", () => {
  expect(matches(new Set(["graph"]), "graph")).toBe(true);
  expect(matches(new Set(["graph"]), "memory")).toBe(false);
  expect(matches(new Set(["*"]), "memory")).toBe(true);
});

describe("a request that nobody takes", () => {
  const later = (milliseconds: number) => vi.advanceTimersByTimeAsync(milliseconds);
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("is sent again, with longer and longer pauses, until it is taken", async () => {
    const model = new MockModel();
    const host = new LiveHost(model);
    void host.document("graph", "edge/forward");
    await later(1900);
    expect(model.sent.length).toBe(1);
    await later(200);
    expect(model.sent.length).toBe(2);
    await later(4000);
    expect(model.sent.length).toBe(3);
    expect(model.sent[2]).toEqual(model.sent[0]);
    model.receive({ id: model.sent[0]!.id, taken: true });
    await later(200_000);
    expect(model.sent.length).toBe(3);
  });

  it("is not sent again once it is answered or the view is closed", async () => {
    const model = new MockModel();
    const host = new LiveHost(model);
    const answer = host.document("graph", "edge/forward");
    model.receive({ id: model.sent[0]!.id, taken: true });
    model.receive({ id: model.sent[0]!.id }, bytes);
    const lost = host.document("graph", "lowered/forward").catch((error: Error) => error.message);
    host.destroy();
    expect(await lost).toBe("The view was closed.");
    await later(100_000);
    expect(model.sent.length).toBe(2);
    vi.useRealTimers();
    expect(await answer).toMatchObject({ count: 3 });
  });

  it("fails where the page has no way to the kernel any longer", async () => {
    const model = new MockModel();
    const host = new LiveHost(model);
    vi.spyOn(model, "send").mockImplementation(() => {
      throw new Error("Cannot send");
    });
    await expect(host.document("graph", "edge/forward")).rejects.toThrow("Cannot send");
    await later(100_000);
    expect(model.send).toHaveBeenCalledOnce();
  });
});
