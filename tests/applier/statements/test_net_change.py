from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.applier.statements import net_change as netchange
from olr_pg.applier.statements.net_change import (
    ABSENT,
    NO_KEY,
    REST,
    SINGLE,
    Cells,
    NetChange,
    net_change,
)

KEY = np.array([0])
WHOLE = np.array([0, 1, 2])
INSERT, DELETE, UPDATE = 4, 5, 6
Image = tuple[int | None, ...]  # None = absent


class Change(NamedTuple):
    kind: int
    before: Image
    after: Image
    row: int = 0


def _cells(images: list[Image], data: list[int]) -> Cells:
    offset = np.zeros((len(images), 3), np.int64)
    length = np.full((len(images), 3), ABSENT, np.int64)
    for i, image in enumerate(images):
        for j, value in enumerate(image):
            if value is not None:
                offset[i, j], length[i, j] = len(data), 1
                data.append(value)
    return Cells(np.zeros(0, np.uint8), offset, length)


def _fold(
    changes: list[Change], start: int = 0
) -> tuple[int, int, list[int], dict[int, Image], dict[int, Image]]:
    data: list[int] = []
    nothing: Image = (None, None, None)
    images = [change.before or nothing for change in changes]
    images += [change.after or nothing for change in changes]
    cells = _cells(images + [nothing] * len(changes), data)
    buffer = np.array([*data, 0], np.uint8)
    cells.offset[2 * len(changes) :], cells.length[2 * len(changes) :] = 0, 1  # of other runs
    given = [cells.offset.copy(), cells.length.copy()]
    net = net_change(
        np.array([change.kind for change in changes], np.uint8),
        np.array([change.row for change in changes], np.uint64),
        cells._replace(data=buffer),
        KEY,
        WHOLE,
        start,
    )

    # Whoever applies the changes one by one, or what is behind the run, takes them as they came.
    count = len(changes)
    for ours, now in zip(given, (cells.offset, cells.length), strict=True):
        for first in (0, count):
            end = first + count
            np.testing.assert_array_equal(ours[first:end, 1:], now[first:end, 1:])
            np.testing.assert_array_equal(ours[first + net.end : end], now[first + net.end : end])

    def image(row: int) -> Image:
        assert set(cells.length[row].tolist()) <= {ABSENT, 1}  # not NULL
        return tuple(
            int(buffer[cells.offset[row, j]]) if cells.length[row, j] >= 0 else None
            for j in range(3)
        )

    def folded(rows: list[int]) -> dict[int, Image]:
        return {image(row)[0] or 0: image(row) for row in rows}

    return (
        net.end,
        net.reason,
        [image(row)[0] or 0 for row in net.delete.tolist()],
        folded(net.update.tolist()),
        folded(net.insert.tolist()),
    )


def test_insert_update_delete_come_to_nothing() -> None:
    changes = [
        Change(INSERT, (), (1, 2, 3)),
        Change(UPDATE, (1, None, None), (None, 5, None)),
        Change(DELETE, (1, None, None), ()),
    ]
    assert _fold(changes) == (3, 0, [], {}, {})
    assert _fold(changes[:2])[4] == {1: (1, 5, 3)}


def test_updates_of_a_key_add_up_and_keep_what_they_do_not_have() -> None:
    changes = [
        Change(UPDATE, (1, 7, None), (None, 8, None)),
        Change(UPDATE, (1, 8, None), (None, 9, None)),
    ]
    assert _fold(changes) == (2, 0, [], {1: (1, 9, None)}, {})


def test_a_key_that_comes_back_is_deleted_and_inserted() -> None:
    changes = [Change(DELETE, (1, None, None), ()), Change(INSERT, (), (1, 4, 4))]
    assert _fold(changes) == (2, 0, [1], {}, {1: (1, 4, 4)})


def test_a_key_that_came_back_goes_on() -> None:
    changes = [
        Change(DELETE, (1, None, None), ()),
        Change(INSERT, (), (1, 4, 4)),
        Change(UPDATE, (1, None, None), (None, 5, None)),
    ]
    assert _fold(changes) == (3, 0, [1], {}, {1: (1, 5, 4)})
    changes.append(Change(DELETE, (1, None, None), ()))
    assert _fold(changes) == (4, 0, [1], {}, {})


@pytest.mark.parametrize("first", [(), (Change(DELETE, (9, None, None), ()),)])
def test_a_change_of_a_row_that_is_gone_ends_the_run(first: tuple[Change, ...]) -> None:
    gone = Change(DELETE, (1, None, None), ())
    for change in (gone, Change(UPDATE, (1, None, None), (None, 5, None))):
        assert _fold([*first, gone, change])[:2] == (len(first) + 1, REST)


def test_a_row_takes_the_key_of_one_that_is_to_go() -> None:
    """Of a deferrable key Oracle takes both at once until the transaction ends."""
    new = Change(INSERT, (), (1, 4, 4), row=5)
    assert _fold([new, Change(DELETE, (1, None, None), (), row=6)]) == (
        2,
        0,
        [1],
        {},
        {1: (1, 4, 4)},
    )
    away = Change(UPDATE, (1, 7, 7), (2, None, None), row=6)
    assert _fold([new, away]) == (2, 0, [1], {}, {1: (1, 4, 4), 2: (2, 7, 7)})


@pytest.mark.parametrize(("one", "other"), [(5, 5), (5, 0), (0, 5), (0, 0)])
def test_a_row_that_may_be_the_same_is_the_one_that_has_the_key(one: int, other: int) -> None:
    new, gone = Change(INSERT, (), (1, 4, 4), row=one), Change(DELETE, (1, None, None), (), other)
    assert _fold([new, gone]) == (2, 0, [], {}, {})
    again = Change(INSERT, (), (1, 4, 4), row=7), Change(DELETE, (1, None, None), (), row=7)
    assert _fold([new, gone, *again]) == (4, 0, [], {}, {})


def test_a_key_moves_to_one_that_is_free() -> None:
    moved = Change(UPDATE, (1, 5, 6), (2, None, None))
    free = Change(DELETE, (2, None, None), ())
    assert _fold([free, moved]) == (2, 0, [1, 2], {}, {2: (2, 5, 6)})
    taken = Change(UPDATE, (2, None, None), (None, 9, None))
    for first in ([taken], [Change(DELETE, (9, None, None), ()), taken]):
        end, reason, _, updates, inserts = _fold([*first, moved])
        assert (end, reason, updates, inserts) == (len(first), REST, {2: (2, 9, None)}, {})


def test_a_key_of_no_bytes_is_a_key() -> None:
    """What is left of a CHAR(1) of a blank."""
    data = np.frombuffer(b"ab" + bytes(8), np.uint8).copy()
    offset, length = np.zeros((3, 2), np.int64), np.ones((3, 2), np.int64)
    offset[0, 1], length[1] = 1, (0, ABSENT)
    for kind, deleted in ((INSERT, []), (UPDATE, [b"a"])):
        cells = Cells(data, offset.copy(), length.copy())
        kinds, unknown = np.array([kind], np.uint8), np.zeros(1, np.uint64)
        found = net_change(kinds, unknown, cells, KEY, KEY, 0)
        assert (found.end, len(found.update)) == (1, 0)
        assert [cells.value(row, 0) for row in found.delete] == deleted
        assert [cells.value(row, 0) for row in found.insert] == [b""]


def _run(kind: int, rows: list[tuple[bytes, ...]], times: int = 1) -> tuple[NetChange, Cells]:
    """The net change of as many changes of each row, which has a key and perhaps a value."""
    count = times * len(rows)
    data = bytearray(b"\0")
    offset = np.zeros((3 * count, 2), np.int64)
    length = np.full((3 * count, 2), ABSENT, np.int64)
    for at, row in enumerate(rows * times):
        for column, value in enumerate(row):
            image = at + count * (kind == INSERT or column)
            offset[image, column], length[image, column] = len(data), len(value)
            data += value
    cells = Cells(np.frombuffer(bytes(data) + bytes(8), np.uint8).copy(), offset, length)
    kinds, unknown = np.full(count, kind, np.uint8), np.zeros(count, np.uint64)
    return net_change(kinds, unknown, cells, KEY, np.array([0, 1]), 0), cells


def test_keys_of_many_bytes_are_told_apart_and_sorted() -> None:
    """By their first sixteen bytes, of which the first bit is a sign."""
    words = (b"", b"a", b"ab", b"\xff", b"\x80", b"longword", b"longwore")
    keys = list(dict.fromkeys(a + b + c for a in words for b in words for c in words))
    found, cells = _run(DELETE, [(key,) for key in keys])
    assert (found.end, len(found.update), len(found.insert)) == (len(keys), 0, 0)

    def place(key: bytes) -> bytes:
        first, *others = key.ljust(16, b"\0")[:16]
        return bytes((first ^ 0x80, *others))

    assert [cells.value(row, 0) for row in found.delete] == sorted(keys, key=place)


def test_every_key_is_found_again() -> None:
    rows = [(b"%d" % number, b"one") for number in range(400)]
    found, cells = _run(UPDATE, [*rows, *((key, b"two") for key, _ in rows)], 2)
    assert (found.end, len(found.delete), len(found.insert)) == (1600, 0, 0)
    assert {(cells.value(row, 0), cells.value(row, 1)) for row in found.update} == {
        (key, b"two") for key, _ in rows
    }
    assert len(found.update) == 400


def test_a_moved_key_is_a_delete_and_an_insert_of_the_whole_row() -> None:
    assert _fold([Change(UPDATE, (1, 5, 6), (2, None, None))]) == (1, 0, [1], {}, {2: (2, 5, 6)})
    inserted = [Change(INSERT, (), (1, 5, 6)), Change(UPDATE, (1, None, None), (2, None, None))]
    assert _fold(inserted) == (2, 0, [], {}, {2: (2, 5, 6)})


def test_a_moved_key_of_an_unknown_row_ends_the_run() -> None:
    changes = [
        Change(UPDATE, (3, None, None), (None, 1, None)),
        Change(UPDATE, (1, None, None), (2, None, None)),
    ]
    assert _fold(changes)[:2] == (1, SINGLE)
    assert _fold(changes, 1)[:2] == (1, SINGLE)


def test_keys_shifted_by_one_statement() -> None:
    changes = [Change(UPDATE, (k, k, k), (k + 1, None, None), row=k + 100) for k in (1, 2, 3)]
    end, _, deletes, updates, inserts = _fold(changes)
    assert (end, deletes, updates) == (3, [1, 2, 3], {})
    assert inserts == {2: (2, 1, 1), 3: (3, 2, 2), 4: (4, 3, 3)}


def test_a_change_without_its_key() -> None:
    assert _fold([Change(DELETE, (None, 1, 1), ())])[:2] == (0, NO_KEY)
    assert _fold([Change(INSERT, (), (None, 1, 1))])[:2] == (0, NO_KEY)


def test_a_second_insert_of_a_key_ends_the_run() -> None:
    changes = [Change(INSERT, (), (1, 4, 4)), Change(INSERT, (), (1, 5, 5))]
    assert _fold(changes)[0] == 1


def test_sorted_by_key() -> None:
    keys = [200, 7, 130, 128, 1, 127]  # as signed bytes
    deletes = _fold([Change(DELETE, (key, None, None), ()) for key in keys])[2]
    assert deletes == [128, 130, 200, 1, 7, 127]


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[int, Image], list[Change]]:
    """A table and a history that is valid for it."""
    keys = st.integers(1, 5)
    value = st.integers(0, 9)
    table: dict[int, Image] = {
        key: (key, draw(value), draw(value)) for key in draw(st.sets(keys, max_size=5))
    }
    rows, changes = dict(table), []
    for _ in range(draw(st.integers(0, 14))):
        key = draw(keys)
        if key not in rows:
            rows[key] = (key, draw(value), draw(value))
            changes.append(Change(INSERT, (), rows[key]))
            continue
        old = rows[key]
        whole = draw(st.booleans())
        before = old if whole else (key, None, None)
        target = draw(keys)
        if draw(st.booleans()):
            changes.append(Change(DELETE, before, ()))
            del rows[key]
        elif target == key or target in rows:
            after: Image = (None, draw(st.none() | value), draw(st.none() | value))
            changes.append(Change(UPDATE, before, after))
            rows[key] = tuple(b if a is None else a for a, b in zip(after, old, strict=True))
        else:
            changes.append(Change(UPDATE, before, (target, None, 1)))
            del rows[key]
            rows[target] = (target, old[1], 1)
    return table, changes


@given(histories())
def test_the_net_change_equals_the_changes_one_by_one(
    history: tuple[dict[int, Image], list[Change]],
) -> None:
    table, changes = history
    expected, actual = dict(table), dict(table)

    def single(rows: dict[int, Image], change: Change) -> None:
        old = rows.pop(change.before[0] or 0, None) if change.before else None
        if change.after:
            after = change.after
            assert old is None or len(old) == 3
            new = after if old is None else tuple(
                b if a is None else a for a, b in zip(after, old, strict=True)
            )  # fmt: skip
            rows[new[0] or 0] = new

    for change in changes:
        single(expected, change)
    start = 0
    while start < len(changes):
        end, reason, deletes, updates, inserts = _fold(changes, start)
        for key in deletes:
            del actual[key]
        for key, image in updates.items():
            actual[key] = tuple(
                b if a is None else a for a, b in zip(image, actual[key], strict=True)
            )
        for key, image in inserts.items():
            assert key not in actual
            actual[key] = image
        start = end
        if end < len(changes) and reason == SINGLE:
            single(actual, changes[end])
            start += 1
    assert actual == expected


def test_interpreted_kernels_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = [
        Change(INSERT, (), (1, 2, 3)),
        Change(UPDATE, (1, None, None), (9, 5, None)),
        Change(DELETE, (4, None, None), ()),
        Change(INSERT, (), (4, 1, 1)),
        Change(UPDATE, (2, 2, 2), (3, None, None), row=7),
        Change(UPDATE, (3, 3, 3), (5, None, None), row=8),
    ]
    compiled = _fold(changes)
    assert compiled == (
        6,
        0,
        [2, 3, 4],
        {},
        {3: (3, 2, 2), 4: (4, 1, 1), 5: (5, 3, 3), 9: (9, 5, 3)},
    )
    for name, kernel in list(vars(netchange).items()):
        if hasattr(kernel, "py_func") and kernel.__module__ == netchange.__name__:
            monkeypatch.setattr(netchange, name, kernel.py_func)
    with np.errstate(over="ignore"):
        assert _fold(changes) == compiled
