"""Somebody has written to Oracle: each kind of conflict, with each policy, and what goes on."""

from __future__ import annotations

import itertools
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from olr_pg.applier.settings import ConflictPolicy
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import Status, prepare, resume_table, run, status
from tests.fallback.made_way import MadeWay

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.fallback.both_sides import Both
    from tests.proving.served import Served

_numbers = itertools.count(1)

Rows = tuple[tuple[int, str], ...]
BEFORE: Rows = ((1, "one"), (2, "two"))
LONG = "repeat('long', 900)"


class Conflict(NamedTuple):
    """A change of PostgreSQL that meets other rows than its own in Oracle.

    Attributes:
        there: what somebody did in Oracle.
        here: the change of PostgreSQL.
        skipped, overwritten: Oracle's rows with each policy; None: the table stops.
        cause: as it is recorded.
    """

    there: str
    here: str
    skipped: Rows
    overwritten: Rows | None
    cause: str


INSERT = "INSERT INTO {{t}} (id, v) VALUES ({}, '{}')"
DELETE = "DELETE FROM {{t}} WHERE id = {}"
UPDATE = "UPDATE {{t}} SET {} WHERE id = {}"

CONFLICTS = {
    "an insert of a row that exists": Conflict(
        INSERT.format(3, "theirs"), INSERT.format(3, "ours"),
        (*BEFORE, (3, "theirs")), (*BEFORE, (3, "ours")), "INSERT row-exists",
    ),
    "an insert of another row's unique value": Conflict(
        INSERT.format(4, "ours"), INSERT.format(3, "ours"),
        (*BEFORE, (4, "ours")), None, "INSERT row-exists",
    ),
    "an update of a row that is missing": Conflict(
        DELETE.format(1), UPDATE.format("v = 'ours'", 1),
        BEFORE[1:], ((1, "ours"), BEFORE[1]), "UPDATE row-missing",
    ),
    "an update to another row's unique value": Conflict(
        INSERT.format(4, "ours"), UPDATE.format("v = 'ours'", 1),
        (*BEFORE, (4, "ours")), None, "UPDATE row-exists",
    ),
    "another key for a row that is missing": Conflict(
        DELETE.format(1), UPDATE.format("id = 3, v = 'ours'", 1),
        BEFORE[1:], (BEFORE[1], (3, "ours")), "UPDATE row-missing",
    ),
    "another key that exists": Conflict(
        INSERT.format(3, "theirs"), UPDATE.format("id = 3, v = 'ours'", 1),
        (*BEFORE, (3, "theirs")), (BEFORE[1], (3, "ours")), "UPDATE row-exists",
    ),
    "another key that exists, for a row that is missing": Conflict(
        UPDATE.format("id = 3, v = 'theirs'", 1), UPDATE.format("id = 3, v = 'ours'", 1),
        (BEFORE[1], (3, "theirs")), (BEFORE[1], (3, "ours")), "UPDATE row-missing",
    ),
    "another key, with another row's unique value": Conflict(
        INSERT.format(4, "ours"), UPDATE.format("id = 3, v = 'ours'", 1),
        (*BEFORE, (4, "ours")), None, "UPDATE row-exists",
    ),
    "a delete of a row that is missing": Conflict(
        DELETE.format(1), DELETE.format(1), BEFORE[1:], BEFORE[1:], "DELETE row-missing",
    ),
}  # fmt: skip


class Way:
    """A way back whose column v is unique in Oracle."""

    def __init__(self, served: Served, database: str) -> None:
        self.made = MadeWay(served, database, f"conflict{next(_numbers)}")
        self.made.oracle("ALTER TABLE {t} ADD CONSTRAINT {t}_u UNIQUE (v)")
        self.made.sql("ALTER TABLE {t} ALTER big SET STORAGE EXTERNAL")
        prepare(self.made.way)

    def with_policy(self, policy: ConflictPolicy) -> None:
        self.made.way = self.made.way._replace(conflict=policy)

    def begin_anew(self) -> None:
        """Let both sides have the same two rows."""
        self.made.oracle("DELETE FROM {t}")
        self.with_policy(ConflictPolicy.OVERWRITE)
        self.made.sql("DELETE FROM {t}", INSERT.format(1, "one"), INSERT.format(2, "two"))
        run(self.made.way, once=True)
        assert self.rows() == BEFORE

    def rows(self) -> Rows:
        return tuple((row[0], row[1]) for row in self.made.rows()[1])

    @property
    def table(self) -> str:
        return self.made.way.tables[0].full_name

    def records(self) -> dict[str, int]:
        found = status(self.made.way).records
        return {f"{one.item} {one.cause} {one.policy}": count for one, count in found.items()}

    def stops(self) -> str:
        """Run; return the reason why the table has stopped."""
        with pytest.raises(OlrPgError) as stopped:
            run(self.made.way, once=True)
        assert stopped.value.code == Code.FALLBACK_TABLES_STOPPED
        return stopped.value.detail


@pytest.fixture
def way(served: Served, logical_database: str) -> Way:
    return Way(served, logical_database)


@pytest.mark.parametrize("policy", ConflictPolicy)
def test_each_conflict_does_as_its_policy_says(way: Way, policy: ConflictPolicy) -> None:
    every = 4 if policy == ConflictPolicy.ERROR else 1  # they all end alike then
    for name, one in itertools.islice(CONFLICTS.items(), 0, None, every):
        way.begin_anew()
        way.with_policy(policy)
        way.made.oracle(one.there)
        before, counted = way.rows(), way.records()
        # Together with others, which are not concerned.
        way.made.sql(INSERT.format(8, "eight"), one.here, UPDATE.format("v = 'nine'", 8))
        wanted = one.skipped if policy == ConflictPolicy.SKIP else one.overwritten
        if policy == ConflictPolicy.ERROR or wanted is None:
            reason = way.stops()
            assert "OLR-07306" in reason, name
            assert "theirs" not in reason
            assert way.rows() == before, name
            assert resume_table(way.made.way, way.table, skip=True), name
            run(way.made.way, once=True)
            assert way.rows() == before, name
            assert way.records() == counted, name
            continue
        run(way.made.way, once=True)
        assert way.rows() == (*wanted, (8, "nine")), name
        what = "skip" if one.here.startswith("DELETE") else policy.value
        key = f"{one.cause} {what}"
        assert way.records() == counted | {key: counted.get(key, 0) + 1}, name


def test_a_row_that_is_not_whole_is_not_made_up(way: Way) -> None:
    """PostgreSQL does not send a large value that an update keeps."""
    way.with_policy(ConflictPolicy.OVERWRITE)
    way.made.sql(f"INSERT INTO {{t}} VALUES (1, 'a', 1, {LONG})")
    run(way.made.way, once=True)
    way.made.oracle(DELETE.format(1))
    way.made.sql(UPDATE.format("v = 'b'", 1))
    assert "OLR-07306" in way.stops()
    way.made.oracle(INSERT.format(1, "theirs"))
    assert resume_table(way.made.way, way.table)
    run(way.made.way, once=True)
    assert way.rows() == ((1, "b"),)


def test_skip_leaves_out_one_transaction_and_no_other(way: Way) -> None:
    way.made.sql(INSERT.format(1, "one"))
    run(way.made.way, once=True)
    way.made.oracle(DELETE.format(1))
    way.made.sql(INSERT.format(2, "before"))
    way.made.sql(INSERT.format(3, "left out"), UPDATE.format("w = 1", 1))
    way.made.sql(INSERT.format(4, "after"))
    way.made.sql(UPDATE.format("w = 2", 1))
    way.stops()
    assert way.rows() == ((2, "before"),)
    for _ in range(2):
        assert resume_table(way.made.way, way.table, skip=True)
        assert not resume_table(way.made.way, way.table, skip=True)
        if not way.rows()[1:]:
            way.stops()  # by the last one
            assert way.rows() == ((2, "before"), (4, "after"))
    run(way.made.way, once=True)
    assert status(way.made.way).ledger is not None
    assert way.rows() == ((2, "before"), (4, "after"))


class Ended(Exception):  # noqa: N818
    """Ends a run."""


@pytest.mark.parametrize("skip", [False, True])
def test_a_run_that_goes_on_takes_a_resumed_table_up(
    way: Way, monkeypatch: pytest.MonkeyPatch, skip: bool
) -> None:
    monkeypatch.setattr("olr_pg.fallback.fallback_run.LOOK_SECONDS", 0.05)
    monkeypatch.setattr("olr_pg.fallback.fallback_run.POLL_SECONDS", 0.05)
    way.made.sql(INSERT.format(1, "one"))
    run(way.made.way, once=True)
    way.made.oracle(DELETE.format(1))
    is_over = False

    def look(_: Any) -> None:
        if is_over:
            raise Ended

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run, way.made.way, progress=look)
        try:
            way.made.sql(UPDATE.format("v = 'ours'", 1))
            way.made.sql(INSERT.format(2, "two"))
            _wait(way, future, lambda now: [one.is_stopped for one in _stops(now)] == [True])
            if not skip:
                way.made.oracle(INSERT.format(1, "one"))
            assert resume_table(way.made.way, way.table, skip=skip)
            wanted = ((2, "two"),) if skip else ((1, "ours"), (2, "two"))
            _wait(way, future, lambda _: way.rows() == wanted)
            way.made.sql(INSERT.format(3, "three"))
            _wait(way, future, lambda now: not _stops(now))
        finally:
            is_over = True
            way.made.sql(INSERT.format(4, "four"))
            with pytest.raises(Ended):
                future.result()


def _stops(now: Status) -> Sequence[Any]:
    assert now.ledger is not None
    return list(now.ledger.stops.values())


def _wait(way: Way, running: Future[int], holds: Callable[[Status], bool]) -> None:
    """Wait until something holds, as long as the way back runs."""
    while not holds(status(way.made.way)):
        assert not running.done()


def test_a_stopped_table_that_is_not_replicated_any_more_keeps_no_wal(
    both: Callable[..., Both],
) -> None:
    """It is removed from the configuration, and resumed."""
    made = both(
        ("left_out", "id NUMBER(10) PRIMARY KEY, v NUMBER(1)", "(id int PRIMARY KEY, v int)"),
        ("kept", "id NUMBER(10) PRIMARY KEY", "(id int PRIMARY KEY)"),
    )
    made.sql("INSERT INTO left_out VALUES (1, 100)", "INSERT INTO kept VALUES (1)")
    assert list(made.stops()) == ["APP.LEFT_OUT"]
    way = made.way._replace(tables=made.way.tables[1:])
    with pytest.raises(OlrPgError):
        run(way, once=True)
    assert resume_table(way, "APP.LEFT_OUT")
    made.sql("INSERT INTO kept VALUES (2)")
    run(way, once=True)
    found = status(way).ledger
    assert found is not None
    assert found.needed_lsn == found.lsn
    assert made.rows("kept") == ([(1,), (2,)],) * 2
    assert made.rows("left_out")[1] == []
