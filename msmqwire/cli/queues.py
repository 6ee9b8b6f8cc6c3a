"""Queues by the names that people type: paths and format names, of the queue manager that receives."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from msmqwire.cli.file_names import file_stem
from msmqwire.errors import FormatNameError

if TYPE_CHECKING:
    from msmqwire.formatname import FormatName
    from msmqwire.mqqb import UserMessage

#: Private queues whose number is fixed: [MS-MQDMPR] 3.1.3.
_NUMBERED = {3: "private$\\notify_queue$", 4: "private$\\order_queue$"}
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
#: A direct name whose queue has blanks or other letters than ASCII: real queues have them, the grammar has not.
_UNUSUAL = re.compile(r"direct=(?:os|tcp):[^\\]+\\(?P<path>(?:private\$\\)?[^\\]+)", re.IGNORECASE)


def queue_path(queue: FormatName | str | None) -> str:
    r"""The queue as its own queue manager calls it, in lower case, whatever its computer is called.

    >>> from msmqwire.formatname import parse
    >>> [queue_path(parse(name)) for name in (r"DIRECT=OS:a\private$\Orders", r"DIRECT=TCP:10.0.0.1\orders")]
    ['private$\\orders', 'orders']
    """
    from msmqwire.formatname import DirectName, PrivateName

    if isinstance(queue, DirectName):
        place = "private$\\" if queue.queue_type == "private" else ""
        path = f"{place}{queue.queue or 'system$'}"
        return ";".join(part for part in (path, queue.subqueue, queue.suffix) if part).lower()
    if isinstance(queue, PrivateName):
        return _NUMBERED.get(queue.private_id, f"private={queue.private_id:x}")
    text = str(queue or "").lower()
    direct = _UNUSUAL.fullmatch(text)
    return direct["path"] if direct else text


def chosen_queues(names: Collection[str]) -> Callable[[UserMessage], bool] | None:
    """Whether a message is for one of the queues; None for no names, which choose all.

    A name is a format name or a path, with or without its computer; without ``private$`` it is a public queue or a
    private one.

    Raises
    ------
    FormatNameError
        A name is not valid.
    """
    from msmqwire.formatname import parse

    paths: set[str] = set()
    for name in names:
        if "=" in name:
            is_unusual = _UNUSUAL.fullmatch(name) is not None
            paths.add(queue_path(name if is_unusual else parse(name, extended=True)))
            continue
        parts = name.lower().split("\\")
        if not all(parts) or len(parts) > 3:
            raise FormatNameError("bad_text", "QueueName", 0, r"a queue as in private$\orders", name)
        if len(parts) > 1 and parts[-2] == "private$":
            paths.add("\\".join(parts[-2:]))
        else:
            paths |= {parts[-1]} if len(parts) > 1 else {parts[-1], f"private$\\{parts[-1]}"}
    return (lambda message: queue_path(message.destination_queue) in paths) if paths else None


def kinds_of_queues(
    chosen: Collection[str], transactional: Collection[str]
) -> tuple[Callable[[UserMessage], bool] | None, Callable[[UserMessage], bool | None] | None]:
    """Whether a message is for one of the queues, and whether that is transactional (S24); None for no names.

    A queue of ``chosen`` is not transactional unless ``transactional`` names it; where nothing is chosen, all other
    queues take both kinds of messages.

    Raises
    ------
    FormatNameError
        A name is not valid.
    """
    is_transactional = chosen_queues(transactional)
    if not chosen:
        return None, is_transactional and (lambda message: is_transactional(message) or None)
    return chosen_queues([*chosen, *transactional]), is_transactional or (lambda _: False)


def queue_stem(queue: FormatName | str | None) -> str:
    r"""The name of a file for a queue, without its extension; no two queues have the same.

    >>> from msmqwire.formatname import parse
    >>> [queue_stem(parse(name)) for name in (r"DIRECT=OS:a\private$\Orders", r"DIRECT=TCP:10.0.0.1\all_orders")]
    ['private.orders', 'public.all__orders']
    """
    from msmqwire.formatname import DirectName

    kind, name = ("name", str(queue or ""))
    if isinstance(queue, DirectName):
        kind = queue.queue_type
        name = ";".join([queue.queue or "", *filter(None, (queue.subqueue, queue.suffix))])
    # Other letters of two cases are not the same queue, as format names compare
    return file_stem(f"{kind}.{name.translate(_ASCII_LOWER)}")
