"""What is written beside the logs, and what is kept of it in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.errors import OlrPgError
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.named_simulation import NamedSimulation
from olr_pg.simulator.simulated_files import SimulatedFiles, log_files, prepare_directory

if TYPE_CHECKING:
    from pathlib import Path


def test_changes_are_forgotten_once_the_truth_has_them(tmp_path: Path) -> None:
    logs: list[Path] = []
    directory = prepare_directory(tmp_path / "source")
    archive = log_files(directory / "logs", logs)
    simulation = NamedSimulation(3, "orders", demo_shape(), 40_000, archive)
    files = SimulatedFiles(simulation, directory, truth=True)
    simulation.work(40_000)
    committed = list(simulation.instance.committed)
    assert sum(len(one.delivered) for one in committed) > 20
    files.write_truth()
    assert not any(one.changes or one.delivered for one in committed)
    written = (directory / "truth.jsonl").read_bytes().count(b'"op":"commit"')
    assert written == simulation.transactions > 2
    simulation.end()
    summary = files.end().with_logs(logs)
    assert summary.transactions == simulation.transactions
    assert summary.log_bytes == sum(path.stat().st_size for path in logs)
    assert summary.rows == {table.full_name: len(table.live) for table in simulation.tables}
    assert summary.snapshot is files.start


def test_a_directory_with_logs_is_refused(tmp_path: Path) -> None:
    (prepare_directory(tmp_path) / "logs" / "a.arc").touch()
    with pytest.raises(OlrPgError) as caught:
        prepare_directory(tmp_path)
    assert caught.value.code == 8002
