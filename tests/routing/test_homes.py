"""Routing over a real LDAP server gives the answers that it gives over memory."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator

import pytest

from msmqwire.directory import LdapDirectory, MemoryDirectory, Queue, QueueManager
from msmqwire.errors import DirectoryNotConnected, RoutingError
from msmqwire.routing import NextHops, Router, get_destination_info
from tests.directory import slapd
from tests.directory.enterprise import enterprise, ldif

MEMORY = MemoryDirectory(enterprise())


@pytest.fixture(scope="module")
def ldap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LdapDirectory]:
    with (
        slapd.running(tmp_path_factory.mktemp("slapd"), ldif(enterprise())) as url,
        LdapDirectory(url) as directory,
    ):
        yield directory


def answers(router: Router) -> dict[tuple[str, str], NextHops | str]:
    """What every queue manager answers for every other."""
    found: dict[tuple[str, str], NextHops | str] = {}
    for source, destination in itertools.product(MEMORY.read_all(QueueManager), repeat=2):
        key = source.computer_name, destination.computer_name
        try:
            found[key] = router.explain_next_hops(source.identifier, destination.identifier)
        except RoutingError as error:
            found[key] = str(error)
    return found


def test_next_hops(ldap: LdapDirectory) -> None:
    over_memory, over_ldap = answers(Router(MEMORY)), answers(Router(ldap, max_age=60.0))
    assert over_ldap == over_memory
    assert len({str(answer) for answer in over_memory.values()}) > 20


def test_destinations(ldap: LdapDirectory) -> None:
    queues = list(MEMORY.read_all(Queue))
    assert len(queues) > 3
    for queue in queues:
        found = get_destination_info(f"PUBLIC={queue.identifier}", ldap)
        assert found == get_destination_info(f"PUBLIC={queue.identifier}", MEMORY)
        assert found.status
    machine = next(iter(MEMORY.read_all(QueueManager)))
    assert not get_destination_info(f"PUBLIC={machine.identifier}", ldap).status


def test_a_server_that_is_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    source, destination = itertools.islice(MEMORY.read_all(QueueManager), 2)
    with LdapDirectory(f"ldap://127.0.0.1:{port}") as directory:
        router = Router(directory)
        with pytest.raises(RoutingError, match="the directory cannot be read") as caught:
            router.get_next_hops(source.identifier, destination.identifier)
        assert isinstance(caught.value.__cause__, DirectoryNotConnected)
        info = get_destination_info("PUBLIC=0e000000-0000-4000-8000-000000000001", directory)
        assert not info.status
        assert info.reason.startswith("the directory cannot be read")
