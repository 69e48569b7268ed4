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
        followers: receives the run's follower at its end.
        threads: the known redo threads.
        storage: stores the bytes of open and of large transactions.
        filters: the filters for all targets.
        incidents: the directory for the incident files of decoding errors.
        recovery: keeps the changes of open transactions across restarts; None to read them again.
        once: decode the available logs, and end.
        until: the end of the run; None for no end.
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
        """Whether a log that a run must begin with may still appear.

        If online logs are read, the log may be in the process of being archived, after its group
        was reused.
        """
        return self.logs.source.is_online and not self.once
