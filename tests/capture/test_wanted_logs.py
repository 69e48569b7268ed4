"""Whether the logs begin where decoding must start.

What a RESETLOGS orphans, by the headers of logs: cut, left out, or missed at the end.

The decoded logs of a run, which are runs of consecutive sequences.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.capture.archived_log import AbsentLog, LogPosition, Reached
from olr_pg.capture.logs import LogScan, discover_logs, open_log
from olr_pg.capture.wanted_logs import (
    DecodedLogs,
    absent_gaps,
    check_beginning,
    ends_of,
    incarnations_of,
    lost_ends,
    unread_logs,
    wanted_stream,
    without_orphans,
)
from olr_pg.dictionary.model import Database
from olr_pg.errors import Code, OlrPgError
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.capture.continuity import LogStream


DATABASE: Final = Database("SIMDB")


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, list[ArchivedLog]]:
    folder = tmp_path_factory.mktemp("source")
    simulate(5, folder, size=400_000, shape=choose_shape(5, "random", threads=2))
    logs = discover_logs([str(folder / "logs")])
    return {number: [one for one in logs if one.header.thread == number] for number in (1, 2)}


def first_of_two(
    threads: Mapping[int, list[ArchivedLog]], sequence: int, incarnation_scn: int
) -> tuple[list[ArchivedLog], int]:
    """Thread 1, and thread 2 from a later log on; an SCN before that one."""
    log = threads[2][2]
    header = replace(log.header, sequence=sequence, resetlogs_scn=incarnation_scn)
    late = replace(log, header=header)
    scn = header.first_scn - 1
    assert threads[1][0].header.first_scn <= scn
    return [*threads[1], late], scn


def test_a_thread_that_was_enabled_later_has_nothing_before_its_first_log(
    threads: Mapping[int, list[ArchivedLog]],
) -> None:
    logs, scn = first_of_two(threads, 1, 1)
    check_beginning(logs, scn)


@pytest.mark.parametrize("sequence", [1, 2])
def test_a_thread_whose_first_logs_are_gone(
    threads: Mapping[int, list[ArchivedLog]], sequence: int
) -> None:
    """Sequence 1 is no proof: with a new incarnation every thread begins there again."""
    begin = threads[2][2].header.first_scn
    logs, scn = first_of_two(threads, sequence, begin if sequence == 1 else 1)
    with pytest.raises(OlrPgError) as caught:
        check_beginning(logs, scn)
    assert caught.value.code == 2010
    assert caught.value.where["thread"] == 2


def test_a_start_at_the_oldest_log_needs_the_redo_behind_the_dictionary(
    threads: Mapping[int, list[ArchivedLog]],
) -> None:
    """What lies between the dictionary and the oldest log of any thread would not be missed."""
    first_scn = threads[2][2].header.first_scn
    logs = [*threads[1], *threads[2][2:]]
    check_beginning(logs, 0)
    check_beginning(logs, 0, known_scn=first_scn)
    check_beginning(logs, first_scn, known_scn=first_scn - 1)  # it was asked to leave that out
    with pytest.raises(OlrPgError) as caught:
        check_beginning(logs, 0, known_scn=first_scn - 1)
    assert caught.value.code == 2010
    assert caught.value.where["thread"] == 2
    assert caught.value.where["scn"] == first_scn - 1
    assert f"`apply.start-scn` to {first_scn}" in caught.value.action


def after_a_restart(log: ArchivedLog, scns: int) -> ArchivedLog:
    """The same log, if the instance was restarted before it: it begins `scns` later."""
    return replace(log, header=replace(log.header, first_scn=log.header.first_scn + scns))


def test_between_the_logs_of_a_restarted_instance_is_no_redo(
    threads: Mapping[int, list[ArchivedLog]],
) -> None:
    """If the source knows where the previous log ends, a run can begin there or later."""
    end = threads[1][2].next_scn
    log = after_a_restart(threads[1][3], 7)
    logs = [log, *threads[1][4:]]
    known = [replace(log, previous_end=end), *threads[1][4:]]
    for scn in (end, end + 3, end + 7):
        check_beginning(known, scn)
        check_beginning([threads[1][2], *logs], scn)
    for scn in (end - 1, end, end + 6):
        with pytest.raises(OlrPgError) as caught:
            check_beginning(logs, scn)
        assert caught.value.code == 2010
    with pytest.raises(OlrPgError):
        check_beginning(known, end - 1)


def test_an_image_that_ends_with_a_log_goes_on_after_a_restart(
    threads: Mapping[int, list[ArchivedLog]],
) -> None:
    last = threads[1][2]
    reached = {1: Reached(last.position, last.next_scn)}
    for removed, gaps in ((0, []), (1, [(1, last.header.sequence + 1, last.header.sequence + 1)])):
        found = [after_a_restart(threads[1][3 + removed], 7), *threads[1][4 + removed :]]
        check_beginning(found, last.next_scn, reached)
        start = DecodedLogs()
        start.begin_at(reached.values())
        scan = LogScan(tuple(found), (), ())
        assert sequences(wanted_stream(scan, DATABASE, last.next_scn, reached, start)) == gaps


def test_logs_that_end_before_the_run_begins_are_not_missing(
    threads: Mapping[int, list[ArchivedLog]],
) -> None:
    """The source does not list a log without redo that ends where the last decoded log ends."""
    last, following = threads[1][2], threads[1][4]
    known = replace(following, previous_end=last.next_scn)
    decoded = DecodedLogs()
    decoded.add(last.position)
    for before in ((), (threads[1][2],)):
        for log, gaps in ((known, 0), (following, 1)):
            scan = LogScan((*before, log, *threads[1][5:]), (), ())
            stream = wanted_stream(scan, DATABASE, last.next_scn, {}, decoded)
            assert len(sequences(stream)) == gaps


def sequences(stream: LogStream) -> list[tuple[int, int, int]]:
    """Of its gaps: thread, first and last sequence."""
    return [(gap.thread, gap.first_sequence, gap.last_sequence) for gap in stream.gaps]


@pytest.mark.parametrize("removed", [[], [4], [2, 3, 4], [1, 2, 3], [0, 1, 2, 3, 4]])
def test_a_log_is_missing_whatever_is_left_of_those_that_were_read(
    threads: Mapping[int, list[ArchivedLog]], removed: list[int]
) -> None:
    decoded = DecodedLogs()
    for log in threads[1][:5]:
        decoded.add(log.position)
    missing = threads[1][5].position.sequence
    logs = [log for at, log in enumerate(threads[1]) if at not in (*removed, 5)]
    stream = wanted_stream(LogScan(tuple(logs), (), ()), DATABASE, 0, {}, decoded)
    assert sequences(stream) == [(1, missing, missing)]
    logs = [log for at, log in enumerate(threads[1]) if at not in removed]
    stream = wanted_stream(LogScan(tuple(logs), (), ()), DATABASE, 0, {}, decoded)
    assert sequences(stream) == []
    assert set(threads[1][5:]) <= set(stream.readable)


def test_what_is_missing_before_the_beginning_is_not_wanted(
    threads: Mapping[int, list[ArchivedLog]],
) -> None:
    logs = [log for at, log in enumerate(threads[1]) if at not in (1, 2)]
    scan, decoded = LogScan(tuple(logs), (), ()), DecodedLogs()
    begin = threads[1][3].header.first_scn
    assert sequences(wanted_stream(scan, DATABASE, begin, {}, decoded)) == []
    lost = [threads[1][at].position.sequence for at in (1, 2)]
    for scn in (0, begin - 1):
        assert sequences(wanted_stream(scan, DATABASE, scn, {}, decoded)) == [(1, *lost)]


@pytest.mark.parametrize("block", [0, 5])
def test_a_start_from_an_image_waits_for_the_logs_that_the_run_would_wait_for(
    threads: Mapping[int, list[ArchivedLog]], block: int
) -> None:
    """Whichever logs are there: next, later and older ones; the image ends at a log or in one."""
    logs, last = threads[1], threads[1][2]
    scn = logs[1].header.first_scn
    at = last.next_scn + (1 if block else 0)
    reached = {1: Reached(last.position, at, block)}
    seen = set[bool]()
    for there in product([False, True], repeat=7):
        found = [log for log, is_there in zip(logs, there, strict=False) if is_there]
        scan = LogScan(tuple(found), (), ())
        run, start = DecodedLogs(), DecodedLogs()
        for log in logs[:3]:
            run.add(log.position)
        if block:
            run.read_up_to(logs[3].position, block)
        check_beginning(found, scn, reached)
        start.begin_at(reached.values())
        waits = wanted_stream(scan, DATABASE, scn, {}, run)
        again = wanted_stream(scan, DATABASE, scn, reached, start)
        assert sequences(again) == sequences(waits), there
        assert unread_logs(again.readable, scn, reached) == [
            log for log in waits.readable if not run.has_all(log)
        ]
        seen.add(bool(waits.gaps))
    assert seen == {False, True}


OLD, NEW = 1_000, 2_000


@pytest.fixture(scope="module")
def any_log(real_log_dir: Path) -> ArchivedLog:
    return open_log(str(real_log_dir / "arch1_15_1224959854.dbf"))


def log_of(
    any_log: ArchivedLog, resetlogs: int, sequence: int, first: int, end: int
) -> ArchivedLog:
    begin = 1 if resetlogs == OLD else 250
    header = replace(
        any_log.header, resetlogs_id=resetlogs, resetlogs_scn=begin, sequence=sequence,
        first_scn=first, next_scn=end,
    )  # fmt: skip
    return replace(any_log, header=header)


def test_each_incarnation_ends_where_the_first_later_one_begins() -> None:
    assert ends_of([(1, 10), (3, 300), (2, 200)]) == {1: 200, 2: 300}


def test_orphaned_redo_is_cut_and_left_out(any_log: ArchivedLog) -> None:
    logs = [
        log_of(any_log, OLD, 1, 100, 200),
        log_of(any_log, OLD, 2, 200, 300),
        log_of(any_log, OLD, 3, 300, 400),
        log_of(any_log, NEW, 1, 250, 500),
    ]
    kept = without_orphans(logs, ends_of(incarnations_of(logs)))
    assert [(log.header.resetlogs_id, log.header.sequence, log.end_scn) for log in kept] == [
        (OLD, 1, None),
        (OLD, 2, 250),
        (NEW, 1, None),
    ]


def test_a_log_before_the_resetlogs_is_missed(any_log: ArchivedLog) -> None:
    (lost,) = lost_ends([log_of(any_log, OLD, 1, 100, 200)], {OLD: 250})
    assert (lost.position.sequence, lost.first_scn, lost.next_scn) == (2, 200, 250)


def test_nothing_is_missed_where_the_last_log_reaches_the_resetlogs(any_log: ArchivedLog) -> None:
    assert not lost_ends([log_of(any_log, OLD, 1, 100, 248)], {OLD: 250})
    assert not lost_ends([log_of(any_log, OLD, 1, 100, 200)], {OLD: 250}, scn=250)


def test_the_rest_of_a_log_that_was_half_read_is_missed_whatever_its_scn(
    any_log: ArchivedLog,
) -> None:
    half = replace(log_of(any_log, OLD, 1, 100, 249), grows=True)
    whole = log_of(any_log, OLD, 1, 100, 249)
    (lost,) = lost_ends([half], {OLD: 250})
    assert (lost.position.sequence, lost.first_scn) == (1, 249)
    assert not lost_ends([half, whole], {OLD: 250})
    assert not lost_ends([whole, half], {OLD: 250})
    assert not lost_ends([replace(half, header=replace(half.header, next_scn=250))], {OLD: 250})


ABSENT, LISTED = "absent", "listed"


@pytest.mark.parametrize("scn", [0, 100, 150, 200, 250, 399])
@pytest.mark.parametrize("read", [None, 1, 2, 3])
@pytest.mark.parametrize("from_image", [False, True])
def test_which_absent_logs_are_missed(
    any_log: ArchivedLog, scn: int, read: int | None, *, from_image: bool
) -> None:
    """Each state of three logs of a thread: found, absent, or absent with a copy that is listed.

    Behind a log that was read, all are needed. Without one, the oldest log that was found is the
    beginning (whether it begins early enough, `check_beginning` decides), but a copy that is listed
    may still arrive. Without any log of the thread, those that decoding would begin with count.
    """
    other = log_of(any_log, OLD, 9, 250, 400)
    other = replace(other, header=replace(other.header, thread=2))
    for states in product(("found", ABSENT, LISTED), repeat=3):
        logs = {number: log_of(any_log, OLD, number, 100 * number, 100 * number + 100)
                for number in (1, 2, 3)}  # fmt: skip
        known = dict(zip((1, 2, 3), states, strict=True))
        found = [logs[number] for number in known if known[number] == "found"]
        problem = OlrPgError(Code.LOG_NOT_BROUGHT, "the line is down")
        absent = tuple(
            AbsentLog(
                log.position, log.header.first_scn, log.next_scn,
                problem if known[number] == LISTED else None,
            )
            for number, log in logs.items()
            if known[number] != "found"
        )  # fmt: skip
        decoded, reached = DecodedLogs(), dict[int, Reached]()
        if read is not None and from_image:
            reached[1] = Reached(logs[read].position, logs[read].next_scn)
        elif read is not None:
            decoded.add(logs[read].position)
        expected = set()
        for number, state in known.items():
            end = 100 * number + 100
            oldest = min((one for one in known if known[one] == "found"), default=None)
            if state == "found":
                continue
            if read is not None:
                is_missed = number > read
            elif state == LISTED:
                is_missed = end > scn
            elif oldest is not None:
                is_missed = number > oldest
            else:
                is_missed = end > (scn or 250)
            if is_missed:
                expected.add((number, 100 * number))
        gaps = absent_gaps(LogScan((*found, other), (), (), absent=absent), scn, reached, decoded)
        assert {(one.first_sequence, one.scn) for one in gaps} == expected
        assert {(one.resetlogs_id, one.thread) for one in gaps} <= {(OLD, 1)}


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 6))))
def test_it_knows_what_a_set_knows(logs: list[tuple[int, int, int]]) -> None:
    decoded, known = DecodedLogs(), set[LogPosition]()
    for resetlogs, thread, sequence in logs:
        position = LogPosition(resetlogs, thread, sequence, 7)
        decoded.add(position)
        known.add(position)
    for resetlogs in (1, 2):
        for thread in (1, 2, 3):
            for sequence in range(8):
                one = LogPosition(resetlogs, thread, sequence, 7)
                assert (one in decoded) == (one in known)
                assert one._replace(dbid=8) not in decoded
    for thread in (1, 2, 3):
        of_thread = [one for one in known if one.thread == thread]
        assert decoded.newest(thread) == max(of_thread, default=None)


def test_consecutive_logs_take_no_more_room() -> None:
    decoded = DecodedLogs()
    for sequence in range(1, 10_000):
        for thread in (1, 2):
            decoded.add(LogPosition(5, thread, sequence, 7))
    assert len(decoded) == 2
