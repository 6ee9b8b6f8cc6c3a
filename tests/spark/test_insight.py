"""Sections and rules on Spark: the same rows as DuckDB's, from the same text, and nothing read but the tables."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from msmqwire.capture import TABLES, read_tables
from msmqwire.insight import SECTIONS, Summary
from msmqwire.insight.database import QueryError, SqlError
from msmqwire.insight.engine import columns_needed
from msmqwire.insight.findings import COLUMNS as RULE_COLUMNS
from msmqwire.insight.findings import Detector
from msmqwire.insight.query_files import QueryFileError, Section, read_sections
from msmqwire.insight.rules import RULES, read_rules
from msmqwire.insight.tables import DERIVED, NAMES
from msmqwire.spark import lake, pipeline
from msmqwire.spark.insight import detect, summarize
from msmqwire.spark.insight.translation import translate, translate_expression
from tests.cli.support import process, refused, run
from tests.insight.captures import EXAMPLES, FIRST, SECOND, WRITER, datagram, message, stream, write
from tests.insight.test_detect import CAPTURES, EXPECTED
from tests.vectors import load

VIEWS = {name: f"view_of_{name}" for name in NAMES}
#: What only the payloads of captures show, which Spark does not read again
OF_PAYLOADS = {"queuejumper-check"}


def many_changes() -> bytes:
    """A message whose changes are more rows than places are kept of a group."""
    change = WRITER["notification_update"](2, struct.pack("<2I", 1403, 1404), b"\1\1")
    return bytes(WRITER["user_message"](FIRST, SECOND, 3, 1, 0, b"\1\xfa" + change * 250))


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The examples, a capture for each rule, and one with all vectors, in the order of their names."""
    folder = tmp_path_factory.mktemp("insight")
    frames = [datagram(vector.data) for vector in load("mqsd")]
    for number, each in enumerate(load("mqqb")):
        frames += stream([each.data], port=20000 + number)
    paths = [write(folder / "vectors.pcap", frames, step=500_000_000)]
    paths += [write(folder / f"{name}.pcap", make()) for name, make in CAPTURES.items()]
    paths.append(write(folder / "repeated.pcap", stream([message(), message(), many_changes(), many_changes()])))
    return sorted(map(str, [*EXAMPLES, *paths]))


def on_duckdb(captures: list[str], sections: Mapping[str, Section] = SECTIONS) -> Summary:
    summary, columns = Summary(sections=sections), columns_needed(sections.values())
    for table, batch in rows_of(captures, columns):
        summary.add(table, batch)
    return summary


def rows_of(captures: list[str], columns: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of captures one after the other: a file has the number of its first row, whose table may be any."""
    for capture in captures:
        yield from read_tables(capture, columns, columns=columns)


@pytest.fixture(scope="module")
def both(spark: SparkSession, captures: list[str], request: pytest.FixtureRequest) -> tuple[Summary, Summary]:
    """Summaries of all sections; the short run lacks the timeline, which takes as long as half of the others."""
    is_short = request.config.getoption("markexpr") == "not long"
    sections = {name: section for name, section in SECTIONS.items() if not is_short or name != "timeline"}
    return summarize(spark, captures, sections=sections), on_duckdb(captures, sections)


# The timeline has the findings of all rules, which the rules below show
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name == "timeline" else []) for name in SECTIONS]
)
def test_a_section_has_equal_rows_on_both_engines(both: tuple[Summary, Summary], name: str) -> None:
    found, expected = (summary.section(name) for summary in both)
    assert found.schema == expected.schema
    assert found.to_pylist() == expected.to_pylist() != []


def test_a_summary_counts_the_same_on_both_engines(both: tuple[Summary, Summary], captures: list[str]) -> None:
    found, expected = both
    assert found.files == expected.files == len(captures)
    assert found.columns == expected.columns


@pytest.mark.long
def test_a_summary_prints_the_same_on_both_engines(both: tuple[Summary, Summary]) -> None:
    found, expected = both
    assert repr(found) == repr(expected)


def test_the_rows_that_a_limit_leaves_out(
    spark: SparkSession, captures: list[str], both: tuple[Summary, Summary]
) -> None:
    limits = {"queues": 2, "hosts": 3}
    found = summarize(spark, captures, limits=limits, sections={name: SECTIONS[name] for name in limits})
    _, expected = both
    for name, limit in limits.items():
        assert found.section(name).to_pylist() == expected.section(name).to_pylist()[:limit]
        counts = [row[SECTIONS[name].count or ""] for row in expected.section(name).to_pylist()[limit:]]
        assert found.omitted(name) == (len(counts), sum(counts))


@pytest.fixture(scope="module")
def findings(spark: SparkSession, captures: list[str]) -> tuple[Detector, Detector]:
    expected = Detector(EXPECTED)
    for table, batch in rows_of(captures, RULE_COLUMNS):
        expected.add(table, batch)
    return detect(spark, captures, expected=EXPECTED), expected


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_has_equal_findings_on_both_engines(findings: tuple[Detector, Detector], rule: Any) -> None:
    found, expected = ([each for each in one.findings() if each.rule == rule.name] for one in findings)
    assert found == expected
    assert bool(found) == (rule.name not in OF_PAYLOADS)


@pytest.fixture(scope="module")
def stored(spark: SparkSession, captures: list[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A lake of the captures."""
    folder = str(tmp_path_factory.mktemp("insight") / "lake")
    pipeline.run(spark, captures, folder)
    return folder


def test_a_lake_and_its_frames(spark: SparkSession, stored: str) -> None:
    wanted = {name: SECTIONS[name] for name in ("queue_managers", "queues")}
    expected = Summary(sections=wanted)
    for table, names in expected.columns.items():
        for batch in lake.batches(stored, table, [*names, "time_ns"]):
            expected.add(table, batch)
    frames = {table: lake.read(spark, stored, table) for table in TABLES}
    for found in (summarize(spark, sections=wanted, lake=stored), summarize(spark, frames, sections=wanted)):
        for name in wanted:
            rows, other = (
                sorted(map(str, one.section(name).drop_columns("frames").to_pylist())) for one in (found, expected)
            )
            assert rows == other != []
    since = summarize(spark, sections=wanted, lake=stored, since="2100-01-01")
    assert since.section("queues").num_rows == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("summary", "--table", "queues", "-T", "csv"),
        ("summary", "--table", "minutes", "-T", "json", "--until", "2024-03-04T08:00:10"),
        # All rules, whose findings are compared above
        pytest.param(("detect", "--address", "192.0.2.7", "--expect", EXPECTED[0]), marks=pytest.mark.long),
    ],
)
def test_the_commands_over_a_lake(stored: str, arguments: tuple[str, ...]) -> None:
    # Files of a lake have another order without Spark
    found, expected = (without_frames(run(*arguments, "--lake", stored, *more)) for more in (["--spark"], []))
    assert found == expected


def test_commands_on_spark_read_a_lake() -> None:
    assert refused("summary", EXAMPLES[0], "--spark").startswith("msmqwire: --spark reads a lake: name one with --lake")
    assert "--spark reads a lake" in refused("detect", "--hex", "00", "--master", "local[1]")


@pytest.mark.long
def test_a_command_starts_spark(tmp_path: Path, spark: SparkSession) -> None:
    pipeline.run(spark, str(EXAMPLES[0]), str(tmp_path / "lake"))
    arguments = ("summary", "--lake", tmp_path / "lake", "--table", "hosts", "-T", "csv", "-q")
    done, expected = process(*arguments, "--master", "local[1]"), process(*arguments)
    assert (done.returncode, done.stdout) == (expected.returncode, expected.stdout), done.stderr


def without_frames(done: tuple[int, str, str]) -> tuple[int, list[str], list[str]]:
    """The lines of a command in the order of their texts, without frames."""
    status, output, errors = done
    lines = [re.sub(r'"frames":.*?\](,|})|"file":".*?",', "", line) for line in output.splitlines()]
    return status, sorted(re.sub(r',"\[.*', "", line) for line in lines), errors.splitlines()


def test_frames_without_tables_and_columns(
    spark: SparkSession, captures: list[str], both: tuple[Summary, Summary]
) -> None:
    messages = spark.read.format("msmq").option("table", "messages").load(captures)
    sections = {name: SECTIONS[name] for name in ("queues", "discovery")}
    found = summarize(spark, {"messages": messages}, sections=sections)
    assert found.section("queues").to_pylist() == both[1].section("queues").to_pylist()
    assert found.section("discovery").num_rows == 0
    with pytest.raises(KeyError, match="messages: no column"):
        summarize(spark, {"messages": messages.drop("destination_queue")}, sections=sections)
    with pytest.raises(ValueError, match="options are for captures"):
        summarize(spark, {"messages": messages}, since="2024-03-04")
    with pytest.raises(SqlError, match="in its DataFrames"):
        found.add("messages", next(read_tables(captures, ["messages"]))[1])


OWN = {
    "patterns": r"""
        SELECT destination_queue AS queue, count(*) AS messages, min(time_ns) AS first_seen
        FROM messages
        WHERE destination_queue LIKE '%\private$\%' OR destination_queue ILIKE 'direct=os:%' ESCAPE '!'
            OR regexp_matches(label, 'c$') OR NOT starts_with(upper(label), 'Q')
        GROUP BY destination_queue ORDER BY messages DESC, queue""",
    "lists": """
        SELECT
            src, list_sort(list(label)) AS labels, list_sort(list(label))[1] AS first_label,
            list_sort(list(label))[99] AS no_label, list_slice(list_sort(list(frame)), 2, 3) AS some_frames,
            arg_min(message_class_name, place) AS class, max_by(label, frame) AS label,
            count(DISTINCT dst) AS hosts, bool_and(frame > 0) AS all_frames
        FROM messages GROUP BY src ORDER BY src""",
    "windows": """
        WITH numbered AS MATERIALIZED (
            SELECT *, row_number() OVER (PARTITION BY src ORDER BY place, stream_offset) AS number FROM sessions
        )
        SELECT src, frame, kind, number, lag(kind) OVER (PARTITION BY src ORDER BY number) AS before
        FROM numbered
        QUALIFY rank() OVER (PARTITION BY kind ORDER BY place, stream_offset) <= 2
        ORDER BY src, number LIMIT 20""",
    "sets": """
        SELECT m.src, m.fault.code AS code, length(m.fault.field) % 7 AS size,
            m.src_port & 3 AS bits, m.frame / 7 AS part, (2 - m.frame) // 3 AS whole,
            coalesce(nullif(m.label, ''), 'none') || '!' AS label,
            CAST(m.frame AS VARCHAR) AS frame, CASE WHEN m.frame BETWEEN 2 AND 4 THEN -abs(m.frame) END AS low,
            greatest(m.frame, NULL) AS most, '${env:PATH} ${system:java.home} $' || '{spark.app.name}' AS no_variable
        FROM messages AS m
        WHERE m.src IN (SELECT src FROM sessions UNION SELECT src FROM messages)
            AND NOT EXISTS (SELECT 1 FROM topology AS t WHERE t.src = m.src AND t.type = 'reply')
        ORDER BY m.place, m.stream_offset""",
}


def own(folder: Path, queries: Mapping[str, str]) -> dict[str, Section]:
    for name, text in queries.items():
        (folder / f"{name}.sql").write_text(f"-- title: {name}\n{text}", "utf-8")
    return read_sections(folder)


def test_own_sections_have_equal_rows_on_both_engines(spark: SparkSession, captures: list[str], tmp_path: Path) -> None:
    sections = own(tmp_path, OWN)
    found, expected = summarize(spark, captures, sections=sections), on_duckdb(captures, sections)
    for name in sections:
        assert found.section(name).to_pylist() == expected.section(name).to_pylist() != [], name


@pytest.mark.parametrize("text", [query.text for query in (*SECTIONS.values(), *RULES)])
def test_queries_name_no_table_but_the_views(text: str) -> None:
    written = translate(text, VIEWS)
    assert any(view in written for view in VIEWS.values())
    assert not any(f"FROM `{name}`" in written for name in VIEWS if f"`{name}` AS (" not in written)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SELECT * FROM text.`/etc/passwd`", "cannot be written for Spark"),
        ('SELECT * FROM text."/etc/passwd"', "table with db"),
        ('SELECT * FROM "/etc/passwd"', "no table is called /etc/passwd"),
        ("SELECT * FROM '/etc/passwd'", "no table is called /etc/passwd"),
        ("SELECT * FROM main.messages", "table with db"),
        ("SELECT * FROM view_of_messages", "no table is called view_of_messages"),
        ("WITH messages AS (SELECT * FROM secrets) SELECT * FROM messages", "no table is called secrets"),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a", "no table is called b"),
        ("SELECT EXISTS (WITH b AS (SELECT 1) SELECT * FROM b), (SELECT 1 FROM b) FROM messages", "called b"),
        ("SELECT * FROM read_text('/etc/passwd')", "this table|read_text|read"),
        ("SELECT reflect('java.lang.System', 'getenv') FROM messages", "reflect"),
        ("SELECT java_method('java.lang.System', 'exit') FROM messages", "java_method"),
        ("SELECT input_file_name() FROM messages", "input_file_name"),
        ("SELECT current_user FROM messages", "currentuser"),
        ("SELECT current_timestamp FROM messages", "currenttimestamp"),
        ("SELECT min_by(src, dst, 3) FROM messages", "argmin with count|min_by"),
        ("SELECT list(src ORDER BY dst) FROM messages", "ORDER BY in a function"),
        ("SELECT list(src) FILTER (WHERE frame > 1) FROM messages", "list with FILTER"),
        ("SELECT quantile_cont(frame, 0.5) FROM messages", "percentilecont"),
        ("SELECT avg(frame) FROM messages", "avg"),
        ("SELECT frame + 1.5 FROM messages", "a number with other signs"),
        ("SELECT CAST(frame AS DOUBLE) FROM messages", "the type DOUBLE"),
        ("SELECT CAST(frame / 2 AS BIGINT) FROM messages", "the type BIGINT"),
        ("SELECT CAST(time AS VARCHAR) FROM messages", "a cast of a time"),
        ("SELECT frame & 1 = 1 AND (frame & 1) + 1 = 2 = true FROM messages", "needs parentheses"),
        ("SELECT frame | frame & 1 FROM messages", "needs parentheses"),
        ("SELECT label LIKE src FROM messages", "like of a pattern"),
        (r"SELECT regexp_matches(label, '\bx') FROM messages", "this pattern"),
        ("SELECT regexp_matches(label, '(?i)x') FROM messages", "this pattern"),
        ("SELECT regexp_replace(label, 'a', 'b') FROM messages", "without the option g"),
        (r"SELECT regexp_replace(label, '(a)', '\1', 'g') FROM messages", "this replacement"),
        ("SELECT destination_queues[2:3] FROM messages", "this subscript|slice"),
        ("SELECT 1 FROM messages WHERE queue_manager = 'ABCDEFAB-0000-0000-0000-000000000000'", "a GUID in upper case"),
        ("SELECT * FROM messages ASOF JOIN sessions USING (time)", "join with method"),
        ("SELECT * EXCLUDE (src) FROM messages", "star with except"),
        ("SELECT src FROM messages GROUP BY ROLLUP (src)", "rollup"),
        ("SELECT src FROM messages TABLESAMPLE 3", "sample"),
        ("SELECT /*+ BROADCAST(messages) */ src FROM messages", None),
        ("SELECT src FROM messages ORDER BY src OFFSET 3", "offset"),
        ("SELECT src FROM messages, LATERAL (SELECT 1)", "lateral"),
        ("WITH RECURSIVE a AS (SELECT 1 UNION SELECT 2) SELECT * FROM a", "with with recursive"),
        ("SELECT src COLLATE NOCASE FROM messages", "collate"),
        ("SELECT TIMESTAMP '2024-03-04' FROM messages", "the type TIMESTAMP"),
        ("SELECT INTERVAL 1 DAY FROM messages", "interval"),
        ("DROP TABLE messages", "drop"),
        ("SET x = 1", "set"),
        ("SELECT 1; SELECT 2", "block has no form"),
    ],
)  # fmt: skip
def test_what_has_no_form_on_spark_is_refused(text: str, complaint: str | None) -> None:
    if complaint is None:
        assert "+" not in translate(text, VIEWS)
        return
    with pytest.raises(QueryError, match=complaint):
        translate(text, VIEWS)


def test_a_mistake_is_one_line_with_its_place(spark: SparkSession, captures: list[str], tmp_path: Path) -> None:
    sections = own(tmp_path, {"mine": "SELECT src, 'é',\n  avg(frame) AS frames FROM messages GROUP BY src"})
    with pytest.raises(QueryFileError, match=r"mine\.sql:3:3: avg has no form on Spark with the same answer$"):
        summarize(spark, captures, sections=sections)
    sections = own(tmp_path, {"mine": "SELECT lable FROM messages"})
    with pytest.raises(QueryFileError, match=r"mine\.sql:2:8: Binder Error: "):
        summarize(spark, captures, sections=sections)
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "all.sql").write_text("-- title: x\n-- severity: low\n-- evidence: src\nSELECT src FROM text.messages")
    with pytest.raises(QueryFileError, match=r"all\.sql:4:17: no table is called text\.messages$"):
        detect(spark, captures, rules=read_rules(rules))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.parser.escapedStringLiterals", "true"),
        ("spark.sql.session.timeZone", "Europe/Berlin"),
    ],
)
def test_settings_that_would_change_answers(
    spark: SparkSession, captures: list[str], tmp_path: Path, setting: str, value: str
) -> None:
    other = spark.newSession()
    other.conf.set(setting, value)
    sections = own(tmp_path, {"times": "SELECT time, frame FROM messages ORDER BY place"})
    with pytest.raises(SqlError, match=f"{setting} is {value} in this session"):
        summarize(other, captures, sections=sections)


def test_nothing_is_left_of_a_summary(spark: SparkSession) -> None:
    def views() -> list[str]:
        return [row.viewName for row in spark.sql("SHOW VIEWS").collect() if row.viewName.startswith("msmqwire_")]

    before = views()
    summary = summarize(spark, str(EXAMPLES[0]), sections={"queues": SECTIONS["queues"]})
    assert len(views()) > len(before)
    summary.close()
    assert views() == before


def test_expressions_of_columns() -> None:
    for derived in DERIVED.values():
        for name, each in derived.items():
            if name != "time":
                assert translate_expression(each.text)
