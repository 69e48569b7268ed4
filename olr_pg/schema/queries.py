"""The frame of a query: tables, outer joins of the old form, DUAL, ROWNUM, the names of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.transforms import eliminate_join_marks

from olr_pg.schema.translating import UntranslatableError

if TYPE_CHECKING:
    from olr_pg.schema.relations import Relation
    from olr_pg.schema.translating import Translator


def prepare_query(tree: exp.Query, translator: Translator) -> exp.Expr:
    """Resolve the tables and rewrite what PostgreSQL writes otherwise.

    Raises:
        UntranslatableError: with the reason.
    """
    ctes = {translator.plain(cte.args["alias"].this) for cte in tree.find_all(exp.CTE)}
    for node in list(tree.find_all(exp.Table)):
        _check_table(node)
        is_cte = translator.plain(node.this) in ctes and not node.args.get("db")
        if not is_cte and translator.plain(node.this) != "DUAL":
            _find(node, translator)
    found = _outer_joins(tree, translator)
    for select in list(found.find_all(exp.Select)):
        _row_limit(select)
    for node in list(found.find_all(exp.Table)):
        _name(node, translator, ctes)
    _fold_aliases(found, translator)
    _name_subqueries(found)
    return found


def _sources(select: exp.Expr) -> list[exp.Expr]:
    """Return the tables and subqueries that a SELECT reads."""
    begin = select.args.get("from_")
    return [one.this for one in (*([begin] if begin else []), *(select.args.get("joins") or ()))]


def _name_subqueries(tree: exp.Expr) -> None:
    """Name the subqueries in FROM that have no name: PostgreSQL wants one before version 16."""
    for select in tree.find_all(exp.Select):
        for number, source in enumerate(_sources(select), 1):
            if isinstance(source, exp.Subquery) and not source.args.get("alias"):
                name = exp.to_identifier(f"subquery_{number}", quoted=True)
                source.set("alias", exp.TableAlias(this=name))


def is_of_table(node: exp.Column, name: str, translator: Translator) -> bool:
    """Tell whether a column is one of a table or view, and not of a subquery that has read it."""
    if node.args.get("table"):
        return True
    select = node.find_ancestor(exp.Select)
    while select is not None:
        found = [translator.tables.get(id(source)) for source in _sources(select)]
        if any(one is not None and name in one.columns for one in found):
            return True
        if None in found:
            return False
        select = select.find_ancestor(exp.Select)
    return True


def _check_table(node: exp.Table) -> None:
    if not isinstance(node.this, exp.Identifier):
        raise UntranslatableError("it reads a collection: TABLE() of a function")
    if "@" in node.name:
        raise UntranslatableError("it reads over a database link")


def _find(node: exp.Table, translator: Translator) -> None:
    db = node.args.get("db")
    owner = translator.plain(db) if db else translator.owner
    name = translator.plain(node.this)
    relation = translator.relations.find(owner, name)
    if relation is None:
        raise UntranslatableError(f"it reads {owner}.{name}, which is not in these schemas")
    alias = node.args.get("alias")
    called = translator.plain(alias.this) if alias and alias.this else name
    translator.aliases[called] = relation
    translator.scope.append(relation)
    translator.read.add(f"{relation.owner}.{relation.source}")


def _outer_joins(tree: exp.Query, translator: Translator) -> exp.Expr:
    """Rewrite ``(+)`` as outer joins."""
    marked = [column for column in tree.find_all(exp.Column) if column.args.get("join_mark")]
    if not marked:
        return tree
    for select in tree.find_all(exp.Select):
        where = select.args.get("where")
        if where is None or not any(c.args.get("join_mark") for c in where.find_all(exp.Column)):
            continue
        for column in where.find_all(exp.Column):
            if not column.args.get("table") and isinstance(column.this, exp.Identifier):
                _qualify(column, translator)
    try:
        return eliminate_join_marks(tree)
    except Exception as error:
        raise UntranslatableError(f"its outer join (+) cannot be resolved: {error}") from error


def _qualify(column: exp.Column, translator: Translator) -> None:
    name = translator.plain(column.this)
    having = [alias for alias, one in translator.aliases.items() if name in one.columns]
    if len(having) == 1:
        column.set("table", exp.to_identifier(having[0], quoted=True))
    elif column.args.get("join_mark"):
        raise UntranslatableError(f"its outer join (+) is of a column {name} of no known table")


def _row_limit(select: exp.Select) -> None:
    """Rewrite a bound of ROWNUM as LIMIT, where that means the same; DUAL goes."""
    source = select.args.get("from_")
    if source is not None and isinstance(source.this, exp.Table) and not select.args.get("joins"):
        table = source.this
        named = any(column.name.upper() == "DUMMY" for column in select.find_all(exp.Column))
        if table.name.upper() == "DUAL" and not table.args.get("alias") and not named:
            select.set("from_", None)
    where = select.args.get("where")
    if where is None:
        return
    conditions = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    bounds = [one for one in conditions if _bound(one) is not None]
    if not bounds:
        if any(_is_rownum(node) for node in where.find_all(exp.Column)):
            raise UntranslatableError("ROWNUM in another condition than ROWNUM <= n")
        return
    ordered = ("order", "group", "having", "distinct", "limit")
    if any(select.args.get(part) for part in ordered) or any(
        isinstance(one, exp.AggFunc) for one in select.selects for one in one.find_all(exp.AggFunc)
    ):
        raise UntranslatableError(
            "ROWNUM beside ORDER BY or GROUP BY, which Oracle applies before these"
        )
    limit = min(bound for one in bounds if (bound := _bound(one)) is not None)
    rest = [one for one in conditions if one not in bounds]
    select.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)
    select.set("limit", exp.Limit(expression=exp.Literal.number(max(limit, 0))))


def _is_rownum(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.name.upper() == "ROWNUM"


def _bound(condition: exp.Expr) -> int | None:
    """Return how many rows a condition on ROWNUM lets through; None of another condition."""
    if not isinstance(condition, exp.LT | exp.LTE | exp.EQ) or not _is_rownum(condition.this):
        return None
    number = condition.expression
    if not isinstance(number, exp.Literal) or number.is_string or not number.name.isdigit():
        return None
    value = int(number.name)
    if isinstance(condition, exp.EQ):
        return 1 if value == 1 else 0
    return value - 1 if isinstance(condition, exp.LT) else value


def _name(node: exp.Table, translator: Translator, ctes: set[str]) -> None:
    """Give a table its name in the target, and where that differs the old one as an alias."""
    name = translator.plain(node.this)
    if name == "DUAL" and not node.args.get("db"):
        one = exp.select(exp.alias_(exp.Literal.string("X"), "dummy")).subquery("dual")
        node.replace(one)
        return
    if name in ctes and not node.args.get("db"):
        node.set("this", exp.to_identifier(translator.relations.name(name), quoted=True))
        return
    db = node.args.get("db")
    owner = translator.plain(db) if db else translator.owner
    relation: Relation | None = translator.relations.find(owner, name)
    assert relation is not None
    translator.tables[id(node)] = relation
    node.set("this", exp.to_identifier(relation.name, quoted=True))
    node.set("db", exp.to_identifier(relation.schema, quoted=True))
    called = translator.relations.name(name)
    if not node.args.get("alias") and called != relation.name:
        node.set("alias", exp.TableAlias(this=exp.to_identifier(called, quoted=True)))


def _fold_aliases(tree: exp.Expr, translator: Translator) -> None:
    """Fold the names that the query gives to tables, subqueries and columns."""
    for alias in tree.find_all(exp.TableAlias):
        if isinstance(alias.this, exp.Identifier):
            _fold(alias, "this", translator)
        for column in alias.args.get("columns") or ():
            folded = translator.relations.name(translator.plain(column), column=True)
            column.replace(exp.to_identifier(folded, quoted=True))
    for named in tree.find_all(exp.Alias):
        if isinstance(named.args.get("alias"), exp.Identifier):
            _fold(named, "alias", translator, column=True)


def _fold(node: exp.Expr, part: str, translator: Translator, *, column: bool = False) -> None:
    folded = translator.relations.name(translator.plain(node.args[part]), column=column)
    node.set(part, exp.to_identifier(folded, quoted=True))
