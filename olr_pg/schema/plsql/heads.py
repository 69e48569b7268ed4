"""Parses the heads of functions and procedures: names, parameters and return type."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from olr_pg.schema.plsql.types import Parameter, Typed, read_type
from olr_pg.schema.translating import UntranslatableError

if TYPE_CHECKING:
    from olr_pg.schema.plsql.cursor import Cursor
    from olr_pg.schema.plsql.routine_sql import RoutineSql


class Head(NamedTuple):
    """The head of a routine: everything before its body.

    Attributes:
        returns: the return type; None for a procedure.
        is_definer: whether the routine runs with the rights of its owner.
        is_fixed: whether it is declared DETERMINISTIC: for the same arguments it always returns the
            same value.
    """

    kind: str
    name: str
    parameters: tuple[Parameter, ...]
    returns: Typed | None
    is_definer: bool
    is_fixed: bool


def read_head(cursor: Cursor, sql: RoutineSql) -> Head:
    """Read the head of a routine, up to its body or to the end of a declaration. Add the parameters
    to the known variables.

    Raises:
        UntranslatableError: PostgreSQL does not have a type or option of the head.
    """
    kind = "FUNCTION" if cursor.take("FUNCTION") else "PROCEDURE"
    if kind == "PROCEDURE":
        cursor.expect("PROCEDURE")
    name = cursor.path()[-1]
    parameters = _parameters(cursor, sql)
    returns = None
    if cursor.take("RETURN"):
        returns = read_type(cursor, sql.relations, sql.owner, {}, sized=False)
        if any(one.mode for one in parameters):
            raise UntranslatableError("a function with OUT parameters")
    is_definer, is_fixed = _options(cursor)
    return Head(kind, name, tuple(parameters), returns, is_definer, is_fixed)


def _parameters(cursor: Cursor, sql: RoutineSql) -> list[Parameter]:
    found = list[Parameter]()
    while cursor.take("(") if not found else cursor.take(","):
        name = cursor.name()
        given, taken = cursor.take("IN"), cursor.take("OUT")
        cursor.take("NOCOPY")
        typed = read_type(cursor, sql.relations, sql.owner, sql.types, sized=False)
        default = ""
        if cursor.take(":=") or cursor.take("DEFAULT"):
            default = f" DEFAULT {sql.value(cursor.until(',', ')'), typed.fact)}"
        mode = ("INOUT " if given else "OUT ") if taken else ""
        found.append(Parameter(name, mode, typed, default))
        sql.types = {**sql.types, name: typed}
    if found:
        cursor.expect(")")
    return found


def _options(cursor: Cursor) -> tuple[bool, bool]:
    """Read the options before the body. Return (whether the routine runs with its owner's rights,
    whether it is deterministic).
    """
    is_definer, is_fixed = True, False
    while not (cursor.take("IS") or cursor.take("AS") or cursor.take(";") or cursor.is_done):
        if cursor.take("DETERMINISTIC"):
            is_fixed = True
        elif cursor.take("AUTHID", "CURRENT_USER"):
            is_definer = False
        elif not (
            cursor.take("AUTHID", "DEFINER")
            or cursor.take("PARALLEL_ENABLE")
            or cursor.take("RESULT_CACHE")
        ):
            raise UntranslatableError(f"the option {cursor.word() or '(none)'} before its body")
    return is_definer, is_fixed
