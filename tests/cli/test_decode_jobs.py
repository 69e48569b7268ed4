"""`decode --jobs`: whatever the options and the logs, several processes give what one gives.

The output, the messages, the files and the exit code are the same, byte for byte.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from olr_pg.cli.decode import decode
from olr_pg.simulator.database_shape import DatabaseShape, demo_shape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.model.column_types import date_type
from olr_pg.simulator.sessions.sys_dictionary import sys_cell
from olr_pg.simulator.writer.instance import Pace
from tests.capture.s3_server import ENVIRONMENT, S3Server
from tests.cli.fork_server import fork_server
from tests.replicator.ddl_source import INVALID_DAY, NUMBER, DdlSource
from tests.replicator.decoded_seeds import SimulatedSeed, simulated
from tests.replicator.fault_source import FaultSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.fork_server import ForkServer

JOBS: Final = ("1", "3")
PARQUET: Final = ("--format", "parquet", "--out", "out")

TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
"""The time of a line of the log."""

OPTIONS: Final = {
    "table": ("--table", "SHOP.ORDERS", "--table", "SHOP.ORDER_LINES"),
    "form": PARQUET,
    "out": (*PARQUET, "--table", "SHOP.ORDERS"),
    "session": ("--session",),
    "ddl": ("--ddl",),
    "invalid_date": ("--invalid-date", "null"),
    "account": ("--account",),
    "incident_dir": ("--incident-dir", "incidents"),
}
"""For each parameter of the command, options that set it."""

SET_ALWAYS: Final = {"logs", "dictionary", "jobs"}


class Ended(NamedTuple):
    """What a command has done.

    Attributes:
        files: the contents of the files in its folder, by their paths.
    """

    exit_code: int
    stdout: str
    stderr: str
    files: dict[str, bytes]


@pytest.fixture(scope="module")
def commands() -> Iterator[ForkServer]:
    with fork_server("tests.cli.small_splits") as server:
        yield server


def orders(folder: Path) -> Path:
    shape = replace(demo_shape(), pace=Pace(log_blocks=200))
    return simulated(folder, 5, "orders", 400_000, shape).folder


def random(folder: Path) -> Path:
    return SimulatedSeed(6, 400_000).simulated(folder).folder


def two_threads(folder: Path) -> Path:
    return SimulatedSeed(8, 300_000, threads=2).simulated(folder).folder


def documents(folder: Path) -> Path:
    return simulated(folder, 9, "lobs", 300_000).folder


def containers(folder: Path) -> Path:
    shape = DatabaseShape(RedoFormat(COMPATIBLE["19"]), con_id=3, neighbour=True, twins=True)
    return simulated(folder, 3, "random", 200_000, shape).folder


def damaged(folder: Path) -> Path:
    """A block in the middle is damaged."""
    log = sorted((orders(folder) / "logs").iterdir())[1]
    data = bytearray(log.read_bytes())
    middle = len(data) // 1024 * 512
    data[middle + 100 : middle + 300] = bytes(200)
    log.write_bytes(data)
    return folder


def gap(folder: Path) -> Path:
    """A log in the middle is missing."""
    sorted((orders(folder) / "logs").iterdir())[1].unlink()
    return folder


def invalid_dates(folder: Path) -> Path:
    source = DdlSource(folder)
    source.create("DATES", {"ID": NUMBER, "DAY": date_type()})
    source.take_snapshot()
    for key, more in ((1, ()), (2, (3,)), (4, (5,))):
        if key == 2:
            source.add_column("DATES", "EXTRA", NUMBER)
        row = [sys_cell(one) for one in (key, INVALID_DAY, *more)]
        assert source.session.insert(source.tables["DATES"], row) is not None
        source.session.commit()
    source.finish()
    return folder


def faults(folder: Path) -> Path:
    FaultSource(folder).history()
    return folder


SOURCES: Final = {
    one.__name__: one
    for one in (
        orders,
        random,
        two_threads,
        documents,
        containers,
        damaged,
        gap,
        invalid_dates,
        faults,
    )
}
FAILING: Final = {"damaged": 3, "gap": 3, "invalid_dates": 3, "faults": 3}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folders = dict[str, Path]()

    def make(name: str) -> Path:
        if name not in folders:
            folder = tmp_path_factory.mktemp(name)
            folders[name] = SOURCES[name](folder / "source")
        return folders[name]

    return make


def ended(
    commands: ForkServer,
    source: Path,
    folder: Path,
    jobs: str,
    *options: str,
    logs: str | None = None,
) -> Ended:
    paths = [source / name for name in ("dictionary.json", "dictionary.OTHERPDB.json")]
    dictionaries = [part for path in paths if path.exists() for part in ("-d", str(path))]
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "incidents").mkdir(parents=True)
    (folder / "temporary").mkdir()
    line = ["decode", "--jobs", jobs, *dictionaries, *options, logs or str(source / "logs")]
    environment = {
        **os.environ,
        "NO_COLOR": "1",
        "COLUMNS": "200",
        "TMPDIR": str(folder / "temporary"),
    }
    done = commands.run(line, folder, environment)
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return Ended(done.returncode, done.stdout, TIME.sub("", done.stderr), files)


def test_logs_behind_urls_give_the_same(
    commands: ForkServer, made: Callable[[str], Path], tmp_path: Path
) -> None:
    """Each process connects to the storage itself."""
    source = made("orders")
    with S3Server().running() as server, pytest.MonkeyPatch.context() as patched:
        for name, value in ENVIRONMENT.items():
            patched.setenv(name, value)
        server.put(source / "logs", "logs")
        results = [
            ended(commands, source, tmp_path / "work", jobs, logs=server.url("logs"))
            for jobs in JOBS
        ]
    assert results[0].stdout.encode() == (source / "truth.jsonl").read_bytes()
    assert results[1] == results[0]


def test_each_parameter_has_options_here() -> None:
    assert {*OPTIONS, *SET_ALWAYS} == {*inspect.signature(decode).parameters}


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_gives_the_same(
    commands: ForkServer, made: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    results = [
        ended(commands, made("orders"), tmp_path / "work", jobs, *OPTIONS[name]) for jobs in JOBS
    ]
    assert results[0].exit_code == 0
    assert results[0].stdout or results[0].files
    assert results[1] == results[0]


@pytest.mark.parametrize("options", [(), ("--session", "--ddl"), PARQUET])
@pytest.mark.parametrize("name", SOURCES)
def test_each_source_gives_the_same(
    commands: ForkServer,
    made: Callable[[str], Path],
    tmp_path: Path,
    name: str,
    options: tuple[str, ...],
) -> None:
    results = [ended(commands, made(name), tmp_path / "work", jobs, *options) for jobs in JOBS]
    assert results[0].exit_code == FAILING.get(name, 0)
    assert results[1] == results[0]
