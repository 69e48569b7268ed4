"""Initial loads: what is in afterwards, what a second one does, and how replication goes on."""

from __future__ import annotations

import shutil
from typing import Any

import psycopg
import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.load.cutover_steps import DONE, forget_steps, note_step
from tests.advice import followed
from tests.load.conftest import Project
from tests.replicator.test_simulated import check_tables

POSITIONS = "SELECT source_table, commit_scn FROM olr_pg.ledger ORDER BY 1"


def fetch(project: Project, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(project.database) as connection:
        return connection.execute(query.encode()).fetchall()


def target_rows(project: Project) -> dict[str, int]:
    return {
        table.full_name: int(str(fetch(project, f"SELECT count(*) FROM {table.full_name}")[0][0]))
        for table in project.source.summary.tables
    }


def test_a_load_in_the_middle_of_the_logs_and_then_a_run_give_the_final_tables(
    project: Project,
) -> None:
    source = project.source
    scn = source.scn(0.5)
    project.tables = source.write_tables(project.folder / "tables", scn)
    done = project.load()
    rows = {name: len(found) for name, found in source.rows(scn).items()}
    assert {one.table: one.rows for one in done} == rows == target_rows(project)
    assert sum(rows.values()) > 50
    assert max(one.parts for one in done) > 1
    assert {(one.scn, one.start_scn) for one in done} == {(scn, source.open_since(scn))}
    own = source.summary.snapshot.database.dbid
    # A table that somebody restores between the load and the run is noticed, too.
    known = "SELECT DISTINCT target_oid = target_table::regclass FROM olr_pg.ledger"
    assert fetch(project, known) == [(True,)]
    lines = fetch(project, "SELECT DISTINCT commit_scn, xids, dbid FROM olr_pg.ledger")
    assert lines == [(scn, [], own)]

    again = project.load()
    assert [one.parts_before for one in again] == [one.parts for one in done]
    assert target_rows(project) == rows

    project.run()
    check_tables(source.summary, project.database)
    assert fetch(project, "SELECT DISTINCT handed_over FROM olr_pg.load") == [(True,)]
    inserted = fetch(project, "SELECT sum(inserted) FROM olr_pg.ledger")[0][0]
    after = [t for t in source.transactions if t.commit_scn > scn]
    assert 0 < int(str(inserted)) <= sum(len(t.changes) for t in after)
    with psycopg.connect(project.database) as connection:
        connection.execute("DELETE FROM olr_pg.load")
    with pytest.raises(OlrPgError) as caught:
        project.load()
    assert caught.value.code == 5105
    fetch(project, "UPDATE olr_pg.ledger SET dbid = dbid + 1 RETURNING dbid")
    for work in (project.load, project.run):
        with pytest.raises(OlrPgError) as caught:
            work()
        assert caught.value.code == 5027
    project.load(anew=True)  # as the error advises if this source replaced the other one
    assert target_rows(project) == rows
    assert fetch(project, "SELECT DISTINCT dbid FROM olr_pg.ledger") == [(own,)]


def test_the_target_of_a_source_with_higher_scns_is_loaded_again(project: Project) -> None:
    """As after a restore of the source, or from another copy of it (OLR-07101)."""
    source = project.source
    project.tables = source.write_tables(project.folder / "tables", source.scn(0.5))
    project.load()
    project.run()
    expected = target_rows(project)
    with psycopg.connect(project.database) as connection:
        connection.execute("UPDATE olr_pg.ledger SET commit_scn = 1e15")
        connection.execute("UPDATE olr_pg.subscription SET complete_scn = 1e15, start_scn = 1e15")
    shutil.rmtree(project.folder / "data")
    project.load(anew=True)
    project.run()
    assert target_rows(project) == expected
    assert fetch(project, "SELECT DISTINCT handed_over FROM olr_pg.load") == [(True,)]
    assert fetch(project, "SELECT complete_scn < 1e15 FROM olr_pg.subscription") == [(True,)]


def test_a_load_that_broke_off_goes_on_and_loads_nothing_twice(project: Project) -> None:
    source = project.source
    scn = source.scn(0.6)
    project.tables = source.write_tables(project.folder / "tables", scn)
    name, rows = max(source.rows(scn).items(), key=lambda item: len(item[1]))
    with pytest.raises(OlrPgError) as caught:
        project.run_with_refusal(name)
    assert caught.value.code == 5109
    assert caught.value.where["table"] == name
    before = target_rows(project)
    assert 0 < before[name] < len(rows)
    assert fetch(project, "SELECT DISTINCT commit_scn FROM olr_pg.ledger WHERE stopped") == []

    with pytest.raises(OlrPgError) as caught:
        project.run()
    assert caught.value.code == 5107
    with pytest.raises(OlrPgError) as caught:
        project.load()
    assert caught.value.code == 5106

    project.allow(name)
    done = {one.table: one for one in project.load(resume=True)}
    assert 0 < done[name].parts_before < done[name].parts
    assert target_rows(project) == {key: len(found) for key, found in source.rows(scn).items()}
    project.run()
    check_tables(source.summary, project.database)


def test_a_crash_amid_a_load_into_an_unlogged_table(project: Project) -> None:
    """The partitions that were in are gone: a load that went on would lack them."""
    source = project.source
    scn = source.scn(0.6)
    project.tables = source.write_tables(project.folder / "tables", scn)
    name = max(source.rows(scn).items(), key=lambda item: len(item[1]))[0]
    with pytest.raises(OlrPgError):
        project.run_with_refusal(name)
    project.allow(name)
    ((target,),) = fetch(
        project, f"SELECT target_table FROM olr_pg.load WHERE source_table = '{name}'"
    )
    quoted = ".".join(f'"{part}"' for part in str(target).split(".", 1))
    with psycopg.connect(project.database, autocommit=True) as connection:
        connection.execute(f"ALTER TABLE {quoted} SET UNLOGGED".encode())
        with pytest.raises(OlrPgError) as caught:
            project.load(resume=True)
        assert caught.value.code == 5040
        # What a crash does.
        connection.execute(f"TRUNCATE {quoted}, olr_pg.crash_mark".encode())
    project.apply = {"unlogged-tables": "accept"}
    with pytest.raises(OlrPgError) as caught:
        project.load(resume=True)
    assert (caught.value.code, caught.value.where["table"]) == (5041, name)
    project.load(restart=True)
    assert target_rows(project) == {key: len(found) for key, found in source.rows(scn).items()}
    project.run()
    check_tables(source.summary, project.database)


def test_a_load_empties_no_table_that_does_not_fit_or_is_in_use(project: Project) -> None:
    source = project.source
    project.tables = source.write_tables(project.folder / "tables", source.scn(0.6))
    project.load()
    before = target_rows(project)
    with psycopg.connect(project.database, autocommit=True) as connection:
        note_step(connection, "olr_pg", "report", DONE, {})  # the applications write to them
        with pytest.raises(OlrPgError) as caught:
            project.load(anew=True)
        assert caught.value.code == 5171
        assert target_rows(project) == before
        forget_steps(connection, "olr_pg")
        # If a load cannot be recorded as begun, the table keeps its rows and its position.
        positions = fetch(project, POSITIONS)
        connection.execute(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ BEGIN RAISE EXCEPTION 'lost'; END $$;"
            "CREATE TRIGGER fail BEFORE INSERT ON olr_pg.load FOR EACH ROW EXECUTE FUNCTION fail();"
            "ALTER TABLE olr_pg.load ENABLE ALWAYS TRIGGER fail"
        )
        with pytest.raises(psycopg.errors.RaiseException):
            project.load(anew=True)
        assert (target_rows(project), fetch(project, POSITIONS)) == (before, positions)
        connection.execute("DROP FUNCTION fail CASCADE")
    ((target,),) = fetch(project, "SELECT max(target_table) FROM olr_pg.load")
    quoted = ".".join(f'"{part}"' for part in str(target).split(".", 1))
    with psycopg.connect(project.database, autocommit=True) as connection:
        connection.execute(f"ALTER TABLE {quoted} SET UNLOGGED".encode())
    with pytest.raises(OlrPgError) as caught:
        project.load(anew=True)
    assert caught.value.code == 5040
    assert target_rows(project) == before


def test_a_restart_empties_what_was_begun(project: Project) -> None:
    source = project.source
    project.tables = source.write_tables(project.folder / "tables", source.scn(0.3))
    name = max(source.rows(source.scn(0.3)).items(), key=lambda item: len(item[1]))[0]
    with pytest.raises(OlrPgError):
        project.run_with_refusal(name)
    project.allow(name)
    project.tables = source.write_tables(project.folder / "later", source.scn(0.9))
    with pytest.raises(OlrPgError) as caught:
        project.load(resume=True)
    followed(caught.value, Code.TABLE_DATA_CHANGED, "start over with --restart")
    # The loaded partitions are lost with the table, so none of them counts as loaded.
    ((target,),) = fetch(
        project, f"SELECT target_table FROM olr_pg.load WHERE source_table = '{name}'"
    )
    quoted = ".".join(f'"{part}"' for part in str(target).split(".", 1))
    with psycopg.connect(project.database, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE public.again (LIKE {quoted} INCLUDING ALL)".encode())
        connection.execute(f"DROP TABLE {quoted}".encode())
        schema, own = quoted.split(".")
        connection.execute(f"ALTER TABLE public.again RENAME TO {own}".encode())
        connection.execute(f"ALTER TABLE public.{own} SET SCHEMA {schema}".encode())
    with pytest.raises(OlrPgError) as caught:
        project.load(resume=True)
    assert (caught.value.code, caught.value.where["table"]) == (5046, name)
    project.load(restart=True)
    rows: list[Any] = fetch(project, "SELECT source_table, scn FROM olr_pg.load")
    scns = dict(rows)
    # Tables that were in before the load broke off stay as they are.
    assert scns[name] == source.scn(0.9)
    assert target_rows(project) == {
        table: len(source.rows(scn)[table]) for table, scn in scns.items()
    }


def test_rows_that_are_there_are_never_mixed_with_loaded_ones(project: Project) -> None:
    source = project.source
    project.tables = source.write_tables(project.folder / "tables", source.scn(0.2))
    project.run()
    with psycopg.connect(project.database) as connection:
        connection.execute("DROP SCHEMA olr_pg CASCADE")
    with pytest.raises(OlrPgError) as caught:
        project.load()
    assert caught.value.code == 5104
    assert fetch(project, "SELECT count(*) FROM olr_pg.load") == [(0,)]


def test_table_data_that_is_missing_or_broken(project: Project) -> None:
    source = project.source
    with pytest.raises(OlrPgError) as caught:
        project.load()
    assert caught.value.code == 5113
    project.tables = source.write_tables(project.folder / "tables", source.scn(0.2))
    file = project.tables / f"{source.summary.tables[0].full_name}.parquet"
    data = file.read_bytes()
    file.write_bytes(data[:-20])
    with pytest.raises(OlrPgError) as caught:
        project.load()
    assert (caught.value.code, caught.value.where["file"]) == (5103, str(file))
    file.unlink()
    with pytest.raises(OlrPgError) as caught:
        project.load()
    assert caught.value.code == 5103


def test_a_table_is_loaded_anew_and_replicated_on(project: Project) -> None:
    """With what was held of it gone, and the tables that refer to it untouched."""
    source = project.source
    project.tables = source.write_tables(project.folder / "tables", source.scn(0.5))
    project.load()
    fetch(project, "DELETE FROM shop.customers RETURNING 1")
    with pytest.raises(OlrPgError) as caught:
        project.run()
    assert caught.value.code == 5010
    project.names = ["SHOP.CUSTOMERS"]
    (done,) = project.load(anew=True)
    assert done.parts_before == 0
    assert fetch(project, "SELECT count(*) FROM olr_pg.held") == [(0,)]
    project.names = [table.full_name for table in source.summary.tables]
    project.run()
    check_tables(source.summary, project.database)


def test_partitions_of_a_load_that_somebody_forgot_do_not_count(project: Project) -> None:
    source = project.source
    project.tables = source.write_tables(project.folder / "tables", source.scn(0.5))
    project.load()
    rows = target_rows(project)
    fetch(
        project,
        "WITH load AS (DELETE FROM olr_pg.load), rows AS (DELETE FROM shop.orders)"
        " DELETE FROM olr_pg.ledger RETURNING 1",
    )
    project.names = ["SHOP.ORDERS"]
    project.load()
    assert target_rows(project) == rows
