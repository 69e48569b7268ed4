"""What the simulated source committed, as its ``truth.jsonl`` has it, and its tables at any point.

Nothing of the product's is used here: what judges must not share a mistake with what is judged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Row = dict[str, Any]
OPERATIONS = frozenset(("insert", "update", "delete"))


@dataclass(frozen=True)
class SourceTransaction:
    """A committed transaction.

    Attributes:
        number: its place in the order of delivery, from 0.
        xid: as printed.
        lines: of ``truth.jsonl``, from its begin to its commit.
        changes: its row changes, read.
    """

    number: int
    begin_scn: int
    commit_scn: int
    xid: str
    lines: tuple[bytes, ...]
    changes: tuple[dict[str, Any], ...]

    @property
    def identity(self) -> tuple[int, str]:
        return self.commit_scn, self.xid

    @property
    def tables(self) -> frozenset[str]:
        return frozenset(change["table"] for change in self.changes)


class Truth:
    """The committed transactions of a simulated source, in the order of delivery.

    Args:
        folder: that the simulator wrote.
        tables: ``OWNER.NAME`` of all.
    """

    def __init__(self, folder: Path, tables: list[str]) -> None:
        self.tables = tables
        self.transactions: list[SourceTransaction] = []
        lines = list[bytes]()
        for line in (folder / "truth.jsonl").read_bytes().splitlines(keepends=True):
            lines.append(line)
            if line.startswith(b'{"op":"commit"'):
                self.transactions.append(_read(len(self.transactions), lines))
                lines = []
        self.by_identity = {one.identity: one for one in self.transactions}
        assert len(self.by_identity) == len(self.transactions)

    def of_table(self, table: str) -> list[SourceTransaction]:
        return [one for one in self.transactions if table in one.tables]

    def rows(self, table: str, applied: Callable[[SourceTransaction], bool]) -> list[Row]:
        """The table's rows after exactly the transactions for which `applied`."""
        rows = dict[str, Row]()
        for transaction in self.of_table(table):
            if not applied(transaction):
                continue
            for change in transaction.changes:
                if change["table"] != table:
                    continue
                row = _row_of(change)
                if change["op"] == "delete":
                    del rows[row]
                else:
                    rows[row] = {**rows.get(row, {}), **change.get("after", {})}
        return list(rows.values())


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
