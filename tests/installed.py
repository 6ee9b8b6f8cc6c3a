"""What an installed msmqwire must do, as programs for a shell in a folder with ``examples/`` and no checkout.

``tests/packaging.py`` runs them in environments that have the wheel and one extra each. A new subcommand or extra
without a program here fails.
"""

from __future__ import annotations

#: Numpy alone
CORE = r"""
python - <<'PROGRAM'
import msmqwire
from msmqwire import mqsd

request = mqsd.decode(bytes.fromhex("0001") + bytes(50))
assert mqsd.encode(request) == bytes.fromhex("0001") + bytes(50)
assert mqsd.decode_batch([mqsd.encode(request)] * 3)["correlation_id"].shape == (3, 16)
PROGRAM
msmqwire explain bad_terminator
"""

#: Where the extra is missing, and tables are there: the error names the extra
MISSING = {
    "tables": "msmqwire decode examples/other-site.pcapng",
    "pandas": """python -c 'from msmqwire import capture; capture.read_table("examples/*.pcap").to_pandas()'""",
    "polars": """python -c 'from msmqwire import capture; capture.read_table("examples/*.pcap").to_polars()'""",
    "insight": "msmqwire sql 'SELECT 1' examples/other-site.pcapng",
    "lake": "msmqwire lake check lake",
    "spark": "msmqwire pipeline examples/other-site.pcapng --lake other",
    "remote": "msmqwire decode http://127.0.0.1:9/day.pcap",
    "compression": r"printf '\x04\x22\x4d\x18' > empty.lz4; msmqwire decode empty.lz4",
    "net": "msmqwire discover --network lo --timeout 0.1",
    "ldap": "msmqwire directory check ldap://127.0.0.1:9",
    "routing": "msmqwire route --directory examples/enterprise.toml KIOSK7 LEDGER",
    "completion": "msmqwire --completion bash",
}

#: The wheel with one extra
EXTRAS = {
    "tables": r"""
test "$(msmqwire decode examples/other-site.pcapng --quiet | wc -l)" = 10
msmqwire decode examples/other-site.pcapng --quiet -o rows.parquet || test $? = 2
python -m msmqwire.insight.interop interop
test -s interop/msmq.lua
""",
    "pandas": r"""
python -c 'from msmqwire.capture import read_table; assert len(read_table("examples/*.pcap*").to_pandas()) == 14'
""",
    "polars": r"""
python -c 'from msmqwire.capture import read_table; assert len(read_table("examples/*.pcap*").to_polars()) == 14'
""",
    "insight": r"""
(msmqwire sql 'SELECT count(*) FROM topology' examples/*.pcap* --quiet || test $? = 2) | grep 14
msmqwire summary examples/message-session.pcap --quiet
msmqwire detect examples/message-session.pcap --quiet
msmqwire report examples/message-session.pcap --quiet -o report.html
grep -q 'their licences are in licences.txt' report.html
grep -q '</html>' report.html
""",
    "spark": r"""
msmqwire pipeline examples/*.pcap* --lake lake --quiet || test $? = 2
python - <<'PROGRAM'
from msmqwire.spark.session import local_session

spark = local_session()
packets = spark.read.format("msmq").option("table", "topology").load("examples/*.pcap*")
assert packets.count() == 14
spark.stop()
PROGRAM
""",
    # Reads the lake that the program before has written
    "lake": "msmqwire lake check lake && msmqwire lake history lake",
    "remote": r"""
python -m http.server --bind 127.0.0.1 --directory examples 18080 2>/dev/null &
trap 'kill %1' EXIT
until python -c 'import socket; socket.create_connection(("127.0.0.1", 18080))' 2>/dev/null; do sleep 0.1; done
python - <<'PROGRAM'
from msmqwire import capture

with capture.open("http://127.0.0.1:18080/local-site.pcap") as reader:
    assert sum(len(block) for block in reader) == 4
PROGRAM
""",
    "compression": r"""
python - <<'PROGRAM'
import lz4.frame
from msmqwire import capture

data = lz4.frame.compress(open("examples/local-site.pcap", "rb").read())
open("day.pcap.lz4", "wb").write(data)
with capture.open("day.pcap.lz4") as reader:
    assert sum(len(block) for block in reader) == 4
PROGRAM
""",
    "net": "msmqwire discover --network lo --port 9 --timeout 0.1 || test $? = 2",
    # Nothing listens on that port: the answer comes from the client, which is there
    "ldap": "(msmqwire directory check ldap://127.0.0.1:9 2>&1 || test $? = 1) | grep refused",
    "routing": "msmqwire route --directory examples/enterprise.toml KIOSK7 LEDGER | grep GVAGATE",
    "completion": "msmqwire --completion bash | grep anonymize",
}

#: Every subcommand once, with all extras
SUBCOMMANDS = {
    "decode": "msmqwire decode examples/*.pcap* --quiet -T json --table topology > rows.jsonl || test $? = 2",
    "encode": "head -n 2 rows.jsonl | msmqwire encode - --quiet -o packets.pcap",
    "sql": "msmqwire sql 'SELECT label FROM messages' examples/message-session.pcap --quiet",
    "anonymize": "msmqwire anonymize examples/message-session.pcap --quiet -o safe.pcap",
    "summary": "msmqwire summary examples/message-session.pcap --quiet",
    "detect": "msmqwire detect examples/message-session.pcap --quiet",
    "report": "msmqwire report examples/message-session.pcap --quiet -o report.html && grep -q '</html>' report.html",
    "explain": "msmqwire explain PROPID_Q_QUOTA",
    "pipeline": "msmqwire pipeline examples/*.pcap* --lake lake --quiet || test $? = 2",
    "lake": "msmqwire lake check lake && (msmqwire detect --lake lake --spark --quiet || test $? = 2)",
    "discover": "msmqwire discover --network lo --port 9 --timeout 0.1 || test $? = 2",
    "serve": "msmqwire serve --config examples/site.toml --check",
    "directory": "msmqwire directory check examples/enterprise.toml",
    "route": "msmqwire route --directory examples/enterprise.toml KIOSK7 LEDGER",
    "resolve": r"msmqwire resolve 'DIRECT=OS:host\private$\orders'",
    "send": r"""
msmqwire receive --port 18041 --count 1 --quiet > received.jsonl &
msmqwire send 'DIRECT=TCP:127.0.0.1\private$\orders' --port 18041 --text hello --recoverable --quiet
wait $!
grep -q hello received.jsonl
""",
    "receive": "msmqwire receive --port 0 --seconds 0.1 --quiet",
    "store": r"""
msmqwire receive --store state --port 0 --seconds 0.1 --quiet
msmqwire store list state
""",
    "notify": r"""
msmqwire receive --notifications --directory examples/enterprise.toml --port 18042 --count 1 --quiet \
    --queue-manager ba000000-0000-4000-8000-0000000000c7 > notified.jsonl &
msmqwire notify delete 'ledger\orders' --directory examples/enterprise.toml --server dc1.contoso.example \
    --host 127.0.0.1 --port 18042 --quiet
wait $!
grep -q orders notified.jsonl
""",
    "replay": "msmqwire replay examples/message-session.pcap --quiet",
}
