"""Files that are there whole or not at all, and know their version.

A disk without room: what tells of it, and when it has some again.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.files.durable import (
    check_version,
    has_room,
    read_state,
    removed_on_failure,
    replace_file,
    tells_of_full_disk,
    write_state,
)
from tests.files.durable_writes import recorded
from tests.files.limits import no_more_files


def test_a_file_is_replaced_and_nothing_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    replace_file(path, b"old")
    writes = recorded(monkeypatch)
    replace_file(path, b"new")
    assert writes.keep(path)
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


def test_a_file_of_our_directory_is_read_and_written_or_an_error_says_why_not(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.json"
    assert read_state(path, 1) is None
    write_state(path, b'{"version": 2}')
    assert read_state(path, 2) == b'{"version": 2}'
    failing: list[tuple[Code, Callable[[], object]]] = [
        (Code.FILE_OF_NEWER_VERSION, lambda: read_state(path, 1)),
        (Code.DATA_DIRECTORY_UNUSABLE, lambda: read_state(tmp_path, 1)),
        (Code.DATA_DIRECTORY_UNUSABLE, lambda: read_state(path / "below", 1)),
        (Code.CHECKPOINT_UNUSABLE, lambda: read_state(tmp_path, 1, Code.CHECKPOINT_UNUSABLE)),
        (Code.DATA_DIRECTORY_UNUSABLE, lambda: write_state(path / "below", b"")),
    ]
    for code, work in failing:
        with pytest.raises(OlrPgError) as caught:
            work()
        assert caught.value.code is code


def test_the_advice_about_a_state_file_is_that_of_the_system_s_error(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"{}")
    with no_more_files(), pytest.raises(OlrPgError) as unread:
        read_state(path, 1)
    with no_more_files(), pytest.raises(OlrPgError) as unwritten:
        write_state(path, b"{}")
    for caught in (unread.value, unwritten.value):
        assert caught.code == 1092
        assert "ulimit -n" in caught.action
    with pytest.raises(OlrPgError) as elsewhere:
        write_state(tmp_path / "missing" / "x.json", b"{}")
    assert elsewhere.value.action == Code.DATA_DIRECTORY_UNUSABLE.action
