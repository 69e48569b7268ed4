"""Work is repeated where the connection to the source was lost, and only there."""

from __future__ import annotations

import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.load.retry import ATTEMPTS, retried


def test_a_lost_connection_is_tried_again() -> None:
    calls = []

    def work() -> str:
        calls.append(1)
        if len(calls) < 2:
            raise OlrPgError(Code.ORACLE_CONNECTION_LOST, "gone")
        return "done"

    assert retried(work) == "done"
    assert len(calls) == 2


def test_it_ends_with_the_error_of_the_last_attempt() -> None:
    calls = []

    def work() -> None:
        calls.append(1)
        raise OlrPgError(Code.ORACLE_UNREACHABLE, f"attempt {len(calls)}")

    with pytest.raises(OlrPgError, match=f"attempt {ATTEMPTS}"):
        retried(work)
    assert len(calls) == ATTEMPTS


def test_another_error_is_not_tried_again() -> None:
    calls = []

    def work() -> None:
        calls.append(1)
        raise OlrPgError(Code.ORACLE_PRIVILEGE, "no")

    with pytest.raises(OlrPgError, match="no"):
        retried(work)
    assert len(calls) == 1
