"""What demos leave behind is found, and removed with its PostgreSQL; nothing else is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.appliance.data_lock import hold_data_lock
from olr_pg.appliance.demo_removal import PREFIX, folder_size, remove_demos
from olr_pg.postgres.embedded import start_embedded

if TYPE_CHECKING:
    from pathlib import Path


def remains(root: Path, name: str) -> Path:
    folder = root / f"{PREFIX}{name}"
    (folder / "data").mkdir(parents=True)
    (folder / "dictionary.json").write_text("12345")
    return folder


def test_the_folder_goes_and_the_server_ends(tmp_path: Path) -> None:
    folder = remains(tmp_path, "one")
    cluster = start_embedded(folder / "data" / "postgres")
    place = cluster.directory
    with psycopg.connect(cluster.connect_string):
        pass
    # The demo's own process has ended.
    cluster._lock.close()
    (one,) = remove_demos(tmp_path)
    assert (one.folder, one.stopped, one.kept) == (folder, True, "")
    assert one.size > 5
    assert not folder.exists()
    assert not place.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(cluster.connect_string)


def test_a_demo_at_work_is_left(tmp_path: Path) -> None:
    folder = remains(tmp_path, "busy")
    with hold_data_lock(folder / "data"):
        (one,) = remove_demos(tmp_path)
    assert one.kept == "a demo is running in it"
    assert folder.exists()


def test_nothing_else_is_touched(tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.mkdir()
    (other / "file").write_text("x")
    (tmp_path / f"{PREFIX}link").symlink_to(other)
    (tmp_path / f"{PREFIX}file").write_text("x")
    broken = tmp_path / f"{PREFIX}early"
    broken.mkdir()
    assert [one.folder for one in remove_demos(tmp_path)] == [broken]
    assert (other / "file").exists()
    assert folder_size(other) == 1
