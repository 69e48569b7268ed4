"""Scratch directories: one for each living process, none of a killed one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from olr_pg.spark.session import new_scratch

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PROGRAM = """
from olr_pg.spark.session import new_scratch
scratch = new_scratch()
(scratch.path / "file").write_text("kept as long as the process lives")
print(scratch.path, flush=True)
input()
"""


def test_what_a_killed_process_left_is_removed_and_a_living_one_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = f"import tempfile\ntempfile.tempdir = {str(tmp_path)!r}\n{PROGRAM}"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        other = tmp_path / process.stdout.readline().strip()
        own = new_scratch()
        (own.path / "file").touch()
        assert set(tmp_path.iterdir()) == {own.path, other}
        process.kill()
    assert (other / "file").exists()
    another = new_scratch()
    assert set(tmp_path.iterdir()) == {own.path, another.path}
    own.remove()
    another.remove()
    assert list(tmp_path.iterdir()) == []
