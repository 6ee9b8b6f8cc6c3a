"""Enterprises at random, as an administrator could have made them: every gate is a routing server of its site."""

from __future__ import annotations

import random
from uuid import UUID

from tests.reference.routing import Enterprise, Link, Machine


def guid(rng: random.Random) -> UUID:
    """One that differs from others anywhere, so that its bytes and its number order differently."""
    return UUID(int=rng.getrandbits(128))


def enterprise(rng: random.Random, *, sites: int = 5, links: int = 7, highest_cost: int = 3) -> Enterprise:
    """A small enterprise: few costs, so that there are ties; parallel links, links to nowhere, sites without links."""
    names = [guid(rng) for _ in range(rng.randint(1, sites))]
    gates: dict[UUID, list[UUID]] = {site: [] for site in names}
    machines: list[Machine] = []
    for _ in range(rng.randint(1, len(names) + 2)):
        machine = Machine(guid(rng), _sites(rng, names), router=True)
        machines.append(machine)
        for site in machine.sites:
            if rng.random() < 0.8:
                gates[site].append(machine.id)
    edges = [_link(rng, names, gates, highest_cost) for _ in range(rng.randint(0, links))]
    routers = list(machines)
    for _ in range(rng.randint(1, 5)):
        own = _sites(rng, names)
        near = [router.id for router in routers if any(site in own for site in router.sites)]
        machines.append(Machine(guid(rng), own, out_routing=_some(rng, near), in_routing=_some(rng, near)))
    rng.shuffle(machines)
    return Enterprise(tuple(names), tuple(edges), tuple(machines))


def _sites(rng: random.Random, names: list[UUID]) -> tuple[UUID, ...]:
    return tuple(rng.sample(names, min(len(names), rng.choice((1, 1, 1, 2, 3)))))


def _link(rng: random.Random, names: list[UUID], gates: dict[UUID, list[UUID]], highest_cost: int) -> Link:
    one, other = (rng.choice(names) if rng.random() < 0.97 else guid(rng) for _ in range(2))
    known = gates.get(one, []) + gates.get(other, [])
    # Some gates serve only some of the links of their site
    chosen = known if rng.random() < 0.5 else [gate for gate in known if rng.random() < 0.6]
    return Link(one, other, rng.randint(0, highest_cost), tuple(dict.fromkeys(chosen)))


def _some(rng: random.Random, machines: list[UUID]) -> tuple[UUID, ...]:
    return tuple(rng.sample(machines, min(len(machines), rng.choice((0, 0, 0, 1, 2)))))
