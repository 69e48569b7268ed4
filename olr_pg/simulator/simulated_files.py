"""Writes the files of a simulation next to its logs, and a summary of its contents."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.simulator.model.shop_inventory import write_dictionary
from olr_pg.simulator.truth import TableFile, truth_lines, write_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from typing import Self

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.tables import SimTable
    from olr_pg.simulator.named_simulation import NamedSimulation
    from olr_pg.simulator.writer.instance import LogSink
    from olr_pg.simulator.writer.log_file import OpenLog
    from olr_pg.transactions.finished_columns import DmlKind


STEP_BYTES: Final = 4_000_000
"""Bytes of redo between two writes of the truth. Each write also frees the memory of finished
transactions.
"""

UNFINISHED: Final = "final.part"
"""The folder of the final tables until they are complete."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of a simulation's output.

    Attributes:
        transactions: number of delivered transactions.
        changes: number of delivered row changes by kind.
        rows: the number of rows of each table at the end.
        unrecoverable: for each data file, the SCN and Unix time of its last NOLOGGING operation.
        others: the dictionaries of further containers whose changes are in the truth.
        parallel: for each commit of parallel DML, its SCN and the SCN of the record after the
            commits of all its children.
        logs: the archived logs in the order in which they were archived; `log_bytes` is their total
            size.
    """

    seed: int
    shape: DatabaseShape
    snapshot: Snapshot
    transactions: int
    changes: dict[DmlKind, int]
    rows: dict[str, int]
    tables: tuple[SimTable, ...] = field(repr=False)
    unrecoverable: dict[int, tuple[int, int]] = field(default_factory=dict)
    others: tuple[Snapshot, ...] = ()
    parallel: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    logs: tuple[Path, ...] = ()
    log_bytes: int = 0

    def with_logs(self, logs: Sequence[Path]) -> Self:
        """Return a copy of the summary with these archived logs, which must exist."""
        return replace(self, logs=tuple(logs), log_bytes=sum(one.stat().st_size for one in logs))


class SimulatedFiles:
    """The files next to the logs of a running simulation.

    Args:
        simulation: the simulation before its first statement.
        directory: output: ``dictionary.json``, ``truth.jsonl``, ``tables/`` and ``final/``.
        truth: write the truth.
        forgets: if no later statement changes a row, write the row to the final tables early, so
            that it needs no memory. The final rows of a table are then in any order.
    """

    def __init__(
        self, simulation: NamedSimulation, directory: Path, *, truth: bool, forgets: bool = False
    ) -> None:
        self.simulation, self._directory = simulation, directory
        self._final: dict[SimTable, TableFile] = {}
        if forgets:
            unfinished = directory / UNFINISHED
            self._final = {table: TableFile(unfinished, table) for table in simulation.tables}
        self._truth = (directory / "truth.jsonl").open("wb") if truth else None
        self.start = simulation.snapshot()
        """The dictionary at the start."""
        write_dictionary(self.start, directory)
        for table in simulation.tables:
            write_rows(directory / "tables", table, first_rows(table), self.start.scn)

    def write_truth(self) -> None:
        """Write the lines of all committed transactions to ``truth.jsonl``."""
        committed = self.simulation.take_committed()
        if self._truth is not None:
            self._truth.writelines(line.encode() + b"\n" for line in truth_lines(committed))
            self._truth.flush()
        for one in committed:  # rows and blocks keep references to transactions
            one.changes, one.delivered = [], []
        if self._final:
            for table, rows in self.simulation.take_finished().items():
                self._final[table].add_rows((row.rowid, row.cells) for row in rows)

    def write_all(self, size: int) -> Summary:
        """Run the simulation for about `size` bytes of redo, and end it."""
        simulation = self.simulation
        left = size
        while left > 0 or left == size:
            simulation.work(min(STEP_BYTES, left))
            left = size - simulation.instance.redo_bytes
            self.write_truth()
            if self._truth is None:
                simulation.forget_undo()
        simulation.end()
        return self.end()

    def end(self) -> Summary:
        """Finish the truth; write the final tables and the final dictionary.

        Returns:
            The summary, without the logs.
        """
        self.write_truth()
        if self._truth is not None:
            self._truth.close()
        simulation, final = self.simulation, self._directory / "final"
        rows = {table.full_name: len(table.live) for table in simulation.tables}
        for table, file in self._final.items():
            file.add_rows(last_rows(table))
            file.close(simulation.instance.scn)
            rows[table.full_name] = file.rows
        if self._final:
            (self._directory / UNFINISHED).rename(final)
        else:
            for table in simulation.tables:
                write_rows(final, table, last_rows(table), simulation.instance.scn)
        write_snapshot(simulation.snapshot(), str(final / "dictionary.json"))
        return Summary(
            *(simulation.seed, simulation.shape, self.start),
            *(simulation.transactions, simulation.changes),
            *(rows, simulation.tables),
        )


def first_rows(table: SimTable) -> list[tuple[str, list[Cell | None]]]:
    """Return the rows that exist before the first log, each with its ROWID."""
    return [(rowid, list(cells.values())) for rowid, cells in table.at_start.items()]


def last_rows(table: SimTable) -> list[tuple[str, list[Cell | None]]]:
    """Return the current rows in the order of their addresses; no transaction may be open."""
    rows = sorted(table.live, key=lambda row: (row.block.dba, row.slot))
    return [(row.rowid, row.cells) for row in rows]


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text file."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


def log_files(folder: Path, logs: list[Path]) -> LogSink:
    """Return a sink that writes logs into a folder and notes their paths."""

    def archive(log: OpenLog, next_scn: int, time: int) -> None:
        path = folder / log.name
        path.write_bytes(log.close(next_scn, time))
        logs.append(path)

    return archive


def prepare_directory(directory: Path) -> Path:
    """Create ``logs/`` in a directory.

    Raises:
        OlrPgError: 8002, the folder cannot be created or already contains files.
    """
    try:
        (directory / "logs").mkdir(parents=True, exist_ok=True)
        taken = any((directory / "logs").iterdir())
    except OSError as error:
        raise OlrPgError(
            Code.SIMULATION_DIRECTORY_UNUSABLE, f"{directory}: {system_reason(error)}"
        ) from error
    if taken:
        raise OlrPgError(Code.SIMULATION_DIRECTORY_UNUSABLE, f"{directory / 'logs'} is not empty")
    return directory
