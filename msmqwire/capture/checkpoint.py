"""A place in a capture where reading can resume."""

from __future__ import annotations

import hashlib
import json
import struct
import sys
import zlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msmqwire.capture._state import FIELDS
from msmqwire.errors import CaptureFormatError

VERSION = 4
#: Bytes of a state, at most: twice what StreamLimits lets a reader hold by default.
LARGEST_STATE = 256 << 20
MAGIC = b"msmqwire checkpoint" + bytes((VERSION,))
_CHECKSUM = struct.Struct("<I")  # of the bytes after it


class State(NamedTuple):
    """The state of a reader at a checkpoint, beside the place.

    Attributes
    ----------
    reading : bytes
        A digest of the options that the state depends on: ports, packets and limits.
    reader : bytes
        Its place in its file, for ``state.resume_reader``; empty before a file, and after one.
    finished : bool
        The capture has ended: streams and datagrams that were open have been given up.
    files : list of str
        The files before the one that is read that the streams refer to.
    streams : bytes
        For ``state.set_streams``.
    """

    reading: bytes
    reader: bytes
    finished: bool
    files: list[str]
    streams: bytes


@dataclass(frozen=True)
class Checkpoint:
    """A place between two frames of a capture, with the state that reading needs to resume there.

    The same place in the same files gives the same checkpoint, wherever reading began. It can be pickled.

    Attributes
    ----------
    file : str
        The file, as it was named to the reader.
    offset : int
        Of the next record in it.
    frames : int
        The number of frames before the place in the file.
    state : bytes
        Section and interfaces, open TCP streams with what they hold, IP datagrams in fragments, compressed. A version
        of this package reads it if its structures have the same fields.
    """

    file: str
    offset: int
    frames: int
    state: bytes = field(repr=False)

    @classmethod
    def _of(cls, file: str, offset: int, frames: int, state: State) -> Checkpoint:
        """A checkpoint with this state, encoded as ``_opened`` reads it."""
        header = {
            "place": [file, offset, frames],
            "fields": _fields(),
            "reading": state.reading.hex(),
            "finished": state.finished,
            "files": state.files,
            "reader": len(state.reader),
        }
        body = zlib.compress(b"".join((json.dumps(header).encode(), b"\n", state.reader, state.streams)), 1)
        return cls(file, offset, frames, MAGIC + _CHECKSUM.pack(zlib.crc32(body)) + body)

    def _opened(self) -> State:
        """Decode ``state``.

        Raises
        ------
        CaptureError
            It is malformed, or of another version of this package.
        """
        header, state = _decoded(self.state)
        if header["place"] != [self.file, self.offset, self.frames]:
            raise _malformed("it is of another place")
        reader, streams = state[: header["reader"]], state[header["reader"] :]
        return State(bytes.fromhex(header["reading"]), reader, header["finished"], header["files"], streams)

    def to_bytes(self) -> bytes:
        """The checkpoint as bytes, for ``from_bytes``."""
        return self.state

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Checkpoint:
        """The checkpoint of ``to_bytes``.

        Raises
        ------
        CaptureError
            The bytes are not a checkpoint, or are malformed, or of another version of this package.
        """
        data = bytes(memoryview(data))
        file, offset, frames = _decoded(data)[0]["place"]
        return cls(file, offset, frames, data)


def _decoded(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a checkpoint, and the bytes after it."""
    front = len(MAGIC) + _CHECKSUM.size
    if len(data) < front or not data.startswith(MAGIC[:-1]):
        raise _malformed("it does not begin like one")
    if not data.startswith(MAGIC):
        raise CaptureFormatError(f"a checkpoint of version {data[len(MAGIC) - 1]}; this is version {VERSION}")
    body = memoryview(data)[front:]
    if _CHECKSUM.unpack_from(data, len(MAGIC))[0] != zlib.crc32(body):
        raise _malformed("its checksum differs")
    content = zlib.decompressobj()
    try:
        first, _, state = content.decompress(body, LARGEST_STATE).partition(b"\n")
        header = json.loads(first)
    except (ValueError, zlib.error):
        header = None
    if content.unconsumed_tail or not content.eof or not isinstance(header, dict):
        raise _malformed(f"it is truncated, or above {LARGEST_STATE} bytes")
    if header.get("fields") != _fields():
        raise CaptureFormatError(
            "a checkpoint whose state has other fields: of another version of this package, or kind of machine"
        )
    return header, state


def _fields() -> str:
    """A digest of the names and sizes of all fields in a state."""
    return hashlib.blake2b(repr((sys.byteorder, FIELDS)).encode(), digest_size=8).hexdigest()


def _malformed(why: str) -> CaptureFormatError:
    return CaptureFormatError(f"the checkpoint is malformed: {why}")
