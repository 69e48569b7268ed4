"""The hold, a table in the target: the changes of a stopped table wait there, in order, until the
table is resumed.

Changes are stored as the protocol's messages, as received, so that they are applied later in the
same way as changes that were just received. The target transaction that stores them also advances
the table's position in the ledger past these changes. DDL events are stored in their order between
the changes. The definition that the table had when it stopped is stored in the ledger, because the
process that replays the changes may know only a newer definition.

The ledger counts the rows of the hold for each table. An operator may delete them, for example with
TRUNCATE because the disk is full. Without the count, the table would resume without these changes.

Held events and definitions of tables are stored as JSON documents.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import orjson
from pydantic import TypeAdapter

from olr_pg.applier.statements.lost_value_documents import (
    lob_document,
    lost_document,
    read_lob,
    read_lost,
)
from olr_pg.applier.statements.table_changes import (
    HeldMessages,
    Selection,
    cut_rows,
    framed,
    join,
    with_lost,
)
from olr_pg.applier.target.ledger import LOCK_ROW
from olr_pg.datatypes.convert import DatabaseFacts
from olr_pg.dictionary.evolution import DdlKind, Evolution, Step
from olr_pg.dictionary.inventory import Constraint, InventoryIndex
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.snapshot_file import dump_snapshot, parse_snapshot
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.observability.wording import counted
from olr_pg.scalars import format_xid, parse_xid
from olr_pg.transactions.schema_event import LaterFaults, SchemaEvent
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg import Connection


def event_document(event: SchemaEvent, facts: DatabaseFacts) -> bytes:
    """Return an event as JSON."""
    evolution, error = event.evolution, event.evolution.error
    document = {
        "begin_scn": event.begin_scn,
        "steps": [_step_document(step, event, facts) for step in evolution.steps],
        "error": None if error is None else [error.code, error.detail, error.action, error.where],
        "definition": source_document(event.definition, facts, event.commit_scn),
        "statement": event.statement,
        "is_fault": event.is_fault,
        "later": None if event.later is None else list(event.later),
        "lobs": list(map(lob_document, event.lobs)),
    }
    return orjson.dumps(document)


def _step_document(step: Step, event: SchemaEvent, facts: DatabaseFacts) -> list[Any]:
    """Return a step as data for JSON."""

    def written(column: Column | None) -> list[Any] | None:
        """Return a column as data for JSON: its number, and a table that contains only this
        column.
        """
        if column is None or event.definition is None:
            return None
        only = replace(column, segcol=1)
        table = replace(event.definition, columns=(only,), key=(), key_kind=KeyKind.NONE)
        return [column.segcol, source_document(table, facts, event.commit_scn)]

    structure = None if step.structure is None else asdict(step.structure)
    columns = written(step.before), written(step.after)
    return [
        step.kind.value,
        *columns,
        step.partition,
        step.table,
        step.text,
        step.verb,
        structure,
        step.is_first,
        step.sources,
        step.others,
    ]


def _read_step(document: list[Any]) -> Step:
    def read(written: list[Any] | None) -> Column | None:
        table = None if written is None else read_source(written[1])[0]
        if written is None or table is None:
            return None
        return replace(table.columns[0], segcol=written[0])

    kind, before, after, *names = document  # an older release stored fewer values
    names, more = names[:2], names[2:] or ["", "", None, False]
    text, verb, structure, is_first, *lists = more
    step = Step(DdlKind(kind), read(before), read(after), *names)
    step = step._replace(text=text, verb=verb, is_first=is_first)
    sources, others = (*lists, (), ())[:2]
    step = step._replace(sources=tuple(sources), others=tuple(others))
    if structure is None:
        return step
    told = orjson.dumps(structure)
    if step.kind is DdlKind.INDEX:
        return step._replace(structure=TypeAdapter(InventoryIndex).validate_json(told))
    return step._replace(structure=TypeAdapter(Constraint).validate_json(told))


def source_document(table: Table | None, facts: DatabaseFacts, scn: int) -> str:
    """Return a table's definition and the properties of its database as a dictionary snapshot in
    JSON.
    """
    database = Database(
        "source", charset=facts.charset, ncharset=facts.ncharset, timezone=facts.timezone
    )
    tables = () if table is None else (table,)
    return dump_snapshot(Snapshot(scn, database, tables)).decode()


def read_source(document: str) -> tuple[Table | None, DatabaseFacts]:
    """Return the table's definition (None if there is none) and the properties of its database from
    a document that `source_document` made.

    Raises:
        OlrPgError: 3003 or 3004: the document is not in this release's format.
    """
    snapshot = parse_snapshot(orjson.loads(document), "olr_pg.ledger")
    database = snapshot.database
    return (
        snapshot.tables[0] if snapshot.tables else None,
        DatabaseFacts(database.charset, database.ncharset, database.timezone),
    )


def read_event(table: str, commit_scn: int, xid: int, data: bytes) -> SchemaEvent:
    """Return the event that a document of `event_document` contains.

    Raises:
        OlrPgError, ValueError, KeyError, TypeError: the document is not in this release's format.
    """
    document = orjson.loads(data)
    definition, _ = read_source(document["definition"])
    error, later = document["error"], document["later"]
    if error is not None:
        code, detail, action, where = error
        error = OlrPgError(code, detail, action=action, **where)
    evolution = Evolution(tuple(map(_read_step, document["steps"])), error)
    return SchemaEvent(
        table,
        commit_scn,
        xid,
        document["begin_scn"],
        evolution,
        definition,
        statement=document["statement"],
        is_fault=document["is_fault"],
        later=None if later is None else LaterFaults(*later),
        lobs=tuple(map(read_lob, document["lobs"])),
    )


PIECE_BYTES: Final = 8 << 20
"""Maximum bytes in one row of the hold. Larger transactions are divided into several rows."""

CHANGES: Final = "changes"
DDL: Final = "ddl"

_COPY: Final = """
COPY olr_pg.held (subscription, source_table, commit_scn, xid, kind, changes, cut, big_endian, data,
    lost)
FROM STDIN (FORMAT BINARY)
"""
_COPY_TYPES: Final = (
    "text", "text", "int8", "text", "text", "int4", "int8[]", "bool", "bytea", "text",
)  # fmt: skip
_FIRST: Final = """
SELECT id, commit_scn, xid, kind, changes, octet_length(data) FROM olr_pg.held
WHERE subscription = %s AND source_table = %s ORDER BY id LIMIT 10000
"""
_END: Final = """
SELECT max(id) FROM olr_pg.held
WHERE subscription = %s AND source_table = %s AND commit_scn = %s AND xid = %s
"""
_GROUPS: Final = """
SELECT id, changes, octet_length(data) FROM olr_pg.held
WHERE subscription = %s AND source_table = %s AND commit_scn = %s AND xid = %s ORDER BY id
"""
_READ: Final = """
SELECT id, commit_scn, xid, kind, changes, cut, big_endian, data, lost FROM olr_pg.held
WHERE subscription = %s AND source_table = %s AND id BETWEEN %s AND %s ORDER BY id
"""
_SHOW: Final = """
SELECT h.kind, h.cut, h.big_endian, h.data, l.held_source
FROM olr_pg.held AS h JOIN olr_pg.ledger AS l USING (subscription, source_table)
WHERE subscription = %s AND source_table = %s AND h.commit_scn = %s AND h.xid = %s ORDER BY h.id
"""
_BYTES: Final = """
SELECT coalesce(sum(octet_length(data)), 0) FROM olr_pg.held
WHERE subscription = %s AND source_table = %s
"""
_LAST: Final = """
SELECT id, commit_scn, xid, kind, changes, cut, big_endian,
    CASE WHEN kind = 'ddl' THEN data END FROM olr_pg.held
WHERE subscription = %s AND source_table = %s ORDER BY id DESC LIMIT 1
"""
_IS_SKIPPED: Final = """
SELECT FROM olr_pg.error WHERE subscription = %s AND source_table = %s AND commit_scn = %s
    AND xid = %s AND position = 0 AND resolution = 'skipped'
"""
_REPLACE: Final = """
UPDATE olr_pg.held SET data = %s WHERE id = %s
"""
_DELETE: Final = """
DELETE FROM olr_pg.held WHERE subscription = %s AND source_table = %s AND id <= %s
"""

_COUNT: Final = """
UPDATE olr_pg.ledger SET held_rows = greatest(held_rows + %s, 0)
WHERE subscription = %s AND source_table = %s
"""
_DROP_TRANSACTION: Final = """
DELETE FROM olr_pg.held WHERE subscription = %s AND source_table = %s AND commit_scn = %s
    AND xid = %s AND kind = 'changes'
"""
_PRESENT: Final = """(SELECT count(*) FROM olr_pg.held AS h
    WHERE (h.subscription, h.source_table) = (l.subscription, l.source_table))"""
# One query has one snapshot, so it needs no lock.
_LOST: Final = f"""
SELECT l.held_rows, {_PRESENT}
FROM olr_pg.ledger AS l WHERE subscription = %s AND source_table = %s AND stopped
"""  # noqa: S608 - constants alone
_COUNT_ANEW: Final = f"""
UPDATE olr_pg.ledger AS l SET held_rows = {_PRESENT} WHERE subscription = %s AND source_table = %s
"""  # noqa: S608 - constants alone

Key = tuple[str, str]
"""Subscription and source table."""


class HeldEvent(NamedTuple):
    """A DDL event in the hold; `last_id` is the id of its last row there."""

    last_id: int
    event: SchemaEvent


class HeldChanges(NamedTuple):
    """Changes of whole transactions.

    Attributes:
        last_id: shape (transactions); the id of each transaction's last row in the hold.
    """

    last_id: tuple[int, ...]
    selection: Selection


class HeldSlices:
    """Changes of one transaction that is too large to read at once. Implements `slices.Slices`."""

    def __init__(
        self, connection: Connection[Any], key: Key, last_id: int, identity: tuple[int, str]
    ) -> None:
        self._connection = connection
        self._key = key
        self._identity = identity
        rows = connection.execute(_GROUPS, (*key, *identity)).fetchall()
        self._groups: list[list[int]] = []
        for row, changes, _ in rows:
            if changes:
                self._groups.append([])
            self._groups[-1].append(int(row))
        self.size = sum(int(length) for _, _, length in rows)
        self.last_id = last_id
        self.commit_scn = identity[0]
        self.xid = parse_xid(identity[1])

    def __len__(self) -> int:
        return len(self._groups)

    def read(self, changes_max: int, bytes_max: int) -> Iterator[Selection]:
        """See `slices.Slices.read`. The parts are those in which the changes were written to the
        hold.

        Raises:
            OlrPgError: 5141, a row of the hold is not in this release's format.
        """
        del changes_max, bytes_max
        for group in self._groups:
            rows = _read(self._connection, self._key, group[0], group[-1])
            with _readable(self._key, rows):
                changes = _changes(rows)
            yield changes.selection


# --- into the hold ---


def hold_changes(
    connection: Connection[Any], key: Key, selection: Selection, order: ByteOrder
) -> None:
    """Add changes of whole transactions to the hold, in the caller's target transaction."""
    data, first = framed(selection)
    cut = cut_rows(selection)
    marked = selection.marked()
    count = 0
    with connection.cursor().copy(_COPY) as copy:
        copy.set_types(_COPY_TYPES)
        for rows in selection.transactions():
            start, end = int(first[rows.start]), int(first[rows.stop])
            identity = (
                *key,
                int(selection.commit_scn[rows.start]),
                format_xid(int(selection.xid[rows.start])),
                CHANGES,
            )
            lost = lost_document(
                (at - rows.start, one) for at, one in marked.items() if rows.start <= at < rows.stop
            )
            cuts = (first[cut[(cut >= rows.start) & (cut < rows.stop)]] - start).tolist()
            for at in range(start, end, PIECE_BYTES):
                is_first = at == start
                changes = rows.stop - rows.start if is_first else 0
                piece = data[at : min(at + PIECE_BYTES, end)]
                copy.write_row(
                    (
                        *identity, changes, cuts if is_first else [], order.is_big,
                        piece.tobytes(), lost if is_first else None,
                    )
                )  # fmt: skip
                count += 1
    connection.execute(_COUNT, (count, *key))


def check_room(connection: Connection[Any], key: Key, size: int, limit: int) -> None:
    """Check that a table's hold has space for `size` more bytes.

    Raises:
        OlrPgError: 5023, the hold does not have this space.
    """
    row = connection.execute(_BYTES, key).fetchone()
    held = 0 if row is None else int(row[0])
    if held + size > limit:
        raise OlrPgError(
            Code.HOLD_FULL,
            f"{size} more bytes, in addition to {held} bytes that are held already",
            table=key[1],
            limit=limit,
        )


def hold_event(
    connection: Connection[Any], key: Key, event: SchemaEvent, facts: DatabaseFacts
) -> SchemaEvent:
    """Add an event to the hold, in the caller's target transaction.

    Consecutive faults are combined into one event that contains their number, the first fault and
    the last fault, so that a table with many faults does not fill the hold. If an operator has
    already skipped the last held event, the new fault is not combined with that event.

    Returns:
        The event that is now in the hold.
    """
    row = connection.execute(_LAST, key, binary=True).fetchone() if event.is_fault else None
    if row is not None and row[3] == DDL:
        last = _event(key[1], row)
        is_open = connection.execute(_IS_SKIPPED, (*key, row[1], row[2])).fetchone() is None
        if last.is_fault and is_open:
            count = 1 if last.later is None else last.later.transactions + 1
            last = last._replace(later=LaterFaults(count, event.commit_scn, event.xid))
            connection.execute(_REPLACE, (event_document(last, facts), row[0]))
            return last
    held: tuple[Any, ...] = (*key, event.commit_scn, format_xid(event.xid), DDL, 0, [], False)
    with connection.cursor().copy(_COPY) as copy:
        copy.set_types(_COPY_TYPES)
        copy.write_row((*held, event_document(event, facts), None))
    connection.execute(_COUNT, (1, *key))
    return event


# --- out of the hold ---


def ending_scn(connection: Connection[Any], key: Key) -> int | None:
    """Return the commit SCN of the last held entry of a table, if it is DDL after which no table
    has this name; else None.

    Raises:
        OlrPgError: 5141, the entry is not in this release's format.
    """
    row = connection.execute(_LAST, key, binary=True).fetchone()
    if row is None or row[3] != DDL:
        return None
    with _readable(key, [row]):
        last = _event(key[1], row)
    is_end = last.definition is None or last.definition.full_name != last.table
    return int(row[1]) if is_end and not last.is_of_rows else None


def first_held(
    connection: Connection[Any], key: Key, *, changes_max: int, bytes_max: int
) -> HeldChanges | HeldSlices | HeldEvent | None:
    """Read the first event, or the first changes of whole transactions, up to about these limits.
    Return None if the hold is empty.

    A transaction that exceeds `bytes_max` and was held in several parts is returned as
    `HeldSlices`.

    Raises:
        OlrPgError: 5141, a row of the hold is not in this release's format.
    """
    found = _first_rows(connection, key, changes_max, bytes_max)
    if found is None:
        return None
    end, only = found
    if only is not None:
        slices = HeldSlices(connection, key, end, only)
        if slices.size > bytes_max and len(slices) > 1:
            return slices
    rows = _read(connection, key, 0, end)
    with _readable(key, rows):
        if rows[0][3] == DDL:
            return HeldEvent(rows[0][0], _event(key[1], rows[0]))
        return _changes(rows)


def _read(connection: Connection[Any], key: Key, first: int, last: int) -> list[tuple[Any, ...]]:
    """Read the rows of the hold with the ids from `first` to `last`."""
    return connection.execute(_READ, (*key, first, last), binary=True).fetchall()


@contextmanager
def _readable(key: Key, rows: Sequence[tuple[Any, ...]]) -> Iterator[None]:
    """Convert the errors of rows that are not in this release's format to 5141."""
    try:
        yield
    except (OlrPgError, ValueError, KeyError, TypeError) as error:
        raise OlrPgError(
            Code.HOLD_UNREADABLE, plain_reason(error), table=key[1], id=rows[0][0]
        ) from error


def held_messages(
    connection: Connection[Any], key: Key, commit_scn: int, xid: str
) -> tuple[bytes, ByteOrder, DatabaseFacts] | None:
    """Read a held transaction as framed messages. Return None if the transaction is not held, or if
    LOB values were dropped because they were too large.

    Raises:
        OlrPgError: 3003, 3004, the table's stored definition is not in this release's format.
    """
    rows = connection.execute(_SHOW, (*key, commit_scn, xid), binary=True).fetchall()
    if not rows or rows[0][0] == DDL or rows[0][1]:
        return None
    order = ByteOrder.BIG if rows[0][2] else ByteOrder.LITTLE
    _, facts = read_source(rows[0][4])
    return b"".join(row[3] for row in rows), order, facts


def _first_rows(
    connection: Connection[Any], key: Key, changes_max: int, bytes_max: int
) -> tuple[int, tuple[int, str] | None] | None:
    """Return the id of the last row of the hold to read, and the transaction if these rows are the
    changes of only one; None if the hold is empty.
    """
    rows = connection.execute(_FIRST, key).fetchall()
    changes = size = end = 0
    identity: tuple[int, str] | None = None
    only: tuple[int, str] | None = None
    for row, scn, xid, kind, count, length in rows:
        if kind == DDL:
            return (int(row), None) if identity is None else (end, only)
        if identity is None:
            only = scn, xid
        elif (scn, xid) != identity:
            if changes + count > changes_max or size + length > bytes_max:
                return end, only
            only = None
        identity = scn, xid
        changes, size, end = changes + count, size + length, int(row)
    if identity is None:
        return None
    found = connection.execute(_END, (*key, *identity)).fetchone()
    assert found is not None
    return int(found[0]), only


def _changes(rows: Sequence[tuple[Any, ...]]) -> HeldChanges:
    selections, last_ids, messages = list[Selection](), list[int](), HeldMessages()
    identity = None
    for transaction in _transactions(rows):
        head = transaction[0]
        data = np.concatenate([np.frombuffer(row[7], np.uint8) for row in transaction])
        selection = messages.parse(data, head[5], ByteOrder.BIG if head[6] else ByteOrder.LITTLE)
        if len(selection) != head[4]:
            raise ValueError(f"{len(selection)} changes instead of {head[4]}")
        selections.append(with_lost(selection, read_lost(head[8])))
        if identity == head[1:3]:
            # This is another part of the previous transaction, which was held in slices.
            last_ids.pop()
        identity = head[1:3]
        last_ids.append(int(transaction[-1][0]))
    return HeldChanges(tuple(last_ids), join(selections))


def _transactions(rows: Sequence[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
    """Group the rows by transaction, or by slice if a transaction was held in slices. Only the
    first row of each has a number of changes other than 0.
    """
    found: list[list[tuple[Any, ...]]] = []
    for row in rows:
        if row[4]:
            found.append([])
        found[-1].append(row)
    return found


def _event(table: str, row: tuple[Any, ...]) -> SchemaEvent:
    return read_event(table, row[1], parse_xid(row[2]), row[7])


def delete_held(connection: Connection[Any], key: Key, last_id: int) -> None:
    """Delete applied changes from the hold, in the target transaction that applied them."""
    count = connection.execute(_DELETE, (*key, last_id)).rowcount
    connection.execute(_COUNT, (-count, *key))


def delete_transaction(connection: Connection[Any], key: Key, commit_scn: int, xid: str) -> None:
    """Delete the changes of a skipped transaction from the hold, in a transaction that has locked
    the table's row in the ledger.
    """
    count = connection.execute(_DROP_TRANSACTION, (*key, commit_scn, xid)).rowcount
    connection.execute(_COUNT, (-count, *key))


# --- changes that the hold has lost ---


def lost_changes(connection: Connection[Any], subscription: str, table: str) -> OlrPgError | None:
    """Return the error of a stopped table whose hold has other changes than olr_pg has written.

    Args:
        table: ``OWNER.NAME`` of the source's table.
    """
    row = connection.execute(_LOST, (subscription, table)).fetchone()
    if row is None or row[1] == row[0]:
        return None
    return OlrPgError(
        Code.HOLD_LOST,
        f"olr_pg.held has {counted(row[1], 'row')} of the table, and should have {row[0]:,}",
        table=table,
    )


def accept_loss(connection: Connection[Any], subscription: str, table: str) -> None:
    """Continue with the rows that the hold still has."""
    with connection.transaction():
        # Count after the lock: a running applier may be adding changes.
        connection.execute(LOCK_ROW, (subscription, table))
        connection.execute(_COUNT_ANEW, (subscription, table))
