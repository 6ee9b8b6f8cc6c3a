"""The configuration of a discovery server, in TOML."""

from __future__ import annotations

import difflib
import os
import tomllib
import uuid
from collections.abc import Callable, Collection, Mapping
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError
from typing import Any, NamedTuple

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

_KINDS: dict[type, str] = {
    str: "text in quotes",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    list: "a list in brackets",
    dict: "a table",
}
_REQUIRED: Any = object()


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
    enterprise, site, listen, allow, limits, directory = (_table(path, found, name) for name in _TABLES)
    if directory.values:
        _take_from_directory(directory, enterprise.values, site.values)
    servers = [_server(path, number, entry) for number, entry in enumerate(site["servers"], 1)]
    if not listen["addresses"]:
        raise listen.error("addresses", "must name one address at least")
    return SiteFile(
        site=Site(
            enterprise_id=enterprise["id"],
            site_id=site["id"],
            connected_networks=site["connected_networks"],
            servers=tuple(servers),
        ),
        policy=Policy(
            allowed=allow["networks"],
            check_enterprise=enterprise["check"],
            network_rate=_rate(limits, "network"),
            total_rate=_rate(limits, "total"),
            network_prefix=limits["network_prefix"],
            address_bytes=limits["address_bytes"],
            network_bytes=limits["network_bytes"],
        ),
        addresses=tuple((address, listen["port"]) for address in listen["addresses"]),
    )


class _Key(NamedTuple):
    """A key of a table: the type of its value, how that is converted, and what it is by default.

    ``item`` is the type of the items of a list, which are converted one by one.
    """

    kind: type
    convert: Callable[[Any], Any] = lambda value: value
    default: Any = _REQUIRED
    item: type | None = None


class _Table:
    """A table of the file, with only these keys."""

    def __init__(self, path: str, name: str, values: dict[str, Any], keys: Mapping[str, _Key]) -> None:
        self.path, self.name, self.values, self._keys = path, name, values, keys
        if unknown := _unknown(values, keys):
            raise self.error(unknown[0], f"no such key; {unknown[1]}")

    def error(self, key: str, problem: str) -> CommandError:
        """The error of one key."""
        return CommandError(f"{self.path}: {self.name} {key}: {problem}")

    def __getitem__(self, name: str) -> Any:
        """The value of a key, checked and converted."""
        key = self._keys[name]
        if name not in self.values:
            if key.default is _REQUIRED:
                raise self.error(name, f"is missing; it is {_KINDS[key.kind]}")
            return key.default
        if key.item is None:
            return self._converted(name, self.values[name], key.kind, key.convert)
        items = enumerate(self._converted(name, self.values[name], list, list))
        return tuple(self._converted(f"{name}[{number}]", item, key.item, key.convert) for number, item in items)

    def _converted(self, place: str, value: Any, kind: type, convert: Callable[[Any], Any]) -> Any:
        if type(value) not in ((int, float) if kind is float else (kind,)):
            raise self.error(place, f"must be {_KINDS[kind]}, not {_shown(value)}")
        try:
            return convert(value)
        except ValueError as error:
            raise self.error(place, str(error)) from None


def _table(path: str, found: dict[str, Any], name: str) -> _Table:
    values = found.get(name, {})
    if not isinstance(values, dict):
        raise CommandError(f"{path}: {name}: must be a table, [{name}], not {_shown(values)}")
    return _Table(path, f"[{name}]", values, _TABLES[name])


def _rate(limits: _Table, name: str) -> Rate:
    try:
        return Rate(limits[f"{name}_rate"], limits[f"{name}_burst"])
    except ValueError as error:
        raise limits.error(f"{name}_rate", str(error)) from None


def _unknown(given: Collection[str], known: Collection[str]) -> tuple[str, str] | None:
    """The first name that is not known, and a hint."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            return name, f"did you mean {near[0]}?" if near else f"there is {', '.join(known)}"
    return None


def _take_from_directory(given: _Table, enterprise: dict[str, Any], site: dict[str, Any]) -> None:
    """Set the keys that the file leaves out to what a directory has of a machine: [MS-MQSD] 3.2.1.1."""
    source, name = given["source"], given["machine"]
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
    table = _Table(path, name, entry, _SERVER)
    server = DirectoryServiceServer(table["name"], table["ip"], table["ipx"])
    nil = uuid.UUID(int=0)
    request = TopologyClientRequest(enterprise_id=nil, request_id=nil, site_id=nil)
    elsewhere = Site(enterprise_id=nil, site_id=uuid.UUID(int=1), connected_networks=(nil,), servers=(server,))
    try:
        reply_to(request, elsewhere)
    except EncodeError as error:
        raise table.error("name", error.reason) from None
    return server


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


def _within(low: int, high: int) -> Callable[[int], int]:
    """A conversion that refuses integers outside of limits."""

    def convert(number: int) -> int:
        if not low <= number <= high:
            raise ValueError(f"must be from {low:,} to {high:,}, not {number:,}")
        return number

    return convert


_MANY = _within(1, 1_000_000_000)
_DEFAULT = DEFAULT_POLICY

_TABLES: dict[str, dict[str, _Key]] = {
    "enterprise": {"id": _Key(str, parse_guid), "check": _Key(bool, default=_DEFAULT.check_enterprise)},
    "site": {
        "id": _Key(str, parse_guid),
        "connected_networks": _Key(list, parse_guid, item=str),
        "servers": _Key(list, default=(), item=dict),
    },
    "listen": {
        "addresses": _Key(list, _address, ("127.0.0.1",), item=str),
        "port": _Key(int, _within(0, 65535), DISCOVERY_PORT),
    },
    "allow": {"networks": _Key(list, _network, (), item=str)},
    "limits": {
        "network_prefix": _Key(int, _within(1, 32), _DEFAULT.network_prefix),
        "network_rate": _Key(float, float, _DEFAULT.network_rate.per_second),
        "network_burst": _Key(int, _MANY, _DEFAULT.network_rate.burst),
        "total_rate": _Key(float, float, _DEFAULT.total_rate.per_second),
        "total_burst": _Key(int, _MANY, _DEFAULT.total_rate.burst),
        "address_bytes": _Key(int, _MANY, _DEFAULT.address_bytes),
        "network_bytes": _Key(int, _MANY, _DEFAULT.network_bytes),
    },
    "directory": {"source": _Key(str), "machine": _Key(str)},
}
_SERVER = {"name": _Key(str), "ip": _Key(bool, default=True), "ipx": _Key(bool, default=False)}
