"""Version and platform."""

from __future__ import annotations

import json
import platform

import pytest
import typer

from olr_pg.cli.version import print_and_exit, version, version_of_package


def test_both_forms_say_the_installed_version(capsys: pytest.CaptureFixture[str]) -> None:
    version(as_json=False)
    assert capsys.readouterr().out.startswith(f"olr-pg {version_of_package()} (")
    version(as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert printed["version"] == version_of_package()
    assert platform.python_version() in printed["platform"]


def test_the_option_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    print_and_exit(False)
    assert capsys.readouterr().out == ""
    with pytest.raises(typer.Exit):
        print_and_exit(True)
    assert capsys.readouterr().out == f"olr-pg {version_of_package()}\n"
