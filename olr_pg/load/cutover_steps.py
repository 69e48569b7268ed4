"""Stores the steps of a cut-over in the target, so that they survive the loss of this host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg.types.json import Jsonb

from olr_pg.applier.target.connection import storable
from olr_pg.applier.target.way_back_lives import is_open
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from datetime import datetime

    from psycopg import Connection

RUNNING: Final = "running"
DONE: Final = "done"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"

_READ: Final = """
SELECT step, state, started_at, finished_at, detail FROM olr_pg.cutover WHERE subscription = %s
"""
_NOTE: Final = """
INSERT INTO olr_pg.cutover (subscription, step, state, finished_at, detail)
VALUES (%(subscription)s, %(step)s, %(state)s,
    CASE WHEN %(state)s = 'running' THEN NULL ELSE clock_timestamp() END, %(detail)s)
ON CONFLICT (subscription, step) DO UPDATE SET
    started_at = CASE WHEN excluded.state = 'running' THEN clock_timestamp()
        ELSE olr_pg.cutover.started_at END,
    state = excluded.state, finished_at = excluded.finished_at, detail = excluded.detail
"""
_FORGET: Final = "DELETE FROM olr_pg.cutover WHERE subscription = %s AND step NOT LIKE 'migrate:%%'"

_BEGIN_AGAIN: Final = (
    "UPDATE olr_pg.cutover SET state = 'skipped' WHERE subscription = %s AND step = 'taken back'"
)

MIGRATION: Final = "migrate:"
"""Prefix of the names of steps before the cut-over; a new cut-over does not delete them."""


TAKEN_BACK: Final = "taken back"
"""Name of the record that remains after applications have returned to the source. The state of this
record is `DONE` until a fallback begins again.
"""


class StepState(NamedTuple):
    """The state of a step.

    Attributes:
        state: `RUNNING`, `DONE`, `FAILED` or `SKIPPED`; an interrupted step remains `RUNNING`.
        detail: the findings of the step, for JSON.
    """

    step: str
    state: str
    started_at: datetime
    finished_at: datetime | None
    detail: dict[str, Any]

    @property
    def is_over(self) -> bool:
        """Return whether the next step may begin."""
        return self.state in (DONE, SKIPPED)


def read_steps(connection: Connection[Any], subscription: str) -> dict[str, StepState]:
    """Read the recorded steps, by name."""
    rows = connection.execute(_READ, (subscription,)).fetchall()
    return {row[0]: StepState(*row) for row in rows}


def check_no_cutover(connection: Connection[Any], subscription: str) -> None:
    """Raise an error if applications may write to the target. Applications may write after the
    cut-over, or since a way back has begun, until they have returned to the source.

    Raises:
        OlrPgError: 5171.
    """
    steps = read_steps(connection, subscription)
    report, back = steps.get("report"), steps.get(TAKEN_BACK)
    if report is not None and report.is_over:
        raise OlrPgError(
            Code.TARGET_IN_USE,
            f"the cut-over of the subscription {subscription} ended at"
            f" {report.finished_at:%Y-%m-%d %H:%M}",
        )
    has_returned = back is not None and back.state == DONE
    if not has_returned and is_open(connection, subscription):
        raise OlrPgError(
            Code.TARGET_IN_USE,
            f"a way back of the subscription {subscription} has begun and not ended",
        )


def note_step(
    connection: Connection[Any], subscription: str, step: str, state: str, detail: dict[str, Any]
) -> None:
    """Store the state of a step in the target."""
    stored = Jsonb(storable(connection, detail))
    values = {"subscription": subscription, "step": step, "state": state, "detail": stored}
    connection.execute(_NOTE, values)


def begin_again(connection: Connection[Any], subscription: str) -> None:
    """Record that applications use the target again after a return to the source."""
    connection.execute(_BEGIN_AGAIN, (subscription,))


def forget_steps(connection: Connection[Any], subscription: str) -> None:
    """Delete the record of the cut-over."""
    connection.execute(_FORGET, (subscription,))
