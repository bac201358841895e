"""Compiles the layout engine to `layout.wasm` with zig's clang, when a source is newer than it."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

FLAGS = [
    *("-target", "wasm32-wasi", "-mexec-model=reactor", "-Os", "-std=c++20", "-fno-exceptions", "-fno-rtti"),
    # As the native module, so that both give the same places.
    "-ffp-contract=off",
    *("-Wall", "-Wextra", "-Werror", "-Wl,--strip-all", "-Wl,-z,stack-size=1048576"),
]
LIMIT = 30 * 1024


def main() -> int:
    """Builds if needed; exit code 1 if the compiler fails or the result, gzipped, is above the limit."""
    folder = Path(__file__).resolve().parent
    target = folder / "layout.wasm"
    sources = sorted(path for path in folder.glob("*.cc") if path.name != "python.cc")
    inputs = [*sources, *folder.glob("*.h"), Path(__file__)]
    if target.exists() and all(path.stat().st_mtime <= target.stat().st_mtime for path in inputs):
        return 0
    made = target.with_suffix(".wasm.new")
    command = [sys.executable, "-m", "ziglang", "c++", *FLAGS, "-o", str(made), *map(str, sources)]
    code = subprocess.run(command, check=False).returncode
    if code:
        return code
    size = len(gzip.compress(made.read_bytes()))
    if size > LIMIT:
        print(f"layout.wasm: {size} bytes gzipped, above the limit of {LIMIT}", file=sys.stderr)
        return 1
    # Last, so that a failed build is tried again.
    made.replace(target)
    print(f"layout.wasm: {size / 1024:.1f} KB gzip")
    return 0


if __name__ == "__main__":
    sys.exit(main())
