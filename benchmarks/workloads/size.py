"""What an installation of a distribution takes, with all that it needs. Prints JSON: MB and number of distributions.

Only the standard library: it runs in the peers' environments, too.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

BUILD_TOOLS = {"pip", "setuptools", "wheel"}


def normal(name: str) -> str:
    """The name as the package index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(name: str, found: dict[str, Distribution], extras: frozenset[str] = frozenset()) -> None:
    """Add ``name`` and what it requires here, to ``found``; what a marker excludes is not installed, and so not counted."""
    try:
        dist = distribution(name)
    except PackageNotFoundError:
        return
    known = normal(name) in found
    found[normal(name)] = dist
    for requirement in [] if known and not extras else dist.requires or []:
        head, _, marker = requirement.partition(";")
        extra = re.search(r"""extra\s*==\s*["']([^"']+)""", marker)
        if extra and extra.group(1) not in extras:
            continue
        match = re.match(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?", head)
        if match:
            asked = frozenset(part.strip() for part in (match.group(2) or "").split(",") if part.strip())
            if normal(match.group(1)) not in found or asked:
                needed(match.group(1), found, asked)


def megabytes(dist: Distribution) -> float:
    """What its files take; bytecode, which not every installation has, not counted."""
    paths = [Path(str(file.locate())) for file in dist.files or () if file.suffix != ".pyc"]
    if (source := dist.read_text("direct_url.json")) and '"editable": true' in source:
        root = Path(json.loads(source)["url"].removeprefix("file://")) / "src"
        paths += [path for path in root.rglob("*") if path.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 2**20


def main() -> None:
    """Measure and print."""
    found: dict[str, Distribution] = {}
    name, _, extras = sys.argv[1].partition("[")
    needed(name, found, frozenset(part for part in extras.rstrip("]").split(",") if part))
    kept = {key: dist for key, dist in found.items() if key not in BUILD_TOOLS}
    print(json.dumps({"megabytes": sum(map(megabytes, kept.values())), "distributions": len(kept)}))


if __name__ == "__main__":
    main()
