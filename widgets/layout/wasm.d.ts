// The bundler hands over a .wasm file as its bytes.
declare module "*.wasm" {
  const bytes: Uint8Array;
  export default bytes;
}
