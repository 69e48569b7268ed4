"""Converts values of SQL from and to the driver's form.

`SqlClient` executes SQL from the driver: it decodes the binds, and encodes the results.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from olr_pg.datatypes.charsets import charset
from olr_pg.datatypes.mapping import OracleType
from olr_pg.datatypes.number import decode_number
from olr_pg.simulator.fields import cells
from olr_pg.simulator.fields.cells import Moment
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net import ttc_messages as msg
from olr_pg.simulator.oracle_net.catalogue import QueryResult
from olr_pg.simulator.oracle_net.values import (
    NATIONAL,
    NUMBER_KIND,
    ResultColumn,
    ResultType,
    ServerText,
    Wanted,
    float_kind,
    write_value,
)
from olr_pg.simulator.sql.parsing import parse
from olr_pg.simulator.sql.sql_session import SqlSession
from olr_pg.simulator.sql.typed_values import (
    SECOND,
    Blob,
    Clob,
    DateValue,
    Duration,
    Fixed,
    Months,
    Single,
    Timestamp,
    Value,
    Zoned,
    moment_of,
    nanoseconds_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.oracle_net.values import BindType, TtcWriter
    from olr_pg.simulator.sql.database import SqlDatabase
    from olr_pg.simulator.sql.sql_columns import Declared
    from olr_pg.simulator.sql.statements import Outcome

_MINUTE: Final = 60 * SECOND
_TEXT_MAX: Final = 4000
_BINARY_INTEGER: Final = 3
_UTF16: Final = "utf-16-be"


def decode_value(kind: BindType, raw: bytes | None, text: ServerText) -> Value:
    """Decode a bind's value. `text` are the conversions of text of the database.

    Raises:
        OraError: ORA-03115, the type is not supported.
    """
    if not raw:
        return None
    code = kind.code
    if code in (OracleType.NUMBER, _BINARY_INTEGER):
        return Decimal(decode_number(raw))
    if code in (OracleType.VARCHAR2, OracleType.CHAR, OracleType.LONG):
        found = raw.decode(_UTF16) if kind.form == NATIONAL else text.received(raw)
        return Fixed(found) if code == OracleType.CHAR else found
    if code in (OracleType.RAW, OracleType.LONG_RAW):
        return raw
    if code in (OracleType.DATE, OracleType.TIMESTAMP, OracleType.TIMESTAMP_TZ):
        return _decode_moment(code, raw)
    if code in (OracleType.BINARY_DOUBLE, OracleType.BINARY_FLOAT):
        return _decode_float(raw)
    if code == OracleType.INTERVAL_DS:
        return _decode_duration(raw)
    if code == OracleType.INTERVAL_YM:
        years = int.from_bytes(raw[:4], "big") - (1 << 31)
        return Months(years * 12 + raw[4] - 60)
    raise OraError(3115, f"unsupported network datatype or representation: {code} of a bind")


def _decode_moment(code: int, raw: bytes) -> Value:
    century, year, month, day, hour, minute, second = raw[:7]
    fraction = int.from_bytes(raw[7:11], "big") if len(raw) >= 11 else 0
    number = (century - 100) * 100 + year - 100
    at = nanoseconds_of(Moment(number, month, day, hour - 1, minute - 1, second - 1, fraction))
    if code == OracleType.DATE:
        return DateValue(at // SECOND)
    if code == OracleType.TIMESTAMP or len(raw) < 13:
        return Timestamp(at)
    return Zoned(at, (raw[11] - 20) * 60 + raw[12] - 60)


def _decode_float(raw: bytes) -> Value:
    bits = (
        bytes(byte ^ 0xFF for byte in raw) if raw[0] < 0x80 else bytes((raw[0] & 0x7F,)) + raw[1:]
    )
    if len(raw) == 4:
        return Single(struct.unpack(">f", bits)[0])
    return float(struct.unpack(">d", bits)[0])


def _decode_duration(raw: bytes) -> Value:
    days = int.from_bytes(raw[:4], "big") - (1 << 31)
    hours, minutes, seconds = (byte - 60 for byte in raw[4:7])
    nanoseconds = int.from_bytes(raw[7:11], "big") - (1 << 31)
    whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return Duration(whole * SECOND + nanoseconds)


def wire_value(value: Value) -> object:
    """Return a value in the form of a result row: bytes, a text or a number."""
    if isinstance(value, DateValue):
        return cells.date(moment_of(value.seconds * SECOND)).raw
    if isinstance(value, Timestamp):
        return cells.timestamp(moment_of(value.nanoseconds)).raw
    if isinstance(value, Zoned):
        local = moment_of(value.nanoseconds + value.offset * _MINUTE)
        return cells.timestamp_tz(moment_of(value.nanoseconds), local, value.offset).raw
    if isinstance(value, Months):
        return cells.interval_year_to_month(value.months).raw
    if isinstance(value, Duration):
        return cells.interval_day_to_second(value.nanoseconds).raw
    return value


def result_column(name: str, declared: Declared | None, values: Sequence[Value]) -> ResultColumn:
    """Return the description of a result column."""
    if declared is not None and declared.kind in ("NVARCHAR2", "NCHAR", "NCLOB"):
        code = {"NCHAR": OracleType.CHAR, "NCLOB": OracleType.CLOB}.get(
            declared.kind, OracleType.VARCHAR2
        )
        return ResultColumn(name, ResultType(code, _TEXT_MAX, NATIONAL))
    if declared is not None and declared.kind == "NUMBER":
        numbers = (*declared.numbers, 0)[:2] if declared.numbers else (0, -127)
        kind = ResultType(OracleType.NUMBER, 22, precision=numbers[0], scale=numbers[1])
        return ResultColumn(name, kind)
    if declared is not None and declared.kind in _KINDS:
        return ResultColumn(name, _KINDS[declared.kind])
    first = next((one for one in values if one is not None), None)
    return ResultColumn(name, _kind_of(first))


_TEXT: Final = ResultType(OracleType.VARCHAR2, _TEXT_MAX, 1)
_KINDS: Final[dict[str, ResultType]] = {
    "VARCHAR2": _TEXT,
    "CHAR": ResultType(OracleType.CHAR, 2000, 1),
    "RAW": ResultType(OracleType.RAW, _TEXT_MAX),
    "FLOAT": ResultType(OracleType.NUMBER, 22, precision=126, scale=-127),
    "DATE": ResultType(OracleType.DATE, 7),
    "TIMESTAMP": ResultType(OracleType.TIMESTAMP, 11, scale=9),
    "TIMESTAMP WITH TIME ZONE": ResultType(OracleType.TIMESTAMP_TZ, 13, scale=9),
    "TIMESTAMP WITH LOCAL TIME ZONE": ResultType(OracleType.TIMESTAMP_LTZ, 11, scale=9),
    "INTERVAL YEAR TO MONTH": ResultType(OracleType.INTERVAL_YM, 5),
    "INTERVAL DAY TO SECOND": ResultType(OracleType.INTERVAL_DS, 11),
    "BINARY_FLOAT": float_kind(OracleType.BINARY_FLOAT),
    "BINARY_DOUBLE": float_kind(OracleType.BINARY_DOUBLE),
    "CLOB": ResultType(OracleType.CLOB, _TEXT_MAX, 1),
    "BLOB": ResultType(OracleType.BLOB, _TEXT_MAX),
}


def _kind_of(value: Value) -> ResultType:
    kinds = (
        (Clob, "CLOB"), (Blob, "BLOB"), (Fixed, "CHAR"), (str, "VARCHAR2"), (bytes, "RAW"),
        (Single, "BINARY_FLOAT"), (float, "BINARY_DOUBLE"), (DateValue, "DATE"),
        (Timestamp, "TIMESTAMP"), (Zoned, "TIMESTAMP WITH TIME ZONE"),
        (Months, "INTERVAL YEAR TO MONTH"), (Duration, "INTERVAL DAY TO SECOND"),
    )  # fmt: skip
    if isinstance(value, Decimal):
        return NUMBER_KIND
    return next((_KINDS[name] for kind, name in kinds if isinstance(value, kind)), _TEXT)


@lru_cache
def returned_places(sql: str) -> tuple[int, ...]:
    """Return the positions of the binds after RETURNING … INTO; none if the statement cannot be
    parsed.
    """
    if "RETURN" not in sql.upper():
        return ()
    try:
        return parse(sql).into
    except OraError:
        return ()


class SqlClient:
    """A session that executes SQL from the driver."""

    def __init__(self, database: SqlDatabase) -> None:
        self.session = SqlSession(database)
        self.text = ServerText(charset(database.shape.charset))

    def close(self) -> None:
        """End the session."""
        self.session.close()

    def run(
        self, sql: str, types: Sequence[BindType], rows: Sequence[Sequence[bytes | None]]
    ) -> list[Outcome]:
        """Execute a statement for each row of binds.

        Returns:
            With RETURNING, one outcome for each row of binds; otherwise one outcome for all rows.
        """
        decoded = [
            [decode_value(*one, self.text) for one in zip(types, row, strict=True)] for row in rows
        ]
        if returned_places(sql):
            return [self.session.execute(sql, binds) for binds in decoded]
        return [self.session.execute_many(sql, decoded or [[]])]

    @staticmethod
    def result(outcome: Outcome) -> QueryResult:
        """Return the rows of a query in the form in which they are sent."""
        columns = tuple(
            result_column(name, declared, [row[at] for row in outcome.rows])
            for at, (name, declared) in enumerate(
                zip(outcome.columns, outcome.declared, strict=True)
            )
        )
        return QueryResult(columns, [tuple(map(wire_value, row)) for row in outcome.rows])

    def write_returned(
        self,
        out: TtcWriter,
        outcomes: Sequence[Outcome],
        types: Sequence[BindType],
        places: Sequence[int],
    ) -> None:
        """Write the RETURNING values of all rows that each execution has changed."""
        msg.write_bind_directions(out, len(types), places)
        for outcome in outcomes:
            out.byte(msg.Message.ROW_DATA)
            for number, place in enumerate(places):
                kind = types[place]
                out.integer(len(outcome.returned))
                for row in outcome.returned:
                    is_text = kind.code == OracleType.VARCHAR2
                    value = text_of(row[number]) if is_text else row[number]
                    write_value(out, wire_value(value), Wanted(kind.code, kind.form), [], self.text)
                    out.integer(0)
