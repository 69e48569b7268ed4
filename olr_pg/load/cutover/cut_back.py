"""The return to Oracle: applications move back from the target to Oracle, and everything that they
wrote to the target is replicated to Oracle.

The steps find out what remains to be done, so no progress is stored: if the command is started
again, it continues. At the end the cut-over's record is deleted, so that another cut-over starts
from the beginning. Oracle's sequences are advanced past the target's sequences and never set back,
as in the cut-over. The slot is kept until `olr-pg fallback end`, so the fallback need not be
started again for another return.

`open_ways_back` prepares the ways back of a configuration: the account in Oracle, the tables, and
the conversion of values. Each PDB has a way back of its own, with its own ledger and its own slot,
because a transaction of Oracle cannot change two PDBs. So a closed PDB does not stop the way back
to the others.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
from psycopg import sql

from olr_pg.appliance.encryption import row_key
from olr_pg.appliance.opened_target import open_target, opened_target
from olr_pg.appliance.target import target_directory
from olr_pg.applier.settings import ConflictPolicy
from olr_pg.decoding.filters import charsets_of, filters_of_target
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import run_all
from olr_pg.fallback.oracle_ledger import open_account
from olr_pg.fallback.oracle_set_aside import (
    SEQUENCE_PREFIX,
    OracleSetAside,
    advance_identity,
    read_identities,
)
from olr_pg.fallback.oracle_values import ValueSettings, oracle_column
from olr_pg.fallback.relation_plans import quoted
from olr_pg.fallback.way_back import WayBack
from olr_pg.files.sealed import sealing
from olr_pg.load import sources
from olr_pg.load.cutover_steps import DONE, TAKEN_BACK, forget_steps, note_step, read_steps
from olr_pg.load.verification.verification import verify
from olr_pg.observability.wording import counted
from olr_pg.oracle.driver.bounded_calls import oracle_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from psycopg import Connection
    from pyspark.sql import SparkSession

    from olr_pg.applier.target.catalogue import TargetColumn
    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Column, Table
    from olr_pg.fallback.way_back import ValueColumn
    from olr_pg.load.table_data import TableSource


SPOOL: Final = "fallback"
"""The directory for large transactions, below the target's."""


def check_way_back(config: Config) -> None:
    """Check that a fallback is configured, before anything is opened.

    Raises:
        OlrPgError: 1135, `fallback` is missing, or has no address of Oracle.
    """
    _ = config.fallback_source


@contextmanager
def open_ways_back(config: Config) -> Iterator[tuple[WayBack, ...]]:
    """Open the fallbacks of a configuration that has one target, and enable the encryption of files
    if a key is configured.

    Raises:
        OlrPgError: 1091 there is no target, 1135 `fallback` has no account, 1190 the key cannot be
            used, 3xxx and 7xxx errors of the dictionary.
    """
    check_way_back(config)
    with ExitStack() as stack:
        stack.enter_context(sealing(row_key(config)))
        source = stack.enter_context(sources.open_tables(config))
        target = open_target(sources.apply_section(config), target_directory(config), stack)
        yield ways_back(config, source, target)


def ways_back(config: Config, source: TableSource, target: str) -> tuple[WayBack, ...]:
    """Return the fallback to each PDB that has tables.

    Args:
        target: the target's connection string.

    Raises:
        OlrPgError: 1135, `fallback` has no account.
    """
    apply, fallback, account = (
        sources.apply_section(config), config.way_back, config.fallback_source,
    )  # fmt: skip
    settings = ValueSettings.of(fallback.policies, apply, source.snapshot.database)
    filters = filters_of_target(config)
    charsets = charsets_of(source.snapshot.database)

    def keeps_rows_out(table: Table) -> bool:
        """Return whether Oracle's table can have rows that PostgreSQL never had."""
        dropped = filters.dropped([table])
        return (
            filters.concerns_transactions
            or filters.row_condition(table, charsets) is not None
            or (dropped is not None and bool(dropped[0, 0]))
        )

    def value_column(table: str, column: Column, typed: TargetColumn) -> ValueColumn:
        return oracle_column(table, column, typed.kind, settings)

    def way_back(container: str, tables: tuple[Table, ...]) -> WayBack:
        own = {"containers": (container,)} if container else {}
        return WayBack(
            source=account.model_copy(update=own),
            connect_string=target,
            subscription=apply.subscription,
            slot=fallback.slot_of(apply.subscription, container),
            publication=fallback.publication_of(apply.subscription, container),
            tables=tables,
            settings=sources.target_settings(config, source.snapshot, target),
            value_column=value_column,
            directory=target_directory(config) / SPOOL,
            batch_changes=apply.batch_changes,
            conflict=ConflictPolicy(fallback.on_conflict),
            container=container,
            omits=fallback.omits,
            partial=frozenset(one.full_name for one in tables if keeps_rows_out(one)),
        )

    tables = source.choose(())
    if not source.snapshot.members:
        return (way_back("", tables),)
    by_container = {
        one.database.con_name or "": tuple(
            table for table in tables if table.con_id == one.database.con_id
        )
        for one in source.snapshot.members
    }
    return tuple(way_back(name, own) for name, own in by_container.items() if own)


STEPS: Final = {
    "quiet": "nobody writes to PostgreSQL",
    "drained": "Oracle contains all committed transactions",
    "verified": "the tables are identical",
    "sequences": "Oracle's sequences continue after the target's values",
    "constraints": "Oracle's triggers and foreign keys are enabled again",
}
_SEQUENCES: Final = "sequences"

_WRITERS: Final = """
SELECT 'process ' || pid::text || ' of ' || coalesce(usename::text, 'nobody') FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL
UNION ALL
SELECT 'prepared transaction ' || gid FROM pg_prepared_xacts WHERE database = current_database()
ORDER BY 1
"""


class SequenceMove(NamedTuple):
    """A sequence of Oracle that was advanced.

    Attributes:
        sequence: ``OWNER.NAME``; for an identity column ``OWNER.TABLE.COLUMN``.
        before, after: the sequence's next value before and after the change.
    """

    sequence: str
    before: int
    after: int


def cut_back(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    unverified: bool = False,
    progress: Callable[[str, str], None] = lambda _step, _title: None,
) -> dict[str, Any]:
    """Run the steps that bring applications back to Oracle; return the result of each.

    Args:
        session: returns the Spark session that compares the tables.
        unverified: whether to skip the comparison of the tables.
        progress: called with each step and its title when it begins.

    Raises:
        OlrPgError: 1135 `fallback` is missing, 5133 a transaction is writing, 5134 a sequence
            cannot be set, 5124 the tables differ, 7316 triggers or keys cannot be enabled, other
            errors of 73xx: the fallback cannot continue or has stopped tables.
    """
    check_way_back(config)
    found = dict[str, Any]()
    for step, title in STEPS.items():
        progress(step, title)
        if step == "quiet":
            check_nobody_writes(config)
            found[step] = {}
        elif step == "drained":
            with open_ways_back(config) as ways:
                run_all(ways, once=True)
            check_nobody_writes(config)
            found[step] = {}
        elif step == "verified":
            found[step] = {"skipped": True} if unverified else _compare(config, session)
        elif step == _SEQUENCES:
            moves = advance_oracle_sequences(config)
            found[step] = {"advanced": [move._asdict() for move in moves]}
        else:
            _check_nothing_was_written(config)
            found[step] = {"put_back": put_back(config)}
    _take_back(config)
    return found


def _check_nothing_was_written(config: Config) -> None:
    """Apply the transactions that have committed since the step `drained`. Raise an error if there
    were any, because the comparison and the sequences did not include their rows. Oracle's triggers
    are enabled next. After that, the fallback must apply nothing, because it would disable the
    triggers again.

    Raises:
        OlrPgError: 5133, there are some.
    """
    with open_ways_back(config) as ways:
        late = run_all(ways, once=True)
    check_nobody_writes(config)
    if late:
        raise OlrPgError(
            Code.TARGET_NOT_QUIET,
            f"{counted(late, 'row change')} were committed after the step `drained`, and are in"
            " Oracle now",
        )


def _take_back(config: Config) -> None:
    """Record that applications use Oracle again, also if the fallback began without a cut-over.

    Delete the cut-over's record, so that the next cut-over starts from the beginning. Keep the
    pairs of sequences that it recorded.
    """
    subscription = sources.apply_section(config).subscription
    with opened_target(config, ledger="required") as target, target.connection.transaction():
        connection = target.connection
        steps = read_steps(connection, subscription)
        known = steps.get(_SEQUENCES) or steps.get(TAKEN_BACK)
        if known is None or known.step != TAKEN_BACK or known.state != DONE:
            forget_steps(connection, subscription)
            detail = {} if known is None else known.detail
            note_step(connection, subscription, TAKEN_BACK, DONE, detail)


def check_not_taken_back(config: Config) -> None:
    """Raise an error if applications use Oracle again, because Oracle's triggers must then not be
    disabled.

    Raises:
        OlrPgError: 7317, applications have returned to Oracle, and no later cut-over has begun a
            fallback.
    """
    with opened_target(config, ledger="required") as target:
        steps = read_steps(target.connection, sources.apply_section(config).subscription)
    if TAKEN_BACK in steps and steps[TAKEN_BACK].state == DONE:
        at = steps[TAKEN_BACK].finished_at
        raise OlrPgError(
            Code.FALLBACK_TAKEN_BACK,
            f"`olr-pg fallback cutover` returned the applications to Oracle at {at:%Y-%m-%d %H:%M}."
            " The way back would disable triggers and foreign keys that they need",
        )


def check_nobody_writes(config: Config) -> None:
    """Check that no open transaction has written to the target.

    Raises:
        OlrPgError: 5133, there is such a transaction.
    """
    with opened_target(config, ledger="required") as target:
        writers = [name for (name,) in target.connection.execute(_WRITERS)]
    if writers:
        raise OlrPgError(Code.TARGET_NOT_QUIET, ", ".join(writers))


def _compare(config: Config, session: Callable[[], SparkSession]) -> dict[str, Any]:
    """Compare the current rows of both databases.

    Raises:
        OlrPgError: 5124, the rows differ; or the error of a table that cannot be compared.
    """
    with opened_target(config, ledger="required") as target, sources.open_tables(config) as source:
        settings = sources.target_settings(config, source.snapshot, target.connect_string)
        work = source.sources(source.choose(()))
        found = verify(settings, work, session)
    return found.require_identical(
        action="list the differences with `olr-pg fallback verify`. Values that a policy of"
        " `fallback.policies` has changed also differ; if there are no other"
        " differences, omit the comparison with --unverified. Else correct the rows"
        " in the database that is wrong, and start the command again",
    )


def put_back(config: Config) -> list[str]:
    """Enable Oracle's triggers and foreign keys that the fallback disabled; return the statements.

    Raises:
        OlrPgError: 7316, Oracle refuses some of the statements.
    """
    done = list[str]()
    with open_ways_back(config) as ways:
        for way in ways:
            with closing(open_account(way.source)) as connection:
                aside = OracleSetAside(connection, way.subscription, way.tables)
                done += [one.enabling for one in aside.put_back()]
    return done


# --- sequences -----------------------------------------------------------------------------------


def advance_oracle_sequences(config: Config) -> list[SequenceMove]:
    """Advance Oracle's sequences past the values of the target's sequences. The cut-over recorded
    the pairs of sequences.

    Each sequence in Oracle loses one value, because its exact position can be read only by fetching
    a value. Identity columns are set after their largest row.

    Raises:
        OlrPgError: 5134, some sequences cannot be set; the others are set.
    """
    moves, failed = list[SequenceMove](), list[str]()
    with opened_target(config, ledger="required") as target:
        pairs = list(_pairs(target.connection, sources.apply_section(config).subscription))
        wanted = {name: _next_value(target.connection, place) for name, place in pairs}
    with open_ways_back(config) as ways:
        for way in ways:
            names = _owners(way)
            # Without containers, also include schemas that no longer contain a replicated table.
            own = {
                name: following
                for name, following in wanted.items()
                if not way.container or name.rpartition(".")[0] in names
            }
            wanted = {name: one for name, one in wanted.items() if name not in own}
            _advance_in(way, own, moves, failed)
    failed += [f"{name}: its schema no longer has a replicated table" for name in sorted(wanted)]
    if failed:
        raise OlrPgError(Code.SEQUENCES_NOT_ADVANCED, "; ".join(failed))
    return moves


def _owners(way: WayBack) -> dict[str, str]:
    """Return the schemas of the tables: for each name in the dictionary, the name in Oracle. The
    two names differ if the source has several containers.
    """
    return {table.owner: table.source_owner for table in way.tables}


def _advance_in(
    way: WayBack,
    wanted: Mapping[str, tuple[int, int]],
    moves: list[SequenceMove],
    failed: list[str],
) -> None:
    """Advance the sequences and identity columns of one PDB.

    Args:
        wanted: the next value in the target and the increment, by the sequence's name.
        moves, failed: lists to which the results are appended.
    """
    owners = _owners(way)
    called = {source: name for name, source in owners.items()}
    with closing(open_account(way.source)) as connection, connection.cursor() as cursor:
        try:
            identities = list(read_identities(connection, way.tables))
        except oracledb.Error as error:
            raise oracle_error(error, "reading the identity columns of the tables") from error
        for name, following in sorted(wanted.items()):
            owner, _, sequence = name.rpartition(".")
            if sequence.startswith(SEQUENCE_PREFIX):
                continue
            place = f"{quoted(owners.get(owner, owner))}.{quoted(sequence)}"
            try:
                moves.append(SequenceMove(name, *_advance(cursor, place, *following)))
            except oracledb.DatabaseError as error:
                failed.append(f"{name}: {oracle_error(error, 'setting a sequence').detail}")
        for one in identities:
            owner = called[one.owner]
            paired = wanted.get(f"{owner}.{one.sequence}")
            name = f"{owner}.{one.table}.{one.column}"
            try:
                before, after = advance_identity(cursor, one, paired and paired[0])
            except oracledb.DatabaseError as error:
                failed.append(f"{name}: {oracle_error(error, 'setting an identity').detail}")
            else:
                moves.append(SequenceMove(name, before, after))


def _pairs(connection: Connection[Any], subscription: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each sequence of Oracle that the cut-over advanced, with its sequence in the target."""
    steps = read_steps(connection, subscription)
    step = steps.get(_SEQUENCES) or steps.get(TAKEN_BACK)
    for one in () if step is None else step.detail.get("advanced", ()):
        schema, name = one["target"]
        yield one["sequence"], (schema, name)


def _next_value(connection: Connection[Any], place: tuple[str, str]) -> tuple[int, int]:
    """Return the next value of a sequence of the target, and its increment."""
    query = sql.SQL(
        "SELECT s.last_value, s.is_called, p.seqincrement FROM {} s, pg_sequence p"
        " WHERE p.seqrelid = %s::regclass"
    ).format(sql.Identifier(*place))
    name = sql.Identifier(*place).as_string(connection)
    row = connection.execute(query, (name,)).fetchone()
    assert row is not None
    last, is_called, increment = row
    return int(last) + (int(increment) if is_called else 0), int(increment)


def _advance(
    cursor: oracledb.Cursor, place: str, following: int, increment: int
) -> tuple[int, int]:
    cursor.execute(f"SELECT {place}.NEXTVAL FROM DUAL")  # noqa: S608 - of the dictionary
    row = cursor.fetchone()
    assert row is not None
    before = int(row[0]) + increment
    after = max(before, following) if increment > 0 else min(before, following)
    if after != before:
        cursor.execute(f"ALTER SEQUENCE {place} RESTART START WITH {after}")
    return before, after


def cut_back_lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield the results of the steps as text."""
    for step, title in STEPS.items():
        detail = found.get(step)
        if detail is None:
            continue
        yield f"{'skipped' if detail.get('skipped') else 'done':8} {step:11}  {title}"
        if "rows" in detail:
            tables, rows = counted(detail["tables"], "table"), counted(detail["rows"], "row")
            yield f"{'':22}{tables}, {rows}"
        for move in detail.get("advanced", ()):
            yield f"{'':22}{move['sequence']} from {move['before']} to {move['after']}"
        for statement in detail.get("put_back", ()):
            yield f"{'':22}{statement}"
