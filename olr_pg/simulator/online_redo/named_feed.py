"""The redo of a named workload while it is generated, with log switches, crashes and RESETLOGS.

These actions happen after a number of bytes of redo, not after a time. So the same seed and sizes
always give the same redo.

It also keeps redo that was generated ahead in a file.
"""

from __future__ import annotations

import heapq
import itertools
import mmap
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.block_layout import FIRST_DATA_BLOCK
from olr_pg.simulator.online_redo.written_redo import (
    EndedLog,
    FlushedLwns,
    LogStart,
    log_parts,
    lost_part,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from olr_pg.simulator.fields.headers import HeaderBlock
    from olr_pg.simulator.named_simulation import NamedSimulation
    from olr_pg.simulator.online_redo.written_redo import Redo
    from olr_pg.simulator.writer.instance import LogSink
    from olr_pg.simulator.writer.log_file import OpenLog

LOST_BYTES: Final = 40_000
"""Approximate bytes of redo that a crash loses."""


@dataclass(frozen=True, slots=True)
class FeedPlan:
    """The planned actions, each after a number of bytes of redo; None: never.

    Attributes:
        switch: every thread switches its log.
        crash: an instance crashes and recovers.
        resetlogs: the database is opened with RESETLOGS.
        heartbeat: threads without sessions write a record.
        flush_blocks: minimum number of blocks of a flush, which always has whole LWNs.
    """

    switch: int | None = None
    crash: int | None = None
    resetlogs: int | None = None
    heartbeat: int | None = 20_000
    flush_blocks: int = 1


@dataclass(slots=True)
class _Taken:
    """The part of a thread's log that was taken: `log` is (resetlogs id, sequence), `blocks` the
    number of data blocks.
    """

    log: tuple[int, int] = (0, 0)
    blocks: int = 0


class NamedFeed:
    """Runs a named workload, and takes its redo.

    Args:
        make: makes the simulation; its argument is the sink that receives ended logs.
        threads: number of redo threads.
        idle_threads: number of redo threads without sessions; these are the last ones.
    """

    def __init__(
        self,
        make: Callable[[LogSink], NamedSimulation],
        plan: FeedPlan,
        seed: int,
        *,
        threads: int = 1,
        idle_threads: int = 0,
    ) -> None:
        self._plan, self._threads, self._busy = plan, threads, threads - idle_threads
        self._rng = Random(seed ^ 0xC4A5)  # noqa: S311 - reproducible, not secret
        self._taken = [_Taken() for _ in range(threads)]
        self._items: list[list[tuple[tuple[int, int], Redo]]] = [[] for _ in range(threads)]
        self._lost = dict[int, bytes]()
        self._made = 0
        self._due = {name: every for name, every in self._events() if every is not None}
        if plan.crash is not None:
            self._due["crash"] = plan.crash * 3 // 5  # so that crashes and switches do not coincide
        self._sizes = itertools.repeat(plan.flush_blocks)
        self.simulation = make(self._log_ended)

    def _events(self) -> tuple[tuple[str, int | None], ...]:
        plan = self._plan
        return (
            ("heartbeat", plan.heartbeat if self._busy < self._threads else None),
            ("switch", plan.switch),
            ("crash", plan.crash),
            ("resetlogs", plan.resetlogs),
        )

    def work(self, size: int) -> Iterator[Redo]:
        """Write about `size` more bytes of redo; yield the redo that was flushed, by SCN."""
        self.simulation.work(size)
        self._made += size
        for name, every in self._events():
            if every is not None and self._made >= self._due[name]:
                self._due[name] = self._made + every
                getattr(self, f"_{name}")()
        self.simulation.flush()
        for thread in range(self._threads):
            self._take(thread)
        return self._merged()

    def end(self) -> Iterator[Redo]:
        """Commit all open transactions and end the logs; return the rest of the redo."""
        self.simulation.end()
        return self._merged()

    def _heartbeat(self) -> None:
        for thread in range(self._busy, self._threads):
            self.simulation.heartbeat(thread)

    def _switch(self) -> None:
        self.simulation.switch_logs()

    def _crash(self) -> None:
        simulation, thread = self.simulation, self._rng.randrange(self._busy)
        simulation.flush()
        self._lost[thread] = simulation.lost_redo(thread, LOST_BYTES)
        simulation.threads[thread].switch()
        simulation.roll_back(thread)

    def _resetlogs(self) -> None:
        time = self.simulation.instance.redo_time
        self.simulation.open_resetlogs(time, self._rng.randrange(1, 1 << 31))

    def _merged(self) -> Iterator[Redo]:
        items = [list(own) for own in self._items]
        for own in self._items:
            own.clear()
        for _, redo in heapq.merge(*items, key=lambda keyed: keyed[0]):
            yield redo

    def _log_ended(self, log: OpenLog, next_scn: int, time: int) -> None:
        header = log.closed(next_scn, time)
        thread = header.thread - 1
        self._begin(thread, header)
        self._add_parts(thread, header, log.sealed(self._taken[thread].blocks))
        end = EndedLog(header, lost_part(log.redo, header, self._lost.pop(thread, b"")))
        self._add(thread, header, header.next_scn, end)

    def _take(self, thread: int) -> None:
        """Take the redo that a thread has written since the last call."""
        log = self.simulation.threads[thread].log
        header = log.header()
        self._begin(thread, header)
        first = self._taken[thread].blocks
        if log.blocks > first:
            self._add_parts(thread, header, log.sealed(first))

    def _begin(self, thread: int, header: HeaderBlock) -> None:
        taken, own = self._taken[thread], (header.resetlogs, header.sequence)
        if taken.log != own:
            taken.log, taken.blocks = own, 0
            self._add(thread, header, header.first_scn, LogStart(header))

    def _add_parts(self, thread: int, header: HeaderBlock, data: bytes) -> None:
        taken, redo = self._taken[thread], self.simulation.shape.redo
        block = FIRST_DATA_BLOCK + taken.blocks
        for part in log_parts(redo, header.thread, memoryview(data), block, self._sizes):
            self._add(thread, header, part.scn, part)
        taken.blocks += len(data) // redo.block_size

    def _add(self, thread: int, header: HeaderBlock, scn: int, item: Redo) -> None:
        self._items[thread].append(((header.resetlogs_scn, scn), item))


def spooled(redo: Iterable[Redo], path: Path) -> Iterator[Redo]:
    """Generate all redo into a file, and then yield it; the file is unlinked before that."""
    items: list[tuple[Redo, int]] = []
    with path.open("w+b") as file:
        for item in redo:
            if isinstance(item, FlushedLwns):
                size = file.write(item.data)
                items.append((replace(item, data=memoryview(b"")), size))
            else:
                items.append((item, 0))
        file.flush()
        path.unlink()
        size = file.tell()
        data = memoryview(mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) if size else b"")
    at = 0
    for item, length in items:
        yield replace(item, data=data[at : at + length]) if isinstance(item, FlushedLwns) else item
        at += length
