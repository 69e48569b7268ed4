"""Many simulated databases, decoded and compared with their truth byte by byte, in one process.

    uv run python -m tests.sweep --seeds 1000 --size 1MB
    uv run python -m tests.sweep --seeds 100 --size 4MB --workload lobs --first 500
    uv run python -m tests.sweep --seeds 100 --size 200KB --data-source

The databases are those that ``olr-pg simulate`` writes of the same seeds, sizes and workloads. With
``--later`` they have no DDL, and each is decoded once more from a later log: that must give nothing
that the whole redo did not give. What differs is printed at once, a summary at the end; exit code 1
where anything did.

With ``--mode`` the redo is written in a way of its own; where nobody can decode some of it, the
rest must be equal, and the error must name a table that has lost something.

With ``--data-source`` they are read through Spark's data source instead, without Spark: as a query
of all tables, as a stream that is started again while logs come, and as a query of each table, at
three sizes of splits.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

import structlog

from olr_pg.cli.bench import parse_size
from olr_pg.simulator.fields.redo_format import SourceMode
from olr_pg.simulator.sessions.workload import DdlUse
from tests.datasource.source_rows import source_difference
from tests.replicator.decoded_seeds import SPLIT_BYTES, SimulatedSeed, difference, lost_by_more

LINE_MAX = 2000


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--size", default="1MB", help="redo of each database")
    parser.add_argument("--workload", choices=("random", "lobs"), default="random")
    parser.add_argument("--threads", type=int, help="redo threads")
    parser.add_argument(
        "--mode", action="append", choices=tuple(SourceMode), help="of writing redo"
    )
    parser.add_argument("--ddl", choices=tuple(one.value for one in DdlUse), help="which DDL")
    parser.add_argument("--later", action="store_true", help="decode from a later log as well")
    parser.add_argument("--data-source", action="store_true", help="read as the data source does")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    differing = list[int]()
    started = time.monotonic()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    for done, seed in enumerate(seeds, 1):
        # Whoever begins later than the dictionary's snapshot must not have missed any DDL.
        asked = None if arguments.ddl is None else DdlUse(arguments.ddl)
        ddl = DdlUse.NONE if arguments.later else asked
        size = parse_size(arguments.size)
        modes = None if arguments.mode is None else tuple(map(SourceMode, arguments.mode))
        chosen = SimulatedSeed(seed, size, arguments.workload, arguments.threads, ddl, modes)
        with tempfile.TemporaryDirectory() as folder:
            check = _check_source if arguments.data_source else _check
            found = check(chosen, Path(folder), later=arguments.later)
        if found is not None:
            differing.append(seed)
            say(f"seed {seed} differs: {found}")
        if done % 10 == 0:
            seconds = time.monotonic() - started
            say(f"{done} seeds, {len(differing)} differ, {seconds:.0f} s")
    say(f"{len(seeds)} seeds, {len(seeds) - len(differing)} equal, differing: {differing}")
    return 1 if differing else 0


def _check(chosen: SimulatedSeed, folder: Path, *, later: bool) -> str | None:
    """What differs, in words; None where nothing does."""
    try:
        source = chosen.simulated(folder)
        whole = chosen.decode(source)
        found = difference(whole, source.truth)
        if found is None and later and len(source.logs) > 1:
            first = 1 + chosen.seed % (len(source.logs) - 1)
            found = lost_by_more(whole, chosen.decode(source, first))
    except Exception as error:  # noqa: BLE001 - one seed of a sweep says what it is
        return f"{type(error).__name__}: {error}"
    return None if found is None else found[:LINE_MAX]


def _check_source(chosen: SimulatedSeed, folder: Path, *, later: bool) -> str | None:
    """The same of the data source."""
    assert not later
    try:
        source = chosen.simulated(folder)
        for split_bytes in SPLIT_BYTES:
            found = source_difference(source, split_bytes, chosen.seed)
            if found is not None:
                return found[:LINE_MAX]
    except Exception as error:  # noqa: BLE001 - one seed of a sweep says what it is
        return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    sys.exit(main())
