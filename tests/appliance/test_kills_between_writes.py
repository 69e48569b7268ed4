"""A run of many small logs, killed in front of each durable write, one life after the other."""

from __future__ import annotations

import json
import multiprocessing
import os
import pathlib
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from olr_pg.capture.lineage import FILE_NAME as LINEAGE
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.replicator import decoding_run
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.replicator.test_simulated import check_tables

if TYPE_CHECKING:
    from pathlib import Path

BATCH_BYTES = 400_000
LIVES_MAX = 80


def live(config: str, writes: int) -> None:
    """Run the appliance, and kill it in front of a durable write when so many were done."""
    left = writes

    def counted(write: Callable[..., Any]) -> Callable[..., Any]:
        def done(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return write(*arguments, **options)

        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", counted(os.fsync))
        patch.setattr(pathlib.Path, "replace", counted(pathlib.Path.replace))
        batches = partial(thread_splits, split_bytes=BATCH_BYTES)
        patch.setattr(decoding_run, "thread_splits", batches)
        structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
        from olr_pg.cli.main import app

        app(["run", "--once", "-c", config], standalone_mode=False)


@pytest.mark.timeout(600)
def test_nothing_is_lost_or_applied_twice_whichever_write_is_the_last(
    tmp_path: Path, postgres_database: str
) -> None:
    shape = replace(choose_shape(3, "orders"), pace=Pace(log_blocks=16))
    made = simulate(3, tmp_path / "sim", workload="orders", size=1_500_000, shape=shape)
    assert len(made.logs) > 40
    config = write_config(tmp_path, postgres_database)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.simulation.warm"])
    delivered = [0]
    for writes in range(LIVES_MAX):
        child = context.Process(target=live, args=(str(config), writes))
        child.start()
        child.join()
        lineage = tmp_path / "data" / LINEAGE
        if lineage.exists():
            delivered.append(json.loads(lineage.read_bytes())["delivered_scn"])
        if child.exitcode == 0:
            break
        assert child.exitcode == -signal.SIGKILL
    assert child.exitcode == 0
    assert delivered == sorted(delivered), "what is durable never goes back"
    assert writes > 10
    assert len(set(delivered)) > 2, "several batches were tried"
    check_tables(made, postgres_database)


def write_config(folder: Path, target: str) -> Path:
    sim = folder / "sim"
    document = {
        "context": {"data": str(folder / "data")},
        "source": {
            "kind": "offline",
            "dictionary": str(sim / "dictionary.json"),
            "logs": str(sim / "logs"),
        },
        "target": {"address": "127.0.0.1:0"},
        "apply": {
            "connect-string": target,
            "tables": "SELECT OWNER, TABLE_NAME FROM USER_TABLES",
            "create-tables": True,
        },
    }  # fmt: skip
    path = folder / "config.json"
    path.write_text(json.dumps(document), "utf-8")
    return path
