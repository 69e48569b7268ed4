"""Parses a condition. The supported part of Oracle's SQL has the same meaning wherever it is
evaluated.

Expressions that depend on a session (TO_DATE, SYSDATE, time zones, implicit conversions) or on
other rows (subqueries) are not supported. sqlglot parses the SQL. `_Reader` refuses every kind of
syntax node that it does not know.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from olr_pg.conditions import tree
from olr_pg.conditions.tree import Comparison, Condition, Literal, LiteralKind
from olr_pg.errors import Code, OlrPgError, plain_reason

if TYPE_CHECKING:
    from collections.abc import Iterator

CHARACTERS_MAX: Final = 4_000
"""Maximum characters of a condition, the same as for a row-level rule of Oracle."""


_NUMBER: Final = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP_FORMAT: Final = "%Y-%m-%d %H:%M:%S.%f"
"""The format that sqlglot assigns to a TIMESTAMP literal; TO_TIMESTAMP with another format is
refused.
"""

_TURNED: Final = {
    Comparison.LESS: Comparison.GREATER,
    Comparison.LESS_OR_EQUAL: Comparison.GREATER_OR_EQUAL,
    Comparison.GREATER: Comparison.LESS,
    Comparison.GREATER_OR_EQUAL: Comparison.LESS_OR_EQUAL,
}


def parse_condition(text: str) -> Condition:
    """Parse a condition.

    Raises:
        OlrPgError: 1130, the text is not valid SQL; 1131, it uses unsupported syntax.
    """
    if len(text) > CHARACTERS_MAX:
        raise OlrPgError(Code.ROW_CONDITION_UNREADABLE, f"more than {CHARACTERS_MAX} characters")
    try:
        node = _Reader().read(_parsed(text))
    except RecursionError:
        raise OlrPgError(Code.ROW_CONDITION_UNREADABLE, "too many parentheses") from None
    return Condition(text, node, tuple(dict.fromkeys(_columns(node))))


def _parsed(text: str) -> Any:
    # Import the parser only here: decoding tasks receive parsed conditions.
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.parse_one(text, read="oracle")
    except SqlglotError as error:
        detail = f"{text!r}: {plain_reason(error)}"
        raise OlrPgError(Code.ROW_CONDITION_UNREADABLE, detail) from None


def _columns(node: tree.Node) -> Iterator[str]:
    match node:
        case tree.Every(parts) | tree.Any(parts):
            for part in parts:
                yield from _columns(part)
        case tree.Negated(part):
            yield from _columns(part)
        case _:
            yield node.column


class _Reader:
    """Converts the syntax tree of sqlglot to nodes of `tree`."""

    def __init__(self) -> None:
        from sqlglot import expressions

        self._sql: Any = expressions
        self._comparisons: dict[type, Comparison] = {
            expressions.EQ: Comparison.EQUAL,
            expressions.NEQ: Comparison.NOT_EQUAL,
            expressions.LT: Comparison.LESS,
            expressions.LTE: Comparison.LESS_OR_EQUAL,
            expressions.GT: Comparison.GREATER,
            expressions.GTE: Comparison.GREATER_OR_EQUAL,
        }

    def read(self, found: Any) -> tree.Node:
        """Convert the syntax tree of a condition, or of a part of it, to a `tree.Node`."""
        sql = self._sql
        if isinstance(found, sql.Paren):
            return self.read(found.this)
        if isinstance(found, sql.Not):
            return tree.Negated(self.read(found.this))
        if isinstance(found, sql.And):
            return tree.Every(tuple(map(self.read, found.flatten())))
        if isinstance(found, sql.Or):
            return tree.Any(tuple(map(self.read, found.flatten())))
        if type(found) in self._comparisons:
            return self._compared(found)
        if isinstance(found, sql.In):
            return self._in(found)
        if isinstance(found, sql.Between):
            return self._between(found)
        if isinstance(found, sql.Is) and isinstance(found.expression, sql.Null):
            return tree.IsNull(self._column(found.this))
        if isinstance(found, sql.Escape):
            return self._like(found.this, self._text(found.expression))
        return self._like(found, "")

    def _compared(self, found: Any) -> tree.Node:
        operator = self._comparisons[type(found)]
        left, right = found.this, found.expression
        if isinstance(right, self._sql.Column) and not isinstance(left, self._sql.Column):
            left, right, operator = right, left, _TURNED.get(operator, operator)
        return tree.Compared(self._column(left), operator, self._literal(right))

    def _in(self, found: Any) -> tree.Node:
        if found.args.get("query") is not None or not found.expressions:
            raise self._refused(found)
        column = self._column(found.this)
        literals = map(self._literal, found.expressions)
        return tree.Any(tuple(tree.Compared(column, Comparison.EQUAL, one) for one in literals))

    def _between(self, found: Any) -> tree.Node:
        if found.args.get("symmetric"):
            raise self._refused(found)
        column = self._column(found.this)
        low, high = self._literal(found.args["low"]), self._literal(found.args["high"])
        return tree.Every(
            (
                tree.Compared(column, Comparison.GREATER_OR_EQUAL, low),
                tree.Compared(column, Comparison.LESS_OR_EQUAL, high),
            )
        )

    def _like(self, found: Any, escape: str) -> tree.Node:
        if not isinstance(found, self._sql.Like):
            raise self._refused(found)
        pattern = self._text(found.expression)
        if len(escape) > 1 or _is_escaped_wrongly(pattern, escape):
            raise OlrPgError(
                Code.ROW_CONDITION_UNREADABLE,
                f"in {found.sql('oracle')!r} the escape character is not before % or _",
            )
        node = tree.Matched(self._column(found.this), pattern, escape)
        return tree.Negated(node) if found.args.get("negate") else node

    def _column(self, found: Any) -> str:
        sql = self._sql
        if not isinstance(found, sql.Column) or found.args.get("table") is not None:
            raise self._refused(found)
        identifier = found.this
        if not isinstance(identifier, sql.Identifier) or found.args.get("join_mark"):
            raise self._refused(found)
        name = str(identifier.this)
        return name if identifier.args.get("quoted") else name.upper()

    def _text(self, found: Any) -> str:
        literal = self._literal(found)
        if literal.kind is not LiteralKind.TEXT:
            raise self._refused(found)
        return literal.text

    def _literal(self, found: Any) -> Literal:
        sql = self._sql
        sign = ""
        while isinstance(found, sql.Neg | sql.Paren):
            if isinstance(found, sql.Neg):
                sign = "" if sign else "-"
            found = found.this
        kind, text = self._unsigned(found)
        if sign and kind is not LiteralKind.NUMBER:
            raise self._refused(found)
        if kind is LiteralKind.TEXT and not text:
            raise OlrPgError(Code.ROW_CONDITION_UNSUPPORTED, "'' is NULL in Oracle: use IS NULL")
        return Literal(kind, sign + text)

    def _unsigned(self, found: Any) -> tuple[LiteralKind, str]:
        sql = self._sql
        match found:
            case sql.Literal() if found.is_string:
                return LiteralKind.TEXT, str(found.this)
            case sql.National():
                return LiteralKind.TEXT, str(found.this)
            case sql.Literal() if _NUMBER.fullmatch(str(found.this)):
                return LiteralKind.NUMBER, str(found.this)
            case sql.DateStrToDate() if _DATE.fullmatch(str(found.this.this)):
                return LiteralKind.DATE, str(found.this.this)
            case sql.StrToTime() if str(found.args["format"].this) == _TIMESTAMP_FORMAT:
                return LiteralKind.TIMESTAMP, str(found.this.this)
        raise self._refused(found)

    def _refused(self, found: Any) -> OlrPgError:
        words = found.sql("oracle") if isinstance(found, self._sql.Expression) else str(found)
        return OlrPgError(
            Code.ROW_CONDITION_UNSUPPORTED, f"{words!r} is not allowed in a condition"
        )


def _is_escaped_wrongly(pattern: str, escape: str) -> bool:
    """Return whether an escape character precedes anything other than ``%``, ``_`` or itself."""
    at = 0
    while escape and at < len(pattern):
        if pattern[at] == escape:
            at += 1
            if pattern[at : at + 1] not in ("%", "_", escape):
                return True
        at += 1
    return False
