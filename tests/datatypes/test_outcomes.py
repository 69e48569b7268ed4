"""Outcomes of kernels become errors that show the value."""

from __future__ import annotations

import pytest

from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.outcomes import OUTCOME_CODES, Outcome, check, malformed, printed
from olr_pg.errors import Code, OlrPgError


def test_the_end_is_no_error() -> None:
    check(-1, Outcome.OK, column_of([b"x"]), "NUMBER to bigint")


@pytest.mark.parametrize("outcome", OUTCOME_CODES)
def test_a_row_that_stopped_the_kernel_is_shown(outcome: Outcome) -> None:
    with pytest.raises(OlrPgError) as caught:
        check(1, outcome, column_of([b"x", b"\xc1\x02"]), "NUMBER to bigint")
    assert caught.value.code == OUTCOME_CODES[outcome][0]
    assert caught.value.detail.startswith("NUMBER to bigint: ")
    assert caught.value.detail.endswith(": c102")


def test_many_bytes_are_cut() -> None:
    assert printed(b"\x01\x02") == "0102"
    assert printed(bytes(100)) == "00" * 64 + "… (100 bytes)"
    assert malformed("DATE", b"").code == Code.VALUE_MALFORMED
    assert "(no bytes)" in malformed("DATE", b"").detail
