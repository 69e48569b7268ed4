"""What decoding gives of a transaction's changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from olr_pg.simulator.fields.cells import Cell
from olr_pg.simulator.model.transactions import Change, Transaction, delivered_changes
from olr_pg.transactions.finished_columns import DmlKind

OLD, NEW = Cell(b"o", "o"), Cell(b"n", "n")


def table(*, is_delivered: bool = True, lobs: tuple[int, ...] = (), encrypted: bool = False) -> Any:
    columns = [SimpleNamespace(type=SimpleNamespace(lob=at in lobs or None)) for at in range(2)]
    return SimpleNamespace(
        is_delivered=is_delivered,
        lobs=dict.fromkeys(lobs),
        encrypted=encrypted,
        columns_at=lambda _scn: columns,
    )


def change(kind: DmlKind, of: Any, before: Any, after: Any, *, logged: bool = True) -> Change:
    return Change(kind, of, 1, 1, 1, 1, before, after, logged)


def delivered(*changes: Change, unlogged: bool = False) -> list[Change]:
    segment: Any = None
    transaction = Transaction(segment, 1, 1, b"", 1, 1, changes=list(changes))
    return delivered_changes(transaction, unlogged=unlogged)


def test_what_is_cipher_text_is_not_delivered_but_happened() -> None:
    secret = change(DmlKind.INSERT, table(encrypted=True), {}, {0: NEW})
    assert delivered(secret) == []
    assert delivered(secret, unlogged=True) == [secret]


def test_system_tables_and_what_left_no_redo_are_not_delivered() -> None:
    seen = change(DmlKind.INSERT, table(), {}, {0: NEW})
    unseen = change(DmlKind.INSERT, table(), {}, {0: NEW}, logged=False)
    system = change(DmlKind.INSERT, table(is_delivered=False), {}, {0: NEW})
    assert delivered(seen, unseen, system) == [seen]
    assert delivered(seen, unseen, system, unlogged=True) == [seen, unseen]


def test_old_lob_values_are_not_delivered() -> None:
    of = table(lobs=(1,))
    (found,) = delivered(change(DmlKind.DELETE, of, {0: OLD, 1: OLD}, {}))
    assert found.before == {0: OLD}


def test_an_update_that_sets_nothing_that_is_delivered_is_none() -> None:
    of = table(lobs=(1,))
    assert delivered(change(DmlKind.UPDATE, of, {0: OLD}, {})) == []
    assert len(delivered(change(DmlKind.UPDATE, of, {0: OLD}, {0: NEW}))) == 1


def test_the_newest_undo_that_counts_is_the_last() -> None:
    segment: Any = None
    transaction = Transaction(segment, 1, 1, b"", 1, 1)
    assert transaction.rci == 0
    entry: Any = SimpleNamespace(place=SimpleNamespace(rec=9))
    transaction.undo.append(entry)
    assert transaction.rci == 9
