// Written by `python -m workbench_widgets.contract`; do not edit.

/** What a widget is about. */
export interface About {
  readonly view: string;
  readonly title: string;
  readonly family: string;
  readonly stages: readonly Stage[];
  readonly stage: string;
  readonly methods: readonly string[];
  readonly method: string;
  readonly can_lower: boolean;
  readonly can_run: boolean;
}

/** An error as views show it. */
export interface Failure {
  readonly kind: string;
  readonly message: string;
  readonly details: Readonly<Record<string, string>>;
}

/** The selection. */
export interface Picked {
  readonly method: string;
  readonly handles: readonly number[];
  readonly node: string | null;
}

/** One entry of the stage bar. */
export interface Stage {
  readonly name: string;
  readonly title: string;
  readonly detail: string;
  readonly seconds: number | null;
}

export interface Documents {
}

export interface Calls {
}

export interface Events {
}
