"""The process that a data directory names: there, gone, a zombie, or somebody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.pid_file import PidFile, drop_stale_pid_file, is_process, read_pid_file

WHOLE = "4711\n/data\n1790000000\n5433\n\n127.0.0.1\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (WHOLE, PidFile(4711, 5433)),
        (None, None),
        ("", None),
        ("4711\n/data\n", None),
        ("x\n/data\n1\n5433\n", None),
    ],
    ids=["whole", "none", "empty", "half", "no number"],
)
def test_it_is_read_where_it_is_whole(
    tmp_path: Path, text: str | None, found: PidFile | None
) -> None:
    if text is not None:
        (tmp_path / "postmaster.pid").write_text(text)
    assert read_pid_file(tmp_path) == found


def test_a_process_that_has_ended_is_none_though_nobody_has_waited_for_it() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert is_process(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_process(process.pid)
    assert not is_process(process.pid)


def test_the_file_of_a_server_that_is_gone_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "postmaster.pid"
    for pid in (2**22 + 1, os.getpid()):  # no process has this number; ours works elsewhere
        file.write_text(WHOLE)
        drop_stale_pid_file(PidFile(pid, 5433), tmp_path)
        assert not file.exists()


def test_the_file_of_a_server_that_does_not_answer_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "postmaster.pid"
    file.write_text(WHOLE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OlrPgError) as caught:
        drop_stale_pid_file(PidFile(os.getpid(), 5433), tmp_path)
    assert caught.value.code == Code.EMBEDDED_POSTGRES_DOWN
    assert file.exists()
