"""A log that is read part by part."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from olr_pg.capture.logs import open_log
from olr_pg.decoding import joined_logs
from olr_pg.decoding.joined_logs import stored_windows, unread_log
from olr_pg.decoding.split import open_for_decoding
from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.dump.log_text import DumpFilter, dump_logs
from olr_pg.redo.window import Log, read_windows
from olr_pg.simulator.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(2, tmp_path_factory.mktemp("sim"), workload="orders", size=300_000).logs[0]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_logs, "_PART_BYTES", 20_000)
    monkeypatch.setattr(joined_logs, "_BEHIND_BYTES", 0)
    monkeypatch.setattr(joined_logs, "_MORE_BYTES", 512)


def unread(path: Path) -> Log:
    log = open_log(str(path))
    return unread_log(log.path, log.header, log.size)


def lines(path: Path) -> Iterator[str]:
    return dump_logs([unread(path)], DumpFilter(), windows=stored_windows)


def test_its_windows_have_the_records_of_the_whole_log(made: Path) -> None:
    (whole,) = read_windows(open_for_decoding(str(made)))
    parts = list(stored_windows(unread(made)))
    assert len(parts) > 4
    assert parts[0].first == whole.first
    assert [part.first for part in parts[1:]] == [part.end for part in parts[:-1]]
    assert np.array_equal(np.concatenate([part.payload for part in parts]), whole.payload)
    assert list(lines(made)) == list(dump_logs([open_for_decoding(str(made))]))


def test_a_log_that_is_truncated_while_it_is_printed_is_an_error(
    made: Path, tmp_path: Path
) -> None:
    """A page that is mapped from such a file, or from a disk that fails, would end the process:
    SIGBUS.
    """
    log = Path(shutil.copy(made, tmp_path))
    printed = lines(log)
    for _ in range(20):
        next(printed)
    os.truncate(log, 30_000)
    with pytest.raises(OlrPgError) as raised:
        list(printed)
    assert raised.value.code == Code.LOG_TRUNCATED
    assert raised.value.where["file"] == str(log)
