"""Owners are found by where their transactions commit, and read on as far as these."""

from __future__ import annotations

import pytest

from olr_pg.capture.archived_log import FoundLog, LogPosition
from olr_pg.datasource.ownership import Bounds, LogPart, Owner, Place, Surveyed, ThreadOwners
from olr_pg.redo.batch import empty_events
from olr_pg.redo.commit_position import ParallelCommit

FOUND = FoundLog(LogPosition(1, 1, 1, 1), 100, (3, 200))
LOGS = [("a", 1), ("a", 1), ("b", 2), ("b", 2)]


@pytest.fixture
def owners() -> ThreadOwners:
    """Four splits of ten blocks in two logs; what begins in the first commits in 0, 1 and 3."""
    found = ThreadOwners([])
    for number, (path, sequence) in enumerate(LOGS):
        first = 10 * (number % 2)
        part = LogPart(path, first, first + 10)
        found.owners.append(Owner(part, sequence, size=5_120, scn=100 * (number + 1)))
    for number in (0, 1, 3):
        found.owners[0].add([100 * number + 50], number)
    found.owners[2].add([250, 240], 2)
    return found


def test_a_query_reads_on_up_to_the_last_commit(owners: ThreadOwners) -> None:
    first, second, third, _ = owners.splits(1, 1_000)
    assert first.rest == (LogPart("a", 10, 20), LogPart("b", 0, 20))
    assert first.commits == Bounds(50, 350)
    assert (second.commits, third.commits, third.rest) == (None, Bounds(240, 250), ())


def test_a_batch_reads_on_up_to_its_own_end(owners: ThreadOwners) -> None:
    first, *others = owners.splits(1, 1_000, 1, 2)
    assert (first.rest, first.commits) == ((LogPart("a", 10, 20),), Bounds(150, 150))
    assert [one.commits for one in others] == [None]


def test_splits_are_counted_by_places(owners: ThreadOwners) -> None:
    places = [Place(1, 0), Place(1, 10), Place(1, 15), Place(2, 0), Place(3, 0)]
    assert [owners.count_ended(place) for place in places] == [0, 1, 1, 2, 4]
    assert [owners.count_begun(place) for place in places] == [0, 1, 2, 2, 4]


def test_what_is_open_keeps_its_log(owners: ThreadOwners) -> None:
    assert [owners.oldest_open(end) for end in range(1, 5)] == [1, 1, 1, 2]
    assert owners.last_commit_scn(1, 3) == 250
    assert owners.last_commit_scn(3, 3) == 0


def test_a_split_has_the_parallel_commits_of_all_threads_while_it_was_written(
    owners: ThreadOwners,
) -> None:
    commits = [ParallelCommit((0, 1), 2, scn, begins=True) for scn in (50, 199, 200, 400, 401)]
    shared: list[ParallelCommit] = []
    one, other = ThreadOwners(shared), ThreadOwners(shared)
    for thread, found in ((one, commits[::2]), (other, commits[1::2])):
        thread.add(Surveyed("a", FOUND, 512, 100, empty_events(0), (2, 3), tuple(found)))
    assert shared == commits
    one.owners = owners.owners
    first, second, third, _ = one.splits(1, 1_000)
    assert first.parallel == tuple(commits)
    assert [commit.scn for commit in second.parallel] == [199, 200]
    assert [commit.scn for commit in third.parallel] == [200, 400]
