"""``olr-pg tables``, while nothing runs; at work: tests/load/test_tables_at_work.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
import typer.main
from typer.testing import CliRunner

from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.cli.main import app
from olr_pg.cli.tables import _without
from olr_pg.config.changed_tables import TableChanges
from olr_pg.config.reading import load_config
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.errors import Code, OlrPgError
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import OracleState
from tests.cli.lost_answers import lost_answers, place_of, through
from tests.simulation.proxy import Proxy

_INTERRUPTED_LOAD: Final = """
INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn, source, parts)
VALUES ('olr_pg', 'S.U', 's.u', 1, 1, 'x', 1)
"""


_COPY: Final = """
INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn, source, parts)
VALUES ('olr_pg', 'S.V', 's.v', 7, 1, 'copied by another tool', 0)
"""


@pytest.fixture
def config(tmp_path: Path, postgres_database: str) -> Path:
    with_ledger(postgres_database)
    return write(tmp_path, postgres_database)


def with_ledger(database: str) -> None:
    """The database of an appliance that has run."""
    with connect(database, replica=None) as connection:
        ensure_ledger(connection)


def source_tables() -> Snapshot:
    """A dictionary."""
    names = "T", "Odd t", "U", "MORE", "BIG", "SMALL", "ODD"
    columns = (Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0),)
    tables = [Table("S", name, at, at, columns, key=(1,)) for at, name in enumerate(names, 100)]
    return Snapshot(5_000, Database("SIMDB", 3, "SIMPDB", 77), tuple(tables))


def write(folder: Path, database: str, **apply: Any) -> Path:
    write_snapshot(source_tables(), str(folder / "d.json"))
    document = {
        "context": {"data": str(folder / "data")},
        "source": {"kind": "offline", "dictionary": "d.json", "logs": "logs"},
        "apply": {"connect-string": database, "tables": ["S.T", 'S."Odd t"', "S.U"], **apply},
    }
    path = folder / "c.json"
    path.write_text(json.dumps(document), "utf-8")
    (folder / "data").mkdir(exist_ok=True)
    return path


def run(config: Path, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["tables", *arguments, "--config", str(config)])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def test_loads_and_copies_that_have_begun_are_listed(config: Path, postgres_database: str) -> None:
    with psycopg.connect(postgres_database) as connection:
        connection.execute(_INTERRUPTED_LOAD)
        connection.execute(_COPY)
    assert run(config, "list") == ("loading     S.U → s.u  SCN 1\ncopying     S.V → s.v  SCN 7\n")
    run(config, "pause", "S.U", "S.V")
    listed = json.loads(run(config, "list", "--json"))["tables"]
    assert [(one["state"], one["copying"]) for one in listed] == [
        ("paused", False),
        ("paused", True),
    ]


def test_pause_and_resume(config: Path) -> None:
    assert run(config, "pause", "s.t", "S.Odd t") == "paused: S.T, S.Odd t\n"
    assert run(config, "pause", "S.T") == "already paused: S.T\n"
    assert "paused      S.T → s.t  SCN 0  0 transactions are held" in run(config, "list")
    assert run(config, "resume", "--all") == (
        "not paused: the whole subscription\n"
        "still paused: S.Odd t (`olr-pg tables resume 'S.Odd t'` resumes it)\n"
        "still paused: S.T (`olr-pg tables resume S.T` resumes it)\n"
    )
    assert "continues" in run(config, "resume", "S.T")
    assert "OLR-08014" in run(config, "resume", "S.T", code=9)
    run(config, "pause", "S.T")
    assert run(config, "resume", "S.T", "S.U").count("continues") == 2
    assert "S.U" not in run(config, "list")  # no change of it has come yet
    for verb in ("pause", "resume"):
        assert "OLR-05157: no table with this name is replicated: S.E*" in run(
            config, verb, "s.e*", code=6
        )
    listed = json.loads(run(config, "list", "--json"))
    assert {one["source_table"]: one["state"] for one in listed["tables"]} == {
        "S.T": "replicated",
        "S.Odd t": "paused",
    }


def test_a_database_without_a_ledger_is_not_taken_for_one_without_errors(
    tmp_path: Path, postgres_database: str
) -> None:
    """It may be another one than the applier's, so no command creates anything there."""
    config = write(tmp_path, postgres_database)
    for command in REFUSE:
        result = CliRunner().invoke(app, [*command.split(), "--config", str(config)])
        assert result.exit_code == 6, (command, result.output)
        assert "OLR-05031" in result.output
    for command in ONLY_READ:
        CliRunner().invoke(app, [*command.split(), "--config", str(config)])
    with psycopg.connect(postgres_database) as connection:
        assert connection.execute("SELECT to_regnamespace('olr_pg')").fetchone() == (None,)


def test_it_is_known_of_each_command_whether_it_may_create_the_ledger() -> None:
    known = [*REFUSE, *ONLY_READ, *CREATE, *WAY_BACK, *NO_TARGET]
    assert sorted(set(commands(typer.main.get_command(app)))) == sorted({
        next(name for name in NAMES if f"{one} ".startswith(f"{name} ")) for one in known
    })  # fmt: skip


def commands(command: Any, before: str = "") -> Iterator[str]:
    """The commands that read a configuration."""
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, f"{before}{name} ")
        if any("--config" in parameter.opts for parameter in one.params):
            yield f"{before}{name}"


NAMES: Final = sorted(commands(typer.main.get_command(app)))
REFUSE: Final = (
    *("tables pause S.T", "tables pause --all", "tables resume S.T", "tables remove S.T"),
    *("tables add S.MORE", "tables add S.MORE --no-load", "tables list"),
    *("errors list", "errors show 1", "errors retry S.T", "errors skip 1"),
    *("cutover", "cutover --restart", "cutover --unverified", "schema put-back"),
)
"""They would create the ledger in a wrong database, or say that it has no errors."""
ONLY_READ: Final = (
    *("migrate --plan", "migrate --cutover", "doctor", "assess", "verify", "repair", "status"),
    *("schema diff", "schema export", "schema apply --dry-run", "reload"),
)
"""They need no ledger, or check something else first."""
CREATE: Final = "run", "initial-load", "migrate", "schema apply"
WAY_BACK: Final = (
    *("fallback begin", "fallback cutover", "fallback end", "fallback report", "fallback resume"),
    *("fallback run", "fallback skip", "fallback status", "fallback verify"),
)
"""They need the section `fallback` and Oracle (tests/fallback)."""
NO_TARGET: Final = "config check", "dictionary export", "dump", "logs", "prove", "fetch-lobs"
"""They do not open the target, or need a live source first."""


def test_a_table_whose_target_does_not_fit_is_not_added(
    config: Path, postgres_database: str
) -> None:
    with psycopg.connect(postgres_database) as connection:
        connection.execute("CREATE SCHEMA s; CREATE UNLOGGED TABLE s.more (id int PRIMARY KEY)")
    assert "OLR-05040" in run(config, "add", "S.MORE", "--no-load", code=6)
    with psycopg.connect(postgres_database) as connection:
        connection.execute("ALTER TABLE s.more SET LOGGED")
    run(config, "add", "S.MORE", "--no-load")


def test_only_later_changes_of_a_live_table_that_is_added_without_a_load_are_wanted(
    tmp_path: Path, postgres_database: str
) -> None:
    """A start may read redo from before the command: its changes are in the target's rows."""
    with_ledger(postgres_database)
    state = OracleState(source_tables(), dbid=1)
    with StandIn(state) as server:
        config = write(tmp_path, postgres_database)
        document = json.loads(config.read_text())
        document["source"] = {"user": "olr", "password": "olr", "server": server.connect_string}
        config.write_text(json.dumps(document))
        with psycopg.connect(postgres_database) as connection:
            connection.execute("CREATE SCHEMA s; CREATE UNLOGGED TABLE s.odd (id int PRIMARY KEY)")
        assert "OLR-05040" in run(config, "add", "S.MORE", "S.ODD", "--no-load", code=6)
        ledger = "SELECT source_table, target_table, commit_scn FROM olr_pg.ledger"
        with psycopg.connect(postgres_database) as connection:
            assert connection.execute(ledger).fetchall() == []
        run(config, "add", "S.MORE", "--no-load")
    with psycopg.connect(postgres_database) as connection:
        assert connection.execute(ledger).fetchall() == [("S.MORE", "s.more", 5_000)]


def test_the_whole_subscription(config: Path) -> None:
    assert run(config, "pause", "--all", "--by", "alice") == "paused: the whole subscription\n"
    assert "The subscription was PAUSED by alice" in run(config, "list")
    assert run(config, "pause", "--all") == "already paused: the whole subscription\n"
    assert run(config, "resume", "--all") == "resumed: the whole subscription\n"
    assert "name at least one table" in run(config, "pause", code=2)
    run(config, "pause", "S.T", "--all", code=2)


def test_where_all_tables_go_on_together(tmp_path: Path, postgres_database: str) -> None:
    with_ledger(postgres_database)
    run(write(tmp_path, postgres_database), "pause", "S.T")
    config = write(tmp_path, postgres_database, consistency="transaction")
    assert "OLR-08013" in run(config, "pause", "S.T", code=9)
    assert "continues" in run(config, "resume", "S.T")  # it was paused before this setting
    run(config, "pause", "--all")


def test_a_removal_that_lost_its_connection_is_repeated(
    config: Path, postgres_database: str
) -> None:
    """Whichever answer to a statement that writes is lost: no position, and no record of a load
    that was interrupted, stays for good.
    """
    known = config.read_text("utf-8")
    with Proxy("postgres", lambda: place_of(postgres_database)) as proxy:
        for _, trip in lost_answers(proxy, least=4):
            config.write_text(known, "utf-8")
            (config.parent / "data" / "tables.json").unlink(missing_ok=True)
            run(config, "pause", "S.T")
            with psycopg.connect(postgres_database) as connection:
                connection.execute(_INTERRUPTED_LOAD)
            through(proxy, config, postgres_database)
            proxy.arm(trip)
            line = ["tables", "remove", "S.T", "S.U", "--config", str(config)]
            done = CliRunner().invoke(app, line)
            if trip.tripped.is_set():
                assert (done.exit_code, "OLR-05003" in done.stderr) == (6, True)
                done = CliRunner().invoke(app, line)
            # After the last commit, nothing is left to do.
            assert done.exit_code == 0 or "OLR-08015" in done.stderr
            with psycopg.connect(postgres_database) as connection:
                for kept in ("ledger", "load"):
                    assert connection.execute(f"SELECT FROM olr_pg.{kept}").fetchall() == []


def test_a_table_stays_that_was_added_while_another_one_was_loaded(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load takes hours, and the list can change meanwhile."""

    def load(*_: Any, **__: Any) -> None:
        run(config, "add", "S.SMALL", "--no-load")
        run(config, "remove", "S.T")

    monkeypatch.setattr("olr_pg.cli.migration.load.load_tables", load)
    run(config, "add", "S.BIG")
    apply = load_config(config).apply
    assert apply is not None
    assert set(map(str, apply.table_names or ())) == {"S.Odd t", "S.U", "S.BIG", "S.SMALL"}


def test_the_last_tables_are_not_removed_by_two_commands(config: Path) -> None:
    """Each sees a list that still contains the table of the other."""
    apply = load_config(config).apply
    assert apply is not None
    first, *others = apply.table_names or ()
    fewer = _without(apply, TableChanges(), others)
    with pytest.raises(OlrPgError) as caught:
        _without(apply, fewer, [first])
    assert caught.value.code == Code.TABLES_NOT_CHANGEABLE


def test_a_table_that_the_source_does_not_have_is_not_added(config: Path) -> None:
    """No start would accept the list."""
    assert "OLR-03012" in run(config, "add", "S.NONE", "--no-load", code=4)
    assert not (config.parent / "data" / "tables.json").exists()


def test_a_name_that_is_given_twice_counts_once(config: Path) -> None:
    assert run(config, "pause", "S.T", "s.t", '"S"."T"') == "paused: S.T\n"
    assert run(config, "resume", "s.t", "S.T").count("continues") == 1
    run(config, "add", "S.MORE", "s.more", "--no-load")
    changes = json.loads((config.parent / "data" / "tables.json").read_text())
    assert changes["added"] == [["S", "MORE"]]
    run(config, "remove", "S.MORE", "s.more")


def test_the_list_of_tables(config: Path, postgres_database: str) -> None:
    assert "OLR-08015" in run(config, "add", "S.T", code=9)
    assert (
        run(config, "add", "s.more", "--no-load")
        == "the change is stored; the next start of the appliance applies it\n"
    )
    assert "OLR-08015" in run(config, "add", "S.MORE", "--no-load", code=9)
    run(config, "pause", "S.U")
    with psycopg.connect(postgres_database) as connection:
        connection.execute(
            "INSERT INTO olr_pg.load VALUES ('olr_pg', 'S.U', 's.u', 1, 1, 'x', 1, now(), now())"
        )
    run(config, "remove", "S.U")
    with psycopg.connect(postgres_database) as connection:
        for table in ("ledger", "held", "load"):
            assert connection.execute(f"SELECT * FROM olr_pg.{table}".encode()).fetchall() == []
    assert "OLR-08015" in run(config, "remove", "S.U", code=9)
    run(config, "remove", "S.T", "S.MORE")
    assert "at least one table must stay in the list" in run(config, "remove", 'S."Odd t"', code=9)
    changes = json.loads((config.parent / "data" / "tables.json").read_text())
    assert changes == {
        "version": 1,
        "added": [],
        "removed": [["S", "U"], ["S", "T"], ["S", "MORE"]],
    }
