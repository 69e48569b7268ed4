"""The survey: read ahead by several threads, found as if by one.

Owners are found by where their transactions commit, and read on as far as these.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from olr_pg.capture.archived_log import FoundLog, LogPosition
from olr_pg.capture.logs import discover_logs
from olr_pg.datasource import survey as surveying
from olr_pg.datasource.redo_stream import BEGINNING, Limit, RedoStream, SourceOptions
from olr_pg.datasource.split_reading import owned_transactions
from olr_pg.datasource.survey import Bounds, LogPart, Owner, Place, Surveyed, ThreadOwners, survey
from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.batch import empty_events
from olr_pg.redo.commit_position import ParallelCommit
from olr_pg.simulator.fields.redo_format import SourceMode
from olr_pg.transactions.waiting_storage import IN_MEMORY
from tests.lobs.lob_redo import LobRedo, snapshot
from tests.oracle.live_source import reincarnated
from tests.ordering.test_merger import (
    CHILD,
    OTHER,
    PARENT,
    S,
    at,
    begin,
    close_parent,
    commit_child,
    commit_other,
    commit_parent,
)
from tests.ordering.test_new_incarnation import NEW, with_new_incarnation
from tests.replicator.decoded_seeds import SimulatedSeed, simulated

if TYPE_CHECKING:
    from tests.replicator.decoded_seeds import Source


_SPLIT_BYTES = 6_000


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return SimulatedSeed(3, 60_000).simulated(tmp_path_factory.mktemp("survey"))


def test_threads_that_read_ahead_find_what_one_finds(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for readers in (1, 5):
        monkeypatch.setattr(surveying, "_READERS", readers)
        found.append(
            survey(source.snapshot, [str(source.folder / "logs")], split_bytes=_SPLIT_BYTES)
        )
    one, many = found
    assert len(one.splits) > 5
    assert one.splits == many.splits
    assert one.decoding.sessions
    assert one.decoding.sessions == many.decoding.sessions


def test_what_began_before_the_first_log_is_reported(tmp_path: Path) -> None:
    source = simulated(tmp_path, 6, "orders", 1_500_000)
    logs = [str(log) for log in sorted((source.folder / "logs").iterdir())]
    with capture_logs() as said:
        survey(source.snapshot, logs)
    assert said == []
    with capture_logs() as said:
        survey(source.snapshot, logs[1:])
    assert [line["code"] for line in said] == ["OLR-02144", "OLR-02143"]
    options = SourceOptions(tuple(logs[1:]), (str(source.folder / "dictionary.json"),))
    with capture_logs() as said:
        end = (stream := RedoStream(options, IN_MEMORY)).latest(BEGINNING, Limit())
        assert stream.latest(end, Limit()) == end
    assert [line["code"] for line in said] == ["OLR-02144", "OLR-02143"]
    with capture_logs() as said:
        assert RedoStream(options, IN_MEMORY).latest(end, Limit()) == end
    assert [line["code"] for line in said] == ["OLR-02144"]


@pytest.mark.parametrize("is_over", [False, True])
def test_a_query_ends_in_front_of_parallel_dml_whose_children_were_not_read(
    tmp_path: Path, is_over: bool
) -> None:
    """Else who queries from its last commit SCN on would never be given the children."""
    redo = LobRedo()
    child, other, parent = begin(redo, CHILD, 1), begin(redo, OTHER, 2), begin(redo, PARENT, 3)
    commit_parent(redo, parent)
    commit_other(redo, other)
    if is_over:
        commit_child(redo, child)
        close_parent(redo, parent)
    at(redo, S + 50)
    redo.write(tmp_path, group=1)
    logs = [str(log) for log in tmp_path.iterdir()]
    found = survey(snapshot(), logs)
    (split,) = found.splits
    assert split.end_scn > S + 1 if is_over else split.end_scn == S
    runs = owned_transactions(found.decoding.subscription, split)
    scns = [scn for run in runs for scn in run.commit_scn.tolist()]
    assert scns == ([S, S, S + 1] if is_over else [])


def test_parallel_dml_of_an_earlier_incarnation_is_not_expected(tmp_path: Path) -> None:
    shape = SimulatedSeed(12, 150_000, modes=(SourceMode.PARALLEL_DML,))
    source = shape.simulated(tmp_path / "source")
    *earlier, last = discover_logs([str(source.folder / "logs")])
    scn = last.header.first_scn
    reincarnated(Path(last.path), tmp_path, resetlogs=NEW, scn=scn, activation=99, sequence=1)
    logs = [log.path for log in earlier] + [str(one) for one in tmp_path.glob("*.arc")]
    found = survey(with_new_incarnation(source.snapshot), logs, split_bytes=_SPLIT_BYTES)
    parallel = {True: set[int](), False: set[int]()}
    for split in found.splits:
        is_new = split.own.path == logs[-1]
        parallel[is_new] |= {commit.scn for commit in split.parallel}
    assert max(parallel[False]) < scn <= min(parallel[True])


def test_a_log_that_cannot_be_read_is_told_in_its_turn(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surveying, "_READERS", 5)
    logs = discover_logs([str(source.folder / "logs")])
    assert len(logs) > 1
    for log in map(Path, (one.path for one in logs)):
        damaged = bytearray(log.read_bytes())
        damaged[len(damaged) // 2] ^= 0xFF
        (tmp_path / log.name).write_bytes(damaged)
    with pytest.raises(OlrPgError) as caught:
        survey(source.snapshot, [str(tmp_path)], split_bytes=_SPLIT_BYTES)
    assert caught.value.code == Code.BLOCK_CORRUPT
    first = min(logs, key=lambda log: log.header.first_scn)
    assert caught.value.where["file"] == str(tmp_path / Path(first.path).name)


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
