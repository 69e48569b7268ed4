"""A client that does not confirm is reported once, and again when it has caught up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from olr_pg.server.queue import HeldBack
from tests.server.test_queue import transaction

if TYPE_CHECKING:
    from olr_pg.ordering.ready_transactions import ReadyRun


def looked(held: HeldBack, sent: list[ReadyRun], ready: list[ReadyRun]) -> tuple[list[str], bool]:
    """What is logged of a look, and what it finds."""
    with capture_logs() as logs:
        held.look(sent, ready, len(sent), sum(run.cost for run in [*sent, *ready]))
    assert all(log["action"] for log in logs if log["log_level"] == "warning")
    return [log["event"] for log in logs], held.now


def test_it_is_logged_when_it_begins_and_when_half_is_confirmed() -> None:
    one = transaction(1, 10, 20)
    held = HeldBack(2 * one.cost)
    assert looked(held, [one] * 3, []) == ([], False)  # the largest one counts for nothing
    assert looked(held, [one] * 4, []) == (
        ["the client does not confirm the transactions it received"],
        True,
    )
    assert looked(held, [one] * 2, []) == ([], True)
    assert looked(held, [one], []) == (["the client confirms transactions again"], False)


def test_what_is_ready_is_not_the_client_s_doing() -> None:
    one = transaction(1, 10, 20)
    assert looked(HeldBack(one.cost), [one], [one] * 9) == ([], False)
