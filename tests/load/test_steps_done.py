"""The steps of a cut-over in the target."""

from __future__ import annotations

from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.load.steps_done import (
    DONE,
    FAILED,
    RUNNING,
    SKIPPED,
    forget_steps,
    note_step,
    read_steps,
)


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
