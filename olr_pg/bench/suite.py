"""The benchmarks by name, and running them."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from olr_pg.bench.apply_cases import apply
from olr_pg.bench.decoding import decode, scaling, scan
from olr_pg.bench.end_to_end import end_to_end
from olr_pg.bench.growth import growth
from olr_pg.bench.latency import latency
from olr_pg.bench.loading import load
from olr_pg.bench.memory import memory
from olr_pg.bench.serving import server
from olr_pg.bench.spark import spark
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.bench.measure import Result

CHANGE_BYTES: Final = 500
"""Redo of one made-up row change, about: how many changes `--size` stands for."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run of the suite is told.

    Attributes:
        size: bytes of redo of each input.
        cache: where generated logs are kept.
        folder: for the run itself: clusters, checkpoints.
        runs: of each benchmark and of its anchor.
    """

    size: int
    cache: Path
    folder: Path
    runs: int = 3

    @property
    def rows(self) -> int:
        """Made-up row changes that `size` stands for."""
        return max(1_000, self.size // CHANGE_BYTES)


BENCHMARKS: Final[dict[str, Callable[[Options], Iterator[Result]]]] = {
    "scan": scan,
    "decode": decode,
    "spark": spark,
    "scaling": scaling,
    "growth": growth,
    "server": server,
    "apply": apply,
    "load": load,
    "end-to-end": end_to_end,
    "latency": latency,
    "memory": memory,
}


def check_names(names: Sequence[str]) -> list[str]:
    """The benchmarks to run; all without names.

    Raises:
        OlrPgError: 8100, there is no such benchmark.
    """
    for name in names:
        if name not in BENCHMARKS:
            raise OlrPgError(8100, f"{name!r}; there are {', '.join(BENCHMARKS)}")
    return list(names) or list(BENCHMARKS)


def run_suite(names: Sequence[str], size: int, cache: Path, runs: int) -> Iterator[Result]:
    """Run benchmarks one after the other; results as they come.

    Raises:
        OlrPgError: 8100 an unknown name; what a benchmark's parts raise.
    """
    chosen = check_names(names)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="olr-pg-bench-")))
        for name in chosen:
            own = folder / name
            own.mkdir()
            yield from BENCHMARKS[name](Options(size, cache, own, runs))
