"""What errors of change notifications name: the code unit, and the PROPIDs of a wrong property set."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmqwire import DecodeError, EncodeError, mqcn


def test_bad_text_names_the_code_unit() -> None:
    with pytest.raises(DecodeError, match=r"byte 36: code unit 0x0061"):
        mqcn.decode(b"\2\1" + "<Notification><Evant>".encode("utf-16-le"))
    with pytest.raises(DecodeError, match=r"byte 44: the text ends here"):
        mqcn.decode(b"\2\1" + "<Notification><Event>".encode("utf-16-le"))


@pytest.mark.parametrize(
    ("text", "offset", "detail"),
    [
        ("ser ver\\q", 10, "code unit 0x0020"),
        ("server\\\ud800", 18, "code unit 0xd800"),
        ("server", 16, "the name ends here"),
    ],
)
def test_bad_name_names_the_code_unit(text: str, offset: int, detail: str) -> None:
    data = b"\1\1\0\0" + text.encode("utf-16-le", "surrogatepass") + bytes(2 + 16 + 24 + 1)
    with pytest.raises(DecodeError) as raised:
        mqcn.decode(data, strict=True)
    assert str(raised.value) == f"bad_name: PathName at byte {offset}: {detail}"


@pytest.mark.parametrize(
    ("command", "ids", "reason"),
    [
        ("create", [108], r"property_set \(update 1 lacks PROPID_Q_JOURNAL \(104\), .*\)"),
        ("change", [105, 108], r"\(update 1 lacks PROPID_Q_QMID \(115\) and cannot have PROPID_Q_LABEL \(108\)\)"),
        ("change", [115, 105, 105], r"duplicate_property \(update 1 repeats PROPID_Q_QUOTA \(105\)\)"),
        ("change", [202], r"lacks PROPID_QM_FOREIGN \(219\)"),
        ("change", [301], r"begins with .* \(301\)"),
        ("change", [], r"has no PROPID"),
        ("delete", [1404, 1403], r"another order, of PROPID_D_OBJTYPE \(1404\), PROPID_D_SCOPE \(1403\)"),
        ("delete", [1403], r"lacks PROPID_D_OBJTYPE \(1404\)"),
    ],
)
def test_property_sets_name_the_propids(command: Any, ids: list[int], reason: str) -> None:
    good = {"command": "delete", "guid_identifier": UUID(int=1), "guid_master_id": UUID(int=2)}
    values: dict[int, Any] = {115: UUID(int=3), 202: UUID(int=3), 301: "x", 108: "x"}
    names = {"path_name": "a\\b", "guid_identifier": None} if command == "create" else {}
    wrong = {**good, "command": command, **names, "properties": [(one, values.get(one, 1)) for one in ids]}
    updates = [mqcn.NotificationUpdate(**{"properties": [(1403, 1), (1404, 1)], **one}) for one in (good, wrong)]
    message = mqcn.ChangeNotificationMessage(1, updates)
    with pytest.raises(EncodeError, match=reason) as single:
        mqcn.encode(message)
    batch = mqcn.decode_batch([mqcn.encode(message, enforce=False)] * 2)
    with pytest.raises(EncodeError, match=reason) as raised:
        mqcn.encode_batch(batch)
    assert (raised.value.row, raised.value.field) == (1, single.value.field)


@pytest.mark.parametrize("body", [5, ("1", UUID(int=1)), (1, UUID(int=1), "dc1", "")])
def test_a_body_that_is_none_names_its_field(body: Any) -> None:
    with pytest.raises(EncodeError, match=r"Data: .* is not a NotificationBody"):
        mqcn.ChangeNotificationMessage(2, body=body)
