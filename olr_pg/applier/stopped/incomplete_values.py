"""The list of incomplete rows: LOB values that the target lacks because the redo did not contain
them.

If the LOB value of a change is missing, an INSERT sets the column to NULL, and an UPDATE keeps the
old value. The target transaction that applies the change also adds an entry to the list of missing
values. The entry is removed by the target transaction in which a later change sets the column,
deletes the row or empties the table. If a change modifies the row's key, the entry gets the new
key. Entries contain the key as text, so that users can find the row.

The table's row in the ledger contains the number of the table's entries. The list is changed only
while this row is locked, so the number is reliable: if it is 0, batches do not read the list. For
other tables, PostgreSQL uses an index on the keys to find which changes concern listed rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from psycopg import Connection, sql

from olr_pg.applier.settings import ApplierSettings, IncompletePolicy
from olr_pg.applier.statements.bound_statement import escape_percent_signs
from olr_pg.applier.statements.images import composite_array
from olr_pg.applier.statements.net_change import ABSENT, Cells
from olr_pg.applier.statements.table_changes import Selection, TargetChanges, encode_changes, row_id
from olr_pg.applier.stopped.error_table import BESIDE, LostLobRefusedError
from olr_pg.applier.target.connection import Binary
from olr_pg.datatypes.columns import column_of, compact
from olr_pg.errors import Code, OlrPgError
from olr_pg.scalars import format_xid
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from olr_pg.applier.statements.lost_value_documents import LostValues
    from olr_pg.applier.statements.target_plan import TablePlan
    from olr_pg.applier.target.ledger import TableLedger
    from olr_pg.transactions.lobs.lost_values import LostLob

I64 = npt.NDArray[np.int64]

_LINES: Final = """
SELECT id, key::text, row_id, column_name FROM olr_pg.incomplete
WHERE subscription = %s AND source_table = %s
"""
_OF_KEYS: Final = f"{_LINES} AND key = ANY(%s::jsonb[]) ORDER BY id"
_OF_ROWS: Final = f"{_LINES} AND key IS NULL AND row_id = ANY(%s) ORDER BY id"
_ROWS: Final = """
SELECT DISTINCT row_id FROM olr_pg.incomplete
WHERE subscription = %s AND source_table = %s AND key IS NULL AND row_id IS NOT NULL
"""
_ADD: Final = """
INSERT INTO olr_pg.incomplete (subscription, source_table, target_table, key, row_id, column_name,
    target_column, operation, commit_scn, xid, reason)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_MOVE: Final = """
UPDATE olr_pg.incomplete AS i SET key = s.key::jsonb
FROM unnest(%s::bigint[], %s::text[]) AS s (id, key) WHERE i.id = s.id
"""
_DELETE: Final = "DELETE FROM olr_pg.incomplete WHERE id = ANY(%s)"
_EMPTY: Final = "DELETE FROM olr_pg.incomplete WHERE subscription = %s AND source_table = %s"
_FORGET_COLUMN: Final = f"{_EMPTY} AND column_name = %s"
_RENAME_COLUMN: Final = """
UPDATE olr_pg.incomplete SET column_name = %s, target_column = %s
WHERE subscription = %s AND source_table = %s AND column_name = %s
"""
_RENAME_IN_KEYS: Final = """
UPDATE olr_pg.incomplete SET key = key - %s || jsonb_build_object(%s::text, key -> %s)
WHERE subscription = %s AND source_table = %s AND key ? %s
"""


def check_lost(
    settings: ApplierSettings,
    part: Selection,
    kept: npt.NDArray[np.bool_] | None = None,
    skipped: Container[tuple[int, int, int]] = (),
) -> None:
    """Check that the configuration allows these changes to be applied without their missing values.

    Args:
        kept: which changes are not skipped; None for all.
        skipped: (commit SCN, XID, index) of the changes and missing values that an operator chose
            to skip.

    Raises:
        LostLobRefusedError: 5155, a missing value stops the table.
    """
    for at, one in part.marked().items():
        identity = int(part.commit_scn[at]), int(part.xid[at])
        for lob in one.lobs:
            if lob.delivered:
                is_decided = kept is not None and not kept[at]
            else:
                is_decided = (*identity, BESIDE + at) in skipped
            if not is_decided and stops(settings, one.table, lob):
                raise LostLobRefusedError(at, stop_error(one.table, lob), lob)


def stops(settings: ApplierSettings, table: str, lob: LostLob) -> bool:
    """Return whether the table stops because of this missing value."""
    return settings.incomplete_policy(table, lob.column) is IncompletePolicy.STOP


def stop_error(table: str, lob: LostLob) -> OlrPgError:
    """Return the error with which the table stops because of this missing value."""
    reason = OlrPgError(lob.code, "").label
    return OlrPgError(
        Code.LOB_STOPS_TABLE, f"{lob.column} of row {lob.row_id} ({reason})", table=table
    )


class _Line(NamedTuple):
    """An entry of the list, while the effect of changes on it is computed.

    Attributes:
        id: the id of the entry in `olr_pg.incomplete`; None if it is not stored yet.
        origin: the key that the entry had before the changes.
        lost: the missing value; None for a stored entry.
    """

    id: int | None
    key: str | None
    row_id: str | None
    column: str
    origin: str | None
    lost: LostLob | None = None
    commit_scn: int = 0
    xid: int = 0


class _Row(NamedTuple):
    """A row, as identified by a change: by its key, or by its ROWID if the table has no key."""

    key: str | None
    row_id: str


class Incomplete(NamedTuple):
    """The missing LOB values of one table, in a target transaction that has locked the table's row
    in the ledger.
    """

    connection: Connection[Any]
    ledger: TableLedger
    plan: TablePlan

    def follow(self, selection: Selection, kept: npt.NDArray[np.bool_] | None = None) -> None:
        """Update the list after changes were applied to the table.

        Args:
            kept: which of the changes were applied; None for all.

        Raises:
            ChangeError: a change cannot be converted, so it cannot have been applied.
        """
        marked = selection.marked()
        if not marked and not self.ledger.listed:
            return
        _Steps(self, selection, marked, kept).write()

    def note(self, lobs: Sequence[LostLob], commit_scn: int, xid: int) -> None:
        """Record missing values whose changes are not delivered."""
        lines = _Lines(self)
        rows = [_Row(key, lob.row_id) for lob, key in zip(lobs, self.keys_of(lobs), strict=True)]
        lines.load(rows)
        for lob, row in zip(lobs, rows, strict=True):
            lines.add(row, lob, commit_scn, xid)
        lines.write()

    # --- keys ---

    def keys_of(self, lobs: Sequence[LostLob]) -> list[str | None]:
        """Return the key of each missing value's row as JSON; None if its change lacks the key."""
        places = self.plan.key.tolist()
        told = [dict(lob.key) for lob in lobs]
        names = [self.plan.source_name(place) for place in places]
        whole = [
            number
            for number, key in enumerate(told)
            if names and all(name is not None and key.get(name) is not None for name in names)
        ]
        found: list[str | None] = [None] * len(lobs)
        if not whole:
            return found
        width = len(self.plan.target.columns)
        offset = np.zeros((len(whole), width), np.int64)
        length = np.full((len(whole), width), ABSENT, np.int64)
        parts, end = list[npt.NDArray[np.uint8]](), 0
        for place, name in zip(places, names, strict=True):
            raw = [told[number][str(name)] or b"" for number in whole]
            try:
                values, _ = self.plan.key_encoder(place)(column_of(raw))
            except OlrPgError:
                return found
            encoded = compact(values)
            offset[:, place], length[:, place] = encoded.offset + end, encoded.length
            parts.append(encoded.data)
            end += encoded.data.size
        cells = Cells(np.concatenate(parts), offset, length)
        for number, text in zip(whole, self.texts(cells, np.arange(len(whole))), strict=True):
            found[number] = text
        return found

    def texts(self, cells: Cells, rows: I64) -> list[str]:
        """Return the keys of the given rows as JSON."""
        return [key for _, key in self.meeting(cells, rows, None)]

    def meeting(self, cells: Cells, rows: I64, keys: Sequence[str] | None) -> list[tuple[int, str]]:
        """Return the index and the key, as JSON, of each of these rows whose key is in the list or
        in `keys`.

        Args:
            keys: further keys; None to return all rows.
        """
        if len(rows) == 0:
            return []
        plan = self.plan
        only_key = cells._replace(length=np.full_like(cells.length, ABSENT))
        only_key.length[:, plan.key] = cells.length[:, plan.key]
        array = composite_array(only_key, rows, plan.target.row_type_oid, plan.types)
        query = sql.SQL(
            "SELECT s.n, s.key::text FROM (SELECT u.ordinality AS n, {key} AS key"
            " FROM unnest(%b::{table}[]) WITH ORDINALITY AS u) AS s{where} ORDER BY s.n"
        ).format(
            key=key_expression([plan.target.columns[i].name for i in plan.key], sql.SQL("u")),
            table=escape_percent_signs(plan.target.identifier),
            where=sql.SQL("" if keys is None else _MEETING),
        )
        parameters: tuple[Any, ...] = (Binary(array),)
        if keys is not None:
            parameters += (list(keys), *self.ledger.key)
        found = self.connection.execute(query, parameters).fetchall()
        return [(int(rows[n - 1]), key) for n, key in found]


_MEETING: Final = (
    " WHERE s.key = ANY(%s::jsonb[]) OR EXISTS (SELECT FROM olr_pg.incomplete AS i"
    " WHERE i.subscription = %s AND i.source_table = %s AND i.key = s.key)"
)


def key_expression(names: Sequence[str], row: sql.SQL) -> sql.Composed:
    """Return SQL for the key of `row` in the form that the list uses: a JSON object that maps
    column names to values as text.
    """
    pairs = sql.SQL(", ").join(
        sql.SQL("{}::text, {}.{}::text").format(
            escape_percent_signs(sql.Literal(name)), row, escape_percent_signs(sql.Identifier(name))
        )
        for name in names
    )
    return sql.SQL("jsonb_build_object({})").format(pairs)


def forget_table(connection: Connection[Any], ledger: TableLedger) -> None:
    """Delete all entries of a table, in the target transaction that emptied it."""
    connection.execute(_EMPTY, ledger.key)
    ledger.count_incomplete(connection)


def forget_column(connection: Connection[Any], ledger: TableLedger, column: str) -> None:
    """Delete the entries of a source column, in the target transaction that drops it."""
    connection.execute(_FORGET_COLUMN, (*ledger.key, column))
    ledger.count_incomplete(connection)


def rename_column(
    connection: Connection[Any],
    ledger: TableLedger,
    columns: tuple[str, str],
    target_columns: tuple[str, str],
) -> None:
    """Rename a column in the table's entries, in the target transaction that renames the column.

    Args:
        columns, target_columns: the old and the new name, in the source and in the target.
    """
    (old, new), (target_old, target_new) = columns, target_columns
    connection.execute(_RENAME_COLUMN, (new, target_new, *ledger.key, old))
    if target_old != target_new:
        parameters = (target_old, target_new, target_old, *ledger.key, target_old)
        connection.execute(_RENAME_IN_KEYS, parameters)


class _Lines:
    """The entries of `olr_pg.incomplete` for the rows of a batch, and how they change."""

    def __init__(self, of: Incomplete) -> None:
        self._of = of
        self._lines: list[_Line] = []
        self._by_row: dict[str, list[_Line]] = {}
        self._gone: list[int] = []

    def load(self, rows: Iterable[_Row]) -> None:
        """Read the stored entries of the given rows."""
        wanted = list(rows)
        keys = sorted({row.key for row in wanted if row.key is not None})
        others = sorted({row.row_id for row in wanted if row.key is None and row.row_id})
        key = self._of.ledger.key
        found = list[tuple[Any, ...]]()
        if keys:
            found += self._of.connection.execute(_OF_KEYS, (*key, keys)).fetchall()
        if others:
            found += self._of.connection.execute(_OF_ROWS, (*key, others)).fetchall()
        for number, text, rowid, column in found:
            self._put(_Line(number, text, rowid, column, text))

    def _put(self, line: _Line) -> None:
        self._by_row.setdefault(_name(line.key, line.row_id), []).append(line)

    def add(self, row: _Row, lob: LostLob, commit_scn: int, xid: int) -> None:
        """Add an entry for a missing value. The new entry replaces an existing entry of the row for
        the same column.
        """
        self.remove(row, {lob.column})
        line = _Line(None, row.key, row.row_id or None, lob.column, row.key, lob, commit_scn, xid)
        self._put(line)

    def remove(self, row: _Row, columns: set[str] | None = None) -> None:
        """Remove the entries of a row, because it was deleted or inserted; or only the entries of
        `columns`, because an update has set these columns.
        """
        mine = [line for line in self._mine(row) if columns is None or line.column in columns]
        self._take(row, mine)
        self._gone += [line.id for line in mine if line.id is not None]

    def move(self, row: _Row, key: str) -> None:
        """Give the entries of a row another key."""
        mine = self._mine(row)
        self._take(row, mine)
        for line in mine:
            self._put(line._replace(key=key))

    def _mine(self, row: _Row) -> list[_Line]:
        """Return the entries of a row.

        While rows exchange keys, two rows can have the same key. The ROWIDs of two such rows
        distinguish them, unless a ROWID has changed since the entry was added.
        """
        lines = self._by_row.get(_name(row.key, row.row_id), [])
        same = [line for line in lines if line.row_id == row.row_id]
        came = [line for line in lines if line.origin != line.key]
        return same or [line for line in lines if not row.row_id or line not in came]

    def _take(self, row: _Row, lines: Sequence[_Line]) -> None:
        name = _name(row.key, row.row_id)
        self._by_row[name] = [line for line in self._by_row.get(name, ()) if line not in lines]

    def write(self) -> None:
        """Write the changed entries to `olr_pg.incomplete`."""
        connection, ledger = self._of.connection, self._of.ledger
        lines = [line for some in self._by_row.values() for line in some]
        new = [line for line in lines if line.id is None]
        moved = [(line.id, line.key) for line in lines
                 if line.id is not None and line.origin != line.key]  # fmt: skip
        if self._gone:
            connection.execute(_DELETE, (self._gone,))
        if moved:
            ids, keys = zip(*moved, strict=True)
            connection.execute(_MOVE, (list(ids), list(keys)))
        if new:
            with connection.cursor() as cursor:
                cursor.executemany(_ADD, [self._values(line) for line in new])
        if self._gone or new:
            ledger.count_incomplete(connection, len(new) - len(self._gone))

    def _values(self, line: _Line) -> tuple[Any, ...]:
        of, lost = self._of, line.lost
        assert lost is not None
        return (
            *of.ledger.key,
            of.plan.target.full_name,
            line.key,
            line.row_id,
            line.column,
            of.plan.target.columns[of.plan.field(line.column)].name,
            lost.kind.name.lower(),
            line.commit_scn,
            format_xid(line.xid),
            lost.code,
        )


def _name(key: str | None, row_id: str | None) -> str:
    """Return a unique name for a row: its key as JSON, or its ROWID, which never looks like
    JSON.
    """
    return key if key is not None else row_id or ""


class _Steps:
    """Computes how the changes of a selection change the list, in their order."""

    def __init__(
        self,
        of: Incomplete,
        selection: Selection,
        marked: dict[int, LostValues],
        kept: npt.NDArray[np.bool_] | None,
    ) -> None:
        self._of, self._selection, self._marked = of, selection, marked
        self._kept = np.ones(len(selection), np.bool_) if kept is None else kept
        # Ignore missing values of skipped changes.
        self._lobs = {
            at: [lob for lob in one.lobs if self._kept[at] or not lob.delivered]
            for at, one in marked.items()
        }
        lobs = [lob for some in self._lobs.values() for lob in some]
        keys = of.keys_of(lobs)
        self._rows = {id(lob): _Row(key, lob.row_id) for lob, key in zip(lobs, keys, strict=True)}
        self._old: dict[int, _Row] = {}
        self._new: dict[int, str] = {}
        if self._kept.any():
            self._find(sorted({key for key in keys if key is not None}))

    def _find(self, keys: Sequence[str]) -> None:
        """Find the changes of rows that are in the list or will be, and keep these rows in `_old`
        and `_new`.
        """
        of, selection = self._of, self._selection
        if len(of.plan.key) == 0:
            self._find_by_row_id()
            return
        changes = encode_changes(of.plan, selection, again=True)
        count = len(selection)
        number = np.flatnonzero(self._kept)
        # Inserts are identified by their after image, other changes by their before image.
        row = np.where(changes.kind[number] == DmlKind.INSERT, count + number, number)
        told = (changes.cells.length[row][:, of.plan.key] >= 0).all(axis=1)
        number, row = number[told], row[told]
        moving = number[_sets_key(changes, number, of.plan.key)]
        if moving.size:
            # An update may give a row a new key that is in the list, so look at all rows.
            found = list(zip(row.tolist(), of.texts(changes.cells, row), strict=True))
            behind = _behind(changes, moving, of.plan.key)
            self._new = dict(zip(moving.tolist(), of.texts(behind, moving), strict=True))
        else:
            found = of.meeting(changes.cells, row, keys)
        for at, key in found:
            self._old[at % count] = _Row(key, row_id(selection, at % count) or "")

    def _find_by_row_id(self) -> None:
        of = self._of
        known = {one for (one,) in of.connection.execute(_ROWS, of.ledger.key).fetchall()}
        known |= {row.row_id for row in self._rows.values()}
        for at in np.flatnonzero(self._kept).tolist():
            found = row_id(self._selection, at)
            if found in known:
                self._old[at] = _Row(None, str(found))

    def write(self) -> None:
        """Compute the new entries and write them."""
        lines = _Lines(self._of)
        moved = (_Row(key, "") for key in self._new.values())
        lines.load([*self._old.values(), *moved, *self._rows.values()])
        for at in sorted({*self._old, *self._marked}):
            one = self._marked.get(at)
            for lob in one.before if one else ():
                self._add(lines, at, lob)
            if at in self._old:
                self._apply(lines, at)
            for lob in one.after if one else ():
                self._add(lines, at, lob)
        lines.write()

    def _add(self, lines: _Lines, at: int, lob: LostLob) -> None:
        row = self._rows.get(id(lob))
        if row is not None:
            commit_scn, xid = self._selection.commit_scn[at], self._selection.xid[at]
            lines.add(row, lob, int(commit_scn), int(xid))

    def _apply(self, lines: _Lines, at: int) -> None:
        row = self._old[at]
        if self._selection.kind(at) is not DmlKind.UPDATE:
            lines.remove(row)
            return
        lines.remove(row, set(self._selection.images(at)[1]))
        key = self._new.get(at)
        if key is not None and key != row.key:
            lines.move(row, key)


def _sets_key(changes: TargetChanges, number: I64, key: I64) -> npt.NDArray[np.bool_]:
    """Return which of these changes are updates that set a column of the key."""
    sets = (changes.after.length[number][:, key] != ABSENT).any(axis=1)
    moves: npt.NDArray[np.bool_] = (changes.kind[number] == DmlKind.UPDATE) & sets
    return moves


def _behind(changes: TargetChanges, number: I64, key: I64) -> Cells:
    """Return the keys that rows have after these updates, as cells. The row of the cells is the
    index of the change.
    """
    before, after = changes.before, changes.after
    offset, length = before.offset.copy(), before.length.copy()
    for column in key.tolist():
        present = number[after.length[number, column] != ABSENT]
        offset[present, column] = after.offset[present, column]
        length[present, column] = after.length[present, column]
    return Cells(before.data, offset, length)
