"""Executes commands of the checkout that PYTHONPATH names, each in a process of its own.

Each line of the standard input is a JSON object: `words`, the command, and `output`, the file of
its output. Two lines answer it: the number of the process, and its exit code, negative if a signal
ended it. Everything is imported once, so that a command costs no start of Python.
"""

from __future__ import annotations

import json
import os
import sys
import traceback

import pytest

from olr_pg.cli.main import app
from olr_pg.load import copy_task
from tests.simulation.entry import spark_or_not


def _execute(words: list[str], output: str) -> int:
    handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        app(words)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - whatever it is, the driver reads it
        traceback.print_exc()
        return 99
    return 0


def main() -> None:
    """Execute commands until the standard input ends."""
    patch = pytest.MonkeyPatch()
    spark_or_not(patch, None)
    patch.setattr(copy_task, "HERE_BYTES", 1 << 40)
    while line := sys.stdin.readline():
        command = json.loads(line)
        process = os.fork()
        if process == 0:
            code = _execute(command["words"], command["output"])
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        sys.stdout.write(f"{process}\n")
        sys.stdout.flush()
        _, status = os.waitpid(process, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
