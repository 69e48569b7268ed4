from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from olr_pg.applier.received.change_reading import MessageReader
from olr_pg.bench.stored_messages import ChangeSet, Messages, Pool, wide_table
from olr_pg.ordering.ready_transactions import transactions_of
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.wire.elements import ElementCode
from olr_pg.wire.frames import ByteOrder


@pytest.mark.parametrize("rows", [1, 10, 15_000])
def test_messages_come_in_pieces(rows: int, tmp_path: Path) -> None:
    """All of them, in transactions, in order, and each of what the changes say."""
    changes = ChangeSet("mix", 20_001, rows)
    messages = Messages(changes, Pool(), tmp_path / "messages")
    pieces = list(messages.pieces())
    transactions = list(transactions_of(pieces))
    assert len(pieces) == len(list(changes.pieces())) > 1
    assert len(transactions) == -(-20_001 // rows)
    assert sum(one.messages for one in transactions) == messages.messages
    assert messages.messages == 20_001 + 2 * len(transactions)
    assert sum(len(one.blob) for one in transactions) == messages.size
    scns = [one.commit_scn for one in transactions]
    assert scns == sorted(set(scns))
    expected = np.concatenate([piece.kind for piece in changes.pieces()]).tolist()
    found: list[int] = []
    for piece in pieces:
        (received,) = MessageReader(ByteOrder.LITTLE).feed(np.frombuffer(piece.blob, np.uint8))
        kind, commit_scn = received.changes.kind, received.changes.commit_scn
        assert len(kind) == piece.messages
        assert commit_scn[kind == ElementCode.COMMIT].tolist() == piece.commit_scn.tolist()
        found += kind[kind > ElementCode.COMMIT].tolist()
    assert found == expected


@pytest.mark.parametrize("sets", [3, 29])
def test_updates_set_the_columns_of_their_table(sets: int, tmp_path: Path) -> None:
    """Update n sets the columns that the table says for n, and its before image is the row."""
    table = wide_table(30, sets)
    changes = ChangeSet("update", 2_500, 1_000, table)
    messages = Messages(changes, Pool(table), tmp_path / "messages")
    found: list[list[int]] = []
    for piece in messages.pieces():
        (received,) = MessageReader(ByteOrder.LITTLE).feed(np.frombuffer(piece.blob, np.uint8))
        names = [one.column.name.lower() for one in received.directory.columns]
        part = received.changes
        for row in np.flatnonzero(part.kind == ElementCode.UPDATE).tolist():
            first, end = part.entry_first[row : row + 2].tolist()
            numbers, after = part.value_column[first:end].tolist(), int(part.entry_after[row])
            of_row = [names[number] for number in numbers]
            assert tuple(of_row[: after - first]) == table.names
            found.append([table.names.index(name) for name in of_row[after - first :]])
    assert found == table.set_by(np.arange(2_500)).tolist()


def test_pieces_are_given_back(tmp_path: Path) -> None:
    """What nobody refers to any more is not mapped any more: memory does not grow with input."""
    messages = Messages(ChangeSet("insert", 100_000, 100), Pool(), tmp_path / "messages")
    for piece in messages.pieces():
        assert piece
        maps = Path("/proc/self/maps").read_text("utf-8", "replace")
        # The one before lives until the next is here.
        assert maps.count(str(tmp_path / "messages")) <= 2


@pytest.mark.parametrize("case", ["insert", "update", "delete", "mix"])
@pytest.mark.parametrize("count", [1, 7, 40_001])
def test_made_up_changes_fit_their_table(case: str, count: int) -> None:
    """Every key is changed once; inserts bring new ones, the others find theirs."""
    changes = ChangeSet(case, count, 10)
    pieces = list(changes.pieces())
    kind = np.concatenate([piece.kind for piece in pieces])
    key = np.concatenate([piece.key for piece in pieces])
    inserts = kind == DmlKind.INSERT
    assert sorted(key.tolist()) == list(range(1, count + 1))
    assert changes.rows == int((~inserts).sum())
    assert (key[inserts] > changes.rows).all()
    assert [piece.first for piece in pieces] == [
        sum(map(len, pieces[:number])) for number in range(len(pieces))
    ]
    again = np.concatenate([piece.key for piece in changes.pieces()])
    assert (again == key).all()


def test_updates_are_scattered_over_the_table() -> None:
    key = next(ChangeSet("update", 10_000, 10).pieces()).key
    assert (np.abs(np.diff(key)) > 1_000).all()
