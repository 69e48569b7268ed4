"""Parses the types of variables and parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.schema.translating import UntranslatableError, quoted
from olr_pg.schema.value_kinds import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    NUMBER,
    PLS_INTEGER,
    RAW,
    SINGLE,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Fact,
    ValueKind,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from olr_pg.schema.plsql.cursor import Cursor
    from olr_pg.schema.relations import Relations


class Typed(NamedTuple):
    """The type of a variable in the target, and the facts about its values in Oracle."""

    sql: str
    fact: Fact


class Parameter(NamedTuple):
    """A parameter of a routine; its mode is empty for the default mode IN."""

    name: str
    mode: str
    typed: Typed
    default: str


class Signature(NamedTuple):
    """The data of a routine that is needed to translate a call of the routine.

    Attributes:
        full_name: the routine's name in the source, with owner and package.
        schema, name: the routine's schema and name in the target.
        returns: the routine's return type; None for a procedure.
    """

    full_name: str
    schema: str
    name: str
    parameters: tuple[Parameter, ...]
    returns: Typed | None


class Constant(NamedTuple):
    """A constant of a package, with the SQL of its value."""

    name: str
    typed: Typed
    value: str


_PLAIN: Final = {
    **dict.fromkeys(("PLS_INTEGER", "BINARY_INTEGER"), Typed("integer", PLS_INTEGER)),
    "SIMPLE_INTEGER": Typed("integer NOT NULL", PLS_INTEGER),
    **dict.fromkeys(("INTEGER", "INT", "SMALLINT"), Typed("numeric(38, 0)", INTEGER)),
    **dict.fromkeys(("NUMBER", "NUMERIC", "DECIMAL", "DEC"), Typed("numeric", NUMBER)),
    **dict.fromkeys(("FLOAT", "REAL", "DOUBLE"), Typed("numeric", NUMBER)),
    **dict.fromkeys(("VARCHAR2", "NVARCHAR2", "VARCHAR", "STRING"), Typed("text", TEXT)),
    **dict.fromkeys(("CLOB", "NCLOB", "LONG"), Typed("text", TEXT)),
    "BINARY_DOUBLE": Typed("double precision", FLOAT),
    "BINARY_FLOAT": Typed("real", SINGLE),
    **dict.fromkeys(("RAW", "BLOB"), Typed("bytea", RAW)),
    "BOOLEAN": Typed("boolean", BOOLEAN),
    "DATE": Typed("timestamp(0)", DATE),
    "TIMESTAMP": Typed("timestamp", TIMESTAMP),
}


_CHECKED: Final = ("NATURAL", "NATURALN", "POSITIVE", "POSITIVEN", "SIGNTYPE")


def unsized(typed: Typed) -> str:
    """Return the type to use in a CAST: varchar without its length. With the length, CAST would cut
    a text that is too long. Without the length in the CAST, the assignment to the variable reports
    the error.
    """
    return "varchar" if typed.sql.startswith("varchar(") else typed.sql


_UNSIZED: Final = {
    ValueKind.NUMBER: Typed("numeric", NUMBER),
    ValueKind.TEXT: Typed("text", TEXT),
    ValueKind.TIMESTAMP: Typed("timestamp", TIMESTAMP),
}


def read_type(
    cursor: Cursor, relations: Relations, owner: str, known: Mapping[str, Typed], *, sized: bool
) -> Typed:
    """Read a type, or %TYPE of a column or variable.

    Args:
        known: the types of the known variables.
        sized: whether a text type keeps its length. In Oracle, the types of parameters have no
            length.

    Raises:
        UntranslatableError: the type is user-defined, a record or another unsupported type.
    """
    found = _type(cursor, relations, owner, known, sized=sized)
    if sized:
        return found
    if found.fact.kind is ValueKind.CHAR:
        raise UntranslatableError("a parameter or result of the type CHAR, whose length is unknown")
    # With %TYPE, a parameter has the type of the column, but not its precision and length.
    return _UNSIZED.get(found.fact.kind, found)


def _type(
    cursor: Cursor, relations: Relations, owner: str, known: Mapping[str, Typed], *, sized: bool
) -> Typed:
    names = cursor.path()
    if cursor.take("%"):
        cursor.expect("TYPE")
        return _anchored(names, relations, owner, known, sized=sized)
    name = names[0]
    if len(names) == 1 and subtype(name) in known:
        return known[subtype(name)]
    if name in _CHECKED:
        raise UntranslatableError(f"the type {name}: use PLS_INTEGER and check the value")
    if name == "SYS_REFCURSOR":
        raise UntranslatableError(
            "the type SYS_REFCURSOR: return the rows (RETURNS TABLE), or a refcursor, which exists"
            " only in the transaction of the caller"
        )
    if name == "DOUBLE":
        cursor.expect("PRECISION")
    if name in ("CHAR", "NCHAR", "CHARACTER"):
        length = int((_sizes(cursor) or ["1"])[0])
        return Typed(f"char({length})", Fact(ValueKind.CHAR, length))
    found = _PLAIN.get(name) if len(names) == 1 else None
    if found is None or cursor.word() == "%":
        raise UntranslatableError(f"the type {'.'.join(names)} is not supported")
    sizes = _sizes(cursor)
    if sizes and name == "FLOAT":
        raise UntranslatableError("the type FLOAT with a binary precision: use NUMBER")
    if name == "TIMESTAMP" and cursor.take("WITH", "TIME", "ZONE"):
        return Typed("timestamp with time zone", TIMESTAMPTZ)
    if cursor.word() in ("WITH", "RANGE"):
        raise UntranslatableError(f"the type {name} {cursor.word()} … is not supported")
    if sizes and found.fact.kind is ValueKind.TEXT and sized:
        return Typed(f"varchar({sizes[0]})", TEXT)
    if sizes and name in ("NUMBER", "NUMERIC", "DECIMAL", "DEC"):
        fact = INTEGER if len(sizes) == 1 or sizes[1] == "0" else NUMBER
        return Typed(f"numeric({', '.join(sizes)})", fact)
    if sizes and found.fact.kind is ValueKind.TIMESTAMP:
        return Typed(f"timestamp({min(int(sizes[0]), 6)})", TIMESTAMP)
    return found


def _sizes(cursor: Cursor) -> list[str]:
    if not cursor.take("("):
        return []
    found = [text.split()[0] for text in cursor.list_until(")")]
    if not all(text.isdigit() for text in found):
        raise UntranslatableError(f"the size ({', '.join(found)}) is not supported")
    return found


def _anchored(
    names: list[str],
    relations: Relations,
    owner: str,
    known: Mapping[str, Typed],
    *,
    sized: bool,
) -> Typed:
    if len(names) == 1 and names[0] in known:
        return known[names[0]]
    table = relations.find(*names[:2]) if len(names) == 3 else relations.find(owner, names[0])
    column = table.columns.get(names[-1]) if table is not None and len(names) > 1 else None
    if column is None or column.made is None or not column.is_plain:
        raise UntranslatableError(f"the type {'.'.join(names)}%TYPE is not supported")
    if not sized and column.fact.kind is ValueKind.INTEGER:
        return Typed("numeric", NUMBER)
    return Typed(column.made.name, column.fact._replace(filled=False))


_TAKEN: Final = frozenset(
    {
        *("found", "sqlstate", "tg_op"),
        *("ctid", "cmin", "cmax", "xmin", "xmax", "tableoid"),
    }
)
"""Names of variables of PL/pgSQL, and of system columns, which a query would read instead."""


def own_name(name: str) -> str:
    """Return the name of a variable in the target, without quotes."""
    lower = name.lower()
    return f"{lower}_" if lower in _TAKEN else lower


def variable(name: str) -> str:
    """Return the name of a variable in the target."""
    return quoted(own_name(name))


def subtype(name: str) -> str:
    """Return the key of a subtype among the types of variables."""
    return f"{name}%SUBTYPE"
