"""pgoutput's messages, against PostgreSQL's documentation of their formats."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.errors import Code, OlrPgError
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
    Truncate,
    Type,
    Update,
    lsn_number,
    lsn_text,
    read_header,
    read_message,
)

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
