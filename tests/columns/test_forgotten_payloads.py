"""A batch whose payloads were released says so, in place of reading other memory."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmqwire import mqcn, mqqb, mqsd
from msmqwire.columns.views import SpanColumn
from tests.columns.formats import Format, each_format
from tests.mqqb.messages import F7

NETWORK = UUID(int=4)
RELEASED = "released the payloads"


def spans(column: Any) -> list[SpanColumn]:
    """The views into payloads that a column consists of."""
    if isinstance(column, dict):
        return [found for each in column.values() for found in spans(each)]
    if hasattr(column, "offsets"):
        return spans(column.values)
    return [column] if isinstance(column, SpanColumn) else []


@each_format
def test_nothing_reads_payloads_that_were_released(kind: Format) -> None:
    batch = kind.decode_batch([*kind.whole])
    exported = batch.to_arrow()
    expected = exported.to_pylist()
    batch.forget_payloads()
    assert exported.to_pylist() == expected
    for read in (batch.to_arrow, batch.__arrow_c_array__, batch.__arrow_c_stream__):
        with pytest.raises(ValueError, match=RELEASED):
            read()
    for column in batch.table.select(batch.columns):
        if column.derived:
            continue
        for values in filter(len, spans(batch[column.name])):
            with pytest.raises(ValueError, match=RELEASED):
                list(values)  # type: ignore[call-overload]
            with pytest.raises(ValueError, match=RELEASED):
                values.to_pylist()
    assert "with faults" in batch._repr_html_()
    del exported
    again = kind.decode_batch([*kind.whole], out=batch)
    assert again is batch
    assert again.to_arrow().to_pylist() == expected


@pytest.mark.parametrize("codec", [mqsd, mqcn, mqqb])
def test_a_batch_without_payloads_is_not_encoded(codec: Any) -> None:
    packets = {
        mqsd: mqsd.TopologyServerReply(
            correlation_id=NETWORK,
            connected_networks=[NETWORK],
            responding_site_id=NETWORK,
            servers=[mqsd.DirectoryServiceServer("x" * 5000)],
        ),
        mqcn: mqcn.ChangeNotificationMessage(2, (), mqcn.NotificationBody(1, NETWORK, "dc")),
        mqqb: mqqb.decode(F7),
    }
    batch = codec.decode_batch([codec.encode(packets[codec])])
    batch.forget_payloads()
    with pytest.raises(ValueError, match=RELEASED):
        codec.encode_batch(batch)


def test_batches_of_messages_and_notifications() -> None:
    messages = mqqb.decode_batch([F7])
    messages.forget_payloads()
    with pytest.raises(ValueError, match=RELEASED):
        messages.notifications()
    with pytest.raises(ValueError, match=RELEASED):
        _ = messages["body_text"]
    notification = mqcn.ChangeNotificationMessage(2, (), mqcn.NotificationBody(1, NETWORK, "dc"))
    notifications = mqcn.decode_batch([mqcn.encode(notification)])
    notifications.forget_payloads()
    with pytest.raises(ValueError, match=RELEASED):
        _ = notifications.messages
    with pytest.raises(ValueError, match=RELEASED):
        notifications.property(105)
    with pytest.raises(ValueError, match=RELEASED):
        _ = notifications["properties"]  # whose values are made when they are read
