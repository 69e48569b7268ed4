"""Simulated sources with faults through the whole pipeline, seed by seed.

    uv run python -m tests.simulation --seed 7
    uv run python -m tests.simulation --count 200 --jobs 2

Each seed writes archived logs of a simulated Oracle, replicates them into a real PostgreSQL while
its processes are killed, its connections cut, its disk filled and its logs delayed, and checks the
laws of `tests.simulation.laws` all along. A seed that fails is printed with the command that runs
it again. Exit code 1 if one does.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from functools import partial
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


def _list_of(seeds: range, **options: object) -> list[Outcome | Failure]:
    return list(run_seeds(seeds, **options))  # type: ignore[arg-type]


def _report(result: Outcome | Failure) -> bool:
    """Print a line; whether the seed failed."""
    if isinstance(result, Outcome):
        sys.stdout.write(
            f"seed {result.seed}: {result.transactions} transactions, {result.lives} starts,"
            f" {result.tripped} faults, {result.streamed} transactions seen on the port\n"
        )
        sys.stdout.flush()
        return False
    sys.stdout.write(f"seed {result.seed} FAILED\n{result.reason}{command(result.seed)}\n")
    sys.stdout.flush()
    return True


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--count", type=int, default=1, help="how many")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--inline", action="store_true", help="decode without Spark")
    parser.add_argument("--first", action="store_true", help="stop at the first failure")
    parser.add_argument("--postgres", help="a connection string, instead of a cluster of its own")
    parser.add_argument("--keep", type=Path, help="a folder for what failing seeds leave behind")
    options = parser.parse_args()
    begin = time.monotonic()
    seeds = range(options.seed, options.seed + options.count)
    settings = {"postgres": options.postgres, "inline": options.inline, "keep": options.keep}
    failed = list[int]()
    done = 0
    if options.jobs == 1:
        for result in run_seeds(seeds, **settings):
            done += 1
            if _report(result):
                failed.append(result.seed)
                if options.first:
                    break
    else:
        shares = [range(at, min(at + 10, seeds.stop)) for at in range(seeds.start, seeds.stop, 10)]
        with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=None) as pool:
            for results in pool.imap_unordered(partial(_list_of, **settings), shares):
                done += len(results)
                failed += [result.seed for result in results if _report(result)]
    sys.stdout.write(
        f"{done - len(failed)} of {done} seeds kept the laws, in {time.monotonic() - begin:.0f} s\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
