from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from olr_pg.bench.apart import do_apart, results_of
from olr_pg.errors import OlrPgError
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_WAIT_SECONDS = 60.0

_STARTER = """
import signal, sys
from pathlib import Path
from olr_pg.bench.apart import results_of
from tests.bench.test_apart import until_ended
signal.signal(signal.SIGINT, signal.default_int_handler)
for pid in results_of("test", until_ended, Path(sys.argv[1])):
    print(pid, flush=True)
"""


def _three(first: int) -> Generator[tuple[int, int], None, None]:
    for number in range(first, first + 3):
        yield number, os.getpid()


def _fails(results: int) -> Generator[int, None, None]:
    yield from range(results)
    raise OlrPgError(2005, "the checksum is wrong", file="a.dbf", block=7)


def _kills_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _is_wrong() -> None:
    raise AssertionError("never")


def until_ended(note: Path) -> Generator[int, None, None]:
    """Goes on until a signal comes, and is not to be hurried by those that follow."""
    try:
        yield os.getpid()
        while True:
            # Not `signal.pause`, which a signal that has come just before it would not end.
            time.sleep(0.01)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        note.write_text("ended in order")


def _is_gone(pid: int) -> bool:
    try:
        return " Z " in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_results_come_from_another_process() -> None:
    numbers, pids = zip(*results_of("test", _three, 5), strict=True)
    assert numbers == (5, 6, 7)
    assert len(set(pids)) == 1
    assert pids[0] != os.getpid()


def test_an_error_comes_with_its_code_and_place_after_the_results() -> None:
    results = results_of("test", _fails, 2)
    assert (next(results), next(results)) == (0, 1)
    with pytest.raises(OlrPgError) as caught:
        next(results)
    assert (caught.value.code, caught.value.where) == (2005, {"file": "a.dbf", "block": 7})


@pytest.mark.parametrize(("work", "code"), [(_kills_itself, -9), (_is_wrong, 1)])
def test_another_end_is_told(work: Callable[[], None], code: int) -> None:
    with pytest.raises(OlrPgError, match=rf"OLR-08101: .*: the test ended with exit code {code}$"):
        do_apart("the test", work)


def test_closing_ends_the_process(tmp_path: Path) -> None:
    results = results_of("test", until_ended, tmp_path / "note")
    pid = next(results)
    results.close()
    assert _is_gone(pid)
    assert (tmp_path / "note").exists()


@pytest.mark.parametrize(
    ("number", "everyone"),
    # Ctrl-C reaches both.
    [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGKILL, False)],
)
def test_it_ends_in_order_with_the_one_that_started_it(
    number: signal.Signals, everyone: bool, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    with subprocess.Popen(
        [sys.executable, "-c", _STARTER, note],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as starter:  # fmt: skip
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        (os.killpg if everyone else os.kill)(starter.pid, number)
    wait_until(lambda: _is_gone(pid), _WAIT_SECONDS)
    assert note.read_text() == "ended in order"
