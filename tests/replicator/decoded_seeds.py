"""Simulated databases by their seed, decoded as ``olr-pg decode`` does, and what differs."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unittest.mock import patch

from olr_pg.capture.archived_log import ArchivedLog
from olr_pg.capture.logs import discover_logs
from olr_pg.decoding.spill import SpillFiles
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import OlrPgError
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.rendering.json_lines import JsonLines, PackedLines
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.simulation import simulate
from olr_pg.transactions.waiting_storage import IN_MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.ordering.ready_transactions import ReadyRun
    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.fields.redo_format import SourceMode
    from olr_pg.simulator.sessions.workload import DdlUse
    from olr_pg.transactions.waiting_storage import Storage

WHOLE: Final = 1 << 30
SPLIT_BYTES: Final = (8_192, 20_000, 100_000)
PART_BYTES: Final = (1, 700, 4_000)


class Source(NamedTuple):
    """A simulated database and the same as it was decoded."""

    folder: Path
    snapshot: Snapshot

    @property
    def logs(self) -> list[ArchivedLog]:
        return sorted(
            discover_logs([str(self.folder / "logs")]), key=lambda log: log.header.first_scn
        )

    @property
    def truth(self) -> bytes:
        return (self.folder / "truth.jsonl").read_bytes()

    @property
    def undecoded(self) -> list[dict[str, Any]]:
        """The vectors that nobody can decode."""
        path = self.folder / "undecoded.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    @property
    def stopped(self) -> set[str]:
        """The tables that have lost changes which nobody can decode."""
        return {one["table"] for one in self.undecoded if one["stop_scn"] is not None}

    def lines(self, blobs: Iterable[memoryview]) -> bytes:
        """As ``olr-pg decode`` prints them."""
        render_value = JsonLines(self.snapshot.database)
        return b"".join(render_value.render(blob) for blob in blobs)


def simulated(
    folder: Path,
    seed: int,
    workload: str,
    size: int,
    shape: DatabaseShape | None = None,
    *,
    prefilled: bool = False,
) -> Source:
    simulate(seed, folder, workload=workload, size=size, shape=shape, prefilled=prefilled)
    return Source(folder, load_snapshot(str(folder / "dictionary.json")))


def _until_error(runs: Iterable[ReadyRun], stopped: set[str]) -> Iterator[ReadyRun]:
    """What is decoded; an error must end it where tables are stopped, and name one of them.

    Raises:
        OlrPgError: another error.
        AssertionError: none, though tables are stopped.
    """
    try:
        yield from runs
    except OlrPgError as error:
        if error.where.get("table") not in stopped:
            raise
    else:
        assert not stopped, f"nothing was told of {sorted(stopped)}"


class SimulatedSeed(NamedTuple):
    """What ``olr-pg simulate --seed SEED --workload WORKLOAD --size SIZE`` writes.

    Of odd seeds every log is one split, as of ``olr-pg decode``; of even ones it is in several. Of
    every fourth what is open between splits waits on disk, and is finished in parts.
    """

    seed: int
    size: int
    workload: str = "random"
    threads: int | None = None
    ddl: DdlUse | None = None
    modes: tuple[SourceMode, ...] | None = None

    @property
    def command(self) -> str:
        """What writes the same, but for `threads` and `ddl`."""
        modes = "".join(f" --mode {mode}" for mode in self.modes or ())
        own = f"--seed {self.seed} --workload {self.workload} --size {self.size}"
        return f"olr-pg simulate {own}{modes}"

    def simulated(self, folder: Path) -> Source:
        shape = choose_shape(
            self.seed, self.workload, size=self.size, threads=self.threads, modes=self.modes
        )
        if self.ddl is not None:
            shape = replace(shape, ddl=self.ddl)
        return simulated(folder, self.seed, self.workload, self.size, shape)

    def decode(self, source: Source, first_log: int = 0) -> bytes:
        """What is decoded from the logs, but for the first ones of them."""
        step = WHOLE if self.seed % 2 else SPLIT_BYTES[self.seed // 2 % 3]
        storage: Storage = IN_MEMORY
        if self.seed % 4 == 2:
            part_bytes = PART_BYTES[self.seed // 4 % 3]
            storage = SpillFiles(source.folder / "spill", 0, part_bytes=part_bytes)
        logs = [log.path for log in source.logs[first_log:]]
        split = partial(thread_splits, split_bytes=step)
        with patch("olr_pg.replicator.decode_once.thread_splits", split):
            decoding = LogDecoding(source.snapshot, logs, packed=True)
            runs = _until_error(decoding.runs(DecodingOptions(storage=storage)), source.stopped)
            lines = PackedLines(source.snapshot.database)
            pieces = (piece for run in runs for piece in lines.pieces(run.blob, decoding.tables))
            return b"".join(map(bytes, pieces))


def difference(decoded: bytes, truth: bytes) -> str | None:
    """The first line that differs, in words; None where nothing does."""
    if decoded == truth:
        return None
    pairs = itertools.zip_longest(decoded.splitlines(), truth.splitlines(), fillvalue=b"nothing")
    number, (ours, theirs) = next(
        (number, pair) for number, pair in enumerate(pairs, 1) if pair[0] != pair[1]
    )
    return f"line {number} differs\ndecoded: {ours.decode()}\ntruth:   {theirs.decode()}"


def lost_by_more(more: bytes, less: bytes) -> str | None:
    """What was decoded of `less` redo and not of `more`, in words; None where nothing was.

    A change may have more columns there, a transaction more changes.
    """
    known = transactions_of(more)
    for begin, changes in transactions_of(less).items():
        left = iter(known.get(begin, []))
        for change in changes:
            if not any(_has_all_of(other, change) for other in left):
                return f"with more redo {begin.decode()} has lost {change}"
    return None


def transactions_of(decoded: bytes) -> dict[bytes, list[dict[str, Any]]]:
    """The changes of each transaction, by the line that begins it."""
    found = dict[bytes, list[dict[str, Any]]]()
    for line in decoded.splitlines():
        if line.startswith(b'{"op":"begin"'):
            changes = found[line] = []
        else:
            changes.append(json.loads(line))
    return found


def _has_all_of(more: dict[str, Any], less: dict[str, Any]) -> bool:
    images = ("before", "after")
    return all(more.get(name) == value for name, value in less.items() if name not in images) and (
        all(less.get(image, {}).items() <= more.get(image, {}).items() for image in images)
    )
