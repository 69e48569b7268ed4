"""Splits decoded by Spark tasks."""

from __future__ import annotations

import pickle
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from olr_pg.decoding.split import Split, SplitResult, Subscription, open_split
from olr_pg.decoding.split_results import read_result, write_split
from olr_pg.spark.jobs import run_tasks
from olr_pg.spark.session import SparkSettings, get_session

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from olr_pg.spark.result_cells import TaskResult

PRELOAD: Final = (
    "olr_pg.appliance.heap:keep_freed_memory",
    "olr_pg.replicator.kernel_warmup:warm_kernels",
)
"""What Spark's daemon does before it forks workers."""


def decode_task(payload: bytes, subscription: bytes, result: TaskResult) -> None:
    """Do what a Spark task does: decode one split, write its result."""
    split: Split = pickle.loads(payload)  # noqa: S301 - made by this driver
    log = open_split(split)
    write_split(
        _subscription(subscription), log, split.first_block, split.end_block, result.write,
        split.first_group,
    )  # fmt: skip


@lru_cache(maxsize=2)
def _subscription(packed: bytes) -> Subscription:
    subscription: Subscription = pickle.loads(packed)  # noqa: S301 - made by this driver
    return subscription


class SparkDecoding:
    """Decodes splits on Spark.

    Args:
        settings: of the session to decode in; started with the first split.
    """

    def __init__(self, settings: SparkSettings) -> None:
        self._settings = settings

    def decode(
        self, subscription: Subscription, splits: Sequence[Split]
    ) -> Generator[SplitResult, None, None]:
        """Yield the results of Spark tasks, in order; closing it cancels what is under way."""
        tasks = run_tasks(
            get_session(self._settings),
            [pickle.dumps(split) for split in splits],
            decode_task,
            broadcast=pickle.dumps(subscription),
            sizes=[split.size for split in splits],
            writes=True,
        )
        with closing(tasks) as results:
            for _, packed in results:
                yield read_result(packed)
