"""The steps of a cut-over in the target."""

from __future__ import annotations

import pytest

from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.applier.target.way_back_lives import Life, begin_life, end_lives
from olr_pg.errors import OlrPgError
from olr_pg.load.cutover_steps import (
    DONE,
    FAILED,
    RUNNING,
    SKIPPED,
    TAKEN_BACK,
    begin_again,
    check_no_cutover,
    forget_steps,
    note_step,
    read_steps,
)


def test_rows_are_not_replaced_while_applications_may_write(postgres_database: str) -> None:
    with connect(postgres_database) as connection:
        ensure_ledger(connection)
        note_step(connection, "sub", "report", FAILED, {})
        check_no_cutover(connection, "sub")
        note_step(connection, "sub", "report", DONE, {})
        with pytest.raises(OlrPgError, match=r"OLR-05171.*cut-over"):
            check_no_cutover(connection, "sub")
        check_no_cutover(connection, "other")
        # `olr-pg fallback begin` needs no cut-over.
        begin_life(connection, "other", Life("", "WAY#1"), exists=False)
        with pytest.raises(OlrPgError, match=r"OLR-05171.*way back"):
            check_no_cutover(connection, "other")
        note_step(connection, "other", TAKEN_BACK, DONE, {})  # `olr-pg fallback cutover`
        check_no_cutover(connection, "other")
        begin_again(connection, "other")
        with pytest.raises(OlrPgError, match=r"OLR-05171.*way back"):
            check_no_cutover(connection, "other")
        end_lives(connection, "other", "", 9)
        check_no_cutover(connection, "other")


def test_the_state_of_a_step_is_the_last_that_was_noted(postgres_database: str) -> None:
    with connect(postgres_database) as connection:
        ensure_ledger(connection)
        for state in (RUNNING, FAILED, RUNNING):
            note_step(connection, "sub", "quiet", state, {"scn": 5})
        note_step(connection, "other", "archived", DONE, {})
        step = read_steps(connection, "sub")["quiet"]
        assert (step.state, step.detail, step.finished_at) == (RUNNING, {"scn": 5}, None)
        assert not step.is_over
        note_step(connection, "sub", "quiet", DONE, {"scn": 6})
        done = read_steps(connection, "sub")["quiet"]
        assert done.is_over
        assert done.finished_at is not None
        assert done.started_at == step.started_at
        note_step(connection, "sub", "verified", SKIPPED, {})
        assert read_steps(connection, "sub")["verified"].is_over
        forget_steps(connection, "sub")
        assert read_steps(connection, "sub") == {}
        assert list(read_steps(connection, "other")) == ["archived"]
