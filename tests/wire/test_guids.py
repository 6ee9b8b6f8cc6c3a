"""The text of a GUID, wherever the package reads one from a caller."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.cli.arguments import parse_guid
from msmqwire.cli.packets import packet_of
from msmqwire.formatname import PublicName, parse
from msmqwire.routing.topology import identifier_of
from msmqwire.wire.guids import guid_of

TEXT = "557358d1-9150-9595-4997-b6e611ea26c6"
#: ``uuid.UUID`` reads all of these but the last two.
OTHER_FORMS = [
    f"{{{TEXT}}}", f"urn:uuid:{TEXT}", TEXT.replace("-", ""), f"{TEXT}-", TEXT[:-1] + "٣", f"5_{TEXT[2:]}",
    f"{TEXT[:7]}-{TEXT[7]}{TEXT[9:]}", f"{TEXT}\n", TEXT[:-1],
]  # fmt: skip


@pytest.mark.parametrize("text", [TEXT, TEXT.upper()])
def test_a_guid_has_36_characters(text: str) -> None:
    assert guid_of(text) == identifier_of(text) == parse_guid(text) == UUID(TEXT)
    assert parse(f"PUBLIC={text}") == PublicName(UUID(TEXT))


@pytest.mark.parametrize("text", OTHER_FORMS)
def test_other_forms_are_no_guids(text: str) -> None:
    assert guid_of(text) is None
    assert identifier_of(text) is None
    with pytest.raises(ValueError, match="is not a GUID"):
        packet_of("sessions", [{"kind": "ping", "cookie": 1, "queue_manager": text}])


@pytest.mark.parametrize(("text", "known"), [("{%s}", True), ("%s}", False), ("{%s", False), ("{{%s}}", False)])
def test_an_option_may_have_braces(text: str, known: bool) -> None:
    if known:
        assert parse_guid(text % TEXT) == UUID(TEXT)
    else:
        with pytest.raises(ValueError, match="is not a GUID, as in"):
            parse_guid(text % TEXT)
