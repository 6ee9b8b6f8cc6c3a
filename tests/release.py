"""What must hold before a release: ``make release`` checks it, and leaves what is published in ``dist/``.

One version everywhere, a changelog with its date, a clean working tree whose tag does not exist yet, and the packages
of ``make package``; ``make sbom`` has written the bill of materials. It publishes nothing: a tag does, through
``.github/workflows/wheels.yml``. ``make version VERSION=0.3.0`` writes the version and the date of a release in all
files, ``make version VERSION=0.4.0.dev0`` writes the version of the work after it.
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


def set_version(version: str, date: str) -> None:
    """Write the version of a release and its date in all files; a version under development in the package alone."""
    is_developed = "dev" in version
    for name in ["msmqwire/__init__.py"] if is_developed else VERSIONS:
        text = (ROOT / name).read_text("utf-8")
        if name == "CHANGELOG.md":
            text = text.replace("## Unreleased\n", f"## {version} - {date}\n", 1)
        for patterns, value in ((VERSIONS, version), (DATES, date)):
            if pattern := patterns.get(name):
                found = re.search(pattern, text, re.MULTILINE)
                assert found is not None, name
                text = text[: found.start(1)] + value + text[found.end(1) :]
        (ROOT / name).write_text(text, "utf-8")
    changes = ROOT / "CHANGELOG.md"
    if is_developed and "## Unreleased" not in (text := changes.read_text("utf-8")):
        changes.write_text(text.replace("\n## ", "\n## Unreleased\n\n## ", 1), "utf-8")


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
    if not (ROOT / "tests" / "releases" / versions["CITATION.cff"]).exists():
        yield "the files of the release for later versions are missing: make release-files"
    if changed := git("status", "--porcelain"):
        yield f"the working tree has changes:\n{changed}"
    if git("tag", "--list", f"v{versions['CITATION.cff']}"):
        yield f"the tag v{versions['CITATION.cff']} exists"


def main() -> None:
    """Check, build and say what remains to be done by hand; with a version as the argument, write it everywhere."""
    if sys.argv[1:]:
        set_version(sys.argv[1], datetime.datetime.now(datetime.UTC).date().isoformat())
        return
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
