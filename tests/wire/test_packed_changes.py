"""Packed transactions are read as what was packed, in rooms, parts and pieces of any size."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.dictionary.lob_delivery import chunk_type
from olr_pg.dictionary.model import Column
from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import interpreted
from olr_pg.scalars import format_rowid
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.waiting_storage import IN_MEMORY
from olr_pg.wire import output, packed_changes
from olr_pg.wire.element_plan import described_column
from olr_pg.wire.elements import Begin, ElementCode
from olr_pg.wire.encoder import Form, just_sized
from olr_pg.wire.packed_changes import PACKED_BEGIN, PACKED_COMMIT, PackedReader, write_packed
from tests.wire.random_transactions import (
    PLAN,
    TABLES,
    TRANSACTIONS,
    Change,
    Transaction,
    to_columns,
)

if TYPE_CHECKING:
    from olr_pg.transactions.finished_columns import ChangeColumns
    from olr_pg.wire.encoder import EncodedTransactions
    from tests.wire.random_transactions import Value

EXTRA = Column("EXTRA", 9, 9, 9, 2, 22)
FIRST_COLUMN = np.cumsum([0, *(len(table.delivered) for table in TABLES)]).tolist()


def packed(transactions: list[Transaction]) -> EncodedTransactions:
    columns, dml = to_columns(transactions)
    return just_sized(lambda out: write_packed(columns, dml, PLAN, out), IN_MEMORY.allocate)


def given_of(transactions: list[Transaction]) -> list[Any]:
    """What is to be read: per element all that is known of it."""
    found: list[Any] = []
    for begin, commit_time, changes in transactions:
        session = begin.serial << 32 | begin.session
        known = begin.commit_scn, begin.xid, commit_time, session
        found.append((ElementCode.BEGIN, begin.scn, begin.timestamp, *known, 0))
        for position, change in enumerate(changes):
            row_id = format_rowid(*change.rowid) if change.rowid[0] else ""
            images = _image(change, change.before), _image(change, change.after)
            found.append((change.kind, change.scn, change.time, *known, change.table, row_id,
                          *images, position))  # fmt: skip
        found.append((ElementCode.COMMIT, begin.commit_scn, commit_time, *known, len(changes)))
    return found


def _image(change: Change, values: dict[int, Value]) -> dict[int, bytes | None]:
    columns = TABLES[change.table].delivered
    joined = {c: None if value is None else b"".join(value) for c, value in values.items()}
    return {
        FIRST_COLUMN[change.table] + c: (value or (value if chunk_type(columns[c]) else None))
        for c, value in joined.items()
    }


def value_of(changes: ChangeColumns, entry: int) -> bytes:
    first = int(changes.value_offset[entry])
    return changes.data[first : first + int(changes.value_length[entry])].tobytes()


def read_of(blob: Any, piece_bytes: int = 1 << 20) -> list[Any]:
    reader, found = PackedReader(), list[Any]()
    reader.know(TABLES[:1])
    reader.know(TABLES)
    for changes, session, commit_time, transaction, position in reader.read(blob, piece_bytes):
        commits = changes.kind == ElementCode.COMMIT
        assert transaction.tolist() == [0, *np.cumsum(commits)[:-1].tolist()]
        for i, kind in enumerate(changes.kind.tolist()):
            head: tuple[Any, ...] = (
                kind, changes.scn[i], changes.time[i], changes.commit_scn[i], changes.xid[i],
                commit_time[i], session[i],
            )  # fmt: skip
            first, middle, end = (
                int(changes.entry_first[i]), int(changes.entry_after[i]),
                int(changes.entry_first[i + 1]),
            )  # fmt: skip
            if kind in (ElementCode.BEGIN, ElementCode.COMMIT):
                assert changes.table[i] == -1
                found.append((*head, position[i]))
                continue
            images = [
                {
                    int(changes.value_column[e]): (
                        None if changes.value_length[e] < 0 else value_of(changes, e)
                    )
                    for e in entries
                }
                for entries in (range(first, middle), range(middle, end))
            ]
            found.append((*head, changes.table[i], changes.row_id(i) or "", *images, position[i]))
    return found


@given(TRANSACTIONS)
@settings(max_examples=150, deadline=None)
def test_what_is_read_is_what_was_packed(transactions: list[Transaction]) -> None:
    encoded = packed(transactions)
    assert encoded.form is Form.PACKED
    assert encoded.messages.tolist() == [2 + len(one.changes) for one in transactions]
    for number, (first, end) in enumerate(pairwise(encoded.first.tolist())):
        alone = transactions[number : number + 1]
        assert read_of(encoded.blob[first:end].data) == given_of(alone)


def test_the_directory_says_what_messages_say() -> None:
    reader = PackedReader()
    reader.know(TABLES)
    assert reader.directory.tables == [(table.owner, table.name) for table in TABLES]
    assert [tuple(column) for column in reader.directory.columns] == [
        (number, described_column(column))
        for number, table in enumerate(TABLES)
        for column in table.delivered
    ]


def test_versions_of_a_table_share_what_they_have_in_common() -> None:
    reader, wider = PackedReader(), replace(TABLES[0], columns=(*TABLES[0].columns, EXTRA))
    reader.know((TABLES[0], TABLES[1], wider))
    assert len(reader.directory.tables) == 2
    names = [column.name for _, column in reader.directory.columns]
    assert names == ["ID", "NAME", "Ω" * 100, "EXTRA"]


@given(TRANSACTIONS.filter(bool), st.integers(1, 600), st.integers(1, 600), st.data())
@settings(max_examples=100, deadline=None)
def test_rooms_parts_and_pieces_of_any_size_give_the_same(
    transactions: list[Transaction], room: int, piece_bytes: int, data: st.DataObject
) -> None:
    whole = packed(transactions)
    columns, dml = to_columns(transactions)
    transaction = transactions[0]
    cuts = data.draw(st.sets(st.integers(0, len(transaction.changes))))
    parts = output.InParts(PACKED_BEGIN, PACKED_COMMIT, IN_MEMORY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "ROOM_BYTES", room)
        in_rooms = write_packed(columns, dml, PLAN, output.Collected())
        for start, end in pairwise(sorted(cuts | {0, len(transaction.changes)})):
            parts.next_part()
            part = transaction._replace(changes=transaction.changes[start:end])
            write_packed(*to_columns([part]), PLAN, parts)
    assert in_rooms.blob.tobytes() == whole.blob.tobytes()
    assert in_rooms.first.tolist() == whole.first.tolist()
    if transaction.changes:
        assert np.asarray(parts.finish()).tobytes() == whole.blob[: whole.first[1]].tobytes()
    many = whole.blob.tobytes() * 3
    assert read_of(many, piece_bytes) == 3 * given_of(transactions)


def test_interpreted_kernels_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    change = Change(DmlKind.UPDATE, 0, 1, 2, (1, 2, 3), {0: (b"\xc1\x02",)}, {1: (b"a", b"b")})
    stored = Change(DmlKind.INSERT, 3, 4, 5, (0, 0, 0), {}, {0: (b"\x80",), 1: None}, 2)
    made = [Transaction(Begin(1, 2, 3, 4, 5, 6), 7, [change, stored])]
    compiled = packed(made).blob
    monkeypatch.setattr(packed_changes, "pack_room", interpreted(packed_changes.pack_room))
    monkeypatch.setattr(packed_changes, "read_kernel", interpreted(packed_changes.read_kernel))
    with np.errstate(over="ignore"):
        assert packed(made).blob.tobytes() == compiled.tobytes()
        assert read_of(compiled.data)[1][9:11] == ({0: b"\xc1\x02"}, {1: b"ab"})


def test_sizes_past_32_bits_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all values were so large."""
    change = Change(DmlKind.UPDATE, 0, 1, 2, (1, 2, 3), {0: None}, {1: (b"a", b"b"), 0: (b"c",)})
    made = [Transaction(Begin(1, 2, 3, 4, 5, 6), 7, [change])]
    monkeypatch.setattr(packed_changes, "LARGE", 1)
    monkeypatch.setattr(packed_changes, "pack_room", interpreted(packed_changes.pack_room))
    monkeypatch.setattr(packed_changes, "read_kernel", interpreted(packed_changes.read_kernel))
    with np.errstate(over="ignore"):
        assert read_of(packed(made).blob.data) == given_of(made)


@pytest.mark.parametrize(
    "broken",
    [
        lambda dml: dml.kind.__setitem__(0, 3),
        lambda dml: dml.table.__setitem__(0, 9),
        lambda dml: dml.values.column.__setitem__(0, 9),
        lambda dml: dml.values.offset.__setitem__(0, 1 << 40),
        lambda dml: dml.values.next.__setitem__(0, 0),
        lambda dml: dml.values.image.__setitem__(0, 1),
        lambda dml: dml.entry_first.__setitem__(1, 99),
    ],
)
def test_columns_that_contradict_themselves_are_refused(broken: Any) -> None:
    image: dict[int, Value] = {0: (b"\xc1\x02",), 1: (b"a",)}
    change = Change(DmlKind.DELETE, 0, 1, 1, (1, 1, 1), image, {})
    columns, dml = to_columns([Transaction(Begin(1, 2, 3, 4), 5, [change])])
    broken(dml)
    with pytest.raises(OlrPgError) as caught:
        write_packed(columns, dml, PLAN, output.Collected())
    assert caught.value.code == Code.CHANGE_NOT_ENCODABLE
    assert caught.value.where["change"] == 0
