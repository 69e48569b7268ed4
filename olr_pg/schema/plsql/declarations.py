"""Translates the declarations of a PL/SQL block: variables, records, subtypes, cursors and
exceptions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from olr_pg.schema.parts import FUNCTIONS
from olr_pg.schema.plsql.cursor import Cursor
from olr_pg.schema.plsql.exceptions import Declared, declared, numbered
from olr_pg.schema.plsql.routine_sql import locked
from olr_pg.schema.plsql.types import (
    Constant,
    Typed,
    own_name,
    read_type,
    subtype,
    unsized,
    variable,
)
from olr_pg.schema.relation_columns import RelationColumn
from olr_pg.schema.translating import Source, UntranslatableError, quoted
from olr_pg.schema.value_kinds import BOOLEAN, INTEGER, ValueKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.schema.plsql.routine_sql import RoutineSql

_COMPILING: Final = ("INLINE", "UDF", "COVERAGE", "DEPRECATE", "RESTRICT_REFERENCES")
"""Each PRAGMA that has no effect on the results."""
_NESTED: Final = {
    "PROCEDURE": "the code declares a nested procedure: make it a routine of its own",
    "FUNCTION": "the code declares a nested function: make it a routine of its own",
}
_TYPES: Final = {
    ValueKind.INTEGER: "numeric",
    ValueKind.NUMBER: "numeric",
    ValueKind.FLOAT: "double precision",
    ValueKind.TEXT: "text",
    ValueKind.DATE: "timestamp(0)",
    ValueKind.TIMESTAMP: "timestamp",
    ValueKind.RAW: "bytea",
    ValueKind.BOOLEAN: "boolean",
}
"""The types of the fields of a record before a row is assigned to it."""


class Declarations:
    """The declarations of the PL/SQL block at the cursor's position, and the names that are known
    there.
    """

    def __init__(self, cursor: Cursor, sql: RoutineSql) -> None:
        self._cursor = cursor
        self._sql = sql
        self._queries: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._cursors: dict[str, list[str]] = {}
        self._parameters: dict[str, list[tuple[str, Typed, str]]] = {}
        self._exceptions: dict[str, Declared] = {}
        self._declared: list[Declared] = []
        self._initial: list[str] = []
        self._seed = ""
        self._array_types: dict[str, tuple[Typed, str]] = {}
        self._limits: dict[str, str] = {}
        self._locking = set[str]()
        self._fills: dict[str, object] = {}
        self._kinds: dict[str, str] = {}
        self._record_types: dict[
            str, tuple[Mapping[str, RelationColumn], list[tuple[str, str, str]]]
        ] = {}

    def repeat(self, texts: Sequence[str]) -> list[str]:
        """Translate declarations of the package. The package's exceptions are the same in all
        routines.
        """
        sql, outer = self._sql, self._cursor
        self._cursor, self._seed = (
            Cursor(f"{'; '.join(texts)}; BEGIN"),
            f"{sql.owner}.{sql.package}",
        )
        try:
            return self._declarations() if texts else []
        finally:
            self._cursor, self._seed = outer, ""

    def _declarations(self) -> list[str]:
        cursor, found = self._cursor, list[str]()
        while cursor.word() != "BEGIN":
            if cursor.take("PRAGMA", "EXCEPTION_INIT", "("):
                self._numbered(*cursor.list_until(")"))
                continue
            if cursor.take("PRAGMA"):
                self._pragma()
                continue
            if cursor.word() in _NESTED:
                raise UntranslatableError(_NESTED[cursor.word()])
            if cursor.take("CURSOR"):
                found += self._cursor_declaration()
                continue
            if cursor.take("TYPE"):
                self._type()
                continue
            if cursor.take("SUBTYPE"):
                self._subtype()
                continue
            name = cursor.name()
            if cursor.take("EXCEPTION", ";"):
                seed = self._seed or f"{cursor.text}.{cursor.place}"
                self._declared.append(declared(f"{seed}.{name}", self._declared))
                self._exceptions = {**self._exceptions, name: self._declared[-1]}
                continue
            collection = self._collection(name)
            if collection:
                found += collection
                continue
            row = self._row_declaration(name) or self._record(name)
            if row:
                found.append(row)
                continue
            constant = " CONSTANT" if cursor.take("CONSTANT") else ""
            sql = self._sql
            typed = read_type(cursor, sql.relations, sql.owner, sql.types, sized=True)
            filled = " NOT NULL" if cursor.take("NOT", "NULL") else ""
            value = ""
            if cursor.take(":=") or cursor.take("DEFAULT"):
                value = f" := {sql.value(cursor.until(';'), typed.fact)}"
            cursor.expect(";")
            sql.types = {**sql.types, name: typed._replace()}  # a variable of its own
            found.append(f"{variable(name)}{constant} {typed.sql}{filled}{value};")
        return found

    def _pragma(self) -> None:
        """Read a PRAGMA. Ignore one that only changes how Oracle compiles a unit."""
        cursor, name = self._cursor, self._cursor.word()
        advice = {"AUTONOMOUS_TRANSACTION": "use dblink or a table that the application writes"}
        if name not in _COMPILING:
            raise UntranslatableError(
                f"PRAGMA {name}: {advice.get(name, 'PostgreSQL has no equivalent')}"
            )
        cursor.until(";")
        cursor.expect(";")

    def _subtype(self) -> None:
        cursor, sql = self._cursor, self._sql
        name = cursor.name()
        cursor.expect("IS")
        typed = read_type(cursor, sql.relations, sql.owner, sql.types, sized=True)
        if cursor.take("NOT", "NULL"):
            typed = typed._replace(sql=f"{typed.sql} NOT NULL")
        cursor.expect(";")
        sql.types = {**sql.types, subtype(name): typed}

    def _own_variable(self, name: str, typed: Typed, value: str = "") -> str:
        self._sql.types = {**self._sql.types, name: typed}
        return f"{variable(name)} {typed.sql}{f' := {value}' if value else ''};"

    def _package_constant(self, one: Constant) -> str:
        self._sql.types = {**self._sql.types, one.name: one.typed}
        return f"{variable(one.name)} CONSTANT {one.typed.sql} := {one.value};"

    def _numbered(self, name: str, number: str) -> None:
        self._cursor.expect(";")
        if name.upper() not in self._exceptions:
            raise UntranslatableError(f"EXCEPTION_INIT of {name}, which the block does not declare")
        self._exceptions = {**self._exceptions, name.upper(): numbered(name, number)}

    def _cursor_declaration(self) -> list[str]:
        """Translate a cursor declaration. In PL/pgSQL, all columns of a cursor that OPEN opens need
        names.
        """
        cursor, sql = self._cursor, self._sql
        name, known = cursor.name(), sql.types
        parameters, facts = list[str](), list[tuple[str, Typed, str]]()
        while cursor.take("(") if not parameters else cursor.take(","):
            parameter = cursor.name()
            cursor.take("IN")
            typed = read_type(cursor, sql.relations, sql.owner, sql.types, sized=False)
            default = ""
            if cursor.take(":=") or cursor.take("DEFAULT"):
                default = sql.value(cursor.until(",", ")"), typed.fact)
            sql.types = {**sql.types, parameter: typed}
            parameters.append(f"{variable(parameter)} {typed.sql}")
            facts.append((parameter, typed, default))
        if parameters:
            cursor.expect(")")
        if cursor.take("RETURN"):
            cursor.path()
            cursor.take("%")
            cursor.take("ROWTYPE")
            if cursor.take(";"):  # the cursor follows, with its query
                sql.types = known
                return []
        cursor.expect("IS")
        query = cursor.until(";")
        cursor.expect(";")
        named = rf"\b(OPEN\s+{name}\b|{name}\s*%\s*(ROWTYPE|ROWCOUNT)\b)"
        is_opened = re.search(named, cursor.text, re.IGNORECASE)
        if not (is_opened or parameters):
            self._queries[name] = query, {**sql.types, **sql.records}
            return []
        text, outputs = sql.query(query)
        sql.types = known
        names = [one.column.name or f"c{number}" for number, one in enumerate(outputs, 1)]
        self._cursors[name] = names
        self._parameters[name] = facts
        columns = {
            one.name or f"C{number}": RelationColumn(own, one.column.fact)
            for number, (one, own) in enumerate(zip(outputs, names, strict=True), 1)
        }
        row = f"{name}%ROW"
        sql.records = {**sql.records, row: Source(row, own_name(row), columns, optional=True)}
        listed, given = ", ".join(map(quoted, names)), f"({', '.join(parameters)}) "
        rows = f'SELECT * FROM ({text}) AS "rows" ({listed})'  # noqa: S608 - translated
        if " FOR UPDATE" in text:
            rows = locked(text, listed)
            self._locking.add(name)
        sql.open[name] = False
        return [
            f"{variable(name)} CURSOR {given if parameters else ''}FOR {rows};",
            f"{variable(row)} record;",
            self._own_variable(f"{name}%FOUND", Typed("boolean", BOOLEAN)),
            self._own_variable(f"{name}%ROWCOUNT", Typed("integer", INTEGER)),
            self._own_variable(f"{name}%ISOPEN", Typed("boolean NOT NULL", BOOLEAN), "false"),
        ]

    def _row_declaration(self, name: str) -> str:
        """Translate the declaration of a %ROWTYPE variable. Return an empty text if the declaration
        is another one.
        """
        cursor, sql = self._cursor, self._sql
        is_here = next((at for at in (1, 3) if cursor.word(at) == "%"), 0)
        if not is_here or cursor.word(is_here + 1) != "ROWTYPE":
            return ""
        names = cursor.path()
        cursor.expect("%", "ROWTYPE", ";")
        row = sql.records.get(f"{names[0]}%ROW") if len(names) == 1 else None
        relation = sql.relations.find(*([sql.owner, *names][-2:]))
        if row is None and relation is None:
            raise UntranslatableError(f"the type {'.'.join(names)}%ROWTYPE is not supported")
        columns = row.columns if row is not None else relation.columns  # type: ignore[union-attr]
        owner = relation.owner if row is None and relation is not None else ""
        source = Source(name, own_name(name), columns, optional=True, owner=owner)
        sql.records = {**sql.records, name: source}
        sql.rows = sql.rows | {name}
        sql.filled.discard(name)
        if row is not None or relation is None:
            types = {one.name: _TYPES.get(one.fact.kind, "") for one in columns.values()}
            if all(types.values()):
                self._fill(name, [(own, typed, "NULL") for own, typed in types.items()])
            return f"{variable(name)} record;"
        return f"{variable(name)} {quoted(relation.schema)}.{quoted(relation.name)}%ROWTYPE;"

    def _fill(self, name: str, fields: Sequence[tuple[str, str, str]]) -> None:
        """Add a statement to the beginning of the block that gives a record its fields, each with
        (name, type, value).
        """
        values = ", ".join(f"CAST(NULL AS {typed}) AS {quoted(own)}" for own, typed, _ in fields)
        self._initial.append(f"SELECT {values} INTO {variable(name)};")
        self._initial += (
            f"{variable(name)}.{quoted(own)} := {value};"
            for own, _, value in fields
            if value != "NULL"
        )
        self._sql.filled.add(name)

    def _type(self) -> None:
        """Read the declaration of a type of records or collections."""
        cursor, sql = self._cursor, self._sql
        name = cursor.name()
        cursor.expect("IS")
        if cursor.word() in ("TABLE", "VARRAY", "VARYING"):
            self._collection_type(name)
            return
        if not cursor.take("RECORD", "("):
            raise UntranslatableError(f"the code declares the type {name}: use a cursor or a table")
        fields, columns = list[tuple[str, str, str]](), dict[str, RelationColumn]()
        while True:
            field = cursor.name()
            typed = read_type(cursor, sql.relations, sql.owner, sql.types, sized=True)
            if cursor.word() == "NOT" or "NOT NULL" in typed.sql:
                raise UntranslatableError(
                    f"the field {field} of {name} is NOT NULL: check its value"
                )
            value = "NULL"
            if cursor.take(":=") or cursor.take("DEFAULT"):
                value = sql.value(cursor.until(",", ")"), typed.fact)
            fields.append((field.lower(), typed.sql, value))
            columns[field] = RelationColumn(field.lower(), typed.fact)
            if not cursor.take(","):
                break
        cursor.expect(")", ";")
        self._record_types = {**self._record_types, name: (columns, fields)}

    def _collection_type(self, name: str) -> None:
        """Read the declaration of a type of collections, which become arrays."""
        cursor, sql = self._cursor, self._sql
        limit = ""
        if not cursor.take("TABLE"):
            cursor.until("(")
            cursor.expect("(")
            limit = cursor.until(")")
            cursor.expect(")")
            if not limit.isdigit():
                raise UntranslatableError(f"the collection type {name}: its limit is not a literal")
        self._limits = {**self._limits, name: limit}
        cursor.expect("OF")
        if cursor.word() in self._record_types or "ROWTYPE" in (cursor.word(2), cursor.word(4)):
            raise UntranslatableError(
                f"the collection type {name} of records: use a loop over a query"
            )
        typed = read_type(cursor, sql.relations, sql.owner, sql.types, sized=True)
        if typed.fact.kind not in _TYPES or cursor.word() == "NOT" or "NOT NULL" in typed.sql:
            raise UntranslatableError(f"the collection type {name}: its elements are not supported")
        start = "NULL"
        if cursor.take("INDEX", "BY"):
            if cursor.word() not in ("PLS_INTEGER", "BINARY_INTEGER"):
                raise UntranslatableError(
                    f"the collection type {name}, indexed by a text: use jsonb or a table"
                )
            cursor.step()
            start = "0"
        cursor.expect(";")
        self._array_types = {**self._array_types, name: (typed, start)}

    def _collection(self, name: str) -> list[str]:
        """Translate the declaration of a collection. A second variable has the number of its
        elements. Return an empty list if the declaration is another one.
        """
        cursor, sql = self._cursor, self._sql
        if cursor.word() not in self._array_types:
            return []
        kind = cursor.name()
        typed, start = self._array_types[kind]
        if name in FUNCTIONS:
            raise UntranslatableError(
                f"the collection {name} has the name of a function: rename it"
            )
        if name in sql.collections:
            raise UntranslatableError(f"the collection {name} hides another one: rename it")
        self._fills.pop(name, None)
        value = f"CAST('{{}}' AS {typed.sql}[])" if start == "0" else "NULL"
        if start == "NULL":
            sql.uninitialised.add(name)
        if cursor.take(":=") or cursor.take("DEFAULT"):
            value = self._constructed(kind, cursor.until(";"), typed)
            start = f"CARDINALITY({variable(name)})"
            sql.uninitialised.discard(name)
            if not value.startswith("CAST(ARRAY[]"):
                self._fills[name] = object()
        cursor.expect(";")
        sql.collections = {**sql.collections, name: typed}
        self._kinds = {**self._kinds, name: kind}
        count = self._own_variable(f"{name}%COUNT", Typed("integer", INTEGER), start)
        return [f"{variable(name)} {typed.sql}[] := {value};", count]

    def _constructed(self, kind: str, text: str, typed: Typed) -> str:
        """Translate the call of the constructor of a collection type."""
        cursor = Cursor(text)
        if cursor.is_done or cursor.name() != kind or not cursor.take("("):
            raise UntranslatableError(
                f"a collection of the type {kind} begins with a value that is not a constructor:"
                f" {text}"
            )
        given = [] if cursor.word() == ")" else cursor.list_until(")")
        limit, own = self._limits.get(kind, ""), unsized(typed)
        if limit and len(given) > int(limit):
            raise UntranslatableError(f"{len(given)} elements of the type {kind}: ORA-06532")
        values = (f"CAST({self._sql.value(one, typed.fact)} AS {own})" for one in given)
        return f"CAST(ARRAY[{', '.join(values)}] AS {own}[])"

    def _record(self, name: str) -> str:
        """Translate the declaration of a variable of a record type. Return an empty text if the
        declaration is another one.
        """
        cursor, sql = self._cursor, self._sql
        if cursor.word() not in self._record_types:
            return ""
        columns, fields = self._record_types[cursor.name()]
        cursor.expect(";")
        sql.records = {**sql.records, name: Source(name, own_name(name), columns, optional=True)}
        sql.rows = sql.rows | {name}
        self._fill(name, fields)
        return f"{variable(name)} record;"
