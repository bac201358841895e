// The layout engine, loaded once for the page.
import type { Engine } from "./arrange.ts";
import { simpleEngine } from "./simple.ts";

export async function loadEngine(): Promise<Engine> {
  return simpleEngine;
}
