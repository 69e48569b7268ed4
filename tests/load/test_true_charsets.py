"""A database whose bytes are not text of the character set that it declares: loaded, replicated,
verified and written back, each in the set that the configuration names.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import oracledb
import psycopg
import pytest

from olr_pg.appliance.all_checks import diagnose
from olr_pg.appliance.appliance import run_appliance
from olr_pg.appliance.dictionary_export import export_dictionary
from olr_pg.applier.target.connection import connect_with
from olr_pg.cli.migration.assess import assess
from olr_pg.config.reading import load_config
from olr_pg.dictionary.loader import load_dictionary
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import sources
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.load.verification.differences import (
    difference_lines,
    read_differences,
    write_differences,
)
from olr_pg.load.verification.repair import repair
from olr_pg.load.verification.verification import AT_POSITION, verify
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.oracle_net.serve import SqlServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from olr_pg.config.model import Config
    from olr_pg.load.verification.verification import VerifiedTable

SETS = {"APP.LETTERS.RU": "CL8MSWIN1251", "APP.LETTERS.ZH": "ZHS16GBK", "*": "WE8MSWIN1252"}
CODECS = {"name": "cp1252", "note": "cp1252", "long_text": "cp1252", "ru": "cp1251", "zh": "gbk"}
SPOILT = {"a\x81b": b"a\x81b", "字\ufffd!": b"\xd7\xd6\xff!"}
"""Bytes without a character in the configured set, by the text that they become. Oracle takes 81 in
WE8MSWIN1252 for the control character of this number.
"""


def sql_text(text: str, codec: str) -> str:
    """Text whose bytes are written without conversion."""
    raw = SPOILT[text] if text in SPOILT else text.encode(codec)
    pieces = [raw[at : at + 1000].hex() for at in range(0, len(raw), 1000)]
    return " || ".join(f"UTL_RAW.CAST_TO_VARCHAR2(HEXTORAW('{one}'))" for one in pieces)


ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": "Gärtner €", "padded": "Ö", "ru": "Привет", "zh": "漢字 and text",
     "note": "naïve “quotes”", "long_text": "é" * 2500},
    {"id": 2, "name": "plain", "padded": "x", "ru": "Мир", "zh": "中文," * 3000,
     "note": "ß" * 6000, "long_text": "œ"},
    {"id": 3, "name": None, "padded": None, "ru": None, "zh": None, "note": None,
     "long_text": None},
    {"id": 6, "name": "a\x81b", "padded": "a\x81b", "ru": None, "zh": "字\ufffd!",
     "note": "a\x81b", "long_text": "a\x81b"},
]  # fmt: skip
LATER: list[dict[str, Any]] = [
    {"id": 4, "name": "später", "padded": "ü", "ru": "Да", "zh": "字" * 20, "note": "½ ¾",
     "long_text": "ÿ" * 3000},
    {"id": 5, "name": "Š", "padded": "Ž", "ru": "Ж", "zh": "國" * 5000, "note": "Ÿ" * 20_000,
     "long_text": "ø"},
    {**ROWS[3], "id": 7},
]  # fmt: skip


class Source:
    """A served database, and a copy of it.

    Args:
        sets: the configured character sets.
    """

    def __init__(
        self, served: SqlServer, folder: Path, target: str, session: Callable[[], SparkSession],
        sets: dict[str, str],
    ) -> None:  # fmt: skip
        self.served, self.folder, self.target = served, folder, target
        self.session, self.sets = session, sets
        self.apply: dict[str, Any] = {}
        self.filter: dict[str, Any] = {}

    def execute(self, *statements: str) -> None:
        with (
            oracledb.connect(
                user="app", password="olr", dsn=self.served.server.connect_string
            ) as connection,
            connection.cursor() as cursor,
        ):
            for one in statements:
                cursor.execute(one)
            connection.commit()

    def insert(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            values = [
                "NULL" if value is None else str(value) if name == "id" else
                sql_text(value, CODECS.get(name, "cp1252"))
                for name, value in row.items()
            ]  # fmt: skip
            self.execute(f"INSERT INTO letters ({', '.join(row)}) VALUES ({', '.join(values)})")

    def config(self) -> Config:
        document = json.loads((self.folder / "source" / "olr-pg.json").read_text())
        document["apply"] |= {"connect-string": self.target, **self.apply}
        document["context"]["data"] = str(self.folder / "data")
        document["target"] = {"address": "127.0.0.1:0"}
        document["source"]["character-sets"] = self.sets
        document["filter"] = self.filter
        path = self.folder / "olr-pg.json"
        path.write_text(json.dumps(document))
        return load_config(path)

    def load(self) -> None:
        config = self.config()
        with sources.open_tables(config) as source:
            settings = sources.target_settings(config, source.snapshot, self.target)
            work = source.sources(source.choose(()))
            options = LoadOptions(undo_retention=source.undo_retention)
            done = initial_load(settings, work, self.session, options)
            for failure in done.failures:
                raise failure

    def replicate(self) -> None:
        self.served.database.switch_logs()
        assert run_appliance(self.config(), once=True, apply=True) == 0

    def verify(self) -> list[VerifiedTable]:
        config = self.config()
        with sources.open_tables(config) as source:
            settings = sources.target_settings(config, source.snapshot, self.target)
            work = source.sources(source.choose(()))
            found = verify(settings, work, self.session, AT_POSITION)
            for failure in found.failures:
                raise failure
            return list(found.tables)

    def rows(self) -> list[dict[str, Any]]:
        with psycopg.connect(self.target) as connection:
            connection.execute("SET search_path = app")
            cursor = connection.cursor(row_factory=psycopg.rows.dict_row)
            return cursor.execute("SELECT * FROM letters ORDER BY id").fetchall()


@contextmanager
def serving(folder: Path, charset: str = "US7ASCII") -> Iterator[SqlServer]:
    shape = replace(demo_shape(), charset=charset)
    with SqlServer(4, folder / "source", shape, switch_seconds=3600) as served:
        yield served
    assert served.server.malformed == []


LETTERS = """CREATE TABLE letters (id NUMBER(9) PRIMARY KEY, name VARCHAR2(60), padded CHAR(8),
ru VARCHAR2(60), zh CLOB, note CLOB, long_text VARCHAR2(4000))"""


@pytest.fixture
def source(
    tmp_path: Path, postgres_database: str, shared_session: Callable[[], SparkSession]
) -> Iterator[Source]:
    with serving(tmp_path) as served:
        made = Source(served, tmp_path, postgres_database, shared_session, SETS)
        made.execute(LETTERS)
        yield made


def expected(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    padded = [one["padded"] and one["padded"].ljust(8) for one in rows]
    return [{**one, "padded": text} for one, text in zip(rows, padded, strict=True)]


@pytest.mark.usefixtures("one_session")
def test_bytes_of_other_sets_are_loaded_replicated_and_verified(source: Source) -> None:
    source.insert(ROWS)
    source.load()
    assert source.rows() == expected(*ROWS)
    source.insert(LATER)
    changed = sql_text("Ähnlich", "cp1252")
    source.execute(
        f"UPDATE letters SET name = {changed} WHERE id = 2", "DELETE FROM letters WHERE id = 3"
    )
    source.replicate()
    assert source.rows() == expected(
        ROWS[0], {**ROWS[1], "name": "Ähnlich"}, *LATER[:2], ROWS[3], LATER[2]
    )
    assert [one.identical for one in source.verify()] == [True]


@pytest.mark.usefixtures("one_session")
def test_without_the_configured_sets_the_text_is_lost(source: Source) -> None:
    source.insert(ROWS[:1])
    source.sets = {}
    source.load()
    source.insert(LATER[:1])
    source.replicate()
    assert [row["name"] for row in source.rows()] == ["G\ufffdrtner \ufffd", "sp\ufffdter"]
    assert [row["ru"] for row in source.rows()] == ["\ufffd" * 6, "\ufffd" * 2]


@pytest.mark.usefixtures("one_session")
def test_the_declared_set_excludes_columns(source: Source) -> None:
    source.insert(ROWS[:1])
    source.sets = {"app.letters.ru": "US7ASCII", **SETS}
    source.load()
    source.insert(LATER[:1])
    source.replicate()
    assert [row["ru"] for row in source.rows()] == ["\ufffd" * 6, "\ufffd" * 2]
    assert [row["name"] for row in source.rows()] == [ROWS[0]["name"], LATER[0]["name"]]
    assert [one.identical for one in source.verify()] == [True]


@pytest.mark.usefixtures("one_session")
def test_columns_and_tables_that_come_later_have_their_set(source: Source) -> None:
    source.apply = {"tables": ["APP.*"]}
    source.sets = {"*.ADDED": "EE8MSWIN1250", **SETS}
    source.insert(ROWS[:1])
    source.load()
    source.replicate()
    source.execute(
        "ALTER TABLE letters ADD (added VARCHAR2(20))",
        f"INSERT INTO letters (id, added) VALUES (7, {sql_text('Łódź', 'cp1250')})",
        "CREATE TABLE more (id NUMBER(9) PRIMARY KEY, name VARCHAR2(20))",
        f"INSERT INTO more VALUES (1, {sql_text('Tür', 'cp1252')})",
    )
    source.replicate()
    assert [row["added"] for row in source.rows()] == [None, "Łódź"]
    with psycopg.connect(source.target) as connection:
        assert connection.execute("SELECT name FROM app.more").fetchall() == [("Tür",)]


@pytest.mark.usefixtures("one_session")
def test_conditions_compare_the_configured_text(source: Source) -> None:
    source.filter = {"rows": [{"table": "APP.LETTERS", "where": "ru = 'Привет' OR name = 'Š'"}]}
    source.insert(ROWS)
    source.load()
    source.insert(LATER)
    source.replicate()
    assert source.rows() == expected(ROWS[0], LATER[1])


@pytest.mark.usefixtures("one_session")
def test_differences_are_found_and_repaired(source: Source) -> None:
    source.insert(ROWS)
    source.load()
    with psycopg.connect(source.target) as connection:
        connection.execute("UPDATE app.letters SET zh = 'other' WHERE id = 2")
        connection.execute("DELETE FROM app.letters WHERE id = 1")
    config = source.config()
    with sources.open_tables(config) as tables:
        settings = sources.target_settings(config, tables.snapshot, source.target)
        work = tables.sources(tables.choose(()))
        found = verify(settings, work, source.session, AT_POSITION)
        assert [len(one.differences) for one in found.tables] == [2]
        path = source.folder / "differences"
        with connect_with(settings) as connection:
            lines = difference_lines(connection, settings.subscription, found.tables)
            write_differences(path, lines)
        (done,) = repair(settings, read_differences(path, settings.subscription))
        assert (done.inserted, done.updated) == (1, 1)
    assert source.rows() == expected(*ROWS)


@pytest.mark.usefixtures("one_session")
def test_an_exported_dictionary_has_the_sets(source: Source) -> None:
    source.insert(ROWS[:1])
    path = source.folder / "exported.json"
    export_dictionary(source.config(), None, 0, path)
    exported = load_dictionary([str(path)])
    source.execute(
        "ALTER TABLE letters ADD (added VARCHAR2(20))",
        f"INSERT INTO letters (id, name, added) VALUES (9, {sql_text('é', 'cp1252')},"
        f" {sql_text('ü', 'cp1252')})",
    )
    source.insert(LATER[:1])
    source.served.database.switch_logs()
    render = JsonLines(exported.database)
    logs = [str(source.folder / "source" / "logs")]
    lines = [
        json.loads(line)
        for blob in decode_logs(exported, logs)
        for line in render.render(blob).splitlines()
    ]
    rows = [line["after"] for line in lines if line["op"] == "insert"]
    assert [row["NAME"] for row in rows] == [ROWS[0]["name"], "é", LATER[0]["name"]]
    assert rows[1]["ADDED"] == "ü"
    assert rows[2]["ZH"] == LATER[0]["zh"]
    assert exported.database.charset == "US7ASCII"


def test_a_set_of_several_bytes_cannot_be_replaced(
    tmp_path: Path, postgres_database: str, shared_session: Callable[[], SparkSession]
) -> None:
    with serving(tmp_path, "AL32UTF8") as served:
        source = Source(served, tmp_path, postgres_database, shared_session, SETS)
        source.execute(LETTERS)
        with pytest.raises(OlrPgError) as caught:
            source.load()
    assert caught.value.code == Code.CHARACTER_SET_NOT_REPLACEABLE
    assert caught.value.where == {"table": "APP.LETTERS", "column": "ZH"}


@pytest.mark.usefixtures("one_session")
def test_short_text_of_a_database_in_utf8_can_have_another_set(
    tmp_path: Path, postgres_database: str, shared_session: Callable[[], SparkSession]
) -> None:
    """The client wrote Windows' bytes into AL32UTF8, which nothing converts or checks."""
    sets = {"APP.LETTERS.NAME": "WE8MSWIN1252", "APP.LETTERS.PADDED": "WE8MSWIN1252"}
    with serving(tmp_path, "AL32UTF8") as served:
        source = Source(served, tmp_path, postgres_database, shared_session, sets)
        source.execute(
            "CREATE TABLE letters (id NUMBER(9) PRIMARY KEY, name VARCHAR2(60), padded CHAR(8),"
            " long_text VARCHAR2(4000), note CLOB)"
        )

        def insert(number: int, name: str, padded: str) -> dict[str, Any]:
            own = ", ".join(sql_text(one, "cp1252") for one in (name, padded))
            source.execute(f"INSERT INTO letters VALUES ({number}, {own}, 'ж', 'ж')")
            row = {"id": number, "name": name, "padded": padded}
            return {**row, "long_text": "ж", "note": "ж"}

        rows = [insert(1, "Café €", "é"), insert(2, "plain", "x")]
        source.load()
        rows.append(insert(3, "Ž", "ß"))
        source.replicate()
        assert source.rows() == expected(*rows)
        assert [one.identical for one in source.verify()] == [True]
        assert findings(source) == []
        source.sets = {}
        assert findings(source) == ["NAME, PADDED contain bytes that are not text in AL32UTF8"]


def test_doctor_finds_the_columns_whose_set_is_not_declared(source: Source) -> None:
    source.insert(ROWS)
    source.execute("CREATE TABLE pure (id NUMBER(5) PRIMARY KEY, name VARCHAR2(10))")
    source.execute("INSERT INTO pure VALUES (1, 'ascii')")
    source.apply = {"tables": ["APP.*"]}
    source.sets = {}
    assert findings(source) == [
        "NAME, PADDED, RU, LONG_TEXT, ZH, NOTE contain bytes that are not text in US7ASCII"
    ]
    source.sets = {"APP.LETTERS.RU": "CL8MSWIN1251", "APP.LETTERS.NO_SUCH": "WE8DEC"}
    assert findings(source) == [
        "NAME, PADDED, LONG_TEXT, ZH, NOTE contain bytes that are not text in US7ASCII"
    ]
    source.sets = SETS
    assert findings(source) == [
        "NAME, PADDED, LONG_TEXT, NOTE contain bytes that are not text in WE8MSWIN1252",
        "ZH contains bytes that are not text in ZHS16GBK",
    ]
    source.execute("DELETE FROM letters WHERE id = 6")
    assert findings(source) == []


def test_the_assessment_names_the_check_of_the_text(
    source: Source, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "olr_pg.observability.logging_setup.configure_logging", lambda *_, **__: None
    )
    source.sets = {"APP.LETTERS.RU": "CL8MSWIN1251"}
    source.config()
    out = source.folder / "report"
    assess(source.folder / "olr-pg.json", out=out, no_target=True)
    remark = "the database declares US7ASCII, and olr_pg converts 5 text columns from this set (1 "
    assert remark in capsys.readouterr().out
    assert "olr-pg doctor --load" in (out / "report.html").read_text("utf-8")
    texts = json.loads((out / "report.json").read_text("utf-8"))["texts"]
    assert texts == {"declared": "US7ASCII", "as_declared": 5, "configured": 1}


def findings(source: Source) -> list[str]:
    found = diagnose(source.config(), for_load=True)
    return [
        one.what.partition(", which")[0].removeprefix("APP.LETTERS: ")
        for one in found
        if one.check == "oracle.text-bytes"
    ]
