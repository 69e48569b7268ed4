"""What a translation knows while it works: names, and what values are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from sqlglot import exp

from olr_pg.schema.value_kinds import (
    INTEGER,
    MOMENTS,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    UNKNOWN,
    Fact,
    ValueKind,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.schema.relation_columns import RelationColumn
    from olr_pg.schema.relations import Relation, Relations

_LIKE_ARGUMENT: Final = (exp.Max, exp.Min, exp.Paren, exp.Alias, exp.Window, exp.Neg, exp.Subquery)
_LIKE_ARGUMENT_FUNCTIONS: Final = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.Distinct)
_COUNTS: Final = (exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile)
_AMOUNTS: Final = (exp.Sum, exp.Avg, exp.Stddev, exp.Variance)
_CONDITIONS: Final = (exp.Predicate, exp.Connector, exp.Not)


Handler: TypeAlias = "Callable[[Translator, exp.Expr], tuple[str, Fact] | None]"
"""What translates a node whose parts are translated; None keeps the node."""


class UntranslatableError(Exception):
    """Something has no translation; its text is the reason."""


def quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


class Translator:
    """The state of one translation.

    Args:
        owner: whose names are meant where no owner is told.
        scope: the tables and views that columns may be of.

    Attributes:
        read: ``OWNER.NAME`` of each that is read.
        aliases: tables and views by the name that the query gives them.
        tables: what the tables of the query are, by `id` of their nodes.
    """

    def __init__(self, relations: Relations, owner: str, scope: list[Relation]) -> None:
        self.relations = relations
        self.owner = owner
        self.scope = scope
        self.read = set[str]()
        self.aliases: dict[str, Relation] = {}
        self.tables: dict[int, Relation] = {}
        self._facts = dict[int, Fact]()
        self._kept = list[exp.Expr]()
        self._projected = dict[str, Fact]()

    @staticmethod
    def plain(identifier: exp.Expr) -> str:
        """Return the name that an identifier stands for in Oracle."""
        name = str(identifier.name)
        return name if identifier.args.get("quoted") else name.upper()

    def raw(self, text: str, fact: Fact) -> exp.Var:
        """Make a node of translated text."""
        node = exp.Var(this=text)
        self.note(node, fact)
        return node

    def note(self, node: exp.Expr, fact: Fact) -> None:
        """Remember what a node's values are."""
        self._facts[id(node)] = fact
        self._kept.append(node)  # so that no other node gets its id

    def project(self, name: str, fact: Fact) -> None:
        """Remember what a column of a subquery is; of two that differ nothing is known."""
        known = self._projected.setdefault(name, fact)
        if known.kind != fact.kind:
            self._projected[name] = UNKNOWN

    def projected(self, name: str) -> Fact:
        """Tell what a column is that no table has."""
        return self._projected.get(name, UNKNOWN)

    def column(self, node: exp.Column, name: str) -> RelationColumn | None:
        """Find the column that is meant; None where no table or several have it."""
        table = node.args.get("table")
        if table is not None:
            relation = self.aliases.get(self.plain(table))
            return relation.columns.get(name) if relation else None
        found = [one.columns[name] for one in self.scope if name in one.columns]
        if not found:
            return None
        same = all(one.fact.kind == found[0].fact.kind for one in found)
        return found[0] if same else found[0]._replace(fact=UNKNOWN)

    def sql(self, node: exp.Expr) -> str:
        """Return the translated text of a node."""
        return str(node.sql(dialect="postgres", identify=True))

    def fact(self, node: exp.Expr) -> Fact:
        """Tell what the values of a translated node are."""
        known = self._facts.get(id(node))
        if known is not None:
            return known
        if isinstance(node, exp.Literal):
            return self._literal(node)
        if isinstance(node, _CONDITIONS):
            return Fact(ValueKind.BOOLEAN)
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, exp.Coalesce):
            parts = [self.fact(node.this), *map(self.fact, node.expressions)]
            kinds = {part.kind for part in parts}
            first = next((part for part in parts if part.kind != ValueKind.UNKNOWN), UNKNOWN)
            filled = any(part.filled for part in parts)
            return Fact(first.kind if kinds - {ValueKind.UNKNOWN} else ValueKind.UNKNOWN, 0, filled)
        if isinstance(node, _COUNTS):
            return INTEGER
        if isinstance(node, _AMOUNTS):
            return NUMBER
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
            selects = node.this.selects
            return self.fact(selects[0])._replace(filled=False) if len(selects) == 1 else UNKNOWN
        if isinstance(node, _LIKE_ARGUMENT):
            return self.fact(node.this)
        if isinstance(node, _LIKE_ARGUMENT_FUNCTIONS):
            return self.fact(node.this)._replace(filled=False) if node.this else UNKNOWN
        return UNKNOWN

    def _literal(self, node: exp.Literal) -> Fact:
        if node.is_string:
            return Fact(ValueKind.TEXT, filled=node.name != "")
        whole = str(node.name).isdigit()
        return Fact(ValueKind.INTEGER if whole else ValueKind.NUMBER, filled=True)

    def _case(self, node: exp.Case) -> Fact:
        values = [branch.args["true"] for branch in node.args["ifs"]]
        default = node.args.get("default")
        facts = [self.fact(value) for value in (*values, *([default] if default else ()))]
        first = next((one for one in facts if one.kind != ValueKind.UNKNOWN), UNKNOWN)
        return Fact(first.kind, 0, bool(default) and all(one.filled for one in facts))

    def is_moment(self, node: exp.Expr) -> bool:
        """Tell whether the values are dates or timestamps."""
        return self.fact(node).kind in MOMENTS

    def is_number(self, node: exp.Expr) -> bool:
        """Tell whether the values are numbers."""
        return self.fact(node).kind in NUMBERS

    def text(self, node: exp.Expr) -> str:
        """Return the value as Oracle's text of it: padded where it is a CHAR, digits of a number.

        Raises:
            UntranslatableError: its text depends on the session's settings.
        """
        fact, sql = self.fact(node), self.sql(node)
        if fact.kind is ValueKind.CHAR:
            return f"RPAD(CAST({sql} AS TEXT), {fact.length})"
        if fact.kind in TEXTS:
            return sql
        if fact.kind is ValueKind.INTEGER:
            return f"CAST({sql} AS TEXT)"
        if fact.kind is ValueKind.NUMBER:
            # Oracle writes .5 and no zeros at the end.
            digits = f"CAST(TRIM_SCALE(CAST({sql} AS NUMERIC)) AS TEXT)"
            return f"REGEXP_REPLACE({digits}, '^(-?)0\\.', '\\1.')"
        if fact.kind is ValueKind.UNKNOWN:
            return f"CAST({sql} AS TEXT)"
        raise UntranslatableError(
            f"the text of a {fact.kind.value} without a format depends on NLS settings"
        )

    def nonempty(self, sql: str, *, filled: bool = False) -> tuple[str, Fact]:
        """Return a text whose empty value is NULL, as in Oracle."""
        return (sql, Fact(ValueKind.TEXT, filled=True)) if filled else (f"NULLIF({sql}, '')", TEXT)

    def literal(self, node: exp.Expr | None) -> str | None:
        """Return the text of a string literal; None of anything else."""
        if isinstance(node, exp.Literal) and node.is_string:
            return str(node.name)
        return None

    def whole(self, node: exp.Expr | None) -> int | None:
        """Return the value of an integer literal; None of anything else."""
        if isinstance(node, exp.Neg):
            inner = self.whole(node.this)
            return None if inner is None else -inner
        if isinstance(node, exp.Literal) and not node.is_string and str(node.name).isdigit():
            return int(node.name)
        return None


def constant(sql: str, fact: Fact) -> Handler:
    """Translate into the same text, whatever the arguments are."""
    return lambda _t, _node: (sql, fact)


def argument_in(template: str, fact: Fact) -> Handler:
    """Translate a function that sqlglot does not know: ``{}`` stands for its first argument."""
    return lambda t, node: (template.format(t.sql(node.expressions[0])), fact)
