"""Both sides of one connection of the protocol, the server's and the client's. The two sides
receive and return bytes; they have no socket.

Theory of operation
-------------------
Every message of the server is the answer to a request; the server sends nothing else. A connection
goes through three states, and never back to an earlier one:

    WaitTableList --TableList: Ok--> WaitStartSCN --StartSCN: Ok--> Replicating

The server answers requests one by one, in the order of their arrival, so a client may send many
requests before it reads an answer (pipelining). If a request is unknown, malformed, not allowed in
the current state, or fails, the answer is Error. The request then changes nothing, and the session
continues with the next request. The ErrorCode is the number of `olr_pg.errors.Code`. GetStatus,
GetSavedSCN and LogOff are allowed in every state.

A session ends in one of two ways: after LogOff, which has no answer, or after a MessageSize that is
out of bounds. The server answers a MessageSize out of bounds with Error and stops, because it
cannot find the next message. In both cases `closed` is set, and the rest of the input is ignored.
The caller closes the connection after it has sent the preceding answers.

`ServerProtocol` has two main methods. `receive` takes bytes, split in any way. `answers` returns
the next piece of output; the caller calls it until it returns nothing. `answer_bytes` limits the
size of a piece. The caller sends each piece before it requests the next, so messages stay in the
queue until they can be sent. A client that sends thousands of requests, but does not read, cannot
fill the memory with answers.

A pipelining client sends runs of equal LastCommitedSCN requests. The requests of a run are counted
together and answered with slices of prebuilt messages, so an element takes a fraction of a
microsecond. But each request is also a confirmation, which must be handled before the element for
this request is sent. Therefore `SessionOperations.take` ends a batch before a request that would
confirm something.

A client in the same process also receives the events of tables. If an event is next, `answers`
stops before it. The next request stays unanswered until `event` has returned the event.

`SessionOperations` is the interface to the rest of the server.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from olr_pg.errors import Code, OlrPgError
from olr_pg.wire.elements import Element, ElementCode, decode_element
from olr_pg.wire.frames import (
    MESSAGE_BYTES_MAX,
    REQUEST_BYTES_MAX,
    Buffer,
    ByteOrder,
    FrameBuffer,
    encode_frame,
)
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
    RequestCode,
    SavedScn,
    StartScn,
    State,
    Status,
    TableList,
    data_run,
    decode_answer,
    decode_request,
    encode_answer,
    encode_request,
    message_offsets,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from olr_pg.transactions.schema_event import Ancestry, SchemaEvent

ANSWER_BYTES: Final = 1 << 20
"""The default size at which a piece of output ends. A single message can be larger."""

TRANSACTION_BYTES: Final = 80
"""Approximate bytes that the server needs for an unconfirmed transaction, in addition to its
messages.

The bundled applier uses the same number to estimate the memory of its unconfirmed transactions in
the server.
"""

_CONFIRM_BYTES: Final = 14
_SCN_BYTES: Final = 8
_NO_SCNS: Final = np.empty(0, np.uint64)
_RUN_BYTES_MIN: Final = 8 * _CONFIRM_BYTES
"""Minimum input in bytes for which a run is searched; for less, the search takes more time than it
saves.
"""

_FRAME: Final = 6
_BUFFER_BYTES: Final = 5 << 19
_ROOM_BYTES: Final = 1 << 19

_ANSWERS: Final[dict[type[Request], tuple[type[Answer], ...]]] = {
    TableList: (Ok, Error),
    StartScn: (Ok, Error),
    LastCommitedScn: (Data, NoMore, Error),
    BackToScn: (Data, NoMore, Error),
    LogOff: (),
    GetStatus: (Status, Error),
    GetSavedScn: (SavedScn, Error),
}


class Batch(NamedTuple):
    """Consecutive framed Data messages that are ready to be sent.

    Attributes:
        framed: the bytes of the messages.
        messages: the number of messages; 0 if nothing is ready, or only an event.
        event: the event that precedes the next message; only for a client in this process, because
            the protocol has no message for events. A batch with an event has no messages, and
            answers no request.
    """

    framed: Buffer
    messages: int
    event: SchemaEvent | Ancestry | None = None


class SessionOperations(Protocol):
    """The operations that the protocol needs from the server. Every method may raise `OlrPgError`.

    A method that raises must not have changed anything: the client receives the Error answer, and
    may repeat the request.
    """

    def resolve(self, sql: str) -> None:
        """Subscribe to the tables that the query returns."""

    def start(self, scn: int) -> None:
        """Begin to deliver every transaction that began at or after `scn`."""

    def take(self, confirmed_scn: int, messages: int) -> Batch:
        """Answer up to `messages` LastCommitedSCN(`confirmed_scn`) requests in a row.

        The method first confirms the transmitted transactions up to that commit SCN durably. Then
        the method returns the next messages: at least one, if any is ready. If the batch completes
        a transaction that the next request would confirm, the batch ends there.
        """

    def rewind(self, scn: int) -> Batch:
        """Answer BackToSCN(`scn`). The result has one message, which is a Begin, or none."""

    def saved_scn(self) -> int | None:
        """Return the SCN in the checkpoint."""


_ALLOWED: Final[dict[type[Request], State]] = {
    TableList: State.WAIT_TABLE_LIST,
    StartScn: State.WAIT_START_SCN,
    LastCommitedScn: State.REPLICATING,
    BackToScn: State.REPLICATING,
}


class ServerProtocol:
    """One connection as the server sees it.

    Args:
        operations: performs the requests.
        order: byte order of the connection.
        request_limit: the largest accepted request, in bytes.
        answer_bytes: the size at which a piece of output ends.

    Attributes:
        told: called with each error that is the answer to a request, but not with `failure`.
        state: the state that GetStatus reports.
        closed: whether the caller must close the connection after sending the answers.
        failure: the error if the client has sent a MessageSize that is out of bounds; else None,
            also after LogOff.
        errors: the number of Error answers so far.
    """

    def __init__(
        self,
        operations: SessionOperations,
        order: ByteOrder = ByteOrder.LITTLE,
        *,
        request_limit: int = REQUEST_BYTES_MAX,
        answer_bytes: int = ANSWER_BYTES,
    ) -> None:
        self._delivery = operations
        self._order = order
        self._frames = FrameBuffer(order, request_limit)
        self._answer_bytes = answer_bytes
        self._run_layout = np.dtype(
            [("size", order.prefix + "u4"), ("code", order.prefix + "u2"),
             ("scn", order.prefix + "u8")]
        )  # fmt: skip
        self._confirm_head = struct.pack(
            order.prefix + "IH", _CONFIRM_BYTES - 4, RequestCode.LAST_COMMITED_SCN
        )
        self._run: list[tuple[int, int]] = []  # (scn, number of unanswered requests), last first
        self._event: SchemaEvent | Ancestry | None = None
        self._no_more = encode_answer(NoMore(), order)
        self.told: Callable[[OlrPgError], None] | None = None
        self.state = State.WAIT_TABLE_LIST
        self.closed = False
        self.failure: OlrPgError | None = None
        self.errors = 0

    def receive(self, data: Buffer) -> None:
        """Append bytes that the client sent. No bytes make the method raise an error."""
        if not self.closed:
            self._frames.receive(data)

    @property
    def waiting(self) -> int:
        """The number of received bytes of requests that were not processed yet. If `answers` has
        returned nothing, these bytes belong to one incomplete request.
        """
        return self._frames.waiting

    def answers(self) -> list[Buffer]:
        """Return the next piece of output. The piece is empty if every complete request is
        answered, or if an event is next.
        """
        out: list[Buffer] = []
        size = 0
        while size < self._answer_bytes and (part := self._next_part()) is not None:
            out.append(part)
            size += len(part)
        return out

    def event(self) -> SchemaEvent | Ancestry | None:
        """Return and remove the event that precedes the next answer, if there is one."""
        event, self._event = self._event, None
        return event

    def _next_part(self) -> Buffer | None:
        while not (self.closed or self._event):
            if self._run:
                part = self._answer_run()
                if part is not None:
                    return part
                continue
            if self.state is State.REPLICATING:
                self._count_run()
                if self._run:
                    continue
            message = self._frames.next_message()
            if message is None:
                return self._break_off()
            part = self._answer(message)
            if part is not None:
                return part
        return None

    def _break_off(self) -> Buffer | None:
        """Handle the end of the complete messages in the input. Return None to wait for more bytes.
        If the framing is broken, set `closed` and return the Error answer.
        """
        if self._frames.failure is None:
            return None
        self.closed = True
        self.failure = self._frames.failure
        return self._error(self.failure)

    def _answer(self, message: bytes) -> Buffer | None:
        """Answer one request. Return None if the request has no answer (LogOff) or became part of a
        run.
        """
        try:
            request = decode_request(message, self._order)
            allowed = _ALLOWED.get(type(request), self.state)
            if allowed is not self.state:
                detail = f"{type(request).__name__} in state {self.state.name}"
                raise OlrPgError(Code.REQUEST_OUT_OF_STATE, detail, state=self.state.name)
            return self._perform(request)
        except OlrPgError as error:
            return self._refuse(error)

    def _perform(self, request: Request) -> Buffer | None:
        match request:
            case TableList(sql=sql):
                self._delivery.resolve(sql)
                self.state = State.WAIT_START_SCN
                return self._encode(Ok())
            case StartScn(scn=scn):
                self._delivery.start(scn)
                self.state = State.REPLICATING
                return self._encode(Ok())
            case LastCommitedScn(scn=scn):
                self._run.append((scn, 1))
                return None
            case BackToScn(scn=scn):
                return self._rewound(self._delivery.rewind(scn))
            case GetStatus():
                return self._encode(Status(self.state))
            case GetSavedScn():
                return self._encode(SavedScn(self._delivery.saved_scn()))
            case LogOff():
                self.closed = True
                return None

    def _count_run(self) -> None:
        """Move the LastCommitedSCN requests at the beginning of the input to `_run`."""
        head = self._frames.peek(_CONFIRM_BYTES)
        if len(head) < _CONFIRM_BYTES or not head.startswith(self._confirm_head):
            return
        if len(self._confirmations(_RUN_BYTES_MIN)) * _CONFIRM_BYTES < _RUN_BYTES_MIN:
            # The run is too short to count it: take one request. Only a few bytes were examined for
            # this.
            scn = int.from_bytes(head[-_SCN_BYTES:], self._order.value)
            self._run = [(scn, 1)]
            self._frames.skip(_CONFIRM_BYTES)
            return
        scns = self._confirmations(self._frames.waiting)
        # The next request to answer is at the end of the list.
        self._run = _runs(scns)[::-1]
        self._frames.skip(len(scns) * _CONFIRM_BYTES)

    def _confirmations(self, size: int) -> npt.NDArray[np.uint64]:
        """Return the SCNs of the LastCommitedSCN requests at the beginning of the next `size`
        bytes.
        """
        if self._frames.waiting < size:
            return _NO_SCNS
        data = self._frames.peek(size)
        requests = np.frombuffer(data, self._run_layout, len(data) // _CONFIRM_BYTES)
        other = (requests["size"] != _CONFIRM_BYTES - 4) | (
            requests["code"] != RequestCode.LAST_COMMITED_SCN
        )
        count = int(other.argmax()) if other.any() else len(requests)
        return requests["scn"][:count]

    def _rewound(self, batch: Batch) -> Buffer | None:
        """Answer BackToSCN. If an event precedes the answer, answer it after the event like
        LastCommitedSCN(0), which confirms nothing.
        """
        if batch.event is None:
            return batch.framed or self._no_more
        self._event = batch.event
        self._run.append((0, 1))
        return None

    def _answer_run(self) -> Buffer | None:
        """Answer requests of the run. Returns None if an event comes before the answers."""
        scn, requests = self._run.pop()
        try:
            batch = self._delivery.take(scn, requests)
        except OlrPgError as error:
            # This request is answered with the error; the rest of the run is tried again.
            batch = Batch(self._refuse(error), 1)
        if batch.event is not None:
            self._event = batch.event
            self._run.append((scn, requests))
            return None
        if batch.messages == 0:
            return self._no_more * requests
        if batch.messages < requests:
            self._run.append((scn, requests - batch.messages))
        return batch.framed

    def _refuse(self, error: OlrPgError) -> bytes:
        if self.told is not None:
            self.told(error)
        return self._error(error)

    def _error(self, error: OlrPgError) -> bytes:
        self.errors += 1
        return self._encode(Error(error.code, f"{error}; {error.action}"))

    def _encode(self, answer: Answer) -> bytes:
        return encode_answer(answer, self._order)


def _runs(values: npt.NDArray[np.uint64]) -> list[tuple[int, int]]:
    """Return (value, how often it occurs in a row) for each run in a non-empty array."""
    ends = np.append(np.flatnonzero(values[1:] != values[:-1]) + 1, len(values))
    starts = np.concatenate(([0], ends[:-1]))
    return list(zip(values[starts].tolist(), (ends - starts).tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer that is not Data.

    Attributes:
        request: the request that it answers; if it answers several requests, the first of them.
        answer: Ok, NoMore, Error, Status or SavedScn.
        answers: the number of consecutive requests that got this answer.
    """

    request: Request
    answer: Answer
    answers: int = 1


@dataclass(frozen=True, slots=True)
class Elements:
    """Consecutive Data answers to requests of one kind.

    Attributes:
        request: the request to which the first of these answers belongs.
        blob: the framed messages; each element begins 6 bytes after its offset.
        order: byte order of the connection.
        messages: the number of messages.
    """

    request: Request
    blob: npt.NDArray[np.uint8]
    order: ByteOrder
    messages: int

    def __len__(self) -> int:
        return self.messages

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """The offset of each message, and the end of the last one; shape (n + 1)."""
        return message_offsets(self.blob, self.order.is_big)

    def decode(self, order: ByteOrder) -> Iterator[Element]:
        """Yield the elements as values, one by one.

        Raises:
            OlrPgError: 4005, an element is malformed.
        """
        for start, end in pairwise(self.offsets.tolist()):
            yield decode_element(self.blob[start + _FRAME : end].tobytes(), order)


Event = Reply | Elements


class ClientProtocol:
    """One connection as the client sees it.

    `request` returns the bytes to send, and remembers the request. `receive` takes the bytes that
    the server sent, split in any way. `next_event` returns the answers in the order of the
    requests, or None until more bytes are received. Consecutive Data answers are returned as one
    `Elements`: contiguous framed messages with their offsets, which kernels can read directly.
    Every other answer is returned as a `Reply`; consecutive NoMore answers are one `Reply`.

    If the server is in the same process, it can also report events of tables, and the incarnations
    of the source, in order with the answers (`tell`).

    Confirming with pipelined requests: LastCommitedSCN(n) confirms every transaction with commit
    SCN ≤ n that the server has *transmitted* when it handles the request. Several transactions can
    have the same commit SCN. So a client may send n only after it has made all transactions with
    commit SCN n durable, including those that the server transmits before it handles the request.
    Requests that were sent earlier contain a lower n, which is always safe.

    Args:
        order: byte order of the connection.
        answer_limit: the largest answer accepted, in bytes.
    """

    def __init__(
        self, order: ByteOrder = ByteOrder.LITTLE, *, answer_limit: int = MESSAGE_BYTES_MAX
    ) -> None:
        self.order = order
        self._limit = answer_limit
        self._frames = FrameBuffer(order, answer_limit, _BUFFER_BYTES)
        self._asked: deque[tuple[Request, int]] = deque()
        self._told: deque[SchemaEvent | Ancestry] = deque()
        self.pending = 0
        """Requests whose answer has not been given by `next_event`."""

    def request(self, request: Request, count: int = 1) -> bytes:
        """Return the bytes of `count` requests that are equal to `request`.

        Raises:
            OlrPgError: 4002, an SCN is not a 64-bit unsigned number.
        """
        data = encode_request(request, self.order) * count
        if count and not isinstance(request, LogOff):
            self._asked.append((request, count))
            self.pending += count
        return data

    def room(self) -> memoryview:
        """Return a buffer for bytes from the server. After you have written into the buffer, call
        `filled`.
        """
        return self._frames.room(_ROOM_BYTES)

    def filled(self, count: int) -> None:
        """Record that `count` bytes from the server were written into the buffer from `room`."""
        self._frames.filled(count)

    def receive(self, data: Buffer) -> None:
        """Append bytes that the server sent."""
        self._frames.receive(data)

    def adopt(self, data: memoryview) -> None:
        """Append bytes that the server sent, without copying them if possible. The caller must not
        change the bytes afterwards.
        """
        self._frames.adopt(data)

    def tell(self, event: SchemaEvent | Ancestry) -> None:
        """Add an event, which follows everything received so far."""
        self._told.append(event)

    def told(self) -> SchemaEvent | Ancestry | None:
        """Return the next event that `tell` has added, or None. Call this method only after
        `next_event` has returned None, because the answers before the event must be returned first.
        """
        return self._told.popleft() if self._told else None

    def next_event(self) -> Event | None:
        """Return the next answers, in the order of the requests; None if more bytes must be
        received first.

        Raises:
            OlrPgError: 4001, 4002, 4003, 4007, the server violated the protocol; the connection
                cannot be used any more.
        """
        if not self._asked:
            if self._frames.waiting:
                raise OlrPgError(
                    Code.PROTOCOL_BROKEN_BY_SERVER, "the server sent an answer without a request"
                )
            return None
        request, _ = self._asked[0]
        if isinstance(request, LastCommitedScn | BackToScn):
            elements = self._elements(request)
            if elements is not None:
                return elements
        message = self._frames.next_message()
        if message is None:
            if self._frames.failure is not None:
                raise self._frames.failure
            return None
        answer = decode_answer(message, self.order)
        if not isinstance(answer, _ANSWERS[type(request)]):
            raise OlrPgError(
                Code.PROTOCOL_BROKEN_BY_SERVER,
                f"the server answered {type(request).__name__} with {type(answer).__name__}",
            )
        answers = 1
        if isinstance(answer, NoMore):
            # If nothing is ready, the server answers each of the pipelined requests with NoMore.
            frame = encode_frame(message, self.order)
            answers += self._frames.skip_repeated(frame, self._asked_alike(request) - 1)
        self._answered(answers)
        return Reply(request, answer, answers)

    def _asked_alike(self, request: Request) -> int:
        """Return how many unanswered requests the next run of answers can belong to: one for
        BackToScn, else all consecutive requests of the same kind.
        """
        count = 0
        for asked, times in self._asked:
            if type(asked) is not type(request):
                break
            count += times
            if isinstance(request, BackToScn):
                break
        return count

    def _elements(self, request: Request) -> Elements | None:
        """Return the received Data answers to `request`. Include the answers to the following
        requests of the same kind, except for BackToScn. Return None if there are no Data answers.
        """
        count = self._asked_alike(request)
        data = np.frombuffer(self._frames.view(), np.uint8)
        found, end = data_run(data, self.order.is_big, count, self._limit)
        if found == 0:
            return None
        blob = np.frombuffer(self._frames.take(int(end)), np.uint8)
        if isinstance(request, BackToScn) and blob[_FRAME] != ElementCode.BEGIN:
            raise OlrPgError(
                Code.PROTOCOL_BROKEN_BY_SERVER,
                "the server answered BackToScn with an element that is not a Begin",
            )
        self._answered(int(found))
        return Elements(request, blob, self.order, int(found))

    def _answered(self, count: int) -> None:
        self.pending -= count
        while count:
            request, asked = self._asked.popleft()
            if asked > count:
                self._asked.appendleft((request, asked - count))
            count -= min(asked, count)
