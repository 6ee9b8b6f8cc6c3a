"""Files that are not pcap or pcapng: their formats, by their first bytes, and the programs that convert them."""

from __future__ import annotations

from msmqwire.errors import CaptureFormatError

_EDITCAP = "convert it: editcap {name} converted.pcapng"
_EXTRACT = "extract the captures in it"

# First bytes, format, and what to do with the file
_FORMATS = (
    (b"GMBU", "Microsoft Network Monitor 2", _EDITCAP),
    (b"RTSS", "Microsoft Network Monitor 1", _EDITCAP),
    (b"snoop\0\0\0", "Solaris snoop", _EDITCAP),
    (b"TRSNIFF data    \x1a", "Network General Sniffer (DOS)", _EDITCAP),
    (b"XCP\0", "Network Associates Sniffer (Windows)", _EDITCAP),
    (b"VL\0\0", "NetXRay", _EDITCAP),
    (b"\x05VNF", "Visual Networks", _EDITCAP),
    (b"iptrace 1.0", "AIX iptrace 1", _EDITCAP),
    (b"iptrace 2.0", "AIX iptrace 2", _EDITCAP),
    (b"\0\0\2\0\x12\5\0\x10", "Tektronix K12 (.rf5)", _EDITCAP),
    (b"\x01\x10\x4c\0", "Novell LANalyzer", _EDITCAP),
    (b"TR\0d\0", "HP-UX nettl", _EDITCAP),
    (b"ObserverPktBuffe", "Observer", _EDITCAP),
    (b"\xaa\xaa\xaa\xaa", "InfoVista 5View", _EDITCAP),
    (b"btsnoop\0", "Bluetooth btsnoop", _EDITCAP),
    (b"\xa1\xb2\xcd\x34", "modified pcap", _EDITCAP),
    (b"\x34\xcd\xb2\xa1", "modified pcap", _EDITCAP),
    (b"PK\3\4", "a zip archive", _EXTRACT),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _EXTRACT),
)
# pktmon records a packet at each component that it passes, and its own converter writes no component
_EVENT_TRACE_ADVICE = (
    "convert it: etl2pcapng {name} converted.pcapng, or one component (pktmon list), since with all each packet is "
    "there several times: pktmon etl2pcap {name} --out converted.pcapng --component-id N"
)
_EVENT_TRACE = 0x48  # bytes of the header of a trace buffer; then the first event, which describes the trace


def _is_event_trace(first: bytes) -> bool:
    """Return True if a file begins with a buffer of Event Tracing for Windows, which has no magic."""
    size = int.from_bytes(first[:4], "little")
    if len(first) < _EVENT_TRACE + 4 or not size or size % 1024 or size > 1 << 20:
        return False
    return first[_EVENT_TRACE + 2] in (1, 2) and first[_EVENT_TRACE + 3] == 0xC0


def not_a_capture(name: str, first: bytes) -> CaptureFormatError:
    """The error of a file that does not begin as a capture does, with all bytes known of its beginning."""
    if not first:
        return CaptureFormatError(f"{name}: is empty; expected a pcap or pcapng capture")
    found = next(((what, command) for magic, what, command in _FORMATS if first.startswith(magic)), None)
    if _is_event_trace(first):
        found = "Event Tracing for Windows (.etl)", _EVENT_TRACE_ADVICE
    if found is not None:
        what, command = found
        return CaptureFormatError(f"{name}: is {what}, not pcap or pcapng; {command.format(name=name)}")
    return CaptureFormatError(
        f"{name}: begins with {first[:24].hex(' ')}; expected a pcap capture (a1b2c3d4 or a1b23c4d in either byte "
        "order, version 2) or a pcapng capture (0a0d0d0a)"
    )
