"""Keeps the steps of a cut-over in the target: they survive this machine, as the ledger does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg.types.json import Jsonb

from olr_pg.postgres.encodings import storable

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
"""Begins the names of the steps that lead to a cut-over, which it does not forget."""


TAKEN_BACK: Final = "taken back"
"""The step that is left of a cut-over from which applications have returned to the source; `DONE`
until a way back begins again."""


class StepState(NamedTuple):
    """Holds how far one step is.

    Attributes:
        state: `RUNNING` (or broken off), `DONE`, `FAILED` or `SKIPPED`.
        detail: what it found, as JSON has it.
    """

    step: str
    state: str
    started_at: datetime
    finished_at: datetime | None
    detail: dict[str, Any]

    @property
    def is_over(self) -> bool:
        """Tell whether the next step may begin."""
        return self.state in (DONE, SKIPPED)


def read_steps(connection: Connection[Any], subscription: str) -> dict[str, StepState]:
    """Read the steps that have begun, by name."""
    rows = connection.execute(_READ, (subscription,)).fetchall()
    return {row[0]: StepState(*row) for row in rows}


def note_step(
    connection: Connection[Any], subscription: str, step: str, state: str, detail: dict[str, Any]
) -> None:
    """Store the state of a step in the target."""
    stored = Jsonb(storable(connection, detail))
    values = {"subscription": subscription, "step": step, "state": state, "detail": stored}
    connection.execute(_NOTE, values)


def begin_again(connection: Connection[Any], subscription: str) -> None:
    """Note that applications use the target again, after they had returned to the source."""
    connection.execute(_BEGIN_AGAIN, (subscription,))


def forget_steps(connection: Connection[Any], subscription: str) -> None:
    """Forget the cut-over."""
    connection.execute(_FORGET, (subscription,))
