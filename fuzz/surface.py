"""The fuzz targets of the Python surface: what a caller sees, compared with the slow oracle of tests/reference.

``python -m fuzz.surface TARGET [libFuzzer options]`` runs one under atheris; the extensions must be the instrumented
ones (``make fuzz`` builds them and sets the path).
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from msmqwire import mqcn, mqqb, mqsd, propvariant
from msmqwire.properties.lookup import KINDS
from msmqwire.properties.vartype import TYPE_NAMES
from tests.mqcn import messages
from tests.mqcn import rows as notification_rows
from tests.mqqb import packets
from tests.mqqb import rows as packet_rows
from tests.mqsd import rows
from tests.propvariant import values
from tests.reference import mqcn as mqcn_reference
from tests.reference import mqqb as mqqb_reference
from tests.reference import mqsd as reference
from tests.reference.mqqb_writer import WRITABLE, write

# A change by GUID up to its NumberOfProperties
HEAD = b"\1\1\1\1" + bytes(56)


def topology(data: bytes) -> None:
    """``decode`` and ``decode_batch`` say what the oracle says.

    Transport and strictness follow from the input, so that libFuzzer may vary them too and one input costs one reading.
    """
    transport = reference.TRANSPORTS[len(data) % 3]
    strict = bool(sum(data) & 1)
    expected = reference.row(reference.read(data, strict=strict, transport=transport))
    outcome = rows.decode(data, strict=strict, transport=transport)
    found = reference.row(outcome) if isinstance(outcome, reference.Fault) else rows.packet_row(outcome)
    assert found == expected, (transport, strict)
    entry = mqsd.decode_batch([data], strict=strict, transport=transport).fault(0)
    assert (entry and entry._asdict()) == expected["fault"], (transport, strict)


def server_array(data: bytes) -> None:
    """The same for a reply with this array: [MS-MQSD] 2.2.3."""
    header = b"\0\2\0\0" + bytes(16) + (1).to_bytes(4, "little") + bytes(4) + len(data).to_bytes(4, "little")
    topology(header + bytes(32) + data)


def notification_message(data: bytes) -> None:
    """``decode``, ``decode_batch`` and ``encode`` say what the oracle says; strictness follows from the input."""
    strict = bool(sum(data) & 1)
    expected = mqcn_reference.read(data, strict=strict)
    message = messages.decode(data, strict=strict)
    messages.assert_message(message, expected)
    batch = mqcn.decode_batch([data], strict=strict)
    assert batch.messages.tolist() == [0, len(mqcn_reference.rows(expected))]
    entry = batch.fault(0)
    assert (entry and tuple(entry)) == (tuple(expected) if isinstance(expected, mqcn_reference.Fault) else None)
    # All columns take fifty times as long as all the rest: they are for one input in many
    if sum(data) % 1024 < 2:
        notification_rows.assert_columns(batch, notification_rows.Expected([expected]))
    if isinstance(expected, mqcn_reference.Message) and not set(expected.found) - messages.LENIENT:
        assert isinstance(message, mqcn.ChangeNotificationMessage)
        written = mqcn_reference.write(expected, enforce=False)
        assert mqcn.encode(message, enforce=False) == written
        assert bytes(mqcn.encode_batch(batch, enforce=False)[0]) == written


def notification_body(data: bytes) -> None:
    """The same for a message of version 2 with this body: [MS-MQCN] 2.2.5."""
    notification_message(b"\2\1" + data)


def property_values(data: bytes) -> None:
    """The same for a change that ends with these PROPIDs and values, and for what follows as a value of its own."""
    notification_message(HEAD + data)
    if data:
        property_value(KINDS[1 + data[0] % (len(KINDS) - 1)], data[1:])


def property_value(vt: int, data: bytes) -> None:
    """``propvariant`` says what the oracle says: [MS-MQCN] 2.2.3."""
    type_ = TYPE_NAMES[vt]
    expected = values.read(type_, data)
    found = values.fault_of(propvariant.decode, vt, data, exact=False)
    if isinstance(expected, reference.Fault):
        assert found == expected
        assert values.fault_of(propvariant.size, vt, data) == expected
        return
    value, end = expected
    assert values.plain(type_, found) == value
    assert propvariant.size(vt, data) == end
    assert propvariant.encode(vt, found) == data[:end]


def message_packet(data: bytes) -> None:
    """The same for the messages table: [MS-MQMQ] 2.2.20."""
    table_row(data, "messages", "tcp")


def session_packet(data: bytes) -> None:
    """The same for the sessions table: [MS-MQQB] 2.2; the transport follows from the input."""
    table_row(data, "sessions", mqqb_reference.TRANSPORTS[len(data) % 3])


def table_row(data: bytes, table: mqqb_reference.Table, transport: mqqb_reference.Transport) -> None:
    """A payload read for a table, as the one packet it holds and written back; strictness follows from the input."""
    strict = bool(sum(data) & 1)
    expected = mqqb_reference.read(data, table, strict=strict, transport=transport)
    batch = packet_rows.decode_batch([data], table, strict=strict, transport=transport)
    entry = batch.fault(0)
    assert (entry and tuple(entry)) == (tuple(expected) if isinstance(expected, mqqb_reference.Fault) else None)
    if sum(data) % 1024 < 2:
        packet_rows.assert_columns(batch, packet_rows.Expected([expected], table))
    if expected == mqqb_reference.Fault("bad_type", "BaseHeader.Flags", 2):
        return  # a packet of the other table
    packet = packets.decode(data, strict=strict, transport=transport)
    packets.assert_packet(packet, expected)
    if isinstance(expected, mqqb_reference.Packet) and not set(expected.violations) - WRITABLE:
        assert not isinstance(packet, reference.Fault)
        written = write(expected)
        assert mqqb.encode(packet) == written
        assert bytes(mqqb.encode_batch(batch)[0]) == written


TARGETS: dict[str, Callable[[bytes], None]] = {
    "topology": topology,
    "server_array": server_array,
    "notification_message": notification_message,
    "notification_body": notification_body,
    "property_values": property_values,
    "message_packet": message_packet,
    "session_packet": session_packet,
}


def main() -> None:
    """Fuzz the target named first on the command line."""
    import atheris

    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
