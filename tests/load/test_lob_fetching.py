"""LOB values that redo did not hold, fetched from the stand-in into the rows that lack them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from decimal import Decimal
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from typer.testing import CliRunner

from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.statements.target_plan import TablePlan
from olr_pg.applier.stopped.incomplete_values import Incomplete
from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ChangeCounts, TableLedger, ensure_ledger
from olr_pg.cli.main import app
from olr_pg.config.reading import load_config
from olr_pg.datatypes.number import encode_number
from olr_pg.errors import OlrPgError
from olr_pg.load import lob_fetching as fetching
from olr_pg.load.cutover_steps import DONE, note_step
from olr_pg.scalars import format_rowid
from olr_pg.simulator.oracle_net.row_versions import RowVersions
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import OracleState
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob
from tests.lobs.lob_redo import BLOCK, TABLE_OBJ
from tests.lobs.lob_redo import snapshot as lob_snapshot
from tests.lobs.lob_redo import table as lob_table
from tests.simulation.proxy import Proxy, Trip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DOCS = lob_table()
LARGE = bytes(range(256)) * 9_000
TEXT = "Zażółć gęślą jaźń 𝄞\r\n" * 100
POSITION = 900
"""The commit SCN up to which the target has the table."""


class Source:
    """APP.DOCS behind the stand-in and in the target, where rows lack their LOBs."""

    def __init__(self, folder: Path, target: str) -> None:
        self.folder, self.target = folder, target
        state = OracleState(replace(lob_snapshot(), scn=1 << 40), dbid=1)
        self.state = state
        self.rows = RowVersions(state.catalogue, (DOCS,))
        self.server = StandIn(state)
        self.settings = ApplierSettings(target, "127.0.0.1", 1, "SELECT 1")
        with connect(target) as connection:
            ensure_ledger(connection)
            connection.execute(
                "CREATE SCHEMA app; CREATE TABLE app.docs (id numeric PRIMARY KEY, text text,"
                " image bytea NOT NULL DEFAULT '')"
            )
            self.move_to(POSITION)

    def move_to(self, scn: int) -> None:
        with connect(self.target) as connection, connection.transaction():
            ledger = TableLedger("olr_pg", "APP.DOCS", "app.docs")
            ledger.advance(
                connection, ledger.lock(connection).position.after(scn, 1), ChangeCounts()
            )

    def put(self, slot: int, scn: int, text: str | None, image: bytes | None) -> None:
        """A row of the source, whose ID is its slot, from an SCN on."""
        self.rows.put(DOCS, scn, rowid(slot), (str(slot), text, image))

    def lack(self, slot: int, key: int, *columns: str, rowid_: str | None = None) -> None:
        """A row of the target that lacks values of some columns."""
        with connect(self.target) as connection, connection.transaction():
            target = read_table(connection, "app", "docs")
            assert target is not None
            connection.execute("INSERT INTO app.docs (id) VALUES (%s)", (key,))
            ledger = TableLedger("olr_pg", "APP.DOCS", "app.docs")
            ledger.lock(connection)
            told = (("ID", encode_number(Decimal(key))),)
            place = rowid(slot) if rowid_ is None else rowid_
            lobs = [
                LostLob(one, 2120, place, DmlKind.INSERT, True, (0, 0, 0), told) for one in columns
            ]
            plan = TablePlan("APP.DOCS", target, DOCS, self.settings)
            Incomplete(connection, ledger, plan).note(lobs, POSITION, 1)

    def config(self, **apply: Any) -> Path:
        path = self.folder / "config.json"
        section = {"connect-string": self.target, "tables": ["APP.DOCS"], **apply}
        source = {"user": "olr", "password": "olr", "server": self.server.connect_string}
        path.write_text(
            json.dumps({"source": source, "target": {"address": "127.0.0.1:0"}, "apply": section})
        )
        return path

    def query(self, text: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.target) as connection:
            return connection.execute(text.encode()).fetchall()

    def fetch(self, *options: str) -> tuple[int, Any]:
        done = CliRunner().invoke(
            app, ["fetch-lobs", "--config", str(self.config()), "--json", *options]
        )
        return done.exit_code, json.loads(done.stdout)


def rowid(slot: int) -> str:
    return format_rowid(TABLE_OBJ, BLOCK, slot)


@pytest.fixture
def source(tmp_path: Path, postgres_database: str) -> Iterator[Source]:
    made = Source(tmp_path, postgres_database)
    yield made
    made.server.close()


def test_values_are_fetched_as_of_where_the_table_is(source: Source) -> None:
    source.put(1, 100, TEXT, LARGE)
    source.put(2, 100, None, b"two")
    source.lack(1, 1, "TEXT", "IMAGE")
    source.lack(2, 2, "TEXT")
    # What replication brings later must not be there before.
    source.rows.put(DOCS, POSITION + 1, rowid(9), ("9", "later", None))
    source.lack(9, 9, "TEXT")
    code, found = source.fetch()
    (table,) = found["tables"]
    assert (code, table["table"], table["fetched"], table["left"]) == (1, "APP.DOCS", 3, 1)
    assert source.query("SELECT id::int, text, image FROM app.docs ORDER BY id") == [
        (1, TEXT, LARGE),
        (2, None, b""),
        (9, None, b""),
    ]
    assert source.query("SELECT key, fetched_at IS NOT NULL FROM olr_pg.incomplete") == [
        ({"id": "9"}, True)
    ]
    assert source.query("SELECT incomplete FROM olr_pg.ledger") == [(1,)]
    source.move_to(POSITION + 1)
    assert source.fetch()[0] == 0
    assert source.query("SELECT text FROM app.docs WHERE id = 9") == [("later",)]
    assert source.query("SELECT count(*) FROM olr_pg.incomplete") == [(0,)]
    assert source.fetch() == (0, {"tables": []})


def test_nothing_is_fetched_after_a_cutover(source: Source) -> None:
    """An application has set the value that replication lacked."""
    source.put(1, 100, TEXT, LARGE)
    source.lack(1, 1, "TEXT")
    source.query("UPDATE app.docs SET text = 'newer' RETURNING 1")
    with psycopg.connect(source.target, autocommit=True) as connection:
        note_step(connection, "olr_pg", "report", DONE, {})
    done = CliRunner().invoke(app, ["fetch-lobs", "--config", str(source.config())])
    assert (done.exit_code, "OLR-05171" in done.output) == (6, True)
    assert source.query("SELECT text FROM app.docs") == [("newer",)]


def test_another_row_with_the_rowid_is_not_taken(source: Source) -> None:
    source.put(1, 100, TEXT, b"")
    source.lack(1, 77, "TEXT")
    code, found = source.fetch()
    assert (code, found["tables"][0]["fetched"]) == (1, 0)
    assert "no row with that ROWID and key" in found["tables"][0]["failure"]
    assert source.query("SELECT text FROM app.docs") == [(None,)]


def test_a_value_that_the_target_refuses_hinders_no_other(source: Source) -> None:
    source.put(1, 100, TEXT, b"image")
    source.lack(1, 1, "TEXT", "IMAGE")
    with psycopg.connect(source.target) as connection:
        connection.execute("ALTER TABLE app.docs ADD CONSTRAINT short CHECK (length(text) < 10)")
    code, found = source.fetch()
    (table,) = found["tables"]
    assert (code, table["fetched"], table["left"]) == (1, 1, 1)
    assert "short" in table["failure"]
    assert source.query("SELECT text, image FROM app.docs") == [(None, b"image")]
    assert source.query("SELECT column_name FROM olr_pg.incomplete") == [("TEXT",)]


def test_what_undo_does_not_reach_stays(source: Source) -> None:
    source.put(1, 100, TEXT, b"")
    source.lack(1, 1, "TEXT")
    source.state.catalogue.undo_scn = POSITION + 1
    code, found = source.fetch("--table", "app.docs")
    assert code == 1
    assert "ORA-01555" in found["tables"][0]["failure"]
    assert source.query("SELECT text FROM app.docs") == [(None,)]


def test_only_columns_of_the_policy_are_fetched_by_themselves(source: Source) -> None:
    source.put(1, 100, TEXT, b"image")
    source.lack(1, 1, "TEXT", "IMAGE")
    config = load_config(source.config(**{"incomplete-lobs": {"APP.*.TEXT": "fetch"}}))
    (done,) = fetching.fetch_lobs(config, wanted=fetching._is_to_be_fetched)
    assert done[:3] == ("APP.DOCS", 1, 1)
    assert source.query("SELECT text, image FROM app.docs") == [(TEXT, b"")]
    assert source.query("SELECT column_name FROM olr_pg.incomplete") == [("IMAGE",)]


def test_a_run_fetches_by_itself(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PAUSE_SECONDS", 0.01)
    source.put(1, 100, TEXT, b"")
    source.lack(1, 1, "TEXT")
    config = load_config(source.config(**{"incomplete-lobs": {"*": "fetch"}}))
    with fetching.fetching_lobs(config), psycopg.connect(source.target, autocommit=True) as target:
        while target.execute("SELECT count(*) FROM olr_pg.incomplete").fetchone() != (0,):
            time.sleep(0.005)
    assert source.query("SELECT text FROM app.docs") == [(TEXT,)]


def test_an_offline_source_has_nothing_to_fetch_from(source: Source, tmp_path: Path) -> None:
    path = source.config(**{"incomplete-lobs": {"*": "fetch"}})
    section = json.loads(path.read_text())
    section["source"] = {"kind": "offline", "dictionary": "d.json", "logs": "*.arc"}
    other = tmp_path / "offline.json"
    other.write_text(json.dumps(section))
    config = load_config(other)
    with pytest.raises(OlrPgError) as caught, fetching.fetching_lobs(config):
        pass
    assert caught.value.code == 5156
    with pytest.raises(OlrPgError) as caught:
        list(fetching.fetch_lobs(config))
    assert caught.value.code == 5156


@pytest.mark.parametrize("seed", range(2))
def test_a_network_to_the_target_that_goes_silent_ends_it(source: Source, seed: int) -> None:
    """Another fetch does what is left, once."""
    source.put(1, 100, TEXT, LARGE)
    source.put(2, 100, "two", b"two")
    source.lack(1, 1, "TEXT", "IMAGE")
    source.lack(2, 2, "TEXT", "IMAGE")
    drawn = Random(seed)
    given = conninfo_to_dict(source.target)
    with Proxy("postgres", lambda: (str(given["host"]), int(str(given["port"])))) as proxy:
        through = make_conninfo(
            source.target, host="127.0.0.1", port=proxy.port, connect_timeout=2,
            sslmode="disable", gssencmode="disable",
        )  # fmt: skip
        config = load_config(source.config(**{"connect-string": through, "answer-seconds": 1}))
        silence = partial(proxy.silence, *drawn.choice([("requests",), ("answers",)]))
        at = drawn.randint(1, 20)
        trip = Trip("requests", lambda _: True, at, "after", silence, cuts=False)
        proxy.arm(trip)
        with pytest.raises((OlrPgError, psycopg.Error)):
            list(fetching.fetch_lobs(config))
        assert trip.tripped.is_set()
    code, _ = source.fetch()
    assert code == 0
    assert source.query("SELECT id::int, text, image FROM app.docs ORDER BY id") == [
        (1, TEXT, LARGE),
        (2, "two", b"two"),
    ]
