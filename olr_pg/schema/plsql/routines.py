"""Builds the statements that create functions, procedures and triggers in PostgreSQL."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from olr_pg.schema.plsql.body import Body
from olr_pg.schema.plsql.cursor import Cursor
from olr_pg.schema.plsql.declarations import Declarations
from olr_pg.schema.plsql.packages import (
    Package,
    Signatures,
    constants_and_state,
    has_body,
    needed,
    read_head,
    shared_declarations,
    split_package,
    target_of,
    used,
)
from olr_pg.schema.plsql.routine_sql import RoutineSql
from olr_pg.schema.plsql.types import Constant, Parameter, variable
from olr_pg.schema.presence import has_routine, has_schema, has_trigger
from olr_pg.schema.statement import Statement
from olr_pg.schema.translating import Source, UntranslatableError, quoted
from olr_pg.schema.value_kinds import ValueKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.inventory import Trigger, UnitSource
    from olr_pg.schema.relations import Relation, Relations

_CONFLICT: Final = "#variable_conflict use_column"
_DEFINER: Final = (
    "Oracle runs it with its owner's privileges: add SECURITY DEFINER if callers need these"
)
_OWNED: Final = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
_OF_INVOKER: Final = re.compile(r"\bAUTHID\s+CURRENT_USER\b", re.IGNORECASE)
_OF_COLUMNS: Final = re.compile(r"\bUPDATE\s+OF\s+(.+?)\s+(?:OR|ON)\s", re.IGNORECASE | re.DOTALL)
_ORDERED: Final = re.compile(r"\b(FOLLOWS|PRECEDES|PARENT)\b", re.IGNORECASE)
_RENAMED: Final = re.compile(r"\b(NEW|OLD)\s+(?:AS\s+)?([\w$#]+)", re.IGNORECASE)
_REFERENCING: Final = re.compile(
    r"\bREFERENCING\s+((?:(?:NEW|OLD|PARENT)\s+(?:AS\s+)?[\w$#]+\s*)+)", re.IGNORECASE
)
_HIDDEN: Final = r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/"
_ONLY_CALL: Final = re.compile(r"\s*CALL\s+(.*)", re.IGNORECASE | re.DOTALL)
_WHEN: Final = {
    "BEFORE EACH ROW": "BEFORE",
    "AFTER EACH ROW": "AFTER",
    "INSTEAD OF": "INSTEAD OF",
    "BEFORE STATEMENT": "BEFORE",
    "AFTER STATEMENT": "AFTER",
}
_COMPOUND: Final = (
    "a compound trigger: write one trigger for each timing point, and use transition tables"
    " (REFERENCING NEW TABLE) instead of the collections that its parts share"
)
_NO_TABLE: Final = "a trigger on a schema or database: use an event trigger or log_connections"
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


def routine_statement(
    source: UnitSource, relations: Relations, signatures: Signatures | None = None
) -> Statement:
    """Return the statement that creates a function or procedure; if it cannot be translated, the
    statement has the reason.

    Args:
        signatures: finds the routines that it may call.
    """
    kind = source.kind.lower()
    made = Statement("by hand", source.full_name, "", source=source.text, what=kind)
    if kind not in ("function", "procedure"):
        return made.refused(f"units of the kind {source.kind} are not translated")
    try:
        sql = RoutineSql(relations, source.owner, signatures.find if signatures else None)
        target = relations.code_name(source.owner, source.name)
        return _routine(source.text, sql, target, made._replace(kind=kind, what=""))
    except UntranslatableError as error:
        return made.refused(f"the PL/SQL is not translated: {error}")


def package_statements(
    source: UnitSource, specification: str, relations: Relations, signatures: Signatures
) -> list[Statement]:
    """Return the statements that create a package's schema and routines.

    Args:
        source: the package body.
        specification: the text of the package specification.
    """
    whole = Statement("by hand", source.full_name, "", source=source.text, what=source.kind.lower())
    try:
        body, declared = split_package(source.text), split_package(specification)
        both = Package([*declared.declarations, *body.declarations], [])
        constants, state = constants_and_state(both, relations, source.owner)
    except UntranslatableError as error:
        return [whole.refused(f"the PL/SQL is not translated: {error}")]
    schema = relations.name(source.name)
    if relations.has_schema(schema):
        return [whole.refused(f"the schema {schema} already exists for tables: rename the package")]
    if signatures.is_shared(source.name):
        return [whole.refused("several schemas have a package of this name: rename one of them")]
    found = [
        _of_package(
            source, text, relations, signatures, (constants, state, shared_declarations(both))
        )
        for text in body.routines
        if has_body(text)
    ]
    if _OF_INVOKER.search(specification):
        found = [one._replace(remark=one.remark.removeprefix(_DEFINER)) for one in found]
    if body.is_initialised:
        found.append(
            whole.refused(
                "the initialisation statements of the package: run them at the beginning of each"
                " session"
            )
        )
    if not any(one.runs for one in found):
        return [*found, whole.refused("none of its routines is translated")]
    made = Statement("schema", source.full_name, f"CREATE SCHEMA {quoted(schema)}")
    return [made._replace(present=has_schema(schema), what="package"), *found]


def _of_package(
    source: UnitSource,
    text: str,
    relations: Relations,
    signatures: Signatures,
    known: tuple[list[Constant], dict[str, str], list[tuple[str, str]]],
) -> Statement:
    constants, state, shared = known
    cursor = Cursor(text)
    kind = cursor.word().lower()
    cursor.step()
    name = cursor.name()
    made = Statement("by hand", f"{source.full_name}.{name}", "", source=text, what=kind)
    try:
        if signatures.is_overloaded(source.owner, source.name, name):
            raise UntranslatableError("the routine is overloaded: give each routine its own name")
        for missing in used(state, text):
            raise UntranslatableError(state[missing])
        sql = RoutineSql(relations, source.owner, signatures.find, source.name)
        sql.constants = [one for one in constants if used([one.name], text)]
        sql.shared = needed(shared, text)
        # The types of parameters can be subtypes of the package.
        subtypes = [one for one in sql.shared if one.upper().startswith("SUBTYPE")]
        Declarations(cursor, sql).repeat(subtypes)
        target = target_of(relations, source.owner, source.name, name)
        return _routine(text, sql, target, made._replace(kind=kind, what=""))
    except UntranslatableError as error:
        return made.refused(f"the PL/SQL is not translated: {error}")


def with_their_calls(statements: list[Statement]) -> list[Statement]:
    """Return the statements; refuse each routine that directly or indirectly calls a refused
    routine.
    """
    reasons = {one.name: one.reason for one in statements if not one.runs}
    changed = True
    while changed:
        changed = False
        for at, one in enumerate(statements):
            missing = next((name for name in one.calls if name in reasons), None)
            if one.runs and missing is not None:
                reason = f"the code calls {missing}, which is not created"
                kind = {"kind": "by hand", "what": one.kind, "sql": "", "trial": ""}
                statements[at] = one._replace(**kind).refused(reason)  # type: ignore[arg-type]
                reasons[one.name] = reason
                changed = True
    return statements


def _routine(text: str, sql: RoutineSql, named: tuple[str, str], made: Statement) -> Statement:
    cursor = Cursor(text)
    kind, called, parameters, returns, is_definer, is_fixed = read_head(cursor, sql)
    sql.labels[called] = {one.name: one.typed for one in parameters}
    schema, name = named
    first = tuple(
        f"{variable(one.name)} := NULLIF({variable(one.name)}, '');"
        for one in parameters
        if one.typed.fact.kind is ValueKind.TEXT and one.mode != "OUT "
    )
    is_named = re.search(rf"\b{re.escape(called)}\s*\.", cursor.text, re.IGNORECASE)
    lines = Body(cursor, sql, returns).block(first, called if is_named else "")
    _check_end(cursor)
    target = f"{quoted(schema)}.{quoted(name)}"
    listed = ", ".join(
        f"{one.mode}{variable(one.name)} {one.typed.sql}{one.default}" for one in parameters
    )
    gives = f" RETURNS {returns.sql}" if returns is not None else ""
    stable = " IMMUTABLE" if is_fixed and sql.is_pure and returns is not None else ""
    text = "\n".join([_CONFLICT, *lines])
    return made._replace(
        sql=f"CREATE {kind} {target}({listed}){gives} LANGUAGE plpgsql{stable} AS {_body(text)}",
        present=has_routine(schema, name),
        remark="; ".join([*([_DEFINER] if is_definer else []), *dict.fromkeys(sql.remarks)]),
        trial=_trial(target, parameters) if returns is not None and sql.reads_only else "",
        calls=tuple(sorted(sql.calls)),
    )


def _trial(target: str, parameters: Sequence[Parameter]) -> str:
    values = [_SAMPLES.get(one.typed.fact.kind, "NULL") for one in parameters]
    typed = (
        f"CAST({value} AS {one.typed.sql})" for value, one in zip(values, parameters, strict=True)
    )
    return f"SELECT {target}({', '.join(typed)})"


def _check_end(cursor: Cursor) -> None:
    cursor.take("/")
    if not cursor.is_done:
        raise UntranslatableError("the text continues after its END")


def trigger_statement(
    trigger: Trigger, relations: Relations, signatures: Signatures | None = None
) -> Statement:
    """Return the statement that creates a trigger and its function; if it cannot be translated, the
    statement has the reason.

    Args:
        signatures: finds the routines that it may call.
    """
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
            raise UntranslatableError(f"the trigger is defined on {on}, which is not converted")
        if relations.is_stored_query(trigger.table_owner, trigger.table):
            raise UntranslatableError("PostgreSQL has no triggers on materialized views")
        text, sql = _trigger(trigger, relations, relation, signatures)
    except UntranslatableError as error:
        return made.refused(f"the trigger is not translated: {error}")
    remark, calls = "; ".join(dict.fromkeys(sql.remarks)), tuple(sorted(sql.calls))
    return made._replace(kind="trigger", sql=text, what="", remark=remark, calls=calls)


def _trigger(
    trigger: Trigger, relations: Relations, relation: Relation, signatures: Signatures | None
) -> tuple[str, RoutineSql]:
    """Return the SQL that creates a trigger and its function, and the object that translated the
    SQL in its body.
    """
    if trigger.kind not in _WHEN:
        raise UntranslatableError(_COMPOUND if trigger.kind == "COMPOUND" else _NO_TABLE)
    is_of_rows = not trigger.kind.endswith("STATEMENT")
    if not trigger.enabled:
        raise UntranslatableError("the trigger is disabled in the source")
    if _ORDERED.search(trigger.head):
        raise UntranslatableError(
            "FOLLOWS, PRECEDES or PARENT: PostgreSQL fires triggers in the order of their names"
        )
    events = _events(trigger, relation)
    sql = RoutineSql(relations, trigger.owner, signatures.find if signatures else None)
    for record in ("NEW", "OLD") if is_of_rows else ():
        sql.records[record] = Source(record, record.lower(), relation.columns, optional=True)
    gives = "OLD" if trigger.event == "DELETE" else "NEW"
    if trigger.event != "DELETE" and "DELETE" in trigger.event:
        gives = "COALESCE(NEW, OLD)"
    gives = "NULL" if trigger.kind.startswith("AFTER") or not is_of_rows else gives
    text, condition = _with_usual_names(trigger)
    lines = Body(Cursor(text), sql, None, f"RETURN {gives};").block()
    body = ["BEGIN", *(f"    {line}" for line in lines), f"    RETURN {gives};", "END;"]
    if condition:
        condition = sql.value(condition)
        body[1:1] = [f"    IF ({condition}) IS NOT TRUE THEN RETURN {gives}; END IF;"]
    name = relations.name(trigger.name)
    function = f"{quoted(relation.schema)}.{quoted(f'{name}_fn'[:63])}"
    text = "\n".join([_CONFLICT, *body])
    # Oracle runs a trigger with its owner's privileges. So users who may change the table need no
    # privileges on the other tables and sequences that the trigger uses. No user may execute the
    # trigger's function directly.
    owned = sql.needs_privileges
    rights = f" {_OWNED}" if owned else ""
    only_here = f"REVOKE ALL ON FUNCTION {function}() FROM PUBLIC;\n" if owned else ""
    return (
        f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql{rights} AS"
        f" {_body(text)};\n{only_here}"
        f"CREATE TRIGGER {quoted(name)} {_WHEN[trigger.kind]} {events}"
        f" ON {quoted(relation.schema)}.{quoted(relation.name)}"
        f" FOR EACH {'ROW' if is_of_rows else 'STATEMENT'} EXECUTE FUNCTION {function}()"
    ), sql


def _with_usual_names(trigger: Trigger) -> tuple[str, str]:
    """Return (the body, the WHEN condition) with NEW and OLD instead of the names of REFERENCING. A
    body that is only a call becomes a block.
    """
    body, condition = trigger.body, trigger.when
    called = _ONLY_CALL.fullmatch(body)
    if called is not None:
        body = f"BEGIN {called[1].rstrip().rstrip(';')}; END;"
    clause = _REFERENCING.search(trigger.head)
    for usual, name in _RENAMED.findall(clause[1] if clause else ""):
        body = _renamed(body, rf":\s*{name}\b", f":{usual.upper()}")
        condition = _renamed(condition, rf"\b{name}(?=\s*\.)", usual.upper())
    return body, condition


def _renamed(text: str, name: str, new: str) -> str:
    """Replace a name in a text, but not in literals and comments."""
    found = re.compile(f"({_HIDDEN})|{name}", re.IGNORECASE | re.DOTALL)
    return found.sub(lambda one: one[1] or new, text)


def _body(text: str) -> str:
    """Return the text of a body in dollar quotes. A tag that the text contains would end the body,
    and PostgreSQL would execute the rest of the text when it creates the routine.
    """
    tags = (f"$olr_pg{number or ''}$" for number in itertools.count())
    tag = next(tag for tag in tags if tag not in text)
    return f"{tag}\n{text}\n{tag}"


def _events(trigger: Trigger, relation: Relation) -> str:
    """Return the trigger's events for PostgreSQL. The columns of UPDATE OF are read from the text
    of the trigger's head, because Oracle's list of events does not contain them.
    """
    found = trigger.event
    if "UPDATE" not in found or trigger.kind == "INSTEAD OF":
        return found
    if not trigger.head:
        raise UntranslatableError(
            "this inventory does not contain its UPDATE OF columns: export the dictionary again"
        )
    columns = _OF_COLUMNS.search(trigger.head)
    if columns is None:
        return found
    names = [one.strip() for one in columns[1].split(",")]
    names = [one[1:-1] if one.startswith('"') else one.upper() for one in names]
    if any(name not in relation.columns for name in names):
        raise UntranslatableError("UPDATE OF a column that its table does not have")
    listed = ", ".join(quoted(relation.columns[name].name) for name in names)
    return found.replace("UPDATE", f"UPDATE OF {listed}")
