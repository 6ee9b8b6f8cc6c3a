"""Options of the data source as text, and what is said of those that cannot be."""

from __future__ import annotations

import argparse

import pytest

from msmqwire.capture import ReadOptions
from msmqwire.cli.arguments import add_selection, read_options
from msmqwire.spark.lake.scanning import Selection
from msmqwire.spark.source.lakes import LakeRead
from msmqwire.spark.source.options import SourceOptions, parse_size


def test_every_option_in_any_spelling() -> None:
    given = {
        "path": "captures",
        "TABLE": "messages",
        "Ports": "1801, 2801",
        "addresses": "10.20.1.0/24, 2001:db8::1",
        "since": "2024-03-04",
        "until": "2024-03-04T01:00:00.000000001+01:00",
        "mode": "failfast",
        "guid": "BINARY",
        "recursive": "True",
        "pathglobfilter": "*.pcap",
        "modifiedAfter": "2024-03-04",
        "modifiedBefore": "2024-03-04T01:00+01:00",
        "splitsize": "2m",
        "storageOptions": '{"region": "eu-west-1"}',
    }
    options = SourceOptions.of(given)
    midnight = 1_709_510_400_000_000_000
    assert (options.paths, options.table) == (("captures",), "messages")
    assert (options.recursive, options.split_size) == (True, 2 << 20)
    assert options.storage_options == {"region": "eu-west-1"}
    assert (options.path_glob_filter, options.modified_after, options.modified_before) == ("*.pcap", midnight, midnight)
    assert not options.ignore_corrupt_files
    scan = options.scan
    assert (scan.tables, scan.mode, scan.read.guid) == (("messages",), "FAILFAST", "binary")
    assert scan.read == ReadOptions(
        ports=[1801, 2801],
        addresses=["10.20.1.0/24", "2001:db8::1"],
        since=midnight,
        until=midnight + 1,
        guid="binary",
        storage_options={"region": "eu-west-1"},
    )


def test_text_means_the_same_to_every_reader() -> None:
    """To Python, the data source, a lake and the command line."""
    text = {
        "ports": "1801, 2000-2001",
        "addresses": "10.20.1.0/24,2001:db8::1",
        "since": "2024-03-04",
        "until": "2024-03-05T01:00+01:00",
    }
    expected = ReadOptions.from_strings(text, guid="text")
    assert SourceOptions.of({"path": "captures", **text}).scan.read == expected
    of_lake = LakeRead.of({"lake": "lake", **{name: text[name] for name in ("addresses", "since", "until")}})
    assert of_lake.selection == Selection(expected.since, expected.until, expected.addresses)
    parser = argparse.ArgumentParser()
    add_selection(parser)
    addresses = (f"--address={one}" for one in text["addresses"].split(","))
    given = (f"--{name}={text[name]}" for name in ("ports", "since", "until"))
    assert read_options(parser.parse_args([*addresses, *given]), (), guid="text") == expected


def test_defaults() -> None:
    options = SourceOptions.of({"paths": '["a", "b"]'})
    assert (options.paths, options.table) == (("a", "b"), "topology")
    assert (options.recursive, options.split_size, options.storage_options) == (False, None, {})
    assert options.scan.read == ReadOptions(guid="text")


def test_the_name_of_spark_for_an_option() -> None:
    assert SourceOptions.of({"path": "captures", "recursiveFileLookup": "true"}).recursive


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1000", 1000), ("64k", 65536), ("128M", 128 << 20), ("1 gb", 1 << 30), ("2t", 2 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tables": "topology"}, "^tables: no such option; there are table, ports, copies, addresses, since"),
        ({"columnNameOfCorruptRecord": "bad"}, "^columnNameOfCorruptRecord: no such option; the column fault"),
        ({"modifiedAfter": "noon"}, "modifiedAfter='noon' is not an ISO 8601 time"),
        ({"table": "queues"}, "table='queues' is not one of topology"),
        ({"mode": "STRICT"}, "mode='STRICT' is not one of PERMISSIVE, FAILFAST, DROPMALFORMED"),
        ({"guid": "uuid"}, "guid='uuid' is not one of 'text', 'binary'"),
        ({"ports": "1801;53"}, "ports='1801;53' is not a list of ports"),
        ({"ports": "65536"}, "ports='65536' is not a list of ports"),
        ({"since": "yesterday"}, "since='yesterday' is not an ISO 8601 time"),
        ({"since": "2024-03-05", "until": "2024-03-04"}, "until must be later than since"),
        ({"addresses": "10.0.0.1, site"}, "addresses='site' is neither an address nor a network"),
        ({"pathGlobFilter": "*.{pcap,pcapng}"}, r"pathGlobFilter='\*.{pcap,pcapng}': a glob has no alternatives"),
        ({"recursiveFileLookup": "yes"}, "recursive='yes' is neither true nor false"),
        ({"splitSize": "64x"}, "splitSize='64x' is not a size in bytes, as in 67108864 or 64m"),
        ({"splitSize": "-1"}, "splitSize='-1' is not a size"),
        ({"maxBytesPerTrigger": "0"}, "maxBytesPerTrigger='0' leaves nothing to read"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss='no' is neither true nor false"),
    ],
)
def test_mistakes(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SourceOptions.of({"path": "captures", **options})


@pytest.mark.parametrize("text", ['["captures"', '"captures"', '{"captures": 1}', "[1]", "captures"])
def test_paths_that_are_no_list(text: str) -> None:
    with pytest.raises(ValueError, match=r"^paths='.*' is not a JSON array of paths; pass a list of them to load$"):
        SourceOptions.of({"paths": text})


def test_no_path() -> None:
    with pytest.raises(ValueError, match=r'no path: read\.format\("msmq"\)\.load'):
        SourceOptions.of({})


@pytest.mark.parametrize("text", ['["secret"]', '{"secret_key": "secret"', "secret"])
def test_storage_options_are_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match=r"storageOptions=\(not shown\) is not a JSON object, as in") as caught:
        SourceOptions.of({"path": "captures", "storageOptions": text})
    assert "secret" not in str(caught.value)
