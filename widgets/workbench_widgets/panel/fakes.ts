// Stages and views that stand in for the real ones in the panel's tests.
import { expect } from "vitest";
import type { Stage } from "../contract.ts";
import type { Mounted, PanelView } from "./places.ts";

export const STAGES: Stage[] = (
  [
    ["exported", "20 nodes", 0.2],
    ["edge", "18 nodes", 0.1],
    ["partitioned", "2 partitions", 0.02],
    ["lowered", "10 nodes", 0.03],
    ["planned", "4 KiB", 0.05],
    ["program", "1.20 MB", 0.01],
    ["run", "", null],
  ] as const
).map(([name, detail, seconds]) => ({
  name,
  title: name[0]!.toUpperCase() + name.slice(1),
  detail,
  seconds,
}));

export interface Fake {
  readonly view: PanelView;
  readonly mounted: {
    el: HTMLElement;
    stage: string;
    destroyed: boolean;
    stages: string[];
    starts: number;
    draw(stage: string): void;
  }[];
}

export function fake(title: string, fails?: () => boolean): Fake {
  const mounted: Fake["mounted"] = [];
  return {
    mounted,
    view: {
      title,
      mount: async (host, el, options): Promise<Mounted> => {
        await Promise.resolve();
        if (fails?.()) throw new Error(`${title} is broken`);
        expect(host.about.stage).toBe(options.stage);
        const listeners = new Set<(scene: { document: { stage: string } }) => void>();
        const record = {
          el,
          stage: options.stage,
          destroyed: false,
          stages: [] as string[],
          starts: 0,
          draw: (stage: string) =>
            listeners.forEach((listener) => listener({ document: { stage } })),
        };
        mounted.push(record);
        el.append(title);
        return {
          destroy: () => (record.destroyed = true),
          setStage: (stage: string) => {
            record.stages.push(stage);
            return settled(); // it has to be fetched and laid out
          },
          start: () => (record.starts += 1),
          onReady: (listener) => {
            listeners.add(listener);
            return () => listeners.delete(listener);
          },
        };
      },
    },
  };
}

export const settled = () => new Promise((resolve) => setTimeout(resolve, 0));
