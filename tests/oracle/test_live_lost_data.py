"""`context.data` is lost or old, and a RESETLOGS of the source orphaned what was applied."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from olr_pg.capture.logs import open_log
from olr_pg.errors import Code
from tests.advice import followed
from tests.oracle.live_source import reincarnated
from tests.oracle.test_live_run import (
    applied_scn,
    differences,
    failure_of,
    run_beside,
    run_once,
    wait_until,
)
from tests.oracle.test_live_targets import config_of

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.simulated_files import Summary
    from tests.oracle.live_source import LiveSource

RESETLOGS: Final = 1_300_000_000

pytestmark = pytest.mark.usefixtures("one_session")


def reopen(live: LiveSource, log: Path, folder: Path) -> int:
    """Open the source with RESETLOGS where a log begins; the new incarnation writes the same
    transactions. Return the SCN.
    """
    scn = open_log(str(log)).header.first_scn
    live.state.open_resetlogs(scn, RESETLOGS, 99)
    live.waiting = [
        reincarnated(log, folder, resetlogs=RESETLOGS, scn=scn, activation=99, sequence=1)
    ]
    live.archive()
    return scn


def positions(database: str) -> list[Any]:
    with psycopg.connect(database) as connection:
        query = "SELECT source_table, commit_scn, xids FROM olr_pg.ledger ORDER BY 1"
        return connection.execute(query).fetchall()


def incarnations(database: str) -> set[int]:
    with psycopg.connect(database) as connection:
        query = "SELECT resetlogs_id FROM olr_pg.ledger UNION SELECT resetlogs_id"
        return {row[0] for row in connection.execute(f"{query} FROM olr_pg.incarnation")}


@pytest.mark.parametrize("is_restored", [False, True])
def test_a_resetlogs_behind_the_ledger_stops_hard(
    live: LiveSource,
    summary: Summary,
    tmp_path: Path,
    postgres_database: str,
    *,
    is_restored: bool,
) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    config = live.write_config(tmp_path, postgres_database)
    *before, last = live.waiting
    live.archive()
    run_once(config)
    shutil.copytree(data, backup)
    for _ in before:
        live.archive()
    run_once(config)
    applied = positions(postgres_database)
    shutil.rmtree(data)
    if is_restored:
        shutil.copytree(backup, data)
    scn = reopen(live, last, tmp_path)
    for _ in range(2):
        error = failure_of(config)
        assert (error.code, error.where["scn"]) == (7020, scn)
        assert f"up to SCN {applied_scn(postgres_database)}" in error.detail
    assert positions(postgres_database) == applied
    # The operator has set the tables back to what the new incarnation has, and says so.
    followed(
        error, Code.RESETLOGS_BEHIND_DELIVERED, "First empty `context.data`",
        "correct the ledger (docs/operations.md, “RESETLOGS, flashback, failover”)",
    )  # fmt: skip
    shutil.rmtree(data)
    document = json.loads(config.read_text("utf-8"))
    document["apply"]["start-scn"] = scn
    config.write_text(json.dumps(document), "utf-8")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("UPDATE olr_pg.ledger SET resetlogs_id = NULL")
    run_once(config)
    assert incarnations(postgres_database) == {RESETLOGS}
    assert differences(postgres_database, summary) == []


def test_the_ledger_follows_a_resetlogs_behind_nothing(
    live: LiveSource, summary: Summary, tmp_path: Path, postgres_database: str
) -> None:
    """While it runs; so `context.data` may be lost later."""
    config = live.write_config(tmp_path, postgres_database)
    *before, last = live.waiting

    def work() -> None:
        for _ in before:
            live.archive()
        wait_until(lambda: applied_scn(postgres_database) > 0)
        (first,) = incarnations(postgres_database)
        reopen(live, last, tmp_path)
        wait_until(lambda: incarnations(postgres_database) == {RESETLOGS})
        assert first != RESETLOGS
        wait_until(lambda: differences(postgres_database, summary) == [])

    run_beside(config, work)
    shutil.rmtree(tmp_path / "data")
    run_once(config)
    assert differences(postgres_database, summary) == []


def test_a_target_ahead_of_the_resetlogs_stops_although_another_one_follows_it(
    live: LiveSource,
    summary: Summary,
    tmp_path: Path,
    postgres_database: str,
    second_database: str,
) -> None:
    databases = [postgres_database, second_database]
    config = config_of(live, tmp_path, databases)
    both = config.read_text("utf-8")
    *before, last = live.waiting
    for _ in before:
        live.archive()
    run_once(config)
    live.archive()
    ahead = json.loads(both)
    ahead["target"] = ahead["target"][1:]
    config.write_text(json.dumps(ahead), "utf-8")
    run_once(config)
    (tmp_path / "data" / "incarnation.json").unlink()
    applied = positions(second_database)
    reopen(live, last, tmp_path)
    config.write_text(both, "utf-8")
    for _ in range(2):
        error = failure_of(config)
        assert error.code == 7020
        assert positions(second_database) == applied
    assert differences(postgres_database, summary) == []
    assert (incarnations(postgres_database), RESETLOGS in incarnations(second_database)) == (
        {RESETLOGS},
        False,
    )
