"""Compressed captures give the rows of what they hold; malformed ones those that can be had, and say so."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pytest

from msmqwire import capture
from msmqwire.capture.files import compression
from msmqwire.errors import CaptureError
from tests.capture import build
from tests.capture.reading import Dribble, read

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FORMS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstd.compress,
    "lz4": lz4.frame.compress,
    "xz": lzma.compress,
    "bzip2": lambda data: bz2.compress(data, 1),
}
FRAMES = [build.plain(os.urandom(1400)) for _ in range(300)]  # several blocks of every form
DATA = build.pcap(FRAMES)
ROWS, _ = read(DATA)


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_those_of_the_plain_file(form: str, tmp_path: Path) -> None:
    compressed = FORMS[form](DATA)
    assert read(compressed)[0] == ROWS
    path = tmp_path / "named.pcap"  # the name says nothing of the form
    path.write_bytes(compressed)
    rows, stats = read(path)
    assert rows == ROWS
    assert (stats.bytes_read, stats.bytes_skipped, stats.truncated_files) == (len(DATA), 0, 0)


@pytest.mark.parametrize("form", FORMS)
def test_streams_behind_each_other(form: str) -> None:
    """As ``cat a.gz b.gz`` makes them, and compressors that write in blocks."""
    parts = [DATA[at : at + 10_000] for at in range(0, len(DATA), 10_000)]
    assert read(b"".join(map(FORMS[form], parts)))[0] == ROWS


def skippable(data: bytes, number: int = 0) -> bytes:
    """A frame without content, which zstd and lz4 have in common; there are 16 magic numbers."""
    return struct.pack("<2I", 0x184D2A50 + number, len(data)) + data


@pytest.mark.parametrize("form", ["zstd", "lz4"])
def test_frames_without_content(form: str) -> None:
    """pzstd writes one before each frame, which says its size."""
    frames = [FORMS[form](part) for part in (DATA[:10_000], DATA[10_000:])]
    sizes = [skippable(struct.pack("<I", len(frame))) for frame in frames]
    assert read(b"".join(size + frame for size, frame in zip(sizes, frames, strict=True)))[0] == ROWS
    for number in range(16):
        others = skippable(bytes(number), number) + skippable(os.urandom(1 << 17), 15 - number)
        compressed = others + others.join(frames) + others
        assert read(compressed)[0] == ROWS
        assert read(Dribble(compressed, [1, 7, 10_000]))[0] == ROWS


def test_a_file_that_ends_in_frames_without_content() -> None:
    frames = skippable(b"sized", 3) + skippable(b"")
    for size in range(6, len(frames)):
        at_end = size == len(skippable(b"sized"))
        with pytest.raises(CaptureError, match="is empty" if at_end else "the zstd.* stream is truncated after 0 "):
            read(frames[:size])
    with pytest.raises(CaptureError, match="is empty"):
        read(frames)
    with pytest.raises(CaptureError, match="malformed after 0"):
        read(frames + DATA)


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_that_dribbles(form: str) -> None:
    assert read(Dribble(FORMS[form](DATA), [1, 7, 10_000]))[0] == ROWS


def test_from_a_pipe() -> None:
    reader, writer = os.pipe()

    def write() -> None:
        with open(writer, "wb") as pipe:
            pipe.write(gzip.compress(DATA))

    thread = threading.Thread(target=write)
    thread.start()
    with open(reader, "rb") as pipe:
        assert read(pipe)[0] == ROWS
    thread.join()


def test_what_gzip_wrote(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(DATA)
    subprocess.run(["gzip", str(path)], check=True)
    assert read(path.with_suffix(".pcap.gz"))[0] == ROWS


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_cut_anywhere(form: str) -> None:
    """What can be had is had: rows from the front, and one problem that says that there were more."""
    compressed = FORMS[form](DATA)
    seen = set()
    for size in [*range(6, 40), *range(40, len(compressed), len(compressed) // 8), len(compressed) - 1]:
        try:
            rows, stats = read(compressed[:size])
        except CaptureError as error:
            assert f"{form} stream is" in str(error)  # noqa: PT017 - both outcomes are right, at different places
            continue
        assert rows == ROWS[: len(rows)]
        assert stats.truncated_files == 1
        assert stats.problems[-1].what.startswith(f"the {form} stream is truncated")
        assert stats.problems[-1].offset == stats.bytes_read
        seen.add(len(rows))
    assert max(seen) >= len(ROWS) // 2


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_a_stream_with_a_byte_changed(form: str) -> None:
    """Nothing but a CaptureError comes out, and the account adds up."""
    compressed = FORMS[form](DATA)
    for place in range(0, len(compressed), 4999):
        try:
            _, stats = read(compressed[:place] + bytes([compressed[place] ^ 0x55]) + compressed[place + 1 :])
        except CaptureError:
            continue
        assert stats.frames <= 2 * len(FRAMES)


def test_bytes_behind_a_stream_are_damage() -> None:
    rows, stats = read(gzip.compress(DATA) + b"something else")
    assert rows == ROWS
    assert stats.truncated_files == 1
    assert "malformed after" in stats.problems[0].what


def test_the_next_file_is_read_behind_a_cut_one(tmp_path: Path) -> None:
    whole, cut = tmp_path / "b.pcap", tmp_path / "a.pcap.gz"
    whole.write_bytes(DATA)
    cut.write_bytes(gzip.compress(DATA)[:-20])
    with capture.open([cut, whole]) as blocks:
        names = [name for block in blocks for name in block.capture.to_arrow()["file"].to_pylist()]
    assert names.count(str(whole)) == len(ROWS)
    assert blocks.stats.truncated_files == 1


@pytest.mark.long
def test_a_bomb_is_not_read_to_its_end() -> None:
    """Frames of zeros shrink without end, but none that were captured: their times differ."""
    block = build.pcap_record(build.plain(bytes(1400))) * 1000
    compressor = zstd.ZstdCompressor(level=19)
    bomb = compressor.compress(build.pcap_header()) + b"".join(compressor.compress(block) for _ in range(100))
    bomb += compressor.flush()
    assert len(bomb) < 100_000
    rows, stats = read(bomb)
    assert 40_000 < len(rows) < 60_000
    assert stats.truncated_files == 1
    assert "no capture does" in stats.problems[-1].what
    assert stats.bytes_read < 70 << 20


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("kind", "values"),
    [(OSError, (5, "Input/output error")), (OSError, ("lost",)), (EOFError, ()), (KeyError, ("lost",))],
)
@pytest.mark.usefixtures("everything_is_released")
def test_a_disk_that_fails_is_no_damage(form: str, kind: type[Exception], values: tuple[object, ...]) -> None:
    """Whatever the file raises: libraries that read from other machines have exceptions of their own."""
    # A parameter would keep what its traceback holds
    error = kind(*values)

    class Failing(io.RawIOBase):
        data = io.BytesIO(FORMS[form](DATA)[:100])

        def readable(self) -> bool:
            return True

        def readinto(self, view: memoryview) -> int:  # type: ignore[override]
            count = self.data.readinto(view)
            if not count:
                raise error
            return count

    with pytest.raises(kind) as raised:
        read(Failing())
    assert raised.value is error


def test_a_lack_of_memory_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        eof, needs_input, unused_data = False, True, b""

        def decompress(self, data: bytes, size: int) -> bytes:
            raise MemoryError

    monkeypatch.setitem(compression._FORMS, b"BZh", ("bzip2", lambda file, memory: compression._Streams(file, Failing)))
    with pytest.raises(MemoryError):
        read(FORMS["bzip2"](DATA))


@pytest.mark.parametrize(
    ("form", "modules", "package"),
    [
        ("lz4", ["lz4", "lz4.frame"], r"lz4, which is not installed: pip install 'lz4>="),
        pytest.param(
            "zstd",
            ["backports", "backports.zstd"],
            r"backports.zstd, which is not installed: pip install 'backports.zstd>=",
            marks=pytest.mark.skipif(sys.version_info >= (3, 14), reason="zstd is part of Python"),
        ),
    ],
)
def test_a_library_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, form: str, modules: list[str], package: str
) -> None:
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CaptureError, match=f"decompressing {form} needs {package}"):
        capture.open(io.BytesIO(FORMS[form](DATA)))


def test_a_compressed_file_that_is_no_capture() -> None:
    with pytest.raises(CaptureError, match="expected a pcap"):
        capture.open(io.BytesIO(gzip.compress(b"These are notes, and quite long ones at that.")))
