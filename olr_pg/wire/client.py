"""The client's side of one connection of the protocol. It receives and returns bytes; it has no
socket.

`request` returns the bytes to send, and remembers the request. `receive` takes the bytes that the
server sent, split in any way. `next_event` returns the answers in the order of the requests, or
None until more bytes are received. Consecutive Data answers are returned as one `Elements`:
contiguous framed messages with their offsets, which kernels can read directly. Every other answer
is returned as a `Reply`; consecutive NoMore answers are one `Reply`.

If the server is in the same process, it can also report events of tables, and the incarnations of
the source, in order with the answers (`tell`).

Confirming with pipelined requests: LastCommitedSCN(n) confirms every transaction with commit SCN ≤
n that the server has *transmitted* when it handles the request. Several transactions can have the
same commit SCN. So a client may send n only after it has made all transactions with commit SCN n
durable, including those that the server transmits before it handles the request. Requests that were
sent earlier contain a lower n, which is always safe.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.errors import Code, OlrPgError
from olr_pg.wire.elements import Element, ElementCode, decode_element
from olr_pg.wire.frames import MESSAGE_BYTES_MAX, Buffer, ByteOrder, FrameBuffer, encode_frame
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
    Status,
    TableList,
    decode_answer,
    encode_request,
)
from olr_pg.wire.offsets import data_run, message_offsets

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from olr_pg.transactions.ancestry import Ancestry
    from olr_pg.transactions.schema_event import SchemaEvent

_FRAME: Final = 6
_BUFFER_BYTES: Final = 5 << 19
_ROOM_BYTES: Final = 1 << 19

_ALLOWED: Final[dict[type[Request], tuple[type[Answer], ...]]] = {
    TableList: (Ok, Error),
    StartScn: (Ok, Error),
    LastCommitedScn: (Data, NoMore, Error),
    BackToScn: (Data, NoMore, Error),
    LogOff: (),
    GetStatus: (Status, Error),
    GetSavedScn: (SavedScn, Error),
}


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
        """Return a buffer for bytes from the server. Call `filled` after writing into it."""
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
        """Return the next event that `tell` has added, or None. Call this only after `next_event`
        has returned None, because the answers before the event must be returned first.
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
                    Code.PROTOCOL_BROKEN_BY_SERVER, "it sent an answer without a request"
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
        if not isinstance(answer, _ALLOWED[type(request)]):
            raise OlrPgError(
                Code.PROTOCOL_BROKEN_BY_SERVER,
                f"it answered {type(request).__name__} with {type(answer).__name__}",
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
                "it answered BackToScn with an element that is not a Begin",
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
