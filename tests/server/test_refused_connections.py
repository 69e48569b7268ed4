"""Refusals are counted, and logged without a flood."""

from __future__ import annotations

import structlog

from olr_pg.errors import OlrPgError
from olr_pg.server.listener import QUIET_SECONDS, Refusals


def test_refusals_are_logged_once_a_minute() -> None:
    now = 0.0
    refusals = Refusals("connection refused", lambda: now)
    with structlog.testing.capture_logs() as logs:
        for number in range(10):
            refusals.add(OlrPgError(4033, "slow"), f"peer {number}")
        now = QUIET_SECONDS
        refusals.add(OlrPgError(4033, "slow"), "the last")
    assert [(entry["client"], entry.get("others_not_logged")) for entry in logs] == [
        ("peer 0", None),
        ("the last", 9),
    ]
    assert refusals.counts() == {"OLR-04033": 11}
