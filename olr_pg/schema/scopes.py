"""Defines scopes, which resolve the names in a part of a query to the tables, views and subqueries
in its FROM clause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.schema.relation_columns import RelationColumn
    from olr_pg.schema.value_kinds import Fact


class Source(NamedTuple):
    """A source in a FROM clause.

    Attributes:
        called: its name in Oracle's SQL; empty for a subquery without a name.
        alias: its name in the translation; empty if its columns are not qualified.
        columns: its columns by their names in Oracle, in their order.
        optional: whether an outer join can set all its columns to NULL.
        owner: the owner, if it is a table or view.
    """

    called: str
    alias: str
    columns: Mapping[str, RelationColumn]
    optional: bool = False
    owner: str = ""


class Scope:
    """The names in a query. A name that the query does not define is looked up in the outer
    queries.

    Args:
        outer: the scope of the outer query; None if there is none.

    Attributes:
        sources: the sources in FROM, in their order.
        ctes: the columns of the WITH queries, by the queries' names.
        grouped: whether the query computes subtotals, because of which any column can be NULL.
        items: the translated select list by column name, while ORDER BY is translated.
    """

    def __init__(self, sources: Sequence[Source] = (), outer: Scope | None = None) -> None:
        self.sources = list(sources)
        self.outer = outer
        self.ctes: dict[str, Mapping[str, RelationColumn]] = {}
        self.grouped = False
        self.items: dict[str, tuple[str, Fact]] = {}

    def cte(self, name: str) -> Mapping[str, RelationColumn] | None:
        """Return the columns of a WITH query; None if there is no such query."""
        if name in self.ctes:
            return self.ctes[name]
        return self.outer.cte(name) if self.outer is not None else None

    def source(self, called: str, owner: str = "") -> Source | None:
        """Return the source with a name, also of the outer queries; None if there is none."""
        for one in self.sources:
            if one.called == called and (not owner or one.owner == owner):
                return one
        return self.outer.source(called, owner) if self.outer is not None else None

    def having(self, name: str) -> tuple[Source, RelationColumn] | None:
        """Return the column with an unqualified name, and its source; None if there is none."""
        for one in self.sources:
            if name in one.columns:
                return one, self.seen(one, one.columns[name])
        return self.outer.having(name) if self.outer is not None else None

    def column(self, called: str, name: str, owner: str = "") -> RelationColumn | None:
        """Return a column, given the name of its source and its own name; None if there is none."""
        found = self.source(called, owner)
        if found is None or name not in found.columns:
            return None
        return self.seen(found, found.columns[name])

    def seen(self, source: Source, column: RelationColumn) -> RelationColumn:
        """Return the column as the query reads it: because of an outer join or subtotals, it can be
        NULL.
        """
        if source.optional or self.grouped:
            return column._replace(fact=column.fact._replace(filled=False))
        return column
