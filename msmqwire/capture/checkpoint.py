"""A place in a capture where reading can resume."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import NamedTuple

from msmqwire.capture._state import LAYOUT
from msmqwire.errors import CaptureFormatError

VERSION = 3
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
        Section and interfaces, open TCP streams with what they hold, IP datagrams in fragments; read by the version of
        this package that wrote it.
    """

    file: str
    offset: int
    frames: int
    state: bytes = field(repr=False)

    @classmethod
    def of(cls, file: str, offset: int, frames: int, state: State) -> Checkpoint:
        """A checkpoint with this state, encoded as ``opened`` reads it."""
        parts = [state.reading, state.reader, state.streams, *(name.encode() for name in state.files)]
        body = LAYOUT + bytes((state.finished,)) + b"".join(_SIZE.pack(len(part)) + part for part in parts)
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
        if not body.startswith(LAYOUT):
            raise CaptureFormatError("a checkpoint of another kind of machine, or of another build of this package")
        reading, reader, streams, *files = _parts(body[len(LAYOUT) + 1 :])
        finished = body[len(LAYOUT)] != 0
        return State(reading, reader, finished, [name.decode(errors="replace") for name in files], streams)

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


def _parts(data: bytes) -> list[bytes]:
    """The parts, each after its size; at least three."""
    parts = []
    at = 0
    while at < len(data):
        if _SIZE.size > len(data) - at:
            raise _malformed("it is truncated")
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size
        if size > len(data) - at:
            raise _malformed("it is truncated")
        parts.append(data[at : at + size])
        at += size
    if len(parts) < 3:
        raise _malformed("it is truncated")
    return parts


def _malformed(why: str) -> CaptureFormatError:
    return CaptureFormatError(f"the checkpoint is malformed: {why}")
