"""What a queue manager keeps across processes, in SQLite: its identity, the order of messages, its inbox, its answers.

One process has a store open. Each read of a session is one transaction (S34); nothing is acknowledged before it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, Self
from uuid import UUID, uuid4

from msmqwire import mqqb
from msmqwire.errors import StoreError
from msmqwire.session.events import MessageReceived
from msmqwire.session.framing import MESSAGE_ID, SOURCE_QUEUE_MANAGER
from msmqwire.session.history import MOST_REMEMBERED, MessageIDHistory
from msmqwire.session.incoming import Changes, SequenceKey, SequenceState, name_in_key, sequence_key
from msmqwire.session.outbox import OUTBOX_SCHEMA, Outbox, Outcome, id_column, renumber
from msmqwire.session.outgoing import LARGEST_ORDINAL, MessageIDs, OutgoingMessageTable
from msmqwire.session.settings import LARGEST_PACKET

_LOG = logging.getLogger(__name__)
_FILE = "store.db"
_VERSION = 1
_APPLICATION = 0x4D53514D
_VERSION_AT, _APPLICATION_AT = slice(60, 64), slice(68, 72)  # of the header of a file of SQLite
_HEADER = 100
_MAGIC = b"SQLite format 3\0"

_MESSAGE_IDS = 10_000  # reserved at once
_RESTORED_IDS = 1 << 24  # more than a copy that is older can have given out since
_MOST_SEQUENCES = 1_000_000
_FORGOTTEN_AT_ONCE = 10_000
_MOST_CACHED = 10_000
_MOST_ANSWERS = 100_000  # of one queue manager
_ANSWER_DAYS = 90
_ANSWERS_AT_ONCE = 100
_MOST_ROWS, _MOST_BYTES = 1024, 4 << 20  # of a page of the inbox
_NETWORK_FILE_SYSTEMS = frozenset(
    ["afs", "ceph", "cifs", "coda", "fuse.glusterfs", "fuse.sshfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"]
)

_SCHEMA = """
CREATE TABLE meta(
    queue_manager BLOB NOT NULL, message_id INTEGER NOT NULL, time_stamp INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    transaction_id INTEGER NOT NULL, created REAL NOT NULL, inode TEXT NOT NULL
);
CREATE TABLE incoming(
    source BLOB NOT NULL, queue BLOB NOT NULL, sequence_id BLOB NOT NULL, number INTEGER NOT NULL,
    is_direct INTEGER NOT NULL, rejects INTEGER NOT NULL, gap_id BLOB, gap_previous INTEGER,
    has_delivered INTEGER NOT NULL, last_access REAL NOT NULL, PRIMARY KEY(source, queue)
) WITHOUT ROWID;
CREATE TABLE inbox(
    id INTEGER PRIMARY KEY AUTOINCREMENT, source BLOB NOT NULL, queue BLOB, sequence_id BLOB, number INTEGER,
    queue_manager BLOB NOT NULL, address TEXT NOT NULL, port INTEGER NOT NULL, received_time REAL NOT NULL,
    packet BLOB NOT NULL, UNIQUE(source, queue, sequence_id, number)
);
CREATE TABLE history(
    id INTEGER PRIMARY KEY AUTOINCREMENT, identifier BLOB NOT NULL UNIQUE, address TEXT NOT NULL
);
CREATE TABLE answer(
    id INTEGER PRIMARY KEY AUTOINCREMENT, queue_manager BLOB NOT NULL, created REAL NOT NULL, packet BLOB NOT NULL
);
CREATE INDEX answer_of ON answer(queue_manager, id);
CREATE TABLE output(path BLOB PRIMARY KEY, size INTEGER NOT NULL) WITHOUT ROWID;
"""


class InboxMessage(NamedTuple):
    """A message that is stored and not yet delivered.

    Attributes
    ----------
    row : int
        Its place in the order of delivery.
    queue_manager : uuid.UUID
        RemoteQMGuid of the session on which it came.
    received : MessageReceived
    """

    row: int
    queue_manager: UUID
    received: MessageReceived


class _ReservedMessageIDs(MessageIDs):
    """The counter of messages: identifiers are reserved on disk before one is given, and none is given twice (S38)."""

    def __init__(self, store: Store) -> None:
        self._store = store
        super().__init__(store.reserve_message_ids(0))
        self.reserve()

    def reserve(self) -> None:
        """Reserve identifiers on disk if few are left."""
        if self._reserved - self._last < _MESSAGE_IDS // 2:
            self._reserved = self._store.reserve_message_ids(self._last + _MESSAGE_IDS)

    _reserved = 0

    def take(self) -> int:
        """Return the next identifier."""
        if self._last >= self._reserved:
            self.reserve()
        self._last += 1
        return (self._last - 1) % LARGEST_ORDINAL + 1

    def reload(self) -> None:
        """Read the counter again after a failed transaction: what it reserved is not on disk."""
        self._reserved = self._last


class Store:
    """The store of a queue manager in a directory. Close it, or use it with ``with``.

    Parameters
    ----------
    directory : str or path-like
    identifier : uuid.UUID, optional
        Of a new store, by default a new one; another one than that of an existing store is refused.
    quota : int, optional
        Bytes of the inbox above which messages are rejected.
    create : bool
        Whether a store is made if there is none.
    wall_clock : callable
        Seconds since 1970, UTC.

    Attributes
    ----------
    identifier : uuid.UUID
        QueueManager.Identifier.
    message_ids : MessageIDs
    outbox : Outbox
        The transactional messages that the queue manager sends.
    database : sqlite3.Connection
    wall_clock : callable
    waiting : int
        The number of messages in the inbox.

    Raises
    ------
    StoreError
        The store is that of another version, machine or program, in use, copied, malformed, or on a file system
        without locks. Nothing was written then.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(folder) as store:
    ...     store.waiting
    0
    """

    is_durable = True

    def __init__(
        self,
        directory: str | os.PathLike[str],
        identifier: UUID | None = None,
        *,
        quota: int | None = None,
        create: bool = True,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._directory = Path(directory)
        self.wall_clock = wall_clock
        self._quota = quota
        if create and not (self._directory / _FILE).exists():
            _create(self._directory, identifier or uuid4(), wall_clock())
        self.database = _opened(self._directory)
        try:
            self._load(identifier)
        except BaseException:
            self.database.close()
            raise

    def _load(self, identifier: UUID | None) -> None:
        self._cache: OrderedDict[SequenceKey, SequenceState] = OrderedDict()
        self._answered: set[int] = set()
        self._outputs: dict[bytes, int] = {}
        self.outbox = Outbox(self)
        with self.errors():
            found, inode = self.database.execute("SELECT queue_manager, inode FROM meta").fetchone()
            self.identifier = UUID(bytes=found)
            if identifier is not None and identifier != self.identifier:
                raise StoreError(f"{self._directory} is the store of queue manager {self.identifier}, not {identifier}")
            if inode != _inode_of(self._directory / _FILE):
                raise StoreError(
                    f"{self._directory} is a copy, or was moved: run msmqwire store moved if the original is gone and "
                    "was not used since, msmqwire store restored if it was"
                )
            self._sequences: int = self.database.execute("SELECT count(*) FROM incoming").fetchone()[0]
            self.waiting, self._inbox_size = self.database.execute(
                "SELECT count(*), ifnull(sum(length(packet)), 0) FROM inbox"
            ).fetchone()
        self.message_ids = _ReservedMessageIDs(self)
        self._table = OutgoingMessageTable(self.identifier, LARGEST_PACKET, self.message_ids)
        with self.transaction():
            oldest = self.wall_clock() - 24 * 3600 * _ANSWER_DAYS
            old = self.database.execute("DELETE FROM answer WHERE created < ?", (oldest,)).rowcount
        if old:
            _LOG.warning("%d acknowledgments were not taken by their senders for %d days", old, _ANSWER_DAYS)
        with self.errors():
            self._last_answers = {
                UUID(bytes=each): last
                for each, last in self.database.execute("SELECT queue_manager, max(id) FROM answer GROUP BY 1")
            }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what was acknowledged last, and release the store."""
        if self._answered:
            with contextlib.suppress(StoreError), self.transaction():
                pass
        self.database.close()

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Raise an error of SQLite as a StoreError that names the store."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self._directory}: {error}") from error

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; what the peers have acknowledged meanwhile is removed with it."""
        answered = [(each,) for each in self._answered]
        try:
            with self.errors():
                self.database.execute("BEGIN IMMEDIATE")
                self.database.executemany("DELETE FROM answer WHERE id = ?", answered)
                yield self.database
                self.database.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                if self.database.in_transaction:
                    self.database.execute("ROLLBACK")
            if hasattr(self, "message_ids"):
                self.message_ids.reload()
            raise
        self._answered.clear()

    def reserve_message_ids(self, last: int) -> int:
        """Give identifiers up to ``last`` to this process; the last one that is given to it."""
        change = "UPDATE meta SET message_id = max(message_id, ?) RETURNING message_id"
        database = self.database
        with contextlib.nullcontext() if database.in_transaction else self.transaction():
            reserved: int = database.execute(change, (last,)).fetchone()[0]
        return reserved

    # --- The order of messages, and one read of a session ---

    def get(self, key: SequenceKey) -> SequenceState | None:
        """Return the state of a key as it was committed last; None if there is none."""
        if (state := self._cache.get(key)) is not None:
            self._cache.move_to_end(key)
            return state
        with self.errors():
            found = self.database.execute(
                "SELECT sequence_id, number, is_direct, rejects, gap_id, gap_previous FROM incoming "
                "WHERE source = ? AND queue = ?",
                _columns_of(key),
            ).fetchone()
        if found is None:
            return None
        state = _state_of(*found)
        self._remember(key, state)
        return state

    def _remember(self, key: SequenceKey, state: SequenceState) -> None:
        self._cache[key] = state
        self._cache.move_to_end(key)
        if len(self._cache) > _MOST_CACHED:
            self._cache.popitem(last=False)

    def has_room(self, size: int) -> bool:
        """Return True if the quota allows so many more bytes in the inbox."""
        return self._quota is None or self._inbox_size + size <= self._quota

    def commit(self, changes: Changes, queue_manager: UUID) -> None:
        """Store what came in one read on a session with a queue manager, in one transaction (S34)."""
        now = self.wall_clock()
        known = [self.get(key) is not None for key in changes.sequences]
        received = sorted(changes.received, key=attrgetter("turn"))
        places = [_place_of(each.message) for each in received]
        queue_manager_column = queue_manager.bytes
        delivered = {place[:2] for place in places}
        with self.transaction() as database:
            database.executemany(
                "INSERT INTO incoming VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "sequence_id = excluded.sequence_id, number = excluded.number, is_direct = excluded.is_direct, "
                "rejects = excluded.rejects, gap_id = excluded.gap_id, gap_previous = excluded.gap_previous, "
                "has_delivered = max(has_delivered, excluded.has_delivered), last_access = excluded.last_access",
                (
                    (*(columns := _columns_of(key)), *_columns_of_state(state), columns in delivered, now)
                    for key, state in changes.sequences.items()
                ),
            )
            database.executemany(
                "INSERT INTO inbox(source, queue, sequence_id, number, queue_manager, address, port, received_time, "
                "packet) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (*place, queue_manager_column, *_origin_of(each))
                    for place, each in zip(places, received, strict=True)
                ),
            )
            self._extend_history(database, received)
            last = self._insert_answers(database, [(queue_manager, answer) for _, answer in changes.answers], now)
            outcomes: list[Outcome] = []
            for message in changes.acknowledgments:
                outcomes += self.outbox.take(message, queue_manager)
            self.message_ids.reserve()
            sequences = self._sequences + known.count(False)
            if sequences > _MOST_SEQUENCES:
                sequences -= self._forget_sequences(database)
        self._sequences = sequences
        self.outbox.outcomes += outcomes
        self.outbox.version += bool(changes.acknowledgments)
        self._last_answers |= last
        self.waiting += len(received)
        self._inbox_size += sum(len(each.packet) for each in received)
        for key, state in changes.sequences.items():
            self._remember(key, state)

    def _forget_sequences(self, database: sqlite3.Connection) -> int:
        """Forget states, first of sources without a delivered message: a stranger pushes out no one else's."""
        self._cache.clear()
        forgotten = database.execute(
            "DELETE FROM incoming WHERE (source, queue) IN "
            "(SELECT source, queue FROM incoming ORDER BY has_delivered, last_access LIMIT ?)",
            (_FORGOTTEN_AT_ONCE,),
        ).rowcount
        _LOG.warning("the order of %d queues and senders is forgotten, of more than %d", forgotten, _MOST_SEQUENCES)
        return forgotten

    # --- Messages that are not transactional: MessageIDHistoryTable ---

    def history(self) -> MessageIDHistory:
        """Return the messages that were received last, so that duplicates are recognised ([MS-MQQB] 3.1.1.3)."""
        history = MessageIDHistory()
        with self.errors():
            for identifier, address in self.database.execute("SELECT identifier, address FROM history ORDER BY id"):
                history.remember(identifier, address)
        return history

    @staticmethod
    def _extend_history(database: sqlite3.Connection, received: Iterable[MessageReceived]) -> None:
        rows = [
            (each.packet[SOURCE_QUEUE_MANAGER] + each.packet[MESSAGE_ID], each.address)
            for each in received
            if each.message.transaction is None
        ]
        if rows:
            database.executemany("INSERT OR REPLACE INTO history(identifier, address) VALUES (?, ?)", rows)
            database.execute("DELETE FROM history WHERE id <= (SELECT max(id) FROM history) - ?", (MOST_REMEMBERED,))

    # --- Inbox and outputs ---

    def inbox(self, after: int = 0, most: int = _MOST_ROWS) -> list[InboxMessage]:
        """Return a page of the messages that are not delivered, after a row, in the order of delivery."""
        page, size = [], 0
        with self.errors():
            found = self.database.execute(
                "SELECT id, queue_manager, packet, address, port, received_time FROM inbox WHERE id > ? "
                "ORDER BY id LIMIT ?",
                (after, min(most, _MOST_ROWS)),
            )
            for row, queue_manager, packet, address, port, received_time in found:
                message = mqqb.decode(packet, strict=True, transport="tcp")
                assert isinstance(message, mqqb.UserMessage)
                received = MessageReceived(message, packet, address, port, received_time)
                page.append(InboxMessage(row, UUID(bytes=queue_manager), received))
                size += len(packet)
                if size >= _MOST_BYTES:
                    break
            found.close()
        return page

    def remove(self, messages: Sequence[InboxMessage], answers: Sequence[tuple[UUID, mqqb.UserMessage]] = ()) -> None:
        """Remove messages that were delivered or have expired, with the answers to them and the sizes of outputs."""
        outputs, self._outputs = self._outputs, {}
        with self.transaction() as database:
            database.executemany("DELETE FROM inbox WHERE id = ?", [(each.row,) for each in messages])
            last = self._insert_answers(database, answers, self.wall_clock())
            database.executemany("INSERT OR REPLACE INTO output VALUES (?, ?)", outputs.items())
            self.message_ids.reserve()
        self._last_answers |= last
        self.waiting -= len(messages)
        self._inbox_size -= sum(len(each.received.packet) for each in messages)

    def outputs(self) -> dict[str, int]:
        """Return the files that messages were written to, with their sizes after the last message that was removed."""
        with self.errors():
            return {os.fsdecode(path): size for path, size in self.database.execute("SELECT * FROM output")}

    def output(self, path: str) -> int | None:
        """Return the size of one of the files; None if it is not known."""
        with self.errors():
            found = self.database.execute("SELECT size FROM output WHERE path = ?", (os.fsencode(path),)).fetchone()
        return None if found is None else int(found[0])

    def set_output(self, path: str, size: int) -> None:
        """Note the size of a file, which the next ``remove`` stores."""
        self._outputs[os.fsencode(path)] = size

    # --- Answers: acknowledgments that are messages ---

    def _insert_answers(
        self, database: sqlite3.Connection, answers: Sequence[tuple[UUID, mqqb.UserMessage]], now: float
    ) -> dict[UUID, int]:
        """Add answers; the last row of each queue manager."""
        last: dict[UUID, int] = {}
        for queue_manager, answer in answers:
            packet = self._table.position_of(answer, now).packet
            inserted = database.execute(
                "INSERT INTO answer(queue_manager, created, packet) VALUES (?, ?, ?)",
                (queue_manager.bytes, now, packet),
            )
            last[queue_manager] = inserted.lastrowid or 0
        for each in last:
            dropped = database.execute(
                "DELETE FROM answer WHERE queue_manager = :queue_manager AND id <= "
                "(SELECT id FROM answer WHERE queue_manager = :queue_manager ORDER BY id DESC LIMIT 1 OFFSET :most)",
                {"queue_manager": each.bytes, "most": _MOST_ANSWERS},
            ).rowcount
            if dropped:
                _LOG.warning("%d acknowledgments to %s are dropped, of more than %d", dropped, each, _MOST_ANSWERS)
        return last

    def answers(self, queue_manager: UUID, after: int) -> list[tuple[int, bytes]]:
        """Rows and packets of the first answers to a queue manager after a row, in order of their creation."""
        if self._last_answers.get(queue_manager, 0) <= after:
            return []
        with self.errors():
            found = self.database.execute(
                "SELECT id, packet FROM answer WHERE queue_manager = ? AND id > ? ORDER BY id LIMIT ?",
                (queue_manager.bytes, after, _ANSWERS_AT_ONCE + len(self._answered)),
            ).fetchall()
        return [(row, packet) for row, packet in found if row not in self._answered]

    def answered(self, rows: Iterable[int]) -> None:
        """Note answers that the peer has acknowledged; they are removed with the next transaction."""
        self._answered.update(rows)

    # --- For people ---

    def sequences(self) -> Iterator[tuple[SequenceKey, SequenceState]]:
        """Yield all states."""
        with self.errors():
            for source, queue, *state in self.database.execute(
                "SELECT source, queue, sequence_id, number, is_direct, rejects, gap_id, gap_previous FROM incoming"
            ):
                yield SequenceKey(UUID(bytes=source), queue.decode("utf-8", "surrogatepass")), _state_of(*state)

    def skip(self, source: UUID, queue: str) -> SequenceState:
        """Take the messages before the last gap of a sequence for received (S52), and return the new state.

        Raises
        ------
        StoreError
            There is no gap.
        """
        key = SequenceKey(source, name_in_key(queue))
        state = self.get(key)
        if state is None or state.gap is None or state.gap <= (state.sequence_id, state.number):
            raise StoreError(f"{self._directory}: no message of {source} to {queue} came out of order")
        skipped = SequenceState(*state.gap, is_direct=state.is_direct)
        self.commit(Changes({key: skipped}), source)
        return skipped

    @property
    def unanswered(self) -> int:
        """The number of answers that their senders have not acknowledged."""
        with self.errors():
            count: int = self.database.execute("SELECT count(*) FROM answer").fetchone()[0]
        return count - len(self._answered)


def adopt(directory: str | os.PathLike[str], *, restored: bool) -> int:
    """Use a store whose file is a copy (S52): ``restored`` if the queue manager may have been used since it was made.

    The messages that a restored store sends have new numbers then, and may come twice; return how many there are.

    Raises
    ------
    StoreError
        There is no store, or as of ``Store``.
    """
    path = Path(directory) / _FILE
    database = _opened(Path(directory))
    try:
        database.execute("BEGIN IMMEDIATE")
        database.execute(
            "UPDATE meta SET inode = ?, message_id = message_id + ?", (_inode_of(path), restored * _RESTORED_IDS)
        )
        count = renumber(database, int(time.time())) if restored else 0
        database.execute("COMMIT")
    except sqlite3.Error as error:
        raise StoreError(f"{directory}: {error}") from error
    finally:
        database.close()
    return count


def _create(directory: Path, identifier: UUID, now: float) -> None:
    """Make a store: its file has its name when it is complete."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_network(directory)
        new = directory / f".{_FILE}.{os.urandom(4).hex()}"
        try:
            new.touch(mode=0o600)
            database = sqlite3.connect(new, isolation_level=None)
            try:
                database.executescript(
                    f"PRAGMA synchronous = FULL; PRAGMA application_id = {_APPLICATION}; "
                    f"PRAGMA user_version = {_VERSION}; BEGIN; {_SCHEMA}{OUTBOX_SCHEMA} COMMIT"
                )
                database.execute(
                    "INSERT INTO meta VALUES (?, 0, ?, 0, 0, ?, ?)",
                    (identifier.bytes, int(now), now, _inode_of(new)),
                )
            finally:
                database.close()
            if os.name == "posix":  # where a new name would replace the store that another process has made meanwhile
                os.link(new, directory / _FILE)
            else:
                new.rename(directory / _FILE)
        finally:
            new.unlink(missing_ok=True)
        _synchronize(directory)
        _synchronize(directory.parent)
    except FileExistsError:
        pass  # another process was faster: opening it says so
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"cannot make a store in {directory}: {_reason_of(error)}") from error


def _opened(directory: Path) -> sqlite3.Connection:
    """Return the store's file, locked; nothing is written to one that is refused."""
    path = directory / _FILE
    try:
        _refuse_network(directory)
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except FileNotFoundError:
        raise StoreError(f"{directory}: there is no store") from None
    except OSError as error:
        raise StoreError(f"{directory}: {_reason_of(error)}") from error
    if header[: len(_MAGIC)] != _MAGIC or int.from_bytes(header[_APPLICATION_AT], "big") != _APPLICATION:
        raise StoreError(f"{path} is malformed, or not a store of msmqwire")
    if (version := int.from_bytes(header[_VERSION_AT], "big")) > _VERSION:
        raise StoreError(f"{directory} is a store of version {version}, of a newer msmqwire; this one has {_VERSION}")
    try:
        # The links of a session share a lock, so that no two threads use it at once
        database = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise StoreError(f"{directory}: {error}") from error
    try:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("BEGIN EXCLUSIVE")
        database.execute("SELECT inode FROM meta").fetchone()
        database.execute("COMMIT")
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            database.execute(f"PRAGMA {setting}")
        database.execute("BEGIN EXCLUSIVE")
        database.execute("COMMIT")
    except sqlite3.Error as error:
        database.close()
        busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        reason = "it is in use by another process" if busy else str(error)
        raise StoreError(f"{directory}: {reason}") from error
    return database


def _refuse_network(directory: Path) -> None:
    """Locks and synchronised writes of network file systems are not reliable."""
    if sys.platform == "win32":
        return
    device = directory.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    with contextlib.suppress(FileNotFoundError):  # only Linux has it
        for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
            mount, _, kind = line.partition(" - ")
            if mount.split(" ")[2] == number and kind.split(" ")[0] in _NETWORK_FILE_SYSTEMS:
                raise StoreError(f"{directory} is on a network file system ({kind.split(' ')[0]}): use a local disk")


def _synchronize(directory: Path) -> None:
    with contextlib.suppress(PermissionError):  # Windows opens no folders
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _inode_of(path: Path) -> str:
    """Return what a copy of the file does not share with it; as text, since it may have 64 bits."""
    return str(path.stat().st_ino)


def _reason_of(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _columns_of(key: SequenceKey) -> tuple[bytes, bytes]:
    return key.source.bytes, key.queue.encode("utf-8", "surrogatepass")


def _columns_of_state(state: SequenceState) -> tuple[Any, ...]:
    gap_id, gap_previous = (None, None) if state.gap is None else (id_column(state.gap[0]), state.gap[1])
    return id_column(state.sequence_id), state.number, state.is_direct, state.rejects, gap_id, gap_previous


def _state_of(
    sequence_id: bytes, number: int, is_direct: int, rejects: int, gap_id: bytes | None, gap_previous: int | None
) -> SequenceState:
    gap = None if gap_id is None or gap_previous is None else (int.from_bytes(gap_id, "big"), gap_previous)
    return SequenceState(int.from_bytes(sequence_id, "big"), number, bool(is_direct), rejects, gap)


def _place_of(message: mqqb.UserMessage) -> tuple[Any, ...]:
    """Source, queue, TxSequenceID and TxSequenceNumber, which no two messages of the inbox have (S32)."""
    if message.transaction is None:
        return message.source_queue_manager.bytes, None, None, None
    transaction = message.transaction
    return *_columns_of(sequence_key(message)), id_column(transaction.tx_sequence_id), transaction.tx_sequence_number


def _origin_of(received: MessageReceived) -> tuple[Any, ...]:
    return received.address, received.port, received.received_time, received.packet
