"""Whether the logs begin where decoding must start."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Final

import pytest

from olr_pg.capture.archived_log import Reached
from olr_pg.capture.finished_logs import DecodedLogs
from olr_pg.capture.logs import LogScan, discover_logs
from olr_pg.capture.wanted_logs import check_beginning, unread_logs, wanted_stream
from olr_pg.dictionary.model import Database
from olr_pg.errors import OlrPgError
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Mapping

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
