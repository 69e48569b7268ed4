"""Translates operators and functions of dates (Oracle SQL Language Reference, “Datetime
Functions”).

A DATE becomes timestamp(0); a number that is added to it is a number of days. SYSDATE and similar
functions become STATEMENT_TIMESTAMP() in the session's time zone. Weeks begin on Sunday
(NLS_TERRITORY=AMERICA).

Dates keep their year, month and day. Until 4 October 1582, Oracle's calendar is the Julian one and
PostgreSQL's is the Gregorian one, so differences in days and days of the week are not the same.
They are refused for literals; the values in columns are not known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from olr_pg.schema.functions.date_formats import (
    FIRST_GREGORIAN_YEAR,
    ReadFormat,
    elements,
    immutable_text,
    is_early,
    plain_moment,
    read_format,
    shown_format,
)
from olr_pg.schema.functions.number_functions import (
    calculated,
    format_number,
    round_number,
    truncate_number,
)
from olr_pg.schema.translating import Function, UntranslatableError, constant, string_literal
from olr_pg.schema.value_kinds import (
    DATE,
    INTEGER,
    INTERVAL,
    MOMENTS,
    MONTHS,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    TIMESTAMP,
    TIMESTAMPTZ,
    Fact,
    ValueKind,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.schema.translating import CallRule, NodeRule, Translated, Translator
_UNITS: Final = {
    **dict.fromkeys(("DD", "DDD", "J"), "day"),
    **dict.fromkeys(("MM", "MON", "MONTH", "RM"), "month"),
    **dict.fromkeys(("YYYY", "YEAR", "YYY", "YY", "Y", "SYYYY", "SYEAR"), "year"),
    **dict.fromkeys(("HH", "HH24", "HH12"), "hour"),
    **dict.fromkeys(("CC", "SCC"), "century"),
    **dict.fromkeys(("DAY", "DY", "D"), "sunday"),
    **dict.fromkeys(("IYYY", "IYY", "IY", "I"), "isoyear"),
    "MI": "minute",
    "Q": "quarter",
    "IW": "week",
    "WW": "yearweek",
    "W": "monthweek",
}
_TRUNCATED: Final = {
    "sunday": "({day} - EXTRACT(DOW FROM {at}) * INTERVAL '1 day')",
    "isoyear": "CAST(DATE_TRUNC('week', MAKE_DATE(CAST(EXTRACT(ISOYEAR FROM {at}) AS INT), 1, 4))"
    " AS TIMESTAMP)",
    "yearweek": "({day} - MOD(EXTRACT(DOY FROM {at}) - 1, 7) * INTERVAL '1 day')",
    "monthweek": "({day} - MOD(EXTRACT(DAY FROM {at}) - 1, 7) * INTERVAL '1 day')",
}
_WEEKS: Final = frozenset({"sunday", "isoyear", "week", "yearweek"})
_DAY_ELEMENTS: Final = frozenset(
    {"DAY", "DY", "D", "J", "DDD", "WW", "IW", "IYYY", "IYY", "IY", "I"}
)
_HALVES: Final = {
    "day": "12 hours",
    "hour": "30 minutes",
    "minute": "30 seconds",
    "year": "6 months",
    "week": "84 hours",
    "sunday": "84 hours",
}
"""For each unit, the interval that is added to a date so that truncation to the unit rounds the
date.
"""

_LATE: Final = {"month": ("15 days", "1 month"), "quarter": ("1 month 15 days", "3 months")}
"""For units of varying length: the time within the unit from which ROUND rounds up, and the length
of the unit.
"""

_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NOW: Final = "CAST(DATE_TRUNC('second', STATEMENT_TIMESTAMP()) AS TIMESTAMP)"
_NOW_DATE: Final = Fact(ValueKind.DATE, filled=True)
_NOW_ZONED: Final = TIMESTAMPTZ._replace(filled=True, exact=True)
_LOCAL: Final = "CAST(STATEMENT_TIMESTAMP() AS TIMESTAMP)"
_OFFSET: Final = re.compile(r"[+-]?\d{1,2}:\d\d")
_ENGLISH: Final = re.compile(r"\s*NLS_DATE_LANGUAGE\s*=\s*'?(AMERICAN|ENGLISH)'?\s*", re.IGNORECASE)
_WHOLE_INTERVAL: Final = re.compile(r"\(?-?INTERVAL '[^.']*' [A-Z ]+\)?")
_YEAR: Final = re.compile(r"-?\d+")
_ZONE: Final = re.compile(r"(?<=\d)\s*([+-]\d\d?:\d\d|\s[A-Za-z_/]+)$")


def _now(_t: Translator, node: exp.Expr) -> Translated:
    return (_NOW, _NOW_DATE) if node.args.get("sysdate") else ("STATEMENT_TIMESTAMP()", _NOW_ZONED)


def _days(t: Translator, node: exp.Expr) -> str:
    days = t.whole(node) if t.kind(node) is ValueKind.INTEGER else None
    if days is not None:
        return f"INTERVAL '{days} day'"
    number = t.number(node) if t.is_text(node) else t.sql(node)
    return f"({number} * INTERVAL '1 day')"


def _arithmetic(t: Translator, node: exp.Expr) -> Translated:
    left, right = node.this, node.expression
    sign = "+" if isinstance(node, exp.Add) else "-"
    if t.is_moment(right) and not t.is_moment(left) and sign == "+":
        left, right = right, left
    one, other = t.kind(left), t.kind(right)
    if one in MOMENTS:
        return _from_moment(t, left, sign, right)
    spans = (ValueKind.INTERVAL, ValueKind.MONTHS)
    if one in spans and one is other:
        return f"({t.sql(left)} {sign} {t.sql(right)})", Fact(one)
    numeric = {*NUMBERS, *TEXTS, ValueKind.NOTHING}
    if one in numeric and other in numeric:
        return calculated(t, left, sign, right)
    raise UntranslatableError(f"a {one.value} {sign} a {other.value}")


def _from_moment(t: Translator, left: exp.Expr, sign: str, right: exp.Expr) -> Translated:
    one, other = t.kind(left), t.kind(right)
    sql = t.sql(left)
    if other is not ValueKind.MONTHS:
        _refuse_early(t, left, right)
    if other in NUMBERS:
        found = f"({t.moment(left)} {sign} {_days(t, right)})"
        if one is not ValueKind.DATE:
            found = f"DATE_TRUNC('second', CAST({found} AS TIMESTAMP))"
        elif t.kind(right) is not ValueKind.INTEGER or t.whole(right) is None:
            found = f"CAST({found} AS TIMESTAMP(0))"
        return found, Fact(ValueKind.DATE, filled=t.fact(left).filled and t.fact(right).filled)
    if other in MOMENTS and sign == "-":
        if (one, other) == (ValueKind.DATE, ValueKind.DATE):
            return f"(EXTRACT(EPOCH FROM {sql} - {t.sql(right)}) / 86400)", NUMBER
        return f"({sql} - {t.sql(right)})", INTERVAL
    if other is ValueKind.INTERVAL:
        return _plus_interval(t, left, sign, right), t.fact(left)._replace(filled=False)
    if other is ValueKind.MONTHS:
        return _plus_months(t, left, sign, right), t.fact(left)._replace(filled=False)
    if other is ValueKind.NOTHING:
        return "CAST(NULL AS TIMESTAMP)", DATE
    raise UntranslatableError(f"a {one.value} {sign} a {other.value}")


def _plus_interval(t: Translator, left: exp.Expr, sign: str, right: exp.Expr) -> str:
    """Return SQL that adds an interval of days and seconds. Oracle calculates in UTC with times
    that have a time zone, so a day has 24 hours; with a DATE, it drops fractions of seconds
    (Oracle SQL Language Reference, “Datetime/Interval Arithmetic”).
    """
    sql, span = t.sql(left), t.sql(right)
    if t.kind(left) is ValueKind.TIMESTAMPTZ:
        return f"(({sql} AT TIME ZONE 'UTC' {sign} {span}) AT TIME ZONE 'UTC')"
    if t.kind(left) is ValueKind.DATE and not _WHOLE_INTERVAL.fullmatch(span):
        span = f"DATE_TRUNC('second', {span})"
    return f"({sql} {sign} {span})"


def _plus_months(t: Translator, left: exp.Expr, sign: str, right: exp.Expr) -> str:
    """Return SQL that adds months to a date. If the resulting month does not have the day, the SQL
    fails when it runs, as in Oracle (ORA-01839).
    """
    moment = t.moment(left)
    month = f"(DATE_TRUNC('month', {moment}) {sign} {t.sql(right)})"
    parts = ", ".join(
        f"CAST(EXTRACT({part} FROM {at}) AS INT)"
        for part, at in (("YEAR", month), ("MONTH", month), ("DAY", moment))
    )
    return f"(MAKE_DATE({parts}) + ({moment} - DATE_TRUNC('day', {moment})))"


def _refuse_early(t: Translator, *nodes: exp.Expr) -> None:
    """Raise an error if a value whose days are counted can be a literal before 1583."""
    if any(t.fact(node).early for node in nodes):
        raise UntranslatableError("a count of days or a day of the week, of a date before 1583")


def _unit(t: Translator, value: exp.Expr, form: str) -> str:
    if form not in _UNITS:
        raise UntranslatableError(f"TRUNC or ROUND of a date to {form}")
    if _UNITS[form] in _WEEKS:
        _refuse_early(t, value)
    return _UNITS[form]


def _is_word(t: Translator, arguments: Sequence[exp.Expr]) -> bool:
    return len(arguments) > 1 and t.literal(arguments[1]) is not None


def _cut(unit: str, moment: str) -> str:
    template = _TRUNCATED.get(unit)
    if template is None:
        return f"DATE_TRUNC('{unit}', {moment})"
    return template.format(at=moment, day=f"DATE_TRUNC('day', {moment})")


def _truncate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate TRUNC of a date, or TRUNC of a number."""
    value = arguments[0]
    if not (t.is_moment(value) or _is_word(t, arguments)):
        return truncate_number(t, arguments)
    form = string_literal(t, arguments[1], "TRUNC with a unit") if len(arguments) > 1 else "DD"
    unit, fact = _unit(t, value, form.upper()), t.fact(value)
    return _cut(unit, t.moment(value)), DATE._replace(filled=fact.filled, early=fact.early)


def _round(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    value = arguments[0]
    if not (t.is_moment(value) or _is_word(t, arguments)):
        return round_number(t, arguments)
    form = (
        string_literal(t, arguments[1], "ROUND with a unit").upper() if len(arguments) > 1 else "DD"
    )
    unit, moment = _unit(t, value, form), t.moment(value)
    fact = DATE._replace(filled=t.fact(value).filled, early=t.fact(value).early)
    if unit in _LATE:
        late, length = _LATE[unit]
        begin = _cut(unit, moment)
        is_late = f"{moment} >= {begin} + INTERVAL '{late}'"
        return (
            f"({begin} + CASE WHEN {is_late} THEN INTERVAL '{length}' ELSE INTERVAL '0' END)",
            fact,
        )
    if unit not in _HALVES:
        raise UntranslatableError(f"ROUND of a date to {form}")
    return _cut(unit, f"({moment} + INTERVAL '{_HALVES[unit]}')"), fact


def _month_end(moment: str) -> str:
    return f"(DATE_TRUNC('month', {moment}) + INTERVAL '1 month - 1 day')"


def _is_last_day(moment: str) -> str:
    return f"DATE_TRUNC('day', {moment}) = {_month_end(moment)}"


def _add_months(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate ADD_MONTHS: the last day of a month becomes the last day of the resulting month."""
    moment, months = t.day(arguments[0]), t.whole(arguments[1])
    step = (
        f"INTERVAL '{months} month'"
        if months is not None
        else f"({t.integer(arguments[1])} * INTERVAL '1 month')"
    )
    first = f"DATE_TRUNC('month', {moment})"
    clock = f"({moment} - DATE_TRUNC('day', {moment}))"
    last = f"({first} + {step} + INTERVAL '1 month - 1 day' + {clock})"
    return f"(CASE WHEN {_is_last_day(moment)} THEN {last} ELSE {moment} + {step} END)", DATE


def _last_day(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    moment = t.day(arguments[0])
    return f"({_month_end(moment)} + ({moment} - DATE_TRUNC('day', {moment})))", DATE


def _next_day(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    word = (t.literal(arguments[1]) or "").upper()[:3]
    if word not in _DAYS:
        raise UntranslatableError("NEXT_DAY with a day that is not an English name")
    _refuse_early(t, arguments[0])
    moment = t.day(arguments[0])
    days = f"((CAST({_DAYS.index(word) + 6} - EXTRACT(DOW FROM {moment}) AS INT) % 7) + 1)"
    return f"({moment} + {days} * INTERVAL '1 day')", DATE


def _months_between(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    later, earlier = (t.day(one) for one in arguments)

    def months(moment: str) -> str:
        return f"(EXTRACT(YEAR FROM {moment}) * 12 + EXTRACT(MONTH FROM {moment}))"

    def seconds(moment: str) -> str:
        return f"EXTRACT(EPOCH FROM {moment} - DATE_TRUNC('month', {moment}))"

    same = f"EXTRACT(DAY FROM {later}) = EXTRACT(DAY FROM {earlier})"
    ends = f"({_is_last_day(later)} AND {_is_last_day(earlier)})"
    rest = f"({seconds(later)} - {seconds(earlier)}) / 86400 / 31"
    whole = f"{months(later)} - {months(earlier)}"
    return f"({whole} + CASE WHEN {same} OR {ends} THEN 0 ELSE {rest} END)", NUMBER


def _to_char(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    value = arguments[0]
    if len(arguments) == 1:
        return t.text(value), TEXT._replace(filled=t.fact(value).filled)
    if t.is_number(value):
        return format_number(t, arguments)
    if not t.is_moment(value):
        raise UntranslatableError("TO_CHAR with a format, of a value whose type is unknown")
    if len(arguments) > 2 and not _ENGLISH.fullmatch(t.literal(arguments[2]) or ""):
        raise UntranslatableError("TO_CHAR of a date with NLS parameters other than English")
    fact = t.fact(value)
    if fact.kind is ValueKind.TIMESTAMPTZ and not fact.exact:
        t.moment(value)  # raises an error, because its time zone is lost
    given = string_literal(t, arguments[1], "TO_CHAR with a format")
    if fact.early and any(one.word in _DAY_ELEMENTS for one in elements(given)):
        _refuse_early(t, value)
    at = t.moment(value) if fact.zone else t.sql(value)
    if t.is_stored and fact.kind in (ValueKind.DATE, ValueKind.TIMESTAMP):
        stored = immutable_text(given, at)
        if stored is not None:
            return stored, TEXT._replace(filled=fact.filled)
    if given.upper() == "SSSSS":
        shown = f"LPAD(TO_CHAR({at}, 'SSSSS'), 5, '0')"
        return shown, TEXT._replace(filled=fact.filled)
    form = shown_format(given, fact.length if fact.kind is not ValueKind.DATE else 0)
    if (fact.kind is not ValueKind.TIMESTAMPTZ or fact.zone) and "TZ" in form:
        raise UntranslatableError(f"the format {given!r} of a date without a time zone")
    quoted = form.replace("'", "''")
    return f"TO_CHAR({at}, '{quoted}')", TEXT._replace(filled=fact.filled)


def _century(moment: str, element: str) -> str:
    """Return a date with a four-digit year: RR and RRRR mean a year from 1950 to 2049, other
    elements a year from 2000 on.
    """
    if element == "RRRR":
        cases = [("<", "0050-01-01", "+", "2000"), ("<", "0100-01-01", "+", "1900")]
    elif element == "RR":
        cases = [(">=", "2050-01-01", "-", "100")]
    else:
        cases = [("<", "2000-01-01", "+", "100")]
    tests = " ".join(
        f"WHEN {moment} {than} '{day}' THEN {moment} {sign} INTERVAL '{years} years'"
        for than, day, sign, years in cases
    )
    return f"(CASE {tests} ELSE {moment} END)"


def _read(name: str, fact: Fact) -> CallRule:
    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        if len(arguments) == 1:
            raise UntranslatableError(f"{name} without a format {_DEPENDS}")
        if len(arguments) > 2 and not _ENGLISH.fullmatch(t.literal(arguments[2]) or ""):
            raise UntranslatableError(f"{name} with NLS parameters other than English")
        given = string_literal(t, arguments[1], f"{name} with a format")
        text = t.literal(arguments[0])
        moment = plain_moment(text, given) if text is not None else None
        if moment is not None and fact.kind is not ValueKind.TIMESTAMPTZ:
            return _literal(moment, fact)
        early = text is not None and is_early(text, given)
        if early and any(one.word == "J" for one in elements(given)):
            raise UntranslatableError(f"the number {text} of a day before 1583")
        return _read_checked(t, arguments[0], given, fact), fact._replace(early=early)

    return translate


def _read_checked(t: Translator, value: exp.Expr, given: str, fact: Fact) -> str:
    """Return SQL that reads a date, and that fails if Oracle would fail. PostgreSQL alone would
    ignore text after the date, and would use 1 for missing parts.
    """
    read, text, literal = read_format(given), t.text(value), t.literal(value)
    pattern = rf"\s*{read.pattern}\s*"
    if literal is not None and not re.fullmatch(pattern, literal):
        raise UntranslatableError(f"the text {literal!r} in the format {given!r}")
    found = _read_text(text, read, given, fact)
    if read.long_form:
        long = read._replace(form=read.long_form, century="")
        with_long = _read_text(text, long, given, fact)
        if literal is not None:
            found = with_long if _LONG.search(literal) else found
        else:
            is_long = f"{text} ~ '{_LONG.pattern}'"
            found = f"(CASE WHEN {is_long} THEN {with_long} ELSE {found} END)"
    if literal is not None or text.startswith("TO_CHAR("):
        return found
    escaped = pattern.replace("'", "''")
    name = "TIMESTAMPTZ" if fact.kind is ValueKind.TIMESTAMPTZ else "TIMESTAMP"
    fails = f"CAST('ORA-01861: ' || {text} AS {name})"
    return (
        f"(CASE WHEN {text} ~ '^{escaped}$' THEN {found} WHEN {text} IS NOT NULL THEN {fails} END)"
    )


_LONG: Final = re.compile(r"(?:^|\D)\d{4}(?:\D|$)")


_DEPENDS: Final = "depends on NLS_DATE_FORMAT"


def _read_text(text: str, read: ReadFormat, given: str, fact: Fact) -> str:
    form = read.form.replace("'", "''")
    if read.missing:
        text = f"TO_CHAR(STATEMENT_TIMESTAMP(), '{read.missing}') || {text}"
        form = read.missing + form
    if read.has_zone != (fact.kind is ValueKind.TIMESTAMPTZ):
        found = "a" if read.has_zone else "no"
        raise UntranslatableError(f"the format {given!r} contains {found} time zone")
    if read.has_zone:
        found = f"TO_TIMESTAMP({text}, '{form}')"
    elif read.has_time:
        # Use UTC, which has no daylight saving time, so that every hour exists. After a blank,
        # PostgreSQL would take the minus of a year BC for a separator.
        found = f"(TO_TIMESTAMP('+00T' || {text}, 'TZH\"T\"{form}') AT TIME ZONE 'UTC')"
    else:
        found = f"CAST(TO_DATE({text}, '{form}') AS TIMESTAMP)"
    return _century(found, read.century) if read.century else found


def _date_literal(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    text = string_literal(t, arguments[0], "DATE with a text")
    return _literal(f"{text.strip()} 00:00:00", DATE)


def _timestamp_literal(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    text = string_literal(t, arguments[0], "TIMESTAMP with a text").strip()
    return _literal(text, TIMESTAMPTZ if _ZONE.search(text) else TIMESTAMP)


def _literal(text: str, fact: Fact) -> Translated:
    """Translate a date in ISO form. Oracle writes a year BC with a minus."""
    year = _YEAR.match(text)
    early = year is not None and int(year[0]) < FIRST_GREGORIAN_YEAR
    shown = (f"{text[1:]} BC" if text.startswith("-") else text).replace("'", "''")
    name = "TIMESTAMPTZ" if fact.kind is ValueKind.TIMESTAMPTZ else "TIMESTAMP"
    return f"CAST('{shown}' AS {name})", fact._replace(filled=True, early=early)


def _interval(t: Translator, node: exp.Expr) -> Translated:
    value, unit = t.literal(node.this), node.args.get("unit")
    name = _interval_unit(unit)
    is_months = name.split()[0] in ("YEAR", "MONTH")
    if value is not None:
        fact = (MONTHS if is_months else INTERVAL)._replace(filled=True)
        return _signed(value, name), fact
    if t.kind(node.this) is ValueKind.INTERVAL and not is_months:
        return t.sql(node.this), INTERVAL
    if t.is_number(node.this) and not is_months:
        return f"({t.sql(node.this)} * INTERVAL '1 day')", INTERVAL
    raise UntranslatableError("an interval that is not a literal")


def _signed(value: str, name: str) -> str:
    """Return an interval. In Oracle a sign applies to all its parts; in PostgreSQL, to one part."""
    text = value.strip()
    positive = f"INTERVAL '{text.lstrip('+-')}' {name}"
    return f"(-{positive})" if text.startswith("-") else positive


def _interval_unit(unit: exp.Expr | None) -> str:
    if isinstance(unit, exp.IntervalSpan):
        return f"{_interval_unit(unit.this)} TO {_interval_unit(unit.expression)}"
    name = unit.name.upper() if unit is not None else ""
    if name not in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"):
        raise UntranslatableError(f"an interval with the unit {name or '(none)'}")
    return name


def _number_to_interval(units: tuple[str, ...], fact: Fact) -> CallRule:
    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        value, unit = arguments
        word = (t.literal(unit) or "").lower()
        if word not in units:
            raise UntranslatableError("an interval whose unit is not a literal")
        if fact is MONTHS and t.kind(value) is not ValueKind.INTEGER:
            raise UntranslatableError("an interval of a fraction of a month")
        return f"({t.number(value)} * INTERVAL '1 {word}')", fact

    return translate


def _text_to_interval(unit: str, fact: Fact) -> CallRule:
    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        text = string_literal(t, arguments[0], "an interval with a text")
        if not re.fullmatch(r"[-+]?[\d :.-]+", text.strip()):
            raise UntranslatableError(f"an interval in the form {text!r}")
        return _signed(text, unit), fact._replace(filled=True)

    return translate


def _from_zone(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    zone = string_literal(t, arguments[1], "FROM_TZ with a time zone")
    name = _zone_name(zone)
    return f"({t.moment(arguments[0])} AT TIME ZONE {name})", TIMESTAMPTZ._replace(zone=name)


def _zone_name(zone: str) -> str:
    """Return a time zone in PostgreSQL's notation, in which an offset has the opposite sign."""
    if _OFFSET.fullmatch(zone.strip()):
        return f"INTERVAL '{zone.strip()}'"
    return "'" + zone.replace("'", "''") + "'"


def _at_zone(t: Translator, node: exp.Expr) -> Translated:
    """Translate AT TIME ZONE: the point in time stays the same; the zone is recorded, because other
    functions may need the local time.
    """
    zone = string_literal(t, node.args["zone"], "AT TIME ZONE with a time zone")
    value, kind = node.this, t.kind(node.this)
    if kind is not ValueKind.TIMESTAMPTZ:
        moment = f"CAST({t.moment(value)} AS TIMESTAMPTZ)"
    else:
        moment = t.sql(value)
    return moment, TIMESTAMPTZ._replace(zone=_zone_name(zone), filled=t.fact(value).filled)


def _utc(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    if t.kind(arguments[0]) is not ValueKind.TIMESTAMPTZ:
        raise UntranslatableError("SYS_EXTRACT_UTC of a value without a time zone")
    return f"({t.sql(arguments[0])} AT TIME ZONE 'UTC')", TIMESTAMP


def _extract(t: Translator, node: exp.Expr) -> Translated:
    part, value = node.this.name.upper(), node.expression
    if part not in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"):
        raise UntranslatableError(f"EXTRACT of {part}")
    kind, sql = t.kind(value), t.sql(value)
    if kind is ValueKind.TIMESTAMPTZ:
        sql = f"{sql} AT TIME ZONE 'UTC'"  # as Oracle does
    elif kind is ValueKind.INTERVAL:
        sql = f"JUSTIFY_HOURS({sql})"
    elif kind is not ValueKind.MONTHS:
        sql = t.moment(value)
    return f"EXTRACT({part} FROM {sql})", NUMBER if part == "SECOND" else INTEGER


_AMERICAN: Final = {
    "GMT": 0, "NST": -7, "AST": -8, "ADT": -6, "EST": -10, "EDT": -8, "CST": -12, "CDT": -10,
    "MST": -14, "MDT": -12, "PST": -16, "PDT": -14, "YST": -18, "YDT": -16, "HST": -20,
    "HDT": -18, "BST": -22, "BDT": -20,
}  # fmt: skip
"""The time zones of NEW_TIME, with their offset from GMT in half hours."""


def _new_time(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    names = [string_literal(t, one, "NEW_TIME with a time zone").upper() for one in arguments[1:]]
    unknown = [name for name in names if name not in _AMERICAN]
    if unknown:
        raise UntranslatableError(f"NEW_TIME does not know the time zone {unknown[0]}")
    minutes = 30 * (_AMERICAN[names[1]] - _AMERICAN[names[0]])
    at = t.day(arguments[0])
    return f"({at} + INTERVAL '{minutes} minutes')", DATE


NODES: Final[dict[type[exp.Expr], NodeRule]] = {
    exp.CurrentTimestamp: _now,
    exp.Systimestamp: lambda _t, _node: ("STATEMENT_TIMESTAMP()", _NOW_ZONED),
    exp.CurrentDate: lambda _t, _node: (_NOW, _NOW_DATE),
    exp.Localtimestamp: lambda _t, _node: (_LOCAL, TIMESTAMP._replace(filled=True)),
    exp.Add: _arithmetic,
    exp.Sub: _arithmetic,
    exp.Interval: _interval,
    exp.Extract: _extract,
    exp.AtTimeZone: _at_zone,
}
FUNCTIONS: Final[dict[str, Function]] = {
    "ADD_MONTHS": Function(_add_months, 2, 2),
    "CURRENT_TIMESTAMP": Function(constant("STATEMENT_TIMESTAMP()", _NOW_ZONED)),
    "DATE": Function(_date_literal),
    "FROM_TZ": Function(_from_zone, 2, 2),
    "LAST_DAY": Function(_last_day),
    "LOCALTIMESTAMP": Function(constant(_LOCAL, TIMESTAMP._replace(filled=True))),
    "MONTHS_BETWEEN": Function(_months_between, 2, 2),
    "NEW_TIME": Function(_new_time, 3, 3),
    "NEXT_DAY": Function(_next_day, 2, 2),
    "NUMTODSINTERVAL": Function(
        _number_to_interval(("day", "hour", "minute", "second"), INTERVAL), 2, 2
    ),
    "NUMTOYMINTERVAL": Function(_number_to_interval(("year", "month"), MONTHS), 2, 2),
    "ROUND": Function(_round, 1, 2),
    "SYSTIMESTAMP": Function(constant("STATEMENT_TIMESTAMP()", _NOW_ZONED)),
    "SYS_EXTRACT_UTC": Function(_utc),
    "TIMESTAMP": Function(_timestamp_literal),
    "TO_CHAR": Function(_to_char, 1, 3),
    "TO_DATE": Function(_read("TO_DATE", DATE), 1, 3),
    "TO_DSINTERVAL": Function(_text_to_interval("DAY TO SECOND", INTERVAL)),
    "TO_TIMESTAMP": Function(_read("TO_TIMESTAMP", TIMESTAMP), 1, 3),
    "TO_TIMESTAMP_TZ": Function(_read("TO_TIMESTAMP_TZ", TIMESTAMPTZ), 1, 3),
    "TO_YMINTERVAL": Function(_text_to_interval("YEAR TO MONTH", MONTHS)),
    "TRUNC": Function(_truncate, 1, 2),
}
