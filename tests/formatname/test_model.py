"""Names as values: what makes two of them the same queue, what cannot be made, what an error shows."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, get_args
from uuid import UUID

import pytest

from msmqwire.errors import FormatNameError
from msmqwire.formatname import (
    ConnectorName,
    DirectName,
    DistributionListName,
    MachineName,
    MulticastName,
    MultipleElementName,
    PathName,
    PrivateName,
    PublicName,
    parse,
    parse_path_name,
    schema,
)
from tests.reference.formatname_cases import GUID, NAMES

ID = UUID(GUID)
SOME = [parse(text, extended=True, spx=True, http_slashes=True) for text in NAMES[:30]]


@pytest.mark.parametrize("name", SOME, ids=str)
def test_a_name_is_read_from_what_it_writes(name: Any) -> None:
    again = parse(str(name), extended=True, spx=True)
    assert again == name
    assert hash(again) == hash(name)
    assert str(again) == str(name) == name.text()
    assert pickle.loads(pickle.dumps(name)) == copy.deepcopy(name) == name
    assert repr(name) == repr(dataclasses.replace(name))


def test_names_of_one_queue_are_equal() -> None:
    for one, other in (
        ("DIRECT=OS:Server\\Orders", "direct=os:SERVER\\orders"),
        ("DIRECT=OS:m\\private$\\q;S;journal", "DIRECT=OS:M\\PRIVATE$\\Q;s;JOURNAL"),
        (f"PUBLIC={GUID.upper()}", f"public={GUID}"),
        (f"DL={GUID}@Example.com", f"DL={GUID}@EXAMPLE.COM"),
        ("DIRECT=HTTP://h/MSMQ\\q", "DIRECT=HTTP://H:80/msmq\\q"),
        ("DIRECT=HTTP://h:/MSMQ\\q", "DIRECT=HTTP://h:080/MSMQ\\q"),
        ("DIRECT=HTTPS://[::1]/MSMQ\\q", "DIRECT=HTTPS://[::1]:443/MSMQ\\q"),
        ("DIRECT=OS:a\\q,DIRECT=OS:b\\q", "DIRECT=OS:A\\q,DIRECT=OS:B\\q"),
    ):
        assert parse(one) == parse(other)
        assert hash(parse(one)) == hash(parse(other))
    assert parse_path_name("Server\\Private$\\q") == parse_path_name("server\\private$\\Q")


def test_names_of_different_queues_are_not() -> None:
    names = [
        *SOME,
        parse("DIRECT=HTTP://server:8080/MSMQ\\orders"),
        parse("DIRECT=HTTP://server:0/MSMQ\\orders"),
        parse("DIRECT=HTTPS://server:80/MSMQ\\orders"),
        parse("DIRECT=HTTP://server/MSMQ\\private$\\other"),
        parse_path_name("server\\orders"),
    ]
    assert len(set(names)) == len(names)
    assert PublicName(ID) != MachineName(ID)
    assert PublicName(ID) != f"PUBLIC={GUID}"


@pytest.mark.parametrize(
    "make",
    [
        lambda: DirectName("os", "", "q"),
        lambda: DirectName("os", "a b", "q"),
        lambda: DirectName("os", "a", ""),
        lambda: DirectName("os", "a", "q" * 125),
        lambda: DirectName("os", "a", "q", subqueue="s" * 33),
        lambda: DirectName("os", "a", "q", subqueue=""),
        lambda: DirectName("os", "a\\q", "r"),
        lambda: DirectName("tcp", "server", "q"),
        lambda: DirectName("http", "//h/msm", "q"),
        lambda: DirectName("udp", "a", "q"),  # type: ignore[arg-type]
        lambda: PrivateName(ID, 1 << 32),
        lambda: PrivateName(ID, -1),
        lambda: PrivateName(ID, 1, "deadxact"),
        lambda: PublicName(ID, "xactonly"),
        lambda: ConnectorName(ID, "journal"),
        lambda: DistributionListName(ID, ""),
        lambda: DistributionListName(ID, "d" * 256),
        lambda: MulticastName("223.0.0.1", 1),
        lambda: MulticastName("224.0.0.1", 65_536),
        lambda: MultipleElementName((PublicName(ID), MachineName(ID))),
        lambda: MultipleElementName((PublicName(ID), PrivateName(ID, 1, "journal"))),
        lambda: PathName("", "q"),
        lambda: PathName("m", ""),
    ],
)
def test_what_the_grammar_does_not_allow_cannot_be_made(make: Any) -> None:
    with pytest.raises(FormatNameError):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: DirectName("os", "a", "q", subqueue="journal"),
        lambda: DirectName("os", "a", "SYSTEM$", suffix="journal"),
        lambda: DirectName("os", "a", "SYSTEM$", subqueue="DEADXACT"),
        lambda: DirectName("os", "a\\PRIVATE$", "r"),
        lambda: DirectName("os", "a", "q,DIRECT=OS:b\\r"),
        lambda: DirectName("OS", "a", "q"),  # type: ignore[arg-type]
        lambda: DirectName("os", "a", None, "public", suffix="journal"),
        lambda: DistributionListName(ID, f"d,DL={GUID}"),
        lambda: MultipleElementName((PublicName(ID),)),
        lambda: MultipleElementName((PublicName(ID), MultipleElementName((PublicName(ID), PublicName(ID))))),
        lambda: MultipleElementName((PublicName(ID), f"PUBLIC={GUID}")),  # type: ignore[arg-type]
        lambda: MultipleElementName((PublicName(ID), PathName("m", "q"))),  # type: ignore[arg-type]
        lambda: PathName("m\\private$", "q"),
        lambda: PathName("m", "private$\\q"),
    ],
)
def test_what_would_be_read_as_another_name_cannot_be_made(make: Any) -> None:
    with pytest.raises(ValueError, match=r"names something else|two or more elements"):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PublicName(GUID), "guid must be of type UUID, not str"),  # type: ignore[arg-type]
        (lambda: MulticastName("234.1.1.1", "1"), "port must be of type int, not str"),  # type: ignore[arg-type]
        (lambda: DirectName("os", 5, "q"), "address must be of type str, not int"),  # type: ignore[arg-type]
        (lambda: PrivateName(ID, True), "private_id must be of type int, not bool"),
        (lambda: PrivateName(ID, "5"), r"private_id='5', suffix=None\) has a part of another type"),  # type: ignore[arg-type]
        (lambda: DirectName(1, 2, 3), r"DirectName\(protocol=1, .*\) has a part of another type"),  # type: ignore[arg-type]
        (lambda: PublicName(ID, 5), r"suffix=5\) has a part of another type"),  # type: ignore[arg-type]
        (lambda: PathName("m", "q", "x"), r"queue_type='x', .*\) has .* an unknown keyword"),  # type: ignore[arg-type]
    ],
)
def test_a_part_of_another_type_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_the_elements_may_be_any_iterable() -> None:
    elements = (PublicName(ID), DirectName("os", "a", "q"))
    for given in (list(elements), iter(elements)):
        name = MultipleElementName(given)  # type: ignore[arg-type]
        assert name == MultipleElementName(elements)
        assert hash(name) == hash(MultipleElementName(elements))
        assert name.elements == elements


def test_a_name_cannot_be_changed() -> None:
    name = PublicName(ID)
    with pytest.raises(dataclasses.FrozenInstanceError):
        name.guid = ID  # type: ignore[misc]


def test_an_error_points_at_the_character() -> None:
    with pytest.raises(FormatNameError) as caught:
        parse("DIRECT=TCP:10.0.0.1\\private$\\or\tders")
    assert str(caught.value) == (
        "bad_text: QueueName at character 31: expected a character of a queue name, 1 to 124 of them, found '\\t'"
        " after 'DIRECT=TCP:10.0.0.1\\private$\\or'"
    )
    with pytest.raises(FormatNameError, match=r"found the end after '\.\.\.a\.very\.long"):
        parse("DIRECT=OS:a.very.long.name.of.a.server.example.com")
    assert pickle.loads(pickle.dumps(caught.value)).offset == 31


@pytest.mark.parametrize(
    ("text", "offset", "read"),
    [("DIRECT=OS:a b\\q", 11, parse), ("a b\\q", 1, parse_path_name)],
)
def test_a_wrong_character_in_the_name_of_a_computer(text: str, offset: int, read: Any) -> None:
    with pytest.raises(
        FormatNameError, match=r"expected a character of a computer name \(U\+0021 to U\+007E\)"
    ) as caught:
        read(text)
    assert (caught.value.code, caught.value.offset) == ("bad_text", offset)
    with pytest.raises(FormatNameError, match=r"truncated: .* expected '\\'"):
        read(text.split()[0])


def test_long_addresses() -> None:
    """Bounds of the rules that have some, and a port of any length, which Python would not read as a number."""
    assert parse("DIRECT=OS:" + "c" * 256 + "\\" + "q" * 124 + ";" + "s" * 32)
    for text, offset in (
        ("DIRECT=OS:" + "c" * 257 + "\\q", 266),
        ("DIRECT=HTTP://" + "h" * 257 + "/MSMQ\\q", 270),
        ("DIRECT=OS:c\\" + "q" * 125, 136),
        ("DIRECT=OS:c\\q;" + "s" * 33, 46),
        ("DIRECT=IPX:123456789:1\\q", 19),
        (f"DL={GUID}@" + "d" * 256, 295),
        ("DIRECT=TCP:" + "1:" * 23 + "\\q", 11),
    ):
        with pytest.raises(FormatNameError) as caught:
            parse(text)
        assert (caught.value.code, caught.value.offset) == ("too_large", offset)
    port = "9" * 5_000
    assert parse(f"DIRECT=HTTP://h:{port}/MSMQ\\q") == parse(f"DIRECT=HTTP://h:0{port}/MSMQ\\q")


def test_types_of_members_have_the_names_of_the_kernel() -> None:
    assert get_args(schema.ProtocolName) == schema.PROTOCOLS.names
    assert get_args(schema.QueueTypeName) == schema.QUEUE_TYPES.names
    assert get_args(schema.SuffixName) == schema.SUFFIXES.names
