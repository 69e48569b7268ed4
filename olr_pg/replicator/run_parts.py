"""The objects that all runs of a decoder share: its logs, its threads, its storage and its
filters.
"""

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
    """The objects that all runs of a decoder share.

    Attributes:
        decode: decodes splits, on Spark or in this process.
        followers: provides followers of the dictionary, and takes a run's follower back at its end.
        threads: the redo threads that were read.
        storage: stores the bytes of open and of large transactions.
        filters: the filters for all targets.
        incidents: the directory for the incident files of decoding errors.
        recovery: stores the changes of open transactions for restarts; None to read their redo
            again.
        once: whether a run ends when all available logs are decoded.
        until: where a run ends; None for no end.
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
        """Whether a run waits if its first log is missing, because the log can still appear.

        If online logs are read, the source may still be archiving the log, although its group is
        already reused.
        """
        return self.logs.source.is_online and not self.once
