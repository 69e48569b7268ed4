"""The client's side, against the server's side with a pretend wire between them."""

from __future__ import annotations

from itertools import cycle, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.errors import OlrPgError
from olr_pg.wire.client import ClientProtocol, Elements, Event, Reply
from olr_pg.wire.elements import Begin, Commit, encode_element
from olr_pg.wire.frames import ByteOrder
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
    encode_answer,
    encode_request,
)

if TYPE_CHECKING:
    from collections.abc import Callable

BEGIN, COMMIT = Begin(5, 10, 7, 0), Commit(10, 10, 7, 0)


def data_of(element: Begin | Commit, order: ByteOrder) -> Data:
    return Data(encode_element(element, order))


def received(client: ClientProtocol, piece: bytes) -> None:
    client.receive(piece)


def adopted(client: ClientProtocol, piece: bytes) -> None:
    client.adopt(memoryview(bytearray(piece)))


def adopted_read_only(client: ClientProtocol, piece: bytes) -> None:
    client.adopt(memoryview(piece))


TAKES = st.sampled_from([received, adopted, adopted_read_only])


def events_of(
    client: ClientProtocol,
    data: bytes,
    cuts: list[int],
    takes: list[Callable[[ClientProtocol, bytes], None]],
) -> list[Event]:
    """The events of data that comes in pieces, each taken in one of these ways in turn."""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    events = []
    for (start, end), take in zip(pairwise(edges), cycle(takes), strict=False):
        take(client, data[start:end])
        while (event := client.next_event()) is not None:
            events.append(event)
    return events


def flat(events: list[Event], order: ByteOrder) -> list[tuple[type[Request], Answer]]:
    """One (kind of request, answer) per answer, whatever the events were cut into."""
    found: list[tuple[type[Request], Answer]] = []
    for event in events:
        if isinstance(event, Reply):
            found += [(type(event.request), event.answer)] * event.answers
            continue
        for start, end in pairwise(event.offsets.tolist()):
            message = event.blob[start + 4 : end].tobytes()
            found.append((type(event.request), decode_answer(message, order)))
    return found


ERROR = Error(1, "no")
CHOICES: dict[Request, list[str]] = {
    TableList("q"): ["ok", "error"],
    StartScn(1): ["ok", "error"],
    LastCommitedScn(0): ["begin", "commit", "no more", "error"],
    LastCommitedScn(9): ["begin", "commit", "no more", "error"],
    BackToScn(3): ["begin", "no more", "error"],
    GetStatus(): ["status"],
    GetSavedScn(): ["saved"],
}
EXCHANGES = st.lists(
    st.sampled_from(list(CHOICES)).flatmap(
        lambda request: st.lists(
            st.tuples(st.just(request), st.sampled_from(CHOICES[request])), min_size=1, max_size=6
        )
    ),
    max_size=8,
).map(lambda groups: [exchange for group in groups for exchange in group])


def answer_of(name: str, order: ByteOrder) -> Answer:
    answers: dict[str, Answer] = {
        "ok": Ok(), "error": ERROR, "no more": NoMore(), "saved": SavedScn(4),
        "status": Status(State.REPLICATING),
        "begin": data_of(BEGIN, order), "commit": data_of(COMMIT, order),
    }  # fmt: skip
    return answers[name]


@given(
    EXCHANGES,
    st.lists(st.integers(0), max_size=8),
    st.sampled_from(ByteOrder),
    st.lists(TAKES, min_size=1, max_size=4),
)
@settings(max_examples=300, deadline=None)
def test_answers_meet_their_requests_in_any_split(
    exchanges: list[tuple[Request, str]],
    cuts: list[int],
    order: ByteOrder,
    takes: list[Callable[[ClientProtocol, bytes], None]],
) -> None:
    client = ClientProtocol(order)
    expected = [(request, answer_of(name, order)) for request, name in exchanges]
    for request, _ in expected:
        client.request(request)
    assert client.pending == len(expected)
    data = b"".join(encode_answer(answer, order) for _, answer in expected)
    found = flat(events_of(client, data, cuts, takes), order)
    assert found == [(type(request), answer) for request, answer in expected]
    assert client.pending == 0


def test_requests_of_one_call_are_answered_as_one_run(order: ByteOrder) -> None:
    client = ClientProtocol(order)
    sent = client.request(LastCommitedScn(1), 5)
    assert sent == encode_request(LastCommitedScn(1), order) * 5
    elements: list[Begin | Commit] = [BEGIN, COMMIT, BEGIN]
    data = b"".join(encode_answer(data_of(element, order), order) for element in elements)
    client.receive(data)
    event = client.next_event()
    assert isinstance(event, Elements)
    assert len(event) == 3
    assert event.blob.tobytes() == data
    assert list(event.decode(order)) == elements
    assert client.pending == 2
    assert client.next_event() is None


def test_elements_keep_their_bytes_while_more_arrives(order: ByteOrder) -> None:
    client = ClientProtocol(order)
    client.request(LastCommitedScn(1), 400)
    frame = encode_answer(Data(b"\2" * 500), order)
    seen = []
    for _ in range(400):
        client.receive(frame)
        event = client.next_event()
        assert isinstance(event, Elements)
        seen.append(event)
    assert all(np.array_equal(event.blob, np.frombuffer(frame, np.uint8)) for event in seen)


def test_what_is_adopted_is_not_copied(order: ByteOrder) -> None:
    client = ClientProtocol(order)
    client.request(LastCommitedScn(1), 4)
    data = np.frombuffer(bytearray(encode_answer(data_of(BEGIN, order), order) * 3), np.uint8)
    client.adopt(data.data)
    event = client.next_event()
    assert isinstance(event, Elements)
    assert len(event) == 3
    assert np.shares_memory(event.blob, data)
    # What comes next is written elsewhere.
    before = data.tobytes()
    client.receive(encode_answer(data_of(COMMIT, order), order))
    assert client.next_event() is not None
    assert event.blob.tobytes() == data.tobytes() == before


@pytest.mark.parametrize(
    ("request_", "answer", "code"),
    [
        (TableList("q"), NoMore(), 4007),
        (StartScn(0), Data(b"x"), 4007),
        (LastCommitedScn(0), Ok(), 4007),
        (BackToScn(0), Status(State.REPLICATING), 4007),
        (GetStatus(), SavedScn(1), 4007),
        (GetSavedScn(), Ok(), 4007),
    ],
)
def test_an_answer_of_the_wrong_kind_is_refused(
    request_: Request, answer: Answer, code: int, order: ByteOrder
) -> None:
    client = ClientProtocol(order)
    client.request(request_)
    client.receive(encode_answer(answer, order))
    with pytest.raises(OlrPgError) as caught:
        client.next_event()
    assert caught.value.code == code


def test_back_to_scn_must_be_answered_by_a_begin(order: ByteOrder) -> None:
    client = ClientProtocol(order)
    client.request(BackToScn(0))
    client.receive(encode_answer(data_of(COMMIT, order), order))
    with pytest.raises(OlrPgError, match="not a Begin"):
        client.next_event()


def test_an_answer_that_nobody_asked_for_is_refused(order: ByteOrder) -> None:
    client = ClientProtocol(order)
    client.request(LogOff())
    assert client.pending == 0
    client.receive(encode_answer(Ok(), order))
    with pytest.raises(OlrPgError, match="without a request"):
        client.next_event()


@given(st.binary(max_size=60), st.sampled_from(list(CHOICES)))
@settings(deadline=None)
def test_any_bytes_give_events_or_a_documented_error(data: bytes, request: Request) -> None:
    client = ClientProtocol(answer_limit=40)
    client.request(request, 3)
    client.receive(data)
    try:
        while client.next_event() is not None:
            pass
    except OlrPgError as error:
        assert error.code in (4001, 4002, 4003, 4007)  # noqa: PT017 - one of two outcomes
