"""Every kernel gives interpreted what it gives compiled, on the real logs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from olr_pg.redo.dump.stats import log_statistics
from tests.redo.chain import assemble, changes_between, events_of, subscribe
from tests.redo.log_builder import open_log

HERE = Path(__file__).resolve().parent


def summary(paths: list[Path]) -> dict[str, object]:
    """What the whole chain makes of logs, comparable between processes."""
    found: dict[str, object] = {}
    for path in paths:
        log = open_log(np.fromfile(path, np.uint8), path.name)
        for con_id, objects in ((1, [273]), (3, [4, 14, 19, 22, 81, 72726])):
            wanted = subscribe(objects, con_id)
            middle = (log.header.nab or 0) // 2
            parts = [
                changes_between(log, wanted, 2, middle),
                changes_between(log, wanted, middle, None),
            ]
            events = [event for part in parts for event in events_of(part)]
            transactions, account = assemble([[part] for part in parts], wanted)
            text = repr((events, transactions, account))
            found[f"{path.name}-{con_id}"] = (
                len(events),
                len(transactions),
                hashlib.sha256(text.encode()).hexdigest(),
            )
        stats = log_statistics(log)
        found[path.name] = (stats.records, stats.opcodes, stats.transactions)
    return found


def test_interpreted_kernels_give_the_same(real_log_dir: Path) -> None:
    paths = sorted(real_log_dir.glob("*.dbf"))
    root = HERE.parents[1]
    result = subprocess.run(
        [sys.executable, __file__, *map(str, paths)],
        cwd=root,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{root}:{HERE}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == json.loads(json.dumps(summary(paths)))


@pytest.mark.usefixtures("real_log_dir")
def test_the_comparison_sees_transactions(real_log_dir: Path) -> None:
    found = summary(sorted(real_log_dir.glob("*.dbf")))
    assert found["arch1_15_1224959854.dbf-3"][1] == 7  # type: ignore[index]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(summary([Path(path) for path in sys.argv[1:]])))
