"""Making the archive of Spark's classes (`class_archive`): a session that notes what it loads."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError
from olr_pg.spark.class_archive import (
    archive_file,
    archive_of,
    archive_options,
    own_base,
    whole_archive,
)
from olr_pg.spark.java import find_java
from olr_pg.spark.jobs import run_tasks
from olr_pg.spark.session import SparkSettings, get_session, spark_home, stop_session

if TYPE_CHECKING:
    from olr_pg.spark.java import Java

_SECONDS_MAX: Final = 300.0
"""How long Java may take to write it: a few seconds on an idle machine."""


def archive_classes() -> bool:
    """Make the archive, where there is none for this Java and this Spark.

    No session may run in this process.

    Returns:
        Whether there is one now; some Javas make none, and sessions do without.

    Raises:
        OlrPgError: as `get_session`; 6002 it cannot be written.
    """
    java = find_java()
    if not archive_options(java, spark_home()):
        try:
            if all(_make_base(java, base) for base in own_base(java)):
                _make(java, archive_of(java, spark_home()))
        except OSError as error:
            raise OlrPgError(
                Code.JAVA_FILES_UNWRITABLE, f"{error.strerror}", file=str(java.home)
            ) from error
    return bool(archive_options(java, spark_home()))


def _make_base(java: Java, name: Path) -> bool:
    """Make the archive of Java's own classes where it is missing; whether it is there then."""
    if whole_archive(name) is None:
        new = _new(name)
        command = [str(java.runtime / "bin" / "java"), "-Xshare:dump", "-XX:+UseSerialGC"]
        command.append(f"-XX:SharedArchiveFile={new}")
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - found
        _put_in_place(new, name, whole=done.returncode == 0)
    return whole_archive(name) is not None


def _make(java: Java, name: Path) -> None:
    new = _new(name)
    options = [f"-XX:SharedArchiveFile={whole_archive(base)}" for base in own_base(java)]
    settings = SparkSettings("local[1]", java_options=(*options, f"-XX:ArchiveClassesAtExit={new}"))
    whole = False
    try:
        for _ in run_tasks(get_session(settings), [b""], bytes):
            pass
    finally:
        # It writes the file at its end, unless it is killed.
        whole = stop_session(_SECONDS_MAX)
        _put_in_place(new, name, whole=whole)


def _new(name: Path) -> Path:
    return name.with_name(f"{name.name}-{os.getpid()}.new")


def _put_in_place(new: Path, name: Path, *, whole: bool) -> None:
    """Give what was written its name, or remove it."""
    if not new.exists():
        return
    if not whole:
        new.unlink()
        return
    with new.open("rb") as file:
        os.fsync(file.fileno())
        size = file.seek(0, os.SEEK_END)
    new.replace(archive_file(name, size))
