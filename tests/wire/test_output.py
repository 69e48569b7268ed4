"""Outputs: rooms of any size and parts of any size give the same messages."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.waiting_storage import IN_MEMORY
from olr_pg.wire import output
from olr_pg.wire.elements import Begin
from olr_pg.wire.encoder import BEGIN_FRAME, COMMIT_FRAME, encode_transactions, write_messages
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import message_run
from tests.wire.random_transactions import (
    CHUNK_BYTES,
    PLAN,
    TRANSACTIONS,
    Change,
    Transaction,
    to_columns,
)


@given(TRANSACTIONS, st.sampled_from(ByteOrder), st.integers(1, 600))
@settings(max_examples=100, deadline=None)
def test_rooms_of_any_size_give_the_same_messages(
    transactions: list[Transaction], order: ByteOrder, room: int
) -> None:
    columns = (*to_columns(transactions), PLAN, order.is_big)
    whole = encode_transactions(*columns, CHUNK_BYTES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "ROOM_BYTES", room)
        in_rooms = write_messages(*columns, output.Collected(), CHUNK_BYTES)
    assert in_rooms.blob.tobytes() == whole.blob.tobytes()
    assert in_rooms.first.tolist() == whole.first.tolist()
    assert in_rooms.messages.tolist() == whole.messages.tolist()


@given(TRANSACTIONS.filter(bool), st.sampled_from(ByteOrder), st.integers(1, 600), st.data())
@settings(max_examples=50, deadline=None)
def test_a_transaction_in_parts_gives_the_same_messages(
    transactions: list[Transaction], order: ByteOrder, room: int, data: st.DataObject
) -> None:
    transaction = transactions[0]
    cuts = data.draw(st.sets(st.integers(0, len(transaction.changes))))
    whole = encode_transactions(*to_columns([transaction]), PLAN, order.is_big, CHUNK_BYTES)
    parts = output.InParts(BEGIN_FRAME, COMMIT_FRAME, IN_MEMORY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "ROOM_BYTES", room)
        for start, end in pairwise(sorted(cuts | {0, len(transaction.changes)})):
            part = transaction._replace(changes=transaction.changes[start:end])
            parts.next_part()
            write_messages(*to_columns([part]), PLAN, order.is_big, parts, CHUNK_BYTES)
    if transaction.changes:
        assert np.asarray(parts.finish()).tobytes() == whole.blob.tobytes()


def test_the_room_of_a_large_row_change_is_the_caller_s() -> None:
    change = Change(DmlKind.INSERT, 0, 1, 1, (1, 1, 1), {}, {0: (b"a" * output.ROOM_BYTES,)})
    asked = list[int]()

    def allocate(size: int) -> npt.NDArray[np.uint8]:
        asked.append(size)
        return np.empty(size, np.uint8)

    columns = to_columns([Transaction(Begin(1, 2, 3, 4), 5, [change])])
    encoded = encode_transactions(*columns, PLAN, False, CHUNK_BYTES, allocate)
    assert asked[0] == output.ROOM_BYTES
    assert output.ROOM_BYTES < asked[1] < asked[2] == encoded.blob.size


def test_a_room_is_never_left_half_written() -> None:
    """Messages that a full room cut off would begin again in the next one."""
    change = Change(DmlKind.INSERT, 0, 1, 1, (1, 1, 1), {}, {0: (b"a" * 3000,)})
    transaction = Transaction(Begin(1, 2, 3, 4), 5, [change] * 5)
    taken: list[bytes] = []

    class Kept(output.Scratch):
        def take(self, size: int) -> None:
            taken.append(self._room[:size].tobytes())

        def taken(self) -> Any:
            return self._room[:0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "ROOM_BYTES", 4000)
        write_messages(*to_columns([transaction]), PLAN, False, Kept())
    assert len(taken) == 5
    ends = [
        message_run(np.frombuffer(part, np.uint8), 0, False, len(part), len(part)) for part in taken
    ]
    assert ends == [(2, len(taken[0])), *((1, len(part)) for part in taken[1:4]),
                    (2, len(taken[4]))]  # fmt: skip
