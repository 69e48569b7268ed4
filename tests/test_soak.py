"""A slice of the soak: twelve seconds of faults, since CI has no three minutes to spare for it.

What needs a long life, the memory, is not judged in it. By hand, and before a release:
``uv run python tests/soak.py --minutes 60``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.timeout(900)  # the first run in a fresh clone compiles the kernels
def test_a_slice_of_the_soak() -> None:
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("soak.py"), "--minutes", "0.2", "--seed", "3"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    outcome = json.loads(done.stdout)
    assert all(outcome["held"].values())
    assert sum(outcome["faults"].values()) > 0
    assert sum(outcome["rows"].values()) > 500
