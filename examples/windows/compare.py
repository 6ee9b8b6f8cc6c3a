"""Compare the messages of a folder that ``record.ps1`` made: sent, captured, decoded and received.

    python examples/windows/compare.py FOLDER

The exit status is 1 if something differs. Nothing of msmqwire has met a queue manager of Windows: a folder of a real
one is welcome in an issue.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from msmqwire import capture

Row = dict[str, Any]


def rows_of(path: Path) -> list[Row]:
    """The rows of a file of JSON lines, which may be missing."""
    return [json.loads(line) for line in path.read_text("utf-8-sig").splitlines()] if path.exists() else []


def captured(folder: Path) -> Iterator[Row]:
    """The messages of the capture."""
    for path in sorted(folder.glob("capture.pcap*")):
        for batch in capture.read_table(path, "messages"):
            yield from batch.to_pylist()


def differences(folder: Path) -> list[str]:
    """What differs; empty if all is as it should be."""
    sent, decoded = rows_of(folder / "sent.jsonl"), list(captured(folder))
    received = [row for path in sorted((folder / "rows").glob("*.jsonl")) for row in rows_of(path)]
    found = [f"frame {row['frame']}: {row['fault']}" for row in decoded if row["fault"] is not None]
    if not sent or not decoded:
        found.append("sent.jsonl or the capture has no messages")
    by_label: dict[str, list[Row]] = {}
    for row in decoded:
        by_label.setdefault(row["label"] or "", []).append(row)
    for message in sent:
        found += different(message, by_label.get(message["label"], []))
    found += missing_or_double(sent, received, by_label)
    found += answers(folder, sent)
    replies = [row["label"] for row in rows_of(folder / "replies.jsonl")]
    for queue in ("recorded", "recorded_tx"):
        came = [row["label"] for row in rows_of(folder / "received.jsonl") if row["queue"].endswith(f"\\{queue}")]
        if came != replies:
            found.append(f"{queue} of Windows got {came}, and msmqwire was given {replies}")
    return found


def different(message: Row, decoded: list[Row]) -> list[str]:
    """How a message that was sent differs from those of the capture."""
    if not decoded:
        return [f"{message['label']}: not in the capture"]
    is_transactional = message["kind"] == "transactional"
    wanted = {
        "destination_queue": message["queue"],
        "delivery_mode": "express" if message["kind"] == "express" else "recoverable",
        "body_text": message["text"],
        "transactional": is_transactional,
        "positive_source_journaling": message["asks"],
        "negative_source_journaling": message["asks"],
    }
    found = []
    for row in decoded:
        values = {**row, "transactional": row["tx_sequence_number"] is not None}
        if message["formatter"] == "xml":  # <string>...</string>
            values["body_text"] = ElementTree.fromstring(row["body_text"]).text
        for name, value in wanted.items():
            # Names of queues do not depend on the case of their letters
            if str(values[name]).lower() != str(value).lower():
                found.append(f"{message['label']}: {name} is {values[name]!r} in frame {row['frame']}, was {value!r}")
    return found


def missing_or_double(sent: list[Row], received: list[Row], by_label: dict[str, list[Row]]) -> list[str]:
    """Messages that are not in the rows of msmqwire once, as they were captured, and transactional ones in order."""
    found = []
    counts = Counter(row["label"] for row in received)
    for message in sent:
        count = counts[message["label"]]
        if count != (0 if message["missing"] else 1):
            found.append(f"{message['label']}: {count} rows of msmqwire receive")
    for row in received:
        packets = by_label.get(row["label"], [])
        if not any(
            (each["message_id"], each["body_text"]) == (row["message_id"], row["body_text"]) for each in packets
        ):
            found.append(f"{row['label']}: the row is none of the captured messages")
    transactional = [row["label"] for row in received if row["tx_sequence_number"] is not None]
    wanted = [row["label"] for row in sent if row["kind"] == "transactional" and not row["missing"]]
    if transactional != wanted:
        found.append(f"transactional messages came as {transactional}, and were sent as {wanted}")
    return found


def answers(folder: Path, sent: list[Row]) -> list[str]:
    """Messages whose acknowledgments did not come to the administration queue of Windows."""
    found = []
    of_message: dict[str, set[str]] = {}
    for row in rows_of(folder / "acknowledgments.jsonl"):
        of_message.setdefault(row["correlation_id"].lower(), set()).add(row["acknowledgment"])
    for message in sent:
        if message["asks"]:
            wanted = {"BadDestinationQueue"} if message["missing"] else {"ReachQueue", "Receive"}
            came = of_message.get(message["message_id"].lower(), set())
            if came != wanted:
                found.append(f"{message['label']}: Windows got {sorted(came)}, not {sorted(wanted)}")
    return found


def main() -> int:
    """Compare the folder of the command line."""
    folder = Path(sys.argv[1])
    found = differences(folder)
    for text in found:
        print(text)
    for event in rows_of(folder / "events.jsonl"):
        print(f"event log: {event['time']} {event['level']} {event['id']}: {event['text']}")
    print(f"{len(rows_of(folder / 'sent.jsonl'))} messages of Windows, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
