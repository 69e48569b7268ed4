"""Operators and functions of dates (Oracle SQL Language Reference, “Datetime Functions”).

A DATE is a timestamp(0): its arithmetic counts days. What Oracle takes for the time of a statement
is STATEMENT_TIMESTAMP() in the session's zone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp
from sqlglot.dialects.oracle import Oracle

from olr_pg.schema.number_functions import numeric
from olr_pg.schema.translating import UntranslatableError, constant
from olr_pg.schema.value_kinds import (
    DATE,
    INTEGER,
    INTERVAL,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Fact,
    ValueKind,
)

if TYPE_CHECKING:
    from olr_pg.schema.translating import Handler, Translator

_UNITS: Final = {
    **dict.fromkeys(("DD", "DDD", "J"), "day"),
    **dict.fromkeys(("MM", "MON", "MONTH", "RM"), "month"),
    **dict.fromkeys(("YYYY", "YEAR", "YYY", "YY", "Y", "SYYYY"), "year"),
    **dict.fromkeys(("HH", "HH24", "HH12"), "hour"),
    "MI": "minute",
    "Q": "quarter",
    "IW": "week",
}
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NOW: Final = "CAST(DATE_TRUNC('second', STATEMENT_TIMESTAMP()) AS TIMESTAMP)"
_ELEMENT: Final = re.compile(
    r'"[^"]*"|YYYY|YYY|YY|RRRR|RR|SYYYY|IYYY|MONTH|MON|MM|DDD|DD|DAY|DY|D|HH24|HH12|HH|MI|SSSSS|SS'
    r"|FF[1-6]?|FF|AM|PM|A\.M\.|P\.M\.|Q|IW|WW|W|J|CC|TZH|TZM|TH|[-/.,;: ]|T(?=HH)|FM",
    re.IGNORECASE,
)
_PLAIN_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(\.\d+)?)?")
_ISO_DATE: Final = ("YYYY-MM-DD", "RRRR-MM-DD", "SYYYY-MM-DD")


def _now(t: Translator, node: exp.Expr) -> tuple[str, Fact] | None:
    if node.args.get("sysdate"):
        return _NOW, Fact(ValueKind.DATE, filled=True)
    return "STATEMENT_TIMESTAMP()", Fact(ValueKind.TIMESTAMPTZ, filled=True)


def _day_interval(t: Translator, node: exp.Expr) -> str:
    days = t.whole(node)
    return f"INTERVAL '{days} day'" if days is not None else f"({t.sql(node)} * INTERVAL '1 day')"


def _arithmetic(t: Translator, node: exp.Expr) -> tuple[str, Fact] | None:
    left, right = node.this, node.expression
    sign = "+" if isinstance(node, exp.Add) else "-"
    kinds = t.fact(left).kind, t.fact(right).kind
    if t.is_number(left) and t.is_moment(right) and sign == "+":
        left, right = right, left
    if t.is_moment(left) and t.is_number(right):
        sql = f"({t.sql(left)} {sign} {_day_interval(t, right)})"
        if t.fact(left).kind is not ValueKind.DATE:
            sql = f"DATE_TRUNC('second', CAST({sql} AS TIMESTAMP))"
        elif t.whole(right) is None:
            sql = f"CAST({sql} AS TIMESTAMP(0))"
        return sql, Fact(ValueKind.DATE, filled=t.fact(left).filled)
    if kinds == (ValueKind.DATE, ValueKind.DATE) and sign == "-":
        return f"(EXTRACT(EPOCH FROM {t.sql(left)} - {t.sql(right)}) / 86400)", NUMBER
    if t.is_moment(left) and t.is_moment(right) and sign == "-":
        return f"({t.sql(left)} - {t.sql(right)})", INTERVAL
    if t.is_moment(left) and kinds[1] is ValueKind.INTERVAL:
        return f"({t.sql(left)} {sign} {t.sql(right)})", Fact(kinds[0])
    if t.is_number(left) and t.is_number(right):
        fact = INTEGER if set(kinds) == {ValueKind.INTEGER} else NUMBER
        filled = t.fact(left).filled and t.fact(right).filled
        return f"({numeric(t, left)} {sign} {t.sql(right)})", fact._replace(filled=filled)
    return None


def _truncate(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    """TRUNC of a date or of a number, whichever it is."""
    arguments = node.expressions if isinstance(node, exp.Anonymous) else []
    value = arguments[0] if arguments else node.this
    form = arguments[1] if len(arguments) > 1 else None
    form = node.args.get("unit") or node.args.get("decimals") or form
    if t.is_moment(value) or _is_word(t, form):
        return f"DATE_TRUNC('{_unit(t, form)}', {_local_time(t, value)})", DATE
    digits = f", {t.sql(form)}" if form is not None else ""
    return f"TRUNC({numeric(t, value)}{digits})", NUMBER if digits else INTEGER


def _is_word(t: Translator, form: exp.Expr | None) -> bool:
    return t.literal(form) is not None or (isinstance(form, exp.Var) and form.name in _UNITS)


def _unit(t: Translator, form: exp.Expr | None) -> str:
    word = "DD" if form is None else str(t.literal(form) or form.name).upper()
    if word not in _UNITS:
        raise UntranslatableError(f"TRUNC or ROUND of a date to {word}")
    return _UNITS[word]


def _local_time(t: Translator, node: exp.Expr) -> str:
    sql = t.sql(node)
    return f"CAST({sql} AS TIMESTAMP)" if t.fact(node).kind is ValueKind.TIMESTAMPTZ else sql


def _round(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    form = node.args.get("decimals")
    if t.is_moment(node.this) or _is_word(t, form):
        if form is not None and _unit(t, form) != "day":
            raise UntranslatableError("ROUND of a date to more than a day")
        return f"DATE_TRUNC('day', {_local_time(t, node.this)} + INTERVAL '12 hours')", DATE
    digits = f", {t.sql(form)}" if form is not None else ""
    return f"ROUND({numeric(t, node.this)}{digits})", NUMBER if digits else INTEGER


def _month_end(moment: str) -> str:
    return f"(DATE_TRUNC('month', {moment}) + INTERVAL '1 month - 1 day')"


def _is_last_day(moment: str) -> str:
    return f"DATE_TRUNC('day', {moment}) = {_month_end(moment)}"


def _add_months(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    """From the last day of a month one comes to the last day of another."""
    moment = _local_time(t, node.this)
    months = t.whole(node.expression)
    step = (
        f"INTERVAL '{months} month'"
        if months is not None
        else f"(TRUNC({t.sql(node.expression)}) * INTERVAL '1 month')"
    )
    first = f"DATE_TRUNC('month', {moment})"
    clock = f"({moment} - DATE_TRUNC('day', {moment}))"
    last = f"({first} + {step} + INTERVAL '1 month - 1 day' + {clock})"
    return f"(CASE WHEN {_is_last_day(moment)} THEN {last} ELSE {moment} + {step} END)", DATE


def _last_day(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    moment = _local_time(t, node.this)
    return f"({_month_end(moment)} + ({moment} - DATE_TRUNC('day', {moment})))", DATE


def _next_day(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    word = (t.literal(node.expression) or "").upper()[:3]
    if word not in _DAYS:
        raise UntranslatableError("NEXT_DAY of a day that is no English name")
    moment = _local_time(t, node.this)
    days = f"((CAST({_DAYS.index(word) + 6} - EXTRACT(DOW FROM {moment}) AS INT) % 7) + 1)"
    return f"({moment} + {days} * INTERVAL '1 day')", DATE


def _months_between(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    later, earlier = _local_time(t, node.this), _local_time(t, node.expression)

    def months(moment: str) -> str:
        return f"(EXTRACT(YEAR FROM {moment}) * 12 + EXTRACT(MONTH FROM {moment}))"

    def seconds(moment: str) -> str:
        return f"EXTRACT(EPOCH FROM {moment} - DATE_TRUNC('month', {moment}))"

    same = f"EXTRACT(DAY FROM {later}) = EXTRACT(DAY FROM {earlier})"
    ends = f"({_is_last_day(later)} AND {_is_last_day(earlier)})"
    rest = f"({seconds(later)} - {seconds(earlier)}) / 86400 / 31"
    whole = f"{months(later)} - {months(earlier)}"
    return f"({whole} + CASE WHEN {same} OR {ends} THEN 0 ELSE {rest} END)", NUMBER


def date_format(form: str) -> str:
    """Translate a format of a date.

    Raises:
        UntranslatableError: with what PostgreSQL has not.
    """
    at, out = 0, list[str]()
    while at < len(form):
        match = _ELEMENT.match(form, at)
        if match is None:
            raise UntranslatableError(f"a date in the format {form!r}")
        element = match.group()
        upper = element.upper()
        if upper in ("RR", "SYYYY", "D", "DAY", "MONTH", "J", "CC", "TH") or (
            upper == "FM" and len(form) > 6
        ):
            # Names depend on NLS_DATE_LANGUAGE and FM lasts to the end of the format.
            raise UntranslatableError(f"{upper} in the format {form!r}")
        out.append({"RRRR": "YYYY", "FF": "FF6"}.get(upper, element))
        at = match.end()
    return "".join(out)


def _to_char(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    form = node.args.get("format")
    if form is None:
        return t.text(node.this), TEXT
    text = t.literal(form)
    if text is None:
        raise UntranslatableError("TO_CHAR with a format that is no literal")
    if t.is_number(node.this):
        if set(text.upper().replace("FM", "")) - set("90.,GDSMIPR "):
            raise UntranslatableError(f"a number in the format {text!r}")
        return f"TO_CHAR({t.sql(node.this)}, '{text}')", TEXT
    if not t.is_moment(node.this):
        raise UntranslatableError("TO_CHAR with a format, of what is not known to be a date")
    return _moment_text(t, node, text), TEXT


def _moment_text(t: Translator, node: exp.Expr, form: str) -> str:
    quoted = date_format(form).replace("'", "''")
    return f"TO_CHAR({t.sql(node.this)}, '{quoted}')"


def _known_moment_to_char(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    """Translate TO_CHAR of what sqlglot knows to be a moment: it has put the format in C's form."""
    form = _oracle_format(node, t)
    if form is None or not t.is_moment(node.this):
        raise UntranslatableError("TO_CHAR with a format that is no literal")
    filled = t.fact(node.this).filled
    return _moment_text(t, node, form), Fact(ValueKind.TEXT, filled=filled)


def _oracle_format(node: exp.Expr, t: Translator) -> str | None:
    """Return the format as it was written: sqlglot keeps it in C's form."""
    form = node.args.get("format")
    if form is None:
        return None
    text = str(exp.Literal.string(form.name).name)
    for there, here in sorted(_FROM_C.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(there, here)
    return text


_FROM_C: Final = {c_form: form for form, c_form in Oracle.TIME_MAPPING.items()} | {
    "%Y": "YYYY",
    "%m": "MM",
    "%d": "DD",
    "%H": "HH24",
    "%M": "MI",
    "%S": "SS",
    "%f": "FF6",
}


def _to_date(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    form = _oracle_format(node, t)
    if form is None:
        raise UntranslatableError("TO_DATE without a format depends on NLS_DATE_FORMAT")
    match = _PLAIN_DATE.fullmatch((t.literal(node.this) or "").strip())
    if match is not None and form.upper().startswith(_ISO_DATE):
        year, month, day, *clock = match.groups()
        time = ":".join(part or "00" for part in clock[:3])
        moment = f"{year}-{month}-{day} {time}{clock[3] or ''}"
        return f"CAST('{moment}' AS TIMESTAMP)", Fact(ValueKind.DATE, filled=True)
    new = date_format(form)
    return f"CAST(TO_TIMESTAMP({t.text(node.this)}, '{new}') AS TIMESTAMP)", DATE


def _to_timestamp(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    sql, fact = _to_date(t, node)
    return sql, TIMESTAMP._replace(filled=fact.filled)


def _date_literal(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    text = t.literal(node.this)
    if text is None:
        raise UntranslatableError("DATE of what is no literal")
    return f"CAST('{text} 00:00:00' AS TIMESTAMP)", Fact(ValueKind.DATE, filled=True)


def _interval(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    value, unit = t.literal(node.this), node.args.get("unit")
    if value is None or unit is None:
        raise UntranslatableError("an interval of what is no literal")
    return f"INTERVAL '{value}' {unit.sql(dialect='oracle')}", Fact(ValueKind.INTERVAL, filled=True)


def _number_to_interval(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    value, unit = node.expressions
    word = (t.literal(unit) or "").lower()
    if word not in ("year", "month", "day", "hour", "minute", "second"):
        raise UntranslatableError("an interval of a unit that is no literal")
    return f"({t.sql(value)} * INTERVAL '1 {word}')", INTERVAL


def _extract(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    part = node.this.name.upper()
    if part not in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"):
        raise UntranslatableError(f"EXTRACT of {part}")
    fact = NUMBER if part == "SECOND" else INTEGER
    return f"EXTRACT({part} FROM {t.sql(node.expression)})", fact


HANDLERS: Final[dict[type[exp.Expr], Handler]] = {
    exp.CurrentTimestamp: _now,
    exp.CurrentDate: constant(_NOW, Fact(ValueKind.DATE, filled=True)),
    exp.Localtimestamp: constant(
        "CAST(STATEMENT_TIMESTAMP() AS TIMESTAMP)", Fact(ValueKind.TIMESTAMP, filled=True)
    ),
    exp.Systimestamp: constant("STATEMENT_TIMESTAMP()", Fact(ValueKind.TIMESTAMPTZ, filled=True)),
    exp.Add: _arithmetic,
    exp.Sub: _arithmetic,
    exp.DateTrunc: _truncate,
    exp.Trunc: _truncate,
    exp.Round: _round,
    exp.AddMonths: _add_months,
    exp.LastDay: _last_day,
    exp.NextDay: _next_day,
    exp.MonthsBetween: _months_between,
    exp.ToChar: _to_char,
    exp.TimeToStr: _known_moment_to_char,
    exp.StrToDate: _to_date,
    exp.StrToTime: _to_timestamp,
    exp.DateStrToDate: _date_literal,
    exp.Interval: _interval,
    exp.Extract: _extract,
}
BY_NAME: Final[dict[str, Handler]] = {
    "TRUNC": _truncate,
    "NUMTODSINTERVAL": _number_to_interval,
    "NUMTOYMINTERVAL": _number_to_interval,
}
