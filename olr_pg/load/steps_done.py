"""Stores the steps of a cut-over in the target, so that they survive the loss of this host.

`LoadWatch` observes a load over a separate connection: how much is loaded, and how much PostgreSQL
is receiving now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from psycopg.types.json import Jsonb

from olr_pg.applier.target.connection import connect, storable
from olr_pg.applier.target.way_back_lives import is_open
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    import psycopg
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
"""Name of the record that remains after applications have returned to the source. Its state is
`DONE` until a fallback begins again.
"""


class StepState(NamedTuple):
    """The state of a step.

    Attributes:
        state: `RUNNING`, `DONE`, `FAILED` or `SKIPPED`; an interrupted step remains `RUNNING`.
        detail: its findings, for JSON.
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
    """Raise an error if applications may write to the target: after the cut-over, or since a way
    back has begun, until they have returned to the source.

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


_ANSWER_SECONDS: Final = 5.0
"""Maximum time to wait for an answer. It is short, because a query is quick and the next one
follows soon.
"""

_PARTS = """
SELECT l.source_table, coalesce(sum(p.rows), 0)::int8, coalesce(sum(p.bytes), 0)::int8,
    count(p.part), l.parts
FROM olr_pg.load l LEFT JOIN olr_pg.load_part p
    ON (p.subscription, p.source_table) = (l.subscription, l.source_table) AND p.part >= 0
WHERE l.subscription = %s GROUP BY l.source_table, l.parts
"""
_UNDER_WAY = """
SELECT n.nspname, c.relname, sum(p.tuples_processed)::int8, sum(p.bytes_processed)::int8
FROM pg_stat_progress_copy p JOIN pg_class c ON c.oid = p.relid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.datname = current_database() AND p.command = 'COPY FROM' GROUP BY 1, 2
"""


class Amount(NamedTuple):
    """How much of a table is loaded.

    Attributes:
        rows: number of rows, including rows that PostgreSQL is receiving now.
        bytes: number of bytes sent by COPY.
        expected: total number of rows, estimated from the loaded partitions; None if no partition
            is loaded.
        is_done: whether all partitions are loaded.
    """

    rows: int = 0
    bytes: int = 0
    expected: int | None = None
    is_done: bool = False


class LoadWatch:
    """Observes a load over its own connection to the target.

    Args:
        targets: ``OWNER.NAME`` → (schema, table) in the target.
    """

    def __init__(
        self, connect_string: str, subscription: str, targets: Mapping[str, tuple[str, str]]
    ) -> None:
        self._connection = connect(connect_string, replica=None, answer_seconds=_ANSWER_SECONDS)
        self._subscription = subscription
        self._sources = {target: source for source, target in targets.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The connection to the target."""
        return self._connection

    def read(self) -> dict[str, Amount]:
        """Read how much of each table is loaded, by ``OWNER.NAME``."""
        found = dict[str, Amount]()
        for name, rows, size, done, parts in self._connection.execute(
            _PARTS, (self._subscription,)
        ):
            expected = rows * parts // done if done else None
            found[name] = Amount(rows, size, expected, is_done=done == parts)
        for schema, table, rows, size in self._connection.execute(_UNDER_WAY):
            source = self._sources.get((schema, table))
            if source is not None:
                before = found.get(source, Amount())
                found[source] = before._replace(rows=before.rows + rows, bytes=before.bytes + size)
        return found
