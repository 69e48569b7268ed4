"""A split's result as bytes: what is read is what was written, without a copy of the messages."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from olr_pg.decoding.split import decode_split, open_for_decoding, subscribe
from olr_pg.decoding.split_results import WrittenMessages, read_result
from olr_pg.wire.output import Collected
from tests.lobs.lob_redo import LobRedo, table
from tests.split_results import blocks_of, packed_split

if TYPE_CHECKING:
    from pathlib import Path


def test_messages_and_remainder_come_back(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert(Decimal(1), None, None)
    redo.insert(Decimal(2), None, None)
    redo.end()
    redo.segment += 1
    redo.begin()
    redo.insert(Decimal(3), None, None)
    log, subscription = open_for_decoding(str(redo.write(tmp_path))), subscribe([table()], 0)
    direct = decode_split(subscription, log, blocks_of(2, 1 << 20), Collected())
    packed = packed_split(subscription, log, 2, 1 << 20)
    found = read_result(packed)
    (expected,), (encoded,) = direct.encoded, found.encoded
    assert encoded.messages.blob.tobytes() == expected.messages.blob.tobytes()
    assert encoded.messages.first.tolist() == expected.messages.first.tolist()
    assert found.remainder.events.size == direct.remainder.events.size > 0
    for read, written in zip(found.remainder, direct.remainder, strict=True):
        assert read.tolist() == written.tolist()
    memory = np.frombuffer(packed, np.uint8)
    assert np.shares_memory(encoded.messages.blob, memory)
    assert not np.shares_memory(found.remainder.data, memory)


def test_a_large_array_is_written_by_itself_and_aligned(tmp_path: Path) -> None:
    redo = LobRedo()
    redo.begin()
    redo.insert(Decimal(1), None, None)
    log, subscription = open_for_decoding(str(redo.write(tmp_path))), subscribe([table()], 0)
    result = decode_split(subscription, log, blocks_of(2, 1 << 20), WrittenMessages(lambda _: None))
    large = np.arange(1 << 20, dtype=np.uint8)
    result = result._replace(remainder=result.remainder._replace(data=large))
    pieces: list[bytes] = []
    messages = WrittenMessages(lambda piece: pieces.append(bytes(piece)))
    messages.written = 13
    messages.finish(result)
    at = 13 + sum(len(piece) for piece in pieces[: pieces.index(large.tobytes())])
    assert at % 64 == 0
    result = read_result(bytes(13) + b"".join(pieces))
    assert result.remainder.data.tolist() == large.tolist()
