"""What was learnt of the dictionary is handed on from run to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from olr_pg.capture.capture_state import CapturePhase
from olr_pg.capture.logs import LogScan
from olr_pg.errors import OlrPgError
from olr_pg.replicator.decoding_run import FollowerPool
from tests.replicator.scripted_source import Rac, Reader, ScriptedSource, make_rac

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(eq=False)
class Follower:
    """A follower of `snapshot` that has come as far as `done`."""

    snapshot: object
    done: int = 0


def test_the_one_that_has_come_furthest_is_taken_over() -> None:
    made: list[object] = []

    def make(snapshot: Any) -> Any:
        made.append(snapshot)
        return Follower(snapshot)

    pool, dictionary = FollowerPool(make), object()
    first: Any = pool.take(dictionary)  # type: ignore[arg-type]
    assert made == [dictionary]
    further, behind = Follower(dictionary, 9), Follower(dictionary, 4)
    for one in (first, further, behind, Follower(object(), 99)):
        pool.give_back(one)  # type: ignore[arg-type]
    taken: Any = pool.take(dictionary)  # type: ignore[arg-type]
    assert taken is further
    assert made == [dictionary]


def test_those_of_an_earlier_dictionary_are_forgotten() -> None:
    pool = FollowerPool(Follower)  # type: ignore[arg-type]
    old, new = object(), object()
    follower: Any = pool.take(old)  # type: ignore[arg-type]
    pool.give_back(follower)
    assert pool.take(new).snapshot is new  # type: ignore[arg-type]
    assert pool.take(old) is not follower  # type: ignore[arg-type]


pytestmark = pytest.mark.timeout(900)  # the first test may compile the kernels


@pytest.fixture(scope="module")
def rac(tmp_path_factory: pytest.TempPathFactory) -> Rac:
    return make_rac(tmp_path_factory.mktemp("rac"))


def test_an_open_thread_whose_first_logs_are_gone(rac: Rac) -> None:
    """When the run began, nothing of it was archived that could have told so."""
    start = rac.one[3].header.first_scn
    source = rac.source(1, 2)
    source.logs = rac.one[:9]
    with Reader(source, start) as reader:
        reader.settle()
        assert reader.failure() is None
        assert reader.take() == []
        source.logs = rac.one + [log for log in rac.two if log.header.first_scn > start]
        reader.settle()
        failure = reader.failure()
    assert failure is not None
    assert failure.code == 2010
    assert failure.where["thread"] == 2


def test_an_open_thread_that_comes_with_its_first_logs(rac: Rac) -> None:
    start = rac.one[3].header.first_scn
    source = rac.source(1, 2)
    source.logs = list(rac.one)
    with Reader(source, start) as reader:
        reader.settle()
        source.logs = rac.one + [log for log in rac.two if log.next_scn > start]
        reader.settle()
        assert reader.take() == [one for one in rac.truth if one.begin_scn >= start]
        assert reader.failure() is None


class PickySource(ScriptedSource):
    """Notes the SCN that it is asked from; may have a log that cannot be used."""

    late: OlrPgError | None = None

    def scan(self, scn: int, delivered_scn: int) -> LogScan:
        self.asked = scn
        found = super().scan(scn, delivered_scn)
        unusable = () if self.late is None else (self.late,)
        return LogScan(found.logs, (), unusable, found.open_threads)


def test_a_closed_thread_is_closed_once(rac: Rac) -> None:
    source = PickySource(rac.snapshot, (1,))
    source.logs = rac.one[:7] + rac.two[:2]

    def commits(reader: Reader) -> list[int]:
        return [one.commit_scn for one in reader.take()]

    ends = [rac.two[1].next_scn, rac.one[6].next_scn, rac.one[8].next_scn]
    with capture_logs() as logged, Reader(source) as reader:
        reader.settle()
        assert reader.failure() is None
        assert ends[0] < commits(reader)[-1] < ends[1]
        # Its last log stays listed; while one of the other is late, nothing is closed.
        source.late = OlrPgError(7011, "late")
        reader.settle()
        assert commits(reader) == []
        source.late = None
        source.logs += rac.one[7:9]
        reader.settle()
        assert ends[1] <= commits(reader)[-1] < ends[2]
    closed = [line["thread"] for line in logged if line["event"] == "redo thread closed"]
    assert closed == [2]


def test_a_thread_that_opens_again_is_waited_for_from_what_has_left(rac: Rac) -> None:
    closed_at = rac.two[3].next_scn
    source = PickySource(rac.snapshot, (1,))
    source.logs = [log for log in rac.one if log.next_scn <= closed_at] + rac.two[:4]
    with Reader(source) as reader:
        reader.settle()
        reached = source.asked
        assert 0 < reached <= closed_at
        taken = reader.take()
        assert taken
        source.opened = frozenset({1, 2})
        source.logs = rac.one + rac.two[:4]
        reader.settle()
        # What came before may be gone: it is not asked for again.
        assert source.asked == reached
        assert reader.take() == []
        source.logs = rac.one + rac.two
        reader.settle()
        assert taken + reader.take() == rac.truth
        assert reader.failure() is None


def test_a_thread_that_had_nothing_to_read_is_not_late_where_the_source_knows(
    rac: Rac, tmp_path: Path
) -> None:
    """An instance that was down so far: its next log begins where its last one ended."""
    threads = tmp_path / "threads.json"
    threads.write_text('{"version": 1, "threads": [1]}')
    start = rac.two[5].header.first_scn + 1
    source = rac.source(1, 2)
    source.logs = [log for log in (*rac.one, *rac.two) if log.next_scn > start]
    with Reader(source, start, threads_file=threads) as reader:
        reader.settle()
        assert reader.failure() is None
        assert reader.take() == [one for one in rac.truth if one.begin_scn >= start]


def test_a_known_thread_without_logs_is_waited_for_over_a_restart(rac: Rac, tmp_path: Path) -> None:
    """Its logs were confirmed and removed, and the next one is not there yet."""
    threads = tmp_path / "threads.json"
    source = rac.source()
    source.logs = rac.one[:3] + rac.two[:3]
    with Reader(source, threads_file=threads) as reader:
        reader.settle()
        taken = reader.take()
        scn = reader.delivery.open_scn()
    source.logs = [log for log in rac.one if log.next_scn > scn]
    for _ in range(2):
        with Reader(source, scn, resumed=True, threads_file=threads) as reader:
            reader.settle()
            assert reader.take() == []
            assert reader.delivery.open_scn() == scn
            state = reader.delivery.state
            assert state.phase is CapturePhase.WAITING_FOR_REDO
            assert state.reason is not None
            assert state.reason.code == 2021
            assert state.reason.where == {"thread": 2}
    source.logs += [log for log in rac.two if log.next_scn > scn]
    with Reader(source, scn, resumed=True, threads_file=threads) as reader:
        reader.settle()
        assert set(taken + reader.take()) == set(rac.truth)
        assert reader.delivery.state.phase is CapturePhase.CAUGHT_UP
        assert reader.failure() is None


def test_a_known_thread_is_not_waited_for_where_the_source_says_that_it_is_closed(
    rac: Rac, tmp_path: Path
) -> None:
    threads = tmp_path / "threads.json"
    threads.write_text('{"version": 1, "threads": [1, 2]}')
    start = rac.one[3].header.first_scn
    source = rac.source(1)
    source.logs = rac.one[3:]
    with Reader(source, start, threads_file=threads) as reader:
        reader.settle()
        assert reader.take()
        assert reader.delivery.state.phase is CapturePhase.CAUGHT_UP


def test_a_log_that_one_of_two_threads_lacks_is_told_once_and_stays_the_state(rac: Rac) -> None:
    """The other thread goes on, and all of it waits."""
    source = rac.source(1, 2)
    behind = [log for number, log in enumerate(rac.two) if number != 3]
    source.logs = [*rac.one[:4], *behind]
    with capture_logs() as lines, Reader(source) as reader:
        reader.settle()
        waiting = reader.delivery.monitor.state
        assert waiting.phase is CapturePhase.WAITING_FOR_REDO
        for count in (5, 6, 7):
            source.logs = [*rac.one[:count], *behind]
            reader.settle()
            assert reader.delivery.progress.source.threads[0].decoded_sequence == (
                rac.one[count - 1].header.sequence
            )
            assert reader.delivery.monitor.state is waiting
        source.logs = [*rac.one, *rac.two]
        reader.settle()
        assert reader.delivery.monitor.state.phase is CapturePhase.CAUGHT_UP
        assert reader.take() == rac.truth
    events = [line["event"] for line in lines]
    told = ("waiting for a missing log", "the missing redo has arrived")
    assert [event for event in events if event in told] == list(told)
