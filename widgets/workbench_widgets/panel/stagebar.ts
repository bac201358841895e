// The stages as tabs, in the order in which a model passes through them.
import type { Stage } from "../contract.ts";
import { h } from "../common/dom.ts";
import { seconds } from "../common/format.ts";
import { put } from "../common/press.ts";

export interface StageBar {
  readonly el: HTMLElement;
  /** Other details; `changed` marks the stages whose detail is another than before. */
  update(stages: readonly Stage[], changed?: ReadonlyMap<string, string>): void;
  choose(name: string): void;
  destroy(): void;
}

export function makeStageBar(
  stages: readonly Stage[],
  chosen: string,
  panelId: string,
  onChoose: (name: string) => void,
): StageBar {
  const el = h("div.wb-stages", {
    role: "tablist",
    "aria-label": "Stages",
    onkeydown: (event: KeyboardEvent) => key(event),
  });
  let current = chosen;
  let known = stages;
  const tabs = new Map<string, HTMLButtonElement>();

  const go = (name: string, focus: boolean) => {
    mark(name);
    if (focus) tabs.get(name)?.focus({ preventScroll: true });
    onChoose(name);
  };
  const key = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const at = known.findIndex((stage) => stage.name === current);
    const targets: Readonly<Record<string, number>> = {
      ArrowLeft: (at - 1 + known.length) % known.length,
      ArrowRight: (at + 1) % known.length,
      Home: 0,
      End: known.length - 1,
    };
    const target = known[targets[event.key] ?? -1];
    if (!target) return;
    go(target.name, true);
    event.preventDefault();
    event.stopPropagation();
  };
  const mark = (name: string) => {
    current = name;
    for (const [other, tab] of tabs) {
      tab.setAttribute("aria-selected", String(other === name));
      tab.tabIndex = other === name ? 0 : -1;
    }
    const tab = tabs.get(name);
    // Only sideways within the bar: `scrollIntoView` would move the notebook, too.
    if (tab && el.scrollWidth > el.clientWidth) {
      el.scrollLeft = tab.offsetLeft - (el.clientWidth - tab.offsetWidth) / 2;
    }
  };
  const update = (next: readonly Stage[], changed: ReadonlyMap<string, string> = new Map()) => {
    const focused = el.contains(document.activeElement);
    known = next;
    tabs.clear();
    put(
      el,
      ...next.map((stage) => {
        const tab = makeTab(stage, panelId, changed.get(stage.name), () => go(stage.name, false));
        tabs.set(stage.name, tab);
        return tab;
      }),
    );
    mark(current);
    if (focused) tabs.get(current)?.focus({ preventScroll: true });
  };
  update(stages);
  return { el, update, choose: mark, destroy: () => el.remove() };
}

function makeTab(
  stage: Stage,
  panelId: string,
  before: string | undefined,
  onclick: () => void,
): HTMLButtonElement {
  const time = stage.seconds === null ? "" : seconds(stage.seconds);
  const notes = [
    stage.title,
    stage.detail,
    time ? `took ${time}` : "",
    before === undefined ? "" : `before: ${before || "nothing"}`,
  ].filter(Boolean);
  const tab = h(
    "button.wb-stage",
    {
      type: "button",
      role: "tab",
      id: `${panelId}-${stage.name}`,
      "data-stage": stage.name,
      "aria-controls": panelId,
      title: notes.join("; "),
      onclick,
    },
    h("span.wb-stage-title", {}, stage.title),
    h("span.wb-stage-detail", {}, [stage.detail, time].filter(Boolean).join(" · ") || " "),
  );
  if (before !== undefined) tab.classList.add("wb-stage-changed");
  return tab;
}
