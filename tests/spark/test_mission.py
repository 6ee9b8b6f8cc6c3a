"""The whole way, over real sockets: from looking for a directory server to queues that equal the directory.

DEPOT, in Lugano, is where somebody changes queues of other machines. It finds a directory server by broadcast, asks the
directory which queue managers have the queues, and tells them. The messages travel from queue manager to queue manager
as [MS-MQBR] routes them, over TCP on loopback, where every machine of ``examples/enterprise.toml`` has an address.
tcpdump looks on. What it saw is read by one process and by Spark, and handed to the processors of the machines
concerned: in the end these have what the directory has.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import signal
import socket
import threading
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from msmqwire import mqqb
from msmqwire.capture import TABLES, read_tables
from msmqwire.directory import DirectoryObject, Enterprise, Equal, MemoryDirectory, PrivacyLevel, Queue, QueueManager
from msmqwire.directory.document import read_document
from msmqwire.discovery import Discovery, NetworkAddress
from msmqwire.discovery.server import DiscoveryServer, Site
from msmqwire.formatname import PublicName
from msmqwire.mqsd import DirectoryServiceServer
from msmqwire.net import Discoverer
from msmqwire.net.discovery_server import DiscoveryService
from msmqwire.notification.audit import Disregarded, Record
from msmqwire.notification.carried_attributes import CREATED_QUEUE, UPDATED_MACHINE
from msmqwire.notification.comparison import Verdict, compare
from msmqwire.notification.envelope import NOTIFY_QUEUE, AuthenticationLevel, Envelope, SenderIdentifierType
from msmqwire.notification.judgement import Rule
from msmqwire.notification.processor import NotificationProcessor
from msmqwire.notification.replay import replay
from msmqwire.notification.sender import (
    Change,
    Notification,
    QueueCreation,
    QueueDeletion,
    QueueManagerUpdate,
    QueueUpdate,
    Sender,
    Signature,
)
from msmqwire.routing import Router, find_route, get_destination_info
from tests.net.clock import Loop, Watch, is_wait, run
from tests.net.discovery_services import running
from tests.spark.captures import ROOT
from tests.spark.rows import as_dicts, read_table
from tests.system_programs import capturing, require_program

PORT = 1801
SECONDS = 60
#: The MessageID of a message that nobody signed.
FORGED = 99
PARAMETERS = mqqb.ConnectionParameters(recoverable_ack_timeout=1496, ack_timeout=120_000, window_size=64)
KEY = b"what DEPOT and the receivers share"
TOLD = tuple(CREATED_QUEUE.values())
TOLD_OF_MACHINES = tuple(UPDATED_MACHINE.values())


class Contoso:
    """The enterprise, and the changes that somebody makes in its directory: each is what a sender has to tell of."""

    def __init__(self) -> None:
        objects = read_document(ROOT / "examples" / "enterprise.toml").objects
        self._objects: dict[UUID, DirectoryObject] = {each.identifier: each for each in objects}

    @property
    def directory(self) -> MemoryDirectory:
        """As it is now."""
        return MemoryDirectory(self._objects.values())

    def machine(self, name: str) -> QueueManager:
        found = self.directory.read_directory(QueueManager, [Equal("computer_name", name)])
        assert found is not None
        return found

    def queues(self, name: str) -> list[Queue]:
        """The public queues of a machine."""
        of_machine = f"{name}\\".lower()
        return [each for each in self.directory.read_all(Queue) if each.pathname.lower().startswith(of_machine)]

    def create(self, pathname: str, **values: Any) -> QueueCreation:
        queue = Queue(identifier=uuid.uuid4(), pathname=pathname, **values)
        self._objects[queue.identifier] = queue
        return QueueCreation(queue=queue, queue_manager=self._host(queue))

    def change(self, pathname: str, **values: Any) -> QueueUpdate:
        old = self._queue(pathname)
        new = self._objects[old.identifier] = Queue.of({**old.attributes(), **values})
        return QueueUpdate(old=old, new=new, queue_manager=self._host(new))

    def delete(self, pathname: str) -> QueueDeletion:
        queue = self._queue(pathname)
        change = QueueDeletion(queue=queue, queue_manager=self._host(queue))
        del self._objects[queue.identifier]
        return change

    def change_machine(self, name: str, **values: Any) -> QueueManagerUpdate:
        old = self.machine(name)
        new = self._objects[old.identifier] = QueueManager.of({**old.attributes(), **values})
        return QueueManagerUpdate(old=old, new=new)

    def _queue(self, pathname: str) -> Queue:
        found = self.directory.read_directory(Queue, [Equal("pathname", pathname)])
        assert found is not None
        return found

    def _host(self, queue: Queue) -> UUID:
        """The queue manager that has a queue: where its public format name leads."""
        found = get_destination_info(PublicName(queue.identifier), self.directory)
        assert found.queue_manager_guid is not None, found.reason
        return found.queue_manager_guid


class Loopback:
    """A network on loopback, no other test's: an address for each machine, and one for all."""

    def __init__(self, machines: Iterable[QueueManager]) -> None:
        self._prefix = f"127.{64 + os.getpid() // 256 % 128}.{os.getpid() % 256}"
        self.broadcast = f"{self._prefix}.255"
        self.network = f"{self._prefix}.0/24"
        self._addresses = {each.identifier: f"{self._prefix}.{number}" for number, each in enumerate(machines, 1)}

    def __getitem__(self, machine: UUID) -> str:
        return self._addresses[machine]


class Session:
    """A connection between two queue managers: whole packets, in both directions ([MS-MQQB] 3.1)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def establish(self, here: UUID, there: UUID) -> None:
        """Begin it, as the side that connected."""
        for packet in (mqqb.EstablishConnection(client_guid=here, server_guid=there), PARAMETERS):
            await self.write(mqqb.encode(packet))
            await self.read()

    async def accept(self) -> None:
        """Begin it, as the side that was connected to: both packets are answered in kind."""
        for _ in ("establish_connection", "connection_parameters"):
            await self.write(await self.read())

    async def read(self) -> bytes:
        """A packet; none at the end."""
        try:
            head = await self._reader.readexactly(16)
            return head + await self._reader.readexactly(int.from_bytes(head[8:12], "little") - len(head))
        except asyncio.IncompleteReadError:
            return b""

    async def write(self, packet: bytes) -> None:
        self._writer.write(packet)
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


class Machine:
    """A queue manager at its address: it keeps the messages that are for it, and passes on all others."""

    def __init__(self, identifier: UUID, loopback: Loopback, router: Router) -> None:
        self.identifier = identifier
        self.arrived: asyncio.Queue[bytes] = asyncio.Queue()
        self._loopback, self._router = loopback, router
        self._sessions: dict[UUID, Session] = {}

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._accept, self._loopback[self.identifier], PORT)
        # Python 3.13 would wait for the sessions of the others, which end after this one
        with contextlib.closing(server):
            yield
            for session in self._sessions.values():
                await session.close()

    async def send(self, packet: bytes) -> None:
        """Hand a message to the queue manager that is next on its way, and wait until it has it."""
        message = decoded(packet)
        assert message.destination_queue is not None
        destination = get_destination_info(message.destination_queue)
        assert destination.queue_manager_guid is not None, destination.reason
        hop = self._router.get_next_hops(self.identifier, destination.queue_manager_guid)[0]
        if hop not in self._sessions:
            here = (self._loopback[self.identifier], 0)
            self._sessions[hop] = Session(*await asyncio.open_connection(self._loopback[hop], PORT, local_addr=here))
            await self._sessions[hop].establish(self.identifier, hop)
        await self._sessions[hop].write(packet)
        assert isinstance(mqqb.decode(await self._sessions[hop].read()), mqqb.SessionAck)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session, number = Session(reader, writer), 0
        await session.accept()
        while packet := await session.read():
            number += 1
            await session.write(mqqb.encode(mqqb.SessionAck(ack_sequence_number=number, window_size=64)))
            if decoded(packet).queue_manager_address == self.identifier:
                self.arrived.put_nowait(packet)
            else:
                await self.send(one_hop_more(packet))
        await session.close()


def decoded(packet: bytes) -> mqqb.UserMessage:
    message = mqqb.decode(packet, strict=True, transport="tcp")
    assert isinstance(message, mqqb.UserMessage)
    return message


def one_hop_more(packet: bytes) -> bytes:
    """The packet as it is passed on: RC, the low bits of UserHeader.Flags, counts hops ([MS-MQMQ] 2.2.20.2)."""
    return packet[:60] + bytes([packet[60] + 1]) + packet[61:]


def signed(packet: mqqb.UserMessage, level: AuthenticationLevel) -> Signature:
    """What stands for the certificates and keys of an enterprise: a secret that its machines share."""
    assert level is AuthenticationLevel.SIG20
    return Signature(signature=hmac.digest(KEY, packet.body, "sha512"))


def verified(envelope: Envelope) -> AuthenticationLevel:
    """The verifier of the receivers: looks at the signature, and at nothing that a sender says of it."""
    signature = hmac.digest(KEY, envelope.packet["body"], "sha512")
    genuine = hmac.compare_digest(envelope.packet["signature"] or b"", signature)
    return AuthenticationLevel.SIG20 if genuine else AuthenticationLevel.NONE


@contextlib.contextmanager
def captured(path: Path, loopback: Loopback) -> Iterator[None]:
    """tcpdump looks on, from before the block begins until it has seen all that happened in it."""
    # A slot of its buffer is as large as the largest frame: by default there are eight
    buffer = ("-s", "65535", "-B", "65536")
    program = [require_program("tcpdump"), "--immediate-mode", "-U", *buffer, "-i", "lo", "-w", str(path)]
    with capturing([*program, f"net {loopback.network}"], "listening on") as tcpdump:
        yield
        # Frames come in order: when the last has been written, so have all before it
        last = uuid.uuid4().bytes
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as speaking:
            speaking.sendto(last, (loopback.broadcast, PORT + 1))
        for _ in range(10 * SECONDS):
            if last in path.read_bytes():
                break
            threading.Event().wait(0.1)
        else:
            pytest.fail("tcpdump did not see everything")
        tcpdump.send_signal(signal.SIGINT)
        assert "\n0 packets dropped by kernel" in tcpdump.communicate(timeout=SECONDS)[1]


@dataclass(frozen=True)
class Mission:
    """What happened: the enterprise at the beginning and at the end, what was found and sent, and the capture."""

    before: Contoso
    after: Contoso
    loopback: Loopback
    discovery: Discovery
    sent: dict[int, Notification]
    """By MessageID."""
    capture: str

    def address(self, name: str) -> str:
        return self.loopback[self.after.machine(name).identifier]


async def discovered(loop: Loop, contoso: Contoso, loopback: Loopback) -> Discovery:
    """DEPOT asks for directory servers on its network. The clock is moved on for it when it waits for more answers."""
    (enterprise,) = contoso.directory.read_all(Enterprise)
    watch = Watch(loop, lambda action: is_wait(action) and "Send" in watch.kinds())
    depot = contoso.machine("DEPOT")
    address = IPv4Interface(f"{loopback[depot.identifier]}/24")
    async with Discoverer(
        enterprise_id=enterprise.identifier,
        site_id=depot.site_identifier_list[0],
        networks=[NetworkAddress(address, IPv4Address(loopback.broadcast), "lo")],
        port=PORT,
        watch=watch,
    ) as discoverer:
        return await discoverer.get_directory_server_list()


def served(contoso: Contoso, loopback: Loopback) -> DiscoveryService:
    """The directory server of Zurich."""
    (enterprise,) = contoso.directory.read_all(Enterprise)
    gate = contoso.machine("ZURGATE1")
    site = Site(
        enterprise_id=enterprise.identifier,
        site_id=gate.site_identifier_list[0],
        connected_networks=gate.connected_network_identifier_list,
        servers=tuple(
            DirectoryServiceServer(each.computer_name)
            for each in contoso.directory.read_all(QueueManager, [Equal("directory_server", True)])
        ),
    )
    return DiscoveryService(DiscoveryServer(site), [(loopback.broadcast, PORT)])


def changed(contoso: Contoso) -> tuple[list[Change], list[Change]]:
    """What happens to the queues of LEDGER, told of by version 1, and to those of OFFICE8, by version 2."""
    ledger: list[Change] = [
        contoso.create(r"ledger\returns", label="R\u00fccknahmen", quota=2048, transactional=True),
        contoso.change(r"ledger\invoices", quota=131072, journaling=False, privacy_level=PrivacyLevel.BODY),
        contoso.change(r"ledger\returns", base_priority=-3, security=b"\1\0\4\x80"),
        contoso.delete(r"ledger\orders"),
        contoso.change_machine("LEDGER", queue_manager_quota=1 << 21),
    ]
    office: list[Change] = [
        contoso.create(r"office8\scans", journaling=True),
        contoso.change(r"office8\scans", label="Scans of the day", quota=512),
        contoso.create(r"office8\faxes"),
        contoso.delete(r"office8\faxes"),
        contoso.change_machine("OFFICE8", journal_quota=77),
    ]
    return ledger, office


def told(contoso: Contoso, discovery: Discovery) -> tuple[dict[int, Notification], list[bytes]]:
    """DEPOT's notifications of what it has changed, by MessageID, and their packets; behind them one that is forged."""
    ledger, office = changed(contoso)
    here, server = contoso.machine("DEPOT").identifier, contoso.machine(discovery.directory_servers[0])
    service = Sender(queue_manager=here, master=server.identifier)
    manager = Sender(queue_manager=here, domain_controller=server.computer_name)
    sent = dict(enumerate([*service.notifications(ledger), *manager.notifications(office)], 1))
    packets = [
        mqqb.encode(notification.packet(sent_time=1_709_539_200, message_id=number, sign=signed))
        for number, notification in sent.items()
    ]
    # By somebody who wants LEDGER to lose a queue, and who cannot sign
    (forged,) = service.notifications([Contoso().delete(r"ledger\invoices")])
    return {**sent, FORGED: forged}, [*packets, mqqb.encode(forged.packet(message_id=FORGED))]


async def delivered(contoso: Contoso, loopback: Loopback, packets: Iterable[bytes]) -> None:
    """All machines of the enterprise listen; DEPOT sends, each message when the one before it has come to its queue."""
    directory = contoso.directory
    router, identifiers = Router(directory), [each.identifier for each in directory.read_all(QueueManager)]
    machines = {identifier: Machine(identifier, loopback, router) for identifier in identifiers}
    depot = machines[contoso.machine("DEPOT").identifier]
    async with asyncio.timeout(SECONDS), contextlib.AsyncExitStack() as stack:
        for machine in machines.values():
            await stack.enter_async_context(machine.listening())
        for packet in packets:
            await depot.send(packet)
            arrived = await machines[decoded(packet).queue_manager_address].arrived.get()
            assert decoded(arrived).message_id == decoded(packet).message_id


@pytest.fixture(scope="module")
def mission(tmp_path_factory: pytest.TempPathFactory) -> Mission:
    contoso = Contoso()
    loopback = Loopback(contoso.directory.read_all(QueueManager))
    path = tmp_path_factory.mktemp("mission") / "contoso.pcap"

    async def carried_out(loop: Loop) -> tuple[Discovery, dict[int, Notification]]:
        discovery = await discovered(loop, contoso, loopback)
        sent, packets = told(contoso, discovery)
        await delivered(contoso, loopback, packets)
        return discovery, sent

    with captured(path, loopback), running(served(contoso, loopback)):
        discovery, sent = run(carried_out)
    return Mission(Contoso(), contoso, loopback, discovery, sent, str(path))


Rows = list[dict[str, Any]]
#: Times, which Python would cut at microseconds: Spark has the nanoseconds beside them.
TIMES = ("time", "sent_time")


@pytest.fixture(scope="module")
def read_here(mission: Mission) -> dict[str, Rows]:
    """The rows of every table, read by one process in one pass."""
    rows: dict[str, Rows] = {table: [] for table in TABLES}
    with read_tables(mission.capture, guid="text") as reader:
        for table, batch in reader:
            for name in set(TIMES) & set(batch.schema.names):
                batch = batch.append_column(f"{name}_ns", batch.column(name).cast("int64")).drop_columns([name])
            rows[table] += batch.to_pylist()
        assert (reader.stats.malformed, reader.stats.problems) == (0, [])
    return rows


@pytest.fixture(scope="module")
def read_by_spark(mission: Mission, spark: SparkSession) -> dict[str, Rows]:
    """The rows of every table, read by the data source of Spark."""
    return {
        table: as_dicts(spark.read.format("msmq").option("table", table).load(mission.capture).drop(*TIMES))
        for table in TABLES
    }


def test_discovery_finds_the_directory_server(mission: Mission, read_here: dict[str, Rows]) -> None:
    assert mission.discovery.found
    assert mission.discovery.directory_servers == ("ZURGATE1", "BASGATE", "GVAGATE")
    request, reply = read_here["topology"]
    assert (request["type"], request["src"], request["dst"]) == (
        "request",
        mission.address("DEPOT"),
        mission.loopback.broadcast,
    )
    assert (reply["type"], reply["correlation_id"]) == ("reply", request["request_id"])
    assert [server["name"] for server in reply["servers"]] == list(mission.discovery.directory_servers)


def test_every_message_takes_the_way_that_routing_chose(mission: Mission, read_here: dict[str, Rows]) -> None:
    router, depot = Router(mission.after.directory), mission.after.machine("DEPOT").identifier
    for number, notification in mission.sent.items():
        hops = find_route(router, depot, notification.queue_manager).hops
        assert len(hops) >= 3
        legs = [(mission.loopback[hop.source.identifier], mission.loopback[hop.target.identifier]) for hop in hops]
        found = sorted(
            (row for row in read_here["messages"] if row["message_id"] == number), key=lambda row: row["hop_count"]
        )
        assert [(row["src"], row["dst"]) for row in found] == legs
        assert [row["hop_count"] for row in found] == list(range(len(legs)))
        assert {row["destination_queue"] for row in found} == {f"PRIVATE={notification.queue_manager}\\{NOTIFY_QUEUE}"}
    kinds = [row["kind"] for row in read_here["sessions"]]
    sessions = len({(row["src"], row["dst"]) for row in read_here["messages"]})
    assert kinds.count("establish_connection") == kinds.count("connection_parameters") == 2 * sessions
    assert kinds.count("session_ack") == len(read_here["messages"])


@pytest.mark.parametrize("table", TABLES)
def test_spark_reads_what_one_process_reads(
    table: str, read_here: dict[str, Rows], read_by_spark: dict[str, Rows]
) -> None:
    assert read_by_spark[table] == read_here[table]
    assert [row["fault"] for row in read_here[table]] == [None] * len(read_here[table])
    assert len(read_here[table]) >= 2


def processed(mission: Mission, name: str, messages: Rows) -> tuple[NotificationProcessor, list[Record]]:
    """What the processor of a machine makes of the messages to its notify queue, and its records."""
    machine, after = mission.before.machine(name), mission.after.directory

    def directory_at(server: str | None) -> MemoryDirectory:
        assert server == mission.discovery.directory_servers[0]
        return after

    processor = NotificationProcessor(machine, mission.before.queues(name), directory=directory_at, verifier=verified)
    records = []
    for row in sorted(messages, key=lambda row: (row["frame"], row["stream_offset"])):
        if row["dst"] == mission.address(name) and row["queue_manager_address"] == str(machine.identifier):
            records += processor.process(bytes(row["body"]), envelope_of(row))
    return processor, records


def envelope_of(row: dict[str, Any]) -> Envelope:
    if row["sender_id_type"] != "queue_manager":
        return Envelope(packet=row)
    return Envelope(
        sender_identifier_type=SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER,
        sender_identifier=UUID(bytes_le=bytes(row["security_id"])),
        packet=row,
    )


@pytest.mark.parametrize("name", ["LEDGER", "OFFICE8"])
@pytest.mark.parametrize("reader", ["read_here", "read_by_spark"])
def test_the_queues_of_a_machine_equal_the_directory(
    mission: Mission, name: str, reader: str, request: pytest.FixtureRequest
) -> None:
    processor, records = processed(mission, name, request.getfixturevalue(reader)["messages"])
    wanted = mission.after.queues(name)
    assert {queue.pathname: queue.only(TOLD) for queue in processor.queues} == {
        queue.pathname: queue.only(TOLD) for queue in wanted
    }
    assert processor.queue_manager.only(TOLD_OF_MACHINES) == mission.after.machine(name).only(TOLD_OF_MACHINES)
    # It was not so before
    assert wanted != mission.before.queues(name)
    refused = [record.rule for record in records if isinstance(record, Disregarded)]
    assert refused == ([Rule.NOT_AUTHENTICATED] if name == "LEDGER" else [])


def test_a_replay_tells_what_the_directory_has(mission: Mission, read_here: dict[str, Rows]) -> None:
    """At the machines that the messages were for, up to the forged one: a capture does not say that it is forged."""
    directory = mission.after.directory
    forged = min(row["time_ns"] for row in read_here["messages"] if row["message_id"] == FORGED)
    with read_table(mission.capture, "notifications") as reader:
        found = replay(reader, at=forged - 1, directory=directory)
    here = {mission.address("LEDGER"), mission.address("OFFICE8")}
    compared = list(compare([queue for queue in found.queues if queue.machine in here], directory))
    names = {
        queue.identifier: queue.pathname
        for contoso in (mission.before, mission.after)
        for queue in contoso.directory.read_all(Queue)
    }
    assert {names.get(each.notified.queue.identifier): each.notified.exists for each in compared if each.notified} == {
        r"ledger\returns": True,
        r"ledger\invoices": None,  # of which only a change was told
        r"ledger\orders": False,
        r"office8\scans": True,
        None: False,  # made and deleted while nobody looked into the directory
    }
    assert {each.verdict for each in compared if each.notified} == {Verdict.AGREES}
    # Nobody was told of what nobody changed
    assert [each.held and each.held.pathname for each in compared if not each.notified] == [r"depot\deliveries"]
