"""What the workers' parent process warms up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from olr_pg.spark.daemon import PRELOAD_VARIABLE, preload


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


def test_what_is_warmed_up_says_does_not_come_where_spark_reads_the_port(tmp_path: Path) -> None:
    noisy = "import structlog\ndef warm():\n    print('noise')\n"
    (tmp_path / "noisy.py").write_text(
        noisy + "    structlog.get_logger().warning('a warning')\n", "utf-8"
    )
    done = subprocess.run(
        [sys.executable, "-m", "olr_pg.spark.daemon", "pyspark.worker"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path), PRELOAD_VARIABLE: "noisy:warm"},
    )
    assert len(done.stdout) == 4, done.stdout
    assert b"noise" in done.stderr
    assert b"a warning" in done.stderr
