"""An S3 server on the loopback address, which counts what is read of it, and can fail."""

from __future__ import annotations

import logging
import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

from pyarrow import fs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

BUCKET = "redo"
KEY, SECRET = "a-key-of-the-tests", "a-secret-of-the-tests"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_MAX_ATTEMPTS": "1",
}


class S3Server:
    """The server.

    Attributes:
        reads: (key, bytes) of each object that was read.
        status: what requests are answered with; None: by the storage.
        stuck: requests wait until it is set.
    """

    def __init__(self) -> None:
        # Here, since the tests are collected in processes that never make one.
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        self.reads: list[tuple[str, int]] = []
        self.status: str | None = None
        self.stuck = threading.Event()
        self.stuck.set()
        self._storage = DomainDispatcherApplication(create_backend_app)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def url(self, path: str, bucket: str = BUCKET) -> str:
        """The URL of what is in the bucket."""
        where = f"endpoint_override=127.0.0.1:{self._server.port}&scheme=http&region=us-east-1"
        return f"s3://{bucket}/{path}?{where}"

    def put(self, folder: Path, prefix: str) -> None:
        """Put the files of a folder below a prefix."""
        system, _ = fs.FileSystem.from_uri(self.url("x") + "&allow_bucket_creation=true")
        system.create_dir(BUCKET)
        for file in folder.iterdir():
            with system.open_output_stream(f"{BUCKET}/{prefix}/{file.name}") as out:
                out.write(file.read_bytes())
        self.reads.clear()

    @property
    def bytes_read(self) -> int:
        """How much was read of objects."""
        return sum(size for _, size in self.reads)

    @contextmanager
    def running(self) -> Iterator[S3Server]:
        """Serve."""
        self._thread.start()
        # All servers of a process have one storage.
        reset = f"http://127.0.0.1:{self._server.port}/moto-api/reset"
        urlopen(Request(reset, method="POST")).close()
        try:
            yield self
        finally:
            self.stuck.set()
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def _answer(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        self.stuck.wait()
        if self.status is not None:
            start_response(self.status, [("Content-Length", "0")])
            return [b""]
        body: Iterable[bytes] = self._storage(environ, start_response)
        key = re.fullmatch(rf"/{BUCKET}/(.+)", environ["PATH_INFO"])
        if environ["REQUEST_METHOD"] == "GET" and key is not None:
            whole = b"".join(body)
            self.reads.append((key[1], len(whole)))
            return [whole]
        return body
