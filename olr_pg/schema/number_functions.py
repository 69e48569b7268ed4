"""Operators and functions of numbers (Oracle SQL Language Reference, “Numeric Functions”)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from olr_pg.schema.translating import UntranslatableError, argument_in, constant
from olr_pg.schema.value_kinds import INTEGER, NUMBER, RAW, TEXT, Fact, ValueKind

if TYPE_CHECKING:
    from olr_pg.schema.translating import Handler, Translator


def numeric(t: Translator, node: exp.Expr) -> str:
    """Return a value as numeric: PostgreSQL's other numbers divide and round otherwise."""
    sql = t.sql(node)
    if isinstance(node, exp.Literal) and not node.is_string and "." in node.name:
        return sql
    return f"CAST({sql} AS NUMERIC)"


def _modulo(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    """Divide with the rest; a divisor of zero gives the dividend."""
    left, right = numeric(t, node.this), t.sql(node.expression)
    fact = INTEGER if t.fact(node.this).kind is ValueKind.INTEGER else NUMBER
    if t.whole(node.expression):
        return f"({left} % {right})", fact
    return f"(CASE WHEN {right} = 0 THEN {left} ELSE {left} % {right} END)", fact


def _multiply(t: Translator, node: exp.Expr) -> tuple[str, Fact] | None:
    if not (t.is_number(node.this) or t.is_number(node.expression)):
        return None
    kinds = {t.fact(node.this).kind, t.fact(node.expression).kind}
    if ValueKind.INTERVAL in kinds:
        return None
    # Products of smallint and integer would leave their range.
    fact = INTEGER if kinds == {ValueKind.INTEGER} else NUMBER
    return f"({numeric(t, node.this)} * {t.sql(node.expression)})", fact


def _negative(t: Translator, node: exp.Expr) -> tuple[str, Fact] | None:
    return None if isinstance(node.this, exp.Literal) else (f"(-{t.sql(node.this)})", NUMBER)


def _plain(name: str, fact: Fact = NUMBER) -> Handler:
    def translate(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
        return f"{name}({numeric(t, node.this)})", fact

    return translate


def _logarithm(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    if node.expression is None:
        raise UntranslatableError("LOG has no base")
    return f"LOG({numeric(t, node.this)}, {numeric(t, node.expression)})", NUMBER


def _extreme(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    """GREATEST and LEAST are NULL where any value is."""
    name = "GREATEST" if isinstance(node, exp.Greatest) else "LEAST"
    values = [node.this, *node.expressions]
    texts = [t.sql(one) for one in values]
    call = f"{name}({', '.join(texts)})"
    kind = t.fact(values[0]).kind
    empty = [text for text, one in zip(texts, values, strict=True) if not t.fact(one).filled]
    if not empty:
        return call, Fact(kind, filled=True)
    nulls = " OR ".join(f"{text} IS NULL" for text in empty)
    return f"(CASE WHEN {nulls} THEN NULL ELSE {call} END)", Fact(kind)


def _bits(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    left, right = (f"CAST({t.sql(one)} AS BIGINT)" for one in node.expressions)
    return f"({left} & {right})", INTEGER


def _to_number(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    form = node.args.get("format")
    if form is None:
        return f"CAST({t.sql(node.this)} AS NUMERIC)", NUMBER
    if t.literal(form) is None or set(str(t.literal(form)).upper()) - set("90.,GDSMIPRFL "):
        raise UntranslatableError("TO_NUMBER with a format that PostgreSQL has not")
    return f"TO_NUMBER({t.sql(node.this)}, {t.sql(form)})", NUMBER


def _remainder(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    left, right = (numeric(t, one) for one in node.expressions)
    # To the nearest multiple, the even one where two are near.
    nearest = f"ROUND(CAST(CAST({left} / {right} AS DOUBLE PRECISION) AS NUMERIC))"
    half = f"ABS(({left} / {right}) % 1) = 0.5"
    even = f"(2 * ROUND({left} / {right} / 2))"
    return f"({left} - {right} * CASE WHEN {half} THEN {even} ELSE {nearest} END)", NUMBER


def _ratio(t: Translator, node: exp.Expr) -> tuple[str, Fact] | None:
    inner = node.this
    if isinstance(inner, exp.Var) and inner.name.startswith(_RATIO):
        value = inner.name.removeprefix(_RATIO)
        window = node.copy()
        window.set("this", exp.Var(this=f"SUM({value})"))
        return f"(CAST({value} AS NUMERIC) / {t.sql(window)})", NUMBER
    if node.args.get("over") == "KEEP" or node.args.get("first") is not None:
        raise UntranslatableError("KEEP (DENSE_RANK …): rewrite it with a subquery")
    return None


_RATIO: Final = "\0ratio "


HANDLERS: Final[dict[type[exp.Expr], Handler]] = {
    exp.Div: lambda t, node: (f"({numeric(t, node.this)} / {t.sql(node.expression)})", NUMBER),
    exp.Mod: _modulo,
    exp.Mul: _multiply,
    exp.Neg: _negative,
    exp.Pow: lambda t, node: (
        f"POWER({numeric(t, node.this)}, {numeric(t, node.expression)})",
        NUMBER,
    ),
    exp.Log: _logarithm,
    exp.Sign: _plain("SIGN", INTEGER),
    exp.Abs: _plain("ABS"),
    exp.Ceil: _plain("CEIL", INTEGER),
    exp.Floor: _plain("FLOOR", INTEGER),
    exp.Sqrt: _plain("SQRT"),
    exp.Exp: _plain("EXP"),
    exp.Ln: _plain("LN"),
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.ToNumber: _to_number,
    exp.Window: _ratio,
}
BY_NAME: Final[dict[str, Handler]] = {
    "BITAND": _bits,
    "REMAINDER": _remainder,
    "RATIO_TO_REPORT": argument_in(_RATIO + "{}", NUMBER),
    "SYS_GUID": constant("UUID_SEND(GEN_RANDOM_UUID())", Fact(ValueKind.RAW, filled=True)),
    "HEXTORAW": argument_in("DECODE({}, 'hex')", RAW),
    "RAWTOHEX": argument_in("UPPER(ENCODE({}, 'hex'))", TEXT),
    "EMPTY_BLOB": constant("CAST('' AS BYTEA)", RAW),
}
