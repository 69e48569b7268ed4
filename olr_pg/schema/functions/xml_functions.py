"""Translates SQL/XML (Oracle SQL Language Reference, “XML Functions”; Oracle XML DB Developer's
Guide).

Both databases generate equal XML, but its text can differ: for example, PostgreSQL writes ``<e/>``
for an empty element. So the translation refuses SQL that uses generated XML as text. PostgreSQL
must be built with libxml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from olr_pg.schema.relation_columns import RelationColumn
from olr_pg.schema.translating import Function, Source, UntranslatableError, quoted, string_literal
from olr_pg.schema.value_kinds import INTEGER, NUMBER, NUMBERS, TEXT, TEXTS, XML, Fact, ValueKind

if TYPE_CHECKING:
    from collections.abc import Sequence

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


NODES: Final[dict[type[exp.Expr], NodeRule]] = {exp.XMLElement: _element}
FUNCTIONS: Final[dict[str, Function]] = {
    "EXISTSNODE": Function(_exists, 2, 2),
    "EXTRACTVALUE": Function(_extracted, 2, 2),
    "XMLAGG": Function(_aggregate),
    "XMLATTRIBUTES": Function(_attributes, 1, 255),
    "XMLCONCAT": Function(_concatenated, 1, 255),
    "XMLFOREST": Function(_forest, 1, 255),
    "XMLTYPE": Function(_parsed),
}
