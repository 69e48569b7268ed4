"""Limits of the operating system, for as long as a test needs them."""

from __future__ import annotations

import itertools
import resource
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Let no write of this process make a file larger than `size` bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def no_more_threads() -> Iterator[None]:
    """Let Python start no thread. The limit of the system does not apply to root."""

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "_start_new_thread", refuse)
        yield


@contextmanager
def no_more_files(free: int = 0) -> Iterator[None]:
    """Let this process open only so many files more at once."""
    # To list them takes a number, too, which is free again then.
    used = {int(one.name) for one in [*Path("/proc/self/fd").iterdir()] if one.is_symlink()}
    unused = (number for number in itertools.count() if number not in used)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (next(itertools.islice(unused, free, None)), limits[1])
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
