"""Of a run whose system calls fail, nothing is lost: the next one completes the target.

All faults are those of ``python -m tests.appliance.failing_calls``; here are some of each kind.
"""

from __future__ import annotations

import errno
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.appliance.failing_calls import (
    HALF,
    OUTPUTS,
    SCENES,
    WORKS,
    Fault,
    Lives,
    Outputs,
    Works,
    compiled,
    failing_server,
    made_source,
    shop_source,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from olr_pg.simulator.simulated_files import Summary
    from tests.cli.fork_server import ForkServer

    Made = Callable[[Callable[[Path], Summary]], Summary]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    library = compiled(tmp_path_factory.mktemp("library"))
    if library is None:
        pytest.skip("there is no C compiler")
    with failing_server(library) as server:
        yield server


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Make each source once."""
    return cache(lambda make: make(tmp_path_factory.mktemp("source")))


@pytest.mark.parametrize(
    ("scene", "fault", "code"),
    [
        ("once", Fault("fsync", "data/checkpoint.json.new", 1, errno.EIO), "OLR-04013"),
        ("once", Fault("rename", "data/incarnation.json", 1, errno.EIO), "OLR-01092"),
        ("once", Fault("write", "data/status.json.new", 1, errno.EIO), "OLR-01108"),
        ("once", Fault("opendir", "/data", 1, errno.EMFILE), "OLR-01108"),
        ("once", Fault("write", "data/dictionary-changes.jsonl", 1, HALF), ""),
        ("once", Fault("fsync", "data/dictionary-changes.jsonl", 1, errno.EDQUOT), "OLR-03075"),
        ("once", Fault("pread", "sim/logs/", 10, HALF), ""),
        ("once", Fault("pread", "sim/logs/", 1, errno.EIO), "OLR-02002"),
        ("once", Fault("opendir", "sim/logs", 2, errno.EIO), "OLR-02002"),
        ("once", Fault("thread", "system/thread", 12, errno.EAGAIN), "OLR-01108"),
        ("large", Fault("pread", "data/spill/#", 1, errno.EIO), "OLR-02082"),
        ("large", Fault("read", "data/recovery/image-1-*.redo", 2, errno.EIO), ""),
        ("large", Fault("fallocate", "data/spill/#", 3, errno.ENOSPC), "OLR-02081"),
        ("encrypted", Fault("pread", "data/spill/#", 2, HALF), ""),
        ("targets", Fault("pwrite", "t0/ready/#", 2, errno.ENOSPC), ""),
        ("vault", Fault("fsync", "data/vault/*.copying", 1, errno.ENOSPC), ""),
    ],
    ids=str,
)
def test_a_call_that_fails_costs_no_change(
    tmp_path: Path,
    postgres_database: str,
    second_database: str,
    server: ForkServer,
    made: Made,
    scene: str,
    fault: Fault,
    code: str,
) -> None:
    chosen = SCENES[scene]
    databases = [postgres_database, second_database]
    with closing(Lives(server, made(chosen.make), tmp_path / "life", databases, chosen)) as lives:
        said = lives.fail(fault)
    assert code in said if code else not said


def test_a_session_that_the_system_ends_is_not_repeated_for_ever(
    tmp_path: Path, postgres_database: str, second_database: str, server: ForkServer, made: Made
) -> None:
    """The call is one of a worker, or of a wait that goes on: the number of calls varies."""
    chosen, fault = SCENES["once"], Fault("poll", "postgres", 985, errno.ENOMEM)
    databases = [postgres_database, second_database]
    with closing(Lives(server, made(chosen.make), tmp_path / "life", databases, chosen)) as lives:
        said = lives.fail(fault)
    assert not said or "OLR-01108" in said


@pytest.mark.parametrize(
    ("work", "fault", "code"),
    [("load", Fault("send", "postgres", 300, errno.EPIPE), "OLR-05003")],
    ids=str,
)
def test_a_command_of_a_migration_is_repeated_after_a_call_that_failed(
    tmp_path: Path,
    postgres_database: str,
    server: ForkServer,
    made: Made,
    work: str,
    fault: Fault,
    code: str,
) -> None:
    folder = tmp_path / "life"
    with closing(Works(server, made(shop_source), folder, postgres_database, WORKS[work])) as works:
        said = works.fail(fault)
    assert code in said


@pytest.mark.parametrize(
    ("command", "fault", "code"),
    [
        ("decode", Fault("write", ".stdout", 1, errno.ENOSPC), "OLR-01107"),
        ("decode", Fault("write", ".stdout", 1, HALF), ""),
        ("parquet", Fault("write", "out/files/*.partial", 2, errno.ENOSPC), "OLR-01210"),
        ("parquet", Fault("fsync", "out/files/*.partial", 1, errno.EIO), "OLR-01210"),
    ],
    ids=str,
)
def test_what_a_command_cannot_write_is_an_error_and_no_file(
    tmp_path: Path, server: ForkServer, command: str, fault: Fault, code: str
) -> None:
    made_source(tmp_path)
    said = Outputs(server, tmp_path, OUTPUTS[command]).fail(fault)
    assert code in said if code else not said


@pytest.mark.parametrize(
    ("fault", "advised"),
    [
        (Fault("open", "image-1-*.json", 1, errno.EMFILE), "raise the limit of open files"),
        (Fault("read", "image-1-*.redo", 1, errno.EIO), "look for errors of the disk"),
    ],
    ids=str,
)
def test_an_image_that_cannot_be_read_for_a_moment_is_no_lost_log(
    tmp_path: Path,
    postgres_database: str,
    server: ForkServer,
    made: Made,
    fault: Fault,
    advised: str,
) -> None:
    """To load the tables again, as for a lost log, would be days of work for nothing."""
    scene = SCENES["large"]
    lives = Lives(server, made(scene.make), tmp_path / "life", [postgres_database], scene)
    lives.lose_read_logs()
    said = lives.fail(fault)
    assert "OLR-02010" in said
    assert advised in said
    assert "load the tables again" not in said
