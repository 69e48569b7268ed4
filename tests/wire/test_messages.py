"""Requests and answers: exact bytes, round trips, refusals."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.errors import OlrPgError
from olr_pg.wire import messages as module
from olr_pg.wire.frames import ByteOrder, encode_frame
from olr_pg.wire.messages import (
    Answer,
    BackToScn,
    Data,
    Error,
    GetSavedScn,
    GetStatus,
    LastCommitedScn,
    LogOff,
    NoMore,
    Ok,
    Request,
    SavedScn,
    StartScn,
    State,
    Status,
    TableList,
    decode_answer,
    decode_request,
    encode_answer,
    encode_request,
)

U64 = st.integers(0, 2**64 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ORDERS = st.sampled_from(ByteOrder)

REQUESTS: st.SearchStrategy[Request] = st.one_of(
    TEXT.filter(lambda text: bool(text.strip())).map(TableList),
    U64.map(StartScn),
    U64.map(LastCommitedScn),
    U64.map(BackToScn),
    st.sampled_from([LogOff(), GetStatus(), GetSavedScn()]),
)
ANSWERS: st.SearchStrategy[Answer] = st.one_of(
    st.sampled_from([Ok(), NoMore()]),
    st.builds(Error, st.integers(0, 2**32 - 1), TEXT),
    st.binary(min_size=1, max_size=20).map(Data),
    st.sampled_from(State).map(Status),
    st.none().map(SavedScn) | U64.map(SavedScn),
)

LITTLE_BYTES: list[tuple[Request, str]] = [
    (TableList("é"), "04000000 0100 c3a9"),
    (StartScn(1), "0a000000 0200 0100000000000000"),
    (LastCommitedScn(2**64 - 1), "0a000000 0300 ffffffffffffffff"),
    (BackToScn(0x0102030405060708), "0a000000 0400 0807060504030201"),
    (LogOff(), "02000000 0500"),
    (GetStatus(), "02000000 0600"),
    (GetSavedScn(), "02000000 0700"),
]

ANSWER_BYTES: list[tuple[Answer, str, str]] = [
    (Ok(), "02000000 0100", "00000002 0001"),
    (NoMore(), "02000000 0200", "00000002 0002"),
    (Error(3001, "é"), "08000000 0300 b90b0000 c3a9", "00000008 0003 00000bb9 c3a9"),
    (Data(b"\x01\x02"), "04000000 0400 0102", "00000004 0004 0102"),
    (Status(State.REPLICATING), "04000000 0500 0300", "00000004 0005 0003"),
    (SavedScn(258), "0c000000 0600 0100 0201000000000000",
     "0000000c 0006 0001 0000000000000102"),
    (SavedScn(None), "0c000000 0600 0000 0000000000000000",
     "0000000c 0006 0000 0000000000000000"),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "expected"), LITTLE_BYTES)
def test_request_bytes(request_: Request, expected: str) -> None:
    data = encode_request(request_, ByteOrder.LITTLE)
    assert data == bytes.fromhex(expected)
    assert decode_request(data[4:], ByteOrder.LITTLE) == request_


@pytest.mark.parametrize(("answer", "little", "big"), ANSWER_BYTES)
def test_answer_bytes(answer: Answer, little: str, big: str) -> None:
    assert encode_answer(answer, ByteOrder.LITTLE) == bytes.fromhex(little)
    assert encode_answer(answer, ByteOrder.BIG) == bytes.fromhex(big)


@given(REQUESTS, ORDERS)
def test_requests_round_trip(request: Request, order: ByteOrder) -> None:
    assert decode_request(encode_request(request, order)[4:], order) == request


@given(ANSWERS, ORDERS)
def test_answers_round_trip(answer: Answer, order: ByteOrder) -> None:
    assert decode_answer(encode_answer(answer, order)[4:], order) == answer


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("", 4002),
        ("00", 4002),
        ("0000", 4003),
        ("0800", 4003),
        ("0100", 4002),  # no query
        ("01002020", 4002),  # a blank one
        ("0100ff", 4002),  # not UTF-8
        ("020001020304050607", 4002),
        ("0200010203040506070809", 4002),
        ("0500aa", 4002),
        ("060000", 4002),
    ],
)
def test_refused_requests(message: str, code: int) -> None:
    with pytest.raises(OlrPgError) as caught:
        decode_request(bytes.fromhex(message), ByteOrder.LITTLE)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("0000", 4003),
        ("0700", 4003),
        ("010000", 4002),
        ("0300010000", 4002),
        ("030001000000ff", 4002),
        ("0400", 4002),
        ("05000000", 4002),
        ("05000400", 4002),
        ("060002000000000000000000", 4002),
        ("06000100", 4002),
    ],
)
def test_refused_answers(message: str, code: int) -> None:
    with pytest.raises(OlrPgError) as caught:
        decode_answer(bytes.fromhex(message), ByteOrder.LITTLE)
    assert caught.value.code == code


@given(st.binary(max_size=30), ORDERS)
def test_any_bytes_give_a_message_or_a_documented_error(data: bytes, order: ByteOrder) -> None:
    try:
        request = decode_request(data, order)
    except OlrPgError as error:
        assert error.code in (4002, 4003)  # noqa: PT017 - one of two outcomes, both checked
    else:
        assert encode_request(request, order)[4:] == data
    try:
        answer = decode_answer(data, order)
    except OlrPgError as error:
        assert error.code in (4002, 4003)  # noqa: PT017
    else:
        assert isinstance(answer, SavedScn) or encode_answer(answer, order)[4:] == data


@pytest.mark.parametrize("scn", [-1, 2**64])
def test_an_scn_outside_64_bits_is_refused(scn: int) -> None:
    with pytest.raises(OlrPgError, match="OLR-04002"):
        encode_request(StartScn(scn), ByteOrder.LITTLE)


def interpreted_of(kernel: Any) -> Any:
    """The kernel's Python function, which its type does not tell of."""
    return kernel.py_func


@given(st.lists(st.binary(min_size=2, max_size=30)), ORDERS)
def test_offsets_are_where_the_frames_begin(messages: list[bytes], order: ByteOrder) -> None:
    frames = [encode_frame(message, order) for message in messages]
    blob = np.frombuffer(b"".join(frames), np.uint8)
    expected = np.cumsum([0, *map(len, frames)]).tolist()
    assert module.message_offsets(blob, order.is_big).tolist() == expected
    interpreted = np.empty(len(expected), np.int64)
    interpreted_of(module.fill_offsets)(blob, order.is_big, interpreted)
    assert interpreted.tolist() == expected


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_give_offsets_or_4001(data: bytes, big: bool) -> None:
    blob = np.frombuffer(data, np.uint8)
    count, end = module.message_run(blob, 0, big, len(data), len(data))
    assert interpreted_of(module.message_run)(blob, 0, big, len(data), len(data)) == (count, end)
    assert interpreted_of(module.data_run)(blob, big, 5, 20) == module.data_run(blob, big, 5, 20)
    if end == len(data):
        assert module.message_offsets(blob, big)[-1] == end
    else:
        with pytest.raises(OlrPgError, match="OLR-04001"):
            module.message_offsets(blob, big)


@given(st.lists(st.binary(min_size=2, max_size=30), min_size=1), ORDERS, st.data())
def test_a_run_of_messages_ends_at_its_limits(
    messages: list[bytes], order: ByteOrder, draw: st.DataObject
) -> None:
    frames = [encode_frame(message, order) for message in messages]
    blob = np.frombuffer(b"".join(frames), np.uint8)
    first = draw.draw(st.integers(0, len(frames)))
    most = draw.draw(st.integers(0, len(frames) + 1))
    room = draw.draw(st.integers(0, blob.size + 1))
    bounds = np.cumsum([0, *map(len, frames)]).tolist()
    count = sum(end - bounds[first] <= room for end in bounds[first + 1 : first + 1 + most])
    found = module.message_run(blob, bounds[first], order.is_big, most, room)
    assert found == (count, bounds[first + count])


def test_a_run_of_data_ends_at_its_limits(order: ByteOrder) -> None:
    data = encode_answer(Data(b"12345"), order)
    blob = np.frombuffer(data * 3 + encode_answer(NoMore(), order) + data, np.uint8)
    assert module.data_run(blob, order.is_big, 9, 100) == (3, 33)
    assert module.data_run(blob, order.is_big, 2, 100) == (2, 22)
    assert module.data_run(blob, order.is_big, 9, 6) == (0, 0)
    assert module.data_run(blob[:32], order.is_big, 9, 100) == (2, 22)


def test_frames_laid_out_by_hand() -> None:
    """A size of 32 bits and as many bytes, two of them the message's code (protocol)."""
    for order in ByteOrder:
        big = order.is_big
        name: Literal["big", "little"] = "big" if big else "little"
        number = np.frombuffer(b"\xee" + 0x81A2C3D4.to_bytes(4, name), np.uint8)
        assert module.get32(number, 1, big) == 0x81A2C3D4
        data = encode_answer(Data(b"12345"), order)
        code = data[4:6]
        assert len(data) == 11

        def frame(size: int, code: bytes = code, sizes: Any = name) -> bytes:
            return size.to_bytes(4, sizes) + code + bytes(max(size, 2) - 2)

        other = bytes(one ^ 1 for one in code)
        long = frame(300)
        blob = np.frombuffer(long + data + frame(2) + frame(3), np.uint8)
        assert module.message_offsets(blob, big).tolist() == [0, 304, 315, 321, 328]
        for size in range(1, 8):  # what is behind the last whole message
            assert module.message_run(blob[:-size], 0, big, 9, 999) == (3, 321)
        for tail, count in (
            (b"", 0),
            (frame(3), 1),
            (frame(3)[:-1], 0),
            (frame(2), 0),
            *((frame(3)[:size], 0) for size in range(1, 6)),
            (frame(20), 1),
            (frame(21), 0),
            (frame(3, code[:1] + other[1:]), 0),
            (frame(3, other[:1] + code[1:]), 0),
        ):
            blob = np.frombuffer(data + tail, np.uint8)
            assert module.data_run(blob, big, 9, 20) == (1 + count, 11 + count * len(tail))
            assert module.data_run(blob, big, 1, 20) == (1, 11)
            assert module.data_run(blob, big, 0, 20) == (0, 0)
