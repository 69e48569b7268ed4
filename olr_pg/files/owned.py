"""Ensures that olr_pg writes, replaces, makes private and deletes only its own files.

A path can name anything: a device, a pipe, a directory, another user's file, or a link to it. As
root, we could write to each of them, change its permissions, or replace it by a regular file (for
example ``/dev/null``, which the whole host uses). So a path from the user is accepted only if it is
free, or names a regular file of this user. A new file is created under another name, and gets its
permissions through its file descriptor, before it is renamed to the path. Links are not followed.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

_KINDS: Final = (
    (stat.S_ISLNK, "the path is a symbolic link: name the file itself"),
    (stat.S_ISDIR, "the path is a directory"),
    (stat.S_ISFIFO, "the path is a pipe, not a file"),
    (stat.S_ISCHR, "the path is a device, not a file"),
    (stat.S_ISBLK, "the path is a device, not a file"),
    (stat.S_ISSOCK, "the path is a socket, not a file"),
)


def check_plain(path: Path) -> os.stat_result | None:
    """Return the status of the regular file at `path`; None if nothing exists there.

    Raises:
        OSError: something that is not a regular file exists there, or the path cannot be examined.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    _check_kind(status, path)
    return status


def _check_kind(status: os.stat_result, path: Path) -> None:
    for is_kind, words in _KINDS:
        if is_kind(status.st_mode):
            raise OSError(errno.EINVAL, words, str(path))


def check_owned(path: Path) -> None:
    """Check that `path` is free, or names a regular file of this user.

    Raises:
        OSError: something that is not a regular file, or another user's file, exists there.
    """
    status = check_plain(path)
    if status is not None and status.st_uid != os.geteuid():
        raise OSError(errno.EPERM, "the file belongs to another user", str(path))


def check_writable(path: Path) -> None:
    """Check that a file can be written at `path`; callers do so before the work that produces its
    contents.

    Raises:
        OSError: no file can be written there.
    """
    check_owned(path)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}."):
        pass


@contextmanager
def written_whole(path: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file that replaces `path` atomically when the context ends.

    Args:
        path: a path at which nothing exists, or a regular file of this user.
        mode: permissions of the file; None for the umask's default.

    Raises:
        OSError: something else exists at `path`, or the file cannot be written.
    """
    check_owned(path)
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(new, flags, 0o666 if mode is None else mode & 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        check_owned(path)
        new.replace(path)
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def open_plain(path: Path, mode: str, buffering: int = -1) -> IO[bytes]:
    """Open a file of our own directory in a binary mode; it must be a regular file, or not exist
    yet.

    Args:
        buffering: as for `open`.

    Raises:
        OSError: something else exists at `path`, or the file cannot be opened.
    """
    # `Path.open` has no argument `opener`.
    return cast("IO[bytes]", open(path, mode, buffering, opener=_open_plain))


def _open_plain(path: str, flags: int) -> int:
    # O_NONBLOCK: if the path is a pipe, opening it must not wait for the pipe's other end.
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    try:
        _check_kind(os.fstat(handle), Path(path))
    except BaseException:
        os.close(handle)
        raise
    return handle


def remove_plain(path: Path) -> None:
    """Delete a regular file; do nothing if it does not exist.

    Raises:
        OSError: the path is not a regular file, or the file cannot be deleted.
    """
    if check_plain(path) is not None:
        path.unlink(missing_ok=True)


def set_mode(path: Path, mode: int) -> None:
    """Set the permissions of a regular file or directory of this user through its file descriptor.

    Raises:
        OSError: the path is neither, belongs to another user, or its permissions cannot be changed.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if not stat.S_ISDIR(status.st_mode):
            _check_kind(status, path)
        if status.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "the path belongs to another user", str(path))
        os.fchmod(handle, mode)
    finally:
        os.close(handle)
