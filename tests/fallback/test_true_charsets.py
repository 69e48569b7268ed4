"""Text goes back to Oracle as the bytes that the application there expects, whatever character set
the database declares.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import oracledb
import psycopg
import pytest

from olr_pg.config.port_sections import FallbackPolicies
from olr_pg.config.reading import parse_config
from olr_pg.datatypes.choices import Choices
from olr_pg.datatypes.mapping import PgKind
from olr_pg.datatypes.policies import Policies
from olr_pg.dictionary.model import Column
from olr_pg.dictionary.true_charsets import RAW_MAX
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import end, prepare, run, status
from olr_pg.fallback.oracle_values import ValueSettings, oracle_column
from olr_pg.fallback.value_report import report_values
from olr_pg.load import sources
from olr_pg.load.cutover.cut_back import open_ways_back
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.oracle.key_cuts import WRITTEN_MAX
from olr_pg.proving.prove_run import SmallPartition
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.sql.functions import FUNCTIONS
from tests.fallback.made_way import way_document
from tests.proving.served import served_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.config.model import Config
    from tests.proving.served import Served

SETS = {"APP.NAMES.RU": "CL8MSWIN1251", "*": "WE8MSWIN1252"}


@pytest.fixture
def served_text(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    shape = replace(demo_shape(), charset=getattr(request, "param", "US7ASCII"))
    with served_source(tmp_path / "source", shape=shape) as found:
        yield found


def config_of(served: Served, folder: Path, target: str, table: str) -> Config:
    document = way_document(served, folder / "data", target, table, **{"create-tables": True})
    document["status"] = {"enabled": False}
    document["target"] = {"address": "127.0.0.1:0"}
    document["source"]["character-sets"] = SETS
    return parse_config(document, served.folder)


def load(config: Config, target: str) -> None:
    with sources.open_tables(config, for_load=True) as source:
        settings = sources.target_settings(config, source.snapshot, target)
        found = source.sources(source.choose(()))
        work = [one._replace(data=in_this_process(one.data)) for one in found]
        done = initial_load(settings, work, no_session, LoadOptions())
    for failure in done.failures:
        raise failure


def in_this_process(data: Any) -> Any:
    return replace(data, partitions=tuple(map(SmallPartition, data.partitions)))


def no_session() -> Any:
    raise AssertionError("so few rows are loaded in this process")


def stored(served: Served, query: str) -> list[tuple[Any, ...]]:
    with oracledb.connect(user="app", password="olr", dsn=served.dsn) as connection:
        found: list[tuple[Any, ...]] = connection.cursor().execute(query).fetchall()
        return found


@pytest.mark.parametrize("served_text", ["US7ASCII", "AL32UTF8"], indirect=True)
def test_text_is_written_back_in_its_set(
    served_text: Served, tmp_path: Path, logical_database: str
) -> None:
    served_text.execute(
        "CREATE TABLE names (id CHAR(6) PRIMARY KEY, name VARCHAR2(40), ru VARCHAR2(40),"
        " small NUMBER(5))"
    )
    served_text.execute(
        "INSERT INTO names (id, name) VALUES (UTL_RAW.CAST_TO_VARCHAR2(HEXTORAW('E961')), 'old')"
    )
    config = config_of(served_text, tmp_path, logical_database, "names")
    load(config, logical_database)
    with open_ways_back(config) as (way,):
        prepare(way)
        with psycopg.connect(logical_database) as connection:
            connection.execute("UPDATE app.names SET name = 'Žofie €', ru = 'Мир' WHERE id = 'éa'")
            connection.execute("INSERT INTO app.names VALUES ('ü', 'Öl', 'Да', 7)")
        run(way, once=True)
        found = status(way).ledger
        assert found is not None
        assert not found.stops
        end(way)
    query = (
        "SELECT UTL_RAW.CAST_TO_RAW(id), UTL_RAW.CAST_TO_RAW(name), UTL_RAW.CAST_TO_RAW(ru)"
        " FROM names ORDER BY small DESC"
    )
    assert sorted(stored(served_text, query)) == [
        (b"\xe9a    ", "Žofie €".encode("cp1252"), "Мир".encode("cp1251")),
        (b"\xfc     ", "Öl".encode("cp1252"), "Да".encode("cp1251")),
    ]


def test_long_text_is_written_back_in_its_set(
    served_text: Served, tmp_path: Path, logical_database: str
) -> None:
    served_text.execute(
        "CREATE TABLE names (id NUMBER(5) PRIMARY KEY, tail VARCHAR2(4000), note CLOB, ru CLOB)"
    )
    config = config_of(served_text, tmp_path, logical_database, "names")
    load(config, logical_database)
    with open_ways_back(config) as (way,):
        prepare(way)
        rows = [(at, one[:4_000] or None, one, one) for at, one in enumerate(LONGS)]
        with psycopg.connect(logical_database) as connection:
            connection.cursor().executemany("INSERT INTO app.names VALUES (%s, %s, %s, %s)", rows)
        run(way, once=True)
        assert texts_of(served_text) == rows
        with psycopg.connect(logical_database) as connection:
            connection.execute("UPDATE app.names SET note = 'Š' || note, tail = 'ß' WHERE id > 0")
        run(way, once=True)
        found = status(way).ledger
        assert found is not None
        assert not found.stops
        end(way)
    later = [(at, "ß", "Š" + note, ru) for at, _, note, ru in rows[1:]]
    assert texts_of(served_text) == [rows[0], *later]


LONGS = ("–", "", "“" * 1_999 + "x", "–" * 2_001, "«»" * 2_000, "«–»" * 6_000, "”" * 40_000)
"""Texts of one piece and of several, with letters that both sets have, at different bytes."""


def texts_of(served: Served) -> list[tuple[Any, ...]]:
    """The rows of Oracle, decoded from its bytes."""
    starts = range(1, max(map(len, LONGS)) + 2, RAW_MAX)
    pieces = {
        "tail": [f"SUBSTR(tail, {at}, {RAW_MAX})" for at in (1, RAW_MAX + 1)],
        "note": [f"DBMS_LOB.SUBSTR(note, {RAW_MAX}, {at})" for at in starts],
        "ru": [f"DBMS_LOB.SUBSTR(ru, {RAW_MAX}, {at})" for at in starts],
    }
    found: dict[str, list[Any]] = {}
    for name, parts in pieces.items():
        listed = ", ".join(f"UTL_RAW.CAST_TO_RAW({one})" for one in parts)
        codec = "cp1251" if name == "ru" else "cp1252"
        rows = stored(served, f"SELECT {listed} FROM names ORDER BY id")
        found[name] = [b"".join(filter(None, row)).decode(codec) for row in rows]
    sizes = "DBMS_LOB.GETLENGTH(note), DBMS_LOB.GETLENGTH(ru)"
    lengths = stored(served, f"SELECT id, {sizes} FROM names ORDER BY id")
    assert [row[1:] for row in lengths] == [
        (len(note), len(ru)) for note, ru in zip(found["note"], found["ru"], strict=True)
    ]
    tails = [one or None for one in found["tail"]]
    return [
        (row[0], *texts)
        for row, *texts in zip(lengths, tails, found["note"], found["ru"], strict=True)
    ]


def test_what_cannot_be_written_is_reported_before_the_cut_over(
    served_text: Served, tmp_path: Path, logical_database: str
) -> None:
    served_text.execute(
        "CREATE TABLE texts (id NUMBER(5) PRIMARY KEY, name VARCHAR2(40), big CLOB)"
    )
    config = config_of(served_text, tmp_path, logical_database, "texts")
    load(config, logical_database)
    with psycopg.connect(logical_database, autocommit=True) as connection:
        connection.execute("INSERT INTO app.texts (id, name) VALUES (1, 'Ж'), (2, 'é')")
        connection.execute(
            "INSERT INTO app.texts (id, big) VALUES (3, repeat('é', %s)), (4, repeat('é', %s))",
            (WRITTEN_MAX + 1, WRITTEN_MAX),
        )
    with sources.open_tables(config) as source:
        settings = sources.target_settings(config, source.snapshot, logical_database)
        tables = source.choose(())
    assert config.fallback is not None
    assert config.apply is not None
    values = ValueSettings.of(config.fallback.policies, config.apply, source.snapshot.database)
    with psycopg.connect(logical_database) as connection:
        (report,) = report_values(connection, tables, settings, values)
    assert [one.error for one in report.columns if one.error] == []
    refused = {one.name: one.refused for one in report.columns}
    assert refused["NAME"] == 1  # Ж is not in the configured set
    assert refused["BIG"] == 1  # too many bytes


@pytest.mark.parametrize(("code", "xml", "told"), [(8, False, "LONG"), (112, True, "XMLTYPE")])
def test_long_and_xml_are_refused_by_name(code: int, xml: bool, told: str) -> None:
    column = Column("C", 2, 2, 2, code, 0, charset_id=178, charset_form=3, xml=xml)
    values = ValueSettings(FallbackPolicies(), Choices(), Policies(), "US7ASCII")
    with pytest.raises(OlrPgError, match=f"{told} of a character set in") as caught:
        oracle_column("APP.T", column, PgKind.XML if xml else PgKind.TEXT, values)
    assert caught.value.code == Code.COLUMN_NOT_FOR_ORACLE


def test_it_does_not_begin_if_oracle_changes_bytes(
    served_text: Served,
    tmp_path: Path,
    logical_database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served_text.execute("CREATE TABLE names (id NUMBER(5) PRIMARY KEY, note CLOB)")
    config = config_of(served_text, tmp_path, logical_database, "names")
    load(config, logical_database)

    def spoilt(_context: Any, raw: Any) -> Any:
        return None if raw is None else raw.decode("ascii", "replace")

    monkeypatch.setitem(FUNCTIONS, "UTL_RAW.CAST_TO_VARCHAR2", spoilt)
    with open_ways_back(config) as (way,), pytest.raises(OlrPgError) as caught:
        prepare(way)
    assert caught.value.code == Code.COLUMN_NOT_FOR_ORACLE
    assert caught.value.where == {"table": "APP.NAMES", "column": "NOTE"}
    assert status_is_empty(config)


def status_is_empty(config: Config) -> bool:
    with open_ways_back(config) as (way,):
        found = status(way)
        return found.slot is None and found.ledger is None
