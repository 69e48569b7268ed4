"""A named workload: its database, logs, truth and tables, by compiled kernels."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.model import Database, Snapshot
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.scalars import encode_redo_time
from olr_pg.simulator.fields.block_layout import FIRST_DATA_BLOCK
from olr_pg.simulator.model.shop_inventory import write_dictionary
from olr_pg.simulator.model.structure import order_structure, table_structure
from olr_pg.simulator.named import instance_memory as place
from olr_pg.simulator.named.engine import ColumnarInstance
from olr_pg.simulator.named.named_tables import NAMED
from olr_pg.simulator.named.setup import Setting
from olr_pg.simulator.named.snapshot import write_tables
from olr_pg.simulator.sessions.placement import place_table
from olr_pg.simulator.writer.instance import Container
from olr_pg.simulator.writer.log_file import LogIdentity
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.fields.redo_format import RedoFormat

    LogSink = Callable[[str, bytes, memoryview], None]

INDEX_BLOCKS: Final = 16
COMPILED_FROM: Final = 3_000_000
"""Bytes of redo from which on compiling the kernels is worth its time."""

START: Final = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)


def is_worth_compiling(size: int) -> bool:
    """Tell whether so many bytes of redo justify compiling the kernels, most of a minute."""
    return size >= COMPILED_FROM


class NamedSimulation:
    """A database that carries out a named workload, from the first log to the last.

    Args:
        seed: decides everything else.
        directory: gets ``dictionary.json``, ``truth.jsonl``, ``tables/`` and ``final/``.
        workload: a name in `NAMED`.
        shape: the database.
        size: of the redo that is going to be written, in bytes: the tables are made for it.
        archive: takes the name, the headers and the data blocks of each log.
        truth: write the truth.
        prefilled: the tables have rows before the first redo.
        idle_threads: the last threads, so many of them, have no sessions.
    """

    def __init__(
        self,
        seed: int,
        directory: Path,
        workload: str,
        shape: DatabaseShape,
        size: int,
        archive: LogSink,
        *,
        truth: bool = True,
        prefilled: bool = False,
        idle_threads: int = 0,
    ) -> None:
        named, rng = NAMED[workload], Random(seed)  # noqa: S311 - reproducible, not secret
        self._shape, self._directory, self._workload = shape, directory, workload
        self._identity = database_identity(seed)
        dbid = self._identity.dbid ^ (0x1234567 if shape.con_id else 0)
        self._container = Container(shape.con_id, "SIMPDB" if shape.con_id else None, dbid)
        specs = named.tables(shape.logging[0])
        self.tables = tuple(
            place_table(number, spec, shape.start_scn, index_blocks=INDEX_BLOCKS)
            for number, spec in enumerate(specs)
        )
        start = START + timedelta(seconds=rng.randrange(10**6))
        few = named.sessions // (1 if size >= COMPILED_FROM else 2)
        sessions = max(few, shape.threads)
        setting = Setting(
            *(seed, shape.redo, self._container, shape.threads, sessions, shape.pace),
            *(shape.start_scn, int(start.timestamp() * 1000)),
            rng.choice((0, -4, 1)) * 3600,
            named.journal,
            self.tables,
            idle_threads,
        )
        self._files = ExitStack()
        file = None
        if truth:
            file = self._files.enter_context((directory / "truth.jsonl").open("wb"))
        self.instance = ColumnarInstance(
            setting,
            named.number,
            identity=self._identity,
            archive=archive,
            truth=file,
            start_rows=named.start_rows(sessions, size),
            prefilled=prefilled,
            compiled=is_worth_compiling(size),
            first_sequences=[15 + 3 * number for number in range(1, shape.threads + 1)],
        )
        self.start = self.snapshot()
        """The dictionary at the start."""
        write_dictionary(self.start, directory)
        self._write_tables("tables")

    def work(self, size: int) -> None:
        """Write about `size` bytes of redo more."""
        self.instance.work(size)

    def switch_logs(self) -> None:
        """Archive what has been written."""
        self.instance.switch_logs()

    def open_resetlogs(self, resetlogs: int, activation: int) -> None:
        """Begin a new incarnation; what was open is rolled back."""
        self._identity = self.instance.open_resetlogs(resetlogs, activation)
        for thread in range(self._shape.threads):
            self.instance.roll_back(thread)

    def set_clock(self, unix_time: float) -> None:
        """Set the database's clock, in seconds since 1970."""
        self.instance.set_clock(unix_time)

    def flush_truth(self) -> None:
        """Let every line of what has committed be in ``truth.jsonl``."""
        self.instance.flush_truth()

    def open_begins(self) -> list[int]:
        """Begin SCNs of the transactions that are open."""
        return self.instance.open_begins()

    @property
    def dbid(self) -> int:
        """The DBID that log headers have."""
        return self._identity.dbid

    @property
    def redo(self) -> RedoFormat:
        """The format of its logs."""
        return self._shape.redo

    @property
    def log_blocks(self) -> int:
        """The blocks that no log can have more of."""
        stride = int(self.instance.memory.m[place.LOG_STRIDE])
        return FIRST_DATA_BLOCK + stride // self._shape.redo.block_size

    def end(self) -> dict[str, int]:
        """Commit, archive, finish the truth, write the final tables and dictionary.

        Returns:
            The rows of each table.
        """
        with self._files:
            self.instance.end()
        rows = self._write_tables("final")
        write_snapshot(self.snapshot(), str(self._directory / "final" / "dictionary.json"))
        return rows

    def _write_tables(self, folder: str) -> dict[str, int]:
        scn = int(self.instance.memory.m[place.SCN])
        return write_tables(self._directory / folder, self.instance.memory, self.tables, scn)

    @property
    def transactions(self) -> int:
        """Committed transactions with changes."""
        return int(self.instance.counts[0])

    @property
    def changes(self) -> dict[DmlKind, int]:
        """Committed row changes by kind."""
        kinds = (DmlKind.INSERT, DmlKind.UPDATE, DmlKind.DELETE)
        return {kind: int(self.instance.counts[1 + at]) for at, kind in enumerate(kinds)}

    def snapshot(self) -> Snapshot:
        """Return the dictionary as it is now."""
        own, memory = self._identity, self.instance.memory.m
        database = Database(
            own.name,
            con_id=self._container.con_id,
            con_name=self._container.name,
            dbid=self._container.dbid,
            resetlogs=(own.resetlogs,),
            activation=own.activation,
            big_endian=self._shape.redo.big_endian,
        )
        structure = table_structure(self.tables)
        if self._workload == "orders":
            next_keys = {
                table.name: int(memory[place.TB_NEXT_KEY + number])
                for number, table in enumerate(self.tables)
            }
            structure = order_structure(self.tables, next_keys)
        tables = tuple(table.describe() for table in self.tables)
        return Snapshot(int(memory[place.SCN]), database, tables, structure=structure)


def database_identity(seed: int) -> LogIdentity:
    """Return the identity of the database that a seed stands for."""
    rng = Random(seed ^ 0x5EED)  # noqa: S311 - reproducible, not secret
    return LogIdentity(
        dbid=rng.randrange(1, 1 << 31),
        name="SIMDB",
        activation=rng.randrange(1, 1 << 31),
        resetlogs=encode_redo_time(datetime(2025, 12, 1, 8, 0, tzinfo=UTC)),
        resetlogs_scn=1,
    )
