"""pgoutput's messages, against PostgreSQL's documentation of their formats."""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback import pgoutput
from olr_pg.fallback.pgoutput import (
    Begin,
    Commit,
    Delete,
    Insert,
    Mark,
    Origin,
    Relation,
    RelationColumn,
    Row,
    StreamAbort,
    StreamStart,
    StreamStop,
    TransactionReader,
    Truncate,
    Type,
    Update,
    lsn_number,
    lsn_text,
    read_header,
    read_message,
)
from olr_pg.files import waiting_rows

if TYPE_CHECKING:
    from collections.abc import Iterator


_EPOCH = 946_684_800_000_000
_U32 = st.integers(0, 2**32 - 1)
_U64 = st.integers(0, 2**64 - 1)
_NAME = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
_TIME = st.integers(-(2**62), 2**62)


@st.composite
def _value(draw: st.DrawFn) -> tuple[int, bytes | None, bytes]:
    """(kind, value, bytes on the wire): 'n' NULL, 'u' unchanged TOAST, 't' text, 'b' binary."""
    kind = draw(st.sampled_from(b"nutb"))
    if kind in b"nu":
        return kind, None, bytes([kind])
    data = draw(st.binary(max_size=30))
    return kind, data, bytes([kind]) + struct.pack("!i", len(data)) + data


@st.composite
def _row(draw: st.DrawFn) -> tuple[Row, bytes]:
    values = draw(st.lists(_value(), max_size=6))
    row = Row(tuple(v for _, v, _ in values), bytes(k for k, _, _ in values))
    return row, struct.pack("!h", len(values)) + b"".join(wire for _, _, wire in values)


@st.composite
def _messages(draw: st.DrawFn) -> tuple[object, bytes, bool, int]:
    """A message, its bytes as documented, whether it came in a stream, and its subtransaction."""
    lsn, end, at = draw(_U64), draw(_U64), draw(_TIME)
    xid, oid, subxid = draw(_U32), draw(_U32), draw(_U32)
    name, schema = draw(_NAME), draw(_NAME)
    (new, new_wire), (old, old_wire) = draw(_row()), draw(_row())
    in_stream = draw(st.booleans())
    before = struct.pack("!I", subxid) if in_stream else b""
    columns = draw(st.lists(st.tuples(st.booleans(), _NAME, _U32, st.integers(-1, 99)), max_size=4))
    oids = draw(st.lists(_U32, max_size=4))
    old_kind = draw(st.sampled_from((b"K", b"O")))
    texts = schema.encode() + b"\0" + name.encode() + b"\0"
    described = b"".join(
        bytes([flag]) + one.encode() + b"\0" + struct.pack("!Ii", type_oid, modifier)
        for flag, one, type_oid, modifier in columns
    )
    relation = Relation(
        oid, schema, name, "d", tuple(RelationColumn(n, t, m, f) for f, n, t, m in columns)
    )
    content = draw(st.binary(max_size=9))
    choices: list[tuple[object, bytes, bool]] = [
        (Begin(lsn, at + _EPOCH, xid), b"B" + struct.pack("!QqI", lsn, at, xid), False),
        (Commit(lsn, end, at + _EPOCH), b"C\0" + struct.pack("!QQq", lsn, end, at), False),
        (Origin(lsn, name), b"O" + struct.pack("!Q", lsn) + name.encode() + b"\0", False),
        (
            relation,
            struct.pack("!I", oid) + texts + b"d" + struct.pack("!h", len(columns)) + described,
            True,
        ),
        (Type(oid, schema, name), struct.pack("!I", oid) + texts, True),
        (Insert(oid, new), struct.pack("!I", oid) + b"N" + new_wire, True),
        (Update(oid, None, new), struct.pack("!I", oid) + b"N" + new_wire, True),
        (
            Update(oid, old, new),
            struct.pack("!I", oid) + old_kind + old_wire + b"N" + new_wire,
            True,
        ),
        (Delete(oid, old), struct.pack("!I", oid) + old_kind + old_wire, True),
        (
            Truncate(tuple(oids)),
            struct.pack("!IB", len(oids), 3) + b"".join(struct.pack("!I", one) for one in oids),
            True,
        ),
        (
            Mark(lsn, name),
            b"\1" + struct.pack("!Q", lsn) + name.encode() + b"\0"
            + struct.pack("!I", len(content)) + content,
            True,
        ),
        (StreamStart(xid), b"S" + struct.pack("!IB", xid, 1), False),
        (StreamStop(), b"E", False),
        (
            Commit(lsn, end, at + _EPOCH, xid),
            b"c" + struct.pack("!IBQQq", xid, 0, lsn, end, at),
            False,
        ),
        (StreamAbort(xid, subxid), b"A" + struct.pack("!II", xid, subxid), False),
    ]  # fmt: skip
    letters = {Relation: b"R", Type: b"Y", Insert: b"I", Update: b"U", Delete: b"D"}
    letters |= {Truncate: b"T", Mark: b"M"}
    message, data, may_stream = draw(st.sampled_from(choices))
    if may_stream:
        return (
            message,
            letters[type(message)] + before + data,
            in_stream,
            subxid if in_stream else 0,
        )
    return message, data, False, 0


@settings(max_examples=30)
@given(_messages())
def test_every_message_is_read_as_documented(made: tuple[object, bytes, bool, int]) -> None:
    message, data, in_stream, subxid = made
    assert read_message(data, in_stream=in_stream) == message
    header = read_header(data, in_stream=in_stream)
    assert (header.kind, header.subxid) == (data[0], subxid)
    if isinstance(message, Insert | Update | Delete):
        assert header.is_change
        assert header.relation == message.relation


@given(_messages(), st.data())
def test_what_is_cut_off_is_refused(
    made: tuple[object, bytes, bool, int], data: st.DataObject
) -> None:
    _, whole, in_stream, _ = made
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(OlrPgError) as refused:
        read_message(whole[:cut], in_stream=in_stream)
    assert refused.value.code == Code.PGOUTPUT_MALFORMED


@given(_messages(), st.binary(min_size=1, max_size=3))
def test_what_is_too_long_is_refused(made: tuple[object, bytes, bool, int], more: bytes) -> None:
    _, whole, in_stream, _ = made
    with pytest.raises(OlrPgError) as refused:
        read_message(whole + more, in_stream=in_stream)
    assert refused.value.code == Code.PGOUTPUT_MALFORMED


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_read_or_refused(data: bytes, in_stream: bool) -> None:
    try:
        read_message(data, in_stream=in_stream)
    except OlrPgError as error:
        assert error.code == Code.PGOUTPUT_MALFORMED  # noqa: PT017


@given(_U64)
def test_an_lsn_is_written_as_postgresql_writes_it(lsn: int) -> None:
    assert lsn_number(lsn_text(lsn)) == lsn
    assert lsn_text(0x1_0000_00FF) == "1/FF"


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
    before, pgoutput.MEMORY_BYTES = pgoutput.MEMORY_BYTES, memory  # type: ignore[misc]
    try:
        assert dict(_read(messages)) == ends
    finally:
        pgoutput.MEMORY_BYTES = before  # type: ignore[misc]


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
    monkeypatch.setattr(pgoutput, "MEMORY_BYTES", 10)
    messages: list[Any] = [b"B" + struct.pack("!QqI", 1, 0, 50), *[_insert(1)] * 5000]
    with pytest.raises(OlrPgError) as refused:
        list(_read(messages, Path("/dev")))
    assert refused.value.code == Code.SPOOL_UNWRITABLE
