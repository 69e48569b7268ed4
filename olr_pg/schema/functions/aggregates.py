"""Translates aggregate and analytic functions (Oracle SQL Language Reference, “Aggregate
Functions”).

All aggregates except COUNT return NULL if there are no rows. A call with OVER, KEEP, WITHIN GROUP
or IGNORE NULLS is translated as one unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from olr_pg.schema.translating import (
    Function,
    UntranslatableError,
    in_byte_order,
    in_own_order,
    over_window,
)
from olr_pg.schema.value_kinds import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    NUMBER,
    NUMBERS,
    TEXTS,
    Fact,
    ValueKind,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.schema.translating import CallRule, NodeRule, Translated, Translator

_COUNTED: Final = Fact(ValueKind.INTEGER, filled=True)


def _bare(node: exp.Expr) -> tuple[str, exp.Expr]:
    """Return (the keyword DISTINCT if the argument has it, the value without the keyword)."""
    if isinstance(node, exp.Distinct):
        if len(node.expressions) != 1:
            raise UntranslatableError("a function of DISTINCT with several arguments")
        return "DISTINCT ", node.expressions[0]
    return "", node


def _count(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    if isinstance(arguments[0], exp.Star):
        return "COUNT(*)", _COUNTED
    distinct, value = _bare(arguments[0])
    return f"COUNT({distinct}{t.sql(value)})", _COUNTED


def _of_numbers(name: str, *, keeps: bool = False) -> CallRule:
    """Return the rule for an aggregate over numbers.

    Args:
        keeps: whether the result for integers is an integer.
    """

    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        distinct, value = _bare(arguments[0])
        kind = t.kind(value)
        sql = t.number(value) if kind in TEXTS or kind is ValueKind.NOTHING else t.sql(value)
        if not t.is_number(value):
            t.number(value)  # raises an error if it is not a number
        fact = FLOAT if kind is ValueKind.FLOAT else NUMBER
        fact = INTEGER if keeps and kind is ValueKind.INTEGER else fact
        return f"{name}({distinct}{sql})", fact

    return translate


def _spread(name: str) -> CallRule:
    """Return the rule for STDDEV or VARIANCE. For a single value Oracle returns 0, but PostgreSQL
    NULL.
    """

    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        distinct, value = _bare(arguments[0])
        sql = f"{distinct}{t.number(value)}"
        return f"(CASE WHEN COUNT({sql}) = 1 THEN 0 ELSE {name}({sql}) END)", NUMBER

    return translate


def _extreme(name: str) -> CallRule:
    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        _, value = _bare(arguments[0])
        call = f"{name}({t.ordered(t.sql(value), value)})"
        found = in_own_order(call) if t.is_text(value) else call
        return found, t.fact(value)._replace(filled=False)

    return translate


def _of_pairs(name: str) -> CallRule:
    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        one, other = (f"CAST({t.number(argument)} AS DOUBLE PRECISION)" for argument in arguments)
        return f"CAST({name}({one}, {other}) AS NUMERIC)", NUMBER

    return translate


def _median(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    return _interpolated(t, arguments[0], "", "0.5")


def _mode(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    value = arguments[0]
    found = f"MODE() WITHIN GROUP (ORDER BY {t.sql(value)})"
    return found, t.fact(value)._replace(filled=False)


def _of_conditions(name: str) -> CallRule:
    return lambda t, arguments: (f"{name}({t.sql(arguments[0])})", BOOLEAN)


def _grouping(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    return f"GROUPING({', '.join(map(t.sql, arguments))})", _COUNTED


FUNCTIONS: Final[dict[str, Function]] = {
    "ANY_VALUE": Function(_extreme("MIN")),
    "APPROX_COUNT_DISTINCT": Function(
        lambda t, arguments: (f"COUNT(DISTINCT {t.sql(arguments[0])})", _COUNTED)
    ),
    "BOOLEAN_AND_AGG": Function(_of_conditions("BOOL_AND")),
    "BOOLEAN_OR_AGG": Function(_of_conditions("BOOL_OR")),
    "EVERY": Function(_of_conditions("BOOL_AND")),
    "AVG": Function(_of_numbers("AVG")),
    "CORR": Function(_of_pairs("CORR"), 2, 2),
    "COUNT": Function(_count),
    "COVAR_POP": Function(_of_pairs("COVAR_POP"), 2, 2),
    "COVAR_SAMP": Function(_of_pairs("COVAR_SAMP"), 2, 2),
    "GROUPING": Function(_grouping),
    "GROUPING_ID": Function(_grouping, 1, 31),
    "MAX": Function(_extreme("MAX")),
    "MEDIAN": Function(_median),
    "MIN": Function(_extreme("MIN")),
    **{
        name: Function(_of_pairs(name), 2, 2)
        for name in (
            *("REGR_AVGX", "REGR_AVGY", "REGR_COUNT", "REGR_INTERCEPT", "REGR_R2", "REGR_SLOPE"),
            *("REGR_SXX", "REGR_SXY", "REGR_SYY"),
        )
    },
    "STATS_MODE": Function(_mode),
    "STDDEV": Function(_spread("STDDEV")),
    "STDDEV_POP": Function(_of_numbers("STDDEV_POP")),
    "STDDEV_SAMP": Function(_of_numbers("STDDEV_SAMP")),
    "SUM": Function(_of_numbers("SUM", keeps=True)),
    "VARIANCE": Function(_spread("VARIANCE")),
    "VAR_POP": Function(_of_numbers("VAR_POP")),
    "VAR_SAMP": Function(_of_numbers("VAR_SAMP")),
}

_NOT_OVER: Final = frozenset(
    {"STATS_MODE", "MEDIAN", "GROUPING", "GROUPING_ID", "APPROX_COUNT_DISTINCT"}
)


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node of Oracle's syntax tree is a call of an aggregate function."""
    is_call = isinstance(node, exp.Anonymous) and node.name.upper() in FUNCTIONS
    return is_call or isinstance(node, exp.GroupConcat)


def _numbered(name: str) -> CallRule:
    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        return f"{name}({', '.join(map(t.integer, arguments))})", _COUNTED

    return translate


def _neighbour(name: str) -> CallRule:
    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        values = [arguments[0], *arguments[2:]]
        texts, fact = t.unified(values)
        place = [t.integer(arguments[1])] if len(arguments) > 1 else []
        return f"{name}({', '.join([texts[0], *place, *texts[1:]])})", fact._replace(filled=False)

    return translate


def _of_frame(name: str) -> CallRule:
    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        parts = [t.sql(arguments[0]), *map(t.integer, arguments[1:])]
        return f"{name}({', '.join(parts)})", t.fact(arguments[0])._replace(filled=False)

    return translate


_ANALYTIC: Final[dict[str, Function]] = {
    "CUME_DIST": Function(lambda _t, _arguments: ("CUME_DIST()", FLOAT), 0, 0),
    "DENSE_RANK": Function(_numbered("DENSE_RANK"), 0, 0),
    "FIRST_VALUE": Function(_of_frame("FIRST_VALUE")),
    "LAG": Function(_neighbour("LAG"), 1, 3),
    "LAST_VALUE": Function(_of_frame("LAST_VALUE")),
    "LEAD": Function(_neighbour("LEAD"), 1, 3),
    "NTH_VALUE": Function(_of_frame("NTH_VALUE"), 2, 2),
    "NTILE": Function(_numbered("NTILE")),
    "PERCENT_RANK": Function(lambda _t, _arguments: ("PERCENT_RANK()", FLOAT), 0, 0),
    "RANK": Function(_numbered("RANK"), 0, 0),
    "ROW_NUMBER": Function(_numbered("ROW_NUMBER"), 0, 0),
}


def _window(t: Translator, node: exp.Expr) -> Translated:
    if node.args.get("over") == "KEEP":
        return _keep(t, node)
    if node.args.get("alias"):
        raise UntranslatableError("a named window")
    inner, ignores = _ignoring(node.this)
    partition = node.args.get("partition_by") or []
    order, spec = node.args.get("order"), node.args.get("spec")
    if isinstance(inner, exp.GroupConcat | exp.Window) and order is None and spec is None:
        return _whole_partition(t, inner, partition)
    if isinstance(inner, exp.WithinGroup) and order is None and spec is None:
        return _share_of_partition(t, inner, partition)
    if not isinstance(inner, exp.Anonymous):
        raise UntranslatableError("WITHIN GROUP with OVER: group in a subquery, and join it")
    name, arguments = inner.name.upper(), inner.expressions
    if ignores:
        return _not_null(t, name, arguments, (partition, order, spec))
    if name == "MEDIAN" and order is None and spec is None and len(arguments) == 1:
        return _between(t, arguments[0], "", "0.5", partition), NUMBER
    over = _over(t, partition, order, spec)
    if name == "RATIO_TO_REPORT" and len(arguments) == 1:
        value = t.number(arguments[0])
        return f"({value} / NULLIF(SUM({value}) OVER ({over}), 0))", NUMBER
    function = _ANALYTIC.get(name) or (FUNCTIONS.get(name) if name not in _NOT_OVER else None)
    if function is None or not function.least <= len(arguments) <= function.most:
        raise UntranslatableError(f"{name} with OVER has no translation")
    sql, fact = function.rule(t, arguments)
    if name in ("STDDEV", "VARIANCE"):
        value = t.number(arguments[0])
        one = f"COUNT({value}) OVER ({over}) = 1"
        return f"(CASE WHEN {one} THEN 0 ELSE {name}({value}) OVER ({over}) END)", fact
    if sql.startswith("CAST("):
        raise UntranslatableError(f"{name} with OVER has no translation")
    return over_window(sql, over), fact


def _whole_partition(t: Translator, inner: exp.Expr, partition: Sequence[exp.Expr]) -> Translated:
    """Translate LISTAGG or KEEP with OVER; both aggregate all rows of the partition."""
    by = f"PARTITION BY {', '.join(map(t.sql, partition))} " if partition else ""
    if isinstance(inner, exp.Window):
        value, keys = _kept_first(t, inner)
        ordered = f"{by}ORDER BY {', '.join(keys)} {_ALL_ROWS}"
        return f"FIRST_VALUE({t.sql(value)}) OVER ({ordered})", t.fact(value)._replace(filled=False)
    value, order, between = _list_parts(t, inner)
    if isinstance(value, exp.Distinct):
        raise UntranslatableError("LISTAGG with DISTINCT and OVER")
    called = f"STRING_AGG({t.text(value)}, {between})"
    return t.nonempty(f"{called} OVER ({by}{order} {_ALL_ROWS})".replace("( ", "("))


def _share_of_partition(
    t: Translator, inner: exp.WithinGroup, partition: Sequence[exp.Expr]
) -> Translated:
    """Translate PERCENTILE_CONT or PERCENTILE_DISC with OVER (PARTITION BY …), which PostgreSQL
    does not have.
    """
    name, argument, key = _share(t, inner)
    down = " DESC" if inner.expression.expressions[0].args.get("desc") else ""
    share = t.number(argument)
    if name == "PERCENTILE_CONT":
        return _between(t, key, down, share, partition), NUMBER
    sorted_values, count = _sorted_values(t, t.sql(key), down, partition)
    place = f"CAST(GREATEST(CEIL({share} * {count}), 1) AS INT)"
    found = f"({sorted_values})[{place}]"
    found = in_own_order(found) if t.is_text(key) else found
    return found, t.fact(key)._replace(filled=False)


def _interpolated(t: Translator, value: exp.Expr, down: str, share: str) -> Translated:
    """Translate PERCENTILE_CONT of a group. PostgreSQL's function calculates with double precision,
    which keeps only 15 digits of a NUMBER.
    """
    if t.kind(value) is ValueKind.FLOAT:
        place = f"CAST({share} AS DOUBLE PRECISION)"
        return f"PERCENTILE_CONT({place}) WITHIN GROUP (ORDER BY {t.sql(value)}{down})", FLOAT
    number = t.number(value)
    values = f"ARRAY_AGG({number} ORDER BY {number}{down}) FILTER (WHERE {number} IS NOT NULL)"
    return _at_share(values, f"COUNT({number})", share), NUMBER


def _between(
    t: Translator, value: exp.Expr, down: str, share: str, partition: Sequence[exp.Expr]
) -> str:
    """Return SQL for PERCENTILE_CONT over a partition: the percentile, interpolated between two
    values if needed.
    """
    return _at_share(*_sorted_values(t, t.number(value), down, partition), share)


def _at_share(sorted_values: str, count: str, share: str) -> str:
    place = f"({share} * ({count} - 1))"
    below = f"({sorted_values})[CAST(FLOOR({place}) AS INT) + 1]"
    above = f"({sorted_values})[CAST(CEIL({place}) AS INT) + 1]"
    return f"({below} + ({above} - {below}) * ({place} - FLOOR({place})))"


def _sorted_values(
    t: Translator, value: str, down: str, partition: Sequence[exp.Expr]
) -> tuple[str, str]:
    """Return SQL for the sorted array of a partition's values, and SQL for the array's length.

    The array replaces PERCENTILE_CONT, which PostgreSQL does not allow as a window function.
    """
    by = f"PARTITION BY {', '.join(map(t.sql, partition))}" if partition else ""
    window = f"{by} ORDER BY {value}{down} {_ALL_ROWS}".lstrip()
    filled = f"FILTER (WHERE {value} IS NOT NULL)"
    return f"ARRAY_AGG({value}) {filled} OVER ({window})", f"COUNT({value}) OVER ({by})"


def _ignoring(node: exp.Expr) -> tuple[exp.Expr, bool]:
    """Return (the call without IGNORE NULLS or RESPECT NULLS, whether it had IGNORE NULLS)."""
    ignores = isinstance(node, exp.IgnoreNulls)
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    if isinstance(node, exp.Anonymous):
        for argument in list(node.expressions):
            if isinstance(argument, exp.IgnoreNulls | exp.RespectNulls):
                ignores = ignores or isinstance(argument, exp.IgnoreNulls)
                argument.replace(argument.this)
    return node, ignores


def _over(
    t: Translator, partition: Sequence[exp.Expr], order: exp.Expr | None, spec: exp.Expr | None
) -> str:
    parts = [f"PARTITION BY {', '.join(map(t.sql, partition))}"] if partition else []
    if order is not None:
        parts.append(t.sql(order))
    if spec is not None:
        _offsets_of_days(t, order, spec)
        parts.append(t.sql(spec))
    return " ".join(parts)


def _offsets_of_days(t: Translator, order: exp.Expr | None, spec: exp.Expr) -> None:
    """Convert numbers in a RANGE frame to intervals of days if the window is ordered by dates."""
    if spec.args.get("kind") != "RANGE" or order is None:
        return
    by_date = t.is_moment(order.expressions[0].this)
    for side in ("start", "end"):
        value = spec.args.get(side)
        if by_date and isinstance(value, exp.Expr) and t.is_number(value):
            spec.set(side, t.raw(f"({t.sql(value)} * INTERVAL '1 day')", Fact(ValueKind.INTERVAL)))


_ALL_ROWS: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_BEFORE: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
_BEHIND: Final = "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING"


def _not_null(
    t: Translator,
    name: str,
    arguments: Sequence[exp.Expr],
    window: tuple[Sequence[exp.Expr], exp.Expr | None, exp.Expr | None],
) -> Translated:
    """Translate a call with IGNORE NULLS, which PostgreSQL does not have: take the value from an
    array of the frame's values that are not NULL.
    """
    partition, order, spec = window
    value = arguments[0]
    sql, fact = t.sql(value), t.fact(value)._replace(filled=False)
    over = _over(t, partition, order, spec)
    if name in ("LAG", "LEAD"):
        if len(arguments) > 1:
            raise UntranslatableError(f"{name} with IGNORE NULLS and an offset or a default")
        over = f"{_over(t, partition, order, None)} {_BEFORE if name == 'LAG' else _BEHIND}"
    values = f"ARRAY_AGG({sql}) FILTER (WHERE {sql} IS NOT NULL) OVER ({over})"
    if name in ("FIRST_VALUE", "LEAD"):
        return f"({values})[1]", fact
    if name in ("LAST_VALUE", "LAG"):
        return f"({values})[ARRAY_LENGTH({values}, 1)]", fact
    raise UntranslatableError(f"{name} with IGNORE NULLS")


def _keep(t: Translator, node: exp.Expr) -> Translated:
    """Translate KEEP (DENSE_RANK FIRST or LAST): aggregate only the rows of the first or last
    rank.
    """
    call, order = node.this, node.args.get("order")
    name = call.name.upper() if isinstance(call, exp.Anonymous) else ""
    if name in ("SUM", "COUNT", "AVG") and order is not None:
        return _keep_rows(t, call, order, is_first=_is_first(node))
    value, keys = _kept_first(t, node)
    found = f"(ARRAY_AGG({t.sql(value)} ORDER BY {', '.join(keys)}))[1]"
    return found, t.fact(value)._replace(filled=False)


def _is_first(node: exp.Expr) -> bool:
    alias, is_first = node.args.get("alias"), node.args.get("first")
    if alias is None or alias.name.upper() != "DENSE_RANK":
        raise UntranslatableError("KEEP without DENSE_RANK")
    return bool(is_first)


def _kept_first(t: Translator, node: exp.Expr) -> tuple[exp.Expr, list[str]]:
    """Return the argument of MIN or MAX with KEEP, and the sort keys by which the result is the
    first value.
    """
    call, order, is_first = node.this, node.args.get("order"), _is_first(node)
    name = call.name.upper() if isinstance(call, exp.Anonymous) else ""
    if name not in ("MIN", "MAX") or order is None or node.args.get("over") != "KEEP":
        raise UntranslatableError(f"{name or 'a function'} with KEEP: rewrite it with a subquery")
    value = call.expressions[0]
    keys = [_key(t, one, turned=not is_first) for one in order.expressions]
    own = t.ordered(t.sql(value), value)
    return value, [*keys, f"{own}{' DESC' if name == 'MAX' else ''} NULLS LAST"]


def _keep_rows(t: Translator, call: exp.Expr, order: exp.Expr, *, is_first: bool) -> Translated:
    """Translate SUM, COUNT or AVG with KEEP: collect the group's values and sort keys in arrays,
    and aggregate the values of the first rank.
    """
    _, fact = FUNCTIONS[call.name.upper()].rule(t, call.expressions)  # raises if it is not a number
    name, value = call.name.upper(), call.expressions[0]
    if isinstance(value, exp.Distinct):
        raise UntranslatableError(f"{name} with DISTINCT and KEEP")
    keys = [t.sql(one.this) for one in order.expressions]
    # For COUNT(*), collect a value that depends on a column: with a constant, PostgreSQL would not
    # take the array for an aggregate of the surrounding query.
    shown = f"({keys[0]}) IS NULL" if isinstance(value, exp.Star) else t.sql(value)
    names = [f'"k{number}"' for number in range(len(keys))]
    by = ", ".join(
        own + _key(t, one, turned=not is_first).removeprefix(key)
        for own, key, one in zip(names, keys, order.expressions, strict=True)
    )
    arrays = ", ".join(f"ARRAY_AGG({one})" for one in (shown, *keys))
    rows = f'UNNEST({arrays}) AS "kept" ("value", {", ".join(names)})'
    ranked = f'SELECT "value", RANK() OVER (ORDER BY {by}) AS "rank" FROM {rows}'  # noqa: S608
    return f'(SELECT {name}("value") FROM ({ranked}) AS "ranked" WHERE "rank" = 1)', fact  # noqa: S608


def _key(t: Translator, ordered: exp.Expr, *, turned: bool) -> str:
    down = bool(ordered.args.get("desc")) is not turned
    first = bool(ordered.args.get("nulls_first")) is not turned
    return f"{t.sql(ordered.this)}{' DESC' if down else ''} NULLS {'FIRST' if first else 'LAST'}"


_HYPOTHETICAL: Final = {
    **dict.fromkeys(("RANK", "DENSE_RANK"), _COUNTED),
    **dict.fromkeys(("PERCENT_RANK", "CUME_DIST"), FLOAT),
}


def _hypothetical(
    t: Translator, name: str, values: Sequence[exp.Expr], order: exp.Expr
) -> Translated:
    """Translate a hypothetical-set function: it returns the rank that a row with these values would
    have.
    """
    pairs = list(zip(values, order.expressions, strict=True))
    for value, key in pairs:
        kinds = {t.kind(value), t.kind(key.this)}
        if len(kinds) > 1 and not kinds <= NUMBERS and not kinds <= TEXTS:
            raise UntranslatableError(
                f"{name} of a value whose type differs from that of its ORDER BY"
            )
    given = ", ".join(t.sql(value) for value, _ in pairs)
    return f"{name}({given}) WITHIN GROUP ({t.sql(order)})", _HYPOTHETICAL[name]


def _within_group(t: Translator, node: exp.Expr) -> Translated:
    call, order = node.this, node.expression
    name = call.name.upper() if isinstance(call, exp.Anonymous) else ""
    if name in _HYPOTHETICAL and len(order.expressions) == len(call.expressions):
        return _hypothetical(t, name, call.expressions, order)
    name, argument, key = _share(t, node)
    fact = t.fact(key)
    if name == "PERCENTILE_CONT":
        down = " DESC" if order.expressions[0].args.get("desc") else ""
        return _interpolated(t, key, down, t.number(argument))
    share = f"CAST({t.number(argument)} AS DOUBLE PRECISION)"
    found = f"{name}({share}) WITHIN GROUP ({t.sql(order)})"
    return in_own_order(found) if t.is_text(key) else found, fact._replace(filled=False)


def _share(t: Translator, node: exp.Expr) -> tuple[str, exp.Expr, exp.Expr]:
    """Return the name PERCENTILE_CONT or PERCENTILE_DISC of a call, its fraction, and its sort
    expression.
    """
    call, order = node.this, node.expression
    name = call.name.upper() if isinstance(call, exp.Anonymous) else ""
    if name not in ("PERCENTILE_CONT", "PERCENTILE_DISC") or len(order.expressions) != 1:
        raise UntranslatableError(f"{name or 'a function'} WITHIN GROUP has no translation")
    key = order.expressions[0].this
    if name == "PERCENTILE_CONT" and not t.is_number(key):
        raise UntranslatableError("PERCENTILE_CONT of a value that is not a number")
    return name, call.expressions[0], key


def _listed(t: Translator, node: exp.Expr) -> Translated:
    """Translate LISTAGG."""
    listed, order, between = _list_parts(t, node)
    distinct, value = _bare(listed)
    order = f" {order}" if order else ""
    if distinct:  # PostgreSQL sorts distinct values only by the value itself
        shown = in_byte_order(f"CAST({t.text(value)} AS TEXT)")
        order = order.replace(in_byte_order(t.sql(value)), shown)
        found, fact = t.nonempty(f"STRING_AGG(DISTINCT {shown}, {between}{order})")
        return in_own_order(found), fact
    return t.nonempty(f"STRING_AGG({t.text(value)}, {between}{order})")


def _list_parts(t: Translator, node: exp.Expr) -> tuple[exp.Expr, str, str]:
    """Return the value that LISTAGG joins, its sort order, and its separator."""
    this, order = node.this, ""
    if isinstance(this, exp.Order):
        parts = ", ".join(t.sql(one) for one in this.expressions)
        order, this = f"ORDER BY {parts}", this.this
    separator = node.args.get("separator")
    between = "''" if separator is None or t.is_null(separator) else t.text(separator)
    return this, order, between


def sort_key(t: Translator, node: exp.Ordered) -> None:
    """Let texts be sorted by their bytes, as with NLS_SORT=BINARY, not by the collation of the
    target database.
    """
    if t.is_text(node.this):
        node.set("this", t.raw(in_byte_order(t.sql(node.this)), t.fact(node.this)))


NODES: Final[dict[type[exp.Expr], NodeRule]] = {
    exp.Window: _window,
    exp.WithinGroup: _within_group,
    exp.GroupConcat: _listed,
}
