"""Records in the target which indexes, keys and check constraints the source's DDL creates or
drops.

A row of `olr_pg.structure` is a pending change of the target. If its state is `reported`, a person
must make the change; if it is `due`, `applier.structure_maker` makes it. The change is not made in
the event's transaction, because it takes time, and because ``CREATE INDEX CONCURRENTLY`` cannot be
part of a transaction. The row is written in the event's transaction, so exactly once, and is
deleted as soon as the target has the change. But an existing object is dropped in the event's
transaction, because later rows may violate it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog
from psycopg import sql

from olr_pg.applier.settings import DdlPolicy, TargetSql, TriggerHandling
from olr_pg.dictionary.evolution import RENAMED, REWRITTEN, DdlKind
from olr_pg.dictionary.inventory import Constraint
from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.target.catalogue import TargetTable
    from olr_pg.dictionary.evolution import Step
    from olr_pg.dictionary.model import Table
    from olr_pg.transactions.schema_event import SchemaEvent

_NOTE: Final = """
INSERT INTO olr_pg.structure (subscription, source_table, target_table, commit_scn, xid, kind,
    source_name, target_name, what, statements, present, reason, state)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_FORGET: Final = """
DELETE FROM olr_pg.structure
WHERE subscription = %s AND source_table = %s AND kind = %s AND source_name = %s
RETURNING state = 'due'
"""
_FORGET_TABLE: Final = "DELETE FROM olr_pg.structure WHERE subscription = %s AND source_table = %s"

_PENDING: Final = """
SELECT id, statements FROM olr_pg.structure
WHERE subscription = %s AND source_table = %s AND kind = %s AND source_name = %s
"""
_REWRITE: Final = """
UPDATE olr_pg.structure SET target_name = %s, statements = %s, present = %s,
    reason = coalesce(%s, CASE WHEN statements <> '{}' THEN reason END),
    state = CASE WHEN %s THEN 'reported' ELSE state END
WHERE id = %s
"""

_INTERRUPT: Final = """
SELECT pg_cancel_backend(pid) FROM pg_stat_activity
WHERE application_name = %s AND datname = current_database() AND usename = current_user
    AND state = 'active' AND EXISTS (SELECT FROM olr_pg.structure
        WHERE subscription = %s AND source_table = %s AND state = 'due')
"""

_INDEX: Final = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = %(table)s AND c.relname = ANY(%(names)s)
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid)
"""
_CONSTRAINT: Final = """
SELECT c.conname FROM pg_constraint c WHERE c.conrelid = %(table)s AND c.contype = %(kind)s
    AND (c.conname = ANY(%(names)s) OR c.contype = 'p' OR c.contype <> 'c' AND %(columns)s = ARRAY(
        SELECT a.attname::text FROM unnest(c.conkey) WITH ORDINALITY k (number, place)
        JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.number ORDER BY k.place))
ORDER BY c.conname = ANY(%(names)s) DESC, c.conname LIMIT 1
"""
_TYPES: Final = {"primary key": "p", "unique": "u", "foreign key": "f", "check": "c"}
_ENDINGS: Final = ("", "_idx", "_key", "_pkey")
"""Suffixes that `schema.relations.Relations.free_name` may have added to an object's name."""
_NAME_BYTES: Final = 63

_log = structlog.get_logger(__name__)


def maker_name(settings: ApplierSettings) -> str:
    """Return the application name of the PostgreSQL session that makes the pending changes."""
    return f"olr_pg structure {settings.subscription}"[:_NAME_BYTES]


def interrupt(connection: Connection[Any], settings: ApplierSettings, table: str) -> None:
    """Cancel the statement that is making a pending change of a table, because DDL on the table
    cannot run while an index is built.
    """
    connection.execute(_INTERRUPT, (maker_name(settings), settings.subscription, table))


class StructureNotes:
    """Records the indexes and constraints that an event creates or drops, in the event's
    transaction.

    Args:
        target: the target table before the event.
        definition: the definition of the source's table after the event.
        columns: the target column's name for each source column.
    """

    def __init__(
        self,
        connection: Connection[Any],
        settings: ApplierSettings,
        event: SchemaEvent,
        target: TargetTable,
        definition: Table,
        columns: Mapping[str, str],
    ) -> None:
        self._connection, self._settings, self._event = connection, settings, event
        self._target, self._definition, self._columns = target, definition, columns

    def take(self, step: Step) -> None:
        """Record a pending change for an index or a constraint. If the step drops or renames an
        object, do it at once if possible.
        """
        structure = step.structure
        assert structure is not None
        kind = "constraint" if isinstance(structure, Constraint) else "index"
        if step.verb == RENAMED:
            self._rename(step, kind)
            return
        if step.verb == REWRITTEN:
            self._rewrite(step, kind)
            return
        was_due = self._forget(kind, structure.name)
        if not self._is_of_before(step):
            self._make(step, kind)
        else:
            self._drop(step, kind, was_due=was_due)

    def leave_out(self, step: Step, reason: str) -> None:
        """Record that the target lacks a virtual column, with the reason."""
        assert step.after is not None
        self.forget_column(step.after.name)
        made = TargetSql("", reason=reason)
        self._note("column", step.after.name, step, made, "reported")

    def forget_column(self, name: str) -> None:
        """Delete the record of a virtual column."""
        self._forget("column", name)

    def forget_all(self) -> None:
        """Delete all records of the table. Call this if another table has its name now."""
        self._connection.execute(_FORGET_TABLE, (self._settings.subscription, self._event.table))

    def _forget(self, kind: str, name: str) -> bool:
        """Delete the record of an object. Return True if its change was `due`, so that it may be in
        progress.
        """
        key = self._settings.subscription, self._event.table, kind, name
        return (True,) in self._connection.execute(_FORGET, key).fetchall()

    @staticmethod
    def _is_of_before(step: Step) -> bool:
        """Return whether the step removes an object. If an object was altered, a first step removes
        it, and a second one adds it.
        """
        return step.verb in ("dropped", "disabled") or step.is_first

    def _make(self, step: Step, kind: str) -> None:
        structure = step.structure
        assert structure is not None
        made = self._settings.translate(self._settings, self._definition, step)
        if made.present and self._is(made.present):
            return
        state = "due" if self._follows(step.kind) and not made.reason else "reported"
        if state == "due" and self._is_partitioned():
            made = made._replace(
                reason="the table is partitioned, and PostgreSQL cannot create this without"
                " blocking writes"
            )
            state = "reported"
        of_parent = isinstance(structure, Constraint) and structure.kind == "foreign key"
        if of_parent and self._settings.triggers is TriggerHandling.DISABLE:
            made = made._replace(
                reason="create it after the cut-over, because triggers are disabled until then"
            )
            state = "reported"
        self._note(kind, structure.name, step, made, state)

    def _rename(self, step: Step, kind: str) -> None:
        """Rename an index or a constraint, or record that a person must. Do nothing if the target
        lacks it, or has another name for it.
        """
        structure = step.structure
        assert structure is not None
        before = replace(structure, name=step.text)
        found = self._found(step._replace(structure=before))
        wanted = self._settings.choices.name(structure.name)
        if found is None or found == wanted or found not in self._names(step.text):
            return
        words, place = "ALTER TABLE {} RENAME CONSTRAINT {} TO {}", self._target.identifier
        names = [sql.Identifier(found), sql.Identifier(wanted)]
        if kind == "index":
            words, place = "ALTER INDEX {} RENAME TO {}", sql.Identifier(self._target.schema, found)
            del names[0]
        statement = sql.SQL(words).format(place, *names).as_string(self._connection)
        if self._follows(step.kind):
            self._connection.execute(statement.encode())
            return
        gone = TargetSql(wanted, (statement,), self._absent(kind, found))
        self._note(kind, structure.name, step, gone, "reported")

    def _rewrite(self, step: Step, kind: str) -> None:
        """Build the SQL of a pending creation again, because names that it contains have changed.
        Do nothing if nothing is pending: PostgreSQL itself changes the names in existing objects.
        """
        structure = step.structure
        assert structure is not None
        key = self._settings.subscription, self._event.table, kind, structure.name
        for number, statements in self._connection.execute(_PENDING, key).fetchall():
            if statements and not _creates(statements[0]):
                continue
            made = self._settings.translate(self._settings, self._definition, step)
            told = made.name, list(made.statements), made.present or None, made.reason or None
            self._connection.execute(_REWRITE, (*told, bool(made.reason), number))

    def _drop(self, step: Step, kind: str, *, was_due: bool) -> None:
        structure = step.structure
        assert structure is not None
        name = self._found(step)
        if name is None and not was_due:
            return
        name = name or self._names(structure.name)[0]
        statement = self._dropping(kind, name)
        if self._follows(step.kind) and not was_due:
            self._connection.execute(statement.encode())
            return
        due = self._follows(step.kind)
        later = (
            statement.replace("DROP INDEX ", "DROP INDEX CONCURRENTLY ", 1) if due else statement
        )
        gone = TargetSql(name, (later,), self._absent(kind, name))
        self._note(kind, structure.name, step, gone, "due" if due else "reported")

    def _dropping(self, kind: str, name: str) -> str:
        if kind == "index":
            whole = sql.Identifier(self._target.schema, name)
            return sql.SQL("DROP INDEX {}").format(whole).as_string(self._connection)
        words = sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}")
        return words.format(self._target.identifier, sql.Identifier(name)).as_string(
            self._connection
        )

    def _absent(self, kind: str, name: str) -> str:
        """Return a query whose result is true if the object no longer exists."""
        if kind == "index":
            whole = sql.Identifier(self._target.schema, name).as_string(self._connection)
            query = sql.SQL("SELECT to_regclass({}) IS NULL").format(sql.Literal(whole))
        else:
            whole = self._target.identifier.as_string(self._connection)
            query = sql.SQL(
                "SELECT NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass({})"
                " AND conname = {})"
            ).format(sql.Literal(whole), sql.Literal(name))
        return query.as_string(self._connection)

    def _found(self, step: Step) -> str | None:
        """Return the name that an object of the source has in the target; None if the target lacks
        it.
        """
        structure = step.structure
        assert structure is not None
        asked: dict[str, Any] = {"table": self._target.oid, "names": self._names(structure.name)}
        query = _INDEX
        if isinstance(structure, Constraint):
            query = _CONSTRAINT
            asked["kind"] = _TYPES[structure.kind]
            asked["columns"] = [self._columns.get(one, one) for one in structure.columns]
        row = self._connection.execute(query, asked).fetchone()
        return None if row is None else str(row[0])

    def _names(self, name: str) -> list[str]:
        plain = self._settings.choices.name(name)
        return [_cut(plain, ending) for ending in _ENDINGS]

    def _follows(self, kind: DdlKind) -> bool:
        return self._settings.ddl.get(kind, DdlPolicy.REPORT) is DdlPolicy.FOLLOW

    def _is(self, query: str) -> bool:
        return self._connection.execute(query.encode()).fetchone() == (True,)

    def _is_partitioned(self) -> bool:
        query = "SELECT relkind = 'p' FROM pg_class WHERE oid = %s"
        return self._connection.execute(query, (self._target.oid,)).fetchone() == (True,)

    def _note(self, kind: str, name: str, step: Step, made: TargetSql, state: str) -> None:
        event = self._event
        values: Sequence[object] = (
            self._settings.subscription,
            event.table,
            self._target.full_name,
            event.commit_scn,
            format_xid(event.xid),
            kind,
            name,
            made.name,
            str(step),
            list(made.statements),
            made.present or None,
            made.reason or None,
            state,
        )
        self._connection.execute(_NOTE, values)
        _log.warning(
            "the structure in Oracle changed and now differs from the target",
            table=event.table,
            scn=event.commit_scn,
            what=str(step),
            sql="; ".join(made.statements) or None,
            reason=made.reason or None,
            is_made=state == "due",
        )


def _creates(statement: str) -> bool:
    return statement.startswith("CREATE ") or " ADD CONSTRAINT " in statement


def _cut(name: str, end: str) -> str:
    return name.encode()[: _NAME_BYTES - len(end)].decode(errors="ignore") + end
