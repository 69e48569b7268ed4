"""Computes the net change of each row of a table within a batch, from pgoutput's messages.

Rows are identified by the bytes of their key. Oracle's array binds do not guarantee an order
between rows. So the changes of a segment are written in this order: deletes, updates, inserts. An
update that changes a key ends the segment. Updates that change keys form a segment of their own,
and are written in the order in which they were made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.pgoutput import BINARY, NULL, TEXT, UNCHANGED, Delete, Insert, Row, Update

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Key = tuple[bytes | None, ...]


class RowWrite(NamedTuple):
    """Rows that one statement writes.

    Attributes:
        columns: numbers of the columns that the statement sets; empty for a DELETE.
        keys: the key of each row; empty for an INSERT.
        rows: the values of all columns of each row.
        is_ordered: whether the rows must be written in the order of `rows`.
    """

    operation: str
    columns: tuple[int, ...]
    keys: list[Key]
    rows: list[tuple[bytes | None, ...]]
    is_ordered: bool = False


class _Net:
    """The net change of one row.

    Attributes:
        is_deleted: whether the row existed before the batch and must be deleted first.
        is_new: whether to insert `row`; otherwise the existing row is updated.
    """

    __slots__ = ("is_deleted", "is_new", "row")

    def __init__(self, row: Row | None, *, is_deleted: bool, is_new: bool) -> None:
        self.row = row
        self.is_deleted = is_deleted
        self.is_new = is_new


class NetRows:
    """Changes of one table; changes with the same key are combined to one net change.

    Args:
        key: numbers of the key's columns in the row of the relation.
        count: number of columns of the relation.
        name: ``OWNER.NAME``, for errors.
        is_key_logged: whether PostgreSQL sends the old key of each row whose key changes.

    Attributes:
        changes: number of changes added.
        size: bytes of the values added.
    """

    def __init__(
        self, key: Sequence[int], count: int, name: str, *, is_key_logged: bool = True
    ) -> None:
        self._key = tuple(key)
        self._is_key_logged = is_key_logged
        self._count = count
        self._name = name
        self._segments: list[RowWrite | dict[Key, _Net]] = []
        self.changes = 0
        self.size = 0

    def add(self, change: Insert | Update | Delete) -> None:
        """Add one change.

        Raises:
            OlrPgError: 7311 the change lacks the row's key, 7312 a value is not in binary form.
        """
        self.changes += 1
        if isinstance(change, Insert):
            self._insert(self._checked(change.new))
        elif isinstance(change, Delete):
            self._delete(self._checked(change.old))
        else:
            self._update(change)

    def writes(self) -> Iterator[RowWrite]:
        """Yield the writes in the order in which they must be executed."""
        for segment in self._segments:
            if isinstance(segment, RowWrite):
                yield segment
            else:
                yield from self._folded(segment)

    def _insert(self, row: Row) -> None:
        key, nets = self._key_of(row), self._nets()
        before = nets.get(key)
        if before is not None and before.row is not None:
            nets, before = self._new_nets(), None
        deleted = before is not None and before.is_deleted
        nets[key] = _Net(row, is_deleted=deleted, is_new=True)

    def _delete(self, old: Row) -> None:
        key = self._key_of(old)
        nets, before = self._known(key, old)
        if before is not None and before.is_new and not before.is_deleted:
            del nets[key]
        else:
            nets[key] = _Net(None, is_deleted=True, is_new=False)

    def _update(self, change: Update) -> None:
        new = self._checked(change.new)
        old = None if change.old is None else self._checked(change.old)
        if old is None and not self._is_key_logged:
            raise OlrPgError(
                Code.FALLBACK_ROW_WITHOUT_KEY,
                "the replica identity of the updated table does not contain the key",
                table=self._name,
            )
        if old is not None:
            new = _filled(new, old, self._key)
        key = self._key_of(new)
        old_key = key if old is None else self._key_of(old)
        if old_key != key:
            self._move(old_key, new)
            return
        nets, before = self._known(key, old)
        if before is not None and before.row is not None:
            row = _merged(new, before.row)
            nets[key] = _Net(row, is_deleted=before.is_deleted, is_new=before.is_new)
        else:
            nets[key] = _Net(new, is_deleted=False, is_new=False)

    def _move(self, old_key: Key, row: Row) -> None:
        columns = _sent(row)
        last = self._segments[-1] if self._segments else None
        if isinstance(last, RowWrite) and last.columns == columns:
            last.keys.append(old_key)
            last.rows.append(row.values)
        else:
            self._segments.append(
                RowWrite("UPDATE", columns, [old_key], [row.values], is_ordered=True)
            )

    def _nets(self) -> dict[Key, _Net]:
        last = self._segments[-1] if self._segments else None
        return last if isinstance(last, dict) else self._new_nets()

    def _known(self, key: Key, old: Row | None) -> tuple[dict[Key, _Net], _Net | None]:
        """Return the segment for a change of the row `old`, and the row's earlier change in it."""
        nets = self._nets()
        before = nets.get(key)
        if before is not None and (before.row is None or not _is_same(before.row, old)):
            return self._new_nets(), None
        return nets, before

    def _new_nets(self) -> dict[Key, _Net]:
        """Begin a segment. A change that contradicts the row's earlier change is not combined with
        it: Oracle must see both and refuse one. PostgreSQL can contain two rows with the same key,
        because it need not have Oracle's key.
        """
        nets: dict[Key, _Net] = {}
        self._segments.append(nets)
        return nets

    def _folded(self, nets: dict[Key, _Net]) -> Iterator[RowWrite]:
        deleted = [key for key, net in nets.items() if net.is_deleted]
        if deleted:
            yield RowWrite("DELETE", (), deleted, [])
        for operation in ("UPDATE", "INSERT"):
            groups: dict[tuple[int, ...], RowWrite] = {}
            for key, net in nets.items():
                if net.row is None or net.is_new != (operation == "INSERT"):
                    continue
                columns = _sent(net.row)
                if operation == "UPDATE":
                    columns = tuple(one for one in columns if one not in self._key) or self._key
                group = groups.setdefault(columns, RowWrite(operation, columns, [], []))
                group.keys.append(key)
                group.rows.append(net.row.values)
            yield from groups.values()

    def _key_of(self, row: Row) -> Key:
        if any(row.kinds[number] in (NULL, UNCHANGED) for number in self._key):
            raise OlrPgError(
                Code.FALLBACK_ROW_WITHOUT_KEY,
                "a change lacks values of the key",
                table=self._name,
            )
        return tuple(row.values[number] for number in self._key)

    def _checked(self, row: Row) -> Row:
        self.size += sum(len(one) for one in row.values if one is not None)
        if len(row.values) != self._count or TEXT in row.kinds:
            raise OlrPgError(
                Code.FALLBACK_ROW_UNREADABLE,
                "a value is not in binary format, or a row has more or fewer columns"
                " than its table",
                table=self._name,
            )
        return row


def _sent(row: Row) -> tuple[int, ...]:
    """Return the numbers of the columns whose values PostgreSQL has sent in the row."""
    if UNCHANGED not in row.kinds:
        return tuple(range(len(row.values)))
    return tuple(number for number, kind in enumerate(row.kinds) if kind != UNCHANGED)


def _is_same(row: Row, old: Row | None) -> bool:
    """Return whether the old image of a change can belong to `row`. With the replica identity FULL,
    it contains all values; otherwise the key only, and NULL for the other columns.
    """
    return old is None or all(
        ours == theirs
        for ours, theirs, our_kind, kind in zip(
            row.values, old.values, row.kinds, old.kinds, strict=True
        )
        if kind == BINARY and our_kind != UNCHANGED
    )


def _merged(new: Row, old: Row) -> Row:
    """Return `new`, with its missing values taken from the older row `old`."""
    if UNCHANGED not in new.kinds:
        return new
    kept = [kind == UNCHANGED for kind in new.kinds]
    return Row(
        tuple(o if keep else n for keep, n, o in zip(kept, new.values, old.values, strict=True)),
        bytes(o if keep else n for keep, n, o in zip(kept, new.kinds, old.kinds, strict=True)),
    )


def _filled(new: Row, old: Row, key: Sequence[int]) -> Row:
    """Return `new`, with the key values that PostgreSQL did not send taken from the old image."""
    if not any(new.kinds[number] == UNCHANGED for number in key):
        return new
    values, kinds = list(new.values), bytearray(new.kinds)
    for number in key:
        if kinds[number] == UNCHANGED:
            values[number], kinds[number] = old.values[number], old.kinds[number]
    return Row(tuple(values), bytes(kinds))
