"""Following captures that are not what they were: missing, truncated or replaced files, other options, bad offsets."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from msmqwire.capture import Checkpoint
from msmqwire.capture.checkpoint import LARGEST_STATE, State
from msmqwire.errors import CaptureError
from msmqwire.spark.source import following
from tests.capture import build
from tests.spark.test_following import REQUEST, Query, encode, rotated, same, serial, traffic, write


def truncate(file: Path) -> None:
    os.truncate(file, 200)


def replace(file: Path) -> None:
    file.write_bytes(encode(traffic(12), 0))


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (truncate, r"sensor-000\.pcap: has 200 bytes and had \d+; it was truncated or replaced"),
        (replace, r"sensor-000\.pcap: was replaced by another file; \d+ bytes of the old file were read"),
        (Path.unlink, r"sensor-000\.pcap: is missing; bytes after byte \d+ were not read"),
    ],
)
def test_a_file_that_is_not_what_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, what: Any, message: str
) -> None:
    first, second = rotated(traffic(11), 2, 0)
    files = write(tmp_path, [first[:-500]])
    query, loose = Query(tmp_path), Query(tmp_path, failOnDataLoss="false")
    for one in (query, loose):
        one.batch()
    what(files[0])
    files += write(tmp_path, [second], "sensor-1{:02}.pcap")
    with pytest.raises(CaptureError, match=rf"{message} \(failOnDataLoss=false continues without it\)"):
        query.plan()
    assert loose.plan()
    rows = loose.run()
    loose.start()
    assert loose.run() == rows
    same(rows, serial([file for file in files if file.exists()]))
    assert "failOnDataLoss" not in caplog.text


def test_finished_files_may_go(tmp_path: Path) -> None:
    captures = rotated(traffic(14), 3, 0)
    files = write(tmp_path, captures)
    wanted = serial(files)
    files[2].unlink()
    query = Query(tmp_path)
    query.batch()
    files[0].unlink()
    files[2].write_bytes(captures[2])
    query.start()
    query.batch()
    same(query.rows, wanted)
    files[2].unlink()
    assert not query.plan(), "no file follows the missing one"


def test_a_batch_whose_files_are_gone_cannot_be_read_again(tmp_path: Path) -> None:
    files = write(tmp_path, rotated(traffic(15), 3, 0))
    query, loose = Query(tmp_path), Query(tmp_path, failOnDataLoss="false")
    for one in (query, loose):
        one.plan()
        one.start()
    files[2].unlink()
    with pytest.raises(CaptureError, match=r"sensor-002\.pcap: cannot be read again up to byte \d+"):
        query.run()
    same(loose.run(), serial(files[:2]))


def test_a_file_that_is_truncated_between_planning_and_reading(tmp_path: Path) -> None:
    files = write(tmp_path, rotated(traffic(15), 2, 0))
    query = Query(tmp_path)
    assert query.plan()
    truncate(files[1])
    with pytest.raises(CaptureError, match=r"sensor-001\.pcap: ends at \d+, before the checkpoint"):
        query.run()


def test_offsets_do_not_grow_with_the_files_that_were_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msmqwire.spark.source.following.KEPT_NAMES", 20)
    query = Query(tmp_path, table="topology")
    sizes = []
    for batch in range(5):
        write(tmp_path, [encode([build.plain(REQUEST)], 0)] * 40, f"sensor-{batch}{{:02}}.pcap")
        query.batch()
        sizes.append(len(query.log[-1]))
        write(tmp_path, [encode([build.plain(REQUEST)], 0)], f"sensor-{batch}9{{}}.pcap")
        query.batch()
    assert len(query.rows) == 5 * 41
    assert max(sizes) < sizes[0] + 40
    assert len(query.log[-1]) < sizes[0]


def test_offsets_that_are_none(tmp_path: Path) -> None:
    write(tmp_path, rotated(traffic(16), 2, 0))
    query = Query(tmp_path)
    query.batch()
    no_checkpoint = base64.b64encode(b"nothing").decode()
    for bad, message in (
        ({}, "not an offset of a query over captures"),
        ({**query.offset, "passed": 5}, "not an offset of a query over captures"),
        ({**query.offset, "checkpoint": "A"}, "not an offset of a query over captures"),
        ({**query.offset, "checkpoint": no_checkpoint}, "cannot be resumed: the checkpoint is malformed"),
    ):
        query.log[-1] = json.dumps(bad)
        with pytest.raises(CaptureError, match=message):
            query.plan()


def test_options_that_change_at_a_restart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Options that the state of streams depends on end the query, others are logged; secrets are neither."""
    first, second = rotated(traffic(16), 2, 0)
    write(tmp_path, [first])
    query = Query(tmp_path, ports="1801", mode="DROPMALFORMED", storageOptions='{"secret_key": "s3cret"}')
    query.batch()
    assert "s3cret" not in query.log[-1]
    write(tmp_path, [second], "sensor-1{:02}.pcap")
    refused = "checkpoint is of the old ones: set them again, or choose another checkpointLocation"
    for changed, what in (
        ({"ports": "53"}, "ports was '1801' and is '53'"),
        ({"table": "topology"}, "table was 'messages' and is 'topology'"),
    ):
        before = query.source
        query.source = {**before, **changed}
        query.start()
        with pytest.raises(ValueError, match=f"the options of the query have changed: {what}; its {refused}"):
            query.plan()
        query.source = before
    query.source["splitSize"] = "1k"
    del query.source["mode"]
    query.start()
    assert query.batch()
    query.batch()
    (said,) = (record.getMessage() for record in caplog.records if "have changed" in record.getMessage())
    assert said.endswith("changed: mode was 'DROPMALFORMED' and is not set, splitSize was not set and is '1k'")


def test_a_checkpoint_of_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = rotated(traffic(16), 3, 0)
    files = write(tmp_path, [first, second[:-100]])
    with monkeypatch.context() as other:
        other.setattr("msmqwire.capture.checkpoint.MAGIC", b"msmqwire checkpoint\0")
        query, loose = (Query(tmp_path, table="topology", failOnDataLoss=text) for text in ("true", "false"))
        for one in (query, loose):
            one.batch()
    files[1].write_bytes(second)
    files += write(tmp_path, [third], "sensor-1{:02}.pcap")
    for one in (query, loose):
        one.start()
    with pytest.raises(CaptureError, match=r"sensor-001\.pcap: cannot be resumed: a checkpoint of version 0"):
        query.plan()
    assert loose.plan()
    same(loose.run(), serial(files[2:], "topology"))


@pytest.mark.long
def test_an_offset_that_expands_without_end_is_refused() -> None:
    """The log of a query is a file like others: 256 kB of it must not become 256 MiB and more."""
    bomb = following._packed(bytes(LARGEST_STATE + 1))
    assert len(bomb) < 1 << 19
    state = State(b"", b"", False, [], bytes(LARGEST_STATE))
    saved = base64.b64encode(Checkpoint._of("", 0, 0, state).to_bytes()).decode()
    for offset in ({"passed": bomb, "checkpoint": ""}, {"passed": following._packed(b"{}"), "checkpoint": saved}):
        with pytest.raises(CaptureError, match="above 268435456 bytes"):
            following.Position.from_offset({"file": "", "size": 0, "head": "", "skipped": 0, **offset})
    truncated = following._packed(b"{}")[:4]
    with pytest.raises(CaptureError):
        following.Position.from_offset(
            {"file": "", "size": 0, "head": "", "passed": truncated, "checkpoint": "", "skipped": 0}
        )
