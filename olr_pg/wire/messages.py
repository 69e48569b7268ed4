"""All requests and answers of the protocol as Python values, and their encoding and decoding.

`encode_request` and `encode_answer` return whole frames. `decode_request` and `decode_answer` take
a message without MessageSize, as returned by `FrameBuffer.next_message`. Validation is strict: a
body must have exactly the bytes that the protocol defines for its message. Facts: protocol,
“Frames”.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import inlined_kernel, kernel
from olr_pg.wire.frames import CODE_BYTES, Buffer, ByteOrder, encode_frame

if TYPE_CHECKING:
    import numpy.typing as npt


class RequestCode(IntEnum):
    """Operation codes of requests. LastCommitedSCN, with one t, is the protocol's own spelling."""

    TABLE_LIST = 1
    START_SCN = 2
    LAST_COMMITED_SCN = 3
    BACK_TO_SCN = 4
    LOG_OFF = 5
    GET_STATUS = 6
    GET_SAVED_SCN = 7


class AnswerCode(IntEnum):
    """Operation codes of answers."""

    OK = 1
    NO_MORE = 2
    ERROR = 3
    DATA = 4
    STATUS = 5
    SAVED_SCN = 6


class State(IntEnum):
    """The state of a connection. The members have the numbers of the Status answer."""

    WAIT_TABLE_LIST = 1
    WAIT_START_SCN = 2
    REPLICATING = 3


@dataclass(frozen=True, slots=True)
class TableList:
    """Subscribe to tables. The query returns the owner and name of each table."""

    sql: str


@dataclass(frozen=True, slots=True)
class StartScn:
    """Deliver every transaction that began at or after `scn` (64 bits, unsigned)."""

    scn: int


@dataclass(frozen=True, slots=True)
class LastCommitedScn:
    """Confirm the transmitted transactions with a commit SCN up to `scn`, and request the next
    element.
    """

    scn: int


@dataclass(frozen=True, slots=True)
class BackToScn:
    """Request a second delivery of the transmitted, unconfirmed transactions with a commit SCN
    above `scn`.
    """

    scn: int


@dataclass(frozen=True, slots=True)
class LogOff:
    """End the session. It gets no answer."""


@dataclass(frozen=True, slots=True)
class GetStatus:
    """Ask for the state of the connection."""


@dataclass(frozen=True, slots=True)
class GetSavedScn:
    """Ask for the SCN in the checkpoint."""


Request = TableList | StartScn | LastCommitedScn | BackToScn | LogOff | GetStatus | GetSavedScn


@dataclass(frozen=True, slots=True)
class Ok:
    """The answer to a request that succeeded."""


@dataclass(frozen=True, slots=True)
class NoMore:
    """The answer that nothing is ready now."""


@dataclass(frozen=True, slots=True)
class Error:
    """The answer to a request that was refused. The request changed nothing.

    Attributes:
        code: ErrorCode, 32 bits; this server sends numbers of `olr_pg.errors.Code`.
    """

    code: int
    text: str


@dataclass(frozen=True, slots=True)
class Data:
    """The answer with one encoded element (`olr_pg.wire.elements.decode_element` decodes it)."""

    element: bytes


@dataclass(frozen=True, slots=True)
class Status:
    """The answer with the state of the connection."""

    state: State


@dataclass(frozen=True, slots=True)
class SavedScn:
    """The answer with the SCN in the checkpoint; None if there is no checkpoint (Flag 0,
    MinStartSCN 0).
    """

    scn: int | None


Answer = Ok | NoMore | Error | Data | Status | SavedScn

REQUEST_CODE: Final[dict[type[Request], RequestCode]] = {
    TableList: RequestCode.TABLE_LIST,
    StartScn: RequestCode.START_SCN,
    LastCommitedScn: RequestCode.LAST_COMMITED_SCN,
    BackToScn: RequestCode.BACK_TO_SCN,
    LogOff: RequestCode.LOG_OFF,
    GetStatus: RequestCode.GET_STATUS,
    GetSavedScn: RequestCode.GET_SAVED_SCN,
}

_SCN_REQUESTS: Final[dict[RequestCode, type[StartScn | LastCommitedScn | BackToScn]]] = {
    RequestCode.START_SCN: StartScn,
    RequestCode.LAST_COMMITED_SCN: LastCommitedScn,
    RequestCode.BACK_TO_SCN: BackToScn,
}
_BARE_REQUESTS: Final[dict[RequestCode, type[LogOff | GetStatus | GetSavedScn]]] = {
    RequestCode.LOG_OFF: LogOff,
    RequestCode.GET_STATUS: GetStatus,
    RequestCode.GET_SAVED_SCN: GetSavedScn,
}


def encode_request(request: Request, order: ByteOrder) -> bytes:
    """Encode `request` as a frame.

    Raises:
        OlrPgError: 4002, an SCN is not a 64-bit unsigned number.
    """
    code = struct.pack(order.prefix + "H", REQUEST_CODE[type(request)])
    match request:
        case TableList(sql=sql):
            body = sql.encode()
        case StartScn(scn=scn) | LastCommitedScn(scn=scn) | BackToScn(scn=scn):
            body = _pack(order, "Q", scn, what=type(request).__name__)
        case _:
            body = b""
    return encode_frame(code + body, order)


def decode_request(message: Buffer, order: ByteOrder) -> Request:
    """Decode the request in `message` (operation code and body, at least 2 bytes).

    Raises:
        OlrPgError: 4003 unknown operation code; 4002 the body has the wrong length, or the query is
            empty or not UTF-8.
    """
    number, body = _split(message, order)
    try:
        code = RequestCode(number)
    except ValueError:
        raise OlrPgError(
            Code.OPERATION_UNKNOWN, f"no request has operation code {number}", code=number
        ) from None
    if code is RequestCode.TABLE_LIST:
        return TableList(_query(body))
    if code in _SCN_REQUESTS:
        return _SCN_REQUESTS[code](_unpack(order, "Q", body, what=code.name)[0])
    _unpack(order, "", body, what=code.name)
    return _BARE_REQUESTS[code]()


def encode_answer(answer: Answer, order: ByteOrder) -> bytes:
    """Encode `answer` as a frame.

    Raises:
        OlrPgError: 4002, a number does not fit its field; 4006, an element over 4 GiB.
    """
    match answer:
        case Ok():
            code, body = AnswerCode.OK, b""
        case NoMore():
            code, body = AnswerCode.NO_MORE, b""
        case Error(code=number, text=text):
            code, body = AnswerCode.ERROR, _pack(order, "I", number, what="Error") + text.encode()
        case Data(element=element):
            code, body = AnswerCode.DATA, element
        case Status(state=state):
            code, body = AnswerCode.STATUS, _pack(order, "H", state, what="Status")
        case SavedScn(scn=scn):
            fields = (0, 0) if scn is None else (1, scn)
            code, body = AnswerCode.SAVED_SCN, _pack(order, "HQ", *fields, what="SavedSCN")
    return encode_frame(struct.pack(order.prefix + "H", code) + body, order)


def decode_answer(message: Buffer, order: ByteOrder) -> Answer:
    """Decode the answer in `message` (operation code and body, at least 2 bytes).

    Raises:
        OlrPgError: 4003 unknown operation code; 4002 an invalid body.
    """
    number, body = _split(message, order)
    match number:
        case AnswerCode.OK:
            _unpack(order, "", body, what="OK")
            return Ok()
        case AnswerCode.NO_MORE:
            _unpack(order, "", body, what="NO_MORE")
            return NoMore()
        case AnswerCode.ERROR:
            (code,) = _unpack(order, "I", body[:4], what="ERROR")
            return Error(code, _text(body[4:], what="ErrorString"))
        case AnswerCode.DATA:
            return _data(body)
        case AnswerCode.STATUS:
            return _status(*_unpack(order, "H", body, what="STATUS"))
        case AnswerCode.SAVED_SCN:
            return _saved(*_unpack(order, "HQ", body, what="SAVED_SCN"))
        case _:
            raise OlrPgError(
                Code.OPERATION_UNKNOWN, f"no answer has operation code {number}", code=number
            )


def _query(body: bytes) -> str:
    sql = _text(body, what="SQLString")
    if not sql.strip():
        raise OlrPgError(Code.MESSAGE_MALFORMED, "TableList has an empty query", field="SQLString")
    return sql


def _data(body: bytes) -> Data:
    if not body:
        raise OlrPgError(Code.MESSAGE_MALFORMED, "Data contains no element", field="element")
    return Data(body)


def _status(number: int) -> Status:
    try:
        return Status(State(number))
    except ValueError:
        raise OlrPgError(
            Code.MESSAGE_MALFORMED, f"there is no status {number}", field="Status"
        ) from None


def _saved(flag: int, scn: int) -> SavedScn:
    if flag > 1:
        raise OlrPgError(
            Code.MESSAGE_MALFORMED, f"SavedSCN has flag {flag}, not 0 or 1", field="Flag"
        )
    return SavedScn(scn if flag else None)


def _split(message: Buffer, order: ByteOrder) -> tuple[int, bytes]:
    if len(message) < CODE_BYTES:
        raise OlrPgError(
            Code.MESSAGE_MALFORMED, f"{len(message)} bytes are too few for an operation code"
        )
    number: int = struct.unpack_from(order.prefix + "H", message)[0]
    return number, bytes(message[CODE_BYTES:])


def _pack(order: ByteOrder, fields: str, *values: int, what: str) -> bytes:
    try:
        return struct.pack(order.prefix + fields, *values)
    except struct.error as error:
        raise OlrPgError(Code.MESSAGE_MALFORMED, f"{what}: {error}") from None


def _unpack(order: ByteOrder, fields: str, body: bytes, *, what: str) -> tuple[int, ...]:
    layout = struct.Struct(order.prefix + fields)
    if len(body) != layout.size:
        raise OlrPgError(
            Code.MESSAGE_MALFORMED,
            f"{what} has a body of {len(body)} bytes instead of {layout.size}",
        )
    return layout.unpack(body)


def _text(body: bytes, *, what: str) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise OlrPgError(
            Code.MESSAGE_MALFORMED,
            f"{what} is not UTF-8: {error.reason}",
            field=what,
            offset=error.start,
        ) from None


_FRAME: Final = 6
_DATA: Final = int(AnswerCode.DATA)


def message_offsets(blob: npt.NDArray[np.uint8], big_endian: bool) -> npt.NDArray[np.int64]:
    """Return the offset of each of the n framed messages in `blob`, and the end of the last one;
    shape (n + 1).

    Raises:
        OlrPgError: 4001, `blob` is not a sequence of whole messages.
    """
    count, end = message_run(blob, 0, big_endian, blob.size, blob.size)
    if end != blob.size:
        raise OlrPgError(Code.MESSAGE_SIZE, "the sizes do not add up to the whole", offset=int(end))
    offsets = np.empty(count + 1, np.int64)
    fill_offsets(blob, big_endian, offsets)
    return offsets


@kernel
def message_run(
    blob: Any, start: int, big: bool, messages_max: int, bytes_max: int
) -> tuple[int, int]:
    """Find the complete messages from `start` on. Returns (number of messages, end of the last
    one).

    The run ends after `messages_max` messages, before a message that would exceed `bytes_max` in
    total, and before an incomplete or malformed message.
    """
    count, at = 0, start
    while count < messages_max and at + _FRAME <= blob.size:
        size = get32(blob, at, big)
        end = at + 4 + size
        if size < 2 or end > blob.size or end - start > bytes_max:
            break
        at = end
        count += 1
    return count, at


@kernel
def fill_offsets(blob: Any, big: bool, offsets: Any) -> None:
    """Fill `offsets`, of shape (n + 1), with the offsets of the first n messages and the end of the
    last one.
    """
    at = 0
    for number in range(offsets.size):
        offsets[number] = at
        if number < offsets.size - 1:
            at += 4 + get32(blob, at, big)


@kernel
def data_run(data: Any, big: bool, messages_max: int, size_max: int) -> tuple[int, int]:
    """Find the complete Data messages at the beginning of `data`. Returns (number of messages, end
    of the last one).

    The run ends after `messages_max` messages, before an incomplete message, before a message of
    another kind, and before a MessageSize that is not in 3..`size_max`.
    """
    count, at = 0, 0
    while count < messages_max and at + _FRAME <= data.size:
        size = get32(data, at, big)
        code = int(data[at + 5 if big else at + 4]) | int(data[at + 4 if big else at + 5]) << 8
        if code != _DATA or size <= 2 or size > size_max or at + 4 + size > data.size:
            break
        at += 4 + size
        count += 1
    return count, at


@inlined_kernel
def get32(data: Any, at: int, big: bool) -> int:
    """Read an integer of 32 bits."""
    # With unsigned indices, Numba omits the check for negative indices, and the four loads become
    # one.
    place, number = np.uint64(at), 0
    if big:
        for i in range(4):
            number |= int(data[place + np.uint64(i)]) << (24 - 8 * i)
    else:
        for i in range(4):
            number |= int(data[place + np.uint64(i)]) << 8 * i
    return number
