"""[MS-MQCN] 2.2.4 to 2.2.6, 3.3.5.2 and 3.3.5.3, row by row, with bytes that no encoder made."""

from __future__ import annotations

import struct
import uuid
from typing import Any

import pytest

from msmqwire import mqcn
from msmqwire.errors import EncodeError
from msmqwire.notification.judgement import first_values
from tests.columns.formats import NOTIFICATIONS
from tests.columns.rows import place_of
from tests.contract.checklist import row
from tests.reference.mqcn import wrong_unit
from tests.reference.reader import Fault

QUEUE = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
SERVER = uuid.UUID("c626ea11-e6b6-9749-9595-9150557358d1")
MANAGER = uuid.UUID("11223344-5566-7788-99aa-bbccddeeff00")
GUID_TEXT = "00112233-4455-6677-8899-AABBCCDDEEFF"
PATH = "srv1\\orders"

#: What a create carries, in the order of 3.3.5.2.
CREATED: dict[int, Any] = {
    102: MANAGER, 101: QUEUE, 106: -3, 104: 1, 105: 1024, 107: 0xFFFFFFFF, 109: 1600000000, 110: 1600000001, 114: 1,
    1101: b"\1\0\4\x80", 103: PATH, 108: "label", 111: 0, 112: 1, 113: 1,
}  # fmt: skip


def units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def update_bytes(
    values: dict[int, bytes] | None = None,
    *,
    command: int = 2,
    use_guid: int = 1,
    identifier: bytes = QUEUE.bytes_le,
    reserved: bytes = bytes(24),
) -> bytes:
    values = {1403: b"\1", 1404: b"\1"} if values is None else values
    ids = struct.pack(f"<B{len(values)}I", len(values), *values)
    return bytes((command, use_guid)) + identifier + SERVER.bytes_le + reserved + ids + b"".join(values.values())


def message_bytes(*updates: bytes, count: int | None = None, version: int = 1) -> bytes:
    return bytes((version, len(updates) if count is None else count)) + b"".join(updates)


def body_bytes(event: str = "2", guid: str = GUID_TEXT, name: str = "dc1", closing: str = "</ObjectGuid >") -> bytes:
    return b"\2\1" + units(
        f"<Notification><Event>{event}</Event><ObjectGuid>{guid}{closing}"
        f"<DomainController>{name}</DomainController></Notification>"
    )


def fault(data: bytes, *, strict: bool = False) -> tuple[str, str, int] | None:
    """The fault of a message, which the single decoder and the batch must agree on."""
    single = NOTIFICATIONS.decode(data, strict=strict)
    found = place_of(mqcn.decode_batch([data], strict=strict).fault(0))
    assert found == (tuple(single) if isinstance(single, Fault) else None)
    return found


def make(**changes: Any) -> mqcn.NotificationUpdate:
    fields: dict[str, Any] = {"command": "delete", "guid_identifier": QUEUE, "guid_master_id": SERVER}
    return mqcn.NotificationUpdate(**{**fields, "properties": [(1403, 1), (1404, 1)], **changes})


def change(*properties: tuple[int, Any]) -> mqcn.NotificationUpdate:
    return make(command="change", properties=properties)


def create(properties: dict[int, Any]) -> mqcn.NotificationUpdate:
    return make(command="create", guid_identifier=None, path_name=PATH, properties=list(properties.items()))


def encoded(*updates: mqcn.NotificationUpdate) -> bytes:
    return mqcn.encode(mqcn.ChangeNotificationMessage(1, updates))


def assert_refused(update: mqcn.NotificationUpdate) -> None:
    """An encoder refuses the update; without ``enforce`` it writes bytes that decode equal, with a violation."""
    with pytest.raises(EncodeError):
        encoded(update)
    data = mqcn.encode(mqcn.ChangeNotificationMessage(1, [update]), enforce=False)
    assert mqcn.decode(data).updates == (update,)
    assert mqcn.decode(data).violations


# --- 2.2.4 ---


def test_a_message_without_updates() -> None:
    """0 to 255 updates are described; a sender has at least one."""
    assert mqcn.decode(b"\1\0").violations == ("no_updates",)
    with pytest.raises(EncodeError):
        encoded()


def test_a_propid_twice() -> None:
    """The first value counts."""
    update = change((101, QUEUE), (105, 7), (105, 9))
    (found,) = mqcn.decode(mqcn.encode(mqcn.ChangeNotificationMessage(1, [update]), enforce=False)).updates
    assert "duplicate_property" in found.violations
    assert first_values(found.properties)[105] == 7


def test_values_outside_the_named_ones_decode() -> None:
    """[MS-MQCN] 2.2.3 limits no value: who applies a change judges it."""
    update = change((115, MANAGER), (104, 7))
    (found,) = mqcn.decode(encoded(update), strict=True).updates
    assert [one.value for one in found.properties] == [MANAGER, 7]


@row("CNW-01")
def test_header() -> None:
    message = mqcn.decode(message_bytes(update_bytes(), update_bytes()))
    assert (message.version, len(message.updates)) == (1, 2)
    assert mqcn.decode(body_bytes()).version == 2
    assert fault(b"") == ("truncated", "Version", 0)
    assert fault(b"\1") == ("truncated", "NumberOfUpdateNotifications", 1)
    for version in (0, 3, 4, 0x80, 0xFF):
        assert fault(bytes((version,)) + message_bytes(update_bytes())[1:]) == ("bad_version", "Version", 0)
    assert encoded(make())[:2] == b"\1\1"
    assert encoded(make(), make(), make())[:2] == b"\1\3"


@row("CNW-02")
def test_a_body_is_alone() -> None:
    for count in (0, 2, 3, 255):
        data = b"\2" + bytes((count,)) + body_bytes()[2:]
        assert fault(data) == ("bad_count", "NumberOfUpdateNotifications", 1)
    body = mqcn.NotificationBody(2, QUEUE, "dc1")
    assert mqcn.encode(mqcn.ChangeNotificationMessage(2, body=body))[:2] == b"\2\1"


@row("CNW-03")
def test_updates_without_padding() -> None:
    odd = update_bytes({115: MANAGER.bytes_le, 104: b"\1"}, command=1)
    data = message_bytes(odd, update_bytes(), odd)
    message = mqcn.decode(data, strict=True)
    assert [update.command for update in message.updates] == ["change", "delete", "change"]
    assert mqcn.encode(message) == data
    assert fault(message_bytes(odd, b"\0", update_bytes())) is not None
    assert fault(message_bytes(odd, count=2)) == ("truncated", "Command", 2 + len(odd))


@row("CNW-25")
def test_as_many_as_a_byte_counts() -> None:
    data = encoded(*[make()] * 255)
    assert len(mqcn.decode(data, strict=True).updates) == 255
    with pytest.raises(EncodeError):
        encoded(*[make()] * 256)
    properties = [(115, MANAGER), *((105, number) for number in range(254))]
    data = mqcn.encode(mqcn.ChangeNotificationMessage(1, [change(*properties)]), enforce=False)
    assert len(mqcn.decode(data).updates[0].properties) == 255
    with pytest.raises(EncodeError):
        mqcn.encode(mqcn.ChangeNotificationMessage(1, [change(*properties, (104, 1))]), enforce=False)


# --- 3.3.5.3 ---


@row("CNW-04")
def test_the_body_of_a_message_has_an_extra_byte() -> None:
    for data in (message_bytes(update_bytes()), body_bytes()):
        message = mqcn.decode(data)
        assert mqcn.encode(message) == data
        assert len(mqcn.encode_body(message)) == len(data) + 1
        assert mqcn.encode_body(message)[:-1] == data


@row("CNW-05")
def test_the_extra_byte_does_not_matter() -> None:
    for data in (message_bytes(update_bytes()), body_bytes()):
        for byte in range(256):
            assert mqcn.decode(data + bytes((byte,)), strict=True) == mqcn.decode(data)


@row("CNW-06")
def test_the_extra_byte_may_be_missing() -> None:
    for data in (message_bytes(update_bytes()), body_bytes()):
        assert mqcn.decode(data, strict=True).violations == ()


@row("CNW-07")
def test_more_than_one_byte_after_updates() -> None:
    data = message_bytes(update_bytes())
    for tail in (b"\0\0", b"\0\0\0", b"\xff" * 70):
        assert mqcn.decode(data + tail).violations == ("trailing_bytes",)
        assert fault(data + tail, strict=True) == ("bad_size", "Data", len(data))


# --- 2.2.5 ---


@row("CNW-08")
def test_notification_body() -> None:
    message = mqcn.decode(body_bytes(), strict=True)
    assert message.body == (2, QUEUE, "dc1")
    assert mqcn.encode(message) == body_bytes()
    text = body_bytes()[2:].decode("utf-16-le")
    swapped = text.replace("<Event>2</Event>", "").replace("<DomainController>", "<Event>2</Event><DomainController>")
    others = ["\ufeff" + text, text.replace("><", "> <", 1), text.replace("><", ">\r\n<"), swapped, "<?xml?>" + text]
    others += [
        text.replace("<Event>", "<Event >"),
        text.replace("<Event>", '<Event a="1">'),
        text.replace("2", "&#50;", 1),
    ]
    for other in others:
        assert fault(b"\2\1" + units(other)) is not None, other
    assert fault(b"\2\1" + text.encode("utf-16-be")) == ("bad_text", "NotificationBody", 2)
    assert fault(b"\2\1" + text.encode("utf-8")) == ("bad_text", "NotificationBody", 2)


@row("CNW-09")
def test_event() -> None:
    for event, operation, kind in (
        ("1", "create", "queue"),
        ("2", "change", "queue"),
        ("3", "delete", "queue"),
        ("4", "change", "machine"),
    ):
        body = mqcn.decode(body_bytes(event), strict=True).body
        assert body is not None
        assert (body.event, body.operation, body.object) == (int(event), operation, kind)
    for event in ("0", "5", "9", "a", "", "\u0661", "\u0132"):
        assert fault(body_bytes(event)) == ("bad_text", "Event", 44)
    for number in (0, 5):
        with pytest.raises(EncodeError):
            mqcn.encode(mqcn.ChangeNotificationMessage(2, body=mqcn.NotificationBody(number, QUEUE, "dc1")))


@row("CNW-10")
def test_object_guid() -> None:
    assert mqcn.decode(body_bytes()).body.object_guid == QUEUE  # type: ignore[union-attr]
    for guid in ("{" + GUID_TEXT + "}", GUID_TEXT[:-1], GUID_TEXT.replace("-", ""), GUID_TEXT.replace("A", "G")):
        data = body_bytes(guid=guid)
        assert fault(data) is not None
        assert fault(data)[:2] == ("bad_text", "ObjectGuid")  # type: ignore[index]
    assert fault(body_bytes(guid=GUID_TEXT + "0")) == ("bad_text", "NotificationBody", 158)


@row("CNW-11")
def test_domain_controller() -> None:
    for name in ("!", "~", "a" * 256, "".join(map(chr, range(0x21, 0x7F)))):
        data = body_bytes(name=name)
        message = mqcn.decode(data, strict=True)
        assert message.body is not None
        assert message.body.domain_controller == name
        assert mqcn.encode(message) == data
    for name, at in (("", 0), ("a" * 257, 0), ("a b", 1), ("dc\x7f", 2), ("\u0161", 0), ("ab\ud800", 2), ("a\0", 1)):
        assert fault(body_bytes(name=name)) == ("bad_text", "DomainController", 222 + 2 * at)
        with pytest.raises(EncodeError):
            mqcn.encode(mqcn.ChangeNotificationMessage(2, body=mqcn.NotificationBody(2, QUEUE, name)))


@row("CNW-12")
def test_case_is_folded_in_ascii_only() -> None:
    text = body_bytes(name="dc1")[2:].decode("utf-16-le")
    for other in (text.lower(), text.upper().replace("DC1", "dc1"), text.swapcase().replace("DC1", "dc1")):
        assert mqcn.decode(b"\2\1" + units(other), strict=True) == mqcn.decode(body_bytes())
    for letter, other in (("i", "\u0131"), ("i", "\u0130"), ("k", "\u212a"), ("s", "\u017f")):
        for at, char in enumerate(text):
            if char.lower() == letter:
                assert fault(b"\2\1" + units(text[:at] + other + text[at + 1 :])) is not None
    assert fault(body_bytes(guid=GUID_TEXT.replace("0", "\uff10"))) == ("bad_text", "ObjectGuid", 86)


@row("CNW-13")
def test_both_closings_of_object_guid() -> None:
    expected = mqcn.decode(body_bytes())
    assert mqcn.decode(body_bytes(closing="</ObjectGuid>"), strict=True) == expected
    assert mqcn.encode(expected) == body_bytes(closing="</ObjectGuid >")
    assert mqcn.encode(expected, closing_space=False) == body_bytes(closing="</ObjectGuid>")
    assert mqcn.encode_body(expected, closing_space=False) == body_bytes(closing="</ObjectGuid>") + b"\0"
    for closing in ("</ObjectGuid  >", "</ObjectGuid\t>", "</ ObjectGuid>", "< /ObjectGuid>", "</ObjectGuid\u00a0>"):
        assert fault(body_bytes(closing=closing)) is not None


@row("CNW-14")
def test_a_name_may_hold_tags() -> None:
    for name in ("<", "a<b", "</DomainController>", "x</DomainController></Notification>", "</Notification>y"):
        data = body_bytes(name=name)
        message = mqcn.decode(data, strict=True)
        assert message.body is not None
        assert message.body.domain_controller == name
        assert mqcn.encode(message) == data


@row("CNW-15")
def test_one_null_after_a_body() -> None:
    data = body_bytes()
    for tail in (b"\0\0", b"\0\0\0", b"\0\0\xff", b"\x07"):
        assert mqcn.decode(data + tail, strict=True) == mqcn.decode(data)
    for tail in (b"\0\0\0\0", b"\0\0\0\0\0", b" \0", b"\0\1", b"\r\0\n\0", b"\0\0 \0"):
        assert mqcn.decode(data + tail).violations == ("trailing_bytes",)
        assert fault(data + tail, strict=True) == ("bad_size", "Data", len(data))


@row("CNW-16")
def test_the_garbled_form_of_a_guid() -> None:
    for guid in (
        "00112233-4455-6677-8899AABBCCDD",
        "00112233-4455-6677-AABBCCDDEEFF",
        "00112233-4455-6677-8899AABBCCDDEE",
    ):
        assert fault(body_bytes(guid=guid)) is not None
        assert fault(body_bytes(guid=guid))[:2] == ("bad_text", "ObjectGuid")  # type: ignore[index]


# --- 2.2.6 ---


@row("CNW-17")
def test_command() -> None:
    for command, name in enumerate(("create", "change", "delete")):
        assert mqcn.decode(message_bytes(update_bytes(command=command))).updates[0].command == name
    for command in range(3, 256):
        assert fault(message_bytes(update_bytes(command=command))) == ("bad_command", "Command", 2)
    assert [encoded(item)[2] for item in (create(CREATED), change((115, MANAGER)), make())] == [0, 1, 2]


@row("CNW-18")
def test_use_guid() -> None:
    for use_guid in range(2, 256):
        assert fault(message_bytes(update_bytes(use_guid=use_guid))) == ("bad_use_guid", "UseGuid", 3)


@row("CNW-19")
def test_by_guid() -> None:
    (update,) = mqcn.decode(message_bytes(update_bytes())).updates
    assert (update.use_guid, update.guid_identifier, update.path_name) == (True, QUEUE, None)
    assert encoded(make()) == message_bytes(update_bytes())
    assert fault(message_bytes(update_bytes())[:19]) == ("truncated", "GuidIdentifier", 4)


@row("CNW-20")
def test_by_path_name() -> None:
    data = message_bytes(update_bytes(use_guid=0, identifier=units(PATH + "\0")))
    (update,) = mqcn.decode(data).updates
    assert (update.use_guid, update.guid_identifier, update.path_name) == (False, None, PATH)
    assert update.guid_master_id == SERVER
    for end in range(4, 4 + 2 * len(PATH) + 2):
        assert fault(data[:end]) == ("bad_terminator", "PathName", 4)
    for both in ({"path_name": PATH}, {"guid_identifier": None}):
        with pytest.raises(EncodeError):
            mqcn.encode(mqcn.ChangeNotificationMessage(1, [make(**both)]), enforce=False)


def by_name(name: str) -> bytes:
    update = make(command="create", guid_identifier=None, path_name=name)
    return mqcn.encode(mqcn.ChangeNotificationMessage(1, [update]), enforce=False)


@row("CNW-21")
def test_path_name_syntax() -> None:
    long = "n" * 124
    good = [
        "a\\b",
        "a\\private$\\b",
        "a\\PRIVATE$\\b",
        "a\\system$;b",
        "a\\SYSTEM$;b",
        "a\\b;c",
        'a\\"+,',
        "a\\b\x7f",
        "a\\b\\c",
    ]
    good += [f"{'c' * 256}\\{long}", f"a\\private$\\{long};{'s' * 32}"]
    bad = ["", "a", "a\\", "\\b", "a\\b;", "a\\;b", "a\\b;c;d", "a b\\c", "a\\b c", f"a\\{long}n", f"a\\b;{'s' * 33}"]
    bad += [f"{'c' * 257}\\{long}", "a\\b,c;d", "a\\\u00e9", "\u0161\\b", "a\\pr\u0131vate$\\b;c", "a\\\ud800"]
    for name in (*good, *bad):
        data = message_bytes(update_bytes(command=0, use_guid=0, identifier=units(name + "\0")))
        wrong = name in bad
        assert ("path_name_syntax" in mqcn.decode(data).violations) is wrong, name
        assert fault(data, strict=True) == (("bad_name", "PathName", 4 + 2 * wrong_unit(name)) if wrong else None)
        if wrong:
            with pytest.raises(EncodeError):
                by_name(name)
        else:
            assert by_name(name) == data


@row("CNW-22")
def test_master_and_reserved_follow_the_identifier() -> None:
    for use_guid, identifier in ((1, QUEUE.bytes_le), (0, units(PATH + "\0"))):
        data = message_bytes(update_bytes(use_guid=use_guid, identifier=identifier))
        assert mqcn.decode(data).updates[0].guid_master_id == SERVER
        master = 4 + len(identifier)
        for end in range(master, master + 16):
            assert fault(data[:end]) == ("truncated", "GuidMasterId", master)
        for end in range(master + 16, master + 40):
            assert fault(data[:end]) == ("truncated", "Reserved", master + 16)
        assert fault(data[: master + 40]) == ("truncated", "NumberOfProperties", master + 40)


@row("CNW-23")
def test_reserved_is_ignored() -> None:
    expected = mqcn.decode(message_bytes(update_bytes()))
    for reserved in (b"\xff" * 24, bytes(range(24)), bytes(23) + b"\1"):
        message = mqcn.decode(message_bytes(update_bytes(reserved=reserved)), strict=True)
        assert message == expected
        assert hash(message) == hash(expected)
        assert message.violations == ()
        assert mqcn.encode(message) == message_bytes(update_bytes())


def test_reserved_is_shown_where_it_is_not_zeros() -> None:
    for reserved, shown in ((bytes(24), None), (bytes(23) + b"\1", bytes(23) + b"\1")):
        data = message_bytes(update_bytes(reserved=reserved))
        (update,) = mqcn.decode(data, strict=True).updates
        assert bytes(update.reserved) == reserved
        assert mqcn.decode_batch([data]).to_arrow().column("reserved").to_pylist() == [shown]


@row("CNW-24")
def test_propids_then_values() -> None:
    values = {115: MANAGER.bytes_le, 104: b"\7", 1101: b"\2\0\0\0ab", 105: struct.pack("<I", 9)}
    data = message_bytes(update_bytes(values, command=1))
    (update,) = mqcn.decode(data, strict=True).updates
    assert [item.id for item in update.properties] == list(values)
    assert update.properties[0].value == MANAGER
    assert update.properties[1].value == 7
    assert update.properties[2].value.tobytes() == b"ab"
    assert update.properties[3].value == 9
    assert encoded(update) == data
    for end in range(61, 77):
        assert fault(data[:end]) == ("truncated", "PropertyId", 61)
    for start, size, k in ((77, 16, 0), (93, 1, 1), (100, 4, 3)):
        for end in range(start, start + size):
            assert fault(data[:end]) == ("truncated", f"PropertyValue[{k}]", start)


# --- 3.3.5.2 ---


@row("CNC-02")
def test_creates_are_by_path_name_and_others_by_guid() -> None:
    assert encoded(create(CREATED))[2:4] == b"\0\0"
    assert encoded(change((115, MANAGER)))[2:4] == b"\1\1"
    assert encoded(make())[2:4] == b"\2\1"
    assert_refused(make(command="create", properties=list(CREATED.items())))
    assert_refused(make(command="change", properties=[(115, MANAGER)], guid_identifier=None, path_name=PATH))
    assert_refused(make(guid_identifier=None, path_name=PATH))


@row("CNC-03")
def test_a_create_carries_fifteen_properties() -> None:
    assert len(CREATED) == 15
    for order in (CREATED, dict(sorted(CREATED.items())), dict(reversed(CREATED.items()))):
        message = mqcn.decode(encoded(create(order)), strict=True)
        assert [item.id for item in message.updates[0].properties] == list(order)
    for missing in CREATED:
        assert_refused(create({propid: value for propid, value in CREATED.items() if propid != missing}))
    assert_refused(create({**CREATED, 126: "LDAP://x"}))
    assert_refused(create({**CREATED, 115: MANAGER}))


@row("CNC-04")
def test_a_queue_update_carries_its_manager() -> None:
    modified: dict[int, Any] = {104: 0, 105: 1, 106: -1, 107: 2, 1101: b"", 111: 1, 112: 2}
    for count in range(len(modified) + 1):
        chosen = list(modified.items())[:count]
        for properties in ([(115, MANAGER), *chosen], [*chosen, (115, MANAGER)]):
            assert mqcn.decode(encoded(change(*properties)), strict=True).updates[0].object == "queue"
        if chosen:
            assert_refused(change(*chosen))
    for propid in (101, 102, 108, 113):
        assert_refused(change((115, MANAGER), (propid, CREATED[propid])))
    assert_refused(change((115, MANAGER), (105, 1), (105, 1)))
    assert_refused(change((301, "x")))
    assert_refused(change())


@row("CNC-05")
def test_a_machine_update_carries_its_id_and_kind() -> None:
    required = [(202, MANAGER), (219, 0)]
    modified: list[tuple[int, Any]] = [(214, 1), (215, 2), (1201, b"")]
    riders: list[tuple[int, Any]] = [(206, b""), (207, [SERVER]), (216, "x"), (220, 0x400)]
    for extra in ([], modified, modified[:1], riders, modified + riders):
        for properties in ([*required, *extra], [*extra, *required], [*required[::-1], *extra]):
            update = mqcn.decode(encoded(change(*properties)), strict=True).updates[0]
            assert (update.object, update.violations) == ("machine", ())
    for one in required:
        assert_refused(change(one, *modified))
    for item in ((203, "name"), (201, SERVER), (115, MANAGER)):
        assert_refused(change(*required, item))


@row("CNC-06")
def test_a_delete_carries_scope_and_type() -> None:
    assert encoded(make()) == message_bytes(update_bytes())
    assert encoded(make())[60:] == bytes.fromhex("02 7b050000 7c050000 01 01")
    assert_refused(make(properties=[(1404, 1), (1403, 1)]))
    assert_refused(make(properties=[(1403, 0), (1404, 1)]))
    assert_refused(make(properties=[(1403, 1), (1404, 2)]))
    assert_refused(make(properties=[(1403, 1)]))
    assert_refused(make(properties=[]))
    assert_refused(make(properties=[(1403, 1), (1404, 1), (1405, QUEUE)]))
