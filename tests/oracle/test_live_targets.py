"""Several targets of a live database: RESETLOGS and the vault are for all of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.capture.logs import open_log
from olr_pg.server.checkpoint import Checkpoint
from tests.oracle.live_source import reincarnated
from tests.oracle.test_live_run import applied_scn, differences, failure_of, run_once

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.simulated_files import Summary
    from tests.oracle.live_source import LiveSource

RESETLOGS = 1_300_000_000


pytestmark = pytest.mark.usefixtures("one_session")


def config_of(live: LiveSource, folder: Path, databases: list[str], **changes: Any) -> Path:
    """Every table into each of the databases."""
    path = live.write_config(folder, databases[0], **changes)
    document = json.loads(path.read_text("utf-8"))
    apply = document.pop("apply")
    document["target"] = [
        {"name": name, "apply": {**apply, "connect-string": database, "subscription": name}}
        for name, database in zip(("one", "two"), databases, strict=True)
    ]
    path.write_text(json.dumps(document), "utf-8")
    return path


def test_a_resetlogs_behind_nothing_is_followed_by_both(
    live: LiveSource,
    summary: Summary,
    tmp_path: Path,
    postgres_database: str,
    second_database: str,
) -> None:
    databases = [postgres_database, second_database]
    config = config_of(live, tmp_path, databases)
    *before, last = live.waiting
    for _ in before:
        live.archive()
    run_once(config)
    scn = open_log(str(last)).header.first_scn
    live.state.open_resetlogs(scn, RESETLOGS, 99)
    live.waiting = [
        reincarnated(last, tmp_path, resetlogs=RESETLOGS, scn=scn, activation=99, sequence=1)
    ]
    live.archive()
    run_once(config)
    assert [differences(database, summary) for database in databases] == [[], []]


def test_a_resetlogs_cuts_what_both_get_and_later_stops_hard(
    live: LiveSource, tmp_path: Path, postgres_database: str, second_database: str
) -> None:
    databases = [postgres_database, second_database]
    config = config_of(live, tmp_path, databases)
    header = open_log(str(live.waiting[2])).header
    assert header.next_scn is not None
    cut = (header.first_scn + header.next_scn) // 2
    for _ in range(4):
        live.archive()
    live.state.open_resetlogs(cut, RESETLOGS, 99)
    run_once(config)
    wanted = max(scn for scn in live.commit_scns() if scn < cut)
    assert list(map(applied_scn, databases)) == [wanted, wanted]
    live.state.open_resetlogs(wanted - 1, RESETLOGS + 1, 100)
    assert failure_of(config).code == 7020
    assert list(map(applied_scn, databases)) == [wanted, wanted]


def test_a_resetlogs_behind_the_checkpoint_of_one_is_followed_by_none(
    live: LiveSource, tmp_path: Path, postgres_database: str, second_database: str
) -> None:
    """It was written after the last look at the source, while nothing was delivered."""
    databases = [postgres_database, second_database]
    config = config_of(live, tmp_path, databases)
    *before, last = live.waiting
    for _ in before:
        live.archive()
    run_once(config)
    data = tmp_path / "data"
    incarnation = (data / "incarnation.json").read_bytes()
    scn = open_log(str(last)).header.first_scn
    path = data / "targets" / "two" / "checkpoint.json"
    document = json.loads(path.read_bytes())
    Checkpoint(path, document["source"]).save(scn + 1, None, document["confirmed_by"])
    live.state.open_resetlogs(scn, RESETLOGS, 99)
    live.waiting = [
        reincarnated(last, tmp_path, resetlogs=RESETLOGS, scn=scn, activation=99, sequence=1)
    ]
    live.archive()
    assert failure_of(config).code == 7020
    found = json.loads((data / "incarnation.json").read_bytes())
    assert found == {**json.loads(incarnation), "delivered_scn": scn + 1}


def test_a_restored_target_gets_the_dictionary_of_its_own_start(
    live: LiveSource, tmp_path: Path, postgres_database: str, second_database: str
) -> None:
    """Docs/operations.md, "The target was restored to an earlier state": its checkpoint is removed,
    and it has a start SCN, while the other target continues where it was.
    """
    config = config_of(live, tmp_path, [postgres_database, second_database])
    live.archive_all()
    run_once(config)
    data = tmp_path / "data"
    dictionary = data / "dictionary.json"
    saved = json.loads((data / "targets" / "two" / "checkpoint.json").read_bytes())["min_start_scn"]
    # `olr-pg tables add` has read the dictionary again since then.
    stored = json.loads(dictionary.read_bytes())
    start = stored["scn"] + 1
    assert start < saved
    dictionary.write_text(json.dumps({**stored, "scn": saved}))
    (data / "targets" / "one" / "checkpoint.json").unlink()
    document = json.loads(config.read_bytes())
    document["target"][0]["apply"]["start-scn"] = start
    config.write_text(json.dumps(document))
    run_once(config)
    assert json.loads(dictionary.read_bytes())["scn"] == start


def test_a_new_target_begins_with_the_oldest_log_that_is_left(
    live: LiveSource, tmp_path: Path, postgres_database: str, second_database: str
) -> None:
    """The first logs are deleted. The run of the other target has recorded the DDL in them."""
    config = config_of(live, tmp_path, [postgres_database, second_database])
    both = json.loads(config.read_bytes())
    both["target"][1]["apply"]["on-conflict"] = "skip"  # it lacks the first rows
    config.write_text(json.dumps({**both, "target": both["target"][:1]}))
    deleted = [live.mount / live.archive().name for _ in range(2)]
    live.archive_all()
    run_once(config)
    for log in deleted:
        log.unlink()
        live.state.catalogue.update(
            "UPDATE SYS.\"V$ARCHIVED_LOG\" SET DELETED = 'YES', STATUS = 'D', NAME = NULL"
            f" WHERE NAME LIKE '%{log.name}'"
        )
    config.write_text(json.dumps(both))
    run_once(config)
    assert applied_scn(second_database) == applied_scn(postgres_database)


def test_the_vault_keeps_what_one_of_them_still_needs(
    live: LiveSource,
    summary: Summary,
    tmp_path: Path,
    postgres_database: str,
    second_database: str,
) -> None:
    vault = tmp_path / "vault"
    changes = {"vault": {"directory": str(vault)}}
    config = config_of(live, tmp_path, [postgres_database, second_database], **changes)
    document = config.read_text("utf-8")
    alone = json.loads(document)
    alone["target"] = alone["target"][:1]
    # Alone, the first one needs none of them any more as soon as it has confirmed them.
    alone["source"]["vault"]["keep-hours"] = 1
    live.archive_all()
    config.write_text(json.dumps(alone), "utf-8")
    run_once(config)
    kept = len(list(vault.glob("*.arc")))
    assert kept == len(summary.logs)
    for path in live.mount.iterdir():
        path.unlink()
    live.state.catalogue.update('UPDATE SYS."V$ARCHIVED_LOG" SET "DELETED" = \'YES\'')
    # The second one has confirmed nothing yet: what the first no longer needs stays for it.
    config.write_text(document, "utf-8")
    run_once(config)
    for database in (postgres_database, second_database):
        assert differences(database, summary) == []
    run_once(config)
    assert len(list(vault.glob("*.arc"))) < kept
