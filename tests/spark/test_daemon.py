"""What the workers' parent process warms up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from olr_pg.spark.daemon import preload


def test_modules_are_imported_and_functions_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "warm_one.py").write_text("calls = []\ndef warm():\n    calls.append('warm')\n")
    (tmp_path / "warm_two.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    preload("warm_one:warm,,warm_two")
    assert sys.modules["warm_one"].calls == ["warm"]
    assert "warm_two" in sys.modules


def test_nothing_to_warm_is_fine() -> None:
    preload("")


def test_a_wrong_name_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError):
        preload("olr_pg.no_such_module")
    with pytest.raises(AttributeError):
        preload("olr_pg.errors:no_such_function")
