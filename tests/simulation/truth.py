"""What the simulated source committed, as its ``truth.jsonl`` has it, and its tables at any point.

Nothing of the product's is used here: what judges must not share a mistake with what is judged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

Row = dict[str, Any]
OPERATIONS = frozenset(("insert", "update", "delete"))
EFFECTIVE = frozenset(
    (
        *("truncate", "add column", "rename column", "drop column", "modify column", "not null"),
        *("drop table", "create again"),
    )
)
"""DDL that the target must follow."""


@dataclass(frozen=True)
class SourceTransaction:
    """A committed transaction.

    Attributes:
        number: its place in the order of delivery, from 0.
        xid: as printed.
        lines: of ``truth.jsonl``, from its begin to its commit; none of a DDL.
        changes: its row changes, read; of a DDL what it does.
        held: the tables that stop before it, for want of redo.
    """

    number: int
    begin_scn: int
    commit_scn: int
    xid: str
    lines: tuple[bytes, ...]
    changes: tuple[dict[str, Any], ...]
    held: frozenset[str] = frozenset()

    @property
    def identity(self) -> tuple[int, str]:
        return self.commit_scn, self.xid

    @property
    def tables(self) -> frozenset[str]:
        return frozenset(change["table"] for change in self.changes)


class Truth:
    """The committed transactions of a simulated source, in the order of delivery, and its DDL.

    Args:
        folder: that the simulator wrote.
        tables: ``OWNER.NAME`` of all.
        parallel: commits of parallel DML, and the ends behind those of their children.

    Attributes:
        stops: the SCN before which a table must stop, since rows of it are in no redo.
        made: the tables that were not there at the start.
    """

    def __init__(
        self, folder: Path, tables: list[str], parallel: Iterable[tuple[int, int]] = ()
    ) -> None:
        self.tables = tables
        there = {path.stem for path in (folder / "tables").glob("*.parquet")}
        self.made = frozenset(tables) - there
        self._parallel = list(parallel)
        self.transactions: list[SourceTransaction] = []
        lines = list[bytes]()
        for line in (folder / "truth.jsonl").read_bytes().splitlines(keepends=True):
            lines.append(line)
            if line.startswith(b'{"op":"commit"'):
                self.transactions.append(_read(len(self.transactions), lines))
                lines = []
        self.stops: dict[str, int] = {}
        path = folder / "unlogged.jsonl"
        for one in map(json.loads, path.read_bytes().splitlines() if path.exists() else ()):
            scn = one["stop_scn"]
            if scn is not None:
                self.stops[one["table"]] = min(scn, self.stops.get(one["table"], scn))
        self.transactions = [self._with_held(one) for one in self.transactions]
        self.by_identity = {one.identity: one for one in self.transactions}
        assert len(self.by_identity) == len(self.transactions)
        path = folder / "ddl.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        ddl = (json.loads(line, parse_float=Decimal) for line in lines)
        self._ddl = [
            self._with_held(
                SourceTransaction(-1, one["scn"], one["commit_scn"], one["xid"], (), (one,))
            )
            for one in ddl
        ]
        # Nothing changes a table at the SCN at which DDL on it commits.
        self._all = sorted([*self.transactions, *self._ddl], key=lambda one: one.commit_scn)

    def _with_held(self, one: SourceTransaction) -> SourceTransaction:
        held = {table for table, scn in self.stops.items() if scn <= one.commit_scn}
        return replace(one, held=frozenset(held) & one.tables)

    @property
    def followed(self) -> list[SourceTransaction]:
        """The transactions, and the DDL that must come into the target, in commit order."""
        return [one for one in self._all if one.lines or one.changes[0]["op"] in EFFECTIVE]

    def known_below(self, scn: int) -> int:
        """Below which SCN all that commits is known, where all redo was read up to `scn`.

        Children of parallel DML commit at an SCN of which redo may have been read already: nothing
        that commits there or behind may leave before the record that ends them was read.
        """
        return min([scn, *(commit for commit, end in self._parallel if end >= scn)])

    def of_table(self, table: str) -> list[SourceTransaction]:
        return [one for one in self.transactions if table in one.tables]

    def named(self, table: str, applied: Callable[[SourceTransaction], bool]) -> dict[str, bool]:
        """Whether there is a column of a name, as far as the DDL for which `applied` decides it."""
        found, last = dict[str, bool](), list[str]()
        for ddl in self._ddl:
            (change,) = ddl.changes
            if change["table"] != table or not applied(ddl):
                continue
            if change["op"] == "add column":
                found[change["column"]] = True
            elif change["op"] == "create again":
                # The target keeps the columns of a dropped table until then.
                found = dict.fromkeys(found, False) | dict.fromkeys(last, False)
                found |= dict.fromkeys(change["columns"], True)
            elif change["op"] == "drop table":
                last = change["columns"]
            elif change["op"] in ("rename column", "drop column"):
                old, new = change["names"]
                found |= {old: False} | ({new: True} if new else {})
        return found

    def rows(self, table: str, applied: Callable[[SourceTransaction], bool]) -> list[Row]:
        """The table's rows after exactly the transactions for which `applied`."""
        rows = dict[str, Row]()
        for transaction in self._all:
            done = applied(transaction)
            for change in transaction.changes:
                if change["table"] != table:
                    continue
                if change["op"] not in OPERATIONS:
                    # Rows have other ROWIDs behind the DDL, whatever the target has of it.
                    moved = change["moved"]
                    rows = {moved.get(row, row): image for row, image in rows.items()}
                    if done:
                        rows = {row: _altered(image, change) for row, image in rows.items()}
                    if done and change["op"] in ("truncate", "drop table"):
                        rows = {}
                    continue
                if not done:
                    continue
                row = _row_of(change)
                if change["op"] == "delete":
                    del rows[row]
                else:
                    rows[row] = {**rows.get(row, {}), **change.get("after", {})}
        return list(rows.values())


def _altered(row: Row, ddl: dict[str, Any]) -> Row:
    """A row behind DDL: what an added column has in it, and the names that its columns have."""
    if ddl["op"] == "add column" and ddl["default"] is not None:
        return {**row, ddl["column"]: ddl["default"]}
    if ddl["op"] not in ("rename column", "drop column"):
        return row
    old, new = ddl["names"]
    names = {old: new}
    return {names.get(name, name): value for name, value in row.items() if names.get(name, name)}


def _row_of(change: dict[str, Any]) -> str:
    """The row that a change is about: those of index-organised tables have a key, no ROWID."""
    image = change["after" if change["op"] == "insert" else "before"]
    return str(change["rowid"] or image["ID"])


def _read(number: int, lines: list[bytes]) -> SourceTransaction:
    records = [json.loads(line, parse_float=Decimal) for line in lines]
    return SourceTransaction(
        number,
        records[0]["scn"],
        records[0]["commit_scn"],
        records[0]["xid"],
        tuple(lines),
        tuple(record for record in records if record["op"] in OPERATIONS),
    )
