"""Net changes of rows, against applying each change in its order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.oracle_writer import NetRows
from olr_pg.fallback.pgoutput import Delete, Insert, Row, Update

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.fallback.oracle_writer import RowWrite

_KEYS = [b"a", b"b", b"c"]
Table = dict[bytes, tuple[bytes | None, ...]]


def _row(key: bytes, value: bytes | None, lob: bytes | None, *, unchanged: bool = False) -> Row:
    kinds = bytes(ord("n") if one is None else ord("b") for one in (key, value))
    last = ord("u") if unchanged else ord("n" if lob is None else "b")
    return Row((key, value, None if unchanged else lob), kinds + bytes([last]))


@st.composite
def _history(draw: st.DrawFn) -> tuple[Table, list[Insert | Update | Delete], Table]:
    """Rows before, changes that PostgreSQL could send, and rows after them."""
    value = st.one_of(st.none(), st.binary(min_size=1, max_size=1))
    start: Table = {
        key: (key, draw(value), draw(value)) for key in draw(st.sets(st.sampled_from(_KEYS)))
    }
    rows, changes = dict(start), list[Insert | Update | Delete]()
    for _ in range(draw(st.integers(1, 12))):
        key = draw(st.sampled_from(_KEYS))
        if key not in rows:
            new = _row(key, draw(value), draw(value))
            changes.append(Insert(1, new))
            rows[key] = new.values
            continue
        what = draw(st.sampled_from(("update", "toast", "delete", "move")))
        if what == "delete":
            changes.append(Delete(1, _row(key, None, None)))
            del rows[key]
            continue
        free = [one for one in _KEYS if one not in rows]
        moved = free[0] if what == "move" and free else key
        unchanged = what == "toast"
        new = _row(moved, draw(value), draw(value), unchanged=unchanged)
        old = _row(key, None, None) if moved != key else None
        changes.append(Update(1, old, new))
        lob = rows.pop(key)[2]
        rows[moved] = (*new.values[:2], lob if unchanged else new.values[2])
    return start, changes, rows


def _apply(rows: Table, writes: Iterable[RowWrite]) -> Table:
    """Carry writes out as Oracle does: a row at a time, keys unique at each moment."""
    rows = dict(rows)
    for write in writes:
        for number in range(max(len(write.keys), len(write.rows))):
            if write.operation == "DELETE":
                del rows[write.keys[number][0] or b""]
                continue
            new = write.rows[number]
            if write.operation == "INSERT":
                row: list[bytes | None] = [None, None, None]
            else:
                row = list(rows.pop(write.keys[number][0] or b""))
            for column in write.columns:
                row[column] = new[column]
            key = row[0]
            assert isinstance(key, bytes)
            assert key not in rows
            rows[key] = tuple(row)
    return rows


@given(_history())
def test_net_changes_end_as_each_change_does(made: tuple[Table, list[Insert], Table]) -> None:
    before, changes, after = made
    net = NetRows((0,), 3, "APP.T")
    for change in changes:
        net.add(change)
    assert _apply(before, net.writes()) == after


def test_changes_that_contradict_each_other_are_not_combined() -> None:
    """Oracle must refuse one of them."""
    first, second = _row(b"a", b"1", None), _row(b"a", b"2", None)
    contradictions: list[list[Insert | Update | Delete]] = [
        [Insert(1, first), Insert(1, second)],
        [Delete(1, first), Delete(1, first)],
        [Delete(1, first), Update(1, None, second)],
        # The row that is deleted or updated is not the row that was inserted.
        [Insert(1, first), Delete(1, second)],
        [Insert(1, first), Update(1, second, second)],
    ]
    for changes in contradictions:
        net = NetRows((0,), 3, "APP.T")
        for one in changes:
            net.add(one)
        assert sum(len(write.keys) for write in net.writes()) == 2
    net = NetRows((0,), 3, "APP.T")
    net.add(Insert(1, first))
    net.add(Update(1, first, second))
    net.add(Delete(1, second))
    assert list(net.writes()) == []


def test_a_row_without_its_key_is_refused() -> None:
    net = NetRows((0,), 3, "APP.T")
    with pytest.raises(OlrPgError) as refused:
        net.add(Delete(1, Row((None, b"x", None), b"nbn")))
    assert refused.value.code == Code.FALLBACK_ROW_WITHOUT_KEY


@pytest.mark.parametrize("row", [Row((b"a", b"1", b"x"), b"btb"), Row((b"a",), b"b")])
def test_a_row_of_another_form_is_refused(row: Row) -> None:
    with pytest.raises(OlrPgError) as refused:
        NetRows((0,), 3, "APP.T").add(Insert(1, row))
    assert refused.value.code == Code.FALLBACK_ROW_UNREADABLE
