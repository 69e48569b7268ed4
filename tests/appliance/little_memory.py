"""Lets the appliance of this process write all that can wait to disk; import it into a process of
its own.

Transactions are spilled and spooled, those that are ready wait in the backlog, and each log leaves
a recovery image. Commands copy and compare rows without Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from olr_pg.appliance import appliance
from olr_pg.decoding.spill import SpillFiles
from olr_pg.load import copy_task
from olr_pg.server import backlog
from tests.simulation.entry import recovery_at_each_log

if TYPE_CHECKING:
    from pathlib import Path


def small_spill(directory: Path, *_: Any, **__: Any) -> SpillFiles:
    return SpillFiles(directory, 2000, 5000, part_bytes=2000)


for _name, _value in {
    "SpillFiles": small_spill,
    "BoundedRecovery": recovery_at_each_log,
    "_SPOOLED_PART": 1 << 40,
    "_READY_PART": 1 << 16,
    "_APPLIED_PART": 1 << 16,
}.items():
    setattr(appliance, _name, _value)
vars(backlog)["SEGMENT_BYTES"] = 1 << 10
vars(copy_task)["HERE_BYTES"] = 1 << 40
