"""The fuzz targets of the Python surface: what a caller sees, compared with the slow oracle of tests/reference.

``python -m fuzz.surface TARGET [libFuzzer options]`` runs one under atheris; the extensions must be the instrumented
ones (``make fuzz`` builds them and sets the path).
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from msmqwire import mqsd
from tests.mqsd import rows
from tests.reference import mqsd as reference


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


TARGETS: dict[str, Callable[[bytes], None]] = {"topology": topology, "server_array": server_array}


def main() -> None:
    """Fuzz the target named first on the command line."""
    import atheris

    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
