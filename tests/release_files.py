"""What a release writes: ``make release-files`` leaves it in ``tests/releases/VERSION``, and later versions read it.

A lake, a Parquet file, rows of JSON and a checkpoint of ``examples/message-session.pcap``, and a store. The folder of a
release is never written again: ``tests/test_release_files.py`` reads those of all releases.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from msmqwire import __version__, capture, mqqb
from msmqwire.session import Store

ROOT = Path(__file__).parent.parent
RELEASES = ROOT / "tests" / "releases"
#: As it is named to the commands, which run in the folder of the project.
CAPTURE = "examples/message-session.pcap"
IDENTIFIER = UUID("d2c1a6b0-0d5e-4f0a-8f63-7c1d1b6e0a11")
#: The message that waits in the store.
MESSAGE: dict[str, Any] = {
    "destination_queue": "DIRECT=OS:server\\private$\\orders",
    "label": "one",
    "body": b"first",
}


def command(*arguments: str | Path) -> None:
    """Run a command of msmqwire, which must end well."""
    done = subprocess.run([sys.executable, "-m", "msmqwire", *map(str, arguments)], cwd=ROOT, capture_output=True)
    if done.returncode:
        sys.exit(done.stderr.decode())


def checkpoint_inside() -> capture.Checkpoint:
    """A checkpoint inside the capture, with an open stream."""
    with contextlib.chdir(ROOT), capture.checkpoints(CAPTURE, 2000) as found:
        return next(found)


def write(folder: Path) -> None:
    """Write the files of this version to a new folder."""
    folder.mkdir(parents=True)
    command("pipeline", CAPTURE, "--lake", folder / "lake", "--quiet")
    for log in folder.rglob("_delta_log/*.json"):
        # Where a lake was made is a note of the writer
        log.write_text(log.read_text("utf-8").replace(str(folder.resolve()), "/"), "utf-8")
    for name in ("messages.parquet", "messages.jsonl"):
        command("decode", CAPTURE, "--table", "messages", "-o", folder / name, "--quiet")
    (folder / "checkpoint").write_bytes(checkpoint_inside().to_bytes())
    with Store(folder / "store", IDENTIFIER) as store, store.outbox.transaction() as transaction:
        transaction.add(partial(mqqb.UserMessage, **MESSAGE))


def main() -> None:
    """Write the files of this version, or of the one that is the argument, where there are none."""
    folder = RELEASES / (sys.argv[1] if len(sys.argv) > 1 else __version__)
    if folder.exists():
        sys.exit(f"{folder} exists: what a release wrote does not change; delete it if the release is not out yet")
    try:
        write(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    print(f"wrote {folder.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
