"""Translates operators and functions of text, regular expressions, and functions for values of any
type.

An empty text is NULL in Oracle. A result that can be empty is converted to NULL, and an empty
literal is NULL (Oracle SQL Language Reference, “Nulls”, “Concatenation Operator”, “Character
Functions”). Oracle truncates positions and lengths to integers.

Regular expressions (Oracle SQL Language Reference, “Oracle Regular Expression Support”): since
version 15, PostgreSQL has functions of the same names, with the same arguments in the same order.
But the patterns differ. In Oracle, a dot does not match a line break, a backslash before a letter
without a special meaning stands for that letter, and a backslash within brackets stands for itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from olr_pg.schema.comparisons import equal
from olr_pg.schema.functions.number_functions import NUMERAL
from olr_pg.schema.translating import (
    NLS_TEXT,
    Function,
    UntranslatableError,
    constant,
    failing,
    is_numeral,
    of_numbers,
    of_text,
    string_literal,
)
from olr_pg.schema.value_kinds import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    MOMENTS,
    NOTHING,
    NUMBER,
    NUMBERS,
    RAW,
    SINGLE,
    TEXT,
    TIMESTAMP,
    Fact,
    ValueKind,
    literal_fact,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.schema.translating import CallRule, NodeRule, Translated, Translator

_MOST: Final = 255
"""The maximum number of arguments of any function of Oracle."""

_UNIT: Final = re.compile(r"\\(?:\\|([0-9A-Fa-f]{4}))")
_SETTING: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'")
_AT: Final = '"instr at"'


def _literal(t: Translator, node: exp.Expr) -> Translated | None:
    text = str(node.name)
    if not node.args.get("is_string"):
        whole = text.isdigit()
        t.note(node, Fact(ValueKind.INTEGER if whole else ValueKind.NUMBER, filled=True))
        return None
    if "\\" in text or not text:
        quoted = text.replace("'", "''")
        return (f"'{quoted}'" if text else "NULL"), literal_fact(text)
    t.note(node, literal_fact(text))
    return None


def _concatenation(t: Translator, node: exp.Expr) -> Translated:
    return concatenated(t, [node.this, node.expression])


def concatenated(t: Translator, operands: Sequence[exp.Expr]) -> Translated:
    """Translate ``||``. A NULL operand counts as an empty text."""
    present = [one for one in operands if not t.is_null(one)]
    texts = [
        t.text(one) if t.fact(one).filled else f"COALESCE({t.text(one)}, '')" for one in present
    ]
    if not texts:
        return "NULL", NOTHING
    joined = texts[0] if len(texts) == 1 else f"({' || '.join(texts)})"
    return t.nonempty(joined, filled=any(t.fact(one).filled for one in present))


def _substring(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    text, start = t.text(arguments[0]), arguments[1]
    place = t.whole(start)
    if place is None:
        at = f"TRUNC({t.number(start)})"
        behind = f"NULLIF(GREATEST(LENGTH({text}) + {at} + 1, 0), 0)"
        begin = f"CAST(CASE WHEN {at} > 0 THEN {at} WHEN {at} = 0 THEN 1 ELSE {behind} END AS INT)"
    elif place < 0:
        begin = f"NULLIF(GREATEST(LENGTH({text}) - {-place - 1}, 0), 0)"
    else:
        begin = str(max(place, 1))
    if len(arguments) < 3:
        return t.nonempty(f"SUBSTR({text}, {begin})")
    many = t.whole(arguments[2])
    count = str(max(many, 0)) if many is not None else f"GREATEST({t.integer(arguments[2])}, 0)"
    return t.nonempty(f"SUBSTR({text}, {begin}, {count})")


def _position(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate INSTR: find the nth occurrence from a position on; if the position is negative,
    search backwards, and count the position from the end.
    """
    text, wanted = t.text(arguments[0]), t.text(arguments[1])
    place = 1 if len(arguments) < 3 else t.whole(arguments[2])
    nth = 1 if len(arguments) < 4 else t.whole(arguments[3])
    if place == 1 and nth == 1:
        return f"STRPOS({text}, {wanted})", INTEGER
    start = str(place) if place is not None else t.integer(arguments[2])
    many = str(nth) if nth is not None else t.integer(arguments[3])
    # Occurrences may overlap, so check every position.
    begin = f"CASE WHEN {start} > 0 THEN {start} ELSE LENGTH({text}) + {start} + 1 END"
    step = f"CASE WHEN {start} > 0 THEN {_AT} >= {begin} ELSE {_AT} <= {begin} END"
    order = f"CASE WHEN {start} > 0 THEN {_AT} ELSE -{_AT} END"
    if place is not None:
        begin = str(place) if place > 0 else f"LENGTH({text}) - {-place - 1}"
        step = f"{_AT} >= {begin}" if place > 0 else f"{_AT} <= {begin}"
        order = _AT if place > 0 else f"{_AT} DESC"
    known = f"{text} IS NOT NULL AND {wanted} IS NOT NULL"
    if place == 0:
        return f"(CASE WHEN {known} THEN 0 END)", INTEGER
    places = (
        f"SELECT {_AT}"  # noqa: S608 - translated
        f" FROM GENERATE_SERIES(1, LENGTH({text})) AS {_AT} WHERE {step}"
        f" AND SUBSTR({text}, {_AT}, LENGTH({wanted})) = {wanted}"
        f" ORDER BY {order} LIMIT 1 OFFSET {many} - 1"
    )
    return f"(CASE WHEN {known} THEN COALESCE(({places}), 0) END)", INTEGER


def _case(name: str) -> CallRule:
    """Return the rule for a function such as UPPER. If the function's argument is a CHAR, its
    result is a CHAR of the same length.
    """

    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        fact = t.fact(arguments[0])
        kind = fact.kind if fact.kind is ValueKind.CHAR else ValueKind.TEXT
        made = Fact(kind, fact.length, fact.filled, exact=kind is ValueKind.CHAR)
        return f"{name}({t.text(arguments[0])})", made

    return translate


def _pad(name: str) -> CallRule:
    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        parts = [t.text(arguments[0]), t.integer(arguments[1]), *map(t.text, arguments[2:])]
        return t.nonempty(f"{name}({', '.join(parts)})")

    return translate


def _strip(name: str) -> CallRule:
    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        return t.nonempty(f"{name}({', '.join(map(t.text, arguments))})")

    return translate


def _trim(t: Translator, node: exp.Expr) -> Translated:
    names = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}
    name = names.get(str(node.args.get("position") or "").upper(), "BTRIM")
    what = node.args.get("expression")
    parts = [t.text(node.this), *([t.text(what)] if what is not None else [])]
    return t.nonempty(f"{name}({', '.join(parts)})")


def _replace(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    text, wanted = t.text(arguments[0]), t.text(arguments[1])
    new = arguments[2] if len(arguments) > 2 else None
    by = "''" if new is None or t.is_null(new) else t.text(new)
    if new is not None and by != "''" and not t.fact(new).filled:
        by = f"COALESCE({by}, '')"
    if t.fact(arguments[1]).filled:
        return t.nonempty(f"REPLACE({text}, {wanted}, {by})")
    # If the search text is NULL, Oracle returns the text unchanged.
    return t.nonempty(
        f"(CASE WHEN {wanted} IS NULL THEN {text} ELSE REPLACE({text}, {wanted}, {by}) END)"
    )


def _character(t: Translator, node: exp.Expr) -> Translated:
    if node.args.get("charset"):
        raise UntranslatableError("CHR with USING")
    (code,) = node.expressions
    number = t.whole(code)
    if number is not None and number > _ASCII:
        return _of_bytes(number)
    if number == 0:
        raise UntranslatableError("CHR(0): PostgreSQL cannot store this character in a text")
    fact = Fact(ValueKind.TEXT, filled=t.fact(code).filled)
    if number is not None:
        return f"CHR({number})", fact
    # Above 127, Oracle takes the number for the bytes of the character, but PostgreSQL for its code
    # point. So the SQL then calls CHR(-1), which is an error.
    given = t.integer(code)
    return f"CHR(CASE WHEN {given} > {_ASCII} THEN -1 ELSE {given} END)", fact


_ASCII: Final = 127


def _of_bytes(number: int) -> Translated:
    """Translate CHR of a number that is a multi-byte code in UTF-8. The meaning of a single byte
    above 127 depends on the source's character set.
    """
    try:
        found = number.to_bytes((number.bit_length() + 7) // 8, "big").decode("utf-8")
    except UnicodeDecodeError:
        raise UntranslatableError(
            f"CHR({number}) depends on the character set of the source: write the character itself"
        ) from None
    return f"'{found}'", Fact(ValueKind.TEXT, filled=True)


def _code(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate the function ASCII. If the character is not ASCII, Oracle returns its bytes as a
    number, and PostgreSQL its code point. The translation returns the bytes in UTF-8. The
    translation computes these bytes, because CONVERT_TO is not IMMUTABLE, and an index or a
    generated column could not use it.
    """
    text = t.text(arguments[0])
    code = f"CAST(ASCII({text}) AS BIGINT)"
    if t.literal(arguments[0]) is not None and text.isascii():
        return code, INTEGER
    last, third = f"({code} & 63)", f"(({code} >> 6) & 63) * 256"
    second = f"(({code} >> 12) & 63) * 65536"
    return (
        f"(CASE WHEN {code} < 128 THEN {code}"
        f" WHEN {code} < 2048 THEN {0xC080} + ({code} >> 6) * 256 + {last}"
        f" WHEN {code} < 65536 THEN {0xE08080} + ({code} >> 12) * 65536 + {third} + {last}"
        f" ELSE {0xF0808080} + ({code} >> 18) * 16777216 + {second} + {third} + {last} END)"
    ), INTEGER


def _lob_length(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate DBMS_LOB.GETLENGTH: characters of a CLOB, bytes of a BLOB."""
    if t.kind(arguments[0]) is ValueKind.RAW:
        return f"OCTET_LENGTH({t.sql(arguments[0])})", INTEGER
    return f"LENGTH({t.text(arguments[0])})", INTEGER


def _lob_part(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate DBMS_LOB.SUBSTR, whose amount comes before its offset."""
    amount = t.whole(arguments[1]) if len(arguments) > 1 else 32767
    offset = t.whole(arguments[2]) if len(arguments) > 2 else 1
    if amount is None or offset is None or amount < 1 or offset < 1:
        raise UntranslatableError("DBMS_LOB.SUBSTR with places that are not positive literals")
    if t.kind(arguments[0]) is ValueKind.RAW:
        return f"SUBSTR({t.sql(arguments[0])}, {offset}, {amount})", RAW
    return t.nonempty(f"SUBSTR({t.text(arguments[0])}, {offset}, {amount})")


_SOUNDS: Final = "TRANSLATE({}, 'AEIOUYHWBFPVCGJKQSXZDTLMNR', '00000000111122222222334556')"


def _soundex(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate SOUNDEX: the first letter, and the codes of the other sounds. Equal sounds with H
    or W between them count once.
    """
    letters = f"REGEXP_REPLACE(UPPER({t.text(arguments[0])}), '[^A-Z]', '', 'g')"
    heard = _SOUNDS.format(f"LEFT({letters}, 1) || TRANSLATE(SUBSTR({letters}, 2), 'HW', '')")
    sounds = f"SUBSTR(REGEXP_REPLACE({heard}, '(.)\\1+', '\\1', 'g'), 2)"
    code = f"RPAD(LEFT({letters}, 1) || REPLACE({sounds}, '0', ''), 4, '0')"
    return f"(CASE WHEN {letters} <> '' THEN {code} END)", TEXT


_NARROW: Final = "".join(map(chr, range(0x20, 0x7F)))
_WIDE: Final = "\u3000" + "".join(chr(code + 0xFEE0) for code in range(0x21, 0x7F))


def _width(before: str, behind: str) -> CallRule:
    """Return the rule for TO_SINGLE_BYTE or TO_MULTI_BYTE."""
    one, other = (text.replace("'", "''") for text in (before, behind))
    return of_text(
        "TRANSLATE({}, '"
        + one.replace("{", "{{").replace("}", "}}")
        + "', '"
        + other.replace("{", "{{").replace("}", "}}")
        + "')",
        TEXT,
    )


def _decompose(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    forms = {"CANONICAL": "NFD", "COMPATIBILITY": "NFKD"}
    form = (
        string_literal(t, arguments[1], "DECOMPOSE with a form").upper()
        if len(arguments) > 1
        else "CANONICAL"
    )
    if form not in forms:
        raise UntranslatableError(f"DECOMPOSE with {form}")
    return f"NORMALIZE({t.text(arguments[0])}, {forms[form]})", TEXT


def _nvl(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate NVL or COALESCE. The result has the type of the first value."""
    texts, fact = t.unified(arguments)
    filled = any(t.fact(one).filled for one in arguments)
    return f"COALESCE({', '.join(texts)})", fact._replace(filled=filled)


def _nvl2(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    value, *results = arguments
    (yes, no), fact = t.unified(results)
    return f"(CASE WHEN {t.sql(value)} IS NOT NULL THEN {yes} ELSE {no} END)", fact


def _nullif(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    one, other = arguments
    fact = t.fact(one)._replace(filled=False)
    return f"(CASE WHEN {equal(t, one, other)} THEN NULL ELSE {t.sql(one)} END)", fact


def _decode(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate DECODE. A NULL value matches a NULL search value. The first search value decides
    how the values are compared, and the first result decides the type of the results: if it is
    NULL, they become texts (Oracle SQL Language Reference, “DECODE”).
    """
    value, *rest = arguments
    results = [rest[at] for at in range(1, len(rest), 2)]
    if len(rest) % 2:
        results.append(rest[-1])
    texts, fact = _texts_if_null_first(t, results)
    searched = [rest[at] for at in range(0, len(rest) - 1, 2)]
    first = next((one for one in searched if not t.is_null(one)), value)
    tests = [_same(t, value, one, first) for one in searched]
    branches = " ".join(
        f"WHEN {test} THEN {text}" for test, text in zip(tests, texts, strict=False)
    )
    default = texts[-1] if len(rest) % 2 else "NULL"
    filled = fact.filled and bool(len(rest) % 2)
    return f"(CASE {branches} ELSE {default} END)", fact._replace(filled=filled)


def _texts_if_null_first(t: Translator, results: Sequence[exp.Expr]) -> tuple[list[str], Fact]:
    if not t.is_null(results[0]) or all(map(t.is_null, results)):
        return t.unified(results)
    other = next(one for one in results if not t.is_null(one))
    if not t.is_text(other) and not t.is_number(other):
        raise UntranslatableError(
            f"DECODE whose first result is NULL converts a {t.kind(other).value} to a text, which"
            f" {NLS_TEXT}: use CASE, or CAST(NULL AS …)"
        )
    texts = ["NULL" if t.is_null(one) else t.text(one) for one in results]
    return texts, TEXT


def _same(t: Translator, value: exp.Expr, wanted: exp.Expr, first: exp.Expr) -> str:
    """Return the condition under which DECODE finds a search value. The value and the search value
    become texts if the first search value is a text (CHAR keeps its blanks), and numbers if it is a
    number.
    """
    if t.is_null(wanted):
        return f"{t.sql(value)} IS NULL"
    if t.is_null(value):
        return f"{t.sql(wanted)} IS NULL"
    if t.is_text(first):
        test = f"{t.text(value)} = {t.text(wanted)}"
    elif t.is_number(first) and t.is_text(value) and t.is_text(wanted):
        test = f"{t.number(value)} = {t.number(wanted)}"
    else:
        test = equal(t, value, wanted)
    if t.fact(wanted).filled or t.fact(value).filled:
        return test
    return f"({test} OR {t.sql(value)} IS NULL AND {t.sql(wanted)} IS NULL)"


def _case_when(t: Translator, node: exp.Expr) -> Translated:
    branches, default = node.args["ifs"], node.args.get("default")
    results = [branch.args["true"] for branch in branches]
    texts, fact = t.unified([*results, *([default] if default is not None else [])], fixed=True)
    value = node.this
    conditions = [
        t.sql(branch.this) if value is None else equal(t, value, branch.this) for branch in branches
    ]
    tests = " ".join(
        f"WHEN {condition} THEN {text}" for condition, text in zip(conditions, texts, strict=False)
    )
    rest = f" ELSE {texts[-1]}" if default is not None else ""
    return f"CASE {tests}{rest} END", fact._replace(filled=fact.filled and default is not None)


def _cast_or_default(t: Translator, value: exp.Expr, to: exp.Expr, default: exp.Expr) -> Translated:
    """Translate CAST … AS NUMBER with DEFAULT … ON CONVERSION ERROR: texts that are not numbers
    become the default.
    """
    if to.this is not exp.DType.DECIMAL or to.expressions or not t.is_text(value):
        raise UntranslatableError("DEFAULT … ON CONVERSION ERROR for a type other than NUMBER")
    text, given = t.text(value), t.literal(value)
    if given is not None and not is_numeral(given):
        # PostgreSQL would cast a literal before it evaluates the condition, so the cast would fail.
        return t.number(default), NUMBER
    numeral = f"WHEN {text} ~ {NUMERAL} THEN CAST({text} AS NUMERIC)"
    return f"(CASE {numeral} WHEN {text} IS NOT NULL THEN {t.number(default)} END)", NUMBER


def _cast(t: Translator, node: exp.Expr) -> Translated:
    to, value = node.args["to"], node.this
    for key in ("format", "action"):
        if node.args.get(key):
            raise UntranslatableError(f"CAST with {key}")
    name = to.this.value if isinstance(to.this, exp.DataType.Type) else str(to.this)
    if node.args.get("default"):
        return _cast_or_default(t, value, to, node.args["default"])
    sizes = [t.whole(one.this) for one in to.expressions]
    if name in ("DATE", "DATETIME"):
        early = t.fact(value).early
        return f"CAST({t.day(value)} AS TIMESTAMP(0))", Fact(ValueKind.DATE, early=early)
    if name == "TIMESTAMP":
        digits = (sizes or [6])[0] or 0
        return (
            f"CAST({t.moment(value)} AS TIMESTAMP({min(digits, 6)}))",
            TIMESTAMP._replace(length=digits, early=t.fact(value).early),
        )
    if name == "DOUBLE":
        return t.binary(value, "DOUBLE PRECISION"), FLOAT
    if name == "FLOAT":
        return t.binary(value, "REAL"), SINGLE
    if name == "DECFLOAT" and not sizes:
        return t.number(value), NUMBER
    if name in ("INT", "SMALLINT", "BIGINT"):
        return f"CAST({t.number(value)} AS NUMERIC(38, 0))", INTEGER
    if name == "DECIMAL":
        listed = ", ".join(map(str, sizes))
        whole = bool(sizes) and (len(sizes) == 1 or sizes[1] == 0)
        typed = f"NUMERIC({listed})" if sizes else "NUMERIC"
        return f"CAST({t.number(value)} AS {typed})", INTEGER if whole else NUMBER
    if name in ("VARCHAR", "NVARCHAR") and sizes:
        return f"CAST({_fitting(t, value, sizes[0])} AS VARCHAR({sizes[0]}))", TEXT
    if name in ("CHAR", "NCHAR"):
        length = (sizes or [1])[0] or 1
        return f"CAST({_fitting(t, value, length)} AS CHAR({length}))", Fact(ValueKind.CHAR, length)
    if name == "TEXT":
        return f"CAST({t.text(value)} AS TEXT)", TEXT
    raise UntranslatableError(f"CAST to {to.sql(dialect='oracle')}")


def _fitting(t: Translator, value: exp.Expr, length: int | None) -> str:
    """Return the value as a text for CAST. Both databases truncate a text that is too long. If a
    value of another type is too long as a text, Oracle reports an error (ORA-25137), but PostgreSQL
    would truncate it.
    """
    text = t.text(value)
    if t.is_text(value) or t.is_null(value):
        return text
    return (
        f"(CASE WHEN LENGTH({text}) > {length} THEN {failing('ORA-25137', text)} ELSE {text} END)"
    )


def _to_char_of_text(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    return f"CAST({t.text(arguments[0])} AS TEXT)", TEXT


def _context(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    names = [(t.literal(one) or "").upper() for one in arguments[:2]]
    found = _CONTEXT.get(names[1]) if names[0] == "USERENV" else None
    if found is not None:
        return found, TEXT
    setting = t.relations.context(names[0])
    if setting and _SETTING.fullmatch(names[1]):
        return t.nonempty(f"CURRENT_SETTING('{setting}.{names[1].lower()}', TRUE)")
    advice = "" if names[0] == "USERENV" else ": map the context to a setting in `apply.contexts`"
    raise UntranslatableError(f"SYS_CONTEXT of {', '.join(names)}{advice}")


_CONTEXT: Final = {
    "SESSION_USER": "UPPER(CAST(SESSION_USER AS TEXT))",
    "CURRENT_USER": "UPPER(CAST(CURRENT_USER AS TEXT))",
    "CURRENT_SCHEMA": "UPPER(CAST(CURRENT_SCHEMA AS TEXT))",
    "DB_NAME": "UPPER(CAST(CURRENT_DATABASE() AS TEXT))",
    "IP_ADDRESS": "HOST(INET_CLIENT_ADDR())",
}


def _size(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate VSIZE of a text: its number of bytes in UTF-8."""
    kind = t.kind(arguments[0])
    if kind in NUMBERS or kind in MOMENTS:
        raise UntranslatableError(f"VSIZE of a {kind.value}: PostgreSQL stores it in another form")
    value = t.sql(arguments[0]) if kind is ValueKind.RAW else t.text(arguments[0])
    return f"OCTET_LENGTH({value})", INTEGER


def _hash(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    method = (
        string_literal(t, arguments[1], "STANDARD_HASH with a method").upper()
        if len(arguments) > 1
        else "SHA1"
    )
    text = f"CONVERT_TO({t.text(arguments[0])}, 'UTF8')"
    if method == "MD5":
        return f"DECODE(MD5({text}), 'hex')", RAW
    if method in ("SHA256", "SHA384", "SHA512"):
        return f"{method}({text})", RAW
    raise UntranslatableError(f"STANDARD_HASH with {method}: PostgreSQL has only MD5 and SHA-2")


def _to_bytes(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    if t.kind(arguments[0]) is not ValueKind.RAW:
        raise UntranslatableError("TO_BLOB of a value that is not RAW")
    return t.sql(arguments[0]), RAW


def _unicode(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate UNISTR, whose argument contains UTF-16 units as a backslash and four hexadecimal
    digits.
    """
    given = t.sql(arguments[0])
    if not _QUOTED.fullmatch(given):
        raise UntranslatableError("UNISTR of a text that is not a literal")
    text = given[1:-1].replace("''", "'")
    units = _UNIT.sub(lambda found: chr(int(found[1] or "5C", 16)), text)
    shown = units.encode("utf-16", "surrogatepass").decode("utf-16").replace("'", "''")
    return f"'{shown}'", TEXT._replace(filled=bool(shown))


NODES: Final[dict[type[exp.Expr], NodeRule]] = {
    exp.Literal: _literal,
    exp.DPipe: _concatenation,
    exp.Trim: _trim,
    exp.Chr: _character,
    exp.Case: _case_when,
    exp.Cast: _cast,
}
FUNCTIONS: Final[dict[str, Function]] = {
    "ASCII": Function(_code),
    "COALESCE": Function(_nvl, 1, _MOST),
    "COMPOSE": Function(of_text("NORMALIZE({}, NFC)", TEXT)),
    "CONCAT": Function(concatenated, 2, _MOST),
    "DBMS_LOB.GETLENGTH": Function(_lob_length),
    "DBMS_LOB.INSTR": Function(_position, 2, 4),
    "DBMS_LOB.SUBSTR": Function(_lob_part, 1, 3),
    "DECOMPOSE": Function(_decompose, 1, 2),
    "DECODE": Function(_decode, 3, _MOST),
    "EMPTY_BLOB": Function(constant("CAST('' AS BYTEA)", RAW), 0, 0),
    "EMPTY_CLOB": Function(constant("CAST('' AS TEXT)", TEXT), 0, 0),
    "HEXTORAW": Function(of_text("DECODE({}, 'hex')", RAW)),
    "INITCAP": Function(_case("INITCAP")),
    "INSTR": Function(_position, 2, 4),
    "LENGTH": Function(of_text("LENGTH({})", INTEGER)),
    "LENGTHB": Function(of_text("OCTET_LENGTH({})", INTEGER)),
    "LNNVL": Function(lambda t, arguments: (f"(({t.sql(arguments[0])}) IS NOT TRUE)", BOOLEAN)),
    "LOWER": Function(_case("LOWER")),
    "LPAD": Function(_pad("LPAD"), 2, 3),
    "LTRIM": Function(_strip("LTRIM"), 1, 2),
    "NCHR": Function(of_numbers("CHR(CAST({} AS INT))", TEXT)),
    "NLS_INITCAP": Function(_case("INITCAP")),
    "NLS_LOWER": Function(_case("LOWER")),
    "NLS_UPPER": Function(_case("UPPER")),
    "NULLIF": Function(_nullif, 2, 2),
    "NVL": Function(_nvl, 2, 2),
    "NVL2": Function(_nvl2, 3, 3),
    "RAWTOHEX": Function(
        lambda t, arguments: (f"UPPER(ENCODE({t.sql(arguments[0])}, 'hex'))", TEXT)
    ),
    "RAWTONHEX": Function(
        lambda t, arguments: (f"UPPER(ENCODE({t.sql(arguments[0])}, 'hex'))", TEXT)
    ),
    "REPLACE": Function(_replace, 2, 3),
    "REVERSE": Function(of_text("REVERSE({})", TEXT)),
    "RPAD": Function(_pad("RPAD"), 2, 3),
    "RTRIM": Function(_strip("RTRIM"), 1, 2),
    "SOUNDEX": Function(_soundex),
    "STANDARD_HASH": Function(_hash, 1, 2),
    "SUBSTR": Function(_substring, 2, 3),
    "SYS_CONTEXT": Function(_context, 2, 3),
    "SYS_GUID": Function(
        constant("UUID_SEND(GEN_RANDOM_UUID())", Fact(ValueKind.RAW, filled=True)), 0, 0
    ),
    "TO_BLOB": Function(_to_bytes),
    "TO_CLOB": Function(_to_char_of_text),
    "TO_MULTI_BYTE": Function(_width(_NARROW, _WIDE)),
    "TO_SINGLE_BYTE": Function(_width(_WIDE, _NARROW)),
    "TO_NCHAR": Function(_to_char_of_text),
    "TO_NCLOB": Function(_to_char_of_text),
    "TRANSLATE": Function(
        lambda t, arguments: t.nonempty(f"TRANSLATE({', '.join(map(t.text, arguments))})"), 3, 3
    ),
    "UNISTR": Function(_unicode),
    "UPPER": Function(_case("UPPER")),
    "UTL_RAW.CAST_TO_RAW": Function(of_text("CONVERT_TO({}, 'UTF8')", RAW)),
    "UTL_RAW.CAST_TO_VARCHAR2": Function(
        lambda t, arguments: t.nonempty(f"CONVERT_FROM({t.sql(arguments[0])}, 'UTF8')")
    ),
    "VSIZE": Function(_size),
}

_TOKEN: Final = re.compile(r"\\.|\[\^?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]|.", re.DOTALL)
_CLASS: Final = re.compile(r"\[:\w+:\]")
_SAME_ESCAPES: Final = frozenset("dDwWsSA123456789")
_FLAGS: Final = {"i": "i", "c": "c", "n": "", "m": "w", "x": "x"}
_NO_PERIODS: Final = r"\\.|\[\^?\]?(\[:[a-z]+:\]|[^]])*\]"
"""A PostgreSQL regular expression for the parts of a pattern whose periods are characters."""

_GREEDY: Final = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})(?!\?)")
_LAZY: Final = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\?")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def pattern_text(pattern: str, flags: str = "") -> str:
    """Return the PostgreSQL pattern with the same meaning as a pattern of Oracle.

    Raises:
        UntranslatableError: PostgreSQL has no such pattern.
    """
    if "(?" in pattern or pattern.startswith("***") or "[." in pattern or "[=" in pattern:
        raise UntranslatableError(f"the regular expression {pattern!r}")
    pieces = list(_TOKEN.findall(pattern))
    bare = "".join("a" if len(piece) > 1 else piece for piece in pieces)
    if _LAZY.search(bare) and _GREEDY.search(_LAZY.sub("", bare)):
        raise UntranslatableError(
            f"the regular expression {pattern!r}: greedy and lazy repetitions together"
        )
    return "".join(_piece(piece, pattern, flags) for piece in pieces)


def _piece(piece: str, pattern: str, flags: str) -> str:
    if piece == ".":
        return "." if "n" in flags else r"[^\n]"
    if piece.startswith("["):
        return piece.replace("\\", "\\\\")
    if not piece.startswith("\\"):
        return piece
    letter = piece[1:]
    if letter == "z":
        return r"\Z"
    if letter == "Z":
        raise UntranslatableError(f"the regular expression {pattern!r}: \\Z")
    if letter in _SAME_ESCAPES or not letter.isalnum():
        return piece
    return letter


def _pattern(t: Translator, arguments: Sequence[exp.Expr], flags: str) -> str:
    """Return SQL for the pattern of a call. In Oracle, a period does not match the end of a line,
    but [^…] does; in PostgreSQL, one option decides on both. A literal gets a class for its
    periods. The SQL of another pattern fails if it has both, and the text has several lines.

    The failing part of the SQL contains the text: PostgreSQL computes constant parts of a query in
    advance, also those that the CASE does not use, and a NULL text must give NULL.
    """
    pattern = t.literal(arguments[1])
    if pattern is not None:
        return _quoted(pattern_text(pattern, flags))
    text, pattern = t.text(arguments[0]), t.text(arguments[1])
    if "n" in flags:
        return pattern
    bare = f"REGEXP_REPLACE({pattern}, '{_NO_PERIODS}', '', 'g')"
    one_kind = f"POSITION('[^' IN {pattern}) = 0 OR POSITION(CHR(10) IN {text}) = 0"
    said = f"'. and [^] in a regular expression: ' || {pattern} || LEFT({text}, 0)"
    fails = f"CAST(CAST({said} AS NUMERIC) AS TEXT)"
    option = "(?n)" if "m" in flags else "(?p)"
    return (
        f"(CASE WHEN POSITION('.' IN {bare}) = 0 THEN '' WHEN {one_kind} THEN '{option}'"
        f" ELSE {fails} END || {pattern})"
    )


def _flags(t: Translator, arguments: Sequence[exp.Expr], place: int) -> str:
    """Return the flags in the match parameter of the call; empty if it has none. Raise an error if
    PostgreSQL does not have one of the flags.
    """
    if len(arguments) <= place or t.is_null(arguments[place]):
        return ""
    flags = string_literal(t, arguments[place], "a match parameter").lower()
    if set(flags) - set(_FLAGS):
        raise UntranslatableError(f"a regular expression with the flags {flags}")
    return flags


def _may_be_empty(t: Translator, node: exp.Expr) -> bool:
    """Return whether a pattern can match an empty text. The two databases count such matches
    differently.
    """
    pattern = t.literal(node)
    if pattern is None:
        return False
    try:
        found = re.fullmatch(_CLASS.sub("a", pattern), "")
    except re.error:
        return True
    return found is not None and not set(pattern) <= set("^$")


def _with_group(name: str, pattern: exp.Expr, sql: str) -> str:
    """Return SQL for a pattern that has a group. PostgreSQL takes a pattern without groups for its
    first group; Oracle finds nothing.
    """
    if isinstance(pattern, exp.Literal) and "(" in _TOKEN.findall(pattern.this):
        return sql
    if isinstance(pattern, exp.Literal) or name != "REGEXP_SUBSTR":
        reason = f"{name} with a group number, of a pattern that may have no group"
        raise UntranslatableError(reason)
    return f"({sql} || '()')"


def _call(name: str, kind: str, flags_at: int) -> CallRule:
    """Return the rule for a function whose arguments have the same order in both databases.

    Args:
        kind: the kind of the result, ``text`` or ``number``.
        flags_at: the index of the argument with the flags.
    """

    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        flags = _flags(t, arguments, flags_at)
        if name == "REGEXP_COUNT" and _may_be_empty(t, arguments[1]):
            raise UntranslatableError("REGEXP_COUNT of a pattern that also matches the empty text")
        parts = [t.text(arguments[0]), _pattern(t, arguments, flags)]
        if len(arguments) > flags_at + 1 and t.whole(arguments[-1]) != 0:
            parts[1] = _with_group(name, arguments[1], parts[1])
        for at, argument in enumerate(arguments[2:], 2):
            parts.append(_target_flags(flags) if at == flags_at else t.integer(argument))
        found = f"{name}({', '.join(parts)})"
        return t.nonempty(found) if kind == "text" else (found, INTEGER)

    return translate


def _target_flags(flags: str) -> str:
    return _quoted("".join(_FLAGS[flag] for flag in flags))


def _like(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    flags = _flags(t, arguments, 2)
    text, pattern = t.text(arguments[0]), _pattern(t, arguments, flags)
    others = "".join(flag for flag in flags if flag in "mx")
    if others:
        return f"REGEXP_LIKE({text}, {pattern}, {_target_flags(flags)})", BOOLEAN
    operator = "~*" if flags.replace("n", "").endswith("i") else "~"
    return f"({text} {operator} {pattern})", BOOLEAN


def _regexp_replace(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate REGEXP_REPLACE. If the pattern is NULL, the result is the whole text."""
    flags = _flags(t, arguments, 5)
    by = "''"
    if len(arguments) > 2 and not t.is_null(arguments[2]):
        by = _replacement(t, arguments[2])
    source, pattern = t.text(arguments[0]), arguments[1]
    places = [t.integer(argument) for argument in arguments[3:5]]
    if t.is_null(pattern):
        tests = " AND ".join(f"{place} IS NOT NULL" for place in places)
        return t.nonempty(f"(CASE WHEN {tests} THEN {source} END)" if tests else source)
    if (by != "''" or places) and _may_be_empty(t, pattern):
        raise UntranslatableError("REGEXP_REPLACE of a pattern that also matches the empty text")
    more = [*places, "0"][:2] if places else ["'g'"]
    if places and flags:
        more.append(_target_flags(flags))
    parts = [source, _pattern(t, arguments, flags), by, *more]
    found = f"REGEXP_REPLACE({', '.join(parts)})"
    if t.literal(pattern) is None and not t.fact(pattern).filled:
        tests = " AND ".join(
            [f"{t.text(pattern)} IS NULL", *(f"{one} IS NOT NULL" for one in places)]
        )
        found = f"(CASE WHEN {tests} THEN {source} ELSE {found} END)"
    return t.nonempty(found)


def _replacement(t: Translator, node: exp.Expr) -> str:
    text = t.literal(node)
    if text is None:
        return t.text(node) if t.fact(node).filled else f"COALESCE({t.text(node)}, '')"
    if "\\" in re.sub(r"\\[1-9\\]", "", text):
        raise UntranslatableError(f"REGEXP_REPLACE by {text!r}")
    return _quoted(text)


REGULAR_EXPRESSIONS: Final[dict[str, Function]] = {
    "REGEXP_COUNT": Function(_call("REGEXP_COUNT", "number", 3), 2, 4),
    "REGEXP_INSTR": Function(_call("REGEXP_INSTR", "number", 5), 2, 7),
    "REGEXP_LIKE": Function(_like, 2, 3),
    "REGEXP_REPLACE": Function(_regexp_replace, 2, 6),
    "REGEXP_SUBSTR": Function(_call("REGEXP_SUBSTR", "text", 4), 2, 6),
}
