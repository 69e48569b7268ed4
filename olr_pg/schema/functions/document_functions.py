"""Translates the functions for documents: SQL/XML and SQL/JSON.

**SQL/XML** (Oracle SQL Language Reference, “XML Functions”; Oracle XML DB Developer's Guide). Both
databases generate equal XML, but its text can differ: for example, PostgreSQL writes ``<e/>`` for
an empty element. So the translation refuses SQL that uses generated XML as text. PostgreSQL must be
built with libxml.

**SQL/JSON** (Oracle Database JSON Developer's Guide; SQL Language Reference, “JSON Functions”). A
text that does not begin like JSON gives NULL. A text that begins like JSON but is invalid for
PostgreSQL is an error. Such a text does not become NULL, because Oracle accepts some of these
texts, such as JSON with unquoted names, and their data would be lost silently. Paths are evaluated
in lax mode in both databases. A path that only names members and elements means the same in both.
Generated JSON and the result of JSON_QUERY are texts without blanks between their parts.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

import orjson
from sqlglot import exp

from olr_pg.schema.functions.number_functions import NUMERAL
from olr_pg.schema.oracle_parser import JsonCall
from olr_pg.schema.relation_columns import RelationColumn
from olr_pg.schema.translating import Function, Source, UntranslatableError, quoted, string_literal
from olr_pg.schema.value_kinds import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    XML,
    Fact,
    ValueKind,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.schema.translating import NodeRule, Translated, Translator


def _content(t: Translator, node: exp.Expr) -> str:
    kind = t.kind(node)
    if kind is ValueKind.XML:
        return t.sql(node)
    if kind in TEXTS or kind in NUMBERS or kind is ValueKind.NOTHING:
        return t.text(node)
    raise UntranslatableError(f"XML of a {kind.value}: use TO_CHAR with a format")


def _named(t: Translator, nodes: Sequence[exp.Expr]) -> str:
    """Return the SQL of values with their names, which become XML attributes or elements."""
    parts = []
    for node in nodes:
        value = node.this if isinstance(node, exp.Alias) else node
        if not isinstance(node, exp.Alias):
            raise UntranslatableError("XML of a value without AS and a name")
        parts.append(f"{_content(t, value)} AS {quoted(t.plain(node.args['alias']))}")
    return ", ".join(parts)


def _attributes(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    call = arguments[0].parent
    if call is None or not isinstance(call.parent, exp.XMLElement):
        raise UntranslatableError("XMLATTRIBUTES outside of XMLELEMENT")
    return f"XMLATTRIBUTES({_named(t, arguments)})", XML


def _forest(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    return f"XMLFOREST({_named(t, arguments)})", XML


def _element(t: Translator, node: exp.Expr) -> Translated:
    if node.args.get("evalname") or not isinstance(node.this, exp.Identifier):
        raise UntranslatableError("XMLELEMENT with EVALNAME")
    parts = [f"NAME {quoted(t.plain(node.this))}"]
    parts += [_content(t, one) for one in node.expressions]
    return f"XMLELEMENT({', '.join(parts)})", XML._replace(filled=True)


def _aggregate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    value, order = arguments[0], ""
    if isinstance(value, exp.Order):
        order, value = f" ORDER BY {', '.join(map(t.sql, value.expressions))}", value.this
    return f"XMLAGG({_xml(t, value)}{order})", XML


def _xml(t: Translator, node: exp.Expr) -> str:
    if t.kind(node) is not ValueKind.XML:
        raise UntranslatableError(f"a {t.kind(node).value} where XML is expected")
    return t.sql(node)


def _concatenated(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    return f"XMLCONCAT({', '.join(_xml(t, one) for one in arguments)})", XML


def _parsed(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    if t.kind(arguments[0]) is ValueKind.XML:
        return t.sql(arguments[0]), XML
    return f"XMLPARSE(DOCUMENT {t.text(arguments[0])})", XML


def _extracted(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Translate EXTRACTVALUE: the text of the single node that matches a path. Several matches are
    an error in both databases.
    """
    path = string_literal(t, arguments[1], "EXTRACTVALUE with a path")
    where = "'" + path.replace("'", "''") + "'"
    rows = f"XMLTABLE({where} PASSING {_xml(t, arguments[0])} COLUMNS \"v\" TEXT PATH '.')"
    return f"(SELECT NULLIF(\"v\", '') FROM {rows})", TEXT  # noqa: S608 - translated


def _exists(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    path = string_literal(t, arguments[1], "EXISTSNODE with a path")
    where = "'" + path.replace("'", "''") + "'"
    return f"CAST(XPATH_EXISTS({where}, {_xml(t, arguments[0])}) AS INT)", INTEGER


def xml_table(t: Translator, node: exp.Table, call: exp.Expr) -> Source:
    """Replace Oracle's XMLTABLE in FROM by PostgreSQL's; empty texts become NULL.

    Raises:
        UntranslatableError: the XMLTABLE has clauses or columns that PostgreSQL does not have.
    """
    passing = call.args.get("passing") or []
    if call.args.get("namespaces") or call.args.get("by_ref") or len(passing) != 1:
        raise UntranslatableError("XMLTABLE with namespaces, BY REF, or several documents")
    t.translate(passing[0])
    alias = node.args.get("alias")
    called = t.plain(alias.this) if alias is not None and alias.this else "XMLTABLE"
    columns, items, listed = dict[str, RelationColumn](), list[str](), list[str]()
    for column in call.args.get("columns") or []:
        name = t.plain(column.this)
        target = t.relations.name(name, column=True)
        declared, fact = _column(t, column)
        listed.append(f"{quoted(target)} {declared}")
        own = quoted(target)
        items.append(f"NULLIF({own}, '') AS {own}" if fact.kind is ValueKind.TEXT else own)
        columns[name] = RelationColumn(target, fact)
    where = "'" + str(call.this.name).replace("'", "''") + "'"
    document = _xml(t, call.args["passing"][0])
    rows = f"XMLTABLE({where} PASSING {document} COLUMNS {', '.join(listed)})"
    target = t.relations.name(called)
    text = f"LATERAL (SELECT {', '.join(items)} FROM {rows}) AS {quoted(target)}"  # noqa: S608
    node.replace(t.raw(text, TEXT))
    return Source(called, target, columns)


def _column(t: Translator, column: exp.Expr) -> tuple[str, Fact]:
    if column.args.get("ordinality"):
        return "FOR ORDINALITY", INTEGER
    paths = [one.args["kind"] for one in column.args.get("constraints") or []]
    kind = column.args.get("kind")
    is_path = len(paths) == 1 and isinstance(paths[0], exp.PathColumnConstraint)
    if kind is None or not is_path:
        raise UntranslatableError("XMLTABLE with a column without type and path, or with a default")
    path = "'" + paths[0].this.name.replace("'", "''") + "'"
    name, sizes = kind.this.value, [t.whole(one.this) for one in kind.expressions]
    if name in ("VARCHAR", "NVARCHAR") and sizes:
        return f"VARCHAR({sizes[0]}) PATH {path}", TEXT
    if name == "DECIMAL" and not sizes:
        return f"NUMERIC PATH {path}", NUMBER
    raise UntranslatableError(f"XMLTABLE with a column of the type {kind.sql(dialect='oracle')}")


FUNCTIONS: Final[dict[str, Function]] = {
    "EXISTSNODE": Function(_exists, 2, 2),
    "EXTRACTVALUE": Function(_extracted, 2, 2),
    "XMLAGG": Function(_aggregate),
    "XMLATTRIBUTES": Function(_attributes, 1, 255),
    "XMLCONCAT": Function(_concatenated, 1, 255),
    "XMLFOREST": Function(_forest, 1, 255),
    "XMLTYPE": Function(_parsed),
}


_PATH: Final = re.compile(r'\$(\s*\.\s*("[^"\\]+"|[A-Za-z_]\w*)|\s*\[\s*(\d+|\*)\s*\])*')
_TYPE: Final = re.compile(
    r"(?:RETURNING )?(VARCHAR2|NVARCHAR2|CLOB|NUMBER)(?: \( (\d+)( BYTE| CHAR)?(?: , \d+)? \))?"
)
_COLUMN: Final = re.compile(r"(\S+) (.*?)(?: PATH '([^']*)')?( (?:NULL|DEFAULT) .*)?")
_DEFAULT: Final = re.compile(r"(?:DEFAULT )?(NULL|'[^']*'|-? ?[\d.]+) ON (EMPTY|ERROR)")
_NULLS: Final = re.compile(r" ?(NULL|ABSENT) ON NULL")
_VARCHAR_BYTES: Final = 4000
_LIKE_JSON: Final = r"""'^\s*([[{"]|(-?\d+(\.\d+)?([eE][-+]?\d+)?|true|false|null)\s*$)'"""
_STEP: Final = re.compile(
    r'\.\s*(?:"([^"\\]+)"|([A-Za-z_]\w*))\s*|\[\s*(\d+)\s*\]\s*|(\.\s*\*|\[[^]]*\])\s*$'
)
_CHOSEN: Final = re.compile(r"(\d+)(?:\s+to\s+(\d+))?")
_RETURNED: Final = re.compile(
    r"(?:RETURNING (?:CLOB|VARCHAR2(?: \( (\d+)(?: BYTE)? \))?) ?)?"
    r"(WITH (?:UNCONDITIONAL )?(?:ARRAY )?WRAPPER|WITHOUT (?:ARRAY )?WRAPPER)?"
    r"(?: ?NULL ON (?:ERROR|EMPTY))*"
)


def _document(t: Translator, node: exp.Expr, to: str = "JSONB") -> str:
    """Return SQL that converts a text to JSON; it is NULL if the text does not begin like JSON."""
    if not t.is_text(node):
        raise UntranslatableError(f"a {t.kind(node).value} where JSON is expected")
    text, given = t.text(node), t.literal(node)
    if given is None:
        return f"(CASE WHEN {text} ~ {_LIKE_JSON} THEN CAST({text} AS {to}) END)"
    if _is_json(given):
        return f"CAST({text} AS {to})"
    if given.lstrip().startswith(("[", "{")):
        raise UntranslatableError(
            "a literal that is not valid JSON in PostgreSQL: write names in quotation marks"
        )
    return f"CAST(NULL AS {to})"


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _path(text: str) -> str:
    if not _PATH.fullmatch(text):
        raise UntranslatableError(
            f"the JSON path {text!r}: only members and elements are supported"
        )
    return "'" + text.replace("'", "''") + "'"


def _found(t: Translator, node: exp.Expr) -> str:
    return f"JSONB_PATH_QUERY_ARRAY({_document(t, node.this)}, {_path(node.args['path'])})"


def _call(t: Translator, node: exp.Expr) -> Translated:
    name, clauses = node.args["name"], str(node.args.get("clauses") or "")
    if node.args.get("columns"):
        raise UntranslatableError("JSON_TABLE outside FROM")
    if name == "JSON_VALUE":
        return _scalar(_found(t, node), clauses)
    if clauses and name == "JSON_EXISTS":
        raise UntranslatableError(f"JSON_EXISTS with {clauses}")
    if name == "JSON_EXISTS":
        found = f"JSONB_PATH_EXISTS({_document(t, node.this)}, {_path(node.args['path'])})"
        return f"COALESCE({found}, FALSE)", BOOLEAN
    return _query(t, node, clauses), TEXT._replace(json=True)


def _query(t: Translator, node: exp.Expr, clauses: str) -> str:
    """Translate JSON_QUERY so that the part that is found keeps its text and the order of its
    members.

    If a path steps into an array without naming an element, PostgreSQL would find more than Oracle.
    Such a path is an error.
    """
    returned = _RETURNED.fullmatch(clauses)
    if returned is None:
        raise UntranslatableError(f"JSON_QUERY with {clauses}")
    steps, strict, tail = _steps(node.args["path"])
    document = _document(t, node.this, "JSON")
    part = '"d"' + "".join(f" -> {step}" for step in steps)
    has_wrapper = (returned[2] or "WITHOUT").startswith("WITH ")
    if tail:
        if not has_wrapper:
            raise UntranslatableError("JSON_QUERY of several values without WITH WRAPPER")
        found = f"(SELECT '[' || STRING_AGG({_compact('v')}, ',' ORDER BY \"n\") || ']'" + tail
    elif has_wrapper:
        found = f"(SELECT '[' || {_compact('p')} || ']'"
    else:
        found = (
            f"(SELECT CASE WHEN JSON_TYPEOF(\"p\") IN ('object', 'array') THEN {_compact('p')} END"
        )
    lax = strict.replace("strict", "lax", 1)
    paths = [
        f"JSONB_PATH_EXISTS(CAST(\"d\" AS JSONB), '{one}', '{{}}', TRUE)" for one in (strict, lax)
    ]
    error = "CAST('JSON_QUERY steps through an array' || LEFT(CAST(\"d\" AS TEXT), 0) AS JSON)"
    stepped = (
        f"CASE WHEN {paths[0]} THEN {part} WHEN {paths[1]} THEN {error} END" if steps else part
    )
    size = returned[1] or ("" if "CLOB" in clauses else _VARCHAR_BYTES)
    fits = f'OCTET_LENGTH("q") <= {size}' if size else "TRUE"
    return (
        f'(SELECT CASE WHEN {fits} THEN "q" END FROM (SELECT {document}) AS "json" ("d"),'  # noqa: S608
        f' LATERAL (SELECT {stepped}) AS "part" ("p"),'
        f' LATERAL {found}) AS "query" ("q"))'
    )


def _compact(name: str) -> str:
    """Return SQL for JSON as a text without whitespace between its parts."""
    return f"""REGEXP_REPLACE(CAST("{name}" AS TEXT), '("(\\\\.|[^"\\\\])*")|\\s+', '\\1', 'g')"""


def _steps(path: str) -> tuple[list[str], str, str]:
    """Split a path into its steps.

    Returns:
        The steps as operands of ``->``; the steps as a PostgreSQL path; and a FROM clause if the
        last step can match several parts, otherwise an empty text.
    """
    steps, strict, at = list[str](), "strict $", 1
    if not path.startswith("$"):
        raise UntranslatableError(f"the JSON path {path!r}, which does not begin with $")
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise UntranslatableError(
                f"the JSON path {path!r}: only members and elements are supported"
            )
        at = step.end()
        if step[4]:
            return steps, strict, _several(step[4])
        name = (step[1] or step[2] or "").replace("'", "''")
        steps.append(f"'{name}'" if name else step[3])
        strict += f'."{name}"' if name else f"[{step[3]}]"
    return steps, strict, ""


def _several(step: str) -> str:
    if step.startswith("."):
        kind, rows, where = "object", 'JSON_EACH("p") WITH ORDINALITY AS "e" ("k", "v", "n")', ""
    else:
        kind, where = "array", ""
        rows = 'JSON_ARRAY_ELEMENTS("p") WITH ORDINALITY AS "e" ("v", "n")'
        if step[1:-1].strip() != "*":
            chosen = [_CHOSEN.fullmatch(one.strip()) for one in step[1:-1].split(",")]
            spans = [(int(one[1]), int(one[2] or one[1])) for one in chosen if one is not None]
            if len(spans) != len(chosen) or any(
                last >= following for (_, last), (following, _) in itertools.pairwise(spans)
            ):
                raise UntranslatableError(f"the elements {step} of a JSON path")
            listed = " OR ".join(f'"n" BETWEEN {a + 1} AND {b + 1}' for a, b in spans)
            where = f" WHERE {listed}"
    return f' FROM (SELECT "p" WHERE JSON_TYPEOF("p") = \'{kind}\') AS "o", LATERAL {rows}{where}'


def _scalar(found: str, clauses: str) -> Translated:
    """Return SQL for the result of JSON_VALUE, from an array of matches. If there is no match, the
    result is the value of ON EMPTY. If there are several matches, or the match is an object or
    array, it is the value of ON ERROR. By default, the values of ON EMPTY and ON ERROR are NULL.
    """
    typed = _TYPE.match(clauses)
    rest = clauses[typed.end() :] if typed else clauses
    name = typed[1] if typed else "VARCHAR2"
    given = {
        case: value if value.startswith("'") else value.replace(" ", "")
        for value, case in _DEFAULT.findall(rest)
    }
    if _DEFAULT.sub("", rest).strip():
        raise UntranslatableError(f"JSON_VALUE with {rest.strip()}")
    failed, of = given.get("ERROR", "NULL"), '"j" -> 0'
    empty = given.get("EMPTY", failed)
    if name == "NUMBER":
        value = f'WHEN "j" ->> 0 ~ {NUMERAL} THEN CAST("j" ->> 0 AS NUMERIC)'
        fact, rest_of_types = NUMBER, "'object', 'array', 'boolean'"
    else:
        empty, failed = (
            one if one == "NULL" or one.startswith("'") else f"'{one}'" for one in (empty, failed)
        )
        size = (typed[2] if typed else None) or _VARCHAR_BYTES
        length = "LENGTH" if typed and typed[3] == " CHAR" else "OCTET_LENGTH"
        fits = "TRUE" if name == "CLOB" else f'{length}("j" ->> 0) <= {size}'
        value = f"WHEN {fits} THEN NULLIF(\"j\" ->> 0, '')"
        fact, rest_of_types = TEXT, "'object', 'array'"
    return (
        f'(SELECT CASE WHEN JSONB_ARRAY_LENGTH("j") = 0 THEN {empty}'  # noqa: S608 - translated
        f' WHEN JSONB_ARRAY_LENGTH("j") > 1 OR JSONB_TYPEOF({of}) IN ({rest_of_types})'
        f" THEN {failed} WHEN JSONB_TYPEOF({of}) = 'null' THEN NULL"
        f' {value} ELSE {failed} END FROM (SELECT {found}) AS "json" ("j"))'
    ), fact


def json_table(t: Translator, node: exp.Table, call: JsonCall) -> Source:
    """Replace JSON_TABLE in FROM by a source that has one row for each match of the path. Each
    column is a scalar value.

    Raises:
        UntranslatableError: the JSON_TABLE has clauses or columns that behave differently in
            PostgreSQL.
    """
    if call.args.get("clauses"):
        raise UntranslatableError(f"JSON_TABLE with {call.args['clauses']}")
    alias = node.args.get("alias")
    called = t.plain(alias.this) if alias is not None and alias.this else "JSON_TABLE"
    columns, items = dict[str, RelationColumn](), list[str]()
    for text in call.args["columns"]:
        given, sql, fact = _table_column(text)
        name = given[1:-1] if given.startswith('"') else given.upper()
        target = t.relations.name(name, column=True)
        columns[name] = RelationColumn(target, fact)
        items.append(f"{sql} AS {quoted(target)}")
    rows = f"JSONB_PATH_QUERY({_document(t, call.this)}, {_path(call.args['path'])})"
    target = t.relations.name(called)
    text = (
        f"LATERAL (SELECT {', '.join(items)} FROM {rows}"  # noqa: S608 - translated
        f' WITH ORDINALITY AS "rows" ("row", "number")) AS {quoted(target)}'
    )
    node.replace(t.raw(text, TEXT))
    return Source(called, target, columns)


def _table_column(text: str) -> tuple[str, str, Fact]:
    """Return (name, SQL of the value, facts about the value) of a JSON_TABLE column."""
    name, _, rest = text.partition(" ")
    if rest == "FOR ORDINALITY":
        return name, '"number"', INTEGER
    column = _COLUMN.fullmatch(text)
    if column is None or column[3] is None or not _TYPE.fullmatch(column[2]):
        raise UntranslatableError(f"JSON_TABLE with the column {text}: give it a type and a path")
    found = f'JSONB_PATH_QUERY_ARRAY("row", {_path(column[3])})'
    value, fact = _scalar(found, f"{column[2]}{column[4] or ''}")
    return name, value, fact


def _generated(t: Translator, node: exp.Expr) -> str:
    """Return SQL that converts a value to JSON; NULL stays NULL."""
    fact = t.fact(node)
    if fact.json or isinstance(node, exp.FormatJson):
        return t.text(node)
    if fact.kind in TEXTS:
        return f"CAST(TO_JSON(CAST({t.text(node)} AS TEXT)) AS TEXT)"
    if fact.kind in NUMBERS and fact.kind is not ValueKind.FLOAT:
        return f"CAST(TRIM_SCALE(CAST({t.sql(node)} AS NUMERIC)) AS TEXT)"
    if fact.kind is ValueKind.DATE:
        return f"('\"' || TO_CHAR({t.sql(node)}, 'YYYY-MM-DD\"T\"HH24:MI:SS') || '\"')"
    if fact.kind is ValueKind.NOTHING:
        return "CAST(NULL AS TEXT)"
    raise UntranslatableError(f"a {fact.kind.value} converted to JSON")


_JSON: Final = TEXT._replace(filled=True, json=True)


def _keeps_null(node: exp.Expr, *, by_default: bool) -> bool:
    for key in ("return_type", "encoding", "unique_keys", "strict"):
        if node.args.get(key):
            raise UntranslatableError(f"{node.key.upper()} with {key.replace('_', ' ')}")
    found = _NULLS.fullmatch(str(node.args.get("null_handling") or ""))
    return by_default if found is None else found[1] == "NULL"


def _pair(t: Translator, node: exp.Expr) -> tuple[str, str]:
    if not isinstance(node, exp.JSONKeyValue) or isinstance(node.expression, exp.Star):
        raise UntranslatableError("JSON_OBJECT with columns but no keys: write KEY … VALUE …")
    return f"{_generated(t, node.this)} || ':'", _generated(t, node.expression)


def _joined(parts: Iterable[str], ends: str) -> Translated:
    listed = ", ".join(parts)
    inner = f"CONCAT_WS(',', {listed})" if listed else "''"
    return f"('{ends[0]}' || {inner} || '{ends[1]}')", _JSON


def _object(t: Translator, node: exp.Expr) -> Translated:
    keeps = _keeps_null(node, by_default=True)
    parts = []
    for one in node.expressions:
        key, value = _pair(t, one)
        parts.append(f"{key} || " + (f"COALESCE({value}, 'null')" if keeps else value))
    return _joined(parts, "{}")


def _array(t: Translator, node: exp.Expr) -> Translated:
    keeps = _keeps_null(node, by_default=False)
    values = (_generated(t, one) for one in node.expressions)
    return _joined((f"COALESCE({one}, 'null')" if keeps else one for one in values), "[]")


def _aggregated(
    t: Translator, node: exp.Expr, value: str, order: exp.Expr | None, ends: str
) -> Translated:
    select = node.find_ancestor(exp.Select)
    if select is None or select.args.get("group") is None:
        raise UntranslatableError(
            f"{node.key.upper()} without GROUP BY: the documentation leaves open what it gives"
            " without rows"
        )
    by = f" {t.sql(order)}" if order is not None else ""
    inner = f"COALESCE(STRING_AGG({value}, ','{by}), '')"
    return f"('{ends[0]}' || {inner} || '{ends[1]}')", _JSON


def _array_of_rows(t: Translator, node: exp.Expr) -> Translated:
    keeps = _keeps_null(node, by_default=False)
    value = _generated(t, node.this)
    shown = f"COALESCE({value}, 'null')" if keeps else value
    return _aggregated(t, node, shown, node.args.get("order"), "[]")


def _object_of_rows(t: Translator, node: exp.Expr) -> Translated:
    keeps = _keeps_null(node, by_default=True)
    (pair,) = node.expressions
    key, value = _pair(t, pair)
    shown = f"COALESCE({value}, 'null')" if keeps else value
    return _aggregated(t, node, f"{key} || {shown}", None, "{}")


def _format(t: Translator, node: exp.Expr) -> Translated | None:
    if isinstance(node.this, exp.JSONKeyValue):
        pair = node.this
        pair.set("expression", t.raw(t.text(pair.expression), TEXT._replace(json=True)))
        node.replace(pair)
        return None
    return t.text(node.this), TEXT._replace(json=True)


def _kept(_t: Translator, _node: exp.Expr) -> None:
    """Do not translate this node here: the rule for the call that contains it translates it."""


NODES: Final[dict[type[exp.Expr], NodeRule]] = {
    JsonCall: _call,
    exp.FormatJson: _format,
    exp.JSON: _kept,
    exp.JSONKeyValue: _kept,
    exp.JSONObject: _object,
    exp.JSONArray: _array,
    exp.JSONArrayAgg: _array_of_rows,
    exp.JSONObjectAgg: _object_of_rows,
    exp.XMLElement: _element,
}
