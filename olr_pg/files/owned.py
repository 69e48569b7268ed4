"""Ensures that olr_pg writes, replaces, makes private and deletes only its own files.

A path can name anything: a device, a pipe, a directory, another user's file, or a link to it. As
root, we could write to each of them, change its permissions, or replace it by a regular file (for
example ``/dev/null``, which the whole host uses). So a path from the user is accepted only if it is
free, or names a regular file of this user. A new file is created under another name, and gets its
permissions through its file descriptor, before it is renamed to the path. Links are not followed.

Files that contain rows are private, whatever the umask is. The files for which that is not possible
are listed.
"""

from __future__ import annotations

import errno
import os
import re
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


PRIVATE_UMASK: Final = 0o077
_DIRECTORY_MODE: Final = 0o700
_PASSABLE_MODE: Final = 0o711
_FILE_MODE: Final = 0o600

_TARGETS: Final = "targets"
"""The directory of the targets' directories, each of which can contain an embedded PostgreSQL."""

_CLUSTER: Final = "postgres"
"""The directory of an embedded PostgreSQL, which makes it private itself. If we are root, that
PostgreSQL runs as another user.
"""

_OURS: Final = frozenset(
    {
        *("applied.json", "checkpoint.json", "containers.json", "created-tables.json"),
        *("dictionary-changes.jsonl", "encryption.json", "incarnation.json", "incidents", "lock"),
        *("online", "ready", "recovery", "spill", "spool", "status.json", "tables.json"),
        *("tables.lock", "threads.json", "vault", "verification.lock", "verified.json"),
        *("walks.json", _TARGETS, _CLUSTER),
        *("history.sqlite", "history.sqlite-shm", "history.sqlite-wal"),
    }
)
"""Files that an appliance writes to its data directory."""

_DICTIONARY: Final = re.compile(r"dictionary(-\d+)?(\..+)?\.json")
"""The name of a stored dictionary: of a run, or of the SCN at which a load began; if the source has
several containers, with the name of the container.
"""


@contextmanager
def private_umask() -> Iterator[None]:
    """While the context is active, make all files private that this process and its children
    create.
    """
    before = os.umask(PRIVATE_UMASK)
    try:
        yield
    finally:
        os.umask(before)


def make_private_directory(path: Path, *, passable: bool = False) -> None:
    """Create a directory that only this user can access, and its missing parents.

    An existing directory is not changed; use `close_to_others` for it.

    Args:
        passable: as for `close_to_others`.

    Raises:
        OSError: the directory cannot be created.
    """
    if path.is_dir():
        return
    made = [path]
    while not made[-1].parent.exists():
        made.append(made[-1].parent)
    with private_umask():
        path.mkdir(parents=True, exist_ok=True)
    for one in made if passable else ():
        set_mode(one, _PASSABLE_MODE)


def close_to_others(data: Path, *, passable: bool = False) -> list[Path]:
    """Remove other users' access to an appliance's data directory; return the paths that they can
    still read.

    Only files that an appliance writes are changed. The directory itself is changed only if it
    contains no other files, because somebody else may need these.

    Args:
        passable: let other users open paths below the directory without listing it; a PostgreSQL
            that runs as another user needs this.
    """
    loose = list[Path]()
    ours = [entry for entry in data.iterdir() if _is_ours(entry.name)]
    for entry in ours:
        if entry.name != _CLUSTER:
            is_opened = passable and entry.name == _TARGETS
            loose += close_tree_to_others(entry, _PASSABLE_MODE if is_opened else _DIRECTORY_MODE)
    if len(ours) == sum(1 for _ in data.iterdir()):
        return loose + _close(data, _PASSABLE_MODE if passable else _DIRECTORY_MODE)
    return loose + ([data] if _is_readable(data, _DIRECTORY_MODE) else [])


def close_tree_to_others(top: Path, directory_mode: int = _DIRECTORY_MODE) -> list[Path]:
    """Remove other users' access to a file, or to a directory with all its contents; return the
    paths that they can still read.

    Args:
        directory_mode: the permissions that directories may keep.
    """
    loose = list[Path]()
    if top.is_dir() and not top.is_symlink():
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name != _CLUSTER]
            loose += _close(Path(folder), directory_mode)
            for name in files:
                loose += _close(Path(folder, name), _FILE_MODE)
        return loose
    return _close(top, _FILE_MODE)


def _is_ours(name: str) -> bool:
    name = name.removesuffix(".new")
    return name in _OURS or _DICTIONARY.fullmatch(name) is not None


def _is_readable(path: Path, mode: int) -> bool:
    return bool(stat.S_IMODE(path.lstat().st_mode) & ~mode & 0o077)


def _close(path: Path, mode: int) -> list[Path]:
    """Remove other users' permissions; return the path if that fails, otherwise an empty list."""
    try:
        if path.is_symlink() or not _is_readable(path, mode):
            return []
        status = path.lstat()
        if status.st_mode & stat.S_ISVTX:  # everybody may write there, as to /tmp
            return [path]
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return [path]  # not ours: olr_pg creates no devices or pipes
        set_mode(path, stat.S_IMODE(status.st_mode) & (mode | ~0o777))
    except FileNotFoundError:  # a process that ends has deleted its file
        return []
    except OSError:
        return [path]
    return []


def others_can_read(path: Path) -> bool:
    """Return whether any user of this machine can read a file; False if it cannot be examined."""
    try:
        place = path.resolve(strict=True)
        return bool(place.stat().st_mode & stat.S_IROTH) and _is_reachable(place)
    except OSError:
        return False


def others_can_write(path: Path) -> bool:
    """Return whether another user can change or replace a file or the contents of a directory;
    False if it cannot be examined.

    In a directory such as /tmp, where everybody can write, another user may have created the path
    first, so there it must belong to this user or to root. Elsewhere, an administrator has given it
    to its owner, who is trusted; the image does so. A group that can write is trusted, too: many
    systems give each user a group, and Kubernetes gives a volume to a group.

    The directories above may be open to everybody, as volumes of Kubernetes often are: whoever
    replaces the path there is its owner.
    """
    try:
        place = path.resolve(strict=True)
        status = place.stat()
        if status.st_mode & stat.S_IWOTH and _is_reachable(place):
            return True
        is_strangers = status.st_uid not in (0, os.geteuid())
        return is_strangers and any(
            folder.stat().st_mode & stat.S_IWOTH for folder in place.parents
        )
    except OSError:
        return False


def _is_reachable(place: Path) -> bool:
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in place.parents)
