"""One appliance at a time in a directory, and one continuous verification of a target."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from olr_pg.appliance.data_lock import hold_data_lock, hold_verification_lock
from olr_pg.appliance.target import data_directory
from olr_pg.config.reading import parse_config
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


def test_a_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    document = {
        "context": {"data": "data"},
        "source": {"kind": "offline", "dictionary": "d.json", "logs": "logs"},
    }
    with pytest.raises(OlrPgError, match="the path is not a directory") as caught:
        data_directory(parse_config(document, tmp_path, {}))
    assert caught.value.code == Code.DATA_DIRECTORY_UNUSABLE


def test_a_target_is_compared_by_one_process_beside_its_appliance(tmp_path: Path) -> None:
    config = tmp_path / "olr-pg.json"
    document = {
        "source": {"kind": "offline", "dictionary": "d.json", "logs": "logs"},
        "apply": {"connect-string": "postgresql://h/a", "tables": ["S.T"]},
        "context": {"data": str(tmp_path)},
    }
    config.write_text(json.dumps(document))
    command = [sys.executable, "-m", "olr_pg", "verify", "--continuous", "--config", str(config)]
    with hold_data_lock(tmp_path), hold_verification_lock(tmp_path):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert "OLR-04046" in done.stderr
