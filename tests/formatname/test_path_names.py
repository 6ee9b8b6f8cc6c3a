"""Path names: [MS-MQMQ] 2.1.1, with the queue names of all versions of MSMQ."""

from __future__ import annotations

import pytest

from msmqwire import mqcn
from msmqwire.errors import DecodeError, FormatNameError
from msmqwire.formatname import PathName, parse_path_name
from tests.reference.formatname_cases import PATH_NAMES, cases
from tests.reference.mqcn import wrong_unit


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("server\\orders", PathName("server", "orders")),
        ("server\\PRIVATE$\\orders;late", PathName("server", "orders", "private", "late")),
        ("server\\system$;orders;late", PathName("server", "orders", "system", "late")),
        ("server\\orders;JOURNAL", PathName("server", "orders", subqueue="JOURNAL")),
        ('server\\"a",+b', PathName("server", '"a",+b')),
        # The grammar allows a backslash in a computer
        ("a\\b\\c", PathName("a\\b", "c")),
        ("\\private$\\q", PathName("\\private$", "q")),
        ("s\\private$\\system$;q", PathName("s", "system$", "private", "q")),
        ("s\\private$\\system$;" + "q" * 33, PathName("s\\private$", "q" * 33, "system")),
    ],
)
def test_path_names(text: str, name: PathName) -> None:
    assert parse_path_name(text) == name
    assert parse_path_name(str(name)) == name


@pytest.mark.parametrize(
    ("text", "code", "field", "offset"),
    [
        ("", "truncated", "Computer", 0),
        ("server", "truncated", "Computer", 6),
        ("ser ver\\q", "bad_text", "Computer", 3),
        ("\\q", "bad_text", "Computer", 0),
        ("c" * 257 + "\\q", "too_large", "Computer", 256),
        ("c" * 300, "too_large", "Computer", 256),
        ("server\\", "truncated", "QueueName", 7),
        ("server\\a b", "bad_text", "QueueName", 8),
        ("server\\private$\\", "truncated", "QueueName", 16),
        ("server\\" + "q" * 125, "too_large", "QueueName", 131),
        ("server\\q;", "truncated", "Subqueue", 9),
        ("server\\q;a;b", "bad_text", "Subqueue", 10),
        ('server\\"q";late', "bad_text", "QueueName", 10),
        ("server\\q;" + "s" * 33, "too_large", "Subqueue", 41),
    ],
)
def test_what_is_no_path_name(text: str, code: str, field: str, offset: int) -> None:
    with pytest.raises(FormatNameError) as caught:
        parse_path_name(text)
    assert (caught.value.code, caught.value.field, caught.value.offset) == (code, field, offset)


def message_about(path_name: str) -> bytes:
    """A change notification that names its queue by path: [MS-MQCN] 2.2.6."""
    return bytes([1, 1, 1, 0]) + path_name.encode("utf-16-le", "surrogatepass") + bytes(2 + 16 + 24 + 1)


def test_change_notifications_judge_path_names_alike() -> None:
    """Texts of UTF-8 and of UTF-16: the same are path names, and the others are wrong at the same character."""
    texts = [text for text in (*PATH_NAMES, *cases(2_000, seed=81, names=PATH_NAMES)) if text and "\0" not in text]
    batch = mqcn.decode_batch([message_about(text) for text in texts], columns=["violations", "fault"])
    assert not len(batch.faults)
    legal = [bits & mqcn.Violation.PATH_NAME_SYNTAX == 0 for bits in batch.violations.tolist()]
    for text, judged in zip(texts, legal, strict=True):
        if judged:
            parse_path_name(text)
            continue
        with pytest.raises(FormatNameError) as refused:
            parse_path_name(text)
        with pytest.raises(DecodeError) as caught:
            mqcn.decode(message_about(text), strict=True)
        assert (caught.value.code, caught.value.offset) == ("bad_name", 4 + 2 * wrong_unit(text)), text
        # Of longer texts, which are never path names, a notification reads no more characters
        assert wrong_unit(text) == refused.value.offset or len(text) > 423, text
    assert 200 < sum(legal) < len(legal) - 200
