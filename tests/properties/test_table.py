"""The one list of PROPIDs is that of [MS-MQMQ] 2.3, and its C index says the same."""

from __future__ import annotations

import copy
import pickle

import pytest

from msmqwire import properties
from msmqwire.properties import NUMBERED, PROPERTIES, TYPE_NAMES, by_name, by_number, type_of
from msmqwire.propvariant import encode
from tests.reference import propvariant
from tests.reference.mqcn_cases import UNKNOWN


def test_every_propid_of_the_specification() -> None:
    expected = [(f"PROPID_{row.name}", row.number, row.type, row.object, row.section) for row in propvariant.propids()]
    assert len(expected) == 186
    assert [(row.name, row.number, TYPE_NAMES[row.vt], row.object, row.section) for row in PROPERTIES] == expected


def test_types_have_the_codes_of_the_specification() -> None:
    for code, name in TYPE_NAMES.items():
        assert code == propvariant.code(name)
    assert set(propvariant.TYPES) < set(TYPE_NAMES.values())


def test_every_propid_is_a_constant() -> None:
    for row in PROPERTIES:
        assert getattr(properties, row.name) == row.number
        assert by_name(row.name) is row
        assert row.name in dir(properties)
    for wrong in ("PROPID_Q_NONE", "PROPID_", "Q_QUOTA"):
        assert not hasattr(properties, wrong)
        with pytest.raises(KeyError):
            by_name(wrong)


def test_numbers_below_101_have_two_meanings() -> None:
    for row in PROPERTIES:
        if row.number >= 101:
            assert by_number(row.number) is row
        else:
            assert row.object in ("MgmtMachine", "MgmtQueue")
    for number in (*range(101), *UNKNOWN, -1, 1 << 32, 1 << 64):
        with pytest.raises(KeyError):
            by_number(number)


def test_the_index_knows_every_number() -> None:
    """Each number that a table of any plausible size could hold, and those whose lower bytes are a known one's."""
    numbers = set(range(1 << 16)) | set(UNKNOWN)
    numbers |= {number | 1 << bit for number in propvariant.TYPE_OF for bit in range(13, 32)}
    for number in numbers:
        expected = propvariant.TYPE_OF.get(number)
        assert type_of(number) == (None if expected is None else propvariant.code(expected)), number
    for number in (-1, 1 << 32, 1 << 70):
        assert type_of(number) is None


def test_numbered_properties() -> None:
    assert {row.number: TYPE_NAMES[row.vt] for row in NUMBERED} == propvariant.TYPE_OF
    assert [row for row in PROPERTIES if row in NUMBERED] == list(NUMBERED)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("PROPID_Q_JOURNAL", {"MQ_JOURNAL_NONE": 0, "MQ_JOURNAL": 1}),
        ("PROPID_Q_AUTHENTICATE", {"MQ_AUTHENTICATE_NONE": 0, "MQ_AUTHENTICATE": 1}),
        ("PROPID_Q_PRIV_LEVEL", {"MQ_PRIV_LEVEL_NONE": 0, "MQ_PRIV_LEVEL_OPTIONAL": 1, "MQ_PRIV_LEVEL_BODY": 2}),
        ("PROPID_Q_TRANSACTION", {"MQ_TRANSACTIONAL_NONE": 0, "MQ_TRANSACTIONAL": 1}),
        ("PROPID_Q_SCOPE", {"MQDS_SITESCOPE": 0, "MQDS_ENTERPRISESCOPE": 1}),
        ("PROPID_QM_FOREIGN", {"MSMQ_MACHINE": 0, "FOREIGN_MACHINE": 1}),
        (
            "PROPID_QM_OS",
            {f"MSMQ_OS_{name}": 0x100 * at for at, name in enumerate(["NONE", "FOREIGN", "95", "NTW", "NTS", "NTE"])},
        ),
        ("PROPID_QM_GROUP_IN_CLUSTER", {"MSMQ_GROUP_NOT_IN_CLUSTER": 0, "MSMQ_GROUP_IN_CLUSTER": 1}),
        ("PROPID_CN_PROTOCOLID", {"IP_ADDRESS_TYPE": 1, "IPX_ADDRESS_TYPE": 3, "FOREIGN_ADDRESS_TYPE": 5}),
        ("PROPID_D_SCOPE", {"MQDS_SITESCOPE": 0, "MQDS_ENTERPRISESCOPE": 1}),
    ],
)
def test_named_values(name: str, values: dict[str, int]) -> None:
    assert dict(by_name(name).values) == values


def test_named_values_of_deleted_objects() -> None:
    values = by_name("PROPID_D_OBJTYPE").values
    assert sorted(values.values()) == list(range(1, 9))
    assert (values["MQDS_QUEUE"], values["MQDS_MACHINE"]) == (1, 2)


def test_named_values_fit_their_types() -> None:
    named = [row for row in PROPERTIES if row.values]
    assert len(named) >= 8
    for row in named:
        for value in row.values.values():
            assert encode(row.vt, value)


def test_rows_are_values() -> None:
    row = by_number(105)
    with pytest.raises(AttributeError):
        row.number = 7  # type: ignore[misc]
    with pytest.raises(TypeError):
        by_number(104).values["MQ_JOURNAL"] = 7  # type: ignore[index]
    assert len(set(PROPERTIES)) == 186
    for each in PROPERTIES:
        assert pickle.loads(pickle.dumps(each)) == copy.deepcopy(each) == each
