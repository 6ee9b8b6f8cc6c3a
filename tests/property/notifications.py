"""Hypothesis strategies for MQCN: messages as a caller makes them, and payloads as a network brings them."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import strategies as st

from msmqwire import mqcn
from tests.property.editing import edit, guids
from tests.reference import mqcn as reference
from tests.reference import propvariant

_units = st.lists(
    st.integers(0x20, 0x7E) | st.integers(1, 0xFFFF) | st.sampled_from((0xD800, 0xDC00, 0x0100)), max_size=40
)
texts = _units.map(lambda units: propvariant.text_of(struct.pack(f"<{len(units)}H", *units)))


def _integers(form: str) -> st.SearchStrategy[int]:
    bits = 8 * struct.calcsize(form)
    return (
        st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if form[1].islower() else st.integers(0, (1 << bits) - 1)
    )


#: Values by type, as a caller gives them.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **{type_: _integers(form) for type_, form in propvariant.NUMBERS.items()},
    "VT_BOOL": st.booleans(),
    "VT_LPWSTR": texts,
    "VT_BLOB": st.binary(max_size=100),
    "VT_CLSID": guids,
    "VT_UI1|VT_VECTOR": st.binary(max_size=100),
    "VT_UI4|VT_VECTOR": st.lists(st.integers(0, 0xFFFFFFFF), max_size=10),
    "VT_CLSID|VT_VECTOR": st.lists(guids, max_size=10),
    "VT_LPWSTR|VT_VECTOR": st.lists(texts, max_size=10),
}

_old_units = st.sampled_from([chr(unit) for unit in range(0x21, 0x80) if chr(unit) not in ";\\"])
_new_units = st.sampled_from([chr(unit) for unit in range(0x21, 0x80) if chr(unit) not in ';\\"+,'])
_visible = st.sampled_from([chr(unit) for unit in range(0x21, 0x7F)])
_queue_names = st.one_of(
    st.text(_old_units, min_size=1, max_size=124),
    st.text(_new_units, min_size=1, max_size=124),
    st.tuples(st.text(_new_units, min_size=1, max_size=124), st.text(_new_units, min_size=1, max_size=32)).map(
        ";".join
    ),
)
_middles = st.sampled_from(("\\", "\\private$\\", "\\PRIVATE$\\", "\\system$;", "\\System$;"))
path_names = st.tuples(st.text(_visible, min_size=1, max_size=256), _middles, _queue_names).map("".join)


_commands = st.sampled_from(reference.COMMANDS)
_every_order = st.permutations(sorted(reference.CREATE))
_ids = st.lists(st.sampled_from(sorted(propvariant.TYPE_OF)), max_size=8)


def _valued(draw: st.DrawFn, ids: list[int]) -> list[tuple[int, Any]]:
    return [(propid, draw(VALUES[propvariant.TYPE_OF[propid]])) for propid in ids]


@st.composite
def _sets(draw: st.DrawFn, required: frozenset[int], allowed: frozenset[int]) -> list[int]:
    """The required ones and any others, with a required one in front: it says what the object is."""
    first = draw(st.sampled_from(sorted(required)))
    chosen = draw(st.sets(st.sampled_from(sorted(allowed - required))))
    return [first, *draw(st.permutations(sorted((required | chosen) - {first})))]


_changed = _sets(reference.QUEUE_KEY, reference.QUEUE) | _sets(reference.MACHINE_KEY, reference.MACHINE)


@st.composite
def conforming_updates(draw: st.DrawFn) -> mqcn.NotificationUpdate:
    """Any update that a directory service may send: [MS-MQCN] 3.3.5.2."""
    command = draw(_commands)
    if command == "delete":
        properties = [(1403, 1), (1404, 1)]
    elif command == "create":
        properties = _valued(draw, draw(_every_order))
    else:
        properties = _valued(draw, draw(_changed))
    create = command == "create"
    return mqcn.NotificationUpdate(
        command=command,
        path_name=draw(path_names) if create else None,
        guid_identifier=None if create else draw(guids),
        guid_master_id=draw(guids),
        properties=properties,
    )


@st.composite
def any_updates(draw: st.DrawFn) -> mqcn.NotificationUpdate:
    """Any update that can be sized: every PROPID, in any number and order."""
    use_guid = draw(st.booleans())
    return mqcn.NotificationUpdate(
        command=draw(_commands),
        path_name=None if use_guid else draw(path_names),
        guid_identifier=draw(guids) if use_guid else None,
        guid_master_id=draw(guids),
        properties=_valued(draw, draw(_ids)),
    )


bodies = st.builds(mqcn.NotificationBody, st.integers(1, 4), guids, st.text(_visible, min_size=1, max_size=256))


def _messages(updates: st.SearchStrategy[mqcn.NotificationUpdate]) -> st.SearchStrategy[mqcn.ChangeNotificationMessage]:
    first = st.lists(updates, min_size=1, max_size=4).map(lambda many: mqcn.ChangeNotificationMessage(1, many))
    return first | bodies.map(lambda body: mqcn.ChangeNotificationMessage(2, body=body))


messages = _messages(conforming_updates())
any_messages = _messages(any_updates())


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    """A message with a few edits, or bytes that begin like one."""
    if draw(st.booleans()):
        data = bytearray(mqcn.encode(draw(any_messages), enforce=False))
    else:
        head = draw(st.sampled_from((b"", b"\1\1", b"\1\1\1\1" + bytes(56), b"\2\1", b"\2\1<\0N\0")))
        data = bytearray(head + draw(st.binary(max_size=120)))
    edit(draw, data, (0, 1, 100, 105, 1404, 0x7FFFFFFF, 0xFFFFFFFF))
    return bytes(data)
