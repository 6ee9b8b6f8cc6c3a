"""A real LDAP server for tests: slapd in a temporary folder, on loopback, with the schema of MSMQ."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.directory.enterprise import ROOT
from tests.system_programs import require_program

_SCHEMA = Path(__file__).parent / "msmq.schema"

_CONFIGURATION = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include {schema}
moduleload back_mdb
sizelimit unlimited
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


@contextlib.contextmanager
def running(folder: Path, ldif: str, *, certificate: tuple[Path, Path] | None = None) -> Iterator[str]:
    """The URL of a slapd that holds the entries; it speaks TLS only if there is a certificate with a key."""
    slapd, slapadd = require_program("slapd"), require_program("slapadd")
    (folder / "data").mkdir()
    configuration = folder / "slapd.conf"
    tls = f"TLSCertificateFile {certificate[0]}\nTLSCertificateKeyFile {certificate[1]}" if certificate else ""
    configuration.write_text(_CONFIGURATION.format(schema=_SCHEMA, folder=folder, root=ROOT, tls=tls), "utf-8")
    command = [slapadd, "-q", "-f", str(configuration)]
    subprocess.run(command, input=ldif, text=True, check=True, timeout=60, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    url = f"ldaps://localhost:{port}" if certificate else f"ldap://127.0.0.1:{port}"
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
