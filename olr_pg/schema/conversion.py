"""Converts all objects of an inventory into statements for PostgreSQL. Objects that cannot be
translated are listed, so that a person can convert them by hand.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast

from psycopg import sql

from olr_pg.datatypes.mapping import fold_identifier
from olr_pg.schema.plsql.packages import Signatures
from olr_pg.schema.plsql.routines import (
    package_statements,
    routine_statement,
    trigger_statement,
    with_their_calls,
)
from olr_pg.schema.presence import (
    has_constraint,
    has_foreign_key,
    has_index,
    has_index_named,
    has_privilege,
    has_relation,
    has_schema,
    has_sequence_privilege,
    literal,
    may_use_schema,
)
from olr_pg.schema.relation_columns import reference_obstacle
from olr_pg.schema.relations import Relations
from olr_pg.schema.statement import KINDS, Statement, each_safely
from olr_pg.schema.structure_statements import (
    DELETE_TYPES,
    KeySide,
    foreign_key_statement,
    index_statement,
    sequence_statement,
    unique_key_statement,
)
from olr_pg.schema.table_definitions import (
    comment_statement,
    has_identity,
    made_columns,
    table_statements,
)
from olr_pg.schema.translating import UntranslatableError, quoted
from olr_pg.schema.translation import translate_expression, translate_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.inventory import (
        Constraint,
        Grant,
        IndexPart,
        Inventory,
        InventoryColumn,
        InventoryIndex,
        InventoryTable,
        InventoryView,
        MaterializedView,
        Owned,
        Trigger,
        UnitSource,
    )
    from olr_pg.dictionary.structure import OnDelete
    from olr_pg.schema.relations import Relation

_PRIVILEGES: Final = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "REFERENCES"})
_INDEX_KINDS: Final = ("NORMAL", "FUNCTION-BASED NORMAL", "BITMAP", "NORMAL/REV")
_PARTLY_NULL: Final = (
    "if {0} is NULL, Oracle refuses rows with equal values in the other key columns; PostgreSQL"
    " accepts them"
)
_PUBLIC: Final = (
    "PostgreSQL also lets PUBLIC execute it: REVOKE EXECUTE … FROM PUBLIC if others must not"
)
_REMARKS: Final = {
    "BITMAP": "the bitmap index becomes a B-tree, which PostgreSQL can combine with other indexes",
    "NORMAL/REV": "the reverse-key index becomes a normal index",
}


def convert(inventory: Inventory, settings: ApplierSettings) -> list[Statement]:
    """Return the statements for all objects of the inventory, in an order in which they can run.

    Args:
        settings: the applier's settings, with the names of schemas and tables in the target.
    """
    found = list(_Converter(inventory, settings).statements())
    return sorted(found, key=lambda one: KINDS.index(one.kind))


class _Converter:
    def __init__(self, inventory: Inventory, settings: ApplierSettings) -> None:
        self._inventory = inventory
        self._relations = Relations(inventory, settings)
        self._signatures = Signatures(inventory.sources, self._relations)
        self._texts = {(one.owner, one.name, one.kind): one.text for one in inventory.sources}
        self._materialized = {(one.owner, one.name) for one in inventory.materialized_views}
        self._referred = {
            (one.parent_owner, one.parent_table, frozenset(one.parent_columns))
            for one in inventory.constraints
            if one.kind == "foreign key"
        }

    def statements(self) -> Iterator[Statement]:
        found = self._inventory
        yield from self._schemas()
        for table in found.tables:
            name = f"{table.owner}.{table.name}"
            yield from each_safely("table", name, "", partial(self._of_table, table))
        yield from self._sequences()
        for one in found.constraints:
            name = f"{one.owner}.{one.table}.{one.name}"
            yield from each_safely(one.kind, name, one.condition, partial(self._constraint, one))
        own = [one for one in found.indexes if not one.constraint]
        for index in own:
            if (index.table_owner, index.table) not in self._materialized:
                yield from self._safe_index(index)
        yield from self._views()
        for view in found.materialized_views:
            make = partial(self._materialized_view, view)
            yield from each_safely("materialized view", view.full_name, view.query, make)
        for index in own:
            if (index.table_owner, index.table) in self._materialized:
                yield from self._safe_index(index)
        code = list(self._code())
        yield from code
        is_code = ("function", "procedure", "schema")
        yield from self._grants({one.name: one for one in code if one.kind in is_code})
        yield from self._by_hand()

    def _safe_index(self, index: InventoryIndex) -> Iterator[Statement]:
        make = partial(self._index, index)
        return each_safely("index", index.full_name, _index_text(index), make)

    def _of_table(self, table: InventoryTable) -> Iterator[Statement]:
        return table_statements(self._inventory, table, self._relations)

    def _table(self, owner: str, name: str) -> Relation | None:
        """Return a table that the conversion creates in the target; None if it creates no such
        table.
        """
        table = self._relations.table(owner, name)
        if table is None or table.kind not in ("table", "index-organised table", "clustered table"):
            return None
        return self._relations.find(owner, name)

    def _schemas(self) -> Iterator[Statement]:
        names = [
            self._relations.find(one.owner, one.name)
            for one in (*self._inventory.tables, *self._inventory.views)
        ]
        schemas = {one.schema: one.owner for one in names if one is not None}
        for sequence in self._inventory.sequences:
            found = self._relations.sequence(sequence.owner, sequence.name)
            if found is not None:
                schemas.setdefault(found[0], sequence.owner)
        for schema, owner in sorted(schemas.items()):
            yield Statement(
                "schema",
                owner,
                f"CREATE SCHEMA {quoted(schema)}",
                present=has_schema(schema),
            )

    def _sequences(self) -> Iterator[Statement]:
        """Yield the statements for the sequences that do not belong to an identity column."""
        own = set()
        for table in self._inventory.tables:
            relation = self._relations.find(table.owner, table.name)
            assert relation is not None
            own |= {
                (table.owner, column.source.identity_sequence)
                for column in made_columns(table, relation)
                if has_identity(column)
            }
        for one in self._inventory.sequences:
            if (one.owner, one.name) in own:
                continue
            name = self._relations.sequence(one.owner, one.name)
            assert name is not None
            text = sequence_statement(sql.Identifier(*name), one).as_string(None)
            target = ".".join(map(quoted, name))
            yield Statement(
                "sequence",
                one.full_name,
                text,
                present=has_relation(target, "S"),
            )

    def _constraint(self, one: Constraint) -> Iterator[Statement]:
        name = f"{one.owner}.{one.table}.{one.name}"
        if (one.owner, one.table) in self._materialized and one.kind in ("primary key", "unique"):
            reason = "PostgreSQL has no keys of materialized views: create a unique index"
            yield Statement("by hand", name, "", reason, ", ".join(one.columns), what=one.kind)
        relation = self._table(one.owner, one.table)
        if relation is None or (one.not_null and self._is_not_null(one)):
            return
        kind = {"unique": "unique key"}.get(one.kind, one.kind)
        kind = "by hand" if kind == "other" else kind
        present = has_constraint(_quoted(relation), self._constraint_name(one, relation))
        made = Statement(kind, name, "", source=one.condition, present=present)
        if one.kind == "primary key" and one.enabled:
            if one.deferrable or not one.validated:
                lost = "DEFERRABLE" if one.deferrable else "NOVALIDATE"
                reason = (
                    f"the table has this key, but without {lost}, because replication requires that"
                )
                yield made._replace(kind="by hand", what="primary key").refused(reason)
            return
        if not one.enabled:
            yield made.refused("the constraint is disabled in the source")
            return
        try:
            made = self._constraint_made(one, relation, made)
        except UntranslatableError as error:
            yield made.refused(str(error))
            return
        if not one.validated and one.kind in ("check", "unique"):
            late = " NOT VALID" if one.kind == "check" else ""
            yield made._replace(sql=made.sql + late).refused(
                "the constraint is NOVALIDATE in the source, so existing rows may violate it."
                " Correct the rows, then create the constraint after the load"
            )
            return
        yield made._replace(remark=self._constraint_remark(one, relation))

    def _is_not_null(self, one: Constraint) -> bool:
        """Return whether the NOT NULL constraint is already part of the column's definition. A
        NOVALIDATE constraint is not.
        """
        table = self._relations.table(one.owner, one.table)
        assert table is not None
        named = [column for column in table.columns if column.name in one.columns]
        return not named or not named[0].nullable

    def _constraint_name(self, one: Constraint, relation: Relation) -> str:
        name = self._relations.name(one.name)
        if one.kind != "unique":
            return name
        return self._relations.free_name(relation.schema, relation.name, name, "key")

    def _constraint_remark(self, one: Constraint, relation: Relation) -> str:
        """Return a remark that says how the constraint differs in PostgreSQL; empty if it does
        not.
        """
        referred = (one.owner, one.table, frozenset(one.columns)) in self._referred
        if one.deferrable and (one.kind == "check" or (one.kind == "unique" and referred)):
            return "the constraint is DEFERRABLE in the source; PostgreSQL checks it immediately"
        if one.kind != "unique" or len(one.columns) < 2:
            return ""
        table = self._relations.table(one.owner, one.table)
        assert table is not None
        nullable = [c.name for c in table.columns if c.name in one.columns and c.nullable]
        return _PARTLY_NULL.format(nullable[0]) if nullable else ""

    def _constraint_made(self, one: Constraint, relation: Relation, made: Statement) -> Statement:
        """Return the statement that creates a constraint. The statement's check `present`
        recognises a key or foreign key that the table already has, whatever its name.
        """
        table = sql.Identifier(relation.schema, relation.name)
        name = self._constraint_name(one, relation)
        if one.kind == "check":
            text, _ = translate_expression(one.condition, self._relations, one.owner, relation)
            return made._replace(
                sql=f"ALTER TABLE {_quoted(relation)} ADD CONSTRAINT {quoted(name)} CHECK ({text})"
            )
        columns = _columns(relation, one.columns)
        if one.kind == "unique":
            referred = (one.owner, one.table, frozenset(one.columns)) in self._referred
            statement = unique_key_statement(
                table, name, columns, referred=referred, deferred=one.deferred
            )
            return made._replace(
                sql=statement.as_string(None),
                present=has_index(_quoted(relation), columns, unique=True),
            )
        if one.kind == "foreign key":
            return self._foreign_key(one, relation, made, columns)
        raise UntranslatableError(f"a constraint of Oracle's type {one.oracle_kind}")

    def _foreign_key(
        self, one: Constraint, relation: Relation, made: Statement, columns: list[str]
    ) -> Statement:
        parent = self._table(one.parent_owner, one.parent_table) if one.parent_table else None
        if parent is None:
            where = f"{one.parent_owner}.{one.parent_table}" if one.parent_table else "a table"
            raise UntranslatableError(
                f"the foreign key refers to {where}, outside the converted schemas"
            )
        rule = cast("OnDelete", one.delete_rule.lower() or "no action")
        parent_columns = _columns(parent, one.parent_columns)
        for own, other in zip(one.columns, one.parent_columns, strict=True):
            told = f"{one.parent_owner}.{one.parent_table}.{other}"
            obstacle = reference_obstacle(relation.columns[own], parent.columns[other], told)
            if obstacle:
                raise UntranslatableError(obstacle)
        statement = foreign_key_statement(
            self._relations.name(one.name),
            KeySide(sql.Identifier(relation.schema, relation.name), columns),
            KeySide(sql.Identifier(parent.schema, parent.name), parent_columns),
            rule,
            deferrable=one.deferrable,
            deferred=one.deferred,
        )
        place = _quoted(relation), columns, _quoted(parent), parent_columns
        same = f"c.confdeltype = {literal(DELETE_TYPES[rule])}"
        return made._replace(
            sql=statement.as_string(None),
            present=has_foreign_key(*place),
            alike=has_foreign_key(*place, condition=same),
        )

    def _index(self, one: InventoryIndex) -> Iterator[Statement]:
        yield self._index_statement(one)

    def _index_statement(self, one: InventoryIndex) -> Statement:
        what = "index" if one.kind == "NORMAL" else f"{one.kind.lower()} index"
        made = Statement("index", one.full_name, "", source=_index_text(one), what=what)
        relation = self._indexed(one)
        if relation is None:
            return made.refused(f"the table {one.table_owner}.{one.table} is not created")
        if one.kind not in _INDEX_KINDS:
            return made.refused(f"an index of the kind {one.kind}: use a GIN or GiST index")
        if not one.usable:
            return made.refused("the index is unusable in the source")
        try:
            parts = [self._index_part(part, one, relation) for part in one.parts]
        except UntranslatableError as error:
            return made.refused(str(error))
        table = sql.Identifier(relation.schema, relation.name)
        name = self._relations.free_name(
            relation.schema, relation.name, self._relations.name(one.name), "idx"
        )
        composed = sql.SQL(", ").join(parts)
        text = index_statement(table, name, composed, unique=one.unique).as_string(None)
        present = has_index_named(f"{quoted(relation.schema)}.{quoted(name)}", _quoted(relation))
        if not any(part.expression or part.descending for part in one.parts):
            columns = _columns(relation, tuple(part.text for part in one.parts))
            present = has_index(_quoted(relation), columns, unique=one.unique)
        remark = _REMARKS.get(one.kind, "") or self._null_remark(one)
        kind = made.kind
        if (one.table_owner, one.table) in self._materialized:
            kind, remark = "materialized view", "an index on a materialized view"
        return made._replace(kind=kind, sql=text, present=present, what="", remark=remark)

    def _null_remark(self, one: InventoryIndex) -> str:
        """Return the remark about NULL in a part of a unique index; empty if no part can be NULL,
        or if there is only one part.
        """
        table = self._relations.table(one.table_owner, one.table)
        if not one.unique or len(one.parts) < 2 or table is None:
            return ""
        filled = {column.name for column in table.columns if not column.nullable}
        parts = [part.text for part in one.parts if part.expression or part.text not in filled]
        return _PARTLY_NULL.format(parts[0]) if parts else ""

    def _indexed(self, one: InventoryIndex) -> Relation | None:
        """Return the table or materialized view to which an index belongs; None if the conversion
        creates none.
        """
        view = (one.table_owner, one.table) in self._materialized
        found = self._relations.find(one.table_owner, one.table) if view else None
        return found or self._table(one.table_owner, one.table)

    def _index_part(
        self, part: IndexPart, one: InventoryIndex, relation: Relation
    ) -> sql.Composable:
        order = sql.SQL(" DESC" if part.descending else "")
        if not part.expression:
            (name,) = _columns(relation, (part.text,))
            return sql.Identifier(name) + order
        text, _ = translate_expression(
            part.text, self._relations, one.table_owner, relation, is_stored=True
        )
        return sql.SQL("({})").format(sql.SQL(text)) + order

    def _views(self) -> Iterator[Statement]:
        """Yield the statements for the views; each view comes after the views that it reads."""
        waiting: dict[str, tuple[Statement, set[str]]] = {}
        for view in self._inventory.views:
            waiting[view.full_name] = self._view(view)
        while waiting:
            ready = [name for name, (_, reads) in waiting.items() if not reads & waiting.keys()]
            for name in ready or list(waiting):
                yield waiting.pop(name)[0]
        for view in self._inventory.views:
            yield from self._view_comments("VIEW", view, view.comment, view.columns)

    def _view_comments(
        self, what: str, view: Owned, comment: str, columns: Iterable[InventoryColumn]
    ) -> Iterator[Statement]:
        relation = self._relations.find(view.owner, view.name)
        assert relation is not None
        target = _quoted(relation)
        if comment:
            yield comment_statement(what, view.full_name, target, comment)
        for column in columns:
            if column.comment and column.name in relation.columns:
                name = relation.columns[column.name].name
                made = comment_statement(
                    "COLUMN", f"{view.full_name}.{column.name}", target, column.comment, name
                )
                yield made._replace(kind="view comment")

    def _view(self, view: InventoryView) -> tuple[Statement, set[str]]:
        relation = self._relations.find(view.owner, view.name)
        assert relation is not None
        target = _quoted(relation)
        present = has_relation(target, "v")
        made = Statement("view", view.full_name, "", source=view.text, present=present)
        if view.read_only:
            made = made._replace(
                remark="PostgreSQL has no option WITH READ ONLY: grant only SELECT on the view"
            )
        try:
            text, reads = translate_query(view.text, self._relations, view.owner)
        except UntranslatableError as error:
            return made.refused(str(error)), set()
        names = ", ".join(quoted(column.name) for column in relation.columns.values())
        columns = f" ({names})" if names else ""
        option = " WITH CHECK OPTION" if view.check_option else ""
        return made._replace(sql=f"CREATE VIEW {target}{columns} AS\n{text}{option}"), reads

    def _materialized_view(self, view: MaterializedView) -> Iterator[Statement]:
        made = self._materialized_view_statement(view)
        yield made
        table = self._relations.table(view.owner, view.name)
        if table is not None and made.runs:
            for one in self._view_comments("MATERIALIZED VIEW", view, table.comment, table.columns):
                yield one._replace(kind="materialized view", what="comment")

    def _materialized_view_statement(self, view: MaterializedView) -> Statement:
        relation = self._relations.find(view.owner, view.name)
        assert relation is not None
        target = _quoted(relation)
        present = has_relation(target, "m")
        made = Statement("materialized view", view.full_name, "", source=view.query)
        made = made._replace(
            present=present, what=f"materialized view, refreshed on {view.refresh_mode.lower()}"
        )
        try:
            text, _ = translate_query(view.query, self._relations, view.owner)
        except UntranslatableError as error:
            return made.refused(str(error))
        return made._replace(sql=f"CREATE MATERIALIZED VIEW {target} AS\n{text}\nWITH NO DATA")

    def _code(self) -> Iterator[Statement]:
        """Yield the statements for triggers, functions, procedures and packages."""
        found = list[Statement]()
        for source in self._inventory.sources:
            make: Callable[[], list[Statement]] = partial(self._routine, source)
            found += each_safely(source.kind.lower(), source.full_name, source.text, make)
        for trigger in self._inventory.triggers:
            make = partial(self._trigger, trigger)
            found += each_safely("trigger", trigger.full_name, trigger.body, make)
        yield from with_their_calls(found)

    def _routine(self, source: UnitSource) -> list[Statement]:
        texts = self._texts
        if source.kind == "PACKAGE BODY" and (source.owner, source.name, "PACKAGE") in texts:
            text = texts[source.owner, source.name, "PACKAGE"]
            return package_statements(source, text, self._relations, self._signatures)
        if source.kind == "PACKAGE" and (source.owner, source.name, "PACKAGE BODY") in texts:
            return []  # converted together with its package body
        return [routine_statement(source, self._relations, self._signatures)]

    def _trigger(self, trigger: Trigger) -> list[Statement]:
        return [trigger_statement(trigger, self._relations, self._signatures)]

    def _grants(self, made: Mapping[str, Statement]) -> Iterator[Statement]:
        """Yield the grants. Before a role's first privilege in a schema, also grant it USAGE of the
        schema: without it, PostgreSQL rejects every use of an object of the schema.

        Args:
            made: the statements that create the routines and packages, by their names.
        """
        used = set[tuple[str, str]]()
        for one in self._inventory.grants:
            role = "" if one.grantee == "PUBLIC" else fold_identifier(one.grantee)
            statement = self._grant(one, role, made)
            schema = self._schema_of(one)
            if statement.runs and (schema, role) not in used:
                used.add((schema, role))
                yield Statement(
                    "grant",
                    f"{one.owner}.USAGE.{one.grantee}",
                    f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {_to(role)}",
                    present=may_use_schema(role, schema),
                    what="schema",
                    role=role,
                )
            yield statement

    def _schema_of(self, one: Grant) -> str:
        """Return the schema in the target of the object on which a privilege is granted."""
        relation = self._relations.find(one.owner, one.name)
        if relation is not None:
            return relation.schema
        sequence = self._relations.sequence(one.owner, one.name)
        if sequence is not None:
            return sequence[0]
        if (one.owner, one.name, "PACKAGE") in self._texts:
            return self._relations.name(one.name)
        return self._relations.code_name(one.owner, one.name)[0]

    def _grant(self, one: Grant, role: str, made: Mapping[str, Statement]) -> Statement:
        option = " WITH GRANT OPTION" if one.grantable else ""
        found = Statement(
            "grant",
            f"{one.owner}.{one.name}.{one.privilege}.{one.grantee}",
            "",
            source=f"GRANT {one.privilege} ON {one.full_name} TO {one.grantee}{option}",
            role=role,
        )
        relation = self._relations.find(one.owner, one.name)
        sequence = self._relations.sequence(one.owner, one.name)
        routine = made.get(one.full_name)
        privilege = "SELECT" if one.privilege == "READ" else one.privilege
        if relation is not None and privilege in _PRIVILEGES:
            target = _quoted(relation)
            what, present = target, has_privilege(role, target, privilege)
        elif sequence is not None and privilege == "SELECT":
            target = ".".join(map(quoted, sequence))
            privilege, what = "USAGE", f"SEQUENCE {target}"
            present = has_sequence_privilege(role, target)
        elif routine is not None and privilege == "EXECUTE":
            schema, name = self._relations.code_name(one.owner, one.name)
            what = f"ROUTINE {quoted(schema)}.{quoted(name)}"
            if routine.what == "package":
                what = f"ALL ROUTINES IN SCHEMA {quoted(self._relations.name(one.name))}"
            present, found = "", found._replace(remark=_PUBLIC)
        elif relation is not None or sequence is not None or routine is not None:
            return found.refused(f"PostgreSQL has no privilege {one.privilege}")
        else:
            return found.refused(f"{one.full_name} is not created")
        return found._replace(
            sql=f"GRANT {privilege} ON {what} TO {_to(role)}{option}", present=present
        )

    def _by_hand(self) -> Iterator[Statement]:
        found = self._inventory
        for synonym in found.synonyms:
            target = f"{synonym.target_owner}.{synonym.target}".lstrip(".")
            where = f"{target}@{synonym.link}" if synonym.link else target
            yield Statement(
                "by hand",
                synonym.full_name,
                "",
                "PostgreSQL has no synonyms: set search_path, or create a view",
                f"CREATE SYNONYM {synonym.full_name} FOR {where}",
                what="synonym",
            )
        for job in found.jobs:
            yield Statement(
                *("by hand", job.full_name, "", "PostgreSQL has no jobs: use pg_cron or cron"),
                f"{job.kind}: {job.action} ({job.schedule})",
                what="job",
            )
        for link in found.links:
            yield Statement(
                *("by hand", link.full_name, "", "use a foreign server"),
                f"CREATE DATABASE LINK {link.name} CONNECT TO {link.user} USING '{link.host}'",
                what="database link",
            )


def _to(role: str) -> str:
    return quoted(role) if role else "PUBLIC"


def _quoted(relation: Relation) -> str:
    return f"{quoted(relation.schema)}.{quoted(relation.name)}"


def _columns(relation: Relation, names: tuple[str, ...]) -> list[str]:
    missing = [name for name in names if name not in relation.columns]
    if missing:
        raise UntranslatableError(f"the target does not have the hidden column {missing[0]}")
    return [relation.columns[name].name for name in names]


def _index_text(one: InventoryIndex) -> str:
    parts = ", ".join(part.text + (" DESC" if part.descending else "") for part in one.parts)
    unique = "UNIQUE " if one.unique else ""
    return f"CREATE {unique}INDEX {one.full_name} ON {one.table_owner}.{one.table} ({parts})"
