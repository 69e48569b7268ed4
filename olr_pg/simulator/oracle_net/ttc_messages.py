"""The messages of the two-task protocol that the stand-in and the driver exchange.

The fields of a message are those that python-oracledb's thin mode writes and reads
(``impl/thin/messages``), with the field version of Oracle 19c.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.simulator.oracle_net.values import LOBS, NATIONAL, BindType, TtcWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from olr_pg.simulator.oracle_net.values import ResultColumn, TtcReader

FIELD_VERSION_19: Final = 13
NO_DATA_FOUND: Final = 1403
CHARSET_UTF8: Final = 873
CHARSET_UTF16: Final = 2000

_COMPILE_CAPS: Final = 46
_CAP_FIELD_VERSION: Final = 7
_RUNTIME_CAPS: Final = 12
_RUNTIME_TTC: Final = 6
_RUNTIME_32K: Final = 4


class Message(IntEnum):
    """The first byte of a message."""

    PROTOCOL = 1
    DATA_TYPES = 2
    FUNCTION = 3
    ERROR = 4
    ROW_HEADER = 6
    ROW_DATA = 7
    PARAMETER = 8
    STATUS = 9
    IO_VECTOR = 11
    LOB_DATA = 14
    DESCRIBE = 16
    PIGGYBACK = 17


class Function(IntEnum):
    """The request that a function message makes."""

    REEXECUTE = 4
    FETCH = 5
    LOGOFF = 9
    COMMIT = 14
    ROLLBACK = 15
    REEXECUTE_AND_FETCH = 78
    EXECUTE = 94
    LOB = 96
    CLOSE_CURSORS = 105
    AUTH_PHASE_TWO = 115
    AUTH_PHASE_ONE = 118
    PING = 147
    SET_SCHEMA = 152


class AuthMode(IntEnum):
    """The administrative privileges with which a client can ask to log in: a bit each."""

    SYSDBA = 0x20
    SYSOPER = 0x40
    SYSBACKUP = 0x01000000
    SYSDG = 0x02000000


class LobOperation(IntEnum):
    """The operation that a LOB message requests."""

    LENGTH = 0x0001
    READ = 0x0002
    OPEN = 0x0100
    CLOSE = 0x0200
    IS_OPEN = 0x0400


class ExecuteOption(IntEnum):
    """Bits of an execute's options."""

    PARSE = 0x01
    DEFINE = 0x10
    EXECUTE = 0x20
    FETCH = 0x40
    COMMIT = 0x100


BIND_IN, BIND_OUT = 32, 16
"""Directions of a bind."""

LONG_BIND: Final = 32_767
"""The values of binds that may be longer than this follow the other values of their row."""


@dataclass(frozen=True, slots=True)
class ExecuteRequest:
    """An execute as the driver sends it.

    Attributes:
        cursor: number of the cursor; 0 for a new one.
        sql: the statement; None if the cursor already has it.
        rows: maximum number of rows in the answer.
        defines: the types that the driver wants for the columns; None for their own types.
        binds: the bytes of each row of binds, by position; None is NULL.
        returned: the positions of the binds that receive the values of RETURNING.
    """

    options: int
    cursor: int
    sql: str | None
    rows: int
    defines: tuple[BindType, ...] | None
    bind_types: tuple[BindType, ...]
    binds: list[list[bytes | None]]
    returned: tuple[int, ...] = ()


class LobRequest(NamedTuple):
    """A LOB operation; `offset` counts from 1, in bytes or characters."""

    operation: int
    locator: bytes
    offset: int
    amount: int


def read_protocol(reader: TtcReader) -> None:
    """Skip the client's description of itself, after the message code."""
    while reader.byte():
        pass
    while reader.byte():
        pass


def read_data_types(reader: TtcReader) -> None:
    """Skip the client's types."""
    reader.raw(5)
    reader.bytes_()
    reader.bytes_()
    while reader.u16():
        reader.raw(6)


def read_auth(reader: TtcReader) -> tuple[str, frozenset[AuthMode], dict[str, str]]:
    """Read the user, the administrative privileges and the key/value pairs of one authentication
    phase.
    """
    has_user = reader.byte()
    reader.skip("i")
    bits = reader.integer()
    reader.skip("b")
    pairs = reader.integer()
    reader.raw(2)
    user = (reader.bytes_() or b"").decode() if has_user else ""
    values: dict[str, str] = {}
    for _ in range(pairs):
        key = reader.sized_bytes().decode()
        values[key] = reader.sized_bytes().decode()
        reader.skip("i")
    return user, frozenset(mode for mode in AuthMode if bits & mode), values


def read_execute(
    reader: TtcReader, returned_by: Callable[[str], tuple[int, ...]], known: Mapping[int, str]
) -> ExecuteRequest:
    """Read a full execute.

    Args:
        returned_by: returns the positions of a statement's RETURNING binds, which have no values.
        known: the statements of open cursors, for requests without a statement.
    """
    options, cursor = reader.integer(), reader.integer()
    has_sql = reader.byte()
    reader.skip("ibibbi")
    rows = reader.integer()
    reader.skip("ib")
    bind_count = reader.integer()
    reader.skip("bbbbbb")
    define_count = reader.integer()
    reader.skip("ibbbibiibib")
    reader.skip("bibibbi")  # the statement's signature and id
    sql = (reader.bytes_() or b"").decode() if has_sql else None
    reader.skip("i")
    executions = reader.integer()
    reader.skip("i" * 5)
    if reader.integer():  # For a query, the number is the maximum of rows in the answer.
        executions = 1
    reader.skip("i" * 5)
    defines = None
    types: tuple[BindType, ...] = ()
    binds: list[list[bytes | None]] = []
    returned = returned_by(known.get(cursor, "") if sql is None else sql) if bind_count else ()
    if options & ExecuteOption.DEFINE:
        defines = tuple(_read_type(reader) for _ in range(define_count))
    elif bind_count:
        types = tuple(_read_type(reader) for _ in range(bind_count))
        binds = read_binds(reader, types, max(executions, 1), returned)
    return ExecuteRequest(options, cursor, sql, rows, defines, types, binds, returned)


def read_reexecute(reader: TtcReader) -> tuple[int, int, bool]:
    """Read a short execute: cursor, rows or executions, whether it commits. The binds are not read
    yet.
    """
    cursor, rows = reader.integer(), reader.integer()
    reader.skip("i")
    return cursor, rows, bool(reader.integer() & 1)


def read_binds(
    reader: TtcReader, types: Sequence[BindType], executions: int, returned: Sequence[int] = ()
) -> list[list[bytes | None]]:
    """Read rows of bind values; the binds of RETURNING have no values."""
    given = [at for at in range(len(types)) if at not in returned]
    order = sorted(given, key=lambda at: types[at].size > LONG_BIND)
    rows: list[list[bytes | None]] = []
    for _ in range(executions):
        row: list[bytes | None] = [None] * len(types)
        if given:
            reader.byte()
        for at in order:
            if types[at].code in LOBS:
                reader.integer()  # the length of the locator
            row[at] = reader.bytes_()
        rows.append(row)
    return rows


def read_close_cursors(reader: TtcReader) -> list[int]:
    """Read the numbers of the cursors that the client closes."""
    reader.byte()
    return [reader.integer() for _ in range(reader.integer())]


def read_lob(reader: TtcReader) -> LobRequest:
    """Read a LOB operation."""
    reader.skip("b")
    size = reader.integer()
    reader.skip("biiibbb")
    operation = reader.integer()
    reader.skip("bb")
    offset = reader.integer()
    reader.skip("i")
    has_amount = reader.byte()
    reader.raw(6)
    locator = reader.raw(size)
    return LobRequest(operation, locator, offset, reader.integer() if has_amount else 0)


def _read_type(reader: TtcReader) -> BindType:
    code = reader.byte()
    reader.skip("bbb")
    size = reader.integer()
    reader.skip("ii")
    reader.sized_bytes()
    reader.skip("ii")
    form = reader.byte()
    reader.skip("ii")
    return BindType(code, form, size)


def write_protocol(out: TtcWriter) -> None:
    """Write the server's banner and capabilities."""
    compile_caps, runtime_caps = bytearray(_COMPILE_CAPS), bytearray(_RUNTIME_CAPS)
    compile_caps[_CAP_FIELD_VERSION] = FIELD_VERSION_19
    runtime_caps[_RUNTIME_TTC] = _RUNTIME_32K
    # The national character set follows two empty lists (bytes 5 and 6).
    conversions = bytes(9) + CHARSET_UTF16.to_bytes(2, "big") + bytes(1)
    out.byte(Message.PROTOCOL, 6, 0).raw(b"olr_pg stand-in\0")
    out.raw(CHARSET_UTF8.to_bytes(2, "little")).byte(1).raw(bytes(2))
    out.u16(len(conversions)).raw(conversions)
    out.bytes_(bytes(compile_caps)).bytes_(bytes(runtime_caps))


def write_data_types(out: TtcWriter) -> None:
    """Write that the server accepts all types of the client."""
    out.byte(Message.DATA_TYPES).u16(0)


def write_pairs(out: TtcWriter, pairs: Sequence[tuple[str, str, int]]) -> None:
    """Write the key/value pairs of an authentication phase."""
    out.byte(Message.PARAMETER).integer(len(pairs))
    for key, value, flags in pairs:
        out.sized_text(key).sized_text(value).integer(flags)


def write_status(out: TtcWriter) -> None:
    """Write that the call succeeded."""
    out.byte(Message.STATUS).integer(0, 0)


def write_end(
    out: TtcWriter,
    code: int = 0,
    text: str = "",
    *,
    cursor: int = 0,
    rows: int = 0,
    offset: int = 0,
) -> None:
    """Write the end of a call; with an ORA error if `code` is not 0."""
    out.raw(_end(code, text, cursor, rows, offset))


@lru_cache(4096)  # most calls end in the same way
def _end(code: int, text: str, cursor: int, rows: int, offset: int) -> bytes:
    out = TtcWriter()
    out.byte(Message.ERROR).integer(0, 0, rows, code, 0, 0, cursor, offset)
    out.byte(0, 0, 0, 0, 0, 0)
    # No rowid, no operating system error, no batch errors.
    out.integer(0, 0).byte(0).integer(0, 0)
    out.integer(0).byte(0, 0).integer(0, 0, 0, 0, 0, 0)
    out.integer(code, rows)
    if code:
        out.bytes_(text.encode())
    return bytes(out.data)


def write_describe(out: TtcWriter, columns: Sequence[ResultColumn]) -> None:
    """Write the description of the rows."""
    out.byte(Message.DESCRIBE).bytes_(None).integer(0, len(columns))
    if columns:
        out.byte(0)
    for number, column in enumerate(columns, 1):
        out.raw(_described(number, column))
    out.sized_bytes(b"").integer(0, 0, 0, 0).sized_bytes(b"")


@lru_cache(4096)  # clients ask for the same columns again and again
def _described(number: int, column: ResultColumn) -> bytes:
    """Return the description of one column."""
    out, kind = TtcWriter(), column.kind
    out.byte(kind.code, 0, kind.precision, kind.scale & 0xFF).integer(kind.size, 0, 0)
    charset = CHARSET_UTF16 if kind.form == NATIONAL else CHARSET_UTF8 if kind.form else 0
    out.sized_bytes(b"").integer(0, charset).byte(kind.form)
    out.integer(kind.size, 0).byte(1, min(len(column.name), 30)).sized_text(column.name)
    out.sized_bytes(b"").sized_bytes(b"").integer(number, 0)
    return bytes(out.data)


def write_bind_directions(out: TtcWriter, count: int, returned: Sequence[int]) -> None:
    """Write the direction of each bind of a statement."""
    out.byte(Message.IO_VECTOR, 0).integer(count % 256, count // 256, 0, 0, 0, 0)
    out.byte(*(BIND_OUT if at in returned else BIND_IN for at in range(count)))


def write_row_header(out: TtcWriter) -> None:
    """Write the header that announces a row."""
    out.byte(Message.ROW_HEADER, 0).integer(0, 0, 0, 0, 0).sized_bytes(b"")
