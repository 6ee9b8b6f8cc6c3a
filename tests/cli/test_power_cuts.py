"""F6: power cuts. Each file is as it was at its last fsync, or has a part of what was written after it."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.support import COMMAND, environ, run
from tests.cli.test_stores import NAME, texts
from tests.net.session_wire import free_port
from tests.system_programs import require_program

LIBRARY = Path(__file__).with_name("synchronized.c")


class Machine:
    """The folders of a process, and what of them is on disk for certain."""

    def __init__(self, folder: Path, library: Path, names: tuple[str, ...], chance: random.Random) -> None:
        self.folders = [folder / name for name in names]
        self.copies = folder / f"{names[0]}.copies"
        self.copies.mkdir()
        self._chance = chance
        self.environ = environ() | {"LD_PRELOAD": str(library), "SYNCHRONIZED": str(self.copies)}

    def cut(self) -> int:
        """The power is cut, and comes back: the number of files that lose bytes."""
        listed = {}
        for listing in self.copies.glob("d*"):
            listed_folder, *entries = listing.read_text().splitlines()
            listed[Path(listed_folder)] = {name: inode for inode, name in (each.split(" ", 1) for each in entries)}
        losses = 0
        for folder in self.folders:
            if folder not in listed:
                shutil.rmtree(folder, ignore_errors=True)
                continue
            for path in folder.iterdir():
                inode = listed[folder].get(path.name)
                if inode != str(path.stat().st_ino):
                    path.unlink()  # its name was not on disk
                    continue
                kept = self.copies / f"f{inode}"
                synchronized, written = kept.read_bytes() if kept.exists() else b"", path.read_bytes()
                # The system may have written a part of the rest
                count = self._chance.choice((0, self._chance.randrange(len(written) + 1)))
                left = written[:count] + synchronized[count:]
                losses += left != written
                with path.open("r+b") as file:
                    file.write(left)
                    file.truncate()
                    file.flush()
                kept.write_bytes(left)
        return losses


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("library") / "synchronized.so"
    command = [require_program("cc"), "-shared", "-fPIC", "-o", str(made), str(LIBRARY), "-ldl"]
    subprocess.run(command, check=True)
    return made


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_power_cuts_of_both_ends(tmp_path: Path, library: Path, seed: int) -> None:
    """The file has each message once and in order, however often either machine loses what it has not synchronised."""
    port, chance, messages = free_port(), random.Random(seed), 600
    sender = Machine(tmp_path, library, ("sender",), chance)
    receiver = Machine(tmp_path, library, ("store", "rows"), chance)
    (tmp_path / "input").write_text(
        "".join(f'{{"body_text": "{number}", "key": "{number}"}}\n' for number in range(messages))
    )
    places = ["--store", str(tmp_path / "sender"), "--port", str(port), "--timeout", "120", "--quiet"]
    send = [*COMMAND, "send", NAME, "--rows", "--transactional", *places]
    places = ["--store", str(tmp_path / "store"), "-o", str(tmp_path / "rows"), "--port", str(port)]
    receive = [*COMMAND, "receive", *places]
    losses, status = 0, None
    for victim in (receiver, receiver, sender, receiver, sender, None):
        at = {"CUT_AT": str(chance.randrange(1, 40 if victim is receiver else 14))}
        with contextlib.ExitStack() as stack:
            environment = receiver.environ | (at if victim is receiver else {})
            to = stack.enter_context(subprocess.Popen(receive, stderr=subprocess.PIPE, env=environment))
            stack.callback(to.kill)
            assert to.stderr is not None
            to.stderr.readline()
            source = stack.enter_context((tmp_path / "input").open("rb"))
            environment = sender.environ | (at if victim is sender else {})
            by = stack.enter_context(subprocess.Popen(send, stdin=source, env=environment))
            stack.callback(by.kill)
            if victim is None:
                status = by.wait(120)
                to.send_signal(signal.SIGTERM)
                to.wait(60)
            else:
                while (to if victim is receiver else by).poll() is None and by.poll() != 0:
                    time.sleep(0.02)
        if victim is not None:
            losses += victim.cut()
    assert status == 0
    assert texts(tmp_path) == [str(number) for number in range(messages)]
    assert json.loads(run("store", "list", tmp_path / "sender")[1].splitlines()[0])["outgoing"] == 0
    assert len([*receiver.copies.glob("f*")]) >= 2, "the library is loaded"
    assert losses
