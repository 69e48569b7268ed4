"""A database of the model with one table, driven statement by statement; and what redo it wrote."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from olr_pg.dictionary.model import Database, Snapshot
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.simulator.fields.cells import Cell, number, raw
from olr_pg.simulator.fields.redo_format import DatabaseSession, RedoFormat
from olr_pg.simulator.model.column_types import number_type, raw_type
from olr_pg.simulator.model.storage import UndoSegment
from olr_pg.simulator.model.tables import Logging, SimColumn, SimSegment, SimTable
from olr_pg.simulator.sessions.session import SimSession
from olr_pg.simulator.truth import truth_lines
from olr_pg.simulator.writer.instance import Container, Instance, Pace
from olr_pg.simulator.writer.log_file import LogIdentity, OpenLog
from tests.simulator.laws import LOG_LAWS, broken_laws, broken_layout, broken_undo_parts
from tests.simulator.reader import ParsedLog, parse_log

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SCN = 1000
DBA = 12 << 22
REDO = RedoFormat()


def wide(size: int) -> Cell:
    """A RAW of so many bytes."""
    return raw(bytes(at * 7 & 0xFF for at in range(size)))


@dataclass(frozen=True)
class Shape:
    """What kind of table it is."""

    logging: Logging = Logging.ALL
    columns: int = 6
    piece_max: int = 1900
    partitions: int = 1
    row_dependencies: bool = False
    index_organised: bool = False
    redo: RedoFormat = REDO
    unproven: bool = False


class SmallDatabase:
    """One table T, one session; column 0 is the key, the others are RAW."""

    def __init__(self, folder: Path, shape: Shape, seed: int = 1) -> None:
        self._folder = folder
        self.shape = shape
        rng = Random(seed)
        identity = LogIdentity(7, "SMALL", 1, 2, 1)
        self.instance = Instance(
            *(shape.redo, rng, self._archive),
            identity=identity,
            start_scn=START_SCN,
            start=datetime(2026, 1, 1, tzinfo=UTC),
            zone=timedelta(0),
            pace=Pace(log_blocks=100_000),
            unproven=shape.unproven,
        )
        thread = self.instance.start_thread(1, 5)
        container = Container(0, None, 7)
        container.segments[1] = [UndoSegment(1, 5, (5 << 22) + 128, START_SCN)]
        columns = [SimColumn("ID", number_type(12, 0), nullable=False)]
        columns += [SimColumn(f"C{at}", raw_type(2000)) for at in range(1, shape.columns)]
        parts = shape.partitions
        segments = [SimSegment(510 + at, 610 + at, 12, DBA + 8192 * at) for at in range(parts)]
        self.table = SimTable(
            *("SIM", "T", 500, 600, tuple(columns), (0,), shape.logging, 6, 12, 12, 0),
            row_space=shape.piece_max,
            piece_max=shape.piece_max,
            row_scn=shape.redo.row_scn_size if shape.row_dependencies else 0,
            segments=segments if parts > 1 or shape.index_organised else [],
            index_organised=shape.index_organised,
        )
        self.session = SimSession(self.instance, container, thread, DatabaseSession(1, 2, "SIM"))

    def _archive(self, log: OpenLog, next_scn: int, time: int) -> None:
        (self._folder / log.name).write_bytes(log.close(next_scn, time))

    def row(self, key: int, *sizes: int) -> list[Cell | None]:
        """A row: the key, RAWs of these sizes (0 is NULL), NULLs."""
        cells: list[Cell | None] = [number(Decimal(key))]
        cells += [wide(size) if size else None for size in sizes]
        return cells + [None] * (self.shape.columns - len(cells))

    def close(self) -> None:
        """Commit and archive."""
        self.session.commit()
        self.instance.shut_down()

    @property
    def snapshot(self) -> Snapshot:
        database = Database("SMALL", big_endian=self.shape.redo.big_endian)
        return Snapshot(START_SCN, database, (self.table.describe(),))

    @property
    def logs(self) -> list[ParsedLog]:
        return [parse_log(path.read_bytes()) for path in sorted(self._folder.iterdir())]

    def truth(self) -> bytes:
        return "".join(line + "\n" for line in truth_lines(self.instance.committed)).encode()

    def decoded(self) -> bytes:
        """As ``olr-pg decode`` prints it."""
        render = JsonLines(self.snapshot.database)
        blobs = decode_logs(self.snapshot, [str(self._folder)])
        return b"".join(render.render(blob) for blob in blobs)

    def forms(self) -> Iterator[str]:
        """The operations in the logs: opcode and row flags, and the parts of split undo."""
        for log in self.logs:
            for record in log.records:
                for vector in record.vectors:
                    if vector.layer == 11 and vector.code in (2, 6):
                        yield f"{vector.opcode} {vector.fields[1][16]:02x}"
                    elif vector.layer in (10, 11):
                        yield vector.opcode
                    elif vector.opcode == "5.1":
                        (flags,) = log.format.unpack("H", vector.fields[1], 20)
                        if flags & 0x103:
                            yield f"undo {flags & 0x107:03x}"

    def check(self) -> None:
        """The logs keep the laws and decode to the truth."""
        laws = [*LOG_LAWS, broken_layout]
        if self.shape.unproven:
            laws.remove(broken_undo_parts)
        assert broken_laws(self.logs, log_laws=laws) == []
        assert self.truth()
        assert self.decoded() == self.truth()
