// What the panel shows, as one of its views and as Python see it.
import type { About } from "../contract.ts";
import type { Host } from "../common/host.ts";

/** How Python calls the selection of what is shown. */
export function pythonName(about: About): string {
  return about.can_lower ? "lowering.selection" : "program.selection";
}

/** The call that writes the same report. */
export function reportPython(about: About): string {
  return `${about.can_lower ? "lowering" : "program"}.to_html("report.html")`;
}

/**
 * The host as one view sees it: the same, with the view's own name and stage. Stage and method are chosen in the
 * panel: a view that knows of no others does not offer them a second time.
 */
export function scoped(host: Host, view: string, stage: string, method: () => string): Host {
  return {
    live: host.live,
    selection: host.selection,
    get about() {
      const { stages } = host.about;
      const chosen = method();
      return {
        ...host.about,
        view,
        stage,
        stages: view === "graph" ? stages.filter(({ name }) => name === stage) : stages,
        methods: [chosen],
        method: chosen,
      };
    },
    document: (kind, key) => host.document(kind, key),
    has: (kind, key) => host.has(kind, key),
    onChange: (listener) => host.onChange(listener),
    call: (name, args) => host.call(name, args),
    onEvent: (name, listener) => host.onEvent(name, listener),
  };
}
