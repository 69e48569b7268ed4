"""A database that runs on: its archived logs, and the online log beside them."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from olr_pg.errors import OlrPgError
from olr_pg.scalars import SCN_NONE
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.fields.block_layout import checksum
from olr_pg.simulator.fields.redo_format import RedoFormat
from olr_pg.simulator.laws import broken_laws
from olr_pg.simulator.live import LiveOptions, simulate_live
from olr_pg.simulator.named.named_workload import NamedSimulation
from olr_pg.simulator.reader import parse_log
from olr_pg.simulator.simulation import Summary
from olr_pg.simulator.writer.log_file import UNKNOWN_NAB
from tests.simulator.named.test_named_workload import decoded

if TYPE_CHECKING:
    from pathlib import Path

RATE = 60_000
TICKS = 8


class Ticks(threading.Event):
    """Set after so many waits."""

    left = TICKS

    def wait(self, timeout: float | None = None) -> bool:
        self.left -= 1
        return super().wait(timeout) or self.left < 0


def run(folder: Path, *, growing: bool) -> Summary:
    options = LiveOptions(RATE, switch_seconds=0.5, growing=growing)
    return simulate_live(2, folder, Ticks(), options, workload="orders", shape=demo_shape())


@pytest.mark.parametrize("growing", [False, True])
def test_the_logs_of_a_running_database_tell_the_truth(tmp_path: Path, growing: bool) -> None:
    summary = run(tmp_path, growing=growing)
    assert {path.parent for path in summary.logs} == {tmp_path / "logs"}
    assert sorted((tmp_path / "logs").iterdir()) == sorted(summary.logs)
    logs = [parse_log(path.read_bytes()) for path in summary.logs]
    assert len(logs) > 2
    assert broken_laws(logs) == []
    for own, following in itertools.pairwise(log.header for log in logs):
        assert following.sequence == own.sequence + 1
        assert following.first_scn == own.next_scn
    assert decoded(tmp_path) == (tmp_path / "truth.jsonl").read_bytes()


def test_an_online_log_is_current_torn_and_has_a_stale_tail(tmp_path: Path) -> None:
    logs = list[bytes]()
    simulation = NamedSimulation(
        *(2, tmp_path, "orders", demo_shape(), 100_000),
        lambda _, headers, blocks: logs.append(headers + bytes(blocks)),
        live=True,
    )
    simulation.work(60_000)
    simulation.switch_logs()
    simulation.work(20_000)
    (data,) = simulation.online_logs()
    simulation.end()
    last = parse_log(logs[-1])
    assert len(logs) == 2
    redo: RedoFormat = last.format
    size = redo.block_size
    assert redo.unpack("I", data, size + 156) == (UNKNOWN_NAB,)
    assert redo.read_scn8(data, size + 192) == SCN_NONE
    assert redo.unpack("I", data, size + 8) == (last.header.sequence,)
    assert redo.unpack("I", data, 24) == (len(data) // size - 1,)
    assert checksum(data[:size]) == checksum(data[size : 2 * size]) == 0
    blocks = np.frombuffer(data, "<u4").reshape(-1, size // 4)[2:]
    own = int(np.count_nonzero(blocks[:, 2] == last.header.sequence))
    archived = last.blocks[2 * size : (2 + own) * size]
    assert own > 0
    assert data[2 * size : (2 + own) * size] == archived
    assert own < last.header.nab - 2
    assert {int(sequence) for sequence in blocks[own:, 2]} == {last.header.sequence - 1, 0}


def test_the_random_workload_does_not_run_on(tmp_path: Path) -> None:
    with pytest.raises(OlrPgError) as caught:
        simulate_live(
            1, tmp_path, Ticks(), LiveOptions(RATE), workload="random", shape=demo_shape()
        )
    assert caught.value.code == 8050
