"""``olr-pg simulate --serve``: a finished simulation as a live database, to try the tool out."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from olr_pg.errors import OlrPgError
from olr_pg.redo.header import PROBE_BYTES, parse_log_header, probe_geometry
from olr_pg.simulator.oracle_net.server import PASSWORD, USER, StandIn
from olr_pg.simulator.oracle_net.state import ARCHIVE, OracleState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.redo.header import LogHeader
    from olr_pg.simulator.simulate import Summary

CONFIG: Final = "olr-pg.json"
"""Written beside the logs: a configuration that replicates the simulation."""


@contextmanager
def served(summary: Summary, directory: Path, *, port: int, every: float) -> Iterator[StandIn]:
    """Serve a simulation as a database that archives one log after the other.

    Args:
        directory: that the simulation was written to; gets `CONFIG`.
        every: seconds between two logs; 0 archives all of them before the port opens.

    Raises:
        OlrPgError: 8002 the configuration cannot be written, 8010 the port cannot be had.
    """
    headers = {path: read_header(path) for path in summary.logs}
    state = OracleState(summary.snapshot, dbid=headers[summary.logs[0]].dbid)
    stopping = threading.Event()

    def archive() -> None:
        for path, header in headers.items():
            if stopping.wait(every):
                return
            state.archived(path.name, header)

    archiving = threading.Thread(target=archive, daemon=True)
    if not every:
        archive()
    with StandIn(state, port=port) as server:
        _write_config(summary, directory, server)
        if every:
            archiving.start()
        try:
            yield server
        finally:
            stopping.set()
            if every:
                archiving.join()


def read_header(path: Path) -> LogHeader:
    """The header of a whole log."""
    with path.open("rb") as file:
        block_size, _ = probe_geometry(file.read(PROBE_BYTES), path=str(path))
        file.seek(0)
        return parse_log_header(file.read(block_size), file.read(block_size), path=str(path))


def _write_config(summary: Summary, directory: Path, server: StandIn) -> None:
    document: dict[str, Any] = {
        "context": {"data": "data"},
        "source": {
            "kind": "oracle",
            "user": USER,
            "password": PASSWORD,
            "server": server.connect_string,
            "path-mapping": [ARCHIVE, str((directory / "logs").absolute())],
        },
        "apply": {
            "connect-string": "embedded",
            "tables": [table.full_name for table in summary.tables],
            "create-tables": True,
        },
    }
    path = directory / CONFIG
    try:
        path.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise OlrPgError(8002, f"{path}: {error.strerror}") from error
