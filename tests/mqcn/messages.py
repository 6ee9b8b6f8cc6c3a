"""Messages of the package beside those of the oracle."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from msmqwire import mqcn
from msmqwire.errors import DecodeError
from tests.propvariant.values import given, plain
from tests.reference import mqcn as reference
from tests.reference.propvariant import TYPE_OF

#: Violations that an encoder may be told not to mind.
LENIENT = {"property_count", "use_guid", "property_set", "duplicate_property"}


def read_all(payloads: Sequence[bytes | None], *, strict: bool = False) -> list[reference.Outcome]:
    """The oracle over many payloads; None for a null one."""
    return [None if data is None else reference.read(data, strict=strict) for data in payloads]


def decode(data: Any, **options: Any) -> mqcn.ChangeNotificationMessage | reference.Fault:
    """The package over one payload, its exception turned into the oracle's fault."""
    try:
        return mqcn.decode(data, **options)
    except DecodeError as error:
        return reference.Fault(error.code, error.field, error.offset)


def assert_message(message: mqcn.ChangeNotificationMessage | reference.Fault, expected: reference.Outcome) -> None:
    """A message, or the fault in place of one, is what the oracle says."""
    if isinstance(expected, reference.Fault) or isinstance(message, reference.Fault):
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
        assert message.body.domain_controller == expected.body.domain_controller
        assert message.body.operation == expected.body.operation
        assert message.body.object == expected.body.object
    assert len(message.updates) == len(expected.updates)
    for update, model in zip(message.updates, expected.updates, strict=True):
        assert_update(update, model)


def assert_update(update: mqcn.NotificationUpdate, model: reference.Update) -> None:
    """An update is what the oracle says; bytes behind the last one are noted with it."""
    assert update.command == model.command
    assert update.use_guid is (model.guid_identifier is not None)
    assert update.path_name == model.path_name
    guid = update.guid_identifier
    assert (None if guid is None else guid.bytes_le) == model.guid_identifier
    assert update.guid_master_id.bytes_le == model.guid_master_id
    assert update.object == model.object
    assert update.violations == model.violations
    assert [type(item) for item in update.properties] == [mqcn.PropertyValue] * len(model.properties)
    values = [(item.id, plain(TYPE_OF[item.id], item.value)) for item in update.properties]
    assert values == [(item.id, item.value) for item in model.properties]


def build_update(model: reference.Update) -> mqcn.NotificationUpdate:
    """The update that a caller of the package would make from the same values."""
    guid = model.guid_identifier
    return mqcn.NotificationUpdate(
        command=model.command,  # type: ignore[arg-type]
        path_name=model.path_name,
        guid_identifier=None if guid is None else uuid.UUID(bytes_le=guid),
        guid_master_id=uuid.UUID(bytes_le=model.guid_master_id),
        properties=[(item.id, given(item.type, item.value)) for item in model.properties],
    )


def build(model: reference.Message) -> mqcn.ChangeNotificationMessage:
    """The message that a caller of the package would make from the same values."""
    if model.body is None:
        return mqcn.ChangeNotificationMessage(1, [build_update(update) for update in model.updates])
    guid = uuid.UUID(bytes_le=model.body.object_guid)
    body = mqcn.NotificationBody(model.body.event, guid, model.body.domain_controller)
    return mqcn.ChangeNotificationMessage(2, body=body)
