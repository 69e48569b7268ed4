"""Oracle's SQL in PostgreSQL's words, with the same results, or the reason why not.

sqlglot reads the text. Its own way to PostgreSQL keeps the form, not the meaning: a NULL is an
empty text to Oracle's ``||``, integers divide to decimals, dates take days, and functions of the
same name differ in their edges. So every function and operator that is translated is named here and
in the tables of `text_functions`, `number_functions` and `date_functions` (Oracle SQL Language
Reference, “Functions”; PostgreSQL's chapter of the same name). One that is not named is refused.

The tree is worked on from its leaves; what has been translated stands in it as text (`exp.Var`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from olr_pg.errors import plain_reason
from olr_pg.schema import date_functions, number_functions, text_functions
from olr_pg.schema.kept_nodes import KEPT_FUNCTIONS, REFUSED_NODES, REFUSED_WORDS
from olr_pg.schema.queries import is_of_table, prepare_query
from olr_pg.schema.translating import Translator, UntranslatableError, quoted
from olr_pg.schema.value_kinds import TEXT, TIMESTAMPTZ, Fact, ValueKind

if TYPE_CHECKING:
    from olr_pg.schema.relation_columns import RelationColumn
    from olr_pg.schema.relations import Relation, Relations
    from olr_pg.schema.translating import Handler

_HANDLERS: Final[dict[type[exp.Expr], Handler]] = {
    **text_functions.HANDLERS,
    **number_functions.HANDLERS,
    **date_functions.HANDLERS,
}
_BY_NAME: Final[dict[str, Handler]] = {
    **text_functions.BY_NAME,
    **number_functions.BY_NAME,
    **date_functions.BY_NAME,
}


def translate_expression(
    text: str, relations: Relations, owner: str, relation: Relation | None = None
) -> tuple[str, Fact]:
    """Translate a default, a condition, or an expression of an index or column.

    Args:
        owner: whose names it uses.
        relation: whose columns it may name; None where it names none.

    Raises:
        UntranslatableError: with the reason, also where it is a defect of the translation.
    """
    return _guarded(lambda: _expression(text, relations, owner, relation))


def _expression(
    text: str, relations: Relations, owner: str, relation: Relation | None
) -> tuple[str, Fact]:
    tree = _parse(f"SELECT {text}")
    if not isinstance(tree, exp.Select) or len(tree.selects) != 1 or tree.args.get("from_"):
        raise UntranslatableError("it is no single expression")
    value = tree.selects[0]
    if isinstance(value, exp.Alias):
        raise UntranslatableError("it is no single expression")
    translator = Translator(relations, owner, [relation] if relation else [])
    return _translate(translator, value)


def translate_query(text: str, relations: Relations, owner: str) -> tuple[str, set[str]]:
    """Translate the query of a view.

    Returns:
        The query, and ``OWNER.NAME`` of the tables and views it reads.

    Raises:
        UntranslatableError: with the reason, also where it is a defect of the translation.
    """
    return _guarded(lambda: _query(text, relations, owner))


def _guarded(translate: Callable[[], tuple[_Translated, _More]]) -> tuple[_Translated, _More]:
    """Whatever a text does to the parser or to the translation, it has a reason."""
    try:
        return translate()
    except UntranslatableError:
        raise
    except Exception as error:
        raise UntranslatableError(failure_reason(error)) from error


def _query(text: str, relations: Relations, owner: str) -> tuple[str, set[str]]:
    tree = _parse(text)
    if not isinstance(tree, exp.Query):
        raise UntranslatableError("it is no query")
    translator = Translator(relations, owner, [])
    _refuse(tree)
    tree = prepare_query(tree, translator)
    found, _ = _translate(translator, tree)
    return found, translator.read


def _parse(text: str) -> exp.Expr:
    try:
        trees = sqlglot.parse(text, read="oracle", error_level=sqlglot.ErrorLevel.RAISE)
    except (SqlglotError, RecursionError) as error:
        reason = plain_reason(error)
        raise UntranslatableError(f"it cannot be read as SQL: {reason}") from error
    if len(trees) != 1 or trees[0] is None:
        raise UntranslatableError("it is no single statement")
    return trees[0]


def _refuse(tree: exp.Expr) -> None:
    """Refuse the constructs that PostgreSQL has no like of."""
    for node in tree.walk():
        reason = REFUSED_NODES.get(type(node))
        if reason is not None:
            raise UntranslatableError(reason)


def _translate(translator: Translator, tree: exp.Expr) -> tuple[str, Fact]:
    _refuse(tree)
    holder = exp.Paren(this=tree)
    for node in reversed(list(tree.walk(bfs=True))):
        found = _node(translator, node)
        if found is not None:
            raw = translator.raw(*found)
            node.replace(raw)
    root = holder.this
    return root.sql(dialect="postgres", identify=True), translator.fact(root)


def _node(translator: Translator, node: exp.Expr) -> tuple[str, Fact] | None:
    """Translate one node whose children are; None keeps it as it is."""
    if isinstance(node, exp.Column):
        return _column(translator, node)
    if isinstance(node, exp.Star) and isinstance(node.parent, exp.Select | exp.Column):
        _star(translator)
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        return handler(translator, node)
    if isinstance(node, exp.Anonymous):
        name = node.name.upper()
        by_name = _BY_NAME.get(name)
        if isinstance(node.parent, exp.Dot):
            package = node.parent.this.sql(dialect="oracle")
            raise UntranslatableError(f"it calls {package}.{node.name}, which is PL/SQL")
        if by_name is None:
            raise UntranslatableError(_unknown(translator, name))
        return by_name(translator, node)
    if isinstance(node, exp.Dot):
        raise UntranslatableError(f"it names {node.sql(dialect='oracle')}")
    if isinstance(node, exp.Alias):
        translator.project(node.alias, translator.fact(node.this))
        return None
    if isinstance(node, exp.Func) and type(node) not in KEPT_FUNCTIONS:
        raise UntranslatableError(_unknown(translator, node.sql_name().upper()))
    return None


def _unknown(translator: Translator, name: str) -> str:
    if translator.relations.is_code(translator.owner, name):
        return f"it calls {name}, which is PL/SQL"
    return f"{name} has no translation"


def _column(translator: Translator, node: exp.Column) -> tuple[str, Fact] | None:
    """Translate a column or what looks like one: a pseudo-column, a value of a sequence."""
    name = translator.plain(node.this) if isinstance(node.this, exp.Identifier) else ""
    if isinstance(node.this, exp.Star):
        return None
    if node.args.get("join_mark"):
        raise UntranslatableError("its outer join (+) cannot be resolved")
    if name.upper() in ("NEXTVAL", "CURRVAL") and node.args.get("table"):
        return _sequence(translator, node, name.upper())
    known = translator.column(node, name)
    if known is None and not node.args.get("table") and not node.this.args.get("quoted"):
        special = _PSEUDO.get(name)
        if special is not None:
            return special
        if name in REFUSED_WORDS:
            raise UntranslatableError(REFUSED_WORDS[name])
    folded = translator.relations.name
    new = known.name if known is not None else folded(name, column=True)
    fact = known.fact if known is not None else translator.projected(new)
    node.set("this", exp.to_identifier(new, quoted=True))
    if node.args.get("table"):
        table = folded(translator.plain(node.args["table"]))
        node.set("table", exp.to_identifier(table, quoted=True))
        node.set("db", None)
    translator.note(node, fact)
    if known is None or known.is_plain or not is_of_table(node, name, translator):
        return None
    return _reading(translator, node, known)


def _reading(translator: Translator, node: exp.Column, known: RelationColumn) -> tuple[str, Fact]:
    """Give the value back as Oracle has it; one that a query selects keeps its name."""
    reading, reason = known.reading(translator.sql(node))
    if reason:
        raise UntranslatableError(reason)
    if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
        translator.project(known.name, known.fact)
        return f"{reading} AS {quoted(known.name)}", known.fact
    return reading, known.fact


def _star(translator: Translator) -> None:
    """Refuse all columns of tables of which some are not as Oracle has them."""
    relations = [*translator.scope, *translator.aliases.values()]
    chosen = [one for relation in relations for one in relation.columns.values()]
    odd = next((one.name for one in chosen if not one.is_plain), None)
    if odd is not None:
        raise UntranslatableError(f"it selects *, and the type of {odd} is a choice")


_PSEUDO: Final = {
    "USER": ("UPPER(CAST(CURRENT_USER AS TEXT))", Fact(ValueKind.TEXT, filled=True)),
    "SYSTIMESTAMP": ("STATEMENT_TIMESTAMP()", TIMESTAMPTZ),
    "SESSIONTIMEZONE": ("CURRENT_SETTING('TimeZone')", TEXT),
    "ROWNUM": ("ROW_NUMBER() OVER ()", Fact(ValueKind.INTEGER, filled=True)),
}


def _sequence(translator: Translator, node: exp.Column, function: str) -> tuple[str, Fact]:
    owner = node.args.get("db")
    name = translator.plain(node.args["table"])
    schema = translator.plain(owner) if owner else translator.owner
    found = translator.relations.sequence(schema, name)
    if found is None:
        raise UntranslatableError(f"there is no sequence {schema}.{name}")
    text = ".".join(map(quoted, found)).replace("'", "''")
    return f"{function}('{text}')", Fact(ValueKind.INTEGER, filled=True)
