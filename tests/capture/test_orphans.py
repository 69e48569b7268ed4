"""What a RESETLOGS orphans, by the headers of logs: cut, left out, or missed at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from olr_pg.capture.logs import open_log
from olr_pg.capture.orphans import ends_of, incarnations_of, lost_ends, without_orphans

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.capture.archived_log import ArchivedLog

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
