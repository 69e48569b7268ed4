"""A named workload that runs on: work at a rate, logs switched and archived as they fill.

Where logs go: into place by one rename, or growing as a copy does. The online log of each thread is
there too, as a running database has it: its header says "current", its last LWN may be torn, and
behind it lie blocks of the log that was in the file before (redo-format §1.6).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from olr_pg.errors import Code, OlrPgError
from olr_pg.simulator.named.named_tables import NAMED
from olr_pg.simulator.named.named_workload import NamedSimulation
from olr_pg.simulator.simulation import Summary, prepare_directory

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.named.named_workload import LogSink

TICK: Final = 0.2
LONGEST_TICK: Final = 1.0
COPY_BYTES: Final = 64 * 1024
_COPY_PAUSE: Final = 0.02
_SECONDS_AHEAD: Final = 30
"""The tables and the kernels are made for as much redo as this time brings."""


def archive_by_rename(directory: Path, logs: list[Path]) -> LogSink:
    """Return a sink by which logs appear in ``logs/`` whole, renamed from ``archiving/``."""
    (directory / "archiving").mkdir(exist_ok=True)

    def archive(name: str, headers: bytes, data: memoryview) -> None:
        part = directory / "archiving" / name
        with part.open("wb") as file:
            file.write(headers)
            file.write(data)
        logs.append(part.rename(directory / "logs" / name))

    return archive


def archive_by_copy(directory: Path, logs: list[Path]) -> LogSink:
    """Return a sink by which logs grow in ``logs/``, as ``cp`` makes them."""

    def archive(name: str, headers: bytes, data: memoryview) -> None:
        path = directory / "logs" / name
        with path.open("wb", buffering=0) as file:
            file.write(headers)
            for at in range(0, len(data), COPY_BYTES):
                file.write(data[at : at + COPY_BYTES])
                time.sleep(_COPY_PAUSE)
        logs.append(path)

    return archive


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """The options of a database that runs on.

    Attributes:
        rate: bytes of redo per second.
        switch_seconds: a log is archived after this time if it is not full before.
        growing: archived logs grow in place instead of appearing whole.
    """

    rate: int
    switch_seconds: float = 2.0
    growing: bool = False


class LiveWatch(Protocol):
    """Looks on while a database works."""

    def begin(self, simulation: NamedSimulation) -> None:
        """Look at a database that is about to work."""

    def worked(self, simulation: NamedSimulation, logs: Sequence[Path]) -> None:
        """Look at a database that has worked on, and archived `logs` since the beginning."""

    def ended(self, logs: Sequence[Path]) -> None:
        """Everything is committed and archived."""


def simulate_live(
    seed: int,
    out_dir: Path,
    stop: threading.Event,
    options: LiveOptions,
    *,
    workload: str,
    shape: DatabaseShape,
    prefilled: bool = False,
    truth: bool = True,
    watch: LiveWatch | None = None,
) -> Summary:
    """Simulate as `simulate` does, until `stop` is set; then commit and archive what is open.

    Args:
        watch: is told how the work goes on.

    Raises:
        OlrPgError: 8050 the workload cannot run on, 8002 the directory cannot be used.
    """
    if workload not in NAMED:
        raise OlrPgError(Code.WORKLOAD_NOT_LIVE, f"{workload} is not among {', '.join(NAMED)}")
    directory = prepare_directory(out_dir)
    logs = list[Path]()
    archive = (archive_by_copy if options.growing else archive_by_rename)(directory, logs)
    sizes = list[int]()

    def sink(name: str, headers: bytes, data: memoryview) -> None:
        archive(name, headers, data)
        # Whoever reads the logs may delete them.
        sizes.append(len(headers) + data.nbytes)

    size = options.rate * _SECONDS_AHEAD
    simulation = NamedSimulation(
        *(seed, directory, workload, shape, size, sink),
        prefilled=prefilled,
        truth=truth,
        live=True,
    )
    if watch is not None:
        watch.begin(simulation)
    run_live(
        *(simulation, directory, stop),
        rate=options.rate,
        switch_seconds=options.switch_seconds,
        worked=lambda: watch.worked(simulation, logs) if watch is not None else None,
    )
    rows = simulation.end()
    if watch is not None:
        watch.ended(logs)
    return Summary(
        *(seed, shape, simulation.start, tuple(logs)),
        sum(sizes),
        *(simulation.transactions, simulation.changes, rows, simulation.tables),
    )


def run_live(
    simulation: NamedSimulation,
    directory: Path,
    stop: threading.Event,
    *,
    rate: int,
    switch_seconds: float,
    worked: Callable[[], None] = lambda: None,
) -> None:
    """Work until `stop` is set.

    Args:
        simulation: made, not yet run.
        directory: gets ``online/redo_N.log`` of each thread.
        stop: ends it.
        rate: bytes of redo per second.
        switch_seconds: a log is archived after this time if it is not full before.
        worked: called after every bit of work.
    """
    (directory / "online").mkdir(exist_ok=True)
    last = switched = time.monotonic()
    while not stop.wait(TICK):
        now = time.monotonic()
        simulation.set_clock(time.time())
        # After a time in which the process stood still, nothing is made up for.
        simulation.work(int(rate * min(now - last, LONGEST_TICK)))
        last = now
        if now - switched >= switch_seconds:
            simulation.switch_logs()
            switched = now
        worked()
        for thread, image in enumerate(simulation.online_logs(), 1):
            (directory / "online" / f"redo_{thread}.log").write_bytes(image)
