"""How archived logs get into the folder that the appliance watches."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.simulation.plan import Placement


class SourceLog(NamedTuple):
    """An archived log as the source wrote it."""

    path: Path
    thread: int
    sequence: int
    next_scn: int


class Arrival:
    """The folder, filled step by step.

    Args:
        folder: made if it is not there.
        logs: of the source, in order of archiving.
        steps: in order.
    """

    def __init__(self, folder: Path, logs: Sequence[SourceLog], steps: Sequence[Placement]) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._logs = logs
        self._steps = steps
        self._done = 0
        self._whole: set[int] = set()

    @property
    def left(self) -> int:
        """How many steps are left."""
        return len(self._steps) - self._done

    @property
    def readable_scn(self) -> int:
        """Transactions that commit below this SCN are in what has arrived and can be read."""
        reached = dict[int, int]()
        for thread in {log.thread for log in self._logs}:
            for number, log in enumerate(self._logs):
                if log.thread != thread:
                    continue
                if number not in self._whole:
                    break
                reached[thread] = log.next_scn
        threads = {log.thread for log in self._logs}
        return min(reached.get(thread, 0) for thread in threads)

    def place_every_thread(self) -> int:
        """With several redo threads, do the steps that bring the first log of each; how many.

        An offline source does not know of a thread whose first log comes after the start
        (OLR-02014).
        """
        threads = {log.thread for log in self._logs}
        if len(threads) == 1:
            return 0
        for _ in threads:
            self.step()
        return len(threads)

    def step(self) -> Placement:
        """Do the next step; what was done."""
        step = self._steps[self._done]
        self._done += 1
        self._place(step)
        if step.share == 1.0:
            self._whole.add(step.log)
        return step

    def _place(self, step: Placement) -> None:
        source, target = self._logs[step.log].path, self._folder / step.name
        target.parent.mkdir(exist_ok=True)
        data = source.read_bytes()
        data = data[: int(len(data) * step.share)]
        if step.in_place:
            target.touch()
            with target.open("r+b") as file:
                file.write(data)
                if step.has_size:
                    file.truncate(source.stat().st_size)
        else:
            new = target.with_name(f".{target.name}.part")
            new.write_bytes(data)
            shutil.move(new, target)
