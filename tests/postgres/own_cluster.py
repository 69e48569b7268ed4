"""Clusters that tests make for themselves, to stop, kill or configure them."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from olr_pg.postgres.embedded import EmbeddedPostgres, start_embedded

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 4 << 30
"""For the clusters of all processes, which take some hundred megabytes each."""


def memory() -> Path | None:
    """The file system in memory, if it has room: a cluster is a thousand files to make, to sync and
    to remove, and a database of its own, which a thousand tests get, three hundred."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES_MIN
    return MEMORY if has_room else None


@contextmanager
def cluster_folder() -> Iterator[Path]:
    """A folder for a cluster that is not running at the end."""
    # Not below tmp_path: pytest closes its folders to the user that PostgreSQL runs as.
    folder = Path(tempfile.mkdtemp(prefix="olr-pg-test-", dir=memory()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def own_cluster(*settings: str) -> Iterator[EmbeddedPostgres]:
    """A running cluster that a test may kill; `settings` are of ``ALTER SYSTEM SET``."""
    with cluster_folder() as folder:
        cluster = start_embedded(folder)
        try:
            if settings:
                with psycopg.connect(cluster.connect_string, autocommit=True) as connection:
                    for setting in settings:
                        connection.execute(f"ALTER SYSTEM SET {setting}".encode())
                cluster.stop()
                cluster = start_embedded(folder)
            yield cluster
        finally:
            cluster.stop()
