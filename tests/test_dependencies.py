"""The lock, the list of licences and the bill of materials name what pyproject.toml declares, and nothing stale."""

from __future__ import annotations

import json
import re
from importlib import metadata

import pytest
from packaging.utils import canonicalize_name

from tests.dependencies import GATE, LICENCES, USERS, bill_of_materials, declared, installed, licences_page, locked


def here(names: set[str]) -> bool:
    """Whether all of these packages are installed: the gate installs its extras one by one."""
    present = {canonicalize_name(each.metadata["Name"]) for each in metadata.distributions()}
    return names <= present


def test_the_lock_has_every_requirement_in_a_version_that_it_accepts() -> None:
    pins = {pin.name: pin for pin in locked()}
    assert len(pins) == len(locked())
    for requirement in declared(GATE):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            pin = pins[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(pin.version, prereleases=True), (requirement, pin)
    assert all(pin.hashes for pin in pins.values())


def test_the_lock_has_what_those_need() -> None:
    if not here({canonicalize_name(each.name) for each in declared(GATE) if each.marker is None}):
        pytest.skip("not every extra of the gate is installed")
    assert {canonicalize_name(each.metadata["Name"]) for each in installed(GATE)} == {pin.name for pin in locked()}


def test_the_licences_are_those_of_what_users_install() -> None:
    names = re.findall(r"^\| ([\w.-]+) \| \S+ \| (.+) \|$", LICENCES.read_text("utf-8"), re.MULTILINE)
    assert [name for name, _ in names] == re.findall(r"^\| ([\w.-]+) \| \S+ \| ", licences_page(), re.MULTILINE)
    assert all(licence != "not stated" for _, licence in names)
    copyleft = [name for name, licence in names if re.search(r"\b(A?GPL|GNU (Affero )?General)", licence)]
    assert not copyleft


def test_the_bill_of_materials() -> None:
    bill = bill_of_materials()
    assert json.loads(json.dumps(bill)) == bill == bill_of_materials()
    components = {each["name"]: each for each in bill["components"]}  # type: ignore[attr-defined]
    assert set(components) == {canonicalize_name(each.metadata["Name"]) for each in installed(USERS)}
    for name, each in components.items():
        assert each["purl"] == f"pkg:pypi/{name}@{each['version']}"
        assert each["licenses"]
    assert components["numpy"]["hashes"]
