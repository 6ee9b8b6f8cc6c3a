"""A place in a capture where reading can resume."""

from __future__ import annotations

import hashlib
import json
import struct
import sys
import zlib
from dataclasses import dataclass, field
from typing import NamedTuple

from msmqwire.capture._state import FIELDS
from msmqwire.errors import CaptureFormatError

VERSION = 4
#: Bytes of a state, at most: twice what StreamLimits lets a reader hold by default.
LARGEST_STATE = 256 << 20
MAGIC = b"msmqwire checkpoint" + bytes((VERSION,))
_SEAL = struct.Struct("<I")  # the checksum of the bytes after it, and of the place
_PLACE = struct.Struct("<QQ")
_SIZE = struct.Struct("<Q")


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
    def of(cls, file: str, offset: int, frames: int, state: State) -> Checkpoint:
        """A checkpoint with this state, encoded as ``opened`` reads it."""
        header = {
            "fields": _fields(),
            "reading": state.reading.hex(),
            "finished": state.finished,
            "files": state.files,
            "reader": len(state.reader),
        }
        body = zlib.compress(b"\n".join((json.dumps(header).encode(), state.reader + state.streams)), 1)
        return cls(file, offset, frames, MAGIC + _SEAL.pack(_checksum(file, offset, frames, body)) + body)

    def opened(self) -> State:
        """Decode ``state``.

        Raises
        ------
        CaptureError
            It is malformed, or of another version of this package.
        """
        front = len(MAGIC) + _SEAL.size
        if len(self.state) < front or not self.state.startswith(MAGIC[:-1]):
            raise _malformed("it does not begin like one")
        if not self.state.startswith(MAGIC):
            raise CaptureFormatError(f"a checkpoint of version {self.state[len(MAGIC) - 1]}; this is version {VERSION}")
        body = self.state[front:]
        try:
            found = _checksum(self.file, self.offset, self.frames, body)
        except struct.error:
            raise _malformed(f"offset {self.offset}, frames {self.frames}") from None
        if _SEAL.unpack_from(self.state, len(MAGIC))[0] != found:
            raise _malformed("its checksum differs")
        content = zlib.decompressobj()
        try:
            header, _, state = content.decompress(body, LARGEST_STATE).partition(b"\n")
            fields = json.loads(header)
        except (ValueError, zlib.error):
            fields = {}
        if content.unconsumed_tail or not content.eof or not isinstance(fields, dict) or "fields" not in fields:
            raise _malformed(f"it is truncated, or above {LARGEST_STATE} bytes")
        if fields["fields"] != _fields():
            raise CaptureFormatError(
                "a checkpoint whose state has other fields: of another version of this package, or kind of machine"
            )
        reader, streams = state[: fields["reader"]], state[fields["reader"] :]
        return State(bytes.fromhex(fields["reading"]), reader, fields["finished"], fields["files"], streams)

    def to_bytes(self) -> bytes:
        """The checkpoint as bytes, for ``from_bytes``."""
        name = self.file.encode()
        return _PLACE.pack(self.offset, self.frames) + _SIZE.pack(len(name)) + name + self.state

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Checkpoint:
        """The checkpoint of ``to_bytes``.

        Raises
        ------
        CaptureError
            The bytes are not a checkpoint, or are malformed, or of another version of this package.
        """
        data = bytes(memoryview(data))
        front = _PLACE.size + _SIZE.size
        if len(data) < front:
            raise _malformed("it is truncated")
        offset, frames = _PLACE.unpack_from(data)
        (size,) = _SIZE.unpack_from(data, _PLACE.size)
        name = data[front : front + size].decode(errors="replace")
        checkpoint = cls(name, offset, frames, data[front + size :])
        checkpoint.opened()
        return checkpoint


def _checksum(file: str, offset: int, frames: int, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(_PLACE.pack(offset, frames) + file.encode()))


def _fields() -> str:
    """A digest of the names and sizes of all fields in a state."""
    return hashlib.blake2b(repr((sys.byteorder, FIELDS)).encode(), digest_size=8).hexdigest()


def _malformed(why: str) -> CaptureFormatError:
    return CaptureFormatError(f"the checkpoint is malformed: {why}")
