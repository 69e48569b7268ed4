"""Bounded recovery where redo is read from online logs: a start goes on within a log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from olr_pg.capture.online_logs import OnlineLogs
from olr_pg.capture.source_database import OfflineDatabase
from olr_pg.replicator.decode_once import decode_splits
from olr_pg.replicator.decoder import Decoder
from olr_pg.replicator.recovery.bounded_recovery import BoundedRecovery
from olr_pg.replicator.recovery.image_files import Image, read_image
from olr_pg.server.checkpoint import Checkpoint
from olr_pg.spark.session import SparkSettings
from olr_pg.transactions.waiting_storage import IN_MEMORY
from tests.online_source import OnlineGroups, small_logs
from tests.replicator.recovery_runs import Client, Delivered
from tests.replicator.scripted_source import EVERYTHING, PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.decoding.split import Split, SplitResult, Subscription
    from olr_pg.dictionary.model import Snapshot

SOURCE = "source"
TRANSACTIONS = 22
"""Of `small_logs`: one per row, the one that is open through all of them, and one of DDL."""


class OnlineOnly:
    """A database whose logs are never archived, and appliances that read it one after the other."""

    def __init__(
        self, folder: Path, snapshot: Snapshot, threads: Sequence[list[ArchivedLog]]
    ) -> None:
        self.folder = folder
        self.snapshot = snapshot
        self.threads = [
            OnlineGroups(folder / f"groups-{n}", logs, groups=len(logs))
            for n, logs in enumerate(threads, 1)
        ]
        (folder / "archive").mkdir(parents=True)
        self.read: list[Split] = []
        self._lives = 0

    def life(self) -> Client:
        """A start of the appliance, with a spool of its own."""
        self._lives += 1
        checkpoint = Checkpoint(self.folder / "checkpoint.json", SOURCE)
        self.recovery = BoundedRecovery(
            self.folder / "recovery", SOURCE, 1, IN_MEMORY, None, {"": checkpoint.image}
        )
        decoder = Decoder(
            OfflineDatabase(
                self.snapshot,
                [str(self.folder / "archive")],
                poll_seconds=0.01,
                online=OnlineLogs(self.folder / f"spool-{self._lives}"),
                online_specs=[str(groups.folder) for groups in self.threads],
            ),
            SparkSettings(),
            recovery=self.recovery,
        )
        self.read = []

        def decode(
            subscription: Subscription, splits: Sequence[Split]
        ) -> Generator[SplitResult, None, None]:
            self.read += splits
            return decode_splits(subscription, splits)

        decoder.decode = decode
        client = Client(decoder, "", checkpoint, {})
        client.start(EVERYTHING)
        return client

    def image(self) -> Image | None:
        """The image that the checkpoint names."""
        name = Checkpoint(self.folder / "checkpoint.json", SOURCE).image
        return None if name is None else read_image(self.folder / "recovery" / name, SOURCE)


def take(client: Client, count: int) -> list[Delivered]:
    """So many transactions, waited for."""
    taken: list[Delivered] = []
    end = time.monotonic() + PATIENCE_SECONDS
    while len(taken) < count:
        assert client.delivery.failure is None, client.delivery.failure
        assert time.monotonic() < end, (len(taken), client.delivery.monitor.state)
        taken += client.take()
    assert len(taken) == count
    return taken


def await_images(source: OnlineOnly) -> None:
    """Wait until the checkpoint may name an image: that happens beside the deliveries."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not source.recovery.points(""):
        assert time.monotonic() < end
        time.sleep(0.01)


def uninterrupted(source: OnlineOnly, count: int) -> list[Delivered]:
    """What a single life delivers of all logs."""
    for groups in source.threads:
        for _ in groups.groups:
            groups.switch().write()
        groups.current.close()
    client = source.life()
    try:
        return take(client, count)
    finally:
        client.close()


def test_what_is_open_goes_on_from_an_image_though_its_redo_is_nowhere_any_more(
    tmp_path: Path,
) -> None:
    made = small_logs(tmp_path / "source")
    whole = OnlineOnly(tmp_path / "whole", made.snapshot, [made.logs])
    truth = uninterrupted(whole, TRANSACTIONS)
    source = OnlineOnly(tmp_path / "parts", made.snapshot, [made.logs])
    (groups,) = source.threads
    for _ in range(2):
        groups.switch().write()
    groups.switch().write(1)
    client = source.life()
    first = take(client, commits_before(truth, made.logs[2].header.first_scn))
    await_images(source)
    client.confirm(first)
    client.close()
    image = source.image()
    assert image is not None
    assert [mark.sequence for mark in image.marks] == [made.logs[1].header.sequence]
    assert len(image.transactions) == 1
    for group in groups.groups[:2]:
        group.path.unlink()
    client = source.life()
    for _ in made.logs[3:]:
        groups.switch().write()
    groups.current.close()
    second = take(client, len(truth) - len(first))
    client.close()
    assert [*first, *second] == truth


def commits_before(truth: Sequence[Delivered], scn: int) -> int:
    """How many of the transactions commit below an SCN."""
    return sum(one.commit_scn < scn for one in truth)
