"""Functions, procedures and triggers as statements that make them in PostgreSQL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.schema.plsql.body import Body
from olr_pg.schema.plsql.cursor import Cursor
from olr_pg.schema.plsql.routine_sql import RoutineSql
from olr_pg.schema.plsql.types import Typed, read_type, variable
from olr_pg.schema.presence import has_routine, has_trigger
from olr_pg.schema.scopes import Source
from olr_pg.schema.statement import Statement
from olr_pg.schema.translating import UntranslatableError, quoted
from olr_pg.schema.value_kinds import ValueKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.inventory import Trigger, UnitSource
    from olr_pg.schema.relations import Relation, Relations

_TAG: Final = "$olr_pg$"
_CONFLICT: Final = "#variable_conflict use_column"
_DEFINER: Final = (
    "in Oracle it runs with the rights of its owner: add SECURITY DEFINER if callers need them"
)
_OF_COLUMNS: Final = re.compile(r"\bUPDATE\s+OF\s+(.+?)\s+(?:OR|ON)\s", re.IGNORECASE | re.DOTALL)
_NAMED_OTHERWISE: Final = re.compile(
    r"\b(REFERENCING\s+(?!(NEW\s+(AS\s+)?NEW|OLD\s+(AS\s+)?OLD)\b)|FOLLOWS|PRECEDES)\b",
    re.IGNORECASE,
)
_SAMPLES: Final = {
    ValueKind.INTEGER: "1",
    ValueKind.NUMBER: "1.5",
    ValueKind.FLOAT: "1.5",
    ValueKind.TEXT: "'a'",
    ValueKind.CHAR: "'a'",
    ValueKind.DATE: "'2026-01-31'",
    ValueKind.TIMESTAMP: "'2026-01-31'",
    ValueKind.BOOLEAN: "true",
}


class _Parameter(NamedTuple):
    name: str
    mode: str
    typed: Typed
    default: str


def routine_statement(source: UnitSource, relations: Relations) -> Statement:
    """Return the statement that makes a function or procedure, or the reason why there is none."""
    kind = source.kind.lower()
    made = Statement("by hand", source.full_name, "", source=source.text, what=kind)
    if kind not in ("function", "procedure"):
        return made.refused("it is PL/SQL")
    try:
        return _routine(source, relations, made._replace(kind=kind, what=""))
    except UntranslatableError as error:
        return made.refused(f"it is PL/SQL: {error}")


def _routine(source: UnitSource, relations: Relations, made: Statement) -> Statement:
    cursor, sql = Cursor(source.text), RoutineSql(relations, source.owner)
    cursor.expect(source.kind)
    cursor.path()
    parameters = _parameters(cursor, sql)
    returns = None
    if cursor.take("RETURN"):
        returns = read_type(cursor, relations, source.owner, {}, sized=False)
        if any(one.mode for one in parameters):
            raise UntranslatableError("a function with OUT parameters")
    is_definer, is_fixed = _options(cursor)
    first = tuple(
        f"{variable(one.name)} := NULLIF({variable(one.name)}, '');"
        for one in parameters
        if one.typed.fact.kind is ValueKind.TEXT and one.mode != "OUT "
    )
    lines = Body(cursor, sql, returns).block(first)
    _check_end(cursor)
    schema, name = relations.code_name(source.owner, source.name)
    target = f"{quoted(schema)}.{quoted(name)}"
    listed = ", ".join(
        f"{one.mode}{variable(one.name)} {one.typed.sql}{one.default}" for one in parameters
    )
    gives = f" RETURNS {returns.sql}" if returns is not None else ""
    stable = " IMMUTABLE" if is_fixed and sql.is_pure and returns is not None else ""
    text = "\n".join([_CONFLICT, *lines])
    return made._replace(
        sql=f"CREATE {source.kind} {target}({listed}){gives} LANGUAGE plpgsql{stable}"
        f" AS {_TAG}\n{text}\n{_TAG}",
        present=has_routine(schema, name),
        remark="; ".join([*([_DEFINER] if is_definer else []), *dict.fromkeys(sql.remarks)]),
        trial=_trial(target, parameters) if returns is not None and sql.reads_only else "",
    )


def _trial(target: str, parameters: Sequence[_Parameter]) -> str:
    values = [_SAMPLES.get(one.typed.fact.kind, "NULL") for one in parameters]
    typed = (
        f"CAST({value} AS {one.typed.sql})" for value, one in zip(values, parameters, strict=True)
    )
    return f"SELECT {target}({', '.join(typed)})"


def _parameters(cursor: Cursor, sql: RoutineSql) -> list[_Parameter]:
    found = list[_Parameter]()
    while cursor.take("(") if not found else cursor.take(","):
        name = cursor.name()
        given, taken = cursor.take("IN"), cursor.take("OUT")
        cursor.take("NOCOPY")
        typed = read_type(cursor, sql.relations, sql.owner, sql.types, sized=False)
        default = ""
        if cursor.take(":=") or cursor.take("DEFAULT"):
            default = f" DEFAULT {sql.value(cursor.until(',', ')'), typed.fact)}"
        mode = ("INOUT " if given else "OUT ") if taken else ""
        found.append(_Parameter(name, mode, typed, default))
        sql.types = {**sql.types, name: typed}
    if found:
        cursor.expect(")")
    return found


def _options(cursor: Cursor) -> tuple[bool, bool]:
    """Read what stands before the body: is it run as its owner, and is it deterministic?"""
    is_definer, is_fixed = True, False
    while not (cursor.take("IS") or cursor.take("AS")):
        if cursor.take("DETERMINISTIC"):
            is_fixed = True
        elif cursor.take("AUTHID", "CURRENT_USER"):
            is_definer = False
        elif not (
            cursor.take("AUTHID", "DEFINER")
            or cursor.take("PARALLEL_ENABLE")
            or cursor.take("RESULT_CACHE")
        ):
            raise UntranslatableError(f"{cursor.word() or 'something'} before its body")
    return is_definer, is_fixed


def _check_end(cursor: Cursor) -> None:
    cursor.take("/")
    if not cursor.is_done:
        raise UntranslatableError("it goes on behind its end")


def trigger_statement(trigger: Trigger, relations: Relations) -> Statement:
    """Return the statement that makes a trigger and its function, or why there is none."""
    on = f"{trigger.table_owner}.{trigger.table}" if trigger.table else trigger.base
    relation = relations.find(trigger.table_owner, trigger.table) if trigger.table else None
    name = relations.name(trigger.name)
    source = (
        f"CREATE TRIGGER {trigger.full_name} {trigger.kind} {trigger.event} ON {on}\n"
        + (f"WHEN ({trigger.when})\n" if trigger.when else "")
        + trigger.body
    )
    table = f"{quoted(relation.schema)}.{quoted(relation.name)}" if relation else ""
    made = Statement(
        *("by hand", trigger.full_name, "", "", source),
        present=has_trigger(table, name) if relation else "",
        what="trigger",
    )
    try:
        if relation is None:
            raise UntranslatableError(f"it is on {on}")
        text, remarks = _trigger(trigger, relations, relation)
    except UntranslatableError as error:
        return made.refused(f"its body is PL/SQL: {error}")
    remark = "; ".join(dict.fromkeys(remarks))
    return made._replace(kind="trigger", sql=text, what="", remark=remark)


def _trigger(trigger: Trigger, relations: Relations, relation: Relation) -> tuple[str, list[str]]:
    """Return the statements, and what is otherwise in the target."""
    when = {"BEFORE EACH ROW": "BEFORE", "AFTER EACH ROW": "AFTER", "INSTEAD OF": "INSTEAD OF"}
    if trigger.kind not in when:
        raise UntranslatableError(f"a trigger of the kind {trigger.kind}: once for each statement")
    if not trigger.enabled:
        raise UntranslatableError("it is disabled in the source")
    if _NAMED_OTHERWISE.search(trigger.head):
        raise UntranslatableError("REFERENCING, FOLLOWS or PRECEDES")
    events = _events(trigger, relation)
    sql = RoutineSql(relations, trigger.owner)
    for record in ("NEW", "OLD"):
        sql.records[record] = Source(record, record.lower(), relation.columns)
    gives = "OLD" if trigger.event == "DELETE" else "NEW"
    if trigger.event != "DELETE" and "DELETE" in trigger.event:
        gives = "COALESCE(NEW, OLD)"
    gives = "NULL" if trigger.kind.startswith("AFTER") else gives
    lines = Body(Cursor(trigger.body), sql, None, f"RETURN {gives};").block()
    body = ["BEGIN", *(f"    {line}" for line in lines), f"    RETURN {gives};", "END;"]
    if trigger.when:
        condition = sql.value(trigger.when)
        body[1:1] = [f"    IF ({condition}) IS NOT TRUE THEN RETURN {gives}; END IF;"]
    name = relations.name(trigger.name)
    function = f"{quoted(relation.schema)}.{quoted(f'{name}_fn'[:63])}"
    text = "\n".join([_CONFLICT, *body])
    return (
        f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS {_TAG}\n{text}\n"
        f"{_TAG};\n"
        f"CREATE TRIGGER {quoted(name)} {when[trigger.kind]} {events}"
        f" ON {quoted(relation.schema)}.{quoted(relation.name)}"
        f" FOR EACH ROW EXECUTE FUNCTION {function}()"
    ), sql.remarks


def _events(trigger: Trigger, relation: Relation) -> str:
    """Write the events; UPDATE with its columns, which stand in the head alone."""
    found = trigger.event
    if "UPDATE" not in found or trigger.kind == "INSTEAD OF":
        return found
    if not trigger.head:
        raise UntranslatableError(
            "whether it is UPDATE OF some columns is not in this inventory: export it again"
        )
    columns = _OF_COLUMNS.search(trigger.head)
    if columns is None:
        return found
    names = [one.strip() for one in columns[1].split(",")]
    names = [one[1:-1] if one.startswith('"') else one.upper() for one in names]
    if any(name not in relation.columns for name in names):
        raise UntranslatableError("UPDATE OF a column that its table has not")
    listed = ", ".join(quoted(relation.columns[name].name) for name in names)
    return found.replace("UPDATE", f"UPDATE OF {listed}")
