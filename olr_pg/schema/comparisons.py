"""Translates comparisons and conditions (Oracle SQL Language Reference, “Datatype Comparison
Rules”, “Conditions”).

When Oracle compares two CHAR values, or a CHAR with a literal, it ignores trailing blanks. When
Oracle compares a CHAR with a VARCHAR2, trailing blanks matter. The translated SQL orders texts by
their bytes, whatever the collation of the target database is. Oracle converts a text that is
compared with a number to a number. Oracle converts a text that is compared with a date by
NLS_DATE_FORMAT. olr_pg refuses the comparison of a text with a date, because its result depends on
a setting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from olr_pg.schema.translating import NLS_TEXT, UntranslatableError, in_byte_order
from olr_pg.schema.value_kinds import BOOLEAN, MOMENTS, NUMBERS, TEXTS, ValueKind, float_type

if TYPE_CHECKING:
    from olr_pg.schema.translating import NodeRule, Translated, Translator

_OPERATORS: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_EQUALITY: Final = ("=", "<>")


def comparable(
    t: Translator, left: exp.Expr, right: exp.Expr, operator: str = "="
) -> tuple[str, str]:
    """Return the SQL of two values, converted so that PostgreSQL compares them as Oracle does.

    Args:
        operator: the operator between them; except for equality, the order of texts matters.

    Raises:
        UntranslatableError: the comparison depends on session settings or on an unknown type.
    """
    kinds = {t.kind(left), t.kind(right)}
    one, other = t.sql(left), t.sql(right)
    if ValueKind.NOTHING in kinds:
        return one, other
    if ValueKind.UNKNOWN in kinds:
        unknown = one if t.kind(left) is ValueKind.UNKNOWN else other
        raise UntranslatableError(f"the SQL compares {unknown}, whose type is unknown")
    if kinds <= TEXTS:
        texts = _texts(t, left, right)
        return texts if operator in _EQUALITY else tuple(map(in_byte_order, texts))  # type: ignore[return-value]
    if kinds <= NUMBERS | TEXTS and ValueKind.FLOAT in kinds:
        name = float_type([t.fact(left), t.fact(right)])
        return t.binary(left, name), t.binary(right, name)
    if kinds <= NUMBERS | TEXTS:
        return (
            t.number(left) if t.is_text(left) else one,
            t.number(right) if t.is_text(right) else other,
        )
    if kinds & MOMENTS and kinds & TEXTS:
        raise UntranslatableError(
            f"the SQL compares a date with a text; the result {NLS_TEXT}: use TO_DATE"
        )
    if kinds <= MOMENTS or len(kinds) == 1:
        return one, other
    if kinds <= {ValueKind.RAW, *TEXTS}:
        return tuple(_bytes(t, node) for node in (left, right))  # type: ignore[return-value]
    names = " and ".join(sorted(kind.value for kind in kinds))
    raise UntranslatableError(f"the SQL compares values of the types {names}")


def _bytes(t: Translator, node: exp.Expr) -> str:
    return f"DECODE({t.text(node)}, 'hex')" if t.is_text(node) else t.sql(node)


def _texts(t: Translator, left: exp.Expr, right: exp.Expr) -> tuple[str, str]:
    literals = [isinstance(node, exp.Literal) for node in (left, right)]
    if all(literals):
        return f"CAST({t.sql(left)} AS BPCHAR)", t.sql(right)
    if {t.kind(left), t.kind(right)} == {ValueKind.CHAR}:
        one, other = (
            f"CAST({t.sql(node)} AS BPCHAR)"
            if t.fact(node).exact and not is_literal
            else t.sql(node)
            for node, is_literal in zip((left, right), literals, strict=True)
        )
        return one, other
    return t.text(left), t.text(right)


def compared(t: Translator, left: exp.Expr, operator: str, right: exp.Expr) -> str:
    """Return the SQL of a comparison of two values, or of two lists of values."""
    pairs = [comparable(t, *pair, operator) for pair in _pairs(left, right)]
    if len(pairs) == 1:
        return f"{pairs[0][0]} {operator} {pairs[0][1]}"
    if operator not in _EQUALITY:
        raise UntranslatableError(f"the SQL compares lists with {operator}")
    one, other = (", ".join(side) for side in zip(*pairs, strict=True))
    return f"({one}) {operator} ({other})"


def _pairs(left: exp.Expr, right: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
        return list(zip(left.expressions, right.expressions, strict=True))
    if isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple):
        raise UntranslatableError("the SQL compares a list with a value")
    return [(left, right)]


def _comparison(t: Translator, node: exp.Expr) -> Translated:
    operator = _OPERATORS[type(node)]
    right = node.expression
    if isinstance(right, exp.Any | exp.All):
        return _quantified(t, node.this, operator, right), BOOLEAN
    return compared(t, node.this, operator, right), BOOLEAN


def _quantified(t: Translator, left: exp.Expr, operator: str, right: exp.Expr) -> str:
    """Translate a comparison with ANY or ALL. A comparison with a list becomes comparisons joined
    by OR or AND. With a subquery, both databases have the same syntax.
    """
    inner = right.this
    word, joined = ("ANY", " OR ") if isinstance(right, exp.Any) else ("ALL", " AND ")
    if isinstance(inner, exp.Query):
        one, rows = _beside_query(t, left, inner, operator)
        return f"{one} {operator} {word} ({rows})"
    values = inner.expressions if isinstance(inner, exp.Tuple) else [_bare(inner)]
    return "(" + joined.join(compared(t, left, operator, value) for value in values) + ")"


def _bare(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Paren) else node


def _in(t: Translator, node: exp.Expr) -> Translated:
    query = node.args.get("query")
    if query is not None:
        one, rows = _beside_query(t, node.this, query)
        return f"{one} IN ({rows})", BOOLEAN
    if isinstance(node.this, exp.Tuple):
        tests = [compared(t, node.this, "=", value) for value in node.expressions]
        return "(" + " OR ".join(tests) + ")", BOOLEAN
    pairs = [comparable(t, node.this, value) for value in node.expressions]
    if len({one for one, _ in pairs}) == 1:
        return f"{pairs[0][0]} IN ({', '.join(value for _, value in pairs)})", BOOLEAN
    return "(" + " OR ".join(f"{one} = {value}" for one, value in pairs) + ")", BOOLEAN


def _beside_query(
    t: Translator, left: exp.Expr, query: exp.Expr, operator: str = "="
) -> tuple[str, str]:
    """Return the SQL of the value or list on the left, and of the subquery, both converted so that
    PostgreSQL compares them as Oracle does.
    """
    lefts = left.expressions if isinstance(left, exp.Tuple) else [left]
    inner = query
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    facts = t.columns_of(inner)
    if len(facts) != len(lefts):
        raise UntranslatableError(
            "the SQL compares a list with a query of a different number of columns"
        )
    names = [f'"c{number}"' for number in range(1, len(facts) + 1)]
    pairs = [
        comparable(t, one, t.raw(name, fact), operator)
        for one, name, fact in zip(lefts, names, facts, strict=True)
    ]
    values = ", ".join(one for one, _ in pairs)
    rows, forms = t.sql(inner), [form for _, form in pairs]
    if forms != names:
        listed = ", ".join(names)
        rows = f'SELECT {", ".join(forms)} FROM ({rows}) AS "q" ({listed})'  # noqa: S608 - translated
    return f"({values})" if isinstance(left, exp.Tuple) else values, rows


def _between(t: Translator, node: exp.Expr) -> Translated:
    if node.args.get("symmetric"):
        raise UntranslatableError("BETWEEN SYMMETRIC")
    one, low = comparable(t, node.this, node.args["low"], ">=")
    other, high = comparable(t, node.this, node.args["high"], "<=")
    if one == other:
        return f"{one} BETWEEN {low} AND {high}", BOOLEAN
    return f"({one} >= {low} AND {other} <= {high})", BOOLEAN


def _like(t: Translator, node: exp.Expr) -> Translated:
    """Translate LIKE. Without ESCAPE, Oracle has no escape character, but PostgreSQL's escape
    character is then a backslash.
    """
    is_escaped = isinstance(node, exp.Escape)
    like = node.this if is_escaped else node
    left, right = t.text(like.this), t.text(like.expression)
    denied = "NOT " if like.args.get("negate") else ""
    is_plain = isinstance(like.expression, exp.Literal) and "\\" not in right
    escape = "" if is_plain else " ESCAPE ''"
    if is_escaped:
        escape = f" ESCAPE {t.text(node.expression)}"
    return f"({left} {denied}LIKE {right}{escape})", BOOLEAN


def _is_json(t: Translator, node: exp.Expr) -> Translated:
    """Translate the condition IS JSON."""
    tested = node.expression
    if tested.args.get("this") or tested.args.get("unique") or not t.is_text(node.this):
        raise UntranslatableError("IS JSON with OBJECT, ARRAY, SCALAR or UNIQUE KEYS")
    return f"({t.text(node.this)} IS JSON)", BOOLEAN


def _is_special(t: Translator, node: exp.Expr, word: str) -> str:
    """Translate IS NAN and IS INFINITE. For a NUMBER, the result is false, or NULL if the number is
    NULL.
    """
    if t.kind(node) is not ValueKind.FLOAT:
        t.number(node)  # raises an error if the value is not a number
        return f"({t.sql(node)} IS NULL AND NULL)"
    values = ("NaN",) if word == "NAN" else ("Infinity", "-Infinity")
    listed = ", ".join(f"CAST('{value}' AS DOUBLE PRECISION)" for value in values)
    return f"({t.sql(node)} IN ({listed}))"


def _is(t: Translator, node: exp.Expr) -> Translated | None:
    if isinstance(node.expression, exp.JSON):
        return _is_json(t, node)
    if isinstance(node.expression, exp.Var):
        return _is_special(t, node.this, str(node.expression.this)), BOOLEAN
    if not isinstance(node.expression, exp.Null):
        raise UntranslatableError(f"the condition IS {node.expression.sql(dialect='oracle')}")
    return f"{t.sql(node.this)} IS NULL", BOOLEAN


NODES: Final[dict[type[exp.Expr], NodeRule]] = {
    **dict.fromkeys(_OPERATORS, _comparison),
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.Escape: _like,
    exp.Is: _is,
}


def equal(t: Translator, left: exp.Expr, right: exp.Expr) -> str:
    """Return the SQL condition that two values are equal by Oracle's rules."""
    return compared(t, left, "=", right)
