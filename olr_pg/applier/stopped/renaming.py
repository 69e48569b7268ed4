"""Renames a target table after its source table was renamed, or exchanges the names of two.

A rename concerns two names. Each name has its own history: a row in the ledger, changes, and
events. In the history of the old name, an event renames the target table. In the history of the new
name, an event waits until the first event was applied. So each change is applied once, to the table
that had the name at that time. Two tables can also swap their names.

`ddl` applies the event of the new name, and explains how the two events are kept in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog
from psycopg import sql

from olr_pg.applier.settings import DdlPolicy
from olr_pg.applier.statements.target_plan import named_target, table_ledger
from olr_pg.applier.target.catalogue import has_rows, missing_table, read_table, relation_exists
from olr_pg.applier.target.table_identity import HAS_HAD_ROWS, forget_number, forget_tables
from olr_pg.dictionary.evolution import DdlKind
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.transactions.schema_event import SchemaEvent

_PARTS: Final = """
SELECT n.nspname, c.relname
FROM pg_partition_tree(to_regclass(format('%%I.%%I', %s::text, %s::text))) AS t
    JOIN pg_class c ON c.oid = t.relid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE t.level > 0 AND starts_with(c.relname, %s || '_') ORDER BY c.relname
"""
_MOVE_INCOMPLETE: Final = """
UPDATE olr_pg.incomplete SET source_table = %s, target_table = %s
WHERE subscription = %s AND source_table = %s
"""
_FORGET_UNLOGGED: Final = """
DELETE FROM olr_pg.unlogged WHERE subscription = %s AND source_table = %s
"""
_MOVE_UNLOGGED: Final = """
UPDATE olr_pg.unlogged SET source_table = %s WHERE subscription = %s AND source_table = %s
"""
_FORGET_PARTITIONS: Final = """
DELETE FROM olr_pg.partition WHERE subscription = %s AND source_table = %s
"""
_MOVE_PARTITIONS: Final = """
UPDATE olr_pg.partition SET source_table = %s WHERE subscription = %s AND source_table = %s
"""
_MOVE_SET_ASIDE: Final = """
UPDATE olr_pg.set_aside SET schema_name = %s, table_name = %s
WHERE subscription = %s AND schema_name = %s AND table_name = %s
"""
_MOVE_REFERENCES: Final = """
UPDATE olr_pg.set_aside SET definition = replace(definition,
    ' REFERENCES ' || format('%%I.%%I', %s::text, %s::text) || '(',
    ' REFERENCES ' || format('%%I.%%I', %s::text, %s::text) || '(')
WHERE subscription = %s AND kind = 'foreign key'
"""
_MOVE_STATES: Final = """
UPDATE olr_pg.set_aside SET remark = replace(remark,
    rtrim(json_build_array(%s::text, %s::text)::text, ']') || ',',
    rtrim(json_build_array(%s::text, %s::text)::text, ']') || ',')
WHERE subscription = %s AND kind = 'trigger'
"""
_FORGET_STRUCTURE: Final = """
DELETE FROM olr_pg.structure WHERE subscription = %s AND source_table = %s
"""
_MOVE_STRUCTURE: Final = """
UPDATE olr_pg.structure SET source_table = %s, target_table = %s,
    statements = ARRAY(SELECT replace(one, %s, %s)
        FROM unnest(statements) WITH ORDINALITY AS s (one, place) ORDER BY place),
    present = replace(present, %s, %s)
WHERE subscription = %s AND source_table = %s
"""
MEANWHILE: Final = "olr_pg_exchanged"
"""Temporary name of a table while two tables exchange their names in one transaction."""

_VACATE: Final = """
INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn, source, parts,
    rows, bytes, finished_at, handed_over)
VALUES (%s, %s, %s, %s, %s, 'renamed', 0, 0, 0, now(), true)
ON CONFLICT (subscription, source_table) DO UPDATE
    SET source = excluded.source, scn = excluded.scn, start_scn = excluded.start_scn, rows = 0,
        bytes = 0
"""
_BRING_ROWS: Final = f"""
INSERT INTO olr_pg.load_part (subscription, source_table, part, rows)
SELECT subscription, %(new)s, -2, 1 FROM olr_pg.ledger AS l
WHERE subscription = %(subscription)s AND source_table = %(old)s AND {HAS_HAD_ROWS}
ON CONFLICT DO NOTHING
"""  # noqa: S608 - no values
"""Records that the table has had rows. If a table without such a record and without transactions is
missing or created again, nothing is lost.
"""

_TAKE: Final = """
UPDATE olr_pg.load SET source = 'created'
WHERE subscription = %s AND source_table = %s AND source = 'renamed'
"""
_VACANT: Final = """
SELECT source_table FROM olr_pg.load WHERE subscription = %s AND source = 'renamed'
"""

_log = structlog.get_logger(__name__)


def vacant_names(connection: Connection[Any], subscription: str) -> frozenset[str]:
    """Return the old names of renamed tables that no table of the source has now."""
    return frozenset(name for (name,) in connection.execute(_VACANT, (subscription,)))


def bring_rows(connection: Connection[Any], subscription: str, old: str, new: str) -> None:
    """Record that `new` has rows that were applied under the name `old`, if there are any.

    Args:
        old, new: ``OWNER.NAME`` of two source tables.
    """
    connection.execute(_BRING_ROWS, {"subscription": subscription, "new": new, "old": old})
    forget_number(connection, subscription, new)


def take_name(connection: Connection[Any], key: tuple[str, str]) -> None:
    """Record that a table of the source has this name, if the name was an old name of a renamed
    table.

    Args:
        key: subscription and source table.
    """
    connection.execute(_TAKE, key)


def moved(old: tuple[str, str], new: tuple[str, str]) -> list[sql.Composed]:
    """Return the statements that move a table to another schema and name."""
    statements = list[sql.Composed]()
    if old[1] != new[1]:
        words = sql.SQL("ALTER TABLE {} RENAME TO {}")
        statements.append(words.format(sql.Identifier(*old), sql.Identifier(new[1])))
    if old[0] != new[0]:
        words = sql.SQL("ALTER TABLE {} SET SCHEMA {}")
        renamed = sql.Identifier(old[0], new[1])
        statements.append(words.format(renamed, sql.Identifier(new[0])))
    return statements


class Renaming:
    """Applies the event of the old name, in the open target transaction."""

    def __init__(
        self, connection: Connection[Any], settings: ApplierSettings, event: SchemaEvent
    ) -> None:
        self._connection, self._settings, self._event = connection, settings, event

    def carry_out(self, new: str) -> None:
        """Rename the target table, and change its name in the ledger's records.

        Args:
            new: the new ``OWNER.NAME`` of the source's table.

        Raises:
            OlrPgError: 5005, the target table is missing; 5147, another table has the new name.
            psycopg.Error: PostgreSQL refuses.
        """
        self._rename(new)
        _log.info(
            "DDL was applied to the target",
            table=self._event.table,
            what=f"the table was renamed to {new}",
        )

    def exchange(self, other: str) -> None:
        """Exchange the names of two target tables, because the tables of the source have exchanged
        theirs in one transaction (DBMS_REDEFINITION).

        The caller has checked that no row of the two tables lacks a LOB value.

        Args:
            other: ``OWNER.NAME`` of the other table.

        Raises:
            OlrPgError: 5005, a target table is missing.
            psycopg.Error: PostgreSQL refuses.
        """
        names = self._event.table, other
        targets = [named_target(self._settings, name) for name in names]
        for name, target in zip(names, targets, strict=True):
            if read_table(self._connection, *target) is None:
                raise missing_table(self._connection, *target, name)
        for old_name, new_name in (names, names[::-1]):
            bring_rows(self._connection, self._settings.subscription, old_name, new_name)
        own, others = (*zip(names, targets, strict=True),)
        meanwhile = MEANWHILE, (targets[0][0], MEANWHILE)
        for old, new in ((own, meanwhile), (others, own), (meanwhile, others)):
            self._alter(old[1], new[1])
            self._move_records(old[0], new[0])
            self._move_structure(old, new)
            self._move_set_aside(old[1], new[1])
        _log.info(
            "DDL was applied to the target",
            table=self._event.table,
            what=f"the name of the table was exchanged with that of {other}",
        )

    def _rename(self, new: str) -> None:
        old_target = named_target(self._settings, self._event.table)
        new_target = named_target(self._settings, new)
        is_taken = relation_exists(
            self._connection, sql.Identifier(*new_target).as_string(self._connection)
        )
        if read_table(self._connection, *old_target) is not None:
            if is_taken:
                self._make_room(new, new_target)
            self._alter(old_target, new_target)
        elif not is_taken:  # else an operator has already renamed it
            raise missing_table(self._connection, *old_target, self._event.table)
        self._move_notes(new, old_target, new_target)

    def _make_room(self, new: str, target: tuple[str, str]) -> None:
        """Drop the target table that has the new name, if it is the empty target of a dropped
        source table.

        Raises:
            OlrPgError: 5147, the table is not such a table, or the configuration does not allow
                dropping it.
        """
        identifier = sql.Identifier(*target)
        allowed = self._settings.ddl.get(DdlKind.DROP_TABLE) is DdlPolicy.FOLLOW
        state = table_ledger(self._settings, new).lock(self._connection)
        there = read_table(self._connection, *target)
        was_ours = state.position.commit_scn > 0 and not state.stopped and there is not None
        if allowed and was_ours and not has_rows(self._connection, identifier):
            self._connection.execute(sql.SQL("DROP TABLE {}").format(identifier))
            return
        raise OlrPgError(
            Code.TARGET_NAME_TAKEN,
            f"{self._event.table} was renamed to {new}, and {'.'.join(target)} exists already",
            table=self._event.table,
        )

    def _alter(self, old: tuple[str, str], new: tuple[str, str]) -> None:
        parts = self._connection.execute(_PARTS, (*old, old[1])).fetchall()
        for schema, name in (*parts, old):
            place = schema if new[0] == old[0] else new[0]
            there = place, new[1] + name.removeprefix(old[1])
            for statement in moved((schema, name), there):
                self._connection.execute(statement)
            self._move_set_aside((schema, name), there)

    def _move_notes(self, new: str, old_target: tuple[str, str], target: tuple[str, str]) -> None:
        """Change the table's name in the ledger's records."""
        run, subscription, old = self._connection, self._settings.subscription, self._event.table
        values = (new, ".".join(target), subscription, old)
        bring_rows(run, subscription, old, new)
        if run.execute(_MOVE_INCOMPLETE, values).rowcount:
            table_ledger(self._settings, new).lock(run)  # create the row that contains their number
            for name in (old, new):
                table_ledger(self._settings, name).count_incomplete(run)
        for forget in (_FORGET_UNLOGGED, _FORGET_PARTITIONS, _FORGET_STRUCTURE):
            run.execute(forget, (subscription, new))
        self._move_records(old, new)
        self._move_structure((old, old_target), (new, target))
        self._move_set_aside(old_target, target)
        scns = self._event.commit_scn, self._event.begin_scn
        run.execute(_VACATE, (subscription, old, ".".join(old_target), *scns))

    def _move_set_aside(self, old: tuple[str, str], new: tuple[str, str]) -> None:
        """Change the name of a table or partition in the records of its disabled triggers and
        foreign keys.
        """
        run, subscription = self._connection, self._settings.subscription
        run.execute(_MOVE_SET_ASIDE, (*new, subscription, *old))
        run.execute(_MOVE_REFERENCES, (*old, *new, subscription))
        run.execute(_MOVE_STATES, (*old, *new, subscription))

    def _move_records(self, old: str, new: str) -> None:
        """Change the source table's name in the records of its redo gaps and its partitions. Delete
        the OIDs that the ledger stores for the two names.
        """
        forget_tables(self._connection, self._settings.subscription, (old, new))
        for move in (_MOVE_UNLOGGED, _MOVE_PARTITIONS):
            self._connection.execute(move, (new, self._settings.subscription, old))

    def _move_structure(
        self, old: tuple[str, tuple[str, str]], new: tuple[str, tuple[str, str]]
    ) -> None:
        """Change the table's name in the SQL of its pending changes. Without this, a pending change
        would be made in the next table that gets the old name.

        Args:
            old, new: the source table, and the schema and name of the target table.
        """
        run, key = self._connection, (self._settings.subscription, old[0])
        names = [sql.Identifier(*target).as_string(run) for _, target in (old, new)]
        literals = [sql.Literal(name).as_string(run) for name in names]
        place = ".".join(new[1])
        run.execute(_MOVE_STRUCTURE, (new[0], place, *names, *literals, *key))
