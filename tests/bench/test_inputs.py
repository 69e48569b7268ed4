from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.bench.inputs import ONE_TRANSACTION, SITES, log_set
from olr_pg.capture.logs import open_log

if TYPE_CHECKING:
    from pathlib import Path


def test_logs_are_kept_for_the_next_run(tmp_path: Path) -> None:
    made = log_set(tmp_path, "orders", 30_000)
    times = [log.stat().st_mtime_ns for log in made.logs]
    again = log_set(tmp_path, "orders", 30_000)
    assert again == made
    assert times == [log.stat().st_mtime_ns for log in again.logs]


@pytest.mark.usefixtures("made_here")
def test_logs_come_in_the_order_of_their_sequence_numbers(tmp_path: Path) -> None:
    logs = log_set(tmp_path, "orders", 2_000_000, 8_000).logs
    sequences = [open_log(str(log)).header.sequence for log in logs]
    assert sequences == sorted(sequences)
    assert list(logs) != sorted(logs), "so many that their names are not in that order"


@pytest.mark.usefixtures("made_here")
def test_the_beginning_of_logs(tmp_path: Path) -> None:
    whole = log_set(tmp_path, "orders", 100_000, 8_000)
    sizes = [log.stat().st_size for log in whole.logs]
    assert whole.beginning(whole.size) == whole
    two = whole.beginning(sum(sizes[:3]) - 1)
    assert (two.logs, two.size) == (whole.logs[:2], sum(sizes[:2]))
    assert whole.beginning(1).logs == whole.logs[:1]


@pytest.mark.usefixtures("made_here")
def test_every_input_of_a_site_is_made_and_kept_by_itself(tmp_path: Path) -> None:
    made = [log_set(tmp_path, "wide", 30_000, rows=rows) for rows in SITES.values()]
    assert len({one.folder for one in made}) == len(SITES)
    assert [len(one.snapshot.tables[0].columns) for one in made] == [
        rows.columns for rows in SITES.values()
    ]
    one = log_set(tmp_path, "wide", 60_000, rows=ONE_TRANSACTION)
    assert not (one.folder / "truth.jsonl").exists()


@pytest.mark.usefixtures("made_here")
def test_copies_are_no_input_unless_they_are_asked_for(tmp_path: Path) -> None:
    drawn = log_set(tmp_path, "wide", 30_000)
    copied = log_set(tmp_path, "wide", 30_000, copies=True)
    assert drawn.folder != copied.folder
