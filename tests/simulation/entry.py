"""What the tests put in place of the product's constants and outer parts, in whatever process."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from olr_pg.appliance import appliance
from olr_pg.applier.settings import ApplierSettings
from olr_pg.decoding.spill import SpillFiles
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.replicator import decoder, decoding_run, spark_decoding
from olr_pg.replicator.recovery.bounded_recovery import DIRECTORY, BoundedRecovery
from olr_pg.replicator.spark_decoding import SparkDecoding
from olr_pg.server.checkpoint import Checkpoint
from olr_pg.server.listener import Listener
from tests.simulation.laws import broken_by_checkpoint, broken_by_image
from tests.simulation.truth import Truth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from olr_pg.applier.session.server_side import ServerLink
    from tests.simulation.plan import Settings

POLL_MILLISECONDS: Final = 20
VIOLATIONS: Final = "violations"
PORT: Final = "port"
"""The link that names the port where the server listens, as long as there is one."""


class AnnouncedListener(Listener):
    """A listener on any free port, to which a symbolic link is made."""

    def __init__(self, announcement: Path, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._announcement = announcement

    def start(self) -> None:
        super().start()
        # A link needs no room where the disk is full.
        new = self._announcement.with_suffix(".new")
        new.unlink(missing_ok=True)
        new.symlink_to(str(self.address[1]))
        new.replace(self._announcement)


def spark_or_not(patch: pytest.MonkeyPatch, spark: SparkSession | None) -> None:
    """Decode in the given session, which stays; in this process where there is none."""
    patch.setattr(spark_decoding, "get_session", lambda _: spark)
    patch.setattr(appliance, "stop_session", lambda: None)
    here_bytes = sys.maxsize if spark is None else 0
    patch.setattr(decoder, "SparkDecoding", partial(SparkDecoding, here_bytes=here_bytes))


def small_dials(patch: pytest.MonkeyPatch, folder: Path, settings: Settings) -> None:
    """Let little data take the ways of much."""
    patch.setattr(
        decoding_run, "thread_splits", partial(thread_splits, split_bytes=settings.split_bytes)
    )
    patch.setattr(appliance, "Listener", partial(AnnouncedListener, folder / PORT))
    patch.setattr(appliance, "SpillFiles", lambda folder, *_, **__: spill_files(folder, settings))
    # An image at the end of each log; every transaction that comes in parts is spooled.
    patch.setattr(appliance, "BoundedRecovery", recovery_at_each_log)
    patch.setattr(appliance, "_SPOOLED_PART", 1 << 40)
    patch.setattr(
        appliance,
        "ApplierSettings",
        partial(
            ApplierSettings,
            copy_rows=settings.copy_rows,
            window=settings.window,
            poll_milliseconds=POLL_MILLISECONDS,
        ),
    )


def spill_files(folder: Path, settings: Settings) -> SpillFiles:
    """The storage of large transactions, for little memory."""
    return SpillFiles(
        folder, settings.memory_bytes, settings.spill_bytes_min, part_bytes=settings.memory_bytes
    )


def recovery_at_each_log(
    directory: Path,
    source: str,
    _limit: int,
    storage: SpillFiles,
    disk_max: int | None,
    named: dict[str, str | None],
) -> BoundedRecovery:
    """Bounded recovery for short logs."""
    return BoundedRecovery(directory, source, 1, storage, disk_max, named)


@contextmanager
def watching_checkpoint(
    patch: pytest.MonkeyPatch, folder: Path, subscription: str
) -> Iterator[None]:
    """Before each write of the checkpoint, see whether the target has what it passes."""
    source = json.loads((folder / "source.json").read_text("utf-8"))
    truth = Truth(folder / "source", source["tables"])
    save = Checkpoint.save

    @cache
    def connection() -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(source["postgres"], autocommit=True)

    def checked(
        checkpoint: Checkpoint,
        scn: int,
        image: str | None = None,
        confirmed_by: str | None = None,
    ) -> bool:
        if confirmed_by == source["foreign"]:
            return save(checkpoint, scn, image, confirmed_by)
        broken = broken_by_checkpoint(connection(), truth, subscription, scn)
        if image is not None:
            path = folder / "data" / DIRECTORY / image
            broken = broken or broken_by_image(connection(), truth, subscription, path)
        if broken:
            with (folder / VIOLATIONS).open("a", encoding="utf-8") as file:
                file.write(broken + "\n")
        return save(checkpoint, scn, image, confirmed_by)

    patch.setattr(Checkpoint, "save", checked)
    try:
        yield
    finally:
        if connection.cache_info().currsize:
            connection().close()


@contextmanager
def prepared(
    folder: Path, settings: Settings, subscription: str, spark: SparkSession | None
) -> Iterator[None]:
    """All of it, for a while."""
    with pytest.MonkeyPatch.context() as patch:
        spark_or_not(patch, spark)
        small_dials(patch, folder, settings)
        with watching_checkpoint(patch, folder, subscription):
            yield


def following(data: Path) -> Any:
    """What follows the dictionary, as the appliance makes it where an applier is told."""
    from olr_pg.decoding.filters import NO_FILTERS

    return appliance._Following(data, ends_delivery=False, filters=NO_FILTERS).begin


def applier_of(
    config: Any,
    address: tuple[str, int],
    connect: Callable[[], ServerLink] | None = None,
    is_saved_here: Callable[[], bool] = lambda: False,
) -> Any:
    """The applier as the appliance makes it, for another address, or with a link from inside."""
    from olr_pg.applier.session.applier_session import Applier
    from olr_pg.applier.session.server_side import ServerSide
    from olr_pg.datatypes.convert import DatabaseFacts
    from olr_pg.dictionary.loader import load_snapshot
    from olr_pg.dictionary.table_list import query_tables
    from olr_pg.schema.followed_steps import step_sql
    from olr_pg.wire.frames import ByteOrder

    snapshot = load_snapshot(str(config.source.dictionary[0]))
    database = snapshot.database
    settings = appliance.applier_settings(
        config.apply,
        config.apply.connect_string.get_secret_value(),
        address,
        ByteOrder(config.port.byte_order),
        DatabaseFacts(database.charset, database.ncharset, database.timezone),
    )
    settings = replace(settings, translate=step_sql)
    tables = query_tables(snapshot, config.apply.table_query)
    server = None if connect is None else ServerSide(connect, is_saved_here)
    return Applier(settings, tables, server)
