"""What DBMS_LOB makes of values, by the examples of its documentation."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.row_changes import LOB_CALLS
from olr_pg.simulator.sql.typed_values import Blob, Clob


@pytest.mark.parametrize(
    ("call", "lob", "arguments", "after"),
    [
        ("WRITE", Clob("abcdef"), (2, 3, "XY"), "abXYef"),
        ("WRITE", Clob("abc"), (1, 3, "XYZ"), "abX"),
        ("WRITE", Clob("ab"), (2, 5, "XY"), "ab  XY"),
        ("WRITE", Blob(b"\1\2"), (1, 4, b"\7"), b"\1\2\0\7"),
        ("WRITEAPPEND", Clob("ab"), (2, "cde"), "abcd"),
        ("APPEND", Clob("ab"), (Clob("cd"),), "abcd"),
        ("COPY", Clob("abcdef"), (Clob("12345"), 2, 3, 4), "ab45ef"),
        ("COPY", Clob("abc"), (Clob("12345"), 2), "12c"),
        ("TRIM", Clob("abcdef"), (2,), "ab"),
        ("TRIM", Clob("ab"), (2,), "ab"),
        ("ERASE", Clob("abcdef"), (2, 3), "ab  ef"),
        ("ERASE", Blob(b"\1\2\3"), (9, 2), b"\1\0\0"),
        ("WRITE", Clob("a😀b"), (1, 4, "X"), "a😀X"),
    ],
)
def test_what_becomes_of_a_value(
    call: str, lob: Clob | Blob, arguments: tuple[Any, ...], after: str | bytes
) -> None:
    given = [Decimal(one) if isinstance(one, int) else one for one in arguments]
    assert LOB_CALLS[f"DBMS_LOB.{call}"](lob, given).value == after


@pytest.mark.parametrize(
    ("call", "arguments", "code"),
    [
        ("TRIM", (9,), "22926"),
        ("WRITE", (9, 1, "ab"), "21560"),
        ("WRITE", (1, 0, "ab"), "21560"),
    ],
)
def test_arguments_out_of_range(call: str, arguments: tuple[Any, ...], code: str) -> None:
    given = [Decimal(one) if isinstance(one, int) else one for one in arguments]
    with pytest.raises(OraError, match=f"ORA-{code}"):
        LOB_CALLS[f"DBMS_LOB.{call}"](Clob("abc"), given)
