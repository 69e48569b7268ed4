"""Makes a source database from a seed: archived logs, dictionary snapshot, truth.

For the same seed, workload and size, the simulation makes the same bytes, on every machine.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.model import Snapshot
from olr_pg.errors import Code, OlrPgError
from olr_pg.simulator.database_shape import (
    DEFAULT_SIZE,
    DatabaseShape,
    choose_shape,
    demo_shape,
    draw_shape,
    start_containers,
    start_instance,
    start_session,
)
from olr_pg.simulator.fields.redo_format import UNDECODED_MODES, SourceMode
from olr_pg.simulator.fields.row_fields import lay_out, stored_columns
from olr_pg.simulator.model.shop_inventory import table_structure, write_dictionary
from olr_pg.simulator.model.storage import ROW_SPACE, WIDE_BLOCK_SIZE, WIDE_ROW_SPACE
from olr_pg.simulator.model.tables import SimTable
from olr_pg.simulator.model.transactions import delivered_changes
from olr_pg.simulator.named_simulation import NAMED, NamedSimulation
from olr_pg.simulator.sessions.placement import TableSpec, place_table
from olr_pg.simulator.sessions.sys_dictionary import SysDictionary
from olr_pg.simulator.sessions.workload import DdlUse, LobWorkload, RandomWorkload, random_row
from olr_pg.simulator.simulated_files import (
    SimulatedFiles,
    Summary,
    log_files,
    prepare_directory,
    write_lines,
)
from olr_pg.simulator.stamping.redo_copies import COPIED_FROM, copy_template, template_for
from olr_pg.simulator.truth import (
    ddl_lines,
    tables_at,
    truth_lines,
    undecoded_lines,
    unlogged_lines,
    write_rows,
)
from olr_pg.simulator.writer.noise import Noise
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.simulator.fields.cells import Cell
    from olr_pg.simulator.model.transactions import Transaction
    from olr_pg.simulator.sessions.session import SimSession
    from olr_pg.simulator.truth import Rows
    from olr_pg.simulator.writer.instance import Container

ROW_SPACES: Final = (400, 2000, ROW_SPACE)
PIECE_SIZES: Final = (1900, 1900, ROW_SPACE)
"""Maximum bytes of a row piece in blocks of 2 and 8 kB."""
LEFT_OPEN: Final = 0.1
LEAF_LOADS: Final = 0.8
"""Probability that an index-organised table is created from a query, in the mode LEAF_LOADS."""

ENCRYPTED_TABLES: Final = 0.4
"""Probability that a table is encrypted, in the mode ENCRYPTED."""


def random_workload(rng: Random, shape: DatabaseShape, container: int) -> RandomWorkload:
    """Make the random workload of a container."""
    owner = ("SIM", "SIM" if shape.twins else "OTHER")[container]
    return RandomWorkload(
        rng, shape.logging, owner, lobs=shape.lobs, ddl=shape.ddl, unlogged=shape.unlogged
    )


def lob_workload(rng: Random, shape: DatabaseShape, container: int) -> RandomWorkload:
    """Make the workload `lobs` of a container."""
    owner = ("DOCS", "DOCS" if shape.twins else "OTHER")[container]
    return LobWorkload(rng, shape.logging, owner, lobs=shape.lobs)


MODELLED: Final = {"random": random_workload, "lobs": lob_workload}
"""The workloads that the row-by-row model carries out."""

WORKLOADS: Final = (*MODELLED, *NAMED)


class Simulation:
    """A database and its sessions, from the first log to the last.

    Args:
        seed: determines all random choices.
        directory: the output directory; it must contain ``logs/``.
        shape: the database; drawn from the seed if it is None.
        workload: creates the workload of a container; its last argument is the number of the
            container.
        prefilled: the tables have rows before the first redo.
    """

    def __init__(
        self,
        seed: int,
        directory: Path,
        shape: DatabaseShape | None,
        workload: Callable[[Random, DatabaseShape, int], RandomWorkload] = random_workload,
        *,
        prefilled: bool = False,
    ) -> None:
        self._rng = Random(seed)  # noqa: S311 - reproducible, not secret
        self._seed = seed
        self._directory = directory
        drawn = draw_shape(self._rng)
        self.shape = shape or drawn
        self.logs = list[Path]()
        archive = log_files(directory / "logs", self.logs)
        self.instance = start_instance(seed, self._rng, self.shape, archive)
        self._threads, self._start_scn = self.instance.threads, self.instance.scn
        self.containers = start_containers(self.instance, self.shape)
        self._workloads = [
            workload(self._rng, self.shape, number) for number in range(len(self.containers))
        ]
        for container, work in zip(self.containers, self._workloads, strict=True):
            container.tables = [
                self._make_table(number, spec) for number, spec in enumerate(work.tables())
            ]
            self._encrypt(container)
            if prefilled:
                self._fill(container)
        self._dictionaries = [self._dictionary(container) for container in self.containers]
        told = self.containers if self.shape.twins else self.containers[:1]
        self._snapshots = [self._snapshot(number) for number in range(len(told))]
        self.start = self._snapshots[0]
        self._first_columns = {table: table.columns for one in told for table in one.tables}
        self._sessions = self._connect()
        self._background_bytes = 0
        self._noise = [Noise(self.instance, container, self._rng) for container in self.containers]
        self._create_tables()

    def _make_table(self, number: int, spec: TableSpec) -> SimTable:
        piece_max = self._rng.choice(PIECE_SIZES)
        row_space = min(piece_max, self._rng.choice(ROW_SPACES))
        if spec.block_size == WIDE_BLOCK_SIZE:
            piece_max = row_space = WIDE_ROW_SPACE
        table = place_table(number, spec, self._start_scn)
        table.row_space, table.piece_max = row_space, piece_max
        table.row_scn = self.shape.redo.row_scn_size if spec.row_dependencies else 0
        return table

    def _encrypt(self, container: Container) -> None:
        """In the mode ENCRYPTED, put some tables into encrypted tablespaces, at least one."""
        if SourceMode.ENCRYPTED in self.instance.modes:
            for table in container.tables:
                table.encrypted = self.instance.mode_rng.random() < ENCRYPTED_TABLES
            container.tables[0].encrypted |= not any(one.encrypted for one in container.tables)

    def _fill(self, container: Container) -> None:
        """Fill tables with rows of one piece, whose LOBs are NULL."""
        for table in container.tables:
            for _ in range(self._rng.choice((0, 5, 40))):
                cells = [
                    None if at in table.lobs else cell
                    for at, cell in enumerate(random_row(self._rng, table))
                ]
                if len(lay_out(stored_columns(cells), table.piece_max)) == 1:
                    table.store(cells, self._start_scn)

    def _dictionary(self, container: Container) -> SysDictionary | None:
        """Make the SYS tables with the container's tables; None if the workload has no DDL."""
        if self.shape.ddl is DdlUse.NONE:
            return None
        dictionary = SysDictionary(container.tables[0].owner, self._start_scn)
        for table in container.tables:
            dictionary.create_table(None, table)
        return dictionary

    def _connect(self) -> list[tuple[SimSession, int]]:
        sessions: list[tuple[SimSession, int]] = []
        for number in range(self.shape.sessions * len(self.containers)):
            at = number % len(self.containers)
            thread = self._threads[number // len(self.containers) % len(self._threads)]
            of = self.instance, self.containers[at], thread, number, self._dictionaries[at]
            sessions.append((start_session(*of), at))
        return sessions

    def _create_tables(self) -> None:
        """In the mode LEAF_LOADS, create some index-organised tables from a query."""
        instance = self.instance
        before = instance.redo_bytes
        for session, at in self._sessions[: len(self.containers)]:
            for table in self.containers[at].tables:
                if table.index_organised and instance.chooses(SourceMode.LEAF_LOADS, LEAF_LOADS):
                    count = instance.mode_rng.choice((1, 5, 30))
                    rows = [random_row(instance.mode_rng, table) for _ in range(count)]
                    session.create_as_select(table, rows)
        self._background_bytes += instance.redo_bytes - before

    def run(self, size: int) -> None:
        """Run until the sessions have written `size` bytes of redo, then archive all redo."""
        self.work(size)
        self.end()

    def work(self, size: int) -> None:
        """Run until the sessions have written about `size` bytes of redo in total."""
        rng, instance = self._rng, self.instance
        while instance.redo_bytes - self._background_bytes < size:
            session, at = rng.choice(self._sessions)
            self._workloads[at].step(session, self.containers[at].tables)
            if rng.random() < self._noise[at].share:
                before = instance.redo_bytes
                self._noise[at].write(rng.choice(self._threads))
                self._background_bytes += instance.redo_bytes - before
            if rng.random() < 0.002:
                rng.choice(self._threads).switch()

    def commit_all(self) -> None:
        """Commit the transactions of all sessions."""
        self._finish_parallel()
        for session, _ in self._sessions:
            session.commit()

    def end(self) -> None:
        """Commit most of the open transactions, and archive all redo."""
        self._finish_parallel()
        for session, _ in self._sessions:
            if self._rng.random() >= LEFT_OPEN:
                session.commit()
        self.instance.shut_down()

    def _finish_parallel(self) -> None:
        for workload in self._workloads:
            workload.finish()

    def committed(self) -> list[Transaction]:
        """Return the transactions that are delivered, in commit order."""
        told = {one.con_id for one in self.containers[: len(self._snapshots)]}
        own = [t for t in self.instance.committed if t.con_id in told]
        return sorted(own, key=lambda t: (t.commit_scn, t.commit_delay, t.thread))

    @property
    def _tables(self) -> list[SimTable]:
        """The tables whose changes are in the truth."""
        told = self.containers[: len(self._snapshots)]
        return [table for one in told for table in one.tables]

    def _snapshot(self, number: int) -> Snapshot:
        """Return the current dictionary of a container."""
        container = self.containers[number]
        dictionary = self._dictionaries[number]
        described = [*container.tables, *(dictionary.tables.values() if dictionary else ())]
        return Snapshot(
            self._start_scn,
            self.instance.describe(container),
            tuple(table.describe() for table in described),
            dictionary.rows(container.tables) if dictionary else None,
            structure=table_structure(container.tables),
        )

    def write(self) -> Summary:
        """Write the snapshot and the truth next to the logs."""
        snapshot, transactions = self.start, self.committed()
        tables = tuple(self._tables)
        write_dictionary(snapshot, self._directory)
        for other in self._snapshots[1:]:
            write_dictionary(other, self._directory, of_container=True)
        if self.shape.twins:  # a decoder of both containers uses these names
            for container in self.containers:
                for table in container.tables:
                    table.owner = f"{container.name}.{table.owner}"
        write_lines(self._directory / "truth.jsonl", truth_lines(transactions))
        write_lines(self._directory / "ddl.jsonl", ddl_lines(transactions))
        own = self.containers[0].con_id
        if self.shape.unlogged:
            ranges = [one for one in self.instance.unlogged if one.con_id == own]
            write_lines(self._directory / "unlogged.jsonl", unlogged_lines(ranges))
        if self.shape.modes & UNDECODED_MODES:
            told = {one.con_id for one in self.containers[: len(self._snapshots)]}
            vectors = [one for one in self.instance.undecoded if one.con_id in told]
            write_lines(self._directory / "undecoded.jsonl", undecoded_lines(vectors))
        if self.shape.unlogged or self.shape.modes & UNDECODED_MODES:
            for transaction in transactions:
                transaction.delivered = delivered_changes(transaction, unlogged=True)
            write_lines(self._directory / "source.jsonl", truth_lines(transactions))
            for transaction in transactions:
                transaction.delivered = delivered_changes(transaction)
        rows = self.final_rows()
        for table, columns in self._first_columns.items():
            name = table.former_names[0][1] if table.former_names else table.name
            old = replace(table, columns=columns, name=name)
            first = _complete(old, table.at_start)
            write_rows(self._directory / "tables", old, first, self._start_scn)
        for table in tables:
            final = _complete(table, rows[table.full_name])
            seen = replace(table, columns=tuple(c for c in table.columns if not c.unused))
            write_rows(self._directory / "final", seen, final, self.instance.scn)
        changes = dict.fromkeys(DmlKind, 0)
        for transaction in transactions:
            for change in transaction.delivered:
                changes[change.kind] += 1
        return Summary(
            *(self._seed, self.shape, snapshot),
            *(sum(bool(transaction.delivered) for transaction in transactions), changes),
            {name: len(images) for name, images in rows.items()},
            tables,
            dict(self.instance.unrecoverable),
            others=tuple(self._snapshots[1:]),
            parallel=tuple(self.instance.parallel_ends),
        ).with_logs(self.logs)

    def final_rows(self) -> dict[str, Rows]:
        """Return the committed rows of each table by ROWID."""
        named = dict.fromkeys((*self._first_columns, *self._tables))
        return tables_at(named, self.committed(), self.instance.scn)


def _complete(table: SimTable, rows: Rows) -> Iterator[tuple[str, list[Cell | None]]]:
    """Yield ROWID and values of the columns in use; as in the truth, NULL reads as the default of a
    column that was added with one.
    """
    used = [(number, one.default) for number, one in enumerate(table.columns) if not one.unused]
    for identity, image in sorted(rows.items()):
        rowid = "" if table.index_organised else identity
        yield rowid, [image.get(number) or default for number, default in used]


def simulate(
    seed: int,
    out_dir: Path | str,
    *,
    workload: str = "random",
    size: int = DEFAULT_SIZE,
    shape: DatabaseShape | None = None,
    truth: bool = True,
    prefilled: bool = False,
    copies: bool = True,
) -> Summary:
    """Write logs, dictionary, truth and tables into `out_dir` (see docs/simulator.md).

    Args:
        seed: determines all choices that no argument makes.
        out_dir: the output directory, which is created if it does not exist; it must not contain
            logs.
        workload: one of `WORKLOADS`.
        size: approximate bytes of redo to write; for the workloads `MODELLED`, without background
            redo.
        shape: the database; drawn from the seed if it is None.
        truth: write ``truth.jsonl``; the random workload always does.
        prefilled: the tables have rows before the first redo, and ``tables/`` contains these rows;
            the table of `bulk` has none.
        copies: for a named workload with much redo, let the model write only a part of it, and make
            copies of this part. If redo cannot be copied, the model writes all of it.

    Raises:
        OlrPgError: 8001 unknown workload, 8002 the directory cannot be used.
    """
    directory = prepare_directory(Path(out_dir))
    if workload not in WORKLOADS:
        known = ", ".join(WORKLOADS)
        raise OlrPgError(
            Code.WORKLOAD_UNKNOWN, f"no workload is named {workload!r}: there are {known}"
        )
    if workload in MODELLED:
        own = shape or choose_shape(seed, workload, size=size)
        simulation = Simulation(seed, directory, own, MODELLED[workload], prefilled=prefilled)
        simulation.run(size)
        return simulation.write()
    own = shape or demo_shape(size)
    if copies and size >= COPIED_FROM and own.rows.can_be_copied:
        template = template_for(seed, workload, own, size, prefilled=prefilled)
        return copy_template(template, size, directory, truth=truth, logs=directory / "logs")
    logs = list[Path]()
    archive = log_files(directory / "logs", logs)
    named = NamedSimulation(seed, workload, own, size, archive, prefilled=prefilled)
    files = SimulatedFiles(named, directory, truth=truth, forgets=size >= COPIED_FROM)
    return files.write_all(size).with_logs(logs)
