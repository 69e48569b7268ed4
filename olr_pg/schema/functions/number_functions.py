"""Translates operators and functions of numbers, and number format models (Oracle SQL Language
Reference, “Numeric Functions”, “Number Format Models”).

In a format model, G and D are the comma and the point, as with NLS_TERRITORY=AMERICA. If a number
is too large for its format, each position of the format and of the sign is filled with ``#``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from olr_pg.schema.presence import literal
from olr_pg.schema.translating import (
    Function,
    UntranslatableError,
    failing,
    in_byte_order,
    in_own_order,
    of_numbers,
    string_literal,
)
from olr_pg.schema.value_kinds import (
    FLOAT,
    INTEGER,
    NUMBER,
    PLS_INTEGER,
    SINGLE,
    TEXT,
    TEXTS,
    Fact,
    ValueKind,
    float_type,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.schema.translating import CallRule, NodeRule, Translated, Translator

_FORM: Final = re.compile(
    r"(?P<fill>FM)?(?P<sign>S)?(?P<dollar>\$)?(?P<whole>[09,G]*)(?P<point>[.D](?P<part>[09]*))?"
    r"(?P<end>MI|PR|S)?"
)
_SCIENTIFIC: Final = re.compile(r"(FM)?[09][.D][09]+EEEE")
_SCALED: Final = re.compile(r"(?:FM)?([09]+)V([09]+)")
_BLANK: Final = re.compile(r"B([09]*9)")
_HEXADECIMAL: Final = re.compile(r"(FM)?(0?)(X+)")
_VALUE: Final = re.compile(r"(FM)?[SL$]?[09,G]*([.D][09]*)?(MI|PR|S)?")
_ENDS: Final = {"MI": 1, "PR": 2, "S": 1, None: 0}


_CHARACTERS: Final = re.compile(
    r"\s*NLS_NUMERIC_CHARACTERS\s*=\s*'?([^'\s])([^'])'?\s*", re.IGNORECASE
)


def numeric_characters(given: str, form: str) -> str:
    """Return the decimal character and the group separator that an NLS parameter names.

    Raises:
        UntranslatableError: the text names another parameter, or the format has a point or comma,
            which stay as they are.
    """
    found = _CHARACTERS.fullmatch(given)
    if found is None:
        raise UntranslatableError("a number with NLS parameters other than NLS_NUMERIC_CHARACTERS")
    if set(form) & set(".,") or "L" in form.upper():
        raise UntranslatableError(f"NLS parameters for the format {form!r}: use D and G")
    return found[1] + found[2]


def number_text(t: Translator, value: exp.Expr, form: exp.Expr) -> Translated:
    """Translate TO_CHAR of a number.

    Raises:
        UntranslatableError: PostgreSQL has no equivalent of the format.
    """
    given = string_literal(t, form, "TO_CHAR with a format")
    text = given.upper()
    if text in ("TM", "TM9"):
        return t.text(value), TEXT
    if text in ("RN", "FMRN"):
        return f"TO_CHAR({t.number(value)}, '{given}')", TEXT
    if _HEXADECIMAL.fullmatch(text):
        return _hexadecimal(t, value, given), TEXT
    if _SCIENTIFIC.fullmatch(text):
        return _scientific(t, value, text), TEXT
    if text.startswith("FML"):
        text = "FM$" + text[3:]  # NLS_CURRENCY of the territory AMERICA is $
    scaled = _SCALED.fullmatch(text)
    if scaled is not None:
        digits = len(scaled[2])
        value = t.raw(f"({t.number(value)} * {10**digits})", NUMBER)
        text = text.replace("V", "")
    blank = _BLANK.fullmatch(text)
    if blank is not None:
        shown, _ = number_text(t, value, exp.Literal.string(blank[1]))
        spaces = " " * (len(blank[1]) + 1)
        return f"(CASE WHEN ROUND({t.number(value)}) = 0 THEN '{spaces}' ELSE {shown} END)", TEXT
    match = _FORM.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]) or (match["sign"] and match["end"]):
        raise UntranslatableError(f"a number in the format {given!r}")
    sql = t.number(value)
    digits = sum(letter in "09" for letter in match["whole"])
    decimals = len(match["part"] or "")
    has_sign = bool(match["sign"] or match["end"])
    wide = len(text) - len(match["fill"] or "") - len(match["end"] or "")
    wide += _ENDS[match["end"]] + (not has_sign)
    target = text.replace("G", ",").replace("D", ".")
    shown = f"TO_CHAR({sql}, '{target}')"
    if not match["dollar"] and t.kind(value) is not ValueKind.INTEGER:
        shown = _with_negative_zero(sql, shown, match, target, decimals)
    if match["dollar"]:
        shown = _with_dollar(sql, target.replace("$", ""), wide, is_filled=bool(match["fill"]))
    limit = f"ABS(ROUND({sql}, {decimals})) >= {10**digits}"
    return f"(CASE WHEN {limit} THEN '{'#' * wide}' ELSE {shown} END)", TEXT


def _with_negative_zero(
    sql: str, shown: str, match: re.Match[str], target: str, decimals: int
) -> str:
    """Return the text of a number, with a minus sign also if a negative number is rounded to 0, as
    in Oracle. For this, the SQL prints the number −1 in the last place, which PostgreSQL prints
    with a sign, and replaces the 1 by 0.
    """
    places = decimals
    if match["fill"] and match["part"]:
        places = len(match["part"].rstrip("9"))  # FM omits the last zeros
    zero = f"REPLACE(TO_CHAR({'-1' if not places else f'-1e-{places}'}, '{target}'), '1', '0')"
    return f"(CASE WHEN {sql} < 0 AND ROUND({sql}, {decimals}) = 0 THEN {zero} ELSE {shown} END)"


def _scientific(t: Translator, value: exp.Expr, form: str) -> str:
    """Translate a scientific format. Oracle writes an upper-case E, and reserves a position for a
    third digit of the exponent.
    """
    is_filled, decimals = form.startswith("FM"), form.removeprefix("FM")[2:-4]
    sql = t.number(value)
    number = f"LTRIM(UPPER(TO_CHAR({sql}, '9.{'9' * len(decimals)}EEEE')))"
    shown = number if is_filled else f"LPAD({number}, {len(decimals) + 8})"
    limit = "ABS({0}) >= 1E99 OR {0} <> 0 AND ABS({0}) < 1E-98".format(sql)  # noqa: UP032
    return f"(CASE WHEN {limit} THEN NULL ELSE {shown} END)"


def _with_dollar(sql: str, form: str, wide: int, *, is_filled: bool) -> str:
    """Insert the dollar sign after the number's sign and before its first digit."""
    digits = f"LTRIM(TO_CHAR(ABS({sql}), '{form}'))"
    shown = f"CASE WHEN {sql} < 0 THEN '-$' ELSE '$' END || {digits}"
    return f"({shown})" if is_filled else f"LPAD({shown}, {wide})"


def _hexadecimal(t: Translator, value: exp.Expr, form: str) -> str:
    text = form.upper().removeprefix("FM")
    is_filled, wide = form.upper().startswith("FM"), len(text)
    sql = t.number(value)
    digits = f"TO_HEX(CAST(ROUND({sql}) AS BIGINT))"
    digits = f"UPPER({digits})" if "X" in form else digits
    if text.startswith("0"):
        digits = f"LPAD({digits}, {wide}, '0')"
    shown = digits if is_filled else f"LPAD({digits}, {wide + 1})"
    limit = f"ROUND({sql}) < 0 OR ROUND({sql}) >= {16**wide}"
    return f"(CASE WHEN {limit} THEN '{'#' * (wide + 1)}' ELSE {shown} END)"


def number_value(t: Translator, value: exp.Expr, form: exp.Expr) -> str:
    """Translate TO_NUMBER of a text with a format.

    Raises:
        UntranslatableError: PostgreSQL has no equivalent of the format.
    """
    given = string_literal(t, form, "TO_NUMBER with a format").upper()
    if _HEXADECIMAL.fullmatch(given):
        return f"CAST(CAST('x' || LPAD({t.text(value)}, 16, '0') AS BIT(64)) AS BIGINT)"
    if not _VALUE.fullmatch(given) or "L" in given:
        raise UntranslatableError("TO_NUMBER with a format that PostgreSQL does not have")
    target = given.replace("G", ",").replace("D", ".").replace("$", "")
    text = _checked(t, value, given)
    text = f"REPLACE({text}, '$', '')" if "$" in given else text
    return f"TO_NUMBER({text}, '{target}')"


def _checked(t: Translator, value: exp.Expr, form: str) -> str:
    """Return the text for TO_NUMBER, or an expression that fails if the text has other characters
    than its format or more digits: PostgreSQL would ignore them.
    """
    whole, _, part = re.split("MI|PR", form)[0].replace("D", ".").partition(".")
    before, behind = (sum(letter in "09" for letter in piece) for piece in (whole, part))
    digits = rf"(?:\d,?){{0,{before}}}(?:\.\d{{0,{behind}}})?"
    pattern = rf"[\s<]*[-+]?\$?{digits}[-+>\s]*"
    literal, text = t.literal(value), t.text(value)
    if literal is not None:
        if not re.fullmatch(pattern, literal):
            raise UntranslatableError(f"the text {literal!r} in the format {form!r}")
        return text
    return f"(CASE WHEN {text} !~ '^{pattern}$' THEN {failing('ORA-01722', text)} ELSE {text} END)"


def calculated(t: Translator, left: exp.Expr, operator: str, right: exp.Expr) -> Translated:
    """Translate an arithmetic operation on two numbers. The result is a floating-point number if at
    least one of the two numbers is a floating-point number, otherwise numeric.
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
    found = f"({t.number(left)} {operator} {other})"
    if whole and t.is_procedural and _is_machine_integer(t, left, right):
        return f"CAST({found} AS INT)", PLS_INTEGER._replace(filled=filled)
    return found, fact


def _is_machine_integer(t: Translator, *nodes: exp.Expr) -> bool:
    """Return whether Oracle calculates with 32 bits, so that the result can overflow: with two
    PLS_INTEGER, or a PLS_INTEGER and a literal (PL/SQL Language Reference, “Preventing PLS_INTEGER
    Overflow”).
    """
    others = [node for node in nodes if t.fact(node).length != PLS_INTEGER.length]
    literals = [whole for node in others if (whole := t.whole(node)) is not None]
    return len(others) < len(nodes) == len(literals) + len(nodes) - len(others) and all(
        abs(whole) < 2**31 for whole in literals
    )


def _power(t: Translator, node: exp.Expr) -> Translated:
    return f"POWER({t.number(node.this)}, {t.number(node.expression)})", NUMBER


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
    """Translate VALIDATE_CONVERSION(… AS NUMBER). The parser treats AS NUMBER as an alias."""
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
    exp.Pow: _power,
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
