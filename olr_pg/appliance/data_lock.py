"""Ensures that only one appliance at a time uses a directory as `context.data`, and that only one
process at a time compares a target continuously.

A second process would delete the ready transactions of the first, write files with the same names,
and change the checkpoint of the first process. The ports do not prevent this, because the second
process can listen on other ports, or in another container.
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import unusable
from olr_pg.files.owned import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE_NAME: Final = "lock"
"""Name of the lock file in `context.data`. The file is never deleted; a running appliance holds a
lock on it.
"""
_VERIFICATION_NAME: Final = "verification.lock"


@contextmanager
def hold_data_lock(data: Path) -> Iterator[None]:
    """Hold the lock on `data` until the context or the process ends.

    Raises:
        OlrPgError: 4044 another appliance holds the lock, 1092 the file cannot be locked.
    """
    with _hold(data, FILE_NAME, Code.ANOTHER_APPLIANCE):
        yield


@contextmanager
def hold_verification_lock(directory: Path) -> Iterator[None]:
    """Hold the lock of continuous verification in a target's directory, until the context or the
    process ends.

    If two processes compared the same target, each would write its own results over the other's.

    Raises:
        OlrPgError: 4046 another process holds the lock, 1092 the file cannot be locked.
    """
    with _hold(directory, _VERIFICATION_NAME, Code.ANOTHER_VERIFICATION):
        yield


@contextmanager
def _hold(directory: Path, name: str, held: Code) -> Iterator[None]:
    path = directory / name
    try:
        file = open_plain(path, "ab")
    except OSError as error:
        raise unusable(directory, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OlrPgError(
                held, "another process holds the lock of this directory", path=str(directory)
            ) from error
        except OSError as error:
            raise OlrPgError(
                Code.DATA_DIRECTORY_UNUSABLE,
                f"{path} cannot be locked: {plain_reason(error)}",
                path=str(directory),
            ) from error
        yield
