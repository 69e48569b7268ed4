"""The place of a log in the redo stream, and how much of its file is redo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.capture.archived_log import LogPosition
from olr_pg.capture.logs import open_log

if TYPE_CHECKING:
    from pathlib import Path


def test_positions_sort_by_incarnation_thread_and_sequence() -> None:
    first, second, third, last = (
        LogPosition(1, 1, 9, 5),
        LogPosition(1, 2, 3, 5),
        LogPosition(1, 2, 4, 5),
        LogPosition(2, 1, 1, 5),
    )
    assert sorted([last, third, second, first]) == [first, second, third, last]


def test_a_real_log_is_where_its_name_says(real_log_dir: Path) -> None:
    log = open_log(str(real_log_dir / "arch1_15_1224959854.dbf"))
    assert (log.position.thread, log.position.sequence) == (1, 15)
    assert log.position.resetlogs_id == 1224959854
    following = open_log(str(real_log_dir / "arch1_16_1224959854.dbf"))
    assert log.next_scn == following.header.first_scn
    assert 0 < log.used_bytes <= log.size
    assert log.used_bytes == log.blocks * 512
