"""The store of a queue manager: what it keeps, and stores that are refused with one line and stay as they are."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from msmqwire import mqqb
from msmqwire.errors import StoreError
from msmqwire.session import Changes, MessageReceived, SequenceKey, SequenceState, Store
from msmqwire.session import store as module
from msmqwire.session.store import adopt

OWN, OTHER = UUID(int=1), UUID(int=2)
KEY = SequenceKey(OTHER, "DIRECT=OS:HOST\\PRIVATE$\\ORDERS")
LATE = (0xFFFFFFFF << 32) | 5  # a TxSequenceID of 2106


def received(message_id: int, priority: int = 3, body: bytes = b"") -> MessageReceived:
    message = mqqb.UserMessage(
        destination_queue="DIRECT=OS:host\\private$\\orders",
        source_queue_manager=OTHER,
        message_id=message_id,
        priority=priority,
        sent_time=1,
        body=body,
    )
    packet = mqqb.encode(message)
    decoded = mqqb.decode(packet)
    assert isinstance(decoded, mqqb.UserMessage)
    return MessageReceived(decoded, packet, "192.0.2.1", 7, 2.5)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_identity_and_numbers_outlive_the_process(tmp_path: Path) -> None:
    """S38: no identifier is given twice, whether or not the process ended in order."""
    with Store(tmp_path) as store:
        identifier = store.identifier
        given = [store.message_ids.take() for _ in range(20_005)]
    with Store(tmp_path) as store:
        assert store.identifier == identifier
        given += [store.message_ids.take() for _ in range(3)]
    assert len(set(given)) == len(given)
    assert given == sorted(given)
    assert given[:2] == [1, 2]


def test_identifiers_begin_again_after_the_last(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.reserve_message_ids(0xFFFFFFFE)
    with Store(tmp_path) as store:
        assert [store.message_ids.take() for _ in range(3)] == [0xFFFFFFFF, 1, 2]


def test_a_transaction_that_fails_reserves_no_identifiers(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        answer = mqqb.UserMessage(destination_queue="DIRECT=TCP:192.0.2.1\\private$\\a")
        store.database.execute(
            "CREATE TRIGGER full AFTER INSERT ON answer WHEN NEW.id = 11000 BEGIN SELECT RAISE(FAIL, 'full'); END"
        )
        for _ in range(2):
            with pytest.raises(StoreError, match="full"):
                store.remove((), [(OTHER, answer)] * 11_000)
        taken = store.message_ids.take()
    with Store(tmp_path) as store:
        assert store.message_ids.take() > taken


def test_states(tmp_path: Path) -> None:
    """Also an identifier above the integers of SQLite, and a name that is not valid Unicode."""
    states = {
        KEY: SequenceState(LATE, 0xFFFFFFFF, is_direct=False, rejects=3, gap=(LATE + 1, 7)),
        SequenceKey(OTHER, "DIRECT=OS:\ud800"): SequenceState(1, 2),
    }
    with Store(tmp_path) as store:
        store.commit(Changes(dict(states)), OTHER)
        assert store.get(SequenceKey(OWN, KEY.queue)) is None
    with Store(tmp_path) as store:
        assert {key: store.get(key) for key in states} == states
        assert dict(store.sequences()) == states


def test_states_are_forgotten_of_strangers_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_SEQUENCES", 10)
    monkeypatch.setattr(module, "_FORGOTTEN_AT_ONCE", 4)
    with Store(tmp_path) as store:
        message = mqqb.UserMessage(
            destination_queue="DIRECT=OS:a\\b",
            source_queue_manager=OTHER,
            message_id=1,
            delivery_mode="recoverable",
            transaction=mqqb.TransactionHeader(tx_sequence_id=1, tx_sequence_number=1),
        )
        packet = mqqb.encode(message)
        used = SequenceKey(OTHER, "DIRECT=OS:A\\B")
        decoded = mqqb.decode(packet)
        assert isinstance(decoded, mqqb.UserMessage)
        store.commit(Changes({used: SequenceState(1, 1)}, [MessageReceived(decoded, packet)]), OTHER)
        for number in range(100):
            store.commit(Changes({SequenceKey(UUID(int=number + 9), "Q"): SequenceState(1, 1)}), OTHER)
        assert store.get(used) == SequenceState(1, 1)
        assert len([*store.sequences()]) <= 10


def test_the_inbox_keeps_its_order(tmp_path: Path) -> None:
    """S49: of one read higher priorities first; then as they came."""
    with Store(tmp_path) as store:
        store.commit(Changes(received=[received(1), received(2, 7), received(3)]), OTHER)
        store.commit(Changes(received=[received(4, 7)]), OTHER)
    with Store(tmp_path) as store:
        page = store.inbox()
        assert [each.received.message.message_id for each in page] == [2, 1, 3, 4]
        assert (page[0].queue_manager, store.waiting) == (OTHER, 4)
        first = page[0].received
        assert (first.address, first.port, first.received_time) == ("192.0.2.1", 7, 2.5)
        assert first.token == f"{OTHER}:2"
        assert [each.received.message.message_id for each in store.inbox(page[1].row, 1)] == [3]
        store.remove(page[:3])
        assert store.waiting == 1


@pytest.mark.parametrize(("count", "size", "page"), [(1025, 0, 1024), (6, 1 << 20, 4)])
def test_a_page_of_the_inbox(tmp_path: Path, count: int, size: int, page: int) -> None:
    """Memory is bounded: at most 1,024 messages, and no more after 4 MiB."""
    with Store(tmp_path) as store:
        store.commit(Changes(received=[received(number + 1, body=bytes(size)) for number in range(count)]), OTHER)
        first = store.inbox()
        assert len(first) == page
        assert [each.row for each in store.inbox(first[-1].row)] == [*range(page + 1, count + 1)]


def test_a_page_of_answers(tmp_path: Path) -> None:
    """At most 100; those that the peer has are left out of the next one, and removed by the next transaction."""
    answer = mqqb.UserMessage(destination_queue="DIRECT=TCP:192.0.2.1\\private$\\a")
    with Store(tmp_path) as store:
        store.remove((), [(OTHER, answer)] * 103)
        store.remove((), [(OWN, answer)])
        assert [row for row, _ in store.answers(OTHER, 0)] == [*range(1, 101)]
        store.answered(range(1, 100))
        assert [row for row, _ in store.answers(OTHER, 0)] == [100, 101, 102, 103]
        assert [row for row, _ in store.answers(OTHER, 102)] == [103]
        assert store.answers(OTHER, 103) == []
        assert store.answers(KEY.source, 103) == []
        assert store.unanswered == 5
        assert store.database.execute("SELECT count(*) FROM answer").fetchone() == (104,)
        store.remove(())
        assert store.database.execute("SELECT count(*) FROM answer").fetchone() == (5,)
        store.answered([100])
    with Store(tmp_path) as store:
        assert store.unanswered == 4
        assert [row for row, _ in store.answers(OWN, 0)] == [104]


def test_what_the_quota_counts(tmp_path: Path) -> None:
    """The packets of the inbox, also of an earlier process; a message that fills it is accepted."""
    size = len(received(1).packet)
    with Store(tmp_path) as store:
        store.commit(Changes(received=[received(1), received(2)]), OTHER)
        assert store.has_room(1 << 60)
    with Store(tmp_path, quota=3 * size) as store:
        assert [store.has_room(each) for each in (size, size + 1)] == [True, False]
        store.commit(Changes(received=[received(3)]), OTHER)
        assert [store.has_room(each) for each in (0, 1)] == [True, False]
        store.remove(store.inbox()[:2])
        assert [store.has_room(each) for each in (2 * size, 2 * size + 1)] == [True, False]


def test_history(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.commit(Changes(received=[received(number) for number in range(1, 10_003)]), OTHER)
    with Store(tmp_path) as store:
        history = store.history()
        assert len(history) == 10_000
        assert history.first_address(received(10_002).packet, 0.0) == "192.0.2.1"
        assert history.first_address(received(1).packet, 0.0) is None


def test_answers_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """S43: by number, and by age."""
    monkeypatch.setattr(module, "_MOST_ANSWERS", 3)
    answer = mqqb.UserMessage(destination_queue="DIRECT=TCP:192.0.2.1\\private$\\a")
    with Store(tmp_path, wall_clock=lambda: 0.0) as store:
        for _ in range(5):
            store.remove((), [(OTHER, answer)])
        assert [row for row, _ in store.answers(OTHER, 0)] == [3, 4, 5]
        dropped = f"1 acknowledgments to {OTHER} are dropped, of more than 3"
        assert [each.getMessage() for each in caplog.records] == [dropped, dropped]
        assert store.answers(OTHER, 5) == []
    with Store(tmp_path, wall_clock=lambda: 90 * 86400.0) as store:
        assert store.unanswered == 3
    with Store(tmp_path, wall_clock=lambda: 90 * 86400.0 + 1) as store:
        assert store.unanswered == 0
        assert caplog.messages[2:] == ["3 acknowledgments were not taken by their senders for 90 days"]


def test_a_gap_is_skipped(tmp_path: Path) -> None:
    """S52."""
    with Store(tmp_path) as store:
        with pytest.raises(StoreError, match="out of order"):
            store.skip(OTHER, "DIRECT=OS:host\\private$\\orders")
        store.commit(Changes({KEY: SequenceState(5, 2, gap=(5, 9))}), OTHER)
        assert store.skip(OTHER, "DIRECT=OS:host\\private$\\orders") == SequenceState(5, 9)
        assert store.get(KEY) == SequenceState(5, 9)
        with pytest.raises(StoreError, match="out of order"):
            store.skip(OTHER, KEY.queue)


# --- Stores that are refused ---


def test_a_newer_store(tmp_path: Path) -> None:
    Store(tmp_path).close()
    path = tmp_path / "store.db"
    data = bytearray(path.read_bytes())
    data[60:64] = (2).to_bytes(4, "big")
    path.write_bytes(data)
    before = contents(tmp_path)
    with pytest.raises(StoreError, match="version 2, of a newer msmqwire"):
        Store(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("data", [b"", b"SQLite format 3\0", b"x" * 5000])
def test_a_malformed_store(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "store.db").write_bytes(data)
    before = contents(tmp_path)
    with pytest.raises(StoreError, match="malformed") as raised:
        Store(tmp_path)
    assert "\n" not in str(raised.value)
    assert contents(tmp_path) == before


def test_a_truncated_store(tmp_path: Path) -> None:
    Store(tmp_path).close()
    path = tmp_path / "store.db"
    path.write_bytes(path.read_bytes()[:6000])
    with pytest.raises(StoreError) as raised:
        Store(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_database_of_another_program(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "store.db")
    database.execute("CREATE TABLE a(b)")
    database.close()
    before = contents(tmp_path)
    with pytest.raises(StoreError, match="not a store"):
        Store(tmp_path)
    assert contents(tmp_path) == before


def test_another_queue_manager(tmp_path: Path) -> None:
    Store(tmp_path, OWN).close()
    with pytest.raises(StoreError, match=f"of queue manager {OWN}, not {OTHER}"):
        Store(tmp_path, OTHER)
    with Store(tmp_path, OWN) as store:
        assert store.identifier == OWN


def test_a_store_in_use(tmp_path: Path) -> None:
    program = "import sys; from msmqwire.session import Store; Store(sys.argv[1]); print('open', flush=True); input()"
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(StoreError, match="in use by another process"):
            Store(tmp_path)
        other.kill()
    Store(tmp_path).close()


def test_a_copy(tmp_path: Path) -> None:
    """S52, F17: refused, until somebody says what became of the original."""
    with Store(tmp_path / "a") as store:
        store.message_ids.take()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with pytest.raises(StoreError, match="copy"):
        Store(tmp_path / "b")
    adopt(tmp_path / "b", restored=False)
    with Store(tmp_path / "b") as store:
        assert store.message_ids.take() < 1 << 24
    shutil.copytree(tmp_path / "a", tmp_path / "c")
    adopt(tmp_path / "c", restored=True)
    with Store(tmp_path / "c") as store:
        assert store.message_ids.take() > 1 << 24


def test_a_network_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {line.partition(" - ")[2].split(" ")[0] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    monkeypatch.setattr(module, "_NETWORK_FILE_SYSTEMS", frozenset(kinds))
    with pytest.raises(StoreError, match="on a network file system"):
        Store(tmp_path)
    assert not [*tmp_path.iterdir()]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="cannot make a store"):
        Store(tmp_path / "file" / "store")
    with pytest.raises(StoreError, match="there is no store"):
        Store(tmp_path, create=False)
    with pytest.raises(StoreError, match="there is no store"):
        adopt(tmp_path, restored=False)


def test_the_folder_is_for_its_user_only(tmp_path: Path) -> None:
    Store(tmp_path / "store").close()
    assert (tmp_path / "store").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "store" / "store.db").stat().st_mode & 0o777 == 0o600
