r"""List what a store of send or receive has, or repair it.

DIR is the folder of --store. One process uses a store at a time.

list prints an object for the store, and one for each sequence of transactional messages: of sent ones
the queue, sequence_id, and the numbers of the next message and of the last that is acknowledged; of
received ones the source, the queue, and the numbers of the last message that was accepted (sequence_id,
number), and of the last one that came out of order (gap_sequence_id, gap_previous).

dead-letter and journal print sent messages that were rejected or expired, and that were received, if
they asked for it; purge deletes them.

skip takes the messages before the last gap of a sequence for received. It is for a receiver that was
restored from a backup: its sender has acknowledgments of messages that it has lost, and sends the
next ones again and again.

moved and restored use a store whose file is a copy, which is refused otherwise: moved if the original
is gone and was not used since it was copied, restored if it was used, as after a backup. Messages
that a restored store sends have new numbers, and may arrive twice.

exit status:
  0  done
  1  wrong usage, no store, or one that is in use

examples:
  msmqwire store list store
  msmqwire store dead-letter store | jq .reason
  msmqwire store skip store ba000000-0000-4000-8000-0000000000c7 'DIRECT=OS:host\private$\orders'
  msmqwire store moved store
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from functools import partial

from msmqwire.cli.arguments import guid
from msmqwire.cli.committing import described
from msmqwire.cli.console import print_json, say
from msmqwire.errors import counted


def add(parser: argparse.ArgumentParser) -> None:
    """Add the actions to the parser."""
    actions = parser.add_subparsers(required=True, metavar="ACTION", dest="action")
    for act, name, text in (
        (_list, "list", "print the store and its sequences as JSON lines"),
        (partial(_finished, dead_letters=True), "dead-letter", "print sent messages that were rejected or expired"),
        (partial(_finished, dead_letters=False), "journal", "print sent messages that were received"),
        (_purge, "purge", "delete the dead letters or the journal"),
        (_skip, "skip", "take the messages before the last gap of a sequence for received"),
        (partial(_adopt, restored=False), "moved", "use a copy whose original is gone and was not used since"),
        (partial(_adopt, restored=True), "restored", "use a copy whose original was used since, as a backup"),
    ):
        action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        action.set_defaults(act=act)
        action.add_argument("store", metavar="DIR", help="the folder of the store")
        if name == "purge":
            action.add_argument("what", choices=("dead-letter", "journal"), help="what is deleted")
        if name == "skip":
            action.add_argument("source", type=guid, metavar="SOURCE", help="the queue manager of the sender")
            action.add_argument("queue", metavar="QUEUE", help="the format name of the queue, as list has it")


def run(options: argparse.Namespace) -> int:
    """Look after a store; the exit status."""
    options.act(options)
    return 0


def _list(options: argparse.Namespace) -> None:
    from msmqwire.session import Store

    with Store(options.store, create=False) as store:
        outgoing, awaiting = store.outbox.counts()
        print_json(
            {
                "queue_manager": store.identifier,
                "waiting": store.waiting,
                "acknowledgments": store.unanswered,
                "outputs": store.outputs(),
                "outgoing": outgoing,
                "awaiting": awaiting,
            }
        )
        for row in store.outbox.queues():
            numbers = {name: getattr(row, name) for name in ("sequence_id", "next_number", "last_ack")}
            print_json({"queue": row.name, **numbers, "stopped": row.stopped or None})
        for key, state in store.sequences():
            numbers = {name: getattr(state, name) for name in ("sequence_id", "number", "rejects")}
            gap = dict(zip(("gap_sequence_id", "gap_previous"), state.gap or (None, None), strict=True))
            print_json({**key._asdict(), **numbers, **gap})


def _finished(options: argparse.Namespace, *, dead_letters: bool) -> None:
    from msmqwire.session import Store

    with Store(options.store, create=False) as store:
        for outcome, finished_at in store.outbox.finished(dead_letters=dead_letters):
            when = datetime.fromtimestamp(finished_at, UTC).isoformat(timespec="milliseconds")
            print_json({"time": when} | described(outcome))


def _purge(options: argparse.Namespace) -> None:
    from msmqwire.session import Store

    with Store(options.store, create=False) as store:
        count = store.outbox.purge(dead_letters=options.what == "dead-letter")
    say(f"{counted(count, 'message')} deleted")


def _skip(options: argparse.Namespace) -> None:
    from msmqwire.session import Store

    with Store(options.store, create=False) as store:
        state = store.skip(options.source, options.queue)
    say(f"numbers up to {state.number} of sequence {state.sequence_id} are taken for received")


def _adopt(options: argparse.Namespace, *, restored: bool) -> None:
    from msmqwire.session.store import adopt

    if count := adopt(options.store, restored=restored):
        say(f"{counted(count, 'message')} to send have new numbers, and may arrive twice")
