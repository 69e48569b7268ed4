"""Applies the steps of source DDL (`dictionary.evolution.Step`) as SQL in the target.

If an operator has already made the same change in the target, the step is skipped. If an operator
has chosen the type of a column, the column keeps this type; values that do not fit cause an error
when they arrive.

If Oracle adds a column with a default, all existing rows have this value, although the redo does
not contain it for each row. PostgreSQL works in the same way if the column is added with a default,
without rewriting the rows. Then the default is removed from the target's column, because the
source's default can be an expression, and only its value is known.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
import structlog
from psycopg import sql

from olr_pg.applier.settings import DdlPolicy
from olr_pg.applier.statements.target_plan import planned_column
from olr_pg.applier.stopped.added_partition import add_partition
from olr_pg.applier.stopped.incomplete_values import forget_column, forget_table, rename_column
from olr_pg.applier.stopped.partition_rows import PartitionRows
from olr_pg.applier.stopped.renaming import take_name
from olr_pg.applier.stopped.structure import StructureNotes
from olr_pg.applier.target.catalogue import empty_table, has_rows
from olr_pg.applier.target.column_encoder import column_encoder
from olr_pg.applier.target.connection import Binary
from olr_pg.applier.target.modifiers import modifier_of
from olr_pg.applier.target.set_aside import rename_referenced
from olr_pg.datatypes.columns import column_of
from olr_pg.dictionary.evolution import RENAMED, REPLACED, REWRITTEN, DdlKind, filled_rows
from olr_pg.dictionary.model import KeyKind
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.sqlstates import is_forbidden, is_transient, plain_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.target.catalogue import TargetColumn, TargetTable
    from olr_pg.applier.target.ledger import TableLedger
    from olr_pg.datatypes.mapping import PgType
    from olr_pg.dictionary.evolution import Step
    from olr_pg.dictionary.model import Column, Table
    from olr_pg.transactions.schema_event import SchemaEvent

_HAS_NULLS: Final = "SELECT EXISTS (SELECT FROM {} WHERE {} IS NULL)"
_LITERAL: Final = "SELECT quote_literal((%b::{})::text)"

_HAS_COLUMN: Final = """
SELECT EXISTS (SELECT FROM pg_attribute
    WHERE attrelid = %s AND attname = %s AND attnum > 0 AND NOT attisdropped)
"""
_IDENTITY_TYPE: Final = """
SELECT true FROM pg_attribute WHERE attrelid = %s AND attname = %s AND NOT attisdropped
    AND attidentity = '' AND atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
"""

_PRIMARY_KEY: Final = """
SELECT c.conname, array_agg(a.attname::text ORDER BY k.place)
FROM pg_constraint c CROSS JOIN LATERAL unnest(c.conkey) WITH ORDINALITY k(number, place)
JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.number
WHERE c.conrelid = %s AND c.contype = 'p' GROUP BY c.conname
"""

_CODES: Final = {
    DdlKind.TRUNCATE: Code.TABLE_TRUNCATED,
    DdlKind.TRUNCATE_PARTITION: Code.ROWS_CHANGED_BY_DDL,
    DdlKind.DROP_PARTITION: Code.PARTITION_DROPPED,
    DdlKind.DROP_TABLE: Code.TABLE_GONE,
    DdlKind.RENAME_TABLE: Code.TABLE_GONE,
    DdlKind.EXCHANGE_PARTITION: Code.ROWS_CHANGED_BY_DDL,
}
"""The error of a table that stops at a step of this kind. Steps that change columns have the error
COLUMNS_CHANGED.
"""

_OF_PARTITIONS: Final = DdlKind.TRUNCATE_PARTITION, DdlKind.DROP_PARTITION

_DO_IT_YOURSELF: Final = {
    DdlKind.RENAME_TABLE: (
        "rename the target table yourself, then run `olr-pg errors skip`. Or set"
        " `rename-table` in `apply.ddl` to follow, restart the appliance, then run"
        " `olr-pg errors retry`"
    ),
    DdlKind.EXCHANGE_PARTITION: (
        "exchange the partition and the table in the target yourself (DETACH, rename,"
        " ATTACH in one transaction), then run `olr-pg errors skip`. Or set"
        " `exchange-partition` in `apply.ddl` to follow, restart the appliance, then run"
        " `olr-pg errors retry`"
    ),
}

_log = structlog.get_logger(__name__)


def wanted_steps(settings: ApplierSettings, event: SchemaEvent) -> list[Step]:
    """Return the steps of an event that must be applied to the target.

    Raises:
        OlrPgError: 3072–3074, 5070, according to `apply.ddl` a step stops the table.
    """
    wanted = []
    kept = set[str]()
    for step in event.evolution.steps:
        if step.kind is DdlKind.MODIFY_COLUMN and _is_same_in_target(settings, event, step):
            continue
        if step.kind is DdlKind.REGROUP and not step.sources and step.partition in kept:
            continue  # the target keeps its rows, as configured
        policy = settings.ddl.get(step.kind, DdlPolicy.FOLLOW)
        if step.verb in (REPLACED, REWRITTEN) and policy in (DdlPolicy.STOP, DdlPolicy.IGNORE):
            continue  # the source has not changed it, and nothing of it is pending
        match policy:
            case DdlPolicy.STOP:
                raise _stopped(event, step)
            case DdlPolicy.IGNORE:
                if step.kind is DdlKind.DROP_PARTITION:
                    kept.add(step.partition)
                _log.warning(
                    "DDL is ignored, as configured in apply.ddl",
                    table=event.table,
                    scn=event.commit_scn,
                    what=str(step),
                )
            case DdlPolicy.FOLLOW | DdlPolicy.REPORT:
                wanted.append(step)
    return wanted


def _stopped(event: SchemaEvent, step: Step) -> OlrPgError:
    code = _CODES.get(step.kind, Code.COLUMNS_CHANGED)
    text = f" ({event.statement[:500]})" if event.statement else ""
    action = _DO_IT_YOURSELF.get(step.kind)
    return OlrPgError(code, f"{step}{text}", action=action, table=event.table)


def _is_same_in_target(settings: ApplierSettings, event: SchemaEvent, step: Step) -> bool:
    assert step.before is not None
    assert step.after is not None
    old, new = (settings.choices.pg_type(event.table, one) for one in (step.before, step.after))
    return old.name == new.name


class StepWriter:
    """Applies the steps of one event, in the open target transaction.

    Args:
        target: the target table before the event.
        definition: the definition of the source's table after the event.
        event: the event that has the steps.
    """

    def __init__(
        self,
        connection: Connection[Any],
        settings: ApplierSettings,
        target: TargetTable,
        ledger: TableLedger,
        definition: Table,
        event: SchemaEvent,
    ) -> None:
        self._connection, self._settings, self._event = connection, settings, event
        self._target, self._ledger, self._table = target, ledger, definition.full_name
        self._definition = definition
        self._dropped = set[str]()
        self._writers: Mapping[DdlKind, Callable[[Step], None]] = {
            DdlKind.TRUNCATE: self._truncate,
            DdlKind.DROP_COLUMN: self._drop,
            DdlKind.RENAME_COLUMN: self._rename,
            DdlKind.MODIFY_COLUMN: self._modify,
            DdlKind.NOT_NULL: self._not_null,
            DdlKind.ADD_COLUMN: self._add,
            DdlKind.ADD_PARTITION: self._add_partition,
            DdlKind.DROP_TABLE: self._truncate,
            DdlKind.CREATE_AGAIN: self._take_key,
            DdlKind.COMMENT: self._comment,
            DdlKind.VIRTUAL_COLUMN: self._virtual,
            DdlKind.IDENTITY_COLUMN: self._identity,
            DdlKind.INDEX: self._note_structure,
            DdlKind.CONSTRAINT: self._note_structure,
        }

    def write(self, steps: Iterable[Step]) -> None:
        """Apply the steps in order.

        Raises:
            OlrPgError: 5016, 2054 and other errors about types and names; others if a step cannot
                be applied.
            psycopg.Error: PostgreSQL refuses a statement.
        """
        steps = tuple(steps)
        self._names = _Names.of(self._settings, self._definition, steps)
        self._notes = StructureNotes(
            *(self._connection, self._settings, self._event, self._target),
            *(self._definition, self._names.after),
        )
        self._empty_partitions([step for step in steps if step.kind in _OF_PARTITIONS])
        regrouped = [step for step in steps if step.kind is DdlKind.REGROUP]
        if regrouped:
            self._partition_rows.regroup(regrouped)
        for step in steps:
            if step.kind not in (*_OF_PARTITIONS, DdlKind.REGROUP):
                self._writers[step.kind](step)
            if step.structure is None:
                _log.info(
                    "DDL was applied to the target", table=self._target.full_name, what=str(step)
                )

    @cached_property
    def _partition_rows(self) -> PartitionRows:
        key, choices = self._ledger.key, self._settings.choices
        return PartitionRows(self._connection, key, self._target, choices)

    def _alter(self, words: str, *parts: sql.Composable) -> None:
        statement = sql.SQL("ALTER TABLE {} " + words)
        self._connection.execute(statement.format(self._target.identifier, *parts))

    def _truncate(self, _: Step) -> None:
        empty_table(self._connection, self._target.identifier)
        forget_table(self._connection, self._ledger)

    def _note_structure(self, step: Step) -> None:
        self._notes.take(step)

    def _empty_partitions(self, steps: Sequence[Step]) -> None:
        """Empty the target's partitions. If a source's partition was dropped, keep the empty
        partition in the target, for rows that belong to the neighbouring partition in the source.
        """
        if not steps:
            return
        found = self._partition_rows.only_of([step.partition for step in steps])
        if isinstance(found, str):
            raise OlrPgError(
                _CODES[steps[0].kind],
                f"{'; '.join(map(str, steps))}, and {self._target.full_name} has no partition for"
                f" exactly these rows: {found}",
                table=self._table,
            )
        for partition in found:
            empty_table(self._connection, partition)

    def _add_partition(self, step: Step) -> None:
        """Add a partition to a target that has partitions of the same kind."""
        made = self._settings.translate(self._settings, self._definition, step)
        name = self._settings.choices.name(step.partition)
        values = "" if made.reason else made.statements[0]
        reason = made.reason or add_partition(
            self._connection, self._target, name, values, by_list=step.verb == "list"
        )
        if reason:
            _log.warning(
                "a new partition of the source could not be added to the target: create it before"
                " rows for it arrive",
                table=self._target.full_name,
                partition=step.partition,
                values=step.text,
                reason=reason,
            )

    def _take_key(self, _: Step) -> None:
        """Change the target table's primary key to that of the new source table, which was created
        with the name of a dropped one.
        """
        take_name(self._connection, self._ledger.key)
        definition = self._definition
        numbers = {column.intcol: column.name for column in definition.delivered}
        is_primary = definition.key_kind is KeyKind.PRIMARY
        wanted = [self._names.after[numbers[one]] for one in definition.key if one in numbers]
        found = self._connection.execute(_PRIMARY_KEY, [self._target.oid]).fetchone()
        if found is not None and (not is_primary or found[1] != wanted):
            self._alter("DROP CONSTRAINT {}", sql.Identifier(found[0]))
            may = {self._names.after[one.name] for one in definition.delivered if one.nullable}
            for name in may & set(found[1]):
                self._alter("ALTER COLUMN {} DROP NOT NULL", sql.Identifier(name))
            found = None
        if found is None and is_primary and wanted:
            self._alter("ADD PRIMARY KEY ({})", sql.SQL(", ").join(map(sql.Identifier, wanted)))

    def _drop(self, step: Step) -> None:
        assert step.before is not None
        name = self._names.before[step.before.name]
        self._alter("DROP COLUMN IF EXISTS {}", sql.Identifier(name))
        self._dropped.add(name)
        forget_column(self._connection, self._ledger, step.before.name)

    def _rename(self, step: Step) -> None:
        assert step.before is not None
        assert step.after is not None
        old, new = self._names.before[step.before.name], self._names.after[step.after.name]
        is_done = self._column(old) is None and self._column(new) is not None
        if old != new and not is_done:
            self._alter("RENAME COLUMN {} TO {}", sql.Identifier(old), sql.Identifier(new))
        if old != new:
            place = self._target.schema, self._target.name
            rename_referenced(self._connection, self._ledger.key[0], place, (old, new))
        rename_column(
            self._connection, self._ledger, (step.before.name, step.after.name), (old, new)
        )

    def _modify(self, step: Step) -> None:
        assert step.before is not None
        assert step.after is not None
        old, new = (self._type(one) for one in (step.before, step.after))
        found = self._column(self._names.before[step.before.name])
        if found is not None and not _is_made_as(found, old):
            _log.info(
                "the column's type was chosen in the target and is not changed",
                table=self._target.full_name,
                column=found.name,
            )
            return
        name, kind = sql.Identifier(self._names.after[step.after.name]), sql.SQL(new.name)
        self._alter("ALTER COLUMN {} TYPE {} USING {}::{}", name, kind, name, kind)

    def _not_null(self, step: Step) -> None:
        assert step.before is not None
        assert step.after is not None
        column = self._names.after[step.after.name]
        name = sql.Identifier(column)
        if step.after.nullable:
            if self._names.before[step.before.name] not in self._target.key:
                self._alter("ALTER COLUMN {} DROP NOT NULL", name)
            return
        query = sql.SQL(_HAS_NULLS).format(self._target.identifier, name)
        if self._connection.execute(query).fetchone() == (True,):
            _log.warning(
                "a column that became NOT NULL in Oracle stays nullable, because rows in the"
                " target contain NULL",
                table=self._target.full_name,
                column=column,
            )
            return
        self._alter("ALTER COLUMN {} SET NOT NULL", name)

    def _add(self, step: Step) -> None:
        assert step.after is not None
        column, kind = step.after, self._type(step.after)
        name = self._names.after[column.name]
        if step.text and has_rows(self._connection, self._target.identifier):
            raise filled_rows(step, self._table)
        default = self._default(column, kind)
        if self._column(name) is not None:
            if default is not None:
                self._fill(name, default)
        else:
            words = sql.SQL("") if default is None else sql.SQL(" DEFAULT ") + default
            self._alter("ADD COLUMN {} {}{}", sql.Identifier(name), sql.SQL(kind.name), words)
            if default is not None:
                self._alter("ALTER COLUMN {} DROP DEFAULT", sql.Identifier(name))
        if not column.nullable:
            self._alter("ALTER COLUMN {} SET NOT NULL", sql.Identifier(name))

    def _virtual(self, step: Step) -> None:
        """Create, rename, drop or replace the generated column for a virtual column of the source.

        If PostgreSQL cannot express the column, leave it out and record the reason. Rows do not
        store values of a virtual column, so the column can be dropped and created again without
        loss.
        """
        before, after = step.before, step.after
        found = None if before is None else self._visible_name(before)
        was_there = found is not None and self._is_there(found)
        if before is not None:
            self._notes.forget_column(before.name)
        is_renamed = not step.text or (was_there and step.verb == RENAMED)
        if before is not None and after is not None and is_renamed:
            if was_there and found != self._visible_name(after):
                names = map(sql.Identifier, (str(found), self._visible_name(after)))
                self._alter("RENAME COLUMN {} TO {}", *names)
            return
        if was_there:
            self._alter("DROP COLUMN {}", sql.Identifier(str(found)))
            self._dropped.add(str(found))
        if after is None or self._is_there(self._visible_name(after)):
            return
        made = self._settings.translate(self._settings, self._definition, step)
        reason = made.reason or self._refusal(made.statements)
        if reason:
            self._notes.leave_out(step, reason)

    def _refusal(self, statements: Iterable[str]) -> str:
        """Execute statements. If PostgreSQL refuses one, undo them and return the reason, else
        return an empty text.
        """
        try:
            with self._connection.transaction():
                for statement in statements:
                    self._connection.execute(statement.encode())
        except psycopg.Error as error:
            if is_transient(error) or is_forbidden(error):
                raise
            return f"PostgreSQL: {plain_words(error)}"
        return ""

    def _identity(self, step: Step) -> None:
        """Make the column an identity column with a sequence, as `schema export` does, or remove
        this property.
        """
        assert step.before is not None
        name = self._names.after.get(step.before.name, "")
        if not name or not self._is_there(name):
            return
        column = sql.Identifier(name)
        if step.after is None:
            self._alter("ALTER COLUMN {} DROP IDENTITY IF EXISTS", column)
            return
        kind = self._connection.execute(_IDENTITY_TYPE, (self._target.oid, name)).fetchone()
        if kind is None:
            return
        sequence = sql.Identifier(self._target.schema, self._settings.choices.name(step.text))
        words = "ALTER COLUMN {} ADD GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME {})"
        self._alter(words, column, sequence)

    def _visible_name(self, column: Column) -> str:
        """Return the target's name of a source column, which can be a virtual column."""
        seen = [one.name for one in self._definition.columns if not one.hidden]
        seen += [column.name] * (column.name not in seen)
        return self._settings.choices.column_names(self._table, seen)[column.name]

    def _is_there(self, name: str) -> bool:
        """Return whether the target table has a column after the steps that were applied so far."""
        row = self._connection.execute(_HAS_COLUMN, (self._target.oid, name)).fetchone()
        return row == (True,)

    def _comment(self, step: Step) -> None:
        """Set or remove the comment of the table or of a column. Ignore a column that the target
        lacks.
        """
        text = sql.Literal(step.text) if step.text else sql.SQL("NULL")
        place: sql.Composable = self._target.identifier
        what = sql.SQL("TABLE")
        if step.after is not None:
            name = self._visible_name(step.after)
            if not self._is_there(name):
                return
            place, what = sql.SQL(".").join((place, sql.Identifier(name))), sql.SQL("COLUMN")
        self._connection.execute(sql.SQL("COMMENT ON {} {} IS {}").format(what, place, text))

    def _fill(self, name: str, default: sql.SQL) -> None:
        """Set the column to the default in each row. This is needed if an operator added the column
        before the step.

        Raises:
            OlrPgError: 5008, rows keep NULL.
        """
        table, column = self._target.identifier, sql.Identifier(name)
        self._connection.execute(sql.SQL("UPDATE {} SET {} = {}").format(table, column, default))
        has_nulls = sql.SQL(_HAS_NULLS).format(table, column)
        if self._connection.execute(has_nulls).fetchone() == (True,):
            raise OlrPgError(
                Code.CHANGE_REFUSED,
                f"the new column {name} has a default in Oracle, but rows keep NULL: a trigger"
                " discards the updates",
                action="disable the trigger, which `olr-pg doctor` names, then run"
                " `olr-pg errors retry`",
                table=self._table,
            )

    def _default(self, column: Column, kind: PgType) -> sql.SQL | None:
        """Return the value that existing rows have in a new column, as SQL; None for NULL."""
        if column.added is None or not column.added.default:
            return None
        planned = planned_column(column.name, kind)
        encode = column_encoder(self._settings, self._table, column, planned)
        value = encode(column_of([column.added.default]))[0].value(0)
        if value is None:
            return None
        query = sql.SQL(_LITERAL).format(sql.SQL(kind.name))
        row = self._connection.execute(query, [Binary(value)]).fetchone()
        assert row is not None
        return sql.SQL(row[0])

    def _column(self, name: str) -> TargetColumn | None:
        place = None if name in self._dropped else self._target.column_number(name)
        return None if place is None else self._target.columns[place]

    def _type(self, column: Column) -> PgType:
        return self._settings.choices.pg_type(self._table, column)


class _Names(NamedTuple):
    """The target's names of the source's columns, before and after the event."""

    before: dict[str, str]
    after: dict[str, str]

    @classmethod
    def of(cls, settings: ApplierSettings, definition: Table, steps: Iterable[Step]) -> _Names:
        now = [column.name for column in definition.delivered]
        renamed, added, dropped = dict[str, str](), set[str](), list[str]()
        for step in steps:
            if step.kind is DdlKind.RENAME_COLUMN and step.before and step.after:
                renamed[step.after.name] = step.before.name
            elif step.kind is DdlKind.ADD_COLUMN and step.after:
                added.add(step.after.name)
            elif step.kind is DdlKind.DROP_COLUMN and step.before:
                dropped.append(step.before.name)
        was = [renamed.get(name, name) for name in now if name not in added]
        names = settings.choices.column_names
        table = definition.full_name
        return cls(names(table, was + dropped), names(table, now))


def _is_made_as(column: TargetColumn, kind: PgType) -> bool:
    """Return whether a target column has the type with which the applier would create it."""
    modifier = modifier_of(kind)
    return column.type_oid == int(kind.kind) and modifier in (-1, column.modifier)
