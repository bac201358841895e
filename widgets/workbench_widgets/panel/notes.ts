// What changed when the model was lowered again, in a line.
import type { About, Stage } from "../contract.ts";
import { seconds } from "../common/format.ts";

/** The stages whose detail changed, with the detail that they had. */
export function differences(
  before: readonly Stage[],
  after: readonly Stage[],
): Map<string, string> {
  const known = new Map(before.map((stage) => [stage.name, stage.detail]));
  const found = new Map<string, string>();
  for (const stage of after) {
    const old = known.get(stage.name);
    if (old !== undefined && old !== stage.detail) found.set(stage.name, old);
  }
  return found;
}

/** `Re-lowered: partition, lower ran in 0.42 s. Program 1.20 MB, was 1.25 MB.` */
export function relowered(before: About, after: About): string {
  const ran = after.stages.filter((stage) => stage.seconds !== null);
  const total = ran.reduce((sum, stage) => sum + (stage.seconds ?? 0), 0);
  const steps = ran.map((stage) => stage.title.toLowerCase()).join(", ") || "nothing";
  const changes = [...differences(before.stages, after.stages)]
    .filter(([name]) => name !== "run")
    .map(([name, old]) => {
      const stage = after.stages.find((candidate) => candidate.name === name)!;
      return `${stage.title.toLowerCase()}: ${stage.detail}, was ${old || "nothing"}`;
    });
  const tail = changes.length ? ` – ${changes.join("; ")}` : " – no count changed";
  return `Re-lowered: ${steps} made anew in ${seconds(total)}${tail}`;
}
