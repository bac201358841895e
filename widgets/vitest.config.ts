import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    environment: "happy-dom",
    include: ["workbench_widgets/**/*.test.ts", "layout/**/*.test.ts"],
  },
  plugins: [
    {
      // As esbuild's `binary` loader: the bytes of the layout engine.
      name: "wasm-bytes",
      enforce: "pre",
      async load(id: string) {
        if (!id.endsWith(".wasm")) return null;
        const { readFile } = await import("node:fs/promises");
        const bytes = (await readFile(id)).toString("base64");
        return `export default Uint8Array.from(atob("${bytes}"), (c) => c.charCodeAt(0));`;
      },
    },
  ],
});
