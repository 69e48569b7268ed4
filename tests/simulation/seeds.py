"""Running many seeds: one PostgreSQL and one Spark session for all of a process."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import structlog

from olr_pg.applier.embedded import start_embedded
from tests.simulation.laws import LawBrokenError
from tests.simulation.run import Bench, Outcome, run_seed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession


class Failure(NamedTuple):
    """A seed that failed, and how."""

    seed: int
    reason: str


def command(seed: int) -> str:
    """Runs a seed again."""
    return f"uv run python -m tests.simulation --seed {seed}"


def run_seeds(
    seeds: range, *, postgres: str | None, inline: bool, keep: Path | None
) -> Iterator[Outcome | Failure]:
    """The outcomes of seeds, one after the other, with one PostgreSQL and one Spark session."""
    with ExitStack() as stack:
        silence = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
        structlog.configure(logger_factory=structlog.WriteLoggerFactory(silence))
        if postgres is None:
            # Not a closed folder: PostgreSQL runs as another user where we are root.
            home = Path(tempfile.mkdtemp(prefix="olr-pg-simulation-"))
            stack.callback(shutil.rmtree, home)
            cluster = start_embedded(home)
            stack.callback(cluster.stop)
            postgres = cluster.connect_string
        spark = None if inline else stack.enter_context(_session())
        for seed in seeds:
            folder = Path(tempfile.mkdtemp(prefix=f"olr-pg-seed-{seed}-", dir=keep))
            try:
                yield run_seed(seed, Bench(folder, postgres, spark))
            except LawBrokenError as error:
                yield Failure(seed, f"{error}\n")
            except Exception:  # noqa: BLE001 - the loop's outer edge: each seed is reported
                yield Failure(seed, traceback.format_exc())
            else:
                shutil.rmtree(folder)
                continue
            if keep is None:
                shutil.rmtree(folder)


def _session() -> AbstractContextManager[SparkSession]:
    from olr_pg.spark.session import SparkSettings, spark_session

    return spark_session(SparkSettings("local[2,2]"))
