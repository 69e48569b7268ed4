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
import subprocess
import sys
import time
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING

from olr_pg.simulator.sessions.workload import DdlUse
from tests.simulation.partitioned import run_partitioned_seed
from tests.simulation.plan import draw_plan
from tests.simulation.run import Outcome, run_seed
from tests.simulation.seeds import Failure, command, run_seeds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def _report(result: Outcome | Failure, *options: str) -> bool:
    """Print a line; whether the seed failed."""
    if isinstance(result, Outcome):
        sys.stdout.write(
            f"seed {result.seed}: {result.transactions} transactions, {result.lives} starts,"
            f" {result.tripped} faults, {result.streamed} transactions seen on the port\n"
        )
        sys.stdout.flush()
        return False
    sys.stdout.write(
        f"seed {result.seed} FAILED\n{result.reason}{command(result.seed, *options)}\n"
    )
    sys.stdout.flush()
    return True


def _altering(first: int, ddl: DdlUse) -> Iterator[int]:
    """Seeds from `first` on whose source draws that DDL."""
    for seed in count(first):
        plan = draw_plan(seed)
        if plan.shape.ddl is ddl and plan.workload == "random":
            yield seed


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--count", type=int, default=1, help="how many")
    parser.add_argument(
        "--ddl", choices=tuple(one.value for one in DdlUse), help="seeds that draw such DDL alone"
    )
    parser.add_argument(
        "--partitions", action="store_true", help="with partitioned tables; see `partitioned`"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--inline", action="store_true", help="decode without Spark")
    parser.add_argument("--first", action="store_true", help="stop at the first failure")
    parser.add_argument(
        "--postgres", help="a connection string, instead of a cluster of its own (one job)"
    )
    parser.add_argument("--keep", type=Path, help="a folder for what failing seeds leave behind")
    options = parser.parse_args()
    seeds: Sequence[int] = range(options.seed, options.seed + options.count)
    if options.ddl is not None:
        if options.jobs > 1:
            parser.error("--ddl takes one job")
        seeds = list(islice(_altering(options.seed, DdlUse(options.ddl)), options.count))
    elif options.jobs > 1:
        switches = ["--inline"] * options.inline + ["--first"] * options.first
        switches += ["--partitions"] * options.partitions
        kept = ["--keep", str(options.keep)] if options.keep else []
        return _share_out(
            range(options.seed, options.seed + options.count), options.jobs, *switches, *kept
        )
    run = run_partitioned_seed if options.partitions else run_seed
    begin = time.monotonic()
    done = 0
    failed = 0
    for result in run_seeds(
        seeds, postgres=options.postgres, inline=options.inline, keep=options.keep, run=run
    ):
        done += 1
        failed += _report(result, *["--partitions"] * options.partitions)
        if failed and options.first:
            break
    seconds = time.monotonic() - begin
    sys.stdout.write(f"{done - failed} of {done} seeds kept the laws, in {seconds:.0f} s\n")
    return 1 if failed else 0


def _share_out(seeds: range, jobs: int, *options: str) -> int:
    """Run shares of the seeds in processes of their own, which print by themselves."""
    size = -(-len(seeds) // jobs)
    processes = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.simulation", *options),
                *("--seed", str(first), "--count", str(min(size, seeds.stop - first))),
            ]
        )
        for first in seeds[::size]
    ]
    return max(process.wait() for process in processes)


if __name__ == "__main__":
    sys.exit(main())
