// What esbuild's loaders make of files that are no TypeScript.
declare module "*.wasm" {
  const bytes: Uint8Array<ArrayBuffer>;
  export default bytes;
}
declare module "*.css";
