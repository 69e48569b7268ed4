"""Of a run whose system calls fail, nothing is lost: the next one completes the target.

All faults are those of ``python -m tests.appliance.failing_calls``; here are some of each kind.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from tests.appliance.failing_calls import (
    HALF,
    Fault,
    Lives,
    compiled,
    failing_server,
    made_source,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.simulator.simulated_files import Summary
    from tests.cli.fork_server import ForkServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    library = compiled(tmp_path_factory.mktemp("library"))
    if library is None:
        pytest.skip("there is no C compiler")
    with failing_server(library) as server:
        yield server


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    return made_source(tmp_path_factory.mktemp("source"))


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault("fsync", "data/checkpoint.json.new", 1, errno.EIO), "OLR-04013"),
        (Fault("rename", "data/incarnation.json", 1, errno.EIO), "OLR-01092"),
        (Fault("write", "data/status.json.new", 1, errno.EIO), "OLR-01108"),
        (Fault("opendir", "/data", 1, errno.EMFILE), "OLR-01108"),
        (Fault("write", "data/dictionary-changes.jsonl", 1, HALF), ""),
        (Fault("fsync", "data/dictionary-changes.jsonl", 1, errno.EDQUOT), "OLR-03075"),
        (Fault("pread", "sim/logs/", 20, HALF), ""),
        (Fault("pread", "sim/logs/", 1, errno.EIO), "OLR-02002"),
        (Fault("opendir", "sim/logs", 2, errno.EIO), "OLR-02002"),
    ],
    ids=str,
)
def test_a_call_that_fails_costs_no_change(
    tmp_path: Path,
    postgres_database: str,
    server: ForkServer,
    made: Summary,
    fault: Fault,
    code: str,
) -> None:
    said = Lives(server, made, tmp_path / "life", postgres_database).fail(fault)
    assert code in said if code else not said
