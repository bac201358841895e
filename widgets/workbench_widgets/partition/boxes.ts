// Which visible box has which tag, from the rows that it stands for.
import type { GraphScene, SceneBox } from "../graph/scene.ts";
import { NONE, type PartitionEditor } from "./editor.ts";
import { hullsOf, type Hull, type TaggedBox } from "./hulls.ts";

/** A box that shows nothing inside, with what it stands for. */
export interface Cover {
  readonly box: SceneBox;
  /** Operators that it stands for. */
  readonly rows: readonly number[];
  /** The tag that all of them have; NONE where they have several, or none. */
  readonly tag: number;
  /** For each tag among them how many have it, NONE for those left behind. */
  readonly counts: ReadonlyMap<number, number>;
  /** How many were left behind with a reason. */
  readonly left: number;
}

// Half of what the layout leaves between ranks, so that neighbours' outlines meet and others' don't.
const PAD = 7;
const REACH = 64;

/** The visible boxes with their tags, of one scene and one state of the partition. */
export class Covers {
  readonly all: readonly Cover[];
  readonly byBox: ReadonlyMap<SceneBox, Cover>;

  constructor(scene: GraphScene, editor: PartitionEditor) {
    const covers: Cover[] = [];
    for (const box of scene.boxes) if (!box.open) covers.push(coverOf(box, editor));
    this.all = covers;
    this.byBox = new Map(covers.map((cover) => [cover.box, cover]));
  }

  /** Outlines around the boxes where they are now. */
  hulls(): Hull[] {
    const tagged: TaggedBox[] = [];
    const others: SceneBox[] = [];
    for (const { box, tag } of this.all) {
      if (tag === NONE) others.push(box);
      else tagged.push({ tag, x: box.x, y: box.y, width: box.width, height: box.height, holder: box.parent });
    }
    return hullsOf(tagged, others, { pad: PAD, reach: REACH });
  }
}

function coverOf(box: SceneBox, editor: PartitionEditor): Cover {
  const rows = operators(box, editor);
  const counts = new Map<number, number>();
  let left = 0;
  for (const row of rows) {
    const tag = editor.state?.tag[row] ?? NONE;
    counts.set(tag, (counts.get(tag) ?? 0) + 1);
    if (tag === NONE && editor.reasons.has(row)) left++;
  }
  const tag = counts.size === 1 ? ([...counts.keys()][0] ?? NONE) : NONE;
  return { box, rows, tag, counts, left };
}

/** The operators that a box stands for. */
export function operators(box: SceneBox, editor: PartitionEditor): number[] {
  return [...box.members()].filter((row) => editor.isOperator(row));
}
