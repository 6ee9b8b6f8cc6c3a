"""The same enterprise in memory and in a real LDAP server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from msmqwire.directory import Directory, LdapDirectory, MemoryDirectory
from tests.directory import slapd
from tests.directory.enterprise import enterprise, ldif


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that holds the enterprise."""
    with slapd.running(tmp_path_factory.mktemp("slapd"), ldif(enterprise())) as url:
        yield url


@pytest.fixture(scope="session")
def memory() -> MemoryDirectory:
    return MemoryDirectory(enterprise())


@pytest.fixture(params=["memory", "ldap", "ldap-small-pages"])
def directory(request: pytest.FixtureRequest) -> Iterator[Directory]:
    """Every test that asks for it runs over each home of a directory."""
    if request.param == "memory":
        yield request.getfixturevalue("memory")
        return
    size = 2 if request.param.endswith("pages") else 1000
    with LdapDirectory(request.getfixturevalue("server"), page_size=size) as ldap:
        yield ldap
