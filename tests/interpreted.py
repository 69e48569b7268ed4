"""Tests that are done again with the kernels interpreted."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def check_interpreted(test: Callable[..., None], *options: str) -> None:
    """Do a test with the kernels interpreted, in a process of its own.

    Args:
        options: pytest's.
    """
    # Without -n 0 it would start workers of its own.
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    file = sys.modules[test.__module__].__file__
    assert file is not None
    result = subprocess.run(
        [*command, *options, "-k", test.__name__, file],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
