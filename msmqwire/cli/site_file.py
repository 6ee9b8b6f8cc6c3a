"""The configuration of a discovery server, in TOML."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError
from typing import Any, NamedTuple

from msmqwire.cli.arguments import parse_guid
from msmqwire.cli.console import CommandError, did_you_mean
from msmqwire.cli.enterprise import find_machine, is_url, open_directory
from msmqwire.directory import Enterprise, Equal, LdapDirectory, QueueManager
from msmqwire.directory.document import FLAG, INTEGER, LIST, TEXT, of_type, read_bytes, read_toml
from msmqwire.discovery.rates import Rate
from msmqwire.discovery.server import DEFAULT_POLICY, Policy, Site, reply_to
from msmqwire.errors import EncodeError
from msmqwire.mqsd import DirectoryServiceServer, TopologyClientRequest
from msmqwire.net import DISCOVERY_PORT
from msmqwire.net.host_addresses import Address
from msmqwire.wire.guids import NIL

_REQUIRED: Any = object()
_NUMBER, _TABLE = of_type("a number", int, float), of_type("a table", dict)


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
        The file, or its directory, cannot be read, or is too large.
    CommandError
        The file has an error; the message names the file, the table and the key.
    """
    data = read_bytes(path)
    try:
        found = read_toml(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path}: not TOML: {error}") from None
    if unknown := [name for name in found if name not in _TABLES]:
        raise CommandError(f"{path}: [{unknown[0]}]: no such table{_known(unknown[0], _TABLES)}")
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
    """A key of a table: how its value is converted, and its default; of a list each item is converted."""

    convert: Callable[[Any], Any]
    default: Any = _REQUIRED
    is_list: bool = False


class _Table:
    """A table of the file, with only these keys."""

    def __init__(self, path: str, name: str, values: dict[str, Any], keys: Mapping[str, _Key]) -> None:
        self.path, self.name, self.values, self._keys = path, name, values, keys
        if unknown := [name for name in values if name not in keys]:
            raise self.error(unknown[0], f"no such key{_known(unknown[0], keys)}")

    def error(self, key: str, problem: str) -> CommandError:
        """Return the error of one key."""
        return CommandError(f"{self.path}: {self.name} {key}: {problem}")

    @contextlib.contextmanager
    def named(self, key: str) -> Iterator[None]:
        """Name the file and the key in an error of what the key has."""
        try:
            yield
        except CommandError as error:
            raise self.error(key, str(error)) from None

    def __getitem__(self, name: str) -> Any:
        """Return the value of a key, checked and converted."""
        key = self._keys[name]
        if name not in self.values:
            if key.default is _REQUIRED:
                raise self.error(name, "is missing")
            return key.default
        value = self.values[name]
        if not key.is_list:
            return self._converted(name, value, key.convert)
        items = enumerate(self._converted(name, value, LIST))
        return tuple(self._converted(f"{name}[{number}]", item, key.convert) for number, item in items)

    def _converted(self, place: str, value: Any, convert: Callable[[Any], Any]) -> Any:
        try:
            return convert(value)
        except ValueError as error:
            raise self.error(place, str(error)) from None


def _table(path: str, found: dict[str, Any], name: str) -> _Table:
    values = found.get(name, {})
    if not isinstance(values, dict):
        raise CommandError(f"{path}: {name}: {values!r} is not a table, [{name}]")
    return _Table(path, f"[{name}]", values, _TABLES[name])


def _rate(limits: _Table, name: str) -> Rate:
    try:
        return Rate(limits[f"{name}_rate"], limits[f"{name}_burst"])
    except ValueError as error:
        raise limits.error(f"{name}_rate", str(error)) from None


def _known(unknown: str, known: Collection[str]) -> str:
    return did_you_mean(unknown, known) or f"; there is {', '.join(known)}"


def _take_from_directory(given: _Table, enterprise: dict[str, Any], site: dict[str, Any]) -> None:
    """Set the keys that the file leaves out to what a directory has of a machine: [MS-MQSD] 3.2.1.1."""
    source, name = given["source"], given["machine"]
    with given.named("source"):
        if not is_url(source):
            source = os.path.join(os.path.dirname(given.path), source)
        directory = open_directory(source)
    try:
        with given.named("machine"):
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
    request = TopologyClientRequest(enterprise_id=NIL, request_id=NIL, site_id=NIL)
    elsewhere = Site(enterprise_id=NIL, site_id=uuid.UUID(int=1), connected_networks=(NIL,), servers=(server,))
    try:
        reply_to(request, elsewhere)
    except EncodeError as error:
        raise table.error("name", error.reason) from None
    return server


def _source(value: Any) -> str:
    text: str = TEXT(value)
    if "\0" in text:
        raise ValueError(f"{text!r} has a null character")
    return text


def _guid(value: Any) -> uuid.UUID:
    return parse_guid(TEXT(value))


def _address(value: Any) -> str:
    text = TEXT(value)
    try:
        return str(IPv4Address(text))
    except AddressValueError:
        raise ValueError(f"{text!r} is not an IPv4 address, as in 10.20.1.10") from None


def _network(value: Any) -> IPv4Network:
    text = TEXT(value)
    try:
        return IPv4Network(text)
    except (AddressValueError, NetmaskValueError):
        raise ValueError(f"{text!r} is not an IPv4 network, as in 10.20.0.0/16") from None


def _number(value: Any) -> float:
    try:
        return float(_NUMBER(value))
    except OverflowError:
        raise ValueError("is too large") from None


def _within(low: int, high: int) -> Callable[[Any], int]:
    """Return a conversion that refuses integers outside of limits."""

    def convert(value: Any) -> int:
        number: int = INTEGER(value)
        if not low <= number <= high:
            raise ValueError(f"must be from {low:,} to {high:,}, not {number:,}")
        return number

    return convert


_MANY = _within(1, 1_000_000_000)
_DEFAULT = DEFAULT_POLICY

_TABLES: dict[str, dict[str, _Key]] = {
    "enterprise": {"id": _Key(_guid), "check": _Key(FLAG, _DEFAULT.check_enterprise)},
    "site": {
        "id": _Key(_guid),
        "connected_networks": _Key(_guid, is_list=True),
        "servers": _Key(_TABLE, (), is_list=True),
    },
    "listen": {
        "addresses": _Key(_address, ("127.0.0.1",), is_list=True),
        "port": _Key(_within(0, 65535), DISCOVERY_PORT),
    },
    "allow": {"networks": _Key(_network, (), is_list=True)},
    "limits": {
        "network_prefix": _Key(_within(1, 32), _DEFAULT.network_prefix),
        "network_rate": _Key(_number, _DEFAULT.network_rate.per_second),
        "network_burst": _Key(_MANY, _DEFAULT.network_rate.burst),
        "total_rate": _Key(_number, _DEFAULT.total_rate.per_second),
        "total_burst": _Key(_MANY, _DEFAULT.total_rate.burst),
        "address_bytes": _Key(_MANY, _DEFAULT.address_bytes),
        "network_bytes": _Key(_MANY, _DEFAULT.network_bytes),
    },
    "directory": {"source": _Key(_source), "machine": _Key(TEXT)},
}
_SERVER = {"name": _Key(TEXT), "ip": _Key(FLAG, True), "ipx": _Key(FLAG, False)}
