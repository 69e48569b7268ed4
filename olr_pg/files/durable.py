"""Writes files atomically and durably, checks their versions, and detects errors that a full disk
causes.

After an error of a full disk, `has_room` checks whether the disk has space again.
"""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import orjson

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.owned import check_plain, open_plain, remove_plain
from olr_pg.files.system_errors import advice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def check_version(data: bytes, newest: int, path: Path, *, within: str = "") -> None:
    """Refuse a file that a newer version of olr_pg wrote. This function accepts data that is not in
    our format.

    Args:
        newest: the newest version of the format that this olr_pg supports.
        within: the key of the JSON object that contains the version; empty if the document itself
            contains it.

    Raises:
        OlrPgError: 4035, a newer version of olr_pg wrote the file.
    """
    try:
        document = orjson.loads(data)
    except ValueError:
        return
    if within and isinstance(document, dict):
        document = document.get(within)
    version = document.get("version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > newest:
        raise OlrPgError(
            Code.FILE_OF_NEWER_VERSION,
            f"the file has version {version}; this release reads versions up to {newest}",
            path=str(path),
        )


def read_state(path: Path, newest: int, code: Code = Code.DATA_DIRECTORY_UNUSABLE) -> bytes | None:
    """Return the content of a file in `context.data`; None if the file does not exist.

    Raises:
        OlrPgError: `code` the file cannot be read, 4035 its version is higher than `newest`.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OlrPgError(code, plain_reason(error), action=advice(error), path=str(path)) from error
    check_version(data, newest, path)
    return data


def write_state(path: Path, data: bytes) -> None:
    """Replace a file in `context.data` as `replace_file` does; raise the error 1092 on failure."""
    try:
        replace_file(path, data)
    except OSError as error:
        raise unusable(path, error) from error


def unusable(path: Path, error: OSError) -> OlrPgError:
    """Return the error 1092 for a file or directory in `context.data`."""
    code = Code.DATA_DIRECTORY_UNUSABLE
    return OlrPgError(code, plain_reason(error), action=advice(error), path=str(path))


def damage(data: bytes) -> str:
    """Return what is wrong with the content of a file in our directory that could not be read, for
    an operator: messages of a JSON parser would not help them.
    """
    if not data.strip(b"\0 \t\r\n"):
        return "the file is empty"
    try:
        orjson.loads(data)
    except ValueError:
        return "the file is truncated, or something else has changed it"
    return "a key is missing or has a wrong value"


def damaged(path: Path, data: bytes, action: str) -> OlrPgError:
    """Return the error 4036 for a file in our directory whose content could not be read.

    Args:
        action: what the operator can do, and what is lost if they delete the file.
    """
    return OlrPgError(Code.STATE_FILE_DAMAGED, damage(data), action=action, path=str(path))


def replace_file(path: Path, data: bytes) -> None:
    """Replace the contents of a file in our directory by `data`, durably. Even after a crash, the
    file has either all of the old or all of the new contents.

    Raises:
        OSError: the file cannot be replaced, or the path is not a regular file.
    """
    check_plain(path)
    with removed_on_failure(path.with_name(path.name + ".new")) as new:
        with open_plain(new, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    sync_directory(path.parent)


@contextmanager
def removed_on_failure(path: Path) -> Iterator[Path]:
    """Delete the file if an exception leaves the context. Otherwise the written part would use disk
    space, which may be scarce.
    """
    try:
        yield path
    except (OSError, OlrPgError):
        with suppress(OSError):
            remove_plain(path)
        raise


def sync_directory(path: Path) -> None:
    """Make the creation, renaming and deletion of files in a directory durable.

    Raises:
        OSError: the directory cannot be synced.
    """
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


_FULL: Final = (errno.ENOSPC, errno.EDQUOT)

PROBE_BYTES: Final = 1 << 20
"""Bytes that must be free before a disk counts as having space again; an appliance's small files
need fewer.
"""


def tells_of_full_disk(error: BaseException | None) -> bool:
    """Return whether an error, or the error that caused it, says that a disk is full or a quota is
    exhausted.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        error = error.__cause__ or error.__context__
    return False


def has_room(directory: Path) -> bool:
    """Return whether a directory has space for a file of `PROBE_BYTES` now.

    The function writes a test file, because the number of free bytes that a file system reports
    ignores quotas and the space that is reserved for root. Other errors (for example, missing
    permission) do not count as missing space.
    """
    try:
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, PROBE_BYTES)
    except OSError as error:
        return error.errno not in _FULL
    return True
