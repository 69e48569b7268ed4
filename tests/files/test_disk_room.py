"""A disk without room: what tells of it, and when it has some again."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.files.disk_room import has_room, tells_of_full_disk


def failed_for(number: int) -> OlrPgError:
    try:
        try:
            raise OSError(number, os.strerror(number))
        except OSError as error:
            raise OlrPgError(Code.CHECKPOINT_UNWRITABLE, str(error)) from error
    except OlrPgError as error:
        return error


@pytest.mark.parametrize(
    ("number", "is_full"),
    [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EACCES, False), (errno.EROFS, False)],
)
def test_an_error_tells_of_a_full_disk_by_what_it_came_of(number: int, is_full: bool) -> None:
    assert tells_of_full_disk(failed_for(number)) is is_full


def test_nothing_and_errors_of_their_own_tell_of_none() -> None:
    assert not tells_of_full_disk(None)
    assert not tells_of_full_disk(OlrPgError(Code.INTERNAL, "No space left on device"))


def test_a_directory_that_takes_a_file_has_room_and_keeps_nothing_of_it(tmp_path: Path) -> None:
    assert has_room(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_lacks_something_else(tmp_path: Path) -> None:
    assert has_room(tmp_path / "gone")


def test_a_full_file_system_has_room_once_there_is_some(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small file system")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", tmp_path], check=False,
                      capture_output=True).returncode:  # fmt: skip
        pytest.skip("nothing can be mounted here")
    try:
        with pytest.raises(OSError, match="No space left"):
            (tmp_path / "ballast").write_bytes(bytes(8 << 20))
        assert not has_room(tmp_path)
        (tmp_path / "ballast").unlink()
        assert has_room(tmp_path)
    finally:
        subprocess.run(["umount", tmp_path], check=True)
