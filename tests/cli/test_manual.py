"""The man page has all commands, and roff takes it."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from olr_pg.cli.main import app
from olr_pg.cli.manual import manual


def test_every_command_has_its_section() -> None:
    text = manual()
    for command in app.registered_commands:
        assert f'\n.SS "olr-pg {str(command.name).replace("-", chr(92) + "-")} ' in text or (
            f'\n.SS "olr-pg {command.name} ' in text
        )
    for group in app.registered_groups:
        assert re.search(rf'^\.SS "olr-pg {group.name} \w', text, re.MULTILINE)


def test_roff_takes_it() -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff judges the page where it is installed")
    done = subprocess.run(
        [groff, "-k", "-man", "-ww", "-Tutf8"],
        input=manual(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "NAME" in done.stdout
