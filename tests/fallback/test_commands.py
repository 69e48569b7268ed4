"""``olr-pg fallback``, from its beginning to its end."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import psycopg
import pytest
from typer.testing import CliRunner

from olr_pg.cli.main import make_app
from olr_pg.cli.migration.fallback import begin_command, run_command
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback import way_back_page
from tests.advice import followed
from tests.fallback.made_way import MadeWay, way_document, write_document
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.proving.served import Served


def test_verify_finds_each_kind_of_difference(
    served: Served, logical_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The stand-in tells no sizes; a Spark for three rows would be all that the test takes.
    monkeypatch.setattr("olr_pg.load.copy_task.HERE_BYTES", 1 << 60)
    made = MadeWay(served, logical_database, "compared")
    config = made.config_file(tmp_path)
    app = make_app(("fallback",))

    def verify() -> tuple[int, dict[str, int]]:
        result = CliRunner().invoke(app, ["fallback", "verify", "--config", str(config), "--json"])
        (found,) = json.loads(result.stdout)["tables"]
        return result.exit_code, found["differences"]

    rows = "(1, 'a', 1, NULL), (2, 'b', 2, NULL), (3, 'é€', NULL, NULL)"
    made.sql(f"INSERT INTO {{t}} VALUES {rows}")
    made.oracle(f"INSERT INTO {{t}} VALUES {rows}")
    assert verify() == (0, {})
    made.oracle("DELETE FROM {t} WHERE id = 1")
    assert verify() == (1, {"extra": 1})
    made.oracle("INSERT INTO {t} VALUES (4, 'd', 4, NULL)")
    assert verify() == (1, {"missing": 1, "extra": 1})
    made.oracle("UPDATE {t} SET v = 'e' WHERE id = 3")
    assert verify() == (1, {"missing": 1, "extra": 1, "different": 1})
    made.sql("ALTER TABLE {t} RENAME TO compared_away")
    result = CliRunner().invoke(app, ["fallback", "verify", "--config", str(config)])
    assert result.exit_code not in (0, 1)
    assert "OLR-" in result.output


def test_a_way_back_from_its_beginning_to_its_end(
    served: Served, logical_database: str, tmp_path: Path
) -> None:
    made = MadeWay(served, logical_database, "commanded")
    config = made.config_file(tmp_path)
    app = make_app(("fallback",))

    def call(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["fallback", *arguments, "--config", str(config)])
        return result.exit_code, result.output

    code, said = call("status")
    assert (code, said) == (
        0,
        "The way back has not begun. To begin it, run `olr-pg fallback begin`.\n",
    )
    assert call("run", "--once")[0] == 8
    code, said = call("begin", "--json")
    assert code == 0
    assert json.loads(said)["slot"] == "olr_pg_fallback_olr_pg"
    assert call("begin")[0] == 0
    made.sql("INSERT INTO {t} VALUES (1, 'é', 5, repeat('b', 3000)), (2, '', 6, NULL)")
    code, said = call("run", "--once")
    assert code == 0, said
    assert made.rows()[1] == [(1, "é", 5, "b" * 3000), (2, None, 6, None)]
    found = json.loads(call("status", "--json")[1])
    assert found["ledger"]["transactions"] >= 1
    assert found["slot"]["wal_status"] == "reserved"

    made.sql("UPDATE {t} SET v = repeat('x', 41)")
    code, said = call("run", "--once")
    assert code == 1, said
    assert "OLR-07307" in said
    assert "OLR-07350" in said
    assert "STOPPED" in call("status")[1]
    error = OlrPgError(Code.VALUE_NOT_FOR_ORACLE, "")
    enlarge = "change the column in Oracle: enlarge it"
    followed(error, Code.VALUE_NOT_FOR_ORACLE, enlarge, "resume --table OWNER.NAME")
    made.oracle("ALTER TABLE {t} MODIFY v VARCHAR2(100)")
    assert call("resume", "--table", "APP.COMMANDED") == (
        0,
        "APP.COMMANDED: resumed, catching up\n",
    )
    assert call("run", "--once")[0] == 0
    assert made.rows()[1][0][1] == "x" * 41

    made.sql("ALTER TABLE {t} ADD more int", "INSERT INTO {t} VALUES (3, 'c', 7, NULL, 8)")
    code, said = call("run", "--once")
    assert code == 1, said
    assert "OLR-07313" in said
    error = OlrPgError(Code.FALLBACK_TABLE_CHANGED, "")
    same = "make the same change in Oracle"
    followed(error, Code.FALLBACK_TABLE_CHANGED, same, "resume --table OWNER.NAME")
    made.oracle("ALTER TABLE {t} ADD (more NUMBER(10))")
    call("run", "--once")
    assert call("resume", "--table", "APP.COMMANDED")[0] == 0
    assert call("run", "--once")[0] == 0
    with made.oracle_cursor() as cursor:
        cursor.execute(f"SELECT more FROM {made.name} WHERE id = 3")
        assert cursor.fetchall() == [(8,)]
    assert call("end")[0] == 0
    assert (
        call("status")[1]
        == "The way back has not begun. To begin it, run `olr-pg fallback begin`.\n"
    )


def test_a_run_shows_on_its_page_how_far_it_is(
    served: Served,
    logical_database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(way_back_page, "LOOK_SECONDS", 0.1)
    made = MadeWay(served, logical_database, "shown")
    document = way_document(served, tmp_path / "data", logical_database, made.name)
    document["fallback"]["metrics-address"] = "127.0.0.1:0"
    config = write_document(document, tmp_path / "olr-pg.json")
    begin_command(config)
    said: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_command, config)

        def url() -> str:
            said.append(capsys.readouterr().out)
            found = re.search(r"Status page: (\S+)", "".join(said))
            return found[1] if found else ""

        def record() -> dict[str, Any]:
            with urlopen(f"{page}status.json", timeout=60) as answer:
                return dict(json.load(answer))

        def table() -> dict[str, Any]:
            (one,) = record()["tables"]
            return dict(one)

        wait_until(lambda: bool(url()) or running.done())
        page = url()
        try:
            wait_until(lambda: record()["state"]["name"] == "FOLLOWING")
            made.sql("INSERT INTO {t} VALUES (1, '', 5, NULL)")
            wait_until(lambda: table()["changed_values"] == 1)
            back = record()["way_back"]
            with psycopg.connect(logical_database) as connection:
                query = "SELECT wal_status, pg_current_wal_lsn() >= %s::pg_lsn FROM"
                query += " pg_replication_slots WHERE slot_name = 'olr_pg_fallback_olr_pg'"
                slot = connection.execute(query.encode(), (back["ledger"]["lsn"],)).fetchone()
            assert slot == (back["slot"]["wal_status"], True)
            made.sql("UPDATE {t} SET v = repeat('x', 41)")
            wait_until(lambda: table()["state"] == "stopped")
            assert "OLR-07350" in record()["problems"][0]
            assert "fallback resume --table APP.SHOWN" in record()["commands"][0][0]
        finally:  # it ends with an error: nothing else ends it but a signal
            made.oracle("DELETE FROM olr_pg_fallback WHERE subscription = 'olr_pg'")
            made.sql("INSERT INTO {t} VALUES (2, 'b', 6, NULL)")
            error = running.exception()
    assert isinstance(error, OlrPgError)
    assert error.code in (Code.FALLBACK_LEDGER_MOVED, Code.FALLBACK_LEDGER_LOST)
