"""Rows that another tool copies: replication continues at their SCN, without loss or repetition.

PostgreSQL itself is the other tool: it copies the rows of a load into tables beside the target, and
later back from there.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
import typer
from structlog.testing import capture_logs

from olr_pg.appliance.appliance import run_appliance
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.cli.migration.load import initial_load
from olr_pg.cli.migration.verify import repair, verify
from olr_pg.cli.tables import add, remove
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from tests.advice import followed
from tests.cli.lost_answers import lost_answers, place_of, through
from tests.load.test_commands import commands
from tests.load.test_live_load import live, shop, summary
from tests.simulation.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.load.conftest import Project
    from tests.load.test_live_load import Shop

__all__ = ["commands", "live", "shop", "summary"]

ASIDE: Final = "aside"


class Copier:
    """The other tool: it puts the rows of the target aside, and copies them back."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._tables: list[tuple[str, str]] = []

    def read(self) -> None:
        """Read the rows as of the SCN of the load that was made, and forget this load."""
        with psycopg.connect(self._database) as connection:
            self._tables = connection.execute(
                "SELECT table_schema::text, table_name::text FROM information_schema.tables"
                " WHERE table_schema = 'shop' ORDER BY 2"
            ).fetchall()
            connection.execute(f"CREATE SCHEMA {ASIDE}".encode())
            for schema, name in self._tables:
                connection.execute(f"CREATE TABLE {ASIDE}.{name} AS TABLE {schema}.{name}".encode())
            names = ", ".join(map(".".join, self._tables))
            connection.execute(f"TRUNCATE {names} CASCADE".encode())
            connection.execute("DROP SCHEMA olr_pg CASCADE")

    def write(self, *only: str) -> None:
        """Copy the rows into the target."""
        with psycopg.connect(self._database) as connection:
            connection.execute("SET session_replication_role = replica")
            for schema, name in self._tables:
                if not only or name in only:
                    connection.execute(f"INSERT INTO {schema}.{name} TABLE {ASIDE}.{name}".encode())


@pytest.fixture
def on_the_command_line(
    shop: Shop, shared_session: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The configuration file of the live shop; commands use the tests' Spark session and log."""
    monkeypatch.setattr("olr_pg.cli.migration.load.spark_session_of", lambda *_: shared_session())
    monkeypatch.setattr("olr_pg.spark.session.stop_session", lambda: None)
    monkeypatch.setattr(
        "olr_pg.observability.logging_setup.configure_logging", lambda *_, **__: None
    )
    return shop.live.write_config(shop.folder, shop.database)


def refused(act: Callable[[], object]) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        act()
    return caught.value


@pytest.mark.timeout(900)
def test_rows_of_a_live_source_that_another_tool_copies(
    shop: Shop, on_the_command_line: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = on_the_command_line
    for _ in range(3):
        shop.live.archive()
    loaded = shop.load()
    copier = Copier(shop.database)
    copier.read()

    assert "no copy of the table has begun" in str(
        refused(lambda: initial_load(config, end_copy=True))
    )
    initial_load(config, begin_copy=True)
    scn, start_scn = loaded[0].scn, loaded[0].start_scn
    text = capsys.readouterr().out
    assert f"as of SCN {scn}" in text
    assert f"from SCN {start_scn} on" in text
    assert "SHOP.ORDERS into shop.orders" in text
    assert start_scn < scn  # a transaction is open, whose first changes are not copied
    for act in (shop.run, lambda: initial_load(config), lambda: initial_load(config, resume=True)):
        copied = "when the copy is complete, repeat the command", "with --end-copy"
        followed(refused(act), Code.COPY_NOT_USABLE, *copied)
    # The refused run has not stored an older dictionary.
    assert not (Path(shop.config().context.data) / "dictionary.json").exists()

    shop.live.archive()
    copier.write()
    initial_load(config, begin_copy=True)  # repeated, it prints the same SCN
    assert f"as of SCN {scn}:" in capsys.readouterr().out
    assert "began at SCN" in str(
        refused(lambda: initial_load(config, end_copy=True, scn=scn, since=start_scn - 1))
    )
    for _ in range(2):  # repeated, it changes nothing
        initial_load(config, end_copy=True)
    shop.live.archive_all()
    shop.run()
    assert all(one.identical for one in shop.verify())
    assert shop.rows() == shop.live.summary.rows
    # The rows of another SCN would not fit the position of a table that is already replicated.
    for moment in ((scn - 1, start_scn), (scn, start_scn - 1)):
        error = refused(lambda: initial_load(config, end_copy=True, scn=moment[0], since=moment[1]))  # noqa: B023
        assert error.code == Code.COPY_NOT_USABLE
        assert f"already loaded, and was read at SCN {scn}" in error.detail
    assert refused(lambda: initial_load(config, end_copy=True, scn=2**62, since=1)).code == (
        Code.COPY_NOT_USABLE
    )


@pytest.mark.timeout(900)
def test_a_transaction_that_is_still_open_moves_the_begin_of_the_redo(
    shop: Shop, on_the_command_line: Path
) -> None:
    """Its changes before the named SCN would be lost: the live source shows that it is open."""
    config = on_the_command_line
    for _ in range(3):
        shop.live.archive()
    loaded = shop.load()
    scn, start_scn = loaded[0].scn, loaded[0].start_scn
    copier = Copier(shop.database)
    copier.read()
    copier.write()
    assert start_scn < scn
    for since in (scn, scn - 1):  # repeated, also with another SCN that is not too late
        initial_load(config, end_copy=True, scn=scn, since=since)
    with psycopg.connect(shop.database) as connection:
        assert connection.execute("SELECT DISTINCT scn, start_scn FROM olr_pg.load").fetchall() == [
            (scn, start_scn)
        ]
    shop.live.archive_all()
    shop.run()
    assert all(one.identical for one in shop.verify())


@pytest.mark.timeout(900)
def test_a_table_that_is_being_written_neither_begins_nor_ends_a_copy(
    shop: Shop, on_the_command_line: Path
) -> None:
    config = on_the_command_line
    shop.live.archive()
    shop.load()
    copier = Copier(shop.database)
    copier.read()
    initial_load(config, begin_copy=True)
    with psycopg.connect(shop.database, application_name="copier") as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(f"INSERT INTO shop.orders TABLE {ASIDE}.orders".encode())
        begins_again = {"begin_copy": True, "restart": True}
        for options in (begins_again, {"end_copy": True}):
            error = refused(lambda: initial_load(config, **options))  # type: ignore[arg-type]  # noqa: B023
            assert error.code == Code.COPY_NOT_USABLE
            assert "(copier) is writing to the target table" in error.detail
            assert error.where["table"] == "SHOP.ORDERS"
    with pytest.raises(OlrPgError, match="another tool copies the rows"):
        shop.verify()


@pytest.mark.timeout(900)
def test_a_copy_that_has_begun_keeps_its_scn_until_it_is_restarted(
    shop: Shop, on_the_command_line: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other tool may have read the rows already: of another SCN, changes would be lost."""
    config = on_the_command_line

    def begun(**options: Any) -> dict[str, tuple[int, int]]:
        shop.live.archive()
        initial_load(config, begin_copy=True, as_json=True, **options)
        tables = json.loads(capsys.readouterr().out.splitlines()[-1])["tables"]
        return {one["table"]: (one["scn"], one["start_scn"]) for one in tables}

    first = begun(table=["SHOP.ORDERS"])
    both = begun()
    assert both.pop("SHOP.ORDERS") == first["SHOP.ORDERS"]
    (others,) = set(both.values())
    assert others > first["SHOP.ORDERS"]
    initial_load(config, begin_copy=True)
    text = capsys.readouterr().out
    for scn, _ in (others, first["SHOP.ORDERS"]):
        assert f"as of SCN {scn}:\n" in text
    assert f"from SCN {first['SHOP.ORDERS'][1]} on" in text
    with psycopg.connect(shop.database) as connection:
        connection.execute("INSERT INTO shop.stock VALUES (1, 1, 1, 1, 1)")
    assert begun() == first | both  # also while rows arrive
    for options in ({"restart": True}, {"anew": True}):
        later = begun(table=["SHOP.STOCK", "SHOP.ORDERS"], **options)
        assert min(later.values()) > others
        (others,) = set(later.values())
        with psycopg.connect(shop.database) as connection:
            assert connection.execute("SELECT count(*) FROM shop.stock").fetchone() == (0,)
            assert (
                connection.execute(
                    "SELECT scn, start_scn FROM olr_pg.load WHERE source_table = 'SHOP.STOCK'"
                ).fetchone()
                == later["SHOP.STOCK"]
            )
    # A load in the place of the copy.
    initial_load(config, restart=True)
    shop.live.archive_all()
    shop.run()
    assert all(one.identical for one in shop.verify())
    # A table that is replicated is copied anew.
    initial_load(config, table=["SHOP.ORDERS"], begin_copy=True, anew=True)
    assert refused(shop.run).code == Code.COPY_NOT_USABLE


@pytest.mark.timeout(900)
def test_a_connection_that_is_lost_at_each_statement_of_a_copy(
    shop: Shop, on_the_command_line: Path
) -> None:
    """The statement is done, but its answer is lost. The command is repeated."""
    config = on_the_command_line
    shop.live.archive()
    shop.load()
    copier = Copier(shop.database)
    copier.read()
    known, tables = dict[str, int](), ["SHOP.ORDERS", "SHOP.STOCK", "SHOP.PAYMENTS"]
    with connect(shop.database, replica=None) as connection:
        ensure_ledger(connection)
    with Proxy("postgres", lambda: place_of(shop.database)) as proxy:
        through(proxy, config, shop.database)
        for begins in (True, False):
            lost = 0
            for _, trip in lost_answers(proxy, 3):
                proxy.arm(trip)
                with suppress(OlrPgError, psycopg.Error):
                    initial_load(config, table=tables, begin_copy=begins, end_copy=not begins)
                lost += trip.tripped.is_set()
                with psycopg.connect(shop.database) as connection:
                    rows = connection.execute(
                        "SELECT source_table, scn FROM olr_pg.load"
                    ).fetchall()
                found: dict[str, int] = dict(rows)
                assert found.items() >= known.items()  # no SCN that was once printed is replaced
                known = found
            assert lost > 2
            assert known.keys() == {*tables}
            if begins:
                shop.live.archive()
                copier.write("orders", "stock", "payments")
        proxy.arm(None)
        initial_load(config)
    shop.live.archive_all()
    shop.run()
    assert all(one.identical for one in shop.verify())
    assert shop.rows() == shop.live.summary.rows


@pytest.mark.timeout(900)
def test_wrong_rows_are_found_and_repaired_before_the_first_change(
    shop: Shop,
    on_the_command_line: Path,
    shared_session: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Changes of wrong rows would stop the table, which then cannot be compared."""
    monkeypatch.setattr("olr_pg.cli.migration.verify.spark_session_of", lambda *_: shared_session())
    config = on_the_command_line
    shop.live.archive()
    shop.load()
    copier = Copier(shop.database)
    copier.read()
    initial_load(config, begin_copy=True)
    copier.write()
    with psycopg.connect(shop.database) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("DELETE FROM shop.stock WHERE quantity % 2 = 0")
        connection.execute("UPDATE shop.orders SET status = '~'")
        connection.execute("UPDATE shop.customers SET customer_id = customer_id + 1000000")
    shop.live.archive()
    initial_load(config, end_copy=True)
    file = shop.folder / "differences.jsonl"
    with pytest.raises(typer.Exit):
        verify(config, differences=file)
    repair(config, differences=file, yes=True)
    shop.live.archive_all()
    shop.run()
    assert all(one.identical for one in shop.verify())
    assert shop.rows() == shop.live.summary.rows


@pytest.mark.timeout(900)
def test_a_copy_of_another_incarnation_begins_again(shop: Shop, on_the_command_line: Path) -> None:
    config, state = on_the_command_line, shop.live.state
    shop.live.archive()
    initial_load(config, table=["SHOP.ORDERS"], begin_copy=True)
    scn = state.scn
    state.open_resetlogs(scn - 1, 1_300_000_000, 99)
    state.scn = scn
    for step in ("begin_copy", "end_copy"):
        act = partial(initial_load, config, table=["SHOP.ORDERS"], **{step: True})  # type: ignore[arg-type]
        error = refused(act)
        assert error.code == Code.TABLE_DATA_CHANGED
        assert "--begin-copy --restart --table SHOP.ORDERS" in error.action
    initial_load(config, table=["SHOP.ORDERS"], begin_copy=True, restart=True)
    initial_load(config, table=["SHOP.ORDERS"], begin_copy=True)


@pytest.mark.timeout(900)
def test_the_end_of_a_copy_creates_no_table_and_tells_an_empty_one(
    shop: Shop, on_the_command_line: Path
) -> None:
    """Whoever has copied the rows has a table: an empty one in its place would lose them all."""
    config = on_the_command_line
    shop.live.archive()
    initial_load(config, begin_copy=True)
    with psycopg.connect(shop.database) as connection:
        connection.execute("DROP TABLE shop.orders, shop.stock")
    for options in ({"table": ["SHOP.ORDERS"]}, {"table": ["SHOP.STOCK"], "scn": 9, "since": 9}):
        error = refused(lambda: initial_load(config, end_copy=True, **options))  # noqa: B023
        assert error.code == Code.TARGET_TABLE_MISSING
    with capture_logs() as lines:
        initial_load(config, table=["SHOP.PAYMENTS"], end_copy=True)
    assert [(one["log_level"], one["table"]) for one in lines if "no rows" in one["event"]] == [
        ("warning", "SHOP.PAYMENTS")
    ]


@pytest.mark.timeout(900)
def test_a_table_that_another_tool_copies_is_added(
    shop: Shop, on_the_command_line: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = on_the_command_line
    names = [table.full_name for table in shop.live.summary.tables]
    shop.live.archive()
    shop.load()
    copier = Copier(shop.database)
    copier.read()
    shop.live.write_config(
        shop.folder, shop.database, tables=[name for name in names if name != "SHOP.ORDERS"]
    )
    initial_load(config, begin_copy=True)
    add(config, ["SHOP.ORDERS"], begin_copy=True)
    remove(config, ["SHOP.ORDERS"])  # the copy is given up
    assert "no copy of the table has begun" in str(
        refused(lambda: add(config, ["SHOP.ORDERS"], end_copy=True))
    )
    add(config, ["SHOP.ORDERS"], begin_copy=True)
    copier.write()
    initial_load(config, end_copy=True)
    shop.live.archive()
    assert run_appliance(load_config(config), once=True, apply=True) == 0  # without the table
    assert refused(lambda: add(config, ["SHOP.ORDERS"])).code == Code.COPY_NOT_USABLE
    with monkeypatch.context() as patched:
        patched.setattr("olr_pg.cli.tables._take", lambda *_, **__: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            add(config, ["SHOP.ORDERS"], end_copy=True)
    # The table is ready, but it is not in the list. Later changes wait for it.
    shop.live.archive()
    assert run_appliance(load_config(config), once=True, apply=True) == 0
    add(config, ["SHOP.ORDERS"], end_copy=True)
    shop.live.archive_all()
    assert run_appliance(load_config(config), once=True, apply=True) == 0
    assert shop.rows() == shop.live.summary.rows
    shop.live.write_config(shop.folder, shop.database)
    assert all(one.identical for one in shop.verify())


def test_rows_of_an_offline_source_that_another_tool_has_copied(
    project: Project, commands: Path
) -> None:
    scn = project.scn_of("SHOP.ORDERS")
    (loaded, *_) = project.load()
    copier = Copier(project.database)
    copier.read()
    copier.write()
    error = refused(lambda: initial_load(commands, begin_copy=True))
    assert error.code == Code.NOT_SUPPORTED
    assert "--scn" in error.action
    initial_load(commands, end_copy=True, scn=scn, since=loaded.start_scn)
    project.run()
    end = project.source.transactions[-1].commit_scn
    project.tables = project.source.write_tables(project.folder / "end", end)
    assert all(one.identical for one in project.verify())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"begin_copy": True, "end_copy": True}, "only one of"),
        ({"begin_copy": True, "resume": True}, "only one of"),
        ({"end_copy": True, "anew": True, "table": ["S.T"]}, "only one of"),
        ({"end_copy": True, "restart": True}, "only one of"),
        ({"begin_copy": True, "restart": True, "anew": True}, "only one of"),
        ({"scn": 5, "since": 5}, "with --end-copy"),
        ({"end_copy": True, "scn": 5}, "are used together"),
        ({"end_copy": True, "since": 5}, "are used together"),
        ({"begin_copy": True, "scn": 5, "since": 5}, "with --end-copy"),
        ({"end_copy": True, "scn": 5, "since": 6}, "must not be higher"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(typer.BadParameter, match=message):
        initial_load(tmp_path / "none.json", **options)
    if {"resume", "anew", "restart"}.isdisjoint(options):
        with pytest.raises(typer.BadParameter, match=message):
            add(tmp_path / "none.json", ["S.T"], **options)
    with pytest.raises(typer.BadParameter, match="--no-load"):
        add(tmp_path / "none.json", ["S.T"], load=False, begin_copy=True)
