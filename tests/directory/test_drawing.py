"""The drawing of an enterprise, read by Graphviz itself."""

from __future__ import annotations

import json
import subprocess
from typing import Any
from uuid import UUID

from msmqwire.directory import Enterprise, MemoryDirectory, QueueManager, RoutingLink, Site
from msmqwire.directory.base import InvalidObjectError, Problem
from msmqwire.directory.drawing import draw
from tests.directory.enterprise import EXAMPLE
from tests.system_programs import require_program


def graph(text: str) -> dict[str, Any]:
    """What Graphviz makes of a drawing."""
    command = [require_program("dot"), "-Tdot_json"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def test_the_example() -> None:
    read = graph(draw(MemoryDirectory.load(EXAMPLE)))
    labels = {node["_gvid"]: node["label"].split("\\n") for node in read["objects"]}
    assert read["name"] == "Contoso"
    assert sorted(labels.values()) == [
        ["Basel", "BASGATE", "1 machine"],
        ["Geneva", "GVAGATE", "2 machines"],
        ["Lugano", "LUGGATE", "2 machines"],
        ["Zurich", "ZURGATE1", "ZURGATE2", "5 machines"],
    ]
    costs = {(labels[edge["tail"]][0], labels[edge["head"]][0]): edge["label"] for edge in read["edges"]}
    assert costs == {
        ("Zurich", "Basel"): "3",
        ("Zurich", "Geneva"): "2",
        ("Basel", "Geneva"): "10",
        ("Zurich", "Lugano"): "25",
    }


def test_names_that_would_be_more_than_names() -> None:
    name = 'A"]; x -- y [label="\\N\x1b[31m\n<b>\\'
    site = Site(identifier=UUID(int=1), name=name)
    read = graph(draw(MemoryDirectory([Enterprise(identifier=UUID(int=2), name=name), site])))
    assert len(read["objects"]) == 1
    assert "edges" not in read
    assert read["objects"][0]["label"].split("\\n0 machines")[0] == 'A"]; x -- y [label="\\\\N\ufffd[31m\\n<b>\\\\'


def test_many_gates_and_none_and_a_link_to_nowhere() -> None:
    here, there, nowhere = (UUID(int=number) for number in (1, 2, 3))
    gates = [
        QueueManager(identifier=UUID(int=10 + number), computer_name=f"G{number}", site_identifier_list=(here,))
        for number in range(6)
    ]
    identifiers = tuple(gate.identifier for gate in gates)
    link = RoutingLink(
        identifier=UUID(int=20),
        actual_cost=9,
        site_gate_identifier_list=identifiers,
        site1_identifier=here,
        site2_identifier=nowhere,
    )
    sites = [Site(identifier=here, name="Here"), Site(identifier=there, name="There", foreign_site=True)]
    read = graph(draw(MemoryDirectory([*sites, *gates, link])))
    nodes = {node["name"]: node for node in read["objects"]}
    assert nodes[str(here)]["label"] == "Here\\nG0\\nG1\\nG2\\nG3\\nand 2 more\\n6 machines"
    assert nodes[str(here)]["style"] == "rounded"
    assert nodes[str(there)]["style"] == "rounded,dashed"
    assert str(nowhere) in nodes


def test_missing_gates_over_ldap_and_in_a_file() -> None:
    """A link is drawn while one of its gates exists; a directory raises for a link with a missing gate."""
    one, other, gone = (UUID(int=number) for number in (1, 2, 3))
    gate = QueueManager(identifier=UUID(int=10), computer_name="GATE", site_identifier_list=(one,))
    half, whole = (
        RoutingLink(
            identifier=UUID(int=20 + cost),
            actual_cost=cost,
            site1_identifier=one,
            site2_identifier=other,
            site_gate_identifier_list=gates,
        )
        for cost, gates in ((1, (gone, gate.identifier)), (2, (gone,)))
    )
    objects = [Site(identifier=one, name="One"), Site(identifier=other, name="Other"), gate, half, whole]

    class OverLdap(MemoryDirectory):
        def _search(self, element: Any, filters: Any, attributes: Any) -> Any:
            return map(self._read, super()._search(element, filters, attributes))

        def _read(self, found: Any) -> Any:
            if isinstance(found, RoutingLink):
                kept = tuple(each for each in found.site_gate_identifier_list if each != gone)
                rest = RoutingLink.of({**found.attributes(), "site_gate_identifier_list": kept}) if kept else None
                raise InvalidObjectError(Problem("link", "", "there is no object"), dangling=True, rest=rest)
            return found

    drawn = draw(MemoryDirectory(objects))
    assert drawn.count(" -- ") == 1
    assert drawn == draw(OverLdap(objects))
