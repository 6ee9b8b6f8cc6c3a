"""Answers of a hostile or an overloaded LDAP server: every read ends, and none is silently incomplete."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator

import pytest

from msmqwire.directory import Equal, LdapDirectory, MemoryDirectory, Queue, QueueManager, RoutingLink, Site
from msmqwire.directory.ldap_connection import _Limits
from msmqwire.errors import DirectoryError, DirectoryNotConnected

#: The bytes that a server sends for one search, given the number of the request.
Answer = Callable[[int], Iterator[bytes]]


def tlv(tag: int, *parts: bytes) -> bytes:
    """An element of BER."""
    body = b"".join(parts)
    return bytes([tag, 0x84]) + len(body).to_bytes(4, "big") + body


def message(number: int, operation: bytes, controls: bytes = b"") -> bytes:
    return tlv(0x30, tlv(2, number.to_bytes(4, "big")), operation, controls)


def result(tag: int, code: int, *more: bytes) -> bytes:
    return tlv(tag, tlv(0x0A, bytes([code])), tlv(4), tlv(4), *more)


def done(number: int, code: int = 0, *more: bytes) -> bytes:
    return message(number, result(0x65, code, *more))


def entry(number: int) -> bytes:
    name = tlv(0x30, tlv(4, b"cn"), tlv(0x31, tlv(4, b"North")))
    return message(number, tlv(0x64, tlv(4, b"cn=North,dc=x"), tlv(0x30, name)))


def reference(number: int, url: bytes) -> bytes:
    return message(number, tlv(0x73, tlv(4, url)))


def page(number: int) -> bytes:
    """The end of an empty page, after which there is another."""
    value = tlv(0x30, tlv(2, b"\0"), tlv(4, b"more"))
    return message(number, result(0x65, 0), tlv(0xA0, tlv(0x30, tlv(4, b"1.2.840.113556.1.4.319"), tlv(4, value))))


@contextlib.contextmanager
def server(answer: Answer) -> Iterator[str]:
    """The URL of a server that accepts every user and answers every search like this."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client, contextlib.suppress(OSError):
                    while request := client.recv(65536):
                        start = 4 + (request[1] & 0x7F if request[1] & 0x80 else 0)
                        end = start + request[start - 1]
                        number = int.from_bytes(request[start:end], "big")
                        if request[end] == 0x60:
                            client.sendall(message(number, result(0x61, 0)))
                            continue
                        for part in answer(number):
                            client.sendall(part)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"ldap://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


class Clock:
    """The time of the connection, which passes as the server sends: no test waits for a deadline."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def during(self, parts: Iterable[bytes], seconds: float) -> Iterator[bytes]:
        """So many seconds pass before each part."""
        for part in parts:
            self.now += seconds
            yield part


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("msmqwire.directory.ldap_connection.time", made)
    return made


def read(answer: Answer, **options: int) -> list[str]:
    with server(answer) as url, LdapDirectory(url, base="dc=x", **options) as directory:  # type: ignore[arg-type]
        return [each.name for each in directory.read_all(Site, attributes=["name"])]


def test_the_server_of_these_tests_is_understood() -> None:
    assert read(lambda number: iter([entry(number), entry(number), done(number)])) == ["North", "North"]


@pytest.mark.parametrize("asked", [b"rootDomainNamingContext", b"cn"])
def test_a_server_that_does_not_name_its_root_is_refused(asked: bytes) -> None:
    """It sends the attribute without values, or another one."""
    root = tlv(0x64, tlv(4), tlv(0x30, tlv(0x30, tlv(4, asked), tlv(0x31))))
    with (
        server(lambda number: iter([message(number, root), done(number)])) as url,
        LdapDirectory(url) as directory,
        pytest.raises(DirectoryError, match=f"{url}.* does not name its root domain: pass base="),
    ):
        directory.read_all(Site, attributes=["name"])


def test_a_root_that_is_no_text_is_refused() -> None:
    name = tlv(0x30, tlv(4, b"rootDomainNamingContext"), tlv(0x31, tlv(4, b"dc=\xff")))
    root = tlv(0x64, tlv(4), tlv(0x30, name))
    with (
        server(lambda number: iter([message(number, root), done(number)])) as url,
        LdapDirectory(url) as directory,
        pytest.raises(DirectoryError, match=r"rootDomainNamingContext b'dc=\\xff' is not UTF-8"),
    ):
        directory.read_all(Site, attributes=["name"])


def test_an_object_without_its_identifier_counts_as_missing() -> None:
    """ObjectGUID has no values."""
    site = tlv(0x30, tlv(4, b"mSMQSite1"), tlv(0x31, tlv(4, b"cn=North,dc=x")))
    identifier = tlv(0x30, tlv(4, b"objectGUID"), tlv(0x31))
    link = tlv(0x64, tlv(4, b"cn=North,dc=x"), tlv(0x30, site, identifier))
    with (
        server(lambda number: iter([message(number, link), done(number)])) as url,
        LdapDirectory(url, base="dc=x") as directory,
        pytest.raises(DirectoryError, match="site1_identifier: there is no object cn=North,dc=x"),
    ):
        directory.read_directory(RoutingLink, [], ["site1_identifier"])


@pytest.mark.parametrize(
    ("code", "name"), [(3, "timeLimitExceeded"), (4, "sizeLimitExceeded"), (11, "adminLimitExceeded"), (10, "referral")]
)
def test_an_incomplete_answer_is_an_error(code: int, name: str) -> None:
    referral = [tlv(0xA3, tlv(4, b"ldap://other.example/dc=x"))] if code == 10 else []
    with pytest.raises(DirectoryError, match=name):
        read(lambda number: iter([entry(number), done(number, code, *referral)]))


def test_a_continuation_reference_is_an_error() -> None:
    url = b"ldap://emea.contoso.example/DC=emea,DC=x"
    with pytest.raises(DirectoryError, match=f"references are not followed: {url.decode()}"):
        read(lambda number: iter([entry(number), reference(number, url), done(number)]))


@pytest.mark.parametrize(
    "name", ["CN=Configuration,DC=x", "DC=DomainDnsZones,DC=x", "DC=ForestDnsZones,DC=x", "CN%3DConfiguration,DC=x"]
)
def test_references_to_partitions_without_machines_do_not_count(name: str) -> None:
    url = f"ldap://dc1.example/{name}".encode()
    assert read(lambda number: iter([reference(number, url), entry(number), done(number)])) == ["North"]


def test_references_are_counted_while_they_arrive() -> None:
    url = b"ldap://dc1.example/CN=Configuration,DC=x"
    with pytest.raises(DirectoryError, match="references are not followed"):
        read(lambda number: itertools.repeat(reference(number, url)))


def test_entries_are_counted_while_they_arrive() -> None:
    sent = 0

    def endless(number: int) -> Iterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield entry(number)

    with pytest.raises(DirectoryError, match="more than 1,000 objects"):
        read(endless, size_limit=1000)
    assert sent < 1_000_000


def test_bytes_are_counted_while_they_arrive() -> None:
    def huge(number: int) -> Iterator[bytes]:
        yield message(number, tlv(0x64, b"x" * 70_000))[:6]
        yield from itertools.repeat(b"\0" * 4096)

    with pytest.raises(DirectoryError, match="an answer of more than 65,536 bytes"):
        read(huge, byte_limit=65_536)


def test_an_answer_may_have_as_many_bytes_as_are_allowed() -> None:
    limits = _Limits(60, 10)
    limits.take(4)
    limits.take(6)
    with pytest.raises(OSError, match="an answer of more than 10 bytes"):
        limits.take(1)


def octets(data: bytes) -> Iterator[bytes]:
    return (bytes([octet]) for octet in data)


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [(lambda number: octets(entry(number) + done(number)), 0.3), (lambda number: iter([page(number)]), 0.01)],
    ids=["dripped entry", "empty pages"],
)
def test_one_deadline_for_the_complete_answer(answer: Answer, seconds: float, clock: Clock) -> None:
    with pytest.raises(DirectoryNotConnected, match="timed out"):
        read(lambda number: clock.during(answer(number), seconds), timeout=1)


def test_an_answer_in_time(clock: Clock) -> None:
    assert read(lambda number: clock.during([entry(number), done(number)], 0.4), timeout=1) == ["North"]


def dripped_noise(_: int) -> Iterator[bytes]:
    """An element that claims 2 GiB, one byte at a time."""
    return itertools.chain([bytes.fromhex("3084 7fffffff")], itertools.repeat(b"\0"))


ATTACKS: dict[str, Answer] = {
    "endless cookie": lambda number: iter([page(number)]),
    "endless cookie, and entries": lambda number: iter([entry(number), page(number)]),
    "549,000 references": lambda number: itertools.repeat(
        reference(number, b"ldap://dc1.example/CN=Configuration,DC=x"), 549_000
    ),
    "549,000 references elsewhere": lambda number: itertools.repeat(reference(number, b"ldap://a.example/"), 549_000),
    "many references in one message": lambda number: iter(
        [message(number, tlv(0x73, tlv(4, b"ldap://dc1.example/CN=Configuration,DC=x") * 20_000))]
    ),
    "dripped bytes": dripped_noise,
    "huge length": lambda number: itertools.chain([bytes.fromhex("3084 7fffffff")], itertools.repeat(bytes(16_384))),
    "huge length of a length": lambda number: itertools.chain([b"\x30\xff"], itertools.repeat(bytes(16_384))),
    "other messages": lambda number: itertools.repeat(done(number + 1)),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_end_at_the_deadline_in_bounded_memory(attack: str, clock: Clock) -> None:
    """With the default limits of entries and bytes, a hundredth of a second for each part."""
    tracemalloc.start()
    try:
        with pytest.raises(DirectoryError):
            read(lambda number: clock.during(ATTACKS[attack](number), 0.01), timeout=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20


@pytest.mark.parametrize("stage", ["bind", "StartTLS", "handshake"])
def test_a_server_that_drips_before_the_search(stage: str, clock: Clock) -> None:
    def drip_always() -> None:
        client, _ = listener.accept()
        with client, contextlib.suppress(OSError):
            request = client.recv(65536)
            if stage == "handshake":
                start = 4 + (request[1] & 0x7F if request[1] & 0x80 else 0)
                number = int.from_bytes(request[start : start + request[start - 1]], "big")
                client.sendall(message(number, result(0x78, 0)))
                client.recv(65536)
                client.sendall(bytes.fromhex("160303 4000"))  # a record of 16,384 bytes
            else:
                client.sendall(bytes.fromhex("3084 7fffffff"))
            for octet in clock.during(itertools.repeat(b"\0"), 0.05):
                client.sendall(octet)
                time.sleep(0.05)  # the deadline of a handshake is that of its socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip_always)
        thread.start()
        url = f"ldap://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(DirectoryNotConnected, match="timed out"):
            LdapDirectory(url, timeout=1, start_tls=stage != "bind").read_directory(Site)
        thread.join()  # which ends when the connection is closed


def test_one_deadline_for_all_addresses_of_a_name(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that do not answer: each of ten addresses had the time of one."""
    hosts = [f"127.0.0.{number}" for number in range(2, 12)]

    class Silent(socket.socket):
        def connect(self, _: object) -> None:
            waited = min(self.gettimeout() or 0, 50)
            clock.now += waited
            raise TimeoutError("timed out")

    def found(_: str, port: int, *__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port)) for host in hosts]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    monkeypatch.setattr(socket, "socket", Silent)
    with pytest.raises(DirectoryNotConnected, match="timed out"):
        LdapDirectory("ldap://contoso.example", timeout=120, base="dc=x").read_directory(Site)
    assert clock.now == 120


def test_a_password_needs_tls_or_the_word_of_the_caller() -> None:
    requests: list[bytes] = []

    def refuse() -> None:
        client, _ = listener.accept()
        with client:
            requests.append(client.recv(65536))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=refuse)
        thread.start()
        url = f"ldap://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(DirectoryNotConnected):
            LdapDirectory(url, user="cn=reader", password="secret", timeout=5).read_directory(Site)
        thread.join()
    assert b"1.3.6.1.4.1.1466.20037" in requests[0]  # StartTLS
    assert b"secret" not in requests[0]


@pytest.mark.parametrize("url", ["ldap://reader:s3cret@dc1", "ldaps://s3cret@dc1:636/DC=x", "http://a:s3cret@dc1"])
def test_a_url_with_a_password_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ValueError, match="pass user= and password=") as caught:
        LdapDirectory(url)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("element", "attribute", "value"),
    [
        (Site, "name", "\ud800"),
        (QueueManager, "computer_name", "a\udfff"),
        (Queue, "pathname", "a\\\udc80"),
        (Queue, "full_path", "cn=\ud83d"),
        (Queue, "label", "x\ud800y"),
    ],
)
def test_a_lone_surrogate_in_a_filter(element: type, attribute: str, value: str) -> None:
    directory = LdapDirectory("ldap://127.0.0.1:1", timeout=1)
    with pytest.raises(ValueError, match="has a lone surrogate") as caught:
        directory.read_all(element, [Equal(attribute, value)])
    assert repr(value) in str(caught.value)
    assert list(MemoryDirectory([]).read_all(element, [Equal(attribute, value)])) == []


@pytest.mark.parametrize("name", ["a*b", "a(b)c", "a\\b", "(|(cn=*", "a\0b", "ü"])
def test_computer_names_are_escaped(name: str) -> None:
    asked: list[str] = []

    class Recorded:
        root = "dc=x"

        def ask(self, _base: str, assertion: str, *_: object, **__: object) -> list[object]:
            asked.append(assertion)
            return []

    directory = LdapDirectory("ldap://127.0.0.1:1", base="dc=x")
    directory._connection = Recorded()  # type: ignore[assignment]
    assert directory.read_directory(QueueManager, [Equal("computer_name", name)]) is None
    escaped = "".join(f"\\{octet:02x}" for octet in name.encode())
    assert [each.lower() for each in asked] == [f"(&(objectclass=computer)(cn={escaped}))"]
