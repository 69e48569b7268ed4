"""Ctrl-C before a command begins ends the process as it ends any other; processes that the
appliance starts import nothing from the working directory.
"""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import olr_pg

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


@pytest.mark.parametrize("encoding", ["ascii", "iso8859-2"])
def test_characters_that_the_locale_lacks_are_escaped(start_cli: Start, encoding: str) -> None:
    more = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    schema = start_cli("config", "schema", **more)
    text, _ = schema.communicate()
    assert (schema.returncode, "\\u" in text) == (0, True)
    assert json.loads(text)["$schema"]
    missing = start_cli("config", "check", "--config", "no-\u2026.json", **more)
    _, said = missing.communicate()
    assert (missing.returncode, "OLR-01001" in said) == (2, True)


LIMITED = """
import os, resource
os.dup2(os.open("result", os.O_WRONLY | os.O_CREAT), 1)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
from olr_pg.cli.entry import run; run()
"""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_result_of_which_a_part_is_written_is_an_error(
    start_cli: Start, tmp_path: Path, unbuffered: str
) -> None:
    """A disk that becomes full takes a part of the last write: the image sets the variable."""
    schema = start_cli("config", "schema", entry=LIMITED, PYTHONUNBUFFERED=unbuffered)
    _, said = schema.communicate()
    assert (tmp_path / "result").stat().st_size == 5000
    assert "OLR-01107" in said
    assert schema.returncode == 2


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


def test_no_process_of_ours_imports_from_the_working_directory() -> None:
    """Others may be able to write there: `python -m` would execute what they wrote."""
    sources = Path(olr_pg.__file__).parent.rglob("*.py")
    found = [line for path in sources for line in path.read_text().splitlines() if '"-m"' in line]
    assert len(found) >= 5
    assert [line for line in found if not re.search(r'sys\.executable, "-P", "-m", ', line)] == []
