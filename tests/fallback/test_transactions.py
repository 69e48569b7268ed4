"""Transactions from pieces of messages, against what each of them has."""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback import transactions
from olr_pg.fallback.pgoutput import Insert
from olr_pg.fallback.transactions import TransactionReader
from olr_pg.files import waiting_rows

if TYPE_CHECKING:
    from collections.abc import Iterator


def _insert(value: int, subxid: int | None = None) -> bytes:
    data = struct.pack("!I", value)
    before = b"" if subxid is None else struct.pack("!I", subxid)
    return b"I" + before + struct.pack("!I", 7) + b"N" + struct.pack("!hcI", 1, b"b", 4) + data


def _commit(xid: int, lsn: int) -> bytes:
    return b"c" + struct.pack("!IBQQq", xid, 0, lsn, lsn, 0)


@st.composite
def _stream(draw: st.DrawFn) -> tuple[list[bytes], dict[int, list[int]]]:
    """Pieces of streamed transactions, and what each has that commits, by its LSN."""
    messages, ends = list[bytes](), dict[int, list[int]]()
    rows: dict[int, list[tuple[int, int]]] = {}
    number = 0
    for step in range(draw(st.integers(1, 25))):
        xid = draw(st.sampled_from((100, 200, 300)))
        what = draw(st.sampled_from(("piece", "piece", "piece", "abort", "commit", "plain")))
        if what == "piece":
            messages.append(b"S" + struct.pack("!IB", xid, xid not in rows))
            for _ in range(draw(st.integers(1, 4))):
                subxid = draw(st.sampled_from((xid, xid + 1, xid + 2)))
                number += 1
                messages.append(_insert(number, subxid))
                rows.setdefault(xid, []).append((subxid, number))
            messages.append(b"E")
        elif what == "plain":
            number += 1
            lsn = 1000 + step
            messages += [
                b"B" + struct.pack("!QqI", lsn, 0, 50),
                _insert(number),
                b"C" + struct.pack("!BQQq", 0, lsn, lsn, 0),
            ]
            ends[lsn] = [number]
        elif xid in rows:
            if what == "abort":
                subxid = draw(st.sampled_from((xid, xid + 1)))
                messages.append(b"A" + struct.pack("!II", xid, subxid))
                if subxid == xid:
                    del rows[xid]
                else:  # its XID does not come again
                    rows[xid] = [(one if one != subxid else -1, value) for one, value in rows[xid]]
                    messages.append(_commit(xid, 1000 + step))
                    ends[1000 + step] = [value for one, value in rows.pop(xid) if one != -1]
            else:
                messages.append(_commit(xid, 1000 + step))
                ends[1000 + step] = [value for _, value in rows.pop(xid)]
    return messages, ends


def _read(messages: list[bytes], directory: Path | None = None) -> Iterator[tuple[int, list[int]]]:
    with closing(TransactionReader(directory)) as reader:
        for data in messages:
            ended = reader.feed(data)
            if ended is not None:
                values = [
                    struct.unpack("!I", one.new.values[0] or b"")[0]
                    for one in ended.read()
                    if isinstance(one, Insert)
                ]
                yield ended.end_lsn, values
                ended.close()


@pytest.mark.parametrize("memory", [1 << 20, 40])
@settings(max_examples=20)
@given(_stream())
def test_each_transaction_has_what_it_committed(
    memory: int, made: tuple[list[bytes], dict[int, list[int]]]
) -> None:
    messages, ends = made
    before, transactions.MEMORY_BYTES = transactions.MEMORY_BYTES, memory  # type: ignore[misc]
    try:
        assert dict(_read(messages)) == ends
    finally:
        transactions.MEMORY_BYTES = before  # type: ignore[misc]


@pytest.mark.parametrize(
    "messages",
    [[_insert(1)], [_commit(9, 1)], [b"A" + struct.pack("!II", 1, 2)],
     [b"C" + struct.pack("!BQQq", 0, 1, 1, 0)]],
)  # fmt: skip
def test_what_is_not_at_its_place_is_refused(messages: list[bytes]) -> None:
    with pytest.raises(OlrPgError) as refused:
        list(_read(messages))
    assert refused.value.code == Code.PGOUTPUT_MALFORMED


def test_a_full_disk_is_a_coded_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> IO[bytes]:
        return Path("/dev/full").open("w+b", buffering=0)

    monkeypatch.setattr(waiting_rows, "nameless_file", full)
    monkeypatch.setattr(transactions, "MEMORY_BYTES", 10)
    messages: list[Any] = [b"B" + struct.pack("!QqI", 1, 0, 50), *[_insert(1)] * 5000]
    with pytest.raises(OlrPgError) as refused:
        list(_read(messages, Path("/dev")))
    assert refused.value.code == Code.SPOOL_UNWRITABLE
