"""A person's own sections and rules: what they find, what they may read, and where their mistakes are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from msmqwire.capture import TABLES, table_columns
from msmqwire.insight.database import parse
from msmqwire.insight.engine import Engine, columns_needed
from msmqwire.insight.findings import check_result, detection_engine
from msmqwire.insight.query_files import SECTIONS, VIEW_FILES, QueryFileError, read_sections
from msmqwire.insight.rules import RULES, read_rules
from msmqwire.insight.tables import ALL_ROWS, NAMES, columns_of
from tests.cli.support import run
from tests.insight.captures import EXAMPLES, FIRST, message, stream, write

SECTION = "-- title: labels\n-- count: messages\n"
RULE = "-- title: orders\n-- severity: medium\n-- evidence: src, queue\n"


def folder(path: Path, name: str, text: str) -> Path:
    made = path / "own"
    made.mkdir(exist_ok=True)
    (made / f"{name}.sql").write_text(text, "utf-8")
    return made


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    packets = [message(FIRST, f"OS:server\\private$\\{queue}", label=queue) for queue in ("orders", "orders", "bills")]
    return write(tmp_path_factory.mktemp("own") / "x.pcap", stream(packets))


def test_a_section_of_a_folder_is_made(capture: Path, tmp_path: Path) -> None:
    own = folder(
        tmp_path,
        "labels",
        SECTION + "SELECT label, count(*) AS messages, min(time_ns) AS first_seen, first_places(place) AS frames\n"
        "FROM messages GROUP BY label ORDER BY messages DESC;",
    )
    status, output, _ = run("summary", capture, "-q", "--sections-from", own, "--table", "labels", "-T", "json")
    assert status == 0
    found = [json.loads(line) for line in output.splitlines()]
    assert [(row["label"], row["messages"]) for row in found] == [("orders", 2), ("bills", 1)]
    assert found[0]["first_seen"].startswith("2024-03-04T08:00:00.")
    assert found[1]["frames"][0]["file"] == str(capture)
    tables = [
        json.loads(line)["table"] for line in run("summary", capture, "-q", "--sections-from", own)[1].splitlines()
    ]
    assert {"labels", "hosts", "queues"} <= set(tables)
    shown = run("summary", capture, "-q", "--sections-from", own, "-T", "table")[1]
    assert "labels" in shown


def test_a_section_of_a_folder_says_a_line(capture: Path, tmp_path: Path) -> None:
    text = (
        SECTION
        + "-- line: {messages} messages of {messages}\nSELECT label, count(*) AS messages FROM messages GROUP BY 1"
    )
    own = folder(tmp_path, "labels", text)
    _, _, errors = run("summary", capture, "--sections-from", own, "--table", "labels")
    assert "labels: 3 messages of 3\n" in errors
    wrong = folder(tmp_path, "labels", text.replace("{messages} messages", "{bytes} messages"))
    status, _, errors = run("summary", capture, "-q", "--sections-from", wrong, "--table", "labels")
    assert (status, errors) == (1, f"msmqwire: {wrong}/labels.sql:3:1: line: the result has no column bytes\n")


def test_a_view_is_a_table(capture: Path, tmp_path: Path) -> None:
    text = SECTION + "SELECT queue, count(*) AS messages FROM (SELECT * FROM asked_messages) AS each GROUP BY queue"
    own = folder(tmp_path, "labels", text)
    assert run("summary", capture, "-q", "--sections-from", own, "--table", "labels", "-T", "json")[:2] == (0, "")


def test_a_rule_of_a_folder_is_applied(capture: Path, tmp_path: Path) -> None:
    own = folder(
        tmp_path,
        "orders",
        RULE + "SELECT src, src_port, dst_port, destination_queue AS queue, place, time_ns\n"
        "FROM messages WHERE destination_queue LIKE '%orders'",
    )
    status, output, _ = run("detect", capture, "-q", "--rules-from", own)
    (found,) = map(json.loads, output.splitlines())
    assert (status, found["rule"], found["severity"], len(found["frames"])) == (2, "orders", "medium", 2)
    assert found["evidence"]["queue"] == "DIRECT=OS:server\\private$\\orders"
    assert (found["evidence"]["packets"], found["evidence"]["dst_port"]) == (2, 1801)
    assert "orders  medium: orders\n" in run("detect", "--rules", "--rules-from", own)[1]
    for format in ("eve", "csv", "zeek", "table"):
        assert "orders" in run("detect", capture, "-q", "--rules-from", own, "-T", format)[1]
    payload = message(FIRST, "OS:server\\private$\\orders").hex()
    assert '"rule":"orders"' in run("detect", "--hex", payload, "-q", "--rules-from", own)[1]


def test_a_rule_lists_the_values_of_a_column(capture: Path, tmp_path: Path) -> None:
    text = "SELECT src, destination_queue AS queue, place, time_ns FROM messages"
    own = folder(tmp_path, "orders", RULE + "-- list: queue\n" + text)
    (found,) = map(json.loads, run("detect", capture, "-q", "--rules-from", own)[1].splitlines())
    queues = [f"DIRECT=OS:server\\private$\\{name}" for name in ("bills", "orders")]
    assert (found["evidence"]["queue"], found["evidence"]["packets"]) == (queues, 3)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM main.messages",
        "WITH \"/etc/passwd\" AS (FROM \"/etc/passwd\") FROM \"/etc/passwd\"",
        "SELECT getenv('HOME') FROM messages",
        "SELECT current_setting('memory_limit') FROM messages",
        "SELECT getvariable('x') FROM messages",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM stored_messages",
        "SELECT * FROM matched",
        "SELECT label FROM messages WHERE EXISTS (SELECT 1 FROM glob('/*'))",
        "SELECT label FROM messages ORDER BY read_text('x')",
        "SELECT count(*) FILTER (WHERE version() > '') FROM messages",
        "SELECT sum(frame) OVER (ORDER BY random()) FROM messages",
        "SELECT current_date FROM messages",
        "SELECT reflect('a', 'b') FROM messages",
        "SELECT body FROM messages",
        "SET memory_limit = '64GB'",
        "COPY messages TO 'x'",
        "ATTACH 'x'",
        "INSTALL httpfs",
        "PRAGMA version",
        "CREATE TABLE x AS SELECT 1",
        "DROP VIEW messages",
        "SELECT 1; SELECT 2",
        "",
    ],
)  # fmt: skip
def test_a_query_reads_nothing_but_the_tables(text: str, tmp_path: Path) -> None:
    own = folder(tmp_path, "labels", SECTION + text)
    with pytest.raises(QueryFileError, match=r"own/labels\.sql:\d+:\d+: "):
        Engine(read_sections(own).values())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SELECT lable\nFROM messages", '3:8: Binder Error: Referenced column "lable" not found'),
        ("SELECT label\nFROM message", "4:6: no table is called message"),
        ("SELECT label,\n  foo(label) FROM messages", "4:3: no function is called foo"),
        ("SELECT 'é', foo(label) FROM messages", "3:13: no function is called foo"),
        ("SELECT label\nFROM messages WHERE", "syntax error"),
        ("SELECT sum(label) FROM messages", "3:8: Binder Error: No function matches"),
        ("-- titel: x\nSELECT 1", "3:1: no entry is called titel; there is title"),
        ("-- limit: many\nSELECT 1", "3:1: limit: many is no positive number"),
        ("-- position: -1\nSELECT 1", "3:1: position: -1 is no positive number"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(capture: Path, tmp_path: Path, text: str, complaint: str) -> None:
    own = folder(tmp_path, "labels", SECTION + text)
    status, _, errors = run("summary", capture, "-q", "--sections-from", own)
    assert status == 1
    assert errors.count("\n") == 1
    assert f"{own}/labels.sql:" in errors
    assert complaint in errors


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ("-- title: x\n-- severity: huge\n-- evidence: src\n", "2:1: severity: huge"),
        ("-- title: x\n-- severity: low\n", "1:1: the header has no entry evidence"),
        ("-- title: x\n-- severity: low\n-- evidence: src\n-- list: dst\n", "4:1: list: dst is no column of evidence"),
        ("-- title: x\n-- severity: low\n-- evidence: src\n-- probe: maybe\n", "4:1: probe: is yes or no"),
        ("-- title: x\n-- severity: low\n-- evidence: src\n-- sid: x\n", "4:1: sid: x"),
        ("-- title: x\n-- severity: low\n-- evidence: src\n-- transport: IPX\n", "4:1: transport: is TCP or UDP"),
        ("-- title: x\n-- severity: low\n-- evidence: ,\n", "3:1: evidence: names no column"),
        ("-- title: x\n-- severity: low\n-- evidence: nothing\n", "3:1: evidence: the result has no column nothing"),
    ],
)
def test_a_mistake_in_the_header_of_a_rule(capture: Path, tmp_path: Path, header: str, complaint: str) -> None:
    own = folder(tmp_path, "mine", header + "SELECT src, place, time_ns FROM messages")
    status, _, errors = run("detect", capture, "-q", "--rules-from", own)
    assert (status, errors.count("\n")) == (1, 1)
    assert f"{own}/mine.sql:{complaint}" in errors


def test_a_rule_without_places(capture: Path, tmp_path: Path) -> None:
    own = folder(tmp_path, "mine", "-- title: x\n-- severity: low\n-- evidence: src\nSELECT src FROM messages")
    assert "mine.sql:1:1: the result has no column place" in run("detect", capture, "-q", "--rules-from", own)[2]


def test_files_that_are_no_queries(tmp_path: Path) -> None:
    with pytest.raises(QueryFileError, match=r"has no file NAME\.sql"):
        read_sections(tmp_path)
    for name, data in (("Upper", b"-- title: x\nSELECT 1"), ("latin", b"-- title: \xff\n"), ("big", b" " * (2 << 20))):
        made = tmp_path / name
        made.mkdir()
        (made / f"{name}.sql").write_bytes(data)
        with pytest.raises(QueryFileError, match=f"{name}.sql:1:1: "):
            read_sections(made)
    status, _, errors = run("detect", EXAMPLES[0], "--rules-from", tmp_path / "missing")
    assert (status, errors.count("\n")) == (1, 1)


def test_every_query_of_the_package_has_what_the_manual_shows() -> None:
    for query in (*SECTIONS.values(), *VIEW_FILES.values(), *RULES):
        assert query.header["about"]
        statement = parse(query.text)
        assert statement is not None
        assert {each.text for each in statement.tables} <= set(NAMES)
    assert [rule.identifier for rule in RULES] == sorted({rule.identifier for rule in RULES})
    assert all(rule.header["source"] for rule in RULES)


def test_the_results_of_the_package_have_their_columns() -> None:
    """Only queries of others are checked before they run."""
    engine = detection_engine(more=SECTIONS.values())
    for rule in RULES:
        check_result(rule, engine)
        assert rule.packaged
        assert {"src", "dst"} <= set(engine.columns_of_result(rule))
    for section in SECTIONS.values():
        assert section.packaged
        columns = engine.columns_of_result(section)
        assert {"first_seen", "last_seen", "frames", section.count} <= set(columns)
        assert set(re.findall(r"{(\w+)}", section.header.get("line", ""))) <= set(columns)


def test_columns_are_those_that_the_parser_finds() -> None:
    def needed(text: str) -> set[str]:
        (columns,) = columns_needed([type(SECTIONS["hosts"])("x", "x.sql", text, {"title": "x"}, {})]).values()
        return set(columns) - {"file", "frame", "time"}

    assert needed("SELECT 'label', src AS dst FROM messages -- hop_count") == {"src"}
    assert needed("SELECT fault.code FROM messages") == {"fault"}
    assert needed("SELECT executable FROM messages") == {"body", "compound_body"}
    assert needed("SELECT manager_name FROM notifications") == {"path_name", "properties"}
    assert needed("SELECT own_manager FROM messages") == {
        "hop_count", "source_queue_manager", "label", "destination_queue",
    }  # fmt: skip
    for table in TABLES:
        assert "place" in columns_of(table)
        assert set(columns_of(table)) & set(table_columns(table))
    assert "in_table" in columns_of(ALL_ROWS)


def test_rules_of_a_folder_have_numbers_of_their_own(tmp_path: Path) -> None:
    text = "SELECT src, destination_queue AS queue, place, time_ns FROM messages"
    folder(tmp_path, "one", RULE + text)
    rules = read_rules(folder(tmp_path, "two", RULE + text))
    assert len({rule.identifier for rule in (*rules, *RULES)}) == 2 + len(RULES)
