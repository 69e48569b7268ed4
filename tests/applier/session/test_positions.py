"""Where the applier starts: the server's saved SCN, or what its own target says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.applier.session.conversation import NotedPositions
from olr_pg.applier.session.handover import Handover, read_handover
from olr_pg.applier.target.applied_file import AppliedTables
from olr_pg.applier.target.connection import KeptConnection
from olr_pg.applier.target.ledger import ensure_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def target(postgres_database: str) -> Iterator[KeptConnection]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
    kept = KeptConnection(postgres_database)
    yield kept
    kept.close()


def positions(target: KeptConnection, **handover: Any) -> NotedPositions:
    """Of an applier that has just been started."""
    return NotedPositions("s", target, Handover(**handover), AppliedTables("s", None))


def noted(target: KeptConnection) -> Any:
    query = "SELECT start_scn, complete_scn, olr_pg.consistent_scn('s') FROM olr_pg.subscription"
    return target.use(lambda c: c.execute(query).fetchone())


def test_without_a_saved_scn_it_is_the_configured_one(target: KeptConnection) -> None:
    assert positions(target).start(None, 7, is_own=False) == 7


def test_its_own_saved_scn_is_believed(target: KeptConnection) -> None:
    with capture_logs() as lines:
        assert positions(target).start(10**9, 0, is_own=True) == 10**9
    assert lines == []


@pytest.mark.parametrize(
    ("noted_scn", "saved_scn", "start"),
    [(None, 40, 7), (None, 5, 5), (50, 40, 40), (50, 50, 50), (50, 60, 50), (50, 10**9, 50)],
)
def test_another_s_is_believed_as_far_as_the_target_has_it(
    target: KeptConnection, noted_scn: int | None, saved_scn: int, start: int
) -> None:
    if noted_scn is not None:
        earlier = positions(target)
        earlier.saved(noted_scn)
        earlier.note()
    with capture_logs() as lines:
        assert positions(target).start(saved_scn, 7, is_own=False) == start
    codes = [line["reason"][:9] for line in lines]
    assert codes == (["OLR-05150"] if start < saved_scn else [])
    assert all(line["log_level"] == "warning" for line in lines)


def test_what_was_passed_by_is_never_noted(target: KeptConnection) -> None:
    for _ in range(2):
        one = positions(target)
        assert one.start(10**9, 7, is_own=False) == 7
        one.started(7)
        one.saved(10**9)  # nothing was confirmed yet: the server still says so
        one.note()
    one.saved(70)
    one.note()
    assert noted(target) == (70, 69, 69)
    assert positions(target).start(10**9, 7, is_own=False) == 70


def test_a_load_starts_further_back_than_either(target: KeptConnection) -> None:
    one = positions(target, scn=90, start_scn=30)
    assert one.start(60, 0, is_own=True) == 30
    assert one.start(10**9, 80, is_own=False) == 30


def _needs(target: KeptConnection, start: int, **handover: Any) -> list[int]:
    """From which SCN on the source must have its logs."""
    asked: list[int] = []
    positions(target, **handover).check_begin(start, asked.append)
    return asked


def test_without_a_saved_scn_the_oldest_log_must_reach_back_to_the_target(
    target: KeptConnection,
) -> None:
    assert _needs(target, 0) == []  # a first run
    earlier = positions(target)
    earlier.saved(50)
    earlier.note()
    with capture_logs() as lines:
        assert _needs(target, 0) == [50]
        assert _needs(target, 0, scn=90, start_scn=80) == [50]
        assert _needs(target, 80, scn=90, start_scn=80, covers_all=True) == []
        assert _needs(target, 50) == []
    assert lines == []
    with capture_logs() as lines:
        assert _needs(target, 51) == []
    assert [line["reason"][:9] for line in lines] == ["OLR-05151"]


def test_a_load_that_was_completed_meanwhile_is_not_handed_over(target: KeptConnection) -> None:
    """Nobody has asked for the changes of its table yet: `tables add` was killed before that, or
    another tool has copied its rows as of an SCN that was passed long ago."""
    own = positions(target, scn=30, start_scn=25, tables=frozenset({"S.T"}))
    for table, scn in (("S.T", 30), ("S.ADDED", 20)):
        target.use(
            lambda c: c.execute(
                "INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn,"
                " source, parts, finished_at) VALUES ('s', %s, 's.t', %s, 15, '', 0, now())",
                (table, scn),  # noqa: B023
            )
        )
    own.confirmed_scn = 40
    own.note()
    query = "SELECT source_table FROM olr_pg.load WHERE handed_over"
    assert target.use(lambda c: c.execute(query).fetchall()) == [("S.T",)]
    later = target.use(lambda c: read_handover(c, "s", {"S.T", "S.ADDED"}))
    assert (later.scn, later.start_scn, later.tables) == (20, 15, {"S.ADDED": 0})


def test_the_load_of_a_renamed_table_is_handed_over(target: KeptConnection) -> None:
    """Else the redo from the load on would be kept for ever: no table has the old name again."""
    for table, source in (("S.OLD", "renamed"), ("S.OTHER", "")):
        target.use(
            lambda c: c.execute(
                "INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn,"
                " source, parts, finished_at) VALUES ('s', %s, 's.t', 20, 15, %s, 0, now())",
                (table, source),  # noqa: B023
            )
        )
    found = target.use(lambda c: read_handover(c, "s", {"S.NEW"}))
    assert (found.scn, found.start_scn, found.tables) == (20, 15, {"S.OLD": 0})
    assert not found.covers_all
