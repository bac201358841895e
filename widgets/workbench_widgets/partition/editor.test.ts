import { beforeEach, describe, expect, it } from "vitest";
import { PartitionEditor } from "./editor.ts";
import { FakeHost, answerTo, partitionState, settled } from "./fake.ts";
import { Latest } from "./latest.ts";
import { StringColumn } from "../common/unpack.ts";

let host: FakeHost;
let editor: PartitionEditor;
let errors: unknown[];

beforeEach(async () => {
  host = new FakeHost();
  errors = [];
  editor = new PartitionEditor(host, "forward", (error) => errors.push(error));
  await editor.load();
});

describe("marking", () => {
  it("marks operators only, and the selection follows", () => {
    editor.mark([0, 1, 3]);
    expect(editor.marked).toEqual([1, 3]);
    expect(host.selection.get()).toEqual({ method: "forward", handles: [2, 4], node: null });
    editor.mark([5], true);
    expect(editor.marked).toEqual([1, 3, 5]);
    expect(editor.markedTags()).toEqual(["A", "B"]);
  });

  it("takes the selection of others, one node where it is named", () => {
    host.pick([5]);
    expect(editor.marked).toEqual([4, 5]);
    host.pick([5], "sub");
    expect(editor.marked).toEqual([5]);
    host.selection.set({ method: "second", handles: [2], node: null });
    expect(editor.marked).toEqual([5]);
  });

  it("asks what each action would do, once the marking rests", async () => {
    editor.mark([1]);
    editor.mark([1, 3]);
    await settled();
    expect(host.named("partition.preview").map((request) => request.action)).toEqual(["assign", "erase", "split", "merge"]);
    expect([...editor.answers.keys()]).toEqual(["assign", "erase", "split", "merge"]);
    expect(host.named("partition.preview").every((request) => request.action === "merge" || request.rows.length === 2)).toBe(true);
  });
});

describe("requests", () => {
  it("assign goes to the target: a tag, or a new one of a backend", () => {
    expect(editor.target).toEqual({ tag: "A", backend: null });
    expect(editor.request("assign", [2])).toMatchObject({ tag: "A", backend: null, rows: [2] });
    editor.setTarget({ tag: null, backend: "Two" });
    expect(editor.request("assign", [2])).toMatchObject({ tag: null, backend: "Two" });
    expect(editor.request("erase", [2])).toMatchObject({ tag: null, backend: null });
  });

  it("merges the marked tags, or the one with the target", () => {
    editor.mark([1, 3]);
    expect(editor.request("merge").tags).toEqual(["A", "B"]);
    editor.mark([3]);
    expect(editor.request("merge").tags).toEqual(["A", "B"]);
    editor.setTarget({ tag: "B", backend: null });
    expect(editor.request("merge").tags).toEqual(["B"]);
  });

  it("falls back to another target when its tag is gone", async () => {
    editor.setTarget({ tag: "B", backend: null });
    host.state = partitionState({ tags: partitionState().tags.slice(0, 1) });
    host.change("partition.state");
    await settled();
    expect(editor.target).toEqual({ tag: "A", backend: null });
  });
});

describe("edits", () => {
  it("shows the answer to an edit that was made, and to one that was refused", async () => {
    const request = editor.request("erase", [1]);
    await editor.apply(request);
    expect(editor.shown).toMatchObject({ kind: "made", answer: { legal: true } });
    host.answers["partition.apply"] = (asked) => answerTo(asked, { legal: false, message: "no", path: [1, 2, 3] });
    await editor.apply(request);
    expect(editor.shown).toMatchObject({ kind: "refused", answer: { legal: false, path: [1, 2, 3] } });
  });

  it("goes on with the tag that was made, so that the next stroke joins it", async () => {
    editor.setTarget({ tag: null, backend: "Two" });
    host.answers["partition.apply"] = (asked) => answerTo(asked, { after: StringColumn.from(["Two_1"]) });
    const applied = editor.apply(editor.request("assign", [2]));
    const [first] = partitionState().tags;
    host.state = partitionState({ tags: [...partitionState().tags, { ...first!, name: "Two_1" }] });
    host.change("partition.state");
    await applied;
    await settled();
    expect(editor.target).toEqual({ tag: "Two_1", backend: null });
    host.state = partitionState();
    host.change("partition.state");
    await settled();
    expect(editor.target).toEqual({ tag: "A", backend: null });
  });

  it("what was only looked at is forgotten when the partition changes", async () => {
    editor.look(editor.request("erase", [1]));
    await settled();
    expect(editor.shown?.kind).toBe("look");
    host.change("partition.state");
    await settled();
    expect(editor.shown).toBeNull();
  });

  it("the answer to what was refused stays until something else is done", async () => {
    host.answers["partition.apply"] = (asked) => answerTo(asked, { legal: false, message: "no" });
    await editor.apply(editor.request("erase", [1]));
    host.change("partition.state");
    editor.look(null);
    await settled();
    expect(editor.shown?.kind).toBe("refused");
    editor.mark([3]);
    expect(editor.shown).toBeNull();
  });

  it("makes nothing in a report", async () => {
    host.live = false;
    expect(editor.editable).toBe(false);
    expect(await editor.apply(editor.request("erase", [1]))).toBeNull();
    await editor.move("undo");
    await editor.relower(true);
    editor.look(editor.request("erase", [1]));
    editor.mark([1]);
    await settled();
    expect(host.calls).toEqual([]);
  });

  it("hands errors on and stays usable", async () => {
    await editor.relower(true);
    expect(errors).toHaveLength(1);
    expect(editor.busy).toBe("");
    host.answers["partition.relower"] = () => ({ measures: [], seconds: 0.1, ran: [], problem: "" });
    await editor.relower(false);
    expect(editor.outcome).toEqual({ measures: [], seconds: 0.1, ran: [], problem: "" });
  });

  it("stops listening when it is destroyed", () => {
    expect(host.listening).toBe(1);
    editor.destroy();
    expect(host.listening).toBe(0);
    host.pick([2]);
    expect(editor.marked).toEqual([]);
  });
});

describe("Latest", () => {
  it("has one question under way and drops those between", async () => {
    const put: number[] = [];
    const waiting: ((answer: string) => void)[] = [];
    const latest = new Latest<number, string>((question) => {
      put.push(question);
      return new Promise((resolve) => waiting.push(resolve));
    });
    const answers = [latest.ask(1), latest.ask(2), latest.ask(3)];
    expect(put).toEqual([1]);
    waiting[0]!("one");
    await new Promise((resolve) => setTimeout(resolve));
    expect(put).toEqual([1, 3]);
    waiting[1]!("three");
    expect(await Promise.all(answers)).toEqual([null, null, "three"]);
  });

  it("passes on the failure of the last only", async () => {
    const latest = new Latest<number, string>((question) => Promise.reject(new Error(String(question))));
    const [first, second] = [latest.ask(1), latest.ask(2)];
    expect(await first).toBeNull();
    await expect(second).rejects.toThrow("2");
  });
});
