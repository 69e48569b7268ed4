"""A simulated source behind the stand-in, whose logs are archived when a test says so."""

from __future__ import annotations

import itertools
import json
import shutil
import struct
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from olr_pg.capture.lineage import Lineage
from olr_pg.capture.logs import open_log
from olr_pg.config.source_section import OracleSource, Vault
from olr_pg.oracle.live_source import LiveDatabase
from olr_pg.oracle.transport.log_transport import make_transport
from olr_pg.oracle.vault import LogVault
from olr_pg.simulator.oracle_net.row_versions import RowVersions
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import ARCHIVE, OracleState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from olr_pg.config.source_section import LogTransportSection
    from olr_pg.simulator.simulated_files import Summary

_numbers = itertools.count()


class LiveSource:
    """The source of a finished simulation as a live database.

    Attributes:
        mount: where its archived logs are found here.
        waiting: logs that are not archived yet.
    """

    def __init__(self, summary: Summary, folder: Path) -> None:
        self.summary = summary
        self.folder = folder
        self.mount = folder / "mount"
        self.mount.mkdir()
        self.waiting = list(summary.logs)
        dbid = open_log(str(summary.logs[0])).header.dbid
        self.state = OracleState(summary.snapshot, dbid=dbid)
        self.server = StandIn(self.state)

    def close(self) -> None:
        self.server.close()
        assert self.server.malformed == []

    def keep_rows(self) -> RowVersions:
        """Let the tables be read, as of any SCN."""
        folder = self.summary.logs[0].parent.parent
        rows = RowVersions(self.state.catalogue, self.summary.snapshot.tables)
        rows.read_start(folder / "tables", self.summary.snapshot.scn)
        source = folder / "source.jsonl"
        truth = source if source.exists() else folder / "truth.jsonl"
        rows.read_truth(truth.read_text("utf-8").splitlines())
        return rows

    def archive(self, *, copied: bool = True) -> Path:
        """The next log is archived; where it is not `copied`, its file is late."""
        path = self.waiting.pop(0)
        self.state.archived(path.name, open_log(str(path)).header)
        if copied:
            self.copy(path)
        return path

    def archived_twice(self, name: str) -> None:
        """Each log that was archived has another copy, which Oracle names so."""
        self.state.catalogue.update(
            'INSERT INTO SYS."V$ARCHIVED_LOG" SELECT "THREAD#", "SEQUENCE#", "FIRST_CHANGE#",'
            f' "NEXT_CHANGE#", \'{name}\', BLOCKS, BLOCK_SIZE, RESETLOGS_ID, "RESETLOGS_CHANGE#",'
            ' "DEST_ID" + 1, ARCHIVED, DELETED, STATUS, STANDBY_DEST, "FIRST_TIME"'
            ' FROM SYS."V$ARCHIVED_LOG"'
        )

    def copy(self, path: Path) -> None:
        """The file of a log arrives."""
        shutil.copy(path, self.mount)

    def archive_all(self) -> None:
        while self.waiting:
            self.archive()

    @contextmanager
    def database(
        self,
        changes: dict[str, Any] | None = None,
        *,
        vault: Path | None = None,
        transport: LogTransportSection | None = None,
    ) -> Iterator[LiveDatabase]:
        """The source as decoding sees it, with a memory of its own."""
        source = OracleSource.model_validate(self.section(**(changes or {})))
        kept = None
        if vault is not None:
            brings = None if transport is None else make_transport(transport, source)
            kept = LogVault(Vault.model_validate({"directory": str(vault)}), lambda: None, brings)
        lineage = Lineage(self.folder / f"{next(_numbers)}.json")
        live = LiveDatabase(source, lineage, vault=kept)
        try:
            yield live
        finally:
            live.close()

    def commit_scns(self) -> list[int]:
        """Of every transaction that is delivered, in order."""
        folder = self.summary.logs[0].parent.parent
        lines = map(json.loads, (folder / "truth.jsonl").read_text("utf-8").splitlines())
        return [line["commit_scn"] for line in lines if line["op"] == "begin"]

    def section(self, **changes: Any) -> dict[str, Any]:
        """The configuration's `source`."""
        return {
            "kind": "oracle",
            "user": "olr",
            "password": "olr",
            "server": self.server.connect_string,
            "path-mapping": [ARCHIVE, str(self.mount)],
            "poll-ms": 20,
            **changes,
        }

    def write_config(
        self,
        folder: Path,
        database: str,
        *,
        tables: Sequence[str] | str | None = None,
        **changes: Any,
    ) -> Path:
        """A configuration file that replicates every table into `database`."""
        names = [table.full_name for table in self.summary.tables]
        document = {
            "context": {"data": str(folder / "data")},
            "source": self.section(**changes),
            "target": {"address": "127.0.0.1:0"},
            "apply": {
                "connect-string": database,
                "tables": names if tables is None else tables,
                "create-tables": True,
            },
            "spark": {"master": "local[2,2]"},
        }
        path = folder / "config.json"
        path.write_text(json.dumps(document), "utf-8")
        return path


def reincarnated(
    log: Path, folder: Path, *, resetlogs: int, scn: int, activation: int, sequence: int
) -> Path:
    """A copy of `log` as the database would have written it after an OPEN RESETLOGS at `scn`."""
    fields = {52: activation, 160: resetlogs}
    return _rewritten(
        log, folder / f"1_{sequence}_{resetlogs}.arc", fields, {164: scn}, sequence=sequence
    )


def with_new_identity(log: Path, folder: Path, *, name: str, dbid: int, scn: int = 0) -> Path:
    """A copy of `log` as the database would have written it after DBNEWID. A new DBID needs an OPEN
    RESETLOGS, at `scn`.
    """
    header = open_log(str(log)).header
    order: Literal["big", "little"] = "big" if header.big_endian else "little"
    raw = name.encode().ljust(8, b"\0")
    fields = {24: dbid, **{28 + at: int.from_bytes(raw[at : at + 4], order) for at in (0, 4)}}
    if not scn:
        return _rewritten(log, folder / log.name, fields, {})
    fields |= {52: 99, 160: 1_300_000_000}
    return _rewritten(log, folder / "1_1_1300000000.arc", fields, {164: scn}, sequence=1)


def switched_over(
    log: Path, folder: Path, *, activation: int, first_scn: int, sequence: int
) -> Path:
    """A copy of `log` as the database would have written it after a switchover: without RESETLOGS,
    with another activation id.
    """
    made = folder / f"1_{sequence}_after.arc"
    return _rewritten(log, made, {52: activation}, {180: first_scn}, sequence)


def without_redo(log: Path, folder: Path, *, activation: int) -> Path:
    """A log in the place of `log` that contains no redo, like the one that is current in a standby
    when it becomes the primary.
    """
    header = open_log(str(log)).header
    made = folder / "no_redo.arc"
    blocks, scns = {52: activation, 156: 2}, {192: header.first_scn}
    data = bytearray(_rewritten(log, made, blocks, scns).read_bytes()[: 2 * header.block_size])
    # Block 0 contains the number of the other blocks.
    struct.pack_into(">I" if header.big_endian else "<I", data, 24, 1)
    _seal(data, 0, header.block_size)
    made.write_bytes(data)
    return made


def _rewritten(
    log: Path,
    made: Path,
    fields: Mapping[int, int],
    scns: Mapping[int, int],
    sequence: int | None = None,
) -> Path:
    """Write a copy of `log` with other fields in its header, by offset."""
    header = open_log(str(log)).header
    order = ">" if header.big_endian else "<"
    size = header.block_size
    data = bytearray(log.read_bytes())
    for at, value in fields.items():
        struct.pack_into(order + "I", data, size + at, value)
    for at, scn in scns.items():
        assert scn < 1 << 47, "the short form of an SCN does not hold it"
        struct.pack_into(order + "IHH", data, size + at, scn & 0xFFFFFFFF, scn >> 32, 0)
    for at in range(size, len(data), size):
        if sequence is not None:
            struct.pack_into(order + "I", data, at + 8, sequence)
        _seal(data, at, size)
    made.write_bytes(data)
    return made


def _seal(data: bytearray, at: int, size: int) -> None:
    """Compute the checksum of the block at `at`."""
    struct.pack_into("<H", data, at + 14, 0)
    block = np.frombuffer(bytes(data[at : at + size]), np.uint16)
    struct.pack_into("=H", data, at + 14, int(np.bitwise_xor.reduce(block)))
