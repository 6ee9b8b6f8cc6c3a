"""Which files a path means, and reading them: local ones, an S3 server's, and over HTTP with ranges."""

from __future__ import annotations

import errno
import gzip
import io
import os
import random
import shutil
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from msmqwire import capture
from msmqwire.capture import ReadOptions
from msmqwire.capture.files import remote
from msmqwire.capture.files.listing import SourceFile, find_files, open_source
from tests.spark.captures import ROOT
from tests.spark.object_store import ObjectStore, object_store

LOCAL = ROOT / "examples" / "local-site.pcap"
TREE = (
    "a.pcap",
    "b.pcapng",
    "day=1/c.pcap",
    "day=1/deep/d.pcap",
    "day=2/e.pcap",
    "_SUCCESS",
    ".hidden",
    "day=1/_temporary/f.pcap",
    ".git/g.pcap",
    "day=2/_h.pcap",
)


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as server:
        for name in TREE:
            server.put(f"tree/{name}", LOCAL)
        yield server


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in TREE:
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(LOCAL, path)
    return tmp_path / "tree"


@pytest.mark.parametrize(
    ("pattern", "recursive", "wanted"),
    [
        ("a.pcap", False, "a.pcap"),
        ("_SUCCESS", False, "_SUCCESS"),
        ("", False, "a.pcap b.pcapng"),
        ("/", False, "a.pcap b.pcapng"),
        ("", True, "a.pcap b.pcapng day=1/c.pcap day=1/deep/d.pcap day=2/e.pcap"),
        ("*", False, "a.pcap b.pcapng day=1/c.pcap day=2/e.pcap"),
        ("*", True, "a.pcap b.pcapng day=1/c.pcap day=1/deep/d.pcap day=2/e.pcap"),
        ("*.pcap", True, "a.pcap"),
        ("[ab].pcap*", False, "a.pcap b.pcapng"),
        ("day=*", False, "day=1/c.pcap day=2/e.pcap"),
        ("day=?/*.pcap", False, "day=1/c.pcap day=2/e.pcap"),
        ("day=*/_*.pcap", False, "day=2/_h.pcap"),
        ("**", False, "a.pcap b.pcapng day=1/c.pcap day=1/deep/d.pcap day=2/e.pcap"),
        ("**/*.pcap", False, "a.pcap day=1/c.pcap day=1/deep/d.pcap day=2/e.pcap"),
        ("day=1/**/d.pcap", False, "day=1/deep/d.pcap"),
        ("day=1/_temporary/*.pcap", False, "day=1/_temporary/f.pcap"),
    ],
)
def test_paths_mean_the_same_here_and_elsewhere(
    store: ObjectStore, tree: Path, pattern: str, recursive: bool, wanted: str
) -> None:
    size = LOCAL.stat().st_size
    slash = "" if pattern in ("", "/") else "/"
    names = wanted.split()
    local = find_files(f"{tree}{slash}{pattern}", recursive=recursive)
    elsewhere = find_files(f"s3://captures/tree{slash}{pattern}", recursive=recursive, storage_options=store.options)
    assert local == tuple(SourceFile(os.path.join(tree, name), size) for name in sorted(names))
    assert elsewhere == tuple(SourceFile(f"s3://captures/tree/{name}", size) for name in sorted(names))


def names_of(sources: Any, **options: Any) -> tuple[str, ...]:
    return tuple(file.name for file in find_files(sources, **options))


def test_several_sources_each_file_once(store: ObjectStore, tree: Path) -> None:
    sources = [tree / "day=2", f"file://{tree}/day=2/*", tree / "a.pcap", store.url("tree/a.pcap")]
    names = names_of(sources)
    assert names == tuple(sorted([str(tree / "a.pcap"), str(tree / "day=2/e.pcap"), store.url("tree/a.pcap")]))


@pytest.mark.parametrize("pattern", ["a.pcap", "", "*", "day=*", "day=*/_*.pcap", "**"])
def test_readers_take_names_as_the_list_does(tree: Path, pattern: str) -> None:
    """Paths, and URIs of another file system."""
    import fsspec

    for source in (f"{tree}/{pattern}", f"file:{tree}/{pattern}", f"memory:/{tree}/{pattern}"):
        if source.startswith("memory"):
            fsspec.filesystem("memory").put(f"{tree}/", f"{tree}/", recursive=True)
        with capture.open(source) as blocks:
            read = [name for block in blocks for name in block.capture.to_arrow().column("file").to_pylist()]
        assert tuple(dict.fromkeys(read)) == names_of(source)


def test_standard_input_has_one_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of that name has a folder in front of it."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(LOCAL, "-")
    assert names_of("./-") == ("./-",)
    with pytest.raises(ValueError, match="-: standard input cannot be read by several processes"):
        find_files("-")


def test_names_are_meant_as_they_stand(store: ObjectStore) -> None:
    uri = store.put("odd/what?#%20 [1].pcap", LOCAL)
    assert names_of(uri, storage_options=store.options) == (uri,)
    assert names_of("s3a://captures/odd/*", storage_options=store.options) == (uri.replace("s3:", "s3a:"),)
    with open_source(uri, store.options) as file:
        assert file.read() == LOCAL.read_bytes()


def test_captures_are_read_with_storage_options(store: ObjectStore) -> None:
    """By every function that reads captures, also from checkpoint to checkpoint."""
    uri = store.put("read/local.pcap", LOCAL)
    here, there = LOCAL, ReadOptions(storage_options=store.options)
    for name in (uri, "s3://captures/read", "s3://captures/read/*.pcap"):
        assert payloads(name, options=there) == payloads(here)
    assert (
        capture.read_table(uri, options=there)
        .to_pandas()
        .drop(columns="file")
        .equals(capture.read_table(here).to_pandas().drop(columns="file"))
    )
    first, *_ = capture.checkpoints(uri, 300, there)
    assert 0 < first.offset < LOCAL.stat().st_size
    assert [*payloads(uri, stop=first, options=there), *payloads(uri, resume=first, options=there)] == payloads(here)


def test_links(tree: Path) -> None:
    """One that leads nowhere is for whoever reads it to complain of; folders below are not searched through links."""
    (tree / "day=2" / "loop").symlink_to(tree)
    (tree / "day=2" / "nowhere").symlink_to(tree / "nothing")
    assert names_of(tree / "day=2", recursive=True) == (str(tree / "day=2/e.pcap"),)
    assert find_files(tree / "day=2" / "nowhere") == (SourceFile(str(tree / "day=2/nowhere"), 0),)
    assert names_of(tree / "day=2" / "loop") == (str(tree / "day=2/loop/a.pcap"), str(tree / "day=2/loop/b.pcapng"))


def test_files_that_go_while_they_are_listed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a ring of captures do, or those that are compressed."""
    found = [str(tree / name) for name in ("a.pcap", "gone.pcap")]
    monkeypatch.setattr("glob.glob", lambda *_, **__: found)
    assert names_of(tree / "*.pcap") == (found[0],)
    del found[0]
    with pytest.raises(FileNotFoundError, match="no capture matches"):
        find_files(tree / "*.pcap")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("s3://captures/nothing", "no capture matches 's3://captures/nothing'"),
        ("s3://captures/nothing/*.pcap", "no capture matches"),
        ("s3://captures/tree/*.nothing", "no capture matches"),
        ("s3://elsewhere/tree", "no capture matches"),
        ("ABSENT", "no capture matches 'http://127.0.0.1:"),
    ],
)
def test_sources_that_are_not_there(store: ObjectStore, source: str, message: str) -> None:
    source, options = (store.url("absent.pcap"), None) if source == "ABSENT" else (source, store.options)
    with pytest.raises(FileNotFoundError, match=message):
        find_files(source, storage_options=options)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("gopher://host/captures", {}, "gopher://host: Protocol not known: gopher"),
        ("sftp://host/captures", {}, 'sftp://host: SFTPFileSystem requires "paramiko" to be installed'),
        ("s3://key:secret@bucket/captures", {}, "s3://: URIs are shown in rows and messages; put credentials into"),
        ("s3://bucket/captures", {"secret": b"hidden"}, "^storage option 'secret' of type bytes has no form in JSON$"),
        ("s3://bucket/captures", {"retries": {"most": {1}}}, "^storage option 'retries' of type dict has no form"),
        ("s3://bucket/captures", {"colour": "blue"}, "s3://bucket: .*unexpected keyword argument 'colour'"),
    ],
)
def test_file_systems_that_are_not_there(source: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find_files(source, storage_options=options)


def payloads(source: object, **options: Any) -> list[bytes]:
    with capture.open(source, **options) as blocks:  # type: ignore[arg-type]
        return [bytes(payload) for block in blocks for payload in block.payloads if payload is not None]


def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(
        ValueError, match=r"reading sftp:// needs fsspec, which is not installed: pip install 'fsspec>="
    ):
        find_files("sftp://host/captures")


@pytest.mark.parametrize("block_size", [100, 4096, remote.BLOCK_SIZE])
@pytest.mark.parametrize("over", ["s3", "http"])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_remote_file_reads_as_a_local_one(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, block_size: int, over: str, compressed: bool
) -> None:
    monkeypatch.setattr(remote, "BLOCK_SIZE", block_size)
    content = gzip.compress(LOCAL.read_bytes()) if compressed else LOCAL.read_bytes()
    uri = store.put("one.pcap", content)
    name, options = (uri, store.options) if over == "s3" else (store.url("one.pcap"), None)
    with open_source(name, options) as file:
        assert file.name == name
        assert payloads(file) == payloads(LOCAL)


def test_seeking(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "BLOCK_SIZE", 64)
    content = random.Random(7).randbytes(1000)
    uri = store.put("random.bin", content)
    with open_source(uri, store.options) as file:
        for offset in (0, 0, 10, 63, 64, 65, 500, 499, 998, 1000, 2000, 3):
            assert file.seek(offset) == file.tell() == offset
            assert file.read(5) == content[offset : offset + 5]
        assert file.seek(-4, io.SEEK_END) == 996
        assert file.read() == content[-4:]
        file.seek(100)
        assert file.seek(20, io.SEEK_CUR) == 120
        assert file.read(1) == content[120:121]
        with pytest.raises(ValueError, match="offset -1 is before the beginning of the file"):
            file.seek(-1)


class WithoutLength(BaseHTTPRequestHandler):
    """Answers with as many bytes as come until it hangs up."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        self.wfile.write(LOCAL.read_bytes())

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_that_knows_no_ranges() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), WithoutLength)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/local-site.pcap"
        assert names_of(url) == (url,)
        with pytest.raises(OSError, match="cannot be opened: Cannot seek streaming HTTP file") as caught:
            open_source(url)
        assert (caught.value.errno, caught.value.filename) == (errno.EIO, url)
    finally:
        server.shutdown()
        server.server_close()


class Refusing(BaseHTTPRequestHandler):
    """Answers with the status that the path names."""

    def do_HEAD(self) -> None:
        self.send_error(int(self.path.strip("/")))

    def do_GET(self) -> None:
        self.do_HEAD()

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_that_does_not_say_whether_there_is_a_file() -> None:
    """It is another error than that of a file that is not there."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    try:
        with pytest.raises(FileNotFoundError, match="no capture matches"):
            find_files(f"{base}/404")
        for status, reason in ((403, "Forbidden"), (503, "Service Unavailable")):
            with pytest.raises(OSError, match=f"cannot be looked up: {status} {reason}") as caught:
                find_files(f"{base}/{status}")
            assert (caught.value.errno, caught.value.filename) == (errno.EIO, f"{base}/{status}")
    finally:
        server.shutdown()
        server.server_close()
    with pytest.raises(OSError, match=r"cannot be looked up: Cannot connect to host 127\.0\.0\.1"):
        find_files(f"{base}/404")


def test_a_file_that_is_gone(store: ObjectStore) -> None:
    for name, options in (("s3://captures/gone.pcap", store.options), (store.url("gone.pcap"), None)):
        with pytest.raises(FileNotFoundError, match=r"gone\.pcap"):
            open_source(name, options)


@pytest.mark.parametrize("over", ["s3", "http"])
def test_a_server_that_fails_is_no_damage_of_the_data(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    """Inside a compressed capture, where a library's own errors would be taken for those of its stream."""
    monkeypatch.setattr(remote, "BLOCK_SIZE", 4096)
    uri = store.put(f"{over}.pcap.gz", gzip.compress(LOCAL.read_bytes() + random.Random(7).randbytes(8 << 20)))
    name, options = (uri, store.options) if over == "s3" else (store.url(f"{over}.pcap.gz"), None)
    with open_source(name, options) as file:
        assert len(file.read(100)) == 100
        file.seek(0)
        store.files.delete_file(f"captures/{over}.pcap.gz")
        with pytest.raises(OSError, match="cannot be read at byte") as caught:
            payloads(file)
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, name)
