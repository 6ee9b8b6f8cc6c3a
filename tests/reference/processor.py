"""The server of MS-MQCN written down rule by rule, with dictionaries for queues: the oracle of the processor.

It is given updates as tuples. Queues are dictionaries of attributes, and outcomes are tuples:
("created", GUID, GUID replaced), ("changed", GUID or "machine", {attribute: (before, after)}), ("deleted", GUID),
("ignored", rule), ("disregarded", rule).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

#: PROPID: attribute, and what its numbers stand for ([MS-MQCN] 3.1.1.3).
FLAG, PRIVACY, SCOPE = (False, True), ("none", "optional", "body"), ("site", "enterprise")
UPDATED: dict[int, tuple[str, Any]] = {
    106: ("base_priority", None),
    104: ("journaling", FLAG),
    105: ("quota", None),
    107: ("journal_quota", None),
    1101: ("security", None),
    111: ("authentication", FLAG),
    112: ("privacy_level", PRIVACY),
}
CREATED: dict[int, tuple[str, Any]] = UPDATED | {
    102: ("type", None),
    101: ("identifier", None),
    109: ("create_time", None),
    110: ("modify_time", None),
    108: ("label", None),
    113: ("transactional", FLAG),
    114: ("scope", SCOPE),
}
MACHINE: dict[int, tuple[str, Any]] = {
    214: ("queue_manager_quota", None),
    215: ("journal_quota", None),
    1201: ("security", None),
}
#: Set Queue Defaults ([MS-MQDMPR] 3.1.7.1.33).
DEFAULTS = {
    "qualified_pathname": "", "label": "", "create_time": 0, "modify_time": 0, "type": UUID(int=0), "journaling": False,
    "quota": 0xFFFFFFFF, "journal_quota": 0xFFFFFFFF, "authentication": False, "privacy_level": "optional",
    "transactional": False, "multicast_address": "", "security": b"", "base_priority": 0, "full_path": "",
    "directory_path": "", "scope": "enterprise",
}  # fmt: skip
READ = (
    "type", "base_priority", "journaling", "quota", "journal_quota", "create_time", "modify_time", "security",
    "pathname", "label", "authentication", "privacy_level", "transactional", "multicast_address", "directory_path",
)  # fmt: skip

Outcome = tuple[Any, ...]
#: command, GUID or None, path or None, properties in their order.
Update = tuple[str, UUID | None, str | None, list[tuple[int, Any]]]


class ReferenceProcessor:
    """The local queue manager as the rules change it."""

    def __init__(
        self, machine: dict[str, Any], queues: list[dict[str, Any]], read: Callable[[str, UUID], dict[str, Any] | None]
    ) -> None:
        self.machine = machine
        self.queues = queues
        self.read = read

    def find(self, identifier: UUID | None = None, pathname: str | None = None) -> dict[str, Any] | None:
        for queue in self.queues:
            if identifier is not None and queue["identifier"] == identifier:
                return queue
        for queue in self.queues:
            if pathname is not None and queue["pathname"].lower() == pathname.lower():
                return queue
        return None

    def is_local(self, pathname: str) -> bool:
        computer, _, rest = pathname.rpartition("\\")
        names = self.machine["computer_name"].lower(), self.machine["qualified_computer_name"].lower()
        return rest != "" and computer.lower() in names

    def version_1(self, sender_type: str, authenticated: bool, updates: list[Update]) -> list[Outcome]:
        if sender_type != "queue_manager_identifier":
            return [("disregarded", "sender_type")]
        if not authenticated:
            return [("disregarded", "not_authenticated")]
        for update in updates:
            if rule := self.judge(update):
                return [("disregarded", rule)]
        return [self.apply(update) for update in updates]

    def judge(self, update: Update) -> str | None:
        command, _, path, properties = update
        if command == "delete":
            proper = len(properties) >= 2 and properties[1] == (1404, 1)
            return None if proper else "object_type"
        number = properties[0][0]
        kind = (number - 1000) // 100 if number > 1000 else number // 100
        if kind not in (1, 2):
            return "object_type"
        if kind == 2:
            return None
        first = first_of(properties)
        if command == "create" and 101 not in first:
            return "no_identifier"
        if command == "create" and not (first.get(103) or path):
            return "no_pathname"
        table = CREATED if command == "create" else UPDATED
        for propid, (_, names) in table.items():
            if names and propid in first and first[propid] >= len(names):
                return "value"
        return None

    def apply(self, update: Update) -> Outcome:
        command, guid, path, properties = update
        first = first_of(properties)
        if command == "delete":
            return ("ignored", "no_guid") if guid is None else self.delete(guid)
        number = properties[0][0]
        if ((number - 1000) // 100 if number > 1000 else number // 100) == 2:
            if command == "create":
                return ("ignored", "machine_created")
            if guid != self.machine["identifier"]:
                return ("ignored", "other_machine")
            return self.change(self.machine, told(MACHINE, first), "machine")
        if command == "change" and guid is None and (rule := invalid(path or "")):
            return ("ignored", rule)
        if command == "change":
            queue = self.find(guid, path)
            return self.change(queue, told(UPDATED, first)) if queue else ("ignored", "not_found")
        pathname = first.get(103) or path
        assert pathname is not None
        if rule := invalid(pathname):
            return ("ignored", rule)
        if not self.is_local(pathname):
            return ("ignored", "other_computer")
        if queue := self.find(first[101]):
            return self.change(queue, told(UPDATED, first))
        return self.create(DEFAULTS | told(CREATED, first) | {"pathname": pathname})

    def version_2(self, event: int, guid: UUID) -> Outcome:
        if event == 3:
            return self.delete(guid)
        if event == 4 and guid != self.machine["identifier"]:
            return ("ignored", "other_machine")
        try:
            found = self.read("machine" if event == 4 else "queue", guid)
        except OSError:
            return ("ignored", "directory")
        if found is None:
            return ("ignored", "not_in_directory")
        if event == 4:
            return self.change(self.machine, {name: found[name] for name, _ in MACHINE.values()}, "machine")
        if rule := invalid(found["pathname"]):
            return ("ignored", rule)
        if not self.is_local(found["pathname"]):
            return ("ignored", "other_computer")
        values = {name: found[name] for name in READ}
        queue = self.find(guid)
        if queue is None and event == 2:
            return ("ignored", "not_found")
        if queue is None:
            return self.create(DEFAULTS | values | {"identifier": guid})
        if self.find(pathname=found["pathname"]) not in (None, queue):
            return ("ignored", "pathname_taken")
        return self.change(queue, values)

    def create(self, queue: dict[str, Any]) -> Outcome:
        """In the place of one that has the path."""
        replaced = self.find(pathname=queue["pathname"])
        if replaced is not None:
            self.queues.remove(replaced)
        self.queues.append(queue)
        return ("created", queue["identifier"], replaced and replaced["identifier"])

    def delete(self, guid: UUID) -> Outcome:
        queue = self.find(guid)
        if queue is None:
            return ("ignored", "not_found")
        self.queues.remove(queue)
        return ("deleted", guid)

    def change(self, element: dict[str, Any], values: dict[str, Any], name: str | None = None) -> Outcome:
        changes = {key: (element[key], value) for key, value in values.items() if element[key] != value}
        element.update(values)
        return ("changed", name or element["identifier"], changes)


def invalid(pathname: str) -> str | None:
    """Why a path is that of no public queue: [MS-MQMQ] 2.1.1, as far as the tests go."""
    computer, _, queue = pathname.rpartition("\\")
    if computer.lower().endswith("\\private$") or queue.lower().startswith("system$;"):
        return "private_queue"
    return None if computer and 1 <= len(queue) <= 124 and " " not in computer else "pathname"


def first_of(properties: list[tuple[int, Any]]) -> dict[int, Any]:
    """IndexOf finds the first."""
    found: dict[int, Any] = {}
    for propid, value in properties:
        found.setdefault(propid, value)
    return found


def told(table: dict[int, tuple[str, Any]], first: dict[int, Any]) -> dict[str, Any]:
    """The attributes that the values say something of."""
    return {name: names[first[i]] if names else first[i] for i, (name, names) in table.items() if i in first}
