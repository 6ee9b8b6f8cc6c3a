"""The picture of a report that README shows is of the report that `msmqwire report` writes today.

After a change of the report, ``make quick ROOM=insight ARGS="-k picture --write-picture"`` writes it again.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from pathlib import Path

import pytest

from tests.cli.support import msmqwire
from tests.insight.test_report import browse

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "report.png"
WIDTH, HEIGHT = 1200, 1160
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, data: bytes) -> bytes:
    """A chunk of a PNG file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_the_picture_shows_the_report(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    done = msmqwire("report", "examples/message-session.pcap", "-q", "-o", tmp_path / "report.html")
    assert done.returncode == 0
    # Version, time and command line of the moment
    text = re.sub(r"<li>msmqwire .*?</li>", "", (tmp_path / "report.html").read_text("utf-8"), count=1)
    digest = hashlib.sha256(text.encode()).hexdigest()
    made_of = chunk(b"tEXt", b"Report SHA-256\0" + digest.encode())
    if request.config.getoption("write_picture"):
        page = tmp_path / "page.html"
        page.write_text(text, "utf-8")
        drawn = tmp_path / "page.png"
        browse(page, "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={drawn}")
        end = len(SIGNATURE) + 25  # after the chunk IHDR
        data = drawn.read_bytes()
        PICTURE.write_bytes(data[:end] + made_of + data[end:])
    picture = PICTURE.read_bytes()
    assert picture.startswith(SIGNATURE)
    assert struct.unpack(">II", picture[16:24]) == (WIDTH, HEIGHT)
    assert made_of in picture, "the report has changed: write its picture again, and look at it"
    assert "docs/report.png" in (ROOT / "README.md").read_text("utf-8")
