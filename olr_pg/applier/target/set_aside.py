"""Disables triggers, rules and foreign keys of target tables during replication, and restores them
at the cut-over.

If the applier's role can set ``session_replication_role``, nothing need be disabled, because the
parameter keeps triggers, rules and foreign keys from firing. But managed services often do not
allow the role to set it. If `apply.triggers` is "disable", the applier disables the ordinary
triggers and rules of each target table, and drops the table's foreign keys and those that reference
it. The transaction that disables and drops these objects also records them in ``olr_pg.set_aside``,
so a killed process leaves nothing half done. The cut-over restores the recorded objects. Only the
owner of a table can disable and restore these objects. Triggers that fire ALWAYS or only for
REPLICA are not changed.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import structlog
from psycopg import sql

from olr_pg.applier.settings import TriggerHandling
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.later_constraints import NOT_VALID, run_statement
from olr_pg.postgres.sqlstates import is_of_statement, is_transient, plain_words, target_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings

FIRES: Final = """
WITH RECURSIVE part AS (
    SELECT name AS whole, to_regclass(name)::oid AS oid FROM unnest(%(fires_on)s::text[]) AS name
  UNION
    SELECT part.whole, i.inhrelid FROM pg_inherits i JOIN part ON i.inhparent = part.oid
), keys AS (
    SELECT part.whole, k.oid FROM pg_constraint k JOIN part ON part.oid = k.conrelid
    WHERE k.contype = 'f' AND k.conparentid = 0
  UNION
    SELECT part.whole, k.oid FROM pg_constraint k JOIN part ON part.oid = k.confrelid
    WHERE k.contype = 'f' AND k.conparentid = 0
), firing AS (
    SELECT part.whole, 'trigger' AS kind, t.tgrelid AS relation, t.tgname::text AS name,
        NULL AS definition, NULL AS remark, true AS valid
    FROM pg_trigger t JOIN part ON part.oid = t.tgrelid
    WHERE NOT t.tgisinternal AND t.tgenabled = 'O' AND NOT EXISTS (
        SELECT FROM pg_trigger whole WHERE whole.oid = t.tgparentid AND whole.tgenabled = 'O')
  UNION ALL
    SELECT part.whole, 'rule', r.ev_class, r.rulename::text, NULL, NULL, true
    FROM pg_rewrite r JOIN part ON part.oid = r.ev_class
    WHERE r.ev_enabled = 'O' AND r.ev_type <> '1'
  UNION ALL
    SELECT keys.whole, 'foreign key', k.conrelid, k.conname::text, pg_get_constraintdef(k.oid),
        obj_description(k.oid, 'pg_constraint'), k.convalidated
    FROM pg_constraint k JOIN keys ON keys.oid = k.oid
    WHERE coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true)
)
"""
"""Selects the triggers, rules and foreign keys that act on ordinary writes to the tables `fires_on`
(quoted names) and their partitions. Foreign keys that are NOT ENFORCED (since PostgreSQL 18) are
left out.

A partition's trigger that belongs to an enabled trigger of the whole table is not selected, because
it is disabled together with that trigger.
"""

_FIRING: Final = (
    FIRES  # noqa: S608 - constants alone
    + """
SELECT f.whole, f.kind, n.nspname::text, c.relname::text, f.name, f.definition,
    CASE f.kind WHEN 'trigger' THEN (
        SELECT json_agg(json_build_array(pn.nspname, pc.relname, pt.tgenabled)
                        ORDER BY pn.nspname, pc.relname)::text
        FROM pg_trigger pt JOIN pg_partition_tree(f.relation) tree ON tree.relid = pt.tgrelid
            JOIN pg_class pc ON pc.oid = pt.tgrelid JOIN pg_namespace pn ON pn.oid = pc.relnamespace
        WHERE pt.tgname = f.name AND pt.tgparentid <> 0 AND pt.tgrelid <> f.relation
            AND pt.tgenabled <> 'O'
    ) ELSE f.remark END, f.valid
FROM firing f JOIN pg_class c ON c.oid = f.relation JOIN pg_namespace n ON n.oid = c.relnamespace
ORDER BY f.kind, n.nspname, c.relname, f.name
"""
)
_NOTE: Final = """
INSERT INTO olr_pg.set_aside
    (subscription, kind, schema_name, table_name, name, definition, remark, valid)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (subscription, kind, schema_name, table_name, name) DO UPDATE
SET definition = excluded.definition, remark = excluded.remark, valid = excluded.valid
"""
_NOTED: Final = """
SELECT kind, schema_name, table_name, name, definition, remark, valid FROM olr_pg.set_aside
WHERE subscription = %s ORDER BY kind, schema_name, table_name, name
"""
_FORGET: Final = """
DELETE FROM olr_pg.set_aside WHERE (subscription, kind, schema_name, table_name, name)
    = (%s, %s, %s, %s, %s)
"""
_KEYS: Final = """
SELECT schema_name, table_name, name, definition FROM olr_pg.set_aside
WHERE subscription = %s AND kind = 'foreign key'
"""
_REDEFINE: Final = """
UPDATE olr_pg.set_aside SET definition = %s
WHERE subscription = %s AND kind = 'foreign key' AND schema_name = %s AND table_name = %s
    AND name = %s
"""
_WORD: Final = r'(?:"(?:[^"]|"")*"|[^\s".,()]+)'
_LIST: Final = rf"\((?:{_WORD}|[, ])*\)"
_KEY_PARTS: Final = re.compile(
    rf"FOREIGN KEY (?P<own>{_LIST})"
    rf" REFERENCES (?P<parent>{_WORD}\.{_WORD})(?P<others>{_LIST})(?P<rest>.*)",
    re.DOTALL,
)
"""Matches a definition of a foreign key as PostgreSQL prints it (pg_get_constraintdef)."""
_SET_COLUMNS: Final = re.compile(rf"(?<= SET NULL ){_LIST}|(?<= SET DEFAULT ){_LIST}")
"""Matches the columns of ON DELETE SET NULL and ON DELETE SET DEFAULT."""

_LOCK_SECONDS: Final = 30
_OFF: Final = {
    "trigger": "ALTER TABLE {table} DISABLE TRIGGER {name}",
    "rule": "ALTER TABLE {table} DISABLE RULE {name}",
    "foreign key": "ALTER TABLE {table} DROP CONSTRAINT {name}",
}
_ON: Final = {
    "trigger": "ALTER TABLE {table} ENABLE TRIGGER {name}",
    "rule": "ALTER TABLE {table} ENABLE RULE {name}",
}

_IS_THERE: Final = {
    "trigger": "SELECT EXISTS (SELECT FROM pg_trigger"
    " WHERE tgrelid = to_regclass(%(table)s) AND tgname = %(name)s)",
    "rule": "SELECT EXISTS (SELECT FROM pg_rewrite"
    " WHERE ev_class = to_regclass(%(table)s) AND rulename = %(name)s)",
    "foreign key": "SELECT to_regclass(%(table)s) IS NOT NULL AND NOT EXISTS (SELECT"
    " FROM pg_constraint WHERE conrelid = to_regclass(%(table)s) AND conname = %(name)s)",
}
_STATES: Final = {
    "D": "ALTER TABLE {table} DISABLE TRIGGER {name}",
    "R": "ALTER TABLE {table} ENABLE REPLICA TRIGGER {name}",
    "A": "ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}",
}
"""By pg_trigger.tgenabled, the statement that gives a partition's trigger its state back. It is
needed because disabling or enabling the trigger of the whole table overwrites the state.
"""

_log = structlog.get_logger(__name__)


class Firing(NamedTuple):
    """A trigger, rule or foreign key that acts on ordinary writes.

    Attributes:
        kind: ``trigger``, ``rule`` or ``foreign key``.
        schema, table: the table that has the object; for a foreign key, the referencing table.
        definition: the definition of a foreign key, as PostgreSQL prints it; else None.
        remark: the comment of a foreign key. For a trigger of a partitioned table, the partitions
            in which its state differs, as JSON: ``[[schema, table, tgenabled], …]``.
        valid: whether a foreign key is validated.
    """

    kind: str
    schema: str
    table: str
    name: str
    definition: str | None
    remark: str | None
    valid: bool

    @property
    def title(self) -> str:
        """Return the name for display."""
        return f"{self.kind} {self.name} of {self.schema}.{self.table}"

    @property
    def identifier(self) -> sql.Identifier:
        """``"schema"."table"``."""
        return sql.Identifier(self.schema, self.table)

    def off(self) -> sql.Composed:
        """Return the statement that disables or drops the object."""
        return sql.SQL(_OFF[self.kind]).format(
            table=self.identifier, name=sql.Identifier(self.name)
        )

    def in_partitions(self) -> Iterator[sql.Composed]:
        """Yield the statements that restore the states of a trigger in partitions, where they
        differ.
        """
        if self.kind == "trigger" and self.remark is not None:
            for schema, table, state in json.loads(self.remark):
                yield sql.SQL(_STATES[state]).format(
                    table=sql.Identifier(schema, table), name=sql.Identifier(self.name)
                )


class PutBack(NamedTuple):
    """The result of `put_back`.

    Attributes:
        done: the restored objects. The foreign keys among them must still be validated.
        lost: objects that could not be restored, with the reason. Their records are kept.
        gone: objects that were not restored, because their table was dropped, or because somebody
            has dropped the trigger or created the foreign key again.
    """

    done: list[Firing]
    lost: list[str]
    gone: list[Firing]


def firing_on(
    connection: Connection[Any], tables: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], list[Firing]]:
    """Return the triggers, rules and foreign keys that act on ordinary writes to tables.

    Args:
        tables: schema and name of each table. Missing tables are ignored.

    Returns:
        The objects of each table that has any.
    """
    names = {sql.Identifier(*table).as_string(connection): table for table in tables}
    found = dict[tuple[str, str], list[Firing]]()
    for whole, *row in connection.execute(_FIRING, {"fires_on": list(names)}):
        found.setdefault(names[whole], []).append(Firing(*row))
    return found


def check_quiet(
    connection: Connection[Any], settings: ApplierSettings, schema: str, name: str
) -> None:
    """Check that nothing fires on a target table, if `apply.triggers` is "disable".

    Raises:
        OlrPgError: 5028, a trigger, rule or foreign key was added after the others were disabled.
    """
    if settings.triggers is not TriggerHandling.DISABLE:
        return
    found = firing_on(connection, [(schema, name)]).get((schema, name))
    if found:
        raise OlrPgError(
            Code.TARGET_FIRES, "; ".join(one.title for one in found), target=f"{schema}.{name}"
        )


def set_aside(
    connection: Connection[Any], settings: ApplierSettings, targets: Iterable[tuple[str, str]]
) -> list[Firing]:
    """Disable the triggers, rules and foreign keys of target tables, if `apply.triggers` is
    "disable".

    Args:
        connection: in autocommit mode, or in the caller's transaction.
        targets: schema and name of each target table. Missing tables are ignored.

    Returns:
        The objects that the call has disabled.

    Raises:
        OlrPgError: 5004, the role does not own a table.
        psycopg.errors.LockNotAvailable: another session kept a table locked for half a minute.
    """
    if settings.triggers is not TriggerHandling.DISABLE:
        return []
    done, wanted = list[Firing](), list(targets)
    firing = firing_on(connection, wanted)
    for target in filter(firing.__contains__, wanted):
        with connection.transaction():
            with _full_names(connection):
                found = firing_on(connection, [target]).get(target)
            if found:
                _set_aside(connection, settings.subscription, found)
                done += found
    for one in done:
        _log.info("a trigger, rule or foreign key was disabled until the cut-over", what=one.title)
    return done


def rename_referenced(
    connection: Connection[Any],
    subscription: str,
    table: tuple[str, str],
    columns: tuple[str, str],
) -> None:
    """Rename a column in the definitions of dropped foreign keys, in the transaction that renames
    the column of the target table.

    Args:
        table: schema and name of the target table.
        columns: the old and the new name.
    """
    for schema, name, key, definition in connection.execute(_KEYS, (subscription,)).fetchall():
        parts = _KEY_PARTS.fullmatch(definition)
        if parts is None:
            continue  # the cut-over reports a foreign key that it cannot restore
        own, parent, others, rest = parts.group("own", "parent", "others", "rest")
        if (schema, name) == table:
            own = _renamed(own, columns)
            rest = _SET_COLUMNS.sub(lambda found: _renamed(found[0], columns), rest)
        if tuple(map(_plain, re.findall(_WORD, parent))) == table:
            others = _renamed(others, columns)
        changed = f"FOREIGN KEY {own} REFERENCES {parent}{others}{rest}"
        if changed != definition:
            values = changed, subscription, schema, name, key
            connection.execute(_REDEFINE, values)


def _renamed(listed: str, columns: tuple[str, str]) -> str:
    """Rename a column in a list of columns in parentheses."""
    old, new = columns

    def name(found: re.Match[str]) -> str:
        return '"' + new.replace('"', '""') + '"' if _plain(found[0]) == old else found[0]

    return re.sub(_WORD, name, listed)


def _plain(word: str) -> str:
    return word[1:-1].replace('""', '"') if word.startswith('"') else word


@contextmanager
def _full_names(connection: Connection[Any]) -> Iterator[None]:
    """Make PostgreSQL print table names in definitions with their schema, so that the definitions
    do not depend on the search path.

    Args:
        connection: in a transaction.
    """
    row = connection.execute("SELECT current_setting('search_path')").fetchone()
    assert row is not None
    connection.execute("SET LOCAL search_path = ''")
    yield
    connection.execute("SELECT set_config('search_path', %s, true)", row)


def _set_aside(connection: Connection[Any], subscription: str, found: Sequence[Firing]) -> None:
    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
            for one in found:
                connection.execute(_NOTE, (subscription, *one))
                for statement in (one.off(), *one.in_partitions()):
                    connection.execute(statement)
            connection.execute("SET LOCAL lock_timeout = DEFAULT")
    except psycopg.Error as error:
        if is_transient(error):
            raise
        table = f"{found[0].schema}.{found[0].table}"
        raise target_error(
            error, "cannot disable triggers, rules and foreign keys", is_ddl=True, table=table
        ) from error


def noted(connection: Connection[Any], subscription: str) -> list[Firing]:
    """Return the objects that are recorded as disabled."""
    return [Firing(*row) for row in connection.execute(_NOTED, (subscription,))]


def put_back(
    connection: Connection[Any], subscription: str, what: Sequence[Firing] | None = None
) -> PutBack:
    """Restore disabled objects. For each object, one transaction restores it and deletes its
    record.

    Foreign keys are restored as NOT VALID, so that they apply only to new writes.
    `validate_foreign_keys` checks the existing rows.

    Args:
        what: the objects to restore; None for all recorded objects.
    """
    result = PutBack([], [], [])
    for one in noted(connection, subscription) if what is None else what:
        try:
            with connection.transaction():
                connection.execute(_FORGET, (subscription, *one[:4]))
                if _is_there(connection, one):
                    _put_back(connection, one)
                    result.done.append(one)
                else:
                    result.gone.append(one)
        except psycopg.Error as error:
            if not is_of_statement(error, connection):
                raise
            result.lost.append(f"{one.title}: {plain_words(error)}")
    return result


def _is_there(connection: Connection[Any], one: Firing) -> bool:
    """Return whether an object can be restored: a trigger or rule must exist; for a foreign key,
    the table must exist and have no constraint of this name.
    """
    named = {"table": one.identifier.as_string(connection), "name": one.name}
    return connection.execute(_IS_THERE[one.kind], named).fetchone() == (True,)


def _put_back(connection: Connection[Any], one: Firing) -> None:
    name = sql.Identifier(one.name)
    if one.definition is None:
        connection.execute(sql.SQL(_ON[one.kind]).format(table=one.identifier, name=name))
        for statement in one.in_partitions():
            connection.execute(statement)
        return
    run_statement(connection, _key_statement(one).as_string(connection))
    if one.remark is not None:
        connection.execute(
            sql.SQL("COMMENT ON CONSTRAINT {} ON {} IS {}").format(
                name, one.identifier, sql.Literal(one.remark)
            )
        )


def _key_statement(one: Firing) -> sql.Composed:
    assert one.definition is not None
    # PostgreSQL has printed the definition, so it is correctly quoted.
    definition = one.definition.removesuffix(NOT_VALID) + NOT_VALID
    return sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} ").format(
        one.identifier, sql.Identifier(one.name)
    ) + sql.SQL(definition)


def validate_foreign_keys(connection: Connection[Any], done: Sequence[Firing]) -> list[str]:
    """Validate the restored foreign keys that were valid when they were set aside. Return
    descriptions of the violated foreign keys.
    """
    broken = list[str]()
    for one in done:
        if one.kind != "foreign key" or not one.valid:
            continue
        try:
            with connection.transaction():
                connection.execute(
                    sql.SQL("ALTER TABLE {} VALIDATE CONSTRAINT {}").format(
                        one.identifier, sql.Identifier(one.name)
                    )
                )
        except psycopg.errors.ForeignKeyViolation as error:
            broken.append(f"{one.title}: {error.diag.message_primary}")
    return broken
