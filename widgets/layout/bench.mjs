// Times of the engine as WebAssembly in Node: reads graphs as JSON lines from stdin, writes milliseconds as JSON lines.
import { build } from "esbuild";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";

const folder = mkdtempSync(join(tmpdir(), "layout-"));
await build({
  entryPoints: [fileURLToPath(new URL("./engine.ts", import.meta.url))],
  bundle: true,
  format: "esm",
  target: "es2022",
  outfile: join(folder, "engine.mjs"),
  loader: { ".wasm": "binary" },
});
const { loadLayout } = await import(pathToFileURL(join(folder, "engine.mjs")).href);
rmSync(folder, { recursive: true });
const engine = await loadLayout();
for await (const line of createInterface({ input: process.stdin })) {
  const { width, height, src, dst, repeats } = JSON.parse(line);
  const input = {
    width: Float32Array.from(width),
    height: Float32Array.from(height),
    src: Int32Array.from(src),
    dst: Int32Array.from(dst),
  };
  const times = [];
  for (let i = 0; i < repeats; i += 1) {
    const start = performance.now();
    engine.layout(input);
    times.push(performance.now() - start);
  }
  console.log(JSON.stringify(times));
}
