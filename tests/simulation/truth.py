"""What the simulated source committed, as its ``truth.jsonl`` has it, and its tables at any point.

Nothing of the product's is used here: what judges must not share a mistake with what is judged.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from olr_pg.scalars import format_rowid

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Row = dict[str, Any]
OPERATIONS = frozenset(("insert", "update", "delete"))
EFFECTIVE = frozenset(
    (
        *("truncate", "add column", "rename column", "drop column", "modify column", "not null"),
        *("drop table", "create again", "rename table", "exchange names", "beside the columns"),
        *("virtual column", "identity column"),
    )
)
"""DDL that the target must follow."""

OF_PARTITIONS = frozenset(("partition", "exchange"))
SEGMENT_LETTERS = 6
"""The characters of a ROWID that say in which segment a row is."""


@dataclass(frozen=True)
class SourceTransaction:
    """A committed transaction.

    Attributes:
        number: its place in the order of delivery, from 0.
        xid: as printed.
        lines: of ``truth.jsonl``, from its begin to its commit; none of a DDL.
        changes: its row changes, read; of a DDL what it does.
        held: the tables that stop before it.
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


Applied = Callable[[SourceTransaction, str], bool]
"""Whether a transaction is applied in the history of a name."""


class Truth:
    """The committed transactions of a simulated source, in the order of delivery, and its DDL.

    Args:
        folder: that the simulator wrote.
        tables: ``OWNER.NAME`` of all.
        parallel: commits of parallel DML, and the ends behind those of their children.

    Attributes:
        stops: the SCN before which a table must stop, since rows of it are in no redo, or since no
            copy can follow its DDL.
        unlogged: the tables of which rows are in no redo.
        unfollowed: the tables with DDL that no copy can follow.
        made: the tables that were not there at the start.
    """

    def __init__(
        self, folder: Path, tables: list[str], parallel: Iterable[tuple[int, int]] = ()
    ) -> None:
        there = {path.stem for path in (folder / "tables").glob("*.parquet")}
        self._parallel = list(parallel)
        self.transactions: list[SourceTransaction] = []
        lines = list[bytes]()
        for line in (folder / "truth.jsonl").read_bytes().splitlines(keepends=True):
            lines.append(line)
            if line.startswith(b'{"op":"commit"'):
                self.transactions.append(_read(len(self.transactions), lines))
                lines = []
        ddl = _documents(folder / "ddl.jsonl")
        ranges = _documents(folder / "unlogged.jsonl")
        unlogged = [(one["table"], one["stop_scn"]) for one in ranges if one["stop_scn"]]
        unfollowed = [(one["table"], one["commit_scn"]) for one in ddl if one.get("stops")]
        self.stops: dict[str, int] = {}
        for table, scn in (*unlogged, *unfollowed):
            self.stops[table] = min(scn, self.stops.get(table, scn))
        self.unlogged = frozenset(table for table, _ in unlogged)
        self.unfollowed = frozenset(table for table, _ in unfollowed)
        self.transactions = [self._with_held(one) for one in self.transactions]
        self.by_identity = {one.identity: one for one in self.transactions}
        assert len(self.by_identity) == len(self.transactions)
        self._ddl = [
            self._with_held(
                SourceTransaction(-1, one["scn"], one["commit_scn"], one["xid"], (), _both(one))
            )
            for one in ddl
        ]
        renamed = {table for one in self._ddl for table in one.tables}
        self.tables = sorted({*tables, *there, *renamed})
        self.made = frozenset(self.tables) - there
        # Nothing changes a table at the SCN at which DDL on it commits.
        self._all = sorted([*self.transactions, *self._ddl], key=lambda one: one.commit_scn)

    def _with_held(self, one: SourceTransaction) -> SourceTransaction:
        held = {table for table, scn in self.stops.items() if scn <= one.commit_scn}
        return replace(one, held=frozenset(held) & one.tables)

    @property
    def followed(self) -> list[SourceTransaction]:
        """The transactions, and the DDL that must come into the target, in commit order."""
        return [one for one in self._all if one.lines or _must_come(one.changes[0])]

    def known_below(self, scn: int) -> int:
        """Below which SCN all that commits is known, where all redo was read up to `scn`.

        Children of parallel DML commit at an SCN of which redo may have been read already: nothing
        that commits there or behind may leave before the record that ends them was read.
        """
        return min([scn, *(commit for commit, end in self._parallel if end >= scn)])

    def of_table(self, table: str) -> list[SourceTransaction]:
        return [one for one in self.transactions if table in one.tables]

    def named(self, table: str, applied: Applied) -> dict[str, bool]:
        """Whether there is a column of a name, as far as the DDL for which `applied` decides it."""
        all_found, all_last = dict[str, dict[str, bool]](), dict[str, list[str]]()
        for ddl in self._ddl:
            change = ddl.changes[0]
            name = change["table"]
            if not applied(ddl, name):
                continue
            found, last = all_found.setdefault(name, {}), all_last.setdefault(name, [])
            if change["op"] == "add column":
                found[change["column"]] = True
            elif change["op"] == "create again":
                # The target keeps the columns of a dropped table until then.
                found |= dict.fromkeys(found, False) | dict.fromkeys(last, False)
                found |= dict.fromkeys(change["columns"], True)
            elif change["op"] == "drop table":
                all_last[name] = change["columns"]
            elif change["op"] in ("rename column", "drop column"):
                old, new = change["names"]
                found |= {old: False} | ({new: True} if new else {})
            elif change["op"] == "virtual column":
                old, new = change["names"]
                found |= {old: False} | ({new: _is_translated(change)} if new else {})
                found.pop("", None)
            elif change["op"] == "exchange names":
                for one in (all_found, all_last):
                    _swap(one, name, change["other"])
            elif change["op"] == "rename table":
                all_found[_new_name(change)] = all_found.pop(name)
                all_last[_new_name(change)] = all_last.pop(name)
        return all_found.get(table, {})

    def is_vacant(self, table: str, applied: Applied) -> bool:
        """Whether the last table of a name has another one, and no table came to have it."""
        vacant = False
        for ddl in self._ddl:
            change = ddl.changes[0]
            if change["op"] == "rename table" and applied(ddl, change["table"]):
                vacant = (vacant or table == change["table"]) and table != _new_name(change)
            elif change["op"] == "create again" and change["table"] == table:
                vacant = vacant and not applied(ddl, table)
        return vacant

    def rows(self, table: str, applied: Applied) -> list[Row]:
        """The table's rows after exactly the transactions for which `applied`."""
        of_names = dict[str, dict[str, Row]]()
        computed = dict[str, dict[str, tuple[str, str]]]()
        for transaction in self._all:
            for change in transaction.changes:
                name = change["table"]
                done = applied(transaction, name)
                rows = of_names.setdefault(name, {})
                if change["op"] == "rename table":
                    if done:
                        of_names[_new_name(change)] = of_names.pop(name)
                        computed[_new_name(change)] = computed.pop(name, {})
                elif change["op"] == "exchange names":
                    if done:
                        _swap(of_names, name, change["other"])
                        _swap(computed, name, change["other"])
                elif change["op"] == "virtual column":
                    if done:
                        old, new = change["names"]
                        computed.setdefault(name, {}).pop(old, None)
                        if new and _is_translated(change):
                            computed[name][new] = tuple(change["virtual"])
                elif change["op"] == "exchange":
                    if done:
                        _exchange(change, rows, of_names.setdefault(change["other"], {}))
                elif change["op"] not in OPERATIONS:
                    # Rows have other ROWIDs behind the DDL, whatever the target has of it.
                    moved = change.get("moved", {})
                    rows = {moved.get(row, row): image for row, image in rows.items()}
                    if done:
                        rows = {row: _altered(image, change) for row, image in rows.items()}
                    if done and change["op"] in ("truncate", "drop table"):
                        rows = {}
                    elif done and "emptied" in change:
                        gone = set(map(_letters, change["emptied"]))
                        rows = {
                            row: image
                            for row, image in rows.items()
                            if row[:SEGMENT_LETTERS] not in gone
                        }
                    if done and change["op"] == "create again":
                        computed.pop(name, None)
                    of_names[name] = rows
                elif done:
                    row = _row_of(change)
                    if change["op"] == "delete":
                        del rows[row]
                    else:
                        rows[row] = {**rows.get(row, {}), **change.get("after", {})}
        virtual = computed.get(table, {})
        return [
            {
                **row,
                **{name: _computed(row.get(base), form) for name, (form, base) in virtual.items()},
            }
            for row in of_names.get(table, {}).values()
        ]


def _both(ddl: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """What DDL does; of DDL that two tables' histories have, a line of each."""
    match ddl["op"]:
        case "rename table":
            return ddl, {"op": "take name", "table": _new_name(ddl)}
        case "exchange names":
            return ddl, {"op": "take name", "table": ddl["other"]}
        case "exchange":
            return ddl, {"op": "exchanged", "table": ddl["other"]}
        case _:
            return (ddl,)


def _swap(of_names: dict[str, Any], one: str, other: str) -> None:
    """Exchange what two names have; one that has nothing gets nothing."""
    both = of_names.pop(one, {}), of_names.pop(other, {})
    of_names |= {other: both[0], one: both[1]}


def _new_name(rename: dict[str, Any]) -> str:
    owner = rename["table"].rpartition(".")[0]
    return f"{owner}.{rename['names'][1]}"


def _must_come(ddl: dict[str, Any]) -> bool:
    """Whether the target must follow DDL: on partitions, if it takes or brings rows."""
    is_of_partitions = ddl["op"] in OF_PARTITIONS and ("emptied" in ddl or "other" in ddl)
    return ddl["op"] in EFFECTIVE or (is_of_partitions and not ddl.get("stops"))


def _letters(segment: int) -> str:
    return format_rowid(segment, 0, 0)[:SEGMENT_LETTERS]


def _exchange(exchange: dict[str, Any], own: dict[str, Row], others: dict[str, Row]) -> None:
    """Let a partition and a table have each other's rows, whose ROWIDs name their segments."""
    came, went = map(_letters, exchange["exchanged"])
    for rows, letters, to in ((own, went, others), (others, came, own)):
        for row in [row for row in rows if row.startswith(letters)]:
            to[row] = rows.pop(row)


def _altered(row: Row, ddl: dict[str, Any]) -> Row:
    """A row behind DDL: what an added column has in it, and the names that its columns have."""
    if ddl["op"] == "add column" and ddl["default"] is not None:
        return {**row, ddl["column"]: ddl["default"]}
    if ddl["op"] not in ("rename column", "drop column"):
        return row
    old, new = ddl["names"]
    names = {old: new}
    return {names.get(name, name): value for name, value in row.items() if names.get(name, name)}


def _is_translated(change: dict[str, Any]) -> bool:
    """Whether PostgreSQL can compute a virtual column: it has no function of the source's."""
    return bool(change["virtual"][0] != "own function")


def _computed(value: Any, form: str) -> Any:
    """The value of a virtual column, by Oracle's rules, in which NULL is an empty text."""
    match form:
        case "plus one":
            return None if value is None else value + 1
        case "zero for null":
            return 0 if value is None else value
        case _:
            return f"{value or ''}x"


def _row_of(change: dict[str, Any]) -> str:
    """The row that a change is about: those of index-organised tables have a key, no ROWID."""
    image = change["after" if change["op"] == "insert" else "before"]
    return str(change["rowid"] or image["ID"])


def _documents(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of JSON; none where there is no file."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [json.loads(line, parse_float=Decimal) for line in lines]


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
