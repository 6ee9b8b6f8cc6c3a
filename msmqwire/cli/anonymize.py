"""Write the packets of captures without names, addresses and contents.

Written are the MSMQ packets, each in new frames, with pseudonyms of the same length:
  addresses    by prefix: addresses of one network stay in one network
  names        of computers, queues, servers, and the words of labels
  GUIDs, SIDs  well-known SIDs stay
Bodies, extensions, signatures, keys, certificates and padding become zeros, and so do bytes of no
packet. Sizes, times, numbers, flags, faults and violations stay, and so do offsets and gaps of
streams. Frames of other protocols are not written, nor link layers and encapsulations.

A name has one pseudonym wherever it stands. With --key-file it has the same one in other captures:
the file is made if it does not exist; keep it to yourself. Without it the key is random and forgotten.

Packets of IPX, and notifications that cannot be read, are left out; so are bytes of no packet after one
that is left out.

exit status:
  0  every packet was written
  1  wrong usage, or a file that cannot be read or written, or is no capture
  2  some packets were left out, or could not be read; standard error counts them

examples:
  msmqwire anonymize incident.pcapng -o safe.pcap
  msmqwire anonymize monday.pcap -o 1.pcap --key-file key; msmqwire anonymize tuesday.pcap -o 2.pcap --key-file key
"""

from __future__ import annotations

import argparse
import os
import secrets
from typing import TYPE_CHECKING, cast

from msmqwire.cli.arguments import CAPTURE_HELP, add_quiet, add_selection, capture_files, read_options
from msmqwire.cli.console import CommandError, optional, say
from msmqwire.cli.progress import progress
from msmqwire.cli.target import is_terminal, open_target
from msmqwire.errors import counted

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_KEY_BYTES = 32


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument("files", nargs="+", metavar="CAPTURE", help=CAPTURE_HELP)
    parser.add_argument("-o", "--output", required=True, metavar="SAFE", help="the capture; - is standard output")
    parser.add_argument("--key-file", metavar="FILE", help="the key of the pseudonyms; made if it does not exist")
    add_selection(parser)
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Anonymize; the exit status."""
    optional("pyarrow", "msmqwire anonymize")
    from msmqwire.insight.anonymize import anonymize

    if is_terminal(options.output):
        raise CommandError("a capture is not for a terminal: name a file with -o")
    names, refused = capture_files(options.files)
    how = read_options(options, names)
    key = _key(options.key_file)
    with (
        open_target(options.output, options.files) as sink,
        progress(names, wanted=not options.quiet) as show,
    ):
        done = anonymize(names, cast("SupportsWrite[bytes]", sink), key, how, show)
    if not options.quiet:
        say(f"{counted(done.packets, 'packet')} written")
        for reason, number in done.left_out.items():
            say(f"{counted(number, 'packet')} left out: {reason}")
        if done.losses:
            say(f"not read: {', '.join(done.losses)}")
    return 2 if done.left_out or done.losses or refused else 0


def _key(name: str | None) -> bytes:
    from msmqwire.directory.document import read_bytes

    if name is None:
        return secrets.token_bytes(_KEY_BYTES)
    try:
        with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
    except FileExistsError:
        pass
    key = read_bytes(name)
    if len(key) < 16:
        raise CommandError(f"{name}: a key has at least 16 bytes, this file has {len(key)}")
    return key
