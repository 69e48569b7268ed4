"""From logs to finished transactions in one pass or over splits, as values to compare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from olr_pg.dictionary.decoding_plan import RowPlan, build_row_plan
from olr_pg.dictionary.model import Column, Table
from olr_pg.redo.batch import ChangeBatch
from olr_pg.redo.log_extraction import read_changes
from olr_pg.redo.walk import Objects, Tally
from olr_pg.redo.window import WINDOW_BYTES, Log
from olr_pg.scalars import format_rowid
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.finished import Account, Finished
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.left_out import spelled_out
from olr_pg.transactions.select import concatenate, first_rows

COLUMNS = 60
CLUSTERED = {4: 1, 14: 3, 19: 1, 22: 1}
"""CLUCOLS of SYS tables that are in a cluster: TAB$, SEG$, IND$, USER$."""


class Subscription(NamedTuple):
    """Wide tables for a few objects, their plan, and what the kernels need of it."""

    tables: tuple[Table, ...]
    plan: RowPlan
    objects: Objects


def subscribe(objects: Iterable[int], con_id: int) -> Subscription:
    """Tables with columns C1, C2, … in segment order."""
    columns = tuple(Column(f"C{n}", n, n, n, 23, 4000) for n in range(1, COLUMNS + 1))
    tables = tuple(
        Table("T", f"T{obj}", obj, obj, columns, cluster_columns=CLUSTERED.get(obj, 0))
        for obj in objects
    )
    plan = build_row_plan(tables, con_id)
    return Subscription(
        tables, plan, Objects(plan.object_key, plan.object_table, plan.cluster_columns)
    )


def changes_between(
    log: Log,
    wanted: Subscription,
    first: int = 2,
    end: int | None = None,
    window_bytes: int = WINDOW_BYTES,
) -> ChangeBatch:
    """The events of the groups that begin in blocks [first, end)."""
    found = read_changes(log, wanted.objects, first, end, window_bytes=window_bytes)
    return concatenate([extract.batch for extract in found])


def whole_log(log: Log, objects: Objects) -> tuple[ChangeBatch, Tally]:
    """The events of a log, and what was seen."""
    batches, tally = [], Tally()
    for extract in read_changes(log, objects):
        batches.append(extract.batch)
        tally = tally.plus(extract.tally)
    return concatenate(batches), tally


def columns_of(table: Any) -> dict[str, Any]:
    """The columns of a table by name, whether it is a tuple of arrays or one structured array."""
    names = getattr(table, "_fields", None) or table.dtype.names
    return {name: getattr(table, name) for name in names}


def clear(table: Any) -> None:
    """Fill every column with zeros."""
    for column in columns_of(table).values():
        column[:] = 0


def events_of(batch: ChangeBatch) -> list[tuple[Any, ...]]:
    """Every event with its pieces and values, free of offsets."""
    piece_first = first_rows(batch.events.piece_count)
    entry_first = first_rows(batch.pieces.entry_count)
    found: list[tuple[Any, ...]] = []
    event_columns = columns_of(batch.events).values()
    piece_columns = columns_of(batch.pieces)
    for event in range(batch.events.kind.size):
        pieces = []
        for piece in range(int(piece_first[event]), int(piece_first[event + 1])):
            fields = {
                name: column[piece].item()
                for name, column in piece_columns.items()
                if name not in ("changed_offset", "entry_count")
            }
            entries = [
                (
                    batch.entries.role[entry].item(),
                    batch.entries.part[entry].item(),
                    batch.entries.segcol[entry].item(),
                    _value(batch, entry),
                )
                for entry in range(int(entry_first[piece]), int(entry_first[piece + 1]))
            ]
            pieces.append((tuple(fields.items()), tuple(entries)))
        found.append((*(column[event].item() for column in event_columns), tuple(pieces)))
    return found


def _value(batch: ChangeBatch, entry: int) -> bytes | None:
    length, at = int(batch.entries.length[entry]), int(batch.entries.offset[entry])
    return None if length < 0 else batch.data[at : at + length].tobytes()


class Dml(NamedTuple):
    """One row change; images by (image, column ordinal)."""

    kind: str
    table: int
    scn: int
    rba: tuple[int, int, int]
    rowid: str
    images: tuple[tuple[int, int, bytes | None], ...]


class Transaction(NamedTuple):
    """One finished transaction; `facts` are the columns of TransactionColumns."""

    commit_scn: int
    commit_place: tuple[int, int, int, int]
    facts: tuple[Any, ...]
    dml: tuple[Dml, ...]


def transactions_of(finished: Finished | None, plan: RowPlan) -> list[Transaction]:
    """Finished transactions as values."""
    if finished is None:
        return []
    finished = finished._replace(dml=spelled_out(finished.dml, plan.column_first))
    columns = finished.transactions
    found = []
    for row in range(columns.xid.size):
        low, high = int(columns.dml_first[row]), int(columns.dml_first[row + 1])
        found.append(
            Transaction(
                int(columns.commit_scn[row]),
                (
                    int(columns.commit_thread[row]),
                    int(columns.commit_sequence[row]),
                    int(columns.commit_block[row]),
                    int(columns.commit_offset[row]),
                ),
                tuple(column[row].item() for column in columns[:-1]),
                tuple(_dml(finished, change) for change in range(low, high)),
            )
        )
    return found


def _dml(finished: Finished, row: int) -> Dml:
    dml = finished.dml
    images: list[tuple[int, int, bytes | None]] = []
    for entry in range(int(dml.entry_first[row]), int(dml.entry_first[row + 1])):
        value = None
        if dml.values.length[entry] >= 0:
            value, part = b"", entry
            while part >= 0:
                at = int(dml.values.offset[part])
                value += dml.data[at : at + int(dml.values.length[part])].tobytes()
                part = int(dml.values.next[part])
        images.append((int(dml.values.image[entry]), int(dml.values.column[entry]), value))
    return Dml(
        DmlKind(int(dml.kind[row])).name,
        int(dml.table[row]),
        int(dml.scn[row]),
        (int(dml.sequence[row]), int(dml.block[row]), int(dml.offset[row])),
        format_rowid(int(dml.dataobj[row]), int(dml.bdba[row]), int(dml.slot[row])),
        tuple(images),
    )


def assemble(
    splits: Iterable[Iterable[ChangeBatch]], wanted: Subscription
) -> tuple[list[Transaction], Account]:
    """Finished transactions in commit order, as tasks and the driver make them.

    Args:
        splits: for each split the batches that its task sees.
        wanted: the subscription.
    """
    driver = Assembler(wanted.plan, wanted.tables, is_split=False)
    found, account = [], Account()
    for batches in splits:
        task = Assembler(wanted.plan, wanted.tables, is_split=True)
        for batch in batches:
            found += transactions_of(task.feed(batch), wanted.plan)
        found += transactions_of(driver.feed(task.remainder()), wanted.plan)
        account.add(task.account)
    account.add(driver.account)
    return sorted(found, key=lambda one: (one.commit_scn, one.commit_place, one.facts)), account
