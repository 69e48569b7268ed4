"""The source that a configuration names, without what its filter leaves out.

Where a first run starts for the sake of loads, as its target tells.

Who this is, without any secret.
"""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.appliance.open_source import TargetStarts, identity_of, open_source, server_place
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.config.reading import load_config, parse_config
from olr_pg.config.source_section import OracleSource, Standby
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from olr_pg.config.model import Config

COLUMNS = (Column("ID", 1, 1, 1, 2, 22), Column("SECRET", 2, 2, 2, 2, 22))
EVERYTHING = "SELECT owner, table_name FROM all_tables"


def config(folder: Path, **sections: Any) -> Config:
    tables = tuple(Table("APP", name, obj, obj, COLUMNS) for obj, name in enumerate("TU", 100))
    write_snapshot(Snapshot(9, Database("X", resetlogs=(1,)), tables), str(folder / "d.json"))
    (folder / "archive").mkdir()
    source = {"kind": "offline", "dictionary": "d.json", "logs": "archive", "poll-ms": 1500}
    return parse_config({"source": source, **sections}, folder, {}, file="c.json")


def test_an_offline_source_is_read_with_the_filter(tmp_path: Path) -> None:
    section = {"tables": {"exclude": ["APP.U"]}, "columns": {"APP.T": ["SECRET"]}}
    with open_source(config(tmp_path, filter=section), tmp_path, lambda: None) as source:
        snapshot, tables = source.resolve(EVERYTHING)
        assert [table.full_name for table in tables] == ["APP.T"]
        assert [column.name for column in tables[0].delivered] == ["ID"]
        assert snapshot.scn == 9
        assert source.scan(0, 0).logs == ()
        assert source.pause(0) <= 1.5


def test_a_dictionary_that_is_not_there_is_an_error_of_its_own(tmp_path: Path) -> None:
    found = config(tmp_path)
    (tmp_path / "d.json").unlink()
    with (
        pytest.raises(OlrPgError) as caught,
        open_source(found, tmp_path, lambda: None),
    ):
        pass
    assert caught.value.code // 1000 == 3


LOADED = (
    "INSERT INTO olr_pg.load (subscription, source_table, target_table, scn, start_scn, source,"
    " parts, finished_at, handed_over) VALUES ('olr_pg', %s, '', %s, %s, '', 0, 'now', %s)"
)


def test_the_loads_of_all_tables_tell(postgres_database: str) -> None:
    start, saved = TargetStarts(), [0]
    assert start.changes({"S.T"})[:4] == (0, 0, 0, 0)  # no target yet
    start.know("", lambda: saved[-1], postgres_database, "olr_pg")
    assert start.changes({"S.T"})[:4] == (0, 0, 0, 0)  # no ledger yet
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
        assert start.changes({"S.T"})[:4] == (0, 0, 0, 0)
        connection.execute(LOADED, ("S.T", 30, 25, False))
        connection.execute(LOADED, ("S.U", 28, 27, False))
        assert start.changes({"S.T", "S.U"})[:4] == (25, 0, 28, 0)
        # The other table may need the oldest log.
        assert start.changes({"S.T", "S.V"})[:4] == (0, 0, 30, 0)
        for scn, begin in ((20, 20), (40, 25)):
            saved.append(scn)
            assert start.changes({"S.T", "S.V"})[:4] == (begin, scn, 30, scn)
        assert start.changes({"S.V"})[:4] == (40, 40, 0, 40)
        connection.execute("UPDATE olr_pg.load SET finished_at = NULL")
        with pytest.raises(OlrPgError, match="OLR-05107"):
            start.changes({"S.T", "S.U"})


def test_the_loads_of_several_targets_tell(postgres_database: str) -> None:
    start, saved = TargetStarts(), {"olr_pg": 40, "second": 40}
    for name in saved:
        start.know(name, partial(saved.__getitem__, name), postgres_database, name)
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
        assert start.changes({"S.T"})[:4] == (40, 40, 0, 40)
        for subscription, scn, start_scn in (("olr_pg", 30, 25), ("second", 28, 27)):
            connection.execute(
                LOADED.replace("'olr_pg'", "%s"), (subscription, "S.T", scn, start_scn, False)
            )
        for scn, found in ((0, (25, 0, 28)), (40, (25, 40, 28)), (20, (20, 20, 28))):
            saved.update(olr_pg=scn, second=scn)
            assert start.changes({"S.T"})[:4] == (*found, scn)
        # A new target with loads of all its tables needs no redo before them.
        saved.update(olr_pg=0, second=26)
        assert start.changes({"S.T"})[:4] == (25, 26, 28, 26)
        saved.update(olr_pg=40, second=40)
        connection.execute(
            "UPDATE olr_pg.load SET finished_at = NULL WHERE subscription = 'olr_pg'"
        )
        # Its own applier reports the other target.
        assert start.changes({"S.T"})[:4] == (27, 40, 28, 40)


def test_a_target_that_begins_with_its_loads_needs_the_loaded_tables(
    postgres_database: str,
) -> None:
    start, saved, lists = TargetStarts(), {"a": 0, "b": 0}, {"q": ["S.T"], "r": ["S.T", "S.V"]}
    start.know("a", partial(saved.__getitem__, "a"), postgres_database, "olr_pg", "q")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
        assert start.changes({"S.T"}, lists).loaded == {}
        connection.execute(LOADED, ("S.T", 30, 25, False))
        connection.execute(LOADED, ("S.U", 28, 27, False))
    assert start.changes({"S.T"}, lists).loaded == {"q": {"S.U"}}
    saved["a"] = 40
    assert start.changes({"S.T"}, lists).loaded == {}
    saved["a"] = 0
    start.know("b", partial(saved.__getitem__, "b"), postgres_database, "olr_pg", "r")
    assert start.changes({"S.T"}, lists).loaded == {"q": {"S.U"}}  # "b" needs the oldest log
    start.know("b", lambda: 40, postgres_database, "other", "q")
    assert start.changes({"S.T"}, lists).loaded == {}  # "b" needs each table of the same list


def test_each_target_has_a_position_of_its_own(postgres_database: str) -> None:
    """One was restored: its checkpoint was removed, and it has an `apply.start-scn`."""
    start, saved = TargetStarts(), {"restored": 20, "other": 40, "external": 60}
    for name in ("restored", "other"):
        start.know(name, partial(saved.__getitem__, name), postgres_database, name)
    start.know("external", partial(saved.__getitem__, "external"))
    assert (start.changes({"S.T"})[:4], start.confirmed_scn()) == ((20, 20, 0, 60), 20)
    assert start.recorded_scn() == 20
    saved["external"] = 0
    assert (start.changes({"S.T"})[:4], start.confirmed_scn()) == ((0, 20, 0, 40), 0)
    assert start.recorded_scn() == 20  # the new target has recorded nothing
    start.know("restored", lambda: 50, postgres_database, "restored")
    saved["external"] = 60
    assert (start.changes({"S.T"})[:4], start.confirmed_scn()) == ((40, 40, 0, 60), 40)


def test_a_start_scn_records_no_ddl() -> None:
    start, saved = TargetStarts(), dict[str, int | None](one=None, new=None)
    start.know("one", partial(saved.__getitem__, "one"), first_scn=30)
    start.know("new", partial(saved.__getitem__, "new"))
    assert (start.changes({"S.T"})[:4], start.recorded_scn()) == ((0, 30, 0, 0), 0)
    saved["one"] = 40
    assert (start.changes({"S.T"})[:4], start.recorded_scn()) == ((0, 40, 0, 40), 40)
    start.know("new", partial(saved.__getitem__, "new"), first_scn=35)
    assert (start.changes({"S.T"})[:4], start.recorded_scn()) == ((35, 35, 0, 40), 35)


def test_a_target_that_is_away_tells_nothing() -> None:
    start = TargetStarts()
    start.know("", lambda: 7, "host=127.0.0.1 port=1 dbname=nothing", "olr_pg")
    assert start.changes({"S.T"})[:4] == (7, 7, 0, 7)
    assert start.needed(30) is None


def test_redo_that_a_load_of_any_target_needs_is_kept(postgres_database: str) -> None:
    start = TargetStarts()
    assert start.needed(30) == 30
    start.know("", lambda: 0, postgres_database, "olr_pg")
    assert start.needed(30) is None  # no ledger yet
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
        assert start.needed(30) == 30
        connection.execute(LOADED, ("S.T", 28, 25, False))
        connection.execute(LOADED, ("S.U", 20, 15, True))
        assert start.needed(30) == 25
        assert start.needed(20) == 20
        connection.execute("UPDATE olr_pg.load SET finished_at = NULL")  # it is at work
        assert start.needed(30) == 25
        connection.execute("UPDATE olr_pg.load SET handed_over = true")
        assert start.needed(30) == 30
        # The target was restored from a backup.
        connection.execute("INSERT INTO olr_pg.subscription VALUES ('olr_pg', 9, now(), 10)")
        assert start.needed(30) == 10


SECRET = "hunter2-secret"


def test_it_names_source_and_target_and_nobody(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    connect = f"postgresql://scott:{SECRET}@pg1:5433/shop"
    path.write_text(
        '{"source": {"user": "scott", "password": "' + SECRET + '", "server": "db1:1521/pdb"},'
        f' "apply": {{"connect-string": "{connect}", "tables": ["A.B"]}}}}'
    )
    config = load_config(path)
    found = identity_of(config, Database("FREE", con_name="PDB1"), connect)
    assert found.instance == socket.gethostname()
    assert (found.config, found.source, found.container) == (str(path), "FREE", "PDB1")
    assert found.source_place == "db1:1521/pdb"
    assert found.target == "pg1:5433, database shop"
    assert found.subscription == "olr_pg"
    assert SECRET not in str(found)
    assert "scott" not in str(found)
    assert identity_of(config, Database("FREE"), "").target == ""
    assert isinstance(config.source, OracleSource)
    standby = Standby.model_validate({"server": "db2:1521/stby", "user": "u", "password": SECRET})
    source = config.source.model_copy(update={"standby": standby})
    found = identity_of(config.model_copy(update={"source": source}), Database("FREE"), "")
    assert found.source_place == "db2:1521/stby"


@pytest.mark.parametrize(
    ("server", "place"),
    [
        ("db1:1521/svc", "db1:1521/svc"),
        ("tcps://db1:2484/svc?wallet_location=/w&x=y", "tcps://db1:2484/svc"),
        ("scott/tiger@db1/svc", "db1/svc"),
        ("PROD", "PROD"),
        (
            (
                "(DESCRIPTION=(ADDRESS=(PROTOCOL=tcps)(HOST=db1)(PORT=2484))"
                "(CONNECT_DATA=(SERVICE_NAME=svc))(SECURITY=(MY_WALLET_DIRECTORY=/w)))"
            ),
            "db1:2484/svc",
        ),
        ("(description=(address=(host = db1))(connect_data=(sid=X)))", "db1/X"),
    ],
)
def test_a_server_is_named_without_what_it_was_given(server: str, place: str) -> None:
    assert server_place(server) == place
