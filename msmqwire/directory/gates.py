"""Which machines are the gates of which site: no directory says so in one place ([MS-MQDSSM] 3.1.6.11.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from msmqwire.directory.elements import QueueManager, RoutingLink

__all__ = ["site_gates"]


def site_gates(
    links: Iterable[RoutingLink], queue_managers: Mapping[UUID, QueueManager]
) -> dict[UUID, tuple[QueueManager, ...]]:
    """SiteGateCollection of every site that has gates, by the site's identifier ([MS-MQDMPR] 3.1.1.7).

    The gates of a site are those of the links that touch it, as far as they belong to the site (decision: the
    specification has no source for them). They come in the order of the links, each once.
    """
    gates: dict[UUID, dict[UUID, QueueManager]] = {}
    for link in links:
        for identifier in link.site_gate_identifier_list:
            gate = queue_managers.get(identifier)
            for site in (link.site1_identifier, link.site2_identifier):
                if gate is not None and site in gate.site_identifier_list:
                    gates.setdefault(site, {})[identifier] = gate
    return {site: tuple(found.values()) for site, found in gates.items()}
