"""Ctrl-C before a command begins ends the process as it ends any other."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Start

WAITING = """
import signal, sys, types
signal.signal(signal.SIGINT, signal.{before})
main = types.ModuleType("olr_pg.cli.main")
main.run = lambda: (print(signal.getsignal(signal.SIGINT).name, flush=True), signal.pause())
sys.modules["olr_pg.cli.main"] = main
from olr_pg.cli.entry import run; run()
"""
"""Stands in for the time that the command line takes to be imported."""


@pytest.mark.parametrize(
    ("before", "handler"), [("default_int_handler", "SIG_DFL"), ("SIG_IGN", "SIG_IGN")]
)
def test_the_process_has_the_systems_own_handler(
    start_cli: Start, before: str, handler: str
) -> None:
    process = start_cli(entry=WAITING.format(before=before))
    assert process.stdout is not None
    assert process.stdout.readline().strip() == handler
    process.send_signal(signal.SIGINT)
    if handler == "SIG_IGN":
        process.terminate()
    assert process.wait() == (-signal.SIGTERM if handler == "SIG_IGN" else -signal.SIGINT)
