"""What holds rows is closed to other users, whatever the umask, and also what was left open."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from olr_pg.appliance import container_names, created_tables, data_lock, encryption
from olr_pg.appliance.dictionary_export import container_files
from olr_pg.appliance.open_source import DICTIONARY
from olr_pg.applier.target import applied_file
from olr_pg.capture import lineage, redo_threads
from olr_pg.config import changed_tables
from olr_pg.dictionary import change_history
from olr_pg.files.private import close_to_others, close_tree_to_others, make_private_directory
from olr_pg.load.verification import continuous
from olr_pg.monitor import history, proofs, service
from olr_pg.oracle.source_containers import begun_file
from olr_pg.server import checkpoint

ENTRY = "import os; os.umask(0); from olr_pg.cli.entry import run; run()"


def open_to_others(top: Path) -> list[str]:
    """Everything below a directory that others may read, write or list, but for PostgreSQL's."""
    found = list[str]()
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name != "postgres"]
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:
                continue
            # Others may go through a data directory to the embedded PostgreSQL, but not look.
            if stat.S_IMODE(mode) & (0o066 if path == top else 0o077) and not path.is_symlink():
                found.append(f"{path} {stat.filemode(mode)}")
    return found


def test_a_run_leaves_nothing_open_whatever_the_umask(tmp_path: Path, real_log_dir: Path) -> None:
    data, temporary = tmp_path / "data", tmp_path / "temporary"
    temporary.mkdir(mode=0o700)
    make_private_directory(data)
    left = data / "spill" / "left"
    left.parent.mkdir(mode=0o755)
    left.write_text("rows")
    left.chmod(0o644)
    document = {
        "context": {"data": str(data)},
        "source": {
            "kind": "offline",
            "dictionary": str(real_log_dir / "TEST-chkpt-2266634.json"),
            "logs": str(real_log_dir / "*.dbf"),
        },
        "target": {"address": ":0"},
        "apply": {
            "connect-string": "embedded",
            "tables": ["OLR_TEST.TEST_CDC"],
            "create-tables": True,
        },
        "status": {"address": ":0"},
    }
    config = tmp_path / "c.json"
    config.write_text(json.dumps(document))
    seen = set[str]()
    with subprocess.Popen(
        [sys.executable, "-c", ENTRY, "run", "--once", "--config", str(config)],
        env={**os.environ, "TMPDIR": str(temporary)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = list[str]()
        for line in process.stderr:
            said.append(line)
            if "status page" in line or "decoded" in line or "applied" in line:
                seen.update(open_to_others(data), open_to_others(temporary))
    assert process.returncode == 0, "".join(said)
    seen.update(open_to_others(data), open_to_others(temporary))
    assert seen == set()
    assert (data / "checkpoint.json").exists()


def test_what_is_open_is_closed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name in ("incidents/a.bin", "targets/one/ready/1", "recovery/2", "status.json"):
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("rows")
    for folder, _, files in os.walk(data):
        Path(folder).chmod(0o755)
        for name in files:
            Path(folder, name).chmod(0o664)

    assert close_to_others(data) == []
    assert open_to_others(data) == []
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


DICTIONARIES = container_files(Path(DICTIONARY), ("PDB1", "X.Y"))


@pytest.mark.parametrize(
    "name",
    [
        *(applied_file.FILE_NAME, change_history.FILE_NAME, changed_tables.FILE_NAME),
        *(checkpoint.FILE_NAME, container_names.FILE_NAME, continuous.WALKS),
        *(created_tables.FILE_NAME, data_lock.FILE_NAME, data_lock._VERIFICATION_NAME),
        *(encryption.FILE_NAME, history.FILE_NAME, lineage.FILE_NAME, proofs.FILE_NAME),
        *(redo_threads.FILE_NAME, service.FILE_NAME),
        *(str(begun_file(one, 7)) for one in (Path(DICTIONARY), *DICTIONARIES)),
        *map(str, (DICTIONARY, *DICTIONARIES)),
    ],
)
def test_each_file_of_an_appliance_is_known_as_its_own(tmp_path: Path, name: str) -> None:
    """With a file of somebody else, the directory would stay open."""
    tmp_path.chmod(0o755)
    for path in (tmp_path / name, tmp_path / f"{name}.new"):
        path.write_text("rows")
        path.chmod(0o644)
    assert close_to_others(tmp_path) == []
    assert open_to_others(tmp_path) == []


def test_a_directory_that_holds_other_things_is_told_and_not_changed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    other = tmp_path / "somebody's.txt"
    other.write_text("words")
    other.chmod(0o644)
    (tmp_path / "checkpoint.json").write_text("{}")

    assert close_to_others(tmp_path) == [tmp_path]
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert stat.S_IMODE(other.stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "checkpoint.json").stat().st_mode) == 0o600


def test_a_place_for_everybody_is_told_and_not_changed(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)

    assert close_tree_to_others(tmp_path) == [tmp_path]
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    elsewhere.chmod(0o755)
    data = tmp_path / "data"
    make_private_directory(data)
    (data / "spill").symlink_to(elsewhere)

    assert close_to_others(data) == []
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755


def test_others_can_pass_through_a_passable_directory_to_each_target_and_list_nothing(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    target = data / "targets" / "one"
    make_private_directory(target, passable=True)
    moved = data / "targets" / "moved"
    moved.mkdir(mode=0o755)
    (moved / "checkpoint.json").write_text("{}")
    (data / "spill").mkdir(mode=0o755)

    assert close_to_others(data, passable=True) == []

    folders = (data, data / "targets", target, moved)
    assert {stat.S_IMODE(one.stat().st_mode) for one in folders} == {0o711}
    assert stat.S_IMODE((moved / "checkpoint.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((data / "spill").stat().st_mode) == 0o700
