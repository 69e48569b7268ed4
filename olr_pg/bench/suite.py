"""Lists the benchmarks by name, and runs them.

Each benchmark runs in a process of its own (`do_apart`), so that its memory does not affect later
measurements. The process is started anew and inherits only the environment. The process ends when
its parent ends, whatever the reason.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from olr_pg.appliance.process_setup import tune_process
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.logging_setup import WARNINGS, configure_logging

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection
    from types import FrameType

    from olr_pg.bench.measure import Result


T = TypeVar("T")


def results_of(
    name: str, work: Callable[..., Generator[T, None, None]], *arguments: object
) -> Generator[T, None, None]:
    """Run `work` in a separate process, and yield the objects that it yields. Closing the generator
    ends the process.

    Args:
        name: name of the process, for error messages.
        work: a function at the top level of a module. The function, its arguments and its results
            must be picklable.

    Raises:
        OlrPgError: an error that `work` raised; 8101, the process ended in another way (Python's
            message is on stderr).
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, work, arguments), name=name)
    process.start()
    sender.close()
    try:
        failure = yield from _received(receiver)
        process.join()
    finally:
        # This has no effect if the process has already ended.
        process.terminate()
        process.join()
        receiver.close()
    if failure is not None:
        raise failure
    if process.exitcode:
        raise OlrPgError(
            Code.BENCHMARK_PROCESS_FAILED, f"{name} ended with exit code {process.exitcode}"
        )


def do_apart(name: str, work: Callable[..., object], *arguments: object) -> None:
    """Run `work` in a separate process.

    Raises:
        OlrPgError: see `results_of`.
    """
    for _ in results_of(name, _silently, work, arguments):
        pass


def _silently(
    work: Callable[..., object], arguments: tuple[object, ...]
) -> Generator[None, None, None]:
    work(*arguments)
    yield from ()


def _received(receiver: Connection) -> Generator[Any, None, OlrPgError | None]:
    """Yield the objects that the process sends. If the last one is an error, return it instead."""
    with suppress(EOFError):
        while not isinstance(received := receiver.recv(), OlrPgError):
            yield received
        return received
    return None


def _work(
    sender: Connection,
    work: Callable[..., Generator[object, None, None]],
    arguments: tuple[object, ...],
) -> None:
    _end_in_order()
    tune_process()
    configure_logging(WARNINGS)
    with sender:
        try:
            with closing(work(*arguments)) as results:
                for result in results:
                    sender.send(result)
        except OlrPgError as error:
            sender.send(error)


def _end_in_order() -> None:
    """Make the first signal end this process with an exception, so that every `finally` runs. Later
    signals have no effect.
    """
    signals = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signals.append(signal.SIGINT)

    def end(number: int, _frame: FrameType | None) -> None:
        # Ctrl-C reaches both this process and its parent, and then the parent also sends a signal:
        # ignore the second one.
        for one in signals:
            signal.signal(one, _nothing)
        raise SystemExit(128 + number)

    for one in signals:
        signal.signal(one, end)
    threading.Thread(target=_end_with_parent, name="end-with-parent", daemon=True).start()


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """Ignore a signal. SIG_IGN is not used, because programs that this process starts would inherit
    it.
    """


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None  # because a parent process started this one
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


CHANGE_BYTES: Final = 500
"""Approximate bytes of redo for one generated row change; used to compute the number of changes
from `--size`.
"""

DEFAULT_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run of the suite.

    Attributes:
        size: bytes of redo of each input.
        cache: the directory in which generated logs are kept.
        folder: the directory for files of the run, such as clusters and checkpoints.
        runs: number of runs of each benchmark and of its anchor.
        seconds: time for which the latency of online redo is measured, at each rate.
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
    "outputs": "sites:outputs",
    "spark": "spark:spark",
    "data-source": "spark:data_source",
    "scaling": "decoding:scaling",
    "growth": "decoding:growth",
    "server": "serving:server",
    "apply": "applying:apply",
    "load": "loading:load",
    "end-to-end": "end_to_end:end_to_end",
    "latency": "online_latency:latency",
    "memory": "end_to_end:memory",
    "wide-updates": "applying:wide_updates",
    "wide": "sites:wide",
    "small-logs": "sites:small_logs",
    "targets": "sites:targets",
    "transaction": "sites:transaction",
    "sealing": "decoding:sealing_cost",
    "fallback": "way_back:fallback",
    "verification": "way_back:verification",
}
"""Module and function of each benchmark. Only the process that runs the benchmark imports the
module.
"""


def benchmarks_to_run(names: Sequence[str]) -> list[str]:
    """Return the names of the benchmarks to run; all benchmarks if `names` is empty.

    Raises:
        OlrPgError: 8100, there is no such benchmark.
    """
    for name in names:
        if name not in BENCHMARKS:
            raise OlrPgError(
                Code.BENCHMARK_UNKNOWN, f"{name!r}; the benchmarks are {', '.join(BENCHMARKS)}"
            )
    return list(names) or list(BENCHMARKS)


def run_suite(
    names: Sequence[str],
    size: int,
    cache: Path,
    runs: int,
    own_sizes: Mapping[str, int] = MappingProxyType({}),
    seconds: float = DEFAULT_SECONDS,
) -> Iterator[Result]:
    """Run benchmarks one after the other, each in a separate process. Yield each result as soon as
    it is available.

    Before that, another process compiles the kernels, because a process keeps the memory of the
    compiler (250 MiB) until it ends.

    Args:
        names: names of the benchmarks; empty for all.
        size, cache, runs, seconds: see `Options`.
        own_sizes: sizes for single benchmarks, by name.

    Raises:
        OlrPgError: 8100 a name is unknown, 8101 the process of a benchmark ended unexpectedly; any
            other error of a benchmark.
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
