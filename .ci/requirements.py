"""Print what a group of pyproject.toml asks for, one requirement a line, for `pip install -r`.

`build` is what building needs, `core` what the package needs at run time, anything else an extra.
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10; pip always carries this one
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]


def main(groups: list[str]) -> int:
    """Print the requirements of all groups; groups that name each other are followed."""
    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    extras = data["project"]["optional-dependencies"]
    own = data["project"]["name"]
    pending, found = list(groups), set()
    while pending:
        group = pending.pop()
        if group == "build":
            wanted = data["build-system"]["requires"]
        elif group == "core":
            wanted = data["project"]["dependencies"]
        else:
            wanted = extras[group]
        for requirement in wanted:
            if requirement.startswith(f"{own}["):
                pending += requirement[len(own) + 1 : -1].split(",")
            else:
                found.add(requirement)
    print("\n".join(sorted(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
