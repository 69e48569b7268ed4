"""Histories with partitioned tables, into targets that are partitioned in the same or another way.

    uv run python -m tests.simulation --partitions --seed 7

DDL on partitions of the source comes amid open transactions, with the faults of other histories.
The law: a table has exactly the rows of the source, or it has stopped at such DDL (or at a row for
which the target has no partition), with everything before applied and everything since held; no
other table stops. Some histories stop tables at such DDL by `apply.ddl`. In the others, where the
target has the partitions of the source, and none of them has changed, it must not stop. Then an
operator does what docs/ddl.md advises (removes the rows, or exchanges them, and skips the DDL; or
gives the target the partitions of the source and retries; or adds a default partition), and in the
end all tables are equal.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import sql

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.stopped.error_table import read_errors, skip_error
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target_checks import check_target
from olr_pg.config.reading import load_config
from olr_pg.dictionary.table_list import query_tables
from olr_pg.observability.findings import Severity
from olr_pg.scalars import format_xid, pack_xid
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.sessions.workload import DdlUse
from olr_pg.simulator.simulated_files import prepare_directory
from olr_pg.simulator.simulation import Simulation as Source
from tests.simulation.entry import applier_of
from tests.simulation.laws import NOTHING, Error, LawBrokenError, read_held, read_ledger
from tests.simulation.partitioned_source import Method, PartitionedWorkload
from tests.simulation.partitioned_target import (
    EXACT,
    REST,
    Layout,
    TargetTable,
    draw_layout,
    exact_layout,
)
from tests.simulation.plan import draw_plan
from tests.simulation.proxy import LOOPBACK
from tests.simulation.run import Simulation, run_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.stopped.error_table import ErrorLine
    from olr_pg.config.model import Config
    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.simulated_files import Summary
    from tests.simulation.laws import Applied, Identity
    from tests.simulation.partitioned_source import Done
    from tests.simulation.plan import Plan
    from tests.simulation.run import Bench, Outcome
    from tests.simulation.truth import SourceTransaction

    Connection = psycopg.Connection[tuple[Any, ...]]

LOG_BYTES: Final = (12_000, 25_000, 50_000)
SIZES: Final = (100_000, 200_000)

KEYS: Final = {
    "truncate_partition": "truncate-partition",
    "drop_partition": "drop-partition",
    "exchange": "exchange-partition",
}
"""The keys of this DDL in ``apply.ddl``."""

STOPPED_BY_POLICY: Final = 0.12
"""The probability that a kind of this DDL stops its table whatever the target has."""

REGROUPING: Final = (
    *("split", "merge", "rename_partition", "drop_partition", "add_values", "drop_values"),
    *("coalesce", "add_hash"),
)
"""DDL after which names of partitions stand for other rows."""

NO_PARTITION: Final = "no partition of relation"
ACTIONS_MAX: Final = 200
"""How often the operator acts in one history at most."""


def draw_partitioned_plan(seed: int) -> Plan:
    """The plan of a seed, with partitioned tables in the place of its others."""
    plan, rng = draw_plan(seed), Random(seed ^ 0x9A27)
    drawn = choose_shape(seed, "random", threads=plan.shape.threads)
    pace = replace(
        drawn.pace,
        log_blocks=rng.choice(LOG_BYTES) // drawn.redo.block_size,
        commit_new_scn=plan.shape.pace.commit_new_scn,
    )
    shape = replace(
        drawn,
        logging=plan.shape.logging,
        sessions=max(drawn.sessions, drawn.threads, rng.randint(2, 4)),
        pace=pace,
        ddl=DdlUse.FOLLOWED,
    )
    return replace(plan, workload="random", shape=shape, size=rng.choice(SIZES))


def run_partitioned_seed(seed: int, bench: Bench) -> Outcome:
    """Run a seed, as `run_seed` does."""
    return run_seed(seed, bench, draw_partitioned_plan, PartitionedSimulation)


class PartitionedSimulation(Simulation):
    """One seed at work, whose targets are partitioned.

    Attributes:
        layouts: of the target tables that an operator has not made anew.
        policies: the DDL on partitions that stops its table, as configured.
    """

    def __init__(self, plan: Plan, bench: Bench, stack: ExitStack) -> None:
        self.workloads = list[PartitionedWorkload]()
        super().__init__(plan, bench, stack)
        self.rng = Random(plan.seed ^ 0x7A46)
        self.layouts: dict[str, Layout] = {}
        self._done = {_identity(one): one for one in self.workload.done}
        self._known = frozenset[str]()
        self._tried = set[tuple[str, tuple[int, str]]]()
        self._keys = {one.full_name: [one.columns[at].name.lower() for at in one.key]
                      for one in self._tables}  # fmt: skip
        self._make_targets()
        self.judge = self

    @property
    def workload(self) -> PartitionedWorkload:
        """The workload of the container that is replicated."""
        return self.workloads[0]

    def write_source(self, folder: Path) -> Summary:
        """Write the source's logs, dictionary and truth."""

        def make(rng: Random, shape: DatabaseShape, container: int) -> PartitionedWorkload:
            owner = ("SIM", "OTHER")[container]
            self.workloads.append(PartitionedWorkload(rng, shape.logging, owner, shape.lobs))
            return self.workloads[-1]

        source = Source(self.plan.seed, prepare_directory(folder), self.plan.shape, make)
        source.run(self.plan.size)
        return source.write()

    def ddl_policies(self) -> dict[str, str]:
        """The section ``apply.ddl``, in which some DDL on partitions stops its table."""
        rng = Random(self.plan.seed ^ 0x9011)
        self.policies = {kind for kind in KEYS if rng.random() < STOPPED_BY_POLICY}
        return super().ddl_policies() | {KEYS[kind]: "stop" for kind in self.policies}

    def _make_targets(self) -> None:
        """Make the tables as ``doctor`` says, then with the partitions that are drawn."""
        config = load_config(self.folder / "config.json")
        assert config.apply is not None
        self.settings: ApplierSettings = replace(
            applier_of(config, (LOOPBACK, 1))._settings, connect_string=self.postgres_string
        )
        self.connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.schema)))
        settings = replace(self.settings, create_tables=False)
        for one in check_target(settings, query_tables(self.snapshot, self.query)):
            if one.severity is Severity.ERROR and one.mend[0].startswith("CREATE TABLE"):
                self.connection.execute(one.mend[0].encode())
        for table, partitioning in self.workload.partitionings.items():
            start = self._at_start(table)
            layout = draw_layout(self.rng, replace(partitioning, bounds=list(start)))
            self.layouts[table] = layout
            if layout.by:
                self.target(table).partition(layout, self._keys[table])

    def _at_start(self, table: str) -> Sequence[tuple[int | None, ...]]:
        first = next((one for one in self.workload.done if one.table == table), None)
        own = self.workload.partitionings[table].bounds if first is None else first.bounds
        return list(own)

    def target(self, table: str) -> TargetTable:
        """The target table of a source table."""
        return TargetTable(self.connection, self.schema, _name(table))

    # --- the law ---

    @property
    def may_stop(self) -> bool:
        """Whether a table may have stopped."""
        return True

    def stopped_anew(self, ledger: dict[str, Applied]) -> bool:
        """Whether a table has stopped of which that is not known."""
        known, stopped = self._known, frozenset(name for name, one in ledger.items() if one.stopped)
        self._known = stopped
        return not stopped <= known

    def wrong_errors(self, errors: Sequence[Error]) -> list[Error]:
        """The errors that should not be there."""
        return [one for one in errors if not self._is_due(one)]

    def _is_due(self, error: Error) -> bool:
        done = self._done.get((error.commit_scn, error.xid))
        if error.operation == "ddl":
            concerned = done is not None and error.table in (done.table, done.other)
            return (
                done is not None and concerned and done.kind in KEYS and not self._must_follow(done)
            )
        is_partitioned = error.table in self.workload.partitionings
        layout = self.layouts.get(error.table)
        may_lack = layout is None or not any(name == REST for name, _ in layout.parts)
        return is_partitioned and NO_PARTITION in error.message and may_lack

    def _must_follow(self, done: Done) -> bool:
        """Whether the target has exactly the partition that DDL is about."""
        layout = self.layouts.get(done.table)
        partitioning = self.workload.partitionings[done.table]
        earlier = [
            one
            for one in self.workload.done[: self.workload.done.index(done)]
            if one.table == done.table and one.kind in REGROUPING
        ]
        return (
            layout is not None
            and layout.name in EXACT
            and partitioning.method is not Method.HASH
            and done.partitions[0] in partitioning.names
            and not earlier
            and done.kind != "exchange"
            and done.kind not in self.policies
            and not self._nullable(done.table)
        )

    def _nullable(self, table: str) -> bool:
        """Whether rows may have NULL in the partition column, for which PostgreSQL's ranges have no
        place.
        """
        column = self.workload.partitionings[table].column
        own = next(one for one in self._tables if one.full_name == table)
        return own.columns[column].nullable

    # --- the operator ---

    def after_round(self) -> None:
        """Let an operator do what stopped tables need, more often than not."""
        if self.rng.random() < 0.7:
            self._operate()
            self.check()

    def _run_last(self) -> None:
        """Run to the end, with the operator; then again, which changes nothing."""
        config = load_config(self.folder / "config.json")
        self.replicate(config)
        self.check()
        self._operate()
        super()._run_last()
        ledger = read_ledger(self.connection, self.subscription)
        if any(one.stopped for one in ledger.values()):
            raise LawBrokenError(f"tables are stopped after the operator's actions: {ledger}")

    def _check_schema(self, config: Config, stopped: set[str]) -> None:
        """Law 5 for the tables whose target has the source's key."""
        other = {
            table
            for table in self.workload.partitionings
            if "k" not in self._keys[table] or self.layouts.get(table, Layout("none")).by == ""
        }
        super()._check_schema(config, stopped | other)

    def _operate(self) -> None:
        """Act until no table is stopped."""
        with connect(self.postgres_string) as connection:
            for _ in range(ACTIONS_MAX):
                lines = read_errors(connection, self.subscription, resolved=False)
                if not lines:
                    return
                for table in dict.fromkeys(one.source_table for one in lines):
                    self._resume(connection, table)
            raise LawBrokenError(f"the operator's actions do not help: {lines}")

    def _resume(self, connection: Connection, table: str) -> None:
        """Act on the error of a table, then apply what it holds."""
        lines = read_errors(connection, self.subscription, resolved=False)
        line = next((one for one in lines if one.source_table == table), None)
        if line is None:
            return
        identity = line.commit_scn, line.xid
        if line.operation != "ddl":
            self._add_rest(table)
        elif table in self.workload.partitionings:
            self._act(connection, line, self._done[identity])
        replay(connection, self.settings, table)

    def _add_rest(self, table: str) -> None:
        """Add a default partition, unless the target needs none."""
        if self.target(table).add_rest():
            self.layouts.pop(table, None)

    def _act(self, connection: Connection, line: ErrorLine, done: Done) -> None:
        identity = line.commit_scn, line.xid
        partitioning = self.workload.partitionings[done.table]
        if done.other and self._first_held(done.other) not in (None, identity):
            replay(connection, self.settings, done.other)
        tried = (done.table, identity) in self._tried
        self._tried.add((done.table, identity))
        if not tried and partitioning.method is not Method.HASH and self.rng.random() < 0.5:
            self._split_too(done)
            return
        if done.other and self._first_held(done.other) not in (None, identity):
            return  # its own error comes first
        self._change_rows(done, identity)
        with connection.transaction():
            skip_error(connection, self.subscription, line.id)

    def _first_held(self, table: str) -> Identity | None:
        held = read_held(self.connection, self.subscription).get(table)
        return min(held) if held else None

    def _split_too(self, done: Done) -> None:
        """Give the target the partitions that the source had before DDL."""
        partitioning = self.workload.partitionings[done.table]
        layout = exact_layout(partitioning, done.names, done.bounds, self.rng)
        if self._nullable(done.table) and partitioning.method is Method.RANGE:
            parts = [(name, "DEFAULT" if "MAXVALUE" in bound else bound)
                     for name, bound in layout.parts]  # fmt: skip
            layout = replace(layout, parts=tuple(parts))
        self.layouts.pop(done.table, None)
        self.target(done.table).partition(layout, self._keys[done.table])
        self.connection.execute(
            "DELETE FROM olr_pg.partition WHERE subscription = %s AND source_table = %s",
            (self.subscription, done.table),
        )

    def _change_rows(self, done: Done, identity: Identity) -> None:
        """Do with the target's rows what DDL did with the source's."""
        gone, come = self._ids(done.table, identity)
        own = sql.Identifier(self.schema, _name(done.table))
        if done.other:
            other = sql.Identifier(self.schema, _name(done.other))
            if come:
                self._add_rest(done.table)
            with self.connection.transaction():
                for words in (
                    "CREATE TEMPORARY TABLE coming ON COMMIT DROP AS SELECT * FROM {other}",
                    "DELETE FROM {other}",
                    "INSERT INTO {other} SELECT * FROM {own} WHERE id = ANY({gone})",
                    "DELETE FROM {own} WHERE id = ANY({gone})",
                    "INSERT INTO {own} SELECT * FROM coming",
                ):
                    self.connection.execute(
                        sql.SQL(words).format(other=other, own=own, gone=sql.Literal(gone))
                    )
            return
        delete = sql.SQL("DELETE FROM {} WHERE id = ANY(%s)").format(own)
        self.connection.execute(delete, (gone,))

    def _ids(self, table: str, identity: Identity) -> tuple[list[Any], list[Any]]:
        """The keys of the rows that DDL takes away from a table, and of those that it brings."""
        ledger = read_ledger(self.connection, self.subscription)
        held = read_held(self.connection, self.subscription)

        def before(one: SourceTransaction, name: str) -> bool:
            is_held = one.identity in held.get(name, ())
            return ledger.get(name, NOTHING).has(one) and not is_held

        def after(one: SourceTransaction, name: str) -> bool:
            return one.identity == identity or before(one, name)

        was, now = self._keys_of(table, before), self._keys_of(table, after)
        return sorted(was - now), sorted(now - was)

    def _keys_of(self, table: str, applied: Callable[[SourceTransaction, str], bool]) -> set[Any]:
        return {row["ID"] for row in self.truth.rows(table, applied)}


def _name(table: str) -> str:
    return table.partition(".")[2].lower()


def _identity(done: Done) -> Identity:
    """Commit SCN and XID of DDL, as the truth has them."""
    one = done.transaction
    return one.commit_scn, format_xid(pack_xid(one.segment.usn, one.slot, one.sequence))
