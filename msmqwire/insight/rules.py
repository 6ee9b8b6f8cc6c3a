"""The rules of ``detect``: queries whose rows are the packets of findings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from msmqwire.insight.query_files import RULES_FOLDER, Query, read_queries
from msmqwire.wire.ports import SESSION_PORT

Severity = Literal["high", "medium", "low"]
#: The most severe first.
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")

_NEEDED = ("title", "severity", "evidence")
_ENTRIES = (
    *_NEEDED, "about", "reference", "source", "list", "each", "probe", "transport", "category", "sid", "suricata",
)  # fmt: skip
# Of a person's own rules, in the range for local use
_FIRST_OWN = 1_810_001


@dataclass(frozen=True)
class Rule(Query):
    """A finding that there can be: a query whose rows are packets, and the columns that those of a finding share.

    Attributes
    ----------
    severity : {"high", "medium", "low"}
    evidence : tuple of str
        The columns of evidence; a finding is made of all rows with the same evidence.
    identifier : int
        The number of the rule in Suricata.
    """

    severity: Severity = "low"
    evidence: tuple[str, ...] = ()
    identifier: int = 0

    @property
    def reference(self) -> str:
        """A CVE where there is one, or else where the behaviour is described."""
        return self.header.get("reference", "")

    @property
    def category(self) -> str:
        """The category of EVE, one of Suricata's classification.config."""
        return self.header.get("category", "Misc activity")

    @property
    def transport(self) -> str | None:
        """What carries the packets: TCP or UDP; None where either does."""
        return self.header.get("transport")

    @property
    def probe(self) -> bool:
        """Packets of the opposite direction are answers, which belong to the finding."""
        return self.header.get("probe") == "yes"

    @property
    def suricata(self) -> str:
        """The options of a Suricata rule that finds the same in a packet; empty where none can."""
        return self.header.get("suricata", "")

    @property
    def joined(self) -> str | None:
        """The column that may differ in a finding; its frames are the first of each value."""
        return self.header.get("list") or self.header.get("each")

    @property
    def _listed(self) -> bool:
        """The finding has the values of that column as a list."""
        return "list" in self.header


def read_rules(folder: str | Path) -> list[Rule]:
    """Read rules, those with the lowest number first.

    Raises
    ------
    QueryFileError
        A file has a mistake, or the folder no rules.
    OSError
    """
    found = [_rule(query, _FIRST_OWN + at) for at, query in enumerate(read_queries(folder, _ENTRIES, _NEEDED))]
    return sorted(found, key=lambda rule: rule.identifier)


def _rule(query: Query, identifier: int) -> Rule:
    severity = query.header["severity"]
    if severity not in SEVERITIES:
        raise query.refuse("severity", f"{severity} is not {', '.join(SEVERITIES)}")
    evidence = tuple(filter(None, (name.strip() for name in query.header["evidence"].split(","))))
    if not evidence:
        raise query.refuse("evidence", "names no column")
    for entry in ("list", "each"):
        if query.header.get(entry, evidence[0]) not in evidence:
            raise query.refuse(entry, f"{query.header[entry]} is no column of evidence")
    if query.header.get("probe", "no") not in ("yes", "no"):
        raise query.refuse("probe", "is yes or no")
    if query.header.get("transport", "TCP") not in ("TCP", "UDP"):
        raise query.refuse("transport", "is TCP or UDP")
    number = query.header.get("sid", str(identifier))
    if not number.isdecimal() or not 0 < int(number) < 1 << 31:
        raise query.refuse("sid", f"{number} is no number of a rule")
    return Rule(**vars(query), severity=severity, evidence=evidence, identifier=int(number))


@lru_cache(maxsize=1)
def _rules() -> tuple[Rule, ...]:
    return tuple(read_rules(RULES_FOLDER))


RULES: tuple[Rule, ...] = _rules()
RULES_BY_NAME: Mapping[str, Rule] = MappingProxyType({rule.name: rule for rule in RULES})


def suricata_rules(rules: tuple[Rule, ...] = RULES) -> str:
    """The rules that Suricata can express, as a rule file."""
    lines = []
    for rule in rules:
        if rule.suricata:
            message = json.dumps(f"msmqwire {rule.name}: {rule.title}".replace(";", ",").replace(":", ""))
            options = f"msg:{message}; {rule.suricata} sid:{rule.identifier}; rev:1;"
            lines.append(f"alert tcp any any -> any {SESSION_PORT} ({options})")
    return "\n".join(lines) + "\n"
