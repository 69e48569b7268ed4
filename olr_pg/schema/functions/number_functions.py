"""Translates operators and functions of numbers (Oracle SQL Language Reference, “Numeric
Functions”).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from olr_pg.schema.functions.number_formats import number_text, number_value, numeric_characters
from olr_pg.schema.presence import literal
from olr_pg.schema.translating import (
    Function,
    UntranslatableError,
    in_byte_order,
    in_own_order,
    of_numbers,
    string_literal,
)
from olr_pg.schema.value_kinds import (
    FLOAT,
    INTEGER,
    NUMBER,
    SINGLE,
    TEXTS,
    Fact,
    ValueKind,
    float_type,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.schema.translating import CallRule, NodeRule, Translated, Translator


def calculated(t: Translator, left: exp.Expr, operator: str, right: exp.Expr) -> Translated:
    """Translate an arithmetic operation on two numbers. The result is numeric, or a floating-point
    number if one of the numbers is one.
    """
    kinds = {t.kind(left), t.kind(right)}
    if ValueKind.FLOAT in kinds:
        name = float_type([t.fact(left), t.fact(right)])
        one, other = (t.binary(node, name) for node in (left, right))
        return f"({one} {operator} {other})", SINGLE if name == "REAL" else FLOAT
    # Calculate with numeric, because products and sums of smallint and integer values could
    # overflow.
    whole = kinds == {ValueKind.INTEGER} and operator != "/"
    filled = t.fact(left).filled and t.fact(right).filled
    fact = Fact(ValueKind.INTEGER if whole else ValueKind.NUMBER, filled=filled)
    other = t.number(right) if t.kind(right) in TEXTS else t.sql(right)
    return f"({t.number(left)} {operator} {other})", fact


def _multiply(t: Translator, node: exp.Expr) -> Translated:
    intervals = (ValueKind.INTERVAL, ValueKind.MONTHS)
    for one, other in ((node.this, node.expression), (node.expression, node.this)):
        if t.kind(one) in intervals and t.is_number(other):
            return f"({t.sql(one)} * CAST({t.sql(other)} AS DOUBLE PRECISION))", t.fact(one)
    return calculated(t, node.this, "*", node.expression)


def _divide(t: Translator, node: exp.Expr) -> Translated:
    return calculated(t, node.this, "/", node.expression)


def _negative(t: Translator, node: exp.Expr) -> Translated | None:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        t.note(node, t.fact(node.this))
        return None
    fact = t.fact(node.this)
    if fact.kind in (ValueKind.INTERVAL, ValueKind.MONTHS):
        return f"(-{t.sql(node.this)})", fact
    value = t.number(node.this) if t.is_text(node.this) else t.sql(node.this)
    return f"(-{value})", Fact(fact.kind if fact.kind not in TEXTS else ValueKind.NUMBER)


def _modulo(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate MOD. If the divisor is 0, the result is the dividend."""
    left, right = t.number(arguments[0]), t.number(arguments[1])
    fact = INTEGER if {t.kind(one) for one in arguments} == {ValueKind.INTEGER} else NUMBER
    if t.whole(arguments[1]):
        return f"({left} % {t.sql(arguments[1])})", fact
    return f"(CASE WHEN {right} = 0 THEN {left} ELSE {left} % {right} END)", fact


def _logarithm(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    return f"LOG({t.number(arguments[0])}, {t.number(arguments[1])})", NUMBER


def _extreme(name: str) -> CallRule:
    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        """Translate GREATEST or LEAST. The result is NULL if any argument is NULL."""
        texts, fact = t.unified(arguments)
        is_text = fact.kind in TEXTS
        ordered = map(in_byte_order, texts) if is_text else texts
        call = f"{name}({', '.join(ordered)})"
        call = in_own_order(call) if is_text else call
        empty = [text for text, one in zip(texts, arguments, strict=True) if not t.fact(one).filled]
        if not empty:
            return call, fact
        nulls = " OR ".join(f"{text} IS NULL" for text in empty)
        return f"(CASE WHEN {nulls} THEN NULL ELSE {call} END)", fact

    return translate


def _bits(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    left, right = (f"CAST(TRUNC({t.number(one)}) AS BIGINT)" for one in arguments)
    return f"({left} & {right})", INTEGER


def _bits_to_number(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    bits = reversed(list(enumerate(reversed([t.number(one) for one in arguments]))))
    return f"({' + '.join(f'{bit} * {2**place}' for place, bit in bits)})", INTEGER


def _to_number(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    if len(arguments) == 1:
        return t.number(arguments[0]), NUMBER
    if len(arguments) > 2:
        given = string_literal(t, arguments[2], "TO_NUMBER with NLS parameters")
        form = string_literal(t, arguments[1], "TO_NUMBER with a format")
        signs, text = numeric_characters(given, form), t.text(arguments[0])
        value = t.raw(f"TRANSLATE({text}, {literal(signs)}, '.,')", t.fact(arguments[0]))
        return number_value(t, value, arguments[1]), NUMBER
    return number_value(t, *arguments), NUMBER


NUMERAL: Final = r"'^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$'"
"""A PostgreSQL regular expression that matches texts that are numbers."""


def _is_convertible(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate VALIDATE_CONVERSION(… AS NUMBER). The parser takes AS NUMBER for an alias."""
    (asked,) = arguments
    if not isinstance(asked, exp.Alias) or asked.alias.upper() != "NUMBER":
        raise UntranslatableError(
            "VALIDATE_CONVERSION: in PostgreSQL 16 and later, use PG_INPUT_IS_VALID"
        )
    if t.is_number(asked.this) or t.is_null(asked.this):
        return "1", INTEGER._replace(filled=True)
    text = t.text(asked.this)
    return f"(CASE WHEN {text} !~ {NUMERAL} THEN 0 ELSE 1 END)", INTEGER._replace(filled=True)


def _remainder(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    left, right = map(t.number, arguments)
    # Round the quotient to the nearest integer; if two are equally near, to the even one.
    nearest = f"ROUND(CAST(CAST({left} / {right} AS DOUBLE PRECISION) AS NUMERIC))"
    half = f"ABS(({left} / {right}) % 1) = 0.5"
    even = f"(2 * ROUND({left} / {right} / 2))"
    return f"({left} - {right} * CASE WHEN {half} THEN {even} ELSE {nearest} END)", NUMBER


def _bucket(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    value, low, high = map(t.number, arguments[:3])
    return f"WIDTH_BUCKET({value}, {low}, {high}, {t.integer(arguments[3])})", INTEGER


def _nanvl(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate NANVL. Only a floating-point value can be NaN."""
    value, other = arguments
    if t.kind(value) is not ValueKind.FLOAT:
        return t.number(value), t.fact(value)
    sql = t.sql(value)
    test = f"{sql} = CAST('NaN' AS DOUBLE PRECISION)"
    return f"(CASE WHEN {test} THEN {t.number(other)} ELSE {sql} END)", FLOAT


_SPECIAL: Final = {"NAN": "NaN", "INF": "Infinity", "-INF": "-Infinity", "+INF": "Infinity"}


def _to_float(name: str, fact: Fact) -> CallRule:
    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        """Translate TO_BINARY_FLOAT or TO_BINARY_DOUBLE. The text may stand for NaN or infinity."""
        (value,) = arguments
        special = _SPECIAL.get((t.literal(value) or "").strip().upper())
        if special is not None:
            return f"CAST('{special}' AS {name})", fact._replace(filled=True)
        return t.binary(value, name), fact

    return translate


def _rounded(name: str) -> CallRule:
    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        if t.kind(arguments[0]) is ValueKind.FLOAT:
            if len(arguments) > 1:
                raise UntranslatableError(f"{name} of a BINARY_DOUBLE to decimal places")
            # As Oracle does, round a floating-point number that lies halfway between two integers
            # to the even one.
            return f"{name}(CAST({t.sql(arguments[0])} AS DOUBLE PRECISION))", FLOAT
        if len(arguments) == 1:
            return f"{name}({t.number(arguments[0])})", INTEGER
        digits = t.whole(arguments[1])
        fact = INTEGER if digits is not None and digits <= 0 else NUMBER
        return f"{name}({t.number(arguments[0])}, {t.integer(arguments[1])})", fact

    return translate


round_number: Final = _rounded("ROUND")
truncate_number: Final = _rounded("TRUNC")


def format_number(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate TO_CHAR of a number with a format."""
    if len(arguments) > 2:
        given = string_literal(t, arguments[2], "TO_CHAR with NLS parameters")
        signs = numeric_characters(given, string_literal(t, arguments[1], "TO_CHAR with a format"))
        shown, fact = number_text(t, *arguments[:2])
        return f"TRANSLATE({shown}, '.,', {literal(signs)})", fact
    return number_text(t, *arguments)


NODES: Final[dict[type[exp.Expr], NodeRule]] = {
    exp.Div: _divide,
    exp.Mul: _multiply,
    exp.Neg: _negative,
}
FUNCTIONS: Final[dict[str, Function]] = {
    "ABS": Function(lambda t, arguments: (f"ABS({t.number(arguments[0])})", t.fact(arguments[0]))),
    "ACOS": Function(of_numbers("CAST(ACOS({}) AS NUMERIC)", NUMBER)),
    "ASIN": Function(of_numbers("CAST(ASIN({}) AS NUMERIC)", NUMBER)),
    "ATAN": Function(of_numbers("CAST(ATAN({}) AS NUMERIC)", NUMBER)),
    "ATAN2": Function(of_numbers("CAST(ATAN2({}, {}) AS NUMERIC)", NUMBER), 2, 2),
    "BITAND": Function(_bits, 2, 2),
    "CEIL": Function(of_numbers("CEIL({})", INTEGER)),
    "BIN_TO_NUM": Function(_bits_to_number, 1, 255),
    "COS": Function(of_numbers("CAST(COS({}) AS NUMERIC)", NUMBER)),
    "COSH": Function(of_numbers("CAST(COSH({}) AS NUMERIC)", NUMBER)),
    "EXP": Function(of_numbers("EXP({})", NUMBER)),
    "FLOOR": Function(of_numbers("FLOOR({})", INTEGER)),
    "GREATEST": Function(_extreme("GREATEST"), 1, 255),
    "LEAST": Function(_extreme("LEAST"), 1, 255),
    "LN": Function(of_numbers("LN({})", NUMBER)),
    "LOG": Function(_logarithm, 2, 2),
    "MOD": Function(_modulo, 2, 2),
    "NANVL": Function(_nanvl, 2, 2),
    "POWER": Function(of_numbers("POWER({}, {})", NUMBER), 2, 2),
    "REMAINDER": Function(_remainder, 2, 2),
    "SIGN": Function(of_numbers("SIGN({})", INTEGER)),
    "SIN": Function(of_numbers("CAST(SIN({}) AS NUMERIC)", NUMBER)),
    "SINH": Function(of_numbers("CAST(SINH({}) AS NUMERIC)", NUMBER)),
    "SQRT": Function(of_numbers("SQRT({})", NUMBER)),
    "TAN": Function(of_numbers("CAST(TAN({}) AS NUMERIC)", NUMBER)),
    "TANH": Function(of_numbers("CAST(TANH({}) AS NUMERIC)", NUMBER)),
    "TO_BINARY_DOUBLE": Function(_to_float("DOUBLE PRECISION", FLOAT)),
    "TO_BINARY_FLOAT": Function(_to_float("REAL", SINGLE)),
    "TO_NUMBER": Function(_to_number, 1, 3),
    "VALIDATE_CONVERSION": Function(_is_convertible),
    "WIDTH_BUCKET": Function(_bucket, 4, 4),
}
