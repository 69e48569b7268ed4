from __future__ import annotations

import pytest

from olr_pg.datatypes.mapping import OracleType
from olr_pg.simulator.oracle_net.ttc import TtcReader, TtcWriter
from olr_pg.simulator.oracle_net.values import (
    NATIONAL,
    NUMBER_KIND,
    UNICODE,
    BindType,
    LobValue,
    ResultType,
    Wanted,
    decode_bind,
    kind_of,
    lob_of,
    write_value,
)


@pytest.mark.parametrize(
    ("values", "lob", "kind"),
    [
        ([None, 7], False, NUMBER_KIND),
        ([None, b"abc", b"x"], False, ResultType(OracleType.RAW, 3)),
        (["été", "x"], False, ResultType(OracleType.VARCHAR2, 5, 1)),
        (["text"], True, ResultType(OracleType.CLOB, 4000, 1)),
        ([None], True, ResultType(OracleType.BLOB, 4000)),
    ],
)
def test_a_column_has_the_type_of_its_values(
    values: list[object], kind: ResultType, *, lob: bool
) -> None:
    assert kind_of(values, lob=lob) == kind


def test_binds_are_decoded_by_their_type() -> None:
    assert decode_bind(BindType(OracleType.NUMBER, 0, 22), b"\xc1\x02", UNICODE, []) == 1
    assert (
        decode_bind(
            BindType(OracleType.VARCHAR2, NATIONAL, 40), "ü".encode("utf-16-be"), UNICODE, []
        )
        == "ü"
    )
    assert decode_bind(BindType(OracleType.RAW, 0, 40), b"\1", UNICODE, []) == b"\1"
    assert decode_bind(BindType(OracleType.VARCHAR2, 1, 40), None, UNICODE, []) is None


@pytest.mark.parametrize(
    ("number", "stored"),
    [(1.0, "bff0000000000000"), (-1.0, "400fffffffffffff"), (0.0, "8000000000000000")],
)
def test_binary_doubles_are_in_the_form_that_orders_as_bytes_do(number: float, stored: str) -> None:
    out = TtcWriter()
    write_value(out, number, Wanted(OracleType.BINARY_DOUBLE), [], UNICODE)
    written = TtcReader(bytes(out.data)).bytes_()
    assert written is not None
    assert written.hex() == stored


def test_a_locator_leads_to_its_lob() -> None:
    out, lobs = TtcWriter(), [LobValue(b"other", 1)]
    write_value(out, "text", Wanted(OracleType.CLOB), lobs, UNICODE)
    reader = TtcReader(bytes(out.data))
    assert [reader.integer() for _ in range(2)] == [40, 4]
    reader.integer()
    locator = reader.bytes_()
    assert locator is not None
    found = lob_of(locator, lobs)
    assert found.piece(2, 2).decode("utf-16-be") == "ex"
