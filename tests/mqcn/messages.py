"""Messages of the package beside those of the oracle."""

from __future__ import annotations

from msmqwire import mqcn
from tests.propvariant.values import plain
from tests.reference import mqcn as reference
from tests.reference.propvariant import TYPE_OF
from tests.reference.reader import Fault, Span


def assert_message(message: mqcn.ChangeNotificationMessage | Fault, expected: reference.Outcome) -> None:
    """A message, or the fault in place of one, is what the oracle says."""
    if isinstance(expected, Fault) or isinstance(message, Fault):
        assert message == expected
        return
    assert expected is not None
    assert message.version == expected.version
    assert message.violations == expected.found
    assert (message.body is None) == (expected.body is None)
    if message.body is not None and expected.body is not None:
        assert type(message.body) is mqcn.NotificationBody
        assert message.body.event == expected.body.event
        assert message.body.object_guid.bytes_le == expected.body.object_guid
        assert message.body.domain_controller == expected.body.domain_controller.text
        assert message.body.operation == expected.body.operation
        assert message.body.object == expected.body.object
    assert len(message.updates) == len(expected.updates)
    for update, model in zip(message.updates, expected.updates, strict=True):
        assert_update(update, model)


def assert_update(update: mqcn.NotificationUpdate, model: reference.Update) -> None:
    """An update is what the oracle says; bytes behind the last one are noted with it."""
    assert update.command == model.command
    assert update.use_guid is (model.guid_identifier is not None)
    assert update.path_name == text_of(model.path_name)
    guid = update.guid_identifier
    assert (None if guid is None else guid.bytes_le) == model.guid_identifier
    assert update.guid_master_id.bytes_le == model.guid_master_id
    assert update.object == model.object
    assert update.violations == model.violations
    assert [type(item) for item in update.properties] == [mqcn.PropertyValue] * len(model.properties)
    values = [(item.id, plain(TYPE_OF[item.id], item.value)) for item in update.properties]
    assert values == [(item.id, item.value) for item in model.properties]


def text_of(span: Span | None) -> str | None:
    """A text without its place."""
    return None if span is None else span.text
