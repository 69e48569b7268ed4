"""The server's state machine: every request in every state, any split, any bytes."""

from __future__ import annotations

import struct
from itertools import cycle, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.dictionary.evolution import Evolution
from olr_pg.errors import Code, OlrPgError
from olr_pg.transactions.schema_event import SchemaEvent
from olr_pg.wire.elements import Begin, Commit, decode_element, encode_element
from olr_pg.wire.frames import ByteOrder, FrameBuffer, encode_frame
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
from olr_pg.wire.protocol import Batch, ClientProtocol, Elements, Event, Reply, ServerProtocol

if TYPE_CHECKING:
    from collections.abc import Callable

COMMIT_SCNS = (10, 20, 20, 30, 47)


LITTLE = ByteOrder.LITTLE


class ModelDelivery:
    """Five transactions of two messages each, delivered the slow and obvious way."""

    def __init__(self, order: ByteOrder, refuse: frozenset[str] = frozenset()) -> None:
        self.waiting = [
            [
                encode_answer(Data(encode_element(element, order)), order)
                for element in (Begin(scn - 5, scn, number, 0), Commit(scn, scn, number, 0))
            ]
            for number, scn in enumerate(COMMIT_SCNS)
        ]
        self.numbers = list(range(len(COMMIT_SCNS)))
        self.taken = 0  # messages of the first not transmitted
        self.sent: list[int] = []
        self.refuse = refuse
        self.calls: list[tuple[object, ...]] = []

    def note(self, *call: object) -> None:
        self.calls.append(call)
        if call[0] in self.refuse:
            raise OlrPgError(4013, f"{call[0]} is refused")

    def resolve(self, sql: str) -> None:
        self.note("resolve", sql)

    def start(self, scn: int) -> None:
        self.note("start", scn)

    def take(self, confirmed_scn: int, messages: int) -> Batch:
        self.note("take", confirmed_scn, messages)
        self.sent = [number for number in self.sent if COMMIT_SCNS[number] > confirmed_scn]
        return self.next_one()

    def rewind(self, scn: int) -> Batch:
        self.note("rewind", scn)
        back = [number for number in self.sent if COMMIT_SCNS[number] > scn]
        self.sent = [number for number in self.sent if number not in back]
        self.numbers = sorted(back + self.numbers)
        self.taken = 0
        return self.next_one()

    def saved_scn(self) -> int | None:
        self.note("saved_scn")
        return min((COMMIT_SCNS[n] - 5 for n in self.sent + self.numbers), default=None)

    def next_one(self) -> Batch:
        if not self.numbers:
            return Batch(b"", 0)
        message = self.waiting[self.numbers[0]][self.taken]
        self.taken += 1
        if self.taken == 2:
            self.taken = 0
            self.sent.append(self.numbers.pop(0))
        return Batch(message, 1)


def drain(protocol: ServerProtocol) -> bytes:
    found = []
    while parts := protocol.answers():
        found.extend(parts)
    return b"".join(found)


def feed(protocol: ServerProtocol, data: bytes) -> bytes:
    protocol.receive(data)
    return drain(protocol)


def read_answers(data: bytes, order: ByteOrder) -> list[Answer]:
    frames = FrameBuffer(order, limit=1 << 30)
    frames.receive(data)
    found = []
    while (message := frames.next_message()) is not None:
        found.append(decode_answer(message, order))
    assert frames.waiting == 0
    return found


def ask(protocol: ServerProtocol, order: ByteOrder, *requests: Request) -> list[Answer]:
    data = b"".join(encode_request(request, order) for request in requests)
    return read_answers(feed(protocol, data), order)


def in_state(
    state: State, order: ByteOrder, delivery: ModelDelivery | None = None
) -> ServerProtocol:
    protocol = ServerProtocol(delivery or ModelDelivery(order), order)
    way: list[Request] = [TableList("select 1"), StartScn(5)]
    way = way[: state - 1]
    assert ask(protocol, order, *way) == [Ok()] * len(way)
    assert protocol.state is state
    return protocol


FIRST_BEGIN = Begin(5, 10, 0, 0)

ALLOWED: list[tuple[Request, State, State, type[Answer]]] = [
    (TableList("q"), State.WAIT_TABLE_LIST, State.WAIT_START_SCN, Ok),
    (StartScn(1), State.WAIT_START_SCN, State.REPLICATING, Ok),
    (LastCommitedScn(0), State.REPLICATING, State.REPLICATING, Data),
    (BackToScn(0), State.REPLICATING, State.REPLICATING, Data),
    *((GetStatus(), state, state, Status) for state in State),
    *((GetSavedScn(), state, state, SavedScn) for state in State),
]
REQUESTS: list[Request] = [
    TableList("q"), StartScn(1), LastCommitedScn(0), BackToScn(0), GetStatus(), GetSavedScn(),
]  # fmt: skip


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("request_", REQUESTS)
def test_every_request_in_every_state(request_: Request, state: State, order: ByteOrder) -> None:
    delivery = ModelDelivery(order)
    protocol = in_state(state, order, delivery)
    calls = len(delivery.calls)
    (answer,) = ask(protocol, order, request_)
    for allowed, before, after, expected in ALLOWED:
        if (allowed, before) == (request_, state):
            assert isinstance(answer, expected)
            assert protocol.state is after
            return
    assert isinstance(answer, Error)
    assert answer.code == 4004
    assert Code.REQUEST_OUT_OF_STATE.title in answer.text
    assert state.name in answer.text
    assert protocol.state is state
    assert len(delivery.calls) == calls


@pytest.mark.parametrize("state", State)
def test_log_off_in_every_state_is_not_answered_and_ends(state: State, order: ByteOrder) -> None:
    protocol = in_state(state, order)
    requests = GetStatus(), LogOff(), GetStatus()
    assert ask(protocol, order, *requests) == [Status(state)]
    assert protocol.closed
    assert protocol.failure is None
    assert ask(protocol, order, GetStatus()) == []


def test_status_numbers(order: ByteOrder) -> None:
    assert [int(state) for state in State] == [1, 2, 3]


@pytest.mark.parametrize(
    ("refused", "state", "request_"),
    [
        ("resolve", State.WAIT_TABLE_LIST, TableList("q")),
        ("start", State.WAIT_START_SCN, StartScn(9)),
        ("take", State.REPLICATING, LastCommitedScn(9)),
        ("rewind", State.REPLICATING, BackToScn(9)),
        ("saved_scn", State.REPLICATING, GetSavedScn()),
    ],
)
def test_what_the_server_refuses_is_an_error_and_changes_nothing(
    refused: str, state: State, request_: Request, order: ByteOrder
) -> None:
    delivery = ModelDelivery(order)
    protocol = in_state(state, order, delivery)
    delivery.refuse = frozenset([refused])
    answers = ask(protocol, order, request_, request_)
    assert [type(answer) for answer in answers] == [Error, Error]
    assert isinstance(answers[0], Error)
    assert answers[0].code == 4013
    assert f"{refused} is refused" in answers[0].text
    assert protocol.state is state
    assert not protocol.closed
    delivery.refuse = frozenset()
    assert not isinstance(ask(protocol, order, request_)[0], Error)


def test_back_to_scn_in_the_middle_begins_again(order: ByteOrder) -> None:
    protocol = in_state(State.REPLICATING, order)
    first, again, commit = ask(
        protocol, order, LastCommitedScn(0), BackToScn(0), LastCommitedScn(0)
    )
    assert isinstance(first, Data)
    assert decode_element(first.element, order) == FIRST_BEGIN
    assert again == first
    assert isinstance(commit, Data)
    assert isinstance(decode_element(commit.element, order), Commit)


def test_no_more_comes_when_nothing_is_ready(order: ByteOrder) -> None:
    protocol = in_state(State.REPLICATING, order)
    answers = ask(protocol, order, *[LastCommitedScn(0)] * 12)
    assert [type(answer) for answer in answers] == [Data] * 10 + [NoMore] * 2
    assert ask(protocol, order, LastCommitedScn(47), BackToScn(0)) == [NoMore(), NoMore()]


def test_a_run_of_requests_is_asked_for_at_once(order: ByteOrder) -> None:
    delivery = ModelDelivery(order)
    protocol = in_state(State.REPLICATING, order, delivery)
    delivery.calls.clear()
    requests: list[Request] = []
    requests += [LastCommitedScn(1)] * 20 + [LastCommitedScn(2)] * 30
    requests.append(GetStatus())
    answers = ask(protocol, order, *requests)
    assert len(answers) == 51
    assert answers[-1] == Status(State.REPLICATING)
    assert delivery.calls[0] == ("take", 1, 20)
    assert delivery.calls[-1] == ("take", 2, 30)


def test_output_comes_in_bounded_pieces(order: ByteOrder) -> None:
    class Endless(ModelDelivery):
        def take(self, confirmed_scn: int, messages: int) -> Batch:
            return Batch(encode_answer(Data(b"x" * 94), order), 1)  # 100 bytes

    protocol = ServerProtocol(Endless(order), order, answer_bytes=1000)
    ask(protocol, order, TableList("q"), StartScn(0))
    protocol.receive(encode_request(LastCommitedScn(0), order) * 95)
    sizes = []
    while parts := protocol.answers():
        sizes.append(sum(map(len, parts)))
    assert sizes == [1000] * 9 + [500]


@pytest.mark.parametrize("size", [0, 1, 2**20 + 1, 2**32 - 1])
def test_a_broken_frame_is_told_and_ends(size: int, order: ByteOrder) -> None:
    protocol = in_state(State.REPLICATING, order)
    status = encode_request(GetStatus(), order)
    data = feed(protocol, status + struct.pack(order.prefix + "I", size) + status)
    answers = read_answers(data, order)
    assert answers[0] == Status(State.REPLICATING)
    assert isinstance(answers[1], Error)
    assert answers[1].code == 4001
    assert len(answers) == 2
    assert protocol.closed
    assert protocol.failure is not None


@pytest.mark.parametrize("message", [b"\0\0", b"\x09\x09", b"\6\0x", b"\0\6x", b"\2\0\0", b"\1\0"])
def test_a_bad_message_is_told_and_the_next_one_is_served(message: bytes, order: ByteOrder) -> None:
    protocol = in_state(State.WAIT_TABLE_LIST, order)
    data = feed(protocol, encode_frame(message, order) + encode_request(GetStatus(), order))
    error, status = read_answers(data, order)
    assert isinstance(error, Error)
    assert error.code in (4002, 4003)
    assert status == Status(State.WAIT_TABLE_LIST)


SCN = st.sampled_from([0, 9, 10, 19, 20, 25, 30, 46, 47, 2**64 - 1])
OTHERS: list[Request] = [TableList("q"), StartScn(3), GetStatus(), GetSavedScn()]
ANY_REQUEST: st.SearchStrategy[list[Request]] = st.one_of(
    st.tuples(SCN, st.integers(1, 12)).map(lambda run: [LastCommitedScn(run[0])] * run[1]),
    SCN.map(lambda scn: [BackToScn(scn)]),
    st.sampled_from(OTHERS).map(lambda request: [request]),
)
CONVERSATION: st.SearchStrategy[list[Request]] = st.lists(ANY_REQUEST, max_size=12).map(
    lambda groups: [request for group in groups for request in group]
)


def one_by_one(requests: list[Request], order: ByteOrder) -> bytes:
    protocol = in_state(State.REPLICATING, order)
    return b"".join(feed(protocol, encode_request(request, order)) for request in requests)


@given(CONVERSATION, st.lists(st.integers(0), max_size=8), st.sampled_from(ByteOrder))
@settings(max_examples=300, deadline=None)
def test_pipelined_in_any_split_gives_the_answers_of_one_by_one(
    requests: list[Request], cuts: list[int], order: ByteOrder
) -> None:
    data = b"".join(encode_request(request, order) for request in requests)
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    protocol = in_state(State.REPLICATING, order)
    answers = b"".join(feed(protocol, data[a:b]) for a, b in pairwise(edges))
    assert answers == one_by_one(requests, order)
    assert len(read_answers(answers, order)) == len(requests)


FUZZ = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.binary(min_size=2, max_size=20).map(lambda b: encode_frame(b, ByteOrder.LITTLE)),
        CONVERSATION.map(
            lambda rs: b"".join(encode_request(r, ByteOrder.LITTLE) for r in rs)
        ),
    ),
    max_size=6,
).map(b"".join)  # fmt: skip


@given(FUZZ, st.lists(st.integers(0), max_size=6), st.sampled_from(State))
@settings(max_examples=400, deadline=None)
def test_any_bytes_give_answers_or_a_documented_close_in_any_split(
    data: bytes, cuts: list[int], state: State
) -> None:
    order = ByteOrder.LITTLE
    whole, split = in_state(state, order), in_state(state, order)
    expected = feed(whole, data)
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    assert b"".join(feed(split, data[a:b]) for a, b in pairwise(edges)) == expected
    answers = read_answers(expected, order)
    assert all(a.code in frozenset(Code) for a in answers if isinstance(a, Error))
    assert whole.errors == sum(isinstance(a, Error) for a in answers)
    if whole.failure is not None:
        assert whole.closed
        assert whole.failure.code == 4001


class TellingDelivery:
    """Gives two messages with an event between them, and an event after BackToSCN."""

    def __init__(self) -> None:
        self.script: list[Batch] = []

    def resolve(self, sql: str) -> None:
        """Any will do."""

    def start(self, scn: int) -> None:
        """Any will do."""

    def take(self, confirmed_scn: int, messages: int) -> Batch:
        return self.script.pop(0) if self.script else Batch(b"", 0)

    def rewind(self, scn: int) -> Batch:
        return self.take(0, 1)

    def saved_scn(self) -> int | None:
        return None


def test_an_event_comes_between_answers_and_answers_nothing() -> None:
    event = SchemaEvent("S.T", 9, 1, 5, Evolution(), None)
    first, second = (encode_answer(Data(bytes([2]) + bytes(29)), LITTLE) for _ in range(2))
    delivery = TellingDelivery()
    server = ServerProtocol(delivery, LITTLE)
    server.receive(encode_request(TableList("q"), LITTLE) + encode_request(StartScn(0), LITTLE))
    server.answers()
    for asked in (LastCommitedScn(3), BackToScn(3)):
        told = Batch(b"", 0, event)
        delivery.script = [told, told, Batch(first, 1), told, Batch(second, 1)]
        if isinstance(asked, LastCommitedScn):
            delivery.script.insert(0, Batch(first, 1))
        server.receive(
            encode_request(asked, LITTLE) + encode_request(LastCommitedScn(3), LITTLE) * 2
        )
        seen: list[object] = []
        while True:
            parts = server.answers()
            found = None if parts else server.event()
            if not parts and found is None:
                break
            seen += [found] if found is not None else [bytes(part) for part in parts]
        no_more = encode_answer(NoMore(), LITTLE)
        expected: list[object] = [event, event, first, event, second, no_more]
        if isinstance(asked, LastCommitedScn):
            expected = [first, *expected[:-1]]
        assert seen == expected


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
