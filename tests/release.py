"""What must hold before a release: ``make release`` checks it, and leaves what is published in ``dist/``.

One version everywhere, a changelog with its date, a clean working tree whose tag does not exist yet, and the packages
of ``make package``; ``make sbom`` has written the bill of materials. It publishes nothing: a tag does, through
``.github/workflows/wheels.yml``.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests import packaging

ROOT = Path(__file__).parent.parent
#: Where the version is written, and after what
VERSIONS = {
    "msmqwire/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
    "CHANGELOG.md": r"^## (\d\S*) - ",
    "recipe.yaml": r'^  version: "(.+)"$',
}
#: Where its date is written
DATES = {"CITATION.cff": r"^date-released: (.+)$", "CHANGELOG.md": r"^## \d\S* - (.+)$"}


def first(patterns: dict[str, str]) -> dict[str, str]:
    """The first match of each pattern in its file, empty where there is none."""
    found = {
        name: re.search(pattern, (ROOT / name).read_text("utf-8"), re.MULTILINE) for name, pattern in patterns.items()
    }
    return {name: match[1] if match else "" for name, match in found.items()}


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def problems() -> Iterator[str]:
    """What keeps the working tree from being released."""
    versions, dates = first(VERSIONS), first(DATES)
    if len(set(versions.values())) != 1:
        yield f"the versions differ: {versions}"
    if len(set(dates.values())) != 1:
        yield f"the dates differ: {dates}"
    for date in set(dates.values()):
        try:
            datetime.date.fromisoformat(date)
        except ValueError:
            yield f"{date!r} is no date"
    if re.search(r"^## Unreleased", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE):
        yield "the changelog has changes that are not released"
    if changed := git("status", "--porcelain"):
        yield f"the working tree has changes:\n{changed}"
    if git("tag", "--list", f"v{versions['CITATION.cff']}"):
        yield f"the tag v{versions['CITATION.cff']} exists"


def main() -> None:
    """Check, build and say what remains to be done by hand."""
    if found := list(problems()):
        sys.exit("\n".join(found))
    packaging.main()
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    packaging.build(dist)
    version = first(VERSIONS)["CITATION.cff"]
    print(f"dist/ holds msmqwire {version}. To publish it: git tag --sign v{version} && git push origin v{version}")


if __name__ == "__main__":
    main()
