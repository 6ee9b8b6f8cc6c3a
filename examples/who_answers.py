"""For each client of a capture: which machines answered its discovery, after how long, and what they said.

python examples/who_answers.py [CAPTURE ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

from msmqwire import capture

samples = str(Path(__file__).parent / "*.pcap*")
columns = ["time", "src", "dst", "type", "request_id", "correlation_id", "servers", "fault"]
asked = {}
with capture.read_table(sys.argv[1:] or samples, columns=columns) as reader:
    for batch in reader:
        for row in batch.to_pylist():
            if row["type"] == "request":
                asked[row["request_id"]] = row
            elif row["type"] == "reply" and (request := asked.get(row["correlation_id"])):
                waited = (row["time"] - request["time"]).total_seconds() * 1000
                names = ", ".join(server["name"] for server in row["servers"] or ()) or "of the client's own site"
                print(f"{request['src']} was answered by {row['src']} after {waited:.1f} ms: {names}")
            elif row["fault"]:
                print(f"{row['src']} sent {row['dst']} a payload that cannot be decoded: {row['fault']['code']}")
stats = reader.stats
print(
    f"{stats.frames} frames: {reader.rows} of discovery, {stats.other} of other protocols, {stats.malformed} malformed"
)
