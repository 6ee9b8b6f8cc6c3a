"""The file of ``msmqwire serve``: its defaults, and what is said of one that is wrong."""

from __future__ import annotations

import shutil
import tomllib
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from msmqwire.cli.console import CommandError
from msmqwire.cli.site_file import _TABLES, read_site_file
from msmqwire.directory import Enterprise, Equal, MemoryDirectory, QueueManager
from msmqwire.discovery.rates import Rate
from msmqwire.discovery.server import Policy
from msmqwire.mqsd import DirectoryServiceServer
from tests.cli.site_files import OTHER_SITE
from tests.cli.support import EXAMPLES, msmqwire
from tests.directory import slapd
from tests.directory.enterprise import enterprise, ldif
from tests.discovery.sites import site


def test_the_file_that_help_shows_is_right_and_has_the_defaults_it_says(tmp_path: Path) -> None:
    said = msmqwire("serve", "--help").stdout.decode()
    text = said[said.index("  [enterprise]") : said.index("a directory, which has")]
    shown, least = tmp_path / "shown.toml", tmp_path / "least.toml"
    shown.write_text(text)
    least.write_text(text[: text.index("  [listen]")].replace("check = false", "").replace("ip = true", ""))
    assert read_site_file(str(shown)) == read_site_file(str(least))


def test_the_example_file_has_every_key_that_there_is() -> None:
    found = tomllib.loads((EXAMPLES / "site.toml").read_text())
    expected = {name: set(keys) for name, keys in _TABLES.items() if name != "directory"}
    assert expected == {name: set(table) for name, table in found.items()}


IN_A_DIRECTORY = """\
[directory]
source = "{source}"
machine = "{machine}"
"""


def test_the_site_of_a_machine_in_a_directory(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    shutil.copy(EXAMPLES / "enterprise.toml", tmp_path / "enterprise.toml")
    path.write_text(IN_A_DIRECTORY.format(source="enterprise.toml", machine="ZURROUTER"))
    found = read_site_file(str(path)).site
    directory = MemoryDirectory.load(EXAMPLES / "enterprise.toml")
    machine = directory.read_directory(QueueManager, [Equal("computer_name", "ZURROUTER")])
    enterprise = directory.read_directory(Enterprise)
    assert machine is not None
    assert enterprise is not None
    assert found.enterprise_id == enterprise.identifier
    assert (found.site_id,) == machine.site_identifier_list
    assert found.connected_networks == machine.connected_network_identifier_list
    assert found.servers == (DirectoryServiceServer("ZURGATE1"),)
    path.write_text(IN_A_DIRECTORY.format(source="enterprise.toml", machine="ZURROUTER") + f'[site]\nid = "{ID}"\n')
    assert str(read_site_file(str(path)).site.site_id) == ID


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text((EXAMPLES / "site.toml").read_text("utf-8"), "utf-8-sig")
    assert read_site_file(str(path)) == read_site_file(str(EXAMPLES / "site.toml"))


@pytest.mark.parametrize(
    ("source", "machine", "complaint"),
    [
        ("enterprise.toml", "NOBODY",
         r"^/.*/site.toml: \[directory\] machine: no QueueManager in the directory has the ComputerName NOBODY$"),
        ("\\u0000", "LEDGER", r"^/.*/site.toml: \[directory\] source: '\\x00' has a null character"),
        ("ldap://a:s3cret@dc1", "LEDGER", r"^/.*/site.toml: \[directory\] source: .* pass user= and password="),
        ("none.toml", "LEDGER", "No such file"),
    ],
)  # fmt: skip
def test_a_directory_that_does_not_have_the_machine(tmp_path: Path, source: str, machine: str, complaint: str) -> None:
    path = tmp_path / "site.toml"
    shutil.copy(EXAMPLES / "enterprise.toml", tmp_path / "enterprise.toml")
    path.write_text(IN_A_DIRECTORY.format(source=source, machine=machine))
    with pytest.raises((CommandError, OSError), match=complaint) as caught:
        read_site_file(str(path))
    assert "s3cret" not in str(caught.value)


def test_the_site_of_a_machine_in_ldap(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    objects = enterprise()
    machine = next(each for each in objects if isinstance(each, QueueManager) and each.site_identifier_list)
    with slapd.running(tmp_path, ldif(objects)) as url:
        text = IN_A_DIRECTORY.format(source=url, machine=machine.computer_name)
        path.write_text(f'{text}[site]\nconnected_networks = ["{ID}"]\n')
        found = read_site_file(str(path)).site
    assert found.site_id == machine.site_identifier_list[0]
    assert [server.name for server in found.servers] == sorted(
        each.computer_name
        for each in objects
        if isinstance(each, QueueManager) and each.directory_server and found.site_id in each.site_identifier_list
    )
    assert found.servers


ID = "e6eaba61-d1c6-11db-baac-0003ff4e2d22"
NO_GUID = "is not a GUID, as in dcc51bf6-d4ad-4543-8739-71568e8f9128"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("[enterprise]", "[enterprise"), "not TOML: Expected ']' at the end of a table declaration (at line 1"),
        (("[enterprise]", f"{'a.' * 20_000}a = 1\n[enterprise]"), "not TOML: a key has more than 32 parts (at line"),
        (("[listen]", "[lisen]"), "[lisen]: no such table; did you mean listen?"),
        (("[listen]", "[xyz]"), "[xyz]: no such table; there is enterprise, site, listen, allow, limits, directory"),
        ((f'[enterprise]\nid = "{ID}"', "enterprise = 5"), "enterprise: 5 is not a table, [enterprise]"),
        ((f'id = "{ID}"', ""), "[enterprise] id: is missing"),
        ((f'id = "{ID}"', "id = { is = 7 }"), "[enterprise] id: {'is': 7} is not text"),
        ((f'id = "{ID}"', "id = 7"), "[enterprise] id: 7 is not text"),
        ((f'"{ID}"', '"{x}"'), f"[enterprise] id: '{{x}}' {NO_GUID}"),
        ((f'"{ID}"', f'"{ID}"\ncheck = "no"'), "[enterprise] check: 'no' is not true or false"),
        ((f'"{ID}"', f'"{ID}"\nchekc = true'), "[enterprise] chekc: no such key; did you mean check?"),
        (('["e6eaba62', '["e6eaba'), f"[site] connected_networks[0]: 'e6eaba-d1c6-11db-baac-0003ff4e2d22' {NO_GUID}"),
        (('["e6eaba62-d1c6-11db-baac-0003ff4e2d22"]', "[true]"),
         "[site] connected_networks[0]: True is not text"),
        (("connected_networks = [", "connected_network = ["),
         "[site] connected_network: no such key; did you mean connected_networks?"),
        (('[[site.servers]]\nname = "nt4pec"', 'servers = ["nt4pec"]'),
         "[site] servers[0]: 'nt4pec' is not a table"),
        (('name = "nt4pec"', "ip = true"), "[[site.servers]] number 1 name: is missing"),
        (('name = "nt4pec"', 'name = "a"\n[[site.servers]]\nname = "b,c"'),
         "[[site.servers]] number 2 name: 'b,c' must be text of one or more code units"),
        (('"nt4pec"', '"nt4pec"\nipx = 1'), "[[site.servers]] number 1 ipx: 1 is not true or false"),
        (("port = 0", "port = 65536"), "[listen] port: must be from 0 to 65,535, not 65,536"),
        (("port = 0", "port = true"), "[listen] port: True is not an integer"),
        (("port = 0", "addresses = []"), "[listen] addresses: must name one address at least"),
        (("port = 0", 'addresses = ["::1"]'), "[listen] addresses[0]: '::1' is not an IPv4 address, as in 10.20.1.10"),
        (("port = 0", 'addresses = "127.0.0.1"'), "[listen] addresses: '127.0.0.1' is not a list"),
        (("port = 0", '[allow]\nnetworks = ["10.20"]'),
         "[allow] networks[0]: '10.20' is not an IPv4 network, as in 10.20.0.0/16"),
        (("port = 0", '[allow]\nnetworks = ["10.20.0.0/33"]'),
         "[allow] networks[0]: '10.20.0.0/33' is not an IPv4 network, as in 10.20.0.0/16"),
        (("port = 0", '[allow]\nnetworks = ["10.20.1.0/16"]'), "[allow] networks[0]: 10.20.1.0/16 has host bits set"),
        (("port = 0", "[limits]\nnetwork_prefix = 0"), "[limits] network_prefix: must be from 1 to 32, not 0"),
        (("port = 0", "[limits]\ntotal_rate = 0"), "[limits] total_rate: 0.0 a second is not above 0 and at most"),
        (("port = 0", "[limits]\ntotal_rate = 1e-320"), "[limits] total_rate: 1e-320 a second is below 1e-09"),
        (("port = 0", "[limits]\ntotal_rate = inf"), "[limits] total_rate: inf a second is not above 0 and at most"),
        (("port = 0", '[limits]\nnetwork_rate = "5"'), "[limits] network_rate: '5' is not a number"),
        (("port = 0", f"[limits]\nnetwork_rate = {10**400}"), "[limits] network_rate: is too large"),
        (("port = 0", "[limits]\nnetwork_burst = 0"), "[limits] network_burst: must be from 1 to 1,000,000,000, not 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_file_table_and_key(tmp_path: Path, change: tuple[str, str], complaint: str) -> None:
    path = tmp_path / "site.toml"
    assert change[0] in OTHER_SITE
    path.write_text(OTHER_SITE.replace(*change, 1))
    with pytest.raises(CommandError) as caught:
        read_site_file(str(path))
    assert str(caught.value).startswith(f"{path}: {complaint}")


def test_a_file_says_what_a_server_answers_whom_and_where(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(
        OTHER_SITE.replace("[listen]", '[listen]\naddresses = ["10.20.1.10", "10.20.1.255"]')
        .replace("[site]", "check = true\n[site]")
        .replace('"nt4pec"', '"nt4pec"\nip = false\nipx = true\n[[site.servers]]\nname = "second"')
        + '[allow]\nnetworks = ["10.20.0.0/16", "192.0.2.7"]\n'
        "[limits]\nnetwork_prefix = 16\nnetwork_rate = 0.5\nnetwork_burst = 3\ntotal_rate = 7\ntotal_burst = 9\n"
        "address_bytes = 2000\nnetwork_bytes = 3000\n"
    )
    found = read_site_file(str(path))
    assert found.site == site(
        servers=(DirectoryServiceServer("nt4pec", ip=False, ipx=True), DirectoryServiceServer("second"))
    )
    assert found.policy == Policy(
        allowed=(IPv4Network("10.20.0.0/16"), IPv4Network("192.0.2.7/32")),
        check_enterprise=True,
        network_rate=Rate(0.5, 3),
        total_rate=Rate(7, 9),
        network_prefix=16,
        address_bytes=2000,
        network_bytes=3000,
    )
    assert found.addresses == (("10.20.1.10", 0), ("10.20.1.255", 0))


def test_a_file_of_what_is_needed_has_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(OTHER_SITE.replace("[listen]\nport = 0", ""))
    assert read_site_file(str(path)) == (site(), Policy(), (("127.0.0.1", 1801),))
