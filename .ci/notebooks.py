"""Remove the outputs of all notebooks, so that commits stay readable; `--check` only tells."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat


def main(check: bool) -> int:
    """Strip, or tell what is not stripped; 1 where something was found with `check`."""
    found = 0
    for path in sorted((Path(__file__).resolve().parent.parent / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        before = nbformat.writes(notebook)
        for cell in notebook.cells:
            cell.metadata = {key: value for key, value in cell.metadata.items() if key == "tags"}
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        notebook.metadata.pop("widgets", None)
        if nbformat.writes(notebook) == before:
            continue
        found += 1
        if check:
            print(f"{path.name} holds outputs; run `make format`")
        else:
            nbformat.write(notebook, path)
    return int(check and found > 0)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
