"""Which archived logs nobody needs: what is called purgeable can go, and a start still works."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from typer.testing import CliRunner

from olr_pg.appliance.appliance import run_appliance
from olr_pg.appliance.log_needs import KnownLog, Position, choose_needed
from olr_pg.capture.logs import discover_logs
from olr_pg.cli.main import app
from olr_pg.config.reading import load_config
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.ordering.test_run_end import SIM, whole_of
from tests.replicator.recovery_runs import Restarts

if TYPE_CHECKING:
    from collections.abc import Sequence


def log(sequence: int, first: int, end: int, thread: int = 1, incarnation: int = 9) -> KnownLog:
    return KnownLog(incarnation, thread, sequence, first, end, f"/a/{thread}_{sequence}", "")


def purgeable(logs: Sequence[KnownLog], *scns: int | None, vault: Sequence[int] = ()) -> list[str]:
    starts = [Position(f"t{number}", scn, "") for number, scn in enumerate(scns)]
    copied = frozenset(one.position for one in logs if one.sequence in vault)
    return [one.log.name for one in choose_needed(logs, starts, copied) if not one.needed]


LOGS = [log(1, 100, 200), log(2, 200, 300), log(3, 300, 400), log(4, 400, 500)]


@pytest.mark.parametrize(
    ("scns", "sequences"),
    [
        ((450,), [1, 2]),  # the last one before the start stays
        ((400,), [1, 2]),
        ((399,), [1]),
        ((450, 250), []),  # the target that lags decides
        ((450, 399), [1]),
        ((450, None), []),  # nobody knows where one starts
        ((0,), []),
        ((), []),
        ((10_000,), [1, 2, 3]),
    ],
)
def test_the_lowest_start_decides(scns: tuple[int | None, ...], sequences: list[int]) -> None:
    assert purgeable(LOGS, *scns) == [f"/a/1_{number}" for number in sequences]


def test_each_thread_keeps_its_last_one() -> None:
    other = [log(7, 150, 260, 2), log(8, 260, 380, 2), log(9, 380, 390, 2)]
    assert purgeable([*LOGS, *other], 450) == ["/a/1_1", "/a/1_2", "/a/2_7", "/a/2_8"]


def test_what_the_vault_has_may_go_and_nothing_else() -> None:
    assert purgeable(LOGS, 250, vault=(2, 3)) == ["/a/1_2", "/a/1_3"]
    assert purgeable(LOGS, None, vault=(3,)) == ["/a/1_3"]


def test_orphans_behind_the_start_are_a_doubt() -> None:
    """Which of two incarnations was read up to there, the SCN alone does not tell."""
    new = [log(number, first, first + 100, incarnation=10)
           for number, first in ((1, 350), (2, 450), (3, 550))]  # fmt: skip
    assert purgeable([*LOGS, *new], 480) == ["/a/1_1", "/a/1_2", "/a/1_3"]
    assert purgeable([*LOGS, *new], 600) == ["/a/1_1", "/a/1_2", "/a/1_3", "/a/1_4", "/a/1_1"]


@pytest.mark.parametrize("seed", [100, 104, 106])
def test_a_start_does_without_what_is_purgeable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Without recovery images; some transactions are confirmed, others are open or unconfirmed."""
    snapshot = simulate(seed, tmp_path / "s", size=120_000).snapshot
    logs = discover_logs([str(tmp_path / "s" / "logs")])
    whole = whole_of(snapshot, str(tmp_path / "s" / "logs"))
    restarts = Restarts(tmp_path, snapshot, monkeypatch, query=SIM, limit_bytes=None)
    restarts.archive(logs)
    taken = restarts.run(0, confirmed=len(whole) * 2 // 3).delivered
    assert taken == whole
    saved = restarts.checkpoint().saved
    known = [KnownLog(one.header.resetlogs_id, one.header.thread, one.header.sequence,
                      one.header.first_scn, one.next_scn, one.path, one.path)
             for one in discover_logs([str(restarts.logs)])]  # fmt: skip
    gone = [one.log for one in choose_needed(known, [Position("", saved, "")]) if not one.needed]
    assert gone
    for one in gone:
        Path(one.path).unlink()
    again = restarts.run().delivered
    confirmed = whole[len(whole) * 2 // 3 - 1].commit_scn
    assert [one for one in again if one.commit_scn > confirmed] == [
        one for one in whole if one.commit_scn > confirmed
    ]


@pytest.mark.usefixtures("one_session")
def test_the_command(tmp_path: Path, postgres_database: str) -> None:
    shape = replace(demo_shape(), pace=Pace(log_blocks=60))
    summary = simulate(8, tmp_path / "s", workload="orders", size=150_000, shape=shape)
    tables = [table.full_name for table in summary.tables]
    document: dict[str, Any] = {
        "context": {"data": str(tmp_path / "data")},
        "source": {
            "kind": "offline", "logs": str(tmp_path / "s" / "logs"),
            "dictionary": str(tmp_path / "s" / "dictionary.json"),
        },
        "target": {"address": "127.0.0.1:0"},
        "apply": {"connect-string": postgres_database, "tables": tables, "create-tables": True},
        "spark": {"master": "local[2,2]"},
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(document), "utf-8")

    def ask(*options: str) -> str:
        result = CliRunner().invoke(app, ["logs", "--config", str(path), *options])
        assert result.exit_code == 0
        return result.stdout

    assert ask("--purgeable") == ""  # nothing was replicated: everything is needed
    assert run_appliance(load_config(path), once=True, apply=True) == 0
    names = ask("--purgeable").splitlines()
    found = json.loads(ask("--json"))
    known = [str(one) for one in summary.logs]
    assert names == known[: len(names)]
    assert 0 < len(names) < len(known)
    assert [one["name"] for one in found["logs"]] == known
    assert [one["name"] for one in found["logs"] if not one["needed"]] == names
    saved = Checkpoint(tmp_path / "data" / FILE_NAME, _source_of(tmp_path / "data")).saved
    (target,) = found["targets"]
    assert saved is not None
    assert summary.snapshot.scn < target["start_scn"] <= saved
    assert target["why"] in (
        "the position of its checkpoint",
        "the position recorded in the target",
    )
    assert "the last log of its thread before" in ask()
    # A load that replication has not passed has a start go further back.
    with psycopg.connect(postgres_database) as connection:
        connection.execute(
            "INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn,"
            " source, parts, finished_at) VALUES ('olr_pg', %s, 't', %s, %s, '', 1, now())",
            (tables[0], summary.snapshot.scn + 2, summary.snapshot.scn),
        )
    assert ask("--purgeable") == ""
    # So does a load, or a copy by another tool, that is not complete.
    with psycopg.connect(postgres_database) as connection:
        connection.execute("UPDATE olr_pg.load SET finished_at = NULL")
    (target,) = json.loads(ask("--json"))["targets"]
    assert target["start_scn"] == summary.snapshot.scn
    # A target that was restored from a backup has a record of a position before that load.
    with psycopg.connect(postgres_database) as connection:
        restored = "UPDATE olr_pg.subscription SET start_scn = %s"
        connection.execute(restored, (summary.snapshot.scn - 1,))
    (target,) = json.loads(ask("--json"))["targets"]
    assert target["start_scn"] == summary.snapshot.scn - 1
    assert target["why"] == "the position recorded in the target"
    document["apply"]["connect-string"] = "host=127.0.0.1 port=1 dbname=nobody"
    path.write_text(json.dumps(document), "utf-8")
    assert ask("--purgeable") == ""  # who cannot be asked may need all of them


def _source_of(data: Path) -> str:
    return str(json.loads((data / FILE_NAME).read_text("utf-8"))["source"])
