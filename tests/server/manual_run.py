"""``olr-pg run`` as OLR's manual starts its replicator, with a port that a test knows."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
FILE: Final = Path("configs", "Replicator.json")
COMMAND: Final = ("run", "--log-level", "3", "--file", str(FILE))
START_SECONDS: Final = 300.0


def olr_file(**sections: Any) -> dict[str, Any]:
    """The repository's file of OLR's own keys, with sections of a test's own in it."""
    document: dict[str, Any] = json.loads((ROOT / FILE).read_text("utf-8"))
    return document | sections


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


@contextmanager
def manual_run(
    folder: Path, document: dict[str, Any], command: tuple[str, ...] = COMMAND
) -> Iterator[tuple[tuple[str, int], list[str]]]:
    """A run whose working directory is `folder`, with `document` as its file.

    Yields:
        The address of its port, and the lines it has printed so far.
    """
    port = free_port()
    targets = document["target"] if isinstance(document["target"], list) else [document["target"]]
    path = folder / FILE
    path.parent.mkdir(exist_ok=True)
    # Of several targets it is the first one's.
    targets[0] = {**targets[0], "address": f"127.0.0.1:{port}"}
    document = document | {"target": targets if len(targets) > 1 else targets[0]}
    path.write_text(json.dumps(document), "utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "olr_pg", *command], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    lines: list[str] = []

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)  # noqa: PERF402 - seen while it goes on

    reader = threading.Thread(target=read)
    reader.start()
    try:
        end = time.monotonic() + START_SECONDS
        while not _listens(port):
            assert process.poll() is None, "".join(lines)
            assert time.monotonic() < end, "".join(lines)
            time.sleep(0.1)
        yield ("127.0.0.1", port), lines
        process.send_signal(signal.SIGTERM)
        assert process.wait(START_SECONDS) == 143, "".join(lines)
    finally:
        process.kill()
        process.wait()
        reader.join()
        assert process.stderr is not None
        process.stderr.close()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
