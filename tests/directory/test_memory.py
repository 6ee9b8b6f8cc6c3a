"""Enterprises that are written down, and what is wrong with them."""

from __future__ import annotations

import json
import threading
import tomllib
from pathlib import Path
from uuid import UUID

import pytest

from msmqwire.directory import (
    Equal,
    MemoryDirectory,
    NotEqual,
    OperatingSystemType,
    Queue,
    QueueManager,
    RoutingLink,
    Site,
)
from msmqwire.directory.document import read_toml
from msmqwire.directory.elements import ELEMENTS
from msmqwire.directory.ldap_schema import DERIVED, MAPPING
from msmqwire.directory.queues import QueueCollection
from msmqwire.errors import DirectoryError
from msmqwire.routing import Router
from tests.directory.enterprise import EXAMPLE

ONE, TWO = UUID(int=1), UUID(int=2)


def written(folder: Path, text: str, name: str = "enterprise.toml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    tables = tomllib.loads(EXAMPLE.read_text("utf-8"))
    path = written(tmp_path, json.dumps(tables), "enterprise.JSON")
    for element in (Site, RoutingLink, QueueManager, Queue):
        expected = [*MemoryDirectory.load(EXAMPLE).read_all(element)]
        assert [*MemoryDirectory.load(path).read_all(element)] == expected
        assert expected


def test_values_of_every_type(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        [[queue_manager]]
        identifier = "00000000-0000-0000-0000-000000000001"
        computer_name = "ÄPFEL"
        security = "AQID"
        operating_system_type = "win_server"
        queue_manager_quota = 4294967295
        foreign_system = true
        site_identifier_list = ["00000000-0000-0000-0000-000000000002", "nord"]
        [[site]]
        identifier = "00000000-0000-0000-0000-00000000000A"
        name = "Nord"
        """,
    )
    machine = MemoryDirectory.load(path).read_directory(QueueManager, [Equal("computer_name", "äpfel")])
    assert machine == QueueManager(
        identifier=ONE,
        computer_name="ÄPFEL",
        security=b"\x01\x02\x03",
        operating_system_type=OperatingSystemType.WIN_SERVER,
        queue_manager_quota=4294967295,
        foreign_system=True,
        site_identifier_list=(TWO, UUID(int=10)),
    )


_MACHINE = '[[queue_manager]]\nidentifier = "00000000-0000-0000-0000-000000000001"\ncomputer_name = "A"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[sites]]", "sites: is not a table of a directory; those are enterprise, connected_network, site"),
        ("site = 3", "site 1: has no attributes"),
        ('[[site]]\nname = "A"', r"site 1 \(A\): identifier: is missing"),
        ('[[site]]\nidentifier = "A"', "site 1: identifier: 'A' is not an identifier such as"),
        (
            '[[site]]\nidentifier = "00000000-0000-0000-0000-00000000000１"',
            "identifier: .* is not an identifier",
        ),
        (
            _MACHINE + "quota = 1",
            r"1 \(A\): quota: is not an attribute; those are identifier, computer_name",
        ),
        (_MACHINE + 'routing_server = "yes"', r"queue_manager 1 \(A\): routing_server: 'yes' is not true or false"),
        (_MACHINE + "journal_quota = true", "journal_quota: True is not an integer"),
        (_MACHINE + "journal_quota = 1.5", "journal_quota: 1.5 is not an integer"),
        (_MACHINE + "full_path = 3", "full_path: 3 is not text"),
        (_MACHINE + 'security = "="', "security: '=' is not base64 text"),
        (_MACHINE + "security = [1]", r"security: \[1\] is not base64 text"),
        (_MACHINE + 'directory_server_type = "best"', "'best' is not one of standalone, backup_site_controller"),
        (_MACHINE + "directory_server_type = []", r"\[\] is not one of standalone"),
        (_MACHINE + 'site_identifier_list = "X"', "site_identifier_list: 'X' is not a list"),
        (_MACHINE + 'site_identifier_list = ["X"]', "'X' is not an identifier, and is the name of no site"),
        (_MACHINE + "site_identifier_list = [{}]", "{} is not an identifier, and is the name of no site"),
        (_MACHINE + 'in_routing_server_identifier_list = ["B", "C"]', r"'B' .* of no queue_manager \(and 1 more\)"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(DirectoryError, match=f"^{path}: .*{message}"):
        MemoryDirectory.load(path)


def test_objects_that_were_read_without_some_attributes() -> None:
    """As those of a directory in LDAP, kept in memory."""
    whole = QueueManager(identifier=UUID(int=1), computer_name="A", qualified_computer_name="a.example")
    part = QueueManager(identifier=UUID(int=2), computer_name="B")
    part = part.only(tuple(name for name in part.attribute_names() if name != "qualified_computer_name"))
    directory = MemoryDirectory([part, whole])
    assert directory.read_directory(QueueManager, [Equal("computer_name", "b")]) == part
    for filters, attributes in (
        ([Equal("computer_name", "b")], ["qualified_computer_name"]),
        ([Equal("qualified_computer_name", "a.example")], ["identifier"]),
        ([NotEqual("qualified_computer_name", "a.example")], None),
    ):
        with pytest.raises(DirectoryError, match="queue_manager B: qualified_computer_name: was not read"):
            directory.read_directory(QueueManager, filters, attributes)
    # Such an object does not end a read
    found = directory.read_all(QueueManager, None, ["qualified_computer_name"])
    with pytest.raises(DirectoryError):
        next(found)
    assert [each.qualified_computer_name for each in found] == ["a.example"]
    router = Router(directory)
    machine = router.get_queue_manager("B")
    assert machine is not None
    assert (machine.computer_name, machine.qualified_computer_name) == ("B", "")


def test_lists_are_kept_as_tuples() -> None:
    """A filter passed over the elements of a list."""
    one = QueueManager(identifier=ONE, computer_name="ONE", site_identifier_list=[TWO])  # type: ignore[arg-type]
    assert one == QueueManager(identifier=ONE, computer_name="ONE", site_identifier_list=(TWO,))
    assert [*MemoryDirectory([one]).read_all(QueueManager, [Equal("site_identifier_list", TWO)])] == [one]


def test_queues_of_a_machine_without_a_name() -> None:
    """There were none."""
    with pytest.raises(ValueError, match=r"no name of QueueManager.* was read"):
        MemoryDirectory.load(EXAMPLE).queues_of(QueueManager.of({"identifier": ONE}))


def test_a_directory_has_its_objects_alone() -> None:
    with pytest.raises(TypeError, match="a dict is not an object of a directory"):
        MemoryDirectory([{"identifier": ONE}])  # type: ignore[list-item]


def test_a_collection_keeps_one_queue_at_a_path() -> None:
    orders, other = Queue(identifier=ONE, pathname="a\\orders"), Queue(identifier=TWO, pathname="a\\other")
    queues = QueueCollection([orders, other])
    with pytest.raises(ValueError, match="exists already"):
        queues.update(Queue(identifier=ONE, pathname="A\\Other"))
    assert (queues.at("a\\orders"), queues.at("a\\other")) == (orders, other)
    moved = Queue(identifier=ONE, pathname="A\\moved")
    queues.update(moved)
    queues.remove(orders)
    assert (queues.at("a\\moved"), len(queues)) == (None, 1)
    queues.add(moved)


def test_a_name_that_two_objects_bear_is_no_reference(tmp_path: Path) -> None:
    sites = "".join(f'[[site]]\nidentifier = "00000000-0000-0000-0000-00000000000{n}"\nname = "X"\n' for n in "23")
    path = written(tmp_path, _MACHINE + 'site_identifier_list = ["x"]\n' + sites)
    with pytest.raises(DirectoryError, match="'x' is not an identifier, and is the name of more than one site"):
        MemoryDirectory.load(path)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.toml", b"[[site", "at end of document"),
        ("a.toml", b"\n" + b"a." * 20_000 + b"a = 1", r"a key has more than 32 parts \(at line 2\)"),
        ("a.toml", b"[[" + b"'a' . " * 20_000 + b"a]]", "a key has more than 32 parts"),
        ("a.toml", b"a = {" + b'"a.".' * 20_000 + b"a = 1}", "a key has more than 32 parts"),
        ("a.json", b"{", "Expecting property name"),
        ("a.json", b'{"site": {}, "queue": {}, "site": {}}', "'site' is there more than once"),
        ("a.json", b'{"site": {"name": "A", "name": "B"}}', "'name' is there more than once"),
        ("a.json", b"[]", "is not an object of tables such as enterprise"),
        ("a.json", b"[" * 100_000, "recursion"),
        ("a.toml", b"\xff\xfe", "is not UTF-8 text; expected TOML or JSON"),
        ("a.json", b'{"site": [{"identifier": 1e400}]}', "inf is not an identifier"),
    ],
)
def test_files_of_something_else(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DirectoryError, match=message):
        MemoryDirectory.load(path)


@pytest.mark.parametrize(
    "text",
    [
        f"{'a.' * 31}a = 1",
        f"""'{"a." * 99}' = "{"a." * 99}" # {"a." * 99}""",
        f"""[{"a." * 31}"{"b." * 99}"]\na = ['{"a." * 99}']""",
        f'''a = """\n{"a." * 99}\\""" {"b." * 99}""\n{"a." * 99}"""''',
        f"""a = '''\n{"a." * 99}\\'' {"b." * 99}\n{"a." * 99}'''""",
        "\n".join(f"{'a.' * 20}a{number} = {number}.5" for number in range(100)),
    ],
)
def test_dots_that_make_no_deep_key(text: str) -> None:
    assert read_toml(text) == tomllib.loads(text)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    assert [*MemoryDirectory.load(written(tmp_path, "\ufeff{}", "a.json")).read_all(Site)] == []


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        MemoryDirectory.load(tmp_path / "none.toml")


class Counted(Site):
    """A site that counts how often anybody looks at its name."""

    __slots__ = ()
    looks = 0

    def __getattribute__(self, name: str) -> object:
        if name == "name":
            Counted.looks += 1
        return object.__getattribute__(self, name)


def test_lookups_do_not_scan() -> None:
    directory = MemoryDirectory(Counted(identifier=UUID(int=number), name=f"site{number}") for number in range(1000))
    question = [Equal("name", "site500"), NotEqual("name", "nobody")]
    assert directory.read_directory(Counted, question) is not None
    Counted.looks = 0
    for _ in range(10):
        found = directory.read_directory(Counted, question)
        assert found is not None
        assert found.identifier == UUID(int=500)
    assert Counted.looks == 20


def test_threads_may_read_while_an_index_is_made() -> None:
    directory = MemoryDirectory(Site(identifier=UUID(int=number), name=f"site{number}") for number in range(2000))
    start, wrong = threading.Barrier(8), []

    def read(number: int) -> None:
        start.wait()
        found = directory.read_directory(Site, [Equal("name", f"site{number}")])
        if found is None or found.identifier.int != number:
            wrong.append(number)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_manual_has_every_attribute() -> None:
    page = (EXAMPLE.parent.parent / "docs" / "directory.md").read_text("utf-8")
    for table, element in ELEMENTS.items():
        section = page.split(f"\n#### {table}\n")[1].split("\n#")[0]
        rows = [
            [cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| `")
        ]
        assert [row[0] for row in rows] == [f"`{name}`" for name in element.attribute_names()]
        for name, _, _, where in rows:
            row = MAPPING.get(element, {}).get(name.strip("`"))
            derived = name.strip("`") in DERIVED.get(element, {})
            assert where == f"`{row.name}`" if row else (where == "-") != derived


def test_a_name_that_is_twice_among_many(tmp_path: Path) -> None:
    """Each name is counted once: this took minutes."""
    path = tmp_path / "enterprise.json"
    path.write_text("{" + "".join(f'"{number}": 1, ' for number in range(200_000)) + '"z": 1, "z": 2}')
    with pytest.raises(DirectoryError, match="'z' is there more than once"):
        MemoryDirectory.load(path)
