"""Translates collections into arrays, and BULK COLLECT into queries with ARRAY_AGG.

In Oracle, an element that does not exist is an error; in PostgreSQL it is NULL. So an element is
translated only in a loop over the collection, or over a collection that the same statement has
filled.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from olr_pg.schema.plsql.declarations import Declarations
from olr_pg.schema.plsql.routine_sql import checked_count
from olr_pg.schema.plsql.types import unsized, variable
from olr_pg.schema.translating import UntranslatableError, quoted
from olr_pg.schema.value_kinds import ValueKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.schema.plsql.cursor import Cursor
    from olr_pg.schema.plsql.routine_sql import RoutineSql
    from olr_pg.schema.value_kinds import Fact

SQL_COUNT: Final = "SQL%ROWCOUNT"
_COUNTED: Final = re.compile(r"\bSQL\s*%", re.IGNORECASE)
_BOUNDS: Final = re.compile(
    r"(?:1|(?P<first>[\w$#]+)\s*\.\s*FIRST)\s*\.\.\s*(?P<last>[\w$#]+)\s*\.\s*(?:COUNT|LAST)",
    re.IGNORECASE,
)


class Arrays(Declarations):
    """The collections of the PL/SQL block at the cursor's position, and what fills them."""

    def __init__(self, cursor: Cursor, sql: RoutineSql) -> None:
        super().__init__(cursor, sql)
        self._counts = bool(_COUNTED.search(cursor.text))
        self._paired: set[str] = set()

    def _changed_collection(self) -> list[str]:
        cursor = self._cursor
        name = cursor.name()
        typed, kind = self._sql.collections[name], self._kinds[name]
        if cursor.take(":="):
            value = self._constructed(kind, cursor.until(";"), typed)
        elif cursor.take(".", "DELETE") and cursor.word() == ";":
            value = "'{}'"
            if name in self._sql.uninitialised:
                cursor.expect(";")
                count = f"{variable(f'{name}%COUNT')} := {checked_count(name)};"
                return [count, f"{variable(name)} := {value};", *self._filled([name])]
        else:
            raise UntranslatableError(
                f"the code changes an element of the collection {name}: use array functions or a"
                " table"
            )
        cursor.expect(";")
        return [f"{variable(name)} := {value};", *self._filled([name])]

    def _over(self, bounds: str) -> frozenset[str]:
        """Return the collections that have an element for each number between these bounds: the
        collection that the bounds name, and those that the same statement has filled.
        """
        found = _BOUNDS.fullmatch(bounds.strip())
        name = found["last"].upper() if found else ""
        if found is None or name not in self._sql.collections:
            return frozenset()
        if found["first"] and found["first"].upper() != name:
            return frozenset()
        fill = self._fills.get(name)
        others = {one for one, other in self._fills.items() if other is fill and fill is not None}
        if len(others) > 1:
            self._paired |= others
        return frozenset(others | {name})

    def _filled(self, names: list[str]) -> list[str]:
        """Record that a statement fills these collections. Return the statements that count the
        elements of these collections.
        """
        fill = object()
        for name in names:
            if any(name in others for others in self._sql.subscripts.values()):
                raise UntranslatableError(
                    f"the code changes the collection {name} in a loop over it"
                )
            if name in self._paired:
                raise UntranslatableError(f"several statements fill the collection {name}")
            self._fills[name] = fill if name not in self._fills else object()
        counts = (variable(f"{name}%COUNT") for name in names)
        pairs = zip(counts, map(variable, names), strict=True)
        limits = [(name, self._limits.get(self._kinds[name], "")) for name in names]
        checks = (
            f"IF {variable(f'{name}%COUNT')} > {limit} THEN RAISE EXCEPTION USING MESSAGE ="
            " 'ORA-06532: Subscript outside of limit', ERRCODE = 'array_subscript_error'; END IF;"
            for name, limit in limits
            if limit
        )
        return [*(f"{count} := CARDINALITY({own});" for count, own in pairs), *checks]

    def _gathered(
        self,
        begin: str,
        rows: str,
        names: Sequence[str],
        targets: list[list[str]],
        facts: Sequence[Fact],
    ) -> list[str]:
        """Return statements that fill collections with the columns of rows.

        Args:
            begin: the WITH clause that defines "rows"; empty if `rows` is a query.
        """
        own, types = self._collected(targets, facts), self._sql.collections
        pairs = zip(names, own, strict=True)
        values = ", ".join(
            f"COALESCE(CAST(ARRAY_AGG({quoted(column)}) AS {unsized(types[name])}[]), '{{}}')"
            for column, name in pairs
        )
        listed = ", ".join(map(quoted, names))
        source = '"rows"' if begin else f'({rows}) AS "rows" ({listed})'
        into = ", ".join(map(variable, own))
        text = f"{begin} SELECT {values} INTO {into} FROM {source};".strip()  # noqa: S608 - translated
        counted = [f"{variable(SQL_COUNT)} := CARDINALITY({variable(own[0])});"]
        return [text, *self._filled(own), *(counted if self._counts else [])]

    def _collected(self, targets: list[list[str]], facts: Sequence[Fact]) -> list[str]:
        """Return the names of the collections that receive columns with these facts."""
        names = [target[0] for target in targets if len(target) == 1]
        elements = [self._sql.collections.get(name) for name in names]
        if len(names) != len(facts) or len({*names}) != len(facts):
            raise UntranslatableError("BULK COLLECT INTO a different number of collections")
        for name, element, fact in zip(names, elements, facts, strict=True):
            kinds = {element.fact.kind if element else None, fact.kind}
            if len(kinds) > 1 and not kinds <= {ValueKind.INTEGER, ValueKind.NUMBER}:
                raise UntranslatableError(f"BULK COLLECT INTO {name}, which has another type")
        return names
