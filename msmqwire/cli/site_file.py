"""The configuration of a discovery server, in TOML."""

from __future__ import annotations

import difflib
import os
import tomllib
import uuid
from collections.abc import Callable, Collection
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError
from typing import Any, NamedTuple, TypeVar

from msmqwire.cli.arguments import parse_guid
from msmqwire.cli.console import CommandError
from msmqwire.cli.enterprise import find_machine, is_url, open_directory
from msmqwire.directory import Enterprise, Equal, LdapDirectory, QueueManager
from msmqwire.discovery.rates import Rate
from msmqwire.discovery.server import DEFAULT_POLICY, Policy, Site, reply_to
from msmqwire.errors import EncodeError
from msmqwire.mqsd import DirectoryServiceServer, TopologyClientRequest
from msmqwire.net import DISCOVERY_PORT
from msmqwire.net.discovery_server import Address

Value = TypeVar("Value")

_TABLES = {
    "enterprise": ("id", "check"),
    "site": ("id", "connected_networks", "servers"),
    "listen": ("addresses", "port"),
    "allow": ("networks",),
    "limits": (
        "network_prefix",
        "network_rate",
        "network_burst",
        "total_rate",
        "total_burst",
        "address_bytes",
        "network_bytes",
    ),
    "directory": ("source", "machine"),
}
_SERVER_KEYS = ("name", "ip", "ipx")
_KINDS: dict[type, str] = {
    str: "text in quotes",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    list: "a list in brackets",
    dict: "a table",
}
_NO_DEFAULT: Any = object()


class SiteFile(NamedTuple):
    """The contents of a file."""

    site: Site
    policy: Policy
    addresses: tuple[Address, ...]


def read_site_file(path: str) -> SiteFile:
    """Read and check a file.

    Raises
    ------
    OSError, DirectoryError
        The file, or its directory, cannot be read.
    CommandError
        The file has an error; the message names the file, the table and the key.
    """
    with open(path, "rb") as file:
        try:
            found = tomllib.load(file)
        except (ValueError, RecursionError) as error:
            raise CommandError(f"{path}: not TOML: {error}") from None
    if unknown := _unknown(found, _TABLES):
        raise CommandError(f"{path}: [{unknown[0]}]: no such table; {unknown[1]}")
    tables = (_table(path, found, name, keys) for name, keys in _TABLES.items())
    enterprise, site, listen, allow, limits, directory = tables
    if directory.values:
        _take_from_directory(directory, enterprise.values, site.values)
    return SiteFile(
        site=Site(
            enterprise_id=enterprise.converted("id", parse_guid),
            site_id=site.converted("id", parse_guid),
            connected_networks=tuple(site.items("connected_networks", parse_guid)),
            servers=tuple(_server(path, number, entry) for number, entry in enumerate(site.tables("servers"), 1)),
        ),
        policy=Policy(
            allowed=tuple(allow.items("networks", _network, [])),
            check_enterprise=enterprise.get("check", bool, DEFAULT_POLICY.check_enterprise),
            network_rate=limits.rate("network", DEFAULT_POLICY.network_rate),
            total_rate=limits.rate("total", DEFAULT_POLICY.total_rate),
            network_prefix=limits.integer("network_prefix", 1, 32, DEFAULT_POLICY.network_prefix),
            address_bytes=limits.integer("address_bytes", 1, 1_000_000_000, DEFAULT_POLICY.address_bytes),
            network_bytes=limits.integer("network_bytes", 1, 1_000_000_000, DEFAULT_POLICY.network_bytes),
        ),
        addresses=_addresses(listen),
    )


class _Table:
    """A table of the file, with only these keys."""

    def __init__(self, path: str, name: str, values: dict[str, Any], keys: Collection[str]) -> None:
        self.path, self.name, self.values = path, name, values
        if unknown := _unknown(values, keys):
            raise self.error(unknown[0], f"no such key; {unknown[1]}")

    def error(self, key: str, problem: str) -> CommandError:
        """The error of one key."""
        return CommandError(f"{self.path}: {self.name} {key}: {problem}")

    def get(self, key: str, kind: type[Value], default: Value = _NO_DEFAULT) -> Value:
        """A value of one kind."""
        if key not in self.values:
            if default is _NO_DEFAULT:
                raise self.error(key, f"is missing; it is {_KINDS[kind]}")
            return default
        value = self.values[key]
        self._check(key, value, kind)
        return value if kind is not float else float(value)  # type: ignore[return-value]

    def _check(self, key: str, value: Any, kind: type) -> None:
        wanted = (int, float) if kind is float else (kind,)
        if type(value) not in wanted:
            raise self.error(key, f"must be {_KINDS[kind]}, not {_shown(value)}")

    def converted(self, key: str, convert: Callable[[str], Value]) -> Value:
        """A text, converted."""
        return self._convert(key, self.get(key, str), convert)

    def items(self, key: str, convert: Callable[[str], Value], default: list[str] = _NO_DEFAULT) -> list[Value]:
        """A list of texts, converted."""
        found = []
        for number, item in enumerate(self.get(key, list, default)):
            self._check(f"{key}[{number}]", item, str)
            found.append(self._convert(f"{key}[{number}]", item, convert))
        return found

    def _convert(self, key: str, text: str, convert: Callable[[str], Value]) -> Value:
        try:
            return convert(text)
        except ValueError as error:
            raise self.error(key, str(error)) from None

    def tables(self, key: str) -> list[dict[str, Any]]:
        """A list of tables, [[...]] in the file."""
        found = self.get(key, list, [])
        for number, item in enumerate(found):
            self._check(f"{key}[{number}]", item, dict)
        return found

    def integer(self, key: str, low: int, high: int, default: int) -> int:
        """An integer within limits."""
        number = self.get(key, int, default)
        if not low <= number <= high:
            raise self.error(key, f"must be from {low:,} to {high:,}, not {number:,}")
        return number

    def rate(self, name: str, default: Rate) -> Rate:
        """A rate with its burst."""
        burst = self.integer(f"{name}_burst", 1, 1_000_000_000, default.burst)
        try:
            return Rate(self.get(f"{name}_rate", float, default.per_second), burst)
        except ValueError as error:
            raise self.error(f"{name}_rate", str(error)) from None


def _table(path: str, found: dict[str, Any], name: str, keys: Collection[str]) -> _Table:
    values = found.get(name, {})
    if not isinstance(values, dict):
        raise CommandError(f"{path}: {name}: must be a table, [{name}], not {_shown(values)}")
    return _Table(path, f"[{name}]", values, keys)


def _unknown(given: Collection[str], known: Collection[str]) -> tuple[str, str] | None:
    """The first name that is not known, and a hint."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            return name, f"did you mean {near[0]}?" if near else f"there is {', '.join(known)}"
    return None


def _take_from_directory(given: _Table, enterprise: dict[str, Any], site: dict[str, Any]) -> None:
    """Set the keys that the file leaves out to what a directory has of a machine: [MS-MQSD] 3.2.1.1."""
    source, name = given.get("source", str), given.get("machine", str)
    if not is_url(source):
        source = os.path.join(os.path.dirname(given.path), source)
    directory = open_directory(source)
    try:
        machine = find_machine(directory, name)
        if not machine.site_identifier_list:
            raise given.error("machine", f"{name} is in no site of the directory")
        own_site = machine.site_identifier_list[0]
        attributes = ("computer_name", "site_identifier_list")
        found = directory.read_all(QueueManager, [Equal("directory_server", True)], attributes)
        servers = sorted(each.computer_name for each in found if own_site in each.site_identifier_list)
        known = directory.read_directory(Enterprise, attributes=["identifier"])
    finally:
        if isinstance(directory, LdapDirectory):
            directory.close()
    if known is not None:
        enterprise.setdefault("id", str(known.identifier))
    site.setdefault("id", str(own_site))
    # Active Directory has no connected networks: then they are in the file
    if networks := getattr(machine, "connected_network_identifier_list", ()):
        site.setdefault("connected_networks", [str(each) for each in networks])
    site.setdefault("servers", [{"name": each} for each in servers])


def _server(path: str, number: int, entry: dict[str, Any]) -> DirectoryServiceServer:
    name = f"[[site.servers]] number {number}"
    table = _Table(path, name, entry, _SERVER_KEYS)
    server = DirectoryServiceServer(table.get("name", str), table.get("ip", bool, True), table.get("ipx", bool, False))
    nil = uuid.UUID(int=0)
    request = TopologyClientRequest(enterprise_id=nil, request_id=nil, site_id=nil)
    elsewhere = Site(enterprise_id=nil, site_id=uuid.UUID(int=1), connected_networks=(nil,), servers=(server,))
    try:
        reply_to(request, elsewhere)
    except EncodeError as error:
        raise table.error("name", error.reason) from None
    return server


def _addresses(listen: _Table) -> tuple[Address, ...]:
    port = listen.integer("port", 0, 65535, DISCOVERY_PORT)
    addresses = listen.items("addresses", _address, ["127.0.0.1"])
    if not addresses:
        raise listen.error("addresses", "must name one address at least")
    return tuple((address, port) for address in addresses)


def _address(text: str) -> str:
    try:
        return str(IPv4Address(text))
    except AddressValueError:
        raise ValueError(f"{text!r} is not an IPv4 address, as in 10.20.1.10") from None


def _network(text: str) -> IPv4Network:
    try:
        return IPv4Network(text)
    except (AddressValueError, NetmaskValueError):
        raise ValueError(f"{text!r} is not an IPv4 network, as in 10.20.0.0/16") from None


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a table"
    return f"{value!r}" if not isinstance(value, bool) else str(value).lower()
