"""What a name writes is that name again: as text and in a column."""

from __future__ import annotations

import string
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from msmqwire.formatname import (
    ConnectorName,
    DirectName,
    DistributionListName,
    FormatName,
    MachineName,
    MulticastName,
    MultipleElementName,
    PathName,
    PrivateName,
    PublicName,
    parse,
    parse_batch,
    parse_path_name,
)
from msmqwire.formatname.schema import ProtocolName, QueueTypeName, SuffixName
from tests.formatname.answers import of_batch, of_parse

VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
COMPUTER = VISIBLE.replace("\\", "").replace(",", "")
HOST = COMPUTER.replace("/", "").replace(":", "").replace("[", "")
MODERN = "".join(set(VISIBLE + "\x7f") - set('\\;"+,'))
EVERYTHING: dict[str, Any] = {"extended": True, "spx": True}

queue_names = st.text(MODERN, min_size=1, max_size=124)
old_queue_names = st.text(MODERN + '"+', min_size=1, max_size=124)
subqueues = st.text(MODERN, min_size=1, max_size=32)
hexadecimal = st.text(string.hexdigits, min_size=1, max_size=8)
ports = st.one_of(st.just(""), st.just(":"), st.integers(0, 70_000).map(":{}".format))
hosts = st.one_of(st.text(HOST, min_size=1, max_size=256), st.ip_addresses(v=6).map("[{}]".format))
http = st.tuples(hosts, ports, st.sampled_from(["/MSMQ", "/msmq"])).map(lambda parts: "//" + "".join(parts))
addresses: st.SearchStrategy[tuple[ProtocolName, str]] = st.one_of(
    st.tuples(st.just("os"), st.text(COMPUTER, min_size=1, max_size=256)),
    st.tuples(st.just("tcp"), st.ip_addresses().map(str)),
    st.tuples(st.sampled_from(["ipx", "spx"]), st.tuples(hexadecimal, hexadecimal).map(":".join)),
    st.tuples(st.sampled_from(["http", "https"]), http),
)


queue_types: st.SearchStrategy[QueueTypeName] = st.sampled_from(["public", "private", "system"])
suffixes: st.SearchStrategy[SuffixName] = st.sampled_from(["journal", "deadletter", "deadxact"])


def is_itself(queue: str, subqueue: str | None) -> bool:
    """Whether a queue's name is not read as something else: a journal, or a queue of the machine."""
    return queue.upper() != "SYSTEM$" and (subqueue or "").upper() != "JOURNAL"


@st.composite
def direct_names(draw: st.DrawFn) -> DirectName:
    protocol, address = draw(addresses)
    queue_type = draw(queue_types)
    if queue_type == "system":
        suffix = draw(suffixes)
        return DirectName(protocol, address, None, "system", suffix=suffix)
    subqueue = draw(st.none() | subqueues)
    queue = draw(old_queue_names if subqueue is None else queue_names)
    if not is_itself(queue, subqueue):
        queue, subqueue = "q", "s"
    return DirectName(protocol, address, queue, queue_type, subqueue, draw(st.sampled_from([None, "journal"])))


@st.composite
def path_names(draw: st.DrawFn) -> PathName:
    subqueue = draw(st.none() | subqueues)
    queue = draw(st.text(MODERN + '"+,', min_size=1, max_size=124) if subqueue is None else queue_names)
    if queue.upper() == "SYSTEM$":
        queue = "q"
    computer = draw(st.text(VISIBLE.replace("\\", ""), min_size=1, max_size=256))
    return PathName(computer, queue, draw(st.sampled_from(["public", "private", "system"])), subqueue)


def maybe(*suffixes: str) -> st.SearchStrategy[Any]:
    return st.sampled_from([None, *suffixes])


u32 = st.integers(0, 2**32 - 1)
domains = st.none() | st.text(VISIBLE.replace(",", ""), min_size=1, max_size=255)
octets = st.integers(0, 255)
multicast = st.tuples(st.integers(224, 239), octets, octets, octets).map(lambda parts: ".".join(map(str, parts)))
single_names: st.SearchStrategy[FormatName] = st.one_of(
    direct_names(),
    st.builds(PublicName, st.uuids(), maybe("journal")),
    st.builds(PrivateName, st.uuids(), u32, maybe("journal")),
    st.builds(DistributionListName, st.uuids(), domains),
    st.builds(MachineName, st.uuids(), maybe("journal", "deadletter", "deadxact")),
    st.builds(ConnectorName, st.uuids(), maybe("xactonly")),
    st.builds(MulticastName, multicast, st.integers(0, 65_535)),
)
elements = single_names.filter(
    lambda name: not isinstance(name, MachineName) and getattr(name, "suffix", None) in (None, "xactonly")
)
names = single_names | st.builds(MultipleElementName, st.lists(elements, min_size=2, max_size=5).map(tuple))


@given(names, st.sampled_from([str, str.lower, str.upper, str.swapcase]), st.integers(1, 8))
def test_text(name: FormatName, cased: Any, width: int) -> None:
    again = parse(str(name), **EVERYTHING)
    assert again == name
    assert repr(again) == repr(name)
    other = parse(cased(name.text(private_id_width=width)), **EVERYTHING)
    assert other == name
    assert hash(other) == hash(name)


@given(st.lists(st.one_of(st.none(), names.map(str), st.text(max_size=40), st.text(VISIBLE, max_size=40)), max_size=9))
def test_columns(texts: list[str | None]) -> None:
    rows = parse_batch(texts, **EVERYTHING).to_arrow(guid="uuid").to_pylist()
    expected = [None if text is None else of_parse(text, **EVERYTHING) for text in texts]
    assert of_batch(rows, **EVERYTHING) == expected


@given(path_names())
def test_path_names(name: PathName) -> None:
    assert repr(parse_path_name(str(name))) == repr(name)
