"""An S3 server on this machine, and files in it; what it serves to anybody over HTTP as well, with ranges."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs


class ObjectStore:
    """A server with one bucket, ``captures``."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        #: What reaches it, as the option ``storageOptions`` has it
        self.options: dict[str, Any] = {
            "endpoint_override": endpoint,
            "access_key": "anybody",
            "secret_key": "anything",
            "region": "us-east-1",
        }
        self.files = fs.S3FileSystem(**self.options, allow_bucket_creation=True)
        self.files.create_dir("captures")

    def put(self, key: str, content: bytes | Path) -> str:
        """Store an object; its URI."""
        with self.files.open_output_stream(f"captures/{key}", compression=None) as stream:
            stream.write(content.read_bytes() if isinstance(content, Path) else content)
        return f"s3://captures/{key}"

    def url(self, key: str) -> str:
        """Where an object is to be had over HTTP."""
        return f"{self.endpoint}/captures/{key}"


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    # Imported here, since it takes a second and each process of the tests imports this module
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield ObjectStore(f"http://{host}:{port}")
    finally:
        server.stop()


if __name__ == "__main__":
    with object_store() as store:
        print(store.endpoint, flush=True)
        threading.Event().wait()
