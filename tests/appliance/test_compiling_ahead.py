"""A run whose kernels nobody has compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from olr_pg.appliance import compiling_ahead

if TYPE_CHECKING:
    from pathlib import Path

_RUN = """
import psutil
from tests.waiting import wait_until
from olr_pg.appliance.compiling_ahead import kernels_ahead
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import message_run
from olr_pg.replicator.kernel_warmup import warm_port

with kernels_ahead([ByteOrder.LITTLE], interpret=True):
    (process,) = psutil.Process().children()
    wait_until(lambda: bool(process.cmdline()))  # it has none while it becomes the program
    assert process.cmdline()[-2:] == ["olr_pg.appliance.compiling_ahead", "little"]
    warm_port()
    assert not message_run.signatures, "it was compiled here"
assert not psutil.pid_exists(process.pid)
warm_port()
assert message_run.signatures, "it is interpreted for good"
"""


def test_another_process_compiles_and_this_one_interprets(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RUN],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiled", [False, True])
def test_a_run_that_compiles_first_says_why_it_takes_time(
    monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    monkeypatch.setattr(compiling_ahead, "is_decoder_compiled", lambda: compiled)
    with capture_logs() as lines, compiling_ahead.kernels_ahead((), interpret=False):
        pass
    assert [line["in_advance"] for line in lines] == ([] if compiled else ["olr-pg prepare"])
