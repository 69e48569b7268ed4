"""Makes rows of SYS tables from a snapshot's keys, indexes and sequences."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.simulator.oracle_net.catalogue import Catalogue

FIRST_OBJECT: Final = 95_000
FIRST_CONSTRAINT: Final = 9_500
MAXVALUE: Final = 10**28 - 1
"""MAXVALUE of a sequence that was created without one."""

_TYPE_INDEX, _TYPE_SEQUENCE = 1, 6
_UNIQUE_KEY, _FOREIGN_KEY = 3, 4
_REFACT: Final = {"no action": None, "cascade": 1, "set null": 2}


def insert_structure(catalogue: Catalogue, snapshot: Snapshot, users: Mapping[str, int]) -> None:
    """Insert `snapshot.structure`; the tables must already be in the catalogue.

    Args:
        users: USER# by name.
    """
    _Writer(catalogue, snapshot, users).write()


class _Writer:
    def __init__(self, catalogue: Catalogue, snapshot: Snapshot, users: Mapping[str, int]) -> None:
        self._put = catalogue.put
        self._structure = snapshot.structure
        self._tables = {table.full_name: table for table in snapshot.tables}
        self._users = users
        self._objects = count(FIRST_OBJECT)
        self._constraints = count(FIRST_CONSTRAINT)
        self._keys = dict[tuple[str, tuple[str, ...]], int]()
        for con, obj in catalogue.rows('SELECT "CON#", "OBJ#" FROM SYS."CDEF$" WHERE "TYPE#" = 2'):
            table = next(t for t in snapshot.tables if t.obj == obj)
            names = {column.intcol: column.name for column in table.columns}
            self._keys[table.full_name, tuple(names[i] for i in table.key)] = int(str(con))

    def write(self) -> None:
        for key in self._structure.unique_keys:
            table = self._tables[key.full_name]
            index = self._index(table, key.name, key.columns, unique=True)
            con = self._constraint(table, key.name, key.columns, _UNIQUE_KEY, ENABLED=index)
            self._keys[key.full_name, key.columns] = con
        for one in self._structure.indexes:
            table = self._tables[one.full_name]
            self._index(table, one.name, one.columns, unique=one.unique)
        for foreign in self._structure.foreign_keys:
            parent = self._tables[foreign.parent_name]
            self._constraint(
                *(self._tables[foreign.full_name], foreign.name, foreign.columns, _FOREIGN_KEY),
                ENABLED=1,
                ROBJ=parent.obj,
                RCON=self._keys[foreign.parent_name, foreign.parent_columns],
                REFACT=_REFACT[foreign.on_delete],
            )
        for sequence in self._structure.sequences:
            obj = self._object(sequence.owner, sequence.name, _TYPE_SEQUENCE)
            self._put(
                "SEQ$", OBJ=obj, INCREMENT=sequence.increment, MINVALUE=sequence.minimum,
                MAXVALUE=MAXVALUE, CYCLE=int(sequence.cycle), CACHE=sequence.cache,
                HIGHWATER=sequence.next,
            )  # fmt: skip

    def _object(self, owner: str, name: str, kind: int) -> int:
        obj = next(self._objects)
        self._put("OBJ$", OBJ=obj, OWNER=self._users[owner], NAME=name, TYPE=kind, FLAGS=0)
        return obj

    def _index(self, table: Table, name: str, columns: Sequence[str], *, unique: bool) -> int:
        obj = self._object(table.owner, name, _TYPE_INDEX)
        of = {"OBJ": obj, "BO": table.obj}
        self._put("IND$", **of, DATAOBJ=obj, TYPE=1, FLAGS=0, PROPERTY=int(unique))
        for place in _places(table, columns):
            self._put("ICOL$", **of, **place)
        return obj

    def _constraint(
        self, table: Table, name: str, columns: Sequence[str], kind: int, **others: Any
    ) -> int:
        con = next(self._constraints)
        of = {"CON": con, "OBJ": table.obj}
        self._put("CON$", CON=con, OWNER=self._users[table.owner], NAME=name)
        self._put("CDEF$", **of, TYPE=kind, **others)
        for place in _places(table, columns):
            self._put("CCOL$", **of, **place)
        return con


def _places(table: Table, columns: Sequence[str]) -> list[dict[str, int]]:
    numbers = {column.name: column.intcol for column in table.columns}
    return [{"INTCOL": numbers[name], "POS": at} for at, name in enumerate(columns, 1)]
