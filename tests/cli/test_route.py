"""``msmqwire route`` and ``msmqwire resolve``: answers for people and programs, and errors of one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msmqwire.cli import resolve
from msmqwire.directory import MemoryDirectory
from tests.cli.support import EXAMPLES, refused, run
from tests.directory.enterprise import enterprise
from tests.net.session_wire import free_port
from tests.routing.enterprises import Changed

ENTERPRISE = EXAMPLES / "enterprise.toml"
LEDGER, KIOSK7 = (f"ba000000-0000-4000-8000-0000000000{end}" for end in ("c7", "a7"))
NIL = "00000000-0000-0000-0000-000000000000"
ORDERS = "0e000000-0000-4000-8000-000000000001"

SMALL = """
[[site]]
identifier = "00000000-0000-4000-8000-00000000000a"
name = "A"

[[site]]
identifier = "00000000-0000-4000-8000-00000000000b"
name = "B\\u001b[31m"

[[routing_link]]
identifier = "00000000-0000-4000-8000-0000000000ab"
site1_identifier = "A"
site2_identifier = "00000000-0000-4000-8000-00000000000b"
actual_cost = 1234
site_gate_identifier_list = ["GA", "GB1", "GB2"]

[[queue_manager]]
identifier = "00000000-0000-4000-8000-0000000000a0"
computer_name = "GA"
site_identifier_list = ["A"]
routing_server = true

[[queue_manager]]
identifier = "00000000-0000-4000-8000-0000000000b1"
computer_name = "GB1"
site_identifier_list = ["00000000-0000-4000-8000-00000000000b"]
routing_server = true

[[queue_manager]]
identifier = "00000000-0000-4000-8000-0000000000b2"
computer_name = "GB2"
site_identifier_list = ["00000000-0000-4000-8000-00000000000b"]
routing_server = true

[[queue_manager]]
identifier = "00000000-0000-4000-8000-0000000000b3"
computer_name = "M"
site_identifier_list = ["00000000-0000-4000-8000-00000000000b"]
in_routing_server_identifier_list = ["GB2", "GB1"]
"""


def answer(*arguments: str | Path, status: int = 0) -> list[str]:
    """The lines on standard output; nothing is on standard error."""
    found, output, errors = run(*arguments)
    assert (found, errors) == (status, "")
    return output.splitlines()


def answer_json(*arguments: str | Path, status: int = 0) -> dict[str, Any]:
    (text,) = answer(*arguments, "-T", "json", status=status)
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


# --- route ---


def test_route_for_people() -> None:
    assert answer("route", "--directory", ENTERPRISE, "DEPOT", KIOSK7) == [
        "hop  queue manager  site    cost  rule",
        "     DEPOT          Lugano",
        "1    LUGGATE        Lugano        routing_server",
        "2    ZURGATE2       Zurich  25    next_site",
        "3    ZURROUTER      Zurich        in_routing_server",
        "4    KIOSK7         Zurich        in_routed",
        "4 hops, cost 25",
    ]


def test_identifiers_in_braces() -> None:
    """As the registry of Windows shows them."""
    braced = f"{{{KIOSK7.upper()}}}"
    by_name = answer("route", "--directory", ENTERPRISE, "KIOSK7", "LEDGER")
    assert answer("route", "--directory", ENTERPRISE, braced, "LEDGER") == by_name
    resolve = ("resolve", f"PUBLIC={ORDERS}", "--directory", ENTERPRISE, "--from")
    assert answer(*resolve, braced) == answer(*resolve, "KIOSK7")


def test_route_for_programs() -> None:
    found = answer_json("route", "--directory", ENTERPRISE, "kiosk7", LEDGER.upper())
    names = ("computer_name", "qualified_computer_name", "identifier")
    assert found["source"] == dict(zip(names, ("KIOSK7", "kiosk7.contoso.example", KIOSK7), strict=True))
    assert found["destination"] == dict(zip(names, ("LEDGER", "ledger.contoso.example", LEDGER), strict=True))
    assert answer_json("route", "--directory", ENTERPRISE, "kiosk7.contoso.example", "Ledger.Contoso.Example") == found
    assert found["cost"] == 2
    hops = [(hop["target"]["computer_name"], hop["rule"], hop["cost"], hop["site"]) for hop in found["hops"]]
    assert hops == [
        ("ZURROUTER", "out_routing_server", 0, None),
        ("ZURGATE1", "site_gate", 0, None),
        ("GVAGATE", "next_site", 2, "Geneva"),
        ("LEDGER", "direct", 0, None),
    ]


@pytest.mark.parametrize("ends", [(KIOSK7, LEDGER), ("KIOSK7", "LEDGER"), ("kiosk7.contoso.example", "LEDGER")])
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_route_asks_the_directory_nothing_twice(
    ends: tuple[str, str], form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[tuple[str, tuple[object, ...], object]] = []
    search = MemoryDirectory._search

    def watched(self: MemoryDirectory, element: Any, filters: Any, attributes: Any) -> Any:
        reads.append((element.__name__, tuple((each.attribute, each.value) for each in filters), attributes))
        return search(self, element, filters, attributes)

    monkeypatch.setattr(MemoryDirectory, "_search", watched)
    answer("route", "--directory", ENTERPRISE, *ends, "-T", form)
    assert [name for name, _, _ in reads].count("RoutingLink") == 1
    assert len(set(reads)) == len(reads)


def test_other_hops_and_names_that_a_terminal_would_obey(small: Path) -> None:
    assert answer("route", "--directory", small, "GA", "M")[1:] == [
        "     GA             A",
        "1    GB1            B\ufffd[31m  1,234  next_site",
        "2    M              B\ufffd[31m         in_routed",
        "2 hops, cost 1,234",
    ]
    assert answer_json("route", "--directory", small, "GB1", "M")["hops"][0]["others"] == []
    small.write_text(SMALL.replace('computer_name = "GB1"\n', 'computer_name = "GB3"\n').replace('"GB1"', '"GB2"'))
    assert answer("route", "--directory", small, "GB3", "M")[2].endswith("in_routing_server")
    small.write_text(SMALL.replace('["GB2", "GB1"]', '["GB2", "GA"]'))
    assert answer("route", "--directory", small, "GB1", "M")[2].endswith("in_routing_server (or GA)")


def test_no_route() -> None:
    text = refused("route", "--directory", ENTERPRISE, "DEPOT", "DEPOT")
    assert text.endswith("QueueManager DEPOT (ba000000-0000-4000-8000-0000000000d7) is both source and destination\n")
    assert refused("route", "--directory", ENTERPRISE, "DEPOT", "MISSING") == (
        "msmqwire: no QueueManager has the ComputerName MISSING\n"
    )
    assert refused("route", "--directory", ENTERPRISE, ORDERS, "DEPOT") == (
        f"msmqwire: no QueueManager has the Identifier {ORDERS}\n"
    )


def test_wrong_directories(small: Path, tmp_path: Path) -> None:
    assert "No such file" in refused("route", "--directory", tmp_path / "none.toml", "GA", "M")
    small.write_text(SMALL.replace("1234", "-5"))
    text = refused("route", "--directory", small, "GA", "M")
    assert "00000000-0000-4000-8000-0000000000ab" in text
    assert "-5" in text
    small.write_text(SMALL.replace('"GB2"]', '"GB9"]', 1))
    assert "GB9" in refused("route", "--directory", small, "GA", "M")
    small.write_text(SMALL.replace('computer_name = "GB2"', 'computer_name = "GB1"'))
    assert "GB1" in refused("route", "--directory", small, "GB1", "M")


def test_usage() -> None:
    assert "--directory" in refused("route", "A", "B")
    assert "--from needs the directory" in refused("resolve", r"DIRECT=OS:a\b", "--from", "KIOSK7")


# --- resolve ---


def test_resolve_direct_names() -> None:
    assert answer("resolve", "direct=http://shop.example:8080/msmq/PRIVATE$/orders") == [
        r"name                   DIRECT=HTTP://shop.example:8080/msmq\PRIVATE$\orders",
        "kind                   direct",
        "protocol               http",
        "address                //shop.example:8080/msmq",
        "queue                  orders",
        "queue type             private",
        "destination host name  //shop.example:8080/msmq",
        "destination host       shop.example",
    ]
    found = answer_json("resolve", r"DIRECT=OS:0-0\orders", "--directory", ENTERPRISE, "--from", "KIOSK7")
    assert found["destination"] == {"status": True, "host_name": "0-0", "queue_manager": NIL}
    assert found["next_hops"] == {"source": "KIOSK7", "rule": "address", "queue_managers": []}


def test_resolve_public_names() -> None:
    assert answer("resolve", f"PUBLIC={ORDERS}", "--directory", ENTERPRISE, "--from", "KIOSK7") == [
        f"name                       PUBLIC={ORDERS}",
        "kind                       public",
        f"guid                       {ORDERS}",
        "destination host name      ledger.contoso.example",
        f"destination queue manager  {LEDGER}",
        "destination computer name  LEDGER",
        "next hop from KIOSK7       ZURROUTER",
    ]
    assert answer("resolve", f"PUBLIC={ORDERS}", status=2)[-1] == (
        "no destination  no directory is given to find this queue"
    )


def test_resolve_private_names() -> None:
    found = answer_json("resolve", rf"PRIVATE={LEDGER}\1f;journal", "--directory", ENTERPRISE, "--from", "OFFICE8")
    assert found == {
        "name": {
            "text": rf"PRIVATE={LEDGER}\1F;JOURNAL",
            "kind": "private",
            "guid": LEDGER,
            "private_id": 31,
            "suffix": "journal",
        },
        "destination": {"status": True, "host_name": "", "queue_manager": LEDGER, "computer_name": "LEDGER"},
        "next_hops": {"source": "OFFICE8", "rule": "routing_server", "queue_managers": ["ZURGATE1"]},
    }


def test_resolve_names_without_a_destination() -> None:
    name = r"MULTICAST=234.1.1.1:8001,DIRECT=OS:a\b"
    assert answer("resolve", name, status=2) == [
        f"name            {name}",
        "kind            multiple_element",
        "element         MULTICAST=234.1.1.1:8001",
        r"element         DIRECT=OS:a\b",
        "no destination  a multiple element name has no single host",
    ]
    unknown = rf"PRIVATE={ORDERS}\1"
    lines = answer("resolve", unknown, "--directory", ENTERPRISE, "--from", "DEPOT", status=2)
    assert lines[-1] == f"no next hop                no QueueManager has the Identifier {ORDERS}"
    found = answer_json(
        "resolve", f"MACHINE={ORDERS};DEADLETTER", "--directory", ENTERPRISE, "--from", "DEPOT", status=2
    )
    assert found["next_hops"] == {"source": "DEPOT", "reason": "there is no destination"}


def test_resolve_what_is_no_name() -> None:
    assert refused("resolve", "orders").startswith("msmqwire: bad_type: FormatName at character 0: ")
    assert "QueueGuid at character 7" in refused("resolve", "PUBLIC=x")


def test_resolve_with_a_directory_that_cannot_be_read() -> None:
    """It is not known whether there is a destination: status 1, not 2."""
    nowhere = f"ldap://127.0.0.1:{free_port()}"
    assert refused("resolve", f"PUBLIC={ORDERS}", "--directory", nowhere).startswith(f"msmqwire: {nowhere}: ")


@pytest.mark.parametrize("number", range(1, 9))
def test_resolve_with_a_directory_that_is_lost(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Changed(enterprise(), None, number)
    monkeypatch.setattr(resolve, "open_directory", lambda _: lost)
    said = refused("resolve", f"PUBLIC={ORDERS}", "--directory", "x", "--from", "KIOSK7")
    assert said.endswith("the server is gone\n")
