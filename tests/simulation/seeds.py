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

from olr_pg.postgres.embedded import start_embedded
from tests.simulation.laws import LawBrokenError
from tests.simulation.run import Bench, Outcome, run_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession


class Failure(NamedTuple):
    """A seed that failed, and how."""

    seed: int
    reason: str


def command(seed: int, *options: str) -> str:
    """Runs a seed again."""
    return " ".join(("uv run python -m tests.simulation", *options, f"--seed {seed}"))


def run_seeds(
    seeds: Iterable[int],
    *,
    postgres: str | None,
    inline: bool,
    keep: Path | None,
    run: Callable[[int, Bench], Outcome] = run_seed,
) -> Iterator[Outcome | Failure]:
    """The outcomes of seeds, one after the other, with one PostgreSQL and one Spark session."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
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
            result = _run(run, seed, Bench(folder, postgres, spark))
            # Before it is told: whoever wants one failure does not come back.
            if keep is None or isinstance(result, Outcome):
                shutil.rmtree(folder)
            yield result


def _run(run: Callable[[int, Bench], Outcome], seed: int, bench: Bench) -> Outcome | Failure:
    try:
        return run(seed, bench)
    except LawBrokenError as error:
        return Failure(seed, f"{error}\n")
    except Exception:  # noqa: BLE001 - each seed is reported
        return Failure(seed, traceback.format_exc())


def _session() -> AbstractContextManager[SparkSession]:
    from olr_pg.spark.session import SparkSettings
    from tests.spark.held_session import spark_session

    return spark_session(SparkSettings("local[2,2]"))
