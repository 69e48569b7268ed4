"""The archive of Spark's classes: made once, taken by the sessions that it fits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from olr_pg.java.class_archive import archive_file, archive_of, archive_options
from olr_pg.java.runtime import Java

ROOT = Path(__file__).resolve().parents[2]

SESSION = """
import re
from pathlib import Path
from olr_pg.spark.session import SparkSettings
from tests.spark.held_session import spark_session
with spark_session(SparkSettings("local[1]")) as spark:
    maps = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/maps").read_text()
    print(*{Path(name).name for name in re.findall(r"/\\S+\\.jsa$", maps, re.MULTILINE)})
"""


def test_a_session_maps_what_was_archived() -> None:
    """Where it is made, as before all tests: else this takes half a minute."""
    prepared = _output("-m", "olr_pg", "prepare", "--json")
    assert prepared == '{"kernels":true,"class_archive":true}'
    assert any(name.startswith("spark-") for name in _output("-c", SESSION).split())


def _output(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def java(tmp_path: Path) -> Java:
    """One that has brought an archive of its own classes."""
    (tmp_path / "runtime" / "bin").mkdir(parents=True)
    (tmp_path / "runtime" / "bin" / "java").touch()
    (tmp_path / "runtime" / "lib" / "server").mkdir(parents=True)
    (tmp_path / "runtime" / "lib" / "server" / "classes.jsa").touch()
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    return Java(tmp_path / "home", tmp_path / "runtime", 17, bundled=False)


def test_only_a_whole_archive_is_taken(java: Java, tmp_path: Path) -> None:
    spark = tmp_path / "spark"
    assert archive_options(java, spark) == ()
    file = archive_file(archive_of(java, spark), 100)
    file.write_bytes(bytes(99))
    assert archive_options(java, spark) == (), "Java ends at the end of one that is cut off"
    file.write_bytes(bytes(100))
    assert archive_options(java, spark) == (f"-XX:SharedArchiveFile={file}",)


def test_another_spark_or_java_has_another_archive(java: Java, tmp_path: Path) -> None:
    spark = tmp_path / "spark"
    names = {archive_of(java, spark)}
    os.utime(spark / "jars", (1, 1))
    names.add(archive_of(java, spark))
    os.utime(java.runtime / "bin" / "java", (1, 1))
    names.add(archive_of(java, spark))
    assert len(names) == 3


def test_a_java_without_an_archive_of_its_own_classes_needs_ours(
    java: Java, tmp_path: Path
) -> None:
    spark = tmp_path / "spark"
    (java.runtime / "lib" / "server" / "classes.jsa").unlink()
    file = archive_file(archive_of(java, spark), 1)
    file.write_bytes(b"a")
    assert archive_options(java, spark) == ()
    base = archive_file(java.home / "java", 1)
    base.write_bytes(b"b")
    assert archive_options(java, spark) == (f"-XX:SharedArchiveFile={base}:{file}",)


def test_a_directory_that_no_option_can_name(java: Java, tmp_path: Path) -> None:
    spark = tmp_path / "spark"
    home = tmp_path / "a home"
    home.mkdir()
    spaced = Java(home, java.runtime, 17, bundled=False)
    archive_file(archive_of(spaced, spark), 1).write_bytes(b"a")
    assert archive_options(spaced, spark) == ()
