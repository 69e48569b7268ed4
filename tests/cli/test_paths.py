"""Every command that takes a path, with one that names something that is not its own: it stays.

Commands and options are those of the program: a new one is found by itself, and has to be given a
line here with which its path is used.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
import typer.main

from olr_pg.cli.main import app
from tests.files.test_owned import Obstacle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.fork_server import ForkServer

KINDS: Final = ("device", "directory", "link", "foreign")
PLACES: Final = frozenset(("FILE", "DIR", "PATH", "FOLDER", "LOG"))

CONFIG: Final = "--config olr.json"
LINES: Final = {
    "init": "",
    "run": "--once --no-apply",
    "status": "",
    "reload": "",
    "initial-load": "--table SHOP.SETTINGS --anew",
    "logs": "",
    "verify": CONFIG,
    "repair": f"{CONFIG} --yes",
    "fetch-lobs": "",
    "cutover": f"{CONFIG} --unverified --until quiet",
    "migrate": "--plan",
    "fallback report": "",
    "fallback begin": "",
    "fallback run": "--once",
    "fallback status": "",
    "fallback resume": "SHOP.SETTINGS",
    "fallback skip": "SHOP.SETTINGS",
    "fallback verify": "",
    "fallback cutover": "",
    "fallback end": "",
    "assess": CONFIG,
    "prove": "",
    "decode": "--format json",
    "dump": "sim/logs",
    "doctor": "",
    "simulate": "--seed 1 --size 10KB",
    "prepare": "--no-java",
    "bench": "scan --size 100KB --repeat 1",
    "errors list": "",
    "errors show": "1",
    "errors retry": "",
    "errors skip": "1",
    "tables list": "",
    "tables pause": "SHOP.SETTINGS",
    "tables resume": "SHOP.SETTINGS",
    "tables add": "SHOP.SETTINGS",
    "tables remove": "SHOP.SETTINGS",
    "schema export": CONFIG,
    "schema apply": "",
    "schema diff": "",
    "schema put-back": "",
    "dictionary export": CONFIG,
    "config check": "",
}
"""What each command gets beside the path."""

MORE: Final = {
    ("decode", "--out"): "sim/logs --dictionary sim/dictionary.json --format parquet",
    ("decode", "--incident-dir"): "sim/logs --dictionary sim/dictionary.json",
    ("decode", "--dictionary"): "sim/logs",
    ("decode", "logs"): "--dictionary sim/dictionary.json",
    ("dump", "--mask"): "--incident",
    ("dump", "logs"): "",
    ("init", "--logs"): "--dictionary sim/dictionary.json --target embedded --table S.* new.json",
    ("init", "--dictionary"): "--logs sim/logs --target embedded --table S.* new.json",
    ("init", "out"): "--logs sim/logs --dictionary sim/dictionary.json --target embedded"
    " --table S.* --force",
}
"""What an option gets instead."""


class Given(NamedTuple):
    """A parameter of a command that is a path."""

    command: str
    name: str
    is_option: bool
    is_folder: bool


def paths() -> Iterator[Given]:
    """Every parameter that names a path, of every command."""
    yield from _paths_of(typer.main.get_command(app), ())


def _paths_of(command: Any, names: tuple[str, ...]) -> Iterator[Given]:
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            yield from _paths_of(below, (*names, name))
        return
    for one in command.params:
        annotation = str(getattr(getattr(one, "type_descriptor", None), "annotation", ""))
        if one.metavar in PLACES or "Path" in annotation:
            option = next((opt for opt in one.opts if opt.startswith("--")), None)
            yield Given(
                " ".join(names), option or one.name, option is not None, one.metavar == "DIR"
            )


def test_each_line_is_of_a_path_that_there_is() -> None:
    found = {(one.command, one.name) for one in paths()}
    assert set(MORE) - {("dump", "--mask")} <= found
    assert set(LINES) <= {command for command, _ in found}


@pytest.fixture(scope="module")
def simulated(commands: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paths")
    line = ["simulate", "--seed", "5", "--workload", "orders", "--size", "20KB", "--prefilled"]
    done = commands.run([*line, "--out", str(folder / "sim")], folder, os.environ)
    assert done.returncode == 0, done.stderr
    return folder / "sim"


@pytest.fixture
def folder(tmp_path: Path, simulated: Path, postgres_database: str) -> Path:
    """Where the commands run."""
    (tmp_path / "sim").symlink_to(simulated)
    document = {
        "context": {"data": "data"},
        "source": {
            "kind": "offline",
            "dictionary": "sim/dictionary.json",
            "logs": "sim/logs",
            "tables": "sim/tables",
        },
        "target": {"address": "127.0.0.1:0"},
        "apply": {
            "connect-string": postgres_database, "tables": ["SHOP.SETTINGS"], "create-tables": True,
        },
        "status": {"enabled": False},
    }  # fmt: skip
    (tmp_path / "olr.json").write_text(json.dumps(document), "utf-8")
    return tmp_path


@pytest.mark.parametrize("given", list(paths()), ids=lambda given: f"{given.command} {given.name}")
def test_what_is_not_the_command_s_own_stays_as_it_is(
    commands: ForkServer, folder: Path, given: Given
) -> None:
    command, name, is_option, is_folder = given
    others = MORE.get((command, name), LINES.get(command))
    assert others is not None, f"{command} is new: write down how its path is used"
    others = others.replace(CONFIG, "") if name == "--config" else others
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    # Few functions open what these name, and tests/files has all kinds for each: here a link, and
    # of the others one. --config is read by the same function everywhere: one for each command.
    by_turns = KINDS[len(command + name) % len(KINDS)]
    kinds = sorted({"link", by_turns}) if name != "--config" else [by_turns]
    for kind in kinds:
        place = folder / f"{kind}-named"
        obstacle = Obstacle(kind, place, folder / f"{kind}-outside")
        path = [name, str(place)] if is_option else [str(place)]
        done = commands.run([*command.split(), *others.split(), *path], folder, environment)
        told = f"{command} {name} {kind}: {done.returncode} {done.stdout[-300:]} {done.stderr}"
        if kind == "directory" and is_folder:
            # What is made may be put beside what is there.
            assert (place / "theirs").read_text("utf-8") == "x", told
            assert (place.stat().st_mode & 0o777, place.stat().st_uid) == (0o755, os.geteuid()), (
                told
            )
        else:
            obstacle.check()
        assert "Traceback" not in done.stderr, told
        assert done.returncode not in (70, 139), told
