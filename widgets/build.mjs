// Bundles each view: workbench_widgets/<view>/view.ts -> workbench_widgets/static/<view>.js and .css.
// A bundle holds all that it needs; nothing is fetched at run time. `--sizes` prints what each takes, gzipped.
import { build } from "esbuild";
import { existsSync, readdirSync, readFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const source = join(here, "workbench_widgets");
const out = join(source, "static");
const LIMIT = 150 * 1024;

const views = readdirSync(source, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && existsSync(join(source, entry.name, "view.ts")))
  .map((entry) => entry.name);

mkdirSync(out, { recursive: true });
await build({
  entryPoints: views.map((name) => ({ in: join(source, name, "view.ts"), out: name })),
  outdir: out,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  loader: { ".wasm": "binary" },
  legalComments: "none",
  logLevel: "warning",
});

let tooLarge = 0;
for (const name of views) {
  const size = gzipSync(readFileSync(join(out, `${name}.js`))).length;
  if (process.argv.includes("--sizes")) console.log(`${name.padEnd(12)} ${(size / 1024).toFixed(1)} KB gzip`);
  if (size > LIMIT) {
    console.error(`${name}: ${size} bytes gzipped, above the limit of ${LIMIT}`);
    tooLarge += 1;
  }
}
process.exit(tooLarge ? 1 : 0);
