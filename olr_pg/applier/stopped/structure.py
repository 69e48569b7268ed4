"""Records in the target which indexes, keys and check constraints the source's DDL creates or
drops.

A row of `olr_pg.structure` is a pending change of the target. If the state of the row is
`reported`, a person must make the change; if it is `due`, `applier.structure_maker` makes it. The
change is not made in the event's transaction, because it takes time, and because ``CREATE INDEX
CONCURRENTLY`` cannot be part of a transaction. The row is written in the event's transaction, so
exactly once, and is deleted as soon as the target has the change. But an existing object is dropped
in the event's transaction, because later rows may violate it.

A row creates, renames or removes an object. The source can drop an object and create another one of
the same name before the target's object is removed. If so, the rows of both objects remain, and
their changes are made in order. Until the first change is made, the object of this name is the old
object.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import structlog
from psycopg import Connection, sql

from olr_pg.applier.settings import ApplierSettings, DdlPolicy, TargetSql, TriggerHandling
from olr_pg.dictionary.evolution import RENAMED, REPLACED, REWRITTEN, DdlKind, Step
from olr_pg.dictionary.inventory import Constraint, InventoryIndex
from olr_pg.postgres.printed_definitions import CHECK, INDEX, printed, printed_on_copy
from olr_pg.postgres.sqlstates import is_transient
from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.applier.target.catalogue import TargetTable
    from olr_pg.transactions.schema_event import SchemaEvent

_NOTE: Final = """
INSERT INTO olr_pg.structure (subscription, source_table, target_table, commit_scn, xid, kind,
    source_name, target_name, what, statements, present, reason, state)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_FORGET: Final = "DELETE FROM olr_pg.structure WHERE id = %s RETURNING state = 'due'"

_PENDING: Final = """
SELECT id, source_name, target_name, statements, present, state = 'due' FROM olr_pg.structure
WHERE subscription = %s AND source_table = %s AND kind = %s ORDER BY id
"""
_REPLACE: Final = """
UPDATE olr_pg.structure SET source_name = %s, what = %s, statements = %s, present = %s
WHERE id = %s
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
_IDENTITIES: Final = {
    "index": """
        SELECT indexrelid::bigint, pg_get_indexdef(indexrelid)
        FROM pg_index JOIN pg_class c ON c.oid = indexrelid
        WHERE indrelid = to_regclass(%s) AND c.relname = %s
    """,
    "constraint": """
        SELECT oid::bigint, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE conrelid = to_regclass(%s) AND conname = %s
    """,
}
_ABSENT: Final = {
    "index": "SELECT NOT EXISTS (SELECT FROM pg_index JOIN pg_class c ON c.oid = indexrelid"
    " WHERE indrelid = to_regclass({}) AND c.relname = {}",
    "constraint": "SELECT NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass({})"
    " AND conname = {}",
}
_IS_IT: Final = {
    "index": " AND (indexrelid = {} OR pg_get_indexdef(indexrelid) = {})",
    "constraint": " AND (oid = {} OR pg_get_constraintdef(oid) = {})",
}
_KEY: Final = """
SELECT FROM pg_constraint c WHERE conrelid = %s AND conname = %s AND confdeltype = %s
    AND %s = ARRAY(SELECT a.attname::text
        FROM unnest(conkey) WITH ORDINALITY k (number, place)
        JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = k.number ORDER BY k.place)
"""
_RULES: Final = {"": "a", "CASCADE": "c", "SET NULL": "n"}
"""By Oracle's delete rule: `pg_constraint.confdeltype`, which is a blank for other constraints."""
_TYPES: Final = {"primary key": "p", "unique": "u", "foreign key": "f", "check": "c"}
_ENDINGS: Final = ("", "_idx", "_key", "_pkey")
"""Suffixes that `schema.relations.Relations.free_name` may have added to an object's name."""
_NAME_BYTES: Final = 63

_log = structlog.get_logger(__name__)


class _Pending(NamedTuple):
    """A pending change of the target.

    Attributes:
        source: the name of the object in the source.
        name: the name of the object in the target, before the change.
    """

    number: int
    source: str
    name: str
    statements: Sequence[str]
    present: str | None
    is_due: bool

    @property
    def removes(self) -> bool:
        """Whether the change removes an object that the source has dropped."""
        first = self.statements[0] if self.statements else ""
        return first.startswith("DROP INDEX ") or " DROP CONSTRAINT " in first

    @property
    def renames(self) -> bool:
        """Whether the change renames an object."""
        first = self.statements[0] if self.statements else ""
        return first.startswith("ALTER ") and " RENAME " in first


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
        event: the event. The source's table still exists after the event.
        columns: the target column's name for each source column.
    """

    def __init__(
        self,
        connection: Connection[Any],
        settings: ApplierSettings,
        event: SchemaEvent,
        target: TargetTable,
        columns: Mapping[str, str],
    ) -> None:
        assert event.definition is not None
        self._connection, self._settings, self._event = connection, settings, event
        self._target, self._definition, self._columns = target, event.definition, columns

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
        if step.verb == REPLACED:
            for one in self._pending(kind, structure.name):
                self._delete(one)
            return
        self._settle(kind, structure.name)
        removal = self._removal(kind, structure.name)
        if self._is_of_before(step):
            self._drop(step, kind, removal)
        else:
            self._make(step, kind, removal)

    def leave_out(self, step: Step, reason: str) -> None:
        """Record that the target lacks a virtual column, with the reason."""
        assert step.after is not None
        self.forget_column(step.after.name)
        made = TargetSql("", reason=reason)
        self._note("column", step.after.name, step, made, "reported")

    def forget_column(self, name: str) -> None:
        """Delete the record of a virtual column."""
        self._forget("column", name)

    def _pending(self, kind: str, name: str) -> list[_Pending]:
        """Return the pending changes of the objects that have, or had, a name in the source."""
        return [one for one in self._pending_of_table(kind) if one.source == name]

    def _pending_of_table(self, kind: str) -> list[_Pending]:
        key = self._settings.subscription, self._event.table, kind
        return [_Pending(*row) for row in self._connection.execute(_PENDING, key).fetchall()]

    def _forget(self, kind: str, name: str) -> bool:
        """Delete the pending creation or renaming of an object. Return True if its change was
        `due`: the change may then be in progress.
        """
        gone = [one for one in self._pending(kind, name) if not one.removes]
        return max([self._delete(one) for one in gone], default=False)

    def _delete(self, one: _Pending) -> bool:
        return (True,) in self._connection.execute(_FORGET, (one.number,)).fetchall()

    def _settle(self, kind: str, name: str) -> None:
        """Delete the records of changes that the target already has. Check the changes in their
        order: an object that must be removed first can have the name of an object that is not
        created yet.
        """
        for one in self._pending(kind, name):
            if not self._is(one.present):
                return
            self._delete(one)

    def _removal(self, kind: str, name: str) -> _Pending | None:
        """Return the pending removal of an earlier object with a name."""
        found = [one for one in self._pending(kind, name) if one.removes]
        return found[0] if found else None

    @staticmethod
    def _is_of_before(step: Step) -> bool:
        """Return whether the step removes an object. If an object was altered, a first step removes
        it, and a second one adds it.
        """
        return step.verb in ("dropped", "disabled") or step.is_first

    def _make(self, step: Step, kind: str, removal: _Pending | None) -> None:
        """Record that an object must be created, unless the target has it.

        Args:
            removal: the pending removal of an earlier object with the same name.
        """
        structure = step.structure
        assert structure is not None
        self._forget(kind, structure.name)
        made = self._settings.translate(self._settings, self._definition, step)
        others = self._pending_of_table(kind)
        is_taken = any(one.name == made.name and (one.removes or one.renames) for one in others)
        if not is_taken and self._is(made.present):
            return
        if removal is not None and not removal.is_due and self._is_again(step, removal, made):
            self._delete(removal)
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

    def _is_again(self, step: Step, removal: _Pending, made: TargetSql) -> bool:
        """Return whether the object that the target still has is the one that the source has
        created or enabled again. A name is no proof.
        """
        structure = step.structure
        if step.verb == "enabled" or made.reason:
            return step.verb == "enabled"
        if isinstance(structure, InventoryIndex):
            return self._is_printed_alike(INDEX, removal.name, made)
        assert structure is not None
        if structure.kind == "check":
            return self._is_printed_alike(CHECK, removal.name, made)
        columns = [self._columns.get(one, one) for one in structure.columns]
        rule = _RULES[structure.delete_rule] if structure.kind == "foreign key" else " "
        values = self._target.oid, removal.name, rule, columns
        return self._is(made.present) and self._connection.execute(_KEY, values).rowcount == 1

    def _is_printed_alike(self, kind: str, name: str, made: TargetSql) -> bool:
        """Return whether PostgreSQL prints the same definition for an object of the target and for
        a new one.
        """
        whole = self._target.identifier.as_string(self._connection)
        statement = made.statements[0].replace(" CONCURRENTLY ", " ", 1)
        try:
            new = printed_on_copy(self._connection, whole, [statement])
        except psycopg.Error as error:
            if is_transient(error):
                raise
            return (
                False  # perhaps TEMPORARY is not granted: the caller removes and creates the object
            )
        old = printed(self._connection, whole).get((kind, name))
        return old is not None and old == new.get((kind, made.name))

    def _rename(self, step: Step, kind: str) -> None:
        """Rename an index or a constraint, or record that a person must. Do nothing if the target
        lacks it, or has another name for it. If the index or constraint is not created yet, create
        it under the new name.
        """
        structure = step.structure
        assert structure is not None
        self._settle(kind, step.text)
        before = replace(structure, name=step.text)
        found = self._found(step._replace(structure=before))
        is_old = self._removal(kind, step.text) is not None
        is_ours = found in self._names(step.text)
        renaming = self._renaming(kind, step.text)
        for one in self._pending(kind, step.text):
            if not one.removes and not one.renames:
                self._delete(one)
                added = step._replace(verb="added", text="")
                self._make(added, kind, self._removal(kind, structure.name))
        wanted = self._settings.choices.name(structure.name)
        if renaming is not None and renaming.name == wanted:
            self._delete(renaming)
            return
        if renaming is None and (found is None or is_old or not is_ours or found == wanted):
            return
        name = renaming.name if renaming is not None else str(found)
        words, place = "ALTER TABLE {} RENAME CONSTRAINT {} TO {}", self._target.identifier
        names = [sql.Identifier(name), sql.Identifier(wanted)]
        if kind == "index":
            words, place = "ALTER INDEX {} RENAME TO {}", sql.Identifier(self._target.schema, name)
            del names[0]
        statement = sql.SQL(words).format(place, *names).as_string(self._connection)
        if renaming is not None:
            self._replace(renaming, step, statement)
        elif self._follows(step.kind):
            self._make_way(kind, wanted)
            self._connection.execute(statement.encode())
        else:
            gone = TargetSql(name, (statement,), self._absent(kind, name))
            self._note(kind, structure.name, step, gone, "reported")

    def _renaming(self, kind: str, name: str) -> _Pending | None:
        """Return the pending renaming of the object that has a name in the source."""
        found = [one for one in self._pending(kind, name) if one.renames]
        return found[0] if found else None

    def _replace(self, renaming: _Pending, step: Step, statement: str) -> None:
        """Replace a pending renaming by the later change of the same object. The change gets the
        place of the renaming in the order, because another object can wait for the name that
        becomes free.
        """
        assert step.structure is not None
        values = step.structure.name, str(step), [statement], renaming.present, renaming.number
        self._connection.execute(_REPLACE, values)

    def _make_way(self, kind: str, name: str) -> None:
        """Remove an object that must be removed, and whose name another one gets now."""
        for one in self._pending_of_table(kind):
            if one.removes and one.name == name and not self._is(one.present):
                self._delete(one)
                self._connection.execute(self._dropping(kind, name).encode())

    def _rewrite(self, step: Step, kind: str) -> None:
        """Build the SQL of a pending creation again, because names that it contains have changed.
        Do nothing if nothing is pending: PostgreSQL itself changes the names in existing objects.
        """
        structure = step.structure
        assert structure is not None
        for one in self._pending(kind, structure.name):
            if one.removes or one.renames:
                continue
            made = self._settings.translate(self._settings, self._definition, step)
            told = made.name, list(made.statements), made.present or None, made.reason or None
            self._connection.execute(_REWRITE, (*told, bool(made.reason), one.number))

    def _drop(self, step: Step, kind: str, removal: _Pending | None) -> None:
        """Drop an object of the target, or record that it must be dropped.

        Args:
            removal: the pending removal of an earlier object with the same name. As long as it is
                pending, the target cannot have this object, except under its former name.
        """
        structure = step.structure
        assert structure is not None
        renaming = self._renaming(kind, structure.name)
        if renaming is not None:
            statement = self._dropping(kind, renaming.name)
            self._replace(renaming, step, statement)
            return
        name = self._found(step)
        was_due = self._forget(kind, structure.name)
        if removal is not None or (name is None and not was_due):
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
        """Return a query whose result is true if the object no longer exists. Another object with
        its name does not count: it has another OID, and another definition. After a restore of the
        target only the OID differs, and after a rename of a column only the definition. If the
        object is only now being created, any object of this name counts.
        """
        whole = self._target.identifier.as_string(self._connection)
        found = self._connection.execute(_IDENTITIES[kind], (whole, name)).fetchone()
        words = _ABSENT[kind] + (_IS_IT[kind] if found else "") + ")"
        query = sql.SQL(words).format(*map(sql.Literal, (whole, name, *(found or ()))))
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

    def _is(self, query: str | None) -> bool:
        """Return the result of a query; False if there is no query."""
        if not query:
            return False
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


def _cut(name: str, end: str) -> str:
    return name.encode()[: _NAME_BYTES - len(end)].decode(errors="ignore") + end
