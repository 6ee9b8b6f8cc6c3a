"""An LDAP server in trouble, and what only an LDAP server can get wrong."""

from __future__ import annotations

import base64
import dataclasses
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from msmqwire.directory import (
    ConnectedNetwork,
    Directory,
    Enterprise,
    Equal,
    LdapDirectory,
    MemoryDirectory,
    Queue,
    QueueManager,
    QueueManagerDirectory,
    RoutingLink,
    Site,
    ldap_entry,
)
from msmqwire.directory.checking import read_objects
from msmqwire.directory.ldap_connection import Entry, LdapConnection, relative_names
from msmqwire.errors import DirectoryError, DirectoryNotConnected
from msmqwire.notification.processor import NotificationProcessor
from msmqwire.routing import Router, find_route
from tests.cli.support import EXAMPLES, msmqwire
from tests.directory import slapd
from tests.directory.enterprise import ROOT, enterprise, ldif
from tests.directory.proxy import Proxy, in_front_of

ORDERS = UUID("0e000000-0000-4000-8000-000000000001")


@pytest.fixture
def proxy(server: str) -> Iterator[Proxy]:
    with in_front_of(server) as proxy:
        yield proxy


@pytest.fixture
def directory(proxy: Proxy) -> Iterator[LdapDirectory]:
    with LdapDirectory(proxy.url, timeout=1, page_size=2) as ldap:
        yield ldap


def test_a_server_that_is_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    directory = LdapDirectory(f"ldap://127.0.0.1:{port}", timeout=1)
    for ask in (directory.read_directory, directory.read_all, directory.read_directory_begin):
        with pytest.raises(DirectoryNotConnected, match=f"ldap://127.0.0.1:{port}: .*refused"):
            ask(Site)


@pytest.mark.parametrize("patience", [0, 14, 300, 2000])
@pytest.mark.parametrize("hangs_up", [True, False], ids=["drops", "stalls"])
def test_a_server_that_stops_in_mid_answer(
    directory: LdapDirectory, proxy: Proxy, patience: int, hangs_up: bool
) -> None:
    proxy.hangs_up = hangs_up
    proxy.patience = [patience, patience]
    with pytest.raises(DirectoryNotConnected, match=r"terminated|timed out"):
        directory.read_all(QueueManager)
    proxy.patience.clear()
    # Of half an answer nothing is kept, and the next question finds the server again.
    assert len([*directory.read_all(QueueManager)]) == 10


def test_a_server_that_dropped_an_idle_connection_is_asked_again(directory: LdapDirectory, proxy: Proxy) -> None:
    first = [*directory.read_all(Site)]
    proxy.drop()
    assert [*directory.read_all(Site)] == first
    assert proxy.connections == 2


def test_a_connection_is_kept(directory: LdapDirectory, proxy: Proxy) -> None:
    for _ in range(3):
        assert directory.read_directory(Queue, [Equal("identifier", ORDERS)]) is not None
    assert proxy.connections == 1


@pytest.mark.parametrize("many", [1, 3, 1000])
def test_objects_that_others_name_are_read_one_by_one_or_all_at_once(
    server: str, memory: MemoryDirectory, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    asked: list[bool] = []

    def ask(self: LdapConnection, *question: Any, below: bool = True) -> Any:
        asked.append(below)
        return original(self, *question, below=below)

    original = LdapConnection.ask
    monkeypatch.setattr(LdapConnection, "ask", ask)
    monkeypatch.setattr(ldap_entry, "MANY", many)
    with LdapDirectory(server, base=ROOT) as directory:
        names = ["identifier", "site1_identifier", "site2_identifier", "site_gate_identifier_list"]
        found = [*directory.read_all(RoutingLink, attributes=names)]
    assert found == [*memory.read_all(RoutingLink, attributes=names)]
    # The links; then four sites and five gates, or as many of each as it takes to read the others at once.
    assert asked.count(True) == (3 if many < 4 else 1)
    assert asked.count(False) == (2 * (many - 1) if many < 4 else 9)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n", b"0\x84\xff\xff\xff\xff", b"0\x03abc", b"0\x00"])
def test_a_server_of_something_else(answer: bytes) -> None:
    def serve() -> None:
        client, _ = listener.accept()
        with client:
            client.recv(4096)
            client.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        directory = LdapDirectory(f"ldap://127.0.0.1:{listener.getsockname()[1]}", timeout=1)
        with pytest.raises(DirectoryNotConnected):
            directory.read_directory(Site)
        thread.join()


def test_limits(server: str) -> None:
    with LdapDirectory(server, size_limit=3, page_size=2) as directory:
        with pytest.raises(DirectoryError, match="more than 3 objects"):
            directory.read_all(Site)
        assert directory.read_directory(Site, [Equal("name", "Basel")]) is not None


@pytest.mark.parametrize("limit", ["timeout", "time_limit", "size_limit", "byte_limit", "page_size"])
def test_limits_that_are_none(limit: str) -> None:
    limits: dict[str, Any] = {limit: 0}
    with pytest.raises(ValueError, match="must be 1 or more"):
        LdapDirectory("ldap://localhost", **limits)


def test_a_wrong_address_and_half_a_user() -> None:
    with pytest.raises(ValueError, match=r"'localhost' is not a URL such as ldap://host:389"):
        LdapDirectory("localhost")
    with pytest.raises(ValueError, match="given together"):
        LdapDirectory("ldap://localhost", user="cn=admin")
    with pytest.raises(ValueError, match="start_tls is for ldap:"):
        LdapDirectory("ldaps://localhost", start_tls=True)


def test_a_url_may_end_in_a_slash(server: str) -> None:
    with LdapDirectory(f"{server}/") as directory:
        assert len([*directory.read_all(Site)]) == 4


def _resolving(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> None:
    """Give every name these addresses."""

    def found(_: str, port: int, *__: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port)) for host in hosts]

    monkeypatch.setattr(socket, "getaddrinfo", found)


def test_of_several_addresses_one_that_answers_is_enough(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a domain, which has the addresses of all its servers."""
    port = urlsplit(server).port
    _resolving(monkeypatch, "127.0.0.2", "127.0.0.3", "127.0.0.1")
    with LdapDirectory(f"ldap://contoso.example:{port}") as directory:
        assert len([*directory.read_all(Site)]) == 4
    _resolving(monkeypatch, "127.0.0.2", "127.0.0.3")
    with (
        LdapDirectory(f"ldap://contoso.example:{port}") as directory,
        pytest.raises(DirectoryNotConnected) as caught,
    ):
        directory.read_all(Site)
    said = "socket connection error while opening: [Errno 111] Connection refused"
    assert str(caught.value) == f"ldap://contoso.example:{port}: {said}"  # one line, not a list of exceptions


@pytest.mark.parametrize(
    "url", ["ldap://", " ldap://dc1", "ldap:///", "ldap://:389", "ldap://dc1:x", "ldap://dc1:99999", "ldap://[::1", "ldap://dc1/DC=x",
            "ldap://dc1?x"]
)  # fmt: skip
def test_no_url_of_a_server(url: str) -> None:
    with pytest.raises(ValueError, match="is not a URL such as ldap://host:389"):
        LdapDirectory(url)


def test_a_user(server: str) -> None:
    user = f"cn=admin,{ROOT}"
    with LdapDirectory(server, user=user, password="secret", password_in_clear=True) as directory:
        assert len([*directory.read_all(Site)]) == 4
    with pytest.raises(DirectoryNotConnected, match="invalidCredentials"):
        LdapDirectory(server, user=user, password="wrong", password_in_clear=True).read_directory(Site)


def test_referrals_are_not_followed(server: str) -> None:
    with LdapDirectory(server, base="dc=elsewhere") as directory, pytest.raises(DirectoryError, match="referral"):
        directory.read_all(QueueManager)


@pytest.mark.parametrize("base", [f"dc=nowhere,{ROOT}", "contoso"])
def test_a_root_domain_that_is_not_there_is_no_empty_directory(server: str, base: str) -> None:
    with LdapDirectory(server, base=base) as directory, pytest.raises(DirectoryError, match=f"there is no {base}"):
        directory.read_all(QueueManager)
    done = msmqwire("directory", "check", server, env={"MSMQWIRE_LDAP_BASE": base})
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"msmqwire: {server}: there is no {base}, the root domain\n"


def test_variables_without_a_value_are_not_set(server: str) -> None:
    names = ("USER", "PASSWORD", "BASE", "CA_FILE")
    done = msmqwire("directory", "check", server, env={f"MSMQWIRE_LDAP_{name}": "" for name in names})
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"24 objects: no findings\n"


@pytest.mark.parametrize(
    ("url", "environment", "complaint"),
    [
        ("ldap://a:s3cret@dc1", {}, "a URL with a user or a password is refused: pass user= and password=, in the "
         "environment as MSMQWIRE_LDAP_USER and MSMQWIRE_LDAP_PASSWORD"),
        ("ldap://dc1", {"MSMQWIRE_LDAP_USER": "a"}, "user and password must be given together, in the environment as "
         "MSMQWIRE_LDAP_USER and MSMQWIRE_LDAP_PASSWORD"),
        ("ldaps://dc1", {"MSMQWIRE_LDAP_CA_FILE": "/none.pem"},
         "ldaps://dc1: the file of authorities, /none.pem, does not exist"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_environment_is_said(url: str, environment: dict[str, str], complaint: str) -> None:
    done = msmqwire("directory", "check", url, env=environment)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (1, b"", f"msmqwire: {complaint}\n")


def test_notifications_of_differences_from_a_file(server: str) -> None:
    """Each of the two directories has attributes that the other has not: connected networks, security descriptors."""
    where = ("--host", "127.0.0.1", "--port", "1", "--timeout", "0.1")
    done = msmqwire("notify", "--before", EXAMPLES / "enterprise.toml", "--directory", server, *where)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"cannot connect to 127.0.0.1" in done.stderr
    assert b"was not read" not in done.stderr
    done = msmqwire("notify", "--before", server, "--directory", server, *where)
    assert (done.returncode, done.stderr) == (0, b"0 notifications acknowledged by 0 queue managers\n")


def test_tls(tmp_path: Path) -> None:
    made = slapd.certificate(tmp_path)
    with slapd.running(tmp_path, ldif(enterprise()), certificate=made) as url:
        with LdapDirectory(url, start_tls=True, ca_file=str(made.certificate)) as directory:
            assert len([*directory.read_all(Site)]) == 4
        with pytest.raises(DirectoryNotConnected, match="certificate"):
            LdapDirectory(url, start_tls=True).read_directory(Site)
        by_number = url.replace("localhost", "127.0.0.1")
        with pytest.raises(DirectoryNotConnected, match=r"127\.0\.0\.1"):
            LdapDirectory(by_number, start_tls=True, ca_file=str(made.certificate)).read_directory(Site)


def test_a_password_is_not_sent_to_a_server_that_will_not_start_tls(server: str) -> None:
    directory = LdapDirectory(server, start_tls=True, user=f"cn=admin,{ROOT}", password="secret")
    with pytest.raises(DirectoryNotConnected, match="startTLS failed"):
        directory.read_directory(Site)


def test_what_active_directory_does_not_have(server: str) -> None:
    with LdapDirectory(server) as directory:
        with pytest.raises(DirectoryError, match="no connected_network_identifier_list of QueueManager"):
            directory.read_directory(QueueManager, attributes=["connected_network_identifier_list"])
        with pytest.raises(DirectoryError, match="no primary_site_controller of Site"):
            directory.read_all(Site, [Equal("primary_site_controller", "ZURGATE1")])
        with pytest.raises(DirectoryError, match="no ConnectedNetwork"):
            directory.read_directory_begin(ConnectedNetwork)
        machine = directory.read_directory(QueueManager)
        with pytest.raises(AttributeError, match="was not read"):
            machine.connected_network_identifier_list  # type: ignore[union-attr]  # noqa: B018


def _entry(path: str, *lines: str) -> str:
    return "\n".join([f"dn: {path},{ROOT}", *lines]) + "\n\n"


def _identifier(number: int) -> str:
    return f"objectGUID:: {base64.b64encode(UUID(int=number).bytes_le).decode()}"


_LINKS = "cn=MsmqServices,cn=Services,cn=Configuration"
_LEDGER = f"cn=msmq,cn=LEDGER,cn=Computers,{ROOT}"
_SITES = f"cn=Sites,cn=Configuration,{ROOT}"
_ENDS = (f"mSMQSite1: cn=Zurich,{_SITES}", f"mSMQSite2: cn=Basel,{_SITES}")

#: Entries that are wrong, between which a right one stands.
_WRONG = (
    _entry(f"cn=no gate,{_LINKS}", "objectClass: mSMQSiteLink", "mSMQCost: 1", _identifier(21), *_ENDS,
           f"mSMQSiteGates: cn=nobody,{ROOT}")
    + _entry(f"cn=no cost,{_LINKS}", "objectClass: mSMQSiteLink", _identifier(22), *_ENDS)
    + _entry(f"cn=right,{_LINKS}", "objectClass: mSMQSiteLink", "mSMQCost: 5", _identifier(23), *_ENDS)
    + _entry(f"cn=no site,{_LINKS}", "objectClass: mSMQSiteLink", "mSMQCost: 1", _identifier(24), _ENDS[0],
             f"mSMQSite2: {_LEDGER}")
    + _entry("cn=Rome,cn=Sites,cn=Configuration", "objectClass: site", _identifier(25))
    + _entry("cn=WIDOW,cn=Computers", "objectClass: computer")
    + _entry("cn=msmq,cn=WIDOW,cn=Computers", "objectClass: mSMQConfiguration", _identifier(26), "mSMQOSType: 999",
             f"mSMQOutRoutingServers: cn=nobody,{ROOT}", f"mSMQOutRoutingServers: {_LEDGER}")
    + _entry("cn=here", "objectClass: mSMQQueue", _identifier(27))
)  # fmt: skip


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LdapDirectory]:
    everything = f"{ldif(enterprise())}\n{_WRONG}"
    with slapd.running(tmp_path_factory.mktemp("wrong"), everything) as url, LdapDirectory(url) as directory:
        yield directory


def test_a_wrong_object_is_named_and_does_not_end_the_read(wrong: LdapDirectory) -> None:
    handle = wrong.read_directory_begin(RoutingLink)
    costs, said = [], []
    while True:
        try:
            link = wrong.read_directory_next(handle)
        except DirectoryError as error:
            said.append(str(error))
            continue
        if link is None:
            break
        costs.append(link.actual_cost)  # type: ignore[attr-defined]
    assert costs == [3, 2, 10, 25, 5]
    assert said == [
        f"cn=no gate,{_LINKS},{ROOT}: site_gate_identifier_list: there is no object cn=nobody,{ROOT}",
        f"cn=no cost,{_LINKS},{ROOT}: actual_cost: is not set",
        f"cn=no site,{_LINKS},{ROOT}: site2_identifier: there is no object {_LEDGER}",
    ]


def test_what_is_not_set_is_an_error_if_it_was_asked_for(wrong: LdapDirectory) -> None:
    rome = [Equal("name", "Rome")]
    site = wrong.read_directory(Site, rome)
    assert site is not None
    assert (site.name, site.inter_site_replication_interval) == ("Rome", 10)
    for attribute in ("migrated_from_msmq10", "security"):
        with pytest.raises(AttributeError, match="was not read"):
            getattr(site, attribute)
        with pytest.raises(DirectoryError, match=f"^cn=Rome,.*: {attribute}: is not set$"):
            wrong.read_directory(Site, rome, ["name", attribute])
    with pytest.raises(DirectoryError, match="qualified_computer_name: is not set"):
        wrong.read_directory(QueueManager, [Equal("computer_name", "WIDOW")], ["qualified_computer_name"])


def test_a_link_without_its_gate_is_reported_by_the_check_and_skipped_by_routing(tmp_path: Path) -> None:
    gone = _entry(f"cn=gone,{_LINKS}", "objectClass: mSMQSiteLink", "mSMQCost: 1", _identifier(21), *_ENDS,
                  f"mSMQSiteGates: cn=nobody,{ROOT}")  # fmt: skip
    with slapd.running(tmp_path, f"{ldif(enterprise())}\n{gone}") as url:
        with LdapDirectory(url) as directory:
            router, expected = Router(directory, max_age=60.0), Router(MemoryDirectory(enterprise()))
            machines = list(directory.read_all(QueueManager))
            tables = [router.routing_table(each.identifier) for each in machines]
            assert tables == [expected.routing_table(each.identifier) for each in machines]
            assert any(tables)
        done = msmqwire("directory", "check", url)
    assert done.returncode == 2
    assert done.stdout.decode().splitlines()[0] == (
        f"cn=gone,{_LINKS},{ROOT}: site_gate_identifier_list: there is no object cn=nobody,{ROOT}"
    )


def test_a_routing_server_that_is_missing_is_reported_by_the_check(tmp_path: Path) -> None:
    """Reads pass over it ([MS-MQDSSM] 3.1.6.11), so the machine has none of it in its lists."""
    machine = "cn=msmq,cn=WIDOW,cn=Computers"
    gone = [f"mSMQ{way}RoutingServers: cn={name},{ROOT}" for way, name in (("Out", "a"), ("Out", "b"), ("In", "a"))]
    widow = _entry("cn=WIDOW,cn=Computers", "objectClass: computer") + _entry(
        machine, "objectClass: mSMQConfiguration", _identifier(26), "whenCreated: 20240101000000.0Z",
        "whenChanged: 20240101000000.0Z", f"mSMQOutRoutingServers: {_LEDGER}", *gone,
    )  # fmt: skip
    with slapd.running(tmp_path, f"{ldif(enterprise())}\n{widow}") as url:
        done = msmqwire("directory", "check", url)
        with LdapDirectory(url) as directory:
            before = list(directory.read_all(QueueManager))
            document = read_objects(directory)
    assert done.returncode == 2
    assert done.stdout.decode().splitlines()[:3] == [
        f"{machine},{ROOT}: {way}_routing_server_identifier_list: there is no object cn={name},{ROOT}"
        for way, name in (("out", "a"), ("out", "b"), ("in", "a"))
    ]
    assert [str(problem) for problem in document.problems] == done.stdout.decode().splitlines()[:3]
    assert [each for each in document.objects if isinstance(each, QueueManager)] == before
    assert before[-1].out_routing_server_identifier_list == (UUID("ba000000-0000-4000-8000-0000000000c7"),)


def test_a_default_time_without_end(tmp_path: Path) -> None:
    """0xFFFFFFFF is -1 in Active Directory, whose integers are signed."""
    data = ldif(enterprise()).replace("mSMQLongLived:: NjAw", "mSMQLongLived: -1")
    with slapd.running(tmp_path, data) as url:
        with LdapDirectory(url) as directory:
            found = directory.read_directory(Enterprise, [Equal("default_time_to_live", 0xFFFFFFFF)])
        assert found is not None
        assert found.default_time_to_live == 0xFFFFFFFF
        assert msmqwire("directory", "check", url).returncode == 0


def test_a_link_is_usable_while_one_of_its_gates_exists(tmp_path: Path) -> None:
    gates = [f"mSMQSiteGates: {name},{ROOT}" for name in ("cn=nobody", "cn=msmq,cn=BASGATE,cn=Computers")]
    half = _entry(f"cn=half,{_LINKS}", "objectClass: mSMQSiteLink", "mSMQCost: 1", _identifier(21), *_ENDS, *gates)
    (first,) = (each for each in enterprise() if isinstance(each, RoutingLink) and each.actual_cost == 3)
    identifiers = (UUID(int=404), UUID("ba000000-0000-4000-8000-0000000000b1"))
    cheaper = dataclasses.replace(first, identifier=UUID(int=405), actual_cost=1, site_gate_identifier_list=identifiers)
    with slapd.running(tmp_path, f"{ldif(enterprise())}\n{half}") as url:
        with LdapDirectory(url) as directory:
            router, expected = Router(directory, max_age=60.0), Router(MemoryDirectory([*enterprise(), cheaper]))
            tables = [router.routing_table(each.identifier) for each in directory.read_all(QueueManager)]
            assert tables == [expected.routing_table(each.identifier) for each in directory.read_all(QueueManager)]
            assert 1 in {row.cost for table in tables for row in table.rows()}
            hop = find_route(router, "basgate.contoso.example", "LEDGER").hops[0]
            assert hop.source.qualified_computer_name == "basgate.contoso.example"
        done = msmqwire("directory", "check", url)
    assert f"cn=half,{_LINKS},{ROOT}: site_gate_identifier_list: there is no object cn=nobody,{ROOT}" in (
        done.stdout.decode().splitlines()
    )


def test_the_commands_read_a_directory_in_ldap(server: str) -> None:
    file = EXAMPLES / "enterprise.toml"
    queue = "PUBLIC=0e000000-0000-4000-8000-000000000001"
    for command in (("route", "KIOSK7", "LEDGER", "-T", "json"), ("resolve", queue, "-T", "json")):
        over_ldap, over_file = (msmqwire(*command, "--directory", each) for each in (server, file))
        assert over_ldap.returncode == 0, over_ldap.stderr
        assert over_ldap.stdout == over_file.stdout
    for url, said in (("ldap://a:b@localhost", b"pass user= and password="), ("ldap://127.0.0.1:1", b"refused")):
        done = msmqwire("route", "KIOSK7", "LEDGER", "--directory", url)
        assert done.returncode == 1
        assert said in done.stderr


def test_values_that_cannot_be(wrong: LdapDirectory) -> None:
    widow = [Equal("identifier", UUID(int=26))]
    with pytest.raises(DirectoryError, match="mSMQOSType: b'999' is not a valid operating_system_type"):
        wrong.read_directory(QueueManager, widow)
    with pytest.raises(DirectoryError, match="is not a valid place for an object"):
        wrong.read_directory(Queue, [Equal("identifier", UUID(int=27))], ["pathname"])


@pytest.mark.parametrize(
    ("attribute", "values"),
    [
        ("mSMQDsServices", {"mSMQDsServices": [b"maybe"]}),
        ("mSMQServiceType", {"mSMQDsServices": [b"TRUE"], "mSMQServiceType": [b"many"]}),
    ],
)
def test_values_for_the_type_of_a_directory_server(
    monkeypatch: pytest.MonkeyPatch, attribute: str, values: dict[str, list[bytes]]
) -> None:
    entry = Entry(f"cn=msmq,cn=HERE,{ROOT}", values)
    monkeypatch.setattr(LdapConnection, "ask", lambda *_, **__: [entry])
    directory = LdapDirectory("ldap://localhost", base=ROOT)
    with pytest.raises(DirectoryError, match=f"{attribute}: b'ma.*' is not a valid directory_server"):
        directory.read_directory(QueueManager, attributes=["directory_server_type"])


def test_a_routing_server_that_is_not_there_is_passed_over(wrong: LdapDirectory) -> None:
    attribute = "out_routing_server_identifier_list"
    machine = wrong.read_directory(QueueManager, [Equal("computer_name", "widow")], [attribute])
    assert machine is not None
    assert machine.out_routing_server_identifier_list == (UUID("ba000000-0000-4000-8000-0000000000c7"),)


def test_a_processor_takes_a_machine_and_its_queues_as_they_are_read(directory: LdapDirectory) -> None:
    machine = directory.read_directory(QueueManager, [Equal("computer_name", "ledger")])
    assert machine is not None
    queues = directory.queues_of(machine)
    # Without its place in the tree, by its name
    for other in (
        machine.only(("identifier", "computer_name")),
        QueueManager(identifier=machine.identifier, computer_name="Ledger"),
    ):
        assert directory.queues_of(other) == queues
    expected = [each for each in directory.read_all(Queue) if each.pathname.lower().startswith("ledger\\")]
    assert queues == expected
    assert queues
    processor = NotificationProcessor(machine, queues, directory=directory)
    assert {each.identifier for each in processor.queues} == {each.identifier for each in queues}


@pytest.mark.long
def test_a_hundred_thousand_entries(tmp_path: Path) -> None:
    queues = (
        _entry(f"cn=q{number},cn=msmq,cn=LEDGER,cn=Computers", "objectClass: mSMQQueue", _identifier(number << 64))
        for number in range(1, 100_001)
    )
    everything = ldif(enterprise()) + "\n" + "".join(queues)
    with slapd.running(tmp_path, everything) as url, LdapDirectory(url) as directory:
        found = {each.identifier for each in directory.read_all(Queue, attributes=["identifier"])}
        assert len(found) == 100_005
        # One of them is found without the others.
        queue = directory.read_directory(Queue, [Equal("pathname", "ledger\\q77777")], ["identifier"])
        assert queue is not None
        assert queue.identifier == UUID(int=77777 << 64)


def test_offline_and_online_again(server: str, memory: MemoryDirectory) -> None:
    machine = memory.read_directory(QueueManager, [Equal("computer_name", "LEDGER")])
    queue = memory.read_directory(Queue, [Equal("identifier", ORDERS)], ["identifier", "pathname", "transactional"])
    assert machine is not None
    assert queue is not None
    with in_front_of(server) as proxy, LdapDirectory(proxy.url, timeout=1) as ldap:
        directory: Directory = QueueManagerDirectory(ldap, machine, [queue])
        assert isinstance(directory, QueueManagerDirectory)
        proxy.patience = [0] * 8
        with pytest.raises(DirectoryNotConnected):
            directory.read_directory(Enterprise)
        assert directory.offline
        assert directory.read_directory(QueueManager, [Equal("identifier", machine.identifier)]) == machine
        assert not directory.check_online()
        proxy.patience.clear()
        assert directory.check_online()
        assert directory.read_directory(Enterprise) is not None
        # What was known is as the directory has it now.
        assert next(iter(directory.queues)).label == "Orders of the day"


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ldap3", None)
    with pytest.raises(ImportError, match=r"needs ldap3, which is not installed: pip install 'ldap3"):
        LdapDirectory("ldap://localhost")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("CN=msmq,CN=Z\\C3\\BCRICH,DC=x", ["msmq", "ZüRICH", "x"]),
        ("CN=a\\,b\\+c\\\\d\\ ,DC=x", ["a,b+c\\d ", "x"]),
        ("cn=a\\2Cb,dc=x", ["a,b", "x"]),
    ],
)
def test_relative_names(name: str, parts: list[str]) -> None:
    assert relative_names(name) == parts
