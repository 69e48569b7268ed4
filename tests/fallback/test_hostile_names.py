"""Every command on a source whose names, comments and rows are hostile: they stay names and texts,
and both databases have the same rows at the end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import oracledb
import psycopg
from psycopg import sql
from typer.testing import CliRunner

from olr_pg.cli.main import make_app
from tests.fallback.made_way import way_document, write_document
from tests.hostile import MARK, TEXTS

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.proving.served import Served

_BARE: Final = [text.replace('"', "") for text in TEXTS.values()]
NAMES: Final = [f"{text[:55]}{number}" for number, text in enumerate(_BARE)]
"""Of tables and their keys. No name of Oracle contains a quotation mark."""

CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e]")
STEPS: Final = (
    (*("doctor",), 0),
    (*("assess", "--out", "report"), 0),
    (*("schema", "export", "--out", "files"), 0),
    (*("initial-load",), 0),
    (*("schema", "apply"), 0),
    (*("run", "--once"), 0),
    (*("tables", "list"), 0),
    (*("tables", "pause", "--all"), 0),
    (*("tables", "resume", "--all"), 0),
    (*("errors", "list"), 0),
    (*("verify", "--differences", "differences.json"), 1),
    (*("repair", "--differences", "differences.json", "--yes"), 0),
    (*("verify",), 0),
    (*("fallback", "begin"), 0),
    (*("fallback", "run", "--once"), 0),
    (*("fallback", "status"), 0),
    (*("fallback", "verify"), 0),
    (*("fallback", "end"), 0),
)
"""Commands, and the exit code of each."""


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Site:
    """A source with a hostile table for each text, and a target."""

    def __init__(self, served: Served, target: str, folder: Path) -> None:
        self.target = target
        self._served = served
        self._tables(
            'CREATE TABLE {t} ({t} NUMBER(9) PRIMARY KEY, "V" VARCHAR2(400) DEFAULT {v})',
            "COMMENT ON TABLE {t} IS {v}",
            'COMMENT ON COLUMN {t}."V" IS {v}',
            "INSERT INTO {t} VALUES (1, {v})",
        )
        document = way_document(served, folder / "data", target)
        document["apply"] |= {
            "tables": [f'"APP"."{name}"' for name in NAMES],
            "create-tables": True,
            "triggers": "disable",
        }
        document["status"] = {"address": "127.0.0.1:0"}
        self._config = write_document(document, folder / "olr-pg.json")

    def _tables(self, *statements: str) -> None:
        for name, text in zip(NAMES, TEXTS.values(), strict=True):
            for one in statements:
                self._served.execute(one.format(t=f'"{name}"', v=_literal(text)))

    def changed_in_oracle(self) -> None:
        self._tables(
            "INSERT INTO {t} VALUES (2, {v})", 'UPDATE {t} SET "V" = "V" || {v} WHERE {t} = 1'
        )

    def changed_in_postgres(self, statement: str) -> None:
        with psycopg.connect(self.target) as connection:
            for table, key in self._in_postgres(connection):
                query = sql.SQL(statement).format(
                    t=sql.Identifier("app", table), k=sql.Identifier(key), v=sql.Literal("it's")
                )
                connection.execute(query)

    def _in_postgres(
        self, connection: psycopg.Connection[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """Each table with its key, in the order of `NAMES`."""
        query = """SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a
            ON a.attrelid = c.oid AND a.attnum = 1
            WHERE c.relnamespace = 'app'::regnamespace AND c.relkind = 'r'"""
        found = dict(connection.execute(query).fetchall())
        assert len(found) == len(NAMES)
        by_end = {re.findall(r"\d+$", table)[0]: table for table in found}
        ends = [re.findall(r"\d+$", name)[0] for name in NAMES]
        return [(by_end[end], found[by_end[end]]) for end in ends]

    def call(self, *words: str) -> tuple[int, str]:
        arguments = [*words, "--config", str(self._config)]
        result = CliRunner().invoke(make_app(words[:1]), arguments)
        return result.exit_code, result.output

    def is_marked(self) -> bool:
        with psycopg.connect(self.target) as connection:
            found = connection.execute("SELECT FROM pg_class WHERE relname = %s", [MARK])
            return found.fetchone() is not None

    def rows(self) -> tuple[list[object], list[object]]:
        """The rows of PostgreSQL and those of Oracle."""
        dsn = self._served.dsn
        with (
            psycopg.connect(self.target) as postgres,
            oracledb.connect(user="app", password="olr", dsn=dsn) as oracle,
            oracle.cursor() as cursor,
        ):
            there, here = list[object](), list[object]()
            for table, _ in self._in_postgres(postgres):
                query = sql.SQL("SELECT * FROM {} ORDER BY 1").format(sql.Identifier("app", table))
                there.append(postgres.execute(query).fetchall())
            for name in NAMES:
                cursor.execute(f'SELECT * FROM "{name}" ORDER BY 1')
                here.append(cursor.fetchall())
            return there, here


def test_no_command_takes_a_name_or_a_text_for_anything_else(
    served: Served, logical_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.load.copy_task.HERE_BYTES", 1 << 60)  # without Spark
    work = tmp_path / "a" / "b" / "c" / "d"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    site = Site(served, logical_database, work)
    for *words, expected in STEPS:
        if words[0] == "run":
            site.changed_in_oracle()
        if words[:1] == ["verify"] and len(words) > 1:
            site.changed_in_postgres("UPDATE {t} SET v = {v} WHERE {k} = 1")
        if words == ["fallback", "run", "--once"]:
            site.changed_in_postgres("INSERT INTO {t} VALUES (3, {v})")
        code, said = site.call(*map(str, words))
        assert code == expected, (words, said)
        assert not CONTROLS.search(said), words
        assert not site.is_marked(), words
    assert not list(tmp_path.rglob(f"*{MARK}"))
    there, here = site.rows()
    assert there == here
    assert all(len(rows) == 3 for rows in here if isinstance(rows, list))
