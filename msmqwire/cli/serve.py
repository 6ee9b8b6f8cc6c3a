"""Answer clients that look for directory servers (MS-MQSD), on UDP port 1801.

the file (TOML; [enterprise] and [site] or [directory] are required, the rest has these defaults):
  [enterprise]
  id = "e6eaba61-d1c6-11db-baac-0003ff4e2d22"
  check = false                 # true: answer only clients of this enterprise

  [site]
  id = "e6eaba60-d1c6-11db-baac-0003ff4e2d22"
  connected_networks = ["e6eaba62-d1c6-11db-baac-0003ff4e2d22"]      # 1 to 32

  [[site.servers]]              # the answer to clients of other sites, in this order; optional
  name = "nt4pec"
  ip = true
  ipx = false

  [listen]
  addresses = ["127.0.0.1"]     # broadcasts to a network reach its broadcast address, such as
                                # 10.20.1.255; those to 255.255.255.255 reach that address; 0.0.0.0 has all
  port = 1801

  [allow]
  networks = []                 # a quarter of total_burst is kept for these

  [limits]
  network_prefix = 24           # bits of an address that are its network
  network_rate = 100            # answers a second to a network, and the burst after a pause
  network_burst = 256
  total_rate = 1000             # the same for all networks
  total_burst = 2000
  address_bytes = 65536         # sent to one address in ten seconds, and to one network
  network_bytes = 524288

a directory, which has the keys of [enterprise] and [site] that the file leaves out:
  [directory]
  source = "ldaps://dc1.contoso.example"    # or a file of an enterprise, relative to this file
  machine = "LEDGER"                        # whose site and connected networks these are; Active
                                            # Directory has no connected networks: name them in [site]

Every valid request is answered, up to these limits; --check shows the sizes of the answers. What exceeds
a limit is dropped and counted.

signals:
  SIGHUP            read the file and the directory again; if it has an error, log it and keep the configuration
  SIGUSR1           log the counters
  SIGTERM, SIGINT   log the counters and end

The log is JSON lines on standard error. The first refusal by a rule is logged with its source;
further refusals are counted for a minute.

exit status:
  0  ended by SIGTERM or SIGINT, or the file has no error (--check)
  1  wrong usage, an error in the file, or an address that cannot be bound

examples:
  msmqwire serve --config examples/site.toml --check
  msmqwire serve --config examples/site.toml
  msmqwire serve --config examples/site.toml 2>&1 | jq 'select(.event == "refused")'
  kill -HUP $(pgrep -f 'msmqwire serve')
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msmqwire.cli.console import describe_error
from msmqwire.cli.enterprise import add_ldap_help
from msmqwire.errors import MsmqWireError, counted

if TYPE_CHECKING:
    from msmqwire.cli.site_file import SiteFile
    from msmqwire.discovery.server import DiscoveryServer, Policy, Refusal, Reply
    from msmqwire.net.discovery_server import DiscoveryService

_LOG = logging.getLogger(__name__)

#: Lines of the log that wait for a slow reader.
_MOST_LINES = 1000


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument("--config", required=True, metavar="FILE", help="the site and its servers: TOML")
    parser.add_argument("--check", action="store_true", help="read FILE, describe the answers, and exit")
    add_ldap_help(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal; the exit status."""
    from msmqwire.cli.site_file import read_site_file
    from msmqwire.discovery.server import DiscoveryServer

    configured = read_site_file(options.config)
    server = DiscoveryServer(configured.site, configured.policy)
    if options.check:
        _describe(configured, server)
        return 0
    with _logging():
        _serve(options.config, configured, server)
    return 0


def _serve(path: str, configured: SiteFile, server: DiscoveryServer) -> None:
    from msmqwire.net.discovery_server import DiscoveryService, Event

    with DiscoveryService(server, configured.addresses) as service:
        reloader = _Reloader(path, service)
        for number in (signal.SIGTERM, signal.SIGINT):
            service.on_signal(number, service.stop)
        if sys.platform != "win32":  # it has no other signals
            service.on_signal(signal.SIGHUP, reloader.request)
            service.on_signal(signal.SIGUSR1, lambda: _LOG.info(Event("counters", **service.counters())))
        _log_state("listening", service)
        try:
            service.run()
        finally:
            _LOG.info(Event("stopped", **service.counters()))


class _Reloader:
    """Reads the file in a thread of its own, so that a slow file or a pipe delays neither answers nor signals."""

    def __init__(self, path: str, service: DiscoveryService) -> None:
        self._path, self._service = path, service
        self._requested = threading.Event()
        _start_thread(self._run)

    def request(self) -> None:
        """Read the file soon; requests during a read are one."""
        self._requested.set()

    def _run(self) -> None:
        from msmqwire.cli.site_file import read_site_file

        while self._requested.wait():
            self._requested.clear()
            try:
                configured = read_site_file(self._path)
            except (OSError, MsmqWireError) as error:
                self._service.call(partial(_log_error, error, self._service))
            else:
                self._service.call(partial(_apply, configured, self._service))


def _apply(configured: SiteFile, service: DiscoveryService) -> None:
    """Apply the file; an error changes nothing."""
    try:
        service.listen(configured.addresses)
    except OSError as error:
        _log_error(error, service)
    else:
        service.server.configure(configured.site, configured.policy)
        _log_state("reloaded", service)


def _log_error(error: OSError | MsmqWireError, service: DiscoveryService) -> None:
    from msmqwire.net.discovery_server import Event

    _LOG.error(Event("not_reloaded", reason=describe_error(error), addresses=_listening(service)))


# --- Output ---


class _Outcome(NamedTuple):
    """Whether all clients of a site, or of the enterprise there, are answered, and with what, in words."""

    everyone: bool
    words: str


def _outcomes(server: DiscoveryServer) -> dict[str, _Outcome]:
    return {
        "own_site": _outcome(server.reply_to_own_site, server.policy),
        "other_sites": _outcome(server.reply_to_other_sites, server.policy),
    }


def _outcome(reply: Reply | Refusal, policy: Policy) -> _Outcome:
    from msmqwire.discovery.server import LARGEST_REPLY, Refusal

    if isinstance(reply, Refusal):
        reasons = {
            Refusal.NO_NETWORKS: "connected_networks must be 1 to 32",
            Refusal.NO_SERVERS: "[[site.servers]] names none",
            Refusal.TOO_LARGE: f"the answer would have more than {LARGEST_REPLY:,} bytes",
        }
        return _Outcome(False, f"not answered: {reasons[reply]}")
    for limit in ("address_bytes", "network_bytes"):
        if reply.size > (most := getattr(policy, limit)):
            return _Outcome(False, f"not answered: {reply.size:,} bytes, more than [limits] {limit}, {most:,}")
    clients = "clients of this enterprise" if policy.check_enterprise else "anyone"
    return _Outcome(True, f"{reply.size:,} bytes, to {clients}")


def _describe(configured: SiteFile, server: DiscoveryServer) -> None:
    site = configured.site
    networks, servers = len(site.connected_networks), len(site.servers)
    outcomes = _outcomes(server)
    print(f"enterprise {site.enterprise_id}, site {site.site_id}")
    print(f"{counted(networks, 'connected network')}, {counted(servers, 'directory server')}")
    print("listens on " + ", ".join(f"{host}:{port}" for host, port in configured.addresses))
    print(f"clients of its own site: {outcomes['own_site'].words}")
    print(f"clients of other sites:  {outcomes['other_sites'].words}")


def _log_state(event: str, service: DiscoveryService) -> None:
    """Log the addresses, and warn of valid requests that are not answered."""
    from msmqwire.net.discovery_server import Event

    _LOG.info(Event(event, addresses=_listening(service), site=service.server.site.site_id))
    for clients, outcome in _outcomes(service.server).items():
        if not outcome.everyone:
            _LOG.warning(Event("restricted", clients=clients, answer=outcome.words))


def _listening(service: DiscoveryService) -> list[str]:
    return [f"{host}:{port}" for host, port in service.addresses]


# --- Process ---


def _start_thread(target: Callable[[], None]) -> threading.Thread:
    """Start a thread that receives no signals: they would not wake the main one, which waits."""
    from msmqwire.net.host_addresses import start_thread

    if sys.platform == "win32":  # where only the main thread receives signals
        return start_thread(target)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        return start_thread(target)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _logging() -> Iterator[None]:
    """Log as JSON lines on standard error."""
    from msmqwire.net.discovery_server import JsonLines

    handler: logging.Handler
    if sys.stderr is None:  # the process was started without one
        handler = logging.NullHandler()
    else:
        try:
            handler = _LogWriter(sys.stderr.fileno())
        except (OSError, ValueError):  # standard error is no file
            handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("msmqwire")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


class _LogWriter(logging.Handler):
    """Writes lines in a thread of its own; lines that a reader does not take in time are dropped, and counted."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: queue.Queue[bytes | None] = queue.Queue(_MOST_LINES)
        self._dropped = 0
        self._thread = _start_thread(self._write)
        # Last, as logging closes every handler that has begun to exist
        super().__init__()

    def emit(self, record: logging.LogRecord) -> None:
        """Put the line of a record into the queue."""
        line = self.format(record)
        try:
            self._lines.put_nowait(f"{line}\n".encode())
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Wait for the queue to be written, for a second at most."""
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(None)
            self._thread.join(1)
        super().close()

    def _write(self) -> None:
        # A file object would hold a lock while it waits, which blocks the end of the process.
        while (line := self._lines.get()) is not None:
            if self._dropped:
                line += b'{"event": "lines_dropped", "level": "warning", "lines": %d}\n' % self._dropped
                self._dropped = 0
            with contextlib.suppress(OSError):
                while line:
                    line = line[os.write(self._descriptor, line) :]
