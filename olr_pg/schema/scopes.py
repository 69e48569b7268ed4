"""What the names in a part of a query stand for: the tables, views and subqueries that it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.schema.relation_columns import RelationColumn
    from olr_pg.schema.value_kinds import Fact


class Source(NamedTuple):
    """What a query reads from.

    Attributes:
        called: its name in Oracle's text; empty for a subquery without one.
        alias: its name in the translation; empty where columns are not qualified.
        columns: by their names in Oracle, in their order.
        optional: an outer join may give NULL for all its columns.
        owner: whose it is, of a table.
    """

    called: str
    alias: str
    columns: Mapping[str, RelationColumn]
    optional: bool = False
    owner: str = ""


class Scope:
    """Names within a query, and behind them those of the queries around it.

    Args:
        outer: the scope of the query around this one.

    Attributes:
        sources: what the query reads, in its order.
        ctes: columns of the queries of its WITH, by their names.
        grouped: it has subtotals, so that any column may be NULL.
        items: what the select list calls its columns, translated; while ORDER BY is.
    """

    def __init__(self, sources: Sequence[Source] = (), outer: Scope | None = None) -> None:
        self.sources = list(sources)
        self.outer = outer
        self.ctes: dict[str, Mapping[str, RelationColumn]] = {}
        self.grouped = False
        self.items: dict[str, tuple[str, Fact]] = {}

    def cte(self, name: str) -> Mapping[str, RelationColumn] | None:
        """Return the columns of a query of a WITH, or None."""
        if name in self.ctes:
            return self.ctes[name]
        return self.outer.cte(name) if self.outer is not None else None

    def source(self, called: str, owner: str = "") -> Source | None:
        """Find what is read under a name, also by the queries around."""
        for one in self.sources:
            if one.called == called and (not owner or one.owner == owner):
                return one
        return self.outer.source(called, owner) if self.outer is not None else None

    def having(self, name: str) -> tuple[Source, RelationColumn] | None:
        """Find the column of a name that is not qualified."""
        for one in self.sources:
            if name in one.columns:
                return one, self.seen(one, one.columns[name])
        return self.outer.having(name) if self.outer is not None else None

    def column(self, called: str, name: str, owner: str = "") -> RelationColumn | None:
        """Find a column by the name of its source and its own."""
        found = self.source(called, owner)
        if found is None or name not in found.columns:
            return None
        return self.seen(found, found.columns[name])

    def seen(self, source: Source, column: RelationColumn) -> RelationColumn:
        """Return the column as the query sees it: behind an outer join it may be NULL."""
        if source.optional or self.grouped:
            return column._replace(fact=column.fact._replace(filled=False))
        return column
