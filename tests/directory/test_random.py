"""Questions and files at random: both homes agree, and no file is more than wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msmqwire.directory import DirectoryObject, Filter, LdapDirectory, MemoryDirectory
from msmqwire.directory.base import matches
from msmqwire.directory.checking import check
from msmqwire.directory.document import read_document
from msmqwire.directory.elements import ELEMENTS, DirectoryServerType
from msmqwire.directory.ldap_schema import DERIVED, MAPPING
from msmqwire.errors import DirectoryError
from tests.directory.enterprise import enterprise

OPERATORS = Filter.__subclasses__()
OBJECTS = enterprise()


@pytest.fixture(scope="module")
def ldap(server: str) -> Iterator[LdapDirectory]:
    with LdapDirectory(server) as directory:
        yield directory


def mangled(text: str) -> st.SearchStrategy[str]:
    """The text, or one that looks like it to something that does not read it well."""
    signs = st.sampled_from(["*", ")(cn=*", "\\", "\\2a", "(", "\0", " ", "&", "é", ",", "\u212a", "\\\\"])
    return st.one_of(
        st.just(text),
        st.just(text.swapcase()),
        st.builds(lambda sign, at: text[:at] + sign + text[at:], signs, st.integers(0, len(text))),
        st.builds(lambda sign, at: text[:at] + sign + text[at + 1 :], signs, st.integers(0, len(text))),
        st.text(st.characters(codec="utf-8"), max_size=5),
    )


@st.composite
def filters(draw: st.DrawFn, element: type[DirectoryObject]) -> Filter:
    """An expression about an attribute, with a value that some object has, or nearly."""
    name = draw(st.sampled_from([*MAPPING[element], *DERIVED[element]]))
    values = [getattr(each, name) for each in OBJECTS if type(each) is element]
    members = [member for each in values for member in (each if isinstance(each, tuple) else (each,))]
    wanted = element.attribute_type(name)
    value = draw(st.sampled_from([each for each in members if each is not None] or [None]))
    if value is None:
        value = next(iter(DirectoryServerType)) if wanted is DirectoryServerType else UUID(int=0)
    elif name == "full_path":
        # What is outside of the server's part of the world is a referral, which is an error.
        value = draw(st.sampled_from([value, value.upper(), f"cn=nobody,{value}"]))
    elif wanted is str:
        value = draw(mangled(value))
    elif wanted is int:
        value = draw(st.sampled_from([value, value + 1, -1, 0, 0xFFFFFFFF]))
    return draw(st.sampled_from(OPERATORS))(name, value)


@st.composite
def asked(draw: st.DrawFn) -> tuple[type[DirectoryObject], list[Filter]]:
    element = draw(st.sampled_from([*MAPPING]))
    return element, draw(st.lists(filters(element), max_size=3))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked())
def test_the_homes_agree(
    memory: MemoryDirectory, ldap: LdapDirectory, question: tuple[type[DirectoryObject], list[Filter]]
) -> None:
    element, expressions = question
    plain = [each for each in OBJECTS if type(each) is element and matches(each, expressions)]
    expected = {each.identifier for each in plain}
    assert {each.identifier for each in memory.read_all(element, expressions, ["identifier"])} == expected
    assert {each.identifier for each in ldap.read_all(element, expressions, ["identifier"])} == expected


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(
            ["51e00000-0000-4000-8000-00000000000a", "51e00000-0000-4000-8000-00000000000b", "A", "win_server", "AQID"]
        )
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=3,
)  # fmt: skip


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Something like an enterprise."""
    tables: dict[str, Any] = {"site": [{"identifier": "51e00000-0000-4000-8000-00000000000a", "name": "A"}]}
    for name in draw(st.lists(st.sampled_from([*ELEMENTS, "machine"]), max_size=2)):
        attributes = ELEMENTS[name].attribute_names() if name in ELEMENTS else ("name",)
        entry = st.dictionaries(st.sampled_from([*attributes, "speed"]), VALUES, max_size=6)
        tables[name] = draw(st.one_of(st.lists(entry, max_size=2), VALUES))
    return tables


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents())
def test_no_file_is_more_than_wrong(tmp_path: Path, tables: dict[str, Any]) -> None:
    path = tmp_path / "enterprise.json"
    path.write_text(json.dumps(tables), "utf-8")
    document = read_document(path)
    check(document.objects)
    if document.problems:
        with pytest.raises(DirectoryError, match=r"enterprise\.json: "):
            MemoryDirectory.load(path)
    else:
        assert sum(len([*MemoryDirectory.load(path).read_all(each)]) for each in ELEMENTS.values()) == len(
            document.objects
        )
