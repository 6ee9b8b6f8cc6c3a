"""One enterprise twice: as elements, and as the LDIF of an Active Directory that holds them, written by other code."""

from __future__ import annotations

import base64
import dataclasses
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msmqwire.directory import (
    DirectoryObject,
    DirectoryServerType,
    Enterprise,
    Equal,
    MemoryDirectory,
    OperatingSystemType,
    PrivacyLevel,
    Queue,
    QueueManager,
    RoutingLink,
    Site,
)

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "enterprise.toml"

ROOT = "dc=contoso,dc=example"
LONG_NAME = "a queue whose name is so long that a directory has to keep the end of it elsewhere (really)"
AWKWARD_NAME = "new, (urgent)* orders + more #1"

SERVICE_TYPES: dict[DirectoryServerType | None, int] = {
    DirectoryServerType.STANDALONE: 0,
    DirectoryServerType.BACKUP_SITE_CONTROLLER: 2,
    DirectoryServerType.PRIMARY_SITE_CONTROLLER: 4,
    DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER: 8,
}
_SYSTEMS = dict(zip(OperatingSystemType, (0x100, 0x200, 0x300, 0x400, 0x500, 0), strict=True))
_PRIVACY = {PrivacyLevel.NONE: 0, PrivacyLevel.OPTIONAL: 1, PrivacyLevel.BODY: 2}


def enterprise() -> list[DirectoryObject]:
    """The example's enterprise with what an Active Directory adds, and with objects that are hard to write down."""
    example = MemoryDirectory.load(EXAMPLE)
    objects: list[DirectoryObject] = []
    for settings in example.read_all(Enterprise):
        objects.append(
            dataclasses.replace(
                settings,
                name=ROOT,
                weakened_security=True,
                non_ldap_capable_queue_manager_notification=False,
                default_time_to_live=600,
                old_directory=False,
                security=b"\x01\x00\xff",
            )
        )
    for site in example.read_all(Site):
        path = f"cn={site.name},cn=Sites,cn=Configuration,{ROOT}"
        objects.append(
            dataclasses.replace(
                site,
                full_path=path,
                foreign_site=site.name == "Lugano",
                migrated_from_msmq10=site.name == "Basel",
                intra_site_replication_interval=7 if site.name == "Geneva" else 2,
                inter_site_replication_interval=70 if site.name == "Geneva" else 10,
                security=b"site",
            )
        )
    for number, link in enumerate(example.read_all(RoutingLink)):
        path = f"cn=link{number},cn=MsmqServices,cn=Services,cn=Configuration,{ROOT}"
        objects.append(dataclasses.replace(link, full_path=path))
    for number, machine in enumerate(example.read_all(QueueManager)):
        objects.append(
            dataclasses.replace(
                machine,
                full_path=f"cn=msmq,cn={machine.computer_name},cn=Computers,{ROOT}",
                create_time=1_000_000_000 + number,
                modify_time=1_100_000_000 + number,
                security=b"\x00machine",
                connected_network_identifier_list=(),
                operating_system_type=OperatingSystemType.WIN_SERVER
                if machine.routing_server
                else OperatingSystemType.OTHER,
                operating_system_version="10.0" if machine.routing_server else "",
                queue_manager_quota=8192 if machine.routing_server else 0xFFFFFFFF,
                remote_access_server=number == 0,
                supporting_server=number == 1,
                foreign_system=number == 2,
                queue_manager_version="6.3" if number == 3 else "",
                journal_quota=4096 if number == 4 else 0xFFFFFFFF,
                public_encryption_key_list=b"\x01\x00key" if number == 5 else b"",
            )
        )
    names = [queue.pathname for queue in example.read_all(Queue)]
    queues = [*example.read_all(Queue)]
    for number, name in enumerate((LONG_NAME, AWKWARD_NAME), 9):
        names.append(f"depot\\{name}")
        queues.append(Queue(identifier=uuid.UUID(int=number), pathname=f"depot\\{name}"))
    for number, queue in enumerate(queues):
        host, _, name = queue.pathname.partition("\\")
        path = f"cn={_escaped(_stored(name)[0])},cn=msmq,cn={host.upper()},cn=Computers,{ROOT}"
        objects.append(
            dataclasses.replace(
                queue,
                qualified_pathname=f"{host}.contoso.example\\{name}",
                full_path=path,
                directory_path=f"LDAP://{path}",
                create_time=1_200_000_000,
                modify_time=1_200_000_000 + number,
                security=b"queue",
                base_priority=-3 if number == 1 else 0,
                journal_quota=512 if number == 0 else 0xFFFFFFFF,
                type=uuid.UUID(int=7) if number == 1 else queue.type,
                multicast_address="234.1.1.1:8001" if number == 2 else "",
            )
        )
    return objects


def _stored(name: str) -> tuple[str, str]:
    """A queue's name as a directory keeps it, with the rest of a long one ([MS-MQDSSM] 3.1.6.1.2.5)."""
    return (name, "") if len(name) < 64 else (f"{name[:55]}-01234567", name[55:])


def _escaped(name: str) -> str:
    """A name as slapd writes it in a distinguished name."""
    for character in ",+":
        name = name.replace(character, f"\\{ord(character):02X}")
    return name


def ldif(objects: Iterable[DirectoryObject]) -> str:
    """The LDIF of everything above."""
    elements = MemoryDirectory(objects)
    entries: list[str] = [
        _entry(ROOT, "domain", dc="contoso"),
        _entry(f"cn=Configuration,{ROOT}", "container", cn="Configuration"),
        _entry(f"cn=Sites,cn=Configuration,{ROOT}", "container", cn="Sites"),
        _entry(f"cn=Services,cn=Configuration,{ROOT}", "container", cn="Services"),
        _entry(f"cn=Computers,{ROOT}", "container", cn="Computers"),
    ]
    for settings in elements.read_all(Enterprise):
        path = f"cn=MsmqServices,cn=Services,cn=Configuration,{ROOT}"
        entries.append(
            _entry(
                path,
                "mSMQEnterpriseSettings",
                cn="MsmqServices",
                objectGUID=settings.identifier,
                mSMQLongLived=settings.default_time_to_live,
                mSMQVersion=3 if settings.old_directory else 200,
                mSMQCSPName="Y" if settings.non_ldap_capable_queue_manager_notification else "N",
                mSMQNameStyle=settings.weakened_security or None,
                nTSecurityDescriptor=settings.security,
            )
        )
    for site in elements.read_all(Site):
        entries.append(
            _entry(
                site.full_path,
                "site",
                cn=site.name,
                objectGUID=site.identifier,
                mSMQInterval1=site.intra_site_replication_interval if site.name == "Geneva" else None,
                mSMQInterval2=site.inter_site_replication_interval if site.name == "Geneva" else None,
                mSMQSiteForeign=site.foreign_site or None,
                mSMQNt4Stub=int(site.migrated_from_msmq10),
                nTSecurityDescriptor=site.security,
            )
        )
    for machine in elements.read_all(QueueManager):
        entries += _machine(machine, elements)
    for link in elements.read_all(RoutingLink):
        entries.append(
            _entry(
                link.full_path,
                "mSMQSiteLink",
                cn=link.full_path[3:].partition(",")[0],
                objectGUID=link.identifier,
                description=link.description,
                mSMQCost=link.actual_cost,
                mSMQSite1=_path(elements, Site, link.site1_identifier),
                mSMQSite2=_path(elements, Site, link.site2_identifier),
                mSMQSiteGates=_paths(elements, link.site_gate_identifier_list),
            )
        )
    entries += map(_queue, elements.read_all(Queue))
    return "\n".join(entries)


def _machine(machine: QueueManager, elements: MemoryDirectory) -> Iterator[str]:
    yield _entry(
        machine.full_path.partition(",")[2],
        "computer",
        cn=machine.computer_name,
        dNSHostName=machine.qualified_computer_name,
        operatingSystemVersion=machine.operating_system_version,
    )
    service_type = SERVICE_TYPES.get(machine.directory_server_type, 0) | 0x10 * machine.remote_access_server
    yield _entry(
        machine.full_path,
        "mSMQConfiguration",
        cn="msmq",
        objectGUID=machine.identifier,
        whenCreated=_time(machine.create_time),
        whenChanged=_time(machine.modify_time),
        nTSecurityDescriptor=machine.security,
        mSMQOSType=_SYSTEMS[machine.operating_system_type],
        mSMQQuota=-1 if machine.queue_manager_quota == 0xFFFFFFFF else machine.queue_manager_quota,
        mSMQJournalQuota=None if machine.journal_quota == 0xFFFFFFFF else machine.journal_quota,
        mSMQForeign=machine.foreign_system or None,
        mSMQDependentClientServices=machine.supporting_server or None,
        mSMQComputerTypeEx=machine.queue_manager_version,
        mSMQEncryptKey=machine.public_encryption_key_list or None,
        mSMQSites=list(machine.site_identifier_list),
        mSMQOutRoutingServers=_paths(elements, machine.out_routing_server_identifier_list),
        mSMQInRoutingServers=_paths(elements, machine.in_routing_server_identifier_list),
        # One machine says that it routes nothing, the others say nothing.
        mSMQRoutingServices=machine.routing_server or (False if machine.computer_name == "DEPOT" else None),
        mSMQDsServices=machine.directory_server or None,
        mSMQServiceType=service_type or None,
    )


def _queue(queue: Queue) -> str:
    name, rest = _stored(queue.pathname.partition("\\")[2])
    return _entry(
        queue.full_path,
        "mSMQQueue",
        cn=name,
        objectGUID=queue.identifier,
        whenCreated=_time(queue.create_time),
        whenChanged=_time(queue.modify_time),
        nTSecurityDescriptor=queue.security,
        mSMQQueueNameExt=rest,
        mSMQLabelEx=queue.label,
        mSMQQueueType=queue.type if queue.type.int else None,
        mSMQJournal=queue.journaling or None,
        mSMQAuthenticate=queue.authentication or None,
        mSMQTransactional=queue.transactional,
        mSMQQueueQuota=-1 if queue.quota == 0xFFFFFFFF else queue.quota,
        mSMQQueueJournalQuota=None if queue.journal_quota == 0xFFFFFFFF else queue.journal_quota,
        mSMQPrivacyLevel=_PRIVACY[queue.privacy_level],
        mSMQBasePriority=queue.base_priority or None,
        **{"MSMQ-MulticastAddress": queue.multicast_address},
    )


def _path(elements: MemoryDirectory, element: type[Any], identifier: uuid.UUID) -> str:
    found = elements.read_directory(element, [Equal("identifier", identifier)])
    assert found is not None
    return str(found.full_path)


def _paths(elements: MemoryDirectory, machines: Iterable[uuid.UUID]) -> list[str]:
    return [_path(elements, QueueManager, each) for each in machines]


def _time(seconds: int) -> str:
    return time.strftime("%Y%m%d%H%M%S.0Z", time.gmtime(seconds))


def _entry(path: str, object_class: str, **attributes: Any) -> str:
    """An entry of an LDIF (RFC 2849); what is None or empty is left out."""
    lines = [_line("dn", path), _line("objectClass", object_class)]
    for name, values in attributes.items():
        for value in values if isinstance(values, list) else [values]:
            if value is not None and value != "":
                lines.append(_line(name, value))
    return "\n".join(lines) + "\n"


def _line(name: str, value: Any) -> str:
    if isinstance(value, bool):
        value = "TRUE" if value else "FALSE"
    if isinstance(value, uuid.UUID):
        value = value.bytes_le
    octets = value if isinstance(value, bytes) else str(value).encode("utf-8")
    return f"{name}:: {base64.b64encode(octets).decode('ascii')}"
