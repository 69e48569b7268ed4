"""Operators and functions of text, and the general ones.

An empty text is NULL to Oracle: what may come out empty is made NULL, and an empty literal is one
(Oracle SQL Language Reference, “Nulls”, “Concatenation Operator”, “Character Functions”).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from olr_pg.schema.translating import UntranslatableError, argument_in, constant
from olr_pg.schema.value_kinds import INTEGER, NUMBERS, TEXT, TEXTS, Fact, ValueKind

if TYPE_CHECKING:
    from olr_pg.schema.translating import Handler, Translator

_CAST_NAMES: Final = {
    exp.DataType.Type.DATE: ("TIMESTAMP(0)", ValueKind.DATE),
    exp.DataType.Type.FLOAT: ("DOUBLE PRECISION", ValueKind.FLOAT),
    exp.DataType.Type.DOUBLE: ("DOUBLE PRECISION", ValueKind.FLOAT),
    exp.DataType.Type.INT: ("NUMERIC(38, 0)", ValueKind.INTEGER),
    exp.DataType.Type.SMALLINT: ("NUMERIC(38, 0)", ValueKind.INTEGER),
}
_CASTS_KEPT: Final = {
    exp.DataType.Type.DECIMAL: ValueKind.NUMBER,
    exp.DataType.Type.VARCHAR: ValueKind.TEXT,
    exp.DataType.Type.NVARCHAR: ValueKind.TEXT,
    exp.DataType.Type.CHAR: ValueKind.CHAR,
    exp.DataType.Type.NCHAR: ValueKind.CHAR,
    exp.DataType.Type.TIMESTAMP: ValueKind.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: ValueKind.TIMESTAMPTZ,
    exp.DataType.Type.TEXT: ValueKind.TEXT,
}


def _literal(t: Translator, node: exp.Expr) -> tuple[str, Fact] | None:
    return ("NULL", TEXT) if node.args.get("is_string") and node.name == "" else None


def _national(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    text = str(node.name)
    if not text:
        return "NULL", TEXT
    return "'" + text.replace("'", "''") + "'", Fact(ValueKind.TEXT, filled=True)


def _concatenate(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    operands = [node.this, node.expression]
    facts = [t.fact(one) for one in operands]
    texts = [
        t.text(one) if fact.filled else f"COALESCE({t.text(one)}, '')"
        for one, fact in zip(operands, facts, strict=True)
        if not _is_null(one)
    ]
    if not texts:
        return "NULL", TEXT
    joined = texts[0] if len(texts) == 1 else f"({' || '.join(texts)})"
    return t.nonempty(joined, filled=any(fact.filled for fact in facts))


def _is_null(node: exp.Expr) -> bool:
    return isinstance(node, exp.Null) or (isinstance(node, exp.Var) and node.name == "NULL")


def _concat(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    parts = [exp.Var(this=t.text(one)) for one in node.expressions]
    for part, one in zip(parts, node.expressions, strict=True):
        t.note(part, Fact(ValueKind.TEXT, filled=t.fact(one).filled))
    sql, fact = _concatenate(t, exp.DPipe(this=parts[0], expression=parts[1]))
    for part in parts[2:]:
        both = exp.DPipe(this=t.raw(sql, fact), expression=part)
        sql, fact = _concatenate(t, both)
    return sql, fact


def _substring(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    text, start, length = t.text(node.this), node.args["start"], node.args.get("length")
    place = t.whole(start)
    if place is None:
        at = t.sql(start)
        behind = f"NULLIF(GREATEST(LENGTH({text}) + {at} + 1, 0), 0)"
        begin = f"CAST(CASE WHEN {at} > 0 THEN {at} WHEN {at} = 0 THEN 1 ELSE {behind} END AS INT)"
    elif place < 0:
        begin = f"NULLIF(GREATEST(LENGTH({text}) - {-place - 1}, 0), 0)"
    else:
        begin = str(max(place, 1))
    if length is None:
        return t.nonempty(f"SUBSTR({text}, {begin})")
    many = t.whole(length)
    count = str(max(many, 0)) if many is not None else f"CAST(GREATEST({t.sql(length)}, 0) AS INT)"
    return t.nonempty(f"SUBSTR({text}, {begin}, {count})")


def _position(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    text, wanted = t.text(node.this), t.text(node.args["substr"])
    place, occurrence = node.args.get("position"), node.args.get("occurrence")
    if occurrence is not None and t.whole(occurrence) != 1:
        raise UntranslatableError("INSTR of another than the first occurrence")
    if place is None or t.whole(place) == 1:
        return f"STRPOS({text}, {wanted})", INTEGER
    start = t.whole(place)
    if start is None or start < 1:
        raise UntranslatableError("INSTR that begins at no fixed place, or from the end")
    found = f"STRPOS(SUBSTR({text}, {start}), {wanted})"
    return f"(CASE WHEN {found} = 0 THEN 0 ELSE {found} + {start - 1} END)", INTEGER


def _case(name: str) -> Handler:
    def translate(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
        return f"{name}({t.text(node.this)})", Fact(ValueKind.TEXT, filled=t.fact(node.this).filled)

    return translate


def _pad(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    name = "LPAD" if node.args.get("is_left") else "RPAD"
    fill = node.args.get("fill_pattern")
    parts = [t.text(node.this), f"CAST({t.sql(node.expression)} AS INT)"]
    if fill is not None:
        parts.append(t.text(fill))
    return t.nonempty(f"{name}({', '.join(parts)})")


def _trim(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    names = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}
    name = names.get(str(node.args.get("position") or "").upper(), "BTRIM")
    what = node.args.get("expression")
    parts = [t.text(node.this), *([t.text(what)] if what is not None else [])]
    return t.nonempty(f"{name}({', '.join(parts)})")


def _replace(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    text, what = t.text(node.this), node.expression
    new = node.args.get("replacement")
    by = "''" if new is None or _is_null(new) else f"COALESCE({t.text(new)}, '')"
    if new is not None and t.fact(new).filled:
        by = t.text(new)
    wanted = t.text(what)
    if t.fact(what).filled:
        return t.nonempty(f"REPLACE({text}, {wanted}, {by})")
    # Where nothing is looked for, Oracle changes nothing.
    call = f"CASE WHEN {wanted} IS NULL THEN {text} ELSE REPLACE({text}, {wanted}, {by}) END"
    return t.nonempty(f"({call})")


def _translate(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    parts = (t.text(node.this), t.text(node.args["from_"]), t.text(node.args["to"]))
    return t.nonempty(f"TRANSLATE({', '.join(parts)})")


def _like(t: Translator, node: exp.Expr) -> tuple[str, Fact] | None:
    """Oracle has no escape character unless one is told."""
    if isinstance(node.parent, exp.Escape):
        return None
    left, right = t.text(node.this), t.text(node.expression)
    escape = " ESCAPE ''" if "\\" in right else ""
    return f"({left} LIKE {right}{escape})", Fact(ValueKind.BOOLEAN)


def _pattern(t: Translator, node: exp.Expr) -> str:
    """Return the pattern: in Oracle a dot is no line break."""
    pattern = t.literal(node.expression)
    if pattern is None:
        return t.text(node.expression)
    quoted = pattern.replace("'", "''")
    return f"'(?p){quoted}'" if "." in pattern or "[^" in pattern else f"'{quoted}'"


def _regexp_like(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    flags = t.literal(node.args.get("flag")) or ""
    if set(flags) - set("ic") or (node.args.get("flag") is not None and not flags):
        raise UntranslatableError(f"REGEXP_LIKE with the flags {flags or 'of an expression'}")
    operator = "~*" if flags.endswith("i") else "~"
    return f"({t.text(node.this)} {operator} {_pattern(t, node)})", Fact(ValueKind.BOOLEAN)


def _regexp(name: str, fact: Fact, *more: str) -> Handler:
    def translate(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
        parts = [t.text(node.this), _pattern(t, node)]
        for key in more:
            value = node.args.get(key)
            if value is None:
                break
            parts.append(t.sql(value))
        known = {"this", "expression", *more}
        rest = [key for key, value in node.args.items() if value is not None and key not in known]
        if rest:
            raise UntranslatableError(f"{name} with {', '.join(rest)}")
        call = f"{name}({', '.join(parts)})"
        return t.nonempty(call) if fact is TEXT else (call, fact)

    return translate


def _regexp_replace(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    rest = set(node.args) - {"this", "expression", "replacement", "single_replace"}
    if any(node.args.get(key) is not None for key in rest):
        raise UntranslatableError("REGEXP_REPLACE with a place, an occurrence or flags")
    new = node.args.get("replacement")
    by = "''" if new is None or _is_null(new) else t.text(new)
    return t.nonempty(f"REGEXP_REPLACE({t.text(node.this)}, {_pattern(t, node)}, {by}, 'g')")


def _character(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    return f"CHR(CAST({t.sql(node.expressions[0])} AS INT))", Fact(ValueKind.TEXT, filled=True)


def _aggregate_text(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    this, order = node.this, ""
    if isinstance(this, exp.Order):
        parts = ", ".join(t.sql(one) for one in this.expressions)
        order, this = f" ORDER BY {parts}", this.this
    separator = node.args.get("separator")
    between = "''" if separator is None or _is_null(separator) else t.text(separator)
    return t.nonempty(f"STRING_AGG({t.text(this)}, {between}{order})")


def _nvl2(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    yes, no = node.args["true"], node.args.get("false")
    fact = t.fact(yes)
    other = t.sql(no) if no is not None else "NULL"
    return f"(CASE WHEN {t.sql(node.this)} IS NOT NULL THEN {t.sql(yes)} ELSE {other} END)", Fact(
        fact.kind
    )


def _coalesce(t: Translator, node: exp.Expr) -> tuple[str, Fact] | None:
    """NVL takes the type of its first value."""
    values = [node.this, *node.expressions]
    facts = [t.fact(one) for one in values]
    if facts[0].kind not in TEXTS or all(fact.kind in TEXTS for fact in facts):
        return None
    texts = ", ".join(t.text(one) for one in values)
    return f"COALESCE({texts})", Fact(ValueKind.TEXT, filled=any(fact.filled for fact in facts))


def _decode(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    """Compare one by one; a NULL that is looked for is found."""
    value, *rest = node.expressions
    looked = t.sql(value)
    results = [rest[at] for at in range(1, len(rest), 2)] + ([rest[-1]] if len(rest) % 2 else [])
    kinds = {t.fact(one).kind for one in results if not _is_null(one)}
    as_text = bool(kinds & TEXTS) and bool(kinds & NUMBERS)
    branches = []
    for at in range(0, len(rest) - 1, 2):
        wanted = rest[at]
        if _is_null(wanted):
            test = f"{looked} IS NULL"
        elif isinstance(wanted, exp.Literal):
            test = f"{looked} = {t.sql(wanted)}"
        else:
            test = f"{looked} IS NOT DISTINCT FROM {t.sql(wanted)}"
        result = t.text(rest[at + 1]) if as_text else t.sql(rest[at + 1])
        branches.append(f"WHEN {test} THEN {result}")
    default = "NULL"
    if len(rest) % 2:
        default = t.text(rest[-1]) if as_text else t.sql(rest[-1])
    fact = Fact(ValueKind.TEXT) if as_text else t.fact(results[0])._replace(filled=False)
    return f"(CASE {' '.join(branches)} ELSE {default} END)", fact


def _cast(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    to = node.args["to"]
    found = _CAST_NAMES.get(to.this)
    if found is not None:
        return f"CAST({t.sql(node.this)} AS {found[0]})", Fact(found[1])
    kind = _CASTS_KEPT.get(to.this)
    if kind is None:
        raise UntranslatableError(f"CAST to {to.sql(dialect='oracle')}")
    value = t.text(node.this) if kind is ValueKind.TEXT else t.sql(node.this)
    name = to.sql(dialect="postgres")
    length = t.whole(to.expressions[0].this) if kind is ValueKind.CHAR and to.expressions else 0
    return f"CAST({value} AS {name})", Fact(kind, length or 0)


def _context(t: Translator, node: exp.Expr) -> tuple[str, Fact]:
    names = [(t.literal(one) or "").upper() for one in node.expressions]
    found = _CONTEXT.get(names[1]) if len(names) == 2 and names[0] == "USERENV" else None
    if found is None:
        raise UntranslatableError(f"SYS_CONTEXT of {', '.join(names)}")
    return found, TEXT


_CONTEXT: Final = {
    "SESSION_USER": "UPPER(CAST(SESSION_USER AS TEXT))",
    "CURRENT_USER": "UPPER(CAST(CURRENT_USER AS TEXT))",
    "CURRENT_SCHEMA": "UPPER(CAST(CURRENT_SCHEMA AS TEXT))",
    "DB_NAME": "UPPER(CAST(CURRENT_DATABASE() AS TEXT))",
    "IP_ADDRESS": "HOST(INET_CLIENT_ADDR())",
}


def _text_in(template: str, fact: Fact) -> Handler:
    """Translate a function of one text into PostgreSQL's: ``{}`` stands for the text."""
    return lambda t, node: (
        template.format(
            t.text(node.expressions[0] if isinstance(node, exp.Anonymous) else node.this)
        ),
        fact,
    )


HANDLERS: Final[dict[type[exp.Expr], Handler]] = {
    exp.Literal: _literal,
    exp.National: _national,
    exp.RawString: _national,
    exp.DPipe: _concatenate,
    exp.Concat: _concat,
    exp.Substring: _substring,
    exp.StrPosition: _position,
    exp.Length: _text_in("LENGTH({})", INTEGER),
    exp.Upper: _case("UPPER"),
    exp.Lower: _case("LOWER"),
    exp.Initcap: _case("INITCAP"),
    exp.Pad: _pad,
    exp.Trim: _trim,
    exp.Replace: _replace,
    exp.Translate: _translate,
    exp.Like: _like,
    exp.RegexpLike: _regexp_like,
    exp.RegexpSubstr: _regexp("REGEXP_SUBSTR", TEXT, "position", "occurrence"),
    exp.RegexpInstr: _regexp("REGEXP_INSTR", INTEGER, "position", "occurrence"),
    exp.RegexpCount: _regexp("REGEXP_COUNT", INTEGER, "position"),
    exp.RegexpReplace: _regexp_replace,
    exp.Chr: _character,
    exp.Ascii: _text_in("ASCII({})", INTEGER),
    exp.GroupConcat: _aggregate_text,
    exp.Nvl2: _nvl2,
    exp.Coalesce: _coalesce,
    exp.DecodeCase: _decode,
    exp.Cast: _cast,
}
BY_NAME: Final[dict[str, Handler]] = {
    "LENGTHB": _text_in("OCTET_LENGTH({})", INTEGER),
    "SYS_CONTEXT": _context,
    "LNNVL": argument_in("(({}) IS NOT TRUE)", Fact(ValueKind.BOOLEAN)),
    "TO_CLOB": _text_in("CAST({} AS TEXT)", TEXT),
    "TO_NCHAR": _text_in("CAST({} AS TEXT)", TEXT),
    "TO_NCLOB": _text_in("CAST({} AS TEXT)", TEXT),
    "EMPTY_CLOB": constant("CAST('' AS TEXT)", TEXT),
}
