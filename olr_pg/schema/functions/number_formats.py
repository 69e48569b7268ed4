"""Translates number format models (Oracle SQL Language Reference, “Number Format Models”).

G and D are the comma and the point, as with NLS_TERRITORY=AMERICA. If a number is too large for its
format, each position of the format and of the sign is filled with ``#``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from olr_pg.schema.translating import UntranslatableError, failing, string_literal
from olr_pg.schema.value_kinds import NUMBER, TEXT, ValueKind

if TYPE_CHECKING:
    from olr_pg.schema.translating import Translated, Translator

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
        UntranslatableError: it is another parameter, or the format has a point or comma, which
            stay as they are.
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
    in Oracle. PostgreSQL shows -1 in the last place with a sign, so the 1 becomes 0.
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
