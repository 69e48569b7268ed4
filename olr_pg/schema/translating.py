"""Defines the state of a translation (names, kinds of values, scopes), and functions that build
rules.

A scope resolves the names in a part of a query to the tables, views and subqueries in its FROM
clause.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from sqlglot import ErrorLevel, exp

from olr_pg.schema.value_kinds import (
    BOOLEAN,
    MOMENTS,
    NOTHING,
    NUMBERS,
    TEXT,
    TEXTS,
    UNKNOWN,
    Fact,
    ValueKind,
    literal_fact,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from olr_pg.schema.relation_columns import RelationColumn
    from olr_pg.schema.relations import Relations


class Source(NamedTuple):
    """A source in a FROM clause.

    Attributes:
        called: the source's name in Oracle's SQL; empty for a subquery without a name.
        alias: the source's name in the translation; empty if its columns are not qualified.
        columns: the source's columns by their names in Oracle, in their order.
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


Translated: TypeAlias = "tuple[str, Fact]"
NodeRule: TypeAlias = "Callable[[Translator, exp.Expr], Translated | None]"
"""Translates a node whose children are already translated; returns None if the node stays as it
is.
"""
CallRule: TypeAlias = "Callable[[Translator, Sequence[exp.Expr]], Translated]"
"""Translates a function call whose arguments are already translated."""

OwnCall: TypeAlias = "Callable[[str, Sequence[exp.Expr]], Translated | None]"

NLS_TEXT: Final = "depends on NLS settings"


class UntranslatableError(Exception):
    """Raised if a part of the SQL has no translation; its text is the reason."""


class Function(NamedTuple):
    """A function of Oracle: the rule that translates it, and its minimum and maximum number of
    arguments.
    """

    rule: CallRule
    least: int = 1
    most: int = 1


def quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


class Translator:
    """The state of one translation.

    Args:
        owner: the schema to which names without a schema refer.
        scope: the scope that resolves the names at the current position in the SQL.

    Attributes:
        read: the tables and views that the SQL reads, as ``OWNER.NAME``.
        is_stored: whether PostgreSQL stores the values, in an index or a generated column, so that
            the SQL must be IMMUTABLE.
        is_procedural: whether the SQL is an expression of PL/SQL outside SQL statements.
        sequences: for each sequence that the SQL uses, where NEXTVAL and CURRVAL are in the text.
        call_own: translates a call of a function of the source; None if such calls are not allowed
            here.
        translate_frame, translate: the functions that translate a query, and a part of a query.
    """

    def __init__(self, relations: Relations, owner: str, scope: Scope) -> None:
        self.relations = relations
        self.owner = owner
        self.scope = scope
        self.read = set[str]()
        self.is_stored = False
        self.is_procedural = False
        self.sequences = dict[tuple[str, str], dict[str, int]]()
        self.translate_frame: Callable[[exp.Expr], object] = lambda _node: None
        self.translate: Callable[[exp.Expr], None] = lambda _node: None
        self.call_own: OwnCall = lambda _name, _arguments: None
        self._facts = dict[int, Fact]()
        self._columns = dict[int, list[Fact]]()
        self._kept = list[exp.Expr]()

    @staticmethod
    def plain(identifier: exp.Expr) -> str:
        """Return the name that an identifier in SQL means: in upper case unless it is quoted."""
        name = str(identifier.name)
        return name if identifier.args.get("quoted") else name.upper()

    def folded(self, name: str, *, column: bool = False) -> exp.Identifier:
        """Return the identifier in the target for a name in Oracle's SQL."""
        return exp.to_identifier(self.relations.name(name, column=column), quoted=True)

    def raw(self, text: str, fact: Fact) -> exp.Var:
        """Return a node that contains translated SQL."""
        node = exp.Var(this=text)
        self.note(node, fact)
        return node

    def note(self, node: exp.Expr, fact: Fact) -> None:
        """Record the facts about a node's values."""
        self._facts[id(node)] = fact
        self._kept.append(node)  # keep the node alive, so that no other node gets its id

    def note_columns(self, query: exp.Expr, facts: list[Fact]) -> None:
        """Record the facts about the columns of a translated query."""
        self._columns[id(query)] = facts
        self._kept.append(query)

    def columns_of(self, query: exp.Expr) -> list[Fact]:
        """Return the facts about the columns of a translated query."""
        return self._columns[id(query)]

    def sql(self, node: exp.Expr) -> str:
        """Return the translated SQL of a node."""
        if isinstance(node, exp.Var):
            return str(node.this)  # fast path for the most frequent kinds of nodes
        if isinstance(node, exp.Column) and set(node.args) <= _NAMED and not node.args.get("db"):
            name, table = quoted(node.this.name), node.args.get("table")
            if isinstance(node.this, exp.Identifier):
                return f"{quoted(table.name)}.{name}" if table is not None else name
        return _written(node)

    def fact(self, node: exp.Expr) -> Fact:
        """Return the facts about the values of a translated node."""
        known = self._facts.get(id(node))
        if known is not None:
            return known
        if isinstance(node, exp.Paren | exp.Alias | exp.Distinct | exp.Ordered):
            inner = node.expressions[0] if isinstance(node, exp.Distinct) else node.this
            return self.fact(inner)
        if isinstance(node, exp.Null):
            return NOTHING
        if isinstance(node, exp.Predicate | exp.Connector | exp.Not | exp.Boolean):
            return BOOLEAN
        return UNKNOWN

    def kind(self, node: exp.Expr) -> ValueKind:
        """Return the kind of the values of a translated node."""
        return self.fact(node).kind

    def is_null(self, node: exp.Expr) -> bool:
        """Return whether a node is the literal NULL or an empty text."""
        return self.kind(node) is ValueKind.NOTHING

    def text(self, node: exp.Expr) -> str:
        """Return SQL for the text to which Oracle would convert the value: a CHAR is padded with
        blanks, a number becomes its digits.

        Raises:
            UntranslatableError: the text depends on the session's settings, or the value has no
                text.
        """
        fact, sql = self.fact(node), self.sql(node)
        if fact.kind is ValueKind.CHAR and not fact.exact:
            return f"RPAD(CAST({sql} AS TEXT), {fact.length})"
        if fact.kind in TEXTS:
            return sql
        if fact.kind is ValueKind.NOTHING:
            return "CAST(NULL AS TEXT)"
        if fact.kind is ValueKind.INTEGER:
            return f"CAST({sql} AS TEXT)"
        if fact.kind is ValueKind.NUMBER:
            # Oracle writes .5: without a leading zero, and without trailing zeros.
            digits = f"CAST(TRIM_SCALE(CAST({sql} AS NUMERIC)) AS TEXT)"
            return f"REGEXP_REPLACE({digits}, '^(-?)0\\.', '\\1.')"
        if fact.kind is ValueKind.RAW:
            return f"UPPER(ENCODE({sql}, 'hex'))"
        if fact.kind is ValueKind.XML:
            raise UntranslatableError("XML converted to text: PostgreSQL formats it differently")
        if fact.kind is ValueKind.UNKNOWN:
            raise UntranslatableError(f"{sql} converted to text: its type is unknown")
        raise UntranslatableError(
            f"a {fact.kind.value} converted to text without a format {NLS_TEXT}"
        )

    def number(self, node: exp.Expr) -> str:
        """Return SQL for the value as numeric, because PostgreSQL's other number types divide and
        round differently.

        Raises:
            UntranslatableError: the value is neither a number nor a text.
        """
        sql, kind = self.sql(node), self.kind(node)
        if isinstance(node, exp.Literal) and not node.is_string and "." in node.name:
            return sql
        if kind in TEXTS:
            text = self.literal(node)
            if text is not None and not is_numeral(text):
                raise UntranslatableError(f"the text {text!r} where a number is expected")
            given = self.text(node)
            if text is None and not given.startswith("TO_CHAR("):
                # PostgreSQL also reads NaN, Infinity, 0x1F and 1_000; Oracle reports an error.
                given = f"TRANSLATE({given}, 'NnIiXxOoBb_', '???????????')"
            return f"CAST({given} AS NUMERIC)"
        if kind is ValueKind.FLOAT:
            # Through its text, because a direct cast keeps only 15 digits (6 of a real).
            return f"CAST(CAST({sql} AS TEXT) AS NUMERIC)"
        if kind in NUMBERS or kind is ValueKind.NOTHING:
            return f"CAST({sql} AS NUMERIC)"
        raise UntranslatableError(f"a {kind.value} where a number is expected")

    def binary(self, node: exp.Expr, type_name: str) -> str:
        """Return SQL for the value as a floating-point number of a type.

        Raises:
            UntranslatableError: as `number`.
        """
        is_float = self.kind(node) is ValueKind.FLOAT
        return f"CAST({self.sql(node) if is_float else self.number(node)} AS {type_name})"

    def integer(self, node: exp.Expr) -> str:
        """Return SQL for the value as an integer. A fraction is truncated, as Oracle does with
        arguments of functions.
        """
        whole = self.whole(node)
        return str(whole) if whole is not None else f"CAST(TRUNC({self.number(node)}) AS INT)"

    def ordered(self, sql: str, *nodes: exp.Expr) -> str:
        """Return the SQL of a value whose order matters; `nodes` are the values that decide its
        kind. Oracle compares texts by their bytes (NLS_SORT=BINARY). PostgreSQL would use the
        collation of the target database.
        """
        return in_byte_order(sql) if all(map(self.is_text, nodes)) else sql

    def moment(self, node: exp.Expr) -> str:
        """Return SQL for the value as a timestamp without time zone.

        Raises:
            UntranslatableError: the value is not a date or timestamp, or the target does not keep
                its time zone.
        """
        sql, fact = self.sql(node), self.fact(node)
        if fact.zone:
            return f"({sql} AT TIME ZONE {fact.zone})"
        if fact.kind is ValueKind.TIMESTAMPTZ:
            if not fact.exact:
                raise UntranslatableError(
                    f"the local time of {sql}: PostgreSQL does not keep the time zone of a value"
                )
            return f"CAST({sql} AS TIMESTAMP)"
        if fact.kind is ValueKind.NOTHING:
            return "CAST(NULL AS TIMESTAMP)"
        if fact.kind in TEXTS:
            raise UntranslatableError(
                f"a text where a date is expected: its meaning {NLS_TEXT}; use TO_DATE"
            )
        if fact.kind not in MOMENTS:
            raise UntranslatableError(f"a {fact.kind.value} where a date is expected")
        return sql

    def day(self, node: exp.Expr) -> str:
        """Return SQL for the value as a DATE. Oracle truncates fractional seconds; a cast in
        PostgreSQL would round them.

        Oracle's manual does not document that fractional seconds are truncated. Sources:
        https://github.com/orafce/orafce/issues/199 and https://connor-mcdonald.com/tag/truncate/
        (it uses a cast to get whole seconds).

        Raises:
            UntranslatableError: as `moment`.
        """
        moment = self.moment(node)
        if self.kind(node) in (ValueKind.DATE, ValueKind.NOTHING):
            return moment
        return f"CAST(DATE_TRUNC('second', {moment}) AS TIMESTAMP(0))"

    def is_moment(self, node: exp.Expr) -> bool:
        """Return whether the values are dates or timestamps."""
        return self.kind(node) in MOMENTS

    def is_number(self, node: exp.Expr) -> bool:
        """Return whether the values are numbers."""
        return self.kind(node) in NUMBERS

    def is_text(self, node: exp.Expr) -> bool:
        """Return whether the values are texts."""
        return self.kind(node) in TEXTS

    def nonempty(self, sql: str, *, filled: bool = False) -> Translated:
        """Return a text expression that is NULL if its result is empty, as in Oracle."""
        return (sql, Fact(ValueKind.TEXT, filled=True)) if filled else (f"NULLIF({sql}, '')", TEXT)

    def literal(self, node: exp.Expr | None) -> str | None:
        """Return the text of a string literal; None for any other node."""
        if isinstance(node, exp.Literal) and node.is_string:
            return str(node.name)
        if isinstance(node, exp.Var):  # a literal with a backslash, which is already translated
            found = _QUOTED.fullmatch(str(node.this))
            text = found[1].replace("''", "'") if found is not None else ""
            return text if text and self.fact(node) == literal_fact(text) else None
        return None

    def whole(self, node: exp.Expr | None) -> int | None:
        """Return the integer part of a number literal; None for any other node."""
        if isinstance(node, exp.Paren):
            return self.whole(node.this)
        if isinstance(node, exp.Neg):
            inner = self.whole(node.this)
            return None if inner is None else -inner
        if isinstance(node, exp.Literal) and not node.is_string:
            digits, _, fraction = str(node.name).partition(".")
            if (digits.isdigit() or not digits) and (fraction.isdigit() or not fraction):
                return int(digits or "0")
        return None

    def unified(self, nodes: Sequence[exp.Expr], *, fixed: bool = False) -> tuple[list[str], Fact]:
        """Return (the SQL of each value, the facts about the values) for values that form one
        column or function result. The values are converted to a common kind.

        As in Oracle's functions, the first value decides whether the values become texts or
        numbers. Dates and timestamps get the most precise of their kinds.

        Args:
            fixed: whether CHAR values of the same length stay CHAR.

        Raises:
            UntranslatableError: there is no common kind.
        """
        facts = [self.fact(node) for node in nodes if not self.is_null(node)]
        kinds = {fact.kind for fact in facts}
        filled = len(facts) == len(nodes) and all(fact.filled for fact in facts)
        if not facts:
            return ["NULL" for _ in nodes], NOTHING
        first = facts[0]
        if first.kind in TEXTS:
            lengths = {fact.length if fact.kind is ValueKind.CHAR else -1 for fact in facts}
            texts = ["NULL" if self.is_null(node) else self.text(node) for node in nodes]
            if fixed and len(lengths) == 1 and -1 not in lengths:
                return texts, Fact(ValueKind.CHAR, first.length, filled, exact=True)
            return texts, Fact(ValueKind.TEXT, filled=filled)
        if first.kind in NUMBERS and kinds <= NUMBERS | TEXTS:
            return self._unified_numbers(nodes, kinds, filled=filled)
        if kinds <= MOMENTS:
            widest = max((*facts,), key=lambda fact: list(ValueKind).index(fact.kind))
            exact = all(fact.exact for fact in facts if fact.kind is ValueKind.TIMESTAMPTZ)
            early = any(fact.early for fact in facts)
            return [self.sql(node) for node in nodes], widest._replace(
                filled=filled, exact=exact, zone="", early=early
            )
        if len(kinds) > 1:
            names = ", ".join(sorted(kind.value for kind in kinds))
            raise UntranslatableError(f"values of types that cannot be combined ({names})")
        return [self.sql(node) for node in nodes], first._replace(filled=filled)

    def _unified_numbers(
        self, nodes: Sequence[exp.Expr], kinds: set[ValueKind], *, filled: bool
    ) -> tuple[list[str], Fact]:
        texts = [self.number(node) if self.is_text(node) else self.sql(node) for node in nodes]
        kind = ValueKind.FLOAT if ValueKind.FLOAT in kinds else ValueKind.NUMBER
        kind = ValueKind.INTEGER if kinds == {ValueKind.INTEGER} else kind
        return texts, Fact(kind, filled=filled)


def _written(node: exp.Expr) -> str:
    found = node.sql(dialect="postgres", identify=True, unsupported_level=_RAISE, copy=False)
    return str(found)


_NUMERAL: Final = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)(E[-+]?\d+)?\s*", re.IGNORECASE)
_NAMED: Final = {"this", "table", "db", "catalog"}
_RAISE: Final = ErrorLevel.RAISE


def is_numeral(text: str) -> bool:
    """Return whether Oracle accepts a text as a number, whatever the session's settings are."""
    return bool(_NUMERAL.fullmatch(text))


_WORD: Final = re.compile(r"""["\w.]+|'[^']*'|\w+\([^()]*\)""")
_QUOTED: Final = re.compile(r"'((?:[^']|'')*)'")
BYTE_ORDER: Final = 'COLLATE "C"'
_DEFAULT: Final = ' COLLATE "default")'


def in_byte_order(sql: str) -> str:
    """Return a text in SQL with the collation that compares bytes."""
    return f"({sql if _WORD.fullmatch(sql) else f'({sql})'} {BYTE_ORDER})"


def in_own_order(sql: str) -> str:
    """Return the SQL of a text that was compared or sorted in byte order, with the collation of the
    database again: functions such as UPPER would otherwise convert only ASCII letters.
    """
    return f"({sql}{_DEFAULT}"


def over_window(sql: str, over: str) -> str:
    """Return the call of an aggregate as a window function. If `in_own_order` has made the call,
    OVER is inserted before its collation.
    """
    if sql.endswith(_DEFAULT):
        return in_own_order(f"{sql[1 : -len(_DEFAULT)]} OVER ({over})")
    return f"{sql} OVER ({over})"


def failing(code: str, text: str) -> str:
    """Return an expression of type text that fails with an error of Oracle and a text in SQL."""
    return f"CAST(CAST('{code}: ' || {text} AS NUMERIC) AS TEXT)"


def constant(sql: str, fact: Fact) -> CallRule:
    """Return a rule that returns the same SQL for any arguments."""
    return lambda _t, _arguments: (sql, fact)


def of_text(template: str, fact: Fact) -> CallRule:
    """Return the rule for a function whose arguments are texts; each ``{}`` in the template stands
    for one argument.
    """
    return lambda t, arguments: (template.format(*map(t.text, arguments)), fact)


def of_numbers(template: str, fact: Fact) -> CallRule:
    """Return the rule for a function whose arguments are numbers; each ``{}`` in the template
    stands for one argument.
    """
    return lambda t, arguments: (template.format(*map(t.number, arguments)), fact)


def string_literal(t: Translator, node: exp.Expr, what: str) -> str:
    """Return the text of an argument that must be a literal.

    Raises:
        UntranslatableError: the argument is not a literal.
    """
    found = t.literal(node)
    if found is None:
        raise UntranslatableError(f"{what} that is not a literal")
    return found
