"""The parts that every run of a decoder works with, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.capture.redo_threads import KnownThreads
    from olr_pg.decoding.filters import Filters
    from olr_pg.decoding.split import Decode
    from olr_pg.ordering.run_end import Until
    from olr_pg.replicator.follower_pool import FollowerPool
    from olr_pg.replicator.recovery.bounded_recovery import BoundedRecovery
    from olr_pg.replicator.shared_logs import SharedLogs
    from olr_pg.transactions.waiting_storage import Storage


@dataclass(frozen=True, kw_only=True)
class RunParts:
    """The parts that every run of a decoder works with.

    Attributes:
        decode: decodes splits, on Spark or wherever.
        followers: take the run's follower back at its end.
        threads: the redo threads that were read.
        storage: where the bytes of unfinished and of large transactions wait.
        filters: what is left out for everyone.
        incidents: the directory for the incident files of decoding errors.
        recovery: keeps what open transactions changed over restarts; None: they are read again.
        once: decode what is there, and end.
        until: where everything ends; None: nowhere.
    """

    logs: SharedLogs
    decode: Decode
    followers: FollowerPool
    threads: KnownThreads
    storage: Storage
    filters: Filters
    incidents: Path | None
    recovery: BoundedRecovery | None
    once: bool
    until: Until | None

    @property
    def waits_for_beginning(self) -> bool:
        """Whether a log that a run must begin with may still come.

        Where online logs are read it may be on its way to the archive: its group was used again.
        """
        return self.logs.source.is_online and not self.once
