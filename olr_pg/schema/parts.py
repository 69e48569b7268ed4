"""Translates one part of a query, with its subqueries. Inner expressions are translated before the
expressions that contain them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from olr_pg.observability.wording import counted
from olr_pg.schema import comparisons
from olr_pg.schema.functions import (
    aggregates,
    date_functions,
    document_functions,
    number_functions,
    text_functions,
)
from olr_pg.schema.functions.refused_functions import advice_of
from olr_pg.schema.oracle_parser import KEPT_NODES, REFUSED_NODES, REFUSED_WORDS
from olr_pg.schema.translating import UntranslatableError, quoted
from olr_pg.schema.value_kinds import TEXT, TIMESTAMPTZ, Fact, ValueKind

if TYPE_CHECKING:
    from olr_pg.schema.relation_columns import RelationColumn
    from olr_pg.schema.translating import Function, NodeRule, Translated, Translator

NODES: Final[dict[type[exp.Expr], NodeRule]] = {
    **comparisons.NODES,
    **text_functions.NODES,
    **number_functions.NODES,
    **date_functions.NODES,
    **aggregates.NODES,
    **document_functions.NODES,
}
FUNCTIONS: Final[dict[str, Function]] = {
    **text_functions.FUNCTIONS,
    **number_functions.FUNCTIONS,
    **date_functions.FUNCTIONS,
    **text_functions.REGULAR_EXPRESSIONS,
    **aggregates.FUNCTIONS,
    **document_functions.FUNCTIONS,
}
"""The rules for Oracle's functions, by the function's name; other functions are refused."""

_WRAPPERS: Final = (exp.Window, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.Escape)
"""Nodes around a function call that are translated together with the call."""

_WRAPPED: Final = (*_WRAPPERS, exp.Anonymous, exp.GroupConcat, exp.Like)
_PARSER_NOTES: Final = frozenset({"safe", "typed", "nested", "_type", "is_string", "charset"})


def translate_part(t: Translator, root: exp.Expr, *, keep_name: bool = False) -> None:
    """Translate a node and everything below it, in place.

    Args:
        keep_name: whether the node is an item of a select list, in which a column keeps its name.

    Raises:
        UntranslatableError: the SQL cannot be translated; the error has the reason.
    """
    for node in reversed(list(_own_nodes(root))):
        if isinstance(node, exp.Query):
            t.translate_frame(node)
            continue
        name = node.name if keep_name and node is root and isinstance(node, exp.Column) else ""
        found = _node(t, node)
        if found is None:
            continue
        new: exp.Expr = t.raw(*found)
        if name:
            identifier = t.folded(t.plain(node.this), column=True)
            new = exp.Alias(this=new, alias=identifier)
        node.replace(new)


def _own_nodes(root: exp.Expr) -> Iterator[exp.Expr]:
    """Yield `root` and the nodes below it, from the top down. A subquery is one node, and a
    function call with its `_WRAPPERS` is one node.
    """
    queue, calls = [root], set[int]()
    at = 0
    while at < len(queue):
        node = queue[at]
        at += 1
        if id(node) not in calls:
            yield node
        if isinstance(node, exp.Query | exp.Dot):
            continue
        inner = node.this
        if isinstance(node, _WRAPPERS) and isinstance(inner, _WRAPPED):
            calls.add(id(inner))
        queue.extend(
            inner
            for inner in node.iter_expressions()
            if not isinstance(node, exp.Interval) or inner.arg_key == "this"
        )


class _Recorded(dict[str, Any]):
    """A dictionary of a node's arguments that records which of them a rule reads."""

    def __init__(self, held: dict[str, Any]) -> None:
        super().__init__(held)
        self.seen = set[str]()

    def get(self, key: str, default: Any = None) -> Any:
        self.seen.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.seen.add(key)
        return super().__getitem__(key)


def _node(t: Translator, node: exp.Expr) -> Translated | None:
    """Translate one node whose children are already translated. Return None if the node stays as it
    is.
    """
    if isinstance(node, exp.Column):
        return _column(t, node)
    if isinstance(node, exp.Anonymous):
        return call(t, node)
    if isinstance(node, exp.Dot):
        raise UntranslatableError(f"the name {node.sql(dialect='oracle')} is not supported")
    if isinstance(node, exp.Ordered):
        aggregates.sort_key(t, node)
        return None
    rule = NODES.get(type(node))
    if rule is None:
        return None
    return _looked_at(t, node, rule)


def _looked_at(t: Translator, node: exp.Expr, rule: NodeRule) -> Translated | None:
    """Translate a node by a rule. If the node has an argument that the rule does not read, raise an
    error.
    """
    together = [node]
    while isinstance(together[-1], _WRAPPERS) and isinstance(together[-1].this, _WRAPPED):
        together.append(together[-1].this)
    recorded = [(one, one.args, _Recorded(one.args)) for one in together]
    for one, _, seen in recorded:
        one.args = seen
    try:
        found = rule(t, node)
    finally:
        for one, held, _ in recorded:
            one.args = held
    for one, held, seen in recorded:
        lost = {key for key, value in held.items() if value} - seen.seen - _PARSER_NOTES
        if found is not None and lost:
            raise UntranslatableError(f"{one.key.upper()} with {', '.join(sorted(lost))}")
    return found


def call(t: Translator, node: exp.Expr) -> Translated:
    """Translate a function call by the function's name.

    Raises:
        UntranslatableError: the function, or this form of its arguments, is not supported.
    """
    name = node.name.upper()
    function = FUNCTIONS.get(name)
    if function is None:
        own = t.call_own(node.name, node.expressions)
        if own is not None:
            return own
        raise UntranslatableError(_unknown(t, node.name))
    arguments = node.expressions
    if not function.least <= len(arguments) <= function.most:
        raise UntranslatableError(f"{name} with {counted(len(arguments), 'argument')}")
    return function.rule(t, arguments)


def _unknown(t: Translator, name: str) -> str:
    if "." in name or t.relations.is_code(t.owner, name.upper()):
        return f"the SQL calls {name}, which is a PL/SQL routine"
    advice = advice_of(name.upper())
    return f"{name.upper()}: {advice}" if advice else f"{name.upper()} has no translation"


def _column(t: Translator, node: exp.Column) -> Translated | None:
    """Translate a column. Pseudo-columns and sequence values, which look like columns, are
    translated too.
    """
    if not isinstance(node.this, exp.Identifier):
        return None
    name, table = t.plain(node.this), node.args.get("table")
    if node.args.get("join_mark"):
        raise UntranslatableError("the outer join (+) is in a place where Oracle rejects it")
    if name in ("NEXTVAL", "CURRVAL") and table is not None:
        return _sequence(t, node, name)
    if table is not None:
        return _qualified(t, node, name)
    found = t.scope.having(name)
    if found is not None:
        return _found(t, node, found[1], "")
    if name in t.scope.items:
        return t.scope.items[name]
    if not node.this.args.get("quoted"):
        special = _PSEUDO.get(name)
        if special is not None:
            return special
        if name in REFUSED_WORDS:
            raise UntranslatableError(REFUSED_WORDS[name])
    own = t.call_own(name, [])
    if own is not None:
        return own
    if t.relations.is_code(t.owner, name):
        raise UntranslatableError(f"the SQL calls {name}, which is a PL/SQL routine")
    raise UntranslatableError(f"{name} is not a column of the tables and views that it reads")


def _qualified(t: Translator, node: exp.Column, name: str) -> Translated | None:
    table, db = node.args["table"], node.args.get("db")
    called, owner = t.plain(table), t.plain(db) if db is not None else ""
    source = t.scope.source(called, owner)
    known = t.scope.column(called, name, owner)
    if source is None or known is None:
        if name in REFUSED_WORDS and not node.this.args.get("quoted"):
            raise UntranslatableError(REFUSED_WORDS[name])
        whole = node.sql(dialect="oracle")
        raise UntranslatableError(f"{whole} is not a column of the tables and views that it reads")
    return _found(t, node, known, source.alias)


def _found(t: Translator, node: exp.Column, known: RelationColumn, alias: str) -> Translated | None:
    """Replace a column by the column in the target. If the target's value has another form than
    Oracle's, convert it back.
    """
    node.set("this", exp.to_identifier(known.name, quoted=True))
    node.set("table", exp.to_identifier(alias, quoted=True) if alias else None)
    node.set("db", None)
    t.note(node, known.fact)
    if known.is_plain:
        return None
    reading, reason = known.reading(t.sql(node))
    if reason:
        raise UntranslatableError(reason)
    return reading, known.fact


def _sequence(t: Translator, node: exp.Column, function: str) -> Translated:
    table = node.args["table"]
    owner, name = node.args.get("db"), t.plain(table)
    schema = t.plain(owner) if owner else t.owner
    found = t.relations.sequence(schema, name)
    if found is None:
        raise UntranslatableError(f"the sequence {schema}.{name} does not exist")
    _check_order(t, (schema, name), function, table.meta.get("start", 0))
    text = ".".join(map(quoted, found)).replace("'", "''")
    return f"{function}('{text}')", Fact(ValueKind.INTEGER, filled=True)


def _check_order(t: Translator, sequence: tuple[str, str], function: str, place: int) -> None:
    """Raise an error if a statement uses a sequence in a way in which PostgreSQL would return other
    values than Oracle. In Oracle, all uses of a sequence in a row of a statement return the same
    value (SQL Language Reference, “Sequence Pseudocolumns”).
    """
    before = t.sequences.setdefault(sequence, {})
    if function in before and function == "NEXTVAL":
        raise UntranslatableError(
            f"several NEXTVAL of the sequence {'.'.join(sequence)}: in Oracle they have the same"
            " value; use CURRVAL after the first"
        )
    before[function] = min(place, before.get(function, place))
    if "NEXTVAL" in before and before.get("CURRVAL", place) < before["NEXTVAL"]:
        raise UntranslatableError(
            f"CURRVAL before NEXTVAL of the sequence {'.'.join(sequence)}: in Oracle they have the"
            " same value; use NEXTVAL first"
        )


_PSEUDO: Final = {
    "USER": ("UPPER(CAST(SESSION_USER AS TEXT))", Fact(ValueKind.TEXT, filled=True)),
    "SESSIONTIMEZONE": ("CURRENT_SETTING('TimeZone')", TEXT),
    "ROWNUM": ("ROW_NUMBER() OVER ()", Fact(ValueKind.INTEGER, filled=True)),
    "SYSTIMESTAMP": ("STATEMENT_TIMESTAMP()", TIMESTAMPTZ._replace(filled=True, exact=True)),
}


def check_kept(tree: exp.Expr) -> None:
    """Check that all remaining nodes of Oracle's tree mean the same in PostgreSQL.

    Raises:
        UntranslatableError: a node, or an argument of one, was neither translated nor is in
            `oracle_parser`.
    """
    for node in tree.walk():
        if type(node) in REFUSED_NODES:
            raise UntranslatableError(REFUSED_NODES[type(node)])
        if isinstance(node, exp.Column):
            continue
        kept = KEPT_NODES.get(type(node))
        if kept is None:
            raise UntranslatableError(f"{node.key.upper()} has no translation")
        lost = {key for key, value in node.args.items() if value} - kept
        if lost:
            raise UntranslatableError(f"{node.key.upper()} with {', '.join(sorted(lost))}")
