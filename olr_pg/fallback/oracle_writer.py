"""Writes net changes into Oracle: one array of binds per table, operation and set of columns."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any

import oracledb

from olr_pg.errors import Code, OlrPgError, located
from olr_pg.fallback.relation_plans import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.fallback.net_rows import NetRows, RowWrite
    from olr_pg.fallback.relation_plans import RelationPlan
    from olr_pg.fallback.way_back import BoundValues


Empties = tuple[int, ...]
"""Numbers of the columns that are empty LOBs."""


class OracleWriter:
    """Writes over one connection, which is not in autocommit; commits nothing."""

    def __init__(self, connection: oracledb.Connection) -> None:
        self._connection = connection
        self._altered: Counter[tuple[str, str, str, str]] = Counter()

    def take_altered(self) -> Counter[tuple[str, str, str, str]]:
        """Return how many values policies have changed, by (table, column, cause, policy)."""
        taken, self._altered = self._altered, Counter()
        return taken

    def write(self, plan: RelationPlan, rows: NetRows) -> None:
        """Write the net changes of one table.

        Raises:
            OlrPgError: 7306 a row is not there, 7350 a value cannot go to Oracle.
            oracledb.Error: what Oracle says.
        """
        for one in rows.writes():
            for empties, part in _by_empties(plan, one):
                self._write(plan, part, empties)

    def empty(self, plan: RelationPlan) -> None:
        """Delete all rows of a table; TRUNCATE would commit in Oracle."""
        with self._connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {plan.place}")  # noqa: S608 - quoted

    def _write(self, plan: RelationPlan, write: RowWrite, empties: Empties) -> None:
        statement = _Statement(plan, empties)
        try:
            text = statement.text(write)
        except OlrPgError as error:
            raise located(error, table=plan.name) from error
        self._altered.update(statement.altered)
        with self._connection.cursor() as cursor:
            cursor.setinputsizes(*statement.types)
            cursor.executemany(text, list(zip(*statement.values, strict=True)))
            found, wanted = cursor.rowcount, len(write.keys)
        if found != wanted:
            raise OlrPgError(
                Code.FALLBACK_CONFLICT,
                f"{write.operation} of {wanted} rows found {found} of them",
                table=plan.name,
            )


def _by_empties(plan: RelationPlan, write: RowWrite) -> Iterator[tuple[Empties, RowWrite]]:
    """Divide rows by the LOBs that are empty, which are no binds."""
    lobs = [number for number in write.columns if plan.columns[number].empty]
    if not lobs or not any(row[number] == b"" for row in write.rows for number in lobs):
        yield (), write
        return

    def empties(at: int) -> Empties:
        return tuple(number for number in lobs if write.rows[at][number] == b"")

    places = range(len(write.rows))
    for found, group in groupby(
        places if write.is_ordered else sorted(places, key=empties), empties
    ):
        part = list(group)
        keys, rows = [write.keys[at] for at in part], [write.rows[at] for at in part]
        yield found, write._replace(keys=keys, rows=rows)


class _Statement:
    """The text and the binds of one statement."""

    def __init__(self, plan: RelationPlan, empties: Empties) -> None:
        self._plan = plan
        self._empties = empties
        self.types: list[Any] = []
        self.values: list[Sequence[object | None]] = []
        self.altered: list[tuple[str, str, str, str]] = []

    def text(self, write: RowWrite) -> str:
        """Bind the values; return the SQL."""
        names = self._plan.columns
        binds = [
            names[number].empty or ""
            if number in self._empties
            else self._bind(number, [row[number] for row in write.rows])
            for number in write.columns
        ]
        columns = [quoted(names[number].name) for number in write.columns]
        if write.operation == "INSERT":
            values = f"({', '.join(columns)}) VALUES ({', '.join(binds)})"
            return f"INSERT INTO {self._plan.place} {values}"
        keys = [
            self._bind(number, [key[place] for key in write.keys])
            for place, number in enumerate(self._plan.key)
        ]
        found = " AND ".join(
            f"{quoted(names[number].name)} = {bind}"
            for number, bind in zip(self._plan.key, keys, strict=True)
        )
        if write.operation == "DELETE":
            return f"DELETE FROM {self._plan.place} WHERE {found}"  # noqa: S608 - quoted
        settings = ", ".join(
            f"{column} = {bind}" for column, bind in zip(columns, binds, strict=True)
        )
        return f"UPDATE {self._plan.place} SET {settings} WHERE {found}"  # noqa: S608 - quoted

    def _bind(self, number: int, raw: Sequence[bytes | None]) -> str:
        bound: BoundValues = self._plan.columns[number].values.bind(raw)
        name = self._plan.columns[number].name
        self.altered += [(self._plan.name, name, one.cause, one.policy) for one in bound.altered]
        self.types.append(bound.db_type)
        self.values.append(bound.values)
        return bound.expression.format(f":{len(self.values)}")
