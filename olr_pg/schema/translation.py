"""Translates Oracle's SQL into PostgreSQL's SQL with the same results, or returns the reason why it
cannot.

sqlglot parses the text (`oracle_parser`). sqlglot's own translation keeps the form of the SQL, but
not always its meaning. For example, in Oracle ``||`` treats NULL as an empty text, a division of
integers gives a decimal number, and functions that have the same name in PostgreSQL differ in
special cases. So every translated function and operator is a row in the tables of `text_functions`,
`number_functions`, `date_functions`, `aggregates` and `comparisons`. Every
node that stays unchanged is listed in `oracle_parser` (Oracle SQL Language Reference, “Functions”;
PostgreSQL's chapter of the same name). All other SQL is refused, including an argument that no rule
reads.

The syntax tree is translated from its leaves up. A translated part becomes a node that contains the
translated SQL (`exp.Var`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sqlglot import exp
from sqlglot.errors import SqlglotError

from olr_pg.errors import plain_reason
from olr_pg.schema.oracle_parser import REFUSED_NODES, no_warnings, parse_oracle
from olr_pg.schema.parts import check_kept, translate_part
from olr_pg.schema.queries import translate_frame
from olr_pg.schema.statement import failure_reason
from olr_pg.schema.translating import NLS_TEXT, Scope, Source, Translator, UntranslatableError
from olr_pg.schema.value_kinds import MOMENTS, NUMBERS, TEXTS, ValueKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.schema.relation_columns import RelationColumn
    from olr_pg.schema.relations import Relation, Relations
    from olr_pg.schema.value_kinds import Fact

_Found = TypeVar("_Found")


def translate_expression(
    text: str,
    relations: Relations,
    owner: str,
    relation: Relation | None = None,
    *,
    is_stored: bool = False,
) -> tuple[str, Fact]:
    """Translate a default, a condition, or an expression of an index or column.

    Args:
        owner: the schema to which names without a schema refer.
        relation: the table whose columns the expression can use, or None.
        is_stored: whether the expression belongs to an index.

    Raises:
        UntranslatableError: the SQL cannot be translated, or the translation fails; the error has
            the reason.
    """

    def translate() -> tuple[str, Fact]:
        translator, node = _value(text, relations, owner, relation, is_stored=is_stored)
        return translator.sql(node), translator.fact(node)

    return guarded(translate)


def translate_value(
    text: str,
    relations: Relations,
    owner: str,
    column: RelationColumn,
    relation: Relation | None = None,
) -> str:
    """Translate a column's default or a virtual column's expression, and convert the value to the
    column's type.

    Args:
        owner: the schema to which names without a schema refer.
        relation: the table whose columns the expression can use, or None.

    Raises:
        UntranslatableError: the SQL cannot be translated; the error has the reason.
    """

    def translate() -> str:
        is_stored = relation is not None
        translator, node = _value(text, relations, owner, relation, is_stored=is_stored)
        return column.writing(assigned(translator, node, column.fact.kind))

    return guarded(translate)


def assigned(t: Translator, node: exp.Expr, wanted: ValueKind) -> str:
    """Return SQL that converts a value as Oracle does when the value is assigned to a column or
    variable.

    Raises:
        UntranslatableError: the conversion depends on the session's settings, or is impossible.
    """
    if t.is_null(node):
        return t.sql(node)
    if wanted in NUMBERS and isinstance(node, exp.Literal):
        return t.sql(node)
    if wanted in TEXTS:
        return t.text(node)
    if wanted in NUMBERS and t.is_text(node):
        return t.number(node)
    if wanted in NUMBERS and wanted is not ValueKind.FLOAT and t.kind(node) is ValueKind.FLOAT:
        return t.number(node)
    if wanted in MOMENTS and wanted is not ValueKind.TIMESTAMPTZ:
        return t.day(node) if wanted is ValueKind.DATE else t.moment(node)
    if wanted is ValueKind.TIMESTAMPTZ and not t.is_moment(node):
        raise UntranslatableError(f"a text where a date is expected: its meaning {NLS_TEXT}")
    if wanted is ValueKind.RAW and t.is_text(node):
        return f"DECODE({t.text(node)}, 'hex')"
    return t.sql(node)


def translate_query(text: str, relations: Relations, owner: str) -> tuple[str, set[str]]:
    """Translate the query of a view.

    Returns:
        (the query, the tables and views that it reads as ``OWNER.NAME``).

    Raises:
        UntranslatableError: the SQL cannot be translated, or the translation fails; the error has
            the reason.
    """
    return guarded(lambda: _query(text, relations, owner))


def guarded(translate: Callable[[], _Found]) -> _Found:
    """Run a translation. Convert every error of the parser or the translation to an
    `UntranslatableError`.

    Raises:
        UntranslatableError: the SQL cannot be translated, or the translation fails; the error has
            the reason.
    """
    try:
        with no_warnings():
            return translate()
    except UntranslatableError:
        raise
    except SqlglotError as error:
        raise UntranslatableError(f"the SQL is not supported: {plain_reason(error)}") from error
    except Exception as error:
        raise UntranslatableError(failure_reason(error)) from error


def translator_of(relations: Relations, owner: str, scope: Scope) -> Translator:
    """Return a translator for SQL whose names the given scope resolves."""
    made = Translator(relations, owner, scope)
    made.translate_frame = lambda node: translate_frame(made, node)
    made.translate = lambda node: translate_part(made, node)
    return made


def _value(
    text: str, relations: Relations, owner: str, relation: Relation | None, *, is_stored: bool
) -> tuple[Translator, exp.Expr]:
    tree = parse_oracle(f"SELECT {text}")
    if not isinstance(tree, exp.Select) or len(tree.selects) != 1 or tree.args.get("from_"):
        raise UntranslatableError("the SQL is not a single expression")
    value = tree.selects[0]
    if isinstance(value, exp.Alias):
        raise UntranslatableError("the SQL is not a single expression")
    # Any column can become nullable later. The generated columns, checks and indexes of the target
    # stay the same then, so they must not depend on NOT NULL.
    sources = (
        [] if relation is None else [Source(relation.source, "", relation.columns, optional=True)]
    )
    translator = translator_of(relations, owner, Scope(sources))
    translator.is_stored = is_stored
    holder = exp.Paren(this=value)
    refuse_unknown(holder)
    translate_part(translator, value)
    check_kept(holder)
    return translator, holder.this


def _query(text: str, relations: Relations, owner: str) -> tuple[str, set[str]]:
    tree = parse_oracle(text)
    if not isinstance(tree, exp.Query):
        raise UntranslatableError("the SQL is not a query")
    translator = translator_of(relations, owner, Scope())
    holder = exp.Paren(this=tree)
    refuse_unknown(tree)
    translate_frame(translator, tree)
    check_kept(holder.this)
    return translator.sql(holder.this), translator.read


def refuse_unknown(tree: exp.Expr) -> None:
    """Raise an error if a syntax tree contains syntax that PostgreSQL does not have.

    Raises:
        UntranslatableError: the SQL cannot be translated; the error has the reason.
    """
    for node in tree.walk():
        reason = REFUSED_NODES.get(type(node))
        if reason is not None:
            raise UntranslatableError(reason)
