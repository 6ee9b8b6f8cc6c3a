"""[MS-MQQB] 3.1.7.4 and the names of [MS-MQMQ] 2.1 that it reads, row by row, and every decision on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from msmqwire.directory import MemoryDirectory, Queue, QueueManager
from msmqwire.errors import FormatNameError
from msmqwire.formatname import DirectName, MulticastName, PrivateName, PublicName, parse
from msmqwire.routing import DestinationInfo, Router, get_destination_info, host_of
from tests.contract.checklist import row
from tests.routing.enterprises import Watched, line, named

NIL = UUID(int=0)
GUID = named("queue")
MACHINE = QueueManager(
    identifier=named("m-B"),
    computer_name="LEDGER",
    qualified_computer_name="ledger.contoso.example",
    full_path="CN=msmq,CN=LEDGER,CN=Computers,DC=contoso",
    site_identifier_list=(named("B"),),
)
OTHER = QueueManager(identifier=named("other"), computer_name="OTHER", full_path="CN=msmq,CN=OTHER,DC=contoso")


def queue(**attributes: Any) -> Queue:
    values: dict[str, Any] = {
        "identifier": GUID,
        "pathname": r"ledger\orders",
        "qualified_pathname": r"ledger.contoso.example\orders",
        "full_path": "CN=orders,CN=msmq,CN=LEDGER,CN=Computers,DC=contoso",
    }
    return Queue(**values | attributes)


def directory(*objects: Any) -> Watched:
    return Watched([OTHER, MACHINE, *objects])


def destination(text: str, *objects: Any, **options: Any) -> tuple[bool, str | None, UUID | None]:
    info = get_destination_info(text, directory(*objects), **options)
    assert bool(info.reason) is not info.status
    return info.status, info.host_name, info.queue_manager_guid


def refused(text: str) -> None:
    with pytest.raises(FormatNameError):
        parse(text)
    assert destination(text, queue()) == (False, None, None)


# --- Get Destination Info ---


@row("GD-01")
def test_direct() -> None:
    addresses = {
        r"DIRECT=TCP:10.20.1.10\orders": "10.20.1.10",
        r"DIRECT=OS:Ledger.contoso.example\PRIVATE$\orders": "Ledger.contoso.example",
        r"DIRECT=IPX:00000012:00a0c9123456\orders": "00000012:00a0c9123456",
        r"DIRECT=HTTPS://shop.example:8443/MSMQ\orders": "//shop.example:8443/MSMQ",
    }
    for text, address in addresses.items():
        assert destination(text) == (True, address, NIL)
        assert get_destination_info(text) == DestinationInfo(True, address, NIL)


def test_direct_names_over_http_with_slashes() -> None:
    for text, host in {
        "DIRECT=HTTPS://shop.example/msmq/private$/orders": "//shop.example/msmq",
        "DIRECT=HTTP://shop.example:8080/MSMQ/orders;JOURNAL": "//shop.example:8080/MSMQ",
    }.items():
        assert destination(text) == destination(text.replace("q/", "q\\").replace("Q/", "Q\\")) == (True, host, NIL)
    refused(r"DIRECT=OS:ledger/private$/orders")


@row("GD-02")
def test_public() -> None:
    asked = directory(queue())
    assert get_destination_info(f"PUBLIC={GUID}", asked).status
    assert asked.reads[0] == ("Queue", (("identifier", GUID),))


@row("GD-03")
def test_connector() -> None:
    """Decision G1 as well: the GUID is the one behind CONNECTOR=."""
    asked, public = directory(queue()), directory(queue())
    info = get_destination_info(f"CONNECTOR={GUID}", asked)
    assert info == get_destination_info(f"PUBLIC={GUID}", public)
    assert info.status
    assert asked.reads == public.reads


@row("GD-04")
def test_failed_reads() -> None:
    """Decision G8 as well: a failed read sets nothing else."""
    for literal in (False, True):
        assert destination(f"PUBLIC={GUID}", literal=literal) == (False, None, None)
        broken = directory(queue())
        broken.fail_begin = {Queue}
        info = get_destination_info(f"PUBLIC={GUID}", broken, literal=literal)
        assert info == DestinationInfo(False, reason="the directory cannot be read: Queue cannot be read")
        assert str(info.failure) == "Queue cannot be read"
    broken = directory(queue())
    broken.fail_begin = {QueueManager}
    assert not get_destination_info(f"PUBLIC={GUID}", broken).status
    expected = DestinationInfo(False, reason="no directory is given to find this queue")
    assert get_destination_info(f"PUBLIC={GUID}") == expected


@row("GD-05")
def test_private() -> None:
    """Decision G4 as well: ComputerGuid is that of the private name, not of a direct one."""
    asked = directory()
    for text in (f"PRIVATE={GUID}\\3", f"PRIVATE={GUID}\\00000003"):
        assert get_destination_info(text, asked) == DestinationInfo(True, "", GUID)
    assert asked.reads == []


@row("GD-06")
def test_the_queue_manager_of_a_public_queue() -> None:
    for attributes in (
        {},
        {"full_path": r"CN=a\, b\\,CN=msmq,CN=LEDGER,CN=Computers,DC=contoso"},
        {"full_path": ""},
        {"full_path": "", "pathname": r"LEDGER\orders"},
    ):
        info = get_destination_info(f"PUBLIC={GUID}", directory(queue(**attributes)))
        assert info.queue_manager_guid == MACHINE.identifier
    for attributes in ({"full_path": "CN=q,CN=msmq,CN=GONE,DC=contoso"}, {"full_path": "", "pathname": r"gone\q"}):
        assert destination(f"PUBLIC={GUID}", queue(**attributes)) == (False, None, None)
    assert destination(f"PUBLIC={GUID}", queue(), literal=True) == (True, None, GUID)
    # Which is why the words are repaired: routing knows no such machine
    of = Router(MemoryDirectory([*line(1), MACHINE, queue()]))
    assert of.get_queue_manager(GUID) is None
    assert of.get_next_hops(named("gate-B"), MACHINE.identifier) == (MACHINE.identifier,)


def test_a_computer_ends_at_the_last_backslash() -> None:
    machine = replace(MACHINE, computer_name="A\\LEDGER")
    found = queue(pathname=r"a\ledger\orders", qualified_pathname="", full_path="")
    assert get_destination_info(f"PUBLIC={GUID}", Watched([OTHER, machine, found])) == DestinationInfo(
        True, r"a\ledger", machine.identifier
    )
    assert MemoryDirectory([machine, found]).queues_of(machine) == [found]


class IgnoresNames(Watched):
    """A directory that takes no notice of a filter on ComputerName, as [MS-MQDSSM] 3.1.6.4 has it."""

    def _search(self, element: Any, filters: Any, attributes: Any) -> Any:
        known = [each for each in filters if each.attribute != "computer_name"]
        return super()._search(element, known, attributes)


def test_a_directory_that_ignores_names_is_not_believed() -> None:
    info = get_destination_info(f"PUBLIC={GUID}", IgnoresNames([OTHER, MACHINE, queue(full_path="")]))
    assert info.queue_manager_guid == MACHINE.identifier
    info = get_destination_info(f"PUBLIC={GUID}", IgnoresNames([OTHER, queue(full_path="")]))
    assert not info.status
    assert info.reason == f"no QueueManager has the Queue {GUID}, ledger\\orders"


@row("GD-07")
def test_the_host_of_a_public_queue() -> None:
    assert destination(f"PUBLIC={GUID}", queue()) == (True, "ledger.contoso.example", MACHINE.identifier)
    assert destination(f"PUBLIC={GUID}", queue(qualified_pathname="")) == (True, "ledger", MACHINE.identifier)


@row("GD-08")
def test_names_without_a_destination() -> None:
    names = {
        f"MACHINE={GUID}": "a machine name has no single host",
        f"DL={GUID}": "a distribution list name has no single host",
        "MULTICAST=234.1.1.1:8001": "a multicast name has no single host",
        f"PUBLIC={GUID},PUBLIC={GUID}": "a multiple element name has no single host",
    }
    for text, reason in names.items():
        asked = directory(queue())
        for literal in (False, True):
            assert get_destination_info(text, asked, literal=literal) == DestinationInfo(False, reason=reason)
        assert asked.reads == []
    for text in ("", "ledger", r"ledger\orders", f"PUBLIC={{{GUID}}}", f" PUBLIC={GUID}", f"QUEUE={GUID}"):
        refused(text)
        assert get_destination_info(text, asked).reason


@row("GD-09")
def test_suffixes_change_nothing() -> None:
    for text in (rf"PRIVATE={GUID}\3", r"DIRECT=OS:ledger\orders", r"DIRECT=OS:ledger\PRIVATE$\orders"):
        assert destination(f"{text};JOURNAL") == destination(text)
    for which in ("JOURNAL", "DEADLETTER", "DEADXACT"):
        assert destination(rf"DIRECT=OS:ledger\SYSTEM$;{which}") == (True, "ledger", NIL)
    for text in (f"PUBLIC={GUID};JOURNAL", f"CONNECTOR={GUID};XACTONLY"):
        name = parse(text, extended=True)
        assert get_destination_info(name, directory(queue())).queue_manager_guid == MACHINE.identifier


def test_the_host_in_an_address() -> None:
    """Decision G7: the address is given as it stands, ``host_of`` finds the host in it ([MS-MQDMPR] 3.1.7.1.26)."""
    addresses = {
        "//shop.example/MSMQ": "shop.example",
        "//shop.example:8443/MSMQ": "shop.example",
        "//10.20.1.10:80/msmq": "10.20.1.10",
        "//[2001:db8::1]:80/MSMQ": "2001:db8::1",
        "10.20.1.10": "10.20.1.10",
        "ledger": "ledger",
        "00000012:00a0c9123456": "00000012:00a0c9123456",
        "": "",
    }
    for address, host in addresses.items():
        assert host_of(address) == host
    for text in (r"DIRECT=HTTP://shop.example/MSMQ\orders", r"DIRECT=HTTP://shop.example:81/MSMQ\PRIVATE$\orders"):
        found = get_destination_info(text).host_name
        assert found is not None
        assert host_of(found) == "shop.example"


# --- The names ---


@row("GD-10")
def test_public_names() -> None:
    assert parse(f"PUBLIC={GUID}") == PublicName(GUID)
    text = str(GUID)
    wrong = [text[:-1], f"{text}0", text.replace("-", ""), f"{{{text}}}", f"{text[:8]}{text[9:]}", f"{text[:-1]}g"]
    for each in (*wrong, f"{text};JOURNAL", f"{text}\\3", ""):
        refused(f"PUBLIC={each}")


@row("GD-11")
def test_private_names() -> None:
    for digits in ("3", "1f", "0000001F", "FFFFFFFF"):
        assert parse(f"PRIVATE={GUID}\\{digits}") == PrivateName(GUID, int(digits, 16))
        assert parse(f"PRIVATE={GUID}\\{digits};JOURNAL") == PrivateName(GUID, int(digits, 16), "journal")
    for tail in ("", "\\", "\\123456789", "\\g", "/3", "3", "\\3;", "\\3;DEADLETTER", "\\3 "):
        refused(f"PRIVATE={GUID}{tail}")


@row("GD-12")
def test_direct_protocols() -> None:
    addresses = {
        "tcp": "10.20.1.10",
        "os": "ledger",
        "http": "//ledger/MSMQ",
        "https": "//ledger/MSMQ",
        "ipx": "00000012:00a0c9123456",
    }
    for protocol, address in addresses.items():
        name = parse(f"DIRECT={protocol.upper()}:{address}\\orders")
        assert isinstance(name, DirectName)
        assert (name.protocol, name.address) == (protocol, address)
    for protocol in ("UDP", "SPX", "NETBIOS", "", "TC", "TCPS"):
        refused(f"DIRECT={protocol}:10.20.1.10\\orders")


@row("GD-13")
def test_multicast_names() -> None:
    for address in ("224.0.0.0", "239.255.255.255"):
        for port in (0, 65535):
            assert parse(f"MULTICAST={address}:{port}") == MulticastName(address, port)
    for address in ("223.255.255.255", "240.0.0.0", "224.0.0.256", "224.0.0", "224.0.0.0.0", "10.0.0.1", "224.0.0.01"):
        refused(f"MULTICAST={address}:1")
    for text in ("65536", "99999", "-1", "", "080", "1 "):
        refused(f"MULTICAST=224.0.0.1:{text}")


@row("GD-14")
def test_multiple_element_names() -> None:
    direct, private = r"DIRECT=OS:ledger\orders", rf"PRIVATE={GUID}\3"
    names = [direct, private, f"PUBLIC={GUID}", f"DL={GUID}", f"CONNECTOR={GUID}", "MULTICAST=224.0.0.1:1"]
    assert [str(each) for each in parse(",".join(names)).elements] == names  # type: ignore[attr-defined]
    read_only = [f"{direct};JOURNAL", f"{private};JOURNAL"]
    read_only += [rf"DIRECT=OS:ledger\SYSTEM$;{which}" for which in ("JOURNAL", "DEADLETTER", "DEADXACT")]
    for each in (f"MACHINE={GUID}", *read_only):
        refused(f"{direct},{each}")
        refused(f"{each},{direct}")


@row("GD-15")
def test_case_does_not_matter() -> None:
    for text in (
        f"PUBLIC={GUID}",
        rf"PRIVATE={GUID}\1F;JOURNAL",
        r"DIRECT=TCP:10.20.1.10\PRIVATE$\orders;JOURNAL",
        r"DIRECT=OS:ledger\SYSTEM$;DEADXACT",
        "DIRECT=HTTP://LEDGER/MSMQ\\orders",
        f"MACHINE={GUID}",
        f"CONNECTOR={GUID}",
        f"DL={GUID}",
        "MULTICAST=224.0.0.1:1",
    ):
        assert parse(text.lower()) == parse(text.upper()) == parse(text)
    # Only the letters of ASCII have two cases: U+0131 is no i, U+017F no s, U+212A no k
    for text in (f"PUBL\u0131C={GUID}", "DIRECT=O\u017f:ledger\\orders", f"PR\u0131VATE={GUID}\\3"):
        refused(text)


@row("GD-16")
def test_machine_queues() -> None:
    for which in ("journal", "deadletter", "deadxact"):
        name = parse(rf"DIRECT=OS:ledger\SYSTEM$;{which.upper()}")
        assert isinstance(name, DirectName)
        assert (name.queue_type, name.queue, name.suffix) == ("system", None, which)


@row("GD-17")
def test_multicast_ports() -> None:
    for port in (0, 9, 10, 19, 20, 99, 100, 199, 200, 999, 1000, 1999, 2000, 9999, 10_000, 59_999, 60_000, 65_535):
        assert parse(f"MULTICAST=224.0.0.1:{port}") == MulticastName("224.0.0.1", port)
