"""The fuzz targets of the Python surface: what a caller sees, compared with the slow oracle of tests/reference.

``python -m fuzz.surface TARGET [libFuzzer options]`` runs one under atheris; the extensions must be the instrumented
ones (``make fuzz`` builds them and sets the path).
"""

from __future__ import annotations

import contextlib
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from fuzz.sequences import sequences
from fuzz.sessions import session_machines
from msmqwire import capture, propvariant
from msmqwire.errors import CaptureError, EncodeError
from msmqwire.formatname import parse_batch
from msmqwire.properties.table import KINDS
from msmqwire.properties.vartype import TYPE_NAMES
from tests.capture import build, oracle, reading, stream_oracle
from tests.columns.formats import FORMATS, MESSAGES, NOTIFICATIONS, SESSIONS, TOPOLOGY, Format
from tests.columns.rows import assert_columns, contents
from tests.columns.views import arrays
from tests.formatname import answers
from tests.propvariant import values
from tests.reference.reader import Fault

# A change by GUID up to its NumberOfProperties
HEAD = b"\1\1\1\1" + bytes(56)


def payload(kind: Format, data: bytes) -> None:
    """A payload in a batch, as the one packet it holds and written back is what the oracle says.

    Transport and strictness follow from the input, so that libFuzzer may vary them too and one input costs one reading.
    """
    transport = kind.transports[len(data) % 3] if kind.transports else "unknown"
    way: dict[str, Any] = {"strict": bool(sum(data) & 1), **({"transport": transport} if kind.transports else {})}
    alone = kind is kind.read_as(data, transport)
    packet = kind.assert_agrees(data, **way) if alone else kind.read(data, **way)
    batch = kind.decode_batch([data], **way)
    entry = batch.fault(0)
    assert (entry and tuple(entry[:3])) == (tuple(packet) if isinstance(packet, Fault) else None), way
    # All columns take fifty times as long as all the rest: they are for one input in many
    if sum(data) % 1024 < 2:
        assert_columns(batch, kind.expected([data], **way))
    if alone and entry is None and kind.accepts.issuperset(packet.violations):
        assert contents(kind.encode_batch(batch)) == [kind.encode(packet)]


def topology(data: bytes) -> None:
    """A discovery packet: [MS-MQSD] 2.2."""
    payload(TOPOLOGY, data)


def server_array(data: bytes) -> None:
    """A reply with this array: [MS-MQSD] 2.2.3."""
    header = b"\0\2\0\0" + bytes(16) + (1).to_bytes(4, "little") + bytes(4) + len(data).to_bytes(4, "little")
    topology(header + bytes(32) + data)


def notification_message(data: bytes) -> None:
    """A change notification: [MS-MQCN] 2.2.4."""
    payload(NOTIFICATIONS, data)


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
    if isinstance(expected, Fault):
        assert found == expected
        assert values.fault_of(propvariant.size, vt, data) == expected
        return
    value, end = expected
    assert values.plain(type_, found) == value
    assert propvariant.size(vt, data) == end
    assert propvariant.encode(vt, found) == data[:end]


def message_packet(data: bytes) -> None:
    """The same for the messages table: [MS-MQMQ] 2.2.20."""
    payload(MESSAGES, data)


def session_packet(data: bytes) -> None:
    """The same for the sessions table: [MS-MQQB] 2.2."""
    payload(SESSIONS, data)


SMALL_FILES = reading.SmallFiles()
PCAP_MAGICS = {struct.pack(order + "I", magic) for order in "<>" for magic in (0xA1B2C3D4, 0xA1B23C4D)}
PCAPNG_MAGICS = {b"\x0a\x0d\x0d\x0a" + struct.pack(order + "I", 0x1A2B3C4D) for order in "<>"}
LINKS = (1, 0, 12, 14, 101, 108, 113, 228, 229, 276, 105, 65535, 127, 192, 9, 50, 51, 104, 219)


def sizes_of(data: bytes) -> list[int]:
    """How many bytes each read of a file gives; they follow from it, so that libFuzzer may vary them."""
    seed = sum(data[-8:])
    return [4096] if seed % 2 == 0 else [1 + seed * factor % (64 << seed % 3) for factor in (1, 7, 31)]


def capture_file(
    data: bytes, limits: capture.StreamLimits | None = None, streams: stream_oracle.Streams | None = None
) -> None:
    """A capture gives the rows and the account that the oracle gives, however few bytes come at a time."""
    expected = oracle.read(data, set(reading.PORTS), streams)
    if sum(data) % 256 == 0:
        rows, stats = reading.read(data, limits=limits or capture.StreamLimits())
        assert rows == expected.rows
    rows, stats = SMALL_FILES.read(data, sizes_of(data), limits)
    assert rows == [row._replace(src="", dst="", encapsulation=None) for row in expected.rows]
    assert (stats.frames, stats.segments, stats.other) == (expected.frames, expected.segments, expected.other)
    assert (stats.malformed, stats.unsupported) == (len(expected.malformed), sum(expected.unsupported.values()))
    assert (stats.bytes_read, stats.bytes_skipped) == (len(data), expected.skipped)
    if not stats.streams.problems:
        assert [problem.offset for problem in stats.problems] == expected.told[:100]
    counted = expected.streams.account
    assert all(count == counted[name] for name, count in vars(stats.streams).items()), (stats.streams, counted)


def pcap(data: bytes) -> None:
    """A whole file of the classic format: draft-ietf-opsawg-pcap."""
    if data[:4] not in PCAP_MAGICS or len(data) < 24:
        data = build.pcap_header() + data
    try:
        capture_file(data)
    except CaptureError:
        order = ">" if data[0] == 0xA1 else "<"
        assert struct.unpack_from(order + "H", data, 4) != (2,)


def pcapng(data: bytes) -> None:
    """A whole file of blocks: draft-ietf-opsawg-pcapng."""
    if data[:4] + data[8:12] not in PCAPNG_MAGICS or len(data) < 24:
        data = build.section() + data
    capture_file(data)


def layers(data: bytes) -> None:
    """A file of one frame, behind a byte that chooses its link type."""
    if data:
        capture_file(build.pcap_header(link=LINKS[data[0] % len(LINKS)]) + build.pcap_record(data[1:]))


def content() -> bytes:
    """What segments carry: see kernels_streams.pyx."""
    parts = []
    for number in range(45):
        body = bytes([0x40 + number]) * (number * 11 % 61)
        session = number % 3 == 0
        internal = number % 4 == 1 and not session
        parts.append(build.internal(body, session=False) if internal else build.message(body, session=session))
    return b"".join(parts)


CONTENT = content()[:2048]
SEQUENCES = (0, 0xFFFFFF9C, 0x7FFFFFCE, 12345)


def segments(data: bytes) -> Iterator[bytes]:
    """The frames of a stream of operations, in the form that kernels_streams.pyx describes."""
    while len(data) >= 4:
        operation, position, size = struct.unpack_from("<BHB", data)
        data = data[4:]
        if operation & 32:
            payload, data = data[:size], data[size:]
        else:
            position %= len(CONTENT)
            payload = CONTENT[position : position + size]
        sequence = SEQUENCES[operation & 3] + position + (0x7FFFFFF0 if operation & 128 else 0)
        flags = operation >> 1 & 2 | operation >> 3 & 1 | operation >> 2 & 4
        frame = build.segment(payload, sequence - bool(flags & 2), flags | 0x10, source=40000 + (operation & 3))
        yield frame[: len(frame) - (len(payload) - len(payload) // 2)] if operation & 64 else frame


def streams(data: bytes) -> None:
    """Segments in any order and of any kind; limits of memory are not the oracle's."""
    if len(data) < 2:
        return
    limits = capture.StreamLimits(ahead=(1 << 20, 0, 30, 300)[data[0] & 3], streams=1 + (data[0] >> 4 & 3))
    expected = stream_oracle.Streams(limit=limits.ahead, most=limits.streams)
    capture_file(build.pcap(segments(data[2:])), limits, expected)


def format_names(data: bytes) -> None:
    """A name, or a path name, behind a byte with the options of the grammar: [MS-MQMQ] 2.1."""
    bits = data[0] if data else 0
    options: dict[str, Any] = {"extended": bool(bits & 1), "http_slashes": bool(bits & 2), "spx": bool(bits & 4)}
    if bits & 8:
        options = {"path_names": True}
    text = data[1:].decode("utf-8", "surrogateescape")
    expected = answers.of_reference(text, **options)
    assert answers.of_parse(text, **options) == expected
    # A column takes a hundred times as long: it is for one input in many
    if sum(data) % 256 == 0:
        rows = parse_batch([text], **options).to_arrow(guid="uuid").to_pylist()
        assert answers.of_batch(rows, **options) == [expected]


def changing_bytes(data: bytes) -> None:
    """A batch over memory that changes after decoding: every use ends, and reads and writes no other memory.

    The first byte chooses a table, the second a packet; then three bytes each, a place and a value. A place below
    32,768 is changed before decoding, others between decoding and each use.
    """
    if len(data) < 2:
        return
    kind = FORMATS[data[0] % len(FORMATS)]
    packets_of_kind = (*kind.whole, *kind.packets)
    payload = packets_of_kind[data[1] % len(packets_of_kind)]
    if not payload:
        return
    memory = np.frombuffer(payload, np.uint8).copy()
    changes = list(struct.iter_unpack("<HB", data[2 : 2 + (len(data) - 2) // 3 * 3]))
    for place, value in changes:
        if place < 1 << 15:
            memory[place % len(memory)] = value
    offsets = pa.py_buffer(struct.pack("<2i", 0, len(memory)))
    batch = kind.decode_batch(pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(memory.data)]))
    uses: tuple[Callable[[], object], ...] = (
        lambda: [array.tobytes() for _, array in arrays(batch)],
        lambda: batch.to_arrow(guid="text").validate(full=True),
        lambda: kind.encode_batch(batch),
        lambda: kind.look(batch),
        lambda: pa.array(batch.payloads),
    )
    later = [change for change in changes if change[0] >= 1 << 15]
    for number, use in enumerate(uses):
        for place, value in later[number :: len(uses)]:
            memory[place % len(memory)] = value
        with contextlib.suppress(EncodeError):
            use()


TARGETS: dict[str, Callable[[bytes], None]] = {
    "topology": topology,
    "server_array": server_array,
    "notification_message": notification_message,
    "notification_body": notification_body,
    "property_values": property_values,
    "message_packet": message_packet,
    "session_packet": session_packet,
    "pcap": pcap,
    "pcapng": pcapng,
    "layers": layers,
    "streams": streams,
    "format_names": format_names,
    "changing_bytes": changing_bytes,
    "session_machines": session_machines,
    "sequences": sequences,
}


def main() -> None:
    """Fuzz the target named first on the command line."""
    import atheris

    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
