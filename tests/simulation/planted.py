"""Planted bugs: what the simulation must find.

    uv run python -m tests.simulation.planted                 each of them, from seed 0 on
    uv run python -m tests.simulation.planted ledger --seed 7

Each patch of ``bugs/`` is applied to a copy of the package, and seeds run with the copy until one
fails. Exit code 1 if a bug stays unseen.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import olr_pg

ROOT: Final = Path(__file__).parents[2]
BUGS: Final = Path(__file__).parent / "bugs"
NAMES: Final = tuple(sorted(path.stem for path in BUGS.glob("*.patch")))
SEEDS_MAX: Final = 50
FAILED: Final = re.compile(r"^seed (\d+) FAILED$", re.MULTILINE)


def patched_package(name: str, folder: Path) -> Path:
    """A copy of the package with a bug in `folder`, which is returned; compiled kernels come along.

    Those that the bug is in are compiled anew: `kernel_cache` notices.
    """
    shutil.copytree(Path(olr_pg.__file__).parent, folder / "olr_pg")
    patch = BUGS / f"{name}.patch"
    command = ["git", "apply", "--unsafe-paths", f"--directory={folder}", str(patch)]
    subprocess.run(command, cwd=folder, check=True)
    return folder


def run_with(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``python -m tests.simulation`` with the package in `package`."""
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--inline", "--first", *arguments],
        cwd=package,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(package), str(ROOT)))},
        capture_output=True,
        text=True,
        check=False,
    )


def find(name: str, first: int, count: int, postgres: str | None = None) -> tuple[int | None, str]:
    """The first seed that finds a bug, None where none does; what was printed."""
    with tempfile.TemporaryDirectory(prefix=f"olr-pg-{name}-") as folder:
        package = patched_package(name, Path(folder))
        arguments = ["--seed", str(first), "--count", str(count)]
        if postgres is not None:
            arguments += ["--postgres", postgres]
        done = run_with(package, *arguments)
    found = FAILED.search(done.stdout)
    return (int(found[1]) if found else None), done.stdout + done.stderr


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
    options = parser.parse_args()
    unseen = 0
    for name in options.bugs or NAMES:
        seed, words = find(name, options.seed, options.count)
        unseen += seed is None
        sys.stdout.write(f"{name}: {'not found' if seed is None else f'found by seed {seed}'}\n")
        sys.stdout.write("".join(f"    {line}\n" for line in words.splitlines()[-6:]))
        sys.stdout.flush()
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main())
