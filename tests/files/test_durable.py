"""Files that are there whole or not at all, and know their version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.files.durable import check_version, removed_on_failure, replace_file

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "state"
    replace_file(path, b"old")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_put_in_place_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_file(path, b"new")
    assert list(tmp_path.iterdir()) == [path]


def test_only_a_failed_write_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "part"
    with removed_on_failure(path):
        path.write_bytes(b"x")
    assert path.exists()
    with pytest.raises(OSError, match="full"), removed_on_failure(path):
        raise OSError("the disk is full")
    assert not path.exists()


@pytest.mark.parametrize("data", [b'{"version": 3}', b'{"version": 1}', b"no json", b"[]"])
def test_known_versions_and_other_files_pass(tmp_path: Path, data: bytes) -> None:
    check_version(data, 3, tmp_path)


@pytest.mark.parametrize(
    ("data", "within"), [(b'{"version": 4}', ""), (b'{"head": {"version": 4}}', "head")]
)
def test_a_newer_version_is_refused(tmp_path: Path, data: bytes, within: str) -> None:
    with pytest.raises(OlrPgError) as caught:
        check_version(data, 3, tmp_path / "state", within=within)
    assert caught.value.code == Code.FILE_OF_NEWER_VERSION
