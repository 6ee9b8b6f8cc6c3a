"""Options of the data source as text, and what is said of those that cannot be."""

from __future__ import annotations

import pytest

from msmqwire.spark.options import ReadOptions, parse_size


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
        "splitsize": "2m",
        "storageOptions": '{"region": "eu-west-1"}',
    }
    options = ReadOptions.of(given)
    midnight = 1_709_510_400_000_000_000
    assert (options.sources, options.table) == (("captures",), "messages")
    assert (options.recursive, options.split_size) == (True, 2 << 20)
    assert options.storage_options == {"region": "eu-west-1"}
    reading = options.reading
    assert (reading.tables, reading.mode, reading.guid) == (("messages",), "FAILFAST", "binary")
    assert (reading.ports, reading.addresses) == ({1801, 2801}, ("10.20.1.0/24", "2001:db8::1"))
    assert (reading.since, reading.until) == (midnight, midnight + 1)


def test_what_is_absent() -> None:
    options = ReadOptions.of({"paths": '["a", "b"]'})
    assert (options.sources, options.table) == (("a", "b"), "topology")
    assert (options.recursive, options.split_size, options.storage_options) == (False, None, {})
    assert (options.reading.since, options.reading.until, options.reading.addresses) == (None, None, ())


def test_the_name_that_spark_has_for_it() -> None:
    assert ReadOptions.of({"path": "captures", "recursiveFileLookup": "true"}).recursive


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1000", 1000), ("64k", 65536), ("128M", 128 << 20), ("1 gb", 1 << 30), ("2t", 2 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tables": "topology"}, "no such option: tables; there are table, ports, addresses, since"),
        ({"table": "queues"}, "table='queues' is not one of topology"),
        ({"mode": "STRICT"}, "mode='STRICT' is not one of PERMISSIVE, FAILFAST, DROPMALFORMED"),
        ({"guid": "uuid"}, "guid='uuid' is not one of 'text', 'binary'"),
        ({"ports": "1801;53"}, "ports: '1801;53' is not a list of ports from 1 to 65535"),
        ({"ports": "65536"}, "ports: '65536' is not a list of ports from 1 to 65535"),
        ({"since": "yesterday"}, "since: 'yesterday' is not an ISO 8601 time"),
        ({"since": "2024-03-05", "until": "2024-03-04"}, "until must be later than since"),
        ({"addresses": "10.0.0.1, site"}, "addresses: 'site' is neither an address nor a network"),
        ({"recursiveFileLookup": "yes"}, "recursive: 'yes' is neither true nor false"),
        ({"splitSize": "64x"}, "splitSize: '64x' is not a size in bytes, as in 67108864 or 64m"),
        ({"splitSize": "-1"}, "splitSize: '-1' is not a size"),
    ],
)
def test_mistakes(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReadOptions.of({"path": "captures", **options})


def test_no_path() -> None:
    with pytest.raises(ValueError, match=r'no path: read\.format\("msmq"\)\.load'):
        ReadOptions.of({})


@pytest.mark.parametrize("text", ['["secret"]', '{"secret_key": "secret"', "secret"])
def test_storage_options_are_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match="storageOptions: no JSON object, as in") as caught:
        ReadOptions.of({"path": "captures", "storageOptions": text})
    assert "secret" not in str(caught.value)
