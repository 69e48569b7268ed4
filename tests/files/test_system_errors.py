"""What the operating system refuses is told with what to change, and is no defect."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from olr_pg.cli.group import coded
from olr_pg.errors import Code
from olr_pg.files.system_errors import system_failure
from tests.files.limits import no_more_files

if TYPE_CHECKING:
    from collections.abc import Callable


def opens_a_file() -> None:
    with no_more_files():
        Path(__file__).read_bytes()


def reads_from_a_broken_disk() -> None:
    # Linux answers EIO where the first page of a process's memory is read.
    Path("/proc/self/mem").read_bytes()


def fills_a_disk() -> None:
    Path("/dev/full").write_bytes(b"x")


def wants_memory() -> None:
    bytearray(1 << 62)


def wants_an_array() -> None:
    np.empty(1 << 60, np.uint8)


@pytest.mark.parametrize(
    ("operation", "detail", "action"),
    [
        (opens_a_file, "test_system_errors.py: Too many open files", "ulimit -n"),
        (reads_from_a_broken_disk, "Input/output error", "dmesg"),
        (fills_a_disk, "No space left on device", "free disk space"),
        (wants_memory, "there is no memory left", "context.memory.max-mb"),
        (wants_an_array, "Unable to allocate", "context.memory.max-mb"),
    ],
)
def test_what_the_system_refuses_names_what_to_change(
    operation: Callable[[], None], detail: str, action: str
) -> None:
    with pytest.raises((OSError, MemoryError)) as caught:
        operation()
    failure = coded(caught.value)
    assert failure.code == Code.SYSTEM_REFUSED
    assert detail in failure.detail
    assert action in failure.action
    assert "Then start again" in failure.action


def test_a_thread_that_cannot_be_created_is_no_defect() -> None:
    # In a process of its own, which has no memory for another thread's stack.
    code = (
        "import resource, threading\n"
        "from olr_pg.files.system_errors import system_failure\n"
        "threading.stack_size(1 << 30)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))\n"
        "try:\n"
        "    threading.Thread(target=print).start()\n"
        "except RuntimeError as error:\n"
        "    failure = system_failure(error)\n"
        "    print(failure.label, failure.action)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("OLR-01108 raise the limit of processes and threads")


@pytest.mark.parametrize("number", [errno.EBADF, errno.EINVAL, errno.ENOENT, errno.EEXIST])
def test_a_wrong_call_of_ours_is_a_defect(number: int) -> None:
    error = OSError(number, os.strerror(number))
    assert system_failure(error) is None
    assert coded(error).code == Code.INTERNAL
