"""A small finished simulation, played into online logs step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from olr_pg.simulator.fields.redo_format import RedoFormat
from olr_pg.simulator.online_redo.online_database import OnlineDatabase, OnlineOptions
from olr_pg.simulator.online_redo.online_files import OnlineFiles, Step
from olr_pg.simulator.online_redo.written_redo import Redo, WrittenLog, redo_of_logs
from olr_pg.simulator.simulated_files import Summary
from tests.simulator.reader import parse_log


@dataclass(frozen=True)
class Source:
    """Finished logs, and what is true of them."""

    redo: RedoFormat
    logs: list[WrittenLog]
    truth: bytes
    folder: Path

    @property
    def threads(self) -> list[int]:
        """Numbers of the redo threads."""
        return sorted({parse_log(bytes(log.data)).header.thread for log in self.logs})

    @property
    def blocks(self) -> int:
        """Blocks of the largest log."""
        return max(len(log.data) for log in self.logs) // self.redo.block_size


def source_of(summary: Summary) -> Source:
    """Read the logs of a finished simulation."""
    folder = summary.logs[0].parent.parent
    logs = [WrittenLog(memoryview(path.read_bytes())) for path in summary.logs]
    return Source(summary.shape.redo, logs, (folder / "truth.jsonl").read_bytes(), folder)


class Playing:
    """Online logs in a folder, and the steps that are to come.

    Attributes:
        done: the steps that were carried out.
    """

    def __init__(
        self,
        source: Source,
        folder: Path,
        seed: int,
        options: OnlineOptions,
        redo: Iterator[Redo] | None = None,
    ) -> None:
        self.source, self.folder = source, folder
        options = replace(options, blocks=source.blocks + 50)
        self.database = OnlineDatabase(source.redo, source.threads, options, seed)
        self._steps = self.database.steps(redo or redo_of_logs(source.logs))
        self.done = list[Step]()

    def play(self) -> Iterator[Step]:
        """Carry out one step after the other; each is yielded when it has been."""
        with OnlineFiles(self.folder / "online", self.folder / "logs", self.folder / "make") as f:
            for step in self._steps:
                f.apply(step)
                self.done.append(step)
                yield step

    def file(self, name: str) -> bytes:
        """Return a member's file as it is now."""
        return (self.folder / "online" / name).read_bytes()

    def archived(self) -> list[Path]:
        """Return the archived logs."""
        return sorted((self.folder / "logs").iterdir())
