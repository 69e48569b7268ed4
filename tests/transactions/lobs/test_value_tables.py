"""LOB pieces in the order in which kernels look them up."""

from __future__ import annotations

import random
import struct
import zlib
from typing import Any, Final

import numpy as np
import pytest

from olr_pg.datatypes.binary_xml import XmlTokens
from olr_pg.datatypes.lob_locator import COMPRESSION, LENGTH, STORED, TEXT, LobCompression, LobText
from olr_pg.dictionary.lob_delivery import LobDelivery
from olr_pg.redo.batch import columns_of
from olr_pg.transactions.finished_columns import VALUE
from olr_pg.transactions.lobs.assembly import rewrite
from olr_pg.transactions.lobs.value_tables import (
    LobRows,
    Space,
    Values,
    ValueStatus,
    distinct_keys,
    empty_rows,
    sort_rows,
    value_room,
)

KEY = ("owner", "space", "lob", "number", "scn")


def rows_of(keys: list[tuple[int, ...]]) -> LobRows:
    rows = empty_rows(len(keys))
    for at, key in enumerate(keys):
        for name, value in zip(KEY, key, strict=True):
            getattr(rows, name)[at] = value
        rows.offset[at] = at
    return rows


def test_rows_of_one_key_stay_in_their_order() -> None:
    rng = random.Random(3)
    keys: list[tuple[int, ...]] = [
        (rng.randrange(2), rng.choice(list(Space)), rng.randrange(3), rng.randrange(3), 5)
        for _ in range(200)
    ]
    found = sort_rows(rows_of(keys))
    sorted_keys = sorted((key, at) for at, key in enumerate(keys))
    assert found.offset.tolist() == [at for _, at in sorted_keys]


@pytest.mark.parametrize("rows", [0, 1, 300])
@pytest.mark.parametrize("columns", [2, 3])
def test_distinct_keys_are_those_of_numpy(rows: int, columns: int) -> None:
    keys = np.random.default_rng(rows).integers(-2, 4, (rows, columns)) << 40
    found, place = distinct_keys(keys)
    expected, inverse = np.unique(keys, axis=0, return_inverse=True)
    assert found.tolist() == expected.tolist()
    assert place.tolist() == inverse.reshape(-1).tolist()


CONTENT: Final = b"all work and no play " * 500
AL32UTF8: Final = 873


def memory(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.empty(size, np.uint8)


def rewritten(
    stored: bytes,
    facts: dict[int, int],
    delivery: LobDelivery = LobDelivery.BYTES,
    charset_id: int = AL32UTF8,
) -> tuple[bytes | None, ValueStatus]:
    """The content of a value whose stored bytes come in two parts, and what became of it."""
    cut = len(stored) // 3
    nothing = np.zeros(1, np.int64)
    values = Values(
        nothing, nothing, nothing, np.ones(1, np.bool_), np.ones(1, np.uint8),
        columns_of(VALUE, 0), np.frombuffer(stored[:cut], np.uint8),
    )  # fmt: skip
    room = value_room(1, 2, np.frombuffer(stored[cut:], np.uint8))
    room.part_first[:] = 0, 2
    room.parts[:, :2] = [[0, cut], [cut, len(stored) - cut]]
    for place, fact in facts.items():
        room.facts[0, place] = fact
    found = rewrite(
        values, room, np.array([delivery], np.uint8), np.array([charset_id], np.int32),
        XmlTokens(), memory,
    )  # fmt: skip
    content = found[0].tobytes() if 0 in found else None
    return content, ValueStatus(int(room.status[0]))


def stream(length: int, stored: int) -> dict[int, int]:
    return {COMPRESSION: LobCompression.STREAM, LENGTH: length, STORED: stored}


def chunk_map(*chunks: bytes) -> bytes:
    """A chunk-map unit (values-and-lobs §22)."""
    packed = [zlib.compress(chunk) for chunk in chunks]
    start = 29 + 8 * len(chunks)
    total = start + sum(map(len, packed))
    head = b"\xde\xad\xbe\xef\x01" + bytes(8) + total.to_bytes(8)
    head += struct.pack(">HHI", len(chunks), start, 0)
    listed = [struct.pack(">II", len(c), len(p)) for c, p in zip(chunks, packed, strict=True)]
    return head + b"".join(listed) + b"".join(packed)


def test_a_stream_is_inflated() -> None:
    packed = zlib.compress(CONTENT)
    assert rewritten(packed, stream(len(CONTENT), len(packed))) == (CONTENT, ValueStatus.WHOLE)


def test_units_of_a_chunk_map_follow_each_other() -> None:
    stored = chunk_map(CONTENT, b"second") + chunk_map(b"third")
    whole = CONTENT + b"secondthird"
    facts = {COMPRESSION: LobCompression.CHUNK_MAP, LENGTH: len(whole)}
    assert rewritten(stored, facts) == (whole, ValueStatus.WHOLE)


@pytest.mark.parametrize("change", ["longer", "shorter", "cut", "garbage", "more stored"])
def test_what_does_not_agree_with_its_locator_is_undecoded(change: str) -> None:
    packed = zlib.compress(CONTENT)
    length, stored = len(CONTENT), len(packed)
    if change == "longer":
        length += 1
    elif change == "shorter":
        length -= 1
    elif change == "cut":
        packed = packed[:-5]
    elif change == "garbage":
        packed = b"\0" * stored
    else:
        packed += b"more"
        stored += 8
    assert rewritten(packed, stream(length, stored)) == (None, ValueStatus.UNDECODED)


@pytest.mark.parametrize(
    ("text", "delivery", "stored", "content"),
    [
        (LobText.UTF16_LE, LobDelivery.UTF16, "grün𝄞".encode("utf-16-le"), "utf-16-be"),
        (LobText.UTF16_LE, LobDelivery.CHARSET, "grün𝄞".encode("utf-16-le"), "utf-8"),
        (LobText.UTF16_BE, LobDelivery.CHARSET, "grün𝄞".encode("utf-16-be"), "utf-8"),
        (LobText.CHARSET, LobDelivery.UTF16, "grün𝄞".encode(), "utf-16-be"),
    ],
)
def test_text_is_converted_over_the_seams_of_its_parts(
    text: LobText, delivery: LobDelivery, stored: bytes, content: str
) -> None:
    facts = {TEXT: int(text), LENGTH: len(stored)}
    assert rewritten(stored, facts, delivery) == ("grün𝄞".encode(content), ValueStatus.WHOLE)


def test_what_is_delivered_as_it_is_stored_is_not_touched() -> None:
    facts = {TEXT: int(LobText.UTF16_BE), LENGTH: 4}
    assert rewritten(b"\0a\0b", facts, LobDelivery.UTF16) == (None, ValueStatus.WHOLE)


def test_text_that_is_none_is_undecoded() -> None:
    facts = {TEXT: int(LobText.CHARSET), LENGTH: 2}
    assert rewritten(b"\xff\xfe", facts, LobDelivery.UTF16) == (None, ValueStatus.UNDECODED)
