"""Extracts the dictionary changes of finished transactions from their row changes.

The SYS tables that contain the definitions of tables are decoded like other tables of the row plan.
Their row changes go to the dictionary follower (`decoding.dictionary_follower`). Clients receive
these row changes only if they subscribed to the SYS tables.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from olr_pg.dictionary.committed_changes import (
    DictionaryTransaction,
    Statement,
    SysRowChange,
    SysRowOperation,
)
from olr_pg.dictionary.oracle_schemas import is_oracle_schema
from olr_pg.redo.batch import EventKind
from olr_pg.scalars import format_rowid
from olr_pg.transactions.finished_columns import DmlColumns, Image, OwnedChanges
from olr_pg.transactions.left_out import keep_changes
from olr_pg.transactions.select import first_rows
from olr_pg.transactions.shared_undo import changed_containers

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from olr_pg.dictionary.decoding_plan import RowPlan
    from olr_pg.dictionary.model import Table
    from olr_pg.redo.batch import ChangeBatch
    from olr_pg.transactions.finished import Closed

I64 = npt.NDArray[np.int64]


def dictionary_transactions(
    batch: ChangeBatch, closed: Closed, changes: Mapping[int, Sequence[SysRowChange]]
) -> dict[int, DictionaryTransaction]:
    """Return the dictionary changes of the committed transactions `closed`, by index in `closed`.

    Args:
        batch: the batch with the events of the transactions.
        closed: the transactions, in commit order.
        changes: the row changes of SYS tables in these transactions, see `sys_row_changes`.
    """
    statements = _statements(batch, closed)
    events, instances, rows = closed
    containers = changed_containers(events, instances, rows)
    found = {}
    for number in sorted({*statements, *changes}):
        begin, end = int(instances.begin[rows[number]]), int(instances.end[rows[number]])
        found[number] = DictionaryTransaction(
            int(containers[number]),
            int(events.xid[begin]),
            int(events.scn[begin]),
            int(events.scn[end]),
            (
                int(events.thread[end]),
                int(events.sequence[end]),
                int(events.block[end]),
                int(events.offset[end]),
            ),
            tuple(changes.get(number, ())),
            tuple(statements.get(number, ())),
        )
    return found


def delivered_changes(
    changes: OwnedChanges, plan: RowPlan, tables: Sequence[Table], ddl: Collection[int]
) -> tuple[OwnedChanges, int]:
    """Return (changes for clients, number of other changes).

    A DDL commits open changes first, so a transaction that changes the dictionary contains no
    changes by a user. If such a transaction contains rows of a user's table, the DDL moved the rows
    to another segment (MOVE, SPLIT, MERGE), and nothing changes for clients. So the changes of
    moved rows are not delivered. Changes of moved rows are decoded only if they have the commit SCN
    of the DDL, because the new segment belongs to the table from this SCN on.

    Args:
        changes: the row changes.
        plan, tables: the row plan and its tables.
        ddl: the indexes of transactions that change the dictionary.
    """
    dml = changes.dml
    stays = plan.delivered[dml.table] != 0
    if ddl:
        of_oracle = np.array([is_oracle_schema(table.source_owner) for table in tables], np.bool_)
        for number in ddl:
            own = changes.rows(number)
            stays[own] &= of_oracle[dml.table[own]]
    others = int(np.count_nonzero(~stays))
    if others == 0:
        return changes, 0
    return keep_changes(changes, stays), others


def sys_row_changes(
    changes: OwnedChanges, plan: RowPlan, tables: Sequence[Table]
) -> Mapping[int, Sequence[SysRowChange]]:
    """Return the row changes of SYS tables, by index of their transaction."""
    found: dict[int, list[SysRowChange]] = defaultdict(list)
    if plan.followed.size == 0:
        return found
    dml = changes.dml
    rows = np.flatnonzero(plan.followed[dml.table])
    for row, owner in zip(rows.tolist(), changes.owner[rows].tolist(), strict=True):
        table = tables[int(dml.table[row])]
        found[owner].append(
            SysRowChange(
                table.name,
                SysRowOperation(int(dml.kind[row])),
                format_rowid(int(dml.dataobj[row]), int(dml.bdba[row]), int(dml.slot[row])),
                _new_values(dml, row, table),
            )
        )
    return found


def _new_values(dml: DmlColumns, row: int, table: Table) -> dict[str, bytes | None]:
    values: dict[str, bytes | None] = {}
    columns = table.delivered
    for entry in range(int(dml.entry_first[row]), int(dml.entry_first[row + 1])):
        if dml.values.image[entry] == Image.AFTER:
            values[columns[int(dml.values.column[entry])].name] = _value(dml, entry)
    return values


def _value(dml: DmlColumns, entry: int) -> bytes | None:
    if dml.values.length[entry] < 0:
        return None
    parts = []
    part = entry
    while part >= 0:
        at = int(dml.values.offset[part])
        parts.append(dml.data[at : at + int(dml.values.length[part])].tobytes())
        part = int(dml.values.next[part])
    return b"".join(parts)


def _statements(batch: ChangeBatch, closed: Closed) -> dict[int, list[Statement]]:
    """Return the DDL statements of each transaction, by index in `closed`."""
    found: dict[int, list[Statement]] = defaultdict(list)
    events, instances, rows = closed
    is_ddl = events.kind[instances.order] == EventKind.DDL
    if not is_ddl.any():
        return found
    instance = np.repeat(np.arange(instances.begin.size), np.diff(instances.first))
    place_of = np.full(instances.begin.size, -1, np.int64)
    place_of[rows] = np.arange(rows.size)
    texts = _DdlTexts(batch)
    for place in np.flatnonzero(is_ddl).tolist():
        owner = int(place_of[instance[place]])
        if owner < 0:
            continue
        event = int(instances.order[place])
        if events.wrp[event] <= 1:
            found[owner].append(texts.statement(event))
        elif found[owner]:
            # A long statement continues in further records of the same transaction.
            last = found[owner].pop()
            found[owner].append(last._replace(text=last.text + texts.text(event, 1)))
    return found


class _DdlTexts:
    """Reads the pieces of DDL events."""

    def __init__(self, batch: ChangeBatch) -> None:
        self._batch = batch
        self._piece_first = first_rows(batch.events.piece_count)
        self._entry_first = first_rows(batch.pieces.entry_count)

    def text(self, event: int, segcol: int) -> str:
        entries, data = self._batch.entries, self._batch.data
        piece = int(self._piece_first[event])
        for entry in range(int(self._entry_first[piece]), int(self._entry_first[piece + 1])):
            if entries.segcol[entry] == segcol:
                at, size = int(entries.offset[entry]), int(entries.length[entry])
                raw = data[at : at + size].tobytes().rstrip(b"\0")
                return raw.decode("utf-8", "backslashreplace")
        return ""

    def statement(self, event: int) -> Statement:
        events = self._batch.events
        return Statement(
            int(events.serial[event]),
            int(events.session[event]),
            self.text(event, 2),
            self.text(event, 3),
            self.text(event, 1),
            int(events.scn[event]),
        )
