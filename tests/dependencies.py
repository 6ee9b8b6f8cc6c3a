"""The packages that the gate and users install: pinned with hashes, listed with licences, and as an SBOM.

``python -m tests.dependencies lock`` asks pip which artifact of each installed version belongs here and writes
``requirements.lock``; ``licences`` writes ``docs/dependencies.md``; ``sbom FILE`` writes a bill of materials in the
format CycloneDX.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
import uuid
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
LICENCES = ROOT / "docs" / "dependencies.md"
#: Stands for the requirements of the build, which are no extra.
_BUILDING = "build-system"
#: The extras of the gate; ``all`` is what users can install.
GATE = (_BUILDING, "test", "lint", "package", "bench", "fuzz", "manual")
USERS = ("all",)

_HEADER = """\
# What the gate installs: exact versions, and the hash of each artifact for CPython 3.11 on Linux x86-64.
# Written by `make lock`; installed by `make LOCKED=1 test`.
"""


class Pinned(NamedTuple):
    """A package with its version and the hashes of its artifacts."""

    name: str
    version: str
    hashes: tuple[str, ...]


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))  # type: ignore[no-any-return]


def declared(extras: Iterable[str]) -> Iterator[Requirement]:
    """The requirements of the package and of these extras, without its own name."""
    table = project()["project"]
    optional = table["optional-dependencies"]  # type: ignore[index]
    waiting, seen = list(extras), set()
    yield from map(Requirement, table["dependencies"])  # type: ignore[index]
    while waiting:
        extra = waiting.pop()
        if extra in seen:
            continue
        seen.add(extra)
        requires = project()[_BUILDING]["requires"] if extra == _BUILDING else optional[extra]  # type: ignore[index]
        for requirement in map(Requirement, requires):
            if canonicalize_name(requirement.name) == "msmqwire":
                waiting += requirement.extras
            else:
                yield requirement


def installed(extras: Iterable[str]) -> list[metadata.Distribution]:
    """The installed distributions that the package needs with these extras, directly or not."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [(requirement, frozenset(requirement.extras)) for requirement in declared(extras)]
    seen = set()
    while waiting:
        requirement, wanted = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (name, wanted) in seen or not _applies(requirement, ("",)):
            continue
        seen.add((name, wanted))
        found[name] = distribution = metadata.distribution(name)
        for more in map(Requirement, distribution.requires or ()):
            if _applies(more, (*wanted, "")):
                waiting.append((more, frozenset(more.extras)))
    return [found[name] for name in sorted(found)]


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)


def locked() -> list[Pinned]:
    """The contents of ``requirements.lock``."""
    text = LOCK.read_text("utf-8").replace("\\\n", " ")
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            match = re.fullmatch(r"(\S+)==(\S+)((?:\s+--hash=sha256:[0-9a-f]{64})+)", line)
            assert match, line
            found.append(Pinned(match[1], match[2], tuple(re.findall(r"sha256:([0-9a-f]{64})", match[3]))))
    return found


def write_lock() -> None:
    """Pin the installed versions, each with the hash of the artifact that pip would install."""
    pins = [f"{canonicalize_name(each.name)}=={each.version}" for each in installed(GATE)]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet"]
        subprocess.run([*command, "--report", str(report), *pins], check=True)
        chosen = json.loads(report.read_text())["install"]
    local = [item["metadata"]["name"] for item in chosen if not item["download_info"]["url"].startswith("https:")]
    if local:
        sys.exit(f"not from an index, so their hashes are not those that others get: {', '.join(local)}")
    lines = []
    for item in sorted(chosen, key=lambda item: canonicalize_name(item["metadata"]["name"])):
        name, version = canonicalize_name(item["metadata"]["name"]), item["metadata"]["version"]
        lines.append(
            f"{name}=={version} \\\n    --hash=sha256:{item['download_info']['archive_info']['hashes']['sha256']}\n"
        )
    LOCK.write_text(_HEADER + "".join(lines), "utf-8")


def licence(distribution: metadata.Distribution) -> str:
    """What its metadata says: an SPDX expression, else the classifiers, else the first line of its text."""
    about = distribution.metadata
    if expression := about.get("License-Expression"):
        return expression
    classifiers = [
        text.rpartition(" :: ")[2] for text in about.get_all("Classifier") or () if text.startswith("License")
    ]
    if classifiers:
        return ", ".join(classifiers)
    return ((about.get("License") or "").strip().splitlines() or ["not stated"])[0]


def licences_page() -> str:
    """The page of the manual."""
    rows = [f"| {each.metadata['Name']} | {each.version} | {licence(each)} |" for each in installed(USERS)]
    return "\n".join(
        (
            "# Dependencies and their licences",
            "",
            "All packages that `pip install 'msmqwire[all]'` installs, directly or not, in the versions of",
            "`requirements.lock`, with the licence that each states. numpy alone is needed without extras.",
            "`make sbom` writes the same list for machines, `dist/sbom.cdx.json` (CycloneDX).",
            "",
            "| Package | Version | Licence |",
            "|---|---|---|",
            *rows,
            "",
        )
    )


def bill_of_materials() -> dict[str, object]:
    """The packages that users install, in the format CycloneDX 1.5; the same for the same lock."""
    hashes = {pin.name: pin.hashes for pin in locked()}
    version = re.search(r'__version__ = "(.+)"', (ROOT / "msmqwire" / "__init__.py").read_text("utf-8"))
    assert version is not None
    components = []
    for each in installed(USERS):
        name = canonicalize_name(each.metadata["Name"])
        component = {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{each.version}",
            "name": name,
            "version": each.version,
            "purl": f"pkg:pypi/{name}@{each.version}",
            "licenses": [{"license": {"name": licence(each)}}],
            "hashes": [{"alg": "SHA-256", "content": content} for content in hashes.get(name, ())],
        }
        components.append(component)
    subject = {"type": "library", "name": "msmqwire", "version": version[1], "purl": f"pkg:pypi/msmqwire@{version[1]}"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components))}",
        "version": 1,
        "metadata": {"component": {**subject, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": components,
    }


def main() -> None:
    """Write what the first argument names."""
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "lock":
        write_lock()
    elif what == "licences":
        LICENCES.write_text(licences_page(), "utf-8")
    elif what == "sbom" and len(sys.argv) == 3:
        Path(sys.argv[2]).write_text(json.dumps(bill_of_materials(), indent=2) + "\n", "utf-8")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
