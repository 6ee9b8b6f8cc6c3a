"""What was decided where [MS-MQMQ] 2.1 is silent or contradicts itself, a test for each decision."""

from __future__ import annotations

import pytest

from msmqwire.errors import FormatNameError
from msmqwire.formatname import DirectName, MulticastName, MultipleElementName, parse
from tests.reference.formatname_cases import GUID


def refused(text: str, **options: bool) -> FormatNameError:
    with pytest.raises(FormatNameError) as caught:
        parse(text, **options)
    return caught.value


@pytest.mark.parametrize("suffix", ["JOURNAL", "DEADLETTER", "DEADXACT"])
def test_n1_a_machine_queue_wins(suffix: str) -> None:
    name = parse(f"DIRECT=OS:server\\SYSTEM$;{suffix}")
    assert name == DirectName("os", "server", None, "system", suffix=suffix.lower())  # type: ignore[arg-type]


def test_n1_then_a_journal_then_a_subqueue() -> None:
    assert parse("DIRECT=OS:m\\q;JOURNAL") == DirectName("os", "m", "q", suffix="journal")
    assert parse("DIRECT=OS:m\\q;DEADLETTER") == DirectName("os", "m", "q", subqueue="DEADLETTER")
    assert parse("DIRECT=OS:m\\SYSTEM$;late") == DirectName("os", "m", "SYSTEM$", subqueue="late")
    assert parse("DIRECT=OS:m\\SYSTEM$;JOURNAL;JOURNAL") == DirectName(
        "os", "m", "SYSTEM$", subqueue="JOURNAL", suffix="journal"
    )
    assert parse("DIRECT=OS:m\\PRIVATE$\\SYSTEM$;JOURNAL") == DirectName(
        "os", "m", "SYSTEM$", "private", suffix="journal"
    )


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("DIRECT=IPX:00000012:00a0234f7500\\q", "00000012:00a0234f7500"),
        ("DIRECT=HTTP://server:8080/MSMQ\\q", "//server:8080/MSMQ"),
        ("DIRECT=HTTPS://[::1]:443/msmq\\PRIVATE$\\q", "//[::1]:443/msmq"),
    ],
)
def test_n2_an_address_ends_at_the_first_backslash(text: str, address: str) -> None:
    name = parse(text)
    assert isinstance(name, DirectName)
    assert name.address == address
    assert name.queue == "q"


def test_n2_slashes_behind_msmq_need_a_switch() -> None:
    slashes = "DIRECT=HTTP://server/msmq/private$/orders/late;JOURNAL"
    assert refused(slashes).offset == slashes.index("/private$")
    name = parse(slashes, http_slashes=True)
    assert name == parse("DIRECT=HTTP://server/msmq\\private$\\orders/late;JOURNAL")
    assert str(name) == "DIRECT=HTTP://server/msmq\\PRIVATE$\\orders/late;JOURNAL"
    assert refused("DIRECT=OS:server/private$/orders", http_slashes=True).code == "truncated"


@pytest.mark.parametrize("port", [0, 9, 10, 19, 20, 99, 100, 199, 200, 999, 1000, 1999, 2000, 9999, 10_000, 65_535])
def test_n3_every_port_without_leading_zeros(port: int) -> None:
    assert parse(f"MULTICAST=234.1.1.1:{port}") == MulticastName("234.1.1.1", port)
    error = refused(f"MULTICAST=234.1.1.1:0{port}")
    assert (error.code, error.field, error.offset) == ("bad_text", "Address.Port", 21)


def test_n3_no_port_above_65535() -> None:
    error = refused("MULTICAST=234.1.1.1:65536")
    assert (error.code, error.field, error.offset) == ("bad_value", "Address.Port", 20)


def test_n4_a_comma_separates_elements() -> None:
    name = parse(f"DL={GUID}@example.com,PUBLIC={GUID}")
    assert isinstance(name, MultipleElementName)
    assert [element.kind for element in name.elements] == ["distribution_list", "public"]
    for text in ("DIRECT=OS:server\\a,b", f"DL={GUID}@a,b"):
        error = refused(text)
        assert (error.code, error.field, error.offset) == ("bad_type", "FormatName", len(text) - 1)


@pytest.mark.parametrize(
    ("element", "code", "field", "offset"),
    [
        ("DIRECT=OS:m\\q;JOURNAL", "bad_value", "Suffix", 13),
        ("DIRECT=OS:m\\SYSTEM$;DEADLETTER", "bad_value", "Suffix", 19),
        ("DIRECT=OS:m\\SYSTEM$;DEADXACT", "bad_value", "Suffix", 19),
        (f"PRIVATE={GUID}\\3;JOURNAL", "bad_value", "Suffix", 46),
        (f"PUBLIC={GUID};JOURNAL", "bad_value", "Suffix", 43),
        (f"MACHINE={GUID};DEADXACT", "bad_type", "FormatName", 0),
        (f"MACHINE={GUID}", "bad_type", "FormatName", 0),
    ],
)
def test_n5_no_read_only_queue_in_a_list(element: str, code: str, field: str, offset: int) -> None:
    assert parse(element, extended=True)
    other = "MULTICAST=234.1.1.1:1"
    for text, start in ((f"{element},{other}", 0), (f"{other},{element}", len(other) + 1)):
        error = refused(text, extended=True)
        assert (error.code, error.field, error.offset) == (code, field, start + offset)


def test_n6_a_subqueue_is_part_of_the_queue_name() -> None:
    assert parse("DIRECT=OS:m\\PRIVATE$\\q;late") == DirectName("os", "m", "q", "private", subqueue="late")
    assert refused("DIRECT=OS:m\\q;" + "s" * 33).offset == 14 + 32
    # A name that only MSMQ 1.0 allows has no subqueue
    error = refused('DIRECT=OS:m\\"q";late')
    assert (error.code, error.field, error.offset) == ("bad_text", "Suffix", 16)


def test_n7_private_numbers() -> None:
    name = parse(f"PRIVATE={GUID}\\0000001f")
    assert name == parse(f"PRIVATE={GUID}\\1F")
    assert hash(name) == hash(parse(f"PRIVATE={GUID}\\01F"))
    assert str(name) == f"PRIVATE={GUID}\\1F"
    assert name.text(private_id_width=8) == f"PRIVATE={GUID}\\0000001F"
    assert str(parse(f"PRIVATE={GUID}\\00000000")) == f"PRIVATE={GUID}\\0"


def test_n8_spx_needs_a_switch() -> None:
    text = "DIRECT=SPX:12:a0\\PRIVATE$\\order_queue$"
    error = refused(text)
    assert (error.code, error.field, error.offset) == ("bad_type", "Protocol", 7)
    assert str(parse(text, spx=True)) == text


@pytest.mark.parametrize(
    "text",
    [
        f"MACHINE={GUID};JOURNAL",
        f"MACHINE={GUID};DEADLETTER",
        f"MACHINE={GUID};DEADXACT",
        f"PUBLIC={GUID};JOURNAL",
        f"CONNECTOR={GUID};XACTONLY",
    ],
)
def test_n9_suffixes_beyond_the_grammar_need_a_switch(text: str) -> None:
    error = refused(text)
    assert (error.code, error.offset) == ("bad_text", text.index(";"))
    name = parse(text.lower(), extended=True)
    assert str(name) == text
    assert name != parse(text.partition(";")[0])


@pytest.mark.parametrize(
    "text",
    [
        f"PUBLIC={GUID};DEADLETTER",
        f"CONNECTOR={GUID};JOURNAL",
        f"MACHINE={GUID};XACTONLY",
        f"PRIVATE={GUID}\\1;DEADXACT",
    ],
)
def test_n9_other_suffixes_are_never_taken(text: str) -> None:
    error = refused(text, extended=True)
    assert (error.code, error.field) == ("bad_text", "Suffix")
    assert error.offset >= text.index(";")


@pytest.mark.parametrize(
    ("text", "code", "field", "offset"),
    [
        ("", "truncated", "FormatName", 0),
        ("QUEUE=x", "bad_type", "FormatName", 0),
        ("PUBLISH=x", "bad_type", "FormatName", 5),
        ("DIRECT", "truncated", "FormatName", 6),
        (f"PUBLIC={{{GUID}}}", "bad_text", "QueueGuid", 7),
        (f" PUBLIC={GUID}", "bad_type", "FormatName", 0),
        (f"PUBLIC={GUID} ", "bad_text", "QueueGuid", 43),
        (f"PUBLIC= {GUID}", "bad_text", "QueueGuid", 7),
        (f"PUBLIC={GUID}\n", "bad_text", "QueueGuid", 43),
        ("DIRECT=OS:server\\orders ", "bad_text", "QueueName", 23),
    ],
)
def test_n10_nothing_else_is_a_name(text: str, code: str, field: str, offset: int) -> None:
    error = refused(text)
    assert (error.code, error.field, error.offset, error.text) == (code, field, offset, text)


@pytest.mark.parametrize(
    "text", ["DıRECT=OS:m\\q", "D\u0130RECT=OS:m\\q", "DIRECT=O\u017f:m\\q", "PUBLIC=" + "\uff11" * 8]
)
def test_only_ascii_letters_have_another_case(text: str) -> None:
    assert refused(text).offset == next(i for i, character in enumerate(text) if character > "\x7f")


@pytest.mark.parametrize("queue", ["Neue Bestellung", "Größe", "Очередь 2", "注文", "a  b", "𝄞"])
def test_n11_queues_of_direct_names_with_any_letters(queue: str) -> None:
    text = f"DIRECT=TCP:10.0.0.1\\PRIVATE$\\{queue};late {queue};JOURNAL"
    assert refused(text).field in ("QueueName", "Subqueue")
    name = parse(text, any_letters=True)
    assert isinstance(name, DirectName)
    assert (name.queue, name.subqueue, name.suffix) == (queue, f"late {queue}", "journal")
    assert str(name) == text
    assert DirectName("tcp", "10.0.0.1", queue, "private", f"late {queue}", "journal") == name
    listed = parse(f"DIRECT=OS:a\\{queue},DIRECT=OS:b\\q", any_letters=True)
    assert isinstance(listed, MultipleElementName)
    assert str(listed.elements[0]) == f"DIRECT=OS:a\\{queue}"


@pytest.mark.parametrize(
    ("text", "field", "offset"),
    [
        ("DIRECT=OS:m\\ q", "QueueName", 12),
        ("DIRECT=OS:m\\q ", "QueueName", 13),
        ("DIRECT=OS:m\\q ;late", "QueueName", 13),
        ("DIRECT=OS:m\\q; late", "Subqueue", 14),
        ("DIRECT=OS:m\\ü q\t", "QueueName", 15),
        ("DIRECT=OS:m\\q\u200b", "QueueName", 13),
        ("DIRECT=OS:m\\q\ud800", "QueueName", 13),
        ("DIRECT=OS:m ü\\q", "ProtocolAddressSpecification", 11),
        ("DIRECT=OS:m\\q, DIRECT=OS:m\\q", "FormatName", 14),
        (f"PUBLIC={GUID}\\ü", "QueueGuid", 43),
        ("DIRECT=OS:m\\" + "ü" * 125, "QueueName", 136),
    ],
)
def test_n11_nothing_else_is_a_name_with_any_letters(text: str, field: str, offset: int) -> None:
    error = refused(text, any_letters=True)
    assert (error.field, error.offset, error.text) == (field, offset, text)
