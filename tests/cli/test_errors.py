"""``olr-pg errors``: a table that stopped is shown and let go on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psycopg
import pytest
from typer.testing import CliRunner

from olr_pg.applier.batches.table_applier import TableApplier
from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.statements.table_changes import HeldMessages
from olr_pg.applier.stopped.pausing import pause_table
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.cli.main import app
from olr_pg.wire.elements import ColumnValue, Insert, encode_element
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import Data, encode_answer
from tests.cli.lost_answers import lost_answers, place_of, through
from tests.simulation.proxy import Proxy

if TYPE_CHECKING:
    from typer.testing import Result

ORDER = ByteOrder.LITTLE
WRITES = 5
"""So many statements write at least: a mark, the rows, the hold, the ledger, and COMMITs."""


def _stop(target: str, second: bytes = b"\xc1\x03") -> None:
    """Let a table get three rows, the second of which it refuses."""
    with connect(target) as connection:
        ensure_ledger(connection)
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.t (n int CONSTRAINT no CHECK (n <> 2))")
        blob = b"".join(
            encode_answer(
                Data(
                    encode_element(
                        Insert(
                            scn=n, commit_scn=n, xid=n, timestamp=0, object_id=1, schema="S",
                            table="T", rowid="", after=(ColumnValue("N", 2, value=raw),),
                        ),
                        ORDER,
                    )
                ),
                ORDER,
            )
            for n, raw in ((1, b"\xc1\x02"), (2, second), (3, b"\xc1\x04"))
        )  # fmt: skip
        selection = HeldMessages().parse(np.frombuffer(bytearray(blob), np.uint8), [], ORDER)
        TableApplier("S.T", ApplierSettings(target, "", 0, ""), None).apply(connection, selection)


@pytest.fixture
def config(tmp_path: Path, postgres_database: str) -> Path:
    path = tmp_path / "olr-pg.json"
    source = {"kind": "offline", "dictionary": "none.json", "logs": ["none"]}
    target = {"connect-string": postgres_database, "tables": ["S.T"]}
    path.write_text(json.dumps({"source": source, "apply": target}))
    return path


def run(config: Path, command: str, *args: str) -> Result:
    return CliRunner().invoke(app, ["errors", command, "--config", str(config), *args])


def test_an_invalid_value_is_shown_although_it_cannot_be_printed(
    config: Path, postgres_database: str
) -> None:
    _stop(postgres_database, second=b"\xc1\xff")
    shown = run(config, "show", "1")
    assert (shown.exit_code, shown.exception) == (0, None)
    assert "change: cannot be shown: OLR-02050" in shown.stdout
    assert 'after: {"N":"c1ff"}' in shown.stdout
    assert "[column N, type NUMBER]" in shown.stdout


def test_a_stopped_table_is_listed_shown_retried_and_let_go_on(
    config: Path, postgres_database: str
) -> None:
    _stop(postgres_database)
    listed = run(config, "list")
    assert listed.exit_code == 1
    assert "STOPPED S.T: 2 transactions with 2 changes" in listed.stdout
    # Values of rows are shown by `show` alone.
    assert 'violates check constraint "no" (1 time)' in listed.stdout
    assert "Failing row" not in listed.stdout
    document = json.loads(run(config, "list", "--json").stdout)
    (error,) = document["errors"]
    assert (error["code"], error["xid"], error["operation"]) == ("OLR-05008", "0.0.2", "insert")
    number = str(error["id"])
    shown = json.loads(run(config, "show", number, "--json").stdout)
    assert shown["change"]["after"] == {"N": 2}
    text = run(config, "show", number).stdout
    assert re.search(r'statement: INSERT INTO "s"."t" .*VALUES \(\$1', text)
    assert re.search(r"first seen: [-0-9]+ [:0-9]+ UTC\n", text)
    assert f"skip the change with `olr-pg errors skip {number}`" in text
    assert "after:" not in text.replace('"after":', "")
    again = run(config, "retry", "--json")
    assert again.exit_code == 1
    assert json.loads(again.stdout)["tables"][0]["error"]["code"] == "OLR-05008"
    done = run(config, "skip", number, number)
    assert (done.exit_code, "continues" in done.stdout) == (0, True)
    assert run(config, "list").exit_code == 0
    with psycopg.connect(postgres_database) as connection:
        assert connection.execute("SELECT n FROM s.t ORDER BY n").fetchall() == [(1,), (3,)]


def test_a_whole_transaction_is_left_out(config: Path, postgres_database: str) -> None:
    _stop(postgres_database)
    (error,) = json.loads(run(config, "list", "--json").stdout)["errors"]
    done = run(config, "skip", str(error["id"]), "--whole-transaction")
    assert (done.exit_code, "continues" in done.stdout) == (0, True)
    again = run(config, "skip", str(error["id"]), "--whole-transaction")
    assert (again.exit_code, "0 transactions applied" in again.stdout) == (0, True)
    with psycopg.connect(postgres_database) as connection:
        assert connection.execute("SELECT n FROM s.t ORDER BY n").fetchall() == [(1,), (3,)]
        assert connection.execute("SELECT FROM olr_pg.held").fetchall() == []


def test_a_skip_that_lost_its_connection_is_repeated(config: Path, postgres_database: str) -> None:
    with Proxy("postgres", lambda: place_of(postgres_database)) as proxy:
        through(proxy, config, postgres_database)
        for number, trip in lost_answers(proxy, least=WRITES):
            _stop(postgres_database)
            (error,) = json.loads(run(config, "list", "--json").stdout)["errors"]
            skip = "skip", str(error["id"]), *(["--whole-transaction"] if number % 2 else [])
            proxy.arm(trip)
            done = run(config, *skip)
            if trip.tripped.is_set():
                assert (done.exit_code, "OLR-05003" in done.stderr) == (6, True)
                done = run(config, *skip)
            assert (done.exit_code, "continues" in done.stdout) == (0, True), number
            assert forget(postgres_database) == [(1,), (3,)]


def test_a_resume_that_lost_its_connection_is_repeated(
    config: Path, postgres_database: str
) -> None:
    with Proxy("postgres", lambda: place_of(postgres_database)) as proxy:
        through(proxy, config, postgres_database)
        for number, trip in lost_answers(proxy, least=WRITES):
            with connect(postgres_database) as connection:
                ensure_ledger(connection)
                pause_table(connection, "olr_pg", "S.T", "s.t")
            _stop(postgres_database, second=b"\xc1\x05")
            resume = ["tables", "resume", "S.T", "--config", str(config)]
            proxy.arm(trip)
            done = CliRunner().invoke(app, resume)
            if trip.tripped.is_set():
                assert (done.exit_code, "OLR-05003" in done.stderr) == (6, True)
                done = CliRunner().invoke(app, resume)
            # After the last commit, nothing is left to do.
            assert done.exit_code == 0 or "OLR-08014" in done.stderr, number
            assert forget(postgres_database) == [(1,), (3,), (4,)]


@pytest.mark.parametrize("stops_first", [False, True])
def test_a_resume_of_several_tables_is_repeated_after_an_error(
    config: Path, postgres_database: str, *, stops_first: bool
) -> None:
    """The first table stops, or was stopped before it was paused, and the connection is lost before
    the second one is resumed.
    """
    with Proxy("postgres", lambda: place_of(postgres_database)) as proxy:
        through(proxy, config, postgres_database)
        resume = ["tables", "resume", "S.T", "S.U", "--config", str(config)]
        for _, trip in lost_answers(proxy, least=WRITES):
            with connect(postgres_database) as connection:
                ensure_ledger(connection)
                pause_table(connection, "olr_pg", "S.U", "s.u")
                if not stops_first:
                    pause_table(connection, "olr_pg", "S.T", "s.t")
            _stop(postgres_database)
            with connect(postgres_database) as connection:
                pause_table(connection, "olr_pg", "S.T", "s.t")
            proxy.arm(trip)
            done = CliRunner().invoke(app, resume)
            if trip.tripped.is_set():
                assert (done.exit_code, "OLR-05003" in done.stderr) == (6, True)
                done = CliRunner().invoke(app, resume)
            assert (done.exit_code, done.stdout.count("STOPPED again: OLR-05008")) == (1, 1)
            assert done.stdout.count("continues") == 1
            with psycopg.connect(postgres_database) as connection:
                connection.execute("DROP SCHEMA s CASCADE; TRUNCATE olr_pg.ledger, olr_pg.error")
                connection.execute("TRUNCATE olr_pg.held")


def test_an_error_of_a_removed_table_is_not_skipped_again(
    config: Path, postgres_database: str
) -> None:
    """The skip would enter the table in the ledger again."""
    document = json.loads(config.read_text())
    document["apply"]["tables"].append("S.U")
    document["context"] = {"data": str(config.parent)}
    config.write_text(json.dumps(document))
    _stop(postgres_database)
    (error,) = json.loads(run(config, "list", "--json").stdout)["errors"]
    removed = CliRunner().invoke(app, ["tables", "remove", "S.T", "--config", str(config)])
    assert removed.exit_code == 0, removed.output
    for whole in ([], ["--whole-transaction"]):
        skipped = run(config, "skip", str(error["id"]), *whole)
        assert (skipped.exit_code, "OLR-05143" in skipped.stderr) == (6, True)
    with psycopg.connect(postgres_database) as connection:
        assert connection.execute("SELECT FROM olr_pg.ledger").fetchall() == []


def forget(database: str) -> list[tuple[int]]:
    """The rows, which are dropped then with all that is known of their table; none is held."""
    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT n FROM s.t ORDER BY n").fetchall()
        assert connection.execute("SELECT FROM olr_pg.held").fetchall() == []
        connection.execute("DROP SCHEMA s CASCADE; TRUNCATE olr_pg.ledger, olr_pg.error")
    return rows


def test_what_is_not_there_is_refused(config: Path, postgres_database: str) -> None:
    with connect(postgres_database) as connection:
        ensure_ledger(connection)
    for command, argument, code in (("show", "5", "5142"), ("retry", "S.T", "5144")):
        result = run(config, command, argument)
        assert result.exit_code == 6
        assert f"OLR-0{code}" in result.stderr
    for command in ("retry", "list"):
        assert run(config, command).exit_code == 0


def test_a_paused_table_is_called_paused(config: Path, postgres_database: str) -> None:
    with connect(postgres_database) as connection:
        ensure_ledger(connection)
        pause_table(connection, "olr_pg", "S.T", "s.t")
    listed = run(config, "list")
    assert listed.exit_code == 0
    assert "PAUSED S.T: its changes are held until `olr-pg tables resume S.T`" in listed.stdout
    assert json.loads(run(config, "list", "--json").stdout)["paused"] == ["S.T"]
    refused = run(config, "retry", "S.T")
    assert refused.exit_code == 6
    assert "OLR-05130" in refused.output
    assert "olr-pg tables resume S.T" in refused.output


def test_a_table_that_an_error_has_stopped_before_it_was_paused_counts_as_stopped(
    config: Path, postgres_database: str
) -> None:
    _stop(postgres_database)
    with connect(postgres_database) as connection:
        pause_table(connection, "olr_pg", "S.T", "s.t")
    listed = run(config, "list")
    assert listed.exit_code == 1
    assert "an error has stopped it, too" in listed.stdout
    assert "no table has stopped" not in listed.stdout
    retried = run(config, "retry")
    assert retried.exit_code == 0
    assert "no table was retried" in retried.stdout
    assert "PAUSED S.T" in retried.stdout
