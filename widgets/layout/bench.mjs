// Times of the engine as WebAssembly in Node: reads graphs as JSON lines from stdin, writes milliseconds as JSON lines.
import { build } from "esbuild";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const bundle = await build({
  entryPoints: [fileURLToPath(new URL("./engine.ts", import.meta.url))],
  bundle: true,
  format: "esm",
  write: false,
  loader: { ".wasm": "binary" },
});
const code = Buffer.from(bundle.outputFiles[0].text).toString("base64");
const { loadLayout } = await import(`data:text/javascript;base64,${code}`);
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
