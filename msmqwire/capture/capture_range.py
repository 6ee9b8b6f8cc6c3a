"""A part of a sequence of captures, from one checkpoint to another."""

from __future__ import annotations

import hashlib

from msmqwire.capture._state import reader_state, set_streams, streams_state
from msmqwire.capture.checkpoint import Checkpoint, State
from msmqwire.capture.files._file_reader import FileReader
from msmqwire.capture.files.sources import UnopenedFile
from msmqwire.capture.tcp._streams import StreamTable
from msmqwire.errors import CaptureReadError


class CaptureRange:
    """The part of a sequence of captures between two checkpoints, or the beginning and the end.

    Attributes
    ----------
    resume, stop : Checkpoint or None
    resume_inside, stop_inside : bytes
        Where the two are in their files, for ``state.resume_reader`` and ``state.stop_at``; empty between files.
    finishes : bool
        Incomplete datagrams and packets are given up at the end.
    grows : bool
        The last file may grow.
    """

    def __init__(self, resume: Checkpoint | None, stop: Checkpoint | None, *, final: bool, reading: str | None) -> None:
        """``reading``: the options that the state of a reader depends on; None if the state is not used."""
        self._reading = b"" if reading is None else hashlib.blake2b(reading.encode(), digest_size=8).digest()
        self.resume, self.stop = resume, stop
        self.finishes = final
        self.grows = not final and stop is None
        self.resume_inside = self.stop_inside = b""
        self._resumed: State | None = None
        if resume is not None:
            self._resumed = self._opened(resume)
            self.resume_inside = self._resumed.reader
        if stop is not None:
            stopped = self._opened(stop)
            self.stop_inside, self.finishes = stopped.reader, stopped.finished

    @property
    def size(self) -> int | None:
        """The size of the last file if the part ends with it: more may have been written since."""
        return self.stop.offset if self.stop is not None and self.stop.offset and not self.stop_inside else None

    def files(self, files: list[UnopenedFile]) -> list[UnopenedFile]:
        """The files of a source that belong to the part."""
        names = [file.name for file in files]
        for checkpoint in (self.resume, self.stop):
            if checkpoint is None:
                continue
            if checkpoint.file not in names:
                raise ValueError(f"the checkpoint is in {checkpoint.file}, which is not among the files of the source")
            if names.count(checkpoint.file) > 1:
                raise ValueError(
                    f"the checkpoint is in {checkpoint.file}, and the source has several files of this name: name each "
                    "file once, and give file objects a name of their own"
                )
        first = 0 if self.resume is None else names.index(self.resume.file)
        if self.stop is None:
            return files[first:]
        if self.stop.file not in names[first:]:
            raise ValueError(f"stop, in {self.stop.file}, is before resume, in {names[first]}")
        last = names.index(self.stop.file, first)
        if self.resume is not None and last == first and self.stop.offset < self.resume.offset:
            raise ValueError(
                f"stop, at {self.stop.offset} in {self.stop.file}, is before resume, at {self.resume.offset}"
            )
        return files[first : last + (self.stop.offset > 0)]

    def begin(self, streams: StreamTable) -> None:
        """Restore the streams and datagrams that were open where the part begins."""
        if self._resumed is not None:
            set_streams(streams, self._resumed.files, self._resumed.streams)
            self._resumed = None

    def check_end(self, reader: FileReader) -> None:
        """Raise if the last file is shorter than the stop checkpoint says."""
        if self.stop is not None and self.stop.offset > reader.place:
            raise CaptureReadError(f"{reader.name}: ends at {reader.place}, before the checkpoint {self.stop.offset}")

    def checkpoint_of(self, reader: FileReader, streams: StreamTable, *, at_end: bool) -> Checkpoint:
        """Return the checkpoint of a reader; ``at_end``: at the end of its file, which is not read again."""
        inside = b""
        if reader.place and not at_end:
            inside = reader_state(reader)
        files, open_streams = streams_state(streams, reader)
        state = State(self._reading, inside, at_end and self.finishes, files, open_streams)
        return Checkpoint._of(reader.name, reader.place, reader.frames, state)

    def checkpoint_before(self, name: str, streams: StreamTable) -> Checkpoint:
        """A checkpoint between two files, before the file ``name``."""
        state = State(self._reading, b"", False, *streams_state(streams, None))
        return Checkpoint._of(name, 0, 0, state)

    def _opened(self, checkpoint: Checkpoint) -> State:
        state = checkpoint._opened()
        if self._reading and state.reading != self._reading:
            raise ValueError(f"{checkpoint}: was made with other ports, packets or limits")
        return state
