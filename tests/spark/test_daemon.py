"""What the workers' parent process warms up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from olr_pg.spark.daemon import PRELOAD_VARIABLE, preload
from olr_pg.spark.session import spark_home


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


def test_the_installed_files_come_before_spark_s_archives_of_them(tmp_path: Path) -> None:
    other = tmp_path / "pyspark.zip"
    with ZipFile(other, "w") as archive:
        archive.writestr("of_another_spark.py", "")
    own = sorted((spark_home() / "python" / "lib").glob("*.zip"))
    assert len(own) == 2
    program = (
        "import sys; from olr_pg.spark.daemon import prefer_installed_files;"
        "import of_another_spark; prefer_installed_files(); import py4j, pyspark.worker;"
        "print(*sys.path, *sys.path_importer_cache);"
        "print(py4j.__file__); print(pyspark.worker.__file__)"
    )
    path = os.pathsep.join(map(str, (*own, other)))
    said = subprocess.check_output(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}, text=True
    )
    left, *files = said.splitlines()
    assert left.split().count(str(other)) == 2
    assert not {*map(str, own)} & {*left.split()}
    assert all(Path(file).is_file() for file in files), files


def test_the_archives_stay_where_nothing_is_installed(tmp_path: Path) -> None:
    archives = sorted((spark_home() / "python" / "lib").glob("*.zip"))
    copied = [str(shutil.copy(archive, tmp_path)) for archive in archives]
    program = (
        "import sys; from olr_pg.spark.daemon import prefer_installed_files;"
        "prefer_installed_files(); import pyspark; print(pyspark.__file__)"
    )
    path = os.pathsep.join((*copied, str(Path(__file__).parents[2])))
    said = subprocess.check_output(
        [sys.executable, "-S", "-c", program], env={**os.environ, "PYTHONPATH": path}, text=True
    )
    assert said.startswith(str(tmp_path / "pyspark.zip"))
