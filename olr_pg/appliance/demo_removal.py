"""Removes the folders that demos leave, and stops the PostgreSQL in them."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.appliance.data_lock import hold_data_lock
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.postgres.embedded import remove_embedded

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX: Final = "olr-pg-demo-"


class Removed(NamedTuple):
    """The result of removing a demo's folder.

    Attributes:
        size: bytes of the files in the folder.
        stopped: whether a PostgreSQL was running in the folder and was stopped.
        kept: the reason why the folder was not removed; empty if it was removed.
    """

    folder: Path
    size: int
    stopped: bool = False
    kept: str = ""


def new_folder() -> Path:
    """Create a folder for a demo."""
    return Path(tempfile.mkdtemp(prefix=PREFIX))


def folder_size(folder: Path) -> int:
    """Return the total size in bytes of all readable files below a folder."""
    size = 0
    for place, _, names in os.walk(folder, followlinks=True):
        for name in names:
            try:
                size += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 - of many
            except OSError:  # the file was just removed
                continue
    return size


def remove_demos(root: Path | None = None) -> Iterator[Removed]:
    """Remove the folder of every demo of this user that is not running, and stop its PostgreSQL.

    Args:
        root: the parent folder; None for the system's temporary folder.
    """
    for folder in sorted((root or Path(tempfile.gettempdir())).glob(f"{PREFIX}*")):
        # Never follow a symbolic link: another user may have created it, with a target that is not
        # the folder of a demo.
        if not folder.is_symlink() and folder.is_dir() and folder.stat().st_uid == os.geteuid():
            yield _remove(folder)


def _remove(folder: Path) -> Removed:
    size = folder_size(folder)
    data = folder / "data"
    try:
        if not data.is_dir():
            shutil.rmtree(folder)
            return Removed(folder, size)
        with hold_data_lock(data):
            stopped = remove_embedded(data / "postgres")
            shutil.rmtree(folder)
    except OlrPgError as error:
        at_work = error.code == Code.ANOTHER_APPLIANCE
        return Removed(folder, size, kept="a demo is running in it" if at_work else str(error))
    except OSError as error:
        return Removed(folder, size, kept=f"{error.filename}: {system_reason(error)}")
    return Removed(folder, size, stopped)
