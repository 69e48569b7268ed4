"""The client's side of one connection of the protocol: it takes and returns bytes and has no
socket.

`request` returns the bytes to send and remembers what was asked. `receive` takes the bytes that the
server sent, split in any way. `next_event` returns the answers in the order of the requests, or
None until more bytes are received. A run of Data answers comes as one `Elements`: contiguous framed
messages with their offsets, which kernels can read as they are. Every other answer comes as a
`Reply`; a run of NoMore is one `Reply`.

A server in the same process may report between two answers what happened to a table (`tell`).

Confirming with pipelined requests: LastCommitedSCN(n) confirms every *transmitted* transaction with
commit SCN ≤ n, and two transactions may share a commit SCN. A client must therefore not send n
before it has made every transaction with commit SCN n durable that has been transmitted when the
request is handled. Requests that are already on the way have an older n, which is always safe.
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
        request: what was asked.
        answer: Ok, NoMore, Error, Status or SavedScn.
        answers: how many requests of that kind in a row were answered so.
    """

    request: Request
    answer: Answer
    answers: int = 1


@dataclass(frozen=True, slots=True)
class Elements:
    """Consecutive Data answers to requests of one kind.

    Attributes:
        request: what was asked for the first of them.
        blob: the framed messages; each element begins 6 bytes after its offset.
        order: byte order of the connection.
        messages: how many they are.
    """

    request: Request
    blob: npt.NDArray[np.uint8]
    order: ByteOrder
    messages: int

    def __len__(self) -> int:
        return self.messages

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each message begins, and the end of the last one; shape (n + 1)."""
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
        self._told: deque[SchemaEvent] = deque()
        self.pending = 0
        """Requests whose answer has not been given by `next_event`."""

    def request(self, request: Request, count: int = 1) -> bytes:
        """Return the bytes that ask `request` `count` times.

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
        """Take the first `count` bytes of the buffer that `room` returned as received from the
        server.
        """
        self._frames.filled(count)

    def receive(self, data: Buffer) -> None:
        """Take bytes that the server sent."""
        self._frames.receive(data)

    def adopt(self, data: memoryview) -> None:
        """Take bytes that the server sent, without a copy if possible. The caller must not change
        them afterwards.
        """
        self._frames.adopt(data)

    def tell(self, event: SchemaEvent) -> None:
        """Take an event about a table. It comes after everything that was received so far."""
        self._told.append(event)

    def told(self) -> SchemaEvent | None:
        """Return the next event of `tell` whose preceding answers were all returned, or None."""
        return self._told.popleft() if self._told else None

    def next_event(self) -> Event | None:
        """Return the next answers in the order of the requests, or None until more bytes are
        received.

        Raises:
            OlrPgError: 4001, 4002, 4003, 4007: the server broke the protocol; the connection is of
                no use any more.
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
            # A window of requests that finds nothing is answered so often.
            frame = encode_frame(message, self.order)
            answers += self._frames.skip_repeated(frame, self._asked_alike(request) - 1)
        self._answered(answers)
        return Reply(request, answer, answers)

    def _asked_alike(self, request: Request) -> int:
        """Return how many unanswered requests the next run may answer. For BackToScn it is one."""
        count = 0
        for asked, times in self._asked:
            if type(asked) is not type(request):
                break
            count += times
            if isinstance(request, BackToScn):
                break
        return count

    def _elements(self, request: Request) -> Elements | None:
        """Return the Data answers received so far to requests of the same kind. For BackToScn, to
        that one request.
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
