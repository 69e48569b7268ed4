"""``python -m olr_pg`` is the command."""

from __future__ import annotations

import subprocess
import sys

from olr_pg.cli.version import version_of_package


def test_the_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "olr_pg", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"olr-pg {version_of_package()}\n"
