"""Loading from a live database, through the real driver, and what `run` and `verify` make of it."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.applier.session import server_side
from olr_pg.capture.logs import open_log
from olr_pg.cli.migration.cutover import cutover
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import sources
from olr_pg.load.initial import LoadedTable, LoadOptions, initial_load
from olr_pg.load.load_progress import TableLoadProgress
from olr_pg.load.table_data import UNDO_GONE as UNDO_GONE_CODE
from olr_pg.load.target_structure import StructureBuilder
from olr_pg.load.verification.target_state import SourceArrival
from olr_pg.load.verification.verification import Scope, VerifiedTable, _without_undo, verify
from olr_pg.oracle import table_query
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.oracle_net.session import Fault
from olr_pg.simulator.simulated_files import Summary
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.advice import followed
from tests.oracle.live_source import LiveSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from olr_pg.config.model import Config
    from olr_pg.load.table_data import SourceTable


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    shape = replace(demo_shape(), pace=Pace(log_blocks=40))
    folder = tmp_path_factory.mktemp("live-load")
    made = simulate(5, folder, workload="orders", size=150_000, shape=shape, prefilled=True)
    assert len(made.logs) > 4
    return made


@pytest.fixture
def live(summary: Summary, tmp_path: Path) -> Iterator[LiveSource]:
    source = LiveSource(summary, tmp_path)
    source.keep_rows()
    yield source
    source.close()


class Shop:
    """The live shop, and the commands that its configuration is given to."""

    def __init__(
        self, live: LiveSource, folder: Path, database: str, session: Callable[[], SparkSession]
    ) -> None:
        self.live = live
        self.folder = folder
        self.database = database
        self._session = session

    def config(self) -> Config:
        return load_config(self.live.write_config(self.folder, self.database))

    def load(self, *, structure: bool = False, **options: Any) -> list[LoadedTable]:
        config = self.config()
        later = options.pop("later", False)
        with sources.open_tables(config) as source:
            settings = sources.target_settings(config, source.snapshot, self.database)

            def as_of_now(table: SourceTable) -> SourceTable | None:
                self.live.archive_all()
                return source.later(table)

            chosen = LoadOptions(
                **options,
                later=as_of_now if later else None,
                undo_retention=source.undo_retention,
            )
            if structure:
                tables = source.choose(())
                builder = StructureBuilder(settings, source.snapshot.structure, tables)
                chosen = chosen._replace(builder=builder)
            work = source.sources(source.choose(()))
            done = initial_load(settings, work, self._session, chosen)
            for failure in done.failures:
                raise failure
            return done.tables

    def run(self) -> None:
        assert run_appliance(self.config(), once=True, apply=True) == 0

    def verify(self, at_scn: int | None = None) -> list[VerifiedTable]:
        config = self.config()
        with sources.open_tables(config, scn=at_scn) as source:
            settings = sources.target_settings(config, source.snapshot, self.database)
            work = source.sources(source.choose(()))
            found = verify(settings, work, self._session, Scope(at_position=at_scn is None))
            for failure in found.failures:
                raise failure
            return list(found.tables)

    def rows(self) -> dict[str, int]:
        with psycopg.connect(self.database) as connection:
            return {
                name: int(connection.execute(f"SELECT count(*) FROM {name}".encode()).fetchone()[0])  # type: ignore[index]
                for name in self.live.summary.rows
            }


@pytest.fixture
def shop(
    live: LiveSource,
    tmp_path: Path,
    postgres_database: str,
    one_session: Callable[[], SparkSession],
) -> Shop:
    return Shop(live, tmp_path, postgres_database, one_session)


@pytest.mark.timeout(900)
def test_a_load_in_the_middle_of_the_work_is_replicated_on(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_query, "BLOCKS_PER_RANGE", 3)
    for _ in range(3):
        shop.live.archive()
    loaded = shop.load()
    assert {one.scn for one in loaded} == {shop.live.state.scn}
    assert max(one.parts for one in loaded) > 1
    assert sum(one.rows for one in loaded) > 100
    # A transaction is open at the SCN: its changes from before the load are replicated.
    assert {one.start_scn < one.scn for one in loaded} == {True}
    assert all(one.identical for one in shop.verify(loaded[0].scn))
    shop.live.archive_all()
    shop.run()
    # No redo from before the load is read: an older dictionary would lack the DDL in it.
    with (Path(shop.config().context.data) / "dictionary.json").open() as file:
        assert json.load(file)["scn"] == min(one.start_scn for one in loaded)
    found = shop.verify()
    assert all(one.identical for one in found)
    assert {one.table.source.full_name: one.source_rows for one in found} == shop.rows()
    assert shop.rows() == shop.live.summary.rows


def test_a_lost_connection_and_no_extents_change_nothing_and_a_difference_is_found(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_query, "ROWS_PER_RANGE", 10)
    monkeypatch.setattr(table_query, "SAMPLE_PERCENT", 60)
    shop.live.state.catalogue.denied.add("DBA_EXTENTS")
    fault = shop.live.server.faults.add(Fault("execute", '"CUSTOMERS" AS OF SCN', drop=True))
    shop.live.archive()
    loaded = shop.load()
    assert fault.hits == 1
    assert max(one.parts for one in loaded) > 1
    with psycopg.connect(shop.database) as connection:
        connection.execute("UPDATE shop.customers SET name = name || 'x' WHERE customer_id = 3")
    found = {one.table.source.name: one for one in shop.verify(loaded[0].scn)}
    assert [name for name, one in found.items() if not one.identical] == ["CUSTOMERS"]
    assert len(found["CUSTOMERS"].differences) == 1


def test_a_table_that_may_not_be_read_is_named_with_the_grant(shop: Shop) -> None:
    shop.live.archive()
    shop.live.server.faults.add(
        Fault("execute", '"STOCK" AS OF SCN', error=(1031, "insufficient privileges"))
    )
    with pytest.raises(OlrPgError) as caught:
        shop.load()
    assert caught.value.code == 7004
    assert caught.value.action == 'GRANT SELECT, FLASHBACK ON "SHOP"."STOCK" TO OLR;'


UNDO_GONE = (1555, "snapshot too old: rollback segment number 7")


def test_a_verification_without_undo_does_not_recommend_to_load_again(shop: Shop) -> None:
    shop.load()
    shop.live.server.faults.add(Fault("execute", '"ORDERS" AS OF SCN', error=UNDO_GONE))
    with pytest.raises(OlrPgError) as caught:
        shop.verify()
    # The segments of a table can be read before its rows; their error has another code.
    segments = OlrPgError(Code.ORACLE_SNAPSHOT_TOO_OLD, "ORA-01555", action="raise it")
    for error in (caught.value, _without_undo(segments, {"table": "S.T", "scn": 5})):
        assert error.code == Code.NOT_COMPARABLE_AT_SCN
        assert "ORA-01555" in error.detail
        assert error.action.startswith("replicate the later changes")
        assert list(error.where) == ["table", "scn"]


@pytest.mark.parametrize("way", ["resume", "restart", "later"])
def test_undo_that_is_gone_ends_the_load_until_it_continues(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(TableLoadProgress, "age_seconds", lambda _self, _connection: 4_000.0)
    shop.live.archive()
    shop.live.server.faults.add(Fault("execute", '"ORDERS" AS OF SCN', error=UNDO_GONE))
    with pytest.raises(OlrPgError) as caught:
        shop.load()
    assert caught.value.code == UNDO_GONE_CODE
    assert caught.value.detail.endswith("UNDO_RETENTION is 900, tuned to 1230 by V$UNDOSTAT")
    needed = re.search(r"4000 seconds ago.* So it needs undo of (\d+) seconds", caught.value.detail)
    assert needed is not None
    assert int(needed[1]) >= 4_000
    raised = re.search(r"SET UNDO_RETENTION = (\d+)\.", caught.value.action)
    assert raised is not None
    assert int(raised[1]) == int(needed[1]) * 5 // 4
    first = shop.live.state.scn
    shop.live.archive_all()
    followed(
        caught.value, Code.LOAD_SCN_TOO_OLD, "`olr-pg initial-load --restart`",
        "as of the current SCN: `olr-pg initial-load --resume --later-scn`",
    )  # fmt: skip
    if way == "resume":
        assert {one.scn for one in shop.load(resume=True)} == {first}
        assert all(one.identical for one in shop.verify(first))
        return
    if way == "later":
        shop.live.server.faults.add(Fault("execute", '"ORDERS" AS OF SCN', error=UNDO_GONE))
        loaded = shop.load(resume=True, later=True)
    else:
        loaded = shop.load(restart=True)
    assert max(one.scn for one in loaded) > first
    shop.run()
    assert shop.rows() == shop.live.summary.rows


def test_a_load_belongs_to_an_incarnation_of_the_source(shop: Shop) -> None:
    """After a RESETLOGS, the same SCN means other rows."""
    query = "SELECT DISTINCT resetlogs_id FROM olr_pg.ledger"
    for _ in range(2):
        shop.live.archive()
    shop.live.server.faults.add(Fault("execute", '"ORDERS" AS OF SCN', error=UNDO_GONE))
    with pytest.raises(OlrPgError) as caught:
        shop.load()
    first = shop.live.state.scn
    shop.live.state.open_resetlogs(first - 1, 1_300_000_000, 99)
    shop.live.state.scn = first
    with pytest.raises(OlrPgError) as caught:
        shop.load(resume=True)
    assert caught.value.code == 5110
    assert "in incarnation" in caught.value.detail
    shop.load(anew=True)
    with psycopg.connect(shop.database) as connection:
        assert connection.execute(query).fetchall() == [(1_300_000_000,)]


def test_a_table_may_be_begun_anew_as_of_a_later_scn(shop: Shop) -> None:
    shop.live.archive()
    first = shop.live.state.scn
    shop.live.server.faults.add(Fault("execute", '"ORDERS" AS OF SCN', error=UNDO_GONE))
    loaded = {one.table: one.scn for one in shop.load(later=True)}
    assert loaded.pop("SHOP.ORDERS") == shop.live.state.scn > first
    assert set(loaded.values()) == {first}
    shop.run()
    assert shop.rows() == shop.live.summary.rows
    assert all(one.identical for one in shop.verify())


def test_a_target_that_was_filled_from_a_later_source_is_refused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source was put back, or is another copy: what it writes would be passed over."""
    monkeypatch.setattr(SourceArrival.__init__, "__defaults__", (0.0, Code.SCN_NOT_REACHED))
    monkeypatch.setattr(server_side.check_not_ahead, "__defaults__", (0.0,))
    for _ in range(2):
        shop.live.archive()
    before = shop.live.state.scn
    shop.live.archive()
    shop.load()
    assert all(one.identical for one in shop.verify())
    # An SCN that is merely behind the redo that the control file knows is no sign of that …
    shop.live.state.scn = before
    shop.run()
    with pytest.raises(OlrPgError) as caught:
        shop.verify()
    assert caught.value.code == 7100  # … but it cannot be read as of then
    shop.live.state.catalogue.update(
        'UPDATE SYS."V$DATABASE" SET "DATABASE_ROLE" = ?', "PHYSICAL STANDBY"
    )
    shop.run()
    with pytest.raises(OlrPgError) as caught:
        shop.verify()
    assert caught.value.code == 7110
    shop.live.state.catalogue.update('UPDATE SYS."V$DATABASE" SET "DATABASE_ROLE" = ?', "PRIMARY")
    shop.live.state.catalogue.update(
        'DELETE FROM SYS."V$ARCHIVED_LOG" WHERE "NEXT_CHANGE#" > ?', before + 1
    )
    for act, code in ((shop.verify, 7100), (shop.run, 7101), (shop.load, 7101)):
        with pytest.raises(OlrPgError) as caught:
            act()
        assert caught.value.code == code
        assert f"the source has only reached SCN {before}" in caught.value.detail


@pytest.fixture
def cut(
    shop: Shop,
    shared_session: Callable[[], SparkSession],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Any]:
    """Runs ``olr-pg cutover``: what it prints, and its error's code."""
    monkeypatch.setattr(
        "olr_pg.cli.migration.cutover.spark_session_of", lambda *_: shared_session()
    )
    monkeypatch.setattr("olr_pg.spark.session.stop_session", lambda: None)
    monkeypatch.setattr(
        "olr_pg.observability.logging_setup.configure_logging", lambda *_, **__: None
    )

    def run(**options: Any) -> tuple[dict[str, Any], int | None]:
        code = None
        path = shop.live.write_config(shop.folder, shop.database)
        try:
            # A load alone makes no checks, triggers and indexes of expressions.
            accept = ["check *", "trigger *", "index *"]
            cutover(path, as_json=True, accept=accept, **options)
        except OlrPgError as error:
            code = error.code
        printed = json.loads(capsys.readouterr().out.splitlines()[-1])
        states = {step["step"]: step["state"] for step in printed["steps"]}
        return {**printed, "states": states}, code

    return run


@pytest.mark.timeout(900)
def test_a_live_source_is_cut_over_step_by_step(shop: Shop, cut: Callable[..., Any]) -> None:
    live = shop.live
    for _ in range(3):
        live.archive()
    shop.load(structure=True)
    # A transaction is open: the source is not quiet.
    busy = live.state.scn
    stopped, code = cut()
    assert (code, stopped["states"]) == (Code.SOURCE_NOT_QUIET, {"quiet": "failed"})
    words = "wait until its transactions have ended", "Then start `olr-pg cutover` again"
    followed(OlrPgError(Code.SOURCE_NOT_QUIET, ""), Code.SOURCE_NOT_QUIET, *words)
    assert stopped["way_back"] == "nothing is done yet"
    shop.run()

    # The work has ended, but its last log is not archived.
    while len(live.waiting) > 1:
        live.archive()
    end = open_log(str(live.waiting[0])).next_scn - 1
    live.state.scn = end
    stopped, code = cut()
    assert (code, stopped["states"]) == (5122, {"quiet": "done", "archived": "failed"})
    assert "use the source again and start `olr-pg run`" in stopped["way_back"]
    words = "run ALTER SYSTEM ARCHIVE LOG CURRENT", "Then start `olr-pg cutover` again"
    followed(OlrPgError(Code.LAST_REDO_NOT_ARCHIVED, ""), Code.LAST_REDO_NOT_ARCHIVED, *words)
    live.archive()
    done, code = cut(until="verified")
    assert code is None
    assert done["states"] == dict.fromkeys(("quiet", "archived", "applied", "verified"), "done")
    assert done["steps"][0]["detail"]["scn"] == end
    assert done["steps"][3]["detail"]["rows"] == sum(live.summary.rows.values())

    # Back: the applications use the source again, replication goes on, and so may the cut-over.
    assert not done["finished"]
    shop.run()
    cut(until="constraints")
    live.state.scn = busy  # somebody writes again
    stopped, code = cut()
    assert (code, stopped["states"]["report"]) == (5121, "failed")
    live.state.scn = end
    done, code = cut(unverified=True)  # the tables are not compared a second time
    assert (code, done["finished"]) == (None, True)
    assert set(done["states"].values()) == {"done"}
    assert "as long as nobody has written to the target" in done["way_back"]
    assert shop.rows() == live.summary.rows
    positions = {
        one["sequence"]: one["after"]
        for step in done["steps"]
        if step["step"] == "sequences"
        for one in step["detail"]["advanced"]
    }
    expected = {one.full_name: one.next for one in live.summary.snapshot.structure.sequences}
    assert positions == expected
    with psycopg.connect(shop.database) as connection:
        assert connection.execute(
            "SELECT DISTINCT convalidated FROM pg_constraint WHERE contype = 'f'"
        ).fetchall() == [(True,)]
    assert cut(status=True)[0]["steps"] == done["steps"]


def test_the_steps_for_a_lost_log_load_the_tables_and_continue(
    live: LiveSource, tmp_path: Path, shop: Shop
) -> None:
    """As after CLEAR UNARCHIVED LOGFILE; the steps of docs/operations.md (“A log is lost”)."""
    live.archive()
    shop.load()
    live.archive()
    shop.run()
    live.waiting.pop(0)
    for _ in range(2):
        live.archive()

    def code() -> int:
        with pytest.raises(OlrPgError) as caught:
            shop.run()
        assert "“A log is lost”" in caught.value.action
        return caught.value.code

    assert code() == 2010
    shop.load(anew=True)
    assert code() == 2010  # the checkpoint needs the log
    shutil.rmtree(tmp_path / "data")
    shop.load(anew=True)
    live.archive_all()
    shop.run()
    assert all(one.identical for one in shop.verify())
