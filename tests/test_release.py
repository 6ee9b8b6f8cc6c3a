"""One version and one date everywhere, and packages for conda and Docker of what pyproject.toml declares."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests import release
from tests.release import DATES, ROOT, VERSIONS, first


def test_changelog_of_a_version_begins_with_highlights() -> None:
    """Five lines; a version that is not released yet may lack some."""
    _, *versions = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)
    for version in versions:
        heading, *highlights = version.partition("\n### ")[0].split("\n")
        highlights = [line for line in highlights if line]
        if heading.startswith("0.2.0"):
            assert highlights == ["A version for tests, which was not published."]
            continue
        assert all(re.fullmatch(r"- .{40,148}\.", line) for line in highlights)
        assert len(highlights) == 5 or (heading == "Unreleased" and len(highlights) < 5)


def test_version_and_date_are_the_same_everywhere() -> None:
    versions = first(VERSIONS)
    (version,) = {each for name, each in versions.items() if name != "msmqwire/__init__.py"}
    (date,) = set(first(DATES).values())
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert versions["msmqwire/__init__.py"] in (version, following(version))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", date)


def following(version: str) -> str:
    """The version that is developed after a release."""
    major, minor, _ = version.split(".")
    return f"{major}.{int(minor) + 1}.0.dev0"


def test_one_command_writes_the_version_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VERSIONS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = (ROOT / name).read_text("utf-8")
        if name == "CHANGELOG.md" and "## Unreleased" not in text:
            text = text.replace("\n## ", "\n## Unreleased\n\n## ", 1)
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    release.set_version("7.8.9", "2031-02-03")
    assert {*first(VERSIONS).values()} == {"7.8.9"}
    assert {*first(DATES).values()} == {"2031-02-03"}
    assert "## Unreleased" not in (tmp_path / "CHANGELOG.md").read_text("utf-8")
    release.set_version("7.9.0.dev0", "2031-02-04")
    assert first(VERSIONS) == {**dict.fromkeys(VERSIONS, "7.8.9"), "msmqwire/__init__.py": "7.9.0.dev0"}
    assert (tmp_path / "CHANGELOG.md").read_text("utf-8").index("## Unreleased") < 300
    assert {*first(DATES).values()} == {"2031-02-03"}


def test_the_conda_recipe_needs_what_the_package_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    required = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for extra in ("tables", "insight", "lake"):
        declared = project["project"]["optional-dependencies"][extra]
        required += [each for each in declared if not each.startswith("msmqwire[")]
    listed = re.findall(r"^    - (\S+ [<>=\d.,]+)$", (ROOT / "recipe.yaml").read_text("utf-8"), re.MULTILINE)
    assert sorted(line.replace(" ", "") for line in listed) == sorted(required)


def test_the_image_is_built_of_every_file_that_the_package_needs() -> None:
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    sent = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    assert sorted(name for line in copied for name in line.split()) == sorted(sent)
    assert all((ROOT / name).exists() for name in sent)
