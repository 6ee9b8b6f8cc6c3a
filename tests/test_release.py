"""One version and one date everywhere, and packages for conda and Docker of what pyproject.toml declares."""

from __future__ import annotations

import re
import tomllib

from tests.release import DATES, ROOT, VERSIONS, first


def test_version_and_date_are_the_same_everywhere() -> None:
    (version,) = set(first(VERSIONS).values())
    (date,) = set(first(DATES).values())
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", date)


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
