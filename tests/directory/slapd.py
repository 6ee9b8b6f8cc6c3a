"""A real LDAP server for tests: slapd in a temporary folder, on loopback, with the schema of MSMQ."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.directory.enterprise import ROOT
from tests.system_programs import require_program

_SCHEMA = Path(__file__).parent / "msmq.schema"

_CONFIGURATION = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include {schema}
moduleload back_mdb
sizelimit unlimited
referral ldap://127.0.0.1:1
pidfile {folder}/pid
{tls}
database mdb
suffix "{root}"
rootdn "cn=admin,{root}"
rootpw secret
directory {folder}/data
maxsize 1073741824
dbnosync
index objectClass,objectGUID,cn,dNSHostName eq
access to * by * read
"""


class Certificate(NamedTuple):
    """A certificate for localhost, which is its own authority, and its key."""

    certificate: Path
    key: Path


@contextlib.contextmanager
def running(folder: Path, ldif: str, *, certificate: Certificate | None = None) -> Iterator[str]:
    """The URL of a slapd that holds the entries; with a certificate it can be asked to start TLS."""
    slapd, slapadd = require_program("slapd"), require_program("slapadd")
    (folder / "data").mkdir()
    configuration = folder / "slapd.conf"
    tls = "TLSCertificateFile {}\nTLSCertificateKeyFile {}".format(*certificate) if certificate else ""
    configuration.write_text(_CONFIGURATION.format(schema=_SCHEMA, folder=folder, root=ROOT, tls=tls), "utf-8")
    command = [slapadd, "-q", "-f", str(configuration)]
    subprocess.run(command, input=ldif, text=True, check=True, timeout=60, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    url = f"ldap://localhost:{port}"
    command = [slapd, "-f", str(configuration), "-h", url, "-d", "none"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = []
        for line in server.stderr:
            said.append(line)
            if "slapd starting" in line:
                break
        else:
            raise RuntimeError("".join(said))
        drain = threading.Thread(target=server.stderr.read)
        drain.start()
        try:
            yield url
        finally:
            server.terminate()
            drain.join()


def certificate(folder: Path) -> Certificate:
    """A fresh certificate for localhost."""
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    command = [require_program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-out", str(made.certificate), "-keyout", str(made.key)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return made
