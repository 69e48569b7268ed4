"""The first signal ends a command in order, the second at once; and some have to end in time."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import ENTRY

if TYPE_CHECKING:
    import subprocess

    from tests.cli.conftest import Start

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]

# A command whose end hangs, whatever it was told.
HANGING = """
import os, sys, threading
from olr_pg.cli import signals, version
def fill():
    os.set_blocking(2, False)
    try:
        while True:
            os.write(2, bytes(1 << 12))
    except BlockingIOError:
        os.set_blocking(2, True)
def hang():
    {before}
    try:
        print("at work", file=sys.stderr, flush=True)
        threading.Event().wait()
    finally:
        {ending}
        threading.Event().wait()
version.platform_text = hang
"""
ENDING = 'print("ending", file=sys.stderr, flush=True)'


def started(start_cli: Start, before: str, ending: str = ENDING) -> subprocess.Popen[str]:
    """The command, at work."""
    process = start_cli("version", entry=HANGING.format(before=before, ending=ending) + ENTRY)
    assert process.stderr is not None
    assert process.stderr.readline() == "at work\n"
    return process


@pytest.mark.parametrize(("second", "code"), SIGNALS)
@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once(
    start_cli: Start, first: signal.Signals, second: signal.Signals, code: int
) -> None:
    process = started(start_cli, "pass")
    process.send_signal(first)
    assert process.stderr is not None
    assert process.stderr.readline() == "ending\n"
    process.send_signal(second)
    _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (
        code,
        "terminated at once, because a second signal arrived\n",
    )


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_what_has_to_end_in_time_does(start_cli: Start, number: signal.Signals, code: int) -> None:
    process = started(start_cli, "signals.ends_within(0.2)")
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == code
    # It may have been too slow to say that it ends.
    assert (
        stderr.removeprefix("ending\n")
        == "terminated at once, because it did not end within 0.2 s\n"
    )


def test_nobody_has_to_read_why(start_cli: Start) -> None:
    process = started(start_cli, "signals.ends_within(0.2)", "fill()")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 143
