"""The end-to-end judge: initial load, `run --once`, and verification of every row.

Each scenario is replicated with its own subscription to its own schema. Both are removed
afterwards.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg import sql
from pydantic import SecretStr

from olr_pg.appliance.appliance import run_appliance
from olr_pg.applier.target.connection import connect
from olr_pg.config.address import LOOPBACK, Address
from olr_pg.config.filter import Filter
from olr_pg.config.model import Apply, Config, Context, DdlSection, Target
from olr_pg.config.port_sections import Status
from olr_pg.config.table_patterns import OWN_SCHEMA, TableName
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import sources
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.load.lob_fetching import fetch_lobs
from olr_pg.load.verification.verification import verify
from olr_pg.observability.wording import counted
from olr_pg.proving.verdicts import Verdict, Word
from olr_pg.schema.followed_steps import step_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from olr_pg.errors import Place
    from olr_pg.load.table_data import SourcePartition, SourceTable, TableData
    from olr_pg.load.verification.verification import VerifiedTable
    from olr_pg.oracle.key_cuts import LargeRow

SUBSCRIPTION: Final = "olr_pg_prove"
SCHEMA: Final = "olr_pg_prove"
WORK: Final = "work"
"""The folder in the command's directory with the files of the current scenario."""
EMBEDDED: Final = Apply.model_validate({"connect-string": "embedded", "tables": ["PROVE.NONE"]})
"""The `apply` section that is used if no target is configured."""

_STOPPED: Final = """
SELECT source_table, operation, code, message FROM olr_pg.error
WHERE subscription = %s AND resolution = 'stopped' ORDER BY id
"""
_SUBSCRIBED: Final = """
SELECT table_name FROM information_schema.columns
JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = %s AND column_name = 'subscription' AND table_type = 'BASE TABLE'
"""
_WRONG: Final = (Code.CHANGE_REFUSED, Code.CHANGE_CONFLICTS)
"""Errors that stop a table because its changes do not match its rows. Other errors that stop a
table count as refusals.
"""
_GRAVITY: Final = (Word.DIFFERS, Word.REFUSED, Word.UNTRIED, Word.RIGHT)


def scenario_config(
    config: Config, owner: str, tables: Sequence[str], target: str, data: Path
) -> Config:
    """Return the configuration that replicates exactly a scenario's tables.

    Args:
        owner: the owner of the scratch schema.
        tables: names of the tables.
        target: the target's connection string.
        data: the directory to use as `context.data`.
    """
    source = config.source
    if source.kind == "oracle" and source.vault is not None:
        vault = source.vault.model_copy(update={"directory": data / "vault"})
        source = source.model_copy(update={"vault": vault})
    own = {
        "connect_string": SecretStr(target),
        "tables": tuple(TableName(owner, name) for name in tables),
        "subscription": SUBSCRIPTION,
        "create_tables": True,
        "start_scn": 0,
        "schema_mapping": {owner: SCHEMA},
        "table_mapping": {},
        "on_conflict": "error",
        "ddl": DdlSection(),
    }
    given = config.apply or EMBEDDED
    return config.model_copy(
        update={
            "source": source,
            "context": Context.model_validate({"data": str(data)}).model_copy(
                update={"memory": config.context.memory}
            ),
            "apply": given.model_copy(update=own),
            "filter": Filter(),
            "target": Target().model_copy(update={"address": Address(LOOPBACK, 0)}),
            "status": Status().model_copy(update={"enabled": False}),
            "metrics": None,
        }
    )


class SmallPartition(NamedTuple):
    """A partition of a table that is reported as small, so that Spark is not started for it."""

    inner: SourcePartition

    @property
    def rows(self) -> int:
        """See `SourcePartition.rows`."""
        return self.inner.rows

    @property
    def size(self) -> int:
        """See `SourcePartition.size`."""
        return 0

    @property
    def place(self) -> dict[str, Place]:
        """See `SourcePartition.place`."""
        return self.inner.place

    def batches(self) -> Iterator[pa.RecordBatch | LargeRow]:
        """See `SourcePartition.batches`."""
        return self.inner.batches()


def _small(data: TableData) -> TableData:
    return replace(data, partitions=tuple(map(SmallPartition, data.partitions)))


class WholeWay:
    """A target for scenarios, one after the other.

    Args:
        config: the configuration of the command.
        owner: the owner of the scratch schema.
        target: the target's connection string.
        out: the directory of the command. A file in it records that the target had no ledger
            before, so that the next run knows this if this one is killed.
        session: returns the Spark session; called only if there is too much data for this process.
    """

    def __init__(
        self,
        config: Config,
        owner: str,
        target: str,
        out: Path,
        session: Callable[[], SparkSession],
    ) -> None:
        self._config, self._owner, self._target = config, owner, target
        self._data, self._note, self._session = out / WORK / "data", out / "made-ledger", session
        self._refused: Verdict | None = None
        self._restarts = 0
        with self._connected() as connection:
            if not _has_schema(connection, OWN_SCHEMA):
                self._note.touch()

    def _connected(self) -> psycopg.Connection[Any]:
        return connect(self._target, replica=None)

    def clear(self) -> None:
        """Remove the objects and files that a scenario has left in the target and on disk."""
        shutil.rmtree(self._data, ignore_errors=True)
        with self._connected() as connection:
            connection.execute(
                sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(SCHEMA))
            )
            tables = [
                sql.Identifier(OWN_SCHEMA, name)
                for (name,) in connection.execute(_SUBSCRIBED, (OWN_SCHEMA,)).fetchall()
            ]
            others = False
            for table in tables:
                delete = sql.SQL("DELETE FROM {} WHERE subscription = %s").format(table)
                connection.execute(delete, (SUBSCRIPTION,))
                some = connection.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(table))
                others = others or some.fetchone() is not None
            # Keep the ledger if another subscription now uses it.
            if self._note.exists() and not others:
                connection.execute(
                    sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(OWN_SCHEMA))
                )

    def end(self) -> None:
        """Remove the objects and files, and the file `note`."""
        self.clear()
        self._note.unlink(missing_ok=True)

    def load(self, tables: Sequence[str]) -> None:
        """Load the current rows of the tables.

        Raises:
            OlrPgError: the error of the first table that is not loaded.
        """
        self._refused, self._restarts = None, 0
        config = scenario_config(self._config, self._owner, tables, self._target, self._data)
        self._data.mkdir(parents=True, exist_ok=True)
        with sources.open_tables(config, for_load=True) as source:
            settings = sources.target_settings(config, source.snapshot, self._target)
            work = self._work(source.sources(source.choose(())))
            done = initial_load(settings, work, self._session, LoadOptions())
        if done.failures:
            raise done.failures[0]

    def go_on(self, tables: Sequence[str]) -> None:
        """Replicate all redo that is archived now, and end. Replication continues from there at the
        next call.
        """
        self._restarts += 1
        self._replicate(tables)

    def judge(
        self,
        tables: Sequence[str],
        left: Sequence[str],
        scn: int,
        stops: Collection[tuple[str, str]],
    ) -> Verdict:
        """Replicate the changes since the load, then compare source and target.

        Args:
            left: names in `tables` that still exist at the end.
            scn: the SCN as of which the source's rows are compared.
            stops: names of tables that may stop, each with the code of the error.
        """
        self._replicate(tables)
        config = scenario_config(self._config, self._owner, tables, self._target, self._data)
        try:
            stopped = self._stopped(stops)
            if self._refused is not None:
                return next(iter(stopped.values()), self._refused)
            fetched = sum(one.fetched for one in fetch_lobs(config, ()))
            going = [name for name in left if f"{self._owner}.{name}" not in stopped]
            compared = self._compared(going, scn) if going or not stopped else None
        except OlrPgError as error:
            return Verdict.refused(error)
        found = [*stopped.values(), *([compared] if compared else [])]
        verdict = min(found, key=lambda one: _GRAVITY.index(one.word))
        if verdict.word is not Word.RIGHT:
            return verdict
        said = [
            f"{counted(fetched, 'LOB value')} fetched from the source" if fetched else "",
            f"the reader was restarted {counted(self._restarts, 'time')}" if self._restarts else "",
            verdict.reason,
        ]
        return verdict._replace(reason=", ".join(filter(None, said)))

    def _replicate(self, tables: Sequence[str]) -> None:
        if self._refused is not None:
            return
        config = scenario_config(self._config, self._owner, tables, self._target, self._data)
        try:
            run_appliance(config, once=True, apply=True, translate=step_sql)
        except OlrPgError as error:
            self._refused = Verdict.refused(error)

    def _stopped(self, stops: Collection[tuple[str, str]]) -> dict[str, Verdict]:
        """Return the verdict for each stopped table."""
        found: dict[str, Verdict] = {}
        with self._connected() as connection:
            rows = connection.execute(_STOPPED, (SUBSCRIPTION,)).fetchall()
        for table, operation, code, message in rows:
            label, said = f"OLR-{int(code):05}", f"{table} has stopped: {message}"
            is_named = code not in _WRONG or (table.removeprefix(f"{self._owner}."), label) in stops
            found.setdefault(
                table,
                Verdict(Word.REFUSED, said, label)
                if is_named
                else Verdict(Word.DIFFERS, code=label, differences=(f"{operation}: {said}",)),
            )
        return found

    def _compared(self, left: Sequence[str], scn: int) -> Verdict:
        if not left:
            return Verdict(Word.UNTRIED, "the scenario has dropped all its tables")
        config = scenario_config(self._config, self._owner, left, self._target, self._data)
        with sources.open_tables(config, scn=scn) as source:
            settings = sources.target_settings(config, source.snapshot, self._target)
            work = self._work(source.sources(source.choose(())))
            found = verify(settings, work, self._session)
        if found.failures:
            return Verdict.refused(found.failures[0])
        differing = [one for one in found.tables if not one.identical]
        if differing:
            return Verdict(Word.DIFFERS, differences=tuple(map(_words, differing)))
        rows = sum(one.source_rows for one in found.tables)
        return Verdict(
            Word.RIGHT, f"{counted(rows, 'row')} of {counted(len(found.tables), 'table')} identical"
        )

    def _work(self, found: Sequence[SourceTable]) -> tuple[SourceTable, ...]:
        return tuple(one._replace(data=_small(one.data)) for one in found)


def _words(table: VerifiedTable) -> str:
    kinds = [one.kind for one in table.differences]
    said = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return (
        f"{table.table.source.full_name}: {table.source_rows} rows in the source,"
        f" {table.target_rows} in the target: {said}"
    )


def _has_schema(connection: psycopg.Connection[Any], name: str) -> bool:
    return (
        connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (name,)).fetchone()
        is not None
    )
