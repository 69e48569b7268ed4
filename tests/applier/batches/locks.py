"""Two tables of one worker under updates, an applier at work, and somebody who locks one."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import psycopg

from olr_pg.applier.session.applier_session import Applier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from olr_pg.errors import Code

Replication = Any  # tests/applier/conftest.py

UPDATES: Final = 400
PATIENCE: Final = 120.0
APPLIED: Final = (2 * UPDATES + 2, 0)
QUICK: Final = {"answer_seconds": 1.5, "batch_changes": 20, "batch_milliseconds": 1}


@contextmanager
def applying(
    r: Replication, *, once: bool = True, error: Code | None = None, **options: Any
) -> Iterator[Applier]:
    """The applier at work, to the end of what there is; not `once`: until the block ends.

    Args:
        error: with which it ends.
    """
    applier = Applier(r.settings(**{**QUICK, **options}))
    failures: list[Exception] = []

    def run() -> None:
        try:
            applier.run(once=once, drained=r.script.complete.is_set)
        except Exception as error:  # noqa: BLE001 - looked at below
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield applier
        if not once:
            applier.drain()
        thread.join(PATIENCE)
        assert not thread.is_alive()
    finally:
        applier.abandon()
        thread.join(PATIENCE)
    expected = [] if error is None else [error]
    assert [getattr(one, "code", one) for one in failures] == expected, failures


def locked(r: Replication, table: str) -> Connection[Any]:
    locker = psycopg.connect(r.target, application_name="night job")
    locker.execute(f"LOCK TABLE s.{table}".encode())
    return locker


def last(r: Replication, table: str) -> int:
    return int(r.rows(f"SELECT n FROM s.{table}")[0][0])
