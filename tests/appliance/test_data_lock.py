"""One appliance at a time in a directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from olr_pg.appliance.data_lock import hold_data_lock
from olr_pg.errors import Code, OlrPgError

HOLD = """
import sys
from pathlib import Path
from olr_pg.appliance.data_lock import hold_data_lock
with hold_data_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    with hold_data_lock(tmp_path), pytest.raises(OlrPgError) as caught, hold_data_lock(tmp_path):
        pass
    assert caught.value.code == Code.ANOTHER_APPLIANCE
    with hold_data_lock(tmp_path):
        pass


def test_a_process_that_is_killed_leaves_no_lock(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(OlrPgError), hold_data_lock(tmp_path):
            pass
        holder.kill()
    with hold_data_lock(tmp_path):
        pass


def test_a_directory_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(OlrPgError) as caught, hold_data_lock(tmp_path / "none"):
        pass
    assert caught.value.code == Code.DATA_DIRECTORY_UNUSABLE
