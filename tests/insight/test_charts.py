"""The bundle that draws the charts of a report is that of ``charts/package.json``, and its licences are with it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msmqwire

ROOT = Path(__file__).parents[2]
FOLDER = Path(msmqwire.__file__).with_name("insight") / "charts"
WANTED = json.loads((ROOT / "charts" / "package.json").read_text("utf-8"))
LOCK = json.loads((ROOT / "charts" / "package-lock.json").read_text("utf-8"))["packages"]
BUNDLE = (FOLDER / "vega.min.js").read_text("utf-8")
LICENCES = (FOLDER / "licences.txt").read_text("utf-8")


def test_the_bundle_has_the_declared_versions() -> None:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(WANTED["dependencies"].items()))
    assert BUNDLE.startswith(f"/* {versions}: ")
    for name, version in {**WANTED["dependencies"], **WANTED["devDependencies"]}.items():
        assert LOCK[f"node_modules/{name}"]["version"] == version
    assert all(each["integrity"].startswith("sha512-") for name, each in LOCK.items() if name)


def test_the_bundle_is_text_of_a_script() -> None:
    assert "</script" not in BUNDLE.lower()
    assert "<!--" not in BUNDLE
    assert BUNDLE.isascii()


def test_every_package_in_the_bundle_has_its_licence() -> None:
    packages = re.findall(r"^((?:@[\w.-]+/)?[\w.-]+) (\d\S*) \(([\w.-]+)\)$", LICENCES, re.MULTILINE)
    assert {*WANTED["dependencies"], "d3-force", "vega-tooltip"} <= {name for name, _, _ in packages}
    for name, version, _ in packages:
        assert LOCK[f"node_modules/{name}"]["version"] == version
    declared = re.search(
        r'^license = "Apache-2.0 AND (.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE
    )
    assert declared is not None
    assert sorted({licence for _, _, licence in packages}) == declared[1].split(" AND ")
