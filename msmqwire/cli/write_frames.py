"""``msmqwire decode --write``: the frames of rows as a capture."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from msmqwire.cli.arguments import capture_files, is_pipe, read_options, usable_cores
from msmqwire.cli.chosen_rows import ChosenRows
from msmqwire.cli.console import CommandError, say
from msmqwire.cli.counts import counts, report
from msmqwire.cli.progress import progress
from msmqwire.cli.target import is_terminal, open_target
from msmqwire.errors import counted


def write_frames(options: argparse.Namespace, tables: Sequence[str], chosen: ChosenRows) -> int:
    """Write the frames of the chosen rows of tables to a capture; the exit status."""
    from msmqwire.capture import FRAME_COLUMNS, read_tables
    from msmqwire.capture.chosen_frames import ChosenFrames, copy_frames, open_records

    names, refused = capture_files(options.files)
    if pipes := [name for name in names if is_pipe(name)]:
        raise CommandError(f"--write reads captures twice, and {pipes[0]} is a pipe: name a file")
    if is_terminal(options.write):
        raise CommandError("a capture is not for a terminal: name a file with --write")
    frames = ChosenFrames(names)
    how = read_options(
        *(options, names),
        columns={table: tuple({*FRAME_COLUMNS, *chosen.columns(table)}) for table in tables},
        guid="text",
        dictionaries=False,
        strict=options.strict,
        jobs=options.jobs or usable_cores(),
    )
    with read_tables(names, tables, how) as reader, progress(names, wanted=not options.quiet) as show:
        for _, batch in chosen.rows(reader, show):
            frames.add(batch)
    with (
        open_target(options.write, names) as sink,
        open_records(names, ports=frames.ports) as blocks,
        progress(names, wanted=not options.quiet) as show,
    ):
        written = copy_frames(sink, blocks, frames.mask, show)
    if not options.quiet:
        say(f"{counted(written, 'frame')} written to {options.write}")
    status = report(*counts(reader, refused), quiet=options.quiet)
    chosen.report(quiet=options.quiet)
    return status
