"""Planted bugs: what the simulation must find.

    uv run python -m tests.simulation.planted                 each of them, from seed 0 on
    uv run python -m tests.simulation.planted ledger --seed 7
    uv run python -m tests.simulation.planted kept-column --starts 10   from seeds 0, 50, … 450

Each patch of ``bugs/`` is planted into this process, or applied to a copy of the package, and seeds
run with it until one fails. Exit code 1 if a bug stays unseen.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import olr_pg
from tests.simulation.partitioned import run_partitioned_seed
from tests.simulation.planting import BUGS, apply_patch, having
from tests.simulation.run import run_seed
from tests.simulation.seeds import Failure, run_seeds

ROOT: Final = Path(__file__).parents[2]
NAMES: Final = tuple(sorted(path.stem for path in BUGS.glob("*.patch")))
IN_COPIES: Final = frozenset({"stale-block"})
"""What is found only while the first child starts slowly."""

OF_PARTITIONS: Final = frozenset({"partition-name"})
"""What only histories with partitioned tables can find."""

SEEDS_MAX: Final = 50
FAILED: Final = re.compile(r"^seed (\d+) FAILED$", re.MULTILINE)


def find(name: str, first: int, count: int, postgres: str | None = None) -> tuple[int | None, str]:
    """The first seed that finds a bug, None where none does; what was said of it."""
    if name in IN_COPIES:
        return _find_in_copy(name, first, count, postgres)
    run = run_partitioned_seed if name in OF_PARTITIONS else run_seed
    with having(name):
        for result in run_seeds(
            range(first, first + count), postgres=postgres, inline=True, keep=None, run=run
        ):
            if isinstance(result, Failure):
                return result.seed, result.reason
    return None, f"{count} seeds kept the laws"


def _find_in_copy(
    name: str, first: int, count: int, postgres: str | None
) -> tuple[int | None, str]:
    arguments = ["--inline", "--first", "--seed", str(first), "--count", str(count)]
    if postgres is not None:
        arguments += ["--postgres", postgres]
    with tempfile.TemporaryDirectory(prefix=f"olr-pg-{name}-") as folder:
        words = _run_with_copy(name, Path(folder), arguments)
    found = FAILED.search(words)
    return (int(found[1]) if found else None), words


def _run_with_copy(name: str, folder: Path, arguments: list[str]) -> str:
    """Run it with a copy of the package that has the bug; compiled kernels come along."""
    shutil.copytree(Path(olr_pg.__file__).parent, folder / "olr_pg")
    apply_patch(name, folder)
    path = os.pathsep.join((str(folder), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.planted",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bugs", nargs="*", metavar="BUG", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--count", type=int, default=SEEDS_MAX, help="at most so many")
    parser.add_argument("--starts", type=int, default=1, help="look so often, --count seeds apart")
    options = parser.parse_args()
    unseen = 0
    for name in options.bugs or NAMES:
        for start in range(options.starts):
            first, begin = options.seed + start * options.count, time.monotonic()
            seed, words = find(name, first, options.count)
            unseen += seed is None
            what = (
                "not found" if seed is None else f"found by seed {seed}, number {seed - first + 1}"
            )
            seconds = time.monotonic() - begin
            sys.stdout.write(f"{name} from {first}: {what}, in {seconds:.0f} s\n")
            sys.stdout.write("".join(f"    {line}\n" for line in words.splitlines()[-6:]))
            sys.stdout.flush()
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main())
