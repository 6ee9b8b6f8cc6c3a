"""Run the kernels on windows that end, or begin, at a page that must not be touched; run by test_bounds.py.

The kernels are C functions; Cython gives their addresses in ``__pyx_capi__``. A window as the reader has it lies in a
larger buffer, where reading too far would go unnoticed.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import sys
from collections.abc import Iterator
from typing import Any

from msmqwire import capture
from msmqwire.capture.files import _pcap as pcap  # type: ignore[attr-defined]
from msmqwire.capture.files import _pcapng as pcapng  # type: ignore[attr-defined]
from msmqwire.capture.frames import _layers as layers  # type: ignore[attr-defined]
from msmqwire.capture.tcp._streams import StreamTable
from tests.capture import build
from tests.capture.structs import structure
from tests.capture.test_oracle import BASES, FRAMES, broken

PAGE = mmap.PAGESIZE
INSIDE = 8 * PAGE
MORE, LOST, SECTION, INTERFACE, SKIP = range(5)


Window = structure("files/window.pxd", "Window")
Rows = structure("frames/_rows.pxd", "Rows")
PcapFile = structure("files/_pcap.pxd", "PcapFile")
Interface = structure("files/_pcapng.pxd", "Interface")
Section = structure("files/_pcapng.pxd", "Section")
NO_LIMIT = ctypes.c_size_t(-1).value

# Where the rows of a block are written: always, for columns, and for frames that are rows as they were captured
ALWAYS = ("spans", "others", "lost", "memory", "files")
COLUMNS = (
    *("presence", "file", "frame", "first_frame", "time", "src", "src_port", "dst", "dst_port", "transport"),
    "stream_offset",
)
WHOLE = ("link", "offset")


def function(module: Any, name: str, *, result: Any = ctypes.c_int) -> Any:
    """A C function of a compiled module."""
    capsule = module.__pyx_capi__[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(result)(get_pointer(capsule, get_name(capsule)))


class Area:
    """Some pages between two that cannot be read."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, INSIDE + 2 * PAGE)
        self.first = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for guard in (self.first, self.first + PAGE + INSIDE):
            if protect(guard, PAGE, 0):
                raise OSError(ctypes.get_errno(), "mprotect")

    def place(self, data: bytes, *, at_the_end: bool) -> int:
        """The address of the data, right before the one page or right behind the other."""
        at = self.first + PAGE + (INSIDE - len(data) if at_the_end else 0)
        ctypes.memmove(at, data, len(data))
        return at


class Kernels:
    """The kernels with what they write to."""

    def __init__(self) -> None:
        self.walk_pcap = function(pcap, "walk_pcap")
        self.find_record = function(pcap, "find_record")
        self.read_header = function(pcap, "read_pcap_header")
        self.walk_pcapng = function(pcapng, "walk_pcapng")
        self.find_block = function(pcapng, "find_block")
        self.read_section = function(pcapng, "read_section")
        self.read_interface = function(pcapng, "read_interface", result=None)
        self.find_packet = function(layers, "find_packet")
        self.all_ports = ctypes.create_string_buffer(b"\xff" * 8192, 8192)
        self.ports = (ctypes.c_void_p * 3)(*[ctypes.addressof(self.all_ports)] * 3)
        self.account = ctypes.create_string_buffer(1 << 14)  # Counts
        self.interfaces = (Interface * 512)()
        self.columns = {name: ctypes.create_string_buffer(65536) for name in (*ALWAYS, *COLUMNS, *WHOLE)}
        self.table = StreamTable(3, capture.StreamLimits(), 0)
        self.found = 0
        self.streams = ctypes.c_void_p(id(self.table) + object.__basicsize__)  # behind the head of the object

    def rows(self, columns: bool, whole: bool) -> Any:
        """An empty block, with all columns or without any."""
        wanted = (*ALWAYS, *(COLUMNS if columns else ()), *(WHOLE if whole else ()))
        rows = Rows(columns=columns, whole=whole, **{name: ctypes.addressof(self.columns[name]) for name in wanted})
        rows.next = rows.spans
        return rows

    def pcap(self, header: bytes, at: int, size: int, *, columns: bool, whole: bool, ended: bool) -> None:
        """Walk the records of a window, going on behind damage."""
        file, window, rows = PcapFile(), Window(at, size, 0, NO_LIMIT, 24), self.rows(columns, whole)
        self.read_header(ctypes.c_char_p(header), ctypes.byref(file))
        for _ in range(size + 1):
            stop = self.walk_pcap(
                ctypes.byref(window),
                ctypes.byref(file),
                self.ports,
                ctypes.byref(rows),
                self.account,
                self.streams,
                int(ended),
            )
            if stop == MORE and (not ended or window.position == size):
                break
            window.position += 1
            if not self.find_record(ctypes.byref(window), ctypes.byref(file), int(ended)):
                break
        assert window.position <= size
        self.found += rows.next != rows.spans

    def pcapng(self, at: int, size: int, *, columns: bool, whole: bool, ended: bool) -> None:
        """Walk the blocks of a window, going on behind damage."""
        section, window, rows = Section(), Window(at, size, 0, NO_LIMIT, 0), self.rows(columns, whole)
        for _ in range(2 * size + 2):
            stop = self.walk_pcapng(
                ctypes.byref(window),
                ctypes.byref(section),
                self.ports,
                ctypes.byref(rows),
                self.account,
                self.streams,
            )
            if stop == SECTION:
                stop = self.read_section(ctypes.byref(window), ctypes.byref(section), self.account)
            elif stop == INTERFACE:
                section.interfaces = ctypes.addressof(self.interfaces)
                place = ctypes.byref(self.interfaces[section.count])
                self.read_interface(ctypes.byref(window), ctypes.byref(section), place)
                section.count = min(section.count + 1, 500)
            if stop == SKIP or (stop == MORE and (not ended or window.position == size)):
                break
            if stop in (MORE, LOST):
                window.position += 1
                if not self.find_block(ctypes.byref(window), ctypes.byref(section), int(ended)):
                    break
        assert window.position <= size
        self.found += rows.next != rows.spans


def windows() -> Iterator[bytes]:
    """Captures cut at every byte, and broken ones."""
    for data in BASES:
        yield from (data[:size] for size in range(24, len(data) + 1))
    yield from broken(3000, seed=11)


def main() -> None:
    """Walk every window at both ends of the area; print how many there were, and how many had rows."""
    faulthandler.enable()
    area, kernels, count = Area(), Kernels(), 0
    if sys.argv[1:] == ["touch"]:
        ctypes.string_at(area.first + PAGE + INSIDE, 1)
    for data in windows():
        count += 1
        at_the_end, ended = bool(count & 1), bool(count & 4)
        form = {"columns": bool(count & 2), "whole": count & 10 == 10}
        if data.startswith(b"\x0a\x0d\x0d\x0a"):
            kernels.pcapng(area.place(data, at_the_end=True), len(data), **form, ended=ended)
        else:
            at = area.place(data[24:], at_the_end=True)
            kernels.pcap(data[:24], at, len(data) - 24, **form, ended=ended)
        if at_the_end:
            continue
        if data.startswith(b"\x0a\x0d\x0d\x0a"):
            kernels.pcapng(area.place(data, at_the_end=False), len(data), **form, ended=not ended)
    found = ctypes.create_string_buffer(256)
    for frame in [*FRAMES, build.ethernet(0x86DD, build.ipv6(build.extension(17, 64), 0))]:
        for size in range(len(frame) + 1):
            for link, start in ((1, 0), (101, 14), (228, 14), (229, 14)):
                part = frame[start:size]
                place = ctypes.c_void_p(area.place(part, at_the_end=True))
                kernels.find_packet(place, ctypes.c_size_t(len(part)), link, kernels.ports, found)
                count += 1
    print(count, kernels.found)


if __name__ == "__main__":
    main()
