"""The benchmarks by name, and running them."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from olr_pg.bench.apart import do_apart, results_of
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from olr_pg.bench.measure import Result

CHANGE_BYTES: Final = 500
"""Redo of one made-up row change, about: number of changes for `--size`."""

DEFAULT_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run of the suite.

    Attributes:
        size: bytes of redo of each input.
        cache: where generated logs are kept.
        folder: for the run itself: clusters, checkpoints.
        runs: of each benchmark and of its anchor.
        seconds: for which online redo is measured, at each of its rates.
    """

    size: int
    cache: Path
    folder: Path
    runs: int = 3
    seconds: float = DEFAULT_SECONDS

    @property
    def rows(self) -> int:
        """Number of generated row changes for `size`."""
        return max(1_000, self.size // CHANGE_BYTES)


BENCHMARKS: Final = {
    "scan": "decoding:scan",
    "decode": "decoding:decode",
    "outputs": "outputs:outputs",
    "spark": "spark:spark",
    "data-source": "data_source:data_source",
    "scaling": "decoding:scaling",
    "growth": "growth:growth",
    "server": "serving:server",
    "apply": "apply_cases:apply",
    "load": "loading:load",
    "end-to-end": "end_to_end:end_to_end",
    "latency": "latency:latency",
    "memory": "process_memory:memory",
    "wide": "sites:wide",
    "small-logs": "sites:small_logs",
    "targets": "sites:targets",
    "transaction": "sites:transaction",
    "sealing": "sealing:sealing_cost",
    "fallback": "way_back:fallback",
}
"""Module and function of each: loaded by its own process only."""


def benchmarks_to_run(names: Sequence[str]) -> list[str]:
    """Return the benchmarks to run; all without names.

    Raises:
        OlrPgError: 8100, there is no such benchmark.
    """
    for name in names:
        if name not in BENCHMARKS:
            raise OlrPgError(Code.BENCHMARK_UNKNOWN, f"{name!r}; there are {', '.join(BENCHMARKS)}")
    return list(names) or list(BENCHMARKS)


def run_suite(
    names: Sequence[str],
    size: int,
    cache: Path,
    runs: int,
    own_sizes: Mapping[str, int] = MappingProxyType({}),
    seconds: float = DEFAULT_SECONDS,
) -> Iterator[Result]:
    """Run benchmarks one after the other, each in a process of its own; results as they come.

    The kernels are compiled by one more process before: the compiler's memory, 250 MiB of it, stays
    with a process as long as that lives.

    Args:
        names: of the benchmarks; none: all.
        size, cache, runs, seconds: see `Options`.
        own_sizes: of single benchmarks, by name.

    Raises:
        OlrPgError: 8100 an unknown name, 8101 a benchmark's process has ended before its time; any
            error of a benchmark's parts.
    """
    chosen = benchmarks_to_run(names)
    benchmarks_to_run(list(own_sizes))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="olr-pg-bench-")))
        do_apart("the compilation of the kernels", _compile)
        for name in chosen:
            own = folder / name
            own.mkdir()
            options = Options(own_sizes.get(name, size), cache, own, runs, seconds)
            yield from results_of(f"the benchmark {name}", results, name, options)


def results(name: str, options: Options) -> Generator[Result, None, None]:
    """Run one benchmark in this process."""
    yield from resolve_name(f"{__package__}.{BENCHMARKS[name]}")(options)


def _compile() -> None:
    resolve_name("olr_pg.kernel_compilation:compile_kernels")()
