"""Creates an archive of the classes that a session loads (`java.class_archive`)."""

from __future__ import annotations

from typing import Final

from olr_pg.java.class_archive import archive_options, make_archive
from olr_pg.java.runtime import find_java
from olr_pg.spark.jobs import run_tasks
from olr_pg.spark.session import SparkSettings, get_session, spark_home, stop_session

_SECONDS_MAX: Final = 300.0
"""Time limit for Java to write the archive, which takes a few seconds on an idle host."""


def archive_classes() -> bool:
    """Create the archive of classes if there is none for this Java and this Spark.

    Call it only while no session runs in this process.

    Returns:
        Whether the archive exists now. Some versions of Java cannot create it; sessions also work
        without it.

    Raises:
        OlrPgError: as for `get_session`; 6002 the archive cannot be written.
    """
    java, spark = find_java(), spark_home()
    if not archive_options(java, spark):
        make_archive(java, spark, _run_session)
    return bool(archive_options(java, spark))


def _run_session(*java_options: str) -> bool:
    """Run a session that uses a task and SQL; return whether its Java ended normally."""
    try:
        session = get_session(SparkSettings("local[1]", java_options=java_options))
        for _ in run_tasks(session, [b""], bytes):
            pass
        session.range(1)  # the first use starts the SQL part, which has most classes
    finally:
        # Java writes the archive when it ends, unless it is killed.
        whole = stop_session(_SECONDS_MAX)
    return whole
